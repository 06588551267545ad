//! Weighed evidence: computations over rows whose columns were turned into cells.
//!
//! A term gives each row a cell, by one column or by a pair of columns, and a table has numbers for each cell. Sums over rows are
//! added piece by piece, in order, so that their bits do not depend on the number of threads.

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

/// Rows of a piece. Sums are added piece by piece, so another size would change their last bits.
const PIECE: usize = 1 << 12;
/// Columns and pairs of a block, at most; and at least, if threads share few columns.
const BLOCK: usize = 64;
const MIN_BLOCK: usize = 4;
/// Rows whose cells are looked up at a time, at most; and cells, so that they stay in the cache. With 64 terms a
/// visit of a row took 0.30 µs for 16 rows and 0.28 µs for 64.
const MAX_ROWS_AT_A_TIME: usize = 64;
const CELLS_AT_A_TIME: usize = 1 << 13;
/// Rows that are added to the slopes at a time.
const SLOPE_ROWS: usize = 4;

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

    /// Adds up the weights of rows in each cell of every column, by class: `[cell][class]`. A code equal to the column's
    /// number of cells means that the row has no cell there.
    pub fn count(
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
        let size = self.width.div_ceil(threads).clamp(MIN_BLOCK, BLOCK);
        let found = threads::ranges(threads, self.width, size, |columns| {
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

/// The terms of one column or of a pair of columns, one for each level of the tree: which cell a code has on each level.
#[derive(Clone, Debug)]
pub struct Group {
    pub column: usize,
    pub levels: usize,
    /// `[code][level]`.
    pub first: Vec<u32>,
    /// The second column of a pair, and what its codes add to the cell, `[code][level]`.
    pub other: Option<(usize, Vec<u32>)>,
}

impl Group {
    /// Returns a row's cell on one level, counted from the first cell of that level.
    #[inline(always)]
    fn cell(&self, level: usize, codes: &[u32]) -> u32 {
        let of = |map: &[u32], column: usize| map[codes[column] as usize * self.levels + level];
        let other = self.other.as_ref().map_or(0, |(column, second)| of(second, *column));
        of(&self.first, self.column) + other
    }

    /// Returns the cells on all levels for each cell of the last level: those of the first column, and what the second adds.
    fn paths_to_last_level(&self) -> Vec<(&[u32], Option<&[u32]>)> {
        let firsts = paths(&self.first, self.levels);
        match &self.other {
            None => firsts.into_iter().map(|first| (first, None)).collect(),
            Some((_, map)) => {
                let seconds = paths(map, self.levels);
                let pairs = firsts.iter().flat_map(|&a| seconds.iter().map(move |&b| (a, Some(b))));
                pairs.collect()
            }
        }
    }

    /// Calls `f` with each level and the row's cell on it, counted from the first cell of that level.
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

/// Columns and pairs of columns. Every cell that a row can have is within its term's cells.
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

    /// Joins terms and rows, after checking that the terms have a cell for every code of the rows.
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

    /// The number of cells of all terms.
    pub fn size(&self) -> usize {
        self.starts[self.len()]
    }

    /// The first cell of a term among those of all.
    pub fn start(&self, term: usize) -> usize {
        self.starts[term]
    }

    /// The number of cells of each term of a group.
    pub fn sizes(&self, group: usize) -> Vec<usize> {
        let starts = &self.starts[self.firsts[group]..=self.firsts[group + 1]];
        starts.windows(2).map(|ends| ends[1] - ends[0]).collect()
    }

    /// Returns s² of each term, how much its cells may vary. All levels of a group together vary as much as a single term.
    pub fn variances(&self) -> Vec<f64> {
        let each = self.groups.iter().map(|group| vec![1.0 / group.levels as f64; group.levels]);
        each.flatten().collect()
    }

    /// Returns the group of a term, and the term's level in it.
    fn term(&self, term: usize) -> (&Group, usize) {
        let group = self.firsts.partition_point(|&first| first <= term) - 1;
        (&self.groups[group], term - self.firsts[group])
    }

    /// Adds up the numbers of all levels for every cell of each group's last level. `table` is `[cell][class]`.
    pub fn folded(&self, table: &[f64], classes: usize) -> Result<Vec<Vec<f64>>, Error> {
        demand(table.len() == self.size() * classes, "the table must have all cells")?;
        let each = self.groups.iter().zip(self.firsts.windows(2)).map(|(group, terms)| {
            let (last, term) = (group.levels - 1, terms[0]);
            let size = self.starts[terms[1]] - self.starts[terms[1] - 1];
            let mut out = vec![0.0; size * classes];
            for (first, second) in group.paths_to_last_level() {
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

/// Rows, and terms that have a cell for each of their codes.
#[derive(Debug)]
pub struct Lookups<'a> {
    cells: Cells<'a>,
    pub terms: &'a Terms,
}

impl Lookups<'_> {
    pub fn rows(&self) -> usize {
        self.cells.rows()
    }

    /// Calls `f` with each term of some groups and the row's cell, counted from the first cell of all.
    #[inline(always)]
    pub fn each(&self, groups: Range<usize>, row: usize, mut f: impl FnMut(usize, usize)) {
        let (codes, terms) = (self.cells.row(row), self.terms);
        for (group, &first) in terms.groups[groups.clone()].iter().zip(&terms.firsts[groups]) {
            let starts = &terms.starts[first..first + group.levels];
            group.each(codes, |level, cell| f(first + level, starts[level] + cell as usize));
        }
    }

    /// How many rows to look up at a time if all groups are looked up.
    pub fn rows_at_a_time(&self) -> usize {
        (CELLS_AT_A_TIME / self.terms.len().max(1)).clamp(1, MAX_ROWS_AT_A_TIME)
    }

    /// Writes the cells of rows in some groups, `[row][term]`, counted from the first cell of all.
    ///
    /// It takes the rows group by group, and the compiler knows the number of levels up to eight, so that loops have a constant
    /// length and memory is read for several rows at once: with 64 terms, a visit of a row took 0.24 µs instead of 0.38.
    #[inline(always)]
    pub fn look_up(&self, groups: Range<usize>, rows: &[u32], cells: &mut Vec<u32>) {
        let first_terms = &self.terms.firsts[groups.start..=groups.end];
        let width = first_terms[groups.len()] - first_terms[0];
        cells.resize(rows.len() * width, 0);
        for (&first_term, group) in first_terms.iter().zip(&self.terms.groups[groups]) {
            let starts = &self.terms.starts[first_term..first_term + group.levels];
            let place = first_term - first_terms[0];
            let rows = rows.iter().map(|&row| self.cells.row(row as usize));
            let rows_and_cells =
                rows.zip(cells.chunks_exact_mut(width).map(|row| &mut row[place..]));
            match group.levels {
                1 => look_up::<1>(group, starts, rows_and_cells),
                2 => look_up::<2>(group, starts, rows_and_cells),
                3 => look_up::<3>(group, starts, rows_and_cells),
                4 => look_up::<4>(group, starts, rows_and_cells),
                5 => look_up::<5>(group, starts, rows_and_cells),
                6 => look_up::<6>(group, starts, rows_and_cells),
                7 => look_up::<7>(group, starts, rows_and_cells),
                8 => look_up::<8>(group, starts, rows_and_cells),
                _ => {
                    for (codes, cells) in rows_and_cells {
                        group.each(codes, |level, cell| cells[level] = starts[level] as u32 + cell);
                    }
                }
            }
        }
    }

    /// Calls `f` with every row, a term, the row's cells in this term and the following ones, and the row's part of `out`, which has
    /// `numbers` per row. It takes a block of groups at a time for many rows, so that their tables stay in the cache.
    fn fill<T: Send>(
        &self,
        out: &mut [T],
        numbers: usize,
        threads: usize,
        f: impl Fn(usize, usize, &[u32], &mut [T]) + Sync,
    ) {
        let n = self.terms.groups.len();
        let threads = threads::worth(threads, self.rows() * self.terms.len());
        let piece = self.rows().div_ceil(threads.max(1)).clamp(1, PIECE);
        threads::pieces(threads, out, piece * numbers, |i, out| {
            let (mut rows, mut cells) = (vec![], vec![]);
            for first in (0..n).step_by(BLOCK) {
                let groups = first..n.min(first + BLOCK);
                let first_term = self.terms.firsts[first];
                let mut first_row = i * piece;
                for out in out.chunks_mut(MAX_ROWS_AT_A_TIME * numbers) {
                    let n_rows = out.len() / numbers;
                    rows.clear();
                    rows.extend((first_row..first_row + n_rows).map(|row| row as u32));
                    self.look_up(groups.clone(), &rows, &mut cells);
                    let cells_of_rows = cells.chunks_exact(cells.len() / n_rows);
                    let rows = (first_row..).zip(cells_of_rows).zip(out.chunks_exact_mut(numbers));
                    rows.for_each(|((row, cells), out)| f(row, first_term, cells, out));
                    first_row += n_rows;
                }
            }
        });
    }
}

/// Writes the cells of rows in one group with `LEVELS` levels. `starts` are the first cells of the levels, and `rows` has the codes
/// of each row and the place for its cells.
#[inline(always)]
fn look_up<'a, const LEVELS: usize>(
    group: &Group,
    starts: &[usize],
    rows: impl Iterator<Item = (&'a [u32], &'a mut [u32])>,
) {
    let starts: [u32; LEVELS] = std::array::from_fn(|level| starts[level] as u32);
    let (first, _) = group.first.as_chunks::<LEVELS>();
    match &group.other {
        None => {
            for (codes, cells) in rows {
                let a = &first[codes[group.column] as usize];
                let cells_of_levels: [u32; LEVELS] =
                    std::array::from_fn(|level| starts[level] + a[level]);
                cells[..LEVELS].copy_from_slice(&cells_of_levels);
            }
        }
        Some((other_column, second)) => {
            let (second, _) = second.as_chunks::<LEVELS>();
            for (codes, cells) in rows {
                let a = &first[codes[group.column] as usize];
                let b = &second[codes[*other_column] as usize];
                let cells_of_levels: [u32; LEVELS] =
                    std::array::from_fn(|level| starts[level] + a[level] + b[level]);
                cells[..LEVELS].copy_from_slice(&cells_of_levels);
            }
        }
    }
}

/// Returns the cells on every level, for each cell of the last level.
fn paths(map: &[u32], levels: usize) -> Vec<&[u32]> {
    let mut seen = HashSet::new();
    map.chunks_exact(levels).filter(|cells| seen.insert(cells[levels - 1])).collect()
}

/// Returns the highest cell of each level.
fn highest(map: &[u32], levels: usize) -> Vec<usize> {
    let mut highest = vec![0; levels];
    for cells in map.chunks_exact(levels) {
        highest.iter_mut().zip(cells).for_each(|(high, &cell)| *high = (*high).max(cell as usize));
    }
    highest
}

/// The evidence of cells, `[cell][class]`, and the weights of terms. With `own`, each row is left out of its own evidence, which
/// depends on its class: `[cell][own class][class]`.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    pub table: &'a [f64],
    pub weights: &'a [f64],
    pub intercepts: &'a [f64],
    /// The class of each row; None for rows that were not counted.
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

/// Returns the score of each row, `[row][class]`: intercepts plus weighed evidence.
pub fn scores(lookups: &Lookups, evidence: &Evidence, threads: usize) -> Result<Vec<f64>, Error> {
    evidence.check(lookups)?;
    let classes = evidence.intercepts.len();
    let mut out = evidence.intercepts.repeat(lookups.rows());
    lookups.fill(&mut out, classes, threads, |row, first_term, cells, out| match classes {
        2 => add_evidence::<2>(evidence, row, first_term, cells, out),
        3 => add_evidence::<3>(evidence, row, first_term, cells, out),
        _ => {
            for (&cell, weight) in cells.iter().zip(&evidence.weights[first_term..]) {
                let nats = evidence.of(cell as usize, row);
                out.iter_mut().zip(nats).for_each(|(sum, nats)| *sum += weight * nats);
            }
        }
    });
    Ok(out)
}

/// Adds the weighed evidence of a row's cells, from a term on, to its scores of `K` classes, which stay in registers.
#[inline(always)]
fn add_evidence<const K: usize>(
    evidence: &Evidence,
    row: usize,
    first_term: usize,
    cells: &[u32],
    scores: &mut [f64],
) {
    let mut sums: [f64; K] = std::array::from_fn(|class| scores[class]);
    for (&cell, weight) in cells.iter().zip(&evidence.weights[first_term..]) {
        let nats = &evidence.of(cell as usize, row)[..K];
        for class in 0..K {
            sums[class] += weight * nats[class];
        }
    }
    scores.copy_from_slice(&sums);
}

/// Returns the evidence of each term for each row, relative to the last class: `[row][class but the last][term]`. The last
/// `extra_terms` of each row are left at 0.
pub fn evidence_of_rows(
    lookups: &Lookups,
    evidence: &Evidence,
    extra_terms: usize,
    threads: usize,
) -> Result<Vec<f32>, Error> {
    evidence.check(lookups)?;
    let (n, terms, classes) = (lookups.rows(), lookups.terms.len(), evidence.intercepts.len());
    let width = terms + extra_terms;
    let last = classes - 1;
    let mut out = vec![];
    threads::lengthen(threads, &mut out, n * last * width, 0.0);
    lookups.fill(&mut out, (last * width).max(1), threads, |row, first_term, cells, out| {
        for (term, &cell) in (first_term..).zip(cells) {
            let nats = evidence.of(cell as usize, row);
            for c in 0..last {
                out[c * width + term] = (nats[c] - nats[last]) as f32;
            }
        }
    });
    Ok(out)
}

/// Rows with the evidence of each term relative to the last class, `[row][class but the last][term]`.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceMatrix<'a> {
    pub evidence: &'a [f32],
    pub labels: &'a [i32],
    pub row_weights: &'a [f64],
}

/// Returns the log loss of all rows under the weights, and its slope along each weight and intercept.
pub fn slope(
    rows: &EvidenceMatrix,
    weights: &[f64],
    intercepts: &[f64],
    threads: usize,
) -> Result<(f64, Vec<f64>), Error> {
    let (n, terms, classes) = (rows.labels.len(), weights.len(), intercepts.len());
    demand(classes > 1, "there must be two classes")?;
    demand(rows.row_weights.len() == n, "each row must have a weight")?;
    demand(rows.evidence.len() == n * (classes - 1) * terms, "evidence must be rows × terms")?;
    check_labels(rows.labels, classes)?;
    let threads = threads::worth(threads, rows.evidence.len());
    let pieces = threads::ranges(threads, n, PIECE, |piece| {
        wide!(slope_of_piece(rows, weights, intercepts, piece))
    });
    let mut total = (0.0, vec![0.0; terms + classes]);
    for (loss, slopes) in pieces {
        total.0 += loss;
        total.1.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
    }
    Ok(total)
}

/// Returns the loss of one piece of the rows, and its slopes.
#[inline(always)]
fn slope_of_piece(
    rows: &EvidenceMatrix,
    weights: &[f64],
    intercepts: &[f64],
    piece: Range<usize>,
) -> (f64, Vec<f64>) {
    let (terms, classes) = (weights.len(), intercepts.len());
    let (mut loss, mut slopes) = (0.0, vec![0.0; terms + classes]);
    let mut z = vec![0.0; classes];
    let mut pending: [(&[f32], f64); SLOPE_ROWS] = [(&[], 0.0); SLOPE_ROWS];
    let mut n_pending = 0;
    for row in piece {
        let size = (classes - 1) * terms;
        let nats = &rows.evidence[row * size..(row + 1) * size];
        z.copy_from_slice(intercepts);
        for c in 0..classes - 1 {
            z[c] += dot(&nats[c * terms..(c + 1) * terms], weights);
        }
        let label = rows.labels[row] as usize;
        let weight = rows.row_weights[row];
        let own_score = z[label];
        let log_total = softmax(&mut z);
        loss += weight * (log_total - own_score);
        z[label] -= 1.0;
        for c in 0..classes {
            let residual = weight * z[c];
            slopes[terms + c] += residual;
            if c < classes - 1 {
                pending[n_pending] = (&nats[c * terms..(c + 1) * terms], residual);
                n_pending += 1;
                if n_pending == SLOPE_ROWS {
                    add(&mut slopes[..terms], pending);
                    n_pending = 0;
                }
            }
        }
    }
    pending[..n_pending].iter().for_each(|&last| add(&mut slopes[..terms], [last]));
    (loss, slopes)
}

/// Adds the evidence of several rows, each times its residual, to the slopes, one row after the other.
#[inline(always)]
fn add<const N: usize>(slopes: &mut [f64], rows: [(&[f32], f64); N]) {
    let n = rows.iter().map(|(nats, _)| nats.len()).fold(slopes.len(), usize::min);
    let slopes = &mut slopes[..n];
    let rows = rows.map(|(nats, residual)| (&nats[..n], residual));
    for t in 0..n {
        let mut sum = slopes[t];
        for (nats, residual) in rows {
            sum += residual * f64::from(nats[t]);
        }
        slopes[t] = sum;
    }
}

/// Returns Σ evidence · weight, as eight sums side by side.
#[inline(always)]
fn dot(nats: &[f32], weights: &[f64]) -> f64 {
    let n = nats.len().min(weights.len());
    let (nats, weights) = (&nats[..n], &weights[..n]);
    let (mut sums, mut at) = ([0.0; 8], 0);
    while at + 8 <= n {
        let (x, w) = (&nats[at..at + 8], &weights[at..at + 8]);
        for k in 0..8 {
            sums[k] += f64::from(x[k]) * w[k];
        }
        at += 8;
    }
    let mut rest = 0.0;
    while at < n {
        rest += f64::from(nats[at]) * weights[at];
        at += 1;
    }
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest
}

/// Returns the factor of scores, `[row][class]`, that gives the least log loss, and that loss. The factor is at most `most`, and
/// `ridge` times the square of its distance to 1 is added to the loss.
pub fn least_tempered_loss(
    scores: &[f32],
    labels: &[i32],
    row_weights: &[f64],
    ridge: f64,
    most: f64,
    threads: usize,
) -> Result<(f64, f64), Error> {
    let n = labels.len();
    demand(row_weights.len() == n && n > 0, "each row must have a weight")?;
    let classes = scores.len() / n;
    demand(classes > 0 && scores.len() == n * classes, "scores must be rows × classes")?;
    check_labels(labels, classes)?;
    // Loss, slope and curvature of a piece of the rows whose scores are times w.
    let sums_of_piece = |w: f64, rows: Range<usize>| {
        let mut z = vec![0.0; classes];
        let mut sums = [0.0; 3];
        for row in rows {
            let scores = &scores[row * classes..(row + 1) * classes];
            z.iter_mut().zip(scores).for_each(|(z, &x)| *z = w * f64::from(x));
            let label = labels[row] as usize;
            let own_score = z[label];
            let log_total = softmax(&mut z);
            let mean: f64 = z.iter().zip(scores).map(|(p, &x)| p * f64::from(x)).sum();
            let square: f64 = z.iter().zip(scores).map(|(p, &x)| p * f64::from(x).powi(2)).sum();
            sums[0] += row_weights[row] * (log_total - own_score);
            sums[1] += row_weights[row] * (mean - f64::from(scores[label]));
            sums[2] += row_weights[row] * (square - mean * mean).max(0.0);
        }
        sums
    };
    let threads = threads::worth(threads, scores.len());
    let loss_at = |w: f64| {
        let distance = w - 1.0;
        let mut sums = [0.0; 3];
        for piece in threads::ranges(threads, n, PIECE, |rows| sums_of_piece(w, rows)) {
            sums.iter_mut().zip(piece).for_each(|(sum, piece)| *sum += piece);
        }
        let [loss, slope, curvature] = sums;
        (
            loss + ridge * distance * distance,
            slope + 2.0 * ridge * distance,
            curvature + 2.0 * ridge,
        )
    };
    let (mut low, mut high, mut w) = (0.0, most, most.min(1.0));
    let mut at_w = loss_at(w);
    for _ in 0..40 {
        let (_, slope, curvature) = at_w;
        if slope > 0.0 {
            high = w
        } else {
            low = w
        }
        let next = (w - slope / (curvature + 1e-12)).clamp(0.0, most);
        let next =
            if next > low && next < high || next == most { next } else { (low + high) / 2.0 };
        if (next - w).abs() < 1e-3 {
            break;
        }
        w = next;
        at_w = loss_at(w);
    }
    Ok((at_w.0, w))
}

/// Turns scores into probabilities, and returns the logarithm of the sum of their exponentials.
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
    fn the_temperature_has_the_least_loss() {
        let scores = [2.0, 0.0, 0.5, 1.0, 3.0, -1.0, 0.2, 0.1];
        let (labels, weights) = ([0, 1, 1, 0], [1.0, 2.0, 0.5, 1.0]);
        for (ridge, most) in [(0.0, 10.0), (5.0, 10.0), (0.0, 0.2)] {
            let (least, w) =
                least_tempered_loss(&scores, &labels, &weights, ridge, most, 1).unwrap();
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
    fn slopes_agree_with_differences_of_the_loss() {
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
            let rows = EvidenceMatrix {
                evidence: &says,
                labels: &own,
                row_weights: &[1.0, 2.0, 0.5, 1.0],
            };
            slope(&rows, &w, &b, 1).unwrap()
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
