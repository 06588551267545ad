//! Features whose scores are in tables by cell, of one column or of a pair of columns.

use super::table::{add_up, look_up};
use super::{ROWS, STRIDE, Scratch, Sums, room, tiles};
use crate::columns::{Chosen, Columns, either};
use crate::error::{Error, demand};
use crate::weighing::Terms;
use std::mem::replace;
use std::ops::Range;

/// How each term finds its cells. A column may be in many pairs: the numbers of its codes are looked up once for all of them.
#[derive(Debug)]
pub struct Plan {
    ways: Vec<Way>,
    /// Lookups that pairs use: a column, and a number for each of its codes.
    lookups: Vec<(usize, Vec<u32>)>,
}

#[derive(Debug)]
enum Way {
    /// The group's own lookup has the cell of each code.
    Column,
    /// The cell is the number from the first lookup times the width, plus that from the second one.
    Pair { lookups: [usize; 2], width: u32 },
}

impl Plan {
    pub fn of(terms: &Terms) -> Plan {
        let mut plan = Plan { ways: vec![], lookups: vec![] };
        for group in terms.groups() {
            let way = match &group.other {
                None => Way::Column,
                Some((other, second)) => {
                    let width = second.iter().max().map_or(1, |last| last + 1);
                    let even = group.first.iter().all(|first| first.is_multiple_of(width));
                    let width = if even { width } else { 1 };
                    let first = group.first.iter().map(|first| first / width).collect();
                    let first = plan.share_lookup(group.column, first);
                    Way::Pair { lookups: [first, plan.share_lookup(*other, second.clone())], width }
                }
            };
            plan.ways.push(way);
        }
        plan
    }

    /// The place of a lookup among all lookups, to which it is added if it is new.
    fn share_lookup(&mut self, column: usize, numbers: Vec<u32>) -> usize {
        let lookup = (column, numbers);
        self.lookups.iter().position(|known| *known == lookup).unwrap_or_else(|| {
            self.lookups.push(lookup);
            self.lookups.len() - 1
        })
    }
}

/// Adds the scores of each row's cell in every term. A code that a term does not know has the last cell of its lookup.
#[derive(Debug)]
pub struct CellTables<'a> {
    pub(super) columns: Columns<'a>,
    pub(super) terms: &'a Terms,
    plan: &'a Plan,
    /// `[cell][class]`, term after term.
    table: &'a [f64],
    n_classes: usize,
}

impl<'a> CellTables<'a> {
    pub fn new(
        columns: Columns<'a>,
        (terms, plan): (&'a Terms, &'a Plan),
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
        Ok(CellTables { columns, terms, plan, table, n_classes })
    }

    pub(super) fn add(
        &self,
        terms: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let (lookups, n) = (&self.plan.lookups, sums.rows.len());
        let Scratch { indices, codes, .. } = scratch;
        let cell_tile = room(indices);
        let mut is_read = vec![false; lookups.len()];
        codes.resize(lookups.len() * ROWS, 0);
        for tile in tiles(terms) {
            for (term, cells) in tile.clone().zip(cell_tile.chunks_exact_mut(STRIDE)) {
                let (start, cells) = (self.terms.start(term) as u32, &mut cells[..n]);
                match &self.plan.ways[term] {
                    Way::Column => {
                        let group = &self.terms.groups()[term];
                        self.look_up(group.column, &group.first, &sums.rows, cells);
                        cells.iter_mut().for_each(|cell| *cell += start);
                    }
                    Way::Pair { lookups: both, width } => {
                        for &at in both {
                            if !replace(&mut is_read[at], true) {
                                let (column, numbers) = &lookups[at];
                                let codes = &mut codes[at * ROWS..][..n];
                                self.look_up(*column, numbers, &sums.rows, codes);
                            }
                        }
                        let [a, b] = both.map(|at| &codes[at * ROWS..][..n]);
                        for (cell, (a, b)) in cells.iter_mut().zip(a.iter().zip(b)) {
                            *cell = start + a * width + b;
                        }
                    }
                }
            }
            add_up(self.table, self.n_classes, tile.len(), sums, cell_tile)?;
        }
        Ok(())
    }

    /// Writes the number of each row's code in a column; codes beyond `numbers` have the last one.
    fn look_up(&self, column: usize, numbers: &[u32], rows: &Chosen, out: &mut [u32]) {
        let ((block, column), last) = (self.columns.at(column), numbers.last().copied());
        let mut room = None;
        either!(Wholes::{I64, I32}, rows.wholes(block, column, 0, &mut room), codes => {
            look_up(codes, 0, numbers, last.unwrap_or(0), out);
        });
    }
}
