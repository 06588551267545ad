//! What a column has in a class: whole or real, narrow or wide.

use super::task::EXACT;
use crate::expansion::{Expansion, two_sum};
use crate::words::Total;
use crate::words::add_up::{Found, Lane};
use crate::words::store::{Counts, Sums};

/// What a column has in one class so far. A cell that counts nothing adds nothing.
pub trait Adding: Copy + Default + Send {
    fn add(&mut self, x: f64, weight: f64, times: u64);
    fn merge(&mut self, other: &Self);
    fn is_used(&self) -> bool;
    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found;
}

/// Occurrences in the upper half, documents in the lower.
#[derive(Clone, Copy, Default)]
pub struct NarrowCell(u64);

impl Adding for NarrowCell {
    #[inline(always)]
    fn add(&mut self, x: f64, _: f64, _: u64) {
        self.0 += (u64::from(x as u32) << 32) + u64::from(x != 0.0);
    }

    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
    }

    fn is_used(&self) -> bool {
        self.0 != 0
    }

    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found {
        let (mut ids, mut counts, mut totals) = (vec![], vec![], [0, 0]);
        for (id, NarrowCell(cell)) in cells {
            let cell = [(cell >> 32) as u32, cell as u32];
            ids.push(id);
            counts.push(cell);
            totals = [0, 1].map(|i| totals[i] + u64::from(cell[i]));
        }
        whole_found(class, ids, Lane::Narrow(counts), texts.rows, totals)
    }
}

#[derive(Clone, Copy, Default)]
pub struct WideCell(Counts);

impl Adding for WideCell {
    #[inline(always)]
    fn add(&mut self, x: f64, _: f64, times: u64) {
        self.0[0] += x as u64 * times;
        self.0[1] += u64::from(x != 0.0) * times;
    }

    fn merge(&mut self, other: &Self) {
        self.0[0] += other.0[0];
        self.0[1] += other.0[1];
    }

    fn is_used(&self) -> bool {
        self.0[1] != 0
    }

    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found {
        let (mut ids, mut counts, mut totals) = (vec![], vec![], [0, 0]);
        for (id, WideCell(cell)) in cells {
            ids.push(id);
            counts.push(cell);
            totals = [0, 1].map(|i| totals[i] + cell[i]);
        }
        whole_found(class, ids, Lane::Wide(counts), texts.rows, totals)
    }
}

#[derive(Clone, Copy, Default)]
pub struct RealCell {
    pub counts: Counts,
    pub sums: Sums,
}

/// What a real number of occurrences counts beside its sum: itself if it is whole, else one.
#[inline(always)]
pub fn tokens(x: f64) -> u64 {
    let whole = x as u64;
    if whole as f64 == x && x < EXACT {
        whole
    } else {
        1
    }
}

impl RealCell {
    pub fn merge(&mut self, other: &Self) {
        for i in 0..2 {
            self.counts[i] += other.counts[i];
            self.sums[i].merge(&other.sums[i]);
        }
    }
}

/// A sum of two doubles, as exact as its terms are few beside 2^50.
#[derive(Clone, Copy, Default)]
struct Pair(f64, f64);

impl Pair {
    #[inline(always)]
    fn add(&mut self, x: f64) {
        let (sum, lost) = two_sum(self.0, x);
        *self = Pair(sum, self.1 + lost);
    }

    fn merge(&mut self, other: &Pair) {
        self.add(other.0);
        self.add(other.1);
    }

    fn expansion(self) -> Expansion {
        let mut sum = Expansion::default();
        sum.add(self.0);
        sum.add(self.1);
        sum
    }
}

/// Real sums of rows that weigh one: their documents are their number.
#[derive(Clone, Copy, Default)]
pub struct RealOnes {
    occurrences: Pair,
    tokens: u32,
    documents: u32,
}

impl Adding for RealOnes {
    #[inline(always)]
    fn add(&mut self, x: f64, _: f64, _: u64) {
        let there = u32::from(x != 0.0);
        self.tokens += tokens(x) as u32 * there;
        self.documents += there;
        self.occurrences.add(x);
    }

    fn merge(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.documents += other.documents;
        self.occurrences.merge(&other.occurrences);
    }

    fn is_used(&self) -> bool {
        self.documents != 0
    }

    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found {
        let real = |cell: Self| RealCell {
            counts: [cell.tokens, cell.documents].map(u64::from),
            sums: [
                cell.occurrences.expansion(),
                Expansion::from_whole(u64::from(cell.documents)),
            ],
        };
        real_found(class, cells.map(|(id, cell)| (id, real(cell))), texts)
    }
}

/// Real sums of rows that have weights.
#[derive(Clone, Copy, Default)]
pub struct RealWeighted {
    counts: Counts,
    sums: [Pair; 2],
}

impl Adding for RealWeighted {
    #[inline(always)]
    fn add(&mut self, x: f64, weight: f64, times: u64) {
        if x != 0.0 {
            self.counts[0] += tokens(x) * times;
            self.counts[1] += times;
            self.sums[0].add(x * weight);
            self.sums[1].add(weight);
        }
    }

    fn merge(&mut self, other: &Self) {
        for i in 0..2 {
            self.counts[i] += other.counts[i];
            self.sums[i].merge(&other.sums[i]);
        }
    }

    fn is_used(&self) -> bool {
        self.counts[1] != 0
    }

    fn found(class: usize, cells: impl Iterator<Item = (u32, Self)>, texts: Total) -> Found {
        let real = |cell: Self| RealCell {
            counts: cell.counts,
            sums: cell.sums.map(Pair::expansion),
        };
        real_found(class, cells.map(|(id, cell)| (id, real(cell))), texts)
    }
}

pub fn whole_found(class: usize, ids: Vec<u32>, counts: Lane, rows: u64, totals: Counts) -> Found {
    let whole = |rows| Total {
        rows,
        weight: Expansion::default(),
    };
    Found {
        class: class as u32,
        ids,
        counts,
        real: false,
        sums: vec![],
        texts: whole(rows),
        totals: totals.map(whole),
    }
}

pub fn real_found(
    class: usize,
    cells: impl Iterator<Item = (u32, RealCell)>,
    texts: Total,
) -> Found {
    let (mut ids, mut counts, mut sums) = (vec![], vec![], vec![]);
    let mut totals = [Total::default(); 2];
    for (id, cell) in cells {
        ids.push(id);
        counts.push(cell.counts);
        sums.push(cell.sums);
        for (total, (&rows, sum)) in totals.iter_mut().zip(cell.counts.iter().zip(&cell.sums)) {
            total.rows += rows;
            total.weight.merge(sum);
        }
    }
    Found {
        class: class as u32,
        ids,
        counts: Lane::Wide(counts),
        real: true,
        sums,
        texts,
        totals,
    }
}
