//! Corrections of the cells of tables.

use super::Lookups;
use super::ascent::{Corrected, Task, pass_of_classes};
use crate::error::{Error, demand};
use std::mem::swap;

/// Δ of every cell, and the cells of the row that is visited and of the next one.
struct Table<'a> {
    lookups: &'a Lookups<'a>,
    deltas: &'a mut [f64],
    variances: Vec<f64>,
    /// A row has one cell of each term, so that what its cells may vary is the same for all rows.
    variance: f64,
    cells: Vec<u32>,
    next: Vec<u32>,
}

impl Corrected for Table<'_> {
    type Number = f64;

    #[inline(always)]
    fn look_up(&mut self, row: usize) {
        let (next, groups) = (&mut self.next[..], 0..self.lookups.terms.groups.len());
        self.lookups.each(groups, row, |term, cell| next[term] = cell as u32);
    }

    #[inline(always)]
    fn sum(&mut self, _row: usize, sums: &mut [f64]) {
        swap(&mut self.cells, &mut self.next);
        for &cell in &self.cells {
            let deltas = &self.deltas[cell as usize * sums.len()..][..sums.len()];
            sums.iter_mut().zip(deltas).for_each(|(sum, delta)| *sum += delta);
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
    let mut deltas: Vec<f64> = table.iter().step_by(k / task.followed()).copied().collect();
    let variance = variances.iter().sum();
    let (cells, next) = (vec![0; terms.len()], vec![0; terms.len()]);
    let deltas = &mut deltas[..];
    let mut corrected = Table { lookups, deltas, variances, variance, cells, next };
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
