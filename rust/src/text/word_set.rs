//! Sets of words: those that are not counted, or those that alone are.

use crate::numbering::Key;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// A set of words, quick to say no: most words are turned away by their first byte and length.
#[derive(Clone, Debug, Default)]
pub struct WordSet {
    words: HashSet<Box<[u8]>, BuildHasherDefault<Quick>>,
    /// By first byte, a bit per length; the last bit is all lengths from 63 on. Empty without words.
    lengths: Vec<u64>,
}

/// What a word shows at a glance; the empty word passes for a NUL byte.
#[inline(always)]
fn glance(word: &[u8]) -> (usize, u64) {
    let first = word.first().copied().unwrap_or(0);
    (usize::from(first), 1 << word.len().min(63))
}

impl WordSet {
    pub fn new(words: &[Vec<u8>]) -> Self {
        let mut lengths = vec![0; if words.is_empty() { 0 } else { 256 }];
        for word in words {
            let (first, length) = glance(word);
            lengths[first] |= length;
        }
        let words = words.iter().map(|word| word.as_slice().into()).collect();
        WordSet { words, lengths }
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    #[inline(always)]
    pub fn contains(&self, word: &[u8]) -> bool {
        let (first, length) = glance(word);
        let likely = self.lengths.get(first).is_some_and(|&all| all & length != 0);
        likely && self.words.contains(word)
    }
}

/// The hash of a word, as words are hashed elsewhere.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.hash();
    }

    /// The length, which is part of the hash already.
    #[inline(always)]
    fn write_usize(&mut self, _: usize) {}

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
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
