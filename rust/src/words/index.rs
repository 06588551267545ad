//! Which number a word has: open addressing over words of any length.
//!
//! What a word hashes to is fixed, on every platform, because indexes and buckets go into model files:
//!
//! - The *key* of a word of up to eight bytes is the word itself, as a little-endian number. That of a longer one is a hash: from
//!   `SEED ^ length` on, for each 16 bytes (the last ones filled up with zeros) taken as two little-endian numbers a and b,
//!   `state = mix(a ^ STEP, b ^ state)`, where mix folds the 128-bit product of two numbers by xor.
//! - Its *place* is `mix(key ^ SEED, STEP ^ length)`: the low bits are its slot, or its bucket.

use crate::error::{Error, demand};
use crate::text::{Span, Tokens};

/// No word's number.
pub const UNKNOWN: u32 = u32::MAX;

/// Numbers of words must fit an int32.
const MOST: usize = i32::MAX as usize;

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const STEP: u64 = 0xd6e8_feb8_6659_fd93;

#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

/// What stands for a word: up to eight bytes, the word itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    bits: u64,
    length: u32,
}

/// Up to 16 bytes as two numbers.
#[inline(always)]
fn halves(bytes: &[u8]) -> (u64, u64) {
    let mut block = [0; 16];
    block[..bytes.len()].copy_from_slice(bytes);
    split(&block)
}

#[inline(always)]
fn split(block: &[u8; 16]) -> (u64, u64) {
    let wide = u128::from_le_bytes(*block);
    (wide as u64, (wide >> 64) as u64)
}

/// The lowest `bytes` bytes, eight at most.
#[inline(always)]
fn lowest(number: u64, bytes: u32) -> u64 {
    number & !u64::MAX.checked_shl(8 * bytes).unwrap_or(0)
}

impl Key {
    /// Words of up to so many bytes are their own keys.
    const SHORT: u32 = 8;

    pub fn of(word: &[u8]) -> Key {
        let length = word.len() as u32;
        if word.len() <= Key::SHORT as usize {
            return Key {
                bits: halves(word).0,
                length,
            };
        }
        let state = word
            .chunks(16)
            .map(halves)
            .fold(SEED ^ u64::from(length), |state, (a, b)| {
                mix(a ^ STEP, b ^ state)
            });
        Key {
            bits: state,
            length,
        }
    }

    /// The same for a token in a text that goes on after it.
    #[inline(always)]
    pub fn at(text: &[u8], span: Span) -> Key {
        let (start, length) = (span.start as usize, span.end - span.start);
        let Some(block) = text.get(start..).and_then(|rest| rest.first_chunk()) else {
            return Key::of(&text[start..span.end as usize]);
        };
        let (a, b) = split(block);
        let bits = match length {
            0..=8 => lowest(a, length),
            9..=16 => mix(a ^ STEP, lowest(b, length - 8) ^ SEED ^ u64::from(length)),
            _ => return Key::of(&text[start..span.end as usize]),
        };
        Key { bits, length }
    }

    /// The key of a bucket.
    pub fn bucket(number: u32) -> Key {
        Key {
            bits: u64::from(number),
            length: 0,
        }
    }

    #[inline(always)]
    pub fn place(self) -> u64 {
        mix(self.bits ^ SEED, STEP ^ u64::from(self.length))
    }

    /// Whether equal keys are equal words.
    #[inline(always)]
    fn is_word(self) -> bool {
        self.length <= Key::SHORT
    }
}

/// The text of words, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>,
}

impl Names {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline(always)]
    pub fn get(&self, id: usize) -> &[u8] {
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start..self.ends[id]]
    }

    pub fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|id| self.get(id))
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    bits: u64,
    length: u32,
    id: u32,
}

impl Slot {
    const EMPTY: Slot = Slot {
        bits: 0,
        length: 0,
        id: UNKNOWN,
    };

    #[inline(always)]
    fn holds(self, key: Key) -> bool {
        self.bits == key.bits && self.length == key.length
    }

    fn key(self) -> Key {
        Key {
            bits: self.bits,
            length: self.length,
        }
    }
}

/// From words to their numbers. The words' text stays with the caller.
#[derive(Clone, Debug)]
pub struct Index {
    /// A power of two of them, at most half of them taken.
    slots: Vec<Slot>,
    taken: usize,
}

impl Default for Index {
    fn default() -> Self {
        Index::for_words(0)
    }
}

/// Tokens that are looked up together, so that the memory is asked for many slots at once.
const BLOCK: usize = 32;

impl Index {
    const SMALLEST: usize = 16;

    fn for_words(words: usize) -> Self {
        let size = (2 * words).next_power_of_two().max(Index::SMALLEST);
        Index {
            slots: vec![Slot::EMPTY; size],
            taken: 0,
        }
    }

    /// The number of a word, or [`UNKNOWN`].
    #[inline(always)]
    pub fn find(&self, key: Key, word: &[u8], names: &Names) -> u32 {
        let mask = self.slots.len() - 1;
        let at = key.place() as usize & mask;
        self.find_from(at, key, word, names)
    }

    #[inline(always)]
    fn find_from(&self, mut at: usize, key: Key, word: &[u8], names: &Names) -> u32 {
        let mask = self.slots.len() - 1;
        loop {
            let slot = self.slots[at];
            // An empty slot answers UNKNOWN either way.
            if slot.id == UNKNOWN
                || (slot.holds(key) && (key.is_word() || names.get(slot.id as usize) == word))
            {
                return slot.id;
            }
            at = (at + 1) & mask;
        }
    }

    /// Appends the number of each token.
    pub fn find_each(&self, tokens: &Tokens, names: &Names, ids: &mut Vec<u32>) {
        let text = tokens.text.as_slice();
        let mask = self.slots.len() - 1;
        ids.reserve(tokens.len());
        for spans in tokens.spans.chunks(BLOCK) {
            let mut keys = [(Key::default(), 0); BLOCK];
            for (key, &span) in keys.iter_mut().zip(spans) {
                let found = Key::at(text, span);
                *key = (found, found.place() as usize & mask);
            }
            for (&(key, at), span) in keys.iter().zip(spans) {
                let word = &text[span.start as usize..span.end as usize];
                ids.push(self.find_from(at, key, word, names));
            }
        }
    }

    /// Gives a word that is not there its number.
    pub fn insert(&mut self, key: Key, id: u32) {
        if 2 * (self.taken + 1) > self.slots.len() {
            self.grow();
        }
        self.place(key, id);
        self.taken += 1;
    }

    fn place(&mut self, key: Key, id: u32) {
        let mask = self.slots.len() - 1;
        let mut at = key.place() as usize & mask;
        while self.slots[at].id != UNKNOWN {
            at = (at + 1) & mask;
        }
        self.slots[at] = Slot {
            bits: key.bits,
            length: key.length,
            id,
        };
    }

    fn grow(&mut self) {
        let slots = vec![Slot::EMPTY; 2 * self.slots.len()];
        for slot in std::mem::replace(&mut self.slots, slots) {
            if slot.id != UNKNOWN {
                self.place(slot.key(), slot.id);
            }
        }
    }

    /// The numbers in the slots.
    pub fn ids(&self) -> Vec<u32> {
        self.slots.iter().map(|slot| slot.id).collect()
    }

    /// The index of these words as they were numbered; nothing if `ids` is not what [`Index::ids`] gave for them.
    pub fn from_ids(ids: &[u32], names: &Names) -> Option<Index> {
        let fits = ids.len().is_power_of_two() && 2 * names.len() <= ids.len();
        if !fits {
            return None;
        }
        let mut index = Index {
            slots: vec![Slot::EMPTY; ids.len()],
            taken: names.len(),
        };
        let mut seen = vec![false; names.len()];
        for (slot, &id) in index.slots.iter_mut().zip(ids) {
            if id != UNKNOWN {
                let seen = seen.get_mut(id as usize).filter(|seen| !**seen)?;
                *seen = true;
                let Key { bits, length } = Key::of(names.get(id as usize));
                *slot = Slot { bits, length, id };
            }
        }
        let found =
            |(id, word): (usize, &[u8])| index.find(Key::of(word), word, names) == id as u32;
        names.iter().enumerate().all(found).then_some(index)
    }
}

/// The words of a store and their numbers.
#[derive(Clone, Debug)]
pub enum Vocabulary {
    Named {
        index: Index,
        names: Names,
    },
    /// Tokens are hashed into buckets, which are the words.
    Hashed {
        /// By bucket: its number + 1, or 0.
        ids: Vec<u32>,
        /// By number.
        buckets: Vec<u32>,
    },
}

impl Vocabulary {
    pub fn new(buckets: usize) -> Self {
        match buckets {
            0 => Vocabulary::Named {
                index: Index::default(),
                names: Names::default(),
            },
            _ => Vocabulary::Hashed {
                ids: vec![0; buckets],
                buckets: vec![],
            },
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Vocabulary::Named { names, .. } => names.len(),
            Vocabulary::Hashed { buckets, .. } => buckets.len(),
        }
    }

    /// How many buckets tokens are hashed into; 0: they are not.
    pub fn buckets(&self) -> usize {
        match self {
            Vocabulary::Named { .. } => 0,
            Vocabulary::Hashed { ids, .. } => ids.len(),
        }
    }

    /// What a token is looked up by.
    #[inline(always)]
    fn key(&self, token: Key) -> Key {
        match self {
            Vocabulary::Named { .. } => token,
            Vocabulary::Hashed { ids, .. } => {
                Key::bucket((token.place() as usize & (ids.len() - 1)) as u32)
            }
        }
    }

    /// The bucket of a token, if tokens are hashed.
    pub fn bucket(&self, token: &[u8]) -> Option<u32> {
        match self {
            Vocabulary::Named { .. } => None,
            Vocabulary::Hashed { .. } => Some(self.key(Key::of(token)).bits as u32),
        }
    }

    fn find_key(&self, key: Key, word: &[u8]) -> u32 {
        match self {
            Vocabulary::Named { index, names } => index.find(key, word, names),
            Vocabulary::Hashed { ids, .. } => ids[key.bits as usize].wrapping_sub(1),
        }
    }

    /// The number of the word that a token is.
    pub fn find(&self, token: &[u8]) -> u32 {
        self.find_key(self.key(Key::of(token)), token)
    }

    /// The number of the word of this name; a bucket is called `#17`.
    pub fn find_name(&self, name: &[u8]) -> u32 {
        match self {
            Vocabulary::Named { .. } => self.find(name),
            Vocabulary::Hashed { ids, .. } => match bucket_named(name, ids.len()) {
                Some(bucket) => self.find_key(Key::bucket(bucket), name),
                None => UNKNOWN,
            },
        }
    }

    /// The number of the word of this name, a new one if it is new.
    pub fn add_name(&mut self, name: &[u8]) -> Result<u32, Error> {
        demand(self.len() < MOST, TOO_MANY)?;
        let key = match self {
            Vocabulary::Named { .. } => Key::of(name),
            Vocabulary::Hashed { ids, .. } => match bucket_named(name, ids.len()) {
                Some(bucket) => Key::bucket(bucket),
                None => {
                    return Err(Error::malformed(format!(
                        "words are hashed into {} buckets, and none is named {:?}",
                        ids.len(),
                        String::from_utf8_lossy(name)
                    )));
                }
            },
        };
        Ok(self.add(key, name))
    }

    fn add(&mut self, key: Key, word: &[u8]) -> u32 {
        match self.find_key(key, word) {
            UNKNOWN => self.insert(key, word),
            id => id,
        }
    }

    fn insert(&mut self, key: Key, word: &[u8]) -> u32 {
        let id = self.len() as u32;
        match self {
            Vocabulary::Named { index, names } => {
                names.push(word);
                index.insert(key, id);
            }
            Vocabulary::Hashed { ids, buckets } => {
                buckets.push(key.bits as u32);
                ids[key.bits as usize] = id + 1;
            }
        }
        id
    }

    /// Appends the number of each token's word.
    pub fn find_each(&self, tokens: &Tokens, ids: &mut Vec<u32>) {
        match self {
            Vocabulary::Named { index, names } => index.find_each(tokens, names, ids),
            Vocabulary::Hashed { ids: numbers, .. } => {
                let mask = numbers.len() - 1;
                let places = tokens.spans.iter().map(|&span| {
                    let place = Key::at(&tokens.text, span).place() as usize;
                    numbers[place & mask].wrapping_sub(1)
                });
                ids.extend(places);
            }
        }
    }

    /// Calls `f` with the word's name.
    pub fn with_name<R>(&self, id: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Vocabulary::Named { names, .. } => f(names.get(id)),
            Vocabulary::Hashed { buckets, .. } => f(format!("#{}", buckets[id]).as_bytes()),
        }
    }
}

const TOO_MANY: &str = "there are more than 2**31 - 1 distinct words; hash them into buckets";

/// The bucket of this name, if there is one.
fn bucket_named(name: &[u8], buckets: usize) -> Option<u32> {
    let digits = std::str::from_utf8(name.strip_prefix(b"#")?).ok()?;
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    let number: u32 = plain.then(|| digits.parse().ok()).flatten()?;
    ((number as usize) < buckets).then_some(number)
}

/// Words that a vocabulary does not have yet, in the order they were met.
#[derive(Debug, Default)]
pub struct Fresh {
    index: Index,
    keys: Vec<Key>,
    names: Names,
    /// More words came than there are numbers.
    full: bool,
}

impl Fresh {
    /// Marks a number as one of ours.
    pub const MARK: u32 = 1 << 31;

    /// The marked number of a token that `vocabulary` does not have.
    pub fn number(&mut self, vocabulary: &Vocabulary, tokens: &Tokens, token: usize) -> u32 {
        let (key, word) = (
            vocabulary.key(Key::at(&tokens.text, tokens.spans[token])),
            tokens.get(token),
        );
        let found = self.index.find(key, word, &self.names);
        if found != UNKNOWN {
            return found | Fresh::MARK;
        }
        if self.keys.len() == MOST {
            self.full = true;
            return Fresh::MARK;
        }
        let number = self.keys.len() as u32;
        self.index.insert(key, number);
        self.keys.push(key);
        self.names.push(word);
        number | Fresh::MARK
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Adds all of them to the vocabulary; their numbers there, in order.
    pub fn adopt(&self, vocabulary: &mut Vocabulary) -> Result<Vec<u32>, Error> {
        demand(
            !self.full && self.keys.len() <= MOST - vocabulary.len(),
            TOO_MANY,
        )?;
        let words = self.keys.iter().zip(self.names.iter());
        Ok(words
            .map(|(&key, word)| vocabulary.add(key, word))
            .collect())
    }
}
