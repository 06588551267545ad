"""Occurrences: a block of columns, each of which says how often something occurs in the row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags import event_models
from banbury.families.bags.event_models import CERTAIN, BernoulliGrowth, WeighedWords, WordScores
from banbury.families.bags.parameters import BagParameters, Ids
from banbury.families.bags.vocabulary import Learned, Vocabulary, WordClassPairs, mutual_information, pairs_of
from banbury.families.bags.words import WordFamily
from banbury.families.evidence import NamedValues, Term
from banbury.families.family import (
    Choice,
    ColumnReader,
    Feature,
    Parameters,
    by_class,
    check_positive,
    check_settings,
)
from banbury.sums import Words
from banbury.threads import n_threads

MOST_OCCURRENCES = 2.0**500  # of a column in one row that is asked about
MOST_COUNTED = 2.0**62  # they stay below this in one that is counted
LONGEST = 1e15  # occurrences in a row that is drawn

MODELS = ("multinomial", "complement", "bernoulli")
MOST_WEIGHTS = 1 << 20  # numbers of columns × classes that rows without gaps are multiplied with
MOST_ROUGH = 1 << 23  # of those that are held in single precision too
MANY_CELLS = 4  # of each column, that pay for making these
UNREAD = _core.Tokeniser("word", True, False, 1, 1, [], False, False)  # counts need none, and the kernel asks for one


@dataclass(frozen=True, repr=False)
class Occurrences(WordFamily):
    """A matrix that says how often each word, product or event occurs in a row: texts that were counted elsewhere.

    Args:
        model: "multinomial" (the columns share all occurrences of a class), "complement" (how little a column belongs
            to all other classes) or "bernoulli" (absence is evidence too).
        threshold: Values above it count as 1 and all others as 0. None uses numbers as they are, whole or not, such as
            TF-IDF weights; under "bernoulli" they must then be between 0 and 1.
        alpha: The pseudo-count of every column, or a list with one per column. The minimum is 1e-10, except that
            "bernoulli" keeps zeros under "mle" and "map".
        norm: Divides the weights of "complement" in each class by the sum of their absolute values.
        missing: Whether a missing number counts as 0 or raises an error.

    A column that no row has keeps its pseudo-count.

    >>> import banbury as bb
    >>> counts = {"free": [2, 1, 0], "noon": [0, 0, 3], "kind": ["spam", "spam", "ham"]}
    >>> tally = bb.count(counts, target="kind", features={("free", "noon"): bb.Occurrences()})
    >>> bb.estimate(tally).posterior({"free": [1], "noon": [0]}).round(3).tolist()
    [[0.111, 0.889]]
    """

    model: Literal["multinomial", "complement", "bernoulli"] = "multinomial"
    threshold: float | None = None
    alpha: float | Sequence[float] | None = None
    norm: bool = False
    missing: Literal["skip", "error"] = "skip"

    name: ClassVar[str] = "occurrences"
    idf: ClassVar[bool] = False
    once: ClassVar[bool] = False  # what counts once is counted so
    counting: ClassVar[tuple[str, ...]] = ("threshold",)
    block: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or self.model not in MODELS:
            raise errors.unknown_choice("model", self.model, MODELS)
        check_settings(self, "threshold", zero=True)
        errors.require(self.norm in (True, False), "norm", self.norm, "True or False")
        if self.missing not in ("skip", "error"):
            raise errors.unknown_choice("missing", self.missing, ["skip", "error"])
        errors.require(
            not self.norm or self.model == "complement", "norm", self.norm, "False unless model='complement'"
        )
        if self.alpha is not None and np.ndim(self.alpha) == 0:
            check_positive("alpha", self.alpha, zero=True)
        elif self.alpha is not None:
            alphas = np.asarray(self.alpha, dtype=np.float64)
            if alphas.ndim != 1 or not np.all((alphas >= 0) & (alphas <= 1e100)):
                raise errors.bad_setting("alpha", self.alpha, "a number of at least 0, or one for each column")
            object.__setattr__(self, "alpha", tuple(alphas.tolist()))

    # Counting

    @property
    def tokeniser(self) -> _core.Tokeniser:
        return UNREAD

    def empty_table(self, feature: Feature, n_classes: int) -> _core.Words:
        n_columns = len(feature.inputs)
        return _core.Words(n_classes, n_columns).with_columns(n_columns)

    def kernel_input(self, rows: ColumnReader, feature: Feature) -> _core.Matrix:
        cells = rows.occurrences(feature.inputs)
        sparse = isinstance(cells, tuple)
        values, places = (cells[2], cells[:2]) if sparse else (cells, None)
        return _core.Matrix(values, places, len(feature.inputs), self.threshold, self.missing == "skip")

    def check_countable(self, rows: ColumnReader, feature: Feature) -> None:
        self.check(rows, feature, counting=True)

    def word(self, feature: Feature, name: str) -> tuple[str, str | None]:
        return feature.columns[int(name.removeprefix("#"))], None

    def check(self, rows: ColumnReader, feature: Feature, counting: bool = False) -> None:
        """Raises for numbers that are no occurrences: below zero, or more than can be added up; a threshold takes any."""
        cells = rows.occurrences(feature.inputs)
        values = np.asarray(cells[2] if isinstance(cells, tuple) else cells)
        if self.threshold is not None or not values.size or values.dtype.kind not in "fi":
            return
        low = np.fmin.reduce(values, axis=None)
        high = np.fmax.reduce(values, axis=None)
        most = float(np.nextafter(MOST_COUNTED, 0.0)) if counting else MOST_OCCURRENCES
        if (low >= 0 and high <= most) or low != low:
            return
        at = int(np.argmax((values < 0) | (values > most)))
        if isinstance(cells, tuple):
            starts, columns = (np.asarray(part) for part in cells[:2])
            row = int(np.searchsorted(starts, at, side="right")) - 1
            column = int(columns[at])
        else:
            row, column = divmod(at, values.shape[1])
        number = float(values.reshape(-1)[at])
        what = "negative" if number < 0 else "too many"
        raise errors.bad_value(what, number, feature.inputs[column], rows.first_row + row, rows.source)

    @property
    def reading(self) -> dict[str, Any]:
        """How a row is read, for those who do it elsewhere."""
        return {"threshold": self.threshold, "count": "count", "length": "none"}

    def occurring(self, rows: ColumnReader, feature: Feature) -> Any:
        """How often each column occurs in each row, as a sparse matrix; what is missing does not."""
        from scipy import sparse

        cells = rows.occurrences(feature.inputs)
        shape = rows.n_rows, len(feature.inputs)
        plain = (cells[2], cells[1], cells[0]) if isinstance(cells, tuple) else np.asarray(cells)
        matrix = sparse.csr_matrix(plain, shape=shape, dtype=np.float64)
        matrix.data = np.nan_to_num(matrix.data, copy=False, posinf=np.inf)
        if self.threshold is not None:
            matrix.data = (matrix.data > self.threshold).astype(np.float64)
        matrix.eliminate_zeros()
        return matrix

    # Estimating

    @property
    def weighs(self) -> bool:
        """Whether the model weighs columns and gives them no probability."""
        return self.model == "complement"

    def column_counts(self, choice: Choice, n_columns: int) -> float | Real:
        alpha = choice.alpha if self.alpha is None else self.alpha
        if not isinstance(alpha, tuple):
            return float(alpha)  # type: ignore[arg-type]
        expected = f"one number, or one for each of {n_columns} columns"
        errors.require(len(alpha) == n_columns, "alpha", f"{len(alpha)} numbers", expected)
        return np.array(alpha)

    def alpha_of(self, choice: Choice, words: Vocabulary) -> float | Real:
        """The pseudo-count of the prior: one number, or one for each word by its number."""
        alpha = self.column_counts(choice, words.n_words)
        if not isinstance(alpha, np.ndarray):
            return alpha
        by_number = np.ones(int(words.ids.max(initial=0)) + 1)
        by_number[words.ids] = alpha
        return by_number

    def words(self, sums: Words, n_columns: int) -> Vocabulary:
        table: Any = sums.table
        core: _core.Words = table.core if isinstance(table, Learned) else table
        if core.n_ids < n_columns:
            table = table.with_columns(n_columns)
            core = table.core if isinstance(table, Learned) else table
        return Vocabulary(table, core.columns()[:n_columns].astype(np.uint32), True)

    def estimate(
        self, features: tuple[Feature, ...], sums: Words, choice: Choice, rng: np.random.Generator
    ) -> OccurrencesParameters:
        (feature,) = features
        words = self.words(sums, len(feature.inputs))
        alpha = self.alpha_of(choice, words)
        scores = self._scores(words, choice, alpha, rng)
        table = words.table.core if isinstance(words.table, Learned) else words.table
        live = self._live_count(choice, alpha, words.n_words * words.n_classes)
        return OccurrencesParameters(features, choice, table, words.ids, words.n_words, scores, live)

    def log_prior(self, parameters: OccurrencesParameters, sums: Words, choice: Choice) -> float:
        mode = np.asarray(self.column_counts(choice, parameters.n_words)) - (choice.how == "map")
        pseudo = np.broadcast_to(np.maximum(mode * (choice.how != "mle"), 0.0), parameters.n_words)
        if self.model == "complement" or not pseudo.any():
            return 0.0
        logs = parameters.weights
        if self.model == "bernoulli":
            logs = logs - 2.0 * np.logaddexp(0.0, logs)
        return float(pseudo @ np.where(pseudo[:, None] > 0, logs, 0.0).sum(axis=1))

    def _live_count(self, choice: Choice, alpha: float | Real, n_cells: int) -> Any:
        """The pseudo-count of models whose rows depend on a column's own counts alone."""
        a = event_models.pseudo_count(self.model, choice.how, alpha)
        at_once = (
            n_cells <= MOST_WEIGHTS or isinstance(a, np.ndarray) or a <= 0
        )  # all rows are soon made, or have to be
        return None if self.norm or choice.how == "gibbs" or (self.model == "bernoulli" and at_once) else a

    def _scores(self, words: Vocabulary, choice: Choice, alpha: float | Real, rng: np.random.Generator) -> WordScores:
        for pairs in words if self.model == "bernoulli" and self.threshold is None else ():
            self.check_shares(pairs, words.texts)
        weighed = WeighedWords(words, False, False)
        return event_models.estimate_scores(self.model, weighed, choice.how, alpha, self.norm, False, rng)

    def check_shares(self, pairs: WordClassPairs, texts: Real) -> None:
        """Raises where a column occurs more often than there are rows, under Bernoulli: then some number was above 1."""
        if self.threshold is None and (pairs.occurrences > texts[pairs.classes] * (1.0 + 1e-9)).any():
            raise errors.bad_setting("model", "bernoulli", "a different model for counts above 1, or use threshold=0.0")

    def n_parameters(self, features: tuple[Feature, ...], sums: Any) -> list[tuple[int, int]]:
        n_columns = len(features[0].inputs)
        return [(n_columns if self.model == "bernoulli" else max(n_columns - 1, 0), 0)]

    def words_in_use(self, feature: Feature, sums: Words) -> Vocabulary:
        return self.words(sums, len(feature.inputs))

    def words_in_rows(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Int]:
        row, column = self.occurring(rows, feature).nonzero()
        return np.arange(rows.n_rows), row, self.words_in_use(feature, sums).ids[column].astype(np.int64)

    def bags(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Real]:
        matrix = self.occurring(rows, feature)
        matrix.sum_duplicates()
        return matrix.indptr, self.words_in_use(feature, sums).ids[matrix.indices], matrix.data

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        return False  # refitting is quicker


@dataclass(eq=False)
class OccurrencesParameters(BagParameters):
    """What every column of a block says of each class."""

    growth: BernoulliGrowth | None = None  # of a model whose rows depend on the texts of their classes too
    stale: bool = False  # whether rows are to be made when they are asked for

    value_kind: ClassVar[Literal["word", "stretch"]] = "stretch"

    # Scoring

    def _part(self, rows: ColumnReader) -> _core.Part:
        kernel_input = self.family.kernel_input(rows, self.features[0])
        places = kernel_input.places
        if self.stale and places is not None:
            columns = np.unique(places[1])
            self._make_rows(self.vocabulary.ids[columns] if len(columns) < self.n_words // 4 else None)
        if self._small and self._finite:
            return _core.LinearPart(kernel_input, self.weights, self.scores.constant)
        scores = self.scores
        rows_of_words = UNREAD, self.table, scores.weights, scores.base, scores.constant
        return _core.WordsPart(kernel_input, *rows_of_words, False, None, self._rough_of(places))

    def _rough_of(self, places: Any) -> _core.Rough | None:
        """What the columns weigh in single precision, once so many cells are asked about that it pays to make it."""
        if self.stale or places is None or self.n_words * len(self.scores.base) > MOST_ROUGH:
            return None
        return self._rough if len(places[1]) >= MANY_CELLS * self.n_words or "_rough" in self.__dict__ else None

    @cached_property
    def _rough(self) -> _core.Rough | None:
        return self.scores.weights.rough(self.table, self.scores.base, self.n_words, n_threads(None))

    @property
    def _small(self) -> bool:
        return self.n_words * len(self.scores.base) <= MOST_WEIGHTS

    @cached_property
    def weights(self) -> Real:
        """What one occurrence of each column adds, (columns, classes)."""
        self._make_all_rows()
        _, rows, scale = self.scores.weights.rows(self.vocabulary.ids)
        return np.asarray(scale[:, None] * (rows + self.scores.base))

    @cached_property
    def _finite(self) -> bool:
        return bool(np.isfinite(self.weights).all())

    def _make_all_rows(self) -> None:
        if self.stale:
            self._make_rows(None)

    def _make_rows(self, ids: Ids | None) -> None:
        """Makes the rows of these columns, or of all, under a Bernoulli model that has grown."""
        assert isinstance(self.pseudo_count, float)
        pairs = pairs_of(self.table, self.vocabulary.ids if ids is None else ids)
        texts = self.table.texts().value
        cells = pairs.cells(pairs.occurrences, len(texts))
        event_models.set_cells(self.scores.weights, pairs, event_models.presence(cells, texts, self.pseudo_count), None)
        self.stale = ids is not None

    def _update_rows(self, ids: Ids) -> None:
        a = self.pseudo_count
        assert a is not None
        pairs = pairs_of(self.table, ids)
        if self.family.model == "bernoulli":
            self._grow(pairs, float(a))
        else:
            event_models.set_rows(self.scores, pairs, pairs.occurrences, a, self.family.model)
        for name in ("weights", "_finite", "_rough"):
            self.__dict__.pop(name, None)

    def _grow(self, pairs: WordClassPairs, a: float) -> None:
        """Brings the constant of a Bernoulli model up to date; its rows are made when they are asked for."""
        texts = self.table.texts().value
        self.family.check_shares(pairs, texts)
        if self.growth is None:
            self.growth = BernoulliGrowth(self.vocabulary)
            self.scores.constant, _ = self.growth.like.absent(self.n_words, self.growth.texts, a)
        self.scores.constant = self.growth.follow(pairs, texts, a, self.scores.constant)
        self.stale = True

    @property
    def vocabulary(self) -> Vocabulary:
        assert self.kept is not None
        return Vocabulary(self.table, self.kept, True)

    def _names(self, words: Vocabulary) -> list[str]:
        return list(self.features[0].inputs)

    def _word(self, ids: Ids, i: int) -> tuple[str, str]:
        name, _ = self.family.word(self.features[0], super()._word(ids, i)[1])
        return name, "occurs"

    # Looking

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """Of the columns that occur, each with its number; the sum is the likelihood.

        Under a Bernoulli model the last term is what all that does not occur says together.
        """
        names = self.features[0].inputs
        cells = rows.occurrences(names)
        if isinstance(cells, tuple):
            offsets, columns, values = (np.asarray(part) for part in cells)
            at = slice(int(offsets[0]), int(offsets[1]))
            columns = columns[at]
            values = values[at].astype(np.float64)
        else:
            row = np.nan_to_num(np.asarray(cells[0], dtype=np.float64), nan=0.0)
            columns = np.flatnonzero(row)
            values = row[columns]
        counts = values if self.family.threshold is None else (values > self.family.threshold).astype(np.float64)
        there = counts != 0
        columns = columns[there]
        values = values[there]
        counts = counts[there]
        rest = self.scores.constant
        weights = self.weights[columns]
        if self.scores.certain is not None:
            sure = weights == CERTAIN
            rest = np.where(sure.sum(axis=0) < self.scores.certain, -np.inf, rest)
            weights = np.where(sure, 0.0, weights)
        occurrences = zip(columns.tolist(), values.tolist(), counts.tolist(), weights, strict=True)
        named_rows = ((names[j], int(x) if x == int(x) else x, np.asarray(n * row)) for j, x, n, row in occurrences)
        terms = [Term(*term) for term in named_rows]
        return [*terms, Term(self.features[0].name, OTHERS, rest)] if rest.any() else terms

    # Drawing

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        """Column by column: as many occurrences as the class has on average, drawn one by one; or a coin for each."""
        family = self.family
        n_columns = self.n_words
        if family.model == "complement":
            raise errors.bad_setting("model", "complement", "a model that can generate rows, such as 'multinomial'")
        drawn = np.zeros((len(classes), n_columns))
        texts = self.table.texts().value
        lengths = self.table.occurrences().value / np.where(texts > 0, texts, 1.0)
        for c, rows in enumerate(by_class(classes, len(texts))):
            weights = self.weights[:, c]
            if family.model == "bernoulli":
                with np.errstate(over="ignore"):
                    drawn[rows] = rng.random((len(rows), n_columns)) < 1.0 / (1.0 + np.exp(-weights))
            elif len(rows):
                share = np.exp(weights - max(float(weights.max()), -1e300))
                share = share / share.sum() if share.any() else np.full(n_columns, 1.0 / n_columns)
                drawn[rows] = rng.multinomial(rng.poisson(min(lengths[c], LONGEST), len(rows)), share)
        return [np.ascontiguousarray(column) for column in drawn.T]


OTHERS = "(all others absent)"


def check_occurrences(groups: Iterable[Parameters], rows: ColumnReader) -> None:
    """Raises for numbers that the kernel would score, and that are no occurrences."""
    for group in groups:
        if isinstance(group, OccurrencesParameters):
            group.family.check(rows, group.features[0])


def telling_columns(parameters: Parameters, sums: Words, n: int | None) -> NamedValues:
    """The columns of a block whose occurring tells most of the class."""
    assert isinstance(parameters, OccurrencesParameters)
    names = parameters.features[0].inputs
    vocabulary = parameters.family.words(sums, len(names))
    bits = np.concatenate([mutual_information(pairs, vocabulary.texts) for pairs in vocabulary])
    best = np.argsort(-bits, kind="stable")[:n].tolist()
    share = np.concatenate([shares for _, shares, _ in parameters.values()])[best]
    shown = [names[k] for k in best]
    return NamedValues(shown, shown, bits[best], len(names) - len(best), share, "column", "telling")
