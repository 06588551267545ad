"""The next labels: which unlabelled rows to ask a person about, so that few answers teach much.

Among the rows that the model is least sure of, those are chosen that represent the others: similar to many of them, unlike rows
that are labelled already, and unlike each other. K. Wei, R. Iyer and J. Bilmes, *Submodularity in data subset selection and
active learning* (2015). Some rows are drawn at random instead, so that accuracy can be estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.errors import many
from banbury.families.keys import number_values
from banbury.insight.wrong_labels import Listed
from banbury.model.explain.page import percent, quote_class
from banbury.model.naive_bayes import Model, check_seed, model_of
from banbury.quality.curves import PeerArrays
from banbury.reading import Batch, n_threads
from banbury.reading.columns import empty_column
from banbury.rows.labelled import MemoryRows
from banbury.tally.table import HASH_FACTOR, content_hashes, mix
from banbury.tally.tally import Label

RANDOM_SHARE = 0.1  # of the rows are drawn at random
CANDIDATES_PER_ROW = 10  # how many unsure rows are considered for each row that is chosen
CANDIDATES_TOGETHER = 2_000  # candidates that are compared with each other at a time
UNSURE = "unsure"  # why a row is chosen
LIKE_OTHERS = "similar to other uncertain rows"
AT_RANDOM = "at random"
DECIMALS = 9  # numbers are rounded to so many decimals, so that the order of rows does not matter


def next_to_label(
    model: Model,
    pool: Any,
    *,
    n: int = 10,
    labelled: Any = None,
    share: float = RANDOM_SHARE,
    seed: int = 0,
    **reading: Any,
) -> NextToLabel:
    """Chooses ``n`` unlabelled rows whose labels would help the model most, and some at random.

    The candidates are the rows with the smallest margins between the two most probable classes, ten times as many as
    requested. Of these, rows are chosen that are similar to many other candidates and unlike the labelled rows and the
    rows chosen before. Similarity is the cosine of TF-IDF-like vectors of words, values and scaled numbers. The row
    with the smallest margin comes first. The order of the pool does not change the result.

    A row with a label in the model's target column is labelled and is not chosen; ``labelled`` can hold more labelled
    rows. ``share`` of the rows are drawn at random from the whole pool, with ``seed``, and marked ``random``: accuracy
    on them estimates accuracy on the pool, because the other rows are harder than average. All other options say how
    the pool is read.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> model = bb.estimate(bb.count({name: column[:8] for name, column in weather.items()}, target="play"))
    >>> pool = {name: column[8:] for name, column in weather.items() if name != "play"}
    >>> [(row.row, row.predicted, row.against) for row in bb.next_to_label(model, pool, n=2).rows]
    [(5, 'no', 'yes'), (1, 'yes', 'no')]
    """
    errors.check_whole("n", n, 1)
    check_seed(seed)
    model = model_of(model)
    is_share = isinstance(share, (int, float, np.number)) and not isinstance(share, bool) and 0 <= share <= 1
    errors.require(is_share, "share", share, "a share of the rows from 0 to 1")
    _check_model(model)
    rows = _Rows.of(model, pool, reading)
    if not len(rows.unlabelled):
        problem = f"all {many(rows.n, 'row')} already have a label in the column {model.target!r}"
        raise errors.EmptyData(f"{problem}. Pass rows whose label is missing.")
    n_random = min(int(np.floor(n * float(share) + 0.5)), len(rows.unlabelled))
    random_rows = rows.draw(n_random, int(seed))
    # The row numbers of the candidates, the least sure first; in a tie, by content.
    candidate_rows = np.setdiff1d(rows.unlabelled, random_rows)
    candidate_rows = candidate_rows[
        np.lexsort((rows.hashes[candidate_rows], np.round(rows.log_odds[candidate_rows], DECIMALS)))
    ]
    labelled_batches = rows.take(np.flatnonzero(rows.has_label))  # of the pool, and then others
    if labelled is not None:
        labelled_batches += _Rows.of(model, labelled, reading).memory.batches
    n_chosen = min(int(n) - n_random, len(candidate_rows))
    chosen_rows = _choose_representatives(rows, candidate_rows, n_chosen, labelled_batches)
    least_sure_rows = set(candidate_rows[: len(chosen_rows)].tolist())
    ranked_rows = chosen_rows[np.argsort(np.round(rows.log_odds[chosen_rows], DECIMALS), kind="stable")]
    next_rows = [rows.describe(row, UNSURE if row in least_sure_rows else LIKE_OTHERS) for row in ranked_rows.tolist()]
    next_rows += [rows.describe(row, AT_RANDOM) for row in random_rows.tolist()]
    return NextToLabel(
        tuple(next_rows), len(rows.unlabelled), rows.n - len(rows.unlabelled), float(share), int(seed), model.target
    )


def _check_model(model: Any) -> None:
    """Raises an error unless this is a model with at least two classes and a single class per row."""
    expected = "a Model, from bb.estimate, or an estimator, with a single class per row"
    errors.require(isinstance(model, Model), "the model", type(model).__name__, expected)
    if len(model.classes) < 2:
        expected = "a model with at least two classes"
        raise errors.bad_setting("the model", f"one class, {model.classes[0]!r}", expected)


# The rows of a pool --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a pool under the model's schema, with hashes of their content and their log posteriors."""

    model: Model
    memory: MemoryRows  # the rows themselves
    hashes: NDArray[np.uint64]  # of the content of each row
    scores: Real  # log posteriors (rows, classes)
    has_label: NDArray[np.bool_]  # whether each row has a label

    @classmethod
    def of(cls, model: Model, data: Any, reading: Any) -> _Rows:
        """Reads the rows of ``data`` and returns them with their log posteriors by the model (rows × classes).
        ``reading`` has the options for reading. Raises an error if there are no rows.
        """
        source = model._read(data, reading)
        scored_batches: list[tuple[Any, ...]] = []  # each after a batch: the hashes, scores and has_label of its rows
        for batch, scores, n_impossible in model._batches(source, "log_posterior"):
            model._warn_impossible(n_impossible, "log_posterior")
            has_label = np.zeros(batch.n_rows, dtype=np.bool_)
            if model.target in batch.names and model.target not in model.schema.columns:
                class_numbers, _ = number_values(batch.codes(str(model.target), model._target_kind), threads=1)
                has_label = class_numbers >= 0  # −1: missing
            batch, _ = model._align(batch, {"absent", "extra"})
            hashes = content_hashes(batch, [name for name in model.schema.columns if name in batch.names])
            log_posteriors = scores if model.calibration is None else model.calibration.log_apply(scores)
            scored_batches.append((batch, hashes, log_posteriors, has_label))
        if not any(batch.n_rows for batch, *_ in scored_batches):
            text = f"the pool{errors.where(source.name)} has no rows."
            raise errors.EmptyData(f"{text} Pass rows without a label.")
        batches, *arrays = zip(*scored_batches, strict=True)  # the arrays of hashes, of scores and of has_label
        return cls(model, _as_memory_rows(model, batches), *map(np.concatenate, arrays))

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.hashes)

    @property
    def unlabelled(self) -> Int:
        """The numbers of the rows without a label."""
        return np.flatnonzero(~self.has_label)

    @property
    def log_odds(self) -> Real:
        """The logarithm of how much more probable the most probable class of each row is than the second (rows,), from
        log posteriors, which ``scores`` has. It stays precise where both are close to 0 or 1.
        """
        two_best = np.partition(self.scores, -2, axis=1)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(two_best[:, -1] - two_best[:, -2], nan=0.0, posinf=np.inf)

    def draw(self, n: int, seed: int) -> Int:
        """Draws ``n`` unlabelled rows at random and returns their numbers. The content of rows alone decides: those
        with the smallest keys, made from hashes and the seed, are drawn. Equal rows are numbered, so that their keys
        differ.
        """
        unlabelled_rows = self.unlabelled
        hashes = self.hashes[unlabelled_rows]
        order = np.argsort(hashes, kind="stable")  # positions in ``unlabelled_rows``, equal rows together
        first_of_equals = np.searchsorted(hashes[order], hashes[order])  # where in this order a row's equals begin
        # 0 for the first of equal rows, 1 for the second, and so on.
        copy_numbers = (np.arange(len(order)) - first_of_equals).astype(np.uint64)
        random_keys = mix(mix(hashes[order] * HASH_FACTOR + np.uint64(seed % 2**64)) * HASH_FACTOR + copy_numbers)
        return np.asarray(unlabelled_rows[order[np.argsort(random_keys, kind="stable")[:n]]])

    def take(self, row_numbers: Int) -> list[Batch]:
        """Returns the rows with these numbers, in the order of the pool, in batches."""
        return list(self.memory.take(np.sort(row_numbers)))

    def describe(self, row_number: int, why: str) -> NextRow:
        """Returns a row for users: its two most probable classes, their margin, and ``why`` the row was chosen.
        ``scores`` has its log posteriors.
        """
        classes_by_score = np.argsort(-self.scores[row_number], kind="stable")  # class numbers, the best first
        classes = self.model.classes
        posteriors = np.exp(self.scores[row_number])
        best_class, second_class = classes_by_score[:2].tolist()
        probability = float(posteriors[best_class])
        margin = float(posteriors[best_class] - posteriors[second_class])
        file = self.memory.row_name(row_number)
        return NextRow(row_number, classes[best_class], classes[second_class], probability, margin, why, file)


def _as_memory_rows(model: Model, batches: tuple[Batch, ...]) -> MemoryRows:
    """Returns batches without labels, under the model's schema, as rows in memory, all of one class without a name."""
    n_rows = sum(batch.n_rows for batch in batches)
    labels = np.zeros(n_rows, dtype=np.int32)
    return MemoryRows(model.schema, ("",), labels, weights=None, threads=n_threads(model.threads), batches=batches)


# Rows that stand for others ------------------------------------------------------------------------------------------


def _choose_representatives(rows: _Rows, order: Int, n: int, labelled_batches: list[Batch]) -> Int:
    """Chooses ``n`` of the rows that come first in ``order`` and returns their numbers, in the order in which they were
    chosen: each is similar to many of these rows and unlike labelled rows and those chosen before. Long lists are
    handled in strips, because every row is compared with every other.

    Args:
        rows: The rows of the pool.
        order: The numbers of the candidates, those that the model is least sure of first.
        n: How many rows to choose.
        labelled_batches: Labelled rows.
    """
    if n <= 0:
        return np.zeros(0, dtype=np.int64)
    candidate_rows = order[: CANDIDATES_PER_ROW * n]
    chosen_rows = list[int]()
    strips = np.array_split(candidate_rows, -(-len(candidate_rows) // CANDIDATES_TOGETHER))
    n_by_strip = np.diff(np.linspace(0, n, len(strips) + 1).astype(np.int64))
    for strip, n_in_strip in zip(strips, n_by_strip.tolist(), strict=True):
        # The similarity of the strip's rows to each other, and of each to the nearest labelled row.
        similarity, coverage = _similarities(rows, strip, labelled_batches)
        chosen_rows += strip[_choose_greedily(similarity, coverage, n_in_strip)].tolist()
    return np.array(chosen_rows, dtype=np.int64)


def _choose_greedily(similarity: Real, coverage: Real, n: int) -> Int:
    """Chooses ``n`` rows one after the other, each the one that most increases the coverage of all rows; returns their
    positions in that order. ``similarity`` is (rows, rows); ``coverage`` is the similarity of each row to its nearest
    chosen or labelled row.
    """
    chosen_positions = list[int]()
    gains = _gains(similarity, coverage)  # by how much each row would increase the coverage of all rows
    for _ in range(n):
        up_to_date = set[int]()  # positions of rows whose gains have been computed again
        best = int(gains.argmax())
        while best not in up_to_date:  # gains only fall as coverage grows, so few need to be computed again
            gains[best] = _gains(similarity[best : best + 1], coverage)[0]
            up_to_date.add(best)
            best = int(gains.argmax())
        chosen_positions.append(best)
        gains[best] = -1.0
        coverage = np.maximum(coverage, similarity[best])
    return np.array(chosen_positions, dtype=np.int64)


def _gains(similarity: Real, coverage: Real) -> Real:
    """Returns by how much the total coverage would increase with each row, given its similarity to all rows (rows × all
    rows) and ``coverage``, the similarity of each row to its nearest chosen or labelled row.
    """
    return np.asarray(np.round(np.maximum(similarity - coverage, 0.0).sum(axis=1), DECIMALS))


def _similarities(rows: _Rows, strip_rows: Int, labelled_batches: list[Batch]) -> tuple[Real, Real]:
    """Returns the similarity of every two rows of a strip (rows × rows), and that of each row to the nearest labelled
    row (rows,), 0 if there is none. ``strip_rows`` has row numbers, whose order is kept.
    """
    vectors = _unit_vectors(rows.model, [*rows.take(strip_rows), *labelled_batches])  # rows × columns
    strip_vectors = vectors[: len(strip_rows)]
    labelled_vectors = vectors[len(strip_rows) :]
    strip_vectors = strip_vectors[np.argsort(np.argsort(strip_rows))]  # ``take`` returned the rows in ascending order
    coverage = np.zeros(len(strip_rows))
    for start in range(0, labelled_vectors.shape[0], CANDIDATES_TOGETHER):
        nearest = (strip_vectors @ labelled_vectors[start : start + CANDIDATES_TOGETHER].T).max(axis=1)
        coverage = np.maximum(coverage, _as_array(nearest).ravel())
    return _as_array(strip_vectors @ strip_vectors.T), coverage


def _as_array(matrix: Any) -> Real:
    """Returns a sparse or dense matrix as an array."""
    return np.asarray(matrix.todense() if hasattr(matrix, "todense") else matrix)


def _unit_vectors(model: Model, batches: list[Batch]) -> Any:
    """Returns a vector of length 1 for each row of the batches, as a linear classifier would use it: a sparse or dense
    matrix (rows × numbers, categories and words of the columns in the model's schema).
    """
    from sklearn.preprocessing import normalize

    memory_rows = _as_memory_rows(model, tuple(_as_one_table(batches, model.schema.columns)))
    tally = memory_rows.tally
    row_numbers = np.arange(memory_rows.n_rows)
    # The matrix that a linear classifier would be trained on.
    training_matrix, _ = PeerArrays.of(memory_rows, tally).matrices(row_numbers, row_numbers, tally)
    return normalize(training_matrix)


def _as_one_table(batches: list[Batch], columns: Sequence[str]) -> Iterator[Batch]:
    """Yields copies of the batches as parts of one table: all ``columns`` are present, empty if need be, and rows are
    numbered throughout.
    """
    first_row = 0
    for batch in batches:
        absent_columns = {name: empty_column(batch.n_rows) for name in columns if name not in batch.names}
        full_batch = copy(batch).with_columns(absent_columns) if absent_columns else copy(batch)
        full_batch.first_row = first_row
        first_row += full_batch.n_rows
        yield full_batch


# What was found ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NextRow:
    """Row number ``row`` of the pool, counting from 0, with its most probable class, the second, and the margin between
    them.

    ``why`` is "unsure" if the model is least sure of this row, "similar to other uncertain rows", or "at random".
    ``file`` is the file that the row was read from, if each row has its own.
    """

    row: int
    predicted: Label  # the most probable class
    against: Label  # the second
    probability: float  # of the most probable class
    margin: float  # the difference between both probabilities
    why: str
    file: str | None = None

    @property
    def random(self) -> bool:
        """Whether the row was drawn at random."""
        return self.why == AT_RANDOM

    def to_dict(self) -> dict[str, Any]:
        """Returns the row as a dictionary for JSON."""
        entries = asdict(self)
        file = entries.pop("file")
        file_entry = {} if file is None else {"file": file}
        return {"row": self.row, **file_entry, **entries, "random": self.random}


@dataclass(frozen=True, repr=False)
class NextToLabel(Listed):
    """The rows to label next: those the model is unsure of, the least sure first, and then those drawn at random.

    ``n_rows`` rows of the pool have no label, ``labelled`` have one.
    """

    rows: tuple[NextRow, ...]
    n_rows: int
    labelled: int
    share: float  # of the rows to label, those that were to be drawn at random
    seed: int
    _target: str | None  # the column of the classes, which names those that are numbers

    @property
    def random(self) -> NDArray[np.bool_]:
        """Whether each of the rows was drawn at random."""
        return np.array([row.random for row in self.rows], dtype=np.bool_)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as a dictionary for JSON."""
        rows = [row.to_dict() for row in self.rows]
        counts = {"unlabelled": self.n_rows, "labelled": self.labelled}
        return {"rows": rows, **counts, "share": self.share, "seed": self.seed}

    _header: ClassVar = ("row", "predicted", "", "against", "margin", "why")

    def _lines(self, first: int = 0) -> list[list[str]]:
        """Returns the cells of a line for each row, as texts under ``_header``. The number ``first`` stands for the
        first row of the pool.
        """
        lines = []
        for row in self.rows:
            row_name = f"{row.row + first:,}" if row.file is None else row.file
            first_class, second_class = (
                errors.shortened(quote_class(label, self._target)) for label in (row.predicted, row.against)
            )
            lines.append([row_name, first_class, percent(row.probability), second_class, percent(row.margin), row.why])
        return lines

    @property
    def _first_line(self) -> str:
        """A line of text: how many rows to label, and how many of them were drawn at random."""
        request = f"{many(len(self.rows), 'row')} to label next, of {self.n_rows:,} without a label"
        return f"{request}; {int(self.random.sum()):,} at random"

    @property
    def _last_lines(self) -> list[str]:
        """A list with a note on accuracy if rows were drawn at random, otherwise empty."""
        n_random = int(self.random.sum())
        note = "accuracy on the random rows estimates that on the pool; on the other rows it is lower, as the model was unsure"
        return [note] * bool(n_random)
