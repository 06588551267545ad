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
const EQUAL: f64 = 1e-12;

/// Rows per cell and class, `[cell][class]`.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    rows: &'a [f64],
    n_classes: usize,
}

impl<'a> Cells<'a> {
    pub fn new(rows: &'a [f64], n_classes: usize) -> Result<Self, Error> {
        demand(
            n_classes > 0 && rows.len().is_multiple_of(n_classes),
            "cells must have one column per class",
        )?;
        Ok(Cells { rows, n_classes })
    }

    fn len(&self) -> usize {
        self.rows.len() / self.n_classes
    }
}

/// Builds the levels of a tree by halving nodes by count, below a first level if there is one. `rows` is the count of each cell.
pub fn halved(rows: &[f64], first: Option<&[i64]>) -> Result<Vec<Vec<i64>>, Error> {
    let n = rows.len();
    demand(first.is_none_or(|first| first.len() == n), "the first level must have every cell")?;
    let mut below = vec![0.0];
    below.extend(rows.iter().scan(0.0, |sum, rows| {
        *sum += rows;
        Some(*sum)
    }));
    let mut edges = vec![0, n];
    let mut levels = vec![];
    if let Some(first) = first {
        let begins = (1..n).filter(|&i| first[i] != first[i - 1]);
        edges = std::iter::once(0).chain(begins).chain([n]).collect();
        levels.push(first.to_vec());
    }
    for _ in 0..DEPTH {
        let mut finer = vec![0];
        for pair in edges.windows(2) {
            finer.extend(halve(&below, pair[0], pair[1]));
            finer.push(pair[1]);
        }
        if finer.len() == edges.len() {
            break;
        }
        edges = finer;
        levels.push(nodes(&edges));
    }
    if levels.last().is_none_or(|_| edges.len() <= n) {
        levels.push((0..n as i64).collect());
    }
    Ok(levels)
}

/// The cell at which cells `low..high` are cut into halves of nearly equal counts; None if there are fewer than two cells.
/// `below` is the number of rows before each cell.
fn halve(below: &[f64], low: usize, high: usize) -> Option<usize> {
    if high - low < 2 {
        return None;
    }
    let half = (below[low] + below[high]) / 2.0;
    let right = below.partition_point(|&sum| sum < half).clamp(low + 1, high - 1);
    let left = (right - 1).max(low + 1);
    let away = |at: usize| (below[at] - half).abs();
    Some(if away(left) <= away(right) { left } else { right })
}

/// The node of each cell, where nodes begin and end at these edges.
fn nodes(edges: &[usize]) -> Vec<i64> {
    let each = edges.windows(2).zip(0..);
    each.flat_map(|(pair, node)| std::iter::repeat_n(node, pair[1] - pair[0])).collect()
}

/// A level: the parent of each node, and the rows of nodes, `[node][class]`.
struct Level {
    parents: Vec<usize>,
    rows: Vec<f64>,
}

/// Sums the rows of cells in the nodes of every level. An error unless the levels are a tree.
fn sum_levels(levels: &[&[i64]], cells: Cells) -> Result<Vec<Level>, Error> {
    let (n, k) = (cells.len(), cells.n_classes);
    let one = vec![0; n];
    let mut above: &[i64] = &one;
    let mut sums = vec![];
    for &level in levels {
        demand(level.len() == n, "a level must have every cell")?;
        demand(level.iter().all(|node| (0..n as i64).contains(node)), "a level has wrong nodes")?;
        let size = level.iter().max().map_or(0, |&node| node as usize + 1);
        let (mut parents, mut rows) = (vec![0; size], vec![0.0; size * k]);
        for (cell, (&node, &wide)) in level.iter().zip(above).enumerate() {
            let node = node as usize;
            parents[node] = wide as usize;
            let cell_rows = &cells.rows[cell * k..(cell + 1) * k];
            let node_rows = &mut rows[node * k..(node + 1) * k];
            node_rows.iter_mut().zip(cell_rows).for_each(|(sum, x)| *sum += x);
        }
        sums.push(Level { parents, rows });
        above = level;
    }
    demand(sums.last().is_some_and(|last| last.parents.len() == n), "each cell must be a node")?;
    Ok(sums)
}

/// P(class | node) on each level, `[node][class]`; if `left_out`, without one row of each class in turn, `[node][row's
/// class][class]`.
pub fn shares(
    levels: &[&[i64]],
    cells: Cells,
    strengths: [f64; 2],
    prior: &[f64],
    left_out: bool,
) -> Result<Vec<Vec<f64>>, Error> {
    let k = cells.n_classes;
    demand(prior.len() == k, "prior must have every class")?;
    let turns = if left_out { k } else { 1 };
    let mut shares: Vec<Vec<f64>> = vec![];
    let whole = prior.repeat(turns);
    for (depth, level) in sum_levels(levels, cells)?.iter().enumerate() {
        let m = strengths[depth.min(1)];
        let above = shares.last().unwrap_or(&whole);
        let mut share = Vec::with_capacity(level.rows.len() * turns);
        for (rows, &parent) in level.rows.chunks_exact(k).zip(&level.parents) {
            let above = above[parent * turns * k..(parent + 1) * turns * k].chunks_exact(k);
            for (row_class, base) in above.enumerate() {
                let remaining = |class: usize| {
                    let removed = if left_out && class == row_class { 1.0 } else { 0.0 };
                    (rows[class] - removed).max(0.0)
                };
                let total = (0..k).map(remaining).sum::<f64>() + m;
                share.extend(base.iter().enumerate().map(|(class, &base)| {
                    if total > 0.0 { (remaining(class) + m * base) / total } else { base }
                }));
            }
        }
        shares.push(share);
    }
    Ok(shares)
}

/// Cuts an array of all columns into the parts of each, which have these lengths.
pub fn split<T>(flat: &[T], lengths: impl Iterator<Item = usize>) -> Result<Vec<&[T]>, Error> {
    let (mut rest, mut parts) = (flat, vec![]);
    for length in lengths {
        let part = rest.split_at_checked(length);
        let (part, later) =
            part.ok_or(Error::malformed("columns have more cells than there are"))?;
        parts.push(part);
        rest = later;
    }
    demand(rest.is_empty(), "there are more cells than columns have")?;
    Ok(parts)
}

/// The trees of several columns: the levels of each, and the rows of its cells.
#[derive(Debug)]
pub struct Forest<'a> {
    trees: Vec<(Vec<&'a [i64]>, Cells<'a>)>,
    n_classes: usize,
}

impl<'a> Forest<'a> {
    pub fn new(
        levels: &'a [i64],
        depths: &[i64],
        sizes: &[i64],
        cells: Cells<'a>,
    ) -> Result<Self, Error> {
        let n_classes = cells.n_classes;
        demand(depths.len() == sizes.len(), "each tree must have levels and cells")?;
        let shapes = depths.iter().zip(sizes);
        let shapes = shapes.map(|(&depth, &size)| (depth.max(0) as usize, size.max(0) as usize));
        let levels = split(levels, shapes.clone().map(|(depth, size)| depth * size))?;
        let rows = split(cells.rows, shapes.clone().map(|(_, size)| size * n_classes))?;
        let trees = shapes.zip(levels).zip(rows).map(|(((depth, size), levels), rows)| {
            let levels = (0..depth).map(|level| &levels[level * size..(level + 1) * size]);
            (levels.collect(), Cells { rows, n_classes })
        });
        Ok(Forest { trees: trees.collect(), n_classes })
    }

    /// P(class | cell), as [`shares`] returns it, of all trees; after the cells of each tree the prior, for values that are in no
    /// cell. Each tree has two strengths.
    pub fn shares(
        &self,
        strengths: &[f64],
        prior: &[f64],
        left_out: bool,
        threads: usize,
    ) -> Result<Vec<f64>, Error> {
        let (strengths, _) = strengths.as_chunks::<2>();
        demand(strengths.len() == self.trees.len(), "each tree must have strengths")?;
        let unknown = prior.repeat(if left_out { self.n_classes } else { 1 });
        let cell_shares = threads::try_map(self.worth(threads), self.trees.len(), |t| {
            let (levels, cells) = &self.trees[t];
            let mut by_level = shares(levels, *cells, strengths[t], prior, left_out)?;
            let mut last = by_level.pop().unwrap_or_default();
            last.extend(&unknown);
            Ok::<_, Error>(last)
        })?;
        Ok(cell_shares.concat())
    }

    /// [`shares`] of a forest with a single tree.
    pub fn shares_by_level(
        &self,
        strengths: [f64; 2],
        prior: &[f64],
        left_out: bool,
    ) -> Result<Vec<Vec<f64>>, Error> {
        demand(self.trees.len() == 1, "levels are those of one tree")?;
        let (levels, cells) = &self.trees[0];
        shares(levels, *cells, strengths, prior, left_out)
    }

    /// [`strengths`] of each tree. `told_apart`: whether its first level was cut by the classes.
    pub fn strengths(
        &self,
        told_apart: &[bool],
        prior: &[f64],
        threads: usize,
    ) -> Result<Vec<([f64; 2], f64)>, Error> {
        demand(told_apart.len() == self.trees.len(), "each tree is told apart or not")?;
        threads::try_map(self.worth(threads), self.trees.len(), |t| {
            let (levels, cells) = &self.trees[t];
            strengths(levels, *cells, prior, told_apart[t])
        })
    }

    fn worth(&self, threads: usize) -> usize {
        threads::worth(threads, self.trees.iter().map(|(_, cells)| cells.rows.len() * 8).sum())
    }
}

/// The levels of a tree, and the strengths of its first level and of all later ones.
pub type Grown = (Vec<Vec<i64>>, [f64; 2]);

/// Grows two trees over the leaves of a column of numbers: one by halving alone, and one that is first cut where the classes
/// differ, if those cuts gain more likelihood than it costs to describe them. `totals` is the number of rows of each leaf.
pub fn grow(cells: Cells, totals: &[f64], prior: &[f64]) -> Result<(Grown, Option<Grown>), Error> {
    let best_strengths = |levels: &[Vec<i64>], told_apart: bool| {
        let levels: Vec<&[i64]> = levels.iter().map(Vec::as_slice).collect();
        strengths(&levels, cells, prior, told_apart)
    };
    let plain = halved(totals, None)?;
    let (plain_strengths, gain) = best_strengths(&plain, false)?;
    let cuts = cuts(cells);
    let mut supervised = None;
    let cost = cuts.len() as f64 * (cells.len().saturating_sub(1).max(2) as f64).ln();
    if !cuts.is_empty() && highest_gain(cells, prior).is_none_or(|most| most - gain > cost) {
        let first: Vec<i64> =
            (0..cells.len()).map(|cell| cuts.partition_point(|&cut| cut <= cell) as i64).collect();
        let levels = halved(totals, Some(&first))?;
        let (strengths, supervised_gain) = best_strengths(&levels, true)?;
        supervised = (supervised_gain - gain > cost).then_some((levels, strengths));
    }
    Ok(((plain, plain_strengths), supervised))
}

/// An upper bound of the gain that [`strengths`] can return for any tree over these cells: if it is not enough, the second tree
/// need not be grown. None if a cell has a fraction of a row.
///
/// For N rows of K classes in a cell, the shares of the classes, each without a row of its own, add up to at most (N - K + m) /
/// (N - 1 + m). So their likelihood is at most that of the shares with all rows, times this factor, which grows with m.
fn highest_gain(cells: Cells, prior: &[f64]) -> Option<f64> {
    let most = STRENGTHS[STRENGTHS.len() - 1];
    let mut gain = 0.0;
    for rows in cells.rows.chunks_exact(cells.n_classes) {
        if rows.iter().any(|&rows| rows > 0.0 && rows < 1.0) {
            return None;
        }
        let total: f64 = rows.iter().sum();
        let there = rows.iter().filter(|&&rows| rows > 0.0).count() as f64;
        for (&rows, &prior) in rows.iter().zip(prior) {
            if rows > 0.0 {
                gain += rows * (rows / total / prior).ln();
            }
        }
        if total > 0.0 {
            gain += total * ((1.0 - there) / (total - 1.0 + most)).ln_1p();
        }
    }
    Some(gain + 1e-9 * gain.abs() + 1e-6) // more than rounding takes away
}

/// The leaf of each bin of numbers, in order: each bin is a leaf if there are at most `most`; otherwise neighbouring bins are
/// joined to leaves with nearly equal numbers of rows. `totals` is the number of rows of each bin.
pub fn quantiles(totals: &[f64], most: usize) -> Vec<i64> {
    let n = totals.len();
    if n <= most {
        return (0..n as i64).collect();
    }
    let mut below = totals.to_vec();
    (1..n).for_each(|bin| below[bin] += below[bin - 1]);
    let mut begins = vec![0; n];
    for part in 1..most {
        let rows = below[n - 1] * part as f64 / most as f64;
        let end = below.partition_point(|&sum| sum < rows);
        if end < n - 1 {
            begins[end + 1] = 1;
        }
    }
    (1..n).for_each(|bin| begins[bin] += begins[bin - 1]);
    begins
}

/// Sums the rows of cells by node, `[node][class]`. `nodes` has the node of each cell.
pub fn sum_by_node(cells: Cells, nodes: &[i64]) -> Vec<f64> {
    let (k, size) = (cells.n_classes, nodes.iter().max().map_or(0, |&node| node as usize + 1));
    let mut sums = vec![0.0; size * k];
    for (cell_rows, &node) in cells.rows.chunks_exact(k).zip(nodes) {
        let sums = &mut sums[node as usize * k..(node as usize + 1) * k];
        sums.iter_mut().zip(cell_rows).for_each(|(sum, x)| *sum += x);
    }
    sums
}

/// A number for each of the [`STRENGTHS`].
type Lanes = [f64; STRENGTHS.len()];

/// The strengths of the first level and of all later ones that make the rows, each left out of its own nodes, most likely; and
/// their log likelihood minus that under the prior alone. `told_apart`: whether the first level was cut by the classes, and has a
/// strength of its own.
pub fn strengths(
    levels: &[&[i64]],
    cells: Cells,
    prior: &[f64],
    told_apart: bool,
) -> Result<([f64; 2], f64), Error> {
    let k = cells.n_classes;
    demand(prior.len() == k, "prior must have every class")?;
    let levels = sum_levels(levels, cells)?;
    let alone: f64 = (0..cells.rows.len()).map(|at| cells.rows[at] * prior[at % k].ln()).sum();
    let firsts: &[f64] = if told_apart { &FIRST_STRENGTHS } else { &[0.0] };
    let mut best = ([1.0; 2], f64::NEG_INFINITY);
    let total = |rows: &[f64]| rows.iter().sum();
    let sizes = |level: &Level| level.rows.chunks_exact(k).map(total).collect();
    let sizes: Vec<Vec<f64>> = levels.iter().map(sizes).collect();
    for &first in firsts {
        let mut above: Vec<Lanes> = prior.iter().map(|&p| [p; STRENGTHS.len()]).collect();
        for (depth, (level, sizes)) in levels.iter().zip(&sizes).enumerate() {
            let m = if depth == 0 && told_apart { [first; STRENGTHS.len()] } else { STRENGTHS };
            above = below(level, sizes, &m, &above, k);
        }
        let likelihood = likelihoods(cells.rows, &above);
        for (m, &likelihood) in STRENGTHS.iter().zip(&likelihood) {
            if likelihood > best.1 {
                best = ([if told_apart { first } else { *m }, *m], likelihood);
            }
        }
    }
    Ok((best.0, best.1 - alone))
}

/// The share of each class in a level's nodes without one row of that class, under all strengths at once.
fn below(level: &Level, sizes: &[f64], m: &Lanes, above: &[Lanes], k: usize) -> Vec<Lanes> {
    wide!({
        let mut shares = Vec::with_capacity(level.rows.len());
        for ((rows, &parent), &size) in level.rows.chunks_exact(k).zip(&level.parents).zip(sizes) {
            for (&rows, base) in rows.iter().zip(&above[parent * k..(parent + 1) * k]) {
                let remaining = (rows - 1.0).max(0.0);
                let total = size - (rows - remaining);
                let mut share = *base;
                for (share, m) in share.iter_mut().zip(m) {
                    *share = (remaining + m * *share) / (total + m);
                }
                shares.push(share);
            }
        }
        shares
    })
}

/// Σ rows · log share, under each strength.
fn likelihoods(rows: &[f64], shares: &[Lanes]) -> Lanes {
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

/// The cells before which cutting separates the classes best: by entropy, until a cut costs more bits than it saves.
///
/// U. Fayyad and K. Irani, *Multi-interval discretization of continuous-valued attributes for classification learning* (1993).
pub fn cuts(cells: Cells) -> Vec<usize> {
    let k = cells.n_classes;
    let (mut cuts, mut parts) = (vec![], vec![(0, cells.len())]);
    while let Some((low, high)) = parts.pop() {
        if let Some(at) = cut(&cells.rows[low * k..high * k], k) {
            cuts.push(low + at);
            parts.extend([(low, low + at), (low + at, high)]);
        }
    }
    cuts.sort_unstable();
    cuts
}

/// The cell before which a cut leaves the least entropy, the lowest of equally good ones; None if describing the cut costs more.
fn cut(rows: &[f64], k: usize) -> Option<usize> {
    let n = rows.len() / k;
    let left = cumulate(rows.chunks_exact(k), k);
    let right = cumulate(rows.chunks_exact(k).rev(), k);
    let whole = left.get(left.len().checked_sub(k)?..)?;
    let there = whole.iter().filter(|&&rows| rows != 0.0).count();
    if n < 2 || there < 2 {
        return None;
    }
    let total: f64 = rows.iter().sum();
    let (before, after) = (bits(&left, k), bits(&right, k));
    let both: Vec<f64> = (0..n - 1).map(|i| before[i] + after[n - 2 - i]).collect();
    let least = both.iter().copied().fold(f64::INFINITY, f64::min) + EQUAL * total;
    let at = both.iter().position(|&bits| bits <= least)?;
    let saved = before[n - 1] - both[at];
    let kinds = there as f64;
    let subsets = kinds * 3_f64.log2() + (-2.0 * 3_f64.powf(-kinds)).ln_1p() / 2_f64.ln();
    let entropy = |rows: &[f64], bits: f64| {
        let there = rows.iter().filter(|&&rows| rows != 0.0).count();
        there as f64 * bits / rows.iter().sum::<f64>()
    };
    let (low, high) = (&left[at * k..(at + 1) * k], &right[(n - 2 - at) * k..(n - 1 - at) * k]);
    let entropies =
        entropy(whole, before[n - 1]) - entropy(low, before[at]) - entropy(high, after[n - 2 - at]);
    let cost = (total - 1.0).max(1.0).log2() + subsets - entropies;
    (saved > cost).then_some(at + 1)
}

/// Cumulative sums of rows, `[cell][class]`.
fn cumulate<'a>(cells: impl Iterator<Item = &'a [f64]>, k: usize) -> Vec<f64> {
    let mut sums: Vec<f64> = vec![];
    for cell in cells {
        let before = sums.len().checked_sub(k);
        sums.extend(cell);
        if let Some(before) = before {
            for class in 0..k {
                sums[before + k + class] += sums[before + class];
            }
        }
    }
    sums
}

/// The bits that describe the classes of the rows of each cell: their number times their entropy.
fn bits(rows: &[f64], k: usize) -> Vec<f64> {
    wide!({
        let times_log = |x: f64| x * ln(if x > 0.0 { x } else { 1.0 });
        let parts: Vec<f64> = rows.iter().map(|&x| times_log(x)).collect();
        let each = rows.chunks_exact(k).zip(parts.chunks_exact(k));
        each.map(|(rows, parts)| {
            let nats = times_log(rows.iter().sum()) - parts.iter().sum::<f64>();
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
        let levels = halved(&[1.0, 1.0, 2.0, 4.0], None).unwrap();
        assert_eq!(levels, [vec![0, 0, 0, 1], vec![0, 0, 1, 2], vec![0, 1, 2, 3]]);
        let below = halved(&[1.0; 4], Some(&[0, 0, 0, 1])).unwrap();
        assert_eq!(below, [vec![0, 0, 0, 1], vec![0, 1, 1, 2], vec![0, 1, 2, 3]]);
        assert_eq!(halved(&[3.0], None).unwrap(), [[0]]);
        assert_eq!(halved(&[], None).unwrap(), [[0; 0]]);
    }

    #[test]
    fn shares_are_shrunk_to_those_of_the_wider_node() {
        let cells = Cells::new(&[3.0, 0.0, 1.0, 0.0], 2).unwrap();
        let found = shares(&[&[0, 0], &[0, 1]], cells, [4.0, 2.0], &[0.5, 0.5], false).unwrap();
        assert_eq!(found, [vec![0.75, 0.25], vec![4.5 / 5.0, 0.1, 2.5 / 3.0, 0.5 / 3.0]]);
        let less = shares(&[&[0, 1]], cells, [0.0, 0.0], &[0.5, 0.5], true).unwrap();
        assert_eq!(less, [[1.0, 0.0, 1.0, 0.0, 0.5, 0.5, 1.0, 0.0]]);
    }

    #[test]
    fn no_tree_gains_more_than_the_highest_gain() {
        let mut state = 1_u64;
        for round in 0..200 {
            let mut rows = vec![];
            for _ in 0..48 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                rows.push(((state >> 33) % (1 << (round % 11))) as f64);
            }
            let cells = Cells::new(&rows, 3).unwrap();
            let totals: Vec<f64> = rows.chunks_exact(3).map(|rows| rows.iter().sum()).collect();
            let first: Vec<i64> = (0..16).map(|cell| i64::from(cell >= 5)).collect();
            let (prior, most) = ([0.2, 0.3, 0.5], highest_gain(cells, &[0.2, 0.3, 0.5]).unwrap());
            for first in [None, Some(&first[..])] {
                let levels = halved(&totals, first).unwrap();
                let levels: Vec<&[i64]> = levels.iter().map(Vec::as_slice).collect();
                let (_, gain) = strengths(&levels, cells, &prior, first.is_some()).unwrap();
                assert!(gain <= most, "{gain} {most} {rows:?}");
            }
        }
        assert_eq!(highest_gain(Cells::new(&[0.5, 1.0], 2).unwrap(), &[0.5, 0.5]), None);
    }

    #[test]
    fn what_is_not_a_tree_is_refused() {
        let cells = Cells::new(&[3.0, 0.0, 1.0, 0.0], 2).unwrap();
        let prior = [0.5, 0.5];
        for levels in [&[0_i64, 2][..], &[0, -1], &[0], &[0, 0]] {
            assert!(shares(&[levels], cells, [1.0; 2], &prior, false).is_err(), "{levels:?}");
        }
        assert!(strengths(&[&[0, 1]], cells, &[1.0], false).is_err());
        assert!(Cells::new(&[1.0], 2).is_err());
    }

    #[test]
    fn cuts_are_where_the_classes_change() {
        let found = |rows: &[f64]| cuts(Cells::new(rows, 2).unwrap());
        assert_eq!(found(&[12.0, 0.0, 2.0, 2.0, 0.0, 12.0]), [1]);
        assert_eq!(found(&[1.0, 1.0, 1.0, 1.0]), [0; 0]);
        assert_eq!(found(&[]), [0; 0]);
    }
}
