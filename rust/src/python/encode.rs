//! Encodings: values of columns as numbers.

use super::arrays::{Array, Bytes, Codes, Int1, Longs, Threads, size};
use crate::encode::{self, Encoded, Strings};
use crate::fields::{self, Column, Kind};
use crate::numbering::{Key, Numbering};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList, PyString};

type Encoding<'py> = (Bound<'py, PyArray1<i32>>, Int1<'py>, Int1<'py>);

fn encoded(py: Python<'_>, found: Encoded) -> Encoding<'_> {
    (found.codes.into_pyarray(py), found.first.into_pyarray(py), found.counts.into_pyarray(py))
}

#[pyfunction]
pub(super) fn checksum(py: Python<'_>, bytes: Bytes<'_>, threads: Threads) -> PyResult<u64> {
    let bytes = &*bytes;
    Ok(py.detach(|| crate::checksum::checksum(bytes, *threads)))
}

#[pyfunction]
pub(super) fn any_leading_zero(py: Python<'_>, data: Bytes<'_>) -> PyResult<bool> {
    let bytes = &*data;
    Ok(py.detach(|| crate::zeros::any_leading_zero(bytes)))
}

#[pyfunction]
pub(super) fn encode_records<'py>(
    py: Python<'py>,
    records: Array<'py, u8, 2>,
    threads: Threads,
) -> PyResult<Encoding<'py>> {
    let (n, width) = (records.shape()[0], records.width());
    let bytes = &*records;
    let found = py.detach(|| encode::encode_records(bytes, n, width, *threads))?;
    Ok(encoded(py, found))
}

#[pyfunction]
pub(super) fn decode_records<'py>(
    py: Python<'py>,
    records: Array<'py, u8, 2>,
    codes: Codes<'py>,
    threads: Threads,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let width = records.width();
    let (bytes, codes) = (&*records, &*codes);
    let found = py.detach(|| encode::decode_records(bytes, width, codes, *threads))?;
    Ok(found.into_pyarray(py))
}

/// Of Arrow's strings, or large strings.
pub(super) enum Offsets<'py> {
    Narrow(Codes<'py>),
    Wide(Longs<'py>),
}

impl<'py> FromPyObject<'_, 'py> for Offsets<'py> {
    type Error = PyErr;

    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        any.extract().map(Offsets::Narrow).or_else(|_| any.extract().map(Offsets::Wide))
    }
}

#[pyfunction]
pub(super) fn encode_strings<'py>(
    py: Python<'py>,
    offsets: Offsets<'py>,
    data: Bytes<'py>,
    valid: Option<Bytes<'py>>,
    valid_offset: i64,
    strip: bool,
    threads: Threads,
) -> PyResult<Encoding<'py>> {
    let first = size(valid_offset, "valid_offset")?;
    let (data, valid) = (&*data, valid.as_deref().map(|valid| (valid, first)));
    let found = match &offsets {
        Offsets::Narrow(offsets) => {
            let strings = Strings::new(offsets, data, valid)?;
            py.detach(|| encode::encode_strings(&strings, strip, *threads))
        }
        Offsets::Wide(offsets) => {
            let strings = Strings::new(offsets, data, valid)?;
            py.detach(|| encode::encode_strings(&strings, strip, *threads))
        }
    }?;
    Ok(encoded(py, found))
}

#[pyfunction]
pub(super) fn parse_fields<'py>(
    py: Python<'py>,
    data: Bytes<'py>,
    delimiter: u8,
    quote: Option<u8>,
    kinds: &str,
    missing: Vec<Vec<u8>>,
    known: Vec<Vec<u8>>,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
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
    let found = py.detach(|| fields::parse(bytes, delimiter, quote, &kinds, &missing, &known));
    let columns = found.map(|columns| {
        columns.into_iter().map(|column| match column {
            Column::Real(numbers) => Ok(numbers.into_pyarray(py).into_any()),
            Column::Whole(numbers) => Ok(numbers.into_pyarray(py).into_any()),
            Column::Word(codes, spans) => {
                Ok((codes.into_pyarray(py), spans).into_pyobject(py)?.into_any())
            }
        })
    });
    columns.map(Iterator::collect).transpose()
}

/// Strings are Python's own, so this one keeps the GIL.
#[pyfunction]
pub(super) fn encode_objects<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyList>,
) -> PyResult<Option<Encoding<'py>>> {
    let mut numbering = Numbering::default();
    let mut found = Encoded::default();
    let mut distinct: Vec<Bound<'py, PyString>> = vec![];
    found.codes.reserve(values.len());
    for (row, value) in values.iter().enumerate() {
        let Ok(string) = value.cast_into::<PyString>() else {
            let value = values.get_item(row)?;
            let missing = value.is_none()
                || value.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan());
            if !missing {
                return Ok(None);
            }
            found.codes.push(-1);
            continue;
        };
        let code = match string.to_str() {
            Ok(text) => numbering.number(text.as_bytes().hash(), |code| {
                distinct[code].to_str().is_ok_and(|other| other == text)
            }),
            // Lone surrogates have no UTF-8; Python itself compares them.
            Err(_) => numbering
                .number(u64::MAX, |code| distinct[code].as_any().eq(&string).unwrap_or(false)),
        };
        if code == distinct.len() {
            if code == i32::MAX as usize {
                return Err(encode::too_many().into());
            }
            distinct.push(string);
            found.first.push(row as i64);
            found.counts.push(0);
        }
        found.counts[code] += 1;
        found.codes.push(code as i32);
    }
    Ok(Some(encoded(py, found)))
}
