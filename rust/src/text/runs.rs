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

/// Appends the text, lower-cased if `lowercase`, and the span of every word that the pattern finds in it.
pub fn read(
    text: &[u8],
    pattern: Pattern,
    lowercase: bool,
    tokens: &mut Tokens,
) -> Result<(), Error> {
    tokens.text.reserve(text.len() + BLOCK + Tokens::PADDING);
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
    match (pattern == Pattern::Mail, lowercase) {
        (false, true) => blocks::run(Reader::<false, true> { text, at: 0, words }),
        (false, false) => blocks::run(Reader::<false, false> { text, at: 0, words }),
        (true, true) => blocks::run(Reader::<true, true> { text, at: 0, words }),
        (true, false) => blocks::run(Reader::<true, false> { text, at: 0, words }),
    }
}

/// The lowest `n` bits, up to all.
#[inline(always)]
fn lowest(n: usize) -> u64 {
    if n < BLOCK { (1 << n) - 1 } else { u64::MAX }
}

/// The words found so far; a word that is not over yet is the last of them.
struct Words<'a> {
    text: &'a mut Vec<u8>,
    /// The first `count` are words, the others room for more.
    spans: &'a mut Vec<Span>,
    count: usize,
    /// 1 within a word.
    inside: u64,
    /// 1 within a word that has one character so far, and would be dropped if it ended now.
    lone: u64,
    /// All ones if words of one character are dropped, else 0.
    drop: u64,
}

/// Room for the spans of a block is made for several blocks at a time.
const ROOM: usize = 4 * BLOCK;

/// So many spans are written without checking that a block has as many words: a block seldom has more, and checking costs more than
/// writing.
const USUAL: usize = 14;

impl Words<'_> {
    /// Takes the first `size` bytes of a block; the bits of `word` beyond are 0. The last character has `width` bytes.
    #[inline(always)]
    fn take(&mut self, bytes: &[u8; BLOCK], size: usize, word: u64, width: usize) {
        let base = self.text.len();
        self.text.extend_from_slice(bytes);
        self.text.truncate(base + size);
        let before = word << 1 | self.inside;
        let mut starts = word & !before;
        let mut ends = before & !word & lowest(size);
        let last = 1 << (size - width);
        let single = starts & !(word >> 1) & !last & self.drop;
        starts &= !single;
        ends &= !(single << 1);
        // The word before is over, and was too short.
        let over = self.lone & !word & 1;
        ends &= !over;
        self.count -= over as usize;
        self.inside &= !over;
        self.write(base as u32, starts, ends);
        // More of the last word, or its end, is in the next block.
        self.lone = u64::from(starts & last != 0) & self.drop;
        self.inside = word >> (size - 1) & 1;
    }

    /// Starts and ends words where the bits are.
    #[inline(always)]
    fn write(&mut self, base: u32, starts: u64, ends: u64) {
        let open = self.count - self.inside as usize;
        if self.spans.len() < self.count + BLOCK {
            self.spans.resize(self.count + ROOM, Span::default());
        }
        if let Some(room) = self.spans[self.count..].first_chunk_mut() {
            each(starts, room, |span, bit| span.start = base.wrapping_add(bit));
        }
        if let Some(room) = self.spans[open..].first_chunk_mut() {
            each(ends, room, |span, bit| span.end = base.wrapping_add(bit));
        }
        self.count += starts.count_ones() as usize;
    }

    /// Starts or goes on with a word.
    fn more(&mut self) {
        self.lone = !self.inside & 1 & self.drop;
        if self.inside == 0 {
            self.write(self.text.len() as u32, 1, 0);
            self.inside = 1;
        }
    }

    /// Ends the word, if there is one.
    fn end(&mut self) {
        self.count -= self.lone as usize;
        if self.inside & !self.lone == 1 {
            self.write(self.text.len() as u32, 0, 1);
        }
        (self.inside, self.lone) = (0, 0);
    }
}

/// Calls `set` for the first span and the number of the first bit, and so on.
#[inline(always)]
fn each(mut bits: u64, room: &mut [Span; BLOCK], set: impl Fn(&mut Span, u32)) {
    let mut next = || {
        let bit = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        bit
    };
    for span in &mut room[..USUAL] {
        set(span, next());
    }
    for span in &mut room[USUAL..] {
        match next() {
            64 => break,
            bit => set(span, bit),
        }
    }
}

struct Reader<'a, const MAIL: bool, const LOWER: bool> {
    text: &'a [u8],
    /// How far it has been read.
    at: usize,
    words: Words<'a>,
}

impl<const MAIL: bool, const LOWER: bool> Job for Reader<'_, MAIL, LOWER> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn run<M: Machine>(mut self, machine: M) -> Result<(), Error> {
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let found = match rest.first_chunk() {
                Some(block) => machine.look(block, LOWER),
                None => machine.look(&padded(rest), LOWER),
            };
            let whole = rest.len() >= BLOCK && found.beyond == 0;
            if whole && !(MAIL && found.joiner >> (BLOCK - 1) == 1) {
                let word = self.join(found.word, found.joiner);
                self.words.take(&found.bytes, BLOCK, word, 1);
                self.at += BLOCK;
            } else {
                self.part(found)?;
            }
        }
        self.words.end();
        self.words.spans.truncate(self.words.count);
        Ok(())
    }
}

/// The end of a text, as a block.
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

impl<const MAIL: bool, const LOWER: bool> Reader<'_, MAIL, LOWER> {
    /// Word characters, and for mail what joins them.
    #[inline(always)]
    fn join(&self, word: u64, joiner: u64) -> u64 {
        match MAIL {
            true => word | joiner & (word << 1 | self.words.inside) & word >> 1,
            false => word,
        }
    }

    /// Takes as much as possible of the text's last block, or of a block that is not all ASCII, at once; if nothing, then one character.
    #[inline(always)]
    fn part(&mut self, mut found: ClassifiedBlock) -> Result<(), Error> {
        let rest = self.text.len() - self.at;
        let mut part = Part { size: rest.min(BLOCK), word: found.word, tails: 0 };
        if found.beyond != 0 {
            self.look_up(&mut found, &mut part)?;
        }
        if MAIL && 0 < part.size && part.size < rest {
            // Whether a joiner at the end joins words depends on what follows.
            part.size -= (found.joiner >> (part.size - 1) & 1) as usize;
        }
        if part.size == 0 {
            return self.character();
        }
        let within = lowest(part.size);
        part.word = self.join(part.word & within, found.joiner & within);
        if self.words.drop != 0 {
            part.drop_lone(self.words.inside);
        }
        self.words.take(&found.bytes, part.size, part.word, part.last_width());
        self.at += part.size;
        Ok(())
    }

    /// Looks up the characters of a block beyond ASCII. The part ends before a character that does not fit in it.
    #[inline(always)]
    fn look_up(&self, block: &mut ClassifiedBlock, part: &mut Part) -> Result<(), Error> {
        let table = characters::characters()?;
        let rest = &self.text[self.at..];
        let mut copied = [0; BLOCK + 4];
        let window: &[u8; BLOCK + 4] = rest.first_chunk().unwrap_or_else(|| {
            copied[..rest.len()].copy_from_slice(rest);
            &copied
        });
        let (mut word, mut tails) = (part.word, 0);
        let mut beyond = block.beyond;
        while beyond != 0 {
            let at = beyond.trailing_zeros() as usize;
            let four = [window[at], window[at + 1], window[at + 2], window[at + 3]];
            // Clearing the lowest bit does not wait for its place, so it is quicker than clearing by place.
            let without = |bits: u64| bits & bits.wrapping_sub(1);
            if let Some(two) = table.two(four, LOWER)
                && at + 2 <= BLOCK
            {
                block.bytes[at..at + 2].copy_from_slice(&two.bytes[..2]);
                word |= if two.is_word { 0b11 } else { 0 } << at;
                tails |= 0b10 << at;
                beyond = without(without(beyond));
                continue;
            }
            if let Some(three) = table.three(four, LOWER)
                && at + 3 <= BLOCK
            {
                word |= if three.is_word { 0b111 } else { 0 } << at;
                tails |= 0b110 << at;
                beyond = without(without(without(beyond)));
                continue;
            }
            let found = utf8::first(&rest[at..]);
            let kind = table.get(found.code);
            let fits = at + found.width <= BLOCK
                && (!LOWER || kind.is_lower() || lower_in_place(block, at, found, kind));
            if !fits {
                part.size = at;
                break;
            }
            let own = ((1 << found.width) - 1) << at;
            word |= if kind.is_word(LOWER) { own } else { 0 };
            tails |= own & own << 1;
            beyond &= !own;
        }
        (part.word, part.tails) = (word, tails & lowest(part.size));
        Ok(())
    }

    /// Takes one character by itself.
    #[cold]
    fn character(&mut self) -> Result<(), Error> {
        let table = characters::characters()?;
        let found = utf8::first(&self.text[self.at..]);
        let kind = table.get(found.code);
        let after = &self.text[self.at + found.width..];
        let is_word = |code: u32| table.get(code).is_word(LOWER);
        let joins = MAIL
            && self.words.inside == 1
            && found.width == 1
            && is_joiner(self.text[self.at])
            && !after.is_empty()
            && is_word(utf8::first(after).code);
        if kind.is_word(LOWER) || joins {
            self.words.more();
        } else {
            self.words.end();
        }
        let lowered = match LOWER {
            true => table.lower(self.text, self.at, found)?,
            false => Lowered::One(found.code),
        };
        match lowered {
            Lowered::One(code) => utf8::push(self.words.text, code),
            Lowered::DottedI => {
                self.words.text.push(b'i');
                self.words.end();
                utf8::push(self.words.text, characters::DOT_ABOVE);
            }
        }
        self.at += found.width;
        let most = self.words.text.len() + self.text.len() - self.at;
        demand(most < u32::MAX as usize, TOO_LONG)
    }
}

/// Writes the lower case over a character of a block; false if it is not one of the same width.
fn lower_in_place(block: &mut ClassifiedBlock, at: usize, found: Character, kind: Kind) -> bool {
    let Some(lower) = kind.lower(found.code) else {
        return false;
    };
    let (bytes, width) = utf8::encode(lower);
    if width == found.width {
        block.bytes[at..at + width].copy_from_slice(&bytes[..width]);
    }
    width == found.width
}

/// The beginning of a block.
struct Part {
    size: usize,
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

    /// Drops words of one character that has several bytes, and some of one byte; [`Words::take`] drops the others.
    #[inline(always)]
    fn drop_lone(&mut self, inside: u64) {
        let starts = self.word & !(self.word << 1 | inside);
        // Adding a one where a word starts carries through its first character and stops after it, which is outside of the word if
        // the word has only one character.
        let firsts = self.word & (self.tails | starts);
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
