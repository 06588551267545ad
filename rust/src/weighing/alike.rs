//! Corrections of wide tables. If there are more terms than rows, the core computes once how many cells any two rows share. The
//! corrections of a row are then a sum over rows, and cells are computed only at the end.

use super::ascent::{Corrections, TrainingRows, pass_of_many, pass_of_two};
use super::{Group, Lookups, check_labels};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::threads;

/// Terms that are compared at a time, a byte each if they have at most 256 cells.
const BLOCK: usize = 2048;
/// Rows that a thread compares with all rows before them.
const ROWS: usize = 16;
/// Bytes of 0 or 1 that are added up in one byte.
const BYTES: usize = 128;

/// Returns Σ s² over the terms in which two rows have the same cell, `[row][row]`.
pub fn alike(lookups: &Lookups, threads: usize) -> Vec<f64> {
    let (n_rows, variances, starts) =
        (lookups.rows(), lookups.terms.variances(), &lookups.terms.starts);
    let mut out = vec![0.0; n_rows * n_rows];
    let mut order: Vec<usize> = (0..variances.len()).collect();
    // Whether a byte can tell the cells of a term apart.
    let narrow = |&term: &usize| starts[term + 1] - starts[term] <= 256;
    order.sort_by(|a, b| {
        (narrow(b), variances[*b]).partial_cmp(&(narrow(a), variances[*a])).unwrap_or(a.cmp(b))
    });
    let are_alike = |a: &usize, b: &usize| narrow(a) == narrow(b) && variances[*a] == variances[*b];
    for terms in order.chunk_by(are_alike).flat_map(|same| same.chunks(BLOCK)) {
        if narrow(&terms[0]) {
            add::<u8>(lookups, terms, variances[terms[0]], &mut out, threads, |cell| cell as u8);
        } else {
            add::<u32>(lookups, terms, variances[terms[0]], &mut out, threads, |cell| cell);
        }
    }
    for i in 0..n_rows {
        for j in 0..i {
            out[j * n_rows + i] = out[i * n_rows + j];
        }
    }
    out
}

/// Adds `variance`, s², to `out`, `[row][row]`, for each of these terms in which a row and one before it have the same cell. All
/// the terms have this variance. `code` makes a cell, counted from the term's first, a number that is quick to compare.
fn add<T: Copy + Default + Eq + Send + Sync>(
    lookups: &Lookups,
    terms: &[usize],
    variance: f64,
    out: &mut [f64],
    threads: usize,
    code: impl Fn(u32) -> T + Sync,
) {
    let (n_rows, width) = (lookups.rows(), terms.len());
    // `[row][term]`.
    let mut codes = vec![T::default(); n_rows * width];
    let groups: Vec<(&Group, usize)> = terms.iter().map(|&term| lookups.terms.term(term)).collect();
    threads::pieces(threads, &mut codes, ROWS * width, |piece, codes| {
        for (row, codes) in (piece * ROWS..).zip(codes.chunks_exact_mut(width)) {
            // The row's code in each column.
            let column_codes = lookups.cells.row(row);
            for (code_of, (group, level)) in codes.iter_mut().zip(&groups) {
                *code_of = code(group.cell(*level, column_codes));
            }
        }
    });
    let codes = &codes[..];
    threads::pieces(threads, out, ROWS * n_rows, |piece, out| {
        wide!(compare(codes, width, piece * ROWS, out, |same| variance * f64::from(same)));
    });
}

/// Compares rows, from `first` on, with all rows up to them. `codes` are `[row][term]` with `width` terms, `out` is
/// `[row from first on][row]`, and `variance_of` says what so many equal codes add.
#[inline(always)]
fn compare<T: Copy + Eq>(
    codes: &[T],
    width: usize,
    first: usize,
    out: &mut [f64],
    variance_of: impl Fn(u32) -> f64,
) {
    let n_rows = codes.len() / width;
    for (row, out) in (first..).zip(out.chunks_exact_mut(n_rows)) {
        let own = &codes[row * width..(row + 1) * width];
        for (out, other) in out[..=row].iter_mut().zip(codes.chunks_exact(width)) {
            *out += variance_of(count_equal(own, other));
        }
    }
}

/// Counts the places at which two lists have equal elements.
#[inline(always)]
fn count_equal<T: Copy + Eq>(a: &[T], b: &[T]) -> u32 {
    // The compiler turns sums of bytes into vector instructions.
    let pairs_of_chunks = a.chunks(BYTES).zip(b.chunks(BYTES));
    pairs_of_chunks
        .map(|(a, b)| u32::from(a.iter().zip(b).map(|(a, b)| u8::from(a == b)).sum::<u8>()))
        .sum()
}

/// Corrections as the surprise of rows, C (y − μ).
struct Surprise<'a> {
    /// Σ s² over the cells that two rows share, `[row][row]`.
    alike: &'a [f64],
    /// How many rows there are.
    rows: usize,
    /// `[stored class][row]`.
    surprise: Vec<f64>,
}

impl Corrections for Surprise<'_> {
    type Number = f64;

    /// Adds the corrections of a row's cells to `sums`, `[stored class]`: Σ over other rows of what both share times the other's
    /// surprise.
    #[inline(always)]
    fn sum(&self, row: usize, _place: usize, sums: &mut [f64]) {
        let common = &self.alike[row * self.rows..(row + 1) * self.rows];
        for (sum, surprise) in sums.iter_mut().zip(self.surprise.chunks_exact(self.rows)) {
            *sum += dot(common, surprise);
        }
    }

    /// Σ s² over a row's cells: what it shares with itself.
    #[inline(always)]
    fn variance(&self, row: usize, _class: usize) -> f64 {
        self.alike[row * self.rows + row]
    }

    /// Adds `steps`, `[stored class]`, to the row's surprise.
    #[inline(always)]
    fn add(&mut self, row: usize, _place: usize, steps: &[f64]) {
        steps.iter().enumerate().for_each(|(c, step)| self.surprise[c * self.rows + row] += step);
    }
}

/// Visits rows in an order, with the class of each in `labels`. Improves `mu`, `[row][class]`, and returns the mean change of μ per
/// row. `alike` has Σ s² over the cells that two rows share, `[row][row]`.
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
    let surprise = rows_by_class.map(|(row, class)| {
        let truth = f64::from(u8::from(labels[row] as usize == class));
        rows.strengths[row] * (truth - mu[row * n_classes + class])
    });
    let mut corrections = Surprise { alike, rows: n_rows, surprise: surprise.collect() };
    Ok(wide!(match n_classes {
        2 => pass_of_two(&mut corrections, rows, order, mu),
        _ => pass_of_many(&mut corrections, rows, order, mu),
    }))
}

/// Returns the scalar product, added up as eight sums side by side, so that its bits do not depend on the machine.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// Returns the corrections of the cells of all terms, s² Σ surprise over their rows, `[cell][class]`, from the surprise of rows,
/// `[row][class]`.
pub fn spread(lookups: &Lookups, surprise: &[f64]) -> Result<Vec<f64>, Error> {
    let (n_rows, variances) = (lookups.rows(), lookups.terms.variances());
    demand(n_rows > 0 && surprise.len().is_multiple_of(n_rows), "each row must have classes")?;
    let n_classes = surprise.len() / n_rows;
    let mut table = vec![0.0; lookups.terms.size() * n_classes];
    for (row, own_surprise) in surprise.chunks_exact(n_classes.max(1)).enumerate() {
        lookups.each(0..lookups.terms.groups.len(), row, |term, cell| {
            let deltas =
                table[cell * n_classes..(cell + 1) * n_classes].iter_mut().zip(own_surprise);
            deltas.for_each(|(delta, own_surprise)| *delta += variances[term] * own_surprise);
        });
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
            let mut cells = [[0; 4]; 2];
            for (row, cells) in [i, j].into_iter().zip(&mut cells) {
                lookups.each(0..3, row, |term, cell| cells[term] = cell);
            }
            let same = |t: &usize| cells[0][*t] == cells[1][*t];
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
