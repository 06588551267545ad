//! Normal densities and Student's t, of one column each.

use super::{LANES, ROWS, STRIDE, Scratch, Sums, allocate_tile, tiles};
use crate::columns::{Columns, RowSelection, zip_mut};
use crate::error::{Error, Fault, demand};
use crate::scale::{FARTHEST, Scale};
use crate::simd::wide;
use ndarray::ArrayView1;
use std::ops::Range;

/// Adds, per feature and class, `constant - q` with `q = precision * (z - mean)^2`, or with a power `constant - power *
/// log1p(q)`; nothing where a value is missing.
#[derive(Debug)]
pub struct Normal<'a> {
    pub(super) columns: Columns<'a>,
    scale: Scale<'a>,
    /// `[class][feature]`: a class's curves side by side.
    curves: Vec<Curve>,
    has_power: bool,
}

/// The parameters of one feature in one class.
#[derive(Clone, Copy, Debug)]
struct Curve {
    mean: f64,
    precision: f64,
    constant: f64,
    /// 0 if curves have no power.
    power: f64,
}

impl<'a> Normal<'a> {
    /// Joins columns, whose numbers x are z = (x - origin) / unit on `scale`, and curves, log densities: constant - q, with q =
    /// precision * (z - mean)²; or, if there is a power, that of Student's t, constant - power * log(1 + q). All parameters are
    /// `[feature][class]`, mean and precision in z units. An error if one has another length or is not finite.
    pub fn new(
        columns: Columns<'a>,
        scale: Scale<'a>,
        [mean, precision, constant]: [&[f64]; 3],
        power: Option<&'a [f64]>,
        n_classes: usize,
    ) -> Result<Self, Error> {
        let size = columns.features().checked_mul(n_classes);
        for array in [Some(mean), Some(precision), Some(constant), power].into_iter().flatten() {
            demand(
                Some(array.len()) == size,
                "mean, precision, constant and power must be (features, classes)",
            )?;
            demand(
                array.iter().all(|x| x.is_finite()),
                "mean, precision, constant and power must be finite",
            )?;
        }
        // `i` is the index of a feature and class in these arrays.
        let curve = |i: usize| Curve {
            mean: mean[i],
            precision: precision[i],
            constant: constant[i],
            power: power.map_or(0.0, |power| power[i]),
        };
        // [class][feature].
        let curves = (0..n_classes)
            .flat_map(|class| (class..mean.len()).step_by(n_classes).map(curve))
            .collect();
        Ok(Normal { columns, scale, curves, has_power: power.is_some() })
    }

    /// Adds the log densities of these features (their indices) to the sums, `[class][row]`. An infinite number is an error.
    /// `scratch` has buffers whose contents have no meaning; `reals` becomes a tile of z, `[feature][row]`.
    pub(super) fn add(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        for tile in tiles(features) {
            self.fill_tile(tile.clone(), &sums.rows, allocate_tile(&mut scratch.reals))?;
            // q is the precision times the squared distance from the mean. Curves with a power are Student's t, others normal.
            match self.has_power {
                false => self.add_curves(tile, sums, &scratch.reals, |q, _| q),
                true => {
                    self.add_curves(tile, sums, &scratch.reals, |q, power| power * q.ln_1p());
                }
            }
        }
        Ok(())
    }

    /// Writes z = (x - origin) * inverse of the numbers x of these features (their indices) and rows to the tile,
    /// `[feature][row]`, at most [`FARTHEST`] from 0; NaN where x is missing. An infinite x is an error. The scale has each
    /// feature's origin and the inverse of its unit.
    fn fill_tile(
        &self,
        features: Range<usize>,
        rows: &RowSelection,
        tile: &mut [f64],
    ) -> Result<(), Error> {
        // `column` is the index of the feature's column in its block.
        let columns = self.columns.columns_of(features).zip(tile.chunks_exact_mut(STRIDE));
        for ((feature, block, column), tile) in columns {
            let z = &mut tile[..rows.len()];
            let (origin, inverse) = (self.scale.origin[feature], self.scale.inverse[feature]);
            let mut buffer = None; // for numbers that must be converted
            // False if some z is missing or too far from 0.
            if !write_z(rows.reals(block, column, &mut buffer), origin, inverse, z) {
                self.clamp(feature, rows, z)?;
            }
        }
        Ok(())
    }

    /// Clamps those z of a feature (its index) that are too far from 0 to [`FARTHEST`]. `z` has the feature's number x on the
    /// scale for each of these rows; an infinite x is an error.
    fn clamp(&self, feature: usize, rows: &RowSelection, z: &mut [f64]) -> Result<(), Error> {
        for (i, z) in z.iter_mut().enumerate() {
            if z.abs() > FARTHEST {
                let row = rows.row(i); // in the data
                let x = self.columns.value(row, feature).real(); // before it was scaled
                if x.is_infinite() {
                    return Err(self.columns.bad_value(Fault::Infinite, row, feature));
                }
                *z = self.scale.z_without_overflow(x, feature).clamp(-FARTHEST, FARTHEST);
            }
        }
        Ok(())
    }

    /// Adds the log densities of these features (their indices), whose z are in the tile, `[feature][row]`, to the sums,
    /// `[class][row]`. A curve, the parameters of a feature in a class, has the mean and the precision in z units, the log
    /// density at the mean (constant), and the exponent of Student's t (power). `fall(q, power)` is by how much the log density
    /// is below the constant, where q is the precision times the squared distance from the mean.
    #[inline(always)]
    fn add_curves(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        tile: &[f64],
        fall: impl Fn(f64, f64) -> f64,
    ) {
        wide!({
            let n_features = self.columns.features().max(1);
            // Chunks of [`LANES`] rows. The minimum lets the compiler drop the bounds checks in the loop below.
            let n_chunks = sums.rows.len().div_ceil(LANES).min(ROWS / LANES);
            let curves = self.curves.chunks_exact(n_features); // [feature] of each class
            for (sums, curves) in sums.classes_mut().zip(curves) {
                let curves = &curves[features.clone()];
                let (chunks, _) = sums.as_chunks_mut::<LANES>();
                // The sums of [`LANES`] rows in this class; `chunk` is the number of the chunk of rows.
                for (chunk, sums) in chunks[..n_chunks].iter_mut().enumerate() {
                    let mut totals = *sums;
                    for (curve, z) in curves.iter().zip(tile.chunks_exact(STRIDE)) {
                        let Curve { mean, precision, constant, power } = *curve;
                        let z = z.as_chunks::<LANES>().0[chunk];
                        for (total, z) in totals.iter_mut().zip(z) {
                            let distance = z - mean;
                            let log = constant - fall(precision * (distance * distance), power);
                            *total += if z.is_nan() { 0.0 } else { log };
                        }
                    }
                    *sums = totals;
                }
            }
        });
    }
}

/// Writes z = (x - origin) * inverse of each number x of a column to `z`, where `inverse` is 1 / unit. Returns whether no z is
/// missing and all are at most [`FARTHEST`] from 0.
#[inline(always)]
fn write_z(column: ArrayView1<f64>, origin: f64, inverse: f64, z: &mut [f64]) -> bool {
    wide!({
        let mut are_near = true;
        zip_mut(z, column, |z, x| {
            *z = (x - origin) * inverse;
            are_near &= z.abs() <= FARTHEST;
        });
        are_near
    })
}
