//! Counts of whole-number values per class, and the span of values to count.

use crate::classes::{Rows, Weights, counted};
use crate::columns::{Columns, Whole, along, each_whole};
use crate::error::{Error, Fault, demand};
use crate::integers::Integers;
use crate::simd::wide;
use crate::threads;
use ndarray::{ArrayView2, s};
use std::convert::Infallible;
use std::iter::repeat;
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
    let task = Task { columns, ranges, rows, threads };
    let whole: Vec<i64> = match rows.weights {
        Weights::Ones if rows.len() <= u32::MAX as usize => task.count(|_| 1_u32),
        Weights::Ones => task.count(|_| 1_i64),
        Weights::Whole(w) => task.count(|row| w[row]),
        Weights::Parts(_) => {
            let parts: Vec<i128> = task.count(|row| rows.weight(row) as i128);
            return counted(&parts, shape, rows.digits());
        }
    };
    Ok(Integers::whole(shape, whole))
}

/// A cell of a table.
trait Cell: AddAssign + Copy + Default + Send + Sync {}

impl<T: AddAssign + Copy + Default + Send + Sync> Cell for T {}

/// Values to be counted.
#[derive(Clone, Copy)]
struct Task<'a, 'b> {
    columns: &'a Columns<'b>,
    ranges: &'a Ranges,
    rows: &'a Rows<'a>,
    threads: usize,
}

impl Task<'_, '_> {
    /// Counts with a table per thread, or, when that would be large, a thread per feature.
    fn count<N: Cell + Into<T>, T: Cell>(
        self,
        weight: impl Fn(usize) -> N + Copy + Sync,
    ) -> Vec<T> {
        let Task { columns, ranges, rows, threads } = self;
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
                    self.add_rows(0..columns.features(), range, weight, &mut table);
                }
            })
        } else {
            let mut table = vec![N::default(); cells];
            self.by_feature(&mut table, weight);
            vec![table]
        };
        let mut tables = tables.into_iter();
        let first = tables.next().unwrap_or_else(|| vec![N::default(); cells]);
        let mut total: Vec<T> = first.into_iter().map(Into::into).collect();
        for table in tables {
            for (total, count) in total.iter_mut().zip(table) {
                *total += count.into();
            }
        }
        total
    }

    /// A thread per feature.
    fn by_feature<N: Cell>(self, table: &mut [N], weight: impl Fn(usize) -> N + Copy + Sync) {
        let (n, n_rows) = (self.columns.features(), self.rows.len());
        let group = n.div_ceil(4 * self.threads).max(1);
        let mut rest = table;
        let mut slots = vec![];
        for first in (0..n).step_by(group) {
            let features = first..n.min(first + group);
            let size: u64 = self.ranges.ranges[features.clone()].iter().map(|r| r.size).sum();
            let (mine, others) = rest.split_at_mut(size as usize * self.rows.n_classes);
            slots.push((features, mine));
            rest = others;
        }
        let Ok(_) = threads::try_pieces(self.threads, &mut slots, 1, |_, slot| {
            for (features, table) in slot {
                self.add_rows(features.clone(), 0..n_rows, weight, table);
            }
            Ok::<_, Infallible>(())
        });
    }

    /// Adds these rows of these features to a table that begins with the first of them.
    fn add_rows<N: Cell>(
        self,
        features: Range<usize>,
        range: Range<usize>,
        weight: impl Fn(usize) -> N + Copy,
        table: &mut [N],
    ) {
        let (ranges, rows) = (&self.ranges.ranges, self.rows);
        let Some(base) = ranges.get(features.start).map(|range| range.start) else {
            return;
        };
        for from in range.clone().step_by(BLOCK) {
            let part = from..range.end.min(from + BLOCK);
            for (first, block, cols) in self.columns.pieces(features.clone()) {
                let ranges = &ranges[first..first + cols.len()];
                each_whole!(block, view => {
                    let view = view.slice(s![part.clone(), cols]);
                    let classes = &rows.classes[part.clone()];
                    let weight = |row| weight(from + row);
                    add_block(view, base, ranges, classes, rows.n_classes, weight, table)
                }, ());
            }
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
        along(column, classes.iter().enumerate(), |x, (row, &class)| grow(x, range, class, row));
    }
}

/// Lowest and highest value per feature, the lowest `i64` passed over; (0, -1) where there is none.
pub fn span(columns: &Columns, threads: usize) -> Result<(Vec<i64>, Vec<i64>), Error> {
    columns.demand_whole()?;
    let (n, features) = (columns.rows().unwrap_or(0), columns.features());
    let threads = threads::worth(threads, n.saturating_mul(features));
    let found = threads::try_map(threads, n.div_ceil(PIECE), |i| {
        let rows = i * PIECE..n.min((i + 1) * PIECE);
        let (mut low, mut high) = (vec![i64::MAX; features], vec![i64::MIN; features]);
        for (first, block, within) in columns.pieces(0..features) {
            let own = first..first + within.len();
            each_whole!(block, view => {
                let view = view.slice(s![rows.clone(), ..]);
                let inside = widen(view, &mut low[own.clone()], &mut high[own]);
                let wrong = || view.indexed_iter().find(|(_, x)| x.whole().is_none());
                if let Some(((row, column), _)) = (!inside).then(wrong).flatten() {
                    return Err(columns.refused(Fault::TooFar, rows.start + row, first + column));
                }
            }, ());
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

/// Widens the spans of columns by a piece of them; answers whether an `i64` can hold every value.
fn widen<T: Whole>(view: ArrayView2<T>, low: &mut [i64], high: &mut [i64]) -> bool {
    wide!({
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
                along(column, repeat(()), |x, ()| widen(x, &mut ends.0, &mut ends.1));
                (*low, *high) = ends;
            }
        }
        inside
    })
}
