//! Numbers the distinct values of a column in the order they first occur.
//!
//! Large inputs are cut among threads; each numbers its own part, and the parts' dictionaries are merged in order, so the answer
//! does not depend on the cut.

use crate::error::{Error, demand};
use crate::threads;

/// The code of each row (-1: missing), and per code its first row and its number of rows.
#[derive(Debug, Default, PartialEq)]
pub struct Encoded {
    pub codes: Vec<i32>,
    pub first: Vec<i64>,
    pub counts: Vec<i64>,
}

/// What can be numbered: integers, and slices of bytes.
pub trait Key: Copy + Eq + Send + Sync {
    fn hash(self) -> u64;
}

/// The two halves of a wide product, mixed: every bit of the input reaches every part of the result. Words in files are hashed by
/// this too, so that it never changes.
#[inline(always)]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

pub(crate) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
pub(crate) const STEP: u64 = 0xd6e8_feb8_6659_fd93;

impl Key for u64 {
    #[inline(always)]
    fn hash(self) -> u64 {
        mix(self ^ SEED, STEP)
    }
}

impl Key for &[u8] {
    #[inline(always)]
    fn hash(self) -> u64 {
        let mut state = mix(self.len() as u64 ^ SEED, STEP);
        let words = self.chunks_exact(8);
        let rest = words.remainder();
        for word in words {
            state = mix(state ^ little_endian(word), STEP) ^ SEED;
        }
        mix(state ^ little_endian(rest), STEP)
    }
}

/// Up to eight bytes as a number.
#[inline(always)]
fn little_endian(bytes: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(bytes) {
        Ok(word) => u64::from_le_bytes(word),
        Err(_) => bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

/// An open-addressing index from hash to code. The keys stay with the caller, who compares them.
#[derive(Debug)]
pub struct Index {
    /// (upper half of the hash, code + 1); a code of 0 is an empty slot.
    slots: Vec<(u32, u32)>,
    /// By code, to place it anew when the slots grow.
    hashes: Vec<u64>,
}

impl Default for Index {
    fn default() -> Self {
        Index { slots: vec![(0, 0); 64], hashes: vec![] }
    }
}

impl Index {
    /// The code of the key with this hash: that of an equal one, or the next new one.
    #[inline(always)]
    pub fn code(&mut self, hash: u64, is_equal: impl Fn(usize) -> bool) -> usize {
        let (mask, tag) = (self.slots.len() - 1, (hash >> 32) as u32);
        let mut at = hash as usize & mask;
        loop {
            let (found, code) = self.slots[at];
            if code == 0 {
                return self.insert(at, hash);
            }
            if found == tag && is_equal(code as usize - 1) {
                return code as usize - 1;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, at: usize, hash: u64) -> usize {
        self.hashes.push(hash);
        self.slots[at] = ((hash >> 32) as u32, self.hashes.len() as u32);
        if 2 * self.hashes.len() > self.slots.len() {
            self.grow();
        }
        self.hashes.len() - 1
    }

    fn grow(&mut self) {
        let size = 4 * self.slots.len();
        self.slots = vec![(0, 0); size];
        for (code, &hash) in self.hashes.iter().enumerate() {
            let mut at = hash as usize & (size - 1);
            while self.slots[at].1 != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = ((hash >> 32) as u32, code as u32 + 1);
        }
    }
}

/// Codes are int32.
const MOST: usize = i32::MAX as usize;

pub fn too_many() -> Error {
    Error::malformed("there are more than 2**31 - 1 distinct values")
}

/// The distinct keys of a part of the rows.
pub(crate) struct Part<K> {
    pub keys: Vec<K>,
    index: Index,
    pub first: Vec<i64>,
    counts: Vec<i64>,
    /// More keys came than there are codes.
    full: bool,
}

impl<K: Key> Part<K> {
    pub fn new() -> Self {
        Part { keys: vec![], index: Index::default(), first: vec![], counts: vec![], full: false }
    }

    /// The code of a key, met `count` times, first at `row`.
    #[inline(always)]
    pub fn code(&mut self, key: K, row: usize, count: i64) -> i32 {
        if self.full {
            return -1;
        }
        let code = self.index.code(key.hash(), |code| self.keys[code] == key);
        if code == self.keys.len() {
            self.meet(key, row);
        }
        self.counts[code] += count;
        code as i32
    }

    #[cold]
    fn meet(&mut self, key: K, row: usize) {
        self.full = self.keys.len() == MOST;
        self.keys.push(key);
        self.first.push(row as i64);
        self.counts.push(0);
    }

    pub fn checked(self) -> Result<Self, Error> {
        if self.full { Err(too_many()) } else { Ok(self) }
    }
}

/// Numbers `key(0) .. key(n - 1)`; no key, no number.
pub fn encode<K: Key>(
    n: usize,
    threads: usize,
    key: impl Fn(usize) -> Option<K> + Sync,
) -> Result<Encoded, Error> {
    let size = n.div_ceil(threads::worth(threads, n)).max(1);
    let mut codes = vec![0; n];
    let parts = threads::try_pieces(threads, &mut codes, size, |i, codes| {
        let mut part = Part::new();
        for (code, row) in codes.iter_mut().zip(i * size..) {
            *code = match key(row) {
                Some(key) => part.code(key, row, 1),
                None => -1,
            };
        }
        part.checked()
    })?;
    let (whole, renumber) = merge(parts)?;
    threads::try_pieces(threads, &mut codes, size, |i, codes| {
        if i > 0 {
            for code in codes.iter_mut().filter(|code| **code >= 0) {
                *code = renumber[i][*code as usize];
            }
        }
        Ok::<_, Error>(())
    })?;
    Ok(Encoded { codes, first: whole.first, counts: whole.counts })
}

/// All parts in one, and each part's codes in the whole's terms. The first part's codes stay as they are.
fn merge<K: Key>(parts: Vec<Part<K>>) -> Result<(Part<K>, Vec<Vec<i32>>), Error> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().unwrap_or_else(Part::new);
    let mut renumber = vec![vec![]];
    for part in parts {
        let entries = part.keys.iter().zip(part.first.iter().zip(&part.counts));
        let codes = entries.map(|(&key, (&first, &count))| whole.code(key, first as usize, count));
        renumber.push(codes.collect());
    }
    Ok((whole.checked()?, renumber))
}

/// Numbers records of `width` bytes that lie one after the other.
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

/// The record of each code, one after the other.
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
            let fine = match width {
                1 => decode::<1>(records, codes, out),
                4 => decode::<4>(records, codes, out),
                8 => decode::<8>(records, codes, out),
                _ => out.chunks_exact_mut(width).zip(codes).try_for_each(|(out, &code)| {
                    let from = usize::try_from(code).ok()?.checked_mul(width)?;
                    out.copy_from_slice(records.get(from..from + width)?);
                    Some(())
                }),
            };
            demand(fine.is_some(), "codes must be those of records")
        },
    )?;
    Ok(out)
}

/// Codes whose records are put in order at a time.
const DECODED: usize = 1 << 15;

/// Records of a width that is known; none if there is a code without one.
#[inline(always)]
fn decode<'a, const WIDTH: usize>(
    records: &[u8],
    codes: impl Iterator<Item = &'a i32>,
    out: &mut [u8],
) -> Option<()> {
    let (records, _) = records.as_chunks::<WIDTH>();
    let mut fine = true;
    for (out, &code) in out.as_chunks_mut::<WIDTH>().0.iter_mut().zip(codes) {
        match records.get(code as usize) {
            Some(record) => *out = *record,
            None => fine = false,
        }
    }
    fine.then_some(())
}

/// Records as wide as an integer are compared as one.
fn encode_words<const WIDTH: usize>(records: &[u8], threads: usize) -> Result<Encoded, Error> {
    let (words, _) = records.as_chunks::<WIDTH>();
    encode(words.len(), threads, |row| {
        let mut word = [0; 8];
        word[..WIDTH].copy_from_slice(&words[row]);
        Some(u64::from_le_bytes(word))
    })
}

/// Strings that lie one after the other, as Arrow has them.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a, O> {
    offsets: &'a [O],
    data: &'a [u8],
    valid: Option<(&'a [u8], usize)>,
}

impl<'a, O: Copy + TryInto<usize> + PartialOrd + Sync> Strings<'a, O> {
    /// Checks that the offsets ascend within the data and that the bitmap (bytes, first bit) is long enough.
    pub fn new(
        offsets: &'a [O],
        data: &'a [u8],
        valid: Option<(&'a [u8], usize)>,
    ) -> Result<Self, Error> {
        demand(!offsets.is_empty(), "offsets must have one entry more than there are strings")?;
        let end = |offset: O| offset.try_into().ok();
        let inside = |offset: &O| end(*offset).is_some_and(|offset: usize| offset <= data.len());
        demand(
            offsets.first().is_some_and(inside)
                && offsets.last().is_some_and(inside)
                && offsets.is_sorted(),
            "offsets must ascend from 0 or more to the length of the data or less",
        )?;
        if let Some((bitmap, first)) = valid {
            let bits = first.checked_add(offsets.len() - 1);
            demand(
                bits.is_some_and(|bits| bits.div_ceil(8) <= bitmap.len()),
                "the validity bitmap is shorter than the strings",
            )?;
        }
        Ok(Strings { offsets, data, valid })
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The string of a row; none if it is missing.
    pub fn get(&self, row: usize) -> Option<&'a [u8]> {
        if let Some((bitmap, first)) = self.valid {
            let bit = first + row;
            if bitmap[bit / 8] >> (bit % 8) & 1 == 0 {
                return None;
            }
        }
        let from = self.offsets[row].try_into().ok()?;
        let to = self.offsets[row + 1].try_into().ok()?;
        self.data.get(from..to)
    }
}

/// Numbers strings, white space at their ends apart if `strip`.
pub fn encode_strings<O: Copy + TryInto<usize> + PartialOrd + Sync>(
    strings: &Strings<O>,
    strip: bool,
    threads: usize,
) -> Result<Encoded, Error> {
    let n = strings.len();
    if strip {
        encode(n, threads, |row| strings.get(row).map(strip_space))
    } else {
        encode(n, threads, |row| strings.get(row))
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
