//! Sums of z and z² per feature and class, as whole numbers.
//!
//! z is rounded once to a grid of 2^-57; what is summed are those whole numbers and their exact squares, in units of 2^-57 and
//! 2^-114. Within a block of rows, doubles do it without rounding: each z near the origin (|z| <= 16), and each square, is cut
//! into parts that are multiples of one unit, and so few rows are added that their sums stay below 2^53 of it. What is farther
//! out, or weighs more than 16 or a fraction, is added as the whole number that it is.

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
/// Rows per tile, and features per tile: z of a tile stays in the first cache.
const TILE_ROWS: usize = 64;
const TILE_FEATURES: usize = 256;
/// Rows per block: so few that their parts add up exactly, each times a light weight too.
const BLOCK: usize = 4096;
const LIGHT: i64 = 16;
const MOST_PIECES: usize = 256;

/// A sum of what may be far.
pub type Far = Int<18>;

/// Rows, and sums of z and of products of z.
#[derive(Debug)]
pub struct Measured {
    pub rows: Integers,
    pub sums: Integers,
}

/// What is summed.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a, 'b> {
    pub columns: &'a Columns<'b>,
    pub scale: &'a Scale<'a>,
    pub rows: &'a Rows<'a>,
}

impl Data<'_, '_> {
    /// z of a value that looks out of reach, or why it cannot be summed.
    pub fn reach(self, row: usize, feature: usize) -> Result<f64, Error> {
        let x = self.columns.value(row, feature).real();
        let z = self.scale.careful(x, feature);
        let fault = if x.is_infinite() { Fault::Infinite } else { Fault::TooFar };
        if z.abs() <= FARTHEST { Ok(z) } else { Err(self.columns.refused(fault, row, feature)) }
    }
}

/// Sums z and z² over the rows of each class, `[feature][class]` and `[feature][class][2]`; missing values (NaN) leave their feature
/// alone.
pub fn count_moments(
    columns: &Columns,
    scale: &Scale,
    rows: &Rows,
    threads: usize,
) -> Result<Measured, Error> {
    columns.demand_rows(rows.len())?;
    let (n, n_features, n_classes) = (rows.len(), columns.features(), rows.n_classes);
    let threads = threads::worth(threads, n.saturating_mul(n_features));
    let piece = piece_rows(n, n_classes);
    let (tiles, pieces) = (n_features.div_ceil(TILE_FEATURES), n.div_ceil(piece));
    let found = threads::try_map(threads, tiles * pieces, |task| {
        let (tile, from) = (task % tiles * TILE_FEATURES, task / tiles * piece);
        let features = tile..n_features.min(tile + TILE_FEATURES);
        let mut sums = Sums::new(features, rows);
        sums.count(Data { columns, scale, rows }, from..n.min(from + piece))?;
        Ok(sums)
    })?;
    let mut present = count_classes(rows, threads).repeat(n_features);
    let mut total = vec![[Sum::default(); 2]; n_features * n_classes];
    let mut far = HashMap::new();
    for sums in &found {
        sums.merge_into(&mut present, &mut total, &mut far);
    }
    let near: Vec<Int<4>> = total.as_flattened().iter().map(Sum::int).collect();
    let total = Integers::of(vec![n_features, n_classes, 2], rows.digits(), &near)?;
    Ok(Measured {
        rows: counted(&present, vec![n_features, n_classes], rows.digits())?,
        sums: total.with(&far, rows.digits())?,
    })
}

/// Rows per piece: many enough that a piece's sums are small beside its data. A function of the shapes alone.
fn piece_rows(n: usize, n_classes: usize) -> usize {
    let rows = n.div_ceil(MOST_PIECES).max(32 * n_classes);
    rows.div_ceil(BLOCK).max(1) * BLOCK
}

/// A z that is no farther than 2^400 as a whole number of 2^-57: how many, times 2^shift, and whether it is negative.
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

/// The same of one that is near.
#[inline(always)]
pub fn near_grid(z: f64) -> i64 {
    (z * GRID).round_ties_even() as i64
}

/// The sums of one piece of rows over one tile of features; all arrays are `[class][feature]`.
struct Sums {
    features: Range<usize>,
    /// Cells per row: the features, and up to a whole number of `LANES` with zeros.
    width: usize,
    n_classes: usize,
    /// The block's near sums: the parts of z, then those of z².
    near: Vec<[f64; LANES]>,
    /// Classes that the block has near rows of.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    /// The rows of a tile, by class, and the classes that it has.
    members: Vec<u64>,
    met: Vec<usize>,
    sums: Vec<[Sum; 2]>,
    /// By cell.
    far: HashMap<usize, [Far; 2]>,
    /// Rows without a value, and their weight where they do not all weigh one.
    missing: Vec<i64>,
    missing_weights: Vec<i128>,
    /// z, `[row][feature]`.
    tile: Vec<f64>,
    /// For values that are no doubles.
    room: Vec<f64>,
}

/// Parts of the sums of a block.
const PARTS: usize = 5;

impl Sums {
    fn new(features: Range<usize>, rows: &Rows) -> Self {
        let width = features.len().next_multiple_of(LANES);
        let cells = width * rows.n_classes;
        let (ones, whole) = (rows.has_ones(), rows.digits() == 0);
        Sums {
            width,
            n_classes: rows.n_classes,
            near: vec![[0.0; LANES]; if whole { PARTS * cells / LANES } else { 0 }],
            touched: vec![],
            is_touched: vec![false; rows.n_classes],
            members: vec![0; rows.n_classes],
            met: vec![],
            sums: vec![Default::default(); cells],
            far: HashMap::new(),
            missing: vec![0; if ones { cells } else { 0 }],
            missing_weights: vec![0; cells],
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
            if data.rows.has_ones() && all_near(&self.tile[..tile.len() * self.width]) {
                self.add_members(&data.rows.classes[tile]);
                return Ok(());
            }
            for (at, row) in tile.enumerate() {
                if data.rows.classes[row] >= 0 {
                    self.add_row(data, row, at)?;
                }
            }
            Ok(())
        })
    }

    /// Adds the tile's rows, which are all near, class by class: sums stay where they are added.
    #[inline(always)]
    fn add_members(&mut self, classes: &[i32]) {
        for (at, class) in classes.iter().enumerate() {
            let Ok(class) = usize::try_from(*class) else { continue };
            if self.members[class] == 0 {
                self.met.push(class);
            }
            self.members[class] |= 1 << at;
        }
        for class in self.met.drain(..) {
            let members = std::mem::take(&mut self.members[class]);
            let near = &mut self.near[PARTS * class * self.width / LANES..];
            let near = near[..PARTS * self.width / LANES].as_chunks_mut::<PARTS>().0;
            for (at, near) in near.iter_mut().enumerate() {
                let (mut sums, mut left) = (*near, members);
                while left != 0 {
                    let row = left.trailing_zeros() as usize;
                    left &= left - 1;
                    let z = self.tile[row * self.width + at * LANES..].first_chunk();
                    add_lanes::<false>(z.unwrap_or(&[0.0; LANES]), 1.0, &mut sums);
                }
                *near = sums;
            }
            if !std::mem::replace(&mut self.is_touched[class], true) {
                self.touched.push(class);
            }
        }
    }

    /// Adds the tile's row `at`, which is row `row` of the data.
    #[inline(always)]
    fn add_row(&mut self, data: Data, row: usize, at: usize) -> Result<(), Error> {
        let (width, class) = (self.width, data.rows.classes[row] as usize);
        let z = &self.tile[at * width..(at + 1) * width];
        let all = all_near(z);
        let sums = class * width..(class + 1) * width;
        let near = PARTS * sums.start / LANES..PARTS * sums.end / LANES;
        match data.rows.weights {
            Weights::Ones if all => add_near::<false>(z, 1.0, &mut self.near[near]),
            Weights::Ones if !some_far(z) => {
                add_present(z, &mut self.near[near], &mut self.missing[sums])
            }
            Weights::Whole(weights) if all && weights[row] <= LIGHT => {
                add_near::<true>(z, weights[row] as f64, &mut self.near[near])
            }
            Weights::Parts(weights) if all && weights[row][1] == 0 => {
                add_weighed(&z[..self.features.len()], weights[row][0], &mut self.sums[sums]);
                return Ok(());
            }
            _ => return self.add_each(data, row, at),
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
                self.missing_weights[cell] += weight as i128;
                continue;
            }
            if z.abs() > FARTHEST {
                z = data.reach(row, self.features.start + j)?;
            }
            if z.abs() <= NEAR && weight >> 64 == 0 {
                add_weighed(&[z], weight as u64, &mut self.sums[cell..=cell]);
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

    /// Adds to the totals, which are `[feature][class]`.
    fn merge_into(
        &self,
        present: &mut [i128],
        total: &mut [[Sum; 2]],
        far: &mut HashMap<usize, Far>,
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
            let ones = self.missing.get(cell).copied().unwrap_or(0);
            present[to] -= i128::from(ones) + self.missing_weights[cell];
        }
        for (&cell, sums) in &self.far {
            for (i, sum) in sums.iter().enumerate() {
                far.entry(2 * place(cell) + i).or_default().merge(sum);
            }
        }
    }
}

/// Adds near z and their squares, so many times.
#[inline(always)]
fn add_weighed(z: &[f64], weight: u64, sums: &mut [[Sum; 2]]) {
    for (&z, [sum, square]) in z.iter().zip(sums) {
        let whole = near_grid(z);
        sum.add(i128::from(whole) * i128::from(weight));
        let size = u128::from(whole.unsigned_abs());
        square.add_product(size * size, weight, false);
    }
}

/// Adds z and its square, so many times.
#[inline(never)]
fn add_far([sum, square]: &mut [Far; 2], z: f64, weight: u128) {
    let (whole, shift, negative) = on_grid(z);
    sum.add_wide(product(u128::from(whole), weight), shift, negative);
    let squared = u128::from(whole) * u128::from(whole);
    square.add_wide(product(squared, weight), 2 * shift, false);
}

/// z of a block's rows, into rows `width` long.
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

#[inline(always)]
fn all_near(z: &[f64]) -> bool {
    let mut near = [1_u64; LANES];
    for z in z.as_chunks::<LANES>().0 {
        near.iter_mut().zip(z).for_each(|(near, z)| *near &= u64::from(z.abs() <= NEAR));
    }
    near.iter().fold(1, |all, near| all & near) == 1
}

/// Whether some are far; a missing one is neither far nor near.
#[inline(always)]
fn some_far(z: &[f64]) -> bool {
    z.iter().fold(false, |far, z| far | (z.abs() > NEAR))
}

/// Adds to a sum's parts: z in steps of 2^-35 and 2^-57, its square in steps of 2^-33, 2^-74 and 2^-114.
///
/// `(x + M) - M` is x rounded to the last place of M. The square and what rounding takes off it are exact together, and so is
/// every difference here: no part is ever rounded again.
#[inline(always)]
fn add_parts<const WEIGHED: bool>(z: f64, weight: f64, [a1, a2, b1, b2, b3]: [&mut f64; PARTS]) {
    const COARSE: f64 = 1.5 * (1_u64 << 17) as f64;
    const FINE: f64 = 1.5 / (1_u64 << 5) as f64;
    const SQUARE: f64 = 1.5 * (1_u64 << 19) as f64;
    const REST: f64 = 1.5 / (1_u64 << 22) as f64;
    let z1 = (z + COARSE) - COARSE;
    let z2 = ((z - z1) + FINE) - FINE;
    let z = z1 + z2;
    let square = z * z;
    let error = z.mul_add(z, -square);
    let p1 = (square + SQUARE) - SQUARE;
    let rest = square - p1;
    let p2 = (rest + REST) - REST;
    let p3 = (error + REST) - REST;
    let times = |part: f64| if WEIGHED { weight * part } else { part };
    *a1 += times(z1);
    *a2 += times(z2);
    *b1 += times(p1);
    *b2 += times(p2 + p3);
    *b3 += times((rest - p2) + (error - p3));
}

/// Adds a row to the parts, `LANES` values at a time: all are read before any is written.
#[inline(always)]
fn add_lanes<const WEIGHED: bool>(z: &[f64; LANES], weight: f64, near: &mut [[f64; LANES]; PARTS]) {
    let [mut a1, mut a2, mut b1, mut b2, mut b3] = *near;
    for i in 0..LANES {
        let parts = [&mut a1[i], &mut a2[i], &mut b1[i], &mut b2[i], &mut b3[i]];
        add_parts::<WEIGHED>(z[i], weight, parts);
    }
    *near = [a1, a2, b1, b2, b3];
}

/// Adds a row that is near, so many times.
#[inline(always)]
fn add_near<const WEIGHED: bool>(z: &[f64], weight: f64, near: &mut [[f64; LANES]]) {
    let near = near.as_chunks_mut::<PARTS>().0;
    for (z, near) in z.as_chunks::<LANES>().0.iter().zip(near) {
        add_lanes::<WEIGHED>(z, weight, near);
    }
}

/// [`add_near`] where some are missing, and rows weigh one.
#[inline(always)]
fn add_present(z: &[f64], near: &mut [[f64; LANES]], missing: &mut [i64]) {
    let (near, missing) = (near.as_chunks_mut::<PARTS>().0, missing.as_chunks_mut::<LANES>().0);
    for ((z, near), missing) in z.as_chunks::<LANES>().0.iter().zip(near).zip(missing) {
        add_lanes::<false>(&z.map(|z| if z.is_nan() { 0.0 } else { z }), 1.0, near);
        let mut counts = *missing;
        for (z, count) in z.iter().zip(&mut counts) {
            *count += i64::from(z.is_nan());
        }
        *missing = counts;
    }
}
