//! The errors of all kernels, none of which panics.

use std::borrow::Cow;
use std::fmt;

/// A value of a column, not rounded, for messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Real(f64),
    Whole(i128),
}

/// Why a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Infinite,
    /// Too many units from the origin of its feature.
    TooFar,
    NotZeroOrOne,
    NotACount,
    /// In bins so narrow that their numbers are not exact.
    TooFine,
    Missing,
    Negative,
}

impl Fault {
    /// The reason as error messages and Python's `BadValue` have it.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Infinite => "infinite",
            Fault::TooFar => "too far",
            Fault::NotZeroOrOne => "not 0 or 1",
            Fault::NotACount => "not a count",
            Fault::TooFine => "too fine",
            Fault::Missing => "missing",
            Fault::Negative => "negative",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// A value is refused: that of this feature in this row, both counted from 0.
    BadValue { fault: Fault, feature: usize, row: usize, value: Number },
    /// More would be subtracted than was added: `remainder`, which is negative, would be left of a word's sum in a class; or
    /// of the number of the class's texts if `word` is None.
    NotThere { word: Option<Vec<u8>>, class: usize, remainder: Number },
    /// The arguments are wrong or do not fit together; the sentence says how.
    Malformed(Cow<'static, str>),
    /// A sum would be too large; the sentence says which.
    TooMany(&'static str),
}

impl Error {
    /// The error for wrong arguments, with a sentence that says what is wrong.
    pub fn malformed(sentence: impl Into<Cow<'static, str>>) -> Self {
        Error::Malformed(sentence.into())
    }
}

impl fmt::Display for Error {
    /// Writes the message. Without a word, [`Error::NotThere`] is about the number of texts of a class; `remainder` is
    /// negative. A bad value has the reason (`fault`), and its `feature` and `row`, counted from 0; `remainder` is what would
    /// be left of the sum of `word` in `class`. `value` is the number that is refused, and a `sentence` is the message
    /// itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadValue { fault, feature, row, value } => {
                write!(f, "{}: {value:?} in feature {feature}, row {row}", fault.name())
            }
            Error::NotThere { word, class, remainder } => {
                let word = word.as_deref().map(String::from_utf8_lossy);
                let subject = word.unwrap_or("its texts".into());
                write!(f, "not there: {remainder:?} of {subject:?} in class {class}")
            }
            Error::Malformed(sentence) => f.write_str(sentence),
            Error::TooMany(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for Error {}

/// `Err(Malformed)` with this sentence unless the condition holds.
pub fn demand(condition: bool, sentence: &'static str) -> Result<(), Error> {
    if condition { Ok(()) } else { Err(Error::malformed(sentence)) }
}

/// `Err(TooMany)` with this sentence unless the sum fits.
pub fn fit(sum_fits: bool, sentence: &'static str) -> Result<(), Error> {
    if sum_fits { Ok(()) } else { Err(Error::TooMany(sentence)) }
}
