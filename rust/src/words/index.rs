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
use std::cmp::Ordering::{Equal, Greater, Less};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

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

/// Up to 16 bytes, filled up with zeros, as two little-endian numbers: the first eight bytes, and the others.
#[inline(always)]
fn halves(bytes: &[u8]) -> (u64, u64) {
    let mut block = [0; 16]; // the bytes, then zeros
    block[..bytes.len()].copy_from_slice(bytes);
    split(&block)
}

/// 16 bytes as two little-endian numbers: the first eight bytes, and the others.
#[inline(always)]
fn split(block: &[u8; 16]) -> (u64, u64) {
    let number = u128::from_le_bytes(*block);
    (number as u64, (number >> 64) as u64)
}

/// By length from 0 to 16, the bits of 16 bytes that belong to a word, as two little-endian numbers.
const MASKS: [(u64, u64); 17] = {
    let mut masks = [(0, 0); 17];
    let mut mask = 0_u128; // the low bytes of a word of this length
    let mut length = 1;
    while length <= 16 {
        mask = mask << 8 | 0xff;
        masks[length] = (mask as u64, (mask >> 64) as u64);
        length += 1;
    }
    masks
};

impl Key {
    /// The key of a word: the word itself, filled up with zeros, as two numbers (if it has up to 16 bytes), or its hash and 0;
    /// and its length in bytes.
    pub fn of(word: &[u8]) -> Key {
        let length = word.len() as u32;
        let (first, second) = match word.len() {
            0..=16 => halves(word),
            _ => (Key::hash(word), 0),
        };
        Key { first, second, length }
    }

    /// The hash of a word of more than 16 bytes, as the top of this file defines it: `step` changes `state`, the hash so far,
    /// by the next 16 bytes, given as two numbers of eight bytes.
    fn hash(word: &[u8]) -> u64 {
        let (blocks, rest) = word.as_chunks(); // of 16 bytes, and the bytes after them
        let step = |state: u64, (low, high): (u64, u64)| mix(low ^ STEP, high ^ state);
        let state = blocks.iter().map(split).fold(SEED ^ word.len() as u64, step);
        if rest.is_empty() { state } else { step(state, halves(rest)) }
    }

    /// The key of the token in a span of bytes of a text.
    #[inline(always)]
    pub fn at(text: &[u8], span: Span) -> Key {
        Key::within(text, span.start as usize, span.end as usize)
    }

    /// The key of the word `text[start..end]`: its first and its next eight bytes as numbers, or its hash and 0; and its length
    /// in bytes. 16 bytes are read at once if the text has as many, and a mask clears those after the word.
    #[inline(always)]
    fn within(text: &[u8], start: usize, end: usize) -> Key {
        let mask = MASKS.get(end - start); // the bits of 16 bytes that are the word's; none for a longer word
        let block = text.get(start..).and_then(|rest| rest.first_chunk());
        let (Some(mask), Some(block)) = (mask, block) else {
            return Key::of(&text[start..end]);
        };
        let (low, high) = split(block);
        Key { first: low & mask.0, second: high & mask.1, length: (end - start) as u32 }
    }

    /// The word's first eight bytes as a number that sorts like them; none for a word of more than 16 bytes.
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

    /// Where in `bytes` the word with the number `id` is.
    #[inline(always)]
    fn range(&self, id: usize) -> Range<usize> {
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        start..self.ends[id]
    }

    /// The bytes of the word with this number.
    #[inline(always)]
    pub fn get(&self, id: usize) -> &[u8] {
        &self.bytes[self.range(id)]
    }

    /// The key of the word with the number `id`, made of its bytes in `bytes`; quicker than [`Key::of`] these bytes.
    #[inline(always)]
    fn key(&self, id: usize) -> Key {
        let Range { start, end } = self.range(id);
        Key::within(&self.bytes, start, end)
    }

    /// Appends a word to the bytes of all words; `ends` gets where it ends.
    pub fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    /// Appends the words `more`, in their order.
    pub fn append(&mut self, more: &Names) {
        let bytes_before = self.bytes.len();
        self.bytes.extend_from_slice(&more.bytes);
        self.ends.extend(more.ends.iter().map(|end| bytes_before + end));
    }

    /// The bytes of each word, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|id| self.get(id))
    }

    /// Whether words are in the order of their bytes, none of them twice. Their first eight bytes, as a number that sorts like
    /// them (the head), decide nearly always; longer words have no head.
    pub fn ascend(&self) -> bool {
        let mut head_before = None; // of the word before
        (0..self.len()).all(|id| {
            let head = self.key(id).head();
            match (std::mem::replace(&mut head_before, head), head) {
                (Some(before), Some(head)) if before < head => true,
                _ => id == 0 || self.get(id - 1) < self.get(id),
            }
        })
    }

    /// The number of a word, given by its bytes, among words that ascend, by binary search, or [`UNKNOWN`].
    fn search(&self, word: &[u8]) -> u32 {
        let mut ids = 0..self.len(); // where the word may be
        while !ids.is_empty() {
            let middle = ids.start + ids.len() / 2;
            match self.get(middle).cmp(word) {
                Less => ids.start = middle + 1,
                Equal => return middle as u32,
                Greater => ids.end = middle,
            }
        }
        UNKNOWN
    }
}

/// A word in the table: the two halves of its key, its length and its number + 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry([u64; 3]);

impl Entry {
    /// The entry of the word with this key and this number `id`: the two halves of the key, then its length in the upper and
    /// `id + 1` in the lower 32 bits.
    #[inline(always)]
    fn new(key: Key, id: u32) -> Self {
        Entry([key.first, key.second, u64::from(key.length) << 32 | u64::from(id + 1)])
    }

    /// The key of the word.
    #[inline(always)]
    fn key(&self) -> Key {
        Key { first: self.0[0], second: self.0[1], length: (self.0[2] >> 32) as u32 }
    }

    /// The word's number, or [`UNKNOWN`] if the slot is empty: the lower 32 bits of the last number are the word's number + 1,
    /// or 0.
    #[inline(always)]
    fn id(&self) -> u32 {
        (self.0[2] as u32).wrapping_sub(1)
    }

    /// Whether this is the entry of the word with this key. If the key is a hash, `has_name`, called with a word's number, says
    /// whether that word has the name that is looked for.
    #[inline(always)]
    fn is(&self, key: Key, has_name: impl Fn(u32) -> bool) -> bool {
        self.key() == key && (key.is_word() || has_name(self.id()))
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
    /// The number of the word with this key; if it is new, it gets the number `next_id`. If the key is a hash, `has_name`,
    /// called with a word's number, says whether that word has the name that is looked for.
    #[inline(always)]
    pub(super) fn number(&mut self, key: Key, has_name: impl Fn(u32) -> bool, next_id: u32) -> u32 {
        let is_match = |entry: Entry| entry.is(key, &has_name);
        self.find_or_insert(key.place(), is_match, || Entry::new(key, next_id)).id()
    }

    /// Changes the number of the word with this key from `old_id` to `id`.
    #[inline(always)]
    pub(super) fn renumber(&mut self, key: Key, old_id: u32, id: u32) {
        self.replace(Entry::new(key, id), |entry| entry.id() == old_id);
    }
}

/// From words to their numbers. Words of more than 16 bytes are compared with their names.
///
/// An index of many words has many tables, which share the words by the highest bits of their places, so that each thread can
/// number the words of a table.
///
/// Slots of a tag and a number, with the keys elsewhere, would be half as large, but then a word costs two cache misses instead
/// of one: counting text of 200,000 words took a third longer.
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

/// The bytes of the token that is at `span` in the text of `tokens`.
#[inline(always)]
fn word(tokens: &Tokens, span: Span) -> &[u8] {
    &tokens.text[span.start as usize..span.end as usize]
}

/// Words whose slots are loaded together. Counting the words of 20 Newsgroups took 167 ms with 16, 173 with 64 and 157 with 256,
/// which differ less than two measurements of one of them.
const BLOCK: usize = 64;

/// Some tokens: their keys and places, and the entries in the slots where they belong. Reading the slots again, after all of them
/// were loaded, takes 30 % more time to count words on one thread.
struct Block {
    /// The key of each token, and its place.
    keys: [(Key, u64); BLOCK],
    /// What is in the slot where each belongs.
    slots: [Entry; BLOCK],
    /// The number of each token's word.
    ids: [u32; BLOCK],
}

impl Block {
    /// A block without tokens: empty keys, places 0, empty slots, and no numbers of words.
    fn new() -> Self {
        let keys = [(Key::default(), 0); BLOCK];
        Block { keys, slots: [Entry::default(); BLOCK], ids: [UNKNOWN; BLOCK] }
    }

    /// The number of the i-th token's word, if the entry in the slot where the word belongs is the word's and its key is the
    /// word itself; none if it must be looked up.
    #[inline(always)]
    fn id_in_slot(&self, i: usize) -> Option<u32> {
        let id = self.slots[i].id(); // number of the word whose entry is in the slot
        let is_in_slot = self.slots[i].is(self.keys[i].0, |_| false) && id != UNKNOWN;
        is_in_slot.then_some(id)
    }
}

impl Index {
    /// The number of the table that words of this place (hash of the key) belong to: the place's six highest bits, or 0 if
    /// there is one table.
    #[inline(always)]
    pub(super) fn table(&self, place: u64) -> usize {
        (place >> 58) as usize & (self.tables.len() - 1)
    }

    /// The tables, by the highest bits of places.
    pub(super) fn tables(&mut self) -> &mut [Table] {
        &mut self.tables
    }

    /// Distributes the entries of all words over [`TABLES`] tables, by the highest bits of their places.
    fn split(&mut self) {
        if self.tables.len() < TABLES {
            let n_words: usize = self.tables.iter().map(Table::len).sum();
            let empty = Index { tables: vec![Table::with_room(n_words / TABLES); TABLES] };
            for entry in std::mem::replace(self, empty).tables.iter().flat_map(Table::iter) {
                let table = self.table(entry.key().place());
                self.tables[table].insert(entry);
            }
        }
    }

    /// The number of the word with this key and these bytes, or [`UNKNOWN`]. `names` are the names of all words of the index,
    /// by number.
    #[inline(always)]
    fn find(&self, key: Key, word: &[u8], names: &Names) -> u32 {
        let place = key.place();
        let has_name = |id: u32| names.get(id as usize) == word;
        self.tables[self.table(place)].find(place, |entry| entry.is(key, has_name)).id()
    }

    /// Appends the number of each token's word to `ids`, [`UNKNOWN`] for words that have none. `names` are the names of all
    /// words of the index, by number. A block of tokens is looked up at a time.
    fn find_each(&self, tokens: &Tokens, names: &Names, ids: &mut Vec<u32>) {
        let mut block = Block::new(); // keys, slots and numbers of some tokens
        for spans in tokens.spans.chunks(BLOCK) {
            self.load(tokens, spans, &mut block);
            for (i, span) in spans.iter().enumerate() {
                block.ids[i] = match block.id_in_slot(i) {
                    Some(id) => id,
                    None => self.find(block.keys[i].0, word(tokens, *span), names),
                };
            }
            ids.extend_from_slice(&block.ids[..spans.len()]);
        }
    }

    /// Appends the number of each token's word to `ids`. Words that are new get the next numbers, and are appended to `names`,
    /// the names of all words of the index. A block of tokens is looked up at a time.
    fn number_each(&mut self, tokens: &Tokens, names: &mut Names, ids: &mut Vec<u32>) {
        let mut block = Block::new(); // keys, slots and numbers of some tokens
        for spans in tokens.spans.chunks(BLOCK) {
            self.load(tokens, spans, &mut block);
            for (i, span) in spans.iter().enumerate() {
                block.ids[i] = match block.id_in_slot(i) {
                    Some(id) => id,
                    None => self.number(block.keys[i].0, word(tokens, *span), names),
                };
            }
            ids.extend_from_slice(&block.ids[..spans.len()]);
        }
    }

    /// Writes the keys and places of at most [`BLOCK`] tokens, given by where they are in the text of `tokens` (`spans`), and
    /// the entries in the slots where they belong to `block`. No load waits for another, so memory answers all at once.
    #[inline(always)]
    fn load(&self, tokens: &Tokens, spans: &[Span], block: &mut Block) {
        for (key_and_place, span) in block.keys.iter_mut().zip(spans) {
            let key = Key::at(&tokens.text, *span);
            *key_and_place = (key, key.place());
        }
        // Each slot of the block, with the key and the place of its token.
        let slots = block.slots.iter_mut().zip(&block.keys[..spans.len()]);
        match &self.tables[..] {
            // With a single table no table is looked up, which saves a tenth of the time.
            [table] => slots.for_each(|(slot, &(_, place))| *slot = table.peek(place)),
            tables => slots.for_each(|(slot, &(_, place))| {
                *slot = tables[self.table(place)].peek(place);
            }),
        }
    }

    /// The number of the word with this key and these bytes; the next one if it is new, and then the word is appended to
    /// `names`, the names of all words of the index.
    #[inline(always)]
    fn number(&mut self, key: Key, word: &[u8], names: &mut Names) -> u32 {
        let next_id = names.len() as u32;
        let table = self.table(key.place()); // number of the word's table
        let id = self.tables[table].number(key, |id| names.get(id as usize) == word, next_id);
        if id == next_id {
            names.push(word);
        }
        id
    }

    /// The index, of one table, of distinct words, numbered in the order of `names`.
    fn of(names: &Names) -> Index {
        let mut table = Table::with_room(names.len());
        let mut block = [Entry::default(); BLOCK]; // entries of some words
        for start in (0..names.len()).step_by(BLOCK) {
            let ids = start..names.len().min(start + BLOCK);
            let block = &mut block[..ids.len()];
            for (entry, id) in block.iter_mut().zip(ids) {
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
    /// Made once it pays off. Until then the names ascend, and words are found among them by binary search.
    index: OnceLock<Index>,
    /// How many words were looked up by binary search, copies of these words included.
    n_searched: Arc<AtomicUsize>,
}

/// Finding a word by binary search takes as long as indexing so many words: with 1,000,000 words 2 µs, and 50 ns for each word of
/// the index. A first text of 100 tokens takes 0.2 ms, and 49 ms if the index is made for it.
const WORDS_INDEXED_PER_SEARCH: usize = 32;

impl NamedWords {
    /// Words in the order of their bytes, none of them twice; without an index so far.
    pub fn ascending(names: Names) -> Self {
        NamedWords { names, ..NamedWords::default() }
    }

    /// The index of the names, which is made now if it is not there.
    #[inline(always)]
    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.names))
    }

    /// The index, if making it pays off for looking up `n_words` words more; else none, and the names ascend, so that they can
    /// be searched.
    #[inline(always)]
    fn index_for(&self, n_words: usize) -> Option<&Index> {
        if self.index.get().is_none() {
            let n_searched = self.n_searched.fetch_add(n_words, Relaxed) + n_words; // words, with these
            if n_searched * WORDS_INDEXED_PER_SEARCH < self.names.len() {
                return None;
            }
        }
        Some(self.index())
    }

    /// The number of the word of this name, or [`UNKNOWN`].
    fn find_name(&self, name: &[u8]) -> u32 {
        match self.index_for(1) {
            Some(index) => index.find(Key::of(name), name, &self.names),
            None => self.names.search(name),
        }
    }

    /// Appends the number of each token's word to `ids`, [`UNKNOWN`] for words that have none: by the index if that pays off,
    /// else by binary search among the names.
    fn find_each(&self, tokens: &Tokens, ids: &mut Vec<u32>) {
        match self.index_for(tokens.len()) {
            Some(index) => index.find_each(tokens, &self.names, ids),
            None => {
                ids.extend(tokens.spans.iter().map(|&span| self.names.search(word(tokens, span))))
            }
        }
    }

    /// Lets `f` change the index of words (made now if it is not there) and their names, which must agree afterwards, and
    /// returns its answer.
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
    /// Whether there is memory for a table of `n_columns` numbers. Without it, making the table would abort the process.
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
            // `ids` has the number + 1 of each column's word, 0 for none; `columns` has the column of each number.
            _ => Vocabulary::Columns { ids: vec![0; n_columns], columns: vec![] },
        }
    }

    /// An empty vocabulary of the same kind.
    pub fn emptied(&self) -> Self {
        Vocabulary::new(self.n_columns())
    }

    /// How many tables the index of words by name has; 1 if words are columns of a matrix.
    pub(super) fn tables(&self) -> usize {
        match self {
            Vocabulary::Named(words) => words.index().tables.len(),
            Vocabulary::Columns { .. } => 1,
        }
    }

    /// The number of the table that a word with this key belongs to; 0 if words are columns.
    #[inline(always)]
    pub(super) fn table(&self, key: Key) -> usize {
        match self {
            Vocabulary::Named(words) => words.index().table(key.place()),
            Vocabulary::Columns { .. } => 0,
        }
    }

    /// Prepares for a large number of new words: cuts the index into tables, whose words threads number table by table.
    pub fn split(&mut self) {
        if let Vocabulary::Named(words) = self {
            words.change(|index, _| index.split());
        }
    }

    /// How many words have a number: words by name, or columns of a matrix (`columns` has the column of each).
    pub fn len(&self) -> usize {
        match self {
            Vocabulary::Named(words) => words.names.len(),
            Vocabulary::Columns { columns, .. } => columns.len(),
        }
    }

    /// How many columns the matrix has (`ids` has an element per column); 0 if words have names.
    pub fn n_columns(&self) -> usize {
        match self {
            Vocabulary::Named(_) => 0,
            Vocabulary::Columns { ids, .. } => ids.len(),
        }
    }

    /// The number of the word of this name, in bytes, or [`UNKNOWN`]; a column is called `#17`. For columns, `ids` has the
    /// number + 1 of each column's word, or 0.
    pub fn find_name(&self, name: &[u8]) -> u32 {
        match self {
            Vocabulary::Named(words) => words.find_name(name),
            Vocabulary::Columns { ids, .. } => {
                column_named(name, ids.len()).map_or(UNKNOWN, |column| ids[column].wrapping_sub(1))
            }
        }
    }

    /// The number of the word of this name, in bytes, the next number if it is new; an error if there are too many words, or no
    /// such column.
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

    /// The number here of the word that has number `id` in another vocabulary, or [`UNKNOWN`].
    pub fn find_from(&self, other: &Vocabulary, id: usize) -> u32 {
        other.with_name(id, |name| self.find_name(name))
    }

    /// The number here of the word that has number `id` in another vocabulary; it gets the next number if it is new.
    pub fn add_from(&mut self, other: &Vocabulary, id: usize) -> Result<u32, Error> {
        other.with_name(id, |name| self.add_name(name))
    }

    /// Appends the number of each token's word to `ids`, [`UNKNOWN`] for words that have none; returns whether some token's
    /// word has none. If words are columns, no token's word has a number.
    pub fn find_each(&self, tokens: &Tokens, ids: &mut Vec<u32>) -> bool {
        let n_before = ids.len(); // where the numbers of these tokens begin
        match self {
            Vocabulary::Named(words) => words.find_each(tokens, ids),
            Vocabulary::Columns { .. } => ids.resize(n_before + tokens.len(), UNKNOWN),
        }
        ids[n_before..].contains(&UNKNOWN)
    }

    /// Appends the number of each token's word to `ids`, the next numbers for words that are new; an error if words are
    /// columns, or if there are too many. `index` finds words by their keys, and `names` are their names by number.
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

    /// Calls `f` with the name of the word with the number `id`, in bytes, and returns its answer. If words are columns, the
    /// name is `#` and the column.
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

/// The number of the word that is this column; a new word gets the next number. `ids` and `columns` are those of
/// [`Vocabulary::Columns`]: the number + 1 of each column's word, 0 for none, `[column]`; and the column of each word,
/// `[word]`.
#[inline(always)]
pub fn number_column(column: usize, ids: &mut [u32], columns: &mut Vec<u32>) -> u32 {
    if ids[column] == 0 {
        columns.push(column as u32);
        ids[column] = columns.len() as u32;
    }
    ids[column] - 1
}

/// The column that has this name, in bytes: 17 for `#17`. None if none of the `n_columns` columns has it.
fn column_named(name: &[u8], n_columns: usize) -> Option<usize> {
    let digits = std::str::from_utf8(name.strip_prefix(b"#")?).ok()?;
    let is_plain = digits == "0" || !digits.starts_with(['0', '+']); // no leading zero, no sign
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
    fn ascending_words_are_found_with_an_index_and_without() {
        let mut vocabulary = Vocabulary::new(0);
        let mut words: Vec<String> =
            (0..1000).map(|i| format!("{i:0width$}", width = i % 30)).collect();
        words.sort();
        for word in &words {
            vocabulary.add_name(word.as_bytes()).unwrap();
        }
        let Vocabulary::Named(named) = &vocabulary else { unreachable!() };
        let loaded = Vocabulary::Named(NamedWords::ascending(named.names.clone()));
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
