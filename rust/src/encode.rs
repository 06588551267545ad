//! Numbers the distinct values of a column in the order they first occur.
//!
//! Large inputs are cut among threads; each numbers its own part, and the parts' dictionaries are merged in order, so the answer
//! does not depend on the cut.

use crate::error::{Error, demand};
use crate::hash_table::{Key, Numbering};
use crate::threads;

/// The values of a column as codes, numbered in the order in which they first occur.
#[derive(Debug, Default, PartialEq)]
pub struct Encoded {
    /// The code of each row, -1 if it is missing.
    pub codes: Vec<i32>,
    /// The first row of each code.
    pub first: Vec<i64>,
    /// How many rows have each code.
    pub counts: Vec<i64>,
}

/// Codes are int32.
const MOST: usize = i32::MAX as usize;

/// The error of more distinct values than there are codes.
pub fn too_many() -> Error {
    Error::malformed("there are more than 2**31 - 1 distinct values")
}

/// The distinct keys of a part of the rows.
pub(crate) struct Dictionary<K> {
    /// The key of each code.
    pub keys: Vec<K>,
    /// Finds the code of a key.
    numbering: Numbering,
    /// The first row of each code.
    pub first: Vec<i64>,
    /// How many rows have each code.
    counts: Vec<i64>,
    /// Whether more keys came than there are codes.
    full: bool,
}

impl<K: Key> Dictionary<K> {
    /// A dictionary without keys.
    pub fn new() -> Self {
        Dictionary {
            keys: vec![],
            numbering: Numbering::default(),
            first: vec![],
            counts: vec![],
            full: false,
        }
    }

    /// The code of a key that occurs `count` times, first at `row`; -1 once there are too many keys.
    #[inline(always)]
    pub fn code(&mut self, key: K, row: usize, count: i64) -> i32 {
        if self.full {
            return -1;
        }
        let code = self.numbering.number(key.hash(), |code| self.keys[code] == key);
        if code == self.keys.len() {
            self.meet(key, row);
        }
        self.counts[code] += count;
        code as i32
    }

    /// Adds a new key, which first occurs at `row`.
    #[cold]
    fn meet(&mut self, key: K, row: usize) {
        self.full = self.keys.len() == MOST;
        self.keys.push(key);
        self.first.push(row as i64);
        self.counts.push(0);
    }

    /// The dictionary, or an error if there were too many keys.
    pub fn checked(self) -> Result<Self, Error> {
        if self.full { Err(too_many()) } else { Ok(self) }
    }
}

/// Numbers the keys of n rows in the order in which they first occur; a row for which `key` returns none gets -1.
pub fn encode<K: Key>(
    n: usize,
    threads: usize,
    key: impl Fn(usize) -> Option<K> + Sync,
) -> Result<Encoded, Error> {
    let size = n.div_ceil(threads::worth(threads, n)).max(1);
    let mut codes = vec![0; n];
    let parts = threads::try_pieces(threads, &mut codes, size, |i, codes| {
        let mut part = Dictionary::new();
        for (code, row) in codes.iter_mut().zip(i * size..) {
            *code = match key(row) {
                Some(key) => part.code(key, row, 1),
                None => -1,
            };
        }
        part.checked()
    })?;
    let (whole, renumber) = merge(parts)?;
    threads::pieces(threads, &mut codes, size, |i, codes| {
        if i > 0 {
            for code in codes.iter_mut().filter(|code| **code >= 0) {
                *code = renumber[i][*code as usize];
            }
        }
    });
    Ok(Encoded { codes, first: whole.first, counts: whole.counts })
}

/// Merges the dictionaries of all parts. Also returns the merged code of each code, `[part][code]`; nothing for the first part,
/// whose codes stay.
fn merge<K: Key>(parts: Vec<Dictionary<K>>) -> Result<(Dictionary<K>, Vec<Vec<i32>>), Error> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().unwrap_or_else(Dictionary::new);
    let mut renumber = vec![vec![]];
    for part in parts {
        let entries = part.keys.iter().zip(part.first.iter().zip(&part.counts));
        let codes = entries.map(|(&key, (&first, &count))| whole.code(key, first as usize, count));
        renumber.push(codes.collect());
    }
    Ok((whole.checked()?, renumber))
}

/// Numbers n records of `width` bytes that lie one after the other.
pub fn encode_records(
    records: &[u8],
    n: usize,
    width: usize,
    threads: usize,
) -> Result<Encoded, Error> {
    demand(
        n.checked_mul(width) == Some(records.len()),
        "records must be an (n, width) matrix of bytes",
    )?;
    match width {
        1 => encode_words::<1>(records, threads),
        2 => encode_words::<2>(records, threads),
        4 => encode_words::<4>(records, threads),
        8 => encode_words::<8>(records, threads),
        _ => encode(n, threads, |row| Some(&records[row * width..(row + 1) * width])),
    }
}

/// The record of each code, one after the other; an error if a code has none. `records` are those of all codes, of `width` bytes
/// each.
pub fn decode_records(
    records: &[u8],
    width: usize,
    codes: &[i32],
    threads: usize,
) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; codes.len().saturating_mul(width)];
    if width == 0 {
        return Ok(out);
    }
    threads::try_pieces(
        threads::worth(threads, codes.len()),
        &mut out,
        DECODED * width,
        |i, out| {
            let codes = codes[i * DECODED..].iter();
            let all_found = match width {
                1 => decode::<1>(records, codes, out),
                4 => decode::<4>(records, codes, out),
                8 => decode::<8>(records, codes, out),
                _ => out.chunks_exact_mut(width).zip(codes).try_for_each(|(out, &code)| {
                    let first_byte = usize::try_from(code).ok()?.checked_mul(width)?;
                    out.copy_from_slice(records.get(first_byte..first_byte + width)?);
                    Some(())
                }),
            };
            demand(all_found.is_some(), "codes must be those of records")
        },
    )?;
    Ok(out)
}

/// Codes that a thread decodes at a time. 2 million take 8 to 14 ms with 2,048, 32,768 and 524,288, in no order.
const DECODED: usize = 1 << 15;

/// Copies the records of codes, whose width the compiler knows, to `out`; none if a code has no record.
#[inline(always)]
fn decode<'a, const WIDTH: usize>(
    records: &[u8],
    codes: impl Iterator<Item = &'a i32>,
    out: &mut [u8],
) -> Option<()> {
    let (records, _) = records.as_chunks::<WIDTH>();
    let mut all_found = true;
    for (out, &code) in out.as_chunks_mut::<WIDTH>().0.iter_mut().zip(codes) {
        match records.get(code as usize) {
            Some(record) => *out = *record,
            None => all_found = false,
        }
    }
    all_found.then_some(())
}

/// Numbers records of `WIDTH` bytes, at most 8, which are compared as integers.
fn encode_words<const WIDTH: usize>(records: &[u8], threads: usize) -> Result<Encoded, Error> {
    let (words, _) = records.as_chunks::<WIDTH>();
    encode(words.len(), threads, |row| {
        let mut word = [0; 8];
        word[..WIDTH].copy_from_slice(&words[row]);
        Some(u64::from_le_bytes(word))
    })
}

/// Where Arrow's strings, or its large strings, begin and end in their data.
#[derive(Clone, Copy, Debug)]
pub enum Offsets<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl Offsets<'_> {
    /// One more than there are strings.
    fn len(self) -> usize {
        match self {
            Offsets::Narrow(offsets) => offsets.len(),
            Offsets::Wide(offsets) => offsets.len(),
        }
    }

    /// Whether offsets never fall.
    fn is_sorted(self) -> bool {
        match self {
            Offsets::Narrow(offsets) => offsets.is_sorted(),
            Offsets::Wide(offsets) => offsets.is_sorted(),
        }
    }

    /// The i-th offset; none if there is none, or it is negative.
    #[inline(always)]
    fn get(self, i: usize) -> Option<usize> {
        match self {
            Offsets::Narrow(offsets) => usize::try_from(*offsets.get(i)?).ok(),
            Offsets::Wide(offsets) => usize::try_from(*offsets.get(i)?).ok(),
        }
    }
}

/// Strings that lie one after the other, as Arrow has them.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a> {
    /// Where in `data` each string begins, and the last one ends.
    offsets: Offsets<'a>,
    /// The bytes of all strings.
    data: &'a [u8],
    /// A bitmap, and the bit of the first string: 0 for a string that is missing. None if no string is missing.
    valid: Option<(&'a [u8], usize)>,
}

impl<'a> Strings<'a> {
    /// Checks that the offsets ascend within the data and that the bitmap (bytes, first bit) is long enough.
    pub fn new(
        offsets: Offsets<'a>,
        data: &'a [u8],
        valid: Option<(&'a [u8], usize)>,
    ) -> Result<Self, Error> {
        let n_strings = offsets.len().checked_sub(1);
        let n_strings = n_strings
            .ok_or(Error::malformed("offsets must have one entry more than there are strings"))?;
        let inside = |i: usize| offsets.get(i).is_some_and(|offset| offset <= data.len());
        demand(
            inside(0) && inside(n_strings) && offsets.is_sorted(),
            "offsets must ascend from 0 or more to the length of the data or less",
        )?;
        if let Some((bitmap, first)) = valid {
            let bits = first.checked_add(n_strings);
            demand(
                bits.is_some_and(|bits| bits.div_ceil(8) <= bitmap.len()),
                "the validity bitmap is shorter than the strings",
            )?;
        }
        Ok(Strings { offsets, data, valid })
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The string of a row; none if it is missing.
    #[inline(always)]
    pub fn get(&self, row: usize) -> Option<&'a [u8]> {
        if let Some((bitmap, first)) = self.valid {
            let bit = first + row;
            if bitmap[bit / 8] >> (bit % 8) & 1 == 0 {
                return None;
            }
        }
        self.data.get(self.offsets.get(row)?..self.offsets.get(row + 1)?)
    }
}

/// Numbers strings in the order in which they first occur, -1 for missing ones; without the white space at their ends if `strip`.
pub fn encode_strings(strings: &Strings, strip: bool, threads: usize) -> Result<Encoded, Error> {
    let n_strings = strings.len();
    if strip {
        encode(n_strings, threads, |row| strings.get(row).map(strip_space))
    } else {
        encode(n_strings, threads, |row| strings.get(row))
    }
}

/// The bytes without the white space (Python's notion of it in bytes) at both ends.
pub(crate) fn strip_space(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t'..=b'\r', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'..=b'\r'] = bytes {
        bytes = rest;
    }
    bytes
}
