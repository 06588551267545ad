//! Trees over cells.

use super::arrays::{Longs, RealTable, Reals, Threads, malformed, shaped};
use crate::threads;
use crate::trees::{self, Cells, Forest};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

#[pyfunction]
pub(super) fn cuts_of(py: Python<'_>, cells: RealTable<'_>) -> PyResult<Vec<usize>> {
    let cells = Cells::new(&cells, cells.width())?;
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
    fn forest<'a>(&'a self, cells: &'a RealTable) -> PyResult<Forest<'a>> {
        let cells = Cells::new(cells, cells.width())?;
        Ok(Forest::new(&self.levels, &self.depths, &self.sizes, cells)?)
    }
}

#[pymethods]
impl Trees {
    #[new]
    fn new(levels: Longs<'_>, depths: Longs<'_>, sizes: Longs<'_>) -> Self {
        Trees { levels: levels.to_vec(), depths: depths.to_vec(), sizes: sizes.to_vec() }
    }

    /// Leaves of all columns; `totals` are the rows of each bin.
    #[staticmethod]
    fn leaves<'py>(
        py: Python<'py>,
        bins: RealTable<'py>,
        totals: Reals<'py>,
        sizes: Longs<'py>,
        most: usize,
        threads: Threads,
    ) -> PyResult<Vec<Joined<'py>>> {
        let k = bins.width();
        let bins = parts(&bins, &sizes, k)?;
        let totals = parts(&totals, &sizes, 1)?;
        let found = py.detach(|| {
            threads::try_map(*threads, bins.len(), |column| {
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
        cells: RealTable<'py>,
        totals: Reals<'py>,
        sizes: Longs<'py>,
        priors: RealTable<'py>,
        threads: Threads,
    ) -> PyResult<Vec<(Levels<'py>, Option<Levels<'py>>)>> {
        let k = cells.width();
        let priors: Vec<&[f64]> = priors.chunks_exact(k.max(1)).collect();
        let cells = parts(&cells, &sizes, k)?;
        let totals = parts(&totals, &sizes, 1)?;
        if priors.len() != cells.len() {
            return Err(malformed("each column must have a prior"));
        }
        let found = py.detach(|| {
            threads::try_map(*threads, cells.len(), |column| {
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
        cells: RealTable<'py>,
        strengths: RealTable<'py>,
        prior: Reals<'py>,
        left_out: bool,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyAny>> {
        let forest = self.forest(&cells)?;
        let (strengths, prior) = (&*strengths, &*prior);
        let found = py.detach(|| forest.shares(strengths, prior, left_out, *threads))?;
        shaped_shares(py, found, prior.len(), left_out)
    }

    /// Those of the nodes of every level, of one tree.
    fn shares_by_level<'py>(
        &self,
        py: Python<'py>,
        cells: RealTable<'py>,
        strengths: (f64, f64),
        prior: Reals<'py>,
        left_out: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let forest = self.forest(&cells)?;
        let (found, k) = (forest.shares_by_level(strengths.into(), &prior, left_out)?, prior.len());
        found.into_iter().map(|level| shaped_shares(py, level, k, left_out)).collect()
    }

    /// The strengths that are best for the rows of each column, and how much likelier they are by its tree than by the prior alone.
    fn strengths<'py>(
        &self,
        py: Python<'py>,
        cells: RealTable<'py>,
        told_apart: Vec<bool>,
        prior: Reals<'py>,
        threads: Threads,
    ) -> PyResult<Strengths<'py>> {
        let (forest, prior) = (self.forest(&cells)?, &*prior);
        let found = py.detach(|| forest.strengths(&told_apart, prior, *threads))?;
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
