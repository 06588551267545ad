//! Features whose log-likelihoods are in a table: whole numbers, or numbers in cells between cuts.

use super::{STRIDE, Scratch, Sums, room, tiles};
use crate::columns::{Chosen, Columns, above, either, pair};
use crate::error::{Error, Fault, demand};
use crate::leading::Finder;
use ndarray::ArrayView1;
use std::ops::Range;

/// Adds the row of the table that belongs to each value.
#[derive(Debug)]
pub struct LookupTable<'a> {
    pub(super) columns: Columns<'a>,
    rows: RowFinder<'a>,
    /// `[row][class]`.
    table: &'a [f64],
    n_classes: usize,
}

/// How to find the table's row of a value.
#[derive(Debug)]
enum RowFinder<'a> {
    /// Feature f's value x has row `lookups[f][x - low[f]]`, or `outside[f]` where the lookup ends.
    Lookups { low: &'a [i64], lookups: Vec<&'a [u32]>, outside: Vec<u32> },
    /// The rows of feature f begin at `starts[f]`, one for each cell that its finder may find.
    Cells { starts: Vec<u32>, finders: Vec<Finder> },
}

/// The index of the row that adds nothing.
const NOTHING: u32 = u32::MAX;

impl<'a> LookupTable<'a> {
    pub fn new(
        columns: Columns<'a>,
        low: &'a [i64],
        lookups: Vec<&'a [u32]>,
        outside: &[i64],
        table: &'a [f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        columns.demand_whole()?;
        let features = columns.features();
        demand(
            low.len() == features && lookups.len() == features && outside.len() == features,
            "low, lookups and outside must have one entry per feature",
        )?;
        demand(
            n_classes > 0 && table.len().is_multiple_of(n_classes),
            "table must have one column per class",
        )?;
        let rows = table.len() / n_classes;
        demand(rows < NOTHING as usize, "table must have fewer than 2**32 - 1 rows")?;
        for (low, lookup) in low.iter().zip(&lookups) {
            demand(
                low.checked_add_unsigned((lookup.len() as u64).saturating_sub(1)).is_some(),
                "low and the lookup's length must not pass the largest int64",
            )?;
        }
        demand(
            outside.iter().all(|&row| row >= -1 && row < rows as i64),
            "outside must be -1 or a row of table",
        )?;
        let outside = outside.iter().map(|&row| u32::try_from(row).unwrap_or(NOTHING)).collect();
        Ok(LookupTable {
            columns,
            rows: RowFinder::Lookups { low, lookups, outside },
            table,
            n_classes,
        })
    }

    /// A table with a row for every cell between the cuts of each feature; a missing value adds nothing.
    pub fn of_steps(
        columns: Columns<'a>,
        cuts: &[&[f64]],
        table: &'a [f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        demand(cuts.len() == columns.features(), "cuts must have one list per feature")?;
        let mut total = 0;
        let mut starts = vec![];
        for cuts in cuts {
            starts.push(total);
            total += cuts.len() as u32 + 1;
        }
        demand(
            n_classes > 0 && table.len() == total as usize * n_classes,
            "table must have a row for every cell",
        )?;
        let rows = columns.rows().unwrap_or(0);
        let finders = cuts.iter().map(|cuts| Finder::new(cuts, rows)).collect::<Result<_, _>>()?;
        Ok(LookupTable { columns, rows: RowFinder::Cells { starts, finders }, table, n_classes })
    }

    pub(super) fn add(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        for tile in tiles(features) {
            self.fill(tile.clone(), &sums.rows, room(&mut scratch.indices))?;
            add_up(self.table, self.n_classes, tile.len(), sums, &scratch.indices)?;
        }
        Ok(())
    }

    /// Writes the table's row of each value, `[feature][row]`.
    fn fill(&self, features: Range<usize>, rows: &Chosen, tile: &mut [u32]) -> Result<(), Error> {
        let columns = self.columns.each_of(features).zip(tile.chunks_exact_mut(STRIDE));
        for ((feature, block, column), tile) in columns {
            let tile = &mut tile[..rows.len()];
            match &self.rows {
                RowFinder::Lookups { low, lookups, outside } => {
                    let low = low[feature];
                    let mut room = None;
                    let wholes = rows.wholes(block, column, low, &mut room);
                    either!(Wholes::{I64, I32}, wholes, column => {
                        look_up(column, low, lookups[feature], outside[feature], tile);
                    });
                }
                RowFinder::Cells { starts, finders } => {
                    let mut room = None;
                    let values = rows.side_by_side(block, column, &mut room);
                    let infinite = finders[feature].find(values, starts[feature], NOTHING, tile);
                    if let Some(at) = infinite {
                        return Err(self.columns.refused(Fault::Infinite, rows.row(at), feature));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds rows of a table to the sums. `tile` has their numbers, `[feature][row]`.
pub(super) fn add_up(
    table: &[f64],
    n_classes: usize,
    features: usize,
    sums: &mut Sums,
    tile: &[u32],
) -> Result<(), Error> {
    let inside = match n_classes {
        2 => add_rows::<2>(table, features, sums, tile),
        3 => add_rows::<3>(table, features, sums, tile),
        4 => add_rows::<4>(table, features, sums, tile),
        5 => add_rows::<5>(table, features, sums, tile),
        6 => add_rows::<6>(table, features, sums, tile),
        7 => add_rows::<7>(table, features, sums, tile),
        8 => add_rows::<8>(table, features, sums, tile),
        _ => add_any(table, n_classes, features, sums, tile),
    };
    demand(inside, "a lookup must hold rows of table")
}

/// Adds row by row with the sums in registers. Returns whether the table has all rows.
fn add_rows<const CLASSES: usize>(table: &[f64], k: usize, sums: &mut Sums, tile: &[u32]) -> bool {
    let (table, _) = table.as_chunks::<CLASSES>();
    let height = sums.height;
    let mut inside = true;
    for row in 0..sums.rows.len() {
        let mut total = [0.0; CLASSES];
        for (class, total) in total.iter_mut().enumerate() {
            *total = sums.values[class * height + row];
        }
        for &index in tile[row..].iter().step_by(STRIDE).take(k) {
            match table.get(index as usize) {
                Some(logs) => total.iter_mut().zip(logs).for_each(|(total, log)| *total += log),
                None => inside &= index == NOTHING,
            }
        }
        for (class, total) in total.iter().enumerate() {
            sums.values[class * height + row] = *total;
        }
    }
    inside
}

/// [`add_rows`] for any number of classes.
fn add_any(table: &[f64], classes: usize, k: usize, sums: &mut Sums, tile: &[u32]) -> bool {
    let mut inside = true;
    for row in 0..sums.rows.len() {
        for &index in tile[row..].iter().step_by(STRIDE).take(k) {
            let at = (index as usize).saturating_mul(classes);
            match table.get(at..at.saturating_add(classes)) {
                Some(logs) => {
                    for (class, log) in logs.iter().enumerate() {
                        sums.values[class * sums.height + row] += log;
                    }
                }
                None => inside &= index == NOTHING,
            }
        }
    }
    inside
}

/// Writes each value's entry in `lookup`, whose first one belongs to `low`; `outside` for values that have none.
#[inline(always)]
pub(super) fn look_up<T: Copy + Into<i64>>(
    column: ArrayView1<T>,
    low: i64,
    lookup: &[u32],
    outside: u32,
    out: &mut [u32],
) {
    pair(out, column, |out, x| {
        let at = usize::try_from(above(x, low)).unwrap_or(usize::MAX);
        *out = lookup.get(at).copied().unwrap_or(outside);
    });
}
