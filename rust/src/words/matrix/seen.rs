//! What the cells of a matrix are: whether all can be counted, whether all are whole, and the largest.

use super::task::{JOB, Task};
use super::{Layout, Matrix};
use crate::columns::{Value, each};
use crate::simd::wide;
use crate::threads;

/// Cells of a row that are added together; rows are filled up with zeros.
pub const LANES: usize = 8;

/// What the cells of a matrix are.
#[derive(Clone, Copy)]
pub struct Seen {
    /// None is refused, and none is negative.
    pub fine: bool,
    pub whole: bool,
    pub largest: f64,
}

impl Seen {
    pub const NOTHING: Seen = Seen { fine: true, whole: true, largest: 0.0 };

    #[inline(always)]
    pub fn note(&mut self, x: f64) {
        self.fine &= x >= 0.0;
        self.whole &= x == x.trunc();
        self.largest = if x > self.largest { x } else { self.largest };
    }

    pub fn and(self, other: Seen) -> Seen {
        Seen {
            fine: self.fine & other.fine,
            whole: self.whole & other.whole,
            largest: self.largest.max(other.largest),
        }
    }
}

/// What the cells of rows are, eight at a time.
#[derive(Clone, Copy)]
pub struct Lanes {
    lowest: [f64; LANES],
    largest: [f64; LANES],
    /// 1 once a number is not whole.
    parted: [f64; LANES],
}

impl Lanes {
    pub const NOTHING: Lanes =
        Lanes { lowest: [0.0; LANES], largest: [0.0; LANES], parted: [0.0; LANES] };

    #[inline(always)]
    pub fn note(&mut self, row: &[f64; LANES]) {
        for (lane, &x) in row.iter().enumerate() {
            self.lowest[lane] = if x >= 0.0 { self.lowest[lane] } else { -1.0 };
            self.parted[lane] = if x == x.trunc() { self.parted[lane] } else { 1.0 };
            self.largest[lane] = if x > self.largest[lane] { x } else { self.largest[lane] };
        }
    }

    pub fn seen(&self) -> Seen {
        Seen {
            fine: self.lowest.iter().all(|&x| x == 0.0),
            whole: self.parted.iter().all(|&x| x == 0.0),
            largest: self.largest.into_iter().fold(0.0, f64::max),
        }
    }
}

impl Task<'_, '_> {
    /// What the cells are.
    pub fn look(&self) -> Seen {
        let matrix = self.matrix;
        let pieces = matrix.cells().div_ceil(JOB).clamp(1, matrix.len().max(1));
        let length = matrix.len().div_ceil(pieces).max(1);
        let found = threads::map(self.threads, pieces, |i| {
            let rows = (i * length).min(matrix.len())..matrix.len().min((i + 1) * length);
            match &matrix.layout {
                Layout::Sparse { offsets, values, .. } => {
                    let cells = offsets[rows.start] as usize..offsets[rows.end] as usize;
                    each!(values, view => match view.column(0).to_slice() {
                        Some(values) => look(matrix, &values[cells]),
                        None => {
                            let mut seen = Seen::NOTHING;
                            cells.for_each(|at| seen.note(matrix.counts(view[[at, 0]])));
                            seen
                        }
                    })
                }
                Layout::Dense(block) => each!(block, view => {
                    let mut seen = Seen::NOTHING;
                    for row in rows.filter(|&row| self.rows.classes[row] >= 0) {
                        match view.row(row).to_slice() {
                            Some(cells) => seen = seen.and(look(matrix, cells)),
                            None => view.row(row).iter().for_each(|&x| seen.note(matrix.counts(x))),
                        }
                    }
                    seen
                }),
            }
        });
        found.into_iter().fold(Seen::NOTHING, Seen::and)
    }
}

#[inline(always)]
fn look<T: Value>(matrix: &Matrix, cells: &[T]) -> Seen {
    wide!({
        let mut seen = Seen::NOTHING;
        for &x in cells {
            seen.note(matrix.counts(x));
        }
        seen
    })
}
