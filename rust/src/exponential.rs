//! The exponential function without branches or calls, so that loops over it are vectorized.

use crate::integers::WHOLE;

/// Adding this to a number below 2^51 rounds the number to a whole one, which the lowest bits then hold.
pub(crate) const ROUNDING_SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// ln 2 in two parts, of which the first has so few bits that its product with a whole number below 2^11 is exact.
pub(crate) const LN_2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);
/// Below this the exponential is 0.
const LOWEST: f64 = -745.2;

/// 1 / n! for n from 13 down to 2.
const COEFFICIENTS: [f64; 12] = {
    let mut coefficients = [0.0; 12];
    let (mut factorial, mut n) = (1.0, 2);
    while n <= 13 {
        factorial *= n as f64;
        coefficients[13 - n] = 1.0 / factorial;
        n += 1;
    }
    coefficients
};

/// 2 to the n, for a whole number n between -1022 and 1023.
#[inline(always)]
fn power_of_two(n: f64) -> f64 {
    f64::from_bits((n + 1023.0 + WHOLE).to_bits() << 52)
}

/// e to the x, for x up to 0, -inf included; within two units in the last place. `n` is the whole number next to x / ln 2,
/// `half` that next to n / 2, and `remainder` what is left of x; ln 2 is `LN_2.0` + `LN_2.1`.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // e^x = 2^n · e^remainder.
    let x = x.max(LOWEST);
    let n = (x * LOG2_E + ROUNDING_SHIFT) - ROUNDING_SHIFT;
    let remainder = (x - n * LN_2.0) - n * LN_2.1;
    // e^remainder is 1 + remainder + sum * remainder, by its power series.
    let mut sum = 0.0;
    for coefficient in COEFFICIENTS {
        sum = (sum + coefficient) * remainder;
    }
    // In two steps, because 2^n alone may be too small for a number.
    let half = (n * 0.5 + ROUNDING_SHIFT) - ROUNDING_SHIFT;
    (1.0 + (remainder + sum * remainder)) * power_of_two(half) * power_of_two(n - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_exponential() {
        let mut largest_relative_error = 0.0_f64;
        for i in 0..2_000_000 {
            let x = -(f64::from(i) / 2_000_000.0).powi(3) * 708.0;
            largest_relative_error = largest_relative_error.max((exp(x) / x.exp() - 1.0).abs());
        }
        assert!(largest_relative_error < 4.5e-16, "{largest_relative_error:e}");
    }

    #[test]
    fn it_ends_in_nothing() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e300), 0.0);
        for x in [-708.5, -720.0, -740.0, -744.4, -745.1] {
            let difference = (exp(x) - f64::exp(x)).abs();
            assert!(difference <= f64::exp(x) * 1e-15 + 5e-324, "{x}");
        }
    }
}
