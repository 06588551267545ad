"""Weighed words, and columns that are scored by their family: as parameters that score and explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.bags.bag_of_words import bag_of_words
from banbury.families.bags.lexicon import Bags, Lexicon
from banbury.families.bags.weighed_texts import weigh_texts
from banbury.families.evidence import Comparison, InformativeValues, Term
from banbury.families.family import (
    ColumnReader,
    Curve,
    Feature,
    Features,
    LinearWords,
    Parameters,
    bad_value,
    line_by_line,
)
from banbury.sums import Keys
from banbury.threads import n_threads
from banbury.weighing.corrections import Reals32
from banbury.weighing.texts import LearnedTexts, WordEvidence


def text_parameters(
    feature: Feature, sums: Any, learned: LearnedTexts, classes: list[int], weight: float
) -> Parameters:
    """Returns the parameters that score a text column's words: their evidence in the tally now, plus the learned
    corrections, times the weight.

    Args:
        feature: The text column.
        sums: What the tally has counted of it.
        learned: How words count, and the corrections.
        classes: The number of each of the tally's classes among the classes that were learned.
        weight: The weight of the column.
    """
    lexicon = Lexicon.of(feature, sums)  # the words that are used now
    evidence = WordEvidence.of_classes(lexicon.documents(), lexicon.used.texts)
    setting = learned.setting  # how words count
    table = np.float32(setting.evidence_weight) * evidence.log_ratios  # words × classes
    table[lexicon.positions(learned.words)] += learned.corrections[:-1][:, classes]
    table *= np.float32(weight)
    scale = evidence.scale(setting.idf_power)  # the inverse document frequency of each word
    return word_scores(lexicon, sums, scale, table, setting.use_counts, evidence.documents, evidence.texts)


def word_scores(
    lexicon: Lexicon, sums: Any, scale: Reals32, table: Reals32, use_counts: bool, documents: Real, n_texts: Real
) -> Parameters:
    """Returns parameters that add up the scores of a lexicon's words.

    Args:
        lexicon: The words.
        sums: What the tally has counted of the column.
        scale: The inverse document frequency of each word.
        table: The score of each word (words × classes).
        use_counts: Whether the root of a word's count matters, or only its presence.
        documents: The number of texts with each word (words × classes).
        n_texts: The number of texts of each class.
    """
    if lexicon.feature.reads_text:
        return weigh_texts(lexicon, scale, table, use_counts, documents, n_texts)
    return WordColumnScores(Features.of([lexicon.feature]), sums, lexicon, scale, use_counts, table)


@dataclass(frozen=True)
class WordColumnScores(Parameters):
    """The scores of columns of counts, whose names are words. They draw no rows: a model uses its plain parameters for
    that.

    Attributes:
        sums: The counts of the tally.
        lexicon: The words, which are columns here.
        scale: The inverse document frequency of each word.
        use_counts: Whether the root of a count matters, or only its presence.
        table: The score of each word (words × classes), which is multiplied by the value of the word in the row.
    """

    features: Features
    sums: Any
    lexicon: Lexicon
    scale: Reals32
    use_counts: bool
    table: Reals32

    def _bags(self, rows: ColumnReader) -> tuple[Bags, Real, int]:
        """Returns the words of the rows with their counts, the value of each word in its row (row by row), and the
        number of threads.
        """
        threads = n_threads(None)
        row_words = self.lexicon.bags(rows, self.sums, threads)
        return row_words, row_words.values(self.use_counts, self.scale, threads), threads

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns one part for the kernel: the scores of these rows (rows × classes), which it adds to those of other
        columns.
        """
        row_words, word_values, threads = self._bags(rows)  # the words of each row, and the value of each
        scores = row_words.scores(word_values, self.table, threads)
        return [line_by_line(np.arange(rows.n_rows), scores)]

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """Returns a term for each column that is not zero in the first row: its name, count and score of each class.
        ``log_likelihoods`` is not needed here.
        """
        row_words, word_values, _ = self._bags(rows)  # the words of each row, and the value of each
        columns = row_words.words[: row_words.offsets[1]]  # the numbers of those of the first row
        names = self.lexicon.words
        term_scores = word_values[: len(columns), None] * self.table[columns]  # columns × classes
        column_terms = zip(columns.tolist(), row_words.times.tolist(), term_scores, strict=False)
        return [Term(names[column], times, scores) for column, times, scores in column_terms]

    def informative_values(self, compared: Comparison) -> None:
        """Returns None: no single value of such columns can be named as informative. ``compared`` is not used."""
        return None

    def linear(self) -> LinearWords:
        """Returns the columns with their weights (columns × classes); counts are divided by the length of the row."""
        plain_reading = bag_of_words(self.lexicon.feature).reading  # how the column is read, by setting
        reading = {**plain_reading, "count": "root" if self.use_counts else "presence", "length": "known"}
        weights = self.table.astype(np.float64)
        scale = self.scale.astype(np.float64)
        return LinearWords(self.lexicon.words, weights, np.zeros(weights.shape[1]), reading, scale)


@dataclass(frozen=True)
class ScaledParameters(Parameters):
    """The parameters of a column that its family scores, multiplied by the column's weight."""

    features: Features
    own_parameters: Parameters  # those that the family estimated
    weight: float
    n_classes: int

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns one part for the kernel: the weighed scores of these rows (rows × classes), which it adds to those of
        other columns.
        """
        threads = n_threads(None)
        own_parts = self.own_parameters.parts(rows)  # what the family gives the kernel
        try:
            scores = _core.score(rows.n_rows, np.zeros(self.n_classes), own_parts, "log_joint", threads)[0]
        except _core.BadValue as bad:
            raise bad_value(bad, self.features.inputs, rows) from None  # type: ignore[arg-type]
        scores = self.weight * scores if self.weight else np.zeros_like(scores)  # 0 times −∞ would be NaN
        return [line_by_line(np.arange(rows.n_rows), scores)]

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Draws a value for each of these class numbers with ``rng``, as the family does; returns one array per
        column.
        """
        return self.own_parameters.sample(classes, rng)

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_] | None:
        """Returns whether each row has a value that no counted row had (rows × 1); None if the family does not know."""
        return self.own_parameters.never_seen(rows)

    def informative_values(self, compared: Comparison) -> Iterator[InformativeValues] | None:
        """Yields the values that can tell classes apart, as the family does; None if it has none. ``compared`` says
        which classes are compared.
        """
        return self.own_parameters.informative_values(compared)

    def categories(self, f: int, column: str) -> Keys | None:
        """Returns the named values of the column with this name, or None. ``f`` is 0, the number of the only feature."""
        return self.own_parameters.categories(f, column)

    def cuts(self, column: str | None) -> list[float] | None:
        """Returns the cuts of the column in order, or None. ``column`` is its name, which is not needed if the feature is
        no block.
        """
        return self.own_parameters.cuts(column)

    def curve(self, f: int) -> Curve | None:
        """Returns the curve of the column's log density, multiplied by its weight, or None. ``f`` is 0, the number of
        the only feature.
        """
        curve = self.own_parameters.curve(f)
        return None if curve is None else curve.times(self.weight)
