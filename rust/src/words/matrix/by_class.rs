//! The rows of each class, added up by themselves.

use super::seen::Seen;
use super::task::{JOB, Task};
use crate::classes::{self, Weights};
use crate::error::Error;
use crate::simd::wide;
use crate::threads;
use crate::words::accumulators::{
    Accumulator, LightCell, NarrowCell, PartsCell, WeightedCell, weigh, weight,
};
use crate::words::add_up::Found;
use crate::words::store::{Lane, Unit};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

impl Task<'_, '_> {
    pub fn by_class(&self, seen: Seen) -> Result<Vec<Found>, Error> {
        let (order, starts) = classes::by_class(&self.rows, self.threads);
        let jobs = self.jobs(&order, &starts);
        let most = seen.sum.max((JOB + self.matrix.n_columns) as f64);
        let heaviest = self.counted().map(|row| self.about(row)).fold(0.0, f64::max);
        let narrow = most * heaviest < 4e9;
        match (self.unit(seen)?, self.rows.weights) {
            (Unit::One, _) if narrow => self.run::<NarrowCell>(&jobs, &order),
            (Unit::Part, Weights::Ones) if narrow => self.run::<LightCell>(&jobs, &order),
            _ if seen.whole => self.run::<WeightedCell>(&jobs, &order),
            _ => self.run::<PartsCell>(&jobs, &order),
        }
    }

    fn run<C: Accumulator>(
        &self,
        jobs: &[(usize, Range<usize>)],
        order: &[i64],
    ) -> Result<Vec<Found>, Error> {
        // Zeros, which jobs leave as they found them.
        let rooms: Mutex<Vec<Vec<C>>> = Mutex::new(vec![]);
        let lock = || rooms.lock().unwrap_or_else(PoisonError::into_inner);
        threads::try_map(self.threads, jobs.len(), |i| {
            let (class, rows) = (jobs[i].0, &order[jobs[i].1.clone()]);
            let cells = rows.iter().map(|&row| self.matrix.size(row as usize));
            if cells.sum::<usize>() < self.matrix.n_columns / 16 {
                return self.few::<C>(class, rows);
            }
            let mut room = lock().pop().unwrap_or_default();
            room.resize(self.matrix.n_columns, C::default());
            let found = self.job(class, rows, &mut room)?;
            lock().push(room);
            Ok(found)
        })
    }

    /// Runs of rows of one class, in the order of classes; how they are cut depends on the matrix alone.
    fn jobs(&self, order: &[i64], starts: &[i64]) -> Vec<(usize, Range<usize>)> {
        let mut jobs = vec![];
        for (class, ends) in starts.windows(2).enumerate() {
            let (mut first, mut cells) = (ends[0] as usize, 0);
            let rows = &order[..ends[1] as usize];
            for (at, &row) in rows.iter().enumerate().skip(first) {
                cells += self.matrix.size(row as usize);
                if cells >= JOB {
                    jobs.push((class, first..at + 1));
                    (first, cells) = (at + 1, 0);
                }
            }
            if first < ends[1] as usize {
                jobs.push((class, first..ends[1] as usize));
            }
        }
        jobs
    }

    fn job<C: Accumulator>(
        &self,
        class: usize,
        rows: &[i64],
        sums: &mut [C],
    ) -> Result<Found, Error> {
        let (all, mut room) = (&mut *sums, vec![]);
        wide!(for &row in rows {
            let weight = weight(&self.rows, row as usize, C::WEIGHTS);
            let cells = self.matrix.row(row as usize, &mut room);
            match cells.columns {
                Some(_) => add(all, cells.sparse(), weight),
                None => add(all, cells.dense(), weight),
            }
        });
        let ids = used(sums);
        let cells = ids.iter().map(|&id| std::mem::take(&mut sums[id as usize]));
        let counts = C::lane(cells);
        Ok(self.found_in(class, rows, ids, counts))
    }

    /// The same where most columns are not met.
    fn few<C: Accumulator>(&self, class: usize, rows: &[i64]) -> Result<Found, Error> {
        let (mut cells, mut room): (Vec<(u32, C)>, _) = (vec![], vec![]);
        for &row in rows {
            let weight = weight(&self.rows, row as usize, C::WEIGHTS);
            self.matrix.each_of(row as usize, &mut room, |column, x| {
                let mut cell = C::default();
                cell.add(x, weight);
                cells.push((column, cell));
            })?;
        }
        cells.retain(|(_, cell)| cell.is_used());
        cells.sort_by_key(|(column, _)| *column);
        cells.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1.merge(&next.1);
            }
            same
        });
        let ids = cells.iter().map(|(id, _)| *id).collect();
        let counts = C::lane(cells.into_iter().map(|(_, cell)| cell));
        Ok(self.found_in(class, rows, ids, counts))
    }

    fn found_in(&self, class: usize, rows: &[i64], ids: Vec<u32>, counts: Lane) -> Found {
        let rows = rows.iter().map(|&row| row as usize);
        let texts = weigh(&self.rows, rows, counts.unit());
        Found::new(class as u32, ids, counts, texts)
    }
}

/// The numbers of the cells that are used. Which are cannot be guessed: no branches.
fn used<C: Accumulator>(cells: &[C]) -> Vec<u32> {
    let (mut ids, mut n) = (vec![0; cells.len() + 1], 0);
    for (cell, id) in cells.iter().zip(0..) {
        ids[n] = id;
        n += usize::from(cell.is_used());
    }
    ids.truncate(n);
    ids
}

/// Adds the cells of a row to the sums of their columns.
#[inline(always)]
fn add<C: Accumulator>(sums: &mut [C], cells: impl Iterator<Item = (u32, f64)>, weight: u128) {
    for (column, x) in cells {
        sums[column as usize].add(x, weight);
    }
}
