//! Features whose scores are in tables by cell, of one column or of a pair of columns.

use super::table::{add_table_rows, look_up};
use super::{ROWS, STRIDE, Scratch, Sums, allocate_tile, tiles};
use crate::columns::{Columns, RowSelection};
use crate::error::{Error, demand};
use crate::weighing::Terms;
use std::ops::Range;

/// How each term finds its cells. A column may be in many pairs: the numbers of its codes are looked up once for all of them.
#[derive(Debug)]
pub struct Plan {
    /// One for each term.
    finders: Vec<CellFinder>,
    /// Lookups that pairs use.
    lookups: Vec<Lookup>,
}

/// A number for each code of a column, by which pairs find their cells.
#[derive(Debug, PartialEq)]
struct Lookup {
    column: usize,
    /// By code.
    numbers: Vec<u32>,
}

/// How a term finds the cell of a row, counted from the term's first cell.
#[derive(Debug)]
enum CellFinder {
    /// The group's own lookup has the cell of each code.
    Column,
    /// The cell is the number from the first lookup times the width, plus that from the second one. Lookups are indices into
    /// those of the plan.
    Pair { lookups: [usize; 2], width: u32 },
}

impl Plan {
    /// The plan by which rows find their cells in these terms: one for each column or pair of columns, which has a single level.
    pub fn of(terms: &Terms) -> Plan {
        // How each term finds a row's cell, [term]; and the lookups of columns that pairs share.
        let mut plan = Plan { finders: vec![], lookups: vec![] };
        // A group is a column or a pair of columns; `first` and `second`, [code], are what the code of a row in the first and in
        // the other column adds to the number of the row's cell.
        for group in terms.groups() {
            let finder = match &group.other {
                None => CellFinder::Column,
                Some((other, second)) => {
                    // How many cells there are for each code of the first column.
                    let n_second = second.iter().max().map_or(1, |last| last + 1);
                    // A cell is the sum of what both codes add. If what the first one adds are multiples of `n_second`, it
                    // is divided by that, so that pairs can share the lookup.
                    let are_multiples =
                        group.first.iter().all(|first| first.is_multiple_of(n_second));
                    let width = if are_multiples { n_second } else { 1 }; // by which what the first code adds is divided
                    let first_numbers = group.first.iter().map(|first| first / width).collect();
                    let first_lookup = plan.share_lookup(group.column, first_numbers);
                    let second_lookup = plan.share_lookup(*other, second.clone());
                    CellFinder::Pair { lookups: [first_lookup, second_lookup], width }
                }
            };
            plan.finders.push(finder);
        }
        plan
    }

    /// The index in `self.lookups` of the lookup of a column (its index) that has these `numbers`, `[code]`: what a code adds to
    /// the number of a row's cell, perhaps divided by a number of cells. The lookup is added if it is new.
    fn share_lookup(&mut self, column: usize, numbers: Vec<u32>) -> usize {
        let lookup = Lookup { column, numbers };
        self.lookups.iter().position(|earlier| *earlier == lookup).unwrap_or_else(|| {
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
    /// How the columns' codes are turned into cells: the lookups that terms share.
    plan: &'a Plan,
    /// `[cell][class]`, term after term.
    table: &'a [f64],
    n_classes: usize,
}

impl<'a> CellTables<'a> {
    /// Joins columns of codes, terms in each of which a row has a cell, and `table`, the scores that cells add, `[cell][class]`,
    /// term after term. An error if it has another length, or terms have several levels or columns that do not exist.
    pub fn new(
        columns: Columns<'a>,
        (terms, plan): (&'a Terms, &'a Plan), // `plan` is how these terms find cells
        table: &'a [f64],
        n_classes: usize,
    ) -> Result<Self, Error> {
        columns.demand_whole()?;
        demand(table.len() == terms.size() * n_classes, "the table must have all cells")?;
        demand(terms.len() == terms.groups().len(), "scores have no levels")?;
        // The indices of the columns that terms use, one or two for each.
        let used_columns = terms.groups().iter().flat_map(|group| {
            [group.column].into_iter().chain(group.other.as_ref().map(|(column, _)| *column))
        });
        let are_there = used_columns.max().is_none_or(|last| last < columns.features());
        demand(are_there, "a term must have a column")?;
        Ok(CellTables { columns, terms, plan, table, n_classes })
    }

    /// Adds the scores of each row's cells in these terms (a range of their indices) to the sums, `[class][row]`. `scratch` has
    /// buffers whose contents have no meaning: a tile, and the numbers that lookups have for the rows' codes.
    pub(super) fn add(
        &self,
        terms: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let (lookups, n_rows) = (&self.plan.lookups, sums.rows.len());
        let Scratch { indices, codes, .. } = scratch;
        let cell_tile = allocate_tile(indices); // the cell of each row in each term, [term][row]
        // Which lookups have their numbers of this block's rows in `codes`, [lookup][row].
        let mut is_read = vec![false; lookups.len()];
        codes.resize(lookups.len() * ROWS, 0);
        for tile in tiles(terms) {
            for (term, cells) in tile.clone().zip(cell_tile.chunks_exact_mut(STRIDE)) {
                let start = self.terms.start(term) as u32; // the term's first cell in the table
                let cells = &mut cells[..n_rows];
                match &self.plan.finders[term] {
                    CellFinder::Column => {
                        let group = &self.terms.groups()[term];
                        self.look_up(group.column, &group.first, &sums.rows, cells);
                        cells.iter_mut().for_each(|cell| *cell += start);
                    }
                    CellFinder::Pair { lookups: pair, width } => {
                        for &index in pair {
                            if !is_read[index] {
                                let Lookup { column, numbers } = &lookups[index];
                                let codes = &mut codes[index * ROWS..][..n_rows];
                                self.look_up(*column, numbers, &sums.rows, codes);
                                is_read[index] = true;
                            }
                        }
                        // The numbers that both lookups have for the code of each row: the first, times the width, and the
                        // second add up to the row's cell, counted from the term's first.
                        let [first, second] = pair.map(|index| &codes[index * ROWS..][..n_rows]);
                        let rows = cells.iter_mut().zip(first).zip(second);
                        rows.for_each(|((cell, a), b)| *cell = start + a * width + b);
                    }
                }
            }
            add_table_rows(self.table, self.n_classes, tile.len(), sums, cell_tile)?;
        }
        Ok(())
    }

    /// Writes to `out`, `[row]`, the entry in `numbers`, `[code]`, for the code of each of these rows in column number `column`;
    /// codes beyond `numbers` have the last one.
    fn look_up(&self, column: usize, numbers: &[u32], rows: &RowSelection, out: &mut [u32]) {
        // The block of columns that holds it, and its index there.
        let (block, column) = self.columns.block_of(column);
        let last = numbers.last().copied().unwrap_or(0);
        let (low, mut buffer) = (0, None); // codes begin at 0; the buffer is for codes that must be converted
        look_up(rows.integers(block, column, low, &mut buffer), low, numbers, last, out);
    }
}
