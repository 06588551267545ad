//! The rows of a matrix, added to the sums of words and taken away again.

use super::Matrix;
use super::task::Task;
use crate::classes::Rows;
use crate::error::{Error, demand};
use crate::threads;
use crate::words::add_up::Found;
use crate::words::index::{Vocabulary, number_column};
use crate::words::store::{Count, Lane, Unit};
use crate::words::{TOO_LARGE, TOO_MANY, Words, rounded_up};

pub const TOO_MANY_COLUMNS: &str = "the matrix has more columns than the words it is counted into";

impl Words {
    /// Adds the rows of a matrix, whose columns are the words. Gives what they add up to.
    pub fn count_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<Found>, Error> {
        let mut found = self.found(matrix, rows, threads)?;
        let all = |count: fn(&Found) -> Count| {
            let unit = found.first().map_or(Unit::One, Found::unit);
            rounded_up(unit, found.iter().map(count))
        };
        demand(
            self.total() + all(|found| found.totals[0]) < TOO_LARGE
                && self.n_texts() + all(|found| found.texts) < TOO_LARGE,
            TOO_MANY,
        )?;
        self.number_columns(matrix.n_columns)?;
        self.renumber(&mut found)?;
        let threads = threads::worth(threads, matrix.cells());
        self.add_found(&mut found, threads)?;
        Ok(found)
    }

    /// Takes the rows of a matrix away again, and gives what they add up to; changes nothing if they are not there.
    pub fn forget_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<Found>, Error> {
        let mut found = self.found(matrix, rows, threads)?;
        self.number_columns(matrix.n_columns)?;
        self.renumber(&mut found)?;
        self.take_found(&mut found, false)?;
        Ok(found)
    }

    fn found(&self, matrix: &Matrix, rows: Rows, threads: usize) -> Result<Vec<Found>, Error> {
        demand(matrix.len() == rows.len(), "there must be as many classes as rows")?;
        demand(rows.n_classes == self.n_classes(), "classes must be those of the words")?;
        demand(matrix.n_columns <= self.n_columns(), TOO_MANY_COLUMNS)?;
        let threads = threads::worth(threads, matrix.cells());
        Task { matrix, rows, threads }.found()
    }

    /// Has numbers for the first so many columns.
    pub fn number_columns(&mut self, n_columns: usize) -> Result<(), Error> {
        demand(n_columns <= self.n_columns(), TOO_MANY_COLUMNS)?;
        if let Vocabulary::Columns { ids, columns } = &mut self.vocabulary
            && columns.len() < n_columns
        {
            for column in 0..n_columns {
                number_column(column, ids, columns);
            }
        }
        self.cells.grow(self.vocabulary.len());
        Ok(())
    }

    /// By column the number of its word + 1, or 0.
    pub fn columns(&self) -> &[u32] {
        match &self.vocabulary {
            Vocabulary::Named { .. } => &[],
            Vocabulary::Columns { ids, .. } => ids,
        }
    }

    /// Puts the numbers of words for columns, in order.
    fn renumber(&self, found: &mut [Found]) -> Result<(), Error> {
        let ids = self.columns();
        let in_order = |found: &Found| found.ids.iter().all(|&id| ids[id as usize] == id + 1);
        for found in found.iter_mut().filter(|found| !in_order(found)) {
            let mut order: Vec<(u32, usize)> = found
                .ids
                .iter()
                .enumerate()
                .map(|(at, &column)| (ids[column as usize].wrapping_sub(1), at))
                .collect();
            order.sort_unstable();
            let places = order.iter().map(|&(_, at)| at);
            match &mut found.counts {
                Lane::Narrow(counts) => *counts = places.map(|at| counts[at]).collect(),
                Lane::Parts(counts) => *counts = places.map(|at| counts[at]).collect(),
            }
            found.ids = order.iter().map(|&(id, _)| id).collect();
        }
        Ok(())
    }
}
