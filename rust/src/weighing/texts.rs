//! Texts as bags of words, in which each word is a cell: counts, values, scores, and passes that learn corrections.

use super::ascent::{Corrections, TrainingRows, pass_of_many, pass_of_two};
use crate::classes::Sets;
use crate::error::{Error, demand};
use crate::threads;

/// Texts that a thread takes at a time. To weigh 800 texts took 2.1 s with 2^10 and 2^13, and 1.8 with 2^7, while two measurements
/// of one of them were up to 0.5 s apart.
const PIECE: usize = 1 << 10;

/// Bags of words: text i has the words `words[offsets[i]..offsets[i + 1]]`, each once, by rank from 0 to `n_words` - 1.
#[derive(Clone, Copy, Debug)]
pub struct Bags<'a> {
    offsets: &'a [i64],
    words: &'a [u32],
    n_words: usize,
}

impl<'a> Bags<'a> {
    /// Bags of words, in which text i has the words (their ranks, from 0 to `n_words` - 1) `words[offsets[i]..offsets[i + 1]]`.
    /// Refuses offsets that do not rise from 0 to the number of words of all texts, and words that are not below `n_words`.
    pub fn new(offsets: &'a [i64], words: &'a [u32], n_words: usize) -> Result<Self, Error> {
        let has_ends = offsets.first() == Some(&0) && offsets.last() == Some(&(words.len() as i64));
        demand(has_ends && offsets.is_sorted(), "offsets must rise from 0 to the number of words")?;
        demand(
            words.iter().all(|&word| (word as usize) < n_words),
            "words must be below their number",
        )?;
        Ok(Bags { offsets, words, n_words })
    }

    /// How many texts there are.
    pub fn texts(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Where the words of a text (its number) are among those of all texts.
    #[inline(always)]
    fn range(&self, text: usize) -> std::ops::Range<usize> {
        self.offsets[text] as usize..self.offsets[text + 1] as usize
    }

    /// Adds up the weights of the texts that have a word, by class: `[word][class]`. `labels` are the classes of each text, one
    /// or several, and `weights` is what each text counts; `classes` is the number of classes. `words` has the words (ranks) of
    /// all texts.
    pub fn count(&self, labels: Sets, weights: &[f64], classes: usize) -> Result<Vec<f64>, Error> {
        let n_texts = self.texts();
        demand(
            labels.len() == n_texts && weights.len() == n_texts,
            "each text must have labels and a weight",
        )?;
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

    /// Returns how much each word of each text counts, in the order of `self.words`: the word's `scale`, `[word]`, times the root
    /// of how often it occurs in the text, divided so that the squares of a text's numbers sum to 1. `times` is how often, in the
    /// order of `self.words` (None: once). Text i has the words from `offsets[i]` to `offsets[i + 1]`.
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
        let mut values = vec![0.0; self.words.len()];
        let mut pieces = vec![]; // (texts, the numbers of their words)
        let mut later_pieces = &mut values[..]; // the numbers that are not in a piece yet
        for first_text in (0..self.texts()).step_by(PIECE) {
            let end_text = (first_text + PIECE).min(self.texts());
            let piece_words = (self.offsets[end_text] - self.offsets[first_text]) as usize;
            let (piece, after_piece) = later_pieces.split_at_mut(piece_words);
            pieces.push((first_text..end_text, piece));
            later_pieces = after_piece;
        }
        let threads = threads::worth(threads, self.words.len());
        threads::each(threads, &mut pieces, |_, (texts, values)| {
            let first_word = self.offsets[texts.start] as usize;
            for text in texts.clone() {
                let range = self.range(text); // of the text's words
                let values = &mut values[range.start - first_word..range.end - first_word];
                let text_times = times.map(|times| &times[range.clone()]);
                fill_values(&self.words[range], text_times, scale, values);
            }
        });
        Ok(values)
    }
}

/// Bags with ranks for words: where the words of each text begin, and the last ones end; the ranks; how often each word occurs;
/// and a hash of each text.
pub type RankedBags = (Vec<i64>, Vec<u32>, Vec<f64>, Vec<u64>);

/// Replaces the ids of words by ranks, and sorts each text by rank. `offsets` are where the `ids` of each text begin, and the
/// last ones end; `times` has how often each of them occurs in its text, and `ranks`, `[id]`, the rank of a word; a word with
/// `u32::MAX` is left out. Returns where the words of each text begin, and the last ones end; their ranks; how often each occurs;
/// and a hash of each text.
pub fn rank_words(
    offsets: &[i64],
    ids: &[i32],
    times: &[f64],
    ranks: &[u32],
    threads: usize,
) -> Result<RankedBags, Error> {
    let has_ends = offsets.first() == Some(&0) && offsets.last() == Some(&(ids.len() as i64));
    demand(has_ends && offsets.is_sorted(), "offsets must rise from 0 to the number of words")?;
    demand(times.len() == ids.len(), "each word must have times")?;
    demand(ids.iter().all(|&id| (id as usize) < ranks.len()), "each word must have a rank")?;
    let n_texts = offsets.len() - 1;
    let pieces = threads::ranges(threads::worth(threads, ids.len()), n_texts, PIECE, |texts| {
        // How many words each text has, their ranks and how often each occurs, and a hash of each text.
        let (mut sizes, mut words, mut occurrences, mut hashes) = (vec![], vec![], vec![], vec![]);
        let mut bag = vec![]; // a text's words: the rank and the place of each
        for text in texts {
            let range = offsets[text] as usize..offsets[text + 1] as usize; // of the text's ids
            let times = &times[range.clone()]; // how often each of the text's words occurs
            // The rank in the high bits and the word's place in the text in the low bits: integers are sorted fastest.
            bag.clear();
            let ranks_and_places =
                ids[range].iter().map(|&id| u64::from(ranks[id as usize])).zip(0_u64..);
            // Without the words that are left out.
            let used = ranks_and_places.filter(|(rank, _)| *rank != u64::from(u32::MAX));
            bag.extend(used.map(|(rank, place)| rank << 32 | place));
            bag.sort_unstable();
            // A seed whose bits look random; and an odd factor, below, that mixes each word in.
            let mut hash = 0x9e37_79b9_7f4a_7c15_u64;
            for &rank_and_place in &bag {
                // The word's rank, and how often it occurs.
                let (word, n_times) =
                    ((rank_and_place >> 32) as u32, times[rank_and_place as u32 as usize]);
                let word_and_times = u64::from(word) << 32 | u64::from((n_times as f32).to_bits());
                hash = (hash ^ word_and_times).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                hash ^= hash >> 29;
                words.push(word);
                occurrences.push(n_times);
            }
            hashes.push(hash);
            sizes.push(bag.len());
        }
        (sizes, words, occurrences, hashes)
    });
    let (mut starts, mut words, mut occurrences, mut hashes) = (vec![0], vec![], vec![], vec![]);
    for (sizes, piece_words, piece_occurrences, piece_hashes) in pieces {
        for size in sizes {
            starts.push(starts[starts.len() - 1] + size as i64);
        }
        words.extend(piece_words);
        occurrences.extend(piece_occurrences);
        hashes.extend(piece_hashes);
    }
    Ok((starts, words, occurrences, hashes))
}

/// Writes how much each of one text's `words` (their ranks) counts to `values`: the word's scale times the root of how often it
/// occurs, divided so that their squares sum to 1, or to 0 if every scale is 0. `times` has how often each of the text's words
/// occurs (None: once); `scale`, `[word]`, is that of all words.
fn fill_values(words: &[u32], times: Option<&[f64]>, scale: &[f32], values: &mut [f64]) {
    let mut squared_length = 0.0;
    for (i, (&word, value)) in words.iter().zip(&mut *values).enumerate() {
        // Of how often the word occurs.
        let root = times.map_or(1.0, |times| times[i].sqrt());
        *value = root * f64::from(scale[word as usize]);
        squared_length += *value * *value;
    }
    if squared_length > 0.0 {
        let one_over_length = 1.0 / squared_length.sqrt();
        values.iter_mut().for_each(|value| *value *= one_over_length);
    }
}

/// Bags with the value of each word: doubles to score texts, single precision to learn corrections.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a, T = f64> {
    bags: Bags<'a>,
    /// The value of each word of each text, in the order of `bags.words`.
    values: &'a [T],
}

impl<'a, T: Copy> Texts<'a, T> {
    /// Joins bags, the words of texts, and `values`, how much each word of each text counts, in the order of the bags' words; an
    /// error if these are more or fewer.
    pub fn new(bags: Bags<'a>, values: &'a [T]) -> Result<Self, Error> {
        demand(values.len() == bags.words.len(), "each word must have a value")?;
        Ok(Texts { bags, values })
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.bags.texts()
    }

    /// How many distinct words there may be.
    pub fn n_words(&self) -> usize {
        self.bags.n_words
    }

    /// The words of a text (their ranks), and how much each counts in it (its value).
    #[inline(always)]
    pub(super) fn each(&self, text: usize) -> impl Iterator<Item = (usize, T)> + '_ {
        let range = self.bags.range(text);
        let words = self.bags.words[range.clone()].iter().map(|&word| word as usize);
        words.zip(self.values[range].iter().copied())
    }
}

impl Texts<'_> {
    /// Returns the scores of texts, `[text][class]`: Σ value · row of the word over the words of a text, where the value is how
    /// much the word counts in the text. `table`, `[word][class]`, is the evidence of words for classes, and `classes` the number
    /// of classes.
    pub fn scores(&self, table: &[f32], classes: usize, threads: usize) -> Result<Vec<f64>, Error> {
        demand(
            classes > 0 && table.len() == self.bags.n_words * classes,
            "the table must have all words",
        )?;
        let mut scores = vec![0.0; self.len() * classes];
        let threads = threads::worth(threads, self.values.len());
        threads::pieces(threads, &mut scores, PIECE * classes, |piece, scores| {
            for (text, scores) in (piece * PIECE..).zip(scores.chunks_exact_mut(classes)) {
                for (word, value) in self.each(text) {
                    let row = &table[word * classes..(word + 1) * classes];
                    scores.iter_mut().zip(row).for_each(|(sum, &x)| *sum += value * f64::from(x));
                }
            }
        });
        Ok(scores)
    }

    /// Scores texts that are left out of the counts, `[text][class]`: Σ value · evidence of the word over the words of a text,
    /// where the value is how much the word counts. There are two tables of evidence, both `[word][class]`: `one_fewer`, in which
    /// one text fewer has the words, is for the classes that the text has, its `labels`, and `all_texts` for the classes that it
    /// does not have.
    pub fn left_out(
        &self,
        labels: Sets,
        [all_texts, one_fewer]: [&[f32]; 2],
        classes: usize,
        threads: usize,
    ) -> Result<Vec<f64>, Error> {
        demand(labels.len() == self.len(), "each text must have labels")?;
        demand(one_fewer.len() == all_texts.len(), "tables must be of one size")?;
        let mut scores = self.scores(all_texts, classes, threads)?;
        for (text, scores) in scores.chunks_exact_mut(classes).enumerate() {
            for &label in labels.of(text) {
                let evidence = |word: usize| f64::from(one_fewer[word * classes + label as usize]);
                let words = self.each(text); // (rank, how much it counts)
                scores[label as usize] = words.map(|(word, value)| value * evidence(word)).sum();
            }
        }
        Ok(scores)
    }
}

/// Texts whose words are corrected. `table` has Δ of each word and class and, beside it in memory, s²: `[word][Δ or s²][class]`.
/// Its last row belongs to no word: all texts have it, with the value `common`.
pub struct CorrectedTexts<'a> {
    pub texts: Texts<'a, f32>,
    /// The value of the last row of the table in every text.
    pub common: f32,
    /// Σ s² · value² over a text's words, `[text][class]`.
    pub text_variances: &'a [f32],
    /// `[word, or all texts][Δ or s²][class]`.
    pub table: &'a mut [f32],
    pub classes: usize,
}

impl CorrectedTexts<'_> {
    /// Refuses a table of corrections Δ and s², how much these may vary, `[word, or all texts][Δ or s²][class]`, and variances, Σ
    /// s² · value² over a text's words, `[text][class]`, that do not fit the texts.
    pub(super) fn check(&self) -> Result<(), Error> {
        let size = self.texts.len() * self.classes;
        demand(self.text_variances.len() == size, "text_variances must be texts × classes")?;
        let table_size = (self.texts.n_words() + 1) * 2 * self.classes;
        demand(self.table.len() == table_size, "the table must have all words")
    }
}

/// Corrected texts with `K` classes; 0: any number. The compiler unrolls loops of a length that it knows.
pub(super) struct OfClasses<'t, 'a, const K: usize>(pub(super) &'t mut CorrectedTexts<'a>);

impl<const K: usize> OfClasses<'_, '_, K> {
    /// How many classes there are.
    #[inline(always)]
    fn classes(&self) -> usize {
        if K > 0 { K } else { self.0.classes }
    }
}

impl<const K: usize> Corrections for OfClasses<'_, '_, K> {
    type Number = f32;

    /// Adds the corrections Δ of the words of text number `text` to `sums`, `[stored class]`, each times its value, how much the
    /// word counts in the text; and those of the last row of the table, which all texts have with the value `common`.
    #[inline(always)]
    fn sum(&self, text: usize, _place: usize, sums: &mut [f32]) {
        // The table is [word, or all texts][Δ or s²][class].
        let (n_classes, texts, table) = (self.classes(), &self.0.texts, &*self.0.table);
        for (word, value) in texts.each(text) {
            sum_word(&table[2 * word * n_classes..], value, sums);
        }
        sum_word(&table[2 * texts.n_words() * n_classes..], self.0.common, sums);
    }

    /// Σ s² · value² over the words of text number `text`, for a class, from `text_variances`, `[text][class]`.
    #[inline(always)]
    fn variance(&self, text: usize, class: usize) -> f64 {
        f64::from(self.0.text_variances[text * self.classes() + class])
    }

    /// Adds value · s² · step to the corrections Δ of the words of text number `text`, where the value is how much the word
    /// counts in the text, and to those of the last row of the table, which all texts have with the value `common`; `steps` are C
    /// (μ before − μ after), `[stored class]`.
    #[inline(always)]
    fn add(&mut self, text: usize, _place: usize, steps: &[f32]) {
        // The table is [word, or all texts][Δ or s²][class].
        let (n_classes, texts, table) = (self.classes(), &self.0.texts, &mut *self.0.table);
        for (word, value) in texts.each(text) {
            add_word(&mut table[2 * word * n_classes..], n_classes, value, steps);
        }
        add_word(&mut table[2 * texts.n_words() * n_classes..], n_classes, self.0.common, steps);
    }
}

/// Adds the corrections Δ of a word, times `value`, how much it counts in the text, to `sums`, the corrections of the text,
/// `[stored class]`. `table` begins with the word's row: Δ of each class, then how much it may vary.
#[inline(always)]
fn sum_word(table: &[f32], value: f32, sums: &mut [f32]) {
    let deltas = &table[..sums.len()];
    sums.iter_mut().zip(deltas).for_each(|(sum, delta)| *sum += value * delta);
}

/// Adds s² · value · step to the corrections Δ of a word, `[stored class]`. `table` begins with the word's row: Δ of each class,
/// then s², how much Δ may vary, of each class. `value` is how much the word counts in the text, `steps` are C (μ before − μ
/// after), `[stored class]`.
#[inline(always)]
fn add_word(table: &mut [f32], n_classes: usize, value: f32, steps: &[f32]) {
    let (deltas, variances) = table[..2 * n_classes].split_at_mut(n_classes);
    let (deltas, variances) = (&mut deltas[..steps.len()], &variances[..steps.len()]);
    for ((delta, variance), step) in deltas.iter_mut().zip(variances).zip(steps) {
        *delta += value * variance * step;
    }
}

/// Visits texts in `order`, their numbers. Improves `mu`, the probabilities of classes, `[text][class]`, and the corrections in
/// the table of `texts`, `[word, or all texts][Δ or s²][class]`, and returns the mean change of μ per text: its absolute changes,
/// summed over classes. `rows` has C times the weight of each text, and its scores before corrections, `[text][class]`.
pub fn ascend(
    texts: &mut CorrectedTexts,
    rows: &TrainingRows,
    order: &[u32],
    mu: &mut [f32],
) -> Result<f64, Error> {
    rows.check(texts.texts.len(), order, mu.len())?;
    texts.check()?;
    if rows.classes != 2 {
        return Ok(pass_of_many(&mut OfClasses::<0>(texts), rows, order, mu));
    }
    let change = pass_of_two(&mut OfClasses::<2>(texts), rows, order, mu);
    // Of each word Δ of both classes, of which the second is the opposite of the first, and s² of both.
    let (words_of_two_classes, _) = texts.table.as_chunks_mut::<4>();
    words_of_two_classes.iter_mut().for_each(|word| word[1] = -word[0]);
    Ok(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_reach_the_least_loss() {
        // Four texts of three words.
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
            // s², `[word or all texts][class]`; Σ s² · value², `[text][class]`.
            let variances: Vec<f32> = (0..4 * k).map(|i| 0.5 + own(i) as f32).collect();
            let mut own = vec![0.0; 4 * k];
            for text in 0..4 {
                for (word, x) in texts.each(text).chain([(3, 0.3)]) {
                    (0..k).for_each(|c| own[text * k + c] += x * x * variances[word * k + c]);
                }
            }
            let rows =
                TrainingRows { strengths: &[0.7; 4], offsets: &vec![0.1; 4 * k], classes: k };
            let mut mu = vec![0.0; 4 * k];
            labels.iter().enumerate().for_each(|(i, &y)| mu[i * k + y as usize] = 1.0);
            let mut table = vec![0.0; 8 * k];
            for (row, variances_of_word) in table.chunks_mut(2 * k).zip(variances.chunks(k)) {
                row[k..].copy_from_slice(variances_of_word);
            }
            for _ in 0..300 {
                let (own, table) = (&own, &mut table);
                let mut corrected =
                    CorrectedTexts { texts, common: 0.3, text_variances: own, table, classes: k };
                ascend(&mut corrected, &rows, &[0, 1, 2, 3], &mut mu).unwrap();
            }
            let table: Vec<f32> = table.chunks(2 * k).flat_map(|row| row[..k].to_vec()).collect();
            let mut scores = scored.scores(&table[..3 * k], k, 1).unwrap();
            for (i, score) in scores.iter_mut().enumerate() {
                *score += f64::from(0.3 * table[3 * k + i % k]);
            }
            for word in 0..4 {
                for c in 0..k {
                    // Δ = C s² Σ x (y − μ), μ = softmax(Δ x).
                    let mut expected = 0.0;
                    for text in 0..4 {
                        let own = &scores[text * k..(text + 1) * k];
                        let sum: f64 = own.iter().map(|z| z.exp()).sum();
                        let y = f64::from(u8::from(labels[text] as usize == c));
                        let each = texts.each(text).chain([(3, 0.3)]);
                        let x: f32 = each.filter(|x| x.0 == word).map(|x| x.1).sum();
                        expected += f64::from(x) * (y - own[c].exp() / sum);
                    }
                    expected *= 0.7 * f64::from(variances[word * k + c]);
                    assert!((f64::from(table[word * k + c]) - expected).abs() < 1e-4);
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
