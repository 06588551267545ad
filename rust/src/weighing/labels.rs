//! What words say of many labels: by the pairs of a word and a label that occur, and corrected, some labels at a time.

use std::sync::Mutex;

use super::ascent::{Lane, yes_no};
use super::texts::{Task, Texts};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::threads;

/// Texts of a piece.
const PIECE: usize = 1 << 8;
/// A change of μ that is none, and its logarithm.
const STILL: (f32, f64) = (1e-5, -11.6);

/// Word w says `says[i]` of label `labels[i]`, i from `starts[w]` on, beyond what it says of all labels, `base[w]`.
#[derive(Clone, Copy, Debug)]
pub struct Index<'a> {
    starts: &'a [i64],
    labels: &'a [u32],
    says: &'a [f64],
    base: &'a [f64],
    n_labels: usize,
}

impl<'a> Index<'a> {
    pub fn new(
        starts: &'a [i64],
        labels: &'a [u32],
        says: &'a [f64],
        base: &'a [f64],
        n_labels: usize,
    ) -> Result<Self, Error> {
        let ends = starts.first() == Some(&0) && starts.last() == Some(&(labels.len() as i64));
        demand(ends && starts.is_sorted(), "starts must rise from 0 to the number of pairs")?;
        demand(
            says.len() == labels.len() && base.len() + 1 == starts.len(),
            "each pair must say something",
        )?;
        demand(
            labels.iter().all(|&label| (label as usize) < n_labels),
            "labels must be below their number",
        )?;
        Ok(Index { starts, labels, says, base, n_labels })
    }

    /// Σ value · what the word says + Σ value · `slopes`, `[text][label]`.
    pub fn scores(&self, texts: &Texts, slopes: &[f64], threads: usize) -> Result<Vec<f64>, Error> {
        let k = self.n_labels;
        demand(k > 0 && slopes.len() == k, "each label must have a slope")?;
        demand(texts.n_words() == self.base.len(), "the index must have all words")?;
        let mut out = vec![0.0; texts.len() * k];
        threads::try_pieces(threads, &mut out, PIECE * k, |i, out| {
            for (at, out) in out.chunks_exact_mut(k).enumerate() {
                let (mut base, mut length) = (0.0, 0.0);
                for (word, value) in texts.each(i * PIECE + at) {
                    base += value * self.base[word];
                    length += value;
                    let pairs = self.starts[word] as usize..self.starts[word + 1] as usize;
                    let each = self.labels[pairs.clone()].iter().zip(&self.says[pairs]);
                    each.for_each(|(&label, says)| out[label as usize] += value * says);
                }
                out.iter_mut().zip(slopes).for_each(|(out, slope)| *out += length * slope + base);
            }
            Ok::<_, Error>(())
        })?;
        Ok(out)
    }
}

/// Visits texts in this order and improves `mu`, `[lane][text][label]`, and `table`; answers the mean change of μ.
///
/// Labels stand in lanes of 8, 16 or 32, the task's classes, which know nothing of each other: each is a yes or no of its own.
/// The table has Δ of each word and label, and beside them, since they are read together, s²: `[lane][word][Δ or s²][label]`.
pub fn ascend(
    texts: &Texts<f32>,
    task: &Task,
    order: &[u32],
    mu: &mut [f32],
    table: &mut [f32],
    threads: usize,
) -> Result<f64, Error> {
    let (n, width) = (texts.len(), task.classes);
    demand(matches!(width, 8 | 16 | 32), "a lane must have 8, 16 or 32 labels")?;
    demand(task.strengths.len() == n, "each text must have a strength")?;
    demand(order.iter().all(|&text| (text as usize) < n), "the order must be of texts")?;
    let (size, rows) = (n * width, (texts.n_words() + 1) * 2 * width);
    let lanes = table.len() / rows.max(1);
    demand(rows > 0 && table.len() == lanes * rows, "the table must have all words")?;
    let fits = [mu.len(), task.own.len(), task.offsets.len()].iter().all(|&m| m == lanes * size);
    demand(fits, "offsets, own and mu must be lanes × texts × labels")?;
    let pass = match width {
        8 => lane::<8>,
        16 => lane::<16>,
        _ => lane::<32>,
    };
    if n == 0 {
        return Ok(0.0);
    }
    let pieces: Vec<_> = mu.chunks_mut(size).zip(table.chunks_mut(rows)).map(Mutex::new).collect();
    let changes = threads::map(threads.min(lanes), lanes, |i| {
        let Ok(mut piece) = pieces[i].lock() else { return 0.0 };
        let (mu, table) = &mut *piece;
        let part = i * size..(i + 1) * size;
        let task = Task { offsets: &task.offsets[part.clone()], own: &task.own[part], ..*task };
        pass(texts, &task, order, mu, table)
    });
    Ok(changes.iter().sum::<f64>() / n as f64)
}

fn lane<const B: usize>(
    texts: &Texts<f32>,
    task: &Task,
    order: &[u32],
    mu: &mut [f32],
    table: &mut [f32],
) -> f64 {
    wide!(pass::<B>(texts, task, order, mu, table))
}

/// The pass over all texts for the labels of a lane. Most say no from the first pass on, and cost no more than looking.
#[inline(always)]
fn pass<const B: usize>(
    texts: &Texts<f32>,
    task: &Task,
    order: &[u32],
    mu: &mut [f32],
    table: &mut [f32],
) -> f64 {
    let (rows, _) = table.as_chunks_mut::<B>();
    let (mu, _) = mu.as_chunks_mut::<B>();
    let ((offsets, _), (own, _)) = (task.offsets.as_chunks::<B>(), task.own.as_chunks::<B>());
    let last = texts.n_words();
    let (mut change, mut moved) = (0.0, Vec::with_capacity(B));
    for &text in order {
        let text = text as usize;
        let strength = task.strengths[text];
        if strength <= 0.0 {
            continue;
        }
        let mut z = [0.0_f32; B];
        for c in 0..B {
            z[c] = task.common * rows[2 * last][c];
        }
        for (word, value) in texts.each(text) {
            let row = &rows[2 * word];
            for c in 0..B {
                z[c] += value * row[c];
            }
        }
        let mine = &mut mu[text];
        let (mut a, mut goal): (Lane<B>, Lane<B>) = ([0.0; B], [0.0; B]);
        let mut quiet = true;
        for c in 0..B {
            a[c] = strength * f64::from(own[text][c]) + 1e-12;
            goal[c] = offsets[text][c] + f64::from(z[c]) + a[c] * f64::from(mine[c]);
            quiet &= goal[c] < STILL.1 && mine[c] < STILL.0;
        }
        if quiet {
            continue; // μ is below e to the goal
        }
        let new = yes_no(&a, &goal);
        moved.clear();
        for c in 0..B {
            let new = new[c] as f32;
            let step = mine[c] - new;
            if step.abs() > STILL.0 {
                moved.push((c, strength as f32 * step));
                change += f64::from(step.abs());
                mine[c] = new;
            }
        }
        if moved.is_empty() {
            continue;
        }
        for (word, value) in texts.each(text).chain([(last, task.common)]) {
            let (row, vary) = rows[2 * word..2 * word + 2].split_at_mut(1);
            for &(c, step) in &moved {
                row[0][c] += value * vary[0][c] * step;
            }
        }
    }
    change
}

#[cfg(test)]
mod tests {
    use super::super::texts::Bags;
    use super::*;

    #[test]
    fn pairs_add_to_what_is_said_of_all() {
        let bags = Bags::new(&[0, 2, 2, 3], &[0, 1, 1], 2).unwrap();
        let texts = Texts::new(bags, &[1.0, 2.0, 3.0]).unwrap();
        let index =
            Index::new(&[0, 1, 3], &[1, 0, 2], &[0.5, 0.25, 4.0], &[10.0, 20.0], 3).unwrap();
        let found = index.scores(&texts, &[1.0, 2.0, 3.0], 1).unwrap();
        assert_eq!(found, [53.5, 56.5, 67.0, 0.0, 0.0, 0.0, 63.75, 66.0, 81.0]);
        assert!(Index::new(&[0, 1], &[3], &[1.0], &[0.0], 3).is_err());
    }

    #[test]
    fn labels_come_to_rest_where_the_loss_of_each_is_least() {
        let (offsets, words) = ([0, 2, 3, 5, 6], [0, 1, 1, 0, 2, 2]);
        let bags = Bags::new(&offsets, &words, 3).unwrap();
        let values = bags.values(None, &[1.0, 2.0, 1.0], 1).unwrap();
        let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let texts = Texts::new(bags, &values).unwrap();
        let (k, lanes, truth) = (8, 2, |i: usize| f32::from(i.is_multiple_of(3) || i == 4));
        let variances: Vec<f32> = (0..lanes * 4 * k).map(|i| 0.5 + (i % 13) as f32).collect();
        let mut own = vec![0.0; lanes * 4 * k];
        for (i, own) in own.iter_mut().enumerate() {
            let (lane, text, c) = (i / (4 * k), i / k % 4, i % k);
            for (word, x) in texts.each(text).chain([(3, 0.3)]) {
                *own += x * x * variances[(lane * 4 + word) * k + c];
            }
        }
        let start: Vec<f64> = (0..lanes * 4 * k).map(|i| 0.1 - (i % k) as f64 / 4.0).collect();
        let task =
            Task { strengths: &[0.7; 4], offsets: &start, common: 0.3, own: &own, classes: k };
        let mut mu: Vec<f32> = (0..lanes * 4 * k).map(truth).collect();
        let mut table = vec![0.0; lanes * 4 * 2 * k];
        for (row, vary) in table.chunks_mut(2 * k).zip(variances.chunks(k)) {
            row[k..].copy_from_slice(vary);
        }
        let begun = (mu.clone(), table.clone());
        for _ in 0..500 {
            ascend(&texts, &task, &[0, 1, 2, 3], &mut mu, &mut table, 1).unwrap();
        }
        let (mut twin, mut other) = begun;
        for _ in 0..500 {
            ascend(&texts, &task, &[0, 1, 2, 3], &mut twin, &mut other, 2).unwrap();
        }
        assert!(mu == twin && table == other);
        for (lane, word, c) in (0..lanes * 4 * k).map(|i| (i / (4 * k), i / k % 4, i % k)) {
            // Δ = C s² Σ x (y − μ), μ = 1 / (1 + exp(−Δ x)).
            let at = |word: usize| (lane * 4 + word) * 2 * k + c;
            let mut want = 0.0;
            for text in 0..4 {
                let each = || texts.each(text).chain([(3, 0.3)]);
                let z: f64 = each().map(|(word, x)| f64::from(x * table[at(word)])).sum();
                let i = (lane * 4 + text) * k + c;
                let p = 1.0 / (1.0 + (-start[i] - z).exp());
                let x: f32 = each().filter(|x| x.0 == word).map(|x| x.1).sum();
                want += f64::from(x) * (f64::from(truth(i)) - p);
            }
            want *= 0.7 * f64::from(variances[(lane * 4 + word) * k + c]);
            assert!((f64::from(table[at(word)]) - want).abs() < 2e-3);
        }
        let wide = Task { classes: 9, ..task };
        assert!(ascend(&texts, &wide, &[0], &mut mu, &mut table, 1).is_err());
    }
}
