//! Yes-or-no features: a value is above its threshold or not.

use super::{LANES, ROWS, STRIDE, Scratch, Sums, room, tiles};
use crate::columns::{Chosen, Columns, either, pair};
use crate::error::{Error, Fault, demand};
use crate::flags::{Level, Rule, Thresholds};
use crate::simd::wide;
use ndarray::ArrayView1;
use std::ops::Range;

/// A value above its threshold adds `yes`, another `no`, a missing one nothing; tables are `[feature][class]`.
#[derive(Debug)]
pub struct Flags<'a> {
    pub(super) columns: Columns<'a>,
    thresholds: Thresholds<'a>,
    /// The bits of `no`, and those in which `yes` differs, `[class][feature]`.
    logs: Vec<[u64; 2]>,
}

/// Whether a block has missing values, and values that are not flags where only flags are allowed.
#[derive(Clone, Copy, Default)]
struct Oddities {
    missing: bool,
    bad: bool,
}

impl<'a> Flags<'a> {
    pub fn new(
        columns: Columns<'a>,
        thresholds: Thresholds<'a>,
        no: &[f64],
        yes: &[f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        let cells = columns.features().checked_mul(n_classes);
        demand(
            Some(no.len()) == cells && Some(yes.len()) == cells,
            "no and yes must be (features, classes)",
        )?;
        let bits = |cell: usize| [no[cell].to_bits(), no[cell].to_bits() ^ yes[cell].to_bits()];
        let logs = (0..n_classes)
            .flat_map(|class| (class..no.len()).step_by(n_classes).map(bits))
            .collect();
        Ok(Flags { columns, thresholds, logs })
    }

    pub(super) fn add(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        for tile in tiles(features) {
            let (yes, present) = (room(&mut scratch.bits), room(&mut scratch.more_bits));
            if self.fill(tile.clone(), &sums.rows, yes)? {
                self.fill_present(tile.clone(), &sums.rows, present);
                self.add_flags::<true>(tile, sums, yes, present);
            } else {
                self.add_flags::<false>(tile, sums, yes, present);
            }
        }
        Ok(())
    }

    /// Adds features whose answers are in the tiles. Without `MISSING`, none is missing and `present` is not read.
    fn add_flags<const MISSING: bool>(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        yes: &[u64],
        present: &[u64],
    ) {
        wide!({
            let n_features = self.columns.features().max(1);
            // The minimum lets the compiler drop the bounds checks in the loop below.
            let chunks = sums.rows.len().div_ceil(LANES).min(ROWS / LANES);
            let logs = self.logs.chunks_exact(n_features);
            for (sums, logs) in sums.values.chunks_exact_mut(sums.height).zip(logs) {
                let logs = &logs[features.clone()];
                for (at, sums) in sums.as_chunks_mut::<LANES>().0[..chunks].iter_mut().enumerate() {
                    let mut totals = *sums;
                    let tiles = yes.chunks_exact(STRIDE).zip(present.chunks_exact(STRIDE));
                    for (&[no, either], (yes, present)) in logs.iter().zip(tiles) {
                        let yes = yes.as_chunks::<LANES>().0[at];
                        let present = present.as_chunks::<LANES>().0[at];
                        let answers = yes.iter().zip(present);
                        for (total, (yes, present)) in totals.iter_mut().zip(answers) {
                            let log = no ^ (either & yes);
                            *total += f64::from_bits(if MISSING { log & present } else { log });
                        }
                    }
                    *sums = totals;
                }
            }
        });
    }

    /// Writes all ones where a value is yes, `[feature][row]`. Returns whether some values are missing.
    fn fill(&self, features: Range<usize>, rows: &Chosen, yes: &mut [u64]) -> Result<bool, Error> {
        let mut missing = false;
        let columns = self.columns.each_of(features).zip(yes.chunks_exact_mut(STRIDE));
        for ((feature, block, column), yes) in columns {
            let mut room = None;
            let levels = rows.levels(block, column, &mut room);
            either!(Levels::{F64, I64, U8}, levels, column => {
                let rule = self.thresholds.rule(feature);
                let odd = fill_column(column, rule, &mut yes[..rows.len()]);
                missing |= odd.missing;
                if odd.bad {
                    let bad = column.iter().position(|x| !x.is_flag() && !x.is_missing());
                    let row = rows.row(bad.unwrap_or(0));
                    return Err(self.columns.refused(Fault::NotZeroOrOne, row, feature));
                }
            });
        }
        Ok(missing)
    }

    /// Writes all ones where a value is present.
    fn fill_present(&self, features: Range<usize>, rows: &Chosen, present: &mut [u64]) {
        let columns = self.columns.each_of(features).zip(present.chunks_exact_mut(STRIDE));
        for ((_, block, column), present) in columns {
            let mut room = None;
            let levels = rows.levels(block, column, &mut room);
            either!(Levels::{F64, I64, U8}, levels, column => {
                pair(&mut present[..rows.len()], column, |bits, x| *bits = ones(!x.is_missing()));
            });
        }
    }
}

#[inline(always)]
fn ones(set: bool) -> u64 {
    (set as u64).wrapping_neg()
}

/// Writes all ones where a column says yes.
#[inline(always)]
fn fill_column<T: Level>(
    column: ArrayView1<T>,
    Rule { limit, possible, strict }: Rule<T>,
    out: &mut [u64],
) -> Oddities {
    wide!({
        let mut odd = Oddities::default();
        if strict {
            pair(out, column, |bits, x| {
                *bits = ones(x.exceeds(limit));
                odd.missing |= x.is_missing();
                odd.bad |= !x.is_flag() & !x.is_missing();
            });
        } else {
            pair(out, column, |bits, x| {
                *bits = ones(x.exceeds(limit) & possible);
                odd.missing |= x.is_missing();
            });
        }
        odd
    })
}
