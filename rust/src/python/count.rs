//! Counts of rows by class, and checks and conversions of columns before they are counted.

use super::arrays::{
    Codes, HeldBlock, HeldColumns, HeldRows, Longs, NumPy, RealTable, Reals, RowWeights, Threads,
    size,
};
use super::integers::Integers;
use crate::classes::{self, counted};
use crate::codes::{self, Ranges};
use crate::flags::{self, Thresholds};
use crate::one_less::{Curves, Enough, one_less as change_by_one_less};
use crate::scale::Scale;
use crate::{bins, moments, products};
use pyo3::prelude::*;

/// Returns the weight of the rows of each class, (classes,). `classes` is the class of each row, -1 for none; `weights` None:
/// each row weighs 1. `n_classes` is how many classes there are, `threads` the most threads to use; the weights are whole
/// numbers or parts (10^-18) of a row.
#[pyfunction]
pub(super) fn count_classes(
    py: Python,
    classes: Codes,
    n_classes: i64,
    weights: Option<RowWeights>,
    threads: Threads,
) -> PyResult<Integers> {
    let rows = HeldRows::new(classes, n_classes, weights, *threads)?;
    let counts = rows.with(py, |rows| {
        counted(&classes::count_classes(rows, *threads), vec![rows.n_classes], rows.digits())
    })?;
    Ok(Integers(counts))
}

/// Returns by how much leaving out a row changes the log density of its values in its own class, (rows,); NaN where that is
/// not exact. Each feature has the scale z = (x - origin) / unit. `classes` is the class of each row, -1 for none, and
/// `weights` its weight, None for ones. `curves` are mean, precision, n and spread, (features, classes), and the least
/// variance of each feature; `enough` is what must remain of a sum of squares for the change to be exact: a share of it, and
/// how many times the least variance. `columns` are the features, which have a `floor`, the least variance, each. `threads`
/// is the most threads to use.
#[pyfunction]
pub(super) fn one_less(
    py: Python,
    columns: HeldColumns,
    origin: Reals,
    unit: Reals,
    classes: Codes,
    curves: (RealTable, RealTable, RealTable, RealTable, Reals),
    weights: Option<Reals>,
    enough: (f64, f64),
    threads: Threads,
) -> PyResult<NumPy<f64>> {
    let columns = columns.columns()?;
    let scale = Scale::new(&origin, &unit, columns.features())?;
    let (mean, precision, n, spread, floor) = &curves;
    let n_classes = mean.len() / columns.features().max(1);
    let curves = Curves { mean, precision, n, spread, floor };
    let enough = Enough { share: enough.0, floors: enough.1 };
    let (classes, weights) = (&*classes, weights.as_deref());
    let changes = py.detach(|| {
        change_by_one_less(&columns, &scale, classes, n_classes, &curves, weights, enough, *threads)
    })?;
    Ok(changes.into())
}

/// Whether some row of a sparse matrix of `n_columns` columns has a column twice; row i has
/// `columns[offsets[i]..offsets[i + 1]]`. `threads` is the most threads to use.
#[pyfunction]
pub(super) fn has_twins(
    py: Python,
    offsets: Longs,
    columns: Codes,
    n_columns: i64,
    threads: Threads,
) -> PyResult<bool> {
    let n_columns = size(n_columns, "n_columns")?;
    let (offsets, columns) = (&*offsets, &*columns);
    Ok(py.detach(|| crate::words::has_twins(offsets, columns, n_columns, *threads))?)
}

/// Functions that sum z = (x - origin) / unit, each column with its origin and unit: they return the weights of rows by
/// class, and the sums. `classes` is the class of each row, -1 for none; `weights` None: each row weighs 1.
macro_rules! sums_on_scales {
    ($($name:ident by $kernel:path),*) => {$(
        #[pyfunction]
        pub(super) fn $name(
            py: Python<'_>,
            columns: HeldColumns<'_>,
            origin: Reals<'_>,
            unit: Reals<'_>,
            classes: Codes<'_>,
            n_classes: i64,
            weights: Option<RowWeights<'_>>,
            threads: Threads,
        ) -> PyResult<(Integers, Integers)> {
            let columns = columns.columns()?;
            let scale = Scale::new(&origin, &unit, columns.features())?;
            let rows = HeldRows::new(classes, n_classes, weights, *threads)?;
            let sums = rows.with(py, |rows| $kernel(&columns, &scale, rows, *threads))?;
            Ok((Integers(sums.rows), Integers(sums.sums)))
        }
    )*};
}
sums_on_scales!(count_moments by moments::count_moments, count_products by products::count_products);

/// Returns the numbers of the rows of each class, class after class and ascending within each; and where each class begins in
/// them, then how many there are, (classes + 1,). `classes` is the class of each row, -1 for none. `n_classes` is how many
/// classes there are, `threads` the most threads to use.
#[pyfunction]
pub(super) fn by_class(
    py: Python,
    classes: Codes,
    n_classes: i64,
    threads: Threads,
) -> PyResult<(NumPy<i64>, NumPy<i64>)> {
    let weights = None;
    let rows = HeldRows::new(classes, n_classes, weights, *threads)?;
    let (order, starts) = rows.with(py, |rows| Ok(classes::by_class(rows, *threads)))?;
    Ok((order.into(), starts.into()))
}

/// Returns the integers of a column minus `low`, (rows,); -1 where that is not one of 0 .. n_values - 1. `threads` is the
/// most threads to use.
#[pyfunction]
pub(super) fn shifted(
    py: Python,
    column: HeldBlock,
    low: i64,
    n_values: i64,
    threads: Threads,
) -> PyResult<NumPy<i32>> {
    let column = column.block()?;
    let n_values = size(n_values, "n_values")?;
    let shifted = py.detach(|| codes::shifted(&column, low, n_values, *threads))?;
    Ok(shifted.into())
}

/// Returns the weight of the rows of each class by value, (sum of `size`, classes): the values of a feature are its `size`
/// from its `low` on. Also whether some value is outside that range. `classes` is the class of each row, -1 for none;
/// `weights` None: each row weighs 1. `columns` are the features, all of integer types. `n_classes` is how many classes there
/// are, `threads` the most threads to use; the values of feature after feature are the rows of the result.
#[pyfunction]
pub(super) fn count_codes(
    py: Python,
    columns: HeldColumns,
    low: Longs,
    size: Longs,
    classes: Codes,
    n_classes: i64,
    weights: Option<RowWeights>,
    threads: Threads,
) -> PyResult<(Integers, bool)> {
    let columns = columns.columns()?;
    let rows = HeldRows::new(classes, n_classes, weights, *threads)?;
    let ranges = Ranges::new(&low, &size, columns.features(), rows.n_classes)?;
    let (counts, any_outside) =
        rows.with(py, |rows| codes::count_codes(&columns, &ranges, rows, *threads))?;
    Ok((Integers(counts), any_outside))
}

/// Returns the weight of the rows of each class with values at most and above each feature's threshold, (features, 2,
/// classes). `classes` is the class of each row, -1 for none; `weights` None: each row weighs 1. `columns` are the features;
/// the threshold NaN allows only 0 and 1. `n_classes` is how many classes there are, `threads` the most threads to use.
#[pyfunction]
pub(super) fn count_flags(
    py: Python,
    columns: HeldColumns,
    threshold: Reals,
    classes: Codes,
    n_classes: i64,
    weights: Option<RowWeights>,
    threads: Threads,
) -> PyResult<Integers> {
    let columns = columns.columns()?;
    let thresholds = Thresholds::new(&threshold, columns.features())?;
    let rows = HeldRows::new(classes, n_classes, weights, *threads)?;
    let counts = rows.with(py, |rows| flags::count_flags(&columns, &thresholds, rows, *threads))?;
    Ok(Integers(counts))
}

/// The bin of each row of a column, `floor((x - start) / width)`; the lowest int64 for NaN. `start` is where bin 0 begins,
/// `width` the width of every bin, and `threads` the most threads to use.
#[pyfunction(name = "bins")]
pub(super) fn bins_of(
    py: Python,
    column: HeldBlock,
    start: f64,
    width: f64,
    threads: Threads,
) -> PyResult<NumPy<i64>> {
    let column = column.block()?;
    let bins = py.detach(|| bins::bins(&column, start, width, *threads))?;
    Ok(bins.into())
}

/// Returns the lowest and the highest value of each integer feature, (features,) each; 0 and -1 if it has none. `columns` are
/// the features; `threads` is the most threads to use.
#[pyfunction]
pub(super) fn span(
    py: Python,
    columns: HeldColumns,
    threads: Threads,
) -> PyResult<(NumPy<i64>, NumPy<i64>)> {
    let columns = columns.columns()?;
    let (low, high) = py.detach(|| codes::span(&columns, *threads))?;
    Ok((low.into(), high.into()))
}

/// An error unless every value is NaN or a whole number from 0 to 2^53. `columns` are the features; `threads` is the most
/// threads to use.
#[pyfunction]
pub(super) fn not_counts(py: Python, columns: HeldColumns, threads: Threads) -> PyResult<()> {
    let columns = columns.columns()?;
    Ok(py.detach(|| bins::demand_counts(&columns, *threads))?)
}
