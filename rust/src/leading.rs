//! Counts numbers by their leading bits: bins for every magnitude that need no scale; dropping one more bit joins pairs of them.
//!
//! The key of a number is its bits, transformed so that keys are in the order of numbers; a shift leaves the leading bits. A
//! column is shifted by the fewest bits that leave no more keys than allowed, so that the shift depends on the values alone and
//! not on their order.

use crate::classes::{Rows, Weights, counted};
use crate::columns::{Columns, MOST_LISTED, RowSelection};
use crate::error::{Error, Fault, demand};
use crate::hash_table::{Key, Numbering, SEED};
use crate::integers::Integers;
use crate::simd::wide;
use crate::threads;
use std::ops::{AddAssign, Range};

/// The largest limit of keys per column that a caller may set: slots are numbered with 16 bits.
pub const MOST: usize = 1 << 14;
/// Columns that are counted together, at most. 100,000 rows of 20 columns took 77 ms with 2 classes and 82 with 20. With 256
/// columns, 2^24 cells, blocks of 2^13 rows, 15 bits and twice the slots they took 59 and 103 ms.
const TOGETHER: usize = 32;
/// Cells, keys × classes, of columns that are counted together, at most, so that the cache of a core holds them: of ten folds of 20
/// columns, counting takes two thirds of the time.
const CELLS: usize = 1 << 18;
/// Rows of a block, which the columns of a group are read for together.
const BLOCK: usize = 1 << 10;
/// Rows whose values are copied at a time. See [`MOST_LISTED`].
pub(crate) const READ: usize = MOST_LISTED;

/// A whole number for each number that is not NaN, in the same order; 0 and -0 have the same.
#[inline(always)]
pub fn key(x: f64) -> i64 {
    let bits = (x + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The rows of each key and class, `[key][class]`; keys are in order, and each has at least one row.
#[derive(Debug, PartialEq)]
pub struct Counted {
    /// Bits shifted by `shift`.
    pub keys: Vec<i64>,
    /// The weight of the rows, `[key][class]`.
    pub cells: Integers,
    /// How many bits of keys were dropped.
    pub shift: u32,
}

/// Counts the leading bits of each column, `[column]`. Of each key, `shifts[column]` bits are dropped, and as few more as leave at
/// most `most` keys. Infinite values are an error, missing ones and rows of no class are not counted.
pub fn count_leading(
    columns: &Columns,
    shifts: &[i64],
    most: usize,
    rows: &Rows,
    threads: usize,
) -> Result<Vec<Counted>, Error> {
    let (n_rows, features) = (rows.len(), columns.features());
    columns.demand_rows(n_rows)?;
    demand(shifts.len() == features, "shifts must have one entry per feature")?;
    demand(shifts.iter().all(|shift| (0..64).contains(shift)), "shifts must be from 0 to 63")?;
    demand((2..=MOST).contains(&most), "most must be from 2 to 2**14")?;
    let threads = threads::worth(threads, n_rows.saturating_mul(features));
    // Neighbours often share cache lines, so that a thread reads some columns together, block by block.
    let together = (CELLS / (most * rows.n_classes.max(1))).clamp(1, TOGETHER);
    let group = features.div_ceil(threads).clamp(1, together);
    let groups = threads::try_ranges(threads, features, group, |some| match rows.weights {
        Weights::Ones if u32::try_from(n_rows).is_ok() => {
            count(columns, some, shifts, most, rows, |_| 1_u32)
        }
        Weights::Ones => count(columns, some, shifts, most, rows, |_| 1_i64),
        Weights::Whole(weights) => count(columns, some, shifts, most, rows, |row| weights[row]),
        Weights::Parts(_) => {
            count(columns, some, shifts, most, rows, |row| rows.weight(row) as i128)
        }
    })?;
    Ok(groups.into_iter().flatten().collect())
}

/// [`count_leading`] for a range of columns, `features`, with the weight of each row as a number of type `N`.
fn count<N: Copy + Default + AddAssign + Into<i128>>(
    columns: &Columns,
    features: Range<usize>,
    shifts: &[i64],
    most: usize,
    rows: &Rows,
    weight: impl Fn(usize) -> N,
) -> Result<Vec<Counted>, Error> {
    let n_rows = rows.len();
    let mut counts_of_columns: Vec<KeyCounts<N>> = shifts[features.clone()]
        .iter()
        .map(|&shift| KeyCounts::new(shift as u32, most, rows.n_classes))
        .collect();
    // The keys of a block, `[column][row]`.
    let mut tile = vec![[NONE; BLOCK]; features.len()];
    for from in (0..n_rows).step_by(BLOCK) {
        let classes = &rows.classes[from..n_rows.min(from + BLOCK)];
        for (i, some_classes) in classes.chunks(READ).enumerate() {
            let at = i * READ..i * READ + some_classes.len();
            for (feature, block, column) in columns.columns_of(features.clone()) {
                let own = feature - features.start;
                let mut room = None;
                let chosen = RowSelection::Range(from + at.start..from + at.end);
                let values = chosen.contiguous_reals(block, column, &mut room);
                if read_keys(
                    values,
                    some_classes,
                    counts_of_columns[own].shift,
                    &mut tile[own][at.clone()],
                ) {
                    let infinite = |i: &usize| some_classes[*i] >= 0 && values[*i].is_infinite();
                    let wrong = (0..some_classes.len()).find(infinite).unwrap_or(0);
                    return Err(columns.bad_value(
                        Fault::Infinite,
                        from + at.start + wrong,
                        feature,
                    ));
                }
            }
        }
        for (counts, keys) in counts_of_columns.iter_mut().zip(&mut tile) {
            counts.add(&mut keys[..classes.len()], classes, |at| weight(from + at));
        }
    }
    counts_of_columns.into_iter().map(|counts| counts.counted(rows)).collect()
}

/// The key of values that are not counted. No number has this key.
const NONE: i64 = i64::MIN;

/// Writes the keys of values, without `shift` bits, to `keys`; [`NONE`] for values and rows that are not counted. Returns whether a
/// row with a class has an infinite value.
fn read_keys(values: &[f64], classes: &[i32], shift: u32, keys: &mut [i64]) -> bool {
    wide!({
        let mut infinite = false;
        for ((out, &x), &class) in keys.iter_mut().zip(values).zip(classes) {
            infinite |= x.is_infinite() & (class >= 0);
            *out = if x.is_finite() & (class >= 0) { key(x) >> shift } else { NONE };
        }
        infinite
    })
}

/// The keys counted so far. Each has a slot with a cell for each class; the first slot is that of [`NONE`].
struct KeyCounts<N> {
    /// The key of each slot.
    keys: Vec<i64>,
    /// The weight of the rows, `[slot][class]`.
    cells: Vec<N>,
    n_classes: usize,
    /// How many bits of keys are dropped so far.
    shift: u32,
    /// How many keys may be left in the end.
    most: usize,
    /// Finds the slot of every key except the first.
    numbering: Numbering,
    /// A small cache of slots, in which neighbouring keys are side by side: the slot of the last key looked up at each place.
    near: Vec<u16>,
}

/// Bits of a place in [`KeyCounts::near`], which has as many for either sign: 16 kB, so that it stays in the first cache.
const NEAR: u32 = 12;

impl<N: Copy + Default + AddAssign + Into<i128>> KeyCounts<N> {
    /// No keys yet.
    fn new(shift: u32, most: usize, n_classes: usize) -> Self {
        let n_classes = n_classes.max(1); // rows of no class have a cell too
        KeyCounts {
            keys: vec![NONE],
            cells: vec![N::default(); n_classes],
            n_classes,
            shift,
            most,
            numbering: Numbering::with_room(2 * most),
            // Slots for either sign.
            near: vec![0; 2 << NEAR],
        }
    }

    /// Adds a block of rows by their keys, which have the shift so far; `weight` is called with the place in the block. If keys are
    /// merged on the way, the remaining `keys` are shifted too.
    fn add(&mut self, keys: &mut [i64], classes: &[i32], weight: impl Fn(usize) -> N) {
        let mut from = 0;
        while let Some(next) = self.add_some(from, keys, classes, &weight) {
            let old_shift = self.shift;
            self.merge();
            let more_shift = self.shift - old_shift;
            keys[next..].iter_mut().filter(|key| **key != NONE).for_each(|key| *key >>= more_shift);
            from = next;
        }
    }

    /// Adds rows of a block, those from `from` on, until there are too many keys. Returns the first row that is left then; none if
    /// all were added.
    #[inline(always)]
    fn add_some(
        &mut self,
        from: usize,
        keys: &[i64],
        classes: &[i32],
        weight: impl Fn(usize) -> N,
    ) -> Option<usize> {
        // Whole keys, of values that repeat, are anywhere and are hashed; shifted keys are side by side.
        let spread = if self.shift == 0 { SEED } else { 1 << (64 - NEAR) };
        for (at, (&key, &class)) in keys.iter().zip(classes).enumerate().skip(from) {
            // 0, or -1 for a negative key.
            let sign = key >> 63;
            let place = ((key ^ sign) as u64).wrapping_mul(spread) >> (64 - NEAR);
            let place = place as usize | (sign & (1 << NEAR)) as usize;
            let mut slot = self.near[place] as usize;
            if self.keys[slot] != key {
                slot = self.slot(key);
                self.near[place] = slot as u16;
            }
            self.cells[slot * self.n_classes + class.max(0) as usize] += weight(at);
            if slot > self.most + self.most / 4 {
                return Some(at + 1);
            }
        }
        None
    }

    /// The slot of a key, which is added with cells of 0 if it is new.
    fn slot(&mut self, key: i64) -> usize {
        if key == NONE {
            return 0;
        }
        let slot = 1 + self.numbering.number((key as u64).hash(), |i| self.keys[i + 1] == key);
        if slot == self.keys.len() {
            self.keys.push(key);
            self.cells.resize(self.keys.len() * self.n_classes, N::default());
        }
        slot
    }

    /// Drops bits until at most `most` keys are left, and adds up the cells of keys that become one.
    #[cold]
    fn merge(&mut self) {
        let mut sorted = self.keys[1..].to_vec();
        sorted.sort_unstable();
        // Two neighbours become one at the shift that drops the highest bit in which they differ.
        let mut joined_at = [0; 65];
        for pair in sorted.windows(2) {
            joined_at[64 - (pair[0] ^ pair[1]).leading_zeros() as usize] += 1;
        }
        let (mut more_shift, mut keys_left) = (0, sorted.len());
        while keys_left > self.most && more_shift < 63 {
            more_shift += 1;
            keys_left -= joined_at[more_shift];
        }
        self.shift += more_shift as u32;
        self.numbering.clear(2 * self.most);
        self.near.fill(0);
        let keys = std::mem::replace(&mut self.keys, vec![NONE]);
        let cells = std::mem::replace(&mut self.cells, vec![N::default(); self.n_classes]);
        for (key, old) in keys.iter().zip(cells.chunks_exact(self.n_classes)).skip(1) {
            let from = self.slot(key >> more_shift) * self.n_classes;
            let new = &mut self.cells[from..from + self.n_classes];
            new.iter_mut().zip(old).for_each(|(new, &old)| *new += old);
        }
    }

    /// The counts in the order of their keys.
    fn counted(mut self, rows: &Rows) -> Result<Counted, Error> {
        if self.keys.len() - 1 > self.most {
            self.merge();
        }
        let mut order: Vec<usize> = (1..self.keys.len()).collect();
        order.sort_unstable_by_key(|&slot| self.keys[slot]);
        let keys = order.iter().map(|&slot| self.keys[slot]).collect();
        let of = |&slot: &usize| &self.cells[slot * self.n_classes..(slot + 1) * self.n_classes];
        let cells: Vec<i128> = order.iter().flat_map(of).map(|&n| n.into()).collect();
        let cells = counted(&cells, vec![order.len(), rows.n_classes], rows.digits())?;
        Ok(Counted { keys, cells, shift: self.shift })
    }
}

/// The cell of each number, `[row][column]`: how many of its column's cuts (`cuts[column]`, in order) are not above it. A missing
/// value has the number of cuts plus 1; an infinite one is an error.
pub fn steps(columns: &Columns, cuts: &[&[f64]], threads: usize) -> Result<Vec<u16>, Error> {
    let (n_rows, features) = (columns.rows().unwrap_or(0), columns.features());
    demand(cuts.len() == features, "cuts must have one list per feature")?;
    let finders =
        cuts.iter().map(|cuts| Finder::new(cuts, n_rows)).collect::<Result<Vec<_>, _>>()?;
    let mut codes = vec![0; n_rows * features];
    let threads = threads::worth(threads, codes.len());
    threads::try_pieces(threads, &mut codes, BLOCK * features, |i, out| {
        for (some, out) in out.chunks_mut(READ * features).enumerate() {
            let from = i * BLOCK + some * READ;
            let rows = from..from + out.len() / features;
            for (feature, block, column) in columns.columns_of(0..features) {
                let mut room = None;
                let chosen = RowSelection::Range(rows.clone());
                let values = chosen.contiguous_reals(block, column, &mut room);
                let mut cells = [0; READ];
                let missing = cuts[feature].len() as u32 + 1;
                let infinite = finders[feature].find(values, 0, missing, &mut cells[..rows.len()]);
                if let Some(at) = infinite {
                    return Err(columns.bad_value(Fault::Infinite, from + at, feature));
                }
                let out = out[feature..].iter_mut().step_by(features);
                out.zip(cells).for_each(|(out, cell)| *out = cell as u16);
            }
        }
        Ok(())
    })?;
    Ok(codes)
}

/// Finds the cells of numbers: first by their leading bits, and then among the few cuts that have the same ones.
#[derive(Debug)]
pub(crate) struct Finder {
    /// The cuts and a NaN, so that there is always one more to compare with.
    cuts: Vec<f64>,
    /// The place of a magnitude is its bits, shifted right by `shift`, minus `low`.
    shift: u32,
    /// The shifted bits of the magnitude that has the first place.
    low: u64,
    /// How many cuts are in lower places: first the places of negative numbers, the farthest from 0 first, then those of positive
    /// ones. [`CROWDED`] marks a place with several cuts. None if there are too few rows to be worth it.
    first: Option<Box<[u16; 2 * PLACES]>>,
}

/// Places of either sign: 8 kB, which stay in the first cache beside a tile of numbers.
const PLACES: usize = 2048;
/// The bit that marks a place with several cuts.
const CROWDED: u16 = 1 << 15;
/// Fewer rows use bisection, because filling the places takes time. In batches of n rows, 1.3 million numbers with 64 cuts took
/// 20 ms by bisection, and by places 100 ms with n = 64, 28 ms with 256, 7 ms with 1,024.
const FEW_ROWS: usize = 512;

/// The bits of a number without its sign: in the order of magnitudes.
#[inline(always)]
fn magnitude(x: f64) -> u64 {
    x.to_bits() & (i64::MAX as u64)
}

impl Finder {
    /// A finder of the cells between cuts, which must be in order; `rows` is how many rows will be looked up.
    pub(crate) fn new(cuts: &[f64], rows: usize) -> Result<Self, Error> {
        demand(cuts.is_sorted(), "cuts must be in order")?;
        demand(cuts.len() < CROWDED as usize, "there are too many cuts")?;
        let mut finder =
            Finder { cuts: [cuts, &[f64::NAN]].concat(), shift: 0, low: 0, first: None };
        if rows >= FEW_ROWS {
            // Most numbers lie among the middle cuts, and a few of these may be next to zero.
            let middle = &cuts[cuts.len() / 6..cuts.len() - cuts.len() / 6];
            let mut magnitudes: Vec<u64> = middle.iter().map(|&cut| magnitude(cut)).collect();
            magnitudes.sort_unstable();
            let lowest = magnitudes.get(magnitudes.len() / 16).copied().unwrap_or(0);
            let range = magnitudes.last().map_or(0, |high| high - lowest);
            let bits = 64 - (range + range / 2).leading_zeros();
            finder.shift = bits.saturating_sub(PLACES.ilog2());
            finder.low = lowest.saturating_sub(range / 4) >> finder.shift;
            finder.first = Some(finder.counted());
        }
        Ok(finder)
    }

    /// How many cuts are in lower places than each place; marked by [`CROWDED`] if the place has several. A place is an interval of
    /// numbers: [`PLACES`] of negative and as many of positive ones, in ascending order. The last of `cuts` is NaN, which ends them.
    fn counted(&self) -> Box<[u16; 2 * PLACES]> {
        let mut first = Box::new([0; 2 * PLACES]);
        for &cut in &self.cuts[..self.cuts.len() - 1] {
            first[self.place(cut)] += 1;
        }
        let mut lower = 0;
        for first in first.iter_mut() {
            let own = std::mem::replace(first, lower);
            *first |= if own > 1 { CROWDED } else { 0 };
            lower += own;
        }
        first
    }

    /// The place of a number. It never falls as x rises, so cuts in lower places are below x, and those in higher places above
    /// it.
    #[inline(always)]
    fn place(&self, x: f64) -> usize {
        let x = x + 0.0; // so that both zeros are one
        let places = PLACES as u64;
        let at = (magnitude(x) >> self.shift).saturating_sub(self.low).min(places - 1);
        // All ones if x is negative: then places count down from the middle.
        let sign = ((x.to_bits() as i64) >> 63) as u64;
        places.wrapping_add(at ^ sign) as usize
    }

    /// Writes the places of values to `places`. Returns whether some values are NaN or infinite.
    fn places(&self, values: &[f64], places: &mut [u16]) -> bool {
        wide!({
            let mut any_not_finite = false;
            for (out, &x) in places.iter_mut().zip(values) {
                *out = self.place(x) as u16;
                any_not_finite |= !x.is_finite();
            }
            any_not_finite
        })
    }

    /// Writes the cell of each of at most [`READ`] values to `out`: how many cuts are not above it, plus `start`; `missing` for
    /// NaN. Returns the position of the first infinite value, if there is one.
    pub(crate) fn find(
        &self,
        values: &[f64],
        start: u32,
        missing: u32,
        out: &mut [u32],
    ) -> Option<usize> {
        let below = |cuts: &[f64], x: f64| cuts.partition_point(|&cut| cut <= x) as u32;
        let mut any_not_finite = true;
        if let Some(first) = &self.first {
            let mut places = [0; READ];
            any_not_finite = self.places(values, &mut places);
            for ((out, &x), &place) in out.iter_mut().zip(values).zip(&places) {
                let lower_cuts = first[place as usize % (2 * PLACES)];
                let cell = if lower_cuts < CROWDED {
                    u32::from(lower_cuts) + u32::from(self.cuts[lower_cuts as usize] <= x)
                } else {
                    let lower_cuts = lower_cuts - CROWDED;
                    u32::from(lower_cuts) + below(&self.cuts[lower_cuts as usize..], x)
                };
                *out = start + cell;
            }
        } else {
            out.iter_mut().zip(values).for_each(|(out, &x)| *out = start + below(&self.cuts, x));
        }
        if !any_not_finite {
            return None;
        }
        let missing_values = out.iter_mut().zip(values).filter(|(_, x)| x.is_nan());
        missing_values.for_each(|(out, _)| *out = missing);
        values.iter().position(|x| x.is_infinite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Block;
    use ndarray::ArrayView2;

    /// These values as a single column.
    fn of(values: &[f64]) -> Columns<'_> {
        let view = ArrayView2::from_shape((values.len(), 1), values).unwrap();
        Columns::new(vec![Block::F64(view)]).unwrap()
    }

    #[test]
    fn keys_are_in_the_order_of_numbers() {
        let numbers = [-1e300, -2.0, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1.5, 1e300];
        assert!(numbers.map(key).is_sorted_by(|a, b| a < b));
        assert_eq!(key(-0.0), key(0.0));
    }

    #[test]
    fn the_shift_is_the_least_that_will_do_whatever_the_order() {
        let number = |i: i32| f64::from((i * 7919) % 5000) / 7.0 - 99.0;
        let numbers: Vec<f64> = (0..5000).map(number).collect();
        let backwards: Vec<f64> = numbers.iter().rev().copied().collect();
        let classes = vec![0; 5000];
        let rows = Rows::new(&classes, 1, Weights::Ones).unwrap();
        // No bits are dropped at first, and at most 64 keys are left.
        let counted = |values| count_leading(&of(values), &[0], 64, &rows, 1).unwrap().remove(0);
        let forwards = counted(&numbers);
        assert_eq!(forwards, counted(&backwards));
        let keys = |shift: u32| {
            let mut keys: Vec<i64> = numbers.iter().map(|&x| key(x) >> shift).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        assert_eq!(forwards.keys, keys(forwards.shift));
        assert!(forwards.keys.len() <= 64 && keys(forwards.shift - 1).len() > 64);
    }

    #[test]
    fn a_step_is_the_number_of_cuts_not_above() {
        let cuts = [-3.0, -1e-300, 0.0, 1.0, 1.0000001, 2.0, 1e12];
        let numbers = [
            -1e308,
            -3.0,
            -2.0,
            0.0,
            -0.0,
            0.5,
            1.0,
            1.00000005,
            1.5,
            2.0,
            1e12,
            1e300,
            f64::NAN,
            -f64::NAN,
        ];
        let few = steps(&of(&numbers), &[&cuts], 1).unwrap();
        for (x, code) in numbers.iter().zip(&few) {
            let slow = cuts.iter().filter(|cut| *cut <= x).count();
            assert_eq!(*code as usize, if x.is_nan() { 8 } else { slow }, "{x}");
        }
        let many: Vec<f64> = numbers.iter().copied().cycle().take(200).collect();
        let indexed = steps(&of(&many), &[&cuts], 1).unwrap();
        assert!(indexed.iter().zip(few.iter().cycle()).all(|(a, b)| a == b));
        assert!(steps(&of(&[f64::INFINITY]), &[&cuts], 1).is_err());
        assert_eq!(steps(&of(&[1.0, f64::NAN]), &[&[]], 1).unwrap(), [0, 1]);
    }
}
