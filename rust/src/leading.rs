//! Numbers by their leading bits: bins of every magnitude, that need no scale and can only be halved in number.
//!
//! The key of a number is its bits, turned so that keys are in the order of numbers; a shift leaves the leading ones. Of a
//! column the shift is the least that leaves no more keys than may be, so that it is a function of the values alone, whatever
//! their order.

use crate::classes::{Rows, Weights, counted};
use crate::columns::{Columns, Value, along, each};
use crate::error::{Error, Fault, demand};
use crate::integers::Integers;
use crate::threads;
use ndarray::s;
use std::ops::{AddAssign, Range};

/// The most keys a column may be left with.
pub const MOST: usize = 1 << 14;
/// Columns that are read together, and rows of them at a time.
const TOGETHER: usize = 32;
const BLOCK: usize = 1 << 11;

/// Whole numbers in the order of the numbers; both zeros have the same.
#[inline(always)]
pub fn key(x: f64) -> i64 {
    let bits = (x + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The rows of each key and class, `[key][class]`; keys are in order, and each has a row.
#[derive(Debug, PartialEq)]
pub struct Counted {
    pub keys: Vec<i64>,
    pub cells: Integers,
    pub shift: u32,
}

/// Counts each column by its leading bits: so many are dropped as the shifts say, and as few more as leave `most` keys.
pub fn count_leading(
    columns: &Columns,
    shifts: &[i64],
    most: usize,
    rows: &Rows,
    threads: usize,
) -> Result<Vec<Counted>, Error> {
    let (n, features) = (rows.len(), columns.features());
    columns.demand_rows(n)?;
    demand(shifts.len() == features, "shifts must have one entry per feature")?;
    demand(shifts.iter().all(|shift| (0..64).contains(shift)), "shifts must be from 0 to 63")?;
    demand((2..=MOST).contains(&most), "most must be from 2 to 2**14")?;
    let threads = threads::worth(threads, n.saturating_mul(features));
    // Neighbours often share cache lines, so that a thread reads some columns together, block by block.
    let group = features.div_ceil(threads).clamp(1, TOGETHER);
    let groups = threads::try_map(threads, features.div_ceil(group), |i| {
        let some = i * group..features.min((i + 1) * group);
        match rows.weights {
            Weights::Ones => count(columns, some, shifts, most, rows, |_| 1_i64),
            Weights::Whole(weights) => count(columns, some, shifts, most, rows, |row| weights[row]),
            Weights::Parts(_) => {
                count(columns, some, shifts, most, rows, |row| rows.weight(row) as i128)
            }
        }
    })?;
    Ok(groups.into_iter().flatten().collect())
}

fn count<N: Copy + Default + AddAssign + Into<i128>>(
    columns: &Columns,
    features: Range<usize>,
    shifts: &[i64],
    most: usize,
    rows: &Rows,
    weight: impl Fn(usize) -> N,
) -> Result<Vec<Counted>, Error> {
    let n = rows.len();
    let mut each: Vec<Found<N>> = shifts[features.clone()]
        .iter()
        .map(|&shift| Found::new(shift as u32, most, rows.n_classes))
        .collect();
    for from in (0..n).step_by(BLOCK) {
        let classes = &rows.classes[from..n.min(from + BLOCK)];
        for (feature, block, column) in columns.each_of(features.clone()) {
            let found = &mut each[feature - features.start];
            let mut infinite = None;
            each!(block, view => {
                let values = view.slice(s![from..from + classes.len(), column]);
                along(values, classes.iter().enumerate(), |x, (at, &class)| {
                    let x = x.real();
                    if class < 0 {
                    } else if x.is_finite() {
                        found.add(key(x), class as usize, weight(from + at));
                    } else if !x.is_nan() && infinite.is_none() {
                        infinite = Some(from + at);
                    }
                });
            });
            if let Some(row) = infinite {
                return Err(columns.refused(Fault::Infinite, row, feature));
            }
        }
    }
    each.into_iter().map(|found| found.counted(rows)).collect()
}

/// The keys met so far, each in a slot of its own with a cell for each class.
struct Found<N> {
    keys: Vec<i64>,
    cells: Vec<N>,
    n_classes: usize,
    shift: u32,
    most: usize,
    /// By hash: a slot and one more, 0 for none. Four times as many as slots, so that few are tried.
    table: Vec<u16>,
    bits: u32,
}

impl<N: Copy + Default + AddAssign + Into<i128>> Found<N> {
    fn new(shift: u32, most: usize, n_classes: usize) -> Self {
        let bits = (4 * most + 4).next_power_of_two().trailing_zeros();
        Found {
            keys: vec![],
            cells: vec![],
            n_classes,
            shift,
            most,
            table: vec![0; 1 << bits],
            bits,
        }
    }

    #[inline(always)]
    fn add(&mut self, key: i64, class: usize, weight: N) {
        let slot = self.slot(key >> self.shift);
        self.cells[slot * self.n_classes + class] += weight;
        if slot == self.most {
            self.merge();
        }
    }

    /// The slot of a key, a new one if it is new.
    #[inline(always)]
    fn slot(&mut self, key: i64) -> usize {
        let mut at = (key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - self.bits);
        loop {
            let slot = self.table[at as usize] as usize;
            if slot == 0 {
                self.keys.push(key);
                self.cells.resize(self.keys.len() * self.n_classes, N::default());
                self.table[at as usize] = self.keys.len() as u16;
                return self.keys.len() - 1;
            }
            if self.keys[slot - 1] == key {
                return slot - 1;
            }
            at = (at + 1) & ((1 << self.bits) - 1);
        }
    }

    /// Drops bits until no more keys are left than may be.
    #[cold]
    fn merge(&mut self) {
        let mut sorted = self.keys.clone();
        sorted.sort_unstable();
        // Two neighbours become one at the shift that drops the highest bit in which they differ.
        let mut kept = [0; 65];
        for pair in sorted.windows(2) {
            kept[64 - (pair[0] ^ pair[1]).leading_zeros() as usize] += 1;
        }
        let (mut more, mut left) = (0, sorted.len());
        while left > self.most && more < 63 {
            more += 1;
            left -= kept[more];
        }
        self.shift += more as u32;
        self.table.fill(0);
        let (keys, cells) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.cells));
        for (key, old) in keys.iter().zip(cells.chunks_exact(self.n_classes)) {
            let from = self.slot(key >> more) * self.n_classes;
            let new = &mut self.cells[from..from + self.n_classes];
            new.iter_mut().zip(old).for_each(|(new, &old)| *new += old);
        }
    }

    /// The cells in the order of their keys.
    fn counted(self, rows: &Rows) -> Result<Counted, Error> {
        let mut order: Vec<usize> = (0..self.keys.len()).collect();
        order.sort_unstable_by_key(|&slot| self.keys[slot]);
        let keys = order.iter().map(|&slot| self.keys[slot]).collect();
        let of = |&slot: &usize| &self.cells[slot * self.n_classes..(slot + 1) * self.n_classes];
        let cells: Vec<i128> = order.iter().flat_map(of).map(|&n| n.into()).collect();
        let cells = counted(&cells, vec![order.len(), self.n_classes], rows.digits())?;
        Ok(Counted { keys, cells, shift: self.shift })
    }
}

/// The cell of each number, `[row][column]`: how many of its column's cuts are not above it; of a missing one, one more than can be.
pub fn steps(columns: &Columns, cuts: &[&[f64]], threads: usize) -> Result<Vec<u16>, Error> {
    let (n, features) = (columns.rows().unwrap_or(0), columns.features());
    demand(cuts.len() == features, "cuts must have one list per feature")?;
    demand(cuts.iter().all(|cuts| cuts.len() < u16::MAX as usize - 1), "there are too many cuts")?;
    demand(cuts.iter().all(|cuts| cuts.is_sorted()), "cuts must be in order")?;
    let finders: Vec<Finder> = cuts.iter().map(|cuts| Finder::new(cuts)).collect();
    let mut codes = vec![0; n * features];
    let threads = threads::worth(threads, codes.len());
    threads::try_pieces(threads, &mut codes, BLOCK * features, |i, out| {
        let rows = i * BLOCK..n.min((i + 1) * BLOCK);
        for (feature, block, column) in columns.each_of(0..features) {
            let finder = &finders[feature];
            let mut infinite = false;
            each!(block, view => {
                let out = out[feature..].iter_mut().step_by(features);
                along(view.slice(s![rows.clone(), column]), out, |x, code| {
                    let x = x.real();
                    infinite |= x.is_infinite();
                    *code = finder.cell(x);
                });
            });
            if infinite {
                let wrong =
                    rows.clone().find(|&row| columns.value(row, feature).real().is_infinite());
                return Err(columns.refused(Fault::Infinite, wrong.unwrap_or(0), feature));
            }
        }
        Ok(())
    })?;
    Ok(codes)
}

/// Finds cells by an even grid over the middle cuts first, and then among the cuts within one of its steps.
#[derive(Debug)]
pub(crate) struct Finder<'a> {
    cuts: &'a [f64],
    low: f64,
    scale: f64,
    /// How many cuts are in lower steps.
    first: Vec<u16>,
}

const STEPS: usize = 1024;
const FEW: usize = 4;

impl<'a> Finder<'a> {
    pub(crate) fn new(cuts: &'a [f64]) -> Self {
        let quarter = |k: usize| cuts.get(cuts.len() * k / 4).copied().unwrap_or(0.0);
        let (low, high) = (quarter(1), quarter(3));
        let width = high - low;
        let low = low - width;
        let scale = STEPS as f64 / (3.0 * width);
        let usable = scale.is_finite() && low.is_finite() && width > 0.0;
        let (low, scale) = if usable { (low, scale) } else { (0.0, 0.0) };
        let mut finder = Finder { cuts, low, scale, first: vec![0; STEPS + 1] };
        for &cut in cuts {
            let step = finder.step(cut);
            finder.first[step + 1] += 1;
        }
        let mut total = 0;
        for first in &mut finder.first {
            total += *first;
            *first = total;
        }
        finder
    }

    /// It never falls as x rises, whatever is rounded; so cuts in lower steps are below x, and those in higher ones above.
    #[inline(always)]
    fn step(&self, x: f64) -> usize {
        (((x - self.low) * self.scale) as usize).min(STEPS - 1)
    }

    #[inline(always)]
    pub(crate) fn cell(&self, x: f64) -> u16 {
        if x.is_nan() {
            return self.cuts.len() as u16 + 1;
        }
        let step = self.step(x);
        let (from, to) = (self.first[step], self.first[step + 1]);
        let among = &self.cuts[from as usize..to as usize];
        if among.len() <= FEW {
            from + among.iter().map(|&cut| u16::from(cut <= x)).sum::<u16>()
        } else {
            from + among.partition_point(|&cut| cut <= x) as u16
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Block;
    use ndarray::ArrayView2;

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
        let back: Vec<f64> = numbers.iter().rev().copied().collect();
        let classes = vec![0; 5000];
        let rows = Rows::new(&classes, 1, Weights::Ones).unwrap();
        let counted = |values| count_leading(&of(values), &[0], 64, &rows, 1).unwrap().remove(0);
        let there = counted(&numbers);
        assert_eq!(there, counted(&back));
        let keys = |shift: u32| {
            let mut keys: Vec<i64> = numbers.iter().map(|&x| key(x) >> shift).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        assert_eq!(there.keys, keys(there.shift));
        assert!(there.keys.len() <= 64 && keys(there.shift - 1).len() > 64);
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
        let found = steps(&of(&numbers), &[&cuts], 1).unwrap();
        for (x, code) in numbers.iter().zip(found) {
            let slow = cuts.iter().filter(|cut| *cut <= x).count();
            assert_eq!(code as usize, if x.is_nan() { 8 } else { slow }, "{x}");
        }
        assert!(steps(&of(&[f64::INFINITY]), &[&cuts], 1).is_err());
        assert_eq!(steps(&of(&[1.0, f64::NAN]), &[&[]], 1).unwrap(), [0, 1]);
    }
}
