//! Which class a row belongs to and what it weighs; the count of rows per class.

use crate::error::{Error, demand};
use crate::integers::{DIGITS, Int, Integers, PARTS};
use crate::threads;
use std::ops::Range;

/// What a row weighs.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    Ones,
    /// Whole numbers: a row counts that many times.
    Whole(&'a [i64]),
    /// Parts of a row, 10^-18 each: the lower limb, then the upper one.
    Parts(&'a [[u64; 2]]),
}

/// The class and weight of each row, checked. Rows of class -1 are not counted.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The class of each row; -1: the row is not counted.
    pub classes: &'a [i32],
    pub n_classes: usize,
    pub weights: Weights<'a>,
}

/// A set of classes for each row: row i has `codes[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a> {
    /// Where the classes of each row begin in `codes`, and the last ones end.
    offsets: &'a [i64],
    /// Numbers of classes, row after row.
    codes: &'a [i32],
}

impl<'a> Sets<'a> {
    /// Refuses offsets that do not rise from 0 to the number of codes, and codes that are no class.
    pub fn new(offsets: &'a [i64], codes: &'a [i32], n_classes: usize) -> Result<Self, Error> {
        let ends = offsets.first() == Some(&0) && offsets.last() == Some(&(codes.len() as i64));
        demand(ends && offsets.is_sorted(), "offsets must rise from 0 to the number of codes")?;
        demand(
            codes.iter().all(|&code| usize::try_from(code).is_ok_and(|code| code < n_classes)),
            "codes must be those of classes",
        )?;
        Ok(Sets { offsets, codes })
    }

    /// How many rows there are.
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

/// Rows per piece, at least. To order 3 million rows by 1,000 classes took 28 ms with 2^16 rows and 30 with 2^20.
const PIECE: usize = 1 << 16;

impl<'a> Rows<'a> {
    /// Checks that classes are -1 .. `n_classes` - 1, and that the weights of counted rows are positive.
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
        // The lowest and the highest class of each piece, at most and at least -1.
        let ends = threads::ranges(threads, classes.len(), PIECE, |range| {
            let piece = classes[range].iter();
            piece.fold((-1, -1), |(low, high): (i32, i32), &c| (low.min(c), high.max(c)))
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

    /// Refuses weights that are not one per row, positive for rows with a class, and small enough to be added up.
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

    /// The weight of a row of weight 1, in the units of [`Rows::weight`].
    pub fn unit(&self) -> u128 {
        match self.weights {
            Weights::Parts(_) => u128::from(PARTS),
            _ => 1,
        }
    }

    /// The weight of a row: in rows, or in parts of a row if weights are parts.
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

    /// The weight of a row, always in parts of a row.
    #[inline(always)]
    pub fn weight_in_parts(&self, row: usize) -> u128 {
        match self.weights {
            Weights::Parts(_) => self.weight(row),
            _ => self.weight(row) * u128::from(PARTS),
        }
    }

    /// Whether every row weighs 1.
    pub fn has_ones(&self) -> bool {
        matches!(self.weights, Weights::Ones)
    }

    /// The decimal digits of the unit of [`Rows::weight`]: weights are numbers of 10^-digits.
    pub fn digits(&self) -> u32 {
        match self.weights {
            Weights::Parts(_) => DIGITS,
            _ => 0,
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.classes.len()
    }
}

/// Sums the weights of the rows of each class, `[class]`, in the units of [`Rows::weight`].
pub fn count_classes(rows: &Rows, threads: usize) -> Vec<i128> {
    let counts = count_pieces(rows, threads);
    let mut total = vec![0; rows.n_classes];
    for (_, piece) in counts {
        total.iter_mut().zip(&piece).for_each(|(a, b)| *a += b);
    }
    total
}

/// Converts weights of rows, numbers of 10^-digits, to an array of this shape.
pub fn counted(counts: &[i128], shape: Vec<usize>, digits: u32) -> Result<Integers, Error> {
    if digits == 0 {
        let whole = counts.iter().map(|&n| n as i64).collect();
        return Ok(Integers::of_i64(shape, whole));
    }
    let ints: Vec<Int<2>> = counts.iter().map(|&n| Int::from(n as u128)).collect();
    Integers::of_wide(shape, digits, &ints)
}

/// Divides the rows into ranges, in order, and sums the weights of each class in every range, `[class]`.
fn count_pieces(rows: &Rows, threads: usize) -> Vec<(Range<usize>, Vec<i128>)> {
    // A piece has many more rows than counts.
    let size = PIECE.max(8 * rows.n_classes);
    let threads = threads::worth(threads, rows.len());
    threads::ranges(threads, rows.len(), size, |range| (range.clone(), count_piece(rows, range)))
}

/// The numbers of the rows of each class, class after class and ascending within a class; and where each class begins, and the last
/// one ends, `[class + 1]`. Weights are ignored.
pub fn by_class(rows: &Rows, threads: usize) -> (Vec<i64>, Vec<i64>) {
    let pieces = count_pieces(&Rows { weights: Weights::Ones, ..*rows }, threads);
    let mut starts = vec![0_i64];
    for class in 0..rows.n_classes {
        let count: i128 = pieces.iter().map(|(_, counts)| counts[class]).sum();
        starts.push(starts[class] + count as i64);
    }
    let mut order = vec![0; starts[rows.n_classes] as usize];
    // Per piece and class: where in `order` its rows go.
    let mut places: Vec<Vec<_>> = pieces.iter().map(|_| vec![]).collect();
    let mut rest = order.as_mut_slice();
    for class in 0..rows.n_classes {
        for ((_, counts), places) in pieces.iter().zip(&mut places) {
            let (mine, others) = rest.split_at_mut(counts[class] as usize);
            places.push(mine.iter_mut());
            rest = others;
        }
    }
    threads::each(threads::worth(threads, rows.len()), &mut places, |i, places| {
        for row in pieces[i].0.clone() {
            if let Ok(class) = usize::try_from(rows.classes[row])
                && let Some(place) = places[class].next()
            {
                *place = row as i64;
            }
        }
    });
    (order, starts)
}

/// Sums the weights of each class in a range of rows, `[class]`.
fn count_piece(rows: &Rows, range: Range<usize>) -> Vec<i128> {
    let mut weights_of_classes = vec![0; rows.n_classes];
    if let Weights::Ones = rows.weights {
        count_ones(&rows.classes[range], &mut weights_of_classes);
        return weights_of_classes;
    }
    for row in range {
        if rows.classes[row] >= 0 {
            weights_of_classes[rows.classes[row] as usize] += rows.weight(row) as i128;
        }
    }
    weights_of_classes
}

/// Writes how many rows have each class to `counts`, `[class]`; rows of class -1 are not counted. Counts in two tables in turn, so
/// that equal neighbours do not wait for each other.
fn count_ones(classes: &[i32], counts: &mut [i128]) {
    // Class -1 has a place too, the first.
    let n_places = counts.len() + 1;
    let mut tables = vec![0_i64; 2 * n_places];
    let (even, odd) = tables.split_at_mut(n_places);
    let pairs = classes.chunks_exact(2);
    for &class in pairs.remainder() {
        even[(class + 1) as usize] += 1;
    }
    for pair in pairs {
        even[(pair[0] + 1) as usize] += 1;
        odd[(pair[1] + 1) as usize] += 1;
    }
    for (class, count) in counts.iter_mut().enumerate() {
        *count += i128::from(even[class + 1] + odd[class + 1]);
    }
}
