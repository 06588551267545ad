//! A matrix of occurrences whose columns have a weight for each class: rows times weights.

use super::far::Terms;
use super::{LANES, Scratch, Sums};
use crate::columns::{Value, each, pair};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::words::{Each, Layout, Matrix, plain};
use ndarray::{ArrayView1, ArrayView2};
use std::ops::Range;

/// Adds `constant[c] + sum of x[j] * weights[j][c]`, x being what a cell counts.
#[derive(Debug)]
pub struct Linear<'a> {
    pub(super) matrix: Matrix<'a>,
    /// `[column][class]`.
    weights: &'a [f64],
    /// Those of a dense matrix, as they are multiplied.
    dense: Vec<f64>,
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
        let dense = match matrix.layout() {
            Layout::Dense(_) => side_by_side(weights, n_classes),
            Layout::Sparse { .. } => vec![],
        };
        Ok(Linear { matrix, weights, dense, constant, steepest })
    }

    pub(super) fn add(&self, sums: &mut Sums, scratch: &mut Scratch) -> Result<(), Error> {
        for (sums, &constant) in sums.classes_mut().zip(self.constant) {
            sums.iter_mut().for_each(|sum| *sum += constant);
        }
        match self.matrix.layout() {
            Layout::Sparse { .. } => add_sparse(self, sums),
            Layout::Dense(_) => self.add_dense(sums, &mut scratch.row),
        }
    }

    /// Whether a row has terms beyond this, which its sum may not show.
    pub(super) fn reaches(&self, far: f64, row: usize) -> Result<bool, Error> {
        let (mut found, Some(steepest)) = (false, self.steepest) else {
            return Ok(false);
        };
        self.matrix.each_of(row, |_, x| found |= x * steepest > far)?;
        Ok(found)
    }

    /// Adds the constant and a term for each cell of a row.
    pub(super) fn add_terms(&self, row: usize, terms: &mut Terms) -> Result<(), Error> {
        let n_classes = self.constant.len();
        terms.add(self.constant.iter().copied());
        self.matrix.each_of(row, |column, x| {
            let weights = &self.weights[column as usize * n_classes..][..n_classes];
            terms.add(weights.iter().map(|weight| x * weight));
        })
    }

    /// A few rows at a time, whose totals stay in registers while columns are added one by one.
    fn add_dense(&self, sums: &mut Sums, room: &mut Vec<f64>) -> Result<(), Error> {
        let few = self.constant.len() <= FEW;
        match self.matrix.layout() {
            Layout::Dense(block) if few => {
                each!(block, view => self.by_row::<_, 8, FEW>(view, sums, room))
            }
            Layout::Dense(block) => {
                each!(block, view => self.by_row::<_, 4, MANY>(view, sums, room))
            }
            Layout::Sparse { .. } => Ok(()),
        }
    }

    fn by_row<T: Value, const ROWS: usize, const CLASSES: usize>(
        &self,
        view: &ArrayView2<T>,
        sums: &mut Sums,
        room: &mut Vec<f64>,
    ) -> Result<(), Error> {
        let width = self.matrix.n_columns();
        room.resize(room.len().max(ROWS * width), 0.0);
        for from in (0..sums.rows.len()).step_by(ROWS) {
            let rows = from..sums.rows.len().min(from + ROWS);
            for (at, cells) in rows.clone().zip(room.chunks_exact_mut(width.max(1))) {
                let row = sums.rows.row(at);
                if !read(&self.matrix, view.row(row), cells) {
                    return Err(self.matrix.refused(row));
                }
            }
            multiply::<ROWS, CLASSES>(&self.dense, width, rows, room, sums);
        }
        Ok(())
    }

    /// Adds a row's totals to its sums; an error if one of its cells is refused.
    #[inline(always)]
    fn finish(&self, row: usize, at: usize, totals: &[f64], sums: &mut Sums) -> Result<(), Error> {
        if totals.iter().any(|total| total.is_nan()) {
            self.matrix.each_of(row, |_, _| {})?;
        }
        let sums = sums.values[at..].iter_mut().step_by(sums.height);
        sums.zip(totals).for_each(|(sum, total)| *sum += total);
        Ok(())
    }
}

/// Classes whose totals stand side by side, where there are few of them, and where there are more.
const FEW: usize = 4;
const MANY: usize = 8;

/// Weights for some classes at a time, `[some of them][column][class]`, zeros where there are fewer.
fn side_by_side(weights: &[f64], n_classes: usize) -> Vec<f64> {
    let together = if n_classes <= FEW { FEW } else { MANY };
    let mut out = Vec::with_capacity(weights.len().next_multiple_of(together));
    for first in (0..n_classes).step_by(together) {
        for row in weights.chunks_exact(n_classes) {
            let class = |c: usize| row.get(first + c).copied().unwrap_or(0.0);
            out.extend((0..together).map(class));
        }
    }
    out
}

/// Copies what the cells of a row count; whether none is refused.
#[inline(always)]
fn read<T: Value>(matrix: &Matrix, row: ArrayView1<T>, out: &mut [f64]) -> bool {
    wide!({
        let mut refused = [0.0; LANES];
        match matrix.is_plain() {
            true => pair(out, row, |out, x| *out = plain(x)),
            false => pair(out, row, |out, x| *out = matrix.counts(x)),
        }
        let (lanes, rest) = out.as_chunks::<LANES>();
        for lane in lanes {
            refused.iter_mut().zip(lane).for_each(|(refused, x)| *refused += x * 0.0);
        }
        let rest = rest.iter().all(|x| !x.is_nan());
        rest && refused.iter().all(|x| !x.is_nan())
    })
}

/// Adds the products of some rows' counts and the weights, column by column.
#[inline(always)]
fn multiply<const ROWS: usize, const CLASSES: usize>(
    weights: &[f64],
    width: usize,
    rows: Range<usize>,
    counts: &[f64],
    sums: &mut Sums,
) {
    wide!({
        let (weights, _) = weights.as_chunks::<CLASSES>();
        let groups = sums.values.chunks_mut(CLASSES * sums.height);
        for (sums_of_group, weights) in groups.zip(weights.chunks_exact(width.max(1))) {
            let mut totals = [[0.0; CLASSES]; ROWS];
            for (class, sums) in sums_of_group.chunks_exact(sums.height).enumerate() {
                for (totals, sum) in totals.iter_mut().zip(&sums[rows.clone()]) {
                    totals[class] = *sum;
                }
            }
            let cells: [&[f64]; ROWS] =
                std::array::from_fn(|row| &counts[row * width..][..weights.len()]);
            for (column, weights) in weights.iter().enumerate() {
                for (cells, totals) in cells.iter().zip(&mut totals) {
                    let x = cells[column];
                    for (total, weight) in totals.iter_mut().zip(weights) {
                        *total += x * weight;
                    }
                }
            }
            for (class, sums) in sums_of_group.chunks_exact_mut(sums.height).enumerate() {
                for (totals, sum) in totals.iter().zip(&mut sums[rows.clone()]) {
                    *sum = totals[class];
                }
            }
        }
    });
}

/// Adds the cells of sparse rows, one after the other.
fn add_sparse(linear: &Linear, sums: &mut Sums) -> Result<(), Error> {
    wide!(match linear.constant.len() {
        1 => add_few::<1>(linear, sums),
        2 => add_few::<2>(linear, sums),
        3 => add_few::<3>(linear, sums),
        4 => add_few::<4>(linear, sums),
        n => {
            let mut totals = vec![0.0; n];
            for at in 0..sums.rows.len() {
                let row = sums.rows.row(at);
                totals.fill(0.0);
                linear.matrix.with_row(row, Many(linear.weights, &mut totals));
                linear.finish(row, at, &totals, sums)?;
            }
            Ok(())
        }
    })
}

/// Adds the weights of the columns of a row.
struct Many<'a>(&'a [f64], &'a mut [f64]);

impl Each for Many<'_> {
    #[inline(always)]
    fn see(self, cells: impl Iterator<Item = (u32, f64)>) {
        let Many(weights, totals) = self;
        let n = totals.len();
        for (column, x) in cells {
            let weights = &weights[column as usize * n..][..n];
            for (total, weight) in totals.iter_mut().zip(weights) {
                *total += x * weight;
            }
        }
    }
}

/// The same of few classes, with the totals in registers.
struct Few<'a, const N: usize>(&'a [[f64; N]], &'a mut [f64; N]);

impl<const N: usize> Each for Few<'_, N> {
    #[inline(always)]
    fn see(self, cells: impl Iterator<Item = (u32, f64)>) {
        let mut totals = [0.0; N];
        for (column, x) in cells {
            for (total, weight) in totals.iter_mut().zip(&self.0[column as usize]) {
                *total += x * weight;
            }
        }
        *self.1 = totals;
    }
}

#[inline(always)]
fn add_few<const N: usize>(linear: &Linear, sums: &mut Sums) -> Result<(), Error> {
    let (weights, _) = linear.weights.as_chunks::<N>();
    for at in 0..sums.rows.len() {
        let (row, mut totals) = (sums.rows.row(at), [0.0; N]);
        linear.matrix.with_row(row, Few(weights, &mut totals));
        linear.finish(row, at, &totals, sums)?;
    }
    Ok(())
}
