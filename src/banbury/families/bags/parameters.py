"""A bag of words with what was estimated for it, be its words those of texts or columns: it scores, tells and follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags import event_models
from banbury.families.bags.event_models import CERTAIN, WordScores
from banbury.families.bags.vocabulary import CELLS, Vocabulary
from banbury.families.bags.words import word_family
from banbury.families.dirichlet import per_feature
from banbury.families.evidence import Comparison, TellingValues
from banbury.families.family import Choice, ColumnReader, Feature, How, LinearWords, Parameters, line_by_line
from banbury.sums import Words

Ids = NDArray[np.uint32]


@dataclass(eq=False)
class BagParameters(Parameters):
    """What every word of a column of text, or every column of a block, says of each class. Its rows are changed in place.

    ``kept`` are the words' ids in ``table``; None: all it has. ``pseudo_count`` is what is added to their counts, where nothing
    else than their own counts and the sums of each class makes their rows; None: that is not so.
    """

    features: tuple[Feature, ...]
    choice: Choice
    table: _core.Words
    kept: Ids | None
    n_words: int
    scores: WordScores
    pseudo_count: float | Real | None

    value_kind: ClassVar[Literal["word", "stretch"]] = "word"

    @property
    def family(self) -> Any:
        return word_family(self.features[0])

    # Scoring

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        return [self._part(rows) if self.scores.certain is None else self._part_without_smoothing(rows)]

    def _part(self, rows: ColumnReader) -> _core.Part:
        """The kernel's arguments for these rows."""
        raise NotImplementedError

    def _missing(self, rows: ColumnReader) -> NDArray[np.bool_]:
        """Which rows have no bag at all."""
        return np.zeros(rows.n_rows, dtype=np.bool_)

    def _part_without_smoothing(self, rows: ColumnReader) -> _core.Part:
        """The same where every row of some class has some word: a row without it is impossible there, which no sum can say.

        It happens to Bernoulli models under mle and map. A table with a line for each row then takes the sum's place.
        """
        offsets, ids, _ = self.family.bags(rows, self.features[0], Words(self.table), 1)
        n_rows = len(offsets) - 1
        table = np.zeros((n_rows, len(self.scores.base)))
        start = 0
        while start < n_rows:
            enough = int(offsets[start]) + CELLS // table.shape[1]
            stop = max(start + 1, int(np.searchsorted(offsets, enough, side="right")) - 1)
            words = np.asarray(ids[offsets[start] : offsets[stop]]).astype(np.uint32)
            table[start:stop] = self._exact(np.asarray(offsets[start : stop + 1]) - offsets[start], words)
            start = stop
        return line_by_line(np.where(self._missing(rows), -1, np.arange(n_rows)), table)

    def _exact(self, offsets: Int, ids: Ids) -> Real:
        """Log-likelihoods of rows, (rows, classes), from where the words of each begin, and the words."""
        assert self.scores.certain is not None
        _, rows, _ = self.scores.weights.rows(ids)
        impossible = per_feature(np.isneginf(rows).astype(np.float64), offsets) > 0
        sure = rows == CERTAIN
        impossible |= per_feature(sure.astype(np.float64), offsets) < self.scores.certain
        log_likelihoods = self.scores.constant + per_feature(np.where(sure | np.isneginf(rows), 0.0, rows), offsets)
        return np.where(impossible, -np.inf, log_likelihoods)

    # Following

    def follow(self, sums: Words) -> bool:
        """Makes the rows anew of the words that changed, where they are known."""
        family = self.family
        table = sums.table
        a = self.pseudo_count
        per_class = (table.documents() if family.once else table.occurrences()).value
        if a is None or len(per_class) != len(self.scores.base):
            return False
        if family.model == "log_odds" and self.scores.margin != event_models.log_odds_margin(table.texts().value):
            return False
        if (ids := table.changed_since(self.table)) is None:
            return False
        self.table = table
        self._update_rows(ids)
        event_models.change_base(self.scores, per_class, self.n_words, a, family.model)
        return True

    def _update_rows(self, ids: Ids) -> None:
        """Brings the rows of words up to date whose counts changed."""
        raise NotImplementedError

    # Looking

    @property
    def vocabulary(self) -> Vocabulary:
        """The words in order."""
        raise NotImplementedError

    def _make_all_rows(self) -> None:
        """Makes the rows that wait until a text asks for them."""

    def _names(self, words: Vocabulary) -> list[str]:
        names: list[str] = words.table.words(words.ids)
        return names

    def linear(self) -> LinearWords:
        """The words in order, with what they weigh.

        Counts are those of the text's words as they are counted: damped, or 1 for presence and Bernoulli. −inf stands where
        a class is impossible, so add up only the words that a text has.
        """
        words, weights, scale = self._every_word()
        return LinearWords(words, scale[:, None] * weights, self.scores.constant, self.family.reading)

    def _every_word(self) -> tuple[list[str], Real, Real]:
        """The words in order, what each adds to the classes, and how much it counts for its rarity."""
        scores = self.scores
        if scores.polya is not None or scores.certain is not None:
            raise errors.bad_setting("how", self.choice.how, "a different setting for a linear form, such as 'mean'")
        words = self.vocabulary
        event_models.check_size(words, self.features[0].name, "the linear form")
        self._make_all_rows()
        there, rows, scale = scores.weights.rows(words.ids)
        weights = np.where((there & (scale > 0))[:, None], rows + scores.base, 0.0)
        return self._names(words), weights, scale

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        return (
            TellingValues(share, had, partial(self._word, ids), kind=self.value_kind)
            for ids, share, had in self.values()
        )

    def _word(self, ids: Ids, i: int) -> tuple[str, str]:
        """The feature and the value that a word is."""
        return self.features[0].name, self.table.words(ids[i : i + 1])[0]

    def values(self) -> Iterator[tuple[Ids, Real, Real]]:
        """Some words at a time: their ids, P(word | class), and the share of a class's texts that have them, (words, classes).

        Under Bernoulli the probability is that of a text's having the word. Complement and log-odds give no probabilities:
        those of the multinomial model stand in. Words that weigh nothing are left out.
        """
        family = self.family
        words = self.vocabulary
        scores = self.scores
        self._make_all_rows()
        if family.weighs:
            how: How = "mean" if self.choice.how == "gibbs" else self.choice.how
            weighed = event_models.WeighedWords(words, False, bool(family.idf))
            a = event_models.pseudo_count("multinomial", how, family.alpha_of(self.choice, words))
            scores = event_models.count_scores("multinomial", weighed, a)
        texts = np.where(words.texts > 0, words.texts, 1.0)
        for pairs in words:
            there, rows, scale = scores.weights.rows(pairs.ids)
            kept = pairs.only(there & (scale > 0))
            share = self._share(rows[there & (scale > 0)], scores)
            yield kept.ids, share, kept.cells(kept.documents, words.n_classes) / texts

    def _share(self, rows: Real, scores: WordScores) -> Real:
        """The probabilities that rows stand for."""
        if self.family.model == "bernoulli":
            with np.errstate(over="ignore"):
                return 1.0 / (1.0 + np.exp(-rows))  # CERTAIN is 1, −inf is 0
        return rows / scores.polya if scores.polya is not None else np.exp(rows + scores.base)
