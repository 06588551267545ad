//! Counts texts.
//!
//! Threads read chunks of texts and look their tokens up in the vocabulary; new words get numbers. Then the texts of each class are
//! added up, and the sums are added to the store. Sums are exact, so neither the number of threads nor the cuts change them.

use super::class_sums::{ClassSums, RowOrder, RowsToSum};
use super::index::{UNKNOWN, Vocabulary};
use super::number::{self, Unknown};
use super::store::Unit;
use super::text_rows::{Damping, TextRows};
use super::{TOO_LARGE, Texts, Words};
use crate::classes::{Rows, Sets, Weights};
use crate::error::{Error, Number, demand, fit};
use crate::integers::PARTS;
use crate::text::{Tokeniser, Tokens};
use crate::threads;
use std::ops::Range;

/// The least and the most of something that is cut to size.
#[derive(Clone, Copy)]
struct Limits {
    least: usize,
    most: usize,
}

/// How texts are cut, in bytes of tokens, n-grams included. Only time and memory depend on this.
///
/// Measured: processor time of two threads that count the training posts of 20 Newsgroups, words (218 ms) and words with pairs
/// (1,097 ms).
#[derive(Clone, Copy)]
struct Cut {
    /// The least and the most that a thread takes at a time. An eighth of both, or eight times as much, takes the same time within
    /// 5 % for 8,000 texts of 150 words, and so it is with jobs.
    chunk: Limits,
    /// What one thread reads first, so that the others have words to look up. 32 and 256 KB take the same time within 2 %.
    first: usize,
    /// What is looked up in one state of the vocabulary: at first, and at most. A wave is twice as large as the one before.
    /// Beginning with 8 MB instead of 1 MB takes 1 % more for words and 8 % less for pairs; at most 8 or 64 MB take the same time
    /// within 3 %.
    wave: Limits,
    /// The most that is looked up while many words are new: 2 and 16 MB take the same time within 6 %.
    new: usize,
    /// What is read before it is added up, whose numbers are in memory together. 16 MB take 13 % more than 96 MB for pairs, and
    /// the same for words.
    round: usize,
    /// The least and the most tokens of one class that a thread adds up at a time.
    job: Limits,
}

const CUT: Cut = Cut {
    chunk: Limits { least: 1 << 15, most: 1 << 19 },
    first: 1 << 18,
    wave: Limits { least: 1 << 20, most: 1 << 26 },
    new: 1 << 24,
    round: 96 << 20,
    job: Limits { least: 1 << 18, most: 1 << 20 },
};

/// Chunks of a wave that each thread takes, so that the last one is short. 2 take 8 to 11 % less processor time than 8.
const CHUNKS: usize = 8;
/// Jobs that each thread takes where texts are added up: the last to finish is waited for by all. Counting the words of 20
/// Newsgroups took 182, 204 and 220 ms of processor time with 1, 4 and 16, no more apart than two measurements of one of them.
const JOBS: usize = 4;

/// New words are many if they are more than one in so many tokens: then words are not looked up first. Never looking up takes 277
/// ms instead of 218 for words, but 1,004 instead of 1,097 for pairs.
const MANY: usize = 4;

/// Waves grow while words that are new are fewer than one in so many tokens: wherever one occurs in its wave it is noted and
/// numbered. Of pairs one in eight is new, and large waves took 1.7 times as long.
const FEW: usize = 16;

/// So many bytes may have many words. Fewer are numbered in one table. 20 Newsgroups took 200 to 209 ms with 2^10 and 2^18, and
/// 189 ms of processor time unsplit, in which one thread numbers all new words.
const SPLIT: usize = 1 << 18;

/// A text of so many tokens is refused, so that 32 bits can count them.
const MOST_TOKENS: usize = 1 << 31;
const TOO_LONG: &str = "a text has 2**31 tokens or more; cut it into smaller ones";

/// Texts to be counted, their classes and weights.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub tokeniser: &'a Tokeniser,
    pub texts: &'a Texts<'a>,
    pub rows: Rows<'a>,
    /// Further classes of each row; none if each row has one class.
    pub more: Option<Sets<'a>>,
}

impl Batch<'_> {
    /// Refuses a batch whose arrays have different lengths, or whose number of classes is not that of the store `words`: one
    /// text, one class (in `rows`) and, if there are further classes (`more`), one set of these per row.
    fn check(&self, words: &Words) -> Result<(), Error> {
        if self.texts.len() != self.rows.len() {
            return Err(Error::malformed(format!(
                "there are {} classes for {} texts",
                self.rows.len(),
                self.texts.len()
            )));
        }
        demand(self.rows.n_classes == words.n_classes(), "classes must be those of the words")?;
        demand(
            self.more.is_none_or(|more| more.len() == self.rows.len()),
            "each row must have a set of further classes",
        )
    }

    /// The unit of the counts of these texts: parts if weights are fractional or the tokeniser damps counts, else ones.
    pub(super) fn unit(&self) -> Unit {
        match self.rows.weights {
            Weights::Parts(_) => Unit::Part,
            _ if self.tokeniser.is_damped() => Unit::Part,
            _ => Unit::One,
        }
    }

    /// The classes of the row with the number `row`, which must have one: first the one in `rows`, then those in `more`.
    pub(super) fn classes(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let further_classes = self.more.map_or(&[][..], |more| more.of(row));
        std::iter::once(&self.rows.classes[row]).chain(further_classes).map(|&class| class as u32)
    }

    /// The weight of the row with the number `row`, in rows, rounded up.
    pub(super) fn whole_weight(&self, row: usize) -> u64 {
        match self.rows.weights {
            Weights::Parts(_) => self.rows.weight(row).div_ceil(u128::from(PARTS)) as u64,
            _ => self.rows.weight(row) as u64,
        }
    }

    /// The numbers of the rows that have a class.
    fn classified_rows(&self) -> impl Iterator<Item = usize> {
        (0..self.texts.len()).filter(|&row| self.rows.classes[row] >= 0)
    }

    /// The weight of the row with the number `row`, in rows, rounded up, times the number of its classes.
    fn weight_in_all_classes(&self, row: usize) -> u128 {
        u128::from(self.whole_weight(row)) * self.classes(row).count() as u128
    }

    /// Refuses texts that are too long, and sums that would be too large, before anything is changed. The store has `old_texts`
    /// texts and `old_occurrences` occurrences already, in all classes together.
    fn check_size(&self, old_texts: u64, old_occurrences: u64) -> Result<(), Error> {
        let tokens_per_byte = self.tokens_per_byte() as u128;
        // With those of the batch, in ones: the number of texts, and a bound of the number of occurrences.
        let (mut texts, mut most_occurrences) =
            (u128::from(old_texts), u128::from(old_occurrences));
        let mut longest = 0; // in bytes
        for row in self.classified_rows() {
            let size = self.texts.size(row); // of the row's text, in bytes
            let weight = self.weight_in_all_classes(row); // of the row
            most_occurrences += weight * size as u128 * tokens_per_byte;
            texts += weight;
            longest = longest.max(size);
        }
        fit(texts < u128::from(TOO_LARGE), "there are more than 2**63 - 1 texts")?;
        let may_be_too_long = longest as u128 * tokens_per_byte >= MOST_TOKENS as u128 / 2;
        if may_be_too_long || most_occurrences >= u128::from(TOO_LARGE) {
            fit(
                u128::from(old_occurrences) + self.occurrences()? < u128::from(TOO_LARGE),
                "there are more than 2**63 - 1 occurrences",
            )?;
        }
        Ok(())
    }

    /// Counts the tokens of all texts that have a class, those of each text times its weight and the number of its classes.
    fn occurrences(&self) -> Result<u128, Error> {
        // The tokens of one text; the sum over all texts.
        let (mut tokens, mut occurrences) = (Tokens::default(), 0);
        for row in self.classified_rows() {
            if self.read(row, &mut tokens)? {
                demand(tokens.len() < MOST_TOKENS, TOO_LONG)?;
                occurrences += self.weight_in_all_classes(row) * tokens.len() as u128;
            }
        }
        Ok(occurrences)
    }

    /// The numbers of the fewest rows from `first` on whose texts have at least `bytes` bytes together, or of all rows from
    /// `first` to `end` (which is not one of them) if these have fewer. One byte per text is added.
    fn rows(&self, first: usize, end: usize, bytes: usize) -> Range<usize> {
        let mut rows = first..first;
        let mut size = 0; // of these rows, in bytes
        while rows.end < end && size < bytes {
            size += self.texts.size(rows.end) + 1;
            rows.end += 1;
        }
        rows
    }

    /// Cuts the text of the row with the number `row` into `tokens`; returns false if the text is missing or the row has no
    /// class.
    #[inline(always)]
    fn read(&self, row: usize, tokens: &mut Tokens) -> Result<bool, Error> {
        if self.rows.classes[row] < 0 {
            return Ok(false);
        }
        self.texts.read(row, self.tokeniser, tokens)
    }

    /// The error of subtracting the row with the number `row` although one of its words was never counted: the word of its
    /// token number `token`. The error names the word and the class, and how much of the word is missing: its occurrences in
    /// the row times the row's weight, as a number below zero.
    fn not_there(&self, row: usize, token: usize) -> Result<Error, Error> {
        let mut tokens = Tokens::default();
        self.read(row, &mut tokens)?;
        let word = tokens.get(token); // in bytes
        let times = (0..tokens.len()).filter(|&i| tokens.get(i) == word).count() as u64; // that the text has the word
        Ok(Error::NotThere {
            word: Some(word.to_vec()),
            class: self.rows.classes[row] as usize,
            remainder: match self.unit() {
                Unit::One => Number::Whole(-i128::from(times * self.whole_weight(row))),
                Unit::Part => Number::Real(
                    -(times as f64) * self.rows.weight_in_parts(row) as f64 / PARTS as f64,
                ),
            },
        })
    }

    /// The most tokens that begin with a byte of text: one for each length of n-grams.
    fn tokens_per_byte(&self) -> usize {
        let settings = self.tokeniser.settings();
        usize::from(settings.longest - settings.shortest) + 1
    }
}

/// The tokens of some rows as numbers of words.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The numbers of the tokens' words, text after text.
    pub(super) ids: Vec<u32>,
    /// The rows that are counted, and where in `ids` the numbers of their words end.
    texts: Vec<(usize, usize)>,
    /// The tokens whose words have no number.
    pub(super) unknown: Unknown,
}

impl Chunk {
    /// Reads those of the rows of a batch that have a class and a text into a new chunk. `number`, called with the chunk and
    /// the tokens of a text, appends the numbers of the tokens' words to the chunk's `ids`. `unknown` is an empty list with
    /// room for tokens whose words have no number.
    fn gather(
        batch: &Batch,
        rows: Range<usize>,
        unknown: Unknown,
        mut number: impl FnMut(&mut Chunk, &Tokens) -> Result<(), Error>,
    ) -> Result<Chunk, Error> {
        let (mut chunk, mut tokens) = (Chunk { unknown, ..Chunk::default() }, Tokens::default());
        for row in rows {
            if batch.read(row, &mut tokens)? {
                number(&mut chunk, &tokens)?;
                demand(chunk.ids.len() <= MOST_TOKENS, TOO_LONG)?;
                chunk.texts.push((row, chunk.ids.len())); // the row, and where in `ids` the numbers of its words end
            }
        }
        Ok(chunk)
    }

    /// Reads rows of a batch into a chunk, with the numbers of their words in the vocabulary, and notes the tokens whose words
    /// have no number. If not `looks_up`, no word is looked up, and all tokens are noted.
    fn read(
        vocabulary: &Vocabulary,
        batch: &Batch,
        rows: Range<usize>,
        looks_up: bool,
    ) -> Result<Chunk, Error> {
        let bytes: usize = rows.clone().map(|row| batch.texts.size(row)).sum(); // of the texts of all rows
        // A word takes six bytes or so. There is room for a token in five bytes, since tables get unequal numbers of tokens.
        let expected_tokens = if looks_up { 0 } else { bytes * batch.tokens_per_byte() / 5 };
        let unknown = Unknown::with_room(vocabulary, expected_tokens);
        Chunk::gather(batch, rows, unknown, |chunk, tokens| {
            let start = chunk.ids.len(); // where the numbers of this text's words begin
            if !looks_up {
                chunk.ids.resize(start + tokens.len(), UNKNOWN);
            }
            if !looks_up || vocabulary.find_each(tokens, &mut chunk.ids) {
                chunk.unknown.note(vocabulary, tokens, &chunk.ids, start);
            }
            Ok(())
        })
    }

    /// Reads rows of a batch into a chunk, with the numbers of their words in the vocabulary; new words get the next numbers.
    fn read_new(
        vocabulary: &mut Vocabulary,
        batch: &Batch,
        rows: Range<usize>,
    ) -> Result<Chunk, Error> {
        let none_unknown = Unknown::default(); // all words get numbers
        Chunk::gather(batch, rows, none_unknown, |chunk, tokens| {
            vocabulary.number_each(tokens, &mut chunk.ids)
        })
    }

    /// The numbers of the rows that are counted, each with the numbers of its tokens' words.
    pub fn texts(&self) -> impl Iterator<Item = (usize, &[u32])> {
        // Where in `ids` the numbers of each text's words begin.
        let starts = std::iter::once(0).chain(self.texts.iter().map(|&(_, end)| end));
        let ranges = self.texts.iter().zip(starts);
        ranges.map(|(&(row, end), start)| (row, &self.ids[start..end]))
    }
}

/// Reads texts round by round.
struct Reader<'a> {
    batch: Batch<'a>,
    cut: Cut,
    threads: usize,
    /// The next row to be read.
    next: usize,
    /// The row after the round.
    end: usize,
    /// How many bytes of tokens the next wave reads.
    wave_bytes: usize,
    /// Whether to look words up first, as most of them are likely to have a number.
    looks_up: bool,
}

impl<'a> Reader<'a> {
    /// A reader before the first row of a batch, which it will read on so many threads. `cut` says how many bytes are read at a
    /// time. The first wave is the smallest, and its words are looked up.
    fn new(batch: Batch<'a>, cut: Cut, threads: usize) -> Self {
        Reader { batch, cut, threads, next: 0, end: 0, wave_bytes: cut.wave.least, looks_up: true }
    }

    /// About how many bytes of text have tokens that take `token_bytes` bytes together.
    fn text_bytes(&self, token_bytes: usize) -> usize {
        // Every character begins an n-gram, but only one in about six begins a word.
        let characters = self.batch.tokeniser.settings().characters; // whether n-grams are of characters, not words
        token_bytes / (self.batch.tokens_per_byte() * if characters { 6 } else { 1 })
    }

    /// Begins the next round: makes `end` the row after it; returns false if no rows are left.
    fn begin(&mut self) -> bool {
        let n_rows = self.batch.texts.len();
        let round = self.batch.rows(self.next, n_rows, self.text_bytes(self.cut.round)); // rows
        self.end = round.end;
        !round.is_empty()
    }

    /// Reads a round, the rows from `next` to `end`, wave by wave and gives new words numbers in the vocabulary. Returns the
    /// chunks in the order of rows. `self.cut` has the least and the most bytes of tokens of a chunk and of a wave.
    fn read(&mut self, vocabulary: &mut Vocabulary) -> Result<Vec<Chunk>, Error> {
        let mut chunks = vec![]; // of all waves
        while self.next < self.end {
            let old_words = vocabulary.len(); // how many words had a number before this wave
            let mut wave = vec![]; // its chunks
            if self.threads == 1 || old_words == 0 {
                // The first texts have the most frequent words of all texts, which one thread numbers quickly. `first_bytes` are
                // the bytes of tokens in this wave: the most of a chunk, or what one thread reads before all other threads.
                let first_bytes =
                    if self.threads == 1 { self.cut.chunk.most } else { self.cut.first };
                let rows = self.batch.rows(self.next, self.end, self.text_bytes(first_bytes));
                self.next = rows.end; // the next row to be read
                wave.push(Chunk::read_new(vocabulary, &self.batch, rows)?);
            } else {
                wave = self.wave(vocabulary)?;
                number::number(vocabulary, &mut wave, self.threads)?;
            }
            let n_tokens: usize = wave.iter().map(|chunk| chunk.ids.len()).sum(); // of the wave
            let new_words = vocabulary.len() - old_words; // that got a number in this wave
            self.looks_up = new_words * MANY < n_tokens; // whether words are looked up first in the next wave
            // Bytes of tokens in the next wave if a large share of words is new.
            let steady_wave = self.cut.wave.least * self.threads.div_ceil(2);
            self.grow(if new_words * FEW < n_tokens { usize::MAX } else { steady_wave });
            chunks.append(&mut wave);
        }
        Ok(chunks)
    }

    /// Reads a round, the rows from `next` to `end`, wave by wave; words that are not in the vocabulary are an error. Returns
    /// the chunks in the order of rows.
    fn read_without_new_words(&mut self, vocabulary: &Vocabulary) -> Result<Vec<Chunk>, Error> {
        let mut chunks = vec![]; // of all waves
        while self.next < self.end {
            let mut wave = self.wave(vocabulary)?; // its chunks
            for (row, ids) in wave.iter().flat_map(Chunk::texts) {
                // The position in the text of a token whose word has no number.
                if let Some(token) = ids.iter().position(|&id| id == UNKNOWN) {
                    return Err(self.batch.not_there(row, token)?);
                }
            }
            chunks.append(&mut wave);
            self.grow(usize::MAX);
        }
        Ok(chunks)
    }

    /// Makes `wave_bytes`, the bytes of tokens in the next wave, twice as large, up to `most` and within the limits of the cut.
    fn grow(&mut self, most: usize) {
        let Limits { least, most: largest } = self.cut.wave; // bytes of tokens in a wave
        self.wave_bytes = (2 * self.wave_bytes).min(most).clamp(least, largest);
    }

    /// Adds up the texts of all chunks of a round, whose words have numbers below `n_ids`. Returns sums of rows of classes;
    /// there may be several of a class.
    fn add_up(&self, chunks: &[Chunk], n_ids: usize) -> Vec<ClassSums> {
        let batch = &self.batch;
        // The number of the first row that is counted.
        let first_row =
            chunks.iter().find_map(|chunk| chunk.texts.first()).map_or(0, |text| text.0);
        // The numbers of the words of each row from the first on, none for rows that are not counted.
        let mut texts: Vec<&[u32]> = vec![];
        // A class of a row, and the row's number.
        let mut classes_and_rows: Vec<(u32, i64)> = vec![];
        // Of all rows, those of a row once per class: tokens, and tokens times the weight of the row, rounded up.
        let (mut n_tokens, mut occurrences) = (0, 0_u64);
        for (row, ids) in chunks.iter().flat_map(Chunk::texts) {
            texts.resize(row - first_row, &[]);
            texts.push(ids);
            for class in batch.classes(row) {
                classes_and_rows.push((class, row as i64));
                n_tokens += ids.len();
                occurrences = occurrences
                    .saturating_add(batch.whole_weight(row).saturating_mul(ids.len() as u64));
            }
        }
        classes_and_rows.sort_by_key(|(class, _)| *class);
        // Where the rows of each class start in `order`, and where those of the last one end.
        let start = |class| classes_and_rows.partition_point(|pair| pair.0 < class) as i64;
        let starts: Vec<i64> = (0..=batch.rows.n_classes as u32).map(start).collect();
        let order: Vec<i64> = classes_and_rows.iter().map(|(_, row)| *row).collect(); // rows, class after class
        let Limits { least: least_tokens, most: most_tokens } = self.cut.job; // of a job
        let rows = RowsToSum {
            words: &TextRows { n_ids, first_row, texts, damping: Damping::of(batch.tokeniser) },
            rows: &batch.rows,
            order: RowOrder::ByClass { rows: &order, starts: &starts },
            counts_are_whole: !batch.tokeniser.is_damped(),
            fits_32_bits: occurrences <= u64::from(u32::MAX),
            job_size: (n_tokens / (JOBS * self.threads)).clamp(least_tokens, most_tokens),
        };
        rows.add_up(self.threads)
    }

    /// Reads the next wave in chunks on all threads, and returns the chunks, in which the tokens are noted whose words are not
    /// in the vocabulary. `next` becomes the row after the wave.
    fn wave(&mut self, vocabulary: &Vocabulary) -> Result<Vec<Chunk>, Error> {
        // Of tokens in a wave whose words are looked up first, or in which they are not.
        let most_bytes = if self.looks_up { self.cut.wave.most } else { self.cut.new };
        let bytes = self.wave_bytes.min(most_bytes); // of tokens in this wave
        let wave_rows = self.batch.rows(self.next, self.end, self.text_bytes(bytes)); // the rows of this wave
        let Limits { least, most } = self.cut.chunk; // bytes of tokens in a chunk
        let chunk_bytes = self.text_bytes((bytes / (CHUNKS * self.threads)).clamp(least, most));
        let mut ranges = vec![]; // the rows of each chunk
        while self.next < wave_rows.end {
            ranges.push(self.batch.rows(self.next, wave_rows.end, chunk_bytes));
            self.next = ranges[ranges.len() - 1].end;
        }
        threads::try_map(self.threads, ranges.len(), |i| {
            Chunk::read(vocabulary, &self.batch, ranges[i].clone(), self.looks_up)
        })
    }
}

impl Words {
    /// Adds the texts of a batch to the store on so many threads. Returns their sums per class if `keeps_sums`, else nothing.
    /// If it does, an error leaves all counts as they were, and only new words keep their numbers.
    pub fn count(
        &mut self,
        batch: Batch,
        threads: usize,
        keeps_sums: bool,
    ) -> Result<Vec<ClassSums>, Error> {
        if let Texts::Counted(matrix) = batch.texts {
            demand(batch.more.is_none(), "rows of a matrix have one class each")?;
            return self.count_matrix(matrix, batch.rows, threads);
        }
        let threads = threads::worth(threads, batch.texts.bytes());
        let mut sums = vec![]; // that were added so far
        let reader = Reader::new(batch, CUT, threads);
        if let Err(error) = self.count_cut(reader, keeps_sums.then_some(&mut sums)) {
            // `false`: what was just added needs no further check.
            self.take_sums(&mut sums, false)?;
            return Err(error);
        }
        Ok(sums)
    }

    /// Adds the texts of a reader, which cuts them into rounds, and appends their sums to `all_sums` if there is such a list.
    /// After an error the rounds before it stay added. The vocabulary is split so that threads can add words to its parts.
    fn count_cut(
        &mut self,
        mut reader: Reader,
        mut all_sums: Option<&mut Vec<ClassSums>>,
    ) -> Result<(), Error> {
        reader.batch.check(self)?;
        reader.batch.check_size(self.n_texts(), self.total())?;
        if reader.threads > 1 && reader.batch.texts.bytes() >= SPLIT {
            self.vocabulary.split();
        }
        reader.looks_up = self.vocabulary.len() > 0; // whether words are looked up first
        while reader.begin() {
            let chunks = reader.read(&mut self.vocabulary)?; // numbers of the words of texts
            // Of this round, per class.
            let mut sums = reader.add_up(&chunks, self.n_ids());
            drop(chunks);
            self.add_sums(&mut sums, reader.threads);
            if let Some(all_sums) = &mut all_sums {
                all_sums.append(&mut sums);
            }
        }
        Ok(())
    }

    /// Subtracts the texts of a batch on so many threads, and returns their sums per class; an error that changes no counts if
    /// they were not counted.
    pub fn forget(&mut self, batch: Batch, threads: usize) -> Result<Vec<ClassSums>, Error> {
        if let Texts::Counted(matrix) = batch.texts {
            demand(batch.more.is_none(), "rows of a matrix have one class each")?;
            return self.forget_matrix(matrix, batch.rows, threads);
        }
        let threads = threads::worth(threads, batch.texts.bytes());
        self.forget_cut(Reader::new(batch, CUT, threads))
    }

    /// Subtracts the texts of a reader, all rounds at once, and returns their sums per class. If they were not counted, or have
    /// words without numbers, it is an error and no count changes.
    fn forget_cut(&mut self, mut reader: Reader) -> Result<Vec<ClassSums>, Error> {
        reader.batch.check(self)?;
        // Beside no other texts and occurrences, as nothing is added.
        reader.batch.check_size(0, 0)?;
        let mut sums = vec![]; // of all rounds, per class
        while reader.begin() {
            let chunks = reader.read_without_new_words(&self.vocabulary)?;
            sums.append(&mut reader.add_up(&chunks, self.n_ids()));
        }
        self.take_sums(&mut sums, !reader.batch.tokeniser.is_damped())?;
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integers::weight_to_parts;
    use crate::text::{Pattern, Settings};
    use crate::words::StoredCounts;
    use std::collections::BTreeMap;

    /// Cuts so small that a few texts make many chunks, waves, rounds and jobs.
    const TINY: Cut = Cut {
        chunk: Limits { least: 10, most: 40 },
        first: 20,
        wave: Limits { least: 60, most: 200 },
        new: 100,
        round: 400,
        job: Limits { least: 10, most: 30 },
    };

    /// Cuts text into words and n-grams of up to `longest` words; `log` damps counts, by logarithm and length.
    fn tokeniser(log: bool, longest: u8) -> Tokeniser {
        Tokeniser::new(Settings {
            pattern: Pattern::Word,
            lowercase: true,
            characters: false,
            shortest: 1,
            longest,
            stop_words: vec![],
            only: vec![],
            log,
            length: log,
        })
        .unwrap()
    }

    /// n texts of few words and many, their classes (-1 to 2) and weights.
    fn made_up(n: usize) -> (Vec<String>, Vec<i32>, Vec<f64>) {
        let mut state = 7_u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        let mut texts = vec![];
        for _ in 0..n {
            let words = random(20);
            let mut word = || {
                let top = 1 + random(200);
                format!("word{}{}", random(top), "x".repeat(random(2) as usize * 12))
            };
            let words: Vec<String> = (0..words).map(|_| word()).collect();
            texts.push(words.join(" "));
        }
        let classes = (0..n).map(|_| random(4) as i32 - 1).collect();
        let weights = (0..n).map(|_| 0.1 + random(90) as f64 / 7.0).collect();
        (texts, classes, weights)
    }

    /// Texts as they are counted.
    fn borrowed(texts: &[String]) -> Texts<'_> {
        Texts::Borrowed(texts.iter().map(|text| Some(text.as_bytes())).collect())
    }

    /// Everything that can be seen of a store.
    fn seen(words: &Words) -> String {
        let ids: Vec<Vec<u8>> = (0..words.n_ids() as u32).map(|id| words.name(id)).collect();
        format!("{ids:?} {:?} {:?}", words.totals, words.state())
    }

    /// A store with the texts of a batch, read with this cut and so many threads.
    fn counted(batch: Batch, cut: Cut, threads: usize) -> Words {
        let mut words = Words::new(batch.rows.n_classes, 0).unwrap();
        words.count_cut(Reader::new(batch, cut, threads), None).unwrap();
        words
    }

    /// Weights in parts of a row: the lower limb, then the upper one.
    fn in_parts(weights: &[f64]) -> Vec<[u64; 2]> {
        let limbs = |&w: &f64| weight_to_parts(w).map(|n| [n as u64, (n >> 64) as u64]);
        weights.iter().map(limbs).collect::<Option<_>>().unwrap()
    }

    /// Calls `f` with a tokeniser, texts, their classes and weights: weights of ones, whole and fractional ones; texts damped and
    /// not, with n-grams of one to three words.
    fn each_kind(f: impl Fn(&Tokeniser, &[String], &[i32], Weights)) {
        let (texts, classes, weights) = made_up(120);
        let whole: Vec<i64> = weights.iter().map(|w| w.ceil() as i64).collect();
        let parts = in_parts(&weights);
        for (log, longest) in [(false, 1), (true, 1), (false, 2), (false, 3)] {
            let tokeniser = tokeniser(log, longest);
            f(&tokeniser, &texts, &classes, Weights::Ones);
            f(&tokeniser, &texts, &classes, Weights::Whole(&whole));
            f(&tokeniser, &texts, &classes, Weights::Parts(&parts));
        }
    }

    /// Texts of three classes.
    fn batch<'a>(
        tokeniser: &'a Tokeniser,
        texts: &'a Texts<'a>,
        classes: &'a [i32],
        weights: Weights<'a>,
    ) -> Batch<'a> {
        Batch { tokeniser, texts, rows: Rows::new(classes, 3, weights).unwrap(), more: None }
    }

    #[test]
    fn any_cut_and_any_number_of_threads_give_the_same() {
        each_kind(|tokeniser, texts, classes, weights| {
            let texts = borrowed(texts);
            let batch = batch(tokeniser, &texts, classes, weights);
            let expected = counted(batch, TINY, 1);
            for (cut, threads) in [(TINY, 3), (CUT, 1), (CUT, 2)] {
                let words = counted(batch, cut, threads);
                assert!(expected.same(&words));
                assert!(seen(&expected) == seen(&words));
            }
        });
    }

    /// A store with the texts of a batch.
    fn counted_any(batch: Batch) -> Words {
        let mut words = Words::new(batch.rows.n_classes, 0).unwrap();
        words.count_cut(Reader::new(batch, TINY, 1), None).unwrap();
        words
    }

    #[test]
    fn what_is_left_is_what_was_never_forgotten() {
        each_kind(|tokeniser, texts, classes, weights| {
            // Four lists of classes; the i-th counts every fourth row, from row i on.
            let pieces = [0, 1, 2, 3].map(|i| {
                let kept = |(row, &class)| if row % 4 == i { class } else { -1 };
                classes.iter().enumerate().map(kept).collect::<Vec<i32>>()
            });
            let texts = borrowed(texts);
            let all = batch(tokeniser, &texts, classes, weights);
            // The texts of every fourth row.
            let piece = |i: usize| batch(tokeniser, &texts, &pieces[i], weights);
            let expected = counted_any(piece(3)).state();
            for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
                let (mut words, mut minus) = (counted_any(all), counted_any(all));
                for i in order {
                    words.forget_cut(Reader::new(piece(i), TINY, 2)).unwrap();
                    minus = minus.minus(&counted_any(piece(i))).unwrap();
                }
                assert!(words.state() == expected);
                assert!(minus.state() == expected && minus.same(&words));
            }
            let [first, second, third, fourth] = [3, 1, 0, 2].map(|i| counted_any(piece(i)));
            let sum = first.plus(&second).unwrap().plus(&third.plus(&fourth).unwrap()).unwrap();
            assert!(sum.state() == counted_any(all).state());
        });
    }

    #[test]
    fn weights_are_the_text_so_often() {
        let [tenth, half, one] = [0.1, 0.5, 1.0].map(|weight| in_parts(&[weight; 2]));
        let strings = ["aa bb bb".to_string(), "bb cc cc cc".to_string()];
        for log in [false, true] {
            let tokeniser = tokeniser(log, 1);
            let texts = borrowed(&strings);
            let batch = |weights| batch(&tokeniser, &texts, &[0, 1], weights);
            // The texts, with these weights, counted n times.
            let times = |weights, n| {
                let mut words = Words::new(3, 0).unwrap();
                // On one thread, without keeping the sums.
                (0..n).for_each(|_| drop(words.count(batch(weights), 1, false).unwrap()));
                words
            };
            let (tenths, half) = (times(Weights::Parts(&tenth), 5), Weights::Parts(&half));
            assert!(tenths.state() == times(half, 1).state());
            let twice = times(Weights::Whole(&[2, 2]), 1);
            assert!(times(Weights::Parts(&one), 2).state() == twice.state());
            assert!(times(Weights::Ones, 2).state() == twice.state());
            let (once, exact) = twice.times(0.5).unwrap();
            assert!(exact && once.state() == times(Weights::Ones, 1).state());
            assert!(once.times(2.0).unwrap().0.same(&twice));
            let (third, exact) = twice.times(1.0 / 3.0).unwrap();
            let (ninth, inexact) = third.times(1.0 / 3.0).unwrap();
            assert!(exact && !inexact);
            let sum = ninth.totals_of((0..3).flat_map(|id| ninth.cells.of(id)));
            assert_eq!(sum, ninth.totals);
            assert_eq!(twice.times(1e-20).unwrap().0.n_ids(), 0);
            let whole = matches!(twice.state().counts, StoredCounts::Narrow(..));
            assert_eq!(whole, !log);
        }
    }

    #[test]
    fn cells_are_those_of_a_map() {
        let (texts, classes, _) = made_up(120);
        // By word and class: occurrences and documents.
        let mut expected: BTreeMap<(Vec<u8>, u32), [f64; 2]> = BTreeMap::new();
        for (text, &class) in texts.iter().zip(&classes) {
            let mut words: Vec<&str> = text.split(' ').filter(|word| word.len() > 1).collect();
            words.sort_unstable();
            for same in words.chunk_by(|a, b| a == b).filter(|_| class >= 0) {
                let cell = expected.entry((same[0].into(), class as u32)).or_default();
                *cell = [cell[0] + same.len() as f64, cell[1] + 1.0];
            }
        }
        let (tokeniser, texts) = (tokeniser(false, 1), borrowed(&texts));
        let batch = batch(&tokeniser, &texts, &classes, Weights::Ones);
        for cut in [TINY, CUT] {
            let words = counted(batch, cut, 1);
            let found = words.in_order().into_iter().flat_map(|id| {
                let name = words.name(id);
                words
                    .cells(id)
                    .map(move |cell| ((name.clone(), cell.class), cell.counts.map(|n| n.value(0))))
            });
            assert!(found.eq(expected.clone()));
        }
    }

    #[test]
    fn what_was_counted_can_be_forgotten_in_any_cut() {
        each_kind(|tokeniser, texts, classes, weights| {
            let texts = borrowed(texts);
            let batch = batch(tokeniser, &texts, classes, weights);
            let mut words = counted(batch, TINY, 1);
            let before = seen(&words);
            words.forget_cut(Reader::new(batch, TINY, 2)).unwrap();
            assert_eq!((words.n_words(), words.total()), (0, 0));
            let empty = Words::new(3, 0).unwrap().state();
            assert!(words.state() == empty);
            let error = words.forget_cut(Reader::new(batch, TINY, 1)).unwrap_err();
            assert!(matches!(error, Error::NotThere { .. }));
            assert!(words.state() == empty);
            words.count_cut(Reader::new(batch, TINY, 2), None).unwrap();
            assert!(seen(&words) == before);
        });
    }

    #[test]
    fn one_thread_numbers_words_as_they_come() {
        let texts = ["bb aa bb".to_string(), "cc aa".to_string()];
        let (tokeniser, texts) = (tokeniser(false, 1), borrowed(&texts));
        let words = counted(batch(&tokeniser, &texts, &[0, 0], Weights::Ones), CUT, 1);
        assert_eq!([0, 1, 2].map(|id| words.name(id)), [b"bb", b"aa", b"cc"]);
    }
}
