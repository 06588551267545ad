//! Scores: the parts of a model with their arrays, held while rows are scored.

use super::arrays::{Held, HeldColumns, at_least_one, malformed, shaped, size};
use super::weighing::{Terms, all};
use super::weights::HeldWords;
use super::words::HeldMatrix;
use crate::columns::Columns;
use crate::error::demand;
use crate::flags::Thresholds;
use crate::scale::Scale;
use crate::score::{
    Each, Part, Task, Want, cells, ellipse, flags, histogram, kernel, linear, normal, product,
    table,
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::OnceCell;
use std::slice::from_ref;

/// Where what a part reads is held while it is scored.
#[derive(Default)]
struct Room<'py> {
    columns: OnceCell<HeldColumns<'py>>,
    reals: [OnceCell<Held<'py, f64>>; 6],
    wholes: [OnceCell<Held<'py, i64>>; 2],
    lookups: OnceCell<Vec<Held<'py, u32>>>,
    /// Of a kernel of one column.
    origin: OnceCell<f64>,
    matrix: OnceCell<HeldMatrix<'py>>,
    words: OnceCell<HeldWords<'py>>,
    terms: OnceCell<Bound<'py, Terms>>,
    cuts: OnceCell<Vec<Held<'py, f64>>>,
}

fn keep<T>(places: &[OnceCell<T>], value: T) -> PyResult<&T> {
    let free = places.iter().find(|place| place.get().is_none());
    let free = free.ok_or_else(|| malformed("a part has fewer arrays"))?;
    Ok(free.get_or_init(|| value))
}

fn kernel_named(name: &Bound<PyAny>) -> PyResult<kernel::Shape> {
    let name: String = name.extract()?;
    kernel::Shape::named(&name).ok_or_else(|| malformed(format!("there is no kernel {name:?}")))
}

impl<'py> Room<'py> {
    fn columns(&self, any: &Bound<'py, PyAny>) -> PyResult<Columns<'_>> {
        keep(from_ref(&self.columns), HeldColumns::new(any)?)?.columns()
    }

    fn column(&self, any: &Bound<'py, PyAny>) -> PyResult<Columns<'_>> {
        keep(from_ref(&self.columns), HeldColumns::one(any)?)?.columns()
    }

    fn reals(&self, any: &Bound<'py, PyAny>, name: &str, dimensions: usize) -> PyResult<&[f64]> {
        Ok(keep(&self.reals, Held::new(any, name, dimensions)?)?.slice())
    }

    /// An array of so many columns.
    fn table(&self, any: &Bound<'py, PyAny>, name: &str, c: usize) -> PyResult<&[f64]> {
        keep(&self.reals, Held::new(any, name, 2)?)?.matrix(c, name)
    }

    fn wholes(&self, any: &Bound<'py, PyAny>, name: &str) -> PyResult<&[i64]> {
        Ok(keep(&self.wholes, Held::new(any, name, 1)?)?.slice())
    }

    fn scale(
        &self,
        origin: &Bound<'py, PyAny>,
        unit: &Bound<'py, PyAny>,
        columns: &Columns,
    ) -> PyResult<Scale<'_>> {
        let (origin, unit) = (self.reals(origin, "origin", 1)?, self.reals(unit, "unit", 1)?);
        Ok(Scale::new(origin, unit, columns.features())?)
    }

    /// The part that a tuple says, for so many classes.
    fn part(&self, any: &Bound<'py, PyAny>, c: usize) -> PyResult<Part<'_>> {
        let tuple = any.cast::<PyTuple>().map_err(|_| malformed("a part must be a tuple"))?;
        let items: Vec<Bound<'py, PyAny>> = tuple.iter().collect();
        let name: String = match items.first() {
            Some(name) => name.extract()?,
            None => return Err(malformed("a part must begin with its name")),
        };
        Ok(match (name.as_str(), &items[1..]) {
            (
                "normal" | "student",
                [columns, origin, unit, mean, precision, constant, power @ ..],
            ) if power.len() == usize::from(name == "student") => {
                let columns = self.columns(columns)?;
                let scale = self.scale(origin, unit, &columns)?;
                let curves = [
                    self.table(mean, "mean", c)?,
                    self.table(precision, "precision", c)?,
                    self.table(constant, "constant", c)?,
                ];
                let power = power.first().map(|power| self.table(power, "power", c)).transpose()?;
                Part::Normal(normal::Normal::new(columns, scale, curves, power, c)?)
            }
            ("table", [columns, low, lookups, outside, table]) => {
                let lookups = lookups.try_iter()?.map(|lookup| Held::new(&lookup?, "a lookup", 1));
                let lookups: Vec<Held<u32>> = lookups.collect::<PyResult<_>>()?;
                let lookups = keep(from_ref(&self.lookups), lookups)?;
                Part::Table(table::Table::new(
                    self.columns(columns)?,
                    self.wholes(low, "low")?,
                    lookups.iter().map(Held::slice).collect(),
                    self.wholes(outside, "outside")?,
                    self.table(table, "table", c)?,
                    c,
                )?)
            }
            ("steps", [columns, cuts, table]) => {
                let columns = self.columns(columns)?;
                let cuts = keep(from_ref(&self.cuts), all(cuts, "cuts", 1)?)?;
                let cuts: Vec<&[f64]> = cuts.iter().map(Held::slice).collect();
                Part::Table(table::Table::of_steps(
                    columns,
                    &cuts,
                    self.table(table, "table", c)?,
                    c,
                )?)
            }
            ("flags", [columns, threshold, no, yes]) => {
                let columns = self.columns(columns)?;
                let threshold = self.reals(threshold, "threshold", 1)?;
                let thresholds = Thresholds::new(threshold, columns.features())?;
                let (no, yes) = (self.table(no, "no", c)?, self.table(yes, "yes", c)?);
                Part::Flags(flags::Flags::new(columns, thresholds, no, yes, c)?)
            }
            ("histogram", [column, start, width, first, table]) => {
                Part::Histogram(histogram::Histogram::new(
                    self.column(column)?,
                    start.extract()?,
                    width.extract()?,
                    first.extract()?,
                    self.table(table, "table", c)?,
                    c,
                )?)
            }
            (
                "kernel",
                [column, origin, unit, kernel, centres, weights, bandwidth, constant, floor],
            ) => {
                let floor: Vec<f64> = floor.extract()?;
                let floor = <[f64; 2]>::try_from(floor)
                    .map_err(|_| malformed("floor must be a mean and a standard deviation"))?;
                let bandwidth = self.reals(bandwidth, "bandwidth", 1)?;
                demand(bandwidth.len() == c, "bandwidth must have one number per class")?;
                let origin = from_ref(keep(from_ref(&self.origin), origin.extract()?)?);
                Part::Kernel(kernel::Kernel::new(
                    self.column(column)?,
                    Scale::new(origin, &[unit.extract()?], 1)?,
                    kernel_named(kernel)?,
                    self.reals(centres, "centres", 1)?,
                    self.table(weights, "weights", c)?,
                    bandwidth,
                    self.reals(constant, "constant", 1)?,
                    floor,
                )?)
            }
            ("linear", [matrix @ .., weights, constant]) => Part::Linear(linear::Linear::new(
                keep(from_ref(&self.matrix), HeldMatrix::new(matrix)?)?.matrix()?,
                self.table(weights, "weights", c)?,
                self.reals(constant, "constant", 1)?,
                c,
            )?),
            ("ellipse", [columns, origin, unit, mean, whiten, constant, power]) => {
                let columns = self.columns(columns)?;
                let power =
                    (!power.is_none()).then(|| self.reals(power, "power", 1)).transpose()?;
                let scale = self.scale(origin, unit, &columns)?;
                Part::Ellipse(ellipse::Ellipse::new(
                    columns,
                    scale,
                    self.reals(mean, "mean", 2)?,
                    self.reals(whiten, "whiten", 3)?,
                    self.reals(constant, "constant", 1)?,
                    power,
                    c,
                )?)
            }
            ("product", [columns, origin, unit, kernel, centres, weights, bandwidth, floor]) => {
                let columns = self.columns(columns)?;
                let scale = self.scale(origin, unit, &columns)?;
                Part::Product(product::Product::new(
                    columns,
                    scale,
                    kernel_named(kernel)?,
                    self.reals(centres, "centres", 2)?,
                    self.table(weights, "weights", c)?,
                    self.reals(bandwidth, "bandwidth", 2)?,
                    self.reals(floor, "floor", 2)?,
                    c,
                )?)
            }
            ("words", rest) if matches!(rest.len(), 8 | 9) => {
                Part::Words(keep(from_ref(&self.words), HeldWords::new(rest)?)?.part(c)?)
            }
            ("cells", [columns, terms, table]) => {
                let columns = self.columns(columns)?;
                let terms = keep(from_ref(&self.terms), terms.cast::<Terms>()?.clone())?;
                let table = self.table(table, "table", c)?;
                Part::Cells(cells::CellTables::new(columns, terms.get().planned(), table, c)?)
            }
            (name, rest) => {
                let n = rest.len();
                return Err(malformed(format!("there is no part {name:?} with {n} arguments")));
            }
        })
    }
}

/// A model's arrays, held while rows are scored.
struct HeldTask<'py> {
    log_prior: Held<'py, f64>,
    parts: Vec<(Bound<'py, PyAny>, Room<'py>)>,
}

impl<'py> HeldTask<'py> {
    fn new(log_prior: &Bound<'py, PyAny>, parts: &Bound<'py, PyAny>) -> PyResult<Self> {
        let parts = parts.try_iter()?.map(|part| Ok((part?, Room::default())));
        Ok(HeldTask {
            log_prior: Held::new(log_prior, "log_prior", 1)?,
            parts: parts.collect::<PyResult<_>>()?,
        })
    }

    fn task(&self, n: usize) -> PyResult<Task<'_>> {
        let log_prior = self.log_prior.slice();
        let parts = self.parts.iter().map(|(part, room)| room.part(part, log_prior.len()));
        Ok(Task::new(n, log_prior, parts.collect::<PyResult<_>>()?)?)
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
    let held = HeldTask::new(log_prior, parts)?;
    let task = held.task(n)?;
    let (c, reals) = (task.n_classes(), |want| py.detach(|| task.reals(want, threads)));
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
    let held = models.try_iter()?.map(|model| {
        let (log_prior, parts): (Bound<'py, PyAny>, Bound<'py, PyAny>) = model?.extract()?;
        HeldTask::new(&log_prior, &parts)
    });
    let held: Vec<HeldTask> = held.collect::<PyResult<_>>()?;
    let tasks: PyResult<Vec<Task>> = held.iter().map(|held| held.task(n)).collect();
    let each = Each::new(tasks?, which.slice())?;
    let mut out = out
        .cast::<PyArray2<f64>>()
        .map_err(|_| malformed("out must be a matrix of float64"))?
        .try_readwrite()
        .map_err(|_| malformed("out must be writable, and read by nobody else"))?;
    let out = out.as_slice_mut().map_err(|_| malformed("out must lie in one piece"))?;
    Ok(py.detach(|| each.reals(want, threads, out))?)
}
