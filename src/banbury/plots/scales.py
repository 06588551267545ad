"""Scale: the values of a column as a nomogram has them, each with its decibans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.families.family import Feature
from banbury.model.naive_bayes import Model
from banbury.plots.display import name, names
from banbury.plots.features import ClassedRows, grid, log_likelihood, parts_of, values_by_name
from banbury.reading import read

Apart = Callable[[Real], Real]  # what values say of each class → for how many decibans they speak
STEPS = 200  # points of a numeric feature's curve
LANE = 1.0  # heights of the lanes of categories, of numbers and of words
CURVE = 1.7
WORD_LANE = 2.2
WORDS = 10  # words of a text for each class, and how many values they are looked for among
MOST_TELLING = 100


@dataclass(frozen=True)
class Scale:
    """The values of a feature that are drawn, and for how many decibans each speaks."""

    feature: str
    values: Any
    decibans: Real
    names: list[str]
    rows: Real  # how many have each value, where values are counted
    numeric: bool
    words: bool = False  # whether they are words of a text, each as one that stands alone

    @property
    def range(self) -> float:
        """How much the feature can tell, in decibans."""
        if not len(self.decibans):
            return 0.0
        return float(np.ptp(self.decibans)) if np.isfinite(self.decibans).all() else np.inf

    def label(self, *value: Any) -> str:
        """What stands beside the lane, with the value of a row, if given."""
        if self.words:
            return "\n= ".join([f"{name(self.feature)}: words, each alone", *(name(part, 26) for part in value)])
        return " = ".join([name(self.feature), *(name(part, 18) for part in value)])

    @property
    def height(self) -> float:
        return CURVE if self.numeric else WORD_LANE if self.words else LANE

    def heights(self, values: Any, middle: float) -> Any:
        """How high numbers lie in their lane."""
        low = self.values[0]
        high = self.values[-1]
        share = (np.asarray(values, dtype=np.float64) - low) / (high - low)
        return middle + 0.8 * CURVE * (np.clip(share, 0.0, 1.0) - 0.5)


def text_scale(model: Model, feature: Feature, apart: Apart, classes: Sequence[Any]) -> Scale:
    """The words of a column of texts that tell most for these classes, each as if it stood alone in a text."""
    group = next(g.select([k]) for g in model.parameters for k, f in enumerate(g.features) if f.name == feature.name)
    telling = model.informative(MOST_TELLING, classes).ratios.values()
    words_of_classes = ([str(r.value) for r in ratios if r.feature == feature.name][:WORDS] for ratios in telling)
    says: dict[str, Real] = {}
    for word in dict.fromkeys(word for words in words_of_classes for word in words):
        batch = next(iter(read({feature.name: [word]}, kinds={feature.name: "text"})))
        terms = group.terms(batch, model._kernel(batch, [group], "parts")[0][0])
        says |= {term.value: term.log_likelihood for term in terms if term.value == word}
    decibans = apart(np.array(list(says.values()))) if says else np.zeros(0)
    return Scale(feature.name, list(says), decibans, names(list(says)), np.abs(decibans), False, words=True)


def plain_scale(
    model: Model, feature: Feature, apart: Apart, rows: ClassedRows | None, classes: Sequence[Any]
) -> Scale:
    """The scale of a feature whose evidence is as it was counted."""
    if feature.reads_text:
        return text_scale(model, feature, apart, classes)
    parts = parts_of(model, feature.name)
    if parts.is_numeric:
        values: Any = grid(model, feature, feature.inputs[0], _numbers_of(rows, feature), STEPS, 0.0)
        called = list[str]()
        counted = np.empty(0)
    else:
        values, called, counted, *_ = values_by_name(model, parts)
    decibans = apart(log_likelihood(model, feature, values))
    return Scale(feature.name, values, decibans, names(called), counted, parts.is_numeric)


def _numbers_of(rows: ClassedRows | None, feature: Feature) -> Real | None:
    """The numbers of a column that rows have."""
    seen = np.zeros(0) if rows is None else rows.numbers(feature.inputs[0])
    seen = seen[np.isfinite(seen)]
    return seen if len(seen) else None
