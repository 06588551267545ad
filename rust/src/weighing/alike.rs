//! Corrections of wide tables. If there are more terms than rows, the core computes once how many cells any two rows share. The
//! corrections of a row are then a sum over rows, and cells are computed only at the end.

use super::ascent::{Corrections, TrainingRows, pass_of_many, pass_of_two};
use super::{Group, Lookups, check_labels};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::threads;

/// Terms that are compared at a time, a byte each if they have at most 256 cells.
const BLOCK: usize = 2048;
/// Rows that a thread compares with all rows before them. To weigh 1,000 rows of 16 columns took 51 ms, 58 with blocks of 512 terms
/// and 4 rows, and 65 with 8,192 and 64.
const ROWS: usize = 16;
/// Bytes of 0 or 1 that are added up in one byte, at most 255.
const BYTES: usize = 128;

/// Returns Σ s² over the terms in which two rows have the same cell, `[row][row]`; s² is how much a term's cells may vary.
/// `lookups` has the rows and the terms, in each of which a row has one cell.
pub fn alike(lookups: &Lookups, threads: usize) -> Vec<f64> {
    let n_rows = lookups.rows();
    let variances = lookups.terms.variances(); // s² of each term
    let starts = &lookups.terms.starts; // the first cell of each term
    let mut shared = vec![0.0; n_rows * n_rows];
    let mut order: Vec<usize> = (0..variances.len()).collect(); // of the terms
    // Whether a byte can tell the cells of a term apart.
    let is_narrow = |&term: &usize| starts[term + 1] - starts[term] <= 256;
    // Terms with equal keys are compared together.
    let key = |term: &usize| (is_narrow(term), variances[*term]);
    order.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(a.cmp(b)));
    let equal_keys = order.chunk_by(|a, b| key(a) == key(b));
    for terms in equal_keys.flat_map(|terms| terms.chunks(BLOCK)) {
        let (is_narrow, variance) = key(&terms[0]);
        if is_narrow {
            add::<u8>(lookups, terms, variance, &mut shared, threads, |cell| cell as u8);
        } else {
            add::<u32>(lookups, terms, variance, &mut shared, threads, |cell| cell);
        }
    }
    for i in 0..n_rows {
        for j in 0..i {
            shared[j * n_rows + i] = shared[i * n_rows + j];
        }
    }
    shared
}

/// Adds `variance`, s², to `shared`, `[row][row]`, for each of these terms (indices) in which a row and one before it have the
/// same cell. All the terms have this variance. `lookups` has the rows and the cell of each in every term; `shorten` makes a
/// cell, counted from the term's first, a number that is quick to compare. A column or pair has a term for each level, from
/// coarse cells to fine ones.
fn add<T: Copy + Default + Eq + Send + Sync>(
    lookups: &Lookups,
    terms: &[usize],
    variance: f64,
    shared: &mut [f64],
    threads: usize,
    shorten: impl Fn(u32) -> T + Sync,
) {
    let (n_rows, width) = (lookups.rows(), terms.len()); // `width` terms
    let mut cells = vec![T::default(); n_rows * width]; // [row][term]
    // The column or pair of each term, and its level there.
    let groups: Vec<(&Group, usize)> = terms.iter().map(|&term| lookups.terms.term(term)).collect();
    // Each piece has the cells of [`ROWS`] rows.
    threads::pieces(threads, &mut cells, ROWS * width, |piece, cells| {
        for (row, cells) in (piece * ROWS..).zip(cells.chunks_exact_mut(width)) {
            let codes = lookups.cells.row(row); // [column]
            for (cell, (group, level)) in cells.iter_mut().zip(&groups) {
                *cell = shorten(group.cell(*level, codes));
            }
        }
    });
    let cells = &cells[..];
    threads::pieces(threads, shared, ROWS * n_rows, |piece, shared| {
        wide!(compare(cells, width, piece * ROWS, shared, variance));
    });
}

/// Adds `variance`, the s² of each term, to `shared`, `[row from first_row on][row]`, for each term in which a row, from
/// `first_row` on, and one up to it have the same cell. `cells`, `[row][term]` with `width` terms, has those of all rows.
#[inline(always)]
fn compare<T: Copy + Eq>(
    cells: &[T],
    width: usize,
    first_row: usize,
    shared: &mut [f64],
    variance: f64,
) {
    let n_rows = cells.len() / width;
    for (row, shared) in (first_row..).zip(shared.chunks_exact_mut(n_rows)) {
        let row_cells = &cells[row * width..(row + 1) * width];
        for (sum, earlier_cells) in shared[..=row].iter_mut().zip(cells.chunks_exact(width)) {
            *sum += variance * f64::from(count_equal(row_cells, earlier_cells));
        }
    }
}

/// Counts the places at which `a` and `b`, the cells of two rows, `[term]`, are equal.
#[inline(always)]
fn count_equal<T: Copy + Eq>(a: &[T], b: &[T]) -> u32 {
    // The compiler turns sums of bytes into vector instructions.
    // Chunks are so short that a byte holds the number of equal cells.
    let pairs_of_chunks = a.chunks(BYTES).zip(b.chunks(BYTES));
    pairs_of_chunks
        .map(|(a, b)| u32::from(a.iter().zip(b).map(|(a, b)| u8::from(a == b)).sum::<u8>()))
        .sum()
}

/// Corrections as the surprise of rows, C (y − μ).
struct Surprise<'a> {
    /// Σ s² over the cells that two rows share, `[row][row]`.
    alike: &'a [f64],
    n_rows: usize,
    /// `[stored class][row]`.
    surprise: Vec<f64>,
}

impl Corrections for Surprise<'_> {
    type Number = f64;

    /// Adds the corrections of the cells of row number `row` to `sums`, `[stored class]`: Σ over all rows of the s² of the cells
    /// that both share, `alike`, `[row][row]`, times that row's surprise C (y − μ), `[stored class][row]`.
    #[inline(always)]
    fn sum(&self, row: usize, _place: usize, sums: &mut [f64]) {
        let shared = &self.alike[row * self.n_rows..(row + 1) * self.n_rows]; // s² shared with every row
        for (sum, surprise) in sums.iter_mut().zip(self.surprise.chunks_exact(self.n_rows)) {
            *sum += dot(shared, surprise);
        }
    }

    /// Σ s² over the cells of row number `row`: what it shares with itself in `alike`, `[row][row]`. It is the same for all
    /// classes.
    #[inline(always)]
    fn variance(&self, row: usize, _class: usize) -> f64 {
        self.alike[row * self.n_rows + row]
    }

    /// Adds `steps`, C (μ before − μ after), `[stored class]`, to the surprise C (y − μ) of row number `row`; all surprises are
    /// `[stored class][row]`. C is the strength of corrections, y is 1 for the class of the row and 0 for the others, μ the
    /// probability of the class; of two classes, only one is stored. The place of the row in the order does not matter here.
    #[inline(always)]
    fn add(&mut self, row: usize, _place: usize, steps: &[f64]) {
        let surprises = self.surprise[row..].iter_mut().step_by(self.n_rows);
        surprises.zip(steps).for_each(|(surprise, step)| *surprise += step);
    }
}

/// Visits rows in `order`, their numbers. Improves `mu`, the probabilities of classes, `[row][class]`, and returns the mean
/// change of μ per row: its absolute changes, summed over classes. `alike` has Σ s² over the cells that two rows share,
/// `[row][row]`; `labels` has the class of each row, and `rows` C times its weight and its scores before corrections,
/// `[row][class]`.
pub fn ascend(
    alike: &[f64],
    labels: &[i32],
    rows: &TrainingRows,
    order: &[u32],
    mu: &mut [f64],
) -> Result<f64, Error> {
    let (n_rows, n_classes) = (labels.len(), rows.classes);
    rows.check(n_rows, order, mu.len())?;
    check_labels(labels, n_classes)?;
    demand(alike.len() == n_rows.pow(2), "alike must be rows × rows")?;
    let rows_by_class =
        (0..rows.stored_classes()).flat_map(|class| (0..n_rows).map(move |row| (row, class)));
    // C (y − μ), `[stored class][row]`.
    let surprise = rows_by_class.map(|(row, class)| {
        // 1 for the class of the row.
        let truth = f64::from(u8::from(labels[row] as usize == class));
        rows.strengths[row] * (truth - mu[row * n_classes + class])
    });
    let mut corrections = Surprise { alike, n_rows, surprise: surprise.collect() };
    Ok(wide!(match n_classes {
        2 => pass_of_two(&mut corrections, rows, order, mu),
        _ => pass_of_many(&mut corrections, rows, order, mu),
    }))
}

/// Returns the scalar product of two vectors of one length, added up as eight sums side by side, so that its bits do not depend
/// on the machine.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Chunks of eight numbers, and the last fewer than eight.
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// Returns the corrections of the cells of all terms, s² Σ surprise over the rows that have the cell, `[cell][class]`, from the
/// surprise of rows, C (y − μ), `[row][class]`. `lookups` has the rows and the cell of each in every term.
pub fn spread(lookups: &Lookups, surprise: &[f64]) -> Result<Vec<f64>, Error> {
    let (n_rows, variances) = (lookups.rows(), lookups.terms.variances()); // s² of each term
    demand(n_rows > 0 && surprise.len().is_multiple_of(n_rows), "each row must have classes")?;
    let n_classes = surprise.len() / n_rows;
    let mut table = vec![0.0; lookups.terms.size() * n_classes]; // the corrections
    let mut cells = vec![]; // of a row, [term], counted from the first cell of all terms
    for (row, row_surprise) in (0..).zip(surprise.chunks_exact(n_classes.max(1))) {
        lookups.look_up(0..lookups.terms.groups.len(), &[row], &mut cells);
        for (&cell, variance) in cells.iter().zip(&variances) {
            let deltas = table[cell as usize * n_classes..].iter_mut().zip(row_surprise);
            deltas.for_each(|(delta, surprise)| *delta += variance * surprise);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::super::{Cells, Terms, tables};
    use super::*;

    /// Passes over cells and over pairs of rows learn the same corrections.
    #[test]
    fn pairs_of_rows_agree_with_cells() {
        let (n, width, sizes) = (37, 3, [3, 400, 5]);
        // Codes, `[row][column]`; columns have 3, 400 and 5 codes. The second column has two levels, of 14 and of 400 cells.
        let codes: Vec<u32> =
            (0..n * width).map(|i| (i * i * 7 + i / 3) as u32 % sizes[i % width]).collect();
        let halves = (0..sizes[1]).flat_map(|code| [code / 30, code]).collect();
        let group = |(column, first, levels)| Group { column, levels, first, other: None };
        let groups = [(0, (0..3).collect(), 1), (1, halves, 2), (2, (0..5).collect(), 1)];
        let terms = Terms::new(groups.map(group).to_vec(), &[3, 14, 400, 5]).unwrap();
        let lookups = terms.of(Cells::new(&codes, width).unwrap()).unwrap();
        let variances = [1.0, 0.5, 0.5, 1.0];
        assert_eq!(terms.variances(), variances);
        let shared = alike(&lookups, 1);
        assert_eq!(shared, alike(&lookups, 3));
        for (i, j) in (0..n * n).map(|at| (at / n, at % n)) {
            // The cells of both rows, in the four terms of three groups.
            let mut cells = vec![];
            lookups.look_up(0..3, &[i as u32, j as u32], &mut cells);
            let same = |t: &usize| cells[*t] == cells[4 + *t];
            let expected: f64 = (0..4).filter(same).map(|t| variances[t]).sum();
            assert_eq!(shared[i * n + j], expected);
        }
        for k in [2, 3] {
            let labels: Vec<i32> = (0..n).map(|row| (row * row) as i32 % k as i32).collect();
            let strengths: Vec<f64> = (0..n).map(|row| 0.1 * (row % 4) as f64).collect();
            let offsets: Vec<f64> = (0..n * k).map(|i| (i % 7) as f64 / 5.0).collect();
            let rows = TrainingRows { strengths: &strengths, offsets: &offsets, classes: k };
            // 1 for the class of a row, by place in `[row][class]`.
            let truth = |i: usize| f64::from(u8::from(labels[i / k] as usize == i % k));
            let mut mu: Vec<f64> = (0..n * k).map(truth).collect();
            let (mut other_mu, mut table) = (mu.clone(), vec![0.0; lookups.terms.size() * k]);
            let order: Vec<u32> = (0..n as u32).rev().collect();
            for _ in 0..3 {
                let change_by_pairs = ascend(&shared, &labels, &rows, &order, &mut mu).unwrap();
                let change_by_cells =
                    tables::ascend(&lookups, &rows, &order, &mut other_mu, &mut table).unwrap();
                assert!((change_by_pairs - change_by_cells).abs() < 1e-9);
            }
            assert!(mu.iter().zip(&other_mu).all(|(a, b)| (a - b).abs() < 1e-9));
            let surprise: Vec<f64> =
                (0..n * k).map(|i| strengths[i / k] * (truth(i) - mu[i])).collect();
            let spread_table = spread(&lookups, &surprise).unwrap();
            assert!(spread_table.iter().zip(&table).all(|(a, b)| (a - b).abs() < 1e-9));
            assert!(ascend(&shared[1..], &labels, &rows, &order, &mut mu).is_err());
        }
        assert!(spread(&lookups, &[1.0]).is_err());
    }
}
