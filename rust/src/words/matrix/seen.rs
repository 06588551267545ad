//! What the cells of a matrix are: whether all can be counted, whether all are whole, and the largest.

use super::task::{JOB, Task};
use super::{Layout, finite_or_nan};
use crate::simd::wide;
use crate::threads;

/// Cells of a row that are added together; rows are filled up with zeros.
pub const LANES: usize = 8;

pub type Eight = [f64; LANES];
const NONE: Eight = [0.0; LANES];
/// Cells that are read together.
const PIECE: usize = 1 << 12;

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

/// What is left of a row, filled up.
#[inline(always)]
pub fn filled(rest: &[f64]) -> Eight {
    let mut cells = NONE;
    cells[..rest.len()].copy_from_slice(rest);
    cells
}

/// What the cells of rows are, eight at a time.
#[derive(Clone, Copy)]
pub struct Lanes {
    lowest: Eight,
    largest: Eight,
    /// 1 once a number is not whole.
    parted: Eight,
    sum: Eight,
}

impl Lanes {
    pub const NOTHING: Lanes = Lanes { lowest: NONE, largest: NONE, parted: NONE, sum: NONE };

    #[inline(always)]
    pub fn note(&mut self, row: &Eight) {
        for (lane, &x) in row.iter().enumerate() {
            let x = finite_or_nan(x);
            self.lowest[lane] = if x >= 0.0 { self.lowest[lane] } else { -1.0 };
            self.parted[lane] = if x == x.trunc() { self.parted[lane] } else { 1.0 };
            self.largest[lane] = if x > self.largest[lane] { x } else { self.largest[lane] };
            self.sum[lane] += x;
        }
    }

    fn note_all(&mut self, cells: &[f64]) {
        wide!({
            let (mut lanes, (chunks, rest)) = (*self, cells.as_chunks::<LANES>());
            for chunk in chunks {
                lanes.note(chunk);
            }
            lanes.note(&filled(rest));
            *self = lanes;
        });
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
        let counted = |row: usize| self.rows.classes[row] >= 0;
        let found = threads::map(self.threads, pieces, |i| {
            let rows = (i * length).min(matrix.len())..matrix.len().min((i + 1) * length);
            let (mut lanes, mut room) = (Lanes::NOTHING, vec![]);
            match &matrix.layout {
                Layout::Sparse { offsets, .. } if rows.clone().all(counted) => {
                    let cells = offsets[rows.start] as usize..offsets[rows.end] as usize;
                    for first in cells.clone().step_by(PIECE) {
                        let piece = first..cells.end.min(first + PIECE);
                        lanes.note_all(matrix.values(piece, &mut room));
                    }
                }
                _ => {
                    for row in rows.filter(|&row| counted(row)) {
                        lanes.note_all(matrix.row(row, &mut room).values);
                    }
                }
            }
            lanes.seen()
        });
        found.into_iter().fold(Seen::NOTHING, Seen::and)
    }
}
