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
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows that are read together: few enough to stay in the cache while their columns are visited.
const BLOCK: usize = 512;
/// Rows a thread takes at a time.
const PIECE: usize = 1 << 14;
/// Values whose counts are added up at a time.
const MERGED: usize = 1 << 12;
/// A table beyond this many bytes is not replicated per thread.
const REPLICABLE: usize = 1 << 25;

/// Which values of each feature are counted, and where: value `low[f] + k` is row `sum(size[..f]) + k` of the table.
#[derive(Debug)]
pub struct Ranges {
    /// Of each feature.
    ranges: Vec<ValueRange>,
    /// How many values are counted, over all features.
    total: usize,
}

/// The values of a feature that are counted: `size` of them from `low` on.
#[derive(Clone, Copy, Debug)]
struct ValueRange {
    low: i64,
    size: u64,
    /// The row of the table where `low` is counted.
    start: usize,
}

impl Ranges {
    /// The ranges of features, `low` and `size` of each; an error if the table would not fit into memory.
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

/// Counts the rows of each class that have each value, `[value][class]`, without values outside their range. Also returns whether there
/// was such a value, other than the lowest `i64`.
pub fn count_codes(
    columns: &Columns,
    ranges: &Ranges,
    rows: &Rows,
    threads: usize,
) -> Result<(Integers, bool), Error> {
    columns.demand_rows(rows.len())?;
    columns.demand_whole()?;
    let values = rows.len().saturating_mul(columns.features());
    let threads = threads::worth(threads, values);
    let shape = vec![ranges.total, rows.n_classes];
    let codes = CodesToCount { columns, ranges, rows, threads };
    // Counts, `[value][class]`, and whether a value was outside its range.
    let (whole, outside): (Vec<i64>, bool) = match rows.weights {
        Weights::Ones if rows.len() <= u32::MAX as usize => codes.count(|_| 1_u32),
        Weights::Ones => codes.count(|_| 1_i64),
        Weights::Whole(w) => codes.count(|row| w[row]),
        Weights::Parts(_) => {
            let (parts, outside): (Vec<i128>, bool) = codes.count(|row| rows.weight(row) as i128);
            return Ok((counted(&parts, shape, rows.digits())?, outside));
        }
    };
    Ok((Integers::of_i64(shape, whole), outside))
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

/// Counts of some features.
struct Counts<N> {
    /// The features that are counted.
    features: Range<usize>,
    /// `[class][value]`.
    cells: Vec<N>,
    /// Whether a value was outside its range.
    outside: bool,
}

impl CodesToCount<'_, '_> {
    /// Counts with a table per thread, or, when that would be large, a thread per feature. Returns the weight of the rows,
    /// `[value][class]`, and whether a value was outside its range. `weight` is that of a row.
    fn count<N: Cell + Into<T>, T: Cell>(
        self,
        weight: impl Fn(usize) -> N + Copy + Sync,
    ) -> (Vec<T>, bool) {
        let CodesToCount { columns, ranges, rows, threads } = self;
        let (n_rows, features) = (rows.len(), columns.features());
        let cells = ranges.total * rows.n_classes;
        let is_small = cells.saturating_mul(size_of::<N>()) <= REPLICABLE;
        let tables = if threads == 1 || is_small {
            let next = AtomicUsize::new(0);
            threads::map(threads, threads.min(n_rows.div_ceil(PIECE)), |_| {
                let mut counts = self.nothing(0..features);
                loop {
                    let from = next.fetch_add(1, Ordering::Relaxed).saturating_mul(PIECE);
                    if from >= n_rows {
                        return counts;
                    }
                    self.add_rows(from..n_rows.min(from + PIECE), weight, &mut counts);
                }
            })
        } else {
            let features_at_a_time = features.div_ceil(4 * threads);
            threads::ranges(threads, features, features_at_a_time, |features| {
                let mut counts = self.nothing(features);
                self.add_rows(0..n_rows, weight, &mut counts);
                counts
            })
        };
        let mut total = vec![T::default(); cells];
        threads::pieces(threads, &mut total, MERGED * rows.n_classes, |i, total| {
            tables.iter().for_each(|counts| self.merge(counts, i * MERGED, total));
        });
        (total, tables.iter().any(|counts| counts.outside))
    }

    /// The rows of the table of all features, one per value, that are about some features.
    fn values(self, features: &Range<usize>) -> Range<usize> {
        let start = |feature: usize| match self.ranges.ranges.get(feature) {
            Some(range) => range.start,
            None => self.ranges.total,
        };
        start(features.start)..start(features.end)
    }

    /// Counts of zero, of some features.
    fn nothing<N: Cell>(self, features: Range<usize>) -> Counts<N> {
        let cells = vec![N::default(); self.values(&features).len() * self.rows.n_classes];
        Counts { features, cells, outside: false }
    }

    /// Adds counts to `total`, the part of the table `[value][class]` that begins with the row `first`.
    fn merge<N: Cell + Into<T>, T: Cell>(self, counts: &Counts<N>, first: usize, total: &mut [T]) {
        let (values, n_classes) = (self.values(&counts.features), self.rows.n_classes);
        let from = first.max(values.start);
        let to = values.end.min(first + total.len() / n_classes.max(1));
        if from >= to {
            return;
        }
        for (class, cells) in counts.cells.chunks_exact(values.len()).enumerate() {
            let total = total[(from - first) * n_classes + class..].iter_mut().step_by(n_classes);
            let cells = &cells[from - values.start..to - values.start];
            total.zip(cells).for_each(|(total, &count)| *total += count.into());
        }
    }

    /// Adds a range of rows to counts of some features; `weight` is that of a row.
    fn add_rows<N: Cell>(
        self,
        range: Range<usize>,
        weight: impl Fn(usize) -> N + Copy,
        counts: &mut Counts<N>,
    ) {
        let (ranges, rows) = (&self.ranges.ranges, self.rows);
        let values = self.values(&counts.features);
        // Memory for where the values of a row are counted.
        let mut places = vec![0; BLOCK.max(counts.features.len())];
        let mut room = vec![];
        for from in range.clone().step_by(BLOCK) {
            let part = from..range.end.min(from + BLOCK);
            // The first feature of a block, the block, and which of its columns are meant.
            for (first, block, cols) in self.columns.blocks_of(counts.features.clone()) {
                let own_places = Places::new(&ranges[first..first + cols.len()], &values);
                let view = block.integers(part.clone(), cols, &own_places.low, &mut room);
                let classes = &rows.classes[part.clone()];
                let weight = |row| weight(from + row);
                counts.outside |=
                    add_block(view, &own_places, classes, weight, &mut counts.cells, &mut places);
            }
        }
    }
}

/// Where values of some features are counted, field by field, `[feature]`.
struct Places {
    /// The lowest value of each feature that is counted.
    low: Vec<i64>,
    /// How many values of each feature are counted, from the lowest on.
    size: Vec<u64>,
    /// Where among all values counted together those of each feature begin.
    start: Vec<u64>,
    /// Values of all features that are counted together.
    width: u64,
}

impl Places {
    /// Where the values of `ranges` are counted in a table of the rows `values` of the whole table.
    fn new(ranges: &[ValueRange], values: &Range<usize>) -> Self {
        Places {
            low: ranges.iter().map(|range| range.low).collect(),
            size: ranges.iter().map(|range| range.size).collect(),
            start: ranges.iter().map(|range| (range.start - values.start) as u64).collect(),
            width: values.len() as u64,
        }
    }
}

/// Adds a block of rows, `[row][feature]`, to `table`, `[class][value]`; returns whether a value that is not missing is outside its
/// range. `weight` is called with the place in the block; `places` is memory, a number per feature.
#[inline(always)]
fn add_block<N: Cell>(
    view: ArrayView2<i64>,
    Places { low, size, start, width }: &Places,
    classes: &[i32],
    weight: impl Fn(usize) -> N,
    table: &mut [N],
    places: &mut [u64],
) -> bool {
    let mut add = |place: u64, weight: N| {
        if let Some(cell) = table.get_mut(place as usize) {
            *cell += weight;
        }
    };
    let mut any_outside = false;
    if view.ncols() > 1 && view.strides()[1] == 1 {
        let places = &mut places[..view.ncols()];
        for (row, (values, &class)) in view.rows().into_iter().zip(classes).enumerate() {
            if let (Some(values), Ok(class)) = (values.to_slice(), u64::try_from(class)) {
                any_outside |= place_row(values, low, size, start, class * width, places);
                let weight = weight(row);
                places.iter().for_each(|&place| add(place, weight));
            }
        }
    } else {
        for (feature, column) in view.columns().into_iter().enumerate() {
            zip_with(column, classes.iter().enumerate(), |x, (row, &class)| {
                let distance = distance_above(x, low[feature]);
                any_outside |= (distance >= size[feature]) & (class >= 0);
                if distance < size[feature] && class >= 0 {
                    add(start[feature] + distance + class as u64 * width, weight(row));
                }
            });
        }
    }
    // The lowest `i64` stands for a missing value.
    let is_outside = |((row, column), x): ((usize, usize), &i64)| {
        let (size, distance) = (size[column], distance_above(*x, low[column]));
        classes[row] >= 0 && distance >= size && *x != i64::MIN
    };
    any_outside && view.indexed_iter().any(is_outside)
}

/// Writes the places where a row's values are counted, `base + start[f] + k`, to `places`, or `u64::MAX` for values outside their
/// range; returns whether there are such.
#[inline(always)]
fn place_row(
    values: &[i64],
    low: &[i64],
    size: &[u64],
    start: &[u64],
    base: u64,
    places: &mut [u64],
) -> bool {
    wide!({
        let mut any_outside = false;
        let ranges = low.iter().zip(size).zip(start);
        for ((&x, place), ((&low, &size), &start)) in values.iter().zip(places).zip(ranges) {
            let distance = distance_above(x, low);
            any_outside |= distance >= size;
            *place = if distance < size { base + start + distance } else { u64::MAX };
        }
        any_outside
    })
}

/// Subtracts `low` from the values of a column of integers, `[row]`; -1 for those below it, and for those `size` or more above it.
pub fn shifted(column: &Block, low: i64, size: usize, threads: usize) -> Result<Vec<i32>, Error> {
    let (n_rows, width) = column.shape();
    demand(width == 1 && column.is_whole(), "a column of integers is expected")?;
    demand(size <= i32::MAX as usize, "there are more values than an int32 can number")?;
    let mut out = vec![0; n_rows];
    threads::pieces(threads::worth(threads, n_rows), &mut out, PIECE, |i, out| {
        let mut room = vec![];
        let view = column.integers(i * PIECE..i * PIECE + out.len(), 0..1, &[low], &mut room);
        wide!(zip_mut(out, view.column(0), |out, x| {
            let distance = distance_above(x, low);
            *out = if distance < size as u64 { distance as i32 } else { -1 };
        }));
    });
    Ok(out)
}

/// The lowest and the highest value of each feature, without the lowest `i64`, which stands for a missing value; 0 and -1 if there
/// is none.
pub fn span(columns: &Columns, threads: usize) -> Result<(Vec<i64>, Vec<i64>), Error> {
    columns.demand_whole()?;
    let (n_rows, features) = (columns.rows().unwrap_or(0), columns.features());
    let threads = threads::worth(threads, n_rows.saturating_mul(features));
    let spans = threads::try_ranges(threads, n_rows, PIECE, |rows| {
        let (mut low, mut high) = (vec![i64::MAX; features], vec![i64::MIN; features]);
        let mut room = vec![];
        // The first feature of a block, the block, and which of its columns are meant.
        for (first, block, within) in columns.blocks_of(0..features) {
            let own = first..first + within.len();
            if let Block::U64(view) = block {
                let view = view.slice(s![rows.clone(), ..]);
                let mut values = view.indexed_iter();
                if let Some(((row, column), _)) = values.find(|(_, x)| **x > i64::MAX as u64) {
                    return Err(columns.bad_value(Fault::TooFar, rows.start + row, first + column));
                }
            }
            let view = block.integers(rows.clone(), within, &vec![0; own.len()], &mut room);
            widen(view, &mut low[own.clone()], &mut high[own]);
        }
        Ok((low, high))
    })?;
    let (mut low, mut high) = (vec![i64::MAX; features], vec![i64::MIN; features]);
    for (lows, highs) in spans {
        low.iter_mut().zip(lows).for_each(|(total, piece)| *total = (*total).min(piece));
        high.iter_mut().zip(highs).for_each(|(total, piece)| *total = (*total).max(piece));
    }
    for (low, high) in low.iter_mut().zip(&mut high) {
        if low > high {
            (*low, *high) = (0, -1);
        }
    }
    Ok((low, high))
}

/// Widens the spans of columns, `low` and `high` of each, by the values of a piece, `[row][column]`.
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
                let mut ends = (*low, *high);
                zip_with(column, repeat(()), |x, ()| widen(x, &mut ends.0, &mut ends.1));
                (*low, *high) = ends;
            }
        }
    })
}
