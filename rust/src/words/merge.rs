//! Cells that were found into the store.

use super::add_up::Found;
use super::store::{Part, Unit, merge};
use super::{Words, rounded_up};
use crate::error::Error;
use crate::threads;
use std::ops::Range;

/// Cells are many if they are at least one in so many: then moving all words together costs less than moving some of them.
const MANY: usize = 32;
/// Words whose cells are loaded together.
const TOGETHER: usize = 128;
/// Cells that a thread fills at a time.
const PART: usize = 1 << 17;

impl Words {
    /// Adds cells.
    pub(super) fn add_found(&mut self, found: &mut [Found], threads: usize) -> Result<(), Error> {
        let unit = found.iter().map(Found::unit).fold(self.unit(), Unit::max);
        let most = |found: &Found| rounded_up(found.unit(), std::iter::once(found.totals[0]));
        let more: u64 = found.iter().map(most).sum();
        self.make_finer(unit.that_holds(self.total() + more));
        found.iter_mut().for_each(|found| found.make_finer(self.unit()));
        let found = &*found;
        self.cells.grow(self.vocabulary.len());
        if self.make_room(found, threads)? {
            let mut parts = self.cells.parts(PART);
            threads::try_pieces(threads, &mut parts, 1, |_, parts| {
                parts.iter_mut().for_each(|part| part.add_all(found));
                Ok::<_, Error>(())
            })?;
            self.cells.settle();
        } else {
            found.iter().for_each(|found| self.add_one_by_one(found));
        }
        self.add_totals(found);
        Ok(())
    }

    fn add_one_by_one(&mut self, found: &Found) {
        let mut cells = 0..found.ids.len();
        for ids in found.ids.chunks(TOGETHER) {
            self.cells.load(ids);
            for (&id, i) in ids.iter().zip(&mut cells) {
                self.cells.add(id as usize, found.class, &found.counts, i);
            }
        }
    }

    fn add_totals(&mut self, found: &[Found]) {
        for found in found {
            self.texts[found.class as usize].merge(&found.texts);
            merge(&mut self.totals[found.class as usize], &found.totals);
        }
    }

    /// Lays all words out anew if many cells are new; whether words then lie in order, with room for all that was found.
    ///
    /// Columns of which every other pair with a class occurs get room for all pairs, once and for all: so many there are at most.
    fn make_room(&mut self, found: &[Found], threads: usize) -> Result<bool, Error> {
        let cells: usize = found.iter().map(|found| found.ids.len()).sum();
        if MANY * cells < self.cells.words() + self.cells.len {
            return Ok(false);
        }
        if self.cells.is_wide() {
            return Ok(true);
        }
        let mut more = vec![0; self.cells.words()];
        let parts = 1 + (self.cells.len + cells) / PART;
        let size = more.len().div_ceil(parts).max(1);
        let new = threads::try_pieces(threads, &mut more, size, |i, more| {
            let first = (i * size) as u32;
            Ok::<_, Error>(self.count_new(found, first..first + more.len() as u32, more))
        })?;
        let new: usize = new.iter().sum();
        let pairs = self.cells.words() * self.n_classes();
        let crowded = self.n_columns() > 0 && 2 * (self.cells.len + new) >= pairs;
        let many = MANY * new >= self.cells.len;
        if crowded {
            self.cells.lay_out_wide(self.n_classes() as u32, threads);
        } else if many {
            self.cells.lay_out(|id| more[id], threads);
        }
        Ok(crowded || many)
    }

    /// How many cells these words do not have yet, and of each word how many.
    fn count_new(&self, found: &[Found], words: Range<u32>, more: &mut [u32]) -> usize {
        let mut new = 0;
        for found in found {
            for &id in &found.ids[found.places(&words)] {
                let fresh = !self.cells.has(id as usize, found.class);
                more[(id - words.start) as usize] += u32::from(fresh);
                new += usize::from(fresh);
            }
        }
        new
    }
}

impl Part<'_> {
    /// Adds the cells of this part's words.
    fn add_all(&mut self, found: &[Found]) {
        let words = self.words();
        for found in found {
            for i in found.places(&words) {
                self.add(found.ids[i], found.class, &found.counts, i);
            }
        }
    }
}

/// Adds the words that were found to those in order.
pub fn gather(touched: &mut Vec<u32>, found: &[Found], n_ids: usize) {
    let more: usize = found.iter().map(|found| found.ids.len()).sum();
    if 16 * (touched.len() + more) < n_ids {
        found.iter().for_each(|found| touched.extend(&found.ids));
        touched.sort_unstable();
        touched.dedup();
        return;
    }
    let mut seen = vec![false; n_ids];
    for &id in touched.iter().chain(found.iter().flat_map(|found| &found.ids)) {
        seen[id as usize] = true;
    }
    touched.clear();
    touched.extend((0..n_ids as u32).filter(|&id| seen[id as usize]));
}
