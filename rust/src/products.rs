//! Sums of z and of the products of all pairs of z, per class, of a block of columns, as whole numbers.
//!
//! z is rounded once to a grid of 2^-57, as for [`crate::moments`], and the products are exact. Rows that are near (every |z| up to
//! 16) and weigh less than 2^64 are added in 256 bits, all others in as many as it takes. A row that lacks one of the block's values
//! is passed over.

use crate::classes::{Rows, Weights, counted};
use crate::columns::Columns;
use crate::error::Error;
use crate::integers::{Int, Integers, Sum, product};
use crate::moments::{Data, Far, Measured, NEAR, near_grid, on_grid};
use crate::scale::{FARTHEST, Scale};
use crate::threads;
use std::collections::HashMap;
use std::ops::Range;

/// Rows per piece.
const PIECE: usize = 1024;

/// Columns and pairs of them.
pub fn cells(columns: usize) -> usize {
    columns + columns * (columns + 1) / 2
}

/// Sums over the rows of each class, `[class]` and `[class][cell]`; cells are the columns, then the pairs (i, j), j <= i, i by i.
pub fn count_products(
    columns: &Columns,
    scale: &Scale,
    rows: &Rows,
    threads: usize,
) -> Result<Measured, Error> {
    columns.demand_rows(rows.len())?;
    let (n, d) = (rows.len(), columns.features());
    let threads = threads::worth(threads, n.saturating_mul(cells(d)));
    // So many rows to a task that its sums are small beside them; a function of the shapes alone.
    let size = (n.div_ceil(64)).max(16 * rows.n_classes * d).max(1);
    let task = size.div_ceil(PIECE) * PIECE;
    let found = threads::try_map(threads, n.div_ceil(task), |i| {
        let range = i * task..n.min((i + 1) * task);
        Sums::new(rows, d).count(Data { columns, scale, rows }, range)
    })?;
    let mut total = Sums::new(rows, d);
    found.iter().for_each(|sums| total.merge(sums));
    let shape = vec![rows.n_classes, cells(d)];
    let near: Vec<Int<4>> = total.near.iter().map(Sum::int).collect();
    let near = Integers::of(shape, rows.digits(), &near)?;
    Ok(Measured {
        rows: counted(&total.rows, vec![rows.n_classes], rows.digits())?,
        sums: near.with(&total.far, rows.digits())?,
    })
}

struct Sums {
    columns: usize,
    /// z of some rows, `[row][column]`.
    z: Vec<f64>,
    /// The same of one row as whole numbers.
    whole: Vec<i64>,
    rows: Vec<i128>,
    /// `[class][cell]`.
    near: Vec<Sum>,
    far: HashMap<usize, Far>,
}

impl Sums {
    fn new(rows: &Rows, columns: usize) -> Self {
        Sums {
            columns,
            z: vec![],
            whole: vec![0; columns],
            rows: vec![0; rows.n_classes],
            near: vec![Sum::default(); rows.n_classes * cells(columns)],
            far: HashMap::new(),
        }
    }

    fn merge(&mut self, other: &Sums) {
        let rows = self.rows.iter_mut().zip(&other.rows);
        rows.for_each(|(a, b)| *a += b);
        let sums = self.near.iter_mut().zip(&other.near);
        sums.for_each(|(a, b)| a.merge(b));
        for (&cell, sum) in &other.far {
            self.far.entry(cell).or_default().merge(sum);
        }
    }

    fn count(mut self, data: Data, range: Range<usize>) -> Result<Sums, Error> {
        for from in range.clone().step_by(PIECE) {
            let part = from..range.end.min(from + PIECE);
            self.read(data, part.clone());
            for row in part.clone().filter(|&row| data.rows.classes[row] >= 0) {
                self.add(data, row, row - part.start)?;
            }
        }
        self.z = vec![];
        Ok(self)
    }

    /// z of these rows; NaN where a value is missing.
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

    fn add(&mut self, data: Data, row: usize, at: usize) -> Result<(), Error> {
        let (d, rows) = (self.columns, data.rows);
        let class = rows.classes[row] as usize;
        let z = &self.z[at * d..(at + 1) * d];
        if let Some(feature) = z.iter().position(|z| z.abs() > FARTHEST) {
            data.reach(row, feature)?;
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
            let near = &mut self.near[base..base + cells(d)];
            match rows.weights {
                Weights::Ones => {
                    let squared = |sum: &mut Sum, a, b| sum.add(i128::from(a) * i128::from(b));
                    add_near(&self.whole, 1, near, squared);
                }
                _ => add_near(&self.whole, weight as i128, near, |sum, a, b| {
                    let heavy = weight * u128::from(a.unsigned_abs());
                    sum.add_product(heavy, b.unsigned_abs(), (a < 0) != (b < 0));
                }),
            }
            return Ok(());
        }
        let each: Vec<(u64, u32, bool)> = z.iter().map(|&z| on_grid(z)).collect();
        let far = &mut self.far;
        let mut add = |cell: usize, number: u128, shift: u32, negative: bool| {
            let sum = far.entry(base + cell).or_default();
            sum.add_wide(product(number, weight), shift, negative);
        };
        let mut cell = d;
        for (i, &(a, shift, negative)) in each.iter().enumerate() {
            add(i, u128::from(a), shift, negative);
            for &(b, other, opposite) in &each[..=i] {
                let number = u128::from(a) * u128::from(b);
                add(cell, number, shift + other, negative != opposite);
                cell += 1;
            }
        }
        Ok(())
    }
}

/// Adds the whole numbers of a row so many times, and the products of all pairs of them as `pair` does.
#[inline(always)]
fn add_near(
    whole: &[i64],
    weight: i128,
    sums: &mut [Sum],
    mut pair: impl FnMut(&mut Sum, i64, i64),
) {
    let (first, mut rest) = sums.split_at_mut(whole.len());
    for (sum, &a) in first.iter_mut().zip(whole) {
        sum.add(i128::from(a) * weight);
    }
    for (i, &a) in whole.iter().enumerate() {
        let (mine, others) = rest.split_at_mut(i + 1);
        for (sum, &b) in mine.iter_mut().zip(whole) {
            pair(sum, a, b);
        }
        rest = others;
    }
}
