//! Features in the arrays that the caller has: blocks of columns of any number type and any strides, read in place.

use crate::error::{Error, Fault, Number};
use crate::simd::wide;
use ndarray::{
    ArrayView, ArrayView1, ArrayView2, ArrayViewMut1, Dimension, Ix1, Ix2, Shape, ShapeBuilder,
    Zip, s,
};
use std::ops::Range;

/// A number type a column may hold.
pub trait Value: Copy + Send + Sync + 'static {
    /// The nearest double.
    fn real(self) -> f64;
    /// The smallest double that is not below the value: it exceeds any double exactly if the value does.
    fn raised(self) -> f64;
    /// The value itself, for messages.
    fn number(self) -> Number;
    /// The value as an `i64`; `otherwise` if it does not fit, and always for types of real numbers.
    fn integer(self, otherwise: i64) -> i64;
}

macro_rules! reals {
    ($($t:ty)*) => {$(
        impl Value for $t {
            /// The nearest double.
            #[inline(always)]
            fn real(self) -> f64 {
                self as f64
            }
            /// The smallest double that is not below the value.
            #[inline(always)]
            fn raised(self) -> f64 {
                self as f64
            }
            /// The value itself, for messages.
            fn number(self) -> Number {
                Number::Real(self as f64)
            }
            /// The value as an `i64`; `otherwise` if it does not fit, and always for types of real numbers.
            fn integer(self, otherwise: i64) -> i64 {
                otherwise
            }
        }
    )*};
}
macro_rules! wholes {
    ($($t:ty)*) => {$(
        impl Value for $t {
            /// The nearest double.
            #[inline(always)]
            fn real(self) -> f64 {
                self as f64
            }
            /// The smallest double that is not below the value. `nearest` is the double next to the value.
            #[inline(always)]
            fn raised(self) -> f64 {
                let nearest = self as f64;
                if (nearest as $t) < self { nearest.next_up() } else { nearest }
            }
            /// The value itself, for messages.
            fn number(self) -> Number {
                Number::Whole(self as i128)
            }
            /// The value as an `i64`; `otherwise` if it does not fit, and always for types of real numbers.
            #[inline(always)]
            fn integer(self, otherwise: i64) -> i64 {
                i64::try_from(self).unwrap_or(otherwise)
            }
        }
    )*};
}

reals!(f64 f32);
wholes!(i64 i32 i16 i8 u64 u32 u16 u8);

/// The distance of a whole number above `low`, the start of a range; a huge number if it is below. Correct for ranges that end at
/// `i64::MAX` or before.
#[inline(always)]
pub fn distance_above(x: i64, low: i64) -> u64 {
    x.wrapping_sub(low) as u64
}

/// A number outside every range of values from `low` on, which stands for values that do not fit an `i64`. Ranges are shorter
/// than 2^62.
#[inline(always)]
fn number_outside(low: i64) -> i64 {
    if low > 0 { -1 } else { i64::MAX }
}

/// An array of columns, rows × columns.
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
macro_rules! with_typed_view {
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

pub(crate) use with_typed_view;

/// Numbers that are compared with thresholds: bytes and int64 in place, all other types converted to doubles. To count 200,000
/// rows of 20 flags took 1.4 ms for bytes and 4 ms for int64 in place, and 8 and 15 ms if they were converted.
#[derive(Debug)]
pub enum Levels<'a, D: Dimension> {
    F64(ArrayView<'a, f64, D>),
    I64(ArrayView<'a, i64, D>),
    U8(ArrayView<'a, u8, D>),
}

/// Evaluates the body with the typed view of [`Levels`].
macro_rules! with_typed_levels {
    ($levels:expr, $view:ident => $body:expr) => {
        match $levels {
            $crate::columns::Levels::F64($view) => $body,
            $crate::columns::Levels::I64($view) => $body,
            $crate::columns::Levels::U8($view) => $body,
        }
    };
}
pub(crate) use with_typed_levels;

/// Replaces the contents of the buffer with the converted numbers of a matrix, in the order in which they are in memory.
/// Returns the converted matrix, a view of the buffer. A lane is a row or a column of the matrix.
fn convert_into<'b, T: Copy, U>(
    buffer: &'b mut Vec<U>,
    view: ArrayView2<T>,
    convert: impl Fn(T) -> U,
) -> ArrayView2<'b, U> {
    let is_row_major = view.ncols() > 1 && view.strides()[1] == 1; // each row is contiguous
    buffer.clear();
    for lane in if is_row_major { view.rows() } else { view.columns() } {
        let (buffer, convert) = (&mut *buffer, &convert);
        match lane.to_slice() {
            Some(lane) => wide!(buffer.extend(lane.iter().map(|&x| convert(x)))),
            None => buffer.extend(lane.iter().map(|&x| convert(x))),
        }
    }
    view_of(view.dim().set_f(!is_row_major), buffer)
}

/// `numbers` as a matrix of this shape; an empty one if they do not have the right length, which callers ensure. The shape is
/// (rows, columns) and says whether numbers lie row by row or column by column.
fn view_of<U>(shape: Shape<Ix2>, numbers: &[U]) -> ArrayView2<'_, U> {
    let empty = |_| ArrayView2::from(&[] as &[[U; 0]]);
    ArrayView2::from_shape(shape, numbers).unwrap_or_else(empty)
}

impl Block<'_> {
    /// (rows, columns).
    pub fn shape(&self) -> (usize, usize) {
        with_typed_view!(self, view => view.dim())
    }

    /// Whether the numbers are of an integer type.
    pub fn is_whole(&self) -> bool {
        !matches!(self, Block::F64(_) | Block::F32(_))
    }

    /// One value; slow, for messages and rare paths.
    pub fn value(&self, row: usize, column: usize) -> Number {
        with_typed_view!(self, view => view[[row, column]].number())
    }

    /// These rows and columns as doubles, (rows × columns): in place, or converted into the buffer. `columns` are columns of
    /// this block.
    pub fn reals<'b>(
        &'b self,
        rows: Range<usize>,
        columns: Range<usize>,
        buffer: &'b mut Vec<f64>,
    ) -> ArrayView2<'b, f64> {
        match self {
            Block::F64(view) => view.slice(s![rows, columns]),
            _ => with_typed_view!(self, view => {
                convert_into(buffer, view.slice(s![rows, columns]), Value::real)
            }),
        }
    }

    /// These rows and columns, (rows × columns), as numbers that exceed a threshold exactly where the values do: in place, or
    /// converted into the buffer. `columns` are columns of this block.
    pub fn levels<'b>(
        &'b self,
        rows: Range<usize>,
        columns: Range<usize>,
        buffer: &'b mut Vec<f64>,
    ) -> Levels<'b, Ix2> {
        match self {
            Block::U8(view) => Levels::U8(view.slice(s![rows, columns])),
            Block::I64(view) => Levels::I64(view.slice(s![rows, columns])),
            Block::U64(view) => {
                Levels::F64(convert_into(buffer, view.slice(s![rows, columns]), Value::raised))
            }
            _ => Levels::F64(self.reals(rows, columns, buffer)),
        }
    }

    /// These rows and columns as whole numbers, (rows × columns): in place, or converted into the buffer. `low` has the start
    /// of each column's range: values that do not fit an `i64` become a number outside that range. The block must be whole.
    /// `columns` are columns of this block.
    pub fn integers<'b>(
        &'b self,
        rows: Range<usize>,
        columns: Range<usize>,
        low: &[i64],
        buffer: &'b mut Vec<i64>,
    ) -> ArrayView2<'b, i64> {
        match self {
            // Reading int32, the type of codes, in place as well gains less than a third: 7.1 instead of 8.8 ms to count
            // 200,000 rows of 20 codes.
            Block::I64(view) => view.slice(s![rows, columns]),
            Block::U64(view) => {
                let shape = (rows.len(), columns.len());
                buffer.clear();
                for (column, &low) in columns.zip(low) {
                    let values = view.slice(s![rows.clone(), column]);
                    buffer.extend(values.iter().map(|x| x.integer(number_outside(low))));
                }
                view_of(shape.f(), buffer)
            }
            _ => with_typed_view!(self, view => {
                convert_into(buffer, view.slice(s![rows, columns]), |x| x.integer(0))
            }),
        }
    }
}

impl Number {
    /// The nearest double.
    pub fn real(self) -> f64 {
        match self {
            Number::Real(x) => x,
            Number::Whole(x) => x as f64,
        }
    }
}

/// Calls `f(out, x)` for each value of a column and the element of `out` beside it; `out` must be as long. `x` is the value;
/// `f` may change the element.
#[inline(always)]
pub fn zip_mut<T: Copy, U>(out: &mut [U], column: ArrayView1<T>, mut f: impl FnMut(&mut U, T)) {
    match column.to_slice() {
        Some(column) => out.iter_mut().zip(column).for_each(|(out, &x)| f(out, x)),
        None => Zip::from(ArrayViewMut1::from(out)).and(column).for_each(|out, &x| f(out, x)),
    }
}

/// Calls `f(x, partner)` for each value of a column and the element of `partners` beside it. `x` is the value.
#[inline(always)]
pub fn zip_with<T: Copy, I: Iterator>(
    column: ArrayView1<T>,
    partners: I,
    mut f: impl FnMut(T, I::Item),
) {
    match column.to_slice() {
        Some(column) => column.iter().zip(partners).for_each(|(&x, partner)| f(x, partner)),
        None => column.iter().zip(partners).for_each(|(&x, partner)| f(x, partner)),
    }
}

/// The largest number of rows in a list, and the rows of a block that is scored. To score 400,000 rows of 8 normal features took
/// 19 ms with 128 rows and 30 ms with 32; 200,000 rows of 20 codes, 13 and 18 ms.
pub const MOST_LISTED: usize = 128;

/// Memory for the converted values of a column in a selection of rows; None until values are converted.
pub type ColumnBuffer<T> = Option<[T; MOST_LISTED]>;

/// Which rows are read: a range, or a list of at most [`MOST_LISTED`].
#[derive(Clone, Debug)]
pub enum RowSelection<'a> {
    Range(Range<usize>),
    List(&'a [u32]),
}

impl RowSelection<'_> {
    /// The number of selected rows.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match self {
            RowSelection::Range(rows) => rows.len(),
            RowSelection::List(rows) => rows.len(),
        }
    }

    /// The number of the i-th selected row. Selected rows are a range, or a list of numbers of rows.
    #[inline(always)]
    pub fn row(&self, i: usize) -> usize {
        match self {
            RowSelection::Range(rows) => rows.start + i,
            RowSelection::List(rows) => rows[i] as usize,
        }
    }

    /// Converts a column's values in these rows into the buffer, and returns them, one per row. `column` has the values of
    /// all rows; `convert` converts one.
    #[inline(always)]
    fn convert<'v, T: Copy, U: Copy + Default>(
        &self,
        column: ArrayView1<T>,
        buffer: &'v mut ColumnBuffer<U>,
        convert: impl Fn(T) -> U,
    ) -> &'v [U] {
        let converted = &mut buffer.insert([U::default(); MOST_LISTED])[..self.len()];
        match self {
            RowSelection::Range(rows) => {
                let column = column.slice(s![rows.clone()]);
                zip_mut(converted, column, |out, x| *out = convert(x));
            }
            RowSelection::List(rows) => {
                for (out, &row) in converted.iter_mut().zip(*rows) {
                    *out = convert(column[row as usize]);
                }
            }
        }
        converted
    }

    /// A column's values in these rows as doubles: in place, or converted into the buffer. `column` is the index of the
    /// column in the block.
    pub fn reals<'v>(
        &self,
        block: &'v Block,
        column: usize,
        buffer: &'v mut ColumnBuffer<f64>,
    ) -> ArrayView1<'v, f64> {
        match (block, self) {
            (Block::F64(view), RowSelection::Range(rows)) => view.slice(s![rows.clone(), column]),
            _ => ArrayView1::from(self.contiguous_reals(block, column, buffer)),
        }
    }

    /// A column's values in these rows as doubles that are contiguous in memory: in place, or converted into the buffer.
    /// `column` is the index of the column in the block.
    pub fn contiguous_reals<'v>(
        &self,
        block: &'v Block,
        column: usize,
        buffer: &'v mut ColumnBuffer<f64>,
    ) -> &'v [f64] {
        if let (Block::F64(view), RowSelection::Range(rows)) = (block, self)
            && let Some(values) = view.slice_move(s![rows.clone(), column]).to_slice()
        {
            return values;
        }
        with_typed_view!(block, view => self.convert(view.column(column), buffer, Value::real))
    }

    /// A column's values in these rows as numbers that exceed a threshold exactly where the values do: in place, or converted
    /// into the buffer. `column` is the index of the column in the block.
    pub fn levels<'v>(
        &self,
        block: &'v Block,
        column: usize,
        buffer: &'v mut ColumnBuffer<f64>,
    ) -> Levels<'v, Ix1> {
        match (block, self) {
            (Block::U8(view), RowSelection::Range(rows)) => {
                Levels::U8(view.slice(s![rows.clone(), column]))
            }
            (Block::I64(view), RowSelection::Range(rows)) => {
                Levels::I64(view.slice(s![rows.clone(), column]))
            }
            (Block::F64(_), _) => Levels::F64(self.reals(block, column, buffer)),
            _ => Levels::F64(with_typed_view!(block, view => {
                self.convert(view.column(column), buffer, Value::raised).into()
            })),
        }
    }

    /// A column's values in these rows as whole numbers: in place, or converted into the buffer. Values that do not fit an
    /// `i64` become a number outside the column's range, which starts at `low`. The block must be whole. `column` is the
    /// index of the column in the block.
    pub fn integers<'v>(
        &self,
        block: &'v Block,
        column: usize,
        low: i64,
        buffer: &'v mut ColumnBuffer<i64>,
    ) -> ArrayView1<'v, i64> {
        match (block, self) {
            (Block::I64(view), RowSelection::Range(rows)) => view.slice(s![rows.clone(), column]),
            _ => with_typed_view!(block, view => {
                self.convert(view.column(column), buffer, |x| x.integer(number_outside(low)))
            })
            .into(),
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
    /// The columns of these blocks, one after the other; an error if the blocks differ in the number of rows. A block is a
    /// matrix, rows × columns, whose columns are features.
    pub fn new(blocks: Vec<Block<'a>>) -> Result<Self, Error> {
        let mut starts = vec![0]; // the first feature of each block
        let mut total = 0; // columns so far
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

    /// The number of features.
    pub fn features(&self) -> usize {
        self.starts[self.blocks.len()]
    }

    /// The number of rows; None if there is no block.
    pub fn rows(&self) -> Option<usize> {
        self.blocks.first().map(|block| block.shape().0)
    }

    /// An error if the columns do not have `n_rows` rows, the number that the caller expects; none if there is no column.
    pub fn demand_rows(&self, n_rows: usize) -> Result<(), Error> {
        match self.rows() {
            Some(rows) if rows != n_rows => {
                let sentence = format!("columns have {rows} rows where {n_rows} are expected");
                Err(Error::malformed(sentence))
            }
            _ => Ok(()),
        }
    }

    /// An error unless all columns are of integer types.
    pub fn demand_whole(&self) -> Result<(), Error> {
        match self.blocks.iter().all(Block::is_whole) {
            true => Ok(()),
            false => Err(Error::malformed("columns must be integers")),
        }
    }

    /// The blocks that hold these features, in order: (first feature, block, the columns of the block that hold them).
    /// Features are counted over all blocks, and `self.starts` has the first feature of each block, then the number of
    /// features.
    pub fn blocks_of(
        &self,
        features: Range<usize>,
    ) -> impl Iterator<Item = (usize, &Block<'a>, Range<usize>)> {
        // A block has the features `bounds[0]..bounds[1]`.
        self.blocks.iter().zip(self.starts.windows(2)).filter_map(move |(block, bounds)| {
            let (start, end) = (features.start.max(bounds[0]), features.end.min(bounds[1]));
            (start < end).then(|| (start, block, start - bounds[0]..end - bounds[0]))
        })
    }

    /// The columns that hold these features, in order: (feature, block, index of the column in the block). Features are
    /// counted over all blocks. `first` is the feature in the first of a block's `columns`.
    pub fn columns_of(
        &self,
        features: Range<usize>,
    ) -> impl Iterator<Item = (usize, &Block<'a>, usize)> {
        self.blocks_of(features).flat_map(|(first, block, columns)| {
            (first..).zip(columns).map(move |(feature, column)| (feature, block, column))
        })
    }

    /// The error that refuses a feature's value in a row, with the value.
    #[cold]
    pub fn bad_value(&self, fault: Fault, row: usize, feature: usize) -> Error {
        Error::BadValue { fault, feature, row, value: self.value(row, feature) }
    }

    /// The block of a feature, which must exist, and the index of its column in the block. Features are counted over all
    /// blocks, and `self.starts` has the first feature of each block.
    pub fn block_of(&self, feature: usize) -> (&Block<'a>, usize) {
        let block = self.starts.partition_point(|&start| start <= feature) - 1;
        (&self.blocks[block], feature - self.starts[block])
    }

    /// One value; slow, for messages and rare paths. The feature must exist. Features are counted over all blocks.
    pub fn value(&self, row: usize, feature: usize) -> Number {
        let (block, column) = self.block_of(feature);
        block.value(row, column)
    }
}
