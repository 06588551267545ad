//! The border. Borrow arrays, release the GIL, call a kernel, name the error.
//!
//! `src/banbury/_core.pyi` says what each function means.

// A function has as many arguments as its Python caller passes.
#![allow(clippy::too_many_arguments)]

mod arrays;
mod bags;
mod classes;
mod count;
mod encode;
mod integers;
mod score;
mod text;
mod texts;
mod trees;
mod weighing;
mod weights;
mod words;

use crate::error::{Error, Number};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyFloat;

pyo3::create_exception!(_core, BadValue, PyValueError, "``args`` is (what, feature, row, value).");

impl<'py> IntoPyObject<'py> for Number {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    /// A float or an int. `py` is a proof that the thread has the GIL.
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Number::Real(x) => Ok(PyFloat::new(py, x).into_any()),
            Number::Whole(x) => Ok(x.into_pyobject(py)?.into_any()),
        }
    }
}

impl From<Error> for PyErr {
    /// The Python exception for an error: BadValue, NotThere, ValueError or OverflowError. A bad value has the reason
    /// (`fault`), and its `feature` and `row`, counted from 0. `remainder`, which is negative, is what would be left of the
    /// sum of `word` in `class`, or of the number of the class's texts if there is no word.
    fn from(error: Error) -> PyErr {
        match error {
            Error::BadValue { fault, feature, row, value } => {
                Python::attach(|py| match value.into_pyobject(py) {
                    Ok(value) => BadValue::new_err((fault.name(), feature, row, value.unbind())),
                    Err(error) => error,
                })
            }
            Error::NotThere { word, class, remainder } => Python::attach(|py| {
                let word = word.map(|word| text::string_of(py, &word)).transpose();
                match (word, remainder.into_pyobject(py)) {
                    (Ok(word), Ok(remainder)) => {
                        let word = word.map(Bound::unbind);
                        words::NotThere::new_err((word, class, remainder.unbind()))
                    }
                    (Err(error), _) | (_, Err(error)) => error,
                }
            }),
            Error::Malformed(sentence) => PyValueError::new_err(sentence.into_owned()),
            Error::TooMany(sentence) => PyOverflowError::new_err(sentence),
        }
    }
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::BadValue;
    #[pymodule_export]
    use super::bags::Bags;
    #[pymodule_export]
    use super::count::{
        bins_of, by_class, count_classes, count_codes, count_flags, count_moments, count_products,
        has_twins, not_counts, one_less, shifted, span,
    };
    #[pymodule_export]
    use super::encode::{
        any_leading_zero, checksum, decode_records, encode_objects, encode_records, encode_strings,
        parse_fields,
    };
    #[pymodule_export]
    use super::integers::{Integers, parts_of};
    #[pymodule_export]
    use super::score::{
        CellsPart, EllipsePart, FlagsPart, HistogramPart, KernelPart, LinearPart, NormalPart,
        ProductPart, StepsPart, TablePart, WordsPart, kernels_left_out, score, score_each,
        score_row,
    };
    #[pymodule_export]
    use super::text::Tokeniser;
    #[pymodule_export]
    use super::texts::{ArrowTexts, EncodedTexts, Matrix, TokenLists};
    #[pymodule_export]
    use super::trees::{Trees, cuts_of};
    #[pymodule_export]
    use super::weighing::{
        Passes, Terms, correct_alike, count_cells, count_leading, pair_gains, pair_tables,
        steps_of, tempered, weighed_slope,
    };
    #[pymodule_export]
    use super::weights::{Rough, Weights};
    #[pymodule_export]
    use super::words::{Groups, NotThere, Words};
}
