//! The evidence of words for many labels, stored for the pairs of word and label that occur; and its corrections.

use super::ascent::{Labels, TrainingRows, pass};
use super::texts::{CorrectedTexts, OfClasses, Texts};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::threads;

/// Texts that a thread takes at a time. To weigh 500 texts of 20 labels took 566 ms with 2^8, 411 with 2^5 and 455 with 2^11, while
/// two measurements of one of them were up to 77 ms apart.
const PIECE: usize = 1 << 8;

/// The evidence of words for labels: word w has `base[w]` for every label, and `nats[i]` more for label `labels[i]`, with i from
/// `starts[w]` to `starts[w + 1]`.
#[derive(Clone, Copy, Debug)]
pub struct Index<'a> {
    /// Where the pairs of each word begin, and the last ones end, `[word + 1]`.
    starts: &'a [i64],
    /// The label of each pair.
    labels: &'a [u32],
    /// What the word says for the label of each pair, beyond its base.
    nats: &'a [f64],
    /// What each word says for every label, in nats.
    base: &'a [f64],
    n_labels: usize,
}

impl<'a> Index<'a> {
    /// The evidence of words for labels, in nats: word w has `base[w]` for every label, and `nats[i]` more for label `labels[i]`,
    /// with i from `starts[w]` to `starts[w + 1]`. There are `n_labels` labels. Refuses arrays that do not fit together.
    pub fn new(
        starts: &'a [i64],
        labels: &'a [u32],
        nats: &'a [f64],
        base: &'a [f64],
        n_labels: usize,
    ) -> Result<Self, Error> {
        let has_ends = starts.first() == Some(&0) && starts.last() == Some(&(labels.len() as i64));
        demand(has_ends && starts.is_sorted(), "starts must rise from 0 to the number of pairs")?;
        demand(
            nats.len() == labels.len() && base.len() + 1 == starts.len(),
            "each pair must say something",
        )?;
        demand(
            labels.iter().all(|&label| (label as usize) < n_labels),
            "labels must be below their number",
        )?;
        Ok(Index { starts, labels, nats, base, n_labels })
    }

    /// Returns the scores of texts, `[text][label]`: Σ value · evidence of the word for the label + Σ value · slope of the label,
    /// over the text's words, where the value is how much the word counts in the text. `slopes` is `[label]`. The evidence of
    /// word w, in nats, is `base[w]` for every label, and `nats[i]` more for label `labels[i]`, with i from `starts[w]` to
    /// `starts[w + 1]`.
    pub fn scores(&self, texts: &Texts, slopes: &[f64], threads: usize) -> Result<Vec<f64>, Error> {
        let n_labels = self.n_labels;
        demand(n_labels > 0 && slopes.len() == n_labels, "each label must have a slope")?;
        demand(texts.n_words() == self.base.len(), "the index must have all words")?;
        let mut scores = vec![0.0; texts.len() * n_labels];
        threads::pieces(threads, &mut scores, PIECE * n_labels, |piece, scores| {
            for (text, scores) in (piece * PIECE..).zip(scores.chunks_exact_mut(n_labels)) {
                let mut base = 0.0; // the evidence of the text's words for every label
                let mut sum_of_values = 0.0;
                for (word, value) in texts.each(text) {
                    base += value * self.base[word];
                    sum_of_values += value;
                    // Of the word and a label, for which it has more evidence.
                    let pairs = self.starts[word] as usize..self.starts[word + 1] as usize;
                    for (&label, nats) in self.labels[pairs.clone()].iter().zip(&self.nats[pairs]) {
                        scores[label as usize] += value * nats;
                    }
                }
                let scores_and_slopes = scores.iter_mut().zip(slopes);
                scores_and_slopes.for_each(|(score, slope)| *score += sum_of_values * slope + base);
            }
        });
        Ok(scores)
    }
}

/// Visits texts in `order`, their numbers. Improves `mu`, the probabilities of labels, `[lane][text][label]`, and the table of
/// `all` texts, and returns the change of μ per text, summed over labels.
///
/// Labels are learned in lanes of 8 or 16, independently of each other; `rows.classes` is the width of a lane. The table,
/// `[lane][word, or all texts][Δ or s²][label]`, has the corrections Δ of words and how much they may vary, s²; `text_variances`,
/// `[lane][text][label]`, are Σ s² · value² over a text's words; `common` is the value of the table's last row in every text.
/// `rows.offsets`, `[lane][text][label]`, are the scores before corrections.
pub fn ascend(
    all: &mut CorrectedTexts,
    rows: &TrainingRows,
    order: &[u32],
    mu: &mut [f32],
    threads: usize,
) -> Result<f64, Error> {
    let (n_texts, width) = (all.texts.len(), rows.classes);
    demand(matches!(width, 8 | 16), "a lane must have 8 or 16 labels")?;
    let size = n_texts * width; // numbers of μ per lane
    let table_size = (all.texts.n_words() + 1) * 2 * width; // per lane
    let lanes = all.table.len() / table_size;
    demand(all.table.len() == lanes * table_size, "the table must have all words")?;
    // Whether all arrays have the numbers of all lanes.
    let fits = [mu.len(), all.text_variances.len(), rows.offsets.len()]
        .iter()
        .all(|&len| len == lanes * size);
    demand(fits, "offsets, own and mu must be lanes × texts × labels")?;
    if n_texts == 0 {
        return Ok(0.0);
    }
    // Visits the texts with the labels of one lane.
    let run_lane = if width == 8 { lane::<8> } else { lane::<16> };
    let (texts, common) = (all.texts, all.common);
    let arrays_of_lanes = mu
        .chunks_mut(size)
        .zip(all.table.chunks_mut(table_size))
        .zip(all.text_variances.chunks(size))
        .zip(rows.offsets.chunks(size));
    let lane_of_arrays = |(((mu, table), text_variances), offsets)| {
        let texts = CorrectedTexts { texts, common, text_variances, table, classes: width };
        (texts, TrainingRows { offsets, ..*rows }, mu)
    };
    // The texts, rows and μ of each lane.
    let mut arguments: Vec<_> = arrays_of_lanes.map(lane_of_arrays).collect();
    // The change of μ in each lane.
    let changes = threads::each(threads.min(lanes), &mut arguments, |_, (texts, rows, mu)| {
        rows.check(n_texts, order, mu.len())?;
        texts.check()?;
        Ok::<_, Error>(run_lane(texts, rows, order, mu))
    });
    changes.into_iter().sum()
}

/// Visits texts in an order (their numbers) with the `B` labels of one lane. Improves `mu`, the probabilities of labels,
/// `[text][label]`, and the table of the texts, `[word, or all texts][Δ or s²][label]`, and returns the mean change of μ per
/// text: its absolute changes, summed over labels. `rows` has C times the weight of each text, and its scores before corrections.
fn lane<const B: usize>(
    texts: &mut CorrectedTexts,
    rows: &TrainingRows,
    order: &[u32],
    mu: &mut [f32],
) -> f64 {
    let mut texts = OfClasses::<B>(texts);
    wide!(pass(&mut texts, Labels::<B>::new(), rows, order, mu, ([0.0; B], [0.0; B])))
}

#[cfg(test)]
mod tests {
    use super::super::texts::Bags;
    use super::*;

    #[test]
    fn pairs_add_to_the_base() {
        // Three texts: words 0 and 1 with values 1 and 2; none; word 1 with value 3.
        let bags = Bags::new(&[0, 2, 2, 3], &[0, 1, 1], 2).unwrap();
        let texts = Texts::new(bags, &[1.0, 2.0, 3.0]).unwrap();
        // Word 0 says 10 for every label, and 0.5 more for label 1; word 1 says 20, and 0.25 and 4 more for labels 0 and 2.
        let index =
            Index::new(&[0, 1, 3], &[1, 0, 2], &[0.5, 0.25, 4.0], &[10.0, 20.0], 3).unwrap();
        // Slopes of the three labels; one thread.
        let found = index.scores(&texts, &[1.0, 2.0, 3.0], 1).unwrap();
        assert_eq!(found, [53.5, 56.5, 67.0, 0.0, 0.0, 0.0, 63.75, 66.0, 81.0]);
        assert!(Index::new(&[0, 1], &[3], &[1.0], &[0.0], 3).is_err());
    }

    #[test]
    fn labels_reach_the_least_loss_of_each() {
        // Four texts of three words.
        let (offsets, words) = ([0, 2, 3, 5, 6], [0, 1, 1, 0, 2, 2]);
        let bags = Bags::new(&offsets, &words, 3).unwrap();
        let values = bags.values(None, &[1.0, 2.0, 1.0], 1).unwrap();
        let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let texts = Texts::new(bags, &values).unwrap();
        let (k, lanes, truth) = (8, 2, |i: usize| f32::from(i.is_multiple_of(3) || i == 4));
        // s², `[lane][word or all texts][label]`; Σ s² · value², `[lane][text][label]`.
        let variances: Vec<f32> = (0..lanes * 4 * k).map(|i| 0.5 + (i % 13) as f32).collect();
        let mut own = vec![0.0; lanes * 4 * k];
        for (i, own) in own.iter_mut().enumerate() {
            let (lane, text, c) = (i / (4 * k), i / k % 4, i % k);
            for (word, x) in texts.each(text).chain([(3, 0.3)]) {
                *own += x * x * variances[(lane * 4 + word) * k + c];
            }
        }
        let start: Vec<f64> = (0..lanes * 4 * k).map(|i| 0.1 - (i % k) as f64 / 4.0).collect();
        let rows = TrainingRows { strengths: &[0.7; 4], offsets: &start, classes: k };
        /// Lanes of 8 labels, of texts that all have the value 0.3 of the last row of the table.
        fn all<'a>(
            texts: Texts<'a, f32>,
            own: &'a [f32],
            table: &'a mut [f32],
        ) -> CorrectedTexts<'a> {
            CorrectedTexts { texts, common: 0.3, text_variances: own, table, classes: 8 }
        }
        let mut mu: Vec<f32> = (0..lanes * 4 * k).map(truth).collect();
        let mut table = vec![0.0; lanes * 4 * 2 * k];
        for (row, variances_of_word) in table.chunks_mut(2 * k).zip(variances.chunks(k)) {
            row[k..].copy_from_slice(variances_of_word);
        }
        let begun = (mu.clone(), table.clone());
        for _ in 0..500 {
            ascend(&mut all(texts, &own, &mut table), &rows, &[0, 1, 2, 3], &mut mu, 1).unwrap();
        }
        let (mut other_mu, mut other_table) = begun;
        for _ in 0..500 {
            ascend(&mut all(texts, &own, &mut other_table), &rows, &[0, 1, 2, 3], &mut other_mu, 2)
                .unwrap();
        }
        assert!(mu == other_mu && table == other_table);
        for (lane, word, c) in (0..lanes * 4 * k).map(|i| (i / (4 * k), i / k % 4, i % k)) {
            // Δ = C s² Σ x (y − μ), μ = 1 / (1 + exp(−Δ x)).
            let at = |word: usize| (lane * 4 + word) * 2 * k + c;
            let mut expected = 0.0;
            for text in 0..4 {
                let each = || texts.each(text).chain([(3, 0.3)]);
                let z: f64 = each().map(|(word, x)| f64::from(x * table[at(word)])).sum();
                let i = (lane * 4 + text) * k + c;
                let probability = 1.0 / (1.0 + (-start[i] - z).exp());
                let x: f32 = each().filter(|x| x.0 == word).map(|x| x.1).sum();
                expected += f64::from(x) * (f64::from(truth(i)) - probability);
            }
            expected *= 0.7 * f64::from(variances[(lane * 4 + word) * k + c]);
            assert!((f64::from(table[at(word)]) - expected).abs() < 2e-3);
        }
        let wide = TrainingRows { classes: 9, ..rows };
        assert!(ascend(&mut all(texts, &own, &mut table), &wide, &[0], &mut mu, 1).is_err());
    }
}
