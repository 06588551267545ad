//! A store as arrays, for files. Equal stores have equal arrays, and arrays that no store has are refused.
//!
//! Reading goes through each array once and in order, through the names and the cells at the same time.

use super::index::{NamedWords, Names, Vocabulary};
use super::store::{Cell, CellCounts, Cells, Count, Counts, Unit, merge};
use super::{TOO_LARGE, TOO_MANY, Words, rounded_up};
use crate::error::{Error, demand};
use crate::integers::Int;
use crate::threads;
use std::borrow::Cow;

/// Words in the order of their bytes, each with its cells in the order of classes. The arrays of a file may hold anything.
#[derive(Clone, Debug, PartialEq)]
pub struct State<'a> {
    /// The words' text one after the other, in UTF-8.
    pub bytes: Cow<'a, [u8]>,
    /// Where each word ends in `bytes`.
    pub ends: Cow<'a, [i64]>,
    /// Where each word's cells start, and where the last one's end.
    pub starts: Cow<'a, [i64]>,
    /// The class of each cell.
    pub classes: Cow<'a, [u32]>,
    /// The occurrences and documents of each cell.
    pub counts: StoredCounts<'a>,
    /// Texts per class; three limbs each, the least first, if counts are parts.
    pub texts: Cow<'a, [i64]>,
}

/// Occurrences and documents: whole if all are, texts too, and 32 bits hold all occurrences together; else parts.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredCounts<'a> {
    /// The occurrences of each cell, and the documents of each.
    Narrow(Cow<'a, [u32]>, Cow<'a, [u32]>),
    /// Numbers of 10^-36: six limbs per cell, three of each number, the least first.
    Parts(Cow<'a, [i64]>),
}

impl StoredCounts<'_> {
    /// Whether the arrays have the lengths that `n_cells` cells need: a number of occurrences and one of documents per cell, or
    /// six limbs per cell.
    fn fit(&self, n_cells: usize) -> bool {
        match self {
            StoredCounts::Narrow(occurrences, documents) => {
                [occurrences.len(), documents.len()] == [n_cells; 2]
            }
            StoredCounts::Parts(limbs) => limbs.len() == 6 * n_cells,
        }
    }

    /// The unit of the counts: ones if occurrences and documents are whole numbers of 32 bits, else parts of 10^-36.
    fn unit(&self) -> Unit {
        match self {
            StoredCounts::Narrow(..) => Unit::One,
            StoredCounts::Parts(_) => Unit::Part,
        }
    }
}

/// The three limbs of a count, the least first.
fn limbs_of(count: &Count) -> [i64; 3] {
    count.0.map(|limb| limb as i64)
}

/// The counts that are written as three limbs of 64 bits each, the least first, count after count.
fn counts_of(limbs: &[i64]) -> impl Iterator<Item = Count> {
    let (limbs, _) = limbs.as_chunks::<3>();
    limbs.iter().map(|limbs| Int(limbs.map(|limb| limb as u64)))
}

impl Words {
    /// The store as arrays, words in the order of their names' bytes.
    pub fn state(&self) -> State<'static> {
        let unit = self.stored_unit(); // of the counts in the file
        // A count of this store in the unit of the file.
        let stored = |count: Count| match unit {
            Unit::One => Int([self.unit().whole_ones(&count).0, 0, 0]),
            Unit::Part => count,
        };
        // Names of words; where the cells of each word start and the last ones end; the class of each cell.
        let (mut names, mut starts, mut classes) = (Names::default(), vec![0], vec![]);
        let mut counts = CellCounts::new(unit); // occurrences and documents of each cell
        for id in self.in_order() {
            self.with_name(id, |name| names.push(name));
            for cell in self.cells(id) {
                classes.push(cell.class);
                counts.push(&cell.counts.map(stored));
            }
            starts.push(classes.len() as i64);
        }
        let texts = self.texts.iter().map(|&count| stored(count)); // of each class
        // The texts of each class: a number each, or three limbs each.
        let texts: Vec<i64> = match unit {
            Unit::One => texts.map(|count| count.0[0] as i64).collect(),
            Unit::Part => texts.flat_map(|count| limbs_of(&count)).collect(),
        };
        let ends: Vec<i64> = names.ends.iter().map(|&end| end as i64).collect();
        State {
            bytes: names.bytes.into(),
            ends: ends.into(),
            starts: starts.into(),
            classes: classes.into(),
            counts: match counts {
                CellCounts::Narrow(counts) => {
                    let (occurrences, documents): (Vec<u32>, Vec<u32>) = counts
                        .iter()
                        .map(|&[occurrences, documents]| (occurrences, documents))
                        .unzip();
                    StoredCounts::Narrow(occurrences.into(), documents.into())
                }
                CellCounts::Parts(counts) => {
                    let limbs = counts.as_flattened().iter().flat_map(limbs_of);
                    StoredCounts::Parts(limbs.collect())
                }
            },
            texts: texts.into(),
        }
    }

    /// The unit in which a file has these counts, in whatever unit the store holds them: ones if all counts are whole, texts too,
    /// and 32 bits hold all occurrences together.
    fn stored_unit(&self) -> Unit {
        let unit = self.unit();
        let is_whole = |count: &Count| unit.whole_ones(count).1;
        let all_whole = self.texts.iter().all(is_whole)
            && (0..self.n_ids()).all(|id| {
                let mut cells = self.cells.of(id);
                cells.all(|cell| cell.counts.iter().all(is_whole))
            });
        if all_whole { Unit::One.that_holds(self.total()) } else { unit }
    }

    /// Makes the store of `n_classes` classes and `n_columns` columns (0: words have names) that has this state, on so many
    /// threads; refuses states that no store has.
    pub fn from_state(
        n_classes: usize,
        n_columns: usize,
        state: &State,
        threads: usize,
    ) -> Result<Words, Error> {
        let mut words = Words::new(n_classes, n_columns)?;
        words.texts = state.texts(n_classes)?;
        let n_cells = state.check_cells()?;
        let threads = threads::worth(threads, n_cells);
        let texts = &words.texts; // of each class
        // The vocabulary; the cells, and the occurrences and documents of all words in each class.
        let halves = threads::try_map(threads, 2, |half| match half {
            0 => Ok(Half::Names(state.vocabulary(n_columns)?)),
            _ => Ok(Half::Cells(state.cells(texts)?)),
        })?;
        for half in halves {
            match half {
                Half::Names(vocabulary) => words.vocabulary = vocabulary,
                Half::Cells((cells, totals)) => (words.cells, words.totals) = (cells, totals),
            }
        }
        demand(
            words.unit() == Unit::One || words.stored_unit() == Unit::Part,
            "numbers must be parts only if they are not all whole, or too many for 32 bits",
        )?;
        Ok(words)
    }
}

/// The halves of a state that two threads read.
enum Half {
    /// The words and their names.
    Names(Vocabulary),
    /// The cells, and their sums per class.
    Cells((Cells, Vec<Counts>)),
}

impl State<'_> {
    /// The texts of each class, `[class]`, in the unit of the state's counts; refuses counts that no store has. `self.texts` has
    /// one number per class or, if counts are parts, the three limbs of each class one after the other.
    fn texts(&self, n_classes: usize) -> Result<Vec<Count>, Error> {
        let texts: Vec<Count> = match &self.counts {
            StoredCounts::Parts(_) => counts_of(&self.texts).collect(),
            _ => self.texts.iter().map(|&texts| Int([texts as u64, 0, 0])).collect(),
        };
        demand(texts.len() == n_classes, "there must be one number of texts per class")?;
        let mut all_texts = 0_u64; // of all classes, in ones, those of each class rounded up
        for count in &texts {
            all_texts = all_texts.saturating_add(self.checked_ones(count)?);
        }
        demand(all_texts < TOO_LARGE, "numbers of texts must not add up to 2**63")?;
        Ok(texts)
    }

    /// A count of this state in ones, rounded up; refuses negative and very large counts.
    #[inline(always)]
    fn checked_ones(&self, count: &Count) -> Result<u64, Error> {
        let unit = self.counts.unit();
        let (ones, is_whole) = unit.whole_ones(count); // rounded down; whether it was whole
        // The highest limb of a negative count is large.
        let is_small = unit == Unit::One || count.0[2] < 1 << 55;
        demand(is_small && ones < TOO_LARGE, "numbers must not be negative, nor 2**63 or more")?;
        Ok(ones + u64::from(!is_whole))
    }

    /// The words and their names; if `n_columns` is not 0, words are columns of a matrix of so many. Refuses names that no
    /// store has.
    fn vocabulary(&self, n_columns: usize) -> Result<Vocabulary, Error> {
        let n_words = self.ends.len();
        demand(n_words < i32::MAX as usize, "there are more than 2**31 - 1 words")?;
        demand(
            self.ends.first().is_none_or(|&end| end >= 0)
                && self.ends.is_sorted()
                && self.ends.last().map_or(0, |&end| end as usize) == self.bytes.len(),
            "the ends of words must ascend to the length of their bytes",
        )?;
        let names = Names {
            bytes: self.bytes.to_vec(),
            ends: self.ends.iter().map(|&end| end as usize).collect(),
        };
        demand(names.ascend(), "words must be in the order of their bytes, each once")?;
        demand(are_texts(&names), "words must be UTF-8")?;
        if n_columns > 0 {
            demand(Vocabulary::fits(n_columns), super::NO_ROOM)?;
            let mut vocabulary = Vocabulary::new(n_columns);
            for name in names.iter() {
                vocabulary.add_name(name)?;
            }
            return Ok(vocabulary);
        }
        Ok(Vocabulary::Named(NamedWords::ascending(names)))
    }

    /// Refuses cells that do not fit the words (those of word i are `starts[i]` to `starts[i + 1]`; `ends` has an element per
    /// word, `classes` one per cell), or counts that do not fit the cells; returns the number of cells.
    fn check_cells(&self) -> Result<usize, Error> {
        let (n_words, n_cells) = (self.ends.len(), self.classes.len());
        demand(
            self.starts.len() == n_words + 1
                && self.starts[0] == 0
                && self.starts.is_sorted()
                && self.starts[n_words] as usize == n_cells,
            "starts must ascend from 0 to the number of cells, one more than there are words",
        )?;
        demand(self.counts.fit(n_cells), "each cell must have a class, occurrences and documents")?;
        Ok(n_cells)
    }

    /// Reads the cells, and adds up those of each class: also returns the occurrences and documents of all words, `[class]`.
    /// `texts` are the texts of each class, `[class]`.
    fn cells(&self, texts: &[Count]) -> Result<(Cells, Vec<Counts>), Error> {
        match &self.counts {
            StoredCounts::Narrow(occurrences, documents) => {
                let cells = self.whole_cells(texts, occurrences, documents); // none if anything is wrong with them
                // Cell by cell, for the error.
                let slowly = || {
                    self.cells_of(texts, Unit::One, |at| {
                        [occurrences[at], documents[at]].map(|count| Int([u64::from(count), 0, 0]))
                    })
                };
                cells.map_or_else(slowly, Ok)
            }
            // `limbs[6 * i..6 * i + 6]` are the counts of cell i.
            StoredCounts::Parts(limbs) => self.cells_of(texts, Unit::Part, |at| {
                // Six limbs per cell: three of its occurrences, three of its documents.
                let mut counts = counts_of(&limbs[6 * at..6 * at + 6]);
                [(); 2].map(|()| counts.next().unwrap_or_default())
            }),
        }
    }

    /// Reads whole counts, which most files have, in loops without branches; none if anything is wrong with them. `occurrences`
    /// and `documents` are those of each cell, and `texts` the texts of each class, which bound documents. Returns the cells, and
    /// occurrences and documents of each class. The words and pairs of words of 20 Newsgroups load in 44 ms, and in 71 ms without
    /// this.
    fn whole_cells(
        &self,
        texts: &[Count],
        occurrences: &[u32],
        documents: &[u32],
    ) -> Option<(Cells, Vec<Counts>)> {
        let n_classes = texts.len();
        if n_classes == 0 || !self.ascend() {
            return None;
        }
        let most_documents: Vec<u64> = texts.iter().map(|count| count.0[0]).collect(); // of each class
        let mut sums = vec![[0_u64; 2]; n_classes]; // occurrences and documents of each class
        // Whether nothing is wrong so far: each word has a cell.
        let mut all_fit = self.starts.windows(2).all(|bounds| bounds[0] < bounds[1]);
        let counts = occurrences.iter().zip(documents); // of each cell
        let cells =
            self.classes.iter().zip(counts).map(|(&class, (&n_occurrences, &n_documents))| {
                // The cell's class, or the last one if there is no such class.
                let existing_class = (class as usize).min(n_classes - 1);
                all_fit &= (existing_class == class as usize)
                    & (n_documents > 0)
                    & (n_occurrences > 0)
                    & (u64::from(n_documents) <= most_documents[existing_class]);
                sums[existing_class][0] += u64::from(n_occurrences);
                sums[existing_class][1] += u64::from(n_documents);
                (class, [n_occurrences, n_documents])
            });
        let cells = Cells::of_whole(&self.starts, cells);
        let total: u64 = sums.iter().map(|sums| sums[0]).sum(); // occurrences of all words in all classes
        let totals = sums.into_iter().map(|sums| sums.map(|count| Int([count, 0, 0]))).collect();
        (all_fit && total <= u64::from(u32::MAX)).then_some((cells, totals))
    }

    /// Whether the classes of each word's cells ascend: then wherever classes of neighbouring cells do not ascend, another word
    /// begins.
    fn ascend(&self) -> bool {
        // Whether the classes of two neighbouring cells do not ascend.
        let falls = |neighbours: &&[u32]| neighbours[1] <= neighbours[0];
        // Where the cells of each word start.
        let starts = self.starts.iter().map(|&start| start as usize);
        let inner_starts = starts.filter(|&start| 0 < start && start < self.classes.len());
        // The classes of a word's last cell and of the next word's first.
        let at_starts = inner_starts.map(|start| &self.classes[start - 1..=start]);
        self.classes.windows(2).filter(falls).count() == at_starts.filter(falls).count()
    }

    /// Reads the cells one by one, `counts(i)` being the occurrences and documents of cell i in `unit`; refuses cells that no
    /// store has. `texts` are the texts of each class, `[class]`. Returns the cells, and the occurrences and documents of all
    /// words, `[class]`.
    fn cells_of(
        &self,
        texts: &[Count],
        unit: Unit,
        counts: impl Fn(usize) -> Counts,
    ) -> Result<(Cells, Vec<Counts>), Error> {
        let mut cells = Cells::with_room(self.ends.len(), self.classes.len(), unit);
        let mut totals = vec![Counts::default(); texts.len()]; // of all words, `[class]`
        let mut all_occurrences = 0_u64; // in ones, those of each cell rounded up
        for bounds in self.starts.windows(2) {
            let (start, end) = (bounds[0] as usize, bounds[1] as usize);
            demand(start < end, "a word must be in some text")?;
            let mut next_class = 0; // the lowest class that the next cell may have
            for at in start..end {
                let (class, counts) = (self.classes[at], counts(at));
                demand(class >= next_class, "the classes of a word must ascend")?;
                next_class = class + 1;
                all_occurrences =
                    all_occurrences.saturating_add(self.check_cell(class, &counts, texts)?);
                demand(all_occurrences < TOO_LARGE, TOO_MANY)?;
                merge(&mut totals[class as usize], &counts);
                cells.push_cell(&Cell { class, counts });
            }
            cells.end_word(end - start);
        }
        // In ones, rounded up.
        let all_occurrences = rounded_up(unit, totals.iter().map(|totals| totals[0]));
        demand(
            unit == unit.that_holds(all_occurrences),
            "occurrences must be parts if 32 bits do not hold all of them together",
        )?;
        Ok((cells, totals))
    }

    /// Refuses a cell with these counts, occurrences and documents, in a class that does not exist or in which no cell can have
    /// them; `texts` are the texts of each class, `[class]`. Returns the occurrences in ones, rounded up.
    #[inline(always)]
    fn check_cell(&self, class: u32, counts: &Counts, texts: &[Count]) -> Result<u64, Error> {
        let Some(texts) = texts.get(class as usize) else {
            return Err(no_such_class(class, texts.len()));
        };
        let [occurrences, documents] = counts;
        demand(
            !occurrences.is_zero() && !documents.is_zero(),
            "each cell must have occurrences and documents",
        )?;
        self.checked_ones(documents)?;
        demand(documents <= texts, "a word must be in no more documents than its class has texts")?;
        self.checked_ones(occurrences)
    }
}

/// The error of a cell whose `class` is not below `n_classes`.
#[cold]
fn no_such_class(class: u32, n_classes: usize) -> Error {
    Error::malformed(format!("classes must be below {n_classes}, got {class}"))
}

/// Whether Python can decode the name of every word: `bytes` has all names, and word i ends at byte `ends[i]`.
fn are_texts(names: &Names) -> bool {
    match std::str::from_utf8(&names.bytes) {
        Ok(text) => names.ends.iter().all(|&end| text.is_char_boundary(end)),
        Err(_) => names.iter().all(is_text),
    }
}

/// Whether Python can decode the bytes: UTF-8 in which surrogates may stand alone.
fn is_text(mut bytes: &[u8]) -> bool {
    while let Err(error) = std::str::from_utf8(bytes) {
        bytes = match &bytes[error.valid_up_to()..] {
            // A surrogate that stands alone, and the bytes after it.
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, rest @ ..] => rest,
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a state of two classes whose counts are parts with these limbs and whose texts are these limbs.
    fn read(state: &State, limbs: &[i64], texts: &[i64]) -> Result<Words, Error> {
        let counts = StoredCounts::Parts(limbs.into());
        let state = State { counts, texts: texts.into(), ..state.clone() };
        Words::from_state(2, 0, &state, 1)
    }

    /// Words "a" in class 0 and "b" in both. `counts` are occurrences and documents of each of the three cells, `texts` those of
    /// each class.
    fn made(counts: [u64; 6], texts: [u64; 2]) -> Words {
        let mut words = Words::new(2, 0).unwrap();
        words.add_names([&b"a"[..], b"b"].into_iter()).unwrap();
        let mut cells = Cells::with_room(2, 3, Unit::One);
        let cell = |at: usize, class| Cell {
            class,
            counts: [counts[2 * at], counts[2 * at + 1]].map(|n| Int([n, 0, 0])),
        };
        cells.push([cell(0, 0)].into_iter());
        cells.push([cell(1, 0), cell(2, 1)].into_iter());
        words.totals = words.totals_of((0..2).flat_map(|id| cells.of(id)));
        (words.cells, words.texts) = (cells, texts.map(|n| Int([n, 0, 0])).to_vec());
        words
    }

    #[test]
    fn parts_are_read_back_and_nothing_else() {
        let whole = made([3, 1, 5, 2, 2, 2], [3, 4]);
        let (words, exact) = whole.times(0.25).unwrap();
        assert!(exact);
        let state = words.state();
        let StoredCounts::Parts(limbs) = &state.counts else {
            panic!("whole numbers: {state:?}");
        };
        let back = read(&state, limbs, &state.texts).unwrap();
        assert!(back.same(&words) && back.state() == state && back.totals == words.totals);
        // The same numbers are the same arrays, whatever they are held in.
        let again = back.times(4.0).unwrap().0;
        assert_eq!((again.unit(), whole.unit()), (Unit::Part, Unit::One));
        assert!(again.same(&whole) && whole.same(&again) && again.state() == whole.state());
        let values = |words: &Words| format!("{:?}", words.pairs(&[0, 1], None, 1).unwrap());
        assert_eq!(values(&again), values(&whole));
        assert_eq!(again.texts(), whole.texts());
        for at in 0..limbs.len() {
            for wrong in [i64::MIN, -1, i64::MAX] {
                let mut limbs = limbs.to_vec();
                limbs[at] = wrong;
                // A text has hundreds of some words; no word is in more documents than there are texts.
                let read = read(&state, &limbs, &state.texts);
                assert_eq!(read.is_err(), at % 3 == 2 || at % 6 == 4, "{at}");
            }
        }
        // The limbs with the at-th number, an occurrence or a document count of a cell, zero.
        let without = |at: usize| {
            let mut limbs = limbs.to_vec();
            limbs[3 * at..3 * at + 3].fill(0);
            limbs
        };
        for at in 0..6 {
            assert!(read(&state, &without(at), &state.texts).is_err());
        }
        assert!(read(&state, &limbs[3..], &state.texts).is_err());
        assert!(read(&state, limbs, &state.texts[3..]).is_err());
        assert!(read(&state, limbs, &[0; 6]).is_err());
        let parts = again.cells.of(0).chain(again.cells.of(1));
        let parts: Vec<i64> =
            parts.flat_map(|cell| cell.counts).flat_map(|n| limbs_of(&n)).collect();
        let texts: Vec<i64> = again.texts.iter().flat_map(limbs_of).collect();
        assert!(read(&state, &parts, &texts).is_err());
    }
}
