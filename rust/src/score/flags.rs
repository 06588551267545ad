//! Yes-or-no features.

use super::{FEATURES, ROWS, STRIDE, Scratch, Sums};
use crate::columns::{Columns, Value, each};
use crate::error::{Error, demand};
use crate::flags::{Rule, Thresholds, not_a_flag};
use ndarray::{ArrayView1, s};
use std::ops::Range;

const LANES: usize = 8;

/// A value above its threshold adds `yes`, another `no`, a missing one nothing; tables are `[feature][class]`.
#[derive(Debug)]
pub struct Flags<'a> {
    pub(super) columns: Columns<'a>,
    thresholds: Thresholds<'a>,
    no: &'a [f64],
    yes: &'a [f64],
    n_classes: usize,
}

/// What a block's values turned out to be.
#[derive(Clone, Copy, Default)]
struct Oddities {
    missing: bool,
    bad: bool,
}

impl<'a> Flags<'a> {
    pub fn new(
        columns: Columns<'a>,
        thresholds: Thresholds<'a>,
        no: &'a [f64],
        yes: &'a [f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        let cells = columns.features().checked_mul(n_classes);
        demand(
            Some(no.len()) == cells && Some(yes.len()) == cells,
            "no and yes must be (features, classes)",
        )?;
        Ok(Flags {
            columns,
            thresholds,
            no,
            yes,
            n_classes,
        })
    }

    pub(super) fn add(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        for first in features.clone().step_by(FEATURES) {
            let tile = first..features.end.min(first + FEATURES);
            let (yes, present) = (&mut scratch.bits, &mut scratch.more_bits);
            if self.fill(tile.clone(), sums.rows.clone(), yes)? {
                self.fill_present(tile.clone(), sums.rows.clone(), present);
                self.add_flags::<true>(tile, sums, yes, present);
            } else {
                self.add_flags::<false>(tile, sums, yes, present);
            }
        }
        Ok(())
    }

    /// Writes all ones where a value is yes, `[feature][row]`; answers whether some are missing.
    fn fill(
        &self,
        features: Range<usize>,
        rows: Range<usize>,
        yes: &mut [u64],
    ) -> Result<bool, Error> {
        let mut missing = false;
        for (first, block, columns) in self.columns.pieces(features.clone()) {
            for (feature, column) in (first..).zip(columns) {
                let at = (feature - features.start) * STRIDE;
                let yes = &mut yes[at..at + rows.len()];
                each!(block, view => {
                    let column = view.slice(s![rows.clone(), column]);
                    let odd = fill_column(column, self.thresholds.rule(feature), yes);
                    missing |= odd.missing;
                    if odd.bad {
                        let bad = column.iter().position(|x| !x.is_flag() && !x.is_missing());
                        let row = rows.start + bad.unwrap_or(0);
                        return Err(not_a_flag(&self.columns, row, feature));
                    }
                });
            }
        }
        Ok(missing)
    }

    /// Writes all ones where a value is present.
    fn fill_present(&self, features: Range<usize>, rows: Range<usize>, present: &mut [u64]) {
        for (first, block, columns) in self.columns.pieces(features.clone()) {
            for (feature, column) in (first..).zip(columns) {
                let present = &mut present[(feature - features.start) * STRIDE..];
                each!(block, view => {
                    for (bits, x) in present.iter_mut().zip(view.slice(s![rows.clone(), column])) {
                        *bits = ones(!x.is_missing());
                    }
                });
            }
        }
    }

    fn add_flags<const MISSING: bool>(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        yes: &[u64],
        present: &[u64],
    ) {
        let n = sums.rows.len().next_multiple_of(LANES);
        for (class, sums) in sums.values.chunks_exact_mut(ROWS).enumerate() {
            for (at, sums) in sums[..n].chunks_exact_mut(LANES).enumerate() {
                let mut total = [0.0; LANES];
                total.copy_from_slice(sums);
                for (j, feature) in features.clone().enumerate() {
                    let cell = feature * self.n_classes + class;
                    let no = self.no[cell].to_bits();
                    let either = no ^ self.yes[cell].to_bits();
                    let from = j * STRIDE + at * LANES;
                    let lanes = yes[from..from + LANES]
                        .iter()
                        .zip(&present[from..from + LANES]);
                    for (total, (yes, present)) in total.iter_mut().zip(lanes) {
                        let log = no ^ (either & yes);
                        *total += f64::from_bits(if MISSING { log & present } else { log });
                    }
                }
                sums.copy_from_slice(&total);
            }
        }
    }
}

#[inline(always)]
fn ones(set: bool) -> u64 {
    (set as u64).wrapping_neg()
}

#[inline(always)]
fn fill_column<T: Value>(column: ArrayView1<T>, rule: Rule<T>, out: &mut [u64]) -> Oddities {
    let Rule {
        limit,
        possible,
        strict,
    } = rule;
    let mut odd = Oddities::default();
    let mut set = |bits: &mut u64, x: T| {
        *bits = ones(x.exceeds(limit) & possible);
        odd.missing |= x.is_missing();
        odd.bad |= strict & !x.is_flag() & !x.is_missing();
    };
    match column.to_slice() {
        Some(column) => out
            .iter_mut()
            .zip(column)
            .for_each(|(bits, &x)| set(bits, x)),
        None => out
            .iter_mut()
            .zip(column)
            .for_each(|(bits, &x)| set(bits, x)),
    }
    odd
}
