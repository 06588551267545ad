//! A store as arrays, for files: the same sums are the same arrays, and no others are accepted.

use super::algebra::LARGEST_REAL;
use super::index::{Index, Names, Vocabulary};
use super::store::{Cell, Cells, Sums};
use super::{TOO_LARGE, Total, Words};
use crate::error::{Error, demand};
use crate::expansion::Expansion;

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
    fn lens(&self) -> [usize; 2] {
        match self {
            Numbers::Narrow(occurrences, documents) => [occurrences.len(), documents.len()],
            Numbers::Wide(occurrences, documents) => [occurrences.len(), documents.len()],
        }
    }

    /// None: a number is negative.
    fn get(&self, at: usize) -> Option<[u64; 2]> {
        match self {
            Numbers::Narrow(occurrences, documents) => {
                Some([occurrences[at], documents[at]].map(u64::from))
            }
            Numbers::Wide(occurrences, documents) => Some([
                u64::try_from(occurrences[at]).ok()?,
                u64::try_from(documents[at]).ok()?,
            ]),
        }
    }

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
        if let Vocabulary::Named { index, .. } = &vocabulary {
            state.slots = Some(index.ids());
        }
        state
    }

    /// The store that has this state; refuses what no store has.
    pub fn from_state(n_classes: usize, buckets: usize, state: &State) -> Result<Words, Error> {
        let mut words = Words::new(n_classes, buckets)?;
        words.texts = state.totals(n_classes)?;
        words.vocabulary = state.vocabulary(buckets)?;
        words.read_cells(state)?;
        Ok(words)
    }

    fn read_cells(&mut self, state: &State) -> Result<(), Error> {
        let n_cells = state.check_cells(self.n_ids())?;
        let wide = matches!(state.counts, Numbers::Wide(..));
        let real = state.sums.is_some();
        self.cells = Cells::with_room(self.n_ids(), n_cells, wide, real);
        let mut total = 0_u64;
        for range in state.starts.windows(2) {
            let mut next_class = 0;
            let mut cells = vec![];
            for at in range[0] as usize..range[1] as usize {
                let cell = state.cell(at, &self.texts)?;
                demand(
                    cell.class >= next_class,
                    "the classes of a word must ascend",
                )?;
                next_class = cell.class + 1;
                total = total.saturating_add(cell.counts[0]);
                demand(
                    total < TOO_LARGE,
                    "there are more than 2**63 - 1 occurrences",
                )?;
                for (i, total) in self.totals[cell.class as usize].iter_mut().enumerate() {
                    total.rows += cell.counts[i];
                    total.weight.merge(&cell.sums[i]);
                }
                cells.push(cell);
            }
            demand(!cells.is_empty(), "a word must be in some text")?;
            self.cells.push(cells.into_iter());
        }
        demand(
            wide == (total > u64::from(u32::MAX)),
            "counts must be 32 bits wide as long as all occurrences fit, and 64 then",
        )
    }
}

impl State {
    fn totals(&self, n_classes: usize) -> Result<Vec<Total>, Error> {
        let weights = self.text_weights.as_deref();
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
            bytes: self.bytes.clone(),
            ends: self.ends.iter().map(|&end| end as usize).collect(),
        };
        demand(
            names.iter().is_sorted_by(|a, b| a < b),
            "words must be in the order of their bytes, each once",
        )?;
        demand(names.iter().all(is_text), "words must be UTF-8")?;
        if buckets > 0 {
            demand(self.slots.is_none(), "words that are buckets have no slots")?;
            let mut vocabulary = Vocabulary::new(buckets);
            for name in names.iter() {
                vocabulary.add_name(name)?;
            }
            return Ok(vocabulary);
        }
        let slots = self.slots.as_deref().unwrap_or(&[]);
        match Index::from_ids(slots, &names) {
            Some(index) => Ok(Vocabulary::Named { index, names }),
            None => Err(Error::malformed(
                "slots must be the index of the words: a power of two of them, each word in one that leads to it",
            )),
        }
    }

    fn check_cells(&self, n_words: usize) -> Result<usize, Error> {
        let n = self.classes.len();
        demand(
            self.starts.len() == n_words + 1
                && self.starts[0] == 0
                && self.starts.is_sorted()
                && self.starts[n_words] as usize == n,
            "starts must ascend from 0 to the number of cells, one more than there are words",
        )?;
        demand(
            self.counts.lens() == [n, n]
                && self.sums.as_ref().is_none_or(|sums| sums.len() == 6 * n),
            "each cell must have a class, occurrences and documents (and, if sums are real, both as weights)",
        )?;
        Ok(n)
    }

    fn cell(&self, at: usize, texts: &[Total]) -> Result<Cell, Error> {
        let class = self.classes[at];
        let Some(texts) = texts.get(class as usize) else {
            return Err(Error::malformed(format!(
                "classes must be below {}, got {class}",
                texts.len()
            )));
        };
        let counts = self.counts.get(at).unwrap_or([0, 0]);
        demand(counts[1] > 0, "each cell must have documents")?;
        let sums = match &self.sums {
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
