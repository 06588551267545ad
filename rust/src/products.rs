//! Sums of z and of the products of all pairs of z, per class, of a block of columns, as whole numbers.
//!
//! z is rounded once to a grid of 2^-57, as in [`crate::moments`], and the products are exact. Near rows (every |z| up to 16)
//! that weigh less than 2^64 are added in 256 bits, all other rows in as many as it takes. A row with a missing value adds
//! nothing.

use crate::classes::{Rows, Weights};
use crate::columns::Columns;
use crate::error::Error;
use crate::integers::{Sum256, product};
use crate::moments::{
    ClassSums, Data, FarSum, GridNumber, NEAR, round_near_to_grid, round_to_grid,
};
use crate::scale::{FARTHEST, Scale};
use crate::threads;
use std::collections::HashMap;
use std::ops::Range;

/// Rows whose z are computed together. 64 to 8,192 were equally fast (50,000 rows of 10 columns: 18 to 19 ms).
const BLOCK: usize = 1024;
/// Pieces of rows, at most: each has sums of its own. 8 to 512 were equally fast (50,000 rows of 10 columns: 10.7 to 11.0 ms
/// on one thread).
const MOST_PIECES: usize = 64;

/// The number of cells, sums that are kept for each class: one for each column and each pair of columns, (0, 0) included.
pub fn n_cells(columns: usize) -> usize {
    columns + columns * (columns + 1) / 2
}

/// Returns, over the rows of each class that have no missing value, the weights `[class]` and the sums of z and of products
/// of two z, `[class][cell]`. The cells are the columns, then the pairs of columns (0, 0), (1, 0), (1, 1), (2, 0) and so on.
/// Rows of class -1 are passed over. An infinite value is an error, as is a z beyond [`FARTHEST`]. z is (x - origin) / unit
/// of the column's `scale`. `rows` has the class and the weight of each row; `far_sums` are sums of rows with a z more than
/// 16 from 0, or of heavy ones. At most `threads` threads are used.
pub fn count_products(
    columns: &Columns,
    scale: &Scale,
    rows: &Rows,
    threads: usize,
) -> Result<ClassSums, Error> {
    columns.demand_rows(rows.len())?;
    let (n_rows, n_columns) = (rows.len(), columns.features());
    let threads = threads::worth(threads, n_rows.saturating_mul(n_cells(n_columns)));
    // A piece has so many rows that its sums are small beside them: a function of the shapes alone.
    let least_rows = n_rows.div_ceil(MOST_PIECES).max(16 * rows.n_classes * n_columns);
    let piece_rows = least_rows.next_multiple_of(BLOCK);
    let piece_sums = threads::try_ranges(threads, n_rows, piece_rows, |range| {
        PieceSums::new(rows, n_columns).count(Data { columns, scale, rows }, range)
    })?;
    let mut total = PieceSums::new(rows, n_columns);
    piece_sums.iter().for_each(|sums| total.merge(sums));
    ClassSums::new(
        rows.digits(),
        (&total.rows, vec![rows.n_classes]),
        (&total.near_sums, vec![rows.n_classes, n_cells(n_columns)]),
        &total.far_sums,
    )
}

/// The sums over one piece of the rows.
struct PieceSums {
    /// The number of columns.
    columns: usize,
    /// z of a block of rows, `[row][column]`, NaN where missing; empty when no block is read.
    z: Vec<f64>,
    /// Memory for the z of one near row in units of 2^-57, `[column]`.
    on_grid: Vec<i64>,
    /// The weight of the rows of each class, in rows or parts of a row as the caller's weights are.
    rows: Vec<i128>,
    /// What near rows add to each sum, `[class][cell]`.
    near_sums: Vec<Sum256>,
    /// What far or heavy rows add, by index into `near_sums`; sums to which they add nothing have no entry.
    far_sums: HashMap<usize, FarSum>,
}

impl PieceSums {
    /// Sums of no rows; `rows` gives the number of classes. `columns` is the number of columns. Sums of near rows are
    /// `[class][cell]`, a cell being a column or a pair of columns. z is (x - origin) / unit of a column; a row is near if
    /// every z is at most 16 from 0.
    fn new(rows: &Rows, columns: usize) -> Self {
        PieceSums {
            columns,
            z: vec![],
            on_grid: vec![0; columns],
            rows: vec![0; rows.n_classes],
            near_sums: vec![Sum256::default(); rows.n_classes * n_cells(columns)],
            far_sums: HashMap::new(),
        }
    }

    /// Adds the sums of another piece to these. `rows` has the weight of the rows of each class, `near_sums` the sums of near
    /// rows, `[class][cell]`, and `far_sums` those of far or heavy rows, by index into `near_sums`. A near row has every z =
    /// (x - origin) / unit at most 16 from 0; sums are of z, for each column, and of products of two z, for each pair.
    fn merge(&mut self, other: &PieceSums) {
        let class_weights = self.rows.iter_mut().zip(&other.rows);
        class_weights.for_each(|(total, weight)| *total += weight);
        let near_sums = self.near_sums.iter_mut().zip(&other.near_sums);
        near_sums.for_each(|(total, sum)| total.merge(sum));
        for (&cell, sum) in &other.far_sums {
            self.far_sums.entry(cell).or_default().merge(sum);
        }
    }

    /// Adds the rows in `range` that have a class, block by block. Returns the sums, without the memory for z. `data` has the
    /// columns, their scale, and the class (-1: none) and weight of each row. `self.z` is the memory. z is (x - origin) /
    /// unit of a column.
    fn count(mut self, data: Data, range: Range<usize>) -> Result<PieceSums, Error> {
        for from in range.clone().step_by(BLOCK) {
            let block = from..range.end.min(from + BLOCK);
            self.read(data, block.clone());
            for row in block.clone().filter(|&row| data.rows.classes[row] >= 0) {
                self.add(data, row, row - block.start)?;
            }
        }
        self.z = vec![];
        Ok(self)
    }

    /// Fills `self.z` with z of these rows of the data, `[row][column]`; NaN where a value is missing. `self.columns` is the
    /// number of columns; `data` has them and their scale. z is (x - origin) / unit of a column, and x the value.
    fn read(&mut self, data: Data, rows: Range<usize>) {
        let n_columns = self.columns;
        let mut buffer = vec![]; // where values that are not doubles are converted
        self.z.clear();
        self.z.resize(rows.len() * n_columns, 0.0);
        // `column` is the feature's column within the array `block`.
        for (feature, block, column) in data.columns.columns_of(0..n_columns) {
            let values = block.reals(rows.clone(), column..column + 1, &mut buffer);
            for (block_row, &x) in values.iter().enumerate() {
                self.z[block_row * n_columns + feature] = data.scale.z_without_overflow(x, feature);
            }
        }
    }

    /// Adds row `row` of the data, which has a class, and whose z are row `block_row` of `self.z`; nothing if a value is
    /// missing. A value that is infinite or too far is an error. `self.columns` is the number of columns, and `self.z` is
    /// `[row of the block][column]`. The sums of a class are those of z, column by column, and then of products, pair by
    /// pair: `self.near_sums` are `[class][sum]`, `self.far_sums` those of far or heavy rows by the same index, and
    /// `self.rows` is the weight of the rows of each class. `self.on_grid` is memory for z in units of 2^-57, `[column]`. z
    /// is (x - origin) / unit of a column; a row is near if every z is at most 16 from 0.
    fn add(&mut self, data: Data, row: usize, block_row: usize) -> Result<(), Error> {
        let (n_columns, rows) = (self.columns, data.rows);
        let class = rows.classes[row] as usize;
        let z = &self.z[block_row * n_columns..(block_row + 1) * n_columns];
        if let Some(feature) = z.iter().position(|z| z.abs() > FARTHEST) {
            data.checked_z(row, feature)?;
        }
        if z.iter().any(|z| z.is_nan()) {
            return Ok(());
        }
        // In rows, or in parts of a row.
        let weight = rows.weight(row);
        self.rows[class] += weight as i128;
        let first_cell = class * n_cells(n_columns); // the index of the class's first sum
        let is_below_2_to_64 = weight >> 64 == 0;
        if is_below_2_to_64 && z.iter().all(|z| z.abs() <= NEAR) {
            for (on_grid, &z) in self.on_grid.iter_mut().zip(z) {
                *on_grid = round_near_to_grid(z);
            }
            let sums = &mut self.near_sums[first_cell..first_cell + n_cells(n_columns)];
            match rows.weights {
                // Without weights this takes half the time: 6 ms instead of 15 for 2,000 rows of 60 columns.
                Weights::Ones => {
                    add_near(&self.on_grid, 1, sums, |sum, a, b| {
                        sum.add(i128::from(a) * i128::from(b));
                    });
                }
                _ => add_near(&self.on_grid, weight as i128, sums, |sum, a, b| {
                    let weighted = weight * u128::from(a.unsigned_abs());
                    sum.add_product(weighted, b.unsigned_abs(), (a < 0) != (b < 0));
                }),
            }
            return Ok(());
        }
        // A far or heavy row: each z and each product of two, times the weight, in as many bits as it takes. `add` adds size *
        // 2^shift to a cell of the row's class.
        // Each z in units of 2^-57, as size * 2^shift with a sign.
        let numbers: Vec<GridNumber> = z.iter().map(|&z| round_to_grid(z)).collect();
        let mut add = |cell: usize, size: u128, shift: u32, is_negative: bool| {
            let sum = self.far_sums.entry(first_cell + cell).or_default();
            sum.add_wide(product(size, weight), shift, is_negative);
        };
        let mut pair_cell = n_columns; // the sum of the next pair, after those of the columns
        for (i, a) in numbers.iter().enumerate() {
            add(i, u128::from(a.size), a.shift, a.is_negative);
            for b in &numbers[..=i] {
                let size = u128::from(a.size) * u128::from(b.size);
                add(pair_cell, size, a.shift + b.shift, a.is_negative != b.is_negative);
                pair_cell += 1;
            }
        }
        Ok(())
    }
}

/// Adds the z of a row in units of 2^-57, `[column]`, `weight` times to the sums of one class, `[cell]`: those of the
/// columns, then those of pairs of columns. Calls `add_pair(sum, a, b)` for each pair, which adds their product as often. A
/// pair's sum is in units of 2^-114. z is (x - origin) / unit of a column; `a` and `b` are two of the row.
#[inline(always)]
fn add_near(
    on_grid: &[i64],
    weight: i128,
    sums: &mut [Sum256],
    mut add_pair: impl FnMut(&mut Sum256, i64, i64),
) {
    let (column_sums, mut pair_sums) = sums.split_at_mut(on_grid.len());
    for (sum, &a) in column_sums.iter_mut().zip(on_grid) {
        sum.add(i128::from(a) * weight);
    }
    // Column i has i + 1 pairs: with each column up to itself.
    for (i, &a) in on_grid.iter().enumerate() {
        let (sums_of_a, later_sums) = pair_sums.split_at_mut(i + 1);
        for (sum, &b) in sums_of_a.iter_mut().zip(on_grid) {
            add_pair(sum, a, b);
        }
        pair_sums = later_sums;
    }
}
