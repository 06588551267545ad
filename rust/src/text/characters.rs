//! What a character is: a word character, white space, cased; and its lower case.
//!
//! The tables are the running interpreter's, which a [`Source`] hands over when they are first needed.

use super::utf8::{self, Character};
use crate::error::{Error, demand};
use std::collections::HashMap;
use std::sync::OnceLock;

/// How many code points there are.
pub const CODES: usize = 0x11_0000;

/// The capital I with a dot, the one character whose lower case has two: `i` and [`DOT_ABOVE`].
pub const DOTTED_I: u32 = 0x0130;
pub const DOT_ABOVE: u32 = 0x0307;
/// The capital sigma, whose lower case depends on where it stands; see [`Bearing`].
pub const CAPITAL_SIGMA: u32 = 0x03A3;

// An entry for a character: the distance to its lower case in the low 21 bits (modulo 2^21), and flags: whether it is a word
// character, and whether it is white space.
const CODE: u32 = 0x1F_FFFF;
const WORD: u32 = 1 << 21;
const SPACE: u32 = 1 << 22;
/// Whether the lower case is a word character, and whether it is white space.
const LOWER_WORD: u32 = WORD << 2;
const LOWER_SPACE: u32 = SPACE << 2;
/// The lower case is not one character by itself.
const SPECIAL: u32 = 1 << 25;

/// The lower case of a character in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowered {
    /// One character, this code point.
    One(u32),
    /// That of [`DOTTED_I`].
    DottedI,
}

/// What a character is, and how far its lower case is from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(u32);

impl Kind {
    /// Whether the character, or its lower case if `lower`, is a word character: `\w`.
    #[inline(always)]
    pub fn is_word(self, lower: bool) -> bool {
        self.0 & if lower { LOWER_WORD } else { WORD } != 0
    }

    /// Whether the character, or its lower case if `lower`, is white space: `\s`.
    #[inline(always)]
    pub fn is_space(self, lower: bool) -> bool {
        self.0 & if lower { LOWER_SPACE } else { SPACE } != 0
    }

    /// Whether it is its own lower case.
    #[inline(always)]
    pub fn is_lower(self) -> bool {
        self.0 & (CODE | SPECIAL) == 0
    }

    /// Its lower case, given the character; None if that is not one character, whatever stands around it.
    #[inline(always)]
    pub fn lower(self, code: u32) -> Option<u32> {
        (self.0 & SPECIAL == 0).then(|| code.wrapping_add(self.0) & CODE)
    }
}

/// An entry per code point, in pages of 256; equal pages are stored once.
#[derive(Debug)]
pub struct Pages<T> {
    /// For each 256 code points, which of `pages` they have.
    index: Vec<u16>,
    pages: Vec<[T; 256]>,
}

impl<T: Copy + Eq + std::hash::Hash> Pages<T> {
    /// A table of the entries that `entry_of` returns for code points; it is called with each of them. Every 256 code points
    /// are a page; equal pages are stored once.
    fn new(entry_of: impl Fn(usize) -> T) -> Self {
        // Where each distinct page is in `pages`.
        let mut page_numbers: HashMap<[T; 256], u16> = HashMap::new();
        let mut pages = vec![];
        // For each 256 code points, the index of their page in `pages`.
        let index = (0..CODES / 256).map(|number| {
            let page = std::array::from_fn(|i| entry_of(number * 256 + i));
            *page_numbers.entry(page).or_insert_with(|| {
                pages.push(page);
                pages.len() as u16 - 1
            })
        });
        Pages { index: index.collect(), pages }
    }

    /// The entry of a code point; that of U+0000 for a number that is no code point. `self.index` has, for each 256 code
    /// points, the index of their page in `self.pages`, and a page has an entry for each of them.
    #[inline(always)]
    fn get(&self, code: u32) -> T {
        let page = self.index.get(code as usize / 256).copied().unwrap_or(0);
        self.pages[page as usize][code as usize % 256]
    }
}

/// A character of two or three bytes, whose lower case, if that is wanted, has as many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Its bytes, or those of its lower case, and others after them, which have no meaning.
    pub bytes: [u8; 4],
    /// How many bytes it has.
    pub width: usize,
    pub is_word: bool,
    pub is_space: bool,
}

/// Code points below this have at most two bytes.
const TWOS: usize = 0x800;

// An entry for a character of two bytes has its bytes in the low 16 bits, and two flags. 0 stands for a character that is not
// short.
const TWO_WORD: u32 = 1 << 16;
const TWO_SPACE: u32 = 1 << 17;

/// Kinds and lower cases of all characters.
#[derive(Debug)]
pub struct Characters {
    /// The table of [`set_characters`], with the distance to the lower case instead of the lower case.
    pages: Pages<u32>,
    /// An entry for each character of two bytes, by code point: as they are, and lower-cased.
    twos: [[u32; TWOS]; 2],
}

impl Characters {
    /// The characters of a table of [`set_characters`]; an error if the table has another length or a lower case that is no
    /// code point. The table has for each code point its lower case in the low 21 bits, and two flags above: [`WORD`] for a
    /// word character, [`SPACE`] for white space.
    fn new(table: &[u32]) -> Result<Self, Error> {
        demand(table.len() == CODES, "a character table has 0x110000 entries")?;
        demand(
            table.iter().all(|&entry| entry & CODE < CODES as u32),
            "a character table maps characters to characters",
        )?;
        // An entry for each code point: the distance to its lower case, its flags, and those of its lower case.
        let pages = Pages::new(|code| {
            let entry = table[code];
            let lower = entry & CODE; // the code point of the lower case
            let distance = lower.wrapping_sub(code as u32) & CODE;
            let special = match code as u32 {
                CAPITAL_SIGMA | DOTTED_I => SPECIAL,
                _ => 0,
            };
            let flags = WORD | SPACE;
            distance | entry & flags | (table[lower as usize] & flags) << 2 | special
        });
        // The entry in `twos` of a code point, as it is or lower-cased.
        let two = |code: u32, lower: bool| {
            // What the character is; and the code point of the character as it is, or of its lower case (None if
            // that is not one).
            let kind = Kind(pages.get(code));
            let written = if lower { kind.lower(code) } else { Some(code) };
            // Its bytes, if they are two: a and b. Below 0x80 two bytes are one too many.
            match written.filter(|_| code >= 0x80).map(utf8::encode) {
                Some(([a, b, ..], 2)) => {
                    u32::from(u16::from_le_bytes([a, b]))
                        | if kind.is_word(lower) { TWO_WORD } else { 0 }
                        | if kind.is_space(lower) { TWO_SPACE } else { 0 }
                }
                _ => 0,
            }
        };
        let twos = [false, true].map(|lower| std::array::from_fn(|code| two(code as u32, lower)));
        Ok(Characters { pages, twos })
    }

    /// The first character of the next four bytes of a text, lower-cased if `lower`; None if it does not have two or three bytes,
    /// or its lower case does not have as many.
    #[inline(always)]
    pub fn short(&self, four: [u8; 4], lower: bool) -> Option<Short> {
        self.two(four, lower).or_else(|| self.three(four, lower))
    }

    /// The first character of the next four bytes of a text, lower-cased if `lower`; None unless it and its lower case have
    /// two bytes. `self.twos[0]` has an entry for each code point of at most two bytes as it is, `self.twos[1]` lower-cased:
    /// its bytes in the low 16 bits, and two flags; 0 if it is not two bytes. The flags are whether it is a word character,
    /// and whether it is white space.
    #[inline(always)]
    pub fn two(&self, four: [u8; 4], lower: bool) -> Option<Short> {
        let bytes = u32::from_le_bytes(four); // the four bytes as a number, the first one lowest
        // The code point, if these are the bits of a character of two bytes in UTF-8.
        let code = (bytes & 0x1F) << 6 | bytes >> 8 & 0x3F;
        if bytes & 0xC0E0 != 0x80C0 {
            return None;
        }
        // Its bytes and two flags; 0 if the lower case has another width.
        let entry = self.twos[usize::from(lower)][code as usize];
        let (is_word, is_space) = (entry & TWO_WORD != 0, entry & TWO_SPACE != 0);
        (entry != 0).then_some(Short { bytes: entry.to_le_bytes(), width: 2, is_word, is_space })
    }

    /// The first character of the next four bytes of a text; None unless it has three bytes and, if `lower`, is its own lower
    /// case.
    #[inline(always)]
    pub fn three(&self, four: [u8; 4], lower: bool) -> Option<Short> {
        let bytes = u32::from_le_bytes(four); // the four bytes as a number, the first one lowest
        // The code point, if these are the bits of a character of three bytes in UTF-8.
        let code = (bytes & 0x0F) << 12 | (bytes >> 8 & 0x3F) << 6 | bytes >> 16 & 0x3F;
        if bytes & 0xC0_C0F0 != 0x80_80E0 {
            return None;
        }
        let kind = self.get(code); // what the character is
        let (is_word, is_space) = (kind.is_word(lower), kind.is_space(lower));
        let is_short = code >= 0x800 && (!lower || kind.is_lower());
        is_short.then_some(Short { bytes: four, width: 3, is_word, is_space })
    }

    /// What the character of this code point is.
    #[inline(always)]
    pub fn get(&self, code: u32) -> Kind {
        Kind(self.pages.get(code))
    }

    /// The lower case of a character that begins at byte `at` of a text; the character itself unless `lowercase`. `text` is
    /// UTF-8; `character` has the code point and the number of its bytes.
    pub fn lower(
        &self,
        text: &[u8],
        at: usize,
        character: Character,
        lowercase: bool,
    ) -> Result<Lowered, Error> {
        let code = character.code;
        match (self.get(code).lower(code), code) {
            _ if !lowercase => Ok(Lowered::One(code)),
            (Some(lower), _) => Ok(Lowered::One(lower)),
            (None, CAPITAL_SIGMA) => Ok(Lowered::One(lower_sigma(text, at)?)),
            (None, _) => Ok(Lowered::DottedI),
        }
    }
}

/// What a character means for the lower case of a capital sigma next to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bearing {
    /// Neither cased nor ignorable.
    None,
    /// A letter with a case.
    Cased,
    /// Ignored, like accents and apostrophes.
    Ignorable,
}

/// [`Bearing`]s of all characters.
pub type Bearings = Pages<Bearing>;

/// Where the tables come from. Each function makes one and hands it to [`set_characters`] or [`set_bearings`].
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub characters: fn() -> Result<(), Error>,
    pub bearings: fn() -> Result<(), Error>,
}

static SOURCE: OnceLock<Source> = OnceLock::new();
static CHARACTERS: OnceLock<Characters> = OnceLock::new();
static BEARINGS: OnceLock<Bearings> = OnceLock::new();

/// Sets where the tables come from; later calls have no effect.
pub fn register(source: Source) {
    let _ = SOURCE.set(source);
}

/// Where the tables come from; an error if nobody has registered a source.
fn source() -> Result<Source, Error> {
    #[cfg(test)]
    register(tables::SOURCE);
    SOURCE.get().copied().ok_or_else(|| Error::malformed("nobody provides the character tables"))
}

#[cfg(test)]
#[path = "../../tests/character_tables.rs"]
mod tables;

/// Takes a table: per code point the lower case in the low 21 bits, bit 21 if it is a word character, bit 22 if white space.
/// Later calls have no effect.
pub fn set_characters(table: &[u32]) -> Result<(), Error> {
    let characters = Characters::new(table)?;
    CHARACTERS.get_or_init(|| characters);
    Ok(())
}

/// Takes a table: per code point 1 if it is cased and not ignorable, 2 if it is ignorable to case, else 0. The table says
/// what each character means for the lower case of a capital sigma beside it. Later calls have no effect.
pub fn set_bearings(table: &[u8]) -> Result<(), Error> {
    demand(table.len() == CODES, "a character table has 0x110000 entries")?;
    BEARINGS.get_or_init(|| {
        Pages::new(|code| match table[code] {
            1 => Bearing::Cased,
            2 => Bearing::Ignorable,
            _ => Bearing::None,
        })
    });
    Ok(())
}

/// The table if it is there already.
pub fn have_characters() -> Option<&'static Characters> {
    CHARACTERS.get()
}

/// The table if it is there already.
pub fn have_bearings() -> Option<&'static Bearings> {
    BEARINGS.get()
}

/// The characters, fetched at the first call. Fetching may wait for the GIL. The table says of every character whether it is
/// a letter of words or white space, and what its lower case is.
pub fn characters() -> Result<&'static Characters, Error> {
    match CHARACTERS.get() {
        Some(characters) => Ok(characters),
        None => fetch(source()?.characters, have_characters),
    }
}

/// The bearings, fetched at the first call. Fetching may wait for the GIL. They say of every character whether it has a case,
/// or is passed over when a capital sigma is lower-cased.
pub fn bearings() -> Result<&'static Bearings, Error> {
    match BEARINGS.get() {
        Some(bearings) => Ok(bearings),
        None => fetch(source()?.bearings, have_bearings),
    }
}

/// Calls `source`, which sets one of the static tables, and returns the table, which `have` reads; an error if it was not set.
#[cold]
fn fetch<T>(
    source: fn() -> Result<(), Error>,
    have: fn() -> Option<&'static T>,
) -> Result<&'static T, Error> {
    source()?;
    have().ok_or_else(|| Error::malformed("the source of characters gave none"))
}

/// The lower case of the capital sigma that starts at byte `at`, two bytes wide: ς after a cased letter unless one follows,
/// looking through what is ignorable; else σ. `text` is UTF-8. Returns a code point; an error if the table of bearings cannot
/// be fetched.
#[cold]
fn lower_sigma(text: &[u8], at: usize) -> Result<u32, Error> {
    let bearings = bearings()?;
    let (before, after) = (&text[..at], &text[at + 2..]); // the text on either side of the sigma
    let follows_cased =
        is_nearest_cased(bearings, before, utf8::last, |text, width| &text[..text.len() - width]);
    let precedes_cased =
        || is_nearest_cased(bearings, after, utf8::first, |text, width| &text[width..]);
    Ok(if follows_cased && !precedes_cased() { 0x03C2 } else { 0x03C3 }) // ς or σ
}

/// Whether the nearest character of a text that is not ignorable is cased; false if there is none. `nearest` reads the
/// nearest character of a text, its first or its last, and `without(text, width)` cuts it off. `bearings` say of each
/// character whether it is cased, ignorable, or neither; `width` is in bytes.
fn is_nearest_cased(
    bearings: &Bearings,
    mut text: &[u8],
    nearest: fn(&[u8]) -> Character,
    without: fn(&[u8], usize) -> &[u8],
) -> bool {
    while !text.is_empty() {
        let character = nearest(text);
        match bearings.get(character.code) {
            Bearing::Ignorable => text = without(text, character.width),
            bearing => return bearing == Bearing::Cased,
        }
    }
    false
}
