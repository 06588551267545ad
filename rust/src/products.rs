//! Sums of z and of the products of all pairs of z, per class, of a block of columns, as whole numbers.
//!
//! z is rounded once to a grid of 2^-57, as in [`crate::moments`], and the products are exact. Near rows (every |z| up to 16)
//! that weigh less than 2^64 are added in 256 bits, all other rows in as many as it takes. A row with a missing value adds
//! nothing.

use crate::classes::{Rows, Weights};
use crate::columns::Columns;
use crate::error::Error;
use crate::integers::{Sum, product};
use crate::moments::{ClassSums, Data, FarSum, NEAR, near_grid, on_grid};
use crate::scale::{FARTHEST, Scale};
use crate::threads;
use std::collections::HashMap;
use std::ops::Range;

/// Rows whose z are computed together. 64 to 8,192 were equally fast (50,000 rows of 10 columns: 18 to 19 ms).
const BLOCK: usize = 1024;
/// Pieces of rows, at most: each has sums of its own.
const MOST_PIECES: usize = 64;

/// How many columns and pairs of columns there are.
pub fn cells(columns: usize) -> usize {
    columns + columns * (columns + 1) / 2
}

/// Sums over the rows of each class: weights `[class]` and sums `[class][cell]`. The cells are the columns, then the pairs of
/// columns (0, 0), (1, 0), (1, 1), (2, 0) and so on.
pub fn count_products(
    columns: &Columns,
    scale: &Scale,
    rows: &Rows,
    threads: usize,
) -> Result<ClassSums, Error> {
    columns.demand_rows(rows.len())?;
    let (n, d) = (rows.len(), columns.features());
    let threads = threads::worth(threads, n.saturating_mul(cells(d)));
    // A piece has so many rows that its sums are small beside them: a function of the shapes alone.
    let piece = n.div_ceil(MOST_PIECES).max(16 * rows.n_classes * d).next_multiple_of(BLOCK);
    let piece_sums = threads::try_ranges(threads, n, piece, |range| {
        PieceSums::new(rows, d).count(Data { columns, scale, rows }, range)
    })?;
    let mut total = PieceSums::new(rows, d);
    piece_sums.iter().for_each(|sums| total.merge(sums));
    ClassSums::new(
        rows.digits(),
        (&total.rows, vec![rows.n_classes]),
        (&total.near, vec![rows.n_classes, cells(d)]),
        &total.far,
    )
}

struct PieceSums {
    columns: usize,
    /// z of a block of rows, `[row][column]`.
    z: Vec<f64>,
    /// One row's z as whole numbers.
    whole: Vec<i64>,
    /// The weight of the rows of each class.
    rows: Vec<i128>,
    /// Sums `[class][cell]`; what near rows add, and what far ones add.
    near: Vec<Sum>,
    far: HashMap<usize, FarSum>,
}

impl PieceSums {
    fn new(rows: &Rows, columns: usize) -> Self {
        PieceSums {
            columns,
            z: vec![],
            whole: vec![0; columns],
            rows: vec![0; rows.n_classes],
            near: vec![Sum::default(); rows.n_classes * cells(columns)],
            far: HashMap::new(),
        }
    }

    fn merge(&mut self, other: &PieceSums) {
        let rows = self.rows.iter_mut().zip(&other.rows);
        rows.for_each(|(a, b)| *a += b);
        let sums = self.near.iter_mut().zip(&other.near);
        sums.for_each(|(a, b)| a.merge(b));
        for (&cell, sum) in &other.far {
            self.far.entry(cell).or_default().merge(sum);
        }
    }

    fn count(mut self, data: Data, range: Range<usize>) -> Result<PieceSums, Error> {
        for from in range.clone().step_by(BLOCK) {
            let part = from..range.end.min(from + BLOCK);
            self.read(data, part.clone());
            for row in part.clone().filter(|&row| data.rows.classes[row] >= 0) {
                self.add(data, row, row - part.start)?;
            }
        }
        self.z = vec![];
        Ok(self)
    }

    /// Computes z of these rows; NaN where a value is missing.
    fn read(&mut self, data: Data, rows: Range<usize>) {
        let d = self.columns;
        self.z.clear();
        self.z.resize(rows.len() * d, 0.0);
        let mut room = vec![];
        for (feature, block, column) in data.columns.each_of(0..d) {
            let values = block.reals(rows.clone(), column..column + 1, &mut room);
            for (at, &x) in values.iter().enumerate() {
                self.z[at * d + feature] = data.scale.careful(x, feature);
            }
        }
    }

    /// Adds the row `row` of the data, which is row `at` of the block.
    fn add(&mut self, data: Data, row: usize, at: usize) -> Result<(), Error> {
        let (d, rows) = (self.columns, data.rows);
        let class = rows.classes[row] as usize;
        let z = &self.z[at * d..(at + 1) * d];
        if let Some(feature) = z.iter().position(|z| z.abs() > FARTHEST) {
            data.careful_z(row, feature)?;
        }
        if z.iter().any(|z| z.is_nan()) {
            return Ok(());
        }
        let weight = rows.weight(row);
        self.rows[class] += weight as i128;
        let base = class * cells(d);
        if weight >> 64 == 0 && z.iter().all(|z| z.abs() <= NEAR) {
            for (whole, &z) in self.whole.iter_mut().zip(z) {
                *whole = near_grid(z);
            }
            let sums = &mut self.near[base..base + cells(d)];
            match rows.weights {
                // Without weights this takes half the time: 6 ms instead of 15 for 2,000 rows of 60 columns.
                Weights::Ones => {
                    add_near(&self.whole, 1, sums, |sum, a, b| {
                        sum.add(i128::from(a) * i128::from(b));
                    });
                }
                _ => add_near(&self.whole, weight as i128, sums, |sum, a, b| {
                    let heavy = weight * u128::from(a.unsigned_abs());
                    sum.add_product(heavy, b.unsigned_abs(), (a < 0) != (b < 0));
                }),
            }
            return Ok(());
        }
        let numbers: Vec<(u64, u32, bool)> = z.iter().map(|&z| on_grid(z)).collect();
        let far = &mut self.far;
        let mut add = |cell: usize, number: u128, shift: u32, negative: bool| {
            let sum = far.entry(base + cell).or_default();
            sum.add_wide(product(number, weight), shift, negative);
        };
        let mut cell = d;
        for (i, &(a, shift, negative)) in numbers.iter().enumerate() {
            add(i, u128::from(a), shift, negative);
            for &(b, other, opposite) in &numbers[..=i] {
                let number = u128::from(a) * u128::from(b);
                add(cell, number, shift + other, negative != opposite);
                cell += 1;
            }
        }
        Ok(())
    }
}

/// Adds the whole numbers of a row, `weight` times, and the products of all pairs of them, as `add_pair` does.
#[inline(always)]
fn add_near(
    whole: &[i64],
    weight: i128,
    sums: &mut [Sum],
    mut add_pair: impl FnMut(&mut Sum, i64, i64),
) {
    let (first, mut rest) = sums.split_at_mut(whole.len());
    for (sum, &a) in first.iter_mut().zip(whole) {
        sum.add(i128::from(a) * weight);
    }
    for (i, &a) in whole.iter().enumerate() {
        let (pair_sums, later_rows) = rest.split_at_mut(i + 1);
        for (sum, &b) in pair_sums.iter_mut().zip(whole) {
            add_pair(sum, a, b);
        }
        rest = later_rows;
    }
}
