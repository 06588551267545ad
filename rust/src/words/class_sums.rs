//! Adds up the words of rows, class by class: texts whose words were looked up, or the rows of a matrix.
//!
//! The rows of a class are cut into jobs. A job adds its rows up in an array of all words, which stays in the cache, or, if it has
//! few words, in a list that is sorted. Sums are exact, so they do not depend on how rows are cut.

use super::accumulators::{Accumulator, LightCell, NarrowCell, PartsCell, WeightedCell};
use super::store::{CellCounts, Count, Counts, Unit, merge, multiply_parts};
use crate::classes::{Rows, Weights};
use crate::hash_table::Numbering;
use crate::integers::{Int, PARTS};
use crate::simd::wide;
use crate::threads;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The sums of some rows of one class: of each word, and over all words.
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
    /// Sums of `texts` rows of a class, in which the word `ids[i]` has the i-th of the `counts`, occurrences and documents; adds
    /// up the totals. `texts` is in the unit of `counts`.
    pub fn new(class: u32, ids: Vec<u32>, counts: CellCounts, texts: Count) -> ClassSums {
        let totals = match &counts {
            CellCounts::Narrow(counts) => {
                // Occurrences are 0, documents 1.
                let sum = |which: usize| counts.iter().map(|cell| u64::from(cell[which])).sum();
                [0, 1].map(|which| Int([sum(which), 0, 0]))
            }
            CellCounts::Parts(counts) => counts.iter().fold(Counts::default(), |mut sum, cell| {
                merge(&mut sum, cell);
                sum
            }),
        };
        ClassSums { class, ids, counts, texts, totals }
    }

    /// The unit of all counts.
    pub fn unit(&self) -> Unit {
        self.counts.unit()
    }

    /// Converts the counts of cells, the number of texts and the totals to `unit` if that is finer than theirs.
    pub fn make_finer(&mut self, unit: Unit) {
        let old_unit = self.unit();
        if unit > old_unit {
            let counts = (0..self.ids.len()).map(|i| old_unit.counts_to(unit, self.counts.get(i)));
            self.counts = CellCounts::Parts(counts.collect());
            self.texts = old_unit.to(unit, self.texts);
            self.totals = old_unit.counts_to(unit, self.totals);
        }
    }

    /// The positions in `ids`, which are numbers of words and ascend, of those in the range `words`.
    pub fn positions(&self, words: &Range<u32>) -> Range<usize> {
        // The position of the first cell whose word has this number or a higher one.
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
    /// The numbers of the words of a row's tokens; none if tokens do not count 1 each.
    fn tokens(&self, _row: usize) -> Option<&[u32]> {
        None
    }
    /// How often a row has each word, `[word]`; none if it does not list all words in their order. `scratch` is memory that all
    /// rows share.
    fn counts_of_all_words<'b>(
        &'b self,
        _row: usize,
        _scratch: &'b mut Scratch,
    ) -> Option<&'b [f64]> {
        None
    }
    /// Calls `f` with the number of each word of a row, and how often the row has the word (damped or not). `scratch` is memory
    /// that all rows share.
    fn visit_words(&self, row: usize, scratch: &mut Scratch, f: impl FnMut(u32, f64));
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
    /// Finds a word among the distinct words of a text.
    pub numbering: Numbering,
    /// The distinct words of a text.
    pub ids: Vec<u32>,
    /// How often each of them occurs.
    pub times: Vec<u32>,
    /// The same numbers in ascending order.
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

/// Jobs of rows in their own order that each thread takes.
/// 100,000 dense rows of 50 columns took 9.9, 9.7 and 9.3 ms with 1, 4 and 16.
const JOBS: usize = 4;

/// Jobs with fewer cells than one for so many words sort their cells; other jobs add them up in an array of all words.
/// Counting the words of 20 Newsgroups takes the same time within 6 % with 1, 32 and 1,024.
const SPARSE: usize = 32;

/// Arrays of zeros; jobs take one and put it back as zeros.
struct Arrays<A>(Mutex<Vec<Vec<A>>>);

impl<A: Accumulator> Arrays<A> {
    /// Calls `f` with an array of `len` cells of zero, which it must leave as zeros, and returns its answer. The array is one
    /// that no job uses any more, or a new one; afterwards other jobs may use it.
    fn with<R>(&self, len: usize, f: impl FnOnce(&mut [A]) -> R) -> R {
        let unused_arrays = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut array = unused_arrays().pop().unwrap_or_default();
        array.resize(len, A::default());
        let answer = f(&mut array);
        unused_arrays().push(array);
        answer
    }
}

impl<W: WordRows> RowsToSum<'_, W> {
    /// Adds up the rows on so many threads, in the smallest type of cells that holds the sums, which depends on whether rows
    /// have words a whole number of times (`counts_are_whole`), on whether the sums of a job are below 2^32 (`fits_32_bits`),
    /// and on the weights. A class has one sum for each of its jobs.
    pub fn add_up(&self, threads: usize) -> Vec<ClassSums> {
        let weights_are_ones = matches!(self.rows.weights, Weights::Ones);
        let weights_are_whole = !matches!(self.rows.weights, Weights::Parts(_));
        match self.counts_are_whole {
            true if self.fits_32_bits && weights_are_ones => self.run(threads, Self::add_tokens),
            true if self.fits_32_bits && weights_are_whole => {
                self.run(threads, Self::add_rows::<NarrowCell>)
            }
            true => self.run(threads, Self::add_rows::<WeightedCell>),
            false if self.fits_32_bits && weights_are_ones => {
                self.run(threads, Self::add_rows::<LightCell>)
            }
            false => self.run(threads, Self::add_rows::<PartsCell>),
        }
    }

    /// Adds up the rows job by job, on so many threads, in cells of type `A`. `add` adds the rows with some numbers to an array
    /// of cells, `[word]`, all zero. Rows in their own order are added up in a table of all classes, without `add`. Returns one
    /// sum per job and class.
    fn run<A: Accumulator>(
        &self,
        threads: usize,
        add: impl Fn(&Self, &[i64], &mut [A]) + Sync,
    ) -> Vec<ClassSums> {
        let arrays = Arrays::<A>(Mutex::new(vec![])); // memory that jobs use in turn
        // The numbers of the rows sorted by class: those of class c are `order[starts[c]..starts[c + 1]]`.
        let RowOrder::ByClass { rows: order, starts } = self.order else {
            // `cells` are those of all rows: each row has a cell for each word.
            let (n_rows, cells) = (self.rows.len(), self.rows.len() * self.words.n_ids());
            // A job has about `job_size` cells.
            let n_jobs = (cells / self.job_size).clamp(1, JOBS * threads);
            // The sums of the classes, job after job.
            let sums = threads::ranges(threads, n_rows, n_rows.div_ceil(n_jobs), |rows| {
                let len = self.rows.n_classes * self.words.n_ids();
                arrays.with(len, |table| self.sum_table(rows, table))
            });
            return sums.into_iter().flatten().collect();
        };
        let jobs = self.jobs(order, starts);
        threads::map(threads, jobs.len(), |i| {
            let (class, positions) = jobs[i].clone(); // of the job's rows in `order`
            let rows = &order[positions];
            let cells: usize = rows.iter().map(|&row| self.words.size(row as usize)).sum(); // of these rows
            // The words that the rows have, and the occurrences and documents of each.
            let (ids, counts) = if cells < self.words.n_ids() / SPARSE {
                self.sort_cells::<A>(rows)
            } else {
                arrays.with(self.words.n_ids(), |array| {
                    add(self, rows, array);
                    take_used_cells(array)
                })
            };
            let weight = rows.iter().map(|&row| self.weight(row as usize, A::UNIT)).sum(); // of all these rows
            class_sums(class, ids, counts, weight)
        })
    }

    /// Cuts the rows of each class into jobs of about `job_size` cells: returns for each job the class, and the positions in
    /// `order` of its rows. `order` has the numbers of rows; those of class c are `order[starts[c]..starts[c + 1]]`.
    fn jobs(&self, order: &[i64], starts: &[i64]) -> Vec<(usize, Range<usize>)> {
        let mut jobs = vec![];
        for (class, bounds) in starts.windows(2).enumerate() {
            let (start, end) = (bounds[0] as usize, bounds[1] as usize); // of the class's rows in `order`
            // Positions of the job's rows, and how many cells these have.
            let (mut job, mut cells) = (start..start, 0);
            for &row in &order[start..end] {
                job.end += 1;
                cells += self.words.size(row as usize);
                let is_full = cells >= self.job_size || job.len() == MAX_JOB_ROWS;
                if is_full || job.end == end {
                    jobs.push((class, job.clone()));
                    (job.start, cells) = (job.end, 0);
                }
            }
        }
        jobs
    }

    /// The weight of the row with the number `row`, in rows ([`Unit::One`]) or in parts of a row ([`Unit::Part`]).
    #[inline(always)]
    fn weight(&self, row: usize, unit: Unit) -> u128 {
        match unit {
            Unit::One => self.rows.weight(row),
            Unit::Part => self.rows.weight_in_parts(row),
        }
    }

    /// Adds up rows of all classes, given by a range of their numbers, in a table of zeros, `[class][word]`, which becomes
    /// zeros again. Returns the sums of each class that has rows.
    fn sum_table<A: Accumulator>(&self, rows: Range<usize>, table: &mut [A]) -> Vec<ClassSums> {
        let n_ids = self.words.n_ids();
        let mut scratch = Scratch { reads_all_rows: true, ..Scratch::default() };
        let all_sums = &mut *table; // the table, for this loop
        let all_rows = rows.clone(); // the rows, for this loop
        wide!(for row in all_rows {
            if let Ok(class) = usize::try_from(self.rows.classes[row]) {
                let class_sums = &mut all_sums[class * n_ids..(class + 1) * n_ids];
                self.add_row(row, class_sums, &mut scratch);
            }
        });
        let mut weights = vec![0; self.rows.n_classes]; // of all rows of each class, in `A::UNIT`
        for row in rows {
            if let Ok(class) = usize::try_from(self.rows.classes[row]) {
                weights[class] += self.weight(row, A::UNIT);
            }
        }
        let mut sums = vec![]; // of each class that has rows
        for (class, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            let (ids, counts) = take_used_cells(&mut table[class * n_ids..(class + 1) * n_ids]);
            sums.push(class_sums(class, ids, counts, weight));
        }
        sums
    }

    /// Adds rows, given by their numbers, to `sums`, `[word]`.
    fn add_rows<A: Accumulator>(&self, rows: &[i64], sums: &mut [A]) {
        let mut scratch = Scratch::default();
        wide!(for &row in rows {
            self.add_row(row as usize, sums, &mut scratch);
        });
    }

    /// Adds rows of weight 1, given by their numbers, to `sums`, `[word]`: texts token by token, so that the words of a text
    /// need not be sorted. Texts are numbered from 1 for that. Rows that have no lists of tokens are added as other rows are.
    fn add_tokens(&self, rows: &[i64], sums: &mut [NarrowCell]) {
        // The numbers of the words of a row's tokens.
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

    /// Adds the row with the number `row` to `sums`, `[word]`. `scratch` is memory that all rows share.
    #[inline(always)]
    fn add_row<A: Accumulator>(&self, row: usize, sums: &mut [A], scratch: &mut Scratch) {
        let weight = self.weight(row, A::WEIGHTS); // of the row
        if let Some(counts) = self.words.counts_of_all_words(row, scratch) {
            sums.iter_mut().zip(counts).for_each(|(sum, &times)| sum.add(times, weight));
            return;
        }
        self.words.visit_words(
            row,
            scratch,
            #[inline(always)]
            |id, times| sums[id as usize].add(times, weight),
        );
    }

    /// Adds up rows, given by their numbers, that have only a small part of all words: sorts their cells by word and adds up
    /// those of the same word. Returns the numbers of the words, ascending, and the occurrences and documents of each.
    fn sort_cells<A: Accumulator>(&self, rows: &[i64]) -> (Vec<u32>, CellCounts) {
        // Of each word in each row: the word's number and its cell.
        let (mut cells, mut scratch): (Vec<(u32, A)>, _) = (vec![], Scratch::default());
        for &row in rows {
            let weight = self.weight(row as usize, A::WEIGHTS); // of the row
            // Called with the number of a word and how often the row has it.
            let push = |id, times| cells.push((id, A::of(times, weight)));
            self.words.visit_words(row as usize, &mut scratch, push);
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

/// The sums of rows of a class in which the word `ids[i]` has the i-th of the `counts`, occurrences and documents. `weight` is
/// that of all rows together, in rows or, if `counts` are parts of 10^-36, in parts of 10^-18 of a row.
fn class_sums(class: usize, ids: Vec<u32>, counts: CellCounts, weight: u128) -> ClassSums {
    // How often the unit of `weight` has the unit of `counts`.
    let one = if counts.unit() == Unit::One { 1 } else { PARTS };
    ClassSums::new(class as u32, ids, counts, multiply_parts(weight, u128::from(one)))
}

/// Takes the cells that a row was added to out of `cells`, `[word]`: returns the numbers of their words, and the occurrences
/// and documents of each; all cells become zeros. There are no branches, since the processor cannot predict which cells are
/// used.
fn take_used_cells<A: Accumulator>(cells: &mut [A]) -> (Vec<u32>, CellCounts) {
    let (mut ids, mut n_used) = (vec![0; cells.len() + 1], 0);
    for (cell, id) in cells.iter().zip(0..) {
        ids[n_used] = id;
        n_used += usize::from(cell.is_used());
    }
    ids.truncate(n_used); // the words whose cells are used
    let counts = A::counts(ids.iter().map(|&id| std::mem::take(&mut cells[id as usize])));
    (ids, counts)
}
