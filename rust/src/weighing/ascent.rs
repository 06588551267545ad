//! Learns corrections: logistic regression that starts from given scores, by dual coordinate ascent.
//!
//! The correction of a cell is Δ = C s² Σ x (y − μ) over the rows that have the cell, with the value x; y is 1 for the class of
//! a row and μ its probability under the corrections. A visit of a row changes its μ so that it agrees with the corrections that
//! follow from it: ln μ + A μ = z + A μ_before − ν with Σ μ = 1, where A = C Σ s² x² is how much the row corrects itself. A label
//! is a yes or no: ln μ / (1 − μ) + A μ = z + A μ_before.
//!
//! Tables, texts and pairs of rows differ in what a cell is. The visits are the same for all of them.

use crate::error::{Error, demand};
use crate::exponential::exp;
use crate::simd::wide;
use std::ops::{AddAssign, Mul, Sub};

/// The rows that corrections are learned from.
#[derive(Clone, Copy, Debug)]
pub struct TrainingRows<'a> {
    /// C times the weight of each row, `[row]`; rows with 0 are not visited.
    pub strengths: &'a [f64],
    /// The scores before corrections, `[row][class]`.
    pub offsets: &'a [f64],
    /// How many classes there are, or labels.
    pub classes: usize,
}

impl TrainingRows<'_> {
    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.strengths.len()
    }

    /// Rejects arrays that are not of `n_rows` rows, and an order with numbers that are no row's. `order` has the rows in the
    /// order in which they are visited, and `mu_len` is the length of μ, the probabilities of classes, `[row][class]`. `offsets`
    /// are the scores of rows before corrections, `[row][class]`.
    pub(super) fn check(&self, n_rows: usize, order: &[u32], mu_len: usize) -> Result<(), Error> {
        let size = n_rows * self.classes;
        demand(self.classes > 0 && self.len() == n_rows, "each row must have a strength")?;
        demand(
            self.offsets.len() == size && mu_len == size,
            "offsets and mu must be rows × classes",
        )?;
        demand(order.iter().all(|&row| (row as usize) < n_rows), "the order must be of rows")
    }

    /// The number of classes whose corrections are stored. Two classes have opposite corrections: one is enough.
    pub(super) fn stored_classes(&self) -> usize {
        if self.classes == 2 { 1 } else { self.classes }
    }
}

/// Single precision, which is enough for texts, or double.
pub trait Number:
    Copy + Default + Into<f64> + AddAssign + Sub<Output = Self> + Mul<Output = Self>
{
    /// The number that is nearest to x.
    fn of(x: f64) -> Self;
}

impl Number for f32 {
    fn of(x: f64) -> Self {
        x as f32
    }
}

impl Number for f64 {
    fn of(x: f64) -> Self {
        x
    }
}

/// The corrections that visits of rows change. A row is given by its number and by its place in the block looked up last.
pub(super) trait Corrections {
    type Number: Number;

    /// How many rows are looked up at a time; here, all.
    fn rows_at_a_time(&self) -> usize {
        usize::MAX
    }

    /// Looks up the cells of the rows (their numbers) that are visited next, a block.
    #[inline(always)]
    fn look_up(&mut self, _rows: &[u32]) {}

    /// Adds the corrections of a row's cells, Σ x Δ, to `sums`, `[stored class]`.
    fn sum(&self, row: usize, place: usize, sums: &mut [Self::Number]);

    /// Returns Σ s² x² over a row's cells, for a stored class.
    fn variance(&self, row: usize, class: usize) -> f64;

    /// Adds x s² times `steps`, `[stored class]`, to the corrections of a row's cells.
    fn add(&mut self, row: usize, place: usize, steps: &[Self::Number]);
}

/// What the μ of one row depends on.
pub(super) struct Visit<'a, T> {
    /// C times the weight of the row.
    strength: f64,
    /// The row's scores before corrections, `[class]`.
    offsets: &'a [f64],
    /// The row's corrections, `[stored class]`.
    sums: &'a [T],
    /// A, how much the row corrects itself, `[stored class]`.
    self_effect: &'a [f64],
}

/// Solves the equation of a row.
pub(super) trait Solver<T> {
    /// Changes μ and returns C (μ before − μ after) for each stored class, or None if nothing changes. Adds the absolute
    /// changes of μ, summed over all classes, to `change`.
    fn solve(&mut self, visit: Visit<T>, mu: &mut [T], change: &mut f64) -> Option<&[T]>;
}

/// Visits rows in `order`, their numbers. Improves `mu`, the probabilities of classes, `[row][class]`, and the corrections of
/// cells, and returns the mean change of μ: its absolute changes, summed over classes, per row. `rows` has C times the weight of
/// each row (`strengths`) and the scores of rows before corrections (`offsets`, `[row][class]`); `solver` computes μ of one row.
///
/// `sums` and `self_effect` are buffers with one number per stored class, for the corrections of a row and for A, how much it
/// corrects itself; arrays of a constant length stay in registers.
#[inline(always)]
pub(super) fn pass<C: Corrections>(
    corrections: &mut C,
    mut solver: impl Solver<C::Number>,
    rows: &TrainingRows,
    order: &[u32],
    mu: &mut [C::Number],
    (mut sums, mut self_effect): (impl AsMut<[C::Number]>, impl AsMut<[f64]>),
) -> f64 {
    let n_classes = rows.classes;
    let mut change = 0.0; // of μ, in all rows
    let sums = sums.as_mut();
    let self_effect = self_effect.as_mut();
    for block in order.chunks(corrections.rows_at_a_time()) {
        corrections.look_up(block);
        for (place, &row) in block.iter().enumerate() {
            let row = row as usize;
            let strength = rows.strengths[row]; // C times the row's weight
            if strength <= 0.0 {
                continue;
            }
            sums.fill(C::Number::default());
            corrections.sum(row, place, sums);
            for (class, self_effect) in self_effect.iter_mut().enumerate() {
                // A row without cells has 0, whose logarithm is needed.
                *self_effect = strength * corrections.variance(row, class) + 1e-12;
            }
            let row_classes = row * n_classes..(row + 1) * n_classes; // in offsets and μ
            let visit =
                Visit { strength, offsets: &rows.offsets[row_classes.clone()], sums, self_effect };
            // C (μ before − μ after), [stored class]; None if nothing changes. `place` is that of the row in the block.
            if let Some(steps) = solver.solve(visit, &mut mu[row_classes], &mut change) {
                corrections.add(row, place, steps);
            }
        }
    }
    change / rows.len().max(1) as f64
}

/// Does what [`pass`] does with rows of two classes: visits them in `order`, their numbers, improves `mu`, the probabilities of
/// classes, `[row][class]`, and the corrections of cells, and returns the mean change of μ per row. `rows` has the strengths of
/// rows and their scores before corrections.
pub(super) fn pass_of_two<C: Corrections>(
    corrections: &mut C,
    rows: &TrainingRows,
    order: &[u32],
    mu: &mut [C::Number],
) -> f64 {
    pass(corrections, TwoClasses::default(), rows, order, mu, ([C::Number::default()], [0.0]))
}

/// Does what [`pass`] does with rows of any number of classes: visits them in `order`, their numbers, improves `mu`, the
/// probabilities of classes, `[row][class]`, and the corrections of cells, and returns the mean change of μ per row. `rows` has
/// the strengths of rows and their scores before corrections.
pub(super) fn pass_of_many<C: Corrections>(
    corrections: &mut C,
    rows: &TrainingRows,
    order: &[u32],
    mu: &mut [C::Number],
) -> f64 {
    let n_classes = rows.classes;
    // For a row's corrections and for how much it corrects itself, [class].
    let buffers = (vec![C::Number::default(); n_classes], vec![0.0; n_classes]);
    wide!(pass(corrections, ManyClasses::new(n_classes), rows, order, mu, buffers))
}

/// Solves rows with one of two classes.
#[derive(Default)]
struct TwoClasses<T> {
    /// C (μ before − μ after) of the first class.
    step: [T; 1],
}

impl<T: Number> Solver<T> for TwoClasses<T> {
    /// Changes `mu`, the probabilities of both classes in the row that is visited, and adds its absolute changes to `change`;
    /// returns the step of the first class, C (μ before − μ after). `visit` has the row's scores before corrections (`offsets`,
    /// `[class]`), the correction of the first class (`sums`), how much the row corrects itself (`self_effect`) and C times its
    /// weight (`strength`).
    #[inline(always)]
    fn solve(&mut self, visit: Visit<T>, mu: &mut [T], change: &mut f64) -> Option<&[T]> {
        let before: f64 = mu[0].into(); // μ of the first class
        let correction: f64 = visit.sums[0].into();
        // The corrections of the two classes are opposites, so the difference of scores has each twice.
        let self_effect = 2.0 * visit.self_effect[0]; // how much the row corrects itself
        // Between the scores of the first and the second class, with corrections.
        let difference = visit.offsets[0] - visit.offsets[1] + 2.0 * correction;
        let after =
            T::of(solve_two_classes(difference + self_effect * before, self_effect, before));
        *change += 2.0 * (after.into() - before).abs();
        self.step[0] = T::of(visit.strength) * (mu[0] - after);
        mu.copy_from_slice(&[after, T::of(1.0) - after]);
        Some(&self.step)
    }
}

/// Solves rows with one of many classes.
struct ManyClasses<T> {
    /// The equation of the row that is visited.
    equation: Equation,
    /// C (μ before − μ after) of each class.
    steps: Vec<T>,
}

impl<T: Number> ManyClasses<T> {
    /// Room for so many classes.
    fn new(classes: usize) -> Self {
        ManyClasses { equation: Equation::new(classes), steps: vec![T::default(); classes] }
    }
}

impl<T: Number> Solver<T> for ManyClasses<T> {
    /// Changes `mu`, the probabilities of classes in the row that is visited, `[class]`, and adds its absolute changes to
    /// `change`; returns the step of each class, C (μ before − μ after). `visit` has, by class, the row's scores before
    /// corrections (`offsets`), its corrections (`sums`), how much it corrects itself (`self_effect`), and C times its weight
    /// (`strength`).
    #[inline(always)]
    fn solve(&mut self, visit: Visit<T>, mu: &mut [T], change: &mut f64) -> Option<&[T]> {
        let equation = &mut self.equation;
        // The row's score before corrections and its corrections.
        for (class, (offset, &sum)) in visit.offsets.iter().zip(visit.sums).enumerate() {
            equation.z[class] = offset + sum.into();
            equation.before[class] = mu[class].into();
        }
        equation.self_effect.copy_from_slice(visit.self_effect);
        *change += equation.solve();
        for (class, mu) in mu.iter_mut().enumerate() {
            let after = T::of(equation.after[class]);
            self.steps[class] = T::of(visit.strength) * (*mu - after);
            *mu = after;
        }
        Some(&self.steps)
    }
}

/// The equation of one row with many classes, ln μ + A μ = z + A μ_before − ν; every array has one number per class.
struct Equation {
    /// The scores of the row with its corrections; while it is solved, z + A μ_before + ln A.
    z: Vec<f64>,
    /// A.
    self_effect: Vec<f64>,
    /// μ before the visit.
    before: Vec<f64>,
    /// μ after the visit.
    after: Vec<f64>,
    /// How fast μ falls as ν rises.
    slopes: Vec<f64>,
    /// ln(A μ).
    logs: Vec<f64>,
}

impl Equation {
    /// An equation of zeros for so many classes.
    fn new(classes: usize) -> Self {
        let zeros = || vec![0.0; classes];
        Equation {
            z: zeros(),
            self_effect: zeros(),
            before: zeros(),
            after: zeros(),
            slopes: zeros(),
            logs: zeros(),
        }
    }

    /// Solves ln μ + A μ = z + A μ_before − ν with Σ μ = 1 for μ, `after`, and ν. A, how much the row corrects itself, is
    /// `self_effect`, and μ_before `before`; z are the row's scores with corrections; all are `[class]`, as are `slopes`, how
    /// fast μ falls as ν rises, and `logs`, ln(A μ). Returns the absolute changes of μ, summed over the classes.
    #[inline(always)]
    fn solve(&mut self) -> f64 {
        let n_classes = self.z.len();
        let classes = self.z.iter_mut().zip(&self.self_effect).zip(&self.before);
        classes.for_each(|((z, self_effect), before)| *z += self_effect * before);
        // The highest z + A μ_before.
        let highest = self.z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.after.iter_mut().zip(&self.z).for_each(|(after, z)| *after = exp(z - highest));
        // Since μ ≤ 1, it is at least exp(z − ν − A) and at most exp(z − ν), which bounds ν.
        let largest_self_effect = self.self_effect.iter().copied().fold(0.0, f64::max);
        let mut high = highest + self.after.iter().sum::<f64>().ln();
        let mut low = high - largest_self_effect;
        let effect_and_before = self.self_effect.iter().zip(&self.before);
        // It begins where it is if μ stays as it was before.
        let mut nu =
            high - effect_and_before.map(|(self_effect, mu)| self_effect * mu * mu).sum::<f64>();
        // ω = A μ and its logarithm q solve ω + q = v, v = ln A + z − ν.
        for c in 0..n_classes {
            self.z[c] += self.self_effect[c].ln();
            let v = self.z[c] - nu;
            self.logs[c] = if v < 0.5 { v } else { v.ln() };
        }
        for _ in 0..60 {
            self.roots(nu); // computes `after` and its slopes
            let sum: f64 = self.after.iter().sum(); // of μ, which is to be 1
            let slope: f64 = self.slopes.iter().sum();
            if (sum - 1.0).abs() < 1e-8 {
                break;
            }
            if sum > 1.0 {
                low = nu
            } else {
                high = nu
            }
            // ν after a step of Newton's method.
            let next = nu + (sum - 1.0) / slope;
            nu = if next > low && next < high { next } else { (low + high) / 2.0 };
        }
        let sum: f64 = self.after.iter().sum(); // nearly 1
        self.after.iter_mut().for_each(|after| *after /= sum);
        self.after.iter().zip(&self.before).map(|(after, before)| (after - before).abs()).sum()
    }

    /// Solves ln(A μ) + A μ = ln A + z − ν for every class: finds ln(A μ), in `logs`, by Newton's method from the `logs` that are
    /// there; then computes μ, `after`, and how fast it falls as ν rises, `slopes`. `z` has ln A and A μ_before in it,
    /// `self_effect` is A, how much the row corrects itself; all are `[class]`. `nu` is ν, by which all classes' scores are
    /// lowered.
    #[inline(always)]
    fn roots(&mut self, nu: f64) {
        let n_classes = self.z.len();
        let (z, self_effect, logs) =
            (&self.z[..n_classes], &self.self_effect[..n_classes], &mut self.logs[..n_classes]);
        let (after, slopes) = (&mut self.after[..n_classes], &mut self.slopes[..n_classes]);
        for _ in 0..20 {
            let mut largest_step = 0.0_f64; // of Newton's method
            // Here the slopes are Newton's steps.
            for c in 0..n_classes {
                let omega = exp(logs[c]); // A μ
                slopes[c] = (logs[c] + omega - (z[c] - nu)) / (1.0 + omega);
                logs[c] -= slopes[c];
            }
            for step in &*slopes {
                largest_step = largest_step.max(step.abs());
            }
            // The error after a step is about its square.
            if largest_step < 1e-5 {
                break;
            }
        }
        for c in 0..n_classes {
            let omega = exp(logs[c]); // A μ
            after[c] = omega / self_effect[c];
            slopes[c] = after[c] / (1.0 + omega);
        }
    }
}

/// Solves ln μ/(1 − μ) + a μ = difference for the probability μ of the first of two classes, by Newton's method from μ = `near`
/// on. `difference` is that of the scores of both classes plus a μ_before, and a is how much the row corrects itself. Returns μ.
#[inline(always)]
fn solve_two_classes(difference: f64, a: f64, near: f64) -> f64 {
    let (mut low, mut high) = (difference - a, difference); // bounds of the log odds
    let mut log_odds = difference - a * near; // ln μ/(1 − μ)
    let mut mu = 0.0;
    for _ in 0..60 {
        mu = 1.0 / (1.0 + (-log_odds).exp());
        let error = log_odds + a * mu - difference; // of the equation
        let spread = mu * (1.0 - mu); // how fast μ rises with the log odds
        let step = error / (1.0 + a * spread);
        // The error after a step is below its square, so the last step needs no exponential.
        if step.abs() < 1e-5 {
            return mu - spread * step;
        }
        if error > 0.0 {
            high = log_odds
        } else {
            low = log_odds
        }
        let next = log_odds - step; // after a step of Newton's method
        log_odds = if next > low && next < high { next } else { (low + high) / 2.0 };
    }
    mu
}

/// Solves ln μ / (1 − μ) + A μ = goal for the probabilities μ of several labels of a row, by Newton's method; `self_effect` is A,
/// how much the row corrects itself, and `goal` the score with corrections plus A μ before; both are `[label]`. It solves for the
/// less probable of yes and no: there the function is convex, and the steps approach the solution from above. Returns μ,
/// `[label]`.
#[inline(always)]
fn solve_labels<const B: usize>(self_effect: &[f64; B], goal: &[f64; B]) -> [f64; B] {
    // Of the less probable answer to each label: its probability, the log odds, and its goal.
    let mut mu = [0.0; B];
    let mut logits = [0.0; B];
    let mut lesser_goal = [0.0; B];
    for c in 0..B {
        lesser_goal[c] = goal[c].min(self_effect[c] - goal[c]);
        logits[c] = lesser_goal[c].min(0.0);
    }
    for _ in 0..60 {
        let mut largest_error = 0.0_f64; // of the equations, relative to their goals
        for c in 0..B {
            let odds = exp(logits[c]); // of the answer: μ / (1 − μ)
            let share = odds / (1.0 + odds); // the probability
            let error = logits[c] + self_effect[c] * share - lesser_goal[c];
            logits[c] -= error / (1.0 + self_effect[c] * share / (1.0 + odds));
            mu[c] = share;
            largest_error = largest_error.max(error.abs() / (1.0 + lesser_goal[c].abs()));
        }
        if largest_error < 1e-7 {
            break;
        }
    }
    for c in 0..B {
        mu[c] = if goal[c] > self_effect[c] - goal[c] { 1.0 - mu[c] } else { mu[c] };
    }
    mu
}

/// Solves rows with any number of labels, B at a time. After the first pass most labels of a row are far from probable, and then
/// the row is only looked at.
pub(super) struct Labels<const B: usize> {
    /// C (μ before − μ after) of each label, 0 where μ has not moved.
    steps: [f32; B],
}

impl<const B: usize> Labels<B> {
    /// A solver whose steps are 0.
    pub(super) fn new() -> Self {
        Labels { steps: [0.0; B] }
    }
}

/// A change of μ that counts as none.
const NO_CHANGE: f32 = 1e-5;
/// Below the logarithm of [`NO_CHANGE`].
const LOG_NO_CHANGE: f64 = -11.6;

impl<const B: usize> Solver<f32> for Labels<B> {
    /// Changes `mu`, the probabilities of labels in the row that is visited, `[label]`, where it moves by more than
    /// [`NO_CHANGE`], and adds its absolute changes to `change`; returns the step of each label, C (μ before − μ after), None if
    /// no μ has moved. The `goal` of a label is its score with corrections plus A μ. `visit` has, by label, the row's scores
    /// before corrections (`offsets`), its corrections (`sums`) and A, how much it corrects itself (`self_effect`); and C times
    /// the row's weight (`strength`).
    #[inline(always)]
    fn solve(&mut self, visit: Visit<f32>, mu: &mut [f32], change: &mut f64) -> Option<&[f32]> {
        // A, how much the row corrects itself, and μ, `[label]`.
        let (Some(self_effect), Some(mu)) =
            (visit.self_effect.first_chunk::<B>(), mu.first_chunk_mut::<B>())
        else {
            return None;
        };
        let mut goal = [0.0; B];
        let mut all_improbable = true;
        for c in 0..B {
            let sum = f64::from(visit.sums[c]); // of corrections
            goal[c] = visit.offsets[c] + sum + self_effect[c] * f64::from(mu[c]);
            all_improbable &= goal[c] < LOG_NO_CHANGE && mu[c] < NO_CHANGE;
        }
        if all_improbable {
            return None; // μ is below e to the goal
        }
        let solution = solve_labels(self_effect, &goal); // μ of each label
        let mut has_moved = false;
        for c in 0..B {
            let after = solution[c] as f32;
            let before = mu[c];
            let moves = (before - after).abs() > NO_CHANGE;
            self.steps[c] = if moves { visit.strength as f32 * (before - after) } else { 0.0 };
            *change += if moves { f64::from((before - after).abs()) } else { 0.0 };
            mu[c] = if moves { after } else { before };
            has_moved |= moves;
        }
        has_moved.then_some(&self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables;
    use super::super::{Cells, Group, Terms};
    use super::*;

    /// Solves ln μ + a μ = z + a before − ν with Σ μ = 1 by bisection, and returns μ, `[class]`.
    fn slow(z: &[f64], a: f64, before: &[f64]) -> Vec<f64> {
        let goals: Vec<f64> = z.iter().zip(before).map(|(z, before)| z + a * before).collect();
        let mu_at = |nu: f64| -> Vec<f64> {
            let each = goals.iter().map(|z| {
                let (mut low, mut high) = (0.0_f64, 1e6_f64);
                for _ in 0..200 {
                    let middle = (low + high) / 2.0;
                    if middle.ln() + a * middle < z - nu { low = middle } else { high = middle }
                }
                low
            });
            each.collect()
        };
        let (mut low, mut high) = (-1e4, 1e4);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if mu_at(middle).iter().sum::<f64>() > 1.0 { low = middle } else { high = middle }
        }
        mu_at(low)
    }

    #[test]
    fn newton_and_bisection_agree() {
        // A, and the scores of classes.
        for a in [1e-6, 0.01, 1.0, 30.0, 1e4] {
            for z in [
                vec![-30.0, 25.0, 24.0, -800.0],
                vec![0.3, -0.4],
                vec![5.0, -20.0],
                vec![0.0, 1.0, -3.0],
                vec![40.0, 0.0, -2.0, 3.0],
            ] {
                let before: Vec<f64> =
                    (0..z.len()).map(|c| if c == 0 { 1.0 } else { 0.0 }).collect();
                let mut equation = Equation::new(z.len());
                equation.z.copy_from_slice(&z);
                equation.self_effect.fill(a);
                equation.before.copy_from_slice(&before);
                equation.solve();
                let slow = slow(&z, a, &before);
                for (after, slow) in equation.after.iter().zip(&slow) {
                    assert!((after - slow).abs() < 1e-7, "{a} {z:?} {after} {slow}");
                }
                if z.len() == 2 {
                    assert!(
                        (solve_two_classes(z[0] - z[1] + 2.0 * a, 2.0 * a, 0.5) - slow[0]).abs()
                            < 1e-7
                    );
                }
            }
        }
    }

    #[test]
    fn labels_are_solved_like_one_of_two_classes() {
        let goals = [-800.0, -30.0, -3.0, 0.0, 0.4, 5.0, 29.9, 31.0, 900.0, 9e3, 1.1e4];
        for a in [1e-12, 0.01, 1.0, 30.0, 1e4] {
            for (mu, &goal) in solve_labels(&[a; 11], &goals).iter().zip(&goals) {
                assert!(
                    (mu - solve_two_classes(goal, a, 0.5)).abs() < 1e-7,
                    "{a} {goal} {mu} {}",
                    solve_two_classes(goal, a, 0.5)
                );
            }
        }
    }

    #[test]
    fn passes_reach_the_least_loss() {
        let codes = [0, 1, 0, 1, 1, 0];
        // One column with codes 0 and 1, and one term of which these are the two cells.
        let group = Group { column: 0, levels: 1, first: vec![0, 1], other: None };
        let terms = Terms::new(vec![group], &[2]).unwrap();
        let lookups = terms.of(Cells::new(&codes, 1).unwrap()).unwrap();
        let labels = [0, 1, 1, 1, 0, 0];
        // Six rows of strength C = 0.7, without scores before the corrections: 6 × 2 zeros.
        let rows = TrainingRows { strengths: &[0.7; 6], offsets: &[0.0; 12], classes: 2 };
        let mut mu: Vec<f64> =
            labels.iter().flat_map(|&y| [f64::from(1 - y), f64::from(y)]).collect();
        // The corrections, 2 cells × 2 classes.
        let mut table = vec![0.0; 4];
        for _ in 0..200 {
            tables::ascend(&lookups, &rows, &[0, 1, 2, 3, 4, 5], &mut mu, &mut table).unwrap();
        }
        // Cell 0 has rows of classes 0, 1, 0: Δ = C Σ (y − μ), μ = softmax(Δ).
        let mu_of_first = 1.0 / (1.0 + (table[1] - table[0]).exp());
        assert!((table[0] - 0.7 * (2.0 - 3.0 * mu_of_first)).abs() < 1e-9);
    }
}
