//! Log-likelihoods of all features added to the log prior, row by row, in one pass.
//!
//! Rows are scored in blocks that stay in the cache: each part adds to a block's sums, `[class][row]`, and the block is then
//! turned into what is wanted. A row's answer does not depend on its neighbours: features are added one by one, in order.

pub mod flags;
pub mod histogram;
pub mod kernel;
pub mod normal;
pub mod table;

#[cfg(test)]
mod tests;

use crate::columns::Columns;
use crate::error::{Error, demand};
use crate::threads;
use std::ops::Range;

/// Rows per block.
pub(crate) const ROWS: usize = 128;
/// Features per tile: with `ROWS` rows of doubles, it stays in the first cache.
pub(crate) const FEATURES: usize = 32;
/// Rows of a tile are this far apart: not a power of two, lest they compete for the same cache lines.
pub(crate) const STRIDE: usize = ROWS + 16;

/// The likelihood of some features.
#[derive(Debug)]
pub enum Part<'a> {
    Normal(normal::Normal<'a>),
    Table(table::Table<'a>),
    Flags(flags::Flags<'a>),
    Histogram(histogram::Histogram<'a>),
    Kernel(kernel::Kernel<'a>),
}

/// Where a part is to add: sums `[class][row]` of a block.
pub(crate) struct Sums<'a> {
    pub values: &'a mut [f64],
    pub rows: Range<usize>,
}

/// Room for a tile of intermediate values.
#[derive(Default)]
pub(crate) struct Scratch {
    pub reals: Vec<f64>,
    pub bits: Vec<u64>,
    pub more_bits: Vec<u64>,
    pub indices: Vec<u32>,
}

/// A tile's room, made when first needed.
pub(crate) fn room<T: Clone + Default>(tile: &mut Vec<T>) -> &mut [T] {
    if tile.is_empty() {
        tile.resize(FEATURES * STRIDE, T::default());
    }
    tile
}

impl<'a> Part<'a> {
    fn columns(&self) -> &Columns<'a> {
        match self {
            Part::Normal(part) => &part.columns,
            Part::Table(part) => &part.columns,
            Part::Flags(part) => &part.columns,
            Part::Histogram(part) => &part.columns,
            Part::Kernel(part) => &part.columns,
        }
    }

    /// Adds the log-likelihood of these features.
    fn add(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        match self {
            Part::Normal(part) => part.add(features, sums, scratch),
            Part::Table(part) => part.add(features, sums, scratch),
            Part::Flags(part) => part.add(features, sums, scratch),
            Part::Histogram(part) => part.add(sums),
            Part::Kernel(part) => part.add(sums),
        }
    }
}

/// Rows to score.
#[derive(Debug)]
pub struct Task<'a> {
    n_rows: usize,
    log_prior: &'a [f64],
    parts: Vec<Part<'a>>,
    features: usize,
}

/// What to make of a row's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    LogJoint,
    Posterior,
    LogPosterior,
}

impl<'a> Task<'a> {
    pub fn new(n_rows: usize, log_prior: &'a [f64], parts: Vec<Part<'a>>) -> Result<Self, Error> {
        demand(
            !log_prior.is_empty(),
            "log_prior must have at least one class",
        )?;
        demand(
            log_prior.iter().all(|x| *x < f64::INFINITY) && log_prior.iter().any(|x| x.is_finite()),
            "log_prior must be finite or -inf, and finite for one class at least",
        )?;
        let mut features = 0_usize;
        for part in &parts {
            part.columns().demand_rows(n_rows)?;
            features += part.columns().features();
        }
        demand(
            n_rows
                .saturating_mul(log_prior.len())
                .saturating_mul(features.max(1))
                <= isize::MAX as usize / 8,
            "the answer does not fit into memory",
        )?;
        Ok(Task {
            n_rows,
            log_prior,
            parts,
            features,
        })
    }

    pub fn n_classes(&self) -> usize {
        self.log_prior.len()
    }

    pub fn features(&self) -> usize {
        self.features
    }

    /// The class of each row, the first of the best; and how many rows no class could explain.
    pub fn classes(&self, threads: usize) -> Result<(Vec<i32>, usize), Error> {
        let mut out = vec![0; self.n_rows];
        let lost = self.blocks(threads, &mut out, 1, |sums, out| {
            let lost = self.restore(sums, out.len());
            best(sums, out);
            lost
        })?;
        Ok((out, lost))
    }

    /// One number per row and class; and how many rows no class could explain.
    pub fn reals(&self, want: Want, threads: usize) -> Result<(Vec<f64>, usize), Error> {
        let width = self.n_classes();
        let mut out = vec![0.0; self.n_rows * width];
        let lost = self.blocks(threads, &mut out, width, |sums, out| {
            let n = out.len() / width;
            if want == Want::LogJoint {
                let lost = (0..n).filter(|&row| is_lost(sums, row)).count();
                write_rows(sums, width, out);
                return lost;
            }
            let lost = self.restore(sums, n);
            match want {
                Want::Posterior => posterior(sums, n),
                _ => log_posterior(sums, n),
            }
            write_rows(sums, width, out);
            lost
        })?;
        Ok((out, lost))
    }

    /// The log-likelihood of each feature on its own, `[row][feature][class]`; rows that no class can explain.
    pub fn parts(&self, threads: usize) -> Result<(Vec<f64>, usize), Error> {
        let (width, n_classes) = (self.features * self.n_classes(), self.n_classes());
        let mut out = vec![0.0; self.n_rows * width];
        if width > 0 {
            let threads = threads::worth(threads, out.len());
            threads::try_pieces(threads, &mut out, ROWS * width, |i, out| {
                self.split(i * ROWS, width, out)
            })?;
        }
        let lost = out
            .chunks_exact(width.max(1))
            .filter(|row| {
                (0..n_classes).all(|class| {
                    let likelihoods = row.iter().skip(class).step_by(n_classes);
                    likelihoods.sum::<f64>() + self.log_prior[class] == f64::NEG_INFINITY
                })
            })
            .count();
        Ok((out, lost))
    }

    fn split(&self, from: usize, width: usize, out: &mut [f64]) -> Result<(), Error> {
        let n_classes = self.n_classes();
        let n = out.len() / width;
        let mut values = vec![0.0; n_classes * ROWS];
        let mut scratch = Scratch::default();
        let mut first = 0;
        for part in &self.parts {
            for feature in 0..part.columns().features() {
                values.fill(0.0);
                let mut sums = Sums {
                    values: &mut values,
                    rows: from..from + n,
                };
                part.add(feature..feature + 1, &mut sums, &mut scratch)
                    .map_err(|error| shift(error, first))?;
                for (row, out) in out.chunks_exact_mut(width).enumerate() {
                    let at = (first + feature) * n_classes;
                    for (class, out) in out[at..at + n_classes].iter_mut().enumerate() {
                        *out = values[class * ROWS + row];
                    }
                }
            }
            first += part.columns().features();
        }
        Ok(())
    }

    /// Sums block by block, and hands each block's sums and its piece of `out` to `finish`, whose answers are added up.
    fn blocks<T: Send>(
        &self,
        threads: usize,
        out: &mut [T],
        width: usize,
        finish: impl Fn(&mut [f64], &mut [T]) -> usize + Sync,
    ) -> Result<usize, Error> {
        let work = self.n_rows.saturating_mul(self.features.max(1));
        let threads = threads::worth(threads, work);
        let blocks = (self.n_rows.div_ceil(16 * threads).div_ceil(ROWS)).clamp(1, 64);
        let lost = threads::try_pieces(threads, out, blocks * ROWS * width, |i, piece| {
            let mut scratch = Scratch::default();
            let mut values = vec![0.0; self.n_classes() * ROWS];
            let mut lost = 0;
            for (b, out) in piece.chunks_mut(ROWS * width).enumerate() {
                let from = (i * blocks + b) * ROWS;
                let rows = from..from + out.len() / width;
                self.sum(rows, &mut values, &mut scratch)?;
                lost += finish(&mut values, out);
            }
            Ok(lost)
        })?;
        Ok(lost.into_iter().sum())
    }

    /// Log prior and log-likelihoods of a block of rows.
    fn sum(
        &self,
        rows: Range<usize>,
        values: &mut [f64],
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        for (sums, &log_prior) in values.chunks_exact_mut(ROWS).zip(self.log_prior) {
            sums.fill(log_prior);
        }
        let mut sums = Sums { values, rows };
        let mut first = 0;
        for part in &self.parts {
            let features = part.columns().features();
            part.add(0..features, &mut sums, scratch)
                .map_err(|error| shift(error, first))?;
            first += features;
        }
        Ok(())
    }

    /// Gives rows that no class can explain the prior back; answers how many.
    fn restore(&self, sums: &mut [f64], n: usize) -> usize {
        let mut lost = 0;
        for row in 0..n {
            if is_lost(sums, row) {
                lost += 1;
                for (class, &log_prior) in self.log_prior.iter().enumerate() {
                    sums[class * ROWS + row] = log_prior;
                }
            }
        }
        lost
    }
}

/// A part numbers its own features; the caller's number counts over all parts.
fn shift(error: Error, first: usize) -> Error {
    match error {
        Error::BadValue {
            fault,
            feature,
            row,
            value,
        } => Error::BadValue {
            fault,
            feature: feature + first,
            row,
            value,
        },
        other => other,
    }
}

fn is_lost(sums: &[f64], row: usize) -> bool {
    sums.iter()
        .skip(row)
        .step_by(ROWS)
        .all(|&x| x == f64::NEG_INFINITY)
}

fn write_rows(sums: &[f64], width: usize, out: &mut [f64]) {
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        for (class, out) in out.iter_mut().enumerate() {
            *out = sums[class * ROWS + row];
        }
    }
}

fn best(sums: &[f64], out: &mut [i32]) {
    let (first, others) = sums.split_at(ROWS);
    let mut highest = [0.0; ROWS];
    highest.copy_from_slice(first);
    let mut found = [0_i32; ROWS];
    for (class, sums) in (1..).zip(others.chunks_exact(ROWS)) {
        for ((x, highest), found) in sums.iter().zip(&mut highest).zip(&mut found) {
            *found = if x > highest { class } else { *found };
            *highest = if x > highest { *x } else { *highest };
        }
    }
    out.copy_from_slice(&found[..out.len()]);
}

fn highest(sums: &[f64]) -> [f64; ROWS] {
    let mut highest = [f64::NEG_INFINITY; ROWS];
    for sums in sums.chunks_exact(ROWS) {
        for (highest, x) in highest.iter_mut().zip(sums) {
            *highest = if x > highest { *x } else { *highest };
        }
    }
    highest
}

/// The sums' exponentials, made to add up to one.
fn posterior(sums: &mut [f64], n: usize) {
    let highest = highest(sums);
    let mut totals = [0.0; ROWS];
    for sums in sums.chunks_exact_mut(ROWS) {
        for ((x, highest), total) in sums[..n].iter_mut().zip(&highest).zip(&mut totals) {
            *x = (*x - highest).exp();
            *total += *x;
        }
    }
    for sums in sums.chunks_exact_mut(ROWS) {
        for (x, total) in sums[..n].iter_mut().zip(&totals) {
            *x /= total;
        }
    }
}

fn log_posterior(sums: &mut [f64], n: usize) {
    let highest = highest(sums);
    let mut totals = [0.0; ROWS];
    for sums in sums.chunks_exact(ROWS) {
        for ((x, highest), total) in sums[..n].iter().zip(&highest).zip(&mut totals) {
            *total += (x - highest).exp();
        }
    }
    for total in &mut totals[..n] {
        *total = total.ln();
    }
    // The highest goes first: added to the logarithm it would swallow it where sums are large.
    for sums in sums.chunks_exact_mut(ROWS) {
        for ((x, highest), total) in sums[..n].iter_mut().zip(&highest).zip(&totals) {
            *x = (*x - highest) - total;
        }
    }
}
