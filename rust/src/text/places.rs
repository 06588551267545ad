//! The places of tokens in the original text, in characters.

use super::characters::{self, DOTTED_I};
use super::tokens::{Span, Tokens};
use super::{letters, utf8};
use crate::error::Error;

/// Replaces each token's place in the text that was read, in bytes, by its place in the text as written, in characters.
///
/// Both texts have the same characters one by one, but that a lower-cased [`DOTTED_I`] is two, and that white space in a
/// row is one token where `characters` are counted.
pub fn replace(
    text: &[u8],
    lowercase: bool,
    characters: bool,
    tokens: &mut Tokens,
) -> Result<(), Error> {
    let places = of_bytes(text, &tokens.text, lowercase, characters)?;
    for span in &mut tokens.spans {
        *span = Span {
            start: places[span.start as usize].start,
            end: places[span.end as usize - 1].end,
        };
    }
    Ok(())
}

/// The place in characters that each byte of the text that was read comes from.
fn of_bytes(
    text: &[u8],
    read: &[u8],
    lowercase: bool,
    characters: bool,
) -> Result<Vec<Span>, Error> {
    let mut places: Vec<Span> = Vec::with_capacity(read.len());
    let (mut at, mut number, mut after_space) = (0, 0, false);
    while at < text.len() {
        let found = utf8::first(&text[at..]);
        let space = characters && is_space(found.code, lowercase)?;
        let place = Span { start: number, end: number + 1 };
        match places.last_mut() {
            Some(last) if space && after_space => last.end = place.end,
            _ => {
                let times = 1 + u8::from(lowercase && found.code == DOTTED_I);
                for _ in 0..times {
                    let width = utf8::first(&read[places.len()..]).width;
                    places.resize(places.len() + width, place);
                }
            }
        }
        (at, number, after_space) = (at + found.width, number + 1, space);
    }
    Ok(places)
}

/// Whether a character, or its lower case if `lowercase`, is white space.
fn is_space(code: u32, lowercase: bool) -> Result<bool, Error> {
    match u8::try_from(code) {
        Ok(byte) if byte.is_ascii() => Ok(letters::is_space(byte)),
        _ => Ok(characters::characters()?.get(code).is_space(lowercase)),
    }
}
