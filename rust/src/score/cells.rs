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
        demand(table.len() == lookups.size() * n_classes, "the table must have all cells")?;
        demand(lookups.terms() == lookups.groups(), "scores have no levels")?;
        Ok(CellTables { lookups, table, n_classes })
    }

    pub(super) fn add(&self, terms: Range<usize>, sums: &mut Sums) -> Result<(), Error> {
        for at in 0..sums.rows.len() {
            self.lookups.each(terms.clone(), sums.rows.row(at), |_, cell| {
                let says = &self.table[cell * self.n_classes..(cell + 1) * self.n_classes];
                for (class, says) in says.iter().enumerate() {
                    sums.values[class * sums.height + at] += says;
                }
            });
        }
        Ok(())
    }
}
