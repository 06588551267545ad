//! All rows as they come, added up in a table of all classes and columns.

use super::cells::{RealCell, real_found, tokens, whole_found};
use super::seen::{LANES, Lanes, Seen};
use super::task::{JOB, Task};
use super::{Matrix, plain};
use crate::classes::{self, Weights};
use crate::columns::Value;
use crate::error::Error;
use crate::expansion::{Expansion, two_sum};
use crate::simd::{Loop, wide};
use crate::threads;
use crate::words::Total;
use crate::words::add_up::{Found, Lane};
use ndarray::ArrayView2;
use std::ops::Range;

/// Rows of a dense matrix whose real sums are added up at a time.
const PIECE: usize = 1 << 14;
/// Rows that are copied together where their cells are not side by side.
const TOGETHER: usize = 64;

impl Task<'_, '_> {
    pub fn dense<T: Value>(&self, view: &ArrayView2<T>) -> Result<(Vec<Found>, bool), Error> {
        let (n, width) = (self.rows.len(), self.width());
        let size = self.rows.n_classes * width;
        if !matches!(self.rows.weights, Weights::Real(_)) {
            // Whole sums do not depend on how rows are cut.
            let pieces = (n * width / JOB).clamp(1, 4 * self.threads);
            let length = n.div_ceil(pieces);
            let found = threads::map(self.threads, pieces, |i| {
                let (mut sums, mut lanes) = ([vec![0.0; size], vec![0.0; size]], Lanes::NOTHING);
                let rows = (i * length).min(n)..n.min((i + 1) * length);
                self.each_row(view, rows, |row, cells| {
                    let class = self.rows.classes[row] as usize;
                    let [occurrences, documents] = &mut sums;
                    let at = class * width..(class + 1) * width;
                    let sums = [&mut occurrences[at.clone()], &mut documents[at]];
                    wide(AddWhole(cells, self.weight(row), sums, &mut lanes));
                });
                (sums, lanes.seen())
            });
            let seen = found.iter().map(|(_, seen)| *seen);
            let seen = seen.fold(Seen::NOTHING, Seen::and);
            if !self.is_real(seen)? {
                let mut pieces = found.into_iter().map(|(sums, _)| sums);
                let mut total = pieces.next().unwrap_or_default();
                for piece in pieces {
                    for (total, piece) in total.iter_mut().zip(&piece) {
                        total.iter_mut().zip(piece).for_each(|(a, b)| *a += b);
                    }
                }
                return Ok((self.whole_table(&total), false));
            }
        }
        let found = threads::map(self.threads, n.div_ceil(PIECE), |i| {
            let (mut table, mut lanes) = (Table::new(size), Lanes::NOTHING);
            self.each_row(view, i * PIECE..n.min((i + 1) * PIECE), |row, cells| {
                let class = self.rows.classes[row] as usize;
                let slice = table.class(class * width..(class + 1) * width);
                wide(AddReal(
                    cells,
                    self.weight(row),
                    self.times(row),
                    slice,
                    &mut lanes,
                ));
            });
            (table, lanes.seen())
        });
        let (mut total, mut seen) = (Table::new(size), Seen::NOTHING);
        for (table, more) in &found {
            total.merge(table);
            seen = seen.and(*more);
        }
        self.is_real(seen)?;
        Ok((self.real_table(&total), true))
    }

    /// Columns, filled up to whole lanes.
    fn width(&self) -> usize {
        self.matrix.n_columns.next_multiple_of(LANES)
    }

    /// Calls `f` with each of these rows that is counted, and what its cells count.
    fn each_row<T: Value>(
        &self,
        view: &ArrayView2<T>,
        rows: Range<usize>,
        mut f: impl FnMut(usize, &[f64]),
    ) {
        let (k, width) = (self.matrix.n_columns, self.width());
        let side_by_side = view.row(0).to_slice().is_some();
        let mut room = vec![
            0.0;
            if side_by_side {
                width
            } else {
                TOGETHER * width
            }
        ];
        if side_by_side {
            for row in rows.filter(|&row| self.rows.classes[row] >= 0) {
                if let Some(cells) = view.row(row).to_slice() {
                    wide(Copied(self.matrix, cells, &mut room[..k]));
                    f(row, &room);
                }
            }
            return;
        }
        for first in rows.clone().step_by(TOGETHER) {
            let n = TOGETHER.min(rows.end - first);
            for column in 0..k {
                let cells = view.column(column);
                for at in 0..n {
                    room[at * width + column] = self.matrix.counts(cells[first + at]);
                }
            }
            for at in (0..n).filter(|&at| self.rows.classes[first + at] >= 0) {
                f(first + at, &room[at * width..(at + 1) * width]);
            }
        }
    }

    fn whole_table(&self, [occurrences, documents]: &[Vec<f64>; 2]) -> Vec<Found> {
        let width = self.width();
        let texts = classes::count_classes(&self.rows, self.threads);
        let one = |class: usize| {
            let at = class * width..(class + 1) * width;
            let cells = occurrences[at.clone()].iter().zip(&documents[at]);
            let cells = cells
                .enumerate()
                .filter(|(_, (_, documents))| **documents > 0.0);
            let (mut ids, mut counts, mut totals) = (vec![], vec![], [0, 0]);
            for (column, (&occurrences, &documents)) in cells {
                let cell = [occurrences as u64, documents as u64];
                ids.push(column as u32);
                counts.push(cell);
                totals = [totals[0] + cell[0], totals[1] + cell[1]];
            }
            whole_found(
                class,
                ids,
                Lane::Wide(counts),
                texts.rows[class] as u64,
                totals,
            )
        };
        self.of_each_class(&texts.rows, one)
    }

    fn real_table(&self, table: &Table) -> Vec<Found> {
        let texts = classes::count_classes(&self.rows, self.threads);
        self.of_each_class(&texts.rows, |class| {
            let cells = (0..self.matrix.n_columns).filter_map(|column| {
                let cell = table.cell(class * self.width() + column);
                (cell.counts[1] > 0).then_some((column as u32, cell))
            });
            real_found(class, cells, self.texts(class, &texts))
        })
    }

    fn texts(&self, class: usize, texts: &classes::ClassCounts) -> Total {
        let rows = texts.rows[class] as u64;
        let weight = match self.rows.weights {
            Weights::Real(_) => texts.weights[class],
            _ => Expansion::from_whole(rows),
        };
        Total { rows, weight }
    }

    fn of_each_class(&self, rows: &[i64], one: impl Fn(usize) -> Found) -> Vec<Found> {
        let classes = 0..self.rows.n_classes;
        classes.filter(|&class| rows[class] > 0).map(one).collect()
    }
}

/// Real sums of many cells, part by part, so that neighbours are added together.
struct Table {
    /// Occurrences: the three parts of their sums.
    occurrences: [Vec<f64>; 3],
    documents: [Vec<f64>; 3],
    counts: [Vec<u64>; 2],
}

/// Some cells of a table.
struct Slice<'a> {
    occurrences: [&'a mut [f64]; 3],
    documents: [&'a mut [f64]; 3],
    counts: [&'a mut [u64]; 2],
}

impl Table {
    fn new(size: usize) -> Self {
        let zeros = || [vec![0.0; size], vec![0.0; size], vec![0.0; size]];
        Table {
            occurrences: zeros(),
            documents: zeros(),
            counts: [vec![0; size], vec![0; size]],
        }
    }

    fn class(&mut self, cells: Range<usize>) -> Slice<'_> {
        Slice {
            occurrences: self
                .occurrences
                .each_mut()
                .map(|part| &mut part[cells.clone()]),
            documents: self
                .documents
                .each_mut()
                .map(|part| &mut part[cells.clone()]),
            counts: self.counts.each_mut().map(|part| &mut part[cells.clone()]),
        }
    }

    fn cell(&self, at: usize) -> RealCell {
        RealCell {
            counts: self.counts.each_ref().map(|part| part[at]),
            sums: [&self.occurrences, &self.documents]
                .map(|sum| Expansion::from_parts(sum.each_ref().map(|part| part[at]))),
        }
    }

    fn merge(&mut self, other: &Table) {
        for at in 0..self.counts[0].len() {
            let mut cell = self.cell(at);
            cell.merge(&other.cell(at));
            for i in 0..2 {
                self.counts[i][at] = cell.counts[i];
            }
            for (i, part) in cell.sums[0].parts().into_iter().enumerate() {
                self.occurrences[i][at] = part;
            }
            for (i, part) in cell.sums[1].parts().into_iter().enumerate() {
                self.documents[i][at] = part;
            }
        }
    }
}

/// Copies what the cells of a row count.
struct Copied<'a, 'm, T>(&'a Matrix<'m>, &'a [T], &'a mut [f64]);

impl<T: Value> Loop for Copied<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.0.threshold {
            None if !self.0.skip => {
                for (out, &x) in self.2.iter_mut().zip(self.1) {
                    *out = plain(x);
                }
            }
            _ => {
                for (out, &x) in self.2.iter_mut().zip(self.1) {
                    *out = self.0.counts(x);
                }
            }
        }
    }
}

/// Adds a row of whole counts to occurrences and documents.
struct AddWhole<'a>(&'a [f64], f64, [&'a mut [f64]; 2], &'a mut Lanes);

impl Loop for AddWhole<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddWhole(row, weight, [occurrences, documents], lanes) = self;
        let (row, _) = row.as_chunks::<LANES>();
        let (occurrences, _) = occurrences.as_chunks_mut::<LANES>();
        let (documents, _) = documents.as_chunks_mut::<LANES>();
        let mut seen = *lanes;
        for ((row, occurrences), documents) in row.iter().zip(occurrences).zip(documents) {
            seen.note(row);
            for lane in 0..LANES {
                let x = row[lane];
                occurrences[lane] += x * weight;
                documents[lane] += if x != 0.0 { weight } else { 0.0 };
            }
        }
        *lanes = seen;
    }
}

/// Adds a row of real counts.
struct AddReal<'a>(&'a [f64], f64, u64, Slice<'a>, &'a mut Lanes);

impl Loop for AddReal<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddReal(row, weight, times, slice, lanes) = self;
        let (chunks, _) = row.as_chunks::<LANES>();
        chunks.iter().for_each(|chunk| lanes.note(chunk));
        for ([hi, mid, lo], is_occurrence) in [(slice.occurrences, true), (slice.documents, false)]
        {
            let parts = hi.iter_mut().zip(mid).zip(lo);
            for (((hi, mid), lo), &x) in parts.zip(row) {
                let there = if x != 0.0 { weight } else { 0.0 };
                let more = if is_occurrence { x * weight } else { there };
                let (sum, lost) = two_sum(*hi, more);
                let (next, last) = two_sum(*mid, lost);
                (*hi, *mid) = (sum, next);
                *lo += last;
            }
        }
        let [occurrences, documents] = slice.counts;
        for ((occurrences, documents), &x) in occurrences.iter_mut().zip(documents).zip(row) {
            let there = u64::from(x != 0.0) * times;
            *occurrences += tokens(x) * there;
            *documents += there;
        }
    }
}
