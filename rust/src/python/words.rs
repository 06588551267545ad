//! Sums of text: a store that grows, copied when one of several owners changes it.

use super::arrays::{
    Codes, Held, HeldRows, Ids, LabelSets, Longs, NumPy, RowWeights, Threads, malformed, shaped,
    size,
};
use super::integers::Integers;
use super::text::{Tokeniser, string_of};
use super::texts::{HeldTexts, Strings};
use crate::classes::Sets;
use crate::error::Error;
use crate::words::{self, Batch, State, StoredCounts, Version};
use numpy::{Element, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping};
use std::sync::Arc;

pyo3::create_exception!(
    _core,
    NotThere,
    PyValueError,
    "``args`` is (word or None, class number, what is left, below zero)."
);

/// Returns `ids`, numbers of words, if all are below `n_ids`, the number of words with an id; else an error.
fn check_ids(ids: &[u32], n_ids: usize) -> PyResult<&[u32]> {
    match ids.iter().find(|&&id| id as usize >= n_ids) {
        None => Ok(ids),
        Some(id) => Err(malformed(format!("there are {n_ids} ids, and {id} is none"))),
    }
}

/// Offsets, where the words of each text begin and the last ones end; the ids of words; how often the text has each.
type Bags = (NumPy<i64>, NumPy<i32>, NumPy<i32>);
/// Where the cells of each word start and the last ones end; of each cell the class, occurrences and documents.
type Pairs = (NumPy<i64>, NumPy<i32>, NumPy<f64>, NumPy<f64>);

/// The cells of words as arrays: where the cells of each word start and the last ones end; of each cell the class, occurrences
/// and documents.
fn as_arrays(pairs: words::Pairs) -> Pairs {
    (pairs.starts.into(), pairs.classes.into(), pairs.occurrences.into(), pairs.documents.into())
}

/// The words that an argument has when it is read.
pub(super) struct SharedWords(pub(super) Arc<words::Words>);

impl<'py> FromPyObject<'_, 'py> for SharedWords {
    type Error = PyErr;

    /// The words that a Python object of type `Words` has now.
    fn extract(argument: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(SharedWords(argument.cast::<Words>()?.get().get(argument.py())))
    }
}

/// The cells of a store by group of texts, of which one at a time is left out.
#[pyclass(module = "banbury._core", frozen)]
pub(super) struct Groups(words::Groups);

impl Groups {
    /// The groups of the core.
    pub(super) fn get(&self) -> &words::Groups {
        &self.0
    }
}

#[pymethods]
impl Groups {
    /// Sorts the cells of words by group of texts (fold), on so many threads: class c of the words has those texts of class
    /// `classes[c]` that are in group number `groups[c]`, below `n_groups`; classes ascend within a group.
    #[new]
    #[pyo3(signature = (words, classes, groups, n_groups, threads = Threads(1)))]
    fn new(
        py: Python,
        words: &Words,
        classes: Longs,
        groups: Longs,
        n_groups: i64,
        threads: Threads,
    ) -> PyResult<Self> {
        let (classes, groups) = (&*classes, &*groups);
        let (words, n_groups) = (words.get(py), size(n_groups, "n_groups")?);
        let core_groups =
            py.detach(|| words::Groups::new(&words, classes, groups, n_groups, *threads))?;
        Ok(Groups(core_groups))
    }

    /// The ids, in order, of the words that texts of the group number `group` have.
    fn words(&self, py: Python, group: i64) -> PyResult<NumPy<u32>> {
        let group = size(group, "group")?;
        Ok(py.detach(|| self.0.words(group))?.into())
    }

    /// The ids, in order, of the words that no text outside the group number `group` has; `total` are the words of all groups
    /// of texts together.
    fn gone(&self, py: Python, total: &Words, group: i64) -> PyResult<NumPy<u32>> {
        let (total, group) = (total.get(py), size(group, "group")?);
        Ok(py.detach(|| self.0.gone(&total, group))?.into())
    }

    /// The cells of the words `ids` as if the texts of the group number `group` were not there; `total` are the words of all
    /// groups of texts together. Returns where the cells of each word start and the last ones end; of each cell the class,
    /// occurrences and documents.
    fn pairs_without(&self, py: Python, total: &Words, group: i64, ids: Ids) -> PyResult<Pairs> {
        let (total, group) = (total.get(py), size(group, "group")?);
        let ids = check_ids(&ids, total.n_ids())?.iter().copied();
        let pairs = py.detach(|| self.0.pairs_without(&total, group, ids))?;
        Ok(as_arrays(pairs))
    }
}

/// Words as a value: methods that change words return new ones.
#[pyclass(module = "banbury._core", frozen)]
pub(super) struct Words(Version);

impl Words {
    /// A value of these words that shares nothing with other values.
    fn of(words: words::Words) -> Self {
        Words(Version::new(words))
    }

    /// The words of the core that this value has. If another thread is changing words of the same base, waits for it without
    /// the GIL, which that thread may need.
    pub(super) fn get(&self, py: Python) -> Arc<words::Words> {
        self.0.try_words().unwrap_or_else(|| py.detach(|| self.0.words()))
    }

    /// Returns the words with texts added (if `adds`) or subtracted, on so many threads and without the GIL. `tokeniser` says
    /// how texts are cut into tokens; `classes` and `weights` are those of each text (without weights, 1 each), and `more` are
    /// further classes of each: offsets, and the classes of text after text.
    fn change_by_texts(
        &self,
        py: Python,
        tokeniser: &Tokeniser,
        texts: &HeldTexts,
        (classes, weights): (Codes, Option<RowWeights>),
        more: Option<LabelSets>,
        threads: Threads,
        adds: bool,
    ) -> PyResult<Words> {
        // The classes and weights of texts. Classes are checked on one thread.
        let rows = HeldRows::new(classes, self.get(py).n_classes() as i64, weights, 1)?;
        let texts = texts.texts()?;
        let tokeniser = &**tokeniser.inner();
        let more = match &more {
            Some((offsets, classes)) => Some(Sets::new(offsets, classes, rows.n_classes)?),
            None => None,
        };
        let changed = rows.with(py, |&rows| {
            // the value after the change
            let batch = Batch { tokeniser, texts: &texts, rows, more };
            self.0.change(adds, |words, keeps_sums| match adds {
                true => words.count(batch, *threads, keeps_sums),
                false => words.forget(batch, *threads),
            })
        })?;
        Ok(Words(changed))
    }

    /// Returns the words that `f` makes of the words of this value, without the GIL.
    fn map(
        &self,
        py: Python,
        f: impl FnOnce(&words::Words) -> Result<words::Words, Error> + Send,
    ) -> PyResult<Words> {
        let words = self.get(py);
        Ok(Words::of(py.detach(|| f(&words))?))
    }
}

#[pymethods]
impl Words {
    /// Words without texts, with `n_classes` classes: the `n_columns` columns of a matrix, or words by name if that is 0.
    #[new]
    fn new(n_classes: i64, n_columns: i64) -> PyResult<Self> {
        let (n_classes, n_columns) = (size(n_classes, "n_classes")?, size(n_columns, "n_columns")?);
        Ok(Words::of(words::Words::new(n_classes, n_columns)?))
    }

    /// How many classes there are.
    #[getter]
    fn n_classes(&self, py: Python) -> usize {
        self.get(py).n_classes()
    }

    /// How many words some text has.
    #[getter]
    fn n_words(&self, py: Python) -> usize {
        self.get(py).n_words()
    }

    /// How many words have an id, including words that were forgotten.
    #[getter]
    fn n_ids(&self, py: Python) -> usize {
        self.get(py).n_ids()
    }

    /// How many columns the matrix has whose columns are the words; 0 if words have names.
    #[getter]
    fn n_columns(&self, py: Python) -> usize {
        self.get(py).n_columns()
    }

    /// Returns the words with these texts added, on so many threads. `tokeniser` says how texts are cut into tokens; `classes`
    /// are those of each text, of which those of class -1 are not counted; `weights` are those of each text, 1 if there are
    /// none; `more` are further classes of each text: offsets, and the classes of text after text.
    #[pyo3(signature = (tokeniser, texts, classes, weights, threads, more=None))]
    fn count(
        &self,
        py: Python,
        tokeniser: &Tokeniser,
        texts: HeldTexts,
        classes: Codes,
        weights: Option<RowWeights>,
        threads: Threads,
        more: Option<LabelSets>,
    ) -> PyResult<Words> {
        self.change_by_texts(py, tokeniser, &texts, (classes, weights), more, threads, true)
    }

    /// Returns the words without these texts, which were counted; raises NotThere if they were not. `tokeniser` says how texts
    /// are cut into tokens, on so many threads; `classes` are those of each text, of which those of class -1 are passed over;
    /// `weights` are those of each text, 1 if there are none; `more` are further classes of each: offsets, and the classes of
    /// text after text.
    #[pyo3(signature = (tokeniser, texts, classes, weights, threads, more=None))]
    fn forget(
        &self,
        py: Python,
        tokeniser: &Tokeniser,
        texts: HeldTexts,
        classes: Codes,
        weights: Option<RowWeights>,
        threads: Threads,
        more: Option<LabelSets>,
    ) -> PyResult<Words> {
        self.change_by_texts(py, tokeniser, &texts, (classes, weights), more, threads, false)
    }

    /// The ids, in order, of the words that changed between this value and the value `old`; None if the changes are not
    /// recorded, as one value was not made from the other or too much changed.
    fn changed_since(&self, py: Python, old: &Words) -> Option<NumPy<u32>> {
        let changed_ids = py.detach(|| self.0.changed_since(&old.0));
        changed_ids.map(NumPy::from)
    }

    /// Returns the sums of these words and the words `other` together, words of the same name added up; these words keep their
    /// ids.
    fn plus(&self, py: Python, other: &Words) -> PyResult<Words> {
        let (words, other) = (self.get(py), other.get(py));
        if !words.outweighs(&other) {
            // The sum shares nothing with this value.
            return Ok(Words::of(py.detach(|| words.plus(&other))?));
        }
        drop(words); // so that the base is changed in place
        Ok(Words(py.detach(|| self.0.change(true, |words, _| words.add(&other)))?))
    }

    /// Returns the words without the other's texts; raises NotThere if it has some that these do not have.
    fn minus(&self, py: Python, other: &Words) -> PyResult<Words> {
        let other = other.get(py);
        self.map(py, |words| words.minus(&other))
    }

    /// Returns the words with all counts multiplied by `factor`, and whether that was exact.
    fn times(&self, py: Python, factor: f64) -> PyResult<(Words, bool)> {
        let words = self.get(py);
        let (product, exact) = py.detach(|| words.times(factor))?;
        Ok((Words::of(product), exact))
    }

    /// Whether all counts are equal, words by name.
    fn same(&self, py: Python, other: &Words) -> bool {
        let (words, other) = (self.get(py), other.get(py));
        py.detach(|| Arc::ptr_eq(&words, &other) || words.same(&other))
    }

    /// Returns the words with the counts of class c in class `index[c]`, one of `n_classes`; classes that become one are added
    /// up.
    fn place(&self, py: Python, index: Longs, n_classes: i64) -> PyResult<Words> {
        let (index, n_classes) = (&*index, size(n_classes, "n_classes")?);
        self.map(py, |words| words.place(index, n_classes))
    }

    /// Returns the words with the counts of class `index[i]` in class i; words that are left without texts are gone.
    fn take(&self, py: Python, index: Longs) -> PyResult<Words> {
        let index = &*index;
        self.map(py, |words| words.take(index))
    }

    /// Returns the sums of the same texts if they had had no other words than `ids`.
    fn only(&self, py: Python, ids: Ids) -> PyResult<Words> {
        let words = self.get(py);
        let ids = check_ids(&ids, words.n_ids())?;
        Ok(Words::of(py.detach(|| words.only(ids))))
    }

    /// The cells of the words `ids`, or of all words in the order of their ids if there are none, read on so many threads. With
    /// `index`, (classes,), class c is class `index[c]`, left out if that is -1. Returns where the cells of each word start and
    /// the last ones end; of each cell the class, occurrences and documents.
    #[pyo3(signature = (ids, index=None, threads = Threads(1)))]
    fn pairs(
        &self,
        py: Python,
        ids: Option<Ids>,
        index: Option<Longs>,
        threads: Threads,
    ) -> PyResult<Pairs> {
        let words = self.get(py);
        let all_ids: Vec<u32>; // if there are no `ids`
        let ids = match &ids {
            Some(ids) => check_ids(ids, words.n_ids())?,
            None => {
                all_ids = (0..words.n_ids() as u32).collect();
                &all_ids
            }
        };
        let index = index.as_deref();
        let pairs = py.detach(|| words.pairs(ids, index, *threads))?;
        Ok(as_arrays(pairs))
    }

    /// The ids, in order, of the words that some text has of a class c for which `index[c]`, (classes,), is not -1.
    fn having(&self, py: Python, index: Longs) -> PyResult<NumPy<u32>> {
        let (words, index) = (self.get(py), &*index);
        Ok(py.detach(|| words.having(index))?.into())
    }

    /// The texts of each class, (classes,).
    fn texts(&self, py: Python) -> PyResult<Integers> {
        Ok(Integers(self.get(py).texts()?))
    }

    /// The occurrences of all words together in each class, (classes,).
    fn occurrences(&self, py: Python) -> PyResult<Integers> {
        Ok(Integers(self.get(py).occurrences()?))
    }

    /// The documents of all words together in each class, (classes,).
    fn documents(&self, py: Python) -> PyResult<Integers> {
        Ok(Integers(self.get(py).documents()?))
    }

    /// The names of the words `ids`, or of all words in the order of their ids.
    fn words<'py>(&self, py: Python<'py>, ids: Option<Ids<'py>>) -> PyResult<Bound<'py, PyList>> {
        let words = self.get(py);
        // The Python string that is the name of the word with this id.
        let name = |id: u32| words.with_name(id, |name| string_of(py, name));
        let names: Vec<_> = match ids {
            None => (0..words.n_ids() as u32).map(name).collect::<PyResult<_>>()?,
            Some(ids) => {
                let ids = check_ids(&ids, words.n_ids())?.iter();
                ids.map(|&id| name(id)).collect::<PyResult<_>>()?
            }
        };
        PyList::new(py, names)
    }

    /// The id of the word of each of these names, (names,); -1 where there is none. `words` are the names.
    fn find(&self, py: Python, words: Strings) -> PyResult<NumPy<i64>> {
        let (names, core_words) = (words.bytes()?, self.get(py));
        let id_of = |name: &&[u8]| core_words.find_name(name).map_or(-1, i64::from);
        let ids: Vec<i64> = py.detach(|| names.iter().map(id_of).collect());
        Ok(ids.into())
    }

    /// Returns the words with an id for each of the first `n_columns` columns.
    fn with_columns(&self, py: Python, n_columns: i64) -> PyResult<Words> {
        let n_columns = size(n_columns, "n_columns")?;
        self.map(py, |words| {
            let mut with_columns = words.clone();
            with_columns.number_columns(n_columns)?;
            Ok(with_columns)
        })
    }

    /// The id of each column's word, (columns,); -1 where it has none.
    fn columns(&self, py: Python) -> NumPy<i64> {
        let words = self.get(py);
        let ids = words.columns().iter().map(|&id_after| i64::from(id_after) - 1); // `id_after` is the id + 1, or 0
        ids.collect::<Vec<_>>().into()
    }

    /// Returns the words with ids also for the words whose names are `words`, which no text has.
    fn with_words(&self, py: Python, words: Strings) -> PyResult<Words> {
        let names = words.bytes()?;
        self.map(py, |words| {
            let mut with_names = words.clone();
            with_names.add_names(names.into_iter())?;
            Ok(with_names)
        })
    }

    /// Cuts texts into tokens as `tokeniser` does, on so many threads. Returns offsets (texts + 1,), where the tokens of each
    /// text begin and those of the last one end, and for each token, text after text, the id of its word, -1 for words that
    /// have none.
    fn encode(
        &self,
        py: Python,
        tokeniser: &Tokeniser,
        texts: HeldTexts,
        threads: Threads,
    ) -> PyResult<(NumPy<i64>, NumPy<i32>)> {
        let texts = texts.texts()?;
        let (tokeniser, words) = (tokeniser.inner(), self.get(py));
        let (offsets, ids) = py.detach(|| words.encode(tokeniser, &texts, *threads))?;
        Ok((offsets.into(), ids.into()))
    }

    /// Cuts texts into tokens as `tokeniser` does, on so many threads. Returns offsets (texts + 1,), where the words of each
    /// text begin and those of the last one end; the ids of the words of each text that have one, ascending and none twice; and
    /// how often the text has each.
    fn bags(
        &self,
        py: Python,
        tokeniser: &Tokeniser,
        texts: HeldTexts,
        threads: Threads,
    ) -> PyResult<Bags> {
        let texts = texts.texts()?;
        let (tokeniser, words) = (tokeniser.inner(), self.get(py));
        let bags = py.detach(|| words.bags(tokeniser, &texts, *threads))?;
        Ok((bags.offsets.into(), bags.ids.into(), bags.times.into()))
    }

    /// The ids of the words that some text has, in the order of their names' bytes.
    fn in_order(&self, py: Python) -> NumPy<u32> {
        let words = self.get(py);
        py.detach(|| words.in_order()).into()
    }

    /// The words as arrays by name, from which `from_state` makes them again: `bytes` of all names and where each `ends`, where
    /// the cells of each word `starts`, the `classes` of cells; and counts: whole `texts` of each class, `occurrences` and
    /// `documents` of each cell, or all of these in limbs.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let words = self.get(py);
        let state = py.detach(|| words.state());
        let (n_cells, n_classes) = (state.classes.len(), words.n_classes());
        let dict = PyDict::new(py);
        dict.set_item("bytes", NumPy::from(state.bytes.into_owned()))?;
        dict.set_item("ends", NumPy::from(state.ends.into_owned()))?;
        dict.set_item("starts", NumPy::from(state.starts.into_owned()))?;
        dict.set_item("classes", NumPy::from(state.classes.into_owned()))?;
        let texts = state.texts.into_owned();
        match state.counts {
            StoredCounts::Narrow(occurrences, documents) => {
                dict.set_item("texts", NumPy::from(texts))?;
                dict.set_item("occurrences", NumPy::from(occurrences.into_owned()))?;
                dict.set_item("documents", NumPy::from(documents.into_owned()))?;
            }
            // Three limbs per count: of the texts of each class; of the occurrences and the documents of each cell.
            StoredCounts::Parts(limbs) => {
                dict.set_item("texts.parts", shaped(texts, &[n_classes, 3]))?;
                dict.set_item("parts", shaped(limbs.into_owned(), &[n_cells, 2, 3]))?;
            }
        }
        Ok(dict)
    }

    /// Makes words of `n_classes` classes and `n_columns` columns (0: words have names) from the arrays that `state` returned:
    /// `bytes` of all words and where each `ends`, where the cells of each word `starts`, the `classes` of cells, and counts;
    /// ValueError for arrays that do not fit together.
    #[staticmethod]
    #[pyo3(signature = (n_classes, n_columns, state, threads = Threads(1)))]
    fn from_state(
        py: Python,
        n_classes: i64,
        n_columns: i64,
        state: &Bound<PyMapping>,
        threads: Threads,
    ) -> PyResult<Words> {
        let (n_classes, n_columns) = (size(n_classes, "n_classes")?, size(n_columns, "n_columns")?);
        let counts = HeldCounts::new(state)?; // occurrences and documents of cells
        counts.check_number_of_arrays(state)?;
        let texts = counts.texts(state)?; // of each class
        // All of these have one dimension.
        let (bytes, ends) = (required_array(state, "bytes", 1)?, required_array(state, "ends", 1)?);
        let (starts, classes) =
            (required_array(state, "starts", 1)?, required_array(state, "classes", 1)?);
        let state = State {
            bytes: bytes.slice().into(),
            ends: ends.slice().into(),
            starts: starts.slice().into(),
            classes: classes.slice().into(),
            counts: counts.stored(),
            texts: texts.slice().into(),
        };
        let words =
            py.detach(|| words::Words::from_state(n_classes, n_columns, &state, *threads))?;
        Ok(Words::of(words))
    }
}

/// The array of this name and so many dimensions in a state, a mapping from names to arrays; none if the state does not have
/// it.
fn array<'py, T: Element + Copy>(
    state: &Bound<'py, PyMapping>,
    name: &str,
    dimensions: usize,
) -> PyResult<Option<Held<'py, T>>> {
    if !state.contains(name)? {
        return Ok(None);
    }
    Held::new(&state.get_item(name)?, name, dimensions).map(Some)
}

/// The array of this name and so many dimensions in a state, a mapping from names to arrays; an error if the state does not
/// have it.
fn required_array<'py, T: Element + Copy>(
    state: &Bound<'py, PyMapping>,
    name: &str,
    dimensions: usize,
) -> PyResult<Held<'py, T>> {
    let array = array(state, name, dimensions)?;
    array.ok_or_else(|| malformed(format!("the array {name:?} is missing")))
}

/// The counts of the cells of a state.
enum HeldCounts<'py> {
    /// Occurrences and documents, in ones.
    Narrow(Held<'py, u32>, Held<'py, u32>),
    /// Occurrences and documents in three limbs each, (cells, 2, 3).
    Parts(Held<'py, i64>),
}

impl<'py> HeldCounts<'py> {
    /// The occurrences and documents of the cells of a state, a mapping from names to arrays: parts if it has them, else whole
    /// numbers.
    fn new(state: &Bound<'py, PyMapping>) -> PyResult<Self> {
        // Parts have three dimensions, (cells, 2, 3); whole numbers have one.
        if let Some(parts) = array(state, "parts", 3)? {
            return match parts.array.shape() {
                [_, 2, 3] => Ok(HeldCounts::Parts(parts)),
                _ => Err(malformed("parts must be (.., 2, 3)")),
            };
        }
        Ok(HeldCounts::Narrow(
            required_array(state, "occurrences", 1)?,
            required_array(state, "documents", 1)?,
        ))
    }

    /// Refuses a state, a mapping from names to arrays, with more arrays than words with these counts have.
    fn check_number_of_arrays(&self, state: &Bound<'py, PyMapping>) -> PyResult<()> {
        let n_arrays = match self {
            HeldCounts::Narrow(..) => 7,
            HeldCounts::Parts(_) => 6,
        };
        if state.len()? > n_arrays {
            let names = state.keys()?;
            return Err(malformed(format!("words have {n_arrays} arrays, got {}", names.repr()?)));
        }
        Ok(())
    }

    /// The occurrences and documents as the core takes them: whole numbers, or three limbs each.
    fn stored(&self) -> StoredCounts<'_> {
        match self {
            HeldCounts::Narrow(occurrences, documents) => {
                StoredCounts::Narrow(occurrences.slice().into(), documents.slice().into())
            }
            HeldCounts::Parts(limbs) => StoredCounts::Parts(limbs.slice().into()),
        }
    }

    /// The texts of each class of a state, a mapping from names to arrays: whole, (classes,), or if counts are parts three
    /// limbs each, (classes, 3).
    fn texts(&self, state: &Bound<'py, PyMapping>) -> PyResult<Held<'py, i64>> {
        let HeldCounts::Parts(_) = self else {
            return required_array(state, "texts", 1);
        };
        let texts: Held<i64> = required_array(state, "texts.parts", 2)?;
        texts.matrix(3, "texts.parts")?; // three limbs per class
        Ok(texts)
    }
}
