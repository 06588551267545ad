//! Log-likelihoods of all features added to the log prior, row by row, in one pass.
//!
//! Rows are scored in blocks that stay in the cache: each part adds to a block's sums, `[class][row]`, and the block's sums then
//! become classes, posteriors or log posteriors. A row's scores do not depend on its neighbours: features are added one by one,
//! in order. Where a row's sums are very large, its classes are compared feature by feature instead.

pub mod cells;
pub mod ellipse;
mod far;
pub mod flags;
pub mod histogram;
pub mod kernel;
pub mod linear;
pub mod normal;
mod occurrences;
pub mod product;
pub mod rough;
pub mod table;
mod urn;
pub mod words;

use crate::columns::{Chosen, Columns, MOST_LISTED};
use crate::error::{Error, Fault, demand};
use crate::exponential::exp;
use crate::scale::{FARTHEST, Scale};
use crate::simd::wide;
use crate::threads;
use crate::words::Matrix;
use std::ops::Range;

/// Rows per block, at most. See [`MOST_LISTED`].
pub(crate) const ROWS: usize = MOST_LISTED;
/// Rows whose sums some parts keep in registers while they add features.
pub(crate) const LANES: usize = 16;
/// Features per tile. To score 20,000 rows of 200 normal features took 10 ms; with tiles of 8 features and 32 rows, 28 ms.
pub(crate) const FEATURES: usize = 32;
/// The features of a tile are this far apart: not a power of two, or else they would compete for the same cache lines.
pub(crate) const STRIDE: usize = ROWS + 16;
/// A row is far from every class if its highest sum is beyond FAR, and beyond FAR_EACH times the number of features. Doubles of
/// the size of FAR are 3e-11 apart, so that sums below it give posteriors to ten digits.
const FAR: f64 = 131_072.0;
const FAR_EACH: f64 = 16.0;

/// The log-likelihoods of some features, and how to compute them.
#[derive(Debug)]
pub enum Part<'a> {
    Normal(normal::Normal<'a>),
    Table(table::LookupTable<'a>),
    Flags(flags::Flags<'a>),
    Histogram(histogram::Histogram<'a>),
    Kernel(kernel::Kernel<'a>),
    Words(words::TextScores<'a>),
    Linear(linear::Linear<'a>),
    Ellipse(ellipse::Ellipse<'a>),
    Product(product::Product<'a>),
    Cells(cells::CellTables<'a>),
}

/// The sums of a block of rows, `[class][row]`, to which the parts add.
pub(crate) struct Sums<'a> {
    pub values: &'a mut [f64],
    pub rows: Chosen<'a>,
    /// Sums per class: one for each row, filled up to a multiple of [`LANES`].
    pub height: usize,
}

/// Sums per class for a number of rows.
fn height_of(rows: usize) -> usize {
    rows.next_multiple_of(LANES)
}

/// Memory that parts use again from block to block.
#[derive(Default)]
pub(crate) struct Scratch {
    pub reals: Vec<f64>,
    pub bits: Vec<u64>,
    pub more_bits: Vec<u64>,
    pub indices: Vec<u32>,
    /// The numbers of the codes of several columns.
    codes: Vec<u32>,
    words: words::Room,
    /// A row, for parts that read all columns of a row at once.
    row: Vec<f64>,
    product: product::Room,
}

/// A tile for intermediate values, allocated when it is first needed.
pub(crate) fn room<T: Clone + Default>(tile: &mut Vec<T>) -> &mut [T] {
    if tile.is_empty() {
        tile.resize(FEATURES * STRIDE, T::default());
    }
    tile
}

/// Splits features into ranges that fill a tile each.
pub(crate) fn tiles(features: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = features.end;
    features.step_by(FEATURES).map(move |first| first..end.min(first + FEATURES))
}

/// Writes z of a row, at most [`FARTHEST`] from 0; NaN where a value is missing.
fn read_row(columns: &Columns, scale: &Scale, row: usize, z: &mut [f64]) -> Result<(), Error> {
    for (feature, block, column) in columns.each_of(0..columns.features()) {
        let x = block.value(row, column).real();
        if x.is_infinite() {
            return Err(columns.refused(Fault::Infinite, row, feature));
        }
        z[feature] = scale.careful(x, feature).clamp(-FARTHEST, FARTHEST);
    }
    Ok(())
}

impl<'a> Part<'a> {
    /// The columns, if each is a feature or has its own term.
    fn columns(&self) -> Option<&Columns<'a>> {
        Some(match self {
            Part::Normal(part) => &part.columns,
            Part::Table(part) => &part.columns,
            Part::Flags(part) => &part.columns,
            Part::Histogram(part) => &part.columns,
            Part::Kernel(part) => &part.columns,
            Part::Cells(part) => &part.columns,
            Part::Words(_) | Part::Linear(_) | Part::Ellipse(_) | Part::Product(_) => return None,
        })
    }

    fn features(&self) -> usize {
        match self {
            Part::Cells(part) => part.terms.len(),
            other => other.columns().map_or(1, Columns::features),
        }
    }

    fn demand_rows(&self, n: usize) -> Result<(), Error> {
        match self {
            Part::Words(part) => demand(part.texts.len() == n, "there must be n_rows texts"),
            Part::Ellipse(part) => part.columns.demand_rows(n),
            Part::Product(part) => part.columns.demand_rows(n),
            Part::Linear(part) => demand(part.matrix.len() == n, "a matrix must have n_rows rows"),
            other => other.columns().map_or(Ok(()), |columns| columns.demand_rows(n)),
        }
    }

    /// The number of values to read: numbers, or bytes of text.
    fn work(&self, n_rows: usize) -> usize {
        match self {
            Part::Words(part) => part.texts.bytes(),
            Part::Linear(part) => part.matrix.cells(),
            Part::Ellipse(part) => n_rows.saturating_mul(part.columns.features().pow(2)),
            Part::Product(part) => n_rows.saturating_mul(part.work()),
            other => n_rows.saturating_mul(other.features()),
        }
    }

    /// Adds the log-likelihoods of these features. Parts that are a single feature ignore `features`.
    fn add(
        &self,
        features: Range<usize>,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        match self {
            Part::Normal(part) => part.add(features, sums, scratch),
            Part::Table(part) => part.add(features, sums, scratch),
            Part::Flags(part) => part.add(features, sums, scratch),
            Part::Histogram(part) => part.add(sums),
            Part::Kernel(part) => part.add(sums),
            Part::Words(part) => part.add(sums, &mut scratch.words),
            Part::Linear(part) => part.add(sums, scratch),
            Part::Ellipse(part) => part.add(sums, &mut scratch.row),
            Part::Product(part) => part.add(sums, &mut scratch.product),
            Part::Cells(part) => part.add(features, sums, scratch),
        }
    }

    /// Adds a term for each feature, word or cell of a single row, the one row of `sums`.
    fn add_terms(
        &self,
        sums: &mut Sums,
        scratch: &mut Scratch,
        terms: &mut far::Terms,
    ) -> Result<(), Error> {
        let row = sums.rows.row(0);
        match self {
            Part::Words(part) => part.add_terms(row, &mut scratch.words, terms),
            Part::Linear(part) => part.add_terms(row, terms),
            other => {
                for feature in 0..other.features() {
                    sums.values.fill(0.0);
                    other.add(feature..feature + 1, sums, scratch)?;
                    terms.add(sums.values.iter().step_by(sums.height).copied());
                }
                Ok(())
            }
        }
    }
}

/// Rows to score, and the model that scores them.
#[derive(Debug)]
pub struct Scoring<'a> {
    n_rows: usize,
    log_prior: &'a [f64],
    parts: Vec<Part<'a>>,
    features: usize,
}

/// The scores of a single row.
#[derive(Debug)]
pub struct RowScores {
    /// The most probable class, the first if several are.
    pub class: i32,
    pub posterior: Vec<f64>,
    pub log_posterior: Vec<f64>,
    /// The log-likelihood of each feature alone, `[feature][class]`.
    pub parts: Vec<f64>,
}

/// The numbers that a caller wants for each row and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    LogJoint,
    Posterior,
    LogPosterior,
}

impl<'a> Scoring<'a> {
    pub fn new(n_rows: usize, log_prior: &'a [f64], parts: Vec<Part<'a>>) -> Result<Self, Error> {
        demand(!log_prior.is_empty(), "log_prior must have at least one class")?;
        demand(
            log_prior.iter().all(|x| *x < f64::INFINITY) && log_prior.iter().any(|x| x.is_finite()),
            "log_prior must be finite or -inf, and finite for one class at least",
        )?;
        let mut features = 0_usize;
        for part in &parts {
            part.demand_rows(n_rows)?;
            features += part.features();
        }
        demand(
            n_rows.saturating_mul(log_prior.len()).saturating_mul(features.max(1))
                <= isize::MAX as usize / 8,
            "the answer does not fit into memory",
        )?;
        Ok(Scoring { n_rows, log_prior, parts, features })
    }

    pub fn n_classes(&self) -> usize {
        self.log_prior.len()
    }

    pub fn features(&self) -> usize {
        self.features
    }

    /// The most probable class of each row, the first if several are; and how many rows are impossible in every class.
    pub fn classes(&self, threads: usize) -> Result<(Vec<i32>, usize), Error> {
        let mut out = vec![0; self.n_rows];
        if let [Part::Words(part)] = &self.parts[..]
            && let Some((matrix, rough, constant)) = part.roughly()
        {
            let start: Vec<f64> = self.log_prior.iter().zip(constant).map(|(a, b)| a + b).collect();
            let lost = self.rough_classes(threads, matrix, rough, &start, &mut out)?;
            return Ok((out, lost));
        }
        let lost = self.blocks(threads, &mut out, 1, |sums, scratch, out| {
            let (classes, lost) = self.block_classes(sums, scratch)?;
            out.copy_from_slice(&classes[..out.len()]);
            Ok(lost)
        })?;
        Ok((out, lost))
    }

    /// The classes of a block's rows; and how many rows are impossible in every class.
    fn block_classes(
        &self,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<([i32; ROWS], usize), Error> {
        let (highest, classes) = sums.best();
        Ok(match self.compare(&highest, sums, scratch)? {
            None => (classes, 0),
            Some(lost) => (sums.best().1, lost),
        })
    }

    /// Writes the class of each row from rough sums, and from exact ones where these leave a doubt. Returns how many rows are
    /// impossible in every class.
    fn rough_classes(
        &self,
        threads: usize,
        matrix: &Matrix,
        rough: &rough::Rough,
        start: &[f64],
        out: &mut [i32],
    ) -> Result<usize, Error> {
        let threads = threads::worth(threads, self.work());
        let lost = threads::try_pieces(threads, out, ROWS, |i, out| {
            let (from, mut unsure) = (i * ROWS, vec![]);
            let (rows, classes, doubtful) = (from..from + out.len(), &mut *out, &mut unsure);
            wide!(rough.classes(matrix, start, rows, |row, class| match class {
                Some(class) => classes[row - from] = class as i32,
                None => doubtful.push(row as u32),
            }));
            if unsure.is_empty() {
                return Ok(0);
            }
            let height = height_of(unsure.len());
            let mut values = vec![0.0; self.n_classes() * height];
            let rows = Chosen::Listed(&unsure);
            let (mut sums, mut scratch) =
                (Sums { values: &mut values, rows, height }, Scratch::default());
            self.sum(&mut sums, &mut scratch)?;
            let (classes, lost) = self.block_classes(&mut sums, &mut scratch)?;
            for (&row, class) in unsure.iter().zip(classes) {
                out[row as usize - from] = class;
            }
            Ok::<_, Error>(lost)
        })?;
        Ok(lost.into_iter().sum())
    }

    /// The wanted numbers, `[row][class]`; and how many rows are impossible in every class.
    pub fn reals(&self, want: Want, threads: usize) -> Result<(Vec<f64>, usize), Error> {
        let width = self.n_classes();
        let mut out = vec![0.0; self.n_rows * width];
        let lost = self.blocks(threads, &mut out, width, |sums, scratch, out| {
            let lost = self.turn_into(want, sums, scratch)?;
            sums.write_rows(width, out);
            Ok(lost)
        })?;
        Ok((out, lost))
    }

    /// Turns a block's sums into the wanted numbers. Returns how many rows are impossible in every class.
    fn turn_into(
        &self,
        want: Want,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<usize, Error> {
        if want == Want::LogJoint {
            return Ok(sums.lost());
        }
        let mut highest = sums.highest();
        let lost = self.compare(&highest, sums, scratch)?;
        if lost.is_some() {
            highest = sums.highest();
        }
        match want {
            Want::Posterior => sums.posterior(&highest),
            _ => sums.log_posterior(&highest),
        }
        Ok(lost.unwrap_or(0))
    }

    /// The scores of the first row, all from the same sums.
    pub fn row(&self) -> Result<RowScores, Error> {
        demand(self.n_rows > 0, "there must be a row")?;
        let c = self.n_classes();
        let height = height_of(1);
        let mut scratch = Scratch::default();
        let mut values = vec![0.0; c * height];
        let mut sums = Sums { values: &mut values, rows: Chosen::Neighbours(0..1), height };
        self.sum(&mut sums, &mut scratch)?;
        self.compare(&sums.highest(), &mut sums, &mut scratch)?;
        let (highest, classes) = sums.best();
        let mut copy = sums.values.to_vec();
        let mut shares = Sums { values: &mut copy, rows: Chosen::Neighbours(0..1), height };
        shares.posterior(&highest);
        sums.log_posterior(&highest);
        let (mut posterior, mut log_posterior) = (vec![0.0; c], vec![0.0; c]);
        shares.write_rows(c, &mut posterior);
        sums.write_rows(c, &mut log_posterior);
        let mut parts = vec![0.0; self.features * c];
        if self.features > 0 {
            self.split(0, self.features * c, &mut parts)?;
        }
        Ok(RowScores { class: classes[0], posterior, log_posterior, parts })
    }

    /// The log-likelihood of each feature alone, `[row][feature][class]`; and how many rows are impossible in every class.
    pub fn parts(&self, threads: usize) -> Result<(Vec<f64>, usize), Error> {
        let (width, n_classes) = (self.features * self.n_classes(), self.n_classes());
        let mut out = vec![0.0; self.n_rows * width];
        if width > 0 {
            let threads = threads::worth(threads, out.len().max(self.work()));
            let rows = self.rows_per_block(threads);
            threads::try_pieces(threads, &mut out, rows * width, |i, out| {
                self.split(i * rows, width, out)
            })?;
        }
        let lost = out
            .chunks_exact(width.max(1))
            .filter(|row| {
                (0..n_classes).all(|class| {
                    let likelihoods = row.iter().skip(class).step_by(n_classes);
                    likelihoods.sum::<f64>() + self.log_prior[class] == f64::NEG_INFINITY
                })
            })
            .count();
        Ok((out, lost))
    }

    /// Writes the log-likelihood of each feature alone for as many rows, from row `from` on, as `out` has room for.
    fn split(&self, from: usize, width: usize, out: &mut [f64]) -> Result<(), Error> {
        let n = out.len() / width;
        let height = height_of(n);
        let mut values = vec![0.0; self.n_classes() * height];
        let mut sums =
            Sums { values: &mut values, rows: Chosen::Neighbours(from..from + n), height };
        let mut scratch = Scratch::default();
        let (mut first, mut at) = (0, 0);
        for part in &self.parts {
            for feature in 0..part.features() {
                sums.values.fill(0.0);
                part.add(feature..feature + 1, &mut sums, &mut scratch)
                    .map_err(|error| shift(error, first))?;
                sums.write_rows(width, &mut out[at..]);
                at += self.n_classes();
            }
            first += part.features();
        }
        Ok(())
    }

    /// The number of values to read.
    fn work(&self) -> usize {
        let work = self.parts.iter().map(|part| part.work(self.n_rows));
        work.fold(0, usize::saturating_add).max(self.n_rows)
    }

    /// Rows per block: fewer than [`ROWS`] where threads share texts, which may be long.
    fn rows_per_block(&self, threads: usize) -> usize {
        let texts = self.parts.iter().any(|part| matches!(part, Part::Words(_)));
        let pieces = if texts && threads > 1 { 16 * threads } else { 1 };
        self.n_rows.div_ceil(pieces).clamp(1, ROWS)
    }

    /// Computes sums block by block, and calls `finish` with each block's sums and its piece of `out`. Returns the total of what
    /// `finish` returns.
    fn blocks<T: Send>(
        &self,
        threads: usize,
        out: &mut [T],
        width: usize,
        finish: impl Fn(&mut Sums, &mut Scratch, &mut [T]) -> Result<usize, Error> + Sync,
    ) -> Result<usize, Error> {
        let threads = threads::worth(threads, self.work());
        let rows = self.rows_per_block(threads);
        let height = height_of(rows);
        let blocks = (self.n_rows.div_ceil(16 * threads).div_ceil(rows)).clamp(1, 64);
        let lost = threads::try_pieces(threads, out, blocks * rows * width, |i, piece| {
            let mut scratch = Scratch::default();
            let mut values = vec![0.0; self.n_classes() * height];
            let mut lost = 0;
            for (b, out) in piece.chunks_mut(rows * width).enumerate() {
                let from = (i * blocks + b) * rows;
                let mut sums = Sums {
                    values: &mut values,
                    rows: Chosen::Neighbours(from..from + out.len() / width),
                    height,
                };
                self.sum(&mut sums, &mut scratch)?;
                lost += finish(&mut sums, &mut scratch, out)?;
            }
            Ok(lost)
        })?;
        Ok(lost.into_iter().sum())
    }

    /// Adds up the log prior and the log-likelihoods of a block of rows.
    fn sum(&self, sums: &mut Sums, scratch: &mut Scratch) -> Result<(), Error> {
        for (sums, &log_prior) in sums.classes_mut().zip(self.log_prior) {
            sums.fill(log_prior);
        }
        let mut first = 0;
        for part in &self.parts {
            let features = part.features();
            part.add(0..features, sums, scratch).map_err(|error| shift(error, first))?;
            first += features;
        }
        Ok(())
    }

    /// Makes sums fit to compare classes by: rows that are impossible in every class get the log prior, and rows far from every
    /// class get the differences to their best one. Returns the number of impossible rows, or None if no sum had to change.
    fn compare(
        &self,
        highest: &[f64; ROWS],
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, Error> {
        let far = FAR.max(FAR_EACH * self.features as f64);
        let mut lost = None;
        for (at, highest) in highest[..sums.rows.len()].iter().enumerate() {
            if highest.abs() <= far && !self.reaches(far, sums.rows.row(at))? {
                continue;
            }
            let differences = match highest.is_finite() {
                true => self.terms(sums.rows.row(at), scratch)?.differences(),
                false => None,
            };
            *lost.get_or_insert(0) += usize::from(differences.is_none());
            let scores = differences.as_deref().unwrap_or(self.log_prior);
            for (sums, &x) in sums.classes_mut().zip(scores) {
                sums[at] = x;
            }
        }
        Ok(lost)
    }

    /// Whether some terms of a row are beyond `far`, although they may cancel in its sums.
    fn reaches(&self, far: f64, row: usize) -> Result<bool, Error> {
        for part in &self.parts {
            if let Part::Linear(part) = part
                && part.reaches(far, row)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The log prior and the log-likelihoods of one row, term by term.
    fn terms(&self, row: usize, scratch: &mut Scratch) -> Result<far::Terms, Error> {
        let (mut terms, height) = (far::Terms::new(self.log_prior), height_of(1));
        let mut sums = Sums {
            values: &mut vec![0.0; self.n_classes() * height],
            rows: Chosen::Neighbours(row..row + 1),
            height,
        };
        for part in &self.parts {
            part.add_terms(&mut sums, scratch, &mut terms)?;
        }
        Ok(terms)
    }
}

/// Rows of which each is scored by one of several models, such as that of its fold.
#[derive(Debug)]
pub struct AssignedScoring<'a> {
    models: Vec<Scoring<'a>>,
    /// The number of each row's model, or -1 for none.
    which: &'a [i32],
}

impl<'a> AssignedScoring<'a> {
    pub fn new(models: Vec<Scoring<'a>>, which: &'a [i32]) -> Result<Self, Error> {
        demand(which.len() <= u32::MAX as usize, "there are more rows than a u32 can number")?;
        demand(
            models.iter().all(|model| model.n_rows == which.len()),
            "which must have one number per row",
        )?;
        demand(
            models.iter().all(|model| model.n_classes() == models[0].n_classes()),
            "all models must have the same number of classes",
        )?;
        demand(
            which.iter().all(|&k| k >= -1 && k < models.len() as i32),
            "which must be -1 or the number of a model",
        )?;
        Ok(AssignedScoring { models, which })
    }

    pub fn n_classes(&self) -> usize {
        self.models.first().map_or(0, Scoring::n_classes)
    }

    /// Writes the wanted numbers, `[row][class]`, 0 where a row has no model. Returns how many rows are impossible in every
    /// class.
    pub fn reals(&self, want: Want, threads: usize, out: &mut [f64]) -> Result<usize, Error> {
        let width = self.n_classes();
        demand(out.len() == self.which.len() * width, "out must be (rows, classes)")?;
        let work = self.models.iter().map(Scoring::work).max().unwrap_or(0);
        let threads = threads::worth(threads, work);
        let rows = (8 * ROWS * self.models.len()).clamp(64 * ROWS, 512 * ROWS);
        let lost = threads::try_pieces(threads, out, rows * width, |i, piece| {
            self.piece(i * rows, width, want, piece)
        })?;
        Ok(lost.into_iter().sum())
    }

    /// Scores the rows of a piece, model by model.
    fn piece(
        &self,
        from: usize,
        width: usize,
        want: Want,
        piece: &mut [f64],
    ) -> Result<usize, Error> {
        let which = &self.which[from..from + piece.len() / width];
        let mut lists = vec![vec![]; self.models.len()];
        for (row, &k) in (from as u32..).zip(which) {
            match usize::try_from(k) {
                Ok(k) => lists[k].push(row),
                Err(_) => piece[(row as usize - from) * width..][..width].fill(0.0),
            }
        }
        let (mut scratch, mut values, mut lost) = (Scratch::default(), vec![], 0);
        for (model, list) in self.models.iter().zip(&lists) {
            for listed in list.chunks(ROWS) {
                let height = height_of(listed.len());
                values.resize(width * height, 0.0);
                let mut sums = Sums { values: &mut values, rows: Chosen::Listed(listed), height };
                model.sum(&mut sums, &mut scratch)?;
                lost += model.turn_into(want, &mut sums, &mut scratch)?;
                for (at, &row) in listed.iter().enumerate() {
                    let out = &mut piece[(row as usize - from) * width..][..width];
                    let sums = sums.values[at..].iter().step_by(height);
                    out.iter_mut().zip(sums).for_each(|(out, x)| *out = *x);
                }
            }
        }
        Ok(lost)
    }
}

/// Renumbers the feature in an error: a part counts its own features from 0, the caller those of all parts.
fn shift(error: Error, first: usize) -> Error {
    match error {
        Error::BadValue { fault, feature, row, value } => {
            Error::BadValue { fault, feature: feature + first, row, value }
        }
        other => other,
    }
}

impl Sums<'_> {
    fn classes(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.height)
    }

    fn classes_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        self.values.chunks_exact_mut(self.height)
    }

    fn lost(&self) -> usize {
        let highest = self.highest();
        let lost = highest[..self.rows.len()].iter();
        lost.filter(|&&x| x == f64::NEG_INFINITY).count()
    }

    /// Copies each row's sums to the beginning of its row in `out`, whose rows are `width` long.
    fn write_rows(&self, width: usize, out: &mut [f64]) {
        // A few classes at a time, so that neither side leaves the cache: 40,000 rows of 100 classes take 20 ms to score,
        // and 42 ms class by class with 32 rows.
        for (group, sums) in self.values.chunks(8 * self.height).enumerate() {
            let classes = sums.len() / self.height;
            for (row, out) in out.chunks_mut(width).enumerate() {
                let out = &mut out[8 * group..8 * group + classes];
                let sums = sums[row..].iter().step_by(self.height);
                out.iter_mut().zip(sums).for_each(|(out, x)| *out = *x);
            }
        }
    }

    /// The highest sum of each row, and the first class that has it.
    fn best(&self) -> ([f64; ROWS], [i32; ROWS]) {
        let mut highest = [f64::NEG_INFINITY; ROWS];
        let mut best = [0_i32; ROWS];
        for (class, sums) in (0..).zip(self.classes()) {
            for ((&x, highest), best) in sums.iter().zip(&mut highest).zip(&mut best) {
                *best = if x > *highest { class } else { *best };
                *highest = if x > *highest { x } else { *highest };
            }
        }
        (highest, best)
    }

    fn highest(&self) -> [f64; ROWS] {
        self.best().0
    }

    /// Replaces each row's sums with their exponentials, scaled so that they add up to 1.
    fn posterior(&mut self, highest: &[f64; ROWS]) {
        let n = self.rows.len();
        let mut totals = [0.0; ROWS];
        for sums in self.classes_mut() {
            let rows = sums[..n].iter_mut().zip(highest).zip(&mut totals);
            wide!(for ((x, highest), total) in rows {
                *x = exp(*x - highest);
                *total += *x;
            });
        }
        for sums in self.classes_mut() {
            for (x, total) in sums[..n].iter_mut().zip(&totals) {
                *x /= total;
            }
        }
    }

    /// Replaces each row's sums with the logarithms of what [`Sums::posterior`] gives, computed without underflow.
    fn log_posterior(&mut self, highest: &[f64; ROWS]) {
        let n = self.rows.len();
        let mut totals = [0.0; ROWS];
        for sums in self.classes() {
            let rows = sums[..n].iter().zip(highest).zip(&mut totals);
            wide!(for ((x, highest), total) in rows {
                *total += exp(x - highest);
            });
        }
        for total in &mut totals[..n] {
            *total = total.ln();
        }
        // The highest goes first: added to the logarithm it would swallow it where sums are large.
        for sums in self.classes_mut() {
            for ((x, highest), total) in sums[..n].iter_mut().zip(highest).zip(&totals) {
                *x = (*x - highest) - total;
            }
        }
    }
}
