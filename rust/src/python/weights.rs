//! The weights of words.

use super::arrays::{Codes, Ids, Longs, NumPy, Reals, Shared, Threads, malformed, shaped, size};
use super::words::{Groups, Words};
use crate::score::rough;
use crate::score::words::Counting;
use crate::words::WeightsByCount;
use crate::words::weights::{self, RowArrays};
use pyo3::prelude::*;
use std::sync::Arc;

/// (whether each word has weights, its weight in each class, its scale).
type Rows = (NumPy<bool>, NumPy<f64>, NumPy<f64>);

/// A row of numbers per class for each word id.
#[pyclass(module = "banbury._core", frozen)]
pub(super) struct Weights(Shared<weights::Weights>);

#[pymethods]
impl Weights {
    /// Weights without rows, with room for `n_words` rows; `default`, (classes,), is added to a word's common number in classes
    /// in which the word has no number of its own.
    #[new]
    #[pyo3(signature = (n_classes, default, n_words=0))]
    fn new(n_classes: i64, default: Reals, n_words: i64) -> PyResult<Self> {
        if default.len() != size(n_classes, "n_classes")? {
            return Err(malformed("default must have one number per class"));
        }
        let weights = weights::Weights::new(&default)?;
        Ok(Weights(Shared::new(weights.with_room(size(n_words, "n_words")?))))
    }

    /// Sets the rows of words: word `ids[i]` has `values[j]` in class `classes[j]` for j from `starts[i]` to `starts[i + 1]`,
    /// and `common[i]` plus the default of the class in all other classes. `scale[i]` is what a token of the word counts; None
    /// for ones. Uses so many threads.
    #[pyo3(signature = (ids, common, scale, starts, classes, values, threads = Threads(1)))]
    #[allow(clippy::too_many_arguments)]
    fn set(
        &self,
        py: Python,
        ids: Ids,
        common: Reals,
        scale: Option<Reals>,
        starts: Longs,
        classes: Codes,
        values: Reals,
        threads: Threads,
    ) -> PyResult<()> {
        let rows = RowArrays {
            ids: &ids,
            common: &common,
            scale: scale.as_deref(),
            starts: &starts,
            classes: &classes,
            values: &values,
        };
        Ok(py.detach(|| self.0.change(|weights| weights.set(&rows, *threads)))?)
    }

    /// Sets the rows of the words `ids` by their counts in `words`: the weight is `values[n]` in a class that has the word n
    /// times, or in n texts if `once`; if `complement`, n is the count of all other classes. `left_out` is a group of texts
    /// that does not count: all groups, and its number. Returns the ids of the words that keep their rows, since a count is not
    /// whole or beyond `values`. Uses so many threads.
    #[pyo3(signature = (words, ids, once, complement, values, threads, left_out=None))]
    #[allow(clippy::too_many_arguments)]
    fn set_counted(
        &self,
        py: Python,
        words: &Words,
        ids: Ids,
        once: bool,
        complement: bool,
        values: Reals,
        threads: Threads,
        left_out: Option<(Bound<Groups>, i64)>,
    ) -> PyResult<NumPy<u32>> {
        let words = words.get(py); // with their counts
        // All groups of texts, and the number of the one that does not count.
        let left_out = match &left_out {
            Some((groups, group)) => Some((groups.get().get(), size(*group, "group")?)),
            None => None,
        };
        let weights_by_count = WeightsByCount {
            words: &words,
            left_out,
            ids: &ids,
            counts_documents: once,
            is_complement: complement,
            weight_of_count: &values,
        };
        let unset_ids =
            py.detach(|| self.0.change(|weights| weights_by_count.set(weights, *threads)))?;
        Ok(unset_ids.into())
    }

    /// Updates the rows of the words `ids` by their counts in `words`: the weight is `values[n]` in a class that has the word n
    /// times, or in n texts if `once`; if `complement`, n is the count of all other classes. Words that no text has any more lose
    /// their rows. Returns the ids of the words that keep their rows, since a count is not whole or beyond `values`.
    fn follow(
        &self,
        py: Python,
        words: &Words,
        ids: Ids,
        once: bool,
        complement: bool,
        values: Reals,
    ) -> PyResult<NumPy<u32>> {
        let words = words.get(py);
        let weights_by_count = WeightsByCount {
            words: &words,
            left_out: None,
            ids: &ids,
            counts_documents: once,
            is_complement: complement,
            weight_of_count: &values,
        };
        let unset_ids = py.detach(|| self.0.change(|weights| weights_by_count.update(weights)))?;
        Ok(unset_ids.into())
    }

    /// Removes the rows of the words `ids`.
    fn skip(&self, py: Python, ids: Ids) -> PyResult<()> {
        let ids = &*ids;
        py.detach(|| self.0.change(|weights| weights.skip(ids)));
        Ok(())
    }

    /// Whether each of the words `ids` has a row, (words,); the rows, (words, classes), zeros where there is none; the scales,
    /// what a token of each word counts, (words,).
    fn rows(&self, py: Python, ids: Ids) -> PyResult<Rows> {
        let ids = &*ids;
        let weights = self.0.get(py);
        let n_classes = weights.n_classes();
        let (has_weights, rows, scales) = py.detach(|| {
            let mut rows = vec![0.0; ids.len() * n_classes];
            let words = ids.iter().zip(rows.chunks_exact_mut(n_classes)); // id, and memory for the row
            let (has_weights, scales): (Vec<_>, Vec<_>) = words
                .map(|(&id, row)| weights.read(id, row))
                .map(|scale| (scale.is_some(), scale.unwrap_or(0.0)))
                .unzip();
            (has_weights, rows, scales)
        });
        let rows = shaped(rows, &[ids.len(), n_classes]);
        Ok((has_weights.into(), rows, scales.into()))
    }

    /// The weights of the first `n_columns` columns of a matrix in single precision, which find the classes of most rows: `words`
    /// says which word a column is, and `base`, (classes,), is added to the row of each. None if there are too many classes, or a
    /// number is not finite. Uses so many threads.
    fn rough(
        &self,
        py: Python,
        words: &Words,
        base: Reals,
        n_columns: i64,
        threads: Threads,
    ) -> PyResult<Option<Rough>> {
        let base = &*base;
        let n_columns = size(n_columns, "n_columns")?;
        let (weights, words) = (self.0.get(py), words.get(py));
        // The weights in single precision, or none.
        let single =
            py.detach(|| rough::Rough::new(&words, &weights, base, n_columns, *threads))?;
        Ok(single.map(Rough))
    }

    /// A copy, which shares memory with this until one of both is changed.
    fn copy(&self, py: Python) -> Self {
        Weights(Shared::new(self.0.get(py)))
    }
}

/// The weights of a matrix's columns in single precision.
#[pyclass(module = "banbury._core", frozen)]
pub(super) struct Rough(pub(super) rough::Rough);

/// The weights that an argument has when it is read.
pub(super) struct SharedWeights(pub(super) Arc<weights::Weights>);

impl<'py> FromPyObject<'_, 'py> for SharedWeights {
    type Error = PyErr;

    /// The weights that a Python object of class `Weights` has now.
    fn extract(argument: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(SharedWeights(argument.cast::<Weights>()?.get().0.get(argument.py())))
    }
}

/// How words count in a text, by the argument `counting` of Python: true (once) or false (as often as they occur); "unit" or
/// "unit once" (the root of how often they occur, or once, divided by the text's length); as draws from an urn if there are
/// `balls`, the total of all words' balls, `[class]`.
pub(super) fn counting_of<'a>(
    counting: &Bound<'_, PyAny>,
    balls: Option<&'a [f64]>,
) -> PyResult<Counting<'a>> {
    // Whether counts are divided by the text's length, and whether a word counts once.
    let (is_unit, once) = match counting.extract::<String>().as_deref() {
        Ok("unit") => (true, false),
        Ok("unit once") => (true, true),
        Ok(name) => return Err(malformed(format!("there is no counting {name:?}"))),
        Err(_) => (false, counting.extract()?),
    };
    Ok(match balls {
        Some(balls) => Counting::Polya { balls, once },
        None if is_unit => Counting::Unit { once },
        None if once => Counting::Once,
        None => Counting::Often,
    })
}
