//! Sets of words, such as stop words.

use crate::hash_table::{Key, Numbering};

/// A set of words. First byte and length rule most other words out.
#[derive(Clone, Debug, Default)]
pub struct WordSet {
    words: Vec<Vec<u8>>,
    /// The index in `words` of each word.
    numbering: Numbering,
    /// For each first byte, a bit for each length; the last bit stands for all lengths from 63 on. Empty if there are no words.
    lengths: Vec<u64>,
}

/// Returns the first byte of a word, and a mask with the bit of its length in [`WordSet::lengths`]. The first byte of an
/// empty word is 0. A word is bytes; all lengths from 63 on share a bit.
#[inline(always)]
fn glance(word: &[u8]) -> (usize, u64) {
    let first = word.first().copied().unwrap_or(0);
    (usize::from(first), 1 << word.len().min(63))
}

impl WordSet {
    /// The set of these words. Words are bytes. `set.lengths[first byte]` has a bit for each length of words with that first
    /// byte; `set.numbering` finds a word's index in `set.words` by its hash.
    pub fn new(words: &[Vec<u8>]) -> Self {
        let mut set = WordSet::default();
        for word in words {
            set.lengths.resize(256, 0);
            let (first, length) = glance(word);
            set.lengths[first] |= length;
            set.words.push(word.clone());
            // The number of the word is its index in `words`. None counts as the same, since a word that is there twice does
            // no harm.
            let is_same = |_| false;
            set.numbering.number(word.as_slice().hash(), is_same);
        }
        set
    }

    /// Whether the set has no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether the set has this word. `self.lengths[first byte]` has a bit for each length of words with that first byte;
    /// `self.numbering` finds a word's index in `self.words` by its hash.
    #[inline(always)]
    pub fn contains(&self, word: &[u8]) -> bool {
        let (first, length) = glance(word);
        // The set has words with this first byte and this length.
        let may_contain = self.lengths.get(first).is_some_and(|&lengths| lengths & length != 0);
        may_contain && self.numbering.has(word.hash(), |i| self.words[i] == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_words() {
        let long = vec![b'x'; 100];
        let words = WordSet::new(&[b"the".to_vec(), b"of".to_vec(), vec![], long.clone()]);
        for (word, is_in) in [
            (&b"the"[..], true),
            (b"of", true),
            (b"", true),
            (&long, true),
            (&long[1..], false),
            (b"tho", false),
            (b"th", false),
            (b"\0", false),
        ] {
            assert_eq!(words.contains(word), is_in, "{word:?}");
        }
        assert!(!WordSet::new(&[]).contains(b""));
        assert!(WordSet::new(&[]).is_empty() && !words.is_empty());
    }
}
