//! Sums of a column of text: per (word, class) occurrences and documents, per class texts and occurrences.
//!
//! A store grows as texts are counted. Words are numbered in the order in which they first occur, whatever the number of threads.
//! Every count is exact: a whole number, or, once a weight is fractional or a token is damped, a whole number of parts. So taking
//! texts away again leaves nothing behind.

mod accumulators;
mod algebra;
mod class_sums;
mod count;
mod groups;
mod index;
mod matrix;
mod merge;
mod number;
mod state;
mod store;
mod text_rows;
mod texts;
mod version;
pub mod weights;
mod weights_by_count;

pub use count::Batch;
pub use groups::Groups;
pub use index::UNKNOWN;
pub use matrix::{Layout, Matrix, Row, finite_or_nan, has_twins};
pub use state::{State, StoredCounts};
pub use store::{Cell, Count, Counts, Unit};
pub use text_rows::Damping;
pub use texts::{Encoded, Texts, TokenLists};
pub use version::Version;
pub use weights_by_count::WeightsByCount;

use crate::error::{Error, demand};
use crate::integers::Integers;
use crate::text::{Tokeniser, Tokens};
use crate::threads;
use index::Vocabulary;
use store::{Cells, DOCUMENTS, OCCURRENCES};

/// The sums of one column of text.
#[derive(Clone, Debug)]
pub struct Words {
    /// The words and their numbers (ids).
    vocabulary: Vocabulary,
    /// The counts of each word in each class that has it.
    cells: Cells,
    /// Texts per class, in the unit of `cells`.
    texts: Vec<Count>,
    /// Per class, over all words: occurrences and documents, in the unit of `cells`.
    totals: Vec<Counts>,
}

/// The cells of words as columns of numbers; those of the i-th word are `starts[i]` to `starts[i + 1]`.
#[derive(Debug)]
pub struct Pairs {
    pub starts: Vec<i64>,
    /// The class of each cell.
    pub classes: Vec<i32>,
    /// How often the texts of the cell's class have its word, weights included.
    pub occurrences: Vec<f64>,
    /// How many texts of the cell's class have its word, weights included.
    pub documents: Vec<f64>,
}

/// The words of texts: those of text i are `offsets[i]` to `offsets[i + 1]`.
#[derive(Debug, Default)]
pub struct Bags {
    pub offsets: Vec<i64>,
    /// The numbers of the known words of each text, each once and in order.
    pub ids: Vec<i32>,
    /// How often the text has each word.
    pub times: Vec<i32>,
}

impl Pairs {
    /// No words yet, with room for `n_words` words and `n_cells` cells.
    fn with_room(n_words: usize, n_cells: usize) -> Self {
        let mut pairs = Pairs {
            starts: Vec::with_capacity(n_words + 1),
            classes: Vec::with_capacity(n_cells),
            occurrences: Vec::with_capacity(n_cells),
            documents: Vec::with_capacity(n_cells),
        };
        pairs.starts.push(0);
        pairs
    }

    /// Appends the class, the occurrences and the documents of a cell of the current word; `unit` is that of the cell's counts.
    #[inline(always)]
    fn push(&mut self, cell: &Cell, unit: Unit) {
        self.classes.push(cell.class as i32);
        self.occurrences.push(unit.ones(&cell.counts[OCCURRENCES]));
        self.documents.push(unit.ones(&cell.counts[DOCUMENTS]));
    }

    /// Ends the current word: `starts` gets where the cells of the next one begin.
    fn end_word(&mut self) {
        self.starts.push(self.classes.len() as i64);
    }
}

/// Texts that a thread reads at a time. Encoding 20 Newsgroups took 112 ms with 16, 110 with 256 and 122 with 4,096.
const PIECE: usize = 256;

const NO_ROOM: &str = "there is no memory for so many columns; give fewer";

/// No sum may reach this.
const TOO_LARGE: u64 = 1 << 63;
const TOO_MANY: &str = "there are more than 2**63 - 1 occurrences or texts";

impl Words {
    /// An empty store for texts of `n_classes` classes. Its words are the columns of a matrix, `n_columns` of them, or words by
    /// name if that is 0.
    pub fn new(n_classes: usize, n_columns: usize) -> Result<Self, Error> {
        demand(n_classes <= i32::MAX as usize, "there are more classes than an int32 can number")?;
        demand(n_columns <= 1 << 30, "n_columns must be at most 2**30")?;
        demand(Vocabulary::fits(n_columns), NO_ROOM)?;
        Ok(Words {
            vocabulary: Vocabulary::new(n_columns), // the words and their numbers
            cells: Cells::default(),                // counts of each word in each class
            texts: vec![Count::default(); n_classes], // number of texts, `[class]`
            totals: vec![Default::default(); n_classes], // occurrences and documents of all words, `[class]`
        })
    }

    /// How many classes there are.
    pub fn n_classes(&self) -> usize {
        self.texts.len()
    }

    /// Words that some text has.
    pub fn n_words(&self) -> usize {
        self.cells.n_live
    }

    /// How many words have a number, including words that were forgotten.
    pub fn n_ids(&self) -> usize {
        self.vocabulary.len()
    }

    /// How many columns the matrix has; 0 if words have names.
    pub fn n_columns(&self) -> usize {
        self.vocabulary.n_columns()
    }

    /// The unit in which counts are held. Stores with equal counts may hold them in different units.
    pub fn unit(&self) -> Unit {
        self.cells.unit
    }

    /// How many texts each class has, weights included, `[class]`.
    pub fn texts(&self) -> Result<Integers, Error> {
        Integers::of_wide(vec![self.n_classes()], self.unit().digits(), &self.texts)
    }

    /// The occurrences of all words together in each class, `[class]`.
    pub fn occurrences(&self) -> Result<Integers, Error> {
        self.totals(OCCURRENCES)
    }

    /// The documents of all words together in each class, `[class]`.
    pub fn documents(&self) -> Result<Integers, Error> {
        self.totals(DOCUMENTS)
    }

    /// The sum over all words of [`OCCURRENCES`] or [`DOCUMENTS`] (`which` of both), `[class]`, in the unit of the store.
    fn totals(&self, which: usize) -> Result<Integers, Error> {
        let counts: Vec<Count> = self.totals.iter().map(|totals| totals[which]).collect();
        Integers::of_wide(vec![counts.len()], self.unit().digits(), &counts)
    }

    /// The number of the word of this name; none if it has no number. A column is called `#17`.
    pub fn find_name(&self, name: &[u8]) -> Option<u32> {
        Some(self.vocabulary.find_name(name)).filter(|&id| id != UNKNOWN)
    }

    /// Cuts the text of a row into tokens, writes these to `tokens` and the number of each token's word, or [`UNKNOWN`], to
    /// `ids`; returns false if the text is missing. `tokeniser` says how texts are cut.
    pub fn find_text(
        &self,
        texts: &Texts,
        row: usize,
        tokeniser: &Tokeniser,
        tokens: &mut Tokens,
        ids: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        ids.clear();
        let has_text = texts.read(row, tokeniser, tokens)?;
        if has_text {
            self.vocabulary.find_each(tokens, ids);
        }
        Ok(has_text)
    }

    /// Calls `f` with the name of the word with the number `id`, in bytes, and returns its answer.
    pub fn with_name<R>(&self, id: u32, f: impl FnOnce(&[u8]) -> R) -> R {
        self.vocabulary.with_name(id as usize, f)
    }

    /// The name of the word with this number, in bytes.
    pub fn name(&self, id: u32) -> Vec<u8> {
        self.with_name(id, <[u8]>::to_vec)
    }

    /// The cells of the word with this number, in the order of their classes.
    pub fn cells(&self, id: u32) -> impl ExactSizeIterator<Item = Cell> + '_ {
        self.cells.of(id as usize)
    }

    /// The cells of the words with the numbers `ids`, in the order of `ids`, read on so many threads. With an `index`, class c
    /// becomes class `index[c]`: cells of classes that become one are added up, and those of class -1 left out.
    pub fn pairs(
        &self,
        ids: &[u32],
        index: Option<&[i64]>,
        threads: usize,
    ) -> Result<Pairs, Error> {
        index.map_or(Ok(()), |index| self.check_index(index))?;
        let new_classes = index.map(new_classes); // of each class, `[class][new class]`
        // How many cells the words with these numbers have.
        let n_cells =
            |ids: &[u32]| ids.iter().map(|&id| self.cells.n_cells(id as usize)).sum::<usize>();
        let threads = threads::worth(threads, n_cells(ids));
        // The cells of the words `ids[range]`, range after range.
        let pieces = threads::ranges(threads, ids.len(), ids.len().div_ceil(threads), |range| {
            let ids = &ids[range];
            let mut pairs = Pairs::with_room(ids.len(), n_cells(ids));
            let mut moved_cells = vec![]; // of one word, in their new classes
            for &id in ids {
                match &new_classes {
                    None => self.cells(id).for_each(|cell| pairs.push(&cell, self.unit())),
                    Some(new_classes) => {
                        self.cells_in(id, new_classes, &mut moved_cells);
                        moved_cells.iter().for_each(|cell| pairs.push(cell, self.unit()));
                    }
                }
                pairs.end_word();
            }
            pairs
        });
        let mut pieces = pieces.into_iter(); // the cells of the first one get those of later ones appended
        let mut pairs = pieces.next().unwrap_or_else(|| Pairs::with_room(0, 0));
        for piece in pieces {
            let cells_before = pairs.classes.len() as i64; // of earlier pieces
            pairs.starts.extend(piece.starts[1..].iter().map(|start| cells_before + start));
            pairs.classes.extend(piece.classes);
            pairs.occurrences.extend(piece.occurrences);
            pairs.documents.extend(piece.documents);
        }
        Ok(pairs)
    }

    /// Writes the cells of the word with the number `id` to `cells`, in the order of classes, as if class c counted in each of
    /// the classes `new_classes[c]` instead. Cells of classes that become one are added up.
    fn cells_in(&self, id: u32, new_classes: &[Vec<u32>], cells: &mut Vec<Cell>) {
        cells.clear();
        for cell in self.cells(id) {
            let cell_classes = new_classes[cell.class as usize].iter(); // that the cell's class becomes
            cells.extend(cell_classes.map(|&class| Cell { class, ..cell }));
        }
        if !cells.is_sorted_by_key(|cell| cell.class) {
            cells.sort_by_key(|cell| cell.class);
        }
        cells.dedup_by(|cell, first| first.absorbs(cell));
    }

    /// The numbers, in order, of the words that occur in some class c for which `index[c]`, `[class]`, is not -1.
    pub fn having(&self, index: &[i64]) -> Result<Vec<u32>, Error> {
        self.check_index(index)?;
        // Whether the word has a cell in such a class.
        let has_class = |id: &u32| {
            let mut classes = self.cells.classes(*id as usize);
            classes.any(|class| index[class as usize] >= 0)
        };
        Ok((0..self.n_ids() as u32).filter(has_class).collect())
    }

    /// Refuses an index that has not, for each class of the store, -1 or the number of a class.
    fn check_index(&self, index: &[i64]) -> Result<(), Error> {
        demand(index.len() == self.n_classes(), "index must have one number per class")?;
        let fits = |&class: &i64| class >= -1 && class <= i64::from(i32::MAX);
        demand(index.iter().all(fits), "index must be -1, or the number of a class")
    }

    /// Cuts texts into tokens on so many threads. For each text that is not missing, calls `append` with the numbers of the
    /// words of its tokens ([`UNKNOWN`] for words that have none) and with a list, to the end of which `append` writes elements
    /// that it makes of these numbers. Returns offsets, `[text + 1]`, where in the joined list the elements of each text begin
    /// and those of the last one end; and the joined list, which has the elements of all texts, text after text.
    fn read_texts<T: Send>(
        &self,
        tokeniser: &Tokeniser,
        texts: &Texts,
        threads: usize,
        append: impl Fn(&mut [u32], &mut Vec<T>) + Sync,
    ) -> Result<(Vec<i64>, Vec<T>), Error> {
        let threads = threads::worth(threads, texts.bytes());
        let pieces = threads::try_ranges(threads, texts.len(), PIECE, |rows| {
            let (mut tokens, mut ids) = (Tokens::default(), vec![]); // of one text
            // The elements of these rows' texts, and where in them those of each text end.
            let (mut elements, mut ends) = (vec![], vec![]);
            for row in rows {
                if self.find_text(texts, row, tokeniser, &mut tokens, &mut ids)? {
                    append(&mut ids, &mut elements);
                }
                ends.push(elements.len());
            }
            Ok::<_, Error>((elements, ends))
        })?;
        let (mut offsets, mut joined) = (vec![0], vec![]);
        for (elements, ends) in pieces {
            offsets.extend(ends.iter().map(|end| (joined.len() + end) as i64));
            joined.extend(elements);
        }
        Ok((offsets, joined))
    }

    /// The words of each text that have a number: their numbers, each once and ascending, and how often the text has each.
    /// `tokeniser` cuts the texts into tokens, on so many threads.
    pub fn bags(
        &self,
        tokeniser: &Tokeniser,
        texts: &Texts,
        threads: usize,
    ) -> Result<Bags, Error> {
        let (offsets, ids_and_times) =
            self.read_texts(tokeniser, texts, threads, |ids, pairs| {
                ids.sort_unstable();
                // The numbers of one word's tokens in the text, word after word.
                let equal_ids = ids.chunk_by(|a, b| a == b).filter(|equal| equal[0] != UNKNOWN);
                pairs.extend(equal_ids.map(|equal| (equal[0] as i32, equal.len() as i32)));
            })?;
        let (ids, times) = ids_and_times.into_iter().unzip();
        Ok(Bags { offsets, ids, times })
    }

    /// Cuts texts into tokens on so many threads. Returns offsets, `[text + 1]`, where the tokens of each text begin and those
    /// of the last one end; and for each token, text after text, the number of its word, -1 for words that have none.
    pub fn encode(
        &self,
        tokeniser: &Tokeniser,
        texts: &Texts,
        threads: usize,
    ) -> Result<(Vec<i64>, Vec<i32>), Error> {
        self.read_texts(tokeniser, texts, threads, |ids, all_ids| {
            // UNKNOWN is -1 in two's complement.
            all_ids.extend(ids.iter().map(|&id| id as i32));
        })
    }

    /// Gives numbers to the words with these names, in bytes, that have none yet; an error if there are too many, or no such
    /// column.
    pub fn add_names<'n>(&mut self, names: impl Iterator<Item = &'n [u8]>) -> Result<(), Error> {
        for name in names {
            self.vocabulary.add_name(name)?;
        }
        self.cells.grow(self.vocabulary.len());
        Ok(())
    }

    /// The numbers of the words that some text has, in the order of their names' bytes.
    pub fn in_order(&self) -> Vec<u32> {
        // The first eight bytes of a name as a number that sorts like them. They decide nearly always; else whole names are
        // compared.
        let head = |name: &[u8]| {
            let mut bytes = [0; 8];
            let length = name.len().min(8);
            bytes[..length].copy_from_slice(&name[..length]);
            u64::from_be_bytes(bytes)
        };
        // The numbers of the words that some text has.
        let live_ids = (0..self.n_ids() as u32).filter(|&id| self.cells.is_live(id as usize));
        let mut heads_and_ids: Vec<(u64, u32)> =
            live_ids.map(|id| (self.with_name(id, head), id)).collect();
        heads_and_ids.sort_unstable_by(|a, b| {
            let by_name =
                || self.with_name(a.1, |name| self.with_name(b.1, |name_b| name.cmp(name_b)));
            a.0.cmp(&b.0).then_with(by_name)
        });
        heads_and_ids.into_iter().map(|(_, id)| id).collect()
    }

    /// The occurrences of all words in all classes together, in ones, rounded up.
    fn total(&self) -> u64 {
        rounded_up(self.unit(), self.totals.iter().map(|totals| totals[0]))
    }

    /// The texts of all classes together, in ones, rounded up.
    fn n_texts(&self) -> u64 {
        rounded_up(self.unit(), self.texts.iter().copied())
    }

    /// Removes the words whose numbers are `n_ids` or more, which must be in no text. The vocabulary is made again from the
    /// names of the words that stay, which keep their numbers.
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

    /// Converts all counts (those of cells, the texts of each class, the totals of each class) to `unit` if that is finer than
    /// theirs.
    fn make_finer(&mut self, unit: Unit) {
        let old_unit = self.unit();
        if unit > old_unit {
            self.cells.make_parts();
            for count in self.texts.iter_mut().chain(self.totals.as_flattened_mut()) {
                *count = old_unit.to(unit, *count);
            }
        }
    }
}

/// The classes that each class becomes, `[class][new]`: the class `index[c]` alone, or none if that is -1.
fn new_classes(index: &[i64]) -> Vec<Vec<u32>> {
    index.iter().map(|&class| u32::try_from(class).ok().into_iter().collect()).collect()
}

/// The sum of counts of this unit, in ones, rounded up.
fn rounded_up(unit: Unit, counts: impl Iterator<Item = Count>) -> u64 {
    let mut sum = Count::default();
    counts.for_each(|count| sum.merge(&count));
    let (ones, is_whole) = unit.whole_ones(&sum);
    ones + u64::from(!is_whole)
}
