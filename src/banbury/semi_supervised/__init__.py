"""Semi-supervised learning: expectation maximisation (EM), for rows of which some, or all, have no label.

It computes soft labels, P(class | row), from a model, and a model from rows with soft labels, in turn, until neither changes.

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

Start = Callable[[], Real]  # computes the soft labels to start from (rows, classes)
TRIAL = 30  # iterations after which the poorer starts of a mixture are dropped
STARTS_CONTINUED = 3  # starts that are continued after that
ROUNDS = 5  # how often texts are gathered before EM begins
GATHERED_SHARE = 2 / 3  # each class gathers this share of an equal part of the rows
OTHER_SHARE = 1e-3  # the share of its weight with which any other row counts for the class
HOWS = ("mle", "map", "mean")  # estimators that maximise an objective
ROUNDING_SHARE = 1e-9  # rounding may lower the objective by this share


@dataclass(frozen=True, eq=False)
class Task:
    """What EM learns from: rows, some with a label, and the settings of ``bb.estimate``."""

    observed: Observed  # the rows
    classes: tuple[Label, ...]
    labels: NDArray[np.int32]  # the class number of each row, −1 if it has no label
    weights: Real  # of each row
    settings: Mapping[str, Any]  # keyword arguments of ``bb.estimate``

    def model(self, soft: Real) -> Model:
        """Returns the model that is estimated from soft labels times weights, ``soft`` (rows × classes)."""
        return estimate(self.observed.tally(self.classes, soft), **self.settings)

    def expect_labels(self, log_joint: Real) -> tuple[Real, float]:
        """Returns the soft labels (rows × classes) and the weighted log-likelihood of the rows, from log joint
        probabilities (rows × classes). A labelled row contributes log P(row, label), others log P(row).
        """
        posteriors = np.array(log_joint.T, order="C")  # classes × rows, so that sums over few classes are fast
        largest = posteriors.max(axis=0)  # the highest log joint probability of each row
        np.exp(np.subtract(posteriors, largest, out=posteriors), out=posteriors)
        row_sums = posteriors.sum(axis=0)  # P(row), divided by the highest joint probability
        posteriors /= row_sums
        log_likelihoods = largest + np.log(row_sums)  # of each row
        labelled_rows = np.flatnonzero(self.labels >= 0)
        labels = self.labels[labelled_rows]  # class numbers
        posteriors[:, labelled_rows] = 0.0
        posteriors[labels, labelled_rows] = 1.0
        log_likelihoods[labelled_rows] = log_joint[labelled_rows, labels]
        is_weighted = self.weights > 0
        return posteriors.T, float((self.weights[is_weighted] * log_likelihoods[is_weighted]).sum())


@dataclass(frozen=True, eq=False)
class Climb:
    """EM from one start, after some iterations: the model, and the history of its objective.

    ``log_likelihoods`` and ``objectives`` have a number for each iteration. The objective is the log-likelihood plus the log of
    the prior, up to a constant; no iteration lowers it, except by rounding.
    """

    model: Model
    soft: Real  # the soft labels times weights that the model was learned from (rows, classes)
    posteriors: Real  # the soft labels that the model gives (rows, classes)
    log_likelihoods: tuple[float, ...]
    objectives: tuple[float, ...]
    converged: bool  # whether the last iteration gained almost nothing
    fell: bool = False  # whether it ended because another iteration would have lowered the objective
    warnings: tuple[Warning | str, ...] = ()  # those given when the final model was estimated


def climb(task: Task, start: Real, max_iter: int, tol: float) -> Climb:
    """Runs EM on the rows of a task from soft labels ``start`` (rows × classes) until the relative gain of the
    objective is at most ``tol``, or for ``max_iter`` iterations, and returns where it ended. Raises an error if a class
    has no row to start from.
    """
    _refuse_empty(task.classes, task.weights @ start)
    return resume_climb(task, _iterate(task, start), max_iter, tol)


def _refuse_empty(classes: tuple[Label, ...], class_weights: Real) -> None:
    """Raises an error that names the first of the ``classes`` whose total weight (``class_weights``, one per class) is
    0, so that it has nothing to start from.
    """
    for class_number in np.flatnonzero(~(class_weights > 0)).tolist():
        raise errors.EmptyData(
            f"class {classes[class_number]!r} has no row to start from, because the weights of its rows are zero. Give one of "
            "its rows a weight above zero, or leave the class out."
        )


def resume_climb(task: Task, last_climb: Climb, max_iter: int, tol: float) -> Climb:
    """Continues EM on the rows of a task from where ``last_climb`` ended, up to ``max_iter`` iterations in all, and
    returns where it ended. An iteration that lowers the objective is discarded and ends the climb; so does a gain of at
    most ``tol``, relative to the objective.
    """
    while not (last_climb.converged or last_climb.fell or len(last_climb.objectives) >= max_iter):
        next_climb = _iterate(task, last_climb.posteriors, last_climb.log_likelihoods, last_climb.objectives)
        objective = next_climb.objectives[-1]
        gain = objective - last_climb.objectives[-1]
        scale = abs(objective)  # gains are compared with it
        converged = -max(tol, ROUNDING_SHARE) * scale <= gain <= tol * scale
        if gain < -ROUNDING_SHARE * scale:
            return replace(last_climb, converged=converged, fell=True)
        last_climb = replace(next_climb, converged=converged)
    return last_climb


def _iterate(
    task: Task, posteriors: Real, log_likelihoods: tuple[float, ...] = (), objectives: tuple[float, ...] = ()
) -> Climb:
    """Runs one iteration: estimates the model of a task's rows with the soft labels ``posteriors`` (rows × classes),
    and the soft labels of that model. Returns both, and its log-likelihood and objective after those of earlier
    iterations, ``log_likelihoods`` and ``objectives``.
    """
    weighted_labels = posteriors * task.weights[:, None]
    model = task.model(weighted_labels)
    posteriors, log_likelihood = task.expect_labels(task.observed.log_joint(model))
    # The log-likelihoods, and the objectives.
    history = (*log_likelihoods, log_likelihood), (*objectives, log_likelihood + log_prior(model))
    return Climb(model, weighted_labels, posteriors, *history, converged=False)


def log_prior(model: Model) -> float:
    """Returns the log density of the priors of a model, of all features and of the classes, up to a constant."""
    # For each group of features of one family: the family, the features and their sums; and their parameters.
    groups_and_parameters = zip(model.tally.groups, model.parameters, strict=True)
    log_density = sum(
        family.log_prior(parameters, sums, model.choice) for (family, _, sums), parameters in groups_and_parameters
    )
    class_prior = model.class_prior
    # A number is the pseudo-count of each class.
    if isinstance(class_prior, (int, float)) and not isinstance(class_prior, bool) and class_prior > 0:
        log_density += float(class_prior) * float(model.log_prior.sum())
    return log_density


def climb_from_starts(
    task: Task, starts: Iterable[Start], max_iter: int, tol: float, trial: int | None = None
) -> Climb:
    """Runs EM from several starts and returns the climb with the highest objective. The final model is counted anew,
    with words by name.

    Args:
        task: The rows to learn from.
        starts: Functions that compute the soft labels to start from.
        max_iter: The most iterations from one start.
        tol: The relative gain of the objective at which EM ends.
        trial: The number of iterations after which only the best three starts are continued; None to run each to its
            end and keep the best.
    """
    climbs = list[Climb]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.BanburyWarning)
        for start in starts:
            climbs.append(climb(task, start(), min(trial or max_iter, max_iter), tol))
            climbs = _sort_climbs(climbs)[: 1 if trial is None else STARTS_CONTINUED]
        best_climb = _sort_climbs([resume_climb(task, candidate, max_iter, tol) for candidate in climbs])[0]
    tally = task.observed.tally_by_name(task.classes, best_climb.soft)
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        model = estimate(tally, **task.settings)
    model = replace(model, threads=task.observed.threads)
    return replace(best_climb, model=model, warnings=tuple(warning.message for warning in caught_warnings))


def _sort_climbs(climbs: list[Climb]) -> list[Climb]:
    """Returns climbs sorted by their last objective, highest first; equal ones keep their order."""
    return sorted(climbs, key=lambda candidate: -candidate.objectives[-1])


def find_narrow_curves(model: Model) -> list[tuple[Label, str, float]]:
    """Finds the densities of a class in a model that have collapsed onto one value. Returns the class, the column and
    the value of each.
    """
    return [
        (model.classes[class_number], features.names[feature_number], value)
        for (_, features, sums), parameters in zip(model.tally.groups, model.parameters, strict=True)
        for feature_number, class_number, value in find_narrow_classes(parameters, sums)
    ]


# Starts --------------------------------------------------------------------------------------------------------------


def starts_from_labels(task: Task, starts: int, seed: int) -> Iterator[Start]:
    """Yields ``starts`` functions that compute soft labels (rows × classes) from a model of the labelled rows of a
    task. All but the first weight the rows at random, with random numbers that ``seed`` decides.
    """

    def start(random_weights: Real) -> Real:
        """Returns soft labels (rows × classes) from a model of the labelled rows of the task, whose weights are
        multiplied by these random ones (rows,).
        """
        labelled_rows = np.flatnonzero(task.labels >= 0)
        weighted_labels = np.zeros((len(task.labels), len(task.classes)))
        weighted_labels[labelled_rows, task.labels[labelled_rows]] = (
            task.weights[labelled_rows] * random_weights[labelled_rows]
        )
        _refuse_empty(task.classes, weighted_labels.sum(axis=0))
        return task.expect_labels(task.observed.log_joint(task.model(weighted_labels)))[0]

    rng = np.random.default_rng(seed)
    for number in range(starts):
        yield partial(start, np.ones(len(task.weights)) if number == 0 else rng.exponential(size=len(task.weights)))


def random_start(task: Task, rng: np.random.Generator) -> Start:
    """Returns a function that computes soft labels for the rows of a task from a model in which one random row, drawn
    with ``rng``, has half the weight of each class. With texts, which have few words in common, each class then gathers
    the nearest rows.
    """
    n_classes = len(task.classes)
    seed_rows = rng.choice(np.flatnonzero(task.weights > 0), n_classes, replace=False)  # one for each class

    def start() -> Real:
        """Returns soft labels (rows × classes) of the task's rows from the random ones, ``seed_rows``, one for each
        class.
        """
        if n_classes == 1:
            return np.ones((len(task.weights), 1))
        # Soft labels times weights (rows × classes).
        weighted_labels = np.repeat(task.weights[:, None] / n_classes, n_classes, axis=1)
        weighted_labels[seed_rows, np.arange(n_classes)] += task.weights.sum() / n_classes
        log_joint = task.observed.log_joint(task.model(weighted_labels))
        for _ in range(ROUNDS if task.observed.texts else 0):
            log_joint = task.observed.log_joint(task.model(_gather_nearest_rows(task, log_joint)))
        return task.expect_labels(log_joint)[0]

    return start


def _gather_nearest_rows(task: Task, log_joint: Real) -> Real:
    """Returns soft labels times weights (rows × classes) of a task's rows, in which each class has the rows that fit it
    best, and little of all other rows. The fit is the lead of ``log_joint`` (rows × classes) over the best other class,
    per word.
    """
    n_rows, n_classes = log_joint.shape
    n_words = np.maximum(task.observed.n_words, 1.0)  # of each row
    weighted_labels = np.repeat(OTHER_SHARE * task.weights[:, None], n_classes, axis=1)
    for class_number in range(n_classes):
        lead_per_word = (log_joint[:, class_number] - np.delete(log_joint, class_number, axis=1).max(axis=1)) / n_words
        rows_by_lead = np.argsort(np.where(task.weights > 0, -lead_per_word, np.inf), kind="stable")
        nearest_rows = rows_by_lead[: max(int(GATHERED_SHARE * n_rows / n_classes), 1)]
        weighted_labels[nearest_rows, class_number] += task.weights[nearest_rows]
    return weighted_labels
