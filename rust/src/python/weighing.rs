//! Numbers by leading bits, and passes over rows of cells.

use super::arrays::{
    Array, Changed, Codes as Labels, HeldColumns, HeldRows, Ids as Order, Longs as Offsets, NumPy,
    RealTable as Table, Reals, RowWeights, Threads, malformed, named, shaped,
};
use super::integers::Integers;
use crate::error::Error;
use crate::leading;
use crate::score::cells::Plan;
use crate::weighing::ascent::TrainingRows;
use crate::weighing::{self, Cells, Evidence, Group, Lookups, alike, pairs, tables};
use pyo3::prelude::*;
use std::sync::OnceLock;

type Codes<'py> = Array<'py, u32, 2>;

/// Of a column: its keys, the weight of the rows (keys, classes), and how many bits of keys were dropped.
type Counted = (NumPy<i64>, Integers, u32);

/// Counts the rows of each class by the leading bits of each column's numbers: of each key, the bits of a number, as many bits as
/// the column has in `shifts` are dropped, and as few more as leave at most `most` distinct keys. `classes` has the class of each
/// row, -1 if it is not counted, below `n_classes`; weights of rows are 1 if there are none. Returns for each column the keys,
/// the weight of the rows (keys, classes), and how many bits were dropped.
#[pyfunction]
pub(super) fn count_leading(
    py: Python,
    columns: HeldColumns,
    shifts: Offsets,
    most: usize,
    classes: Labels,
    n_classes: i64,
    weights: Option<RowWeights>,
    threads: Threads,
) -> PyResult<Vec<Counted>> {
    let (columns, shifts) = (columns.columns()?, &*shifts);
    // The classes and weights of rows; classes are checked on one thread.
    let held_rows = HeldRows::new(classes, n_classes, weights, 1)?;
    let counts = held_rows
        .with(py, |rows| leading::count_leading(&columns, shifts, most, rows, *threads))?;
    let counts_of_columns = counts.into_iter();
    let arrays =
        counts_of_columns.map(|counts| (counts.keys.into(), Integers(counts.cells), counts.shift));
    Ok(arrays.collect())
}

/// The cell of each number, (rows, columns): how many of its column's cuts are not above it; the number of cuts plus 1 for a
/// missing number. `cuts` has the cuts of each column, ascending.
#[pyfunction(name = "steps")]
pub(super) fn steps_of(
    py: Python,
    columns: HeldColumns,
    cuts: Vec<Reals>,
    threads: Threads,
) -> PyResult<NumPy<u16>> {
    let columns = columns.columns()?;
    let cuts: Vec<&[f64]> = cuts.iter().map(|cuts| &**cuts).collect();
    let cells = py.detach(|| leading::steps(&columns, &cuts, *threads))?;
    Ok(shaped(cells, &[columns.rows().unwrap_or(0), columns.features()]))
}

/// Adds up the weights of rows in each cell of every column, by class: (cells of all columns, classes). `codes` are (rows,
/// columns), and `sizes` the number of cells of each column; a code equal to that has no cell. `labels` has the class of each
/// row, and `weights` what each row counts.
#[pyfunction]
pub(super) fn count_cells(
    py: Python,
    codes: Codes,
    sizes: Offsets,
    labels: Labels,
    weights: Reals,
    n_classes: usize,
    threads: Threads,
) -> PyResult<NumPy<f64>> {
    let cells = Cells::new(&codes, codes.width())?;
    let (sizes, labels, weights) = (&*sizes, &*labels, &*weights);
    // The weights of rows, [cell][class].
    let sums = py.detach(|| cells.count(sizes, labels, weights, n_classes, *threads))?;
    let n_cells = sums.len() / n_classes.max(1);
    Ok(shaped(sums, &[n_cells, n_classes]))
}

/// The terms of a column or pair: the column, the cells of its codes (codes, levels), the second column or -1 and what its codes
/// add (codes, levels), and the number of cells of each level.
type HeldGroup<'py> = (usize, Codes<'py>, i64, Codes<'py>, Vec<i64>);
/// [`HeldGroup`] as it is handed to Python.
type GroupArrays = (usize, NumPy<u32>, i64, NumPy<u32>, Vec<usize>);

/// Which cell a row has in each term. Every level of a column or pair is a term.
#[pyclass(frozen, module = "banbury._core")]
pub(super) struct Terms(weighing::Terms, OnceLock<Plan>);

impl Terms {
    /// Joins the terms, in each of which a row has a cell, and rows with these codes of columns, (rows, columns).
    fn of<'a>(&'a self, codes: &'a Codes) -> PyResult<Lookups<'a>> {
        Ok(self.0.of(Cells::new(codes, codes.width())?)?)
    }

    /// The terms, and how their cells are found where rows are scored.
    pub(super) fn planned(&self) -> (&weighing::Terms, &Plan) {
        (&self.0, self.1.get_or_init(|| Plan::of(&self.0)))
    }
}

#[pymethods]
impl Terms {
    /// `groups` are columns and pairs of columns; the terms are numbered group after group, level after level. A group is
    /// (column, cells of its codes, second column or -1, what the codes of that add to cells, number of cells of each level).
    #[new]
    fn new(groups: Vec<HeldGroup>) -> PyResult<Self> {
        // `first` and `second` are what codes of the first and of the second column add to cells, (codes, levels), `other` is the
        // second column or -1, and `sizes` has the number of cells of each level.
        let core_groups = groups.iter().map(|(column, first, other, second, sizes)| {
            let other = usize::try_from(*other).ok().map(|other| (other, second.to_vec()));
            if first.width() != sizes.len() || other.is_some() && second.width() != sizes.len() {
                return Err(malformed("each level must have a size"));
            }
            Ok(Group { column: *column, levels: sizes.len(), first: first.to_vec(), other })
        });
        let sizes: Vec<i64> = groups.iter().flat_map(|group| &group.4).copied().collect();
        Ok(Terms(
            weighing::Terms::new(core_groups.collect::<PyResult<_>>()?, &sizes)?,
            OnceLock::new(),
        ))
    }

    /// Columns and pairs, as the constructor takes them: (column, cells of its codes (codes, levels), second column or -1, what
    /// the codes of that add to cells (codes, levels), number of cells of each level).
    #[getter]
    fn groups(&self) -> Vec<GroupArrays> {
        // Cells as an array (codes, levels).
        let as_table =
            |cells: &[u32], levels| shaped(cells.to_vec(), &[cells.len() / levels, levels]);
        let groups = self.0.groups().iter().enumerate().map(|(number, group)| {
            let (other, second) = match &group.other {
                Some((column, cells)) => (*column as i64, as_table(cells, group.levels)),
                // There is no second column, so an empty table.
                None => (-1, as_table(&[], 1)),
            };
            (
                group.column,
                as_table(&group.first, group.levels),
                other,
                second,
                self.0.sizes(number),
            )
        });
        groups.collect()
    }

    /// What pickle passes to the constructor: the groups.
    fn __getnewargs__(&self) -> (Vec<GroupArrays>,) {
        (self.groups(),)
    }

    /// (the column, the second column of a pair or -1) of each group, which is a column or a pair of columns.
    #[getter]
    fn columns(&self) -> Vec<(usize, i64)> {
        let second_column =
            |group: &Group| group.other.as_ref().map_or(-1, |(column, _)| *column as i64);
        self.0.groups().iter().map(|group| (group.column, second_column(group))).collect()
    }

    /// The number of cells of all terms.
    #[getter]
    fn n_cells(&self) -> usize {
        self.0.size()
    }

    /// The number of terms.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The score of each row, (rows, classes): `intercepts`, (classes,), plus Σ weight of the term · evidence of the row's cell,
    /// in nats. `codes` are (rows, columns), `weights` (terms,), and `table` has the evidence, (cells of all terms, classes).
    /// With `own`, the class of each row, rows are left out, and it is (cells, class of the row, classes).
    fn scores(
        &self,
        py: Python,
        codes: Codes,
        table: Reals,
        weights: Reals,
        intercepts: Reals,
        own: Option<Labels>,
        threads: Threads,
    ) -> PyResult<NumPy<f64>> {
        let (lookups, n_classes) = (self.of(&codes)?, intercepts.len());
        let evidence = Evidence { table: &table, classes: n_classes, row_classes: own.as_deref() };
        let (weights, intercepts) = (&*weights, &*intercepts);
        let scores =
            py.detach(|| weighing::scores(&lookups, &evidence, weights, intercepts, *threads))?;
        Ok(shaped(scores, &[lookups.rows(), n_classes]))
    }

    /// The evidence of each term for each row beyond that for the last class, in nats, (rows, classes - 1, terms + given);
    /// `given` is how many terms more there are, the last ones, which are left at 0. `codes` are (rows, columns), `own` has the
    /// class of each row, and `table` the evidence of cells without the row, (cells of all terms, class of the row, classes).
    fn evidence(
        &self,
        py: Python,
        codes: Codes,
        table: Reals,
        n_classes: usize,
        own: Labels,
        given: usize,
        threads: Threads,
    ) -> PyResult<NumPy<f32>> {
        let lookups = self.of(&codes)?;
        let evidence = Evidence { table: &table, classes: n_classes, row_classes: Some(&own) };
        let nats =
            py.detach(|| weighing::evidence_of_rows(&lookups, &evidence, given, *threads))?;
        Ok(shaped(nats, &[lookups.rows(), n_classes.saturating_sub(1), self.0.len() + given]))
    }

    /// Runs passes over rows that improve, in place, `mu`, the probabilities of classes, (rows, classes), and the corrections of
    /// cells in `table`, (cells of all terms, classes). `codes` are (rows, columns).
    fn correct(
        &self,
        py: Python,
        codes: Codes,
        passes: &Passes,
        mut mu: Changed<f64>,
        mut table: Changed<f64>,
    ) -> PyResult<()> {
        let (lookups, mu, table) = (self.of(&codes)?, mu.slice(), table.slice());
        passes.run(py, |rows, order| tables::ascend(&lookups, rows, order, mu, table))
    }

    /// Σ s² over the terms in which two rows have the same cell, (rows, rows); s² is how much a term's cells may vary. `codes`
    /// are (rows, columns).
    fn alike(&self, py: Python, codes: Codes, threads: Threads) -> PyResult<NumPy<f64>> {
        let lookups = self.of(&codes)?;
        // Σ s² of what two rows share.
        let shared = py.detach(|| alike::alike(&lookups, *threads));
        Ok(shaped(shared, &[lookups.rows(), lookups.rows()]))
    }

    /// The corrections of the cells of all terms, (cells, classes), from the surprise of rows, C (y − μ), (rows, classes), where
    /// y is 1 for the class of a row and μ its probability. `codes` are (rows, columns).
    fn spread(&self, py: Python, codes: Codes, surprise: Table) -> PyResult<NumPy<f64>> {
        let (lookups, n_classes, surprise) = (self.of(&codes)?, surprise.width(), &*surprise);
        let corrections = py.detach(|| alike::spread(&lookups, surprise))?;
        Ok(shaped(corrections, &[self.0.size(), n_classes]))
    }
}

/// Returns the log loss of all rows under weights of terms and intercepts of classes, and its slope along each weight, then along
/// each intercept, (terms + classes,). `evidence`, in nats, is (rows, classes - 1, terms), relative to the last class; `weights`
/// is (terms,), `intercepts` (classes,); `labels` has the class of each row, and `row_weights` what it counts.
#[pyfunction]
pub(super) fn weighed_slope(
    py: Python,
    evidence: Array<f32, 3>,
    weights: Reals,
    intercepts: Reals,
    labels: Labels,
    row_weights: Reals,
    threads: Threads,
) -> PyResult<(f64, NumPy<f64>)> {
    let rows = weighing::EvidenceMatrix {
        evidence: &evidence,
        labels: &labels,
        row_weights: &row_weights,
    };
    let (weights, intercepts) = (&*weights, &*intercepts);
    let (loss, slopes) = py.detach(|| weighing::slope(&rows, weights, intercepts, *threads))?;
    Ok((loss, slopes.into()))
}

/// Passes over rows that learn corrections.
#[pyclass(frozen, module = "banbury._core")]
pub(super) struct Passes {
    /// C times the weight of each row, (rows,).
    strengths: Py<PyAny>,
    /// The scores before corrections, (rows, classes).
    offsets: Py<PyAny>,
    /// The rows in the order of each pass.
    orders: Vec<Py<PyAny>>,
    /// The mean change of μ at which passes end.
    enough: f64,
}

#[pymethods]
impl Passes {
    /// Keeps the arrays, which are checked by `run`: `strengths`, (rows,), C times the weight of each row; `offsets`, (rows,
    /// classes), scores before corrections; `orders`, the rows in the order of each pass; and `enough`, the mean change of the
    /// probabilities μ at which passes end.
    #[new]
    fn new(strengths: Py<PyAny>, offsets: Py<PyAny>, orders: Vec<Py<PyAny>>, enough: f64) -> Self {
        Passes { strengths, offsets, orders, enough }
    }
}

impl Passes {
    /// Runs one pass over the rows after another, each in its order, until μ, the probabilities of classes, changes by less than
    /// `enough` per row. `pass` visits rows in an order (their numbers), and returns the mean change of μ. `orders` has the order
    /// of each pass.
    pub(super) fn run(
        &self,
        py: Python,
        mut pass: impl FnMut(&TrainingRows, &[u32]) -> Result<f64, Error> + Send,
    ) -> PyResult<()> {
        // C times the weight of each row, and the scores of rows before corrections, (rows, classes).
        let strengths: Reals = named(self.strengths.bind(py), "strengths")?;
        let offsets: Table = named(self.offsets.bind(py), "offsets")?;
        let orders = self.orders.iter().map(|order| named(order.bind(py), "orders"));
        let orders = orders.collect::<PyResult<Vec<Order>>>()?;
        let orders: Vec<&[u32]> = orders.iter().map(|order| &**order).collect();
        let rows =
            TrainingRows { strengths: &strengths, offsets: &offsets, classes: offsets.width() };
        Ok(py.detach(|| {
            for order in orders {
                if pass(&rows, order)? < self.enough {
                    break;
                }
            }
            Ok::<_, Error>(())
        })?)
    }
}

/// Runs passes over rows that improve `mu`, the probabilities of classes, (rows, classes), in place, without a table of cells:
/// `alike` has Σ s² over the cells that two rows share, (rows, rows), where s² is how much a cell may vary. `labels` has the
/// class of each row.
#[pyfunction]
pub(super) fn correct_alike(
    py: Python,
    alike: Table,
    labels: Labels,
    passes: &Passes,
    mut mu: Changed<f64>,
) -> PyResult<()> {
    let (alike, labels, mu) = (&*alike, &*labels, mu.slice());
    passes.run(py, |rows, order| alike::ascend(alike, labels, rows, order, mu))
}

/// Returns the least log loss, in nats, of scores, (rows, classes), times a factor, and that factor, which is at most `most`;
/// `ridge` times the square of its distance to 1 is added to the loss. `labels` has the class of each row, and `row_weights` what
/// it counts.
#[pyfunction]
pub(super) fn tempered(
    py: Python,
    scores: Array<f32, 2>,
    labels: Labels,
    row_weights: Reals,
    ridge: f64,
    most: f64,
    threads: Threads,
) -> PyResult<(f64, f64)> {
    let (scores, labels, weights) = (&*scores, &*labels, &*row_weights);
    Ok(py
        .detach(|| weighing::least_tempered_loss(scores, labels, weights, ridge, most, *threads))?)
}

// Pairs

/// Codes (rows, columns), the label and the weight of each row, and the prior of each class.
type HeldPairRows<'py> = (Codes<'py>, Labels<'py>, Reals<'py>, Reals<'py>);

/// Of a column: the fine node of each code; the coarse node of each fine one; p(class | node), (nodes, classes), coarse and fine;
/// and the same without a row of class `own`, (nodes, own, classes).
type HeldNodes<'py> =
    (Order<'py>, Order<'py>, Table<'py>, Table<'py>, Array<'py, f64, 3>, Array<'py, f64, 3>);

/// Rows and the nodes of their columns, groups of codes, as the core takes them. A row has codes, `[column]`, a label (its class)
/// and a weight; the prior is P(class). A column has the fine node of each code, the coarse node of each fine one, p(class |
/// node) of coarse and of fine nodes, (nodes, classes), and the same without a row of each class, (nodes, class of the row,
/// classes).
fn paired<'a>(
    (codes, labels, weights, prior): &'a HeldPairRows,
    nodes: &'a [HeldNodes],
) -> PyResult<pairs::Columns<'a>> {
    // P(class | node) of coarse and fine nodes, and the same without a row of each class.
    let nodes = nodes.iter().map(
        |(fine, coarse, coarse_shares, fine_shares, coarse_left_out, fine_left_out)| pairs::Nodes {
            fine,
            coarse,
            shares: [coarse_shares, fine_shares],
            left_out: [coarse_left_out, fine_left_out],
        },
    );
    let cells = Cells::new(codes, codes.width())?;
    Ok(pairs::Columns { cells, labels, weights, prior, nodes: nodes.collect() })
}

/// Of each pair of columns (their indices), (pairs, 4): the nats that the pair gains over its columns apart; that one of the
/// `strengths` of the prior, in rows, that gains most; and the slope and the curvature of the log likelihood along the pair's
/// weight. `rows` has codes, labels (classes), weights and the prior; `nodes` are groups of codes, coarse and fine, of each
/// column; `posteriors` are P(class) of each row by the scores so far, (rows, classes).
#[pyfunction]
pub(super) fn pair_gains(
    py: Python,
    rows: HeldPairRows,
    nodes: Vec<HeldNodes>,
    pairs: Vec<[usize; 2]>,
    strengths: Reals,
    posteriors: Table,
    threads: Threads,
) -> PyResult<NumPy<f64>> {
    let columns = paired(&rows, &nodes)?;
    let (strengths, posteriors) = (&*strengths, &*posteriors);
    let gains = py.detach(|| columns.gains(&pairs, strengths, posteriors, *threads))?;
    // m is the strength of the prior.
    let numbers = gains.iter().flat_map(|gain| [gain.nats, gain.m, gain.slope, gain.curvature]);
    Ok(shaped(numbers.collect::<Vec<f64>>(), &[gains.len(), 4]))
}

/// Of each pair of columns (their indices) under its strength of the prior, in rows: δ, what the pair adds to the evidence of its
/// columns, in nats, (cells × classes), and δ without a row, (cells × class of the row × classes), both flat. `rows` has codes,
/// labels (classes), weights and the prior; `nodes` are groups of codes, coarse and fine, of each column; a cell is a pair of
/// fine nodes.
#[pyfunction]
pub(super) fn pair_tables(
    py: Python,
    rows: HeldPairRows,
    nodes: Vec<HeldNodes>,
    pairs: Vec<[usize; 2]>,
    strengths: Reals,
    threads: Threads,
) -> PyResult<Vec<(NumPy<f64>, NumPy<f64>)>> {
    let columns = paired(&rows, &nodes)?;
    let strengths = &*strengths;
    let deltas = py.detach(|| columns.deltas(&pairs, strengths, *threads))?;
    let deltas = deltas.into_iter();
    Ok(deltas.map(|delta| (delta.table.into(), delta.left_out.into())).collect())
}
