//! Sums of text: a store that grows, copied when one of several owners changes it.

use super::arrays::{
    Codes, Held, HeldRows, Ids, Int1, LabelSets, Longs, RowWeights, Threads, malformed, shaped,
    size,
};
use super::integers::Integers;
use super::text::{Tokeniser, string_of};
use super::texts::{HeldTexts, Strings};
use crate::classes::Sets;
use crate::error::Error;
use crate::words::{self, Batch, Found, Numbers, Stored, StoredNumbers, Version};
use numpy::{Element, IntoPyArray, PyArray1, PyUntypedArrayMethods};
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

/// Numbers of words, all of them below `n`.
fn ids(ids: &[u32], n: usize) -> PyResult<&[u32]> {
    match ids.iter().find(|&&id| id as usize >= n) {
        None => Ok(ids),
        Some(id) => Err(malformed(format!("there are {n} ids, and {id} is none"))),
    }
}

type Bags<'py> = (Int1<'py>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>);
type Pairs<'py> =
    (Int1<'py>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

fn as_arrays(py: Python<'_>, found: words::Pairs) -> Pairs<'_> {
    (
        found.starts.into_pyarray(py),
        found.classes.into_pyarray(py),
        found.occurrences.into_pyarray(py),
        found.documents.into_pyarray(py),
    )
}

/// Words as they are when they are read.
pub(super) struct SharedWords(pub(super) Arc<words::Words>);

impl<'py> FromPyObject<'_, 'py> for SharedWords {
    type Error = PyErr;

    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(SharedWords(any.cast::<Words>()?.get().get(any.py())))
    }
}

/// The cells of a store by groups of its classes, of which one at a time is left out.
#[pyclass(module = "banbury._core", frozen)]
pub(super) struct Groups(words::Groups);

impl Groups {
    pub(super) fn get(&self) -> &words::Groups {
        &self.0
    }
}

#[pymethods]
impl Groups {
    #[new]
    #[pyo3(signature = (words, classes, groups, n_groups, threads = Threads(1)))]
    fn new(
        py: Python<'_>,
        words: &Words,
        classes: Longs<'_>,
        groups: Longs<'_>,
        n_groups: i64,
        threads: Threads,
    ) -> PyResult<Self> {
        let (classes, groups) = (&*classes, &*groups);
        let (words, n_groups) = (words.get(py), size(n_groups, "n_groups")?);
        let made = py.detach(|| words::Groups::new(&words, classes, groups, n_groups, *threads))?;
        Ok(Groups(made))
    }

    fn words<'py>(&self, py: Python<'py>, group: i64) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let group = size(group, "group")?;
        Ok(py.detach(|| self.0.words(group))?.into_pyarray(py))
    }

    fn gone<'py>(
        &self,
        py: Python<'py>,
        total: &Words,
        group: i64,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (total, group) = (total.get(py), size(group, "group")?);
        Ok(py.detach(|| self.0.gone(&total, group))?.into_pyarray(py))
    }

    fn pairs_without<'py>(
        &self,
        py: Python<'py>,
        total: &Words,
        group: i64,
        ids: Ids<'py>,
    ) -> PyResult<Pairs<'py>> {
        let (total, group) = (total.get(py), size(group, "group")?);
        let ids = self::ids(&ids, total.n_ids())?.iter().copied();
        let found = py.detach(|| self.0.pairs_without(&total, group, ids))?;
        Ok(as_arrays(py, found))
    }
}

/// Words as a value: what changes them gives others.
#[pyclass(module = "banbury._core", frozen)]
pub(super) struct Words(Version);

/// What changes words by a batch; it gives what it added or took away if that is to be kept.
type Change = fn(&mut words::Words, Batch, usize, bool) -> Result<Vec<Found>, Error>;

impl Words {
    fn of(words: words::Words) -> Self {
        Words(Version::new(words))
    }

    /// If another thread is changing words of the same base, waits for it without the GIL, which that one may need.
    pub(super) fn get(&self, py: Python<'_>) -> Arc<words::Words> {
        self.0.try_words().unwrap_or_else(|| py.detach(|| self.0.words()))
    }

    /// Changes them by texts and their classes, without the GIL.
    fn batch<'py>(
        &self,
        py: Python<'py>,
        tokeniser: &Tokeniser,
        texts: &HeldTexts<'py>,
        rows: HeldRows<'py>,
        more: Option<LabelSets<'py>>,
        threads: Threads,
        adds: bool,
    ) -> PyResult<Words> {
        let texts = texts.texts()?;
        let tokeniser = &**tokeniser.inner();
        let sets = |(offsets, codes)| Sets::new(offsets, codes, rows.n_classes);
        let more = more.as_ref().map(|more| sets((&more.0, &more.1))).transpose()?;
        let change: Change = if adds {
            words::Words::count
        } else {
            |words, batch, threads, _| words.forget(batch, threads)
        };
        let changed = rows.with(py, |&rows| {
            let batch = Batch { tokeniser, texts: &texts, rows, more };
            self.0.change(adds, |words, keep| change(words, batch, *threads, keep))
        })?;
        Ok(Words(changed))
    }

    /// Makes others of them, without the GIL.
    fn made(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&words::Words) -> Result<words::Words, Error> + Send,
    ) -> PyResult<Words> {
        let words = self.get(py);
        Ok(Words::of(py.detach(|| f(&words))?))
    }
}

#[pymethods]
impl Words {
    #[new]
    fn new(n_classes: i64, n_columns: i64) -> PyResult<Self> {
        let (n_classes, n_columns) = (size(n_classes, "n_classes")?, size(n_columns, "n_columns")?);
        Ok(Words::of(words::Words::new(n_classes, n_columns)?))
    }

    #[getter]
    fn n_classes(&self, py: Python<'_>) -> usize {
        self.get(py).n_classes()
    }

    #[getter]
    fn n_words(&self, py: Python<'_>) -> usize {
        self.get(py).n_words()
    }

    #[getter]
    fn n_ids(&self, py: Python<'_>) -> usize {
        self.get(py).n_ids()
    }

    #[getter]
    fn n_columns(&self, py: Python<'_>) -> usize {
        self.get(py).n_columns()
    }

    #[pyo3(signature = (tokeniser, texts, classes, weights, threads, more=None))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        tokeniser: &Tokeniser,
        texts: HeldTexts<'py>,
        classes: Codes<'py>,
        weights: Option<RowWeights<'py>>,
        threads: Threads,
        more: Option<LabelSets<'py>>,
    ) -> PyResult<Words> {
        let rows = HeldRows::new(classes, self.get(py).n_classes() as i64, weights, 1)?;
        self.batch(py, tokeniser, &texts, rows, more, threads, true)
    }

    #[pyo3(signature = (tokeniser, texts, classes, weights, threads, more=None))]
    fn forget<'py>(
        &self,
        py: Python<'py>,
        tokeniser: &Tokeniser,
        texts: HeldTexts<'py>,
        classes: Codes<'py>,
        weights: Option<RowWeights<'py>>,
        threads: Threads,
        more: Option<LabelSets<'py>>,
    ) -> PyResult<Words> {
        let rows = HeldRows::new(classes, self.get(py).n_classes() as i64, weights, 1)?;
        self.batch(py, tokeniser, &texts, rows, more, threads, false)
    }

    fn changed_since<'py>(
        &self,
        py: Python<'py>,
        old: &Words,
    ) -> Option<Bound<'py, PyArray1<u32>>> {
        let changed = py.detach(|| self.0.changed_since(&old.0));
        changed.map(|ids| ids.into_pyarray(py))
    }

    fn plus(&self, py: Python<'_>, other: &Words) -> PyResult<Words> {
        let (words, other) = (self.get(py), other.get(py));
        let alone = !words.outweighs(&other);
        drop(words);
        if alone {
            return self.made(py, |words| words.plus(&other));
        }
        Ok(Words(py.detach(|| self.0.change(true, |words, _| words.add(&other)))?))
    }

    fn minus(&self, py: Python<'_>, other: &Words) -> PyResult<Words> {
        let other = other.get(py);
        self.made(py, |words| words.minus(&other))
    }

    fn times(&self, py: Python<'_>, factor: f64) -> PyResult<(Words, bool)> {
        let words = self.get(py);
        let (product, exact) = py.detach(|| words.times(factor))?;
        Ok((Words::of(product), exact))
    }

    fn same(&self, py: Python<'_>, other: &Words) -> bool {
        let (words, other) = (self.get(py), other.get(py));
        py.detach(|| Arc::ptr_eq(&words, &other) || words.same(&other))
    }

    fn place(&self, py: Python<'_>, index: Longs<'_>, n_classes: i64) -> PyResult<Words> {
        let (index, n_classes) = (&*index, size(n_classes, "n_classes")?);
        self.made(py, |words| words.place(index, n_classes))
    }

    fn take(&self, py: Python<'_>, index: Longs<'_>) -> PyResult<Words> {
        let index = &*index;
        self.made(py, |words| words.take(index))
    }

    fn only(&self, py: Python<'_>, ids: Ids<'_>) -> PyResult<Words> {
        let words = self.get(py);
        let ids = self::ids(&ids, words.n_ids())?;
        Ok(Words::of(py.detach(|| words.only(ids))))
    }

    #[pyo3(signature = (ids, index=None, threads = Threads(1)))]
    fn pairs<'py>(
        &self,
        py: Python<'py>,
        ids: Option<Ids<'py>>,
        index: Option<Longs<'py>>,
        threads: Threads,
    ) -> PyResult<Pairs<'py>> {
        let words = self.get(py);
        let chosen = ids.as_deref().map(|ids| self::ids(ids, words.n_ids())).transpose()?;
        let index = index.as_deref();
        let every = 0..words.n_ids() as u32;
        let found = py.detach(|| match (chosen, index) {
            (Some(ids), None) => Ok(words.pairs(ids.len(), |i| ids[i], *threads)),
            (None, None) => Ok(words.pairs(words.n_ids(), |i| i as u32, *threads)),
            (Some(ids), Some(index)) => words.pairs_in(ids.iter().copied(), index),
            (None, Some(index)) => words.pairs_in(every, index),
        })?;
        Ok(as_arrays(py, found))
    }

    fn having<'py>(
        &self,
        py: Python<'py>,
        index: Longs<'py>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (words, index) = (self.get(py), &*index);
        Ok(py.detach(|| words.having(index))?.into_pyarray(py))
    }

    fn texts(&self, py: Python<'_>) -> PyResult<Integers> {
        Ok(Integers(self.get(py).texts()?))
    }

    fn occurrences(&self, py: Python<'_>) -> PyResult<Integers> {
        Ok(Integers(self.get(py).occurrences()?))
    }

    fn documents(&self, py: Python<'_>) -> PyResult<Integers> {
        Ok(Integers(self.get(py).documents()?))
    }

    fn words<'py>(&self, py: Python<'py>, ids: Option<Ids<'py>>) -> PyResult<Bound<'py, PyList>> {
        let words = self.get(py);
        let name = |id: u32| words.with_name(id, |name| string_of(py, name));
        let names: Vec<_> = match ids {
            None => (0..words.n_ids() as u32).map(name).collect::<PyResult<_>>()?,
            Some(ids) => {
                let ids = self::ids(&ids, words.n_ids())?.iter();
                ids.map(|&id| name(id)).collect::<PyResult<_>>()?
            }
        };
        PyList::new(py, names)
    }

    fn find<'py>(&self, py: Python<'py>, words: Strings<'py>) -> PyResult<Int1<'py>> {
        let (names, own) = (words.bytes()?, self.get(py));
        let number = |name: &&[u8]| own.find_name(name).map_or(-1, i64::from);
        let found: Vec<i64> = py.detach(|| names.iter().map(number).collect());
        Ok(found.into_pyarray(py))
    }

    fn with_columns(&self, py: Python<'_>, n_columns: i64) -> PyResult<Words> {
        let n_columns = size(n_columns, "n_columns")?;
        self.made(py, |words| {
            let mut more = words.clone();
            more.number_columns(n_columns)?;
            Ok(more)
        })
    }

    fn columns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let words = self.get(py);
        let ids = words.columns().iter().map(|&id| i64::from(id) - 1);
        ids.collect::<Vec<_>>().into_pyarray(py)
    }

    fn with_words(&self, py: Python<'_>, words: Strings<'_>) -> PyResult<Words> {
        let names = words.bytes()?;
        self.made(py, |words| {
            let mut more = words.clone();
            more.add_names(names.into_iter())?;
            Ok(more)
        })
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        tokeniser: &Tokeniser,
        texts: HeldTexts<'py>,
        threads: Threads,
    ) -> PyResult<(Int1<'py>, Bound<'py, PyArray1<i32>>)> {
        let texts = texts.texts()?;
        let (tokeniser, words) = (tokeniser.inner(), self.get(py));
        let (offsets, codes) = py.detach(|| words.encode(tokeniser, &texts, *threads))?;
        Ok((offsets.into_pyarray(py), codes.into_pyarray(py)))
    }

    fn bags<'py>(
        &self,
        py: Python<'py>,
        tokeniser: &Tokeniser,
        texts: HeldTexts<'py>,
        threads: Threads,
    ) -> PyResult<Bags<'py>> {
        let texts = texts.texts()?;
        let (tokeniser, words) = (tokeniser.inner(), self.get(py));
        let bags = py.detach(|| words.bags(tokeniser, &texts, *threads))?;
        Ok((bags.offsets.into_pyarray(py), bags.ids.into_pyarray(py), bags.times.into_pyarray(py)))
    }

    fn in_order<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let words = self.get(py);
        py.detach(|| words.in_order()).into_pyarray(py)
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let words = self.get(py);
        let state = py.detach(|| words.state());
        let (n, c) = (state.classes.len(), words.n_classes());
        let dict = PyDict::new(py);
        dict.set_item("bytes", state.bytes.into_pyarray(py))?;
        dict.set_item("ends", state.ends.into_pyarray(py))?;
        dict.set_item("starts", state.starts.into_pyarray(py))?;
        dict.set_item("classes", state.classes.into_pyarray(py))?;
        let (name, shape) = match &state.counts {
            Numbers::Parts(_) => ("texts.parts", &[c, 3][..]),
            _ => ("texts", &[c][..]),
        };
        dict.set_item(name, shaped(py, state.texts, shape)?)?;
        match state.counts {
            Numbers::Narrow(occurrences, documents) => {
                dict.set_item("occurrences", occurrences.into_pyarray(py))?;
                dict.set_item("documents", documents.into_pyarray(py))?;
            }
            Numbers::Parts(limbs) => dict.set_item("parts", shaped(py, limbs, &[n, 2, 3])?)?,
        }
        Ok(dict)
    }

    #[staticmethod]
    #[pyo3(signature = (n_classes, n_columns, state, threads = Threads(1)))]
    fn from_state(
        py: Python<'_>,
        n_classes: i64,
        n_columns: i64,
        state: &Bound<'_, PyMapping>,
        threads: Threads,
    ) -> PyResult<Words> {
        let (n_classes, n_columns) = (size(n_classes, "n_classes")?, size(n_columns, "n_columns")?);
        check_names(state)?;
        let counts = HeldNumbers::new(state)?;
        let texts = counts.texts(state)?;
        let (bytes, ends) = (must(state, "bytes", 1)?, must(state, "ends", 1)?);
        let (starts, classes) = (must(state, "starts", 1)?, must(state, "classes", 1)?);
        let state = Stored {
            bytes: bytes.slice(),
            ends: ends.slice(),
            starts: starts.slice(),
            classes: classes.slice(),
            counts: counts.stored(),
            texts: texts.slice(),
        };
        let words =
            py.detach(|| words::Words::from_state(n_classes, n_columns, &state, *threads))?;
        Ok(Words::of(words))
    }
}

/// Numbers are occurrences, documents and texts, or parts.
const ARRAYS: [&str; 9] = [
    "bytes",
    "ends",
    "starts",
    "classes",
    "occurrences",
    "documents",
    "texts",
    "parts",
    "texts.parts",
];

/// One of the arrays; none if it is not there.
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

/// The same of one that must be there.
fn must<'py, T: Element + Copy>(
    state: &Bound<'py, PyMapping>,
    name: &str,
    dimensions: usize,
) -> PyResult<Held<'py, T>> {
    let held = array(state, name, dimensions)?;
    held.ok_or_else(|| malformed(format!("the array {name:?} is missing")))
}

enum HeldNumbers<'py> {
    Narrow(Held<'py, u32>, Held<'py, u32>),
    Parts(Held<'py, i64>),
}

/// Names of arrays that do not come together.
const APART: [(&str, &[&str]); 2] =
    [("parts", &["occurrences", "documents", "texts"]), ("texts", &["texts.parts"])];

impl<'py> HeldNumbers<'py> {
    /// Parts, or whole numbers.
    fn new(state: &Bound<'py, PyMapping>) -> PyResult<Self> {
        if let Some(parts) = array(state, "parts", 3)? {
            return match parts.array.shape() {
                [_, 2, 3] => Ok(HeldNumbers::Parts(parts)),
                _ => Err(malformed("parts must be (.., 2, 3)")),
            };
        }
        Ok(HeldNumbers::Narrow(must(state, "occurrences", 1)?, must(state, "documents", 1)?))
    }

    fn stored(&self) -> StoredNumbers<'_> {
        match self {
            HeldNumbers::Narrow(a, b) => StoredNumbers::Narrow(a.slice(), b.slice()),
            HeldNumbers::Parts(limbs) => StoredNumbers::Parts(limbs.slice()),
        }
    }

    fn texts(&self, state: &Bound<'py, PyMapping>) -> PyResult<Held<'py, i64>> {
        let HeldNumbers::Parts(_) = self else {
            return must(state, "texts", 1);
        };
        let texts: Held<i64> = must(state, "texts.parts", 2)?;
        texts.matrix(3, "texts.parts")?;
        Ok(texts)
    }
}

/// Refuses arrays that words do not have, or not together.
fn check_names(state: &Bound<'_, PyMapping>) -> PyResult<()> {
    for key in state.keys()?.iter() {
        let known = key.extract::<String>().is_ok_and(|key| ARRAYS.contains(&key.as_str()));
        if !known {
            return Err(malformed(format!("there is no array {} of words", key.repr()?)));
        }
    }
    for (name, others) in APART {
        for other in others {
            if state.contains(name)? && state.contains(other)? {
                return Err(malformed(format!("words have {name:?} or {other:?}, not both")));
            }
        }
    }
    Ok(())
}
