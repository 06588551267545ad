//! Sets rows of weights from the counts of words: the weight of a word in a class is looked up in a table by the count.

use super::store::Unit;
use super::weights::{PIECE, Rows, Weights, demand_all_weights};
use super::{Groups, Words};
use crate::error::{Error, demand};
use crate::threads;
use std::ops::Range;

/// Counts of words, and the weight of each count.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    pub words: &'a Words,
    /// The group of texts that is left out, if any.
    pub without: Option<(&'a Groups, usize)>,
    /// The words whose rows are set.
    pub ids: &'a [u32],
    /// Whether documents count rather than occurrences.
    pub once: bool,
    /// Whether the count of a class is that of all other classes together (complement).
    pub others: bool,
    /// The weight of each count: `values[n]` for n times; higher counts have none here.
    pub values: &'a [f64],
}

/// Some of the words, and their classes and counts.
#[derive(Debug)]
struct Piece<'a> {
    /// As in [`Counted`].
    others: bool,
    /// As in [`Counted`].
    values: &'a [f64],
    /// The words that are set.
    ids: Vec<u32>,
    /// Where in `cells` those of each word end.
    ends: Vec<usize>,
    /// Class and count.
    cells: Vec<[u32; 2]>,
    /// The words that have a count without a weight, or one that is not whole.
    left: Vec<u32>,
}

impl Counted<'_> {
    /// Sets the rows of words in `weights`. Returns the words that have a count without a weight, whose rows are as before.
    pub fn set(&self, weights: &mut Weights, threads: usize) -> Result<Vec<u32>, Error> {
        self.check()?;
        demand_all_weights(self.values)?;
        let (n_ids, threads) = (self.ids.len(), threads::worth(threads, self.ids.len()));
        let pieces = threads::ranges(threads, n_ids, PIECE, |range| self.piece(range));
        weights.set_rows(&pieces, threads)?;
        Ok(pieces.into_iter().flat_map(|piece| piece.left).collect())
    }

    /// [`Counted::set`], which also takes the rows of words away that no text has any more.
    pub fn update(&self, weights: &mut Weights) -> Result<Vec<u32>, Error> {
        self.check()?;
        let piece = self.piece(0..self.ids.len());
        weights.follow(&piece)?;
        Ok(piece.left)
    }

    /// Refuses ids that are no word's, and a group that does not exist or is one of other words.
    fn check(&self) -> Result<(), Error> {
        let known = |&id: &u32| (id as usize) < self.words.n_ids();
        demand(self.ids.iter().all(known), "ids must be those of words")?;
        self.without.map_or(Ok(()), |(groups, group)| groups.check(self.words, group))
    }

    /// The counts of the words `ids[at]`, without the group that is left out. All words are left if counts are parts.
    fn piece(&self, at: Range<usize>) -> Piece<'_> {
        let ids = &self.ids[at];
        let n_cells: usize = ids.iter().map(|&id| self.words.cells.n_cells(id as usize)).sum();
        let mut piece = Piece {
            others: self.others,
            values: self.values,
            ids: Vec::with_capacity(ids.len()),
            ends: Vec::with_capacity(ids.len()),
            cells: Vec::with_capacity(n_cells),
            left: vec![],
        };
        if self.words.unit() == Unit::Part {
            piece.left = ids.to_vec();
            return piece;
        }
        // 0: occurrences; 1: documents.
        let which = usize::from(self.once);
        let mut gone = self.without.map(|(groups, group)| groups.group(group));
        for &id in ids {
            let (start, counts_of_classes) =
                (piece.cells.len(), self.words.cells.narrow(id as usize));
            let gone = gone.as_mut().and_then(|gone| gone.find(id));
            match gone {
                None => piece
                    .cells
                    .extend(counts_of_classes.map(|(class, counts)| [class, counts[which]])),
                Some((gone, at)) => {
                    let left = left(counts_of_classes, gone.narrow(at));
                    piece.cells.extend(left.map(|(class, counts)| [class, counts[which]]));
                }
            }
            let counts = piece.cells[start..].iter().map(|cell| cell[1] as usize);
            let highest = if self.others { counts.sum() } else { counts.max().unwrap_or(0) };
            if highest < self.values.len() {
                piece.ids.push(id);
                piece.ends.push(piece.cells.len());
            } else {
                piece.cells.truncate(start);
                piece.left.push(id);
            }
        }
        piece
    }
}

impl Piece<'_> {
    /// Where in `cells` those of the i-th word are.
    #[inline(always)]
    fn range(&self, i: usize) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        start..self.ends[i]
    }

    /// The counts of all classes of the i-th word together, for complement; else 0.
    #[inline(always)]
    fn total(&self, i: usize) -> usize {
        let cells = if self.others { &self.cells[self.range(i)] } else { &[] };
        cells.iter().map(|cell| cell[1] as usize).sum()
    }
}

impl Rows for Piece<'_> {
    /// The words that are set.
    fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// How many classes have the i-th word.
    #[inline(always)]
    fn len(&self, i: usize) -> usize {
        self.range(i).len()
    }

    /// The weight of the i-th word in classes that do not have it, and that a token counts 1. For complement, all its occurrences
    /// are those of other classes.
    #[inline(always)]
    fn common(&self, i: usize) -> [f64; 2] {
        [self.values[self.total(i)], 1.0]
    }

    /// The classes that have the i-th word, and its weight in each.
    #[inline(always)]
    fn pairs(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let (cells, total) = (self.cells[self.range(i)].iter(), self.total(i));
        cells.map(move |&[class, count]| {
            let counted = if self.others { total - count as usize } else { count as usize };
            (class as usize, self.values[counted])
        })
    }
}

/// A word's cells minus those of a group, `gone`, without cells that have no occurrences or no documents left. Each is a class with
/// its occurrences and documents, in the order of classes.
#[inline(always)]
fn left<'a>(
    own: impl Iterator<Item = (u32, [u32; 2])> + 'a,
    gone: impl Iterator<Item = (u32, [u32; 2])> + 'a,
) -> impl Iterator<Item = (u32, [u32; 2])> + 'a {
    let mut gone = gone.peekable();
    own.filter_map(move |(class, counts)| {
        let [gone_occurrences, gone_documents] =
            gone.next_if(|gone| gone.0 == class).map_or([0, 0], |(_, counts)| counts);
        let left =
            [counts[0].saturating_sub(gone_occurrences), counts[1].saturating_sub(gone_documents)];
        (left[0] > 0 && left[1] > 0).then_some((class, left))
    })
}
