//! Trees over cells.

use super::arrays::{Held, malformed, shaped};
use super::weighing::all;
use crate::trees::{self, Cells};
use numpy::{IntoPyArray, PyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

fn cells_of<'a>(held: &'a Held<'_, f64>) -> PyResult<Cells<'a>> {
    let [_, n_classes] = held.array.shape() else {
        return Err(malformed("cells must be cells × classes"));
    };
    Ok(Cells::new(held.slice(), *n_classes)?)
}

#[pyfunction]
pub(super) fn cuts_of(py: Python<'_>, cells: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let held = Held::new(cells, "cells", 2)?;
    let cells = cells_of(&held)?;
    Ok(py.detach(|| trees::cuts(cells)))
}

#[pyfunction]
pub(super) fn tree_levels<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    first: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyArray1<i64>>>> {
    let rows = Held::<f64>::new(rows, "rows", 1)?;
    let first = first.map(|first| Held::<i64>::new(first, "first", 1)).transpose()?;
    let levels = trees::halved(rows.slice(), first.as_ref().map(Held::slice))?;
    Ok(levels.into_iter().map(|level| level.into_pyarray(py)).collect())
}

#[pyfunction]
pub(super) fn tree_shares<'py>(
    py: Python<'py>,
    levels: &Bound<'py, PyAny>,
    cells: &Bound<'py, PyAny>,
    strengths: (f64, f64),
    prior: &Bound<'py, PyAny>,
    left_out: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (levels, held) = (all::<i64>(levels, "levels")?, Held::new(cells, "cells", 2)?);
    let levels: Vec<&[i64]> = levels.iter().map(Held::slice).collect();
    let (cells, prior) = (cells_of(&held)?, Held::<f64>::new(prior, "prior", 1)?);
    let k = prior.slice().len();
    let found = trees::shares(&levels, cells, strengths.into(), prior.slice(), left_out)?;
    let shape = |n: usize| if left_out { vec![n / k / k, k, k] } else { vec![n / k, k] };
    let each = found.into_iter().map(|share| {
        let shape = shape(share.len());
        shaped(py, share, &shape)
    });
    each.collect()
}

#[pyfunction]
pub(super) fn tree_strengths<'py>(
    py: Python<'py>,
    levels: &Bound<'py, PyAny>,
    cells: &Bound<'py, PyAny>,
    prior: &Bound<'py, PyAny>,
    told_apart: bool,
) -> PyResult<((f64, f64), f64)> {
    let (levels, held) = (all::<i64>(levels, "levels")?, Held::new(cells, "cells", 2)?);
    let levels: Vec<&[i64]> = levels.iter().map(Held::slice).collect();
    let (cells, prior) = (cells_of(&held)?, Held::<f64>::new(prior, "prior", 1)?);
    let prior = prior.slice();
    let ([first, m], gain) = py.detach(|| trees::strengths(&levels, cells, prior, told_apart))?;
    Ok(((first, m), gain))
}
