//! Adds the sums of classes to the store.

use super::class_sums::ClassSums;
use super::store::{Section, Unit, merge};
use super::{Words, rounded_up};
use crate::threads;
use std::ops::Range;

/// There are many cells to add if they are at least one in so many of those in the store: then all threads add them to words that
/// lie in order, and words are moved for that if they must. Learning 300 posts one by one took 41 to 84 ms with 4, 32 and 256, no
/// more apart than two measurements of one of them, and 958 ms with 4,096; counting words and pairs of 20 Newsgroups took 1,246,
/// 1,259 and 1,149 ms with the first three.
const MANY: usize = 32;
/// Words whose cells are loaded together. Learning 300 posts one by one takes the same time within 6 % with 8, 128 and 1,024.
const TOGETHER: usize = 128;
/// Cells that a thread adds to at a time. Counting words and pairs of 20 Newsgroups takes the same time within 8 % with 2^13,
/// 2^17 and 2^20.
const SECTION: usize = 1 << 17;

impl Words {
    /// Adds the sums of rows of classes to the store, on so many threads. Converts them and the store to the finest of their
    /// units, or to a finer one if that does not hold all occurrences together.
    pub(super) fn add_sums(&mut self, sums: &mut [ClassSums], threads: usize) {
        let finest_unit = sums.iter().map(ClassSums::unit).fold(self.unit(), Unit::max); // of the store and the sums
        // The occurrences of all words in one of the sums, in ones, rounded up.
        let occurrences =
            |sums: &ClassSums| rounded_up(sums.unit(), std::iter::once(sums.totals[0]));
        let more_occurrences: u64 = sums.iter().map(occurrences).sum();
        self.make_finer(finest_unit.that_holds(self.total() + more_occurrences));
        sums.iter_mut().for_each(|sums| sums.make_finer(self.unit()));
        let sums = &*sums;
        self.cells.grow(self.vocabulary.len());
        if self.make_room(sums, threads) {
            let mut sections = self.cells.sections(SECTION); // of words, one after the other
            threads::each(threads, &mut sections, |_, section| section.add_all(sums));
            self.cells.settle();
        } else {
            sums.iter().for_each(|sums| self.add_one_by_one(sums));
        }
        // The texts of each class, and the occurrences and documents of all words in each class.
        for sums in sums {
            self.texts[sums.class as usize].merge(&sums.texts);
            merge(&mut self.totals[sums.class as usize], &sums.totals);
        }
    }

    /// Adds the cells of the sums of a class to the store in the order of words.
    fn add_one_by_one(&mut self, sums: &ClassSums) {
        let mut positions = 0..sums.ids.len(); // of the cells in `sums`
        for ids in sums.ids.chunks(TOGETHER) {
            self.cells.load(ids);
            // The number of a word, and the position of its cell.
            for (&id, i) in ids.iter().zip(&mut positions) {
                self.cells.add(id as usize, sums.class, &sums.counts, i);
            }
        }
    }

    /// Returns whether there are many cells to add, compared with those of the store; if so, words lie in order afterwards,
    /// with room for the new cells. `sums` are sums of classes, which are to be added on so many threads.
    fn make_room(&mut self, sums: &[ClassSums], threads: usize) -> bool {
        let cells: usize = sums.iter().map(|sums| sums.ids.len()).sum(); // to add
        if MANY * cells < self.cells.words() + self.cells.len {
            return false;
        }
        let mut n_new = vec![0; self.cells.words()]; // cells of each word that the store does not have
        let n_ranges = 1 + (self.cells.len + cells) / SECTION; // of words
        let words_per_range = n_new.len().div_ceil(n_ranges).max(1);
        threads::pieces(threads, &mut n_new, words_per_range, |i, n_new| {
            let first_word = (i * words_per_range) as u32;
            self.count_new(sums, first_word..first_word + n_new.len() as u32, n_new);
        });
        if n_new.iter().any(|&n_new| n_new > 0) || !self.cells.is_in_order() {
            self.cells.lay_out(|id| n_new[id]);
        }
        true
    }

    /// Counts, for each word of the range `words`, the cells of `sums` (one per class and job) that the store does not have
    /// yet, and adds their number to `n_new`, `[word of the range]`.
    fn count_new(&self, sums: &[ClassSums], words: Range<u32>, n_new: &mut [u32]) {
        for sums in sums {
            for &id in &sums.ids[sums.positions(&words)] {
                let is_new = !self.cells.has(id as usize, sums.class);
                n_new[(id - words.start) as usize] += u32::from(is_new);
            }
        }
    }
}

impl Section<'_> {
    /// Adds the cells of this section's words, from all sums of classes.
    fn add_all(&mut self, sums: &[ClassSums]) {
        let words = self.words(); // their numbers
        for sums in sums {
            for i in sums.positions(&words) {
                // The counts of the i-th cell, whose word has the number `ids[i]`.
                self.add(sums.ids[i], sums.class, &sums.counts, i);
            }
        }
    }
}
