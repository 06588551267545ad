//! Groups of texts (folds), of which one at a time is left out.
//!
//! The store has a class for each class and group; here its cells are sorted by group. The counts without a group are those of all
//! texts minus those of the group, so leaving a group out costs as much as its own cells.

use super::store::{Cell, Cells, Unit};
use super::{Pairs, Words};
use crate::error::{Error, demand};
use crate::threads;
use std::ops::Range;

/// The cells of every group, in the order of words and classes. Words are cut into parts, which threads sort.
#[derive(Debug)]
pub struct Groups {
    /// `[part][group]`.
    parts: Vec<Vec<Group>>,
    /// How many words of the store a part is about.
    size: usize,
    /// The unit of all counts.
    unit: Unit,
    n_groups: usize,
    /// How many words of the store have a number.
    n_ids: usize,
}

/// A part of a group. Word i of the cells is `ids[i]`.
#[derive(Debug)]
struct Group {
    /// The numbers of the words that the group has, in order.
    ids: Vec<u32>,
    /// Their cells, words numbered by position in `ids`.
    cells: Cells,
}

/// A part is about no fewer words. Ten folds of 20 Newsgroups took 130 ms with 256, 134 with 4,096 and 144 with 65,536.
const FEWEST: usize = 1 << 12;

/// There are no more parts, over all groups, unless there are more groups.
const MOST_PARTS: usize = 1 << 14;

impl Groups {
    /// Class c of the store is class `classes[c]` of group `groups[c]`; classes must ascend within a group.
    pub fn new(
        words: &Words,
        classes: &[i64],
        groups: &[i64],
        n_groups: usize,
        threads: usize,
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
        let n_ids = words.n_ids();
        let size = n_ids.div_ceil(MOST_PARTS.div_ceil(n_groups.max(1))).max(FEWEST);
        let parts = threads::try_ranges(threads, n_ids, size, |ids| {
            of_words(words, ids, classes, groups, n_groups)
        })?;
        Ok(Groups { parts, size, unit: words.unit(), n_groups, n_ids })
    }

    /// The numbers of the words that a group has, in order; an error if the group does not exist.
    pub fn words(&self, group: usize) -> Result<Vec<u32>, Error> {
        self.check_group(group)?;
        Ok(self.group(group).parts.iter().flat_map(|part| part.ids.iter().copied()).collect())
    }

    /// The numbers, in order, of the words that no other group has. `total` are the words of all groups together.
    pub fn gone(&self, total: &Words, group: usize) -> Result<Vec<u32>, Error> {
        self.check(total, group)?;
        let documents = |cell: Cell| cell.counts[1];
        let mut gone = vec![];
        for part in self.group(group).parts {
            let is_gone = |&(at, &id): &(usize, &u32)| {
                part.cells.of(at).map(documents).eq(total.cells(id).map(documents))
            };
            gone.extend(part.ids.iter().enumerate().filter(is_gone).map(|(_, &id)| id));
        }
        Ok(gone)
    }

    /// A reader of a group, whose number must have been checked.
    pub(super) fn group(&self, group: usize) -> Reader<'_> {
        let parts = self.parts.iter().map(|part| &part[group]).collect();
        Reader { parts, size: self.size, next: 0 }
    }

    /// The cells of the words `ids`, in this order, without the texts of a group. `total` are the words of all groups together.
    pub fn pairs_without(
        &self,
        total: &Words,
        group: usize,
        ids: impl Iterator<Item = u32> + Clone,
    ) -> Result<Pairs, Error> {
        self.check(total, group)?;
        let mut of_group = self.group(group);
        let left = match self.unit {
            Unit::One => left_of_whole,
            Unit::Part => left_of_parts,
        };
        let cells = ids.clone().map(|id| total.cells(id).len()).sum();
        let mut pairs = Pairs::with_room(ids.size_hint().0, cells);
        for id in ids {
            let found = of_group.find(id).into_iter();
            let mut gone = found.flat_map(|(cells, at)| cells.of(at)).peekable();
            for cell in total.cells(id) {
                let left = match gone.next_if(|gone| gone.class == cell.class) {
                    None => Some(cell),
                    Some(gone) => left(cell, &gone),
                };
                if let Some(left) = left {
                    pairs.push(&left, self.unit);
                }
            }
            pairs.end_word();
        }
        Ok(pairs)
    }

    /// Refuses words that are not those of all groups together, and a group that does not exist.
    pub(super) fn check(&self, total: &Words, group: usize) -> Result<(), Error> {
        demand(
            total.n_ids() == self.n_ids && total.unit() == self.unit,
            "the words must be those of all groups together",
        )?;
        self.check_group(group)
    }

    /// Refuses a group that does not exist.
    fn check_group(&self, group: usize) -> Result<(), Error> {
        match group < self.n_groups {
            true => Ok(()),
            false => Err(Error::malformed(format!("there is no group {group}"))),
        }
    }
}

/// Finds the cells of words in a group; quick if words are asked for in order.
pub(super) struct Reader<'a> {
    /// The group's parts.
    parts: Vec<&'a Group>,
    /// How many words of the store a part is about.
    size: usize,
    /// The place in `ids` of a part where the next word is expected.
    next: usize,
}

impl<'a> Reader<'a> {
    /// The cells of the word's part and the word's place among them; none if the group does not have the word.
    #[inline(always)]
    pub(super) fn find(&mut self, id: u32) -> Option<(&'a Cells, usize)> {
        let part = self.parts[id as usize / self.size];
        // Mostly it is the next one.
        let at = match part.ids.get(self.next) {
            Some(&expected) if expected == id => Ok(self.next),
            _ => part.ids.binary_search(&id),
        };
        self.next = at.map_or_else(|at| at, |at| at + 1);
        at.ok().map(|at| (&part.cells, at))
    }
}

/// A cell without the texts of a group, whose cell is `gone`; none if nothing is left.
fn left_of_parts(cell: Cell, gone: &Cell) -> Option<Cell> {
    cell.minus(gone).ok().filter(|left| !left.is_empty())
}

/// [`left_of_parts`] of whole counts. If no occurrences are left then no documents are, and the other way round.
#[inline(always)]
fn left_of_whole(mut cell: Cell, gone: &Cell) -> Option<Cell> {
    for (count, gone) in cell.counts.iter_mut().zip(&gone.counts) {
        count.0[0] = count.0[0].checked_sub(gone.0[0]).filter(|&left| left > 0)?;
    }
    Some(cell)
}

/// Sorts the cells of the words `ids` by group, `[group]`. Class c of the store is class `classes[c]` of group `groups[c]`.
fn of_words(
    words: &Words,
    ids: Range<usize>,
    classes: &[i64],
    groups: &[i64],
    n_groups: usize,
) -> Result<Vec<Group>, Error> {
    let empty = || Group { ids: vec![], cells: Cells::with_room(0, 0, words.unit()) };
    let mut all_groups: Vec<Group> = (0..n_groups).map(|_| empty()).collect();
    // A word's cells by group, and the groups in which it has some.
    let (mut own, mut filled) = (vec![vec![]; n_groups], vec![]);
    for id in ids {
        for Cell { class, counts } in words.cells(id as u32) {
            let (group, class) = (groups[class as usize], classes[class as usize] as u32);
            let cell = Cell { class, counts };
            let cells: &mut Vec<Cell> = &mut own[group as usize];
            if let Some(last) = cells.last_mut() {
                // Several classes of the store are this class.
                if last.absorbs(&cell) {
                    continue;
                }
                demand(last.class < class, "classes must ascend within a group")?;
            } else {
                filled.push(group as usize);
            }
            cells.push(cell);
        }
        for group in filled.drain(..) {
            all_groups[group].ids.push(id as u32);
            all_groups[group].cells.push(own[group].drain(..));
        }
    }
    Ok(all_groups)
}
