//! Texts at the border, held while kernels read them.

use super::arrays::{Array, Bytes, Codes, HeldBlock, Longs};
use super::classes::classes;
use super::encode::HeldOffsets;
use crate::encode;
use crate::words::{self, Encoded, Layout, Texts};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyList, PyString};

/// A str as bytes. Its UTF-8 is borrowed; Python encodes a str with lone surrogates, which has no UTF-8.
enum HeldText<'py> {
    Missing,
    Str(Bound<'py, PyString>),
    Bytes(Bound<'py, PyBytes>),
}

impl<'py> HeldText<'py> {
    /// The text of a Python string, which is not missing: the string itself, or, if it has lone surrogates, its bytes.
    fn new(string: Bound<'py, PyString>) -> PyResult<Self> {
        if string.to_str().is_ok() {
            return Ok(HeldText::Str(string));
        }
        let bytes = string.call_method1("encode", ("utf-8", "surrogatepass"))?;
        Ok(HeldText::Bytes(bytes.cast_into()?))
    }

    /// The UTF-8 of this text, lone surrogates included; None for a missing text.
    fn bytes(&self) -> PyResult<Option<&[u8]>> {
        Ok(match self {
            HeldText::Missing => None,
            HeldText::Str(string) => Some(string.to_str()?.as_bytes()),
            HeldText::Bytes(bytes) => Some(bytes.as_bytes()),
        })
    }
}

/// Whether a Python object stands for a missing text: None or NaN.
pub(super) fn is_missing(object: &Bound<'_, PyAny>) -> bool {
    object.is_none() || object.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan())
}

/// The strings of a list. If `MISSING`, None and NaN are missing strings.
pub(super) struct HeldList<'py, const MISSING: bool>(Vec<HeldText<'py>>);

pub(super) type Strings<'py> = HeldList<'py, false>;

impl<'py, const MISSING: bool> FromPyObject<'_, 'py> for HeldList<'py, MISSING> {
    type Error = PyErr;

    /// Borrows the strings of a Python list; a TypeError for anything else, with the row if an object of the list is no string.
    /// If `MISSING`, None and NaN are missing strings.
    fn extract(argument: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let list = argument.cast::<PyList>();
        let list = list.map_err(|_| PyTypeError::new_err("the argument must be a list of str"))?;
        let mut texts = Vec::with_capacity(list.len()); // the strings, `[row]`
        for (row, element) in list.iter().enumerate() {
            texts.push(match element.cast_into::<PyString>() {
                Ok(string) => HeldText::new(string)?,
                Err(error) => {
                    let element = error.into_inner();
                    if !(MISSING && is_missing(&element)) {
                        let type_name = element.get_type().name()?;
                        return Err(PyTypeError::new_err(format!(
                            "the argument must be a list of str, got {type_name} in row {row}"
                        )));
                    }
                    HeldText::Missing
                }
            });
        }
        Ok(HeldList(texts))
    }
}

impl<const MISSING: bool> HeldList<'_, MISSING> {
    /// The UTF-8 of each string, None for a missing one.
    fn texts(&self) -> PyResult<Vec<Option<&[u8]>>> {
        self.0.iter().map(HeldText::bytes).collect()
    }

    /// The UTF-8 of each string, empty for a missing one.
    pub(super) fn bytes(&self) -> PyResult<Vec<&[u8]>> {
        let texts = self.0.iter();
        texts.map(|text| Ok(text.bytes()?.unwrap_or(&[]))).collect()
    }
}

type Flags<'py> = Array<'py, bool, 1>;

classes! {
    (frozen, get_all, module = "banbury._core")
    /// Texts in another form than a list of str.
    HeldArrays, "texts must be a list of str or of a class of texts":
    ArrowTexts as HeldArrow(Arrow) {
        offsets: HeldOffsets<'py>, data: Bytes<'py>, valid: Option<Bytes<'py>>, valid_offset: usize
    }
    TokenLists as HeldTokens(Tokens) {
        tokens: Strings<'py>, offsets: Longs<'py>, missing: Option<Flags<'py>>
    }
    EncodedTexts as HeldCodes(Codes) {
        offsets: Longs<'py>, ids: Codes<'py>, times: Option<Codes<'py>>, missing: Option<Flags<'py>>
    }
    Matrix as HeldMatrix(Matrix) {
        values: HeldBlock<'py>, places: Option<(Longs<'py>, Codes<'py>)>, n_columns: usize,
        threshold: Option<f64>, skip: bool
    }
}

impl HeldMatrix<'_> {
    /// The matrix as kernels read it; an error if its arrays do not fit together. `values` are the numbers of cells; `places`
    /// says where those of each row begin, and the column of each (none: the matrix is dense); cells above `threshold` count 1,
    /// others 0; NaN counts 0 if `skip`, and is refused otherwise.
    pub(super) fn matrix(&self) -> PyResult<words::Matrix<'_>> {
        let values = self.values.block()?;
        let layout = match &self.places {
            None => Layout::Dense(values),
            Some((offsets, columns)) => Layout::Sparse { offsets, columns, values },
        };
        Ok(words::Matrix::new(layout, self.n_columns, self.threshold, self.skip)?)
    }
}

/// Texts, held while they are read.
pub(super) enum HeldTexts<'py> {
    List(HeldList<'py, true>),
    Arrays(HeldArrays<'py>),
}

impl<'py> FromPyObject<'_, 'py> for HeldTexts<'py> {
    type Error = PyErr;

    /// Borrows a list of str, or an object of one of the classes of texts.
    fn extract(argument: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match argument.is_instance_of::<PyList>() {
            true => argument.extract().map(HeldTexts::List),
            false => argument.extract().map(HeldTexts::Arrays),
        }
    }
}

impl HeldTexts<'_> {
    /// The texts as kernels read them: a list, or arrays of one of the classes of texts, where `offsets` says where those of each
    /// text begin and the last ones end; an error if their arrays do not fit together.
    pub(super) fn texts(&self) -> PyResult<Texts<'_>> {
        let arrays = match self {
            HeldTexts::List(list) => return Ok(Texts::Borrowed(list.texts()?)),
            HeldTexts::Arrays(arrays) => arrays,
        };
        Ok(match arrays {
            HeldArrays::Arrow(texts) => {
                // The bits that say which texts are there, and which bit is the first text's; none if no text is missing.
                let valid = texts.valid.as_deref().map(|valid| (valid, texts.valid_offset));
                let offsets = texts.offsets.offsets();
                Texts::Arrow(encode::Strings::new(offsets, &texts.data, valid)?)
            }
            HeldArrays::Tokens(texts) => {
                let missing = texts.missing.as_deref(); // whether each text is missing
                let tokens = texts.tokens.bytes()?; // of all texts, in bytes
                Texts::Tokens(words::TokenLists::new(tokens, &texts.offsets, missing)?)
            }
            HeldArrays::Codes(texts) => {
                // How often a text has each word (none: ids are repeated), and whether each text is missing.
                let (times, missing) = (texts.times.as_deref(), texts.missing.as_deref());
                Texts::Encoded(Encoded::new(&texts.ids, times, &texts.offsets, missing)?)
            }
            HeldArrays::Matrix(matrix) => Texts::Counted(matrix.matrix()?),
        })
    }
}
