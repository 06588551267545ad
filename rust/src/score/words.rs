//! Scores of texts: the weights of their words, added up.

use super::Sums;
use super::far::Terms;
use super::occurrences::{Occurrences, count_unknown};
use super::rough::Rough;
use super::urn::{Urn, log_rising};
use crate::error::{Error, demand};
use crate::simd::wide;
use crate::text::{Tokeniser, Tokens};
use crate::words::weights::{LANES, Line, Pairs, Place, Weights, demand_weights};
use crate::words::{self, Damping, Matrix, Texts};

/// How much a word that occurs n times in a text counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counting<'a> {
    /// n times, damped if the tokeniser is set so.
    Often,
    Once,
    /// √n times, or once, divided by the text's length, so that the squares of count times scale add up to 1 over all words that
    /// have weights.
    Unit {
        once: bool,
    },
    /// As n draws, or one, from an urn; `balls` is the total of all words' balls per class.
    Polya {
        balls: &'a [f64],
        once: bool,
    },
}

/// For a text in which word w counts `x[w]` times, adds `constant[c] + sum of x[w] * scale[w] * (row[w][c] + base[c])`, or the
/// logarithms of the draws. Words without weights are ignored. A missing text adds nothing.
#[derive(Debug)]
pub struct TextScores<'a> {
    pub(super) texts: Texts<'a>,
    tokeniser: &'a Tokeniser,
    words: &'a words::Words,
    weights: &'a Weights,
    base: Option<&'a [f64]>,
    constant: &'a [f64],
    counting: Counting<'a>,
    /// The places of the weights of a matrix's columns.
    columns: Vec<Place>,
    rough: Option<&'a Rough>,
}

/// Memory for one text.
#[derive(Default)]
pub(super) struct Room {
    tokens: Tokens,
    ids: Vec<u32>,
    occurrences: Occurrences,
    /// The ids of the text's words and how much each counts.
    counted: Vec<(u32, f64)>,
    /// How often each distinct token occurs.
    times: Vec<u32>,
    row: Vec<f64>,
    urn: Urn,
    totals: Totals,
}

/// The sums over the words of a text.
#[derive(Default)]
struct Totals {
    /// By class, filled up to a multiple of cache lines.
    values: Vec<f64>,
    /// The total count of all words, each times its scale.
    times: f64,
    /// The total count of the words that are kept by pairs, and the sum of their common numbers.
    pairs: f64,
    common: f64,
    never: Never,
    /// Words that are not kept whole, and how much they count: they are added last.
    rest: Vec<(Place, f64)>,
}

/// Which classes are at -inf because a word has no pair with them: sums of differences to -inf could not show it.
#[derive(Default)]
struct Never {
    /// Words kept by pairs, and those among them whose common number is -inf.
    words: usize,
    barred: usize,
    /// By class, the words that are not at -inf only because they have a pair.
    saved: Vec<usize>,
}

impl<'a> TextScores<'a> {
    /// Rough weights must have been made of the same weights and base.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        texts: Texts<'a>,
        tokeniser: &'a Tokeniser,
        words: &'a words::Words,
        weights: &'a Weights,
        base: Option<&'a [f64]>,
        constant: &'a [f64],
        counting: Counting<'a>,
        rough: Option<&'a Rough>,
        n_classes: usize,
    ) -> Result<Self, Error> {
        demand(weights.n_classes() == n_classes, "weights must have one number per class")?;
        for numbers in base.into_iter().chain([constant]) {
            demand_weights(numbers, n_classes)?;
        }
        if let Counting::Polya { balls, .. } = counting {
            demand(base.is_none(), "polya stands instead of base, not beside it")?;
            demand_weights(balls, n_classes)?;
            demand(balls.iter().all(|&x| x > 0.0), "polya must be positive")?;
        }
        let mut columns = vec![];
        if let Texts::Counted(matrix) = &texts {
            let counted = matches!(counting, Counting::Often | Counting::Unit { .. });
            demand(
                counted && matrix.n_columns() <= words.n_columns(),
                "a matrix is counted as it is, and has no more columns than the words it is scored by",
            )?;
            let ids = &words.columns()[..matrix.n_columns()];
            columns.extend(ids.iter().map(|id| weights.place(id.wrapping_sub(1))));
        }
        Ok(TextScores {
            texts,
            tokeniser,
            words,
            weights,
            base,
            constant,
            counting,
            columns,
            rough,
        })
    }

    /// The matrix, its rough weights and the constant, if the texts are a matrix that can be scored roughly.
    pub(super) fn roughly(&self) -> Option<(&Matrix<'a>, &Rough, &[f64])> {
        match (&self.texts, self.rough) {
            (Texts::Counted(matrix), Some(rough)) if self.counting == Counting::Often => {
                let fits = rough.fits(matrix, self.constant.len());
                fits.then_some((matrix, rough, self.constant))
            }
            _ => None,
        }
    }

    pub(super) fn add(&self, sums: &mut Sums, room: &mut Room) -> Result<(), Error> {
        if let (Texts::Counted(matrix), Counting::Often) = (&self.texts, self.counting) {
            return self.add_counted(matrix, sums, room);
        }
        for at in 0..sums.rows.len() {
            let row = sums.rows.row(at);
            if self.read(row, room)? {
                room.totals.clear(self.weights);
                self.add_text(room)?;
                self.finish(&room.totals, &mut sums.values[at..], sums.height);
            }
        }
        Ok(())
    }

    /// Adds the constant and a term for each word of a text; nothing if it is missing.
    pub(super) fn add_terms(
        &self,
        row: usize,
        room: &mut Room,
        terms: &mut Terms,
    ) -> Result<(), Error> {
        if !self.read(row, room)? {
            return Ok(());
        }
        self.count(room);
        terms.add(self.constant.iter().copied());
        let (mut all, n_classes) = (0.0, self.constant.len());
        room.row.resize(n_classes, 0.0);
        for &(id, x) in &room.counted {
            let Some(scale) = self.weights.read(id, &mut room.row) else {
                continue;
            };
            all += x;
            let (row, times) = (room.row.iter(), x * scale);
            match (self.counting, self.base) {
                (Counting::Polya { .. }, _) => {
                    terms.add(row.map(|&balls| log_rising(balls, x as u64)));
                }
                (_, Some(base)) if times != 0.0 => {
                    terms.add(row.zip(base).map(|(x, base)| times * (x + base)));
                }
                (_, None) if times != 0.0 => terms.add(row.map(|x| times * x)),
                _ => {}
            }
        }
        if let Counting::Polya { balls, .. } = self.counting {
            terms.add(balls.iter().map(|&balls| -log_rising(balls, all as u64)));
        }
        Ok(())
    }

    /// [`TextScores::add`] for a matrix of counts.
    fn add_counted(
        &self,
        matrix: &Matrix,
        sums: &mut Sums,
        Room { totals, row: room, .. }: &mut Room,
    ) -> Result<(), Error> {
        let places = &self.columns;
        for at in 0..sums.rows.len() {
            let row = sums.rows.row(at);
            totals.clear(self.weights);
            let cells = matrix.row(row, room);
            match cells.columns {
                Some(columns) => {
                    let row_places = columns.iter().map(|&column| places[column as usize]);
                    self.add_places(row_places.zip(cells.values()), totals);
                }
                None => self.add_places(places.iter().copied().zip(cells.values()), totals),
            }
            if totals.times.is_nan() {
                return Err(matrix.refused(row));
            }
            self.finish(totals, &mut sums.values[at..], sums.height);
        }
        Ok(())
    }

    /// Reads the ids of a text's words, and their counts if the text has them. Returns false if the text is missing.
    fn read(&self, row: usize, room: &mut Room) -> Result<bool, Error> {
        if let Texts::Counted(matrix) = &self.texts {
            room.counted.clear();
            let ids = self.words.columns();
            matrix.each_of(row, &mut room.row, |column, x| {
                room.counted.push((ids[column as usize].wrapping_sub(1), x));
            })?;
            return Ok(true);
        }
        if let Texts::Encoded(texts) = &self.texts {
            let Some((ids, times)) = texts.get(row) else {
                return Ok(false);
            };
            room.ids.clear();
            room.counted.clear();
            let ids = ids.iter().map(|&id| id as u32);
            match times {
                None => room.ids.extend(ids),
                Some(times) if self.is_plain() => {
                    room.counted.extend(ids.zip(times.iter().map(|&n| f64::from(n))));
                }
                Some(times) => {
                    for (id, &n) in ids.zip(times) {
                        room.ids.extend(std::iter::repeat_n(id, n as usize));
                    }
                }
            }
            return Ok(true);
        }
        let Room { tokens, ids, .. } = room;
        self.words.find_text(&self.texts, row, self.tokeniser, tokens, ids)
    }

    /// Whether a word that occurs n times counts n.
    fn is_plain(&self) -> bool {
        self.counting == Counting::Often && !self.tokeniser.is_damped()
    }

    fn add_text(&self, room: &mut Room) -> Result<(), Error> {
        if let Counting::Polya { balls, once } = self.counting {
            room.occurrences.count(&room.ids);
            return self.add_draws(balls, once, room);
        }
        if self.is_plain() && !self.is_counted(room) {
            let tokens = room.ids.iter().map(|&id| (id, 1.0));
            self.add_rows(tokens, &mut room.totals);
            return Ok(());
        }
        self.count(room);
        self.add_rows(room.counted.iter().copied(), &mut room.totals);
        Ok(())
    }

    /// Whether the text came with counts that can be used as they are.
    fn is_counted(&self, room: &Room) -> bool {
        let counted = matches!(self.texts, Texts::Counted(_));
        counted || !room.counted.is_empty() && matches!(self.texts, Texts::Encoded(_))
    }

    /// Counts the distinct words of a text that was read.
    fn count(&self, room: &mut Room) {
        if let Counting::Unit { once } = self.counting {
            return self.count_unit(once, room);
        }
        if self.is_counted(room) {
            return;
        }
        room.occurrences.count(&room.ids);
        if self.counting == Counting::Often {
            return self.damp(room);
        }
        let once = matches!(self.counting, Counting::Once | Counting::Polya { once: true, .. });
        let words = room.occurrences.iter();
        room.counted.clear();
        room.counted.extend(words.map(|(id, n)| (id, if once { 1.0 } else { f64::from(n) })));
    }

    /// Counts the words that have weights so that the text has length 1.
    fn count_unit(&self, once: bool, room: &mut Room) {
        if !self.is_counted(room) {
            room.occurrences.count(&room.ids);
            room.counted.clear();
            room.counted.extend(room.occurrences.iter().map(|(id, n)| (id, f64::from(n))));
        }
        let mut squares = 0.0;
        room.counted.retain_mut(|(id, x)| {
            let Some(scale) = self.weights.scale(*id).filter(|_| *x > 0.0) else {
                return false;
            };
            *x = if once { 1.0 } else { x.sqrt() };
            squares += (*x * scale) * (*x * scale);
            true
        });
        if squares > 0.0 {
            let length = squares.sqrt();
            room.counted.iter_mut().for_each(|(_, x)| *x /= length);
        }
    }

    /// Counts each word n or log(1 + n) times, divided by the Euclidean length if the tokeniser is set so.
    fn damp(&self, room: &mut Room) {
        let damping = Damping::of(self.tokeniser);
        room.times.clear();
        if self.tokeniser.settings().length {
            room.times.extend(room.occurrences.iter().map(|(_, n)| n));
            // Encoded texts have no unknown words: room.tokens is empty.
            count_unknown(&room.tokens, &room.ids, &mut room.times);
        }
        let length = damping.length(&mut room.times);
        let words = room.occurrences.iter();
        room.counted.clear();
        room.counted.extend(words.map(|(id, n)| (id, damping.damp(n) / length)));
    }

    /// Adds the weights of words, each times its count.
    fn add_rows(&self, words: impl Iterator<Item = (u32, f64)>, totals: &mut Totals) {
        let rows = words.map(|(id, times)| (self.weights.place(id), times));
        self.add_places(rows, totals);
    }

    /// [`TextScores::add_rows`] for words whose places are known.
    #[inline(always)]
    fn add_places(&self, rows: impl Iterator<Item = (Place, f64)>, totals: &mut Totals) {
        let table = self.weights.whole();
        match self.weights.lines() {
            1 => totals.add_lines::<1>(table, rows),
            2 => totals.add_lines::<2>(table, rows),
            3 => totals.add_lines::<3>(table, rows),
            4 => totals.add_lines::<4>(table, rows),
            5 => totals.add_lines::<5>(table, rows),
            _ => totals.add_any(self.weights, rows),
        }
        totals.add_rest(self.weights);
    }

    /// Adds the logarithms of drawing each word, and subtracts those of drawing any word as often.
    fn add_draws(&self, balls: &[f64], once: bool, room: &mut Room) -> Result<(), Error> {
        let Room { occurrences, row, urn, totals, .. } = room;
        row.resize(balls.len(), 0.0);
        urn.begin(balls.len());
        let mut all = 0;
        for (id, n) in occurrences.iter() {
            if self.weights.read(id, row).is_some() {
                demand(
                    row.iter().all(|&x| x >= 0.0),
                    "weights must not be negative where polya is given",
                )?;
                let n = if once { 1 } else { n };
                urn.draw(row, n, &mut totals.values);
                all += u64::from(n);
            }
        }
        urn.end(&mut totals.values);
        for (total, &balls) in totals.values.iter_mut().zip(balls) {
            *total -= log_rising(balls, all);
        }
        Ok(())
    }

    /// Adds a text's totals to its sums, which are `height` apart.
    fn finish(&self, totals: &Totals, sums: &mut [f64], height: usize) {
        let sums = sums.iter_mut().step_by(height);
        for (class, (sum, &constant)) in sums.zip(self.constant).enumerate() {
            let mut total = totals.values[class] + constant;
            if totals.pairs != 0.0 || totals.common != 0.0 {
                let default = self.weights.default()[class];
                total += totals.common + totals.pairs * finite(default);
                if totals.never.is_so(class, default) {
                    total = f64::NEG_INFINITY;
                }
            }
            if let Some(base) = self.base
                && totals.times != 0.0
            {
                total += totals.times * base[class];
            }
            *sum += total;
        }
    }
}

/// x, or 0 for -inf.
#[inline(always)]
fn finite(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { 0.0 } else { x }
}

impl Totals {
    fn clear(&mut self, weights: &Weights) {
        self.values.clear();
        self.values.resize(weights.lines() * LANES, 0.0);
        (self.times, self.pairs, self.common) = (0.0, 0.0, 0.0);
        (self.never.words, self.never.barred) = (0, 0);
        self.never.saved.clear();
        self.rest.clear();
    }

    /// Adds rows of one number of cache lines, with the totals in registers. Rows that do not exist add nothing.
    #[inline(always)]
    fn add_lines<const LINES: usize>(
        &mut self,
        table: &[Line],
        rows: impl Iterator<Item = (Place, f64)>,
    ) {
        wide!({
            let (table, _) = table.as_chunks::<LINES>();
            let mut totals = [[0.0; LANES]; LINES];
            let mut all = 0.0;
            for (place, times) in rows {
                let Some(row) = table.get(place as usize) else {
                    self.rest.push((place, times));
                    continue;
                };
                let times = times * row[LINES - 1].0[LANES - 1];
                if times != 0.0 {
                    all += times;
                    for (totals, line) in totals.iter_mut().zip(row) {
                        for (total, x) in totals.iter_mut().zip(&line.0) {
                            *total += times * x;
                        }
                    }
                }
            }
            self.times = all;
            self.values.copy_from_slice(totals.as_flattened());
        });
    }

    /// Adds whole rows of any number of cache lines.
    #[inline(always)]
    fn add_any(&mut self, weights: &Weights, rows: impl Iterator<Item = (Place, f64)>) {
        wide!({
            for (place, times) in rows {
                match weights.whole_row(place) {
                    Some(row) => self.add_whole(row, times),
                    None => self.rest.push((place, times)),
                }
            }
        });
    }

    #[inline(always)]
    fn add_whole(&mut self, row: &[Line], times: f64) {
        let scale = row.last().map_or(0.0, |line| line.0[LANES - 1]);
        let times = times * scale;
        if times != 0.0 {
            self.times += times;
            let (totals, _) = self.values.as_chunks_mut::<LANES>();
            for (totals, line) in totals.iter_mut().zip(row) {
                for (total, x) in totals.iter_mut().zip(&line.0) {
                    *total += times * x;
                }
            }
        }
    }

    /// Adds the words that are kept by pairs.
    fn add_rest(&mut self, weights: &Weights) {
        let rest = std::mem::take(&mut self.rest);
        // Loads all words into the cache side by side, before the loop below needs them one after the other.
        let touched = rest.iter().map(|&(place, _)| weights.touch(place));
        std::hint::black_box(touched.fold(0, |all, n| all ^ n));
        let default = weights.default();
        let never = default.contains(&f64::NEG_INFINITY);
        for &(place, times) in &rest {
            match weights.pairs(place) {
                None => {}
                Some(row) if never || row.common == f64::NEG_INFINITY => {
                    self.add_pairs::<true>(&row, times, default);
                }
                Some(row) => self.add_pairs::<false>(&row, times, default),
            }
        }
        self.rest = rest;
    }

    /// Adds a word that is kept by pairs. `NEVER`: its score without a pair may be -inf.
    #[inline(always)]
    fn add_pairs<const NEVER: bool>(&mut self, row: &Pairs, times: f64, default: &[f64]) {
        let times = times * row.scale;
        if times == 0.0 {
            return;
        }
        let known = |x: f64| if NEVER { finite(x) } else { x };
        let common = known(row.common);
        self.times += times;
        self.pairs += times;
        self.common += times * common;
        if NEVER {
            self.never.words += 1;
            self.never.barred += usize::from(row.common < common);
            self.never.saved.resize(default.len(), 0);
        }
        for (class, value) in row.iter() {
            if NEVER {
                let without = row.common + default[class];
                self.never.saved[class] += usize::from(without == f64::NEG_INFINITY);
            }
            self.values[class] += times * (value - (common + known(default[class])));
        }
    }
}

impl Never {
    fn is_so(&self, class: usize, default: f64) -> bool {
        let barred = if default == f64::NEG_INFINITY { self.words } else { self.barred };
        self.saved.get(class).is_some_and(|&saved| saved < barred)
    }
}
