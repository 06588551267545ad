//! How often each word occurs in one text.

use crate::hash_table::{Numbering, SEED};
use crate::text::Tokens;
use crate::words::UNKNOWN;

/// The numbering table has room for this many distinct words at first, at most; it grows for longer texts. Texts of 150 words
/// took 1.4 times as long with 2^6.
const MOST_ROOM: usize = 1 << 11;

/// The ids of a text's words and how often each occurs, in the order of their first occurrence. Reused from text to text.
#[derive(Default)]
pub(super) struct Occurrences {
    /// (id, how often it occurs).
    counts: Vec<(u32, u32)>,
    /// The index in `counts` of each id.
    numbering: Numbering,
}

impl Occurrences {
    /// (id, how often it occurs) of each distinct word.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.counts.iter().copied()
    }

    /// Replaces the counts, (word id, how often it occurs), with those of a text, whose tokens have these word ids; unknown words
    /// are left out. `numbering` finds the place of a word in the counts by the word's hash.
    pub(super) fn count(&mut self, ids: &[u32]) {
        self.counts.clear();
        self.numbering.clear(ids.len().min(MOST_ROOM));
        for &id in ids.iter().filter(|&&id| id != UNKNOWN) {
            let hash = u64::from(id).wrapping_mul(SEED); // of the id
            // The word's index in the counts; their length if it is new.
            let word = self.numbering.number(hash, |word| self.counts[word].0 == id);
            if word == self.counts.len() {
                self.counts.push((id, 0));
            }
            self.counts[word].1 += 1;
        }
    }
}

/// Appends to `counts` how often each distinct token of a text that is not a word of the model occurs; `ids` has the word id of
/// each token, `UNKNOWN` if there is none.
pub(super) fn count_unknown(tokens: &Tokens, ids: &[u32], counts: &mut Vec<u32>) {
    let tokens_and_ids = tokens.iter().zip(ids);
    let unknown = tokens_and_ids.filter_map(|(token, id)| (*id == UNKNOWN).then_some(token));
    let mut unknown_tokens: Vec<&[u8]> = unknown.collect();
    unknown_tokens.sort_unstable();
    let equal_tokens = unknown_tokens.chunk_by(|token, next| token == next);
    counts.extend(equal_tokens.map(|tokens| tokens.len() as u32));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn tables_grow_and_are_reused() {
        let mut occurrences = Occurrences::default();
        for n in [0, 5, 100_000, 7, 3000] {
            // Ids that repeat after 30,011, and whose lowest bits are all 0.
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
        assert_eq!(occurrences.counts, [(3, 1)]);
    }
}
