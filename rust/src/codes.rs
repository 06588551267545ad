//! Counts of whole-number values per class, and the span of values to count.

use crate::classes::{Rows, Weights, counted};
use crate::columns::{Block, Columns, Whole, each_whole};
use crate::error::{Error, Fault, demand};
use crate::integers::Integers;
use crate::simd::{Loop, wide};
use crate::threads;
use ndarray::{ArrayView2, s};
use std::ops::{AddAssign, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows that are read together: few enough to stay in the cache while their columns are visited.
const BLOCK: usize = 512;
/// Rows a thread takes at a time.
const PIECE: usize = 1 << 14;
/// A table beyond this many bytes is not replicated per thread.
const REPLICABLE: usize = 1 << 25;

/// Which values of each feature are counted, and where: value `low[f] + k` is row `sum(size[..f]) + k`.
#[derive(Debug)]
pub struct Ranges {
    ranges: Vec<ValueRange>,
    total: usize,
}

#[derive(Clone, Copy, Debug)]
struct ValueRange {
    low: i64,
    size: u64,
    start: usize,
}

impl Ranges {
    pub fn new(
        low: &[i64],
        size: &[i64],
        features: usize,
        n_classes: usize,
    ) -> Result<Self, Error> {
        demand(
            low.len() == features && size.len() == features,
            "low and size must have one number per feature",
        )?;
        let mut ranges = Vec::with_capacity(features);
        let mut total = 0_usize;
        for (&low, &size) in low.iter().zip(size) {
            demand(size >= 0, "size must not be negative")?;
            demand(
                low.checked_add((size - 1).max(0)).is_some(),
                "low + size must not pass the largest int64",
            )?;
            ranges.push(ValueRange { low, size: size as u64, start: total });
            total = total.saturating_add(size as usize);
        }
        demand(
            total.saturating_mul(n_classes) <= isize::MAX as usize / 32,
            "the table of counts does not fit into memory",
        )?;
        Ok(Ranges { ranges, total })
    }

    /// Rows of the table.
    pub fn total(&self) -> usize {
        self.total
    }
}

/// Counts the rows of each class that have each value, `[value][class]`; values outside their range are passed over.
pub fn count_codes(
    columns: &Columns,
    ranges: &Ranges,
    rows: &Rows,
    threads: usize,
) -> Result<Integers, Error> {
    columns.demand_rows(rows.len())?;
    columns.demand_whole()?;
    let values = rows.len().saturating_mul(columns.features());
    let threads = threads::worth(threads, values);
    let shape = vec![ranges.total, rows.n_classes];
    let whole: Vec<i64> = match rows.weights {
        Weights::Ones if rows.len() <= u32::MAX as usize => {
            count_whole(columns, ranges, rows, threads, |_| 1_u32)
        }
        Weights::Ones => count_whole(columns, ranges, rows, threads, |_| 1_i64),
        Weights::Whole(w) => count_whole(columns, ranges, rows, threads, |row| w[row]),
        Weights::Parts(_) => {
            let weight = |row| rows.weight(row) as i128;
            let parts: Vec<i128> = count_whole(columns, ranges, rows, threads, weight);
            return counted(&parts, shape, rows.digits());
        }
    };
    Ok(Integers::whole(shape, whole))
}

/// A cell of a table.
trait Cell: AddAssign + Copy + Default + Send + Sync {}

impl<T: AddAssign + Copy + Default + Send + Sync> Cell for T {}

/// Counts with a table per thread, or, when that would be large, a thread per feature.
fn count_whole<N: Cell + Into<T>, T: Cell>(
    columns: &Columns,
    ranges: &Ranges,
    rows: &Rows,
    threads: usize,
    weight: impl Fn(usize) -> N + Copy + Sync,
) -> Vec<T> {
    let cells = ranges.total * rows.n_classes;
    let narrow = cells.saturating_mul(size_of::<N>()) <= REPLICABLE;
    let tables = if threads == 1 || narrow {
        let next = AtomicUsize::new(0);
        let pieces = rows.len().div_ceil(PIECE);
        threads::map(threads, threads.min(pieces), |_| {
            let mut table = vec![N::default(); cells];
            loop {
                let from = next.fetch_add(1, Ordering::Relaxed).saturating_mul(PIECE);
                if from >= rows.len() {
                    return table;
                }
                let range = from..rows.len().min(from + PIECE);
                add_rows(columns, 0..columns.features(), ranges, rows, range, weight, &mut table);
            }
        })
    } else {
        let mut table = vec![N::default(); cells];
        by_feature(columns, ranges, rows, threads, &mut table, weight);
        vec![table]
    };
    sum_tables(tables, cells)
}

fn sum_tables<N: Cell + Into<T>, T: Cell>(tables: Vec<Vec<N>>, cells: usize) -> Vec<T> {
    let mut tables = tables.into_iter();
    let mut total: Vec<T> = match tables.next() {
        Some(table) => table.into_iter().map(Into::into).collect(),
        None => vec![T::default(); cells],
    };
    for table in tables {
        for (total, count) in total.iter_mut().zip(table) {
            *total += count.into();
        }
    }
    total
}

/// A thread per feature.
fn by_feature<N: Cell>(
    columns: &Columns,
    ranges: &Ranges,
    rows: &Rows,
    threads: usize,
    table: &mut [N],
    weight: impl Fn(usize) -> N + Copy + Sync,
) {
    let group = columns.features().div_ceil(4 * threads).max(1);
    let mut rest = table;
    let mut slots = vec![];
    for first in (0..columns.features()).step_by(group) {
        let features = first..columns.features().min(first + group);
        let size: u64 = ranges.ranges[features.clone()].iter().map(|r| r.size).sum();
        let (mine, others) = rest.split_at_mut(size as usize * rows.n_classes);
        slots.push((features, mine));
        rest = others;
    }
    let done: Result<Vec<()>, ()> = threads::try_pieces(threads, &mut slots, 1, |_, slot| {
        for (features, table) in slot {
            add_rows(columns, features.clone(), ranges, rows, 0..rows.len(), weight, table);
        }
        Ok(())
    });
    debug_assert!(done.is_ok());
}

/// Adds these rows of these features to a table that begins with the first of them.
fn add_rows<N: Cell>(
    columns: &Columns,
    features: Range<usize>,
    ranges: &Ranges,
    rows: &Rows,
    range: Range<usize>,
    weight: impl Fn(usize) -> N + Copy,
    table: &mut [N],
) {
    let Some(base) = ranges.ranges.get(features.start).map(|range| range.start) else {
        return;
    };
    for from in range.clone().step_by(BLOCK) {
        let part = from..range.end.min(from + BLOCK);
        for (first, block, cols) in columns.pieces(features.clone()) {
            let ranges = &ranges.ranges[first..first + cols.len()];
            each_whole!(block, view => {
                let view = view.slice(s![part.clone(), cols]);
                let classes = &rows.classes[part.clone()];
                let weight = |row| weight(from + row);
                add_block(view, base, ranges, classes, rows.n_classes, weight, table)
            }, ());
        }
    }
}

#[inline(always)]
fn add_block<T: Whole, N: Cell>(
    view: ArrayView2<T>,
    base: usize,
    ranges: &[ValueRange],
    classes: &[i32],
    n_classes: usize,
    weight: impl Fn(usize) -> N,
    table: &mut [N],
) {
    let mut grow = |x: T, range: &ValueRange, class: i32, row: usize| {
        let k = x.above(range.low);
        if k < range.size && class >= 0 {
            let cell = (range.start - base + k as usize) * n_classes + class as usize;
            table[cell] += weight(row);
        }
    };
    if view.ncols() > 1 && view.strides()[1] == 1 {
        for (row, (values, &class)) in view.rows().into_iter().zip(classes).enumerate() {
            if let Some(values) = values.to_slice() {
                for (&x, range) in values.iter().zip(ranges) {
                    grow(x, range, class, row);
                }
            }
        }
        return;
    }
    for (column, range) in view.columns().into_iter().zip(ranges) {
        match column.to_slice() {
            Some(column) => {
                for (row, (&x, &class)) in column.iter().zip(classes).enumerate() {
                    grow(x, range, class, row);
                }
            }
            None => {
                for (row, (&x, &class)) in column.iter().zip(classes).enumerate() {
                    grow(x, range, class, row);
                }
            }
        }
    }
}

/// Lowest and highest value per feature, the lowest `i64` passed over; (0, -1) where there is none.
pub fn span(columns: &Columns, threads: usize) -> Result<(Vec<i64>, Vec<i64>), Error> {
    columns.demand_whole()?;
    let (n, features) = (columns.rows().unwrap_or(0), columns.features());
    let threads = threads::worth(threads, n.saturating_mul(features));
    let found = threads::try_map(threads, n.div_ceil(PIECE), |i| {
        let rows = i * PIECE..n.min((i + 1) * PIECE);
        let mut low = vec![i64::MAX; features];
        let mut high = vec![i64::MIN; features];
        for (first, block, columns) in columns.pieces(0..features) {
            let last = first + columns.len();
            span_rows(block, first, rows.clone(), &mut low[first..last], &mut high[first..last])?;
        }
        Ok((low, high))
    })?;
    let (mut low, mut high) = (vec![i64::MAX; features], vec![i64::MIN; features]);
    for (lows, highs) in found {
        low.iter_mut().zip(lows).for_each(|(a, b)| *a = (*a).min(b));
        high.iter_mut().zip(highs).for_each(|(a, b)| *a = (*a).max(b));
    }
    for (low, high) in low.iter_mut().zip(&mut high) {
        if low > high {
            (*low, *high) = (0, -1);
        }
    }
    Ok((low, high))
}

fn span_rows(
    block: &Block,
    first: usize,
    rows: Range<usize>,
    low: &mut [i64],
    high: &mut [i64],
) -> Result<(), Error> {
    each_whole!(block, view => {
        let view = view.slice(s![rows.clone(), ..]);
        if !wide(Widen(view, low, high)) {
            for ((row, column), x) in view.indexed_iter() {
                if x.whole().is_none() {
                    return Err(Error::BadValue {
                        fault: Fault::TooFar,
                        feature: first + column,
                        row: rows.start + row,
                        value: block.value(rows.start + row, column),
                    });
                }
            }
        }
        Ok(())
    }, Ok(()))
}

/// Widens the spans of columns by a piece of them; answers whether an `i64` can hold every value.
struct Widen<'a, T>(ArrayView2<'a, T>, &'a mut [i64], &'a mut [i64]);

impl<T: Whole> Loop for Widen<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Widen(view, low, high) = self;
        let mut inside = true;
        let mut widen = |x: T, low: &mut i64, high: &mut i64| {
            let whole = x.whole();
            inside &= whole.is_some();
            let x = whole.unwrap_or(0);
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
                let mut ends = (*low, *high);
                match column.to_slice() {
                    Some(column) => column.iter().for_each(|&x| widen(x, &mut ends.0, &mut ends.1)),
                    None => column.iter().for_each(|&x| widen(x, &mut ends.0, &mut ends.1)),
                }
                (*low, *high) = ends;
            }
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    #[test]
    fn counts_values_in_range() {
        let x = array![[3_i64, -1], [4, 0], [9, -1], [3, i64::MIN]];
        let columns = Columns::new(vec![Block::I64(x.view())]).unwrap();
        let classes = [0, 1, 0, 0];
        let rows = Rows::new(&classes, 2, Weights::Ones).unwrap();
        let ranges = Ranges::new(&[3, -1], &[2, 1], 2, 2).unwrap();
        let found = count_codes(&columns, &ranges, &rows, 1).unwrap();
        assert_eq!(found.values(0), [2., 0., 0., 1., 2., 0.]);
        assert_eq!(span(&columns, 1), Ok((vec![3, -1], vec![9, 0])));
    }

    #[test]
    fn many_threads_one_answer() {
        let x = Array2::from_shape_fn((50_000, 3), |(i, j)| (i * (j + 3) % 101) as i16);
        let columns = Columns::new(vec![Block::I16(x.view())]).unwrap();
        let classes: Vec<i32> = (0..50_000).map(|i| i % 4 - 1).collect();
        let weights: Vec<[u64; 2]> = (0..50_000).map(|i| [7 + i % 5, i % 7]).collect();
        let rows = Rows::new(&classes, 3, Weights::Parts(&weights)).unwrap();
        let ranges = Ranges::new(&[0, 0, 0], &[101, 50, 101], 3, 3).unwrap();
        let one = count_codes(&columns, &ranges, &rows, 1).unwrap();
        let four = count_codes(&columns, &ranges, &rows, 4).unwrap();
        assert_eq!(one, four);
    }

    #[test]
    fn spans_of_nothing_and_of_too_much() {
        let none = Array2::<i32>::zeros((0, 2));
        let columns = Columns::new(vec![Block::I32(none.view())]).unwrap();
        assert_eq!(span(&columns, 1), Ok((vec![0, 0], vec![-1, -1])));
        let huge = array![[0_u64], [u64::MAX]];
        let columns = Columns::new(vec![Block::U64(huge.view())]).unwrap();
        assert!(matches!(span(&columns, 1), Err(Error::BadValue { row: 1, .. })));
    }
}
