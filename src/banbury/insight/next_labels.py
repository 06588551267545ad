"""The next labels: which unlabelled rows to ask a person about, so that few answers teach much.

Rows that the model is least sure of are looked through for those that stand for the others: like many of them, unlike rows
that are labelled already, and unlike each other. K. Wei, R. Iyer and J. Bilmes, *Submodularity in data subset selection and
active learning* (2015). Some rows are drawn at random instead, so that accuracy can be told.
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
from banbury.families.keys import dense_numbers
from banbury.insight.wrong_labels import Listed
from banbury.model.explain.page import percent, quote_class
from banbury.model.naive_bayes import Model, check_seed, model_of
from banbury.quality.curves import PeerArrays
from banbury.reading import Batch, n_threads
from banbury.reading.columns import empty_column
from banbury.rows.labelled import MemoryRows
from banbury.tally.table import MIX, content_hashes, mix
from banbury.tally.tally import Label

SHARE = 0.1  # of the rows are drawn at random
LOOKED_AT = 10  # times as many unsure rows as are wanted
TOGETHER = 2_000  # of them at a time: each is compared with each
UNSURE = "unsure"  # why a row is chosen
LIKE_OTHERS = "similar to other uncertain rows"
AT_RANDOM = "at random"
DECIMALS = 9  # what differs by less is the same, whatever the order of rows


def next_to_label(
    model: Model,
    pool: Any,
    *,
    n: int = 10,
    labelled: Any = None,
    share: float = SHARE,
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
    >>> found = bb.next_to_label(model, {name: column[8:] for name, column in weather.items() if name != "play"}, n=2)
    >>> [(row.row, row.predicted, row.against) for row in found.rows]
    [(5, 'no', 'yes'), (1, 'yes', 'no')]
    """
    errors.check_whole("n", n, 1)
    check_seed(seed)
    model = model_of(model)
    fits = isinstance(share, (int, float, np.number)) and not isinstance(share, bool) and 0 <= share <= 1
    errors.require(fits, "share", share, "a share of the rows from 0 to 1")
    _check_model(model)
    rows = _Rows.of(model, pool, reading)
    if not len(rows.free):
        there = f"all {many(rows.n, 'row')} already have a label in the column {model.target!r}"
        raise errors.EmptyData(f"{there}. Pass rows whose label is missing.")
    n_random = min(int(np.floor(n * float(share) + 0.5)), len(rows.free))
    at_random = rows.draw(n_random, int(seed))
    rest = np.setdiff1d(rows.free, at_random)
    rest = rest[np.lexsort((rows.hashes[rest], np.round(rows.odds[rest], DECIMALS)))]
    labelled_batches = [rows.take(rows.labelled)] if len(rows.labelled) else []
    labelled_batches += [] if labelled is None else [list(_Rows.of(model, labelled, reading).batches)]
    chosen = _standing_for_others(model, rows, rest, min(int(n) - n_random, len(rest)), labelled_batches)
    least_sure = set(rest[: len(chosen)].tolist())
    ranked = chosen[np.argsort(np.round(rows.odds[chosen], DECIMALS), kind="stable")]
    next_rows = [rows.describe(row, UNSURE if row in least_sure else LIKE_OTHERS) for row in ranked.tolist()]
    next_rows += [rows.describe(row, AT_RANDOM) for row in at_random.tolist()]
    return NextToLabel(tuple(next_rows), len(rows.free), rows.n - len(rows.free), float(share), int(seed), model.target)


def _check_model(model: Any) -> None:
    expected = "a Model, from bb.estimate, or an estimator, with a single class per row"
    errors.require(isinstance(model, Model), "the model", type(model).__name__, expected)
    if len(model.classes) < 2:
        expected = "a model with at least two classes"
        raise errors.bad_setting("the model", f"one class, {model.classes[0]!r}", expected)


# The rows of a pool --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a pool under the model's schema: hashes of what they hold, and what the model says of them."""

    model: Model
    batches: tuple[Batch, ...]
    hashes: NDArray[np.uint64]
    scores: Real  # log posteriors
    has_label: NDArray[np.bool_]
    names: list[str] | None

    @classmethod
    def of(cls, model: Model, data: Any, reading: Any) -> _Rows:
        source = model._read(data, reading)
        batches = []
        hashes = []
        scores = []
        labels = []
        names = list[str]()
        for raw, batch_scores, impossible in model._batches(source, "log_posterior"):
            model._warn_impossible(impossible, "log_posterior")
            there = model.target in raw.names and model.target not in model.schema.columns
            codes = dense_numbers(raw.codes(str(model.target), model.target_kind), 1)[0] if there else None
            labels.append(np.zeros(raw.n_rows, dtype=np.bool_) if codes is None else np.asarray(codes >= 0))
            batch = model._fitting(raw, {"absent", "extra"})[0]
            batches.append(batch)
            hashes.append(content_hashes(batch, [name for name in model.schema.columns if name in batch.names]))
            scores.append(batch_scores if model.calibration is None else model.calibration.log_apply(batch_scores))
            names += raw.row_names or []
        if not sum(map(len, hashes)):
            text = f"the pool{errors.where(source.name)} has no rows."
            raise errors.EmptyData(f"{text} Pass rows without a label.")
        every = np.concatenate(hashes)
        named = names if len(names) == len(every) else None
        return cls(model, tuple(batches), every, np.concatenate(scores), np.concatenate(labels), named)

    @property
    def n(self) -> int:
        return len(self.hashes)

    @property
    def free(self) -> Int:
        return np.flatnonzero(~self.has_label)

    @property
    def labelled(self) -> Int:
        return np.flatnonzero(self.has_label)

    @property
    def odds(self) -> Real:
        """How much more probable the most probable class is than the second, as a logarithm: it goes on where both are 0 or 1."""
        top = np.partition(self.scores, -2, axis=1)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(top[:, -1] - top[:, -2], nan=0.0, posinf=np.inf)

    def draw(self, n: int, seed: int) -> Int:
        """Free rows at random, by what they hold: the first by a hash, in which equal rows are numbered."""
        free = self.free
        hashes = self.hashes[self.free]
        order = np.argsort(hashes, kind="stable")
        first_of_equals = np.searchsorted(hashes[order], hashes[order])
        copies = (np.arange(len(order)) - first_of_equals).astype(np.uint64)
        random_keys = mix(mix(hashes[order] * MIX + np.uint64(seed % 2**64)) * MIX + copies)
        return np.asarray(free[order[np.argsort(random_keys, kind="stable")[:n]]])

    def take(self, rows: Int) -> list[Batch]:
        """These rows, in ascending order."""
        return list(_dataset(self.model, self.batches).take(np.sort(rows)))

    def describe(self, row: int, why: str) -> NextRow:
        ranked = np.argsort(-self.scores[row], kind="stable")
        classes = self.model.classes
        shares = np.exp(self.scores[row])
        first = int(ranked[0])
        second = int(ranked[1])
        probability = float(shares[first])
        margin = float(shares[first] - shares[second])
        file = None if self.names is None else self.names[row]
        return NextRow(row, classes[first], classes[second], probability, margin, why, file)


def _dataset(model: Model, batches: tuple[Batch, ...]) -> MemoryRows:
    n_rows = sum(batch.n_rows for batch in batches)
    labels = np.zeros(n_rows, dtype=np.int32)
    return MemoryRows(model.schema, ("",), labels, None, n_threads(model.threads), batches=batches)


# Rows that stand for others ------------------------------------------------------------------------------------------


def _standing_for_others(model: Model, rows: _Rows, order: Int, n: int, labelled_batches: list[list[Batch]]) -> Int:
    """``n`` rows among those that come first; each adds most to how well these are stood for."""
    if n <= 0:
        return np.zeros(0, dtype=np.int64)
    looked_at = order[: max(LOOKED_AT * n, n)]
    chosen = list[int]()
    strips = np.array_split(looked_at, -(-len(looked_at) // TOGETHER))
    n_of_strips = np.diff(np.linspace(0, n, len(strips) + 1).astype(np.int64))
    for strip, part in zip(strips, n_of_strips.tolist(), strict=True):
        alike, covered = _likeness(model, rows, strip, labelled_batches)
        chosen += strip[_greedy(alike, covered, part)].tolist()
    return np.array(chosen, dtype=np.int64)


def _greedy(alike: Real, covered: Real, n: int) -> Int:
    """Places whose rows together are most like all others, each taken for what it adds; the first of equals."""
    chosen = list[int]()
    gains = _gains(alike, covered)
    for _ in range(n):
        fresh = set[int]()
        while (best := int(gains.argmax())) not in fresh:  # what a row adds only falls: few need be looked at again
            gains[best] = _gains(alike[best : best + 1], covered)[0]
            fresh.add(best)
        chosen.append(best)
        gains[best] = -1.0
        covered = np.maximum(covered, alike[best])
    return np.array(chosen, dtype=np.int64)


def _gains(alike: Real, covered: Real) -> Real:
    """By how much all rows would be stood for better, with each of some."""
    return np.asarray(np.round(np.maximum(alike - covered, 0.0).sum(axis=1), DECIMALS))


def _likeness(model: Model, rows: _Rows, strip: Int, labelled_batches: list[list[Batch]]) -> tuple[Real, Real]:
    """How alike each two of these rows are, in their order, and how like any labelled row each is."""
    strip_batches = rows.take(strip)
    rest_batches = [batch for batches in labelled_batches for batch in batches]
    vectors = _vectors(model, [*strip_batches, *rest_batches])
    mine = vectors[: len(strip)]
    rest = vectors[len(strip) :]
    mine = mine[np.argsort(np.argsort(strip))]
    covered = np.zeros(len(strip))
    for start in range(0, rest.shape[0], TOGETHER):
        near = (mine @ rest[start : start + TOGETHER].T).max(axis=1)
        covered = np.maximum(covered, np.asarray(near.todense() if hasattr(near, "todense") else near).ravel())
    alike = mine @ mine.T
    return np.asarray(alike.todense() if hasattr(alike, "todense") else alike), covered


def _vectors(model: Model, batches: list[Batch]) -> Any:
    """Rows as a linear classifier takes them, each of length 1."""
    from sklearn.preprocessing import normalize

    rows = _dataset(model, tuple(_of_one_table(batches, model.schema.columns)))
    counted = rows.tally
    every = np.arange(rows.n_rows)
    return normalize(PeerArrays.of(rows, counted).matrices(every, every, counted)[0])


def _of_one_table(batches: list[Batch], columns: Sequence[str]) -> Iterator[Batch]:
    """The batches as those of one table, which has all columns."""
    first = 0
    for batch in batches:
        absent = [name for name in columns if name not in batch.names]
        part = (
            copy(batch).with_columns({name: empty_column(batch.n_rows) for name in absent}) if absent else copy(batch)
        )
        part.first_row = first
        first += part.n_rows
        yield part


# What was found ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NextRow:
    """Row number ``row`` of the pool, counting from 0, with its most probable class, the second, and the margin between
    them.

    ``why`` is "unsure" if the model is least sure of this row, "similar to other uncertain rows", or "at random".
    ``file`` is the file that the row was read from, if each row has its own.
    """

    row: int
    predicted: Label
    against: Label
    probability: float
    margin: float
    why: str
    file: str | None = None

    @property
    def random(self) -> bool:
        """Whether the row was drawn at random."""
        return self.why == AT_RANDOM

    def to_dict(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        facts = {**asdict(self), "random": self.random}
        file = {} if self.file is None else {"file": self.file}
        return {"row": facts.pop("row"), **file, **{name: value for name, value in facts.items() if name != "file"}}


@dataclass(frozen=True, repr=False)
class NextToLabel(Listed):
    """The rows to label next: those the model is unsure of, the least sure first, and then those drawn at random.

    ``n_rows`` rows of the pool have no label, ``labelled`` have one.
    """

    rows: tuple[NextRow, ...]
    n_rows: int
    labelled: int
    share: float
    seed: int
    _target: str | None  # the column of the classes, which names those that are numbers

    @property
    def indices(self) -> Int:
        """The numbers of the rows."""
        return np.array([row.row for row in self.rows], dtype=np.int64)

    @property
    def random(self) -> NDArray[np.bool_]:
        """Which of the rows were drawn at random."""
        return np.array([row.random for row in self.rows], dtype=np.bool_)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything for JSON."""
        rows = [row.to_dict() for row in self.rows]
        n = {"unlabelled": self.n_rows, "labelled": self.labelled}
        return {"rows": rows, **n, "share": self.share, "seed": self.seed}

    HEAD: ClassVar = ("row", "predicted", "", "against", "margin", "why")

    def lines(self, first: int = 0) -> list[list[str]]:
        """Returns the cells of a line for each row. Row numbers start at ``first``."""
        lines = []
        for row in self.rows:
            where = f"{row.row + first:,}" if row.file is None else row.file
            best, second = (
                errors.shortened(quote_class(label, self._target)) for label in (row.predicted, row.against)
            )
            lines.append([where, best, percent(row.probability), second, percent(row.margin), row.why])
        return lines

    @property
    def head(self) -> str:
        """How many rows to label, and how many of them were drawn at random."""
        head = f"{many(len(self.rows), 'row')} to label next, of {self.n_rows:,} without a label"
        return f"{head}; {int(self.random.sum()):,} at random"

    @property
    def feet(self) -> list[str]:
        """Notes, one sentence each."""
        n = int(self.random.sum())
        note = "accuracy on the random rows estimates that on the pool; on the other rows it is lower, as the model was unsure"
        return [note] * bool(n)
