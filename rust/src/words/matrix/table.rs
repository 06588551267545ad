//! All rows as they come, added up in a table of all classes and columns.

use super::seen::{Eight, LANES, Lanes, Seen, filled};
use super::task::{EXACT, JOB, Task};
use crate::classes::{self, Weights};
use crate::columns::{Block, each};
use crate::error::Error;
use crate::simd::wide;
use crate::threads;
use crate::words::add_up::Found;
use crate::words::store::Unit;
use std::ops::Range;

/// Rows that are copied together where their cells are not side by side.
const TOGETHER: usize = 64;

impl Task<'_, '_> {
    /// Adds up doubles, which is exact while all numbers are whole and small; others class by class.
    pub fn dense(&self, block: &Block) -> Result<Vec<Found>, Error> {
        if matches!(self.rows.weights, Weights::Parts(_)) {
            return self.by_class(self.look());
        }
        let (n, width) = (self.rows.len(), self.width());
        let size = self.rows.n_classes * width;
        let pieces = (n * width / JOB).clamp(1, 4 * self.threads);
        let length = n.div_ceil(pieces);
        let found = threads::map(self.threads, pieces, |i| {
            let (mut sums, mut lanes) = ([vec![0.0; size], vec![0.0; size]], Lanes::NOTHING);
            let rows = (i * length).min(n)..n.min((i + 1) * length);
            self.each_row(block, rows, |row, cells| {
                let class = self.rows.classes[row] as usize;
                let [occurrences, documents] = &mut sums;
                let at = class * width..(class + 1) * width;
                let sums = [&mut occurrences[at.clone()], &mut documents[at]];
                add_whole(cells, self.about(row), sums, &mut lanes);
            });
            (sums, lanes.seen())
        });
        let seen = found.iter().map(|(_, seen)| *seen);
        let seen = seen.fold(Seen::NOTHING, Seen::and);
        if self.unit(seen)? == Unit::Part || self.most(seen) >= EXACT {
            return self.by_class(seen);
        }
        let mut pieces = found.into_iter().map(|(sums, _)| sums);
        let mut total = pieces.next().unwrap_or_default();
        for piece in pieces {
            for (total, piece) in total.iter_mut().zip(&piece) {
                total.iter_mut().zip(piece).for_each(|(a, b)| *a += b);
            }
        }
        Ok(self.whole_table(&total))
    }

    /// Columns, filled up to whole lanes.
    fn width(&self) -> usize {
        self.matrix.n_columns.next_multiple_of(LANES)
    }

    /// Calls `f` with each of these rows that is counted, and what its cells count.
    fn each_row(&self, block: &Block, rows: Range<usize>, mut f: impl FnMut(usize, &[f64])) {
        let (matrix, k, mut room) = (self.matrix, self.matrix.n_columns, vec![]);
        if each!(block, view => view.row(0).to_slice().is_some()) {
            for row in rows.filter(|&row| self.rows.classes[row] >= 0) {
                f(row, matrix.row(row, &mut room).values);
            }
            return;
        }
        room.resize(TOGETHER * k, 0.0);
        for first in rows.clone().step_by(TOGETHER) {
            let n = TOGETHER.min(rows.end - first);
            each!(block, view => for column in 0..k {
                let cells = view.column(column);
                for at in 0..n {
                    room[at * k + column] = matrix.counts(cells[first + at]);
                }
            });
            for at in (0..n).filter(|&at| self.rows.classes[first + at] >= 0) {
                f(first + at, &room[at * k..(at + 1) * k]);
            }
        }
    }

    fn whole_table(&self, [occurrences, documents]: &[Vec<f64>; 2]) -> Vec<Found> {
        let width = self.width();
        let texts = classes::count_classes(&self.rows, self.threads);
        let one = |class: usize| {
            let at = class * width..(class + 1) * width;
            let cells = occurrences[at.clone()].iter().zip(&documents[at]).zip(0..);
            let cells = cells.filter(|((_, documents), _)| **documents > 0.0);
            let cell = |((&occurrences, &documents), column)| {
                (column, [occurrences as u64, documents as u64])
            };
            let (ids, counts): (Vec<u32>, Vec<_>) = cells.map(cell).unzip();
            Found::whole(class as u32, ids, &counts, texts[class] as u64)
        };
        let classes = 0..self.rows.n_classes;
        classes.filter(|&class| texts[class] > 0).map(one).collect()
    }
}

/// Adds a row of whole counts to occurrences and documents.
#[inline(always)]
fn add_whole(
    row: &[f64],
    weight: f64,
    [occurrences, documents]: [&mut [f64]; 2],
    lanes: &mut Lanes,
) {
    wide!({
        let (row, rest) = row.as_chunks::<LANES>();
        let (occurrences, _) = occurrences.as_chunks_mut::<LANES>();
        let (documents, _) = documents.as_chunks_mut::<LANES>();
        let mut seen = *lanes;
        for ((row, occurrences), documents) in
            row.iter().zip(&mut *occurrences).zip(&mut *documents)
        {
            seen.note(row);
            add_eight(row, weight, occurrences, documents);
        }
        if let (Some(occurrences), Some(documents)) =
            (occurrences.get_mut(row.len()), documents.get_mut(row.len()))
        {
            let rest = filled(rest);
            seen.note(&rest);
            add_eight(&rest, weight, occurrences, documents);
        }
        *lanes = seen;
    });
}

#[inline(always)]
fn add_eight(row: &Eight, weight: f64, occurrences: &mut Eight, documents: &mut Eight) {
    for lane in 0..LANES {
        let x = row[lane];
        occurrences[lane] += x * weight;
        documents[lane] += if x != 0.0 { weight } else { 0.0 };
    }
}
