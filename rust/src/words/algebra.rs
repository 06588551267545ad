//! Stores as values: sums, differences, multiples, and other classes.

use super::add_up::Found;
use super::index::{UNKNOWN, Vocabulary};
use super::store::{Cell, Cells, Counts, Sums, as_sums};
use super::{TOO_LARGE, Total, Words};
use crate::error::{Error, Number, demand};
use crate::expansion::Expansion;

/// Real sums compare to this share of themselves.
const ROUNDING: f64 = 1e-12;
/// A real sum below zero by more than this share of what was there cannot be rounding.
const IMPOSSIBLE: f64 = 1e-9;
/// Multiples of whole numbers stay whole below this.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0; // 2^53
/// No real sum may be larger.
pub const LARGEST_REAL: f64 = f64::from_bits((1023 + 1000) << 52); // 2^1000

impl Total {
    fn of(rows: u64, weight: Expansion) -> Self {
        Total { rows, weight }
    }

    fn plus(self, other: Total) -> Total {
        let mut weight = self.weight;
        weight.merge(&other.weight);
        Total::of(self.rows + other.rows, weight)
    }

    /// The difference, or what would be left below zero.
    ///
    /// Real sums decide where there are any: a cell with weight left is not empty, whatever its number of rows was scaled to;
    /// and what is left within rounding of a cell without rows is nothing.
    fn minus(self, other: Total, real: bool) -> Result<Total, Number> {
        let rows = i128::from(self.rows) - i128::from(other.rows);
        if !real {
            let weight = Expansion::default();
            let left = u64::try_from(rows).map(|rows| Total::of(rows, weight));
            return left.map_err(|_| Number::Whole(rows));
        }
        let mut weight = self.weight;
        weight.take(&other.weight);
        let left = weight.value();
        let size = self.weight.value() + other.weight.value();
        let nothing = left.abs() <= IMPOSSIBLE * size;
        if nothing && (rows <= 0 || left < 0.0) {
            weight = Expansion::default();
        } else if left < 0.0 {
            return Err(Number::Real(left));
        }
        // A text adds its weight while all weights are whole, and one otherwise: no weight is no row, whatever was added.
        let rows = match weight == Expansion::default() {
            true => 0,
            false => rows.max(if nothing { 0 } else { 1 }),
        };
        Ok(Total::of(u64::try_from(rows).unwrap_or(0), weight))
    }

    fn same(self, other: Total, real: bool) -> bool {
        if !real {
            return self.rows == other.rows;
        }
        let mut gap = self.weight;
        gap.take(&other.weight);
        let size = self.weight.value().max(other.weight.value());
        (self.rows > 0) == (other.rows > 0) && gap.value().abs() <= ROUNDING * size
    }

    /// `whole`: the number of rows is multiplied too.
    fn times(self, factor: f64, whole: bool) -> Total {
        let rows = if whole {
            self.rows * factor as u64
        } else {
            self.rows
        };
        Total::of(rows, self.weight.times(factor))
    }

    /// The same with its weight, whole numbers having none.
    fn real(self, was: bool) -> Total {
        if was {
            self
        } else {
            Total::of(self.rows, Expansion::from_whole(self.rows))
        }
    }
}

impl Cell {
    fn new(class: u32, totals: [Total; 2]) -> Self {
        Cell {
            class,
            counts: totals.map(|total| total.rows),
            sums: totals.map(|total| total.weight),
        }
    }

    fn nothing(class: u32) -> Self {
        Cell {
            class,
            counts: Counts::default(),
            sums: Sums::default(),
        }
    }

    fn totals(&self) -> [Total; 2] {
        [0, 1].map(|i| Total::of(self.counts[i], self.sums[i]))
    }

    fn plus(self, other: Cell) -> Cell {
        let (a, b) = (self.totals(), other.totals());
        Cell::new(self.class, [a[0].plus(b[0]), a[1].plus(b[1])])
    }

    /// The difference, or what would be left below zero. Occurrences without documents, and fewer of them than documents, are
    /// less than nothing too.
    fn minus(self, other: Cell, real: bool) -> Result<Cell, Number> {
        let (a, b) = (self.totals(), other.totals());
        let occurrences = a[0].minus(b[0], real)?;
        let documents = a[1].minus(b[1], real)?;
        let left = Cell::new(self.class, [occurrences, documents]);
        if real {
            let over = occurrences.weight.value();
            let orphaned = documents.rows == 0 && over > IMPOSSIBLE * a[0].weight.value();
            return if orphaned {
                Err(Number::Real(-over))
            } else {
                Ok(left)
            };
        }
        let (occurrences, documents) = (i128::from(occurrences.rows), i128::from(documents.rows));
        match documents {
            0 if occurrences > 0 => Err(Number::Whole(-occurrences)),
            _ if occurrences < documents => Err(Number::Whole(occurrences - documents)),
            _ => Ok(left),
        }
    }

    /// The same with its sums, whole numbers having none.
    fn real(self, was: bool) -> Cell {
        match was {
            true => self,
            false => Cell {
                sums: as_sums(self.counts),
                ..self
            },
        }
    }
}

/// Two lists in the order of their classes as one.
fn merged(
    a: impl Iterator<Item = Cell>,
    b: impl Iterator<Item = Cell>,
) -> impl Iterator<Item = Cell> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(x), Some(y)) if x.class == y.class => Some(a.next()?.plus(b.next()?)),
        (Some(x), Some(y)) if y.class < x.class => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    })
}

/// The cells of found texts in the order of words and classes, each once.
fn combined(found: &[Found]) -> Vec<(u32, Cell)> {
    let mut cells = vec![];
    for found in found {
        cells.extend(found.ids.iter().enumerate().map(|(i, &id)| {
            let cell = Cell {
                class: found.class,
                counts: found.counts.get(i),
                sums: found.sums.get(i).copied().unwrap_or_default(),
            };
            (id, cell)
        }));
    }
    cells.sort_by_key(|(id, cell)| (*id, cell.class));
    cells.dedup_by(|next, kept| {
        let same = (next.0, next.1.class) == (kept.0, kept.1.class);
        if same {
            kept.1 = kept.1.plus(next.1);
        }
        same
    });
    cells
}

impl Words {
    fn check_alike(&self, other: &Words) -> Result<(), Error> {
        demand(
            self.n_classes() == other.n_classes(),
            "both must have the same classes",
        )?;
        demand(
            self.buckets() == other.buckets(),
            "both must have the same buckets",
        )
    }

    fn not_there(&self, id: u32, class: u32, left: Number) -> Error {
        Error::NotThere {
            word: Some(self.name(id)),
            class: class as usize,
            left,
        }
    }

    /// Takes found texts away; changes nothing if they are not there.
    pub(super) fn take_found(&mut self, found: &[Found], real: bool) -> Result<(), Error> {
        let mut texts = vec![Total::default(); self.n_classes()];
        for found in found {
            let total = &mut texts[found.class as usize];
            *total = total.plus(found.texts);
        }
        let cells = combined(found);
        self.subtract(|| cells.iter().copied(), &texts, real)
    }

    /// Takes cells away, each of which comes once; changes nothing if one of them is not there. `is_real`: they have real sums.
    fn subtract<I: Iterator<Item = (u32, Cell)>>(
        &mut self,
        cells: impl Fn() -> I,
        texts: &[Total],
        is_real: bool,
    ) -> Result<(), Error> {
        let (was, real) = (self.is_real(), self.is_real() || is_real);
        let prepared = |total: &Total, has: bool| if real { total.real(has) } else { *total };
        let mut texts_left = vec![];
        for (class, (here, there)) in self.texts.iter().zip(texts).enumerate() {
            let left = prepared(here, was).minus(prepared(there, is_real), real);
            texts_left.push(left.map_err(|left| Error::NotThere {
                word: None,
                class,
                left,
            })?);
        }
        let less = |words: &Words, id: u32, cell: Cell| {
            let here = words.cells.get(id as usize, cell.class);
            let here = here.unwrap_or(Cell::nothing(cell.class));
            let (a, b) = match real {
                true => (here.real(words.is_real()), cell.real(is_real)),
                false => (here, cell),
            };
            (a, a.minus(b, real))
        };
        let mut occurrences: Vec<u64> = self.totals.iter().map(|totals| totals[0].rows).collect();
        for (id, cell) in cells() {
            let left = less(self, id, cell).1;
            let left = left.map_err(|left| self.not_there(id, cell.class, left))?;
            let texts = texts_left[cell.class as usize].rows;
            if !real && left.counts[1] > texts {
                let over = i128::from(texts) - i128::from(left.counts[1]);
                return Err(self.not_there(id, cell.class, Number::Whole(over)));
            }
            occurrences[cell.class as usize] =
                occurrences[cell.class as usize].saturating_sub(cell.counts[0]);
        }
        self.check_no_orphans(&texts_left, &occurrences, real)?;
        if real {
            self.make_real();
        }
        for (id, cell) in cells() {
            let (before, Ok(after)) = less(self, id, cell) else {
                continue;
            };
            self.replace(id, before, after);
        }
        self.texts = texts_left;
        Ok(())
    }

    /// A class without texts has no occurrences. (Numbers of rows of real sums may have been scaled, and say nothing.)
    fn check_no_orphans(
        &self,
        texts: &[Total],
        occurrences: &[u64],
        real: bool,
    ) -> Result<(), Error> {
        let mut classes = texts.iter().zip(occurrences).enumerate();
        let orphaned = |(_, (texts, occurrences)): &(usize, (&Total, &u64))| {
            !real && texts.rows == 0 && **occurrences > 0
        };
        match classes.find(orphaned) {
            None => Ok(()),
            Some((class, (_, &left))) => Err(Error::NotThere {
                word: None,
                class,
                left: Number::Whole(-i128::from(left)),
            }),
        }
    }

    /// Puts a cell in another's place, and the class's total right.
    fn replace(&mut self, id: u32, before: Cell, after: Cell) {
        let gone = after.counts[1] == 0;
        let left = if gone {
            Cell::nothing(after.class)
        } else {
            after
        };
        for (i, total) in self.totals[before.class as usize].iter_mut().enumerate() {
            total.rows = (total.rows + left.counts[i]).saturating_sub(before.counts[i]);
            total.weight.take(&before.sums[i]);
            total.weight.merge(&left.sums[i]);
            if total.rows == 0 {
                total.weight = Expansion::default();
            }
        }
        self.cells
            .set(id as usize, left.class, left.counts, &left.sums);
    }

    /// The sums of both, words of the same name together.
    pub fn plus(&self, other: &Words) -> Result<Words, Error> {
        self.check_alike(other)?;
        let occurrences = self.total() + other.total();
        demand(
            occurrences < TOO_LARGE && self.n_texts() + other.n_texts() < TOO_LARGE,
            "there are more than 2**63 - 1 occurrences or texts",
        )?;
        let (was, is, real) = (
            self.is_real(),
            other.is_real(),
            self.is_real() || other.is_real(),
        );
        let mut vocabulary = self.vocabulary.clone();
        let mut theirs = vec![UNKNOWN; self.n_ids()];
        let mut new = vec![];
        for id in (0..other.n_ids()).filter(|&id| other.cells.is_live(id)) {
            let number = other
                .vocabulary
                .with_name(id, |name| vocabulary.add_name(name))?;
            match theirs.get_mut(number as usize) {
                Some(their) => *their = id as u32,
                None => new.push(id),
            }
        }
        let wide = occurrences > u64::from(u32::MAX);
        let room = self.cells.len() + other.cells.len();
        let mut cells = Cells::with_room(vocabulary.len(), room, wide, real);
        let as_real = |cell: Cell, was: bool| if real { cell.real(was) } else { cell };
        for (id, &their) in theirs.iter().enumerate() {
            let mine = self.cells.of(id).map(|cell| as_real(cell, was));
            match their {
                UNKNOWN => cells.push(mine),
                their => {
                    let more = other.cells.of(their as usize);
                    cells.push(merged(mine, more.map(|cell| as_real(cell, is))));
                }
            }
        }
        for id in new {
            cells.push(other.cells.of(id).map(|cell| as_real(cell, is)));
        }
        let real = |total: &Total, was| if real { total.real(was) } else { *total };
        let both = |a: &Total, b: &Total| real(a, was).plus(real(b, is));
        let texts = self.texts.iter().zip(&other.texts);
        let totals = self.totals.iter().zip(&other.totals);
        Ok(Words {
            vocabulary,
            cells,
            texts: texts.map(|(a, b)| both(a, b)).collect(),
            totals: totals
                .map(|(a, b)| [0, 1].map(|i| both(&a[i], &b[i])))
                .collect(),
        })
    }

    /// What is left without the texts of another.
    pub fn minus(&self, other: &Words) -> Result<Words, Error> {
        self.check_alike(other)?;
        let live = |id: &usize| other.cells.is_live(*id);
        let mut ids = vec![];
        for id in (0..other.n_ids()).filter(live) {
            let number = other
                .vocabulary
                .with_name(id, |name| self.vocabulary.find_name(name));
            if number == UNKNOWN {
                return Err(other.nobody_has(id));
            }
            ids.push((id, number));
        }
        let cells = || {
            ids.iter()
                .flat_map(|&(id, number)| other.cells.of(id).map(move |cell| (number, cell)))
        };
        let mut left = self.clone();
        left.subtract(cells, &other.texts, other.is_real())?;
        left.check_documents()?;
        Ok(left.without_empty())
    }

    /// All of a word is to be taken away where there is nothing.
    fn nobody_has(&self, id: usize) -> Error {
        let first = self.cells.of(id).next().unwrap_or(Cell::nothing(0));
        let left = match self.is_real() {
            true => Number::Real(-first.sums[0].value()),
            false => Number::Whole(-i128::from(first.counts[0])),
        };
        self.not_there(id as u32, first.class, left)
    }

    /// No word is in more documents than there are texts.
    fn check_documents(&self) -> Result<(), Error> {
        if self.is_real() {
            return Ok(());
        }
        for id in 0..self.n_ids() {
            for cell in self.cells.of(id) {
                let texts = self.texts[cell.class as usize].rows;
                if cell.counts[1] > texts {
                    let over = i128::from(texts) - i128::from(cell.counts[1]);
                    return Err(self.not_there(id as u32, cell.class, Number::Whole(over)));
                }
            }
        }
        Ok(())
    }

    /// The same without the words that no text has.
    fn without_empty(self) -> Words {
        if self.n_words() == self.n_ids() {
            return self;
        }
        let cells = |id| self.cells.of(id);
        let (vocabulary, cells) = self.rebuilt(self.cells.len(), cells);
        Words {
            vocabulary,
            cells,
            texts: self.texts,
            totals: self.totals,
        }
    }

    /// The same texts as if they had had these words only.
    pub fn only(&self, ids: &[u32]) -> Words {
        let mut kept = vec![false; self.n_ids()];
        ids.iter().for_each(|&id| kept[id as usize] = true);
        let cells = |id: usize| {
            let stays = kept[id];
            self.cells.of(id).filter(move |_| stays)
        };
        let mut totals = vec![<[Total; 2]>::default(); self.n_classes()];
        for cell in (0..self.n_ids()).flat_map(cells) {
            for (total, more) in totals[cell.class as usize].iter_mut().zip(cell.totals()) {
                total.merge(&more);
            }
        }
        let (vocabulary, cells) = self.rebuilt(0, cells);
        Words {
            vocabulary,
            cells,
            texts: self.texts.clone(),
            totals,
        }
    }

    /// The words, in the order of their numbers, to which `of` gives cells.
    fn rebuilt<I: Iterator<Item = Cell>>(
        &self,
        room: usize,
        of: impl Fn(usize) -> I,
    ) -> (Vocabulary, Cells) {
        let mut vocabulary = Vocabulary::new(self.buckets());
        let mut cells =
            Cells::with_room(self.n_words(), room, self.cells.is_wide(), self.is_real());
        for id in 0..self.n_ids() {
            let mut these = of(id).peekable();
            if these.peek().is_some() {
                // A name that is there already was accepted before.
                let added = self
                    .vocabulary
                    .with_name(id, |name| vocabulary.add_name(name));
                debug_assert!(added.is_ok());
                cells.push(these);
            }
        }
        (vocabulary, cells)
    }

    /// Every text so many times. A whole factor keeps whole numbers whole.
    pub fn times(&self, factor: f64) -> Result<Words, Error> {
        if !(0.0..=LARGEST_REAL).contains(&factor) {
            return Err(Error::malformed(format!(
                "the factor must be finite and not negative, got {factor}"
            )));
        }
        if factor == 0.0 {
            let mut none = Words::new(self.n_classes(), self.buckets())?;
            none.cells = Cells::new(false, self.is_real());
            return Ok(none);
        }
        let most = self.total().max(self.n_texts()).max(1) as f64;
        let whole = factor == factor.trunc() && factor * most < LARGEST_WHOLE;
        let mut product = self.clone();
        if !whole {
            product.make_real();
        }
        let real = product.is_real();
        let totals = product.texts.iter_mut();
        for total in totals.chain(product.totals.as_flattened_mut()) {
            *total = total.times(factor, whole);
            demand(
                total.weight.value() < LARGEST_REAL,
                "sums would be 2**1000 or more",
            )?;
        }
        let (mut wide, old) = (product.total() > u64::from(u32::MAX), product.cells);
        wide |= old.is_wide();
        let mut cells = Cells::with_room(old.words(), old.len(), wide, real);
        for id in 0..old.words() {
            cells.push(old.of(id).map(|cell| {
                Cell::new(
                    cell.class,
                    cell.totals().map(|total| total.times(factor, whole)),
                )
            }));
        }
        product.cells = cells;
        Ok(product)
    }

    /// Whether both hold the same sums of the same words: exactly, or real ones within rounding.
    pub fn same(&self, other: &Words) -> bool {
        let alike = self.check_alike(other).is_ok() && self.n_words() == other.n_words();
        if !alike {
            return false;
        }
        let (was, is, real) = (
            self.is_real(),
            other.is_real(),
            self.is_real() || other.is_real(),
        );
        let equal = |a: Total, b: Total| match real {
            true => a.real(was).same(b.real(is), true),
            false => a.same(b, false),
        };
        let totals = self.texts.iter().zip(&other.texts);
        let word = |id: usize| {
            let number = self
                .vocabulary
                .with_name(id, |name| other.vocabulary.find_name(name));
            if number == UNKNOWN || self.cells.n_cells(id) != other.cells.n_cells(number as usize) {
                return false;
            }
            let mut cells = self.cells.of(id).zip(other.cells.of(number as usize));
            cells.all(|(a, b)| {
                let (x, y) = (a.totals(), b.totals());
                a.class == b.class && equal(x[0], y[0]) && equal(x[1], y[1])
            })
        };
        totals.into_iter().all(|(&a, &b)| equal(a, b))
            && (0..self.n_ids())
                .filter(|&id| self.cells.is_live(id))
                .all(word)
    }

    /// Class c becomes class `index[c]` of `n_classes`, together with all others that do. Words keep their numbers.
    pub fn place(&self, index: &[i64], n_classes: usize) -> Result<Words, Error> {
        demand(
            index.len() == self.n_classes(),
            "index must have one number per class",
        )?;
        let inside = |&class: &i64| usize::try_from(class).is_ok_and(|class| class < n_classes);
        if !index.iter().all(inside) {
            return Err(wrong_index(index, n_classes));
        }
        let mut placed = Words::new(n_classes, 0)?;
        for (class, &new) in index.iter().enumerate() {
            placed.texts[new as usize].merge(&self.texts[class]);
            for (total, more) in placed.totals[new as usize]
                .iter_mut()
                .zip(&self.totals[class])
            {
                total.merge(more);
            }
        }
        let (wide, real) = (self.cells.is_wide(), self.is_real());
        placed.vocabulary = self.vocabulary.clone();
        placed.cells = Cells::with_room(self.cells.words(), self.cells.len(), wide, real);
        let ascends = index.is_sorted();
        let mut moved: Vec<Cell> = vec![];
        for id in 0..self.cells.words() {
            moved.clear();
            moved.extend(self.cells.of(id).map(|cell| Cell {
                class: index[cell.class as usize] as u32,
                ..cell
            }));
            if !ascends {
                moved.sort_by_key(|cell| cell.class);
            }
            moved.dedup_by(|cell, first| first.absorbs(cell));
            placed.cells.push(moved.iter().copied());
        }
        Ok(placed)
    }

    /// Class i is class `index[i]` of this one; words that are left without texts are gone.
    pub fn take(&self, index: &[i64]) -> Result<Words, Error> {
        let mut taken = Words::new(index.len(), 0)?;
        let mut targets = vec![vec![]; self.n_classes()];
        for (new, &old) in index.iter().enumerate() {
            let target = usize::try_from(old)
                .ok()
                .and_then(|old| targets.get_mut(old));
            match target {
                Some(target) => target.push(new as u32),
                None => return Err(wrong_index(index, self.n_classes())),
            }
            taken.texts[new] = self.texts[old as usize];
            taken.totals[new] = self.totals[old as usize];
        }
        let most = |rows: fn(&Words, usize) -> u64| -> u128 {
            (0..index.len())
                .map(|class| u128::from(rows(&taken, class)))
                .sum()
        };
        let occurrences = most(|taken, class| taken.totals[class][0].rows);
        demand(
            occurrences.max(most(|taken, class| taken.texts[class].rows)) < u128::from(TOO_LARGE),
            "there are more than 2**63 - 1 occurrences or texts",
        )?;
        (taken.vocabulary, taken.cells) = self.rebuilt(0, |id| {
            let mut cells = vec![];
            for cell in self.cells.of(id) {
                let classes = targets[cell.class as usize].iter();
                cells.extend(classes.map(|&class| Cell { class, ..cell }));
            }
            cells.sort_by_key(|cell| cell.class);
            cells.into_iter()
        });
        if occurrences > u128::from(u32::MAX) {
            taken.cells.widen();
        }
        Ok(taken)
    }
}

fn wrong_index(index: &[i64], n_classes: usize) -> Error {
    Error::malformed(format!(
        "index must name classes 0 to {}; got {index:?}",
        n_classes as i64 - 1
    ))
}
