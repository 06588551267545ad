//! Numbers by leading bits, and passes over rows of cells and over bags of words.

use super::arrays::{Array, Changed, Held, HeldColumns, HeldRows, at_least_one, malformed, shaped};
use super::integers::Integers;
use crate::classes::Sets;
use crate::error::Error;
use crate::leading;
use crate::weighing::{self, Cells, Evidence, Group, Lookups, alike, ascent, labels, pairs, texts};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

type Real1<'py> = Bound<'py, PyArray1<f64>>;
type Reals<'py> = Array<'py, f64, 1>;
type Table<'py> = Array<'py, f64, 2>;
type Labels<'py> = Array<'py, i32, 1>;
type Offsets<'py> = Array<'py, i64, 1>;
type Order<'py> = Array<'py, u32, 1>;
type Codes<'py> = Array<'py, u32, 2>;
type Table32<'py> = Array<'py, f32, 2>;

/// Keys, rows of each and class, and shift of a column.
type Counted<'py> = (Bound<'py, PyArray1<i64>>, Integers, u32);

#[pyfunction]
pub(super) fn count_leading<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyAny>,
    shifts: Offsets<'py>,
    most: usize,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'py, PyAny>>,
    threads: i64,
) -> PyResult<Vec<Counted<'py>>> {
    let held_columns = HeldColumns::new(columns)?;
    let (columns, shifts) = (held_columns.columns()?, &*shifts);
    let (held, threads) = (HeldRows::new(classes, n_classes, weights)?, at_least_one(threads)?);
    let found =
        held.with(py, |rows| leading::count_leading(&columns, shifts, most, rows, threads))?;
    let each = found
        .into_iter()
        .map(|counted| (counted.keys.into_pyarray(py), Integers(counted.cells), counted.shift));
    Ok(each.collect())
}

#[pyfunction(name = "steps")]
pub(super) fn steps_of<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyAny>,
    cuts: Vec<Reals<'py>>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let held = HeldColumns::new(columns)?;
    let (columns, threads) = (held.columns()?, at_least_one(threads)?);
    let cuts: Vec<&[f64]> = cuts.iter().map(|cuts| &**cuts).collect();
    let found = py.detach(|| leading::steps(&columns, &cuts, threads))?;
    shaped(py, found, &[columns.rows().unwrap_or(0), columns.features()])
}

pub(super) fn all<'py, T: numpy::Element + Copy>(
    any: &Bound<'py, PyAny>,
    name: &str,
    axes: usize,
) -> PyResult<Vec<Held<'py, T>>> {
    any.try_iter()?.map(|item| Held::new(&item?, name, axes)).collect()
}

pub(super) fn columns_of<T: numpy::Element + Copy>(table: &Held<T>) -> PyResult<usize> {
    use numpy::PyUntypedArrayMethods;
    table.array.shape().last().copied().ok_or_else(|| malformed("a table must have axes"))
}

/// Rows of cells and groups of terms: codes (rows, columns), columns, others (-1 for none), firsts and seconds (codes, levels),
/// and the size of every level.
#[derive(FromPyObject)]
pub(super) struct HeldLookups<'py>(
    Codes<'py>,
    Offsets<'py>,
    Offsets<'py>,
    Vec<Codes<'py>>,
    Vec<Codes<'py>>,
    Offsets<'py>,
);

impl HeldLookups<'_> {
    pub(super) fn lookups(&self) -> PyResult<Lookups<'_>> {
        let HeldLookups(codes, columns, others, firsts, seconds, sizes) = self;
        let n = columns.len();
        if others.len() != n || firsts.len() != n || seconds.len() != n {
            return Err(malformed("lookups must have as many of each"));
        }
        let place = |column: i64| usize::try_from(column).unwrap_or(usize::MAX);
        let groups = (0..n).map(|t| Group {
            column: place(columns[t]),
            levels: firsts[t].width(),
            first: &firsts[t],
            other: (others[t] >= 0).then(|| (place(others[t]), &*seconds[t])),
        });
        Ok(Lookups::new(Cells::new(codes, codes.width())?, groups.collect(), sizes)?)
    }
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
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (cells, threads) = (Cells::new(&codes, codes.width())?, at_least_one(threads)?);
    let (sizes, labels, weights) = (&*sizes, &*labels, &*weights);
    let found = py.detach(|| cells.counted(sizes, labels, weights, n_classes, threads))?;
    let n = found.len() / n_classes.max(1);
    shaped(py, found, &[n, n_classes])
}

/// The weighed scores of rows, (rows, classes).
#[pyfunction]
pub(super) fn weighed_scores<'py>(
    py: Python<'py>,
    lookups: HeldLookups<'py>,
    table: Reals<'py>,
    weights: Reals<'py>,
    intercepts: Reals<'py>,
    own: Option<Labels<'py>>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (lookups, threads, own) = (lookups.lookups()?, at_least_one(threads)?, own.as_deref());
    let evidence = Evidence { table: &table, weights: &weights, intercepts: &intercepts, own };
    let found = py.detach(|| weighing::scores(&lookups, &evidence, threads))?;
    shaped(py, found, &[lookups.rows(), intercepts.len()])
}

/// What each term says of each row beyond the last class, (rows, classes but the last, terms and given).
#[pyfunction]
pub(super) fn evidence_of_rows<'py>(
    py: Python<'py>,
    lookups: HeldLookups<'py>,
    table: Reals<'py>,
    n_classes: usize,
    own: Labels<'py>,
    given: usize,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (lookups, threads) = (lookups.lookups()?, at_least_one(threads)?);
    let (weights, intercepts) = (&vec![1.0; lookups.terms()], &vec![0.0; n_classes]);
    let evidence = Evidence { table: &table, weights, intercepts, own: Some(&own) };
    let found = py.detach(|| weighing::evidence_of_rows(&lookups, &evidence, given, threads))?;
    shaped(py, found, &[lookups.rows(), n_classes.saturating_sub(1), lookups.terms() + given])
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
    threads: i64,
) -> PyResult<(f64, Real1<'py>)> {
    let threads = at_least_one(threads)?;
    let told = weighing::Told { evidence: &evidence, labels: &labels, row_weights: &row_weights };
    let (weights, intercepts) = (&*weights, &*intercepts);
    let (loss, slopes) = py.detach(|| weighing::slope(&told, weights, intercepts, threads))?;
    Ok((loss, slopes.into_pyarray(py)))
}

/// Rows to correct: labels, strengths, offsets, orders of passes, and the mean change of μ at which passes end.
#[derive(FromPyObject)]
pub(super) struct HeldCorrections<'py>(Labels<'py>, Reals<'py>, Table<'py>, Vec<Order<'py>>, f64);

impl<'py> HeldCorrections<'py> {
    /// One pass after another, each in an order of its own.
    fn passes(
        &self,
        py: Python<'py>,
        mut pass: impl FnMut(&ascent::Task, &[u32]) -> Result<f64, Error> + Send,
    ) -> PyResult<()> {
        let HeldCorrections(labels, strengths, offsets, orders, enough) = self;
        let task = ascent::Task { labels, strengths, offsets, classes: offsets.width() };
        let orders: Vec<&[u32]> = orders.iter().map(|order| &**order).collect();
        Ok(py.detach(|| {
            for order in orders {
                if pass(&task, order)? < *enough {
                    break;
                }
            }
            Ok::<_, Error>(())
        })?)
    }
}

/// Passes of corrections, which improve `mu`, (rows, classes), and `table`, (cells of all, classes).
#[pyfunction]
pub(super) fn correct<'py>(
    py: Python<'py>,
    lookups: HeldLookups<'py>,
    variances: Reals<'py>,
    rows: HeldCorrections<'py>,
    mut mu: Changed<'py, f64>,
    mut table: Changed<'py, f64>,
) -> PyResult<()> {
    let (lookups, variances) = (lookups.lookups()?, &*variances);
    let (mu, table) = (mu.slice(), table.slice());
    rows.passes(py, |task, order| ascent::ascend(&lookups, variances, task, order, mu, table))
}

/// The twin of `correct` by what rows have in common; no cells are touched.
#[pyfunction]
pub(super) fn correct_alike<'py>(
    py: Python<'py>,
    alike: Table<'py>,
    rows: HeldCorrections<'py>,
    mut mu: Changed<'py, f64>,
) -> PyResult<()> {
    let (alike, mu) = (&*alike, mu.slice());
    rows.passes(py, |task, order| alike::ascend(alike, task, order, mu))
}

/// How much any two rows have in common, (rows, rows).
#[pyfunction]
pub(super) fn alike_rows<'py>(
    py: Python<'py>,
    lookups: HeldLookups<'py>,
    variances: Reals<'py>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (lookups, variances) = (lookups.lookups()?, &*variances);
    let threads = at_least_one(threads)?;
    let found = py.detach(|| alike::alike(&lookups, variances, threads))?;
    shaped(py, found, &[lookups.rows(), lookups.rows()])
}

/// What rows surprised by, (rows, classes), as corrections of their cells, (cells of all, classes).
#[pyfunction]
pub(super) fn spread<'py>(
    py: Python<'py>,
    lookups: HeldLookups<'py>,
    variances: Reals<'py>,
    surprise: Table<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let (lookups, k) = (lookups.lookups()?, surprise.width());
    let (variances, surprise) = (&*variances, &*surprise);
    let found = py.detach(|| alike::spread(&lookups, variances, surprise))?;
    shaped(py, found, &[lookups.size(), k])
}

/// The numbers of all levels, (cells of all, classes), summed up for the cells of the last.
#[pyfunction]
pub(super) fn folded<'py>(
    py: Python<'py>,
    lookups: HeldLookups<'py>,
    table: Table<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let (lookups, k, table) = (lookups.lookups()?, table.width(), &*table);
    let found = py.detach(|| lookups.folded(table, k))?;
    let n = found.len() / k.max(1);
    shaped(py, found, &[n, k])
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
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (columns, threads) = (paired(&rows, &nodes)?, at_least_one(threads)?);
    let (strengths, posteriors) = (&*strengths, &*posteriors);
    let found = py.detach(|| columns.gains(&pairs, strengths, posteriors, threads))?;
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
    threads: i64,
) -> PyResult<Vec<(Real1<'py>, Real1<'py>)>> {
    let (columns, threads) = (paired(&rows, &nodes)?, at_least_one(threads)?);
    let strengths = &*strengths;
    let found = py.detach(|| columns.deltas(&pairs, strengths, threads))?;
    let each = found.into_iter();
    Ok(each.map(|delta| (delta.table.into_pyarray(py), delta.left_out.into_pyarray(py))).collect())
}

// Texts

type Ranked<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<u64>>,
);

#[pyfunction]
pub(super) fn ranked_bags<'py>(
    py: Python<'py>,
    bags: (Offsets<'py>, Labels<'py>, Labels<'py>),
    ranks: Order<'py>,
    threads: i64,
) -> PyResult<Ranked<'py>> {
    let (offsets, ids, times, ranks) = (&*bags.0, &*bags.1, &*bags.2, &*ranks);
    let threads = at_least_one(threads)?;
    let (starts, words, often, hashes) =
        py.detach(|| texts::ranked(offsets, ids, times, ranks, threads))?;
    Ok((
        starts.into_pyarray(py),
        words.into_pyarray(py),
        often.into_pyarray(py),
        hashes.into_pyarray(py),
    ))
}

/// Offsets, words, and how many words there are.
#[derive(FromPyObject)]
pub(super) struct HeldBags<'py>(Offsets<'py>, Order<'py>, usize);

impl HeldBags<'_> {
    fn bags(&self) -> PyResult<texts::Bags<'_>> {
        Ok(texts::Bags::new(&self.0, &self.1, self.2)?)
    }

    fn texts<'a>(&'a self, values: &'a [f32]) -> PyResult<texts::Texts<'a>> {
        Ok(texts::Texts::new(self.bags()?, values)?)
    }
}

#[pyfunction]
pub(super) fn count_bags<'py>(
    py: Python<'py>,
    bags: HeldBags<'py>,
    labels: (Offsets<'py>, Labels<'py>),
    weights: Reals<'py>,
    n_classes: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let labels = Sets::new(&labels.0, &labels.1, n_classes)?;
    let (texts, weights) = (bags.bags()?, &*weights);
    let found = py.detach(|| texts.count(labels, weights, n_classes))?;
    shaped(py, found, &[bags.2, n_classes])
}

#[pyfunction]
pub(super) fn values_of_bags<'py>(
    py: Python<'py>,
    bags: HeldBags<'py>,
    times: Option<Array<'py, f32, 1>>,
    scale: Array<'py, f32, 1>,
    threads: i64,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let (bags, threads) = (bags.bags()?, at_least_one(threads)?);
    let (times, scale) = (times.as_deref(), &*scale);
    Ok(py.detach(|| bags.values(times, scale, threads))?.into_pyarray(py))
}

#[pyfunction]
pub(super) fn score_bags<'py>(
    py: Python<'py>,
    bags: HeldBags<'py>,
    values: Array<'py, f32, 1>,
    table: Table32<'py>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (texts, threads) = (bags.texts(&values)?, at_least_one(threads)?);
    let (n_classes, table) = (table.width(), &*table);
    let found = py.detach(|| texts.scores(table, n_classes, threads))?;
    shaped(py, found, &[texts.len(), n_classes])
}

/// The same of texts that were counted, each left out: by the rows of `others`, and of `own` in its own class.
#[pyfunction]
pub(super) fn left_out_bags<'py>(
    py: Python<'py>,
    bags: HeldBags<'py>,
    values: Array<'py, f32, 1>,
    labels: (Offsets<'py>, Labels<'py>),
    others: Table32<'py>,
    own: Table32<'py>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (texts, threads) = (bags.texts(&values)?, at_least_one(threads)?);
    let (n_classes, tables) = (others.width(), [&*others, &*own]);
    let labels = Sets::new(&labels.0, &labels.1, n_classes)?;
    let found = py.detach(|| texts.left_out(labels, tables, n_classes, threads))?;
    shaped(py, found, &[texts.len(), n_classes])
}

/// The least loss of scores times one number, and the number.
#[pyfunction]
pub(super) fn tempered<'py>(
    py: Python<'py>,
    scores: Table32<'py>,
    labels: Labels<'py>,
    row_weights: Reals<'py>,
    ridge: f64,
    most: f64,
) -> PyResult<(f64, f64)> {
    let (scores, labels, weights) = (&*scores, &*labels, &*row_weights);
    Ok(py.detach(|| weighing::tempered(scores, labels, weights, ridge, most))?)
}

/// Strengths, offsets, what all texts have in common, and what each varies by itself.
type HeldTask<'py, const AXES: usize> =
    (Reals<'py>, Array<'py, f64, AXES>, f32, Array<'py, f32, AXES>);

fn task<'a, const AXES: usize>(held: &'a HeldTask<'_, AXES>) -> texts::Task<'a> {
    let (strengths, offsets, common, own) = held;
    texts::Task { strengths, offsets, common: *common, own, classes: own.width() }
}

/// A pass of corrections; the mean change.
#[pyfunction]
pub(super) fn correct_bags<'py>(
    py: Python<'py>,
    bags: HeldBags<'py>,
    values: Array<'py, f32, 1>,
    rows: HeldTask<'py, 2>,
    order: Order<'py>,
    mut mu: Changed<'py, f32>,
    mut table: Changed<'py, f32>,
) -> PyResult<f64> {
    let (texts, task, order) = (bags.texts(&values)?, task(&rows), &*order);
    let (mu, table) = (mu.slice(), table.slice());
    Ok(py.detach(|| texts::ascend(&texts, &task, order, mu, table))?)
}

/// The same for labels in lanes, `[lane][text][label]`.
#[pyfunction]
pub(super) fn correct_labels<'py>(
    py: Python<'py>,
    bags: HeldBags<'py>,
    values: Array<'py, f32, 1>,
    rows: HeldTask<'py, 3>,
    order: Order<'py>,
    mut mu: Changed<'py, f32>,
    mut table: Changed<'py, f32>,
    threads: i64,
) -> PyResult<f64> {
    let (texts, task, order) = (bags.texts(&values)?, task(&rows), &*order);
    let (mu, table, threads) = (mu.slice(), table.slice(), at_least_one(threads)?);
    Ok(py.detach(|| labels::ascend(&texts, &task, order, mu, table, threads))?)
}

/// What words say of labels, by the pairs that occur: starts, labels, what they say, and what each word says of all.
#[pyfunction]
pub(super) fn score_labels<'py>(
    py: Python<'py>,
    bags: HeldBags<'py>,
    values: Array<'py, f32, 1>,
    index: (Offsets<'py>, Order<'py>, Reals<'py>, Reals<'py>),
    slopes: Reals<'py>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (texts, threads, slopes) = (bags.texts(&values)?, at_least_one(threads)?, &*slopes);
    let index = labels::Index::new(&index.0, &index.1, &index.2, &index.3, slopes.len())?;
    let found = py.detach(|| index.scores(&texts, slopes, threads))?;
    shaped(py, found, &[texts.len(), slopes.len()])
}
