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
    /// `[class]`, as is `power`.
    constant: &'a [f64],
    power: Option<&'a [f64]>,
}

impl<'a> Ellipse<'a> {
    /// Joins columns, whose numbers x are z = (x - origin) / unit on `scale`, and the parameters of classes: `mean` is
    /// `[class][column]`, in z units; `whiten` lower triangular matrices, `[class][row][column]`, by which z less the mean is
    /// multiplied; `constant`, `[class]`, is the log density at the mean, and `power`, `[class]`, the exponent of Student's t,
    /// None for normal densities. An error if one has another length or is not finite.
    pub fn new(
        columns: Columns<'a>,
        scale: Scale<'a>,
        mean: &'a [f64],
        whiten: &'a [f64],
        constant: &'a [f64],
        power: Option<&'a [f64]>,
        n_classes: usize,
    ) -> Result<Self, Error> {
        let n_columns = columns.features();
        // Whether all lengths are right.
        let fits = mean.len() == n_classes * n_columns
            && whiten.len() == n_classes * n_columns * n_columns
            && constant.len() == n_classes
            && power.is_none_or(|power| power.len() == n_classes);
        demand(
            fits,
            "mean must be (classes, columns), whiten (classes, columns, columns), constant and power (classes,)",
        )?;
        let numbers = mean.iter().chain(whiten).chain(constant); // all parameters but the power
        demand(
            numbers.chain(power.unwrap_or(&[])).all(|x| x.is_finite()),
            "mean, whiten, constant and power must be finite",
        )?;
        Ok(Ellipse { columns, scale, mean, whiten, constant, power })
    }

    /// Adds the log density of each row in each class to the sums, `[class][row]`; nothing if one of the row's numbers is
    /// missing. An infinite number is an error. The density is that at z, the row on `scale`: `mean` is `[class][column]`,
    /// `whiten` `[class][row][column]`, `constant` the log density at the mean, and `power` the exponent of Student's t, None for
    /// normal densities. `buffer` is memory for two vectors.
    pub(super) fn add(&self, sums: &mut Sums, buffer: &mut Vec<f64>) -> Result<(), Error> {
        let n_columns = self.columns.features();
        buffer.clear();
        buffer.resize(2 * n_columns, 0.0);
        // One row's z, and its z less a class's mean, both [column].
        let (z, centred) = buffer.split_at_mut(n_columns);
        for i in 0..sums.rows.len() {
            read_row(&self.columns, &self.scale, sums.rows.row(i), z)?;
            if z.iter().any(|z| z.is_nan()) {
                continue;
            }
            for (class, sum) in sums.of_row_mut(i).enumerate() {
                let mean = &self.mean[class * n_columns..(class + 1) * n_columns];
                for ((centred, z), mean) in centred.iter_mut().zip(&*z).zip(mean) {
                    *centred = z - mean;
                }
                let n_cells = n_columns * n_columns; // of a class's matrix
                let whiten = &self.whiten[class * n_cells..(class + 1) * n_cells];
                let q = squared_length(whiten, centred); // of the whitened z less the mean
                *sum += match self.power {
                    None => self.constant[class] - 0.5 * q,
                    Some(power) => self.constant[class] - power[class] * q.ln_1p(),
                };
            }
        }
        Ok(())
    }
}

/// The squared length of the product of a lower triangular matrix, `[row][column]`, and `vector`, `[column]`.
#[inline(always)]
fn squared_length(matrix: &[f64], vector: &[f64]) -> f64 {
    wide!({
        let mut total = 0.0; // of the squares of the product's numbers
        for (i, row) in matrix.chunks_exact(vector.len().max(1)).enumerate() {
            let mut product = 0.0; // of the matrix's i-th row and the vector
            for (a, b) in row[..=i].iter().zip(vector) {
                product += a * b;
            }
            total += product * product;
        }
        total
    })
}
