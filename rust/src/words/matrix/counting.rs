//! The rows of a matrix, added to the sums of words and taken away again.

use super::Matrix;
use super::task::Task;
use crate::classes::Rows;
use crate::error::{Error, demand};
use crate::threads;
use crate::words::add_up::{Found, Lane};
use crate::words::index::{Vocabulary, number_buckets};
use crate::words::merge::gather;
use crate::words::{TOO_LARGE, Words};

impl Words {
    /// Adds the rows of a matrix, whose columns are the first buckets. Gives the numbers of the words they have, in order.
    pub fn count_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<u32>, Error> {
        let (mut found, real) = self.found(matrix, rows, threads)?;
        let more: u64 = found.iter().map(|found| found.totals[0].rows).sum();
        let texts: u64 = found.iter().map(|found| found.texts.rows).sum();
        let fits = |a: u64, b: u64| a.checked_add(b).is_some_and(|sum| sum < TOO_LARGE);
        demand(
            fits(self.total(), more) && fits(self.n_texts(), texts),
            "there are more than 2**63 - 1 occurrences or texts",
        )?;
        self.number_columns(matrix.n_columns)?;
        self.renumber(&mut found)?;
        if real {
            self.make_real();
        }
        let threads = threads::worth(threads, matrix.cells());
        self.add_found(&found, threads)?;
        let mut touched = vec![];
        gather(&mut touched, &found, self.n_ids());
        Ok(touched)
    }

    /// Takes the rows of a matrix away again; changes nothing if they are not there.
    pub fn forget_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<u32>, Error> {
        let (mut found, real) = self.found(matrix, rows, threads)?;
        self.number_columns(matrix.n_columns)?;
        self.renumber(&mut found)?;
        let mut touched = vec![];
        gather(&mut touched, &found, self.n_ids());
        self.take_found(&found, real)?;
        Ok(touched)
    }

    fn found(
        &self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<(Vec<Found>, bool), Error> {
        demand(
            matrix.len() == rows.len(),
            "there must be as many classes as rows",
        )?;
        demand(
            rows.n_classes == self.n_classes(),
            "classes must be those of the words",
        )?;
        demand(
            matrix.n_columns <= self.buckets(),
            "there must be a bucket for every column",
        )?;
        let threads = threads::worth(threads, matrix.cells());
        Task {
            matrix,
            rows,
            threads,
        }
        .found()
    }

    /// Has numbers for the first so many columns.
    pub fn number_columns(&mut self, n_columns: usize) -> Result<(), Error> {
        demand(
            n_columns <= self.buckets(),
            "there must be a bucket for every column",
        )?;
        if let Vocabulary::Hashed { ids, buckets } = &mut self.vocabulary
            && buckets.len() < n_columns
        {
            number_buckets(n_columns, ids, buckets);
        }
        self.cells.grow(self.vocabulary.len());
        Ok(())
    }

    /// By column the number of its word + 1, or 0.
    pub fn columns(&self) -> &[u32] {
        match &self.vocabulary {
            Vocabulary::Named { .. } => &[],
            Vocabulary::Hashed { ids, .. } => ids,
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
            found.counts = Lane::Wide(order.iter().map(|&(_, at)| found.counts.get(at)).collect());
            if found.real {
                found.sums = order.iter().map(|&(_, at)| found.sums[at]).collect();
            }
            found.ids = order.iter().map(|&(id, _)| id).collect();
        }
        Ok(())
    }
}
