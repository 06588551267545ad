//! Pólya urns: each drawn ball is put back with another one of its colour, so that a word that occurred once is likelier to
//! recur.

/// A product of `MOST_FACTORS` factors from `1 / RANGE` to `RANGE` neither overflows nor underflows: its logarithm is taken once.
const RANGE: f64 = (1_u64 << 60) as f64;
const MOST_FACTORS: u32 = 16;

/// Products of draws whose logarithms are still to be added to totals, per class. Factors are multiplied before logarithms are
/// taken.
#[derive(Default)]
pub(super) struct Urn {
    /// `[class]`.
    products: Vec<f64>,
    /// How many factors each product has.
    n_factors: u32,
}

impl Urn {
    /// Begins the products, `[class]`, anew with no factors, and sets the number of classes.
    pub(super) fn begin(&mut self, n_classes: usize) {
        self.products.clear();
        self.products.resize(n_classes, 1.0);
        self.n_factors = 0;
    }

    /// Draws one colour n times, each time putting back another ball of it: multiplies each class's product by the number of the
    /// colour's balls at every draw, and adds the logarithms of the products to `totals`, `[class]`, when they have
    /// [`MOST_FACTORS`] factors. `balls`, `[class]`, is the number of the colour's balls in each class's urn before, not
    /// negative. `n_factors` is how many factors each product has.
    pub(super) fn draw(&mut self, balls: &[f64], n: u32, totals: &mut [f64]) {
        let balls_added = f64::from(n) - 1.0; // before the last draw: each draw adds a ball
        let is_in_range = |balls: &f64| *balls >= 1.0 / RANGE && balls + balls_added <= RANGE;
        if n > MOST_FACTORS || !balls.iter().all(is_in_range) {
            for (total, &balls) in totals.iter_mut().zip(balls) {
                *total += log_rising(balls, n.into());
            }
            return;
        }
        for drawn in 0..n {
            if self.n_factors == MOST_FACTORS {
                self.end(totals);
            }
            self.n_factors += 1;
            for (product, balls) in self.products.iter_mut().zip(balls) {
                *product *= balls + f64::from(drawn);
            }
        }
    }

    /// Adds the logarithms of the products of numbers of balls, `[class]`, to `totals`, `[class]`, and begins new products,
    /// without factors.
    pub(super) fn end(&mut self, totals: &mut [f64]) {
        for (total, product) in totals.iter_mut().zip(&mut self.products) {
            *total += product.ln();
            *product = 1.0;
        }
        self.n_factors = 0;
    }
}

/// The logarithm of the product of n factors, log(x (x + 1) ... (x + n - 1)), for x of at least 0.
pub(super) fn log_rising(x: f64, n: u64) -> f64 {
    // Stirling's series is exact to the last bits from here on.
    const LEAST_STIRLING: f64 = 16.0;
    let mut total = 0.0;
    let mut product = 1.0; // of the first factors, which are small
    let mut n_multiplied = 0; // factors in the product
    while n_multiplied < n && x + (n_multiplied as f64) < LEAST_STIRLING {
        product *= x + n_multiplied as f64;
        n_multiplied += 1;
    }
    if n_multiplied > 0 {
        total += f64::ln(product);
    }
    if n_multiplied < n {
        // The first of the factors that are left, and how many these are.
        let (x, n) = (x + n_multiplied as f64, (n - n_multiplied) as f64);
        let end = x + n; // one more than the last factor
        total += n * end.ln()
            + ((x - 0.5) * (n / x).ln_1p() - n)
            + (stirling_remainder(end) - stirling_remainder(x));
    }
    total
}

/// The remainder of log Γ(x) after (x - 1/2) log x - x + log(2π) / 2, for x of at least 16, by Stirling's series.
fn stirling_remainder(x: f64) -> f64 {
    let y = 1.0 / (x * x); // the series is one in y
    (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`log_rising`], logarithm by logarithm.
    fn slow(x: f64, n: u64) -> f64 {
        (0..n).map(|j| (x + j as f64).ln()).sum()
    }

    #[test]
    fn rising_factorials() {
        for x in [1e-300, 1e-9, 0.01, 0.5, 1.0, 3.7, 15.9, 16.0, 1e3, 1e9, 1e100] {
            for n in [0, 1, 2, 3, 15, 16, 17, 40, 1000, 12_345] {
                let (log, expected) = (log_rising(x, n), slow(x, n));
                assert!(
                    (log - expected).abs() <= 1e-13 * (1.0 + expected.abs()),
                    "{x} {n}: {log} {expected}"
                );
            }
        }
        assert_eq!(log_rising(0.0, 2), f64::NEG_INFINITY);
        assert_eq!(log_rising(0.0, 0), 0.0);
    }

    #[test]
    fn draws_in_products() {
        // The balls of each colour in the urns of two classes.
        let colours = [[0.5, 2.0], [1e-30, 7.0], [1e200, 0.0], [3.0, 4.0], [1e-18, 1e18]];
        let mut urn = Urn::default();
        let (mut totals, mut expected) = ([0.0; 2], [0.0; 2]);
        let n_classes = 2;
        urn.begin(n_classes);
        for n in [1, 2, 16, 17, 300, 1, 5, 16, 16] {
            for balls in &colours {
                urn.draw(balls, n, &mut totals);
                expected.iter_mut().zip(balls).for_each(|(total, &x)| *total += slow(x, n.into()));
            }
        }
        urn.end(&mut totals);
        assert!((totals[0] - expected[0]).abs() <= 1e-13 * expected[0].abs());
        assert_eq!(totals[1], f64::NEG_INFINITY); // the second class has no ball of one colour
    }
}
