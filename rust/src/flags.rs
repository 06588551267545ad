//! Counts of no and yes per feature and class.

use crate::classes::{Rows, Weights, count_classes, counted};
use crate::columns::{Columns, with_typed_levels, zip_mut, zip_with};
use crate::error::{Error, Fault, demand};
use crate::integers::Integers;
use crate::simd::wide;
use crate::threads;
use ndarray::{ArrayView1, ArrayView2, s};
use std::ops::{AddAssign, Range};

/// Rows whose answers and members are compared as bytes at a time: a multiple of the 32 lanes, and at most 255 rows per lane, so
/// that counts fit a byte. 200,000 rows of 20 columns and 16 classes took 4.0 ms, and 4.9 ms with blocks of 4,096.
const BLOCK: usize = 512;
/// Rows per piece, at least; and pieces, at most, since each has counts of its own. Pieces of 2^12 to 2^18 rows were equally
/// fast: 200,000 rows of 20 columns of doubles took 3.6 to 4.6 ms on one thread.
const PIECE: usize = 1 << 14;
const MOST_PIECES: usize = 64;
/// Up to this many classes, comparing each row with every class is faster than looking up its class: on 200,000 rows of 20
/// columns of doubles it took 8 instead of 19 ms with 32 classes, 16 instead of 21 with 64, and 32 instead of 22 with 128.
const MOST_COMPARED_CLASSES: usize = 64;

/// A number that is compared with a threshold.
pub trait Level: Copy + Send + Sync {
    /// A threshold as a number of this type.
    type Limit: Copy + Default;
    /// A counter as wide as the type, so that comparing and counting use the same vector lanes.
    type Counter: Copy + Default + AddAssign + From<bool> + Into<u64>;
    /// The rows after which a counter is emptied: at least 2^16, except for bytes.
    const MOST_COUNT: usize;

    /// The limit for which `exceeds(limit) == (self > threshold)`; None if no value of the type exceeds the threshold.
    fn limit(threshold: f64) -> Option<Self::Limit>;
    /// Whether the number is above the threshold to which the limit belongs.
    fn exceeds(self, limit: Self::Limit) -> bool;
    /// Whether it is NaN; a whole number is never missing.
    fn is_missing(self) -> bool;
    /// Whether it is 0 or 1.
    fn is_flag(self) -> bool;
}

impl Level for f64 {
    type Limit = f64;
    type Counter = u64;
    const MOST_COUNT: usize = 1 << 16;

    /// The threshold itself.
    fn limit(threshold: f64) -> Option<f64> {
        Some(threshold)
    }
    /// Whether the number is above the threshold to which the limit belongs.
    #[inline(always)]
    fn exceeds(self, limit: f64) -> bool {
        self > limit
    }
    /// Whether it is NaN.
    #[inline(always)]
    fn is_missing(self) -> bool {
        self.is_nan()
    }
    /// Whether it is 0 or 1.
    #[inline(always)]
    fn is_flag(self) -> bool {
        (self == 0.0) | (self == 1.0)
    }
}

macro_rules! whole_levels {
    ($($t:ty, $counter:ty, $most_count:expr;)*) => {$(
        impl Level for $t {
            /// The lowest value above the threshold.
            type Limit = $t;
            type Counter = $counter;
            const MOST_COUNT: usize = $most_count;

            /// The lowest value above the threshold: the floor plus 1. None if the type has no such value. `floor` is the
            /// whole number next to the threshold or below it.
            fn limit(threshold: f64) -> Option<$t> {
                let floor = threshold.floor();
                if floor >= <$t>::MAX as f64 {
                    None
                } else if floor < <$t>::MIN as f64 {
                    Some(<$t>::MIN)
                } else {
                    Some(floor as $t + 1)
                }
            }
            /// Whether the number is above the threshold to which the limit belongs.
            #[inline(always)]
            fn exceeds(self, limit: $t) -> bool {
                self >= limit
            }
            /// Whole numbers are never missing.
            #[inline(always)]
            fn is_missing(self) -> bool {
                false
            }
            /// Whether it is 0 or 1.
            #[inline(always)]
            fn is_flag(self) -> bool {
                (self == 0) | (self == 1)
            }
        }
    )*};
}

whole_levels! {
    i64, u64, 1 << 16;
    u8, u8, 255;
}

/// The threshold above which a value is yes, per feature; NaN allows only the values 0 and 1.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds<'a> {
    of_features: &'a [f64],
}

impl<'a> Thresholds<'a> {
    /// The thresholds above which a value is yes, one for each of so many `features`, `[feature]`; NaN allows only 0 and 1.
    /// An error unless there is one for each.
    pub fn new(thresholds: &'a [f64], features: usize) -> Result<Self, Error> {
        demand(thresholds.len() == features, "threshold must have one number per feature")?;
        Ok(Thresholds { of_features: thresholds })
    }

    /// The threshold of a feature for values of type `T`. `limit` is the threshold as a number of that type, `possible` says
    /// whether a value can be above it, and `strict` whether only 0 and 1 are allowed; that is so if the threshold is NaN.
    pub fn rule<T: Level>(&self, feature: usize) -> Rule<T> {
        let threshold = self.of_features[feature];
        let strict = threshold.is_nan();
        // None if no value of the type is above the threshold.
        let limit = T::limit(if strict { 0.0 } else { threshold });
        Rule { limit: limit.unwrap_or_default(), possible: limit.is_some(), strict }
    }
}

/// A threshold for a column of one type.
#[derive(Clone, Copy, Debug)]
pub struct Rule<T: Level> {
    pub limit: T::Limit,
    /// Whether any value of the type exceeds the threshold; if not, the limit has no meaning.
    pub possible: bool,
    /// Whether only 0 and 1 are allowed.
    pub strict: bool,
}

/// The rules of neighbouring columns, field by field.
struct Rules<T: Level> {
    limits: Vec<T::Limit>,
    possible: Vec<bool>,
    strict: Vec<bool>,
}

impl<T: Level> Rules<T> {
    /// The rules of these features, in order. Each has the limit with which values are compared, whether a value of the type
    /// can be above it (`possible`), and whether only 0 and 1 are allowed (`strict`).
    fn new(thresholds: &Thresholds, features: Range<usize>) -> Self {
        let rules: Vec<Rule<T>> = features.map(|f| thresholds.rule(f)).collect();
        Rules {
            limits: rules.iter().map(|rule| rule.limit).collect(),
            possible: rules.iter().map(|rule| rule.possible).collect(),
            strict: rules.iter().map(|rule| rule.strict).collect(),
        }
    }
}

/// Returns the weight of the rows of each class whose value is at most the feature's threshold (no) or above it (yes),
/// `[feature][no, yes][class]`; NaN is neither, and rows of class -1 are not counted. A value other than 0, 1 and NaN where
/// only these are allowed is an error. `total.yes` and `total.missing` are the weights of rows above the threshold, and
/// without a value, `[feature][class]`. At most `threads` threads are used.
pub fn count_flags(
    columns: &Columns,
    thresholds: &Thresholds,
    rows: &Rows,
    threads: usize,
) -> Result<Integers, Error> {
    columns.demand_rows(rows.len())?;
    let (n_rows, n_classes, n_features) = (rows.len(), rows.n_classes, columns.features());
    let threads = threads::worth(threads, n_rows.saturating_mul(n_features));
    // A piece has many more rows than counts.
    let least_rows = n_rows.div_ceil(MOST_PIECES).max(32 * n_classes).max(1);
    let piece_rows = least_rows.next_multiple_of(PIECE);
    let piece_counts = threads::try_ranges(threads, n_rows, piece_rows, |range| {
        let mut counts = Counts::new(n_features, n_classes);
        counts.count(columns, thresholds, rows, range)?;
        Ok(counts)
    })?;
    // The weight of the rows of each class, whether their values are missing or not.
    let class_weights = count_classes(rows, threads);
    let mut total = Counts::new(n_features, n_classes);
    piece_counts.iter().for_each(|counts| total.merge(counts));
    // [feature][no, yes][class]
    let mut counts = Vec::with_capacity(2 * n_features * n_classes);
    for first in (0..total.yes.len()).step_by(n_classes.max(1)) {
        // The cells of one feature.
        let cells = first..first + n_classes;
        let (yes, missing) = (&total.yes[cells.clone()], &total.missing[cells]);
        let answers = yes.iter().zip(missing).zip(&class_weights);
        counts.extend(answers.map(|((yes, missing), all_rows)| all_rows - missing - yes));
        counts.extend_from_slice(yes);
    }
    counted(&counts, vec![n_features, 2, n_classes], rows.digits())
}

/// Counts over a piece of the rows: the weight of those that are yes and of those that are missing, `[feature][class]`, in rows
/// or parts of a row as the caller's weights are.
struct Counts {
    n_classes: usize,
    yes: Vec<i128>,
    missing: Vec<i128>,
}

impl Counts {
    /// Counts of no rows. `features` is how many features there are. `yes` and `missing` are the weights of rows that are
    /// yes, and that have no value, `[feature][class]`.
    fn new(features: usize, n_classes: usize) -> Self {
        Counts {
            n_classes,
            yes: vec![0; features * n_classes],
            missing: vec![0; features * n_classes],
        }
    }

    /// Adds the counts of another piece to these. `yes` and `missing` are the weights of rows that are yes, and that have no
    /// value, `[feature][class]`.
    fn merge(&mut self, other: &Counts) {
        self.yes.iter_mut().zip(&other.yes).for_each(|(total, yes)| *total += yes);
        self.missing.iter_mut().zip(&other.missing).for_each(|(total, missing)| *total += missing);
    }

    /// Adds the rows in `range` that have a class, in the way that suits the layout and the weights. `thresholds` has the one
    /// of each feature above which a value is yes, and `rows` the class (-1: none) and the weight of each row; columns of a
    /// block are features, counted over all blocks.
    fn count(
        &mut self,
        columns: &Columns,
        thresholds: &Thresholds,
        rows: &Rows,
        range: Range<usize>,
    ) -> Result<(), Error> {
        let mut buffer = vec![]; // where numbers of other types are converted
        // `block_columns` of the array `block` are the features from `first` on.
        for (first, block, block_columns) in columns.blocks_of(0..columns.features()) {
            // The numbers that are compared with thresholds, [row][column].
            let levels = block.levels(range.clone(), block_columns.clone(), &mut buffer);
            // Rows take 5 ms instead of 11 ms for 200,000 rows of 20 doubles, and comparing classes 3.6 instead of 15 ms.
            // `view` has the same numbers as an array of their type.
            let outcome = with_typed_levels!(levels, view => {
                let is_row_major = view.ncols() > 1 && view.strides()[1] == 1;
                match rows.weights {
                    Weights::Ones if is_row_major => {
                        let rules = Rules::new(thresholds, first..first + block_columns.len());
                        self.count_rows(view, &rules, &rows.classes[range.clone()], first)
                    }
                    Weights::Ones if self.n_classes <= MOST_COMPARED_CLASSES => {
                        self.compare_classes(view, thresholds, &rows.classes[range.clone()], first)
                    }
                    _ => self.count_columns(view, thresholds, rows, range.clone(), first),
                }
            });
            // `bad` is the row and the column, within this range and these columns, of a value that must be 0 or 1.
            if let Err(bad) = outcome {
                let (row, feature) = (range.start + bad.row, first + bad.column);
                return Err(columns.bad_value(Fault::NotZeroOrOne, row, feature));
            }
        }
        Ok(())
    }

    /// Counts a matrix (rows × columns) whose rows are contiguous and weigh 1: each row adds its answers to the counters of
    /// its class, side by side. `classes` has the class of each row, -1 if none; `first` is the feature of the first column.
    /// A rule has the limit above which a value of its column is yes, and `strict` if it must be 0 or 1. The error is the row
    /// and the column, in the matrix, of a value that must be 0 or 1 and is not. A counter is emptied after `T::MOST_COUNT`
    /// rows, before it can overflow.
    fn count_rows<T: Level>(
        &mut self,
        view: ArrayView2<T>,
        rules: &Rules<T>,
        classes: &[i32],
        first: usize,
    ) -> Result<(), BadFlag> {
        let n_columns = view.ncols();
        let any_strict = rules.strict.contains(&true); // some column allows only 0 and 1
        // Yes answers since the last flush, [class][column]; and the rows of each class since then.
        let mut counters = vec![T::Counter::default(); n_columns * self.n_classes];
        let mut n_counted = vec![0_usize; self.n_classes];
        for (row, (values, &class)) in view.rows().into_iter().zip(classes).enumerate() {
            let (Some(values), Ok(class)) = (values.to_slice(), usize::try_from(class)) else {
                continue;
            };
            let counters = &mut counters[class * n_columns..(class + 1) * n_columns];
            if add_row(values, rules, any_strict, counters) {
                self.count_missing(values, rules, class, first)
                    .map_err(|column| BadFlag { row, column })?;
            }
            n_counted[class] += 1;
            if n_counted[class] == T::MOST_COUNT {
                self.flush_counters(counters, rules, class, first);
                n_counted[class] = 0;
            }
        }
        for (class, counters) in counters.chunks_exact_mut(n_columns).enumerate() {
            self.flush_counters(counters, rules, class, first);
        }
        Ok(())
    }

    /// Counts the missing values of a row of class `class`, whose first column is feature `first`. The error is the index in
    /// `row` of the first value that must be 0 or 1 and is not. `rules.strict` says for each column whether its values must
    /// be 0 or 1; `self.missing` has the weight of rows without a value, `[feature][class]`.
    fn count_missing<T: Level>(
        &mut self,
        row: &[T],
        rules: &Rules<T>,
        class: usize,
        first: usize,
    ) -> Result<(), usize> {
        for (column, (x, &strict)) in row.iter().zip(&rules.strict).enumerate() {
            if x.is_missing() {
                self.missing[(first + column) * self.n_classes + class] += 1;
            } else if strict && !x.is_flag() {
                return Err(column);
            }
        }
        Ok(())
    }

    /// Adds a class's counters of yes answers, one per column, to `self.yes`, and sets them to 0. `first` is the feature of
    /// the first column. `rules.possible` says for each column whether a value of its type can be yes; `self.yes` has the
    /// weight of rows that are yes, `[feature][class]`.
    fn flush_counters<T: Level>(
        &mut self,
        counters: &mut [T::Counter],
        rules: &Rules<T>,
        class: usize,
        first: usize,
    ) {
        for (column, (counter, &possible)) in counters.iter_mut().zip(&rules.possible).enumerate() {
            let count: u64 = std::mem::take(counter).into();
            if possible {
                self.yes[(first + column) * self.n_classes + class] += i128::from(count);
            }
        }
    }

    /// Counts a matrix (rows × columns) for few classes, rows weighing 1: answers, and which rows are members of a class, are
    /// bytes whose overlap is counted side by side. `classes` has the class of each row, -1 if none; `first` is the feature
    /// of the first column. `self.yes` and `self.missing` have the weights of rows that are yes, and without a value,
    /// `[feature][class]`. The error is the row and the column, in the matrix, of a value that must be 0 or 1 and is not.
    fn compare_classes<T: Level>(
        &mut self,
        view: ArrayView2<T>,
        thresholds: &Thresholds,
        classes: &[i32],
        first: usize,
    ) -> Result<(), BadFlag> {
        // 1 where a row of the block is of the class, [class][row]; and where its value is yes, or missing.
        let mut members = vec![[0_u8; BLOCK]; self.n_classes];
        let (mut yes, mut missing) = ([0_u8; BLOCK], [0_u8; BLOCK]);
        for (block, classes) in classes.chunks(BLOCK).enumerate() {
            let n_rows = classes.len();
            let first_row = block * BLOCK;
            for (class, members) in (0..).zip(&mut members) {
                members[n_rows..].fill(0);
                for (member, &row_class) in members.iter_mut().zip(classes) {
                    *member = u8::from(row_class == class);
                }
            }
            let view = view.slice(s![first_row..first_row + n_rows, ..]);
            for (j, column) in view.columns().into_iter().enumerate() {
                let rule = thresholds.rule(first + j);
                // Some value is missing, or not 0 or 1 where it must be.
                let is_odd =
                    write_answers(column, rule, &mut yes[..n_rows], &mut missing[..n_rows]);
                if is_odd && let Some(row) = first_bad(column, rule, classes) {
                    return Err(BadFlag { row: first_row + row, column: j });
                }
                let first_cell = (first + j) * self.n_classes; // of the feature
                for (cell, members) in (first_cell..).zip(&members) {
                    self.yes[cell] += i128::from(count_overlap(&yes, members));
                    if is_odd {
                        self.missing[cell] += i128::from(count_overlap(&missing, members));
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts a matrix (rows × columns) of any layout and with any weights, by a small table of (class, answer) per column.
    /// It is rows `range` of the data; `first` is the feature of its first column. `thresholds` has the one of each feature;
    /// `self.yes` and `self.missing` have the weights of rows that are yes, and without a value, `[feature][class]`. The
    /// error is the row and the column, in the matrix, of a value that must be 0 or 1 and is not.
    fn count_columns<T: Level>(
        &mut self,
        view: ArrayView2<T>,
        thresholds: &Thresholds,
        rows: &Rows,
        range: Range<usize>,
        first: usize,
    ) -> Result<(), BadFlag> {
        // Weights [class + 1][answer] of one column of a block; rows without a class come first.
        let mut table = vec![0_i128; 4 * (self.n_classes + 1)];
        for start in (0..range.len()).step_by(BLOCK) {
            let block = start..range.len().min(start + BLOCK);
            let view = view.slice(s![block.clone(), ..]);
            let first_row = range.start + start; // of the block, in the data
            let classes = &rows.classes[first_row..first_row + block.len()];
            for (j, column) in view.columns().into_iter().enumerate() {
                table.fill(0);
                let rule = thresholds.rule(first + j);
                let weight = |row| rows.weight(first_row + row) as i128;
                fill_table(column, rule, classes, weight, &mut table)
                    .map_err(|row| BadFlag { row: start + row, column: j })?;
                let cells = (first + j) * self.n_classes..(first + j + 1) * self.n_classes;
                for (class, cell) in cells.enumerate() {
                    self.yes[cell] += table[4 * (class + 1) + YES];
                    self.missing[cell] += table[4 * (class + 1) + MISSING];
                }
            }
        }
        Ok(())
    }
}

/// Where a value is that must be 0 or 1 and is neither, counted from the first row and column of the matrix.
struct BadFlag {
    row: usize,
    column: usize,
}

// Answers; no is 0.
const YES: usize = 1;
const MISSING: usize = 2;
const BAD: usize = 3;

/// The answer of a value: no (0), [`YES`], [`MISSING`] or [`BAD`]. `rule.limit` is what a yes exceeds, `rule.possible` says
/// whether a value of the type can, and `rule.strict` whether the value must be 0 or 1.
#[inline(always)]
fn answer<T: Level>(x: T, rule: Rule<T>) -> usize {
    let yes = (x.exceeds(rule.limit) & rule.possible) as usize;
    if x.is_missing() {
        MISSING
    } else if rule.strict & !x.is_flag() {
        BAD
    } else {
        yes
    }
}

/// Adds `weight(row)` to `table[class + 1][answer]` for each row of a column; class -1 is none. The error is the first row of
/// a class whose answer is bad. `classes` has the class of each row, and `rule` the limit above which a value is yes.
#[inline(always)]
fn fill_table<T: Level>(
    column: ArrayView1<T>,
    rule: Rule<T>,
    classes: &[i32],
    weight: impl Fn(usize) -> i128,
    table: &mut [i128],
) -> Result<(), usize> {
    zip_with(column, classes.iter().enumerate(), |x, (row, class)| {
        table[4 * (class + 1) as usize + answer(x, rule)] += weight(row);
    });
    if table.chunks_exact(4).skip(1).all(|counts| counts[BAD] == 0) {
        return Ok(());
    }
    first_bad(column, rule, classes).map_or(Ok(()), Err)
}

/// The first row that has a class (-1: none) and whose answer is bad: it must be 0 or 1, and is neither. None if there is
/// none. `classes` has the class of each row, and `rule` says what answer a value is.
#[cold]
fn first_bad<T: Level>(column: ArrayView1<T>, rule: Rule<T>, classes: &[i32]) -> Option<usize> {
    let is_bad = |(&x, &class): (&T, &i32)| class >= 0 && answer(x, rule) == BAD;
    column.iter().zip(classes).position(is_bad)
}

/// Adds 1 to the counter of each column whose value in this row exceeds its limit. Returns whether a value is missing, or not
/// 0 or 1 where it must be (`any_strict`: it must in some column). `row` has the value of each column, `rules.limits` its
/// limit, and `rules.strict` whether it must be 0 or 1.
#[inline(always)]
fn add_row<T: Level>(
    row: &[T],
    rules: &Rules<T>,
    any_strict: bool,
    counters: &mut [T::Counter],
) -> bool {
    wide!({
        let mut is_odd = false;
        for ((&x, &limit), counter) in row.iter().zip(&rules.limits).zip(counters) {
            *counter += x.exceeds(limit).into();
            is_odd |= x.is_missing();
        }
        if any_strict {
            for (&x, &strict) in row.iter().zip(&rules.strict) {
                is_odd |= strict & !x.is_flag();
            }
        }
        is_odd
    })
}

/// Writes 1 into `yes` where a column exceeds its threshold, else 0. Returns whether a value is missing, or not 0 or 1 where
/// it must be; only then it writes `missing`, 1 where the value is missing, else 0. `limit` is what a yes exceeds, `possible`
/// says whether a value of the type can, and `strict` whether values must be 0 or 1; `yes` and `missing` are `[row]`.
#[inline(always)]
fn write_answers<T: Level>(
    column: ArrayView1<T>,
    Rule { limit, possible, strict }: Rule<T>,
    yes: &mut [u8],
    missing: &mut [u8],
) -> bool {
    wide!({
        // A byte and not a bool: with a bool the loop over bytes is not vectorized, and takes 15 times as long.
        let mut is_odd = 0_u8;
        zip_mut(yes, column, |yes, x| {
            *yes = u8::from(x.exceeds(limit) & possible);
            is_odd |= u8::from(x.is_missing() | (strict & !x.is_flag()));
        });
        if is_odd != 0 {
            zip_mut(missing, column, |missing, x| *missing = u8::from(x.is_missing()));
        }
        is_odd != 0
    })
}

/// Counts the positions that have a 1 in both; all bytes are 0 or 1.
#[inline(always)]
fn count_overlap(a: &[u8; BLOCK], b: &[u8; BLOCK]) -> i64 {
    wide!({
        // Counts of every 32nd position, which fit a byte.
        let mut lanes = [0_u8; 32];
        for (a, b) in a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0) {
            for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                *lane += a & b;
            }
        }
        lanes.iter().map(|&lane| i64::from(lane)).sum()
    })
}
