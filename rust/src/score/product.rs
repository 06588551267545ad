//! Kernel densities of several columns jointly: on each occupied cell a bump, the product of one kernel per column.

use super::kernel::{FARTHEST_U, FLOOR, LOG_SQRT_TAU, NEGLIGIBLE, Shape, is_width, log_add};
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
const TOGETHER: usize = 64;

/// The occupied cells of a class, in the order of their first column.
#[derive(Debug)]
struct Bumps {
    /// `[column][cell]`, relative to `middle`: in bandwidths for normal kernels; unscaled for compact ones, whose edges must not
    /// be rounded.
    centres: Vec<Vec<f64>>,
    /// What the centres of each column were divided by.
    unit: Vec<f64>,
    weights: Vec<f64>,
    logs: Vec<f64>,
    /// The logarithm of the largest weight.
    heaviest: f64,
    middle: Vec<f64>,
    bandwidth: Vec<f64>,
}

/// Memory for one row: z, its place on the scale of the centres, the columns that are not missing, and a number for every cell.
#[derive(Default)]
pub(crate) struct Room {
    z: Vec<f64>,
    place: Vec<f64>,
    there: Vec<usize>,
    logs: Vec<f64>,
}

impl Bumps {
    /// `centres` are `[cell][column]`, in the order of the first column; cells without weight are left out.
    fn new(
        shape: Shape,
        centres: &[f64],
        weights: impl Iterator<Item = f64>,
        bandwidth: &[f64],
    ) -> Self {
        let d = bandwidth.len();
        let unit = match shape {
            Shape::Normal => bandwidth.to_vec(),
            _ => vec![1.0; d],
        };
        let cells = centres.chunks_exact(d.max(1));
        let (cells, weights): (Vec<&[f64]>, Vec<f64>) =
            cells.zip(weights).filter(|&(_, w)| w > 0.0).unzip();
        let middle = cells.get(cells.len() / 2).map_or(vec![0.0; d], |c| c.to_vec());
        let scaled = |j: usize| {
            let column = cells.iter().map(|cell| (cell[j] - middle[j]) / unit[j]);
            column.map(|u| u.clamp(-FARTHEST_U, FARTHEST_U)).collect()
        };
        let logs: Vec<f64> = weights.iter().map(|w| w.ln()).collect();
        Bumps {
            centres: (0..d).map(scaled).collect(),
            heaviest: logs.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            logs,
            weights,
            unit,
            middle,
            bandwidth: bandwidth.to_vec(),
        }
    }

    /// The log of the weighted sum of bumps of height 1 at the place in `room`; without one row of the cell `without`.
    fn log_sum(&self, shape: Shape, room: &mut Room, without: Option<usize>) -> f64 {
        if self.weights.is_empty() {
            return f64::NEG_INFINITY;
        }
        let near = match shape {
            Shape::Normal => self.near_normal(room),
            compact => self.within(room, compact.reach() * self.bandwidth[0]),
        };
        room.logs.clear();
        room.logs.resize(near.len(), 0.0);
        let (place, there) = (&room.place, &room.there);
        let weight = |cell: usize| match without {
            Some(own) if own == cell => (self.weights[cell] - 1.0).max(0.0),
            _ => self.weights[cell],
        };
        if shape != Shape::Normal {
            let heights = near.map(|cell| {
                let u = |j: usize| (place[j] - self.centres[j][cell]) / self.bandwidth[j];
                weight(cell) * there.iter().map(|&j| shape.density(u(j))).product::<f64>()
            });
            return heights.sum::<f64>().ln();
        }
        for &j in there {
            let (logs, x) = (room.logs.iter_mut().zip(&self.centres[j][near.clone()]), place[j]);
            wide!(for (log, centre) in logs {
                let u = x - centre;
                *log -= 0.5 * u * u;
            });
        }
        let logs = room.logs.iter_mut().zip(&self.logs[near.clone()]);
        wide!(for (log, weight) in logs {
            *log += weight;
        });
        if let Some(own) = without.filter(|own| near.contains(own)) {
            room.logs[own - near.start] = weight(own).ln();
        }
        let highest = room.logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if highest == f64::NEG_INFINITY {
            return highest;
        }
        highest + sum_of_exponentials(&room.logs, highest).ln()
    }

    /// The range of cells that are not negligible beside a cell near in the first column; all if that column is missing.
    fn near_normal(&self, room: &Room) -> Range<usize> {
        if room.there.first() != Some(&0) {
            return 0..self.weights.len();
        }
        let at = self.centres[0].partition_point(|&c| c < room.place[0]);
        let around = at.saturating_sub(4)..(at + 4).min(self.weights.len());
        let log = |cell: usize| {
            let apart = room.there.iter().map(|&j| room.place[j] - self.centres[j][cell]);
            self.logs[cell] - 0.5 * apart.map(|u| u * u).sum::<f64>()
        };
        let best = around.map(log).fold(f64::NEG_INFINITY, f64::max);
        let reach = (2.0 * (NEGLIGIBLE + self.heaviest - best)).sqrt();
        self.within(room, reach)
    }

    /// The range of cells within `reach` in the first column, and one more on either side in case of rounding.
    fn within(&self, room: &Room, reach: f64) -> Range<usize> {
        if room.there.first() != Some(&0) {
            return 0..self.weights.len();
        }
        let (line, x) = (&self.centres[0], room.place[0]);
        let from = line.partition_point(|&c| c < x - reach);
        let to = line.partition_point(|&c| c <= x + reach);
        from.saturating_sub(1)..(to + 1).min(line.len())
    }

    /// Converts z to a place on the scale of the centres.
    fn locate(&self, room: &mut Room) {
        room.place.clear();
        let each = room.z.iter().zip(&self.middle).zip(&self.unit);
        let scaled = each.map(|((z, middle), unit)| (z - middle) / unit);
        room.place.extend(scaled.map(|u| u.clamp(-FARTHEST_U, FARTHEST_U)));
    }
}

/// Σ exp(log - highest).
fn sum_of_exponentials(logs: &[f64], highest: f64) -> f64 {
    wide!({
        let mut lanes = [0.0; LANES];
        let chunks = logs.chunks_exact(LANES);
        let rest = chunks.remainder();
        for chunk in chunks {
            for (lane, log) in lanes.iter_mut().zip(chunk) {
                *lane += exp(log - highest);
            }
        }
        for (lane, log) in lanes.iter_mut().zip(rest) {
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
    classes: Vec<Bumps>,
    /// For each column, minus the logarithm of its unit.
    constant: Vec<f64>,
    /// Means and deviations of the wide normals that are mixed into compact kernels.
    floor: Vec<[f64; 2]>,
}

impl<'a> Product<'a> {
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
        let d = columns.features();
        let cells = centres.len() / d.max(1);
        demand(
            cells * d == centres.len() && Some(weights.len()) == cells.checked_mul(n_classes),
            "centres must be (cells, columns), and weights (cells, classes)",
        )?;
        demand(
            bandwidth.len() == n_classes * d && floor.len() == 2 * d,
            "bandwidth must be (classes, columns), and floor (2, columns)",
        )?;
        demand_ordered(centres, d)?;
        demand(
            weights.iter().all(|&w| (0.0..f64::INFINITY).contains(&w)),
            "weights must be finite and not negative",
        )?;
        demand(
            bandwidth.iter().chain(&floor[d..]).all(|h| is_width(*h))
                && floor[..d].iter().all(|x| x.is_finite()),
            "bandwidth and deviations must be between 2**-500 and 2**500, and means finite",
        )?;
        let classes = (0..n_classes).map(|class| {
            let own = weights.iter().skip(class).step_by(n_classes).copied();
            Bumps::new(shape, centres, own, &bandwidth[class * d..(class + 1) * d])
        });
        Ok(Product {
            classes: classes.collect(),
            constant: scale.inverse.iter().map(|unit| unit.ln()).collect(),
            floor: (0..d).map(|j| [floor[j], floor[d + j]]).collect(),
            columns,
            scale,
            shape,
        })
    }

    /// The number of values to read for one row.
    pub(super) fn work(&self) -> usize {
        let cells = self.classes.iter().map(|bumps| bumps.weights.len());
        cells.sum::<usize>().saturating_mul(self.columns.features())
    }

    pub(super) fn add(&self, sums: &mut Sums, room: &mut Room) -> Result<(), Error> {
        for at in 0..sums.rows.len() {
            self.read(sums.rows.row(at), room)?;
            if room.there.is_empty() {
                continue;
            }
            let sums = sums.values[at..].iter_mut().step_by(sums.height);
            for (bumps, sum) in self.classes.iter().zip(sums) {
                if !bumps.weights.is_empty() {
                    *sum += self.log(bumps, room);
                }
            }
        }
        Ok(())
    }

    /// Reads z of a row, and which of its columns are not missing.
    fn read(&self, row: usize, room: &mut Room) -> Result<(), Error> {
        room.z.resize(self.columns.features(), f64::NAN);
        read_row(&self.columns, &self.scale, row, &mut room.z)?;
        room.there.clear();
        room.there.extend((0..room.z.len()).filter(|&j| !room.z[j].is_nan()));
        Ok(())
    }

    fn log(&self, bumps: &Bumps, room: &mut Room) -> f64 {
        bumps.locate(room);
        let units: f64 = room.there.iter().map(|&j| self.constant[j]).sum();
        let sum = bumps.log_sum(self.shape, room, None)
            + height(self.shape, &bumps.bandwidth, &room.there);
        if self.shape == Shape::Normal {
            return units + sum;
        }
        let floor = room.there.iter().map(|&j| {
            let [mean, deviation] = self.floor[j];
            let u = ((room.z[j] - mean) / deviation).abs().min(FARTHEST_U);
            -0.5 * u * u - deviation.ln() - LOG_SQRT_TAU
        });
        units + log_add((1.0 - FLOOR).ln() + sum, FLOOR.ln() + floor.sum::<f64>())
    }
}

/// The log of the factor that turns bumps of height 1 into densities, in the columns `there`.
fn height(shape: Shape, bandwidth: &[f64], there: &[usize]) -> f64 {
    let peak = if shape == Shape::Normal { LOG_SQRT_TAU } else { 0.0 };
    -there.iter().map(|&j| bandwidth[j].ln() + peak).sum::<f64>()
}

/// An error unless centres are finite and in the order of their first column.
fn demand_ordered(centres: &[f64], d: usize) -> Result<(), Error> {
    let first = centres.iter().step_by(d.max(1));
    demand(
        d > 0 && centres.iter().all(|x| x.is_finite()) && first.is_sorted(),
        "centres must be finite, and ascend in their first column",
    )
}

/// The log density at the centres of `some` cells, each without one of its own rows and not divided by the number of rows: -inf
/// if a cell is alone and kernels are compact.
pub fn left_out(
    shape: Shape,
    centres: &[f64],
    weights: &[f64],
    bandwidth: &[f64],
    some: &[i64],
    threads: usize,
) -> Result<Vec<f64>, Error> {
    let d = bandwidth.len();
    let n = i64::try_from(weights.len()).unwrap_or(i64::MAX);
    demand(some.iter().all(|cell| (0..n).contains(cell)), "some must be numbers of cells")?;
    demand_ordered(centres, d)?;
    demand(
        weights.len().checked_mul(d) == Some(centres.len())
            && weights.iter().all(|&w| w > 0.0 && w < f64::INFINITY),
        "weights must be one positive number for each cell",
    )?;
    demand(bandwidth.iter().all(|&h| is_width(h)), "bandwidth must be between 2**-500 and 2**500")?;
    let bumps = Bumps::new(shape, centres, weights.iter().copied(), bandwidth);
    let every: Vec<usize> = (0..d).collect();
    let height = height(shape, bandwidth, &every);
    let mut out = vec![0.0; some.len()];
    let threads = threads::worth(threads, some.len().saturating_mul(centres.len()));
    threads::pieces(threads, &mut out, TOGETHER, |number, piece| {
        let mut room = Room { there: every.clone(), ..Room::default() };
        for (&cell, out) in some[number * TOGETHER..].iter().zip(piece) {
            let cell = cell as usize;
            room.place.clear();
            let place = bumps.centres.iter().map(|column| column[cell]);
            room.place.extend(place);
            *out = bumps.log_sum(shape, &mut room, Some(cell)) + height;
        }
    });
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f64 / 1_048_576.0
        };
        std::iter::repeat_with(next).take(n).collect()
    }

    /// Three columns, ascending in the first, and a weight for each cell.
    fn cells(n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut first = numbers(n, 1);
        first.sort_by(f64::total_cmp);
        let (second, third) = (numbers(n, 2), numbers(n, 3));
        let rows = first.iter().zip(second).zip(third);
        let centres = rows.flat_map(|((&a, b), c)| [a, b, c]).collect();
        (centres, numbers(n, 4).iter().map(|w| w + 1.0).collect())
    }

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
            let mut room = Room { there: vec![0, 1, 2], ..Room::default() };
            for z in numbers(900, 9).chunks_exact(3) {
                room.z = z.to_vec();
                bumps.locate(&mut room);
                let found = bumps.log_sum(shape, &mut room, None) + height(shape, &h, &[0, 1, 2]);
                let wanted = slow(shape, &centres, &weights, &h, z);
                assert!(found == wanted || (found - wanted).abs() < 1e-11, "{found} {wanted}");
            }
        }
    }

    #[test]
    fn far_away_it_falls_off_and_does_not_vanish() {
        let bumps = Bumps::new(
            Shape::Normal,
            &[0.0, 0.0, 1.0, 5.0],
            [1.0, 1e-200].into_iter(),
            &[1.0, 1.0],
        );
        let mut room = Room { z: vec![1.0, 50.0], there: vec![0, 1], ..Room::default() };
        bumps.locate(&mut room);
        let found = bumps.log_sum(Shape::Normal, &mut room, None);
        assert!((found + 1250.5).abs() < 1e-9);
        room.z = vec![1.0, 5.0]; // beside a cell of next to no weight the others still count
        bumps.locate(&mut room);
        assert!((bumps.log_sum(Shape::Normal, &mut room, None) + 13.0).abs() < 1e-12);
    }

    #[test]
    fn without_one_row_a_cell_of_one_has_only_the_others() {
        let (centres, weights) = cells(100);
        let weights: Vec<f64> = weights.iter().map(|w| (w % 3.0).ceil()).collect();
        let (h, every) = ([0.5, 0.9, 1.1], (0..100).collect::<Vec<i64>>());
        let found = left_out(Shape::Normal, &centres, &weights, &h, &every, 4).unwrap();
        for (cell, found) in found.iter().enumerate() {
            let mut fewer = weights.clone();
            fewer[cell] -= 1.0;
            let z = &centres[3 * cell..3 * cell + 3];
            let wanted = slow(Shape::Normal, &centres, &fewer, &h, z);
            assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        }
        let alone = left_out(Shape::Box, &[0.0, 9.0], &[1.0, 1.0], &[1.0], &[1], 1);
        assert_eq!(alone.unwrap(), [f64::NEG_INFINITY]);
        assert!(left_out(Shape::Box, &[0.0, 9.0], &[1.0, 1.0], &[1.0], &[2], 1).is_err());
    }
}
