//! A matrix of occurrences whose columns have a weight for each class: rows times weights.

use super::far::Terms;
use super::{FEATURES, LANES, STRIDE, Scratch, Sums, room};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::words::{Layout, Matrix, finite_or_nan};
use std::ops::Range;

/// Adds `constant[c] + sum of x[j] * weights[j][c]`, x being what a cell counts.
#[derive(Debug)]
pub struct Linear<'a> {
    pub(super) matrix: Matrix<'a>,
    /// `[column][class]`.
    weights: &'a [f64],
    constant: &'a [f64],
    /// The largest weight, where terms may cancel: weights of both signs, and cells that count more than one.
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

    /// Whether a row has terms beyond this, which its sum may not show.
    pub(super) fn reaches(&self, far: f64, row: usize) -> Result<bool, Error> {
        let (mut found, Some(steepest)) = (false, self.steepest) else {
            return Ok(false);
        };
        self.matrix.each_of(row, &mut vec![], |_, x| found |= x * steepest > far)?;
        Ok(found)
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

    /// Some columns at a time, and of each the rows side by side.
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

    /// What the cells of these columns count.
    fn read(&self, columns: Range<usize>, sums: &Sums, tile: &mut [f64]) -> Result<(), Error> {
        let Layout::Dense(block) = self.matrix.layout() else {
            return Ok(());
        };
        let mut room = vec![];
        for at in 0..sums.rows.len() {
            let row = sums.rows.row(at);
            let cells = block.reals(row..row + 1, columns.clone(), &mut room);
            let fine = match cells.to_slice() {
                Some(cells) => read(&self.matrix, cells, tile, at),
                None => put(cells.iter().map(|&x| self.matrix.counts(x)), tile, at),
            };
            if !fine {
                return Err(self.matrix.refused(row));
            }
        }
        Ok(())
    }
}

/// Copies what cells of a row count to its place in the tile; whether none is refused.
#[inline(always)]
fn put(cells: impl Iterator<Item = f64>, tile: &mut [f64], at: usize) -> bool {
    let mut fine = true;
    for (x, column) in cells.zip(tile.chunks_exact_mut(STRIDE)) {
        fine &= !x.is_nan();
        column[at] = x;
    }
    fine
}

#[inline(always)]
fn read(matrix: &Matrix, cells: &[f64], tile: &mut [f64], at: usize) -> bool {
    wide!(match matrix.is_plain() {
        true => put(cells.iter().map(|&x| finite_or_nan(x)), tile, at),
        false => put(cells.iter().map(|&x| matrix.counts(x)), tile, at),
    })
}

/// Adds the products of some columns, whose counts stand in the tile, and their weights.
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

/// Adds the cells of sparse rows, one after the other.
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

/// The same of few classes, with the totals in registers.
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
