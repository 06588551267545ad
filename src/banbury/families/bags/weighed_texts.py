"""Weighed words: the parameters of a text whose words have learned weights and corrections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags.event_models import WordScores, set_cells
from banbury.families.bags.lexicon import Lexicon, slices_of_length
from banbury.families.bags.parameters import BagParameters, RowWord
from banbury.families.evidence import Comparison, InformativeValues
from banbury.families.family import Choice, ColumnReader, Features, LinearWords

WORDS_TOGETHER = 1 << 16  # whose probabilities are in memory together


@dataclass(eq=False)
class WeighedTextParameters(BagParameters):
    """The learned scores of words.

    Args:
        lexicon: The words that were learned from.
        use_counts: Whether a word counts the root of its occurrences in a text, rather than once.
        documents: How many texts of each class have each word of the lexicon (words × classes).
        n_texts: The number of texts of each class (classes).
    """

    lexicon: Lexicon | None = None
    use_counts: bool = True
    documents: Real | None = None
    n_texts: Real | None = None

    @property
    def counting(self) -> bool | str:
        """How the kernel counts a word, by name: "unit" divides the counts of a text by their length."""
        return "unit" if self.use_counts else "unit once"

    def _counts_of(self, words: Sequence[RowWord], scale: Real) -> Real:
        """Returns how much each word of a row counts (words): so that the squares of the counts times ``scale``, which
        has a number for each word, sum to 1.
        """
        times = np.array([word.times for word in words], dtype=np.float64)
        # A word counts the root of its occurrences, or once.
        counts = np.sqrt(times) if self.use_counts else np.ones(len(times))
        length = float(np.sqrt(np.sum((counts * scale) ** 2)))  # of the row, Euclidean
        return counts / length if length else counts

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Raises, because learned weights are no probabilities to draw from."""
        raise NotImplementedError  # a model draws from its plain parameters

    def log_coefficient(self, rows: ColumnReader) -> Real:
        """Raises, because learned weights give texts no probability."""
        raise errors.bad_setting("the text", "weighed", "plain to have a probability; use model.weighed(None)")

    def linear(self) -> LinearWords:
        """Returns the words in order with what they weigh; a word counts its share of the length of its text."""
        words, weights, scale = self._every_word()  # words × classes, and a number for each word
        reading = {**self.family.reading, "count": "root" if self.use_counts else "presence", "length": "known"}
        return LinearWords(words, weights, self.scores.constant, reading, scale)

    def informative_values(self, compared: Comparison) -> Iterator[InformativeValues]:
        """Yields what one word says in a text of the usual length, for some words at a time; ``compared`` is not
        needed.
        """
        assert self.lexicon is not None and self.documents is not None and self.n_texts is not None
        ids = self.lexicon.used.ids  # of all words; ``documents`` are texts with each (words × classes)
        texts_or_tiny = np.maximum(self.n_texts, 1e-300)  # of each class
        _, word_rows, scale = self.scores.weights.rows(ids)  # words × classes, and what multiplies each word's numbers
        n_documents = self.documents.sum(axis=1)  # texts with each word
        usual_length = max(float(n_documents @ scale**2 / texts_or_tiny.sum()), 1e-300) ** 0.5
        for some_words in slices_of_length(len(ids), WORDS_TOGETHER):
            # Words × classes: what one word says, its share of texts changed by that, and the share counted.
            log_ratio = np.minimum((scale[some_words] / usual_length)[:, None] * word_rows[some_words], 700.0)
            share = (n_documents[some_words] / texts_or_tiny.sum())[:, None] * np.exp(log_ratio)
            had = self.documents[some_words] / texts_or_tiny
            yield InformativeValues(share, had, partial(self._column_and_value, ids[some_words]), kind="word")


def weigh_texts(
    lexicon: Lexicon,
    scale: NDArray[np.float32],
    class_scores: NDArray[np.floating[Any]],
    use_counts: bool,
    documents: Real,
    n_texts: Real,
) -> WeighedTextParameters:
    """Makes the parameters from learned scores.

    Args:
        lexicon: The words.
        scale: How much each word counts (words).
        class_scores: What each word says of every class (words × classes).
        use_counts: Whether a word counts the root of its occurrences in a text, rather than once.
        documents: How many texts of each class have each word (words × classes).
        n_texts: The number of texts of each class.
    """
    n_words, n_classes = class_scores.shape
    weights = _core.Weights(n_classes, default=np.zeros(n_classes))  # a row of class scores for each word
    set_cells(weights, lexicon.used.ids, class_scores.astype(np.float64), scale.astype(np.float64))
    scores = WordScores(weights, base=np.zeros(n_classes), constant=np.zeros(n_classes))
    features = Features.of([lexicon.feature])
    words = lexicon.used
    return WeighedTextParameters(
        features,
        Choice(),
        words.table,
        words.ids,
        n_words,
        scores,
        pseudo_count=None,
        lexicon=lexicon,
        use_counts=use_counts,
        documents=documents,
        n_texts=n_texts,
    )
