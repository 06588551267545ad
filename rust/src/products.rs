//! Sums of z and of the products of all pairs of z, per class, of a block of columns.
//!
//! Rows are summed in fixed pieces: near ones (every |z| and the weight up to 16) as plain doubles that are folded into
//! expansions at the piece's end, far ones unrounded, so that they can be subtracted again without a trace in the others. A
//! row that lacks one of the block's values is passed over.

use crate::classes::{Rows, Weights};
use crate::columns::{Columns, Value, each};
use crate::error::{Error, Fault};
use crate::expansion::Expansion;
use crate::scale::{FARTHEST, Scale};
use crate::threads;
use std::ops::Range;

/// |z| and weights up to this are near.
const NEAR: f64 = 16.0;
/// Rows per piece.
const PIECE: usize = 1024;

/// Per class, `[class]` and `[class][cell]`; cells are the columns, then the pairs (i, j), j <= i, i by i.
#[derive(Clone, Debug)]
pub struct Products {
    pub rows: Vec<i64>,
    /// Empty unless weights are real.
    pub weights: Vec<Expansion>,
    pub sums: Vec<Expansion>,
}

/// Columns and pairs of them.
pub fn cells(columns: usize) -> usize {
    columns + columns * (columns + 1) / 2
}

impl Products {
    fn new(rows: &Rows, columns: usize) -> Self {
        let real = matches!(rows.weights, Weights::Real(_));
        Products {
            rows: vec![0; rows.n_classes],
            weights: vec![Expansion::default(); if real { rows.n_classes } else { 0 }],
            sums: vec![Expansion::default(); rows.n_classes * cells(columns)],
        }
    }

    fn merge(&mut self, other: &Products) {
        let rows = self.rows.iter_mut().zip(&other.rows);
        rows.for_each(|(a, b)| *a += b);
        let sums = self.weights.iter_mut().zip(&other.weights);
        let sums = sums.chain(self.sums.iter_mut().zip(&other.sums));
        sums.for_each(|(a, b)| a.merge(b));
    }
}

/// Sums over the rows of each class.
pub fn count_products(
    columns: &Columns,
    scale: &Scale,
    rows: &Rows,
    threads: usize,
) -> Result<Products, Error> {
    columns.demand_rows(rows.len())?;
    let (n, d) = (rows.len(), columns.features());
    let threads = threads::worth(threads, n.saturating_mul(cells(d)));
    // So many rows to a task that its sums are small beside them; a function of the shapes alone.
    let size = (n.div_ceil(64)).max(16 * rows.n_classes * d).max(1);
    let task = size.div_ceil(PIECE) * PIECE;
    let found = threads::try_map(threads, n.div_ceil(task), |i| {
        let range = i * task..n.min((i + 1) * task);
        Piece::new(rows, d).count(columns, scale, rows, range)
    })?;
    let mut total = Products::new(rows, d);
    found.iter().for_each(|products| total.merge(products));
    Ok(total)
}

struct Piece {
    columns: usize,
    /// z of some rows, `[row][column]`.
    z: Vec<f64>,
    near: Vec<f64>,
    products: Products,
}

impl Piece {
    fn new(rows: &Rows, columns: usize) -> Self {
        Piece {
            columns,
            z: vec![],
            near: vec![0.0; rows.n_classes * cells(columns)],
            products: Products::new(rows, columns),
        }
    }

    fn count(
        mut self,
        columns: &Columns,
        scale: &Scale,
        rows: &Rows,
        range: Range<usize>,
    ) -> Result<Products, Error> {
        for from in range.clone().step_by(PIECE) {
            let part = from..range.end.min(from + PIECE);
            self.read(columns, scale, part.clone());
            for row in part.clone().filter(|&row| rows.classes[row] >= 0) {
                self.add(columns, rows, row, row - part.start)?;
            }
            for (near, sum) in self.near.iter_mut().zip(&mut self.products.sums) {
                sum.add(std::mem::take(near));
            }
        }
        Ok(self.products)
    }

    /// z of these rows; NaN where a value is missing.
    fn read(&mut self, columns: &Columns, scale: &Scale, rows: Range<usize>) {
        let d = self.columns;
        self.z.clear();
        self.z.resize(rows.len() * d, 0.0);
        for (first, block, within) in columns.pieces(0..d) {
            each!(block, view => {
                for (j, column) in within.enumerate() {
                    let values = view.column(column);
                    for (at, row) in rows.clone().enumerate() {
                        self.z[at * d + first + j] = scale.careful(values[row].real(), first + j);
                    }
                }
            });
        }
    }

    fn add(&mut self, columns: &Columns, rows: &Rows, row: usize, at: usize) -> Result<(), Error> {
        let (d, class) = (self.columns, rows.classes[row] as usize);
        let z = &self.z[at * d..(at + 1) * d];
        if let Some(feature) = z.iter().position(|z| z.abs() > FARTHEST) {
            let value = columns.value(row, feature);
            let fault = if value.real().is_infinite() {
                Fault::Infinite
            } else {
                Fault::TooFar
            };
            return Err(Error::BadValue {
                fault,
                feature,
                row,
                value,
            });
        }
        if z.iter().any(|z| z.is_nan()) {
            return Ok(());
        }
        let weight = match rows.weights {
            Weights::Ones => 1.0,
            Weights::Whole(weights) | Weights::Real(weights) => weights[row],
        };
        self.products.rows[class] += match rows.weights {
            Weights::Whole(_) => weight as i64,
            _ => 1,
        };
        if let Some(sum) = self.products.weights.get_mut(class) {
            sum.add(weight);
        }
        let cells = class * cells(d)..(class + 1) * cells(d);
        if weight <= NEAR && z.iter().all(|z| z.abs() <= NEAR) {
            let near = &mut self.near[cells];
            let (first, mut rest) = near.split_at_mut(d);
            for (sum, z) in first.iter_mut().zip(z) {
                *sum += weight * z;
            }
            for (i, &a) in z.iter().enumerate() {
                let (mine, others) = rest.split_at_mut(i + 1);
                let a = weight * a;
                for (sum, &b) in mine.iter_mut().zip(z) {
                    *sum += a * b;
                }
                rest = others;
            }
            return Ok(());
        }
        let sums = &mut self.products.sums[cells];
        let (first, mut rest) = sums.split_at_mut(d);
        for (sum, &z) in first.iter_mut().zip(z) {
            sum.add_product(z, weight);
        }
        for (i, &a) in z.iter().enumerate() {
            let (mine, others) = rest.split_at_mut(i + 1);
            for (sum, &b) in mine.iter_mut().zip(z) {
                let mut product = Expansion::default();
                product.add_product(a, b);
                sum.merge(&product.times(weight));
            }
            rest = others;
        }
        Ok(())
    }
}
