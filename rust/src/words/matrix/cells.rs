//! What a column has in a class: whole, narrow or wide, or parts.

use crate::integers::{PARTS, WHOLE, light_parts, parts};
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
        // The last bits of such a sum are those of a small whole number.
        let bits = (x + WHOLE).to_bits();
        self.0 += (bits << 32) + u64::from(x != 0.0);
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

/// The same of rows that weigh one, few and light enough for 96 bits of occurrences and 32 of documents.
#[derive(Clone, Copy, Default)]
pub struct LightCell {
    low: u64,
    high: u32,
    documents: u32,
}

impl LightCell {
    #[inline(always)]
    fn merge_parts(&mut self, low: u64, high: u32) {
        let (sum, over) = self.low.overflowing_add(low);
        self.low = sum;
        self.high += high + u32::from(over);
    }
}

impl Adding for LightCell {
    const UNIT: Unit = Unit::Part;
    const WEIGHTS: Unit = Unit::One;

    #[inline(always)]
    fn add(&mut self, x: f64, _: u128) {
        if let Some(x) = light_parts(x) {
            self.merge_parts(x, 0);
            self.documents += u32::from(x != 0);
        } else {
            let x = parts(x).unwrap_or(0);
            self.merge_parts(x as u64, (x >> 64) as u32);
            self.documents += u32::from(x != 0);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.merge_parts(other.low, other.high);
        self.documents += other.documents;
    }

    fn is_used(&self) -> bool {
        self.documents != 0
    }

    fn lane(cells: impl Iterator<Item = Self>) -> Lane {
        let one = u128::from(PARTS);
        let both = |cell: Self| {
            let occurrences = u128::from(cell.high) << 64 | u128::from(cell.low);
            [times(occurrences, one), times(u128::from(cell.documents), one * one)]
        };
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
