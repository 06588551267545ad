//! Numbers for words that are new, in the order in which texts have them, on all threads.
//!
//! Texts are read in chunks, and what is not known in each of them is shared out by the table of the index that it belongs to. Each
//! thread then takes a table, and the tokens of all chunks that belong to it, in order: a table is small enough for the cache. New
//! words get numbers of the table's own. Where a word is met first says which number it has in the end.

use super::count::Chunk;
use super::index::{Key, MOST, NO_TEXTS, Names, TOO_MANY, Table, UNKNOWN, Vocabulary};
use crate::error::{Error, demand};
use crate::text::Tokens;
use crate::threads;

/// A token whose word is not known.
#[derive(Clone, Copy, Debug)]
struct Token {
    /// Its key. The second half of one of more than 16 bytes, which is zero, says where its bytes are.
    key: Key,
    /// Its place among the numbers of its chunk.
    at: u32,
}

impl Token {
    /// The key in an index.
    #[inline(always)]
    fn key(&self) -> Key {
        let second = if self.key.is_word() { self.key.second } else { 0 };
        Key { second, ..self.key }
    }
}

/// The tokens of a chunk whose words are not known.
#[derive(Debug, Default)]
pub struct Unknown {
    /// By the table they belong to.
    tokens: Vec<Vec<Token>>,
    /// The bytes of those of more than 16.
    long: Vec<u8>,
    count: usize,
}

impl Unknown {
    pub fn len(&self) -> usize {
        self.count
    }

    /// Room for so many tokens.
    pub fn with_room(vocabulary: &Vocabulary, tokens: usize) -> Self {
        let tables = vocabulary.tables();
        let room = || Vec::with_capacity(tokens / tables);
        Unknown { tokens: (0..tables).map(|_| room()).collect(), ..Unknown::default() }
    }

    /// Notes the tokens of a text from `start` on that `ids` has no numbers of.
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

    /// The bytes of a word.
    fn name<'a>(&'a self, key: Key, short: &'a mut [u8; 16]) -> &'a [u8] {
        let length = key.length as usize;
        if key.is_word() {
            *short = key.bytes();
            return &short[..length];
        }
        &self.long[key.second as usize..][..length]
    }

    /// The place of the first of them.
    pub fn first(&self) -> Option<usize> {
        let first = |tokens: &Vec<Token>| Some(tokens.first()?.at as usize);
        self.tokens.iter().filter_map(first).min()
    }

    /// The name of the word of the token at a place, and how often it is there before `end`.
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

/// What a table of the index has to do with some chunks.
#[derive(Default)]
struct Share {
    /// Its tokens by chunk. In the end the first halves of their keys are the words' numbers, marked if they are new.
    tokens: Vec<Vec<Token>>,
    /// The words that are new: where each is first, and its key there.
    new: Vec<(u32, Key)>,
    /// How many were new before each chunk.
    before: Vec<u32>,
    /// How many are new in the tables before.
    base: u32,
    /// The token that is next: its chunk, and its place there.
    next: (usize, usize),
}

impl Share {
    /// Goes on until the table is full; whether it was done before.
    fn number(&mut self, table: &mut Table, names: &Names, chunks: &[Chunk]) -> bool {
        let long = |chunk: usize, key: Key| {
            &chunks[chunk].unknown.long[key.second as usize..][..key.length as usize]
        };
        while let Some(tokens) = self.tokens.get_mut(self.next.0) {
            let (chunk, from) = self.next;
            if self.before.len() == chunk {
                self.before.push(self.new.len() as u32);
            }
            table.load(tokens[from..].iter().map(Token::key));
            for (at, token) in tokens.iter_mut().enumerate().skip(from) {
                if table.is_full() {
                    self.next = (chunk, at);
                    return false;
                }
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
            self.next = (chunk + 1, 0);
        }
        true
    }

    fn renumber(&self, table: &mut Table, numbers: &[u32]) {
        let numbers = &numbers[self.base as usize..];
        let keys = || self.new.iter().map(|&(_, key)| Token { key, at: 0 }.key());
        table.load(keys());
        for ((key, &id), own) in keys().zip(numbers).zip(MARK..) {
            table.renumber(key, own, id);
        }
    }
}

/// The new words that are first met in a chunk, in order: their numbers among all new ones, and their names.
#[derive(Default)]
struct Firsts {
    numbers: Vec<u32>,
    names: Names,
}

impl Chunk {
    /// Takes what the tables say of the tokens; new words are marked.
    fn take(&mut self, chunk: usize, shares: &[Share]) -> Firsts {
        let mut first = vec![0_u64; self.ids.len() / 64 + 1];
        // Of each, in the order of the tables: its table, and its number there.
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
        for (word, mut bits) in first.into_iter().enumerate() {
            while bits != 0 {
                let at = 64 * word + bits.trailing_zeros() as usize;
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

    /// Puts the vocabulary's numbers for marked ones.
    fn renumber(&mut self, numbers: &[u32]) {
        for id in &mut self.ids {
            if *id & MARK != 0 {
                *id = numbers[(*id ^ MARK) as usize];
            }
        }
        self.unknown = Unknown::default();
    }
}

/// Gives the tokens of chunks that are unknown their numbers, the next ones for words that are new.
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
    let (index, names) = match vocabulary {
        Vocabulary::Named { index, names } => (index, names),
        Vocabulary::Columns { .. } => return Err(Error::malformed(NO_TEXTS)),
    };
    let threads = threads::worth(threads, unknown);
    let mut shares: Vec<Share> = vec![];
    for table in 0..index.tables().count() {
        let take = |chunk: &mut Chunk| chunk.unknown.tokens.get_mut(table).map(std::mem::take);
        let tokens = chunks.iter_mut().map(|chunk| take(chunk).unwrap_or_default()).collect();
        shares.push(Share { tokens, ..Share::default() });
    }
    loop {
        let known = &*names;
        let mut work: Vec<_> = index.tables().zip(&mut shares).collect();
        let done = threads::each(threads, &mut work, |_, (table, share)| {
            share.number(table, known, chunks)
        });
        if done.into_iter().all(|done| done) {
            break;
        }
        index.grow(threads);
    }
    let mut new = 0;
    for share in &mut shares {
        share.base = new;
        new += share.new.len() as u32;
    }
    let firsts = threads::each(threads, chunks, |i, chunk| chunk.take(i, &shares));
    let mut numbers = vec![0; new as usize];
    let met = firsts.iter().flat_map(|first| &first.numbers);
    for (&number, id) in met.zip(names.len() as u32..) {
        numbers[number as usize] = id;
    }
    let new: Vec<Names> = firsts.into_iter().map(|first| first.names).collect();
    names.append_all(&new, threads);
    let mut work: Vec<_> = index.tables().zip(&shares).collect();
    threads::each(threads, &mut work, |_, (table, share)| share.renumber(table, &numbers));
    threads::each(threads, chunks, |_, chunk| chunk.renumber(&numbers));
    Ok(())
}
