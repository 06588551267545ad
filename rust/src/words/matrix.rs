//! Rows whose words were counted elsewhere: a matrix of occurrences, every cell of it or only those that are not zero.
//!
//! A column is a word, and the bucket of its number. The rows of each class are added up by themselves, or, where a table of all
//! classes and columns is small, all rows as they come.

use super::add_up::{Found, Lane};
use super::algebra::LARGEST_REAL;
use super::index::Vocabulary;
use super::merge::gather;
use super::store::{Counts, Sums};
use super::{TOO_LARGE, Total, Words};
use crate::classes::{self, Rows, Weights};
use crate::columns::{Block, Value, each};
use crate::error::{Error, Fault, Number, demand};
use crate::expansion::{Expansion, two_sum};
use crate::simd::{Loop, wide};
use crate::threads;
use ndarray::ArrayView2;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// What a cell counts as it is; NaN for one that is refused.
#[inline(always)]
pub fn plain<T: Value>(x: T) -> f64 {
    let x = x.real();
    // Nothing of infinity, or of NaN, is NaN.
    x + x * 0.0
}

/// What is done with the cells of a row, whatever iterates over them.
pub trait Each {
    fn see(self, cells: impl Iterator<Item = (u32, f64)>);
}

/// How the cells lie in memory.
#[derive(Debug)]
pub enum Layout<'a> {
    /// Rows × columns.
    Dense(Block<'a>),
    /// Those of row i are `offsets[i]` to `offsets[i + 1]`; `values` is one column.
    Sparse {
        offsets: &'a [i64],
        columns: &'a [i32],
        values: Block<'a>,
    },
}

/// How often each row has each column.
#[derive(Debug)]
pub struct Matrix<'a> {
    layout: Layout<'a>,
    n_columns: usize,
    /// What is above counts 1, all else 0; none: cells count as they are.
    threshold: Option<f64>,
    /// NaN counts nothing; else it is refused.
    skip: bool,
}

/// Numbers of at least this many cells are added up by a thread at a time.
const JOB: usize = 1 << 20;
/// Rows of a dense matrix whose real sums are added up at a time.
const PIECE: usize = 1 << 14;
/// A table of all classes and columns is small up to so many cells.
const SMALL_TABLE: usize = 1 << 18;
/// Sums of doubles are exact below this.
const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
/// Rows that are copied together where their cells are not side by side.
const TOGETHER: usize = 64;
/// Cells of a row that are added together; rows are filled up with zeros.
const LANES: usize = 8;

impl<'a> Matrix<'a> {
    pub fn new(
        layout: Layout<'a>,
        n_columns: usize,
        threshold: Option<f64>,
        skip: bool,
    ) -> Result<Self, Error> {
        demand(
            threshold.is_none_or(|t| t.is_finite() && t >= 0.0),
            "threshold must be finite and not negative",
        )?;
        match &layout {
            Layout::Dense(block) => demand(
                block.shape().1 == n_columns,
                "a dense matrix must have n_columns columns",
            )?,
            Layout::Sparse {
                offsets,
                columns,
                values,
            } => {
                check_sparse(offsets, columns, n_columns)?;
                demand(
                    values.shape() == (columns.len(), 1),
                    "there must be as many values as columns",
                )?;
            }
        }
        Ok(Matrix {
            layout,
            n_columns,
            threshold,
            skip,
        })
    }

    pub fn len(&self) -> usize {
        match &self.layout {
            Layout::Dense(block) => block.shape().0,
            Layout::Sparse { offsets, .. } => offsets.len() - 1,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn layout(&self) -> &Layout<'a> {
        &self.layout
    }

    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Cells of a row.
    pub fn size(&self, row: usize) -> usize {
        match &self.layout {
            Layout::Dense(_) => self.n_columns,
            Layout::Sparse { offsets, .. } => (offsets[row + 1] - offsets[row]) as usize,
        }
    }

    /// Cells of all rows.
    pub fn cells(&self) -> usize {
        match &self.layout {
            Layout::Dense(block) => block.shape().0.saturating_mul(self.n_columns),
            Layout::Sparse { offsets, .. } => (offsets[offsets.len() - 1] - offsets[0]) as usize,
        }
    }

    /// What a cell counts; NaN for one that is refused.
    #[inline(always)]
    pub fn counts<T: Value>(&self, x: T) -> f64 {
        let x = x.real();
        match self.threshold {
            _ if x.is_nan() => {
                if self.skip {
                    0.0
                } else {
                    x
                }
            }
            _ if x.is_infinite() => f64::NAN,
            Some(limit) => f64::from(u8::from(x > limit)),
            None => x,
        }
    }

    /// Calls `f` with the column and the count of each cell of a row that is not zero; an error for one that is refused.
    #[inline(always)]
    pub fn each_of(&self, row: usize, mut f: impl FnMut(u32, f64)) -> Result<(), Error> {
        let mut fine = true;
        match &self.layout {
            Layout::Dense(block) => each!(block, view => {
                for (column, &x) in view.row(row).iter().enumerate() {
                    let x = self.counts(x);
                    fine &= !x.is_nan();
                    if x != 0.0 {
                        f(column as u32, x);
                    }
                }
            }),
            Layout::Sparse {
                offsets,
                columns,
                values,
            } => {
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                let columns = &columns[range.clone()];
                each!(values, view => {
                    let mut see = |column: i32, x: f64| {
                        fine &= !x.is_nan();
                        if x != 0.0 {
                            f(column as u32, x);
                        }
                    };
                    match view.as_slice() {
                        Some(values) => {
                            let cells = columns.iter().zip(&values[range]);
                            cells.for_each(|(&column, &x)| see(column, self.counts(x)));
                        }
                        None => {
                            let cells = columns.iter().zip(range);
                            cells.for_each(|(&column, at)| see(column, self.counts(view[[at, 0]])));
                        }
                    }
                });
            }
        }
        if fine { Ok(()) } else { Err(self.refused(row)) }
    }

    /// Whether cells count as they are, and none may be missing.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.threshold.is_none() && !self.skip
    }

    /// Calls `f` with the columns of a row and what its cells count, zeros and NaN included.
    #[inline(always)]
    pub fn with_row(&self, row: usize, f: impl Each) {
        match &self.layout {
            Layout::Dense(block) => each!(block, view => {
                f.see((0..).zip(view.row(row).iter().map(|&x| self.counts(x))));
            }),
            Layout::Sparse {
                offsets,
                columns,
                values,
            } => {
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                let columns = columns[range.clone()].iter().map(|&column| column as u32);
                each!(values, view => match view.as_slice() {
                    Some(values) if self.is_plain() => {
                        f.see(columns.zip(values[range].iter().map(|&x| plain(x))));
                    }
                    Some(values) => {
                        f.see(columns.zip(values[range].iter().map(|&x| self.counts(x))));
                    }
                    None => f.see(columns.zip(range.map(|at| self.counts(view[[at, 0]])))),
                });
            }
        }
    }

    /// What is wrong with a row: the first cell that is refused; for counting a negative one too.
    pub fn refused(&self, row: usize) -> Error {
        let wrong = |column: usize, number: Number| {
            let x = number.real();
            let fault = match x {
                _ if x.is_nan() && !self.skip => Fault::Missing,
                _ if x.is_infinite() => Fault::Infinite,
                _ if x < 0.0 && self.threshold.is_none() => Fault::Negative,
                _ => return None,
            };
            Some(Error::BadValue {
                fault,
                feature: column,
                row,
                value: number,
            })
        };
        let found = match &self.layout {
            Layout::Dense(block) => {
                let mut columns = 0..self.n_columns;
                columns.find_map(|column| wrong(column, block.value(row, column)))
            }
            Layout::Sparse {
                offsets,
                columns,
                values,
            } => {
                let mut range = offsets[row] as usize..offsets[row + 1] as usize;
                range.find_map(|at| wrong(columns[at] as usize, values.value(at, 0)))
            }
        };
        found.unwrap_or_else(|| Error::malformed("a row has a cell that cannot be counted"))
    }

    /// The first row with a cell that cannot be counted.
    fn first_refused(&self) -> Error {
        for row in 0..self.len() {
            let mut negative = false;
            let read = self.each_of(row, |_, x| negative |= x < 0.0);
            if read.is_err() || negative {
                return self.refused(row);
            }
        }
        Error::malformed("the matrix has a cell that cannot be counted")
    }
}

/// Whether some row of a sparse matrix has a column twice.
pub fn has_twins(
    offsets: &[i64],
    columns: &[i32],
    n_columns: usize,
    threads: usize,
) -> Result<bool, Error> {
    check_sparse(offsets, columns, n_columns)?;
    let (n, threads) = (offsets.len() - 1, threads::worth(threads, columns.len()));
    let length = n.div_ceil(threads).max(1);
    let found = threads::map(threads, n.div_ceil(length), |i| {
        let mut last = vec![u32::MAX; n_columns];
        let rows = i * length..n.min((i + 1) * length);
        rows.zip(0_u32..).any(|(row, number)| {
            let cells = &columns[offsets[row] as usize..offsets[row + 1] as usize];
            let ascend = cells.is_sorted_by(|a, b| a < b);
            !ascend
                && cells
                    .iter()
                    .any(|&column| std::mem::replace(&mut last[column as usize], number) == number)
        })
    });
    Ok(found.into_iter().any(|twins| twins))
}

/// Checks that offsets ascend within the cells, and that columns exist.
fn check_sparse(offsets: &[i64], columns: &[i32], n_columns: usize) -> Result<(), Error> {
    let ends = offsets.first().zip(offsets.last());
    demand(
        ends.is_some_and(|(&a, &b)| a >= 0 && b as usize <= columns.len()) && offsets.is_sorted(),
        "offsets must ascend from 0 or more to the number of cells or less",
    )?;
    match columns.iter().find(|&&c| c < 0 || c as usize >= n_columns) {
        None => Ok(()),
        Some(column) => Err(Error::malformed(format!(
            "columns must lie between 0 and {}, got {column}",
            n_columns as i64 - 1
        ))),
    }
}

/// What the cells of a matrix are.
#[derive(Clone, Copy)]
struct Seen {
    /// None is refused, and none is negative.
    fine: bool,
    whole: bool,
    largest: f64,
}

impl Seen {
    const NOTHING: Seen = Seen {
        fine: true,
        whole: true,
        largest: 0.0,
    };

    #[inline(always)]
    fn note(&mut self, x: f64) {
        self.fine &= x >= 0.0;
        self.whole &= x == x.trunc();
        self.largest = if x > self.largest { x } else { self.largest };
    }

    fn and(self, other: Seen) -> Seen {
        Seen {
            fine: self.fine & other.fine,
            whole: self.whole & other.whole,
            largest: self.largest.max(other.largest),
        }
    }
}

/// Rows of a matrix with their classes and weights.
#[derive(Clone, Copy)]
struct Task<'a, 'm> {
    matrix: &'a Matrix<'m>,
    rows: Rows<'a>,
    threads: usize,
}

impl Task<'_, '_> {
    fn weight(&self, row: usize) -> f64 {
        match self.rows.weights {
            Weights::Ones => 1.0,
            Weights::Whole(weights) | Weights::Real(weights) => weights[row],
        }
    }

    /// How many rows a row counts as.
    fn times(&self, row: usize) -> u64 {
        match self.rows.weights {
            Weights::Whole(weights) => weights[row] as u64,
            _ => 1,
        }
    }

    fn heaviest(&self) -> f64 {
        match self.rows.weights {
            Weights::Ones => self.rows.len() as f64,
            Weights::Whole(weights) | Weights::Real(weights) => weights.iter().sum(),
        }
    }

    /// Whether sums are real; an error for cells that cannot be counted.
    fn is_real(&self, seen: Seen) -> Result<bool, Error> {
        if !seen.fine {
            return Err(self.matrix.first_refused());
        }
        let (most, whole) = (seen.largest * self.heaviest(), seen.whole);
        demand(most < LARGEST_REAL, "sums must stay below 2**1000")?;
        Ok(matches!(self.rows.weights, Weights::Real(_)) || !whole || most >= EXACT)
    }

    /// The cells, class by class, and whether sums are real.
    fn found(&self) -> Result<(Vec<Found>, bool), Error> {
        let table = self.matrix.n_columns.saturating_mul(self.rows.n_classes);
        match &self.matrix.layout {
            Layout::Dense(block) if table <= SMALL_TABLE && self.rows.len() > 1 => {
                each!(block, view => self.dense(view))
            }
            _ => self.by_class(),
        }
    }

    // All rows as they come

    fn dense<T: Value>(&self, view: &ArrayView2<T>) -> Result<(Vec<Found>, bool), Error> {
        let (n, width) = (self.rows.len(), self.width());
        let size = self.rows.n_classes * width;
        if !matches!(self.rows.weights, Weights::Real(_)) {
            // Whole sums do not depend on how rows are cut.
            let pieces = (n * width / JOB).clamp(1, 4 * self.threads);
            let length = n.div_ceil(pieces);
            let found = threads::map(self.threads, pieces, |i| {
                let (mut sums, mut lanes) = ([vec![0.0; size], vec![0.0; size]], Lanes::NOTHING);
                let rows = (i * length).min(n)..n.min((i + 1) * length);
                self.each_row(view, rows, |row, cells| {
                    let class = self.rows.classes[row] as usize;
                    let [occurrences, documents] = &mut sums;
                    let at = class * width..(class + 1) * width;
                    let sums = [&mut occurrences[at.clone()], &mut documents[at]];
                    wide(AddWhole(cells, self.weight(row), sums, &mut lanes));
                });
                (sums, lanes.seen())
            });
            let seen = found.iter().map(|(_, seen)| *seen);
            let seen = seen.fold(Seen::NOTHING, Seen::and);
            if !self.is_real(seen)? {
                let mut pieces = found.into_iter().map(|(sums, _)| sums);
                let mut total = pieces.next().unwrap_or_default();
                for piece in pieces {
                    for (total, piece) in total.iter_mut().zip(&piece) {
                        total.iter_mut().zip(piece).for_each(|(a, b)| *a += b);
                    }
                }
                return Ok((self.whole_table(&total), false));
            }
        }
        let found = threads::map(self.threads, n.div_ceil(PIECE), |i| {
            let (mut table, mut lanes) = (Table::new(size), Lanes::NOTHING);
            self.each_row(view, i * PIECE..n.min((i + 1) * PIECE), |row, cells| {
                let class = self.rows.classes[row] as usize;
                let slice = table.class(class * width..(class + 1) * width);
                wide(AddReal(
                    cells,
                    self.weight(row),
                    self.times(row),
                    slice,
                    &mut lanes,
                ));
            });
            (table, lanes.seen())
        });
        let (mut total, mut seen) = (Table::new(size), Seen::NOTHING);
        for (table, more) in &found {
            total.merge(table);
            seen = seen.and(*more);
        }
        self.is_real(seen)?;
        Ok((self.real_table(&total), true))
    }

    /// Columns, filled up to whole lanes.
    fn width(&self) -> usize {
        self.matrix.n_columns.next_multiple_of(LANES)
    }

    /// Calls `f` with each of these rows that is counted, and what its cells count.
    fn each_row<T: Value>(
        &self,
        view: &ArrayView2<T>,
        rows: Range<usize>,
        mut f: impl FnMut(usize, &[f64]),
    ) {
        let (k, width) = (self.matrix.n_columns, self.width());
        let side_by_side = view.row(0).to_slice().is_some();
        let mut room = vec![
            0.0;
            if side_by_side {
                width
            } else {
                TOGETHER * width
            }
        ];
        if side_by_side {
            for row in rows.filter(|&row| self.rows.classes[row] >= 0) {
                if let Some(cells) = view.row(row).to_slice() {
                    wide(Copied(self.matrix, cells, &mut room[..k]));
                    f(row, &room);
                }
            }
            return;
        }
        for first in rows.clone().step_by(TOGETHER) {
            let n = TOGETHER.min(rows.end - first);
            for column in 0..k {
                let cells = view.column(column);
                for at in 0..n {
                    room[at * width + column] = self.matrix.counts(cells[first + at]);
                }
            }
            for at in (0..n).filter(|&at| self.rows.classes[first + at] >= 0) {
                f(first + at, &room[at * width..(at + 1) * width]);
            }
        }
    }

    fn whole_table(&self, [occurrences, documents]: &[Vec<f64>; 2]) -> Vec<Found> {
        let width = self.width();
        let texts = classes::count_classes(&self.rows, self.threads);
        let one = |class: usize| {
            let at = class * width..(class + 1) * width;
            let cells = occurrences[at.clone()].iter().zip(&documents[at]);
            let cells = cells
                .enumerate()
                .filter(|(_, (_, documents))| **documents > 0.0);
            let (mut ids, mut counts, mut totals) = (vec![], vec![], [0, 0]);
            for (column, (&occurrences, &documents)) in cells {
                let cell = [occurrences as u64, documents as u64];
                ids.push(column as u32);
                counts.push(cell);
                totals = [totals[0] + cell[0], totals[1] + cell[1]];
            }
            whole_found(
                class,
                ids,
                Lane::Wide(counts),
                texts.rows[class] as u64,
                totals,
            )
        };
        self.of_each_class(&texts.rows, one)
    }

    fn real_table(&self, table: &Table) -> Vec<Found> {
        let texts = classes::count_classes(&self.rows, self.threads);
        self.of_each_class(&texts.rows, |class| {
            let cells = (0..self.matrix.n_columns).filter_map(|column| {
                let cell = table.cell(class * self.width() + column);
                (cell.counts[1] > 0).then_some((column as u32, cell))
            });
            real_found(class, cells, self.texts(class, &texts))
        })
    }

    fn texts(&self, class: usize, texts: &classes::ClassCounts) -> Total {
        let rows = texts.rows[class] as u64;
        let weight = match self.rows.weights {
            Weights::Real(_) => texts.weights[class],
            _ => Expansion::from_whole(rows),
        };
        Total { rows, weight }
    }

    fn of_each_class(&self, rows: &[i64], one: impl Fn(usize) -> Found) -> Vec<Found> {
        let classes = 0..self.rows.n_classes;
        classes.filter(|&class| rows[class] > 0).map(one).collect()
    }

    // Class by class

    fn by_class(&self) -> Result<(Vec<Found>, bool), Error> {
        let seen = self.look();
        let unweighted = Rows {
            weights: Weights::Ones,
            ..self.rows
        };
        let (order, starts) = classes::by_class(&unweighted);
        let jobs = self.jobs(&order, &starts);
        let real = self.is_real(seen)?;
        let most = seen.largest * (JOB + self.matrix.n_columns) as f64;
        let small = most.max(JOB as f64) < 4e9;
        let narrow = !real && matches!(self.rows.weights, Weights::Ones) && small;
        let found = match (real, narrow) {
            (true, _) if small && matches!(self.rows.weights, Weights::Ones) => {
                self.run::<RealOnes>(&jobs, &order)
            }
            (true, _) => self.run::<RealWeighted>(&jobs, &order),
            (false, true) => self.run::<NarrowCell>(&jobs, &order),
            (false, false) => self.run::<WideCell>(&jobs, &order),
        };
        Ok((found?, real))
    }

    fn run<C: Adding>(
        &self,
        jobs: &[(usize, Range<usize>)],
        order: &[i64],
    ) -> Result<Vec<Found>, Error> {
        // Zeros, which jobs leave as they found them.
        let rooms: Mutex<Vec<Vec<C>>> = Mutex::new(vec![]);
        let lock = || rooms.lock().unwrap_or_else(PoisonError::into_inner);
        threads::try_map(self.threads, jobs.len(), |i| {
            let (class, rows) = (jobs[i].0, &order[jobs[i].1.clone()]);
            let cells = rows.iter().map(|&row| self.matrix.size(row as usize));
            if cells.sum::<usize>() < self.matrix.n_columns / 16 {
                return self.few::<C>(class, rows);
            }
            let mut room = lock().pop().unwrap_or_default();
            room.resize(self.matrix.n_columns, C::default());
            let found = self.job(class, rows, &mut room)?;
            lock().push(room);
            Ok(found)
        })
    }

    fn rows_of(&self, rows: &[i64]) -> Total {
        let mut texts = Total::default();
        for &row in rows {
            texts.rows += self.times(row as usize);
            texts.weight.add(self.weight(row as usize));
        }
        texts
    }

    /// What the cells are.
    fn look(&self) -> Seen {
        let matrix = self.matrix;
        let pieces = matrix.cells().div_ceil(JOB).clamp(1, matrix.len().max(1));
        let length = matrix.len().div_ceil(pieces).max(1);
        let found = threads::map(self.threads, pieces, |i| {
            let rows = (i * length).min(matrix.len())..matrix.len().min((i + 1) * length);
            match &matrix.layout {
                Layout::Sparse {
                    offsets, values, ..
                } => {
                    let cells = offsets[rows.start] as usize..offsets[rows.end] as usize;
                    each!(values, view => match view.column(0).to_slice() {
                        Some(values) => wide(Look(matrix, &values[cells])),
                        None => {
                            let mut seen = Seen::NOTHING;
                            cells.for_each(|at| seen.note(matrix.counts(view[[at, 0]])));
                            seen
                        }
                    })
                }
                Layout::Dense(block) => each!(block, view => {
                    let mut seen = Seen::NOTHING;
                    for row in rows {
                        match view.row(row).to_slice() {
                            Some(cells) => seen = seen.and(wide(Look(matrix, cells))),
                            None => view.row(row).iter().for_each(|&x| seen.note(matrix.counts(x))),
                        }
                    }
                    seen
                }),
            }
        });
        found.into_iter().fold(Seen::NOTHING, Seen::and)
    }

    /// Runs of rows of one class, in the order of classes; how they are cut depends on the matrix alone.
    fn jobs(&self, order: &[i64], starts: &[i64]) -> Vec<(usize, Range<usize>)> {
        let mut jobs = vec![];
        for (class, ends) in starts.windows(2).enumerate() {
            let (mut first, mut cells) = (ends[0] as usize, 0);
            let rows = &order[..ends[1] as usize];
            for (at, &row) in rows.iter().enumerate().skip(first) {
                cells += self.matrix.size(row as usize);
                if cells >= JOB {
                    jobs.push((class, first..at + 1));
                    (first, cells) = (at + 1, 0);
                }
            }
            if first < ends[1] as usize {
                jobs.push((class, first..ends[1] as usize));
            }
        }
        jobs
    }

    fn job<C: Adding>(&self, class: usize, rows: &[i64], sums: &mut [C]) -> Result<Found, Error> {
        for &row in rows {
            let (weight, times) = (self.weight(row as usize), self.times(row as usize));
            let adding = AddRow(&mut *sums, weight, times);
            self.matrix.with_row(row as usize, adding);
        }
        let cells = sums.iter_mut().zip(0..).filter(|(cell, _)| cell.is_used());
        let cells = cells.map(|(cell, id)| (id, std::mem::take(cell)));
        Ok(C::found(class, cells, self.rows_of(rows)))
    }

    /// The same where most columns are not met.
    fn few<C: Adding>(&self, class: usize, rows: &[i64]) -> Result<Found, Error> {
        let mut cells: Vec<(u32, C)> = vec![];
        for &row in rows {
            let (weight, times) = (self.weight(row as usize), self.times(row as usize));
            self.matrix.each_of(row as usize, |column, x| {
                let mut cell = C::default();
                cell.add(x, weight, times);
                cells.push((column, cell));
            })?;
        }
        cells.sort_by_key(|(column, _)| *column);
        cells.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1.merge(&next.1);
            }
            same
        });
        Ok(C::found(class, cells.into_iter(), self.rows_of(rows)))
    }
}

/// Adds the cells of a row to the sums of their columns.
struct AddRow<'a, C>(&'a mut [C], f64, u64);

impl<C: Adding> Each for AddRow<'_, C> {
    #[inline(always)]
    fn see(self, cells: impl Iterator<Item = (u32, f64)>) {
        let AddRow(sums, weight, times) = self;
        for (column, x) in cells {
            sums[column as usize].add(x, weight, times);
        }
    }
}

fn whole_found(class: usize, ids: Vec<u32>, counts: Lane, rows: u64, totals: Counts) -> Found {
    let whole = |rows| Total {
        rows,
        weight: Expansion::default(),
    };
    Found {
        class: class as u32,
        ids,
        counts,
        real: false,
        sums: vec![],
        texts: whole(rows),
        totals: totals.map(whole),
    }
}

fn real_found(class: usize, cells: impl Iterator<Item = (u32, RealCell)>, texts: Total) -> Found {
    let (mut ids, mut counts, mut sums) = (vec![], vec![], vec![]);
    let mut totals = [Total::default(); 2];
    for (id, cell) in cells {
        ids.push(id);
        counts.push(cell.counts);
        sums.push(cell.sums);
        for (total, (&rows, sum)) in totals.iter_mut().zip(cell.counts.iter().zip(&cell.sums)) {
            total.rows += rows;
            total.weight.merge(sum);
        }
    }
    Found {
        class: class as u32,
        ids,
        counts: Lane::Wide(counts),
        real: true,
        sums,
        texts,
        totals,
    }
}

/// What a column has in one class so far. A cell that counts nothing adds nothing.
trait Adding: Copy + Default + Send {
    fn add(&mut self, x: f64, weight: f64, times: u64);
    fn merge(&mut self, other: &Self);
    fn is_used(&self) -> bool;
    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found;
}

/// Occurrences in the upper half, documents in the lower.
#[derive(Clone, Copy, Default)]
struct NarrowCell(u64);

impl Adding for NarrowCell {
    #[inline(always)]
    fn add(&mut self, x: f64, _: f64, _: u64) {
        self.0 += (u64::from(x as u32) << 32) + u64::from(x != 0.0);
    }

    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
    }

    fn is_used(&self) -> bool {
        self.0 != 0
    }

    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found {
        let (mut ids, mut counts, mut totals) = (vec![], vec![], [0, 0]);
        for (id, NarrowCell(cell)) in cells {
            let cell = [(cell >> 32) as u32, cell as u32];
            ids.push(id);
            counts.push(cell);
            totals = [0, 1].map(|i| totals[i] + u64::from(cell[i]));
        }
        whole_found(class, ids, Lane::Narrow(counts), texts.rows, totals)
    }
}

#[derive(Clone, Copy, Default)]
struct WideCell(Counts);

impl Adding for WideCell {
    #[inline(always)]
    fn add(&mut self, x: f64, _: f64, times: u64) {
        self.0[0] += x as u64 * times;
        self.0[1] += u64::from(x != 0.0) * times;
    }

    fn merge(&mut self, other: &Self) {
        self.0[0] += other.0[0];
        self.0[1] += other.0[1];
    }

    fn is_used(&self) -> bool {
        self.0[1] != 0
    }

    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found {
        let (mut ids, mut counts, mut totals) = (vec![], vec![], [0, 0]);
        for (id, WideCell(cell)) in cells {
            ids.push(id);
            counts.push(cell);
            totals = [0, 1].map(|i| totals[i] + cell[i]);
        }
        whole_found(class, ids, Lane::Wide(counts), texts.rows, totals)
    }
}

#[derive(Clone, Copy, Default)]
struct RealCell {
    counts: Counts,
    sums: Sums,
}

/// What a real number of occurrences counts beside its sum: itself if it is whole, else one.
#[inline(always)]
fn tokens(x: f64) -> u64 {
    let whole = x as u64;
    if whole as f64 == x && x < EXACT {
        whole
    } else {
        1
    }
}

impl RealCell {
    fn merge(&mut self, other: &Self) {
        for i in 0..2 {
            self.counts[i] += other.counts[i];
            self.sums[i].merge(&other.sums[i]);
        }
    }
}

/// A sum of two doubles, as exact as its terms are few beside 2^50.
#[derive(Clone, Copy, Default)]
struct Pair(f64, f64);

impl Pair {
    #[inline(always)]
    fn add(&mut self, x: f64) {
        let (sum, lost) = two_sum(self.0, x);
        *self = Pair(sum, self.1 + lost);
    }

    fn merge(&mut self, other: &Pair) {
        self.add(other.0);
        self.add(other.1);
    }

    fn expansion(self) -> Expansion {
        let mut sum = Expansion::default();
        sum.add(self.0);
        sum.add(self.1);
        sum
    }
}

/// Real sums of rows that weigh one: their documents are their number.
#[derive(Clone, Copy, Default)]
struct RealOnes {
    occurrences: Pair,
    tokens: u32,
    documents: u32,
}

impl Adding for RealOnes {
    #[inline(always)]
    fn add(&mut self, x: f64, _: f64, _: u64) {
        let there = u32::from(x != 0.0);
        self.tokens += tokens(x) as u32 * there;
        self.documents += there;
        self.occurrences.add(x);
    }

    fn merge(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.documents += other.documents;
        self.occurrences.merge(&other.occurrences);
    }

    fn is_used(&self) -> bool {
        self.documents != 0
    }

    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found {
        let real = |cell: Self| RealCell {
            counts: [cell.tokens, cell.documents].map(u64::from),
            sums: [
                cell.occurrences.expansion(),
                Expansion::from_whole(u64::from(cell.documents)),
            ],
        };
        real_found(class, cells.map(|(id, cell)| (id, real(cell))), texts)
    }
}

/// Real sums of rows that have weights.
#[derive(Clone, Copy, Default)]
struct RealWeighted {
    counts: Counts,
    sums: [Pair; 2],
}

impl Adding for RealWeighted {
    #[inline(always)]
    fn add(&mut self, x: f64, weight: f64, times: u64) {
        if x != 0.0 {
            self.counts[0] += tokens(x) * times;
            self.counts[1] += times;
            self.sums[0].add(x * weight);
            self.sums[1].add(weight);
        }
    }

    fn merge(&mut self, other: &Self) {
        for i in 0..2 {
            self.counts[i] += other.counts[i];
            self.sums[i].merge(&other.sums[i]);
        }
    }

    fn is_used(&self) -> bool {
        self.counts[1] != 0
    }

    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found {
        let real = |cell: Self| RealCell {
            counts: cell.counts,
            sums: cell.sums.map(Pair::expansion),
        };
        real_found(class, cells.map(|(id, cell)| (id, real(cell))), texts)
    }
}

/// Real sums of many cells, part by part, so that neighbours are added together.
struct Table {
    /// Occurrences: the three parts of their sums.
    occurrences: [Vec<f64>; 3],
    documents: [Vec<f64>; 3],
    counts: [Vec<u64>; 2],
}

/// Some cells of a table.
struct Slice<'a> {
    occurrences: [&'a mut [f64]; 3],
    documents: [&'a mut [f64]; 3],
    counts: [&'a mut [u64]; 2],
}

impl Table {
    fn new(size: usize) -> Self {
        let zeros = || [vec![0.0; size], vec![0.0; size], vec![0.0; size]];
        Table {
            occurrences: zeros(),
            documents: zeros(),
            counts: [vec![0; size], vec![0; size]],
        }
    }

    fn class(&mut self, cells: Range<usize>) -> Slice<'_> {
        Slice {
            occurrences: self
                .occurrences
                .each_mut()
                .map(|part| &mut part[cells.clone()]),
            documents: self
                .documents
                .each_mut()
                .map(|part| &mut part[cells.clone()]),
            counts: self.counts.each_mut().map(|part| &mut part[cells.clone()]),
        }
    }

    fn cell(&self, at: usize) -> RealCell {
        RealCell {
            counts: self.counts.each_ref().map(|part| part[at]),
            sums: [&self.occurrences, &self.documents]
                .map(|sum| Expansion::from_parts(sum.each_ref().map(|part| part[at]))),
        }
    }

    fn merge(&mut self, other: &Table) {
        for at in 0..self.counts[0].len() {
            let mut cell = self.cell(at);
            cell.merge(&other.cell(at));
            for i in 0..2 {
                self.counts[i][at] = cell.counts[i];
            }
            for (i, part) in cell.sums[0].parts().into_iter().enumerate() {
                self.occurrences[i][at] = part;
            }
            for (i, part) in cell.sums[1].parts().into_iter().enumerate() {
                self.documents[i][at] = part;
            }
        }
    }
}

/// Copies what the cells of a row count.
struct Copied<'a, 'm, T>(&'a Matrix<'m>, &'a [T], &'a mut [f64]);

impl<T: Value> Loop for Copied<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.0.threshold {
            None if !self.0.skip => {
                for (out, &x) in self.2.iter_mut().zip(self.1) {
                    *out = plain(x);
                }
            }
            _ => {
                for (out, &x) in self.2.iter_mut().zip(self.1) {
                    *out = self.0.counts(x);
                }
            }
        }
    }
}

struct Look<'a, 'm, T>(&'a Matrix<'m>, &'a [T]);

impl<T: Value> Loop for Look<'_, '_, T> {
    type Output = Seen;

    #[inline(always)]
    fn run(self) -> Seen {
        let mut seen = Seen::NOTHING;
        for &x in self.1 {
            seen.note(self.0.counts(x));
        }
        seen
    }
}

/// What the cells of rows are, eight at a time.
#[derive(Clone, Copy)]
struct Lanes {
    lowest: [f64; LANES],
    largest: [f64; LANES],
    /// 1 once a number is not whole.
    parted: [f64; LANES],
}

impl Lanes {
    const NOTHING: Lanes = Lanes {
        lowest: [0.0; LANES],
        largest: [0.0; LANES],
        parted: [0.0; LANES],
    };

    #[inline(always)]
    fn note(&mut self, row: &[f64; LANES]) {
        for (lane, &x) in row.iter().enumerate() {
            self.lowest[lane] = if x >= 0.0 { self.lowest[lane] } else { -1.0 };
            self.parted[lane] = if x == x.trunc() {
                self.parted[lane]
            } else {
                1.0
            };
            self.largest[lane] = if x > self.largest[lane] {
                x
            } else {
                self.largest[lane]
            };
        }
    }

    fn seen(&self) -> Seen {
        Seen {
            fine: self.lowest.iter().all(|&x| x == 0.0),
            whole: self.parted.iter().all(|&x| x == 0.0),
            largest: self.largest.into_iter().fold(0.0, f64::max),
        }
    }
}

/// Adds a row of whole counts to occurrences and documents.
struct AddWhole<'a>(&'a [f64], f64, [&'a mut [f64]; 2], &'a mut Lanes);

impl Loop for AddWhole<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddWhole(row, weight, [occurrences, documents], lanes) = self;
        let (row, _) = row.as_chunks::<LANES>();
        let (occurrences, _) = occurrences.as_chunks_mut::<LANES>();
        let (documents, _) = documents.as_chunks_mut::<LANES>();
        let mut seen = *lanes;
        for ((row, occurrences), documents) in row.iter().zip(occurrences).zip(documents) {
            seen.note(row);
            for lane in 0..LANES {
                let x = row[lane];
                occurrences[lane] += x * weight;
                documents[lane] += if x != 0.0 { weight } else { 0.0 };
            }
        }
        *lanes = seen;
    }
}

/// Adds a row of real counts.
struct AddReal<'a>(&'a [f64], f64, u64, Slice<'a>, &'a mut Lanes);

impl Loop for AddReal<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddReal(row, weight, times, slice, lanes) = self;
        let (chunks, _) = row.as_chunks::<LANES>();
        chunks.iter().for_each(|chunk| lanes.note(chunk));
        for ([hi, mid, lo], is_occurrence) in [(slice.occurrences, true), (slice.documents, false)]
        {
            let parts = hi.iter_mut().zip(mid).zip(lo);
            for (((hi, mid), lo), &x) in parts.zip(row) {
                let there = if x != 0.0 { weight } else { 0.0 };
                let more = if is_occurrence { x * weight } else { there };
                let (sum, lost) = two_sum(*hi, more);
                let (next, last) = two_sum(*mid, lost);
                (*hi, *mid) = (sum, next);
                *lo += last;
            }
        }
        let [occurrences, documents] = slice.counts;
        for ((occurrences, documents), &x) in occurrences.iter_mut().zip(documents).zip(row) {
            let there = u64::from(x != 0.0) * times;
            *occurrences += tokens(x) * there;
            *documents += there;
        }
    }
}

impl Words {
    /// Adds the rows of a matrix, whose columns are the first buckets. Gives the numbers of the words they have, in order.
    pub fn count_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<u32>, Error> {
        let (mut found, real) = self.found(matrix, rows, threads)?;
        let more: u64 = found.iter().map(|found| found.totals[0].rows).sum();
        let texts: u64 = found.iter().map(|found| found.texts.rows).sum();
        let fits = |a: u64, b: u64| a.checked_add(b).is_some_and(|sum| sum < TOO_LARGE);
        demand(
            fits(self.total(), more) && fits(self.n_texts(), texts),
            "there are more than 2**63 - 1 occurrences or texts",
        )?;
        self.number_columns(matrix.n_columns)?;
        self.renumber(&mut found)?;
        if real {
            self.make_real();
        }
        let threads = threads::worth(threads, matrix.cells());
        self.add_found(&found, threads)?;
        let mut touched = vec![];
        gather(&mut touched, &found, self.n_ids());
        Ok(touched)
    }

    /// Takes the rows of a matrix away again; changes nothing if they are not there.
    pub fn forget_matrix(
        &mut self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<Vec<u32>, Error> {
        let (mut found, real) = self.found(matrix, rows, threads)?;
        self.number_columns(matrix.n_columns)?;
        self.renumber(&mut found)?;
        let mut touched = vec![];
        gather(&mut touched, &found, self.n_ids());
        self.take_found(&found, real)?;
        Ok(touched)
    }

    fn found(
        &self,
        matrix: &Matrix,
        rows: Rows,
        threads: usize,
    ) -> Result<(Vec<Found>, bool), Error> {
        demand(
            matrix.len() == rows.len(),
            "there must be as many classes as rows",
        )?;
        demand(
            rows.n_classes == self.n_classes(),
            "classes must be those of the words",
        )?;
        demand(
            matrix.n_columns <= self.buckets(),
            "there must be a bucket for every column",
        )?;
        let threads = threads::worth(threads, matrix.cells());
        Task {
            matrix,
            rows,
            threads,
        }
        .found()
    }

    /// Has numbers for the first so many columns.
    pub fn number_columns(&mut self, n_columns: usize) -> Result<(), Error> {
        demand(
            n_columns <= self.buckets(),
            "there must be a bucket for every column",
        )?;
        if let Vocabulary::Hashed { ids, buckets } = &mut self.vocabulary
            && buckets.len() < n_columns
        {
            super::index::number_buckets(n_columns, ids, buckets);
        }
        self.cells.grow(self.vocabulary.len());
        Ok(())
    }

    /// By column the number of its word + 1, or 0.
    pub fn columns(&self) -> &[u32] {
        match &self.vocabulary {
            Vocabulary::Named { .. } => &[],
            Vocabulary::Hashed { ids, .. } => ids,
        }
    }

    /// Puts the numbers of words for columns, in order.
    fn renumber(&self, found: &mut [Found]) -> Result<(), Error> {
        let ids = self.columns();
        let in_order = |found: &Found| found.ids.iter().all(|&id| ids[id as usize] == id + 1);
        for found in found.iter_mut().filter(|found| !in_order(found)) {
            let mut order: Vec<(u32, usize)> = found
                .ids
                .iter()
                .enumerate()
                .map(|(at, &column)| (ids[column as usize].wrapping_sub(1), at))
                .collect();
            order.sort_unstable();
            found.counts = Lane::Wide(order.iter().map(|&(_, at)| found.counts.get(at)).collect());
            if found.real {
                found.sums = order.iter().map(|&(_, at)| found.sums[at]).collect();
            }
            found.ids = order.iter().map(|&(id, _)| id).collect();
        }
        Ok(())
    }
}
