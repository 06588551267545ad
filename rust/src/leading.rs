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
/// Cells, keys × classes, of columns that are counted together, at most, so that the cache of a core holds them. 200,000 rows
/// of 20 columns with 2,048 keys and 20 classes took 50 ms with 2^16 cells, 58 with 2^18 and 75 with 2^21; with 2 classes 46,
/// 43 and 41.
const CELLS: usize = 1 << 18;
/// Rows of a block, whose columns are counted one after the other. With 2^7 rows, 200,000 rows of 20 columns took 79 ms
/// instead of 65.
const BLOCK: usize = 1 << 10;

/// Returns the key of a number that is not NaN: a whole number, in the order of numbers; 0 and -0 have the same.
#[inline(always)]
pub fn key(x: f64) -> i64 {
    let bits = (x + 0.0).to_bits() as i64;
    // The bits of negative numbers, except the sign, are inverted, because they rise with the distance from 0.
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The rows of each key and class of one column; keys are in order, and each has at least one row.
#[derive(Debug, PartialEq)]
pub struct Counted {
    /// Keys of numbers, without their lowest `shift` bits.
    pub keys: Vec<i64>,
    /// The weight of the rows, `[key][class]`.
    pub cells: Integers,
    /// How many bits of keys were dropped.
    pub shift: u32,
}

/// Counts the leading bits of each column, `[column]`. Of each key, `shifts[column]` bits are dropped, and as few more as
/// leave at most `most` keys per column. Infinite values are an error, missing ones and rows of no class are not counted.
/// `rows` has the class (-1: none) and the weight of each row. The counts of a column are its keys in order, the weight of
/// the rows of each, `[key][class]`, and how many bits were dropped. A key is the bits of a number, in the order of numbers.
/// At most `threads` threads are used.
pub fn count_leading(
    columns: &Columns,
    shifts: &[i64],
    most: usize,
    rows: &Rows,
    threads: usize,
) -> Result<Vec<Counted>, Error> {
    let (n_rows, n_columns) = (rows.len(), columns.features());
    columns.demand_rows(n_rows)?;
    demand(shifts.len() == n_columns, "shifts must have one entry per feature")?;
    demand(shifts.iter().all(|shift| (0..64).contains(shift)), "shifts must be from 0 to 63")?;
    demand((2..=MOST).contains(&most), "most must be from 2 to 2**14")?;
    let threads = threads::worth(threads, n_rows.saturating_mul(n_columns));
    // Neighbours often share cache lines, so that a thread reads a group of columns together, block by block.
    let most_in_group = (CELLS / (most * rows.n_classes.max(1))).clamp(1, TOGETHER);
    let group_size = n_columns.div_ceil(threads).clamp(1, most_in_group);
    let groups = threads::try_ranges(threads, n_columns, group_size, |group| match rows.weights {
        Weights::Ones if u32::try_from(n_rows).is_ok() => {
            count_group(columns, group, shifts, most, rows, |_| 1_u32)
        }
        Weights::Ones => count_group(columns, group, shifts, most, rows, |_| 1_i64),
        Weights::Whole(weights) => {
            count_group(columns, group, shifts, most, rows, |row| weights[row])
        }
        Weights::Parts(_) => {
            count_group(columns, group, shifts, most, rows, |row| rows.weight(row) as i128)
        }
    })?;
    Ok(groups.into_iter().flatten().collect())
}

/// [`count_leading`] for the columns of a group, with the weight of each row as a number of type `N`. `group` are the
/// columns, indices in `columns`; `shifts[column]` bits of each key are dropped at least, and at most `most` keys are left.
/// `rows` has the class of each row, -1 if none; `weight` is called with the number of a row. A key is the leading bits of a
/// number; `counts.shift` is how many bits are dropped from the keys of a column so far.
fn count_group<N: Copy + Default + AddAssign + Into<i128>>(
    columns: &Columns,
    group: Range<usize>,
    shifts: &[i64],
    most: usize,
    rows: &Rows,
    weight: impl Fn(usize) -> N,
) -> Result<Vec<Counted>, Error> {
    // The counts of each column of the group.
    let mut counts_of_columns: Vec<KeyCounts<N>> = shifts[group.clone()]
        .iter()
        .map(|&shift| KeyCounts::new(shift as u32, most, rows.n_classes))
        .collect();
    // The keys of a block of rows, `[column of the group][row]`.
    let mut keys_of_columns = vec![[NONE; BLOCK]; group.len()];
    // `i` is the number of a block, and `j` that of a chunk of it; both have the class of each row.
    for (i, classes) in rows.classes.chunks(BLOCK).enumerate() {
        for (j, chunk_classes) in classes.chunks(MOST_LISTED).enumerate() {
            let chunk = j * MOST_LISTED..j * MOST_LISTED + chunk_classes.len(); // of the block
            let first_row = i * BLOCK + chunk.start;
            let chunk_rows = RowSelection::Range(first_row..i * BLOCK + chunk.end);
            for (counts, (keys, (feature, block, column))) in counts_of_columns
                .iter()
                .zip(keys_of_columns.iter_mut().zip(columns.columns_of(group.clone())))
            {
                let mut buffer = None; // where values that are not doubles are converted
                let values = chunk_rows.contiguous_reals(block, column, &mut buffer);
                if read_keys(values, chunk_classes, counts.shift, &mut keys[chunk.clone()]) {
                    let is_wrong = |(&x, &class): (&f64, &i32)| class >= 0 && x.is_infinite();
                    // The index in the chunk of the first infinite number of a row with a class.
                    let wrong = values.iter().zip(chunk_classes).position(is_wrong).unwrap_or(0);
                    return Err(columns.bad_value(Fault::Infinite, first_row + wrong, feature));
                }
            }
        }
        for (counts, keys) in counts_of_columns.iter_mut().zip(&mut keys_of_columns) {
            counts.add(&mut keys[..classes.len()], classes, |row| weight(i * BLOCK + row));
        }
    }
    counts_of_columns.into_iter().map(|counts| counts.counted(rows)).collect()
}

/// The key of values that are not counted. No number has this key.
const NONE: i64 = i64::MIN;

/// Writes the key of each row's value, without its lowest `shift` bits, to `keys`; [`NONE`] for a value that is not counted,
/// because it is NaN or the row has no class (-1). Returns whether a row with a class has an infinite value. All three slices
/// are `[row]`. A key is the leading bits of a number.
fn read_keys(values: &[f64], classes: &[i32], shift: u32, keys: &mut [i64]) -> bool {
    wide!({
        let mut any_infinite = false;
        for ((out, &x), &class) in keys.iter_mut().zip(values).zip(classes) {
            any_infinite |= x.is_infinite() & (class >= 0);
            *out = if x.is_finite() & (class >= 0) { key(x) >> shift } else { NONE };
        }
        any_infinite
    })
}

/// The keys of one column that are counted so far. Each has a slot with a cell for each class; the first slot is that of
/// [`NONE`].
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
    /// A small cache, in which neighbouring keys are side by side: the slot of the last key that was looked up at each place.
    recent_slots: Vec<u16>,
}

/// Bits of a place in [`KeyCounts::recent_slots`], which has as many places for either sign: 16 kB. 200,000 rows of 20
/// columns took 44 ms, and 59 with 9 bits and 52 with 15.
const PLACE_BITS: u32 = 12;

impl<N: Copy + Default + AddAssign + Into<i128>> KeyCounts<N> {
    /// No keys yet; `most` may be left in the end, each without its lowest `shift` bits or more. A key has a slot, which has
    /// a cell for each class; slot 0 is that of [`NONE`]. A key is the leading bits of a number, and a cell the weight of
    /// rows; `recent_slots` is a cache of slots.
    fn new(shift: u32, most: usize, n_classes: usize) -> Self {
        let n_classes = n_classes.max(1); // rows of no class have a cell too
        KeyCounts {
            keys: vec![NONE],
            cells: vec![N::default(); n_classes],
            n_classes,
            shift,
            most,
            numbering: Numbering::with_room(2 * most),
            // Places for either sign.
            recent_slots: vec![0; 2 << PLACE_BITS],
        }
    }

    /// Adds a block of rows, given the key and the class of each; keys have the shift so far. `weight` is called with the
    /// index of a row in the block. If keys are merged on the way, the remaining `keys` are shifted too. Both are `[row]`,
    /// the class -1 if none. `self.shift` is how many bits of keys are dropped so far. A key is the leading bits of a number.
    fn add(&mut self, keys: &mut [i64], classes: &[i32], weight: impl Fn(usize) -> N) {
        let mut n_added = 0; // rows
        while let Some(n_added_now) = self.add_until_full(n_added, keys, classes, &weight) {
            n_added = n_added_now;
            let old_shift = self.shift;
            self.merge();
            let more_shift = self.shift - old_shift;
            let later_keys = keys[n_added..].iter_mut().filter(|key| **key != NONE);
            later_keys.for_each(|key| *key >>= more_shift);
        }
    }

    /// Adds the rows of a block from its row `first` on, until there are too many keys. Returns the first row that is left
    /// then; None if all were added. Each row has a key and a class; `weight` is called with the index of a row in the block.
    /// Both are `[row]`, the class -1 if none. `self.keys` has the key of each slot, and `self.cells` the weight of the rows,
    /// `[slot][class]`; `self.shift` is how many bits of keys are dropped. A key is the leading bits of a number.
    #[inline(always)]
    fn add_until_full(
        &mut self,
        first: usize,
        keys: &[i64],
        classes: &[i32],
        weight: impl Fn(usize) -> N,
    ) -> Option<usize> {
        // A key is first looked for in a small cache, `self.recent_slots`, at the place that its bits give. Whole keys, of values
        // that repeat, are anywhere and are hashed; shifted keys are side by side.
        // The key times this factor has the place in its highest bits.
        let factor = if self.shift == 0 { SEED } else { 1 << (64 - PLACE_BITS) };
        for (row, (&key, &class)) in keys.iter().zip(classes).enumerate().skip(first) {
            // 0, or -1 for a negative key.
            let sign = key >> 63;
            let place_of_sign = ((key ^ sign) as u64).wrapping_mul(factor) >> (64 - PLACE_BITS);
            let place = place_of_sign as usize | (sign & (1 << PLACE_BITS)) as usize;
            // The slot of a key is its index in `self.keys`.
            let mut slot = self.recent_slots[place] as usize;
            if self.keys[slot] != key {
                slot = self.slot(key);
                self.recent_slots[place] = slot as u16;
            }
            self.cells[slot * self.n_classes + class.max(0) as usize] += weight(row);
            // At most `self.most` keys are left in the end.
            if slot > self.most + self.most / 4 {
                return Some(row + 1);
            }
        }
        None
    }

    /// Returns the slot of a key: its index in `self.keys`. A new key is added, with cells of 0. Slot 0 is that of [`NONE`];
    /// `self.numbering` numbers all other keys from 0, so that their slots begin at 1. `self.cells` has the weight of the
    /// rows, `[slot][class]`. A key is the leading bits of a number.
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

    /// Drops as few bits of all keys as leave at most `self.most` keys, and adds up the cells of keys that become one.
    /// `self.keys` has the key of each slot, and `self.cells` the weight of the rows, `[slot][class]`; slot 0 is that of
    /// [`NONE`]. `self.shift` is how many bits are dropped so far, `self.numbering` finds the slot of a key, and
    /// `self.recent_slots` is a cache of slots. A key is the leading bits of a number.
    #[cold]
    fn merge(&mut self) {
        let mut sorted = self.keys[1..].to_vec();
        sorted.sort_unstable();
        // How many keys become one with the key before them at each shift, that is when the highest bit in which they differ is
        // dropped.
        let mut n_joined = [0; 65];
        for pair in sorted.windows(2) {
            n_joined[64 - (pair[0] ^ pair[1]).leading_zeros() as usize] += 1;
        }
        let (mut more_shift, mut n_keys) = (0, sorted.len()); // bits to drop, and keys that are left then
        while n_keys > self.most && more_shift < 63 {
            more_shift += 1;
            n_keys -= n_joined[more_shift];
        }
        self.shift += more_shift as u32;
        self.numbering.clear(2 * self.most);
        self.recent_slots.fill(0);
        let old_keys = std::mem::replace(&mut self.keys, vec![NONE]);
        let old_cells = std::mem::replace(&mut self.cells, vec![N::default(); self.n_classes]);
        for (key, addends) in old_keys.iter().zip(old_cells.chunks_exact(self.n_classes)).skip(1) {
            let first_cell = self.slot(key >> more_shift) * self.n_classes;
            let sums = &mut self.cells[first_cell..first_cell + self.n_classes];
            sums.iter_mut().zip(addends).for_each(|(sum, &weight)| *sum += weight);
        }
    }

    /// The counts in the order of their keys, of which at most `self.most` are left; `rows` gives the classes and the unit of
    /// weights. `self.cells` has the weight of the rows, `[slot][class]`; `shift` is how many bits of keys were dropped. A
    /// key is the leading bits of a number.
    fn counted(mut self, rows: &Rows) -> Result<Counted, Error> {
        if self.keys.len() - 1 > self.most {
            self.merge();
        }
        // Slots in the order of their keys, without that of NONE.
        let mut order: Vec<usize> = (1..self.keys.len()).collect();
        order.sort_unstable_by_key(|&slot| self.keys[slot]);
        let keys = order.iter().map(|&slot| self.keys[slot]).collect();
        let cells_of =
            |&slot: &usize| &self.cells[slot * self.n_classes..(slot + 1) * self.n_classes];
        // [key][class]
        let cells: Vec<i128> = order.iter().flat_map(cells_of).map(|&n| n.into()).collect();
        let cells = counted(&cells, vec![order.len(), rows.n_classes], rows.digits())?;
        Ok(Counted { keys, cells, shift: self.shift })
    }
}

/// Returns the step of each number, `[row][column]`: how many of its column's cuts (`cuts[column]`, in order) are not above
/// it. A missing value has the number of cuts plus 1; an infinite one is an error. A finder finds the steps of a column's
/// numbers. At most `threads` threads are used.
pub fn steps(columns: &Columns, cuts: &[&[f64]], threads: usize) -> Result<Vec<u16>, Error> {
    let (n_rows, n_columns) = (columns.rows().unwrap_or(0), columns.features());
    demand(cuts.len() == n_columns, "cuts must have one list per feature")?;
    let finders: Vec<Finder> =
        cuts.iter().map(|cuts| Finder::new(cuts, n_rows)).collect::<Result<_, _>>()?;
    let mut steps = vec![0; n_rows * n_columns];
    let threads = threads::worth(threads, steps.len());
    threads::try_pieces(threads, &mut steps, MOST_LISTED * n_columns, |i, steps| {
        let start = i * MOST_LISTED; // the first row of the piece
        let rows = RowSelection::Range(start..start + steps.len() / n_columns);
        for (feature, block, column) in columns.columns_of(0..n_columns) {
            let mut buffer = None; // where numbers of other types are converted
            let values = rows.contiguous_reals(block, column, &mut buffer);
            let (first_step, missing) = (0, cuts[feature].len() as u32 + 1);
            let column_steps = &mut [0; MOST_LISTED][..values.len()];
            let infinite = finders[feature].find(values, first_step, missing, column_steps);
            if let Some(row) = infinite {
                return Err(columns.bad_value(Fault::Infinite, start + row, feature));
            }
            // The steps of the column, within `[row][column]`.
            let places = steps[feature..].iter_mut().step_by(n_columns);
            places.zip(column_steps).for_each(|(place, step)| *place = *step as u16);
        }
        Ok(())
    })?;
    Ok(steps)
}

/// Finds the steps of numbers, how many cuts are not above each: first by their leading bits, and then among the few cuts
/// that have the same ones.
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
    cuts_below: Option<Box<[u16; 2 * PLACES]>>,
}

/// Places of either sign: 8 kB, which stay in the first cache beside a tile of numbers. With 64 cuts, the steps of 4 million
/// numbers took 22 ms with 512 or 2,048 places, and 25 with 8,192.
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
    /// A finder of the steps between cuts, which must be in order, for `n_rows` numbers or so. A place is an interval of
    /// numbers: that of x is the bits of its magnitude, shifted right by `finder.shift`, minus `finder.low`.
    /// `finder.cuts_below` says how many cuts are in lower places than each place; None if there are too few numbers for
    /// that.
    pub(crate) fn new(cuts: &[f64], n_rows: usize) -> Result<Self, Error> {
        demand(cuts.is_sorted(), "cuts must be in order")?;
        demand(cuts.len() < CROWDED as usize, "there are too many cuts")?;
        let mut finder =
            Finder { cuts: [cuts, &[f64::NAN]].concat(), shift: 0, low: 0, cuts_below: None };
        if n_rows >= FEW_ROWS {
            // Most numbers lie among the middle cuts, and a few of these may be next to zero. Magnitudes are bits of numbers.
            let middle = &cuts[cuts.len() / 6..cuts.len() - cuts.len() / 6];
            let mut magnitudes: Vec<u64> = middle.iter().map(|&cut| magnitude(cut)).collect();
            magnitudes.sort_unstable();
            // The magnitude that a sixteenth of the middle cuts are below, and how far the highest one is from it, as bits.
            let lowest = magnitudes.get(magnitudes.len() / 16).copied().unwrap_or(0);
            let range = magnitudes.last().map_or(0, |highest| highest - lowest);
            // Places reach a quarter of the range beyond either end.
            let bits = 64 - (range + range / 2).leading_zeros(); // how many bits number them all
            finder.shift = bits.saturating_sub(PLACES.ilog2());
            finder.low = lowest.saturating_sub(range / 4) >> finder.shift;
            finder.cuts_below = Some(finder.count_cuts_below());
        }
        Ok(finder)
    }

    /// How many cuts are in lower places than each place; marked by [`CROWDED`] if the place has several. A place is an
    /// interval of numbers: [`PLACES`] of negative and as many of positive ones, in ascending order. The last of `cuts` is
    /// NaN, which ends them. `self.cuts` are the cuts in ascending order.
    fn count_cuts_below(&self) -> Box<[u16; 2 * PLACES]> {
        // First the number of cuts in each place.
        let mut counts = Box::new([0; 2 * PLACES]);
        for &cut in &self.cuts[..self.cuts.len() - 1] {
            counts[self.place(cut)] += 1;
        }
        let mut n_below = 0; // cuts in lower places
        for count in counts.iter_mut() {
            let n_here = std::mem::replace(count, n_below);
            *count |= if n_here > 1 { CROWDED } else { 0 };
            n_below += n_here;
        }
        counts
    }

    /// The place of a number, an index in `self.cuts_below`. It never falls as x rises, so cuts in lower places are below x,
    /// and those in higher places above it. The place of a magnitude is its bits shifted right by `self.shift`, minus
    /// `self.low`.
    #[inline(always)]
    fn place(&self, x: f64) -> usize {
        let x = x + 0.0; // so that both zeros are one
        let middle = PLACES as u64;
        let distance = (magnitude(x) >> self.shift).saturating_sub(self.low).min(middle - 1);
        // All ones if x is negative: then places count down from the middle.
        let sign = ((x.to_bits() as i64) >> 63) as u64;
        middle.wrapping_add(distance ^ sign) as usize
    }

    /// Writes the place of each value to `places`. Returns whether some values are NaN or infinite. A place is an interval of
    /// numbers, which has a number from the lowest interval on.
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

    /// Writes the step of each of at most [`MOST_LISTED`] values, plus `start`, to `steps`: how many cuts are not above it;
    /// `missing` for NaN. Returns the index of the first infinite value, None if there is none. `self.cuts` are the cuts in
    /// ascending order, and `self.cuts_below` says how many of them are in lower places than each place, marked by
    /// [`CROWDED`] if the place has several cuts.
    pub(crate) fn find(
        &self,
        values: &[f64],
        start: u32,
        missing: u32,
        steps: &mut [u32],
    ) -> Option<usize> {
        let bisect = |cuts: &[f64], x: f64| cuts.partition_point(|&cut| cut <= x) as u32;
        let mut any_not_finite = true;
        if let Some(cuts_below) = &self.cuts_below {
            let mut places = [0; MOST_LISTED];
            any_not_finite = self.places(values, &mut places);
            for ((step, &x), &place) in steps.iter_mut().zip(values).zip(&places) {
                let mut n_below = cuts_below[place as usize % (2 * PLACES)]; // cuts in lower places
                // The cuts of this place that are not above x.
                let n_here = if n_below < CROWDED {
                    u32::from(self.cuts[n_below as usize] <= x)
                } else {
                    n_below -= CROWDED;
                    bisect(&self.cuts[n_below as usize..], x)
                };
                *step = start + u32::from(n_below) + n_here;
            }
        } else {
            let numbers = steps.iter_mut().zip(values);
            numbers.for_each(|(step, &x)| *step = start + bisect(&self.cuts, x));
        }
        if !any_not_finite {
            return None;
        }
        let missing_values = steps.iter_mut().zip(values).filter(|(_, x)| x.is_nan());
        missing_values.for_each(|(step, _)| *step = missing);
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
