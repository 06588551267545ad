"""What else could be made of the same rows, each tried over the same folds: a next step is told where it was measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from banbury import errors, selection
from banbury.arrays import Int
from banbury.distributions.column_tree import tree_of_columns
from banbury.selection import CrossValidation
from banbury.selection.dataset import Dataset
from banbury.selection.learning import spread
from banbury.weighing import FEWEST_ROWS

MOST_ROWS = 10_000  # that are tried; of more, so many, every class alike
FEW_ROWS, MORE_FOLDS, FOLDS = 2_000, 5, 3
# Rows × columns for which families are chosen anew within each fold; of one column of text any number.
MOST_CELLS = 2_000
BETTER = 0.02  # of the log loss must be gained to speak of it


@dataclass(frozen=True)
class Alternative:
    """A way to learn from the rows: how one asks for it, and how good it was on rows it had not seen."""

    name: str
    option: str  # of `banbury fit`
    python: str
    accuracy: float
    standard_error: float | None
    log_loss: float

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return asdict(self)


@dataclass(frozen=True)
class Alternatives:
    """What was tried over the same folds of the same rows, the first as it is now, the others by log loss, the best first."""

    n_rows: int
    folds: int
    now: Alternative
    others: tuple[Alternative, ...]

    @property
    def better(self) -> tuple[Alternative, ...]:
        """Those that lose clearly less than what there is now, and are not less often right beyond chance."""
        error = self.now.standard_error or 0.0
        return tuple(
            each
            for each in self.others
            if each.log_loss < (1.0 - BETTER) * self.now.log_loss and each.accuracy >= self.now.accuracy - 2 * error
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return asdict(self)


def alternatives(
    data: Any,
    target: Any,
    now: tuple[str, str, str],
    *,
    but: Collection[str] = (),
    features: Any = "auto",
    schema: Any = None,
    weigh: Mapping[str, Any] | None = None,
    estimating: Mapping[str, Any] | None = None,
    calibrate: Any = None,
    seed: int = 0,
    counting: Mapping[str, Any],
) -> Alternatives | None:
    """What else could be made of labelled rows; None where they are too few to be dealt to folds, or can be read but once.

    ``now`` names how they are learned from: by ``features`` or a ``schema``, weighed, calibrated. ``but`` are options that are
    not to be tried.
    """
    if hasattr(data, "__next__"):
        return None
    given = {"schema": schema} if schema is not None else {"features": features}
    rows = selection.held(data, target, **given, **counting)
    n_rows = int(np.count_nonzero(rows.labels >= 0))
    some = np.flatnonzero(rows.labels >= 0)
    if n_rows > MOST_ROWS:
        some = np.sort(spread(rows.labels, np.random.default_rng(seed))[:MOST_ROWS])
    folds = min(MORE_FOLDS if n_rows <= FEW_ROWS else FOLDS, len(some))
    if folds < 2 or len(rows.classes) < 2:
        return None
    tried = _Trial(data, target, some, folds, seed, counting)
    first = tried.now(rows, weigh, dict(estimating or {}), calibrate)
    again = partial(tried.calibrated, rows.only(some), dict(estimating or {}), "temperature")
    plain, named = "bb.NaiveBayesClassifier", "families chosen for each column"
    ways: tuple[tuple[str, str, str, Callable[[], CrossValidation | None]], ...] = (
        ("weighed evidence", "--weigh", "bb.EvidenceClassifier()", tried.weighed),
        ("the same, calibrated", "--calibrate temperature", f'{plain}(calibrate="temperature")', again),
        (named, "--features choose", f'{plain}(features="choose")', tried.chosen),
        ("a tree: columns that depend on one another", "--tan", "bb.TANClassifier()", tried.tree),
    )
    others = [
        e for name, option, python, way in ways if option not in but for e in _measured((name, option, python), way)
    ]
    return Alternatives(len(some), folds, _told(now, first), tuple(sorted(others, key=lambda each: each.log_loss)))


def _told(named: tuple[str, str, str], found: CrossValidation) -> Alternative:
    return Alternative(*named, found.accuracy.value, found.accuracy.error, found.log_loss)


def _measured(named: tuple[str, str, str], way: Callable[[], CrossValidation | None]) -> Iterator[Alternative]:
    """How good a way is; nothing where the rows do not allow it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = way()
    except errors.BanburyError:
        return
    if found is not None:
        yield _told(named, found)


@dataclass(frozen=True)
class _Trial:
    """Some rows of a table, dealt to folds."""

    data: Any
    target: Any
    some: Int
    folds: int
    seed: int
    counting: Mapping[str, Any]

    def now(self, rows: Dataset, weigh: Any, estimating: dict[str, Any], calibrate: Any) -> CrossValidation:
        rows = rows.only(self.some)
        if weigh is not None:
            return selection.weighed_and_validated(rows, self.folds, seed=self.seed, weigh=weigh)[0]
        if calibrate is not None:
            return self.calibrated(rows, estimating, calibrate)
        return selection.cross_validate(rows, folds=self.folds, seed=self.seed, **estimating)

    def calibrated(self, rows: Dataset, estimating: dict[str, Any], method: Any) -> CrossValidation:
        settings = {"how": "mean", "alpha": 1.0, "class_prior": None, "seed": self.seed, **estimating}
        _, scores, found = selection.scored_and_validated(rows, self.folds, settings)
        return selection.calibrated_within(found, scores, method)[0]

    def weighed(self) -> CrossValidation | None:
        if len(self.some) < FEWEST_ROWS:
            return None
        rows = selection.weighed_rows(self.data, self.target, **self.counting).only(self.some)
        return selection.weighed_and_validated(rows, self.folds, seed=self.seed, weigh=True)[0]

    def chosen(self) -> CrossValidation | None:
        rows = self._inferred()
        texts = [feature.family.reads_text() for feature in rows.schema.features]
        if len(self.some) * len(texts) > MOST_CELLS and texts != [True]:
            return None
        return selection.cross_validate(rows, folds=self.folds, seed=self.seed, features="choose", alpha="auto")

    def tree(self) -> CrossValidation | None:
        rows = self._inferred(features=tree_of_columns())
        block, *beside = rows.schema.features or (None,)
        if block is None or beside or len(block.columns) < 2:
            return None
        return selection.cross_validate(rows, folds=self.folds, seed=self.seed)

    def _inferred(self, **features: Any) -> Dataset:
        return selection.held(self.data, self.target, **self.counting, **features).only(self.some)
