//! Weighed evidence: passes over rows whose columns were turned into cells.
//!
//! A term looks up a row's cell in one column, or in a pair of them; a table then has numbers for each cell. What is summed
//! over rows is summed piece by piece, in order, so that the bits do not depend on the number of threads.

pub mod alike;
pub mod ascent;
pub mod labels;
pub mod pairs;
pub mod tables;
pub mod texts;

use crate::error::{Error, demand};
use crate::exponential::exp;
use crate::simd::wide;
use crate::threads;
use std::collections::HashSet;
use std::ops::Range;

/// Rows of a piece.
const PIECE: usize = 1 << 12;
/// Columns and pairs of a block, at most and, where threads share few columns, at least.
const BLOCK: usize = 64;
const LEAST: usize = 4;
/// Rows that are added to the slopes together.
const TOGETHER: usize = 4;

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

    /// What rows of each class weigh in each cell of every column, `[cell][class]`, added in the order of rows; the code that is
    /// a column's number of cells is in none.
    pub fn counted(
        &self,
        sizes: &[i64],
        labels: &[i32],
        weights: &[f64],
        classes: usize,
        threads: usize,
    ) -> Result<Vec<f64>, Error> {
        let n = self.rows();
        demand(sizes.len() == self.width, "each column must have a size")?;
        demand(labels.len() == n && weights.len() == n, "each row must have a label")?;
        check_labels(labels, classes)?;
        let codes = self.sizes();
        let fits = codes.iter().zip(sizes).all(|(&codes, &size)| codes as i64 <= size + 1);
        demand(fits && sizes.iter().all(|&size| size >= 0), "a column has more cells than that")?;
        let threads = threads::worth(threads, n * self.width);
        // Each block reads all rows.
        let size = self.width.div_ceil(threads).clamp(LEAST, BLOCK);
        let found = threads::map(threads, self.width.div_ceil(size), |block| {
            let columns = block * size..self.width.min((block + 1) * size);
            let mut starts = vec![0];
            for &size in &sizes[columns.clone()] {
                starts.push(starts[starts.len() - 1] + (size as usize + 1) * classes);
            }
            let mut sums = vec![0.0; starts[columns.len()]];
            for (row, (&label, &weight)) in labels.iter().zip(weights).enumerate() {
                for (&code, &start) in self.row(row)[columns.clone()].iter().zip(&starts) {
                    sums[start + code as usize * classes + label as usize] += weight;
                }
            }
            let known = starts.windows(2).flat_map(|ends| &sums[ends[0]..ends[1] - classes]);
            known.copied().collect::<Vec<f64>>()
        });
        Ok(found.concat())
    }

    /// One more than the highest code of each column.
    fn sizes(&self) -> Vec<usize> {
        let mut highest = vec![0; self.width];
        let high = &mut highest[..];
        wide!(for row in self.codes.chunks_exact(self.width) {
            high.iter_mut().zip(row).for_each(|(high, &code)| *high = code.max(*high));
        });
        let one = usize::from(self.rows() > 0);
        highest.into_iter().map(|high| high as usize + one).collect()
    }
}

/// Where rows find their cells in one column, or in a pair of them: a term for each level of its tree.
#[derive(Clone, Debug)]
pub struct Group {
    pub column: usize,
    pub levels: usize,
    /// `[code][level]`.
    pub first: Vec<u32>,
    /// Another column, and what its codes add.
    pub other: Option<(usize, Vec<u32>)>,
}

impl Group {
    /// The cell of one level, among those of the level.
    #[inline(always)]
    fn cell(&self, level: usize, codes: &[u32]) -> u32 {
        let of = |map: &[u32], column: usize| map[codes[column] as usize * self.levels + level];
        let other = self.other.as_ref().map_or(0, |(column, second)| of(second, *column));
        of(&self.first, self.column) + other
    }

    /// The cells of codes, or pairs of them, that differ on the last level.
    fn different(&self) -> Vec<(&[u32], Option<&[u32]>)> {
        let firsts = of_last(&self.first, self.levels);
        match &self.other {
            None => firsts.into_iter().map(|first| (first, None)).collect(),
            Some((_, map)) => {
                let seconds = of_last(map, self.levels);
                let pairs = firsts.iter().flat_map(|&a| seconds.iter().map(move |&b| (a, Some(b))));
                pairs.collect()
            }
        }
    }

    /// Calls `f` with the cell of each level, among those of the level.
    #[inline(always)]
    fn each(&self, codes: &[u32], mut f: impl FnMut(usize, u32)) {
        let of = |map: &[u32], column: usize| codes[column] as usize * self.levels..map.len();
        let first = &self.first[of(&self.first, self.column)][..self.levels];
        match &self.other {
            Some((column, second)) => {
                let second = &second[of(second, *column)][..self.levels];
                (0..self.levels).for_each(|level| f(level, first[level] + second[level]));
            }
            None => (0..self.levels).for_each(|level| f(level, first[level])),
        }
    }
}

/// Columns and pairs, of which every cell is one of its term's table.
#[derive(Clone, Debug)]
pub struct Terms {
    groups: Vec<Group>,
    /// The first term of each group, then their number.
    firsts: Vec<usize>,
    /// The first cell of each term among those of all, then their number.
    starts: Vec<usize>,
}

impl Terms {
    /// `sizes` are the cells of every term.
    pub fn new(groups: Vec<Group>, sizes: &[i64]) -> Result<Self, Error> {
        let (mut firsts, mut starts) = (vec![0], vec![0]);
        for group in &groups {
            let (levels, from) = (group.levels, starts.len() - 1);
            demand(levels > 0 && from + levels <= sizes.len(), "each term must have a size")?;
            let mut last = highest(&group.first, levels);
            if let Some((_, map)) = &group.other {
                last.iter_mut().zip(highest(map, levels)).for_each(|(last, more)| *last += more);
            }
            for (&size, &last) in sizes[from..].iter().zip(&last) {
                demand(size > 0 && last < size as usize, "a term's cells must be below its size")?;
                starts.push(starts[starts.len() - 1] + size as usize);
            }
            firsts.push(starts.len() - 1);
        }
        demand(starts.len() - 1 == sizes.len(), "sizes must have one entry per term")?;
        demand(u32::try_from(starts[sizes.len()]).is_ok(), "there are too many cells")?;
        Ok(Terms { groups, firsts, starts })
    }

    /// The terms of these rows.
    pub fn of<'a>(&'a self, cells: Cells<'a>) -> Result<Lookups<'a>, Error> {
        let known = cells.sizes();
        let covers = |levels: usize, column: usize, map: &[u32]| {
            column < cells.width && map.len() / levels >= known[column]
        };
        let fits = self.groups.iter().all(|Group { column, levels, first, other }| {
            covers(*levels, *column, first)
                && other.as_ref().is_none_or(|(column, map)| covers(*levels, *column, map))
        });
        demand(fits, "a term must have a cell for every code of its columns")?;
        Ok(Lookups { cells, terms: self })
    }

    /// Columns and pairs.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The cells of all terms.
    pub fn size(&self) -> usize {
        self.starts[self.len()]
    }

    /// The first cell of a term among those of all.
    pub fn start(&self, term: usize) -> usize {
        self.starts[term]
    }

    /// How many cells each term of a group has.
    pub fn sizes(&self, group: usize) -> Vec<usize> {
        let starts = &self.starts[self.firsts[group]..=self.firsts[group + 1]];
        starts.windows(2).map(|ends| ends[1] - ends[0]).collect()
    }

    /// How much a cell of each term may vary, s²: all levels of a group together as much as one.
    pub fn variances(&self) -> Vec<f64> {
        let each = self.groups.iter().map(|group| vec![1.0 / group.levels as f64; group.levels]);
        each.flatten().collect()
    }

    /// The group of a term, and its level there.
    fn term(&self, term: usize) -> (&Group, usize) {
        let group = self.firsts.partition_point(|&first| first <= term) - 1;
        (&self.groups[group], term - self.firsts[group])
    }

    /// The numbers of all levels, `[cell][class]`, summed up for every cell of each group's last level.
    pub fn folded(&self, table: &[f64], classes: usize) -> Result<Vec<Vec<f64>>, Error> {
        demand(table.len() == self.size() * classes, "the table must have all cells")?;
        let each = self.groups.iter().zip(self.firsts.windows(2)).map(|(group, terms)| {
            let (last, term) = (group.levels - 1, terms[0]);
            let size = self.starts[terms[1]] - self.starts[terms[1] - 1];
            let mut out = vec![0.0; size * classes];
            for (first, second) in group.different() {
                let cell =
                    |level: usize| (first[level] + second.map_or(0, |map| map[level])) as usize;
                let out = &mut out[cell(last) * classes..(cell(last) + 1) * classes];
                for level in 0..=last {
                    let from = (self.starts[term + level] + cell(level)) * classes;
                    let own = &table[from..from + classes];
                    out.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
                }
            }
            out
        });
        Ok(each.collect())
    }
}

/// Rows and terms that have a cell for each of their codes.
#[derive(Debug)]
pub struct Lookups<'a> {
    cells: Cells<'a>,
    pub terms: &'a Terms,
}

impl Lookups<'_> {
    pub fn rows(&self) -> usize {
        self.cells.rows()
    }

    /// Calls `f` with each term of some groups, and a row's cell among those of all.
    #[inline(always)]
    pub fn each(&self, groups: Range<usize>, row: usize, mut f: impl FnMut(usize, usize)) {
        let (codes, terms) = (self.cells.row(row), self.terms);
        for (group, &first) in terms.groups[groups.clone()].iter().zip(&terms.firsts[groups]) {
            let starts = &terms.starts[first..first + group.levels];
            group.each(codes, |level, cell| f(first + level, starts[level] + cell as usize));
        }
    }

    /// Calls `f` with every row, term and cell, and the row's own numbers of `out`. Groups are gone through a block at a time,
    /// for many rows, so that their tables stay near.
    fn fill<T: Send>(
        &self,
        out: &mut [T],
        numbers: usize,
        threads: usize,
        f: impl Fn(usize, usize, usize, &mut [T]) + Sync,
    ) -> Result<(), Error> {
        let n = self.terms.groups.len();
        let threads = threads::worth(threads, self.rows() * self.terms.len());
        let piece = self.rows().div_ceil(threads.max(1)).clamp(1, PIECE);
        threads::try_pieces(threads, out, piece * numbers, |i, out| {
            for first in (0..n).step_by(BLOCK) {
                let groups = first..n.min(first + BLOCK);
                for (row, out) in (i * piece..).zip(out.chunks_exact_mut(numbers)) {
                    self.each(groups.clone(), row, |term, cell| f(row, term, cell, out));
                }
            }
            Ok::<_, Error>(())
        })?;
        Ok(())
    }
}

/// The cells of every level, of the first code of each cell of the last.
fn of_last(map: &[u32], levels: usize) -> Vec<&[u32]> {
    let mut seen = HashSet::new();
    map.chunks_exact(levels).filter(|cells| seen.insert(cells[levels - 1])).collect()
}

/// The highest cell of each level.
fn highest(map: &[u32], levels: usize) -> Vec<usize> {
    let mut found = vec![0; levels];
    for cells in map.chunks_exact(levels) {
        found.iter_mut().zip(cells).for_each(|(high, &cell)| *high = (*high).max(cell as usize));
    }
    found
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
        demand(self.weights.len() == lookups.terms.len(), "there must be a weight for each term")?;
        demand(
            self.table.len() == lookups.terms.size() * rows * classes,
            "the table must have all cells",
        )?;
        check_labels(self.own.unwrap_or(&[]), classes)?;
        demand(self.own.is_none_or(|own| own.len() == lookups.rows()), "each row must have a label")
    }

    #[inline(always)]
    fn of(&self, cell: usize, row: usize) -> &[f64] {
        let classes = self.intercepts.len();
        let at = match self.own {
            Some(own) => cell * classes + own[row] as usize,
            None => cell,
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
    let mut out = evidence.intercepts.repeat(lookups.rows());
    lookups.fill(&mut out, classes, threads, |row, term, cell, out| {
        let (weight, says) = (evidence.weights[term], evidence.of(cell, row));
        out.iter_mut().zip(says).for_each(|(sum, says)| *sum += weight * says);
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
    let (n, terms, classes) = (lookups.rows(), lookups.terms.len(), evidence.intercepts.len());
    let (width, others) = (terms + given, classes - 1);
    let mut out = vec![0.0; n * others * width];
    lookups.fill(&mut out, (others * width).max(1), threads, |row, term, cell, out| {
        let says = evidence.of(cell, row);
        for c in 0..others {
            out[c * width + term] = (says[c] - says[others]) as f32;
        }
    })?;
    Ok(out)
}

/// Rows with what each term says of them beyond the last class, `[row][class but the last][term]`.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceMatrix<'a> {
    pub evidence: &'a [f32],
    pub labels: &'a [i32],
    pub row_weights: &'a [f64],
}

/// The loss of all rows under the weights, and its slope along each weight and intercept.
pub fn slope(
    told: &EvidenceMatrix,
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
fn piece(
    told: &EvidenceMatrix,
    weights: &[f64],
    intercepts: &[f64],
    rows: Range<usize>,
) -> (f64, Vec<f64>) {
    let (terms, classes) = (weights.len(), intercepts.len());
    let (mut loss, mut slopes) = (0.0, vec![0.0; terms + classes]);
    let mut z = vec![0.0; classes];
    let (mut waiting, mut n): ([(&[f32], f64); TOGETHER], usize) = ([(&[], 0.0); TOGETHER], 0);
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
                waiting[n] = (&says[c * terms..(c + 1) * terms], rest);
                n += 1;
                if n == TOGETHER {
                    add(&mut slopes[..terms], waiting);
                    n = 0;
                }
            }
        }
    }
    waiting[..n].iter().for_each(|&last| add(&mut slopes[..terms], [last]));
    (loss, slopes)
}

/// Adds what is said, times a number, to the slopes, one after the other.
#[inline(always)]
fn add<const N: usize>(slopes: &mut [f64], each: [(&[f32], f64); N]) {
    let n = each.iter().map(|(says, _)| says.len()).fold(slopes.len(), usize::min);
    let (slopes, each) = (&mut slopes[..n], each.map(|(says, times)| (&says[..n], times)));
    for t in 0..n {
        let mut sum = slopes[t];
        for (says, times) in each {
            sum += times * f64::from(says[t]);
        }
        slopes[t] = sum;
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
        let groups = vec![
            Group { column: 0, levels: 1, first: vec![0, 1], other: None },
            Group { column: 0, levels: 1, first: vec![0, 2], other: Some((1, vec![0, 1])) },
        ];
        let terms = Terms::new(groups, &[2, 4]).unwrap();
        let lookups = terms.of(Cells::new(&codes, 2).unwrap()).unwrap();
        let table: Vec<f64> = (0..24).map(|i| f64::from(i * 7 % 11) / 5.0 - 1.0).collect();
        let own = [0, 1, 1, 0];
        let at = |w: [f64; 2], b: [f64; 2]| {
            let evidence = Evidence { table: &table, weights: &w, intercepts: &b, own: Some(&own) };
            let says = evidence_of_rows(&lookups, &evidence, 0, 1).unwrap();
            let told = EvidenceMatrix {
                evidence: &says,
                labels: &own,
                row_weights: &[1.0, 2.0, 0.5, 1.0],
            };
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
