//! The logarithm without branches or calls, so that loops over it are vectorized.

use crate::exponential::{LN_2, ROUNDING_SHIFT};
use std::f64::consts::SQRT_2;

/// ln x, for x from 2^-1022 on; within a few units in the last place, or of 1e-16 near 1. `bits` are those of x as a double;
/// `s` is (factor - 1) / (factor + 1) and `square` its square; `sum` is s²/3 + s⁴/5 + …. ln 2 is `LN_2.0` + `LN_2.1`.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    // x = 2^n · factor, with a factor between √½ and √2.
    // `n` is first an integer, then the same number as a double.
    let bits = x.to_bits() as i64;
    let n = (bits - (SQRT_2 / 2.0).to_bits() as i64) >> 52;
    let factor = f64::from_bits((bits - (n << 52)) as u64);
    let n = f64::from_bits((n + ROUNDING_SHIFT.to_bits() as i64) as u64) - ROUNDING_SHIFT;
    let s = (factor - 1.0) / (factor + 1.0);
    let square = s * s;
    // 2 artanh s = 2 (s + s³/3 + s⁵/5 + …)
    let mut sum = 0.0;
    for i in (1..12).rev() {
        sum = (sum + 1.0 / (2 * i + 1) as f64) * square;
    }
    n * LN_2.0 + (2.0 * s + (2.0 * s * sum + n * LN_2.1))
}

#[cfg(test)]
mod tests {
    use super::ln;

    #[test]
    fn it_is_the_logarithm() {
        let mut x: f64 = 1e-300;
        while x < 1e300 {
            let expected = x.ln();
            assert!((ln(x) - expected).abs() <= 4e-16 * expected.abs().max(0.25), "{x}");
            x *= 1.000_9;
        }
        assert_eq!(ln(1.0), 0.0);
    }
}
