//! Arrays of Python's, held while kernels read them, and arrays that go back.

use crate::classes::{Rows, Sets, Weights};
use crate::columns::{Block, Columns};
use crate::error::Error;
use ndarray::{ArrayD, ArrayView2, Axis, Ix1, Ix2};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods,
    PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

pub(super) fn malformed(sentence: impl Into<String>) -> PyErr {
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
    Ok(copy.cast::<PyArrayDyn<T>>().map_err(|_| wrong())?.try_readonly()?)
}

/// A parameter or a row of numbers, side by side in memory; copied if it was not.
pub(super) struct Held<'py, T: Element> {
    pub(super) array: PyReadonlyArrayDyn<'py, T>,
    copy: Option<Vec<T>>,
}

impl<'py, T: Element + Copy> Held<'py, T> {
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

    pub(super) fn slice(&self) -> &[T] {
        match &self.copy {
            Some(copy) => copy,
            None => self.array.as_slice().unwrap_or(&[]),
        }
    }

    /// The slice, if the array has this many columns.
    pub(super) fn matrix(&self, columns: usize, name: &str) -> PyResult<&[T]> {
        match self.array.shape() {
            [_, k] if *k == columns => Ok(self.slice()),
            shape => Err(malformed(format!("{name} must be (.., {columns}), got {shape:?}"))),
        }
    }
}

/// An array of so many axes that a kernel is given.
pub(super) struct Array<'py, T: Element, const AXES: usize>(Held<'py, T>);

impl<'py, T: Element + Copy, const AXES: usize> FromPyObject<'_, 'py> for Array<'py, T, AXES> {
    type Error = PyErr;

    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Held::new(&any, "it", AXES).map(Array)
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
        self.0.array.shape().last().copied().unwrap_or(1)
    }
}

/// An array, side by side in memory, that a kernel changes.
pub(super) struct Changed<'py, T: Element>(PyReadwriteArrayDyn<'py, T>);

impl<'py, T: Element> FromPyObject<'_, 'py> for Changed<'py, T> {
    type Error = PyErr;

    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array = any.cast::<PyArrayDyn<T>>();
        let array = array.map_err(|_| malformed("it must be an array of its type"))?;
        if !array.is_c_contiguous() {
            return Err(malformed("it must lie in one piece"));
        }
        Ok(Changed(array.try_readwrite().map_err(|_| malformed("it must be writable"))?))
    }
}

impl<T: Element> Changed<'_, T> {
    pub(super) fn slice(&mut self) -> &mut [T] {
        self.0.as_slice_mut().unwrap_or(&mut [])
    }
}

fn as_columns<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> PyResult<ArrayView2<'a, T>> {
    let view = array.as_array();
    let view = match view.ndim() {
        1 => view.into_dimensionality::<Ix1>().map(|view| view.insert_axis(Axis(1))),
        _ => view.into_dimensionality::<Ix2>(),
    };
    view.map_err(|_| malformed("a column array must have 1 or 2 dimensions"))
}

/// By name in [`Block`], type, and kind and size of NumPy's.
macro_rules! held_blocks {
    ($($name:ident: $t:ty = $kind:literal, $size:literal;)*) => {
        /// An array of columns, whatever its type.
        pub(super) enum HeldBlock<'py> {
            $($name(PyReadonlyArrayDyn<'py, $t>),)*
        }

        impl<'py> HeldBlock<'py> {
            pub(super) fn new(any: &Bound<'py, PyAny>) -> PyResult<Self> {
                let array = any.cast::<PyUntypedArray>();
                let dtype = array.map_err(|_| malformed("columns must be arrays"))?.dtype();
                match (dtype.kind(), dtype.itemsize()) {
                    $(($kind, $size) => Ok(HeldBlock::$name(borrow(any, "a column")?)),)*
                    _ => Err(malformed(format!(
                        "columns must hold float64, float32 or integers of 8 to 64 bits, not {dtype}"
                    ))),
                }
            }

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

pub(super) struct HeldColumns<'py>(Vec<HeldBlock<'py>>);

impl<'py> HeldColumns<'py> {
    pub(super) fn new(any: &Bound<'py, PyAny>) -> PyResult<Self> {
        let blocks = any.try_iter()?.map(|item| HeldBlock::new(&item?));
        Ok(HeldColumns(blocks.collect::<PyResult<_>>()?))
    }

    /// A single column.
    pub(super) fn one(any: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(HeldColumns(vec![HeldBlock::new(any)?]))
    }

    pub(super) fn columns(&self) -> PyResult<Columns<'_>> {
        let blocks: PyResult<Vec<_>> = self.0.iter().map(HeldBlock::block).collect();
        Ok(Columns::new(blocks?)?)
    }
}

/// Classes and weights: None, whole numbers (int64), or parts of a row (uint64, two limbs each).
pub(super) struct HeldRows<'py> {
    classes: Held<'py, i32>,
    pub(super) n_classes: usize,
    weights: Option<HeldWeights<'py>>,
    /// That check them.
    threads: usize,
}

enum HeldWeights<'py> {
    Whole(Held<'py, i64>),
    Parts(Held<'py, u64>),
}

impl<'py> HeldRows<'py> {
    pub(super) fn new(
        classes: &Bound<'py, PyAny>,
        n_classes: i64,
        weights: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let held = |weights: &Bound<'py, PyAny>| match weights.cast::<PyArrayDyn<i64>>() {
            Ok(_) => Held::new(weights, "weights", 1).map(HeldWeights::Whole),
            Err(_) => {
                let parts = Held::new(weights, "weights", 2)?;
                parts.matrix(2, "weights")?;
                Ok(HeldWeights::Parts(parts))
            }
        };
        Ok(HeldRows {
            classes: Held::new(classes, "classes", 1)?,
            n_classes: size(n_classes, "n_classes")?,
            weights: weights.map(held).transpose()?,
            threads: 1,
        })
    }

    /// The same, checked on that many threads.
    pub(super) fn on(self, threads: usize) -> Self {
        HeldRows { threads, ..self }
    }

    /// Calls `f` without the GIL.
    pub(super) fn with<'a, R: Send>(
        &'a self,
        py: Python<'py>,
        f: impl FnOnce(&Rows<'a>) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let weights = match &self.weights {
            None => Weights::Ones,
            Some(HeldWeights::Whole(weights)) => Weights::Whole(weights.slice()),
            Some(HeldWeights::Parts(weights)) => Weights::Parts(weights.slice().as_chunks::<2>().0),
        };
        let (classes, n_classes, threads) = (self.classes.slice(), self.n_classes, self.threads);
        Ok(py.detach(|| f(&Rows::on(threads, classes, n_classes, weights)?))?)
    }
}

/// Sets of classes: offsets and codes.
pub(super) struct HeldSets<'py> {
    offsets: Held<'py, i64>,
    codes: Held<'py, i32>,
}

impl<'py> HeldSets<'py> {
    pub(super) fn new(pair: &Bound<'py, PyTuple>) -> PyResult<Self> {
        if pair.len() != 2 {
            return Err(malformed("sets are offsets and codes"));
        }
        Ok(HeldSets {
            offsets: Held::new(&pair.get_item(0)?, "offsets", 1)?,
            codes: Held::new(&pair.get_item(1)?, "codes", 1)?,
        })
    }

    pub(super) fn sets(&self, n_classes: usize) -> Result<Sets<'_>, Error> {
        Sets::new(self.offsets.slice(), self.codes.slice(), n_classes)
    }
}

/// What several owners share; copied when one of them changes it.
pub(super) struct Shared<T>(Mutex<Arc<T>>);

impl<T: Clone + Send + Sync> Shared<T> {
    pub(super) fn new(value: impl Into<Arc<T>>) -> Self {
        Shared(Mutex::new(value.into()))
    }

    fn lock(&self) -> MutexGuard<'_, Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value as it is now. If another thread is changing it, waits for it without the GIL, which that one may need.
    pub(super) fn get(&self, py: Python<'_>) -> Arc<T> {
        match self.0.try_lock() {
            Ok(value) => value.clone(),
            Err(TryLockError::Poisoned(value)) => value.into_inner().clone(),
            Err(TryLockError::WouldBlock) => py.detach(|| self.lock().clone()),
        }
    }

    /// Changes the value. Only without the GIL: another thread may hold the lock and need it.
    pub(super) fn change<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(Arc::make_mut(&mut self.lock()))
    }
}

pub(super) fn size(number: i64, name: &str) -> PyResult<usize> {
    usize::try_from(number).map_err(|_| malformed(format!("{name} must not be negative")))
}

pub(super) fn at_least_one(threads: i64) -> PyResult<usize> {
    match usize::try_from(threads) {
        Ok(threads) if threads > 0 => Ok(threads),
        _ => Err(malformed("threads must be 1 or more")),
    }
}

/// An array of this shape. The kernels answer with the right number of values.
pub(super) fn shaped<'py, T: Element>(
    py: Python<'py>,
    values: Vec<T>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let array = ArrayD::from_shape_vec(shape, values);
    let array = array.map_err(|error| malformed(error.to_string()))?;
    Ok(array.into_pyarray(py).into_any())
}

pub(super) type Int1<'py> = Bound<'py, PyArray1<i64>>;
