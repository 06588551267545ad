"""Text: a bag of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions import event_models
from banbury.distributions.bag import TextParameters, missing_texts
from banbury.distributions.event_models import WeighedWords, WordScores
from banbury.distributions.family import Choice, ColumnReader, Encoding, Feature, HeldOutRows
from banbury.distributions.leave_one_text_out import CountedTexts
from banbury.distributions.looked_up import LookedUpTexts
from banbury.distributions.text_settings import TextSettings
from banbury.distributions.vocabulary import Learned, Vocabulary, every_word
from banbury.distributions.weighed_text import WeighedTextParameters
from banbury.sums import Words

__all__ = ["Text", "TextParameters"]

NO_WORDS = np.zeros(0, dtype=np.uint32)
PLAIN, DAMPED = {"damping": None, "length": False}, {"damping": "log", "length": True}
CANDIDATES: tuple[dict[str, Any], ...] = (  # two counts suffice for them
    *({"model": model, **PLAIN} for model in ("multinomial", "presence", "bernoulli")),
    *({"model": model, **DAMPED} for model in ("multinomial", "log_odds")),
)


@dataclass(frozen=True, repr=False)
class Text(TextSettings):
    """A column of texts, each a bag of words: how often every word occurs, whatever their order.

    What is counted. ``tokens``: "word" (two or more letters, digits or underscores, of any script; as scikit-learn's
    CountVectorizer), "word1" (one or more), "mail" (which keeps host names, addresses and IP numbers whole), or a regular
    expression, whose one group, if it has one, is the word; that runs through Python's ``re`` and is the slow path.
    ``lowercase``; ``unit`` "words" or "characters"; ``ngrams`` (shortest, longest), 1 to 5 units that stand side by side, or n
    for (1, n); ``stop_words``, taken out before n-grams are made. ``buckets``, a power of two: words are hashed into so many,
    and memory is bounded. ``only``, a list of words, or a text file with a word on each line: no other is counted, as if texts
    did not have it, so that memory is bounded and words keep their names. ``damping="log"`` counts log(1 + n) for a word that a
    text has n times; ``length`` then divides the counts of each text by their Euclidean length.

    How it is estimated, without counting again. ``model``: "multinomial", "presence" (each word once per text), "bernoulli"
    (absent words are evidence too), "complement" (how little a word belongs to all other classes; Rennie et al. 2003) or
    "log_odds" (log P(word | class) − log P(word | all other classes), times (K − 1) / K of K classes that have texts).
    Presence and Bernoulli have no use for damping. The Dirichlet or Beta prior is ``alpha``, over the words of the vocabulary.

    The vocabulary is every word that some text has, or ``vocabulary``: a list, or a text file with a word on each line, all of
    which count whether seen or not. Of these the ``drop_most_frequent`` words of most occurrences are dropped, and those of
    fewer than ``min_count`` occurrences, of documents below ``min_share`` or above ``max_share`` of the texts; of the rest
    the ``max_words`` best are kept by ``choose_by`` "count" or "mutual_information" of presence and class; equals by name.
    Words outside the vocabulary are skipped; hashed words are counted and pruned by their buckets.

    ``idf`` multiplies counts, when learning and when scoring, by log(N / df) for a word that df of N texts have: one that every
    text has then weighs nothing. Lengths are taken before that, so that one pass over the texts suffices (Rennie et al. take
    them after). ``norm`` divides the weights of complement by the sum of their absolute values in each class: they then rank
    classes and are no probabilities, so that class_prior="uniform" belongs with it.

    "mle" and "map" may leave zeros, except in complement and log-odds, where 1e-10 is the least pseudo-count. "predictive" is
    Pólya's urn for multinomial and presence, and the mean for others and where counts are damped or weighted by idf.

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
        ordered = reals or choice.how in ("map", "gibbs")
        live = self._live_count(choice)
        asked = sums.table.asked if isinstance(sums.table, Learned) else NO_WORDS if choice.waits else None
        if live is not None and asked is not None:  # rows depend on their own words alone
            words = Vocabulary(sums.table, asked, True, sums.table.n_words)
        else:
            words = self.words(sums.table, by_name=ordered)
        left_out = isinstance(sums.table, Learned)  # by one who says it once
        if sums.table.n_words and not words.n_words and not left_out:
            warn_of_no_words(feature.name, sums.table.n_words)
        for whole, why in ((choice.how == "gibbs", "how='gibbs'"), (self.norm, "norm=True")):
            if whole:
                event_models.check_size(words, feature.name, why)
        scores = self._scores(words, choice, rng)
        kept = None if words.complete else words.ids
        table = words.table.core if isinstance(words.table, Learned) else words.table
        waiting = float(sums.table.n_words) if live is not None and choice.waits else None
        return TextParameters(features, choice, table, kept, words.n_words, scores, live, waiting)

    def _live_count(self, choice: Choice) -> float | None:
        """The pseudo-count of models whose rows depend on a word's own counts alone, so that they change one by one."""
        whole = self.idf or self.norm or self.model == "bernoulli" or choice.how == "gibbs"
        if whole or self.vocabulary is not None or self.pruning.any:
            return None
        if self.weighs:
            return float(event_models.complement_pseudo_count(choice.how, self.prior(choice)))
        a = event_models.pseudo_count(choice.how, self.prior(choice))
        return a if a >= 0 else None

    def _scores(self, words: Vocabulary, choice: Choice, rng: np.random.Generator) -> WordScores:
        weighed, urn = WeighedWords(words, self.once, bool(self.idf)), choice.how == "predictive" and self.counts_tokens
        return event_models.estimated(self.model, weighed, choice.how, self.prior(choice), self.norm, urn, rng)

    def log_prior(self, parameters: TextParameters, sums: Words, choice: Choice) -> float:
        """Of complement and log-odds, which are no likelihood, and of words weighted by idf: nothing."""
        a = max(float(event_models.pseudo_count(choice.how, self.prior(choice))), 0.0)
        if not a or self.weighs or self.idf:
            return 0.0
        words = every_word(parameters.table, False).ids if parameters.kept is None else parameters.kept
        return a * event_models.sum_of_logs(parameters.scores, words, self.model == "bernoulli")

    def n_parameters(self, features: tuple[Feature, ...], sums: Words) -> list[tuple[int, int]]:
        n_words = self.words(sums.table).n_words
        return [(n_words if self.model == "bernoulli" else max(n_words - 1, 0), 0)]

    # What it tells about the class

    def used_words(self, feature: Feature, sums: Words) -> Vocabulary:
        return self.words(sums.table, by_name=True)

    def words_in_rows(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Int]:
        texts = self.texts(rows, feature.name)
        offsets, ids = sums.table.encode(self.tokeniser, texts, threads)
        row = np.repeat(np.arange(rows.n_rows), np.diff(offsets))
        return np.flatnonzero(~missing_texts(texts, rows.n_rows)), row, ids.astype(np.int64)

    def label_words(self, choice: Choice) -> tuple[bool, float] | None:
        own = self.model in ("multinomial", "presence") and self.counts_tokens and self.vocabulary is None
        a = event_models.pseudo_count(choice.how, self.prior(choice))
        if not own or choice.how not in ("mean", "map") or self.choose_by != "count" or a <= 0:
            return None
        return self.once, float(a)

    def bags(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Real]:
        table: Any = sums.table if self.vocabulary is None else self.used_words(feature, sums).table
        return table.bags(self.tokeniser, self.texts(rows, feature.name), threads)  # type: ignore[no-any-return]

    def weighed_words(
        self, lexicon: Any, scale: Any, table: Any, often: bool, documents: Real, texts: Real
    ) -> WeighedTextParameters:
        return WeighedTextParameters.of(lexicon, scale, table, often, documents, texts)

    def looked_up(self, feature: Feature, rows: ColumnReader, weights: Real, threads: int) -> LookedUpTexts:
        return LookedUpTexts.of(feature, rows, weights, threads)

    # What is tuned, and given to others

    def text_settings(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self))

    def text_candidates(self) -> Sequence[Mapping[str, Any]]:
        return CANDIDATES

    def encoded(self, rows: ColumnReader, features: Sequence[Feature], sums: Words, threads: int) -> Encoding:
        """How often each text has each word, by the ids of words."""
        from scipy import sparse

        texts = self.texts(rows, features[0].name)
        offsets, ids = sums.table.encode(self.tokeniser, texts, threads)
        known = ids >= 0
        starts = np.append(0, np.cumsum(known))[offsets]
        shape = (rows.n_rows, sums.table.n_ids)
        matrix = sparse.csr_matrix((np.ones(int(starts[-1])), ids[known], starts), shape=shape)
        matrix.sum_duplicates()
        return Encoding(words=matrix)

    def encoded_words(self, sums: Words) -> Int:
        return np.sort(self.words(sums.table).ids).astype(np.int64)

    # Leave-one-out

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        a = event_models.pseudo_count(choice.how, self.prior(choice))
        of_all = self.min_share > 0 or self.max_share < 1 or bool(self.idf)  # depends on how many texts are left
        if choice.how == "gibbs" or self.norm or (weighted and of_all):
            return False
        if self.model == "bernoulli":
            return a > 0 and not weighted
        if self.weighs:
            return True
        return a >= 0 and not (choice.how == "predictive" and self.counts_tokens)

    def leave_one_out(self, features: tuple[Feature, ...], sums: Words, choice: Choice, held_out: HeldOutRows) -> Real:
        column, alpha = CountedTexts(self, features[0], sums, held_out), self.prior(choice)
        if self.model == "bernoulli":
            return column.bernoulli(event_models.pseudo_count(choice.how, alpha))
        if self.weighs:
            a = event_models.complement_pseudo_count(choice.how, alpha)
            return column.complement(a) if self.model == "complement" else column.log_odds(a)
        return column.multinomial(event_models.pseudo_count(choice.how, alpha))

    def leave_one_out_notes(self) -> list[str]:
        return ["the ranks of words"] * self.pruning.ranks


def warn_of_no_words(column: str, n_words: int) -> None:
    text = f"none of the {n_words:,} words of column {column!r} is left, so its texts say nothing. Prune less: see min_count, "
    errors.warn(errors.BanburyWarning(f"{text}min_share, max_share and drop_most_frequent of bb.Text."))
