//! Temporary.
use super::malformed;
use crate::text::{self, Pattern, Settings};
use pyo3::prelude::*;
use std::sync::Arc;

#[pyclass(module = "banbury._core", frozen)]
pub(super) struct Tokeniser(Arc<text::Tokeniser>);

impl Tokeniser {
    pub(super) fn get(&self) -> Arc<text::Tokeniser> {
        self.0.clone()
    }
}

#[pymethods]
impl Tokeniser {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        pattern: &str,
        lowercase: bool,
        characters: bool,
        shortest: u8,
        longest: u8,
        stop_words: Vec<String>,
        log: bool,
        length: bool,
    ) -> PyResult<Self> {
        let pattern = match pattern {
            "word" => Pattern::Word,
            "word1" => Pattern::Word1,
            "mail" => Pattern::Mail,
            "given" => Pattern::Given,
            _ => return Err(malformed("no such pattern")),
        };
        Ok(Tokeniser(Arc::new(text::Tokeniser::new(Settings {
            pattern,
            lowercase,
            characters,
            shortest,
            longest,
            stop_words: stop_words.into_iter().map(String::into_bytes).collect(),
            log,
            length,
        })?)))
    }
}
