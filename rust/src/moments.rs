//! Sums of z and z² per feature and class, as whole numbers.
//!
//! z is rounded once to a grid of 2^-57. The kernel sums these whole numbers and their exact squares, in units of 2^-57 and
//! 2^-114. Within a block of rows it adds doubles, and none of them is rounded: it splits each z near the origin (|z| <= 16) and
//! each square into parts that are multiples of one unit, and a block has so few rows that each part's sum stays below 2^53
//! units. Values farther out, weights above 16 and fractional weights are added as whole numbers of 256 bits or more.

use crate::classes::{Rows, Weights, count_classes, counted};
use crate::columns::Columns;
use crate::error::{Error, Fault};
use crate::integers::{Int, Integers, Sum, product};
use crate::scale::{FARTHEST, Scale};
use crate::simd::wide;
use crate::threads;
use ndarray::{ArrayView2, ArrayViewMut1, Zip, s};
use std::collections::HashMap;
use std::ops::Range;

/// |z| up to this is near: its sums are doubles within a block.
pub const NEAR: f64 = 16.0;
/// z is a whole number of 2^-57.
const GRID: f64 = f64::from_bits((1023 + 57) << 52);
/// Values that are added side by side.
const LANES: usize = 8;
/// Rows per tile and features per tile. On 4,000 rows of 1,000 features by row, these and eight lanes took 14 ms; 8 × 32 and four
/// lanes 65 ms; 512 × 2,048 and sixteen lanes 13 ms, but on 200,000 rows of 20 features 22 ms instead of 15.
const TILE_ROWS: usize = 64;
const TILE_FEATURES: usize = 256;
/// Rows per block, and the largest weight that is added as a double: their product bounds the sum of a part by 2^53 units.
const BLOCK: usize = 4096;
const LIGHT: i64 = 16;
/// Pieces of rows, at most: each has sums of its own, which are added up at the end.
const MOST_PIECES: usize = 256;

/// A sum of values that may be far from the origin.
pub type FarSum = Int<18>;

/// The weight of the rows of each class, and their sums of z and of products of z.
#[derive(Debug)]
pub struct ClassSums {
    pub rows: Integers,
    pub sums: Integers,
}

impl ClassSums {
    /// `counts` and `near` are the sums that fit 128 and 256 bits. `far` has what is to be added to some of the latter, by
    /// position.
    pub fn new(
        digits: u32,
        (counts, counts_shape): (&[i128], Vec<usize>),
        (near, shape): (&[Sum], Vec<usize>),
        far: &HashMap<usize, FarSum>,
    ) -> Result<Self, Error> {
        let near: Vec<Int<4>> = near.iter().map(Sum::int).collect();
        Ok(ClassSums {
            rows: counted(counts, counts_shape, digits)?,
            sums: Integers::of(shape, digits, &near)?.with(far, digits)?,
        })
    }
}

/// The columns to sum, their scale, and the classes and weights of their rows.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a, 'b> {
    pub columns: &'a Columns<'b>,
    pub scale: &'a Scale<'a>,
    pub rows: &'a Rows<'a>,
}

impl Data<'_, '_> {
    /// z of a value, computed with care for overflow; an error if it is infinite or too far from the origin to be summed.
    pub fn careful_z(self, row: usize, feature: usize) -> Result<f64, Error> {
        let x = self.columns.value(row, feature).real();
        let z = self.scale.careful(x, feature);
        let fault = if x.is_infinite() { Fault::Infinite } else { Fault::TooFar };
        if z.abs() <= FARTHEST { Ok(z) } else { Err(self.columns.refused(fault, row, feature)) }
    }
}

/// Sums z and z² over the rows of each class: weights `[feature][class]` and sums `[feature][class][z, z²]`. A missing value
/// (NaN) adds nothing to its feature.
pub fn count_moments(
    columns: &Columns,
    scale: &Scale,
    rows: &Rows,
    threads: usize,
) -> Result<ClassSums, Error> {
    columns.demand_rows(rows.len())?;
    let (n, n_features, n_classes) = (rows.len(), columns.features(), rows.n_classes);
    let threads = threads::worth(threads, n.saturating_mul(n_features));
    let piece = piece_rows(n, n_classes);
    let (tiles, pieces) = (n_features.div_ceil(TILE_FEATURES), n.div_ceil(piece));
    let piece_sums = threads::try_map(threads, tiles * pieces, |task| {
        let (tile, from) = (task % tiles * TILE_FEATURES, task / tiles * piece);
        let features = tile..n_features.min(tile + TILE_FEATURES);
        let mut sums = PieceSums::new(features, rows);
        sums.count(Data { columns, scale, rows }, from..n.min(from + piece))?;
        Ok(sums)
    })?;
    let mut present = count_classes(rows, threads).repeat(n_features);
    let mut total = vec![[Sum::default(); 2]; n_features * n_classes];
    let mut far = HashMap::new();
    for sums in &piece_sums {
        sums.merge_into(&mut present, &mut total, &mut far);
    }
    ClassSums::new(
        rows.digits(),
        (&present, vec![n_features, n_classes]),
        (total.as_flattened(), vec![n_features, n_classes, 2]),
        &far,
    )
}

/// Rows per piece: many enough that a piece's sums are small beside its data. A function of the shapes alone.
fn piece_rows(n: usize, n_classes: usize) -> usize {
    let rows = n.div_ceil(MOST_PIECES).max(32 * n_classes);
    rows.div_ceil(BLOCK).max(1) * BLOCK
}

/// z, of at most 2^400, as a whole number of 2^-57: its size divided by 2^shift, the shift, and whether it is negative.
#[inline(always)]
pub fn on_grid(z: f64) -> (u64, u32, bool) {
    if z.abs() <= NEAR {
        let whole = near_grid(z);
        return (whole.unsigned_abs(), 0, whole < 0);
    }
    let bits = z.to_bits();
    let (mantissa, exponent) = (bits & ((1 << 52) - 1) | 1 << 52, bits >> 52 & 0x7ff);
    (mantissa, exponent as u32 + 57 - 1075, z < 0.0)
}

/// A near z as a whole number of 2^-57.
#[inline(always)]
pub fn near_grid(z: f64) -> i64 {
    (z * GRID).round_ties_even() as i64
}

/// The sums of one piece of rows over one tile of features; all arrays are `[class][feature]`.
struct PieceSums {
    features: Range<usize>,
    /// Cells per row: the features, filled up with zeros to a multiple of `LANES`.
    width: usize,
    n_classes: usize,
    /// The block's sums of near values: the parts of z, then those of z².
    near: Vec<[f64; LANES]>,
    /// Classes with near rows in the block.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    sums: Vec<[Sum; 2]>,
    /// By cell.
    far: HashMap<usize, [FarSum; 2]>,
    /// The weight of rows without a value, of light rows and of all others.
    missing: Vec<i64>,
    missing_others: Vec<i128>,
    /// z, `[row][feature]`.
    tile: Vec<f64>,
    /// Where values that are not doubles are converted.
    room: Vec<f64>,
}

/// Parts of the sums of a block.
const PARTS: usize = 5;

impl PieceSums {
    fn new(features: Range<usize>, rows: &Rows) -> Self {
        let width = features.len().next_multiple_of(LANES);
        let cells = width * rows.n_classes;
        let near_cells = if rows.digits() == 0 { cells } else { 0 };
        PieceSums {
            width,
            n_classes: rows.n_classes,
            near: vec![[0.0; LANES]; PARTS * near_cells / LANES],
            touched: vec![],
            is_touched: vec![false; rows.n_classes],
            sums: vec![Default::default(); cells],
            far: HashMap::new(),
            missing: vec![0; near_cells],
            missing_others: vec![0; cells],
            tile: vec![0.0; width * TILE_ROWS],
            room: vec![],
            features,
        }
    }

    fn count(&mut self, data: Data, range: Range<usize>) -> Result<(), Error> {
        let block = if data.rows.has_ones() { BLOCK } else { BLOCK / LIGHT as usize };
        for start in range.clone().step_by(block) {
            let end = range.end.min(start + block);
            for from in (start..end).step_by(TILE_ROWS) {
                let tile = from..end.min(from + TILE_ROWS);
                self.add_tile(data, tile)?;
            }
            self.fold();
        }
        (self.near, self.tile, self.room) = (vec![], vec![], vec![]);
        Ok(())
    }

    /// Writes z of these rows into the tile.
    #[inline(always)]
    fn fill(&mut self, Data { columns, scale, .. }: Data, rows: Range<usize>) {
        let width = self.width;
        for (first, block, range) in columns.pieces(self.features.clone()) {
            let (at, scaled) = (first - self.features.start, first..first + range.len());
            let (origin, inverse) = (&scale.origin[scaled.clone()], &scale.inverse[scaled]);
            let values = block.reals(rows.clone(), range, &mut self.room);
            fill_tile(values, origin, inverse, &mut self.tile[at..], width);
        }
    }

    fn add_tile(&mut self, data: Data, tile: Range<usize>) -> Result<(), Error> {
        wide!({
            self.fill(data, tile.clone());
            let is_near = all_near(&self.tile[..tile.len() * self.width]);
            for (at, row) in tile.enumerate() {
                if data.rows.classes[row] >= 0 {
                    self.add_row(data, row, at, is_near)?;
                }
            }
            Ok(())
        })
    }

    /// Adds the tile's row `at`, which is row `row` of the data. `is_near`: all rows of the tile are near and complete.
    #[inline(always)]
    fn add_row(&mut self, data: Data, row: usize, at: usize, is_near: bool) -> Result<(), Error> {
        let (width, class) = (self.width, data.rows.classes[row] as usize);
        let z = &self.tile[at * width..(at + 1) * width];
        let cells = class * width..(class + 1) * width;
        let weight = match data.rows.weights {
            Weights::Ones => 1,
            Weights::Whole(weights) => weights[row],
            Weights::Parts(weights) => {
                if weights[row][1] == 0 && all_near(z) {
                    let z = &z[..self.features.len()];
                    add_weighted(z, weights[row][0], &mut self.sums[cells]);
                    return Ok(());
                }
                i64::MAX
            }
        };
        if weight > LIGHT || !is_near && some_far(z) {
            return self.add_each(data, row, at);
        }
        let near = &mut self.near[PARTS * cells.start / LANES..PARTS * cells.end / LANES];
        match is_near {
            true => add_near::<false>(z, weight, near, &mut self.missing[cells]),
            false => add_near::<true>(z, weight, near, &mut self.missing[cells]),
        }
        if !std::mem::replace(&mut self.is_touched[class], true) {
            self.touched.push(class);
        }
        Ok(())
    }

    /// Adds a row value by value, as whole numbers.
    #[inline(never)]
    fn add_each(&mut self, data: Data, row: usize, at: usize) -> Result<(), Error> {
        let (width, weight) = (self.width, data.rows.weight(row));
        let class = data.rows.classes[row] as usize;
        for j in 0..self.features.len() {
            let (cell, mut z) = (class * width + j, self.tile[at * width + j]);
            if z.is_nan() {
                self.missing_others[cell] += weight as i128;
                continue;
            }
            if z.abs() > FARTHEST {
                z = data.careful_z(row, self.features.start + j)?;
            }
            if z.abs() <= NEAR && weight >> 64 == 0 {
                add_weighted(&[z], weight as u64, &mut self.sums[cell..=cell]);
            } else {
                add_far(self.far.entry(cell).or_default(), z, weight);
            }
        }
        Ok(())
    }

    /// Moves the block's near sums into the whole ones.
    fn fold(&mut self) {
        let width = self.width;
        for class in self.touched.drain(..) {
            let near = &mut self.near[PARTS * class * width / LANES..][..PARTS * width / LANES];
            for (lanes, sums) in
                near.chunks_exact(PARTS).zip(self.sums[class * width..].chunks_exact_mut(LANES))
            {
                for (lane, [sum, square]) in sums.iter_mut().enumerate() {
                    let part = |part: usize, unit: i32| {
                        i128::from((lanes[part][lane] * 2_f64.powi(unit)) as i64)
                    };
                    sum.add((part(0, 35) << 22) + part(1, 57));
                    square.add((part(3, 74) << 40) + part(4, 114));
                    let high = part(2, 33); // times 2^81
                    square.add_product(high.unsigned_abs() << 18, 1 << 63, high < 0);
                }
            }
            near.fill([0.0; LANES]);
            self.is_touched[class] = false;
        }
    }

    /// Adds to the totals of all pieces and features, `[feature][class]`.
    fn merge_into(
        &self,
        present: &mut [i128],
        total: &mut [[Sum; 2]],
        far: &mut HashMap<usize, FarSum>,
    ) {
        let width = self.width;
        let place =
            |cell: usize| (self.features.start + cell % width) * self.n_classes + cell / width;
        for cell in 0..self.n_classes * width {
            if cell % width >= self.features.len() {
                continue;
            }
            let to = place(cell);
            total[to][0].merge(&self.sums[cell][0]);
            total[to][1].merge(&self.sums[cell][1]);
            let light = self.missing.get(cell).copied().unwrap_or(0);
            present[to] -= i128::from(light) + self.missing_others[cell];
        }
        for (&cell, sums) in &self.far {
            for (i, sum) in sums.iter().enumerate() {
                far.entry(2 * place(cell) + i).or_default().merge(sum);
            }
        }
    }
}

/// Adds near z and their squares `weight` times, as whole numbers.
#[inline(always)]
fn add_weighted(z: &[f64], weight: u64, sums: &mut [[Sum; 2]]) {
    for (&z, [sum, square]) in z.iter().zip(sums) {
        let whole = near_grid(z);
        sum.add(i128::from(whole) * i128::from(weight));
        let size = u128::from(whole.unsigned_abs());
        square.add_product(size * size, weight, false);
    }
}

/// Adds z and its square `weight` times.
#[inline(never)]
fn add_far([sum, square]: &mut [FarSum; 2], z: f64, weight: u128) {
    let (whole, shift, negative) = on_grid(z);
    sum.add_wide(product(u128::from(whole), weight), shift, negative);
    let squared = u128::from(whole) * u128::from(whole);
    square.add_wide(product(squared, weight), 2 * shift, false);
}

/// Writes z of a block's rows into rows that are `width` long.
#[inline(always)]
fn fill_tile(
    view: ArrayView2<f64>,
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
                    *z = (x - o) * i;
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
            .for_each(|z, &x| *z = (x - o) * i);
    }
}

/// Whether all values are there and near.
#[inline(always)]
fn all_near(z: &[f64]) -> bool {
    z.iter().fold(true, |near, z| near & (z.abs() <= NEAR))
}

/// Whether some values are far; a missing one is neither far nor near.
#[inline(always)]
fn some_far(z: &[f64]) -> bool {
    z.iter().fold(false, |far, z| far | (z.abs() > NEAR))
}

/// Adds a row of near values, times a light weight, to the parts of sums: z in steps of 2^-35 and 2^-57, z² in steps of 2^-33,
/// 2^-74 and 2^-114. With `MISSING`, values may be missing, and the weight is added to `missing` instead.
///
/// `(x + M) - M` is x rounded to the last place of M. The square and its rounding error are exact together, and so is every
/// difference here: no part is ever rounded again.
#[inline(always)]
fn add_near<const MISSING: bool>(
    z: &[f64],
    weight: i64,
    near: &mut [[f64; LANES]],
    missing: &mut [i64],
) {
    const COARSE: f64 = 1.5 * (1_u64 << 17) as f64;
    const FINE: f64 = 1.5 / (1_u64 << 5) as f64;
    const SQUARE: f64 = 1.5 * (1_u64 << 19) as f64;
    const REST: f64 = 1.5 / (1_u64 << 22) as f64;
    let (near, missing) = (near.as_chunks_mut::<PARTS>().0, missing.as_chunks_mut::<LANES>().0);
    let times = weight as f64;
    for ((z, near), missing) in z.as_chunks::<LANES>().0.iter().zip(near).zip(missing) {
        // A copy is changed, so that all parts are read before any is written.
        let mut sums = *near;
        for i in 0..LANES {
            let z = if MISSING && z[i].is_nan() { 0.0 } else { z[i] };
            let z1 = (z + COARSE) - COARSE;
            let z2 = ((z - z1) + FINE) - FINE;
            let z = z1 + z2;
            let square = z * z;
            let error = z.mul_add(z, -square);
            let p1 = (square + SQUARE) - SQUARE;
            let rest = square - p1;
            let p2 = (rest + REST) - REST;
            let p3 = (error + REST) - REST;
            sums[0][i] += times * z1;
            sums[1][i] += times * z2;
            sums[2][i] += times * p1;
            sums[3][i] += times * (p2 + p3);
            sums[4][i] += times * ((rest - p2) + (error - p3));
        }
        *near = sums;
        if MISSING {
            for (z, missing) in z.iter().zip(missing) {
                *missing += if z.is_nan() { weight } else { 0 };
            }
        }
    }
}
