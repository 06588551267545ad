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
    /// The sets of classes of rows, where row i has `codes[offsets[i]..offsets[i + 1]]`; an error if offsets do not rise from
    /// 0 to the number of codes, or a code is not that of a class. `codes` are numbers of classes. `n_classes` is the number
    /// of classes.
    pub fn new(offsets: &'a [i64], codes: &'a [i32], n_classes: usize) -> Result<Self, Error> {
        let spans_codes =
            offsets.first() == Some(&0) && offsets.last() == Some(&(codes.len() as i64));
        demand(
            spans_codes && offsets.is_sorted(),
            "offsets must rise from 0 to the number of codes",
        )?;
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

    /// The classes of a row. They are numbers of classes.
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
    /// Rows with these classes and weights; an error unless classes are -1 .. `n_classes` - 1, and the weights of counted rows
    /// positive.
    #[cfg(test)]
    pub fn new(classes: &'a [i32], n_classes: usize, weights: Weights<'a>) -> Result<Self, Error> {
        Rows::on(1, classes, n_classes, weights)
    }

    /// Rows with these classes and weights, checked on so many threads: an error unless classes are -1 (not counted) ..
    /// `n_classes` - 1, and there is a positive weight for each row that is counted. `low` and `high` are the lowest and the
    /// highest class.
    pub fn on(
        threads: usize,
        classes: &'a [i32],
        n_classes: usize,
        weights: Weights<'a>,
    ) -> Result<Self, Error> {
        demand(n_classes <= i32::MAX as usize, "there are more classes than an int32 can number")?;
        let threads = threads::worth(threads, classes.len());
        // The lowest and the highest class of each piece of the rows, at most and at least -1.
        let piece_ends = threads::ranges(threads, classes.len(), PIECE, |range| {
            let piece = classes[range].iter();
            piece
                .fold((-1, -1), |(low, high): (i32, i32), &class| (low.min(class), high.max(class)))
        });
        let (low, high) = piece_ends
            .iter()
            .fold((-1, -1), |(low, high), ends| (ends.0.min(low), ends.1.max(high)));
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
    /// `self.classes` has the class of each row, -1 if none, and `self.weights` what each row weighs: 1, whole numbers of
    /// rows, or parts of a row (10^-18 of it).
    fn check_weights(&self) -> Result<(), Error> {
        let n_weights = match self.weights {
            Weights::Ones => return Ok(()),
            Weights::Whole(weights) => weights.len(),
            Weights::Parts(weights) => weights.len(),
        };
        let n_rows = self.len();
        if n_weights != n_rows {
            return Err(Error::malformed(format!(
                "there are {n_weights} weights for {n_rows} rows"
            )));
        }
        // The limit for weights and their sum, and the sum: both in rows, or in parts of a row if weights are parts.
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

    /// What a row of weight 1 weighs in the units of [`Rows::weight`]: 1, or 10^18 if weights are parts of a row, which are
    /// 10^-18 rows.
    pub fn unit(&self) -> u128 {
        match self.weights {
            Weights::Parts(_) => u128::from(PARTS),
            _ => 1,
        }
    }

    /// The weight of a row: in rows, or in parts of a row if weights are parts. `self.weights` has those of all rows; parts
    /// are two limbs of 64 bits, the lower one first. A part is 10^-18 rows.
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

    /// The weight of a row, always in parts of a row. A part is 10^-18 rows.
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

    /// The decimal digits of the unit of [`Rows::weight`]: weights are numbers of 10^-digits. Weights are in rows (no
    /// digits), or in parts of a row.
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

/// Sums the weights of the rows of each class, `[class]`, in the units of [`Rows::weight`]. These are rows, or parts of a row
/// (10^-18 of it) if weights are parts. At most `threads` threads are used.
pub fn count_classes(rows: &Rows, threads: usize) -> Vec<i128> {
    let mut totals = vec![0; rows.n_classes];
    for (_, piece_weights) in count_pieces(rows, threads) {
        totals.iter_mut().zip(&piece_weights).for_each(|(total, weight)| *total += weight);
    }
    totals
}

/// Converts weights of rows, in units of 10^-digits of a row, to an array of this shape, cell by cell. `weights` has one per
/// cell; parts are 10^-18 rows.
pub fn counted(weights: &[i128], shape: Vec<usize>, digits: u32) -> Result<Integers, Error> {
    if digits == 0 {
        let in_rows = weights.iter().map(|&weight| weight as i64).collect();
        return Ok(Integers::of_i64(shape, in_rows));
    }
    let in_parts: Vec<Int<2>> = weights.iter().map(|&weight| Int::from(weight as u128)).collect();
    Integers::of_wide(shape, digits, &in_parts)
}

/// Divides the rows into ranges, in order. Returns each range with the sums of the weights of its rows, `[class]`, in the
/// units of [`Rows::weight`]. These are rows, or parts of a row if weights are parts. `size` is the number of rows of a
/// range. At most `threads` threads are used.
fn count_pieces(rows: &Rows, threads: usize) -> Vec<(Range<usize>, Vec<i128>)> {
    // A piece has many more rows than counts.
    let size = PIECE.max(8 * rows.n_classes);
    let threads = threads::worth(threads, rows.len());
    threads::ranges(threads, rows.len(), size, |range| (range.clone(), count_piece(rows, range)))
}

/// The numbers of the rows of each class, class after class and ascending within a class; and where each class begins, and
/// the last one ends, `[class + 1]`. Weights are ignored. `rows` has the class of each row, -1 if none. At most `threads`
/// threads are used.
pub fn by_class(rows: &Rows, threads: usize) -> (Vec<i64>, Vec<i64>) {
    // Each piece is a range of rows, and how many of them each class has. `starts` is where each class begins in `order`,
    // which has the numbers of the rows.
    let pieces = count_pieces(&Rows { weights: Weights::Ones, ..*rows }, threads);
    let mut starts = vec![0_i64];
    for class in 0..rows.n_classes {
        let count: i128 = pieces.iter().map(|(_, counts)| counts[class]).sum();
        starts.push(starts[class] + count as i64);
    }
    let mut order = vec![0; starts[rows.n_classes] as usize];
    // Where in `order` the rows of a piece and class go, [piece][class].
    let mut places: Vec<Vec<_>> = pieces.iter().map(|_| vec![]).collect();
    let mut later_places = order.as_mut_slice(); // those of later classes and pieces
    for class in 0..rows.n_classes {
        for ((_, counts), places) in pieces.iter().zip(&mut places) {
            let (class_places, still_later_places) =
                later_places.split_at_mut(counts[class] as usize);
            places.push(class_places.iter_mut());
            later_places = still_later_places;
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

/// Sums the weights of the rows of each class in a range of rows, `[class]`, in the units of [`Rows::weight`]. These are
/// rows, or parts of a row if weights are parts; rows of class -1 are not counted.
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

/// Writes how many rows have each class to `counts`, `[class]`; rows of class -1 are not counted. Counts in two tables in
/// turn, so that equal neighbours do not wait for each other. `classes` has the class of each row.
fn count_ones(classes: &[i32], counts: &mut [i128]) {
    // Counts of every other row, [class + 1]: class -1 comes first.
    let mut even = vec![0_i64; counts.len() + 1];
    let mut odd = even.clone();
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
