//! A store as arrays, for files: the same sums are the same arrays, and no others are accepted.
//!
//! A large file is read as fast as its arrays can be: each is looked at once, in order, words and cells at the same time.

use super::algebra::LARGEST_REAL;
use super::index::{Lookup, Names, Vocabulary};
use super::store::{Cell, Cells, Sums};
use super::{TOO_LARGE, Total, Words};
use crate::error::{Error, demand};
use crate::expansion::Expansion;
use crate::threads;

/// Words in the order of their bytes, each with its cells in the order of classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The words' text one after the other, and where each ends.
    pub bytes: Vec<u8>,
    pub ends: Vec<i64>,
    /// Where each word's cells start, and where the last one's end.
    pub starts: Vec<i64>,
    pub classes: Vec<u32>,
    pub counts: Numbers,
    /// Six numbers per cell: the parts of both sums.
    pub sums: Option<Vec<f64>>,
    pub texts: Vec<i64>,
    pub text_weights: Option<Vec<f64>>,
    /// The index; none if tokens are hashed into buckets.
    pub slots: Option<Vec<u32>>,
}

/// Occurrences and documents: in 32 bits if all occurrences together fit.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    Narrow(Vec<u32>, Vec<u32>),
    Wide(Vec<i64>, Vec<i64>),
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers::Narrow(vec![], vec![])
    }
}

impl Numbers {
    fn push(&mut self, counts: [u64; 2]) {
        match self {
            Numbers::Narrow(occurrences, documents) => {
                occurrences.push(counts[0] as u32);
                documents.push(counts[1] as u32);
            }
            Numbers::Wide(occurrences, documents) => {
                occurrences.push(counts[0] as i64);
                documents.push(counts[1] as i64);
            }
        }
    }
}

/// The arrays of a [`State`] as they are given: nothing about them is known.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    pub bytes: &'a [u8],
    pub ends: &'a [i64],
    pub starts: &'a [i64],
    pub classes: &'a [u32],
    pub counts: StoredNumbers<'a>,
    pub sums: Option<&'a [f64]>,
    pub texts: &'a [i64],
    pub text_weights: Option<&'a [f64]>,
    pub slots: Option<&'a [u32]>,
}

#[derive(Clone, Copy, Debug)]
pub enum StoredNumbers<'a> {
    Narrow(&'a [u32], &'a [u32]),
    Wide(&'a [i64], &'a [i64]),
}

impl StoredNumbers<'_> {
    fn lens(self) -> [usize; 2] {
        match self {
            StoredNumbers::Narrow(occurrences, documents) => [occurrences.len(), documents.len()],
            StoredNumbers::Wide(occurrences, documents) => [occurrences.len(), documents.len()],
        }
    }
}

fn parts(sums: &[Expansion]) -> impl Iterator<Item = f64> {
    sums.iter().flat_map(|sum| sum.parts())
}

impl Words {
    pub fn state(&self) -> State {
        let order = self.in_order();
        let mut state = State {
            starts: vec![0],
            counts: match self.total() <= u64::from(u32::MAX) {
                true => Numbers::Narrow(vec![], vec![]),
                false => Numbers::Wide(vec![], vec![]),
            },
            sums: self.is_real().then(Vec::new),
            texts: self.texts.iter().map(|total| total.rows as i64).collect(),
            text_weights: self
                .is_real()
                .then(|| self.texts.iter().flat_map(|t| t.weight.parts()).collect()),
            ..State::default()
        };
        let mut vocabulary = Vocabulary::new(self.buckets());
        vocabulary.reserve(order.len());
        for &id in &order {
            self.vocabulary.with_name(id as usize, |name| {
                state.bytes.extend_from_slice(name);
                // A name that is there already was accepted before.
                let added = vocabulary.add_name(name);
                debug_assert!(added.is_ok());
            });
            state.ends.push(state.bytes.len() as i64);
            for cell in self.cells(id) {
                state.classes.push(cell.class);
                state.counts.push(cell.counts);
                if let Some(sums) = &mut state.sums {
                    sums.extend(parts(&cell.sums));
                }
            }
            state.starts.push(state.classes.len() as i64);
        }
        state.slots = vocabulary.slots();
        state
    }

    /// The store that has this state; refuses what no store has.
    pub fn from_state(
        n_classes: usize,
        buckets: usize,
        state: &Stored,
        threads: usize,
    ) -> Result<Words, Error> {
        let mut words = Words::new(n_classes, buckets)?;
        words.texts = state.totals(n_classes)?;
        let n_cells = state.check_cells()?;
        let threads = threads::worth(threads, n_cells);
        let texts = &words.texts;
        let halves = threads::try_map(threads, 2, |half| match half {
            0 => Ok(Half::Names(state.vocabulary(buckets)?)),
            _ => Ok(Half::Cells(state.cells(texts)?)),
        })?;
        for half in halves {
            match half {
                Half::Names(vocabulary) => words.vocabulary = vocabulary,
                Half::Cells((cells, totals)) => (words.cells, words.totals) = (cells, totals),
            }
        }
        Ok(words)
    }
}

/// What is read at the same time.
enum Half {
    Names(Vocabulary),
    Cells((Cells, Vec<[Total; 2]>)),
}

impl Stored<'_> {
    fn totals(&self, n_classes: usize) -> Result<Vec<Total>, Error> {
        let weights = self.text_weights;
        demand(
            self.sums.is_some() == weights.is_some(),
            "words and texts must both have weights, or neither",
        )?;
        demand(
            self.texts.len() == n_classes
                && weights.is_none_or(|weights| weights.len() == 3 * n_classes),
            "there must be one number of texts per class",
        )?;
        let mut sum = 0_u64;
        let mut totals = vec![];
        for (class, &rows) in self.texts.iter().enumerate() {
            let rows = u64::try_from(rows).unwrap_or(TOO_LARGE);
            sum = sum.saturating_add(rows);
            let weight = match weights {
                None => Expansion::default(),
                Some(weights) => expansion(&weights[3 * class..3 * class + 3], rows)?,
            };
            totals.push(Total { rows, weight });
        }
        demand(
            sum < TOO_LARGE,
            "numbers of texts must not be negative, nor add up to 2**63",
        )?;
        Ok(totals)
    }

    fn vocabulary(&self, buckets: usize) -> Result<Vocabulary, Error> {
        let n = self.ends.len();
        demand(n < i32::MAX as usize, "there are more than 2**31 - 1 words")?;
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
        demand(
            names.ascend(),
            "words must be in the order of their bytes, each once",
        )?;
        demand(are_texts(&names), "words must be UTF-8")?;
        if buckets > 0 {
            demand(self.slots.is_none(), "words that are buckets have no slots")?;
            demand(Vocabulary::fits(buckets), super::NO_ROOM)?;
            let mut vocabulary = Vocabulary::new(buckets);
            for name in names.iter() {
                vocabulary.add_name(name)?;
            }
            return Ok(vocabulary);
        }
        let slots = self.slots.unwrap_or(&[]);
        match Lookup::from_slots(slots, &names) {
            Some(index) => Ok(Vocabulary::Named { index, names }),
            None => Err(Error::malformed(
                "slots must be the index of the words: a power of two of them, each word in one that leads to it",
            )),
        }
    }

    fn check_cells(&self) -> Result<usize, Error> {
        let (n_words, n) = (self.ends.len(), self.classes.len());
        demand(
            self.starts.len() == n_words + 1
                && self.starts[0] == 0
                && self.starts.is_sorted()
                && self.starts[n_words] as usize == n,
            "starts must ascend from 0 to the number of cells, one more than there are words",
        )?;
        demand(
            self.counts.lens() == [n, n] && self.sums.is_none_or(|sums| sums.len() == 6 * n),
            "each cell must have a class, occurrences and documents (and, if sums are real, both as weights)",
        )?;
        Ok(n)
    }

    /// The cells, and what those of each class add up to.
    fn cells(&self, texts: &[Total]) -> Result<(Cells, Vec<[Total; 2]>), Error> {
        match self.counts {
            StoredNumbers::Narrow(occurrences, documents) => {
                let counts = |at: usize| [occurrences[at], documents[at]].map(u64::from);
                let found = self.whole_cells(texts, occurrences, documents);
                found.map_or_else(|| self.cells_of(texts, false, counts), Ok)
            }
            // What is negative becomes too large.
            StoredNumbers::Wide(occurrences, documents) => self.cells_of(texts, true, |at| {
                [occurrences[at], documents[at]].map(|number| number as u64)
            }),
        }
    }

    /// The same of whole numbers, which most files have, without a branch in the loops; nothing if anything is wrong with them.
    fn whole_cells(
        &self,
        texts: &[Total],
        occurrences: &[u32],
        documents: &[u32],
    ) -> Option<(Cells, Vec<[Total; 2]>)> {
        let n_classes = texts.len();
        if self.sums.is_some() || n_classes == 0 || !self.ascend() {
            return None;
        }
        let most: Vec<u64> = texts.iter().map(|total| total.rows).collect();
        let mut sums = vec![[0_u64; 2]; n_classes];
        let mut fit = self.starts.windows(2).all(|ends| ends[0] < ends[1]);
        let counts = occurrences.iter().zip(documents);
        let cells = self.classes.iter().zip(counts).map(|(&class, (&o, &d))| {
            let at = (class as usize).min(n_classes - 1);
            let inside = at == class as usize;
            fit &= inside & (d > 0) & (d <= o) & (u64::from(d) <= most[at]);
            sums[at][0] += u64::from(o);
            sums[at][1] += u64::from(d);
            (class, [o, d])
        });
        let cells = Cells::of_whole(self.starts, cells);
        let total: u64 = sums.iter().map(|sums| sums[0]).sum();
        let as_total = |rows| Total {
            rows,
            ..Total::default()
        };
        let totals = sums.into_iter().map(|both| both.map(as_total)).collect();
        (fit && total <= u64::from(u32::MAX)).then_some((cells, totals))
    }

    /// Whether the classes of each word ascend: wherever they do not, another word begins.
    fn ascend(&self) -> bool {
        let falls = |pair: &&[u32]| pair[1] <= pair[0];
        let starts = self.starts.iter().map(|&start| start as usize);
        let inner = starts.filter(|&start| 0 < start && start < self.classes.len());
        let begun = inner.map(|start| &self.classes[start - 1..=start]);
        self.classes.windows(2).filter(falls).count() == begun.filter(falls).count()
    }

    fn cells_of(
        &self,
        texts: &[Total],
        wide: bool,
        counts: impl Fn(usize) -> [u64; 2],
    ) -> Result<(Cells, Vec<[Total; 2]>), Error> {
        let real = self.sums.is_some();
        let mut cells = Cells::with_room(self.ends.len(), self.classes.len(), wide, real);
        let mut totals = vec![<[Total; 2]>::default(); texts.len()];
        let mut occurrences = 0_u64;
        for range in self.starts.windows(2) {
            let (start, end) = (range[0] as usize, range[1] as usize);
            demand(start < end, "a word must be in some text")?;
            let mut next_class = 0;
            for at in start..end {
                let cell = self.cell(at, counts(at), texts)?;
                demand(
                    cell.class >= next_class,
                    "the classes of a word must ascend",
                )?;
                next_class = cell.class + 1;
                occurrences = occurrences.saturating_add(cell.counts[0]);
                for (i, total) in totals[cell.class as usize].iter_mut().enumerate() {
                    total.rows = total.rows.saturating_add(cell.counts[i]);
                    if real {
                        total.weight.merge(&cell.sums[i]);
                    }
                }
                cells.push_cell(&cell);
            }
            cells.end_word(end - start);
        }
        demand(
            occurrences < TOO_LARGE,
            "there are more than 2**63 - 1 occurrences",
        )?;
        demand(
            wide == (occurrences > u64::from(u32::MAX)),
            "counts must be 32 bits wide as long as all occurrences fit, and 64 then",
        )?;
        Ok((cells, totals))
    }

    #[inline(always)]
    fn cell(&self, at: usize, counts: [u64; 2], texts: &[Total]) -> Result<Cell, Error> {
        let class = self.classes[at];
        let Some(texts) = texts.get(class as usize) else {
            return Err(beyond(class, texts.len()));
        };
        demand(
            counts[1] > 0 && counts[0] < TOO_LARGE && counts[1] < TOO_LARGE,
            "each cell must have documents, and no number below zero",
        )?;
        let sums = match self.sums {
            None => {
                demand(
                    counts[1] <= counts[0] && counts[1] <= texts.rows,
                    "a word must be in no more documents than it has occurrences or its class texts",
                )?;
                Sums::default()
            }
            Some(sums) => [
                expansion(&sums[6 * at..6 * at + 3], counts[0])?,
                expansion(&sums[6 * at + 3..6 * at + 6], counts[1])?,
            ],
        };
        Ok(Cell {
            class,
            counts,
            sums,
        })
    }
}

#[cold]
fn beyond(class: u32, n_classes: usize) -> Error {
    Error::malformed(format!("classes must be below {n_classes}, got {class}"))
}

/// The weight of so many rows from its parts.
fn expansion(parts: &[f64], rows: u64) -> Result<Expansion, Error> {
    let parts = <[f64; 3]>::try_from(parts).unwrap_or([f64::NAN; 3]);
    let sum = Expansion::from_parts(parts);
    demand(
        parts.iter().all(|part| part.abs() <= LARGEST_REAL) && parts[0] >= 0.0,
        "weights must be finite and not negative",
    )?;
    demand(
        sum.parts() == parts,
        "the parts of a weight must be in order, each the rounded value of all that is left",
    )?;
    demand(
        (rows > 0) == (parts[0] > 0.0),
        "what has rows must have a weight, and what has a weight must have rows",
    )?;
    Ok(sum)
}

/// Whether Python can decode every word.
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
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, rest @ ..] => rest,
            _ => return false,
        };
    }
    true
}
