//! The weights of a word in each class: a row of numbers per word id.
//!
//! A row is kept whole, in cache lines, if there are very few classes, or if many of the classes have the word. Other rows are kept
//! as pairs of class and value, with everything else of the row beside them, so that the row of a rare word costs a cache miss or
//! two.

use super::UNKNOWN;
use crate::error::{Error, demand};
use crate::scale::FARTHEST;
use crate::threads;
use std::ops::Range;

/// Numbers in a cache line of 64 bytes.
pub const LANES: usize = 8;

/// The row of a word that at least one in so many classes has is kept whole.
/// Setting the rows of words and pairs of 20 Newsgroups takes the same time within 4 % with 1 and 4.
const SHARE: usize = 4;

/// Ids, numbers of whole rows and places of pairs stay below this; the highest bit of a [`Place`] marks pairs.
const MOST: u32 = 1 << 31;

/// Fewer lost numbers than this are left alone. To learn 20 times 20 texts and predict one took 93 ms, 76 with 2^6 and a [`PIECE`] of
/// 2^8, and 79 with 2^18 and 2^16, while two measurements of one of them were up to 23 ms apart.
const LITTER: usize = 1 << 12;

/// Rows that a thread writes at a time. See [`LITTER`].
pub const PIECE: usize = 1 << 12;

/// Eight numbers in one cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(align(64))]
pub struct Line(pub [f64; LANES]);

/// Where a word's row stands: `UNKNOWN`, or the number of a whole row, or `MOST` plus the place of its pairs.
pub type Place = u32;

/// A row kept by its pairs: its value for each class it has a pair in, and `common + default[c]` for every other class c.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// What the row has in every class without a pair, before the class's default is added.
    pub common: f64,
    /// What a token of the word counts.
    pub scale: f64,
    /// How many pairs there are.
    len: usize,
    /// The number of pairs and then the classes, each in 32 bits, two to a number.
    classes: &'a [u64],
    /// The bits of the value of each pair.
    values: &'a [u64],
}

impl<'a> Pairs<'a> {
    /// How many numbers come before the classes: common and scale.
    const HEAD: usize = 2;

    /// How many numbers a row of `len` pairs takes: the head, the number of pairs with the classes, and the values.
    const fn size(len: usize) -> usize {
        Pairs::HEAD + len / 2 + 1 + len
    }

    /// The row of pairs at the beginning of `numbers`, which are bits: common and scale; the number of pairs and the class of
    /// each, two to a number; the value of each pair. None if they are too few.
    #[inline(always)]
    fn first(numbers: &'a [u64]) -> Option<Self> {
        let &[common, scale, len, ..] = numbers else {
            return None;
        };
        let len = len as u32 as usize; // the upper half is the first class
        let (classes, values) =
            numbers.get(Pairs::HEAD..Pairs::size(len))?.split_at_checked(len / 2 + 1)?;
        Some(Pairs {
            common: f64::from_bits(common),
            scale: f64::from_bits(scale),
            len,
            classes,
            values,
        })
    }

    /// The class and the value (weight) of each pair, in the order of classes.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = (usize, f64)> {
        // Two to a number, after the number of pairs: the i-th class is in the lower half if i is odd.
        let class = move |i: usize| (self.classes[i.div_ceil(2)] >> (32 * ((i + 1) % 2))) as u32;
        let values = self.values.iter().enumerate();
        values.map(move |(i, &bits)| (class(i) as usize, f64::from_bits(bits)))
    }
}

/// Rows of words as arrays. That of the i-th word has `values[j]` for class `classes[j]`, `starts[i] <= j < starts[i + 1]`, and
/// `common[i]` plus the class's default for all other classes.
#[derive(Clone, Copy, Debug)]
pub struct RowArrays<'a> {
    /// The words.
    pub ids: &'a [u32],
    /// The number of each word in classes without a pair, to which the class's default is added.
    pub common: &'a [f64],
    /// What a token of each word counts; 1 if there are none.
    pub scale: Option<&'a [f64]>,
    /// Where the pairs of each word start, and where those of the last one end.
    pub starts: &'a [i64],
    /// The class of each pair.
    pub classes: &'a [i32],
    /// The value of each pair.
    pub values: &'a [f64],
}

/// Rows of words to be set.
pub trait RowsToSet: Sync {
    /// The word of each row.
    fn ids(&self) -> &[u32];
    /// How many pairs the i-th row has.
    fn len(&self, i: usize) -> usize;
    /// The i-th row's number in classes without a pair, to which the class's default is added; and its scale, what a token of
    /// the word counts.
    fn common(&self, i: usize) -> [f64; 2];
    /// The i-th row's classes, which ascend, and values.
    fn pairs(&self, i: usize) -> impl Iterator<Item = (usize, f64)>;

    /// Writes the i-th row to `row`, the cache lines of a whole row: a number per class, zeros, and at the very end the scale,
    /// which is what a token of the word counts. `default` is added to the row's common number in classes without a pair,
    /// `[class]`.
    fn write_whole(&self, i: usize, row: &mut [Line], default: &[f64]) {
        let [common, scale] = self.common(i);
        if self.len(i) < default.len() {
            for (line, default) in row.iter_mut().zip(default.chunks(LANES)) {
                let numbers = line.0.iter_mut().zip(default);
                numbers.for_each(|(number, default)| *number = common + default);
            }
        }
        for (class, weight) in self.pairs(i) {
            row[class / LANES].0[class % LANES] = weight;
        }
        if let Some(line) = row.last_mut() {
            line.0[LANES - 1] = scale;
        }
    }

    /// Writes the i-th row as pairs to `numbers`, of which there are as many as the row takes ([`Pairs::size`]): the bits of the
    /// common number and of the scale; the number of pairs and the class of each, two to a number; the bits of the value of each.
    fn write_pairs(&self, i: usize, numbers: &mut [u64]) {
        let (head, rest) = numbers.split_at_mut(Pairs::HEAD); // common and scale; classes and values
        head.copy_from_slice(&self.common(i).map(f64::to_bits));
        let (classes, values) = rest.split_at_mut(self.len(i) / 2 + 1);
        classes.fill(0);
        classes[0] = self.len(i) as u64;
        // The classes come after the number of pairs, two to a number.
        for ((at, (class, weight)), weight_bits) in (1..).zip(self.pairs(i)).zip(values) {
            classes[at / 2] |= (class as u64) << (32 * (at % 2));
            *weight_bits = weight.to_bits();
        }
    }
}

impl RowsToSet for RowArrays<'_> {
    /// The word of each row.
    fn ids(&self) -> &[u32] {
        self.ids
    }

    /// How many pairs the i-th row has.
    #[inline(always)]
    fn len(&self, i: usize) -> usize {
        (self.starts[i + 1] - self.starts[i]) as usize
    }

    /// The i-th row's number in classes without a pair, to which the class's default is added; and its scale, what a token of
    /// the word counts.
    #[inline(always)]
    fn common(&self, i: usize) -> [f64; 2] {
        [self.common[i], self.scale.map_or(1.0, |scale| scale[i])]
    }

    /// The classes of the i-th row's pairs, and its value, a weight, in each.
    #[inline(always)]
    fn pairs(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let pairs = self.starts[i] as usize..self.starts[i + 1] as usize; // positions in `classes` and `values`
        let classes = self.classes[pairs.clone()].iter();
        classes.zip(&self.values[pairs]).map(|(&class, &weight)| (class as usize, weight))
    }
}

/// The room that some rows need.
struct Need {
    /// One more than the greatest id.
    n_ids: usize,
    /// How many whole rows.
    n_whole: usize,
    /// How many numbers of rows of pairs.
    n_numbers: usize,
}

/// A row of numbers for each word that is set.
#[derive(Clone, Debug)]
pub struct Weights {
    /// By class: what is added to a word's common number where it has no pair.
    default: Vec<f64>,
    /// By id: where the word's row stands.
    places: Vec<Place>,
    /// Cache lines per whole row.
    lines: usize,
    /// Whole rows, one after the other, `lines` each.
    whole: Vec<Line>,
    /// Rows of pairs, one after the other: common and scale, classes, values.
    pairs: Vec<u64>,
    /// Lines in `whole` that no row owns any more.
    lost_lines: usize,
    /// Numbers in `pairs` that no row owns any more.
    lost_numbers: usize,
}

impl Weights {
    /// Weights without rows. `default[c]` is added to a word's common number in each class c that the word has no pair in.
    pub fn new(default: &[f64]) -> Result<Self, Error> {
        demand(!default.is_empty(), "default must have at least one class")?;
        demand(default.len() < MOST as usize, "there must be fewer than 2**31 classes")?;
        demand_all_weights(default)?;
        Ok(Weights {
            default: default.to_vec(),
            places: vec![], // where the row of each word is, `[word]`
            // Cache lines of a whole row: a number per class, and the scale.
            lines: (default.len() + 1).div_ceil(LANES),
            whole: vec![],   // lines of whole rows
            pairs: vec![],   // numbers of rows of pairs
            lost_lines: 0,   // lines that no row owns any more
            lost_numbers: 0, // numbers that no row owns any more
        })
    }

    /// Makes room for `n_words` words; it costs no memory until they are set.
    #[must_use]
    pub fn with_room(mut self, n_words: usize) -> Self {
        // As if each word had a single pair.
        let numbers = if self.lines > 1 { Pairs::size(1).saturating_mul(n_words) } else { 0 };
        // If there is no memory, room is made when rows come.
        let _ = self.places.try_reserve(n_words).and_then(|()| self.pairs.try_reserve(numbers));
        self
    }

    /// How many classes there are.
    pub fn n_classes(&self) -> usize {
        self.default.len()
    }

    /// By class: what is added to a word's common number where it has no pair.
    pub fn default(&self) -> &[f64] {
        &self.default
    }

    /// Cache lines per whole row.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// All whole rows.
    pub fn whole(&self) -> &[Line] {
        &self.whole
    }

    /// The place of a word's row; [`UNKNOWN`] if the word is not set.
    #[inline(always)]
    pub fn place(&self, id: u32) -> Place {
        self.places.get(id as usize).copied().unwrap_or(UNKNOWN)
    }

    /// The whole row at this place (its number among whole rows): the numbers of all classes, zeros, and at the very end the
    /// scale; none if the row is one of pairs or the word is not set.
    #[inline(always)]
    pub fn whole_row(&self, place: Place) -> Option<&[Line]> {
        let first_line = place as usize * self.lines;
        self.whole.get(first_line..first_line + self.lines)
    }

    /// The row of pairs at this place (`MOST` plus where its numbers begin); none if the row is whole or the word is not set.
    #[inline(always)]
    pub fn pairs(&self, place: Place) -> Option<Pairs<'_>> {
        let from = place.checked_sub(MOST)? as usize; // where the row's numbers begin
        Pairs::first(self.pairs.get(from..)?)
    }

    /// Loads the row of pairs at this place into the cache, and returns one of its numbers, 0 if it is not a row of pairs. A
    /// caller who touches a number of places waits for all of them at once.
    #[inline(always)]
    pub fn touch(&self, place: Place) -> u64 {
        let at = (place.wrapping_sub(MOST) as usize).saturating_add(Pairs::HEAD); // of the number
        self.pairs.get(at).copied().unwrap_or(0)
    }

    /// Sets the rows of words, whatever rows they had before, on so many threads. An error leaves everything as it was.
    pub fn set(&mut self, rows: &RowArrays, threads: usize) -> Result<(), Error> {
        rows.check()?;
        let threads = threads::worth(threads, rows.values.len());
        // The rows, [`PIECE`] at a time.
        let pieces: Vec<RowArrays> =
            (0..rows.ids.len().div_ceil(PIECE)).map(|i| rows.piece(i)).collect();
        threads::try_map(threads, pieces.len(), |i| pieces[i].check_rows(self.n_classes()))?;
        self.set_rows(&pieces, threads)
    }

    /// [`Weights::set`] for rows in pieces, which must have been checked, on so many threads.
    pub fn set_rows<R: RowsToSet>(&mut self, pieces: &[R], threads: usize) -> Result<(), Error> {
        let needs = threads::map(threads, pieces.len(), |i| self.need(&pieces[i])); // the room that each piece needs
        self.make_room(&needs)?;
        self.append(pieces, &needs, threads);
        self.tidy();
        Ok(())
    }

    /// Sets the rows of words, whatever rows they had before, and removes those of words that have no pairs.
    pub fn follow(&mut self, rows: &impl RowsToSet) -> Result<(), Error> {
        demand(have_weights(rows), NOT_A_WEIGHT)?;
        self.set_rows(std::slice::from_ref(rows), 1)?;
        // The positions and numbers of words without pairs.
        let without_pairs = rows.ids().iter().enumerate().filter(|(i, _)| rows.len(*i) == 0);
        without_pairs.for_each(|(_, &id)| self.free(id));
        self.tidy();
        Ok(())
    }

    /// Removes the rows of the words with the numbers `ids`.
    pub fn skip(&mut self, ids: &[u32]) {
        for &id in ids {
            self.free(id);
        }
        self.tidy();
    }

    /// The scale of the word with the number `id`, what a token of the word counts; none if the word is not set.
    #[inline(always)]
    pub fn scale(&self, id: u32) -> Option<f64> {
        let place = self.place(id);
        match self.whole_row(place) {
            Some(lines) => lines.last().map(|line| line.0[LANES - 1]),
            None => self.pairs(place).map(|row| row.scale),
        }
    }

    /// Writes the weights in all classes of the word with the number `id` to `row`, `[class]`, and returns its scale, what a
    /// token of the word counts; none, and no change, if the word is not set. A row of pairs has in classes without a pair its
    /// common number plus the class's default.
    pub fn read(&self, id: u32, row: &mut [f64]) -> Option<f64> {
        let place = self.place(id);
        if let Some(lines) = self.whole_row(place) {
            for (numbers, line) in row.chunks_mut(LANES).zip(lines) {
                numbers.copy_from_slice(&line.0[..numbers.len()]);
            }
            return lines.last().map(|line| line.0[LANES - 1]);
        }
        let pairs = self.pairs(place)?;
        for (number, default) in row.iter_mut().zip(&self.default) {
            *number = pairs.common + default;
        }
        for (class, weight) in pairs.iter() {
            row[class] = weight;
        }
        Some(pairs.scale)
    }

    /// Where in `pairs` the numbers of the row of the word with the number `id` are; none if it is not a row of pairs.
    fn room(&self, id: u32) -> Option<Range<usize>> {
        let place = self.place(id);
        let from = place.checked_sub(MOST)? as usize;
        let len = self.pairs(place)?.len; // how many pairs the row has
        Some(from..from + Pairs::size(len))
    }

    /// The room that rows need: words, one more than their greatest number; whole rows; numbers of rows of pairs.
    fn need(&self, rows: &impl RowsToSet) -> Need {
        let mut need = Need { n_ids: 0, n_whole: 0, n_numbers: 0 };
        for (i, &id) in rows.ids().iter().enumerate() {
            need.n_ids = need.n_ids.max(id as usize + 1);
            match is_whole(rows.len(i), self.n_classes(), self.lines) {
                true => need.n_whole += 1,
                false => need.n_numbers += Pairs::size(rows.len(i)),
            }
        }
        need
    }

    /// Makes room for all of these rows, so that nothing fails half-way; an error if there is no memory. `needs` is the room
    /// that each piece of the rows needs.
    fn make_room(&mut self, needs: &[Need]) -> Result<(), Error> {
        let too_many = |_| Error::malformed("the weights do not fit into memory");
        // One more than the greatest number of a word.
        let n_ids = needs.iter().map(|need| need.n_ids).max().unwrap_or(0);
        let more_ids = n_ids.saturating_sub(self.places.len()); // words without a place yet
        self.places.try_reserve(more_ids).map_err(too_many)?;
        let n_whole: usize = needs.iter().map(|need| need.n_whole).sum(); // whole rows
        let n_numbers: usize = needs.iter().map(|need| need.n_numbers).sum(); // of rows of pairs
        demand(
            self.whole.len() / self.lines + n_whole < MOST as usize
                && self.pairs.len() + n_numbers < (UNKNOWN - MOST) as usize,
            "weights must be those of fewer than 2**31 words, and take less than 16 GB",
        )?;
        let more_lines = n_whole.saturating_mul(self.lines);
        self.whole.try_reserve(more_lines).map_err(too_many)?;
        self.pairs.try_reserve(n_numbers).map_err(too_many)?;
        self.places.resize(self.places.len() + more_ids, UNKNOWN);
        Ok(())
    }

    /// Writes pieces of rows after those that are there, on so many threads, and removes the former rows of their words.
    /// `needs` is the room that each piece needs.
    fn append<R: RowsToSet>(&mut self, pieces: &[R], needs: &[Need], threads: usize) {
        let mut next_whole = self.whole.len() / self.lines; // the number of the next whole row
        let mut next_number = self.pairs.len(); // where the next row of pairs begins
        let more_lines: usize = needs.iter().map(|need| need.n_whole * self.lines).sum();
        let more_numbers: usize = needs.iter().map(|need| need.n_numbers).sum();
        threads::lengthen(threads, &mut self.whole, more_lines, Line::default());
        threads::lengthen(threads, &mut self.pairs, more_numbers, 0);
        // Memory for whole rows, and for rows of pairs, of later pieces.
        let mut free_lines = &mut self.whole[next_whole * self.lines..];
        let mut free_numbers = &mut self.pairs[next_number..];
        let mut tasks = vec![]; // a piece, where its rows go, and the memory for them
        for (rows, need) in pieces.iter().zip(needs) {
            let (lines, numbers); // of the piece
            (lines, free_lines) = free_lines.split_at_mut(need.n_whole * self.lines);
            (numbers, free_numbers) = free_numbers.split_at_mut(need.n_numbers);
            tasks.push((rows, next_whole, next_number, lines, numbers));
            next_whole += need.n_whole;
            next_number += need.n_numbers;
        }
        let (lines_per_row, default) = (self.lines, &self.default);
        // Where each row is now, `[piece][row]`.
        let places = threads::each(threads, &mut tasks, |_, task| {
            let (rows, next_whole, next_number, lines, numbers) = task;
            let mut whole_rows = lines.chunks_exact_mut(lines_per_row);
            let mut numbers = &mut numbers[..];
            let mut places = Vec::with_capacity(rows.ids().len()); // of the rows of this piece
            for i in 0..rows.ids().len() {
                if is_whole(rows.len(i), default.len(), lines_per_row) {
                    places.push(*next_whole as u32);
                    *next_whole += 1;
                    if let Some(row) = whole_rows.next() {
                        rows.write_whole(i, row, default);
                    }
                } else {
                    let size = Pairs::size(rows.len(i)); // in numbers
                    places.push(MOST + *next_number as u32);
                    *next_number += size;
                    let row; // the row's numbers
                    (row, numbers) = std::mem::take(&mut numbers).split_at_mut(size);
                    rows.write_pairs(i, row);
                }
            }
            places
        });
        let ids = pieces.iter().flat_map(|rows| rows.ids());
        for (&id, place) in ids.zip(places.into_iter().flatten()) {
            self.free(id);
            self.places[id as usize] = place;
        }
    }

    /// Removes the row of the word with the number `id`, if it has one, and counts what it leaves unused: lines of a whole row
    /// (`lost_lines`), or numbers of a row of pairs (`lost_numbers`).
    fn free(&mut self, id: u32) {
        let n_numbers = self.room(id).map_or(0, |room| room.len()); // of the row, if it is one of pairs
        if let Some(place) = self.places.get_mut(id as usize) {
            // Whole rows have places below MOST, rows of pairs have higher ones.
            match std::mem::replace(place, UNKNOWN) {
                UNKNOWN => {}
                ..MOST => self.lost_lines += self.lines,
                _ => self.lost_numbers += n_numbers,
            }
        }
    }

    /// Moves rows together once at least half of the lines or numbers are lost, that is no row owns them any more: each move
    /// has then been paid for by a row that was set.
    fn tidy(&mut self) {
        // Whether at least half of the lines, or of the numbers, are lost.
        let tidy_whole =
            self.lost_lines >= LITTER / LANES && self.lost_lines * 2 >= self.whole.len();
        let tidy_pairs = self.lost_numbers >= LITTER && self.lost_numbers * 2 >= self.pairs.len();
        if !tidy_whole && !tidy_pairs {
            return;
        }
        // The words that have a row, in the order of their rows.
        let mut ids: Vec<u32> = (0..self.places.len() as u32).collect();
        ids.retain(|&id| self.place(id) != UNKNOWN);
        ids.sort_unstable_by_key(|&id| self.place(id));
        // Whole rows that were moved, and numbers of rows of pairs that were moved.
        let (mut n_whole, mut n_numbers) = (0, 0);
        for id in ids {
            if let Some(room) = self.room(id) {
                self.pairs.copy_within(room.clone(), n_numbers);
                self.places[id as usize] = MOST + n_numbers as u32;
                n_numbers += room.len();
            } else {
                let first_line = self.place(id) as usize * self.lines;
                let lines = first_line..first_line + self.lines;
                self.whole.copy_within(lines, n_whole * self.lines);
                self.places[id as usize] = n_whole as u32;
                n_whole += 1;
            }
        }
        self.whole.truncate(n_whole * self.lines);
        self.pairs.truncate(n_numbers);
        (self.lost_lines, self.lost_numbers) = (0, 0);
    }
}

/// Whether a row of so many pairs is kept whole; `lines` is how many cache lines a whole row has.
fn is_whole(n_pairs: usize, n_classes: usize, lines: usize) -> bool {
    lines == 1 || n_pairs * SHARE >= n_classes
}

/// Refuses numbers that are not weights: those must be -inf or between -2^400 and 2^400.
pub fn demand_all_weights(numbers: &[f64]) -> Result<(), Error> {
    demand(are_weights(numbers), NOT_A_WEIGHT)
}

const NOT_A_WEIGHT: &str = "weights must be -inf or between -2**400 and 2**400";

/// Whether all numbers are weights: -inf, or between -2^400 and 2^400. It does not stop at the first that is not one, so that
/// it checks several at a time.
fn are_weights(numbers: &[f64]) -> bool {
    let is_weight = |x: &f64| (*x == f64::NEG_INFINITY) | (x.abs() <= FARTHEST);
    numbers.iter().fold(true, |all, x| all & is_weight(x))
}

/// Whether all rows have weights only. A row belongs to a word: pairs of a class and its weight, and, in `common`, first the
/// weight of all other classes and then the scale of the row.
fn have_weights(rows: &impl RowsToSet) -> bool {
    (0..rows.ids().len()).all(|i| {
        are_weights(&[rows.common(i)[0]]) && rows.pairs(i).all(|(_, weight)| are_weights(&[weight]))
    })
}

/// Refuses numbers that are not one weight per class.
pub(crate) fn demand_weights(numbers: &[f64], n_classes: usize) -> Result<(), Error> {
    demand(numbers.len() == n_classes, "weights of classes must have one number per class")?;
    demand_all_weights(numbers)
}

impl RowArrays<'_> {
    /// The i-th piece of the rows, of [`PIECE`] words; classes and values are those of all rows, since `starts` are positions
    /// in them.
    fn piece(&self, i: usize) -> Self {
        let words = i * PIECE..self.ids.len().min((i + 1) * PIECE);
        RowArrays {
            ids: &self.ids[words.clone()],
            common: &self.common[words.clone()],
            scale: self.scale.map(|scale| &scale[words.clone()]),
            starts: &self.starts[words.start..=words.end],
            ..*self
        }
    }

    /// Refuses arrays whose lengths do not fit each other (`ids`, `common` and `scale` have an element per word, `starts` one
    /// more, `classes` and `values` one per pair), and starts that do not ascend.
    fn check(&self) -> Result<(), Error> {
        let n_words = self.ids.len();
        demand(
            self.common.len() == n_words && self.scale.is_none_or(|scale| scale.len() == n_words),
            "common and scale must have one number per id",
        )?;
        demand(
            self.starts.len() == n_words + 1
                && self.starts[0] >= 0
                && self.starts.is_sorted()
                && self.starts[n_words] as usize <= self.classes.len(),
            "starts must be one more than ids, ascend, and stay within the pairs",
        )?;
        demand(self.values.len() == self.classes.len(), "values must have one number per pair")
    }

    /// Refuses rows with ids (numbers of words), classes, common numbers, values or scales that no row can have, where there
    /// are `n_classes` classes.
    fn check_rows(&self, n_classes: usize) -> Result<(), Error> {
        let n_words = self.ids.len();
        let pairs = self.starts[0] as usize..self.starts[n_words] as usize; // positions of the pairs of these words
        let (classes, values) = (&self.classes[pairs.clone()], &self.values[pairs]);
        demand(self.ids.iter().all(|&id| id < MOST), "ids must be below 2**31")?;
        demand(are_weights(values) && are_weights(self.common), NOT_A_WEIGHT)?;
        demand(
            self.scale.is_none_or(|scale| scale.iter().all(|x| (0.0..=FARTHEST).contains(x))),
            "scale must not be negative, nor above 2**400",
        )?;
        let is_class = |class: i32| (class as u32) < n_classes as u32; // negative ones become large
        // The classes of a word, of which `word` is where its pairs start and end.
        let classes_of = |word: &[i64]| &self.classes[word[0] as usize..word[1] as usize];
        demand(
            classes.iter().fold(true, |all, &class| all & is_class(class))
                && self.starts.windows(2).map(classes_of).all(ascend),
            "classes must ascend within a word, and be classes",
        )
    }
}

/// Whether classes ascend, none of them twice.
fn ascend(classes: &[i32]) -> bool {
    let next = classes.iter().zip(classes.iter().skip(1));
    next.fold(true, |all, (a, b)| all & (a < b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Numbers that look random and repeat.
    struct Random(u64);

    impl Random {
        /// A number from 0 to n - 1.
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
            (self.0 >> 33) as usize % n
        }
    }

    /// A word's number in each class, and its scale; none if it is not set.
    fn read(weights: &Weights, id: u32) -> Option<(Vec<f64>, f64)> {
        let mut row = vec![0.0; weights.n_classes()];
        let scale = weights.read(id, &mut row)?;
        Some((row, scale))
    }

    /// Sets, sets again and skips rows in so many steps, with pairs in few or in many of the classes, and compares them with a
    /// map.
    fn history(n_classes: usize, steps: usize) {
        let mut random = Random(n_classes as u64);
        let default: Vec<f64> = (0..n_classes).map(|c| -(c as f64)).collect();
        let mut weights = Weights::new(&default).unwrap();
        let mut expected = BTreeMap::new();
        for step in 0..steps {
            let id = random.below(40) as u32;
            if step % 9 == 5 {
                weights.skip(&[id, 1 << 30]);
                expected.remove(&id);
                continue;
            }
            let most = if random.below(3) == 0 { n_classes } else { 1 + n_classes / 4 };
            let few = random.below(most) + 1;
            let classes: Vec<i32> =
                (0..n_classes as i32).filter(|_| random.below(n_classes) < few).collect();
            let values: Vec<f64> = classes.iter().map(|_| random.below(99) as f64).collect();
            let (common, scale) = (random.below(9) as f64, [0.5, 0.0, 2.0][random.below(3)]);
            let mut row: Vec<f64> = default.iter().map(|x| common + x).collect();
            for (&class, &value) in classes.iter().zip(&values) {
                row[class as usize] = value;
            }
            expected.insert(id, (row, scale));
            let rows = RowArrays {
                ids: &[id],
                common: &[common],
                scale: Some(&[scale]),
                starts: &[0, classes.len() as i64],
                classes: &classes,
                values: &values,
            };
            weights.set(&rows, 2).unwrap();
        }
        for id in 0..50 {
            assert_eq!(read(&weights, id), expected.get(&id).cloned());
        }
        let rooms: Vec<_> = (0..50).filter_map(|id| weights.room(id)).collect();
        let live: usize = rooms.iter().map(|room| room.len()).sum();
        assert_eq!(weights.pairs.len(), live + weights.lost_numbers);
        assert!(weights.pairs.len() <= LITTER + 2 * live);
        assert!(weights.whole.len() <= LITTER / LANES + 2 * 40 * weights.lines);
        assert_eq!(n_classes >= LANES, !rooms.is_empty());
    }

    #[test]
    fn rows_come_and_go() {
        for n_classes in [1, 7, 8, 39, 40, 100, 1000] {
            history(n_classes, 2000);
        }
    }
}
