//! Texts to be counted or scored, however they lie in memory.

use super::Matrix;
use crate::encode::Strings;
use crate::error::{Error, demand};
use crate::text::{Tokeniser, Tokens};
use std::ops::Range;

/// Rows of text, each of which may be missing.
#[derive(Debug)]
pub enum Texts<'a> {
    /// Strings here and there.
    Borrowed(Vec<Option<&'a [u8]>>),
    /// Strings one after the other, as Arrow has them.
    Narrow(Strings<'a, i32>),
    Wide(Strings<'a, i64>),
    /// Texts that were cut into tokens elsewhere.
    Given(Given<'a>),
    /// Texts whose words were looked up before.
    Encoded(Encoded<'a>),
    /// Texts whose words were counted elsewhere.
    Counted(Matrix<'a>),
}

/// The ids of all texts' words, -1 for one that is unknown; those of row i are `offsets[i]` to `offsets[i + 1]`.
#[derive(Debug)]
pub struct Encoded<'a> {
    ids: &'a [i32],
    /// How often the text has each; none: once, and words come as often as they occur.
    times: Option<&'a [i32]>,
    places: Places<'a>,
}

impl<'a> Encoded<'a> {
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

    /// The words of a text, and how often it has each if they come once; none if it is missing.
    pub fn get(&self, row: usize) -> Option<(&'a [i32], Option<&'a [i32]>)> {
        let range = self.places.get(row)?;
        let times = self.times.map(|times| &times[range.clone()]);
        Some((&self.ids[range], times))
    }
}

/// Where the tokens of each text are.
#[derive(Debug)]
struct Places<'a> {
    offsets: &'a [i64],
    missing: Option<&'a [bool]>,
}

impl<'a> Places<'a> {
    /// Checks that offsets ascend within the tokens, and that there is one `missing` per text.
    fn new(offsets: &'a [i64], tokens: usize, missing: Option<&'a [bool]>) -> Result<Self, Error> {
        let ends = offsets.first().zip(offsets.last());
        let inside = |(&first, &last)| first >= 0 && last as usize <= tokens;
        demand(
            ends.is_some_and(inside) && offsets.is_sorted(),
            "offsets must ascend from 0 or more to the number of tokens or less",
        )?;
        demand(
            missing.is_none_or(|missing| missing.len() == offsets.len() - 1),
            "there must be one text fewer than offsets, and a mark for each that says whether it is missing",
        )?;
        Ok(Places { offsets, missing })
    }

    fn get(&self, row: usize) -> Option<Range<usize>> {
        let missing = self.missing.is_some_and(|missing| missing[row]);
        (!missing).then(|| self.offsets[row] as usize..self.offsets[row + 1] as usize)
    }
}

/// The tokens of all texts; those of row i are `offsets[i]` to `offsets[i + 1]`.
#[derive(Debug)]
pub struct Given<'a> {
    tokens: Vec<&'a [u8]>,
    places: Places<'a>,
}

impl<'a> Given<'a> {
    pub fn new(
        tokens: Vec<&'a [u8]>,
        offsets: &'a [i64],
        missing: Option<&'a [bool]>,
    ) -> Result<Self, Error> {
        let places = Places::new(offsets, tokens.len(), missing)?;
        Ok(Given { tokens, places })
    }

    fn get(&self, row: usize) -> Option<&[&'a [u8]]> {
        Some(&self.tokens[self.places.get(row)?])
    }
}

impl Texts<'_> {
    pub fn len(&self) -> usize {
        match self {
            Texts::Borrowed(texts) => texts.len(),
            Texts::Narrow(texts) => texts.len(),
            Texts::Wide(texts) => texts.len(),
            Texts::Given(Given { places, .. }) | Texts::Encoded(Encoded { places, .. }) => {
                places.offsets.len() - 1
            }
            Texts::Counted(matrix) => matrix.len(),
        }
    }

    /// A measure of a text's size: its bytes, of given tokens one more each, four of each id. It has no more words than that.
    pub fn size(&self, row: usize) -> usize {
        match self {
            Texts::Borrowed(texts) => texts[row].map_or(0, <[u8]>::len),
            Texts::Narrow(texts) => texts.get(row).map_or(0, <[u8]>::len),
            Texts::Wide(texts) => texts.get(row).map_or(0, <[u8]>::len),
            Texts::Given(texts) => {
                let tokens = texts.get(row).unwrap_or(&[]);
                tokens.iter().map(|token| token.len() + 1).sum()
            }
            Texts::Encoded(texts) => texts.get(row).map_or(0, |(ids, _)| 4 * ids.len()),
            Texts::Counted(matrix) => 4 * matrix.size(row),
        }
    }

    /// The size of all texts together.
    pub fn bytes(&self) -> usize {
        (0..self.len()).map(|row| self.size(row)).sum()
    }

    /// The tokens of a text; false if it is missing.
    pub fn read(
        &self,
        row: usize,
        tokeniser: &Tokeniser,
        tokens: &mut Tokens,
    ) -> Result<bool, Error> {
        if let Texts::Given(texts) = self {
            let given = texts.get(row);
            let tokens = given.map(|given| tokeniser.gather(given.iter().copied(), tokens));
            return tokens.transpose().map(|read| read.is_some());
        }
        let text = self.text(row)?.map(|text| tokeniser.read(text, tokens));
        text.transpose().map(|read| read.is_some())
    }

    /// A text that was not cut into tokens yet.
    #[inline(always)]
    fn text(&self, row: usize) -> Result<Option<&[u8]>, Error> {
        match self {
            Texts::Borrowed(texts) => Ok(texts[row]),
            Texts::Narrow(texts) => Ok(texts.get(row)),
            Texts::Wide(texts) => Ok(texts.get(row)),
            Texts::Given(_) | Texts::Encoded(_) | Texts::Counted(_) => Err(Error::malformed(
                "texts whose words were looked up before can be scored, and nothing else",
            )),
        }
    }
}
