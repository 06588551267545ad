//! What the cells of a matrix are: whether all can be counted, whether all are whole, and the largest.

use super::task::{JOB, Task};
use super::{Layout, Matrix, plain};
use crate::columns::{Value, each};
use crate::simd::wide;
use crate::threads;

/// Cells of a row that are added together; rows are filled up with zeros.
pub const LANES: usize = 8;

const NONE: [f64; LANES] = [0.0; LANES];

/// What the cells of a matrix are.
#[derive(Clone, Copy)]
pub struct Seen {
    /// None is refused, and none is negative.
    pub fine: bool,
    pub whole: bool,
    pub largest: f64,
    /// Of all cells, about.
    pub sum: f64,
}

impl Seen {
    pub const NOTHING: Seen = Seen { fine: true, whole: true, largest: 0.0, sum: 0.0 };

    pub fn and(self, other: Seen) -> Seen {
        Seen {
            fine: self.fine & other.fine,
            whole: self.whole & other.whole,
            largest: self.largest.max(other.largest),
            sum: self.sum + other.sum,
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
    sum: [f64; LANES],
}

impl Lanes {
    pub const NOTHING: Lanes = Lanes { lowest: NONE, largest: NONE, parted: NONE, sum: NONE };

    #[inline(always)]
    pub fn note(&mut self, row: &[f64; LANES]) {
        for (lane, &x) in row.iter().enumerate() {
            self.lowest[lane] = if x >= 0.0 { self.lowest[lane] } else { -1.0 };
            self.parted[lane] = if x == x.trunc() { self.parted[lane] } else { 1.0 };
            self.largest[lane] = if x > self.largest[lane] { x } else { self.largest[lane] };
            self.sum[lane] += x;
        }
    }

    pub fn seen(&self) -> Seen {
        Seen {
            fine: self.lowest.iter().all(|&x| x == 0.0),
            whole: self.parted.iter().all(|&x| x == 0.0),
            largest: self.largest.into_iter().fold(0.0, f64::max),
            sum: self.sum.iter().sum(),
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
                        None => look(matrix, &cells.map(|at| view[[at, 0]]).collect::<Vec<_>>()),
                    })
                }
                Layout::Dense(block) => each!(block, view => {
                    let counted = rows.filter(|&row| self.rows.classes[row] >= 0);
                    counted.fold(Seen::NOTHING, |seen, row| match view.row(row).to_slice() {
                        Some(cells) => seen.and(look(matrix, cells)),
                        None => seen.and(look(matrix, &view.row(row).to_vec())),
                    })
                }),
            }
        });
        found.into_iter().fold(Seen::NOTHING, Seen::and)
    }
}

#[inline(always)]
fn look<T: Value>(matrix: &Matrix, cells: &[T]) -> Seen {
    wide!(match matrix.is_plain() {
        true => look_at(cells, plain),
        false => look_at(cells, |x| matrix.counts(x)),
    })
}

#[inline(always)]
fn look_at<T: Value>(cells: &[T], counts: impl Fn(T) -> f64) -> Seen {
    let (chunks, rest) = cells.as_chunks::<LANES>();
    let (mut lanes, mut last) = (Lanes::NOTHING, NONE);
    for chunk in chunks {
        lanes.note(&chunk.map(&counts));
    }
    rest.iter().zip(&mut last).for_each(|(&x, last)| *last = counts(x));
    lanes.note(&last);
    lanes.seen()
}
