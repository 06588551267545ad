//! Characters from bytes and back: UTF-8, lone surrogates included, and bytes that are neither.

/// A code point, and how many bytes it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Character {
    pub code: u32,
    pub width: usize,
}

/// The character that Python's `surrogateescape` makes of a byte that is not UTF-8.
#[inline(always)]
fn stray(byte: u8) -> Character {
    Character { code: 0xDC00 + u32::from(byte), width: 1 }
}

/// The first character of bytes that are not empty; of none, U+0000 with a width of 0.
///
/// A byte that starts no well-formed sequence is a character by itself, one of U+DC80 to U+DCFF. A character is its code
/// point and its width, the number of its bytes.
#[inline(always)]
pub fn first(bytes: &[u8]) -> Character {
    // A sequence has the bytes a, b, c and d, or the first of them. `tail` is the six bits of a byte after the first one.
    let tail = |byte: u8| u32::from(byte) & 0x3F;
    match *bytes {
        [a @ ..0x80, ..] => Character { code: u32::from(a), width: 1 },
        [a @ 0xC2..=0xDF, b @ 0x80..=0xBF, ..] => {
            Character { code: (u32::from(a) & 0x1F) << 6 | tail(b), width: 2 }
        }
        [a @ 0xE0..=0xEF, b @ 0x80..=0xBF, c @ 0x80..=0xBF, ..] if a > 0xE0 || b >= 0xA0 => {
            Character { code: (u32::from(a) & 0x0F) << 12 | tail(b) << 6 | tail(c), width: 3 }
        }
        [a @ 0xF0..=0xF4, b @ 0x80..=0xBF, c @ 0x80..=0xBF, d @ 0x80..=0xBF, ..]
            if (a > 0xF0 || b >= 0x90) && (a < 0xF4 || b < 0x90) =>
        {
            Character {
                code: (u32::from(a) & 0x07) << 18 | tail(b) << 12 | tail(c) << 6 | tail(d),
                width: 4,
            }
        }
        [a, ..] => stray(a),
        [] => Character { code: 0, width: 0 },
    }
}

/// The last character of bytes that are not empty, as reading from the front finds it. A character is its code point and its
/// width, the number of its bytes; a byte that is not UTF-8 is one by itself.
pub fn last(bytes: &[u8]) -> Character {
    let end = bytes.len();
    // How many bytes there are from the last one on that may begin a character.
    let last_width = (1..=end.min(4)).find(|&width| bytes[end - width] & 0xC0 != 0x80);
    match last_width.map(|width| (width, first(&bytes[end - width..]))) {
        Some((width, character)) if character.width == width => character,
        _ => bytes.last().map_or(first(bytes), |&byte| stray(byte)),
    }
}

/// The bytes of a code point, and how many they are. Surrogates get the three bytes that their number has in the scheme.
#[inline(always)]
pub fn encode(code: u32) -> ([u8; 4], usize) {
    // A byte after the first one, with the six bits from `shift` on.
    let tail = |shift: u32| 0x80 | (code >> shift) as u8 & 0x3F;
    match code {
        0..0x80 => ([code as u8, 0, 0, 0], 1),
        0x80..0x800 => ([0xC0 | (code >> 6) as u8, tail(0), 0, 0], 2),
        0x800..0x1_0000 => ([0xE0 | (code >> 12) as u8, tail(6), tail(0), 0], 3),
        _ => ([0xF0 | (code >> 18) as u8, tail(12), tail(6), tail(0)], 4),
    }
}

/// Appends a code point to a text, as [`encode`] writes it.
pub fn push(text: &mut Vec<u8>, code: u32) {
    let (bytes, width) = encode(code);
    text.extend_from_slice(&bytes[..width]);
}
