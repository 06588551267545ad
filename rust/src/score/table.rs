//! Whole-number features whose log-likelihoods stand in a table.

use super::{ROWS, STRIDE, Scratch, Sums, room, tiles};
use crate::columns::{Chosen, Columns, above, either, pair};
use crate::error::{Error, Fault, demand};
use crate::leading::Finder;
use ndarray::ArrayView1;
use std::ops::Range;

/// Feature f's value x has row `lookups[f][x - low[f]]` of the table, or `outside[f]` where the lookup ends; row -1 adds nothing.
#[derive(Debug)]
pub struct LookupTable<'a> {
    pub(super) columns: Columns<'a>,
    rows: RowFinder<'a>,
    /// `[row][class]`.
    table: &'a [f64],
    n_classes: usize,
}

/// Where the table's row of a value is found.
#[derive(Debug)]
enum RowFinder<'a> {
    Looked {
        low: &'a [i64],
        lookups: Vec<&'a [u32]>,
        /// The first row of a feature whose values have rows that follow each other, so that none needs to be looked up.
        runs: Vec<Option<u32>>,
        outside: Vec<u32>,
    },
    /// By cuts: the first row of each feature, and its cells.
    Cut { starts: Vec<u32>, finders: Vec<Finder> },
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
        let many = columns.rows().unwrap_or(0); // rows, beside which lookups are short
        let runs = lookups
            .iter()
            .map(|lookup| if lookup.len() <= many { run(lookup) } else { None })
            .collect();
        Ok(LookupTable {
            columns,
            rows: RowFinder::Looked { low, lookups, runs, outside },
            table,
            n_classes,
        })
    }

    /// Of numbers: a feature has a row for every cell between its cuts; one that is missing adds nothing.
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
        Ok(LookupTable { columns, rows: RowFinder::Cut { starts, finders }, table, n_classes })
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
                RowFinder::Looked { low, lookups, runs, outside } => {
                    let (low, lookup, outside) = (low[feature], lookups[feature], outside[feature]);
                    let mut room = None;
                    let wholes = rows.wholes(block, column, low, &mut room);
                    either!(Wholes::{I64, I32}, wholes, column => match runs[feature] {
                        Some(first) => follow(column, low, lookup.len(), first, outside, tile),
                        None => look_up(column, low, lookup, outside, tile),
                    });
                }
                RowFinder::Cut { starts, finders } => {
                    let mut room = None;
                    let values = rows.side_by_side(block, column, &mut room);
                    let found = finders[feature].find(values, starts[feature], NOTHING, tile);
                    if let Some(at) = found {
                        return Err(self.columns.refused(Fault::Infinite, rows.row(at), feature));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds what a tile of a table's rows, `[feature][row]`, says of each row.
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

/// Adds row by row with the sums in registers; answers whether all rows of the table exist.
fn add_rows<const CLASSES: usize>(table: &[f64], k: usize, sums: &mut Sums, tile: &[u32]) -> bool {
    // Whole blocks have a constant height, which compiles to better code.
    if sums.height == ROWS {
        add_rows_of::<CLASSES>(table, ROWS, k, sums, tile)
    } else {
        add_rows_of::<CLASSES>(table, sums.height, k, sums, tile)
    }
}

#[inline(always)]
fn add_rows_of<const CLASSES: usize>(
    table: &[f64],
    height: usize,
    k: usize,
    sums: &mut Sums,
    tile: &[u32],
) -> bool {
    let (table, _) = table.as_chunks::<CLASSES>();
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

#[inline(always)]
pub(super) fn look_up<T: Copy + Into<i64>>(
    column: ArrayView1<T>,
    low: i64,
    lookup: &[u32],
    outside: u32,
    out: &mut [u32],
) {
    let find = |x: T| {
        let k = usize::try_from(above(x, low)).unwrap_or(usize::MAX);
        lookup.get(k).copied().unwrap_or(outside)
    };
    pair(out, column, |out, x| *out = find(x));
}

/// The first of rows that follow each other.
pub(super) fn run(lookup: &[u32]) -> Option<u32> {
    let first = *lookup.first()?;
    let last = first.checked_add(u32::try_from(lookup.len()).ok()?)?;
    (last != NOTHING && lookup.iter().copied().eq(first..last)).then_some(first)
}

#[inline(always)]
pub(super) fn follow<T: Copy + Into<i64>>(
    column: ArrayView1<T>,
    low: i64,
    n: usize,
    first: u32,
    outside: u32,
    out: &mut [u32],
) {
    pair(out, column, |out, x| {
        let k = above(x, low);
        *out = if k < n as u64 { first.wrapping_add(k as u32) } else { outside };
    });
}
