"""Text: a bag of words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags import event_models
from banbury.families.bags.event_models import WeighedWords, WordScores
from banbury.families.bags.leave_one_text_out import leave_each_text_out
from banbury.families.bags.occurrences import UNREAD
from banbury.families.bags.text_parameters import TextParameters, missing_texts
from banbury.families.bags.text_settings import TextSettings
from banbury.families.bags.vocabulary import Learned, Vocabulary, every_word
from banbury.families.family import Choice, ColumnReader, Family, Feature, HeldOutRows
from banbury.sums import Words, kernel_weights

__all__ = ["Text", "TextParameters", "tokens"]

UNPRUNED: Any = dict.fromkeys(("min_count", "min_share", "drop_most_frequent"), 0)
UNPRUNED |= {"max_share": 1.0, "max_words": None}
NO_WORDS = np.zeros(0, dtype=np.uint32)
PLAIN = {"damping": None, "length": False}
DAMPED = {"damping": "log", "length": True}
TEXT_CANDIDATES: tuple[dict[str, Any], ...] = (  # two counts suffice for them
    *({"model": model, **PLAIN} for model in ("multinomial", "presence", "bernoulli")),
    *({"model": model, **DAMPED} for model in ("multinomial", "log_odds")),
)


@dataclass(frozen=True, repr=False)
class Text(TextSettings):
    """A text column as a bag of words: how often each word occurs, regardless of order.

    These settings decide what is counted:

    - ``tokens``: "word" (two or more letters, digits or underscores of any script, as in scikit-learn's
      CountVectorizer), "word1" (one or more), "mail" (keeps host names, addresses and IP numbers whole), or a regular
      expression whose single group, if it has one, is the word. Regular expressions use Python's ``re`` and are slow.
    - ``lowercase``: whether to convert to lower case.
    - ``unit``: "words" or "characters".
    - ``ngrams``: (shortest, longest), from 1 to 5 adjacent units, or n for (1, n).
    - ``stop_words``: words to remove before n-grams are built.
    - ``only``: a list of words, or a text file with one word per line. No other words are counted, which limits memory.
    - ``damping``: "log" counts log(1 + n) for a word that occurs n times in a text.
    - ``length``: whether to divide the damped counts of each text by their Euclidean length.

    These settings decide how the model is estimated, and changing them needs no recount:

    - ``model``: "multinomial", "presence" (each word counts once per text), "bernoulli" (absent words are evidence
      too), "complement" (how little a word belongs to all other classes; Rennie et al. 2003) or "log_odds" (log P(word
      | class) − log P(word | all other classes), times (K − 1) / K for K classes that have texts). Damping does not
      apply to "presence" and "bernoulli".
    - ``alpha``: the pseudo-count of the Dirichlet or Beta prior over the vocabulary.
    - ``vocabulary``: a list, or a text file with one word per line. All of them count, seen or not. By default every
      word that occurs in a text.
    - ``drop_most_frequent``: how many of the words with the most occurrences to drop.
    - ``min_count``: drops words with fewer occurrences.
    - ``min_share`` and ``max_share``: drop words that occur in fewer or more than this share of the texts.
    - ``max_words``: keeps only this many of the remaining words, chosen by ``choose_by``: "count", or
      "mutual_information" between presence and class. Ties are broken by name.
    - ``idf``: multiplies counts by log(N / df) for a word that occurs in df of N texts, both when learning and when
      scoring. Text lengths are computed before that, so that one pass is enough (Rennie et al. compute them after).
    - ``norm``: divides the weights of "complement" in each class by the sum of their absolute values. The scores then
      rank classes but are not probabilities, so use class_prior="uniform".

    Words outside the vocabulary are ignored. Under "mle" and "map" the minimum pseudo-count is 1e-10, but "bernoulli"
    keeps zeros. "predictive" is Pólya's urn for "multinomial" and "presence", and the mean for the others and for
    damped or weighted counts.

    >>> import banbury as bb
    >>> texts = ["cheap pills, cheap watches", "lunch at noon?", "pills and watches", "noon is fine for lunch"]
    >>> tally = bb.count({"text": texts}, target=["spam", "ham", "spam", "ham"], features={"text": bb.Text(stop_words=["and"])})
    >>> bb.estimate(tally).predict({"text": ["cheap lunch", "watches and pills"]}).tolist()
    ['spam', 'spam']
    """

    # Estimating

    def estimate(
        self, features: tuple[Feature, ...], sums: Words, choice: Choice, rng: np.random.Generator
    ) -> TextParameters:
        (feature,) = features
        # Sums of reals are added up by name wherever order could tell.
        reals = self.idf or self.norm or self.model == "bernoulli" or self.pruning.any
        ordered = reals or choice.how == "gibbs"
        live = self._live_count(choice)
        needed_words = sums.table.asked if isinstance(sums.table, Learned) else NO_WORDS if choice.waits else None
        if live is not None and needed_words is not None:  # rows depend on their own words alone
            words = Vocabulary(sums.table, needed_words, True, sums.table.n_words)
        else:
            words = self.words(sums.table, by_name=ordered)
        left_out = isinstance(sums.table, Learned)  # by one who says it once
        if sums.table.n_words and not words.n_words and not left_out:
            warn_of_no_words(feature.name, sums.table.n_words)
        for needs_table, why in ((choice.how == "gibbs", "how='gibbs'"), (self.norm, "norm=True")):
            if needs_table:
                event_models.check_size(words, feature.name, why)
        scores = self._scores(words, choice, rng)
        kept = None if words.complete else words.ids
        table = words.table.core if isinstance(words.table, Learned) else words.table
        waiting = float(sums.table.n_words) if live is not None and choice.waits else None
        return TextParameters(features, choice, table, kept, words.n_words, scores, live, waiting)

    def _live_count(self, choice: Choice) -> float | None:
        """The pseudo-count of models whose rows depend on a word's own counts alone, so that they change one by one."""
        needs_all_words = self.idf or self.norm or self.model == "bernoulli" or choice.how == "gibbs"
        if needs_all_words or self.vocabulary is not None or self.pruning.any:
            return None
        return self.pseudo_count(choice)

    def pseudo_count(self, choice: Choice) -> float:
        """What is added to the count of every word."""
        return float(event_models.pseudo_count(self.model, choice.how, self.prior(choice)))

    def _scores(self, words: Vocabulary, choice: Choice, rng: np.random.Generator) -> WordScores:
        counted = WeighedWords(words, self.once, bool(self.idf))
        urn = choice.how == "predictive" and self.counts_tokens
        return event_models.estimate_scores(self.model, counted, choice.how, self.prior(choice), self.norm, urn, rng)

    def log_prior(self, parameters: TextParameters, sums: Words, choice: Choice) -> float:
        """Of complement and log-odds, which are no likelihood, and of words weighted by idf: nothing."""
        a = max(self.prior(choice) - (choice.how == "map"), 0.0)
        if choice.how == "mle" or not a or self.weighs or self.idf:
            return 0.0
        words = every_word(parameters.table, False).ids if parameters.kept is None else parameters.kept
        return a * event_models.sum_of_logs(parameters.scores, words, self.model == "bernoulli")

    def n_parameters(self, features: tuple[Feature, ...], sums: Words) -> list[tuple[int, int]]:
        n_words = self.words(sums.table).n_words
        return [(n_words if self.model == "bernoulli" else max(n_words - 1, 0), 0)]

    # What it tells about the class

    def words_in_use(self, feature: Feature, sums: Words) -> Vocabulary:
        return self.words(sums.table, by_name=True)

    def words_in_rows(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Int]:
        texts = self.texts(rows, feature.name)
        offsets, ids = sums.table.encode(self.tokeniser, texts, threads)
        row = np.repeat(np.arange(rows.n_rows), np.diff(offsets))
        return np.flatnonzero(~missing_texts(texts, rows.n_rows)), row, ids.astype(np.int64)

    def bags(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Real]:
        texts = self.texts(rows, feature.name)
        if isinstance(texts, _core.EncodedTexts) and texts.times is not None:  # their words were looked up before
            return texts.offsets, texts.ids, texts.times  # type: ignore[return-value]
        table: Any = sums.table if self.vocabulary is None else self.words_in_use(feature, sums).table
        core: Any = table.core if isinstance(table, Learned) else table
        return core.bags(self.tokeniser, texts, threads)  # type: ignore[no-any-return]

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        urn = choice.how == "predictive" and self.counts_tokens
        plain = self.model in ("multinomial", "presence") and not self.idf and not self.pruning.any
        return plain and choice.how != "gibbs" and not urn

    def leave_one_out(self, features: tuple[Feature, ...], sums: Words, choice: Choice, held_out: HeldOutRows) -> Real:
        return leave_each_text_out(self, features[0], sums, held_out, self.pseudo_count(choice))


def tokens(texts: str | Iterable[str], **settings: Any) -> list[Any]:
    """The tokens of a text in order, or of each of several texts, by the settings of ``bb.Text``.

    >>> import banbury as bb
    >>> bb.tokens("Lunch at noon? At noon!", ngrams=(1, 2), stop_words=["at"])
    ['lunch', 'noon', 'noon', 'lunch noon', 'noon noon']
    """
    family = Text(**settings)
    return family.one(texts)[1] if isinstance(texts, str) else [family.one(text)[1] for text in texts]


TEXT_SETTINGS = tuple(field.name for field in fields(Text))


def label_words(family: Family, choice: Choice) -> tuple[bool, float] | None:
    """Where what a word says of a label depends on how often both occur, and the label, alone: whether it counts once in a
    text, and the pseudo-count; None elsewhere."""
    if not isinstance(family, Text) or choice.how not in ("mean", "map") or family.choose_by != "count":
        return None
    uses_own_counts = family.model in ("multinomial", "presence") and family.counts_tokens and family.vocabulary is None
    return (family.once, family.pseudo_count(choice)) if uses_own_counts else None


def warn_of_no_words(column: str, n_words: int) -> None:
    text = f"none of the {n_words:,} words of column {column!r} is left, so its texts carry no information. Prune "
    errors.warn(
        errors.BanburyWarning(f"{text}less: see min_count, min_share, max_share and drop_most_frequent of bb.Text.")
    )


# Words that are looked up once ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LookedUpTexts:
    """A column of text, its words looked up once; a word's number is its column in a matrix of occurrences."""

    feature: Feature  # whose words are named by their numbers
    offsets: Int
    ids: NDArray[np.int32]
    times: NDArray[np.int32]
    missing: NDArray[np.bool_]
    values: Real  # what each word of each text counts
    n_words: int

    @classmethod
    def of(cls, feature: Feature, rows: ColumnReader, weights: Real, threads: int) -> LookedUpTexts:
        """``weights``: one for each row; they say which words are too rare, where a family asks that."""
        family: Any = feature.family
        if family.max_words is not None and family.choose_by == "mutual_information":
            raise errors.bad_setting("choose_by", family.choose_by, "'count' where rows have no label")
        texts = family.texts(rows, feature.name)
        there, parts = kernel_weights(np.zeros(rows.n_rows, dtype=np.int32), weights)
        table = _core.Words(1, 0).count(family.tokeniser, texts, there, parts, threads)
        kept = family.words(table) if family.vocabulary is not None or family.pruning.any else None
        table = table if kept is None else kept.table
        offsets, ids, times = table.bags(family.tokeniser, texts, threads)
        n_words = table.n_ids
        vocabulary = None
        all_count = family.length or family.vocabulary is not None  # lengths are of all words; some are in no text
        if kept is not None and len(kept.ids) and all_count:
            vocabulary = tuple(f"#{i}" for i in kept.ids.tolist())
        elif kept is not None:
            n_words = len(kept.ids)
            offsets, ids, times = _only(kept.ids, table.n_ids, offsets, ids, times)
        numbered = feature._replace(family=replace(family, vocabulary=vocabulary, **UNPRUNED))
        missing = missing_texts(texts, rows.n_rows)
        values = family.count_values(offsets, times)
        return cls(numbered, offsets, ids, times, missing, values, n_words)

    @property
    def lengths(self) -> Real:
        owners = np.repeat(np.arange(len(self.missing)), np.diff(self.offsets))
        return np.bincount(owners, self.values, len(self.missing)).astype(np.float64, copy=False)

    def count(self, rows: Int, classes: NDArray[np.int32], weights: Any, n_classes: int, threads: int) -> Words:
        """The words of these rows, some of them more than once, each in one class."""
        size = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(size)])
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], size)
        numbers = np.where(self.missing[rows], np.int32(-1), classes)
        table = _core.Words(n_classes, max(self.n_words, 1)).with_columns(self.n_words)
        matrix = _core.Matrix(self.values[at], (offsets, self.ids[at]), self.n_words, None, True)
        return Words(table.count(UNREAD, matrix, numbers, weights, threads))


def _only(kept: NDArray[np.uint32], n_ids: int, offsets: Int, ids: Any, times: Any) -> tuple[Int, Any, Any]:
    """Bags without the words that are not kept, which are numbered anew in order."""
    new_ids = np.full(n_ids, -1, dtype=np.int32)
    new_ids[np.sort(kept)] = np.arange(len(kept))
    is_kept = new_ids[ids] >= 0
    ends = np.concatenate([[0], np.cumsum(is_kept)])
    return ends[offsets], new_ids[ids][is_kept], times[is_kept]
