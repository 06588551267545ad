//! Stores as values: sums, differences, multiples, and other classes.

use super::add_up::Found;
use super::index::{UNKNOWN, Vocabulary};
use super::store::{Cell, Cells, Count, Counts, Lane, Unit, merge};
use super::{TOO_LARGE, TOO_MANY, Words};
use crate::error::{Error, Number, demand, fit};
use crate::integers::{Int, PARTS, parts};

/// Words are added to others in place if those have so many times their cells.
const MANY: usize = 8;

/// The difference, or how much is missing.
fn minus(a: &Count, b: &Count) -> Result<Count, Count> {
    let less = |a: &Count, b: &Count| {
        let mut left = *a;
        left.take(b);
        left
    };
    let left = less(a, b);
    if left.is_negative() { Err(less(b, a)) } else { Ok(left) }
}

impl Cell {
    fn nothing(class: u32) -> Self {
        Cell { class, counts: Counts::default() }
    }

    fn plus(mut self, other: Cell) -> Cell {
        self.merge(&other);
        self
    }

    /// The difference, or how much is missing. Occurrences without documents, or the other way round, are missing the other.
    pub(super) fn minus(self, other: &Cell) -> Result<Cell, Count> {
        let occurrences = minus(&self.counts[0], &other.counts[0])?;
        let documents = minus(&self.counts[1], &other.counts[1])?;
        match (occurrences.is_zero(), documents.is_zero()) {
            (true, false) => Err(documents),
            (false, true) => Err(occurrences),
            _ => Ok(Cell { counts: [occurrences, documents], ..self }),
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
            let (class, counts) = (found.class, found.counts.get(i));
            (id, Cell { class, counts })
        }));
    }
    cells.sort_by_key(|(id, cell)| (*id, cell.class));
    cells.dedup_by(|next, kept| next.0 == kept.0 && kept.1.absorbs(&next.1));
    cells
}

impl Words {
    fn check_alike(&self, other: &Words) -> Result<(), Error> {
        demand(self.n_classes() == other.n_classes(), "both must have the same classes")?;
        demand(self.n_columns() == other.n_columns(), "both must have the same columns")
    }

    fn not_there(&self, word: Option<u32>, class: usize, missing: &Count) -> Error {
        let left = match self.unit().whole(missing) {
            (whole, true) => Number::Whole(-i128::from(whole)),
            _ => Number::Real(-self.unit().value(missing)),
        };
        Error::NotThere { word: word.map(|id| self.name(id)), class, left }
    }

    /// Takes found texts away; changes nothing if they are not there. `plain`: every token counts as often as it occurs.
    pub(super) fn take_found(&mut self, found: &mut [Found], plain: bool) -> Result<(), Error> {
        let unit = found.iter().map(Found::unit).max().unwrap_or_default();
        self.make_finer(unit);
        let mut texts = vec![Count::default(); self.n_classes()];
        for found in found.iter_mut() {
            found.make_finer(self.unit());
            texts[found.class as usize].merge(&found.texts);
        }
        let cells = combined(found);
        self.subtract(|| cells.iter().copied(), &texts, plain)
    }

    /// Takes cells away, each of which comes once; changes nothing if one of them is not there. They count in our unit.
    fn subtract<I: Iterator<Item = (u32, Cell)>>(
        &mut self,
        cells: impl Fn() -> I,
        texts: &[Count],
        plain: bool,
    ) -> Result<(), Error> {
        let mut texts_left = vec![];
        for (class, (here, there)) in self.texts.iter().zip(texts).enumerate() {
            let left = minus(here, there);
            texts_left.push(left.map_err(|missing| self.not_there(None, class, &missing))?);
        }
        let left = |words: &Words, id: u32, cell: &Cell| {
            let here = words.cells.get(id as usize, cell.class);
            here.unwrap_or(Cell::nothing(cell.class)).minus(cell)
        };
        let mut totals = self.totals.clone();
        for (id, cell) in cells() {
            let class = cell.class as usize;
            let checked = left(self, id, &cell).and_then(|left| {
                let [occurrences, documents] = &left.counts;
                minus(&texts_left[class], documents)?;
                if plain {
                    minus(occurrences, documents)?;
                }
                Ok(())
            });
            checked.map_err(|missing| self.not_there(Some(id), class, &missing))?;
            for (total, gone) in totals[class].iter_mut().zip(&cell.counts) {
                total.take(gone);
            }
        }
        // A class without texts has no occurrences.
        for (class, (texts, totals)) in texts_left.iter().zip(&totals).enumerate() {
            if texts.is_zero() && !totals[0].is_zero() {
                return Err(self.not_there(None, class, &totals[0]));
            }
        }
        for (id, cell) in cells() {
            if let Ok(left) = left(self, id, &cell) {
                self.cells.set(id as usize, &left);
            }
        }
        (self.texts, self.totals) = (texts_left, totals);
        Ok(())
    }

    /// The sums of both, words of the same name together.
    pub fn plus(&self, other: &Words) -> Result<Words, Error> {
        self.check_alike(other)?;
        let occurrences = self.total() + other.total();
        fit(occurrences < TOO_LARGE && self.n_texts() + other.n_texts() < TOO_LARGE, TOO_MANY)?;
        let (was, is) = (self.unit(), other.unit());
        let unit = was.max(is).that_holds(occurrences);
        let mut vocabulary = match self.n_ids() {
            0 => other.vocabulary.emptied(),
            _ => self.vocabulary.clone(),
        };
        let mut theirs = vec![UNKNOWN; self.n_ids()];
        let mut new = vec![];
        for id in (0..other.n_ids()).filter(|&id| other.cells.is_live(id)) {
            let number = vocabulary.add_from(&other.vocabulary, id)?;
            match theirs.get_mut(number as usize) {
                Some(their) => *their = id as u32,
                None => new.push(id),
            }
        }
        let room = self.cells.len + other.cells.len;
        let mut cells = Cells::with_room(vocabulary.len(), room, unit);
        for (id, &their) in theirs.iter().enumerate() {
            let mine = self.cells.of(id).map(|cell| cell.to(was, unit));
            match their {
                UNKNOWN => cells.push(mine),
                their => {
                    let more = other.cells.of(their as usize);
                    cells.push(merged(mine, more.map(|cell| cell.to(is, unit))));
                }
            }
        }
        for id in new {
            cells.push(other.cells.of(id).map(|cell| cell.to(is, unit)));
        }
        let both = |a: &Count, b: &Count| {
            let mut sum = was.to(unit, *a);
            sum.merge(&is.to(unit, *b));
            sum
        };
        let texts = self.texts.iter().zip(&other.texts);
        let totals = self.totals.iter().zip(&other.totals);
        Ok(Words {
            vocabulary,
            cells,
            texts: texts.map(|(a, b)| both(a, b)).collect(),
            totals: totals.map(|(a, b)| [0, 1].map(|i| both(&a[i], &b[i]))).collect(),
        })
    }

    /// Whether adding another to these words costs less than making new ones of both.
    pub fn outweighs(&self, other: &Words) -> bool {
        MANY * other.cells.len <= self.cells.len
    }

    /// Adds another, and gives what it adds.
    pub fn add(&mut self, other: &Words) -> Result<Vec<Found>, Error> {
        self.check_alike(other)?;
        fit(
            self.total() + other.total() < TOO_LARGE
                && self.n_texts() + other.n_texts() < TOO_LARGE,
            TOO_MANY,
        )?;
        let mut classes: Vec<Vec<(u32, Counts)>> = vec![vec![]; self.n_classes()];
        for id in (0..other.n_ids()).filter(|&id| other.cells.is_live(id)) {
            let number = self.vocabulary.add_from(&other.vocabulary, id)?;
            for cell in other.cells.of(id) {
                classes[cell.class as usize].push((number, cell.counts));
            }
        }
        let mut found = vec![];
        for (class, mut cells) in classes.into_iter().enumerate() {
            if other.texts[class].is_zero() {
                continue;
            }
            cells.sort_unstable_by_key(|&(id, _)| id);
            let counts = cells.iter().map(|&(_, counts)| counts);
            let lane = match other.unit() {
                Unit::One => {
                    Lane::Narrow(counts.map(|counts| counts.map(|n| n.0[0] as u32)).collect())
                }
                Unit::Part => Lane::Parts(counts.collect()),
            };
            let ids = cells.iter().map(|&(id, _)| id).collect();
            found.push(Found::new(class as u32, ids, lane, other.texts[class]));
        }
        self.add_found(&mut found, 1)?;
        Ok(found)
    }

    /// What is left without the texts of another.
    pub fn minus(&self, other: &Words) -> Result<Words, Error> {
        self.check_alike(other)?;
        let mut ids = vec![];
        for id in (0..other.n_ids()).filter(|&id| other.cells.is_live(id)) {
            let number = self.vocabulary.find_from(&other.vocabulary, id);
            if number == UNKNOWN {
                // All of the word is to be taken away where there is nothing.
                let first = other.cells.of(id).next().unwrap_or(Cell::nothing(0));
                let class = first.class as usize;
                return Err(other.not_there(Some(id as u32), class, &first.counts[0]));
            }
            ids.push((id, number));
        }
        let mut left = self.clone();
        left.make_finer(other.unit());
        let (is, unit) = (other.unit(), left.unit());
        let cells = || {
            ids.iter().flat_map(|&(id, number)| {
                let cells = other.cells.of(id);
                cells.map(move |cell| (number, cell.to(is, unit)))
            })
        };
        let texts: Vec<Count> = other.texts.iter().map(|n| is.to(unit, *n)).collect();
        left.subtract(cells, &texts, false)?;
        left.check_documents()?;
        Ok(left.without_empty())
    }

    /// No word is in more documents than there are texts.
    fn check_documents(&self) -> Result<(), Error> {
        for id in 0..self.n_ids() {
            for cell in self.cells.of(id) {
                let class = cell.class as usize;
                minus(&self.texts[class], &cell.counts[1])
                    .map_err(|missing| self.not_there(Some(id as u32), class, &missing))?;
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
        let (vocabulary, cells) = self.rebuilt(self.cells.len, cells);
        Words { vocabulary, cells, texts: self.texts, totals: self.totals }
    }

    /// The same texts as if they had had these words only.
    pub fn only(&self, ids: &[u32]) -> Words {
        let mut kept = vec![false; self.n_ids()];
        ids.iter().for_each(|&id| kept[id as usize] = true);
        let cells = |id: usize| {
            let stays = kept[id];
            self.cells.of(id).filter(move |_| stays)
        };
        let totals = self.totals_of((0..self.n_ids()).flat_map(cells));
        let (vocabulary, cells) = self.rebuilt(0, cells);
        Words { vocabulary, cells, texts: self.texts.clone(), totals }
    }

    /// What cells add up to, class by class.
    pub(super) fn totals_of(&self, cells: impl Iterator<Item = Cell>) -> Vec<Counts> {
        let mut totals = vec![Counts::default(); self.n_classes()];
        cells.for_each(|cell| merge(&mut totals[cell.class as usize], &cell.counts));
        totals
    }

    /// The words, in the order of their numbers, to which `of` gives cells.
    fn rebuilt<I: Iterator<Item = Cell>>(
        &self,
        room: usize,
        of: impl Fn(usize) -> I,
    ) -> (Vocabulary, Cells) {
        let mut vocabulary = self.vocabulary.emptied();
        let mut cells = Cells::with_room(self.n_words(), room, self.unit());
        for id in 0..self.n_ids() {
            let mut these = of(id).peekable();
            if these.peek().is_some() {
                // A name that is there already was accepted before.
                let added = vocabulary.add_from(&self.vocabulary, id);
                debug_assert!(added.is_ok());
                cells.push(these);
            }
        }
        (vocabulary, cells)
    }

    /// Every text so many times; and whether that is exact. A factor that is not whole rounds numbers down: documents and texts to
    /// parts of a row, occurrences to a part of those. A cell of which nothing is left is gone.
    pub fn times(&self, factor: f64) -> Result<(Words, bool), Error> {
        let Some(by) = parts(factor) else {
            return Err(Error::malformed(format!(
                "the factor must not be negative, and be below 2**63; got {factor}"
            )));
        };
        if by == 0 {
            let none = Words::new(self.n_classes(), self.n_columns())?;
            return Ok((none, factor == 0.0));
        }
        let most = |n: u64| Int([n, 0, 0]).times(by).0.0;
        let fits = |n: u64| matches!(most(n), [ones, 0, 0] if ones < TOO_LARGE);
        let (total, texts) = (self.total(), self.n_texts());
        fit(fits(total) && fits(texts), TOO_MANY)?;
        let whole = by.is_multiple_of(u128::from(PARTS));
        let (was, mut exact) = (self.unit(), true);
        let unit = if whole { was.that_holds(most(total)[0]) } else { Unit::Part };
        let mut scaled = |count: Count, rows: bool| {
            let (mut product, mut all) = was.to(unit, count).times(by);
            if rows && !whole {
                let rest = { product }.divide(PARTS);
                product.take(&Int([rest, 0, 0]));
                all &= rest == 0;
            }
            exact &= all;
            product
        };
        let texts = self.texts.iter().map(|&n| scaled(n, true)).collect();
        let mut cells = Cells::with_room(self.cells.words(), self.cells.len, unit);
        for id in 0..self.cells.words() {
            let these = self.cells.of(id).map(|Cell { class, counts }| Cell {
                class,
                counts: [scaled(counts[0], false), scaled(counts[1], true)],
            });
            cells.push(these.filter(|cell| cell.counts.iter().all(|n| !n.is_zero())));
        }
        let product = Words {
            vocabulary: self.vocabulary.clone(),
            totals: self.totals_of((0..cells.words()).flat_map(|id| cells.of(id))),
            cells,
            texts,
        };
        let fewer = product.n_words() < self.n_words();
        let product = if fewer { product.without_empty() } else { product };
        Ok((product, exact))
    }

    /// Whether both hold the same numbers of the same words, whatever they count in.
    pub fn same(&self, other: &Words) -> bool {
        let alike = self.check_alike(other).is_ok() && self.n_words() == other.n_words();
        if !alike {
            return false;
        }
        let (was, is, unit) = (self.unit(), other.unit(), self.unit().max(other.unit()));
        let word = |id: usize| {
            let number = other.vocabulary.find_from(&self.vocabulary, id);
            if number == UNKNOWN || self.cells.n_cells(id) != other.cells.n_cells(number as usize) {
                return false;
            }
            let mut cells = self.cells.of(id).zip(other.cells.of(number as usize));
            cells.all(|(a, b)| a.to(was, unit) == b.to(is, unit))
        };
        let mut texts = self.texts.iter().zip(&other.texts);
        texts.all(|(a, b)| was.to(unit, *a) == is.to(unit, *b))
            && (0..self.n_ids()).filter(|&id| self.cells.is_live(id)).all(word)
    }

    /// Class c becomes class `index[c]` of `n_classes`, together with all others that do. Words keep their numbers.
    pub fn place(&self, index: &[i64], n_classes: usize) -> Result<Words, Error> {
        demand(index.len() == self.n_classes(), "index must have one number per class")?;
        let inside = |&class: &i64| usize::try_from(class).is_ok_and(|class| class < n_classes);
        if !index.iter().all(inside) {
            return Err(wrong_index(index, n_classes));
        }
        let mut placed = Words::new(n_classes, 0)?;
        for (class, &new) in index.iter().enumerate() {
            placed.texts[new as usize].merge(&self.texts[class]);
            merge(&mut placed.totals[new as usize], &self.totals[class]);
        }
        placed.vocabulary = self.vocabulary.clone();
        placed.cells = Cells::with_room(self.cells.words(), self.cells.len, self.unit());
        let ascends = index.is_sorted();
        let mut moved = vec![];
        for id in 0..self.cells.words() as u32 {
            self.move_cells(id, index, ascends, &mut moved);
            placed.cells.push(moved.iter().copied());
        }
        Ok(placed)
    }

    /// Class i is class `index[i]` of this one; words that are left without texts are gone.
    pub fn take(&self, index: &[i64]) -> Result<Words, Error> {
        let mut taken = Words::new(index.len(), 0)?;
        let mut targets = vec![vec![]; self.n_classes()];
        for (new, &old) in index.iter().enumerate() {
            let target = usize::try_from(old).ok().and_then(|old| targets.get_mut(old));
            match target {
                Some(target) => target.push(new as u32),
                None => return Err(wrong_index(index, self.n_classes())),
            }
            taken.texts[new] = self.texts[old as usize];
            taken.totals[new] = self.totals[old as usize];
        }
        // A class may be taken often: the sum of all may not fit.
        let most = |counts: &mut dyn Iterator<Item = &Count>| -> u128 {
            counts.map(|n| u128::from(self.unit().whole(n).0) + 1).sum()
        };
        let occurrences = most(&mut taken.totals.iter().map(|totals| &totals[0]));
        let texts = most(&mut taken.texts.iter());
        fit(occurrences.max(texts) < u128::from(TOO_LARGE), TOO_MANY)?;
        (taken.vocabulary, taken.cells) = self.rebuilt(0, |id| {
            let mut cells = vec![];
            for cell in self.cells.of(id) {
                let classes = targets[cell.class as usize].iter();
                cells.extend(classes.map(|&class| Cell { class, ..cell }));
            }
            cells.sort_by_key(|cell| cell.class);
            cells.into_iter()
        });
        taken.make_finer(self.unit().that_holds(occurrences as u64));
        Ok(taken)
    }
}

fn wrong_index(index: &[i64], n_classes: usize) -> Error {
    Error::malformed(format!(
        "index must name classes 0 to {}; got {index:?}",
        n_classes as i64 - 1
    ))
}
