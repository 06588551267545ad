"""Cross-validation of tables too large to hold: one pass counts the folds apart, another scores each by all the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.distributions.family import How
from banbury.naive_bayes import ClassPrior, Model, check_seed, estimate
from banbury.progress import watched
from banbury.readers import Batch, Codes, Source, Widened, n_threads, read
from banbury.schema import Features, Missing, Schema, infer
from banbury.selection.cross_validation import PendingWarnings, fitting_prior
from banbury.selection.groups import Groups
from banbury.selection.results import Mean, measures
from banbury.sums import in_order
from banbury.tally import Growing, Label, Labels, Tally, aligned, count_rows, many, numbered, refuse_continuous

MOST_FOLDS = 100  # each has a model of its own in memory


@dataclass(frozen=True, eq=False, repr=False)
class Streamed:
    """What a cross-validation keeps of a table that it does not hold: of each fold how many rows of a class got which answer."""

    tally: Tally  # of all rows
    confusions: Real  # folds × true class × answer
    lost: float  # the sum of −log P(true class)

    @property
    def classes(self) -> tuple[Label, ...]:
        return self.tally.classes

    @property
    def confusion(self) -> Real:
        """Rows of each true class (down) that were given each class (across)."""
        return np.asarray(self.confusions.sum(axis=0))

    @cached_property
    def fold_accuracies(self) -> Real:
        """The share of right answers in each fold."""
        rows, right = self.confusions.sum(axis=(1, 2)), np.einsum("fcc->f", self.confusions)
        return np.asarray(right[rows > 0] / rows[rows > 0])

    @cached_property
    def accuracy(self) -> Mean:
        """The mean over folds, and its standard error."""
        return Mean.of(self.fold_accuracies)

    @property
    def majority(self) -> float:
        """The accuracy of always answering with the most frequent class."""
        return float(self.confusion.sum(axis=1).max() / self.confusion.sum())

    @property
    def random_guess(self) -> float:
        """The accuracy of throwing a die that has a side for each class."""
        return 1.0 / len(self.classes)

    @property
    def log_loss(self) -> float:
        """The mean of −log P(true class), in nats."""
        return float(self.lost / self.confusion.sum())

    def to_dict(self) -> dict[str, Any]:
        """The measures, as JSON can hold them."""
        return {
            **measures(self, float(self.confusion.sum())),
            "classes": [{"class": name} for name in self.classes],
            "confusion": self.confusion.tolist(),
        }

    def __str__(self) -> str:
        head = f"{len(self.confusions)}-fold cross-validation in two passes: {self.confusion.sum():,.15g} rows"
        guesses = f"(random guess {self.random_guess:.4f}, majority {self.majority:.4f})"
        lines = [f"{head}, {many(len(self.classes), 'class')}", f"  accuracy  {self.accuracy}  {guesses}"]
        return "\n".join([*lines, f"  log loss  {self.log_loss:.4f}"])

    __repr__ = __str__


def cross_validate_stream(
    data: Any,
    target: Any = None,
    *,
    folds: int = 10,
    how: How = "mean",
    alpha: float = 1.0,
    class_prior: ClassPrior = None,
    features: Features = "auto",
    schema: Schema | None = None,
    weights: str | None = None,
    missing: Missing = "skip",
    seed: int = 0,
    threads: int | None = None,
    **reading: Any,
) -> Streamed:
    """Exact cross-validation of a file that does not fit in memory: it is read twice, and a batch at a time is held.

    The rows of each class are dealt out to the folds in turn as they come, in an order that ``seed`` settles. Each fold is
    scored by the model of all rows minus its own. The settings are those of ``bb.cross_validate``.

    >>> import banbury as bb
    >>> print(cross_validate_stream(bb.datasets.play_tennis(), target="play", folds=7))
    7-fold cross-validation in two passes: 14 rows, 2 classes
      accuracy  0.4286 ± 0.1304  (random guess 0.5000, majority 0.6429)
      log loss  0.7902
    """
    check_seed(seed)
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or not 2 <= folds <= MOST_FOLDS:
        raise errors.bad_setting("folds", folds, f"a number of folds from 2 to {MOST_FOLDS} where rows are not held")
    source = read(data, kinds=None if schema is None else schema.kinds(), **reading)
    labels = Labels.of(source.target if target is None else target, weights, None, n_threads(threads))
    if not source.again:
        raise errors.read_twice()
    counting = _Counting(source, labels, schema, features, missing, int(folds), int(seed))
    groups, skipped = counting.groups()
    settings: dict[str, Any] = {"how": how, "alpha": alpha, "class_prior": class_prior, "seed": seed}
    tally, told = replace(groups.total, skipped=skipped), PendingWarnings()
    models = _models(groups, settings, every=weights is not None)
    for each in filter(None, models):
        told.note(each)
    scores = _Scores(tally.classes, int(folds))
    for batch, classes, dealt, weighed in counting.rows(groups.counted.schema, tally.classes):
        for fold, model in enumerate(models):
            rows = np.flatnonzero((dealt == fold) & (classes >= 0))
            if model is not None and len(rows):
                part = batch.take(rows)
                part.threads = labels.threads
                weight = np.ones(len(rows)) if weighed is None else weighed[rows]
                told.impossible += scores.add(fold, model, part, classes[rows], weight)
    told.warn(how)
    return Streamed(tally, scores.confusions, scores.lost)


class _Scores:
    """How good the answers were so far."""

    def __init__(self, classes: tuple[Label, ...], n_folds: int) -> None:
        self.classes = classes
        self.confusions = np.zeros((n_folds, len(classes), len(classes)))
        self.lost = 0.0

    def add(self, fold: int, model: Model, rows: Batch, truth: NDArray[np.int32], weights: Real) -> int:
        """Scores rows of a fold by the model of the others; how many are impossible in every class."""
        found, impossible = model._kernel(rows, model.parameters, "posterior")
        posteriors = np.zeros((rows.n_rows, len(self.classes)))
        posteriors[:, [self.classes.index(name) for name in model.classes]] = found
        np.add.at(self.confusions[fold], (truth, posteriors.argmax(axis=1)), weights)
        said = np.maximum(posteriors[np.arange(len(truth)), truth], np.finfo(float).eps)
        self.lost -= float(weights @ np.log(said))
        return impossible


def _models(groups: Groups, settings: Mapping[str, Any], every: bool) -> list[Model | None]:
    """Of each fold the model of all the others; None of a fold that has no rows, or all of them."""
    used = np.unique(groups.numbers[:, 1])
    models: list[Model | None] = []
    for fold in range(groups.n_groups):
        others = np.arange(groups.n_groups) != fold
        if fold not in used or not others[used].any():
            models.append(None)
            continue
        tally = groups.learned(others, fold, every=every)
        models.append(estimate(tally, **fitting_prior(settings, groups.classes, tally.classes)))
    return models


class _Counting:
    """A table that is read twice, its rows dealt out to folds in the same way each time."""

    def __init__(
        self,
        source: Source,
        labels: Labels,
        schema: Schema | None,
        features: Features,
        missing: Missing,
        n_folds: int,
        seed: int,
    ) -> None:
        self.source, self.labels, self.n_folds, self.seed = source, labels, n_folds, seed
        self._schema, self._features, self._missing = schema, features, missing

    def groups(self) -> tuple[Groups, int]:
        """The rows of each class and fold counted apart, and how many rows have no class."""
        while True:
            try:
                return self._groups()
            except Widened as wider:
                errors.warn(errors.widened(wider.column, wider.kind, self.source.name))

    def _groups(self) -> tuple[Groups, int]:
        growing, place, skipped = None, dict[Label, int](), 0
        for batch in watched(self.source, "counting", self.source.name):
            if not batch.n_rows:
                continue
            batch.threads = self.labels.threads
            if growing is None:
                growing, deal = Growing(self._schema or self._inferred(batch)), _Deal(self.n_folds, self.seed)
            fits = aligned(batch, growing.schema, self.labels.reserved())
            classes, weights = self._classes(batch, growing.schema, place)
            dealt = deal.folds(classes)
            codes = np.where(classes >= 0, classes * self.n_folds + dealt, -1).astype(np.int32)
            names = list(range(len(place) * self.n_folds))
            growing.add(count_rows(fits, growing.schema, Codes(codes, 0, names), weights, self.labels.threads))
            skipped += int(np.count_nonzero(classes < 0))
        if growing is None:
            raise errors.empty_data(self.source.name)
        if not place:
            raise errors.no_target(skipped, self.labels.name)
        if len({name % self.n_folds for name in growing.classes}) < 2:
            raise errors.bad_setting("folds", self.n_folds, "for two labelled rows at least, in two of the folds")
        return _named(growing.frozen(), place, self.n_folds), skipped

    def _inferred(self, batch: Batch) -> Schema:
        return infer(batch, self.labels.reserved(), self.labels.name, self._features, self._missing)

    def rows(
        self, schema: Schema, classes: tuple[Label, ...]
    ) -> Iterator[tuple[Batch, NDArray[np.int32], NDArray[np.int32], Real | None]]:
        """Each batch with the place of every row's class, its fold and its weight."""
        deal, place = _Deal(self.n_folds, self.seed), dict[Label, int]()
        known = {name: c for c, name in enumerate(classes)}
        for batch in watched(self.source, "scoring", self.source.name):
            if not batch.n_rows:
                continue
            batch.threads = self.labels.threads
            numbers, weights = self._classes(batch, schema, place)
            dealt = deal.folds(numbers)
            lookup = np.array([*(known.get(name, -1) for name in place), -1], dtype=np.int32)
            yield aligned(batch, schema, self.labels.reserved()), lookup[numbers], dealt, weights

    def _classes(self, batch: Batch, schema: Schema, place: dict[Label, int]) -> tuple[NDArray[np.int32], Real | None]:
        """The number of each row's class in the order in which they are met, which ``place`` keeps; −1 where there is none."""
        numbers, names, weights = numbered(batch, schema, self.labels)
        refuse_continuous(names, batch.n_rows)
        for name in names:
            place.setdefault(name, len(place))
        lookup = np.array([*(place[name] for name in names), -1], dtype=np.int32)
        return lookup[numbers], weights


def _named(counted: Tally, place: Mapping[Label, int], n_folds: int) -> Groups:
    """The groups with classes in their usual order, not in that in which they were met."""
    labels = np.array(counted.classes, dtype=np.int64)
    met: list[Label] = list(place)
    used = {met[c] for c in np.unique(labels // n_folds).tolist()}
    classes: Any = in_order(used)
    rank = {name: r for r, name in enumerate(classes)}
    renamed = (
        np.array([rank[met[c]] * n_folds for c in (labels // n_folds).tolist()], dtype=np.int64) + labels % n_folds
    )
    order = np.argsort(renamed)
    return Groups(counted.of_classes(order.tolist(), tuple(renamed[order].tolist())), classes, n_folds)


class _Deal:
    """Deals the rows of each class out to the folds: so many in turn go to different folds, in random order."""

    def __init__(self, n_folds: int, seed: int) -> None:
        self._n_folds, self._seed = n_folds, seed
        self._random: dict[int, np.random.Generator] = {}
        self._rest: dict[int, NDArray[np.int32]] = {}  # of each class the folds that its next rows go to

    def folds(self, classes: NDArray[np.int32]) -> NDArray[np.int32]:
        """The fold of each row; of one without a class it means nothing."""
        dealt = np.zeros(len(classes), dtype=np.int32)
        order = np.argsort(classes, kind="stable")
        numbers, starts = np.unique(classes[order], return_index=True)
        for number, (a, b) in zip(numbers.tolist(), pairwise([*starts.tolist(), len(order)]), strict=True):
            if number >= 0:
                dealt[order[a:b]] = self._next(number, b - a)
        return dealt

    def _next(self, number: int, n: int) -> NDArray[np.int32]:
        random = self._random.setdefault(number, np.random.default_rng([self._seed, number]))
        folds = self._rest.get(number, np.zeros(0, dtype=np.int32))
        if len(folds) < n:
            rounds = -(-(n - len(folds)) // self._n_folds)
            turns = np.tile(np.arange(self._n_folds, dtype=np.int32), (rounds, 1))
            folds = np.concatenate([folds, random.permuted(turns, axis=1).reshape(-1)])
        self._rest[number] = folds[n:].copy()
        return folds[:n]
