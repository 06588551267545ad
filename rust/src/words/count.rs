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

/// How texts are cut. What depends on it is time and memory, and the last bits of real sums.
#[derive(Clone, Copy)]
struct Cut {
    /// Bytes of text that a thread takes at a time.
    chunk: usize,
    /// Chunks that are looked up in the same words, at most: there are fewer while most words are new.
    widest: usize,
    /// Bytes of words, each n-gram by itself, whose numbers are held at a time.
    round: usize,
    /// Tokens of one class that are added up at a time.
    job: usize,
}

const CUT: Cut = Cut {
    chunk: 1 << 19,
    widest: 64,
    round: 96 << 20,
    job: 1 << 20,
};

/// Texts that are added up at a time, so that 16 bits can number them.
const JOB_TEXTS: usize = u16::MAX as usize;
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
        )?;
        self.check_size(words)
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
        let tokens_per_byte = self.tokens_per_byte() as u128;
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

    /// The rows from `first` on, `end` at most, until they have so many bytes.
    fn rows(&self, first: usize, end: usize, bytes: usize) -> Range<usize> {
        let mut size = 0;
        let mut last = first;
        while last < end && size < bytes {
            size += self.texts.size(last) + 1;
            last += 1;
        }
        first..last
    }

    /// Tokens that a byte of text may begin.
    fn tokens_per_byte(&self) -> usize {
        let settings = self.tokeniser.settings();
        usize::from(settings.longest - settings.shortest) + 1
    }
}

/// The tokens of some rows as numbers of words.
#[derive(Debug, Default)]
struct Chunk {
    ids: Vec<u32>,
    /// The rows that are counted, and where the numbers of each end.
    texts: Vec<(usize, usize)>,
    /// Words that are new, and the numbers they are given.
    fresh: Fresh,
    numbers: Vec<u32>,
}

impl Chunk {
    /// `look_up` appends the numbers of the tokens.
    fn gather(
        batch: &Batch,
        rows: Range<usize>,
        mut look_up: impl FnMut(&mut Chunk, &Tokens) -> Result<(), Error>,
    ) -> Result<Chunk, Error> {
        let (mut chunk, mut tokens) = (Chunk::default(), Tokens::default());
        for row in rows {
            let counted = batch.rows.classes[row] >= 0;
            if counted && batch.texts.read(row, batch.tokeniser, &mut tokens)? {
                look_up(&mut chunk, &tokens)?;
                chunk.texts.push((row, chunk.ids.len()));
            }
        }
        Ok(chunk)
    }

    /// Words that are new get numbers of the chunk's own.
    fn read(vocabulary: &Vocabulary, batch: &Batch, rows: Range<usize>) -> Result<Chunk, Error> {
        Chunk::gather(batch, rows, |chunk, tokens| {
            let start = chunk.ids.len();
            if vocabulary.find_each(tokens, &mut chunk.ids) {
                for (token, id) in chunk.ids[start..].iter_mut().enumerate() {
                    if *id == UNKNOWN {
                        *id = chunk.fresh.number(vocabulary, tokens, token);
                    }
                }
            }
            Ok(())
        })
    }

    /// Words that are new get the next numbers.
    fn read_new(
        vocabulary: &mut Vocabulary,
        batch: &Batch,
        rows: Range<usize>,
    ) -> Result<Chunk, Error> {
        Chunk::gather(batch, rows, |chunk, tokens| {
            vocabulary.number_each(tokens, &mut chunk.ids)
        })
    }

    /// Puts the vocabulary's numbers for the chunk's own.
    fn renumber(&mut self) {
        let numbers = std::mem::take(&mut self.numbers);
        if numbers.is_empty() {
            return;
        }
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

/// A word's cell in the row of a class whose texts weigh one: from the highest bits down occurrences (32), documents (16), and the
/// last text that has the word (16); texts are numbered from 1.
type Packed = u64;

/// The same where texts have whole weights.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    counts: Counts,
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

/// Cells of words in one class, all zeros when they come and go, and the words that were met, as far as they are known.
#[derive(Default)]
struct Row<E> {
    cells: Vec<E>,
    met: Vec<u32>,
}

/// Rows that threads use again.
struct Pool<E>(Mutex<Vec<Row<E>>>);

impl<E: Copy + Default> Pool<E> {
    fn new() -> Self {
        Pool(Mutex::new(vec![]))
    }

    fn with<R>(&self, len: usize, f: impl FnOnce(&mut Row<E>) -> R) -> R {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut row = lock().pop().unwrap_or_default();
        if row.cells.len() < len {
            row.cells.resize(len, E::default());
            // One more word can be noted than there are: what stands behind the last one is always overwritten.
            row.met.resize(len + 1, 0);
        }
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

/// A row is made for all words if it has at most so many bytes per token.
const SPARSE: usize = 512;

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
    /// Calls `f` with the slots of the texts' words. A cell of the row has so many bytes.
    fn with<R>(texts: &[Text], n_ids: usize, cell: usize, f: impl FnOnce(Slots) -> R) -> R {
        let tokens: usize = texts.iter().map(|text| text.ids.len()).sum();
        if SPARSE * tokens >= cell * n_ids {
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

    /// The slots that are used in order, given those that were met.
    fn used<E: Copy>(&self, row: &Row<E>, met: usize, is_used: impl Fn(E) -> bool) -> Vec<u32> {
        if met * 32 < self.len {
            let mut used = row.met[..met].to_vec();
            used.sort_unstable();
            return used;
        }
        let cells = row.cells[..self.len].iter().zip(0..);
        let used = cells.filter(|&(&cell, _)| is_used(cell));
        used.map(|(_, slot)| slot).collect()
    }

    fn ids(&self, slots: Vec<u32>) -> Vec<u32> {
        match &self.words {
            None => slots,
            Some(words) => slots.iter().map(|&slot| words[slot as usize]).collect(),
        }
    }
}

/// Adds up texts that weigh one.
fn add_ones(slots: Slots, row: &mut Row<Packed>) -> (Vec<u32>, Lane) {
    let mut met = 0;
    for (text, number) in slots.texts.iter().zip(1_u64..) {
        for &slot in *text {
            let cell = &mut row.cells[slot as usize];
            let last = *cell & 0xffff;
            // Which words are met for the first time, here or in this text, cannot be guessed: no branches.
            row.met[met] = slot;
            met += usize::from(last == 0);
            let document = u64::from(last != number) << 16;
            *cell = (*cell ^ last | number) + (1 << 32) + document;
        }
    }
    let used = slots.used(row, met, |cell| cell != 0);
    let counts = used.iter().map(|&slot| {
        let cell = row.cells[slot as usize];
        [(cell >> 32) as u32, (cell >> 16) as u32 & 0xffff]
    });
    let lane = Lane::Narrow(counts.collect());
    for &slot in &used {
        row.cells[slot as usize] = 0;
    }
    (slots.ids(used), lane)
}

/// Adds up texts that have whole weights.
fn add_whole(
    slots: Slots,
    weights: impl Iterator<Item = u64>,
    row: &mut Row<Entry>,
) -> (Vec<u32>, Lane) {
    let mut met = 0;
    for ((text, weight), number) in slots.texts.iter().zip(weights).zip(1_u32..) {
        for &slot in *text {
            let entry = &mut row.cells[slot as usize];
            entry.counts[0] += weight;
            if entry.last != number {
                row.met[met] = slot;
                met += usize::from(entry.last == 0);
                entry.counts[1] += weight;
                entry.last = number;
            }
        }
    }
    let used = slots.used(row, met, |entry| entry.last != 0);
    let counts = used.iter().map(|&slot| row.cells[slot as usize].counts);
    let lane = Lane::Wide(counts.collect());
    for &slot in &used {
        row.cells[slot as usize] = Entry::default();
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
    row: &mut Row<RealEntry>,
) -> (Vec<u32>, RealSums) {
    let (mut met, mut distinct, mut times) = (0, vec![], vec![]);
    let mut totals = [Total::default(); 2];
    for ((text, weight), number) in slots.texts.iter().zip(weights).zip(1_u32..) {
        distinct.clear();
        for &slot in *text {
            let entry = &mut row.cells[slot as usize];
            if entry.last != number {
                row.met[met] = slot;
                met += usize::from(entry.last == 0);
                distinct.push(slot);
                (entry.last, entry.times) = (number, 0);
            }
            entry.times += 1;
        }
        times.clear();
        times.extend(
            distinct
                .iter()
                .map(|&slot: &u32| row.cells[slot as usize].times),
        );
        let length = damping.length(&mut times);
        for &slot in &distinct {
            let entry = &mut row.cells[slot as usize];
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
    let used = slots.used(row, met, |entry| entry.last != 0);
    let cell = |&slot: &u32| row.cells[slot as usize];
    let found = RealSums {
        counts: used.iter().map(|slot| cell(slot).counts).collect(),
        sums: used.iter().map(|slot| cell(slot).sums).collect(),
        totals,
    };
    for &slot in &used {
        row.cells[slot as usize] = RealEntry::default();
    }
    (slots.ids(used), found)
}

/// Adds up the texts of all chunks, class by class.
fn add_up(reader: &Reader, chunks: &[Chunk], n_ids: usize) -> Vec<Found> {
    let (batch, threads) = (&reader.batch, reader.threads);
    let mut texts: Vec<Text> = vec![];
    for chunk in chunks {
        texts.extend(chunk.texts().map(|(row, ids)| Text {
            class: batch.rows.classes[row] as u32,
            row,
            ids,
        }));
    }
    texts.sort_by_key(|text| text.class);
    let jobs = jobs(&texts, reader.cut.job);
    if batch.is_real() {
        let pool = Pool::new();
        return threads::map(threads, jobs.len(), |i| {
            real_job(batch, &texts[jobs[i].clone()], n_ids, &pool)
        });
    }
    let ones = matches!(batch.rows.weights, Weights::Ones);
    let (narrow, wide) = (Pool::new(), Pool::new());
    threads::map(threads, jobs.len(), |i| {
        let texts = &texts[jobs[i].clone()];
        let tokens: usize = texts.iter().map(|text| text.ids.len()).sum();
        let cells = if ones && tokens <= u32::MAX as usize {
            Slots::with(texts, n_ids, size_of::<Packed>(), |slots| {
                narrow.with(slots.len, |row| add_ones(slots, row))
            })
        } else {
            let weights = texts.iter().map(|text| batch.times(text.row));
            Slots::with(texts, n_ids, size_of::<Entry>(), |slots| {
                wide.with(slots.len, |row| add_whole(slots, weights, row))
            })
        };
        whole_job(batch, texts, cells)
    })
}

/// Texts of one class that are added up together: so many that they are worth a thread, so few that there are enough of them.
fn jobs(texts: &[Text], most: usize) -> Vec<Range<usize>> {
    let (mut jobs, mut first, mut tokens) = (vec![], 0, 0);
    for (i, text) in texts.iter().enumerate() {
        let full = tokens >= most || i - first >= JOB_TEXTS;
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

fn whole_job(batch: &Batch, texts: &[Text], (ids, counts): (Vec<u32>, Lane)) -> Found {
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
        texts: whole(texts.iter().map(|text| batch.times(text.row)).sum()),
        totals: totals.map(whole),
    }
}

fn real_job(batch: &Batch, texts: &[Text], n_ids: usize, pool: &Pool<RealEntry>) -> Found {
    let weights = || texts.iter().map(|text| batch.weight(text.row));
    let damping = Damping::of(batch.tokeniser);
    let (ids, found) = Slots::with(texts, n_ids, size_of::<RealEntry>(), |slots| {
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

/// Reads texts round by round.
struct Reader<'a> {
    batch: Batch<'a>,
    cut: Cut,
    threads: usize,
    /// The row that is read next, and where the round ends.
    next: usize,
    end: usize,
    /// Chunks that are read at a time.
    width: usize,
}

impl<'a> Reader<'a> {
    fn new(batch: Batch<'a>, cut: Cut, threads: usize) -> Self {
        Reader {
            batch,
            cut,
            threads,
            next: 0,
            end: 0,
            width: 1,
        }
    }

    /// Begins the next round, if there is one. Where it ends depends on the texts alone.
    fn begin(&mut self) -> bool {
        // A character begins an n-gram, but only one in six or so begins a word.
        let characters = self.batch.tokeniser.settings().characters;
        let share = self.batch.tokens_per_byte() * if characters { 6 } else { 1 };
        let all = self.batch.texts.len();
        let round = self.batch.rows(self.next, all, self.cut.round / share);
        self.end = round.end;
        !round.is_empty()
    }

    /// Words that are new are given numbers.
    fn read(&mut self, vocabulary: &mut Vocabulary) -> Result<Vec<Chunk>, Error> {
        let mut chunks = vec![];
        while self.next < self.end {
            if self.threads == 1 {
                let rows = self.chunk();
                chunks.push(Chunk::read_new(vocabulary, &self.batch, rows)?);
                continue;
            }
            let mut wave = self.wave(vocabulary)?;
            for chunk in &mut wave {
                chunk.numbers = chunk.fresh.adopt(vocabulary)?;
                chunk.fresh = Fresh::default();
            }
            threads::try_pieces(self.threads, &mut wave, 1, |_, chunk| {
                chunk.iter_mut().for_each(Chunk::renumber);
                Ok::<_, Error>(())
            })?;
            chunks.append(&mut wave);
        }
        Ok(chunks)
    }

    /// Words that are new are an error.
    fn read_known(&mut self, vocabulary: &Vocabulary) -> Result<Vec<Chunk>, Error> {
        let mut chunks = vec![];
        while self.next < self.end {
            let mut wave = self.wave(vocabulary)?;
            if let Some(chunk) = wave.iter().find(|chunk| !chunk.fresh.is_empty()) {
                return Err(not_there(&self.batch, chunk));
            }
            chunks.append(&mut wave);
        }
        Ok(chunks)
    }

    fn chunk(&mut self) -> Range<usize> {
        let rows = self.batch.rows(self.next, self.end, self.cut.chunk);
        self.next = rows.end;
        rows
    }

    fn wave(&mut self, vocabulary: &Vocabulary) -> Result<Vec<Chunk>, Error> {
        let mut ranges = vec![];
        while ranges.len() < self.width && self.next < self.end {
            ranges.push(self.chunk());
        }
        self.width = (2 * self.width).min(self.cut.widest);
        threads::try_map(self.threads, ranges.len(), |i| {
            Chunk::read(vocabulary, &self.batch, ranges[i].clone())
        })
    }
}

impl Words {
    /// Adds texts. Gives the numbers of the words they have, in order.
    pub fn count(&mut self, batch: Batch, threads: usize) -> Result<Vec<u32>, Error> {
        let threads = threads::worth(threads, batch.texts.bytes());
        self.count_cut(Reader::new(batch, CUT, threads))
    }

    fn count_cut(&mut self, mut reader: Reader) -> Result<Vec<u32>, Error> {
        reader.batch.check(self)?;
        if reader.batch.is_real() {
            self.make_real();
        }
        let mut touched = vec![];
        while reader.begin() {
            let chunks = reader.read(&mut self.vocabulary)?;
            let found = add_up(&reader, &chunks, self.n_ids());
            drop(chunks);
            self.add_found(&found, reader.threads)?;
            gather(&mut touched, &found, self.n_ids());
        }
        Ok(touched)
    }

    /// Takes texts away again; changes nothing if they are not there.
    pub fn forget(&mut self, batch: Batch, threads: usize) -> Result<Vec<u32>, Error> {
        let threads = threads::worth(threads, batch.texts.bytes());
        self.forget_cut(Reader::new(batch, CUT, threads))
    }

    fn forget_cut(&mut self, mut reader: Reader) -> Result<Vec<u32>, Error> {
        reader.batch.check(self)?;
        let (mut all, mut touched) = (vec![], vec![]);
        while reader.begin() {
            let chunks = reader.read_known(&self.vocabulary)?;
            let found = add_up(&reader, &chunks, self.n_ids());
            gather(&mut touched, &found, self.n_ids());
            all.extend(found);
        }
        self.take_found(&all, reader.batch.is_real())?;
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
                    if i % TOGETHER == 0 {
                        let end = found.ids.len().min(i + TOGETHER);
                        self.cells.load(&found.ids[i..end]);
                    }
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
/// Words whose cells are loaded together.
const TOGETHER: usize = 128;
/// Cells that a thread fills at a time.
const PART: usize = 1 << 18;

/// Adds the words that were found to those in order.
fn gather(touched: &mut Vec<u32>, found: &[Found], n_ids: usize) {
    let more: usize = found.iter().map(|found| found.ids.len()).sum();
    if 16 * (touched.len() + more) < n_ids {
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
