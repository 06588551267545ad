//! Counts of no and yes per feature and class.

use crate::classes::{Rows, Weights, count_classes, counted};
use crate::columns::{Columns, along, either, pair};
use crate::error::{Error, Fault, demand};
use crate::integers::Integers;
use crate::simd::wide;
use crate::threads;
use ndarray::{ArrayView1, ArrayView2, s};
use std::ops::{AddAssign, Range};

/// Rows whose answers and members are compared as bytes at a time: a multiple of the 32 lanes, and at most 255 rows per lane, so
/// that counts fit a byte. 200,000 rows of 20 columns and 16 classes took 4.0 ms, and 4.9 ms with blocks of 4,096.
const BLOCK: usize = 512;
/// Rows per piece, at least; and pieces, at most, since each has counts of its own.
const PIECE: usize = 1 << 14;
const MOST_PIECES: usize = 64;
/// Up to this many classes, comparing each row with every class is faster than looking up its class: on 200,000 rows of 20
/// columns of doubles it took 8 instead of 19 ms with 32 classes, 16 instead of 21 with 64, and 32 instead of 22 with 128.
const FEW: usize = 64;

/// A number that is compared with a threshold.
pub trait Level: Copy + Send + Sync {
    /// A threshold as a number of this type.
    type Limit: Copy + Default;
    /// A counter as wide as the type, so that comparing and counting use the same vector lanes.
    type Tally: Copy + Default + AddAssign + From<bool> + Into<u64>;
    /// The largest count of a `Tally`: at least 2^16, except for bytes.
    const FULL: usize;

    /// The limit for which `exceeds(limit) == (self > threshold)`; None if no value of the type exceeds the threshold.
    fn limit(threshold: f64) -> Option<Self::Limit>;
    fn exceeds(self, limit: Self::Limit) -> bool;
    fn is_missing(self) -> bool;
    /// Whether it is 0 or 1.
    fn is_flag(self) -> bool;
}

impl Level for f64 {
    type Limit = f64;
    type Tally = u64;
    const FULL: usize = 1 << 16;

    fn limit(threshold: f64) -> Option<f64> {
        Some(threshold)
    }
    #[inline(always)]
    fn exceeds(self, limit: f64) -> bool {
        self > limit
    }
    #[inline(always)]
    fn is_missing(self) -> bool {
        self.is_nan()
    }
    #[inline(always)]
    fn is_flag(self) -> bool {
        (self == 0.0) | (self == 1.0)
    }
}

macro_rules! whole_levels {
    ($($t:ty, $tally:ty, $full:expr;)*) => {$(
        impl Level for $t {
            /// The lowest value above the threshold.
            type Limit = $t;
            type Tally = $tally;
            const FULL: usize = $full;

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
            #[inline(always)]
            fn exceeds(self, limit: $t) -> bool {
                self >= limit
            }
            #[inline(always)]
            fn is_missing(self) -> bool {
                false
            }
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
pub struct Thresholds<'a>(&'a [f64]);

impl<'a> Thresholds<'a> {
    pub fn new(thresholds: &'a [f64], features: usize) -> Result<Self, Error> {
        demand(thresholds.len() == features, "threshold must have one number per feature")?;
        Ok(Thresholds(thresholds))
    }

    pub fn rule<T: Level>(&self, feature: usize) -> Rule<T> {
        let threshold = self.0[feature];
        let strict = threshold.is_nan();
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
    fn new(thresholds: &Thresholds, features: Range<usize>) -> Self {
        let rules: Vec<Rule<T>> = features.map(|f| thresholds.rule(f)).collect();
        Rules {
            limits: rules.iter().map(|rule| rule.limit).collect(),
            possible: rules.iter().map(|rule| rule.possible).collect(),
            strict: rules.iter().map(|rule| rule.strict).collect(),
        }
    }
}

/// Counts the rows of each class that do not exceed each threshold, and those that do, `[feature][no, yes][class]`; NaN is
/// neither.
pub fn count_flags(
    columns: &Columns,
    thresholds: &Thresholds,
    rows: &Rows,
    threads: usize,
) -> Result<Integers, Error> {
    columns.demand_rows(rows.len())?;
    let (n, n_classes, features) = (rows.len(), rows.n_classes, columns.features());
    let threads = threads::worth(threads, n.saturating_mul(features));
    let piece = n.div_ceil(MOST_PIECES).max(32 * n_classes).next_multiple_of(PIECE).max(PIECE);
    let found = threads::try_ranges(threads, n, piece, |range| {
        let mut counts = Counts::new(features, n_classes);
        counts.count(columns, thresholds, rows, range)?;
        Ok(counts)
    })?;
    let class_rows = count_classes(rows, threads);
    let mut total = Counts::new(features, n_classes);
    found.iter().for_each(|counts| total.merge(counts));
    let mut counts = Vec::with_capacity(2 * features * n_classes);
    for (yes, missing) in
        total.yes.chunks_exact(n_classes.max(1)).zip(total.missing.chunks_exact(n_classes.max(1)))
    {
        let present = class_rows.iter().zip(missing).map(|(rows, missing)| rows - missing);
        counts.extend(present.zip(yes).map(|(present, yes)| present - yes));
        counts.extend_from_slice(yes);
    }
    counted(&counts, vec![features, 2, n_classes], rows.digits())
}

/// Counts of a piece of rows, `[feature][class]`.
struct Counts {
    n_classes: usize,
    yes: Vec<i128>,
    missing: Vec<i128>,
}

impl Counts {
    fn new(features: usize, n_classes: usize) -> Self {
        Counts {
            n_classes,
            yes: vec![0; features * n_classes],
            missing: vec![0; features * n_classes],
        }
    }

    fn merge(&mut self, other: &Counts) {
        self.yes.iter_mut().zip(&other.yes).for_each(|(a, b)| *a += b);
        self.missing.iter_mut().zip(&other.missing).for_each(|(a, b)| *a += b);
    }

    fn count(
        &mut self,
        columns: &Columns,
        thresholds: &Thresholds,
        rows: &Rows,
        range: Range<usize>,
    ) -> Result<(), Error> {
        let mut room = vec![];
        for (first, block, cols) in columns.pieces(0..columns.features()) {
            let levels = block.levels(range.clone(), cols.clone(), &mut room);
            let bad = either!(Levels::{F64, I64, U8}, levels, view => {
                let by_row = view.ncols() > 1 && view.strides()[1] == 1;
                match rows.weights {
                    Weights::Ones if by_row => {
                        let rules = Rules::new(thresholds, first..first + cols.len());
                        self.by_row(view, &rules, &rows.classes[range.clone()], first)
                    }
                    Weights::Ones if self.n_classes <= FEW => {
                        self.by_members(view, thresholds, &rows.classes[range.clone()], first)
                    }
                    _ => self.by_column(view, thresholds, rows, range.clone(), first),
                }
            });
            if let Err((row, column)) = bad {
                let (row, feature) = (range.start + row, first + column);
                return Err(columns.refused(Fault::NotZeroOrOne, row, feature));
            }
        }
        Ok(())
    }

    /// Counts a matrix whose rows are contiguous: each row adds its flags to its class's counters, side by side.
    fn by_row<T: Level>(
        &mut self,
        view: ArrayView2<T>,
        rules: &Rules<T>,
        classes: &[i32],
        first: usize,
    ) -> Result<(), (usize, usize)> {
        let k = view.ncols();
        let strict = rules.strict.contains(&true);
        let mut tallies = vec![T::Tally::default(); k * self.n_classes];
        let mut filled = vec![0_usize; self.n_classes];
        for (at, (row, &class)) in view.rows().into_iter().zip(classes).enumerate() {
            let (Some(row), Ok(class)) = (row.to_slice(), usize::try_from(class)) else {
                continue;
            };
            let tally = &mut tallies[class * k..(class + 1) * k];
            if add_row(row, rules, strict, tally) {
                self.odd_row(row, rules, class, first).map_err(|column| (at, column))?;
            }
            filled[class] += 1;
            if filled[class] == T::FULL {
                self.empty(tally, rules, class, first);
                filled[class] = 0;
            }
        }
        for (class, tally) in tallies.chunks_exact_mut(k).enumerate() {
            self.empty(tally, rules, class, first);
        }
        Ok(())
    }

    /// Counts the missing values of a row. The error is the first column that is not a flag but must be one.
    fn odd_row<T: Level>(
        &mut self,
        row: &[T],
        rules: &Rules<T>,
        class: usize,
        first: usize,
    ) -> Result<(), usize> {
        for (j, (x, &strict)) in row.iter().zip(&rules.strict).enumerate() {
            if x.is_missing() {
                self.missing[(first + j) * self.n_classes + class] += 1;
            } else if strict && !x.is_flag() {
                return Err(j);
            }
        }
        Ok(())
    }

    /// Moves a class's counters to the large counts.
    fn empty<T: Level>(
        &mut self,
        tally: &mut [T::Tally],
        rules: &Rules<T>,
        class: usize,
        first: usize,
    ) {
        for (j, (tally, &possible)) in tally.iter_mut().zip(&rules.possible).enumerate() {
            let count: u64 = std::mem::take(tally).into();
            if possible {
                self.yes[(first + j) * self.n_classes + class] += i128::from(count);
            }
        }
    }

    /// Counts columns for few classes: answers, and which rows are members of a class, are bytes whose overlap is counted side by
    /// side.
    fn by_members<T: Level>(
        &mut self,
        view: ArrayView2<T>,
        thresholds: &Thresholds,
        classes: &[i32],
        first: usize,
    ) -> Result<(), (usize, usize)> {
        let mut members = vec![[0_u8; BLOCK]; self.n_classes];
        let (mut yes, mut missing) = ([0_u8; BLOCK], [0_u8; BLOCK]);
        for (b, classes) in classes.chunks(BLOCK).enumerate() {
            let n = classes.len();
            for (class, members) in (0..).zip(&mut members) {
                members[n..].fill(0);
                let pairs = members.iter_mut().zip(classes);
                pairs.for_each(|(member, &c)| *member = u8::from(c == class));
            }
            let view = view.slice(s![b * BLOCK..b * BLOCK + n, ..]);
            for (j, column) in view.columns().into_iter().enumerate() {
                let rule = thresholds.rule(first + j);
                let (yes_out, missing_out) = (&mut yes[..n], &mut missing[..n]);
                let odd = answers(column, rule, yes_out, missing_out);
                if odd && let Some(row) = first_bad(column, rule, classes) {
                    return Err((b * BLOCK + row, j));
                }
                let cells = (first + j) * self.n_classes;
                for (cell, members) in (cells..).zip(&members) {
                    self.yes[cell] += i128::from(overlap(&yes, members));
                    if odd {
                        self.missing[cell] += i128::from(overlap(&missing, members));
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts any layout and any weights: a small table of (class, answer) per column.
    fn by_column<T: Level>(
        &mut self,
        view: ArrayView2<T>,
        thresholds: &Thresholds,
        rows: &Rows,
        range: Range<usize>,
        first: usize,
    ) -> Result<(), (usize, usize)> {
        let mut table = vec![0_i128; 4 * (self.n_classes + 1)];
        for start in (0..range.len()).step_by(BLOCK) {
            let part = start..range.len().min(start + BLOCK);
            let view = view.slice(s![part.clone(), ..]);
            let at = range.start + start;
            let classes = &rows.classes[at..at + part.len()];
            for (j, column) in view.columns().into_iter().enumerate() {
                table.fill(0);
                let rule = thresholds.rule(first + j);
                let weight = |row| rows.weight(at + row) as i128;
                fill_table(column, rule, classes, weight, &mut table)
                    .map_err(|row| (start + row, j))?;
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

const YES: usize = 1;
const MISSING: usize = 2;
const BAD: usize = 3;

/// The answer of a value: no (0), [`YES`], [`MISSING`] or [`BAD`].
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

/// Adds each row's answer to `table[class + 1][answer]`; the first bad row of a class is an error.
#[inline(always)]
fn fill_table<T: Level>(
    column: ArrayView1<T>,
    rule: Rule<T>,
    classes: &[i32],
    weight: impl Fn(usize) -> i128,
    table: &mut [i128],
) -> Result<(), usize> {
    along(column, classes.iter().enumerate(), |x, (row, class)| {
        table[4 * (class + 1) as usize + answer(x, rule)] += weight(row);
    });
    if table.chunks_exact(4).skip(1).all(|counts| counts[BAD] == 0) {
        return Ok(());
    }
    first_bad(column, rule, classes).map_or(Ok(()), Err)
}

/// The first row of a class whose answer is bad.
#[cold]
fn first_bad<T: Level>(column: ArrayView1<T>, rule: Rule<T>, classes: &[i32]) -> Option<usize> {
    let bad = |(&x, &class): (&T, &i32)| class >= 0 && answer(x, rule) == BAD;
    column.iter().zip(classes).position(bad)
}

/// Counts the yes answers of a row. Returns whether a value is missing, or not a flag where it must be one.
#[inline(always)]
fn add_row<T: Level>(row: &[T], rules: &Rules<T>, strict: bool, tally: &mut [T::Tally]) -> bool {
    wide!({
        let mut odd = false;
        for ((&x, &limit), tally) in row.iter().zip(&rules.limits).zip(tally) {
            *tally += x.exceeds(limit).into();
            odd |= x.is_missing();
        }
        if strict {
            for (&x, &strict) in row.iter().zip(&rules.strict) {
                odd |= strict & !x.is_flag();
            }
        }
        odd
    })
}

/// Writes 1 where a column says yes and where it is missing, else 0. Returns whether a value is missing, or not a flag where it
/// must be one.
#[inline(always)]
fn answers<T: Level>(
    column: ArrayView1<T>,
    Rule { limit, possible, strict }: Rule<T>,
    yes: &mut [u8],
    missing: &mut [u8],
) -> bool {
    wide!({
        // A byte and not a bool: with a bool the loop over bytes is not vectorized, and takes 15 times as long.
        let mut odd = 0_u8;
        pair(yes, column, |yes, x| {
            *yes = u8::from(x.exceeds(limit) & possible);
            odd |= u8::from(x.is_missing() | (strict & !x.is_flag()));
        });
        if odd != 0 {
            pair(missing, column, |missing, x| *missing = u8::from(x.is_missing()));
        }
        odd != 0
    })
}

/// Counts the positions that have a 1 in both.
#[inline(always)]
fn overlap(a: &[u8; BLOCK], b: &[u8; BLOCK]) -> i64 {
    wide!({
        let mut lanes = [0_u8; 32];
        for (a, b) in a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0) {
            for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                *lane += a & b;
            }
        }
        lanes.iter().map(|&lane| i64::from(lane)).sum()
    })
}
