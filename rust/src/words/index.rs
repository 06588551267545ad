//! The numbers of words: a hash table of words of any length.
//!
//! - The *key* of a word is two numbers. Those of a word of up to 16 bytes are its bytes, filled up with zeros, as two little-endian
//!   numbers. For a longer one the first is its hash: from `SEED ^ length` on, for each 16 bytes (the last ones filled up with
//!   zeros) taken as two numbers a and b, `state = mix(a ^ STEP, b ^ state)`, where mix folds the 128-bit product of two numbers
//!   by xor; and the second is zero.
//! - Its *place* is `mix(first ^ SEED, second ^ STEP ^ length)`: the low bits are its slot.

use crate::error::{Error, demand};
use crate::hash_table::{self, HashTable, SEED, STEP, mix};
use crate::text::{Span, Tokens};
use crate::threads;
use std::ops::Range;
use std::sync::OnceLock;

/// No word's number.
pub const UNKNOWN: u32 = u32::MAX;

/// Numbers of words must fit an int32.
pub(super) const MOST: usize = i32::MAX as usize;

/// What the table holds of a word: up to 16 bytes the word itself, else its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The first eight bytes of the word, or its hash.
    pub(super) first: u64,
    /// The next eight bytes, or 0 beside a hash.
    pub(super) second: u64,
    /// The length of the word in bytes.
    pub(super) length: u32,
}

/// Up to 16 bytes, filled up with zeros, as two little-endian numbers.
#[inline(always)]
fn halves(bytes: &[u8]) -> (u64, u64) {
    let mut block = [0; 16];
    block[..bytes.len()].copy_from_slice(bytes);
    split(&block)
}

/// 16 bytes as two little-endian numbers.
#[inline(always)]
fn split(block: &[u8; 16]) -> (u64, u64) {
    let wide = u128::from_le_bytes(*block);
    (wide as u64, (wide >> 64) as u64)
}

/// By length from 0 to 16, the bits of 16 bytes that belong to a word, as two little-endian numbers.
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
    /// The key of a word.
    pub fn of(word: &[u8]) -> Key {
        let length = word.len() as u32;
        let (first, second) = match word.len() {
            0..=16 => halves(word),
            _ => (Key::hash(word), 0),
        };
        Key { first, second, length }
    }

    /// The hash of a word of more than 16 bytes; see the top of this file.
    fn hash(word: &[u8]) -> u64 {
        let (blocks, rest) = word.as_chunks();
        let step = |state: u64, (low, high): (u64, u64)| mix(low ^ STEP, high ^ state);
        let state = blocks.iter().map(split).fold(SEED ^ word.len() as u64, step);
        if rest.is_empty() { state } else { step(state, halves(rest)) }
    }

    /// The key of a token in a text.
    #[inline(always)]
    pub fn at(text: &[u8], span: Span) -> Key {
        Key::within(text, span.start as usize, span.end as usize)
    }

    /// The key of the word `text[start..end]`. 16 bytes are read at once if the text has as many.
    #[inline(always)]
    fn within(text: &[u8], start: usize, end: usize) -> Key {
        let mask = MASKS.get(end - start);
        let block = text.get(start..).and_then(|rest| rest.first_chunk());
        let (Some(mask), Some(block)) = (mask, block) else {
            return Key::of(&text[start..end]);
        };
        let (low, high) = split(block);
        Key { first: low & mask.0, second: high & mask.1, length: (end - start) as u32 }
    }

    /// The first eight bytes as a number in the order of bytes; none for a word of more than 16 bytes.
    #[inline(always)]
    fn head(self) -> Option<u64> {
        self.is_word().then_some(self.first.swap_bytes())
    }

    /// The hash of the key, whose low bits are the word's slot and whose highest bits are its table.
    #[inline(always)]
    pub fn place(self) -> u64 {
        mix(self.first ^ SEED, self.second ^ STEP ^ u64::from(self.length))
    }

    /// Whether the key is the word itself.
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

/// The text of words, one after the other: word i ends at byte `ends[i]`.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>,
}

impl Names {
    /// How many words there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Where a word is in `bytes`.
    #[inline(always)]
    fn range(&self, id: usize) -> Range<usize> {
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        start..self.ends[id]
    }

    /// The bytes of a word.
    #[inline(always)]
    pub fn get(&self, id: usize) -> &[u8] {
        &self.bytes[self.range(id)]
    }

    /// The key of a word; quicker than [`Key::of`] its bytes.
    #[inline(always)]
    fn key(&self, id: usize) -> Key {
        let Range { start, end } = self.range(id);
        Key::within(&self.bytes, start, end)
    }

    /// Appends a word.
    pub fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    /// Appends the names of several lists, in their order.
    pub fn append_all(&mut self, names: &[Names], threads: usize) {
        let (mut bytes, mut ends) = (self.bytes.len(), self.ends.len());
        let old_lengths = (bytes, ends);
        for names in names {
            bytes += names.bytes.len();
            ends += names.ends.len();
        }
        self.bytes.resize(bytes, 0);
        self.ends.resize(ends, 0);
        let (mut rest, mut bytes_before) =
            ((&mut self.bytes[old_lengths.0..], &mut self.ends[old_lengths.1..]), old_lengths.0);
        let mut lists_and_places = vec![];
        for names in names {
            let (bytes, more_bytes) = rest.0.split_at_mut(names.bytes.len());
            let (ends, more_ends) = rest.1.split_at_mut(names.ends.len());
            lists_and_places.push((names, bytes_before, bytes, ends));
            bytes_before += names.bytes.len();
            rest = (more_bytes, more_ends);
        }
        threads::each(threads, &mut lists_and_places, |_, (names, bytes_before, bytes, ends)| {
            bytes.copy_from_slice(&names.bytes);
            for (end, end_in_list) in ends.iter_mut().zip(&names.ends) {
                *end = *bytes_before + end_in_list;
            }
        });
    }

    /// The bytes of each word, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|id| self.get(id))
    }

    /// Whether words are in the order of their bytes, each once. Their first eight bytes decide nearly always.
    pub fn ascend(&self) -> bool {
        let mut head_before = None;
        (0..self.len()).all(|id| {
            let head = self.key(id).head();
            match (std::mem::replace(&mut head_before, head), head) {
                (Some(before), Some(head)) if before < head => true,
                _ => id == 0 || self.get(id - 1) < self.get(id),
            }
        })
    }
}

/// A word in the table: the two halves of its key, its length and its number + 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry([u64; 3]);

impl Entry {
    /// An entry: the two halves of the key, then its length in the upper and the word's number + 1 in the lower 32 bits.
    #[inline(always)]
    fn new(key: Key, id: u32) -> Self {
        Entry([key.first, key.second, u64::from(key.length) << 32 | u64::from(id + 1)])
    }

    /// The key of the word.
    #[inline(always)]
    fn key(&self) -> Key {
        Key { first: self.0[0], second: self.0[1], length: (self.0[2] >> 32) as u32 }
    }

    /// The word's number, or [`UNKNOWN`] if the slot is empty.
    #[inline(always)]
    fn id(&self) -> u32 {
        (self.0[2] as u32).wrapping_sub(1)
    }

    /// Whether it is the word of this key. If the key is a hash, `same` says whether the word of a number is the one looked for.
    #[inline(always)]
    fn is(&self, key: Key, same: impl Fn(u32) -> bool) -> bool {
        self.key() == key && (key.is_word() || same(self.id()))
    }
}

impl hash_table::Entry for Entry {
    /// Whether no word has the slot.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.id() == UNKNOWN
    }

    /// The place of the word.
    #[inline(always)]
    fn hash(&self) -> u64 {
        self.key().place()
    }
}

/// One of the tables of an index.
pub(super) type Table = HashTable<Entry>;

impl Table {
    /// The number of the word of this key; if it is new, it gets the number `next()`. If keys are hashes, `same` says whether the
    /// word of a number is the one looked for.
    #[inline(always)]
    pub(super) fn number(
        &mut self,
        key: Key,
        same: impl Fn(u32) -> bool,
        next: impl FnOnce() -> u32,
    ) -> u32 {
        let is_it = |other: Entry| other.is(key, &same);
        self.find_or_insert(key.place(), is_it, || Entry::new(key, next())).id()
    }

    /// Changes the number of the word of this key from `old` to `id`.
    #[inline(always)]
    pub(super) fn renumber(&mut self, key: Key, old: u32, id: u32) {
        self.replace(Entry::new(key, id), |other| other.id() == old);
    }
}

/// From words to their numbers. Words of more than 16 bytes are compared with their names.
///
/// An index of many words has many tables, which share the words by the highest bits of their places, so that each thread can number
/// the words of a table.
///
/// Slots of a tag and a number, with the keys elsewhere, would be half as large, but then a word costs two cache misses instead of
/// one: counting text of 200,000 words took a third longer.
#[derive(Clone, Debug)]
pub struct Index {
    /// One, or [`TABLES`].
    tables: Vec<Table>,
}

/// Tables of an index that many words are added to at a time. Numbering with one table takes 12 to 16 % less processor time (two
/// threads, 20 Newsgroups), but only one thread can do it.
const TABLES: usize = 64;

impl Default for Index {
    /// An index without words, with one table.
    fn default() -> Self {
        Index { tables: vec![Table::with_room(0)] }
    }
}

/// The bytes of the token in a span of the text.
#[inline(always)]
fn word(tokens: &Tokens, span: Span) -> &[u8] {
    &tokens.text[span.start as usize..span.end as usize]
}

/// Tokens whose slots are loaded together.
const BLOCK: usize = 64;

/// Some tokens: their keys and places, the entries in the slots where they belong, and their numbers.
struct Block {
    /// The key of each token, and its place.
    keys: [(Key, u64); BLOCK],
    /// What is in the slot where each belongs.
    slots: [Entry; BLOCK],
    /// The number of each.
    ids: [u32; BLOCK],
}

impl Block {
    /// A block without tokens.
    fn new() -> Self {
        let keys = [(Key::default(), 0); BLOCK];
        Block { keys, slots: [Entry::default(); BLOCK], ids: [UNKNOWN; BLOCK] }
    }

    /// The number of the i-th token, if its word is in the slot where it belongs and is its own key; none if the word must be
    /// looked up.
    #[inline(always)]
    fn found(&self, i: usize) -> Option<u32> {
        let id = self.slots[i].id();
        let is_found = self.slots[i].is(self.keys[i].0, |_| false) && id != UNKNOWN;
        is_found.then_some(id)
    }
}

impl Index {
    /// The number of the table that words of this place belong to.
    #[inline(always)]
    pub(super) fn table(&self, place: u64) -> usize {
        (place >> 58) as usize & (self.tables.len() - 1)
    }

    /// The tables, by the highest bits of places.
    pub(super) fn tables(&mut self) -> &mut [Table] {
        &mut self.tables
    }

    /// Distributes the words over [`TABLES`] tables.
    fn split(&mut self) {
        if self.tables.len() < TABLES {
            let words: usize = self.tables.iter().map(Table::len).sum();
            let new = Index { tables: vec![Table::with_room(words / TABLES); TABLES] };
            for entry in std::mem::replace(self, new).tables.iter().flat_map(Table::iter) {
                let table = self.table(entry.key().place());
                self.tables[table].insert(entry);
            }
        }
    }

    /// The number of a word with this key, or [`UNKNOWN`]. `names` are those of all words of the index.
    #[inline(always)]
    pub fn find(&self, key: Key, word: &[u8], names: &Names) -> u32 {
        let place = key.place();
        let same = |id: u32| names.get(id as usize) == word;
        self.tables[self.table(place)].find(place, |other| other.is(key, same)).id()
    }

    /// Appends the number of each token to `ids`; returns whether one of them is [`UNKNOWN`]. `names` are those of all words of the
    /// index.
    pub fn find_each(&self, tokens: &Tokens, names: &Names, ids: &mut Vec<u32>) -> bool {
        let mut any_unknown = false;
        let mut block = Block::new();
        for spans in tokens.spans.chunks(BLOCK) {
            self.load(spans.iter().map(|&span| Key::at(&tokens.text, span)), &mut block);
            for (i, span) in spans.iter().enumerate() {
                block.ids[i] = match block.found(i) {
                    Some(id) => id,
                    None => self.find(block.keys[i].0, word(tokens, *span), names),
                };
                any_unknown |= block.ids[i] == UNKNOWN;
            }
            ids.extend_from_slice(&block.ids[..spans.len()]);
        }
        any_unknown
    }

    /// Appends the number of each token to `ids`, the next ones for words that are new, which are appended to `names`.
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

    /// Writes the keys of at most [`BLOCK`] tokens and the slots where they belong to `block`. No load waits for another, so memory
    /// answers all at once.
    #[inline(always)]
    fn load(&self, keys: impl ExactSizeIterator<Item = Key>, block: &mut Block) {
        let n_keys = keys.len();
        for (own, key) in block.keys.iter_mut().zip(keys) {
            *own = (key, key.place());
        }
        let places = block.slots.iter_mut().zip(&block.keys[..n_keys]);
        match &self.tables[..] {
            // With a single table no table is looked up, which saves a tenth of the time.
            [table] => places.for_each(|(slot, &(_, place))| *slot = table.peek(place)),
            tables => places.for_each(|(slot, &(_, place))| {
                *slot = tables[self.table(place)].peek(place);
            }),
        }
    }

    /// The number of a word with this key; the next one if it is new, and then it is appended to `names`.
    #[inline(always)]
    pub fn number(&mut self, key: Key, word: &[u8], names: &mut Names) -> u32 {
        let next = names.len() as u32;
        let table = self.table(key.place());
        let id = self.tables[table].number(key, |id| names.get(id as usize) == word, || next);
        if id == next {
            names.push(word);
        }
        id
    }

    /// The index of distinct words, numbered in their order.
    pub fn of(names: &Names) -> Index {
        let mut table = Table::with_room(names.len());
        let mut block = [Entry::default(); BLOCK];
        for start in (0..names.len()).step_by(BLOCK) {
            let words = start..names.len().min(start + BLOCK);
            let block = &mut block[..words.len()];
            for (entry, id) in block.iter_mut().zip(words) {
                *entry = Entry::new(names.key(id), id as u32);
            }
            table.load(block.iter().map(hash_table::Entry::hash));
            block.iter().for_each(|&entry| table.insert(entry));
        }
        Index { tables: vec![table] }
    }
}

/// Words by name.
#[derive(Clone, Debug, Default)]
pub struct NamedWords {
    pub names: Names,
    /// Made when a word is first looked up, since making it takes more than half the time of loading a large model.
    index: OnceLock<Index>,
}

impl NamedWords {
    /// Distinct words.
    pub fn new(names: Names) -> Self {
        NamedWords { names, index: OnceLock::new() }
    }

    /// The index of the names, which is made now if it is not there.
    #[inline(always)]
    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.names))
    }

    /// Lets `f` change index and names, which must agree afterwards, and returns its answer.
    pub(super) fn change<R>(&mut self, f: impl FnOnce(&mut Index, &mut Names) -> R) -> R {
        let index = self.index.take();
        let mut index = index.unwrap_or_else(|| Index::of(&self.names));
        let answer = f(&mut index, &mut self.names);
        self.index = index.into();
        answer
    }
}

/// The words of a store and their numbers.
#[derive(Clone, Debug)]
pub enum Vocabulary {
    Named(NamedWords),
    /// The columns of a matrix, which are called `#17`.
    Columns {
        /// By column: the number of its word + 1, or 0 if it has none.
        ids: Vec<u32>,
        /// By number: the column of the word.
        columns: Vec<u32>,
    },
}

impl Vocabulary {
    /// Whether there is memory for so many columns. Without it, making the table would abort the process.
    pub fn fits(n_columns: usize) -> bool {
        let mut probe = Vec::<u32>::new();
        let fits = probe.try_reserve_exact(n_columns).is_ok();
        std::hint::black_box(probe);
        fits
    }

    /// An empty vocabulary of the columns of a matrix, or of words by name if there are no columns.
    pub fn new(n_columns: usize) -> Self {
        match n_columns {
            0 => Vocabulary::Named(NamedWords::default()),
            _ => Vocabulary::Columns { ids: vec![0; n_columns], columns: vec![] },
        }
    }

    /// An empty vocabulary of the same kind.
    pub fn emptied(&self) -> Self {
        Vocabulary::new(self.n_columns())
    }

    /// The names of all words, unless they are columns.
    pub fn names(&self) -> Option<&Names> {
        match self {
            Vocabulary::Named(words) => Some(&words.names),
            Vocabulary::Columns { .. } => None,
        }
    }

    /// How many tables the index has.
    pub(super) fn tables(&self) -> usize {
        match self {
            Vocabulary::Named(words) => words.index().tables.len(),
            Vocabulary::Columns { .. } => 1,
        }
    }

    /// The number of the table that a key belongs to.
    #[inline(always)]
    pub(super) fn table(&self, key: Key) -> usize {
        match self {
            Vocabulary::Named(words) => words.index().table(key.place()),
            Vocabulary::Columns { .. } => 0,
        }
    }

    /// Prepares for many new words, which threads number table by table.
    pub fn split(&mut self) {
        if let Vocabulary::Named(words) = self {
            words.change(|index, _| index.split());
        }
    }

    /// How many words have a number.
    pub fn len(&self) -> usize {
        match self {
            Vocabulary::Named(words) => words.names.len(),
            Vocabulary::Columns { columns, .. } => columns.len(),
        }
    }

    /// How many columns the matrix has; 0 if words have names.
    pub fn n_columns(&self) -> usize {
        match self {
            Vocabulary::Named(_) => 0,
            Vocabulary::Columns { ids, .. } => ids.len(),
        }
    }

    /// The number of the word of this name, or [`UNKNOWN`]; a column is called `#17`.
    pub fn find_name(&self, name: &[u8]) -> u32 {
        match self {
            Vocabulary::Named(words) => words.index().find(Key::of(name), name, &words.names),
            Vocabulary::Columns { ids, .. } => {
                column_named(name, ids.len()).map_or(UNKNOWN, |column| ids[column].wrapping_sub(1))
            }
        }
    }

    /// The number of the word of this name, the next one if it is new; an error if there are too many words, or no such column.
    pub fn add_name(&mut self, name: &[u8]) -> Result<u32, Error> {
        demand(self.len() < MOST, TOO_MANY)?;
        match self {
            Vocabulary::Named(words) => {
                Ok(words.change(|index, names| index.number(Key::of(name), name, names)))
            }
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

    /// The number here of a word of another vocabulary, or [`UNKNOWN`].
    pub fn find_from(&self, other: &Vocabulary, id: usize) -> u32 {
        other.with_name(id, |name| self.find_name(name))
    }

    /// The number here of a word of another vocabulary, which gets the next number if it is new.
    pub fn add_from(&mut self, other: &Vocabulary, id: usize) -> Result<u32, Error> {
        other.with_name(id, |name| self.add_name(name))
    }

    /// Appends the number of each token's word to `ids`; returns whether one of them is [`UNKNOWN`]. Columns are no token's words.
    pub fn find_each(&self, tokens: &Tokens, ids: &mut Vec<u32>) -> bool {
        match self {
            Vocabulary::Named(words) => words.index().find_each(tokens, &words.names, ids),
            Vocabulary::Columns { .. } => {
                ids.resize(ids.len() + tokens.len(), UNKNOWN);
                !tokens.is_empty()
            }
        }
    }

    /// Appends the number of each token's word to `ids`, the next ones for words that are new; an error if words are columns, or
    /// too many.
    pub fn number_each(&mut self, tokens: &Tokens, ids: &mut Vec<u32>) -> Result<(), Error> {
        demand(tokens.len() <= MOST - self.len(), TOO_MANY)?;
        match self {
            Vocabulary::Named(words) => {
                words.change(|index, names| index.number_each(tokens, names, ids));
            }
            Vocabulary::Columns { .. } => return Err(Error::malformed(NO_TEXTS)),
        }
        Ok(())
    }

    /// Calls `f` with the name of a word, in bytes, and returns its answer.
    pub fn with_name<R>(&self, id: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Vocabulary::Named(words) => f(words.names.get(id)),
            Vocabulary::Columns { columns, .. } => f(format!("#{}", columns[id]).as_bytes()),
        }
    }
}

pub(super) const TOO_MANY: &str =
    "there are more than 2**31 - 1 distinct words; give a vocabulary of fewer";

/// Words that are columns are counted by [`crate::words::Matrix`].
pub(super) const NO_TEXTS: &str = "the words are columns of a matrix, and texts have none of them";

/// The number of a column's word, the next one if it is new. `ids` and `columns` are those of [`Vocabulary::Columns`].
#[inline(always)]
pub fn number_column(column: usize, ids: &mut [u32], columns: &mut Vec<u32>) -> u32 {
    if ids[column] == 0 {
        columns.push(column as u32);
        ids[column] = columns.len() as u32;
    }
    ids[column] - 1
}

/// The column that is called `#17`, for 17; none if the name is no column's.
fn column_named(name: &[u8], n_columns: usize) -> Option<usize> {
    let digits = std::str::from_utf8(name.strip_prefix(b"#")?).ok()?;
    let is_plain = digits == "0" || !digits.starts_with(['0', '+']);
    let number: usize = is_plain.then(|| digits.parse().ok()).flatten()?;
    (number < n_columns).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These words as the tokens of one text.
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
        // Words of zeros, of x and of x before a zero, of 0 to 40 bytes.
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
        let names = vocabulary.names().unwrap();
        let loaded = Vocabulary::Named(NamedWords::new(names.clone()));
        for word in words.iter().map(|word| word.as_bytes()).chain([&b"another"[..]]) {
            assert_eq!(loaded.find_name(word), vocabulary.find_name(word));
        }
    }

    #[test]
    fn columns_have_names() {
        // The columns of a matrix of eight; words are numbered as they come.
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
