//! Trees over cells.

use super::arrays::{Held, at_least_one, malformed, shaped};
use super::weighing::{all, columns_of};
use crate::threads;
use crate::trees::{self, Cells, Forest};
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

/// Arrays of all columns, one after the other, and how many cells each column has.
fn parts<'a, T>(flat: &'a [T], sizes: &[i64], width: usize) -> PyResult<Vec<&'a [T]>> {
    let (mut rest, mut found) = (flat, Vec::with_capacity(sizes.len()));
    for &size in sizes {
        let own = rest.split_at_checked(size.max(0) as usize * width);
        let (own, others) =
            own.ok_or_else(|| malformed("columns have more cells than there are"))?;
        found.push(own);
        rest = others;
    }
    Ok(found)
}

/// The leaf of each bin of a column, and rows per leaf and class.
type Joined<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyAny>);

/// Leaves of all columns; `totals` are the rows of each bin.
#[pyfunction]
pub(super) fn leaves_of<'py>(
    py: Python<'py>,
    bins: &Bound<'py, PyAny>,
    totals: &Bound<'py, PyAny>,
    sizes: &Bound<'py, PyAny>,
    most: usize,
    threads: i64,
) -> PyResult<Vec<Joined<'py>>> {
    let (bins, totals) = (Held::new(bins, "bins", 2)?, Held::<f64>::new(totals, "totals", 1)?);
    let (sizes, k, threads) =
        (Held::<i64>::new(sizes, "sizes", 1)?, columns_of(&bins)?, at_least_one(threads)?);
    let bins = parts(bins.slice(), sizes.slice(), k)?;
    let totals = parts(totals.slice(), sizes.slice(), 1)?;
    let found = py.detach(|| {
        threads::try_map(threads, bins.len(), |column| {
            let leaf = trees::quantiles(totals[column], most);
            let cells = trees::grouped(Cells::new(bins[column], k)?, &leaf);
            Ok::<_, crate::error::Error>((leaf, cells))
        })
    })?;
    let each = found.into_iter().map(|(leaf, cells)| {
        let n = cells.len() / k.max(1);
        Ok((leaf.into_pyarray(py), shaped(py, cells, &[n, k])?))
    });
    each.collect()
}

type Levels<'py> = (Bound<'py, PyAny>, (f64, f64));

/// Of all columns the tree of halves, (levels, cells), and its strengths; and those of one that tells the classes apart, if so.
#[pyfunction]
pub(super) fn trees_of<'py>(
    py: Python<'py>,
    cells: &Bound<'py, PyAny>,
    totals: &Bound<'py, PyAny>,
    sizes: &Bound<'py, PyAny>,
    priors: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Vec<(Levels<'py>, Option<Levels<'py>>)>> {
    let (cells, totals) = (Held::new(cells, "cells", 2)?, Held::<f64>::new(totals, "totals", 1)?);
    let (sizes, k, threads) =
        (Held::<i64>::new(sizes, "sizes", 1)?, columns_of(&cells)?, at_least_one(threads)?);
    let priors = Held::<f64>::new(priors, "priors", 2)?;
    let priors: Vec<&[f64]> = priors.slice().chunks_exact(k.max(1)).collect();
    let cells = parts(cells.slice(), sizes.slice(), k)?;
    let totals = parts(totals.slice(), sizes.slice(), 1)?;
    if priors.len() != cells.len() {
        return Err(malformed("each column must have a prior"));
    }
    let found = py.detach(|| {
        threads::try_map(threads, cells.len(), |column| {
            trees::grown(Cells::new(cells[column], k)?, totals[column], priors[column])
        })
    })?;
    let levels = |(levels, strengths): trees::Grown| {
        let shape = [levels.len(), levels[0].len()];
        Ok::<Levels, PyErr>((shaped(py, levels.concat(), &shape)?, strengths.into()))
    };
    let each =
        found.into_iter().map(|(plain, told)| Ok((levels(plain)?, told.map(levels).transpose()?)));
    each.collect()
}

/// Trees of all columns: levels, how many each has, how many cells; and rows per cell and class.
struct HeldForest<'py> {
    levels: Held<'py, i64>,
    depths: Held<'py, i64>,
    sizes: Held<'py, i64>,
    cells: Held<'py, f64>,
}

impl<'py> HeldForest<'py> {
    fn new(trees: &Bound<'py, PyAny>, cells: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (levels, depths, sizes): (Bound<PyAny>, Bound<PyAny>, Bound<PyAny>) =
            trees.extract()?;
        Ok(HeldForest {
            levels: Held::new(&levels, "levels", 1)?,
            depths: Held::new(&depths, "depths", 1)?,
            sizes: Held::new(&sizes, "sizes", 1)?,
            cells: Held::new(cells, "cells", 2)?,
        })
    }

    fn forest(&self) -> PyResult<Forest<'_>> {
        let (levels, depths, sizes) =
            (self.levels.slice(), self.depths.slice(), self.sizes.slice());
        Ok(Forest::new(levels, depths, sizes, cells_of(&self.cells)?)?)
    }
}

/// Shares of the finest cells of all columns, (cells, classes), or (cells, own class, classes); each column has one more.
#[pyfunction]
pub(super) fn forest_shares<'py>(
    py: Python<'py>,
    trees: &Bound<'py, PyAny>,
    cells: &Bound<'py, PyAny>,
    strengths: &Bound<'py, PyAny>,
    prior: &Bound<'py, PyAny>,
    left_out: bool,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (held, threads) = (HeldForest::new(trees, cells)?, at_least_one(threads)?);
    let forest = held.forest()?;
    let strengths = Held::<f64>::new(strengths, "strengths", 2)?;
    let prior = Held::<f64>::new(prior, "prior", 1)?;
    let (strengths, prior) = (strengths.slice(), prior.slice());
    let found = py.detach(|| forest.shares(strengths, prior, left_out, threads))?;
    let k = prior.len();
    let shape = if left_out { vec![found.len() / k / k, k, k] } else { vec![found.len() / k, k] };
    shaped(py, found, &shape)
}

/// How much likelier the rows of each column are by its tree than by the prior alone.
#[pyfunction]
pub(super) fn forest_gains<'py>(
    py: Python<'py>,
    trees: &Bound<'py, PyAny>,
    cells: &Bound<'py, PyAny>,
    told_apart: Vec<bool>,
    prior: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (held, threads) = (HeldForest::new(trees, cells)?, at_least_one(threads)?);
    let (forest, prior) = (held.forest()?, Held::<f64>::new(prior, "prior", 1)?);
    let prior = prior.slice();
    Ok(py.detach(|| forest.gains(&told_apart, prior, threads))?.into_pyarray(py))
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
    let (levels, held) = (all::<i64>(levels, "levels", 1)?, Held::new(cells, "cells", 2)?);
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
    let (levels, held) = (all::<i64>(levels, "levels", 1)?, Held::new(cells, "cells", 2)?);
    let levels: Vec<&[i64]> = levels.iter().map(Held::slice).collect();
    let (cells, prior) = (cells_of(&held)?, Held::<f64>::new(prior, "prior", 1)?);
    let prior = prior.slice();
    let ([first, m], gain) = py.detach(|| trees::strengths(&levels, cells, prior, told_apart))?;
    Ok(((first, m), gain))
}
