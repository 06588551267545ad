//! Weighed evidence: passes over rows whose columns were turned into cells.
//!
//! A term looks up a row's cell in one column, or in a pair of them; a table then has numbers for each cell. What is summed
//! over rows is summed piece by piece, in order, so that the bits do not depend on the number of threads.

pub mod alike;
pub mod ascent;
pub mod labels;
pub mod pairs;
pub mod texts;

use crate::error::{Error, demand};
use crate::exponential::exp;
use crate::simd::wide;
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

/// What each term says of each row beyond the last class, `[row][class but the last][term]`; room for `given` more terms.
pub fn evidence_of_rows(
    lookups: &Lookups,
    evidence: &Evidence,
    given: usize,
    threads: usize,
) -> Result<Vec<f32>, Error> {
    evidence.check(lookups)?;
    let (n, terms, classes) = (lookups.rows(), lookups.terms(), evidence.intercepts.len());
    let (width, others) = (terms + given, classes - 1);
    let mut out = vec![0.0; n * others * width];
    let threads = threads::worth(threads, n * terms);
    threads::try_pieces(threads, &mut out, (PIECE * others * width).max(1), |i, out| {
        let mut cells = vec![0; terms];
        for (at, out) in out.chunks_exact_mut((others * width).max(1)).enumerate() {
            let row = i * PIECE + at;
            lookups.find(row, &mut cells);
            for (term, &cell) in cells.iter().enumerate() {
                let says = evidence.of(cell, row);
                for c in 0..others {
                    out[c * width + term] = (says[c] - says[others]) as f32;
                }
            }
        }
        Ok::<_, Error>(())
    })?;
    Ok(out)
}

/// Rows with what each term says of them beyond the last class, `[row][class but the last][term]`.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    pub evidence: &'a [f32],
    pub labels: &'a [i32],
    pub row_weights: &'a [f64],
}

/// The loss of all rows under the weights, and its slope along each weight and intercept.
pub fn slope(
    told: &Told,
    weights: &[f64],
    intercepts: &[f64],
    threads: usize,
) -> Result<(f64, Vec<f64>), Error> {
    let (n, terms, classes) = (told.labels.len(), weights.len(), intercepts.len());
    demand(classes > 1, "there must be two classes")?;
    demand(told.row_weights.len() == n, "each row must have a weight")?;
    demand(told.evidence.len() == n * (classes - 1) * terms, "evidence must be rows × terms")?;
    check_labels(told.labels, classes)?;
    let threads = threads::worth(threads, told.evidence.len());
    let pieces = threads::map(threads, n.div_ceil(PIECE), |i| {
        let rows = i * PIECE..n.min((i + 1) * PIECE);
        wide!(piece(told, weights, intercepts, rows))
    });
    let mut total = (0.0, vec![0.0; terms + classes]);
    for (loss, slopes) in pieces {
        total.0 += loss;
        total.1.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
    }
    Ok(total)
}

/// The sums of some rows.
#[inline(always)]
fn piece(told: &Told, weights: &[f64], intercepts: &[f64], rows: Range<usize>) -> (f64, Vec<f64>) {
    let (terms, classes) = (weights.len(), intercepts.len());
    let (mut loss, mut slopes) = (0.0, vec![0.0; terms + classes]);
    let mut z = vec![0.0; classes];
    for row in rows {
        let size = (classes - 1) * terms;
        let says = &told.evidence[row * size..(row + 1) * size];
        z.copy_from_slice(intercepts);
        for c in 0..classes - 1 {
            z[c] += dot(&says[c * terms..(c + 1) * terms], weights);
        }
        let (label, weight) = (told.labels[row] as usize, told.row_weights[row]);
        let mine = z[label];
        let total = softmax(&mut z);
        loss += weight * (total - mine);
        z[label] -= 1.0;
        for c in 0..classes {
            let rest = weight * z[c];
            slopes[terms + c] += rest;
            if c < classes - 1 {
                add(&mut slopes[..terms], &says[c * terms..(c + 1) * terms], rest);
            }
        }
    }
    (loss, slopes)
}

/// Adds `times` · says to the slopes.
#[inline(always)]
fn add(slopes: &mut [f64], says: &[f32], times: f64) {
    let n = slopes.len().min(says.len());
    let (slopes, says) = (&mut slopes[..n], &says[..n]);
    for t in 0..n {
        slopes[t] += times * f64::from(says[t]);
    }
}

/// Σ says · weight, in eight sums side by side.
#[inline(always)]
fn dot(says: &[f32], weights: &[f64]) -> f64 {
    let n = says.len().min(weights.len());
    let (says, weights) = (&says[..n], &weights[..n]);
    let (mut sums, mut at) = ([0.0; 8], 0);
    while at + 8 <= n {
        let (x, w) = (&says[at..at + 8], &weights[at..at + 8]);
        for k in 0..8 {
            sums[k] += f64::from(x[k]) * w[k];
        }
        at += 8;
    }
    let mut rest = 0.0;
    while at < n {
        rest += f64::from(says[at]) * weights[at];
        at += 1;
    }
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest
}

/// The least loss of rows whose scores, `[row][class]`, are all times one number, and that number, `most` at most.
///
/// `ridge` times the square of its distance to 1 is added to the loss.
pub fn tempered(
    scores: &[f32],
    labels: &[i32],
    row_weights: &[f64],
    ridge: f64,
    most: f64,
) -> Result<(f64, f64), Error> {
    let n = labels.len();
    demand(row_weights.len() == n && n > 0, "each row must have a weight")?;
    let classes = scores.len() / n;
    demand(classes > 0 && scores.len() == n * classes, "scores must be rows × classes")?;
    check_labels(labels, classes)?;
    let mut z = vec![0.0; classes];
    let mut at = |w: f64| {
        let (mut loss, mut slope, mut curve) = (0.0, 0.0, 0.0);
        for ((own, &label), &weight) in scores.chunks_exact(classes).zip(labels).zip(row_weights) {
            z.iter_mut().zip(own).for_each(|(z, &x)| *z = w * f64::from(x));
            let mine = z[label as usize];
            let total = softmax(&mut z);
            let mean: f64 = z.iter().zip(own).map(|(p, &x)| p * f64::from(x)).sum();
            let square: f64 = z.iter().zip(own).map(|(p, &x)| p * f64::from(x).powi(2)).sum();
            loss += weight * (total - mine);
            slope += weight * (mean - f64::from(own[label as usize]));
            curve += weight * (square - mean * mean).max(0.0);
        }
        let off = w - 1.0;
        (loss + ridge * off * off, slope + 2.0 * ridge * off, curve + 2.0 * ridge)
    };
    let (mut low, mut high, mut w) = (0.0, most, most.min(1.0));
    let mut found = at(w);
    for _ in 0..40 {
        let (_, slope, curve) = found;
        if slope > 0.0 {
            high = w
        } else {
            low = w
        }
        let next = (w - slope / (curve + 1e-12)).clamp(0.0, most);
        let next =
            if next > low && next < high || next == most { next } else { (low + high) / 2.0 };
        if (next - w).abs() < 1e-3 {
            break;
        }
        w = next;
        found = at(w);
    }
    Ok((found.0, w))
}

/// Makes scores probabilities; answers the logarithm of what they summed to.
#[inline(always)]
fn softmax(z: &mut [f64]) -> f64 {
    let highest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for z in z.iter_mut() {
        *z = exp(*z - highest);
        total += *z;
    }
    z.iter_mut().for_each(|z| *z /= total);
    highest + total.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temperature_is_where_the_loss_is_least() {
        let scores = [2.0, 0.0, 0.5, 1.0, 3.0, -1.0, 0.2, 0.1];
        let (labels, weights) = ([0, 1, 1, 0], [1.0, 2.0, 0.5, 1.0]);
        for (ridge, most) in [(0.0, 10.0), (5.0, 10.0), (0.0, 0.2)] {
            let (least, w) = tempered(&scores, &labels, &weights, ridge, most).unwrap();
            let loss = |w: f64| {
                let own =
                    |i: usize| (w * f64::from(scores[2 * i]), w * f64::from(scores[2 * i + 1]));
                let each = (0..4).map(|i| {
                    let (a, b) = own(i);
                    let mine = if labels[i] == 0 { a } else { b };
                    weights[i] * ((a.exp() + b.exp()).ln() - mine)
                });
                each.sum::<f64>() + ridge * (w - 1.0).powi(2)
            };
            assert!((least - loss(w)).abs() < 1e-9);
            for near in [0.99 * w, (1.01 * w).min(most)] {
                assert!(least <= loss(near) + 1e-9, "{ridge} {most} {w} {near}");
            }
        }
    }

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
            let says = evidence_of_rows(&lookups, &evidence, 0, 1).unwrap();
            let told = Told { evidence: &says, labels: &own, row_weights: &[1.0, 2.0, 0.5, 1.0] };
            slope(&told, &w, &b, 1).unwrap()
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
