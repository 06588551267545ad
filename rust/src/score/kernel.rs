//! Kernel densities of one column: a sum of bumps, one on each occupied bin.
//!
//! Normal bumps overlap so much that adding them up for every row is slow. The line is therefore divided into cells that are
//! narrow compared with a bandwidth, and in each cell the log density is a power series about its middle, computed when the first
//! row falls into it; in gaps there is one series for the bumps on either side. The series depend on nothing but the bumps, so a
//! row's score does not depend on other rows.

use super::{ROWS, Sums};
use crate::columns::Columns;
use crate::error::{Error, Fault, demand};
use crate::scale::{FARTHEST, Scale};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};
use std::ops::Range;
use std::sync::OnceLock;

/// Terms smaller than e^-40 of the largest are not worth their exponential: it would take 26 of them to change the last bit.
pub(super) const NEGLIGIBLE: f64 = 40.0;
/// Distances in bandwidths are kept below this, whose square is finite however many columns there are.
pub(super) const FARTHEST_U: f64 = f64::from_bits((1023 + 500) << 52); // 2^500
pub(super) const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_8;
/// Half a cell, in bandwidths. 20,000 rows of 4 columns with 20,000 bumps took 12 ms; 24 with cells half as wide, and 14 with cells
/// twice as wide, which need 12 terms.
const HALF: f64 = 1.0 / 16.0;
/// Terms of a cell's series, and further terms that show whether these are enough.
const TERMS: usize = 8;
const CHECK_TERMS: usize = 2;
/// There is a series only if the first terms left out are at most this,
const LARGEST_ERROR: f64 = 1e-12;
/// and if no bumps are farther apart than this, in bandwidths: otherwise the terms left out may not show the error.
const WIDEST: f64 = 32.0;
/// Cells reach this many bandwidths beyond the outermost bumps. A value farther out is compared with every bump: 20,000 rows of 4
/// such values took 41 ms instead of 12.
const MARGIN: f64 = 64.0;
/// Where bumps are this many bandwidths from 0, doubles are too coarse for cells, and there are none.
const FINEST: f64 = f64::from_bits((1023 + 40) << 52); // 2^40
/// The most cells that are kept, of a class and of all classes. Where all cells are in use, keeping too few is slow: 200,000
/// rows and 2,000 bumps took 20 ms, and 1,900 ms with 2^8 cells per class.
const MOST_KEPT: usize = 1 << 15;
const ALL_KEPT: usize = 1 << 19;
/// The share of a wide normal that is mixed into densities with compact kernels, so that no value is impossible.
pub(super) const FLOOR: f64 = 1e-6;

/// The kernel: the shape of a bump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Normal,
    Box,
    Triangle,
    Epanechnikov,
    Biweight,
    Triweight,
    Cosine,
}

impl Shape {
    /// The shape that Python calls by this name; None if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "normal" => Shape::Normal,
            "box" => Shape::Box,
            "triangle" => Shape::Triangle,
            "epanechnikov" => Shape::Epanechnikov,
            "biweight" => Shape::Biweight,
            "triweight" => Shape::Triweight,
            "cosine" => Shape::Cosine,
            _ => return None,
        })
    }

    /// The distance at which a compact kernel ends, in bandwidths.
    pub(super) fn reach(self) -> f64 {
        if self == Shape::Box { 0.5 } else { 1.0 }
    }

    /// The density of a compact kernel of bandwidth 1 at distance `u`, in bandwidths, from its middle, 0 outside its reach; 0 for
    /// the normal kernel.
    pub(super) fn density(self, u: f64) -> f64 {
        let inside = (1.0 - u * u).max(0.0); // 1 in the middle, 0 from distance 1 on
        match self {
            Shape::Normal => 0.0,
            Shape::Box => f64::from((-0.5..0.5).contains(&u)),
            Shape::Triangle => (1.0 - u.abs()).max(0.0),
            Shape::Epanechnikov => 0.75 * inside,
            Shape::Biweight => 0.9375 * inside * inside,
            Shape::Triweight => 1.09375 * inside * inside * inside,
            Shape::Cosine if u.abs() <= 1.0 => FRAC_PI_4 * (FRAC_PI_2 * u).cos().max(0.0),
            Shape::Cosine => 0.0,
        }
    }
}

/// Whether a bandwidth or a standard deviation is neither too small nor too large.
pub(super) fn is_valid_width(width: f64) -> bool {
    (1.0 / FARTHEST_U..=FARTHEST_U).contains(&width)
}

/// The bumps on a class's occupied bins, in z units.
#[derive(Debug)]
struct Bumps {
    /// Ascending; with a weight above 0 for each.
    centres: Vec<f64>,
    weights: Vec<f64>,
    largest_weight: f64,
    bandwidth: f64,
    /// What is added to the log density.
    constant: f64,
    /// Cells on the line, for normal kernels; otherwise none.
    cells: SeriesCells,
}

/// Cells of equal width, in z units, from `start` on. A cell is kept in the slot of its number's lowest bits; the first one there
/// stays.
#[derive(Debug, Default)]
struct SeriesCells {
    start: f64,
    width: f64,
    /// 1 / width.
    inverse_width: f64,
    /// A whole number; 0 if there are no cells.
    n_cells: f64,
    /// A power of two of them, if there are cells.
    slots: Vec<OnceLock<Box<Cell>>>,
}

/// A cell, numbered from 0 at `start`, and the log density around its middle (a z).
#[derive(Debug)]
struct Cell {
    number: usize,
    middle: f64,
    log_density: LogDensity,
}

/// A log density as a series in s = (z - middle) / (half a cell): of all bumps, or two series of the bumps on either side, or
/// none where a series would not be exact.
#[derive(Debug)]
enum LogDensity {
    OneSeries(Series),
    TwoSides(Box<[Series; 2]>),
    NoSeries,
}

/// The coefficients of 1, s, s² and so on.
type Series = [f64; TERMS];

/// Adds each class's log density of z, and a constant; a class without weights adds nothing, nor does a missing value.
#[derive(Debug)]
pub struct Kernel<'a> {
    pub(super) columns: Columns<'a>,
    scale: Scale<'a>,
    shape: Shape,
    /// The bumps of each class.
    classes: Vec<Bumps>,
    floor: WideNormal,
}

/// The wide normal density that is mixed into compact kernels, in z units.
#[derive(Debug)]
struct WideNormal {
    mean: f64,
    deviation: f64,
    /// The logarithm of its height times [`FLOOR`].
    log_height: f64,
}

impl<'a> Kernel<'a> {
    /// Kernel densities of a column whose numbers x are z = (x - origin) / unit on `scale`: sums of bumps of this shape.
    /// `centres` are where the bumps are, ascending, in z units; `weights`, `[centre][class]`, how much each counts; `bandwidth`,
    /// `[class]`, how wide they are, in z units; `constant`, `[class]`, is added to the log density; `floor` is the mean and the
    /// deviation, in z units, of the wide normal that is mixed in if the shape is compact. An error if these do not fit together,
    /// or there is not exactly one column.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        columns: Columns<'a>,
        scale: Scale<'a>,
        shape: Shape,
        centres: &[f64],
        weights: &[f64],
        bandwidth: &[f64],
        constant: &[f64],
        floor: [f64; 2],
    ) -> Result<Self, Error> {
        let n_classes = bandwidth.len();
        demand(columns.features() == 1, "a kernel takes one column")?;
        demand(
            Some(weights.len()) == centres.len().checked_mul(n_classes),
            "weights must be (centres, classes)",
        )?;
        demand(constant.len() == n_classes, "constant must have one number per class")?;
        demand(
            centres.iter().all(|x| x.is_finite()) && centres.is_sorted(),
            "centres must be finite and ascend",
        )?;
        demand(
            weights.iter().all(|&w| (0.0..f64::INFINITY).contains(&w)),
            "weights must be finite and not negative",
        )?;
        demand(
            bandwidth.iter().all(|&h| is_valid_width(h)),
            "bandwidth must be a positive number, between 2**-500 and 2**500",
        )?;
        demand(constant.iter().all(|x| x.is_finite()), "constant must be finite")?;
        demand(
            shape == Shape::Normal || (floor[0].is_finite() && is_valid_width(floor[1])),
            "floor must be a mean and a positive standard deviation",
        )?;
        // The bumps of each class.
        let classes = (0..n_classes).map(|class| {
            let class_weights = weights.iter().skip(class).step_by(n_classes); // [centre]
            // The centres where the class has weight, and these weights.
            let occupied = centres.iter().zip(class_weights).filter(|&(_, &w)| w > 0.0);
            let (centres, weights): (Vec<f64>, Vec<f64>) = occupied.unzip();
            let cells = match shape {
                Shape::Normal => {
                    // Cells on the line, each with a series for the log density: as many as rows can use, and as many as are
                    // kept.
                    let most_used = 2 * columns.rows().unwrap_or(0);
                    let most_kept = most_used.min(ALL_KEPT / n_classes);
                    SeriesCells::new(&centres, bandwidth[class], most_kept)
                }
                _ => SeriesCells::default(),
            };
            Bumps {
                centres,
                largest_weight: weights.iter().copied().fold(0.0, f64::max),
                weights,
                bandwidth: bandwidth[class],
                constant: constant[class],
                cells,
            }
        });
        let classes = classes.collect();
        let [mean, deviation] = floor;
        // The logarithm of the wide normal's density at its mean times its share, FLOOR.
        let log_height = FLOOR.ln() - deviation.ln() - LOG_SQRT_TAU;
        let floor = WideNormal { mean, deviation, log_height };
        Ok(Kernel { columns, scale, shape, classes, floor })
    }

    /// Adds the log density of each row's number in each class to the sums, `[class][row]`; nothing where it is missing. An
    /// infinite number is an error.
    pub(super) fn add(&self, sums: &mut Sums) -> Result<(), Error> {
        let mut z = [f64::NAN; ROWS]; // the number of each row on the column's scale; NaN: missing
        let z = &mut z[..sums.rows.len()];
        self.write_z(sums, z)?;
        for (bumps, sums) in self.classes.iter().zip(sums.classes_mut()) {
            for (&z, sum) in z.iter().zip(sums).filter(|(z, _)| !z.is_nan()) {
                *sum += self.log_density(bumps, z);
            }
        }
        Ok(())
    }

    /// Writes the number x of each of the rows that have these sums to `z`, on the column's scale, (x - origin) / unit, and at
    /// most [`FARTHEST`] from 0; NaN where x is missing. An infinite x is an error.
    fn write_z(&self, sums: &Sums, z: &mut [f64]) -> Result<(), Error> {
        let (block, column) = self.columns.block_of(0); // the only column's block, and its index there
        let mut buffer = None; // for numbers that must be converted
        let numbers = sums.rows.reals(block, column, &mut buffer);
        for (i, (z, &x)) in z.iter_mut().zip(numbers).enumerate() {
            if x.is_infinite() {
                return Err(self.columns.bad_value(Fault::Infinite, sums.rows.row(i), 0));
            }
            *z = self.scale.z_without_overflow(x, 0).clamp(-FARTHEST, FARTHEST);
        }
        Ok(())
    }

    /// The log density of a class, that of a weighted sum of `bumps`, at z, a number on the column's scale, plus the class's
    /// constant; 0 for a class without bumps. `floor`, the wide normal that is mixed into compact kernels, has its mean and
    /// deviation in z units, and the logarithm of its height times its share.
    #[inline(always)]
    fn log_density(&self, bumps: &Bumps, z: f64) -> f64 {
        if bumps.centres.is_empty() {
            0.0
        } else if self.shape == Shape::Normal {
            bumps.constant + bumps.log_normal(z)
        } else {
            let density = (1.0 - FLOOR) * bumps.density(self.shape, z); // of the compact kernels
            let WideNormal { mean, deviation, log_height } = self.floor;
            // The distance from the mean in deviations.
            let u = ((z - mean) / deviation).abs().min(FARTHEST_U);
            bumps.constant + log_add(density.ln(), log_height - 0.5 * u * u)
        }
    }
}

impl Bumps {
    /// The log density at z, a number on the column's scale, of these bumps of normal kernels, by the series of z's cell or else
    /// bump by bump. Cells are equally wide, in z units, from `start` on, numbered from 0; a slot keeps one cell, the first of
    /// those with its lowest bits that a row falls into.
    #[inline(always)]
    fn log_normal(&self, z: f64) -> f64 {
        let position = (z - self.cells.start) * self.cells.inverse_width; // in cells
        if !(position >= 0.0 && position < self.cells.n_cells) {
            return self.log_sum_of_bumps(z);
        }
        let number = position as usize; // of the cell
        let slot = &self.cells.slots[number & (self.cells.slots.len() - 1)];
        let cell = slot.get_or_init(|| Box::new(self.compute_cell(number)));
        if cell.number == number {
            self.log_normal_in_cell(cell, z)
        } else {
            self.log_normal_in_cell(&self.compute_cell(number), z)
        }
    }

    /// The log density at z, which lies in this cell, by the cell's series: one of all bumps, or one of those on either side.
    /// `middle` is the cell's middle, a z, and `inverse_width` 1 over the width of a cell.
    #[inline(always)]
    fn log_normal_in_cell(&self, cell: &Cell, z: f64) -> f64 {
        let s = (z - cell.middle) * (2.0 * self.cells.inverse_width); // in half cells, from -1 to 1
        match &cell.log_density {
            LogDensity::OneSeries(series) => polynomial(series, s),
            LogDensity::TwoSides(sides) => {
                log_add(polynomial(&sides[0], s), polynomial(&sides[1], s))
            }
            LogDensity::NoSeries => self.log_sum_of_bumps(z),
        }
    }

    /// How far below the logarithm of the nearest bump (`nearest` is its index) a term's logarithm may be before it does not
    /// matter: farther, the lighter that bump is beside the heaviest.
    fn negligible_distance(&self, nearest: usize) -> f64 {
        NEGLIGIBLE + (self.largest_weight / self.weights[nearest]).ln()
    }

    /// The log density of these bumps of normal kernels at z, a number on the column's scale: a sum relative to the nearest bump,
    /// so that nothing underflows however far out z is.
    fn log_sum_of_bumps(&self, z: f64) -> f64 {
        // The distance of a centre, in bandwidths.
        let u = |centre: f64| ((z - centre) / self.bandwidth).clamp(-FARTHEST_U, FARTHEST_U);
        // How many centres are below z, and the index of the one nearest to it.
        let Neighbours { n_below, nearest } = find_neighbours(&self.centres, z);
        let nearest_u = u(self.centres[nearest]);
        let negligible = self.negligible_distance(nearest); // of logarithms
        let mut total = 0.0; // of weights times heights, relative to the height of the nearest bump
        visit_outwards(&self.centres, &self.weights, n_below, |centre, weight| {
            let u = u(centre);
            // By how much the bump's logarithm is below that of the nearest one.
            let distance = 0.5 * (u - nearest_u) * (u + nearest_u);
            let is_near = distance < negligible;
            if is_near {
                total += weight * (-distance).exp();
            }
            is_near
        });
        f64::ln(total) - 0.5 * nearest_u * nearest_u - self.bandwidth.ln() - LOG_SQRT_TAU
    }

    /// The cell of this number, counted from 0 at `start`, and the log density in it: one series of all bumps if that is exact,
    /// else one for the bumps on either side, else none. Cells are `width` wide, in z units.
    fn compute_cell(&self, number: usize) -> Cell {
        let middle = self.cells.start + (number as f64 + 0.5) * self.cells.width; // a z
        let n_bumps = self.centres.len();
        // The number of bumps below the middle.
        let n_below = find_neighbours(&self.centres, middle).n_below;
        let two_sides = || {
            let left = self.series(0..n_below, middle)?;
            let right = self.series(n_below..n_bumps, middle)?;
            Some(LogDensity::TwoSides(Box::new([left, right])))
        };
        let one_series = self.series(0..n_bumps, middle).map(LogDensity::OneSeries);
        let log_density = one_series.or_else(two_sides).unwrap_or(LogDensity::NoSeries);
        Cell { number, middle, log_density }
    }

    /// The series of the log density of these bumps (a range of indices) about `middle` (a z); None if there are none, or if it
    /// would not be exact.
    /// With s = (z - middle) / half, u = (middle - centre) / bandwidth and u' that of the nearest bump, the density is
    /// exp(-(u' + HALF s)² / 2) Σ weight exp(-(u² - u'²) / 2) exp(-HALF (u - u') s), but for a constant. The sum's power series
    /// has moments of the bumps for coefficients, and its logarithm their cumulants.
    fn series(&self, bumps: Range<usize>, middle: f64) -> Option<Series> {
        let first_bump = bumps.start; // its index
        let (centres, weights) = (&self.centres[bumps.clone()], &self.weights[bumps]);
        if centres.is_empty() {
            return None;
        }
        // How many of the centres are below the middle, and the index of the one nearest to it.
        let Neighbours { n_below, nearest } = find_neighbours(centres, middle);
        let negligible = self.negligible_distance(first_bump + nearest); // of logarithms
        let nearest_u = (middle - centres[nearest]) / self.bandwidth; // u' above
        // Moments of -HALF (u - u') over the bumps, by power from 0 on.
        let mut moments = [0.0; TERMS + CHECK_TERMS];
        let mut widest_gap = 0.0_f64; // to the nearest bump, in bandwidths
        visit_outwards(centres, weights, n_below, |centre, weight| {
            let u = (middle - centre) / self.bandwidth;
            let gap = u - nearest_u; // to the nearest bump, in bandwidths
            let distance = 0.5 * gap * (u + nearest_u); // of the bumps' logarithms
            let is_near = distance - HALF * gap.abs() < negligible;
            if is_near {
                widest_gap = widest_gap.max(gap.abs());
                let mut term = weight * (-distance).exp(); // what the bump adds to the next moment
                for moment in &mut moments {
                    *moment += term;
                    term *= -HALF * gap;
                }
            }
            is_near
        });
        let mut coefficients = cumulants(moments); // of 1, s, s² and so on
        // The size of the first terms that the series leaves out.
        let error = coefficients[TERMS..].iter().map(|term| term.abs()).sum::<f64>();
        coefficients[0] -= 0.5 * nearest_u * nearest_u + self.bandwidth.ln() + LOG_SQRT_TAU;
        coefficients[1] -= HALF * nearest_u;
        coefficients[2] -= 0.5 * HALF * HALF;
        let is_exact = error <= LARGEST_ERROR && widest_gap <= WIDEST;
        coefficients.first_chunk().filter(|_| is_exact).copied()
    }

    /// The density at z, a number on the column's scale, of these bumps, which have a compact shape: the weighted sum of one
    /// kernel on each centre. Centres ascend, and are in z units, as is the bandwidth.
    fn density(&self, shape: Shape, z: f64) -> f64 {
        let reach = shape.reach() * self.bandwidth; // how far a bump extends, in z units
        // One bump more on either side: z - reach may have been rounded.
        let start = self.centres.partition_point(|&c| c < z - reach).saturating_sub(1);
        let end = (self.centres.partition_point(|&c| c <= z + reach) + 1).min(self.centres.len());
        let near_bumps = self.centres[start..end].iter().zip(&self.weights[start..end]);
        let heights = near_bumps
            .map(|(centre, weight)| weight * shape.density((z - centre) / self.bandwidth));
        heights.sum::<f64>() / self.bandwidth
    }
}

/// How many centres are below a number, and the index of the centre nearest to it.
struct Neighbours {
    n_below: usize,
    nearest: usize,
}

/// How many of the centres, which ascend, are below z, and the index of the one nearest to it; there is at least one. Centres and
/// z are in the same unit.
fn find_neighbours(centres: &[f64], z: f64) -> Neighbours {
    let n_below = centres.partition_point(|&centre| centre < z);
    let is_left_nearer = n_below > 0
        && (n_below == centres.len() || z - centres[n_below - 1] < centres[n_below] - z);
    Neighbours { n_below, nearest: n_below - usize::from(is_left_nearer) }
}

/// Calls `visit` with centre and weight of the first `n_below` bumps, the last one first, until it returns false, and then
/// likewise with the bumps after them, the first one first. `centres` ascend, and `weights` has the weight of the bump on each.
#[inline(always)]
fn visit_outwards(
    centres: &[f64],
    weights: &[f64],
    n_below: usize,
    mut visit: impl FnMut(f64, f64) -> bool,
) {
    let mut visit_bump = |(&centre, &weight): (&f64, &f64)| visit(centre, weight);
    let _ = centres[..n_below].iter().zip(&weights[..n_below]).rev().all(&mut visit_bump);
    let _ = centres[n_below..].iter().zip(&weights[n_below..]).all(&mut visit_bump);
}

impl SeriesCells {
    /// Divides the line around bumps into cells of equal width. `centres` are those of the bumps, ascending, in z units, as is
    /// the bandwidth. There are empty slots for all cells, or for about `most_kept` of them; no cells if there are no bumps, or
    /// if doubles are too coarse.
    fn new(centres: &[f64], bandwidth: f64, most_kept: usize) -> Self {
        let (Some(&lowest), Some(&highest)) = (centres.first(), centres.last()) else {
            return SeriesCells::default();
        };
        if lowest.abs().max(highest.abs()) >= FINEST * bandwidth {
            return SeriesCells::default();
        }
        // Of a cell, and how far cells reach beyond the outermost bumps; in z units.
        let (width, margin) = (2.0 * HALF * bandwidth, MARGIN * bandwidth);
        let n_cells = ((highest - lowest + 2.0 * margin) / width).floor();
        let n_kept = (n_cells as usize).min(most_kept).clamp(1, MOST_KEPT);
        let mut slots = vec![]; // each for one cell, computed when it is needed
        slots.resize_with(n_kept.next_power_of_two(), OnceLock::new);
        let start = lowest - margin; // where the first cell begins, a z
        SeriesCells { start, width, inverse_width: 1.0 / width, n_cells, slots }
    }
}

/// The first `N` coefficients of the logarithm of a power series, whose coefficients are moments[k] / k!, both by power from 0
/// on.
fn cumulants<const N: usize>(moments: [f64; N]) -> [f64; N] {
    let mut series = moments.map(|moment| moment / moments[0]); // the power series over its first term
    let mut factorial = 1.0; // k!
    for (k, coefficient) in series.iter_mut().enumerate().skip(1) {
        factorial *= k as f64;
        *coefficient /= factorial;
    }
    let mut log_series = [0.0; N]; // the coefficients of the logarithm
    log_series[0] = moments[0].ln();
    for k in 1..N {
        let lower_terms = (1..k).map(|j| j as f64 * log_series[j] * series[k - j]);
        log_series[k] = series[k] - lower_terms.sum::<f64>() / k as f64;
    }
    log_series
}

/// The sum of `coefficients[k]` times s to the k, in pairs, which processors can compute side by side.
#[inline(always)]
fn polynomial(coefficients: &[f64; TERMS], s: f64) -> f64 {
    let square = s * s;
    let pair = |k: usize| coefficients[k] + coefficients[k + 1] * s; // terms k and k + 1 over s to the k
    let (low, high) = (pair(0) + pair(2) * square, pair(4) + pair(6) * square);
    low + high * (square * square)
}

/// log(exp a + exp b) for a finite b.
pub(super) fn log_add(a: f64, b: f64) -> f64 {
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bumps with constant 0, and slots for about `most` cells.
    fn bumps(centres: &[f64], weights: &[f64], bandwidth: f64, most: usize) -> Bumps {
        Bumps {
            centres: centres.to_vec(),
            weights: weights.to_vec(),
            largest_weight: weights.iter().copied().fold(0.0, f64::max),
            bandwidth,
            constant: 0.0,
            cells: SeriesCells::new(centres, bandwidth, most),
        }
    }

    /// Bumps of uneven weights on `n` bins of width 1, of which only every so many have one, and whole stretches none.
    fn uneven(n: usize, every: usize, bandwidth: f64) -> Bumps {
        let bins = (0..n).filter(|i| i % every == 0 && i % 97 > 30);
        let (centres, weights): (Vec<f64>, Vec<f64>) =
            bins.map(|i| (i as f64 + 0.5, 1.0 + (i * i % 13) as f64)).unzip();
        bumps(&centres, &weights, bandwidth, 100_000)
    }

    #[test]
    fn series_are_the_sum_of_the_bumps() {
        for (every, bandwidth) in [(1, 1.0), (1, 2.7), (1, 40.0), (3, 1.0), (7, 2.0), (50, 1.0)] {
            let bumps = uneven(600, every, bandwidth);
            for i in -2000..8000 {
                let z = f64::from(i) * 0.101;
                let (log, expected) = (bumps.log_normal(z), bumps.log_sum_of_bumps(z));
                let error = (log - expected).abs();
                assert!(
                    error <= 3e-12 * expected.abs().max(1.0),
                    "{every} {bandwidth} {z} {error:e}"
                );
            }
        }
    }

    #[test]
    fn beside_a_bump_of_next_to_no_weight_the_others_count() {
        let (bandwidth, most_cells) = (1.0, 1000);
        let bumps = bumps(&[0.0, 9.0, 20.0], &[1.0, 1e-200, 1.0], bandwidth, most_cells);
        for z in [9.0_f64, 9.01, 10.0, 12.0] {
            // What the bumps at 0 and at 20 add.
            let outer_bumps = (-0.5 * z * z).exp() + (-0.5 * (20.0 - z) * (20.0 - z)).exp();
            let expected = outer_bumps.ln() - LOG_SQRT_TAU;
            assert!((bumps.log_normal(z) - expected).abs() < 1e-11, "{z}");
            assert!((bumps.log_sum_of_bumps(z) - expected).abs() < 1e-11, "{z}");
        }
    }

    #[test]
    fn most_cells_have_a_series() {
        let (n_bins, every, bandwidth) = (600, 1, 5.0);
        let bumps = uneven(n_bins, every, bandwidth);
        let cells: Vec<Cell> =
            (0..bumps.cells.n_cells as usize).map(|number| bumps.compute_cell(number)).collect();
        let has_no_series = |cell: &&Cell| matches!(cell.log_density, LogDensity::NoSeries);
        let (n_without, n_cells) = (cells.iter().filter(has_no_series).count(), cells.len());
        assert!(n_without * 100 < n_cells, "{n_without} of {n_cells}");
    }

    #[test]
    fn gaps_are_crossed() {
        // Two bumps, so many bandwidths apart; z is near the middle between them.
        let (bandwidth, most_cells) = (1.0, 1000);
        for gap in [5.0, 30.0, 300.0, 3000.0, 1e6] {
            let bumps = bumps(&[0.0, gap], &[1.0, 3.0], bandwidth, most_cells);
            for i in -100..=100 {
                let z = gap * (0.5 + f64::from(i) * 1e-5);
                let (log, expected) = (bumps.log_normal(z), bumps.log_sum_of_bumps(z));
                assert!((log - expected).abs() <= 1e-11 * expected.abs(), "{gap} {z}");
            }
        }
    }

    #[test]
    fn answers_do_not_depend_on_the_cells_kept() {
        // The same bumps with slots for few cells and for all.
        let (n_bins, every, bandwidth) = (500, 2, 3.0);
        let all_kept = uneven(n_bins, every, bandwidth);
        let few_kept = uneven(n_bins, every, bandwidth);
        let most_kept = 1;
        let cells = SeriesCells::new(&few_kept.centres, bandwidth, most_kept);
        let few_kept = Bumps { cells, ..few_kept };
        assert!(few_kept.cells.slots.len() < 4 && all_kept.cells.slots.len() > 1000);
        for i in (0..5000).rev() {
            let z = f64::from(i) * 0.1;
            assert_eq!(few_kept.log_normal(z), all_kept.log_normal(z));
        }
    }

    #[test]
    fn where_doubles_are_coarse_there_are_no_cells() {
        let centres = [2_f64.powi(50), 2_f64.powi(50) + 1.0];
        let (bandwidth, most_cells) = (1.0, 9);
        let far_bumps = bumps(&centres, &[1.0, 1.0], bandwidth, most_cells);
        assert_eq!(far_bumps.cells.n_cells, 0.0);
        assert!(far_bumps.log_normal(2_f64.powi(50)).is_finite());
        assert!(far_bumps.log_normal(-FARTHEST).is_finite());
    }
}
