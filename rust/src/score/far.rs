//! Rows far from every class, whose sums are so large that rounding hides the differences between the classes.
//!
//! For such a row the log-likelihoods are kept term by term, and classes are compared term by term: what two classes have in
//! common cancels before anything is added, and the differences are added without rounding.

/// Differences are clamped to this, so that a sum of them cannot overflow.
const LARGEST: f64 = f64::from_bits((1023 + 960) << 52); // 2^960

/// The log prior and the log-likelihoods of one row, `[term][class]`, of which the log prior is the first term.
pub(super) struct RowTerms {
    n_classes: usize,
    values: Vec<f64>,
}

impl RowTerms {
    /// The terms of a row that has the log prior alone, `[class]`.
    pub(super) fn new(log_prior: &[f64]) -> Self {
        RowTerms { n_classes: log_prior.len(), values: log_prior.to_vec() }
    }

    /// Adds a term: one number per class.
    pub(super) fn add(&mut self, term: impl Iterator<Item = f64>) {
        self.values.extend(term);
    }

    /// The log joint probability of each class minus that of the most probable one, -inf for an impossible class; None if all are
    /// impossible. The numbers that are added up are in `values`, `[term][class]`: the log prior, then log-likelihoods.
    pub(super) fn differences(&self) -> Option<Vec<f64>> {
        // The log prior and the log-likelihoods of a class, [term].
        let terms = |class: usize| self.values.iter().skip(class).step_by(self.n_classes);
        let is_possible = |&class: &usize| terms(class).all(|log| log.is_finite());
        let possible_classes: Vec<usize> = (0..self.n_classes).filter(is_possible).collect();
        let mut best = *possible_classes.first()?; // the most probable class so far
        for &class in &possible_classes {
            if self.difference(class, best) > 0.0 {
                best = class;
            }
        }
        let mut differences = vec![f64::NEG_INFINITY; self.n_classes];
        for &class in &possible_classes {
            differences[class] = self.difference(class, best);
        }
        Some(differences)
    }

    /// The log joint probability of `class` minus that of `base_class`, both possible: the sum over terms of the differences of
    /// the log prior and of log-likelihoods, which are in `values`, `[term][class]`.
    fn difference(&self, class: usize, base_class: usize) -> f64 {
        let mut total = ExactSum::default(); // of the differences, without rounding
        // A term is a number per class.
        for term in self.values.chunks_exact(self.n_classes) {
            total.add((term[class] - term[base_class]).clamp(-LARGEST, LARGEST));
        }
        total.value()
    }
}

/// A sum without rounding (Shewchuk 1997): numbers whose bits do not overlap, from the smallest to the largest.
#[derive(Default)]
struct ExactSum {
    summands: Vec<f64>,
}

impl ExactSum {
    /// Adds x, which is finite, to the sum: changes `summands`, the numbers, ascending in absolute value, that add up to it
    /// exactly.
    fn add(&mut self, x: f64) {
        // Each addition leaves its rounding error as a summand, if it is not 0.
        let mut n_errors = 0; // rounding errors that are kept so far
        let mut carry = x; // the rounded sum of x and the summands so far
        for i in 0..self.summands.len() {
            let (sum, error) = add_with_error(carry, self.summands[i]);
            if error != 0.0 {
                self.summands[n_errors] = error;
                n_errors += 1;
            }
            carry = sum;
        }
        self.summands.truncate(n_errors);
        if carry != 0.0 {
            self.summands.push(carry);
        }
    }

    /// The sum as a double.
    fn value(&self) -> f64 {
        self.summands.iter().fold(0.0, |total, summand| total + summand)
    }
}

/// Adds two numbers. Returns (a + b rounded to a double, the rounding error: a + b minus that).
fn add_with_error(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_in_sum = sum - a; // what of b is left in the rounded sum
    let error = (a - (sum - b_in_sum)) + (b - b_in_sum);
    (sum, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The differences to the best class of these terms, `[term][class]`, of which the first is the log prior.
    fn compared(terms: &[&[f64]]) -> Option<Vec<f64>> {
        let mut row_terms = RowTerms::new(terms[0]);
        for term in &terms[1..] {
            row_terms.add(term.iter().copied());
        }
        row_terms.differences()
    }

    #[test]
    fn sums_are_exact() {
        let mut sum = ExactSum::default();
        for x in [1e100, 3.0, 1e-30, -1e100, 1e16, -3.0, -1e16] {
            sum.add(x);
        }
        assert_eq!(sum.value(), 1e-30);
        sum.add(-1e-30);
        assert_eq!(sum.value(), 0.0);
    }

    #[test]
    fn what_classes_have_in_common_cancels() {
        let differences = compared(&[&[-1.0, -2.0], &[-5e20, -5e20], &[-3.0, -1.5]]);
        assert_eq!(differences, Some(vec![-0.5, 0.0]));
        let differences = compared(&[&[-1.0, -2.0], &[-3e20, -1e20], &[-1e20, -3e20]]);
        assert_eq!(differences, Some(vec![0.0, -1.0]));
    }

    #[test]
    fn a_class_without_a_chance_swallows_nothing() {
        let differences = compared(&[&[0.0; 3], &[-9e40, -2.0, -3.0], &[-1e6, -1e6, -1e6]]);
        assert_eq!(differences, Some(vec![-9e40, 0.0, -1.0]));
        let impossible = f64::NEG_INFINITY;
        let differences = compared(&[&[0.0; 3], &[impossible, -1e9, -1e9], &[-1.0, -2.0, -3.0]]);
        assert_eq!(differences, Some(vec![impossible, 0.0, -1.0]));
        assert_eq!(compared(&[&[0.0, impossible], &[impossible, 0.0]]), None);
    }

    #[test]
    fn differences_do_not_overflow() {
        let differences = compared(&[&[0.0; 2], &[-f64::MAX, f64::MAX], &[-f64::MAX, f64::MAX]]);
        assert_eq!(differences, Some(vec![-2.0 * LARGEST, 0.0]));
    }
}
