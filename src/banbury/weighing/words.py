"""Weighed words, and columns that are scored by their family: as parameters that score and explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.distributions.bags import Bags, Lexicon
from banbury.distributions.evidence import Comparison, TellingValues, Term
from banbury.distributions.family import ColumnReader, Feature, Parameters, line_by_line
from banbury.threads import n_threads
from banbury.weighing.texts import LearnedTexts, Reals32, WordEvidence

SOME_WORDS = 1 << 16  # that are looked at together


def text_parameters(
    feature: Feature,
    sums: Any,
    words: Sequence[str],
    learned: LearnedTexts,
    classes: list[int],
    weight: float,
    stale: bool,
) -> TextScores:
    """What words say now, with corrections of those that were there when they were learned."""
    lexicon = Lexicon.of(feature, sums)
    evidence = WordEvidence(lexicon.documents(), lexicon.used.texts)
    table = np.float32(learned.setting.trust) * evidence.says
    place = lexicon.places(words) if stale or len(lexicon) != len(words) else np.arange(len(words))
    table[place[place >= 0]] += learned.corrections[:-1][place >= 0][:, classes]
    scale = evidence.scale(learned.setting.power)
    return TextScores((feature,), sums, lexicon, evidence, scale, learned.setting.often, np.float32(weight) * table)


@dataclass(frozen=True)
class TextScores(Parameters):
    """The scores of the words of a column, (words, classes), each times what the word counts in its text."""

    features: tuple[Feature, ...]
    sums: Any
    lexicon: Lexicon
    evidence: WordEvidence
    scale: Reals32
    often: bool
    table: Reals32

    def select(self, index: Sequence[int]) -> Self:
        assert list(index) == [0]
        return self

    def _bags(self, rows: ColumnReader) -> tuple[Bags, Reals32, int]:
        threads = n_threads(getattr(rows, "threads", None))
        bags = self.lexicon.bags(rows, self.sums, threads)
        return bags, bags.values(self.often, self.scale, threads), threads

    def parts(self, rows: ColumnReader) -> list[tuple[Any, ...]]:
        bags, values, threads = self._bags(rows)
        scores = _core.score_bags(bags.parts, values, self.table, threads)
        return [line_by_line(np.arange(rows.n_rows), scores)]

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """What each known word of the first row's text says, in the order they first occur; the sum is its score."""
        bags, values, _ = self._bags(rows)
        words = bags.words[: bags.offsets[1]]
        says = dict(
            zip(words.tolist(), (values[: len(words), None] * self.table[words]).astype(np.float64), strict=True)
        )
        feature, texts = self.features[0], self.texts(rows)
        if not texts:
            names = self.lexicon.words
            return [Term(feature.name, names[word], each) for word, each in says.items()]
        (text,) = texts.values()
        tokens, ranks, places = self.lexicon.tokens(text)
        found: dict[int, list[int]] = {}
        for i, rank in enumerate(ranks):
            if rank in says:
                found.setdefault(rank, []).append(i)
        return [
            Term(feature.name, tokens[at[0]], says[rank], times=len(at), positions=tuple(places[i] for i in at))
            for rank, at in found.items()
        ]

    def texts(self, rows: ColumnReader) -> dict[str, str]:
        name = self.features[0].name
        if not self.features[0].family.reads_text():
            return {}
        text = next(iter(self.features[0].family.strings(rows, name)), None)
        return {name: text} if isinstance(text, str) else {}

    def unknown_words(self, rows: ColumnReader) -> list[str]:
        found = []
        for text in self.texts(rows).values():
            tokens, ranks, _ = self.lexicon.tokens(text)
            found += [token for token, rank in zip(tokens, ranks, strict=True) if rank < 0]
        return list(dict.fromkeys(found))

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        raise NotImplementedError  # a model draws from its plain parameters

    def axes(self, f: int) -> tuple[str, ...]:
        return ()

    def telling(self, compared: Comparison) -> Iterator[TellingValues]:
        """Words by what one of them says in a text of the usual length."""
        having = self.evidence.documents.sum(axis=1)
        texts = np.maximum(self.evidence.texts, 1e-300)
        usual = self.scale / max(float(having @ self.scale.astype(np.float64) ** 2 / texts.sum()), 1e-300) ** 0.5
        names = self.lexicon.words
        for start in range(0, len(names), SOME_WORDS):
            some = slice(start, start + SOME_WORDS)
            share = (having[some] / texts.sum())[:, None] * np.exp(
                usual[some, None] * self.table[some].astype(np.float64)
            )
            had = self.evidence.documents[some] / texts

            def named(i: int, start: int = start) -> tuple[str, str]:
                return self.features[0].name, names[start + i]

            yield TellingValues(share, had, named, kind="word")


@dataclass(frozen=True)
class ScaledParameters(Parameters):
    """A column that is scored by its family, times what its evidence is worth."""

    features: tuple[Feature, ...]
    own: Parameters
    weight: float
    n_classes: int

    def select(self, index: Sequence[int]) -> Self:
        assert list(index) == [0]
        return self

    def parts(self, rows: ColumnReader) -> list[tuple[Any, ...]]:
        threads = n_threads(getattr(rows, "threads", None))
        parts = self.own.parts(rows)
        scores = _core.score(rows.n_rows, np.zeros(self.n_classes), parts, "log_joint", threads)[0]
        scores = self.weight * scores if self.weight else np.zeros_like(scores)
        return [line_by_line(np.arange(rows.n_rows), scores)]

    def check(self, rows: ColumnReader) -> None:
        self.own.check(rows)

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        return self.own.sample(classes, rng)

    def is_seen(self, f: int, rows: ColumnReader) -> bool:
        return self.own.is_seen(f, rows)

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        return self.own.telling(compared)

    def axes(self, f: int) -> tuple[str, ...]:
        return self.own.axes(f)
