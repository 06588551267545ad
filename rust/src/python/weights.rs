//! Rows of weights, and the part of a score that reads them.

use super::arrays::{Held, Shared, at_least_one, malformed, shaped, size};
use super::text::Tokeniser;
use super::words::{Groups, HeldTexts, Words, optional};
use crate::score::rough;
use crate::score::words::{self, Counting};
use crate::words::Counted;
use crate::words::weights::{self, Given};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::Arc;

type Rows<'py> = (Bound<'py, PyArray1<bool>>, Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>);

/// A row of numbers per class for each word id.
#[pyclass(module = "banbury._core", frozen)]
pub(super) struct Weights(Shared<weights::Weights>);

#[pymethods]
impl Weights {
    #[new]
    #[pyo3(signature = (n_classes, default, n_words=0))]
    fn new(n_classes: i64, default: &Bound<'_, PyAny>, n_words: i64) -> PyResult<Self> {
        let default = Held::<f64>::new(default, "default", 1)?;
        if default.slice().len() != size(n_classes, "n_classes")? {
            return Err(malformed("default must have one number per class"));
        }
        let weights = weights::Weights::new(default.slice())?;
        Ok(Weights(Shared::new(weights.with_room(size(n_words, "n_words")?))))
    }

    #[pyo3(signature = (ids, common, scale, starts, classes, values, threads=1))]
    #[allow(clippy::too_many_arguments)]
    fn set(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        common: &Bound<'_, PyAny>,
        scale: Option<&Bound<'_, PyAny>>,
        starts: &Bound<'_, PyAny>,
        classes: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        threads: i64,
    ) -> PyResult<()> {
        let threads = at_least_one(threads)?;
        let (ids, common) = (Held::new(ids, "ids", 1)?, Held::new(common, "common", 1)?);
        let scale = scale.map(|scale| Held::new(scale, "scale", 1)).transpose()?;
        let starts = Held::new(starts, "starts", 1)?;
        let classes = Held::new(classes, "classes", 1)?;
        let values = Held::new(values, "values", 1)?;
        let given = Given {
            ids: ids.slice(),
            common: common.slice(),
            scale: scale.as_ref().map(Held::slice),
            starts: starts.slice(),
            classes: classes.slice(),
            values: values.slice(),
        };
        Ok(py.detach(|| self.0.change(|weights| weights.set(&given, threads)))?)
    }

    #[pyo3(signature = (words, ids, once, others, values, threads, without=None))]
    #[allow(clippy::too_many_arguments)]
    fn set_counted<'py>(
        &self,
        py: Python<'py>,
        words: &Words,
        ids: &Bound<'py, PyAny>,
        once: bool,
        others: bool,
        values: &Bound<'py, PyAny>,
        threads: i64,
        without: Option<(Bound<'py, Groups>, i64)>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (threads, words) = (at_least_one(threads)?, words.get(py));
        let (ids, values) = (Held::new(ids, "ids", 1)?, Held::new(values, "values", 1)?);
        let without = without.as_ref();
        let without = without
            .map(|(groups, group)| Ok::<_, PyErr>((groups.get().get(), size(*group, "group")?)));
        let counted = Counted {
            words: &words,
            without: without.transpose()?,
            ids: ids.slice(),
            once,
            others,
            values: values.slice(),
        };
        let left = py.detach(|| self.0.change(|weights| weights.set_counted(&counted, threads)))?;
        Ok(left.into_pyarray(py))
    }

    fn follow<'py>(
        &self,
        py: Python<'py>,
        words: &Words,
        ids: &Bound<'py, PyAny>,
        once: bool,
        others: bool,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let words = words.get(py);
        let (ids, values) = (Held::new(ids, "ids", 1)?, Held::new(values, "values", 1)?);
        let (ids, values) = (ids.slice(), values.slice());
        let counted = Counted { words: &words, without: None, ids, once, others, values };
        let left = py.detach(|| self.0.change(|weights| weights.follow(&counted)))?;
        Ok(left.into_pyarray(py))
    }

    fn skip(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<()> {
        let ids = Held::<u32>::new(ids, "ids", 1)?;
        let ids = ids.slice();
        py.detach(|| self.0.change(|weights| weights.skip(ids)));
        Ok(())
    }

    fn rows<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Rows<'py>> {
        let ids = Held::<u32>::new(ids, "ids", 1)?;
        let ids = ids.slice();
        let weights = self.0.get(py);
        let n_classes = weights.n_classes();
        let (set, rows, scale) = py.detach(|| {
            let mut rows = vec![0.0; ids.len() * n_classes];
            let found = ids.iter().zip(rows.chunks_exact_mut(n_classes));
            let (set, scale): (Vec<_>, Vec<_>) = found
                .map(|(&id, row)| weights.read(id, row))
                .map(|scale| (scale.is_some(), scale.unwrap_or(0.0)))
                .unzip();
            (set, rows, scale)
        });
        let rows = shaped(py, rows, &[ids.len(), n_classes])?;
        Ok((set.into_pyarray(py), rows, scale.into_pyarray(py)))
    }

    fn rough(
        &self,
        py: Python<'_>,
        words: &Words,
        base: &Bound<'_, PyAny>,
        n_columns: i64,
        threads: i64,
    ) -> PyResult<Option<Rough>> {
        let base = Held::<f64>::new(base, "base", 1)?;
        let (base, threads) = (base.slice(), at_least_one(threads)?);
        let n_columns = size(n_columns, "n_columns")?;
        let (weights, words) = (self.0.get(py), words.get(py));
        let made = py.detach(|| rough::Rough::new(&words, &weights, base, n_columns, threads))?;
        Ok(made.map(|rough| Rough(Arc::new(rough))))
    }

    fn copy(&self, py: Python<'_>) -> Self {
        Weights(Shared::new(self.0.get(py)))
    }
}

/// Rows of weights in single precision.
#[pyclass(module = "banbury._core", frozen)]
pub(super) struct Rough(Arc<rough::Rough>);

/// A column of texts and what its words weigh, held while it is scored.
pub(super) struct HeldWords<'py> {
    texts: HeldTexts<'py>,
    tokeniser: Arc<crate::text::Tokeniser>,
    words: Arc<crate::words::Words>,
    weights: Arc<weights::Weights>,
    base: Option<Held<'py, f64>>,
    constant: Held<'py, f64>,
    once: bool,
    /// Whether a text has the length 1.
    unit: bool,
    polya: Option<Held<'py, f64>>,
    rough: Option<Arc<rough::Rough>>,
}

impl<'py> HeldWords<'py> {
    /// Texts, tokeniser, words, weights, base, constant, once (or "unit" and "unit once"), polya and, at will, rough weights.
    pub(super) fn new(rest: &[Bound<'py, PyAny>]) -> PyResult<Self> {
        let unit =
            rest[6].cast::<PyString>().ok().map(|name| name.to_cow().map(|s| s.into_owned()));
        let (unit, once) = match unit.transpose()?.as_deref() {
            Some("unit") => (true, false),
            Some("unit once") => (true, true),
            Some(name) => return Err(malformed(format!("there is no counting {name:?}"))),
            None => (false, rest[6].extract()?),
        };
        Ok(HeldWords {
            texts: HeldTexts::new(&rest[0])?,
            tokeniser: rest[1].cast::<Tokeniser>()?.get().inner().clone(),
            words: rest[2].cast::<Words>()?.get().get(rest[2].py()),
            weights: rest[3].cast::<Weights>()?.get().0.get(rest[3].py()),
            base: optional(&rest[4], "base")?,
            constant: Held::new(&rest[5], "constant", 1)?,
            once,
            unit,
            polya: optional(&rest[7], "polya")?,
            rough: match rest.get(8).filter(|rough| !rough.is_none()) {
                None => None,
                Some(rough) => Some(rough.cast::<Rough>()?.get().0.clone()),
            },
        })
    }

    pub(super) fn part(&self, n_classes: usize) -> PyResult<words::Words<'_>> {
        let counting = match &self.polya {
            Some(balls) => Counting::Polya { balls: balls.slice(), once: self.once },
            None if self.unit => Counting::Unit { once: self.once },
            None if self.once => Counting::Once,
            None => Counting::Often,
        };
        let part = words::Words::new(
            self.texts.texts()?,
            &self.tokeniser,
            &self.words,
            &self.weights,
            self.base.as_ref().map(Held::slice),
            self.constant.slice(),
            counting,
            n_classes,
        )?;
        Ok(match &self.rough {
            Some(rough) => part.with_rough(rough),
            None => part,
        })
    }
}
