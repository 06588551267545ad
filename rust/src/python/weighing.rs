//! Numbers by leading bits, and passes over rows of cells.

use super::arrays::{
    Array, Changed, Codes as Labels, HeldColumns, HeldRows, Ids as Order, Longs as Offsets,
    RealTable as Table, Reals, RowWeights, Threads, malformed, named, shaped,
};
use super::integers::Integers;
use crate::error::Error;
use crate::leading;
use crate::score::cells::Plan;
use crate::weighing::ascent::Task;
use crate::weighing::{self, Cells, Evidence, Group, Lookups, alike, pairs, tables};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use std::sync::OnceLock;

type Real1<'py> = Bound<'py, PyArray1<f64>>;
type Codes<'py> = Array<'py, u32, 2>;

/// Keys, rows of each and class, and shift of a column.
type Counted<'py> = (Bound<'py, PyArray1<i64>>, Integers, u32);

#[pyfunction]
pub(super) fn count_leading<'py>(
    py: Python<'py>,
    columns: HeldColumns<'py>,
    shifts: Offsets<'py>,
    most: usize,
    classes: Labels<'py>,
    n_classes: i64,
    weights: Option<RowWeights<'py>>,
    threads: Threads,
) -> PyResult<Vec<Counted<'py>>> {
    let (columns, shifts) = (columns.columns()?, &*shifts);
    let held = HeldRows::new(classes, n_classes, weights, 1)?;
    let found =
        held.with(py, |rows| leading::count_leading(&columns, shifts, most, rows, *threads))?;
    let each = found
        .into_iter()
        .map(|counted| (counted.keys.into_pyarray(py), Integers(counted.cells), counted.shift));
    Ok(each.collect())
}

#[pyfunction(name = "steps")]
pub(super) fn steps_of<'py>(
    py: Python<'py>,
    columns: HeldColumns<'py>,
    cuts: Vec<Reals<'py>>,
    threads: Threads,
) -> PyResult<Bound<'py, PyAny>> {
    let columns = columns.columns()?;
    let cuts: Vec<&[f64]> = cuts.iter().map(|cuts| &**cuts).collect();
    let found = py.detach(|| leading::steps(&columns, &cuts, *threads))?;
    shaped(py, found, &[columns.rows().unwrap_or(0), columns.features()])
}

/// What rows of each class weigh in the cells of every column, (cells of all, classes); the last code of each is in no cell.
#[pyfunction]
pub(super) fn count_cells<'py>(
    py: Python<'py>,
    codes: Codes<'py>,
    sizes: Offsets<'py>,
    labels: Labels<'py>,
    weights: Reals<'py>,
    n_classes: usize,
    threads: Threads,
) -> PyResult<Bound<'py, PyAny>> {
    let cells = Cells::new(&codes, codes.width())?;
    let (sizes, labels, weights) = (&*sizes, &*labels, &*weights);
    let found = py.detach(|| cells.counted(sizes, labels, weights, n_classes, *threads))?;
    let n = found.len() / n_classes.max(1);
    shaped(py, found, &[n, n_classes])
}

/// Of a column, or pair: the column, the cells of its codes on each level, another column or -1 and what its codes add, and
/// the cells of each level.
type HeldGroup<'py> = (usize, Codes<'py>, i64, Codes<'py>, Vec<i64>);
type GroupArrays<'py> = (usize, Bound<'py, PyAny>, i64, Bound<'py, PyAny>, Vec<usize>);

/// Where rows find their cells: a term for each level of each column and pair.
#[pyclass(frozen, module = "banbury._core")]
pub(super) struct Terms(weighing::Terms, OnceLock<Plan>);

impl Terms {
    fn of<'a>(&'a self, codes: &'a Codes) -> PyResult<Lookups<'a>> {
        Ok(self.0.of(Cells::new(codes, codes.width())?)?)
    }

    /// With how cells are found where rows are scored.
    pub(super) fn planned(&self) -> (&weighing::Terms, &Plan) {
        (&self.0, self.1.get_or_init(|| Plan::of(&self.0)))
    }
}

#[pymethods]
impl Terms {
    #[new]
    fn new(groups: Vec<HeldGroup>) -> PyResult<Self> {
        let each = groups.iter().map(|(column, first, other, second, sizes)| {
            let other = usize::try_from(*other).ok().map(|other| (other, second.to_vec()));
            if first.width() != sizes.len() || other.is_some() && second.width() != sizes.len() {
                return Err(malformed("each level must have a size"));
            }
            Ok(Group { column: *column, levels: sizes.len(), first: first.to_vec(), other })
        });
        let sizes: Vec<i64> = groups.iter().flat_map(|group| &group.4).copied().collect();
        Ok(Terms(weighing::Terms::new(each.collect::<PyResult<_>>()?, &sizes)?, OnceLock::new()))
    }

    #[getter]
    fn groups<'py>(&self, py: Python<'py>) -> PyResult<Vec<GroupArrays<'py>>> {
        let map =
            |cells: &[u32], levels| shaped(py, cells.to_vec(), &[cells.len() / levels, levels]);
        let each = self.0.groups().iter().enumerate().map(|(t, group)| {
            let (other, second) = match &group.other {
                Some((column, cells)) => (*column as i64, map(cells, group.levels)?),
                None => (-1, map(&[], 1)?),
            };
            Ok((group.column, map(&group.first, group.levels)?, other, second, self.0.sizes(t)))
        });
        each.collect()
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Vec<GroupArrays<'py>>,)> {
        Ok((self.groups(py)?,))
    }

    #[getter]
    fn columns(&self) -> Vec<(usize, i64)> {
        let other = |group: &Group| group.other.as_ref().map_or(-1, |other| other.0 as i64);
        self.0.groups().iter().map(|group| (group.column, other(group))).collect()
    }

    #[getter]
    fn n_cells(&self) -> usize {
        self.0.size()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn scores<'py>(
        &self,
        py: Python<'py>,
        codes: Codes<'py>,
        table: Reals<'py>,
        weights: Reals<'py>,
        intercepts: Reals<'py>,
        own: Option<Labels<'py>>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (lookups, own) = (self.of(&codes)?, own.as_deref());
        let evidence = Evidence { table: &table, weights: &weights, intercepts: &intercepts, own };
        let found = py.detach(|| weighing::scores(&lookups, &evidence, *threads))?;
        shaped(py, found, &[lookups.rows(), intercepts.len()])
    }

    fn evidence<'py>(
        &self,
        py: Python<'py>,
        codes: Codes<'py>,
        table: Reals<'py>,
        n_classes: usize,
        own: Labels<'py>,
        given: usize,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (lookups, terms) = (self.of(&codes)?, self.0.len());
        let (weights, intercepts) = (&vec![1.0; terms], &vec![0.0; n_classes]);
        let evidence = Evidence { table: &table, weights, intercepts, own: Some(&own) };
        let found =
            py.detach(|| weighing::evidence_of_rows(&lookups, &evidence, given, *threads))?;
        shaped(py, found, &[lookups.rows(), n_classes.saturating_sub(1), terms + given])
    }

    fn correct<'py>(
        &self,
        py: Python<'py>,
        codes: Codes<'py>,
        passes: &Passes,
        mut mu: Changed<'py, f64>,
        mut table: Changed<'py, f64>,
    ) -> PyResult<()> {
        let (lookups, mu, table) = (self.of(&codes)?, mu.slice(), table.slice());
        passes.run(py, |task, order| tables::ascend(&lookups, task, order, mu, table))
    }

    fn alike<'py>(
        &self,
        py: Python<'py>,
        codes: Codes<'py>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lookups = self.of(&codes)?;
        let found = py.detach(|| alike::alike(&lookups, *threads))?;
        shaped(py, found, &[lookups.rows(), lookups.rows()])
    }

    fn spread<'py>(
        &self,
        py: Python<'py>,
        codes: Codes<'py>,
        surprise: Table<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (lookups, k, surprise) = (self.of(&codes)?, surprise.width(), &*surprise);
        let found = py.detach(|| alike::spread(&lookups, surprise))?;
        shaped(py, found, &[self.0.size(), k])
    }

    fn folded<'py>(&self, py: Python<'py>, table: Table<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (k, table) = (table.width(), &*table);
        let found = py.detach(|| self.0.folded(table, k))?;
        let each = found.into_iter().map(|cells| {
            let n = cells.len() / k.max(1);
            shaped(py, cells, &[n, k])
        });
        each.collect()
    }
}

/// The loss under the weights, and its slopes.
#[pyfunction]
pub(super) fn weighed_slope<'py>(
    py: Python<'py>,
    evidence: Array<'py, f32, 3>,
    weights: Reals<'py>,
    intercepts: Reals<'py>,
    labels: Labels<'py>,
    row_weights: Reals<'py>,
    threads: Threads,
) -> PyResult<(f64, Real1<'py>)> {
    let told = weighing::EvidenceMatrix {
        evidence: &evidence,
        labels: &labels,
        row_weights: &row_weights,
    };
    let (weights, intercepts) = (&*weights, &*intercepts);
    let (loss, slopes) = py.detach(|| weighing::slope(&told, weights, intercepts, *threads))?;
    Ok((loss, slopes.into_pyarray(py)))
}

/// Passes over rows that are corrected.
#[pyclass(frozen, module = "banbury._core")]
pub(super) struct Passes {
    strengths: Py<PyAny>,
    offsets: Py<PyAny>,
    orders: Vec<Py<PyAny>>,
    /// The mean change of μ at which passes end.
    enough: f64,
}

#[pymethods]
impl Passes {
    #[new]
    fn new(strengths: Py<PyAny>, offsets: Py<PyAny>, orders: Vec<Py<PyAny>>, enough: f64) -> Self {
        Passes { strengths, offsets, orders, enough }
    }
}

impl Passes {
    /// One pass after another, each in an order of its own.
    pub(super) fn run(
        &self,
        py: Python,
        mut pass: impl FnMut(&Task, &[u32]) -> Result<f64, Error> + Send,
    ) -> PyResult<()> {
        let strengths: Reals = named(self.strengths.bind(py), "strengths")?;
        let offsets: Table = named(self.offsets.bind(py), "offsets")?;
        let orders = self.orders.iter().map(|order| named(order.bind(py), "orders"));
        let orders = orders.collect::<PyResult<Vec<Order>>>()?;
        let orders: Vec<&[u32]> = orders.iter().map(|order| &**order).collect();
        let task = Task { strengths: &strengths, offsets: &offsets, classes: offsets.width() };
        Ok(py.detach(|| {
            for order in orders {
                if pass(&task, order)? < self.enough {
                    break;
                }
            }
            Ok::<_, Error>(())
        })?)
    }
}

/// The twin of `correct` by what rows have in common; no cells are touched.
#[pyfunction]
pub(super) fn correct_alike<'py>(
    py: Python<'py>,
    alike: Table<'py>,
    labels: Labels<'py>,
    passes: &Passes,
    mut mu: Changed<'py, f64>,
) -> PyResult<()> {
    let (alike, labels, mu) = (&*alike, &*labels, mu.slice());
    passes.run(py, |task, order| alike::ascend(alike, labels, task, order, mu))
}

/// The least loss of scores times one number, and the number.
#[pyfunction]
pub(super) fn tempered<'py>(
    py: Python<'py>,
    scores: Array<'py, f32, 2>,
    labels: Labels<'py>,
    row_weights: Reals<'py>,
    ridge: f64,
    most: f64,
) -> PyResult<(f64, f64)> {
    let (scores, labels, weights) = (&*scores, &*labels, &*row_weights);
    Ok(py.detach(|| weighing::tempered(scores, labels, weights, ridge, most))?)
}

// Pairs

/// Codes, labels, weights, prior.
type HeldPairRows<'py> = (Codes<'py>, Labels<'py>, Reals<'py>, Reals<'py>);

/// Of a column: fine and coarse nodes, shares of both, the same left out.
type HeldNodes<'py> =
    (Order<'py>, Order<'py>, Table<'py>, Table<'py>, Array<'py, f64, 3>, Array<'py, f64, 3>);

fn paired<'a>(
    (codes, labels, weights, prior): &'a HeldPairRows,
    nodes: &'a [HeldNodes],
) -> PyResult<pairs::Columns<'a>> {
    let nodes = nodes.iter().map(|(fine, coarse, a, b, c, d)| pairs::Nodes {
        fine,
        coarse,
        shares: [a, b],
        left_out: [c, d],
    });
    let cells = Cells::new(codes, codes.width())?;
    Ok(pairs::Columns { cells, labels, weights, prior, nodes: nodes.collect() })
}

/// Per pair: nats gained, strength, slope, curvature.
#[pyfunction]
pub(super) fn pair_gains<'py>(
    py: Python<'py>,
    rows: HeldPairRows<'py>,
    nodes: Vec<HeldNodes<'py>>,
    pairs: Vec<[usize; 2]>,
    strengths: Reals<'py>,
    posteriors: Table<'py>,
    threads: Threads,
) -> PyResult<Bound<'py, PyAny>> {
    let columns = paired(&rows, &nodes)?;
    let (strengths, posteriors) = (&*strengths, &*posteriors);
    let found = py.detach(|| columns.gains(&pairs, strengths, posteriors, *threads))?;
    let flat = found.iter().flat_map(|gain| [gain.nats, gain.m, gain.slope, gain.curvature]);
    shaped(py, flat.collect::<Vec<f64>>(), &[found.len(), 4])
}

/// Per pair: δ, (cells × classes), and δ of rows left out, (cells × classes × classes), both flat.
#[pyfunction]
pub(super) fn pair_tables<'py>(
    py: Python<'py>,
    rows: HeldPairRows<'py>,
    nodes: Vec<HeldNodes<'py>>,
    pairs: Vec<[usize; 2]>,
    strengths: Reals<'py>,
    threads: Threads,
) -> PyResult<Vec<(Real1<'py>, Real1<'py>)>> {
    let columns = paired(&rows, &nodes)?;
    let strengths = &*strengths;
    let found = py.detach(|| columns.deltas(&pairs, strengths, *threads))?;
    let each = found.into_iter();
    Ok(each.map(|delta| (delta.table.into_pyarray(py), delta.left_out.into_pyarray(py))).collect())
}
