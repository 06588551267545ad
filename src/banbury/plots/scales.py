"""Scale: the values of a column, or the cells of a pair of them, as a nomogram has them, each with its decibans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.families.cells import Cells, NamedCells, NumberCells
from banbury.families.family import Feature
from banbury.model.naive_bayes import Model
from banbury.plots.display import name, names
from banbury.plots.features import ClassedRows, grid, log_likelihood, parts_of, span, values_by_name
from banbury.reading import read
from banbury.weighing.model import WeighedParameters
from banbury.weighing.words import ScaledParameters

Apart = Callable[[Real], Real]  # what values say of each class → for how many decibans they speak
STEPS = 200  # points of a numeric feature's curve
LANE = 1.0  # heights of the lanes of categories and of numbers
CURVE = 1.7
PAIR_LANE = 2.2  # and of pairs, whose names are long
CELLS = 8  # of a pair that are shown: those that tell most
OTHER = "any other"
WORDS = 10  # words of a text for each class, and how many values they are looked for among
MOST_TELLING = 100


@dataclass(frozen=True)
class Scale:
    """The values of a feature that are drawn, and for how many decibans each speaks.

    Numbers that are weighed have a step for each cell: each place where one ends is there twice. The values of a pair are the
    names of its cells; ``shown`` are those that are drawn.
    """

    feature: str
    values: Any
    decibans: Real
    names: list[str]
    rows: Real  # how many have each value, where values are counted
    numeric: bool
    otherwise: float = 0.0  # for how many decibans a value speaks that is missing, or none of these
    shown: list[int] | None = None  # None: all
    words: bool = False  # whether they are words of a text, each as one that stands alone

    @property
    def range(self) -> float:
        """How much the feature can tell, in decibans."""
        if not len(self.decibans):
            return 0.0
        return float(np.ptp(self.decibans)) if np.isfinite(self.decibans).all() else np.inf

    def label(self, *value: Any) -> str:
        """What stands beside the lane, with the value of a row, if given; of a pair also how many of its values are drawn."""
        if self.words:
            return "\n= ".join([f"{name(self.feature)}: words, each alone", *(name(part, 26) for part in value)])
        if self.shown is None:
            return " = ".join([name(self.feature), *(name(part, 18) for part in value)])
        first, _, second = self.feature.partition(" with ")
        label = "\n= ".join([f"{name(first)} with\n{name(second)}", *(name(part, 34) for part in value)])
        every = np.count_nonzero(self.rows)
        return label if len(self.shown) >= every else f"{label}\n({len(self.shown)} of {every:,} combinations)"

    def ticks(self) -> tuple[Real, list[str], Real]:
        """Decibans, names and rows of what has a tick; of a pair, the cells that tell most."""
        if self.shown is not None:
            return self.decibans[self.shown], [self.names[k] for k in self.shown], self.rows[self.shown]
        if not self.otherwise:
            return self.decibans, self.names, self.rows
        return np.append(self.decibans, self.otherwise), [*self.names, OTHER], np.append(self.rows, 0.0)

    @property
    def height(self) -> float:
        return CURVE if self.numeric else LANE if self.levels == 1 else PAIR_LANE

    @property
    def levels(self) -> int:
        """Of names above and below the line."""
        return 1 if self.shown is None and not self.words else 2

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


def scales_of_tables(model: Model, apart: Apart, rows: ClassedRows | None, classes: Sequence[Any]) -> Iterator[Scale]:
    """The scales of the columns and pairs of a weighed model: the very numbers that it adds up."""
    plain = model.weighed(None)
    for group in model.parameters:
        if group.features[0].reads_text:
            yield text_scale(model, group.features[0], apart, classes)
            continue
        if isinstance(group, ScaledParameters):
            weighed: Any = partial(_times, apart, group.weight)
            yield plain_scale(plain, group.features[0], weighed, rows, classes)
            continue
        assert isinstance(group, WeighedParameters)
        for feature, table, (first, second) in zip(group.features, group.tables, group.found_by.columns, strict=True):
            decibans = apart(table)
            cells = group.cells[first]
            if second >= 0:
                yield _of_pair(feature, decibans, *((group.cells[j], group.counts[j]) for j in (first, second)))
            elif isinstance(cells, NumberCells):
                ends = span(plain, feature.name, _numbers_of(rows, feature), 0.0)
                yield _of_numbers(feature, decibans, cells.cuts, *ends)
            else:
                assert isinstance(cells, NamedCells)
                yield _of_names(feature, decibans, cells, group.counts[first].sum(axis=1))


def _times(apart: Apart, weight: float, says: Real) -> Real:
    return apart(weight * says)


def _numbers_of(rows: ClassedRows | None, feature: Feature) -> Real | None:
    """The numbers of a column that rows have."""
    seen = np.zeros(0) if rows is None else rows.numbers(feature.inputs[0])
    seen = seen[np.isfinite(seen)]
    return seen if len(seen) else None


def _of_numbers(feature: Feature, decibans: Real, cuts: Real, low: float, high: float) -> Scale:
    ends = [min(low, *cuts[:1]), *np.repeat(cuts, 2).tolist(), max(high, *cuts[-1:])]
    steps = np.repeat(decibans[: len(cuts) + 1], 2)
    missing = float(decibans[min(len(cuts) + 1, len(decibans) - 1)])
    return Scale(feature.name, np.array(ends), steps, [], np.empty(0), True, missing)


def _of_names(feature: Feature, decibans: Real, cells: NamedCells, rows: Real) -> Scale:
    there = np.flatnonzero(rows > 0)  # a value that was forgotten has no rows
    values = [cells.keys[k] for k in there.tolist()]
    return Scale(feature.name, values, decibans[there], names(values), rows[there], False, float(decibans[-1]))


def _of_pair(feature: Feature, decibans: Real, first: tuple[Cells, Real], second: tuple[Cells, Real]) -> Scale:
    """Cells are drawn that speak most strongly on either side, and those that tell most: how much, times how often."""
    (nodes_down, n_down), (nodes_across, n_across) = node_names(*first), node_names(*second)
    values, called = ([(a[k], b[k]) for a in nodes_down for b in nodes_across] for k in (0, 1))
    often = np.outer(n_down, n_across).ravel()
    ends = {int(decibans.argmin()), int(decibans.argmax())}
    telling = np.argsort(-often * np.abs(decibans), kind="stable").tolist()
    shown = sorted(k for k in sorted(telling, key=lambda k: k not in ends)[:CELLS] if decibans[k])
    together = [f"{a} with {b}" for a, b in called]
    return Scale(feature.name, values, decibans, together, often, False, 0.0, shown)


def node_names(cells: Cells, rows: Real) -> tuple[list[tuple[Any, str]], Real]:
    """The names of a column's nodes as pairs have them, in full and in short, and their rows; the last has all other values."""
    fine = cells.nodes.fine[:-1]
    first = np.unique(fine, return_index=True)[1]
    last = np.unique(fine[::-1], return_index=True)[1]
    stretches = [cells.name(int(a), len(fine) - 1 - int(b)) for a, b in zip(first, last, strict=True)]
    numbers = isinstance(cells, NumberCells)
    called = [*((value, _short(value) if numbers else name(value, 18)) for value in stretches), (OTHER, OTHER)]
    return called, np.bincount(fine, rows.sum(axis=1), len(called)).astype(np.float64)


def _short(stretch: str | None) -> str:
    """Where numbers lie, with few digits."""
    words = name(stretch, 60).removeprefix("from ").replace(" to ", " – ").split(" ")
    return " ".join(word if word in "<≤=≥–" or stretch is None else f"{float(word):,.5g}" for word in words)
