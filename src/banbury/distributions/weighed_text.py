"""A column of texts whose words are weighed: each counts its share of a text's length, and has one score for every class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.distributions.bag import KnownWord, TextParameters
from banbury.distributions.bags import Lexicon
from banbury.distributions.event_models import WordScores
from banbury.distributions.evidence import Comparison, TellingValues
from banbury.distributions.family import Choice, ColumnReader

SOME_WORDS = 1 << 16  # that are looked at together


@dataclass(eq=False)
class WeighedTextParameters(TextParameters):
    """The scores of words; of ``often`` a word counts by the root of how often it occurs, else once.

    ``documents`` are the texts of each class that have each word of the lexicon, ``n_texts`` all of them.
    """

    lexicon: Lexicon | None = None
    often: bool = True
    documents: Real | None = None
    n_texts: Real | None = None

    @classmethod
    def of(
        cls,
        lexicon: Lexicon,
        scale: NDArray[np.float32],
        table: NDArray[np.floating[Any]],
        often: bool,
        documents: Real,
        n_texts: Real,
    ) -> WeighedTextParameters:
        """From the scores of a lexicon's words, (words, classes), and how much each word counts for its rarity."""
        n_words, n_classes = table.shape
        weights = _core.Weights(n_classes, np.zeros(n_classes))
        starts = np.arange(0, (n_words + 1) * n_classes, n_classes, dtype=np.int64)
        classes = np.tile(np.arange(n_classes, dtype=np.int32), n_words)
        rows = table.astype(np.float64).ravel()
        weights.set(lexicon.used.ids, np.zeros(n_words), scale.astype(np.float64), starts, classes, rows)
        scores = WordScores(weights, np.zeros(n_classes), np.zeros(n_classes))
        plain = lexicon.used.table, lexicon.used.ids, n_words, scores, None, None
        return cls((lexicon.feature,), Choice(), *plain, lexicon, often, documents, n_texts)

    @property
    def counting(self) -> bool | str:
        return "unit" if self.often else "unit once"

    def _words_of(self, text: str) -> tuple[list[KnownWord], Real, Real, Real]:
        words, _, rows, scale = super()._words_of(text)
        times = np.array([len(tokens) for _, tokens, _ in words], dtype=np.float64)
        x = np.sqrt(times) if self.often else np.ones(len(times))
        length = float(np.sqrt(np.sum((x * scale) ** 2)))
        return words, x / length if length else x, rows, scale

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        raise NotImplementedError  # a model draws from its plain parameters

    def log_coefficient(self, rows: ColumnReader) -> Real:
        raise errors.bad_setting("the text", "weighed", "plain, to have a probability: model.weighed(None)")

    def linear(self) -> tuple[list[str], Real, Real]:
        raise errors.bad_setting("the text", "weighed", "plain for a linear form: model.weighed(None)")

    def telling(self, compared: Comparison) -> Iterator[TellingValues]:
        """Words by what one of them says in a text of the usual length."""
        assert self.lexicon is not None and self.documents is not None and self.n_texts is not None
        ids, texts = self.lexicon.used.ids, np.maximum(self.n_texts, 1e-300)
        every = [ids[start : start + SOME_WORDS] for start in range(0, len(ids), SOME_WORDS)]
        found = [self.scores.weights.rows(some)[1:] for some in every]
        having = self.documents.sum(axis=1)
        scale = np.concatenate([scale for _, scale in found]) if found else np.zeros(0)
        usual = max(float(having @ scale**2 / texts.sum()), 1e-300) ** 0.5
        for k, (some, (rows, own)) in enumerate(zip(every, found, strict=True)):
            at = slice(k * SOME_WORDS, k * SOME_WORDS + len(some))
            share = (having[at] / texts.sum())[:, None] * np.exp(np.minimum((own / usual)[:, None] * rows, 700.0))
            yield TellingValues(share, self.documents[at] / texts, partial(self._word, some), kind="word")
