"""The parameter class_weight of scikit-learn: a factor for the rows of each class, applied to the class prior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from banbury import errors
from banbury.families.family import check_positive
from banbury.learner import ModelSettings
from banbury.model.naive_bayes import ClassPrior, class_log_prior, log_sum, shares_by_class
from banbury.tally.tally import Tally

BALANCED = "balanced"


def check_class_weight(class_weight: Any, classes: Iterable[Any] | None = None) -> None:
    """Raises an error unless ``class_weight`` is None, "balanced" or a mapping from class to a positive number.

    A class that is not listed has weight 1, and a listed class may be absent. If both occur, a name is probably
    misspelt, and an error is raised. ``classes`` are those of the rows; without them, the
    listed ones may still come.
    """
    if class_weight is None or (isinstance(class_weight, str) and class_weight == BALANCED):
        return
    if isinstance(class_weight, str):
        raise errors.unknown_choice("class_weight", class_weight, [BALANCED])
    errors.require(
        isinstance(class_weight, Mapping),
        "class_weight",
        class_weight,
        "None, 'balanced', or a mapping from class to weight, such as {'spam': 1, 'ham': 10}",
    )
    for name, weight in class_weight.items():
        check_positive(f"class_weight[{name!r}]", weight)
    class_names = list(class_weight if classes is None else classes)  # that may be listed
    for name in class_weight:
        if name not in class_names and not set(class_names).issubset(class_weight):
            raise errors.unknown_class(name, class_names)


@dataclass(frozen=True, eq=False)
class ClassifierSettings(ModelSettings):
    """Settings in which the class prior may name classes without rows and is multiplied by the class weights."""

    class_weight: Any = None
    declared: frozenset[Any] = frozenset()  # classes named in advance

    def prior(self, tally: Tally) -> ClassPrior:
        """Returns the class prior for models of a tally, multiplied by the class weights: a share by class, or as it
        was given; "uniform" for balanced weights. ``self.declared`` are the classes that were named in advance.
        """
        prior: Any = self.class_prior  # None, "uniform", a number, or weights by class
        if isinstance(prior, Mapping):  # the prior of classes without rows is divided among the others
            # Declared classes without rows.
            unseen = [name for name in self.declared if name in prior and name not in tally.classes]
            shares = shares_by_class(prior, (*tally.classes, *unseen))  # probabilities that sum to 1
            total = sum(shares[name] for name in tally.classes)
            errors.require(total > 0, "class_prior", prior, "weights that leave some class with rows possible")
            prior = {name: shares[name] / total for name in tally.classes} if unseen else prior
        if not isinstance(self.class_weight, Mapping):
            return prior if self.class_weight is None else "uniform"
        weights = np.array([float(self.class_weight.get(name, 1.0)) for name in tally.classes])  # one per class
        scores = class_log_prior(prior, tally) + np.log(weights)  # log P(class), not normalised
        # P(class), one per class.
        shares = np.exp(scores - log_sum(scores[None])[0])
        return dict(zip(tally.classes, shares.tolist(), strict=True))
