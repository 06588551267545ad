//! Corrections of the cells of tables.

use super::Lookups;
use super::ascent::{Corrections, TrainingRows, pass_of_many, pass_of_two};
use crate::error::{Error, demand};

/// The corrections of cells while rows are visited. `K` is the number of stored classes; 0: any number.
struct CellCorrections<'a, const K: usize> {
    lookups: &'a Lookups<'a>,
    /// Δ of every cell, `[cell][stored class]`.
    deltas: Vec<f64>,
    /// How many classes are stored.
    classes: usize,
    /// s² of each term.
    variances: Vec<f64>,
    /// Σ s² over the cells of a row, which is the same for all rows: each has one cell of every term.
    row_variance: f64,
    /// The cells of the rows looked up, `[place in the block][term]`, counted from the first cell of all terms.
    cells: Vec<u32>,
}

impl<'a, const K: usize> CellCorrections<'a, K> {
    /// Corrections of the cells of all terms that begin with `deltas`, `[cell][stored class]`; `classes` is how many classes are
    /// stored. `lookups` has the rows and the cell of each in every term.
    fn new(lookups: &'a Lookups, deltas: Vec<f64>, classes: usize) -> Self {
        let variances = lookups.terms.variances(); // s² of each term
        // Σ s² over the cells of a row.
        let row_variance = variances.iter().sum();
        CellCorrections { lookups, deltas, classes, variances, row_variance, cells: vec![] }
    }

    /// How many classes are stored.
    #[inline(always)]
    fn classes(&self) -> usize {
        if K > 0 { K } else { self.classes }
    }

    /// The cells of the row at this place in the block of rows looked up last, `[term]`, counted from the first cell of all
    /// terms. The cells of all its rows are in `cells`, `[place][term]`.
    #[inline(always)]
    fn cells(&self, place: usize) -> &[u32] {
        let terms = self.variances.len();
        &self.cells[place * terms..(place + 1) * terms]
    }
}

impl<const K: usize> Corrections for CellCorrections<'_, K> {
    type Number = f64;

    /// How many rows are looked up at a time, so that their cells stay in the cache.
    fn rows_at_a_time(&self) -> usize {
        self.lookups.rows_at_a_time()
    }

    /// Looks up the cells of these rows (their numbers), a block, in all groups (columns and pairs of columns) of terms, and
    /// writes them to `cells`, `[place in the block][term]`.
    #[inline(always)]
    fn look_up(&mut self, rows: &[u32]) {
        let groups = 0..self.lookups.terms.groups.len();
        self.lookups.look_up(groups, rows, &mut self.cells);
    }

    /// Adds the corrections of the cells of the row at this place in the block of rows looked up last to `sums`,
    /// `[stored class]`. `deltas` has the correction of every cell, `[cell][stored class]`.
    #[inline(always)]
    fn sum(&self, _row: usize, place: usize, sums: &mut [f64]) {
        if K == 1 {
            sums[0] = sum_at(&self.deltas, self.cells(place));
            return;
        }
        let n_classes = self.classes();
        for &cell in self.cells(place) {
            let deltas = &self.deltas[cell as usize * n_classes..][..n_classes];
            sums.iter_mut().zip(deltas).for_each(|(sum, delta)| *sum += delta);
        }
    }

    /// Σ s² over the cells of any row.
    #[inline(always)]
    fn variance(&self, _row: usize, _class: usize) -> f64 {
        self.row_variance
    }

    /// Adds s² times `steps`, C (μ before − μ after), `[stored class]`, to the corrections of the cells of the row at this place
    /// in the block of rows looked up last. `variances` are the s² of terms, how much their cells may vary; `deltas` has the
    /// correction of every cell, `[cell][stored class]`, and `cells` the cells of the block's rows, `[place][term]`.
    #[inline(always)]
    fn add(&mut self, _row: usize, place: usize, steps: &[f64]) {
        let n_classes = self.classes();
        let terms = self.variances.len();
        let cells = &self.cells[place * terms..(place + 1) * terms]; // of the row, [term]
        for (&cell, &variance) in cells.iter().zip(&self.variances) {
            let deltas = &mut self.deltas[cell as usize * n_classes..][..n_classes];
            deltas.iter_mut().zip(steps).for_each(|(delta, step)| *delta += variance * step);
        }
    }
}

/// The sum of the numbers at these places (indices), in four sums side by side: an addition does not wait for the one before it.
#[inline(always)]
fn sum_at(numbers: &[f64], places: &[u32]) -> f64 {
    let (fours, last_places) = places.as_chunks::<4>(); // four places each, and up to three more
    let mut sums = [0.0; 4];
    for four in fours {
        for lane in 0..4 {
            sums[lane] += numbers[four[lane] as usize];
        }
    }
    for (sum, &place) in sums.iter_mut().zip(last_places) {
        *sum += numbers[place as usize];
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// Visits rows in `order`, their numbers. Improves `mu`, the probabilities of classes, `[row][class]`, and the corrections of
/// cells in `table`, `[cell][class]`, and returns the mean change of μ per row: its absolute changes, summed over classes.
/// `lookups` has the cell of each row in every term; `rows` has C times the weight of each row, and its scores before
/// corrections, `[row][class]`.
pub fn ascend(
    lookups: &Lookups,
    rows: &TrainingRows,
    order: &[u32],
    mu: &mut [f64],
    table: &mut [f64],
) -> Result<f64, Error> {
    rows.check(lookups.rows(), order, mu.len())?;
    demand(table.len() == lookups.terms.size() * rows.classes, "the table must have all cells")?;
    if rows.classes != 2 {
        let mut corrections = CellCorrections::<0>::new(lookups, table.to_vec(), rows.classes);
        let change = pass_of_many(&mut corrections, rows, order, mu);
        table.copy_from_slice(&corrections.deltas);
        return Ok(change);
    }
    // Those of the second class are the opposites of those of the first.
    let deltas = table.iter().step_by(2).copied().collect(); // of the first class, [cell]
    let mut corrections = CellCorrections::<1>::new(lookups, deltas, rows.stored_classes());
    let change = pass_of_two(&mut corrections, rows, order, mu);
    // The corrections of both classes in each cell.
    let (pairs, _) = table.as_chunks_mut::<2>();
    pairs.iter_mut().zip(corrections.deltas).for_each(|(pair, delta)| *pair = [delta, -delta]);
    Ok(change)
}
