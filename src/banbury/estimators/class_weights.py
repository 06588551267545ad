"""class_weight, as scikit-learn has it: so many times as much does a row of a class weigh."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.distributions.family import check_positive
from banbury.naive_bayes import class_log_prior, log_sum
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


def _weights(class_weight: Mapping[Any, Any], classes: Iterable[Any]) -> Real:
    return np.array([float(class_weight.get(name, 1.0)) for name in classes])
