//! Which number a word has: open addressing over words of any length.
//!
//! - The *key* of a word is two numbers. Those of a word of up to 16 bytes are its bytes, filled up with zeros, as two little-endian
//!   numbers. For a longer one the first is its hash: from `SEED ^ length` on, for each 16 bytes (the last ones filled up with
//!   zeros) taken as two numbers a and b, `state = mix(a ^ STEP, b ^ state)`, where mix folds the 128-bit product of two numbers
//!   by xor; and the second is zero.
//! - Its *place* is `mix(first ^ SEED, second ^ STEP ^ length)`: the low bits are its slot.

use crate::error::{Error, demand};
use crate::numbering::{SEED, STEP, mix, probe};
use crate::text::{Span, Tokens};
use crate::threads;
use std::convert::Infallible;
use std::ops::Range;

/// No word's number.
pub const UNKNOWN: u32 = u32::MAX;

/// Numbers of words must fit an int32.
pub(super) const MOST: usize = i32::MAX as usize;

/// What stands for a word: up to 16 bytes, the word itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    pub(super) first: u64,
    pub(super) second: u64,
    pub(super) length: u32,
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
        let (blocks, rest) = word.as_chunks();
        let step = |state: u64, (a, b): (u64, u64)| mix(a ^ STEP, b ^ state);
        let state = blocks.iter().map(split).fold(SEED ^ word.len() as u64, step);
        if rest.is_empty() { state } else { step(state, halves(rest)) }
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

    #[inline(always)]
    pub fn place(self) -> u64 {
        mix(self.first ^ SEED, self.second ^ STEP ^ u64::from(self.length))
    }

    /// Whether equal keys are equal words.
    #[inline(always)]
    pub(super) fn is_word(self) -> bool {
        self.length <= 16
    }

    /// The bytes of a word that is its key, filled up with zeros.
    #[inline(always)]
    pub(super) fn bytes(self) -> [u8; 16] {
        (u128::from(self.second) << 64 | u128::from(self.first)).to_le_bytes()
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

    /// Adds all of these.
    pub fn append_all(&mut self, names: &[Names], threads: usize) {
        let (mut bytes, mut ends) = (self.bytes.len(), self.ends.len());
        let starts = (bytes, ends);
        for names in names {
            bytes += names.bytes.len();
            ends += names.ends.len();
        }
        self.bytes.resize(bytes, 0);
        self.ends.resize(ends, 0);
        let (mut rest, mut at) =
            ((&mut self.bytes[starts.0..], &mut self.ends[starts.1..]), starts.0);
        let mut work = vec![];
        for names in names {
            let (bytes, others) = rest.0.split_at_mut(names.bytes.len());
            let (ends, more) = rest.1.split_at_mut(names.ends.len());
            work.push((names, at, bytes, ends));
            at += names.bytes.len();
            rest = (others, more);
        }
        threads::each(threads, &mut work, |_, (names, at, bytes, ends)| {
            bytes.copy_from_slice(&names.bytes);
            for (end, own) in ends.iter_mut().zip(&names.ends) {
                *end = *at + own;
            }
        });
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

/// A word's key and number: the two halves of the key, its length and the number + 1. All zeros is an empty slot, so that memory
/// which was never written to can be taken for many of them.
type Slot = [u64; 3];

#[inline(always)]
fn slot_of(key: Key, id: u32) -> Slot {
    [key.first, key.second, u64::from(key.length) << 32 | u64::from(id + 1)]
}

#[inline(always)]
fn key_of(slot: Slot) -> Key {
    Key { first: slot[0], second: slot[1], length: (slot[2] >> 32) as u32 }
}

/// The number in a slot, or [`UNKNOWN`].
#[inline(always)]
fn id_of(slot: Slot) -> u32 {
    (slot[2] as u32).wrapping_sub(1)
}

/// From words to their numbers: open addressing. The text of words of more than 16 bytes is looked up in their names.
///
/// Where words are many, they are shared out among tables by the highest bits of their places, so that each thread can number
/// those of a table. The tables lie one after the other.
///
/// Slots of a tag and a number, with the keys elsewhere, would be half as large; but they make two loads that the cache does not
/// have of one, and took a third longer on text of 200,000 words.
#[derive(Clone, Debug)]
pub struct Index {
    slots: Vec<Slot>,
    /// By table, one or [`TABLES`], each of the same power of two of slots: how many are taken, at most five in eight.
    taken: Vec<usize>,
}

/// Tables of an index that many words are added to at a time.
const TABLES: usize = 64;

impl Default for Index {
    fn default() -> Self {
        Index { slots: vec![[0; 3]; FEWEST_SLOTS], taken: vec![0] }
    }
}

#[inline(always)]
fn word(tokens: &Tokens, span: Span) -> &[u8] {
    &tokens.text[span.start as usize..span.end as usize]
}

/// Whether so many words leave enough of the slots empty: few words then are far from where they should be.
pub(super) fn fits(words: usize, slots: usize) -> bool {
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
        Block { keys: [(Key::default(), 0); BLOCK], slots: [[0; 3]; BLOCK], ids: [UNKNOWN; BLOCK] }
    }

    /// The number of a token that is in its slot and needs no second look.
    #[inline(always)]
    fn found(&self, i: usize) -> Option<u32> {
        let (key, slot) = (self.keys[i].0, self.slots[i]);
        let found = key_of(slot) == key && key.is_word() && id_of(slot) != UNKNOWN;
        found.then_some(id_of(slot))
    }
}

/// Where a word is in a table, or the empty slot where it should be. `same` says whether a word that has the same key is the same.
#[inline(always)]
fn slot(slots: &[Slot], key: Key, place: u64, same: impl Fn(u32) -> bool) -> usize {
    probe(slots, place, |slot| {
        let found = || key_of(slot) == key && (key.is_word() || same(id_of(slot)));
        id_of(slot) == UNKNOWN || found()
    })
}

/// Puts a word into a table that has room for it and does not have it.
fn put(slots: &mut [Slot], own: Slot) {
    let at = probe(slots, key_of(own).place(), |slot| id_of(slot) == UNKNOWN);
    slots[at] = own;
}

/// One of the tables of an index.
#[derive(Debug)]
pub(super) struct Table<'a> {
    slots: &'a mut [Slot],
    taken: &'a mut usize,
}

impl Table<'_> {
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        !fits(*self.taken + 1, self.slots.len())
    }

    /// The number of a word; if it is new, that which `next` gives. The table must not be full.
    #[inline(always)]
    pub(super) fn number(
        &mut self,
        key: Key,
        same: impl Fn(u32) -> bool,
        next: impl FnOnce() -> u32,
    ) -> u32 {
        let at = slot(self.slots, key, key.place(), same);
        if id_of(self.slots[at]) == UNKNOWN {
            self.slots[at] = slot_of(key, next());
            *self.taken += 1;
        }
        id_of(self.slots[at])
    }

    /// Loads the slots where these keys should be. Nothing waits for them, so that all that the cache does not have is under way
    /// together.
    #[inline(always)]
    pub(super) fn load(&self, keys: impl Iterator<Item = Key>) {
        let slot = |key: Key| self.slots[key.place() as usize & (self.slots.len() - 1)];
        std::hint::black_box(keys.fold(0, |all, key| all ^ slot(key)[2]));
    }

    /// Gives the word of this key that has the number `old` another one.
    #[inline(always)]
    pub(super) fn renumber(&mut self, key: Key, old: u32, id: u32) {
        let at = probe(self.slots, key.place(), |slot| id_of(slot) == old);
        self.slots[at] = slot_of(key, id);
    }
}

impl Index {
    /// The number of the table that has words of this place.
    #[inline(always)]
    pub(super) fn table(&self, place: u64) -> usize {
        (place >> 58) as usize & (self.taken.len() - 1)
    }

    /// The slots of each table.
    #[inline(always)]
    fn size(&self) -> usize {
        self.slots.len() / self.taken.len()
    }

    pub(super) fn tables(&mut self) -> impl Iterator<Item = Table<'_>> {
        let size = self.size();
        let tables = self.slots.chunks_mut(size).zip(&mut self.taken);
        tables.map(|(slots, taken)| Table { slots, taken })
    }

    fn table_mut(&mut self, place: u64) -> Table<'_> {
        let (size, table) = (self.size(), self.table(place));
        Table { slots: &mut self.slots[table * size..][..size], taken: &mut self.taken[table] }
    }

    /// Shares the words out among many tables.
    fn split(&mut self) {
        if self.taken.len() == TABLES {
            return;
        }
        let size = (self.slots.len() / TABLES).max(FEWEST_SLOTS);
        let new = Index { slots: vec![[0; 3]; TABLES * size], taken: vec![0; TABLES] };
        for own in std::mem::replace(self, new).slots {
            if id_of(own) != UNKNOWN {
                let place = key_of(own).place();
                while self.table_mut(place).is_full() {
                    self.grow(1);
                }
                let table = self.table_mut(place);
                put(table.slots, own);
                *table.taken += 1;
            }
        }
    }

    /// Doubles the slots. Those of neighbours go to two runs of neighbours, so that this is quick.
    #[cold]
    pub(super) fn grow(&mut self, threads: usize) {
        let size = self.size();
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![[0; 3]; 2 * old.len()];
        let moved = threads::try_pieces(threads, &mut self.slots, 2 * size, |table, slots| {
            // Pages that are read before they are written to are made twice.
            slots.fill([0; 3]);
            let words = old[table * size..][..size].iter();
            words.filter(|&&own| id_of(own) != UNKNOWN).for_each(|&own| put(slots, own));
            Ok::<_, Infallible>(())
        });
        let Ok(_) = moved;
    }

    /// The number of a word, or [`UNKNOWN`].
    #[inline(always)]
    pub fn find(&self, key: Key, word: &[u8], names: &Names) -> u32 {
        let (place, size) = (key.place(), self.size());
        let slots = &self.slots[self.table(place) * size..][..size];
        id_of(slots[slot(slots, key, place, |id| names.get(id as usize) == word)])
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

    /// Appends the number of each token, the next ones for words that are new.
    pub fn number_each(&mut self, tokens: &Tokens, names: &mut Names, ids: &mut Vec<u32>) {
        let mut block = Block::new();
        for spans in tokens.spans.chunks(BLOCK) {
            self.load(spans.iter().map(|&span| Key::at(&tokens.text, span)), &mut block);
            for (i, span) in spans.iter().enumerate() {
                block.ids[i] = match block.found(i) {
                    Some(id) => id,
                    None => self.number(block.keys[i].0, word(tokens, *span), names),
                };
            }
            ids.extend_from_slice(&block.ids[..spans.len()]);
        }
    }

    /// Keys and the slots where they should be.
    ///
    /// Nothing waits for what is loaded, so that all that the cache does not have is under way together.
    #[inline(always)]
    fn load(&self, keys: impl ExactSizeIterator<Item = Key>, block: &mut Block) {
        let (size, n) = (self.size(), keys.len());
        for (slot, key) in block.keys.iter_mut().zip(keys) {
            let place = key.place();
            *slot = (key, self.table(place) * size + (place as usize & (size - 1)));
        }
        for (slot, &(_, at)) in block.slots.iter_mut().zip(&block.keys[..n]) {
            *slot = self.slots[at];
        }
    }

    /// The number of a word, the next one if it is new.
    #[inline(always)]
    pub fn number(&mut self, key: Key, word: &[u8], names: &mut Names) -> u32 {
        let place = key.place();
        if self.table_mut(place).is_full() {
            self.grow(1);
        }
        let next = names.len() as u32;
        let id = self.table_mut(place).number(key, |id| names.get(id as usize) == word, || next);
        if id == next {
            names.push(word);
        }
        id
    }

    /// Of words of which none is another one.
    pub fn of(names: &Names) -> Index {
        let mut slots = vec![[0; 3]; slots_for(names.len())];
        let mut block = [([0; 3], 0); BLOCK];
        for start in (0..names.len()).step_by(BLOCK) {
            let words = start..names.len().min(start + BLOCK);
            for (own, id) in block.iter_mut().zip(words.clone()) {
                let key = names.key(id);
                *own = (slot_of(key, id as u32), key.place() as usize & (slots.len() - 1));
            }
            // Nothing waits for what is touched.
            let touched = block[..words.len()].iter().map(|&(_, at)| slots[at][2]);
            std::hint::black_box(touched.fold(0, |all, n| all ^ n));
            block[..words.len()].iter().for_each(|&(own, _)| put(&mut slots, own));
        }
        Index { slots, taken: vec![names.len()] }
    }
}

/// The words of a store and their numbers.
#[derive(Clone, Debug)]
pub enum Vocabulary {
    Named {
        index: Index,
        names: Names,
    },
    /// The columns of a matrix, which are called `#17`.
    Columns {
        /// By column: its number + 1, or 0.
        ids: Vec<u32>,
        /// By number.
        columns: Vec<u32>,
    },
}

impl Vocabulary {
    /// Whether there is memory for so many columns; making the table without it would end the process.
    pub fn fits(n_columns: usize) -> bool {
        let mut probe = Vec::<u32>::new();
        let fits = probe.try_reserve_exact(n_columns).is_ok();
        std::hint::black_box(probe);
        fits
    }

    /// Of the columns of a matrix; 0: of words by name.
    pub fn new(n_columns: usize) -> Self {
        match n_columns {
            0 => Vocabulary::Named { index: Index::default(), names: Names::default() },
            _ => Vocabulary::Columns { ids: vec![0; n_columns], columns: vec![] },
        }
    }

    /// One without words, of the same kind.
    pub fn emptied(&self) -> Self {
        Vocabulary::new(self.n_columns())
    }

    /// The names of all words, unless they are columns.
    pub fn names(&self) -> Option<&Names> {
        match self {
            Vocabulary::Named { names, .. } => Some(names),
            Vocabulary::Columns { .. } => None,
        }
    }

    /// How many tables there are.
    pub(super) fn tables(&self) -> usize {
        match self {
            Vocabulary::Named { index, .. } => index.taken.len(),
            Vocabulary::Columns { .. } => 1,
        }
    }

    /// The table that a key belongs to.
    #[inline(always)]
    pub(super) fn table(&self, key: Key) -> usize {
        match self {
            Vocabulary::Named { index, .. } => index.table(key.place()),
            Vocabulary::Columns { .. } => 0,
        }
    }

    /// Prepares for many words that may be new.
    pub fn split(&mut self) {
        if let Vocabulary::Named { index, .. } = self {
            index.split();
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Vocabulary::Named { names, .. } => names.len(),
            Vocabulary::Columns { columns, .. } => columns.len(),
        }
    }

    /// How many columns the matrix has; 0: words have names.
    pub fn n_columns(&self) -> usize {
        match self {
            Vocabulary::Named { .. } => 0,
            Vocabulary::Columns { ids, .. } => ids.len(),
        }
    }

    /// The number of the word of this name; a column is called `#17`.
    pub fn find_name(&self, name: &[u8]) -> u32 {
        match self {
            Vocabulary::Named { index, names } => index.find(Key::of(name), name, names),
            Vocabulary::Columns { ids, .. } => {
                column_named(name, ids.len()).map_or(UNKNOWN, |column| ids[column].wrapping_sub(1))
            }
        }
    }

    /// The number of the word of this name, a new one if it is new.
    pub fn add_name(&mut self, name: &[u8]) -> Result<u32, Error> {
        demand(self.len() < MOST, TOO_MANY)?;
        match self {
            Vocabulary::Named { index, names } => Ok(index.number(Key::of(name), name, names)),
            Vocabulary::Columns { ids, columns } => match column_named(name, ids.len()) {
                Some(column) => Ok(number_column(column, ids, columns)),
                None => Err(Error::malformed(format!(
                    "words are {} columns of a matrix, and none is named {:?}",
                    ids.len(),
                    String::from_utf8_lossy(name)
                ))),
            },
        }
    }

    /// The number of another's word, or [`UNKNOWN`].
    pub fn find_from(&self, other: &Vocabulary, id: usize) -> u32 {
        other.with_name(id, |name| self.find_name(name))
    }

    /// The same, a new one if it is new.
    pub fn add_from(&mut self, other: &Vocabulary, id: usize) -> Result<u32, Error> {
        other.with_name(id, |name| self.add_name(name))
    }

    /// Appends the number of each token's word; whether one of them is [`UNKNOWN`].
    pub fn find_each(&self, tokens: &Tokens, ids: &mut Vec<u32>) -> bool {
        match self {
            Vocabulary::Named { index, names } => index.find_each(tokens, names, ids),
            Vocabulary::Columns { .. } => {
                ids.resize(ids.len() + tokens.len(), UNKNOWN);
                !tokens.is_empty()
            }
        }
    }

    /// Appends the number of each token's word, the next ones for words that are new.
    pub fn number_each(&mut self, tokens: &Tokens, ids: &mut Vec<u32>) -> Result<(), Error> {
        demand(tokens.len() <= MOST - self.len(), TOO_MANY)?;
        match self {
            Vocabulary::Named { index, names } => {
                index.number_each(tokens, names, ids);
            }
            Vocabulary::Columns { .. } => return Err(Error::malformed(NO_TEXTS)),
        }
        Ok(())
    }

    /// Calls `f` with the word's name.
    pub fn with_name<R>(&self, id: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Vocabulary::Named { names, .. } => f(names.get(id)),
            Vocabulary::Columns { columns, .. } => f(format!("#{}", columns[id]).as_bytes()),
        }
    }
}

pub(super) const TOO_MANY: &str =
    "there are more than 2**31 - 1 distinct words; give a vocabulary of fewer";

/// Words that are columns are counted by [`crate::words::Matrix`].
pub(super) const NO_TEXTS: &str = "the words are columns of a matrix, and texts have none of them";

/// The number of a column, the next one if it is new.
#[inline(always)]
pub fn number_column(column: usize, ids: &mut [u32], columns: &mut Vec<u32>) -> u32 {
    if ids[column] == 0 {
        columns.push(column as u32);
        ids[column] = columns.len() as u32;
    }
    ids[column] - 1
}

/// The column of this name, if there is one.
fn column_named(name: &[u8], n_columns: usize) -> Option<usize> {
    let digits = std::str::from_utf8(name.strip_prefix(b"#")?).ok()?;
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    let number: usize = plain.then(|| digits.parse().ok()).flatten()?;
    (number < n_columns).then_some(number)
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
        ids.extend(words.iter().map(|word| vocabulary.add_name(word).unwrap()));
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
    fn an_index_of_words_is_that_of_words_that_came_one_by_one() {
        let mut vocabulary = Vocabulary::new(0);
        let words: Vec<String> =
            (0..1000).map(|i| format!("{i:0width$}", width = i % 30)).collect();
        for word in &words {
            vocabulary.add_name(word.as_bytes()).unwrap();
        }
        let Vocabulary::Named { names, .. } = &vocabulary else { unreachable!() };
        let made = Vocabulary::Named { index: Index::of(names), names: names.clone() };
        for word in words.iter().map(|word| word.as_bytes()).chain([&b"another"[..]]) {
            assert_eq!(made.find_name(word), vocabulary.find_name(word));
        }
    }

    #[test]
    fn columns_have_names() {
        let mut vocabulary = Vocabulary::new(8);
        assert_eq!(vocabulary.add_name(b"#7").unwrap(), 0);
        assert_eq!(vocabulary.add_name(b"#0").unwrap(), 1);
        assert_eq!(vocabulary.add_name(b"#7").unwrap(), 0);
        for name in ["#8", "#07", "#", "7", "#-1", "#+1", "# 1", "#00"] {
            assert!(vocabulary.add_name(name.as_bytes()).is_err());
            assert_eq!(vocabulary.find_name(name.as_bytes()), UNKNOWN);
        }
    }
}
