//! What a column has in a class: whole, narrow or wide, or parts.

use crate::integers::{PARTS, parts};
use crate::words::store::{Count, Lane, Unit, times};

/// What a column has in one class so far. A cell that counts nothing adds nothing.
pub trait Adding: Copy + Default + Send {
    const UNIT: Unit;
    /// Weights are rows, or parts of a row.
    const WEIGHTS: Unit = Self::UNIT;

    fn add(&mut self, x: f64, weight: u128);
    fn merge(&mut self, other: &Self);
    fn is_used(&self) -> bool;
    fn lane(cells: impl Iterator<Item = Self>) -> Lane;
}

/// Occurrences in the upper half, documents in the lower.
#[derive(Clone, Copy, Default)]
pub struct NarrowCell(u64);

impl Adding for NarrowCell {
    const UNIT: Unit = Unit::One;

    #[inline(always)]
    fn add(&mut self, x: f64, _: u128) {
        self.0 += (u64::from(x as u32) << 32) + u64::from(x != 0.0);
    }

    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
    }

    fn is_used(&self) -> bool {
        self.0 != 0
    }

    fn lane(cells: impl Iterator<Item = Self>) -> Lane {
        let both = |NarrowCell(cell)| [(cell >> 32) as u32, cell as u32];
        Lane::Narrow(cells.map(both).collect())
    }
}

#[derive(Clone, Copy, Default)]
pub struct WideCell([u64; 2]);

impl Adding for WideCell {
    const UNIT: Unit = Unit::One;

    #[inline(always)]
    fn add(&mut self, x: f64, weight: u128) {
        self.0[0] += x as u64 * weight as u64;
        self.0[1] += u64::from(x != 0.0) * weight as u64;
    }

    fn merge(&mut self, other: &Self) {
        self.0[0] += other.0[0];
        self.0[1] += other.0[1];
    }

    fn is_used(&self) -> bool {
        self.0[1] != 0
    }

    fn lane(cells: impl Iterator<Item = Self>) -> Lane {
        Lane::Wide(cells.map(|WideCell(cell)| cell).collect())
    }
}

/// Numbers of 10^-18: either all values are whole, or all weights.
#[derive(Clone, Copy, Default)]
pub struct HalfCell<const WHOLE_VALUES: bool> {
    occurrences: u128,
    /// What the rows weigh.
    documents: u128,
}

impl<const WHOLE_VALUES: bool> Adding for HalfCell<WHOLE_VALUES> {
    const UNIT: Unit = Unit::Part;
    const WEIGHTS: Unit = if WHOLE_VALUES { Unit::Part } else { Unit::One };

    #[inline(always)]
    fn add(&mut self, x: f64, weight: u128) {
        if x != 0.0 {
            let x = match WHOLE_VALUES {
                true => u128::from(x as u64),
                false => parts(x).unwrap_or(0),
            };
            self.occurrences += x * weight;
            self.documents += if x != 0 { weight } else { 0 };
        }
    }

    fn merge(&mut self, other: &Self) {
        self.occurrences += other.occurrences;
        self.documents += other.documents;
    }

    fn is_used(&self) -> bool {
        self.documents != 0
    }

    fn lane(cells: impl Iterator<Item = Self>) -> Lane {
        let one = u128::from(PARTS);
        let row = if WHOLE_VALUES { one } else { one * one };
        let both = |cell: Self| [times(cell.occurrences, one), times(cell.documents, row)];
        Lane::Parts(cells.map(both).collect())
    }
}

/// Neither all values are whole, nor all weights.
#[derive(Clone, Copy, Default)]
pub struct PartsCell {
    occurrences: Count,
    documents: u128,
}

impl Adding for PartsCell {
    const UNIT: Unit = Unit::Part;

    #[inline(always)]
    fn add(&mut self, x: f64, weight: u128) {
        if x != 0.0 {
            let x = parts(x).unwrap_or(0);
            self.occurrences.merge(&times(x, weight));
            self.documents += if x != 0 { weight } else { 0 };
        }
    }

    fn merge(&mut self, other: &Self) {
        self.occurrences.merge(&other.occurrences);
        self.documents += other.documents;
    }

    fn is_used(&self) -> bool {
        self.documents != 0
    }

    fn lane(cells: impl Iterator<Item = Self>) -> Lane {
        let both = |cell: Self| [cell.occurrences, times(cell.documents, u128::from(PARTS))];
        Lane::Parts(cells.map(both).collect())
    }
}
