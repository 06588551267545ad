//! Normal densities and Student's t, of several columns jointly.

use super::{Sums, read_row};
use crate::columns::Columns;
use crate::error::{Error, demand};
use crate::scale::Scale;
use crate::simd::wide;

/// Adds, per class, `constant - q / 2`, or with a power `constant - power * log1p(q)`, where q is the squared length of
/// `whiten * (z - mean)`. A row with a missing value adds nothing.
#[derive(Debug)]
pub struct Ellipse<'a> {
    pub(super) columns: Columns<'a>,
    scale: Scale<'a>,
    /// `[class][column]`.
    mean: &'a [f64],
    /// Lower triangular matrices, `[class][row][column]`.
    whiten: &'a [f64],
    constant: &'a [f64],
    power: Option<&'a [f64]>,
}

impl<'a> Ellipse<'a> {
    pub fn new(
        columns: Columns<'a>,
        scale: Scale<'a>,
        mean: &'a [f64],
        whiten: &'a [f64],
        constant: &'a [f64],
        power: Option<&'a [f64]>,
        n_classes: usize,
    ) -> Result<Self, Error> {
        let d = columns.features();
        let fits = mean.len() == n_classes * d
            && whiten.len() == n_classes * d * d
            && constant.len() == n_classes
            && power.is_none_or(|power| power.len() == n_classes);
        demand(
            fits,
            "mean must be (classes, columns), whiten (classes, columns, columns), constant and power (classes,)",
        )?;
        let numbers = mean.iter().chain(whiten).chain(constant);
        demand(
            numbers.chain(power.unwrap_or(&[])).all(|x| x.is_finite()),
            "mean, whiten, constant and power must be finite",
        )?;
        Ok(Ellipse { columns, scale, mean, whiten, constant, power })
    }

    pub(super) fn add(&self, sums: &mut Sums, buffer: &mut Vec<f64>) -> Result<(), Error> {
        let d = self.columns.features();
        buffer.clear();
        buffer.resize(2 * d, 0.0);
        let (z, centred) = buffer.split_at_mut(d);
        for i in 0..sums.rows.len() {
            read_row(&self.columns, &self.scale, sums.rows.row(i), z)?;
            if z.iter().any(|z| z.is_nan()) {
                continue;
            }
            let sums = sums.values[i..].iter_mut().step_by(sums.padded_rows);
            for (class, sum) in sums.enumerate() {
                let mean = &self.mean[class * d..(class + 1) * d];
                for ((out, z), mean) in centred.iter_mut().zip(&*z).zip(mean) {
                    *out = z - mean;
                }
                let whiten = &self.whiten[class * d * d..(class + 1) * d * d];
                let q = squared_length(whiten, centred);
                *sum += match self.power {
                    None => self.constant[class] - 0.5 * q,
                    Some(power) => self.constant[class] - power[class] * q.ln_1p(),
                };
            }
        }
        Ok(())
    }
}

/// The squared length of a lower triangular matrix times a vector.
#[inline(always)]
fn squared_length(matrix: &[f64], x: &[f64]) -> f64 {
    wide!({
        let mut total = 0.0;
        for (i, row) in matrix.chunks_exact(x.len().max(1)).enumerate() {
            let mut product = 0.0;
            for (a, b) in row[..=i].iter().zip(x) {
                product += a * b;
            }
            total += product * product;
        }
        total
    })
}
