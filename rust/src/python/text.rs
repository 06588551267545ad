//! The tokeniser, and conversion of strings.

use super::arrays::{Bytes, Ids, malformed};
use crate::error::Error;
use crate::text::characters::{self, Source};
use crate::text::{self, LONGEST, Pattern, Settings, Tokens};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList, PyString};
use std::borrow::Cow;
use std::sync::{Arc, Mutex};

/// The UTF-8 of a string, lone surrogates included. Borrowed from the string unless it has such. `text` is the string without
/// lone surrogates, `bytes` its UTF-8 with them.
pub fn bytes_of<'a>(string: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(text) = string.to_str() {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let bytes = string.call_method1("encode", ("utf-8", "surrogatepass"))?;
    Ok(Cow::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// A str of UTF-8, lone surrogates included. `bytes` are the UTF-8.
pub fn string_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => {
            let bytes = PyBytes::new(py, bytes);
            let string = bytes.call_method1("decode", ("utf-8", "surrogatepass"))?;
            Ok(string.cast_into::<PyString>()?)
        }
    }
}

/// The lock of the thread that asks the interpreter for a table.
static ASKING: Mutex<()> = Mutex::new(());

/// Calls function `name` of `banbury.characters` and hands the table that it returns to `take`, unless `is_there` says that
/// another thread has done so. An error if Python raises one.
///
/// Takes the GIL. A thread that waits for the lock releases the GIL, so there is no deadlock. The table
/// says of each character what it is; `taken` is an error if Python raised one, and `_lock` keeps other threads waiting.
fn ask(
    name: &str,
    is_there: fn() -> bool,
    take: fn(&Bound<'_, PyAny>) -> PyResult<()>,
) -> Result<(), Error> {
    let taken = Python::attach(|py| {
        let _lock = ASKING.lock_py_attached(py);
        match is_there() {
            true => Ok(()),
            false => take(&py.import("banbury.characters")?.call_method0(name)?),
        }
    });
    taken.map_err(|error| {
        Error::malformed(format!("the interpreter does not tell its characters: {error}"))
    })
}

/// Fetches the tables from `banbury.characters`.
const TABLES: Source = Source {
    characters: || {
        ask(
            "table",
            || characters::have_characters().is_some(),
            |table| {
                let table: Ids = table.extract()?;
                Ok(characters::set_characters(&table)?)
            },
        )
    },
    bearings: || {
        ask(
            "sigma_context",
            || characters::have_bearings().is_some(),
            |table| {
                let table: Bytes = table.extract()?;
                Ok(characters::set_bearings(&table)?)
            },
        )
    },
};

/// The pattern of this name; an error if there is none. A pattern says where a text is cut into words; `Given` texts are
/// lists of words.
fn pattern_of(name: &str) -> PyResult<Pattern> {
    match name {
        "word" => Ok(Pattern::Word),
        "word1" => Ok(Pattern::Word1),
        "mail" => Ok(Pattern::Mail),
        "given" => Ok(Pattern::Given),
        _ => Err(malformed(format!(
            "pattern must be 'word', 'word1', 'mail' or 'given', got {name:?}"
        ))),
    }
}

/// How a text is cut into tokens, and how much each counts; immutable, shared by threads.
#[pyclass(frozen, module = "banbury._core")]
pub struct Tokeniser(Arc<text::Tokeniser>);

impl Tokeniser {
    /// The kernel. Release the GIL before running it on other threads, as it may need the GIL there. It is shared by threads.
    pub fn inner(&self) -> &Arc<text::Tokeniser> {
        &self.0
    }
}

#[pymethods]
impl Tokeniser {
    /// A tokeniser with these [`Settings`]: `shortest` and `longest` are the numbers of words (or, with `characters`, of
    /// characters) of n-grams, `log` and `length` damp counts, and `only`, if not empty, has the tokens that are kept. A
    /// ValueError if settings contradict each other. `pattern` is the name of where texts are cut, and `stop_words` are the
    /// words that are left out; texts are lower-cased if `lowercase`. With `log` a token that occurs n times counts log(1 +
    /// n), and with `length` counts are divided by their Euclidean length.
    #[new]
    #[pyo3(signature = (pattern, lowercase, characters, shortest, longest, stop_words, log, length, only=vec![]))]
    fn new(
        pattern: &str,
        lowercase: bool,
        characters: bool,
        shortest: i64,
        longest: i64,
        stop_words: Vec<Bound<'_, PyString>>,
        log: bool,
        length: bool,
        only: Vec<Bound<'_, PyString>>,
    ) -> PyResult<Self> {
        characters::register(TABLES);
        // The number of words of an n-gram as a byte, and words as UTF-8.
        let gram_size = |size: i64| {
            u8::try_from(size).map_err(|_| {
                malformed(format!(
                    "n-grams must have from 1 to {LONGEST} words or characters, got {size}"
                ))
            })
        };
        let bytes = |words: &[Bound<'_, PyString>]| {
            words.iter().map(|word| Ok(bytes_of(word)?.into_owned())).collect::<PyResult<_>>()
        };
        let settings = Settings {
            pattern: pattern_of(pattern)?,
            lowercase,
            characters,
            shortest: gram_size(shortest)?,
            longest: gram_size(longest)?,
            stop_words: bytes(&stop_words)?,
            only: bytes(&only)?,
            log,
            length,
        };
        Ok(Tokeniser(Arc::new(text::Tokeniser::new(settings)?)))
    }

    /// Whether a token that a text has n times counts log(1 + n).
    #[getter]
    fn log(&self) -> bool {
        self.0.settings().log
    }

    /// Whether counts are divided by the text's Euclidean length.
    #[getter]
    fn length(&self) -> bool {
        self.0.settings().length
    }

    /// Returns the tokens of one text: a str, or for 'given' a list of str. `self.0` is the tokeniser; `words` are the
    /// list's, as UTF-8.
    fn tokens<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = text.py();
        let tokens = of_one(
            text,
            |text, tokens| py.detach(|| self.0.read(text, tokens)),
            |words, tokens| self.0.gather(words.iter().map(|word| word.as_ref()), tokens),
        )?;
        let list = PyList::empty(py);
        for token in tokens.iter() {
            list.append(string_of(py, token)?)?;
        }
        Ok(list)
    }

    /// Returns where the tokens of one text start and end, each (tokens,), in characters of the text, or for 'given' in words
    /// of the list. `self.0` is the tokeniser; `words` are the list's, as UTF-8, and a span is the start and the end of a
    /// token.
    fn places<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<(Places<'py>, Places<'py>)> {
        let py = text.py();
        let tokens = of_one(
            text,
            |text, tokens| py.detach(|| self.0.places(text, tokens)),
            |words, tokens| self.0.numbers(words.iter().map(|word| word.as_ref()), tokens),
        )?;
        let starts = tokens.spans.iter().map(|span| i64::from(span.start));
        let ends = tokens.spans.iter().map(|span| i64::from(span.end));
        Ok((starts.collect::<Vec<_>>().into_pyarray(py), ends.collect::<Vec<_>>().into_pyarray(py)))
    }
}

/// One position for each token.
type Places<'py> = Bound<'py, PyArray1<i64>>;

/// Returns the tokens of a str, which `read` fills in from its UTF-8, or of a list of str, which `gather` fills in; a
/// TypeError for anything else. `words` are the UTF-8 of that list.
fn of_one(
    text: &Bound<'_, PyAny>,
    read: impl FnOnce(&[u8], &mut Tokens) -> Result<(), Error>,
    gather: impl FnOnce(&[Cow<'_, [u8]>], &mut Tokens) -> Result<(), Error>,
) -> PyResult<Tokens> {
    let mut tokens = Tokens::default();
    if let Ok(text) = text.cast::<PyString>() {
        read(&bytes_of(text)?, &mut tokens)?;
    } else if let Ok(words) = text.extract::<Vec<Bound<'_, PyString>>>() {
        let words: Vec<_> = words.iter().map(bytes_of).collect::<PyResult<_>>()?;
        gather(&words, &mut tokens)?;
    } else {
        return Err(PyTypeError::new_err(
            "a text must be a str, or a list of str if its tokens are given",
        ));
    }
    Ok(tokens)
}
