//! Sums, differences and multiples of stores, and stores with other classes.

use super::class_sums::ClassSums;
use super::index::{UNKNOWN, Vocabulary};
use super::store::{Cell, CellCounts, Cells, Count, Counts, Unit, merge};
use super::{TOO_LARGE, TOO_MANY, Words, new_classes};
use crate::error::{Error, Number, demand, fit};
use crate::integers::{Int, PARTS, weight_to_parts};

/// A store is added to another in place if that has so many times its cells. To add 800 texts to 6,000
/// took 14 ms with 8, 41 with 1 and 20 with 64; to add 100 texts 3.5 to 4 ms with each of them.
const MUCH_LARGER: usize = 8;

/// a - b for two counts of one unit; the error is how much of b is missing in a, b - a, if b is larger.
fn minus(a: &Count, b: &Count) -> Result<Count, Count> {
    let (mut difference, mut missing) = (*a, *b);
    difference.subtract(b);
    if difference.is_negative() {
        missing.subtract(a);
        return Err(missing);
    }
    Ok(difference)
}

impl Cell {
    /// A cell of this class with counts of zero.
    fn empty(class: u32) -> Self {
        Cell { class, counts: Counts::default() }
    }

    /// This cell without the counts of another one of its class: occurrences and documents, in the same unit. The error is how
    /// many occurrences or documents are missing. A cell must not be left with occurrences but no documents, nor with documents
    /// but no occurrences.
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

/// The cells of all sums of classes, each with the number of its word, in the order of words and classes; cells of the same
/// word and class are added up.
fn combine(sums: &[ClassSums]) -> Vec<(u32, Cell)> {
    let mut cells = vec![]; // the number of the word, and the cell
    for sums in sums {
        // The sums of one class: the number of the word of each cell, `ids`, and the counts of each.
        cells.extend(sums.ids.iter().enumerate().map(|(i, &id)| {
            let (class, counts) = (sums.class, sums.counts.get(i));
            (id, Cell { class, counts })
        }));
    }
    cells.sort_by_key(|(id, cell)| (*id, cell.class));
    cells.dedup_by(|next, first| next.0 == first.0 && first.1.absorbs(&next.1));
    cells
}

impl Words {
    /// Refuses a store with other classes or another number of columns.
    fn check_alike(&self, other: &Words) -> Result<(), Error> {
        demand(self.n_classes() == other.n_classes(), "both must have the same classes")?;
        demand(self.n_columns() == other.n_columns(), "both must have the same columns")
    }

    /// The error that too little was counted in a class: of the word with the number `word`, or, if that is none, of all words
    /// together. `missing` is how much is lacking, in this store's unit; the error has it in ones, as a number below zero.
    fn not_there(&self, word: Option<u32>, class: usize, missing: &Count) -> Error {
        let remainder = match self.unit().whole_ones(missing) {
            (ones, true) => Number::Whole(-i128::from(ones)),
            _ => Number::Real(-self.unit().ones(missing)),
        };
        Error::NotThere { word: word.map(|id| self.name(id)), class, remainder }
    }

    /// Subtracts the sums of rows of classes from the store, and converts the sums to the unit of the store; changes no counts
    /// if something is missing, which is an error. `is_plain`: every token counts as often as it occurs, so no word may be left
    /// with fewer occurrences than documents.
    pub(super) fn take_sums(
        &mut self,
        sums: &mut [ClassSums],
        is_plain: bool,
    ) -> Result<(), Error> {
        let unit = sums.iter().map(ClassSums::unit).max().unwrap_or_default(); // the finest of all sums
        self.make_finer(unit);
        let mut texts = vec![Count::default(); self.n_classes()]; // to be subtracted, `[class]`
        for sums in sums.iter_mut() {
            sums.make_finer(self.unit());
            texts[sums.class as usize].merge(&sums.texts);
        }
        let cells = combine(sums); // to be subtracted, each with the number of its word
        self.subtract(|| cells.iter().copied(), &texts, is_plain)
    }

    /// Subtracts cells, and texts of each class, `[class]`. `cells()` goes through the cells, each with the number of its word;
    /// no two have the same word and class. Changes nothing if something is missing, which is an error. Counts must be in the
    /// unit of the store. For `is_plain` see [`Words::take_sums`].
    fn subtract<I: Iterator<Item = (u32, Cell)>>(
        &mut self,
        cells: impl Fn() -> I,
        texts: &[Count],
        is_plain: bool,
    ) -> Result<(), Error> {
        let mut texts_left = vec![]; // number of texts after subtracting, `[class]`
        for (class, (old_texts, subtracted_texts)) in self.texts.iter().zip(texts).enumerate() {
            let left = minus(old_texts, subtracted_texts);
            // Texts of the class are missing, not a certain word.
            texts_left.push(left.map_err(|missing| self.not_there(None, class, &missing))?);
        }
        // What is left of a word's cell.
        let cell_left = |words: &Words, id: u32, subtracted: &Cell| {
            let old_cell = words.cells.get(id as usize, subtracted.class);
            old_cell.unwrap_or(Cell::empty(subtracted.class)).minus(subtracted)
        };
        let mut totals = self.totals.clone(); // occurrences and documents of all words after subtracting, `[class]`
        for (id, cell) in cells() {
            let class = cell.class as usize;
            let checked = cell_left(self, id, &cell).and_then(|left| {
                let [occurrences, documents] = &left.counts;
                minus(&texts_left[class], documents)?;
                if is_plain {
                    minus(occurrences, documents)?;
                }
                Ok(())
            });
            checked.map_err(|missing| self.not_there(Some(id), class, &missing))?;
            for (total, subtracted) in totals[class].iter_mut().zip(&cell.counts) {
                total.subtract(subtracted);
            }
        }
        // A class without texts has no occurrences.
        for (class, (texts, totals)) in texts_left.iter().zip(&totals).enumerate() {
            if texts.is_zero() && !totals[0].is_zero() {
                return Err(self.not_there(None, class, &totals[0]));
            }
        }
        for (id, cell) in cells() {
            if let Ok(left) = cell_left(self, id, &cell) {
                self.cells.set(id as usize, &left);
            }
        }
        (self.texts, self.totals) = (texts_left, totals);
        Ok(())
    }

    /// The sums of this store and another one, words of the same name together.
    pub fn plus(&self, other: &Words) -> Result<Words, Error> {
        let mut sum = self.clone();
        sum.add(other)?;
        Ok(sum)
    }

    /// Whether this store has at least [`MUCH_LARGER`] times the other's cells: then the other is added in place, rather than a
    /// new store made of both.
    pub fn outweighs(&self, other: &Words) -> bool {
        MUCH_LARGER * other.cells.len <= self.cells.len
    }

    /// Adds another store, words of the same name together. Returns the sums that were added, one for each class that has texts
    /// in `other`.
    pub fn add(&mut self, other: &Words) -> Result<Vec<ClassSums>, Error> {
        self.check_alike(other)?;
        fit(
            self.total() + other.total() < TOO_LARGE
                && self.n_texts() + other.n_texts() < TOO_LARGE,
            TOO_MANY,
        )?;
        // Each word of `other`: its number in this store, and in the other one.
        let mut numbers = vec![];
        for other_id in (0..other.n_ids()).filter(|&id| other.cells.is_live(id)) {
            numbers.push((self.vocabulary.add_from(&other.vocabulary, other_id)?, other_id));
        }
        numbers.sort_unstable();
        // No numbers of words, and no counts.
        let empty = (vec![], CellCounts::new(other.unit()));
        // Per class: the numbers of words in this store, and their counts.
        let mut cells = vec![empty; self.n_classes()];
        for (id, other_id) in numbers {
            for cell in other.cells.of(other_id) {
                let (ids, counts) = &mut cells[cell.class as usize];
                ids.push(id);
                counts.push(&cell.counts);
            }
        }
        let mut sums = vec![]; // of each class that has texts in `other`
        for ((class, (ids, counts)), &texts) in (0..).zip(cells).zip(&other.texts) {
            if !texts.is_zero() {
                sums.push(ClassSums::new(class, ids, counts, texts));
            }
        }
        // On one thread.
        self.add_sums(&mut sums, 1);
        Ok(sums)
    }

    /// This store without the texts of another one and without words that are left in no text; an error if this store lacks
    /// some count of the other one.
    pub fn minus(&self, other: &Words) -> Result<Words, Error> {
        self.check_alike(other)?;
        // Each word of `other`: its number in this store, and in the other one.
        let mut numbers = vec![];
        for other_id in (0..other.n_ids()).filter(|&id| other.cells.is_live(id)) {
            let id = self.vocabulary.find_from(&other.vocabulary, other_id);
            if id == UNKNOWN {
                // All counts of the word are missing.
                let first_cell = other.cells.of(other_id).next().unwrap_or(Cell::empty(0));
                let (class, occurrences) = (first_cell.class as usize, &first_cell.counts[0]); // then documents
                return Err(other.not_there(Some(other_id as u32), class, occurrences));
            }
            numbers.push((id, other_id));
        }
        let mut left = self.clone(); // this store, from which the other one is subtracted
        left.make_finer(other.unit());
        let (other_unit, left_unit) = (other.unit(), left.unit());
        // The cells of the other store in the unit of `left`, each with the number that its word has here.
        let cells = || {
            numbers.iter().flat_map(|&(id, other_id)| {
                let cells = other.cells.of(other_id);
                cells.map(move |cell| (id, cell.to(other_unit, left_unit)))
            })
        };
        // Texts of the other store per class, in the unit of `left`.
        let texts: Vec<Count> =
            other.texts.iter().map(|count| other_unit.to(left_unit, *count)).collect();
        // `false`: counts may be damped.
        left.subtract(cells, &texts, false)?;
        left.check_documents()?;
        Ok(left.without_empty())
    }

    /// Refuses a store in which a word has more documents in a class (`counts[1]` of its cell) than the class has texts.
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

    /// Removes the words that no text has; the others get new numbers.
    fn without_empty(self) -> Words {
        if self.n_words() == self.n_ids() {
            return self;
        }
        let cells = |id| self.cells.of(id); // of the word with this number
        let (vocabulary, cells) = self.rebuilt(self.cells.len, cells);
        Words { vocabulary, cells, texts: self.texts, totals: self.totals }
    }

    /// The sums of the same texts if they had had no other words than those with the numbers `ids`.
    pub fn only(&self, ids: &[u32]) -> Words {
        let mut stays = vec![false; self.n_ids()]; // whether a word is one of `ids`, `[word]`
        ids.iter().for_each(|&id| stays[id as usize] = true);
        // The cells of the word with this number; no cells if it does not stay.
        let cells = |id: usize| {
            let word_stays = stays[id];
            self.cells.of(id).filter(move |_| word_stays)
        };
        let totals = self.totals_of((0..self.n_ids()).flat_map(cells));
        // How many cells are left is not known, so no room is made for them.
        let (vocabulary, cells) = self.rebuilt(0, cells);
        Words { vocabulary, cells, texts: self.texts.clone(), totals }
    }

    /// The sums of the cells of each class: occurrences and documents of all words, `[class]`.
    pub(super) fn totals_of(&self, cells: impl Iterator<Item = Cell>) -> Vec<Counts> {
        let mut totals = vec![Counts::default(); self.n_classes()];
        cells.for_each(|cell| merge(&mut totals[cell.class as usize], &cell.counts));
        totals
    }

    /// Makes a vocabulary and cells of those words alone for which `cells_of`, called with a word's number, returns cells. The
    /// words get new numbers from 0 on, in the order of their old ones. Memory is reserved for `n_cells` cells.
    fn rebuilt<I: Iterator<Item = Cell>>(
        &self,
        n_cells: usize,
        cells_of: impl Fn(usize) -> I,
    ) -> (Vocabulary, Cells) {
        let mut vocabulary = self.vocabulary.emptied();
        let mut cells = Cells::with_room(self.n_words(), n_cells, self.unit());
        for id in 0..self.n_ids() {
            let mut word_cells = cells_of(id).peekable();
            if word_cells.peek().is_some() {
                // Adding cannot fail: the name was accepted before.
                let added = vocabulary.add_from(&self.vocabulary, id);
                debug_assert!(added.is_ok());
                cells.push(word_cells);
            }
        }
        (vocabulary, cells)
    }

    /// The store with all counts multiplied by `factor`; also returns whether that was exact. A factor that is not whole rounds
    /// counts down: documents and texts to 10^-18, occurrences to 10^-36. Cells that become zero are removed. An error if the
    /// factor or a product is too large, or the factor negative.
    pub fn times(&self, factor: f64) -> Result<(Words, bool), Error> {
        // In 10^-18.
        let Some(factor_in_parts) = weight_to_parts(factor) else {
            return Err(Error::malformed(format!(
                "the factor must not be negative, and be below 2**63; got {factor}"
            )));
        };
        if factor_in_parts == 0 {
            let empty = Words::new(self.n_classes(), self.n_columns())?;
            return Ok((empty, factor == 0.0));
        }
        // A number of ones times the factor, in ones: three limbs, the least first.
        let product = |ones: u64| Int([ones, 0, 0]).times(factor_in_parts).0.0;
        // Whether the product of a number of ones is below 2^63.
        let fits = |ones: u64| matches!(product(ones), [ones, 0, 0] if ones < TOO_LARGE);
        fit(fits(self.total()) && fits(self.n_texts()), TOO_MANY)?;
        let factor_is_whole = factor_in_parts.is_multiple_of(u128::from(PARTS));
        let (old_unit, mut exact) = (self.unit(), true); // whether all products are exact so far
        let new_unit = match factor_is_whole {
            true => old_unit.that_holds(product(self.total())[0]),
            false => Unit::Part,
        };
        // A count in the new unit times the factor; one that counts rows is rounded down to 10^-18.
        let mut scaled = |count: Count, counts_rows: bool| {
            let (mut product, mut is_exact) = old_unit.to(new_unit, count).times(factor_in_parts);
            if counts_rows && !factor_is_whole {
                let remainder = { product }.divide(PARTS);
                product.subtract(&Int([remainder, 0, 0]));
                is_exact &= remainder == 0;
            }
            exact &= is_exact;
            product
        };
        let texts = self.texts.iter().map(|&count| scaled(count, true)).collect(); // of each class
        let mut cells = Cells::with_room(self.cells.words(), self.cells.len, new_unit);
        for id in 0..self.cells.words() {
            // The cells of one word.
            let scaled_cells = self.cells.of(id).map(|Cell { class, counts }| Cell {
                class,
                // Documents count rows; occurrences do not.
                counts: [scaled(counts[0], false), scaled(counts[1], true)],
            });
            cells
                .push(scaled_cells.filter(|cell| cell.counts.iter().all(|count| !count.is_zero())));
        }
        let product = Words {
            vocabulary: self.vocabulary.clone(),
            totals: self.totals_of((0..cells.words()).flat_map(|id| cells.of(id))),
            cells,
            texts,
        };
        // Whether some word lost all its cells.
        let lost_words = product.n_words() < self.n_words();
        Ok((if lost_words { product.without_empty() } else { product }, exact))
    }

    /// Whether two stores have the same classes and columns and equal counts of the same words, in whatever unit they hold them.
    pub fn same(&self, other: &Words) -> bool {
        if self.check_alike(other).is_err() || self.n_words() != other.n_words() {
            return false;
        }
        let finer_unit = self.unit().max(other.unit());
        // The texts of each class in the finer unit.
        let texts = |words: &Words| -> Vec<Count> {
            words.texts.iter().map(|&count| words.unit().to(finer_unit, count)).collect()
        };
        // Whether the word with this number has the same cells in both stores.
        let has_equal_cells = |id: usize| {
            let other_id = other.vocabulary.find_from(&self.vocabulary, id);
            other_id != UNKNOWN && {
                let cells = self.cells.of(id).map(|cell| cell.to(self.unit(), finer_unit));
                let other_cells = other.cells.of(other_id as usize);
                cells.eq(other_cells.map(|cell| cell.to(other.unit(), finer_unit)))
            }
        };
        let mut ids = (0..self.n_ids()).filter(|&id| self.cells.is_live(id)); // words that some text has
        texts(self) == texts(other) && ids.all(has_equal_cells)
    }

    /// Makes class c class `index[c]` of `n_classes`, and adds up classes that become one. Words keep their numbers.
    pub fn place(&self, index: &[i64], n_classes: usize) -> Result<Words, Error> {
        demand(index.len() == self.n_classes(), "index must have one number per class")?;
        let inside = |&class: &i64| usize::try_from(class).is_ok_and(|class| class < n_classes);
        if !index.iter().all(inside) {
            return Err(wrong_index(index, n_classes));
        }
        self.with_classes(&new_classes(index), n_classes)
    }

    /// A store whose class i is class `index[i]` of this one, where a class may be taken more than once; words that are left
    /// without texts are gone. An error if `index` has a number that is no class, or if the counts would be too large.
    pub fn take(&self, index: &[i64]) -> Result<Words, Error> {
        let mut new_classes = vec![vec![]; self.n_classes()]; // of each class, `[class][new class]`
        // Of all new classes together, in ones, rounded up: the sum may not fit.
        let (mut occurrences, mut texts) = (0, 0);
        // At least as large as a count, in ones.
        let at_most = |count: &Count| u128::from(self.unit().whole_ones(count).0) + 1;
        for (new_class, &class) in index.iter().enumerate() {
            let class = usize::try_from(class).ok().filter(|&class| class < self.n_classes());
            let class = class.ok_or_else(|| wrong_index(index, self.n_classes()))?;
            new_classes[class].push(new_class as u32);
            occurrences += at_most(&self.totals[class][0]);
            texts += at_most(&self.texts[class]);
        }
        fit(occurrences.max(texts) < u128::from(TOO_LARGE), TOO_MANY)?;
        let mut taken = self.with_classes(&new_classes, index.len())?.without_empty();
        taken.make_finer(self.unit().that_holds(occurrences as u64));
        Ok(taken)
    }

    /// A store of `n_classes` classes in which class c counts in each of the classes `new_classes[c]` instead. Words keep their
    /// numbers.
    fn with_classes(&self, new_classes: &[Vec<u32>], n_classes: usize) -> Result<Words, Error> {
        // Without columns so far; the vocabulary follows.
        let mut moved = Words::new(n_classes, 0)?; // the new store
        for (class, new_classes) in new_classes.iter().enumerate() {
            // The number of texts of each class, and the occurrences and documents of all words in each class.
            for &new_class in new_classes {
                moved.texts[new_class as usize].merge(&self.texts[class]);
                merge(&mut moved.totals[new_class as usize], &self.totals[class]);
            }
        }
        moved.vocabulary = self.vocabulary.clone();
        moved.cells = Cells::with_room(self.cells.words(), self.cells.len, self.unit());
        let mut cells = vec![]; // of one word, in their new classes
        for id in 0..self.cells.words() as u32 {
            self.cells_in(id, new_classes, &mut cells);
            moved.cells.push(cells.iter().copied());
        }
        Ok(moved)
    }
}

/// The error of an index with a number that is not that of one of `n_classes` classes.
fn wrong_index(index: &[i64], n_classes: usize) -> Error {
    Error::malformed(format!(
        "index must name classes 0 to {}; got {index:?}",
        n_classes as i64 - 1
    ))
}
