//! Sums of z and z² per feature and class, as whole numbers.
//!
//! z is rounded once to a grid of 2^-57. The kernel sums these whole numbers and their exact squares, in units of 2^-57 and
//! 2^-114. Within a block of rows it adds doubles, and none of them is rounded: it splits each z near the origin (|z| <= 16) and
//! each square into parts that are multiples of one unit, and a block has so few rows that each part's sum stays below 2^53
//! units. Values farther out, weights above 16 and fractional weights are added as whole numbers of 256 bits or more.

use crate::classes::{Rows, Weights, count_classes, counted};
use crate::columns::Columns;
use crate::error::{Error, Fault};
use crate::integers::{Int, Integers, Sum256, product};
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
/// Values that are added side by side. To fit 400,000 rows of 20 features took 12.5 ms with 8, 19.4 with 4 and 12.7 with 16.
const LANES: usize = 8;
/// Rows per tile and features per tile. On 4,000 rows of 1,000 features by row, these and eight lanes took 14 ms; 8 × 32 and four
/// lanes 65 ms; 512 × 2,048 and sixteen lanes 13 ms, but on 200,000 rows of 20 features 22 ms instead of 15.
const TILE_ROWS: usize = 64;
const TILE_FEATURES: usize = 256;
/// Rows per block, and the largest weight that is added as a double: where rows have weights, a block has fewer rows, so that
/// the sum of a part stays below 2^53 units. 200,000 rows of 20 features with weights from 1 to 9 took 14 ms, 53 with 2 and
/// 17 with 128 as the largest light weight.
const BLOCK: usize = 4096;
const LIGHT: i64 = 16;
/// Pieces of rows, at most: each has sums of its own, which are added up at the end. 32 to 2,048 were equally fast (200,000
/// rows of 20 features: 8.7 to 9.4 ms on one thread).
const MOST_PIECES: usize = 256;

/// A sum of values that may be far from the origin.
pub type FarSum = Int<18>;

/// The weight of the rows of each class, and their sums of z and of products of two z, in the shapes of [`count_moments`] or of
/// `products::count_products`.
#[derive(Debug)]
pub struct ClassSums {
    /// Weights, in rows.
    pub rows: Integers,
    /// Weighted sums of z in units of 2^-57, and of products in units of 2^-114.
    pub sums: Integers,
}

impl ClassSums {
    /// `rows` and `near_sums` are the weights and the sums that fit 128 and 256 bits, and their shapes; all count in units of
    /// 10^-digits of a row. `far_sums` has what is to be added to some of `near_sums`, by index. `near_ints` and `far_ints`
    /// are these sums as limbs, one per cell of `sums_shape`. z is (x - origin) / unit of a feature; far ones are more than
    /// 16 from 0.
    pub fn new(
        digits: u32,
        (rows, rows_shape): (&[i128], Vec<usize>),
        (near_sums, sums_shape): (&[Sum256], Vec<usize>),
        far_sums: &HashMap<usize, FarSum>,
    ) -> Result<Self, Error> {
        let near_ints: Vec<Int<4>> = near_sums.iter().map(Sum256::int).collect();
        let mut sums = Integers::of_wide(sums_shape.clone(), digits, &near_ints)?;
        if !far_sums.is_empty() {
            let mut far_ints = vec![FarSum::default(); near_sums.len()];
            far_sums.iter().for_each(|(&cell, sum)| far_ints[cell] = *sum);
            sums = sums.plus(&Integers::of_wide(sums_shape, digits, &far_ints)?)?;
        }
        Ok(ClassSums { rows: counted(rows, rows_shape, digits)?, sums })
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
    /// z of the value of a feature in a row, even if x - origin overflows; an error if it is infinite or too far from the
    /// origin to be summed. z is (x - origin) / unit of the feature. x is the value.
    pub fn checked_z(self, row: usize, feature: usize) -> Result<f64, Error> {
        let x = self.columns.value(row, feature).real();
        let z = self.scale.z_without_overflow(x, feature);
        // Why the value is refused, if it is.
        let fault = if x.is_infinite() { Fault::Infinite } else { Fault::TooFar };
        if z.abs() <= FARTHEST { Ok(z) } else { Err(self.columns.bad_value(fault, row, feature)) }
    }
}

/// Sums z and z² over the rows of each class. Returns the weights of the rows with a value, `[feature][class]`, and the sums,
/// `[feature][class][z, z²]`. A missing value (NaN) adds nothing to its feature; rows of class -1 are passed over. An
/// infinite value is an error, as is a z beyond [`FARTHEST`]. Weights are in the unit of `rows.digits()`: 10^-digits of a
/// row. z is (x - origin) / unit, with the `scale` of the feature, and `rows` has the class and the weight of each row. At
/// most `threads` threads are used.
pub fn count_moments(
    columns: &Columns,
    scale: &Scale,
    rows: &Rows,
    threads: usize,
) -> Result<ClassSums, Error> {
    columns.demand_rows(rows.len())?;
    let (n_rows, n_features, n_classes) = (rows.len(), columns.features(), rows.n_classes);
    let threads = threads::worth(threads, n_rows.saturating_mul(n_features));
    let piece_rows = piece_rows(n_rows, n_classes); // rows per piece
    // A task is one piece of the rows in one tile of the features.
    let (n_tiles, n_pieces) = (n_features.div_ceil(TILE_FEATURES), n_rows.div_ceil(piece_rows));
    // The sums of each task.
    let piece_sums = threads::try_map(threads, n_tiles * n_pieces, |task| {
        let first_feature = task % n_tiles * TILE_FEATURES;
        let first_row = task / n_tiles * piece_rows;
        let features = first_feature..n_features.min(first_feature + TILE_FEATURES);
        let mut sums = PieceSums::new(features, rows);
        let piece = first_row..n_rows.min(first_row + piece_rows);
        sums.count(Data { columns, scale, rows }, piece)?;
        Ok(sums)
    })?;
    // [feature][class]: the weight of all rows, from which those without a value are subtracted; sums of z and z².
    let mut present = count_classes(rows, threads).repeat(n_features);
    let mut total = vec![[Sum256::default(); 2]; n_features * n_classes];
    // What far values add to each sum, by index [feature][class][z, z²].
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

/// Rows per piece: many enough that a piece's sums are small beside its data. A function of the shapes alone. All are
/// numbers: of rows in total, of classes and, returned, of rows of a piece.
fn piece_rows(n_rows: usize, n_classes: usize) -> usize {
    let least_rows = n_rows.div_ceil(MOST_PIECES).max(32 * n_classes);
    least_rows.div_ceil(BLOCK).max(1) * BLOCK
}

/// A whole number, in units of 2^-57: `size * 2^shift`, with a sign.
pub struct GridNumber {
    pub size: u64,
    pub shift: u32,
    pub is_negative: bool,
}

/// Rounds z, which is present and at most 2^400 from 0, to a whole number of units of 2^-57. Returns it as `size * 2^shift`,
/// with a sign. z is (x - origin) / unit of a feature.
#[inline(always)]
pub fn round_to_grid(z: f64) -> GridNumber {
    if z.abs() <= NEAR {
        let whole = round_near_to_grid(z);
        return GridNumber { size: whole.unsigned_abs(), shift: 0, is_negative: whole < 0 };
    }
    // |z| = mantissa * 2^(exponent - 1075), by the format of doubles.
    let bits = z.to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let exponent = bits >> 52 & 0x7ff;
    GridNumber { size: mantissa, shift: exponent as u32 + 57 - 1075, is_negative: z < 0.0 }
}

/// A near z in units of 2^-57, rounded to a whole number.
#[inline(always)]
pub fn round_near_to_grid(z: f64) -> i64 {
    (z * GRID).round_ties_even() as i64
}

/// The sums of one piece of rows over one tile of features; all arrays are `[class][feature]`.
struct PieceSums {
    features: Range<usize>,
    /// Cells per row: the features, filled up with zeros to a multiple of `LANES`.
    width: usize,
    n_classes: usize,
    /// The block's sums of near values: the parts of z, then those of z².
    near_parts: Vec<[f64; LANES]>,
    /// The classes with near rows in the block, as a list and as a flag for each class.
    block_classes: Vec<usize>,
    is_in_block: Vec<bool>,
    /// Sums of z and z² of the near values of all blocks, as whole numbers.
    sums: Vec<[Sum256; 2]>,
    /// Sums of z and z² of far values, by cell: index into `sums`.
    far_sums: HashMap<usize, [FarSum; 2]>,
    /// The weight of rows without a value, in the units of the caller's weights: of light rows, and of all others.
    missing_light: Vec<i64>,
    missing_weights: Vec<i128>,
    /// z, `[row][feature]`.
    tile: Vec<f64>,
    /// Where values that are not doubles are converted.
    buffer: Vec<f64>,
}

/// Parts of the sums of z and z² of a block: two of z, three of z².
const PARTS: usize = 5;

impl PieceSums {
    /// Sums of no rows, of a range of features; `rows` gives the number of classes and the units of weights. `width` is the
    /// number of features, rounded up to whole lanes, and `cells` that of sums, `[class][feature]`; near sums are kept only
    /// where weights are whole (`near_cells` is 0 otherwise). z is (x - origin) / unit of a feature, near if it is at most 16
    /// from 0. `missing_light` and `missing_weights` are for the weight of rows without a value; the tile is memory for z,
    /// `[row][feature]`. `sums` and `far_sums` are for the sums of z and z², near and far, and `near_parts` for those of a
    /// block; `block_classes` and `is_in_block` are for the classes with rows in the block.
    fn new(features: Range<usize>, rows: &Rows) -> Self {
        let width = features.len().next_multiple_of(LANES);
        let cells = width * rows.n_classes;
        let near_cells = if rows.digits() == 0 { cells } else { 0 };
        PieceSums {
            width,
            n_classes: rows.n_classes,
            near_parts: vec![[0.0; LANES]; PARTS * near_cells / LANES],
            block_classes: vec![],
            is_in_block: vec![false; rows.n_classes],
            sums: vec![Default::default(); cells],
            far_sums: HashMap::new(),
            missing_light: vec![0; near_cells],
            missing_weights: vec![0; cells],
            tile: vec![0.0; width * TILE_ROWS],
            buffer: vec![],
            features,
        }
    }

    /// Adds the rows in `range` that have a class, tile by tile. `data` has the columns, their scale, and the classes and
    /// weights of the rows. `self.near_parts`, `self.tile` and `self.buffer` are memory for sums of a block, for z, and for
    /// values that are converted.
    fn count(&mut self, data: Data, range: Range<usize>) -> Result<(), Error> {
        // So few that sums of parts, each times a light weight, are exact.
        let block_rows = if data.rows.has_ones() { BLOCK } else { BLOCK / LIGHT as usize };
        for start in range.clone().step_by(block_rows) {
            let end = range.end.min(start + block_rows);
            for from in (start..end).step_by(TILE_ROWS) {
                let tile = from..end.min(from + TILE_ROWS);
                self.add_tile(data, tile)?;
            }
            self.flush_block();
        }
        // The sums of all pieces are kept until the last one is counted.
        (self.near_parts, self.tile, self.buffer) = (vec![], vec![], vec![]);
        Ok(())
    }

    /// Writes z of these rows of the data into `self.tile`, `[row][feature]`; NaN where a value is missing. `self.features`
    /// are the features of these sums, the first of which is column 0 of the tile; a row of the tile has `self.width` cells.
    /// `self.buffer` is memory for values that are converted. z is (x - origin) / unit of a feature.
    #[inline(always)]
    fn fill_tile(&mut self, Data { columns, scale, .. }: Data, rows: Range<usize>) {
        let width = self.width;
        // `block_columns` of the array `block` are the features from `first` on.
        for (first, block, block_columns) in columns.blocks_of(self.features.clone()) {
            let features = first..first + block_columns.len();
            let (origin, inverse) = (&scale.origin[features.clone()], &scale.inverse[features]); // inverse: 1 / unit
            let values = block.reals(rows.clone(), block_columns, &mut self.buffer);
            let tile = &mut self.tile[first - self.features.start..];
            write_z(values, origin, inverse, tile, width);
        }
    }

    /// Adds the rows `tile` of the data, at most [`TILE_ROWS`], that have a class. `data` has the columns, their scale, and
    /// the class (-1: none) and weight of each row. `self.tile` has z of these rows, `[row][feature]`, `self.width` cells per
    /// row. z is (x - origin) / unit of a feature, near if it is at most 16 from 0.
    fn add_tile(&mut self, data: Data, tile: Range<usize>) -> Result<(), Error> {
        wide!({
            self.fill_tile(data, tile.clone());
            // Whether all z of the tile are near; a missing one is not.
            let is_near = all_near(&self.tile[..tile.len() * self.width]);
            for (tile_row, row) in tile.enumerate() {
                if data.rows.classes[row] >= 0 {
                    self.add_row(data, row, tile_row, is_near)?;
                }
            }
            Ok(())
        })
    }

    /// Adds row `tile_row` of the tile, which is row `row` of the data and has a class. `is_near`: all rows of the tile are
    /// near and complete. `data` has the class and the weight of each row. The tile is `[row][feature]`, with `self.width`
    /// cells per row, and sums are `[class][feature]`: `self.sums` of [z, z²], `self.missing_light` of the weight of light
    /// rows without a value. `self.is_in_block[class]` says whether the class has near rows in the block, and
    /// `self.block_classes` lists these classes. z is (x - origin) / unit of a feature, near if it is at most 16 from 0; a
    /// light weight is at most 16 rows. `near_parts` has the block's sums of the parts of z and z².
    #[inline(always)]
    fn add_row(
        &mut self,
        data: Data,
        row: usize,
        tile_row: usize,
        is_near: bool,
    ) -> Result<(), Error> {
        let (width, class) = (self.width, data.rows.classes[row] as usize);
        let z = &self.tile[tile_row * width..(tile_row + 1) * width];
        let cells = class * width..(class + 1) * width; // of the class, in sums `[class][feature]`
        // The weight in rows; the largest number if it is in parts of a row, [lower limb, upper limb], which are not light.
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
        if weight > LIGHT || !is_near && any_far(z) {
            return self.add_values(data, row, tile_row);
        }
        // The block's sums of parts of z and z², of the class.
        let parts = &mut self.near_parts[PARTS * cells.start / LANES..PARTS * cells.end / LANES];
        match is_near {
            true => add_near::<false>(z, weight, parts, &mut self.missing_light[cells]),
            false => add_near::<true>(z, weight, parts, &mut self.missing_light[cells]),
        }
        // The classes that have near rows in the block, by flag and as a list.
        if !std::mem::replace(&mut self.is_in_block[class], true) {
            self.block_classes.push(class);
        }
        Ok(())
    }

    /// Adds row `tile_row` of the tile, row `row` of the data, value by value, as whole numbers. `data` has the class and the
    /// weight of each row; `self.tile` has z, `[row][feature]`, with `self.width` cells per row, NaN where a value is
    /// missing. Cells are `[class][feature]`: `self.sums` has the sums of z and z² near the origin, `self.far_sums` those far
    /// from it, and `self.missing_weights` the weight of rows without a value. `self.features` are the features of the tile.
    /// z is (x - origin) / unit of a feature, near if it is at most 16 from 0.
    #[inline(never)]
    fn add_values(&mut self, data: Data, row: usize, tile_row: usize) -> Result<(), Error> {
        let (width, weight) = (self.width, data.rows.weight(row));
        let class = data.rows.classes[row] as usize;
        for j in 0..self.features.len() {
            let (cell, mut z) = (class * width + j, self.tile[tile_row * width + j]);
            if z.is_nan() {
                self.missing_weights[cell] += weight as i128;
                continue;
            }
            if z.abs() > FARTHEST {
                z = data.checked_z(row, self.features.start + j)?;
            }
            if z.abs() <= NEAR && weight >> 64 == 0 {
                add_weighted(&[z], weight as u64, &mut self.sums[cell..=cell]);
            } else {
                add_far(self.far_sums.entry(cell).or_default(), z, weight);
            }
        }
        Ok(())
    }

    /// Adds the block's sums of near values to the sums of whole numbers, and empties the block. `self.block_classes` are the
    /// classes with near rows in the block, and `self.is_in_block[class]` says so for each class. `self.sums` has [z, z²] for
    /// each cell, `[class][feature]`, with `self.width` features, and `self.near_parts` the parts of the block's sums,
    /// `[class][feature / LANES][part][lane]`. z is (x - origin) / unit of a feature, near if it is at most 16 from 0.
    fn flush_block(&mut self) {
        let width = self.width;
        for class in self.block_classes.drain(..) {
            let first = PARTS * class * width / LANES; // where the class begins in `self.near_parts`
            let parts = &mut self.near_parts[first..][..PARTS * width / LANES];
            // `lanes` has the parts of eight features, [part][lane]: parts 0 and 1 add up to z, parts 2 to 4 to z²; each is a
            // whole number of its unit, 2^-unit.
            for (lanes, sums) in
                parts.chunks_exact(PARTS).zip(self.sums[class * width..].chunks_exact_mut(LANES))
            {
                for (lane, [sum, square]) in sums.iter_mut().enumerate() {
                    // A part's sum as a whole number of 2^-unit.
                    let part = |part: usize, unit: i32| {
                        i128::from((lanes[part][lane] * 2_f64.powi(unit)) as i64)
                    };
                    sum.add((part(0, 35) << 22) + part(1, 57));
                    square.add((part(3, 74) << 40) + part(4, 114));
                    let high = part(2, 33); // times 2^81
                    square.add_product(high.unsigned_abs() << 18, 1 << 63, high < 0);
                }
            }
            parts.fill([0.0; LANES]);
            self.is_in_block[class] = false;
        }
    }

    /// Adds these sums to the totals of all pieces and features: `total` is `[feature][class]`, of [z, z²], and `far_total`
    /// has sums of far values by their index in `[feature][class][z, z²]`. Subtracts the weight of rows without a value from
    /// `present`, `[feature][class]`. These sums are `[class][feature]`, `self.width` cells per class, for the features
    /// `self.features`: `self.sums` and `self.far_sums` have [z, z²]; `self.missing_light` has the weight of light rows
    /// without a value (it is empty if weights are fractional), and `self.missing_weights` that of all other rows without a
    /// value. z is (x - origin) / unit of a feature, and far if it is more than 16 from 0; weights are in rows, or in parts
    /// of a row. `present` is the weight of rows with a value.
    fn merge_into(
        &self,
        present: &mut [i128],
        total: &mut [[Sum256; 2]],
        far_total: &mut HashMap<usize, FarSum>,
    ) {
        let width = self.width;
        // The index in the totals, [feature][class], of a cell of these sums, [class][feature].
        let total_cell =
            |cell: usize| (self.features.start + cell % width) * self.n_classes + cell / width;
        // Cells beyond the features only fill up the width.
        for cell in 0..self.n_classes * width {
            if cell % width >= self.features.len() {
                continue;
            }
            let target = total_cell(cell);
            total[target][0].merge(&self.sums[cell][0]);
            total[target][1].merge(&self.sums[cell][1]);
            let missing_light = self.missing_light.get(cell).copied().unwrap_or(0);
            present[target] -= i128::from(missing_light) + self.missing_weights[cell];
        }
        for (&cell, sums) in &self.far_sums {
            // `square` is 0 for the sum of z, 1 for that of z².
            for (square, sum) in sums.iter().enumerate() {
                far_total.entry(2 * total_cell(cell) + square).or_default().merge(sum);
            }
        }
    }
}

/// Adds near z and their squares, `weight` times, as whole numbers: each z to its own [sum of z, sum of z²]. Sums are in
/// units of 2^-57 of z, and 2^-114 of z². z is (x - origin) / unit of a feature, near if it is at most 16 from 0; `whole` is
/// z as a whole number of 2^-57, and `size` how far that is from 0.
#[inline(always)]
fn add_weighted(z: &[f64], weight: u64, sums: &mut [[Sum256; 2]]) {
    for (&z, [sum, square]) in z.iter().zip(sums) {
        let whole = round_near_to_grid(z);
        sum.add(i128::from(whole) * i128::from(weight));
        let size = u128::from(whole.unsigned_abs());
        square.add_product(size * size, weight, false);
    }
}

/// Adds z, near or far, and its square `weight` times to the sum of z and the sum of z². Sums are in units of 2^-57 of z, and
/// 2^-114 of z²; z in units of 2^-57 is `size * 2^shift`, with a sign. `weight` is a number of rows or of parts of a row. z
/// is (x - origin) / unit of a feature, near if it is at most 16 from 0.
#[inline(never)]
fn add_far([sum, square]: &mut [FarSum; 2], z: f64, weight: u128) {
    let GridNumber { size, shift, is_negative } = round_to_grid(z);
    sum.add_wide(product(u128::from(size), weight), shift, is_negative);
    let squared = u128::from(size) * u128::from(size);
    square.add_wide(product(squared, weight), 2 * shift, false);
}

/// Writes z of `values` (rows × columns) into the first columns of `tile`, whose rows are `width` long. `origin` and
/// `inverse` (1 / unit) have a number per column. A z is (x - origin) / unit, x being the element of `values`. `out` is a row
/// or a column of the tile.
#[inline(always)]
fn write_z(
    values: ArrayView2<f64>,
    origin: &[f64],
    inverse: &[f64],
    tile: &mut [f64],
    width: usize,
) {
    let (n_rows, n_columns) = values.dim();
    if n_columns > 1 && values.strides()[1] == 1 {
        for (row, out) in values.rows().into_iter().zip(tile.chunks_mut(width)) {
            if let Some(row) = row.to_slice() {
                let scales = origin.iter().zip(inverse);
                for ((z, &x), (&origin, &inverse)) in out.iter_mut().zip(row).zip(scales) {
                    *z = (x - origin) * inverse;
                }
            }
        }
        return;
    }
    for j in 0..n_columns {
        let (origin, inverse) = (origin[j], inverse[j]);
        let out = ArrayViewMut1::from(&mut tile[j..(n_rows - 1) * width + j + 1]);
        Zip::from(out.slice_move(s![..;width]))
            .and(values.column(j))
            .for_each(|z, &x| *z = (x - origin) * inverse);
    }
}

/// Whether all z are near; a missing one, NaN, is not.
#[inline(always)]
fn all_near(z: &[f64]) -> bool {
    z.iter().fold(true, |near, z| near & (z.abs() <= NEAR))
}

/// Whether some z are far; a missing one, NaN, is neither far nor near.
#[inline(always)]
fn any_far(z: &[f64]) -> bool {
    z.iter().fold(false, |far, z| far | (z.abs() > NEAR))
}

/// Adds a row of near z, `[feature]`, times a light weight, to the parts of sums, `[feature / LANES][part][lane]`: z in steps of
/// 2^-35 and 2^-57, z² in steps of 2^-33, 2^-74 and 2^-114. With `MISSING`, z may be NaN, and the weight is added to `missing`,
/// `[feature]`, instead.
///
/// `(x + M) - M` is x rounded to the last place of M. The square and its rounding error are exact together, and so is every
/// difference here: no part is ever rounded again. A light weight is a number of rows, at most [`LIGHT`]. z is (x - origin) /
/// unit of a feature, near if it is at most 16 from 0.
#[inline(always)]
fn add_near<const MISSING: bool>(
    z: &[f64],
    weight: i64,
    parts: &mut [[f64; LANES]],
    missing: &mut [i64],
) {
    const COARSE: f64 = 1.5 * (1_u64 << 17) as f64;
    const FINE: f64 = 1.5 / (1_u64 << 5) as f64;
    const SQUARE: f64 = 1.5 * (1_u64 << 19) as f64;
    const BELOW_SQUARE: f64 = 1.5 / (1_u64 << 22) as f64;
    let (parts, missing) = (parts.as_chunks_mut::<PARTS>().0, missing.as_chunks_mut::<LANES>().0);
    let factor = weight as f64;
    for ((z, parts), missing) in z.as_chunks::<LANES>().0.iter().zip(parts).zip(missing) {
        // A copy is changed, so that all parts are read before any is written. z is z1 + z2, `square` is z² rounded, `error`
        // its rounding error, and `remainder` what p1 leaves of `square`; z² is p1 + p2 + p3 and what p2 and p3 leave of
        // `remainder` and `error`.
        let mut sums = *parts;
        for i in 0..LANES {
            let z = if MISSING && z[i].is_nan() { 0.0 } else { z[i] };
            let z1 = (z + COARSE) - COARSE;
            let z2 = ((z - z1) + FINE) - FINE;
            let z = z1 + z2;
            let square = z * z;
            let error = z.mul_add(z, -square);
            let p1 = (square + SQUARE) - SQUARE;
            let remainder = square - p1;
            let p2 = (remainder + BELOW_SQUARE) - BELOW_SQUARE;
            let p3 = (error + BELOW_SQUARE) - BELOW_SQUARE;
            sums[0][i] += factor * z1;
            sums[1][i] += factor * z2;
            sums[2][i] += factor * p1;
            sums[3][i] += factor * (p2 + p3);
            sums[4][i] += factor * ((remainder - p2) + (error - p3));
        }
        *parts = sums;
        if MISSING {
            for (z, missing) in z.iter().zip(missing) {
                *missing += if z.is_nan() { weight } else { 0 };
            }
        }
    }
}
