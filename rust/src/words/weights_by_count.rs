//! Sets rows of weights from the counts of words: the weight of a word in a class is looked up in a table by the count.

use super::store::{DOCUMENTS, OCCURRENCES, Unit};
use super::weights::{PIECE, RowsToSet, Weights, demand_all_weights};
use super::{Cell, Groups, Words};
use crate::error::{Error, demand};
use crate::threads;
use std::ops::Range;

/// Words whose rows are to be set, and the weight of each count.
#[derive(Clone, Copy, Debug)]
pub struct WeightsByCount<'a> {
    pub words: &'a Words,
    /// The group of texts that is left out, if any, by its number.
    pub left_out: Option<(&'a Groups, usize)>,
    /// The words whose rows are set.
    pub ids: &'a [u32],
    /// Whether documents are counted rather than occurrences.
    pub counts_documents: bool,
    /// Whether the count of a class is that of all other classes together.
    pub is_complement: bool,
    /// The weight of each count: `weight_of_count[n]` for n times; higher counts have none here.
    pub weight_of_count: &'a [f64],
}

/// Some of the words, and their classes and counts.
#[derive(Debug)]
struct Piece<'a> {
    /// As in [`WeightsByCount`].
    is_complement: bool,
    /// As in [`WeightsByCount`].
    weight_of_count: &'a [f64],
    /// The words that are set.
    ids: Vec<u32>,
    /// Where in `classes_and_counts` those of each word end.
    ends: Vec<usize>,
    classes_and_counts: Vec<[u32; 2]>,
    /// The words that have a count without a weight, or one that is not whole.
    unset_ids: Vec<u32>,
}

impl WeightsByCount<'_> {
    /// Sets the rows of the words `ids` in `weights`, on so many threads. Returns the numbers of the words that have a count
    /// without a weight, or one that is not whole; their rows are as before.
    pub fn set(&self, weights: &mut Weights, threads: usize) -> Result<Vec<u32>, Error> {
        self.check()?;
        demand_all_weights(self.weight_of_count)?;
        // Threads that this many words are worth.
        let (n_ids, threads) = (self.ids.len(), threads::worth(threads, self.ids.len()));
        let pieces = threads::ranges(threads, n_ids, PIECE, |range| self.piece(range)); // classes and counts
        weights.set_rows(&pieces, threads)?;
        Ok(pieces.into_iter().flat_map(|piece| piece.unset_ids).collect())
    }

    /// Sets the rows of the words `ids` in `weights`, and removes the rows of words that no text has any more. Returns the
    /// numbers of the words that have a count without a weight, or one that is not whole; their rows are as before.
    pub fn update(&self, weights: &mut Weights) -> Result<Vec<u32>, Error> {
        self.check()?;
        let piece = self.piece(0..self.ids.len());
        weights.follow(&piece)?;
        Ok(piece.unset_ids)
    }

    /// Refuses ids (numbers of words) that are no word's, and a group of texts that does not exist or is one of other words.
    fn check(&self) -> Result<(), Error> {
        let is_word = |&id: &u32| (id as usize) < self.words.n_ids();
        demand(self.ids.iter().all(is_word), "ids must be those of words")?;
        self.left_out.map_or(Ok(()), |(groups, group)| groups.check(self.words, group))
    }

    /// The classes and counts of the words `ids[positions]`, without the group of texts that is left out. No word is set if
    /// counts are parts.
    fn piece(&self, positions: Range<usize>) -> Piece<'_> {
        let ids = &self.ids[positions];
        let n_cells: usize = ids.iter().map(|&id| self.words.cells(id).len()).sum();
        let mut piece = Piece {
            is_complement: self.is_complement,
            weight_of_count: self.weight_of_count,
            ids: Vec::with_capacity(ids.len()),
            ends: Vec::with_capacity(ids.len()),
            classes_and_counts: Vec::with_capacity(n_cells),
            unset_ids: vec![],
        };
        if self.words.unit() == Unit::Part {
            piece.unset_ids = ids.to_vec();
            return piece;
        }
        let which = if self.counts_documents { DOCUMENTS } else { OCCURRENCES }; // position in a cell's counts
        let class_and_count = |cell: Cell| [cell.class, cell.counts[which].0[0] as u32];
        // A reader of the group of texts that is left out.
        let mut left_out = self.left_out.map(|(groups, group)| groups.group(group));
        for &id in ids {
            let start = piece.classes_and_counts.len(); // of the word's classes and counts
            let cells = self.words.cells(id);
            match &mut left_out {
                None => piece.classes_and_counts.extend(cells.map(class_and_count)),
                Some(group) => {
                    let cells = group.cells_without(id, cells);
                    piece.classes_and_counts.extend(cells.map(class_and_count));
                }
            }
            let counts = piece.classes_and_counts[start..].iter().map(|pair| pair[1] as usize);
            // The highest count that may be looked up in `weight_of_count`.
            let highest = if self.is_complement { counts.sum() } else { counts.max().unwrap_or(0) };
            if highest < self.weight_of_count.len() {
                piece.ids.push(id);
                piece.ends.push(piece.classes_and_counts.len());
            } else {
                piece.classes_and_counts.truncate(start);
                piece.unset_ids.push(id);
            }
        }
        piece
    }
}

impl Piece<'_> {
    /// Where in `classes_and_counts` those of the i-th word are; `ends[i]` is where they end.
    #[inline(always)]
    fn range(&self, i: usize) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        start..self.ends[i]
    }

    /// For complement, the counts of the i-th word in all classes together; else 0.
    #[inline(always)]
    fn total(&self, i: usize) -> usize {
        // The class and the count of each cell of the word.
        let pairs = if self.is_complement { &self.classes_and_counts[self.range(i)] } else { &[] };
        pairs.iter().map(|pair| pair[1] as usize).sum()
    }
}

impl RowsToSet for Piece<'_> {
    /// The words that are set.
    fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// How many classes have the i-th word.
    #[inline(always)]
    fn len(&self, i: usize) -> usize {
        self.range(i).len()
    }

    /// The weight of the i-th word in classes that do not have it, and its scale: a token counts 1. For complement, all
    /// occurrences of the word are those of other classes.
    #[inline(always)]
    fn common(&self, i: usize) -> [f64; 2] {
        [self.weight_of_count[self.total(i)], 1.0]
    }

    /// The classes that have the i-th word, and its weight in each: that of its count in the class, or, for complement, of its
    /// count in all other classes together.
    #[inline(always)]
    fn pairs(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let total = self.total(i); // of all classes, for complement
        self.classes_and_counts[self.range(i)].iter().map(move |&[class, class_count]| {
            let other_classes = || total - class_count as usize;
            let count = if self.is_complement { other_classes() } else { class_count as usize };
            (class as usize, self.weight_of_count[count])
        })
    }
}
