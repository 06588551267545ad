//! A feature whose density is a sum of little bumps, one on each occupied bin.

use super::Sums;
use super::normal::infinite;
use crate::columns::{Columns, Value, each};
use crate::error::{Error, demand};
use crate::scale::{FARTHEST, Scale};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

/// Terms smaller than e^-40 of the largest are not worth their exponential.
const NEGLIGIBLE: f64 = 40.0;
/// Distances in bandwidths are kept below this, whose square is finite.
const FARTHEST_U: f64 = f64::from_bits((1023 + 500) << 52); // 2^500
const NARROWEST: f64 = 1.0 / FARTHEST_U;
const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_8;
/// How much of a compact kernel's density is a wide normal, so that no value is impossible.
const FLOOR: f64 = 1e-6;

/// The form of a bump.
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

    /// How far a compact kernel reaches.
    fn reach(self) -> f64 {
        if self == Shape::Box { 0.5 } else { 1.0 }
    }

    /// The density of a compact kernel, 0 outside.
    fn density(self, u: f64) -> f64 {
        let inside = (1.0 - u * u).max(0.0);
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

/// A class's occupied bins.
#[derive(Debug)]
struct Bumps {
    centres: Vec<f64>,
    weights: Vec<f64>,
    bandwidth: f64,
    constant: f64,
}

/// Adds each class's log density of z, and a constant; a class without weights adds nothing.
#[derive(Debug)]
pub struct Kernel<'a> {
    pub(super) columns: Columns<'a>,
    scale: Scale<'a>,
    shape: Shape,
    classes: Vec<Bumps>,
    floor: [f64; 2],
}

impl<'a> Kernel<'a> {
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
        demand(
            constant.len() == n_classes,
            "constant must have one number per class",
        )?;
        demand(
            centres.iter().all(|x| x.is_finite()) && centres.is_sorted(),
            "centres must be finite and ascend",
        )?;
        demand(
            weights.iter().all(|&w| (0.0..f64::INFINITY).contains(&w)),
            "weights must be finite and not negative",
        )?;
        demand(
            bandwidth
                .iter()
                .all(|&h| (NARROWEST..=FARTHEST_U).contains(&h)),
            "bandwidth must be a positive number, between 2**-500 and 2**500",
        )?;
        demand(
            constant.iter().all(|x| x.is_finite()),
            "constant must be finite",
        )?;
        demand(
            shape == Shape::Normal
                || (floor[0].is_finite() && (NARROWEST..=FARTHEST_U).contains(&floor[1])),
            "floor must be a mean and a positive standard deviation",
        )?;
        let classes = (0..n_classes).map(|class| {
            let column = weights.iter().skip(class).step_by(n_classes);
            let occupied = centres.iter().zip(column).filter(|&(_, &w)| w > 0.0);
            let (centres, weights) = occupied.unzip();
            Bumps {
                centres,
                weights,
                bandwidth: bandwidth[class],
                constant: constant[class],
            }
        });
        Ok(Kernel {
            columns,
            scale,
            shape,
            classes: classes.collect(),
            floor,
        })
    }

    pub(super) fn add(&self, sums: &mut Sums) -> Result<(), Error> {
        for (_, block, _) in self.columns.pieces(0..1) {
            each!(block, view => {
                let mut room = None;
                for (at, x) in sums.rows.of(view, 0, &mut room).iter().enumerate() {
                    let x = x.real();
                    if x.is_infinite() {
                        return Err(infinite(&self.columns, sums.rows.row(at), 0));
                    }
                    if !x.is_nan() {
                        let z = self.scale.careful(x, 0).clamp(-FARTHEST, FARTHEST);
                        for (class, bumps) in self.classes.iter().enumerate() {
                            sums.values[class * sums.height + at] += self.log(bumps, z);
                        }
                    }
                }
            });
        }
        Ok(())
    }

    fn log(&self, bumps: &Bumps, z: f64) -> f64 {
        if bumps.centres.is_empty() {
            0.0
        } else if self.shape == Shape::Normal {
            bumps.constant + bumps.log_normal(z)
        } else {
            let density = (1.0 - FLOOR) * bumps.density(self.shape, z);
            let floor = FLOOR.ln() + log_normal(z, self.floor[0], self.floor[1]);
            bumps.constant + log_add(density.ln(), floor)
        }
    }
}

impl Bumps {
    /// Relative to the nearest bump, so that nothing underflows however far out z is.
    fn log_normal(&self, z: f64) -> f64 {
        let u = |centre: f64| ((z - centre) / self.bandwidth).abs().min(FARTHEST_U);
        let at = self.centres.partition_point(|&centre| centre < z);
        let (left, right) = self.centres.split_at(at);
        let nearest = match (left.last(), right.first()) {
            (Some(&l), Some(&r)) => u(l).min(u(r)),
            (Some(&l), None) => u(l),
            (None, Some(&r)) => u(r),
            (None, None) => return 0.0,
        };
        let beyond = |centre: f64| {
            let u = u(centre);
            0.5 * (u - nearest) * (u + nearest)
        };
        let mut total = 0.0;
        for (&centre, &weight) in left.iter().zip(&self.weights[..at]).rev() {
            let beyond = beyond(centre);
            if beyond >= NEGLIGIBLE {
                break;
            }
            total += weight * (-beyond).exp();
        }
        for (&centre, &weight) in right.iter().zip(&self.weights[at..]) {
            let beyond = beyond(centre);
            if beyond >= NEGLIGIBLE {
                break;
            }
            total += weight * (-beyond).exp();
        }
        f64::ln(total) - 0.5 * nearest * nearest - self.bandwidth.ln() - LOG_SQRT_TAU
    }

    /// The sum of compact bumps at z.
    fn density(&self, shape: Shape, z: f64) -> f64 {
        let reach = shape.reach() * self.bandwidth;
        // One bump more on either side: z - reach may have been rounded.
        let from = self
            .centres
            .partition_point(|&c| c < z - reach)
            .saturating_sub(1);
        let near = self.centres[from..].iter().zip(&self.weights[from..]);
        let mut total = 0.0;
        let mut past = false;
        for (centre, weight) in near {
            if past {
                break;
            }
            past = *centre > z + reach;
            total += weight * shape.density((z - centre) / self.bandwidth);
        }
        total / self.bandwidth
    }
}

fn log_normal(z: f64, mean: f64, deviation: f64) -> f64 {
    let u = ((z - mean) / deviation).abs().min(FARTHEST_U);
    -0.5 * u * u - deviation.ln() - LOG_SQRT_TAU
}

/// log(exp a + exp b) for a finite b.
fn log_add(a: f64, b: f64) -> f64 {
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}
