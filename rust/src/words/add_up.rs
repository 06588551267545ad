//! Numbers of words to cells: the texts of each class are added up in a row of all words that stays in the cache.

use super::Total;
use super::count::{Batch, Chunk};
use super::store::{Counts, Sums};
use crate::classes::Weights;
use crate::expansion::Expansion;
use crate::text::Tokeniser;
use crate::threads;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The cells of one class that some texts add up to, in the order of the words.
#[derive(Debug)]
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

    /// Where the cells of these words are.
    pub fn places(&self, words: &Range<u32>) -> Range<usize> {
        let place = |word| self.ids.partition_point(|&id| id < word);
        place(words.start)..place(words.end)
    }
}

/// Occurrences and documents, in 32 bits where they fit.
#[derive(Debug)]
pub enum Lane {
    Narrow(Vec<[u32; 2]>),
    Wide(Vec<Counts>),
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
        texts.extend(chunk.texts().map(|(row, ids)| Text {
            class: batch.rows.classes[row] as u32,
            row,
            ids,
        }));
    }
    texts.sort_by_key(|text| text.class);
    let jobs = jobs(&texts, tokens);
    let jobs = Jobs {
        batch,
        texts: jobs.into_iter().map(|job| &texts[job]).collect(),
        n_ids,
        threads,
    };
    match (batch.is_real(), batch.rows.weights) {
        (true, Weights::Ones) => jobs.run(real_job::<()>),
        (true, _) => jobs.run(real_job::<Expansion>),
        (false, Weights::Ones) => jobs.run(ones_job),
        (false, _) => jobs.run(whole_job),
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

/// Cells of words in one class, all zeros when they come and go, and the words that were met for the first time.
#[derive(Default)]
struct Row<E> {
    cells: Vec<E>,
    met: Vec<u32>,
}

/// Rows that threads use again.
struct Pool<E>(Mutex<Vec<Row<E>>>);

impl<E: Copy + Default> Pool<E> {
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

    /// The slots that are used in order, given how many were met.
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

/// Texts that weigh one. A cell has, from the highest bits down, occurrences (32), documents (16), and the last text that has the word
/// (16); texts are numbered from 1.
fn ones_job(batch: &Batch, texts: &[Text], slots: Slots, row: &mut Row<u64>) -> Found {
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
    let counts = |cell: u64| [(cell >> 32) as u32, (cell >> 16) as u32 & 0xffff];
    let counts = Slots::take(&used, row, counts);
    whole(batch, texts, slots.ids(used), Lane::Narrow(counts))
}

/// A cell where texts have whole weights.
#[derive(Clone, Copy, Debug, Default)]
struct Whole {
    counts: Counts,
    /// The last text that has the word; texts are numbered from 1.
    last: u32,
}

fn whole_job(batch: &Batch, texts: &[Text], slots: Slots, row: &mut Row<Whole>) -> Found {
    let mut met = 0;
    let weights = texts.iter().map(|text| batch.times(text.row));
    for ((text, weight), number) in slots.texts.iter().zip(weights).zip(1_u32..) {
        for &slot in *text {
            let cell = &mut row.cells[slot as usize];
            cell.counts[0] += weight;
            if cell.last != number {
                row.met[met] = slot;
                met += usize::from(cell.last == 0);
                cell.counts[1] += weight;
                cell.last = number;
            }
        }
    }
    let used = slots.used(row, met, |cell| cell.last != 0);
    let counts = Slots::take(&used, row, |cell| cell.counts);
    whole(batch, texts, slots.ids(used), Lane::Wide(counts))
}

/// A cell where sums are real.
#[derive(Clone, Copy, Debug, Default)]
struct Real<D> {
    occurrences: Expansion,
    documents: D,
    counts: [u32; 2],
    last: u32,
    /// How often the last text has the word.
    times: u32,
}

/// The weight of documents: where texts weigh one, it is their number.
trait Documents: Copy + Default + Send {
    fn add(&mut self, weight: f64);
    fn sum(self, number: u32) -> Expansion;
}

impl Documents for () {
    fn add(&mut self, _: f64) {}

    fn sum(self, number: u32) -> Expansion {
        Expansion::from_whole(u64::from(number))
    }
}

impl Documents for Expansion {
    #[inline(always)]
    fn add(&mut self, weight: f64) {
        Expansion::add(self, weight);
    }

    fn sum(self, _: u32) -> Expansion {
        self
    }
}

fn real_job<D: Documents>(
    batch: &Batch,
    texts: &[Text],
    slots: Slots,
    row: &mut Row<Real<D>>,
) -> Found {
    let damping = Damping::of(batch.tokeniser);
    let (mut met, mut distinct, mut times) = (0, vec![], vec![]);
    let (mut total, mut totals) = (Total::default(), [Total::default(); 2]);
    for ((ids, text), number) in slots.texts.iter().zip(texts).zip(1_u32..) {
        distinct.clear();
        for &slot in *ids {
            let cell = &mut row.cells[slot as usize];
            if cell.last != number {
                row.met[met] = slot;
                met += usize::from(cell.last == 0);
                distinct.push(slot);
                (cell.last, cell.times) = (number, 0);
            }
            cell.times += 1;
        }
        times.clear();
        times.extend(distinct.iter().map(|&slot| row.cells[slot as usize].times));
        let (weight, length) = (batch.weight(text.row), damping.length(&mut times));
        for &slot in &distinct {
            let cell = &mut row.cells[slot as usize];
            let sum = weight * (damping.damp(cell.times) / length);
            cell.counts[0] += cell.times;
            cell.counts[1] += 1;
            cell.occurrences.add(sum);
            cell.documents.add(weight);
            totals[0].weight.add(sum);
            totals[1].weight.add(weight);
        }
        totals[0].rows += ids.len() as u64;
        totals[1].rows += distinct.len() as u64;
        total.rows += 1;
        total.weight.add(weight);
    }
    let used = slots.used(row, met, |cell| cell.last != 0);
    let cells = Slots::take(&used, row, |cell| cell);
    let sums = |cell: &Real<D>| [cell.occurrences, cell.documents.sum(cell.counts[1])];
    Found {
        class: texts[0].class,
        ids: slots.ids(used),
        counts: Lane::Narrow(cells.iter().map(|cell| cell.counts).collect()),
        real: true,
        sums: cells.iter().map(sums).collect(),
        texts: total,
        totals,
    }
}
