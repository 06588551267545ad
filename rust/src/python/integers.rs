//! Arrays of whole numbers of any size, as a Python class.

use super::arrays::{Held, Longs, NumPy, malformed, shaped, size};
use crate::integers::{self, shares_to_parts, weight_to_parts};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// An array of whole numbers in units of 10^-digits.
#[pyclass(module = "banbury._core", frozen)]
pub(crate) struct Integers(pub(crate) integers::Integers);

/// (limbs on the last axis, digits), the arguments of `Integers.of`.
type State = (NumPy<i64>, u32);

/// Converts indices of cells; an error if one is negative. A cell is counted along an axis, or in C order.
fn convert_index(index: Longs) -> PyResult<Vec<usize>> {
    index.iter().map(|&i| size(i, "index")).collect()
}

#[pymethods]
impl Integers {
    /// An array of zeros. `shape` has the length of each axis; an error if there are too many cells.
    #[staticmethod]
    fn zeros(shape: Vec<usize>) -> PyResult<Self> {
        let n_cells = integers::n_cells(&shape).ok_or(malformed("shape has too many cells"))?;
        Ok(Integers(integers::Integers::of_i64(shape, vec![0; n_cells])))
    }

    /// An array of numbers in units of 10^-digits, from limbs of 64 bits on the last axis of an array, the lowest first.
    /// `limbs` is int64, (..., limbs), in two's complement; `words` has them cell by cell. `shape` has the length of each
    /// axis.
    #[staticmethod]
    fn of(limbs: &Bound<PyAny>, digits: u32) -> PyResult<Self> {
        let array =
            limbs.cast::<PyArrayDyn<i64>>().map_err(|_| malformed("limbs must be int64"))?;
        let (array, mut shape) = (array.readonly(), array.shape().to_vec());
        // The number of limbs, without which the shape is that of the numbers.
        let limbs = shape.pop().ok_or(malformed("limbs must stand on the last axis"))?;
        let words = array.as_array().iter().map(|&word| word as u64).collect();
        Ok(Integers(integers::Integers::new(shape, digits, limbs, words)?))
    }

    /// Concatenates arrays along the first axis. They have the same shape except along that axis.
    #[staticmethod]
    fn join(arrays: Vec<Bound<Integers>>) -> PyResult<Self> {
        let arrays: Vec<_> = arrays.iter().map(|array| &array.get().0).collect();
        Ok(Integers(integers::Integers::concatenate(&arrays)?))
    }

    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.0.shape.clone()
    }

    #[getter]
    fn digits(&self) -> u32 {
        self.0.digits()
    }

    /// Returns the limbs of each number, on a new last axis, the lowest first. `self.0` is the array; its `words` are the
    /// limbs of all cells, cell by cell. A limb has 64 bits, in two's complement.
    fn limbs(&self) -> NumPy<i64> {
        let words = self.0.words().iter().map(|&word| word as i64).collect();
        shaped(words, &[&self.0.shape[..], &[self.0.limbs()]].concat())
    }

    /// The numbers, each rounded to the nearest double. In the array's shape.
    #[getter]
    fn value(&self) -> NumPy<f64> {
        let exponent = 0;
        self.values(exponent)
    }

    /// The numbers times 2^exponent, each rounded once to a double.
    fn values(&self, exponent: i32) -> NumPy<f64> {
        shaped(self.0.values(exponent), &self.0.shape)
    }

    fn is_negative(&self) -> NumPy<bool> {
        shaped(self.0.is_negative(), &self.0.shape)
    }

    fn is_zero(&self) -> NumPy<bool> {
        shaped(self.0.is_zero(), &self.0.shape)
    }

    fn __add__(&self, other: &Integers) -> PyResult<Self> {
        Ok(Integers(self.0.plus(&other.0)?))
    }

    fn __sub__(&self, other: &Integers) -> PyResult<Self> {
        Ok(Integers(self.0.minus(&other.0)?))
    }

    /// The numbers times a factor, rounded down to 18 digits or to those that they have; and whether that is exact. `parts`
    /// is the factor in units of 10^-18.
    fn times(&self, factor: f64) -> PyResult<(Self, bool)> {
        let parts = weight_to_parts(factor).ok_or(malformed("factor must be below 2**63"))?;
        let (product, is_exact) = self.0.times(parts)?;
        Ok((Integers(product), is_exact))
    }

    /// Whether shape and numbers are equal.
    fn same(&self, other: &Integers) -> bool {
        self.0 == other.0
    }

    /// Returns an array of cells index[0], index[1] and so on along an axis.
    fn take(&self, index: Longs, axis: usize) -> PyResult<Self> {
        Ok(Integers(self.0.take(&convert_index(index)?, axis)?))
    }

    /// Returns an array whose axis has the length `size`: cell i moves along it to index[i], and cells that move to the same
    /// one are added. `axis` is the axis that gets the new length.
    fn merge(&self, index: Longs, size: usize, axis: usize) -> PyResult<Self> {
        Ok(Integers(self.0.merge(&convert_index(index)?, size, axis)?))
    }

    /// Returns the array in another shape; with an index, cell i of the result is cell index[i], both counted in C order.
    #[pyo3(signature = (shape, index = None))]
    fn arranged(&self, shape: Vec<usize>, index: Option<Longs>) -> PyResult<Self> {
        let index = index.map(convert_index).transpose()?;
        Ok(Integers(self.0.reshape(shape, index.as_deref())?))
    }

    /// Returns the sums of products of deviations from the mean for each pair of columns, (..., pairs), where this array is
    /// the numbers of rows, (...). `sums` has one more axis: the sums of z of each of `columns` columns, then those of the
    /// pairs' products. The pairs are (i, j) with j <= i; `self.0` is this array and `sums.0` the other. z is (x - origin) /
    /// unit of a column.
    fn deviations(&self, py: Python, sums: &Integers, columns: usize) -> PyResult<NumPy<f64>> {
        let deviations = py.detach(|| integers::deviations(&self.0, &sums.0, columns))?;
        let n_pairs = columns * (columns + 1) / 2;
        Ok(shaped(deviations, &[&self.0.shape[..], &[n_pairs]].concat()))
    }

    /// (`Integers.of`, its arguments), for pickle. The arguments are the limbs of all numbers and `digits`; the unit is
    /// 10^-digits.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, State)> {
        let this = slf.get();
        Ok((slf.get_type().getattr("of")?, (this.limbs(), this.0.digits())))
    }
}

/// Converts weights, in rows, to parts of a row, as two limbs of 64 bits on a new last axis, the lower first. Weights of soft
/// labels, (rows, classes), are rounded together, so that each row keeps its weight. A part is 10^-18 rows. `array` is the
/// weights, `n_axes` the number of its axes, and `shape` the length of each.
#[pyfunction(name = "parts")]
pub(super) fn parts_of(py: Python, weights: &Bound<PyAny>) -> PyResult<NumPy<u64>> {
    let n_axes = weights.getattr("ndim")?.extract()?;
    let array = Held::<f64>::new(weights, "weights", n_axes)?;
    let (weights, shape) = (array.slice(), array.array.shape());
    // None if a weight is too large.
    let parts: Option<Vec<u128>> = py.detach(|| match shape {
        &[_, n_classes] if n_classes > 0 => {
            let rows = weights.chunks_exact(n_classes).map(shares_to_parts);
            rows.collect::<Option<Vec<_>>>().map(|rows| rows.concat())
        }
        _ => weights.iter().map(|&weight| weight_to_parts(weight)).collect(),
    });
    let parts = parts.ok_or(malformed("weights must be below 2**63"))?;
    let limbs = parts.into_iter().flat_map(|n| [n as u64, (n >> 64) as u64]);
    Ok(shaped(limbs.collect(), &[shape, &[2]].concat()))
}
