"""Semi-supervised learning: expectation maximisation, for rows of which some, or all, have no label.

Soft labels from a model, a model from soft labels, until neither changes.

A. Dempster, N. Laird and D. Rubin, *Maximum likelihood from incomplete data via the EM algorithm* (1977); of texts, K. Nigam,
A. McCallum, S. Thrun and T. Mitchell, *Text classification from labeled and unlabeled documents using EM* (2000).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.families.gaussian import find_narrow_classes
from banbury.model.naive_bayes import Model, estimate
from banbury.semi_supervised.observed import Observed
from banbury.tally.tally import Label

Start = Callable[[], Real]  # soft labels to begin with
TRIAL = 30  # iterations after which a mixture's poorer starts are given up
GO_ON = 3  # starts that go on from there
ROUNDS = 5  # of gathering texts, before a mixture of them begins to climb
GATHERED = 2 / 3  # of an equal part of the rows: so many are gathered by each class
LITTLE = 1e-3  # of its weight: what any other row counts there
HOWS = ("mle", "map", "mean")  # those that maximise something
FALL = 1e-9  # of the objective: rounding may lose as much


@dataclass(frozen=True, eq=False)
class Task:
    """Rows to be learned from: of each its weight and the number of its class, −1 where it has none; and how it is estimated."""

    observed: Observed
    classes: tuple[Label, ...]
    labels: NDArray[np.int32]
    weights: Real
    settings: Mapping[str, Any]  # of bb.estimate

    def model(self, soft: Real) -> Model:
        """What rows × classes of weights come to."""
        return estimate(self.observed.tally(self.classes, soft), **self.settings)

    def soft_labels(self, log_joint: Real) -> Real:
        """P(class | row); of a row that has a label, one."""
        return self.expect_labels(log_joint)[0]

    def expect_labels(self, log_joint: Real) -> tuple[Real, float]:
        """The soft labels; and log P(rows), of rows that have a label that of row and label, each as often as it weighs."""
        joint = np.array(log_joint.T, order="C")  # classes × rows: sums over few classes are quick
        highest = joint.max(axis=0)
        np.exp(np.subtract(joint, highest, out=joint), out=joint)
        total = joint.sum(axis=0)
        joint /= total
        log_likelihoods = highest + np.log(total)
        labelled = np.flatnonzero(self.labels >= 0)
        labels = self.labels[labelled]
        joint[:, labelled] = 0.0
        joint[labels, labelled] = 1.0
        log_likelihoods[labelled] = log_joint[labelled, labels]
        counted = self.weights > 0
        return joint.T, float((self.weights[counted] * log_likelihoods[counted]).sum())


@dataclass(frozen=True, eq=False)
class Climb:
    """Where EM came to from one start.

    ``log_likelihoods`` and ``objectives`` have a number for each iteration. The objective is the log-likelihood plus the log of
    the prior, but for a constant: what no iteration makes smaller.
    """

    model: Model
    soft: Real  # the weights of rows × classes that the model was learned from
    posteriors: Real  # what it says of each row
    log_likelihoods: tuple[float, ...]
    objectives: tuple[float, ...]
    converged: bool
    fell: bool = False  # whether it ended because another iteration would have lost
    warnings: tuple[Warning | str, ...] = ()  # of the model that is kept


def climb(task: Task, start: Real, max_iter: int, tol: float) -> Climb:
    """EM from P(class | row), rows × classes, until the objective grows by no more than ``tol`` of itself."""
    _refuse_empty(task.classes, task.weights @ start)
    return _continue_climb(task, start, None, max_iter, tol)


def _refuse_empty(classes: tuple[Label, ...], weights: Real) -> None:
    for c in np.flatnonzero(~(weights > 0)).tolist():
        raise errors.EmptyData(
            f"class {classes[c]!r} has no row to start from, because the weights of its rows are zero. Give one of "
            "its rows a weight above zero, or leave the class out."
        )


def onward(task: Task, last: Climb, max_iter: int, tol: float) -> Climb:
    """The same climb, of ``max_iter`` iterations in all."""
    return _continue_climb(task, last.posteriors, last, max_iter, tol)


def _continue_climb(task: Task, posteriors: Real, last: Climb | None, max_iter: int, tol: float) -> Climb:
    """Iterations from these posteriors on, which ``last`` came to; one that loses is not kept, and ends it."""
    while last is None or not (last.converged or last.fell or len(last.objectives) >= max_iter):
        model = task.model(soft := posteriors * task.weights[:, None])
        posteriors, likelihood = task.expect_labels(task.observed.log_joint(model))
        objective = likelihood + log_prior(model)
        if last is None:
            last = Climb(model, soft, posteriors, (likelihood,), (objective,), False)
            continue
        gained = objective - last.objectives[-1]
        size = abs(objective)
        converged = -max(tol, FALL) * size <= gained <= tol * size
        if gained < -FALL * size:
            return replace(last, converged=converged, fell=True)
        likelihoods = (*last.log_likelihoods, likelihood)
        objectives = (*last.objectives, objective)
        last = Climb(model, soft, posteriors, likelihoods, objectives, converged)
    return last


def log_prior(model: Model) -> float:
    """What the priors of all features and of the classes add to the log-likelihood, but for a constant."""
    pairs = zip(model.tally.groups, model.parameters, strict=True)
    total = sum(family.log_prior(parameters, sums, model.choice) for (family, _, sums), parameters in pairs)
    prior = model.class_prior
    if isinstance(prior, (int, float)) and not isinstance(prior, bool) and prior > 0:
        total += float(prior) * float(model.log_prior.sum())
    return total


def with_starts(task: Task, starts: Iterable[Start], max_iter: int, tol: float, trial: int | None = None) -> Climb:
    """The best of several climbs, by the objective; after ``trial`` iterations only the best three go on. Words go by name."""
    climbs = list[Climb]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.BanburyWarning)
        for start in starts:
            climbs.append(climb(task, start(), min(trial or max_iter, max_iter), tol))
            climbs = _best(climbs)[: 1 if trial is None else GO_ON]
        best = _best([onward(task, candidate, max_iter, tol) for candidate in climbs])[0]
    tally = task.observed.tally_by_name(task.classes, best.soft)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimate(tally, **task.settings)
    model = replace(model, threads=task.observed.threads)
    return replace(best, model=model, warnings=tuple(warning.message for warning in caught))


def _best(climbs: list[Climb]) -> list[Climb]:
    """The highest first; of equals the one that was first."""
    return sorted(climbs, key=lambda candidate: -candidate.objectives[-1])


def find_narrow(model: Model) -> list[tuple[Label, str, float]]:
    """Where a bell curve of a class is so narrow, beside its column, that it stands on one value: class, column and value."""
    groups = zip(model.tally.groups, model.parameters, strict=True)
    collapsed = (
        (features, spot) for (_, features, sums), parameters in groups for spot in find_narrow_classes(parameters, sums)
    )
    return [(model.classes[c], features[f].name, value) for features, (f, c, value) in collapsed]


# Starts --------------------------------------------------------------------------------------------------------------


def starts_from_labels(task: Task, starts: int, seed: int) -> Iterator[Start]:
    """What a model of the rows that have labels says of the others; then of the same rows, weighted at random."""

    def start(drawn: Real) -> Real:
        labelled = np.flatnonzero(task.labels >= 0)
        soft = np.zeros((len(task.labels), len(task.classes)))
        soft[labelled, task.labels[labelled]] = task.weights[labelled] * drawn[labelled]
        _refuse_empty(task.classes, soft.sum(axis=0))
        return task.soft_labels(task.observed.log_joint(task.model(soft)))

    rng = np.random.default_rng(seed)
    for number in range(starts):
        yield partial(start, np.ones(len(task.weights)) if number == 0 else rng.exponential(size=len(task.weights)))


def random_start(task: Task, rng: np.random.Generator) -> Start:
    """What a model says whose every class is by half a row drawn at random; texts, being thin, then gather the nearest rows."""
    n_classes = len(task.classes)
    drawn = rng.choice(np.flatnonzero(task.weights > 0), n_classes, replace=False)

    def start() -> Real:
        if n_classes == 1:
            return np.ones((len(task.weights), 1))
        soft = np.repeat(task.weights[:, None] / n_classes, n_classes, axis=1)
        soft[drawn, np.arange(n_classes)] += task.weights.sum() / n_classes
        log_joint = task.observed.log_joint(task.model(soft))
        for _ in range(ROUNDS if task.observed.texts else 0):
            log_joint = task.observed.log_joint(task.model(_gather(task, log_joint)))
        return task.soft_labels(log_joint)

    return start


def _gather(task: Task, log_joint: Real) -> Real:
    """For each class the rows that speak for it most by the word, beside the runner-up; and a little of all others."""
    n_rows, n_classes = log_joint.shape
    words = np.maximum(task.observed.n_words, 1.0)
    soft = np.repeat(LITTLE * task.weights[:, None], n_classes, axis=1)
    for c in range(n_classes):
        ahead = (log_joint[:, c] - np.delete(log_joint, c, axis=1).max(axis=1)) / words
        nearest = np.argsort(np.where(task.weights > 0, -ahead, np.inf), kind="stable")
        nearest = nearest[: max(int(GATHERED * n_rows / n_classes), 1)]
        soft[nearest, c] += task.weights[nearest]
    return soft
