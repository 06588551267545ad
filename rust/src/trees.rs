//! Trees over the cells of a column: wide nodes contain finer ones. Here are the trees, the shares of the classes in every node,
//! and the strengths of the priors by which these shares are smoothed.
//!
//! A tree is a list of levels, from the widest to the finest. A level has the number of every cell's node; on the last level
//! every cell is a node of its own.

use crate::error::{Error, demand};
use crate::logarithm::ln;
use crate::simd::wide;
use crate::threads;

/// Levels on which nodes are halved; the next level has the cells. Part of the model: it decides what is learned.
const DEPTH: usize = 9;
/// The strengths of a prior, in rows, among which the best one is chosen. Part of the model.
const STRENGTHS: [f64; 12] =
    [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
/// Strengths for a first level whose cuts were chosen by the classes.
const FIRST_STRENGTHS: [f64; 4] = [0.5, 2.0, 8.0, 32.0];
/// Smaller shares are raised to this, so that their logarithm is finite.
const SMALLEST: f64 = 1e-300;
/// Two cuts that differ by fewer bits per row than this are equally good: far more than rounding.
const TOLERANCE: f64 = 1e-12;

/// The number of rows of each class in each cell of a column, `[cell][class]`; it may be fractional.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    rows: &'a [f64],
    n_classes: usize,
}

impl<'a> Cells<'a> {
    /// The cells of a column, groups of its numbers: `rows` is the number of rows, `[cell][class]`. An error unless it has a
    /// number for every class of each cell.
    pub fn new(rows: &'a [f64], n_classes: usize) -> Result<Self, Error> {
        demand(
            n_classes > 0 && rows.len().is_multiple_of(n_classes),
            "cells must have one column per class",
        )?;
        Ok(Cells { rows, n_classes })
    }

    /// The number of cells.
    fn len(&self) -> usize {
        self.rows.len() / self.n_classes
    }
}

/// Builds the levels of a tree over the cells of a column by halving nodes, neighbouring cells, by count, below a first level
/// (the node of each cell) if there is one. `rows` is the number of rows in each cell. Returns the node of each cell on each
/// level, `[level][cell]`, the finest level last.
pub fn halve_by_count(rows: &[f64], first_level: Option<&[i64]>) -> Result<Vec<Vec<i64>>, Error> {
    let n_cells = rows.len();
    demand(
        first_level.is_none_or(|nodes| nodes.len() == n_cells),
        "the first level must have every cell",
    )?;
    let mut rows_before = vec![0.0]; // the number of rows in all cells before each, then in all
    rows_before.extend(rows.iter().scan(0.0, |sum, rows| {
        *sum += rows;
        Some(*sum)
    }));
    // The cell at which each node of the last level begins, then the number of cells.
    let mut edges = vec![0, n_cells];
    let mut levels = vec![]; // the node of each cell, [level][cell]
    if let Some(nodes) = first_level {
        // The cells at which a node begins, but for the first.
        let starts = (1..n_cells).filter(|&cell| nodes[cell] != nodes[cell - 1]);
        edges = std::iter::once(0).chain(starts).chain([n_cells]).collect();
        levels.push(nodes.to_vec());
    }
    for _ in 0..DEPTH {
        let mut finer_edges = vec![0]; // the cells at which the nodes of the next level begin
        // The first cell of a node, and that of the next one.
        for bounds in edges.windows(2) {
            finer_edges.extend(halve(&rows_before, bounds[0], bounds[1]));
            finer_edges.push(bounds[1]);
        }
        if finer_edges.len() == edges.len() {
            break;
        }
        edges = finer_edges;
        levels.push(nodes_between(&edges));
    }
    if levels.is_empty() || edges.len() <= n_cells {
        levels.push((0..n_cells as i64).collect());
    }
    Ok(levels)
}

/// The cell before which cells `low..high` are cut into halves of nearly equally many rows; None if there are fewer than two
/// cells. `rows_before[cell]` is the number of rows in all cells before `cell`.
fn halve(rows_before: &[f64], low: usize, high: usize) -> Option<usize> {
    if high - low < 2 {
        return None;
    }
    let half = (rows_before[low] + rows_before[high]) / 2.0;
    // The first cell before which are at least half of the rows, and the cell before it.
    let right = rows_before.partition_point(|&rows| rows < half).clamp(low + 1, high - 1);
    let left = (right - 1).max(low + 1);
    let distance = |cell: usize| (rows_before[cell] - half).abs(); // from half, in rows
    Some(if distance(left) <= distance(right) { left } else { right })
}

/// The node of each cell, numbered from 0. `edges` has the cell at which each node begins, ascending, then the number of cells.
fn nodes_between(edges: &[usize]) -> Vec<i64> {
    let nodes = edges.windows(2).zip(0..); // with the cells at which it begins and ends
    nodes.flat_map(|(bounds, node)| std::iter::repeat_n(node, bounds[1] - bounds[0])).collect()
}

/// A level: the node of the level above that contains each node, and the number of rows in each node, `[node][class]`.
struct Level {
    parents: Vec<usize>,
    rows: Vec<f64>,
}

/// Sums the rows of cells, `[cell][class]`, in the nodes of every level of a tree; `levels` has the node of each cell,
/// `[level][cell]`. Returns for each level the parents, which are nodes of the level above that contain its nodes, and the number
/// of rows in each node, `[node][class]`. The parent of the first level's nodes is 0, the root. An error unless the levels are a
/// tree.
fn sum_levels(levels: &[Vec<i64>], cells: Cells) -> Result<Vec<Level>, Error> {
    let n_cells = cells.len();
    let root = vec![0; n_cells];
    let mut level_above = &root; // the node of each cell on the level above
    let mut sums: Vec<Level> = vec![];
    for nodes in levels {
        demand(nodes.len() == n_cells, "a level must have every cell")?;
        let is_node = |node: &i64| (0..n_cells as i64).contains(node);
        demand(nodes.iter().all(is_node), "a level has wrong nodes")?;
        let rows = sum_by_node(cells, nodes); // [node][class]
        let mut parents = vec![0; rows.len() / cells.n_classes];
        for (&node, &parent) in nodes.iter().zip(level_above) {
            parents[node as usize] = parent as usize;
        }
        sums.push(Level { parents, rows });
        level_above = nodes;
    }
    let is_complete = sums.last().is_some_and(|last| last.parents.len() == n_cells);
    demand(is_complete, "each cell must be a node")?;
    Ok(sums)
}

/// The shares of classes, P(class | node), in the nodes on each level of a tree, `[level]` of `[node][class]`; if `left_out`,
/// without one row of each class in turn, `[level]` of `[node][row's class][class]`. Each node's shares are smoothed by those of
/// its parent, which count as many rows as the strength: the first one on the first level, the second one below; `prior` is the
/// share of each class in the root. `cells` are numbers of rows, `[cell][class]`. An error unless `levels`, the node of each
/// cell, `[level][cell]`, are a tree.
pub fn shares(
    levels: &[Vec<i64>],
    cells: Cells,
    strengths: [f64; 2],
    prior: &[f64],
    left_out: bool,
) -> Result<Vec<Vec<f64>>, Error> {
    let n_classes = cells.n_classes;
    demand(prior.len() == n_classes, "prior must have every class")?;
    // How many times each node has shares.
    let n_variants = if left_out { n_classes } else { 1 };
    // The shares in the root, `[row's class][class]` or `[class]`.
    let root_shares = prior.repeat(n_variants);
    let mut shares_by_level: Vec<Vec<f64>> = vec![];
    // A level has the parent of each node, and the number of rows in each, [node][class].
    for (depth, level) in sum_levels(levels, cells)?.iter().enumerate() {
        let strength = strengths[depth.min(1)]; // how many rows the parent's shares count
        let shares_above = shares_by_level.last().unwrap_or(&root_shares);
        // Of the level, `[node][row's class][class]` or `[node][class]`.
        let mut shares = Vec::with_capacity(level.rows.len() * n_variants);
        for (rows, &parent) in level.rows.chunks_exact(n_classes).zip(&level.parents) {
            let parent_shares = &shares_above[parent * root_shares.len()..][..root_shares.len()];
            // `bases`: the parent's share of each class.
            for (row_class, bases) in parent_shares.chunks_exact(n_classes).enumerate() {
                // The node's rows of a class, without one of `row_class` if it is left out.
                let remaining = |class: usize| {
                    let removed = if left_out && class == row_class { 1.0 } else { 0.0 };
                    (rows[class] - removed).max(0.0)
                };
                let total = (0..n_classes).map(remaining).sum::<f64>() + strength;
                shares.extend(bases.iter().enumerate().map(|(class, &base)| {
                    if total > 0.0 { (remaining(class) + strength * base) / total } else { base }
                }));
            }
        }
        shares_by_level.push(shares);
    }
    Ok(shares_by_level)
}

/// Splits `numbers`, those of all columns, one column after the other, into one array for each column, of these lengths; an error
/// unless they add up to the length of `numbers`.
pub fn split_columns(
    numbers: &[f64],
    lengths: impl Iterator<Item = usize>,
) -> Result<Vec<&[f64]>, Error> {
    let (mut remaining, mut columns) = (numbers, vec![]); // numbers of later columns, and arrays so far
    for length in lengths {
        let (column, later_columns) = remaining
            .split_at_checked(length)
            .ok_or(Error::malformed("columns have more cells than there are"))?;
        columns.push(column);
        remaining = later_columns;
    }
    demand(remaining.is_empty(), "there are more cells than columns have")?;
    Ok(columns)
}

/// The levels of a tree: the node of each cell, `[level][cell]`.
pub type Levels = Vec<Vec<i64>>;

/// The tree of a column, and the rows of its cells.
#[derive(Debug)]
struct Tree<'a> {
    levels: &'a Levels,
    cells: Cells<'a>,
}

/// The trees of several columns.
#[derive(Debug)]
pub struct Forest<'a> {
    trees: Vec<Tree<'a>>,
    n_classes: usize,
}

impl<'a> Forest<'a> {
    /// `levels` has the levels of each tree, the node of each cell, `[tree][level][cell]`, and `cells` the number of rows in the
    /// cells of all trees, one tree after the other, `[cell][class]`. An error unless these fit together.
    pub fn new(levels: &'a [Levels], cells: Cells<'a>) -> Result<Self, Error> {
        let n_classes = cells.n_classes;
        // The number of cells times classes of each tree.
        let sizes = levels.iter().map(|levels| levels.first().map_or(0, Vec::len) * n_classes);
        let rows = split_columns(cells.rows, sizes)?; // of each tree's cells, [cell][class]
        let trees = levels.iter().zip(rows);
        let trees = trees.map(|(levels, rows)| Tree { levels, cells: Cells { rows, n_classes } });
        Ok(Forest { trees: trees.collect(), n_classes })
    }

    /// P(class | cell) of all trees, one after the other, `[cell][class]`; if `left_out`, without one row of each class in turn,
    /// `[cell][row's class][class]`. After the cells of each tree comes `prior`, the share of each class, for numbers that are in
    /// no cell. `strengths` is `[tree][first level, later ones]`: how many rows the shares in a node's parent count.
    pub fn shares(
        &self,
        strengths: &[f64],
        prior: &[f64],
        left_out: bool,
        threads: usize,
    ) -> Result<Vec<f64>, Error> {
        let (strengths, _) = strengths.as_chunks::<2>();
        demand(strengths.len() == self.trees.len(), "each tree must have strengths")?;
        // Of the last cell, which all values that are in no cell have.
        let unknown_shares = prior.repeat(if left_out { self.n_classes } else { 1 });
        let shares_of_trees = threads::try_map(self.worth(threads), self.trees.len(), |t| {
            // The node of each cell, [level][cell], and the number of rows in each, [cell][class].
            let Tree { levels, cells } = &self.trees[t];
            let mut shares_by_level = shares(levels, *cells, strengths[t], prior, left_out)?;
            // On the last level every cell is a node.
            let mut cell_shares = shares_by_level.pop().unwrap_or_default();
            cell_shares.extend(&unknown_shares);
            Ok::<_, Error>(cell_shares)
        })?;
        Ok(shares_of_trees.concat())
    }

    /// P(class | node) on each level, `[level]` of `[node][class]`, of a forest that has a single tree; an error if it has
    /// another number. If `left_out`, without one row of each class in turn, `[level]` of `[node][row's class][class]`.
    /// `strengths` are how many rows the shares in a node's parent count, on the first level and on later ones; `prior` is the
    /// share of each class.
    pub fn shares_by_level(
        &self,
        strengths: [f64; 2],
        prior: &[f64],
        left_out: bool,
    ) -> Result<Vec<Vec<f64>>, Error> {
        demand(self.trees.len() == 1, "levels are those of one tree")?;
        // The node of each cell, [level][cell], and the number of rows in each, [cell][class].
        let Tree { levels, cells } = &self.trees[0];
        shares(levels, *cells, strengths, prior, left_out)
    }

    /// For each tree the strengths, how many rows the shares in a node's parent count on the first level and on later ones, that
    /// make the tree's rows, each left out of its nodes, most likely. `is_cut_by_class`, `[tree]`: whether the first level was
    /// cut where the classes differ; `prior` is the share of each class.
    pub fn choose_strengths(
        &self,
        is_cut_by_class: &[bool],
        prior: &[f64],
        threads: usize,
    ) -> Result<Vec<ChosenStrengths>, Error> {
        demand(is_cut_by_class.len() == self.trees.len(), "told_apart must have every tree")?;
        threads::try_map(self.worth(threads), self.trees.len(), |t| {
            // The node of each cell, [level][cell], and the number of rows in each, [cell][class].
            let Tree { levels, cells } = &self.trees[t];
            choose_strengths(levels, *cells, prior, is_cut_by_class[t])
        })
    }

    /// How many threads, at most `threads`, pay off for work on all trees, about eight steps for each cell and class.
    fn worth(&self, threads: usize) -> usize {
        threads::worth(threads, self.trees.iter().map(|tree| tree.cells.rows.len() * 8).sum())
    }
}

/// The levels of a tree, `[level][cell]`, and the strengths of its first level and of all later ones, in rows.
pub struct GrownTree {
    pub levels: Levels,
    pub strengths: [f64; 2],
}

/// A tree by halving alone, and one that is first cut by the classes, if it is better.
pub struct GrownTrees {
    pub plain: GrownTree,
    pub supervised: Option<GrownTree>,
}

/// Grows two trees over the leaves of a column of numbers: one by halving alone, and one that is first cut where the classes
/// differ, if those cuts gain more likelihood than it costs to describe them. `cells` is the number of rows of each leaf by
/// class, `totals` the number of rows of each leaf, and `prior` the share of each class. A tree has levels, the node of each
/// leaf, `[level][leaf]`, and strengths, how many rows the shares in a node's parent count, on the first level and on later ones.
pub fn grow(cells: Cells, totals: &[f64], prior: &[f64]) -> Result<GrownTrees, Error> {
    let levels = halve_by_count(totals, None)?;
    let is_cut_by_class = false;
    // The best strengths, and the gain: the log likelihood under them less that under the prior alone, in nats.
    let chosen = choose_strengths(&levels, cells, prior, is_cut_by_class)?;
    let plain = GrownTree { levels, strengths: chosen.strengths };
    let cuts = cut_by_class(cells); // the leaves before which the classes change
    if cuts.is_empty() {
        return Ok(GrownTrees { plain, supervised: None });
    }
    // The first level's node of a cell: the number of cuts before it.
    let node = |cell: usize| cuts.partition_point(|&cut| cut <= cell) as i64;
    let first_level: Vec<i64> = (0..cells.len()).map(node).collect();
    let levels = halve_by_count(totals, Some(&first_level))?;
    let is_cut_by_class = true;
    let chosen_below_cuts = choose_strengths(&levels, cells, prior, is_cut_by_class)?;
    // Of describing the cuts, in nats.
    let cost = cuts.len() as f64 * (cells.len().saturating_sub(1).max(2) as f64).ln();
    let is_better = chosen_below_cuts.gain - chosen.gain > cost;
    let supervised = GrownTree { levels, strengths: chosen_below_cuts.strengths };
    Ok(GrownTrees { plain, supervised: is_better.then_some(supervised) })
}

/// The index of the leaf of each bin of numbers, ascending from 0: each bin is a leaf if there are at most `most`; otherwise
/// neighbouring bins are joined to at most `most` leaves with nearly equal numbers of rows. `totals` is the number of rows of
/// each bin.
pub fn quantiles(totals: &[f64], most: usize) -> Vec<i64> {
    let n_bins = totals.len();
    if n_bins <= most {
        return (0..n_bins as i64).collect();
    }
    let mut rows_up_to = totals.to_vec(); // in each bin and all before
    (1..n_bins).for_each(|bin| rows_up_to[bin] += rows_up_to[bin - 1]);
    // First 1 where a leaf begins, then the sum of these.
    let mut leaves = vec![0; n_bins];
    for quantile in 1..most {
        // How many rows are below the quantile, and the bin in which their number is reached.
        let rows = rows_up_to[n_bins - 1] * quantile as f64 / most as f64;
        let last_bin = rows_up_to.partition_point(|&sum| sum < rows);
        if last_bin < n_bins - 1 {
            leaves[last_bin + 1] = 1;
        }
    }
    (1..n_bins).for_each(|bin| leaves[bin] += leaves[bin - 1]);
    leaves
}

/// Sums the numbers of rows in cells, `[cell][class]`, by node, a group of cells: `[node][class]`. `nodes` has the node of each
/// cell, which is not negative.
pub fn sum_by_node(cells: Cells, nodes: &[i64]) -> Vec<f64> {
    let n_classes = cells.n_classes;
    let n_nodes = nodes.iter().max().map_or(0, |&node| node as usize + 1);
    let mut sums = vec![0.0; n_nodes * n_classes]; // of rows, [node][class]
    for (cell_rows, &node) in cells.rows.chunks_exact(n_classes).zip(nodes) {
        let node_rows = &mut sums[node as usize * n_classes..][..n_classes];
        node_rows.iter_mut().zip(cell_rows).for_each(|(sum, rows)| *sum += rows);
    }
    sums
}

/// A number for each of the [`STRENGTHS`].
type ByStrength = [f64; STRENGTHS.len()];

/// The strengths of the first level and of all later ones, and how much they gain.
pub struct ChosenStrengths {
    pub strengths: [f64; 2],
    /// The log likelihood of the rows, each left out of its nodes, minus that under the prior alone.
    pub gain: f64,
}

/// The strengths, how many rows the shares of classes in a node's parent count on the first level and on later ones, that make
/// the rows, each left out of its nodes, most likely; and the log likelihood under them less that under the prior alone, in nats.
/// `levels` has the node of each cell, `[level][cell]`, `cells` the number of rows in each, `[cell][class]`, and `prior` is the
/// share of each class. `is_cut_by_class`: the first level was cut where the classes differ, and may have another strength; else
/// both are equal.
pub fn choose_strengths(
    levels: &[Vec<i64>],
    cells: Cells,
    prior: &[f64],
    is_cut_by_class: bool,
) -> Result<ChosenStrengths, Error> {
    let n_classes = cells.n_classes;
    demand(prior.len() == n_classes, "prior must have every class")?;
    let levels = sum_levels(levels, cells)?; // the rows of each level's nodes, [node][class]
    // Number i of the cells' rows, `[cell][class]`, times the log prior of its class.
    let log_prior = |i: usize| cells.rows[i] * prior[i % n_classes].ln();
    // The log likelihood of the rows under the prior alone.
    let prior_likelihood: f64 = (0..cells.rows.len()).map(log_prior).sum();
    let total = |rows: &[f64]| rows.iter().sum();
    // The number of rows in each node of a level.
    let node_totals = |level: &Level| level.rows.chunks_exact(n_classes).map(total).collect();
    let totals_by_level: Vec<Vec<f64>> = levels.iter().map(node_totals).collect();
    let first_strengths: &[f64] = if is_cut_by_class { &FIRST_STRENGTHS } else { &[0.0] };
    let (mut best_strengths, mut best_likelihood) = ([1.0; 2], f64::NEG_INFINITY);
    for &first_strength in first_strengths {
        // In the nodes of a level, `[node][class]`, under each strength: first in the root.
        let mut shares: Vec<ByStrength> = prior.iter().map(|&p| [p; STRENGTHS.len()]).collect();
        for (depth, (level, totals)) in levels.iter().zip(&totals_by_level).enumerate() {
            let is_first = depth == 0 && is_cut_by_class;
            let strengths = if is_first { [first_strength; STRENGTHS.len()] } else { STRENGTHS };
            shares = left_out_shares(level, totals, &strengths, &shares, n_classes);
        }
        let likelihoods = likelihoods(cells.rows, &shares); // logarithms, under each strength
        for (&strength, &likelihood) in STRENGTHS.iter().zip(&likelihoods) {
            if likelihood > best_likelihood {
                best_strengths =
                    [if is_cut_by_class { first_strength } else { strength }, strength];
                best_likelihood = likelihood;
            }
        }
    }
    Ok(ChosenStrengths { strengths: best_strengths, gain: best_likelihood - prior_likelihood })
}

/// The share of each class in a level's nodes without one row of that class, `[node][class]`, under all `strengths` at once: how
/// many rows the shares in a node's parent count. `level` has the number of rows in each node, `[node][class]`, and the node's
/// parent on the level above; `totals` is the number of rows of each node; `shares_above` are the shares in the nodes of the
/// level above, `[node][class]`.
fn left_out_shares(
    level: &Level,
    totals: &[f64],
    strengths: &ByStrength,
    shares_above: &[ByStrength],
    n_classes: usize,
) -> Vec<ByStrength> {
    wide!({
        let mut shares = Vec::with_capacity(level.rows.len());
        let nodes = level.rows.chunks_exact(n_classes).zip(&level.parents).zip(totals);
        for ((rows, &parent), &node_total) in nodes {
            let parent_shares = &shares_above[parent * n_classes..(parent + 1) * n_classes];
            // The node's rows of a class, and the class's share in the parent, by strength.
            for (&rows, parent_share) in rows.iter().zip(parent_shares) {
                let remaining = (rows - 1.0).max(0.0);
                let total = node_total - (rows - remaining); // of all classes, without the row
                let mut share = *parent_share;
                for (share, strength) in share.iter_mut().zip(strengths) {
                    *share = (remaining + strength * *share) / (total + strength);
                }
                shares.push(share);
            }
        }
        shares
    })
}

/// The log likelihood of rows under each strength, Σ rows · log share over all cells and classes. `rows` is the number of rows,
/// `shares` the share of the class under each strength; both are `[cell][class]`.
fn likelihoods(rows: &[f64], shares: &[ByStrength]) -> ByStrength {
    wide!({
        let mut sums = [0.0; STRENGTHS.len()];
        for (&rows, shares) in rows.iter().zip(shares) {
            if rows > 0.0 {
                for (sum, &share) in sums.iter_mut().zip(shares) {
                    *sum += rows * ln(share.max(SMALLEST));
                }
            }
        }
        sums
    })
}

/// The cells (their indices) before which cutting separates the classes best, ascending: by entropy, until a cut costs more bits
/// than it saves. `cells` is the number of rows, `[cell][class]`.
///
/// U. Fayyad and K. Irani, *Multi-interval discretization of continuous-valued attributes for classification learning* (1993).
pub fn cut_by_class(cells: Cells) -> Vec<usize> {
    let n_classes = cells.n_classes;
    let mut cuts = vec![]; // the cells before which there is a cut
    let mut intervals = vec![(0, cells.len())]; // still to be cut: the first cell, and the end
    while let Some((low, high)) = intervals.pop() {
        // The cell of the cut, counted from `low`.
        if let Some(offset) = best_cut(&cells.rows[low * n_classes..high * n_classes], n_classes) {
            let cut = low + offset;
            cuts.push(cut);
            intervals.extend([(low, cut), (cut, high)]);
        }
    }
    cuts.sort_unstable();
    cuts
}

/// The cell (its index) before which a cut leaves the least entropy, the lowest of equally good ones; None if describing the cut
/// costs more than it saves. `rows` is the number of rows, `[cell][class]`.
fn best_cut(rows: &[f64], n_classes: usize) -> Option<usize> {
    let n_cells = rows.len() / n_classes;
    if n_cells < 2 {
        return None;
    }
    // The number of rows, [i][class], of the first i + 1 cells, and of the last i + 1 cells.
    let left = cumulate(rows.chunks_exact(n_classes), n_classes);
    let right = cumulate(rows.chunks_exact(n_classes).rev(), n_classes);
    // The rows of the first, or the last, i + 1 cells, [class].
    let rows_of = |sums: &[f64], i: usize| sums[i * n_classes..(i + 1) * n_classes].to_vec();
    // How many classes have rows.
    let n_present = |rows: &[f64]| rows.iter().filter(|&&rows| rows != 0.0).count() as f64;
    let all_rows = rows_of(&left, n_cells - 1); // [class]
    let n_classes_present = n_present(&all_rows);
    if n_classes_present < 2.0 {
        return None;
    }
    let total: f64 = rows.iter().sum(); // of all rows
    // The bits that describe the classes of the first, and of the last, i + 1 cells.
    let (left_bits, right_bits) = (bits(&left, n_classes), bits(&right, n_classes));
    // The cut after cell i leaves the cells up to i on the left, and n_cells - 1 - i cells on the right, whose sums are
    // number `right_of(i)` of `right`. `cut_bits[i]` are the bits that describe the classes after that cut.
    let right_of = |i: usize| n_cells - 2 - i;
    let cut_bits: Vec<f64> =
        (0..n_cells - 1).map(|i| left_bits[i] + right_bits[right_of(i)]).collect();
    let least_bits = cut_bits.iter().copied().fold(f64::INFINITY, f64::min) + TOLERANCE * total;
    let best = cut_bits.iter().position(|&bits| bits <= least_bits)?; // the cell before the cut
    let all_bits = left_bits[n_cells - 1]; // without a cut
    let saved_bits = all_bits - cut_bits[best];
    // log2(3^k - 2) for k present classes, and by how much the halves' classes × entropy are less: terms of the cost of a cut.
    let class_subsets = n_classes_present * 3_f64.log2()
        + (-2.0 * 3_f64.powf(-n_classes_present)).ln_1p() / 2_f64.ln();
    // The number of classes that have rows times the entropy of the classes in bits per row.
    let entropy = |rows: &[f64], bits: f64| n_present(rows) * bits / rows.iter().sum::<f64>();
    let entropies = entropy(&all_rows, all_bits)
        - entropy(&rows_of(&left, best), left_bits[best])
        - entropy(&rows_of(&right, right_of(best)), right_bits[right_of(best)]);
    let cost = (total - 1.0).max(1.0).log2() + class_subsets - entropies;
    (saved_bits > cost).then_some(best + 1)
}

/// The number of rows of each class in each cell and all cells before it, `[cell][class]`; `cells` has those of each cell,
/// `[class]`.
fn cumulate<'a>(cells: impl Iterator<Item = &'a [f64]>, n_classes: usize) -> Vec<f64> {
    let mut sums: Vec<f64> = vec![]; // of the cells so far, [cell][class]
    for cell in cells {
        let end = sums.len(); // where the cell's sums begin
        sums.extend(cell);
        if end > 0 {
            for class in 0..n_classes {
                sums[end + class] += sums[end - n_classes + class];
            }
        }
    }
    sums
}

/// The bits that describe the classes of the rows of each cell, `[cell]`: the number of rows times the entropy of their classes.
/// `rows` is the number of rows, `[cell][class]`.
fn bits(rows: &[f64], n_classes: usize) -> Vec<f64> {
    wide!({
        // x ln x, 0 for 0.
        let times_log = |x: f64| x * ln(if x > 0.0 { x } else { 1.0 });
        // rows · ln rows, [cell][class].
        let class_nats: Vec<f64> = rows.iter().map(|&rows| times_log(rows)).collect();
        let cells = rows.chunks_exact(n_classes).zip(class_nats.chunks_exact(n_classes));
        cells
            .map(|(rows, class_nats)| {
                let nats = times_log(rows.iter().sum()) - class_nats.iter().sum::<f64>();
                nats * std::f64::consts::LOG2_E
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_have_equally_many_rows() {
        // The counts of four cells, and the node of each cell on each level.
        let levels = halve_by_count(&[1.0, 1.0, 2.0, 4.0], None).unwrap();
        assert_eq!(levels, [vec![0, 0, 0, 1], vec![0, 0, 1, 2], vec![0, 1, 2, 3]]);
        let levels = halve_by_count(&[1.0; 4], Some(&[0, 0, 0, 1])).unwrap();
        assert_eq!(levels, [vec![0, 0, 0, 1], vec![0, 1, 1, 2], vec![0, 1, 2, 3]]);
        assert_eq!(halve_by_count(&[3.0], None).unwrap(), [[0]]);
        assert_eq!(halve_by_count(&[], None).unwrap(), [[0; 0]]);
    }

    #[test]
    fn shares_are_shrunk_to_those_of_the_wider_node() {
        // Two cells with 3 and 1 rows of the first of two classes.
        let cells = Cells::new(&[3.0, 0.0, 1.0, 0.0], 2).unwrap();
        let (prior, left_out) = ([0.5, 0.5], false);
        let levels = [vec![0, 0], vec![0, 1]];
        let by_level = shares(&levels, cells, [4.0, 2.0], &prior, left_out).unwrap();
        assert_eq!(by_level, [vec![0.75, 0.25], vec![4.5 / 5.0, 0.1, 2.5 / 3.0, 0.5 / 3.0]]);
        let left_out = true;
        let by_level = shares(&[vec![0, 1]], cells, [0.0, 0.0], &prior, left_out).unwrap();
        assert_eq!(by_level, [[1.0, 0.0, 1.0, 0.0, 0.5, 0.5, 1.0, 0.0]]);
    }

    #[test]
    fn what_is_not_a_tree_is_refused() {
        // Two cells of two classes: each of these levels has a wrong node, too few cells or no node for each cell.
        let cells = Cells::new(&[3.0, 0.0, 1.0, 0.0], 2).unwrap();
        let (prior, left_out) = ([0.5, 0.5], false);
        for levels in [[vec![0, 2]], [vec![0, -1]], [vec![0]], [vec![0, 0]]] {
            assert!(shares(&levels, cells, [1.0; 2], &prior, left_out).is_err(), "{levels:?}");
        }
        let (prior_of_one_class, is_cut_by_class) = ([1.0], false);
        let levels = [vec![0, 1]];
        assert!(choose_strengths(&levels, cells, &prior_of_one_class, is_cut_by_class).is_err());
        assert!(Cells::new(&[1.0], 2).is_err());
    }

    #[test]
    fn cuts_are_where_the_classes_change() {
        // Rows [cell][class] of two classes.
        let cuts = |rows: &[f64]| cut_by_class(Cells::new(rows, 2).unwrap());
        assert_eq!(cuts(&[12.0, 0.0, 2.0, 2.0, 0.0, 12.0]), [1]);
        assert_eq!(cuts(&[1.0, 1.0, 1.0, 1.0]), [0; 0]);
        assert_eq!(cuts(&[]), [0; 0]);
    }
}
