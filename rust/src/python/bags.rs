//! Bags of words for the kernels of weighing: counts, scores and corrections.

use super::arrays::{Array, Changed, NumPy, Threads, shaped};
use super::weighing::Passes;
use crate::classes::Sets;
use crate::weighing::{labels, texts};
use pyo3::prelude::*;

type Offsets<'py> = Array<'py, i64, 1>;
type Labels<'py> = Array<'py, i32, 1>;
type Ranks<'py> = Array<'py, u32, 1>;
type Reals<'py> = Array<'py, f64, 1>;
/// Single precision is enough to store tables and to learn corrections; sums are doubles.
type Singles<'py> = Array<'py, f32, 1>;
type Table<'py> = Array<'py, f32, 2>;

/// The words of texts: text i has the distinct words `words[offsets[i]..offsets[i + 1]]`, numbered by rank, each as often as
/// `times` says; `hashes` has a hash of each text, and `n_words` is the number of ranks.
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

/// The arrays that say which words each text has, held while kernels read them.
struct HeldBags<'py> {
    offsets: Offsets<'py>,
    words: Ranks<'py>,
    n_words: usize,
}

impl HeldBags<'_> {
    /// The bags as the core takes them.
    fn bags(&self) -> PyResult<texts::Bags<'_>> {
        Ok(texts::Bags::new(&self.offsets, &self.words, self.n_words)?)
    }

    /// The bags with the value of each word of each text, in the order of `words`.
    fn texts<'a, T: Copy>(&'a self, values: &'a [T]) -> PyResult<texts::Texts<'a, T>> {
        Ok(texts::Texts::new(self.bags()?, values)?)
    }
}

impl Bags {
    /// Borrows the arrays that say which words each text has.
    fn held<'py>(&self, py: Python<'py>) -> PyResult<HeldBags<'py>> {
        Ok(HeldBags {
            offsets: self.offsets.extract(py)?,
            words: self.words.extract(py)?,
            n_words: self.n_words,
        })
    }
}

#[pymethods]
impl Bags {
    /// Keeps the arrays; whether they fit each other is checked where they are used.
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

    /// The weight of the texts that have each word, by class, (words, classes). `labels` are the classes of each text: offsets, and
    /// the classes of text after text. `weights` are those of texts.
    fn count(
        &self,
        py: Python,
        labels: (Offsets, Labels),
        weights: Reals,
        n_classes: usize,
    ) -> PyResult<NumPy<f64>> {
        let (held, labels) = (self.held(py)?, Sets::new(&labels.0, &labels.1, n_classes)?);
        let (bags, weights) = (held.bags()?, &*weights);
        let sums = py.detach(|| bags.count(labels, weights, n_classes))?;
        Ok(shaped(sums, &[self.n_words, n_classes]))
    }

    /// The value of each word of each text, in the order of `words`: its `scale`, (words,), times the root of how often it occurs
    /// if `often`, divided so that the squares of a text's values sum to 1, or to 0.
    fn values(
        &self,
        py: Python,
        often: bool,
        scale: Singles,
        threads: Threads,
    ) -> PyResult<NumPy<f64>> {
        let times: Option<Reals> = often.then(|| self.times.extract(py)).transpose()?;
        let held = self.held(py)?;
        let (bags, times, scale) = (held.bags()?, times.as_deref(), &*scale);
        Ok(py.detach(|| bags.values(times, scale, *threads))?.into())
    }

    /// Σ value · row of the word over the words of a text, (texts, classes). `values` are in the order of `words`, and `table` is
    /// (words, classes).
    fn scores(
        &self,
        py: Python,
        values: Reals,
        table: Table,
        threads: Threads,
    ) -> PyResult<NumPy<f64>> {
        let held = self.held(py)?;
        let (texts, n_classes, table) = (held.texts(&values)?, table.width(), &*table);
        let scores = py.detach(|| texts.scores(table, n_classes, *threads))?;
        Ok(shaped(scores, &[texts.len(), n_classes]))
    }

    /// As `scores`, (texts, classes), but by the table `own` for a text's own classes, given by `labels`, and by `others` for all
    /// other classes.
    fn left_out(
        &self,
        py: Python,
        values: Reals,
        labels: (Offsets, Labels),
        others: Table,
        own: Table,
        threads: Threads,
    ) -> PyResult<NumPy<f64>> {
        let held = self.held(py)?;
        let (texts, n_classes, tables) = (held.texts(&values)?, others.width(), [&*others, &*own]);
        let labels = Sets::new(&labels.0, &labels.1, n_classes)?;
        let scores = py.detach(|| texts.left_out(labels, tables, n_classes, *threads))?;
        Ok(shaped(scores, &[texts.len(), n_classes]))
    }

    /// Runs passes that improve, in place, `mu`, (texts, classes), the dual variables, and `table`, (words + 1, 2 classes): Δ of
    /// each class and then s² of each, for the words and for a feature that all texts have with the value `common`. `values` are in
    /// the order of `words`, and `text_variances` are Σ s² · value² of each text, (texts, classes).
    fn correct(
        &self,
        py: Python,
        values: Singles,
        common: f32,
        text_variances: Table,
        passes: &Passes,
        mut mu: Changed<f32>,
        mut table: Changed<f32>,
    ) -> PyResult<()> {
        let (held, classes) = (self.held(py)?, text_variances.width());
        let text_variances = &*text_variances;
        let (texts, mu, table) = (held.texts(&values)?, mu.slice(), table.slice());
        let mut texts = texts::CorrectedTexts { texts, common, text_variances, table, classes };
        passes.run(py, |rows, order| texts::ascend(&mut texts, rows, order, mu))
    }

    /// As `correct`, for yes-or-no labels that are learned in lanes of 8 or 16, independently of each other; all arrays have lane
    /// after lane.
    fn correct_labels(
        &self,
        py: Python,
        values: Singles,
        common: f32,
        text_variances: Table,
        passes: &Passes,
        mut mu: Changed<f32>,
        mut table: Changed<f32>,
        threads: Threads,
    ) -> PyResult<()> {
        let (held, classes) = (self.held(py)?, text_variances.width());
        let text_variances = &*text_variances;
        let (texts, mu, table) = (held.texts(&values)?, mu.slice(), table.slice());
        let mut texts = texts::CorrectedTexts { texts, common, text_variances, table, classes };
        passes.run(py, |rows, order| labels::ascend(&mut texts, rows, order, mu, *threads))
    }

    /// Scores of labels, (texts, labels). `index` lists the words and labels that occur together: where those of each word start,
    /// the labels, the score of each, and the score of each word for all labels. `slopes` are added to the score of each label,
    /// times the sum of a text's values.
    fn label_scores(
        &self,
        py: Python,
        values: Reals,
        index: (Offsets, Ranks, Reals, Reals),
        slopes: Reals,
        threads: Threads,
    ) -> PyResult<NumPy<f64>> {
        let (held, slopes) = (self.held(py)?, &*slopes);
        let texts = held.texts(&values)?;
        let index = labels::Index::new(&index.0, &index.1, &index.2, &index.3, slopes.len())?;
        let scores = py.detach(|| index.scores(&texts, slopes, *threads))?;
        Ok(shaped(scores, &[texts.len(), slopes.len()]))
    }

    /// Replaces the ids of bags by their ranks, and sorts each text by rank; returns offsets, ranks, how often each occurs, and a
    /// hash of each text. `ranks` has the rank of each id; a word with 2**32 - 1 is left out.
    #[staticmethod]
    fn ranked(
        py: Python,
        offsets: Offsets,
        ids: Labels,
        times: Reals,
        ranks: Ranks,
        threads: Threads,
    ) -> PyResult<Ranked> {
        let (offsets, ids, times, ranks) = (&*offsets, &*ids, &*times, &*ranks);
        let (new_offsets, words, word_times, hashes) =
            py.detach(|| texts::rank_words(offsets, ids, times, ranks, *threads))?;
        Ok((new_offsets.into(), words.into(), word_times.into(), hashes.into()))
    }
}

/// Offsets, ranks, how often each occurs, and a hash of each text.
type Ranked = (NumPy<i64>, NumPy<u32>, NumPy<f64>, NumPy<u64>);
