//! Encodings: values of columns as numbers.

use super::arrays::{Array, Bytes, Codes, Longs, NumPy, Threads, size};
use super::texts::is_missing;
use crate::encode::{self, Encoded, Offsets, Strings};
use crate::fields::{self, Column, Kind};
use crate::hash_table::{Key, Numbering};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

/// (the code of each row, the row at which each code first occurs, how often each occurs).
type Encoding = (NumPy<i32>, NumPy<i64>, NumPy<i64>);

/// Converts an encoding for Python. An encoding is the code of each row, the row at which each code first occurs, and how
/// often each code occurs.
fn to_encoding(encoded: Encoded) -> Encoding {
    (encoded.codes.into(), encoded.first.into(), encoded.counts.into())
}

/// Returns a 64-bit checksum of the bytes. `threads` is the most threads to use.
#[pyfunction]
pub(super) fn checksum(py: Python, bytes: Bytes, threads: Threads) -> PyResult<u64> {
    let bytes = &*bytes;
    Ok(py.detach(|| crate::checksum::checksum(bytes, *threads)))
}

/// Whether some field of a text may be a code that looks like a number, such as 007. `data` is the text as bytes. The answer
/// may be a false yes.
#[pyfunction]
pub(super) fn any_leading_zero(py: Python, data: Bytes) -> PyResult<bool> {
    let bytes = &*data;
    Ok(py.detach(|| crate::zeros::any_leading_zero(bytes)))
}

/// Numbers the distinct rows of a byte matrix, (rows, width), in the order they first occur. Returns their [`Encoding`]. That
/// is the code of each row, the row at which each code first occurs, and how often each code occurs. `threads` is the most
/// threads to use.
#[pyfunction]
pub(super) fn encode_records(
    py: Python,
    records: Array<u8, 2>,
    threads: Threads,
) -> PyResult<Encoding> {
    let (n_rows, width) = (records.shape()[0], records.width());
    let bytes = &*records;
    let encoded = py.detach(|| encode::encode_records(bytes, n_rows, width, *threads))?;
    Ok(to_encoding(encoded))
}

/// Returns the bytes of the record of each of `codes`, one after the other; code i has row i of `records`, (records, width).
/// `width` is the number of bytes of a record, `threads` the most threads to use.
#[pyfunction]
pub(super) fn decode_records(
    py: Python,
    records: Array<u8, 2>,
    codes: Codes,
    threads: Threads,
) -> PyResult<NumPy<u8>> {
    let width = records.width();
    let (bytes, codes) = (&*records, &*codes);
    let decoded = py.detach(|| encode::decode_records(bytes, width, codes, *threads))?;
    Ok(decoded.into())
}

/// The offsets of Arrow's strings (int32) or large strings (int64).
pub(super) enum HeldOffsets<'py> {
    Narrow(Codes<'py>),
    Wide(Longs<'py>),
}

impl<'py> FromPyObject<'_, 'py> for HeldOffsets<'py> {
    type Error = PyErr;

    /// Borrows an array of int32 or of int64.
    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        any.extract().map(HeldOffsets::Narrow).or_else(|_| any.extract().map(HeldOffsets::Wide))
    }
}

impl HeldOffsets<'_> {
    /// The offsets as kernels read them. String i is from offset i to offset i + 1; offsets are int32 (narrow) or int64
    /// (wide).
    pub(super) fn offsets(&self) -> Offsets<'_> {
        match self {
            HeldOffsets::Narrow(offsets) => Offsets::Narrow(offsets),
            HeldOffsets::Wide(offsets) => Offsets::Wide(offsets),
        }
    }
}

/// Numbers distinct strings in the order they first occur; string i is `data[offsets[i]..offsets[i + 1]]`. It is missing
/// unless its bit in `valid`, Arrow's bitmap, is set, whose bit `valid_offset` is the first string's; None: no string is
/// missing. `strip` removes white space from both ends first. Returns the code of each string (-1: missing), the string at
/// which each code first occurs, and how often each code occurs. `threads` is the most threads to use.
#[pyfunction]
pub(super) fn encode_strings(
    py: Python,
    offsets: HeldOffsets,
    data: Bytes,
    valid: Option<Bytes>,
    valid_offset: i64,
    strip: bool,
    threads: Threads,
) -> PyResult<Encoding> {
    let valid_offset = size(valid_offset, "valid_offset")?;
    let valid = valid.as_deref().map(|valid| (valid, valid_offset));
    let strings = Strings::new(offsets.offsets(), &data, valid)?;
    let encoded = py.detach(|| encode::encode_strings(&strings, strip, *threads))?;
    Ok(to_encoding(encoded))
}

/// A column of a text's fields: numbers, or the code of each word and the (first byte, end) of each new word.
#[derive(IntoPyObject)]
pub(super) enum Field {
    Real(NumPy<f64>),
    Whole(NumPy<i64>),
    Word(NumPy<i32>, Vec<[i64; 2]>),
}

/// Returns the columns of plain lines of text, whose fields are divided by `delimiter`; None if they are not plain, for
/// example because a word contains `quote`. `kinds` has a letter for each column: f (real), i (whole) or s (word). `missing`
/// are the texts that mean a missing value, and `known` has the known words of each column, each on a line. `data` is the
/// text as bytes; `delimiter` and `quote` are bytes. A column of words is the number of each line's word and the (first byte,
/// end) in the text of each new word.
#[pyfunction]
pub(super) fn parse_fields(
    py: Python,
    data: Bytes,
    delimiter: u8,
    quote: Option<u8>,
    kinds: &str,
    missing: Vec<Vec<u8>>,
    known: Vec<Vec<u8>>,
) -> Option<Vec<Field>> {
    let missing: Vec<&[u8]> = missing.iter().map(Vec::as_slice).collect();
    let known: Vec<&[u8]> = known.iter().map(Vec::as_slice).collect();
    let kinds: Vec<_> = kinds
        .bytes()
        .map(|kind| match kind {
            b'f' => Kind::Real,
            b'i' => Kind::Whole,
            _ => Kind::Word,
        })
        .collect();
    let bytes = &*data;
    let columns = py.detach(|| fields::parse(bytes, delimiter, quote, &kinds, &missing, &known));
    // A column for Python.
    let field = |column| match column {
        Column::Real(numbers) => Field::Real(numbers.into()),
        Column::Whole(numbers) => Field::Whole(numbers.into()),
        Column::Word(codes, spans) => Field::Word(codes.into(), spans),
    };
    Some(columns?.into_iter().map(field).collect())
}

/// Numbers the distinct str of a list; None and NaN get -1. None if the list contains another object. Strings are Python's
/// own, so this function keeps the GIL. Returns the code of each object of the list, the index at which each code first
/// occurs, and how often each code occurs. They are the fields `codes`, `first` and `counts` of `encoded`.
#[pyfunction]
pub(super) fn encode_objects(values: &Bound<PyList>) -> PyResult<Option<Encoding>> {
    let mut numbering = Numbering::default(); // finds the code of a string by its hash
    let mut encoded = Encoded::default();
    // The string of each code.
    let mut distinct: Vec<Bound<PyString>> = vec![];
    encoded.codes.reserve(values.len());
    for (row, value) in values.iter().enumerate() {
        let Ok(string) = value.cast_into::<PyString>() else {
            let value = values.get_item(row)?;
            if !is_missing(&value) {
                return Ok(None);
            }
            encoded.codes.push(-1);
            continue;
        };
        let code = match string.to_str() {
            Ok(text) => numbering.number(text.as_bytes().hash(), |code| {
                distinct[code].to_str().is_ok_and(|string| string == text)
            }),
            // Lone surrogates have no UTF-8: all such strings get one hash, and Python itself compares them.
            Err(_) => numbering
                .number(u64::MAX, |code| distinct[code].as_any().eq(&string).unwrap_or(false)),
        };
        if code == distinct.len() {
            if code == i32::MAX as usize {
                return Err(encode::too_many().into());
            }
            distinct.push(string);
            encoded.first.push(row as i64);
            encoded.counts.push(0);
        }
        encoded.counts[code] += 1;
        encoded.codes.push(code as i32);
    }
    Ok(Some(to_encoding(encoded)))
}
