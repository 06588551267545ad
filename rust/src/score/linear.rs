//! A matrix of occurrences whose columns have a weight for each class: rows times weights.

use super::{FEATURES, LANES, STRIDE, Scratch, Sums, room};
use crate::columns::{Columns, Value, each, pair};
use crate::error::{Error, Fault, demand};
use crate::simd::{Loop, wide};

/// Adds `constant[c] + sum of x[j] * weights[j][c]`; x is 1 above the threshold and 0 below, if there is one. NaN counts nothing,
/// or is refused.
#[derive(Debug)]
pub struct Linear<'a> {
    pub(super) columns: Columns<'a>,
    threshold: Option<f64>,
    skip: bool,
    /// `[column][class]`.
    weights: &'a [f64],
    constant: &'a [f64],
}

impl<'a> Linear<'a> {
    pub fn new(
        columns: Columns<'a>,
        threshold: Option<f64>,
        skip: bool,
        weights: &'a [f64],
        constant: &'a [f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        let cells = columns.features().checked_mul(n_classes);
        demand(
            Some(weights.len()) == cells && constant.len() == n_classes,
            "weights must be (columns, classes), and constant (classes,)",
        )?;
        demand(
            weights.iter().chain(constant).all(|x| x.is_finite()),
            "weights and constant must be finite",
        )?;
        Ok(Linear {
            columns,
            threshold,
            skip,
            weights,
            constant,
        })
    }

    pub(super) fn add(&self, sums: &mut Sums, scratch: &mut Scratch) -> Result<(), Error> {
        let tile = room(&mut scratch.reals);
        for (sums, &constant) in sums.classes_mut().zip(self.constant) {
            sums.iter_mut().for_each(|sum| *sum += constant);
        }
        let n_columns = self.columns.features();
        for first in (0..n_columns).step_by(FEATURES) {
            let columns = first..n_columns.min(first + FEATURES);
            self.read(columns.clone(), sums, tile)?;
            let weights = &self.weights[first * self.constant.len()..];
            wide(Multiply(
                weights,
                columns.len(),
                self.constant.len(),
                sums,
                tile,
            ));
        }
        Ok(())
    }

    /// What these columns count, column by column.
    fn read(
        &self,
        columns: std::ops::Range<usize>,
        sums: &Sums,
        tile: &mut [f64],
    ) -> Result<(), Error> {
        let (n, first) = (sums.rows.len(), columns.start);
        for (from, block, within) in self.columns.pieces(columns) {
            each!(block, view => {
                for (j, column) in within.enumerate() {
                    let out = &mut tile[(from - first + j) * STRIDE..][..n];
                    let (mut room, mut fine) = (None, true);
                    pair(out, sums.rows.of(view, column, &mut room), |out, x| {
                        let x = x.real();
                        let skipped = self.skip && x.is_nan();
                        // Nothing of infinity, or of NaN, is NaN.
                        fine &= skipped || x * 0.0 == 0.0;
                        *out = match self.threshold {
                            Some(limit) => f64::from(u8::from(x > limit)),
                            None if skipped => 0.0,
                            None => x,
                        };
                    });
                    if !fine {
                        return Err(self.refused(from + j, sums));
                    }
                }
            });
        }
        Ok(())
    }

    fn refused(&self, feature: usize, sums: &Sums) -> Error {
        let number = |at| self.columns.value(sums.rows.row(at), feature);
        let wrong = |&at: &usize| {
            let x = number(at).real();
            x.is_infinite() || (x.is_nan() && !self.skip)
        };
        let at = (0..sums.rows.len()).find(wrong).unwrap_or(0);
        let fault = match number(at).real().is_nan() {
            true => Fault::Missing,
            false => Fault::Infinite,
        };
        Error::BadValue {
            fault,
            feature,
            row: sums.rows.row(at),
            value: number(at),
        }
    }
}

/// Adds the products of some columns, whose counts stand in the tile, and their weights.
struct Multiply<'a, 'b>(&'a [f64], usize, usize, &'a mut Sums<'b>, &'a [f64]);

impl Loop for Multiply<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Multiply(weights, n_columns, n_classes, sums, tile) = self;
        let height = sums.height;
        for (class, sums) in sums.values.chunks_exact_mut(height).enumerate() {
            let (groups, _) = sums.as_chunks_mut::<LANES>();
            for (g, group) in groups.iter_mut().enumerate() {
                let mut totals = *group;
                for j in 0..n_columns {
                    let weight = weights[j * n_classes + class];
                    let Some(x) = tile[j * STRIDE + g * LANES..].first_chunk::<LANES>() else {
                        return;
                    };
                    for lane in 0..LANES {
                        totals[lane] += x[lane] * weight;
                    }
                }
                *group = totals;
            }
        }
    }
}
