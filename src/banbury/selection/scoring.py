"""Scoring of rows that are left out: each by the model of what its split learns from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions.text import warn_of_no_words
from banbury.naive_bayes import Model, estimate, score_each
from banbury.readers import Batch, Remembering
from banbury.selection.dataset import Dataset
from banbury.selection.folds import Round, Split
from banbury.selection.groups import Groups
from banbury.tally import Label, Tally
from banbury.threads import each_done

FEW = 32
TOGETHER = 1 << 20  # rows whose columns are made ready at a time, for all models


@dataclass
class PendingWarnings:
    """What is to be told once, however many folds there are."""

    impossible: int = 0  # rows that are impossible in every class
    # Columns none of whose words is left, and how many there were.
    wordless: dict[str, int] = field(default_factory=dict)

    def note(self, model: Model) -> None:
        for group, (_, features, sums) in zip(model.parameters, model.tally.groups, strict=True):
            if n_words := group.lost_words(sums):
                self.wordless[features[0].name] = n_words

    def warn(self, how: str) -> None:
        for column, n_words in self.wordless.items():
            warn_of_no_words(column, n_words)
        if self.impossible:
            errors.warn(errors.all_impossible(self.impossible, f"how={how!r}"))


def score_round(
    rows: Dataset, each: Round, groups: Groups, settings: Mapping[str, Any], want: str, out: Real, told: PendingWarnings
) -> None:
    """Puts what is said of every row, rows × classes, by the model of the split that tests it: one scoring pass."""
    model_of = model_maker(rows, each, groups, settings, told)
    numbers = range(len(each.splits))
    if not groups.counted.has_words:
        models = [model_of(number) for number in numbers]
        if all(model.classes == rows.classes for model in models):
            for batch, start in zip(rows.each("scoring"), rows.starts.tolist(), strict=False):
                at = slice(start, start + batch.n_rows)
                told.impossible += score_batch(rows, models, batch, each.tested_by[at], want, out[at])
            return
    # A model of text is large: one at a time, and all rows of its test.
    workers = 1 if groups.counted.schema.runs_python else min(rows.threads, len(each.splits))

    def whole(number: int) -> int:
        model = replace(model_of(number), threads=rows.threads // workers or 1)
        test = each.splits[number].test
        out[test], impossible = answer(rows, test, model, want)
        return impossible

    told.impossible += sum(each_done(whole, len(each.splits), workers))


def model_maker(
    rows: Dataset, each: Round, groups: Groups, settings: Mapping[str, Any], told: PendingWarnings
) -> Callable[[int], Model]:
    """What makes the model of a split by its number."""

    def model_of(number: int) -> Model:
        tally = learned(rows, each.splits[number], groups, number)
        model = estimate(tally, **fitting_prior(settings, rows.classes, tally.classes))
        told.note(model)
        return model

    return model_of


def score_batch(
    rows: Dataset, models: Sequence[Model], batch: Batch, which: NDArray[np.int32], want: str, out: Real
) -> int:
    """Puts what is said of a batch's rows, each by the model of its number; how many are impossible in every class."""
    impossible = 0
    if all(model.classes == rows.classes and not model.tally.has_words for model in models):
        for first in range(0, batch.n_rows, TOGETHER):
            part, at = Remembering(batch.cut(first, first + TOGETHER)), slice(first, first + TOGETHER)
            impossible += score_each(models, part, which[at], want, rows.threads, out[at])
        return impossible
    for number, model in enumerate(models):
        tested = np.flatnonzero(which == number)
        if len(tested):
            taken = batch.take(tested)
            taken.threads = rows.threads
            found, lost = model._kernel(taken, model.parameters, want)
            out[tested], impossible = of_all_classes(rows, model, found, want), impossible + lost
    return impossible


def fitting_prior(settings: Mapping[str, Any], classes: Sequence[Label], known: Sequence[Label]) -> Mapping[str, Any]:
    """The settings, with given probabilities of all classes shared among those that are known."""
    prior = settings["class_prior"]
    if len(known) == len(classes) or prior is None or isinstance(prior, (str, int, float)):
        return settings
    try:
        given = dict(prior) if isinstance(prior, Mapping) else dict(zip(classes, prior, strict=True))
        kept = {name: float(given[name]) for name in known}
    except (KeyError, TypeError, ValueError):
        return settings  # estimating says what is wrong with it
    total = sum(kept.values())
    if not abs(sum(float(p) for p in given.values()) - 1.0) <= 1e-9:
        return settings
    wanted = f"one that leaves some class possible where only {errors.listed(map(repr, known))} are learned"
    errors.require(total > 0, "class_prior", prior, wanted)
    return {**settings, "class_prior": {name: p / total for name, p in kept.items()}}


def learned(rows: Dataset, split: Split, groups: Groups, number: int, keep: bool = False) -> Tally:
    """The tally of what a split learns from; ``keep``: several models will be made of it."""
    if split.learned is not None:
        return groups.learned(split.learned, number, keep, every=rows.any_idle)
    assert split.rows is not None
    chosen = np.full(rows.n_rows, -1, dtype=np.int32)
    chosen[split.rows] = 0
    return Groups(rows.count(chosen, 1, groups.counted.schema), rows.classes, 1).total


def answer(rows: Dataset, test: Int, model: Model, want: str) -> tuple[Real, int]:
    """What a model says of rows, in the order of all classes; and how many are impossible in every class."""
    out, start, impossible = np.empty((len(test), len(rows.classes))), 0, 0
    for batch in rows.take(test):
        found, lost = model._kernel(batch, model.parameters, want)
        out[start : start + batch.n_rows] = of_all_classes(rows, model, found, want)
        start, impossible = start + batch.n_rows, impossible + lost
    return out, impossible


def of_all_classes(rows: Dataset, model: Model, scores: Real, want: str) -> Real:
    """Scores in the order of all classes: one that the model does not know is impossible."""
    if model.classes == rows.classes:
        return scores
    out = np.full((len(scores), len(rows.classes)), 0.0 if want == "posterior" else -np.inf)
    out[:, [rows.classes.index(name) for name in model.classes]] = scores
    return out


def normalised(log_joint: Real) -> Real:
    """P(class | row) of log joint probabilities; equal shares in a row in which every class is impossible."""
    top = _over_classes(np.maximum, log_joint)
    impossible = np.isneginf(top)
    if impossible.any():
        log_joint = np.where(impossible[:, None], 0.0, log_joint)
        top = np.where(impossible, 0.0, top)
    shares = np.exp(log_joint - top[:, None])
    shares /= _over_classes(np.add, shares)[:, None]
    return shares


def _over_classes(join: Any, numbers: Real) -> Real:
    """A ufunc over the classes of each row; of few classes one after the other, which NumPy does faster."""
    if numbers.shape[1] > FEW:
        return np.asarray(join.reduce(numbers, axis=1))
    result = numbers[:, 0].copy()
    for c in range(1, numbers.shape[1]):
        join(result, numbers[:, c], out=result)
    return result
