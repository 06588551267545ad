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
    AssignedScoring, Part, ScoreKind, Scoring, cells, ellipse, flags, histogram, kernel, linear,
    normal, product, table, words,
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

/// The shape of the kernel that Python calls by this name; an error if there is none.
fn kernel_named(name: &str) -> PyResult<kernel::Shape> {
    kernel::Shape::named(name).ok_or_else(|| malformed(format!("there is no kernel {name:?}")))
}

/// The numbers of a table, (rows, classes), row after row; an error that names the argument, `name`, unless it has a column for
/// each class.
fn class_table<'a>(table: &'a RealTable, n_classes: usize, name: &str) -> PyResult<&'a [f64]> {
    match table.width() {
        width if width == n_classes => Ok(table),
        width => Err(malformed(format!("{name} must be (.., {n_classes}), got (.., {width})"))),
    }
}

/// A block of a single column as columns.
fn single_column<'a>(block: &'a HeldBlock) -> PyResult<Columns<'a>> {
    Ok(Columns::new(vec![block.block()?])?)
}

impl HeldPart<'_> {
    /// Converts the arguments of a part of a model with `n_classes` classes to the form of the core, which documents what each of
    /// them holds (such as [`normal::Normal::new`]); an error if they do not fit together. `origin` and `unit`, (columns,), are
    /// the scale of columns, z = (x - origin) / unit. Tables are (features, classes), or (cells, classes) if a feature has
    /// several rows.
    fn part(&self, n_classes: usize) -> PyResult<Part<'_>> {
        Ok(match self {
            HeldPart::Normal(part) => {
                let columns = part.columns.columns()?;
                let scale = Scale::new(&part.origin, &part.unit, columns.features())?;
                // The parameters of the normal densities, (features, classes).
                let curves = [
                    class_table(&part.mean, n_classes, "mean")?,
                    class_table(&part.precision, n_classes, "precision")?,
                    class_table(&part.constant, n_classes, "constant")?,
                ];
                let power = part.power.as_ref(); // None: normal densities
                let power =
                    power.map(|power| class_table(power, n_classes, "power")).transpose()?;
                Part::Normal(normal::Normal::new(columns, scale, curves, power, n_classes)?)
            }
            HeldPart::Table(part) => Part::Table(table::LookupTable::new(
                part.columns.columns()?,
                &part.low,
                part.lookups.iter().map(|lookup| &**lookup).collect(),
                &part.outside,
                class_table(&part.table, n_classes, "table")?,
                n_classes,
            )?),
            HeldPart::Steps(part) => {
                // The cuts of each feature, ascending; and the log-likelihoods of the cells between them, (cells, classes).
                let cuts: Vec<&[f64]> = part.cuts.iter().map(|cuts| &**cuts).collect();
                let table = class_table(&part.table, n_classes, "table")?;
                Part::Table(table::LookupTable::of_steps(
                    part.columns.columns()?,
                    &cuts,
                    table,
                    n_classes,
                )?)
            }
            HeldPart::Flags(part) => {
                let columns = part.columns.columns()?;
                // A number above the threshold of its feature is a yes.
                let thresholds = Thresholds::new(&part.threshold, columns.features())?;
                // The log-likelihoods of both answers, (features, classes).
                let no = class_table(&part.no, n_classes, "no")?;
                let yes = class_table(&part.yes, n_classes, "yes")?;
                Part::Flags(flags::Flags::new(columns, thresholds, no, yes, n_classes)?)
            }
            HeldPart::Histogram(part) => Part::Histogram(histogram::Histogram::new(
                single_column(&part.column)?,
                part.start,
                part.width,
                part.first,
                class_table(&part.table, n_classes, "table")?,
                n_classes,
            )?),
            HeldPart::Kernel(part) => {
                demand(
                    part.bandwidth.len() == n_classes,
                    "bandwidth must have one number per class",
                )?;
                let n_features = 1;
                Part::Kernel(kernel::Kernel::new(
                    single_column(&part.column)?,
                    Scale::new(from_ref(&part.origin), &[part.unit], n_features)?,
                    kernel_named(&part.kernel)?,
                    &part.centres,
                    class_table(&part.weights, n_classes, "weights")?,
                    &part.bandwidth,
                    &part.constant,
                    part.floor,
                )?)
            }
            HeldPart::Linear(part) => Part::Linear(linear::Linear::new(
                part.matrix.matrix()?,
                class_table(&part.weights, n_classes, "weights")?,
                &part.constant,
                n_classes,
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
                    n_classes,
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
                    class_table(&part.weights, n_classes, "weights")?,
                    &part.bandwidth,
                    &part.floor,
                    n_classes,
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
                n_classes,
            )?),
            HeldPart::Cells(part) => Part::Cells(cells::CellTables::new(
                part.columns.columns()?,
                part.terms.get().planned(),
                class_table(&part.table, n_classes, "table")?,
                n_classes,
            )?),
        })
    }
}

/// Joins `n_rows` rows and the model that scores them: `log_prior` has a number per class, and `parts` have the features and how
/// their log-likelihoods are computed.
fn scoring<'a>(
    n_rows: usize,
    log_prior: &'a Reals,
    parts: &'a [HeldPart],
) -> PyResult<Scoring<'a>> {
    let parts = parts.iter().map(|part| part.part(log_prior.len()));
    Ok(Scoring::new(n_rows, log_prior, parts.collect::<PyResult<_>>()?)?)
}

/// Classes of rows, or a score for each row and class.
#[derive(IntoPyObject)]
pub(super) enum Scores {
    Classes(NumPy<i32>),
    Numbers(NumPy<f64>),
}

/// The log density of a kernel (its name) at the centre of each of `cells` (indices) without one of its own rows, not divided by
/// the number of rows. `centres` is (all cells, columns), ascending in the first column; `weights`, (all cells,), is the number
/// of rows in each; `bandwidth`, (columns,), is in the unit of the centres.
#[pyfunction]
pub(super) fn kernels_left_out(
    py: Python,
    kernel: &str,
    centres: RealTable,
    weights: Reals,
    bandwidth: Reals,
    cells: Longs,
    threads: Threads,
) -> PyResult<NumPy<f64>> {
    let shape = kernel_named(kernel)?;
    let (centres, weights, bandwidth, cells) = (&*centres, &*weights, &*bandwidth, &*cells);
    let log_densities =
        py.detach(|| product::leave_one_out(shape, centres, weights, bandwidth, cells, *threads))?;
    Ok(log_densities.into())
}

/// Scores all rows by a model: `log_prior` of each class, and `parts`, each of which has the parameters of some features of one
/// kind and the values of all rows in these features. `want` is "class", "parts" (each
/// feature's log-likelihood) or a kind of score: "log_joint", "posterior" or "log_posterior". Returns classes, (rows,),
/// log-likelihoods, (rows, features, classes), or scores, (rows, classes); and how many rows are impossible in every class.
#[pyfunction]
pub(super) fn score(
    py: Python,
    n_rows: i64,
    log_prior: Reals,
    parts: Vec<HeldPart>,
    want: &str,
    threads: Threads,
) -> PyResult<(Scores, usize)> {
    let n_rows = size(n_rows, "n_rows")?;
    let scoring = scoring(n_rows, &log_prior, &parts)?;
    let n_classes = scoring.n_classes();
    Ok(match want {
        "class" => {
            let (classes, n_impossible) = py.detach(|| scoring.classes(*threads))?;
            (Scores::Classes(classes.into()), n_impossible)
        }
        "parts" => {
            let (likelihoods, n_impossible) = py.detach(|| scoring.likelihoods(*threads))?;
            let shape = [n_rows, scoring.features(), n_classes];
            (Scores::Numbers(shaped(likelihoods, &shape)), n_impossible)
        }
        name => {
            let kind = score_kind(name)?;
            let (scores, n_impossible) = py.detach(|| scoring.scores(kind, *threads))?;
            (Scores::Numbers(shaped(scores, &[n_rows, n_classes])), n_impossible)
        }
    })
}

/// (class, posterior, log posterior, log-likelihood of each feature alone).
type RowScores = (i32, NumPy<f64>, NumPy<f64>, NumPy<f64>);

/// Scores a single row by a model: `log_prior` of each class, and `parts`, which have the row. Returns its class, posterior and
/// log posterior, (classes,), and the log-likelihood of each feature alone, (features, classes).
#[pyfunction]
pub(super) fn score_row(py: Python, log_prior: Reals, parts: Vec<HeldPart>) -> PyResult<RowScores> {
    let (n_rows, threads) = (1, 1);
    let scoring = scoring(n_rows, &log_prior, &parts)?;
    py.detach(|| {
        // The second of each pair is how many rows are impossible in every class, 0 or 1.
        let (classes, _) = scoring.classes(threads)?;
        let (posterior, _) = scoring.scores(ScoreKind::Posterior, threads)?;
        let (log_posterior, _) = scoring.scores(ScoreKind::LogPosterior, threads)?;
        let (likelihoods, _) = scoring.likelihoods(threads)?;
        let likelihoods = shaped(likelihoods, &[scoring.features(), scoring.n_classes()]);
        Ok((classes[0], posterior.into(), log_posterior.into(), likelihoods))
    })
}

/// The kind of score that Python calls by this name; an error if there is none.
fn score_kind(name: &str) -> PyResult<ScoreKind> {
    match name {
        "log_joint" => Ok(ScoreKind::LogJoint),
        "posterior" => Ok(ScoreKind::Posterior),
        "log_posterior" => Ok(ScoreKind::LogPosterior),
        _ => Err(malformed(format!("want must be a kind of score, got {name:?}"))),
    }
}

/// Scores each row by the model whose index `which` has for it, -1 for none, and writes its scores, of the kind `want`
/// ("log_joint", "posterior" or "log_posterior"), to `out`, (rows, classes), 0 where a row has no model. `models` are (log prior
/// of each class, parts, which have all rows). Returns how many rows are impossible in every class.
#[pyfunction]
pub(super) fn score_each(
    py: Python,
    which: Codes,
    models: Vec<(Reals, Vec<HeldPart>)>,
    want: &str,
    threads: Threads,
    mut out: Changed<f64>,
) -> PyResult<usize> {
    let kind = score_kind(want)?;
    let models = models.iter().map(|(log_prior, parts)| scoring(which.len(), log_prior, parts));
    let scoring = AssignedScoring::new(models.collect::<PyResult<_>>()?, &which)?;
    let out = out.slice();
    Ok(py.detach(|| scoring.write_scores(kind, *threads, out))?)
}
