//! Corrections: logistic regression from an offset, by dual coordinate ascent.
//!
//! Δ of a cell is C s² Σ (y − μ) over its rows, so a row adds to its cells what it surprised by. Each visit of a row solves for
//! its own μ exactly: ln μ + A μ = z + A μ_old − ν, Σ μ = 1, where A is what the row's own surprise weighs in its score.

use super::{Lookups, check_labels};
use crate::error::{Error, demand};
use crate::exponential::exp;
use crate::simd::wide;

/// What is corrected: rows with their classes, and the scores they start from.
#[derive(Clone, Copy, Debug)]
pub struct RowCorrections<'a> {
    pub labels: &'a [i32],
    /// C times the weight of each row; 0 where a row is passed over.
    pub strengths: &'a [f64],
    /// `[row][class]`.
    pub offsets: &'a [f64],
    pub classes: usize,
}

impl RowCorrections<'_> {
    /// Whether rows, and `mu`, `[row][class]`, are as many as labels.
    pub(super) fn check(&self, order: &[u32], mu: &[f64]) -> Result<(), Error> {
        let (n, k) = (self.labels.len(), self.classes);
        demand(k > 0 && self.strengths.len() == n, "each row must have a strength")?;
        demand(
            self.offsets.len() == n * k && mu.len() == n * k,
            "offsets and mu must be rows × classes",
        )?;
        demand(order.iter().all(|&row| (row as usize) < n), "the order must be of rows")?;
        check_labels(self.labels, k)
    }

    /// The rows of an order that are not passed over.
    pub(super) fn visited<'a>(&'a self, order: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
        order.iter().map(|&row| row as usize).filter(|&row| self.strengths[row] > 0.0)
    }
}

/// Visits rows in this order and improves `mu`, `[row][class]`, and `table`, Δ as `[cell][class]`; answers the mean change of μ.
pub fn ascend(
    lookups: &Lookups,
    task: &RowCorrections,
    order: &[u32],
    mu: &mut [f64],
    table: &mut [f64],
) -> Result<f64, Error> {
    task.check(order, mu)?;
    demand(task.labels.len() == lookups.rows(), "each row must have a label")?;
    demand(table.len() == lookups.terms.size() * task.classes, "the table must have all cells")?;
    let (visits, k) = (Visits::new(task, mu), task.classes);
    if k != 2 {
        return Ok(wide!(pass(lookups, visits, order, table, k)));
    }
    let (pairs, _) = table.as_chunks_mut::<2>();
    let mut deltas: Vec<f64> = pairs.iter().map(|pair| pair[0]).collect();
    let change = pass(lookups, visits, order, &mut deltas, 1);
    pairs.iter_mut().zip(deltas).for_each(|(pair, delta)| *pair = [delta, -delta]);
    Ok(change)
}

/// A pass over rows, and the mean change; `deltas` has Δ of so many classes of each cell.
#[inline(always)]
fn pass(
    lookups: &Lookups,
    mut visits: Visits,
    order: &[u32],
    deltas: &mut [f64],
    classes: usize,
) -> f64 {
    let (mut cells, mut next) = (vec![0; lookups.terms.len()], vec![0; lookups.terms.len()]);
    let variances = lookups.terms.variances();
    // A row has one cell of each term, so that what its cells may vary is the same for all rows.
    let (mut sums, variance) = (vec![0.0; classes], variances.iter().sum::<f64>());
    let mut rows = visits.task.visited(order).peekable();
    if let Some(&first) = rows.peek() {
        lookups.find(first, &mut cells);
    }
    while let Some(row) = rows.next() {
        visits.begin(row, &mut sums);
        for &cell in &cells {
            let deltas = &deltas[cell as usize * classes..(cell as usize + 1) * classes];
            sums.iter_mut().zip(deltas).for_each(|(sum, delta)| *sum += delta);
        }
        // Cells are found ahead, while the sum is waited for.
        if let Some(&after) = rows.peek() {
            lookups.find(after, &mut next);
        }
        let steps = visits.solve(row, &sums, variance);
        for (&cell, &variance) in cells.iter().zip(&variances) {
            let deltas = &mut deltas[cell as usize * classes..(cell as usize + 1) * classes];
            deltas.iter_mut().zip(steps).for_each(|(delta, step)| *delta += variance * step);
        }
        std::mem::swap(&mut cells, &mut next);
    }
    visits.mean_change()
}

/// Rows that are visited, and μ as it is improved. Of two classes, whose corrections are opposites, the first alone is followed.
pub(super) struct Visits<'a> {
    task: &'a RowCorrections<'a>,
    mu: &'a mut [f64],
    room: Room,
    change: f64,
}

impl<'a> Visits<'a> {
    pub(super) fn new(task: &'a RowCorrections, mu: &'a mut [f64]) -> Self {
        Visits { task, mu, room: Room::new(task.classes), change: 0.0 }
    }

    /// How far μ moved, over all classes, on average.
    pub(super) fn mean_change(&self) -> f64 {
        self.change / (self.task.labels.len().max(1) as f64)
    }

    /// C (y − μ) of a row in a class.
    pub(super) fn surprise(&self, row: usize, class: usize) -> f64 {
        let truth = f64::from(u8::from(self.task.labels[row] as usize == class));
        self.task.strengths[row] * (truth - self.mu[row * self.task.classes + class])
    }

    /// What the row's corrections are to be added to.
    #[inline(always)]
    pub(super) fn begin(&self, row: usize, sums: &mut [f64]) {
        match sums {
            [margin] => *margin = 0.0,
            _ => sums.copy_from_slice(&self.task.offsets[row * sums.len()..(row + 1) * sums.len()]),
        }
    }

    /// Solves for the row's μ, of which its own surprise weighs so much; answers C (μ before − μ after) of the classes followed.
    #[inline(always)]
    pub(super) fn solve(&mut self, row: usize, sums: &[f64], variance: f64) -> &[f64] {
        let (k, strength, room) = (self.task.classes, self.task.strengths[row], &mut self.room);
        let (own, mine) = (strength * variance, &mut self.mu[row * k..(row + 1) * k]);
        if let [margin] = sums {
            let offset = self.task.offsets[2 * row] - self.task.offsets[2 * row + 1];
            let up = two(offset + 2.0 * margin + 2.0 * own * mine[0], 2.0 * own);
            self.change += 2.0 * (up - mine[0]).abs();
            room.steps[0] = strength * (mine[0] - up);
            mine.copy_from_slice(&[up, 1.0 - up]);
            return &room.steps[..1];
        }
        room.z.copy_from_slice(sums);
        room.own.fill(own);
        room.old.copy_from_slice(mine);
        self.change += room.solve();
        mine.copy_from_slice(&room.new);
        for c in 0..k {
            room.steps[c] = strength * (room.old[c] - room.new[c]);
        }
        &room.steps
    }
}

/// Room for one row: its scores, what its own surprise weighs in each, μ before and after, and what it adds to its cells.
pub(super) struct Room {
    pub(super) z: Vec<f64>,
    pub(super) own: Vec<f64>,
    pub(super) old: Vec<f64>,
    pub(super) new: Vec<f64>,
    pub(super) steps: Vec<f64>,
    logs: Vec<f64>,
}

impl Room {
    pub(super) fn new(classes: usize) -> Self {
        let some = || vec![0.0; classes];
        Room { z: some(), own: some(), old: some(), new: some(), steps: some(), logs: some() }
    }

    /// The row's μ that solves its equation, into `new`; by how much it moved, over all classes.
    #[inline(always)]
    pub(super) fn solve(&mut self) -> f64 {
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

/// μ of the first of two classes: ln μ/(1 − μ) + a μ = difference.
#[inline(always)]
pub(super) fn two(difference: f64, a: f64) -> f64 {
    let (mut low, mut high) = (difference - a, difference);
    let mut t = (difference - a / 2.0) / (1.0 + a / 4.0);
    t = t.clamp(low, high);
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

/// Labels that are solved for together.
pub(super) type Lane<const B: usize> = [f64; B];

/// μ of labels, each a yes or no of its own: ln μ / (1 − μ) + A μ = goal. Of yes and no that which is less probable is solved
/// for: there the function is convex, and Newton's steps come from above.
#[inline(always)]
pub(super) fn yes_no<const B: usize>(own: &Lane<B>, goal: &Lane<B>) -> Lane<B> {
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

#[cfg(test)]
mod tests {
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
                    assert!((two(z[0] - z[1] + 2.0 * a, 2.0 * a) - slow[0]).abs() < 1e-7);
                }
            }
        }
    }

    #[test]
    fn labels_are_solved_as_one_by_one() {
        let goals = [-800.0, -30.0, -3.0, 0.0, 0.4, 5.0, 29.9, 31.0, 900.0, 9e3, 1.1e4];
        for a in [1e-12, 0.01, 1.0, 30.0, 1e4] {
            for (mu, &goal) in yes_no(&[a; 11], &goals).iter().zip(&goals) {
                assert!((mu - two(goal, a)).abs() < 1e-7, "{a} {goal} {mu} {}", two(goal, a));
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
        let task = RowCorrections {
            labels: &labels,
            strengths: &[0.7; 6],
            offsets: &[0.0; 12],
            classes: 2,
        };
        let mut mu: Vec<f64> =
            labels.iter().flat_map(|&y| [f64::from(1 - y), f64::from(y)]).collect();
        let mut table = vec![0.0; 4];
        for _ in 0..200 {
            ascend(&lookups, &task, &[0, 1, 2, 3, 4, 5], &mut mu, &mut table).unwrap();
        }
        // Cell 0 has rows of classes 0, 1, 0: Δ = C Σ (y − μ), μ = softmax(Δ).
        let p = 1.0 / (1.0 + (table[1] - table[0]).exp());
        assert!((table[0] - 0.7 * (2.0 - 3.0 * p)).abs() < 1e-9);
    }
}
