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

/// The cells of rows: the code of each row in each column, `[row][column]`.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    codes: &'a [u32],
    /// How many columns there are.
    width: usize,
}

impl<'a> Cells<'a> {
    /// Refuses codes that are not rows × columns, `width` columns.
    pub fn new(codes: &'a [u32], width: usize) -> Result<Self, Error> {
        demand(width > 0 && codes.len().is_multiple_of(width), "codes must be rows × columns")?;
        Ok(Cells { codes, width })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.codes.len() / self.width
    }

    /// The codes of a row, `[column]`.
    #[inline(always)]
    fn row(&self, row: usize) -> &'a [u32] {
        &self.codes[row * self.width..(row + 1) * self.width]
    }

    /// Adds up the weights of rows in each cell of every column, by class: `[cell][class]`, column after column. `sizes` are the
    /// cells of each column; a code equal to it means that the row has no cell there. `labels` are the classes of rows.
    pub fn count(
        &self,
        sizes: &[i64],
        labels: &[i32],
        weights: &[f64],
        classes: usize,
        threads: usize,
    ) -> Result<Vec<f64>, Error> {
        let n_rows = self.rows();
        demand(sizes.len() == self.width, "each column must have a size")?;
        demand(labels.len() == n_rows && weights.len() == n_rows, "each row must have a label")?;
        check_labels(labels, classes)?;
        let code_limits = self.sizes();
        let fits = code_limits.iter().zip(sizes).all(|(&limit, &size)| limit as i64 <= size + 1);
        demand(fits && sizes.iter().all(|&size| size >= 0), "a column has more cells than that")?;
        let threads = threads::worth(threads, n_rows * self.width);
        // Each block reads all rows.
        let size = self.width.div_ceil(threads).clamp(MIN_BLOCK, BLOCK);
        let sums_of_columns = threads::ranges(threads, self.width, size, |columns| {
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
            // Without the sums of rows that have no cell, the last ones of each column.
            let known = starts.windows(2).flat_map(|ends| &sums[ends[0]..ends[1] - classes]);
            known.copied().collect::<Vec<f64>>()
        });
        Ok(sums_of_columns.concat())
    }

    /// One more than the highest code of each column; 0 if there are no rows.
    fn sizes(&self) -> Vec<usize> {
        let mut highest = vec![0; self.width];
        let high = &mut highest[..];
        wide!(for row in self.codes.chunks_exact(self.width) {
            high.iter_mut().zip(row).for_each(|(high, &code)| *high = code.max(*high));
        });
        let one_if_any_rows = usize::from(self.rows() > 0);
        highest.into_iter().map(|high| high as usize + one_if_any_rows).collect()
    }
}

/// The terms of one column or of a pair of columns, one for each level of the tree: which cell a code has on each level.
#[derive(Clone, Debug)]
pub struct Group {
    /// The column, or the first one of a pair.
    pub column: usize,
    /// How many levels there are, from the coarsest to the finest.
    pub levels: usize,
    /// The cell of each code of the column, `[code][level]`, counted from the first cell of its level.
    pub first: Vec<u32>,
    /// The second column of a pair, and what its codes add to the cell, `[code][level]`.
    pub other: Option<(usize, Vec<u32>)>,
}

impl Group {
    /// Returns the cell on one level of a row with these codes, counted from the first cell of that level.
    #[inline(always)]
    fn cell(&self, level: usize, codes: &[u32]) -> u32 {
        let of = |map: &[u32], column: usize| map[codes[column] as usize * self.levels + level];
        let of_second_column =
            self.other.as_ref().map_or(0, |(column, second)| of(second, *column));
        of(&self.first, self.column) + of_second_column
    }

    /// Returns how each cell of the last level is reached: the cells on all levels, `[level]`, by the first column, and what the
    /// second column adds to each, none if there is no second.
    fn paths_to_last_level(&self) -> Vec<(&[u32], Option<&[u32]>)> {
        let firsts = paths(&self.first, self.levels);
        match &self.other {
            None => firsts.into_iter().map(|first| (first, None)).collect(),
            Some((_, map)) => {
                let seconds = paths(map, self.levels);
                let pairs = firsts
                    .iter()
                    .flat_map(|&first| seconds.iter().map(move |&second| (first, Some(second))));
                pairs.collect()
            }
        }
    }

    /// Calls `f` with each level and the cell on it of a row with these codes, counted from the first cell of that level.
    #[inline(always)]
    fn each(&self, codes: &[u32], mut f: impl FnMut(usize, u32)) {
        // From the cells of the column's code on.
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

/// The terms of columns and pairs of columns, one per level of each. Every cell that a row can have is within its term's cells.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The columns and pairs.
    groups: Vec<Group>,
    /// The first term of each group, then the number of terms.
    firsts: Vec<usize>,
    /// The first cell of each term among those of all, then the number of cells.
    starts: Vec<usize>,
}

impl Terms {
    /// `sizes` are the numbers of cells of every term, group after group and level after level; an error if a group has cells
    /// beyond them.
    pub fn new(groups: Vec<Group>, sizes: &[i64]) -> Result<Self, Error> {
        let (mut firsts, mut starts) = (vec![0], vec![0]);
        for group in &groups {
            let (levels, first_term) = (group.levels, starts.len() - 1);
            demand(levels > 0 && first_term + levels <= sizes.len(), "each term must have a size")?;
            // The highest cell of a row on each level.
            let mut highest_cells = highest(&group.first, levels);
            if let Some((_, map)) = &group.other {
                highest_cells
                    .iter_mut()
                    .zip(highest(map, levels))
                    .for_each(|(highest_cell, more)| *highest_cell += more);
            }
            for (&size, &highest_cell) in sizes[first_term..].iter().zip(&highest_cells) {
                demand(
                    size > 0 && highest_cell < size as usize,
                    "a term's cells must be below its size",
                )?;
                starts.push(starts[starts.len() - 1] + size as usize);
            }
            firsts.push(starts.len() - 1);
        }
        demand(starts.len() - 1 == sizes.len(), "sizes must have one entry per term")?;
        demand(u32::try_from(starts[sizes.len()]).is_ok(), "there are too many cells")?;
        Ok(Terms { groups, firsts, starts })
    }

    /// Joins terms and rows; an error if the terms lack a cell for a code of the rows.
    pub fn of<'a>(&'a self, cells: Cells<'a>) -> Result<Lookups<'a>, Error> {
        let code_limits = cells.sizes();
        let covers = |levels: usize, column: usize, map: &[u32]| {
            column < cells.width && map.len() / levels >= code_limits[column]
        };
        let fits = self.groups.iter().all(|Group { column, levels, first, other }| {
            covers(*levels, *column, first)
                && other.as_ref().is_none_or(|(column, map)| covers(*levels, *column, map))
        });
        demand(fits, "a term must have a cell for every code of its columns")?;
        Ok(Lookups { cells, terms: self })
    }

    /// Columns and pairs, in the order of their terms.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The number of terms.
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

    /// The number of cells of each term of a group, `[level]`.
    pub fn sizes(&self, group: usize) -> Vec<usize> {
        let starts = &self.starts[self.firsts[group]..=self.firsts[group + 1]];
        starts.windows(2).map(|ends| ends[1] - ends[0]).collect()
    }

    /// Returns s² of each term, `[term]`: how much its cells may vary. All levels of a group together vary as much as a single
    /// term.
    pub fn variances(&self) -> Vec<f64> {
        let variances_of_groups =
            self.groups.iter().map(|group| vec![1.0 / group.levels as f64; group.levels]);
        variances_of_groups.flatten().collect()
    }

    /// Returns the group of a term, and the term's level in it.
    fn term(&self, term: usize) -> (&Group, usize) {
        let group = self.firsts.partition_point(|&first| first <= term) - 1;
        (&self.groups[group], term - self.firsts[group])
    }

    /// Adds up the numbers of all levels for every cell of each group's last level: `[group][cell of the last level][class]`, of a
    /// `table` that is `[cell of all terms][class]`.
    pub fn folded(&self, table: &[f64], classes: usize) -> Result<Vec<Vec<f64>>, Error> {
        demand(table.len() == self.size() * classes, "the table must have all cells")?;
        let tables_of_groups =
            self.groups.iter().zip(self.firsts.windows(2)).map(|(group, terms)| {
                let (last_level, term) = (group.levels - 1, terms[0]);
                let n_last_cells = self.starts[terms[1]] - self.starts[terms[1] - 1];
                let mut out = vec![0.0; n_last_cells * classes];
                for (first, second) in group.paths_to_last_level() {
                    let cell =
                        |level: usize| (first[level] + second.map_or(0, |map| map[level])) as usize;
                    let out =
                        &mut out[cell(last_level) * classes..(cell(last_level) + 1) * classes];
                    for level in 0..=last_level {
                        let from = (self.starts[term + level] + cell(level)) * classes;
                        let own = &table[from..from + classes];
                        out.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
                    }
                }
                out
            });
        Ok(tables_of_groups.collect())
    }
}

/// Rows, and terms that have a cell for each of their codes.
#[derive(Debug)]
pub struct Lookups<'a> {
    cells: Cells<'a>,
    pub terms: &'a Terms,
}

impl Lookups<'_> {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.cells.rows()
    }

    /// Calls `f` with each term of some groups and the row's cell in it, counted from the first cell of all terms.
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

    /// Writes the cells of rows in some groups to `cells`, `[row][term of these groups]`, counted from the first cell of all terms.
    /// `rows` are numbers of rows.
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

    /// Calls `f` with every row, a term, the row's cells in this term and the following ones of a block, and the row's part of
    /// `out`, which is `[row][number]` with `numbers` per row. It takes a block of groups at a time for many rows, so that their
    /// tables stay in the cache.
    fn fill<T: Send>(
        &self,
        out: &mut [T],
        numbers: usize,
        threads: usize,
        f: impl Fn(usize, usize, &[u32], &mut [T]) + Sync,
    ) {
        let n_groups = self.terms.groups.len();
        let threads = threads::worth(threads, self.rows() * self.terms.len());
        let piece = self.rows().div_ceil(threads.max(1)).clamp(1, PIECE);
        threads::pieces(threads, out, piece * numbers, |i, out| {
            let (mut rows, mut cells) = (vec![], vec![]);
            for first in (0..n_groups).step_by(BLOCK) {
                let groups = first..n_groups.min(first + BLOCK);
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

/// Writes the cells of rows in one group with `LEVELS` levels, counted from the first cell of all terms. `starts` are the first
/// cells of the levels, and `rows` has the codes of each row and the place for its cells.
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
                let own_cells = &first[codes[group.column] as usize];
                let cells_of_levels: [u32; LEVELS] =
                    std::array::from_fn(|level| starts[level] + own_cells[level]);
                cells[..LEVELS].copy_from_slice(&cells_of_levels);
            }
        }
        Some((other_column, second)) => {
            let (second, _) = second.as_chunks::<LEVELS>();
            for (codes, cells) in rows {
                let own_cells = &first[codes[group.column] as usize];
                let added_cells = &second[codes[*other_column] as usize];
                let cells_of_levels: [u32; LEVELS] = std::array::from_fn(|level| {
                    starts[level] + own_cells[level] + added_cells[level]
                });
                cells[..LEVELS].copy_from_slice(&cells_of_levels);
            }
        }
    }
}

/// Returns the cells on every level, `[level]`, for each distinct cell of the last level. `map` is `[code][level]`.
fn paths(map: &[u32], levels: usize) -> Vec<&[u32]> {
    let mut last_cells = HashSet::new();
    map.chunks_exact(levels).filter(|cells| last_cells.insert(cells[levels - 1])).collect()
}

/// Returns the highest cell of each level, `[level]`, in a `map` that is `[code][level]`.
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
    /// Nats for each class, of the cells of all terms.
    pub table: &'a [f64],
    /// What the evidence of each term is multiplied by.
    pub weights: &'a [f64],
    /// What each class scores without evidence.
    pub intercepts: &'a [f64],
    /// The class of each row; None for rows that were not counted.
    pub own: Option<&'a [i32]>,
}

impl Evidence<'_> {
    /// Refuses arrays that do not fit the terms and rows.
    fn check(&self, lookups: &Lookups) -> Result<(), Error> {
        let classes = self.intercepts.len();
        let tables_per_cell = if self.own.is_some() { classes } else { 1 };
        demand(classes > 0, "there must be a class")?;
        demand(self.weights.len() == lookups.terms.len(), "there must be a weight for each term")?;
        demand(
            self.table.len() == lookups.terms.size() * tables_per_cell * classes,
            "the table must have all cells",
        )?;
        check_labels(self.own.unwrap_or(&[]), classes)?;
        demand(self.own.is_none_or(|own| own.len() == lookups.rows()), "each row must have a label")
    }

    /// The evidence of a cell for a row, in nats, `[class]`; without the row itself if there is `own`.
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

/// Refuses labels that are not from 0 to `classes` - 1.
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

/// Adds the weighed evidence of a row's cells, those of `first_term` and the terms after it, to its scores of `K` classes, which
/// stay in registers.
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

/// Returns the evidence of each term for each row, in nats, relative to the last class: `[row][class but the last][term]`. The last
/// `extra_terms` terms of each row are left at 0. Weights and intercepts have no effect.
pub fn evidence_of_rows(
    lookups: &Lookups,
    evidence: &Evidence,
    extra_terms: usize,
    threads: usize,
) -> Result<Vec<f32>, Error> {
    evidence.check(lookups)?;
    let (n_rows, terms, classes) = (lookups.rows(), lookups.terms.len(), evidence.intercepts.len());
    let width = terms + extra_terms;
    let last = classes - 1;
    let mut out = vec![];
    threads::lengthen(threads, &mut out, n_rows * last * width, 0.0);
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
    /// In nats.
    pub evidence: &'a [f32],
    /// The class of each row.
    pub labels: &'a [i32],
    /// What each row counts.
    pub row_weights: &'a [f64],
}

/// Returns the log loss of all rows under the weights and intercepts, and its slope along each weight and then each intercept.
pub fn slope(
    rows: &EvidenceMatrix,
    weights: &[f64],
    intercepts: &[f64],
    threads: usize,
) -> Result<(f64, Vec<f64>), Error> {
    let (n_rows, terms, classes) = (rows.labels.len(), weights.len(), intercepts.len());
    demand(classes > 1, "there must be two classes")?;
    demand(rows.row_weights.len() == n_rows, "each row must have a weight")?;
    demand(rows.evidence.len() == n_rows * (classes - 1) * terms, "evidence must be rows × terms")?;
    check_labels(rows.labels, classes)?;
    let threads = threads::worth(threads, rows.evidence.len());
    let pieces = threads::ranges(threads, n_rows, PIECE, |piece| {
        wide!(slope_of_piece(rows, weights, intercepts, piece))
    });
    let mut total = (0.0, vec![0.0; terms + classes]);
    for (loss, slopes) in pieces {
        total.0 += loss;
        total.1.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
    }
    Ok(total)
}

/// Returns the loss of the rows of one piece, and its slopes along each weight and then each intercept.
#[inline(always)]
fn slope_of_piece(
    rows: &EvidenceMatrix,
    weights: &[f64],
    intercepts: &[f64],
    piece: Range<usize>,
) -> (f64, Vec<f64>) {
    let (terms, classes) = (weights.len(), intercepts.len());
    let (mut loss, mut slopes) = (0.0, vec![0.0; terms + classes]);
    // A row's scores, then its probabilities, then these minus 1 for its own class.
    let mut scores = vec![0.0; classes];
    // Evidence and residuals, of which several are added to the slopes at a time.
    let mut pending: [(&[f32], f64); SLOPE_ROWS] = [(&[], 0.0); SLOPE_ROWS];
    let mut n_pending = 0;
    for row in piece {
        let size = (classes - 1) * terms;
        let nats = &rows.evidence[row * size..(row + 1) * size];
        scores.copy_from_slice(intercepts);
        for c in 0..classes - 1 {
            scores[c] += dot(&nats[c * terms..(c + 1) * terms], weights);
        }
        let label = rows.labels[row] as usize;
        let weight = rows.row_weights[row];
        let own_score = scores[label];
        let log_total = softmax(&mut scores);
        loss += weight * (log_total - own_score);
        scores[label] -= 1.0;
        for c in 0..classes {
            let residual = weight * scores[c];
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

/// Adds the evidence of several rows for one class (`[term]`), each times its residual, to the slopes along the weights, one after
/// the other.
#[inline(always)]
fn add<const N: usize>(slopes: &mut [f64], rows: [(&[f32], f64); N]) {
    let n_terms = rows.iter().map(|(nats, _)| nats.len()).fold(slopes.len(), usize::min);
    let slopes = &mut slopes[..n_terms];
    let rows = rows.map(|(nats, residual)| (&nats[..n_terms], residual));
    for term in 0..n_terms {
        let mut sum = slopes[term];
        for (nats, residual) in rows {
            sum += residual * f64::from(nats[term]);
        }
        slopes[term] = sum;
    }
}

/// Returns Σ nats · weight over the terms. It is added up as eight sums side by side, in a fixed order, so that its bits do not
/// depend on the machine.
#[inline(always)]
fn dot(nats: &[f32], weights: &[f64]) -> f64 {
    let n_terms = nats.len().min(weights.len());
    let (nats, weights) = (&nats[..n_terms], &weights[..n_terms]);
    let (mut sums, mut term) = ([0.0; 8], 0);
    while term + 8 <= n_terms {
        let (eight_nats, eight_weights) = (&nats[term..term + 8], &weights[term..term + 8]);
        for lane in 0..8 {
            sums[lane] += f64::from(eight_nats[lane]) * eight_weights[lane];
        }
        term += 8;
    }
    let mut rest = 0.0;
    while term < n_terms {
        rest += f64::from(nats[term]) * weights[term];
        term += 1;
    }
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest
}

/// Returns the least log loss of scores, `[row][class]`, times a factor, and that factor. It is from 0 to `most`, and `ridge` times
/// the square of its distance to 1 is added to the loss.
pub fn least_tempered_loss(
    scores: &[f32],
    labels: &[i32],
    row_weights: &[f64],
    ridge: f64,
    most: f64,
    threads: usize,
) -> Result<(f64, f64), Error> {
    let n_rows = labels.len();
    demand(row_weights.len() == n_rows && n_rows > 0, "each row must have a weight")?;
    let classes = scores.len() / n_rows;
    demand(classes > 0 && scores.len() == n_rows * classes, "scores must be rows × classes")?;
    check_labels(labels, classes)?;
    // Loss, slope and curvature of a piece of the rows whose scores are times `factor`.
    let sums_of_piece = |factor: f64, rows: Range<usize>| {
        let mut tempered = vec![0.0; classes];
        let mut sums = [0.0; 3];
        for row in rows {
            let scores = &scores[row * classes..(row + 1) * classes];
            tempered
                .iter_mut()
                .zip(scores)
                .for_each(|(tempered, &x)| *tempered = factor * f64::from(x));
            let label = labels[row] as usize;
            let own_score = tempered[label];
            let log_total = softmax(&mut tempered);
            let mean: f64 =
                tempered.iter().zip(scores).map(|(share, &x)| share * f64::from(x)).sum();
            let square: f64 =
                tempered.iter().zip(scores).map(|(share, &x)| share * f64::from(x).powi(2)).sum();
            sums[0] += row_weights[row] * (log_total - own_score);
            sums[1] += row_weights[row] * (mean - f64::from(scores[label]));
            sums[2] += row_weights[row] * (square - mean * mean).max(0.0);
        }
        sums
    };
    let threads = threads::worth(threads, scores.len());
    let loss_at = |factor: f64| {
        let distance = factor - 1.0;
        let mut sums = [0.0; 3];
        for piece in threads::ranges(threads, n_rows, PIECE, |rows| sums_of_piece(factor, rows)) {
            sums.iter_mut().zip(piece).for_each(|(sum, piece)| *sum += piece);
        }
        let [loss, slope, curvature] = sums;
        (
            loss + ridge * distance * distance,
            slope + 2.0 * ridge * distance,
            curvature + 2.0 * ridge,
        )
    };
    let (mut low, mut high, mut factor) = (0.0, most, most.min(1.0));
    let mut at_factor = loss_at(factor);
    // Newton's method, with bisection where a step would leave the range from `low` to `high`.
    for _ in 0..40 {
        let (_, slope, curvature) = at_factor;
        if slope > 0.0 {
            high = factor
        } else {
            low = factor
        }
        let next_factor = (factor - slope / (curvature + 1e-12)).clamp(0.0, most);
        let next_factor = if next_factor > low && next_factor < high || next_factor == most {
            next_factor
        } else {
            (low + high) / 2.0
        };
        if (next_factor - factor).abs() < 1e-3 {
            break;
        }
        factor = next_factor;
        at_factor = loss_at(factor);
    }
    Ok((at_factor.0, factor))
}

/// Turns the scores of a row, `[class]`, into probabilities, and returns the logarithm of the sum of the scores' exponentials.
#[inline(always)]
fn softmax(z: &mut [f64]) -> f64 {
    let highest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for score in z.iter_mut() {
        *score = exp(*score - highest);
        total += *score;
    }
    z.iter_mut().for_each(|exponential| *exponential /= total);
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
            let (least, factor) =
                least_tempered_loss(&scores, &labels, &weights, ridge, most, 1).unwrap();
            let loss = |factor: f64| {
                let tempered = |i: usize| {
                    (factor * f64::from(scores[2 * i]), factor * f64::from(scores[2 * i + 1]))
                };
                let each = (0..4).map(|i| {
                    let (first, second) = tempered(i);
                    let mine = if labels[i] == 0 { first } else { second };
                    weights[i] * ((first.exp() + second.exp()).ln() - mine)
                });
                each.sum::<f64>() + ridge * (factor - 1.0).powi(2)
            };
            assert!((least - loss(factor)).abs() < 1e-9);
            for near in [0.99 * factor, (1.01 * factor).min(most)] {
                assert!(least <= loss(near) + 1e-9, "{ridge} {most} {factor} {near}");
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
        let at = |weights: [f64; 2], intercepts: [f64; 2]| {
            let evidence = Evidence {
                table: &table,
                weights: &weights,
                intercepts: &intercepts,
                own: Some(&own),
            };
            let nats = evidence_of_rows(&lookups, &evidence, 0, 1).unwrap();
            let rows = EvidenceMatrix {
                evidence: &nats,
                labels: &own,
                row_weights: &[1.0, 2.0, 0.5, 1.0],
            };
            slope(&rows, &weights, &intercepts, 1).unwrap()
        };
        let (_, slopes) = at([0.3, 0.8], [0.1, -0.2]);
        let step = 1e-6;
        for (place, slope) in slopes.iter().enumerate() {
            let mut high = [0.3, 0.8, 0.1, -0.2];
            let mut low = high;
            high[place] += step;
            low[place] -= step;
            let rise = at([high[0], high[1]], [high[2], high[3]]).0
                - at([low[0], low[1]], [low[2], low[3]]).0;
            assert!((rise / (2.0 * step) - slope).abs() < 1e-7);
        }
    }
}
