//! NumPy arrays that are borrowed while kernels read them, and arrays that kernels return.

use crate::classes::{Rows, Weights};
use crate::columns::{Block, Columns};
use crate::error::Error;
use ndarray::{ArrayD, ArrayView2, Axis, Ix1, Ix2};
use numpy::{
    Element, IntoPyArray, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// A ValueError with this sentence.
pub(super) fn malformed(sentence: impl Into<String>) -> PyErr {
    PyValueError::new_err(sentence.into())
}

/// Borrows the array `any`, so that nobody can write to it meanwhile; a copy if it is not aligned. An error, which calls the
/// argument `name`, if it is no array of this type. `dtype` is the type as NumPy has it; a stride is in bytes.
fn borrow<'py, T: Element>(
    any: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let wrong_type = || {
        let dtype = T::get_dtype(any.py());
        malformed(format!("{name} must be an array of {dtype}"))
    };
    let array = any.cast::<PyArrayDyn<T>>().map_err(|_| wrong_type())?;
    // Strides are in bytes; kernels count them in numbers.
    let fits = |stride: &isize| stride % size_of::<T>() as isize == 0;
    if array.is_aligned() && array.strides().iter().all(fits) {
        return Ok(array.try_readonly()?);
    }
    let copy = any.call_method0("copy")?;
    Ok(copy.cast::<PyArrayDyn<T>>().map_err(|_| wrong_type())?.try_readonly()?)
}

/// An array that is contiguous in memory; a copy if the caller's is not.
pub(super) struct Held<'py, T: Element> {
    pub(super) array: PyReadonlyArrayDyn<'py, T>,
    /// Its numbers in C order; None if the caller's array is contiguous.
    copy: Option<Vec<T>>,
}

impl<'py, T: Element + Copy> Held<'py, T> {
    /// Borrows the array `any`. An error, which calls the argument `name`, unless it is an array of this type with so many
    /// dimensions. `copy` has the numbers in C order if the array is not contiguous, else None.
    pub(super) fn new(any: &Bound<'py, PyAny>, name: &str, dimensions: usize) -> PyResult<Self> {
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

    /// The numbers in C order. `self.array` is the caller's array, and `self.copy` its numbers in C order; None if the array
    /// is contiguous.
    pub(super) fn slice(&self) -> &[T] {
        match &self.copy {
            Some(copy) => copy,
            None => self.array.as_slice().unwrap_or(&[]),
        }
    }

    /// The numbers of a matrix in C order; an error, which calls the argument `name`, unless it has this many columns.
    /// `self.array` is the caller's array.
    pub(super) fn matrix(&self, columns: usize, name: &str) -> PyResult<&[T]> {
        match self.array.shape() {
            [_, width] if *width == columns => Ok(self.slice()),
            shape => Err(malformed(format!("{name} must be (.., {columns}), got {shape:?}"))),
        }
    }
}

/// An argument that is an array with this many axes. PyO3 adds the argument's name to errors as a note.
pub(super) struct Array<'py, T: Element, const AXES: usize>(Held<'py, T>);

/// Extracts a value, and adds its name to errors, as PyO3 does for the arguments of functions. `any` is the Python object to
/// extract from, and `note` the line that is added to the error.
pub(super) fn named<'py, T>(any: &Bound<'py, PyAny>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    any.extract().map_err(|error| {
        let error: PyErr = Into::into(error);
        let note = format!("while processing '{name}'");
        match error.value(any.py()).call_method1("add_note", (note,)) {
            Ok(_) => error,
            Err(error_of_note) => error_of_note,
        }
    })
}

pub(super) type Bytes<'py> = Array<'py, u8, 1>;
pub(super) type Reals<'py> = Array<'py, f64, 1>;
pub(super) type RealTable<'py> = Array<'py, f64, 2>;
pub(super) type Longs<'py> = Array<'py, i64, 1>;
/// Classes and other codes, -1 for none.
pub(super) type Codes<'py> = Array<'py, i32, 1>;
/// Numbers that identify words, nodes or rows.
pub(super) type Ids<'py> = Array<'py, u32, 1>;

impl<'py, T: Element + Copy, const AXES: usize> FromPyObject<'_, 'py> for Array<'py, T, AXES> {
    type Error = PyErr;

    /// Borrows the array `any`; an error unless it is an array of this type with `AXES` axes.
    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Held::new(&any, "the argument", AXES).map(Array)
    }
}

impl<T: Element + Copy, const AXES: usize> Deref for Array<'_, T, AXES> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.slice()
    }
}

impl<T: Element + Copy, const AXES: usize> Array<'_, T, AXES> {
    /// The length of the last axis.
    pub(super) fn width(&self) -> usize {
        self.shape().last().copied().unwrap_or(1)
    }

    /// The length of each axis.
    pub(super) fn shape(&self) -> &[usize] {
        self.0.array.shape()
    }
}

/// A contiguous array that a kernel writes to.
pub(super) struct Changed<'py, T: Element>(PyReadwriteArrayDyn<'py, T>);

impl<'py, T: Element> FromPyObject<'_, 'py> for Changed<'py, T> {
    type Error = PyErr;

    /// Borrows the array `any` to write to it; an error if it is of another type, not contiguous, not writable or in use.
    /// `dtype` is the type as NumPy has it.
    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array = any.cast::<PyArrayDyn<T>>();
        let dtype = || T::get_dtype(any.py());
        let array = array
            .map_err(|_| malformed(format!("the argument must be an array of {}", dtype())))?;
        if !array.is_c_contiguous() {
            return Err(malformed("the argument must lie in one piece"));
        }
        let writable = array.try_readwrite();
        Ok(Changed(
            writable.map_err(|_| {
                malformed("the argument must be writable, and in use by nobody else")
            })?,
        ))
    }
}

impl<T: Element> Changed<'_, T> {
    /// The numbers in C order, to write to.
    pub(super) fn slice(&mut self) -> &mut [T] {
        self.0.as_slice_mut().unwrap_or(&mut [])
    }
}

/// An array as (rows × columns); an array with one axis is one column. An error if it has more than two. `view` is the array,
/// borrowed.
fn as_columns<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> PyResult<ArrayView2<'a, T>> {
    let view = array.as_array();
    let view = match view.ndim() {
        1 => view.into_dimensionality::<Ix1>().map(|view| view.insert_axis(Axis(1))),
        _ => view.into_dimensionality::<Ix2>(),
    };
    view.map_err(|_| malformed("a column array must have 1 or 2 dimensions"))
}

/// Each line: the name in [`Block`], its type, and the kind and size of NumPy's dtype.
macro_rules! held_blocks {
    ($($name:ident: $t:ty = $kind:literal, $size:literal;)*) => {
        /// An array of columns, whatever its type.
        pub(super) enum HeldBlock<'py> {
            $($name(PyReadonlyArrayDyn<'py, $t>),)*
        }

        impl<'py> FromPyObject<'_, 'py> for HeldBlock<'py> {
            type Error = PyErr;

            /// Borrows the array `any`; an error if it is no array, or of another type. `dtype` is the type as NumPy has it.
            fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                let array = any.cast::<PyUntypedArray>();
                let dtype = array.map_err(|_| malformed("columns must be arrays"))?.dtype();
                match (dtype.kind(), dtype.itemsize()) {
                    $(($kind, $size) => Ok(HeldBlock::$name(borrow(&any, "a column")?)),)*
                    _ => Err(malformed(format!(
                        "columns must hold float64, float32 or integers of 8 to 64 bits, not {dtype}"
                    ))),
                }
            }
        }

        impl HeldBlock<'_> {
            /// The array as (rows × columns). `array` is the caller's NumPy array of one type of number.
            pub(super) fn block(&self) -> PyResult<Block<'_>> {
                match self {
                    $(HeldBlock::$name(array) => Ok(Block::$name(as_columns(array)?)),)*
                }
            }
        }
    };
}
held_blocks! {
    F64: f64 = b'f', 8; F32: f32 = b'f', 4;
    I64: i64 = b'i', 8; I32: i32 = b'i', 4; I16: i16 = b'i', 2; I8: i8 = b'i', 1;
    U64: u64 = b'u', 8; U32: u32 = b'u', 4; U16: u16 = b'u', 2; U8: u8 = b'u', 1;
}

/// A list of arrays that together hold the columns, in order.
pub(super) struct HeldColumns<'py>(Vec<HeldBlock<'py>>);

impl<'py> FromPyObject<'_, 'py> for HeldColumns<'py> {
    type Error = PyErr;

    /// Borrows the arrays of the iterable `any`. Each is a block of columns.
    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let blocks = any.try_iter()?.map(|array| array?.extract());
        Ok(HeldColumns(blocks.collect::<PyResult<_>>()?))
    }
}

impl HeldColumns<'_> {
    /// The columns of all arrays; an error if they are not equally long. `self.0` are the arrays, and `blocks` the same as
    /// (rows × columns).
    pub(super) fn columns(&self) -> PyResult<Columns<'_>> {
        let blocks: PyResult<Vec<_>> = self.0.iter().map(HeldBlock::block).collect();
        Ok(Columns::new(blocks?)?)
    }
}

/// The weights of rows: whole numbers (int64), or parts of a row (uint64, two limbs each).
pub(super) enum RowWeights<'py> {
    Whole(Longs<'py>),
    Parts(Array<'py, u64, 2>),
}

impl<'py> FromPyObject<'_, 'py> for RowWeights<'py> {
    type Error = PyErr;

    /// Borrows an array of int64, (rows,), or of uint64, (rows, 2); an error for any other. A whole number is how many times
    /// a row counts; `parts` are 10^-18 rows, as two limbs of 64 bits, the lower one first.
    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if any.cast::<PyArrayDyn<i64>>().is_ok() {
            return any.extract().map(RowWeights::Whole);
        }
        let parts: Array<u64, 2> = any.extract()?;
        match parts.width() {
            2 => Ok(RowWeights::Parts(parts)),
            width => Err(malformed(format!("the argument must be (rows, 2), got (.., {width})"))),
        }
    }
}

/// Classes and weights of rows, and how many threads check them.
pub(super) struct HeldRows<'py> {
    /// -1 for none.
    classes: Codes<'py>,
    pub(super) n_classes: usize,
    /// None: each row weighs 1.
    weights: Option<RowWeights<'py>>,
    threads: usize,
}

impl<'py> HeldRows<'py> {
    /// Rows with these classes (-1: none) and weights (None: ones), which `threads` threads check in [`HeldRows::with`]. An
    /// error if the number of classes is negative. `n_classes` is how many classes there are.
    pub(super) fn new(
        classes: Codes<'py>,
        n_classes: i64,
        weights: Option<RowWeights<'py>>,
        threads: usize,
    ) -> PyResult<Self> {
        Ok(HeldRows { classes, n_classes: size(n_classes, "n_classes")?, weights, threads })
    }

    /// Calls `f` with the rows, without the GIL, and returns what it returns. An error if classes or weights are wrong.
    /// `self.classes` has the class of each row, -1 for none, and `self.weights` its weight: whole numbers, or parts of a row
    /// as two limbs of 64 bits; None for ones. `self.threads` is how many threads check them. A part is 10^-18 rows.
    pub(super) fn with<'a, R: Send>(
        &'a self,
        py: Python<'py>,
        f: impl FnOnce(&Rows<'a>) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let weights = match &self.weights {
            None => Weights::Ones,
            Some(RowWeights::Whole(weights)) => Weights::Whole(weights),
            Some(RowWeights::Parts(weights)) => Weights::Parts(weights.as_chunks::<2>().0),
        };
        let (classes, n_classes, threads) = (&*self.classes, self.n_classes, self.threads);
        Ok(py.detach(|| f(&Rows::on(threads, classes, n_classes, weights)?))?)
    }
}

/// A set of classes for each row: offsets and codes.
pub(super) type LabelSets<'py> = (Longs<'py>, Codes<'py>);

/// A value that several owners share; it is copied when one of them changes it.
pub(super) struct Shared<T>(Mutex<Arc<T>>);

impl<T: Clone + Send + Sync> Shared<T> {
    /// A value that is shared with whoever has this `Arc`.
    pub(super) fn new(value: impl Into<Arc<T>>) -> Self {
        Shared(Mutex::new(value.into()))
    }

    /// Waits until no other thread has the lock.
    fn lock(&self) -> MutexGuard<'_, Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current value. If another thread is changing it, waits without the GIL, which that thread may need. `self.0` is
    /// the lock, with the `Arc` that is shared.
    pub(super) fn get(&self, py: Python<'_>) -> Arc<T> {
        match self.0.try_lock() {
            Ok(value) => value.clone(),
            Err(TryLockError::Poisoned(value)) => value.into_inner().clone(),
            Err(TryLockError::WouldBlock) => py.detach(|| self.lock().clone()),
        }
    }

    /// Changes the value with `f`, and returns what `f` returns. Call it without the GIL: the thread that holds the lock may need
    /// the GIL.
    pub(super) fn change<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(Arc::make_mut(&mut self.lock()))
    }
}

/// The number as a size; an error, which calls the argument `name`, if it is negative.
pub(super) fn size(number: i64, name: &str) -> PyResult<usize> {
    usize::try_from(number).map_err(|_| malformed(format!("{name} must not be negative")))
}

/// How many threads a kernel may use.
#[derive(Clone, Copy)]
pub(super) struct Threads(pub(super) usize);

impl FromPyObject<'_, '_> for Threads {
    type Error = PyErr;

    /// The int as a number of threads; an error if it is below 1. `any` is that int.
    fn extract(any: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match usize::try_from(any.extract::<i64>()?) {
            Ok(threads) if threads > 0 => Ok(Threads(threads)),
            _ => Err(malformed("threads must be 1 or more")),
        }
    }
}

impl Deref for Threads {
    type Target = usize;

    fn deref(&self) -> &usize {
        &self.0
    }
}

/// Numbers in C order that become a NumPy array of this shape when they are returned to Python.
pub(super) struct NumPy<T> {
    numbers: Vec<T>,
    shape: Vec<usize>,
}

impl<T> From<Vec<T>> for NumPy<T> {
    /// An array with one axis.
    fn from(numbers: Vec<T>) -> Self {
        NumPy { shape: vec![numbers.len()], numbers }
    }
}

/// An array of this shape, which must fit the numbers, in C order.
pub(super) fn shaped<T>(numbers: Vec<T>, shape: &[usize]) -> NumPy<T> {
    NumPy { numbers, shape: shape.to_vec() }
}

impl<'py, T: Element> IntoPyObject<'py> for NumPy<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    /// A NumPy array of this shape, which takes over the numbers. `self.numbers` are in C order, and `self.shape` has the
    /// length of each axis.
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = ArrayD::from_shape_vec(self.shape, self.numbers);
        let array = array.map_err(|error| malformed(error.to_string()))?;
        Ok(array.into_pyarray(py).into_any())
    }
}
