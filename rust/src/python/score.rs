//! Scores: the parts of a model with their arrays, held while rows are scored.

use super::arrays::{
    Array, Changed, Codes, HeldBlock, HeldColumns, Ids, Longs, RealTable, Reals, Threads,
    malformed, shaped, size,
};
use super::classes::classes;
use super::text::Tokeniser;
use super::texts::{HeldMatrix, HeldTexts};
use super::weighing::Terms;
use super::weights::{Rough, SharedWeights, counting_of};
use super::words::SharedWords;
use crate::columns::Columns;
use crate::error::demand;
use crate::flags::Thresholds;
use crate::scale::Scale;
use crate::score::{
    Each, Part, Scoring, Want, cells, ellipse, flags, histogram, kernel, linear, normal, product,
    table, words,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use std::slice::from_ref;

classes! {
    (frozen, module = "banbury._core")
    /// A part of a model.
    HeldPart, "a part must be of a class of parts":
    NormalPart as HeldNormal(Normal) {
        columns: HeldColumns<'py>, origin: Reals<'py>, unit: Reals<'py>, mean: RealTable<'py>,
        precision: RealTable<'py>, constant: RealTable<'py>, power: Option<RealTable<'py>>
    }
    TablePart as HeldTable(Table) {
        columns: HeldColumns<'py>, low: Longs<'py>, lookups: Vec<Ids<'py>>, outside: Longs<'py>,
        table: RealTable<'py>
    }
    StepsPart as HeldSteps(Steps) {
        columns: HeldColumns<'py>, cuts: Vec<Reals<'py>>, table: RealTable<'py>
    }
    FlagsPart as HeldFlags(Flags) {
        columns: HeldColumns<'py>, threshold: Reals<'py>, no: RealTable<'py>, yes: RealTable<'py>
    }
    HistogramPart as HeldHistogram(Histogram) {
        column: HeldBlock<'py>, start: f64, width: f64, first: i64, table: RealTable<'py>
    }
    KernelPart as HeldKernel(Kernel) {
        column: HeldBlock<'py>, origin: f64, unit: f64, kernel: String, centres: Reals<'py>,
        weights: RealTable<'py>, bandwidth: Reals<'py>, constant: Reals<'py>, floor: [f64; 2]
    }
    LinearPart as HeldLinear(Linear) {
        matrix: HeldMatrix<'py>, weights: RealTable<'py>, constant: Reals<'py>
    }
    EllipsePart as HeldEllipse(Ellipse) {
        columns: HeldColumns<'py>, origin: Reals<'py>, unit: Reals<'py>, mean: RealTable<'py>,
        whiten: Array<'py, f64, 3>, constant: Reals<'py>, power: Option<Reals<'py>>
    }
    ProductPart as HeldProduct(Product) {
        columns: HeldColumns<'py>, origin: Reals<'py>, unit: Reals<'py>, kernel: String,
        centres: RealTable<'py>, weights: RealTable<'py>, bandwidth: RealTable<'py>,
        floor: RealTable<'py>
    }
    WordsPart as HeldWords(Words) {
        texts: HeldTexts<'py>, tokeniser: Bound<'py, Tokeniser>, words: SharedWords,
        weights: SharedWeights, base: Option<Reals<'py>>, constant: Reals<'py>,
        counting: Bound<'py, PyAny>, polya: Option<Reals<'py>>,
        rough: Option<Bound<'py, Rough>>
    }
    CellsPart as HeldCells(Cells) {
        columns: HeldColumns<'py>, terms: Bound<'py, Terms>, table: RealTable<'py>
    }
}

fn kernel_named(name: &str) -> PyResult<kernel::Shape> {
    kernel::Shape::named(name).ok_or_else(|| malformed(format!("there is no kernel {name:?}")))
}

/// The numbers of a table, which must have a column for each class.
fn of_classes<'a>(table: &'a RealTable, n_classes: usize, name: &str) -> PyResult<&'a [f64]> {
    match table.width() {
        width if width == n_classes => Ok(table),
        width => Err(malformed(format!("{name} must be (.., {n_classes}), got (.., {width})"))),
    }
}

fn column<'a>(block: &'a HeldBlock) -> PyResult<Columns<'a>> {
    Ok(Columns::new(vec![block.block()?])?)
}

impl HeldPart<'_> {
    /// The part, for so many classes.
    fn part(&self, c: usize) -> PyResult<Part<'_>> {
        Ok(match self {
            HeldPart::Normal(part) => {
                let columns = part.columns.columns()?;
                let scale = Scale::new(&part.origin, &part.unit, columns.features())?;
                let curves = [
                    of_classes(&part.mean, c, "mean")?,
                    of_classes(&part.precision, c, "precision")?,
                    of_classes(&part.constant, c, "constant")?,
                ];
                let power = part.power.as_ref();
                let power = power.map(|power| of_classes(power, c, "power")).transpose()?;
                Part::Normal(normal::Normal::new(columns, scale, curves, power, c)?)
            }
            HeldPart::Table(part) => Part::Table(table::LookupTable::new(
                part.columns.columns()?,
                &part.low,
                part.lookups.iter().map(|lookup| &**lookup).collect(),
                &part.outside,
                of_classes(&part.table, c, "table")?,
                c,
            )?),
            HeldPart::Steps(part) => {
                let cuts: Vec<&[f64]> = part.cuts.iter().map(|cuts| &**cuts).collect();
                let table = of_classes(&part.table, c, "table")?;
                Part::Table(table::LookupTable::of_steps(part.columns.columns()?, &cuts, table, c)?)
            }
            HeldPart::Flags(part) => {
                let columns = part.columns.columns()?;
                let thresholds = Thresholds::new(&part.threshold, columns.features())?;
                let no = of_classes(&part.no, c, "no")?;
                let yes = of_classes(&part.yes, c, "yes")?;
                Part::Flags(flags::Flags::new(columns, thresholds, no, yes, c)?)
            }
            HeldPart::Histogram(part) => Part::Histogram(histogram::Histogram::new(
                column(&part.column)?,
                part.start,
                part.width,
                part.first,
                of_classes(&part.table, c, "table")?,
                c,
            )?),
            HeldPart::Kernel(part) => {
                demand(part.bandwidth.len() == c, "bandwidth must have one number per class")?;
                Part::Kernel(kernel::Kernel::new(
                    column(&part.column)?,
                    Scale::new(from_ref(&part.origin), &[part.unit], 1)?,
                    kernel_named(&part.kernel)?,
                    &part.centres,
                    of_classes(&part.weights, c, "weights")?,
                    &part.bandwidth,
                    &part.constant,
                    part.floor,
                )?)
            }
            HeldPart::Linear(part) => Part::Linear(linear::Linear::new(
                part.matrix.matrix()?,
                of_classes(&part.weights, c, "weights")?,
                &part.constant,
                c,
            )?),
            HeldPart::Ellipse(part) => {
                let columns = part.columns.columns()?;
                let scale = Scale::new(&part.origin, &part.unit, columns.features())?;
                Part::Ellipse(ellipse::Ellipse::new(
                    columns,
                    scale,
                    &part.mean,
                    &part.whiten,
                    &part.constant,
                    part.power.as_deref(),
                    c,
                )?)
            }
            HeldPart::Product(part) => {
                let columns = part.columns.columns()?;
                let scale = Scale::new(&part.origin, &part.unit, columns.features())?;
                Part::Product(product::Product::new(
                    columns,
                    scale,
                    kernel_named(&part.kernel)?,
                    &part.centres,
                    of_classes(&part.weights, c, "weights")?,
                    &part.bandwidth,
                    &part.floor,
                    c,
                )?)
            }
            HeldPart::Words(part) => Part::Words(words::TextScores::new(
                part.texts.texts()?,
                part.tokeniser.get().inner(),
                &part.words.0,
                &part.weights.0,
                part.base.as_deref(),
                &part.constant,
                counting_of(&part.counting, part.polya.as_deref())?,
                part.rough.as_ref().map(|rough| &rough.get().0),
                c,
            )?),
            HeldPart::Cells(part) => Part::Cells(cells::CellTables::new(
                part.columns.columns()?,
                part.terms.get().planned(),
                of_classes(&part.table, c, "table")?,
                c,
            )?),
        })
    }
}

/// A model's arrays, held while rows are scored.
struct HeldScoring<'py> {
    log_prior: Reals<'py>,
    parts: Vec<HeldPart<'py>>,
}

impl<'py> HeldScoring<'py> {
    fn new(log_prior: Reals<'py>, parts: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(HeldScoring { log_prior, parts: parts.extract()? })
    }

    fn task(&self, n: usize) -> PyResult<Scoring<'_>> {
        let parts = self.parts.iter().map(|part| part.part(self.log_prior.len()));
        Ok(Scoring::new(n, &self.log_prior, parts.collect::<PyResult<_>>()?)?)
    }
}

#[pyfunction]
pub(super) fn kernels_left_out<'py>(
    py: Python<'py>,
    kernel: &str,
    centres: RealTable<'py>,
    weights: Reals<'py>,
    bandwidth: Reals<'py>,
    some: Longs<'py>,
    threads: Threads,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let shape = kernel_named(kernel)?;
    let (centres, weights, bandwidth, some) = (&*centres, &*weights, &*bandwidth, &*some);
    let found =
        py.detach(|| product::left_out(shape, centres, weights, bandwidth, some, *threads))?;
    Ok(found.into_pyarray(py))
}

#[pyfunction]
pub(super) fn score<'py>(
    py: Python<'py>,
    n_rows: i64,
    log_prior: Reals<'py>,
    parts: &Bound<'py, PyAny>,
    want: &str,
    threads: Threads,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let n = size(n_rows, "n_rows")?;
    let held = HeldScoring::new(log_prior, parts)?;
    let task = held.task(n)?;
    let (c, reals) = (task.n_classes(), |want| py.detach(|| task.reals(want, *threads)));
    let (found, lost) = match want {
        "class" => {
            let (found, lost) = py.detach(|| task.classes(*threads))?;
            return Ok((found.into_pyarray(py).into_any(), lost));
        }
        "parts" => {
            let (found, lost) = py.detach(|| task.parts(*threads))?;
            return Ok((shaped(py, found, &[n, task.features(), c])?, lost));
        }
        other => reals(wanted(other)?)?,
    };
    Ok((shaped(py, found, &[n, c])?, lost))
}

/// A class, its posterior and the log of it for every class, and log-likelihoods.
type RowScores<'py> =
    (i32, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyAny>);

/// All that can be said of one row.
#[pyfunction]
pub(super) fn score_row<'py>(
    py: Python<'py>,
    log_prior: Reals<'py>,
    parts: &Bound<'py, PyAny>,
) -> PyResult<RowScores<'py>> {
    let held = HeldScoring::new(log_prior, parts)?;
    let task = held.task(1)?;
    let row = py.detach(|| task.row())?;
    let likelihoods = shaped(py, row.parts, &[task.features(), task.n_classes()])?;
    let posteriors = (row.posterior.into_pyarray(py), row.log_posterior.into_pyarray(py));
    Ok((row.class, posteriors.0, posteriors.1, likelihoods))
}

fn wanted(name: &str) -> PyResult<Want> {
    match name {
        "log_joint" => Ok(Want::LogJoint),
        "posterior" => Ok(Want::Posterior),
        "log_posterior" => Ok(Want::LogPosterior),
        other => Err(malformed(format!("there is no {other:?} to want"))),
    }
}

/// Scores each row by the model of its number, into `out`.
#[pyfunction]
pub(super) fn score_each<'py>(
    py: Python<'py>,
    which: Codes<'py>,
    models: Vec<(Reals<'py>, Bound<'py, PyAny>)>,
    want: &str,
    threads: Threads,
    mut out: Changed<'py, f64>,
) -> PyResult<usize> {
    let want = wanted(want)?;
    let held = models.into_iter().map(|(log_prior, parts)| HeldScoring::new(log_prior, &parts));
    let held: Vec<HeldScoring> = held.collect::<PyResult<_>>()?;
    let tasks: PyResult<Vec<Scoring>> = held.iter().map(|held| held.task(which.len())).collect();
    let (each, out) = (Each::new(tasks?, &which)?, out.slice());
    Ok(py.detach(|| each.reals(want, *threads, out))?)
}
