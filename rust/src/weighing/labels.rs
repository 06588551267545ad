//! What words say of many labels: by the pairs of a word and a label that occur, and corrected, some labels at a time.

use super::ascent::{Labels, Task, pass};
use super::texts::{CorrectedTexts, OfClasses, Texts};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::threads;

/// Texts of a piece.
const PIECE: usize = 1 << 8;

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

/// Visits texts in this order and improves `mu`, `[lane][text][label]`, and the table; answers the mean change of μ.
///
/// Labels stand in lanes of 8 or 16, the task's classes, which know nothing of each other. Offsets, `own` and the table have
/// lane after lane.
pub fn ascend(
    all: &mut CorrectedTexts,
    task: &Task,
    order: &[u32],
    mu: &mut [f32],
    threads: usize,
) -> Result<f64, Error> {
    let (n, width) = (all.texts.len(), task.classes);
    demand(matches!(width, 8 | 16), "a lane must have 8 or 16 labels")?;
    let (size, rows) = (n * width, (all.texts.n_words() + 1) * 2 * width);
    let lanes = all.table.len() / rows;
    demand(all.table.len() == lanes * rows, "the table must have all words")?;
    let fits = [mu.len(), all.own.len(), task.offsets.len()].iter().all(|&m| m == lanes * size);
    demand(fits, "offsets, own and mu must be lanes × texts × labels")?;
    if n == 0 {
        return Ok(0.0);
    }
    let lane = if width == 8 { lane::<8> } else { lane::<16> };
    let (texts, common) = (all.texts, all.common);
    let each = mu.chunks_mut(size).zip(all.table.chunks_mut(rows));
    let each = each.zip(all.own.chunks(size).zip(task.offsets.chunks(size)));
    let mut work: Vec<_> = each
        .map(|((mu, table), (own, offsets))| {
            let texts = CorrectedTexts { texts, common, own, table, classes: width };
            (texts, Task { offsets, ..*task }, mu)
        })
        .collect();
    let changes = threads::each(threads.min(lanes), &mut work, |_, (texts, task, mu)| {
        task.check(n, order, mu.len())?;
        texts.check()?;
        Ok::<_, Error>(lane(texts, task, order, mu))
    });
    changes.into_iter().sum()
}

fn lane<const B: usize>(
    texts: &mut CorrectedTexts,
    task: &Task,
    order: &[u32],
    mu: &mut [f32],
) -> f64 {
    let mut texts = OfClasses::<B>(texts);
    wide!(pass(&mut texts, Labels::<B>::new(), task, order, mu, ([0.0; B], [0.0; B])))
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
        let task = Task { strengths: &[0.7; 4], offsets: &start, classes: k };
        fn all<'a>(
            texts: Texts<'a, f32>,
            own: &'a [f32],
            table: &'a mut [f32],
        ) -> CorrectedTexts<'a> {
            CorrectedTexts { texts, common: 0.3, own, table, classes: 8 }
        }
        let mut mu: Vec<f32> = (0..lanes * 4 * k).map(truth).collect();
        let mut table = vec![0.0; lanes * 4 * 2 * k];
        for (row, vary) in table.chunks_mut(2 * k).zip(variances.chunks(k)) {
            row[k..].copy_from_slice(vary);
        }
        let begun = (mu.clone(), table.clone());
        for _ in 0..500 {
            ascend(&mut all(texts, &own, &mut table), &task, &[0, 1, 2, 3], &mut mu, 1).unwrap();
        }
        let (mut twin, mut other) = begun;
        for _ in 0..500 {
            ascend(&mut all(texts, &own, &mut other), &task, &[0, 1, 2, 3], &mut twin, 2).unwrap();
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
        assert!(ascend(&mut all(texts, &own, &mut table), &wide, &[0], &mut mu, 1).is_err());
    }
}
