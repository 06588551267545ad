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
use std::ops::Range;

/// Rows of a piece. Sums are added piece by piece, so another size would change their last bits.
const PIECE: usize = 1 << 12;
/// Columns and pairs of a block, at most; and at least, if threads share few columns. To weigh 5,000 rows of 60 columns took 535 to
/// 576 ms with 16 and 1, 64 and 4, and 256 and 16, no more apart than two measurements of one of them.
const BLOCK: usize = 64;
const MIN_BLOCK: usize = 4;
/// Rows whose cells are looked up at a time, at most; and cells, so that they stay in the cache. With 64 terms a
/// visit of a row took 0.30 µs for 16 rows and 0.28 µs for 64.
const MAX_ROWS_AT_A_TIME: usize = 64;
const CELLS_AT_A_TIME: usize = 1 << 13;

/// The cells of rows: the code of each row in each column, `[row][column]`.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    codes: &'a [u32],
    /// How many columns there are.
    width: usize,
}

impl<'a> Cells<'a> {
    /// The cells of rows by their codes, `[row][column]`, with `width` columns; refuses codes that are not rows × columns.
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

    /// Adds up the weights of rows in each cell of every column, by class: `[cell][class]`, column after column. A row's code in
    /// a column, `[row][column]` with `width` columns, is its cell there. `sizes` has the number of cells of each column; a code
    /// equal to it means that the row has no cell there. `labels` has the class of each row, and `weights` what each row counts;
    /// `classes` is the number of classes.
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
        let code_limits = self.sizes(); // one more than the highest code of each column
        let fits = code_limits.iter().zip(sizes).all(|(&limit, &size)| limit as i64 <= size + 1);
        demand(fits && sizes.iter().all(|&size| size >= 0), "a column has more cells than that")?;
        let threads = threads::worth(threads, n_rows * self.width);
        // Each block of columns reads all rows.
        let block_columns = self.width.div_ceil(threads).clamp(MIN_BLOCK, BLOCK);
        let sums_of_blocks = threads::ranges(threads, self.width, block_columns, |columns| {
            let mut starts = vec![0]; // where the sums of each column begin
            for &size in &sizes[columns.clone()] {
                starts.push(starts[starts.len() - 1] + (size as usize + 1) * classes);
            }
            let mut sums = vec![0.0; starts[columns.len()]]; // of weights, [cell][class], column after column
            for (row, (&label, &weight)) in labels.iter().zip(weights).enumerate() {
                for (&code, &start) in self.row(row)[columns.clone()].iter().zip(&starts) {
                    sums[start + code as usize * classes + label as usize] += weight;
                }
            }
            // Without the sums of rows that have no cell, the last ones of each column.
            let sums_of_cells =
                starts.windows(2).flat_map(|ends| &sums[ends[0]..ends[1] - classes]);
            sums_of_cells.copied().collect::<Vec<f64>>()
        });
        Ok(sums_of_blocks.concat())
    }

    /// One more than the highest code of each column, `[column]`; 0 if there are no rows. Codes are `[row][column]` with `width`
    /// columns.
    fn sizes(&self) -> Vec<usize> {
        let mut highest = vec![0; self.width]; // the highest code of each column
        let highest_codes = &mut highest[..];
        wide!(for row in self.codes.chunks_exact(self.width) {
            highest_codes.iter_mut().zip(row).for_each(|(high, &code)| *high = code.max(*high));
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
    /// Returns the cell on one level of a row with these codes, `[column]`, counted from the first cell of that level. `first`,
    /// `[code][level]`, is the cell for the code in the group's column; in a pair, `other` is the second column and what its
    /// codes add to the cell, `[code][level]`.
    #[inline(always)]
    fn cell(&self, level: usize, codes: &[u32]) -> u32 {
        let cell_of = |cells: &[u32], column: usize| {
            cells[codes[column] as usize * self.levels + level] // `cells` is [code][level]
        };
        // By the second column of a pair.
        let added = self.other.as_ref().map_or(0, |(column, second)| cell_of(second, *column));
        cell_of(&self.first, self.column) + added
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
    /// The terms of these columns and pairs of columns, the groups: one for each level of a group. `sizes` has the number of
    /// cells of every term, group after group and level after level; an error if a group has cells beyond them. A group has, for
    /// each code of its column, the cells (`first`, `[code][level]`), and, for a pair, what the codes of the second column add to
    /// them (`second`, `[code][level]`).
    pub fn new(groups: Vec<Group>, sizes: &[i64]) -> Result<Self, Error> {
        let mut first_terms = vec![0]; // the first term of each group
        let mut starts = vec![0]; // the first cell of each term
        for group in &groups {
            let (levels, first_term) = (group.levels, starts.len() - 1);
            demand(levels > 0 && first_term + levels <= sizes.len(), "each term must have a size")?;
            // The highest cell of a row on each level.
            let mut highest_cells = highest(&group.first, levels);
            if let Some((_, second)) = &group.other {
                let added_cells = highest(second, levels);
                highest_cells.iter_mut().zip(added_cells).for_each(|(cell, added)| *cell += added);
            }
            for (&size, &highest_cell) in sizes[first_term..].iter().zip(&highest_cells) {
                demand(
                    size > 0 && highest_cell < size as usize,
                    "a term's cells must be below its size",
                )?;
                starts.push(starts[starts.len() - 1] + size as usize);
            }
            first_terms.push(starts.len() - 1);
        }
        demand(starts.len() - 1 == sizes.len(), "sizes must have one entry per term")?;
        demand(u32::try_from(starts[sizes.len()]).is_ok(), "there are too many cells")?;
        Ok(Terms { groups, firsts: first_terms, starts })
    }

    /// Joins these terms, one for each level of a column or a pair of columns, and the codes of rows, `cells`; an error if the
    /// terms lack a cell for a code of the rows. A group has, for each code of its column, the cell on each level (`first`,
    /// `[code][level]`), and, for a pair, the second column and what its codes add to the cell, `[code][level]`.
    pub fn of<'a>(&'a self, cells: Cells<'a>) -> Result<Lookups<'a>, Error> {
        let code_limits = cells.sizes(); // one more than the highest code of each column
        // Whether a column exists and all its codes have cells; `cells_of_codes` is `[code][level]` with `levels` levels.
        let covers = |levels: usize, column: usize, cells_of_codes: &[u32]| {
            column < cells.width && cells_of_codes.len() / levels >= code_limits[column]
        };
        let fits = self.groups.iter().all(|Group { column, levels, first, other }| {
            covers(*levels, *column, first)
                && other.as_ref().is_none_or(|(column, second)| covers(*levels, *column, second))
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

    /// The number of cells of each term of a group, a column or pair (its index), `[level]`.
    pub fn sizes(&self, group: usize) -> Vec<usize> {
        // The first cell of each term, and the end of the last one.
        let starts = &self.starts[self.firsts[group]..=self.firsts[group + 1]];
        starts.windows(2).map(|ends| ends[1] - ends[0]).collect()
    }

    /// Returns s² of each term, `[term]`: how much its cells may vary. All levels of a group (a column or a pair) together vary
    /// as much as a single term.
    pub fn variances(&self) -> Vec<f64> {
        let variances_of_groups =
            self.groups.iter().map(|group| vec![1.0 / group.levels as f64; group.levels]);
        variances_of_groups.flatten().collect()
    }

    /// Returns the group of a term (its index), that is the column or pair of columns whose levels are terms, and the term's
    /// level in it. `firsts` has the first term of each group.
    fn term(&self, term: usize) -> (&Group, usize) {
        let group = self.firsts.partition_point(|&first| first <= term) - 1;
        (&self.groups[group], term - self.firsts[group])
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

    /// How many rows to look up at a time if all groups are looked up.
    pub fn rows_at_a_time(&self) -> usize {
        (CELLS_AT_A_TIME / self.terms.len().max(1)).clamp(1, MAX_ROWS_AT_A_TIME)
    }

    /// Writes the cells of rows (numbers of rows) in some groups (the indices of columns and pairs of columns, which have a term
    /// for each level, from coarse cells to fine ones) to `cells`, `[row][term of these groups]`, counted from the first cell of
    /// all terms.
    ///
    /// It takes the rows group by group, and the compiler knows the number of levels up to eight, so that loops have a constant
    /// length and memory is read for several rows at once: with 64 terms, a visit of a row took 0.24 µs instead of 0.38.
    #[inline(always)]
    pub fn look_up(&self, groups: Range<usize>, rows: &[u32], cells: &mut Vec<u32>) {
        // The first term of each group and, last, that after all of them.
        let first_terms = &self.terms.firsts[groups.start..=groups.end];
        let width = first_terms[groups.len()] - first_terms[0]; // terms
        cells.resize(rows.len() * width, 0);
        for (&first_term, group) in first_terms.iter().zip(&self.terms.groups[groups]) {
            // The first cell of each of the group's terms, [level].
            let starts = &self.terms.starts[first_term..first_term + group.levels];
            let place = first_term - first_terms[0]; // of the group's terms in a row of `cells`
            let rows = rows.iter().map(|&row| self.cells.row(row as usize)); // codes, [column]
            let rows_and_cells =
                rows.zip(cells.chunks_exact_mut(width).map(|row| &mut row[place..]));
            // A row's codes, [column], and the place for its cells in the group, [level].
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
                        for (level, &start) in starts.iter().enumerate() {
                            cells[level] = start as u32 + group.cell(level, codes);
                        }
                    }
                }
            }
        }
    }

    /// Calls `f` with the number of every row, a term (its index), the row's cells in this term and the following ones of a block
    /// of groups, counted from the first cell of all terms, and the row's part of `out`, which is `[row][number]` with `width`
    /// numbers per row. It takes a block of groups (columns and pairs) at a time for many rows, so that their tables stay in the
    /// cache.
    fn fill<T: Send>(
        &self,
        out: &mut [T],
        width: usize,
        threads: usize,
        f: impl Fn(usize, usize, &[u32], &mut [T]) + Sync,
    ) {
        let n_groups = self.terms.groups.len();
        let threads = threads::worth(threads, self.rows() * self.terms.len());
        let piece_rows = self.rows().div_ceil(threads.max(1)).clamp(1, PIECE);
        threads::pieces(threads, out, piece_rows * width, |piece, out| {
            let (mut rows, mut cells) = (vec![], vec![]); // numbers of rows, and [row][term]
            for first_group in (0..n_groups).step_by(BLOCK) {
                let groups = first_group..n_groups.min(first_group + BLOCK);
                let first_term = self.terms.firsts[first_group];
                let mut first_row = piece * piece_rows;
                for out in out.chunks_mut(MAX_ROWS_AT_A_TIME * width) {
                    let n_rows = out.len() / width;
                    rows.clear();
                    rows.extend((first_row..first_row + n_rows).map(|row| row as u32));
                    self.look_up(groups.clone(), &rows, &mut cells);
                    let cells_of_rows = cells.chunks_exact(cells.len() / n_rows);
                    let rows = (first_row..).zip(cells_of_rows).zip(out.chunks_exact_mut(width));
                    rows.for_each(|((row, cells), out)| f(row, first_term, cells, out));
                    first_row += n_rows;
                }
            }
        });
    }
}

/// Writes the cells of rows in one group, a column or a pair of columns, counted from the first cell of all terms. The codes of a
/// group are divided into cells on `LEVELS` levels, from coarse to fine, and a row is in one cell of each level. `starts` has the
/// first cell of each level, and `rows` the codes of each row, `[column]`, and the place for its cells, `[level]`. `group.other`
/// has the second column of a pair, and what its codes add to cells.
#[inline(always)]
fn look_up<'a, const LEVELS: usize>(
    group: &Group,
    starts: &[usize],
    rows: impl Iterator<Item = (&'a [u32], &'a mut [u32])>,
) {
    let starts: [u32; LEVELS] = std::array::from_fn(|level| starts[level] as u32);
    let (first, _) = group.first.as_chunks::<LEVELS>(); // cells, [code][level]
    match &group.other {
        None => {
            for (codes, cells) in rows {
                let row_cells = &first[codes[group.column] as usize];
                let cells_of_levels: [u32; LEVELS] =
                    std::array::from_fn(|level| starts[level] + row_cells[level]);
                cells[..LEVELS].copy_from_slice(&cells_of_levels);
            }
        }
        Some((other_column, second)) => {
            let (second, _) = second.as_chunks::<LEVELS>(); // what is added to cells, [code][level]
            for (codes, cells) in rows {
                let row_cells = &first[codes[group.column] as usize];
                let added_cells = &second[codes[*other_column] as usize];
                let cells_of_levels: [u32; LEVELS] = std::array::from_fn(|level| {
                    starts[level] + row_cells[level] + added_cells[level]
                });
                cells[..LEVELS].copy_from_slice(&cells_of_levels);
            }
        }
    }
}

/// Returns the highest cell of each level, `[level]`, in `cells_of_codes`, the cells of a column's codes, `[code][level]`, with
/// `levels` levels.
fn highest(cells_of_codes: &[u32], levels: usize) -> Vec<usize> {
    let mut highest = vec![0; levels];
    for cells in cells_of_codes.chunks_exact(levels) {
        highest.iter_mut().zip(cells).for_each(|(high, &cell)| *high = (*high).max(cell as usize));
    }
    highest
}

/// The evidence of cells, `[cell][class]`. With `row_classes`, each row is left out of the evidence for it, which then depends on
/// its class: `[cell][row's class][class]`.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Nats for each class, of the cells of all terms.
    pub table: &'a [f64],
    /// The number of classes.
    pub classes: usize,
    /// The class of each row; None for rows that were not counted.
    pub row_classes: Option<&'a [i32]>,
}

impl Evidence<'_> {
    /// Refuses evidence that does not fit the terms and rows of `lookups`: a table, `[cell][class]`, or
    /// `[cell][row's class][class]` if there are `row_classes`, the class of each row, that has another length, or classes that
    /// do not exist.
    fn check(&self, lookups: &Lookups) -> Result<(), Error> {
        let tables_per_cell = if self.row_classes.is_some() { self.classes } else { 1 };
        demand(self.classes > 0, "there must be a class")?;
        demand(
            self.table.len() == lookups.terms.size() * tables_per_cell * self.classes,
            "the table must have all cells",
        )?;
        check_labels(self.row_classes.unwrap_or(&[]), self.classes)?;
        demand(
            self.row_classes.is_none_or(|labels| labels.len() == lookups.rows()),
            "each row must have a label",
        )
    }

    /// The evidence of a cell (counted from the first of all terms) for a row (its number), in nats, `[class]`. The table is
    /// `[cell][class]`; if there are `row_classes`, the class of each row, the row is left out, and it is
    /// `[cell][row's class][class]`.
    #[inline(always)]
    fn of(&self, cell: usize, row: usize) -> &[f64] {
        let table_row = match self.row_classes {
            Some(labels) => cell * self.classes + labels[row] as usize,
            None => cell,
        };
        let start = table_row * self.classes;
        &self.table[start..start + self.classes]
    }
}

/// Refuses labels, the classes of rows, that are not from 0 to `classes` - 1.
fn check_labels(labels: &[i32], classes: usize) -> Result<(), Error> {
    let are_classes = labels.iter().all(|&label| (0..classes as i64).contains(&i64::from(label)));
    demand(are_classes, "labels must be classes")
}

/// Returns the score of each row, `[row][class]`: `intercepts`, `[class]`, plus the evidence of the row's cells in nats, each
/// times the weight of its term in `weights`, `[term]`. `lookups` has the rows and the cell of each in every term.
pub fn scores(
    lookups: &Lookups,
    evidence: &Evidence,
    weights: &[f64],
    intercepts: &[f64],
    threads: usize,
) -> Result<Vec<f64>, Error> {
    evidence.check(lookups)?;
    demand(weights.len() == lookups.terms.len(), "there must be a weight for each term")?;
    let mut scores = intercepts.repeat(lookups.rows());
    lookups.fill(&mut scores, intercepts.len(), threads, |row, first_term, cells, scores| {
        // `cells` are those of the row in the terms from `first_term` on, `scores` those of the row, [class].
        let weights = &weights[first_term..];
        match scores.len() {
            2 => add_evidence::<2>(evidence, row, weights, cells, scores),
            3 => add_evidence::<3>(evidence, row, weights, cells, scores),
            _ => {
                for (&cell, weight) in cells.iter().zip(weights) {
                    let nats = evidence.of(cell as usize, row); // of the cell, [class]
                    scores.iter_mut().zip(nats).for_each(|(sum, nats)| *sum += weight * nats);
                }
            }
        }
    });
    Ok(scores)
}

/// Adds the evidence of a row's cells, in nats, each times the weight of its term, to the row's scores of `K` classes, which stay
/// in registers. `row` is the row's number; `cells`, `[term]`, are counted from the first cell of all terms, and `weights` begins
/// with the term of the first of them.
#[inline(always)]
fn add_evidence<const K: usize>(
    evidence: &Evidence,
    row: usize,
    weights: &[f64],
    cells: &[u32],
    scores: &mut [f64],
) {
    let mut sums: [f64; K] = std::array::from_fn(|class| scores[class]);
    for (&cell, weight) in cells.iter().zip(weights) {
        let nats = &evidence.of(cell as usize, row)[..K];
        for class in 0..K {
            sums[class] += weight * nats[class];
        }
    }
    scores.copy_from_slice(&sums);
}

/// Returns the evidence of each term for each row, in nats, relative to the last class: `[row][class but the last][term]`. It is
/// that of the row's cell in the term, by `lookups`. After the terms come `extra_terms` terms that are left at 0.
pub fn evidence_of_rows(
    lookups: &Lookups,
    evidence: &Evidence,
    extra_terms: usize,
    threads: usize,
) -> Result<Vec<f32>, Error> {
    evidence.check(lookups)?;
    let n_terms = lookups.terms.len() + extra_terms;
    let last_class = evidence.classes - 1;
    let width = last_class * n_terms; // numbers per row
    let mut evidence_of_rows = vec![];
    threads::lengthen(threads, &mut evidence_of_rows, lookups.rows() * width, 0.0);
    lookups.fill(&mut evidence_of_rows, width.max(1), threads, |row, first_term, cells, out| {
        // `out` is [class but the last][term].
        for (term, &cell) in (first_term..).zip(cells) {
            let nats = evidence.of(cell as usize, row); // of the cell, [class]
            for class in 0..last_class {
                out[class * n_terms + term] = (nats[class] - nats[last_class]) as f32;
            }
        }
    });
    Ok(evidence_of_rows)
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

/// Returns the log loss of all rows, in nats, under the weights of terms, `[term]`, and the intercepts of classes, `[class]`, and
/// its slope along each weight and then each intercept. The rows have the evidence of each term relative to the last class,
/// `[row][class but the last][term]`, the class of each row, and what each row counts.
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
    // Of all rows; slopes are along the weight of each term, then along each intercept.
    let (mut loss, mut slopes) = (0.0, vec![0.0; terms + classes]);
    for (piece_loss, piece_slopes) in pieces {
        loss += piece_loss;
        slopes.iter_mut().zip(piece_slopes).for_each(|(sum, slope)| *sum += slope);
    }
    Ok((loss, slopes))
}

/// Returns the log loss, in nats, of the rows of one piece (a range of their numbers) under the weights of terms, `[term]`, and
/// the intercepts of classes, `[class]`, and its slopes along each weight and then each intercept. The evidence of rows is
/// relative to the last class, `[row][class but the last][term]`; `row_weights` is what each row counts.
#[inline(always)]
fn slope_of_piece(
    rows: &EvidenceMatrix,
    weights: &[f64],
    intercepts: &[f64],
    piece: Range<usize>,
) -> (f64, Vec<f64>) {
    let (terms, classes) = (weights.len(), intercepts.len());
    let (mut loss, mut slopes) = (0.0, vec![0.0; terms + classes]);
    // A row's scores, then its probabilities, then these minus 1 for the class of the row.
    let mut scores = vec![0.0; classes];
    let size = (classes - 1) * terms; // numbers per row
    for row in piece {
        // The row's evidence for a class, [term].
        let nats = |class: usize| &rows.evidence[row * size + class * terms..][..terms];
        scores.copy_from_slice(intercepts);
        for (class, score) in scores[..classes - 1].iter_mut().enumerate() {
            *score += dot(nats(class), weights);
        }
        let label = rows.labels[row] as usize;
        let weight = rows.row_weights[row];
        let label_score = scores[label];
        // The log of the sum of the scores' exponentials; scores become probabilities.
        let log_total = softmax(&mut scores);
        loss += weight * (log_total - label_score);
        scores[label] -= 1.0;
        for class in 0..classes {
            let residual = weight * scores[class]; // the slope of the loss along the score
            slopes[terms + class] += residual;
            if class < classes - 1 {
                let slopes_and_nats = slopes[..terms].iter_mut().zip(nats(class));
                slopes_and_nats.for_each(|(slope, &nats)| *slope += residual * f64::from(nats));
            }
        }
    }
    (loss, slopes)
}

/// Returns Σ nats · weight over the terms: `nats`, `[term]`, is the evidence of a row, `weights` what the terms count. It is
/// added up as eight sums side by side, in a fixed order, so that its bits do not depend on the machine.
#[inline(always)]
fn dot(nats: &[f32], weights: &[f64]) -> f64 {
    let ((nats, last_nats), (weights, last_weights)) =
        (nats.as_chunks::<8>(), weights.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (nats, weights) in nats.iter().zip(weights) {
        for lane in 0..8 {
            sums[lane] += f64::from(nats[lane]) * weights[lane];
        }
    }
    let mut rest = 0.0; // the sum over the last terms, fewer than eight
    for (&nats, weight) in last_nats.iter().zip(last_weights) {
        rest += f64::from(nats) * weight;
    }
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest
}

/// Returns the least log loss, in nats, of scores, `[row][class]`, times a factor, and that factor. The factor is from 0 to
/// `most`, and `ridge` times the square of its distance to 1 is added to the loss. `labels` has the class of each row, and
/// `row_weights` what it counts.
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
    // Loss, slope and curvature along the factor of a piece of the rows (a range of their numbers).
    let sums_of_piece = |factor: f64, rows: Range<usize>| {
        let mut shares = vec![0.0; classes]; // a row's scores times the factor, then probabilities
        let mut sums = [0.0; 3]; // loss, slope, curvature
        for row in rows {
            let scores = &scores[row * classes..(row + 1) * classes];
            shares.iter_mut().zip(scores).for_each(|(z, &x)| *z = factor * f64::from(x));
            let label = labels[row] as usize;
            let label_score = shares[label];
            let log_total = softmax(&mut shares); // of the exponentials
            // The mean of the row's scores and of their squares under these probabilities.
            let (mut mean, mut mean_square) = (0.0, 0.0);
            for (share, &score) in shares.iter().zip(scores) {
                mean += share * f64::from(score);
                mean_square += share * f64::from(score).powi(2);
            }
            sums[0] += row_weights[row] * (log_total - label_score);
            sums[1] += row_weights[row] * (mean - f64::from(scores[label]));
            sums[2] += row_weights[row] * (mean_square - mean * mean).max(0.0);
        }
        sums
    };
    let threads = threads::worth(threads, scores.len());
    // Loss, slope and curvature of all rows and the ridge.
    let loss_at = |factor: f64| {
        let distance = factor - 1.0;
        let mut sums = [0.0; 3]; // loss, slope, curvature
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
    // Bounds of the best factor, and the factor that is tried.
    let (mut low, mut high, mut factor) = (0.0, most, most.min(1.0));
    let (mut loss, mut slope, mut curvature) = loss_at(factor);
    // Newton's method, with bisection where a step would leave the range from `low` to `high`.
    for _ in 0..40 {
        if slope > 0.0 {
            high = factor
        } else {
            low = factor
        }
        // The factor after a step of Newton's method.
        let newton = (factor - slope / (curvature + 1e-12)).clamp(0.0, most);
        let is_inside = newton > low && newton < high || newton == most;
        let next_factor = if is_inside { newton } else { (low + high) / 2.0 };
        if (next_factor - factor).abs() < 1e-3 {
            break;
        }
        factor = next_factor;
        (loss, slope, curvature) = loss_at(factor);
    }
    Ok((loss, factor))
}

/// Turns the scores of a row, `[class]`, into probabilities, and returns the logarithm of the sum of the scores' exponentials.
#[inline(always)]
fn softmax(scores: &mut [f64]) -> f64 {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max); // score
    let mut total = 0.0; // of the exponentials, relative to the highest
    for score in scores.iter_mut() {
        *score = exp(*score - highest);
        total += *score;
    }
    scores.iter_mut().for_each(|share| *share /= total);
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
        let labels = [0, 1, 1, 0];
        let at = |weights: [f64; 2], intercepts: [f64; 2]| {
            let evidence = Evidence { table: &table, classes: 2, row_classes: Some(&labels) };
            let nats = evidence_of_rows(&lookups, &evidence, 0, 1).unwrap();
            let rows = EvidenceMatrix {
                evidence: &nats,
                labels: &labels,
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
