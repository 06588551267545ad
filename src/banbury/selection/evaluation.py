"""Evaluation: how good a model is on labelled rows that it has not counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury import errors
from banbury.distributions.keys import dense_numbers
from banbury.naive_bayes import Answering
from banbury.selection.dataset import renumbered, used_names
from banbury.selection.results import Evaluation
from banbury.sums import in_order
from banbury.tally import Label


def evaluate(model: Answering, data: Any, target: str | None = None, **reading: Any) -> Evaluation:
    """The measures of ``bb.cross_validate``, of a model or of a belief network with a target, on other rows.

    ``target`` is the column of the true classes: the one that the model was counted with, if not given. Rows without a class are
    left aside. A class that the model does not know is never answered, so its rows are wrong.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> model = bb.estimate(bb.count({name: column[:10] for name, column in weather.items()}, target="play"))
    >>> found = bb.evaluate(model, {name: column[10:] for name, column in weather.items()})
    >>> found.confusion.tolist(), found.accuracy.value
    ([[1, 0], [1, 2]], 0.75)
    """
    if not hasattr(type(model), "stream"):
        wanted = "a Model, as bb.estimate makes it, or a BeliefNetwork; that of an estimator is its model_ or network_"
        raise errors.bad_setting("the model", type(model).__name__, wanted)
    if target is not None and not isinstance(target, str):
        raise errors.bad_setting("target", type(target).__name__, "the name of the column that has the true classes")
    source = model._read(data, reading)
    target = next((name for name in (target, model.target, source.target) if name is not None), None)
    if target is None:
        raise errors.bad_setting("target", target, "the name of the column that has the true classes")
    parts: list[tuple[Any, Any]] = []
    posteriors = []
    n_rows = 0
    for batch, found in model.stream(source):
        numbers, names = dense_numbers(batch.codes(target, model.target_kind), batch.threads or 1)
        parts.append((names, numbers))
        posteriors.append(found[numbers >= 0])
        n_rows += batch.n_rows
    if not n_rows:
        raise errors.empty_data(source.name)
    seen = set[Label]().union(*(used_names(names, numbers) for names, numbers in parts))
    if not seen:
        raise errors.no_target(n_rows, target)
    new = in_order(seen.difference(model.classes))
    classes: Any = (*model.classes, *new)
    truth = renumbered(parts, classes)
    rows = np.flatnonzero(truth >= 0)
    scores = np.concatenate([*posteriors])
    scores = np.hstack([scores, np.zeros((len(scores), len(new)))])
    notes = (f"the model has not met {errors.listed(map(repr, new), 5)}",) if new else ()
    return Evaluation(classes, rows, truth[rows], scores, notes=notes)
