//! Bags of words: what they count, score and correct.

use super::arrays::{Array, Changed, Threads, shaped};
use super::weighing::Passes;
use crate::classes::Sets;
use crate::weighing::{labels, texts};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

type Offsets<'py> = Array<'py, i64, 1>;
type Labels<'py> = Array<'py, i32, 1>;
type Ranks<'py> = Array<'py, u32, 1>;
type Reals<'py> = Array<'py, f64, 1>;
/// Single precision is enough to store tables, and to learn corrections; what is added up are doubles.
type Singles<'py> = Array<'py, f32, 1>;
type Table<'py> = Array<'py, f32, 2>;

/// Text i has the words `offsets[i]..offsets[i + 1]`, each so many times; `hashes` are of all that it has.
#[pyclass(frozen, subclass, module = "banbury._core")]
pub(super) struct Bags {
    #[pyo3(get)]
    offsets: Py<PyAny>,
    #[pyo3(get)]
    words: Py<PyAny>,
    #[pyo3(get)]
    times: Py<PyAny>,
    #[pyo3(get)]
    hashes: Py<PyAny>,
    #[pyo3(get)]
    n_words: usize,
}

/// Offsets, words, and how many words there are.
struct HeldBags<'py>(Offsets<'py>, Ranks<'py>, usize);

impl HeldBags<'_> {
    fn bags(&self) -> PyResult<texts::Bags<'_>> {
        Ok(texts::Bags::new(&self.0, &self.1, self.2)?)
    }

    fn texts<'a, T: Copy>(&'a self, values: &'a [T]) -> PyResult<texts::Texts<'a, T>> {
        Ok(texts::Texts::new(self.bags()?, values)?)
    }
}

impl Bags {
    fn held<'py>(&self, py: Python<'py>) -> PyResult<HeldBags<'py>> {
        Ok(HeldBags(self.offsets.extract(py)?, self.words.extract(py)?, self.n_words))
    }
}

#[pymethods]
impl Bags {
    #[new]
    fn new(
        offsets: Py<PyAny>,
        words: Py<PyAny>,
        times: Py<PyAny>,
        hashes: Py<PyAny>,
        n_words: usize,
    ) -> Self {
        Bags { offsets, words, times, hashes, n_words }
    }

    fn count<'py>(
        &self,
        py: Python<'py>,
        labels: (Offsets<'py>, Labels<'py>),
        weights: Reals<'py>,
        n_classes: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (held, labels) = (self.held(py)?, Sets::new(&labels.0, &labels.1, n_classes)?);
        let (bags, weights) = (held.bags()?, &*weights);
        let found = py.detach(|| bags.count(labels, weights, n_classes))?;
        shaped(py, found, &[self.n_words, n_classes])
    }

    fn values<'py>(
        &self,
        py: Python<'py>,
        often: bool,
        scale: Singles<'py>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let times: Option<Reals> = often.then(|| self.times.extract(py)).transpose()?;
        let held = self.held(py)?;
        let (bags, times, scale) = (held.bags()?, times.as_deref(), &*scale);
        Ok(py.detach(|| bags.values(times, scale, *threads))?.into_pyarray(py))
    }

    fn scores<'py>(
        &self,
        py: Python<'py>,
        values: Reals<'py>,
        table: Table<'py>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyAny>> {
        let held = self.held(py)?;
        let (texts, n_classes, table) = (held.texts(&values)?, table.width(), &*table);
        let found = py.detach(|| texts.scores(table, n_classes, *threads))?;
        shaped(py, found, &[texts.len(), n_classes])
    }

    fn left_out<'py>(
        &self,
        py: Python<'py>,
        values: Reals<'py>,
        labels: (Offsets<'py>, Labels<'py>),
        others: Table<'py>,
        own: Table<'py>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyAny>> {
        let held = self.held(py)?;
        let (texts, n_classes, tables) = (held.texts(&values)?, others.width(), [&*others, &*own]);
        let labels = Sets::new(&labels.0, &labels.1, n_classes)?;
        let found = py.detach(|| texts.left_out(labels, tables, n_classes, *threads))?;
        shaped(py, found, &[texts.len(), n_classes])
    }

    fn correct<'py>(
        &self,
        py: Python<'py>,
        values: Singles<'py>,
        common: f32,
        own: Table<'py>,
        passes: &Passes,
        mut mu: Changed<'py, f32>,
        mut table: Changed<'py, f32>,
    ) -> PyResult<()> {
        let (held, classes, own) = (self.held(py)?, own.width(), &*own);
        let (texts, mu, table) = (held.texts(&values)?, mu.slice(), table.slice());
        let mut texts = texts::CorrectedTexts { texts, common, own, table, classes };
        passes.run(py, |task, order| texts::ascend(&mut texts, task, order, mu))
    }

    fn correct_labels<'py>(
        &self,
        py: Python<'py>,
        values: Singles<'py>,
        common: f32,
        own: Table<'py>,
        passes: &Passes,
        mut mu: Changed<'py, f32>,
        mut table: Changed<'py, f32>,
        threads: Threads,
    ) -> PyResult<()> {
        let (held, classes, own) = (self.held(py)?, own.width(), &*own);
        let (texts, mu, table) = (held.texts(&values)?, mu.slice(), table.slice());
        let mut texts = texts::CorrectedTexts { texts, common, own, table, classes };
        passes.run(py, |task, order| labels::ascend(&mut texts, task, order, mu, *threads))
    }

    /// By the pairs of words and labels that occur: starts, labels, what they say, and what each word says of all.
    fn label_scores<'py>(
        &self,
        py: Python<'py>,
        values: Reals<'py>,
        index: (Offsets<'py>, Ranks<'py>, Reals<'py>, Reals<'py>),
        slopes: Reals<'py>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (held, slopes) = (self.held(py)?, &*slopes);
        let texts = held.texts(&values)?;
        let index = labels::Index::new(&index.0, &index.1, &index.2, &index.3, slopes.len())?;
        let found = py.detach(|| index.scores(&texts, slopes, *threads))?;
        shaped(py, found, &[texts.len(), slopes.len()])
    }

    /// Bags of ids, by the ranks of ids: offsets, words, how often each occurs, and a hash of each text.
    #[staticmethod]
    fn ranked<'py>(
        py: Python<'py>,
        offsets: Offsets<'py>,
        ids: Labels<'py>,
        times: Reals<'py>,
        ranks: Ranks<'py>,
        threads: Threads,
    ) -> PyResult<Ranked<'py>> {
        let (offsets, ids, times, ranks) = (&*offsets, &*ids, &*times, &*ranks);
        let (starts, words, often, hashes) =
            py.detach(|| texts::ranked(offsets, ids, times, ranks, *threads))?;
        Ok((
            starts.into_pyarray(py),
            words.into_pyarray(py),
            often.into_pyarray(py),
            hashes.into_pyarray(py),
        ))
    }
}

type Ranked<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<u64>>,
);
