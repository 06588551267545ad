//! Counts of whole-number values per class, and the span of values to count.

use crate::classes::{Rows, Weights, counted};
use crate::columns::{Block, Columns, distance_above, zip_mut, zip_with};
use crate::error::{Error, Fault, demand};
use crate::integers::Integers;
use crate::simd::wide;
use crate::threads;
use ndarray::{ArrayView2, s};
use std::iter::repeat;
use std::ops::{AddAssign, Range};

/// Rows that are read together: few enough to stay in the cache while their columns are visited. 200,000 rows of 20 columns of
/// int32 took 9.5 ms with 128 or 512 rows, 8.4 with 4,096; int64 by row, 6.3 ms with each of them.
const BLOCK: usize = 512;
/// Rows a thread takes at a time, at least. To fit 400,000 rows of 15 columns took 20 ms with 2^11 and 2^14, 28 with 2^17.
const PIECE: usize = 1 << 14;
/// Values whose counts are added up at a time. A table of 200,000 values and 20 classes, of 200,000 rows, took 20 ms with 2^8
/// values, 23 with 2^12 and 32 with 2^16.
const MERGED: usize = 1 << 8;
/// A table beyond this many bytes is not replicated per thread: a limit to memory, not a tuned value.
const REPLICABLE: usize = 1 << 25;

/// Which values of each feature are counted, and in which rows of the table of counts.
#[derive(Debug)]
pub struct Ranges {
    /// The values of each feature.
    of_features: Vec<ValueRange>,
    /// How many values are counted, over all features: the rows of the table.
    total: usize,
}

/// The values of a feature that are counted: `size` of them from `low` on.
#[derive(Clone, Copy, Debug)]
struct ValueRange {
    low: i64,
    size: u64,
    /// The row of the table where `low` is counted; greater values follow.
    start: usize,
}

impl Ranges {
    /// The ranges of features, with the `low` and the `size` of each, one after the other in the table; an error if the table
    /// would not fit into memory. `low` is the lowest value of a feature that is counted, and `size` how many values are
    /// counted from it on. The values of feature after feature are the rows of the table: `start` is where those of a feature
    /// begin, and `total` how many there are. A row of the table has `n_classes` cells.
    pub fn new(
        low: &[i64],
        size: &[i64],
        n_features: usize,
        n_classes: usize,
    ) -> Result<Self, Error> {
        demand(
            low.len() == n_features && size.len() == n_features,
            "low and size must have one number per feature",
        )?;
        let mut of_features = Vec::with_capacity(n_features);
        let mut total = 0_usize;
        for (&low, &size) in low.iter().zip(size) {
            demand(size >= 0, "size must not be negative")?;
            demand(
                low.checked_add((size - 1).max(0)).is_some(),
                "low + size must not pass the largest int64",
            )?;
            of_features.push(ValueRange { low, size: size as u64, start: total });
            total = total.saturating_add(size as usize);
        }
        demand(
            total.saturating_mul(n_classes) <= isize::MAX as usize / 32,
            "the table of counts does not fit into memory",
        )?;
        Ok(Ranges { of_features, total })
    }

    /// The rows of the table that count values of these features. `features` are numbers of features; `range.start` is the
    /// row of the table where a feature's values begin, and `self.total` the number of all rows of the table.
    fn table_rows(&self, features: &Range<usize>) -> Range<usize> {
        let start = |feature: usize| match self.of_features.get(feature) {
            Some(range) => range.start,
            None => self.total,
        };
        start(features.start)..start(features.end)
    }
}

/// Counts the rows of each class that have each value, `[value][class]`, without values outside their range. Also returns
/// whether there was such a value, other than the lowest `i64`. `ranges` has the values of each feature that are counted, and
/// `rows` the class (-1: none) and the weight of each row. The values of feature after feature are the rows of the table. At
/// most `threads` threads are used.
pub fn count_codes(
    columns: &Columns,
    ranges: &Ranges,
    rows: &Rows,
    threads: usize,
) -> Result<(Integers, bool), Error> {
    columns.demand_rows(rows.len())?;
    columns.demand_whole()?;
    let n_numbers = rows.len().saturating_mul(columns.features());
    let threads = threads::worth(threads, n_numbers);
    let shape = vec![ranges.total, rows.n_classes];
    let codes = CodesToCount { columns, ranges, rows, threads };
    // The weight of rows, [value][class], and whether a value was outside its range.
    let (in_rows, any_outside): (Vec<i64>, bool) = match rows.weights {
        Weights::Ones if rows.len() <= u32::MAX as usize => codes.count(|_| 1_u32),
        Weights::Ones => codes.count(|_| 1_i64),
        Weights::Whole(weights) => codes.count(|row| weights[row]),
        Weights::Parts(_) => {
            let (in_parts, any_outside): (Vec<i128>, bool) =
                codes.count(|row| rows.weight(row) as i128);
            return Ok((counted(&in_parts, shape, rows.digits())?, any_outside));
        }
    };
    Ok((Integers::of_i64(shape, in_rows), any_outside))
}

/// A cell of a table.
trait Cell: AddAssign + Copy + Default + Send + Sync {}

impl<T: AddAssign + Copy + Default + Send + Sync> Cell for T {}

/// Values to be counted.
#[derive(Clone, Copy)]
struct CodesToCount<'a, 'b> {
    columns: &'a Columns<'b>,
    ranges: &'a Ranges,
    rows: &'a Rows<'a>,
    threads: usize,
}

/// Counts of the values of some features in some rows.
struct Counts<N> {
    /// The features that are counted.
    features: Range<usize>,
    /// The weight of the rows, `[class][value]`, for the values of these features.
    cells: Vec<N>,
    /// Whether a value was outside its range.
    any_outside: bool,
}

impl CodesToCount<'_, '_> {
    /// Returns the weight of the rows, `[value][class]`, and whether a value was outside its range. `weight` is that of a
    /// row. A thread counts all features in its share of the rows or, when tables for that would be large, some features in
    /// all rows. The values of feature after feature are the rows of the table: `ranges.total` is how many there are.
    fn count<N: Cell + Into<T>, T: Cell>(
        self,
        weight: impl Fn(usize) -> N + Copy + Sync,
    ) -> (Vec<T>, bool) {
        let CodesToCount { columns, ranges, rows, threads } = self;
        let (n_rows, n_features) = (rows.len(), columns.features());
        let n_cells = ranges.total * rows.n_classes;
        let is_small = n_cells.saturating_mul(size_of::<N>()) <= REPLICABLE;
        // The counts of some features in some rows.
        let tables = if threads == 1 || is_small {
            let share = n_rows.div_ceil(threads).max(PIECE); // rows that a thread takes at a time
            threads::ranges(threads, n_rows, share, |rows| {
                self.count_rows(rows, 0..n_features, weight)
            })
        } else {
            threads::ranges(threads, n_features, n_features.div_ceil(4 * threads), |features| {
                self.count_rows(0..n_rows, features, weight)
            })
        };
        let mut total = vec![T::default(); n_cells];
        threads::pieces(threads, &mut total, MERGED * rows.n_classes, |i, piece| {
            tables.iter().for_each(|counts| self.merge(counts, i * MERGED, piece));
        });
        (total, tables.iter().any(|counts| counts.any_outside))
    }

    /// Adds counts to a piece of the table `[value][class]`, which begins with row `first_value` of the table. The rows of
    /// the table are the values of feature after feature. `counts.features` are the features that were counted, and
    /// `counts.cells` the weights of rows, `[class][value]`, of their values alone. `piece` has the totals of its cells.
    fn merge<N: Cell + Into<T>, T: Cell>(
        self,
        counts: &Counts<N>,
        first_value: usize,
        piece: &mut [T],
    ) {
        let n_classes = self.rows.n_classes;
        // The rows of the table that the counts are about, and those of them that are in the piece.
        let values = self.ranges.table_rows(&counts.features);
        let start = first_value.max(values.start);
        let end = values.end.min(first_value + piece.len() / n_classes.max(1));
        if start >= end {
            return;
        }
        for (class, cells) in counts.cells.chunks_exact(values.len()).enumerate() {
            let first_cell = (start - first_value) * n_classes + class;
            let totals = piece[first_cell..].iter_mut().step_by(n_classes);
            let cells = &cells[start - values.start..end - values.start];
            totals.zip(cells).for_each(|(total, &count)| *total += count.into());
        }
    }

    /// Counts some features in a range of rows; `weight` is that of a row. `range` is one of rows, `features` are numbers of
    /// features. The counts are weights of rows, `[class][value]`, of the values of these features, and whether a value was
    /// outside its range.
    fn count_rows<N: Cell>(
        self,
        range: Range<usize>,
        features: Range<usize>,
        weight: impl Fn(usize) -> N + Copy,
    ) -> Counts<N> {
        let table_rows = self.ranges.table_rows(&features); // the values of these features, among all values
        let mut cells = vec![N::default(); table_rows.len() * self.rows.n_classes];
        let mut any_outside = false;
        // Memory: the cells where the values of a row are counted, and values that are not int64.
        let (mut row_cells, mut buffer) = (vec![0; features.len()], vec![]);
        for start in range.clone().step_by(BLOCK) {
            let block_rows = start..range.end.min(start + BLOCK);
            let classes = &self.rows.classes[block_rows.clone()];
            // `block_columns` of the array `block` are the features from `first` on.
            for (first, block, block_columns) in self.columns.blocks_of(features.clone()) {
                let ranges = &self.ranges.of_features[first..first + block_columns.len()];
                let places = Places::new(ranges, &table_rows);
                let view =
                    block.integers(block_rows.clone(), block_columns, &places.low, &mut buffer);
                let weight = |row| weight(start + row);
                any_outside |=
                    add_block(view, &places, classes, weight, &mut cells, &mut row_cells);
            }
        }
        Counts { features, cells, any_outside }
    }
}

/// Which values of some features are counted, and where, field by field, `[feature]`.
struct Places {
    /// The lowest value of each feature that is counted.
    low: Vec<i64>,
    /// How many values of each feature are counted, from the lowest on.
    size: Vec<u64>,
    /// Where among all values of a class those of each feature begin.
    start: Vec<u64>,
    /// How many values each class has.
    n_values: u64,
}

impl Places {
    /// Where the values of `ranges` are counted in a table of the rows `table_rows` of the whole table. A feature is counted
    /// from the value `low` on, for `size` values, in the rows from `start` on of the whole table. `n_values` is how many
    /// rows there are.
    fn new(ranges: &[ValueRange], table_rows: &Range<usize>) -> Self {
        Places {
            low: ranges.iter().map(|range| range.low).collect(),
            size: ranges.iter().map(|range| range.size).collect(),
            start: ranges.iter().map(|range| (range.start - table_rows.start) as u64).collect(),
            n_values: table_rows.len() as u64,
        }
    }
}

/// Adds a block of rows, `[row][feature]`, to `cells`, `[class][value]`; returns whether a value that is not missing is
/// outside its range. `classes` has the class of each row, -1 if none; `weight` is called with the index of a row in the
/// block; `row_cells` is memory, a number per feature. `places` has for each feature its lowest value, how many values are
/// counted, and where they begin among all `n_values` values of a class. A cell is the weight of rows. A range has `size`
/// values from `low` on, which are counted from `start` on among the values of a class, `[feature]`; `distance` is how far a
/// value is above `low`.
#[inline(always)]
fn add_block<N: Cell>(
    view: ArrayView2<i64>,
    places: &Places,
    classes: &[i32],
    weight: impl Fn(usize) -> N,
    cells: &mut [N],
    row_cells: &mut [u64],
) -> bool {
    let Places { low, size, start, n_values } = places;
    // Adds a weight to the cell of this index, if there is one.
    let mut add = |cell: u64, weight: N| {
        if let Some(sum) = cells.get_mut(cell as usize) {
            *sum += weight;
        }
    };
    let mut any_outside = false;
    if view.ncols() > 1 && view.strides()[1] == 1 {
        let row_cells = &mut row_cells[..view.ncols()];
        for (row, (values, &class)) in view.rows().into_iter().zip(classes).enumerate() {
            if let (Some(values), Ok(class)) = (values.to_slice(), u64::try_from(class)) {
                any_outside |= find_cells(values, places, class * n_values, row_cells);
                let weight = weight(row);
                row_cells.iter().for_each(|&cell| add(cell, weight));
            }
        }
    } else {
        for (feature, column) in view.columns().into_iter().enumerate() {
            let (low, size, start) = (low[feature], size[feature], start[feature]);
            zip_with(column, classes.iter().enumerate(), |x, (row, &class)| {
                let distance = distance_above(x, low);
                any_outside |= (distance >= size) & (class >= 0);
                if distance < size && class >= 0 {
                    add(start + distance + class as u64 * n_values, weight(row));
                }
            });
        }
    }
    // The lowest `i64` stands for a missing value, which is not outside.
    let is_outside = |((row, column), x): ((usize, usize), &i64)| {
        let is_in_range = distance_above(*x, low[column]) < size[column];
        classes[row] >= 0 && !is_in_range && *x != i64::MIN
    };
    any_outside && view.indexed_iter().any(is_outside)
}

/// Writes the cells where the values of a row, `[feature]`, are counted to `row_cells`; `u64::MAX` for values outside their
/// range. Returns whether there are such. `first_cell` is the first one of the row's class. `places` has for each feature its
/// lowest value (`low`), how many values are counted (`size`), and where they begin among the values of a class (`start`).
/// `distance` is how far a value is above the lowest one.
#[inline(always)]
fn find_cells(values: &[i64], places: &Places, first_cell: u64, row_cells: &mut [u64]) -> bool {
    wide!({
        let mut any_outside = false;
        let ranges = places.low.iter().zip(&places.size).zip(&places.start);
        for ((&x, cell), ((&low, &size), &start)) in values.iter().zip(row_cells).zip(ranges) {
            let distance = distance_above(x, low);
            any_outside |= distance >= size;
            *cell = if distance < size { first_cell + start + distance } else { u64::MAX };
        }
        any_outside
    })
}

/// Returns the values of a column of integers minus `low`, `[row]`; -1 for those below `low`, and for those `size` or more
/// above it. `column` is a matrix of one column. `size` is the number of values from `low` on. At most `threads` threads are
/// used.
pub fn shifted(column: &Block, low: i64, size: usize, threads: usize) -> Result<Vec<i32>, Error> {
    let (n_rows, width) = column.shape();
    demand(width == 1 && column.is_whole(), "a column of integers is expected")?;
    demand(size <= i32::MAX as usize, "there are more values than an int32 can number")?;
    let mut distances = vec![0; n_rows];
    threads::pieces(threads::worth(threads, n_rows), &mut distances, PIECE, |i, piece| {
        let mut buffer = vec![]; // where numbers of other types are converted
        let rows = i * PIECE..i * PIECE + piece.len();
        let view = column.integers(rows, 0..1, &[low], &mut buffer);
        wide!(zip_mut(piece, view.column(0), |out, x| {
            let distance = distance_above(x, low);
            *out = if distance < size as u64 { distance as i32 } else { -1 };
        }));
    });
    Ok(distances)
}

/// Returns the lowest and the highest value of each feature, `[feature]`, without the lowest `i64`, which stands for a
/// missing value; 0 and -1 if there is none. `piece_low` and `piece_high` are the ends of one piece of the rows, `[feature]`.
/// At most `threads` threads are used.
pub fn span(columns: &Columns, threads: usize) -> Result<(Vec<i64>, Vec<i64>), Error> {
    columns.demand_whole()?;
    let (n_rows, n_features) = (columns.rows().unwrap_or(0), columns.features());
    let threads = threads::worth(threads, n_rows.saturating_mul(n_features));
    // The lowest and the highest values of each piece of the rows.
    let piece_spans = threads::try_ranges(threads, n_rows, PIECE, |rows| {
        let (mut low, mut high) = (vec![i64::MAX; n_features], vec![i64::MIN; n_features]);
        let mut buffer = vec![]; // where numbers of other types are converted
        // `block_columns` of the array `block` are the features from `first` on.
        for (first, block, block_columns) in columns.blocks_of(0..n_features) {
            let features = first..first + block_columns.len();
            if let Block::U64(view) = block {
                let view = view.slice(s![rows.clone(), ..]);
                let mut values = view.indexed_iter();
                if let Some(((row, column), _)) = values.find(|(_, x)| **x > i64::MAX as u64) {
                    return Err(columns.bad_value(Fault::TooFar, rows.start + row, first + column));
                }
            }
            let any_low = vec![0; features.len()]; // all values fit an i64
            let view = block.integers(rows.clone(), block_columns, &any_low, &mut buffer);
            widen(view, &mut low[features.clone()], &mut high[features]);
        }
        Ok((low, high))
    })?;
    let (mut low, mut high) = (vec![i64::MAX; n_features], vec![i64::MIN; n_features]);
    for (piece_low, piece_high) in piece_spans {
        low.iter_mut().zip(piece_low).for_each(|(low, x)| *low = (*low).min(x));
        high.iter_mut().zip(piece_high).for_each(|(high, x)| *high = (*high).max(x));
    }
    for (low, high) in low.iter_mut().zip(&mut high) {
        if low > high {
            (*low, *high) = (0, -1);
        }
    }
    Ok((low, high))
}

/// Widens the spans of columns, from `low` to `high` of each, `[column]`, to the values of some rows, `[row][column]`; the
/// lowest `i64` stands for a missing value. `ends` are the lowest and the highest value of one column.
fn widen(view: ArrayView2<i64>, low: &mut [i64], high: &mut [i64]) {
    wide!({
        let widen = |x: i64, low: &mut i64, high: &mut i64| {
            *high = (*high).max(x);
            *low = (*low).min(if x == i64::MIN { i64::MAX } else { x });
        };
        if view.ncols() > 1 && view.strides()[1] == 1 {
            for row in view.rows() {
                if let Some(row) = row.to_slice() {
                    let ends = low.iter_mut().zip(high.iter_mut());
                    row.iter().zip(ends).for_each(|(&x, (low, high))| widen(x, low, high));
                }
            }
        } else {
            for (column, (low, high)) in view.columns().into_iter().zip(low.iter_mut().zip(high)) {
                let mut ends = (*low, *high); // in registers
                zip_with(column, repeat(()), |x, ()| widen(x, &mut ends.0, &mut ends.1));
                (*low, *high) = ends;
            }
        }
    })
}
