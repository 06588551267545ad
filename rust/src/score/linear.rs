//! A matrix of occurrences times weights: each column has a weight for every class.

use super::far::Terms;
use super::{FEATURES, LANES, STRIDE, Scratch, Sums, room};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::words::{Layout, Matrix, finite_or_nan};
use std::ops::Range;

/// Adds `constant[c] + sum of x[j] * weights[j][c]`, where x[j] is the count of a row's cell.
#[derive(Debug)]
pub struct Linear<'a> {
    pub(super) matrix: Matrix<'a>,
    /// `[column][class]`.
    weights: &'a [f64],
    constant: &'a [f64],
    /// The largest size of a weight if terms may cancel: if weights have both signs and cells may count more than 1.
    steepest: Option<f64>,
}

impl<'a> Linear<'a> {
    pub fn new(
        matrix: Matrix<'a>,
        weights: &'a [f64],
        constant: &'a [f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        let cells = matrix.n_columns().checked_mul(n_classes);
        demand(
            Some(weights.len()) == cells && constant.len() == n_classes,
            "weights must be (columns, classes), and constant (classes,)",
        )?;
        demand(
            weights.iter().chain(constant).all(|x| x.is_finite()),
            "weights and constant must be finite",
        )?;
        let (least, most) = weights.iter().fold((0.0, 0.0), |(a, b), &x| (x.min(a), x.max(b)));
        let both = !matrix.counts_once() && least < 0.0 && most > 0.0;
        let steepest = both.then_some(f64::max(-least, most));
        Ok(Linear { matrix, weights, constant, steepest })
    }

    pub(super) fn add(&self, sums: &mut Sums, scratch: &mut Scratch) -> Result<(), Error> {
        for (sums, &constant) in sums.classes_mut().zip(self.constant) {
            sums.iter_mut().for_each(|sum| *sum += constant);
        }
        match self.matrix.layout() {
            Layout::Sparse { .. } => add_sparse(self, sums, &mut scratch.row),
            Layout::Dense(_) => self.add_dense(sums, room(&mut scratch.reals)),
        }
    }

    /// Whether a row has terms beyond `far`, which may cancel in its sum.
    pub(super) fn reaches(&self, far: f64, row: usize) -> Result<bool, Error> {
        let Some(steepest) = self.steepest else {
            return Ok(false);
        };
        let mut reaches = false;
        self.matrix.each_of(row, &mut vec![], |_, x| reaches |= x * steepest > far)?;
        Ok(reaches)
    }

    /// Adds the constant and a term for each cell of a row.
    pub(super) fn add_terms(&self, row: usize, terms: &mut Terms) -> Result<(), Error> {
        let n_classes = self.constant.len();
        terms.add(self.constant.iter().copied());
        self.matrix.each_of(row, &mut vec![], |column, x| {
            let weights = &self.weights[column as usize * n_classes..][..n_classes];
            terms.add(weights.iter().map(|weight| x * weight));
        })
    }

    /// Adds the products tile by tile: some columns, each with all rows of the block side by side.
    fn add_dense(&self, sums: &mut Sums, tile: &mut [f64]) -> Result<(), Error> {
        let (n_columns, n_classes) = (self.matrix.n_columns(), self.constant.len());
        for first in (0..n_columns).step_by(FEATURES) {
            let columns = first..n_columns.min(first + FEATURES);
            self.read(columns.clone(), sums, tile)?;
            let weights = &self.weights[first * n_classes..];
            multiply(weights, columns.len(), n_classes, sums, tile);
        }
        Ok(())
    }

    /// Adds a row's totals to its sums; an error if one of its cells is refused.
    #[inline(always)]
    fn finish(&self, row: usize, at: usize, totals: &[f64], sums: &mut Sums) -> Result<(), Error> {
        if totals.iter().any(|total| total.is_nan()) {
            self.matrix.each_of(row, &mut vec![], |_, _| {})?;
        }
        let sums = sums.values[at..].iter_mut().step_by(sums.height);
        sums.zip(totals).for_each(|(sum, total)| *sum += total);
        Ok(())
    }

    /// Writes the counts of these columns to the tile.
    fn read(&self, columns: Range<usize>, sums: &Sums, tile: &mut [f64]) -> Result<(), Error> {
        let Layout::Dense(block) = self.matrix.layout() else {
            return Ok(());
        };
        let mut room = vec![];
        for at in 0..sums.rows.len() {
            let row = sums.rows.row(at);
            let cells = block.reals(row..row + 1, columns.clone(), &mut room);
            let is_valid = match cells.to_slice() {
                Some(cells) => write_row(&self.matrix, cells, tile, at),
                None => write_counts(cells.iter().map(|&x| self.matrix.counts(x)), tile, at),
            };
            if !is_valid {
                return Err(self.matrix.refused(row));
            }
        }
        Ok(())
    }
}

/// Writes the counts of a row's cells to place `at` of the tile's columns. Returns whether none is NaN, which stands for a cell
/// that is refused.
#[inline(always)]
fn write_counts(counts: impl Iterator<Item = f64>, tile: &mut [f64], at: usize) -> bool {
    let mut is_valid = true;
    for (x, column) in counts.zip(tile.chunks_exact_mut(STRIDE)) {
        is_valid &= !x.is_nan();
        column[at] = x;
    }
    is_valid
}

/// [`write_counts`] of cells that are side by side in memory.
#[inline(always)]
fn write_row(matrix: &Matrix, cells: &[f64], tile: &mut [f64], at: usize) -> bool {
    wide!(match matrix.is_plain() {
        true => write_counts(cells.iter().map(|&x| finite_or_nan(x)), tile, at),
        false => write_counts(cells.iter().map(|&x| matrix.counts(x)), tile, at),
    })
}

/// Adds the products of the tile's counts and the weights of its columns.
#[inline(always)]
fn multiply(weights: &[f64], n_columns: usize, n_classes: usize, sums: &mut Sums, tile: &[f64]) {
    wide!({
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
    });
}

/// Adds the products of sparse rows, row by row.
fn add_sparse(linear: &Linear, sums: &mut Sums, room: &mut Vec<f64>) -> Result<(), Error> {
    wide!(match linear.constant.len() {
        1 => add_few::<1>(linear, sums, room),
        2 => add_few::<2>(linear, sums, room),
        3 => add_few::<3>(linear, sums, room),
        4 => add_few::<4>(linear, sums, room),
        n => {
            let mut totals = vec![0.0; n];
            for at in 0..sums.rows.len() {
                let row = sums.rows.row(at);
                totals.fill(0.0);
                for (column, x) in linear.matrix.row(row, room).sparse() {
                    let weights = &linear.weights[column as usize * n..][..n];
                    for (total, weight) in totals.iter_mut().zip(weights) {
                        *total += x * weight;
                    }
                }
                linear.finish(row, at, &totals, sums)?;
            }
            Ok(())
        }
    })
}

/// [`add_sparse`] for few classes, with the totals in registers.
#[inline(always)]
fn add_few<const N: usize>(
    linear: &Linear,
    sums: &mut Sums,
    room: &mut Vec<f64>,
) -> Result<(), Error> {
    let (weights, _) = linear.weights.as_chunks::<N>();
    for at in 0..sums.rows.len() {
        let (row, mut totals) = (sums.rows.row(at), [0.0; N]);
        for (column, x) in linear.matrix.row(row, room).sparse() {
            for (total, weight) in totals.iter_mut().zip(&weights[column as usize]) {
                *total += x * weight;
            }
        }
        linear.finish(row, at, &totals, sums)?;
    }
    Ok(())
}
