//! Numbers of words to cells: the texts of each class are added up in a row of all words that stays in the cache.

use super::accumulators::{Accumulator, NarrowCell, PartsCell, WeightedCell, weigh, weight};
use super::count::{Batch, Chunk};
use super::store::{Count, Counts, Lane, Unit, merge};
use crate::classes::Weights;
use crate::integers::Int;
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
        let totals = match &counts {
            Lane::Narrow(counts) => {
                let sum = |i: usize| counts.iter().map(|counts| u64::from(counts[i])).sum();
                [0, 1].map(|i| Int([sum(i), 0, 0]))
            }
            Lane::Parts(counts) => counts.iter().fold(Counts::default(), |mut totals, more| {
                merge(&mut totals, more);
                totals
            }),
        };
        Found { class, ids, counts, texts, totals }
    }

    /// The same of whole numbers.
    pub fn whole(class: u32, ids: Vec<u32>, counts: &[[u64; 2]], texts: u64) -> Found {
        let most = counts.as_flattened().iter().copied().max().unwrap_or(0);
        let whole = |n: u64| Int([n, 0, 0]);
        match Unit::One.that_holds(most) {
            Unit::One => {
                let counts = counts.iter().map(|counts| counts.map(|n| n as u32)).collect();
                Found::new(class, ids, Lane::Narrow(counts), whole(texts))
            }
            Unit::Part => {
                let parts = |counts: &[u64; 2]| Unit::One.all_to(Unit::Part, counts.map(whole));
                let counts = Lane::Parts(counts.iter().map(parts).collect());
                Found::new(class, ids, counts, Unit::One.to(Unit::Part, whole(texts)))
            }
        }
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
    let whole_total = texts.iter().try_fold(0_u64, |sum, text| {
        sum.checked_add(batch.times(text.row).checked_mul(text.ids.len() as u64)?)
    });
    let jobs = jobs(&texts, tokens);
    let jobs =
        Jobs { batch, texts: jobs.into_iter().map(|job| &texts[job]).collect(), n_ids, threads };
    match batch.rows.weights {
        _ if batch.tokeniser.is_damped() => jobs.run(job::<PartsCell>),
        Weights::Ones => jobs.run(ones_job),
        Weights::Whole(_) if whole_total.is_some_and(|n| Unit::One.that_holds(n) == Unit::One) => {
            jobs.run(job::<NarrowCell>)
        }
        _ => jobs.run(job::<WeightedCell>),
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

impl<E: Default> Row<E> {
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

    /// The cells of these slots, which are zeros then.
    fn take(&mut self, used: &[u32]) -> impl Iterator<Item = E> {
        used.iter().map(|&slot| std::mem::take(&mut self.cells[slot as usize]))
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

    fn ids(&self, slots: Vec<u32>) -> Vec<u32> {
        match &self.words {
            None => slots,
            Some(words) => slots.iter().map(|&slot| words[slot as usize]).collect(),
        }
    }
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
    let counts = Lane::Narrow(row.take(&used).map(counts).collect());
    found(batch, texts, slots.ids(used), counts)
}

/// What a word has, the last text that has it, and how often that does; texts are numbered from 1.
#[derive(Clone, Copy, Default)]
struct Cell<A> {
    sums: A,
    last: u32,
    times: u32,
}

/// Of how many numbers of times what they count is kept while a text is added.
const KEPT: usize = 8;

/// Texts of any weights.
fn job<A: Accumulator>(
    batch: &Batch,
    texts: &[Text],
    slots: Slots,
    row: &mut Row<Cell<A>>,
) -> Found {
    let damping = Damping::of(batch.tokeniser);
    let (mut distinct, mut often) = (vec![], vec![]);
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
        let weight = weight(&batch.rows, text.row, A::WEIGHTS);
        let length = damping.length(&mut often);
        let mut kept = [None; KEPT];
        for &slot in &distinct {
            let cell = &mut row.cells[slot as usize];
            let one_text = || {
                let mut sums = A::default();
                sums.add(damping.damp(cell.times) / length, weight);
                sums
            };
            let more = match kept.get_mut(cell.times as usize) {
                Some(kept) => *kept.get_or_insert_with(one_text),
                None => one_text(),
            };
            cell.sums.merge(&more);
        }
    }
    let used = row.take_met();
    let counts = A::lane(row.take(&used).map(|cell| cell.sums));
    found(batch, texts, slots.ids(used), counts)
}

fn found(batch: &Batch, texts: &[Text], ids: Vec<u32>, counts: Lane) -> Found {
    let all = weigh(&batch.rows, texts.iter().map(|text| text.row), counts.unit());
    Found::new(texts[0].class, ids, counts, all)
}
