//! Texts in groups, of which one at a time is left out.
//!
//! A store has a class for each group of texts of one class; this is the same cells by group. What is left without a group is
//! what all have together, minus its cells: that costs the group's cells, and not those of all others.

use super::store::{Cell, Counts, Sums};
use super::{Pairs, Words};
use crate::error::{Error, demand};

/// The cells of every group, each in the order of words and classes.
#[derive(Debug)]
pub struct Groups {
    groups: Vec<Group>,
    real: bool,
    n_ids: usize,
}

#[derive(Debug, Default)]
struct Group {
    ids: Vec<u32>,
    classes: Vec<u32>,
    counts: Vec<Counts>,
    sums: Vec<Sums>,
}

impl Group {
    fn push(&mut self, id: u32, cell: &Cell, real: bool) {
        // Classes of one group that have become one.
        if self.ids.last() == Some(&id) && self.classes.last() == Some(&cell.class) {
            let last = self.ids.len() - 1;
            for i in 0..2 {
                self.counts[last][i] += cell.counts[i];
            }
            if real {
                self.sums[last][0].merge(&cell.sums[0]);
                self.sums[last][1].merge(&cell.sums[1]);
            }
            return;
        }
        self.ids.push(id);
        self.classes.push(cell.class);
        self.counts.push(cell.counts);
        if real {
            self.sums.push(cell.sums);
        }
    }

    fn cell(&self, at: usize) -> Cell {
        Cell {
            class: self.classes[at],
            counts: self.counts[at],
            sums: self.sums.get(at).copied().unwrap_or_default(),
        }
    }
}

/// A cell without another of its class; nothing if no text is left.
fn left(cell: Cell, gone: &Cell, real: bool) -> Option<Cell> {
    let [occurrences, documents] = [0, 1].map(|i| cell.counts[i].saturating_sub(gone.counts[i]));
    if documents == 0 {
        return None;
    }
    let mut sums = cell.sums;
    for (sum, gone) in sums.iter_mut().zip(&gone.sums) {
        if real {
            sum.take(gone);
        }
    }
    Some(Cell {
        counts: [occurrences, documents],
        sums,
        ..cell
    })
}

impl Groups {
    /// `classes[c]` and `groups[c]` are what class c of the store stands for; classes ascend within a group.
    pub fn new(
        words: &Words,
        classes: &[i64],
        groups: &[i64],
        n_groups: usize,
    ) -> Result<Groups, Error> {
        demand(
            classes.len() == words.n_classes() && groups.len() == words.n_classes(),
            "classes and groups must have one number per class of the words",
        )?;
        let fits = |n: usize| move |&x: &i64| usize::try_from(x).is_ok_and(|x| x < n);
        demand(
            classes.iter().all(fits(i32::MAX as usize)) && groups.iter().all(fits(n_groups)),
            "classes and groups must be numbers from 0 up",
        )?;
        let real = words.is_real();
        let mut found: Vec<Group> = (0..n_groups).map(|_| Group::default()).collect();
        for id in 0..words.n_ids() as u32 {
            for cell in words.cells(id) {
                let class = classes[cell.class as usize] as u32;
                let group = &mut found[groups[cell.class as usize] as usize];
                if group.ids.last() == Some(&id) && group.classes.last() > Some(&class) {
                    return Err(Error::malformed("classes must ascend within a group"));
                }
                group.push(id, &Cell { class, ..cell }, real);
            }
        }
        Ok(Groups {
            groups: found,
            real,
            n_ids: words.n_ids(),
        })
    }

    fn group(&self, group: usize) -> Result<&Group, Error> {
        let found = self.groups.get(group);
        found.ok_or_else(|| Error::malformed(format!("there is no group {group}")))
    }

    /// The words of a group, in order.
    pub fn words(&self, group: usize) -> Result<Vec<u32>, Error> {
        let mut ids = self.group(group)?.ids.clone();
        ids.dedup();
        Ok(ids)
    }

    /// The words that no other group has.
    pub fn gone(&self, total: &Words, group: usize) -> Result<Vec<u32>, Error> {
        self.check(total)?;
        let group = self.group(group)?;
        let mut gone = vec![];
        for run in Runs::new(&group.ids) {
            let id = group.ids[run.start];
            let documents = |counts: &[Counts]| counts.iter().map(|counts| counts[1]).sum::<u64>();
            let all: u64 = total.cells(id).map(|cell| cell.counts[1]).sum();
            if documents(&group.counts[run]) >= all {
                gone.push(id);
            }
        }
        Ok(gone)
    }

    /// The cells that these words, in order, have in all texts but the group's.
    pub fn pairs_without(
        &self,
        total: &Words,
        group: usize,
        ids: impl Iterator<Item = u32>,
    ) -> Result<Pairs, Error> {
        self.check(total)?;
        let group = self.group(group)?;
        let mut pairs = Pairs::new(self.real);
        let (mut at, mut before) = (0, None);
        for id in ids {
            demand(before < Some(id), "ids must ascend")?;
            before = Some(id);
            at += group.ids[at..].partition_point(|&other| other < id);
            for cell in total.cells(id) {
                let same = group.ids.get(at) == Some(&id) && group.classes[at] == cell.class;
                if !same {
                    pairs.push(&cell);
                    continue;
                }
                if let Some(cell) = left(cell, &group.cell(at), self.real) {
                    pairs.push(&cell);
                }
                at += 1;
            }
            pairs.end_word();
        }
        Ok(pairs)
    }

    fn check(&self, total: &Words) -> Result<(), Error> {
        demand(
            total.n_ids() == self.n_ids && total.is_real() == self.real,
            "the words must be those of all groups together",
        )
    }
}

/// Ranges of equal numbers, one after the other.
struct Runs<'a> {
    numbers: &'a [u32],
    at: usize,
}

impl<'a> Runs<'a> {
    fn new(numbers: &'a [u32]) -> Self {
        Runs { numbers, at: 0 }
    }
}

impl Iterator for Runs<'_> {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let (start, first) = (self.at, *self.numbers.get(self.at)?);
        while self.numbers.get(self.at) == Some(&first) {
            self.at += 1;
        }
        Some(start..self.at)
    }
}
