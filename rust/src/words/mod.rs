//! Sums of a column of text: per (word, class) occurrences and documents, per class texts and occurrences.
//!
//! A store grows as texts are counted; the numbers of words are those of first occurrence, whatever the threads. Every number is
//! exact: whole, or, once a weight is fractional or a token is damped, a whole number of parts. So what is taken away again leaves
//! nothing behind.

mod accumulators;
mod add_up;
mod algebra;
mod count;
mod counted;
mod groups;
mod index;
mod matrix;
mod merge;
mod number;
mod state;
mod store;
mod texts;
mod version;
pub mod weights;

pub use add_up::{Damping, Found};
pub use count::Batch;
pub use counted::Counted;
pub use groups::Groups;
pub use index::UNKNOWN;
pub use matrix::{Layout, Matrix, Row, finite_or_nan, has_twins};
pub use state::{Numbers, Stored, StoredNumbers};
pub use store::{Cell, Count, Counts, Unit};
pub use texts::{Encoded, Given, Texts};
pub use version::Version;

use crate::error::{Error, demand};
use crate::integers::Integers;
use crate::text::{Tokeniser, Tokens};
use crate::threads;
use index::{Names, Vocabulary};
use store::Cells;

/// The sums of one column of text.
#[derive(Clone, Debug)]
pub struct Words {
    vocabulary: Vocabulary,
    cells: Cells,
    /// Per class.
    texts: Vec<Count>,
    /// Per class, over all words: occurrences and documents.
    totals: Vec<Counts>,
}

/// Cells side by side; those of the i-th word are `starts[i]` to `starts[i + 1]`.
#[derive(Debug, Default)]
pub struct Pairs {
    pub starts: Vec<i64>,
    pub classes: Vec<i32>,
    pub occurrences: Vec<f64>,
    pub documents: Vec<f64>,
}

/// The words of texts: those of text i are `offsets[i]` to `offsets[i + 1]`.
#[derive(Debug, Default)]
pub struct Bags {
    pub offsets: Vec<i64>,
    pub ids: Vec<i32>,
    pub times: Vec<i32>,
}

impl Pairs {
    fn with_room(words: usize, cells: usize) -> Self {
        let mut pairs = Pairs {
            starts: Vec::with_capacity(words + 1),
            classes: Vec::with_capacity(cells),
            occurrences: Vec::with_capacity(cells),
            documents: Vec::with_capacity(cells),
        };
        pairs.starts.push(0);
        pairs
    }

    #[inline(always)]
    fn push(&mut self, cell: &Cell, unit: Unit) {
        self.classes.push(cell.class as i32);
        self.occurrences.push(unit.value(&cell.counts[0]));
        self.documents.push(unit.value(&cell.counts[1]));
    }

    fn end_word(&mut self) {
        self.starts.push(self.classes.len() as i64);
    }
}

/// Cells that a thread takes at a time.
const PAIRS: usize = 1 << 16;

/// Texts that a thread encodes at a time.
const PIECE: usize = 256;

const NO_ROOM: &str = "there is no memory for so many columns; give fewer";

/// No sum may reach this.
const TOO_LARGE: u64 = 1 << 63;
const TOO_MANY: &str = "there are more than 2**63 - 1 occurrences or texts";

impl Words {
    /// Of the columns of a matrix, so many; 0: of words by name.
    pub fn new(n_classes: usize, n_columns: usize) -> Result<Self, Error> {
        demand(n_classes <= i32::MAX as usize, "there are more classes than an int32 can number")?;
        demand(n_columns <= 1 << 30, "n_columns must be at most 2**30")?;
        demand(Vocabulary::fits(n_columns), NO_ROOM)?;
        Ok(Words {
            vocabulary: Vocabulary::new(n_columns),
            cells: Cells::default(),
            texts: vec![Count::default(); n_classes],
            totals: vec![Default::default(); n_classes],
        })
    }

    pub fn n_classes(&self) -> usize {
        self.texts.len()
    }

    /// Words that some text has.
    pub fn n_words(&self) -> usize {
        self.cells.live
    }

    /// Numbers given out, those of forgotten words included.
    pub fn n_ids(&self) -> usize {
        self.vocabulary.len()
    }

    pub fn n_columns(&self) -> usize {
        self.vocabulary.n_columns()
    }

    /// What numbers count. It says how they are held, and nothing about what they are.
    pub fn unit(&self) -> Unit {
        self.cells.unit
    }

    /// Per class: texts.
    pub fn texts(&self) -> Result<Integers, Error> {
        Integers::of(vec![self.n_classes()], self.unit().digits(), &self.texts)
    }

    /// Per class, over all words: occurrences.
    pub fn occurrences(&self) -> Result<Integers, Error> {
        self.of_totals(0)
    }

    /// Per class, over all words: documents.
    pub fn documents(&self) -> Result<Integers, Error> {
        self.of_totals(1)
    }

    fn of_totals(&self, which: usize) -> Result<Integers, Error> {
        let counts: Vec<Count> = self.totals.iter().map(|totals| totals[which]).collect();
        Integers::of(vec![counts.len()], self.unit().digits(), &counts)
    }

    /// The number of the word of this name; a column is called `#17`.
    pub fn find_name(&self, name: &[u8]) -> Option<u32> {
        Some(self.vocabulary.find_name(name)).filter(|&id| id != UNKNOWN)
    }

    /// The number of each token of a text, or [`UNKNOWN`]; false if it is missing. `tokens` are those of the text only if their lengths
    /// are to be made equal: then those of unknown words matter too.
    pub fn find_text(
        &self,
        texts: &Texts,
        row: usize,
        tokeniser: &Tokeniser,
        tokens: &mut Tokens,
        ids: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        ids.clear();
        let there = texts.read(row, tokeniser, tokens)?;
        if there {
            self.vocabulary.find_each(tokens, ids);
        }
        Ok(there)
    }

    /// Calls `f` with the name of a word.
    pub fn with_name<R>(&self, id: u32, f: impl FnOnce(&[u8]) -> R) -> R {
        self.vocabulary.with_name(id as usize, f)
    }

    /// The name of a word.
    pub fn name(&self, id: u32) -> Vec<u8> {
        self.with_name(id, <[u8]>::to_vec)
    }

    /// A word's cells, in the order of their classes.
    pub fn cells(&self, id: u32) -> impl ExactSizeIterator<Item = Cell> + '_ {
        self.cells.of(id as usize)
    }

    /// The cells of the words that `id` numbers, `n` of them, side by side.
    pub fn pairs(&self, n: usize, id: impl Fn(usize) -> u32 + Sync, threads: usize) -> Pairs {
        let mut starts = Vec::with_capacity(n + 1);
        let (mut cells, mut cuts) = (0, vec![0]);
        for i in 0..n {
            starts.push(cells as i64);
            if cells >= cuts.len() * PAIRS {
                cuts.push(i);
            }
            cells += self.cells.n_cells(id(i) as usize);
        }
        starts.push(cells as i64);
        cuts.push(n);
        let mut pairs = Pairs {
            starts,
            classes: vec![0; cells],
            occurrences: vec![0.0; cells],
            documents: vec![0.0; cells],
        };
        let mut rest =
            (&mut pairs.classes[..], &mut pairs.occurrences[..], &mut pairs.documents[..]);
        let mut pieces = vec![];
        for ends in cuts.windows(2) {
            let size = (pairs.starts[ends[1]] - pairs.starts[ends[0]]) as usize;
            let (classes, occurrences, documents) = rest;
            let (classes, occurrences, documents) = (
                classes.split_at_mut(size),
                occurrences.split_at_mut(size),
                documents.split_at_mut(size),
            );
            pieces.push((ends[0]..ends[1], classes.0, occurrences.0, documents.0));
            rest = (classes.1, occurrences.1, documents.1);
        }
        let threads = threads::worth(threads, cells);
        threads::each(threads, &mut pieces, |_, (words, classes, occurrences, documents)| {
            let mut at = 0;
            for word in words.clone() {
                at += self.cells.write(id(word) as usize, |i, class, values| {
                    classes[at + i] = class as i32;
                    [occurrences[at + i], documents[at + i]] = values;
                });
            }
        });
        pairs
    }

    /// The same of some classes: class c is class `index[c]`, together with all others that are; -1 is left out.
    pub fn pairs_in(&self, ids: impl Iterator<Item = u32>, index: &[i64]) -> Result<Pairs, Error> {
        self.check_index(index)?;
        let ascends = index.iter().filter(|&&class| class >= 0).is_sorted();
        let (mut pairs, mut cells) = (Pairs::with_room(0, 0), vec![]);
        for id in ids {
            self.move_cells(id, index, ascends, &mut cells);
            cells.iter().for_each(|cell| pairs.push(cell, self.unit()));
            pairs.end_word();
        }
        Ok(pairs)
    }

    /// A word's cells where class c is class `index[c]`, together with all others that are; -1 is left out.
    fn move_cells(&self, id: u32, index: &[i64], ascends: bool, moved: &mut Vec<Cell>) {
        let class = |cell: &Cell| u32::try_from(index[cell.class as usize]).ok();
        moved.clear();
        moved.extend(self.cells(id).filter_map(|cell| Some(Cell { class: class(&cell)?, ..cell })));
        if !ascends {
            moved.sort_by_key(|cell| cell.class);
        }
        moved.dedup_by(|cell, first| first.absorbs(cell));
    }

    /// The words that some text of these classes has, in order; `index` as for [`Words::pairs_in`].
    pub fn having(&self, index: &[i64]) -> Result<Vec<u32>, Error> {
        self.check_index(index)?;
        let has = |id: &u32| {
            let mut classes = self.cells.classes(*id as usize);
            classes.any(|class| index[class as usize] >= 0)
        };
        Ok((0..self.n_ids() as u32).filter(has).collect())
    }

    fn check_index(&self, index: &[i64]) -> Result<(), Error> {
        demand(index.len() == self.n_classes(), "index must have one number per class")?;
        let fits = |&class: &i64| class >= -1 && class <= i64::from(i32::MAX);
        demand(index.iter().all(fits), "index must be -1, or the number of a class")
    }

    /// Of each text what `take` appends, given the numbers of its tokens, and where each text's end.
    fn of_texts<T: Send>(
        &self,
        tokeniser: &Tokeniser,
        texts: &Texts,
        threads: usize,
        take: impl Fn(&mut [u32], &mut Vec<T>) + Sync,
    ) -> Result<(Vec<i64>, Vec<T>), Error> {
        let threads = threads::worth(threads, texts.bytes());
        let pieces = texts.len().div_ceil(PIECE);
        let found = threads::try_map(threads, pieces, |i| {
            let (mut tokens, mut ids) = (Tokens::default(), vec![]);
            let (mut taken, mut ends) = (vec![], vec![]);
            for row in i * PIECE..texts.len().min((i + 1) * PIECE) {
                if self.find_text(texts, row, tokeniser, &mut tokens, &mut ids)? {
                    take(&mut ids, &mut taken);
                }
                ends.push(taken.len());
            }
            Ok::<_, Error>((taken, ends))
        })?;
        let (mut offsets, mut all) = (vec![0], vec![]);
        for (taken, ends) in found {
            offsets.extend(ends.iter().map(|end| (all.len() + end) as i64));
            all.extend(taken);
        }
        Ok((offsets, all))
    }

    /// The known words of each text in order, each once, how often it has them, and where each text's end.
    pub fn bags(
        &self,
        tokeniser: &Tokeniser,
        texts: &Texts,
        threads: usize,
    ) -> Result<Bags, Error> {
        let (offsets, words) = self.of_texts(tokeniser, texts, threads, |ids, words| {
            ids.sort_unstable();
            let known = ids.chunk_by(|a, b| a == b).filter(|same| same[0] != UNKNOWN);
            words.extend(known.map(|same| (same[0] as i32, same.len() as i32)));
        })?;
        let (ids, times) = words.into_iter().unzip();
        Ok(Bags { offsets, ids, times })
    }

    /// The tokens of each text as numbers of words, -1 for words that are not there, and where each text's end.
    pub fn encode(
        &self,
        tokeniser: &Tokeniser,
        texts: &Texts,
        threads: usize,
    ) -> Result<(Vec<i64>, Vec<i32>), Error> {
        self.of_texts(tokeniser, texts, threads, |ids, codes| {
            // UNKNOWN is -1 in two's complement.
            codes.extend(ids.iter().map(|&id| id as i32));
        })
    }

    /// Has numbers for words of these names too.
    pub fn add_names<'n>(&mut self, names: impl Iterator<Item = &'n [u8]>) -> Result<(), Error> {
        for name in names {
            self.vocabulary.add_name(name)?;
        }
        self.cells.grow(self.vocabulary.len());
        Ok(())
    }

    /// The numbers of the words that some text has, in the order of their names' bytes.
    pub fn in_order(&self) -> Vec<u32> {
        self.ordered(self.vocabulary.names())
    }

    /// The same, given the names of all.
    fn ordered(&self, names: Option<&Names>) -> Vec<u32> {
        let live = (0..self.n_ids()).filter(|&id| self.cells.is_live(id));
        match names {
            Some(names) => {
                // The first bytes decide nearly always; the rest is looked up when they do not.
                let head = |id: usize| {
                    let name = names.get(id);
                    let mut bytes = [0; 8];
                    let shown = name.len().min(8);
                    bytes[..shown].copy_from_slice(&name[..shown]);
                    (u64::from_be_bytes(bytes), id as u32)
                };
                let mut ids: Vec<(u64, u32)> = live.map(head).collect();
                ids.sort_unstable_by(|a, b| {
                    let rest = || names.get(a.1 as usize).cmp(names.get(b.1 as usize));
                    a.0.cmp(&b.0).then_with(rest)
                });
                ids.into_iter().map(|(_, id)| id).collect()
            }
            None => {
                let mut ids: Vec<u32> = live.map(|id| id as u32).collect();
                ids.sort_by_cached_key(|&id| self.name(id));
                ids
            }
        }
    }

    /// Occurrences of all words in all classes, rounded up.
    fn total(&self) -> u64 {
        rounded_up(self.unit(), self.totals.iter().map(|totals| totals[0]))
    }

    fn n_texts(&self) -> u64 {
        rounded_up(self.unit(), self.texts.iter().copied())
    }

    /// Without the words from this number on, which no text has.
    fn truncate(&mut self, n_ids: usize) -> Result<(), Error> {
        if self.n_ids() <= n_ids {
            return Ok(());
        }
        let mut vocabulary = self.vocabulary.emptied();
        for id in 0..n_ids {
            vocabulary.add_from(&self.vocabulary, id)?;
        }
        self.vocabulary = vocabulary;
        self.cells.truncate(n_ids);
        Ok(())
    }

    /// Counts in a finer unit.
    fn make_finer(&mut self, unit: Unit) {
        let old = self.unit();
        if unit > old {
            self.cells.make_parts();
            for count in self.texts.iter_mut().chain(self.totals.as_flattened_mut()) {
                *count = old.to(unit, *count);
            }
        }
    }
}

fn sum(counts: impl Iterator<Item = Count>) -> Count {
    counts.fold(Count::default(), |mut sum, count| {
        sum.merge(&count);
        sum
    })
}

/// A sum in ones, rounded up.
fn rounded_up(unit: Unit, counts: impl Iterator<Item = Count>) -> u64 {
    let (whole, exact) = unit.whole(&sum(counts));
    whole + u64::from(!exact)
}
