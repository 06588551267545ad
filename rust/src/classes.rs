//! Which class a row belongs to and what it weighs; the count of rows per class.

use crate::error::{Error, demand};
use crate::expansion::Expansion;
use crate::threads;

/// What a row weighs.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    Ones,
    /// Whole numbers: a row counts that many times.
    Whole(&'a [f64]),
    /// A row counts once, and its weight is summed beside it.
    Real(&'a [f64]),
}

/// The class (or -1) and weight of each row, checked.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub classes: &'a [i32],
    pub n_classes: usize,
    pub weights: Weights<'a>,
}

/// Sums of weights beyond this are refused, so that no sum of them overflows.
const HEAVIEST: f64 = f64::from_bits((1023 + 500) << 52); // 2^500
const MOST_ROWS: f64 = 9.007199254740992e15; // 2^53

/// Rows are summed in pieces of this size, combined in order.
const PIECE: usize = 1 << 16;

impl<'a> Rows<'a> {
    /// Checks that every class is -1 .. `n_classes` - 1 and every weight of a counted row positive (and whole, if said so).
    pub fn new(classes: &'a [i32], n_classes: usize, weights: Weights<'a>) -> Result<Self, Error> {
        demand(
            n_classes <= i32::MAX as usize,
            "there are more classes than an int32 can number",
        )?;
        let (low, high) = classes
            .iter()
            .fold((-1, -1), |(low, high): (i32, i32), &c| {
                (low.min(c), high.max(c))
            });
        if low < -1 || high >= n_classes as i32 {
            let wrong = if low < -1 { low } else { high };
            return Err(Error::malformed(format!(
                "classes must lie between -1 and {}, got {wrong}",
                n_classes as i64 - 1
            )));
        }
        let rows = Rows {
            classes,
            n_classes,
            weights,
        };
        rows.check_weights()?;
        Ok(rows)
    }

    fn check_weights(&self) -> Result<(), Error> {
        let (Weights::Whole(weights) | Weights::Real(weights)) = self.weights else {
            return Ok(());
        };
        if weights.len() != self.classes.len() {
            return Err(Error::malformed(format!(
                "there are {} weights for {} rows",
                weights.len(),
                self.classes.len()
            )));
        }
        let whole = matches!(self.weights, Weights::Whole(_));
        let mut total = 0.0;
        for (&w, &c) in weights.iter().zip(self.classes) {
            if c >= 0 {
                if !(w > 0.0 && w < HEAVIEST) {
                    return Err(Error::malformed(format!(
                        "weights must be positive and below 2**500, got {w}"
                    )));
                }
                if whole && w != w.trunc() {
                    return Err(Error::malformed(format!(
                        "weights must be whole numbers, got {w}"
                    )));
                }
                total += w;
            }
        }
        demand(
            !whole || total <= MOST_ROWS,
            "whole weights must add up to 2**53 at most",
        )
    }

    pub fn len(&self) -> usize {
        self.classes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }
}

/// Rows per class, and with real weights their sum per class.
#[derive(Debug)]
pub struct ClassCounts {
    pub rows: Vec<i64>,
    pub weights: Vec<Expansion>,
}

/// Counts the rows of each class.
pub fn count_classes(rows: &Rows, threads: usize) -> ClassCounts {
    let pieces = rows.len().div_ceil(PIECE);
    let threads = threads::worth(threads, rows.len());
    let counts = threads::map(threads, pieces, |i| {
        count_piece(rows, i * PIECE, rows.len().min((i + 1) * PIECE))
    });
    let mut total = count_piece(rows, 0, 0);
    for piece in counts {
        total
            .rows
            .iter_mut()
            .zip(&piece.rows)
            .for_each(|(a, b)| *a += b);
        total
            .weights
            .iter_mut()
            .zip(&piece.weights)
            .for_each(|(a, b)| a.merge(b));
    }
    total
}

/// The rows of each class, class after class and within each in order; and where each class begins, then their number.
pub fn by_class(rows: &Rows) -> (Vec<i64>, Vec<i64>) {
    let counts = count_classes(rows, 1).rows;
    let mut starts = vec![0_i64];
    for count in counts {
        starts.push(starts[starts.len() - 1] + count);
    }
    let mut next = starts.clone();
    let mut order = vec![0; starts[rows.n_classes] as usize];
    for (row, &class) in (0..).zip(rows.classes) {
        if class >= 0 {
            let next = &mut next[class as usize];
            order[*next as usize] = row;
            *next += 1;
        }
    }
    (order, starts)
}

fn count_piece(rows: &Rows, from: usize, to: usize) -> ClassCounts {
    let classes = &rows.classes[from..to];
    let mut found = ClassCounts {
        rows: vec![0; rows.n_classes],
        weights: vec![],
    };
    match rows.weights {
        Weights::Ones => count_ones(classes, &mut found.rows),
        Weights::Whole(weights) => {
            for (&c, &w) in classes.iter().zip(&weights[from..to]) {
                if c >= 0 {
                    found.rows[c as usize] += w as i64;
                }
            }
        }
        Weights::Real(weights) => {
            count_ones(classes, &mut found.rows);
            found.weights = vec![Expansion::default(); rows.n_classes];
            for (&c, &w) in classes.iter().zip(&weights[from..to]) {
                if c >= 0 {
                    found.weights[c as usize].add(w);
                }
            }
        }
    }
    found
}

/// A histogram in two alternating tables, so that equal neighbours do not wait for each other.
fn count_ones(classes: &[i32], counts: &mut [i64]) {
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
        *count += even[c + 1] + odd[c + 1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_weights_per_class() {
        let classes = [0, 2, -1, 2, 2];
        let ones = Rows::new(&classes, 3, Weights::Ones).unwrap();
        assert_eq!(count_classes(&ones, 1).rows, [1, 0, 3]);
        let weights = [1.0, 2.0, 9.0, 3.0, 4.0];
        let whole = Rows::new(&classes, 3, Weights::Whole(&weights)).unwrap();
        assert_eq!(count_classes(&whole, 1).rows, [1, 0, 9]);
        let real = Rows::new(&classes, 3, Weights::Real(&weights)).unwrap();
        let found = count_classes(&real, 1);
        assert_eq!(found.rows, [1, 0, 3]);
        assert_eq!(found.weights[2].parts(), [9.0, 0.0, 0.0]);
    }

    #[test]
    fn rows_by_class() {
        let classes = [2, 0, -1, 2, 0];
        let rows = Rows::new(&classes, 4, Weights::Ones).unwrap();
        assert_eq!(by_class(&rows), (vec![1, 4, 0, 3], vec![0, 2, 2, 4, 4]));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Rows::new(&[3], 3, Weights::Ones).is_err());
        assert!(Rows::new(&[-2], 3, Weights::Ones).is_err());
        assert!(Rows::new(&[0], 0, Weights::Ones).is_err());
        assert!(Rows::new(&[0], 1, Weights::Real(&[])).is_err());
        for w in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Rows::new(&[0], 1, Weights::Real(&[w])).is_err());
            assert!(Rows::new(&[-1], 1, Weights::Real(&[w])).is_ok());
        }
        assert!(Rows::new(&[0], 1, Weights::Whole(&[1.5])).is_err());
    }
}
