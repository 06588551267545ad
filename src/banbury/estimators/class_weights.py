"""class_weight, as scikit-learn has it: so many times as much does a row of a class weigh."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.distributions.family import check_positive
from banbury.naive_bayes import class_log_prior, log_sum
from banbury.table import Labels
from banbury.tally import Tally

BALANCED = "balanced"


def check_class_weight(class_weight: Any, classes: Iterable[Any] | None = None) -> None:
    """Raises unless it is None, "balanced" or a mapping from class to a number above 0.

    A class without a weight has 1, and a weight of no class is not used; where there are both, as a name that is misspelt
    makes them, it raises. Without ``classes`` those that have weights may still come.
    """
    if class_weight is None or (isinstance(class_weight, str) and class_weight == BALANCED):
        return
    if isinstance(class_weight, str):
        raise errors.unknown_choice("class_weight", class_weight, [BALANCED])
    wanted = "None, 'balanced', or a mapping from class to weight, such as {'spam': 1, 'ham': 10}"
    errors.require(isinstance(class_weight, Mapping), "class_weight", class_weight, wanted)
    for name, weight in class_weight.items():
        check_positive(f"class_weight[{name!r}]", weight)
    known = list(class_weight if classes is None else classes)
    for name in class_weight:
        if name not in known and not set(known).issubset(class_weight):
            raise errors.unknown_class(name, known)


def weighted_prior(class_weight: Any, class_prior: Any, tally: Tally) -> Any:
    """The class prior of a tally whose classes weigh so much: the prior times the weights; of balanced ones "uniform"."""
    if not isinstance(class_weight, Mapping):
        return class_prior if class_weight is None else "uniform"
    scores = class_log_prior(class_prior, tally) + np.log(_weights(class_weight, tally.classes))
    shares = np.exp(scores - log_sum(scores[None])[0])
    return dict(zip(tally.classes, shares.tolist(), strict=True))


def weighted_rows(class_weight: Any, given: Labels) -> Labels:
    """The labels with the weights of rows times those of their classes."""
    if class_weight is None or given.codes is None:
        return given
    codes = given.codes.codes.astype(np.int64) - given.codes.low
    known = (codes >= 0) & (codes < len(given.codes.values))
    rows = np.ones(len(codes)) if given.weights is None else given.weights
    there = np.unique(codes[known])
    classes = [given.codes.values[k] for k in there.tolist()]
    check_class_weight(class_weight, classes)
    if isinstance(class_weight, Mapping):
        each = _weights(class_weight, classes)
    else:
        totals = np.array([math.fsum(rows[codes == k]) for k in there])  # in whatever order the rows come
        counted = totals > 0
        share = math.fsum(totals) / max(int(np.count_nonzero(counted)), 1)
        each = np.divide(share, totals, out=np.ones(len(totals)), where=counted)
    times = np.ones(len(codes))
    times[known] = each[np.searchsorted(there, codes[known])]
    return replace(given, weights=Labels.without_target(rows * times, given.threads).weights)


def _weights(class_weight: Mapping[Any, Any], classes: Iterable[Any]) -> Real:
    return np.array([float(class_weight.get(name, 1.0)) for name in classes])
