"""Weighed words, and columns that are scored by their family: as parameters that score and explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Bags, Lexicon
from banbury.families.bags.text_parameters import weigh_texts
from banbury.families.bags.words import word_family
from banbury.families.evidence import Comparison, TellingValues, Term
from banbury.families.family import ColumnReader, Curve, Feature, LinearWords, Parameters, bad_value, line_by_line
from banbury.sums import Keys
from banbury.threads import n_threads
from banbury.weighing.corrections import Reals32
from banbury.weighing.texts import LearnedTexts, WordEvidence


def text_parameters(
    feature: Feature,
    sums: Any,
    words: Sequence[str],
    learned: LearnedTexts,
    classes: list[int],
    weight: float,
) -> Parameters:
    """What words say now, with corrections of ``words``, all of which some text has."""
    lexicon = Lexicon.of(feature, sums)
    evidence = WordEvidence(lexicon.documents(), lexicon.used.texts)
    table = np.float32(learned.setting.evidence_weight) * evidence.says
    table[lexicon.places(words)] += learned.corrections[:-1][:, classes]
    table *= np.float32(weight)
    counted = evidence.documents, evidence.texts
    return word_scores(
        lexicon, sums, evidence.scale(learned.setting.idf_power), table, learned.setting.use_counts, *counted
    )


def word_scores(
    lexicon: Lexicon, sums: Any, scale: Reals32, table: Reals32, use_counts: bool, documents: Real, n_texts: Real
) -> Parameters:
    """Parameters that add up the scores of a lexicon's words, (words, classes); ``documents`` of each class have each word."""
    if lexicon.feature.reads_text:
        return weigh_texts(lexicon, scale, table, use_counts, documents, n_texts)
    return WordColumnScores((lexicon.feature,), sums, lexicon, scale, use_counts, table)


@dataclass(frozen=True)
class WordColumnScores(Parameters):
    """The scores of columns of occurrences, (columns, classes), each times what its count is of the row's length."""

    features: tuple[Feature, ...]
    sums: Any
    lexicon: Lexicon
    scale: Reals32
    use_counts: bool
    table: Reals32

    def select(self, index: Sequence[int]) -> Self:
        assert list(index) == [0]
        return self

    def _bags(self, rows: ColumnReader) -> tuple[Bags, Real, int]:
        threads = n_threads(None)
        bags = self.lexicon.bags(rows, self.sums, threads)
        return bags, bags.values(self.use_counts, self.scale, threads), threads

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        bags, values, threads = self._bags(rows)
        scores = bags.scores(values, self.table, threads)
        return [line_by_line(np.arange(rows.n_rows), scores)]

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """What each column of the first row says that is not zero there."""
        bags, values, _ = self._bags(rows)
        columns = bags.words[: bags.offsets[1]]
        names = self.lexicon.words
        says = values[: len(columns), None] * self.table[columns]
        column_terms = zip(columns.tolist(), bags.times.tolist(), says, strict=False)
        return [Term(names[column], times, scores) for column, times, scores in column_terms]

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        raise NotImplementedError  # a model draws from its plain parameters

    def telling(self, compared: Comparison) -> None:
        return None

    def linear(self) -> LinearWords:
        """The columns, with what they weigh; their counts are divided by the row's length."""
        plain = word_family(self.lexicon.feature).reading
        reading = {**plain, "count": "root" if self.use_counts else "presence", "length": "known"}
        weights = self.table.astype(np.float64)
        scale = self.scale.astype(np.float64)
        return LinearWords(self.lexicon.words, weights, np.zeros(weights.shape[1]), reading, scale)


@dataclass(frozen=True)
class ScaledParameters(Parameters):
    """A column that is scored by its family, times what its evidence is worth."""

    features: tuple[Feature, ...]
    plain: Parameters
    weight: float
    n_classes: int

    def select(self, index: Sequence[int]) -> Self:
        assert list(index) == [0]
        return self

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        threads = n_threads(None)
        parts = self.plain.parts(rows)
        try:
            scores = _core.score(rows.n_rows, np.zeros(self.n_classes), parts, "log_joint", threads)[0]
        except _core.BadValue as bad:
            raise bad_value(bad, [name for feature in self.features for name in feature.inputs], rows) from None  # type: ignore[arg-type]
        scores = self.weight * scores if self.weight else np.zeros_like(scores)
        return [line_by_line(np.arange(rows.n_rows), scores)]

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        return self.plain.sample(classes, rng)

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_] | None:
        return self.plain.never_seen(rows)

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        return self.plain.telling(compared)

    def categories(self, f: int, column: str) -> Keys | None:
        return self.plain.categories(f, column)

    def cuts(self, column: str | None) -> list[float] | None:
        return self.plain.cuts(column)

    def curve(self, f: int) -> Curve | None:
        curve = self.plain.curve(f)
        return None if curve is None else curve.times(self.weight)
