//! Counts of rows by class, and what is asked of columns before they are counted.

use super::arrays::{Held, HeldBlock, HeldColumns, HeldRows, Int1, at_least_one, size};
use super::integers::Integers;
use crate::classes::{self, counted};
use crate::codes::{self, Ranges};
use crate::flags::{self, Thresholds};
use crate::one_less::{Curves, Enough, one_less as left_out};
use crate::scale::Scale;
use crate::{bins, moments, products};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

#[pyfunction]
pub(super) fn count_classes(
    py: Python<'_>,
    classes: &Bound<'_, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'_, PyAny>>,
    threads: i64,
) -> PyResult<Integers> {
    let threads = at_least_one(threads)?;
    let held = HeldRows::new(classes, n_classes, weights)?.on(threads);
    let found = held.with(py, |rows| {
        counted(&classes::count_classes(rows, threads), vec![rows.n_classes], rows.digits())
    })?;
    Ok(Integers(found))
}

#[pyfunction]
pub(super) fn one_less<'py>(
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
    let weights = weights.map(|weights| Held::<f64>::new(weights, "weights", 1)).transpose()?;
    let tables = [
        Held::<f64>::new(&curves[0], "mean", 2)?,
        Held::<f64>::new(&curves[1], "precision", 2)?,
        Held::<f64>::new(&curves[2], "n", 2)?,
        Held::<f64>::new(&curves[3], "spread", 2)?,
    ];
    let floor = Held::<f64>::new(&curves[4], "floor", 1)?;
    let n_classes = tables[0].slice().len() / columns.features().max(1);
    let [mean, precision, n, spread] = tables.each_ref().map(Held::slice);
    let curves = Curves { mean, precision, n, spread, floor: floor.slice() };
    let enough = Enough { share: enough.0, floors: enough.1 };
    let (classes, weights) = (classes.slice(), weights.as_ref().map(Held::slice));
    let found = py.detach(|| {
        left_out(&columns, &scale, classes, n_classes, &curves, weights, enough, threads)
    })?;
    Ok(found.into_pyarray(py).into_any())
}

/// Whether some row of a sparse matrix has a column twice.
#[pyfunction]
pub(super) fn has_twins<'py>(
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

/// What kernels make of numbers in units of their own.
macro_rules! measured {
    ($($name:ident by $kernel:path),*) => {$(
        #[pyfunction]
        pub(super) fn $name(
            py: Python<'_>,
            columns: &Bound<'_, PyAny>,
            origin: &Bound<'_, PyAny>,
            unit: &Bound<'_, PyAny>,
            classes: &Bound<'_, PyAny>,
            n_classes: i64,
            weights: Option<&Bound<'_, PyAny>>,
            threads: i64,
        ) -> PyResult<(Integers, Integers)> {
            let held_columns = HeldColumns::new(columns)?;
            let columns = held_columns.columns()?;
            let (origin, unit) = (Held::new(origin, "origin", 1)?, Held::new(unit, "unit", 1)?);
            let scale = Scale::new(origin.slice(), unit.slice(), columns.features())?;
            let threads = at_least_one(threads)?;
            let held = HeldRows::new(classes, n_classes, weights)?.on(threads);
            let found = held.with(py, |rows| $kernel(&columns, &scale, rows, threads))?;
            Ok((Integers(found.rows), Integers(found.sums)))
        }
    )*};
}
measured!(count_moments by moments::count_moments, count_products by products::count_products);

#[pyfunction]
pub(super) fn by_class<'py>(
    py: Python<'py>,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
    threads: i64,
) -> PyResult<(Int1<'py>, Int1<'py>)> {
    let threads = at_least_one(threads)?;
    let held = HeldRows::new(classes, n_classes, None)?.on(threads);
    let (order, starts) = held.with(py, |rows| Ok(classes::by_class(rows, threads)))?;
    Ok((order.into_pyarray(py), starts.into_pyarray(py)))
}

#[pyfunction]
pub(super) fn deal<'py>(
    py: Python<'py>,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
    cards: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let (cards, threads) = (Held::<i32>::new(cards, "cards", 1)?, at_least_one(threads)?);
    let held = HeldRows::new(classes, n_classes, None)?.on(threads);
    let cards = cards.slice();
    Ok(held.with(py, |rows| classes::deal(rows, cards, threads))?.into_pyarray(py))
}

/// The numbers of integers above `low`, -1 where they are not below `low + size`.
#[pyfunction]
pub(super) fn shifted<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    low: i64,
    n_values: i64,
    threads: i64,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let held = HeldBlock::new(column)?;
    let (column, n_values, threads) =
        (held.block()?, size(n_values, "n_values")?, at_least_one(threads)?);
    let found = py.detach(|| codes::shifted(&column, low, n_values, threads))?;
    Ok(found.into_pyarray(py))
}

#[pyfunction]
pub(super) fn count_codes(
    py: Python<'_>,
    columns: &Bound<'_, PyAny>,
    low: &Bound<'_, PyAny>,
    size: &Bound<'_, PyAny>,
    classes: &Bound<'_, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'_, PyAny>>,
    threads: i64,
) -> PyResult<(Integers, bool)> {
    let held_columns = HeldColumns::new(columns)?;
    let columns = held_columns.columns()?;
    let (low, size) = (Held::new(low, "low", 1)?, Held::new(size, "size", 1)?);
    let threads = at_least_one(threads)?;
    let held = HeldRows::new(classes, n_classes, weights)?.on(threads);
    let ranges = Ranges::new(low.slice(), size.slice(), columns.features(), held.n_classes)?;
    let (found, outside) =
        held.with(py, |rows| codes::count_codes(&columns, &ranges, rows, threads))?;
    Ok((Integers(found), outside))
}

#[pyfunction]
pub(super) fn count_flags(
    py: Python<'_>,
    columns: &Bound<'_, PyAny>,
    threshold: &Bound<'_, PyAny>,
    classes: &Bound<'_, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'_, PyAny>>,
    threads: i64,
) -> PyResult<Integers> {
    let held_columns = HeldColumns::new(columns)?;
    let columns = held_columns.columns()?;
    let threshold = Held::new(threshold, "threshold", 1)?;
    let thresholds = Thresholds::new(threshold.slice(), columns.features())?;
    let threads = at_least_one(threads)?;
    let held = HeldRows::new(classes, n_classes, weights)?.on(threads);
    let found = held.with(py, |rows| flags::count_flags(&columns, &thresholds, rows, threads))?;
    Ok(Integers(found))
}

#[pyfunction(name = "bins")]
pub(super) fn bins_of<'py>(
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
pub(super) fn span<'py>(
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
pub(super) fn not_counts(py: Python<'_>, columns: &Bound<'_, PyAny>, threads: i64) -> PyResult<()> {
    let held = HeldColumns::new(columns)?;
    let (columns, threads) = (held.columns()?, at_least_one(threads)?);
    Ok(py.detach(|| bins::not_counts(&columns, threads))?)
}
