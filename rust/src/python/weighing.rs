//! Numbers by leading bits, and passes over rows of cells.

use super::arrays::{Held, HeldColumns, HeldRows, HeldSets, at_least_one, malformed, shaped};
use super::integers::Integers;
use crate::leading;
use crate::weighing::{self, Cells, Evidence, Group, Lookups, alike, ascent, labels, pairs, texts};
use numpy::{IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

type Real1<'py> = Bound<'py, PyArray1<f64>>;

/// Keys, rows of each and class, and shift of a column.
type Counted<'py> = (Bound<'py, PyArray1<i64>>, Integers, u32);

#[pyfunction]
pub(super) fn count_leading<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyAny>,
    shifts: &Bound<'py, PyAny>,
    most: usize,
    classes: &Bound<'py, PyAny>,
    n_classes: i64,
    weights: Option<&Bound<'py, PyAny>>,
    threads: i64,
) -> PyResult<Vec<Counted<'py>>> {
    let held_columns = HeldColumns::new(columns)?;
    let columns = held_columns.columns()?;
    let shifts = Held::<i64>::new(shifts, "shifts", 1)?;
    let shifts = shifts.slice();
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
    cuts: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let held = HeldColumns::new(columns)?;
    let (columns, threads) = (held.columns()?, at_least_one(threads)?);
    let cuts = all::<f64>(cuts, "cuts", 1)?;
    let cuts: Vec<&[f64]> = cuts.iter().map(Held::slice).collect();
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

/// Rows of cells and groups of terms: codes (rows, columns), columns, others (-1 for none), firsts and seconds (codes, levels),
/// and the size of every level.
pub(super) struct HeldLookups<'py> {
    codes: Held<'py, u32>,
    columns: Held<'py, i64>,
    others: Held<'py, i64>,
    firsts: Vec<Held<'py, u32>>,
    seconds: Vec<Held<'py, u32>>,
    sizes: Held<'py, i64>,
}

impl<'py> HeldLookups<'py> {
    pub(super) fn new(items: &[Bound<'py, PyAny>]) -> PyResult<Self> {
        let [codes, columns, others, firsts, seconds, sizes] = items else {
            return Err(malformed("lookups are six arrays"));
        };
        Ok(HeldLookups {
            codes: Held::new(codes, "codes", 2)?,
            columns: Held::new(columns, "columns", 1)?,
            others: Held::new(others, "others", 1)?,
            firsts: all(firsts, "firsts", 2)?,
            seconds: all(seconds, "seconds", 2)?,
            sizes: Held::new(sizes, "sizes", 1)?,
        })
    }

    pub(super) fn lookups(&self) -> PyResult<Lookups<'_>> {
        let (columns, others) = (self.columns.slice(), self.others.slice());
        let n = columns.len();
        if others.len() != n || self.firsts.len() != n || self.seconds.len() != n {
            return Err(malformed("lookups must have as many of each"));
        }
        let place = |column: i64| usize::try_from(column).unwrap_or(usize::MAX);
        let groups = (0..n).map(|t| {
            Ok(Group {
                column: place(columns[t]),
                levels: columns_of(&self.firsts[t])?,
                first: self.firsts[t].slice(),
                other: (others[t] >= 0).then(|| (place(others[t]), self.seconds[t].slice())),
            })
        });
        let cells = Cells::new(self.codes.slice(), columns_of(&self.codes)?)?;
        Ok(Lookups::new(cells, groups.collect::<PyResult<_>>()?, self.sizes.slice())?)
    }
}

fn items<'py>(lookups: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    lookups.try_iter()?.collect()
}

/// What rows of each class weigh in the cells of every column, (cells of all, classes); the last code of each is in no cell.
#[pyfunction]
pub(super) fn count_cells<'py>(
    py: Python<'py>,
    codes: &Bound<'py, PyAny>,
    sizes: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    n_classes: usize,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (codes, threads) = (Held::<u32>::new(codes, "codes", 2)?, at_least_one(threads)?);
    let sizes = Held::<i64>::new(sizes, "sizes", 1)?;
    let labels = Held::<i32>::new(labels, "labels", 1)?;
    let weights = Held::<f64>::new(weights, "weights", 1)?;
    let cells = Cells::new(codes.slice(), columns_of(&codes)?)?;
    let (sizes, labels, weights) = (sizes.slice(), labels.slice(), weights.slice());
    let found = py.detach(|| cells.counted(sizes, labels, weights, n_classes, threads))?;
    let n = found.len() / n_classes.max(1);
    shaped(py, found, &[n, n_classes])
}

/// The weighed scores of rows, (rows, classes).
#[pyfunction]
pub(super) fn weighed_scores<'py>(
    py: Python<'py>,
    lookups: &Bound<'py, PyAny>,
    table: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    intercepts: &Bound<'py, PyAny>,
    own: Option<&Bound<'py, PyAny>>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let held = HeldLookups::new(&items(lookups)?)?;
    let (lookups, threads) = (held.lookups()?, at_least_one(threads)?);
    let table = Held::<f64>::new(table, "table", 1)?;
    let weights = Held::<f64>::new(weights, "weights", 1)?;
    let intercepts = Held::<f64>::new(intercepts, "intercepts", 1)?;
    let own = own.map(|own| Held::<i32>::new(own, "own", 1)).transpose()?;
    let evidence = Evidence {
        table: table.slice(),
        weights: weights.slice(),
        intercepts: intercepts.slice(),
        own: own.as_ref().map(Held::slice),
    };
    let found = py.detach(|| weighing::scores(&lookups, &evidence, threads))?;
    shaped(py, found, &[lookups.rows(), intercepts.slice().len()])
}

/// What each term says of each row beyond the last class, (rows, classes but the last, terms and given).
#[pyfunction]
pub(super) fn evidence_of_rows<'py>(
    py: Python<'py>,
    lookups: &Bound<'py, PyAny>,
    table: &Bound<'py, PyAny>,
    n_classes: usize,
    own: &Bound<'py, PyAny>,
    given: usize,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let held = HeldLookups::new(&items(lookups)?)?;
    let (lookups, threads) = (held.lookups()?, at_least_one(threads)?);
    let table = Held::<f64>::new(table, "table", 1)?;
    let own = Held::<i32>::new(own, "own", 1)?;
    let (ones, intercepts) = (vec![1.0; lookups.terms()], vec![0.0; n_classes]);
    let evidence = Evidence {
        table: table.slice(),
        weights: &ones,
        intercepts: &intercepts,
        own: Some(own.slice()),
    };
    let found = py.detach(|| weighing::evidence_of_rows(&lookups, &evidence, given, threads))?;
    shaped(py, found, &[lookups.rows(), n_classes.saturating_sub(1), lookups.terms() + given])
}

/// The loss under the weights, and its slopes.
#[pyfunction]
pub(super) fn weighed_slope<'py>(
    py: Python<'py>,
    evidence: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    intercepts: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    row_weights: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<(f64, Real1<'py>)> {
    let threads = at_least_one(threads)?;
    let evidence = Held::<f32>::new(evidence, "evidence", 3)?;
    let weights = Held::<f64>::new(weights, "weights", 1)?;
    let intercepts = Held::<f64>::new(intercepts, "intercepts", 1)?;
    let labels = Held::<i32>::new(labels, "labels", 1)?;
    let row_weights = Held::<f64>::new(row_weights, "row_weights", 1)?;
    let told = weighing::Told {
        evidence: evidence.slice(),
        labels: labels.slice(),
        row_weights: row_weights.slice(),
    };
    let (weights, intercepts) = (weights.slice(), intercepts.slice());
    let (loss, slopes) = py.detach(|| weighing::slope(&told, weights, intercepts, threads))?;
    Ok((loss, slopes.into_pyarray(py)))
}

/// Rows to correct: labels, strengths, offsets, orders of passes, and the mean change of μ at which passes end.
struct HeldCorrections<'py> {
    labels: Held<'py, i32>,
    strengths: Held<'py, f64>,
    offsets: Held<'py, f64>,
    orders: Vec<Held<'py, u32>>,
    enough: f64,
}

impl<'py> HeldCorrections<'py> {
    fn new(rows: &Bound<'py, PyAny>) -> PyResult<Self> {
        let items = items(rows)?;
        let [labels, strengths, offsets, orders, enough] = &items[..] else {
            return Err(malformed("rows to correct are four arrays and a number"));
        };
        Ok(HeldCorrections {
            labels: Held::new(labels, "labels", 1)?,
            strengths: Held::new(strengths, "strengths", 1)?,
            offsets: Held::new(offsets, "offsets", 2)?,
            orders: all(orders, "orders", 1)?,
            enough: enough.extract()?,
        })
    }

    /// One pass after another, each in an order of its own.
    fn passes(
        &self,
        py: Python<'py>,
        mut pass: impl FnMut(&ascent::Task, &[u32]) -> Result<f64, crate::error::Error> + Send,
    ) -> PyResult<()> {
        let task = ascent::Task {
            labels: self.labels.slice(),
            strengths: self.strengths.slice(),
            offsets: self.offsets.slice(),
            classes: columns_of(&self.offsets)?,
        };
        let (orders, enough): (Vec<_>, _) =
            (self.orders.iter().map(Held::slice).collect(), self.enough);
        Ok(py.detach(|| {
            for order in orders {
                if pass(&task, order)? < enough {
                    break;
                }
            }
            Ok::<_, crate::error::Error>(())
        })?)
    }
}

/// Passes of corrections, which improve `mu`, (rows, classes), and `table`, (cells of all, classes).
#[pyfunction]
pub(super) fn correct<'py>(
    py: Python<'py>,
    lookups: &Bound<'py, PyAny>,
    variances: &Bound<'py, PyAny>,
    rows: &Bound<'py, PyAny>,
    mu: &Bound<'py, PyAny>,
    table: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let held = HeldLookups::new(&items(lookups)?)?;
    let (lookups, rows) = (held.lookups()?, HeldCorrections::new(rows)?);
    let variances = Held::<f64>::new(variances, "variances", 1)?;
    let (mut mu, mut table) = (writable::<f64>(mu, "mu")?, writable::<f64>(table, "table")?);
    let apart = || malformed("mu and table must lie in one piece");
    let mu = mu.as_slice_mut().map_err(|_| apart())?;
    let table = table.as_slice_mut().map_err(|_| apart())?;
    let variances = variances.slice();
    rows.passes(py, |task, order| ascent::ascend(&lookups, variances, task, order, mu, table))
}

/// The twin of `correct` by what rows have in common; no cells are touched.
#[pyfunction]
pub(super) fn correct_alike<'py>(
    py: Python<'py>,
    alike: &Bound<'py, PyAny>,
    rows: &Bound<'py, PyAny>,
    mu: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let alike = Held::<f64>::new(alike, "alike", 2)?;
    let (rows, mut mu) = (HeldCorrections::new(rows)?, writable::<f64>(mu, "mu")?);
    let mu = mu.as_slice_mut().map_err(|_| malformed("mu must lie in one piece"))?;
    let alike = alike.slice();
    rows.passes(py, |task, order| alike::ascend(alike, task, order, mu))
}

/// How much any two rows have in common, (rows, rows).
#[pyfunction]
pub(super) fn alike_rows<'py>(
    py: Python<'py>,
    lookups: &Bound<'py, PyAny>,
    variances: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let held = HeldLookups::new(&items(lookups)?)?;
    let (lookups, threads) = (held.lookups()?, at_least_one(threads)?);
    let variances = Held::<f64>::new(variances, "variances", 1)?;
    let variances = variances.slice();
    let found = py.detach(|| alike::alike(&lookups, variances, threads))?;
    shaped(py, found, &[lookups.rows(), lookups.rows()])
}

/// What rows surprised by, (rows, classes), as corrections of their cells, (cells of all, classes).
#[pyfunction]
pub(super) fn spread<'py>(
    py: Python<'py>,
    lookups: &Bound<'py, PyAny>,
    variances: &Bound<'py, PyAny>,
    surprise: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let held = HeldLookups::new(&items(lookups)?)?;
    let lookups = held.lookups()?;
    let variances = Held::<f64>::new(variances, "variances", 1)?;
    let surprise = Held::<f64>::new(surprise, "surprise", 2)?;
    let (variances, surprise) = (variances.slice(), surprise.slice());
    let found = py.detach(|| alike::spread(&lookups, variances, surprise))?;
    shaped(py, found, &[lookups.size(), surprise.len() / lookups.rows().max(1)])
}

/// The numbers of all levels, (cells of all, classes), summed up for the cells of the last.
#[pyfunction]
pub(super) fn folded<'py>(
    py: Python<'py>,
    lookups: &Bound<'py, PyAny>,
    table: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (held, table) = (HeldLookups::new(&items(lookups)?)?, Held::<f64>::new(table, "table", 2)?);
    let (lookups, k) = (held.lookups()?, columns_of(&table)?);
    let table = table.slice();
    let found = py.detach(|| lookups.folded(table, k))?;
    let n = found.len() / k.max(1);
    shaped(py, found, &[n, k])
}

fn writable<'py, T: numpy::Element>(
    any: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<numpy::PyReadwriteArrayDyn<'py, T>> {
    let array = any.cast::<PyArrayDyn<T>>();
    let array = array.map_err(|_| malformed(format!("{name} must be an array of its type")))?;
    array.try_readwrite().map_err(|_| malformed(format!("{name} must be writable")))
}

type HeldNodes<'py> = ([Held<'py, u32>; 2], [Held<'py, f64>; 4]);

/// Codes, labels, weights, prior; and of each column (fine, coarse, shares of both, left out of both).
struct HeldPairs<'py> {
    codes: Held<'py, u32>,
    labels: Held<'py, i32>,
    weights: Held<'py, f64>,
    prior: Held<'py, f64>,
    nodes: Vec<HeldNodes<'py>>,
}

impl<'py> HeldPairs<'py> {
    fn new(rows: &Bound<'py, PyAny>, nodes: &Bound<'py, PyAny>) -> PyResult<Self> {
        let rows = items(rows)?;
        let [codes, labels, weights, prior] = &rows[..] else {
            return Err(malformed("rows are codes, labels, weights and a prior"));
        };
        let each = nodes.try_iter()?.map(|item| {
            let item = items(&item?)?;
            let [fine, coarse, a, b, c, d] = &item[..] else {
                return Err(malformed("a column's nodes are six arrays"));
            };
            let real = |any, d| Held::new(any, "shares", d);
            let maps = [Held::new(fine, "fine", 1)?, Held::new(coarse, "coarse", 1)?];
            Ok((maps, [real(a, 2)?, real(b, 2)?, real(c, 3)?, real(d, 3)?]))
        });
        Ok(HeldPairs {
            codes: Held::new(codes, "codes", 2)?,
            labels: Held::new(labels, "labels", 1)?,
            weights: Held::new(weights, "weights", 1)?,
            prior: Held::new(prior, "prior", 1)?,
            nodes: each.collect::<PyResult<_>>()?,
        })
    }

    fn columns(&self) -> PyResult<pairs::Columns<'_>> {
        let nodes = self.nodes.iter().map(|(maps, tables)| {
            let [a, b, c, d] = tables.each_ref().map(Held::slice);
            let [fine, coarse] = maps.each_ref().map(Held::slice);
            pairs::Nodes { fine, coarse, shares: [a, b], left_out: [c, d] }
        });
        Ok(pairs::Columns {
            cells: Cells::new(self.codes.slice(), columns_of(&self.codes)?)?,
            labels: self.labels.slice(),
            weights: self.weights.slice(),
            prior: self.prior.slice(),
            nodes: nodes.collect(),
        })
    }
}

fn pairs_of(any: &Bound<'_, PyAny>) -> PyResult<Vec<[usize; 2]>> {
    any.extract()
}

/// Per pair: nats gained, strength, slope, curvature.
#[pyfunction]
pub(super) fn pair_gains<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    nodes: &Bound<'py, PyAny>,
    pairs: &Bound<'py, PyAny>,
    strengths: &Bound<'py, PyAny>,
    posteriors: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let held = HeldPairs::new(rows, nodes)?;
    let (columns, pairs, threads) = (held.columns()?, pairs_of(pairs)?, at_least_one(threads)?);
    let strengths = Held::<f64>::new(strengths, "strengths", 1)?;
    let posteriors = Held::<f64>::new(posteriors, "posteriors", 2)?;
    let (strengths, posteriors) = (strengths.slice(), posteriors.slice());
    let found = py.detach(|| columns.gains(&pairs, strengths, posteriors, threads))?;
    let flat = found.iter().flat_map(|gain| [gain.nats, gain.m, gain.slope, gain.curvature]);
    shaped(py, flat.collect::<Vec<f64>>(), &[found.len(), 4])
}

/// Per pair: δ, (cells × classes), and δ of rows left out, (cells × classes × classes), both flat.
#[pyfunction]
pub(super) fn pair_tables<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    nodes: &Bound<'py, PyAny>,
    pairs: &Bound<'py, PyAny>,
    strengths: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyList>> {
    let held = HeldPairs::new(rows, nodes)?;
    let (columns, pairs, threads) = (held.columns()?, pairs_of(pairs)?, at_least_one(threads)?);
    let strengths = Held::<f64>::new(strengths, "strengths", 1)?;
    let strengths = strengths.slice();
    let found = py.detach(|| columns.deltas(&pairs, strengths, threads))?;
    let each = found
        .into_iter()
        .map(|delta| (delta.table.into_pyarray(py), delta.left_out.into_pyarray(py)));
    PyList::new(py, each.collect::<Vec<_>>())
}

// Texts

#[pyfunction]
pub(super) fn ranked_bags<'py>(
    py: Python<'py>,
    bags: &Bound<'py, PyAny>,
    ranks: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyTuple>> {
    let items = items(bags)?;
    let [offsets, ids, times] = &items[..] else {
        return Err(malformed("bags are three arrays"));
    };
    let (offsets, threads) = (Held::<i64>::new(offsets, "offsets", 1)?, at_least_one(threads)?);
    let (ids, times) = (Held::<i32>::new(ids, "ids", 1)?, Held::<i32>::new(times, "times", 1)?);
    let ranks = Held::<u32>::new(ranks, "ranks", 1)?;
    let (offsets, ids, times, ranks) = (offsets.slice(), ids.slice(), times.slice(), ranks.slice());
    let (starts, words, often, hashes) =
        py.detach(|| texts::ranked(offsets, ids, times, ranks, threads))?;
    let arrays = [
        starts.into_pyarray(py).into_any(),
        words.into_pyarray(py).into_any(),
        often.into_pyarray(py).into_any(),
        hashes.into_pyarray(py).into_any(),
    ];
    PyTuple::new(py, arrays)
}

/// Offsets, words, and how many words there are.
struct HeldBags<'py> {
    offsets: Held<'py, i64>,
    words: Held<'py, u32>,
    n_words: usize,
}

impl<'py> HeldBags<'py> {
    fn new(any: &Bound<'py, PyAny>) -> PyResult<Self> {
        let items = items(any)?;
        let [offsets, words, n_words] = &items[..] else {
            return Err(malformed("bags are offsets, words and their number"));
        };
        Ok(HeldBags {
            offsets: Held::new(offsets, "offsets", 1)?,
            words: Held::new(words, "words", 1)?,
            n_words: n_words.extract()?,
        })
    }

    fn bags(&self) -> PyResult<texts::Bags<'_>> {
        Ok(texts::Bags::new(self.offsets.slice(), self.words.slice(), self.n_words)?)
    }
}

#[pyfunction]
pub(super) fn count_bags<'py>(
    py: Python<'py>,
    bags: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyTuple>,
    weights: &Bound<'py, PyAny>,
    n_classes: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let held = HeldBags::new(bags)?;
    let bags = held.bags()?;
    let (labels, weights) = (HeldSets::new(labels)?, Held::<f64>::new(weights, "weights", 1)?);
    let (labels, weights) = (labels.sets(n_classes)?, weights.slice());
    let found = py.detach(|| bags.count(labels, weights, n_classes))?;
    shaped(py, found, &[held.n_words, n_classes])
}

#[pyfunction]
pub(super) fn values_of_bags<'py>(
    py: Python<'py>,
    bags: &Bound<'py, PyAny>,
    times: Option<&Bound<'py, PyAny>>,
    scale: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let (held, threads) = (HeldBags::new(bags)?, at_least_one(threads)?);
    let bags = held.bags()?;
    let times = times.map(|times| Held::<f32>::new(times, "times", 1)).transpose()?;
    let scale = Held::<f32>::new(scale, "scale", 1)?;
    let (times, scale) = (times.as_ref().map(Held::slice), scale.slice());
    Ok(py.detach(|| bags.values(times, scale, threads))?.into_pyarray(py))
}

#[pyfunction]
pub(super) fn score_bags<'py>(
    py: Python<'py>,
    bags: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    table: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (held, threads) = (HeldBags::new(bags)?, at_least_one(threads)?);
    let values = Held::<f32>::new(values, "values", 1)?;
    let table = Held::<f32>::new(table, "table", 2)?;
    let texts = texts::Texts::new(held.bags()?, values.slice())?;
    let (n_classes, table) = (columns_of(&table)?, table.slice());
    let found = py.detach(|| texts.scores(table, n_classes, threads))?;
    shaped(py, found, &[texts.len(), n_classes])
}

/// The same of texts that were counted, each left out: by the rows of `others`, and of `own` in its own class.
#[pyfunction]
pub(super) fn left_out_bags<'py>(
    py: Python<'py>,
    bags: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyTuple>,
    others: &Bound<'py, PyAny>,
    own: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (held, threads) = (HeldBags::new(bags)?, at_least_one(threads)?);
    let values = Held::<f32>::new(values, "values", 1)?;
    let labels = HeldSets::new(labels)?;
    let (others, own) = (Held::<f32>::new(others, "others", 2)?, Held::<f32>::new(own, "own", 2)?);
    let texts = texts::Texts::new(held.bags()?, values.slice())?;
    let n_classes = columns_of(&others)?;
    let labels = labels.sets(n_classes)?;
    let tables = [others.slice(), own.slice()];
    let found = py.detach(|| texts.left_out(labels, tables, n_classes, threads))?;
    shaped(py, found, &[texts.len(), n_classes])
}

/// The least loss of scores times one number, and the number.
#[pyfunction]
pub(super) fn tempered<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    row_weights: &Bound<'py, PyAny>,
    ridge: f64,
    most: f64,
) -> PyResult<(f64, f64)> {
    let scores = Held::<f32>::new(scores, "scores", 2)?;
    let labels = Held::<i32>::new(labels, "labels", 1)?;
    let weights = Held::<f64>::new(row_weights, "row_weights", 1)?;
    let (scores, labels, weights) = (scores.slice(), labels.slice(), weights.slice());
    Ok(py.detach(|| weighing::tempered(scores, labels, weights, ridge, most))?)
}

pub(super) fn columns_of<T: numpy::Element + Copy>(table: &Held<T>) -> PyResult<usize> {
    use numpy::PyUntypedArrayMethods;
    table.array.shape().last().copied().ok_or_else(|| malformed("a table must have axes"))
}

/// One pass of corrections after another, each in an order of its own; the mean change of the last.
#[pyfunction]
pub(super) fn correct_bags<'py>(
    py: Python<'py>,
    bags: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    strengths: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    common: f32,
    own: &Bound<'py, PyAny>,
    orders: &Bound<'py, PyAny>,
    mu: &Bound<'py, PyAny>,
    table: &Bound<'py, PyAny>,
) -> PyResult<f64> {
    let held = HeldBags::new(bags)?;
    let values = Held::<f32>::new(values, "values", 1)?;
    let texts = texts::Texts::new(held.bags()?, values.slice())?;
    let strengths = Held::<f64>::new(strengths, "strengths", 1)?;
    let offsets = Held::<f64>::new(offsets, "offsets", 2)?;
    let own = Held::<f32>::new(own, "own", 2)?;
    let orders = all::<u32>(orders, "orders", 1)?;
    let orders: Vec<&[u32]> = orders.iter().map(Held::slice).collect();
    let task = texts::Task {
        strengths: strengths.slice(),
        offsets: offsets.slice(),
        common,
        own: own.slice(),
        classes: columns_of(&own)?,
    };
    let (mut mu, mut table) = (writable::<f32>(mu, "mu")?, writable::<f32>(table, "table")?);
    let apart = || malformed("mu and table must lie in one piece");
    let mu = mu.as_slice_mut().map_err(|_| apart())?;
    let table = table.as_slice_mut().map_err(|_| apart())?;
    Ok(py.detach(|| {
        let mut change = 0.0;
        for order in orders {
            change = texts::ascend(&texts, &task, order, mu, table)?;
        }
        Ok::<_, crate::error::Error>(change)
    })?)
}

/// A pass of corrections for labels in lanes, `[lane][text][label]`; the mean change.
#[pyfunction]
pub(super) fn correct_labels<'py>(
    py: Python<'py>,
    bags: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    strengths: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    common: f32,
    own: &Bound<'py, PyAny>,
    order: &Bound<'py, PyAny>,
    mu: &Bound<'py, PyAny>,
    table: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<f64> {
    let (held, threads) = (HeldBags::new(bags)?, at_least_one(threads)?);
    let values = Held::<f32>::new(values, "values", 1)?;
    let texts = texts::Texts::new(held.bags()?, values.slice())?;
    let strengths = Held::<f64>::new(strengths, "strengths", 1)?;
    let offsets = Held::<f64>::new(offsets, "offsets", 3)?;
    let own = Held::<f32>::new(own, "own", 3)?;
    let order = Held::<u32>::new(order, "order", 1)?;
    let task = labels::Task {
        strengths: strengths.slice(),
        offsets: offsets.slice(),
        common,
        own: own.slice(),
        width: columns_of(&own)?,
    };
    let (mut mu, mut table) = (writable::<f32>(mu, "mu")?, writable::<f32>(table, "table")?);
    let apart = || malformed("mu and table must lie in one piece");
    let mu = mu.as_slice_mut().map_err(|_| apart())?;
    let table = table.as_slice_mut().map_err(|_| apart())?;
    let order = order.slice();
    Ok(py.detach(|| labels::ascend(&texts, &task, order, mu, table, threads))?)
}

/// What words say of labels, by the pairs that occur: starts, labels, what they say, and what each word says of all.
#[pyfunction]
pub(super) fn score_labels<'py>(
    py: Python<'py>,
    bags: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    index: &Bound<'py, PyAny>,
    slopes: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let (held, threads) = (HeldBags::new(bags)?, at_least_one(threads)?);
    let values = Held::<f32>::new(values, "values", 1)?;
    let texts = texts::Texts::new(held.bags()?, values.slice())?;
    let items = items(index)?;
    let [starts, labels, says, base] = &items[..] else {
        return Err(malformed("an index is starts, labels, what they say and what is said of all"));
    };
    let starts = Held::<i64>::new(starts, "starts", 1)?;
    let labels = Held::<u32>::new(labels, "labels", 1)?;
    let (says, base) = (Held::<f64>::new(says, "says", 1)?, Held::<f64>::new(base, "base", 1)?);
    let slopes = Held::<f64>::new(slopes, "slopes", 1)?;
    let slopes = slopes.slice();
    let parts = (starts.slice(), labels.slice(), says.slice(), base.slice());
    let found = py.detach(|| {
        let (starts, labels, says, base) = parts;
        let index = labels::Index::new(starts, labels, says, base, slopes.len())?;
        index.scores(&texts, slopes, threads)
    })?;
    shaped(py, found, &[texts.len(), slopes.len()])
}
