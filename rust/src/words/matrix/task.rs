//! Rows to be added up, and the way that suits them.

use super::seen::Seen;
use super::{Layout, Matrix};
use crate::classes::{Rows, Weights};
use crate::columns::each;
use crate::error::{Error, demand};
use crate::words::add_up::Found;
use crate::words::algebra::LARGEST_REAL;

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
    pub fn weight(&self, row: usize) -> f64 {
        match self.rows.weights {
            Weights::Ones => 1.0,
            Weights::Whole(weights) | Weights::Real(weights) => weights[row],
        }
    }

    /// How many rows a row counts as.
    pub fn times(&self, row: usize) -> u64 {
        match self.rows.weights {
            Weights::Whole(weights) => weights[row] as u64,
            _ => 1,
        }
    }

    fn heaviest(&self) -> f64 {
        match self.rows.weights {
            Weights::Ones => self.rows.len() as f64,
            Weights::Whole(weights) | Weights::Real(weights) => weights.iter().sum(),
        }
    }

    /// Whether sums are real; an error for cells that cannot be counted.
    pub fn is_real(&self, seen: Seen) -> Result<bool, Error> {
        if !seen.fine {
            return Err(self.matrix.first_refused());
        }
        let (most, whole) = (seen.largest * self.heaviest(), seen.whole);
        demand(most < LARGEST_REAL, "sums must stay below 2**1000")?;
        Ok(matches!(self.rows.weights, Weights::Real(_)) || !whole || most >= EXACT)
    }

    /// The cells, class by class, and whether sums are real.
    pub fn found(&self) -> Result<(Vec<Found>, bool), Error> {
        let table = self.matrix.n_columns.saturating_mul(self.rows.n_classes);
        match &self.matrix.layout {
            Layout::Dense(block) if table <= SMALL_TABLE && self.rows.len() > 1 => {
                each!(block, view => self.dense(view))
            }
            _ => self.by_class(),
        }
    }
}
