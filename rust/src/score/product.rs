//! Kernel densities of several columns jointly: on each occupied cell a bump, the product of one kernel per column.

use super::kernel::{FARTHEST_U, FLOOR, LOG_SQRT_TAU, NEGLIGIBLE, Shape, is_valid_width, log_add};
use super::{Sums, read_row};
use crate::columns::Columns;
use crate::error::{Error, demand};
use crate::exponential::exp;
use crate::scale::Scale;
use crate::simd::wide;
use crate::threads;
use std::ops::Range;

/// Exponentials added up side by side: part of the result, since it decides how sums are rounded.
const LANES: usize = 8;
/// Cells per piece, each of which is compared with all others. 4 and 64 were equally fast: 4,000 of 20,000 cells took 0.1 s.
const PIECE_CELLS: usize = 64;

/// The occupied cells of a class, in the order of their first column.
#[derive(Debug)]
struct Bumps {
    /// `[column][cell]`, relative to `middle`: in bandwidths for normal kernels; unscaled for compact ones, whose edges must not
    /// be rounded.
    centres: Vec<Vec<f64>>,
    /// What the centres of each column were divided by.
    unit: Vec<f64>,
    /// The weight of each cell, above 0, and its logarithm.
    weights: Vec<f64>,
    log_weights: Vec<f64>,
    largest_log_weight: f64,
    /// The centre of the cell in the middle of the order, `[column]`, in z units.
    middle: Vec<f64>,
    /// `[column]`, in z units.
    bandwidth: Vec<f64>,
}

/// Memory for one row.
#[derive(Default)]
pub(crate) struct RowBuffers {
    /// `[column]`, NaN where missing.
    z: Vec<f64>,
    /// z on the scale of a class's centres, `[column]`.
    scaled_z: Vec<f64>,
    /// The indices of the columns that are not missing, ascending.
    present: Vec<usize>,
    /// The logarithm of each near cell's bump.
    logs: Vec<f64>,
}

impl Bumps {
    /// The bumps of a class, on each cell the product of a kernel of this shape in each column: `centres` are `[cell][column]`,
    /// in z units and in the order of the first column; `weights`, `[cell]`, are how much the cells count, and cells without
    /// weight are left out; `bandwidth`, `[column]`, is in z units.
    fn new(
        shape: Shape,
        centres: &[f64],
        weights: impl Iterator<Item = f64>,
        bandwidth: &[f64],
    ) -> Self {
        let n_columns = bandwidth.len();
        // What the centres of each column are divided by, in z units.
        let unit = match shape {
            Shape::Normal => bandwidth.to_vec(),
            _ => vec![1.0; n_columns],
        };
        let cells = centres.chunks_exact(n_columns.max(1));
        let (cells, weights): (Vec<&[f64]>, Vec<f64>) =
            cells.zip(weights).filter(|&(_, weight)| weight > 0.0).unzip();
        // The centre of the cell in the middle of the order, [column], which is subtracted.
        let middle = cells.get(cells.len() / 2).map_or(vec![0.0; n_columns], |cell| cell.to_vec());
        // Column j of the centres as they are kept, [cell]: relative to the middle, in units.
        let scaled_column = |j: usize| {
            let column = cells.iter().map(|cell| (cell[j] - middle[j]) / unit[j]);
            column.map(|u| u.clamp(-FARTHEST_U, FARTHEST_U)).collect()
        };
        let log_weights: Vec<f64> = weights.iter().map(|w| w.ln()).collect();
        Bumps {
            centres: (0..n_columns).map(scaled_column).collect(),
            largest_log_weight: log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            log_weights,
            weights,
            unit,
            middle,
            bandwidth: bandwidth.to_vec(),
        }
    }

    /// The log of the weighted sum of bumps of this shape, of height 1, at the row in `buffers`, over the columns that are
    /// present; -inf if no bump is near. `left_out_cell`: the cell of which one row is left out, None if all rows count. The
    /// centres, `[column][cell]`, and the row, `scaled_z`, are on one scale: in bandwidths for normal kernels, in z units for
    /// compact ones, as `bandwidth`.
    fn log_sum(&self, shape: Shape, buffers: &mut RowBuffers, left_out_cell: Option<usize>) -> f64 {
        if self.weights.is_empty() {
            return f64::NEG_INFINITY;
        }
        let near_cells = match shape {
            Shape::Normal => self.near_cells_of_normal(buffers),
            compact => self.cells_within(buffers, compact.reach() * self.bandwidth[0]),
        };
        // The row, [column], the indices of the columns that are not missing, and for each near cell the logarithm of its weight
        // times the height of its bump.
        let RowBuffers { scaled_z, present, logs, .. } = buffers;
        logs.clear();
        logs.resize(near_cells.len(), 0.0);
        // How many rows a cell counts.
        let weight = |cell: usize| match left_out_cell {
            Some(left_out) if left_out == cell => (self.weights[cell] - 1.0).max(0.0),
            _ => self.weights[cell],
        };
        if shape != Shape::Normal {
            // Of the cells' bumps, times their weights.
            let heights = near_cells.map(|cell| {
                let u = |j: usize| (scaled_z[j] - self.centres[j][cell]) / self.bandwidth[j];
                weight(cell) * present.iter().map(|&j| shape.density(u(j))).product::<f64>()
            });
            return heights.sum::<f64>().ln();
        }
        for &j in &*present {
            let z = scaled_z[j]; // of the row in this column, in bandwidths
            let cells = logs.iter_mut().zip(&self.centres[j][near_cells.clone()]);
            wide!(for (log, centre) in cells {
                let u = z - centre;
                *log -= 0.5 * u * u;
            });
        }
        let cells = logs.iter_mut().zip(&self.log_weights[near_cells.clone()]);
        wide!(for (log, log_weight) in cells {
            *log += log_weight;
        });
        if let Some(cell) = left_out_cell.filter(|cell| near_cells.contains(cell)) {
            logs[cell - near_cells.start] = weight(cell).ln();
        }
        let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max); // logarithm
        if highest == f64::NEG_INFINITY {
            return highest;
        }
        highest + sum_of_exponentials(logs, highest).ln()
    }

    /// The range of cells (indices) whose normal bumps at the row in `buffers` are not negligible beside that of a cell near in
    /// the first column; all cells if that column is missing. The row, `scaled_z`, `[column]`, and the centres, `[column][cell]`,
    /// are in bandwidths; `present` has the indices of the columns that the row has.
    fn near_cells_of_normal(&self, buffers: &RowBuffers) -> Range<usize> {
        if buffers.present.first() != Some(&0) {
            return 0..self.weights.len();
        }
        // The first cell at or above z in the first column, and four on either side of it.
        let first_above = self.centres[0].partition_point(|&c| c < buffers.scaled_z[0]);
        let neighbours = first_above.saturating_sub(4)..(first_above + 4).min(self.weights.len());
        // The logarithm of a cell's weight times its bump's height; u are distances in bandwidths.
        let log = |cell: usize| {
            let u = buffers.present.iter().map(|&j| buffers.scaled_z[j] - self.centres[j][cell]);
            self.log_weights[cell] - 0.5 * u.map(|u| u * u).sum::<f64>()
        };
        let highest = neighbours.map(log).fold(f64::NEG_INFINITY, f64::max); // logarithm
        // Farther away, in bandwidths, even the heaviest bump is negligible beside that of the neighbour.
        let reach = (2.0 * (NEGLIGIBLE + self.largest_log_weight - highest)).sqrt();
        self.cells_within(buffers, reach)
    }

    /// The range of cells (indices) whose centres are within `reach` of the row in `buffers` in the first column, and one more on
    /// either side in case of rounding; all cells if that column is missing. `reach`, the row's `scaled_z`, `[column]`, and the
    /// centres, `[column][cell]`, ascending in the first column, are on one scale.
    fn cells_within(&self, buffers: &RowBuffers, reach: f64) -> Range<usize> {
        if buffers.present.first() != Some(&0) {
            return 0..self.weights.len();
        }
        let (centres, z) = (&self.centres[0], buffers.scaled_z[0]); // of the first column, [cell]
        let start = centres.partition_point(|&c| c < z - reach);
        let end = centres.partition_point(|&c| c <= z + reach);
        start.saturating_sub(1)..(end + 1).min(centres.len())
    }

    /// Writes the row `z` in `buffers`, `[column]`, to their `scaled_z`, on the scale of the centres: less `middle`, the centre
    /// of the cell in the middle, and divided by `unit`, what the centres were divided by; both `[column]`, in z units.
    fn scale_z(&self, buffers: &mut RowBuffers) {
        let z = buffers.z.iter().zip(&self.middle).zip(&self.unit); // with the middle and the unit of its column
        let scaled = z.map(|((z, middle), unit)| (z - middle) / unit); // [column]
        buffers.scaled_z.clear();
        buffers.scaled_z.extend(scaled.map(|u| u.clamp(-FARTHEST_U, FARTHEST_U)));
    }
}

/// Σ exp(log - highest) over the numbers in `logs`, where `highest` is the highest of them.
fn sum_of_exponentials(logs: &[f64], highest: f64) -> f64 {
    wide!({
        let mut lanes = [0.0; LANES]; // eight sums of exponentials side by side
        let (chunks, last_logs) = logs.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, log) in lanes.iter_mut().zip(chunk) {
                *lane += exp(log - highest);
            }
        }
        for (lane, log) in lanes.iter_mut().zip(last_logs) {
            *lane += exp(log - highest);
        }
        lanes.iter().sum()
    })
}

/// Adds each class's log density of the columns that a row has; a class without weights adds nothing.
#[derive(Debug)]
pub struct Product<'a> {
    pub(super) columns: Columns<'a>,
    scale: Scale<'a>,
    shape: Shape,
    /// The bumps of each class.
    classes: Vec<Bumps>,
    /// For each column, minus the logarithm of its unit.
    minus_log_units: Vec<f64>,
    /// Mean and deviation, in z units, of the wide normal of each column that is mixed into compact kernels.
    floor: Vec<[f64; 2]>,
}

impl<'a> Product<'a> {
    /// Joint kernel densities of columns whose numbers x are z = (x - origin) / unit on `scale`: on each cell a bump, the product
    /// of a kernel of this shape in each column. `centres` are `[cell][column]`, ascending in the first column; `weights`,
    /// `[cell][class]`, are how much cells count; `bandwidth` is `[class][column]`; `floor` has, for each column, the mean of the
    /// wide normal that is mixed into compact kernels, then the deviation for each column. All in z units. An error if these do
    /// not fit together.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        columns: Columns<'a>,
        scale: Scale<'a>,
        shape: Shape,
        centres: &[f64],
        weights: &[f64],
        bandwidth: &[f64],
        floor: &[f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        let n_columns = columns.features();
        let n_cells = centres.len() / n_columns.max(1);
        demand(
            n_cells * n_columns == centres.len()
                && Some(weights.len()) == n_cells.checked_mul(n_classes),
            "centres must be (cells, columns), and weights (cells, classes)",
        )?;
        demand(
            bandwidth.len() == n_classes * n_columns && floor.len() == 2 * n_columns,
            "bandwidth must be (classes, columns), and floor (2, columns)",
        )?;
        demand_ordered(centres, n_columns)?;
        demand(
            weights.iter().all(|&w| (0.0..f64::INFINITY).contains(&w)),
            "weights must be finite and not negative",
        )?;
        demand(
            bandwidth.iter().chain(&floor[n_columns..]).all(|width| is_valid_width(*width))
                && floor[..n_columns].iter().all(|x| x.is_finite()),
            "bandwidth and deviations must be between 2**-500 and 2**500, and means finite",
        )?;
        // The bumps of each class.
        let classes = (0..n_classes).map(|class| {
            let class_weights = weights.iter().skip(class).step_by(n_classes).copied(); // [cell]
            let class_bandwidth = &bandwidth[class * n_columns..(class + 1) * n_columns];
            Bumps::new(shape, centres, class_weights, class_bandwidth)
        });
        Ok(Product {
            classes: classes.collect(),
            minus_log_units: scale.inverse.iter().map(|inverse| inverse.ln()).collect(),
            floor: (0..n_columns).map(|j| [floor[j], floor[n_columns + j]]).collect(),
            columns,
            scale,
            shape,
        })
    }

    /// How many numbers of the centres of all classes' cells, `[column][cell]`, are read for one row, by which the work is
    /// judged.
    pub(super) fn values_per_row(&self) -> usize {
        let cells = self.classes.iter().map(|bumps| bumps.weights.len()); // how many each class has
        cells.sum::<usize>().saturating_mul(self.columns.features())
    }

    /// Adds the log density of each row, in the columns that it has, in each class to the sums, `[class][row]`; nothing for a
    /// class without bumps. An infinite number is an error. `buffers` are memory for a row; `present` has the indices of the
    /// columns that it has.
    pub(super) fn add(&self, sums: &mut Sums, buffers: &mut RowBuffers) -> Result<(), Error> {
        for i in 0..sums.rows.len() {
            self.read(sums.rows.row(i), buffers)?;
            if buffers.present.is_empty() {
                continue;
            }
            for (bumps, sum) in self.classes.iter().zip(sums.of_row_mut(i)) {
                if !bumps.weights.is_empty() {
                    *sum += self.log_density(bumps, buffers);
                }
            }
        }
        Ok(())
    }

    /// Reads row number `row` of the data into `buffers`: `z`, `[column]`, the row's numbers on the scale of their columns, NaN
    /// where missing; and in `present` the indices of the columns that are not missing. An infinite number is an error.
    fn read(&self, row: usize, buffers: &mut RowBuffers) -> Result<(), Error> {
        let RowBuffers { z, present, .. } = buffers;
        z.resize(self.columns.features(), f64::NAN);
        read_row(&self.columns, &self.scale, row, z)?;
        present.clear();
        present.extend((0..z.len()).filter(|&j| !z[j].is_nan()));
        Ok(())
    }

    /// The log density of a class at the row that was read into `buffers`, in the columns that it has: that of `bumps`, the
    /// class's weighted kernels; if they are compact, mixed with the wide normals in `floor`, the mean and the deviation of each
    /// column, in z units.
    fn log_density(&self, bumps: &Bumps, buffers: &mut RowBuffers) -> f64 {
        bumps.scale_z(buffers);
        let left_out_cell = None; // all rows of the cells count
        // Of the weights times bumps of height 1.
        let log_sum = bumps.log_sum(self.shape, buffers, left_out_cell);
        let RowBuffers { z, present, .. } = buffers; // the row, [column], and the indices of the columns that it has
        // What turns densities of z into those of the columns' values.
        let minus_log_units: f64 = present.iter().map(|&j| self.minus_log_units[j]).sum();
        // The log density of z under the kernels.
        let log_kernels = log_sum + log_height(self.shape, &bumps.bandwidth, present);
        if self.shape == Shape::Normal {
            return minus_log_units + log_kernels;
        }
        // The log of the wide normal's density in each column.
        let log_floors = present.iter().map(|&j| {
            let [mean, deviation] = self.floor[j];
            // The distance from the mean in deviations.
            let u = ((z[j] - mean) / deviation).abs().min(FARTHEST_U);
            -0.5 * u * u - deviation.ln() - LOG_SQRT_TAU
        });
        minus_log_units
            + log_add((1.0 - FLOOR).ln() + log_kernels, FLOOR.ln() + log_floors.sum::<f64>())
    }
}

/// The log of the factor that turns bumps of this shape and of height 1 into densities, in these columns (their indices).
/// `bandwidth`, in z units, has a number for every column.
fn log_height(shape: Shape, bandwidth: &[f64], columns: &[usize]) -> f64 {
    // Minus the log of a density of bandwidth 1 where the bump has height 1.
    let peak = if shape == Shape::Normal { LOG_SQRT_TAU } else { 0.0 };
    -columns.iter().map(|&j| bandwidth[j].ln() + peak).sum::<f64>()
}

/// An error unless the centres of cells, `[cell][column]` with `n_columns` columns, are finite and in the order of their first
/// column.
fn demand_ordered(centres: &[f64], n_columns: usize) -> Result<(), Error> {
    let first_column = centres.iter().step_by(n_columns.max(1));
    demand(
        n_columns > 0 && centres.iter().all(|x| x.is_finite()) && first_column.is_sorted(),
        "centres must be finite, and ascend in their first column",
    )
}

/// The log density at the centres of these cells (indices), one number for each, each without one of the cell's rows and not
/// divided by the number of rows: -inf if a cell is alone and kernels are compact. `centres` are `[cell][column]`, ascending in
/// the first column, and `weights` the number of rows in each of all cells; `bandwidth` has a number per column, in the unit of
/// the centres; `shape` is that of the kernels. An error if these do not fit together.
pub fn leave_one_out(
    shape: Shape,
    centres: &[f64],
    weights: &[f64],
    bandwidth: &[f64],
    cells: &[i64],
    threads: usize,
) -> Result<Vec<f64>, Error> {
    let n_columns = bandwidth.len();
    let n_cells = i64::try_from(weights.len()).unwrap_or(i64::MAX);
    demand(cells.iter().all(|cell| (0..n_cells).contains(cell)), "cells must be numbers of cells")?;
    demand_ordered(centres, n_columns)?;
    demand(
        weights.len().checked_mul(n_columns) == Some(centres.len())
            && weights.iter().all(|&w| w > 0.0 && w < f64::INFINITY),
        "weights must be one positive number for each cell",
    )?;
    demand(
        bandwidth.iter().all(|&h| is_valid_width(h)),
        "bandwidth must be between 2**-500 and 2**500",
    )?;
    let bumps = Bumps::new(shape, centres, weights.iter().copied(), bandwidth); // on all cells
    let columns: Vec<usize> = (0..n_columns).collect(); // the indices of all columns
    // What turns the log of a sum of bumps of height 1 into a log density.
    let log_height = log_height(shape, bandwidth, &columns);
    let mut log_densities = vec![0.0; cells.len()];
    let threads = threads::worth(threads, cells.len().saturating_mul(centres.len()));
    threads::pieces(threads, &mut log_densities, PIECE_CELLS, |piece, log_densities| {
        // A row without missing columns, whose `scaled_z`, [column], is on the scale of the bumps' centres, [column][cell].
        let mut buffers = RowBuffers { present: columns.clone(), ..RowBuffers::default() };
        for (&cell, log_density) in cells[piece * PIECE_CELLS..].iter().zip(log_densities) {
            let cell = cell as usize;
            // The row is the centre of the cell.
            buffers.scaled_z.clear();
            buffers.scaled_z.extend(bumps.centres.iter().map(|column| column[cell]));
            *log_density = bumps.log_sum(shape, &mut buffers, Some(cell)) + log_height;
        }
    });
    Ok(log_densities)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers from 0 to below 16.
    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f64 / 1_048_576.0
        };
        std::iter::repeat_with(next).take(n).collect()
    }

    /// The centres of `n` cells, `[cell][column]` with three columns, ascending in the first; and a weight for each cell.
    fn cells(n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut first = numbers(n, 1);
        first.sort_by(f64::total_cmp);
        let (second, third) = (numbers(n, 2), numbers(n, 3));
        let rows = first.iter().zip(second).zip(third);
        let centres = rows.flat_map(|((&a, b), c)| [a, b, c]).collect();
        (centres, numbers(n, 4).iter().map(|w| w + 1.0).collect())
    }

    /// The log of the weighted sum of densities at z, cell by cell; `h` is the bandwidth of each column.
    fn slow(shape: Shape, centres: &[f64], weights: &[f64], h: &[f64], z: &[f64]) -> f64 {
        let cells = centres.chunks_exact(h.len()).zip(weights);
        let density = cells.map(|(cell, weight)| {
            let kernels = cell.iter().zip(z).zip(h).map(|((c, z), h)| {
                let u = (z - c) / h;
                let height = match shape {
                    Shape::Normal => (-0.5 * u * u - LOG_SQRT_TAU).exp(),
                    _ => shape.density(u),
                };
                height / h
            });
            weight * kernels.product::<f64>()
        });
        density.sum::<f64>().ln()
    }

    #[test]
    fn sums_are_those_of_all_bumps() {
        let (centres, weights) = cells(300);
        let h = [0.7, 1.3, 2.0];
        for shape in [Shape::Normal, Shape::Epanechnikov, Shape::Box] {
            let bumps = Bumps::new(shape, &centres, weights.iter().copied(), &h);
            let mut buffers = RowBuffers { present: vec![0, 1, 2], ..RowBuffers::default() };
            for z in numbers(900, 9).chunks_exact(3) {
                buffers.z = z.to_vec();
                bumps.scale_z(&mut buffers);
                let left_out_cell = None;
                let log = bumps.log_sum(shape, &mut buffers, left_out_cell)
                    + log_height(shape, &h, &[0, 1, 2]);
                let expected = slow(shape, &centres, &weights, &h, z);
                assert!(log == expected || (log - expected).abs() < 1e-11, "{log} {expected}");
            }
        }
    }

    #[test]
    fn far_away_it_falls_off_and_does_not_vanish() {
        // Two cells of two columns: (0, 0) with weight 1, and (1, 5) with next to none; bandwidth 1.
        let bumps = Bumps::new(
            Shape::Normal,
            &[0.0, 0.0, 1.0, 5.0],
            [1.0, 1e-200].into_iter(),
            &[1.0, 1.0],
        );
        let mut buffers =
            RowBuffers { z: vec![1.0, 50.0], present: vec![0, 1], ..RowBuffers::default() };
        bumps.scale_z(&mut buffers);
        let left_out_cell = None;
        let log_sum = bumps.log_sum(Shape::Normal, &mut buffers, left_out_cell);
        assert!((log_sum + 1250.5).abs() < 1e-9);
        buffers.z = vec![1.0, 5.0]; // beside a cell of next to no weight the others still count
        bumps.scale_z(&mut buffers);
        let log_sum = bumps.log_sum(Shape::Normal, &mut buffers, left_out_cell);
        assert!((log_sum + 13.0).abs() < 1e-12);
    }

    #[test]
    fn without_one_row_a_cell_of_one_has_only_the_others() {
        let (centres, weights) = cells(100);
        let weights: Vec<f64> = weights.iter().map(|w| (w % 3.0).ceil()).collect();
        let (bandwidth, all_cells) = ([0.5, 0.9, 1.1], (0..100).collect::<Vec<i64>>());
        let threads = 4;
        let logs =
            leave_one_out(Shape::Normal, &centres, &weights, &bandwidth, &all_cells, threads)
                .unwrap();
        for (cell, log) in logs.iter().enumerate() {
            let mut fewer_rows = weights.clone();
            fewer_rows[cell] -= 1.0;
            let z = &centres[3 * cell..3 * cell + 3];
            let expected = slow(Shape::Normal, &centres, &fewer_rows, &bandwidth, z);
            assert!((log - expected).abs() < 1e-9, "{log} {expected}");
        }
        // Two cells of one row each, too far from each other for a box.
        let (centres, weights, bandwidth, threads) = ([0.0, 9.0], [1.0, 1.0], [1.0], 1);
        let alone = leave_one_out(Shape::Box, &centres, &weights, &bandwidth, &[1], threads);
        assert_eq!(alone.unwrap(), [f64::NEG_INFINITY]);
        // There is no cell 2.
        assert!(leave_one_out(Shape::Box, &centres, &weights, &bandwidth, &[2], threads).is_err());
    }
}
