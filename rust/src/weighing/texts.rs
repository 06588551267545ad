//! Texts as bags of words, each word a cell of its own: what they count, and passes of corrections over them.

use super::ascent::{Corrected, Task, pass_of_many, pass_of_two};
use crate::classes::Sets;
use crate::error::{Error, demand};
use crate::threads;

/// Texts of a piece.
const PIECE: usize = 1 << 10;

/// Bags of words: text i has the words `offsets[i]..offsets[i + 1]`, each once.
#[derive(Clone, Copy, Debug)]
pub struct Bags<'a> {
    offsets: &'a [i64],
    words: &'a [u32],
    n_words: usize,
}

impl<'a> Bags<'a> {
    pub fn new(offsets: &'a [i64], words: &'a [u32], n_words: usize) -> Result<Self, Error> {
        let ends = offsets.first() == Some(&0) && offsets.last() == Some(&(words.len() as i64));
        demand(ends && offsets.is_sorted(), "offsets must rise from 0 to the number of words")?;
        demand(
            words.iter().all(|&word| (word as usize) < n_words),
            "words must be below their number",
        )?;
        Ok(Bags { offsets, words, n_words })
    }

    pub fn texts(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline(always)]
    fn range(&self, text: usize) -> std::ops::Range<usize> {
        self.offsets[text] as usize..self.offsets[text + 1] as usize
    }

    /// The weight of texts that have each word, by class: `[word][class]`.
    pub fn count(&self, labels: Sets, weights: &[f64], classes: usize) -> Result<Vec<f64>, Error> {
        let n = self.texts();
        demand(labels.len() == n && weights.len() == n, "each text must have labels and a weight")?;
        let mut table = vec![0.0; self.n_words * classes];
        for (text, &weight) in weights.iter().enumerate() {
            for &word in &self.words[self.range(text)] {
                for &label in labels.of(text) {
                    table[word as usize * classes + label as usize] += weight;
                }
            }
        }
        Ok(table)
    }

    /// What each word counts in its text: `scale` of the word, times √times if `times` are given, over the text's length.
    pub fn values(
        &self,
        times: Option<&[f64]>,
        scale: &[f32],
        threads: usize,
    ) -> Result<Vec<f64>, Error> {
        demand(
            times.is_none_or(|times| times.len() == self.words.len()),
            "each word must have times",
        )?;
        demand(scale.len() == self.n_words, "each word must have a scale")?;
        let mut out = vec![0.0; self.words.len()];
        let mut pieces = vec![];
        let mut rest = &mut out[..];
        for first in (0..self.texts()).step_by(PIECE) {
            let last = (first + PIECE).min(self.texts());
            let (piece, more) =
                rest.split_at_mut((self.offsets[last] - self.offsets[first]) as usize);
            pieces.push(std::sync::Mutex::new((first..last, piece)));
            rest = more;
        }
        threads::map(threads::worth(threads, self.words.len()), pieces.len(), |i| {
            let Ok(mut piece) = pieces[i].lock() else { return };
            let (texts, out) = &mut *piece;
            let start = self.offsets[texts.start] as usize;
            for text in texts.clone() {
                let range = self.range(text);
                let out = &mut out[range.start - start..range.end - start];
                normalised(
                    &self.words[range.clone()],
                    times.map(|times| &times[range]),
                    scale,
                    out,
                );
            }
        });
        drop(pieces);
        Ok(out)
    }
}

/// Bags by rank: offsets, words, how often each occurs, and a hash of each text.
pub type Ranked = (Vec<i64>, Vec<u32>, Vec<f64>, Vec<u64>);

/// Bags of ids as bags of ranks, in the order of ranks; `ranks` of ids, `u32::MAX` where a word is left out.
pub fn ranked(
    offsets: &[i64],
    ids: &[i32],
    times: &[f64],
    ranks: &[u32],
    threads: usize,
) -> Result<Ranked, Error> {
    let ends = offsets.first() == Some(&0) && offsets.last() == Some(&(ids.len() as i64));
    demand(ends && offsets.is_sorted(), "offsets must rise from 0 to the number of words")?;
    demand(times.len() == ids.len(), "each word must have times")?;
    demand(ids.iter().all(|&id| (id as usize) < ranks.len()), "each word must have a rank")?;
    let n = offsets.len() - 1;
    let pieces = threads::map(threads::worth(threads, ids.len()), n.div_ceil(PIECE), |i| {
        let (mut sizes, mut words, mut often, mut hashes) = (vec![], vec![], vec![], vec![]);
        let mut bag = vec![];
        for text in i * PIECE..n.min((i + 1) * PIECE) {
            let range = offsets[text] as usize..offsets[text + 1] as usize;
            let times = &times[range.clone()];
            // A rank, and below it the word's place in the text: whole numbers are sorted fastest.
            bag.clear();
            let each = ids[range].iter().map(|&id| u64::from(ranks[id as usize])).zip(0_u64..);
            let used = each.filter(|x| x.0 != u64::from(u32::MAX));
            bag.extend(used.map(|(rank, place)| rank << 32 | place));
            bag.sort_unstable();
            let mut hash = 0x9e37_79b9_7f4a_7c15_u64;
            for &both in &bag {
                let (word, n) = ((both >> 32) as u32, times[both as u32 as usize]);
                let own = u64::from(word) << 32 | u64::from((n as f32).to_bits());
                hash = (hash ^ own).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                hash ^= hash >> 29;
                words.push(word);
                often.push(n);
            }
            hashes.push(hash);
            sizes.push(bag.len());
        }
        (sizes, words, often, hashes)
    });
    let (mut starts, mut words, mut often, mut hashes) = (vec![0], vec![], vec![], vec![]);
    for (sizes, own_words, own_often, own_hashes) in pieces {
        for size in sizes {
            starts.push(starts[starts.len() - 1] + size as i64);
        }
        words.extend(own_words);
        often.extend(own_often);
        hashes.extend(own_hashes);
    }
    Ok((starts, words, often, hashes))
}

/// The values of one text's words; their squares sum to 1, or to nothing.
fn normalised(words: &[u32], times: Option<&[f64]>, scale: &[f32], out: &mut [f64]) {
    let mut squares = 0.0;
    for (i, (&word, out)) in words.iter().zip(&mut *out).enumerate() {
        let often = times.map_or(1.0, |times| times[i].sqrt());
        *out = often * f64::from(scale[word as usize]);
        squares += *out * *out;
    }
    if squares > 0.0 {
        let one_over = 1.0 / squares.sqrt();
        out.iter_mut().for_each(|out| *out *= one_over);
    }
}

/// Bags with what each word counts: doubles where texts are scored, single precision where corrections are learned.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a, T = f64> {
    bags: Bags<'a>,
    values: &'a [T],
}

impl<'a, T: Copy> Texts<'a, T> {
    pub fn new(bags: Bags<'a>, values: &'a [T]) -> Result<Self, Error> {
        demand(values.len() == bags.words.len(), "each word must have a value")?;
        Ok(Texts { bags, values })
    }

    pub fn len(&self) -> usize {
        self.bags.texts()
    }

    pub fn n_words(&self) -> usize {
        self.bags.n_words
    }

    #[inline(always)]
    pub(super) fn each(&self, text: usize) -> impl Iterator<Item = (usize, T)> + '_ {
        let range = self.bags.range(text);
        let words = self.bags.words[range.clone()].iter().map(|&word| word as usize);
        words.zip(self.values[range].iter().copied())
    }
}

impl Texts<'_> {
    /// Σ value · row of the word, `[text][class]`.
    pub fn scores(&self, table: &[f32], classes: usize, threads: usize) -> Result<Vec<f64>, Error> {
        demand(
            classes > 0 && table.len() == self.bags.n_words * classes,
            "the table must have all words",
        )?;
        let mut out = vec![0.0; self.len() * classes];
        let threads = threads::worth(threads, self.values.len());
        threads::try_pieces(threads, &mut out, PIECE * classes, |i, out| {
            for (at, out) in out.chunks_exact_mut(classes).enumerate() {
                for (word, value) in self.each(i * PIECE + at) {
                    let row = &table[word * classes..(word + 1) * classes];
                    out.iter_mut().zip(row).for_each(|(out, &x)| *out += value * f64::from(x));
                }
            }
            Ok::<_, Error>(())
        })?;
        Ok(out)
    }

    /// The same without each text: Σ value · row of `others` in other classes than the text's own, of `own` in those.
    pub fn left_out(
        &self,
        labels: Sets,
        [others, own]: [&[f32]; 2],
        classes: usize,
        threads: usize,
    ) -> Result<Vec<f64>, Error> {
        demand(labels.len() == self.len(), "each text must have labels")?;
        demand(own.len() == others.len(), "tables must be of one size")?;
        let mut out = self.scores(others, classes, threads)?;
        for (text, out) in out.chunks_exact_mut(classes).enumerate() {
            for &label in labels.of(text) {
                let each = self.each(text);
                let mine =
                    each.map(|(word, x)| x * f64::from(own[word * classes + label as usize]));
                out[label as usize] = mine.sum();
            }
        }
        Ok(out)
    }
}

/// Texts whose words are corrected: Δ of each word and class, and beside them, since they are read together, s²:
/// `[word][Δ or s²][class]`. The last row is of no word but of all texts, and counts `common` in each.
pub struct CorrectedTexts<'a> {
    pub texts: Texts<'a, f32>,
    pub common: f32,
    /// Σ s² · value², `[text][class]`.
    pub own: &'a [f32],
    pub table: &'a mut [f32],
    pub classes: usize,
}

impl CorrectedTexts<'_> {
    pub(super) fn check(&self) -> Result<(), Error> {
        demand(self.own.len() == self.texts.len() * self.classes, "own must be texts × classes")?;
        let cells = (self.texts.n_words() + 1) * 2 * self.classes;
        demand(self.table.len() == cells, "the table must have all words")
    }
}

/// The same of so many classes; 0: of any number. The compiler makes more of a number that it knows.
pub(super) struct OfClasses<'t, 'a, const K: usize>(pub(super) &'t mut CorrectedTexts<'a>);

impl<const K: usize> OfClasses<'_, '_, K> {
    #[inline(always)]
    fn classes(&self) -> usize {
        if K > 0 { K } else { self.0.classes }
    }
}

impl<const K: usize> Corrected for OfClasses<'_, '_, K> {
    type Number = f32;

    #[inline(always)]
    fn sum(&mut self, text: usize, sums: &mut [f32]) {
        let (k, texts, table) = (self.classes(), &self.0.texts, &*self.0.table);
        for (word, value) in texts.each(text) {
            sum_word(&table[2 * word * k..], value, sums);
        }
        sum_word(&table[2 * texts.n_words() * k..], self.0.common, sums);
    }

    #[inline(always)]
    fn own(&self, text: usize, class: usize) -> f64 {
        f64::from(self.0.own[text * self.classes() + class])
    }

    #[inline(always)]
    fn add(&mut self, text: usize, steps: &[f32]) {
        let (k, texts, table) = (self.classes(), &self.0.texts, &mut *self.0.table);
        for (word, value) in texts.each(text) {
            add_word(&mut table[2 * word * k..], k, value, steps);
        }
        add_word(&mut table[2 * texts.n_words() * k..], k, self.0.common, steps);
    }
}

#[inline(always)]
fn sum_word(table: &[f32], value: f32, sums: &mut [f32]) {
    let deltas = &table[..sums.len()];
    sums.iter_mut().zip(deltas).for_each(|(sum, delta)| *sum += value * delta);
}

#[inline(always)]
fn add_word(table: &mut [f32], k: usize, value: f32, steps: &[f32]) {
    let (deltas, vary) = table[..2 * k].split_at_mut(k);
    let (deltas, vary) = (&mut deltas[..steps.len()], &vary[..steps.len()]);
    for ((delta, vary), step) in deltas.iter_mut().zip(vary).zip(steps) {
        *delta += value * vary * step;
    }
}

/// Visits texts in this order and improves `mu`, `[text][class]`, and the table; answers the mean change of μ.
pub fn ascend(
    texts: &mut CorrectedTexts,
    task: &Task,
    order: &[u32],
    mu: &mut [f32],
) -> Result<f64, Error> {
    task.check(texts.texts.len(), order, mu.len())?;
    texts.check()?;
    if task.classes != 2 {
        return Ok(pass_of_many(&mut OfClasses::<0>(texts), task, order, mu));
    }
    let change = pass_of_two(&mut OfClasses::<2>(texts), task, order, mu);
    let (rows, _) = texts.table.as_chunks_mut::<4>();
    rows.iter_mut().for_each(|row| row[1] = -row[0]);
    Ok(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_come_to_rest_where_the_loss_is_least() {
        let (offsets, words) = ([0, 2, 3, 5, 6], [0, 1, 1, 0, 2, 2]);
        let bags = Bags::new(&offsets, &words, 3).unwrap();
        let values = bags.values(None, &[1.0, 2.0, 1.0], 1).unwrap();
        assert_eq!(
            [values[0], values[1], values[2]],
            [1.0 / 5.0_f64.sqrt(), 2.0 / 5.0_f64.sqrt(), 1.0]
        );
        let scored = Texts::new(bags, &values).unwrap();
        let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let texts = Texts::new(bags, &values).unwrap();
        for k in [2, 3] {
            let labels = [0, 1, 1, 0];
            // Of two classes both vary alike.
            let own = |i: usize| if k == 2 { i / 2 } else { i };
            let variances: Vec<f32> = (0..4 * k).map(|i| 0.5 + own(i) as f32).collect();
            let mut own = vec![0.0; 4 * k];
            for text in 0..4 {
                for (word, x) in texts.each(text).chain([(3, 0.3)]) {
                    (0..k).for_each(|c| own[text * k + c] += x * x * variances[word * k + c]);
                }
            }
            let task = Task { strengths: &[0.7; 4], offsets: &vec![0.1; 4 * k], classes: k };
            let mut mu = vec![0.0; 4 * k];
            labels.iter().enumerate().for_each(|(i, &y)| mu[i * k + y as usize] = 1.0);
            let mut table = vec![0.0; 8 * k];
            for (row, vary) in table.chunks_mut(2 * k).zip(variances.chunks(k)) {
                row[k..].copy_from_slice(vary);
            }
            for _ in 0..300 {
                let (own, table) = (&own, &mut table);
                let mut corrected = CorrectedTexts { texts, common: 0.3, own, table, classes: k };
                ascend(&mut corrected, &task, &[0, 1, 2, 3], &mut mu).unwrap();
            }
            let table: Vec<f32> = table.chunks(2 * k).flat_map(|row| row[..k].to_vec()).collect();
            let mut scores = scored.scores(&table[..3 * k], k, 1).unwrap();
            for (i, score) in scores.iter_mut().enumerate() {
                *score += f64::from(0.3 * table[3 * k + i % k]);
            }
            for word in 0..4 {
                for c in 0..k {
                    // Δ = C s² Σ x (y − μ), μ = softmax(Δ x).
                    let mut want = 0.0;
                    for text in 0..4 {
                        let own = &scores[text * k..(text + 1) * k];
                        let sum: f64 = own.iter().map(|z| z.exp()).sum();
                        let y = f64::from(u8::from(labels[text] as usize == c));
                        let each = texts.each(text).chain([(3, 0.3)]);
                        let x: f32 = each.filter(|x| x.0 == word).map(|x| x.1).sum();
                        want += f64::from(x) * (y - own[c].exp() / sum);
                    }
                    want *= 0.7 * f64::from(variances[word * k + c]);
                    assert!((f64::from(table[word * k + c]) - want).abs() < 1e-4);
                }
            }
        }
        let labels = Sets::new(&[0, 1, 2, 3, 4], &[0, 1, 1, 0], 2).unwrap();
        assert_eq!(
            bags.count(labels, &[1.0, 2.0, 1.0, 1.0], 2).unwrap(),
            [1.0, 1.0, 1.0, 2.0, 1.0, 1.0]
        );
    }
}
