//! Bell curves and their heavy-tailed kin.

use super::{LANES, ROWS, STRIDE, Scratch, Sums, room, tiles};
use crate::columns::{Chosen, Columns, pair};
use crate::error::{Error, Fault, demand};
use crate::scale::{FARTHEST, Scale};
use crate::simd::wide;
use ndarray::ArrayView1;
use std::ops::Range;

/// Per feature and class, `[feature][class]`: `constant - precision * (z - mean)^2`, or with a power
/// `constant - power * log1p(precision * (z - mean)^2)`.
#[derive(Debug)]
pub struct Normal<'a> {
    pub(super) columns: Columns<'a>,
    scale: Scale<'a>,
    /// Mean, precision and constant, `[class][feature]`: a class's curves side by side.
    curves: Vec<[f64; 3]>,
    power: Option<&'a [f64]>,
    n_classes: usize,
}

impl<'a> Normal<'a> {
    pub fn new(
        columns: Columns<'a>,
        scale: Scale<'a>,
        [mean, precision, constant]: [&[f64]; 3],
        power: Option<&'a [f64]>,
        n_classes: usize,
    ) -> Result<Self, Error> {
        let cells = columns.features().checked_mul(n_classes);
        for array in [Some(mean), Some(precision), Some(constant), power].into_iter().flatten() {
            demand(
                Some(array.len()) == cells,
                "mean, precision, constant and power must be (features, classes)",
            )?;
            demand(
                array.iter().all(|x| x.is_finite()),
                "mean, precision, constant and power must be finite",
            )?;
        }
        let curve = |cell: usize| [mean[cell], precision[cell], constant[cell]];
        let curves = (0..n_classes)
            .flat_map(|class| (class..mean.len()).step_by(n_classes).map(curve))
            .collect();
        Ok(Normal { columns, scale, curves, power, n_classes })
    }

    pub(super) fn add(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        for tile in tiles(features) {
            let missing = self.fill(tile.clone(), &sums.rows, room(&mut scratch.reals))?;
            match (self.power, missing) {
                (Some(power), _) => self.add_student(tile, power, sums, &scratch.reals),
                (None, false) => self.add_normal::<false>(tile, sums, &scratch.reals),
                (None, true) => self.add_normal::<true>(tile, sums, &scratch.reals),
            }
        }
        Ok(())
    }

    /// Writes z, `[feature][row]`, within reach; answers whether some are missing.
    fn fill(&self, features: Range<usize>, rows: &Chosen, tile: &mut [f64]) -> Result<bool, Error> {
        let mut missing = false;
        let columns = self.columns.each_of(features).zip(tile.chunks_exact_mut(STRIDE));
        for ((feature, block, column), tile) in columns {
            let out = &mut tile[..rows.len()];
            let (origin, inverse) = (self.scale.origin[feature], self.scale.inverse[feature]);
            let mut room = None;
            if fill_column(rows.reals(block, column, &mut room), origin, inverse, out) {
                missing |= self.mend(feature, rows, out)?;
            }
        }
        Ok(missing)
    }

    /// Brings far values within reach, refuses infinite ones; answers whether some are missing.
    fn mend(&self, feature: usize, rows: &Chosen, out: &mut [f64]) -> Result<bool, Error> {
        let mut missing = false;
        for (at, z) in out.iter_mut().enumerate() {
            let row = rows.row(at);
            if z.is_nan() {
                missing = true;
            } else if z.abs() > FARTHEST {
                let value = self.columns.value(row, feature);
                if value.real().is_infinite() {
                    return Err(self.columns.refused(Fault::Infinite, row, feature));
                }
                *z = self.scale.careful(value.real(), feature).clamp(-FARTHEST, FARTHEST);
            }
        }
        Ok(missing)
    }

    /// Adds features whose z stand in the tile; some of them are missing or not.
    fn add_normal<const MISSING: bool>(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        tile: &[f64],
    ) {
        wide!({
            let n_features = self.columns.features().max(1);
            // The minimum spares checks in the loop below.
            let chunks = sums.rows.len().div_ceil(LANES).min(ROWS / LANES);
            let curves = self.curves.chunks_exact(n_features);
            for (sums, curves) in sums.values.chunks_exact_mut(sums.height).zip(curves) {
                let curves = &curves[features.clone()];
                for (at, sums) in sums.as_chunks_mut::<LANES>().0[..chunks].iter_mut().enumerate() {
                    let mut totals = *sums;
                    for (curve, z) in curves.iter().zip(tile.chunks_exact(STRIDE)) {
                        let [mean, precision, constant] = *curve;
                        let z = z.as_chunks::<LANES>().0[at];
                        for (total, z) in totals.iter_mut().zip(z) {
                            let away = z - mean;
                            let log = constant - precision * (away * away);
                            *total += if MISSING && z.is_nan() { 0.0 } else { log };
                        }
                    }
                    *sums = totals;
                }
            }
        });
    }

    fn add_student(&self, features: Range<usize>, power: &[f64], sums: &mut Sums, tile: &[f64]) {
        let (n, n_features) = (sums.rows.len(), self.columns.features().max(1));
        let curves = self.curves.chunks_exact(n_features);
        for (class, (sums, curves)) in
            sums.values.chunks_exact_mut(sums.height).zip(curves).enumerate()
        {
            for (feature, z) in features.clone().zip(tile.chunks_exact(STRIDE)) {
                let [mean, precision, constant] = curves[feature];
                let power = power[feature * self.n_classes + class];
                for (total, z) in sums[..n].iter_mut().zip(z) {
                    let away = z - mean;
                    let log = constant - power * (precision * (away * away)).ln_1p();
                    *total += if z.is_nan() { 0.0 } else { log };
                }
            }
        }
    }
}

/// Writes z of a column; answers whether any is missing or out of reach.
#[inline(always)]
fn fill_column(column: ArrayView1<f64>, origin: f64, inverse: f64, out: &mut [f64]) -> bool {
    wide!({
        let mut within = true;
        pair(out, column, |z, x| {
            *z = (x - origin) * inverse;
            within &= z.abs() <= FARTHEST;
        });
        !within
    })
}
