//! Words as values: a change makes another value, costs what changes, and leaves the old value as it was.
//!
//! Values that were made from one another share a base, the words after the last change, and a layer, the changes that led there.
//! The newest value is the base itself. An older value undoes the changes made since: in the base if nobody has a newer value any
//! more, else in a copy. Changes before the oldest value in use are dropped. Once the layer has grown too large, the next value
//! begins a base of its own.

use super::Words;
use super::class_sums::ClassSums;
use crate::error::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A layer may have one cell for so many of the base, or `FEW` cells. Learning 300 posts one by one takes the same time within 6
/// % with `FEW` from 1,024 to 262,144; with `SHARE` 1, 2 and 16 it takes 37, 52 and 173 ms.
const SHARE: usize = 2;
const FEW: usize = 1 << 14;

/// One of the values that share a base.
#[derive(Debug)]
pub struct Version(Mutex<Place>);

#[derive(Clone, Debug)]
struct Place {
    /// What the values that were made from one another share.
    base: Arc<Mutex<Base>>,
    /// Which value of the base it is. The base holds a weak pointer to it, and so knows whether the value is still in use.
    number: Arc<u64>,
}

#[derive(Debug)]
struct Base {
    /// The words after the last change.
    words: Arc<Words>,
    /// The number of the newest value, which is `words`; dropped once nobody has that value.
    newest: Weak<u64>,
    /// The number of the newest value.
    number: u64,
    /// The changes that led to `words`, the oldest first.
    layer: VecDeque<Change>,
}

/// A change of the words.
#[derive(Clone, Debug)]
struct Change {
    /// The number of the value before; dropped once nobody has that value.
    before: Weak<u64>,
    /// The number of the value before.
    number: u64,
    /// How many words had a number before.
    n_ids: usize,
    /// Whether `sums` were added; else they were subtracted.
    adds: bool,
    /// What changed, per class.
    sums: Vec<ClassSums>,
}

impl Change {
    /// How many cells were changed.
    fn n_cells(&self) -> usize {
        self.sums.iter().map(|sums| sums.ids.len()).sum()
    }

    /// Takes the change back in `words`: subtracts the sums that it added, or adds those that it subtracted. Words that it
    /// numbered keep their numbers.
    fn undo(mut self, words: &mut Words) -> Result<(), Error> {
        match self.adds {
            // `false`: counts may be damped, and need no further check.
            true => words.take_sums(&mut self.sums, false)?,
            // On one thread.
            false => words.add_sums(&mut self.sums, 1),
        }
        Ok(())
    }
}

/// Takes changes back in `words`, the last one first, and removes the words that they numbered.
fn undo(words: &mut Words, changes: impl DoubleEndedIterator<Item = Change>) {
    let mut old_n_ids = words.n_ids(); // before the change
    let mut outcome = Ok(()); // the first error, if any
    for change in changes.rev() {
        old_n_ids = change.n_ids;
        outcome = outcome.and_then(|()| change.undo(words));
    }
    let outcome = outcome.and_then(|()| words.truncate(old_n_ids));
    assert!(outcome.is_ok(), "what was changed can be taken back");
}

/// Locks what is shared, even if a thread panicked that held it.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Base {
    /// Drops changes from the front of the layer, where the oldest are, while nobody has the value before the change (no strong
    /// pointers to its number are left).
    fn trim(&mut self) {
        while self.layer.front().is_some_and(|change| change.before.strong_count() == 0) {
            self.layer.pop_front();
        }
    }

    /// The position in the layer (the changes that led to the newest value) of the change after the value with this number;
    /// values of a base are numbered from 0, and `self.number` is the newest. The layer's length for the newest value; none if
    /// the change was dropped.
    fn position(&self, number: u64) -> Option<usize> {
        if number == self.number {
            return Some(self.layer.len());
        }
        self.layer.iter().position(|change| change.number == number)
    }

    /// Whether somebody has a value made by the change at this position of the layer or by a later one. `newest` and `before`
    /// are weak pointers to the numbers of values.
    fn is_used_after(&self, position: usize) -> bool {
        // The values before later changes, as weak pointers.
        let mut later_values = self.layer.iter().skip(position + 1).map(|change| &change.before);
        self.newest.strong_count() > 0 || later_values.any(|number| number.strong_count() > 0)
    }

    /// Whether the changes in the layer have more than `FEW` cells and more than one for [`SHARE`] cells of the words, so that
    /// the next value begins a base of its own.
    fn is_crowded(&self) -> bool {
        let layer_cells: usize = self.layer.iter().map(Change::n_cells).sum();
        layer_cells > FEW.max(self.words.cells.len / SHARE)
    }
}

impl Place {
    /// The only value of a new base: its words are `words`, and there are no changes yet.
    fn new(words: Words) -> Self {
        // Values of a base are numbered from 0.
        let number = Arc::new(0);
        let newest = Arc::downgrade(&number); // dead once nobody has the value
        let base = Base { words: Arc::new(words), newest, number: 0, layer: VecDeque::new() };
        Place { base: Arc::new(Mutex::new(base)), number }
    }

    /// Makes this value the newest of its base by undoing all later changes, or, if somebody has a later value, the only one of
    /// a base of its own. `self.number` is the number of this value in its base.
    fn settle(&mut self) {
        // The words of the newest value, and the changes that led there, `layer`.
        let mut base = lock(&self.base);
        base.trim();
        // Where the changes after this value begin in the layer.
        let Some(first_change) = base.position(*self.number).filter(|&at| at < base.layer.len())
        else {
            return;
        };
        if base.is_used_after(first_change) {
            let mut words = (*base.words).clone();
            undo(&mut words, base.layer.range(first_change..).cloned());
            drop(base);
            *self = Place::new(words);
            return;
        }
        let changes = base.layer.split_off(first_change); // after this value
        undo(Arc::make_mut(&mut base.words), changes.into_iter());
        (base.newest, base.number) = (Arc::downgrade(&self.number), *self.number);
    }
}

impl Version {
    /// A value that shares nothing with others.
    pub fn new(words: Words) -> Self {
        Version(Mutex::new(Place::new(words)))
    }

    /// The words of this value; none if that needs waiting for another thread that has locked the value or its base, or undoing
    /// changes.
    pub fn try_words(&self) -> Option<Arc<Words>> {
        let place = self.0.try_lock().ok()?; // the base of the value, and its number there
        let mut base = place.base.try_lock().ok()?; // what is shared with other values
        if base.number != *place.number {
            return None;
        }
        base.trim();
        Some(base.words.clone())
    }

    /// The words of this value. Waits for other threads and undoes newer changes.
    pub fn words(&self) -> Arc<Words> {
        let mut place = lock(&self.0); // which base the value has, and its number there
        place.settle(); // now it is the newest value of its base
        lock(&place.base).words.clone()
    }

    /// The value after a change; this one stays as it was. `change` changes the words and, if its second argument is true,
    /// returns the sums per class that it added (if `adds`) or subtracted, by which the change can be undone. Its error is passed
    /// on.
    pub fn change(
        &self,
        adds: bool,
        change: impl FnOnce(&mut Words, bool) -> Result<Vec<ClassSums>, Error>,
    ) -> Result<Version, Error> {
        let mut place = lock(&self.0); // which base the value has, and its number there
        place.settle(); // now it is the newest value of its base
        // The words of the newest value, and the changes that led there, `layer`.
        let mut base = lock(&place.base);
        if base.words.cells.len == 0 || base.is_crowded() {
            let mut words = (*base.words).clone();
            // A new base has no layer, so its sums are not needed.
            change(&mut words, false)?;
            return Ok(Version::new(words));
        }
        let n_ids = base.words.n_ids(); // how many words have a number before the change
        let words = Arc::make_mut(&mut base.words); // copied if somebody reads them
        let sums = match change(words, true) {
            Ok(sums) => sums,
            Err(error) => {
                words.truncate(n_ids)?;
                return Err(error);
            }
        };
        let (before, number) = (Arc::downgrade(&place.number), *place.number); // of this value
        base.layer.push_back(Change { before, number, n_ids, adds, sums });
        let number = Arc::new(number + 1); // of the value after the change
        (base.newest, base.number) = (Arc::downgrade(&number), *number);
        Ok(Version(Mutex::new(Place { base: place.base.clone(), number })))
    }

    /// The numbers of the words that changed between this value and `old`, in order; none if the values have different bases, or
    /// the changes between them were dropped.
    pub fn changed_since(&self, old: &Version) -> Option<Vec<u32>> {
        // Which base the values have, and their numbers there.
        let (new, old) = (lock(&self.0).clone(), lock(&old.0).clone());
        if !Arc::ptr_eq(&new.base, &old.base) {
            return None;
        }
        let base = lock(&new.base);
        // Where in the layer the changes after each value begin: those between both positions made one value from the other.
        let (old_position, new_position) =
            (base.position(*old.number)?, base.position(*new.number)?);
        let changes =
            base.layer.range(old_position.min(new_position)..old_position.max(new_position));
        let sums = changes.flat_map(|change| &change.sums); // that the changes added or subtracted
        let mut changed_ids: Vec<u32> = sums.flat_map(|sums| sums.ids.iter().copied()).collect();
        changed_ids.sort_unstable();
        changed_ids.dedup();
        Some(changed_ids)
    }
}
