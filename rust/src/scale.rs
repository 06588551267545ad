//! Values in units of their own: z = (x - origin) / unit.

use crate::error::{Error, demand};

/// z beyond this has a square that sums could not hold.
pub const FARTHEST: f64 = f64::from_bits((1023 + 400) << 52); // 2^400

/// Origin and unit of each feature.
#[derive(Clone, Debug)]
pub struct Scale<'a> {
    pub origin: &'a [f64],
    /// One over the unit: exact, for units are powers of two.
    pub inverse: Vec<f64>,
}

impl<'a> Scale<'a> {
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

    /// z even where x - origin leaves the range of a double.
    pub fn careful(&self, x: f64, feature: usize) -> f64 {
        let (origin, inverse) = (self.origin[feature], self.inverse[feature]);
        let z = (x - origin) * inverse;
        if z.is_infinite() { x * inverse - origin * inverse } else { z }
    }
}

fn is_power_of_two(x: f64) -> bool {
    x.is_normal() && x > 0.0 && x.to_bits() << 12 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_units_are_exact() {
        let unit = [2_f64.powi(1023), 2_f64.powi(-1022)];
        let origin = [-1.7e308, 0.0];
        let scale = Scale::new(&origin, &unit, 2).unwrap();
        let z = scale.careful(1.7e308, 0);
        assert!((z - 2.0 * (1.7e308 / unit[0])).abs() < 1e-15);
        assert_eq!(scale.careful(unit[1] * 3.0, 1), 3.0);
    }

    #[test]
    fn other_units_are_refused() {
        for unit in [0.0, -1.0, 3.0, f64::NAN, f64::INFINITY, 5e-324] {
            assert!(Scale::new(&[0.0], &[unit], 1).is_err());
        }
        assert!(Scale::new(&[f64::NAN], &[1.0], 1).is_err());
        assert!(Scale::new(&[], &[1.0], 1).is_err());
    }
}
