//! Scores: the parts of a model, whose arrays are borrowed while rows are scored.

use super::arrays::{
    Array, Changed, Codes, HeldBlock, HeldColumns, Ids, Longs, NumPy, RealTable, Reals, Threads,
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
    AssignedScoring, Part, Scoring, Want, cells, ellipse, flags, histogram, kernel, linear, normal,
    product, table, words,
};
use pyo3::prelude::*;
use std::slice::from_ref;

classes! {
    (frozen, module = "banbury._core")
    /// A part of a model: the arguments of one kernel.
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
    /// Converts the arguments to a part for `c` classes.
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

/// A model and the rows that it scores.
fn scoring<'a>(n: usize, log_prior: &'a Reals, parts: &'a [HeldPart]) -> PyResult<Scoring<'a>> {
    let parts = parts.iter().map(|part| part.part(log_prior.len()));
    Ok(Scoring::new(n, log_prior, parts.collect::<PyResult<_>>()?)?)
}

/// Classes of rows, or numbers of rows and classes.
#[derive(IntoPyObject)]
pub(super) enum Answer {
    Classes(NumPy<i32>),
    Numbers(NumPy<f64>),
}

#[pyfunction]
pub(super) fn kernels_left_out(
    py: Python,
    kernel: &str,
    centres: RealTable,
    weights: Reals,
    bandwidth: Reals,
    some: Longs,
    threads: Threads,
) -> PyResult<NumPy<f64>> {
    let shape = kernel_named(kernel)?;
    let (centres, weights, bandwidth, some) = (&*centres, &*weights, &*bandwidth, &*some);
    let found =
        py.detach(|| product::left_out(shape, centres, weights, bandwidth, some, *threads))?;
    Ok(found.into())
}

#[pyfunction]
pub(super) fn score(
    py: Python,
    n_rows: i64,
    log_prior: Reals,
    parts: Vec<HeldPart>,
    want: &str,
    threads: Threads,
) -> PyResult<(Answer, usize)> {
    let n = size(n_rows, "n_rows")?;
    let task = scoring(n, &log_prior, &parts)?;
    let c = task.n_classes();
    let (answer, lost) = match want {
        "class" => {
            let (classes, lost) = py.detach(|| task.classes(*threads))?;
            (Answer::Classes(classes.into()), lost)
        }
        "parts" => {
            let (parts, lost) = py.detach(|| task.parts(*threads))?;
            (Answer::Numbers(shaped(parts, &[n, task.features(), c])), lost)
        }
        other => {
            let want = wanted(other)?;
            let (reals, lost) = py.detach(|| task.reals(want, *threads))?;
            (Answer::Numbers(shaped(reals, &[n, c])), lost)
        }
    };
    Ok((answer, lost))
}

/// Class, posterior, log posterior and the log-likelihoods of features.
type RowScores = (i32, NumPy<f64>, NumPy<f64>, NumPy<f64>);

/// Scores a single row.
#[pyfunction]
pub(super) fn score_row(py: Python, log_prior: Reals, parts: Vec<HeldPart>) -> PyResult<RowScores> {
    let task = scoring(1, &log_prior, &parts)?;
    let row = py.detach(|| task.row())?;
    let likelihoods = shaped(row.parts, &[task.features(), task.n_classes()]);
    Ok((row.class, row.posterior.into(), row.log_posterior.into(), likelihoods))
}

fn wanted(name: &str) -> PyResult<Want> {
    match name {
        "log_joint" => Ok(Want::LogJoint),
        "posterior" => Ok(Want::Posterior),
        "log_posterior" => Ok(Want::LogPosterior),
        other => Err(malformed(format!("there is no {other:?} to want"))),
    }
}

/// Scores each row by the model that `which` assigns to it, and writes the scores to `out`.
#[pyfunction]
pub(super) fn score_each(
    py: Python,
    which: Codes,
    models: Vec<(Reals, Vec<HeldPart>)>,
    want: &str,
    threads: Threads,
    mut out: Changed<f64>,
) -> PyResult<usize> {
    let want = wanted(want)?;
    let models = models.iter().map(|(log_prior, parts)| scoring(which.len(), log_prior, parts));
    let task = AssignedScoring::new(models.collect::<PyResult<_>>()?, &which)?;
    let out = out.slice();
    Ok(py.detach(|| task.reals(want, *threads, out))?)
}
