"""Occurrences: a bag of words whose rows are a matrix of counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags.bag_of_words import BagOfWords
from banbury.families.bags.parameters import BagParameters, ClassUrn, RowWord, fits_in_matrix
from banbury.families.bags.vocabulary import Vocabulary, WordClassPairs, core_of, mutual_information
from banbury.families.evidence import NamedValues
from banbury.families.family import Choice, ColumnReader, Feature, Parameters, check_positive, check_settings
from banbury.sums import Words

MOST_OCCURRENCES = 2.0**500  # of a column in one row that is scored
MOST_COUNTED = 2.0**62  # of a column in one row that is counted; they stay below this
LONGEST = 1e15  # occurrences in a row that is drawn

MODELS = ("multinomial", "complement", "bernoulli")
NO_TOKENISER = _core.Tokeniser("word", True, False, 1, 1, [], False, False)  # the kernel asks for one, counts need none


@dataclass(frozen=True, repr=False)
class Occurrences(BagOfWords):
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
    absent: ClassVar[str] = "(all others absent)"
    once: ClassVar[bool] = False  # the threshold decides it while rows are counted
    draws_documents: ClassVar[bool] = False
    counting: ClassVar[tuple[str, ...]] = ("threshold",)
    block: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raises unless the settings are valid and go together; a list of pseudo-counts becomes a tuple."""
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

    # How a row becomes word counts

    @property
    def tokeniser(self) -> _core.Tokeniser:
        """A tokeniser that no row needs, because rows are counts; the kernel asks for one."""
        return NO_TOKENISER

    @property
    def reading(self) -> dict[str, Any]:
        """How exports have to read a row: the threshold, and whether a number counts as it is or as presence."""
        count = "count" if self.threshold is None else "presence"
        return {"threshold": self.threshold or 0.0, "count": count, "length": "none"}

    def empty_table(self, feature: Feature, n_classes: int) -> _core.Words:
        """Returns a table with a word for each column, none of which has occurred yet, for ``n_classes`` classes."""
        n_columns = len(feature.inputs)
        return _core.Words(n_classes, n_columns).with_columns(n_columns)

    def kernel_input(self, rows: ColumnReader, feature: Feature) -> _core.Matrix:
        """Returns the numbers of the rows as a dense or sparse matrix for the kernels (rows × columns)."""
        values = rows.occurrences(feature.inputs)  # a dense matrix, or the three arrays of a sparse one
        places = None
        if isinstance(values, tuple):
            offsets, columns, values = values  # where each row starts; the column and the number of each cell
            places = (offsets, columns)
        return _core.Matrix(values, places, len(feature.inputs), self.threshold, self.missing == "skip")

    def check_rows(self, rows: ColumnReader, feature: Feature, counting: bool = False) -> None:
        """Raises for the first number that is negative or too large; with a threshold, all numbers are valid.
        ``counting``: whether rows are counted rather than scored, which allows less.
        """
        cells = rows.occurrences(feature.inputs)  # a matrix, or (offsets of rows, columns, values) if it is sparse
        values = np.asarray(cells[2] if isinstance(cells, tuple) else cells)  # rows × columns, or one per cell
        if self.threshold is not None or not values.size or values.dtype.kind not in "fi":
            return
        # The least and the greatest number, and the largest that is valid.
        low = np.fmin.reduce(values, axis=None)
        high = np.fmax.reduce(values, axis=None)
        largest = float(np.nextafter(MOST_COUNTED, 0.0)) if counting else MOST_OCCURRENCES
        if (low >= 0 and high <= largest) or low != low:
            return
        first_bad = int(np.argmax((values < 0) | (values > largest)))  # its place in ``values``, row by row
        if isinstance(cells, tuple):
            offsets, columns, _ = cells
            row = int(np.searchsorted(np.asarray(offsets), first_bad, side="right")) - 1
            column = int(np.asarray(columns)[first_bad])
        else:
            row, column = divmod(first_bad, values.shape[1])
        number = float(values.reshape(-1)[first_bad])
        what = "negative" if number < 0 else "too many"
        raise errors.bad_value(what, number, feature.inputs[column], rows.first_row + row, rows.source)

    def number_matrix(self, rows: ColumnReader, feature: Feature) -> Any:
        """Returns the numbers of the rows as a new sparse matrix (rows × columns); missing numbers are 0."""
        from scipy import sparse

        cells = rows.occurrences(feature.inputs)  # a matrix, or (offsets of rows, columns, values) if it is sparse
        shape = rows.n_rows, len(feature.inputs)
        # SciPy takes the three arrays in the opposite order.
        contents = cells[::-1] if isinstance(cells, tuple) else np.asarray(cells)
        matrix = sparse.csr_matrix(contents, shape=shape, dtype=np.float64, copy=True)
        np.nan_to_num(matrix.data, copy=False, posinf=np.inf)
        return matrix

    def count_numbers(self, numbers: Real) -> Real:
        """Returns how much each of these numbers counts, in their shape: itself, or 1 above the threshold and 0
        otherwise.
        """
        return numbers if self.threshold is None else (numbers > self.threshold).astype(np.float64)

    def bags(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Real]:
        """Returns the columns that occur in each row as three arrays: the word ids of row i, and how much each counts,
        are at ``offsets[i]`` to ``offsets[i + 1]`` of the other two. ``sums`` has the word of each column.
        """
        matrix = self.number_matrix(rows, feature)  # rows × columns, sparse
        matrix.data = self.count_numbers(matrix.data)
        matrix.eliminate_zeros()
        matrix.sum_duplicates()
        return matrix.indptr, self.words(feature, sums.table).ids[matrix.indices], matrix.data

    def words_of_row(self, rows: ColumnReader, feature: Feature, table: _core.Words) -> list[RowWord] | None:
        """Returns the columns that occur in the only row, in order, each with its number (``table`` has their word
        ids).
        """
        matrix = self.number_matrix(rows, feature)  # 1 × columns, sparse
        columns = matrix.indices  # that the row has a number in
        ids = self.words(feature, table).ids[columns]
        # Of each such column: the word's id, the column, its number, and how much this counts.
        arrays = (ids, columns, matrix.data, self.count_numbers(matrix.data))
        return [
            RowWord(word_id, feature.inputs[column], int(number) if number.is_integer() else number, amount)
            for word_id, column, number, amount in zip(*(array.tolist() for array in arrays), strict=True)
            if amount
        ]

    def word(self, feature: Feature, name: str) -> tuple[str, str | None]:
        """Returns the column that a name in the table (``#`` and the number of the column) stands for, and None for the
        word.
        """
        return feature.columns[int(name.removeprefix("#"))], None

    def names(self, feature: Feature, words: Vocabulary) -> list[str]:
        """Returns the names of the columns; ``words`` has a word for each of them, in the same order."""
        return list(feature.inputs)

    def draw(
        self, names: list[str], urns: Iterable[ClassUrn], n_rows: int, rng: np.random.Generator
    ) -> list[NDArray[Any]]:
        """Draws for ``n_rows`` rows how often each column (``names``) occurs in each, or, under a Bernoulli model,
        whether it does; returns one array per column. ``urns`` are what the rows of each class are drawn from.
        """
        counts = np.zeros((n_rows, len(names)))  # rows × columns
        for urn in urns:  # ``share``: the probability of each column in the class
            if self.model == "bernoulli":
                counts[urn.rows] = rng.random((len(urn.rows), len(names))) < urn.share
            else:
                lengths = rng.poisson(min(urn.length, LONGEST), len(urn.rows))  # occurrences in each row
                counts[urn.rows] = rng.multinomial(lengths, urn.share)
        return [np.ascontiguousarray(column) for column in counts.T]

    # Which words count: every column, whether or not it ever occurs

    def words(self, feature: Feature, table: Any, by_name: bool = False) -> Vocabulary:
        """Returns a word of ``table`` for every column, in the order of columns, whether or not it ever occurred;
        ``by_name`` makes no difference.
        """
        n_columns = len(feature.inputs)
        if core_of(table).n_ids < n_columns:
            table = table.with_columns(n_columns)
        return Vocabulary(table, core_of(table).columns()[:n_columns].astype(np.uint32), complete=True)

    def words_to_estimate(self, feature: Feature, table: Any, choice: Choice) -> Vocabulary:
        """Returns a word of ``table`` for every column, in their order; raises if a Bernoulli model has counts above 1."""
        words = self.words(feature, table)
        for pairs in words if self.model == "bernoulli" else ():
            self.check_shares(pairs, words.texts)
        return words

    def check_shares(self, pairs: WordClassPairs, texts: Real) -> None:
        """Raises if some column occurs more often than there are rows, so that a Bernoulli model has counts above 1.
        ``pairs`` has the occurrences of some columns in each class, and ``texts`` the number of rows of each class.
        """
        if self.threshold is None and (pairs.occurrences > texts[pairs.classes] * (1.0 + 1e-9)).any():
            raise errors.bad_setting("model", "bernoulli", "a different model for counts above 1, or use threshold=0.0")

    def alpha_of_columns(self, choice: Choice, n_columns: int) -> float | Real:
        """Returns the pseudo-count of the prior: one number, or an array with one for each column. Raises if there are
        more or fewer than columns.
        """
        alpha = choice.alpha if self.alpha is None else self.alpha
        if not isinstance(alpha, tuple):
            return float(alpha)  # type: ignore[arg-type]
        expected = f"one number, or one for each of {n_columns} columns"
        errors.require(len(alpha) == n_columns, "alpha", f"{len(alpha)} numbers", expected)
        return np.array(alpha)

    def alpha_of(self, choice: Choice, words: Vocabulary) -> float | Real:
        """Returns the pseudo-count of the prior: one number, or an array with one for each word id."""
        alpha = self.alpha_of_columns(choice, words.n_words)
        if not isinstance(alpha, np.ndarray):
            return alpha
        alpha_by_id = np.ones(int(words.ids.max(initial=0)) + 1)
        alpha_by_id[words.ids] = alpha
        return alpha_by_id

    def separate_count(self, choice: Choice, alpha: float | Real, n_cells: int = 0) -> float | Real | None:
        """Returns the pseudo-count if a column's row of scores can follow its own counts, else None. A Bernoulli model
        can if it is large (``n_cells``, columns × classes): its constant changes at once, and its rows when they are
        needed. ``alpha`` is the prior's pseudo-count.
        """
        if self.model != "bernoulli" or choice.how == "gibbs":
            return super().separate_count(choice, alpha)
        pseudo_count = self.pseudo_count(choice, alpha)  # one number, or one for each word id
        if fits_in_matrix(n_cells) or isinstance(pseudo_count, np.ndarray) or pseudo_count <= 0:
            return None
        return float(pseudo_count)


def informative_columns(parameters: Parameters, sums: Words, n: int | None) -> NamedValues:
    """Returns the n columns (None: all) of a matrix of counts with the most information about the class, the most
    informative first. ``sums`` are the counted words of the only feature, and ``parameters`` were estimated from them.
    """
    assert isinstance(parameters, BagParameters)
    feature = parameters.features[0]
    names = feature.inputs
    words = parameters.family.words(feature, sums.table)  # one for each column
    information = np.concatenate([mutual_information(pairs, words.texts) for pairs in words])  # of each column
    best = np.argsort(-information, kind="stable")[:n].tolist()  # column numbers
    # P(word | class) (best columns × classes).
    share = np.concatenate([shares for _, shares, _ in parameters.values()])[best]
    best_names = [names[k] for k in best]
    return NamedValues(
        best_names, best_names, information[best], len(names) - len(best), share, "column", "informative"
    )
