//! Scores of texts: the weights of their words, added up.

use super::Sums;
use super::far::RowTerms;
use super::occurrences::{Occurrences, count_unknown};
use super::rough::Rough;
use super::urn::{Urn, log_rising};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::text::{Tokeniser, Tokens};
use crate::words::weights::{LANES, Line, Pairs, Place, Weights, demand_weights};
use crate::words::{self, Damping, Matrix, Texts};

/// How much a word that occurs n times in a text counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counting<'a> {
    /// n times, damped if the tokeniser is set so.
    Often,
    Once,
    /// √n times, or once, divided by the text's length, so that the squares of count times scale add up to 1 over all words that
    /// have weights.
    Unit {
        once: bool,
    },
    /// As n draws, or one, from an urn; `balls` is the total of all words' balls per class.
    Polya {
        balls: &'a [f64],
        once: bool,
    },
}

/// For a text in which word w counts `x[w]` times, adds `constant[c] + sum of x[w] * scale[w] * (row[w][c] + base[c])`, or the
/// logarithms of the draws. Words without weights are ignored. A missing text adds nothing.
#[derive(Debug)]
pub struct TextScores<'a> {
    pub(super) texts: Texts<'a>,
    tokeniser: &'a Tokeniser,
    words: &'a words::Words,
    weights: &'a Weights,
    /// `[class]`, as is `constant`.
    base: Option<&'a [f64]>,
    constant: &'a [f64],
    counting: Counting<'a>,
    /// Where the weights of each of a matrix's columns are; empty if texts are no matrix.
    column_places: Vec<Place>,
    /// The same weights in single precision, if there are such.
    rough_weights: Option<&'a Rough>,
}

/// Memory for one text.
#[derive(Default)]
pub(super) struct TextBuffers {
    tokens: Tokens,
    /// The word id of each token, or `UNKNOWN`; not filled if the text came with counts.
    ids: Vec<u32>,
    /// How often each distinct id occurs in `ids`.
    occurrences: Occurrences,
    /// The ids of the text's words and how much each counts.
    word_counts: Vec<(u32, f64)>,
    /// How often each distinct token occurs.
    token_counts: Vec<u32>,
    /// The weights of a word, or the cells of a matrix's row.
    row: Vec<f64>,
    urn: Urn,
    totals: Totals,
}

/// The sums over the words of a text.
#[derive(Default)]
struct Totals {
    /// The sum of count times scale times weight, by class, filled up to a multiple of cache lines.
    by_class: Vec<f64>,
    /// The sum of count times scale over all words.
    factors: f64,
    /// The sum of count times scale over the words that are kept by pairs, and that of count times scale times common number.
    pair_factors: f64,
    pair_commons: f64,
    impossible: ImpossibleClasses,
    /// Words that are not kept whole, and how much each counts: they are added last.
    pair_words: Vec<(Place, f64)>,
}

/// Which classes are at -inf because a word has no pair with them: sums of differences to -inf could not show it.
#[derive(Default)]
struct ImpossibleClasses {
    /// Words kept by pairs, and those among them whose common number is -inf.
    n_words: usize,
    n_infinite: usize,
    /// By class, the number of words that are not at -inf only because they have a pair.
    n_saved: Vec<usize>,
}

impl<'a> TextScores<'a> {
    /// Scores of texts, whose tokens `tokeniser` finds, by `weights`: for each class a weight of each of these `words`. `base`,
    /// `[class]`, is added to every weight (None: nothing), and `constant`, `[class]`, to every text's score; `counting` is how
    /// much a word counts that occurs n times. `rough_weights` are the same weights plus base in single precision, None if there
    /// are none. An error if arguments do not fit together: another number of classes, a base beside the balls of an urn, or a
    /// matrix that is counted otherwise or has more columns than there are words.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        texts: Texts<'a>,
        tokeniser: &'a Tokeniser,
        words: &'a words::Words,
        weights: &'a Weights,
        base: Option<&'a [f64]>,
        constant: &'a [f64],
        counting: Counting<'a>,
        rough_weights: Option<&'a Rough>,
        n_classes: usize,
    ) -> Result<Self, Error> {
        demand(weights.n_classes() == n_classes, "weights must have one number per class")?;
        for numbers in base.into_iter().chain([constant]) {
            demand_weights(numbers, n_classes)?;
        }
        if let Counting::Polya { balls, .. } = counting {
            demand(base.is_none(), "polya stands instead of base, not beside it")?;
            demand_weights(balls, n_classes)?;
            demand(balls.iter().all(|&x| x > 0.0), "polya must be positive")?;
        }
        let mut column_places = vec![]; // where the weights of each of a matrix's columns are
        if let Texts::Counted(matrix) = &texts {
            // Whether counts of words, and not just whether they occur, matter.
            let uses_counts = matches!(counting, Counting::Often | Counting::Unit { .. });
            demand(
                uses_counts && matrix.n_columns() <= words.n_columns(),
                "a matrix is counted as it is, and has no more columns than the words it is scored by",
            )?;
            // The id of each column's word plus 1; 0 if there is none.
            let ids = &words.columns()[..matrix.n_columns()];
            column_places.extend(ids.iter().map(|id| weights.place(id.wrapping_sub(1))));
        }
        Ok(TextScores {
            texts,
            tokeniser,
            words,
            weights,
            base,
            constant,
            counting,
            column_places,
            rough_weights,
        })
    }

    /// (matrix of counts, the weights of its columns in single precision, what is added to every text's score, `[class]`), if the
    /// texts are a matrix that can be scored with such weights; else None.
    pub(super) fn rough_scoring(&self) -> Option<(&Matrix<'a>, &Rough, &[f64])> {
        match (&self.texts, self.rough_weights) {
            (Texts::Counted(matrix), Some(rough_weights)) if self.counting == Counting::Often => {
                let fits = rough_weights.fits(matrix, self.constant.len());
                fits.then_some((matrix, rough_weights, self.constant))
            }
            _ => None,
        }
    }

    /// Adds the scores of texts, one in each row, to the sums, `[class][row]`; nothing for a missing text. `buffers` are memory
    /// for one text: its words, and the totals of their weights, `[class]`.
    pub(super) fn add(&self, sums: &mut Sums, buffers: &mut TextBuffers) -> Result<(), Error> {
        if let (Texts::Counted(matrix), Counting::Often) = (&self.texts, self.counting) {
            return self.add_matrix(matrix, sums, buffers);
        }
        for i in 0..sums.rows.len() {
            let row = sums.rows.row(i); // the number of the text
            if self.read(row, buffers)? {
                buffers.totals.clear(self.weights);
                self.add_text(buffers)?;
                self.add_totals(&buffers.totals, sums.of_row_mut(i));
            }
        }
        Ok(())
    }

    /// Adds the constant and a term, a number per class, for each word of the text in row number `row` to the text's terms;
    /// nothing if it is missing. A term is count * scale * (weight + base), or the logarithm of draws from an urn. `buffers` are
    /// memory for one text: `word_counts` has (word id, how much the word counts), `row` the weights of a word, `[class]`.
    pub(super) fn add_terms(
        &self,
        row: usize,
        buffers: &mut TextBuffers,
        terms: &mut RowTerms,
    ) -> Result<(), Error> {
        if !self.read(row, buffers)? {
            return Ok(());
        }
        self.count(buffers);
        terms.add(self.constant.iter().copied());
        let mut n_draws = 0.0; // from the urn
        buffers.row.resize(self.constant.len(), 0.0);
        // The id of each word, and how much the word counts.
        for &(id, count) in &buffers.word_counts {
            let Some(scale) = self.weights.read(id, &mut buffers.row) else {
                continue;
            };
            n_draws += count;
            let weights = buffers.row.iter(); // of the word, [class]
            let factor = count * scale;
            match (self.counting, self.base) {
                // The weights are the word's balls in the urn of each class.
                (Counting::Polya { .. }, _) => {
                    terms.add(weights.map(|&balls| log_rising(balls, count as u64)));
                }
                (_, Some(base)) if factor != 0.0 => {
                    terms.add(weights.zip(base).map(|(weight, base)| factor * (weight + base)));
                }
                (_, None) if factor != 0.0 => terms.add(weights.map(|weight| factor * weight)),
                _ => {}
            }
        }
        // The total of all words' balls in the urn of each class.
        if let Counting::Polya { balls, .. } = self.counting {
            terms.add(balls.iter().map(|&balls| -log_rising(balls, n_draws as u64)));
        }
        Ok(())
    }

    /// Adds the scores of the rows of a matrix of counts, each a text, to the sums, `[class][row]`. A cell that the matrix
    /// refuses is an error. The buffers are memory for the sums over a text's words, `totals`, and for the cells of a row.
    fn add_matrix(
        &self,
        matrix: &Matrix,
        sums: &mut Sums,
        TextBuffers { totals, row: buffer, .. }: &mut TextBuffers,
    ) -> Result<(), Error> {
        let places = &self.column_places; // where the weights of the word of each column are
        for i in 0..sums.rows.len() {
            let row = sums.rows.row(i); // in the matrix
            totals.clear(self.weights);
            let cells = matrix.row(row, buffer); // of the row: counts, and their columns if it is sparse
            match cells.columns {
                Some(columns) => {
                    let row_places = columns.iter().map(|&column| places[column as usize]);
                    self.add_places(row_places.zip(cells.values()), totals);
                }
                None => self.add_places(places.iter().copied().zip(cells.values()), totals),
            }
            // The sum of counts times scales: NaN if a count is.
            if totals.factors.is_nan() {
                return Err(matrix.refused(row));
            }
            self.add_totals(totals, sums.of_row_mut(i));
        }
        Ok(())
    }

    /// Reads the text in row number `row` into the buffers: the word id of each of its tokens, in `ids`, or the id and count of
    /// each of its words, in `word_counts`, if it came with these. Returns false if the text is missing.
    fn read(&self, row: usize, buffers: &mut TextBuffers) -> Result<bool, Error> {
        // The buffer is for the cells of a matrix's row.
        let TextBuffers { tokens, ids, word_counts, row: buffer, .. } = buffers;
        if let Texts::Counted(matrix) = &self.texts {
            word_counts.clear();
            let ids_of_columns = self.words.columns(); // the id of each column's word plus 1; 0: no word
            matrix.each_of(row, buffer, |column, count| {
                word_counts.push((ids_of_columns[column as usize].wrapping_sub(1), count));
            })?;
            return Ok(true);
        }
        // Texts that were turned into word ids before.
        if let Texts::Encoded(texts) = &self.texts {
            // Ids of words, and how often each occurs; without counts, an id for every token.
            let Some((text_ids, counts)) = texts.get(row) else {
                return Ok(false);
            };
            ids.clear();
            word_counts.clear();
            let text_ids = text_ids.iter().map(|&id| id as u32);
            match counts {
                None => ids.extend(text_ids),
                Some(counts) if self.counts_occurrences() => {
                    word_counts.extend(text_ids.zip(counts.iter().map(|&count| f64::from(count))));
                }
                Some(counts) => {
                    for (id, &count) in text_ids.zip(counts) {
                        ids.extend(std::iter::repeat_n(id, count as usize));
                    }
                }
            }
            return Ok(true);
        }
        // Splits the text into tokens, and finds the word id of each.
        self.words.find_text(&self.texts, row, self.tokeniser, tokens, ids)
    }

    /// Whether a word that occurs n times counts n.
    fn counts_occurrences(&self) -> bool {
        self.counting == Counting::Often && !self.tokeniser.is_damped()
    }

    /// Adds the weights of the words of the text that was read to the totals in `buffers`, by class. The buffers have the word id
    /// of each token, `ids`, or `word_counts`, (word id, how much the word counts).
    fn add_text(&self, buffers: &mut TextBuffers) -> Result<(), Error> {
        if let Counting::Polya { balls, once } = self.counting {
            buffers.occurrences.count(&buffers.ids);
            return self.add_draws(balls, once, buffers);
        }
        if self.counts_occurrences() && !self.has_counts(buffers) {
            let words = buffers.ids.iter().map(|&id| (id, 1.0)); // each token counts 1
            self.add_words(words, &mut buffers.totals);
            return Ok(());
        }
        self.count(buffers); // fills `word_counts`: (id, how much it counts)
        self.add_words(buffers.word_counts.iter().copied(), &mut buffers.totals);
        Ok(())
    }

    /// Whether the text that was read into `buffers` came with counts of its words that can be used as they are.
    fn has_counts(&self, buffers: &TextBuffers) -> bool {
        match self.texts {
            Texts::Counted(_) => true,
            // Filled when the text was read.
            Texts::Encoded(_) => !buffers.word_counts.is_empty(),
            _ => false,
        }
    }

    /// Writes the id of each distinct word of the text that was read, and how much the word counts, to `word_counts` in the
    /// buffers. They have the id of each token, `ids`, or the counts of words already.
    fn count(&self, buffers: &mut TextBuffers) {
        if let Counting::Unit { once } = self.counting {
            return self.count_unit(once, buffers);
        }
        if self.has_counts(buffers) {
            return;
        }
        buffers.occurrences.count(&buffers.ids);
        if self.counting == Counting::Often {
            return self.damp(buffers);
        }
        // Whether a word counts 1 however often it occurs.
        let once = matches!(self.counting, Counting::Once | Counting::Polya { once: true, .. });
        let words = buffers.occurrences.iter(); // (id, how often it occurs)
        let word_counts = words.map(|(id, n)| (id, if once { 1.0 } else { f64::from(n) }));
        buffers.word_counts.clear();
        buffers.word_counts.extend(word_counts);
    }

    /// Writes to `word_counts` in the buffers the ids of the text's words that have weights, and how much each counts so that the
    /// text has length 1: √n or, if `once`, 1 for a word that occurs n times, over the length by which squares of count times
    /// scale sum to 1.
    fn count_unit(&self, once: bool, buffers: &mut TextBuffers) {
        if !self.has_counts(buffers) {
            buffers.occurrences.count(&buffers.ids);
            let words = buffers.occurrences.iter(); // (id, how often it occurs)
            buffers.word_counts.clear();
            buffers.word_counts.extend(words.map(|(id, n)| (id, f64::from(n))));
        }
        let mut squared_length = 0.0; // of the text
        buffers.word_counts.retain_mut(|(id, count)| {
            // None: the word has no weights.
            let Some(scale) = self.weights.scale(*id).filter(|_| *count > 0.0) else {
                return false;
            };
            *count = if once { 1.0 } else { count.sqrt() };
            squared_length += (*count * scale) * (*count * scale);
            true
        });
        if squared_length > 0.0 {
            let length = squared_length.sqrt();
            buffers.word_counts.iter_mut().for_each(|(_, count)| *count /= length);
        }
    }

    /// Writes to `word_counts` in the buffers the id of each word and how much it counts: n or log(1 + n) for n `occurrences`,
    /// divided by the Euclidean length over all tokens if the tokeniser is set so.
    fn damp(&self, buffers: &mut TextBuffers) {
        let damping = Damping::of(self.tokeniser); // turns n into n or log(1 + n)
        // How often each distinct token occurs, if the text's length matters.
        buffers.token_counts.clear();
        if self.tokeniser.settings().length {
            buffers.token_counts.extend(buffers.occurrences.iter().map(|(_, n)| n));
            // Encoded texts have no unknown words: their tokens are empty.
            count_unknown(&buffers.tokens, &buffers.ids, &mut buffers.token_counts);
        }
        let length = damping.length(&mut buffers.token_counts); // 1 if lengths do not matter
        let words = buffers.occurrences.iter(); // (id, how often it occurs)
        buffers.word_counts.clear();
        buffers.word_counts.extend(words.map(|(id, n)| (id, damping.damp(n) / length)));
    }

    /// Adds the weights of words, each times its count, to the totals of a text, by class. `words` are (word id, how much it
    /// counts).
    fn add_words(&self, words: impl Iterator<Item = (u32, f64)>, totals: &mut Totals) {
        self.add_places(words.map(|(id, count)| (self.weights.place(id), count)), totals);
    }

    /// Adds the weights of words, each times its count and the word's scale, to the totals of a text, by class. `words` are
    /// (where the word's weights are, how much it counts).
    #[inline(always)]
    fn add_places(&self, words: impl Iterator<Item = (Place, f64)>, totals: &mut Totals) {
        // [word][class], in cache lines, and last the word's scale: of words that are not kept by pairs of class and weight.
        let table = self.weights.whole();
        // With the totals in registers, 3,000 texts of 150 words took 2.7 instead of 4.2 ms for two classes, 2.5 instead of
        // 8.3 ms for ten, and 3.6 instead of 18.5 ms for twenty.
        match self.weights.lines() {
            1 => totals.add_lines::<1>(table, words),
            2 => totals.add_lines::<2>(table, words),
            3 => totals.add_lines::<3>(table, words),
            4 => totals.add_lines::<4>(table, words),
            5 => totals.add_lines::<5>(table, words),
            _ => totals.add_any(self.weights, words),
        }
        totals.add_pair_words(self.weights);
    }

    /// Adds to the totals in the buffers the logarithms of drawing each word as often as it occurs, or once if `once`, and
    /// subtracts those of as many draws from `balls`, the total of all words' balls per class. The weights of a word are its
    /// balls in the urn of each class; a negative one is an error. The buffers have how often each word occurs, and memory for a
    /// word's weights and, in `urn`, for products of chances, `[class]`, whose logarithms are not yet in the totals.
    fn add_draws(&self, balls: &[f64], once: bool, buffers: &mut TextBuffers) -> Result<(), Error> {
        let TextBuffers { occurrences, row, urn, totals, .. } = buffers;
        row.resize(balls.len(), 0.0); // the balls of a word, [class]
        urn.begin(balls.len());
        let mut n_draws = 0; // of all words
        for (id, n) in occurrences.iter() {
            if self.weights.read(id, row).is_some() {
                demand(
                    row.iter().all(|&x| x >= 0.0),
                    "weights must not be negative where polya is given",
                )?;
                let n = if once { 1 } else { n };
                urn.draw(row, n, &mut totals.by_class);
                n_draws += u64::from(n);
            }
        }
        urn.end(&mut totals.by_class);
        for (total, &balls) in totals.by_class.iter_mut().zip(balls) {
            *total -= log_rising(balls, n_draws);
        }
        Ok(())
    }

    /// Adds a text's totals over its words to its sums, `[class]`: the sum of count times scale times weight by class, and what
    /// words kept by pairs have in every class: `pair_commons`, the sum of count times scale times the word's common number, and
    /// the class's default times `pair_factors`, the sum of count times scale over these words. `factors` is that sum over all
    /// words, `constant` and `base`, both `[class]`, what is added to every text's score and to every weight.
    fn add_totals<'s>(&self, totals: &Totals, sums: impl Iterator<Item = &'s mut f64>) {
        for (class, (sum, &constant)) in sums.zip(self.constant).enumerate() {
            let mut total = totals.by_class[class] + constant;
            if totals.pair_factors != 0.0 || totals.pair_commons != 0.0 {
                // What words without a pair for this class have beside their common number.
                let default = self.weights.default()[class];
                total += totals.pair_commons + totals.pair_factors * zero_if_infinite(default);
                if totals.impossible.contains(class, default) {
                    total = f64::NEG_INFINITY;
                }
            }
            if let Some(base) = self.base
                && totals.factors != 0.0
            {
                total += totals.factors * base[class];
            }
            *sum += total;
        }
    }
}

/// x, or 0 for -inf.
#[inline(always)]
fn zero_if_infinite(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { 0.0 } else { x }
}

impl Totals {
    /// Sets all totals of a text to 0, for as many classes as the weights have, and empties the list of words kept by pairs. The
    /// totals are sums over words: of count times scale times weight by class (`by_class`), of count times scale (`factors`), of
    /// the same over words kept by pairs (`pair_factors`), and times their common numbers (`pair_commons`); and `impossible`, how
    /// many words are kept by pairs, how many of them have a common number of -inf, and by class how many a pair saves from -inf.
    fn clear(&mut self, weights: &Weights) {
        self.by_class.clear();
        self.by_class.resize(weights.lines() * LANES, 0.0);
        (self.factors, self.pair_factors, self.pair_commons) = (0.0, 0.0, 0.0);
        (self.impossible.n_words, self.impossible.n_infinite) = (0, 0);
        self.impossible.n_saved.clear();
        self.pair_words.clear();
    }

    /// Adds the weights of words to the totals of a text, by class, each times the word's count and scale, with the totals in
    /// registers. `words` are (the number of the word's row in `table`, count), and a row, `LINES` cache lines, has the word's
    /// weight for each class and at the end its scale. Words that have no row there go to `pair_words`.
    #[inline(always)]
    fn add_lines<const LINES: usize>(
        &mut self,
        table: &[Line],
        words: impl Iterator<Item = (Place, f64)>,
    ) {
        wide!({
            let (table, _) = table.as_chunks::<LINES>(); // [word]
            let mut totals = [[0.0; LANES]; LINES]; // by class
            let mut total_factor = 0.0; // the sum of count times scale over the words
            for (place, count) in words {
                let Some(row) = table.get(place as usize) else {
                    self.pair_words.push((place, count));
                    continue;
                };
                // The row's last number is the word's scale.
                let factor = count * row[LINES - 1].0[LANES - 1];
                if factor != 0.0 {
                    total_factor += factor;
                    for (totals, line) in totals.iter_mut().zip(row) {
                        for (total, weight) in totals.iter_mut().zip(&line.0) {
                            *total += factor * weight;
                        }
                    }
                }
            }
            self.factors = total_factor;
            self.by_class.copy_from_slice(totals.as_flattened());
        });
    }

    /// Adds the weights of words to the totals of a text, each times the word's count and scale. `words` are (place of the word's
    /// weights, count). Words whose weights are not in one row, with a weight for every class, go to `pair_words`.
    #[inline(always)]
    fn add_any(&mut self, weights: &Weights, words: impl Iterator<Item = (Place, f64)>) {
        wide!({
            for (place, count) in words {
                match weights.whole_row(place) {
                    Some(row) => self.add_whole(row, count),
                    None => self.pair_words.push((place, count)),
                }
            }
        });
    }

    /// Adds the weights of a word, times its count and scale, to the totals of a text, by class. `row`, cache lines, has the
    /// word's weight for each class, and last the scale; `factors` is the sum of count times scale over all words.
    #[inline(always)]
    fn add_whole(&mut self, row: &[Line], count: f64) {
        let scale = row.last().map_or(0.0, |line| line.0[LANES - 1]);
        let factor = count * scale;
        if factor != 0.0 {
            self.factors += factor;
            // Eight classes in each line.
            let (totals, _) = self.by_class.as_chunks_mut::<LANES>();
            for (totals, line) in totals.iter_mut().zip(row) {
                for (total, weight) in totals.iter_mut().zip(&line.0) {
                    *total += factor * weight;
                }
            }
        }
    }

    /// Adds to the totals of a text the words in `pair_words`, (place of the word's weights, count), that are kept by pairs of
    /// class and weight; words without weights add nothing.
    fn add_pair_words(&mut self, weights: &Weights) {
        let words = std::mem::take(&mut self.pair_words); // (place of the weights, count)
        // Loads all words into the cache side by side, before the loop below needs them one after the other.
        // The numbers themselves have no meaning here.
        let touched = words.iter().map(|&(place, _)| weights.touch(place));
        std::hint::black_box(touched.fold(0, |bits, n| bits ^ n));
        let default = weights.default(); // beside the common number in classes without a pair, [class]
        let is_default_infinite = default.contains(&f64::NEG_INFINITY);
        for &(place, count) in &words {
            match weights.pairs(place) {
                None => {}
                // The pairs of the word, its scale, and its common number, which other classes have plus their default.
                Some(row) if is_default_infinite || row.common == f64::NEG_INFINITY => {
                    self.add_pairs::<true>(&row, count, default);
                }
                Some(row) => self.add_pairs::<false>(&row, count, default),
            }
        }
        self.pair_words = words;
    }

    /// Adds a word that is kept by pairs, times its count and scale, to the totals of a text. `row` has the word's pairs, each a
    /// class and the word's weight for it, its scale, and its common number: classes without a pair have this plus `default`,
    /// `[class]`. `INFINITE`: the common number or a default may be -inf. `by_class` takes only the differences to what every
    /// class has.
    #[inline(always)]
    fn add_pairs<const INFINITE: bool>(&mut self, row: &Pairs, count: f64, default: &[f64]) {
        let factor = count * row.scale;
        if factor == 0.0 {
            return;
        }
        // x, with 0 for -inf: which classes these make impossible is counted apart.
        let finite = |x: f64| if INFINITE { zero_if_infinite(x) } else { x };
        let common = finite(row.common);
        // Sums of factors over all words and over those kept by pairs, and of factors times common numbers.
        self.factors += factor;
        self.pair_factors += factor;
        self.pair_commons += factor * common;
        if INFINITE {
            // Words kept by pairs, those with a common number of -inf, and those that a pair saves from -inf, by class.
            self.impossible.n_words += 1;
            self.impossible.n_infinite += usize::from(row.common < common);
            self.impossible.n_saved.resize(default.len(), 0);
        }
        for (class, weight) in row.iter() {
            if INFINITE {
                let without_pair = row.common + default[class];
                let is_saved = without_pair == f64::NEG_INFINITY;
                self.impossible.n_saved[class] += usize::from(is_saved);
            }
            self.by_class[class] += factor * (weight - (common + finite(default[class])));
        }
    }
}

impl ImpossibleClasses {
    /// Whether a class is impossible because a word is at -inf in it. `default` is what words without a pair for the class have
    /// in it beside their common number. Of the words kept by pairs, `n_words` in all, `n_infinite` have a common number of -inf;
    /// `n_saved`, `[class]`, are not at -inf only because they have a pair.
    fn contains(&self, class: usize, default: f64) -> bool {
        // Words that are at -inf in this class unless a pair saves them.
        let n_infinite = if default == f64::NEG_INFINITY { self.n_words } else { self.n_infinite };
        self.n_saved.get(class).is_some_and(|&n_saved| n_saved < n_infinite)
    }
}
