//! Features as they came: blocks of columns of any number type and any strides, read in place.

use crate::error::{Error, Fault, Number};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, Zip, s};
use std::ops::{AddAssign, Range};

/// A number type a column may hold.
pub trait Value: Copy + Send + Sync + PartialOrd + 'static {
    /// A threshold in this type's own terms, so that comparing rounds nothing.
    type Limit: Copy + Default + Send + Sync;
    /// A small count as wide as the type, so that comparing and counting use the same lanes.
    type Tally: Copy + Default + AddAssign + From<bool> + Into<u64> + Send;
    /// How many ones a `Tally` can hold; at least 2^16 except for bytes.
    const FULL: usize;

    fn real(self) -> f64;
    fn number(self) -> Number;
    /// The limit with `exceeds(limit) == (self > threshold)`; none if no value of the type is above.
    fn limit(threshold: f64) -> Option<Self::Limit>;
    fn exceeds(self, limit: Self::Limit) -> bool;
    fn is_missing(self) -> bool;
    /// Whether it is 0 or 1.
    fn is_flag(self) -> bool;
}

/// A whole-number type.
pub trait Whole: Value {
    /// `self - low`, or something huge when that is negative. Right for ranges that end at `i64::MAX` or before.
    fn above(self, low: i64) -> u64;
    /// `self` where an `i64` can hold it.
    fn whole(self) -> Option<i64>;
}

macro_rules! reals {
    ($($t:ty, $tally:ty);*) => {$(
        impl Value for $t {
            type Limit = f64;
            type Tally = $tally;
            const FULL: usize = WIDE;

            fn limit(threshold: f64) -> Option<f64> {
                Some(threshold)
            }
            #[inline(always)]
            fn exceeds(self, limit: f64) -> bool {
                self as f64 > limit
            }
            #[inline(always)]
            fn is_missing(self) -> bool {
                self.is_nan()
            }
            #[inline(always)]
            fn is_flag(self) -> bool {
                (self == 0.0) | (self == 1.0)
            }
            #[inline(always)]
            fn real(self) -> f64 {
                self as f64
            }
            fn number(self) -> Number {
                Number::Real(self as f64)
            }
        }
    )*};
}
macro_rules! wholes {
    ($($t:ty, $tally:ty, $full:expr);*) => {$(
        impl Value for $t {
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
            #[inline(always)]
            fn real(self) -> f64 {
                self as f64
            }
            fn number(self) -> Number {
                Number::Whole(self as i128)
            }
        }
        impl Whole for $t {
            #[inline(always)]
            fn above(self, low: i64) -> u64 {
                match i64::try_from(self) {
                    Ok(x) => x.wrapping_sub(low) as u64,
                    Err(_) => u64::MAX,
                }
            }
            #[inline(always)]
            fn whole(self) -> Option<i64> {
                i64::try_from(self).ok()
            }
        }
    )*};
}
const WIDE: usize = 1 << 16;
reals!(f64, u64; f32, u32);
wholes!(i64, u64, WIDE; i32, u32, WIDE; i16, u32, WIDE; i8, u8, 255);
wholes!(u64, u64, WIDE; u32, u32, WIDE; u16, u32, WIDE; u8, u8, 255);

/// Columns that lie in one array, rows × columns.
#[derive(Clone, Debug)]
pub enum Block<'a> {
    F64(ArrayView2<'a, f64>),
    F32(ArrayView2<'a, f32>),
    I64(ArrayView2<'a, i64>),
    I32(ArrayView2<'a, i32>),
    I16(ArrayView2<'a, i16>),
    I8(ArrayView2<'a, i8>),
    U64(ArrayView2<'a, u64>),
    U32(ArrayView2<'a, u32>),
    U16(ArrayView2<'a, u16>),
    U8(ArrayView2<'a, u8>),
}

/// Evaluates the body with the block's typed view.
macro_rules! each {
    ($block:expr, $view:ident => $body:expr) => {
        match $block {
            $crate::columns::Block::F64($view) => $body,
            $crate::columns::Block::F32($view) => $body,
            $crate::columns::Block::I64($view) => $body,
            $crate::columns::Block::I32($view) => $body,
            $crate::columns::Block::I16($view) => $body,
            $crate::columns::Block::I8($view) => $body,
            $crate::columns::Block::U64($view) => $body,
            $crate::columns::Block::U32($view) => $body,
            $crate::columns::Block::U16($view) => $body,
            $crate::columns::Block::U8($view) => $body,
        }
    };
}

/// The same for whole-number types; the last expression answers for the others.
macro_rules! each_whole {
    ($block:expr, $view:ident => $body:expr, $otherwise:expr) => {
        match $block {
            $crate::columns::Block::F64(_) | $crate::columns::Block::F32(_) => $otherwise,
            $crate::columns::Block::I64($view) => $body,
            $crate::columns::Block::I32($view) => $body,
            $crate::columns::Block::I16($view) => $body,
            $crate::columns::Block::I8($view) => $body,
            $crate::columns::Block::U64($view) => $body,
            $crate::columns::Block::U32($view) => $body,
            $crate::columns::Block::U16($view) => $body,
            $crate::columns::Block::U8($view) => $body,
        }
    };
}
pub(crate) use {each, each_whole};

impl Block<'_> {
    pub fn shape(&self) -> (usize, usize) {
        each!(self, view => view.dim())
    }

    pub fn is_whole(&self) -> bool {
        !matches!(self, Block::F64(_) | Block::F32(_))
    }

    /// One value; slow, for messages and rare paths.
    pub fn value(&self, row: usize, column: usize) -> Number {
        each!(self, view => view[[row, column]].number())
    }
}

impl Number {
    pub fn real(self) -> f64 {
        match self {
            Number::Real(x) => x,
            Number::Whole(x) => x as f64,
        }
    }
}

/// `f(out, x)` for each value of a column; `out` must be as long.
#[inline(always)]
pub fn pair<T: Value, U>(out: &mut [U], column: ArrayView1<T>, mut f: impl FnMut(&mut U, T)) {
    match column.to_slice() {
        Some(column) => out.iter_mut().zip(column).for_each(|(out, &x)| f(out, x)),
        None => Zip::from(ArrayViewMut1::from(out)).and(column).for_each(|out, &x| f(out, x)),
    }
}

/// `f(x, other)` for each value of a column and what goes with it.
#[inline(always)]
pub fn along<T: Value, I: Iterator>(
    column: ArrayView1<T>,
    others: I,
    mut f: impl FnMut(T, I::Item),
) {
    match column.to_slice() {
        Some(column) => column.iter().zip(others).for_each(|(&x, other)| f(x, other)),
        None => column.iter().zip(others).for_each(|(&x, other)| f(x, other)),
    }
}

/// So many rows a list may have.
pub const MOST_LISTED: usize = 128;

/// Some rows: neighbours, or a short list.
#[derive(Clone, Debug)]
pub enum Chosen<'a> {
    Neighbours(Range<usize>),
    Listed(&'a [u32]),
}

impl Chosen<'_> {
    #[inline(always)]
    pub fn len(&self) -> usize {
        match self {
            Chosen::Neighbours(rows) => rows.len(),
            Chosen::Listed(rows) => rows.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    pub fn row(&self, at: usize) -> usize {
        match self {
            Chosen::Neighbours(rows) => rows.start + at,
            Chosen::Listed(rows) => rows[at] as usize,
        }
    }

    /// A column's values in these rows: where they are, or copied to `room`.
    #[inline(always)]
    pub fn of<'v, T: Value>(
        &self,
        view: &'v ArrayView2<T>,
        column: usize,
        room: &'v mut Option<[T; MOST_LISTED]>,
    ) -> ArrayView1<'v, T> {
        match self {
            Chosen::Neighbours(rows) => view.slice(s![rows.clone(), column]),
            Chosen::Listed([]) => view.slice(s![0..0, column]),
            Chosen::Listed(rows) => {
                let column = view.column(column);
                let room = room.insert([column[rows[0] as usize]; MOST_LISTED]);
                for (out, &row) in room.iter_mut().zip(*rows) {
                    *out = column[row as usize];
                }
                ArrayView1::from(&room[..rows.len()])
            }
        }
    }
}

/// The features in order, over blocks of equal length.
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    blocks: Vec<Block<'a>>,
    /// The first feature of each block, then the number of features.
    starts: Vec<usize>,
}

impl<'a> Columns<'a> {
    pub fn new(blocks: Vec<Block<'a>>) -> Result<Self, Error> {
        let mut starts = vec![0];
        let mut total = 0;
        for block in &blocks {
            if block.shape().0 != blocks[0].shape().0 {
                return Err(Error::malformed(format!(
                    "columns must be equally long, got {} and {} rows",
                    blocks[0].shape().0,
                    block.shape().0
                )));
            }
            total += block.shape().1;
            starts.push(total);
        }
        Ok(Columns { blocks, starts })
    }

    pub fn features(&self) -> usize {
        self.starts[self.blocks.len()]
    }

    /// Rows, if there is an array to tell.
    pub fn rows(&self) -> Option<usize> {
        self.blocks.first().map(|block| block.shape().0)
    }

    pub fn blocks(&self) -> &[Block<'a>] {
        &self.blocks
    }

    pub fn demand_rows(&self, n: usize) -> Result<(), Error> {
        match self.rows() {
            Some(rows) if rows != n => {
                Err(Error::malformed(format!("columns have {rows} rows where {n} are expected")))
            }
            _ => Ok(()),
        }
    }

    pub fn demand_whole(&self) -> Result<(), Error> {
        match self.blocks.iter().all(Block::is_whole) {
            true => Ok(()),
            false => Err(Error::malformed("columns must be integers")),
        }
    }

    /// The blocks that hold these features: (first feature, block, columns of the block).
    pub fn pieces(
        &self,
        features: Range<usize>,
    ) -> impl Iterator<Item = (usize, &Block<'a>, Range<usize>)> {
        self.blocks.iter().enumerate().filter_map(move |(b, block)| {
            let (start, end) = (self.starts[b], self.starts[b + 1]);
            let (from, to) = (features.start.max(start), features.end.min(end));
            (from < to).then(|| (from, block, from - start..to - start))
        })
    }

    /// The same, column by column: (feature, block, column of the block).
    pub fn each_of(
        &self,
        features: Range<usize>,
    ) -> impl Iterator<Item = (usize, &Block<'a>, usize)> {
        let pieces = self.pieces(features);
        pieces.flat_map(|(first, block, within)| {
            within.enumerate().map(move |(j, column)| (first + j, block, column))
        })
    }

    /// What is wrong with a value.
    #[cold]
    pub fn refused(&self, fault: Fault, row: usize, feature: usize) -> Error {
        Error::BadValue { fault, feature, row, value: self.value(row, feature) }
    }

    /// The block of a feature, which must exist, and its column there.
    pub fn at(&self, feature: usize) -> (&Block<'a>, usize) {
        let block = self.starts.partition_point(|&start| start <= feature) - 1;
        (&self.blocks[block], feature - self.starts[block])
    }

    /// One value; slow, for messages and rare paths. The feature must exist.
    pub fn value(&self, row: usize, feature: usize) -> Number {
        let (block, column) = self.at(feature);
        block.value(row, column)
    }
}
