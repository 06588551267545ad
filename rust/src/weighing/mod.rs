//! Weighed evidence: passes over rows whose columns were turned into cells.
//!
//! A term looks up a row's cell in one column, or in a pair of them; a table then has numbers for each cell. What is summed
//! over rows is summed piece by piece, in order, so that the bits do not depend on the number of threads.

pub mod ascent;
pub mod pairs;
pub mod texts;

use crate::error::{Error, demand};
use crate::threads;
use std::ops::Range;

/// Rows of a piece.
const PIECE: usize = 1 << 12;

/// The cells of rows, `[row][column]`.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    codes: &'a [u32],
    width: usize,
}

impl<'a> Cells<'a> {
    pub fn new(codes: &'a [u32], width: usize) -> Result<Self, Error> {
        demand(width > 0 && codes.len().is_multiple_of(width), "codes must be rows × columns")?;
        Ok(Cells { codes, width })
    }

    pub fn rows(&self) -> usize {
        self.codes.len() / self.width
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &'a [u32] {
        &self.codes[row * self.width..(row + 1) * self.width]
    }

    /// One more than the highest code of each column.
    fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.width];
        for row in self.codes.chunks_exact(self.width) {
            for (size, &code) in sizes.iter_mut().zip(row) {
                *size = (*size).max(code as usize + 1);
            }
        }
        sizes
    }
}

/// Where a term finds its cell: `first` of one column's code, plus `second` of another's.
#[derive(Clone, Copy, Debug)]
pub struct Term<'a> {
    pub column: usize,
    pub first: &'a [u32],
    pub other: Option<(usize, &'a [u32])>,
}

impl Term<'_> {
    #[inline(always)]
    fn cell(&self, codes: &[u32]) -> u32 {
        let cell = self.first[codes[self.column] as usize];
        match self.other {
            Some((column, map)) => cell + map[codes[column] as usize],
            None => cell,
        }
    }
}

/// Rows and terms that fit them: every cell of a term is one of its table.
#[derive(Debug)]
pub struct Lookups<'a> {
    cells: Cells<'a>,
    terms: Vec<Term<'a>>,
    /// The first cell of each term among those of all, then their number.
    starts: Vec<usize>,
}

impl<'a> Lookups<'a> {
    pub fn new(cells: Cells<'a>, terms: Vec<Term<'a>>, sizes: &[i64]) -> Result<Self, Error> {
        let highest = |map: &[u32]| map.iter().max().map_or(0, |&cell| cell as usize);
        let known = cells.sizes();
        let covers =
            |column: usize, map: &[u32]| column < cells.width && map.len() >= known[column];
        demand(terms.len() == sizes.len(), "sizes must have one entry per term")?;
        let mut starts = vec![0];
        for (term, &size) in terms.iter().zip(sizes) {
            let mut fits = covers(term.column, term.first);
            let mut last = highest(term.first);
            if let Some((column, map)) = term.other {
                fits &= covers(column, map);
                last += highest(map);
            }
            demand(fits, "a term must have a cell for every code of its columns")?;
            demand(size > 0 && last < size as usize, "a term's cells must be below its size")?;
            starts.push(starts[starts.len() - 1] + size as usize);
        }
        Ok(Lookups { cells, terms, starts })
    }

    pub fn rows(&self) -> usize {
        self.cells.rows()
    }

    pub fn terms(&self) -> usize {
        self.terms.len()
    }

    /// The cells of all terms.
    pub fn size(&self) -> usize {
        self.starts[self.terms.len()]
    }

    /// A row's cell of a term, among those of all.
    #[inline(always)]
    pub fn cell(&self, term: usize, row: usize) -> usize {
        self.starts[term] + self.terms[term].cell(self.cells.row(row)) as usize
    }

    /// The same of every term.
    #[inline(always)]
    fn find(&self, row: usize, out: &mut [u32]) {
        let codes = self.cells.row(row);
        for ((term, &start), out) in self.terms.iter().zip(&self.starts).zip(out) {
            *out = start as u32 + term.cell(codes);
        }
    }
}

/// Evidence tables with the weight of each term: `[cell][class]`, or `[cell][own class][class]` where a row is left out.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    pub table: &'a [f64],
    pub weights: &'a [f64],
    pub intercepts: &'a [f64],
    /// The class of each row, whose own row of a table is looked up; none where rows were never counted.
    pub own: Option<&'a [i32]>,
}

impl Evidence<'_> {
    fn check(&self, lookups: &Lookups) -> Result<(), Error> {
        let classes = self.intercepts.len();
        let rows = if self.own.is_some() { classes } else { 1 };
        demand(classes > 0, "there must be a class")?;
        demand(self.weights.len() == lookups.terms(), "there must be a weight for each term")?;
        demand(
            self.table.len() == lookups.size() * rows * classes,
            "the table must have all cells",
        )?;
        check_labels(self.own.unwrap_or(&[]), classes)?;
        demand(self.own.is_none_or(|own| own.len() == lookups.rows()), "each row must have a label")
    }

    #[inline(always)]
    fn of(&self, cell: u32, row: usize) -> &[f64] {
        let classes = self.intercepts.len();
        let at = match self.own {
            Some(own) => cell as usize * classes + own[row] as usize,
            None => cell as usize,
        } * classes;
        &self.table[at..at + classes]
    }
}

fn check_labels(labels: &[i32], classes: usize) -> Result<(), Error> {
    let known = labels.iter().all(|&label| (0..classes as i64).contains(&i64::from(label)));
    demand(known, "labels must be classes")
}

/// Weighed evidence of each row, `[row][class]`.
pub fn scores(lookups: &Lookups, evidence: &Evidence, threads: usize) -> Result<Vec<f64>, Error> {
    evidence.check(lookups)?;
    let classes = evidence.intercepts.len();
    let mut out = vec![0.0; lookups.rows() * classes];
    let threads = threads::worth(threads, lookups.rows() * lookups.terms());
    threads::try_pieces(threads, &mut out, PIECE * classes, |i, out| {
        let mut cells = vec![0; lookups.terms()];
        for (at, out) in out.chunks_exact_mut(classes).enumerate() {
            let row = i * PIECE + at;
            lookups.find(row, &mut cells);
            out.copy_from_slice(evidence.intercepts);
            for (&cell, &weight) in cells.iter().zip(evidence.weights) {
                let says = evidence.of(cell, row);
                out.iter_mut().zip(says).for_each(|(sum, says)| *sum += weight * says);
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// The loss of all rows under the weights, and its slope along each weight and intercept.
pub fn slope(
    lookups: &Lookups,
    evidence: &Evidence,
    row_weights: &[f64],
    threads: usize,
) -> Result<(f64, Vec<f64>), Error> {
    evidence.check(lookups)?;
    let (n, terms, classes) = (lookups.rows(), lookups.terms(), evidence.intercepts.len());
    let Some(own) = evidence.own else {
        return Err(Error::malformed("a loss is of rows with labels"));
    };
    demand(row_weights.len() == n, "each row must have a weight")?;
    let threads = threads::worth(threads, n * terms);
    let pieces = threads::map(threads, n.div_ceil(PIECE), |i| {
        let rows = i * PIECE..n.min((i + 1) * PIECE);
        match classes {
            2 => piece::<2>(lookups, evidence, own, row_weights, rows),
            3 => piece::<3>(lookups, evidence, own, row_weights, rows),
            _ => piece::<0>(lookups, evidence, own, row_weights, rows),
        }
    });
    let mut total = (0.0, vec![0.0; terms + classes]);
    for (loss, slopes) in pieces {
        total.0 += loss;
        total.1.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
    }
    Ok(total)
}

/// The sums of some rows; `CLASSES` of them, or any number where it is 0.
#[inline(always)]
fn piece<const CLASSES: usize>(
    lookups: &Lookups,
    evidence: &Evidence,
    own: &[i32],
    row_weights: &[f64],
    rows: Range<usize>,
) -> (f64, Vec<f64>) {
    let terms = lookups.terms();
    let classes = if CLASSES > 0 { CLASSES } else { evidence.intercepts.len() };
    let (mut loss, mut slopes) = (0.0, vec![0.0; terms + classes]);
    let (mut cells, mut z) = (vec![0; terms], vec![0.0; classes]);
    // What each term says of a row, so that tables, which are large, are read once.
    let mut says = vec![0.0; terms * classes];
    for row in rows {
        lookups.find(row, &mut cells);
        z.copy_from_slice(evidence.intercepts);
        let each = cells.iter().zip(evidence.weights).zip(says.chunks_exact_mut(classes));
        for ((&cell, &weight), says) in each {
            says.copy_from_slice(&evidence.of(cell, row)[..classes]);
            z[..classes].iter_mut().zip(says).for_each(|(z, says)| *z += weight * *says);
        }
        let label = own[row] as usize;
        let mine = z[label];
        let total = softmax(&mut z[..classes]);
        loss += row_weights[row] * (total - mine);
        z[label] -= 1.0;
        z.iter_mut().for_each(|z| *z *= row_weights[row]);
        for (slope, says) in slopes.iter_mut().zip(says.chunks_exact(classes)) {
            *slope += says.iter().zip(&z[..classes]).map(|(says, z)| says * z).sum::<f64>();
        }
        slopes[terms..].iter_mut().zip(&z).for_each(|(slope, z)| *slope += z);
    }
    (loss, slopes)
}

/// Makes scores probabilities; answers the logarithm of what they summed to.
#[inline(always)]
fn softmax(z: &mut [f64]) -> f64 {
    let highest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for z in z.iter_mut() {
        *z = (*z - highest).exp();
        total += *z;
    }
    z.iter_mut().for_each(|z| *z /= total);
    highest + total.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_those_of_the_loss() {
        let codes = [0, 1, 1, 0, 1, 1, 0, 0];
        let (ones, twos, map) = ([0, 1], [0, 2], [0, 1]);
        let terms = vec![
            Term { column: 0, first: &ones, other: None },
            Term { column: 0, first: &twos, other: Some((1, &map)) },
        ];
        let lookups = Lookups::new(Cells::new(&codes, 2).unwrap(), terms, &[2, 4]).unwrap();
        let table: Vec<f64> = (0..24).map(|i| f64::from(i * 7 % 11) / 5.0 - 1.0).collect();
        let own = [0, 1, 1, 0];
        let at = |w: [f64; 2], b: [f64; 2]| {
            let evidence = Evidence { table: &table, weights: &w, intercepts: &b, own: Some(&own) };
            slope(&lookups, &evidence, &[1.0, 2.0, 0.5, 1.0], 1).unwrap()
        };
        let (_, slopes) = at([0.3, 0.8], [0.1, -0.2]);
        let step = 1e-6;
        for (k, slope) in slopes.iter().enumerate() {
            let mut high = [0.3, 0.8, 0.1, -0.2];
            let mut low = high;
            high[k] += step;
            low[k] -= step;
            let rise = at([high[0], high[1]], [high[2], high[3]]).0
                - at([low[0], low[1]], [low[2], low[3]]).0;
            assert!((rise / (2.0 * step) - slope).abs() < 1e-7);
        }
    }
}
