//! Trees over cells.

use super::arrays::{Longs, NumPy, RealTable, Reals, Threads, malformed, shaped};
use crate::threads;
use crate::trees::{self, Cells, Forest};
use pyo3::prelude::*;

#[pyfunction]
pub(super) fn cuts_of(py: Python, cells: RealTable) -> PyResult<Vec<usize>> {
    let cells = Cells::new(&cells, cells.width())?;
    Ok(py.detach(|| trees::cuts(cells)))
}

/// The parts of each column in an array of all columns, `width` numbers for each of its cells.
fn split<'a, T>(flat: &'a [T], sizes: &[i64], width: usize) -> PyResult<Vec<&'a [T]>> {
    Ok(trees::split(flat, sizes.iter().map(|&size| size.max(0) as usize * width))?)
}

/// The leaf of each bin of a column, and rows per leaf and class.
type Joined = (NumPy<i64>, NumPy<f64>);
type Levels = (NumPy<i64>, (f64, f64));
type Strengths = (Vec<[f64; 2]>, NumPy<f64>);

/// Trees of columns: the levels of all columns, one column after the other, and how many levels and cells each has.
#[pyclass(frozen, module = "banbury._core")]
pub(super) struct Trees {
    levels: Vec<i64>,
    depths: Vec<i64>,
    sizes: Vec<i64>,
}

impl Trees {
    fn forest<'a>(&'a self, cells: &'a RealTable) -> PyResult<Forest<'a>> {
        let cells = Cells::new(cells, cells.width())?;
        Ok(Forest::new(&self.levels, &self.depths, &self.sizes, cells)?)
    }
}

#[pymethods]
impl Trees {
    #[new]
    fn new(levels: Longs, depths: Longs, sizes: Longs) -> Self {
        Trees { levels: levels.to_vec(), depths: depths.to_vec(), sizes: sizes.to_vec() }
    }

    /// The leaves of all columns; `totals` is the number of rows of each bin.
    #[staticmethod]
    fn leaves(
        py: Python,
        bins: RealTable,
        totals: Reals,
        sizes: Longs,
        most: usize,
        threads: Threads,
    ) -> PyResult<Vec<Joined>> {
        let k = bins.width();
        let bins = split(&bins, &sizes, k)?;
        let totals = split(&totals, &sizes, 1)?;
        let found = py.detach(|| {
            threads::try_map(*threads, bins.len(), |column| {
                let leaf = trees::quantiles(totals[column], most);
                let cells = trees::sum_by_node(Cells::new(bins[column], k)?, &leaf);
                Ok::<_, crate::error::Error>((leaf, cells))
            })
        })?;
        let each = found.into_iter().map(|(leaf, cells)| {
            let n = cells.len() / k.max(1);
            Ok((leaf.into(), shaped(cells, &[n, k])))
        });
        each.collect()
    }

    /// For each column, the tree by halving, (levels, cells), and its strengths; and those of the tree cut by the classes, if it
    /// is better.
    #[staticmethod]
    fn grown(
        py: Python,
        cells: RealTable,
        totals: Reals,
        sizes: Longs,
        priors: RealTable,
        threads: Threads,
    ) -> PyResult<Vec<(Levels, Option<Levels>)>> {
        let k = cells.width();
        let priors: Vec<&[f64]> = priors.chunks_exact(k.max(1)).collect();
        let cells = split(&cells, &sizes, k)?;
        let totals = split(&totals, &sizes, 1)?;
        if priors.len() != cells.len() {
            return Err(malformed("each column must have a prior"));
        }
        let found = py.detach(|| {
            threads::try_map(*threads, cells.len(), |column| {
                trees::grow(Cells::new(cells[column], k)?, totals[column], priors[column])
            })
        })?;
        let levels = |(levels, strengths): trees::Grown| {
            let shape = [levels.len(), levels[0].len()];
            Ok::<Levels, PyErr>((shaped(levels.concat(), &shape), strengths.into()))
        };
        let each = found
            .into_iter()
            .map(|(plain, supervised)| Ok((levels(plain)?, supervised.map(levels).transpose()?)));
        each.collect()
    }

    /// Shares of the classes in the cells of all columns, (cells, classes), or (cells, row's class, classes); after each column's
    /// cells the prior.
    fn shares(
        &self,
        py: Python,
        cells: RealTable,
        strengths: RealTable,
        prior: Reals,
        left_out: bool,
        threads: Threads,
    ) -> PyResult<NumPy<f64>> {
        let forest = self.forest(&cells)?;
        let (strengths, prior) = (&*strengths, &*prior);
        let found = py.detach(|| forest.shares(strengths, prior, left_out, *threads))?;
        Ok(shaped_shares(found, prior.len(), left_out))
    }

    /// Shares of the classes in the nodes of every level of a single tree.
    fn shares_by_level(
        &self,
        cells: RealTable,
        strengths: (f64, f64),
        prior: Reals,
        left_out: bool,
    ) -> PyResult<Vec<NumPy<f64>>> {
        let forest = self.forest(&cells)?;
        let (found, k) = (forest.shares_by_level(strengths.into(), &prior, left_out)?, prior.len());
        Ok(found.into_iter().map(|level| shaped_shares(level, k, left_out)).collect())
    }

    /// The best strengths for each column, and the log likelihood of its rows minus that under the prior alone.
    fn strengths(
        &self,
        py: Python,
        cells: RealTable,
        told_apart: Vec<bool>,
        prior: Reals,
        threads: Threads,
    ) -> PyResult<Strengths> {
        let (forest, prior) = (self.forest(&cells)?, &*prior);
        let found = py.detach(|| forest.strengths(&told_apart, prior, *threads))?;
        let (strengths, gains): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        Ok((strengths, gains.into()))
    }
}

fn shaped_shares(shares: Vec<f64>, k: usize, left_out: bool) -> NumPy<f64> {
    let shape = if left_out { vec![shares.len() / k / k, k, k] } else { vec![shares.len() / k, k] };
    shaped(shares, &shape)
}
