//! Leave-one-out for normal densities: how the log density of a row's values in its own class changes if the row is left out.

use crate::columns::Columns;
use crate::error::{Error, demand};
use crate::scale::Scale;
use crate::threads;

/// Rows per block. 100,000 rows of 20 columns took 18 ms; with 1,024 and 512 blocks, 16 ms; with 16 and 8, 22 ms.
const ROWS: usize = 128;
/// Blocks per piece, which a thread takes at a time.
const BLOCKS: usize = 64;
/// Features whose factors are multiplied before the logarithm is taken. No factor is far from 1, so that products cannot
/// overflow. Part of the result, since it decides how sums are rounded.
const TOGETHER: usize = 8;

/// Normal densities, `[feature][class]`. Means, precisions and variances are those of scaled values.
#[derive(Debug)]
pub struct Curves<'a> {
    /// The mean of the values.
    pub mean: &'a [f64],
    /// One half divided by the variance.
    pub precision: &'a [f64],
    /// The weight of the values.
    pub n: &'a [f64],
    /// S, the sum of the squared deviations of the values from the mean.
    pub spread: &'a [f64],
    /// The smallest allowed variance, `[feature]`.
    pub floor: &'a [f64],
}

/// What must remain of a sum of squares for the change to be exact.
#[derive(Clone, Copy, Debug)]
pub struct Enough {
    /// This share of the sum of squares.
    pub share: f64,
    /// This many times the floor of the variance.
    pub floors: f64,
}

/// A feature's density in a class without a row of weight w and scaled value z. With d = z - mean, its sum of squares S becomes S
/// (1 - t), t = steep d²; the log density of x falls by d² (bend / (1 - t) - precision) + ½ ln(share (1 - t)).
#[derive(Clone, Copy, Debug)]
struct Left {
    /// The mean with the row.
    mean: f64,
    /// One half divided by the variance with the row.
    precision: f64,
    /// w n / ((n - w) S).
    steep: f64,
    /// ½ n² / ((n - w) S).
    bend: f64,
    /// 2 S precision / (n - w): the variance becomes share (1 - t) times what it was.
    share: f64,
    /// The least 1 - t for which the change is exact; infinite if it never is.
    least: f64,
}

impl Left {
    /// The density of one `cell` of `curves`, a feature and class, without a row of weight `weight` (w). `floor` is the
    /// smallest allowed variance of the feature, and `enough` is what must remain of a sum of squares. `n` is the weight of the
    /// class's values, with the row's, and `spread` the sum S of their squared deviations from the mean. If at most half a row
    /// is left, or all values are equal, no change is exact.
    fn new(curves: &Curves, cell: usize, floor: f64, weight: f64, enough: Enough) -> Self {
        let (n, spread, precision) = (curves.n[cell], curves.spread[cell], curves.precision[cell]);
        let weight_left = n - weight;
        let may_be_exact = weight_left > 0.5 && spread > 0.0;
        Left {
            mean: curves.mean[cell], // with the row
            precision,               // half of 1 / variance, with the row
            // Times the squared deviation of the row's value, the share of S that goes with the row.
            steep: weight * n / (weight_left * spread),
            // The factor of the squared deviation in the log density without the row, before it is divided by the share of S
            // that is left.
            bend: 0.5 * n * n / (weight_left * spread),
            // By how much the variance is multiplied, before it is multiplied by the share of S that is left.
            share: 2.0 * spread * precision / weight_left,
            // The smallest share of S that must be left; infinite if no change is exact.
            least: if may_be_exact {
                enough.share.max(enough.floors * floor * weight_left / spread)
            } else {
                f64::INFINITY
            },
        }
    }
}

/// The change of each row's log density in its own class if the row is left out, summed over its features, `[row]`; NaN where
/// it may be inexact, as `enough` decides. Missing values, NaN, are skipped. `columns` hold the values of all features;
/// `classes` are the classes of rows, numbers below `n_classes`; `weights` are the rows' weights (1 if there are none);
/// `curves` are densities, `[feature][class]`, of values scaled by `scale`: minus the feature's origin, times 1 / unit.
/// Computed on so many threads.
#[allow(clippy::too_many_arguments)]
pub fn one_less(
    columns: &Columns,
    scale: &Scale,
    classes: &[i32],
    n_classes: usize,
    curves: &Curves,
    weights: Option<&[f64]>,
    enough: Enough,
    threads: usize,
) -> Result<Vec<f64>, Error> {
    columns.demand_rows(classes.len())?;
    // Pairs of a feature and a class; none if too many for a number.
    let cells = columns.features().checked_mul(n_classes);
    demand(
        [curves.mean, curves.precision, curves.n, curves.spread]
            .iter()
            .all(|table| Some(table.len()) == cells)
            && curves.floor.len() == columns.features(),
        "curves must be (features, classes), and floor (features,)",
    )?;
    demand(
        classes.iter().all(|&c| c >= 0 && (c as usize) < n_classes),
        "classes must lie between 0 and n_classes - 1",
    )?;
    demand(
        weights.is_none_or(|weights| weights.len() == classes.len()),
        "there must be a weight for each row",
    )?;
    // The density of each cell without a row of weight 1, `[feature][class]`.
    let table: Vec<Left> = (0..cells.unwrap_or(0))
        .map(|cell| Left::new(curves, cell, curves.floor[cell / n_classes], 1.0, enough))
        .collect();
    let mut changes = vec![0.0; classes.len()]; // of the log density, `[row]`
    let threads = threads::worth(threads, classes.len().saturating_mul(columns.features()));
    // `piece` has the changes of piece number i of the rows, which is cut into blocks of `ROWS` rows.
    threads::pieces(threads, &mut changes, BLOCKS * ROWS, |i, piece| {
        for (block_of_piece, changes) in piece.chunks_mut(ROWS).enumerate() {
            let first_row = (i * BLOCKS + block_of_piece) * ROWS;
            let rows = first_row..first_row + changes.len();
            // Per row of the block: the product of factors whose logarithm is still to be taken, and the sum of logarithms so
            // far.
            let mut product = [1.0; ROWS];
            let mut logs = [0.0; ROWS];
            let mut buffer = vec![]; // for a column's values
            // The array that holds a feature's values, and the feature's column there.
            for (feature, block, column) in columns.columns_of(0..columns.features()) {
                // The density of the row's class without the row.
                let without_row = |row: usize| {
                    let cell = feature * n_classes + classes[row] as usize; // of the feature and the row's class
                    weights.map_or(table[cell], |weights| {
                        Left::new(curves, cell, curves.floor[feature], weights[row], enough)
                    })
                };
                let (origin, inverse) = (scale.origin[feature], scale.inverse[feature]); // 1 / unit
                // Of the feature, `[row of block]`.
                let values = block.reals(rows.clone(), column..column + 1, &mut buffer);
                // `at` is the position of the row in the block, and x its value.
                for (at, x) in values.iter().enumerate() {
                    let z = (x - origin) * inverse; // the scaled value
                    if z.is_nan() {
                        continue;
                    }
                    let left = without_row(first_row + at); // the density without this row
                    let squared_gap = (z - left.mean) * (z - left.mean); // d²
                    let rest = 1.0 - squared_gap * left.steep; // 1 - t
                    let is_exact = rest > left.least; // whether enough of the sum of squares remains
                    let change = squared_gap * (left.precision - left.bend / rest); // without the logarithm
                    changes[at] += if is_exact { change } else { f64::NAN };
                    product[at] *= if is_exact { rest * left.share } else { 1.0 };
                }
                if (feature + 1).is_multiple_of(TOGETHER) {
                    take_logs(&mut product, &mut logs, changes.len());
                }
            }
            take_logs(&mut product, &mut logs, changes.len());
            for (change, log) in changes.iter_mut().zip(&logs) {
                *change -= 0.5 * log;
            }
        }
    });
    Ok(changes)
}

/// Adds the logarithm of the product of factors of each of the first `n` rows of a block to the row's sum of logarithms,
/// `logs`, and makes the product 1.
fn take_logs(product: &mut [f64; ROWS], logs: &mut [f64; ROWS], n: usize) {
    for (product, log) in product[..n].iter_mut().zip(logs) {
        *log += product.ln();
        *product = 1.0;
    }
}
