//! Yes-or-no features: a value is above its threshold or not.

use super::{LANES, ROWS, STRIDE, Scratch, Sums, allocate_tile, tiles};
use crate::columns::{Columns, RowSelection, with_typed_levels, zip_mut};
use crate::error::{Error, Fault, demand};
use crate::flags::{Level, Rule, Thresholds};
use crate::simd::wide;
use ndarray::ArrayView1;
use std::ops::Range;

/// A value above its threshold adds the log-likelihood of yes, another that of no, a missing one nothing.
#[derive(Debug)]
pub struct Flags<'a> {
    pub(super) columns: Columns<'a>,
    thresholds: Thresholds<'a>,
    /// The log-likelihoods of both answers, `[class][feature]`.
    logs: Vec<AnswerBits>,
}

/// The bits of the log-likelihood of the answer no, and those bits in which that of the answer yes differs (xor).
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
    /// Joins columns, the threshold above which a number of each is a yes, and the log-likelihoods of the answers, `no` and
    /// `yes`, `[feature][class]`. An error if one has another length.
    pub fn new(
        columns: Columns<'a>,
        thresholds: Thresholds<'a>,
        no: &[f64],
        yes: &[f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        let size = columns.features().checked_mul(n_classes);
        demand(
            Some(no.len()) == size && Some(yes.len()) == size,
            "no and yes must be (features, classes)",
        )?;
        // `i` is the index of a feature and class in `no` and `yes`.
        let bits = |i: usize| {
            // The bits of the doubles; those of yes are kept as the difference (xor) to those of no.
            let [no_bits, yes_bits] = [no[i].to_bits(), yes[i].to_bits()];
            AnswerBits { no: no_bits, difference: no_bits ^ yes_bits }
        };
        // The bits of both log-likelihoods, [class][feature].
        let logs = (0..n_classes)
            .flat_map(|class| (class..no.len()).step_by(n_classes).map(bits))
            .collect();
        Ok(Flags { columns, thresholds, logs })
    }

    /// Adds the log-likelihoods of these features (their indices) to the sums, `[class][row]`. A number other than 0, 1 and NaN
    /// where only these are allowed is an error. `scratch` has buffers for tiles whose contents have no meaning.
    pub(super) fn add(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        for tile in tiles(features) {
            // All ones where a value is yes, and where it is not missing, `[feature][row]`.
            let yes = allocate_tile(&mut scratch.bits);
            let present = allocate_tile(&mut scratch.more_bits);
            let has_missing = self.fill_answers(tile.clone(), &sums.rows, yes)?;
            if has_missing {
                self.fill_present(tile.clone(), &sums.rows, present);
                self.add_flags::<true>(tile, sums, yes, present);
            } else {
                self.add_flags::<false>(tile, sums, yes, present);
            }
        }
        Ok(())
    }

    /// Adds the log-likelihoods of these features (their indices) to the sums, `[class][row]`. The tiles `yes` and `present`,
    /// `[feature][row]`, have 64 ones where a number is above its threshold (a yes), and where it is not missing. Without
    /// `MISSING`, none is missing and `present` is not read.
    fn add_flags<const MISSING: bool>(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        yes: &[u64],
        present: &[u64],
    ) {
        wide!({
            let n_features = self.columns.features().max(1);
            // Chunks of [`LANES`] rows. The minimum lets the compiler drop the bounds checks in the loop below.
            let n_chunks = sums.rows.len().div_ceil(LANES).min(ROWS / LANES);
            // Of each class the bits of the log-likelihoods, [feature]: of no, and in which yes differs.
            let logs = self.logs.chunks_exact(n_features);
            for (sums, logs) in sums.classes_mut().zip(logs) {
                let logs = &logs[features.clone()];
                let (chunks, _) = sums.as_chunks_mut::<LANES>();
                // The sums of [`LANES`] rows in this class; `chunk` is the number of the chunk of rows.
                for (chunk, sums) in chunks[..n_chunks].iter_mut().enumerate() {
                    let mut totals = *sums;
                    // Of a feature: the bits of its log-likelihoods, and those of the answers in all rows.
                    let tiles = yes.chunks_exact(STRIDE).zip(present.chunks_exact(STRIDE));
                    for (&AnswerBits { no, difference }, (yes, present)) in logs.iter().zip(tiles) {
                        let yes = yes.as_chunks::<LANES>().0[chunk];
                        let present = present.as_chunks::<LANES>().0[chunk];
                        let answers = yes.iter().zip(present);
                        for (total, (yes, present)) in totals.iter_mut().zip(answers) {
                            let log = no ^ (difference & yes); // the bits of the log-likelihood
                            *total += f64::from_bits(if MISSING { log & present } else { log });
                        }
                    }
                    *sums = totals;
                }
            }
        });
    }

    /// Writes into the tile `yes`, `[feature][row]`, 64 ones where a number of these features (their indices) is above its
    /// threshold in these rows, else 64 zeros. Returns whether some numbers are missing. The first number that must be 0 or 1 and
    /// is not is an error.
    fn fill_answers(
        &self,
        features: Range<usize>,
        rows: &RowSelection,
        yes: &mut [u64],
    ) -> Result<bool, Error> {
        let mut has_missing = false;
        let columns = self.columns.columns_of(features).zip(yes.chunks_exact_mut(STRIDE));
        for ((feature, block, column), yes) in columns {
            // The numbers of the block's column in these rows, in place or converted into `buffer`, which is allocated if needed.
            // `column` is the index of the feature's column in the block.
            let mut buffer = None;
            with_typed_levels!(rows.levels(block, column, &mut buffer), values => {
                // Above which number the answer is yes, and whether only 0 and 1 are allowed.
                let rule = self.thresholds.rule(feature);
                let oddities = write_answers(values, rule, &mut yes[..rows.len()]);
                has_missing |= oddities.has_missing;
                if oddities.has_bad {
                    let first_bad = values.iter().position(|x| !x.is_flag() && !x.is_missing());
                    let row = rows.row(first_bad.unwrap_or(0)); // in the data
                    return Err(self.columns.bad_value(Fault::NotZeroOrOne, row, feature));
                }
            });
        }
        Ok(has_missing)
    }

    /// Writes into the tile `present`, `[feature][row]`, all ones where a value of these features (their indices) is not missing
    /// in these rows, else zeros.
    fn fill_present(&self, features: Range<usize>, rows: &RowSelection, present: &mut [u64]) {
        let columns = self.columns.columns_of(features).zip(present.chunks_exact_mut(STRIDE));
        for ((_, block, column), present) in columns {
            // The numbers of the block's column in these rows, in place or converted into `buffer`, which is allocated if needed.
            // `column` is the index of the feature's column in the block.
            let mut buffer = None;
            with_typed_levels!(rows.levels(block, column, &mut buffer), values => {
                let present = &mut present[..rows.len()];
                zip_mut(present, values, |bits, x| *bits = all_ones_if(!x.is_missing()));
            });
        }
    }
}

/// All bits set, or none.
#[inline(always)]
fn all_ones_if(condition: bool) -> u64 {
    (condition as u64).wrapping_neg()
}

/// Writes to `out`, for each of a column's numbers x, 64 ones if it is above its threshold (above `limit`, if a number of this
/// type can be: `possible`), else 64 zeros. Returns whether numbers are missing, and, if the rule is `strict`, by which they must
/// be 0 or 1, whether some are neither.
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
