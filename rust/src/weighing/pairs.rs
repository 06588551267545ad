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
    /// Refuses arrays that do not fit each other.
    pub fn check(&self) -> Result<(), Error> {
        let (n_rows, n_classes) = (self.cells.rows(), self.prior.len());
        demand(
            n_classes > 0 && self.labels.len() == n_rows && self.weights.len() == n_rows,
            "each row must have a label",
        )?;
        check_labels(self.labels, n_classes)?;
        demand(self.nodes.len() == self.cells.width, "each column must have nodes")?;
        for (nodes, codes) in self.nodes.iter().zip(self.cells.sizes()) {
            let below = |map: &[u32], size: usize| map.iter().all(|&node| (node as usize) < size);
            let (n_coarse, n_fine) =
                (nodes.shares[0].len() / n_classes, nodes.shares[1].len() / n_classes);
            let fits = nodes.fine.len() >= codes
                && nodes.coarse.len() == n_fine
                && below(nodes.fine, n_fine)
                && below(nodes.coarse, n_coarse)
                && nodes.left_out[0].len() == n_coarse * n_classes * n_classes
                && nodes.left_out[1].len() == n_fine * n_classes * n_classes;
            demand(fits, "a column's nodes must be those of its shares")?;
        }
        Ok(())
    }

    /// The gain of each pair of columns, with the best of the `strengths` of the prior. `posteriors` are P(class) of each row by
    /// the scores so far, `[row][class]`.
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

    /// δ of each pair of columns under its strength of the prior, `[pair]`.
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
            let pair = Pair::new(self, pairs[i]);
            let [table, left_out] =
                [false, true].map(|is_left_out| pair.deltas(is_left_out, strengths[i]));
            Delta { table, left_out }
        }))
    }

    /// The gain of a pair of columns, as [`Columns::gains`], at the strength with the most nats. `posteriors` are `[row][class]`.
    fn gain(&self, pair: [usize; 2], strengths: &[f64], posteriors: &[f64]) -> Gain {
        let (n_classes, counted) = (self.prior.len(), Pair::new(self, pair));
        let mut best = Gain { nats: f64::NEG_INFINITY, ..Gain::default() };
        for &m in strengths {
            let nats = counted.gained(m);
            if nats > best.nats {
                best = Gain { nats, m, ..best };
            }
        }
        if best.nats <= 0.0 {
            return best;
        }
        // δ of each cell for a row of each class, left out: [cell][class of the row][class].
        let delta = counted.deltas(true, best.m);
        for row in 0..self.cells.rows() {
            let place = (counted.cell(self.cells.row(row)) * n_classes + self.labels[row] as usize)
                * n_classes;
            let delta = &delta[place..place + n_classes];
            let posterior = &posteriors[row * n_classes..(row + 1) * n_classes];
            let mean_delta: f64 =
                delta.iter().zip(posterior).map(|(delta, posterior)| delta * posterior).sum();
            let spread = delta
                .iter()
                .zip(posterior)
                .map(|(delta, posterior)| posterior * (delta - mean_delta) * (delta - mean_delta));
            best.slope += self.weights[row] * (delta[self.labels[row] as usize] - mean_delta);
            best.curvature += self.weights[row] * spread.sum::<f64>();
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
    /// Counts the rows in the cells of a pair of columns.
    fn new(columns: &'a Columns<'a>, pair: [usize; 2]) -> Self {
        let nodes = pair.map(|j| columns.nodes[j]);
        let n_classes = columns.prior.len();
        let widths = [COARSE, FINE].map(|level| nodes[1].shares[level].len() / n_classes);
        let sizes =
            [COARSE, FINE].map(|level| nodes[0].shares[level].len() / n_classes * widths[level]);
        let mut pair_counts = Pair {
            columns,
            pair,
            nodes,
            widths,
            counts: sizes.map(|size| vec![0.0; size * n_classes]),
        };
        let mut fine = std::mem::take(&mut pair_counts.counts[FINE]);
        for (row, (&label, &weight)) in columns.labels.iter().zip(columns.weights).enumerate() {
            fine[pair_counts.cell(columns.cells.row(row)) * n_classes + label as usize] += weight;
        }
        for cell in 0..sizes[FINE] {
            let coarse = pair_counts.coarse(cell);
            for class in 0..n_classes {
                pair_counts.counts[COARSE][coarse * n_classes + class] +=
                    fine[cell * n_classes + class];
            }
        }
        pair_counts.counts[FINE] = fine;
        pair_counts
    }

    /// The fine cell of a row with these codes.
    #[inline(always)]
    fn cell(&self, codes: &[u32]) -> usize {
        let [first, second] =
            [0, 1].map(|side| self.nodes[side].fine[codes[self.pair[side]] as usize] as usize);
        first * self.widths[FINE] + second
    }

    /// The coarse cell that a fine one is part of.
    fn coarse(&self, cell: usize) -> usize {
        let (first, second) = (cell / self.widths[FINE], cell % self.widths[FINE]);
        self.nodes[0].coarse[first] as usize * self.widths[COARSE]
            + self.nodes[1].coarse[second] as usize
    }

    /// Writes p₀ of a cell of a level to `out`, `[class]`: what both columns say apart, without a row of class `own` if it is
    /// given.
    fn apart(&self, level: usize, cell: usize, own: Option<usize>, out: &mut [f64]) {
        let n_classes = out.len();
        let (first, second) = (cell / self.widths[level], cell % self.widths[level]);
        let shares_of = |nodes: &Nodes<'a>, node: usize| match own {
            Some(own) => {
                &nodes.left_out[level]
                    [(node * n_classes + own) * n_classes..(node * n_classes + own + 1) * n_classes]
            }
            None => &nodes.shares[level][node * n_classes..(node + 1) * n_classes],
        };
        let (first, second) = (shares_of(&self.nodes[0], first), shares_of(&self.nodes[1], second));
        for (class, out) in out.iter_mut().enumerate() {
            *out = first[class] * second[class] / self.columns.prior[class];
        }
        normalise(out);
    }

    /// Replaces the base p₀ of a cell of a level, which is in `p`, by p, `[class]`; without a row of class `own` if it is given.
    fn shrink(&self, level: usize, cell: usize, own: Option<usize>, m: f64, p: &mut [f64]) {
        let n_classes = p.len();
        let counts = &self.counts[level][cell * n_classes..(cell + 1) * n_classes];
        let left = |class: usize| match own {
            Some(own) if own == class => (counts[class] - 1.0).max(0.0),
            _ => counts[class],
        };
        let total: f64 = (0..n_classes).map(left).sum();
        for (class, p) in p.iter_mut().enumerate() {
            *p = (left(class) + m * *p) / (total + m);
        }
    }

    /// p / p₀ of the coarse cells, `[cell][class]`, without a row of class `own` if it is given; 1 if there is only one level, as
    /// nothing is coarser then. p₀ are the posteriors of a cell if its columns were independent (`apart` computes them), p the
    /// same shrunk from the cell's counts with a prior of m rows.
    fn ratios(&self, own: Option<usize>, m: f64) -> Vec<f64> {
        let n_classes = self.columns.prior.len();
        let mut ratios = vec![1.0; self.counts[COARSE].len()];
        if self.counts[COARSE].len() < self.counts[FINE].len() {
            let mut apart = vec![0.0; n_classes];
            for (cell, ratio) in ratios.chunks_exact_mut(n_classes).enumerate() {
                self.apart(COARSE, cell, own, &mut apart);
                ratio.copy_from_slice(&apart);
                self.shrink(COARSE, cell, own, m, ratio);
                ratio.iter_mut().zip(&apart).for_each(|(ratio, apart)| *ratio /= apart.max(TINY));
            }
        }
        ratios
    }

    /// Calls `f` with each fine cell, its p₀ and its p, `[class]`. If `own` is given they are without a row of this class, and
    /// cells that have no such row are left out.
    fn each(&self, own: Option<usize>, m: f64, mut f: impl FnMut(usize, &[f64], &[f64])) {
        let n_classes = self.columns.prior.len();
        let (mut apart, mut p, ratios) =
            (vec![0.0; n_classes], vec![0.0; n_classes], self.ratios(own, m));
        for (cell, counts) in self.counts[FINE].chunks_exact(n_classes).enumerate() {
            if own.is_some_and(|own| counts[own] == 0.0) {
                continue;
            }
            self.apart(FINE, cell, own, &mut apart);
            let from = self.coarse(cell) * n_classes;
            (0..n_classes).for_each(|class| p[class] = apart[class] * ratios[from + class]);
            normalise(&mut p);
            self.shrink(FINE, cell, own, m, &mut p);
            f(cell, &apart, &p);
        }
    }

    /// Σ ln p(own | cell) / p₀(own | cell) over rows, each left out, where `own` is the row's class and m the strength of the
    /// prior.
    fn gained(&self, m: f64) -> f64 {
        let (n_classes, mut nats) = (self.columns.prior.len(), 0.0);
        for own in 0..n_classes {
            self.each(Some(own), m, |cell, apart, p| {
                nats += self.counts[FINE][cell * n_classes + own] * log_ratio(p[own], apart[own]);
            });
        }
        nats
    }

    /// δ of every cell, `[cell][class]`; or of rows left out, `[cell][own][class]`, 0 where no row of class `own` is. m is the
    /// strength of the prior.
    fn deltas(&self, left_out: bool, m: f64) -> Vec<f64> {
        let n_classes = self.columns.prior.len();
        let per_cell = if left_out { n_classes } else { 1 };
        let mut out = vec![0.0; self.counts[FINE].len() * per_cell];
        for own in 0..per_cell {
            self.each(left_out.then_some(own), m, |cell, apart, p| {
                let out = &mut out[(cell * per_cell + own) * n_classes..][..n_classes];
                (0..n_classes).for_each(|class| out[class] = log_ratio(p[class], apart[class]));
            });
        }
        out
    }
}

/// Below this a probability is taken for this.
const TINY: f64 = 1e-300;

/// ln p / p₀, finite for zeros.
fn log_ratio(p: f64, apart: f64) -> f64 {
    (p.max(TINY) / apart.max(TINY)).ln()
}

/// Divides numbers by their sum.
fn normalise(p: &mut [f64]) {
    let total = p.iter().sum::<f64>().max(TINY);
    p.iter_mut().for_each(|share| *share /= total);
}
