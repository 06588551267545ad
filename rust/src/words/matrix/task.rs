//! Rows to be added up, and the way that suits them.

use super::seen::Seen;
use super::{Layout, Matrix};
use crate::classes::{Rows, Weights};
use crate::error::{Error, fit};
use crate::integers::PARTS;
use crate::words::add_up::Found;
use crate::words::store::Unit;
use crate::words::{TOO_LARGE, TOO_MANY};

/// Numbers of at least this many cells are added up by a thread at a time.
pub const JOB: usize = 1 << 20;
/// Sums of doubles are exact below this.
pub const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
/// A table of all classes and columns is small up to so many cells.
const SMALL_TABLE: usize = 1 << 18;

/// Rows of a matrix with their classes and weights.
#[derive(Clone, Copy)]
pub struct Task<'a, 'm> {
    pub matrix: &'a Matrix<'m>,
    pub rows: Rows<'a>,
    pub threads: usize,
}

impl Task<'_, '_> {
    /// What a row weighs, as a double.
    pub fn about(&self, row: usize) -> f64 {
        match self.rows.weights {
            Weights::Ones => 1.0,
            Weights::Whole(weights) => weights[row] as f64,
            Weights::Parts(_) => self.rows.weight(row) as f64 / PARTS as f64,
        }
    }

    pub fn counted(&self) -> impl Iterator<Item = usize> {
        (0..self.rows.len()).filter(|&row| self.rows.classes[row] >= 0)
    }

    /// The largest that the sum of a column can be.
    pub fn most(&self, seen: Seen) -> f64 {
        seen.largest * self.counted().map(|row| self.about(row)).sum::<f64>()
    }

    /// What numbers count; an error for cells that cannot be counted, and for sums that would be too large.
    pub fn unit(&self, seen: Seen) -> Result<Unit, Error> {
        if !seen.fine {
            return Err(self.matrix.first_refused());
        }
        let largest = TOO_LARGE as f64 / 2.0;
        fit(seen.largest < largest, "a cell must be below 2**62")?;
        let longest = self.counted().map(|row| self.matrix.size(row)).max();
        if self.most(seen) * longest.unwrap_or(0) as f64 >= largest {
            let (mut all, mut room) = (0.0, vec![]);
            for row in self.counted() {
                let mut sum = 0.0;
                self.matrix.each_of(row, &mut room, |_, x| sum += x)?;
                all += sum * self.about(row);
            }
            fit(all <= TOO_LARGE as f64, TOO_MANY)?;
        }
        Ok(match self.rows.weights {
            Weights::Parts(_) => Unit::Part,
            _ if !seen.whole => Unit::Part,
            _ => Unit::One,
        })
    }

    /// The cells, class by class.
    pub fn found(&self) -> Result<Vec<Found>, Error> {
        let table = self.matrix.n_columns.saturating_mul(self.rows.n_classes);
        match &self.matrix.layout {
            Layout::Dense(block) if table <= SMALL_TABLE && self.rows.len() > 1 => {
                self.dense(block)
            }
            _ => self.by_class(self.look()),
        }
    }
}
