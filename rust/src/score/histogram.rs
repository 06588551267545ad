//! A feature whose log density is constant within bins.

use super::Sums;
use crate::columns::Columns;
use crate::error::{Error, Fault, demand};
use std::f64::consts::LN_2;

/// Bin k is `[start + k * width, start + (k + 1) * width)`, as in [`crate::bins`]; the table begins with bin `first`. Beyond its
/// ends the density halves with every bin.
#[derive(Debug)]
pub struct Histogram<'a> {
    pub(super) columns: Columns<'a>,
    start: f64,
    width: f64,
    first: f64,
    /// Log densities, `[bin][class]`.
    table: &'a [f64],
    n_classes: usize,
}

/// In bins beyond the table, 2^20. Values farther out are treated as if they were here: larger sums would lose the differences
/// between the classes.
const FARTHEST: f64 = 1_048_576.0;

impl<'a> Histogram<'a> {
    /// Bins of a single column, in the units of its numbers: bin k goes from `start + k * width` to below
    /// `start + (k + 1) * width`, and `table` has the log densities of the bins from bin `first` on, `[bin][class]`; beyond them
    /// a density halves with every bin. An error if it has no bin or no row per bin, if `start` or `width` is wrong, or if there
    /// is not exactly one column.
    pub fn new(
        columns: Columns<'a>,
        start: f64,
        width: f64,
        first: i64,
        table: &'a [f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        demand(columns.features() == 1, "a histogram takes one column")?;
        demand(start.is_finite(), "start must be finite")?;
        demand(width.is_finite() && width > 0.0, "width must be a positive number")?;
        demand(
            n_classes > 0 && table.len().is_multiple_of(n_classes) && !table.is_empty(),
            "table must have one column per class and at least one bin",
        )?;
        Ok(Histogram { columns, start, width, first: first as f64, table, n_classes })
    }

    /// Adds the log density of each row's number x to the sums, `[class][row]`; nothing where x is missing, and an infinite x is
    /// an error. Bin k begins at `start + k * width`; `table` has the log densities, `[bin][class]`, from bin `first` on, and
    /// beyond its ends a density halves with every bin.
    pub(super) fn add(&self, sums: &mut Sums) -> Result<(), Error> {
        let last_bin = (self.table.len() / self.n_classes - 1) as f64; // counted from the table's first
        let mut buffer = None; // for values that must be converted
        let (block, column) = self.columns.block_of(0); // the only column's block, and its index there
        for (i, &x) in sums.rows.reals(block, column, &mut buffer).iter().enumerate() {
            if x.is_infinite() {
                return Err(self.columns.bad_value(Fault::Infinite, sums.rows.row(i), 0));
            }
            if !x.is_nan() {
                // Counted from the table's first bin.
                let bin = ((x - self.start) / self.width).floor() - self.first;
                let nearest_bin = bin.clamp(0.0, last_bin);
                // By how much the log density is below that of the nearest bin.
                let fall = (bin - nearest_bin).abs().min(FARTHEST) * LN_2;
                let logs = &self.table[nearest_bin as usize * self.n_classes..];
                sums.of_row_mut(i).zip(logs).for_each(|(sum, log)| *sum += log - fall);
            }
        }
        Ok(())
    }
}
