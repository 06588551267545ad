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
/// Rows whose sums some parts keep in registers while they add features. To predict 400,000 rows of 20 normal features took 12.5 ms
/// with 16, 14.5 with 8 and 19.4 with 32.
pub(crate) const LANES: usize = 16;
/// Features per tile. To score 20,000 rows of 200 normal features took 10 ms; with tiles of 8 features and 32 rows, 28 ms.
pub(crate) const FEATURES: usize = 32;
/// The features of a tile are this far apart: not a power of two, or else they would compete for the same cache lines. Where the
/// second cache is fast, [`ROWS`] is as good: 20,000 rows of 200 normal features took 7.3 and 7.5 ms, and 50,000 rows of 64 whole
/// numbers 6.3 and 6.4 ms.
pub(crate) const STRIDE: usize = ROWS + 16;
/// A row is far from every class if its highest sum is beyond FAR, and beyond FAR_EACH times the number of features. Doubles of
/// the size of FAR are 3e-11 apart, so that sums below it give posteriors to ten digits. Features add less than FAR_EACH each to
/// the sums of ordinary rows: 200 rows of 50,000 normal features took 26 ms; 1,550 ms if FAR alone decides.
const FAR: f64 = 131_072.0;
const FAR_EACH: f64 = 16.0;
/// Blocks of rows that a thread scores with the same scratch memory, at most. 8 to 512 were equally fast: 400,000 rows of 10
/// normal features took 7.2 to 8.5 ms; with one block 9.9 ms.
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
    pub values: Vec<f64>,
    /// The rows of the data whose sums these are.
    pub rows: RowSelection<'a>,
    /// Sums per class: one for each row, filled up to a multiple of [`LANES`].
    pub padded_rows: usize,
}

/// Memory that parts use again from block to block; what it holds between their calls has no meaning.
#[derive(Default)]
pub(crate) struct Scratch {
    pub reals: Vec<f64>,
    pub bits: Vec<u64>,
    pub more_bits: Vec<u64>,
    pub indices: Vec<u32>,
    /// A number for each row's code in several columns, `[column][row]` with [`ROWS`] numbers per column.
    codes: Vec<u32>,
    text: words::TextBuffers,
    /// A row, for parts that read all columns of a row at once.
    row: Vec<f64>,
    product: product::RowBuffers,
}

/// A tile for intermediate numbers, `[feature][row]` with [`STRIDE`] numbers per feature. `tile` is the memory of the last tile,
/// whose numbers have no meaning any more; it is allocated if it is empty.
pub(crate) fn allocate_tile<T: Clone + Default>(tile: &mut Vec<T>) -> &mut [T] {
    if tile.is_empty() {
        tile.resize(FEATURES * STRIDE, T::default());
    }
    tile
}

/// Splits a range of features (their indices) into ranges of at most [`FEATURES`], which fill a tile each.
pub(crate) fn tiles(features: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = features.end;
    features.step_by(FEATURES).map(move |feature| feature..end.min(feature + FEATURES))
}

/// Reads row number `row` of the columns, and writes z = (x - origin) / unit of its numbers x to `z`, `[feature]`, at most
/// [`FARTHEST`] from 0; NaN where x is missing. `scale` has the origin and the unit of each feature. An infinite x is an error.
fn read_row(columns: &Columns, scale: &Scale, row: usize, z: &mut [f64]) -> Result<(), Error> {
    // Each feature is a column of one of the blocks; `column` is its index in that block.
    for (feature, block, column) in columns.columns_of(0..columns.features()) {
        let x = block.value(row, column).real(); // NaN: missing
        if x.is_infinite() {
            return Err(columns.bad_value(Fault::Infinite, row, feature));
        }
        z[feature] = scale.z_without_overflow(x, feature).clamp(-FARTHEST, FARTHEST);
    }
    Ok(())
}

impl<'a> Part<'a> {
    /// The columns that the part reads, if each of them, or each cell or pair of them, is a feature; None if the part reads texts
    /// or a matrix, or takes all its columns as one feature.
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

    /// The number of features in which the part's log-likelihood is shown: its columns, or its terms if it has tables of cells;
    /// one if it takes texts, a matrix or all columns jointly.
    fn features(&self) -> usize {
        match self {
            Part::Cells(part) => part.terms.len(),
            part => part.columns().map_or(1, Columns::features),
        }
    }

    /// An error unless the part's columns, texts or matrix have `n_rows` rows.
    fn demand_rows(&self, n_rows: usize) -> Result<(), Error> {
        match self {
            Part::Words(part) => demand(part.texts.len() == n_rows, "there must be n_rows texts"),
            Part::Ellipse(part) => part.columns.demand_rows(n_rows),
            Part::Product(part) => part.columns.demand_rows(n_rows),
            Part::Linear(part) => {
                demand(part.matrix.len() == n_rows, "a matrix must have n_rows rows")
            }
            part => part.columns().map_or(Ok(()), |columns| columns.demand_rows(n_rows)),
        }
    }

    /// How much there is to read in `n_rows` rows, by which the work is judged: numbers, cells of a matrix, or bytes of text.
    fn n_values(&self, n_rows: usize) -> usize {
        match self {
            Part::Words(part) => part.texts.bytes(),
            Part::Linear(part) => part.matrix.cells(),
            // A row is multiplied by a square matrix.
            Part::Ellipse(part) => n_rows.saturating_mul(part.columns.features().pow(2)),
            Part::Product(part) => n_rows.saturating_mul(part.values_per_row()),
            part => n_rows.saturating_mul(part.features()),
        }
    }

    /// Adds the log-likelihoods of these features, numbered from 0 in the part, to the sums of a block of rows, `[class][row]`.
    /// Parts that are a single feature ignore `features`. A number that the part refuses is an error, whose feature counts from
    /// the part's first one. `scratch` has buffers that are used again from block to block; what is in them has no meaning.
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

    /// Adds to `terms` one term, a log-likelihood per class, for each feature, word or matrix cell of a single row, the one row
    /// of `sums`, whose numbers, `[class]`, are overwritten. `scratch` has buffers whose contents have no meaning.
    fn add_terms(
        &self,
        sums: &mut Sums,
        scratch: &mut Scratch,
        terms: &mut far::RowTerms,
    ) -> Result<(), Error> {
        let row = sums.rows.row(0); // the row's number in the data
        match self {
            Part::Words(part) => part.add_terms(row, &mut scratch.text, terms),
            Part::Linear(part) => part.add_terms(row, terms),
            part => {
                // The sums, [class], are those of one feature alone.
                for feature in 0..part.features() {
                    sums.values.fill(0.0);
                    part.add(feature..feature + 1, sums, scratch)?;
                    terms.add(sums.of_row(0).copied());
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
    /// Joins `n_rows` rows and a model: the log prior of each class, and parts, which have the features and score them. An error
    /// if the log prior is wrong, a part does not have `n_rows` rows, or the scores are too many for memory.
    pub fn new(n_rows: usize, log_prior: &'a [f64], parts: Vec<Part<'a>>) -> Result<Self, Error> {
        demand(!log_prior.is_empty(), "log_prior must have at least one class")?;
        demand(
            log_prior.iter().all(|x| *x < f64::INFINITY) && log_prior.iter().any(|x| x.is_finite()),
            "log_prior must be finite or -inf, and finite for one class at least",
        )?;
        let mut features = 0_usize; // how many all parts have
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
        let mut class_of_row = vec![0; self.n_rows];
        if let [Part::Words(part)] = &self.parts[..]
            && let Some((matrix, rough_weights, constant)) = part.rough_scoring()
        {
            // A matrix of counts, its columns' weights in single precision, and what is added for every row, [class].
            // The score of a row without cells, [class]:
            let empty_scores: Vec<f64> = self
                .log_prior
                .iter()
                .zip(constant)
                .map(|(prior, constant)| prior + constant)
                .collect();
            let n_impossible = self.rough_classes(
                threads,
                matrix,
                rough_weights,
                &empty_scores,
                &mut class_of_row,
            )?;
            return Ok((class_of_row, n_impossible));
        }
        let width = 1; // a class per row
        let n_impossible =
            self.score_blocks(threads, &mut class_of_row, width, |sums, scratch, class_of_row| {
                let (classes, n_impossible) = self.block_classes(sums, scratch)?;
                class_of_row.copy_from_slice(&classes[..class_of_row.len()]);
                Ok(n_impossible)
            })?;
        Ok((class_of_row, n_impossible))
    }

    /// The most probable class of each row of a block, by its sums, `[class][row]`; elements beyond the block's rows have no
    /// meaning. And how many rows are impossible in every class. The sums of rows far from every class are replaced; `scratch`
    /// has buffers whose contents have no meaning.
    fn block_classes(
        &self,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<([i32; ROWS], usize), Error> {
        // The highest sum of each row, and the class that has it.
        let (highest, classes) = sums.best();
        // None: no sum had to be replaced.
        Ok(match self.replace_far_rows(&highest, sums, scratch)? {
            None => (classes, 0),
            Some(n_impossible) => (sums.best().1, n_impossible),
        })
    }

    /// Writes the class of each row of a matrix of counts to `class_of_row`: by `empty_scores`, `[class]`, the scores of a row
    /// without cells, and by `rough_weights`, the weights of the matrix's columns in single precision; or by exact sums where
    /// rounding leaves a doubt. Returns how many rows are impossible in every class.
    fn rough_classes(
        &self,
        threads: usize,
        matrix: &Matrix,
        rough_weights: &rough::Rough,
        empty_scores: &[f64],
        class_of_row: &mut [i32],
    ) -> Result<usize, Error> {
        let threads = threads::worth(threads, self.n_values());
        let n_impossible =
            threads::try_pieces(threads, class_of_row, ROWS, |piece, class_of_row| {
                let first_row = piece * ROWS;
                let rows = first_row..first_row + class_of_row.len();
                let mut unsure_rows = vec![]; // their numbers in the data: they need exact sums
                let (classes, unsure) = (&mut *class_of_row, &mut unsure_rows); // for the closure
                wide!(rough_weights.classes(
                    matrix,
                    empty_scores,
                    rows,
                    |row, class| match class {
                        Some(class) => classes[row - first_row] = class as i32,
                        None => unsure.push(row as u32),
                    }
                ));
                if unsure_rows.is_empty() {
                    return Ok(0);
                }
                let mut scratch = Scratch::default();
                let mut sums = self.sum(RowSelection::List(&unsure_rows), &mut scratch)?;
                let (classes, n_impossible) = self.block_classes(&mut sums, &mut scratch)?;
                for (&row, class) in unsure_rows.iter().zip(classes) {
                    class_of_row[row as usize - first_row] = class;
                }
                Ok::<_, Error>(n_impossible)
            })?;
        Ok(n_impossible.into_iter().sum())
    }

    /// The scores of this kind, `[row][class]`; and how many rows are impossible in every class, which get the prior as
    /// posterior.
    pub fn scores(&self, kind: ScoreKind, threads: usize) -> Result<(Vec<f64>, usize), Error> {
        let n_classes = self.n_classes();
        let mut scores = vec![0.0; self.n_rows * n_classes];
        let n_impossible =
            self.score_blocks(threads, &mut scores, n_classes, |sums, scratch, block_scores| {
                // The sums are [class][row], the block's scores [row][class].
                let n_impossible = self.convert_sums(kind, sums, scratch)?;
                sums.write_rows(n_classes, block_scores);
                Ok(n_impossible)
            })?;
        Ok((scores, n_impossible))
    }

    /// Converts a block's sums, `[class][row]`, which are log joint probabilities, to scores of this kind, in place. Returns how
    /// many rows are impossible in every class. `scratch` has buffers whose contents have no meaning.
    fn convert_sums(
        &self,
        kind: ScoreKind,
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<usize, Error> {
        if kind == ScoreKind::LogJoint {
            return Ok(sums.n_impossible());
        }
        let mut highest = sums.highest(); // the highest sum of each row
        // None: no sum had to be replaced.
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
        let n_classes = self.n_classes();
        let width = self.features * n_classes; // numbers per row
        let mut likelihoods = vec![0.0; self.n_rows * width];
        if width > 0 {
            let threads = threads::worth(threads, likelihoods.len().max(self.n_values()));
            let block_rows = self.rows_per_block(threads);
            threads::try_pieces(
                threads,
                &mut likelihoods,
                block_rows * width,
                |block, likelihoods| {
                    let first_row = block * block_rows;
                    let rows = first_row..first_row + likelihoods.len() / width;
                    self.write_likelihoods(RowSelection::Range(rows), width, likelihoods)
                },
            )?;
        }
        // Whether a row, [feature][class], has log joint probabilities of -inf in all classes.
        let is_impossible = |row: &&[f64]| {
            (0..n_classes).all(|class| {
                let likelihoods_of_class = row.iter().skip(class).step_by(n_classes);
                likelihoods_of_class.sum::<f64>() + self.log_prior[class] == f64::NEG_INFINITY
            })
        };
        let n_impossible = likelihoods.chunks_exact(width.max(1)).filter(is_impossible).count();
        Ok((likelihoods, n_impossible))
    }

    /// Writes the log-likelihood of each feature alone to `likelihoods`, `[row][feature][class]`, with `width` numbers for each
    /// of these rows.
    fn write_likelihoods(
        &self,
        rows: RowSelection,
        width: usize,
        likelihoods: &mut [f64],
    ) -> Result<(), Error> {
        let mut sums = Sums::new(self.log_prior, rows);
        let mut scratch = Scratch::default();
        let mut first_feature = 0; // the number of features in the parts before
        for part in &self.parts {
            for feature in 0..part.features() {
                sums.values.fill(0.0); // [class][row]: the feature's log-likelihoods alone
                part.add(feature..feature + 1, &mut sums, &mut scratch)
                    .map_err(|error| shift_feature(error, first_feature))?;
                let start = (first_feature + feature) * self.n_classes(); // in each row
                sums.write_rows(width, &mut likelihoods[start..]);
            }
            first_feature += part.features();
        }
        Ok(())
    }

    /// How much there is to read in all rows and parts, numbers or bytes of text, by which the work is judged.
    fn n_values(&self) -> usize {
        let n_values = self.parts.iter().map(|part| part.n_values(self.n_rows)); // of each part
        n_values.fold(0, usize::saturating_add).max(self.n_rows)
    }

    /// How many rows a block has: [`ROWS`], or fewer where several threads share texts, which may be long.
    fn rows_per_block(&self, threads: usize) -> usize {
        let has_texts = self.parts.iter().any(|part| matches!(part, Part::Words(_)));
        // Blocks of all rows, at least.
        let n_blocks = if has_texts && threads > 1 { 16 * threads } else { 1 };
        self.n_rows.div_ceil(n_blocks).clamp(1, ROWS)
    }

    /// Computes sums block by block, and calls `finish` with each block's sums, `[class][row]`, with buffers that it may use, and
    /// with its rows of `out`, which has `width` elements for each row. `finish` returns how many of the block's rows are
    /// impossible in every class; the total of these is returned.
    fn score_blocks<T: Send>(
        &self,
        threads: usize,
        out: &mut [T],
        width: usize,
        finish: impl Fn(&mut Sums, &mut Scratch, &mut [T]) -> Result<usize, Error> + Sync,
    ) -> Result<usize, Error> {
        let threads = threads::worth(threads, self.n_values());
        let block_rows = self.rows_per_block(threads);
        // Blocks that are scored with the same memory.
        let piece_blocks =
            (self.n_rows.div_ceil(16 * threads).div_ceil(block_rows)).clamp(1, MOST_BLOCKS);
        let piece_rows = piece_blocks * block_rows;
        // The number of impossible rows in each piece.
        let n_impossible = threads::try_pieces(threads, out, piece_rows * width, |piece, out| {
            let mut scratch = Scratch::default();
            let mut n_impossible = 0;
            for (block, out) in out.chunks_mut(block_rows * width).enumerate() {
                let first_row = piece * piece_rows + block * block_rows;
                let rows = RowSelection::Range(first_row..first_row + out.len() / width);
                let mut sums = self.sum(rows, &mut scratch)?;
                n_impossible += finish(&mut sums, &mut scratch, out)?;
            }
            Ok(n_impossible)
        })?;
        Ok(n_impossible.into_iter().sum())
    }

    /// The sums of a block of rows, `[class][row]`: the log prior plus the log-likelihoods of all parts. `scratch` has buffers
    /// whose contents have no meaning.
    fn sum<'r>(&self, rows: RowSelection<'r>, scratch: &mut Scratch) -> Result<Sums<'r>, Error> {
        let mut sums = Sums::new(self.log_prior, rows);
        let mut first_feature = 0; // the number of features in the parts before
        for part in &self.parts {
            let features = part.features(); // how many
            part.add(0..features, &mut sums, scratch)
                .map_err(|error| shift_feature(error, first_feature))?;
            first_feature += features;
        }
        Ok(sums)
    }

    /// Replaces sums by which classes cannot be compared: rows that are impossible in every class get the log prior, and rows far
    /// from every class get the differences to their best one. `sums` are `[class][row]`, and `highest` is each row's highest
    /// sum; `scratch` has buffers whose contents have no meaning. Returns the number of impossible rows, or None if no sum had to
    /// change.
    fn replace_far_rows(
        &self,
        highest: &[f64; ROWS],
        sums: &mut Sums,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, Error> {
        // Sums that are larger in absolute value are too coarse to compare.
        let far = FAR.max(FAR_EACH * self.features as f64);
        let mut n_impossible = None;
        for (i, highest) in highest[..sums.rows.len()].iter().enumerate() {
            let row = sums.rows.row(i); // its number in the data
            if highest.abs() <= far && !self.has_term_beyond(far, row)? {
                continue;
            }
            // The sum of each class less that of the best one; None if every class is impossible.
            let differences = match highest.is_finite() {
                true => self.terms(row, scratch)?.differences(),
                false => None,
            };
            *n_impossible.get_or_insert(0) += usize::from(differences.is_none());
            let scores = differences.as_deref().unwrap_or(self.log_prior); // [class]
            sums.of_row_mut(i).zip(scores).for_each(|(sum, score)| *sum = *score);
        }
        Ok(n_impossible)
    }

    /// Whether the row number `row` has a term (the log-likelihood that one cell of a matrix adds) above `far` in absolute value,
    /// which its sums may not show since terms cancel.
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

    /// The log prior and the log-likelihoods of the row number `row`, term by term (a feature, word or cell), each a number per
    /// class. `scratch` has buffers whose contents have no meaning.
    fn terms(&self, row: usize, scratch: &mut Scratch) -> Result<far::RowTerms, Error> {
        let mut terms = far::RowTerms::new(self.log_prior);
        // The sums of this row alone: `add_terms` overwrites them.
        let mut sums = Sums::new(self.log_prior, RowSelection::Range(row..row + 1));
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
    /// Joins models and the rows that they score: `model_of_row` has the index of each row's model, -1 for none. An error if
    /// another number occurs, or models differ in their rows or classes.
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

    /// Writes the scores of all rows, of this kind and by each row's model, to `out`, `[row][class]`, 0 where a row has no model.
    /// Returns how many rows are impossible in every class.
    pub fn write_scores(
        &self,
        kind: ScoreKind,
        threads: usize,
        out: &mut [f64],
    ) -> Result<usize, Error> {
        let n_classes = self.n_classes();
        demand(out.len() == self.model_of_row.len() * n_classes, "out must be (rows, classes)")?;
        // Numbers or bytes of text that the model with the most to read reads.
        let n_values = self.models.iter().map(Scoring::n_values).max().unwrap_or(0);
        let threads = threads::worth(threads, n_values);
        let piece_rows = (PIECE_BLOCKS * ROWS * self.models.len())
            .clamp(LEAST_PIECE_BLOCKS * ROWS, MOST_PIECE_BLOCKS * ROWS);
        // The number of impossible rows in each piece.
        let n_impossible =
            threads::try_pieces(threads, out, piece_rows * n_classes, |piece, out| {
                self.score_piece(piece * piece_rows, kind, out)
            })?;
        Ok(n_impossible.into_iter().sum())
    }

    /// Writes the scores, of this kind, of the rows from `first_row` on to `scores`, `[row][class]`, model by model; 0 where a
    /// row has no model. Returns how many rows are impossible in every class.
    fn score_piece(
        &self,
        first_row: usize,
        kind: ScoreKind,
        scores: &mut [f64],
    ) -> Result<usize, Error> {
        let n_classes = self.n_classes();
        let model_of_row = &self.model_of_row[first_row..];
        // The rows of each model, numbered as in the data.
        let mut rows_by_model = vec![vec![]; self.models.len()];
        let row_scores = scores.chunks_exact_mut(n_classes); // [class] of each row
        for ((row, &model), row_scores) in (first_row as u32..).zip(model_of_row).zip(row_scores) {
            match usize::try_from(model) {
                Ok(model) => rows_by_model[model].push(row),
                Err(_) => row_scores.fill(0.0), // -1: no model
            }
        }
        let (mut scratch, mut n_impossible) = (Scratch::default(), 0);
        for (model, model_rows) in self.models.iter().zip(&rows_by_model) {
            for rows in model_rows.chunks(ROWS) {
                let mut sums = model.sum(RowSelection::List(rows), &mut scratch)?; // [class][row]
                n_impossible += model.convert_sums(kind, &mut sums, &mut scratch)?;
                for (i, &row) in rows.iter().enumerate() {
                    let row_scores = &mut scores[(row as usize - first_row) * n_classes..];
                    row_scores
                        .iter_mut()
                        .zip(sums.of_row(i))
                        .for_each(|(out, score)| *out = *score);
                }
            }
        }
        Ok(n_impossible)
    }
}

/// Renumbers the feature in an error: a part counts its own features from 0, the caller those of all parts. `first_feature` is
/// the number of features in the parts before.
fn shift_feature(mut error: Error, first_feature: usize) -> Error {
    if let Error::BadValue { feature, .. } = &mut error {
        *feature += first_feature;
    }
    error
}

impl<'a> Sums<'a> {
    /// Sums of these rows, `[class][row]`, in which each row begins with `start`, `[class]`. A class has `padded_rows` sums: as
    /// many as rows, filled up to a multiple of [`LANES`].
    fn new(start: &[f64], rows: RowSelection<'a>) -> Self {
        let padded_rows = rows.len().next_multiple_of(LANES);
        let mut sums = Sums { values: vec![0.0; start.len() * padded_rows], rows, padded_rows };
        sums.classes_mut().zip(start).for_each(|(sums, &start)| sums.fill(start));
        sums
    }

    /// The sums of the block's i-th row, `[class]`. All sums are in `values`, `[class][row]` with `padded_rows` sums per class.
    #[inline(always)]
    fn of_row(&self, i: usize) -> impl Iterator<Item = &f64> {
        self.values[i..].iter().step_by(self.padded_rows)
    }

    /// The same as [`Sums::of_row`], to write to.
    #[inline(always)]
    fn of_row_mut(&mut self, i: usize) -> impl Iterator<Item = &mut f64> {
        self.values[i..].iter_mut().step_by(self.padded_rows)
    }

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
        let highest = self.highest(); // the highest sum of each row
        let highest_of_rows = highest[..self.rows.len()].iter();
        highest_of_rows.filter(|&&highest| highest == f64::NEG_INFINITY).count()
    }

    /// Copies each row's sums, `[class]`, to the beginning of its row in `out`, `[row][number]` with `width` numbers per row. The
    /// sums are in `values`, `[class][row]` with `padded_rows` sums per class.
    fn write_rows(&self, width: usize, out: &mut [f64]) {
        // A few classes at a time, so that neither side leaves the cache: 40,000 rows of 100 classes take 20 ms to score,
        // and 42 ms class by class with 32 rows. Each group of eight classes has their sums, `[class][row]`.
        for (class_group, sums) in self.values.chunks(8 * self.padded_rows).enumerate() {
            let n_classes = sums.len() / self.padded_rows; // in the group
            for (row, out) in out.chunks_mut(width).enumerate() {
                let out = &mut out[8 * class_group..8 * class_group + n_classes];
                let sums = sums[row..].iter().step_by(self.padded_rows); // of the row, [class]
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out = *sum);
            }
        }
    }

    /// The highest sum of each row, and the first class that has it; elements beyond the rows have no meaning.
    fn best(&self) -> ([f64; ROWS], [i32; ROWS]) {
        let mut highest = [f64::NEG_INFINITY; ROWS]; // of each row, the highest sum so far
        let mut best = [0_i32; ROWS]; // of each row, the first class that has it
        for (class, sums) in (0..).zip(self.classes()) {
            // A class has a sum for each row.
            for ((&sum, highest), best) in sums.iter().zip(&mut highest).zip(&mut best) {
                // Selections instead of a branch, so that the loop is vectorized.
                *best = if sum > *highest { class } else { *best };
                *highest = if sum > *highest { sum } else { *highest };
            }
        }
        (highest, best)
    }

    /// The highest sum of each row; elements beyond the rows have no meaning.
    fn highest(&self) -> [f64; ROWS] {
        self.best().0
    }

    /// Replaces each row's sums, log joint probabilities, with the posteriors: their exponentials, scaled so that they add up to
    /// 1. `highest` is each row's highest sum.
    fn posterior(&mut self, highest: &[f64; ROWS]) {
        let n_rows = self.rows.len();
        let mut totals = [0.0; ROWS]; // of each row, the sum of the exponentials over the classes
        for sums in self.classes_mut() {
            let rows = sums[..n_rows].iter_mut().zip(highest).zip(&mut totals);
            wide!(for ((sum, highest), total) in rows {
                *sum = exp(*sum - highest);
                *total += *sum;
            });
        }
        for sums in self.classes_mut() {
            sums[..n_rows].iter_mut().zip(&totals).for_each(|(sum, total)| *sum /= total);
        }
    }

    /// Replaces each row's sums, log joint probabilities, with the log posteriors, computed without underflow. `highest` is each
    /// row's highest sum.
    fn log_posterior(&mut self, highest: &[f64; ROWS]) {
        let n_rows = self.rows.len();
        // Of each row the sum of the exponentials over the classes, then its logarithm.
        let mut totals = [0.0; ROWS];
        for sums in self.classes() {
            let rows = sums[..n_rows].iter().zip(highest).zip(&mut totals);
            wide!(for ((sum, highest), total) in rows {
                *total += exp(sum - highest);
            });
        }
        totals[..n_rows].iter_mut().for_each(|total| *total = total.ln());
        // The highest goes first: added to the logarithm it would swallow it where sums are large.
        for sums in self.classes_mut() {
            for ((sum, highest), log_total) in sums[..n_rows].iter_mut().zip(highest).zip(&totals) {
                *sum = (*sum - highest) - log_total;
            }
        }
    }
}
