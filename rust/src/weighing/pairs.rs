//! What two columns say of the class beyond what both say apart.
//!
//! δ(u, v) = ln p(c | u, v) / p₀(c | u, v), where p₀ ∝ p(c | u) p(c | v) / π_c and p = (n + m p₀) / (N + m); a coarse grid of
//! the two columns first, whose ratio p / p₀ multiplies the base of the finer one.

use super::{Cells, check_labels};
use crate::error::{Error, demand};
use crate::threads;

/// A column's nodes, groups of its codes: coarse ones, which consist of fine ones.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a> {
    /// The fine node of each code.
    pub fine: &'a [u32],
    /// The coarse node of each fine one.
    pub coarse: &'a [u32],
    /// p(class | node), `[node][class]`, of the coarse nodes, then of the fine ones.
    pub shares: [&'a [f64]; 2],
    /// The same without a row of class `own`, `[node][own][class]`.
    pub left_out: [&'a [f64]; 2],
}

/// Rows with their classes and weights, and the columns they have.
#[derive(Debug)]
pub struct Columns<'a> {
    /// The code of each row in each column.
    pub cells: Cells<'a>,
    /// The class of each row.
    pub labels: &'a [i32],
    /// The weight of each row.
    pub weights: &'a [f64],
    /// π, `[class]`.
    pub prior: &'a [f64],
    /// The nodes of each column.
    pub nodes: Vec<Nodes<'a>>,
}

/// What a pair gains over its columns apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gain {
    /// In nats, summed over rows, each left out.
    pub nats: f64,
    /// The strength of the prior that gains most.
    pub m: f64,
    /// How fast the log likelihood rises with the pair's weight, from weight 0 on.
    pub slope: f64,
    /// How fast this slope falls.
    pub curvature: f64,
}

/// A pair's δ: `[cell][class]`, and `[cell][own][class]` of rows left out.
#[derive(Debug)]
pub struct Delta {
    /// `[cell][class]`; a cell is a pair of fine nodes.
    pub table: Vec<f64>,
    /// `[cell][own][class]`: without a row of class `own`.
    pub left_out: Vec<f64>,
}

impl<'a> Columns<'a> {
    /// Refuses rows and nodes that do not fit each other: codes, labels and weights of rows, and the nodes of each column.
    pub fn check(&self) -> Result<(), Error> {
        let (n_rows, n_classes) = (self.cells.rows(), self.prior.len());
        demand(
            n_classes > 0 && self.labels.len() == n_rows && self.weights.len() == n_rows,
            "each row must have a label",
        )?;
        check_labels(self.labels, n_classes)?;
        demand(self.nodes.len() == self.cells.width, "each column must have nodes")?;
        for (nodes, n_codes) in self.nodes.iter().zip(self.cells.sizes()) {
            let are_below =
                |nodes: &[u32], n_nodes: usize| nodes.iter().all(|&node| (node as usize) < n_nodes);
            let [n_coarse, n_fine] = nodes.shares.map(|shares| shares.len() / n_classes);
            let [left_of_coarse, left_of_fine] = nodes.left_out.map(<[f64]>::len);
            let fits = nodes.fine.len() >= n_codes
                && nodes.coarse.len() == n_fine
                && are_below(nodes.fine, n_fine)
                && are_below(nodes.coarse, n_coarse)
                && left_of_coarse == n_coarse * n_classes * n_classes
                && left_of_fine == n_fine * n_classes * n_classes;
            demand(fits, "a column's nodes must be those of its shares")?;
        }
        Ok(())
    }

    /// The gain of each pair of columns (their indices), with the best of the `strengths` of the prior, in rows. `posteriors` are
    /// P(class) of each row by the scores so far, `[row][class]`.
    pub fn gains(
        &self,
        pairs: &[[usize; 2]],
        strengths: &[f64],
        posteriors: &[f64],
        threads: usize,
    ) -> Result<Vec<Gain>, Error> {
        self.check()?;
        let (n_rows, n_classes) = (self.cells.rows(), self.prior.len());
        demand(posteriors.len() == n_rows * n_classes, "posteriors must be rows × classes")?;
        demand(!strengths.is_empty(), "there must be a strength")?;
        demand(pairs.iter().flatten().all(|&j| j < self.nodes.len()), "a pair must be of columns")?;
        let threads = threads::worth(threads, n_rows * pairs.len());
        Ok(threads::map(threads, pairs.len(), |i| self.gain(pairs[i], strengths, posteriors)))
    }

    /// δ of each pair of columns (their indices) under its strength of the prior, in rows; `strengths` is `[pair]`, as is the result.
    pub fn deltas(
        &self,
        pairs: &[[usize; 2]],
        strengths: &[f64],
        threads: usize,
    ) -> Result<Vec<Delta>, Error> {
        self.check()?;
        demand(pairs.len() == strengths.len(), "each pair must have a strength")?;
        demand(pairs.iter().flatten().all(|&j| j < self.nodes.len()), "a pair must be of columns")?;
        let threads = threads::worth(threads, self.cells.rows() * pairs.len());
        Ok(threads::map(threads, pairs.len(), |i| {
            let counts = Pair::new(self, pairs[i]);
            Delta {
                table: counts.deltas(false, strengths[i]),
                left_out: counts.deltas(true, strengths[i]),
            }
        }))
    }

    /// The gain of a pair of columns (their indices) at the strength of the prior, in rows, with the most nats. `posteriors` are
    /// P(class) of each row by the scores so far, `[row][class]`.
    fn gain(&self, pair: [usize; 2], strengths: &[f64], posteriors: &[f64]) -> Gain {
        let (n_classes, counts) = (self.prior.len(), Pair::new(self, pair));
        let mut best = Gain { nats: f64::NEG_INFINITY, ..Gain::default() };
        for &m in strengths {
            let nats = counts.nats_gained(m);
            if nats > best.nats {
                best = Gain { nats, m, ..best };
            }
        }
        if best.nats <= 0.0 {
            return best;
        }
        // δ of each cell for a row of each class, left out: [cell][class of the row][class].
        let deltas = counts.deltas(true, best.m);
        for (row, posterior) in posteriors.chunks_exact(n_classes).enumerate() {
            let (label, weight) = (self.labels[row] as usize, self.weights[row]);
            let cell = counts.cell(self.cells.row(row));
            let delta = &deltas[(cell * n_classes + label) * n_classes..][..n_classes]; // [class]
            // The mean and the variance of the row's δ under its posterior.
            let mean: f64 = delta.iter().zip(posterior).map(|(delta, p)| delta * p).sum();
            let squares = delta.iter().zip(posterior);
            let squares = squares.map(|(delta, p)| p * (delta - mean) * (delta - mean));
            best.slope += weight * (delta[label] - mean);
            best.curvature += weight * squares.sum::<f64>();
        }
        best
    }
}

/// The counts of one pair, coarse and fine.
struct Pair<'a> {
    columns: &'a Columns<'a>,
    /// The two columns.
    pair: [usize; 2],
    /// The nodes of the two columns.
    nodes: [Nodes<'a>; 2],
    /// How many coarse and fine nodes the second column has.
    widths: [usize; 2],
    /// The weight of the rows in each coarse and each fine cell, `[cell][class]`; a cell is a pair of nodes.
    counts: [Vec<f64>; 2],
}

/// The places of coarse and fine nodes in pairs of arrays.
const COARSE: usize = 0;
const FINE: usize = 1;

impl<'a> Pair<'a> {
    /// Counts the rows in the cells of a pair of columns (their indices).
    fn new(columns: &'a Columns<'a>, pair: [usize; 2]) -> Self {
        let nodes = pair.map(|j| columns.nodes[j]); // of each of both columns
        let n_classes = columns.prior.len();
        // Coarse and fine: the nodes of the second column, and the numbers of all cells.
        let widths = [COARSE, FINE].map(|level| nodes[1].shares[level].len() / n_classes);
        let sizes = [COARSE, FINE].map(|level| nodes[0].shares[level].len() * widths[level]);
        let counts = sizes.map(|size| vec![0.0; size]);
        let mut pair = Pair { columns, pair, nodes, widths, counts };
        for (row, (&label, &weight)) in columns.labels.iter().zip(columns.weights).enumerate() {
            let cell = pair.cell(columns.cells.row(row));
            pair.counts[FINE][cell * n_classes + label as usize] += weight;
        }
        for i in 0..sizes[FINE] {
            let (cell, class) = (i / n_classes, i % n_classes);
            let coarse_cell = pair.coarse(cell);
            pair.counts[COARSE][coarse_cell * n_classes + class] += pair.counts[FINE][i];
        }
        pair
    }

    /// The fine cell (a pair of fine nodes) of a row with these codes, `[column]`.
    #[inline(always)]
    fn cell(&self, codes: &[u32]) -> usize {
        // The node of the first and of the second column of the pair.
        let [first, second] =
            [0, 1].map(|side| self.nodes[side].fine[codes[self.pair[side]] as usize] as usize);
        first * self.widths[FINE] + second
    }

    /// The coarse cell (a pair of coarse nodes) that a fine one is part of.
    fn coarse(&self, cell: usize) -> usize {
        // The fine node of each column.
        let (first, second) = (cell / self.widths[FINE], cell % self.widths[FINE]);
        self.nodes[0].coarse[first] as usize * self.widths[COARSE]
            + self.nodes[1].coarse[second] as usize
    }

    /// Writes p₀ of a cell of a level, COARSE or FINE, to `base`, `[class]`: what both columns say apart, without a row of class
    /// `own` if there is one.
    fn apart(&self, level: usize, cell: usize, own: Option<usize>, base: &mut [f64]) {
        let n_classes = base.len();
        // The node of each column.
        let (first, second) = (cell / self.widths[level], cell % self.widths[level]);
        let shares_of = |nodes: &Nodes<'a>, node: usize| match own {
            Some(own) => &nodes.left_out[level][(node * n_classes + own) * n_classes..],
            None => &nodes.shares[level][node * n_classes..],
        };
        let (first, second) = (shares_of(&self.nodes[0], first), shares_of(&self.nodes[1], second));
        for (class, base) in base.iter_mut().enumerate() {
            *base = first[class] * second[class] / self.columns.prior[class];
        }
        normalise(base);
    }

    /// Replaces the base p₀ of a cell of a level, COARSE or FINE, which is in `p`, by p, `[class]`: by the shares of the cell's counts
    /// with a prior of m rows. A row of class `own` is left out if there is one.
    fn shrink(&self, level: usize, cell: usize, own: Option<usize>, m: f64, p: &mut [f64]) {
        let n_classes = p.len();
        let counts = &self.counts[level][cell * n_classes..(cell + 1) * n_classes]; // [class]
        // The rows of a class that are left in the cell.
        let left = |class: usize| match own {
            Some(own) if own == class => (counts[class] - 1.0).max(0.0),
            _ => counts[class],
        };
        let total: f64 = (0..n_classes).map(left).sum();
        for (class, p) in p.iter_mut().enumerate() {
            *p = (left(class) + m * *p) / (total + m);
        }
    }

    /// p / p₀ of the coarse cells, `[cell][class]`, without a row of class `own` if there is one; 1 if there is only one level, as
    /// nothing is coarser then. p₀ are the posteriors of a cell if its columns were independent (`apart` computes them), p the
    /// same shrunk from the cell's counts with a prior of m rows.
    fn ratios(&self, own: Option<usize>, m: f64) -> Vec<f64> {
        let n_classes = self.columns.prior.len();
        let mut ratios = vec![1.0; self.counts[COARSE].len()];
        if self.counts[COARSE].len() < self.counts[FINE].len() {
            let mut apart = vec![0.0; n_classes]; // p₀ of a cell
            for (cell, ratio) in ratios.chunks_exact_mut(n_classes).enumerate() {
                self.apart(COARSE, cell, own, &mut apart);
                ratio.copy_from_slice(&apart);
                self.shrink(COARSE, cell, own, m, ratio);
                ratio.iter_mut().zip(&apart).for_each(|(ratio, apart)| *ratio /= apart.max(TINY));
            }
        }
        ratios
    }

    /// Calls `f` with each fine cell, its p₀ and its p, `[class]`, where m is the strength of the prior, in rows. If there is a class
    /// `own`, they are without a row of this class, and cells that have no such row are left out.
    fn each(&self, own: Option<usize>, m: f64, mut f: impl FnMut(usize, &[f64], &[f64])) {
        let n_classes = self.columns.prior.len();
        let (mut apart, mut p) = (vec![0.0; n_classes], vec![0.0; n_classes]); // p₀ and p of a cell
        let ratios = self.ratios(own, m); // p / p₀ of coarse cells, [cell][class]
        for (cell, counts) in self.counts[FINE].chunks_exact(n_classes).enumerate() {
            if own.is_some_and(|own| counts[own] == 0.0) {
                continue;
            }
            self.apart(FINE, cell, own, &mut apart);
            let ratios = &ratios[self.coarse(cell) * n_classes..];
            (0..n_classes).for_each(|class| p[class] = apart[class] * ratios[class]);
            normalise(&mut p);
            self.shrink(FINE, cell, own, m, &mut p);
            f(cell, &apart, &p);
        }
    }

    /// Σ ln p(own | cell) / p₀(own | cell) over rows, each left out, where `own` is the row's class and m the strength of the prior, in
    /// rows.
    fn nats_gained(&self, m: f64) -> f64 {
        let (n_classes, mut nats) = (self.columns.prior.len(), 0.0);
        for own in 0..n_classes {
            // `apart` and p are p₀ and p of the cell, [class].
            self.each(Some(own), m, |cell, apart, p| {
                nats += self.counts[FINE][cell * n_classes + own] * log_ratio(p[own], apart[own]);
            });
        }
        nats
    }

    /// δ of every cell, `[cell][class]`; or of rows left out, `[cell][own][class]`, 0 where no row of class `own` is. m is the
    /// strength of the prior, in rows.
    fn deltas(&self, left_out: bool, m: f64) -> Vec<f64> {
        let n_classes = self.columns.prior.len();
        let n_variants = if left_out { n_classes } else { 1 }; // of each cell
        let mut deltas = vec![0.0; self.counts[FINE].len() * n_variants];
        for own in 0..n_variants {
            // `apart` and p are p₀ and p of the cell, [class].
            self.each(left_out.then_some(own), m, |cell, apart, p| {
                let delta = &mut deltas[(cell * n_variants + own) * n_classes..][..n_classes];
                (0..n_classes).for_each(|class| delta[class] = log_ratio(p[class], apart[class]));
            });
        }
        deltas
    }
}

/// Below this a probability is taken for this.
const TINY: f64 = 1e-300;

/// ln p / p₀, finite for zeros; `apart` is p₀.
fn log_ratio(p: f64, apart: f64) -> f64 {
    (p.max(TINY) / apart.max(TINY)).ln()
}

/// Divides numbers by their sum.
fn normalise(p: &mut [f64]) {
    let total = p.iter().sum::<f64>().max(TINY);
    p.iter_mut().for_each(|share| *share /= total);
}
