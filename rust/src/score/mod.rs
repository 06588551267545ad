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

use crate::columns::{Columns, MOST_LISTED, RowSelection};
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
/// Blocks of rows that a thread scores with the same scratch memory, at most. 8 to 512 were equally fast: 400,000 rows of 10 normal
/// features took 7.2 to 8.5 ms; with one block 9.9 ms.
const MOST_BLOCKS: usize = 64;
/// Blocks of rows per model that a thread scores together if each row has its own model, and the least and the most of all
/// models together. To score 400,000 rows of 10 normal features by ten models took 16 ms; with one block per model 25 ms, with
/// thirty-two 22 ms.
const PIECE_BLOCKS: usize = 8;
const LEAST_PIECE_BLOCKS: usize = 64;
const MOST_PIECE_BLOCKS: usize = 512;

/// The values of some features in all rows, and how their log-likelihoods are computed.
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

/// The sums of a block of rows, `[class][row]`, to which the parts add log-likelihoods.
pub(crate) struct Sums<'a> {
    pub values: &'a mut [f64],
    /// The rows of the data whose sums these are.
    pub rows: RowSelection<'a>,
    /// Sums per class: one for each row, filled up to a multiple of [`LANES`].
    pub padded_rows: usize,
}

/// A number of rows, filled up to a multiple of [`LANES`].
fn pad_rows(n_rows: usize) -> usize {
    n_rows.next_multiple_of(LANES)
}

/// Memory that parts use again from block to block; what it holds between their calls has no meaning.
#[derive(Default)]
pub(crate) struct Scratch {
    pub reals: Vec<f64>,
    pub bits: Vec<u64>,
    pub more_bits: Vec<u64>,
    pub indices: Vec<u32>,
    /// The numbers of the codes of several columns.
    codes: Vec<u32>,
    text: words::TextBuffers,
    /// A row, for parts that read all columns of a row at once.
    row: Vec<f64>,
    product: product::RowBuffers,
}

/// A tile for intermediate values, `[feature][row]` with [`STRIDE`] numbers per feature, allocated if it is empty.
pub(crate) fn allocate_tile<T: Clone + Default>(tile: &mut Vec<T>) -> &mut [T] {
    if tile.is_empty() {
        tile.resize(FEATURES * STRIDE, T::default());
    }
    tile
}

/// Splits features into ranges of at most [`FEATURES`], which fill a tile each.
pub(crate) fn tiles(features: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = features.end;
    features.step_by(FEATURES).map(move |first| first..end.min(first + FEATURES))
}

/// Writes z of row `row`, `[feature]`, at most [`FARTHEST`] from 0; NaN where a value is missing. An infinite value is an error.
fn read_row(columns: &Columns, scale: &Scale, row: usize, z: &mut [f64]) -> Result<(), Error> {
    for (feature, block, column) in columns.columns_of(0..columns.features()) {
        let x = block.value(row, column).real();
        if x.is_infinite() {
            return Err(columns.bad_value(Fault::Infinite, row, feature));
        }
        z[feature] = scale.z_without_overflow(x, feature).clamp(-FARTHEST, FARTHEST);
    }
    Ok(())
}

impl<'a> Part<'a> {
    /// The columns that the part reads, unless it reads texts or a matrix or takes all its columns as one feature: then None.
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

    /// The number of features in which the part's log-likelihood is shown.
    fn features(&self) -> usize {
        match self {
            Part::Cells(part) => part.terms.len(),
            other => other.columns().map_or(1, Columns::features),
        }
    }

    /// An error unless the part has `n` rows.
    fn demand_rows(&self, n: usize) -> Result<(), Error> {
        match self {
            Part::Words(part) => demand(part.texts.len() == n, "there must be n_rows texts"),
            Part::Ellipse(part) => part.columns.demand_rows(n),
            Part::Product(part) => part.columns.demand_rows(n),
            Part::Linear(part) => demand(part.matrix.len() == n, "a matrix must have n_rows rows"),
            other => other.columns().map_or(Ok(()), |columns| columns.demand_rows(n)),
        }
    }

    /// The number of values to read, by which the work is judged: numbers, or bytes of text.
    fn n_values(&self, n_rows: usize) -> usize {
        match self {
            Part::Words(part) => part.texts.bytes(),
            Part::Linear(part) => part.matrix.cells(),
            Part::Ellipse(part) => n_rows.saturating_mul(part.columns.features().pow(2)),
            Part::Product(part) => n_rows.saturating_mul(part.values_per_row()),
            other => n_rows.saturating_mul(other.features()),
        }
    }

    /// Adds the log-likelihoods of these features of the part to the sums. Parts that are a single feature ignore `features`. A
    /// value that the part refuses is an error, whose feature counts from the part's first one.
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
            Part::Words(part) => part.add(sums, &mut scratch.text),
            Part::Linear(part) => part.add(sums, scratch),
            Part::Ellipse(part) => part.add(sums, &mut scratch.row),
            Part::Product(part) => part.add(sums, &mut scratch.product),
            Part::Cells(part) => part.add(features, sums, scratch),
        }
    }

    /// Adds to `terms` one term, a number per class, for each feature, word or matrix cell of a single row, the one row of `sums`,
    /// whose values are overwritten.
    fn add_terms(
        &self,
        sums: &mut Sums,
        scratch: &mut Scratch,
        terms: &mut far::RowTerms,
    ) -> Result<(), Error> {
        let row = sums.rows.row(0);
        match self {
            Part::Words(part) => part.add_terms(row, &mut scratch.text, terms),
            Part::Linear(part) => part.add_terms(row, terms),
            other => {
                for feature in 0..other.features() {
                    sums.values.fill(0.0);
                    other.add(feature..feature + 1, sums, scratch)?;
                    terms.add(sums.values.iter().step_by(sums.padded_rows).copied());
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
    /// `[class]`.
    log_prior: &'a [f64],
    parts: Vec<Part<'a>>,
    /// The number of features of all parts.
    features: usize,
}

/// What is computed for each row and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreKind {
    LogJoint,
    Posterior,
    LogPosterior,
}

impl<'a> Scoring<'a> {
    /// An error if the log prior, `[class]`, is wrong, a part does not have `n_rows` rows, or the scores are too many for memory.
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

    /// The number of classes.
    pub fn n_classes(&self) -> usize {
        self.log_prior.len()
    }

    /// The number of features of all parts.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The most probable class of each row, the first if several are; and how many rows are impossible in every class, which get
    /// the class of the highest prior.
    pub fn classes(&self, threads: usize) -> Result<(Vec<i32>, usize), Error> {
        let mut out = vec![0; self.n_rows];
        if let [Part::Words(part)] = &self.parts[..]
            && let Some((matrix, rough, constant)) = part.rough_scoring()
        {
            let start: Vec<f64> = self
                .log_prior
                .iter()
                .zip(constant)
                .map(|(log_prior, constant)| log_prior + constant)
                .collect();
            let n_impossible = self.rough_classes(threads, matrix, rough, &start, &mut out)?;
            return Ok((out, n_impossible));
        }
        let width = 1; // numbers per row
        let n_impossible = self.score_blocks(threads, &mut out, width, |sums, scratch, out| {
            let (classes, n_impossible) = self.block_classes(sums, scratch)?;
            out.copy_from_slice(&classes[..out.len()]);
            Ok(n_impossible)
        })?;
        Ok((out, n_impossible))
    }

    /// The class of each of a block's rows, by its sums, of which those of far rows are replaced; elements beyond the rows of the
    /// block have no meaning. And how many rows are impossible in every class.
    fn block_classes(
        &self,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<([i32; ROWS], usize), Error> {
        let (highest, classes) = sums.best();
        Ok(match self.replace_far_rows(&highest, sums, scratch)? {
            None => (classes, 0),
            Some(n_impossible) => (sums.best().1, n_impossible),
        })
    }

    /// Writes the class of each row to `out`: from rough sums (those of `rough`, beyond `start`, `[class]`), and from exact ones
    /// where these leave a doubt. Returns how many rows are impossible in every class.
    fn rough_classes(
        &self,
        threads: usize,
        matrix: &Matrix,
        rough: &rough::Rough,
        start: &[f64],
        out: &mut [i32],
    ) -> Result<usize, Error> {
        let threads = threads::worth(threads, self.n_values());
        let n_impossible = threads::try_pieces(threads, out, ROWS, |i, out| {
            let first_row = i * ROWS;
            let mut unsure_rows = vec![];
            // The rows of this piece, the classes to write, and rows that need exact sums.
            let (rows, classes, unsure) =
                (first_row..first_row + out.len(), &mut *out, &mut unsure_rows);
            wide!(rough.classes(matrix, start, rows, |row, class| match class {
                Some(class) => classes[row - first_row] = class as i32,
                None => unsure.push(row as u32),
            }));
            if unsure_rows.is_empty() {
                return Ok(0);
            }
            let padded_rows = pad_rows(unsure_rows.len());
            let mut values = vec![0.0; self.n_classes() * padded_rows];
            let rows = RowSelection::List(&unsure_rows);
            let mut sums = Sums { values: &mut values, rows, padded_rows };
            let mut scratch = Scratch::default();
            self.sum(&mut sums, &mut scratch)?;
            let (classes, n_impossible) = self.block_classes(&mut sums, &mut scratch)?;
            for (&row, class) in unsure_rows.iter().zip(classes) {
                out[row as usize - first_row] = class;
            }
            Ok::<_, Error>(n_impossible)
        })?;
        Ok(n_impossible.into_iter().sum())
    }

    /// The scores, `[row][class]`; and how many rows are impossible in every class, which get the prior as posterior.
    pub fn scores(&self, kind: ScoreKind, threads: usize) -> Result<(Vec<f64>, usize), Error> {
        let width = self.n_classes();
        let mut out = vec![0.0; self.n_rows * width];
        let n_impossible = self.score_blocks(threads, &mut out, width, |sums, scratch, out| {
            // `out` has the block's rows of the scores.
            let n_impossible = self.convert_sums(kind, sums, scratch)?;
            sums.write_rows(width, out);
            Ok(n_impossible)
        })?;
        Ok((out, n_impossible))
    }

    /// Converts a block's sums, which are log joint probabilities, to scores of this kind, in place. Returns how many rows are
    /// impossible in every class.
    fn convert_sums(
        &self,
        kind: ScoreKind,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<usize, Error> {
        if kind == ScoreKind::LogJoint {
            return Ok(sums.n_impossible());
        }
        let mut highest = sums.highest();
        let n_impossible = self.replace_far_rows(&highest, sums, scratch)?;
        if n_impossible.is_some() {
            highest = sums.highest();
        }
        match kind {
            ScoreKind::Posterior => sums.posterior(&highest),
            _ => sums.log_posterior(&highest),
        }
        Ok(n_impossible.unwrap_or(0))
    }

    /// The log-likelihood of each feature alone, `[row][feature][class]`; and how many rows are impossible in every class.
    pub fn likelihoods(&self, threads: usize) -> Result<(Vec<f64>, usize), Error> {
        let (width, n_classes) = (self.features * self.n_classes(), self.n_classes());
        let mut out = vec![0.0; self.n_rows * width];
        if width > 0 {
            let threads = threads::worth(threads, out.len().max(self.n_values()));
            let rows = self.rows_per_block(threads);
            threads::try_pieces(threads, &mut out, rows * width, |i, out| {
                self.write_likelihoods(i * rows, width, out)
            })?;
        }
        let n_impossible = out
            .chunks_exact(width.max(1))
            .filter(|row| {
                (0..n_classes).all(|class| {
                    let likelihoods = row.iter().skip(class).step_by(n_classes);
                    likelihoods.sum::<f64>() + self.log_prior[class] == f64::NEG_INFINITY
                })
            })
            .count();
        Ok((out, n_impossible))
    }

    /// Writes the log-likelihood of each feature alone, `[row][feature][class]`, for the rows from `first_row` on; `out` has
    /// `width` numbers for each row.
    fn write_likelihoods(
        &self,
        first_row: usize,
        width: usize,
        out: &mut [f64],
    ) -> Result<(), Error> {
        let n_rows = out.len() / width;
        let padded_rows = pad_rows(n_rows);
        let mut values = vec![0.0; self.n_classes() * padded_rows];
        let rows = RowSelection::Range(first_row..first_row + n_rows);
        let mut sums = Sums { values: &mut values, rows, padded_rows };
        let mut scratch = Scratch::default();
        // `column`: where a feature's log-likelihoods begin in each row of `out`.
        let (mut first_feature, mut column) = (0, 0);
        for part in &self.parts {
            for feature in 0..part.features() {
                sums.values.fill(0.0);
                part.add(feature..feature + 1, &mut sums, &mut scratch)
                    .map_err(|error| shift_feature(error, first_feature))?;
                sums.write_rows(width, &mut out[column..]);
                column += self.n_classes();
            }
            first_feature += part.features();
        }
        Ok(())
    }

    /// The number of values to read, by which the work is judged.
    fn n_values(&self) -> usize {
        let n_values = self.parts.iter().map(|part| part.n_values(self.n_rows));
        n_values.fold(0, usize::saturating_add).max(self.n_rows)
    }

    /// Rows per block: fewer than [`ROWS`] where threads share texts, which may be long.
    fn rows_per_block(&self, threads: usize) -> usize {
        let has_texts = self.parts.iter().any(|part| matches!(part, Part::Words(_)));
        let n_blocks = if has_texts && threads > 1 { 16 * threads } else { 1 };
        self.n_rows.div_ceil(n_blocks).clamp(1, ROWS)
    }

    /// Computes sums block by block, and calls `finish` with each block's sums and its piece of `out`, which has `width` elements
    /// for each row. Returns the total of what `finish` returns, the number of impossible rows.
    fn score_blocks<T: Send>(
        &self,
        threads: usize,
        out: &mut [T],
        width: usize,
        finish: impl Fn(&mut Sums, &mut Scratch, &mut [T]) -> Result<usize, Error> + Sync,
    ) -> Result<usize, Error> {
        let threads = threads::worth(threads, self.n_values());
        let block_rows = self.rows_per_block(threads);
        let padded_rows = pad_rows(block_rows);
        // Blocks that are scored with the same memory.
        let piece_blocks =
            (self.n_rows.div_ceil(16 * threads).div_ceil(block_rows)).clamp(1, MOST_BLOCKS);
        let piece_rows = piece_blocks * block_rows;
        let n_impossible = threads::try_pieces(threads, out, piece_rows * width, |i, piece| {
            let mut scratch = Scratch::default();
            let mut values = vec![0.0; self.n_classes() * padded_rows];
            let mut n_impossible = 0;
            for (block, out) in piece.chunks_mut(block_rows * width).enumerate() {
                let first_row = i * piece_rows + block * block_rows;
                let rows = RowSelection::Range(first_row..first_row + out.len() / width);
                let mut sums = Sums { values: &mut values, rows, padded_rows };
                self.sum(&mut sums, &mut scratch)?;
                n_impossible += finish(&mut sums, &mut scratch, out)?;
            }
            Ok(n_impossible)
        })?;
        Ok(n_impossible.into_iter().sum())
    }

    /// Sets the sums of a block of rows, `[class][row]`, to the log prior plus the log-likelihoods of all parts.
    fn sum(&self, sums: &mut Sums, scratch: &mut Scratch) -> Result<(), Error> {
        for (sums, &log_prior) in sums.classes_mut().zip(self.log_prior) {
            sums.fill(log_prior);
        }
        let mut first_feature = 0;
        for part in &self.parts {
            let features = part.features();
            part.add(0..features, sums, scratch)
                .map_err(|error| shift_feature(error, first_feature))?;
            first_feature += features;
        }
        Ok(())
    }

    /// Replaces sums by which classes cannot be compared: rows that are impossible in every class get the log prior, and rows
    /// far from every class get the differences to their best one. `highest` is each row's highest sum. Returns the number of
    /// impossible rows, or None if no sum had to change.
    fn replace_far_rows(
        &self,
        highest: &[f64; ROWS],
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, Error> {
        let far = FAR.max(FAR_EACH * self.features as f64);
        let mut n_impossible = None;
        for (i, highest) in highest[..sums.rows.len()].iter().enumerate() {
            let row = sums.rows.row(i);
            if highest.abs() <= far && !self.has_term_beyond(far, row)? {
                continue;
            }
            // The sum of each class less that of the best one; None if every class is impossible.
            let differences = match highest.is_finite() {
                true => self.terms(row, scratch)?.differences(),
                false => None,
            };
            *n_impossible.get_or_insert(0) += usize::from(differences.is_none());
            let scores = differences.as_deref().unwrap_or(self.log_prior);
            for (class_sums, &score) in sums.classes_mut().zip(scores) {
                class_sums[i] = score;
            }
        }
        Ok(n_impossible)
    }

    /// Whether a row has a term above `far` in absolute value, although terms may cancel in its sums.
    fn has_term_beyond(&self, far: f64, row: usize) -> Result<bool, Error> {
        for part in &self.parts {
            if let Part::Linear(part) = part
                && part.has_term_beyond(far, row)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The log prior and the log-likelihoods of row `row`, term by term, each a number per class.
    fn terms(&self, row: usize, scratch: &mut Scratch) -> Result<far::RowTerms, Error> {
        let mut terms = far::RowTerms::new(self.log_prior);
        let padded_rows = pad_rows(1);
        let mut sums = Sums {
            values: &mut vec![0.0; self.n_classes() * padded_rows],
            rows: RowSelection::Range(row..row + 1),
            padded_rows,
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
    /// The index of each row's model, or -1 for none.
    model_of_row: &'a [i32],
}

impl<'a> AssignedScoring<'a> {
    /// `model_of_row` has the index of each row's model, -1 for none. An error if another number occurs, or models differ in their
    /// rows or classes.
    pub fn new(models: Vec<Scoring<'a>>, model_of_row: &'a [i32]) -> Result<Self, Error> {
        let n_rows = model_of_row.len();
        demand(n_rows <= u32::MAX as usize, "there are more rows than a u32 can number")?;
        demand(
            models.iter().all(|model| model.n_rows == n_rows),
            "which must have one number per row",
        )?;
        demand(
            models.iter().all(|model| model.n_classes() == models[0].n_classes()),
            "all models must have the same number of classes",
        )?;
        demand(
            model_of_row.iter().all(|&model| model >= -1 && model < models.len() as i32),
            "which must be -1 or the number of a model",
        )?;
        Ok(AssignedScoring { models, model_of_row })
    }

    /// The number of classes of every model; 0 without models.
    pub fn n_classes(&self) -> usize {
        self.models.first().map_or(0, Scoring::n_classes)
    }

    /// Writes the scores of all rows to `out`, `[row][class]`, 0 where a row has no model. Returns how many rows are impossible in
    /// every class.
    pub fn write_scores(
        &self,
        kind: ScoreKind,
        threads: usize,
        out: &mut [f64],
    ) -> Result<usize, Error> {
        let width = self.n_classes();
        demand(out.len() == self.model_of_row.len() * width, "out must be (rows, classes)")?;
        let n_values = self.models.iter().map(Scoring::n_values).max().unwrap_or(0);
        let threads = threads::worth(threads, n_values);
        let piece_rows = (PIECE_BLOCKS * ROWS * self.models.len())
            .clamp(LEAST_PIECE_BLOCKS * ROWS, MOST_PIECE_BLOCKS * ROWS);
        let n_impossible = threads::try_pieces(threads, out, piece_rows * width, |i, piece| {
            self.score_piece(i * piece_rows, width, kind, piece)
        })?;
        Ok(n_impossible.into_iter().sum())
    }

    /// Writes the scores of the rows from `first_row` on to `piece`, `[row][class]` with `width` classes, model by model; 0 where a
    /// row has no model. Returns how many rows are impossible in every class.
    fn score_piece(
        &self,
        first_row: usize,
        width: usize,
        kind: ScoreKind,
        piece: &mut [f64],
    ) -> Result<usize, Error> {
        let model_of_row = &self.model_of_row[first_row..first_row + piece.len() / width];
        // The rows of each model, numbered as in the data.
        let mut rows_by_model = vec![vec![]; self.models.len()];
        for ((row, &model), out) in
            (first_row as u32..).zip(model_of_row).zip(piece.chunks_exact_mut(width))
        {
            match usize::try_from(model) {
                Ok(model) => rows_by_model[model].push(row),
                Err(_) => out.fill(0.0), // -1: no model
            }
        }
        let (mut scratch, mut values, mut n_impossible) = (Scratch::default(), vec![], 0);
        for (model, model_rows) in self.models.iter().zip(&rows_by_model) {
            for rows in model_rows.chunks(ROWS) {
                let padded_rows = pad_rows(rows.len());
                values.resize(width * padded_rows, 0.0);
                let selection = RowSelection::List(rows);
                let mut sums = Sums { values: &mut values, rows: selection, padded_rows };
                model.sum(&mut sums, &mut scratch)?;
                n_impossible += model.convert_sums(kind, &mut sums, &mut scratch)?;
                for (i, &row) in rows.iter().enumerate() {
                    let out = &mut piece[(row as usize - first_row) * width..][..width];
                    let scores = sums.values[i..].iter().step_by(padded_rows);
                    out.iter_mut().zip(scores).for_each(|(out, score)| *out = *score);
                }
            }
        }
        Ok(n_impossible)
    }
}

/// Renumbers the feature in an error: a part counts its own features from 0, the caller those of all parts.
fn shift_feature(error: Error, first_feature: usize) -> Error {
    match error {
        Error::BadValue { fault, feature, row, value } => {
            Error::BadValue { fault, feature: feature + first_feature, row, value }
        }
        other => other,
    }
}

impl Sums<'_> {
    /// The sums of each class: one for each row, filled up to `padded_rows`.
    fn classes(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.padded_rows)
    }

    /// The same as [`Sums::classes`], to write to.
    fn classes_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        self.values.chunks_exact_mut(self.padded_rows)
    }

    /// How many rows are impossible in every class.
    fn n_impossible(&self) -> usize {
        let highest = self.highest();
        let rows = highest[..self.rows.len()].iter();
        rows.filter(|&&highest| highest == f64::NEG_INFINITY).count()
    }

    /// Copies each row's sums, `[class]`, to the beginning of its row in `out`, whose rows are `width` long.
    fn write_rows(&self, width: usize, out: &mut [f64]) {
        // A few classes at a time, so that neither side leaves the cache: 40,000 rows of 100 classes take 20 ms to score,
        // and 42 ms class by class with 32 rows. Each group has the sums of eight classes, `[class][row]`.
        for (group, sums) in self.values.chunks(8 * self.padded_rows).enumerate() {
            let n_classes = sums.len() / self.padded_rows;
            for (row, out) in out.chunks_mut(width).enumerate() {
                let out = &mut out[8 * group..8 * group + n_classes];
                let sums = sums[row..].iter().step_by(self.padded_rows);
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out = *sum);
            }
        }
    }

    /// The highest sum of each row, and the first class that has it; elements beyond the rows have no meaning.
    fn best(&self) -> ([f64; ROWS], [i32; ROWS]) {
        let mut highest = [f64::NEG_INFINITY; ROWS];
        let mut best = [0_i32; ROWS];
        for (class, sums) in (0..).zip(self.classes()) {
            for ((&x, highest), best) in sums.iter().zip(&mut highest).zip(&mut best) {
                // Selections instead of a branch, so that the loop is vectorized.
                *best = if x > *highest { class } else { *best };
                *highest = if x > *highest { x } else { *highest };
            }
        }
        (highest, best)
    }

    /// The highest sum of each row; elements beyond the rows have no meaning.
    fn highest(&self) -> [f64; ROWS] {
        self.best().0
    }

    /// Replaces each row's sums with their exponentials, scaled so that they add up to 1. `highest` is each row's highest sum.
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

    /// Replaces each row's sums with the logarithms of what [`Sums::posterior`] gives, computed without underflow. `highest` is
    /// each row's highest sum.
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
