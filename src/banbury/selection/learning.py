"""Learning curves: how good the model is after so many rows. Each size adds the tally of its new rows to the tally before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions.family import How
from banbury.naive_bayes import ClassPrior, check_seed, estimate
from banbury.schema import Features, Missing, Schema
from banbury.selection.dataset import Dataset, held
from banbury.selection.groups import Groups
from banbury.selection.peer import Peer, PeerArrays
from banbury.selection.results import Evaluation, Mean
from banbury.selection.scoring import PendingWarnings, answers
from banbury.tally import Tally

N_SIZES = 10  # of a curve, if not given
FEWEST_ROWS = 20  # where such a curve begins


def learning_curve(
    data: Any,
    target: Any = None,
    *,
    sizes: Any = None,
    repeats: int = 5,
    test: float = 1 / 3,
    beside: Any = None,
    how: How = "mean",
    alpha: float = 1.0,
    class_prior: ClassPrior = None,
    features: Features = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing = "skip",
    seed: int = 0,
    threads: int | None = None,
    **reading: Any,
) -> LearningCurve:
    """How good the model is after so many rows, on rows that are withheld; each repeat costs one count.

    In each of the ``repeats`` the share ``test`` of the rows is withheld, of every class alike, and of the others more and more
    are learned from: those of a smaller size are among those of a larger one. ``sizes``: whole numbers of rows, or shares of the
    rows that are not withheld, ascending; if not given, about ten, evenly spaced on a logarithmic scale. Each size has a row of
    every class at least. ``seed`` settles which rows are taken.

    ``beside`` has another learner try the same rows: "logistic_regression" (its penalty chosen by cross-validation), or a
    scikit-learn classifier that has predict_proba. It is given numbers scaled, missing ones by their mean, categories as columns
    of 0 and 1, and TF-IDF weights of the words that naive Bayes uses.

    ``how``, ``alpha`` and ``class_prior`` are those of ``bb.estimate``; the rest is that of ``bb.count``. What is counted
    (families, origins, units, bins) is settled once, before any row is withheld; what is learned, by the rows of each size alone.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_iris
    >>> flowers, species = load_iris(return_X_y=True)
    >>> bb.learning_curve(flowers, species, sizes=[10, 20, 50, 100], how="predictive")
    Learning curve of naive Bayes: 5 repeats, 50 of 150 rows withheld, 3 classes
      rows         accuracy  log loss
        10  0.8280 ± 0.0120    0.3315
        20  0.8760 ± 0.0117    0.2559
        50  0.9360 ± 0.0214    0.1731
       100  0.9480 ± 0.0206    0.1417
      random guess 0.3333, majority 0.3400
    """
    check_seed(seed)
    if isinstance(repeats, bool) or not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise errors.bad_setting("repeats", repeats, "a whole number from 1 up")
    peer = None if beside is None else Peer.of(beside)
    read = held(
        data,
        target,
        schema=schema,
        features=features,
        weights=weights,
        missing=missing,
        threads=threads,
        **reading,
    )
    rows = _weighing(read)
    n_rows, n_classes = int(np.count_nonzero(rows.labels >= 0)), len(rows.classes)
    n_test = _withheld(test, n_rows, rows.classes)
    ends = _sizes(sizes, n_rows - n_test, n_classes)
    settings = {"how": how, "alpha": alpha, "class_prior": class_prior, "seed": seed}
    validations: list[list[Evaluation]] = []
    others: list[list[Evaluation]] = []
    told = PendingWarnings()
    for number in range(int(repeats)):
        order = spread(rows.labels, np.random.default_rng([int(seed), number]))
        growth, tested = Growth(rows, order, ends), np.sort(order[n_rows - n_test :])
        tallies = [growth.learned(k) for k in range(len(ends))]
        validations.append([scored(rows, tally, tested, settings, told) for tally in tallies])
        if peer is not None:
            table = PeerArrays.of(rows, growth.groups.counted)
            each = [(growth.rows_of(k), tally) for k, tally in enumerate(tallies)]
            others.append([scored_beside(rows, table, learned, tally, tested, peer) for learned, tally in each])
    told.warn(how)
    majority = float(np.mean([each[0].majority for each in validations]))
    return LearningCurve(
        "naive Bayes",
        *_measures(validations),
        np.array(ends, dtype=np.int64),
        n_rows,
        n_test,
        n_classes,
        majority,
        None if peer is None else CurveScores(peer.name, *_measures(others)),
    )


# Which rows ----------------------------------------------------------------------------------------------------------


def _weighing(rows: Dataset) -> Dataset:
    """Rows of weight 0 are no rows, and a class that has no others is no class."""
    if rows.weights is None or rows.weights.all():
        return rows
    labels = np.where(rows.weights > 0, rows.labels, -1)
    used, numbers = np.unique(labels, return_inverse=True)
    n_unused = int(np.count_nonzero(used < 0))
    classes = tuple(rows.classes[c] for c in used[n_unused:].tolist())
    if not classes:
        raise errors.empty_data(rows.name, "the weight of every row is 0")
    return replace(rows, labels=(numbers.reshape(-1) - n_unused).astype(np.int32), classes=classes)


def _withheld(test: Any, n_rows: int, classes: Sequence[Any]) -> int:
    """How many rows are withheld."""
    if len(classes) < 2:
        raise errors.bad_setting("target", f"one class, {classes[0]!r}", "one of two classes at least")
    if not isinstance(test, (float, np.floating)) or not 0 < test < 1:
        raise errors.bad_setting("test", test, "the share of rows to withhold, between 0 and 1, such as 1/3")
    n_test = max(1, round(float(test) * n_rows))
    if n_rows - n_test < len(classes):
        wanted = f"a share that leaves a row of each of the {len(classes):,} classes to learn from, of {n_rows:,} rows"
        raise errors.bad_setting("test", test, wanted)
    return n_test


def _sizes(given: Any, most: int, n_classes: int) -> list[int]:
    """The sizes of a curve in rows."""
    if given is None:
        first = min(max(2 * n_classes, min(FEWEST_ROWS, most // 2)), most)
        return sorted(set(np.rint(np.geomspace(first, most, N_SIZES)).astype(np.int64).tolist()))
    wanted = (
        f"an ascending list of numbers of rows, from {n_classes:,} (one of each class) to {most:,} (all that are not withheld), "
        "or of shares of these such as 0.5, up to 1.0"
    )
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise errors.bad_setting("sizes", given, wanted)
    sizes: list[int] = []
    for each in given.tolist() if isinstance(given, np.ndarray) else given:
        whole = isinstance(each, (int, np.integer)) and not isinstance(each, bool)
        share = isinstance(each, (float, np.floating)) and 0 < each <= 1
        size = int(each) if whole else round(float(each) * most) if share else 0
        if not n_classes <= size <= most:
            raise errors.bad_setting("sizes", f"{each} ({size:,} rows)" if share else each, wanted)
        sizes.append(size)
    if not sizes or any(b <= a for a, b in pairwise(sizes)):
        raise errors.bad_setting("sizes", sizes, wanted)
    return sizes


def spread(labels: NDArray[np.int32], rng: np.random.Generator) -> Int:
    """The labelled rows in a random order over which every class is spread evenly, but for its first row: those come first.

    So any part of the order has its share of each class, and its beginning has all of them.
    """
    rows = rng.permutation(np.flatnonzero(labels >= 0))
    rows = rows[np.argsort(labels[rows], kind="stable")]
    sizes = np.bincount(labels[rows])
    owner = labels[rows]
    nth = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[owner]
    place = (nth + rng.random(len(sizes))[owner]) / sizes[owner]
    return np.asarray(rows[np.argsort(np.where(nth == 0, -1.0, place), kind="stable")], dtype=np.int64)


# What is learned from them -------------------------------------------------------------------------------------------


class Growth:
    """Rows in an order, cut at ``ends``: what each cut adds is counted apart, all in one pass."""

    def __init__(self, rows: Dataset, order: Int, ends: Sequence[int]) -> None:
        self.order, self.ends = order, ends
        added = np.full(rows.n_rows, -1, dtype=np.int32)
        added[order[: ends[-1]]] = np.searchsorted(ends, np.arange(ends[-1]), side="right")
        self.groups = Groups.of(rows, added, len(ends))

    def rows_of(self, k: int) -> Int:
        """The rows of the k-th size."""
        return np.sort(self.order[: self.ends[k]])

    def learned(self, k: int) -> Tally:
        """Their tally, for estimating."""
        return self.groups.learned(np.arange(len(self.ends)) <= k)


def scored(rows: Dataset, tally: Tally, tested: Int, settings: Mapping[str, Any], told: PendingWarnings) -> Evaluation:
    """What the model of a tally says of rows it has not seen."""
    model = replace(estimate(tally, **settings), threads=rows.threads)
    told.note(model)
    return _answered(rows, tested, answers(rows, tested, model, "posterior"))


def scored_beside(rows: Dataset, table: PeerArrays, learned: Int, tally: Tally, tested: Int, peer: Peer) -> Evaluation:
    """What another learner says of them after the rows of the same tally."""
    weights = None if rows.weights is None else rows.weights[learned]
    matrices = table.matrices(learned, tested, tally)
    return _answered(rows, tested, peer.posteriors(*matrices, rows.labels[learned], weights, len(rows.classes)))


def _answered(rows: Dataset, tested: Int, posteriors: Real) -> Evaluation:
    weights = None if rows.weights is None else rows.weights[tested]
    return Evaluation(rows.classes, tested, rows.labels[tested], posteriors, weights)


def _measures(validations: Sequence[Sequence[Evaluation]]) -> tuple[Real, Real]:
    """Accuracies and log losses, repeats × sizes."""
    accuracy = np.array([[each.accuracy.value for each in repeat] for repeat in validations])
    return accuracy, np.array([[each.log_loss for each in repeat] for repeat in validations])


# The curve -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CurveScores:
    """How well a learner did on the rows withheld: accuracies and log losses, repeats × sizes."""

    name: str
    accuracy: Real
    log_loss: Real

    @property
    def mean_accuracy(self) -> Real:
        """The mean over repeats, for each size."""
        return np.asarray(self.accuracy.mean(axis=0))

    @property
    def mean_log_loss(self) -> Real:
        return np.asarray(self.log_loss.mean(axis=0))

    @property
    def standard_error(self) -> Real | None:
        """Of the mean accuracy, for each size; None of one repeat, which does not tell."""
        n = len(self.accuracy)
        return None if n < 2 else np.asarray(self.accuracy.std(axis=0, ddof=1) / n**0.5)

    def _cells(self) -> list[tuple[str, str]]:
        """Accuracy and log loss of each size."""
        error = self.standard_error
        means = self.mean_accuracy.tolist()
        accuracies = [f"{mean:.4f}" for mean in means] if error is None else list(map(str, map(Mean, means, error)))
        return list(zip(accuracies, (f"{loss:.4f}" for loss in self.mean_log_loss.tolist()), strict=True))

    def _to_dict(self) -> dict[str, Any]:
        error = self.standard_error
        return {
            "name": self.name,
            "accuracy": self.accuracy.tolist(),
            "log_loss": self.log_loss.tolist(),
            "mean_accuracy": self.mean_accuracy.tolist(),
            "standard_error": None if error is None else error.tolist(),
            "mean_log_loss": self.mean_log_loss.tolist(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(CurveScores):
    """Scores on withheld rows after learning from ``sizes`` rows; those of another learner, if one was asked for, in ``beside``.

    ``n_test`` of ``n_rows`` rows were withheld each time. ``majority`` is the accuracy of always answering with their most
    frequent class.
    """

    sizes: Int
    n_rows: int
    n_test: int
    n_classes: int
    majority: float
    beside: CurveScores | None = None

    @property
    def random_guess(self) -> float:
        """The accuracy of throwing a die that has a side for each class."""
        return 1.0 / self.n_classes

    @property
    def _learners(self) -> list[CurveScores]:
        return [self] if self.beside is None else [self, self.beside]

    def to_dict(self) -> dict[str, Any]:
        """The curve, as JSON can hold it."""
        return {
            "sizes": self.sizes.tolist(),
            "repeats": len(self.accuracy),
            "rows": self.n_rows,
            "withheld": self.n_test,
            "classes": self.n_classes,
            "random_guess": self.random_guess,
            "majority": self.majority,
            **self._to_dict(),
            "beside": None if self.beside is None else self.beside._to_dict(),
        }

    def __str__(self) -> str:
        n = len(self.accuracy)
        head = (
            f"Learning curve of {' beside '.join(each.name for each in self._learners)}: {n:,} repeat{'s' * (n > 1)}, "
        )
        head += f"{self.n_test:,} of {self.n_rows:,} rows withheld, {self.n_classes:,} classes"
        columns = [["rows", *(f"{size:,}" for size in self.sizes.tolist())]]
        for each in self._learners:
            accuracies, losses = zip(*each._cells(), strict=True)
            columns += [["accuracy", *accuracies], ["log loss", *losses]]
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in zip(*columns, strict=True)
        ]
        if self.beside is not None:
            mine, theirs = sum(widths[:3]) + 4, sum(widths[3:]) + 2
            lines.insert(0, f"{self.name:>{mine}}  {self.beside.name:>{theirs}}")
        guess = f"random guess {self.random_guess:.4f}, majority {self.majority:.4f}"
        return "\n".join([head, *(f"  {line}" for line in [*lines, guess])])

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draws the mean accuracies with their standard errors over the sizes, on a logarithmic scale; gives the axes back.

        It needs matplotlib. ``ax``: the axes to draw on; new ones if not given.
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise errors.MissingLibrary(
                    "a learning curve is drawn with matplotlib, which is not installed. Install it with: pip install "
                    "'banbury[plots]'. Without it, to_dict() has its numbers.",
                    library="matplotlib",
                ) from None
            ax = pyplot.subplots()[1]
        for each in self._learners:
            ax.errorbar(self.sizes, each.mean_accuracy, each.standard_error, marker="o", capsize=3, label=each.name)
        ax.axhline(self.majority, color="grey", linestyle="--", linewidth=1, label="majority")
        ax.axhline(self.random_guess, color="grey", linestyle=":", linewidth=1, label="random guess")
        ax.set_xscale("log")
        ax.set_xlabel("rows learned from")
        ax.set_ylabel(f"accuracy on {self.n_test:,} rows withheld")
        ax.legend()
        return ax
