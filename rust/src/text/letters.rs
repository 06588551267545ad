//! A text as its characters, for n-grams of them.

use super::TOO_LONG;
use super::characters::{self, DOT_ABOVE, Lowered};
use super::tokens::{Span, Tokens};
use super::utf8::{self, Character};
use crate::error::{Error, demand};

/// Makes every character a token, after lower-casing if so wished; two or more white spaces in a row are one space.
pub fn read(text: &[u8], lowercase: bool, tokens: &mut Tokens) -> Result<(), Error> {
    tokens.text.reserve(text.len() + Tokens::PADDING);
    tokens.spans.reserve(text.len());
    let mut letters = Letters {
        tokens,
        after_space: false,
    };
    let mut at = 0;
    while at < text.len() {
        if let Some(block) = text[at..].first_chunk()
            && letters.block(block, lowercase)
        {
            at += BLOCK;
            continue;
        }
        let byte = text[at];
        if byte.is_ascii() {
            letters.ascii(if lowercase {
                byte.to_ascii_lowercase()
            } else {
                byte
            });
            at += 1;
        } else {
            let found = utf8::first(&text[at..]);
            letters.beyond(text, at, found, lowercase)?;
            at += found.width;
        }
    }
    Ok(())
}

/// So many bytes of plain ASCII are taken at once.
const BLOCK: usize = 32;

/// What `str.isspace` holds for, the four separators included.
#[inline(always)]
fn is_space(byte: u8) -> bool {
    byte.wrapping_sub(b'\t') < 5 || byte.wrapping_sub(0x1C) < 5
}

struct Letters<'a> {
    tokens: &'a mut Tokens,
    after_space: bool,
}

impl Letters<'_> {
    /// Takes ASCII without two white spaces in a row; false if it is not that.
    #[inline(always)]
    fn block(&mut self, block: &[u8; BLOCK], lowercase: bool) -> bool {
        let spaces = block.map(|byte| u8::from(is_space(byte)));
        let pairs = spaces.iter().zip(&spaces[1..]);
        let crowded = pairs.fold(0, |any, (a, b)| any | a & b) != 0;
        if !block.is_ascii() || crowded || self.after_space && spaces[0] == 1 {
            return false;
        }
        let first = self.tokens.text.len() as u32;
        match lowercase {
            true => self
                .tokens
                .text
                .extend(block.map(|byte| byte.to_ascii_lowercase())),
            false => self.tokens.text.extend_from_slice(block),
        }
        let spans: [Span; BLOCK] = std::array::from_fn(|i| Span {
            start: first + i as u32,
            end: first + i as u32 + 1,
        });
        self.tokens.spans.extend_from_slice(&spans);
        self.after_space = spaces[BLOCK - 1] == 1;
        true
    }

    #[inline(always)]
    fn ascii(&mut self, byte: u8) {
        let space = is_space(byte);
        if !(space && self.spaced()) {
            self.push(&[byte]);
        }
        self.after_space = space;
    }

    fn beyond(
        &mut self,
        text: &[u8],
        at: usize,
        found: Character,
        lowercase: bool,
    ) -> Result<(), Error> {
        let table = characters::characters()?;
        let space = table.get(found.code).is_space(lowercase);
        let lowered = match lowercase {
            true => table.lower(text, at, found)?,
            false => Lowered::One(found.code),
        };
        match lowered {
            _ if space && self.spaced() => (),
            Lowered::One(code) => self.push_code(code),
            Lowered::DottedI => {
                self.push(b"i");
                self.push_code(DOT_ABOVE);
            }
        }
        self.after_space = space;
        let most = self.tokens.text.len() + text.len() - at;
        demand(most < u32::MAX as usize, TOO_LONG)
    }

    /// Whether white space went before; if so, it is made a plain space.
    fn spaced(&mut self) -> bool {
        if self.after_space
            && let Some(last) = self.tokens.spans.pop()
        {
            self.tokens.text.truncate(last.start as usize);
            self.push(b" ");
        }
        self.after_space
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8]) {
        let start = self.tokens.text.len() as u32;
        self.tokens.text.extend_from_slice(bytes);
        let end = self.tokens.text.len() as u32;
        self.tokens.spans.push(Span { start, end });
    }

    fn push_code(&mut self, code: u32) {
        let start = self.tokens.text.len() as u32;
        utf8::push(&mut self.tokens.text, code);
        let end = self.tokens.text.len() as u32;
        self.tokens.spans.push(Span { start, end });
    }
}
