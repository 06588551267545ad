//! Scores: the parts of a model with their arrays, held while rows are scored.

use super::arrays::{Held, HeldBlock, HeldColumns, at_least_one, malformed, shaped, size};
use super::weights::HeldWords;
use super::words::{HeldMatrix, optional};
use crate::columns::Columns;
use crate::error::demand;
use crate::flags::Thresholds;
use crate::scale::Scale;
use crate::score::{
    Each, Part, Task, Want, ellipse, flags, histogram, kernel, linear, normal, product, table,
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A part's arrays, held while it is scored.
enum HeldPart<'py> {
    Normal {
        columns: HeldColumns<'py>,
        scale: [Held<'py, f64>; 2],
        curves: [Held<'py, f64>; 3],
        power: Option<Held<'py, f64>>,
    },
    Table {
        columns: HeldColumns<'py>,
        low: Held<'py, i64>,
        lookups: Vec<Held<'py, u32>>,
        outside: Held<'py, i64>,
        table: Held<'py, f64>,
    },
    Flags {
        columns: HeldColumns<'py>,
        threshold: Held<'py, f64>,
        no: Held<'py, f64>,
        yes: Held<'py, f64>,
    },
    Histogram {
        column: HeldBlock<'py>,
        start: f64,
        width: f64,
        first: i64,
        table: Held<'py, f64>,
    },
    Kernel {
        column: HeldBlock<'py>,
        scale: [f64; 2],
        shape: kernel::Shape,
        centres: Held<'py, f64>,
        weights: Held<'py, f64>,
        bandwidth: Held<'py, f64>,
        constant: Held<'py, f64>,
        floor: [f64; 2],
    },
    Words(HeldWords<'py>),
    Ellipse {
        columns: HeldColumns<'py>,
        scale: [Held<'py, f64>; 2],
        mean: Held<'py, f64>,
        whiten: Held<'py, f64>,
        constant: Held<'py, f64>,
        power: Option<Held<'py, f64>>,
    },
    Product {
        columns: HeldColumns<'py>,
        scale: [Held<'py, f64>; 2],
        shape: kernel::Shape,
        centres: Held<'py, f64>,
        weights: Held<'py, f64>,
        bandwidth: Held<'py, f64>,
        floor: Held<'py, f64>,
    },
    Linear {
        matrix: HeldMatrix<'py>,
        weights: Held<'py, f64>,
        constant: Held<'py, f64>,
    },
}

fn kernel_named(name: &Bound<PyAny>) -> PyResult<kernel::Shape> {
    let name: String = name.extract()?;
    kernel::Shape::named(&name).ok_or_else(|| malformed(format!("there is no kernel {name:?}")))
}

impl<'py> HeldPart<'py> {
    fn new(any: &Bound<'py, PyAny>) -> PyResult<Self> {
        let tuple = any.cast::<PyTuple>().map_err(|_| malformed("a part must be a tuple"))?;
        let items: Vec<Bound<'py, PyAny>> = tuple.iter().collect();
        let name: String = match items.first() {
            Some(name) => name.extract()?,
            None => return Err(malformed("a part must begin with its name")),
        };
        match (name.as_str(), &items[1..]) {
            ("normal", [columns, rest @ ..]) if rest.len() == 5 => {
                HeldPart::normal(columns, rest, None)
            }
            ("student", [columns, rest @ .., power]) if rest.len() == 5 => {
                HeldPart::normal(columns, rest, Some(power))
            }
            ("table", [columns, low, lookups, outside, table]) => Ok(HeldPart::Table {
                columns: HeldColumns::new(columns)?,
                low: Held::new(low, "low", 1)?,
                lookups: lookups
                    .try_iter()?
                    .map(|lookup| Held::new(&lookup?, "a lookup", 1))
                    .collect::<PyResult<_>>()?,
                outside: Held::new(outside, "outside", 1)?,
                table: Held::new(table, "table", 2)?,
            }),
            ("flags", [columns, threshold, no, yes]) => Ok(HeldPart::Flags {
                columns: HeldColumns::new(columns)?,
                threshold: Held::new(threshold, "threshold", 1)?,
                no: Held::new(no, "no", 2)?,
                yes: Held::new(yes, "yes", 2)?,
            }),
            ("histogram", [column, start, width, first, table]) => Ok(HeldPart::Histogram {
                column: HeldBlock::new(column)?,
                start: start.extract()?,
                width: width.extract()?,
                first: first.extract()?,
                table: Held::new(table, "table", 2)?,
            }),
            ("kernel", [column, rest @ ..]) if rest.len() == 8 => HeldPart::kernel(column, rest),
            ("linear", [matrix @ .., weights, constant]) => Ok(HeldPart::Linear {
                matrix: HeldMatrix::new(matrix)?,
                weights: Held::new(weights, "weights", 2)?,
                constant: Held::new(constant, "constant", 1)?,
            }),
            ("ellipse", [columns, origin, unit, mean, whiten, constant, power]) => {
                Ok(HeldPart::Ellipse {
                    columns: HeldColumns::new(columns)?,
                    scale: [Held::new(origin, "origin", 1)?, Held::new(unit, "unit", 1)?],
                    mean: Held::new(mean, "mean", 2)?,
                    whiten: Held::new(whiten, "whiten", 3)?,
                    constant: Held::new(constant, "constant", 1)?,
                    power: optional(power, "power")?,
                })
            }
            ("product", [columns, origin, unit, name, centres, weights, bandwidth, floor]) => {
                Ok(HeldPart::Product {
                    columns: HeldColumns::new(columns)?,
                    scale: [Held::new(origin, "origin", 1)?, Held::new(unit, "unit", 1)?],
                    shape: kernel_named(name)?,
                    centres: Held::new(centres, "centres", 2)?,
                    weights: Held::new(weights, "weights", 2)?,
                    bandwidth: Held::new(bandwidth, "bandwidth", 2)?,
                    floor: Held::new(floor, "floor", 2)?,
                })
            }
            ("words", rest) if rest.len() == 8 => HeldWords::new(rest).map(HeldPart::Words),
            (name, rest) => {
                Err(malformed(format!("there is no part {name:?} with {} arguments", rest.len())))
            }
        }
    }

    fn normal(
        columns: &Bound<'py, PyAny>,
        rest: &[Bound<'py, PyAny>],
        power: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        Ok(HeldPart::Normal {
            columns: HeldColumns::new(columns)?,
            scale: [Held::new(&rest[0], "origin", 1)?, Held::new(&rest[1], "unit", 1)?],
            curves: [
                Held::new(&rest[2], "mean", 2)?,
                Held::new(&rest[3], "precision", 2)?,
                Held::new(&rest[4], "constant", 2)?,
            ],
            power: power.map(|power| Held::new(power, "power", 2)).transpose()?,
        })
    }

    fn kernel(column: &Bound<'py, PyAny>, rest: &[Bound<'py, PyAny>]) -> PyResult<Self> {
        let shape = kernel_named(&rest[2])?;
        let floor: Vec<f64> = rest[7].extract()?;
        let floor = <[f64; 2]>::try_from(floor)
            .map_err(|_| malformed("floor must be a mean and a standard deviation"))?;
        Ok(HeldPart::Kernel {
            column: HeldBlock::new(column)?,
            scale: [rest[0].extract()?, rest[1].extract()?],
            shape,
            centres: Held::new(&rest[3], "centres", 1)?,
            weights: Held::new(&rest[4], "weights", 2)?,
            bandwidth: Held::new(&rest[5], "bandwidth", 1)?,
            constant: Held::new(&rest[6], "constant", 1)?,
            floor,
        })
    }

    fn part(&self, c: usize) -> PyResult<Part<'_>> {
        Ok(match self {
            HeldPart::Normal {
                columns,
                scale: [origin, unit],
                curves: [mean, precision, constant],
                power,
            } => {
                let columns = columns.columns()?;
                let scale = Scale::new(origin.slice(), unit.slice(), columns.features())?;
                let curves = [
                    mean.matrix(c, "mean")?,
                    precision.matrix(c, "precision")?,
                    constant.matrix(c, "constant")?,
                ];
                let power = power.as_ref().map(|power| power.matrix(c, "power")).transpose()?;
                Part::Normal(normal::Normal::new(columns, scale, curves, power, c)?)
            }
            HeldPart::Table { columns, low, lookups, outside, table } => {
                Part::Table(table::Table::new(
                    columns.columns()?,
                    low.slice(),
                    lookups.iter().map(Held::slice).collect(),
                    outside.slice(),
                    table.matrix(c, "table")?,
                    c,
                )?)
            }
            HeldPart::Flags { columns, threshold, no, yes } => {
                let columns = columns.columns()?;
                let thresholds = Thresholds::new(threshold.slice(), columns.features())?;
                let (no, yes) = (no.matrix(c, "no")?, yes.matrix(c, "yes")?);
                Part::Flags(flags::Flags::new(columns, thresholds, no, yes, c)?)
            }
            HeldPart::Histogram { column, start, width, first, table } => {
                Part::Histogram(histogram::Histogram::new(
                    Columns::new(vec![column.block()?])?,
                    *start,
                    *width,
                    *first,
                    table.matrix(c, "table")?,
                    c,
                )?)
            }
            HeldPart::Kernel {
                column,
                scale: [origin, unit],
                shape,
                centres,
                weights,
                bandwidth,
                constant,
                floor,
            } => {
                let columns = Columns::new(vec![column.block()?])?;
                demand(bandwidth.slice().len() == c, "bandwidth must have one number per class")?;
                let scale = Scale::new(std::slice::from_ref(origin), &[*unit], 1)?;
                let weights = weights.matrix(c, "weights")?;
                Part::Kernel(kernel::Kernel::new(
                    columns,
                    scale,
                    *shape,
                    centres.slice(),
                    weights,
                    bandwidth.slice(),
                    constant.slice(),
                    *floor,
                )?)
            }
            HeldPart::Words(held) => Part::Words(held.part(c)?),
            HeldPart::Ellipse { columns, scale: [origin, unit], mean, whiten, constant, power } => {
                let columns = columns.columns()?;
                let scale = Scale::new(origin.slice(), unit.slice(), columns.features())?;
                Part::Ellipse(ellipse::Ellipse::new(
                    columns,
                    scale,
                    mean.slice(),
                    whiten.slice(),
                    constant.slice(),
                    power.as_ref().map(Held::slice),
                    c,
                )?)
            }
            HeldPart::Product {
                columns,
                scale: [origin, unit],
                shape,
                centres,
                weights,
                bandwidth,
                floor,
            } => {
                let columns = columns.columns()?;
                let scale = Scale::new(origin.slice(), unit.slice(), columns.features())?;
                Part::Product(product::Product::new(
                    columns,
                    scale,
                    *shape,
                    centres.slice(),
                    weights.matrix(c, "weights")?,
                    bandwidth.slice(),
                    floor.slice(),
                    c,
                )?)
            }
            HeldPart::Linear { matrix, weights, constant } => Part::Linear(linear::Linear::new(
                matrix.matrix()?,
                weights.matrix(c, "weights")?,
                constant.slice(),
                c,
            )?),
        })
    }
}

#[pyfunction]
pub(super) fn kernels_left_out<'py>(
    py: Python<'py>,
    kernel: &Bound<'py, PyAny>,
    centres: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    bandwidth: &Bound<'py, PyAny>,
    some: &Bound<'py, PyAny>,
    threads: i64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (shape, threads) = (kernel_named(kernel)?, at_least_one(threads)?);
    let centres = Held::<f64>::new(centres, "centres", 2)?;
    let weights = Held::<f64>::new(weights, "weights", 1)?;
    let bandwidth = Held::<f64>::new(bandwidth, "bandwidth", 1)?;
    let some = Held::<i64>::new(some, "some", 1)?;
    let (centres, weights, some) = (centres.slice(), weights.slice(), some.slice());
    let bandwidth = bandwidth.slice();
    let found =
        py.detach(|| product::left_out(shape, centres, weights, bandwidth, some, threads))?;
    Ok(found.into_pyarray(py))
}

#[pyfunction]
pub(super) fn score<'py>(
    py: Python<'py>,
    n_rows: i64,
    log_prior: &Bound<'py, PyAny>,
    parts: &Bound<'py, PyAny>,
    want: &str,
    threads: i64,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let (n, threads) = (size(n_rows, "n_rows")?, at_least_one(threads)?);
    let log_prior = Held::<f64>::new(log_prior, "log_prior", 1)?;
    let c = log_prior.slice().len();
    let held = parts.try_iter()?.map(|part| HeldPart::new(&part?));
    let held: Vec<HeldPart> = held.collect::<PyResult<_>>()?;
    let parts: PyResult<Vec<Part>> = held.iter().map(|part| part.part(c)).collect();
    let task = Task::new(n, log_prior.slice(), parts?)?;
    let reals = |want| py.detach(|| task.reals(want, threads));
    let (found, lost) = match want {
        "class" => {
            let (found, lost) = py.detach(|| task.classes(threads))?;
            return Ok((found.into_pyarray(py).into_any(), lost));
        }
        "parts" => {
            let (found, lost) = py.detach(|| task.parts(threads))?;
            return Ok((shaped(py, found, &[n, task.features(), c])?, lost));
        }
        other => reals(wanted(other)?)?,
    };
    Ok((shaped(py, found, &[n, c])?, lost))
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
    which: &Bound<'py, PyAny>,
    models: &Bound<'py, PyAny>,
    want: &str,
    threads: i64,
    out: &Bound<'py, PyAny>,
) -> PyResult<usize> {
    let (want, threads) = (wanted(want)?, at_least_one(threads)?);
    let which = Held::<i32>::new(which, "which", 1)?;
    let n = which.slice().len();
    let mut held = vec![];
    for model in models.try_iter()? {
        let (log_prior, parts): (Bound<'py, PyAny>, Bound<'py, PyAny>) = model?.extract()?;
        let parts = parts.try_iter()?.map(|part| HeldPart::new(&part?));
        let log_prior = Held::<f64>::new(&log_prior, "log_prior", 1)?;
        held.push((log_prior, parts.collect::<PyResult<Vec<HeldPart>>>()?));
    }
    let tasks: PyResult<Vec<Task>> = held
        .iter()
        .map(|(log_prior, parts)| {
            let c = log_prior.slice().len();
            let parts: PyResult<Vec<Part>> = parts.iter().map(|part| part.part(c)).collect();
            Ok(Task::new(n, log_prior.slice(), parts?)?)
        })
        .collect();
    let each = Each::new(tasks?, which.slice())?;
    let mut out = out
        .cast::<PyArray2<f64>>()
        .map_err(|_| malformed("out must be a matrix of float64"))?
        .try_readwrite()
        .map_err(|_| malformed("out must be writable, and read by nobody else"))?;
    let out = out.as_slice_mut().map_err(|_| malformed("out must lie in one piece"))?;
    Ok(py.detach(|| each.reals(want, threads, out))?)
}
