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
    /// Whether there were more keys than codes.
    full: bool,
}

impl<K: Key> Dictionary<K> {
    /// A dictionary without keys. A key has a code, in the order in which keys are added: `keys`, `first` (the first row) and
    /// `counts` (how many rows) are by code, and `full` says whether there were more keys than codes.
    pub fn new() -> Self {
        Dictionary {
            keys: vec![],
            numbering: Numbering::default(),
            first: vec![],
            counts: vec![],
            full: false,
        }
    }

    /// The code of a key that occurs `count` times, first at `row`; -1 once there are too many keys. `self.keys` and
    /// `self.counts` (how many rows have each key) are by code; `self.numbering` finds the code of a key by its hash. A key
    /// is what is numbered, such as a string; `row` is its first row.
    #[inline(always)]
    pub fn code(&mut self, key: K, row: usize, count: i64) -> i32 {
        if self.full {
            return -1;
        }
        let code = self.numbering.number(key.hash(), |code| self.keys[code] == key);
        // A new key has the next code.
        if code == self.keys.len() {
            self.add(key, row);
        }
        self.counts[code] += count;
        code as i32
    }

    /// Adds a new key, which first occurs at `row`. `self.keys`, `self.first` (the row where each key first occurs) and
    /// `self.counts` (how many rows have it) are by code; `self.full` says whether there are more keys than codes. A key is
    /// what is numbered, such as a string.
    #[cold]
    fn add(&mut self, key: K, row: usize) {
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

/// Numbers the keys of rows in the order in which they first occur; a row for which `key` returns None gets -1. Returns the
/// code of each row, the first row of each code, and how many rows have it. A key is what is numbered, such as a string;
/// `key` is called with the number of a row. At most `threads` threads are used.
pub fn encode<K: Key>(
    n_rows: usize,
    threads: usize,
    key: impl Fn(usize) -> Option<K> + Sync,
) -> Result<Encoded, Error> {
    // A thread takes so many rows, and has a dictionary of its own.
    let piece_rows = n_rows.div_ceil(threads::worth(threads, n_rows)).max(1);
    let mut codes = vec![0; n_rows];
    let dictionaries = threads::try_pieces(threads, &mut codes, piece_rows, |i, codes| {
        let mut dictionary = Dictionary::new();
        for (code, row) in codes.iter_mut().zip(i * piece_rows..) {
            *code = match key(row) {
                Some(key) => dictionary.code(key, row, 1),
                None => -1,
            };
        }
        dictionary.checked()
    })?;
    // The dictionary of all rows, and its code for each code of a piece, [piece][code].
    let (merged, new_codes) = merge(dictionaries)?;
    threads::pieces(threads, &mut codes, piece_rows, |i, codes| {
        // The codes of the first piece stay.
        if i > 0 {
            for code in codes.iter_mut().filter(|code| **code >= 0) {
                *code = new_codes[i][*code as usize];
            }
        }
    });
    Ok(Encoded { codes, first: merged.first, counts: merged.counts })
}

/// Merges dictionaries of pieces of the rows, in order. Also returns the merged code of each code, `[dictionary][code]`; none
/// for the first dictionary, whose codes stay. `dictionary.keys` are by code, as are `first`, the row where each key first
/// occurs, and `counts`, how many rows have it. A key is what is numbered, such as a string.
fn merge<K: Key>(
    dictionaries: Vec<Dictionary<K>>,
) -> Result<(Dictionary<K>, Vec<Vec<i32>>), Error> {
    let mut dictionaries = dictionaries.into_iter();
    let mut merged = dictionaries.next().unwrap_or_else(Dictionary::new);
    let mut new_codes = vec![vec![]];
    for dictionary in dictionaries {
        let entries = dictionary.keys.iter().zip(dictionary.first.iter().zip(&dictionary.counts));
        let codes = entries.map(|(&key, (&first, &count))| merged.code(key, first as usize, count));
        new_codes.push(codes.collect());
    }
    Ok((merged.checked()?, new_codes))
}

/// Numbers `n_records` records of `width` bytes, which lie one after the other, in the order in which they first occur.
/// `records` are their bytes. Returns the code of each record, and the first record and the number of records of each code.
/// At most `threads` threads are used.
pub fn encode_records(
    records: &[u8],
    n_records: usize,
    width: usize,
    threads: usize,
) -> Result<Encoded, Error> {
    demand(
        n_records.checked_mul(width) == Some(records.len()),
        "records must be an (n, width) matrix of bytes",
    )?;
    match width {
        1 => encode_words::<1>(records, threads),
        2 => encode_words::<2>(records, threads),
        4 => encode_words::<4>(records, threads),
        8 => encode_words::<8>(records, threads),
        _ => encode(n_records, threads, |row| Some(&records[row * width..(row + 1) * width])),
    }
}

/// Returns the record of each of these codes, one after the other; an error if a code has none. `records` has `width` bytes
/// for each code that there is. `codes` are indices of records. At most `threads` threads are used.
pub fn decode_records(
    records: &[u8],
    width: usize,
    codes: &[i32],
    threads: usize,
) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; codes.len().saturating_mul(width)]; // the bytes of all these records
    if width == 0 {
        return Ok(out);
    }
    threads::try_pieces(
        threads::worth(threads, codes.len()),
        &mut out,
        DECODED * width,
        |i, out| {
            let codes = codes[i * DECODED..].iter(); // from piece i on
            // None if a code has no record.
            let copied = match width {
                1 => decode::<1>(records, codes, out),
                4 => decode::<4>(records, codes, out),
                8 => decode::<8>(records, codes, out),
                _ => out.chunks_exact_mut(width).zip(codes).try_for_each(|(out, &code)| {
                    let first_byte = usize::try_from(code).ok()?.checked_mul(width)?;
                    out.copy_from_slice(records.get(first_byte..first_byte + width)?);
                    Some(())
                }),
            };
            demand(copied.is_some(), "codes must be those of records")
        },
    )?;
    Ok(out)
}

/// Codes that a thread decodes at a time. 2 million take 8 to 14 ms with 2,048, 32,768 and 524,288, in no order.
const DECODED: usize = 1 << 15;

/// Copies the record of each code, of `WIDTH` bytes, to `out`; None if a code has no record. `records` are those of all
/// codes. `codes` are indices of records.
#[inline(always)]
fn decode<'a, const WIDTH: usize>(
    records: &[u8],
    codes: impl Iterator<Item = &'a i32>,
    out: &mut [u8],
) -> Option<()> {
    let (records, _) = records.as_chunks::<WIDTH>();
    let mut all_exist = true;
    for (out, &code) in out.as_chunks_mut::<WIDTH>().0.iter_mut().zip(codes) {
        match records.get(code as usize) {
            Some(record) => *out = *record,
            None => all_exist = false,
        }
    }
    all_exist.then_some(())
}

/// Numbers records of `WIDTH` bytes, at most 8, which are compared as integers. `records` are their bytes, one record after
/// the other. Returns the code of each record, and the first record and the number of records of each code. At most `threads`
/// threads are used.
fn encode_words<const WIDTH: usize>(records: &[u8], threads: usize) -> Result<Encoded, Error> {
    let (records, _) = records.as_chunks::<WIDTH>();
    encode(records.len(), threads, |row| {
        let mut bytes = [0; 8]; // of the record, and zeros after them
        bytes[..WIDTH].copy_from_slice(&records[row]);
        Some(u64::from_le_bytes(bytes))
    })
}

/// Where Arrow's strings, or its large strings, begin and end in their data.
#[derive(Clone, Copy, Debug)]
pub enum Offsets<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl Offsets<'_> {
    /// How many offsets there are: where each of Arrow's strings begins in their data, and the last one ends. They are int32
    /// (narrow) or int64 (wide).
    fn len(self) -> usize {
        match self {
            Offsets::Narrow(offsets) => offsets.len(),
            Offsets::Wide(offsets) => offsets.len(),
        }
    }

    /// Whether the offsets, which say where each of Arrow's strings begins in their data, never fall. They are int32 (narrow)
    /// or int64 (wide).
    fn is_sorted(self) -> bool {
        match self {
            Offsets::Narrow(offsets) => offsets.is_sorted(),
            Offsets::Wide(offsets) => offsets.is_sorted(),
        }
    }

    /// The i-th offset: where string i begins in the data of Arrow's strings, in bytes. None if there is none, or it is
    /// negative. Offsets are int32 (narrow) or int64 (wide).
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
    /// Strings with these fields; an error unless the offsets ascend within the data and the bitmap, (bytes, first bit), is
    /// long enough. String i is `data[offsets[i]..offsets[i + 1]]`.
    pub fn new(
        offsets: Offsets<'a>,
        data: &'a [u8],
        valid: Option<(&'a [u8], usize)>,
    ) -> Result<Self, Error> {
        let n_strings = offsets.len().checked_sub(1);
        let n_strings = n_strings
            .ok_or(Error::malformed("offsets must have one entry more than there are strings"))?;
        let is_inside = |i: usize| offsets.get(i).is_some_and(|offset| offset <= data.len());
        demand(
            is_inside(0) && is_inside(n_strings) && offsets.is_sorted(),
            "offsets must ascend from 0 or more to the length of the data or less",
        )?;
        if let Some((bitmap, first)) = valid {
            let n_bits = first.checked_add(n_strings);
            demand(
                n_bits.is_some_and(|n_bits| n_bits.div_ceil(8) <= bitmap.len()),
                "the validity bitmap is shorter than the strings",
            )?;
        }
        Ok(Strings { offsets, data, valid })
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The string of a row; None if it is missing. `self.data` are the bytes of all strings, `self.offsets` says where each
    /// begins in them and the last one ends, and `self.valid` has a bit for each row, 0 if the string is missing; None if no
    /// string is.
    #[inline(always)]
    pub fn get(&self, row: usize) -> Option<&'a [u8]> {
        // A bitmap, and the bit of the first string.
        if let Some((bitmap, first)) = self.valid {
            let bit = first + row; // of the string of this row
            if bitmap[bit / 8] >> (bit % 8) & 1 == 0 {
                return None;
            }
        }
        self.data.get(self.offsets.get(row)?..self.offsets.get(row + 1)?)
    }
}

/// Numbers strings in the order in which they first occur, -1 for missing ones; without the white space at their ends if
/// `strip`. Returns the code of each string, and the first row and the number of rows of each code. At most `threads` threads
/// are used.
pub fn encode_strings(strings: &Strings, strip: bool, threads: usize) -> Result<Encoded, Error> {
    let n_strings = strings.len();
    if strip {
        encode(n_strings, threads, |row| strings.get(row).map(strip_space))
    } else {
        encode(n_strings, threads, |row| strings.get(row))
    }
}

/// The bytes of a text without the white space (Python's notion of it in bytes) at both ends.
pub(crate) fn strip_space(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t'..=b'\r', later_bytes @ ..] = bytes {
        bytes = later_bytes;
    }
    while let [earlier_bytes @ .., b' ' | b'\t'..=b'\r'] = bytes {
        bytes = earlier_bytes;
    }
    bytes
}
