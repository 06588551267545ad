//! Bell curves and their heavy-tailed kin.

use super::{FEATURES, ROWS, STRIDE, Scratch, Sums};
use crate::columns::{Columns, Value, each};
use crate::error::{Error, Fault, demand};
use crate::scale::{FARTHEST, Scale};
use ndarray::{ArrayView1, ArrayViewMut1, Zip, s};
use std::ops::Range;

/// Rows whose sums are kept in registers while features are added.
const LANES: usize = 8;

/// Per feature and class, `[feature][class]`: `constant - precision * (z - mean)^2`, or with a power
/// `constant - power * log1p(precision * (z - mean)^2)`.
#[derive(Debug)]
pub struct Normal<'a> {
    pub(super) columns: Columns<'a>,
    scale: Scale<'a>,
    mean: &'a [f64],
    precision: &'a [f64],
    constant: &'a [f64],
    power: Option<&'a [f64]>,
    n_classes: usize,
}

impl<'a> Normal<'a> {
    pub fn new(
        columns: Columns<'a>,
        scale: Scale<'a>,
        [mean, precision, constant]: [&'a [f64]; 3],
        power: Option<&'a [f64]>,
        n_classes: usize,
    ) -> Result<Self, Error> {
        let cells = columns.features().checked_mul(n_classes);
        for array in [Some(mean), Some(precision), Some(constant), power]
            .into_iter()
            .flatten()
        {
            demand(
                Some(array.len()) == cells,
                "mean, precision, constant and power must be (features, classes)",
            )?;
            demand(
                array.iter().all(|x| x.is_finite()),
                "mean, precision, constant and power must be finite",
            )?;
        }
        Ok(Normal {
            columns,
            scale,
            mean,
            precision,
            constant,
            power,
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
            let missing = self.fill(tile.clone(), sums.rows.clone(), &mut scratch.reals)?;
            match (self.power, missing) {
                (Some(power), _) => self.add_student(tile, power, sums, &scratch.reals),
                (None, false) => self.add_normal::<false>(tile, sums, &scratch.reals),
                (None, true) => self.add_normal::<true>(tile, sums, &scratch.reals),
            }
        }
        Ok(())
    }

    /// Writes z, `[feature][row]`, within reach; answers whether some are missing.
    fn fill(
        &self,
        features: Range<usize>,
        rows: Range<usize>,
        tile: &mut [f64],
    ) -> Result<bool, Error> {
        let mut missing = false;
        for (first, block, columns) in self.columns.pieces(features.clone()) {
            for (feature, column) in (first..).zip(columns) {
                let at = (feature - features.start) * STRIDE;
                let out = &mut tile[at..at + rows.len()];
                let (origin, inverse) = (self.scale.origin[feature], self.scale.inverse[feature]);
                let odd = each!(block, view => {
                    fill_column(view.slice(s![rows.clone(), column]), origin, inverse, out)
                });
                if odd {
                    missing |= self.mend(feature, rows.clone(), out)?;
                }
            }
        }
        Ok(missing)
    }

    /// Brings far values within reach, refuses infinite ones; answers whether some are missing.
    fn mend(&self, feature: usize, rows: Range<usize>, out: &mut [f64]) -> Result<bool, Error> {
        let mut missing = false;
        for (row, z) in rows.zip(out) {
            if z.is_nan() {
                missing = true;
            } else if z.abs() > FARTHEST {
                let value = self.columns.value(row, feature);
                if value.real().is_infinite() {
                    return Err(infinite(&self.columns, row, feature));
                }
                *z = self
                    .scale
                    .careful(value.real(), feature)
                    .clamp(-FARTHEST, FARTHEST);
            }
        }
        Ok(missing)
    }

    fn add_normal<const MISSING: bool>(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        tile: &[f64],
    ) {
        let n = sums.rows.len().next_multiple_of(LANES);
        for (class, sums) in sums.values.chunks_exact_mut(ROWS).enumerate() {
            for (at, sums) in sums[..n].chunks_exact_mut(LANES).enumerate() {
                let mut total = [0.0; LANES];
                total.copy_from_slice(sums);
                for (j, feature) in features.clone().enumerate() {
                    let cell = feature * self.n_classes + class;
                    let (mean, precision) = (self.mean[cell], self.precision[cell]);
                    let constant = self.constant[cell];
                    let from = j * STRIDE + at * LANES;
                    for (total, z) in total.iter_mut().zip(&tile[from..from + LANES]) {
                        let away = z - mean;
                        let log = constant - precision * (away * away);
                        *total += if MISSING && z.is_nan() { 0.0 } else { log };
                    }
                }
                sums.copy_from_slice(&total);
            }
        }
    }

    fn add_student(&self, features: Range<usize>, power: &[f64], sums: &mut Sums, tile: &[f64]) {
        let n = sums.rows.len();
        for (class, sums) in sums.values.chunks_exact_mut(ROWS).enumerate() {
            for (j, feature) in features.clone().enumerate() {
                let cell = feature * self.n_classes + class;
                let (mean, precision) = (self.mean[cell], self.precision[cell]);
                let (constant, power) = (self.constant[cell], power[cell]);
                for (total, z) in sums[..n].iter_mut().zip(&tile[j * STRIDE..]) {
                    let away = z - mean;
                    let log = constant - power * (precision * (away * away)).ln_1p();
                    *total += if z.is_nan() { 0.0 } else { log };
                }
            }
        }
    }
}

pub(super) fn infinite(columns: &Columns, row: usize, feature: usize) -> Error {
    Error::BadValue {
        fault: Fault::Infinite,
        feature,
        row,
        value: columns.value(row, feature),
    }
}

/// z of a column; answers whether any is missing or out of reach.
#[inline(always)]
fn fill_column<T: Value>(
    column: ArrayView1<T>,
    origin: f64,
    inverse: f64,
    out: &mut [f64],
) -> bool {
    let mut odd = false;
    let mut set = |z: &mut f64, x: T| {
        *z = (x.real() - origin) * inverse;
        odd |= !(z.abs() <= FARTHEST);
    };
    match column.to_slice() {
        Some(column) => out.iter_mut().zip(column).for_each(|(z, &x)| set(z, x)),
        None => Zip::from(ArrayViewMut1::from(out))
            .and(column)
            .for_each(|z, &x| set(z, x)),
    }
    odd
}
