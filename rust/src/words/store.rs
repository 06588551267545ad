//! The counts of each word in each class. Only words and classes that occur together have a cell.

use crate::integers::{DIGITS, Int, PARTS, product, value_of_36_digits};
use std::ops::Range;

/// A number of occurrences, documents or texts, in a [`Unit`]. Those of a store add up to less than 2^63.
pub type Count = Int<3>;
/// Occurrences and documents, in this order.
pub type Counts = [Count; 2];
/// Where [`Counts`] have the occurrences and the documents.
pub const OCCURRENCES: usize = 0;
pub const DOCUMENTS: usize = 1;

/// The unit of counts: ones, in 32 bits, or, once some count is not whole or all together are 2^32 or more, parts of 10^-36, in
/// three limbs: 10^-18 of a row times 10^-18 of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    #[default]
    One,
    Part,
}

/// How many parts of 10^-36 are one.
const PARTS_PER_ONE: u128 = PARTS as u128 * PARTS as u128;

/// Multiplies two numbers of 10^-18 to one of 10^-36, which is three limbs of 64 bits, the least first. The product must fit.
#[inline(always)]
pub fn multiply_parts(a: u128, b: u128) -> Count {
    if (a | b) >> 64 == 0 {
        let product = a * b;
        return Int([product as u64, (product >> 64) as u64, 0]);
    }
    let [low, middle, high, _] = product(a, b);
    Int([low, middle, high])
}

impl Unit {
    /// How many decimal digits of a one the unit has: counts are numbers of 10^-digits.
    pub fn digits(self) -> u32 {
        match self {
            Unit::One => 0,
            Unit::Part => 2 * DIGITS,
        }
    }

    /// Converts a count from this unit to `unit`, which is not coarser.
    #[inline(always)]
    pub fn to(self, unit: Unit, count: Count) -> Count {
        match (self, unit) {
            (Unit::One, Unit::Part) => multiply_parts(u128::from(count.0[0]), PARTS_PER_ONE),
            _ => count,
        }
    }

    /// The unit, this one or a finer one, that holds counts which are in this unit and add up to `total` ones.
    pub fn that_holds(self, total: u64) -> Unit {
        if total > u64::from(u32::MAX) { Unit::Part } else { self }
    }

    /// Converts occurrences and documents in this unit to a unit that is not coarser.
    pub fn counts_to(self, unit: Unit, counts: Counts) -> Counts {
        counts.map(|count| self.to(unit, count))
    }

    /// A count in this unit as a number of ones, rounded to a double.
    pub fn ones(self, count: &Count) -> f64 {
        match self {
            Unit::One => count.0[0] as f64,
            Unit::Part => value_of_36_digits(&count.0),
        }
    }

    /// Rounds a count in this unit down to a whole number of ones; also returns whether it was whole.
    pub fn whole_ones(self, count: &Count) -> (u64, bool) {
        let (mut ones, mut is_whole) = (*count, true);
        if self == Unit::Part {
            // `divide` divides in place and returns the remainder; twice, since a part is 10^-18 of 10^-18.
            is_whole = ones.divide(PARTS) == 0;
            is_whole &= ones.divide(PARTS) == 0;
        }
        (ones.0[0], is_whole)
    }
}

/// The occurrences and documents of cells, in ones or in parts.
#[derive(Clone, Debug)]
pub enum CellCounts {
    Narrow(Vec<[u32; 2]>),
    Parts(Vec<Counts>),
}

impl CellCounts {
    /// No counts of cells yet, which are to be in this unit: ones in 32 bits, or parts in three limbs.
    pub fn new(unit: Unit) -> Self {
        match unit {
            Unit::One => CellCounts::Narrow(vec![]),
            Unit::Part => CellCounts::Parts(vec![]),
        }
    }

    /// Appends the occurrences and documents of a cell, which must be in the unit of all counts.
    pub fn push(&mut self, cell: &Counts) {
        match self {
            CellCounts::Narrow(counts) => counts.push(cell.map(|count| count.0[0] as u32)),
            CellCounts::Parts(counts) => counts.push(*cell),
        }
    }

    /// The unit of all counts.
    pub fn unit(&self) -> Unit {
        match self {
            CellCounts::Parts(_) => Unit::Part,
            CellCounts::Narrow(_) => Unit::One,
        }
    }

    /// The occurrences and documents of the i-th cell, three limbs each.
    pub fn get(&self, i: usize) -> Counts {
        match self {
            CellCounts::Narrow(counts) => counts[i].map(|count| Int([u64::from(count), 0, 0])),
            CellCounts::Parts(counts) => counts[i],
        }
    }
}

/// Where a word's cells are, in the order of their classes.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    /// The word's first slot.
    start: usize,
    /// How many cells the word has, from the first slot on.
    len: u32,
    /// How many slots are the word's.
    room: u32,
}

impl Span {
    /// The slots that the word's cells take, without those that it has for further cells.
    fn range(self) -> Range<usize> {
        self.start..self.start + self.len as usize
    }
}

/// The class of a cell, and its counts if they are ones.
#[derive(Clone, Copy, Debug, Default)]
struct ClassCounts {
    class: u32,
    /// Occurrences and documents if they are ones; else not used.
    ones: [u32; 2],
}

/// A word's counts in one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub class: u32,
    pub counts: Counts,
}

impl Cell {
    /// Adds the counts of another cell, in the same unit.
    pub fn merge(&mut self, other: &Cell) {
        merge(&mut self.counts, &other.counts);
    }

    /// Adds the counts of another cell to this one if both have the same class; returns whether they have.
    pub fn absorbs(&mut self, other: &Cell) -> bool {
        let is_same_class = self.class == other.class;
        if is_same_class {
            self.merge(other);
        }
        is_same_class
    }

    /// The cell with its counts converted from one unit to another that is not coarser.
    pub fn to(self, from: Unit, unit: Unit) -> Cell {
        Cell { counts: from.counts_to(unit, self.counts), ..self }
    }

    /// Whether there are no documents, and so no occurrences.
    pub fn is_empty(&self) -> bool {
        self.counts[1].is_zero()
    }
}

/// Adds the occurrences (element 0) and documents (element 1) `more` to `counts`; both are in the same unit.
#[inline(always)]
pub fn merge(counts: &mut Counts, more: &Counts) {
    counts[0].merge(&more[0]);
    counts[1].merge(&more[1]);
}

/// The cells of all words. A cell takes 12 bytes, or 60 if counts are parts.
///
/// The cells of a word lie in one run of slots, its room. A word that needs more room moves to the end. Once too many slots are
/// unowned_slots that way, all words move together again.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// Where the cells of each word are, by its number.
    spans: Vec<Span>,
    /// All slots, taken or not.
    cells: Vec<ClassCounts>,
    /// The counts of all slots if they are parts; else empty.
    parts: Vec<Counts>,
    /// The unit of all counts.
    pub unit: Unit,
    /// How many slots are in no word's room.
    unowned_slots: usize,
    /// How many words have cells.
    pub n_live: usize,
    /// How many cells there are.
    pub len: usize,
}

/// A run of slots.
struct Slots<'a> {
    /// The number of the first slot, among the slots of all words.
    start: usize,
    cells: &'a mut [ClassCounts],
    /// The counts of the slots if they are parts; else empty.
    parts: &'a mut [Counts],
}

impl<'a> Slots<'a> {
    /// Replaces the occurrences and documents in slot `at` of this run: three limbs each if counts are parts, else 32 bits
    /// each.
    #[inline(always)]
    fn set(&mut self, at: usize, counts: &Counts) {
        match self.parts.get_mut(at) {
            None => self.cells[at].ones = counts.map(|count| count.0[0] as u32),
            Some(parts) => *parts = *counts,
        }
    }

    /// Adds element `i` of `counts`, occurrences and documents, to the cell of a word in this class, or to a new cell, for
    /// which there must be room. `span` says where the word's cells are; a new cell makes it one longer. Units must be the
    /// same.
    #[inline(always)]
    fn add(&mut self, span: &mut Span, class: u32, counts: &CellCounts, i: usize) {
        let end = span.range().end - self.start; // the slot in this run after the word's cells
        if span.len == 0 || self.cells[end - 1].class < class {
            self.cells[end].class = class;
            span.len += 1;
            // 32 bits each, or parts in three limbs.
            match counts {
                CellCounts::Narrow(counts) => self.cells[end].ones = counts[i],
                CellCounts::Parts(counts) => self.parts[end] = counts[i],
            }
            return;
        }
        let at = self.find_or_insert(span, class); // the slot of the cell in this run
        match counts {
            CellCounts::Narrow(counts) => {
                for (ones, more) in self.cells[at].ones.iter_mut().zip(counts[i]) {
                    *ones += more;
                }
            }
            CellCounts::Parts(counts) => merge(&mut self.parts[at], &counts[i]),
        }
    }

    /// The number in this run of the slot that has a word's cell in a class; inserts a cell with counts of zero if there is
    /// none. `span` says where the word's cells are among the slots of all words; a new cell makes it one longer.
    #[inline(always)]
    fn find_or_insert(&mut self, span: &mut Span, class: u32) -> usize {
        let range = span.range();
        let (start, end) = (range.start - self.start, range.end - self.start); // in this run
        // The first slot of a cell whose class is not lower, or the slot after the word's cells.
        let at = start + self.cells[start..end].partition_point(|cell| cell.class < class);
        if at == end || self.cells[at].class != class {
            self.shift(at..end, at + 1);
            self.cells[at].class = class;
            self.set(at, &Counts::default());
            span.len += 1;
        }
        at
    }

    /// Copies the cells (classes and counts) in the slots `from` of this run to slot `to` and those after it.
    #[inline(always)]
    fn shift(&mut self, from: Range<usize>, to: usize) {
        self.cells.copy_within(from.clone(), to);
        if !self.parts.is_empty() {
            self.parts.copy_within(from, to);
        }
    }

    /// Cuts the run into its first `n` slots and those after them: classes and counts of both.
    fn split(self, n: usize) -> (Slots<'a>, Slots<'a>) {
        let (cells, more_cells) = self.cells.split_at_mut(n);
        // The counts of slots if they are parts; else none.
        let (parts, more_parts) = self.parts.split_at_mut(n.min(self.parts.len()));
        let rest = Slots { start: self.start + n, cells: more_cells, parts: more_parts };
        (Slots { start: self.start, cells, parts }, rest)
    }
}

/// The cells of a range of words, which one thread changes while other threads change those of other words.
pub struct Section<'a> {
    /// The number of the first word.
    first_word: usize,
    /// Where the cells of each word are, from the first word on.
    spans: &'a mut [Span],
    slots: Slots<'a>,
}

impl Section<'_> {
    /// The numbers of the words of this section.
    pub fn words(&self) -> Range<u32> {
        self.first_word as u32..(self.first_word + self.spans.len()) as u32
    }

    /// Adds element `i` of `counts`, occurrences and documents, to the cell in this class of the word with the number `id`, or
    /// to a new cell, for which there must be room, as [`Slots::add`] does.
    #[inline(always)]
    pub fn add(&mut self, id: u32, class: u32, counts: &CellCounts, i: usize) {
        let span = &mut self.spans[id as usize - self.first_word]; // where the word's cells are
        self.slots.add(span, class, counts, i);
    }
}

impl Cells {
    /// Words are not moved together for so few slots in no word's room, and the arrays grow by at least as many. Learning 300
    /// posts one by one took 55 to 70 ms with 8, 64 and 4,096, no more apart than two measurements of one of them.
    const FEW: usize = 64;

    /// No words yet, with room for so many words and cells, whose counts are in `unit`.
    pub fn with_room(words: usize, cells: usize, unit: Unit) -> Self {
        Cells {
            spans: Vec::with_capacity(words), // where the cells of each word are
            cells: Vec::with_capacity(cells), // class and ones of each slot
            parts: Vec::with_capacity(if unit == Unit::Part { cells } else { 0 }), // of each slot
            unit,
            ..Cells::default()
        }
    }

    /// How many words there are, with or without cells.
    pub fn words(&self) -> usize {
        self.spans.len()
    }

    /// Makes sure that there are at least `words` words; new ones have no cells and no slots.
    pub fn grow(&mut self, words: usize) {
        let empty = Span { start: self.cells.len(), len: 0, room: 0 }; // of a word without slots
        self.spans.resize(words.max(self.spans.len()), empty);
    }

    /// Whether the cells of words lie in the order of the words' numbers.
    pub fn is_in_order(&self) -> bool {
        self.spans.is_sorted_by_key(|span| span.start)
    }

    /// Removes the words whose numbers are `n_words` or more, which have no cells; their slots are in no word's room any more
    /// (`unowned_slots`).
    pub fn truncate(&mut self, n_words: usize) {
        let removed = self.spans.split_off(n_words.min(self.spans.len())); // where the removed words have their cells
        self.unowned_slots += removed.iter().map(|span| span.room as usize).sum::<usize>();
    }

    /// Converts the occurrences and documents in all slots, whole numbers of 32 bits, to parts of 10^-36.
    pub fn make_parts(&mut self) {
        if self.unit == Unit::Part {
            return;
        }
        // The counts of all slots in parts.
        let parts =
            (0..self.cells.len()).map(|at| Unit::One.counts_to(Unit::Part, self.counts(at)));
        (self.parts, self.unit) = (parts.collect(), Unit::Part);
    }

    /// The occurrences and documents in slot `at`: its parts, or its ones if counts are ones.
    #[inline(always)]
    fn counts(&self, at: usize) -> Counts {
        let ones = || self.cells[at].ones.map(|count| Int([u64::from(count), 0, 0]));
        self.parts.get(at).copied().unwrap_or_else(ones)
    }

    /// How many cells a word has.
    pub fn n_cells(&self, id: usize) -> usize {
        self.spans[id].len as usize
    }

    /// Whether a word has a cell.
    pub fn is_live(&self, id: usize) -> bool {
        self.spans[id].len > 0
    }

    /// The cells (class, occurrences and documents) of the word with the number `id`, in the order of their classes.
    pub fn of(&self, id: usize) -> impl ExactSizeIterator<Item = Cell> + '_ {
        let cell = |at: usize| Cell { class: self.cells[at].class, counts: self.counts(at) };
        self.spans[id].range().map(cell)
    }

    /// The classes in which a word has cells, in order.
    pub fn classes(&self, id: usize) -> impl Iterator<Item = u32> + '_ {
        self.cells[self.spans[id].range()].iter().map(|cell| cell.class)
    }

    /// The cell in a class of the word with the number `id`; none if there is no such cell.
    pub fn get(&self, id: usize, class: u32) -> Option<Cell> {
        let counts = self.counts(self.find(id, class)?);
        Some(Cell { class, counts })
    }

    /// Whether the word with the number `id` has a cell in a class.
    pub fn has(&self, id: usize, class: u32) -> bool {
        self.find(id, class).is_some()
    }

    /// The slot of the cell in a class of the word with the number `id`; none if there is no such cell.
    fn find(&self, id: usize, class: u32) -> Option<usize> {
        let range = self.spans.get(id)?.range(); // the slots of the word's cells
        let cells = &self.cells[range.clone()];
        let at = cells.binary_search_by_key(&class, |cell| cell.class).ok()?;
        Some(range.start + at)
    }

    /// Where the cells of each word are, `[word]`; and all slots, their classes and counts, as one run that begins at slot 0.
    fn spans_and_slots(&mut self) -> (&mut [Span], Slots<'_>) {
        let slots = Slots { start: 0, cells: &mut self.cells, parts: &mut self.parts };
        (&mut self.spans, slots)
    }

    /// Adds element `i` of `counts`, occurrences and documents, to the cell in a class of the word with the number `id`, or to
    /// a new cell. Units must be the same.
    pub fn add(&mut self, id: usize, class: u32, counts: &CellCounts, i: usize) {
        if self.spans[id].len == self.spans[id].room && !self.has(id, class) {
            self.make_room(id);
        }
        let (spans, mut slots) = self.spans_and_slots();
        let old_len = spans[id].len; // how many cells the word had
        slots.add(&mut spans[id], class, counts, i);
        let new_len = spans[id].len;
        self.n_live += usize::from(old_len == 0);
        self.len += (new_len - old_len) as usize;
    }

    /// Loads the cells of the words with the numbers `ids`, which will be changed soon, into the cache: reads one cell of each.
    /// No load waits for another, so memory answers all at once.
    pub fn load(&self, ids: &[u32]) {
        // The class of the cell in the middle of a word's cells.
        let middle_class = |&id: &u32| {
            let span = self.spans[id as usize];
            let cell = self.cells.get(span.start + span.len as usize / 2);
            cell.map_or(0, |cell| cell.class)
        };
        std::hint::black_box(ids.iter().map(middle_class).fold(0, std::ops::BitXor::bitxor));
    }

    /// Replaces the counts of the cell of the word with the number `id` in the class of `cell` by those of `cell`, or removes
    /// it if they are zero. Nothing changes if the word has no cell in that class.
    pub fn set(&mut self, id: usize, cell: &Cell) {
        match self.find(id, cell.class) {
            Some(at) if cell.is_empty() => self.remove(id, at),
            Some(at) => self.spans_and_slots().1.set(at, &cell.counts),
            None => {}
        }
    }

    /// Removes the cell in slot `at`, which is one of the word with the number `id`, and moves the word's later cells one slot
    /// back. There are fewer cells then (`len`), and fewer words with cells (`n_live`) if it was the word's last cell.
    fn remove(&mut self, id: usize, at: usize) {
        let end = self.spans[id].range().end; // the slot after the word's cells
        self.spans_and_slots().1.shift(at + 1..end, at);
        self.spans[id].len -= 1;
        self.len -= 1;
        self.n_live -= usize::from(self.spans[id].len == 0);
    }

    /// Moves the cells of the word with the number `id` to the end of all slots, with half as much room again. With an eighth,
    /// a half or as much again, learning 300 posts one by one takes the same time within 6 %.
    fn make_room(&mut self, id: usize) {
        if self.unowned_slots > self.cells.len() / 4 + Cells::FEW {
            // No word gets more room than it needs.
            self.lay_out(|_| 0);
        }
        let span = self.spans[id]; // where the word's cells are
        let room = span.len + span.len / 2 + 1; // how many slots the word gets
        let start = self.cells.len(); // the first of these slots
        self.lengthen(room as usize);
        self.spans_and_slots().1.shift(span.range(), start);
        self.unowned_slots += span.room as usize;
        self.spans[id] = Span { start, room, ..span };
    }

    /// Appends `slots` slots, empty and in no word's room. If memory must grow for them, it grows by an eighth more.
    fn lengthen(&mut self, slots: usize) {
        let new_len = self.cells.len() + slots; // of all slots
        if new_len > self.cells.capacity() {
            let more_slots = slots + self.cells.len() / 8 + Cells::FEW;
            self.cells.reserve_exact(more_slots);
            self.parts.reserve_exact(if self.unit == Unit::Part { more_slots } else { 0 });
        }
        self.resize(new_len);
    }

    /// Makes the number of slots `len`; new ones are empty: class and counts of 0.
    fn resize(&mut self, len: usize) {
        self.cells.resize(len, ClassCounts::default());
        if self.unit == Unit::Part {
            self.parts.resize(len, Counts::default());
        }
    }

    /// Moves the cells of all words together, in the order of the words' numbers, with room for `more_cells(id)` further cells
    /// of the word with the number `id`.
    pub fn lay_out(&mut self, more_cells: impl Fn(usize) -> u32) {
        // How many slots a word gets.
        let room_of = |(id, span): (usize, &Span)| (span.len + more_cells(id)) as usize;
        let n_slots = self.spans.iter().enumerate().map(room_of).sum();
        let mut moved = Cells::with_room(self.spans.len(), n_slots, self.unit);
        for (id, span) in self.spans.iter().enumerate() {
            // The word's first slot, and how many slots it gets.
            let (start, room) = (moved.cells.len(), span.len + more_cells(id));
            moved.cells.extend_from_slice(&self.cells[span.range()]);
            if self.unit == Unit::Part {
                moved.parts.extend_from_slice(&self.parts[span.range()]);
            }
            moved.resize(start + room as usize);
            moved.spans.push(Span { start, len: span.len, room });
        }
        // Words with cells, and cells, are as before.
        (moved.n_live, moved.len) = (self.n_live, self.len);
        *self = moved;
    }

    /// Cuts the words, which must lie in the order of their numbers, into sections of about `n` slots, which threads may change
    /// at the same time: each has the number of its first word, where the cells of its words are, and its slots. Call
    /// [`Cells::settle`] once cells have been added to sections.
    pub fn sections(&mut self, n: usize) -> Vec<Section<'_>> {
        let (mut spans, mut rest) = self.spans_and_slots(); // of words that are in no section yet
        let (mut sections, mut first_word) = (vec![], 0); // the number of the next section's first word
        while !spans.is_empty() {
            let limit = rest.start + n.max(1); // words that begin in this slot or later are of later sections
            // How many words the section has.
            let words = spans.partition_point(|span| span.start < limit).max(1);
            // Where the cells of the section's words are, and those of later words.
            let (of_section, of_rest) = spans.split_at_mut(words);
            // The slot after the section, and how many slots the section has.
            let end = of_rest.first().map_or(rest.start + rest.cells.len(), |span| span.start);
            let width = end - rest.start;
            let slots;
            (slots, rest) = rest.split(width);
            sections.push(Section { first_word, spans: of_section, slots });
            spans = of_rest;
            first_word += words;
        }
        sections
    }

    /// Counts words with cells, cells, and slots in no word's room again after [`Section::add`].
    pub fn settle(&mut self) {
        let (mut n_live, mut len, mut room) = (0, 0, 0); // words with cells, cells, and slots that are some word's
        for span in &self.spans {
            n_live += usize::from(span.len > 0);
            len += span.len as usize;
            room += span.room as usize;
        }
        (self.n_live, self.len) = (n_live, len);
        self.unowned_slots = self.cells.len() - room;
    }

    /// Appends a word with these cells, whose classes ascend; it gets the next number.
    pub fn push(&mut self, cells: impl Iterator<Item = Cell>) {
        let len = cells.map(|cell| self.push_cell(&cell)).count(); // how many cells
        self.end_word(len);
    }

    /// Makes cells of classes and whole counts (occurrences, documents), with `cells` going from word to word; those of word i
    /// are `starts[i]` to `starts[i + 1]`, in the order of classes.
    pub fn of_whole(starts: &[i64], cells: impl ExactSizeIterator<Item = (u32, [u32; 2])>) -> Self {
        // Where a word's cells are; `word` is where they start and end.
        let span = |word: &[i64]| {
            let [start, end] = [word[0], word[1]];
            let len = (end - start) as u32;
            Span { start: start as usize, len, room: len }
        };
        let spans: Vec<Span> = starts.windows(2).map(span).collect();
        Cells {
            n_live: spans.iter().filter(|span| span.len > 0).count(),
            len: cells.len(),
            spans,
            cells: cells.map(|(class, ones)| ClassCounts { class, ones }).collect(),
            ..Cells::default()
        }
    }

    /// Appends a cell of the next word, which [`Cells::end_word`] completes: its class, and its occurrences and documents in
    /// the unit of all counts.
    #[inline(always)]
    pub fn push_cell(&mut self, cell: &Cell) {
        if self.unit == Unit::Part {
            self.parts.push(cell.counts);
        }
        let ones = cell.counts.map(|count| count.0[0] as u32);
        self.cells.push(ClassCounts { class: cell.class, ones });
    }

    /// Makes the last `len` cells those of a new word, which gets the next number and has no room for more cells. Counts the
    /// words with cells (`n_live`) and the cells (`len`) that are added.
    #[inline(always)]
    pub fn end_word(&mut self, len: usize) {
        self.spans.push(Span { start: self.cells.len() - len, len: len as u32, room: len as u32 });
        self.n_live += usize::from(len > 0);
        self.len += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Occurrences and documents in ones.
    fn whole(counts: [u64; 2]) -> Counts {
        counts.map(|n| Int([n, 0, 0]))
    }

    /// Adds and removes cells of 50 words in 40 classes, in an order that makes them move. Calls `done` after each step with the
    /// word, the class and the occurrences and documents that were added, or zeros if the cell was removed.
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
                let added = match cells.unit {
                    Unit::One => CellCounts::Narrow(vec![counts.map(|n| n as u32)]),
                    Unit::Part => {
                        CellCounts::Parts(vec![Unit::One.counts_to(Unit::Part, whole(counts))])
                    }
                };
                cells.add(id, class, &added, 0);
                done(id, class, counts);
            }
        }
    }

    #[test]
    fn cells_move_and_keep_what_they_hold() {
        for unit in [Unit::One, Unit::Part] {
            let mut cells = Cells::with_room(0, 0, unit);
            // By word and class: occurrences and documents.
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
            let n_live = |id: &usize| expected.keys().any(|(other, _)| other == id);
            assert_eq!(cells.n_live, (0..50).filter(n_live).count());
            let check = |cells: &Cells| {
                let found = (0..50).flat_map(|id| cells.of(id).map(move |cell| (id, cell)));
                for ((id, cell), (key, &counts)) in found.zip(&expected) {
                    let counts = Unit::One.counts_to(cells.unit, whole(counts));
                    assert_eq!(((id, cell.class), cell.counts), (*key, counts));
                    assert_eq!(cells.get(id, cell.class), Some(cell));
                }
            };
            check(&cells);
            let places: usize = cells.spans.iter().map(|span| span.room as usize).sum();
            assert_eq!(cells.unowned_slots + places, cells.cells.len());
            assert!(!cells.is_in_order());
            // Room for up to two more cells of each word.
            cells.lay_out(|id| id as u32 % 3);
            check(&cells);
            cells.grow(60);
            assert!(cells.is_in_order());
            assert!(cells.sections(10).len() > 20);
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
        // Word 1 in class 5: as many occurrences as 32 bits hold, in one document.
        cells.add(1, 5, &CellCounts::Narrow(vec![[u32::MAX, 1]]), 0);
        cells.make_parts();
        for (class, counts) in [(5, [1, 1]), (2, [1 << 40, 1 << 33])] {
            let added = CellCounts::Parts(vec![Unit::One.counts_to(Unit::Part, whole(counts))]);
            cells.add(1, class, &added, 0);
        }
        // Half an occurrence and a quarter of a document more in class 2.
        let parts = [2, 4].map(|share| multiply_parts(PARTS_PER_ONE / share, 1));
        cells.add(1, 2, &CellCounts::Parts(vec![parts]), 0);
        let found: Vec<Cell> = cells.of(1).collect();
        let values = |cell: &Cell| cell.counts.map(|n| Unit::Part.ones(&n));
        assert_eq!(values(&found[0]), [2_f64.powi(40) + 0.5, 2_f64.powi(33) + 0.25]);
        assert_eq!(values(&found[1]), [2_f64.powi(32), 2.0]);
        assert_eq!(Unit::Part.whole_ones(&found[0].counts[0]), (1 << 40, false));
        assert_eq!(Unit::Part.whole_ones(&found[1].counts[0]), (1 << 32, true));
        assert!(!cells.is_live(0));
    }
}
