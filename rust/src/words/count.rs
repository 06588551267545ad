//! Texts to sums.
//!
//! Texts are read in chunks, whose tokens are looked up in the words there are; a chunk's new words get numbers of its own, which
//! are replaced by real ones chunk by chunk, in order. Then the texts of each class are added up in a row of all words that
//! stays in the cache, and the row's cells are added to the store. How texts are cut depends on the texts alone, so the
//! sums are the same bits whatever the threads.

use super::index::{Fresh, UNKNOWN, Vocabulary};
use super::store::{Counts, Part, Sums};
use super::{TOO_LARGE, Texts, Total, Words};
use crate::classes::{Rows, Weights};
use crate::error::{Error, Number, demand};
use crate::expansion::Expansion;
use crate::text::{Tokeniser, Tokens};
use crate::threads;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Bytes of text that a thread takes at a time.
const CHUNK: usize = 1 << 19;
/// Chunks that are looked up in the same words, at most: there are fewer while most words are new.
const WIDEST: usize = 64;
/// Tokens whose numbers are held at a time.
const ROUND: usize = 1 << 24;
/// Tokens of one class that are added up at a time.
const JOB: usize = 1 << 20;
/// Texts that are added up at a time, so that 32 bits can number them.
const JOB_TEXTS: usize = 1 << 24;
/// A text this long might, lower-cased, reach the limit of the tokeniser.
const LONG: usize = 1 << 30;

/// Texts to be counted, their classes and weights.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub tokeniser: &'a Tokeniser,
    pub texts: &'a Texts<'a>,
    pub rows: Rows<'a>,
    /// Sums are to be real, even if all weights are ones.
    pub real: bool,
}

impl Batch<'_> {
    fn check(&self, words: &Words) -> Result<(), Error> {
        if self.texts.len() != self.rows.len() {
            return Err(Error::malformed(format!(
                "there are {} classes for {} texts",
                self.rows.len(),
                self.texts.len()
            )));
        }
        demand(
            self.rows.n_classes == words.n_classes(),
            "classes must be those of the words",
        )
    }

    fn is_damped(&self) -> bool {
        self.tokeniser.log() || self.tokeniser.length()
    }

    fn is_real(&self) -> bool {
        self.real || self.is_damped() || matches!(self.rows.weights, Weights::Real(_))
    }

    /// What a row weighs.
    fn weight(&self, row: usize) -> f64 {
        match self.rows.weights {
            Weights::Ones => 1.0,
            Weights::Whole(weights) | Weights::Real(weights) => weights[row],
        }
    }

    /// What a row adds to whole numbers.
    fn times(&self, row: usize) -> u64 {
        if self.is_real() {
            1
        } else {
            self.weight(row) as u64
        }
    }

    fn counted(&self) -> impl Iterator<Item = usize> {
        (0..self.texts.len()).filter(|&row| self.rows.classes[row] >= 0)
    }

    /// Refuses texts that are too long, and sums that would be too large, before anything is changed.
    fn check_size(&self, words: &Words) -> Result<(), Error> {
        let settings = self.tokeniser.settings();
        let tokens_per_byte = u128::from(settings.longest - settings.shortest) + 1;
        let (mut most, mut texts, mut longest) = (0, 0, 0);
        for row in self.counted() {
            let size = self.texts.size(row);
            let times = u128::from(self.times(row));
            most += times * size as u128 * tokens_per_byte;
            texts += times;
            longest = longest.max(size);
        }
        demand(
            u128::from(words.n_texts()) + texts < u128::from(TOO_LARGE),
            "there are more than 2**63 - 1 texts",
        )?;
        if longest >= LONG || u128::from(words.total()) + most >= u128::from(TOO_LARGE) {
            let exactly = self.weigh()?;
            demand(
                u128::from(words.total()) + exactly < u128::from(TOO_LARGE),
                "there are more than 2**63 - 1 occurrences",
            )?;
        }
        Ok(())
    }

    /// The occurrences in all texts.
    fn weigh(&self) -> Result<u128, Error> {
        let (mut tokens, mut found) = (Tokens::default(), 0);
        for row in self.counted() {
            if self.texts.read(row, self.tokeniser, &mut tokens)? {
                demand(
                    tokens.len() < u32::MAX as usize,
                    "a text has 2**32 tokens or more; cut it into smaller ones",
                )?;
                found += u128::from(self.times(row)) * tokens.len() as u128;
            }
        }
        Ok(found)
    }

    /// The rows from `first` on that make up a chunk.
    fn chunk(&self, first: usize) -> Range<usize> {
        let mut size = 0;
        let mut last = first;
        while last < self.texts.len() && size < CHUNK {
            size += self.texts.size(last) + 1;
            last += 1;
        }
        first..last
    }
}

/// The tokens of some rows as numbers of words.
#[derive(Debug, Default)]
struct Chunk {
    ids: Vec<u32>,
    /// The rows that are counted, and where the numbers of each end.
    texts: Vec<(usize, usize)>,
    fresh: Fresh,
}

impl Chunk {
    fn read(vocabulary: &Vocabulary, batch: &Batch, rows: Range<usize>) -> Result<Chunk, Error> {
        let (mut chunk, mut tokens) = (Chunk::default(), Tokens::default());
        for row in rows {
            let counted = batch.rows.classes[row] >= 0;
            if counted && batch.texts.read(row, batch.tokeniser, &mut tokens)? {
                chunk.look_up(vocabulary, &tokens);
                chunk.texts.push((row, chunk.ids.len()));
            }
        }
        Ok(chunk)
    }

    fn look_up(&mut self, vocabulary: &Vocabulary, tokens: &Tokens) {
        let start = self.ids.len();
        vocabulary.find_each(tokens, &mut self.ids);
        for (token, id) in self.ids[start..].iter_mut().enumerate() {
            if *id == UNKNOWN {
                *id = self.fresh.number(vocabulary, tokens, token);
            }
        }
    }

    /// Puts the vocabulary's numbers for the chunk's own.
    fn renumber(&mut self, numbers: &[u32]) {
        for id in &mut self.ids {
            if *id & Fresh::MARK != 0 {
                *id = numbers[(*id ^ Fresh::MARK) as usize];
            }
        }
    }

    fn texts(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let starts = std::iter::once(0).chain(self.texts.iter().map(|&(_, end)| end));
        let ranges = self.texts.iter().zip(starts);
        ranges.map(|(&(row, end), start)| (row, &self.ids[start..end]))
    }
}

/// A text's words.
#[derive(Clone, Copy)]
struct Text<'a> {
    class: u32,
    row: usize,
    ids: &'a [u32],
}

/// The cells of one class that some texts add up to, in the order of the words.
#[derive(Debug, Default)]
pub struct Found {
    pub class: u32,
    pub ids: Vec<u32>,
    pub counts: Lane,
    pub real: bool,
    /// One per cell if `real`.
    pub sums: Vec<Sums>,
    pub texts: Total,
    /// Over all words: occurrences and documents.
    pub totals: [Total; 2],
}

impl Found {
    /// A total's weight, whether or not sums are real.
    pub fn weight(&self, total: Total) -> Expansion {
        if self.real {
            total.weight
        } else {
            Expansion::from_whole(total.rows)
        }
    }
}

/// Occurrences and documents in 32 bits while they fit.
#[derive(Debug)]
pub enum Lane {
    Narrow(Vec<[u32; 2]>),
    Wide(Vec<Counts>),
}

impl Default for Lane {
    fn default() -> Self {
        Lane::Wide(vec![])
    }
}

impl Lane {
    #[inline(always)]
    pub fn get(&self, i: usize) -> Counts {
        match self {
            Lane::Narrow(counts) => counts[i].map(u64::from),
            Lane::Wide(counts) => counts[i],
        }
    }
}

/// What is counted in: 32 bits while texts weigh one, 64 otherwise.
trait Amount: Copy + Default + Send + std::ops::AddAssign {
    fn lane(cells: impl Iterator<Item = [Self; 2]>) -> Lane;
}

impl Amount for u32 {
    fn lane(cells: impl Iterator<Item = [u32; 2]>) -> Lane {
        Lane::Narrow(cells.collect())
    }
}

impl Amount for u64 {
    fn lane(cells: impl Iterator<Item = [u64; 2]>) -> Lane {
        Lane::Wide(cells.collect())
    }
}

/// A word's cell in the row of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Entry<T> {
    counts: [T; 2],
    /// The last text that has the word; texts are numbered from 1.
    last: u32,
}

/// The same where sums are real.
#[derive(Clone, Copy, Debug, Default)]
struct RealEntry {
    counts: Counts,
    sums: Sums,
    last: u32,
    /// How often the last text has the word.
    times: u32,
}

/// Rows that threads use again: all zeros when they come and go.
struct Pool<E>(Mutex<Vec<Vec<E>>>);

impl<E: Copy + Default> Pool<E> {
    fn new() -> Self {
        Pool(Mutex::new(vec![]))
    }

    fn with<R>(&self, len: usize, f: impl FnOnce(&mut [E]) -> R) -> R {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lock().pop().filter(|row| row.len() == len);
        let mut row = kept.unwrap_or_else(|| vec![E::default(); len]);
        let found = f(&mut row);
        lock().push(row);
        found
    }
}

/// The words of a job: all there are, or, where it has far fewer, its own, numbered anew.
struct Slots<'a> {
    texts: Vec<&'a [u32]>,
    /// The words' numbers by slot; none: a slot is a number.
    words: Option<Vec<u32>>,
    len: usize,
}

/// A row is made for all words if a job has at least this share of them as tokens.
const SPARSE: usize = 16;

/// The words of all texts in order, each once, and each token's place among them.
fn compact(texts: &[Text]) -> (Vec<u32>, Vec<u32>) {
    let all = || texts.iter().flat_map(|text| text.ids.iter().copied());
    let mut words: Vec<u32> = all().collect();
    words.sort_unstable();
    words.dedup();
    let slot = |id| words.partition_point(|&word| word < id) as u32;
    let slots = all().map(slot).collect();
    (words, slots)
}

impl Slots<'_> {
    /// Calls `f` with the slots of the texts' words.
    fn with<R>(texts: &[Text], n_ids: usize, f: impl FnOnce(Slots) -> R) -> R {
        let tokens: usize = texts.iter().map(|text| text.ids.len()).sum();
        if SPARSE * tokens >= n_ids {
            return f(Slots {
                texts: texts.iter().map(|text| text.ids).collect(),
                words: None,
                len: n_ids,
            });
        }
        let (words, slots) = compact(texts);
        let mut rest = slots.as_slice();
        let mut next = |text: &Text| {
            let (mine, others) = rest.split_at(text.ids.len());
            rest = others;
            mine
        };
        f(Slots {
            texts: texts.iter().map(&mut next).collect(),
            len: words.len(),
            words: Some(words),
        })
    }

    /// The slots that are used in order, given those in the order of use.
    fn used(&self, mut touched: Vec<u32>, is_used: impl Fn(usize) -> bool) -> Vec<u32> {
        if touched.len() * 16 < self.len {
            touched.sort_unstable();
        } else {
            touched.clear();
            touched.extend(
                (0..self.len)
                    .filter(|&slot| is_used(slot))
                    .map(|slot| slot as u32),
            );
        }
        touched
    }

    fn ids(&self, slots: Vec<u32>) -> Vec<u32> {
        match &self.words {
            None => slots,
            Some(words) => slots.iter().map(|&slot| words[slot as usize]).collect(),
        }
    }
}

fn add_whole<T: Amount>(
    slots: Slots,
    weights: impl Iterator<Item = T>,
    row: &mut [Entry<T>],
) -> (Vec<u32>, Lane) {
    let mut touched = vec![];
    for ((text, weight), number) in slots.texts.iter().zip(weights).zip(1_u32..) {
        for &slot in *text {
            let entry = &mut row[slot as usize];
            entry.counts[0] += weight;
            if entry.last != number {
                if entry.last == 0 {
                    touched.push(slot);
                }
                entry.counts[1] += weight;
                entry.last = number;
            }
        }
    }
    let used = slots.used(touched, |slot| row[slot].last != 0);
    let lane = T::lane(used.iter().map(|&slot| row[slot as usize].counts));
    for &slot in &used {
        row[slot as usize] = Entry::default();
    }
    (slots.ids(used), lane)
}

/// How much a word counts that occurs so many times, and the length of a text in which words occur so many times each.
#[derive(Clone, Copy, Debug)]
pub struct Damping {
    log: bool,
    length: bool,
}

impl Damping {
    pub fn of(tokeniser: &Tokeniser) -> Self {
        Damping {
            log: tokeniser.log(),
            length: tokeniser.length(),
        }
    }

    #[inline(always)]
    pub fn damp(self, times: u32) -> f64 {
        let times = f64::from(times);
        if self.log { times.ln_1p() } else { times }
    }

    /// Squares are added from the smallest up, so that the order of the words has no effect. `times` is sorted.
    pub fn length(self, times: &mut [u32]) -> f64 {
        if !self.length || times.is_empty() {
            return 1.0;
        }
        times.sort_unstable();
        let squares = times.iter().map(|&times| self.damp(times).powi(2));
        squares.sum::<f64>().sqrt()
    }
}

struct RealSums {
    counts: Vec<Counts>,
    sums: Vec<Sums>,
    totals: [Total; 2],
}

fn add_real(
    slots: Slots,
    weights: impl Iterator<Item = f64>,
    damping: Damping,
    row: &mut [RealEntry],
) -> (Vec<u32>, RealSums) {
    let (mut touched, mut distinct, mut times) = (vec![], vec![], vec![]);
    let mut totals = [Total::default(); 2];
    for ((text, weight), number) in slots.texts.iter().zip(weights).zip(1_u32..) {
        distinct.clear();
        for &slot in *text {
            let entry = &mut row[slot as usize];
            if entry.last != number {
                if entry.last == 0 {
                    touched.push(slot);
                }
                distinct.push(slot);
                (entry.last, entry.times) = (number, 0);
            }
            entry.times += 1;
        }
        times.clear();
        times.extend(distinct.iter().map(|&slot: &u32| row[slot as usize].times));
        let length = damping.length(&mut times);
        for &slot in &distinct {
            let entry = &mut row[slot as usize];
            let sum = weight * (damping.damp(entry.times) / length);
            entry.counts[0] += u64::from(entry.times);
            entry.counts[1] += 1;
            entry.sums[0].add(sum);
            entry.sums[1].add(weight);
            totals[0].weight.add(sum);
            totals[1].weight.add(weight);
        }
        totals[0].rows += text.len() as u64;
        totals[1].rows += distinct.len() as u64;
    }
    let used = slots.used(touched, |slot| row[slot].last != 0);
    let found = RealSums {
        counts: used.iter().map(|&slot| row[slot as usize].counts).collect(),
        sums: used.iter().map(|&slot| row[slot as usize].sums).collect(),
        totals,
    };
    for &slot in &used {
        row[slot as usize] = RealEntry::default();
    }
    (slots.ids(used), found)
}

/// Adds up the texts of all chunks, class by class.
fn add_up(batch: &Batch, chunks: &[Chunk], n_ids: usize, threads: usize) -> Vec<Found> {
    let mut texts: Vec<Text> = vec![];
    for chunk in chunks {
        texts.extend(chunk.texts().map(|(row, ids)| Text {
            class: batch.rows.classes[row] as u32,
            row,
            ids,
        }));
    }
    texts.sort_by_key(|text| text.class);
    let jobs = jobs(&texts);
    if batch.is_real() {
        let pool = Pool::new();
        return threads::map(threads, jobs.len(), |i| {
            real_job(batch, &texts[jobs[i].clone()], n_ids, &pool)
        });
    }
    match batch.rows.weights {
        Weights::Ones => {
            let pool = Pool::new();
            threads::map(threads, jobs.len(), |i| {
                whole_job(&texts[jobs[i].clone()], |_| 1_u32, n_ids, &pool)
            })
        }
        Weights::Whole(weights) | Weights::Real(weights) => {
            let pool = Pool::new();
            threads::map(threads, jobs.len(), |i| {
                let weight = |row: usize| weights[row] as u64;
                whole_job(&texts[jobs[i].clone()], weight, n_ids, &pool)
            })
        }
    }
}

/// Texts of one class that are added up together: so many that they are worth a thread, so few that there are enough of them.
fn jobs(texts: &[Text]) -> Vec<Range<usize>> {
    let (mut jobs, mut first, mut tokens) = (vec![], 0, 0);
    for (i, text) in texts.iter().enumerate() {
        let full = tokens >= JOB || i - first >= JOB_TEXTS;
        if i > first && (full || texts[first].class != text.class) {
            jobs.push(first..i);
            (first, tokens) = (i, 0);
        }
        tokens += text.ids.len();
    }
    if first < texts.len() {
        jobs.push(first..texts.len());
    }
    jobs
}

fn whole_job<T: Amount + Into<u64>>(
    texts: &[Text],
    weight: impl Fn(usize) -> T,
    n_ids: usize,
    pool: &Pool<Entry<T>>,
) -> Found {
    let weights = || texts.iter().map(|text| weight(text.row));
    let (ids, counts) = Slots::with(texts, n_ids, |slots| {
        pool.with(slots.len, |row| add_whole(slots, weights(), row))
    });
    let whole = |rows| Total {
        rows,
        weight: Expansion::default(),
    };
    let mut totals = [0, 0];
    for i in 0..ids.len() {
        let [occurrences, documents] = counts.get(i);
        totals = [totals[0] + occurrences, totals[1] + documents];
    }
    Found {
        class: texts[0].class,
        ids,
        counts,
        real: false,
        sums: vec![],
        texts: whole(weights().map(Into::into).sum()),
        totals: totals.map(whole),
    }
}

fn real_job(batch: &Batch, texts: &[Text], n_ids: usize, pool: &Pool<RealEntry>) -> Found {
    let weights = || texts.iter().map(|text| batch.weight(text.row));
    let damping = Damping::of(batch.tokeniser);
    let (ids, found) = Slots::with(texts, n_ids, |slots| {
        pool.with(slots.len, |row| add_real(slots, weights(), damping, row))
    });
    let mut total = Total {
        rows: texts.len() as u64,
        weight: Expansion::default(),
    };
    weights().for_each(|weight| total.weight.add(weight));
    Found {
        class: texts[0].class,
        ids,
        counts: Lane::Wide(found.counts),
        real: true,
        sums: found.sums,
        texts: total,
        totals: found.totals,
    }
}

/// Reads texts from row `next` on, until enough tokens are held or none is left.
struct Reader<'a> {
    batch: Batch<'a>,
    threads: usize,
    next: usize,
    /// Chunks that are read at a time.
    width: usize,
}

impl<'a> Reader<'a> {
    fn new(batch: Batch<'a>, threads: usize) -> Self {
        Reader {
            batch,
            threads: threads::worth(threads, batch.texts.bytes()),
            next: 0,
            width: 1,
        }
    }

    fn is_done(&self) -> bool {
        self.next == self.batch.texts.len()
    }

    /// `adopt` gives the new words of a chunk their numbers.
    fn round(
        &mut self,
        words: &mut Words,
        adopt: impl Fn(&mut Words, &Chunk) -> Result<Vec<u32>, Error>,
    ) -> Result<Vec<Chunk>, Error> {
        let (mut chunks, mut tokens) = (vec![], 0);
        while tokens < ROUND && !self.is_done() {
            let mut wave = self.wave(&words.vocabulary)?;
            for chunk in &mut wave {
                if !chunk.fresh.is_empty() {
                    let numbers = adopt(words, chunk)?;
                    chunk.renumber(&numbers);
                    chunk.fresh = Fresh::default();
                }
                tokens += chunk.ids.len();
            }
            chunks.append(&mut wave);
        }
        Ok(chunks)
    }

    fn wave(&mut self, vocabulary: &Vocabulary) -> Result<Vec<Chunk>, Error> {
        let mut ranges = vec![];
        while ranges.len() < self.width && !self.is_done() {
            let range = self.batch.chunk(self.next);
            self.next = range.end;
            ranges.push(range);
        }
        self.width = (2 * self.width).min(WIDEST);
        threads::try_map(self.threads, ranges.len(), |i| {
            Chunk::read(vocabulary, &self.batch, ranges[i].clone())
        })
    }
}

impl Words {
    /// Adds texts. Gives the numbers of the words they have, in order.
    pub fn count(&mut self, batch: Batch, threads: usize) -> Result<Vec<u32>, Error> {
        batch.check(self)?;
        batch.check_size(self)?;
        if batch.is_real() {
            self.make_real();
        }
        let mut reader = Reader::new(batch, threads);
        let mut touched = vec![];
        while !reader.is_done() {
            let chunks = reader.round(self, |words, chunk| {
                chunk.fresh.adopt(&mut words.vocabulary)
            })?;
            let found = add_up(&batch, &chunks, self.n_ids(), reader.threads);
            drop(chunks);
            self.add_found(&found, reader.threads)?;
            gather(&mut touched, &found, self.n_ids());
        }
        Ok(touched)
    }

    /// Takes texts away again; changes nothing if they are not there.
    pub fn forget(&mut self, batch: Batch, threads: usize) -> Result<Vec<u32>, Error> {
        batch.check(self)?;
        batch.check_size(self)?;
        let mut reader = Reader::new(batch, threads);
        let (mut all, mut touched) = (vec![], vec![]);
        while !reader.is_done() {
            let chunks = reader.round(self, |_, chunk| Err(not_there(&batch, chunk)))?;
            let found = add_up(&batch, &chunks, self.n_ids(), reader.threads);
            gather(&mut touched, &found, self.n_ids());
            all.extend(found);
        }
        self.take_found(&all, batch.is_real())?;
        Ok(touched)
    }

    /// Adds cells.
    fn add_found(&mut self, found: &[Found], threads: usize) -> Result<(), Error> {
        let more: u64 = found.iter().map(|found| found.totals[0].rows).sum();
        if self.total() + more > u64::from(u32::MAX) {
            self.cells.widen();
        }
        self.cells.grow(self.vocabulary.len());
        if self.make_room(found) {
            self.add_in_parts(found, threads)?;
        } else {
            for found in found {
                for (i, &id) in found.ids.iter().enumerate() {
                    let (counts, sums) = (found.counts.get(i), found.sums.get(i));
                    self.cells.add(id as usize, found.class, counts, sums);
                }
            }
        }
        let is_real = self.is_real();
        for found in found {
            let class = found.class as usize;
            let [occurrences, documents] = &mut self.totals[class];
            let totals = [&mut self.texts[class], occurrences, documents];
            let more = [found.texts, found.totals[0], found.totals[1]];
            for (total, more) in totals.into_iter().zip(more) {
                total.rows += more.rows;
                if is_real {
                    total.weight.merge(&found.weight(more));
                }
            }
        }
        Ok(())
    }

    /// Lays all words out anew if many cells are new; whether it did.
    fn make_room(&mut self, found: &[Found]) -> bool {
        let cells: usize = found.iter().map(|found| found.ids.len()).sum();
        if MANY * cells < self.cells.words() + self.cells.len() {
            return false;
        }
        let mut more = vec![0_u32; self.cells.words()];
        let mut new = 0;
        for found in found {
            for &id in &found.ids {
                let fresh = !self.cells.has(id as usize, found.class);
                more[id as usize] += u32::from(fresh);
                new += usize::from(fresh);
            }
        }
        let many = MANY * new >= self.cells.len();
        if many {
            self.cells.lay_out(|id| more[id]);
        }
        many
    }

    fn add_in_parts(&mut self, found: &[Found], threads: usize) -> Result<(), Error> {
        let mut parts = self.cells.parts(PART);
        let add = |_: usize, parts: &mut [Part]| {
            for part in parts {
                part.add_all(found);
            }
            Ok::<_, Error>(())
        };
        threads::try_pieces(threads, &mut parts, 1, add)?;
        self.cells.settle();
        Ok(())
    }
}

impl Part<'_> {
    /// Adds the cells of this part's words.
    fn add_all(&mut self, found: &[Found]) {
        let words = self.words();
        for found in found {
            let from = found.ids.partition_point(|&id| id < words.start);
            let to = found.ids.partition_point(|&id| id < words.end);
            for i in from..to {
                let (counts, sums) = (found.counts.get(i), found.sums.get(i));
                self.add(found.ids[i], found.class, counts, sums);
            }
        }
    }
}

/// Cells are many if they are at least one in so many.
const MANY: usize = 8;
/// Cells that a thread fills at a time.
const PART: usize = 1 << 18;

/// Adds the words that were found to those in order.
fn gather(touched: &mut Vec<u32>, found: &[Found], n_ids: usize) {
    let more: usize = found.iter().map(|found| found.ids.len()).sum();
    if SPARSE * (touched.len() + more) < n_ids {
        found.iter().for_each(|found| touched.extend(&found.ids));
        touched.sort_unstable();
        touched.dedup();
        return;
    }
    let mut seen = vec![false; n_ids];
    for &id in touched
        .iter()
        .chain(found.iter().flat_map(|found| &found.ids))
    {
        seen[id as usize] = true;
    }
    touched.clear();
    touched.extend((0..n_ids as u32).filter(|&id| seen[id as usize]));
}

/// What is wrong with forgetting a chunk that has words which were never counted.
fn not_there(batch: &Batch, chunk: &Chunk) -> Error {
    let word = chunk.fresh.names().get(0).to_vec();
    let times = |ids: &[u32]| ids.iter().filter(|&&id| id == Fresh::MARK).count() as u64;
    let first = chunk.texts().find(|(_, ids)| times(ids) > 0);
    let (row, times) = first.map_or((0, 1), |(row, ids)| (row, times(ids)));
    Error::NotThere {
        word: Some(word),
        class: batch.rows.classes[row].max(0) as usize,
        left: Number::Whole(-i128::from(times * batch.times(row))),
    }
}
