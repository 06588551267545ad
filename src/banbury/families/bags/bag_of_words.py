"""A bag of words: how often each word occurs in a row, whether rows are texts or matrices of counts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.bags import event_models
from banbury.families.bags.event_models import WEIGHING, WeighedWords
from banbury.families.bags.parameters import BagParameters, ClassUrn, RowWord
from banbury.families.bags.vocabulary import Vocabulary, core_of
from banbury.families.bags.words import WORDS
from banbury.families.family import Choice, ColumnReader, Counter, Family, Feature, Features
from banbury.sums import Words


class BagOfWords(Family):
    """The family of bags of words. ``Text`` and ``Occurrences`` are its inputs: they say how rows become word counts.

    Both have the settings ``model``, ``alpha`` and ``norm``. An input answers the first group of questions below and
    may restrict the second; everything else is the same for both.
    """

    model: Any
    alpha: Any
    norm: Any
    absent: ClassVar[str]  # the name of the term for everything that does not occur in a row

    # How rows become word counts

    @property
    def tokeniser(self) -> _core.Tokeniser:
        """The kernel that turns texts into words; threads share it."""
        raise NotImplementedError

    @property
    def split(self) -> re.Pattern[str] | None:
        """The regular expression that finds words; None if the kernel finds them."""
        return None

    @property
    def reading(self) -> dict[str, Any]:
        """How exports have to read a row: the settings of ``LinearWords.reading``."""
        raise NotImplementedError

    def empty_table(self, feature: Feature, n_classes: int) -> _core.Words:
        """Returns a table of words in which nothing is counted yet."""
        raise NotImplementedError

    def kernel_input(self, rows: ColumnReader, feature: Feature) -> Any:
        """Returns the texts of the rows, or their matrix of counts, as the kernels take them."""
        raise NotImplementedError

    def check_rows(self, rows: ColumnReader, feature: Feature, counting: bool = False) -> None:
        """Raises for the first count that is negative or too large; ``counting``: whether rows are counted rather than
        scored. Texts have no such count.
        """

    def missing_rows(self, rows: ColumnReader, feature: Feature) -> NDArray[np.bool_]:
        """Returns for each row whether it has no bag at all (rows)."""
        return np.zeros(rows.n_rows, dtype=np.bool_)

    def bags(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Real]:
        """Returns the distinct known words of each row as three arrays: the words of row i, and how much each counts or
        how often it occurs, are at ``offsets[i]`` to ``offsets[i + 1]`` of the word ids and of the amounts. ``sums``
        has the words that are known.
        """
        raise NotImplementedError

    def words_of_row(self, rows: ColumnReader, feature: Feature, table: _core.Words) -> list[RowWord] | None:
        """Returns the words of the first row that ``table`` has, in order; None if the row has no bag."""
        raise NotImplementedError

    def word(self, feature: Feature, name: str) -> tuple[str, str | None]:
        """Returns the column and the word that a name in the table stands for; the word is None if it is a column
        itself.
        """
        return feature.name, name

    def names(self, feature: Feature, words: Vocabulary) -> list[str]:
        """Returns the names of the words as people read them, in their order."""
        names: list[str] = words.table.words(words.ids)
        return names

    def draw(
        self, names: list[str], urns: Iterable[ClassUrn], n_rows: int, rng: np.random.Generator
    ) -> list[NDArray[Any]]:
        """Draws ``n_rows`` rows, class by class, and returns one array per column. ``names`` are the words, and
        ``urns`` what the rows of each class are drawn from.
        """
        raise NotImplementedError

    # Which words count, and how

    def words(self, feature: Feature, table: Any, by_name: bool = False) -> Vocabulary:
        """Returns the words in a table that an estimate of the feature uses; ``by_name``: whether in an order that does
        not depend on the order of the rows.
        """
        raise NotImplementedError

    def words_to_estimate(self, feature: Feature, table: Any, choice: Choice) -> Vocabulary:
        """Returns the words in ``table`` whose rows of scores an estimate makes, after checking that they can be
        estimated.
        """
        return self.words(feature, table)

    def alpha_of(self, choice: Choice, words: Vocabulary) -> float | Real:
        """Returns the pseudo-count of the prior: one number, or one for each word id."""
        return float(choice.alpha if self.alpha is None else self.alpha)

    def separate_count(self, choice: Choice, alpha: float | Real, n_cells: int = 0) -> float | Real | None:
        """Returns the pseudo-count (of the prior's ``alpha``) if the row of a word depends on that word's counts alone,
        so that rows can change one by one.

        None if it also depends on the counts of other words or on the number of texts. ``n_cells`` is the number of
        words × classes.
        """
        if self.idf or self.norm or choice.how == "gibbs" or self.model == "bernoulli":
            return None
        pseudo_count: float | Real = self.pseudo_count(choice, alpha)
        return pseudo_count

    @property
    def idf(self) -> bool:
        """Whether counts are multiplied by log(N / df)."""
        return False

    @property
    def once(self) -> bool:
        """Whether a word counts once in a text however often it occurs."""
        return self.model in ("presence", "bernoulli")

    @property
    def weighs(self) -> bool:
        """Whether the model weighs words instead of giving them a probability."""
        return self.model in WEIGHING

    @property
    def counts_tokens(self) -> bool:
        """Whether a score is a sum over tokens of which each counts one."""
        return False

    # Counting and estimating

    def counter(self, feature: Feature) -> Counter:
        """Returns the counter that turns the values of a feature of this family into sums."""
        return WORDS

    def has_density(self) -> bool:
        """Returns False: words have probabilities, not densities."""
        return False

    def pseudo_count(self, choice: Choice, alpha: float | Real) -> Any:
        """Returns what is added to the count of every word, given the prior's ``alpha``: one number, or one for each
        word id.
        """
        return event_models.pseudo_count(self.model, choice.how, alpha)

    def draws_from_urn(self, choice: Choice) -> bool:
        """Whether the words of a text are drawn from Pólya's urn."""
        return choice.how == "predictive" and self.counts_tokens and not self.weighs and self.model != "bernoulli"

    def estimate(self, features: Features, sums: Words, choice: Choice, rng: np.random.Generator) -> BagParameters:
        """Estimates the scores of all words from their counts (``sums``), as ``choice`` says; ``rng`` draws under
        "gibbs". The rows of words may be made later, when they are needed.
        """
        (feature,) = features  # the only one
        words = self.words_to_estimate(feature, sums.table, choice)
        alpha = self.alpha_of(choice, words)  # one pseudo-count, or one for each word id
        weighed_words = WeighedWords(words, self.once, bool(self.idf))
        urn = self.draws_from_urn(choice)
        scores = event_models.estimate_scores(self.model, weighed_words, choice.how, alpha, self.norm, urn, rng)
        word_ids = None if words.complete and not self.block else words.ids  # None: all words of the table
        # The pseudo-count, if a word's row of scores depends on its own counts alone.
        separate_count = self.separate_count(choice, alpha, words.n_words * words.n_classes)
        makes_rows_later = choice.waits and separate_count is not None and not self.block
        pending = float(sums.table.n_words) if makes_rows_later else None  # bytes of text until all rows are made
        table = core_of(words.table)
        return BagParameters(features, choice, table, word_ids, words.n_words, scores, separate_count, pending)

    def log_prior(self, parameters: BagParameters, sums: Words, choice: Choice) -> float:
        """Returns the log prior of the word probabilities that are among ``parameters``, over words and classes; 0 for
        weights, which are no probabilities. ``sums`` make no difference.
        """
        if choice.how == "mle" or self.weighs or self.idf:
            return 0.0
        words = parameters.words_in_any_order()
        # An array with one for each word id, or one number without an axis.
        pseudo_counts = np.maximum(np.asarray(self.alpha_of(choice, words)) - (choice.how == "map"), 0.0)
        if not pseudo_counts.any():
            return 0.0
        parameters.make_all_rows()
        return event_models.log_prior(parameters.scores, words.ids, pseudo_counts, self.model == "bernoulli")

    def n_parameters(self, features: Features, sums: Words) -> list[tuple[int, int]]:
        """Returns one pair, for the only feature: how many free probabilities each class has, and 0 that classes share.
        ``sums`` are its counted words.
        """
        n_words = self.words(features[0], sums.table).n_words
        return [(n_words if self.model == "bernoulli" else max(n_words - 1, 0), 0)]

    # What words tell about the class

    def words_in_use(self, feature: Feature, sums: Words) -> Vocabulary:
        """Returns the words in ``sums`` that an estimate uses, in an order that does not depend on the order of the
        rows.
        """
        return self.words(feature, sums.table, by_name=True)

    def words_in_rows(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Int]:
        """Returns the numbers of the rows that have a bag; and, for every distinct word of every row, the row's number
        and the word's id, as two arrays. ``sums`` has the words that are known.
        """
        # The words of row i are ids[offsets[i]:offsets[i + 1]].
        offsets, ids, _ = self.bags(rows, feature, sums, threads)
        row_of_word = np.repeat(np.arange(rows.n_rows), np.diff(offsets))
        return np.flatnonzero(~self.missing_rows(rows, feature)), row_of_word, np.asarray(ids, dtype=np.int64)

    def can_leave_one_out(self, features: Features, choice: Choice, weighted: bool) -> bool:
        """Whether there is a formula for leaving one row out; here there is none, whatever the arguments are."""
        return False


def bag_of_words(feature: Feature) -> BagOfWords:
    """Returns the family of a column of texts or of a matrix of counts."""
    assert isinstance(feature.family, BagOfWords)
    return feature.family


def runs_python(family: Family) -> bool:
    """Whether Python itself goes through every row, so that several threads are no faster, and only one hears Ctrl-C."""
    return isinstance(family, BagOfWords) and family.split is not None
