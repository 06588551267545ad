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
    /// The words of each text as the core takes them: text i has the words `words[offsets[i]..offsets[i + 1]]`, numbers below
    /// `n_words`.
    fn bags(&self) -> PyResult<texts::Bags<'_>> {
        Ok(texts::Bags::new(&self.offsets, &self.words, self.n_words)?)
    }

    /// The words of each text with a value each: `values` has those of text after text, in the order of `words`.
    fn texts<'a, T: Copy>(&'a self, values: &'a [T]) -> PyResult<texts::Texts<'a, T>> {
        Ok(texts::Texts::new(self.bags()?, values)?)
    }
}

impl Bags {
    /// Borrows the arrays that say which words each text has: `offsets`, (texts + 1,), and `words`, the ranks of the words of
    /// text after text.
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
    /// Keeps the arrays: text i has the distinct words `words[offsets[i]..offsets[i + 1]]`, the places, below `n_words`, of words
    /// in the vocabulary that is weighed, each as often as `times` says; `hashes` has a hash of each text. Whether the arrays fit
    /// each other is checked where they are used.
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

    /// The weight of the texts that have each word, by class, (words, classes). `labels` are the classes of each text: offsets,
    /// and the classes of text after text. `weights` are those of texts.
    fn count(
        &self,
        py: Python,
        labels: (Offsets, Labels),
        weights: Reals,
        n_classes: usize,
    ) -> PyResult<NumPy<f64>> {
        // The arrays of words, and the classes of each text.
        let (held, labels) = (self.held(py)?, Sets::new(&labels.0, &labels.1, n_classes)?);
        let (bags, weights) = (held.bags()?, &*weights); // the words of each text, and its weight
        let sums = py.detach(|| bags.count(labels, weights, n_classes))?; // `[word][class]`
        Ok(shaped(sums, &[self.n_words, n_classes]))
    }

    /// The value of each word of each text, in the order of `words`: the word's factor `scale`, (words,), times the root of how
    /// often the text has it if `often`, divided so that the squares of a text's values sum to 1, or to 0. Uses so many threads.
    fn values(
        &self,
        py: Python,
        often: bool,
        scale: Singles,
        threads: Threads,
    ) -> PyResult<NumPy<f64>> {
        // How often a text has each word; none if that does not count.
        let times: Option<Reals> = often.then(|| self.times.extract(py)).transpose()?;
        let held = self.held(py)?;
        let (bags, times, scale) = (held.bags()?, times.as_deref(), &*scale);
        Ok(py.detach(|| bags.values(times, scale, *threads))?.into())
    }

    /// The score of each class for each text, (texts, classes): the sum over the words of the text of the word's value in the
    /// text times the word's row of `table`, (words, classes). `values` has those of text after text, in the order of `words`.
    fn scores(
        &self,
        py: Python,
        values: Reals,
        table: Table,
        threads: Threads,
    ) -> PyResult<NumPy<f64>> {
        let held = self.held(py)?;
        // The words of each text with their values.
        let (texts, n_classes, table) = (held.texts(&values)?, table.width(), &*table);
        let scores = py.detach(|| texts.scores(table, n_classes, *threads))?;
        Ok(shaped(scores, &[texts.len(), n_classes]))
    }

    /// The score of each class for each text, (texts, classes): the sum over the words of the text of the word's value in the
    /// text times the word's row of a table, (words, classes): of `own` for the text's own classes, and of `others` for all
    /// other classes. `values` has those of text after text, in the order of `words`; `labels` are the own classes: offsets,
    /// and the classes of text after text.
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
        // The words of each text with their values; the table of other classes, then that of the text's own.
        let (texts, n_classes, tables) = (held.texts(&values)?, others.width(), [&*others, &*own]);
        let labels = Sets::new(&labels.0, &labels.1, n_classes)?;
        let scores = py.detach(|| texts.left_out(labels, tables, n_classes, *threads))?;
        Ok(shaped(scores, &[texts.len(), n_classes]))
    }

    /// Learns corrections of the scores of words: runs `passes` over the texts, which improve in place the dual variables `mu`,
    /// (texts, classes), and `table`, (words + 1, 2 classes). A row of `table` has the correction Δ of the word's score in each
    /// class and then its variance s² in each; the last row is that of a feature which all texts have with the value `common`.
    /// `values` are those of the words of text after text, in the order of `words`, and `text_variances` are Σ s² · value² over
    /// the words of each text, (texts, classes).
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
        // The arrays of words; how many classes there are.
        let (held, classes) = (self.held(py)?, text_variances.width());
        let text_variances = &*text_variances;
        // The words of each text with their values; the arrays to be changed.
        let (texts, mu, table) = (held.texts(&values)?, mu.slice(), table.slice());
        let mut texts = texts::CorrectedTexts { texts, common, text_variances, table, classes };
        // `rows` has the scores and strengths of texts, and `order` their numbers in the order of a pass.
        passes.run(py, |rows, order| texts::ascend(&mut texts, rows, order, mu))
    }

    /// Learns corrections of the scores of words for yes-or-no labels, which are learned in lanes of 8 or 16, independently of
    /// one another; all arrays have lane after lane. Runs `passes` over the texts, which improve in place the dual variables
    /// `mu`, of each text and label, and `table`, of each word: the correction Δ of its score for each label and then its
    /// variance s² for each; the last row is that of a feature which all texts have with the value `common`. `values` are those
    /// of the words of text after text, in the order of `words`, and `text_variances` are Σ s² · value² over the words of each
    /// text, for each label. Uses so many threads.
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
        // The arrays of words; how many labels there are.
        let (held, classes) = (self.held(py)?, text_variances.width());
        let text_variances = &*text_variances;
        // The words of each text with their values; the arrays to be changed.
        let (texts, mu, table) = (held.texts(&values)?, mu.slice(), table.slice());
        let mut texts = texts::CorrectedTexts { texts, common, text_variances, table, classes };
        // `rows` has the scores and strengths of texts, and `order` their numbers in the order of a pass.
        passes.run(py, |rows, order| labels::ascend(&mut texts, rows, order, mu, *threads))
    }

    /// The scores of labels, (texts, labels): the sum over the words of a text of the word's value in the text, one of
    /// `values`, in the order of `words`, times the word's score for the label. `index` lists the words and labels that occur
    /// together: where the labels of each word start, the labels, the score of each, and the score of each word for all labels.
    /// `slopes`, (labels,), are added to the score of each label, times the sum of the text's values. Uses so many threads.
    fn label_scores(
        &self,
        py: Python,
        values: Reals,
        index: (Offsets, Ranks, Reals, Reals),
        slopes: Reals,
        threads: Threads,
    ) -> PyResult<NumPy<f64>> {
        let (held, slopes) = (self.held(py)?, &*slopes); // the arrays of words
        let texts = held.texts(&values)?; // the words of each text with their values
        let index = labels::Index::new(&index.0, &index.1, &index.2, &index.3, slopes.len())?;
        let scores = py.detach(|| index.scores(&texts, slopes, *threads))?;
        Ok(shaped(scores, &[texts.len(), slopes.len()]))
    }

    /// Replaces the ids of the words of texts by ranks, and sorts the words of each text by rank, on so many threads. Text i
    /// has the words `ids[offsets[i]..offsets[i + 1]]`, each as often as `times` says; `ranks` has the rank of each id, and a
    /// word of rank 2**32 - 1 is left out. Returns offsets, ranks, how often the text has each word, and a hash of each text.
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
