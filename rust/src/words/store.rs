//! What is counted per (word, class): only the pairs that occur are held.

use crate::expansion::Expansion;
use std::ops::Range;

/// Occurrences and documents, in this order wherever there are two of something.
pub type Counts = [u64; 2];
pub type Sums = [Expansion; 2];

/// Whole numbers as real ones.
pub fn as_sums(counts: Counts) -> Sums {
    counts.map(Expansion::from_whole)
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

/// A class and the lower halves of its two numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    class: u32,
    lower: [u32; 2],
}

/// A word's numbers in one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub class: u32,
    pub counts: Counts,
    /// Zeros while sums are whole.
    pub sums: Sums,
}

impl Cell {
    /// Adds another's numbers.
    pub fn merge(&mut self, other: &Cell) {
        for i in 0..2 {
            self.counts[i] += other.counts[i];
            self.sums[i].merge(&other.sums[i]);
        }
    }

    /// Adds another's numbers if it is of the same class; whether it was.
    pub fn absorbs(&mut self, other: &Cell) -> bool {
        let same = self.class == other.class;
        if same {
            self.merge(other);
        }
        same
    }
}

/// The cells of all words: 12 bytes each, 20 once numbers of more than 32 bits may occur, and 48 more for real sums.
///
/// A word whose cells no longer fit moves to the end; when too much of the space is left behind, all move together again.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    spans: Vec<Span>,
    pairs: Vec<Pair>,
    /// The upper halves, if `wide`.
    upper: Vec<[u32; 2]>,
    wide: bool,
    /// The real sums, if `real`.
    sums: Vec<Sums>,
    real: bool,
    /// Places that no span has.
    lost: usize,
    /// Words that have cells.
    live: usize,
    /// Cells of all words.
    len: usize,
}

/// A run of places, and what lies there.
struct Places<'a> {
    start: usize,
    pairs: &'a mut [Pair],
    upper: &'a mut [[u32; 2]],
    sums: &'a mut [Sums],
}

impl<'a> Places<'a> {
    #[inline(always)]
    fn counts(&self, at: usize) -> Counts {
        let lower = self.pairs[at].lower;
        match self.upper.get(at) {
            None => lower.map(u64::from),
            Some(upper) => [0, 1].map(|i| u64::from(upper[i]) << 32 | u64::from(lower[i])),
        }
    }

    #[inline(always)]
    fn set_counts(&mut self, at: usize, counts: Counts) {
        self.pairs[at].lower = counts.map(|n| n as u32);
        if let Some(upper) = self.upper.get_mut(at) {
            *upper = counts.map(|n| (n >> 32) as u32);
        }
    }

    /// Adds to a word's cell in a class. If it has none yet, there must be room for one more.
    #[inline(always)]
    fn add(&mut self, span: &mut Span, class: u32, counts: Counts, sums: Option<&Sums>) {
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
            self.set_counts(at, counts);
            span.len += 1;
        } else {
            let old = self.counts(at);
            self.set_counts(at, [old[0] + counts[0], old[1] + counts[1]]);
        }
        if let Some(old) = self.sums.get_mut(at) {
            let more = sums.copied().unwrap_or_else(|| as_sums(counts));
            old[0].merge(&more[0]);
            old[1].merge(&more[1]);
        }
    }

    /// An empty place at `at`, the cells from there to `end` one further.
    #[inline(always)]
    fn open(&mut self, at: usize, end: usize) {
        if at < end {
            self.pairs.copy_within(at..end, at + 1);
            if !self.upper.is_empty() {
                self.upper.copy_within(at..end, at + 1);
            }
            if !self.sums.is_empty() {
                self.sums.copy_within(at..end, at + 1);
            }
        }
        if let Some(sums) = self.sums.get_mut(at) {
            *sums = Sums::default();
        }
    }

    /// The first `places` of them, and the rest.
    fn split(self, places: usize) -> (Places<'a>, Places<'a>) {
        let (pairs, more_pairs) = self.pairs.split_at_mut(places);
        let (upper, more_upper) = self.upper.split_at_mut(places.min(self.upper.len()));
        let (sums, more_sums) = self.sums.split_at_mut(places.min(self.sums.len()));
        let first = Places {
            start: self.start,
            pairs,
            upper,
            sums,
        };
        let rest = Places {
            start: self.start + places,
            pairs: more_pairs,
            upper: more_upper,
            sums: more_sums,
        };
        (first, rest)
    }
}

/// The cells of some words, while other threads have those of others.
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

    /// Adds to a word's cell, for which there must be room.
    #[inline(always)]
    pub fn add(&mut self, id: u32, class: u32, counts: Counts, sums: Option<&Sums>) {
        let span = &mut self.spans[id as usize - self.first];
        self.places.add(span, class, counts, sums);
    }
}

impl Cells {
    /// Places for so many cells are not worth moving others for.
    const FEW: usize = 64;

    pub fn new(wide: bool, real: bool) -> Self {
        Cells {
            wide,
            real,
            ..Cells::default()
        }
    }

    pub fn with_room(words: usize, cells: usize, wide: bool, real: bool) -> Self {
        Cells {
            spans: Vec::with_capacity(words),
            pairs: Vec::with_capacity(cells),
            upper: Vec::with_capacity(if wide { cells } else { 0 }),
            sums: Vec::with_capacity(if real { cells } else { 0 }),
            ..Cells::new(wide, real)
        }
    }

    /// Words, with or without cells.
    pub fn words(&self) -> usize {
        self.spans.len()
    }

    /// Words that have cells.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Cells of all words.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_real(&self) -> bool {
        self.real
    }

    pub fn is_wide(&self) -> bool {
        self.wide
    }

    /// Gives words up to this number their (empty) place.
    pub fn grow(&mut self, words: usize) {
        if words > self.spans.len() {
            self.spans.resize(words, Span::default());
        }
    }

    /// Numbers of more than 32 bits may come.
    pub fn widen(&mut self) {
        if !self.wide {
            self.wide = true;
            self.upper = vec![[0; 2]; self.pairs.len()];
        }
    }

    /// Sums may become real.
    pub fn make_real(&mut self) {
        if !self.real {
            self.real = true;
            let places = 0..self.pairs.len();
            self.sums = places.map(|at| as_sums(self.counts(at))).collect();
        }
    }

    fn counts(&self, at: usize) -> Counts {
        let lower = self.pairs[at].lower;
        match self.upper.get(at) {
            None => lower.map(u64::from),
            Some(upper) => [0, 1].map(|i| u64::from(upper[i]) << 32 | u64::from(lower[i])),
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
        self.spans[id].range().map(|at| Cell {
            class: self.pairs[at].class,
            counts: self.counts(at),
            sums: self.sums.get(at).copied().unwrap_or_default(),
        })
    }

    /// The classes a word has cells in.
    pub fn classes(&self, id: usize) -> impl Iterator<Item = u32> + '_ {
        self.pairs[self.spans[id].range()]
            .iter()
            .map(|pair| pair.class)
    }

    /// A word's cell in a class.
    pub fn get(&self, id: usize, class: u32) -> Option<Cell> {
        let span = self.spans.get(id)?;
        let pairs = &self.pairs[span.range()];
        let at = pairs.binary_search_by_key(&class, |pair| pair.class).ok()?;
        self.of(id).nth(at)
    }

    pub fn has(&self, id: usize, class: u32) -> bool {
        let pairs = &self.pairs[self.spans[id].range()];
        pairs
            .binary_search_by_key(&class, |pair| pair.class)
            .is_ok()
    }

    fn places(&mut self) -> (&mut [Span], Places<'_>) {
        let places = Places {
            start: 0,
            pairs: &mut self.pairs,
            upper: &mut self.upper,
            sums: &mut self.sums,
        };
        (&mut self.spans, places)
    }

    /// Adds to a word's cell in a class. `sums` is left out where all that is added is whole.
    pub fn add(&mut self, id: usize, class: u32, counts: Counts, sums: Option<&Sums>) {
        if self.spans[id].len == self.spans[id].room {
            self.make_room(id);
        }
        let (spans, mut places) = self.places();
        let before = spans[id].len;
        places.add(&mut spans[id], class, counts, sums);
        let after = spans[id].len;
        self.live += usize::from(before == 0);
        self.len += (after - before) as usize;
    }

    /// Loads the cells of words that will be asked for one after the other: nothing waits for these loads, so that all that the cache
    /// does not have is under way together.
    pub fn load(&self, ids: &[u32]) {
        let middle = |&id: &u32| {
            let span = self.spans[id as usize];
            let pair = self.pairs.get(span.start + span.len as usize / 2);
            pair.map_or(0, |pair| pair.class)
        };
        std::hint::black_box(ids.iter().map(middle).fold(0, std::ops::BitXor::bitxor));
    }

    /// Replaces a cell that is there; without documents it is gone.
    pub fn set(&mut self, id: usize, class: u32, counts: Counts, sums: &Sums) {
        let span = self.spans[id];
        let pairs = &self.pairs[span.range()];
        let Ok(at) = pairs.binary_search_by_key(&class, |pair| pair.class) else {
            return;
        };
        let at = span.start + at;
        if counts[1] == 0 {
            self.remove(id, at);
            return;
        }
        self.places().1.set_counts(at, counts);
        if let Some(old) = self.sums.get_mut(at) {
            *old = *sums;
        }
    }

    fn remove(&mut self, id: usize, at: usize) {
        let end = self.spans[id].range().end;
        self.pairs.copy_within(at + 1..end, at);
        if self.wide {
            self.upper.copy_within(at + 1..end, at);
        }
        if self.real {
            self.sums.copy_within(at + 1..end, at);
        }
        self.spans[id].len -= 1;
        self.len -= 1;
        self.live -= usize::from(self.spans[id].len == 0);
    }

    /// Moves a word to the end, with half as much room again.
    fn make_room(&mut self, id: usize) {
        if self.lost > self.pairs.len() / 4 + Cells::FEW {
            self.lay_out(|_| 0);
        }
        let span = self.spans[id];
        let room = span.len + span.len / 2 + 1;
        let start = self.pairs.len();
        self.lengthen(room as usize);
        let range = span.range();
        self.pairs.copy_within(range.clone(), start);
        if self.wide {
            self.upper.copy_within(range.clone(), start);
        }
        if self.real {
            self.sums.copy_within(range, start);
        }
        self.lost += span.room as usize;
        self.spans[id] = Span {
            start,
            room,
            ..span
        };
    }

    /// More places at the end. Space grows by an eighth at a time: half as much again would be felt in the memory of a large store.
    fn lengthen(&mut self, places: usize) {
        let len = self.pairs.len() + places;
        if len > self.pairs.capacity() {
            let more = places + self.pairs.len() / 8 + Cells::FEW;
            self.pairs.reserve_exact(more);
            self.upper.reserve_exact(if self.wide { more } else { 0 });
            self.sums.reserve_exact(if self.real { more } else { 0 });
        }
        self.pairs.resize(len, Pair::default());
        if self.wide {
            self.upper.resize(len, [0; 2]);
        }
        if self.real {
            self.sums.resize(len, Sums::default());
        }
    }

    /// Moves all words together, in the order of their numbers, with room for so many more cells of each.
    pub fn lay_out(&mut self, more: impl Fn(usize) -> u32) {
        let room = |(id, span): (usize, &Span)| (span.len + more(id)) as usize;
        let places = self.spans.iter().enumerate().map(room).sum();
        let mut made = Cells::with_room(self.spans.len(), places, self.wide, self.real);
        for (id, span) in self.spans.iter().enumerate() {
            let (start, room) = (made.pairs.len(), span.len + more(id));
            let end = start + room as usize;
            made.pairs.extend_from_slice(&self.pairs[span.range()]);
            made.pairs.resize(end, Pair::default());
            if self.wide {
                made.upper.extend_from_slice(&self.upper[span.range()]);
                made.upper.resize(end, [0; 2]);
            }
            if self.real {
                made.sums.extend_from_slice(&self.sums[span.range()]);
                made.sums.resize(end, Sums::default());
            }
            made.spans.push(Span {
                start,
                len: span.len,
                room,
            });
        }
        (made.live, made.len) = (self.live, self.len);
        *self = made;
    }

    /// All words in parts of about `places` cells each, and what is to be done when they have been added to: [`Cells::settle`].
    /// Only right after [`Cells::lay_out`], when words lie in the order of their numbers.
    pub fn parts(&mut self, places: usize) -> Vec<Part<'_>> {
        let (mut spans, mut rest) = self.places();
        let (mut parts, mut first) = (vec![], 0);
        while !spans.is_empty() {
            let limit = rest.start + places.max(1);
            let words = spans.partition_point(|span| span.start < limit).max(1);
            let (mine, others) = spans.split_at_mut(words);
            let end = others
                .first()
                .map_or(rest.start + rest.pairs.len(), |span| span.start);
            let (here, beyond) = {
                let width = end - rest.start;
                rest.split(width)
            };
            parts.push(Part {
                first,
                spans: mine,
                places: here,
            });
            (spans, rest, first) = (others, beyond, first + words);
        }
        parts
    }

    /// Counts anew what there is, after parts have been added to.
    pub fn settle(&mut self) {
        self.live = self.spans.iter().filter(|span| span.len > 0).count();
        self.len = self.spans.iter().map(|span| span.len as usize).sum();
        let room: usize = self.spans.iter().map(|span| span.room as usize).sum();
        self.lost = self.pairs.len() - room;
    }

    /// Adds a word at the end with these cells, whose classes ascend.
    pub fn push(&mut self, cells: impl Iterator<Item = Cell>) {
        let len = cells.map(|cell| self.push_cell(&cell)).count();
        self.end_word(len);
    }

    /// The cells of words whose whole numbers fit 32 bits: word i's are from `starts[i]` to `starts[i + 1]`, in the order of classes.
    pub fn of_whole(starts: &[i64], cells: impl ExactSizeIterator<Item = (u32, [u32; 2])>) -> Self {
        let span = |ends: &[i64]| Span {
            start: ends[0] as usize,
            len: (ends[1] - ends[0]) as u32,
            room: (ends[1] - ends[0]) as u32,
        };
        let spans: Vec<Span> = starts.windows(2).map(span).collect();
        Cells {
            live: spans.iter().filter(|span| span.len > 0).count(),
            len: cells.len(),
            spans,
            pairs: cells.map(|(class, lower)| Pair { class, lower }).collect(),
            ..Cells::default()
        }
    }

    /// Adds a cell of the word that [`Cells::end_word`] then ends.
    #[inline(always)]
    pub fn push_cell(&mut self, cell: &Cell) {
        self.pairs.push(Pair {
            class: cell.class,
            lower: cell.counts.map(|n| n as u32),
        });
        if self.wide {
            self.upper.push(cell.counts.map(|n| (n >> 32) as u32));
        }
        if self.real {
            self.sums.push(cell.sums);
        }
    }

    /// Makes the last so many cells those of a word at the end.
    #[inline(always)]
    pub fn end_word(&mut self, len: usize) {
        self.spans.push(Span {
            start: self.pairs.len() - len,
            len: len as u32,
            room: len as u32,
        });
        self.live += usize::from(len > 0);
        self.len += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Adds and removes cells of many words in an order that makes them move.
    fn shuffled(cells: &mut Cells, mut done: impl FnMut(&Cells, usize, u32, Counts)) {
        let mut state = 1_u32;
        cells.grow(50);
        for step in 0..5000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (id, class) = ((state >> 8) as usize % 50, (state >> 20) % 40);
            if step % 3 == 2 {
                let nothing = Sums::default();
                cells.set(id, class, [0, 0], &nothing);
                done(cells, id, class, [0, 0]);
            } else {
                let counts = [u64::from(state % 7) + 1, 1];
                cells.add(id, class, counts, None);
                done(cells, id, class, counts);
            }
        }
    }

    #[test]
    fn cells_move_and_keep_what_they_hold() {
        for (wide, real) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut cells = Cells::new(wide, real);
            let mut expected: BTreeMap<(usize, u32), Counts> = BTreeMap::new();
            shuffled(&mut cells, |_, id, class, counts| {
                let cell = expected.entry((id, class)).or_default();
                *cell = match counts {
                    [0, 0] => [0, 0],
                    more => [cell[0] + more[0], cell[1] + more[1]],
                };
            });
            expected.retain(|_, counts| *counts != [0, 0]);
            assert_eq!(cells.len(), expected.len());
            let live = |id: &usize| expected.keys().any(|(other, _)| other == id);
            assert_eq!(cells.live(), (0..50).filter(live).count());
            let check = |cells: &Cells| {
                let found = (0..50).flat_map(|id| cells.of(id).map(move |cell| (id, cell)));
                for ((id, cell), (key, &counts)) in found.zip(&expected) {
                    assert_eq!(((id, cell.class), cell.counts), (*key, counts));
                    let sums = if real {
                        as_sums(counts)
                    } else {
                        Sums::default()
                    };
                    assert_eq!(cell.sums, sums);
                    assert_eq!(cells.get(id, cell.class), Some(cell));
                }
            };
            check(&cells);
            let places: usize = cells.spans.iter().map(|span| span.room as usize).sum();
            assert_eq!(cells.lost + places, cells.pairs.len());
            cells.lay_out(|id| id as u32 % 3);
            check(&cells);
            assert!(cells.parts(10).len() > 20);
            cells.settle();
            check(&cells);
        }
    }

    #[test]
    fn cells_grow_wide_and_real() {
        let mut cells = Cells::default();
        cells.grow(2);
        cells.add(1, 5, [u64::from(u32::MAX), 1], None);
        cells.widen();
        cells.add(1, 5, [1, 1], None);
        cells.add(1, 2, [1 << 40, 1 << 33], None);
        cells.make_real();
        let half = [0.5, 0.25].map(|x| Expansion::from_parts([x, 0.0, 0.0]));
        cells.add(1, 2, [1, 1], Some(&half));
        let found: Vec<Cell> = cells.of(1).collect();
        assert_eq!(found[0].counts, [(1 << 40) + 1, (1 << 33) + 1]);
        assert_eq!(found[0].sums[0].value(), 2_f64.powi(40) + 0.5);
        assert_eq!(found[1].counts, [1 << 32, 2]);
        assert_eq!(found[1].sums[1].value(), 2.0);
        assert!(!cells.is_live(0));
    }
}
