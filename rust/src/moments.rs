//! Sums of z and z² per feature and class.
//!
//! Rows are summed in fixed pieces (tasks), a piece in fixed blocks: a block's sums are plain doubles, folded into expansions
//! at its end. A value far out (|z| > 16, or a weight above 16) goes to the expansions unrounded, so that it can be
//! subtracted again without a trace in the others.

use crate::classes::{Rows, Weights, count_classes};
use crate::columns::{Columns, Value, each};
use crate::error::{Error, Fault, Number};
use crate::expansion::Expansion;
use crate::scale::{FARTHEST, Scale};
use crate::simd::{Loop, wide};
use crate::threads;
use ndarray::{ArrayView2, ArrayViewMut1, Zip, s};
use std::ops::Range;

/// |z| and weights up to this are near: summed in doubles within a block.
const NEAR: f64 = 16.0;
/// Values that are added side by side.
const LANES: usize = 8;
/// Rows per tile, and features per tile: z of a tile stays in the first cache.
const TILE_ROWS: usize = 64;
const TILE_FEATURES: usize = 256;
const BLOCK: usize = 4096;
const MOST_PIECES: usize = 64;

/// Per feature and class, `[feature][class]`.
#[derive(Debug)]
pub struct Moments {
    pub rows: Vec<i64>,
    /// Empty unless weights are real.
    pub weights: Vec<Expansion>,
    /// The sum of z, then of z².
    pub sums: Vec<[Expansion; 2]>,
}

/// Sums z and z² over the rows of each class; missing values (NaN) leave their feature alone.
pub fn count_moments(
    columns: &Columns,
    scale: &Scale,
    rows: &Rows,
    threads: usize,
) -> Result<Moments, Error> {
    columns.demand_rows(rows.len())?;
    let (n, n_features) = (rows.len(), columns.features());
    let threads = threads::worth(threads, n.saturating_mul(n_features));
    let piece = piece_rows(n, rows.n_classes);
    let (tiles, pieces) = (n_features.div_ceil(TILE_FEATURES), n.div_ceil(piece));
    let found = threads::try_map(threads, tiles * pieces, |task| {
        let (tile, from) = (task % tiles * TILE_FEATURES, task / tiles * piece);
        let features = tile..n_features.min(tile + TILE_FEATURES);
        let mut sums = Sums::new(features, rows);
        sums.count(columns, scale, rows, from..n.min(from + piece))?;
        Ok(sums)
    })?;
    let classes = count_classes(rows, threads);
    let mut total = Moments {
        rows: classes.rows.repeat(n_features),
        weights: classes.weights.repeat(n_features),
        sums: vec![Default::default(); n_features * rows.n_classes],
    };
    found.iter().for_each(|sums| sums.merge_into(&mut total));
    for (weight, rows) in total.weights.iter_mut().zip(&total.rows) {
        if *rows == 0 {
            *weight = Expansion::default();
        }
    }
    Ok(total)
}

/// Rows per piece: many enough that a piece's sums are small beside its data. A function of the shapes alone.
fn piece_rows(n: usize, n_classes: usize) -> usize {
    let rows = n.div_ceil(MOST_PIECES).max(32 * n_classes);
    rows.div_ceil(BLOCK).max(1) * BLOCK
}

/// The sums of one piece of rows over one tile of features; all arrays are `[class][feature]`.
struct Sums {
    features: Range<usize>,
    /// Cells per row: the features, and up to a whole number of `LANES` with zeros.
    width: usize,
    n_classes: usize,
    /// The block's near sums: z, then z².
    near: Vec<f64>,
    sums: Vec<[Expansion; 2]>,
    missing: Vec<i64>,
    missing_weights: Vec<Expansion>,
    /// z, `[row][feature]`.
    tile: Vec<f64>,
}

impl Sums {
    fn new(features: Range<usize>, rows: &Rows) -> Self {
        let width = features.len().next_multiple_of(LANES);
        let cells = width * rows.n_classes;
        let real = matches!(rows.weights, Weights::Real(_));
        Sums {
            width,
            n_classes: rows.n_classes,
            near: vec![0.0; 2 * cells],
            sums: vec![Default::default(); cells],
            missing: vec![0; cells],
            missing_weights: vec![Expansion::default(); if real { cells } else { 0 }],
            tile: vec![0.0; width * TILE_ROWS],
            features,
        }
    }

    fn count(
        &mut self,
        columns: &Columns,
        scale: &Scale,
        rows: &Rows,
        range: Range<usize>,
    ) -> Result<(), Error> {
        let block = BLOCK.max(16 * self.n_classes).next_multiple_of(TILE_ROWS);
        for start in range.clone().step_by(block) {
            let end = range.end.min(start + block);
            for from in (start..end).step_by(TILE_ROWS) {
                let tile = from..end.min(from + TILE_ROWS);
                wide(AddTile {
                    sums: self,
                    columns,
                    scale,
                    rows,
                    tile,
                })?;
            }
            self.fold();
        }
        Ok(())
    }

    /// Writes z of these rows into the tile.
    #[inline(always)]
    fn fill(&mut self, columns: &Columns, scale: &Scale, rows: Range<usize>) {
        let width = self.width;
        for (first, block, range) in columns.pieces(self.features.clone()) {
            let (at, scaled) = (first - self.features.start, first..first + range.len());
            let (origin, inverse) = (&scale.origin[scaled.clone()], &scale.inverse[scaled]);
            each!(block, view => {
                let view = view.slice(s![rows.clone(), range]);
                fill_tile(view, origin, inverse, &mut self.tile[at..], width)
            });
        }
    }

    /// Adds the tile's row `at`, which is row `row` of the data.
    #[inline(always)]
    fn add_row(
        &mut self,
        columns: &Columns,
        scale: &Scale,
        rows: &Rows,
        row: usize,
        at: usize,
    ) -> Result<(), Error> {
        let (width, class) = (self.width, rows.classes[row] as usize);
        let z = &self.tile[at * width..(at + 1) * width];
        let (sum, square) =
            self.near[2 * class * width..2 * (class + 1) * width].split_at_mut(width);
        match rows.weights {
            Weights::Ones if all_near(z) => add_near(z, sum, square),
            Weights::Ones if none_far(z) => {
                let missing = &mut self.missing[class * width..(class + 1) * width];
                add_present(z, sum, square, missing)
            }
            Weights::Ones => return self.add_far(columns, scale, row, at, class, 1.0, 1, false),
            Weights::Whole(w) if w[row] > NEAR || !all_near(z) => {
                let count = w[row] as i64;
                return self.add_far(columns, scale, row, at, class, w[row], count, false);
            }
            Weights::Real(w) if w[row] > NEAR || !all_near(z) => {
                return self.add_far(columns, scale, row, at, class, w[row], 1, true);
            }
            Weights::Whole(w) | Weights::Real(w) => add_weighted(z, w[row], sum, square),
        }
        Ok(())
    }

    /// Adds a row value by value: the near ones plainly, the far ones to the expansions, the missing ones to their count.
    #[allow(clippy::too_many_arguments)]
    #[inline(never)]
    fn add_far(
        &mut self,
        columns: &Columns,
        scale: &Scale,
        row: usize,
        at: usize,
        class: usize,
        weight: f64,
        count: i64,
        real: bool,
    ) -> Result<(), Error> {
        let width = self.width;
        for j in 0..self.features.len() {
            let cell = class * width + j;
            let mut z = self.tile[at * width + j];
            if z.is_nan() {
                self.missing[cell] += count;
                if real {
                    self.missing_weights[cell].add(weight);
                }
                continue;
            }
            if z.abs() > FARTHEST {
                z = reach(columns, scale, row, self.features.start + j)?;
            }
            if z.abs() <= NEAR && weight <= NEAR {
                let weighted = z * weight;
                self.near[2 * class * width + j] += weighted;
                self.near[(2 * class + 1) * width + j] += weighted * z;
                continue;
            }
            let [sum, square] = &mut self.sums[cell];
            if !(sum.add_product(z, weight) & square.add_square(z, weight)) {
                return Err(bad(Fault::TooFar, columns, row, self.features.start + j));
            }
        }
        Ok(())
    }

    /// Moves the block's near sums into the expansions.
    fn fold(&mut self) {
        let width = self.width.max(1);
        for (near, sums) in self
            .near
            .chunks_exact_mut(2 * width)
            .zip(self.sums.chunks_exact_mut(width))
        {
            let (sum, square) = near.split_at(width);
            if square.iter().any(|&x| x != 0.0) {
                for ((total, &z), &zz) in sums.iter_mut().zip(sum).zip(square) {
                    total[0].add(z);
                    total[1].add(zz);
                }
                near.fill(0.0);
            }
        }
    }

    /// Adds to the totals, which are `[feature][class]`.
    fn merge_into(&self, total: &mut Moments) {
        let width = self.width;
        for (j, feature) in self.features.clone().enumerate() {
            for class in 0..self.n_classes {
                let (from, to) = (class * width + j, feature * self.n_classes + class);
                total.sums[to][0].merge(&self.sums[from][0]);
                total.sums[to][1].merge(&self.sums[from][1]);
                total.rows[to] -= self.missing[from];
                if let Some(weight) = self.missing_weights.get(from) {
                    total.weights[to].take(weight);
                }
            }
        }
    }
}

/// Adds a tile of rows.
struct AddTile<'a, 'b> {
    sums: &'a mut Sums,
    columns: &'a Columns<'b>,
    scale: &'a Scale<'a>,
    rows: &'a Rows<'a>,
    tile: Range<usize>,
}

impl Loop for AddTile<'_, '_> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn run(self) -> Result<(), Error> {
        self.sums.fill(self.columns, self.scale, self.tile.clone());
        for (at, row) in self.tile.enumerate() {
            if self.rows.classes[row] >= 0 {
                self.sums
                    .add_row(self.columns, self.scale, self.rows, row, at)?;
            }
        }
        Ok(())
    }
}

/// z of a value that looks out of reach, or why it cannot be summed.
fn reach(columns: &Columns, scale: &Scale, row: usize, feature: usize) -> Result<f64, Error> {
    let x = columns.value(row, feature).real();
    if x.is_infinite() {
        return Err(bad(Fault::Infinite, columns, row, feature));
    }
    let z = scale.careful(x, feature);
    if z.abs() <= FARTHEST {
        Ok(z)
    } else {
        Err(bad(Fault::TooFar, columns, row, feature))
    }
}

fn bad(fault: Fault, columns: &Columns, row: usize, feature: usize) -> Error {
    let value: Number = columns.value(row, feature);
    Error::BadValue {
        fault,
        feature,
        row,
        value,
    }
}

/// z of a block's rows, into rows `width` long.
#[inline(always)]
fn fill_tile<T: Value>(
    view: ArrayView2<T>,
    origin: &[f64],
    inverse: &[f64],
    tile: &mut [f64],
    width: usize,
) {
    let (n, k) = view.dim();
    if k > 1 && view.strides()[1] == 1 {
        for (row, out) in view.rows().into_iter().zip(tile.chunks_mut(width)) {
            if let Some(row) = row.to_slice() {
                let scales = origin.iter().zip(inverse);
                for ((z, &x), (&o, &i)) in out.iter_mut().zip(row).zip(scales) {
                    *z = (x.real() - o) * i;
                }
            }
        }
        return;
    }
    for j in 0..k {
        let (o, i) = (origin[j], inverse[j]);
        let out = ArrayViewMut1::from(&mut tile[j..(n - 1) * width + j + 1]);
        Zip::from(out.slice_move(s![..;width]))
            .and(view.column(j))
            .for_each(|z, &x| *z = (x.real() - o) * i);
    }
}

#[inline(always)]
fn all_near(z: &[f64]) -> bool {
    let mut near = [1_u64; LANES];
    for z in z.as_chunks::<LANES>().0 {
        for (near, z) in near.iter_mut().zip(z) {
            *near &= u64::from(z.abs() <= NEAR);
        }
    }
    near.iter().fold(1, |all, near| all & near) == 1
}

#[inline(always)]
fn none_far(z: &[f64]) -> bool {
    !z.iter().fold(false, |far, z| far | (z.abs() > NEAR))
}

/// `f(z, sum, square)` for each, `LANES` at a time: all are read before any is written, so they need not be told apart.
#[inline(always)]
fn side_by_side(
    z: &[f64],
    sum: &mut [f64],
    square: &mut [f64],
    f: impl Fn(f64, &mut f64, &mut f64),
) {
    let (z, sum) = (z.as_chunks::<LANES>().0, sum.as_chunks_mut::<LANES>().0);
    for ((z, sum), square) in z.iter().zip(sum).zip(square.as_chunks_mut::<LANES>().0) {
        let (z, mut sums, mut squares) = (*z, *sum, *square);
        for ((&z, sum), square) in z.iter().zip(&mut sums).zip(&mut squares) {
            f(z, sum, square);
        }
        (*sum, *square) = (sums, squares);
    }
}

#[inline(always)]
fn add_near(z: &[f64], sum: &mut [f64], square: &mut [f64]) {
    side_by_side(z, sum, square, |z, sum, square| {
        *sum += z;
        *square += z * z;
    });
}

#[inline(always)]
fn add_weighted(z: &[f64], weight: f64, sum: &mut [f64], square: &mut [f64]) {
    side_by_side(z, sum, square, |z, sum, square| {
        let weighted = z * weight;
        *sum += weighted;
        *square += weighted * z;
    });
}

/// [`add_near`] where some are missing.
#[inline(always)]
fn add_present(z: &[f64], sum: &mut [f64], square: &mut [f64], missing: &mut [i64]) {
    side_by_side(z, sum, square, |z, sum, square| {
        let present = if z.is_nan() { 0.0 } else { z };
        *sum += present;
        *square += present * present;
    });
    let missing = missing.as_chunks_mut::<LANES>().0;
    for (z, missing) in z.as_chunks::<LANES>().0.iter().zip(missing) {
        let mut counts = *missing;
        for (z, count) in z.iter().zip(&mut counts) {
            *count += i64::from(z.is_nan());
        }
        *missing = counts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Block;
    use ndarray::{Array2, array};

    fn count(x: &Array2<f64>, weights: Weights, threads: usize) -> Result<Moments, Error> {
        let classes = vec![0; x.nrows()];
        let columns = Columns::new(vec![Block::F64(x.view())])?;
        let (origin, unit) = (vec![0.0; x.ncols()], vec![1.0; x.ncols()]);
        let scale = Scale::new(&origin, &unit, x.ncols())?;
        count_moments(&columns, &scale, &Rows::new(&classes, 1, weights)?, threads)
    }

    #[test]
    fn missing_far_and_near_values() {
        let far = 2_f64.powi(40);
        let x = array![[1.0, f64::NAN], [2.0, 3.0], [-far, f64::NAN]];
        let found = count(&x, Weights::Ones, 1).unwrap();
        assert_eq!(found.rows, [3, 1]);
        assert_eq!(found.sums[0][0].parts()[0], 3.0 - far);
        assert_eq!(found.sums[0][1].parts()[..2], [far * far, 5.0]);
        assert_eq!(found.sums[1][1].parts()[0], 9.0);
        let found = count(&x, Weights::Real(&[0.5, 20.0, 0.25]), 1).unwrap();
        assert_eq!(found.rows, [3, 1]);
        assert_eq!(found.weights[1].parts(), [20.0, 0.0, 0.0]);
        assert_eq!(found.sums[1][1].parts()[0], 180.0);
    }

    #[test]
    fn refusals_name_the_value() {
        for (x, fault) in [
            (f64::INFINITY, Fault::Infinite),
            (1e150, Fault::TooFar),
            (-1e300, Fault::TooFar),
        ] {
            let error = count(&array![[0.0, 0.0], [0.0, x]], Weights::Ones, 1).unwrap_err();
            let value = Number::Real(x);
            let (feature, row) = (1, 1);
            assert_eq!(
                error,
                Error::BadValue {
                    fault,
                    feature,
                    row,
                    value
                }
            );
        }
    }

    #[test]
    fn threads_and_layout_do_not_matter() {
        let x = Array2::from_shape_fn((40_000, 5), |(i, j)| ((i * 7 + j) as f64).sin() * 9.0);
        let one = count(&x, Weights::Ones, 1).unwrap();
        let four = count(&x, Weights::Ones, 4).unwrap();
        assert_eq!(one.sums, four.sums);
        let mut turned = Array2::zeros((5, 40_000));
        turned.assign(&x.t());
        let columnar = count(&turned.reversed_axes(), Weights::Ones, 3).unwrap();
        assert_eq!(one.sums, columnar.sums);
    }
}
