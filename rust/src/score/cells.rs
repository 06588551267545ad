//! Features whose scores stand in tables by cell: of a column, or of a pair of columns.

use super::table::{add_up, follow, look_up, run};
use super::{ROWS, STRIDE, Scratch, Sums, room, tiles};
use crate::columns::{Chosen, Columns, either};
use crate::error::{Error, demand};
use crate::weighing::Terms;
use std::mem::replace;
use std::ops::Range;

/// How terms find their cells. A column may be in many pairs: the numbers of its codes are looked up once for all of them.
#[derive(Debug)]
pub struct Plan {
    ways: Vec<Way>,
    /// Columns that are in pairs, and the numbers of their codes.
    numbers: Vec<(usize, Vec<u32>)>,
}

#[derive(Debug)]
enum Way {
    /// The codes of a column are its cells, from this one on; or they are looked up.
    Column(Option<u32>),
    /// The cell is the first number times the width, and the second added.
    Pair { numbers: [usize; 2], width: u32 },
}

impl Plan {
    pub fn of(terms: &Terms) -> Plan {
        let mut plan = Plan { ways: vec![], numbers: vec![] };
        for group in terms.groups() {
            let way = match &group.other {
                None => Way::Column(run(&group.first)),
                Some((other, second)) => {
                    let width = second.iter().max().map_or(1, |last| last + 1);
                    let even = group.first.iter().all(|first| first.is_multiple_of(width));
                    let width = if even { width } else { 1 };
                    let first = group.first.iter().map(|first| first / width).collect();
                    let first = plan.number(group.column, first);
                    Way::Pair { numbers: [first, plan.number(*other, second.clone())], width }
                }
            };
            plan.ways.push(way);
        }
        plan
    }

    /// The place of these numbers.
    fn number(&mut self, column: usize, numbers: Vec<u32>) -> usize {
        let new = (column, numbers);
        self.numbers.iter().position(|known| *known == new).unwrap_or_else(|| {
            self.numbers.push(new);
            self.numbers.len() - 1
        })
    }
}

/// Rows have a cell in each column, the last of its term's where they have none of the others.
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
        let (every, n) = (&self.plan.numbers, sums.rows.len());
        let Scratch { indices, codes, .. } = scratch;
        let (found, mut read) = (room(indices), vec![false; every.len()]);
        codes.resize(every.len() * ROWS, 0);
        for tile in tiles(terms) {
            let rows = &sums.rows;
            for (term, found) in tile.clone().zip(found.chunks_exact_mut(STRIDE)) {
                let (start, found) = (self.terms.start(term) as u32, &mut found[..n]);
                match &self.plan.ways[term] {
                    Way::Column(first) => self.find(term, *first, rows, found),
                    Way::Pair { numbers, width } => {
                        for &at in numbers {
                            if !replace(&mut read[at], true) {
                                let (column, numbers) = &every[at];
                                self.look_up(*column, rows, numbers, &mut codes[at * ROWS..][..n]);
                            }
                        }
                        let [a, b] = numbers.map(|at| &codes[at * ROWS..][..n]);
                        for (found, (a, b)) in found.iter_mut().zip(a.iter().zip(b)) {
                            *found = start + a * width + b;
                        }
                    }
                }
            }
            add_up(self.table, self.n_classes, tile.len(), sums, found)?;
        }
        Ok(())
    }

    /// Writes the cells of a column's codes among those of all terms.
    fn find(&self, term: usize, first: Option<u32>, rows: &Chosen, found: &mut [u32]) {
        let (start, group) = (self.terms.start(term) as u32, &self.terms.groups()[term]);
        let Some(first) = first else {
            self.look_up(group.column, rows, &group.first, found);
            return found.iter_mut().for_each(|found| *found += start);
        };
        let ((block, column), n) = (self.columns.at(group.column), group.first.len());
        let (first, last) = (start + first, start + first + n as u32 - 1);
        let mut room = None;
        either!(Wholes::{I64, I32}, rows.wholes(block, column, 0, &mut room), codes => {
            follow(codes, 0, n, first, last, found);
        });
    }

    /// Writes the numbers of a column's codes; codes beyond them have the last.
    fn look_up(&self, column: usize, rows: &Chosen, numbers: &[u32], found: &mut [u32]) {
        let ((block, column), last) = (self.columns.at(column), numbers.last().copied());
        let mut room = None;
        either!(Wholes::{I64, I32}, rows.wholes(block, column, 0, &mut room), codes => {
            look_up(codes, 0, numbers, last.unwrap_or(0), found);
        });
    }
}
