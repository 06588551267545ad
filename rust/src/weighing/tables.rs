//! Corrections of the cells of tables.

use super::ascent::{Corrected, Task, pass_of_classes};
use super::{Group, Lookups};
use crate::error::{Error, demand};
use std::mem::swap;

/// Cells that are added up side by side: the sum of one need not wait for the one before.
const LANES: usize = 4;

/// Cells that are copied together. Those beyond a group's last level are overwritten by the next group.
const TOGETHER: usize = 8;

/// A group whose maps have cells of all terms, with room for copies that go on beyond the last code.
struct Maps {
    column: usize,
    levels: usize,
    /// Where the group's cells stand among those of a row.
    term: usize,
    first: Vec<u32>,
    other: Option<(usize, Vec<u32>)>,
}

impl Maps {
    fn new(group: &Group, term: usize, starts: &[usize]) -> Self {
        let cells = group.first.iter().zip(starts[..group.levels].iter().cycle());
        let padding = [0; TOGETHER];
        let first = cells.map(|(&cell, &start)| cell + start as u32).chain(padding).collect();
        let other = group.other.as_ref();
        let other = other.map(|(column, map)| (*column, [map, &padding[..]].concat()));
        Maps { column: group.column, levels: group.levels, term, first, other }
    }

    /// Writes a row's cells.
    #[inline(always)]
    fn copy(&self, codes: &[u32], out: &mut [u32]) {
        let of = |column: usize| codes[column] as usize * self.levels;
        let first = &self.first[of(self.column)..];
        let second = self.other.as_ref().map(|(column, map)| &map[of(*column)..]);
        for level in (0..self.levels).step_by(TOGETHER) {
            let out = out[self.term + level..].first_chunk_mut::<TOGETHER>();
            let (Some(out), Some(first)) = (out, first[level..].first_chunk()) else { return };
            *out = *first;
            if let Some(second) = second {
                out.iter_mut()
                    .zip(&second[level..])
                    .for_each(|(out, x)| *out = out.wrapping_add(*x));
            }
        }
    }
}

/// Δ of every cell, and the cells of the row that is visited and of the next one.
struct Table<'a> {
    lookups: &'a Lookups<'a>,
    maps: Vec<Maps>,
    deltas: &'a mut [f64],
    classes: usize,
    variances: Vec<f64>,
    /// A row has one cell of each term, so that what its cells may vary is the same for all rows.
    variance: f64,
    cells: Vec<u32>,
    next: Vec<u32>,
}

impl Table<'_> {
    #[inline(always)]
    fn of(&self, cell: u32) -> &[f64] {
        &self.deltas[cell as usize * self.classes..][..self.classes]
    }
}

impl Corrected for Table<'_> {
    type Number = f64;

    #[inline(always)]
    fn look_up(&mut self, row: usize) {
        let codes = self.lookups.cells.row(row);
        self.maps.iter().for_each(|map| map.copy(codes, &mut self.next));
    }

    #[inline(always)]
    fn sum(&mut self, _row: usize, sums: &mut [f64]) {
        swap(&mut self.cells, &mut self.next);
        if let [sum] = sums {
            let (some, rest) = self.cells[..self.variances.len()].as_chunks::<LANES>();
            let mut lanes = [0.0; LANES];
            for cells in some {
                for (lane, &cell) in lanes.iter_mut().zip(cells) {
                    *lane += self.deltas[cell as usize];
                }
            }
            *sum = lanes.iter().sum::<f64>()
                + rest.iter().map(|&cell| self.deltas[cell as usize]).sum::<f64>();
            return;
        }
        for &cell in &self.cells[..self.variances.len()] {
            sums.iter_mut().zip(self.of(cell)).for_each(|(sum, delta)| *sum += delta);
        }
    }

    #[inline(always)]
    fn own(&self, _row: usize, _class: usize) -> f64 {
        self.variance
    }

    #[inline(always)]
    fn add(&mut self, _row: usize, steps: &[f64]) {
        for (&cell, &variance) in self.cells.iter().zip(&self.variances) {
            let deltas = &mut self.deltas[cell as usize * steps.len()..][..steps.len()];
            deltas.iter_mut().zip(steps).for_each(|(delta, step)| *delta += variance * step);
        }
    }
}

/// Visits rows in this order and improves `mu`, `[row][class]`, and `table`, Δ as `[cell][class]`; answers the mean change of μ.
pub fn ascend(
    lookups: &Lookups,
    task: &Task,
    order: &[u32],
    mu: &mut [f64],
    table: &mut [f64],
) -> Result<f64, Error> {
    task.check(lookups.rows(), order, mu.len())?;
    demand(table.len() == lookups.terms.size() * task.classes, "the table must have all cells")?;
    let (k, terms, variances) = (task.classes, lookups.terms, lookups.terms.variances());
    let groups = terms.groups.iter().zip(&terms.firsts);
    let maps = groups.map(|(group, &term)| Maps::new(group, term, &terms.starts[term..])).collect();
    let mut deltas: Vec<f64> = table.iter().step_by(k / task.followed()).copied().collect();
    let variance = variances.iter().sum();
    let (cells, next) = (vec![0; terms.len() + TOGETHER], vec![0; terms.len() + TOGETHER]);
    let (classes, deltas) = (task.followed(), &mut deltas[..]);
    let mut corrected = Table { lookups, maps, deltas, classes, variances, variance, cells, next };
    let change = pass_of_classes(&mut corrected, task, order, mu);
    match k {
        2 => {
            let (pairs, _) = table.as_chunks_mut::<2>();
            pairs.iter_mut().zip(deltas).for_each(|(pair, delta)| *pair = [*delta, -*delta]);
        }
        _ => table.copy_from_slice(deltas),
    }
    Ok(change)
}
