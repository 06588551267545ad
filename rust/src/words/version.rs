//! Words as values: a change gives another value, costs what changes, and leaves the value before as it was.
//!
//! Values that were made from one another share a base, the words as of the last change, and a layer of the changes that led there.
//! The newest value is the base itself. An older one takes the changes since then back: in the base if nobody has a newer value any
//! more, else in a copy of its own. Changes before the oldest value that is left are dropped, and a layer that has grown too large
//! stays behind: the next value begins a base of its own.

use super::Words;
use super::add_up::Found;
use super::merge::gather;
use crate::error::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A layer may have this share of the base's cells, or so many.
const SHARE: usize = 2;
const FEW: usize = 1 << 14;

/// One of the values that share a base.
#[derive(Debug)]
pub struct Version(Mutex<Place>);

#[derive(Clone, Debug)]
struct Place {
    base: Arc<Mutex<Base>>,
    /// Which of the base's values it is. The base knows by it whether the value is still there.
    number: Arc<u64>,
}

#[derive(Debug)]
struct Base {
    words: Arc<Words>,
    /// The newest value.
    newest: Weak<u64>,
    number: u64,
    /// The oldest change first.
    layer: VecDeque<Change>,
}

/// What led from one value to the next.
#[derive(Clone, Debug)]
struct Change {
    /// The value before.
    before: Weak<u64>,
    number: u64,
    n_ids: usize,
    adds: bool,
    found: Vec<Found>,
}

impl Change {
    fn n_cells(&self) -> usize {
        self.found.iter().map(|found| found.ids.len()).sum()
    }

    fn undo(mut self, words: &mut Words) -> Result<(), Error> {
        match self.adds {
            true => words.take_found(&mut self.found, false),
            false => words.add_found(&mut self.found, 1),
        }
    }
}

/// Takes changes back, the last of them first.
fn undo(words: &mut Words, changes: impl DoubleEndedIterator<Item = Change>) {
    let mut n_ids = words.n_ids();
    let mut undone = Ok(());
    for change in changes.rev() {
        n_ids = change.n_ids;
        undone = undone.and_then(|()| change.undo(words));
    }
    let undone = undone.and_then(|()| words.truncate(n_ids));
    assert!(undone.is_ok(), "what was changed can be taken back");
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Base {
    /// Drops the changes that no value needs.
    fn trim(&mut self) {
        while self.layer.front().is_some_and(|change| change.before.strong_count() == 0) {
            self.layer.pop_front();
        }
    }

    /// Where the change after a value is in the layer.
    fn place(&self, number: u64) -> Option<usize> {
        if number == self.number {
            return Some(self.layer.len());
        }
        self.layer.iter().position(|change| change.number == number)
    }

    /// Whether somebody has a value later than the one before this change.
    fn is_seen_after(&self, place: usize) -> bool {
        let mut later = self.layer.iter().skip(place + 1).map(|change| &change.before);
        self.newest.strong_count() > 0 || later.any(|value| value.strong_count() > 0)
    }

    fn is_crowded(&self) -> bool {
        let cells: usize = self.layer.iter().map(Change::n_cells).sum();
        cells > FEW.max(self.words.cells.len / SHARE)
    }
}

impl Place {
    fn new(words: Words) -> Self {
        let number = Arc::new(0);
        let newest = Arc::downgrade(&number);
        let base = Base { words: Arc::new(words), newest, number: 0, layer: VecDeque::new() };
        Place { base: Arc::new(Mutex::new(base)), number }
    }

    /// Makes this value the newest of its base, or of a base of its own.
    fn settle(&mut self) {
        let mut base = lock(&self.base);
        base.trim();
        let Some(at) = base.place(*self.number).filter(|&at| at < base.layer.len()) else {
            return;
        };
        if base.is_seen_after(at) {
            let mut words = (*base.words).clone();
            undo(&mut words, base.layer.range(at..).cloned());
            drop(base);
            *self = Place::new(words);
            return;
        }
        let changes = base.layer.split_off(at);
        undo(Arc::make_mut(&mut base.words), changes.into_iter());
        (base.newest, base.number) = (Arc::downgrade(&self.number), *self.number);
    }
}

impl Version {
    pub fn new(words: Words) -> Self {
        Version(Mutex::new(Place::new(words)))
    }

    /// The words if they are at hand, without waiting for another thread.
    pub fn try_words(&self) -> Option<Arc<Words>> {
        let place = self.0.try_lock().ok()?;
        let mut base = place.base.try_lock().ok()?;
        if base.number != *place.number {
            return None;
        }
        base.trim();
        Some(base.words.clone())
    }

    pub fn words(&self) -> Arc<Words> {
        let mut place = lock(&self.0);
        place.settle();
        lock(&place.base).words.clone()
    }

    /// The value after a change, which adds what it gives, or takes it away. It is to give that only if it is asked to keep it.
    pub fn change(
        &self,
        adds: bool,
        change: impl FnOnce(&mut Words, bool) -> Result<Vec<Found>, Error>,
    ) -> Result<Version, Error> {
        let mut place = lock(&self.0);
        place.settle();
        let mut base = lock(&place.base);
        if base.words.cells.len == 0 || base.is_crowded() {
            let mut words = (*base.words).clone();
            change(&mut words, false)?;
            return Ok(Version::new(words));
        }
        let n_ids = base.words.n_ids();
        let words = Arc::make_mut(&mut base.words);
        let found = match change(words, true) {
            Ok(found) => found,
            Err(error) => {
                words.truncate(n_ids)?;
                return Err(error);
            }
        };
        let (before, number) = (Arc::downgrade(&place.number), *place.number);
        base.layer.push_back(Change { before, number, n_ids, adds, found });
        let number = Arc::new(number + 1);
        (base.newest, base.number) = (Arc::downgrade(&number), *number);
        Ok(Version(Mutex::new(Place { base: place.base.clone(), number })))
    }

    /// The numbers of the words that changed since another value of the same base, in order; none if their bases differ.
    pub fn changed_since(&self, old: &Version) -> Option<Vec<u32>> {
        let (new, old) = (lock(&self.0).clone(), lock(&old.0).clone());
        if !Arc::ptr_eq(&new.base, &old.base) {
            return None;
        }
        let base = lock(&new.base);
        let (a, b) = (base.place(*old.number)?, base.place(*new.number)?);
        let mut changed = vec![];
        for change in base.layer.range(a.min(b)..a.max(b)) {
            gather(&mut changed, &change.found, base.words.n_ids());
        }
        Some(changed)
    }
}
