//! The places of tokens in the original text, in characters.

use super::characters::{self, DOTTED_I};
use super::tokens::{Span, Tokens};
use super::{letters, utf8};
use crate::error::Error;

/// Replaces each token's span in `tokens.text`, in bytes, by its span in `text`, the text as written, in characters.
///
/// Both texts have the same characters one by one, except that `tokens.text` may be lower-cased (`lowercase`), where
/// [`DOTTED_I`] is two characters, and that white space in a row is one token where `characters` are tokens. `text` is UTF-8.
pub fn replace(
    text: &[u8],
    lowercase: bool,
    characters: bool,
    tokens: &mut Tokens,
) -> Result<(), Error> {
    // The span of the character of `text`, in characters, that each byte of `tokens.text` comes from.
    let places = of_bytes(text, &tokens.text, lowercase, characters)?;
    for span in &mut tokens.spans {
        *span = Span {
            start: places[span.start as usize].start,
            end: places[span.end as usize - 1].end,
        };
    }
    Ok(())
}

/// Returns, for each byte of `token_text`, which was made of `text`, the span of the character of `text` that it comes from,
/// in characters. The text was lower-cased if `lowercase`; tokens are single characters if `characters`. Both texts are
/// UTF-8.
fn of_bytes(
    text: &[u8],
    token_text: &[u8],
    lowercase: bool,
    characters: bool,
) -> Result<Vec<Span>, Error> {
    let mut places: Vec<Span> = Vec::with_capacity(token_text.len());
    // The next character of `text`: the index of its first byte, its number, and whether white space comes before it.
    let (mut at, mut number, mut after_space) = (0, 0, false);
    while at < text.len() {
        let character = utf8::first(&text[at..]);
        let is_space = characters && is_space(character.code, lowercase)?;
        let place = Span { start: number, end: number + 1 }; // of this character, in characters
        match places.last_mut() {
            Some(last_place) if is_space && after_space => last_place.end = place.end,
            _ => {
                // How many characters of `token_text` come from this one.
                let n_characters = 1 + u8::from(lowercase && character.code == DOTTED_I);
                for _ in 0..n_characters {
                    let width = utf8::first(&token_text[places.len()..]).width; // in bytes
                    places.resize(places.len() + width, place);
                }
            }
        }
        (at, number, after_space) = (at + character.width, number + 1, is_space);
    }
    Ok(places)
}

/// Whether the character of this code point, or its lower case if `lowercase`, is white space. An error if the tables of
/// characters cannot be fetched.
fn is_space(code: u32, lowercase: bool) -> Result<bool, Error> {
    match u8::try_from(code) {
        Ok(byte) if byte.is_ascii() => Ok(letters::is_space(byte)),
        _ => Ok(characters::characters()?.get(code).is_space(lowercase)),
    }
}
