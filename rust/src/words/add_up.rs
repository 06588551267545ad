//! Numbers of words to cells: the texts of each class are added up in a row of all words that stays in the cache.

use super::count::{Batch, Chunk};
use super::store::{Count, Counts, Lane, Unit, merge, times};
use crate::classes::Weights;
use crate::integers::{Int, PARTS, parts};
use crate::text::Tokeniser;
use crate::threads;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The cells of one class that some texts add up to, in the order of the words.
#[derive(Clone, Debug)]
pub struct Found {
    pub class: u32,
    pub ids: Vec<u32>,
    /// What follows counts in their unit.
    pub counts: Lane,
    pub texts: Count,
    /// Over all words: occurrences and documents.
    pub totals: Counts,
}

impl Found {
    /// Cells in order, and the sum of their texts.
    pub fn new(class: u32, ids: Vec<u32>, counts: Lane, texts: Count) -> Found {
        let mut totals = Counts::default();
        match &counts {
            Lane::Narrow(counts) => totals = whole_totals(counts.iter().map(|n| n.map(u64::from))),
            Lane::Wide(counts) => totals = whole_totals(counts.iter().copied()),
            Lane::Parts(counts) => counts.iter().for_each(|more| merge(&mut totals, more)),
        }
        Found { class, ids, counts, texts, totals }
    }

    pub fn unit(&self) -> Unit {
        self.counts.unit()
    }

    /// Counts in a finer unit.
    pub fn make_finer(&mut self, unit: Unit) {
        let old = self.unit();
        if unit > old {
            let counts = (0..self.ids.len()).map(|i| old.all_to(unit, self.counts.get(i)));
            self.counts = Lane::Parts(counts.collect());
            self.texts = old.to(unit, self.texts);
            self.totals = old.all_to(unit, self.totals);
        }
    }

    /// Where the cells of these words are.
    pub fn places(&self, words: &Range<u32>) -> Range<usize> {
        let place = |word| self.ids.partition_point(|&id| id < word);
        place(words.start)..place(words.end)
    }
}

fn whole_totals(counts: impl Iterator<Item = [u64; 2]>) -> Counts {
    let sum = counts.fold([0, 0], |sum, more| [sum[0] + more[0], sum[1] + more[1]]);
    sum.map(|n| Int([n, 0, 0]))
}

/// How much a word counts that occurs so many times, and the length of a text in which words occur so many times each.
#[derive(Clone, Copy, Debug)]
pub struct Damping {
    log: bool,
    length: bool,
}

impl Damping {
    pub fn of(tokeniser: &Tokeniser) -> Self {
        Damping { log: tokeniser.settings().log, length: tokeniser.settings().length }
    }

    #[inline(always)]
    pub fn damp(self, times: u32) -> f64 {
        let times = f64::from(times);
        if self.log { times.ln_1p() } else { times }
    }

    /// The same in parts of a token, in a text of this length.
    fn parts(self, times: u32, length: f64) -> u128 {
        match self.log || self.length {
            // No token counts more often than it occurs.
            true => parts(self.damp(times) / length).unwrap_or(0),
            false => u128::from(times) * u128::from(PARTS),
        }
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

/// A text's words.
#[derive(Clone, Copy)]
struct Text<'a> {
    class: u32,
    row: usize,
    ids: &'a [u32],
}

/// Texts that are added up at a time, so that 16 bits can number them.
const MOST_TEXTS: usize = u16::MAX as usize;

/// Adds up the texts of all chunks, class by class, so many tokens at a time.
pub fn add_up(
    batch: &Batch,
    chunks: &[Chunk],
    n_ids: usize,
    tokens: usize,
    threads: usize,
) -> Vec<Found> {
    let mut texts: Vec<Text> = vec![];
    for chunk in chunks {
        for (row, ids) in chunk.texts() {
            texts.extend(batch.classes(row).map(|class| Text { class, row, ids }));
        }
    }
    texts.sort_by_key(|text| text.class);
    let jobs = jobs(&texts, tokens);
    let jobs =
        Jobs { batch, texts: jobs.into_iter().map(|job| &texts[job]).collect(), n_ids, threads };
    match (batch.unit(), batch.rows.weights) {
        (Unit::Part, _) => jobs.run(parts_job),
        (Unit::One, Weights::Ones) => jobs.run(ones_job),
        (Unit::One, _) => jobs.run(whole_job),
    }
}

/// Runs of texts of one class, each of so many tokens or a little more: enough for a thread, few enough that all threads get some.
fn jobs(texts: &[Text], most: usize) -> Vec<Range<usize>> {
    let (mut jobs, mut first, mut tokens) = (vec![], 0, 0);
    for (i, text) in texts.iter().enumerate() {
        let full = tokens >= most || i - first >= MOST_TEXTS;
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

struct Jobs<'a, 'b> {
    batch: &'a Batch<'b>,
    texts: Vec<&'a [Text<'a>]>,
    n_ids: usize,
    threads: usize,
}

impl Jobs<'_, '_> {
    fn run<E: Copy + Default + Send>(
        self,
        job: impl Fn(&Batch, &[Text], Slots, &mut Row<E>) -> Found + Sync,
    ) -> Vec<Found> {
        let pool = Pool(Mutex::new(vec![]));
        threads::map(self.threads, self.texts.len(), |i| {
            let texts = self.texts[i];
            Slots::with(texts, self.n_ids, size_of::<E>(), |slots| {
                pool.with(slots.len, |row| job(self.batch, texts, slots, row))
            })
        })
    }
}

/// Cells of words in one class, and bits of those that were met; all zeros when they come and go.
#[derive(Default)]
struct Row<E> {
    cells: Vec<E>,
    met: Vec<u64>,
}

impl<E> Row<E> {
    /// The cell of a word, which is met.
    #[inline(always)]
    fn meet(&mut self, slot: u32) -> &mut E {
        self.met[slot as usize / 64] |= 1 << (slot % 64);
        &mut self.cells[slot as usize]
    }

    /// The words that were met, in order.
    fn take_met(&mut self) -> Vec<u32> {
        let n: u32 = self.met.iter().map(|bits| bits.count_ones()).sum();
        let mut met = Vec::with_capacity(n as usize);
        for (bits, first) in self.met.iter_mut().zip((0..).step_by(64)) {
            while *bits != 0 {
                met.push(first + bits.trailing_zeros());
                *bits &= *bits - 1;
            }
        }
        met
    }
}

/// Rows that threads use again.
struct Pool<E>(Mutex<Vec<Row<E>>>);

impl<E: Copy + Default> Pool<E> {
    fn with<R>(&self, len: usize, f: impl FnOnce(&mut Row<E>) -> R) -> R {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut row = lock().pop().unwrap_or_default();
        if row.cells.len() < len {
            row.cells.resize(len, E::default());
            row.met.resize(len.div_ceil(64), 0);
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

    /// The cells of these slots, which are zeros then.
    fn take<E: Copy + Default, T>(used: &[u32], row: &mut Row<E>, cell: impl Fn(E) -> T) -> Vec<T> {
        let take = |&slot: &u32| cell(std::mem::take(&mut row.cells[slot as usize]));
        used.iter().map(take).collect()
    }

    fn ids(&self, slots: Vec<u32>) -> Vec<u32> {
        match &self.words {
            None => slots,
            Some(words) => slots.iter().map(|&slot| words[slot as usize]).collect(),
        }
    }
}

/// What texts of whole weights add up to.
fn whole(batch: &Batch, texts: &[Text], ids: Vec<u32>, counts: Lane) -> Found {
    let n = texts.iter().map(|text| batch.times(text.row)).sum();
    Found::new(texts[0].class, ids, counts, Int([n, 0, 0]))
}

/// Texts that weigh one. A cell has, from the highest bits down, occurrences (32), documents (16), and the last text that has the word
/// (16); texts are numbered from 1.
fn ones_job(batch: &Batch, texts: &[Text], slots: Slots, row: &mut Row<u64>) -> Found {
    for (text, number) in slots.texts.iter().zip(1_u64..) {
        for &slot in *text {
            let cell = row.meet(slot);
            let last = *cell & 0xffff;
            // Which words are met for the first time in this text cannot be guessed: no branches.
            let document = u64::from(last != number) << 16;
            *cell = (*cell ^ last | number) + (1 << 32) + document;
        }
    }
    let used = row.take_met();
    let counts = |cell: u64| [(cell >> 32) as u32, (cell >> 16) as u32 & 0xffff];
    let counts = Slots::take(&used, row, counts);
    whole(batch, texts, slots.ids(used), Lane::Narrow(counts))
}

/// A cell where texts have whole weights.
#[derive(Clone, Copy, Debug, Default)]
struct Whole {
    counts: [u64; 2],
    /// The last text that has the word; texts are numbered from 1.
    last: u32,
}

fn whole_job(batch: &Batch, texts: &[Text], slots: Slots, row: &mut Row<Whole>) -> Found {
    let weights = texts.iter().map(|text| batch.times(text.row));
    for ((text, weight), number) in slots.texts.iter().zip(weights).zip(1_u32..) {
        for &slot in *text {
            let cell = row.meet(slot);
            cell.counts[0] += weight;
            if cell.last != number {
                cell.counts[1] += weight;
                cell.last = number;
            }
        }
    }
    let used = row.take_met();
    let counts = Slots::take(&used, row, |cell| cell.counts);
    whole(batch, texts, slots.ids(used), Lane::Wide(counts))
}

/// A cell where numbers are parts.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    occurrences: Count,
    /// In parts of a row.
    documents: u128,
    last: u32,
    /// How often the last text has the word.
    times: u32,
}

/// Of how many numbers of times what they count is kept while a text is added.
const KEPT: usize = 8;

fn parts_job(batch: &Batch, texts: &[Text], slots: Slots, row: &mut Row<Parts>) -> Found {
    let damping = Damping::of(batch.tokeniser);
    let (mut distinct, mut often) = (vec![], vec![]);
    let mut all = 0;
    for ((ids, text), number) in slots.texts.iter().zip(texts).zip(1_u32..) {
        distinct.clear();
        for &slot in *ids {
            let cell = row.meet(slot);
            if cell.last != number {
                distinct.push(slot);
                (cell.last, cell.times) = (number, 0);
            }
            cell.times += 1;
        }
        often.clear();
        often.extend(distinct.iter().map(|&slot| row.cells[slot as usize].times));
        let (weight, length) = (batch.rows.weight_in_parts(text.row), damping.length(&mut often));
        let mut kept = [None; KEPT];
        for &slot in &distinct {
            let cell = &mut row.cells[slot as usize];
            let more = || times(weight, damping.parts(cell.times, length));
            let more = match kept.get_mut(cell.times as usize) {
                Some(kept) => *kept.get_or_insert_with(more),
                None => more(),
            };
            cell.occurrences.merge(&more);
            cell.documents += weight;
        }
        all += weight;
    }
    let used = row.take_met();
    let one = u128::from(PARTS);
    let counts = |cell: Parts| [cell.occurrences, times(cell.documents, one)];
    let counts = Lane::Parts(Slots::take(&used, row, counts));
    Found::new(texts[0].class, slots.ids(used), counts, times(all, one))
}
