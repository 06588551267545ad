//! Adds up the words of rows, class by class: texts whose words were looked up, or the rows of a matrix.
//!
//! The rows of a class are cut into jobs. A job adds its rows up in an array of all words, which stays in the cache, or, if it has
//! few words, in a list that is sorted. Sums are exact, so they do not depend on how rows are cut.

use super::accumulators::{Accumulator, LightCell, NarrowCell, PartsCell, WeightedCell};
use super::store::{CellCounts, Count, Counts, Unit, merge, times};
use crate::classes::{Rows, Weights};
use crate::hash_table::Numbering;
use crate::integers::{Int, PARTS};
use crate::simd::wide;
use crate::threads;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The sums of some rows of one class: the cells in the order of words, and the sums over all words.
#[derive(Clone, Debug)]
pub struct ClassSums {
    pub class: u32,
    /// The word of each cell, ascending.
    pub ids: Vec<u32>,
    /// The occurrences and documents of each cell.
    pub counts: CellCounts,
    /// The number of rows, in the unit of `counts`.
    pub texts: Count,
    /// Occurrences and documents of all words, in the unit of `counts`.
    pub totals: Counts,
}

impl ClassSums {
    /// Adds up the totals. `texts` is in the unit of `counts`.
    pub fn new(class: u32, ids: Vec<u32>, counts: CellCounts, texts: Count) -> ClassSums {
        let totals = match &counts {
            CellCounts::Narrow(counts) => {
                let sum = |i: usize| counts.iter().map(|counts| u64::from(counts[i])).sum();
                [0, 1].map(|i| Int([sum(i), 0, 0]))
            }
            CellCounts::Parts(counts) => counts.iter().fold(Counts::default(), |mut sum, more| {
                merge(&mut sum, more);
                sum
            }),
        };
        ClassSums { class, ids, counts, texts, totals }
    }

    /// The unit of all counts.
    pub fn unit(&self) -> Unit {
        self.counts.unit()
    }

    /// Converts the sums to a finer unit.
    pub fn make_finer(&mut self, unit: Unit) {
        let old = self.unit();
        if unit > old {
            let counts = (0..self.ids.len()).map(|i| old.all_to(unit, self.counts.get(i)));
            self.counts = CellCounts::Parts(counts.collect());
            self.texts = old.to(unit, self.texts);
            self.totals = old.all_to(unit, self.totals);
        }
    }

    /// The positions in `ids` of the cells of a range of words.
    pub fn positions(&self, words: &Range<u32>) -> Range<usize> {
        let first_from = |word| self.ids.partition_point(|&id| id < word);
        first_from(words.start)..first_from(words.end)
    }
}

/// Rows of words to be added up.
pub trait WordRows: Sync {
    /// The number of words, or columns.
    fn n_ids(&self) -> usize;
    /// The number of cells of a row; a text may have fewer distinct words.
    fn size(&self, row: usize) -> usize;
    /// The words of a text's tokens, if each token counts 1.
    fn tokens(&self, _row: usize) -> Option<&[u32]> {
        None
    }
    /// How often a row has each word, if it lists all words in their order.
    fn counts_of_all_words<'b>(
        &'b self,
        _row: usize,
        _scratch: &'b mut Scratch,
    ) -> Option<&'b [f64]> {
        None
    }
    /// Calls `f` with each word of a row and how often the row has it (damped or not). `scratch` is memory that all rows share.
    fn each(&self, row: usize, scratch: &mut Scratch, f: impl FnMut(u32, f64));
}

/// Memory that reading a row needs.
#[derive(Default)]
pub struct Scratch {
    /// Whether all rows are read, one after the other.
    pub reads_all_rows: bool,
    /// The rows whose counts are in `counts`, if it has several.
    pub tile: Range<usize>,
    /// Counts of a matrix's cells: those of the rows of `tile`, `[row][word]`, or of the row that was read last.
    pub counts: Vec<f64>,
    /// The distinct words of a text, how often each occurs, and these numbers of times in ascending order.
    pub numbering: Numbering,
    pub ids: Vec<u32>,
    pub times: Vec<u32>,
    pub sorted_times: Vec<u32>,
}

/// Rows to be added up, and what is known about their sums.
pub struct RowsToSum<'a, W> {
    pub words: &'a W,
    /// Classes and weights of rows.
    pub rows: &'a Rows<'a>,
    pub order: RowOrder<'a>,
    /// Whether rows have every word a whole number of times.
    pub counts_are_whole: bool,
    /// Whether the sums of a job, rounded up, are below 2^32.
    pub fits_32_bits: bool,
    /// The cells of a job; it may have one row more.
    pub job_size: usize,
}

/// The order in which rows are added up.
pub enum RowOrder<'a> {
    /// In their own order, in a table of all classes and words, which must be small.
    Sequential,
    /// Class after class: the rows of class c are `rows[starts[c]..starts[c + 1]]`. A row may have several classes.
    ByClass { rows: &'a [i64], starts: &'a [i64] },
}

/// The most rows of a job: 16 bits can number them.
const MAX_JOB_ROWS: usize = u16::MAX as usize;

/// Jobs with fewer cells than one for so many words sort their cells; other jobs add them up in an array of all words.
const SPARSE: usize = 32;

/// Arrays of zeros; jobs take one and put it back as zeros.
struct Arrays<A>(Mutex<Vec<Vec<A>>>);

impl<A: Accumulator> Arrays<A> {
    /// Calls `f` with an array of `len` zeros, which it must leave as zeros, and returns its answer.
    fn with<R>(&self, len: usize, f: impl FnOnce(&mut [A]) -> R) -> R {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut array = lock().pop().unwrap_or_default();
        array.resize(len, A::default());
        let answer = f(&mut array);
        lock().push(array);
        answer
    }
}

impl<W: WordRows> RowsToSum<'_, W> {
    /// Adds up the rows. There may be several sums of one class, which is that of several jobs.
    pub fn add_up(&self, threads: usize) -> Vec<ClassSums> {
        let one_each = matches!(self.rows.weights, Weights::Ones);
        let whole_weights = !matches!(self.rows.weights, Weights::Parts(_));
        match self.counts_are_whole {
            true if self.fits_32_bits && one_each => self.run(threads, Self::add_tokens),
            true if self.fits_32_bits && whole_weights => {
                self.run(threads, Self::add_rows::<NarrowCell>)
            }
            true => self.run(threads, Self::add_rows::<WeightedCell>),
            false if self.fits_32_bits && one_each => {
                self.run(threads, Self::add_rows::<LightCell>)
            }
            false => self.run(threads, Self::add_rows::<PartsCell>),
        }
    }

    /// Adds up the rows job by job in cells of type `A`. `add` adds rows, given by their numbers, up in an array of zeros for all
    /// words.
    fn run<A: Accumulator>(
        &self,
        threads: usize,
        add: impl Fn(&Self, &[i64], &mut [A]) + Sync,
    ) -> Vec<ClassSums> {
        let arrays = Arrays::<A>(Mutex::new(vec![]));
        let RowOrder::ByClass { rows: order, starts } = self.order else {
            let (n, cells) = (self.rows.len(), self.rows.len() * self.words.n_ids());
            let jobs = (cells / self.job_size).clamp(1, 4 * threads);
            let sums = threads::ranges(threads, n, n.div_ceil(jobs), |rows| {
                let len = self.rows.n_classes * self.words.n_ids();
                arrays.with(len, |table| self.sum_table(rows, table))
            });
            return sums.into_iter().flatten().collect();
        };
        let jobs = self.jobs(order, starts);
        threads::map(threads, jobs.len(), |i| {
            let (class, rows) = (jobs[i].0, &order[jobs[i].1.clone()]);
            let cells: usize = rows.iter().map(|&row| self.words.size(row as usize)).sum();
            let (ids, counts) = if cells < self.words.n_ids() / SPARSE {
                self.sort_cells::<A>(rows)
            } else {
                arrays.with(self.words.n_ids(), |array| {
                    add(self, rows, array);
                    take_used_cells(array)
                })
            };
            let weight = rows.iter().map(|&row| self.weight(row as usize, A::UNIT)).sum();
            class_sums(class, ids, counts, weight)
        })
    }

    /// The jobs: a class, and the range of its rows in `order`. The rows of class c are `order[starts[c]..starts[c + 1]]`.
    fn jobs(&self, order: &[i64], starts: &[i64]) -> Vec<(usize, Range<usize>)> {
        let mut jobs = vec![];
        for (class, ends) in starts.windows(2).enumerate() {
            let (start, end) = (ends[0] as usize, ends[1] as usize);
            let (mut first, mut cells) = (start, 0);
            for (at, &row) in order.iter().enumerate().take(end).skip(start) {
                cells += self.words.size(row as usize);
                let is_full = cells >= self.job_size || at + 1 - first == MAX_JOB_ROWS;
                if is_full || at + 1 == end {
                    jobs.push((class, first..at + 1));
                    (first, cells) = (at + 1, 0);
                }
            }
        }
        jobs
    }

    /// The weight of a row, in rows ([`Unit::One`]) or in parts of a row ([`Unit::Part`]).
    #[inline(always)]
    fn weight(&self, row: usize, unit: Unit) -> u128 {
        match unit {
            Unit::One => self.rows.weight(row),
            Unit::Part => self.rows.weight_in_parts(row),
        }
    }

    /// Adds rows of all classes up in a table of zeros, `[class][word]`, which becomes zeros again. Returns the sums of each class
    /// that has rows.
    fn sum_table<A: Accumulator>(&self, rows: Range<usize>, table: &mut [A]) -> Vec<ClassSums> {
        let n_ids = self.words.n_ids();
        let mut scratch = Scratch { reads_all_rows: true, ..Scratch::default() };
        let sums = &mut *table;
        let all_rows = rows.clone();
        wide!(for row in rows {
            if let Ok(class) = usize::try_from(self.rows.classes[row]) {
                let sums = &mut sums[class * n_ids..(class + 1) * n_ids];
                self.add_row(row, sums, &mut scratch);
            }
        });
        let mut weights = vec![0; self.rows.n_classes];
        for row in all_rows {
            if let Ok(class) = usize::try_from(self.rows.classes[row]) {
                weights[class] += self.weight(row, A::UNIT);
            }
        }
        let mut all = vec![];
        for (class, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            let sums = &mut table[class * n_ids..(class + 1) * n_ids];
            let (ids, counts) = take_used_cells(sums);
            all.push(class_sums(class, ids, counts, weight));
        }
        all
    }

    /// Adds rows, given by their numbers, up in `sums`, an array of zeros for all words.
    fn add_rows<A: Accumulator>(&self, rows: &[i64], sums: &mut [A]) {
        let mut scratch = Scratch::default();
        wide!(for &row in rows {
            self.add_row(row as usize, sums, &mut scratch);
        });
    }

    /// Adds up rows of weight 1 in `sums`, `[word]`: texts token by token, so that the words of a text need not be sorted.
    fn add_tokens(&self, rows: &[i64], sums: &mut [NarrowCell]) {
        let tokens_of = |row: &i64| self.words.tokens(*row as usize);
        if rows.first().and_then(tokens_of).is_none() {
            return self.add_rows(rows, sums);
        }
        for (tokens, text) in rows.iter().filter_map(tokens_of).zip(1..) {
            for &id in tokens {
                sums[id as usize].add_token(text);
            }
        }
        sums.iter_mut().for_each(NarrowCell::forget_last_text);
    }

    /// Adds a row to `sums`, `[word]`.
    #[inline(always)]
    fn add_row<A: Accumulator>(&self, row: usize, sums: &mut [A], scratch: &mut Scratch) {
        let weight = self.weight(row, A::WEIGHTS);
        if let Some(counts) = self.words.counts_of_all_words(row, scratch) {
            sums.iter_mut().zip(counts).for_each(|(sum, &x)| sum.add(x, weight));
            return;
        }
        self.words.each(
            row,
            scratch,
            #[inline(always)]
            |id, x| sums[id as usize].add(x, weight),
        );
    }

    /// Adds up rows that have few of the words. Returns the words, ascending, and the counts of each.
    fn sort_cells<A: Accumulator>(&self, rows: &[i64]) -> (Vec<u32>, CellCounts) {
        let (mut cells, mut scratch): (Vec<(u32, A)>, _) = (vec![], Scratch::default());
        for &row in rows {
            let weight = self.weight(row as usize, A::WEIGHTS);
            self.words.each(row as usize, &mut scratch, |id, x| cells.push((id, A::of(x, weight))));
        }
        cells.retain(|(_, cell)| cell.is_used());
        cells.sort_by_key(|(id, _)| *id);
        cells.dedup_by(|next, first| {
            let is_same_word = next.0 == first.0;
            if is_same_word {
                first.1.merge(&next.1);
            }
            is_same_word
        });
        let ids = cells.iter().map(|(id, _)| *id).collect();
        (ids, A::counts(cells.into_iter().map(|(_, cell)| cell)))
    }
}

/// The sums of rows of a class. `weight` is that of all rows together, in rows or, if `counts` are parts, in parts of a row.
fn class_sums(class: usize, ids: Vec<u32>, counts: CellCounts, weight: u128) -> ClassSums {
    let one = if counts.unit() == Unit::One { 1 } else { PARTS };
    ClassSums::new(class as u32, ids, counts, times(weight, u128::from(one)))
}

/// The words of the cells (`[word]`) that are used, and their counts; the cells become zeros. There are no branches, since the
/// processor cannot predict which cells are used.
fn take_used_cells<A: Accumulator>(cells: &mut [A]) -> (Vec<u32>, CellCounts) {
    let (mut ids, mut n) = (vec![0; cells.len() + 1], 0);
    for (cell, id) in cells.iter().zip(0..) {
        ids[n] = id;
        n += usize::from(cell.is_used());
    }
    ids.truncate(n);
    let counts = A::counts(ids.iter().map(|&id| std::mem::take(&mut cells[id as usize])));
    (ids, counts)
}
