//! A text as its characters, for n-grams of them.

use super::characters::{self, CAPITAL_SIGMA, DOT_ABOVE, DOTTED_I};
use super::tokens::{Span, Tokens};
use super::utf8;
use crate::error::Error;

/// Every character a token, after lower-casing, two or more white spaces in a row made one space.
pub fn read(text: &[u8], lowercase: bool, tokens: &mut Tokens) -> Result<(), Error> {
    let mut at = 0;
    let mut spaces = 0;
    while at < text.len() {
        let found = utf8::first(&text[at..]);
        let (code, kind) = look(text, at, found.code, lowercase)?;
        at += found.width;
        if kind.is_space() {
            spaces += 1;
            if spaces > 1 {
                replace_last(tokens);
                continue;
            }
        } else {
            spaces = 0;
        }
        push(tokens, code);
        if lowercase && found.code == DOTTED_I {
            push(tokens, DOT_ABOVE);
        }
    }
    Ok(())
}

/// The character, lower-cased if so wished, that starts at byte `at`.
fn look(
    text: &[u8],
    at: usize,
    code: u32,
    lowercase: bool,
) -> Result<(u32, characters::Kind), Error> {
    let table = characters::characters()?;
    let code = match code {
        _ if !lowercase => code,
        CAPITAL_SIGMA => characters::lower_sigma(text, at)?,
        _ => table.lower(code),
    };
    Ok((code, table.kind(code)))
}

fn push(tokens: &mut Tokens, code: u32) {
    let start = tokens.text.len() as u32;
    utf8::push(&mut tokens.text, code);
    tokens.spans.push(Span {
        start,
        end: tokens.text.len() as u32,
    });
}

/// Makes the last character, white space, a plain space.
fn replace_last(tokens: &mut Tokens) {
    if let Some(last) = tokens.spans.pop() {
        tokens.text.truncate(last.start as usize);
        push(tokens, u32::from(b' '));
    }
}
