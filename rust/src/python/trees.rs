//! Trees over cells.

use super::arrays::{Longs, NumPy, RealTable, Reals, Threads, malformed, shaped};
use crate::error::Error;
use crate::threads;
use crate::trees::{self, Cells, Forest, GrownTree, Levels};
use pyo3::prelude::*;

/// The cells of a column (their indices) before which cutting separates the classes best; `cells` is the number of rows of each
/// class in each cell, (cells, classes).
#[pyfunction]
pub(super) fn cuts_of(py: Python, cells: RealTable) -> PyResult<Vec<usize>> {
    let cells = Cells::new(&cells, cells.width())?;
    Ok(py.detach(|| trees::cut_by_class(cells)))
}

/// Splits `numbers`, those of all columns, one column after the other, into one array for each column, with `width` numbers for
/// each of its cells; `sizes` has the number of cells of each column.
fn split_columns<'a>(numbers: &'a [f64], sizes: &[i64], width: usize) -> PyResult<Vec<&'a [f64]>> {
    Ok(trees::split_columns(numbers, sizes.iter().map(|&size| size.max(0) as usize * width))?)
}

/// (the leaf of each bin of a column, rows (leaves, classes)).
type Leaves = (NumPy<i64>, NumPy<f64>);
/// (the node of each cell, (levels, cells); strengths of the first level and of all later ones).
type Grown = (NumPy<i64>, (f64, f64));
/// (strengths of each tree, how much each gains).
type Strengths = (Vec<[f64; 2]>, NumPy<f64>);

/// Trees of columns: the levels of each.
#[pyclass(frozen, module = "banbury._core")]
pub(super) struct Trees(Vec<Levels>);

impl Trees {
    /// These trees with the rows of their cells, (cells of all trees, classes).
    fn forest<'a>(&'a self, cells: &'a RealTable) -> PyResult<Forest<'a>> {
        Ok(Forest::new(&self.0, Cells::new(cells, cells.width())?)?)
    }
}

#[pymethods]
impl Trees {
    /// `levels` has for each column's tree and each of its levels the node of each cell, a group of cells.
    #[new]
    fn new(levels: Vec<Vec<Longs>>) -> Self {
        let copy = |levels: &Vec<Longs>| levels.iter().map(|nodes| nodes.to_vec()).collect();
        Trees(levels.iter().map(copy).collect())
    }

    /// Joins the neighbouring bins of each column to leaves, at most `most` per column. `bins` is the number of rows of each
    /// class in each bin, (bins of all columns, classes), `totals` the number of rows of each bin, `sizes` the number of bins of
    /// each column. Returns for each column the leaf of each bin, and the number of rows, (leaves, classes).
    #[staticmethod]
    fn leaves(
        py: Python,
        bins: RealTable,
        totals: Reals,
        sizes: Longs,
        most: usize,
        threads: Threads,
    ) -> PyResult<Vec<Leaves>> {
        let n_classes = bins.width();
        let bins = split_columns(&bins, &sizes, n_classes)?;
        let per_bin = 1; // numbers for each bin
        let totals = split_columns(&totals, &sizes, per_bin)?;
        let leaves = py.detach(|| {
            threads::try_map(*threads, bins.len(), |column| {
                let leaves = trees::quantiles(totals[column], most); // the leaf of each bin
                let rows = trees::sum_by_node(Cells::new(bins[column], n_classes)?, &leaves);
                let n_leaves = rows.len() / n_classes;
                Ok::<_, Error>((leaves.into(), shaped(rows, &[n_leaves, n_classes])))
            })
        })?;
        Ok(leaves)
    }

    /// For each column, the tree by halving, that is the node of each cell, (levels, cells), and its strengths, which are how
    /// many rows the shares in a node's parent count; and the same of the tree first cut by the classes, if it is better, else
    /// None. `cells` are numbers of rows (cells of all columns, classes), `totals` the number of rows of each cell, `sizes` the
    /// number of cells of each column, and `priors` the share of each class, (columns, classes).
    #[staticmethod]
    fn grown(
        py: Python,
        cells: RealTable,
        totals: Reals,
        sizes: Longs,
        priors: RealTable,
        threads: Threads,
    ) -> PyResult<Vec<(Grown, Option<Grown>)>> {
        let n_classes = cells.width();
        let priors: Vec<&[f64]> = priors.chunks_exact(n_classes.max(1)).collect();
        let cells = split_columns(&cells, &sizes, n_classes)?;
        let per_cell = 1; // numbers for each cell
        let totals = split_columns(&totals, &sizes, per_cell)?;
        if priors.len() != cells.len() {
            return Err(malformed("priors must have a row for each column"));
        }
        // A tree for Python: the node of each cell, (levels, cells), and the strengths of the first level and of later ones.
        let to_arrays = |tree: GrownTree| {
            let shape = [tree.levels.len(), tree.levels[0].len()];
            (shaped(tree.levels.concat(), &shape), tree.strengths.into())
        };
        let trees = py.detach(|| {
            threads::try_map(*threads, cells.len(), |column| {
                let cells = Cells::new(cells[column], n_classes)?;
                // One by halving alone, and perhaps one that is first cut by the classes.
                let trees = trees::grow(cells, totals[column], priors[column])?;
                Ok::<_, Error>((to_arrays(trees.plain), trees.supervised.map(to_arrays)))
            })
        })?;
        Ok(trees)
    }

    /// Shares of the classes in the cells of all columns, (cells, classes); if `left_out`, without a row of each class in turn,
    /// (cells, row's class, classes). After each column's cells comes the prior, the share of each class. `cells` are numbers of
    /// rows (cells of all columns, classes), `strengths` is (columns, 2), how many rows the shares in a node's parent count: on
    /// the first level and on all later ones.
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
        let shares = py.detach(|| forest.shares(strengths, prior, left_out, *threads))?;
        Ok(shape_shares(shares, prior.len(), left_out))
    }

    /// Shares of the classes in the nodes of every level of a single tree: (nodes, classes); if `left_out`, without a row of each
    /// class in turn, (nodes, row's class, classes). `cells` are numbers of rows (cells, classes), `strengths` how many rows the
    /// shares in a node's parent count, on the first level and on all later ones, and `prior` is the share of each class.
    fn shares_by_level(
        &self,
        cells: RealTable,
        strengths: (f64, f64),
        prior: Reals,
        left_out: bool,
    ) -> PyResult<Vec<NumPy<f64>>> {
        let forest = self.forest(&cells)?;
        let shares_by_level = forest.shares_by_level(strengths.into(), &prior, left_out)?;
        let shape = |shares: Vec<f64>| shape_shares(shares, prior.len(), left_out);
        Ok(shares_by_level.into_iter().map(shape).collect())
    }

    /// The best strengths for each column, which are how many rows the shares in a node's parent count on the first level and on
    /// later ones, and the log likelihood of the column's rows minus that under the prior alone, the share of each class. `cells`
    /// are numbers of rows (cells of all columns, classes). `told_apart`: whether each column's first level was cut where the
    /// classes differ.
    fn strengths(
        &self,
        py: Python,
        cells: RealTable,
        told_apart: Vec<bool>,
        prior: Reals,
        threads: Threads,
    ) -> PyResult<Strengths> {
        let (forest, prior) = (self.forest(&cells)?, &*prior);
        let chosen = py.detach(|| forest.choose_strengths(&told_apart, prior, *threads))?;
        // The log likelihoods beyond the prior's are the gains.
        let (strengths, gains): (Vec<_>, Vec<_>) =
            chosen.into_iter().map(|chosen| (chosen.strengths, chosen.gain)).unzip();
        Ok((strengths, gains.into()))
    }
}

/// Shares of classes, node after node, as an array (nodes, classes), or, without one row of each class in turn, (nodes, row's
/// class, classes) if `left_out`.
fn shape_shares(shares: Vec<f64>, n_classes: usize, left_out: bool) -> NumPy<f64> {
    let n_distributions = shares.len() / n_classes; // each has a share for every class
    match left_out {
        true => shaped(shares, &[n_distributions / n_classes, n_classes, n_classes]),
        false => shaped(shares, &[n_distributions, n_classes]),
    }
}
