//! Adds the rows of a matrix to the sums of words, and subtracts them.

use super::Matrix;
use super::rows::MatrixRows;
use crate::classes::Rows;
use crate::error::{Error, demand};
use crate::threads;
use crate::words::class_sums::ClassSums;
use crate::words::index::{Vocabulary, number_column};
use crate::words::store::{CellCounts, Count, Unit};
use crate::words::{TOO_LARGE, TOO_MANY, Words, rounded_up};

pub const TOO_MANY_COLUMNS: &str = "the matrix has more columns than the words it is counted into";

impl Words {
    /// Adds the rows of a matrix, whose columns are the words, to the store on so many threads, and returns their sums, one per
    /// class and job. `rows` are the classes and weights of the rows.
    pub fn count_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<ClassSums>, Error> {
        let mut sums = self.sums_of_matrix(matrix, rows, threads)?;
        let unit = sums.first().map_or(Unit::One, ClassSums::unit); // of all sums
        // The sum of one count of all sums, in ones, rounded up.
        let total = |count: fn(&ClassSums) -> Count| rounded_up(unit, sums.iter().map(count));
        demand(
            self.total() + total(|sums| sums.totals[0]) < TOO_LARGE
                && self.n_texts() + total(|sums| sums.texts) < TOO_LARGE,
            TOO_MANY,
        )?;
        let threads = threads::worth(threads, matrix.cells());
        self.add_sums(&mut sums, threads);
        Ok(sums)
    }

    /// Subtracts the rows of a matrix from the store, and returns their sums; changes no counts if they were not counted, which
    /// is an error. `rows` are the classes and weights of the rows.
    pub fn forget_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<ClassSums>, Error> {
        let mut sums = self.sums_of_matrix(matrix, rows, threads)?;
        // `false`: cells of a matrix need not be whole numbers.
        self.take_sums(&mut sums, false)?;
        Ok(sums)
    }

    /// Adds up the rows of a matrix by class and job on so many threads, with numbers of words for columns, and gives columns
    /// numbers that had none. `rows` are the classes and weights of the rows.
    fn sums_of_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<ClassSums>, Error> {
        demand(matrix.len() == rows.len(), "there must be as many classes as rows")?;
        demand(rows.n_classes == self.n_classes(), "classes must be those of the words")?;
        demand(matrix.n_columns <= self.n_columns(), TOO_MANY_COLUMNS)?;
        let threads = threads::worth(threads, matrix.cells());
        let mut sums = MatrixRows { matrix, rows, threads }.add_up()?;
        self.number_columns(matrix.n_columns)?;
        self.renumber(&mut sums);
        Ok(sums)
    }

    /// Gives each of the first `n_columns` columns a number as a word, if it has none yet.
    pub fn number_columns(&mut self, n_columns: usize) -> Result<(), Error> {
        demand(n_columns <= self.n_columns(), TOO_MANY_COLUMNS)?;
        // `ids`: the number + 1 of each column's word, 0 for none; `columns`: the column of each word.
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

    /// The number of each column's word plus 1, or 0 if it has none, `[column]`; nothing if words have names.
    pub fn columns(&self) -> &[u32] {
        match &self.vocabulary {
            Vocabulary::Named(_) => &[],
            Vocabulary::Columns { ids, .. } => ids,
        }
    }

    /// Replaces columns by the numbers of their words in the `ids` of sums of classes, and sorts these numbers and the counts
    /// that belong to them.
    fn renumber(&self, sums: &mut [ClassSums]) {
        let ids_after = self.columns(); // the number of each column's word + 1, `[column]`
        // Whether all words of a sum have the numbers of their columns.
        let is_unchanged = |sums: &ClassSums| {
            sums.ids.iter().all(|&column| ids_after[column as usize] == column + 1)
        };
        for sums in sums.iter_mut().filter(|sums| !is_unchanged(sums)) {
            // The number of each cell's word, and the cell's position.
            let mut order: Vec<(u32, usize)> = vec![];
            for (position, &column) in sums.ids.iter().enumerate() {
                order.push((ids_after[column as usize].wrapping_sub(1), position));
            }
            order.sort_unstable();
            let positions = order.iter().map(|&(_, position)| position); // of cells, in the order of words
            match &mut sums.counts {
                CellCounts::Narrow(counts) => {
                    *counts = positions.map(|position| counts[position]).collect()
                }
                CellCounts::Parts(counts) => {
                    *counts = positions.map(|position| counts[position]).collect()
                }
            }
            sums.ids = order.iter().map(|&(id, _)| id).collect();
        }
    }
}
