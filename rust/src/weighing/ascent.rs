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
pub struct Task<'a> {
    pub labels: &'a [i32],
    /// C times the weight of each row; 0 where a row is passed over.
    pub strengths: &'a [f64],
    /// `[row][class]`.
    pub offsets: &'a [f64],
    pub classes: usize,
}

impl Task<'_> {
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
}

/// Visits rows in this order and improves `mu`, `[row][class]`, and `table`, Δ as `[cell][class]`; answers the mean change of μ.
/// `variances` has how much a cell of each term may vary, s².
pub fn ascend(
    lookups: &Lookups,
    variances: &[f64],
    task: &Task,
    order: &[u32],
    mu: &mut [f64],
    table: &mut [f64],
) -> Result<f64, Error> {
    let n = lookups.rows();
    task.check(order, mu)?;
    demand(task.labels.len() == n, "each row must have a label")?;
    demand(variances.len() == lookups.terms(), "each term must have a variance")?;
    demand(table.len() == lookups.size() * task.classes, "the table must have all cells")?;
    Ok(if task.classes == 2 {
        pass_of_two(lookups, variances, task, order, mu, table)
    } else {
        wide!(pass(lookups, variances, task, order, mu, table))
    } / (n.max(1) as f64))
}

#[inline(always)]
fn pass(
    lookups: &Lookups,
    variances: &[f64],
    task: &Task,
    order: &[u32],
    mu: &mut [f64],
    table: &mut [f64],
) -> f64 {
    let k = task.classes;
    let mut room = Room::new(k);
    let mut cells = vec![0; lookups.terms()];
    // A row has one cell of each term, so that what its cells may vary is the same for all rows.
    let (mut change, variance) = (0.0, variances.iter().sum::<f64>());
    for &row in order {
        let row = row as usize;
        let strength = task.strengths[row];
        if strength <= 0.0 {
            continue;
        }
        lookups.find(row, &mut cells);
        room.z.copy_from_slice(&task.offsets[row * k..(row + 1) * k]);
        for &cell in &cells {
            let deltas = &table[cell as usize * k..(cell as usize + 1) * k];
            room.z.iter_mut().zip(deltas).for_each(|(z, delta)| *z += delta);
        }
        let mine = &mut mu[row * k..(row + 1) * k];
        room.own.fill(strength * variance);
        room.old.copy_from_slice(mine);
        change += room.solve();
        mine.copy_from_slice(&room.new);
        for c in 0..k {
            room.steps[c] = strength * (room.old[c] - room.new[c]);
        }
        for (&cell, &variance) in cells.iter().zip(variances) {
            let deltas = &mut table[cell as usize * k..(cell as usize + 1) * k];
            let each = deltas.iter_mut().zip(&room.steps);
            each.for_each(|(delta, step)| *delta += variance * step);
        }
    }
    change
}

/// The same of two classes, whose corrections are opposites: one of them is looked up, and the other follows at the end.
fn pass_of_two(
    lookups: &Lookups,
    variances: &[f64],
    task: &Task,
    order: &[u32],
    mu: &mut [f64],
    table: &mut [f64],
) -> f64 {
    let (mut cells, mut next) = (vec![0; lookups.terms()], vec![0; lookups.terms()]);
    let (mut change, variance) = (0.0, variances.iter().sum::<f64>());
    let mut deltas: Vec<f64> = table.as_chunks::<2>().0.iter().map(|pair| pair[0]).collect();
    let rows = order.iter().map(|&row| row as usize);
    let mut rows = rows.filter(|&row| task.strengths[row] > 0.0).peekable();
    if let Some(&first) = rows.peek() {
        lookups.find(first, &mut cells);
    }
    while let Some(row) = rows.next() {
        let (mut margin, strength) = (0.0, task.strengths[row]);
        for &cell in &cells {
            margin += deltas[cell as usize];
        }
        // Cells are found ahead, while the sum is waited for.
        if let Some(&after) = rows.peek() {
            lookups.find(after, &mut next);
        }
        let (a, old) = (strength * variance, mu[2 * row]);
        let offset = task.offsets[2 * row] - task.offsets[2 * row + 1];
        let up = two(offset + 2.0 * margin + 2.0 * a * old, 2.0 * a);
        change += 2.0 * (up - old).abs();
        mu[2 * row] = up;
        mu[2 * row + 1] = 1.0 - up;
        let step = strength * (old - up);
        for (&cell, &variance) in cells.iter().zip(variances) {
            deltas[cell as usize] += variance * step;
        }
        std::mem::swap(&mut cells, &mut next);
    }
    for (pair, delta) in table.as_chunks_mut::<2>().0.iter_mut().zip(deltas) {
        *pair = [delta, -delta];
    }
    change
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
        match (&self.z[..], &self.own[..], &self.old[..]) {
            (&[z0, z1], &[a0, a1], &[old0, old1]) => {
                let up = two(z0 - z1 + a0 * old0 - a1 * old1 + a1, a0 + a1);
                self.new[0] = up;
                self.new[1] = 1.0 - up;
            }
            _ => self.solve_many(),
        }
        self.new.iter().zip(&self.old).map(|(new, old)| (new - old).abs()).sum()
    }

    #[inline(always)]
    fn solve_many(&mut self) {
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
    use super::super::{Cells, Group};
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
                for (new, slow) in room.new.iter().zip(slow(&z, a, &old)) {
                    assert!((new - slow).abs() < 1e-7, "{a} {z:?} {new} {slow}");
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
        let map = [0, 1];
        let lookups = Lookups::new(
            Cells::new(&codes, 1).unwrap(),
            vec![Group { column: 0, levels: 1, first: &map, other: None }],
            &[2],
        )
        .unwrap();
        let labels = [0, 1, 1, 1, 0, 0];
        let task = Task { labels: &labels, strengths: &[0.7; 6], offsets: &[0.0; 12], classes: 2 };
        let mut mu: Vec<f64> =
            labels.iter().flat_map(|&y| [f64::from(1 - y), f64::from(y)]).collect();
        let mut table = vec![0.0; 4];
        for _ in 0..200 {
            ascend(&lookups, &[1.0], &task, &[0, 1, 2, 3, 4, 5], &mut mu, &mut table).unwrap();
        }
        // Cell 0 has rows of classes 0, 1, 0: Δ = C Σ (y − μ), μ = softmax(Δ).
        let p = 1.0 / (1.0 + (table[1] - table[0]).exp());
        assert!((table[0] - 0.7 * (2.0 - 3.0 * p)).abs() < 1e-9);
    }
}
