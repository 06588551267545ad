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
    words_per_part: usize,
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

/// A part is about no fewer words than this. Ten folds of 20 Newsgroups took 130 ms with 256, 134 with 4,096 and 144 with 65,536.
const FEWEST_WORDS: usize = 1 << 12;

/// There are no more parts, over all groups, unless there are more groups.
/// Sorting the counts of ten folds of 20 Newsgroups took 19, 21 and 17 ms with 2^10, 2^14 and 2^17, equally long within the noise.
const MOST_PARTS: usize = 1 << 14;

impl Groups {
    /// Sorts the cells of a store by group of texts (fold), on so many threads. Class c of the store has those texts of class
    /// `classes[c]` that are in group number `groups[c]`; classes must ascend within a group.
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
        // Whether all numbers are from 0 to n - 1.
        let are_below = |numbers: &[i64], n: usize| {
            numbers.iter().all(|&number| usize::try_from(number).is_ok_and(|number| number < n))
        };
        demand(
            are_below(classes, i32::MAX as usize) && are_below(groups, n_groups),
            "classes and groups must be numbers from 0 up",
        )?;
        let n_ids = words.n_ids(); // how many words have a number
        let most_parts = MOST_PARTS.div_ceil(n_groups.max(1)); // of each group
        let words_per_part = n_ids.div_ceil(most_parts).max(FEWEST_WORDS);
        // The words and cells of each group, `[part][group]`.
        let parts = threads::try_ranges(threads, n_ids, words_per_part, |ids| {
            cells_by_group(words, ids, classes, groups, n_groups)
        })?;
        Ok(Groups { parts, words_per_part, unit: words.unit(), n_groups, n_ids })
    }

    /// The numbers, in order, of the words that texts of the group number `group` have; an error if there is no such group of
    /// texts.
    pub fn words(&self, group: usize) -> Result<Vec<u32>, Error> {
        self.check_group(group)?;
        Ok(self.group(group).parts.iter().flat_map(|part| part.ids.iter().copied()).collect())
    }

    /// The numbers, in order, of the words that no text outside the group number `group` has. `total` are the words of all
    /// groups of texts together.
    pub fn gone(&self, total: &Words, group: usize) -> Result<Vec<u32>, Error> {
        self.check(total, group)?;
        // A cell's documents: a word that no other text has, has in all texts the documents that it has in the group's.
        let documents = |cell: Cell| cell.counts[1];
        let mut gone = vec![]; // numbers of words
        // The group's words, `ids`, and their cells, part after part.
        for part in self.group(group).parts {
            for (position, &id) in part.ids.iter().enumerate() {
                if part.cells.of(position).map(documents).eq(total.cells(id).map(documents)) {
                    gone.push(id);
                }
            }
        }
        Ok(gone)
    }

    /// A reader of the cells of the group of texts with this number, which must have been checked.
    pub(super) fn group(&self, group: usize) -> Reader<'_> {
        // The group's words and cells, part after part.
        let parts = self.parts.iter().map(|part| &part[group]).collect();
        Reader { parts, words_per_part: self.words_per_part, next: 0 }
    }

    /// The cells of the words with the numbers `ids`, in this order, as if the texts of the group number `group` were not
    /// there. `total` are the words of all groups of texts together.
    pub fn pairs_without(
        &self,
        total: &Words,
        group: usize,
        ids: impl Iterator<Item = u32> + Clone,
    ) -> Result<Pairs, Error> {
        self.check(total, group)?;
        let mut reader = self.group(group); // of the group's cells
        let n_cells = ids.clone().map(|id| total.cells(id).len()).sum();
        let mut pairs = Pairs::with_room(ids.size_hint().0, n_cells);
        for id in ids {
            reader.cells_without(id, total.cells(id)).for_each(|cell| pairs.push(&cell, self.unit));
            pairs.end_word();
        }
        Ok(pairs)
    }

    /// Refuses words (`total`) that are not those of all groups of texts together, and a number of a group of texts that does
    /// not exist.
    pub(super) fn check(&self, total: &Words, group: usize) -> Result<(), Error> {
        demand(
            total.n_ids() == self.n_ids && total.unit() == self.unit,
            "the words must be those of all groups together",
        )?;
        self.check_group(group)
    }

    /// Refuses the number of a group of texts that does not exist.
    fn check_group(&self, group: usize) -> Result<(), Error> {
        match group < self.n_groups {
            true => Ok(()),
            false => Err(Error::malformed(format!("there is no group {group}"))),
        }
    }
}

/// Reads the cells of words in a group; quick if words are asked for in order.
pub(super) struct Reader<'a> {
    /// The group's parts.
    parts: Vec<&'a Group>,
    /// How many words of the store a part is about.
    words_per_part: usize,
    /// The position in `ids` of a part where the next word is expected.
    next: usize,
}

impl<'a> Reader<'a> {
    /// The cells of this group's texts in the part that the word with the number `id` belongs to, and the position of the word
    /// among them; none if no text of the group has the word.
    #[inline(always)]
    fn find(&mut self, id: u32) -> Option<(&'a Cells, usize)> {
        let part = self.parts[id as usize / self.words_per_part]; // numbers of words, and the cells of each
        // Mostly it is the word after the one that was looked for before, at `next`.
        let position = match part.ids.get(self.next) {
            Some(&expected_id) if expected_id == id => Ok(self.next),
            _ => part.ids.binary_search(&id),
        };
        // If the group does not have the word, the error is the position of the next word that it has.
        self.next = position.map_or_else(|next| next, |position| position + 1);
        position.ok().map(|position| (&part.cells, position))
    }

    /// The cells of the word with the number `id` as if the texts of this group were not there. `cells` are the word's cells in
    /// all groups together; cells that become empty are left out.
    #[inline(always)]
    pub(super) fn cells_without(
        &mut self,
        id: u32,
        cells: impl Iterator<Item = Cell>,
    ) -> impl Iterator<Item = Cell> {
        let cells_and_word = self.find(id).into_iter();
        // The word's cells in this group, by class.
        let mut group_cells = cells_and_word.flat_map(|(cells, word)| cells.of(word)).peekable();
        cells.filter_map(move |cell| {
            match group_cells.next_if(|group_cell| group_cell.class == cell.class) {
                None => Some(cell),
                Some(group_cell) => cell.minus(&group_cell).ok().filter(|left| !left.is_empty()),
            }
        })
    }
}

/// The cells of the words with the numbers `ids` by group of texts, `[group]`. Class c of the store has those texts of class
/// `classes[c]` that are in group number `groups[c]`, below `n_groups`.
fn cells_by_group(
    words: &Words,
    ids: Range<usize>,
    classes: &[i64],
    groups: &[i64],
    n_groups: usize,
) -> Result<Vec<Group>, Error> {
    // A group of texts without words.
    let empty = || Group { ids: vec![], cells: Cells::with_room(0, 0, words.unit()) };
    let mut all_groups: Vec<Group> = (0..n_groups).map(|_| empty()).collect(); // numbers of words, and their cells
    let mut word_cells = vec![vec![]; n_groups]; // of one word, `[group][cell]`
    let mut word_groups = vec![]; // numbers of the groups in which this word has cells
    for id in ids {
        for Cell { class, counts } in words.cells(id as u32) {
            // The group that the cell's texts are in, and their class there.
            let (group, class) = (groups[class as usize], classes[class as usize] as u32);
            let cell = Cell { class, counts };
            let cells: &mut Vec<Cell> = &mut word_cells[group as usize];
            if let Some(last) = cells.last_mut() {
                // Several classes of the store are this class.
                if last.absorbs(&cell) {
                    continue;
                }
                demand(last.class < class, "classes must ascend within a group")?;
            } else {
                word_groups.push(group as usize);
            }
            cells.push(cell);
        }
        for group in word_groups.drain(..) {
            all_groups[group].ids.push(id as u32);
            all_groups[group].cells.push(word_cells[group].drain(..));
        }
    }
    Ok(all_groups)
}
