//! The counts of each word in each class. Only words and classes that occur together have a cell.

use crate::integers::{DIGITS, Int, PARTS, product, value_of_36_digits};
use std::ops::Range;

/// A number of occurrences, documents or texts, in a [`Unit`]. Those of a store add up to less than 2^63.
pub type Count = Int<3>;
/// Occurrences and documents, in this order.
pub type Counts = [Count; 2];

/// The unit of counts: ones, in 32 bits, or, once some count is not whole or all together are 2^32 or more, parts of 10^-36, in
/// three limbs: 10^-18 of a row times 10^-18 of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    #[default]
    One,
    Part,
}

/// How many parts are one.
const UNIT: u128 = PARTS as u128 * PARTS as u128;

/// Multiplies two numbers of 10^-18. The product must fit.
#[inline(always)]
pub fn times(a: u128, b: u128) -> Count {
    if (a | b) >> 64 == 0 {
        let product = a * b;
        return Int([product as u64, (product >> 64) as u64, 0]);
    }
    let [low, middle, high, _] = product(a, b);
    Int([low, middle, high])
}

impl Unit {
    pub fn digits(self) -> u32 {
        match self {
            Unit::One => 0,
            Unit::Part => 2 * DIGITS,
        }
    }

    /// Converts a count in this unit to a unit that is not coarser.
    #[inline(always)]
    pub fn to(self, unit: Unit, count: Count) -> Count {
        match (self, unit) {
            (Unit::One, Unit::Part) => times(u128::from(count.0[0]), UNIT),
            _ => count,
        }
    }

    /// The unit that holds counts of this unit if they add up to `total` ones.
    pub fn that_holds(self, total: u64) -> Unit {
        if total > u64::from(u32::MAX) { Unit::Part } else { self }
    }

    pub fn all_to(self, unit: Unit, counts: Counts) -> Counts {
        counts.map(|count| self.to(unit, count))
    }

    /// Rounded to a double.
    pub fn value(self, count: &Count) -> f64 {
        match self {
            Unit::One => count.0[0] as f64,
            Unit::Part => value_of_36_digits(&count.0),
        }
    }

    /// Rounds a count down to a whole number; also returns whether it was one.
    pub fn whole(self, count: &Count) -> (u64, bool) {
        let (mut ones, mut exact) = (*count, true);
        if self == Unit::Part {
            exact = ones.divide(PARTS) == 0;
            exact &= ones.divide(PARTS) == 0;
        }
        (ones.0[0], exact)
    }
}

/// The counts of cells, in ones or in parts.
#[derive(Clone, Debug)]
pub enum CellCounts {
    Narrow(Vec<[u32; 2]>),
    Parts(Vec<Counts>),
}

impl CellCounts {
    pub fn new(unit: Unit) -> Self {
        match unit {
            Unit::One => CellCounts::Narrow(vec![]),
            Unit::Part => CellCounts::Parts(vec![]),
        }
    }

    /// Adds counts in the unit of the others.
    pub fn push(&mut self, counts: &Counts) {
        match self {
            CellCounts::Narrow(all) => all.push(counts.map(|n| n.0[0] as u32)),
            CellCounts::Parts(all) => all.push(*counts),
        }
    }

    pub fn unit(&self) -> Unit {
        match self {
            CellCounts::Parts(_) => Unit::Part,
            CellCounts::Narrow(_) => Unit::One,
        }
    }

    pub fn get(&self, i: usize) -> Counts {
        match self {
            CellCounts::Narrow(counts) => counts[i].map(|n| Int([u64::from(n), 0, 0])),
            CellCounts::Parts(counts) => counts[i],
        }
    }
}

/// Where a word's cells are, in the order of their classes.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: usize,
    len: u32,
    room: u32,
}

impl Span {
    fn range(self) -> Range<usize> {
        self.start..self.start + self.len as usize
    }
}

/// The class of a cell and its two counts; if counts are parts, the two halves of the lowest limb of occurrences.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    class: u32,
    numbers: [u32; 2],
}

/// A word's counts in one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub class: u32,
    pub counts: Counts,
}

impl Cell {
    pub fn merge(&mut self, other: &Cell) {
        merge(&mut self.counts, &other.counts);
    }

    /// Adds the counts of another cell if it has the same class; returns whether it has.
    pub fn absorbs(&mut self, other: &Cell) -> bool {
        let is_same_class = self.class == other.class;
        if is_same_class {
            self.merge(other);
        }
        is_same_class
    }

    /// Converts the counts to a unit that is not coarser.
    pub fn to(self, from: Unit, unit: Unit) -> Cell {
        Cell { counts: from.all_to(unit, self.counts), ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.counts[1].is_zero()
    }
}

#[inline(always)]
pub fn merge(counts: &mut Counts, more: &Counts) {
    counts[0].merge(&more[0]);
    counts[1].merge(&more[1]);
}

/// The cells of all words. A cell takes 12 bytes, or 52 if counts are parts.
///
/// The cells of a word lie in one run of places, its room. A word that needs more room moves to the end. Once too many places are
/// lost that way, all words move together again.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    spans: Vec<Span>,
    pairs: Vec<Pair>,
    /// If counts are parts, the other limbs: two of occurrences, three of documents.
    limbs: Vec<[u64; 5]>,
    pub unit: Unit,
    /// Places that are in no word's room.
    lost: usize,
    /// Words that have cells.
    pub live: usize,
    /// Cells of all words.
    pub len: usize,
}

/// A run of places that begins with place `start`.
struct Places<'a> {
    start: usize,
    pairs: &'a mut [Pair],
    limbs: &'a mut [[u64; 5]],
}

impl<'a> Places<'a> {
    #[inline(always)]
    fn set(&mut self, at: usize, counts: &Counts) {
        match self.limbs.get_mut(at) {
            None => self.pairs[at].numbers = counts.map(|n| n.0[0] as u32),
            Some(limbs) => (self.pairs[at].numbers, *limbs) = split(counts),
        }
    }

    /// Adds count `i` of `counts` to a word's cell in a class, or to a new cell, for which there must be room. Units must be the same.
    #[inline(always)]
    fn add(&mut self, span: &mut Span, class: u32, counts: &CellCounts, i: usize) {
        let end = span.range().end - self.start;
        if span.len == 0 || self.pairs[end - 1].class < class {
            self.pairs[end].class = class;
            span.len += 1;
            return match counts {
                CellCounts::Narrow(counts) => self.pairs[end].numbers = counts[i],
                CellCounts::Parts(counts) => self.set(end, &counts[i]),
            };
        }
        let at = self.cell(span, class);
        match counts {
            CellCounts::Narrow(counts) => {
                for (number, more) in self.pairs[at].numbers.iter_mut().zip(counts[i]) {
                    *number += more;
                }
            }
            CellCounts::Parts(counts) => {
                let mut sum = parts_of(self.pairs[at].numbers, &self.limbs[at]);
                merge(&mut sum, &counts[i]);
                self.set(at, &sum);
            }
        }
    }

    /// The place of a word's cell in a class; makes an empty cell if it has none.
    #[inline(always)]
    fn cell(&mut self, span: &mut Span, class: u32) -> usize {
        let range = span.range();
        let (start, end) = (range.start - self.start, range.end - self.start);
        let at = match self.pairs[start..end].last() {
            Some(last) if last.class >= class => {
                start + self.pairs[start..end].partition_point(|pair| pair.class < class)
            }
            _ => end,
        };
        if at == end || self.pairs[at].class != class {
            self.open(at, end);
            self.pairs[at].class = class;
            span.len += 1;
        }
        at
    }

    /// Moves the cells from `at` to `end` one place on, and empties place `at`.
    #[inline(always)]
    fn open(&mut self, at: usize, end: usize) {
        if at < end {
            self.shift(at..end, at + 1);
        }
        self.set(at, &Counts::default());
    }

    /// Copies cells to place `to` and those after it.
    #[inline(always)]
    fn shift(&mut self, from: Range<usize>, to: usize) {
        self.pairs.copy_within(from.clone(), to);
        if !self.limbs.is_empty() {
            self.limbs.copy_within(from, to);
        }
    }

    /// Cuts the run after `places` places.
    fn split(self, places: usize) -> (Places<'a>, Places<'a>) {
        let pairs = self.pairs.split_at_mut(places);
        let limbs = self.limbs.split_at_mut(places.min(self.limbs.len()));
        let first = Places { start: self.start, pairs: pairs.0, limbs: limbs.0 };
        let start = self.start + places;
        (first, Places { start, pairs: pairs.1, limbs: limbs.1 })
    }
}

/// The parts of a cell as [`Pair::numbers`] and [`Cells::limbs`] hold them.
#[inline(always)]
fn split([Int([a, b, c]), Int([d, e, f])]: &Counts) -> ([u32; 2], [u64; 5]) {
    ([*a as u32, (*a >> 32) as u32], [*b, *c, *d, *e, *f])
}

#[inline(always)]
fn parts_of([low, high]: [u32; 2], &[b, c, d, e, f]: &[u64; 5]) -> Counts {
    let a = u64::from(high) << 32 | u64::from(low);
    [Int([a, b, c]), Int([d, e, f])]
}

/// The cells of a range of words, which one thread changes while others change those of other words.
pub struct Part<'a> {
    first: usize,
    spans: &'a mut [Span],
    places: Places<'a>,
}

impl Part<'_> {
    /// The words of this part.
    pub fn words(&self) -> Range<u32> {
        self.first as u32..(self.first + self.spans.len()) as u32
    }

    /// Adds to a word's cell, as [`Places::add`].
    #[inline(always)]
    pub fn add(&mut self, id: u32, class: u32, counts: &CellCounts, i: usize) {
        let span = &mut self.spans[id as usize - self.first];
        self.places.add(span, class, counts, i);
    }
}

impl Cells {
    /// Places for so many cells are not worth moving others for.
    const FEW: usize = 64;

    pub fn with_room(words: usize, cells: usize, unit: Unit) -> Self {
        Cells {
            spans: Vec::with_capacity(words),
            pairs: Vec::with_capacity(cells),
            limbs: Vec::with_capacity(if unit == Unit::Part { cells } else { 0 }),
            unit,
            ..Cells::default()
        }
    }

    /// How many words there are, with or without cells.
    pub fn words(&self) -> usize {
        self.spans.len()
    }

    /// Makes sure that there are `words` words; new ones have no cells.
    pub fn grow(&mut self, words: usize) {
        let none = Span { start: self.pairs.len(), len: 0, room: 0 };
        self.spans.resize(words.max(self.spans.len()), none);
    }

    /// Whether words lie in the order of their numbers.
    pub fn is_in_order(&self) -> bool {
        self.spans.is_sorted_by_key(|span| span.start)
    }

    /// Removes the words from number `words` on, which have no cells.
    pub fn truncate(&mut self, words: usize) {
        let gone = self.spans.split_off(words.min(self.spans.len()));
        self.lost += gone.iter().map(|span| span.room as usize).sum::<usize>();
    }

    /// Converts counts to parts.
    pub fn make_parts(&mut self) {
        if self.unit == Unit::Part {
            return;
        }
        let mut all = Vec::with_capacity(self.pairs.len());
        for at in 0..self.pairs.len() {
            let (numbers, limbs) = split(&Unit::One.all_to(Unit::Part, self.counts(at)));
            self.pairs[at].numbers = numbers;
            all.push(limbs);
        }
        (self.limbs, self.unit) = (all, Unit::Part);
    }

    #[inline(always)]
    fn counts(&self, at: usize) -> Counts {
        let numbers = self.pairs[at].numbers;
        match self.limbs.get(at) {
            Some(limbs) => parts_of(numbers, limbs),
            None => numbers.map(|n| Int([u64::from(n), 0, 0])),
        }
    }

    pub fn n_cells(&self, id: usize) -> usize {
        self.spans[id].len as usize
    }

    pub fn is_live(&self, id: usize) -> bool {
        self.spans[id].len > 0
    }

    /// A word's cells, in the order of their classes.
    pub fn of(&self, id: usize) -> impl ExactSizeIterator<Item = Cell> + '_ {
        let cell = |at: usize| Cell { class: self.pairs[at].class, counts: self.counts(at) };
        self.spans[id].range().map(cell)
    }

    /// A word's classes and counts, if counts are ones.
    #[inline(always)]
    pub fn narrow(&self, id: usize) -> impl Iterator<Item = (u32, [u32; 2])> + '_ {
        self.pairs[self.spans[id].range()].iter().map(|pair| (pair.class, pair.numbers))
    }

    /// The classes in which a word has cells.
    pub fn classes(&self, id: usize) -> impl Iterator<Item = u32> + '_ {
        self.pairs[self.spans[id].range()].iter().map(|pair| pair.class)
    }

    /// A word's cell in a class.
    pub fn get(&self, id: usize, class: u32) -> Option<Cell> {
        let counts = self.counts(self.find(id, class)?);
        Some(Cell { class, counts })
    }

    pub fn has(&self, id: usize, class: u32) -> bool {
        self.find(id, class).is_some()
    }

    /// Where a word's cell in a class is.
    fn find(&self, id: usize, class: u32) -> Option<usize> {
        let range = self.spans.get(id)?.range();
        let pairs = &self.pairs[range.clone()];
        let at = pairs.binary_search_by_key(&class, |pair| pair.class).ok()?;
        Some(range.start + at)
    }

    fn places(&mut self) -> (&mut [Span], Places<'_>) {
        let places = Places { start: 0, pairs: &mut self.pairs, limbs: &mut self.limbs };
        (&mut self.spans, places)
    }

    /// Adds count `i` of `counts` to a word's cell in a class. Units must be the same.
    pub fn add(&mut self, id: usize, class: u32, counts: &CellCounts, i: usize) {
        if self.spans[id].len == self.spans[id].room && !self.has(id, class) {
            self.make_room(id);
        }
        let (spans, mut places) = self.places();
        let before = spans[id].len;
        places.add(&mut spans[id], class, counts, i);
        let after = spans[id].len;
        self.live += usize::from(before == 0);
        self.len += (after - before) as usize;
    }

    /// Loads the cells of words that will be changed soon into the cache. No load waits for another, so memory answers all at once.
    pub fn load(&self, ids: &[u32]) {
        let middle = |&id: &u32| {
            let span = self.spans[id as usize];
            let pair = self.pairs.get(span.start + span.len as usize / 2);
            pair.map_or(0, |pair| pair.class)
        };
        std::hint::black_box(ids.iter().map(middle).fold(0, std::ops::BitXor::bitxor));
    }

    /// Replaces the counts of a cell, or removes the cell if they are zero.
    pub fn set(&mut self, id: usize, cell: &Cell) {
        match self.find(id, cell.class) {
            Some(at) if cell.is_empty() => self.remove(id, at),
            Some(at) => self.places().1.set(at, &cell.counts),
            None => {}
        }
    }

    fn remove(&mut self, id: usize, at: usize) {
        let end = self.spans[id].range().end;
        self.places().1.shift(at + 1..end, at);
        self.spans[id].len -= 1;
        self.len -= 1;
        self.live -= usize::from(self.spans[id].len == 0);
    }

    /// Moves a word to the end, with half as much room again. With an eighth, a half or as much again, learning 300 posts one by one takes
    /// the same time within 6 %.
    fn make_room(&mut self, id: usize) {
        if self.lost > self.pairs.len() / 4 + Cells::FEW {
            self.lay_out(|_| 0);
        }
        let span = self.spans[id];
        let room = span.len + span.len / 2 + 1;
        let start = self.pairs.len();
        self.lengthen(room as usize);
        self.places().1.shift(span.range(), start);
        self.lost += span.room as usize;
        self.spans[id] = Span { start, room, ..span };
    }

    /// Appends places.
    fn lengthen(&mut self, places: usize) {
        let len = self.pairs.len() + places;
        if len > self.pairs.capacity() {
            let more = places + self.pairs.len() / 8 + Cells::FEW;
            self.pairs.reserve_exact(more);
            self.limbs.reserve_exact(if self.unit == Unit::Part { more } else { 0 });
        }
        self.resize(len);
    }

    fn resize(&mut self, len: usize) {
        self.pairs.resize(len, Pair::default());
        if self.unit == Unit::Part {
            self.limbs.resize(len, [0; 5]);
        }
    }

    /// Moves all words together, in the order of their numbers, with room for `more` cells of each.
    pub fn lay_out(&mut self, more: impl Fn(usize) -> u32) {
        let room = |(id, span): (usize, &Span)| (span.len + more(id)) as usize;
        let places = self.spans.iter().enumerate().map(room).sum();
        let mut moved = Cells::with_room(self.spans.len(), places, self.unit);
        for (id, span) in self.spans.iter().enumerate() {
            let (start, room) = (moved.pairs.len(), span.len + more(id));
            moved.pairs.extend_from_slice(&self.pairs[span.range()]);
            if self.unit == Unit::Part {
                moved.limbs.extend_from_slice(&self.limbs[span.range()]);
            }
            moved.resize(start + room as usize);
            moved.spans.push(Span { start, len: span.len, room });
        }
        (moved.live, moved.len) = (self.live, self.len);
        *self = moved;
    }

    /// Cuts the words, which must lie in the order of their numbers, into parts of about `places` places. Call [`Cells::settle`] once cells
    /// have been added.
    pub fn parts(&mut self, places: usize) -> Vec<Part<'_>> {
        let (mut spans, mut rest) = self.places();
        let (mut parts, mut first) = (vec![], 0);
        while !spans.is_empty() {
            let limit = rest.start + places.max(1);
            let words = spans.partition_point(|span| span.start < limit).max(1);
            let (mine, others) = spans.split_at_mut(words);
            let end = others.first().map_or(rest.start + rest.pairs.len(), |span| span.start);
            let width = end - rest.start;
            let (here, beyond) = rest.split(width);
            parts.push(Part { first, spans: mine, places: here });
            (spans, rest, first) = (others, beyond, first + words);
        }
        parts
    }

    /// Counts words and cells again after [`Part::add`].
    pub fn settle(&mut self) {
        let (mut live, mut len, mut room) = (0, 0, 0);
        for span in &self.spans {
            live += usize::from(span.len > 0);
            len += span.len as usize;
            room += span.room as usize;
        }
        (self.live, self.len) = (live, len);
        self.lost = self.pairs.len() - room;
    }

    /// Appends a word with these cells, whose classes ascend.
    pub fn push(&mut self, cells: impl Iterator<Item = Cell>) {
        let len = cells.map(|cell| self.push_cell(&cell)).count();
        self.end_word(len);
    }

    /// Makes cells of classes and whole counts; those of word i are `starts[i]` to `starts[i + 1]`, in the order of classes.
    pub fn of_whole(starts: &[i64], cells: impl ExactSizeIterator<Item = (u32, [u32; 2])>) -> Self {
        let span = |ends: &[i64]| {
            let len = (ends[1] - ends[0]) as u32;
            Span { start: ends[0] as usize, len, room: len }
        };
        let spans: Vec<Span> = starts.windows(2).map(span).collect();
        Cells {
            live: spans.iter().filter(|span| span.len > 0).count(),
            len: cells.len(),
            spans,
            pairs: cells.map(|(class, numbers)| Pair { class, numbers }).collect(),
            ..Cells::default()
        }
    }

    /// Appends a cell of the next word, which [`Cells::end_word`] completes.
    #[inline(always)]
    pub fn push_cell(&mut self, cell: &Cell) {
        let mut numbers = cell.counts.map(|n| n.0[0] as u32);
        if self.unit == Unit::Part {
            let limbs;
            (numbers, limbs) = split(&cell.counts);
            self.limbs.push(limbs);
        }
        self.pairs.push(Pair { class: cell.class, numbers });
    }

    /// Makes the last `len` cells those of a new word.
    #[inline(always)]
    pub fn end_word(&mut self, len: usize) {
        self.spans.push(Span { start: self.pairs.len() - len, len: len as u32, room: len as u32 });
        self.live += usize::from(len > 0);
        self.len += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn whole(counts: [u64; 2]) -> Counts {
        counts.map(|n| Int([n, 0, 0]))
    }

    /// Adds and removes cells of many words in an order that makes them move.
    fn shuffled(cells: &mut Cells, mut done: impl FnMut(usize, u32, [u64; 2])) {
        let mut state = 1_u32;
        cells.grow(50);
        for step in 0..5000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (id, class) = ((state >> 8) as usize % 50, (state >> 20) % 40);
            if step % 3 == 2 {
                let counts = Counts::default();
                cells.set(id, &Cell { class, counts });
                done(id, class, [0, 0]);
            } else {
                let counts = [u64::from(state % 7) + 1, 1];
                let lane = match cells.unit {
                    Unit::One => CellCounts::Narrow(vec![counts.map(|n| n as u32)]),
                    Unit::Part => {
                        CellCounts::Parts(vec![Unit::One.all_to(Unit::Part, whole(counts))])
                    }
                };
                cells.add(id, class, &lane, 0);
                done(id, class, counts);
            }
        }
    }

    #[test]
    fn cells_move_and_keep_what_they_hold() {
        for unit in [Unit::One, Unit::Part] {
            let mut cells = Cells::with_room(0, 0, unit);
            let mut expected: BTreeMap<(usize, u32), [u64; 2]> = BTreeMap::new();
            shuffled(&mut cells, |id, class, counts| {
                let cell = expected.entry((id, class)).or_default();
                *cell = match counts {
                    [0, 0] => [0, 0],
                    more => [cell[0] + more[0], cell[1] + more[1]],
                };
            });
            expected.retain(|_, counts| *counts != [0, 0]);
            assert_eq!(cells.len, expected.len());
            let live = |id: &usize| expected.keys().any(|(other, _)| other == id);
            assert_eq!(cells.live, (0..50).filter(live).count());
            let check = |cells: &Cells| {
                let found = (0..50).flat_map(|id| cells.of(id).map(move |cell| (id, cell)));
                for ((id, cell), (key, &counts)) in found.zip(&expected) {
                    let counts = Unit::One.all_to(cells.unit, whole(counts));
                    assert_eq!(((id, cell.class), cell.counts), (*key, counts));
                    assert_eq!(cells.get(id, cell.class), Some(cell));
                }
            };
            check(&cells);
            let places: usize = cells.spans.iter().map(|span| span.room as usize).sum();
            assert_eq!(cells.lost + places, cells.pairs.len());
            assert!(!cells.is_in_order());
            cells.lay_out(|id| id as u32 % 3);
            check(&cells);
            cells.grow(60);
            assert!(cells.is_in_order());
            assert!(cells.parts(10).len() > 20);
            cells.settle();
            check(&cells);
            cells.make_parts();
            check(&cells);
        }
    }

    #[test]
    fn numbers_grow() {
        let mut cells = Cells::default();
        cells.grow(2);
        cells.add(1, 5, &CellCounts::Narrow(vec![[u32::MAX, 1]]), 0);
        cells.make_parts();
        for (class, counts) in [(5, [1, 1]), (2, [1 << 40, 1 << 33])] {
            let lane = CellCounts::Parts(vec![Unit::One.all_to(Unit::Part, whole(counts))]);
            cells.add(1, class, &lane, 0);
        }
        let parts = [2, 4].map(|share| times(UNIT / share, 1));
        cells.add(1, 2, &CellCounts::Parts(vec![parts]), 0);
        let found: Vec<Cell> = cells.of(1).collect();
        let values = |cell: &Cell| cell.counts.map(|n| Unit::Part.value(&n));
        assert_eq!(values(&found[0]), [2_f64.powi(40) + 0.5, 2_f64.powi(33) + 0.25]);
        assert_eq!(values(&found[1]), [2_f64.powi(32), 2.0]);
        assert_eq!(Unit::Part.whole(&found[0].counts[0]), (1 << 40, false));
        assert_eq!(Unit::Part.whole(&found[1].counts[0]), (1 << 32, true));
        assert!(!cells.is_live(0));
    }
}
