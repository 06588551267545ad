//! Trees over cells.

use super::arrays::{Held, at_least_one, malformed, shaped};
use super::weighing::columns_of;
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
type Levels<'py> = (Bound<'py, PyAny>, (f64, f64));
type Strengths<'py> = (Vec<[f64; 2]>, Bound<'py, PyArray1<f64>>);

/// Trees of columns: levels, one column's after another's, how many each has, and how many cells.
#[pyclass(frozen, module = "banbury._core")]
pub(super) struct Trees {
    levels: Vec<i64>,
    depths: Vec<i64>,
    sizes: Vec<i64>,
}

impl Trees {
    fn forest<'a>(&'a self, cells: &'a Held<'_, f64>) -> PyResult<Forest<'a>> {
        Ok(Forest::new(&self.levels, &self.depths, &self.sizes, cells_of(cells)?)?)
    }
}

#[pymethods]
impl Trees {
    #[new]
    fn new(
        levels: &Bound<'_, PyAny>,
        depths: &Bound<'_, PyAny>,
        sizes: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let [levels, depths, sizes] = [(levels, "levels"), (depths, "depths"), (sizes, "sizes")]
            .map(|(array, name)| {
                Ok::<_, PyErr>(Held::<i64>::new(array, name, 1)?.slice().to_vec())
            });
        Ok(Trees { levels: levels?, depths: depths?, sizes: sizes? })
    }

    /// Leaves of all columns; `totals` are the rows of each bin.
    #[staticmethod]
    fn leaves<'py>(
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

    /// Of all columns the tree of halves, (levels, cells), and its strengths; and those of one that tells the classes apart, if so.
    #[staticmethod]
    fn grown<'py>(
        py: Python<'py>,
        cells: &Bound<'py, PyAny>,
        totals: &Bound<'py, PyAny>,
        sizes: &Bound<'py, PyAny>,
        priors: &Bound<'py, PyAny>,
        threads: i64,
    ) -> PyResult<Vec<(Levels<'py>, Option<Levels<'py>>)>> {
        let (cells, totals) =
            (Held::new(cells, "cells", 2)?, Held::<f64>::new(totals, "totals", 1)?);
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
        let each = found
            .into_iter()
            .map(|(plain, told)| Ok((levels(plain)?, told.map(levels).transpose()?)));
        each.collect()
    }

    /// Shares of the finest cells of all columns, (cells, classes), or (cells, own class, classes); each column has one more.
    fn shares<'py>(
        &self,
        py: Python<'py>,
        cells: &Bound<'py, PyAny>,
        strengths: &Bound<'py, PyAny>,
        prior: &Bound<'py, PyAny>,
        left_out: bool,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (cells, threads) = (Held::new(cells, "cells", 2)?, at_least_one(threads)?);
        let forest = self.forest(&cells)?;
        let strengths = Held::<f64>::new(strengths, "strengths", 2)?;
        let prior = Held::<f64>::new(prior, "prior", 1)?;
        let (strengths, prior) = (strengths.slice(), prior.slice());
        let found = py.detach(|| forest.shares(strengths, prior, left_out, threads))?;
        shaped_shares(py, found, prior.len(), left_out)
    }

    /// Those of the nodes of every level, of one tree.
    fn shares_by_level<'py>(
        &self,
        py: Python<'py>,
        cells: &Bound<'py, PyAny>,
        strengths: (f64, f64),
        prior: &Bound<'py, PyAny>,
        left_out: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (cells, prior) = (Held::new(cells, "cells", 2)?, Held::<f64>::new(prior, "prior", 1)?);
        let found =
            self.forest(&cells)?.shares_by_level(strengths.into(), prior.slice(), left_out)?;
        let k = prior.slice().len();
        found.into_iter().map(|level| shaped_shares(py, level, k, left_out)).collect()
    }

    /// The strengths that are best for the rows of each column, and how much likelier they are by its tree than by the prior alone.
    fn strengths<'py>(
        &self,
        py: Python<'py>,
        cells: &Bound<'py, PyAny>,
        told_apart: Vec<bool>,
        prior: &Bound<'py, PyAny>,
        threads: i64,
    ) -> PyResult<Strengths<'py>> {
        let (cells, threads) = (Held::new(cells, "cells", 2)?, at_least_one(threads)?);
        let (forest, prior) = (self.forest(&cells)?, Held::<f64>::new(prior, "prior", 1)?);
        let prior = prior.slice();
        let found = py.detach(|| forest.strengths(&told_apart, prior, threads))?;
        let (strengths, gains): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        Ok((strengths, gains.into_pyarray(py)))
    }
}

fn shaped_shares<'py>(
    py: Python<'py>,
    shares: Vec<f64>,
    k: usize,
    left_out: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let shape = if left_out { vec![shares.len() / k / k, k, k] } else { vec![shares.len() / k, k] };
    shaped(py, shares, &shape)
}
