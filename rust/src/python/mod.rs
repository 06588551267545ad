//! The border. Borrow arrays, release the GIL, call a kernel, name the error.
//!
//! `src/banbury/_core.pyi` says what each function means.

mod score;
mod text;
mod weights;
mod words;

use crate::classes::{ClassCounts, Rows, Weights};
use crate::columns::{Block, Columns};
use crate::encode::{Encoded, Index, Key, Strings};
use crate::error::{Error, Number};
use crate::expansion::Expansion;
use crate::flags::Thresholds;
use crate::one_less::{Curves, Enough, one_less as left_out};
use crate::scale::Scale;
use crate::{bins, classes, codes, encode, moments, products};
use ndarray::{Array2, Array3, Array4, ArrayView2, Axis, Ix1, Ix2};
use numpy::{
    Element, IntoPyArray, PyArray, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods,
    PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList, PyString};

pyo3::create_exception!(
    _core,
    BadValue,
    PyValueError,
    "``args`` is (what, feature, row, value)."
);

impl<'py> IntoPyObject<'py> for Number {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Number::Real(x) => Ok(PyFloat::new(py, x).into_any()),
            Number::Whole(x) => Ok(x.into_pyobject(py)?.into_any()),
        }
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        match error {
            Error::BadValue {
                fault,
                feature,
                row,
                value,
            } => Python::attach(|py| match value.into_pyobject(py) {
                Ok(value) => BadValue::new_err((fault.name(), feature, row, value.unbind())),
                Err(error) => error,
            }),
            Error::NotThere { word, class, left } => Python::attach(|py| {
                let word = word.map(|word| text::string_of(py, &word)).transpose();
                match (word, left.into_pyobject(py)) {
                    (Ok(word), Ok(left)) => {
                        let word = word.map(Bound::unbind);
                        words::NotThere::new_err((word, class, left.unbind()))
                    }
                    (Err(error), _) | (_, Err(error)) => error,
                }
            }),
            Error::Malformed(sentence) => PyValueError::new_err(sentence.into_owned()),
        }
    }
}

fn malformed(sentence: impl Into<String>) -> PyErr {
    PyValueError::new_err(sentence.into())
}

/// An array that its owner may not write while we read; a copy if it is not aligned.
fn borrow<'py, T: Element>(
    any: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let wrong = || {
        let dtype = T::get_dtype(any.py());
        malformed(format!("{name} must be an array of {dtype}"))
    };
    let array = any.cast::<PyArrayDyn<T>>().map_err(|_| wrong())?;
    let even = |stride: &isize| stride % size_of::<T>() as isize == 0;
    if array.is_aligned() && array.strides().iter().all(even) {
        return Ok(array.try_readonly()?);
    }
    let copy = any.call_method0("copy")?;
    Ok(copy
        .cast::<PyArrayDyn<T>>()
        .map_err(|_| wrong())?
        .try_readonly()?)
}

/// A parameter or a row of numbers, side by side in memory; copied if it was not.
struct Held<'py, T: Element> {
    array: PyReadonlyArrayDyn<'py, T>,
    copy: Option<Vec<T>>,
}

impl<'py, T: Element + Copy> Held<'py, T> {
    fn new(any: &Bound<'py, PyAny>, name: &str, dimensions: usize) -> PyResult<Self> {
        let array = borrow::<T>(any, name)?;
        if array.ndim() != dimensions {
            return Err(malformed(format!(
                "{name} must have {dimensions} dimension{}, got {}",
                if dimensions == 1 { "" } else { "s" },
                array.ndim()
            )));
        }
        let copy = (!array.is_c_contiguous()).then(|| array.as_array().iter().copied().collect());
        Ok(Held { array, copy })
    }

    fn slice(&self) -> &[T] {
        match &self.copy {
            Some(copy) => copy,
            None => self.array.as_slice().unwrap_or(&[]),
        }
    }

    /// The slice, if the array has this many columns.
    fn matrix(&self, columns: usize, name: &str) -> PyResult<&[T]> {
        match self.array.shape() {
            [_, k] if *k == columns => Ok(self.slice()),
            shape => Err(malformed(format!(
                "{name} must be (.., {columns}), got {shape:?}"
            ))),
        }
    }
}

/// An array of columns, whatever its type.
enum HeldBlock<'py> {
    F64(PyReadonlyArrayDyn<'py, f64>),
    F32(PyReadonlyArrayDyn<'py, f32>),
    I64(PyReadonlyArrayDyn<'py, i64>),
    I32(PyReadonlyArrayDyn<'py, i32>),
    I16(PyReadonlyArrayDyn<'py, i16>),
    I8(PyReadonlyArrayDyn<'py, i8>),
    U64(PyReadonlyArrayDyn<'py, u64>),
    U32(PyReadonlyArrayDyn<'py, u32>),
    U16(PyReadonlyArrayDyn<'py, u16>),
    U8(PyReadonlyArrayDyn<'py, u8>),
}

fn as_columns<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> PyResult<ArrayView2<'a, T>> {
    let view = array.as_array();
    let view = match view.ndim() {
        1 => view
            .into_dimensionality::<Ix1>()
            .map(|view| view.insert_axis(Axis(1))),
        _ => view.into_dimensionality::<Ix2>(),
    };
    view.map_err(|_| malformed("a column array must have 1 or 2 dimensions"))
}

impl<'py> HeldBlock<'py> {
    fn new(any: &Bound<'py, PyAny>) -> PyResult<Self> {
        let name = "a column";
        let array = any
            .cast::<PyUntypedArray>()
            .map_err(|_| malformed("columns must be arrays"))?;
        let dtype = array.dtype();
        Ok(match (dtype.kind(), dtype.itemsize()) {
            (b'f', 8) => HeldBlock::F64(borrow(any, name)?),
            (b'f', 4) => HeldBlock::F32(borrow(any, name)?),
            (b'i', 8) => HeldBlock::I64(borrow(any, name)?),
            (b'i', 4) => HeldBlock::I32(borrow(any, name)?),
            (b'i', 2) => HeldBlock::I16(borrow(any, name)?),
            (b'i', 1) => HeldBlock::I8(borrow(any, name)?),
            (b'u', 8) => HeldBlock::U64(borrow(any, name)?),
            (b'u', 4) => HeldBlock::U32(borrow(any, name)?),
            (b'u', 2) => HeldBlock::U16(borrow(any, name)?),
            (b'u', 1) => HeldBlock::U8(borrow(any, name)?),
            _ => {
                return Err(malformed(format!(
                    "columns must hold float64, float32 or integers of 8 to 64 bits, not {dtype}"
                )));
            }
        })
    }

    fn block(&self) -> PyResult<Block<'_>> {
        Ok(match self {
            HeldBlock::F64(array) => Block::F64(as_columns(array)?),
            HeldBlock::F32(array) => Block::F32(as_columns(array)?),
            HeldBlock::I64(array) => Block::I64(as_columns(array)?),
            HeldBlock::I32(array) => Block::I32(as_columns(array)?),
            HeldBlock::I16(array) => Block::I16(as_columns(array)?),
            HeldBlock::I8(array) => Block::I8(as_columns(array)?),
            HeldBlock::U64(array) => Block::U64(as_columns(array)?),
            HeldBlock::U32(array) => Block::U32(as_columns(array)?),
            HeldBlock::U16(array) => Block::U16(as_columns(array)?),
            HeldBlock::U8(array) => Block::U8(as_columns(array)?),
        })
    }
}

struct HeldColumns<'py>(Vec<HeldBlock<'py>>);

impl<'py> HeldColumns<'py> {
    fn new(any: &Bound<'py, PyAny>) -> PyResult<Self> {
        let blocks = any.try_iter()?.map(|item| HeldBlock::new(&item?));
        Ok(HeldColumns(blocks.collect::<PyResult<_>>()?))
    }

    fn columns(&self) -> PyResult<Columns<'_>> {
        let blocks: PyResult<Vec<_>> = self.0.iter().map(HeldBlock::block).collect();
        Ok(Columns::new(blocks?)?)
    }
}

/// Classes and weights.
struct HeldRows<'py> {
    classes: Held<'py, i32>,
    n_classes: usize,
    weights: Option<Held<'py, f64>>,
    whole: bool,
}

impl<'py> HeldRows<'py> {
    fn new(
        classes: &Bound<'py, PyAny>,
        n_classes: i64,
        weights: Option<&Bound<'py, PyAny>>,
        whole: bool,
    ) -> PyResult<Self> {
        let weights = weights.map(|weights| Held::new(weights, "weights", 1));
        Ok(HeldRows {
            classes: Held::new(classes, "classes", 1)?,
            n_classes: size(n_classes, "n_classes")?,
            weights: weights.transpose()?,
            whole,
        })
    }

    fn sides(&self) -> (&[i32], usize, Weights<'_>) {
        let weights = match &self.weights {
            None => Weights::Ones,
            Some(weights) if self.whole => Weights::Whole(weights.slice()),
            Some(weights) => Weights::Real(weights.slice()),
        };
        (self.classes.slice(), self.n_classes, weights)
    }

    /// The sums of weights as they go back: none for whole ones, the counts for ones that are not called whole.
    fn weights(&self, rows: &[i64], weights: &[Expansion]) -> Option<Vec<f64>> {
        match &self.weights {
            _ if self.whole => None,
            Some(_) => Some(weights.iter().flat_map(|w| w.parts()).collect()),
            None => Some(rows.iter().flat_map(|&n| [n as f64, 0.0, 0.0]).collect()),
        }
    }
}

fn size(number: i64, name: &str) -> PyResult<usize> {
    usize::try_from(number).map_err(|_| malformed(format!("{name} must not be negative")))
}

fn at_least_one(threads: i64) -> PyResult<usize> {
    match usize::try_from(threads) {
        Ok(threads) if threads > 0 => Ok(threads),
        _ => Err(malformed("threads must be 1 or more")),
    }
}

/// An array of this shape. The kernels answer with the right number of values.
fn shaped<'py, T: Element, D: ndarray::Dimension>(
    py: Python<'py>,
    values: Vec<T>,
    array: impl FnOnce(Vec<T>) -> Result<ndarray::Array<T, D>, ndarray::ShapeError>,
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    let array = array(values).map_err(|error| malformed(error.to_string()))?;
    Ok(array.into_pyarray(py))
}

type Int1<'py> = Bound<'py, PyArray1<i64>>;
type Codes<'py> = (Bound<'py, PyArray1<i32>>, Int1<'py>, Int1<'py>);
type Triple<'py> = (
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
    Bound<'py, PyAny>,
);
type Pair<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

fn encoded(py: Python<'_>, found: Encoded) -> Codes<'_> {
    (
        found.codes.into_pyarray(py),
        found.first.into_pyarray(py),
        found.counts.into_pyarray(py),
    )
}

#[pyfunction]
fn checksum(py: Python<'_>, bytes: &Bound<'_, PyAny>, threads: i64) -> PyResult<u64> {
    let bytes = Held::<u8>::new(bytes, "bytes", 1)?;
    let (bytes, threads) = (bytes.slice(), at_least_one(threads)?);
    Ok(py.detach(|| crate::checksum::checksum(bytes, threads)))
}

#[pyfunction]
fn encode_records<'py>(
    py: Python<'py>,
    records: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Codes<'py>> {
    let (records, threads) = (
        Held::<u8>::new(records, "records", 2)?,
        at_least_one(threads)?,
    );
    let (n, width) = (records.array.shape()[0], records.array.shape()[1]);
    let bytes = records.slice();
    let found = py.detach(|| encode::encode_records(bytes, n, width, threads))?;
    Ok(encoded(py, found))
}

#[pyfunction]
#[pyo3(signature = (offsets, data, valid, valid_offset, strip, threads))]
fn encode_strings<'py>(
    py: Python<'py>,
    offsets: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
    valid: Option<&Bound<'py, PyAny>>,
    valid_offset: i64,
    strip: bool,
    threads: i64,
) -> PyResult<Codes<'py>> {
    let (data, threads) = (Held::<u8>::new(data, "data", 1)?, at_least_one(threads)?);
    let valid = valid
        .map(|valid| Held::<u8>::new(valid, "valid", 1))
        .transpose()?;
    let first = size(valid_offset, "valid_offset")?;
    let (data, valid) = (
        data.slice(),
        valid.as_ref().map(|valid| (valid.slice(), first)),
    );
    let found = if let Ok(offsets) = Held::<i32>::new(offsets, "offsets", 1) {
        let offsets = offsets.slice();
        py.detach(|| encode::encode_strings(&Strings::new(offsets, data, valid)?, strip, threads))?
    } else {
        let offsets = Held::<i64>::new(offsets, "offsets", 1)?;
        let offsets = offsets.slice();
        py.detach(|| encode::encode_strings(&Strings::new(offsets, data, valid)?, strip, threads))?
    };
    Ok(encoded(py, found))
}

/// Strings are Python's own, so this one keeps the GIL.
#[pyfunction]
fn encode_objects<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyList>,
) -> PyResult<Option<Codes<'py>>> {
    let mut index = Index::default();
    let mut found = Encoded::default();
    let mut distinct: Vec<Bound<'py, PyString>> = vec![];
    found.codes.reserve(values.len());
    for (row, value) in values.iter().enumerate() {
        let Ok(string) = value.cast_into::<PyString>() else {
            let value = values.get_item(row)?;
            let missing = value.is_none()
                || value
                    .cast::<PyFloat>()
                    .is_ok_and(|number| number.value().is_nan());
            if !missing {
                return Ok(None);
            }
            found.codes.push(-1);
            continue;
        };
        let code = match string.to_str() {
            Ok(text) => index.code(text.as_bytes().hash(), |code| {
                distinct[code].to_str().is_ok_and(|other| other == text)
            }),
            // Lone surrogates have no UTF-8; Python itself compares them.
            Err(_) => index.code(u64::MAX, |code| {
                distinct[code].as_any().eq(&string).unwrap_or(false)
            }),
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

#[pyfunction]
#[pyo3(signature = (classes, n_classes, weights, whole, threads))]
fn count_classes<'py>(
    py: Python<'py>,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'py, PyAny>>,
    whole: bool,
    threads: i64,
) -> PyResult<Pair<'py>> {
    let held = HeldRows::new(classes, n_classes, weights, whole)?;
    let ((classes, n_classes, weights), threads) = (held.sides(), at_least_one(threads)?);
    let ClassCounts { rows, weights } = py.detach(|| {
        let rows = Rows::new(classes, n_classes, weights)?;
        Ok::<_, Error>(classes::count_classes(&rows, threads))
    })?;
    let weights = held.weights(&rows, &weights);
    let weights = weights
        .map(|w| shaped(py, w, |w| Array2::from_shape_vec((n_classes, 3), w)))
        .transpose()?;
    Ok((
        rows.into_pyarray(py).into_any(),
        weights.map(Bound::into_any),
    ))
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn one_less<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyAny>,
    origin: &Bound<'py, PyAny>,
    unit: &Bound<'py, PyAny>,
    classes: &Bound<'py, PyAny>,
    curves: [Bound<'py, PyAny>; 5],
    weights: Option<&Bound<'py, PyAny>>,
    enough: (f64, f64),
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let held_columns = HeldColumns::new(columns)?;
    let (columns, threads) = (held_columns.columns()?, at_least_one(threads)?);
    let (origin, unit) = (Held::new(origin, "origin", 1)?, Held::new(unit, "unit", 1)?);
    let scale = Scale::new(origin.slice(), unit.slice(), columns.features())?;
    let classes = Held::<i32>::new(classes, "classes", 1)?;
    let weights = weights
        .map(|weights| Held::<f64>::new(weights, "weights", 1))
        .transpose()?;
    let tables = [
        Held::<f64>::new(&curves[0], "mean", 2)?,
        Held::<f64>::new(&curves[1], "precision", 2)?,
        Held::<f64>::new(&curves[2], "n", 2)?,
        Held::<f64>::new(&curves[3], "spread", 2)?,
    ];
    let floor = Held::<f64>::new(&curves[4], "floor", 1)?;
    let n_classes = tables[0].slice().len() / columns.features().max(1);
    let [mean, precision, n, spread] = tables.each_ref().map(Held::slice);
    let curves = Curves {
        mean,
        precision,
        n,
        spread,
        floor: floor.slice(),
    };
    let (share, floors) = enough;
    let enough = Enough { share, floors };
    let (classes, weights) = (classes.slice(), weights.as_ref().map(Held::slice));
    let found = py.detach(|| {
        left_out(
            &columns, &scale, classes, n_classes, &curves, weights, enough, threads,
        )
    })?;
    Ok(found.into_pyarray(py).into_any())
}

/// Whether some row of a sparse matrix has a column twice.
#[pyfunction]
fn has_twins<'py>(
    py: Python<'py>,
    offsets: &Bound<'py, PyAny>,
    columns: &Bound<'py, PyAny>,
    n_columns: i64,
    threads: i64,
) -> PyResult<bool> {
    let offsets = Held::<i64>::new(offsets, "offsets", 1)?;
    let columns = Held::<i32>::new(columns, "columns", 1)?;
    let (n, threads) = (size(n_columns, "n_columns")?, at_least_one(threads)?);
    let (offsets, columns) = (offsets.slice(), columns.slice());
    Ok(py.detach(|| crate::words::has_twins(offsets, columns, n, threads))?)
}

#[pyfunction]
#[pyo3(signature = (columns, origin, unit, classes, n_classes, weights, whole, threads))]
#[allow(clippy::too_many_arguments)]
fn count_products<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyAny>,
    origin: &Bound<'py, PyAny>,
    unit: &Bound<'py, PyAny>,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'py, PyAny>>,
    whole: bool,
    threads: i64,
) -> PyResult<Triple<'py>> {
    let held_columns = HeldColumns::new(columns)?;
    let columns = held_columns.columns()?;
    let (origin, unit) = (Held::new(origin, "origin", 1)?, Held::new(unit, "unit", 1)?);
    let scale = Scale::new(origin.slice(), unit.slice(), columns.features())?;
    let held = HeldRows::new(classes, n_classes, weights, whole)?;
    let ((classes, c, weights), threads) = (held.sides(), at_least_one(threads)?);
    let found = py.detach(|| {
        let rows = Rows::new(classes, c, weights)?;
        products::count_products(&columns, &scale, &rows, threads)
    })?;
    let cells = products::cells(columns.features());
    let weights = held.weights(&found.rows, &found.weights);
    let weights = weights
        .map(|w| shaped(py, w, |w| Array2::from_shape_vec((c, 3), w)))
        .transpose()?;
    let sums: Vec<f64> = found.sums.iter().flat_map(|sum| sum.parts()).collect();
    let sums = shaped(py, sums, |s| Array3::from_shape_vec((c, cells, 3), s))?;
    Ok((
        found.rows.into_pyarray(py).into_any(),
        weights.map(Bound::into_any),
        sums.into_any(),
    ))
}

#[pyfunction]
fn by_class<'py>(
    py: Python<'py>,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let held = HeldRows::new(classes, n_classes, None, true)?;
    let (classes, n_classes, weights) = held.sides();
    let (order, starts) = py.detach(|| {
        let rows = Rows::new(classes, n_classes, weights)?;
        Ok::<_, Error>(classes::by_class(&rows))
    })?;
    Ok((
        order.into_pyarray(py).into_any(),
        starts.into_pyarray(py).into_any(),
    ))
}

#[pyfunction]
#[pyo3(signature = (columns, origin, unit, classes, n_classes, weights, whole, threads))]
#[allow(clippy::too_many_arguments)]
fn count_moments<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyAny>,
    origin: &Bound<'py, PyAny>,
    unit: &Bound<'py, PyAny>,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'py, PyAny>>,
    whole: bool,
    threads: i64,
) -> PyResult<Triple<'py>> {
    let held_columns = HeldColumns::new(columns)?;
    let columns = held_columns.columns()?;
    let (origin, unit) = (Held::new(origin, "origin", 1)?, Held::new(unit, "unit", 1)?);
    let scale = Scale::new(origin.slice(), unit.slice(), columns.features())?;
    let held = HeldRows::new(classes, n_classes, weights, whole)?;
    let ((classes, c, weights), threads) = (held.sides(), at_least_one(threads)?);
    let found = py.detach(|| {
        let rows = Rows::new(classes, c, weights)?;
        moments::count_moments(&columns, &scale, &rows, threads)
    })?;
    let f = columns.features();
    let weights = held.weights(&found.rows, &found.weights);
    let weights = weights
        .map(|w| shaped(py, w, |w| Array3::from_shape_vec((f, c, 3), w)))
        .transpose()?;
    let sums: Vec<f64> = found
        .sums
        .iter()
        .flatten()
        .flat_map(|sum| sum.parts())
        .collect();
    let rows = shaped(py, found.rows, |rows| Array2::from_shape_vec((f, c), rows))?;
    let sums = shaped(py, sums, |sums| Array4::from_shape_vec((f, c, 2, 3), sums))?;
    Ok((
        rows.into_any(),
        weights.map(Bound::into_any),
        sums.into_any(),
    ))
}

#[pyfunction]
#[pyo3(signature = (columns, low, size, classes, n_classes, weights, whole, threads))]
#[allow(clippy::too_many_arguments)]
fn count_codes<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyAny>,
    low: &Bound<'py, PyAny>,
    size: &Bound<'py, PyAny>,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'py, PyAny>>,
    whole: bool,
    threads: i64,
) -> PyResult<Pair<'py>> {
    let held_columns = HeldColumns::new(columns)?;
    let columns = held_columns.columns()?;
    let (low, size) = (Held::new(low, "low", 1)?, Held::new(size, "size", 1)?);
    let held = HeldRows::new(classes, n_classes, weights, whole)?;
    let ((classes, c, weights), threads) = (held.sides(), at_least_one(threads)?);
    let ranges = codes::Ranges::new(low.slice(), size.slice(), columns.features(), c)?;
    let found = py.detach(|| {
        let rows = Rows::new(classes, c, weights)?;
        codes::count_codes(&columns, &ranges, &rows, threads)
    })?;
    let weights = held.weights(&found.rows, &found.weights);
    let weights = weights
        .map(|w| shaped(py, w, |w| Array3::from_shape_vec((ranges.total(), c, 3), w)))
        .transpose()?;
    let rows = shaped(py, found.rows, |rows| {
        Array2::from_shape_vec((ranges.total(), c), rows)
    })?;
    Ok((rows.into_any(), weights.map(Bound::into_any)))
}

#[pyfunction]
#[pyo3(signature = (columns, threshold, classes, n_classes, weights, whole, threads))]
#[allow(clippy::too_many_arguments)]
fn count_flags<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyAny>,
    threshold: &Bound<'py, PyAny>,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'py, PyAny>>,
    whole: bool,
    threads: i64,
) -> PyResult<Pair<'py>> {
    let held_columns = HeldColumns::new(columns)?;
    let columns = held_columns.columns()?;
    let threshold = Held::new(threshold, "threshold", 1)?;
    let thresholds = Thresholds::new(threshold.slice(), columns.features())?;
    let held = HeldRows::new(classes, n_classes, weights, whole)?;
    let ((classes, c, weights), threads) = (held.sides(), at_least_one(threads)?);
    let found = py.detach(|| {
        let rows = Rows::new(classes, c, weights)?;
        crate::flags::count_flags(&columns, &thresholds, &rows, threads)
    })?;
    let f = columns.features();
    let weights = held.weights(&found.rows, &found.weights);
    let weights = weights
        .map(|w| shaped(py, w, |w| Array4::from_shape_vec((f, 2, c, 3), w)))
        .transpose()?;
    let rows = shaped(py, found.rows, |rows| {
        Array3::from_shape_vec((f, 2, c), rows)
    })?;
    Ok((rows.into_any(), weights.map(Bound::into_any)))
}

#[pyfunction(name = "bins")]
fn bins_of<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    start: f64,
    width: f64,
    threads: i64,
) -> PyResult<Int1<'py>> {
    let held = HeldBlock::new(column)?;
    let (column, threads) = (held.block()?, at_least_one(threads)?);
    let found = py.detach(|| bins::bins(&column, start, width, threads))?;
    Ok(found.into_pyarray(py))
}

#[pyfunction]
fn span<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<(Int1<'py>, Int1<'py>)> {
    let held = HeldColumns::new(columns)?;
    let (columns, threads) = (held.columns()?, at_least_one(threads)?);
    let (low, high) = py.detach(|| codes::span(&columns, threads))?;
    Ok((low.into_pyarray(py), high.into_pyarray(py)))
}

#[pyfunction]
fn not_counts(py: Python<'_>, columns: &Bound<'_, PyAny>, threads: i64) -> PyResult<()> {
    let held = HeldColumns::new(columns)?;
    let (columns, threads) = (held.columns()?, at_least_one(threads)?);
    Ok(py.detach(|| bins::not_counts(&columns, threads))?)
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::score::{kernels_left_out, score, score_each};
    #[pymodule_export]
    use super::text::Tokeniser;
    #[pymodule_export]
    use super::weights::Weights;
    #[pymodule_export]
    use super::words::{Groups, NotThere, Words};
    #[pymodule_export]
    use super::{
        BadValue, bins_of, by_class, checksum, count_classes, count_codes, count_flags,
        count_moments, count_products, encode_objects, encode_records, encode_strings, has_twins,
        not_counts, one_less, span,
    };
}
