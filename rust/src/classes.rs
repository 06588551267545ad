//! Which class a row belongs to and what it weighs; the count of rows per class.

use crate::error::{Error, demand};
use crate::integers::{DIGITS, Int, Integers, PARTS};
use crate::threads;
use std::convert::Infallible;
use std::ops::Range;

/// What a row weighs.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    Ones,
    /// Whole numbers: a row counts that many times.
    Whole(&'a [i64]),
    /// Numbers of parts of a row, 10^-18 each; the lower limb, then the upper one.
    Parts(&'a [[u64; 2]]),
}

/// The class (or -1) and weight of each row, checked.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub classes: &'a [i32],
    pub n_classes: usize,
    pub weights: Weights<'a>,
}

/// Sets of classes, one for each row; row i has `codes[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a> {
    offsets: &'a [i64],
    codes: &'a [i32],
}

impl<'a> Sets<'a> {
    pub fn new(offsets: &'a [i64], codes: &'a [i32], n_classes: usize) -> Result<Self, Error> {
        let ends = offsets.first() == Some(&0) && offsets.last() == Some(&(codes.len() as i64));
        demand(ends && offsets.is_sorted(), "offsets must rise from 0 to the number of codes")?;
        demand(
            codes.iter().all(|&code| usize::try_from(code).is_ok_and(|code| code < n_classes)),
            "codes must be those of classes",
        )?;
        Ok(Sets { offsets, codes })
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The classes of a row.
    #[inline(always)]
    pub fn of(&self, row: usize) -> &'a [i32] {
        &self.codes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

/// All rows together weigh less than this, so that sums of them fit 64 bits.
const HEAVIEST: u128 = 1 << 63;

/// Rows are summed in pieces of this size, combined in order.
const PIECE: usize = 1 << 16;

impl<'a> Rows<'a> {
    /// Checks that every class is -1 .. `n_classes` - 1 and every weight of a counted row positive (and whole, if said so).
    #[cfg(test)]
    pub fn new(classes: &'a [i32], n_classes: usize, weights: Weights<'a>) -> Result<Self, Error> {
        Rows::on(1, classes, n_classes, weights)
    }

    /// [`Rows::new`], checked on that many threads.
    pub fn on(
        threads: usize,
        classes: &'a [i32],
        n_classes: usize,
        weights: Weights<'a>,
    ) -> Result<Self, Error> {
        demand(n_classes <= i32::MAX as usize, "there are more classes than an int32 can number")?;
        let threads = threads::worth(threads, classes.len());
        let ends = threads::map(threads, classes.len().div_ceil(PIECE), |i| {
            let piece = &classes[i * PIECE..classes.len().min((i + 1) * PIECE)];
            piece.iter().fold((-1, -1), |(low, high): (i32, i32), &c| (low.min(c), high.max(c)))
        });
        let (low, high) =
            ends.iter().fold((-1, -1), |(low, high), end| (end.0.min(low), end.1.max(high)));
        if low < -1 || high >= n_classes as i32 {
            let wrong = if low < -1 { low } else { high };
            return Err(Error::malformed(format!(
                "classes must lie between -1 and {}, got {wrong}",
                n_classes as i64 - 1
            )));
        }
        let rows = Rows { classes, n_classes, weights };
        rows.check_weights()?;
        Ok(rows)
    }

    fn check_weights(&self) -> Result<(), Error> {
        let n = match self.weights {
            Weights::Ones => return Ok(()),
            Weights::Whole(weights) => weights.len(),
            Weights::Parts(weights) => weights.len(),
        };
        if n != self.len() {
            return Err(Error::malformed(format!("there are {n} weights for {} rows", self.len())));
        }
        let heaviest = HEAVIEST * self.unit();
        let mut total = 0_u128;
        for (row, &class) in self.classes.iter().enumerate() {
            if class >= 0 {
                let weight = self.weight(row);
                demand(
                    weight > 0 && weight < heaviest,
                    "weights must be positive and below 2**63",
                )?;
                total = total.saturating_add(weight);
            }
        }
        demand(total < heaviest, "weights must add up to less than 2**63")
    }

    /// What a row of weight 1 counts.
    pub fn unit(&self) -> u128 {
        match self.weights {
            Weights::Parts(_) => u128::from(PARTS),
            _ => 1,
        }
    }

    /// What a row counts: in rows, or in parts of a row where weights are.
    #[inline(always)]
    pub fn weight(&self, row: usize) -> u128 {
        match self.weights {
            Weights::Ones => 1,
            Weights::Whole(weights) => weights[row] as u128,
            Weights::Parts(weights) => {
                u128::from(weights[row][1]) << 64 | u128::from(weights[row][0])
            }
        }
    }

    /// The same, always in parts of a row.
    #[inline(always)]
    pub fn weight_in_parts(&self, row: usize) -> u128 {
        match self.weights {
            Weights::Parts(_) => self.weight(row),
            _ => self.weight(row) * u128::from(PARTS),
        }
    }

    pub fn has_ones(&self) -> bool {
        matches!(self.weights, Weights::Ones)
    }

    /// The digits of what rows count.
    pub fn digits(&self) -> u32 {
        match self.weights {
            Weights::Parts(_) => DIGITS,
            _ => 0,
        }
    }

    pub fn len(&self) -> usize {
        self.classes.len()
    }
}

/// Counts the rows of each class, in the units of their weights.
pub fn count_classes(rows: &Rows, threads: usize) -> Vec<i128> {
    let piece = piece_rows(rows);
    let threads = threads::worth(threads, rows.len());
    let counts = threads::map(threads, rows.len().div_ceil(piece), |i| {
        count_piece(rows, i * piece..rows.len().min((i + 1) * piece))
    });
    let mut total = vec![0; rows.n_classes];
    for piece in counts {
        total.iter_mut().zip(&piece).for_each(|(a, b)| *a += b);
    }
    total
}

/// Numbers of rows, or of parts of rows, as an array.
pub fn counted(counts: &[i128], shape: Vec<usize>, digits: u32) -> Result<Integers, Error> {
    if digits == 0 {
        let whole = counts.iter().map(|&n| n as i64).collect();
        return Ok(Integers::whole(shape, whole));
    }
    let ints: Vec<Int<2>> = counts.iter().map(|&n| Int::from(n as u128)).collect();
    Integers::of(shape, digits, &ints)
}

/// Rows per piece: many enough that a piece's counts are few beside them.
fn piece_rows(rows: &Rows) -> usize {
    PIECE.max(8 * rows.n_classes)
}

/// The rows of each class, class after class and within each in order; and where each class begins, then their number. Weights
/// say nothing here.
pub fn by_class(rows: &Rows, threads: usize) -> (Vec<i64>, Vec<i64>) {
    let rows = Rows { weights: Weights::Ones, ..*rows };
    let (piece, threads) = (piece_rows(&rows), threads::worth(threads, rows.len()));
    let range = |i: usize| i * piece..rows.len().min((i + 1) * piece);
    let counts =
        threads::map(threads, rows.len().div_ceil(piece), |i| count_piece(&rows, range(i)));
    let mut starts = vec![0_i64];
    for class in 0..rows.n_classes {
        let count: i128 = counts.iter().map(|counts| counts[class]).sum();
        starts.push(starts[class] + count as i64);
    }
    let mut order = vec![0; starts[rows.n_classes] as usize];
    let mut places: Vec<Vec<_>> = counts.iter().map(|_| vec![]).collect();
    let mut rest = order.as_mut_slice();
    for class in 0..rows.n_classes {
        for (counts, places) in counts.iter().zip(&mut places) {
            let (mine, others) = rest.split_at_mut(counts[class] as usize);
            places.push(mine.iter_mut());
            rest = others;
        }
    }
    let Ok(_) = threads::try_pieces(threads, &mut places, 1, |i, places| {
        for row in range(i) {
            if let Ok(class) = usize::try_from(rows.classes[row])
                && let Some(place) = places[0][class].next()
            {
                *place = row as i64;
            }
        }
        Ok::<_, Infallible>(())
    });
    (order, starts)
}

/// Gives each row the next card of its class's stack, -1 where it has no class; `cards` has the stacks one after the other.
pub fn deal(rows: &Rows, cards: &[i32], threads: usize) -> Result<Vec<i32>, Error> {
    let rows = Rows { weights: Weights::Ones, ..*rows };
    let (piece, threads) = (piece_rows(&rows), threads::worth(threads, rows.len()));
    let range = |i: usize| i * piece..rows.len().min((i + 1) * piece);
    let mut counts =
        threads::map(threads, rows.len().div_ceil(piece), |i| count_piece(&rows, range(i)));
    let mut next = 0;
    for class in 0..rows.n_classes {
        for counts in &mut counts {
            next += std::mem::replace(&mut counts[class], next);
        }
    }
    demand(next == cards.len() as i128, "there must be a card for each row of a class")?;
    let mut dealt = vec![-1; rows.len()];
    threads::try_pieces(threads, &mut dealt, piece, |i, dealt| {
        let mut next: Vec<usize> = counts[i].iter().map(|&at| at as usize).collect();
        for (dealt, &class) in dealt.iter_mut().zip(&rows.classes[range(i)]) {
            if let Ok(class) = usize::try_from(class) {
                *dealt = cards[next[class]];
                next[class] += 1;
            }
        }
        Ok(())
    })?;
    Ok(dealt)
}

fn count_piece(rows: &Rows, range: Range<usize>) -> Vec<i128> {
    let mut found = vec![0; rows.n_classes];
    if let Weights::Ones = rows.weights {
        count_ones(&rows.classes[range], &mut found);
        return found;
    }
    for row in range {
        if rows.classes[row] >= 0 {
            found[rows.classes[row] as usize] += rows.weight(row) as i128;
        }
    }
    found
}

/// A histogram in two alternating tables, so that equal neighbours do not wait for each other.
fn count_ones(classes: &[i32], counts: &mut [i128]) {
    let n = counts.len() + 1;
    let mut tables = vec![0_i64; 2 * n];
    let (even, odd) = tables.split_at_mut(n);
    let pairs = classes.chunks_exact(2);
    for &c in pairs.remainder() {
        even[(c + 1) as usize] += 1;
    }
    for pair in pairs {
        even[(pair[0] + 1) as usize] += 1;
        odd[(pair[1] + 1) as usize] += 1;
    }
    for (c, count) in counts.iter_mut().enumerate() {
        *count += i128::from(even[c + 1] + odd[c + 1]);
    }
}
