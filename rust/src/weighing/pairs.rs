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
    /// The same without a row of class `removed_class`, `[node][removed_class][class]`.
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

/// A pair's δ: `[cell][class]`, and `[cell][removed_class][class]` of rows left out.
#[derive(Debug)]
pub struct Delta {
    /// `[cell][class]`; a cell is a pair of fine nodes.
    pub table: Vec<f64>,
    /// `[cell][removed_class][class]`: without a row of class `removed_class`.
    pub left_out: Vec<f64>,
}

impl<'a> Columns<'a> {
    /// Refuses rows and nodes that do not fit together: codes, labels (classes) and weights of rows; and for each column its
    /// coarse and fine nodes, groups of codes: `fine` is the fine node of each code, `coarse` the coarse node of each fine one,
    /// `shares`, `[node][class]`, and `left_out`, `[node][removed_class][class]`, are p(class | node) of coarse, then of fine
    /// nodes.
    pub fn check(&self) -> Result<(), Error> {
        let (n_rows, n_classes) = (self.cells.rows(), self.prior.len());
        demand(
            n_classes > 0 && self.labels.len() == n_rows && self.weights.len() == n_rows,
            "each row must have a label",
        )?;
        check_labels(self.labels, n_classes)?;
        demand(self.nodes.len() == self.cells.width, "each column must have nodes")?;
        for (nodes, n_codes) in self.nodes.iter().zip(self.cells.sizes()) {
            // Whether nodes are numbers below `n_nodes`.
            let are_below =
                |nodes: &[u32], n_nodes: usize| nodes.iter().all(|&node| (node as usize) < n_nodes);
            let [n_coarse, n_fine] = nodes.shares.map(|shares| shares.len() / n_classes);
            let [len_left_out_coarse, len_left_out_fine] = nodes.left_out.map(<[f64]>::len);
            let fits = nodes.fine.len() >= n_codes
                && nodes.coarse.len() == n_fine
                && are_below(nodes.fine, n_fine)
                && are_below(nodes.coarse, n_coarse)
                && len_left_out_coarse == n_coarse * n_classes * n_classes
                && len_left_out_fine == n_fine * n_classes * n_classes;
            demand(fits, "a column's nodes must be those of its shares")?;
        }
        Ok(())
    }

    /// How much each pair of columns (their indices) gains over its columns apart, with the best of the `strengths` of the prior,
    /// in rows. `posteriors` are P(class) of each row by the scores so far, `[row][class]`. `nodes` are those of all columns.
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

    /// δ of each pair of columns (their indices), what it adds to the evidence for classes, under its strength of the prior, in
    /// rows: `[cell][class]`, and without a row, `[cell][class of the row][class]`. `strengths` is `[pair]`, as is what is
    /// returned.
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
            let counts = Pair::new(self, pairs[i]); // of rows in the pair's cells
            // Whether a row is left out: false, then true.
            Delta {
                table: counts.deltas(false, strengths[i]),
                left_out: counts.deltas(true, strengths[i]),
            }
        }))
    }

    /// How much a pair of columns (their indices) gains over its columns apart: the most nats over rows at one of the `strengths`
    /// m of the prior, in rows; and, along the weight of the pair's δ, the slope of the log likelihood and how fast it falls.
    /// `posteriors` are P(class) of each row by the scores so far, `[row][class]`.
    fn gain(&self, pair: [usize; 2], strengths: &[f64], posteriors: &[f64]) -> Gain {
        let (n_classes, counts) = (self.prior.len(), Pair::new(self, pair)); // of rows in the pair's cells
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
            let cell = counts.cell(self.cells.row(row)); // by the row's codes
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
    /// Adds up the weights of rows in the cells of a pair of columns (their indices), by class. Cells are pairs of nodes, one of
    /// each column, coarse or fine; nodes are groups of a column's codes. `columns` has the codes of rows, their labels (classes)
    /// and weights, and p(class | node) of the nodes of each column, `[node][class]`.
    fn new(columns: &'a Columns<'a>, pair: [usize; 2]) -> Self {
        let nodes = pair.map(|j| columns.nodes[j]); // of both columns
        let n_classes = columns.prior.len();
        // Of coarse and fine nodes: how many the second column has, and the number of cells times classes.
        let widths = [COARSE, FINE].map(|level| nodes[1].shares[level].len() / n_classes);
        let sizes = [COARSE, FINE].map(|level| nodes[0].shares[level].len() * widths[level]);
        let counts = sizes.map(|size| vec![0.0; size]); // weights of rows, [cell][class], coarse and fine
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

    /// The fine cell of a row with these codes, `[column]`: a pair of fine nodes, the first's number times the second column's
    /// number of nodes (`widths`) plus the second's. `fine` has the node of each code, and `pair` the indices of both columns.
    #[inline(always)]
    fn cell(&self, codes: &[u32]) -> usize {
        // The node of the first and of the second column of the pair.
        let [first, second] =
            [0, 1].map(|side| self.nodes[side].fine[codes[self.pair[side]] as usize] as usize);
        first * self.widths[FINE] + second
    }

    /// The coarse cell that a fine one is part of: a pair of coarse nodes, of which `coarse` has that of each fine node. `widths`
    /// are the numbers of coarse and of fine nodes of the second column.
    fn coarse(&self, cell: usize) -> usize {
        // The fine node of each column.
        let (first, second) = (cell / self.widths[FINE], cell % self.widths[FINE]);
        self.nodes[0].coarse[first] as usize * self.widths[COARSE]
            + self.nodes[1].coarse[second] as usize
    }

    /// Writes p₀ of a cell of a level, COARSE or FINE, to `base`, `[class]`: p(class | node of the first column) · p(class | node
    /// of the second) / π, as if the columns were independent; without a row of class `removed_class` if there is one. A cell is
    /// a pair of nodes: the first's number times `widths`, the number of nodes of the second column, plus the second's. The
    /// probabilities are `shares`, `[node][class]`, or, without a row, `left_out`, `[node][removed class][class]`.
    fn write_independent(
        &self,
        level: usize,
        cell: usize,
        removed_class: Option<usize>,
        base: &mut [f64],
    ) {
        let n_classes = base.len();
        // The node of each column.
        let (first, second) = (cell / self.widths[level], cell % self.widths[level]);
        // P(class | node), [class and more], without the row if there is one.
        let shares_of = |nodes: &Nodes<'a>, node: usize| match removed_class {
            Some(removed_class) => {
                &nodes.left_out[level][(node * n_classes + removed_class) * n_classes..]
            }
            None => &nodes.shares[level][node * n_classes..],
        };
        let (first, second) = (shares_of(&self.nodes[0], first), shares_of(&self.nodes[1], second));
        for (class, base) in base.iter_mut().enumerate() {
            *base = first[class] * second[class] / self.columns.prior[class];
        }
        normalise(base);
    }

    /// Replaces p₀ of a cell of a level, COARSE or FINE, which is in `p`, by p, `[class]`: the probabilities of classes by the
    /// counts of rows in the cell, `[cell][class]`, with p₀ as a prior of m rows. A row of class `removed_class` is left out if
    /// there is one.
    fn shrink(
        &self,
        level: usize,
        cell: usize,
        removed_class: Option<usize>,
        m: f64,
        p: &mut [f64],
    ) {
        let n_classes = p.len();
        let counts = &self.counts[level][cell * n_classes..(cell + 1) * n_classes]; // [class]
        // The rows of a class that are left in the cell.
        let left = |class: usize| match removed_class {
            Some(removed_class) if removed_class == class => (counts[class] - 1.0).max(0.0),
            _ => counts[class],
        };
        let total: f64 = (0..n_classes).map(left).sum();
        for (class, p) in p.iter_mut().enumerate() {
            *p = (left(class) + m * *p) / (total + m);
        }
    }

    /// p / p₀ of the coarse cells, `[cell][class]`, without a row of class `removed_class` if there is one; 1 if there is only
    /// one level, as nothing is coarser then. p₀ are the probabilities of classes in a cell if its columns were independent, p
    /// those by the counts of rows in the cell, `[cell][class]`, with p₀ as a prior of m rows.
    fn ratios(&self, removed_class: Option<usize>, m: f64) -> Vec<f64> {
        let n_classes = self.columns.prior.len();
        let mut ratios = vec![1.0; self.counts[COARSE].len()];
        if self.counts[COARSE].len() < self.counts[FINE].len() {
            let mut base = vec![0.0; n_classes]; // p₀ of a cell
            // First `ratio` is p₀, then p, then p / p₀.
            for (cell, ratio) in ratios.chunks_exact_mut(n_classes).enumerate() {
                self.write_independent(COARSE, cell, removed_class, &mut base);
                ratio.copy_from_slice(&base);
                self.shrink(COARSE, cell, removed_class, m, ratio);
                ratio.iter_mut().zip(&base).for_each(|(ratio, base)| *ratio /= base.max(TINY));
            }
        }
        ratios
    }

    /// Calls `f` with every fine cell (its number), its p₀ and its p, both `[class]`: the probabilities of classes if the columns
    /// were independent, and those by the counts of rows, `[cell][class]`, with a prior of m rows, which is p₀ times p / p₀ of
    /// the coarse cell. If there is a class `removed_class`, they are without a row of this class, and cells that have no such
    /// row are left out.
    fn visit_cells(
        &self,
        removed_class: Option<usize>,
        m: f64,
        mut f: impl FnMut(usize, &[f64], &[f64]),
    ) {
        let n_classes = self.columns.prior.len();
        let (mut base, mut p) = (vec![0.0; n_classes], vec![0.0; n_classes]); // p₀ and p of a cell
        let ratios = self.ratios(removed_class, m); // p / p₀ of coarse cells, [cell][class]
        // The weight of the rows in each cell, [class].
        for (cell, counts) in self.counts[FINE].chunks_exact(n_classes).enumerate() {
            if removed_class.is_some_and(|removed_class| counts[removed_class] == 0.0) {
                continue;
            }
            self.write_independent(FINE, cell, removed_class, &mut base);
            let ratios = &ratios[self.coarse(cell) * n_classes..];
            (0..n_classes).for_each(|class| p[class] = base[class] * ratios[class]);
            normalise(&mut p);
            self.shrink(FINE, cell, removed_class, m, &mut p);
            f(cell, &base, &p);
        }
    }

    /// The nats that the pair gains over its columns apart: Σ ln p / p₀ over rows, where p is the probability of the row's class
    /// in its cell and p₀ the same if the columns were independent, both without the row itself. The prior counts m rows.
    fn nats_gained(&self, m: f64) -> f64 {
        let (n_classes, mut nats) = (self.columns.prior.len(), 0.0);
        // The class of rows, of which one is left out.
        for removed_class in 0..n_classes {
            // `base` and `p` are p₀ and p of the cell, [class].
            self.visit_cells(Some(removed_class), m, |cell, base, p| {
                nats += self.counts[FINE][cell * n_classes + removed_class]
                    * log_ratio(p[removed_class], base[removed_class]);
            });
        }
        nats
    }

    /// δ = ln p / p₀ of every cell, `[cell][class]`; or, if `left_out`, without a row, `[cell][removed_class][class]`, 0 where no
    /// row of class `removed_class` is. p are the probabilities of classes in the cell, p₀ the same if the columns were
    /// independent; m is the strength of the prior, in rows.
    fn deltas(&self, left_out: bool, m: f64) -> Vec<f64> {
        let n_classes = self.columns.prior.len();
        let n_variants = if left_out { n_classes } else { 1 }; // how many δ a cell has
        let mut deltas = vec![0.0; self.counts[FINE].len() * n_variants];
        for removed_class in 0..n_variants {
            // `base` and `p` are p₀ and p of the cell, [class].
            self.visit_cells(left_out.then_some(removed_class), m, |cell, base, p| {
                let delta =
                    &mut deltas[(cell * n_variants + removed_class) * n_classes..][..n_classes];
                (0..n_classes).for_each(|class| delta[class] = log_ratio(p[class], base[class]));
            });
        }
        deltas
    }
}

/// Below this a probability is taken for this.
const TINY: f64 = 1e-300;

/// ln p / p₀, finite for zeros: `p` and `base` are probabilities, and `base` is p₀.
fn log_ratio(p: f64, base: f64) -> f64 {
    (p.max(TINY) / base.max(TINY)).ln()
}

/// Divides `p`, the probabilities of classes but for a factor, by their sum.
fn normalise(p: &mut [f64]) {
    let total = p.iter().sum::<f64>().max(TINY);
    p.iter_mut().for_each(|share| *share /= total);
}
