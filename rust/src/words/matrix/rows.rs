//! The rows of a matrix as rows of words, and what they add up to.

use super::{Layout, Matrix, finite_or_nan};
use crate::classes::{self, Rows, Weights};
use crate::columns::with_typed_view;
use crate::error::{Error, fit};
use crate::integers::PARTS;
use crate::simd::wide;
use crate::threads;
use crate::words::class_sums::{ClassSums, RowOrder, RowsToSum, Scratch, WordRows};
use crate::words::{TOO_LARGE, TOO_MANY};
use std::ops::Range;

/// Cells that a thread takes at a time.
/// 100,000 dense rows of 50 columns took 9.3, 9.5 and 9.9 ms with 2^16, 2^20 and 2^24.
const JOB: usize = 1 << 20;
/// Rows are added up as they come if a table of all classes and columns has no more cells than this, nor than the rows. With 0,
/// which always sorts rows by class, 100,000 rows of 50 columns in 5 classes took 15.6 ms instead of 11.1; a table of 100,000
/// cells for 2,000 rows of 5,000 columns took 35 ms instead of 14.
const SMALL_TABLE: usize = 1 << 18;
/// Numbers of a dense matrix that are read together.
/// 100,000 rows of 50 columns, column by column in memory, took 14.2, 14.4 and 13.7 ms with 2^8, 2^12 and 2^16.
const TILE: usize = 1 << 12;
/// Numbers that are summarised together; the rest of a row is filled up with zeros.
const LANES: usize = 8;
/// Cells whose values are read together, if they need converting: few enough to stay in the cache.
/// 20,000 sparse rows of 100 whole numbers took 32 ms with 2^8, 23 with 2^12 and 22 with 2^16.
const PIECE: usize = 1 << 12;

/// Rows of a matrix with their classes and weights.
#[derive(Clone, Copy)]
pub struct MatrixRows<'a, 'm> {
    pub matrix: &'a Matrix<'m>,
    pub rows: Rows<'a>,
    pub threads: usize,
}

impl WordRows for Matrix<'_> {
    /// How many columns there are, which are the words.
    fn n_ids(&self) -> usize {
        self.n_columns
    }

    /// How many cells a row has.
    fn size(&self, row: usize) -> usize {
        Matrix::size(self, row)
    }

    /// The counts of the cells of a row of a dense matrix, `[column]`; none for a sparse one. `scratch` is memory that all rows
    /// share: the counts are written there if the cells do not count as they are.
    #[inline(always)]
    fn counts_of_all_words<'b>(
        &'b self,
        row: usize,
        scratch: &'b mut Scratch,
    ) -> Option<&'b [f64]> {
        match self.layout {
            Layout::Sparse { .. } => None,
            Layout::Dense(_) if scratch.reads_all_rows => Some(self.next_row(row, scratch)),
            Layout::Dense(_) => Some(self.row(row, &mut scratch.counts).values),
        }
    }

    /// Calls `f` with the column and the count of each cell of a row. `scratch` is memory that all rows share.
    #[inline(always)]
    fn visit_words(&self, row: usize, scratch: &mut Scratch, f: impl FnMut(u32, f64)) {
        self.row(row, &mut scratch.counts).visit_cells(f);
    }
}

impl Matrix<'_> {
    /// The counts of the cells of a row, `[column]`, or of a sparse row's cells, in a loop over all rows. Where numbers must be
    /// converted, a tile of rows is read at a time: `scratch.tile` are the rows of the tile, and `scratch.counts` their counts,
    /// `[row of tile][column]`.
    #[inline(always)]
    fn next_row<'b>(&'b self, row: usize, scratch: &'b mut Scratch) -> &'b [f64] {
        let n_columns = self.n_columns;
        if self.is_sparse() || self.reals.is_some() {
            return self.row(row, &mut scratch.counts).values;
        }
        if !scratch.tile.contains(&row) {
            scratch.tile = row..self.len().min(row + self.rows_per_tile());
            self.tile(scratch.tile.clone(), &mut scratch.counts);
        }
        let start = (row - scratch.tile.start) * n_columns; // of the row in the tile's counts
        &scratch.counts[start..start + n_columns]
    }

    /// How many rows of a dense matrix are read together: in all at most [`TILE`] numbers and 64 rows, but at least eight rows,
    /// since a cache line of a matrix in columns has as many.
    fn rows_per_tile(&self) -> usize {
        (TILE / self.n_columns.max(1)).clamp(8, 64)
    }

    /// The counts of the cells of consecutive rows of a dense matrix, `[row][column]`, which are written to `buffer` if the
    /// cells do not count as they are.
    fn tile<'b>(&'b self, rows: Range<usize>, buffer: &'b mut Vec<f64>) -> &'b [f64] {
        let n_columns = self.n_columns;
        if self.is_contiguous {
            return self.values(rows.start * n_columns..rows.end * n_columns, buffer);
        }
        buffer.resize(buffer.len().max(rows.len() * n_columns), 0.0);
        if let Layout::Dense(block) = &self.layout {
            with_typed_view!(block, view => for column in 0..n_columns {
                let cells = view.column(column); // of all rows
                for (row_of_tile, row) in rows.clone().enumerate() {
                    buffer[row_of_tile * n_columns + column] = self.counts(cells[row]);
                }
            });
        }
        &buffer[..rows.len() * n_columns]
    }
}

impl MatrixRows<'_, '_> {
    /// The sums of the rows of each class, with columns for words; an error for cells that cannot be counted, and for sums that
    /// are too large.
    pub fn add_up(&self) -> Result<Vec<ClassSums>, Error> {
        let summary = self.summarise(); // of the cells of all rows that have a class
        self.check(&summary)?;
        // Of a table of all classes and columns.
        let table_cells = self.matrix.n_columns.saturating_mul(self.rows.n_classes);
        // The numbers of rows sorted by class, and where those of each class begin; none if rows are added up as they come.
        let order = (table_cells > SMALL_TABLE.min(self.matrix.cells()))
            .then(|| classes::by_class(&self.rows, self.threads));
        // The greatest weight of a row.
        let heaviest = self.classified_rows().map(|row| self.weight(row)).fold(0.0, f64::max);
        // No word has more occurrences or documents than this in a job whose rows weigh 1 each.
        let most_counts = summary.sum.max((JOB + self.matrix.n_columns) as f64);
        let rows = RowsToSum {
            words: self.matrix,
            rows: &self.rows,
            order: match &order {
                None => RowOrder::Sequential,
                Some((rows, starts)) => RowOrder::ByClass { rows, starts },
            },
            counts_are_whole: summary.all_are_whole,
            // Somewhat less than 2^32, as doubles are rounded.
            fits_32_bits: most_counts * heaviest < 4e9,
            job_size: JOB,
        };
        Ok(rows.add_up(self.threads))
    }

    /// The weight of the row with the number `row`, in rows; weights that are not whole are kept in parts of 10^-18.
    fn weight(&self, row: usize) -> f64 {
        match self.rows.weights {
            Weights::Ones => 1.0,
            Weights::Whole(weights) => weights[row] as f64,
            Weights::Parts(_) => self.rows.weight(row) as f64 / PARTS as f64,
        }
    }

    /// The numbers of the rows that have a class.
    fn classified_rows(&self) -> impl Iterator<Item = usize> {
        (0..self.rows.len()).filter(|&row| self.rows.classes[row] >= 0)
    }

    /// Refuses cells that cannot be counted, and occurrences of all words together that may be 2^63 or more. `summary` is about
    /// the cells of all rows that have a class.
    fn check(&self, summary: &MatrixSummary) -> Result<(), Error> {
        if !summary.countable {
            return Err(self.matrix.first_refused());
        }
        let most = TOO_LARGE as f64 / 2.0; // cells and bounds of sums must be below this
        fit(summary.largest < most, "a cell must be below 2**62")?;
        // The most cells of a row.
        let longest = self.classified_rows().map(|row| self.matrix.size(row)).max().unwrap_or(0);
        let weights: f64 = self.classified_rows().map(|row| self.weight(row)).sum(); // of all rows together
        if summary.largest * weights * longest as f64 >= most {
            // Of all words and rows, weights included.
            let (mut occurrences, mut scratch) = (0.0, Scratch::default());
            for row in self.classified_rows() {
                let mut sum = 0.0; // of the row's counts
                self.matrix.visit_words(row, &mut scratch, |_, count| sum += count);
                occurrences += sum * self.weight(row);
            }
            fit(occurrences <= TOO_LARGE as f64, TOO_MANY)?;
        }
        Ok(())
    }

    /// A summary of the cells of all rows that have a class: whether they can be counted, whether they are whole, the largest,
    /// and their sum.
    fn summarise(&self) -> MatrixSummary {
        let matrix = self.matrix;
        let n_ranges = matrix.cells().div_ceil(JOB).clamp(1, matrix.len().max(1));
        let rows_per_range = matrix.len().div_ceil(n_ranges);
        // Whether a row has a class; it is -1 if not.
        let has_class = |row: usize| self.rows.classes[row] >= 0;
        // Of each range of rows.
        let summaries = threads::ranges(self.threads, matrix.len(), rows_per_range, |rows| {
            // What the cells of these rows are like.
            let (mut lanes, mut scratch) = (Lanes::default(), Scratch::default());
            match &matrix.layout {
                Layout::Sparse { offsets, .. } if rows.clone().all(has_class) => {
                    let cells = offsets[rows.start] as usize..offsets[rows.end] as usize;
                    // The first cell of a piece.
                    for first in cells.clone().step_by(PIECE) {
                        let piece = first..cells.end.min(first + PIECE);
                        lanes.add(matrix.values(piece, &mut scratch.counts));
                    }
                }
                Layout::Dense(_) if rows.clone().all(has_class) => {
                    // The first row of a tile.
                    for first in rows.clone().step_by(matrix.rows_per_tile()) {
                        let tile = first..rows.end.min(first + matrix.rows_per_tile());
                        lanes.add(matrix.tile(tile, &mut scratch.counts));
                    }
                }
                _ => {
                    for row in rows.filter(|&row| has_class(row)) {
                        lanes.add(matrix.next_row(row, &mut scratch));
                    }
                }
            }
            lanes.summary()
        });
        let nothing = Lanes::default().summary(); // the summary of no cells
        summaries.into_iter().fold(nothing, |all, summary| MatrixSummary {
            countable: all.countable & summary.countable,
            all_are_whole: all.all_are_whole & summary.all_are_whole,
            largest: all.largest.max(summary.largest),
            sum: all.sum + summary.sum,
        })
    }
}

/// What is known of the counts of some cells.
struct MatrixSummary {
    /// Whether all cells are numbers from 0 up.
    countable: bool,
    /// Whether all cells are whole numbers.
    all_are_whole: bool,
    /// The largest cell.
    largest: f64,
    /// The sum of all cells, rounded.
    sum: f64,
}

/// Summaries of every eighth cell: number i is about cells i, i + 8, i + 16, ...
#[derive(Clone, Copy, Default)]
struct Lanes {
    /// -1 once a cell cannot be counted.
    lowest: [f64; LANES],
    largest: [f64; LANES],
    /// 1 once a cell is not whole.
    fractional: [f64; LANES],
    sum: [f64; LANES],
}

impl Lanes {
    /// Takes in the counts of cells, eight at a time; the last ones are filled up with zeros.
    fn add(&mut self, cells: &[f64]) {
        wide!({
            let (mut lanes, (chunks, rest)) = (*self, cells.as_chunks()); // of eight counts, and the last ones
            for chunk in chunks {
                lanes.add_eight(chunk);
            }
            let mut last_chunk = [0.0; LANES];
            last_chunk[..rest.len()].copy_from_slice(rest);
            lanes.add_eight(&last_chunk);
            *self = lanes;
        });
    }

    /// Takes in the counts of eight cells, one in each lane: `lowest` becomes -1 if the count is negative, infinite or NaN;
    /// `fractional` becomes 1 if it is not whole; `largest` is the largest count so far, and `sum` the sum of all so far.
    #[inline(always)]
    fn add_eight(&mut self, cells: &[f64; LANES]) {
        for (lane, &x) in cells.iter().enumerate() {
            let x = finite_or_nan(x);
            self.lowest[lane] = if x >= 0.0 { self.lowest[lane] } else { -1.0 };
            self.fractional[lane] = if x == x.trunc() { self.fractional[lane] } else { 1.0 };
            self.largest[lane] = if x > self.largest[lane] { x } else { self.largest[lane] };
            self.sum[lane] += x;
        }
    }

    /// The summary of the cells of all lanes: whether all can be counted, whether all are whole, the largest, and their sum.
    fn summary(&self) -> MatrixSummary {
        MatrixSummary {
            // The lowest is 0 or, once a cell cannot be counted, -1.
            countable: self.lowest.iter().all(|&x| x == 0.0),
            all_are_whole: self.fractional.iter().all(|&x| x == 0.0),
            largest: self.largest.into_iter().fold(0.0, f64::max),
            sum: self.sum.iter().sum(),
        }
    }
}
