//! A text as its characters, for n-grams of them.

use super::TOO_LONG;
use super::characters::{self, DOT_ABOVE, Lowered, Short};
use super::tokens::{Span, Tokens};
use super::utf8;
use crate::error::{Error, demand};

/// Makes every character a token, lower-cased if `lowercase`; two or more white spaces in a row become one space. `text` is
/// UTF-8; `tokens` is empty, and gets the text as it was read and the span of each character in it, in bytes. An error if the
/// text becomes too long.
pub fn read(text: &[u8], lowercase: bool, tokens: &mut Tokens) -> Result<(), Error> {
    tokens.text.reserve(text.len() + Tokens::PADDING);
    tokens.spans.reserve(text.len());
    let mut letters = Letters { text, at: 0, lowercase, tokens, after_space: false }; // `at`: how many bytes have been read
    while letters.at < text.len() {
        match text[letters.at..].first_chunk() {
            Some(block) if letters.take_block(block) => letters.at += BLOCK,
            _ => letters.take_next(BLOCK)?,
        }
    }
    Ok(())
}

/// So many bytes of plain ASCII are taken at once. 16 to 64 were equally fast (3-grams of 1.3 MB: 14 to 15 ms).
const BLOCK: usize = 32;

/// Whether an ASCII byte is white space to `str.isspace`, which holds for the four separators too.
#[inline(always)]
pub fn is_space(byte: u8) -> bool {
    byte.wrapping_sub(b'\t') < 5 || byte.wrapping_sub(0x1C) < 5
}

/// A text whose characters become tokens.
struct Letters<'a> {
    text: &'a [u8],
    /// How many of its bytes have been read.
    at: usize,
    lowercase: bool,
    tokens: &'a mut Tokens,
    /// Whether the last character was white space.
    after_space: bool,
}

impl Letters<'_> {
    /// Makes the characters of a block tokens; false, and nothing is done, unless it is ASCII without two white spaces in a
    /// row. `self.tokens` gets their text and spans, in bytes; `self.after_space` says whether the character before the block
    /// is white space. `self.at` is not moved.
    #[inline(always)]
    fn take_block(&mut self, block: &[u8; BLOCK]) -> bool {
        // 1 for each byte that is white space, else 0.
        let spaces = block.map(|byte| u8::from(is_space(byte)));
        let neighbours = spaces.iter().zip(&spaces[1..]);
        let has_two_in_a_row = neighbours.fold(0, |any, (space, next)| any | space & next) != 0;
        if !block.is_ascii() || has_two_in_a_row || self.after_space && spaces[0] == 1 {
            return false;
        }
        let first = self.tokens.text.len() as u32; // where the block begins in the text of the tokens
        let lowered = block.map(|byte| self.ascii(byte)); // in lower case, if the text is to be
        self.tokens.text.extend_from_slice(&lowered);
        let spans: [Span; BLOCK] =
            std::array::from_fn(|i| Span { start: first + i as u32, end: first + i as u32 + 1 });
        self.tokens.spans.extend_from_slice(&spans);
        self.after_space = spaces[BLOCK - 1] == 1;
        true
    }

    /// An ASCII byte, in lower case if `self.lowercase`, else as it is.
    #[inline(always)]
    fn ascii(&self, byte: u8) -> u8 {
        match self.lowercase {
            true => byte.to_ascii_lowercase(),
            false => byte,
        }
    }

    /// Makes the next characters tokens, one by one, until they have `n_bytes` bytes or the text ends. `self.at` is how many
    /// bytes of `self.text` have been read; characters are lower-cased if `self.lowercase`.
    fn take_next(&mut self, n_bytes: usize) -> Result<(), Error> {
        let end = self.text.len().min(self.at + n_bytes); // the byte to stop before
        while self.at < end {
            let byte = self.text[self.at];
            if byte.is_ascii() {
                let width = 1;
                self.push(is_space(byte), [self.ascii(byte), 0, 0, 0], width);
                self.at += width;
                continue;
            }
            let table = characters::characters()?; // what each character is
            let next_bytes = self.text[self.at..].first_chunk(); // four; None if the text ends before
            match next_bytes.and_then(|&four| table.short(four, self.lowercase)) {
                Some(Short { bytes, width, is_space, .. }) => {
                    self.push(is_space, bytes, width);
                    self.at += width;
                }
                None => self.take_beyond_ascii()?,
            }
        }
        Ok(())
    }

    /// Makes the next character, one beyond ASCII, a token. An error if the text becomes too long in lower case. It begins at
    /// byte `self.at` of `self.text`, and is lower-cased if `self.lowercase`.
    fn take_beyond_ascii(&mut self) -> Result<(), Error> {
        let table = characters::characters()?; // what each character is
        let character = utf8::first(&self.text[self.at..]);
        let is_space = table.get(character.code).is_space(self.lowercase);
        match table.lower(self.text, self.at, character, self.lowercase)? {
            Lowered::One(code) => self.push_code(is_space, code),
            Lowered::DottedI => {
                let (is_space, width) = (false, 1);
                self.push(is_space, [b'i', 0, 0, 0], width);
                self.push_code(is_space, DOT_ABOVE);
            }
        }
        self.at += character.width;
        let likely_length = self.tokens.text.len() + self.text.len() - self.at; // in bytes
        demand(likely_length < u32::MAX as usize, TOO_LONG)
    }

    /// Adds a character of this code point as a token; `is_space`: it is white space.
    fn push_code(&mut self, is_space: bool, code: u32) {
        let (bytes, width) = utf8::encode(code);
        self.push(is_space, bytes, width);
    }

    /// Adds a character, the first `width` of these bytes, as a token. `is_space`: it is white space; after white space it
    /// turns that into a plain space instead. `self.tokens.text` has the characters so far, `self.tokens.spans` where each
    /// begins and ends in it, in bytes; `self.after_space` says whether the last one was white space.
    #[inline(always)]
    fn push(&mut self, is_space: bool, mut bytes: [u8; 4], mut width: usize) {
        if is_space
            && self.after_space
            && let Some(last) = self.tokens.spans.pop()
        {
            self.tokens.text.truncate(last.start as usize);
            (bytes, width) = ([b' ', 0, 0, 0], 1);
        }
        let start = self.tokens.text.len(); // of the token, in bytes
        self.tokens.text.extend_from_slice(&bytes);
        self.tokens.text.truncate(start + width);
        self.tokens.spans.push(Span { start: start as u32, end: (start + width) as u32 });
        self.after_space = is_space;
    }
}
