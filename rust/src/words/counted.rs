//! Counts of words straight to rows of weights: a number that was counted stands for its value in a table.

use super::store::Unit;
use super::weights::{PIECE, Rows, Weights, demand_all_weights};
use super::{Groups, Words};
use crate::error::{Error, demand};
use crate::threads;
use std::ops::Range;

/// What words were counted, and what that makes of them.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    pub words: &'a Words,
    /// A group of the texts that is left out, if any.
    pub without: Option<(&'a Groups, usize)>,
    pub ids: &'a [u32],
    /// Whether documents count, and not occurrences.
    pub once: bool,
    /// Whether a class has the value of what all others count together, and not of what it counts itself.
    pub others: bool,
    /// By count.
    pub values: &'a [f64],
}

/// Some of the words, and their classes and counts.
#[derive(Debug)]
struct Piece<'a> {
    others: bool,
    values: &'a [f64],
    ids: Vec<u32>,
    ends: Vec<usize>,
    cells: Vec<[u32; 2]>,
    /// The words of which a count has no value.
    left: Vec<u32>,
}

impl Counted<'_> {
    /// Gives rows to words that have none. Gives those that have no values here: they still have none.
    pub fn set(&self, weights: &mut Weights, threads: usize) -> Result<Vec<u32>, Error> {
        self.check()?;
        demand_all_weights(self.values)?;
        let (n, threads) = (self.ids.len(), threads::worth(threads, self.ids.len()));
        let pieces = threads::map(threads, n.div_ceil(PIECE), |i| {
            self.piece(i * PIECE..n.min((i + 1) * PIECE))
        });
        weights.set_first(&pieces, threads)?;
        Ok(pieces.into_iter().flat_map(|piece| piece.left).collect())
    }

    /// The same of words that may have a row: it is brought up to date, and taken away where no text has the word any more.
    pub fn update(&self, weights: &mut Weights) -> Result<Vec<u32>, Error> {
        self.check()?;
        let piece = self.piece(0..self.ids.len());
        weights.follow(&piece)?;
        Ok(piece.left)
    }

    fn check(&self) -> Result<(), Error> {
        let known = |&id: &u32| (id as usize) < self.words.n_ids();
        demand(self.ids.iter().all(known), "ids must be those of words")?;
        self.without.map_or(Ok(()), |(groups, group)| groups.check(self.words, group))
    }

    /// The words at these places.
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
        let which = usize::from(self.once);
        let mut gone = self.without.map(|(groups, group)| groups.group(group));
        for &id in ids {
            let (start, own) = (piece.cells.len(), self.words.cells.narrow(id as usize));
            let gone = gone.as_mut().and_then(|gone| gone.find(id));
            match gone {
                None => piece.cells.extend(own.map(|(class, counts)| [class, counts[which]])),
                Some((gone, at)) => {
                    let left = left(own, gone.narrow(at));
                    piece.cells.extend(left.map(|(class, counts)| [class, counts[which]]));
                }
            }
            let counts = piece.cells[start..].iter().map(|cell| cell[1] as usize);
            let most = if self.others { counts.sum() } else { counts.max().unwrap_or(0) };
            if most < self.values.len() {
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
    #[inline(always)]
    fn range(&self, i: usize) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        start..self.ends[i]
    }

    /// What all classes of a word count together, where that matters.
    #[inline(always)]
    fn total(&self, i: usize) -> usize {
        let cells = if self.others { &self.cells[self.range(i)] } else { &[] };
        cells.iter().map(|cell| cell[1] as usize).sum()
    }
}

impl Rows for Piece<'_> {
    fn ids(&self) -> &[u32] {
        &self.ids
    }

    #[inline(always)]
    fn len(&self, i: usize) -> usize {
        self.range(i).len()
    }

    #[inline(always)]
    fn common(&self, i: usize) -> [f64; 2] {
        [self.values[self.total(i)], 1.0]
    }

    #[inline(always)]
    fn pairs(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let (cells, total) = (self.cells[self.range(i)].iter(), self.total(i));
        cells.map(move |&[class, count]| {
            let counted = if self.others { total - count as usize } else { count as usize };
            (class as usize, self.values[counted])
        })
    }
}

/// What is left of a word's cells: none of occurrences and documents without the other.
#[inline(always)]
fn left<'a>(
    own: impl Iterator<Item = (u32, [u32; 2])> + 'a,
    gone: impl Iterator<Item = (u32, [u32; 2])> + 'a,
) -> impl Iterator<Item = (u32, [u32; 2])> + 'a {
    let mut gone = gone.peekable();
    own.filter_map(move |(class, counts)| {
        let [n, d] = gone.next_if(|gone| gone.0 == class).map_or([0, 0], |(_, counts)| counts);
        let left = [counts[0].saturating_sub(n), counts[1].saturating_sub(d)];
        (left[0] > 0 && left[1] > 0).then_some((class, left))
    })
}
