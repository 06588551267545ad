//! How often each word occurs in one text.

use crate::numbering::{SEED, probe};
use crate::text::Tokens;
use crate::words::UNKNOWN;

/// The size of the table that a text begins with, at most; it grows with the distinct words of the text.
const LARGE: usize = 1 << 12;

/// Ids and how often each occurs, in the order in which they first do. Reused from text to text.
#[derive(Default)]
pub(super) struct Occurrences {
    found: Vec<(u32, u32)>,
    /// Open addressing: one more than a place in `found`, or 0. Its beginning is used, a power of two.
    table: Vec<u32>,
}

impl Occurrences {
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.found.iter().copied()
    }

    /// Counts the words of a text, unknown ones passed over.
    pub(super) fn count(&mut self, ids: &[u32]) {
        self.found.clear();
        let mut size = (2 * ids.len()).clamp(16, LARGE).next_power_of_two();
        self.empty(size);
        for &id in ids.iter().filter(|&&id| id != UNKNOWN) {
            let at = self.slot(id, size);
            match self.table[at] {
                0 => {
                    self.found.push((id, 1));
                    self.table[at] = self.found.len() as u32;
                    if self.found.len() * 2 > size {
                        size *= 2;
                        self.grow(size);
                    }
                }
                place => self.found[place as usize - 1].1 += 1,
            }
        }
    }

    fn empty(&mut self, size: usize) {
        if self.table.len() < size {
            self.table.resize(size, 0);
        }
        self.table[..size].fill(0);
    }

    fn grow(&mut self, size: usize) {
        self.empty(size);
        for place in 0..self.found.len() {
            let at = self.slot(self.found[place].0, size);
            self.table[at] = place as u32 + 1;
        }
    }

    /// Where an id stands or is to stand.
    #[inline(always)]
    fn slot(&self, id: u32, size: usize) -> usize {
        let hash = u64::from(id).wrapping_mul(SEED) >> 32;
        probe(&self.table[..size], hash, |place| {
            place == 0 || self.found[place as usize - 1].0 == id
        })
    }
}

/// Appends how often each token occurs that is no known word.
pub(super) fn count_unknown(tokens: &Tokens, ids: &[u32], times: &mut Vec<u32>) {
    let unknown = tokens.iter().zip(ids).filter(|(_, id)| **id == UNKNOWN);
    let mut unknown: Vec<&[u8]> = unknown.map(|(token, _)| token).collect();
    unknown.sort_unstable();
    times.extend(unknown.chunk_by(|a, b| a == b).map(|same| same.len() as u32));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn tables_grow_and_are_reused() {
        let mut occurrences = Occurrences::default();
        for n in [0, 5, 100_000, 7, 3000] {
            let ids: Vec<u32> = (0..n).map(|i| (i * 7919 % 30_011) << 12).collect();
            let mut expected = BTreeMap::new();
            for id in &ids {
                *expected.entry(*id).or_insert(0) += 1;
            }
            occurrences.count(&ids);
            assert_eq!(occurrences.iter().next().map(|(id, _)| id), ids.first().copied());
            assert_eq!(occurrences.iter().collect::<BTreeMap<_, _>>(), expected);
        }
        occurrences.count(&[UNKNOWN, 3, UNKNOWN]);
        assert_eq!(occurrences.found, [(3, 1)]);
    }
}
