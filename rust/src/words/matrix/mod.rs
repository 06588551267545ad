//! Rows whose words were counted elsewhere: a matrix of occurrences, dense or sparse, in which a column is a word.

mod counting;
mod rows;

use crate::columns::{Block, Value, with_typed_view};
use crate::error::{Error, Fault, Number, demand};
use crate::simd::wide;
use crate::threads;
use std::ops::Range;

/// A row: the columns of its cells, or none if it has every column, and the counts of the cells.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The columns of the cells, or none if the row has every column.
    pub columns: Option<&'a [i32]>,
    /// The counts of the cells; those of cells that are refused are infinite or NaN.
    values: &'a [f64],
}

impl<'a> Row<'a> {
    /// The counts of the cells, zeros included; NaN for those that are refused.
    #[inline(always)]
    pub fn values(&self) -> impl Iterator<Item = f64> + 'a {
        self.values.iter().map(|&x| finite_or_nan(x))
    }

    /// The column and the count of each cell of a sparse row; NaN for cells that are refused.
    #[inline(always)]
    pub fn sparse(&self) -> impl Iterator<Item = (u32, f64)> + 'a {
        let columns = self.columns.unwrap_or(&[]);
        columns.iter().map(|&column| column as u32).zip(self.values())
    }

    /// The column and the count of each cell of a row that has every column; NaN for cells that are refused.
    #[inline(always)]
    pub fn dense(&self) -> impl Iterator<Item = (u32, f64)> + 'a {
        (0..).zip(self.values())
    }

    /// Calls `f` with the column and the count of each cell; NaN for cells that are refused.
    #[inline(always)]
    fn visit_cells(&self, mut f: impl FnMut(u32, f64)) {
        match self.columns {
            Some(_) => self.sparse().for_each(|(column, count)| f(column, count)),
            None => self.dense().for_each(|(column, count)| f(column, count)),
        }
    }
}

/// Returns x, or NaN if x is infinite.
#[inline(always)]
pub fn finite_or_nan(x: f64) -> f64 {
    // Infinity times 0 is NaN.
    x + x * 0.0
}

/// How the cells lie in memory.
#[derive(Debug)]
pub enum Layout<'a> {
    /// Rows × columns.
    Dense(Block<'a>),
    /// The cells of row i are `offsets[i]` to `offsets[i + 1]`; `columns` has the column of each cell, and `values`, of one
    /// column, its number.
    Sparse { offsets: &'a [i64], columns: &'a [i32], values: Block<'a> },
}

/// How often each row has each column.
#[derive(Debug)]
pub struct Matrix<'a> {
    layout: Layout<'a>,
    /// How many columns there are, in a sparse matrix too.
    n_columns: usize,
    /// Cells above it count 1, all others 0; none if cells count as they are.
    threshold: Option<f64>,
    /// Whether NaN counts 0; else it is refused.
    skip: bool,
    /// Whether the cells of a dense matrix lie side by side, row after row.
    is_contiguous: bool,
    /// The cells, if they lie in the order of rows as doubles and count as they are.
    reals: Option<&'a [f64]>,
}

impl<'a> Matrix<'a> {
    /// A matrix whose cells lie as `layout` says. Refuses arrays that do not fit each other, columns that do not exist, and a
    /// threshold that is negative or not finite. Cells above `threshold` count 1 and others 0; without it they count as they
    /// are. If `skip`, NaN counts 0, else it is refused.
    pub fn new(
        layout: Layout<'a>,
        n_columns: usize,
        threshold: Option<f64>,
        skip: bool,
    ) -> Result<Self, Error> {
        demand(
            threshold.is_none_or(|limit| limit.is_finite() && limit >= 0.0),
            "threshold must be finite and not negative",
        )?;
        match &layout {
            Layout::Dense(block) => {
                demand(block.shape().1 == n_columns, "a dense matrix must have n_columns columns")?
            }
            Layout::Sparse { offsets, columns, values } => {
                check_sparse(offsets, columns, n_columns)?;
                demand(
                    values.shape() == (columns.len(), 1),
                    "there must be as many values as columns",
                )?;
            }
        }
        // Whether the cells of a dense matrix lie side by side, row after row.
        let is_contiguous = match &layout {
            Layout::Dense(block) => with_typed_view!(block, view => view.to_slice().is_some()),
            Layout::Sparse { .. } => false,
        };
        let mut matrix = Matrix { layout, n_columns, threshold, skip, is_contiguous, reals: None };
        // `block` holds the numbers of the cells.
        let (Layout::Dense(block) | Layout::Sparse { values: block, .. }) = &matrix.layout;
        if let (Block::F64(view), true) = (block, matrix.is_plain()) {
            matrix.reals = view.to_slice();
        }
        Ok(matrix)
    }

    /// How many rows there are: those of the array of a dense matrix, or one less than the offsets of a sparse one.
    pub fn len(&self) -> usize {
        match &self.layout {
            Layout::Dense(block) => block.shape().0,
            Layout::Sparse { offsets, .. } => offsets.len() - 1,
        }
    }

    /// How the cells lie in memory.
    pub fn layout(&self) -> &Layout<'a> {
        &self.layout
    }

    /// Whether only some cells of a row are there.
    pub fn is_sparse(&self) -> bool {
        matches!(self.layout, Layout::Sparse { .. })
    }

    /// How many columns there are, in a sparse matrix too.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// How many cells the row with the number `row` has: one per column, or as many as a sparse matrix lists between two
    /// offsets.
    pub fn size(&self, row: usize) -> usize {
        match &self.layout {
            Layout::Dense(_) => self.n_columns,
            Layout::Sparse { offsets, .. } => (offsets[row + 1] - offsets[row]) as usize,
        }
    }

    /// How many cells all rows have: rows times columns, or as many as a sparse matrix lists between the first and the last
    /// offset.
    pub fn cells(&self) -> usize {
        match &self.layout {
            Layout::Dense(block) => block.shape().0.saturating_mul(self.n_columns),
            Layout::Sparse { offsets, .. } => (offsets[offsets.len() - 1] - offsets[0]) as usize,
        }
    }

    /// The count of a cell with the number x: 1 or 0 if there is a `threshold`, depending on whether x is above it, else x; 0
    /// for NaN if `skip`; NaN if the cell is refused, as infinite x are.
    #[inline(always)]
    pub fn counts<T: Value>(&self, x: T) -> f64 {
        let x = x.real();
        match self.threshold {
            _ if x.is_nan() && self.skip => 0.0,
            _ if !x.is_finite() => f64::NAN,
            Some(limit) => f64::from(u8::from(x > limit)),
            None => x,
        }
    }

    /// Calls `f` with the column and the count of each cell of a row, except cells that count 0; an error, after all cells, if
    /// one is refused. `row` is the row's number, and `buffer` memory for the counts of its cells.
    pub fn each_of(
        &self,
        row: usize,
        buffer: &mut Vec<f64>,
        mut f: impl FnMut(u32, f64),
    ) -> Result<(), Error> {
        // Whether a cell of the row is refused, and the row's cells.
        let (mut any_refused, cells) = (false, self.row(row, buffer));
        // Called with a cell's column and count.
        let visit = |column: u32, count: f64| {
            if count != 0.0 {
                any_refused |= count.is_nan();
                f(column, count);
            }
        };
        cells.visit_cells(visit);
        if any_refused { Err(self.refused(row)) } else { Ok(()) }
    }

    /// Whether a cell counts one at most.
    pub fn counts_once(&self) -> bool {
        self.threshold.is_some()
    }

    /// Whether cells count as they are, and none may be missing.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.threshold.is_none() && !self.skip
    }

    /// The cells of the row with the number `row`: their columns and counts. The counts are written to `buffer` if the cells do
    /// not count as they are.
    #[inline(always)]
    pub fn row<'b>(&'b self, row: usize, buffer: &'b mut Vec<f64>) -> Row<'b> {
        // The columns of the row's cells (none: all columns), and where its cells are among those of the matrix.
        let (columns, cells) = match &self.layout {
            Layout::Dense(_) => (None, row * self.n_columns..(row + 1) * self.n_columns),
            Layout::Sparse { offsets, columns, .. } => {
                let cells = offsets[row] as usize..offsets[row + 1] as usize;
                (Some(&columns[cells.clone()]), cells)
            }
        };
        Row { columns, values: self.values(cells, buffer) }
    }

    /// The counts of some cells, which are numbered row by row and must be in one row, or in a sparse matrix, or in a matrix
    /// that lies row after row. They are written to `buffer` unless they are counts as they lie in memory.
    #[inline(always)]
    fn values<'b>(&'b self, cells: Range<usize>, buffer: &'b mut Vec<f64>) -> &'b [f64] {
        match self.reals {
            Some(reals) => &reals[cells], // all cells of the matrix, in memory
            None => self.read(cells, buffer),
        }
    }

    /// Writes the counts of cells, numbered as in [`Matrix::values`], to the beginning of `buffer`, and returns them.
    fn read<'b>(&self, cells: Range<usize>, buffer: &'b mut Vec<f64>) -> &'b [f64] {
        if cells.is_empty() {
            return &[];
        }
        buffer.resize(buffer.len().max(cells.len()), 0.0);
        let counts = &mut buffer[..cells.len()]; // to be written
        let (Layout::Dense(block) | Layout::Sparse { values: block, .. }) = &self.layout;
        with_typed_view!(block, view => {
            // A view of the numbers of all cells: rows × columns, or one column if the matrix is sparse.
            let (view_width, counts) = (view.ncols(), &mut *counts);
            // Of the first cell, in the view.
            let (row, first_column) = (cells.start / view_width, cells.start % view_width);
            // The cells, if they lie side by side in their row.
            let in_row = || view.row(row).to_slice()?.get(first_column..first_column + cells.len());
            match view.to_slice().map(|all| &all[cells.clone()]).or_else(in_row) {
                Some(cells) => wide!(match self.is_plain() {
                    true => counts.iter_mut().zip(cells).for_each(|(count, x)| *count = x.real()),
                    false => {
                        counts.iter_mut().zip(cells).for_each(|(count, &x)| *count = self.counts(x))
                    }
                }),
                None => counts.iter_mut().zip(cells.clone()).for_each(|(count, cell)| {
                    *count = self.counts(view[[cell / view_width, cell % view_width]]);
                }),
            }
        });
        counts
    }

    /// The error of the row with the number `row`, which has a cell that is refused, or negative though cells count as they
    /// are: it names the column and the number of the first such cell.
    pub fn refused(&self, row: usize) -> Error {
        // The error of a cell of this column with this number; none if it can be counted.
        let fault_at = |column: usize, number: Number| {
            let x = number.real();
            let fault = match x {
                _ if x.is_nan() && !self.skip => Fault::Missing,
                _ if x.is_infinite() => Fault::Infinite,
                _ if x < 0.0 && self.threshold.is_none() => Fault::Negative,
                _ => return None,
            };
            Some(Error::BadValue { fault, feature: column, row, value: number })
        };
        let error = match &self.layout {
            Layout::Dense(block) => {
                let mut columns = 0..self.n_columns;
                columns.find_map(|column| fault_at(column, block.value(row, column)))
            }
            Layout::Sparse { offsets, columns, values } => {
                let mut cells = offsets[row] as usize..offsets[row + 1] as usize;
                cells.find_map(|cell| fault_at(columns[cell] as usize, values.value(cell, 0)))
            }
        };
        error.unwrap_or_else(|| Error::malformed("a row has a cell that cannot be counted"))
    }

    /// The error of the first row with a cell that cannot be counted, as it is missing, infinite or negative.
    fn first_refused(&self) -> Error {
        for row in 0..self.len() {
            let mut any_negative = false; // whether a cell of the row is negative
            // An error if a cell of the row is refused.
            let read = self.each_of(row, &mut vec![], |_, count| any_negative |= count < 0.0);
            if read.is_err() || any_negative {
                return self.refused(row);
            }
        }
        Error::malformed("the matrix has a cell that cannot be counted")
    }
}

/// Whether some row of a sparse matrix has a column twice. The cells of row i are `offsets[i]` to `offsets[i + 1]`, `columns`
/// has the column of each, below `n_columns`; rows are shared among so many threads.
pub fn has_twins(
    offsets: &[i64],
    columns: &[i32],
    n_columns: usize,
    threads: usize,
) -> Result<bool, Error> {
    check_sparse(offsets, columns, n_columns)?;
    let (n_rows, threads) = (offsets.len() - 1, threads::worth(threads, columns.len()));
    let rows_per_range = n_rows.div_ceil(threads);
    // Whether some row of a range has a column twice, range after range.
    let repeats = threads::ranges(threads, n_rows, rows_per_range, |rows| {
        let mut last_rows = vec![]; // the last row that has a column, numbered within the range, `[column]`
        rows.zip(0_u32..).any(|(row, number)| {
            let row_columns = &columns[offsets[row] as usize..offsets[row + 1] as usize];
            if ascend(row_columns) {
                return false;
            }
            last_rows.resize(n_columns, u32::MAX);
            // The row that had the column last, and from now on this row.
            let mut last_row_of =
                |column: i32| std::mem::replace(&mut last_rows[column as usize], number);
            row_columns.iter().any(|&column| last_row_of(column) == number)
        })
    });
    Ok(repeats.into_iter().any(|repeats| repeats))
}

/// Whether columns ascend, none of them twice. It does not stop at the first that does not, since that takes longer.
#[inline(always)]
fn ascend(columns: &[i32]) -> bool {
    let next = columns.get(1..).unwrap_or(&[]);
    wide!(columns.iter().zip(next).fold(true, |all, (a, b)| all & (a < b)))
}

/// Refuses offsets of a sparse matrix that do not ascend within the cells (row i has the cells from `offsets[i]` up to but
/// without `offsets[i+1]`), and columns, one per cell, that are not from 0 to `n_columns` - 1.
fn check_sparse(offsets: &[i64], columns: &[i32], n_columns: usize) -> Result<(), Error> {
    // The first and the last offset.
    let ends = offsets.first().zip(offsets.last());
    demand(
        ends.is_some_and(|(&first, &last)| first >= 0 && last as usize <= columns.len())
            && offsets.is_sorted(),
        "offsets must ascend from 0 or more to the number of cells or less",
    )?;
    // The lowest and the highest column so far, with column c.
    let extremes = |(low, high): (i32, i32), &c: &i32| (low.min(c), high.max(c));
    let (low, high) = wide!(columns.iter().fold((0, -1), extremes)); // columns
    let last_column = n_columns as i64 - 1;
    if low < 0 || i64::from(high) > last_column {
        let wrong_column = if low < 0 { low } else { high };
        let text = format!("columns must lie between 0 and {last_column}, got {wrong_column}");
        return Err(Error::malformed(text));
    }
    Ok(())
}
