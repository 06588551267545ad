//! Sums that can be taken apart again: a real number as the exact sum of three doubles.
//!
//! With some 159 bits, a square of 1e24 can be added and later subtracted, and the sums of ordinary rows come back unharmed;
//! a double would have lost them.

/// `hi + mid + lo`. The parts may overlap while adding; [`Expansion::parts`] sorts them out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expansion {
    hi: f64,
    mid: f64,
    lo: f64,
}

/// The rounded sum and what rounding lost (Knuth): `s + e == a + b` exactly.
#[inline(always)]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// The rounded product and what rounding lost. `mul_add` may be a library call: keep to rare paths.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    (p, a.mul_add(b, -p))
}

impl Expansion {
    /// Adds a double. Only the last part rounds, at 2^-159 of the largest sum ever held.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        let (hi, e) = two_sum(self.hi, x);
        let (mid, e) = two_sum(self.mid, e);
        *self = Expansion {
            hi,
            mid,
            lo: self.lo + e,
        };
    }

    pub fn from_parts([hi, mid, lo]: [f64; 3]) -> Self {
        Expansion { hi, mid, lo }
    }

    /// A whole number, exactly.
    pub fn from_whole(number: u64) -> Self {
        let (high, low) = ((number >> 32 << 32) as f64, (number & 0xffff_ffff) as f64);
        let mut whole = Expansion::default();
        whole.add(high);
        whole.add(low);
        whole
    }

    /// Adds another expansion.
    pub fn merge(&mut self, other: &Expansion) {
        self.add(other.hi);
        self.add(other.mid);
        self.add(other.lo);
    }

    /// Subtracts another expansion.
    pub fn take(&mut self, other: &Expansion) {
        self.add(-other.hi);
        self.add(-other.mid);
        self.add(-other.lo);
    }

    /// Adds `a * b` without rounding it; answers whether the product stayed in range.
    pub fn add_product(&mut self, a: f64, b: f64) -> bool {
        let (p, e) = two_product(a, b);
        self.add(p);
        self.add(e);
        p.abs() <= LARGEST
    }

    /// Adds `z * z * w` to within a rounding of its last part; answers whether it stayed in range.
    pub fn add_square(&mut self, z: f64, w: f64) -> bool {
        let (p, e) = two_product(z, z);
        let inside = self.add_product(p, w);
        self.add_product(e, w) && inside
    }

    /// Times a double, to within a rounding of the last part.
    pub fn times(&self, factor: f64) -> Expansion {
        let [hi, mid, lo] = self.parts();
        let mut product = Expansion::default();
        product.add_product(hi, factor);
        product.add_product(mid, factor);
        product.add(lo * factor);
        product
    }

    /// Rounded to a double.
    pub fn value(&self) -> f64 {
        let [hi, mid, lo] = self.parts();
        hi + (mid + lo)
    }

    /// Largest first; each part is the rounded value of all that is left, so they do not overlap.
    pub fn parts(&self) -> [f64; 3] {
        let Expansion {
            mut hi,
            mut mid,
            mut lo,
        } = *self;
        for _ in 0..3 {
            (mid, lo) = two_sum(mid, lo);
            (hi, mid) = two_sum(hi, mid);
        }
        (mid, lo) = two_sum(mid, lo);
        [hi, mid, lo]
    }
}

/// A product beyond this is refused: sums of a few billion of them must stay finite.
const LARGEST: f64 = f64::from_bits((1023 + 1000) << 52); // 2^1000

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> [f64; 3] {
        let mut total = Expansion::default();
        values.iter().for_each(|&x| total.add(x));
        total.parts()
    }

    #[test]
    fn parts_are_exact_and_sorted() {
        assert_eq!(sum(&[]), [0.0; 3]);
        let small = 2_f64.powi(-70);
        assert_eq!(sum(&[1e24, 1.0, small]), [1e24, 1.0, small]);
        assert_eq!(sum(&[1e24, 1.0, small, -1e24]), [1.0, small, 0.0]);
        assert_eq!(sum(&[0.1, 1e24, 0.2, -1e24])[0], sum(&[0.1, 0.2])[0]);
    }

    #[test]
    fn an_outlier_leaves_no_trace() {
        let mut total = Expansion::default();
        total.add(0.1);
        let before = total.parts();
        assert!(total.add_square(1e12 + 0.3, 1.0));
        let mut outlier = Expansion::default();
        assert!(outlier.add_square(1e12 + 0.3, 1.0));
        total.take(&outlier);
        assert_eq!(total.parts(), before);
    }

    #[test]
    fn whole_numbers_and_multiples_are_exact() {
        for number in [0, 1, (1 << 53) + 1, u64::MAX] {
            let parts = Expansion::from_whole(number).parts();
            let exact: i128 = parts.iter().map(|&part| part as i128).sum();
            assert_eq!(exact, i128::from(number));
        }
        let tenth = Expansion::from_parts([0.1, 2_f64.powi(-60), 2_f64.powi(-120)]);
        let half = [0.05, 2_f64.powi(-61), 2_f64.powi(-121)];
        assert_eq!(tenth.times(0.5).parts(), half);
        assert_eq!(tenth.times(0.0).value(), 0.0);
        assert_eq!(sum(&[1.0, 2_f64.powi(-53), 2_f64.powi(-106)])[0], 1.0);
    }

    #[test]
    fn products_are_not_rounded() {
        let mut total = Expansion::default();
        assert!(total.add_product(0.1, 0.1));
        total.add(-(0.1 * 0.1));
        assert_ne!(total.parts()[0], 0.0);
        assert!(!total.add_product(1e200, 1e150));
    }
}
