//! Values on the scale of their feature: z = (x - origin) / unit.

use crate::error::{Error, demand};

/// The largest |z|: sums can hold its square.
pub const FARTHEST: f64 = f64::from_bits((1023 + 400) << 52); // 2^400

/// The origin and the unit of each feature's scale, `[feature]`.
#[derive(Clone, Debug)]
pub struct Scale<'a> {
    pub origin: &'a [f64],
    /// 1 / unit, which is exact because units are powers of two.
    pub inverse: Vec<f64>,
}

impl<'a> Scale<'a> {
    /// An error unless there is a finite origin for each feature, and a unit that is a power of two. `features` is how many
    /// features there are. A feature's scale is z = (x - origin) / unit; `inverse` is 1 / unit.
    pub fn new(origin: &'a [f64], unit: &[f64], features: usize) -> Result<Self, Error> {
        demand(
            origin.len() == features && unit.len() == features,
            "origin and unit must have one number per feature",
        )?;
        demand(origin.iter().all(|x| x.is_finite()), "origin must be finite")?;
        demand(
            unit.iter().all(|&x| is_power_of_two(x)),
            "unit must be a power of two, 2**-1022 or more",
        )?;
        Ok(Scale { origin, inverse: unit.iter().map(|x| 1.0 / x).collect() })
    }

    /// z of a feature's value x, even if x - origin overflows; NaN for NaN, infinite for an infinite x or if z is too large.
    /// z is (x - origin) / unit, with the feature's origin, and the feature's unit as `inverse`, 1 / unit.
    pub fn z_without_overflow(&self, x: f64, feature: usize) -> f64 {
        let (origin, inverse) = (self.origin[feature], self.inverse[feature]);
        let z = (x - origin) * inverse;
        if z.is_infinite() { x * inverse - origin * inverse } else { z }
    }
}

/// Whether x is 2 to a whole number, -1022 or more.
fn is_power_of_two(x: f64) -> bool {
    x.is_normal() && x > 0.0 && x.to_bits() << 12 == 0
}
