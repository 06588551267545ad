//! Texts to be counted or scored, in the forms in which Python hands them over.

use super::Matrix;
use crate::encode::Strings;
use crate::error::{Error, demand};
use crate::text::{Tokeniser, Tokens};
use std::ops::Range;

/// Rows of text, each of which may be missing.
#[derive(Debug)]
pub enum Texts<'a> {
    /// Strings anywhere in memory.
    Borrowed(Vec<Option<&'a [u8]>>),
    /// Strings in one piece of memory, as in Arrow.
    Arrow(Strings<'a>),
    /// Texts that were cut into tokens elsewhere.
    Tokens(TokenLists<'a>),
    /// Texts whose words were looked up before.
    Encoded(Encoded<'a>),
    /// Rows whose words were counted elsewhere.
    Counted(Matrix<'a>),
}

/// The ids of the words of texts, -1 for an unknown word; those of row i are `offsets[i]` to `offsets[i + 1]`.
#[derive(Debug)]
pub struct Encoded<'a> {
    /// All texts' words, one after the other.
    ids: &'a [i32],
    /// How often the text has each word; none if a word is repeated as often as it occurs.
    times: Option<&'a [i32]>,
    /// Where each text's words are in `ids`.
    places: Places<'a>,
}

impl<'a> Encoded<'a> {
    /// Texts whose words have the numbers `ids`, -1 for unknown ones; text i has `ids[offsets[i]..offsets[i + 1]]`, each as
    /// often as `times` says, or as often as it is repeated if that is none. `missing` says which texts are missing; none if no
    /// text is. Refuses offsets that do not ascend within the ids, and numbers of times that are not above 0.
    pub fn new(
        ids: &'a [i32],
        times: Option<&'a [i32]>,
        offsets: &'a [i64],
        missing: Option<&'a [bool]>,
    ) -> Result<Self, Error> {
        let places = Places::new(offsets, ids.len(), missing)?;
        demand(
            times.is_none_or(|times| times.len() == ids.len() && times.iter().all(|&n| n > 0)),
            "times must be one number above 0 per id",
        )?;
        Ok(Encoded { ids, times, places })
    }

    /// The numbers of the words of a row's text, and how often it has each (none if they are repeated as often as they occur);
    /// none if the text is missing.
    pub fn get(&self, row: usize) -> Option<(&'a [i32], Option<&'a [i32]>)> {
        let range = self.places.get(row)?; // where the text's words are in `ids`
        let times = self.times.map(|times| &times[range.clone()]);
        Some((&self.ids[range], times))
    }
}

/// Where the tokens of each text begin and end, and which texts are missing.
#[derive(Debug)]
struct Places<'a> {
    /// Those of row i are `offsets[i]` to `offsets[i + 1]`.
    offsets: &'a [i64],
    /// Whether each text is missing; none if no text is.
    missing: Option<&'a [bool]>,
}

impl<'a> Places<'a> {
    /// The places of texts of which text i has the tokens `offsets[i]` to `offsets[i + 1]` of `n_tokens`; `missing` says whether
    /// each text is missing, none if no text is. Refuses offsets that do not ascend within the tokens, and a `missing` that has
    /// not one mark per text.
    fn new(
        offsets: &'a [i64],
        n_tokens: usize,
        missing: Option<&'a [bool]>,
    ) -> Result<Self, Error> {
        let ends = offsets.first().zip(offsets.last()); // the first and the last offset
        let are_inside = |(&first, &last)| first >= 0 && last as usize <= n_tokens;
        demand(
            ends.is_some_and(are_inside) && offsets.is_sorted(),
            "offsets must ascend from 0 or more to the number of tokens or less",
        )?;
        demand(
            missing.is_none_or(|missing| missing.len() == offsets.len() - 1),
            "there must be one text fewer than offsets, and a mark for each that says whether it is missing",
        )?;
        Ok(Places { offsets, missing })
    }

    /// Where the tokens of a row's text are: from `offsets[row]` to `offsets[row + 1]`; none if the text is missing.
    fn get(&self, row: usize) -> Option<Range<usize>> {
        let is_missing = self.missing.is_some_and(|missing| missing[row]);
        (!is_missing).then(|| self.offsets[row] as usize..self.offsets[row + 1] as usize)
    }
}

/// The tokens of texts; those of row i are `offsets[i]` to `offsets[i + 1]`.
#[derive(Debug)]
pub struct TokenLists<'a> {
    /// The bytes of all tokens, text after text.
    tokens: Vec<&'a [u8]>,
    places: Places<'a>,
}

impl<'a> TokenLists<'a> {
    /// Texts of which text i has `tokens[offsets[i]..offsets[i + 1]]`, each token in bytes. Refuses offsets that do not ascend
    /// within the tokens. `missing` says which texts are missing; none if no text is.
    pub fn new(
        tokens: Vec<&'a [u8]>,
        offsets: &'a [i64],
        missing: Option<&'a [bool]>,
    ) -> Result<Self, Error> {
        let places = Places::new(offsets, tokens.len(), missing)?;
        Ok(TokenLists { tokens, places })
    }

    /// The tokens of a row's text; none if the text is missing.
    fn get(&self, row: usize) -> Option<&[&'a [u8]]> {
        Some(&self.tokens[self.places.get(row)?])
    }
}

impl Texts<'_> {
    /// How many rows of texts there are; tokens and ids have one offset more.
    pub fn len(&self) -> usize {
        match self {
            Texts::Borrowed(texts) => texts.len(),
            Texts::Arrow(texts) => texts.len(),
            Texts::Tokens(TokenLists { places, .. }) | Texts::Encoded(Encoded { places, .. }) => {
                places.offsets.len() - 1
            }
            Texts::Counted(matrix) => matrix.len(),
        }
    }

    /// The size of a row's text, in bytes or what compares with them: one more for each token that was cut elsewhere, four for
    /// each id or cell. It has no more words than that.
    pub fn size(&self, row: usize) -> usize {
        match self {
            Texts::Borrowed(texts) => texts[row].map_or(0, <[u8]>::len),
            Texts::Arrow(texts) => texts.get(row).map_or(0, <[u8]>::len),
            Texts::Tokens(texts) => {
                let tokens = texts.get(row).unwrap_or(&[]);
                tokens.iter().map(|token| token.len() + 1).sum()
            }
            Texts::Encoded(texts) => texts.get(row).map_or(0, |(ids, _)| 4 * ids.len()),
            Texts::Counted(matrix) => 4 * matrix.size(row),
        }
    }

    /// The size of all texts together, as [`Texts::size`] measures it.
    pub fn bytes(&self) -> usize {
        (0..self.len()).map(|row| self.size(row)).sum()
    }

    /// Cuts the text of a row into tokens as `tokeniser` does, and writes them to `tokens`; returns false if the text is missing.
    pub fn read(
        &self,
        row: usize,
        tokeniser: &Tokeniser,
        tokens: &mut Tokens,
    ) -> Result<bool, Error> {
        // None if the text is missing.
        let outcome = match self {
            Texts::Borrowed(texts) => texts[row].map(|text| tokeniser.read(text, tokens)),
            Texts::Arrow(texts) => texts.get(row).map(|text| tokeniser.read(text, tokens)),
            Texts::Tokens(texts) => {
                texts.get(row).map(|text| tokeniser.gather(text.iter().copied(), tokens))
            }
            Texts::Encoded(_) | Texts::Counted(_) => {
                return Err(Error::malformed(
                    "texts whose words were looked up before can be scored, and nothing else",
                ));
            }
        };
        Ok(outcome.transpose()?.is_some())
    }
}
