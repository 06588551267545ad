//! Pairs of words that stand side by side, known by the numbers of the two: no text is joined, hashed or compared.
//!
//! Texts are read in chunks, whose single words are numbered first, by themselves: as units. Pairs of units are then shared out by
//! hash. Each thread takes a table, and the pairs of all chunks that belong to it, in order: a table is small enough for the cache.
//! Last, each thread takes a chunk, and what is first met there gets the numbers that come next, and its name.

use super::count::Chunk;
use super::index::{MOST, Names, TOO_MANY, UNKNOWN, Vocabulary, fits};
use crate::encode::{SEED, STEP, mix};
use crate::error::{Error, demand};
use crate::text::Tokens;
use crate::threads;

/// Tables that pairs are shared out among.
const TABLES: usize = 64;

/// Marks a pair where it is first met.
const FIRST: u64 = 1 << 63;

/// The words of texts and pairs of them.
#[derive(Clone, Debug)]
pub struct Grams {
    /// Single words.
    pub(super) units: Vocabulary,
    /// The number of each unit as a word; none has one if pairs alone are counted.
    words: Option<Vec<u32>>,
    tables: Vec<Table>,
}

/// Some of the pairs.
#[derive(Clone, Debug, Default)]
struct Table {
    /// Open addressing: the two units of a pair, and its place in `ids` + 1. All zeros is an empty slot.
    slots: Vec<[u32; 3]>,
    /// The pairs' numbers, in the order in which they came.
    ids: Vec<u32>,
}

#[inline(always)]
fn place(pair: u64) -> u64 {
    mix(pair ^ SEED, STEP)
}

/// The number of the table that has a pair.
#[inline(always)]
fn table(pair: u64) -> usize {
    (place(pair) >> 58) as usize
}

/// The pairs of a text.
#[inline(always)]
fn pairs(units: &[u32]) -> impl Iterator<Item = u64> {
    units.windows(2).map(|two| u64::from(two[1]) << 32 | u64::from(two[0]))
}

impl Table {
    const FEWEST: usize = 16;

    /// Where a pair is, or the empty slot where it should be.
    #[inline(always)]
    fn slot(&self, pair: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = place(pair) as usize & mask;
        loop {
            let [first, second, number] = self.slots[at];
            if number == 0 || u64::from(second) << 32 | u64::from(first) == pair {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// A pair's place among the table's own, marked if it is new.
    #[inline(always)]
    fn number(&mut self, pair: u64) -> u64 {
        if !fits(self.ids.len() + 1, self.slots.len()) {
            self.grow();
        }
        let at = self.slot(pair);
        let own = self.ids.len() as u64;
        match self.slots[at][2] {
            0 => {
                self.slots[at] = [pair as u32, (pair >> 32) as u32, own as u32 + 1];
                self.ids.push(UNKNOWN);
                own | FIRST
            }
            number => u64::from(number - 1),
        }
    }

    /// A pair's number, or [`UNKNOWN`].
    #[inline(always)]
    fn find(&self, pair: u64) -> u32 {
        if self.slots.is_empty() {
            return UNKNOWN;
        }
        match self.slots[self.slot(pair)][2] {
            0 => UNKNOWN,
            number => self.ids[number as usize - 1],
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(Table::FEWEST);
        let old = std::mem::replace(&mut self.slots, vec![[0; 3]; size]);
        for own in old.into_iter().filter(|own| own[2] != 0) {
            let at = self.slot(u64::from(own[1]) << 32 | u64::from(own[0]));
            self.slots[at] = own;
        }
    }
}

/// The pairs of a chunk by table, in order.
struct Shared {
    pairs: Vec<u64>,
    starts: [usize; TABLES + 1],
    /// One more than the greatest unit.
    units: usize,
}

impl Shared {
    fn new(chunk: &Chunk) -> Self {
        let all = || chunk.texts().flat_map(|(_, units)| pairs(units));
        let mut starts = [0; TABLES + 1];
        all().for_each(|pair| starts[table(pair) + 1] += 1);
        for table in 0..TABLES {
            starts[table + 1] += starts[table];
        }
        let (mut next, mut shared) = (starts, vec![0; starts[TABLES]]);
        for pair in all() {
            let place = &mut next[table(pair)];
            shared[*place] = pair;
            *place += 1;
        }
        let units = chunk.ids.iter().max().map_or(0, |&unit| unit as usize + 1);
        Shared { pairs: shared, starts, units }
    }

    /// The pairs of each table.
    fn split(&mut self) -> impl Iterator<Item = &mut [u64]> {
        let mut rest = self.pairs.as_mut_slice();
        self.starts.windows(2).map(move |ends| {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(ends[1] - ends[0]);
            rest = others;
            own
        })
    }
}

/// Numbers that are known, and room for those of what is first met in a chunk.
struct Numbers<'a> {
    known: &'a [u32],
    new: std::slice::IterMut<'a, u32>,
}

/// What becomes of a chunk.
struct Job<'a> {
    chunk: &'a mut Chunk,
    shared: Shared,
    /// Of single words, if they are words; and of the pairs of each table.
    units: Option<Numbers<'a>>,
    pairs: Vec<Numbers<'a>>,
    /// The unit and the number that come next.
    unit: u32,
    next: u32,
}

/// A token whose word is first met elsewhere in the same texts: its place, its table, and its place there.
struct Later {
    at: u32,
    table: u32,
    own: u32,
}

impl Job<'_> {
    /// Gives tokens their numbers but for those whose words are first met elsewhere; and the names of those first met here.
    fn number(&mut self, units: &Names) -> (Vec<Later>, Names) {
        let (mut later, mut names) = (vec![], Names::default());
        let mut ids = Vec::with_capacity(2 * self.chunk.ids.len());
        let mut places = self.shared.starts;
        let mut ends = Vec::with_capacity(self.chunk.texts().count());
        for (_, text) in self.chunk.texts() {
            if let Some(numbers) = &mut self.units {
                for &unit in text {
                    let id = match numbers.known.get(unit as usize) {
                        Some(&id) => id,
                        None if unit == self.unit => {
                            self.unit += 1;
                            names.push(units.get(unit as usize));
                            take_next(numbers, &mut self.next)
                        }
                        None => {
                            let at = ids.len() as u32;
                            later.push(Later { at, table: TABLES as u32, own: unit });
                            UNKNOWN
                        }
                    };
                    ids.push(id);
                }
            }
            for pair in pairs(text) {
                let table = table(pair);
                let found = self.shared.pairs[places[table]];
                places[table] += 1;
                let numbers = &mut self.pairs[table];
                let own = found as u32;
                let id = if found & FIRST != 0 {
                    let [first, second] = [pair as u32, (pair >> 32) as u32];
                    names.push_pair(units.get(first as usize), units.get(second as usize));
                    take_next(numbers, &mut self.next)
                } else if let Some(&id) = numbers.known.get(own as usize) {
                    id
                } else {
                    later.push(Later { at: ids.len() as u32, table: table as u32, own });
                    UNKNOWN
                };
                ids.push(id);
            }
            ends.push(ids.len());
        }
        self.chunk.replace(ids, ends);
        (later, names)
    }
}

/// Notes and gives the number that comes next.
#[inline(always)]
fn take_next(numbers: &mut Numbers, next: &mut u32) -> u32 {
    if let Some(number) = numbers.new.next() {
        *number = *next;
    }
    *next += 1;
    *next - 1
}

/// `all` in pieces of these lengths.
fn cut<'a>(mut all: &'a mut [u32], lengths: &[usize]) -> Vec<&'a mut [u32]> {
    let mut pieces = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (piece, rest) = all.split_at_mut(length);
        pieces.push(piece);
        all = rest;
    }
    pieces
}

impl Grams {
    /// Whether single words are counted too.
    pub fn new(singly: bool) -> Self {
        Grams {
            units: Vocabulary::new(0),
            words: singly.then(Vec::new),
            tables: vec![Table::default(); TABLES],
        }
    }

    pub fn singly(&self) -> bool {
        self.words.is_some()
    }

    /// Appends the number of each word of a text, then of each pair; whether one of them is [`UNKNOWN`].
    pub fn find_each(&self, tokens: &Tokens, ids: &mut Vec<u32>) -> bool {
        let (start, mut units) = (ids.len(), vec![]);
        self.units.find_each(tokens, &mut units);
        if let Some(words) = &self.words {
            let word = |&unit: &u32| words.get(unit as usize).copied().unwrap_or(UNKNOWN);
            ids.extend(units.iter().map(word));
        }
        ids.extend(pairs(&units).map(|pair| self.tables[table(pair)].find(pair)));
        ids[start..].contains(&UNKNOWN)
    }

    /// Turns chunks of units into chunks of words. What is new gets the next numbers, and its name.
    pub(super) fn number(
        &mut self,
        names: &mut Names,
        chunks: &mut [Chunk],
        threads: usize,
    ) -> Result<(), Error> {
        let tokens: usize = chunks.iter().map(|chunk| 2 * chunk.ids.len()).sum();
        demand(tokens <= MOST - names.len(), TOO_MANY)?;
        let threads = threads::worth(threads, tokens);
        let mut shared = threads::map(threads, chunks.len(), |i| Shared::new(&chunks[i]));
        let new = self.share(&mut shared, threads);
        let later = self.assign(names, chunks, shared, &new, threads);
        let mut work: Vec<_> = chunks.iter_mut().zip(later).collect();
        let (words, tables) = (self.words.as_deref().unwrap_or(&[]), &self.tables);
        threads::each(threads, &mut work, |_, (chunk, later)| {
            for &Later { at, table, own } in later.iter() {
                let ids = tables.get(table as usize).map_or(words, |table| &table.ids);
                chunk.ids[at as usize] = ids[own as usize];
            }
        });
        Ok(())
    }

    /// Looks pairs up in their tables. Gives by table how many are first met in each chunk.
    fn share(&mut self, shared: &mut [Shared], threads: usize) -> Vec<Vec<usize>> {
        let mut work: Vec<(&mut Table, Vec<&mut [u64]>)> =
            self.tables.iter_mut().map(|table| (table, vec![])).collect();
        for chunk in shared {
            for ((_, all), own) in work.iter_mut().zip(chunk.split()) {
                all.push(own);
            }
        }
        threads::each(threads, &mut work, |_, (table, chunks)| {
            let number = |pairs: &mut &mut [u64]| {
                let before = table.ids.len();
                pairs.iter_mut().for_each(|pair| *pair = table.number(*pair));
                table.ids.len() - before
            };
            chunks.iter_mut().map(number).collect()
        })
    }

    /// Gives tokens their numbers but for those it returns, and what is new its name.
    fn assign(
        &mut self,
        names: &mut Names,
        chunks: &mut [Chunk],
        shared: Vec<Shared>,
        new: &[Vec<usize>],
        threads: usize,
    ) -> Vec<Vec<Later>> {
        let mut jobs: Vec<Job> = vec![];
        for (chunk, shared) in chunks.iter_mut().zip(shared) {
            let (pairs, next) = (Vec::with_capacity(TABLES), names.len() as u32);
            jobs.push(Job { chunk, shared, units: None, pairs, unit: 0, next });
        }
        if let Some(words) = &mut self.words {
            let known = words.len();
            let mut unit = known;
            for job in &mut jobs {
                job.unit = unit as u32;
                unit = unit.max(job.shared.units);
            }
            words.resize(unit, UNKNOWN);
            let ends = jobs.iter().skip(1).map(|job| job.unit as usize).chain([unit]);
            let lengths: Vec<usize> =
                ends.zip(&jobs).map(|(end, job)| end - job.unit as usize).collect();
            let (known, new) = words.split_at_mut(known);
            for (job, new) in jobs.iter_mut().zip(cut(new, &lengths)) {
                job.units = Some(Numbers { known, new: new.iter_mut() });
            }
        }
        for (table, lengths) in self.tables.iter_mut().zip(new) {
            let known = table.ids.len() - lengths.iter().sum::<usize>();
            let (known, new) = table.ids.split_at_mut(known);
            for (job, new) in jobs.iter_mut().zip(cut(new, lengths)) {
                job.pairs.push(Numbers { known, new: new.iter_mut() });
            }
        }
        let mut next = names.len() as u32;
        for job in &mut jobs {
            job.next = next;
            let new = job.units.iter().chain(&job.pairs).map(|numbers| numbers.new.len());
            next += new.sum::<usize>() as u32;
        }
        let Vocabulary::Named { names: units, .. } = &self.units else {
            return vec![];
        };
        let found = threads::each(threads, &mut jobs, |_, job| job.number(units));
        let (later, new): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        names.append_all(&new, threads);
        later
    }
}
