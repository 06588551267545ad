//! Features whose scores stand in tables by cell: of a column, or of a pair of columns.

use super::table::{add_up, look_up};
use super::{ROWS, STRIDE, Scratch, Sums, room, tiles};
use crate::columns::{Chosen, Columns, each_whole};
use crate::error::{Error, demand};
use crate::weighing::Terms;
use std::ops::Range;

/// Rows have a cell in each column, the last of its term's where they have none of the others.
#[derive(Debug)]
pub struct CellTables<'a> {
    pub(super) columns: Columns<'a>,
    pub(super) terms: &'a Terms,
    /// `[cell][class]`, term after term.
    table: &'a [f64],
    n_classes: usize,
}

impl<'a> CellTables<'a> {
    pub fn new(
        columns: Columns<'a>,
        terms: &'a Terms,
        table: &'a [f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        columns.demand_whole()?;
        demand(table.len() == terms.size() * n_classes, "the table must have all cells")?;
        demand(terms.len() == terms.groups().len(), "scores have no levels")?;
        let used = terms.groups().iter().flat_map(|group| {
            [group.column].into_iter().chain(group.other.as_ref().map(|(column, _)| *column))
        });
        let known = used.max().is_none_or(|last| last < columns.features());
        demand(known, "a term must have a column")?;
        Ok(CellTables { columns, terms, table, n_classes })
    }

    pub(super) fn add(
        &self,
        terms: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        for tile in tiles(terms) {
            let found = room(&mut scratch.indices);
            for (term, found) in tile.clone().zip(found.chunks_exact_mut(STRIDE)) {
                self.find(term, &sums.rows, &mut found[..sums.rows.len()]);
            }
            add_up(self.table, self.n_classes, tile.len(), sums, found)?;
        }
        Ok(())
    }

    /// Writes the cell of each row among those of all terms.
    fn find(&self, term: usize, rows: &Chosen, found: &mut [u32]) {
        let (start, group) = (self.terms.start(term) as u32, &self.terms.groups()[term]);
        self.look_up(group.column, rows, &group.first, found);
        if let Some((column, map)) = &group.other {
            let mut more = [0; ROWS];
            self.look_up(*column, rows, map, &mut more[..found.len()]);
            found.iter_mut().zip(more).for_each(|(found, more)| *found += start + more);
        } else {
            found.iter_mut().for_each(|found| *found += start);
        }
    }

    fn look_up(&self, column: usize, rows: &Chosen, map: &[u32], found: &mut [u32]) {
        let (block, column) = self.columns.at(column);
        let outside = map.last().copied().unwrap_or(0);
        each_whole!(block, view => {
            let mut room = None;
            look_up(rows.of(view, column, &mut room), 0, map, outside, found);
        }, ());
    }
}
