//! Yes-or-no features: a value is above its threshold or not.

use super::{LANES, ROWS, STRIDE, Scratch, Sums, allocate_tile, tiles};
use crate::columns::{Columns, RowSelection, with_typed_levels, zip_mut};
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
    /// `[class][feature]`.
    logs: Vec<AnswerBits>,
}

/// The bits of a log-likelihood: those of the answer no, and those in which the answer yes differs.
#[derive(Clone, Copy, Debug)]
struct AnswerBits {
    no: u64,
    difference: u64,
}

/// Whether a column has missing values, and values that are not flags where only flags are allowed.
#[derive(Clone, Copy, Default)]
struct Oddities {
    has_missing: bool,
    has_bad: bool,
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
        let bits = |cell: usize| {
            let [no, yes] = [no[cell].to_bits(), yes[cell].to_bits()];
            AnswerBits { no, difference: no ^ yes }
        };
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
            let yes = allocate_tile(&mut scratch.bits);
            let present = allocate_tile(&mut scratch.more_bits);
            if self.fill_answers(tile.clone(), &sums.rows, yes)? {
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
            let n_chunks = sums.rows.len().div_ceil(LANES).min(ROWS / LANES);
            let logs = self.logs.chunks_exact(n_features);
            for (sums, logs) in sums.classes_mut().zip(logs) {
                let logs = &logs[features.clone()];
                let (chunks, _) = sums.as_chunks_mut::<LANES>();
                for (chunk, sums) in chunks[..n_chunks].iter_mut().enumerate() {
                    let mut totals = *sums;
                    let tiles = yes.chunks_exact(STRIDE).zip(present.chunks_exact(STRIDE));
                    for (&AnswerBits { no, difference }, (yes, present)) in logs.iter().zip(tiles) {
                        let yes = yes.as_chunks::<LANES>().0[chunk];
                        let present = present.as_chunks::<LANES>().0[chunk];
                        let answers = yes.iter().zip(present);
                        for (total, (yes, present)) in totals.iter_mut().zip(answers) {
                            let log = no ^ (difference & yes);
                            *total += f64::from_bits(if MISSING { log & present } else { log });
                        }
                    }
                    *sums = totals;
                }
            }
        });
    }

    /// Writes all ones where a value is yes, `[feature][row]`. Returns whether some values are missing.
    fn fill_answers(
        &self,
        features: Range<usize>,
        rows: &RowSelection,
        yes: &mut [u64],
    ) -> Result<bool, Error> {
        let mut has_missing = false;
        let columns = self.columns.columns_of(features).zip(yes.chunks_exact_mut(STRIDE));
        for ((feature, block, column), yes) in columns {
            with_typed_levels!(rows.levels(block, column, &mut None), column => {
                let rule = self.thresholds.rule(feature);
                let oddities = write_answers(column, rule, &mut yes[..rows.len()]);
                has_missing |= oddities.has_missing;
                if oddities.has_bad {
                    let first_bad = column.iter().position(|x| !x.is_flag() && !x.is_missing());
                    let row = rows.row(first_bad.unwrap_or(0));
                    return Err(self.columns.bad_value(Fault::NotZeroOrOne, row, feature));
                }
            });
        }
        Ok(has_missing)
    }

    /// Writes all ones where a value is present.
    fn fill_present(&self, features: Range<usize>, rows: &RowSelection, present: &mut [u64]) {
        let columns = self.columns.columns_of(features).zip(present.chunks_exact_mut(STRIDE));
        for ((_, block, column), present) in columns {
            with_typed_levels!(rows.levels(block, column, &mut None), column => {
                let present = &mut present[..rows.len()];
                zip_mut(present, column, |bits, x| *bits = all_ones_if(!x.is_missing()));
            });
        }
    }
}

#[inline(always)]
fn all_ones_if(condition: bool) -> u64 {
    (condition as u64).wrapping_neg()
}

/// Writes all ones where the answer of a column is yes.
#[inline(always)]
fn write_answers<T: Level>(
    column: ArrayView1<T>,
    Rule { limit, possible, strict }: Rule<T>,
    out: &mut [u64],
) -> Oddities {
    wide!({
        let mut oddities = Oddities::default();
        if strict {
            zip_mut(out, column, |bits, x| {
                *bits = all_ones_if(x.exceeds(limit));
                oddities.has_missing |= x.is_missing();
                oddities.has_bad |= !x.is_flag() & !x.is_missing();
            });
        } else {
            zip_mut(out, column, |bits, x| {
                *bits = all_ones_if(x.exceeds(limit) & possible);
                oddities.has_missing |= x.is_missing();
            });
        }
        oddities
    })
}
