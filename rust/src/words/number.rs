//! Numbers new words on all threads, in the order in which texts have them.
//!
//! The unknown tokens of each chunk are sorted by the table of the index they belong to. A thread takes a table, which is small
//! enough for the cache, and the tokens of all chunks that belong to it, in order. It gives new words numbers within the table.
//! Then the place of its first token decides which number each new word gets.

use super::count::Chunk;
use super::index::{Key, MOST, NO_TEXTS, Names, TOO_MANY, Table, UNKNOWN, Vocabulary};
use crate::error::{Error, demand};
use crate::text::Tokens;
use crate::threads;

/// A token whose word has no number yet.
#[derive(Clone, Copy, Debug)]
struct Token {
    /// Its key. The second half for a token of more than 16 bytes, else zero, says where its bytes are.
    key: Key,
    /// Its position in `ids` of its chunk.
    position: u32,
}

impl Token {
    /// The token's key as the index has it: the second half is zero for a token of more than 16 bytes.
    #[inline(always)]
    fn key(&self) -> Key {
        let second = if self.key.is_word() { self.key.second } else { 0 };
        Key { second, ..self.key }
    }
}

/// The tokens of a chunk whose words have no number yet.
#[derive(Debug, Default)]
pub struct Unknown {
    /// The tokens that belong to each table of the index, `[table][token]`, in the order of the text.
    tokens: Vec<Vec<Token>>,
    /// The bytes of tokens of more than 16 bytes.
    long: Vec<u8>,
}

impl Unknown {
    /// How many tokens there are in all tables.
    pub fn len(&self) -> usize {
        self.tokens.iter().map(Vec::len).sum()
    }

    /// No tokens yet, with room for `n_tokens` of them, shared equally by the tables of the vocabulary's index.
    pub fn with_room(vocabulary: &Vocabulary, n_tokens: usize) -> Self {
        let n_tables = vocabulary.tables();
        let empty = || Vec::with_capacity(n_tokens / n_tables); // the tokens of one table
        Unknown { tokens: (0..n_tables).map(|_| empty()).collect(), ..Unknown::default() }
    }

    /// Notes those tokens of a text whose words have no number: those for which `ids` has [`UNKNOWN`]. `ids` are the numbers of
    /// the words of the chunk's tokens, of which those of the text begin at `start`. `self.tokens` has the notes of each table
    /// of the index, `[table][token]`, and `self.long` the bytes of long tokens.
    pub fn note(&mut self, vocabulary: &Vocabulary, tokens: &Tokens, ids: &[u32], start: usize) {
        for (i, span) in tokens.spans.iter().enumerate() {
            if ids[start + i] != UNKNOWN {
                continue;
            }
            let mut key = Key::at(&tokens.text, *span);
            let table = vocabulary.table(key); // number of the table that the word belongs to
            if !key.is_word() {
                key.second = self.long.len() as u64;
                self.long.extend_from_slice(tokens.get(i));
            }
            self.tokens[table].push(Token { key, position: (start + i) as u32 });
        }
    }

    /// The bytes of a token of more than 16 bytes whose key in [`Token`] is `key`: there the second half says where its bytes
    /// begin in `long`.
    fn long_name(&self, key: Key) -> &[u8] {
        &self.long[key.second as usize..][..key.length as usize]
    }

    /// Appends the word of a token to `names`; `key` is the token's key in [`Token`].
    fn push_name(&self, key: Key, names: &mut Names) {
        match key.is_word() {
            true => names.push(&key.bytes()[..key.length as usize]),
            false => names.push(self.long_name(key)),
        }
    }
}

/// The bit that marks a number as that of a new word, which is a number among new words and not yet one of the vocabulary.
const MARK: u32 = 1 << 31;

/// The unknown tokens of some chunks that belong to one table of the index.
#[derive(Default)]
struct TableTokens {
    /// The tokens of each chunk, `[chunk][token]`. [`TableTokens::number`] replaces the first halves of keys by the words'
    /// numbers: the vocabulary's, or the number among the new words of this table, marked.
    tokens: Vec<Vec<Token>>,
    /// The new words: the chunk of the first token of each, and its key there.
    new_words: Vec<(u32, Key)>,
    /// How many of `new_words` have their first token before each chunk, `[chunk]`.
    n_new_before_chunk: Vec<u32>,
    /// How many words are new in the tables before this one.
    n_new_before: u32,
}

impl TableTokens {
    /// Gives all tokens of this table their numbers and puts new words into the table, with marked numbers. `names` are those
    /// of the words of the vocabulary, and `chunks` have the bytes of long tokens. The number of a token's word replaces the
    /// first half of its key.
    fn number(&mut self, table: &mut Table, names: &Names, chunks: &[Chunk]) {
        for (chunk, tokens) in self.tokens.iter_mut().enumerate() {
            self.n_new_before_chunk.push(self.new_words.len() as u32);
            table.load(tokens.iter().map(|token| token.key().place()));
            for token in tokens {
                // Whether the word with this number, new or not, is that of the token, which has more than 16 bytes.
                let has_name = |id: u32| {
                    let name = chunks[chunk].unknown.long_name(token.key);
                    if id & MARK == 0 {
                        return names.get(id as usize) == name;
                    }
                    let (first_chunk, key) = self.new_words[(id ^ MARK) as usize];
                    chunks[first_chunk as usize].unknown.long_name(key) == name
                };
                let next_id = self.new_words.len() as u32 | MARK; // of the word if it is new
                let id = table.number(token.key(), has_name, next_id);
                if id == next_id {
                    self.new_words.push((chunk as u32, token.key));
                }
                token.key.first = u64::from(id);
            }
        }
    }

    /// Replaces the marked numbers of new words in the table by those of the vocabulary. `vocabulary_ids` are those of all new
    /// words, table after table; `n_new_before` of them come before this table's.
    fn renumber(&self, table: &mut Table, vocabulary_ids: &[u32]) {
        let ids = &vocabulary_ids[self.n_new_before as usize..]; // of this table's new words
        // The keys of the new words. The position in the chunk is not used.
        let keys = || self.new_words.iter().map(|&(_, key)| Token { key, position: 0 }.key());
        table.load(keys().map(Key::place));
        for ((key, &id), marked_id) in keys().zip(ids).zip(MARK..) {
            table.renumber(key, marked_id, id);
        }
    }
}

/// The new words whose first token is in a chunk, in the order of these tokens.
#[derive(Default)]
struct NewWords {
    /// The number of each word among all new words, which are numbered table after table.
    numbers: Vec<u32>,
    names: Names,
}

impl Chunk {
    /// Copies the numbers of the words of this chunk's unknown tokens from the tables to `ids`; a new word gets its number
    /// among all new words, marked. `chunk` is the position of this chunk among all. Returns the new words that occur first in
    /// this chunk.
    fn take_ids(&mut self, chunk: usize, tables: &[TableTokens]) -> NewWords {
        // A bit per position in `ids`: whether a new word occurs there first. `ids` has its position in `new_words` meanwhile.
        let mut is_first = vec![0_u64; self.ids.len() / 64 + 1];
        // The table of each new word, and its number there, in the order of tables.
        let mut new_words: Vec<(u32, u32)> = vec![];
        for (table_number, table) in tables.iter().enumerate() {
            // Of the table's next word that occurs first here.
            let mut next_id = table.n_new_before_chunk[chunk] | MARK;
            // The first half of a token's key is the number of its word meanwhile.
            for token in &table.tokens[chunk] {
                let (position, id) = (token.position as usize, token.key.first as u32);
                self.ids[position] = id;
                if id == next_id {
                    is_first[position / 64] |= 1 << (position % 64);
                    self.ids[position] = new_words.len() as u32;
                    new_words.push((table_number as u32, id ^ MARK));
                    next_id += 1;
                } else if id & MARK != 0 {
                    self.ids[position] = id + table.n_new_before;
                }
            }
        }
        let mut in_order = NewWords::default(); // the new words in the order of the text
        in_order.numbers.reserve(new_words.len());
        // `bits` are those of 64 positions.
        for (block, mut bits) in is_first.into_iter().enumerate() {
            while bits != 0 {
                let position = 64 * block + bits.trailing_zeros() as usize;
                let (table_number, number) = new_words[self.ids[position] as usize];
                let table = &tables[table_number as usize];
                let number_among_all = table.n_new_before + number; // new words, table after table
                self.unknown.push_name(table.new_words[number as usize].1, &mut in_order.names);
                in_order.numbers.push(number_among_all);
                self.ids[position] = number_among_all | MARK;
                bits &= bits - 1; // clears the lowest bit
            }
        }
        in_order
    }

    /// Replaces marked numbers in `ids`, which are those of new words, by the words' numbers in the vocabulary:
    /// `vocabulary_ids[i]` for new word i of all.
    fn renumber(&mut self, vocabulary_ids: &[u32]) {
        for id in &mut self.ids {
            if *id & MARK != 0 {
                *id = vocabulary_ids[(*id ^ MARK) as usize];
            }
        }
        self.unknown = Unknown::default();
    }
}

/// Writes the numbers of the words of the chunks' unknown tokens (those whose words had no number) to the chunks' `ids`, on so
/// many threads; new words get the next numbers of the vocabulary. `index` finds words by key, `names` are their names by number.
pub fn number(
    vocabulary: &mut Vocabulary,
    chunks: &mut [Chunk],
    threads: usize,
) -> Result<(), Error> {
    let n_unknown: usize = chunks.iter().map(|chunk| chunk.unknown.len()).sum();
    demand(n_unknown <= MOST - vocabulary.len(), TOO_MANY)?;
    if n_unknown == 0 {
        return Ok(());
    }
    let Vocabulary::Named(words) = vocabulary else {
        return Err(Error::malformed(NO_TEXTS));
    };
    let threads = threads::worth(threads, n_unknown);
    words.change(|index, names| number_by_table(index.tables(), names, chunks, threads));
    Ok(())
}

/// Writes the numbers of the words of the chunks' unknown tokens to their `ids`, on so many threads, each of which takes one of
/// the `tables` of the index at a time. New words get the next numbers, and their names are appended to `names`.
fn number_by_table(tables: &mut [Table], names: &mut Names, chunks: &mut [Chunk], threads: usize) {
    let mut tokens_of_tables: Vec<TableTokens> = vec![]; // the unknown tokens of each table
    for table in 0..tables.len() {
        // A chunk's unknown tokens of this table.
        let take = |chunk: &mut Chunk| chunk.unknown.tokens.get_mut(table).map(std::mem::take);
        let tokens = chunks.iter_mut().map(|chunk| take(chunk).unwrap_or_default()).collect();
        tokens_of_tables.push(TableTokens { tokens, ..TableTokens::default() });
    }
    let old_names = &*names; // of the words that had a number before
    let mut pairs: Vec<_> = tables.iter_mut().zip(&mut tokens_of_tables).collect(); // a table, its tokens
    threads::each(threads, &mut pairs, |_, (table, tokens)| {
        tokens.number(table, old_names, chunks)
    });
    let mut n_new = 0; // new words of the tables so far
    for tokens in &mut tokens_of_tables {
        tokens.n_new_before = n_new;
        n_new += tokens.new_words.len() as u32;
    }
    // The new words that occur first in each chunk, `[chunk]`.
    let new_words = threads::each(threads, chunks, |i, chunk| chunk.take_ids(i, &tokens_of_tables));
    // The number in the vocabulary of each new word, table after table.
    let mut vocabulary_ids = vec![0; n_new as usize];
    let numbers = new_words.iter().flat_map(|words| &words.numbers); // among all new words, in the order of texts
    for (&number, id) in numbers.zip(names.len() as u32..) {
        vocabulary_ids[number as usize] = id;
    }
    new_words.iter().for_each(|words| names.append(&words.names));
    let mut pairs: Vec<_> = tables.iter_mut().zip(&tokens_of_tables).collect(); // a table, its tokens
    threads::each(threads, &mut pairs, |_, (table, tokens)| {
        tokens.renumber(table, &vocabulary_ids)
    });
    threads::each(threads, chunks, |_, chunk| chunk.renumber(&vocabulary_ids));
}
