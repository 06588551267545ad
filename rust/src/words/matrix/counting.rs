//! The rows of a matrix, added to the sums of words and taken away again.

use super::Matrix;
use super::task::Task;
use crate::classes::Rows;
use crate::error::{Error, demand};
use crate::threads;
use crate::words::add_up::Found;
use crate::words::index::{Vocabulary, number_buckets};
use crate::words::merge::gather;
use crate::words::store::{Count, Lane, Unit};
use crate::words::{TOO_LARGE, TOO_MANY, Words, rounded_up};

impl Words {
    /// Adds the rows of a matrix, whose columns are the first buckets. Gives the numbers of the words they have, in order.
    pub fn count_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<u32>, Error> {
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
        let mut found = self.found(matrix, rows, threads)?;
        self.number_columns(matrix.n_columns)?;
        self.renumber(&mut found)?;
        let mut touched = vec![];
        gather(&mut touched, &found, self.n_ids());
        self.take_found(&mut found, false)?;
        Ok(touched)
    }

    fn found(&self, matrix: &Matrix, rows: Rows, threads: usize) -> Result<Vec<Found>, Error> {
        demand(matrix.len() == rows.len(), "there must be as many classes as rows")?;
        demand(rows.n_classes == self.n_classes(), "classes must be those of the words")?;
        demand(matrix.n_columns <= self.buckets(), "there must be a bucket for every column")?;
        let threads = threads::worth(threads, matrix.cells());
        Task { matrix, rows, threads }.found()
    }

    /// Has numbers for the first so many columns.
    pub fn number_columns(&mut self, n_columns: usize) -> Result<(), Error> {
        demand(n_columns <= self.buckets(), "there must be a bucket for every column")?;
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
            let places = order.iter().map(|&(_, at)| at);
            match &mut found.counts {
                Lane::Narrow(counts) => *counts = places.map(|at| counts[at]).collect(),
                Lane::Wide(counts) => *counts = places.map(|at| counts[at]).collect(),
                Lane::Parts(counts) => *counts = places.map(|at| counts[at]).collect(),
            }
            found.ids = order.iter().map(|&(id, _)| id).collect();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::Weights;
    use crate::columns::Block;
    use crate::integers::parts;
    use crate::words::Layout;
    use ndarray::ArrayView2;

    const ROWS: usize = 40;
    const COLUMNS: usize = 5;

    fn counted(values: &[f64], classes: &[i32], weights: Weights, sparse: bool) -> Words {
        with_matrix(values, sparse, |matrix| {
            let mut words = Words::new(3, 8).unwrap();
            let rows = Rows::new(classes, 3, weights).unwrap();
            words.count_matrix(matrix, rows, 2).unwrap();
            words
        })
    }

    fn with_matrix<R>(values: &[f64], sparse: bool, f: impl FnOnce(&Matrix) -> R) -> R {
        let rows = values.len() / COLUMNS;
        let offsets: Vec<i64> = (0..=rows).map(|row| (row * COLUMNS) as i64).collect();
        let columns: Vec<i32> = (0..values.len()).map(|at| (at % COLUMNS) as i32).collect();
        let shape = if sparse { (values.len(), 1) } else { (rows, COLUMNS) };
        let values = Block::F64(ArrayView2::from_shape(shape, values).unwrap());
        let layout = match sparse {
            false => Layout::Dense(values),
            true => Layout::Sparse { offsets: &offsets, columns: &columns, values },
        };
        f(&Matrix::new(layout, COLUMNS, None, false).unwrap())
    }

    #[test]
    fn any_layout_and_any_order_give_the_same() {
        let classes: Vec<i32> = (0..ROWS as i32).map(|row| row % 4 - 1).collect();
        let whole: Vec<i64> = (1..=ROWS as i64).collect();
        let weights: Vec<[u64; 2]> = (1..=ROWS as u64).map(|n| [(n * n * n) << 40, 0]).collect();
        for unit in [1.0, 0.1, 1.0 / 3.0] {
            let values: Vec<f64> =
                (0..ROWS * COLUMNS).map(|at| (at * at % 7) as f64 * unit).collect();
            for weights in [Weights::Ones, Weights::Whole(&whole), Weights::Parts(&weights)] {
                let all = counted(&values, &classes, weights, false);
                assert!(all.state() == counted(&values, &classes, weights, true).state());
                let [kept, gone] = [0, 1].map(|i| {
                    let keep = |(row, &class)| if row % 2 == i { class } else { -1 };
                    classes.iter().enumerate().map(keep).collect::<Vec<i32>>()
                });
                let mut left = all.clone();
                with_matrix(&values, true, |matrix| {
                    let rows = Rows::new(&gone, 3, weights).unwrap();
                    left.forget_matrix(matrix, rows, 1).unwrap();
                    let before = left.state();
                    assert!(left.forget_matrix(matrix, rows, 1).is_err());
                    assert!(left.state() == before);
                });
                assert!(left.state() == counted(&values, &kept, weights, false).state());
            }
        }
    }

    #[test]
    fn five_times_a_tenth_is_a_half() {
        let values = [0.3, 0.1, 0.0, 7.0, 1e-17];
        let weight = |weight: f64| parts(weight).map(|n| [n as u64, 0]).unwrap();
        let five = counted(&values.repeat(5), &[0; 5], Weights::Parts(&[weight(0.1); 5]), false);
        let half = counted(&values, &[0], Weights::Parts(&[weight(0.5)]), true);
        assert!(five.state() == half.state());
        let five = counted(&values.repeat(5), &[0; 5], Weights::Ones, true);
        assert!(five.state() == half.times(10.0).unwrap().0.state());
        let found = five.pairs(0..4);
        assert_eq!(found.occurrences, [1.5, 0.5, 35.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused_before_anything_changes() {
        let mut words = counted(&[1e18, 0.5, 0.0, 0.0, 1.0], &[0], Weights::Ones, false);
        let before = words.state();
        let rows = Rows::new(&[0, 1], 3, Weights::Whole(&[1, 7])).unwrap();
        for sparse in [false, true] {
            for large in [1.2e18, 4e18, 1e19, 1e300, -1.0, f64::NAN] {
                let mut values = [0.25; 2 * COLUMNS];
                values[COLUMNS + 1] = large;
                with_matrix(&values, sparse, |matrix| {
                    assert!(words.count_matrix(matrix, rows, 1).is_err(), "{large}");
                });
                assert!(words.state() == before);
            }
            let large = [2_f64.powi(60), 2_f64.powi(53) + 2.0, 1.0, 0.0, 0.0];
            let found = counted(&large, &[0], Weights::Whole(&[3]), sparse);
            let found = found.occurrences().unwrap();
            assert_eq!(found.words(), [3 * ((1 << 60) + (1 << 53) + 3), 0, 0]);
        }
    }
}
