//! The sums of rows of one class, word by word, before they are added to the store.

use super::store::{CellCounts, Count, Unit, multiply_parts};
use crate::integers::{PARTS, WHOLE, light_weight_to_parts, weight_to_parts};

/// The occurrences and documents of a word in one class so far. A row that has the word 0 times adds nothing.
pub trait Accumulator: Copy + Default + Send {
    /// The unit of the weights that cells are given: rows, or parts of a row.
    const WEIGHTS: Unit;
    /// The unit of the counts that cells become.
    const UNIT: Unit;

    /// Adds a row that has the word `times` times; `weight` is the row's, in [`Accumulator::WEIGHTS`].
    fn add(&mut self, times: f64, weight: u128);
    /// The cell of one row that has the word `times` times; `weight` is the row's, in [`Accumulator::WEIGHTS`].
    #[inline(always)]
    fn of(times: f64, weight: u128) -> Self {
        let mut cell = Self::default();
        cell.add(times, weight);
        cell
    }
    /// Adds the occurrences and documents of another cell.
    fn merge(&mut self, other: &Self);
    /// Whether a row was added.
    fn is_used(&self) -> bool;
    /// The occurrences and documents of cells, in their order and in [`Accumulator::UNIT`].
    fn counts(cells: impl Iterator<Item = Self>) -> CellCounts;
}

/// Whole numbers that add up to less than 2^32, in one number: occurrences in the upper half, documents in the lower.
#[derive(Clone, Copy, Default)]
pub struct NarrowCell(u64);

impl NarrowCell {
    /// Adds a token of the text with this number, from 1 to 2^16 - 1. Until `forget_last_text` is called, the number that a
    /// cell is has the word's occurrences in the upper 32 bits, its documents in the next 16, and the number of the last text
    /// that has the word in the lowest 16.
    #[inline(always)]
    pub fn add_token(&mut self, text: u64) {
        let last_text = self.0 & 0xffff;
        // Nobody can predict which words occur in a text for the first time: no branches.
        let document = u64::from(last_text != text) << 16; // 1 more document if the text is new
        self.0 = (self.0 ^ last_text | text) + (1 << 32) + document;
    }

    /// Ends the adding of tokens: moves the documents to the lower half, over the last text.
    #[inline(always)]
    pub fn forget_last_text(&mut self) {
        self.0 = (self.0 >> 32 << 32) + (self.0 >> 16 & 0xffff);
    }
}

impl Accumulator for NarrowCell {
    const WEIGHTS: Unit = Unit::One;
    const UNIT: Unit = Unit::One;

    /// Adds a row of this weight, in rows, that has the word `times` times, a whole number: the product to the occurrences
    /// (upper half of the cell's number), and the weight to the documents (lower half) unless `times` is 0.
    #[inline(always)]
    fn add(&mut self, times: f64, weight: u128) {
        let weight = weight as u64;
        // WHOLE is so large a double that the last bits of the sum are those of the whole number added to it.
        let bits = (times * weight as f64 + WHOLE).to_bits();
        // The shift drops the upper half of the bits; what is left are the occurrences.
        self.0 += (bits << 32) + if times != 0.0 { weight } else { 0 };
    }

    /// Adds another cell of the same word: its occurrences (upper half of the number) and documents (lower half).
    #[inline(always)]
    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
    }

    /// Whether a row was added.
    fn is_used(&self) -> bool {
        self.0 != 0
    }

    /// The occurrences and documents of each cell, in ones.
    fn counts(cells: impl Iterator<Item = Self>) -> CellCounts {
        let occurrences_and_documents = |NarrowCell(cell)| [(cell >> 32) as u32, cell as u32];
        CellCounts::Narrow(cells.map(occurrences_and_documents).collect())
    }
}

/// Whole numbers of times in rows of fractional weights.
#[derive(Clone, Copy, Default)]
pub struct WeightedCell {
    /// In parts of a row.
    occurrences: u128,
    /// In parts of a row.
    documents: u128,
}

impl Accumulator for WeightedCell {
    const WEIGHTS: Unit = Unit::Part;
    const UNIT: Unit = Unit::Part;

    /// Adds a row of this weight, in parts of a row, that has the word `times` times, a whole number, to the occurrences and
    /// documents, in parts of a row.
    #[inline(always)]
    fn add(&mut self, times: f64, weight: u128) {
        if times != 0.0 {
            self.occurrences += u128::from(times as u64) * weight;
            self.documents += weight;
        }
    }

    /// Adds the occurrences and documents, both in parts of a row, of another cell of the same word.
    #[inline(always)]
    fn merge(&mut self, other: &Self) {
        self.occurrences += other.occurrences;
        self.documents += other.documents;
    }

    /// Whether a row was added.
    fn is_used(&self) -> bool {
        self.documents != 0
    }

    /// The occurrences and documents of each cell, in 10^-36; the cells have occurrences and documents in parts of a row,
    /// 10^-18.
    fn counts(cells: impl Iterator<Item = Self>) -> CellCounts {
        // From 10^-18 to 10^-36: a number of times is whole, and one token has 10^18 parts.
        let token = u128::from(PARTS);
        let occurrences_and_documents = |cell: Self| {
            [cell.occurrences, cell.documents].map(|count| multiply_parts(count, token))
        };
        CellCounts::Parts(cells.map(occurrences_and_documents).collect())
    }
}

/// Fractional numbers of times in rows that weigh one, few and light enough for 96 bits of occurrences and 32 of documents.
/// Normalised counts of 20 Newsgroups take 67 ms, and 107 ms with [`PartsCell`].
#[derive(Clone, Copy, Default)]
pub struct LightCell {
    /// The lower 64 bits of the occurrences in 10^-18.
    low: u64,
    /// The upper 32 bits of the occurrences in 10^-18.
    high: u32,
    /// In rows.
    documents: u32,
}

impl LightCell {
    /// Adds occurrences in 10^-18: `low` are the lower 64 bits of their number, `high` the upper 32.
    #[inline(always)]
    fn merge_parts(&mut self, low: u64, high: u32) {
        let (sum, overflows) = self.low.overflowing_add(low);
        self.low = sum;
        self.high += high + u32::from(overflows);
    }
}

impl Accumulator for LightCell {
    const WEIGHTS: Unit = Unit::One;
    const UNIT: Unit = Unit::Part;

    /// Adds a row of weight 1 that has the word `times` times, fractional or not: occurrences in 10^-18, documents in rows.
    #[inline(always)]
    fn add(&mut self, times: f64, _: u128) {
        // `parts` are the times in 10^-18: 64 bits if they are few, else up to 96.
        if let Some(parts) = light_weight_to_parts(times) {
            self.merge_parts(parts, 0);
            self.documents += u32::from(parts != 0);
        } else {
            let parts = weight_to_parts(times).unwrap_or(0);
            self.merge_parts(parts as u64, (parts >> 64) as u32);
            self.documents += u32::from(parts != 0);
        }
    }

    /// Adds another cell of the same word: its occurrences in 10^-18, 64 lower and 32 upper bits, and its documents in rows.
    #[inline(always)]
    fn merge(&mut self, other: &Self) {
        self.merge_parts(other.low, other.high);
        self.documents += other.documents;
    }

    /// Whether a row was added.
    fn is_used(&self) -> bool {
        self.documents != 0
    }

    /// The occurrences and documents of each cell, in 10^-36; the cells have occurrences in 10^-18, the lower 64 bits and the
    /// upper 32, and documents in rows.
    fn counts(cells: impl Iterator<Item = Self>) -> CellCounts {
        let one = u128::from(PARTS); // in 10^-18
        let occurrences_and_documents = |cell: Self| {
            let occurrences = u128::from(cell.high) << 64 | u128::from(cell.low);
            [
                multiply_parts(occurrences, one),
                multiply_parts(u128::from(cell.documents), one * one),
            ]
        };
        CellCounts::Parts(cells.map(occurrences_and_documents).collect())
    }
}

/// Any numbers of times, in rows of any weights.
#[derive(Clone, Copy, Default)]
pub struct PartsCell {
    /// In parts of 10^-36.
    occurrences: Count,
    /// In parts of a row.
    documents: u128,
}

impl Accumulator for PartsCell {
    const WEIGHTS: Unit = Unit::Part;
    const UNIT: Unit = Unit::Part;

    /// Adds a row of this weight, in parts of a row, that has the word `times` times, fractional or not: occurrences in 10^-36,
    /// documents in parts of a row.
    #[inline(always)]
    fn add(&mut self, times: f64, weight: u128) {
        if times != 0.0 {
            // The times in 10^-18.
            let parts = light_weight_to_parts(times)
                .map_or_else(|| weight_to_parts(times).unwrap_or(0), u128::from);
            self.occurrences.merge(&multiply_parts(parts, weight));
            self.documents += if parts != 0 { weight } else { 0 };
        }
    }

    /// Adds another cell of the same word: its occurrences in 10^-36, and its documents in parts of a row.
    #[inline(always)]
    fn merge(&mut self, other: &Self) {
        self.occurrences.merge(&other.occurrences);
        self.documents += other.documents;
    }

    /// Whether a row was added.
    fn is_used(&self) -> bool {
        self.documents != 0
    }

    /// The occurrences and documents of each cell, in 10^-36; the cells have occurrences in 10^-36, and documents in parts of a
    /// row, 10^-18.
    fn counts(cells: impl Iterator<Item = Self>) -> CellCounts {
        let one = u128::from(PARTS); // in 10^-18
        let occurrences_and_documents =
            |cell: Self| [cell.occurrences, multiply_parts(cell.documents, one)];
        CellCounts::Parts(cells.map(occurrences_and_documents).collect())
    }
}
