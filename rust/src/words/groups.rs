//! Texts in groups, of which one at a time is left out.
//!
//! A store has a class for each group of texts of one class; this is the same cells by group. What is left without a group is
//! what all have together, minus its cells: that costs the group's cells, and not those of all others.

use super::store::{Cell, Cells, Unit};
use super::{Pairs, Words};
use crate::error::{Error, demand};

/// The cells of every group, each in the order of words and classes.
#[derive(Debug)]
pub struct Groups {
    groups: Vec<Group>,
    unit: Unit,
    n_ids: usize,
}

/// Word i of the cells is `ids[i]`.
#[derive(Debug)]
struct Group {
    ids: Vec<u32>,
    cells: Cells,
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
        let empty = || Group { ids: vec![], cells: Cells::with_room(0, 0, words.cells.form) };
        let mut found: Vec<Group> = (0..n_groups).map(|_| empty()).collect();
        let mut these: Vec<(i64, Cell)> = vec![];
        for id in 0..words.n_ids() as u32 {
            these.clear();
            these.extend(words.cells(id).map(|Cell { class, counts }| {
                let (group, class) = (groups[class as usize], classes[class as usize] as u32);
                (group, Cell { class, counts })
            }));
            these.sort_by_key(|(group, _)| *group);
            // Classes of one group that have become one.
            these.dedup_by(|next, kept| next.0 == kept.0 && kept.1.absorbs(&next.1));
            for same in these.chunk_by(|a, b| a.0 == b.0) {
                demand(
                    same.is_sorted_by_key(|(_, cell)| cell.class),
                    "classes must ascend within a group",
                )?;
                let group = &mut found[same[0].0 as usize];
                group.ids.push(id);
                group.cells.push(same.iter().map(|(_, cell)| *cell));
            }
        }
        Ok(Groups { groups: found, unit: words.unit(), n_ids: words.n_ids() })
    }

    fn group(&self, group: usize) -> Result<&Group, Error> {
        let found = self.groups.get(group);
        found.ok_or_else(|| Error::malformed(format!("there is no group {group}")))
    }

    /// The words of a group, in order.
    pub fn words(&self, group: usize) -> Result<Vec<u32>, Error> {
        Ok(self.group(group)?.ids.clone())
    }

    /// The words that no other group has.
    pub fn gone(&self, total: &Words, group: usize) -> Result<Vec<u32>, Error> {
        self.check(total)?;
        let group = self.group(group)?;
        let documents = |cell: Cell| cell.counts[1];
        let is_gone = |&(at, &id): &(usize, &u32)| {
            group.cells.of(at).map(documents).eq(total.cells(id).map(documents))
        };
        let gone = group.ids.iter().enumerate().filter(is_gone);
        Ok(gone.map(|(_, &id)| id).collect())
    }

    /// The cells that these words have in all texts but the group's.
    pub fn pairs_without(
        &self,
        total: &Words,
        group: usize,
        ids: impl Iterator<Item = u32>,
    ) -> Result<Pairs, Error> {
        self.check(total)?;
        let group = self.group(group)?;
        let mut pairs = Pairs::new();
        for id in ids {
            let at = group.ids.binary_search(&id).ok();
            let mut gone = at.into_iter().flat_map(|at| group.cells.of(at)).peekable();
            for cell in total.cells(id) {
                let left = match gone.next_if(|gone| gone.class == cell.class) {
                    None => Some(cell),
                    Some(gone) => cell.minus(&gone).ok().filter(|left| !left.is_empty()),
                };
                if let Some(left) = left {
                    pairs.push(&left, self.unit);
                }
            }
            pairs.end_word();
        }
        Ok(pairs)
    }

    fn check(&self, total: &Words) -> Result<(), Error> {
        demand(
            total.n_ids() == self.n_ids && total.unit() == self.unit,
            "the words must be those of all groups together",
        )
    }
}
