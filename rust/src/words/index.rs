//! Which number a word has: open addressing over words of any length.
//!
//! What a word hashes to is fixed, on every platform, because indexes and buckets go into model files:
//!
//! - The *key* of a word is two numbers. Those of a word of up to 16 bytes are its bytes, filled up with zeros, as two little-endian
//!   numbers. For a longer one the first is its hash: from `SEED ^ length` on, for each 16 bytes (the last ones filled up with
//!   zeros) taken as two numbers a and b, `state = mix(a ^ STEP, b ^ state)`, where mix folds the 128-bit product of two numbers
//!   by xor; and the second is zero.
//! - Its *place* is `mix(first ^ SEED, second ^ STEP ^ length)`: the low bits are its slot, or its bucket.

use crate::encode::{SEED, STEP, mix};
use crate::error::{Error, demand};
use crate::text::{Span, Tokens};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// No word's number.
pub const UNKNOWN: u32 = u32::MAX;

/// Numbers of words must fit an int32.
const MOST: usize = i32::MAX as usize;

/// What stands for a word: up to 16 bytes, the word itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    first: u64,
    second: u64,
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

/// By length, the bits of 16 bytes that belong to a word.
const MASKS: [(u64, u64); 17] = {
    let mut masks = [(0, 0); 17];
    let mut wide = 0_u128;
    let mut length = 1;
    while length <= 16 {
        wide = wide << 8 | 0xff;
        masks[length] = (wide as u64, (wide >> 64) as u64);
        length += 1;
    }
    masks
};

impl Key {
    pub fn of(word: &[u8]) -> Key {
        let length = word.len() as u32;
        let (first, second) = match word.len() {
            0..=16 => halves(word),
            _ => (Key::hash(word), 0),
        };
        Key { first, second, length }
    }

    fn hash(word: &[u8]) -> u64 {
        let start = SEED ^ word.len() as u64;
        let halves = word.chunks(16).map(halves);
        halves.fold(start, |state, (a, b)| mix(a ^ STEP, b ^ state))
    }

    /// The same for a token in a text that goes on after it.
    #[inline(always)]
    pub fn at(text: &[u8], span: Span) -> Key {
        Key::within(text, span.start as usize, span.end as usize)
    }

    #[inline(always)]
    fn within(text: &[u8], start: usize, end: usize) -> Key {
        let mask = MASKS.get(end - start);
        let block = text.get(start..).and_then(|rest| rest.first_chunk());
        let (Some(mask), Some(block)) = (mask, block) else {
            return Key::of(&text[start..end]);
        };
        let (a, b) = split(block);
        Key { first: a & mask.0, second: b & mask.1, length: (end - start) as u32 }
    }

    /// The first eight bytes as a number that is in their order; nothing if it would need a second look.
    #[inline(always)]
    fn head(self) -> Option<u64> {
        self.is_word().then_some(self.first.swap_bytes())
    }

    /// The key of a bucket.
    pub fn bucket(number: u32) -> Key {
        Key { first: u64::from(number), ..Key::default() }
    }

    #[inline(always)]
    pub fn place(self) -> u64 {
        mix(self.first ^ SEED, self.second ^ STEP ^ u64::from(self.length))
    }

    /// Whether equal keys are equal words.
    #[inline(always)]
    fn is_word(self) -> bool {
        self.length <= 16
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
    fn range(&self, id: usize) -> Range<usize> {
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        start..self.ends[id]
    }

    #[inline(always)]
    pub fn get(&self, id: usize) -> &[u8] {
        &self.bytes[self.range(id)]
    }

    /// The key of a word; the same as that of its bytes, and quicker.
    #[inline(always)]
    fn key(&self, id: usize) -> Key {
        let Range { start, end } = self.range(id);
        Key::within(&self.bytes, start, end)
    }

    pub fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|id| self.get(id))
    }

    /// Whether words are in the order of their bytes, each once. Their first bytes decide nearly always.
    pub fn ascend(&self) -> bool {
        let mut before = None;
        (0..self.len()).all(|id| {
            let head = self.key(id).head();
            match (std::mem::replace(&mut before, head), head) {
                (Some(before), Some(head)) if before < head => true,
                _ => id == 0 || self.get(id - 1) < self.get(id),
            }
        })
    }
}

/// A word's key and number.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u64,
    second: u64,
    length: u32,
    id: u32,
}

impl Slot {
    const EMPTY: Slot = Slot { first: 0, second: 0, length: 0, id: UNKNOWN };

    fn new(key: Key, id: u32) -> Self {
        Slot { first: key.first, second: key.second, length: key.length, id }
    }

    #[inline(always)]
    fn key(self) -> Key {
        Key { first: self.first, second: self.second, length: self.length }
    }
}

/// From words to their numbers. The text of words of more than 16 bytes is looked up in their names.
///
/// Slots of a tag and a number, with the keys elsewhere, would be half as large; but they make two loads that the cache does not
/// have of one, and took a third longer on text of 200,000 words.
#[derive(Clone, Debug)]
pub struct Index {
    /// A power of two of them, at most five in eight of them taken.
    slots: Vec<Slot>,
    taken: usize,
}

impl Default for Index {
    fn default() -> Self {
        Index { slots: vec![Slot::EMPTY; FEWEST_SLOTS], taken: 0 }
    }
}

#[inline(always)]
fn word(tokens: &Tokens, span: Span) -> &[u8] {
    &tokens.text[span.start as usize..span.end as usize]
}

/// Whether so many words leave enough of the slots empty: few words then are far from where they should be.
fn fits(words: usize, slots: usize) -> bool {
    8 * words <= 5 * slots
}

/// The slots of an index that was made for so many words.
fn slots_for(words: usize) -> usize {
    let mut slots = FEWEST_SLOTS;
    while !fits(words, slots) {
        slots *= 2;
    }
    slots
}

const FEWEST_SLOTS: usize = 16;

/// Tokens that are looked up together.
const BLOCK: usize = 64;

struct Block {
    /// And the slot it should be in.
    keys: [(Key, usize); BLOCK],
    slots: [Slot; BLOCK],
    ids: [u32; BLOCK],
}

impl Block {
    fn new() -> Self {
        Block {
            keys: [(Key::default(), 0); BLOCK],
            slots: [Slot::EMPTY; BLOCK],
            ids: [UNKNOWN; BLOCK],
        }
    }

    /// The number of a token that is in its slot and needs no second look.
    #[inline(always)]
    fn found(&self, i: usize) -> Option<u32> {
        let (key, slot) = (self.keys[i].0, self.slots[i]);
        let found = slot.key() == key && key.is_word() && slot.id != UNKNOWN;
        found.then_some(slot.id)
    }
}

impl Index {
    /// Where a word is, or the empty slot where it should be.
    #[inline(always)]
    fn slot(&self, key: Key, word: &[u8], names: &Names) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key.place() as usize & mask;
        loop {
            let slot = self.slots[at];
            let found =
                || slot.key() == key && (key.is_word() || names.get(slot.id as usize) == word);
            if slot.id == UNKNOWN || found() {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of a word, or [`UNKNOWN`].
    #[inline(always)]
    pub fn find(&self, key: Key, word: &[u8], names: &Names) -> u32 {
        self.slots[self.slot(key, word, names)].id
    }

    /// Appends the number of each token; whether one of them is [`UNKNOWN`].
    pub fn find_each(&self, tokens: &Tokens, names: &Names, ids: &mut Vec<u32>) -> bool {
        let mut unknown = false;
        let mut block = Block::new();
        for spans in tokens.spans.chunks(BLOCK) {
            self.load(spans.iter().map(|&span| Key::at(&tokens.text, span)), &mut block);
            for (i, span) in spans.iter().enumerate() {
                block.ids[i] = match block.found(i) {
                    Some(id) => id,
                    None => self.find(block.keys[i].0, word(tokens, *span), names),
                };
                unknown |= block.ids[i] == UNKNOWN;
            }
            ids.extend_from_slice(&block.ids[..spans.len()]);
        }
        unknown
    }

    /// Appends the number of each of these words, the next ones for words that are new; `word` is given its place too.
    #[inline(always)]
    fn number_each<'w, W: Copy>(
        &mut self,
        words: &[W],
        key: impl Fn(W) -> Key,
        word: impl Fn(usize, W) -> &'w [u8],
        names: &mut Names,
        ids: &mut Vec<u32>,
    ) {
        let mut block = Block::new();
        for (b, words) in words.chunks(BLOCK).enumerate() {
            self.reserve(words.len());
            self.load(words.iter().map(|&word| key(word)), &mut block);
            for (i, &own) in words.iter().enumerate() {
                block.ids[i] = match block.found(i) {
                    Some(id) => id,
                    None => self.number(block.keys[i].0, word(b * BLOCK + i, own), names),
                };
            }
            ids.extend_from_slice(&block.ids[..words.len()]);
        }
    }

    /// Keys and the slots where they should be.
    ///
    /// Nothing waits for what is loaded, so that all that the cache does not have is under way together.
    #[inline(always)]
    fn load(&self, keys: impl ExactSizeIterator<Item = Key>, block: &mut Block) {
        let (mask, n) = (self.slots.len() - 1, keys.len());
        for (place, key) in block.keys.iter_mut().zip(keys) {
            *place = (key, key.place() as usize & mask);
        }
        for (slot, &(_, at)) in block.slots.iter_mut().zip(&block.keys[..n]) {
            *slot = self.slots[at];
        }
    }

    /// The number of a word, the next one if it is new. There must be room for it.
    #[inline(always)]
    pub fn number(&mut self, key: Key, word: &[u8], names: &mut Names) -> u32 {
        let at = self.slot(key, word, names);
        let id = self.slots[at].id;
        if id != UNKNOWN {
            return id;
        }
        let id = names.len() as u32;
        self.slots[at] = Slot::new(key, id);
        self.taken += 1;
        names.push(word);
        id
    }

    /// Makes room for so many more words.
    pub fn reserve(&mut self, more: usize) {
        while !fits(self.taken + more, self.slots.len()) {
            self.grow();
        }
    }

    /// Doubles the slots. Those of neighbours go to two runs of neighbours, so that this is quick.
    #[cold]
    fn grow(&mut self) {
        let size = 2 * self.slots.len();
        let old = std::mem::replace(&mut self.slots, vec![Slot::EMPTY; size]);
        for slot in old {
            if slot.id != UNKNOWN {
                let mut at = slot.key().place() as usize & (size - 1);
                while self.slots[at].id != UNKNOWN {
                    at = (at + 1) & (size - 1);
                }
                self.slots[at] = slot;
            }
        }
    }

    /// The numbers in the slots.
    pub fn ids(&self) -> Vec<u32> {
        self.slots.iter().map(|slot| slot.id).collect()
    }

    /// The index that has these numbers in its slots.
    fn from_slots(ids: &[u32], names: &Names) -> Index {
        let mut slots = vec![Slot::EMPTY; ids.len()];
        for (slot, &id) in slots.iter_mut().zip(ids) {
            if id != UNKNOWN {
                *slot = Slot::new(names.key(id as usize), id);
            }
        }
        Index { slots, taken: names.len() }
    }
}

/// The slots of an index as a file has them: numbers alone, so that words are compared with the names themselves.
#[derive(Debug)]
pub struct Stored {
    ids: Vec<u32>,
    /// Words that were looked up.
    asked: AtomicUsize,
}

impl Clone for Stored {
    fn clone(&self) -> Self {
        Stored {
            ids: self.ids.clone(),
            asked: AtomicUsize::new(self.asked.load(Ordering::Relaxed)),
        }
    }
}

impl Stored {
    /// How many words of each slot are looked up here before the index is made: about what making it costs.
    const PATIENCE: usize = 2;

    /// Slots that may be passed by, of each slot there is; a few suffice unless words were chosen to meet.
    const STEPS: usize = 16;

    /// Nothing if these are not the slots of words that were numbered one after the other in an index of their number.
    fn new(ids: &[u32], names: &Names) -> Option<Stored> {
        let taken = ids.iter().filter(|&&id| id != UNKNOWN).count();
        if ids.len() != slots_for(names.len()) || taken != names.len() {
            return None;
        }
        let (mask, mut left) = (ids.len() - 1, Stored::STEPS * ids.len());
        let mut block = [(0, 0); BLOCK];
        for start in (0..names.len()).step_by(BLOCK) {
            let words = start..names.len().min(start + BLOCK);
            for (slot, id) in block.iter_mut().zip(words.clone()) {
                slot.0 = names.key(id).place() as usize & mask;
            }
            // Nothing waits for what is loaded.
            for slot in &mut block {
                slot.1 = ids[slot.0];
            }
            for (&(mut at, mut found), id) in block.iter().zip(words) {
                while found != id as u32 {
                    // Only words that came before may be in the way.
                    if found > id as u32 || left == 0 {
                        return None;
                    }
                    at = (at + 1) & mask;
                    left -= 1;
                    found = ids[at];
                }
            }
        }
        Some(Stored { ids: ids.to_vec(), asked: AtomicUsize::new(0) })
    }

    fn find(&self, key: Key, word: &[u8], names: &Names) -> u32 {
        let mask = self.ids.len() - 1;
        let mut at = key.place() as usize & mask;
        loop {
            let id = self.ids[at];
            if id == UNKNOWN || names.get(id as usize) == word {
                return id;
            }
            at = (at + 1) & mask;
        }
    }
}

/// An index, or the slots of one, which is made when so many words have been looked up that it is worth it, or a new word comes.
#[derive(Clone, Debug)]
pub struct Lookup {
    index: OnceLock<Index>,
    stored: Option<Stored>,
}

impl Default for Lookup {
    fn default() -> Self {
        Lookup { index: OnceLock::from(Index::default()), stored: None }
    }
}

impl Lookup {
    /// The index of these words as they were numbered in order, each of them other than all before it; nothing if `ids` are not
    /// its slots.
    pub fn from_slots(ids: &[u32], names: &Names) -> Option<Lookup> {
        Some(Lookup { index: OnceLock::new(), stored: Some(Stored::new(ids, names)?) })
    }

    /// The index, or what there is instead as long as few words are looked up.
    #[inline(always)]
    fn get(&self, words: usize, names: &Names) -> Result<&Index, &Stored> {
        match self.index.get() {
            Some(index) => Ok(index),
            None => self.wait(words, names),
        }
    }

    #[cold]
    fn wait(&self, words: usize, names: &Names) -> Result<&Index, &Stored> {
        if let Some(stored) = &self.stored {
            let asked = stored.asked.fetch_add(words, Ordering::Relaxed);
            if asked < Stored::PATIENCE * stored.ids.len() {
                return Err(stored);
            }
        }
        Ok(self.index.get_or_init(|| self.made(names)))
    }

    fn made(&self, names: &Names) -> Index {
        let stored = self.stored.as_ref();
        stored.map_or_else(Index::default, |stored| Index::from_slots(&stored.ids, names))
    }

    /// The index, to be changed.
    pub fn index_mut(&mut self, names: &Names) -> &mut Index {
        if self.index.get().is_none() {
            self.index = OnceLock::from(self.made(names));
        }
        self.stored = None;
        // It was made above.
        match self.index.get_mut() {
            Some(index) => index,
            None => unreachable!("an index is made before it is changed"),
        }
    }

    fn find(&self, key: Key, word: &[u8], names: &Names) -> u32 {
        match self.get(1, names) {
            Ok(index) => index.find(key, word, names),
            Err(stored) => stored.find(key, word, names),
        }
    }

    fn find_each(&self, tokens: &Tokens, names: &Names, ids: &mut Vec<u32>) -> bool {
        match self.get(tokens.len(), names) {
            Ok(index) => index.find_each(tokens, names, ids),
            Err(stored) => {
                let start = ids.len();
                ids.extend(tokens.spans.iter().map(|&span| {
                    stored.find(Key::at(&tokens.text, span), word(tokens, span), names)
                }));
                ids[start..].contains(&UNKNOWN)
            }
        }
    }
}

/// The words of a store and their numbers.
#[derive(Clone, Debug)]
pub enum Vocabulary {
    Named {
        index: Lookup,
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
    /// Whether there is memory for so many buckets; making the table without it would end the process.
    pub fn fits(buckets: usize) -> bool {
        let mut probe = Vec::<u32>::new();
        let fits = probe.try_reserve_exact(buckets).is_ok();
        std::hint::black_box(probe);
        fits
    }

    pub fn new(buckets: usize) -> Self {
        match buckets {
            0 => Vocabulary::Named { index: Lookup::default(), names: Names::default() },
            _ => Vocabulary::Hashed { ids: vec![0; buckets], buckets: vec![] },
        }
    }

    /// Makes room for so many words, all of which are new.
    pub fn reserve(&mut self, more: usize) {
        if let Vocabulary::Named { index, names } = self {
            index.index_mut(names).reserve(more);
        }
    }

    /// The numbers in the slots of the index, if there is one.
    pub fn slots(&mut self) -> Option<Vec<u32>> {
        match self {
            Vocabulary::Named { index, names } => Some(index.index_mut(names).ids()),
            Vocabulary::Hashed { .. } => None,
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
            Vocabulary::Hashed { .. } => Some(self.key(Key::of(token)).first as u32),
        }
    }

    fn find_key(&self, key: Key, word: &[u8]) -> u32 {
        match self {
            Vocabulary::Named { index, names } => index.find(key, word, names),
            Vocabulary::Hashed { ids, .. } => ids[key.first as usize].wrapping_sub(1),
        }
    }

    /// The number of the word of this name; a bucket is called `#17`.
    pub fn find_name(&self, name: &[u8]) -> u32 {
        self.key_named(name).map_or(UNKNOWN, |key| self.find_key(key, name))
    }

    fn key_named(&self, name: &[u8]) -> Option<Key> {
        match self {
            Vocabulary::Named { .. } => Some(Key::of(name)),
            Vocabulary::Hashed { ids, .. } => bucket_named(name, ids.len()).map(Key::bucket),
        }
    }

    /// The number of the word of this name, a new one if it is new.
    pub fn add_name(&mut self, name: &[u8]) -> Result<u32, Error> {
        demand(self.len() < MOST, TOO_MANY)?;
        let Some(key) = self.key_named(name) else {
            return Err(Error::malformed(format!(
                "words are hashed into {} buckets, and none is named {:?}",
                self.buckets(),
                String::from_utf8_lossy(name)
            )));
        };
        Ok(match self {
            Vocabulary::Named { index, names } => {
                let index = index.index_mut(names);
                index.reserve(1);
                index.number(key, name, names)
            }
            Vocabulary::Hashed { ids, buckets } => number_bucket(key.first as usize, ids, buckets),
        })
    }

    /// Appends the number of each token's word; whether one of them is [`UNKNOWN`].
    pub fn find_each(&self, tokens: &Tokens, ids: &mut Vec<u32>) -> bool {
        match self {
            Vocabulary::Named { index, names } => index.find_each(tokens, names, ids),
            Vocabulary::Hashed { ids: numbers, .. } => {
                let mask = numbers.len() - 1;
                let places = tokens.spans.iter().map(|&span| {
                    let place = Key::at(&tokens.text, span).place() as usize;
                    numbers[place & mask].wrapping_sub(1)
                });
                let start = ids.len();
                ids.extend(places);
                ids[start..].contains(&UNKNOWN)
            }
        }
    }

    /// Appends the number of each token's word, the next ones for words that are new.
    pub fn number_each(&mut self, tokens: &Tokens, ids: &mut Vec<u32>) -> Result<(), Error> {
        demand(tokens.len() <= MOST - self.len(), TOO_MANY)?;
        match self {
            Vocabulary::Named { index, names } => {
                let (index, key) = (index.index_mut(names), |span| Key::at(&tokens.text, span));
                index.number_each(&tokens.spans, key, |_, span| word(tokens, span), names, ids);
            }
            Vocabulary::Hashed { ids: numbers, buckets } => {
                let mask = numbers.len() - 1;
                ids.extend(tokens.spans.iter().map(|&span| {
                    let place = Key::at(&tokens.text, span).place() as usize;
                    number_bucket(place & mask, numbers, buckets)
                }));
            }
        }
        Ok(())
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

/// The number of a bucket, the next one if it is new.
#[inline(always)]
pub fn number_bucket(bucket: usize, ids: &mut [u32], buckets: &mut Vec<u32>) -> u32 {
    if ids[bucket] == 0 {
        buckets.push(bucket as u32);
        ids[bucket] = buckets.len() as u32;
    }
    ids[bucket] - 1
}

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
        let (key, word) =
            (vocabulary.key(Key::at(&tokens.text, tokens.spans[token])), tokens.get(token));
        if self.names.len() == MOST {
            self.full = true;
            return Fresh::MARK;
        }
        self.index.reserve(1);
        let number = self.index.number(key, word, &mut self.names);
        if number as usize == self.keys.len() {
            self.keys.push(key);
        }
        number | Fresh::MARK
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Adds all of them to the vocabulary; their numbers there, in order.
    pub fn adopt(&self, vocabulary: &mut Vocabulary) -> Result<Vec<u32>, Error> {
        demand(!self.full && self.names.len() <= MOST - vocabulary.len(), TOO_MANY)?;
        let mut numbers = Vec::with_capacity(self.keys.len());
        match vocabulary {
            Vocabulary::Named { index, names } => {
                let (index, word) = (index.index_mut(names), |at, _| self.names.get(at));
                index.number_each(&self.keys, |key| key, word, names, &mut numbers);
            }
            Vocabulary::Hashed { ids, buckets } => {
                let keys = self.keys.iter();
                numbers.extend(keys.map(|key| number_bucket(key.first as usize, ids, buckets)));
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(words: &[&[u8]]) -> Tokens {
        let mut tokens = Tokens::default();
        for word in words {
            let start = tokens.text.len() as u32;
            tokens.text.extend_from_slice(word);
            tokens.spans.push(Span { start, end: tokens.text.len() as u32 });
        }
        tokens
    }

    /// These go into files.
    #[test]
    fn places_never_change() {
        let places = [
            (&b""[..], 0xc9d8_74ca_57d9_e055),
            (b"a", 0xeb9b_6706_d3a7_7f81),
            (b"words", 0x9281_4e78_74f4_66b8),
            (b"eight888", 0x2c9d_f0c4_798a_47e5),
            (b"nine bytes", 0xb53c_8245_7afe_f0b3),
            (b"sixteen bytes 16", 0x3f91_3569_a4a5_8e8b),
            (b"seventeen bytes 17", 0x2658_e4ee_5641_ed38),
            (b"a word of more than thirty-two bytes, for once", 0xd871_e456_b98b_14e3),
        ];
        for (word, place) in places {
            assert_eq!(Key::of(word).place(), place, "{word:?}");
        }
    }

    #[test]
    fn a_key_is_the_same_wherever_the_word_stands() {
        let text: Vec<u8> = (0..100).map(|i| b'a' + i % 23).collect();
        for start in 0..text.len() as u32 {
            for end in start..=text.len() as u32 {
                let word = &text[start as usize..end as usize];
                assert_eq!(Key::at(&text, Span { start, end }), Key::of(word));
            }
        }
    }

    #[test]
    fn words_that_look_alike_are_told_apart() {
        let words: Vec<Vec<u8>> = (0..40)
            .flat_map(|n| [vec![0; n], vec![b'x'; n], [vec![b'x'; n], vec![0]].concat()])
            .collect();
        let mut distinct = words.clone();
        distinct.sort();
        distinct.dedup();
        let mut vocabulary = Vocabulary::new(0);
        let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let mut ids = vec![];
        assert!(vocabulary.find_each(&tokens(&slices), &mut ids));
        ids.clear();
        vocabulary.number_each(&tokens(&slices), &mut ids).unwrap();
        assert_eq!(vocabulary.len(), distinct.len());
        let mut again = vec![];
        assert!(!vocabulary.find_each(&tokens(&slices), &mut again));
        assert_eq!(ids, again);
        for (word, &id) in words.iter().zip(&ids) {
            assert_eq!(vocabulary.find_name(word), id);
            vocabulary.with_name(id as usize, |name| assert_eq!(name, word));
        }
        assert_eq!(vocabulary.find_name(b"xy"), UNKNOWN);
    }

    #[test]
    fn new_words_of_parts_get_numbers_in_order() {
        for buckets in [0, 4096] {
            let mut vocabulary = Vocabulary::new(buckets);
            let (one, two) = (tokens(&[b"a", b"b", b"a"]), tokens(&[b"c", b"b"]));
            let mut parts = [Fresh::default(), Fresh::default()];
            let mut marked = vec![];
            for (part, tokens) in parts.iter_mut().zip([&one, &two]) {
                for token in 0..tokens.len() {
                    marked.push(part.number(&vocabulary, tokens, token) ^ Fresh::MARK);
                }
            }
            assert_eq!(marked, [0, 1, 0, 0, 1]);
            let numbers = parts.map(|part| part.adopt(&mut vocabulary).unwrap());
            assert_eq!(numbers, [vec![0, 1], vec![2, 1]]);
        }
    }

    #[test]
    fn an_index_is_read_back_and_nothing_else() {
        let mut vocabulary = Vocabulary::new(0);
        vocabulary.reserve(1000);
        let text = |i: usize| format!("a word with a number, {i}");
        for i in 0..1000 {
            vocabulary.add_name(text(i).as_bytes()).unwrap();
        }
        let ids = vocabulary.slots().unwrap();
        let Vocabulary::Named { names, .. } = &vocabulary else { unreachable!() };
        assert!(Lookup::from_slots(&ids, names).is_some());
        for at in 0..ids.len() {
            for wrong in [0, 999, 1000, UNKNOWN] {
                let mut spoiled = ids.clone();
                spoiled[at] = wrong;
                let read = Lookup::from_slots(&spoiled, names);
                assert_eq!(read.is_some(), spoiled == ids);
            }
        }
        assert!(Lookup::from_slots(&[], names).is_none());
        assert!(Lookup::from_slots(&ids[1..], names).is_none());
        assert!(Lookup::from_slots(&[ids.clone(), ids.clone()].concat(), names).is_none());
    }

    #[test]
    fn an_index_that_was_read_finds_words_before_and_after_it_is_made() {
        let mut vocabulary = Vocabulary::new(0);
        vocabulary.reserve(100);
        let words: Vec<String> = (0..100).map(|i| format!("{i:0width$}", width = i % 30)).collect();
        for word in &words {
            vocabulary.add_name(word.as_bytes()).unwrap();
        }
        let n = vocabulary.len();
        let ids = vocabulary.slots().unwrap();
        let Vocabulary::Named { names, .. } = vocabulary else { unreachable!() };
        let index = Lookup::from_slots(&ids, &names).unwrap();
        let mut read = Vocabulary::Named { index, names };
        let slices: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mut first = vec![];
        for _ in 0..100 {
            let mut ids = vec![];
            assert!(!read.find_each(&tokens(&slices), &mut ids));
            assert!(first.is_empty() || first == ids);
            assert_eq!(read.find_name(b"another"), UNKNOWN);
            first = ids;
        }
        assert_eq!(read.add_name(b"another").unwrap() as usize, n);
        assert_eq!(read.find_name(b"another") as usize, n);
    }

    #[test]
    fn buckets_have_names() {
        let mut vocabulary = Vocabulary::new(8);
        assert_eq!(vocabulary.add_name(b"#7").unwrap(), 0);
        assert_eq!(vocabulary.add_name(b"#0").unwrap(), 1);
        assert_eq!(vocabulary.add_name(b"#7").unwrap(), 0);
        for name in ["#8", "#07", "#", "7", "#-1", "#+1", "# 1", "#00"] {
            assert!(vocabulary.add_name(name.as_bytes()).is_err());
            assert_eq!(vocabulary.find_name(name.as_bytes()), UNKNOWN);
        }
        let place = vocabulary.bucket(b"word").unwrap();
        assert_eq!(u64::from(place), Key::of(b"word").place() & 7);
    }
}
