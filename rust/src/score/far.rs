//! Rows far from every class, whose sums are so large that rounding hides the differences between the classes.
//!
//! For such a row the log-likelihoods are kept term by term, and classes are compared term by term: what two classes have in
//! common cancels before anything is added, and the differences are added without rounding.

/// Differences are clamped to this, so that a sum of them cannot overflow.
const LARGEST: f64 = f64::from_bits((1023 + 960) << 52); // 2^960

/// The log prior and the log-likelihoods of one row, `[term][class]`.
pub(super) struct Terms {
    n_classes: usize,
    values: Vec<f64>,
}

impl Terms {
    pub(super) fn new(log_prior: &[f64]) -> Self {
        Terms { n_classes: log_prior.len(), values: log_prior.to_vec() }
    }

    /// Adds a term: one number per class.
    pub(super) fn add(&mut self, term: impl Iterator<Item = f64>) {
        self.values.extend(term);
    }

    /// The log joint probability of each class minus that of the most probable one, or -inf; None if all are impossible.
    pub(super) fn differences(&self) -> Option<Vec<f64>> {
        let logs = |class: usize| self.values.iter().skip(class).step_by(self.n_classes);
        let possible = (0..self.n_classes).filter(|&class| logs(class).all(|log| log.is_finite()));
        let possible: Vec<usize> = possible.collect();
        let mut best = *possible.first()?;
        for &class in &possible {
            if self.difference(class, best) > 0.0 {
                best = class;
            }
        }
        let mut differences = vec![f64::NEG_INFINITY; self.n_classes];
        for &class in &possible {
            differences[class] = self.difference(class, best);
        }
        Some(differences)
    }

    fn difference(&self, class: usize, other: usize) -> f64 {
        let mut total = Sum::default();
        for term in self.values.chunks_exact(self.n_classes) {
            total.add((term[class] - term[other]).clamp(-LARGEST, LARGEST));
        }
        total.value()
    }
}

/// A sum without rounding (Shewchuk 1997): numbers whose bits do not overlap, from the smallest to the largest.
#[derive(Default)]
struct Sum(Vec<f64>);

impl Sum {
    fn add(&mut self, mut x: f64) {
        let mut kept = 0;
        for i in 0..self.0.len() {
            let (sum, error) = two_sum(x, self.0[i]);
            if error != 0.0 {
                self.0[kept] = error;
                kept += 1;
            }
            x = sum;
        }
        self.0.truncate(kept);
        if x != 0.0 {
            self.0.push(x);
        }
    }

    fn value(&self) -> f64 {
        self.0.iter().fold(0.0, |total, x| total + x)
    }
}

/// A rounded sum, and its rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let from_b = sum - a;
    (sum, (a - (sum - from_b)) + (b - from_b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(terms: &[&[f64]]) -> Option<Vec<f64>> {
        let mut all = Terms::new(terms[0]);
        for term in &terms[1..] {
            all.add(term.iter().copied());
        }
        all.differences()
    }

    #[test]
    fn sums_are_exact() {
        let mut sum = Sum::default();
        for x in [1e100, 3.0, 1e-30, -1e100, 1e16, -3.0, -1e16] {
            sum.add(x);
        }
        assert_eq!(sum.value(), 1e-30);
        sum.add(-1e-30);
        assert_eq!(sum.value(), 0.0);
    }

    #[test]
    fn what_classes_have_in_common_cancels() {
        let found = compared(&[&[-1.0, -2.0], &[-5e20, -5e20], &[-3.0, -1.5]]);
        assert_eq!(found, Some(vec![-0.5, 0.0]));
        let found = compared(&[&[-1.0, -2.0], &[-3e20, -1e20], &[-1e20, -3e20]]);
        assert_eq!(found, Some(vec![0.0, -1.0]));
    }

    #[test]
    fn a_class_without_a_chance_swallows_nothing() {
        let found = compared(&[&[0.0; 3], &[-9e40, -2.0, -3.0], &[-1e6, -1e6, -1e6]]);
        assert_eq!(found, Some(vec![-9e40, 0.0, -1.0]));
        let never = f64::NEG_INFINITY;
        let found = compared(&[&[0.0; 3], &[never, -1e9, -1e9], &[-1.0, -2.0, -3.0]]);
        assert_eq!(found, Some(vec![never, 0.0, -1.0]));
        assert_eq!(compared(&[&[0.0, never], &[never, 0.0]]), None);
    }

    #[test]
    fn differences_do_not_overflow() {
        let found = compared(&[&[0.0; 2], &[-f64::MAX, f64::MAX], &[-f64::MAX, f64::MAX]]);
        assert_eq!(found, Some(vec![-2.0 * LARGEST, 0.0]));
    }
}
