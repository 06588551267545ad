//! Numbers new words on all threads, in the order in which texts have them.
//!
//! The unknown tokens of each chunk are sorted by the table of the index they belong to. A thread takes a table, which is small enough
//! for the cache, and the tokens of all chunks that belong to it, in order. It gives new words numbers within the table. Then the place
//! of its first token decides which number each new word gets.

use super::count::Chunk;
use super::index::{Key, MOST, NO_TEXTS, Names, TOO_MANY, Table, UNKNOWN, Vocabulary};
use crate::error::{Error, demand};
use crate::text::Tokens;
use crate::threads;

/// A token whose word is not known.
#[derive(Clone, Copy, Debug)]
struct Token {
    /// Its key. The second half for a token of more than 16 bytes, else zero, says where its bytes are.
    key: Key,
    /// Its place in `ids` of its chunk.
    at: u32,
}

impl Token {
    /// The key as the index has it: its second half is zero for a token of more than 16 bytes.
    #[inline(always)]
    fn key(&self) -> Key {
        let second = if self.key.is_word() { self.key.second } else { 0 };
        Key { second, ..self.key }
    }
}

/// The tokens of a chunk whose words are not known.
#[derive(Debug, Default)]
pub struct Unknown {
    /// The tokens of each table of the index, in the order of the text.
    tokens: Vec<Vec<Token>>,
    /// The bytes of tokens of more than 16 bytes.
    long: Vec<u8>,
    /// How many tokens there are.
    count: usize,
}

impl Unknown {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// No tokens yet, with room for so many.
    pub fn with_room(vocabulary: &Vocabulary, tokens: usize) -> Self {
        let tables = vocabulary.tables();
        let room = || Vec::with_capacity(tokens / tables);
        Unknown { tokens: (0..tables).map(|_| room()).collect(), ..Unknown::default() }
    }

    /// Notes the tokens of a text for which `ids` has [`UNKNOWN`]. `ids` are the numbers of the chunk's tokens; those of the text
    /// are from `start` on.
    pub fn note(&mut self, vocabulary: &Vocabulary, tokens: &Tokens, ids: &[u32], start: usize) {
        for (i, span) in tokens.spans.iter().enumerate() {
            if ids[start + i] != UNKNOWN {
                continue;
            }
            let mut key = Key::at(&tokens.text, *span);
            let table = vocabulary.table(key);
            if !key.is_word() {
                key.second = self.long.len() as u64;
                self.long.extend_from_slice(tokens.get(i));
            }
            self.tokens[table].push(Token { key, at: (start + i) as u32 });
            self.count += 1;
        }
    }

    /// The bytes of the word of a token's key. `short` is memory for a word of up to 16 bytes.
    fn name<'a>(&'a self, key: Key, short: &'a mut [u8; 16]) -> &'a [u8] {
        let length = key.length as usize;
        if key.is_word() {
            *short = key.bytes();
            return &short[..length];
        }
        &self.long[key.second as usize..][..length]
    }

    /// The place of the first token in its chunk; none if there is none.
    pub fn first(&self) -> Option<usize> {
        let first = |tokens: &Vec<Token>| Some(tokens.first()?.at as usize);
        self.tokens.iter().filter_map(first).min()
    }

    /// The name of the word at a place in the chunk, and how often it occurs from there up to `end`.
    pub fn times(&self, place: usize, end: usize) -> (Vec<u8>, u64) {
        let here = |token: &&Token| (place..end).contains(&(token.at as usize));
        let mut tokens: Vec<&Token> = self.tokens.iter().flatten().filter(here).collect();
        tokens.sort_unstable_by_key(|token| token.at);
        let name = |token: &&Token| self.name(token.key, &mut [0; 16]).to_vec();
        let word = tokens.first().map(name).unwrap_or_default();
        let times = tokens.iter().filter(|token| name(token) == word).count();
        (word, times as u64)
    }
}

/// Marks the number of a word that has none in the vocabulary yet.
const MARK: u32 = 1 << 31;

/// The unknown tokens of some chunks that belong to one table of the index.
#[derive(Default)]
struct Share {
    /// The tokens of each chunk. [`Share::number`] replaces the first halves of keys by the words' numbers: the vocabulary's, or
    /// the number among the new words of this table, marked.
    tokens: Vec<Vec<Token>>,
    /// The new words: the chunk of the first token of each, and its key there.
    new: Vec<(u32, Key)>,
    /// How many words were new before each chunk.
    before: Vec<u32>,
    /// How many words are new in the tables before this one.
    base: u32,
}

impl Share {
    /// Gives all tokens their numbers and puts new words into the table. `names` are those of the words with a number.
    fn number(&mut self, table: &mut Table, names: &Names, chunks: &[Chunk]) {
        // The bytes of a token of more than 16 bytes.
        let long = |chunk: usize, key: Key| {
            &chunks[chunk].unknown.long[key.second as usize..][..key.length as usize]
        };
        for (chunk, tokens) in self.tokens.iter_mut().enumerate() {
            self.before.push(self.new.len() as u32);
            table.load(tokens.iter().map(|token| token.key().place()));
            for token in tokens {
                let same = |id: u32| {
                    let word = long(chunk, token.key);
                    if id & MARK == 0 {
                        return names.get(id as usize) == word;
                    }
                    let (first, key) = self.new[(id ^ MARK) as usize];
                    long(first as usize, key) == word
                };
                let next = self.new.len() as u32 | MARK;
                let id = table.number(token.key(), same, || next);
                if id == next {
                    self.new.push((chunk as u32, token.key));
                }
                token.key.first = u64::from(id);
            }
        }
    }

    /// Replaces the marked numbers in the table by those of the vocabulary: `numbers[base + i]` for new word i of this table.
    fn renumber(&self, table: &mut Table, numbers: &[u32]) {
        let numbers = &numbers[self.base as usize..];
        // Place 0 in the chunk is not used.
        let keys = || self.new.iter().map(|&(_, key)| Token { key, at: 0 }.key());
        table.load(keys().map(Key::place));
        for ((key, &id), marked) in keys().zip(numbers).zip(MARK..) {
            table.renumber(key, marked, id);
        }
    }
}

/// The new words whose first token is in a chunk, in order: their numbers among all new words, and their names.
#[derive(Default)]
struct Firsts {
    /// Numbers among all new words, table after table.
    numbers: Vec<u32>,
    names: Names,
}

impl Chunk {
    /// Takes the numbers of this chunk's tokens from the tables' shares (`chunk` is its position); those of new words are marked.
    /// Returns the new words that occur first in this chunk.
    fn take(&mut self, chunk: usize, shares: &[Share]) -> Firsts {
        // A bit per token: whether a new word occurs there first.
        let mut first = vec![0_u64; self.ids.len() / 64 + 1];
        // The table of each new word, and its number there, in the order of tables.
        let mut met: Vec<(u32, u32)> = vec![];
        for (table, share) in shares.iter().enumerate() {
            let mut next = share.before[chunk] | MARK;
            for token in &share.tokens[chunk] {
                let (at, id) = (token.at as usize, token.key.first as u32);
                self.ids[at] = id;
                if id & MARK != 0 {
                    self.ids[at] = id + share.base;
                    if id == next {
                        first[at / 64] |= 1 << (at % 64);
                        self.ids[at] = met.len() as u32;
                        met.push((table as u32, id ^ MARK));
                        next += 1;
                    }
                }
            }
        }
        let mut firsts = Firsts::default();
        firsts.numbers.reserve(met.len());
        for (block, mut bits) in first.into_iter().enumerate() {
            while bits != 0 {
                let at = 64 * block + bits.trailing_zeros() as usize;
                let (table, number) = met[self.ids[at] as usize];
                let share = &shares[table as usize];
                let key = share.new[number as usize].1;
                firsts.names.push(self.unknown.name(key, &mut [0; 16]));
                self.ids[at] = (number + share.base) | MARK;
                firsts.numbers.push(number + share.base);
                bits &= bits - 1;
            }
        }
        firsts
    }

    /// Replaces marked numbers, those among all new words, by those of the vocabulary: `numbers[i]` for new word i.
    fn renumber(&mut self, numbers: &[u32]) {
        for id in &mut self.ids {
            if *id & MARK != 0 {
                *id = numbers[(*id ^ MARK) as usize];
            }
        }
        self.unknown = Unknown::default();
    }
}

/// Gives the unknown tokens of chunks, in their `ids`, the numbers of their words; new words get the next numbers of the
/// vocabulary.
pub fn number(
    vocabulary: &mut Vocabulary,
    chunks: &mut [Chunk],
    threads: usize,
) -> Result<(), Error> {
    let unknown: usize = chunks.iter().map(|chunk| chunk.unknown.len()).sum();
    demand(unknown <= MOST - vocabulary.len(), TOO_MANY)?;
    if unknown == 0 {
        return Ok(());
    }
    let Vocabulary::Named(words) = vocabulary else {
        return Err(Error::malformed(NO_TEXTS));
    };
    let threads = threads::worth(threads, unknown);
    words.change(|index, names| number_by_table(index.tables(), names, chunks, threads));
    Ok(())
}

/// Gives the unknown tokens of chunks their numbers, table by table, and appends the names of new words to `names`.
fn number_by_table(tables: &mut [Table], names: &mut Names, chunks: &mut [Chunk], threads: usize) {
    let mut shares: Vec<Share> = vec![];
    for table in 0..tables.len() {
        let take = |chunk: &mut Chunk| chunk.unknown.tokens.get_mut(table).map(std::mem::take);
        let tokens = chunks.iter_mut().map(|chunk| take(chunk).unwrap_or_default()).collect();
        shares.push(Share { tokens, ..Share::default() });
    }
    let known = &*names;
    let mut tables_and_shares: Vec<_> = tables.iter_mut().zip(&mut shares).collect();
    threads::each(threads, &mut tables_and_shares, |_, (table, share)| {
        share.number(table, known, chunks)
    });
    let mut n_new = 0;
    for share in &mut shares {
        share.base = n_new;
        n_new += share.new.len() as u32;
    }
    let firsts = threads::each(threads, chunks, |i, chunk| chunk.take(i, &shares));
    // The number in the vocabulary of each new word, table after table.
    let mut numbers = vec![0; n_new as usize];
    let first_met = firsts.iter().flat_map(|first| &first.numbers);
    for (&number, id) in first_met.zip(names.len() as u32..) {
        numbers[number as usize] = id;
    }
    let new_names: Vec<Names> = firsts.into_iter().map(|first| first.names).collect();
    names.append_all(&new_names, threads);
    let mut tables_and_shares: Vec<_> = tables.iter_mut().zip(&shares).collect();
    threads::each(threads, &mut tables_and_shares, |_, (table, share)| {
        share.renumber(table, &numbers)
    });
    threads::each(threads, chunks, |_, chunk| chunk.renumber(&numbers));
}
