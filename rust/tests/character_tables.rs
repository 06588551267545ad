//! Tables of characters from Rust's standard library, for tests of the kernels without Python. Rust may have another version of Unicode.

use super::{
    CAPITAL_SIGMA, CODES, DOTTED_I, Error, SPACE, Source, WORD, set_bearings, set_characters,
};

pub const SOURCE: Source = Source { characters, bearings };

fn entry(code: u32) -> u32 {
    let Some(char) = char::from_u32(code) else {
        return code;
    };
    let lower = match code {
        DOTTED_I => u32::from(b'i'),
        _ => char.to_lowercase().next().unwrap_or(char) as u32,
    };
    let word = char.is_alphanumeric() && !is_mark(code) || char == '_';
    // Python counts the four separators of ASCII as white space too.
    let space = char.is_whitespace() || (0x1C..=0x1F).contains(&code);
    lower | if word { WORD } else { 0 } | if space { SPACE } else { 0 }
}

/// The combining marks that Rust calls alphabetic and Python does not; enough of them for tests.
fn is_mark(code: u32) -> bool {
    (0x0300..=0x036F).contains(&code)
}

fn characters() -> Result<(), Error> {
    set_characters(&(0..CODES as u32).map(entry).collect::<Vec<_>>())
}

/// Whether a capital sigma after this, at the end of a text, becomes ς.
fn is_final(before: &str) -> bool {
    let sigma = char::from_u32(CAPITAL_SIGMA).unwrap_or_default();
    format!("{before}{sigma}").to_lowercase().ends_with('ς')
}

fn bearing(code: u32) -> u8 {
    let Some(char) = char::from_u32(code) else {
        return 0;
    };
    match (is_final(&char.to_string()), is_final(&format!("A{char}"))) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => 0,
    }
}

fn bearings() -> Result<(), Error> {
    set_bearings(&(0..CODES as u32).map(bearing).collect::<Vec<_>>())
}
