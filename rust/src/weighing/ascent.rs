//! Corrections: logistic regression from an offset, by dual coordinate ascent.
//!
//! Δ of a cell is C s² Σ x (y − μ) over its rows, which have it with the value x: a row adds to its cells what it surprised by.
//! Each visit of a row solves for its own μ exactly: ln μ + A μ = z + A μ_old − ν, Σ μ = 1, where A = C Σ s² x² is what the row's
//! own surprise weighs in its score. Labels are each a yes or no of their own: ln μ / (1 − μ) + A μ = z + A μ_old.
//!
//! Tables, texts and rows that are compared with each other differ in what a cell is; all are visited here.

use crate::error::{Error, demand};
use crate::exponential::exp;
use crate::simd::wide;
use std::ops::{AddAssign, Mul, Sub};

/// The rows that are visited, and where their scores start.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// C times the weight of each row; 0 where a row is passed over.
    pub strengths: &'a [f64],
    /// `[row][class]`.
    pub offsets: &'a [f64],
    pub classes: usize,
}

impl Task<'_> {
    pub(super) fn rows(&self) -> usize {
        self.strengths.len()
    }

    /// Refuses rows that are not as many as these, and orders of others; μ has `numbers`.
    pub(super) fn check(&self, rows: usize, order: &[u32], numbers: usize) -> Result<(), Error> {
        let size = rows * self.classes;
        demand(self.classes > 0 && self.rows() == rows, "each row must have a strength")?;
        demand(
            self.offsets.len() == size && numbers == size,
            "offsets and mu must be rows × classes",
        )?;
        demand(order.iter().all(|&row| (row as usize) < rows), "the order must be of rows")
    }

    /// The classes that are followed. Of two classes, whose corrections are opposites, the first alone is.
    pub(super) fn followed(&self) -> usize {
        if self.classes == 2 { 1 } else { self.classes }
    }
}

/// Single precision, which is enough for texts, or double.
pub trait Number:
    Copy + Default + Into<f64> + AddAssign + Sub<Output = Self> + Mul<Output = Self>
{
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

/// What the cells of rows are corrected by so far.
pub(super) trait Corrected {
    type Number: Number;

    /// A row that is visited next: its cells are looked up while the one before is solved for.
    #[inline(always)]
    fn look_up(&mut self, _row: usize) {}

    /// Adds Σ x Δ over the row's cells, for each class that is followed.
    fn sum(&mut self, row: usize, sums: &mut [Self::Number]);

    /// Σ s² x² over the row's cells.
    fn own(&self, row: usize, class: usize) -> f64;

    /// Adds x s² times the step of each class to the row's cells.
    fn add(&mut self, row: usize, steps: &[Self::Number]);
}

/// A row as it is solved for: C times its weight, the score it starts from, what is added to it, and what its own surprise weighs.
pub(super) struct Visit<'a, T> {
    strength: f64,
    offsets: &'a [f64],
    sums: &'a [T],
    own: &'a [f64],
}

/// Solves for a row's μ.
pub(super) trait Solver<T> {
    /// Changes μ, and gives C (μ before − μ after) of the classes followed; nothing where nothing changes. How far μ moved, over
    /// all classes, is added to `change`.
    fn solve(&mut self, visit: Visit<T>, mu: &mut [T], change: &mut f64) -> Option<&[T]>;
}

/// Visits rows in this order and improves μ, `[row][class]`, and what corrects them; answers the mean change of μ.
///
/// `sums` and `own` are room for a number of each class that is followed: where their length is known they stay in registers.
#[inline(always)]
pub(super) fn pass<C: Corrected>(
    corrected: &mut C,
    mut solver: impl Solver<C::Number>,
    task: &Task,
    order: &[u32],
    mu: &mut [C::Number],
    (mut sums, mut own): (impl AsMut<[C::Number]>, impl AsMut<[f64]>),
) -> f64 {
    let (k, mut change) = (task.classes, 0.0);
    let (sums, own) = (sums.as_mut(), own.as_mut());
    let rows = order.iter().map(|&row| row as usize);
    let mut rows = rows.filter(|&row| task.strengths[row] > 0.0).peekable();
    if let Some(&first) = rows.peek() {
        corrected.look_up(first);
    }
    while let Some(row) = rows.next() {
        sums.fill(C::Number::default());
        corrected.sum(row, sums);
        if let Some(&next) = rows.peek() {
            corrected.look_up(next);
        }
        let strength = task.strengths[row];
        for (class, own) in own.iter_mut().enumerate() {
            // A row without cells still needs a logarithm of it.
            *own = strength * corrected.own(row, class) + 1e-12;
        }
        let classes = row * k..(row + 1) * k;
        let visit = Visit { strength, offsets: &task.offsets[classes.clone()], sums, own };
        if let Some(steps) = solver.solve(visit, &mut mu[classes], &mut change) {
            corrected.add(row, steps);
        }
    }
    change / task.rows().max(1) as f64
}

/// The pass for rows of one of two classes.
pub(super) fn pass_of_two<C: Corrected>(
    corrected: &mut C,
    task: &Task,
    order: &[u32],
    mu: &mut [C::Number],
) -> f64 {
    pass(corrected, Two::default(), task, order, mu, ([C::Number::default()], [0.0]))
}

/// The same of one of many.
pub(super) fn pass_of_many<C: Corrected>(
    corrected: &mut C,
    task: &Task,
    order: &[u32],
    mu: &mut [C::Number],
) -> f64 {
    let k = task.classes;
    let room = (vec![C::Number::default(); k], vec![0.0; k]);
    wide!(pass(corrected, Classes::new(k), task, order, mu, room))
}

/// The pass for rows of one class each.
pub(super) fn pass_of_classes<C: Corrected>(
    corrected: &mut C,
    task: &Task,
    order: &[u32],
    mu: &mut [C::Number],
) -> f64 {
    match task.classes {
        2 => pass_of_two(corrected, task, order, mu),
        _ => pass_of_many(corrected, task, order, mu),
    }
}

/// One class of two.
#[derive(Default)]
struct Two<T> {
    step: [T; 1],
}

impl<T: Number> Solver<T> for Two<T> {
    #[inline(always)]
    fn solve(&mut self, visit: Visit<T>, mu: &mut [T], change: &mut f64) -> Option<&[T]> {
        let (own, old, margin): (f64, f64, f64) =
            (visit.own[0], mu[0].into(), visit.sums[0].into());
        let offset = visit.offsets[0] - visit.offsets[1];
        let new = T::of(two(offset + 2.0 * margin + 2.0 * own * old, 2.0 * own, old));
        *change += 2.0 * (new.into() - old).abs();
        self.step[0] = T::of(visit.strength) * (mu[0] - new);
        mu.copy_from_slice(&[new, T::of(1.0) - new]);
        Some(&self.step)
    }
}

/// One class of many.
struct Classes<T> {
    room: Room,
    steps: Vec<T>,
}

impl<T: Number> Classes<T> {
    fn new(classes: usize) -> Self {
        Classes { room: Room::new(classes), steps: vec![T::default(); classes] }
    }
}

impl<T: Number> Solver<T> for Classes<T> {
    #[inline(always)]
    fn solve(&mut self, visit: Visit<T>, mu: &mut [T], change: &mut f64) -> Option<&[T]> {
        let room = &mut self.room;
        for (c, (offset, &sum)) in visit.offsets.iter().zip(visit.sums).enumerate() {
            room.z[c] = offset + sum.into();
            room.old[c] = mu[c].into();
        }
        room.own.copy_from_slice(visit.own);
        *change += room.solve();
        for (c, mu) in mu.iter_mut().enumerate() {
            let new = T::of(room.new[c]);
            self.steps[c] = T::of(visit.strength) * (*mu - new);
            *mu = new;
        }
        Some(&self.steps)
    }
}

/// Room for one row: its scores, what its own surprise weighs in each, μ before and after, and what it adds to its cells.
struct Room {
    z: Vec<f64>,
    own: Vec<f64>,
    old: Vec<f64>,
    new: Vec<f64>,
    steps: Vec<f64>,
    logs: Vec<f64>,
}

impl Room {
    fn new(classes: usize) -> Self {
        let some = || vec![0.0; classes];
        Room { z: some(), own: some(), old: some(), new: some(), steps: some(), logs: some() }
    }

    /// The row's μ that solves its equation, into `new`; by how much it moved, over all classes.
    #[inline(always)]
    fn solve(&mut self) -> f64 {
        let k = self.z.len();
        let each = self.z.iter_mut().zip(&self.own).zip(&self.old);
        each.for_each(|((z, own), old)| *z += own * old);
        let highest = self.z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.new.iter_mut().zip(&self.z).for_each(|(new, z)| *new = exp(z - highest));
        // With μ ≤ 1 each class has at least exp(z − ν − a), and at most exp(z − ν): ν lies between these.
        let most = self.own.iter().copied().fold(0.0, f64::max);
        let mut high = highest + self.new.iter().sum::<f64>().ln();
        let mut low = high - most;
        let mut nu =
            high - self.own.iter().zip(&self.old).map(|(a, old)| a * old * old).sum::<f64>();
        // ω = a μ and its logarithm q solve ω + q = v, v = ln a + z − ν.
        for c in 0..k {
            self.z[c] += self.own[c].ln();
            let v = self.z[c] - nu;
            self.logs[c] = if v < 0.5 { v } else { v.ln() };
        }
        for _ in 0..60 {
            self.roots(nu);
            let (sum, fall) = (self.new.iter().sum::<f64>(), self.steps.iter().sum::<f64>());
            if (sum - 1.0).abs() < 1e-8 {
                break;
            }
            if sum > 1.0 {
                low = nu
            } else {
                high = nu
            }
            let next = nu + (sum - 1.0) / fall;
            nu = if next > low && next < high { next } else { (low + high) / 2.0 };
        }
        let sum: f64 = self.new.iter().sum();
        self.new.iter_mut().for_each(|new| *new /= sum);
        self.new.iter().zip(&self.old).map(|(new, old)| (new - old).abs()).sum()
    }

    /// Newton's steps in every q, from where it is; then μ into `new`, and how fast it falls with ν into `steps`.
    #[inline(always)]
    fn roots(&mut self, nu: f64) {
        let k = self.z.len();
        let (z, own, logs) = (&self.z[..k], &self.own[..k], &mut self.logs[..k]);
        let (new, falls) = (&mut self.new[..k], &mut self.steps[..k]);
        for _ in 0..20 {
            for c in 0..k {
                let omega = exp(logs[c]);
                let off = (logs[c] + omega - (z[c] - nu)) / (1.0 + omega);
                logs[c] -= off;
                falls[c] = off.abs();
            }
            // What is off after a step is about its square.
            if falls.iter().copied().fold(0.0, f64::max) < 1e-5 {
                break;
            }
        }
        for c in 0..k {
            let omega = exp(logs[c]);
            new[c] = omega / own[c];
            falls[c] = new[c] / (1.0 + omega);
        }
    }
}

/// μ of the first of two classes: ln μ/(1 − μ) + a μ = difference. It is looked for from `near` on.
#[inline(always)]
fn two(difference: f64, a: f64, near: f64) -> f64 {
    let (mut low, mut high) = (difference - a, difference);
    let mut t = difference - a * near;
    for _ in 0..60 {
        let mu = 1.0 / (1.0 + (-t).exp());
        let off = t + a * mu - difference;
        if off.abs() < 1e-10 * (1.0 + difference.abs()) {
            return mu;
        }
        if off > 0.0 {
            high = t
        } else {
            low = t
        }
        let next = t - off / (1.0 + a * mu * (1.0 - mu));
        t = if next > low && next < high { next } else { (low + high) / 2.0 };
    }
    1.0 / (1.0 + (-t).exp())
}

/// μ of labels, each a yes or no of its own: ln μ / (1 − μ) + A μ = goal. Of yes and no that which is less probable is solved
/// for: there the function is convex, and Newton's steps come from above.
#[inline(always)]
fn yes_no<const B: usize>(own: &[f64; B], goal: &[f64; B]) -> [f64; B] {
    let (mut mu, mut logits, mut least) = ([0.0; B], [0.0; B], [0.0; B]);
    for c in 0..B {
        least[c] = goal[c].min(own[c] - goal[c]);
        logits[c] = least[c].min(0.0);
    }
    for _ in 0..60 {
        let mut worst = 0.0_f64;
        for c in 0..B {
            let odds = exp(logits[c]);
            let share = odds / (1.0 + odds);
            let off = logits[c] + own[c] * share - least[c];
            logits[c] -= off / (1.0 + own[c] * share / (1.0 + odds));
            mu[c] = share;
            worst = worst.max(off.abs() / (1.0 + least[c].abs()));
        }
        if worst < 1e-7 {
            break;
        }
    }
    for c in 0..B {
        mu[c] = if goal[c] > own[c] - goal[c] { 1.0 - mu[c] } else { mu[c] };
    }
    mu
}

/// Any of so many labels. Most say no from the first pass on, and cost no more than looking.
pub(super) struct Labels<const B: usize> {
    steps: [f32; B],
}

impl<const B: usize> Labels<B> {
    pub(super) fn new() -> Self {
        Labels { steps: [0.0; B] }
    }
}

/// A change of μ that is none, and its logarithm.
const STILL: (f32, f64) = (1e-5, -11.6);

impl<const B: usize> Solver<f32> for Labels<B> {
    #[inline(always)]
    fn solve(&mut self, visit: Visit<f32>, mu: &mut [f32], change: &mut f64) -> Option<&[f32]> {
        let (Some(own), Some(mu)) = (visit.own.first_chunk::<B>(), mu.first_chunk_mut::<B>())
        else {
            return None;
        };
        let (mut goal, mut quiet) = ([0.0; B], true);
        for c in 0..B {
            let sum = f64::from(visit.sums[c]);
            goal[c] = visit.offsets[c] + sum + own[c] * f64::from(mu[c]);
            quiet &= goal[c] < STILL.1 && mu[c] < STILL.0;
        }
        if quiet {
            return None; // μ is below e to the goal
        }
        let (new, mut moved) = (yes_no(own, &goal), false);
        for c in 0..B {
            let (new, old) = (new[c] as f32, mu[c]);
            let moves = (old - new).abs() > STILL.0;
            self.steps[c] = if moves { visit.strength as f32 * (old - new) } else { 0.0 };
            *change += if moves { f64::from((old - new).abs()) } else { 0.0 };
            mu[c] = if moves { new } else { old };
            moved |= moves;
        }
        moved.then_some(&self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables;
    use super::super::{Cells, Group, Terms};
    use super::*;

    fn slow(z: &[f64], a: f64, old: &[f64]) -> Vec<f64> {
        let target: Vec<f64> = z.iter().zip(old).map(|(z, old)| z + a * old).collect();
        let of = |nu: f64| -> Vec<f64> {
            let each = target.iter().map(|z| {
                let (mut low, mut high) = (0.0_f64, 1e6_f64);
                for _ in 0..200 {
                    let mid = (low + high) / 2.0;
                    if mid.ln() + a * mid < z - nu { low = mid } else { high = mid }
                }
                low
            });
            each.collect()
        };
        let (mut low, mut high) = (-1e4, 1e4);
        for _ in 0..200 {
            let mid = (low + high) / 2.0;
            if of(mid).iter().sum::<f64>() > 1.0 { low = mid } else { high = mid }
        }
        of(low)
    }

    #[test]
    fn a_row_is_solved_as_bisection_solves_it() {
        for a in [1e-6, 0.01, 1.0, 30.0, 1e4] {
            for z in [
                vec![-30.0, 25.0, 24.0, -800.0],
                vec![0.3, -0.4],
                vec![5.0, -20.0],
                vec![0.0, 1.0, -3.0],
                vec![40.0, 0.0, -2.0, 3.0],
            ] {
                let old: Vec<f64> = (0..z.len()).map(|c| if c == 0 { 1.0 } else { 0.0 }).collect();
                let mut room = Room::new(z.len());
                room.z.copy_from_slice(&z);
                room.own.fill(a);
                room.old.copy_from_slice(&old);
                room.solve();
                let slow = slow(&z, a, &old);
                for (new, slow) in room.new.iter().zip(&slow) {
                    assert!((new - slow).abs() < 1e-7, "{a} {z:?} {new} {slow}");
                }
                if z.len() == 2 {
                    assert!((two(z[0] - z[1] + 2.0 * a, 2.0 * a, 0.5) - slow[0]).abs() < 1e-7);
                }
            }
        }
    }

    #[test]
    fn labels_are_solved_as_one_by_one() {
        let goals = [-800.0, -30.0, -3.0, 0.0, 0.4, 5.0, 29.9, 31.0, 900.0, 9e3, 1.1e4];
        for a in [1e-12, 0.01, 1.0, 30.0, 1e4] {
            for (mu, &goal) in yes_no(&[a; 11], &goals).iter().zip(&goals) {
                assert!(
                    (mu - two(goal, a, 0.5)).abs() < 1e-7,
                    "{a} {goal} {mu} {}",
                    two(goal, a, 0.5)
                );
            }
        }
    }

    #[test]
    fn passes_come_to_rest_where_the_loss_is_least() {
        let codes = [0, 1, 0, 1, 1, 0];
        let group = Group { column: 0, levels: 1, first: vec![0, 1], other: None };
        let terms = Terms::new(vec![group], &[2]).unwrap();
        let lookups = terms.of(Cells::new(&codes, 1).unwrap()).unwrap();
        let labels = [0, 1, 1, 1, 0, 0];
        let task = Task { strengths: &[0.7; 6], offsets: &[0.0; 12], classes: 2 };
        let mut mu: Vec<f64> =
            labels.iter().flat_map(|&y| [f64::from(1 - y), f64::from(y)]).collect();
        let mut table = vec![0.0; 4];
        for _ in 0..200 {
            tables::ascend(&lookups, &task, &[0, 1, 2, 3, 4, 5], &mut mu, &mut table).unwrap();
        }
        // Cell 0 has rows of classes 0, 1, 0: Δ = C Σ (y − μ), μ = softmax(Δ).
        let p = 1.0 / (1.0 + (table[1] - table[0]).exp());
        assert!((table[0] - 0.7 * (2.0 - 3.0 * p)).abs() < 1e-9);
    }
}
