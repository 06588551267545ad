//! Features whose scores stand in tables by cell: of a column, or of a pair of columns.

use super::Sums;
use crate::error::{Error, demand};
use crate::weighing::Lookups;
use std::ops::Range;

#[derive(Debug)]
pub struct CellTables<'a> {
    pub(super) lookups: Lookups<'a>,
    /// `[cell][class]`, term after term.
    table: &'a [f64],
    n_classes: usize,
}

impl<'a> CellTables<'a> {
    pub fn new(lookups: Lookups<'a>, table: &'a [f64], n_classes: usize) -> Result<Self, Error> {
        demand(table.len() == lookups.terms.size() * n_classes, "the table must have all cells")?;
        demand(lookups.terms.len() == lookups.terms.groups().len(), "scores have no levels")?;
        Ok(CellTables { lookups, table, n_classes })
    }

    pub(super) fn add(&self, terms: Range<usize>, sums: &mut Sums) -> Result<(), Error> {
        let (k, height, rows) = (self.n_classes, sums.height, &sums.rows);
        for term in terms {
            let rows = (0..rows.len()).map(|at| rows.row(at));
            if let (2, Some((low, high))) = (k, sums.values.split_at_mut_checked(height)) {
                self.lookups.each_row(term, rows, |at, cell| {
                    low[at] += self.table[2 * cell];
                    high[at] += self.table[2 * cell + 1];
                });
                continue;
            }
            self.lookups.each_row(term, rows, |at, cell| {
                for (class, says) in self.table[cell * k..(cell + 1) * k].iter().enumerate() {
                    sums.values[class * height + at] += says;
                }
            });
        }
        Ok(())
    }
}
