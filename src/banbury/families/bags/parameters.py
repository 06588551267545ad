"""The parameters of a bag of words: the scores of every word in each class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags import event_models
from banbury.families.bags.event_models import CERTAIN, BernoulliGrowth, WordScores
from banbury.families.bags.vocabulary import CELLS, Ids, Vocabulary, WordClassPairs, every_word, pairs_of
from banbury.families.dirichlet import sum_slices
from banbury.families.evidence import Comparison, InformativeValues, Term
from banbury.families.family import (
    Choice,
    ColumnReader,
    Features,
    How,
    LinearWords,
    Parameters,
    line_by_line,
    rows_by_class,
)
from banbury.sums import Words
from banbury.threads import n_threads

COMMON_SHARE = 0.25  # a word is common if this share of the counted texts have it
MOST_WEIGHTS = 1 << 20  # columns × classes of the matrix that rows without gaps are multiplied with
MOST_ROUGH_WEIGHTS = 1 << 23  # words × classes that are kept in single precision too
CELLS_PER_COLUMN = 4  # with so many cells to score, making that copy pays
MOST_DRAWN_CELLS = 1 << 26  # words × classes whose probabilities are in memory together while rows are drawn


class RowWord(NamedTuple):
    """A known word of one row.

    Args:
        word_id: Its id in the table of words.
        feature: The column that the explanation names.
        value: What the explanation calls it: the word, or the number in the column.
        amount: How much it counts in the row, for example damped.
        times: How often a word of a text occurs.
        positions: Where it occurs, as (start, end) in the text.
    """

    word_id: int
    feature: str
    value: Any
    amount: float
    times: int = 1
    positions: tuple[tuple[int, int], ...] = ()


class ClassUrn(NamedTuple):
    """What rows of one class are drawn from."""

    rows: Int  # the rows to draw
    share: Real  # P(word | class) of each word; under a Bernoulli model, P(word in row | class)
    length: float  # the mean number of words in a row
    polya: float | None  # the number of balls in Pólya's urn, if words are drawn from one


@dataclass(eq=False)
class BagParameters(Parameters):
    """What every word of a text column, or every column of a matrix of counts, says of each class. Rows change in
    place.

    Args:
        features: The only feature.
        choice: How the parameters were estimated.
        table: The counted words. ``scores`` has a row with a number for every class for each of them.
        word_ids: The ids of the model's words in ``table``; None if it uses all of them.
        n_words: The number of the model's words.
        scores: The row of each word, and numbers that all words of a class share.
        pseudo_count: What was added to the counts if the row of a word depends on its own counts alone, else None.
        pending: While it is a number, rows are made when a word is asked for, and all rows as soon as more input than this (bytes
            of text, or cells of a matrix) has been scored; None if all rows are made.
        growth: The counts of a Bernoulli model that follows them; None for other models.
    """

    features: Features
    choice: Choice
    table: _core.Words
    word_ids: Ids | None
    n_words: int
    scores: WordScores
    pseudo_count: float | Real | None
    pending: float | None = None
    growth: BernoulliGrowth | None = None

    @property
    def family(self) -> Any:
        """The bag of words with its settings."""
        return self.features[0].family

    # Scoring

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the part that scores these rows: log P(words of the row | class). A table of its own is needed if
        some word is certain in a class.
        """
        return [self._part(rows) if self.scores.certain is None else self._part_without_smoothing(rows)]

    def _part(self, rows: ColumnReader) -> _core.Part:
        """Returns the part that scores these rows, after making the rows of scores that they need. A small matrix has a
        part of its own. ``self.table`` has the counted words.
        """
        scores = self.scores
        kernel_input = self.family.kernel_input(rows, self.features[0])  # texts, or a matrix of counts
        self._make_rows_of(kernel_input)
        rough = None  # the scores of all words in single precision
        if isinstance(kernel_input, _core.Matrix):
            if self._is_small and self._is_finite:
                return _core.LinearPart(kernel_input, self.weights, scores.constant)
            rough = self._rough_of(kernel_input)
        base = scores.base if scores.polya is None else None  # an urn has its balls instead
        # The words, the weights of each (words × classes), and what is added per word and per row (classes each).
        word_rows = self.table, scores.weights, base, scores.constant
        return _core.WordsPart(kernel_input, self.family.tokeniser, *word_rows, self.counting, scores.polya, rough)

    @property
    def counting(self) -> bool | str:
        """How the kernel counts a word: True for once however often it occurs, False for its occurrences, or a name."""
        return bool(self.family.once)

    def _rough_of(self, matrix: _core.Matrix) -> _core.Rough | None:
        """Returns the rows of all words in single precision if they exist already, or if the matrix to score has so
        many cells that making them pays; else None.
        """
        # Some rows are not made yet, or the matrix is not sparse.
        if self.pending is not None or matrix.places is None:
            return None
        if self.n_words * len(self.scores.base) > MOST_ROUGH_WEIGHTS:  # words × classes
            return None
        _, column_of_cell = matrix.places
        pays = len(column_of_cell) >= CELLS_PER_COLUMN * self.n_words
        return self._rough if pays or "_rough" in self.__dict__ else None

    @cached_property
    def _rough(self) -> _core.Rough | None:
        """The scores of all words in single precision, as the kernel takes them, which is enough for a first look; None
        if there are many, or one is not finite.
        """
        # ``base`` is added to the score of every word (classes).
        return self.scores.weights.rough(self.table, self.scores.base, self.n_words, n_threads(None))

    @property
    def _is_small(self) -> bool:
        """Whether the weights of all words and classes are few enough to be one matrix; ``self.scores.base`` has a
        number per class.
        """
        return fits_in_matrix(self.n_words * len(self.scores.base))

    @cached_property
    def _is_finite(self) -> bool:
        """Whether no word makes a class impossible (all weights are finite)."""
        return bool(np.isfinite(self.weights).all())

    @cached_property
    def weights(self) -> Real:
        """What one occurrence of each word adds to the score of each class (words × classes)."""
        weights, scale = self._weights_and_scale()  # words × classes, and of each word
        return np.asarray(scale[:, None] * weights)

    def _part_without_smoothing(self, rows: ColumnReader) -> _core.Part:
        """Returns the part that scores these rows from a table of log-likelihoods, if some word is in every row of some
        class.

        A row without that word is impossible in the class, which no sum can say. This happens to Bernoulli models under
        "mle" and "map".
        """
        # The words of row i are ids[offsets[i]:offsets[i + 1]].
        offsets, ids, _ = self.family.bags(rows, self.features[0], Words(self.table), threads=1)
        n_rows = len(offsets) - 1
        log_likelihoods = np.zeros((n_rows, len(self.scores.base)))  # rows × classes
        start = 0
        while start < n_rows:  # rows from ``start`` up to ``stop`` are scored together
            last_word = int(offsets[start]) + CELLS // log_likelihoods.shape[1]  # its place in ``ids``
            stop = max(start + 1, int(np.searchsorted(offsets, last_word, side="right")) - 1)
            some_ids = np.asarray(ids[offsets[start] : offsets[stop]]).astype(np.uint32)
            some_offsets = np.asarray(offsets[start : stop + 1]) - offsets[start]
            log_likelihoods[start:stop] = self._score_without_smoothing(some_offsets, some_ids)
            start = stop
        missing = self.family.missing_rows(rows, self.features[0])  # whether each row has no text
        return line_by_line(np.where(missing, -1, np.arange(n_rows)), log_likelihoods)

    def _score_without_smoothing(self, offsets: Int, ids: Ids) -> Real:
        """Returns log-likelihoods (rows × classes). The words of row i are ``ids[offsets[i]:offsets[i + 1]]``. A word
        may be impossible in a class (−inf), or certain (CERTAIN): a row without it is impossible.
        ``self.scores.certain`` is the number of certain words of each class.
        """
        assert self.scores.certain is not None
        _, word_rows, _ = self.scores.weights.rows(ids)  # the scores of each word of each row (words × classes)
        is_impossible = np.isneginf(word_rows)  # words × classes, as ``is_certain``
        is_certain = word_rows == CERTAIN
        # Rows × classes: whether the row has an impossible word, or lacks a certain one.
        is_ruled_out = sum_slices(is_impossible.astype(np.float64), offsets) > 0
        is_ruled_out |= sum_slices(is_certain.astype(np.float64), offsets) < self.scores.certain
        finite_rows = np.where(is_certain | is_impossible, 0.0, word_rows)
        # ``constant`` is what every row scores (classes).
        return np.where(is_ruled_out, -np.inf, self.scores.constant + sum_slices(finite_rows, offsets))

    # Making rows

    def words_in_any_order(self) -> Vocabulary:
        """Returns the words of the model in the order that takes least time; ``self.word_ids`` is None if they are all
        words of ``self.table``.
        """
        return every_word(self.table, by_name=False) if self.word_ids is None else self.vocabulary

    def make_all_rows(self) -> None:
        """Makes the rows of scores of all words, in place, if some are pending."""
        if self.pending is not None:
            for pairs in self.words_in_any_order():
                self._set_rows(pairs)
            self.pending = None

    def _make_rows_of(self, kernel_input: Any) -> None:
        """Makes the rows of scores of the words in texts or a matrix that are about to be scored (``kernel_input``), in
        place; all rows once more input was scored than ``self.pending`` says. Does nothing if all are made.
        """
        if self.pending is None:
            return
        self.pending -= _size(kernel_input)  # bytes of text, or cells of a matrix, until all rows are made
        if self.pending < 0:
            self.make_all_rows()
        elif self.word_ids is None:  # texts: the ids of their tokens, −1 if unknown
            self._make_rows(self.table.encode(self.family.tokeniser, kernel_input, 1)[1])
        else:  # a sparse matrix: the ids of the columns of its cells
            self._make_rows(self.word_ids[kernel_input.places[1]])

    def _make_rows(self, ids: NDArray[Any]) -> None:
        """Makes the rows of scores of these words (``ids`` in ``self.table``), in place, if they are pending; −1 is no
        word.
        """
        if self.pending is not None:
            self._set_rows(pairs_of(self.table, np.unique(ids[ids >= 0]).astype(np.uint32)))

    def _set_rows(self, pairs: WordClassPairs) -> None:
        """Makes the rows of scores of some words (``pairs`` of words and classes), in place, from their own counts in
        each class. A word without occurrences has no row, but a column of a matrix has.
        """
        family = self.family
        pseudo_count: Any = self.pseudo_count  # what is added to every count
        if family.model == "bernoulli":
            n_texts = self.table.texts().value  # of each class
            cells = pairs.cells(pairs.occurrences, len(n_texts))  # texts with each word (words × classes)
            presence_rows = event_models.presence(cells, n_texts, pseudo_count)  # log-odds (words × classes)
            event_models.set_cells(self.scores.weights, pairs.ids, presence_rows)
        else:
            if not family.block:  # a text; a block is a matrix
                pairs = pairs.only(pairs.sizes > 0)
            counts = pairs.documents if family.once else pairs.occurrences  # of each pair of a word and a class
            event_models.set_rows(self.scores, pairs, counts, pseudo_count, family.model)

    # Following the counts

    def follow(self, sums: Words) -> bool:
        """Updates in place the rows of scores of the words whose counts changed, so that ``sums`` are followed; returns
        False if the model has to be estimated anew.
        """
        family = self.family
        table = sums.table  # the new counts; ``self.table`` has the old ones
        pseudo_count = self.pseudo_count  # None: a word's row depends on more than its own counts
        # The number of words, or of word–text pairs.
        counts_per_class = (table.documents() if family.once else table.occurrences()).value
        if pseudo_count is None or len(counts_per_class) != len(self.scores.base):
            return False
        if family.model == "log_odds" and self.scores.margin != event_models.log_odds_margin(table.texts().value):
            return False
        if (ids := table.changed_since(self.table)) is None:  # words whose counts changed; None: another table
            return False
        self.table = table
        if family.model == "bernoulli":
            self._follow_bernoulli(pairs_of(table, ids), float(pseudo_count))
        elif family.block:
            self._set_rows(pairs_of(table, ids))
        else:
            self._follow_words(ids, float(pseudo_count))
            self.n_words = table.n_words
        for name in ("weights", "_is_finite", "_rough"):  # cached properties that depend on the rows
            self.__dict__.pop(name, None)
        event_models.change_base(self.scores, counts_per_class, self.n_words, pseudo_count, family.model)
        return True

    def _follow_words(self, ids: Ids, pseudo_count: float) -> None:
        """Updates in place the rows of scores of words (by id) whose counts changed, and removes the rows of words that
        no text has any more. ``pseudo_count`` is what was added to every count.
        """
        family = self.family
        weights = self.scores.weights  # the rows of scores
        if self.scores.polya is None and family.model != "log_odds":
            logs = event_models.logs_of_counts(pseudo_count, family.model)
            # The kernel updates the rows that exist, and returns the words that it leaves over.
            ids = weights.follow(self.table, ids, family.once, family.model == "complement", logs)
        if len(ids):
            pairs = pairs_of(self.table, ids)
            weights.skip(pairs.ids[pairs.sizes == 0])  # words that are in no class
            self._set_rows(pairs)

    def _follow_bernoulli(self, pairs: WordClassPairs, pseudo_count: float) -> None:
        """Updates in place the constant of a Bernoulli model after the counts of some words (``pairs``) changed. Every
        row depends on the number of texts too, so all become pending. ``pseudo_count`` is what was added to every
        count, and ``self.table`` has the new counts.
        """
        n_texts = self.table.texts().value  # of each class
        self.family.check_shares(pairs, n_texts)
        # ``growth`` has the counts that the constant is computed from; ``vocabulary`` are the model's words.
        if self.growth is None:
            self.growth = BernoulliGrowth(self.vocabulary)
            self.scores.constant, _ = self.growth.like.absent(self.n_words, self.growth.texts, pseudo_count)
        self.scores.constant = self.growth.follow(pairs, n_texts, pseudo_count, self.scores.constant)
        self.pending = self.n_words / 4.0  # bytes of text, or cells, until all rows are made

    # Explaining

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's words in order: columns in theirs, words of texts by name. ``word_ids`` are those in ``table``,
        None for all of its words.
        """
        if self.word_ids is None:
            return every_word(self.table, by_name=True)
        return Vocabulary(self.table, self.word_ids, self.family.block)

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """Explains the first row: returns a term for each known word, or one for a missing text, whose
        ``log_likelihoods`` are features × classes.
        """
        words = self.family.words_of_row(rows, self.features[0], self.table)
        return super().terms(rows, log_likelihoods) if words is None else self.evidence(words)

    def evidence(self, words: Sequence[RowWord]) -> list[Term]:
        """Returns a term for each word of a row that the model knows: what it says of every class, in order. They add
        up to the log-likelihood of the row.

        Under a Bernoulli model the last term is what all absent words say together. Under Pólya's urn the length of the
        text is shared out equally among its tokens.
        """
        scores = self.scores  # of all words of the model
        ids = np.array([word.word_id for word in words], dtype=np.uint32)  # of the row's words
        self._make_rows(ids)
        # Whether the model has each word, its numbers for the classes (words × classes), and what multiplies them.
        has_row, word_rows, scale = scores.weights.rows(ids)
        words = list(compress(words, has_row.tolist()))
        word_rows = word_rows[has_row]
        scale = scale[has_row]
        counts = self._counts_of(words, scale)  # how much each word counts
        remaining = scores.constant  # what no word says (classes)
        if scores.polya is not None:
            log_likelihoods = _score_urn(word_rows, counts.astype(np.int64), scores.polya)  # words × classes
        else:
            is_certain = word_rows == CERTAIN  # words × classes
            if scores.certain is not None:  # the number of certain words of each class
                remaining = np.where(is_certain.sum(axis=0) < scores.certain, -np.inf, remaining)
            log_likelihoods = (counts * scale)[:, None] * np.where(is_certain, 0.0, word_rows + scores.base)
        terms = [
            Term(
                word.feature,
                word.value,
                log_likelihood,
                seen=True,
                times=word.times,
                positions=word.positions,
                common=is_common,
            )
            for word, log_likelihood, is_common in zip(
                words, log_likelihoods, self._are_common(ids[has_row]), strict=True
            )
        ]
        return [*terms, Term(self.features.names[0], self.family.absent, remaining)] if remaining.any() else terms

    def _counts_of(self, words: Sequence[RowWord], scale: Real) -> Real:
        """Returns how much each word of a row counts (words), before it is multiplied by its ``scale``."""
        return np.array([word.amount for word in words], dtype=np.float64)

    def _are_common(self, ids: Ids) -> list[bool]:
        """Returns for each of these words (``ids`` in ``self.table``) whether many of the counted texts have it; False
        for columns of a matrix.
        """
        if self.family.block:
            return [False] * len(ids)
        pairs = pairs_of(self.table, ids)
        fewest_texts = COMMON_SHARE * float(self.table.texts().value.sum())
        return [bool(n_texts >= fewest_texts) for n_texts in pairs.per_word(pairs.documents).tolist()]

    def unknown_words(self, rows: ColumnReader) -> tuple[str | None, list[str]]:
        """Returns the text of the first row and its words that have no row in the model, each once; None and no words
        if the row has no text.
        """
        family = self.family
        first_text = family.first_text(rows, self.features.names[0])
        if first_text is None:
            return None, []
        text_for_kernel, tokens = family.split_text(first_text)  # as the kernels take it, and its tokens in order
        _, ids = self.table.encode(family.tokeniser, text_for_kernel, 1)  # of each token, −1 if unknown; on one thread
        self._make_rows(ids)
        # Whether the model has a row of scores for each token.
        has_row, _, _ = self.scores.weights.rows(np.maximum(ids, 0).astype(np.uint32))
        is_unknown = (ids < 0) | ~has_row
        return first_text, list(dict.fromkeys(compress(tokens, is_unknown.tolist())))

    def log_coefficient(self, rows: ColumnReader) -> Real:
        """Returns for each text the log multinomial coefficient (rows): in how many orders its known words can stand.
        Raises for models that give texts no probability.
        """
        family = self.family
        if family.weighs or not (family.model == "bernoulli" or family.counts_tokens):
            raise errors.bad_setting("the text's family", family, "a model that gives texts a probability")
        if family.model == "bernoulli":
            return np.zeros(rows.n_rows)
        # The distinct words of row i, and how often it has each, are offsets[i] to offsets[i + 1] of the other arrays.
        offsets, ids, n_times = self.family.bags(rows, self.features[0], Words(self.table), threads=1)
        self._make_rows(ids)
        has_row, _, _ = self.scores.weights.rows(np.asarray(ids).astype(np.uint32))  # whether the model has each word
        n_times = np.where(has_row, 1 if family.once else n_times, 0)
        # Of each text; and log n! by n.
        n_tokens = sum_slices(n_times[:, None].astype(np.float64), offsets)[:, 0].astype(np.int64)
        log_factorials = np.array([math.lgamma(n + 1) for n in range(int(n_tokens.max(initial=0)) + 1)])
        return np.asarray(log_factorials[n_tokens] - sum_slices(log_factorials[n_times][:, None], offsets)[:, 0])

    def linear(self) -> LinearWords:
        """Returns the words in order with what they weigh.

        Counts are those of the text's words as they are counted: damped, or 1 for presence and Bernoulli. A weight of
        −inf means that a class is impossible, so add up only the words that a text has.
        """
        words, weights, scale = self._every_word()  # words × classes, and a number for each word
        # ``constant`` is what every row scores (classes).
        return LinearWords(words, scale[:, None] * weights, self.scores.constant, self.family.reading)

    def _every_word(self) -> tuple[list[str], Real, Real]:
        """Returns the model's words in order, their weights (words × classes) and their scales (words); raises if
        scores are not linear.
        """
        if self.scores.polya is not None or self.scores.certain is not None:
            raise errors.bad_setting("how", self.choice.how, "a different setting for a linear form, such as 'mean'")
        event_models.check_size(self.vocabulary, self.features.names[0], "the linear form")
        return self.family.names(self.features[0], self.vocabulary), *self._weights_and_scale()

    def _weights_and_scale(self) -> tuple[Real, Real]:
        """Returns the weights of the model's words in order (words × classes) and their scales (words), which multiply
        weights.
        """
        self.make_all_rows()
        # Whether the model has a row for each word, the row (words × classes), and what multiplies it.
        has_row, word_rows, scale = self.scores.weights.rows(self.vocabulary.ids)
        return np.where((has_row & (scale > 0))[:, None], word_rows + self.scores.base, 0.0), scale

    def informative_values(self, compared: Comparison) -> Iterator[InformativeValues] | None:
        """Yields words that may tell classes apart, some at a time; ``compared`` is not needed."""
        return (
            InformativeValues(
                share, had, partial(self._column_and_value, ids), kind="interval" if self.family.block else "word"
            )
            for ids, share, had in self.values()
        )

    def _column_and_value(self, ids: Ids, index: int) -> tuple[str, str]:
        """Returns the column and the value of the word with the id ``ids[index]``; "occurs" if the word is a column
        itself.
        """
        column, word = self.family.word(self.features[0], self.table.words(ids[index : index + 1])[0])
        return column, "occurs" if word is None else word

    def values(self) -> Iterator[tuple[Ids, Real, Real]]:
        """Yields some words at a time: their ids, P(word | class), and the share of a class's texts that have them.

        Both are words × classes. Under Bernoulli the probability is that a text has the word. Complement and log-odds
        give no probabilities, so those of the multinomial model stand in. Words that weigh nothing are left out.
        """
        family = self.family
        words = self.vocabulary  # those of the model
        scores = self.scores  # or those of the multinomial model
        self.make_all_rows()
        if family.weighs:
            how: How = "mean" if self.choice.how == "gibbs" else self.choice.how
            weighed_words = event_models.WeighedWords(words, once=False, idf=bool(family.idf))
            pseudo_count = event_models.pseudo_count("multinomial", how, family.alpha_of(self.choice, words))
            scores = event_models.count_scores("multinomial", weighed_words, pseudo_count)
        n_texts_or_1 = np.where(words.texts > 0, words.texts, 1.0)  # of each class; 1: it has none
        for pairs in words:
            # Whether there is a row for each word, its numbers (words × classes), and what multiplies them.
            has_row, word_rows, scale = scores.weights.rows(pairs.ids)
            has_weight = has_row & (scale > 0)
            counted_pairs = pairs.only(has_weight)  # of the words that weigh something
            share = self._share(word_rows[has_weight], scores)  # P(word | class)
            yield counted_pairs.ids, share, counted_pairs.cells(counted_pairs.documents, words.n_classes) / n_texts_or_1

    def _share(self, word_rows: Real, scores: WordScores) -> Real:
        """Returns the probabilities (words × classes) that the rows of some words in ``scores`` stand for
        (``word_rows``, words × classes). ``polya`` has the balls in each class's urn, ``base`` what is added to the
        score of every word.
        """
        if self.family.model == "bernoulli":
            with np.errstate(over="ignore"):
                return 1.0 / (1.0 + np.exp(-word_rows))  # CERTAIN is 1, −inf is 0
        return word_rows / scores.polya if scores.polya is not None else np.exp(word_rows + scores.base)

    # Drawing

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Draws rows of these classes (class numbers); the length of a row is a Poisson variate with the mean of its
        class. Returns one array per column.
        """
        family = self.family
        if family.weighs:
            expected = f"a model that can generate {'rows' if family.block else 'texts'}, such as 'multinomial'"
            raise errors.bad_setting("model", family.model, expected)
        words = self.vocabulary  # those of the model
        names = family.names(self.features[0], words)  # of the words
        return family.draw(names, self._urns(classes, words), len(classes), rng)  # type: ignore[no-any-return]

    def _urns(self, classes: Int, words: Vocabulary) -> Iterator[ClassUrn]:
        """Yields what the rows of each class are drawn from, class by class, for the classes that some row has.
        ``classes`` has the class number of each row to draw.
        """
        lengths = self._mean_lengths(words)  # of each class
        rows_of_classes = rows_by_class(classes, words.n_classes)  # by class, the rows to draw
        drawn_classes = [c for c, rows in enumerate(rows_of_classes) if len(rows)] if words.n_words else []
        polya = self.scores.polya  # the balls in the urn of each class; None: there are no urns
        n_together = max(1, MOST_DRAWN_CELLS // max(words.n_words, 1))  # classes whose scores are in memory together
        for start in range(0, len(drawn_classes), n_together):
            some_classes = drawn_classes[start : start + n_together]
            for c, class_scores in zip(some_classes, self._rows_of_classes(words, some_classes).T, strict=True):
                share = self._drawing_share(class_scores)  # the probability of each word
                yield ClassUrn(rows_of_classes[c], share, lengths[c], None if polya is None else float(polya[c]))

    def _drawing_share(self, class_scores: Real) -> Real:
        """Returns the probability of each word in one class (words) from the scores of all words in that class (words)."""
        if self.family.model == "bernoulli":
            return self._share(class_scores, self.scores)
        has_urn = self.scores.polya is not None  # whether words are drawn from Pólya's urn
        # In proportion to the probabilities; in an urn, balls.
        weights = class_scores if has_urn else np.exp(class_scores - max(float(class_scores.max()), -1e300))
        return weights / weights.sum() if weights.any() else np.full(len(weights), 1.0 / len(weights))

    def _mean_lengths(self, words: Vocabulary) -> Real:
        """Returns the mean number of words in a row of each class (classes); that of all rows for a class without rows.
        ``words`` are those of the model.
        """
        word_sums = np.zeros(words.n_classes)  # the number of words in all rows of each class
        for pairs in words:
            counts = pairs.documents if self.family.draws_documents else pairs.occurrences
            word_sums += pairs.per_class(counts, len(word_sums))
        n_texts = words.texts  # of each class
        mean_of_all = word_sums.sum() / max(float(n_texts.sum()), 1e-300)
        return np.where(n_texts > 0, word_sums / np.where(n_texts > 0, n_texts, 1.0), mean_of_all)

    def _rows_of_classes(self, words: Vocabulary, classes: list[int]) -> Real:
        """Returns the scores of all words in some of the classes (words × classes); words without a row are impossible."""
        self.make_all_rows()
        scores = np.empty((words.n_words, len(classes)))
        impossible = -np.inf if self.scores.polya is None else 0.0  # the score of a word without a row
        n_together = max(1, CELLS // words.n_classes)
        for start in range(0, words.n_words, n_together):
            chunk = slice(start, start + n_together)
            # Whether the model has a row for each word, and the row (words × all classes).
            has_row, word_rows, _ = self.scores.weights.rows(words.ids[chunk])
            scores[chunk] = np.where(has_row[:, None], word_rows[:, classes], impossible)
        return scores


def fits_in_matrix(n_cells: int) -> bool:
    """Whether the weights of words are kept as a matrix, because ``n_cells``, the number of words times that of
    classes, is small.
    """
    return n_cells <= MOST_WEIGHTS


def texts_and_unknown_words(groups: Iterable[Parameters], rows: ColumnReader) -> tuple[dict[str, str], list[str]]:
    """Returns the texts of the first row by feature name, and those of their words that the model does not know, each
    once per feature. ``groups`` are the parameters of the model.
    """
    texts = dict[str, str]()  # by the feature's name
    unknown_words = list[str]()
    for group in groups:
        if isinstance(group, BagParameters) and not group.family.block:
            text, words = group.unknown_words(rows)
            if text is not None:
                texts[group.features.names[0]] = text
            unknown_words += words
    return texts, unknown_words


def check_rows(groups: Iterable[Parameters], rows: ColumnReader) -> None:
    """Raises for the first count that a model cannot score because it is negative or too large. ``groups`` are the
    parameters of the model.
    """
    for group in groups:
        if isinstance(group, BagParameters):
            group.family.check_rows(rows, group.features[0])


def log_orders(parameters: Parameters, rows: ColumnReader) -> Any:
    """Returns the log multinomial coefficient of each row's text (rows), which scores omit because it is the same in
    every class; 0 for other parameters.
    """
    if isinstance(parameters, BagParameters) and not parameters.family.block:
        return parameters.log_coefficient(rows)
    return 0.0


def lost_words(parameters: Parameters, sums: Any) -> int:
    """Returns how many words were counted (``sums`` has them) if the model uses none of them, else 0."""
    return sums.table.n_words if isinstance(parameters, BagParameters) and not parameters.n_words else 0


def _size(kernel_input: Any) -> float:
    """Returns about how many bytes the texts to score (``kernel_input``) have, or how many cells the matrix; infinite
    if looking them up would not pay.
    """
    if isinstance(kernel_input, list):
        return sum(len(text) for text in kernel_input if isinstance(text, str))
    if isinstance(kernel_input, _core.ArrowTexts):
        return len(kernel_input.data)
    if isinstance(kernel_input, _core.Matrix):
        return np.inf if kernel_input.places is None else len(kernel_input.places[1])
    return 8 * len(kernel_input.tokens) if isinstance(kernel_input, _core.TokenLists) else np.inf


def _score_urn(word_rows: Real, times: Int, polya: Real) -> Real:
    """Returns log-probabilities of words under Pólya's urn (words × classes): every token makes its word likelier from
    then on. ``word_rows`` has the balls of each word (words × classes), ``times`` says how often each word occurs, and
    ``polya`` has the balls in the urn of each class.
    """
    n_tokens = int(times.sum())
    # The logarithm of the product of the balls that are in the urn at each draw (classes).
    log_length_product = np.log(polya + np.arange(n_tokens)[:, None]).sum(axis=0)
    # Of each word: the same for its own balls (classes).
    log_products = [
        np.log(balls_of_word + np.arange(n)[:, None]).sum(axis=0)
        for balls_of_word, n in zip(word_rows, times.tolist(), strict=True)
    ]
    return np.array(log_products).reshape(word_rows.shape) - np.outer(times / max(n_tokens, 1), log_length_product)
