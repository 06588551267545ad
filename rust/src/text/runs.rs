//! The words of a text: its runs of word characters.
//!
//! A text is taken in blocks of 64 bytes, whose word characters are the bits of a mask; where its runs of ones begin and
//! end, words begin and end. What a block has beyond ASCII is looked up and written into the mask. Only the few
//! characters whose lower case has another width are taken by themselves.

use super::Pattern;
use super::TOO_LONG;
use super::blocks::{self, BLOCK, ClassifiedBlock, Job, Machine, is_joiner};
use super::characters::{self, Kind, Lowered};
use super::tokens::{Span, Tokens};
use super::utf8::{self, Character};
use crate::error::{Error, demand};

/// Appends the text, lower-cased if `lowercase`, and the span of every word that the pattern finds in it. `text` is UTF-8.
/// `tokens.text` gets the text, and `tokens.spans` where each word begins and ends in it, in bytes. An error if the text
/// becomes too long.
pub fn read(
    text: &[u8],
    pattern: Pattern,
    lowercase: bool,
    tokens: &mut Tokens,
) -> Result<(), Error> {
    tokens.text.reserve(text.len() + BLOCK + Tokens::PADDING);
    // No words yet.
    // Afterwards `count` is how many of the spans are words; `inside` is 1 if the text so far ends within a word, and
    // `lone` 1 if that has one character; `drop` is all ones if words of one character are dropped.
    let words = Words {
        text: &mut tokens.text,
        spans: &mut tokens.spans,
        count: 0,
        inside: 0,
        lone: 0,
        drop: match pattern {
            Pattern::Word1 => 0,
            _ => u64::MAX,
        },
    };
    // Whether words may be joined, and whether the text is lower-cased.
    match (pattern == Pattern::Mail, lowercase) {
        (false, true) => blocks::run(Reader::<false, true> { text, at: 0, words }),
        (false, false) => blocks::run(Reader::<false, false> { text, at: 0, words }),
        (true, true) => blocks::run(Reader::<true, true> { text, at: 0, words }),
        (true, false) => blocks::run(Reader::<true, false> { text, at: 0, words }),
    }
}

/// A mask of the lowest `n` bits; all if `n` is 64 or more.
#[inline(always)]
fn lowest(n: usize) -> u64 {
    if n < BLOCK { (1 << n) - 1 } else { u64::MAX }
}

/// The words found so far; a word that is not over yet is the last of them.
struct Words<'a> {
    /// The text as it is written, perhaps lower-cased.
    text: &'a mut Vec<u8>,
    /// The first `count` are words, the others room for more.
    spans: &'a mut Vec<Span>,
    count: usize,
    /// 1 if what was taken ends within a word, else 0.
    inside: u64,
    /// 1 if it ends within a word that has one character so far, and would be dropped if it ended now; else 0.
    lone: u64,
    /// All ones if words of one character are dropped, else 0.
    drop: u64,
}

/// Room for the spans of a block is made for several blocks at a time. 1 to 64 were equally fast (a text of 200,000 words:
/// 1.6 ms).
const ROOM: usize = 4 * BLOCK;

/// So many spans are written without checking that a block has as many words: a block seldom has more, and checking costs
/// more than writing. A text of 200,000 words took 0.83 ms, and 0.99, 0.87 and 0.92 with 4, 8 and 24 spans.
const USUAL: usize = 14;

impl Words<'_> {
    /// Appends the first `size` bytes of a block to the text, and the spans of their words. `word` has a bit for each byte, 1
    /// if it is within a word; its bits beyond `size` are 0. The last character has `last_width` bytes. `self.spans` has
    /// where words begin and end in `self.text`, in bytes; `self.count` says how many of them are words.
    #[inline(always)]
    fn take(&mut self, bytes: &[u8; BLOCK], size: usize, word: u64, last_width: usize) {
        // `self.inside` is 1 if the text before the block ends within a word, `self.lone` if that word has one character so far;
        // `self.drop` is all ones if such words are dropped. Otherwise they are 0.
        let base = self.text.len(); // where the block begins in the text
        self.text.extend_from_slice(bytes);
        self.text.truncate(base + size);
        // Masks of bytes: those after a byte within a word, first bytes of words, bytes after a word's end, and the first byte of
        // the last character.
        let before = word << 1 | self.inside;
        let mut starts = word & !before;
        let mut ends = before & !word & lowest(size);
        let last = 1 << (size - last_width);
        // Words of one byte that end in this block.
        let single = starts & !(word >> 1) & !last & self.drop;
        starts &= !single;
        ends &= !(single << 1);
        // 1 if the word before the block is over, and was too short; else 0.
        let over = self.lone & !word & 1;
        ends &= !over;
        self.count -= over as usize;
        self.inside &= !over;
        self.write(base as u32, starts, ends);
        // More of the last word, or its end, is in the next block.
        self.lone = u64::from(starts & last != 0) & self.drop;
        self.inside = word >> (size - 1) & 1;
    }

    /// Starts words where the bits of `starts` are, and ends words where those of `ends` are. Bit 0 stands for byte `base` of
    /// the text. `self.spans` has where words begin and end in the text, in bytes; the first `self.count` of them are words,
    /// the others room for more.
    #[inline(always)]
    fn write(&mut self, base: u32, starts: u64, ends: u64) {
        // The index of the first word that has no end yet; `self.inside` is 1 if the text before `base` ends within a word,
        // else 0.
        let open = self.count - self.inside as usize;
        if self.spans.len() < self.count + BLOCK {
            self.spans.resize(self.count + ROOM, Span::default());
        }
        if let Some(spans) = self.spans[self.count..].first_chunk_mut() {
            set_spans(spans, starts, |span, bit| span.start = base.wrapping_add(bit));
        }
        if let Some(spans) = self.spans[open..].first_chunk_mut() {
            set_spans(spans, ends, |span, bit| span.end = base.wrapping_add(bit));
        }
        self.count += starts.count_ones() as usize;
    }

    /// Starts a word at the end of the text, or goes on with it if the text ends within one (`self.inside` is 1, else 0), for
    /// a character that is appended next. `self.lone` becomes 1 if the word has only that character so far and such words are
    /// dropped (`self.drop` is all ones, else 0); else 0.
    fn start_or_go_on(&mut self) {
        self.lone = !self.inside & 1 & self.drop; // the first character of its word, so far
        if self.inside == 0 {
            let (starts, ends) = (1, 0);
            self.write(self.text.len() as u32, starts, ends);
            self.inside = 1;
        }
    }

    /// Ends the word, if there is one, at the end of the text; drops it if it is too short. `self.text` is the text so far;
    /// `self.count` is the number of words.
    fn end(&mut self) {
        // `self.inside` is 1 if the text ends within a word, `self.lone` if that is too short; else 0.
        self.count -= self.lone as usize;
        // Within a word that is long enough.
        if self.inside & !self.lone == 1 {
            let (starts, ends) = (0, 1);
            self.write(self.text.len() as u32, starts, ends);
        }
        (self.inside, self.lone) = (0, 0); // not within a word
    }
}

/// Calls `set(span, number)` with the first of `spans` and the number of the lowest bit of `bits` that is 1, the second span
/// and the next such bit, and so on. It sets [`USUAL`] spans at least; what they hold beyond the last bit has no meaning. A
/// span is where a word begins and ends.
#[inline(always)]
fn set_spans(spans: &mut [Span; BLOCK], mut bits: u64, set: impl Fn(&mut Span, u32)) {
    // The number of the lowest bit that is left, which is removed; 64 if there is none.
    let mut next = || {
        let bit = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        bit
    };
    for span in &mut spans[..USUAL] {
        set(span, next());
    }
    for span in &mut spans[USUAL..] {
        match next() {
            64 => break,
            bit => set(span, bit),
        }
    }
}

/// Reads the words of a text: words that may be joined if `MAIL`, lower-cased if `LOWER`.
struct Reader<'a, const MAIL: bool, const LOWER: bool> {
    /// The text as it came.
    text: &'a [u8],
    /// How many of its bytes have been read.
    at: usize,
    words: Words<'a>,
}

impl<const MAIL: bool, const LOWER: bool> Job for Reader<'_, MAIL, LOWER> {
    type Output = Result<(), Error>;

    /// Reads the text to its end: blocks of ASCII at once, all others part by part. `self.text` is UTF-8, of which `self.at`
    /// bytes have been read; `self.words` are the words so far. An error if the text becomes too long. `self.words.spans` has
    /// where words begin and end; the first `self.words.count` of them are words.
    #[inline(always)]
    fn run<M: Machine>(mut self, machine: M) -> Result<(), Error> {
        while self.at < self.text.len() {
            let unread = &self.text[self.at..];
            // Masks of the next bytes that are word characters, joiners and beyond ASCII, and the bytes.
            let block = match unread.first_chunk() {
                Some(bytes) => machine.classify(bytes, LOWER),
                None => machine.classify(&padded(unread), LOWER),
            };
            let is_whole_ascii = unread.len() >= BLOCK && block.beyond == 0;
            if is_whole_ascii && !(MAIL && block.joiner >> (BLOCK - 1) == 1) {
                let word = self.join(block.word, block.joiner);
                let last_width = 1; // all characters are ASCII
                self.words.take(&block.bytes, BLOCK, word, last_width);
                self.at += BLOCK;
            } else {
                self.part(block)?;
            }
        }
        self.words.end();
        self.words.spans.truncate(self.words.count);
        Ok(())
    }
}

/// The end of a text, shorter than a block, as a block filled up with zeros. `rest` is its bytes.
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

impl<const MAIL: bool, const LOWER: bool> Reader<'_, MAIL, LOWER> {
    /// Returns the mask of bytes within words, given those of word characters and of joiners: word characters and, for mail,
    /// joiners with a word character on either side. Bit i of a mask stands for byte i of a block.
    #[inline(always)]
    fn join(&self, word: u64, joiner: u64) -> u64 {
        match MAIL {
            // `inside` is 1 if the bytes before end within a word, else 0.
            true => word | joiner & (word << 1 | self.words.inside) & word >> 1,
            false => word,
        }
    }

    /// Takes as much as possible of the text's last block, or of a block that is not all ASCII, at once; if nothing, then one
    /// character. `self.text` is the text, `self.at` how many of its bytes have been read, and `self.words` the words so far
    /// (`inside`: 1 if they end within a word, else 0; `drop`: not 0 if words of one character are dropped). Masks have a bit
    /// for each byte of the block: `block.word` for word characters, `block.joiner` for joiners, `block.beyond` for bytes
    /// beyond ASCII.
    #[inline(always)]
    fn part(&mut self, mut block: ClassifiedBlock) -> Result<(), Error> {
        let n_unread = self.text.len() - self.at; // bytes
        // How many bytes are taken, and masks of bytes within words and of bytes after the first of their character.
        let mut part = Part { size: n_unread.min(BLOCK), word: block.word, tails: 0 };
        if block.beyond != 0 {
            self.look_up(&mut block, &mut part)?;
        }
        if MAIL && 0 < part.size && part.size < n_unread {
            // Whether a joiner at the end joins words depends on what follows.
            part.size -= (block.joiner >> (part.size - 1) & 1) as usize;
        }
        if part.size == 0 {
            return self.character();
        }
        let part_mask = lowest(part.size);
        part.word = self.join(part.word & part_mask, block.joiner & part_mask);
        // Words of one character are dropped.
        if self.words.drop != 0 {
            part.drop_lone(self.words.inside);
        }
        self.words.take(&block.bytes, part.size, part.word, part.last_width());
        self.at += part.size;
        Ok(())
    }

    /// Looks up the characters of a block beyond ASCII: sets the part's masks, and lower-cases the block's bytes if `LOWER`.
    /// The part ends before a character that does not fit in the block, or whose lower case has another width. `block.bytes`
    /// are the next bytes of `self.text`, which has been read up to byte `self.at`; `block.beyond` is a mask of the bytes
    /// beyond ASCII. `part.size` is the number of bytes of the part, `part.word` the mask of its bytes within words, and
    /// `part.tails` that of bytes after the first one of their character.
    #[inline(always)]
    fn look_up(&self, block: &mut ClassifiedBlock, part: &mut Part) -> Result<(), Error> {
        let table = characters::characters()?; // what each character is
        let unread = &self.text[self.at..];
        let mut copy = [0; BLOCK + 4];
        // The block and the bytes of a last character.
        let window: &[u8; BLOCK + 4] = unread.first_chunk().unwrap_or_else(|| {
            copy[..unread.len()].copy_from_slice(unread);
            &copy
        });
        // Masks of bytes within words, and of bytes after the first one of their character.
        let (mut word, mut tails) = (part.word, 0);
        // The bytes that are still to be looked up.
        let mut beyond = block.beyond;
        while beyond != 0 {
            let at = beyond.trailing_zeros() as usize; // the first of them, in the block
            let next_bytes = [window[at], window[at + 1], window[at + 2], window[at + 3]];
            // Clearing the lowest bit does not wait for its position, so it is quicker than clearing by position.
            let clear_lowest = |bits: u64| bits & bits.wrapping_sub(1);
            if let Some(two_bytes) = table.two(next_bytes, LOWER)
                && at + 2 <= BLOCK
            {
                block.bytes[at..at + 2].copy_from_slice(&two_bytes.bytes[..2]);
                word |= if two_bytes.is_word { 0b11 } else { 0 } << at;
                tails |= 0b10 << at;
                beyond = clear_lowest(clear_lowest(beyond));
                continue;
            }
            if let Some(three_bytes) = table.three(next_bytes, LOWER)
                && at + 3 <= BLOCK
            {
                word |= if three_bytes.is_word { 0b111 } else { 0 } << at;
                tails |= 0b110 << at;
                beyond = clear_lowest(clear_lowest(clear_lowest(beyond)));
                continue;
            }
            let character = utf8::first(&unread[at..]);
            let kind = table.get(character.code); // what it is, and its lower case
            // Whether the block holds the character and its lower case.
            let fits = at + character.width <= BLOCK
                && (!LOWER || kind.is_lower() || lower_in_place(block, at, character, kind));
            if !fits {
                part.size = at;
                break;
            }
            let character_mask = ((1 << character.width) - 1) << at;
            word |= if kind.is_word(LOWER) { character_mask } else { 0 };
            tails |= character_mask & character_mask << 1;
            beyond &= !character_mask;
        }
        (part.word, part.tails) = (word, tails & lowest(part.size));
        Ok(())
    }

    /// Takes the next character of the text by itself. An error if the text becomes too long in lower case. It is at byte
    /// `self.at` of `self.text`, and is lower-cased if `LOWER`. `self.words.text` is the text as it was read, and
    /// `self.words.inside` is 1 if that ends within a word, else 0.
    #[cold]
    fn character(&mut self) -> Result<(), Error> {
        let table = characters::characters()?; // what each character is
        let character = utf8::first(&self.text[self.at..]);
        let kind = table.get(character.code); // what it is, and its lower case
        let after = &self.text[self.at + character.width..];
        let is_word = |code: u32| table.get(code).is_word(LOWER);
        // Whether it is a joiner between two characters of words.
        let joins = MAIL
            && self.words.inside == 1
            && character.width == 1
            && is_joiner(self.text[self.at])
            && !after.is_empty()
            && is_word(utf8::first(after).code);
        if kind.is_word(LOWER) || joins {
            self.words.start_or_go_on();
        } else {
            self.words.end();
        }
        match table.lower(self.text, self.at, character, LOWER)? {
            Lowered::One(code) => utf8::push(self.words.text, code),
            Lowered::DottedI => {
                self.words.text.push(b'i');
                self.words.end();
                utf8::push(self.words.text, characters::DOT_ABOVE);
            }
        }
        self.at += character.width;
        let likely_length = self.words.text.len() + self.text.len() - self.at; // in bytes
        demand(likely_length < u32::MAX as usize, TOO_LONG)
    }
}

/// Writes the lower case over a character of this kind at byte `at` of a block; false if it is not one character of the same
/// width. `block.bytes` are its bytes, which are changed; `width` is a number of bytes.
fn lower_in_place(
    block: &mut ClassifiedBlock,
    at: usize,
    character: Character,
    kind: Kind,
) -> bool {
    let Some(lower) = kind.lower(character.code) else {
        return false;
    };
    let (bytes, width) = utf8::encode(lower);
    if width == character.width {
        block.bytes[at..at + width].copy_from_slice(&bytes[..width]);
    }
    width == character.width
}

/// The beginning of a block: its number of bytes, and masks with a bit for each byte.
struct Part {
    size: usize,
    /// The bytes within words.
    word: u64,
    /// The bytes of characters after their first.
    tails: u64,
}

impl Part {
    /// How many bytes the last character has.
    #[inline(always)]
    fn last_width(&self) -> usize {
        (self.tails << (BLOCK - self.size)).leading_ones() as usize + 1
    }

    /// Drops words of one character that has several bytes, and some of one byte, from the mask; [`Words::take`] drops the
    /// others. `inside` is 1 if the part begins within a word, else 0. `self.word` is the mask of bytes within words,
    /// `self.tails` that of bytes after the first one of their character, and `self.size` the number of bytes of the part.
    #[inline(always)]
    fn drop_lone(&mut self, inside: u64) {
        // Masks of the first bytes of words; and, below, of these and of bytes of words after the first one of their
        // character.
        let starts = self.word & !(self.word << 1 | inside);
        // Adding a one where a word starts carries through its first character and stops after it, which is outside of the
        // word if the word has only one character.
        let firsts = self.word & (self.tails | starts);
        // The sum, the bytes that a carry passed through, and the bytes after words of one character.
        let carried = firsts.wrapping_add(starts);
        let passed = firsts & !carried;
        let mut lone = carried & !self.word & lowest(self.size);
        for _ in 0..WIDEST {
            lone = (lone >> 1 & passed) | lone;
        }
        self.word &= !lone;
    }
}

/// The most bytes of a character, by the definition of UTF-8.
const WIDEST: usize = 4;
