//! The runs of word characters in a text.

use super::Pattern;
use super::characters::{self, CAPITAL_SIGMA, DOT_ABOVE, DOTTED_I};
use super::tokens::{Span, Tokens};
use super::utf8;
use crate::error::Error;

/// Appends the text, lower-cased if so wished, and the span of every word the pattern finds in it.
pub fn read(
    text: &[u8],
    pattern: Pattern,
    lowercase: bool,
    tokens: &mut Tokens,
) -> Result<(), Error> {
    let least = if pattern == Pattern::Word1 { 1 } else { 2 };
    let (mut at, mut start, mut length) = (0, 0, 0);
    while at < text.len() {
        let (code, width, word) = look(text, at, lowercase)?;
        let joins = pattern == Pattern::Mail
            && length > 0
            && matches!(text[at], b'-' | b'.' | b'@' | b'\'' | b'+' | b'&')
            && at + 1 < text.len()
            && look(text, at + 1, lowercase)?.2;
        if word || joins {
            if length == 0 {
                start = tokens.text.len() as u32;
            }
            length += 1;
        } else {
            end(tokens, start, length, least);
            length = 0;
        }
        let dotted = lowercase && utf8::first(&text[at..]).code == DOTTED_I;
        utf8::push(&mut tokens.text, code);
        if dotted {
            end(tokens, start, length, least);
            length = 0;
            utf8::push(&mut tokens.text, DOT_ABOVE);
        }
        at += width;
    }
    end(tokens, start, length, least);
    Ok(())
}

fn end(tokens: &mut Tokens, start: u32, length: usize, least: usize) {
    if length >= least {
        let end = tokens.text.len() as u32;
        tokens.spans.push(Span { start, end });
    }
}

fn look(text: &[u8], at: usize, lowercase: bool) -> Result<(u32, usize, bool), Error> {
    let table = characters::characters()?;
    let found = utf8::first(&text[at..]);
    let code = match found.code {
        code if !lowercase => code,
        CAPITAL_SIGMA => characters::lower_sigma(text, at)?,
        code => table.lower(code),
    };
    Ok((code, found.width, table.kind(code).is_word()))
}
