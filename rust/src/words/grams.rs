//! Pairs of words that stand side by side, known by the numbers of the two: no text is joined, hashed or compared.
//!
//! Texts are read in chunks, whose single words are numbered first, by themselves: as units. Pairs of units are then shared out by
//! hash. Each thread takes a table, and the pairs of all chunks that belong to it, in order: a table is small enough for the cache.
//! Last, each thread takes a chunk, and what is first met there gets the numbers that come next. Names are made when they are
//! asked for.

use super::count::Chunk;
use super::index::{Lookup, MOST, Names, TOO_MANY, UNKNOWN, Vocabulary, fits};
use crate::error::{Error, demand};
use crate::numbering::{SEED, STEP, mix};
use crate::text::{Tokeniser, Tokens};
use crate::threads;

/// Tables that pairs are shared out among.
const TABLES: usize = 64;

/// Pairs that are looked up together.
const BLOCK: usize = 64;

/// Marks a pair where it is first met.
const FIRST: u64 = 1 << 63;

/// The words of texts and pairs of them.
#[derive(Clone, Debug)]
pub struct Grams {
    /// Whether single words of texts are words.
    singly: bool,
    pub(super) units: Vocabulary,
    /// By unit: its number as a word, or [`UNKNOWN`].
    words: Vec<u32>,
    tables: Vec<Table>,
    /// By word: its two units, or one and [`UNKNOWN`].
    all: Vec<[u32; 2]>,
    /// Words that are units.
    singles: usize,
}

/// Some of the pairs.
#[derive(Clone, Debug, Default)]
struct Table {
    /// Open addressing: the two units of a pair, and its place in `ids` + 1. All zeros is an empty slot.
    slots: Vec<[u32; 3]>,
    /// The pairs' numbers, in the order in which they came.
    ids: Vec<u32>,
}

#[inline(always)]
fn place(pair: u64) -> u64 {
    mix(pair ^ SEED, STEP)
}

/// The number of the table that has a pair.
#[inline(always)]
fn table(pair: u64) -> usize {
    (place(pair) >> 58) as usize
}

#[inline(always)]
fn pair(first: u32, second: u32) -> u64 {
    u64::from(second) << 32 | u64::from(first)
}

/// The pairs of a text.
#[inline(always)]
fn pairs(units: &[u32]) -> impl Iterator<Item = u64> {
    units.windows(2).map(|two| pair(two[0], two[1]))
}

/// The two units of a name that has one space.
fn halves(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = name.iter().position(|&byte| byte == b' ')?;
    let (first, second) = (&name[..space], &name[space + 1..]);
    (!second.contains(&b' ')).then_some((first, second))
}

impl Table {
    const FEWEST: usize = 16;

    /// Where a pair is, or the empty slot where it should be.
    #[inline(always)]
    fn slot(&self, pair: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = place(pair) as usize & mask;
        loop {
            let [first, second, number] = self.slots[at];
            if number == 0 || self::pair(first, second) == pair {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// A pair's place among the table's own, marked if it is new.
    #[inline(always)]
    fn number(&mut self, pair: u64) -> u64 {
        self.reserve(1);
        let at = self.slot(pair);
        let own = self.ids.len() as u64;
        match self.slots[at][2] {
            0 => {
                self.slots[at] = [pair as u32, (pair >> 32) as u32, own as u32 + 1];
                self.ids.push(UNKNOWN);
                own | FIRST
            }
            number => u64::from(number - 1),
        }
    }

    /// The slot where a pair should be.
    #[inline(always)]
    fn first(&self, pair: u64) -> [u32; 3] {
        let at = place(pair) as usize & self.slots.len().wrapping_sub(1);
        self.slots.get(at).copied().unwrap_or_default()
    }

    /// A pair's number, or [`UNKNOWN`].
    #[inline(always)]
    fn find(&self, pair: u64) -> u32 {
        if self.slots.is_empty() {
            return UNKNOWN;
        }
        match self.slots[self.slot(pair)][2] {
            0 => UNKNOWN,
            number => self.ids[number as usize - 1],
        }
    }

    /// Room for so many more pairs.
    fn reserve(&mut self, more: usize) {
        while !fits(self.ids.len() + more, self.slots.len()) {
            self.grow(self.ids.len() + more);
        }
    }

    /// Makes the slots more, enough for so many pairs.
    #[cold]
    fn grow(&mut self, pairs: usize) {
        let mut size = Table::FEWEST.max(2 * self.slots.len());
        while !fits(pairs, size) {
            size *= 2;
        }
        let old = std::mem::replace(&mut self.slots, vec![[0; 3]; size]);
        for own in old.into_iter().filter(|own| own[2] != 0) {
            let at = self.slot(pair(own[0], own[1]));
            self.slots[at] = own;
        }
    }
}

/// The pairs of a chunk by table, in order.
struct Shared {
    pairs: Vec<u64>,
    starts: [usize; TABLES + 1],
    /// One more than the greatest unit.
    units: usize,
}

impl Shared {
    fn new(chunk: &Chunk) -> Self {
        let all = || chunk.texts().flat_map(|(_, units)| pairs(units));
        let mut starts = [0; TABLES + 1];
        all().for_each(|pair| starts[table(pair) + 1] += 1);
        for table in 0..TABLES {
            starts[table + 1] += starts[table];
        }
        let (mut next, mut shared) = (starts, vec![0; starts[TABLES]]);
        for pair in all() {
            let place = &mut next[table(pair)];
            shared[*place] = pair;
            *place += 1;
        }
        let units = chunk.ids.iter().max().map_or(0, |&unit| unit as usize + 1);
        Shared { pairs: shared, starts, units }
    }

    /// The pairs of each table.
    fn split(&mut self) -> impl Iterator<Item = &mut [u64]> {
        let mut rest = self.pairs.as_mut_slice();
        self.starts.windows(2).map(move |ends| {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(ends[1] - ends[0]);
            rest = others;
            own
        })
    }
}

/// Numbers that are known, and room for those of what is first met in a chunk.
struct Numbers<'a> {
    known: &'a [u32],
    new: &'a mut [u32],
    /// How many of the new ones were met.
    met: usize,
}

/// What becomes of a chunk.
struct Job<'a> {
    chunk: &'a mut Chunk,
    shared: Shared,
    /// Of single words, if they are words; and of the pairs of each table.
    units: Option<Numbers<'a>>,
    pairs: Vec<Numbers<'a>>,
    /// The unit that comes next.
    unit: u32,
    /// The number that comes next, and the words that are first met here.
    next: u32,
    new: &'a mut [[u32; 2]],
}

/// A token whose word is first met elsewhere in the same texts: its place, its table, and its place there.
struct Later {
    at: u32,
    table: u32,
    own: u32,
}

impl Numbers<'_> {
    /// Gives a new word the number that comes next.
    #[inline(always)]
    fn take(
        &mut self,
        words: &mut std::slice::IterMut<[u32; 2]>,
        word: [u32; 2],
        next: &mut u32,
    ) -> u32 {
        if let (Some(number), Some(place)) = (self.new.get_mut(self.met), words.next()) {
            (*number, *place) = (*next, word);
        }
        self.met += 1;
        *next += 1;
        *next - 1
    }
}

impl Job<'_> {
    /// Gives tokens their numbers but for those whose words are first met elsewhere.
    fn number(&mut self) -> Vec<Later> {
        let mut later = vec![];
        let (mut new, mut next) = (self.new.iter_mut(), self.next);
        let mut ids = Vec::with_capacity(2 * self.chunk.ids.len());
        let mut ends = vec![];
        let mut places = self.shared.starts;
        for (_, text) in self.chunk.texts() {
            if let Some(numbers) = &mut self.units {
                for &unit in text {
                    let id = match numbers.known.get(unit as usize) {
                        Some(&id) => id,
                        None if unit == self.unit => {
                            self.unit += 1;
                            numbers.take(&mut new, [unit, UNKNOWN], &mut next)
                        }
                        None => {
                            let at = ids.len() as u32;
                            later.push(Later { at, table: TABLES as u32, own: unit });
                            UNKNOWN
                        }
                    };
                    ids.push(id);
                }
            }
            for two in text.windows(2) {
                let table = table(pair(two[0], two[1]));
                let found = self.shared.pairs[places[table]];
                places[table] += 1;
                let (numbers, own) = (&mut self.pairs[table], found as u32);
                let id = if found & FIRST != 0 {
                    numbers.take(&mut new, [two[0], two[1]], &mut next)
                } else if let Some(&id) = numbers.known.get(own as usize) {
                    id
                } else {
                    later.push(Later { at: ids.len() as u32, table: table as u32, own });
                    UNKNOWN
                };
                ids.push(id);
            }
            ends.push(ids.len());
        }
        self.chunk.replace(ids, ends);
        later
    }
}

/// `all` in pieces of these lengths.
fn cut<'a, T>(mut all: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut pieces = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (piece, rest) = all.split_at_mut(length);
        pieces.push(piece);
        all = rest;
    }
    pieces
}

impl Grams {
    /// Without words; `singly`: those of texts are single words and pairs, not pairs alone.
    pub fn new(singly: bool) -> Self {
        Grams {
            singly,
            units: Vocabulary::new(0),
            words: vec![],
            tables: vec![Table::default(); TABLES],
            all: vec![],
            singles: 0,
        }
    }

    pub fn emptied(&self) -> Self {
        Grams::new(self.singly)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether texts that are read as units have the words that a tokeniser finds.
    #[inline(always)]
    pub fn finds(&self, tokeniser: &Tokeniser) -> bool {
        tokeniser.makes_pairs() && self.singly == (tokeniser.settings().shortest == 1)
    }

    /// Whether new words can be numbered in the order of texts: units come when the words do.
    pub fn numbers(&self, tokeniser: &Tokeniser) -> bool {
        self.finds(tokeniser) && (!self.singly || self.singles == self.units.len())
    }

    fn unit_names(&self) -> &Names {
        match &self.units {
            Vocabulary::Named { names, .. } => names,
            _ => unreachable!("units have names"),
        }
    }

    /// Calls `f` with a word's name.
    pub fn with_name<R>(&self, id: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        let ([first, second], units) = (self.all[id], self.unit_names());
        let first = units.get(first as usize);
        match second {
            UNKNOWN => f(first),
            second => f(&[first, b" ", units.get(second as usize)].concat()),
        }
    }

    /// Another's words: the number of that unit here, if it was asked for before.
    fn unit_of(&self, unit: u32, other: &Grams, units: &mut Vec<u32>) -> u32 {
        units.resize(other.units.len(), UNKNOWN);
        let number = &mut units[unit as usize];
        if *number == UNKNOWN {
            *number = self.units.find_name(other.unit_names().get(unit as usize));
        }
        *number
    }

    /// The number of another's word, or [`UNKNOWN`]. `units` has those of its units that were asked for.
    pub fn find_from(&self, other: &Grams, id: usize, units: &mut Vec<u32>) -> u32 {
        match other.all[id] {
            [unit, UNKNOWN] => {
                let unit = self.unit_of(unit, other, units);
                self.words.get(unit as usize).copied().unwrap_or(UNKNOWN)
            }
            [first, second] => {
                let first = self.unit_of(first, other, units);
                let pair = pair(first, self.unit_of(second, other, units));
                self.tables[table(pair)].find(pair)
            }
        }
    }

    /// The same, a new one if it is new.
    pub fn add_from(
        &mut self,
        other: &Grams,
        id: usize,
        units: &mut Vec<u32>,
    ) -> Result<u32, Error> {
        let word = other.all[id];
        for unit in word.into_iter().filter(|&unit| unit != UNKNOWN) {
            if self.unit_of(unit, other, units) == UNKNOWN {
                let name = other.unit_names().get(unit as usize);
                units[unit as usize] = self.units.add_name(name)?;
            }
        }
        self.add(word.map(|unit| units.get(unit as usize).copied().unwrap_or(UNKNOWN)))
    }

    /// The number of the word of these units, a new one if it is new.
    fn add(&mut self, word: [u32; 2]) -> Result<u32, Error> {
        demand(self.len() < MOST, TOO_MANY)?;
        self.words.resize(self.units.len(), UNKNOWN);
        let number = match word {
            [unit, UNKNOWN] => &mut self.words[unit as usize],
            [first, second] => {
                let table = &mut self.tables[table(pair(first, second))];
                let own = table.number(pair(first, second)) & !FIRST;
                &mut table.ids[own as usize]
            }
        };
        if *number == UNKNOWN {
            *number = self.all.len() as u32;
            self.singles += usize::from(word[1] == UNKNOWN);
            self.all.push(word);
        }
        Ok(*number)
    }

    /// The names of all words.
    pub fn names(&self) -> Names {
        let (mut names, units) = (Names::default(), self.unit_names());
        for &[first, second] in &self.all {
            let first = units.get(first as usize);
            if second == UNKNOWN {
                names.push(first);
            } else {
                names.bytes.extend_from_slice(first);
                names.bytes.push(b' ');
                names.push(units.get(second as usize));
            }
        }
        names
    }

    /// The same words, found by their names.
    pub fn named(&self) -> Vocabulary {
        let names = self.names();
        Vocabulary::Named { index: Lookup::of(&names), names }
    }

    /// The number of the word of this name, or [`UNKNOWN`].
    pub fn find_name(&self, name: &[u8]) -> u32 {
        let unit = |name| self.units.find_name(name);
        match halves(name) {
            Some((first, second)) => {
                let pair = pair(unit(first), unit(second));
                self.tables[table(pair)].find(pair)
            }
            None => self.words.get(unit(name) as usize).copied().unwrap_or(UNKNOWN),
        }
    }

    /// The same, a new one if it is new.
    pub fn add_name(&mut self, name: &[u8]) -> Result<u32, Error> {
        let word = match halves(name) {
            Some((first, second)) => [self.units.add_name(first)?, self.units.add_name(second)?],
            None => [self.units.add_name(name)?, UNKNOWN],
        };
        self.add(word)
    }

    /// Appends the number of each word of a text, then of each pair; whether one of them is [`UNKNOWN`].
    pub fn find_each(&self, tokens: &Tokens, ids: &mut Vec<u32>) -> bool {
        let (start, mut units) = (ids.len(), vec![]);
        self.units.find_each(tokens, &mut units);
        if self.singly {
            let word = |&unit: &u32| self.words.get(unit as usize).copied().unwrap_or(UNKNOWN);
            ids.extend(units.iter().map(word));
        }
        let pairs: Vec<u64> = pairs(&units).collect();
        pairs.chunks(BLOCK).for_each(|pairs| self.find_pairs(pairs, ids));
        ids[start..].contains(&UNKNOWN)
    }

    /// Appends the number of each pair. Nothing waits for the slots that are loaded first, so that all are under way together.
    fn find_pairs(&self, pairs: &[u64], ids: &mut Vec<u32>) {
        let mut slots = [[0; 3]; BLOCK];
        for (slot, &pair) in slots.iter_mut().zip(pairs) {
            *slot = self.tables[table(pair)].first(pair);
        }
        ids.extend(pairs.iter().zip(slots).map(|(&pair, slot)| match slot {
            [_, _, 0] => UNKNOWN,
            [first, second, own] if self::pair(first, second) == pair => {
                self.tables[table(pair)].ids[own as usize - 1]
            }
            _ => self.tables[table(pair)].find(pair),
        }));
    }

    /// Turns chunks of units into chunks of words. What is new gets the next numbers.
    pub(super) fn number(&mut self, chunks: &mut [Chunk], threads: usize) -> Result<(), Error> {
        let tokens: usize = chunks.iter().map(|chunk| 2 * chunk.ids.len()).sum();
        demand(tokens <= MOST - self.len(), TOO_MANY)?;
        let threads = threads::worth(threads, tokens);
        let mut shared = threads::map(threads, chunks.len(), |i| Shared::new(&chunks[i]));
        let new = self.share(&mut shared, threads);
        let later = self.assign(chunks, shared, &new, threads);
        let mut work: Vec<_> = chunks.iter_mut().zip(later).collect();
        let (words, tables) = (&self.words, &self.tables);
        threads::each(threads, &mut work, |_, (chunk, later)| {
            for &Later { at, table, own } in later.iter() {
                let ids = tables.get(table as usize).map_or(words, |table| &table.ids);
                chunk.ids[at as usize] = ids[own as usize];
            }
        });
        Ok(())
    }

    /// Looks pairs up in their tables. Gives by table how many are first met in each chunk.
    fn share(&mut self, shared: &mut [Shared], threads: usize) -> Vec<Vec<usize>> {
        let mut work: Vec<(&mut Table, Vec<&mut [u64]>)> =
            self.tables.iter_mut().map(|table| (table, vec![])).collect();
        for chunk in shared {
            for ((_, all), own) in work.iter_mut().zip(chunk.split()) {
                all.push(own);
            }
        }
        threads::each(threads, &mut work, |_, (table, chunks)| {
            // Every other pair is new or so.
            table.reserve(chunks.iter().map(|pairs| pairs.len()).sum::<usize>() / 2);
            let number = |pairs: &mut &mut [u64]| {
                let before = table.ids.len();
                pairs.iter_mut().for_each(|pair| *pair = table.number(*pair));
                table.ids.len() - before
            };
            chunks.iter_mut().map(number).collect()
        })
    }

    /// Gives tokens their numbers but for those it returns.
    fn assign(
        &mut self,
        chunks: &mut [Chunk],
        shared: Vec<Shared>,
        new: &[Vec<usize>],
        threads: usize,
    ) -> Vec<Vec<Later>> {
        let (known, mut units) = (self.words.len(), vec![]);
        self.words.resize(self.units.len(), UNKNOWN);
        let mut unit = known;
        for shared in &shared {
            units.push(shared.units.max(unit) - unit);
            unit = shared.units.max(unit);
        }
        let pairs = |chunk: usize| new.iter().map(|lengths| lengths[chunk]).sum::<usize>();
        let singles = |chunk: usize| if self.singly { units[chunk] } else { 0 };
        let lengths: Vec<usize> = (0..chunks.len()).map(|i| singles(i) + pairs(i)).collect();
        let mut next = self.all.len();
        self.singles += (0..chunks.len()).map(singles).sum::<usize>();
        self.all.resize(next + lengths.iter().sum::<usize>(), [UNKNOWN; 2]);
        let (known_words, new_words) = self.words.split_at_mut(known);
        let words = cut(new_words, &units);
        let all = cut(&mut self.all[next..], &lengths);
        let mut jobs: Vec<Job> = vec![];
        unit = known;
        for (((chunk, shared), words), new) in chunks.iter_mut().zip(shared).zip(words).zip(all) {
            let (of_unit, of_word) = (unit as u32, next as u32);
            unit += words.len();
            next += new.len();
            let units = Numbers { known: &*known_words, new: words, met: 0 };
            jobs.push(Job {
                chunk,
                shared,
                units: self.singly.then_some(units),
                pairs: Vec::with_capacity(TABLES),
                unit: of_unit,
                next: of_word,
                new,
            });
        }
        for (table, lengths) in self.tables.iter_mut().zip(new) {
            let known = table.ids.len() - lengths.iter().sum::<usize>();
            let (known, new) = table.ids.split_at_mut(known);
            for (job, new) in jobs.iter_mut().zip(cut(new, lengths)) {
                job.pairs.push(Numbers { known: &*known, new, met: 0 });
            }
        }
        threads::each(threads, &mut jobs, |_, job| job.number())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, Texts, Words};
    use super::*;
    use crate::classes::{Rows, Weights};
    use crate::text::{Pattern, Settings};

    fn tokeniser(shortest: u8) -> Tokeniser {
        Tokeniser::new(Settings {
            pattern: Pattern::Word,
            lowercase: true,
            characters: false,
            shortest,
            longest: 2,
            stop_words: vec![b"no".to_vec()],
            only: vec![],
            log: false,
            length: false,
        })
        .unwrap()
    }

    /// Texts of a few words, some of them without a pair.
    fn texts() -> Vec<String> {
        let word = |i: usize| ["aa", "bbb", "no", "a word of", "c"][i % 5].to_string();
        (0..200).map(|i| (0..i % 7).map(|j| word(i * i + 3 * j) + " ").collect()).collect()
    }

    fn count(words: &mut Words, tokeniser: &Tokeniser, texts: &[String], threads: usize) {
        let classes: Vec<i32> = (0..texts.len() as i32).map(|i| i % 3 - i % 2).collect();
        let texts = Texts::Borrowed(texts.iter().map(|text| Some(text.as_bytes())).collect());
        let rows = Rows::new(&classes, 3, Weights::Ones).unwrap();
        words.count(Batch { tokeniser, texts: &texts, rows, more: None }, threads, false).unwrap();
    }

    #[test]
    fn words_are_those_found_by_their_names() {
        for shortest in [1, 2] {
            let (tokeniser, texts) = (tokeniser(shortest), texts());
            let (mut pairs, mut names) = (Words::new(3, 0).unwrap(), Words::new(3, 0).unwrap());
            names.add_names([&b"one of three words"[..]].into_iter()).unwrap();
            for (texts, threads) in texts.chunks(70).zip([1, 2, 3]) {
                count(&mut pairs, &tokeniser, texts, threads);
                count(&mut names, &tokeniser, texts, threads);
            }
            assert!(matches!(pairs.vocabulary, Vocabulary::Paired(_)));
            assert!(matches!(names.vocabulary, Vocabulary::Named { .. }));
            assert_eq!(pairs.n_ids() + 1, names.n_ids());
            for id in 0..pairs.n_ids() as u32 {
                assert_eq!(pairs.name(id), names.name(id + 1));
                assert!(pairs.cells(id).eq(names.cells(id + 1)));
                assert_eq!(pairs.find_name(&pairs.name(id)), Some(id));
            }
            assert!(pairs.same(&names) && pairs.state() == names.state());
            assert!(pairs.plus(&names).unwrap().same(&names.plus(&pairs).unwrap()));
            assert!(Words::new(3, 0).unwrap().plus(&pairs).unwrap().same(&pairs));
        }
    }

    #[test]
    fn any_name_can_be_added() {
        let mut grams = Grams::new(true);
        let names = ["", "aa", "bb aa", " ", "  ", " aa", "aa ", "aa bb cc", "aa bb"];
        for (id, name) in names.iter().enumerate() {
            assert_eq!(grams.find_name(name.as_bytes()), UNKNOWN);
            assert_eq!(grams.add_name(name.as_bytes()).unwrap(), id as u32);
        }
        for (id, name) in names.iter().enumerate() {
            assert_eq!(grams.add_name(name.as_bytes()).unwrap(), id as u32);
            grams.with_name(id, |own| assert_eq!(own, name.as_bytes()));
            assert_eq!(grams.named().find_name(name.as_bytes()), id as u32);
        }
        assert_eq!(grams.find_name(b"bb"), UNKNOWN);
        // A unit that is no word yet would be numbered where it was not met.
        assert!(!grams.numbers(&tokeniser(1)) && grams.finds(&tokeniser(1)));
        let mut vocabulary = Vocabulary::Paired(Box::new(grams));
        assert!(!vocabulary.begin(&tokeniser(1)));
        assert_eq!(vocabulary.find_name(b"aa bb"), 8);
    }
}
