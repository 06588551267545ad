"""LikelihoodDisplay: P(value | class) of one feature, over the histogram of its rows; of a block its contours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.distributions.family import Feature
from banbury.naive_bayes import Model
from banbury.plots import contours
from banbury.plots.display import Display, colour, line, name, names
from banbury.plots.features import (
    ClassedRows,
    FeatureParts,
    check_model,
    check_whole,
    grid,
    log_likelihood,
    named_values,
    number_of,
    parts_of,
    span,
    table,
)
from banbury.renamed import takes_old

MOST_BINS = 50
STEPS = 200  # of a plane, in each direction


class RowsPerBin(NamedTuple):
    """The histogram of a column: its bins' edges, and the density of each class's rows in them, bins × classes."""

    edges: Real
    density: Real


@dataclass(eq=False, repr=False)
class LikelihoodDisplay(Display):
    """P(value | class) of one feature: densities of a numeric column, over a histogram if rows are given; else bars.

    ``values`` are those drawn, ``likelihood`` what the model says of them, values × classes, times P(class) where ``prior``
    is true. ``histogram`` has the rows' own densities, or is None.

    A block of two columns of numbers is drawn as contours, which have 50% and 90% of each class inside: ``plane`` has its grid
    and the rows as points, and ``likelihood`` is (up, across, classes). A joint table has bars for its combinations of values, a
    block of occurrences for its most telling columns.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> shown = bb.plots.LikelihoodDisplay.from_model(model, "wind")
    >>> shown.classes, shown.values
    (('no', 'yes'), ['strong', 'weak'])
    >>> shown.likelihood.round(3).tolist()
    [[0.571, 0.364], [0.429, 0.636]]
    """

    feature: Feature
    classes: tuple[Any, ...]
    values: Any
    likelihood: Real
    value_names: Sequence[str] = field(default=(), kw_only=True)
    prior: bool = field(default=False, kw_only=True)
    histogram: RowsPerBin | None = field(default=None, kw_only=True)
    hidden: int = field(default=0, kw_only=True)
    plane: contours.Plane | None = field(default=None, kw_only=True)
    what: str = field(default="value", kw_only=True)
    chosen: str = field(default="frequent", kw_only=True)

    @classmethod
    @takes_old(most="n")
    def from_model(
        cls,
        model: Model,
        feature: Any,
        data: Any = None,
        target: Any = None,
        *,
        columns: str | Sequence[str] | None = None,
        classes: Sequence[Any] | None = None,
        prior: bool = False,
        bins: int | Sequence[float] | None = None,
        n: int = 20,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws a feature as the model sees it.

        ``data`` and ``target``, as ``bb.count`` takes them, put a histogram under the densities, of so many ``bins`` or with
        these edges. ``classes``: only some of them. ``prior``: times P(class), and the rows' shares likewise. ``n``: of a
        category with more values the most frequent. ``columns``: of a block of numbers two, or one, that are drawn, whatever the
        others are.
        """
        check_model(model)
        check_whole("n", n, 1)
        parts = parts_of(model, feature)
        chosen = model.classes if classes is None else tuple(classes)
        at = [number_of(model, label) for label in chosen]
        if not chosen:
            raise errors.bad_setting("classes", classes, "one of the model's classes at least")
        drawn = _drawn(parts, columns)
        if not parts.axes:
            return cls._named(model, parts, chosen, at, prior, n).plot(ax)
        rows = None if data is None else ClassedRows(model, data, target, reading)
        if len(drawn) > 1:
            return cls._contours(model, parts.feature, (drawn[0], drawn[1]), chosen, at, rows, prior).plot(ax)
        return cls._densities(model, parts.feature, drawn[0], chosen, at, rows, prior, bins).plot(ax)

    @classmethod
    def _named(
        cls, model: Model, parts: FeatureParts, classes: tuple[Any, ...], at: list[int], prior: bool, n: int
    ) -> Self:
        """Of values, combinations of them, or columns of occurrences."""
        shown = named_values(model, parts, n)
        likelihood = shown.share
        if likelihood is None:
            likelihood = np.exp(log_likelihood(model, parts.feature, shown.values))
        likelihood = (likelihood * np.exp(model.log_prior) if prior else likelihood)[:, at]
        names = {"value_names": shown.names, "hidden": shown.hidden, "what": shown.what, "chosen": shown.chosen}
        return cls(parts.feature, classes, shown.values, likelihood, prior=prior, **names)  # type: ignore[arg-type]

    @classmethod
    def _densities(
        cls,
        model: Model,
        feature: Feature,
        column: str,
        classes: tuple[Any, ...],
        at: list[int],
        rows: ClassedRows | None,
        prior: bool,
        bins: Any,
    ) -> Self:
        histogram, seen = None, None
        if rows is not None:
            numbers = rows.numbers(column)
            used = np.isin(rows.classes, at) & np.isfinite(numbers)
            if not used.any():
                raise errors.empty_data(None, f"no row of these classes has a value of {column!r}")
            seen, own = numbers[used], rows.classes[used]
            total = int(np.count_nonzero(rows.classes >= 0))
            histogram = _histogram(feature, seen, own, at, bins, total if prior else None)
        values = grid(model, feature, column, seen)
        logs = model.log_likelihood(table(model, {column: values}), feature.name)
        alone = feature if len(feature.inputs) == 1 else feature._replace(name=column, columns=())
        likelihood = cls._scaled(model, logs, prior)[:, at]
        return cls(alone, classes, values, likelihood, prior=prior, histogram=histogram)

    @classmethod
    def _contours(
        cls,
        model: Model,
        feature: Feature,
        columns: tuple[str, str],
        classes: tuple[Any, ...],
        at: list[int],
        rows: ClassedRows | None,
        prior: bool,
    ) -> Self:
        """Of two of a block's columns."""
        points = None if rows is None else rows.points(columns)
        if points is not None:
            place = np.full(len(model.classes), -1, dtype=np.int64)
            place[at] = np.arange(len(at))
            points = points[0], points[1], place[points[2]]
        seen: Any = (None, None) if points is None else points[:2]
        across, up = (np.linspace(*_wider(*span(model, columns[i], seen[i])), STEPS) for i in (0, 1))
        xs, ys = np.meshgrid(across, up)
        logs = model.log_likelihood(table(model, {columns[0]: xs.ravel(), columns[1]: ys.ravel()}), feature.name)
        likelihood = cls._scaled(model, logs, prior)[:, at].reshape(STEPS, STEPS, len(at))
        plane = contours.Plane(columns, across, up, points)
        return cls(feature, classes, (across, up), likelihood, prior=prior, plane=plane)

    @staticmethod
    def _scaled(model: Model, logs: Real, prior: bool) -> Real:
        return np.exp(logs + model.log_prior if prior else logs)

    def _draw(self, ax: Any) -> None:
        if self.plane is not None:
            self._planes(ax)
        elif isinstance(self.values, np.ndarray):
            self._lines(ax)
        else:
            self._bars(ax)

    def _lines(self, ax: Any) -> None:
        ax = self._begin(ax, 6.4, 3.8)
        called = names(self.classes)
        self._rows(ax)
        counts = np.array_equal(self.values, np.round(self.values))  # whole numbers are points
        for c, label in enumerate(called):
            style = {"color": colour(c), "linestyle": line(c), "label": label}
            few = counts and len(self.values) <= 60
            ax.plot(self.values, self.likelihood[:, c], marker="o" if few else None, markersize=3.5, **style)
        low, high = self.values[0], self.values[-1]
        ax.set_xlim(low - 0.6 * counts, high + 0.6 * counts)
        ax.set_ylim(0.0, self._top())
        what = self.feature.family.measure()
        ax.set_xlabel(name(self.feature.name))
        ax.set_ylabel(f"P(class) · {what} given the class" if self.prior else f"{what} given the class")
        if counts:
            ax.xaxis.get_major_locator().set_params(integer=True)
        self._title(f"{name(self.feature.name)}: {self.feature.family.adjective()} {what} of each class")
        ax.legend(ncols=2 if len(called) > 8 else 1)

    def _planes(self, ax: Any) -> None:
        assert self.plane is not None
        ax = self._begin(ax, 5.8, 4.4)
        contours.draw(ax, self.plane, self.likelihood, self.classes)
        ax.set_xlabel(name(self.plane.columns[0], 40))
        ax.set_ylabel(name(self.plane.columns[1], 40))
        inside = " and ".join(f"{share:.0%}" for share in sorted(contours.INSIDE))
        family = self.feature.family.adjective()
        self._title(f"{name(self.feature.name, 40)}: {family} density; contours with {inside} of each class inside")

    def _rows(self, ax: Any) -> None:
        if self.histogram is None:
            return
        for c in range(len(self.classes)):
            fill = {"color": colour(c), "alpha": 0.22 if len(self.classes) < 5 else 0.12, "linewidth": 0}
            ax.stairs(self.histogram.density[:, c], self.histogram.edges, fill=True, **fill)
        ax.stairs([0.0], self.histogram.edges[:2], fill=True, color="#CCCCCC", label="histogram of the rows")

    def _top(self) -> float:
        """Room for all densities, and for bars that are not much higher."""
        finite = self.likelihood[np.isfinite(self.likelihood)]
        top = float(finite.max(initial=0.0))
        if self.histogram is not None:
            top = max(top, min(float(self.histogram.density.max(initial=0.0)), 4.0 * top))
        return top * 1.08 or 1.0

    def _bars(self, ax: Any) -> None:
        n_values, n_classes = self.likelihood.shape
        ax = self._begin(ax, 6.4, 1.3 + 0.16 * n_values * min(max(n_classes, 2), 5))
        thick = 0.84 / n_classes
        for c, label in enumerate(names(self.classes)):
            places = np.arange(n_values) - 0.42 + thick * (c + 0.5)
            hatch = {"hatch": "//", "edgecolor": "white"} if c >= 8 else {}
            ax.barh(places, self.likelihood[:, c], thick * 0.9, color=colour(c), label=label, **hatch)
        ax.set_yticks(np.arange(n_values), names(self.value_names))
        ax.set_ylim(n_values - 0.5, -0.5)
        ax.tick_params(axis="y", length=0)
        ax.set_xlim(0.0, float(self.likelihood.max(initial=0.0)) * 1.05 or 1.0)
        what = self.what
        ax.set_xlabel(f"P(class) · P({what} | class)" if self.prior else f"P({what} | class)")
        more = f" ({n_values:,} most {self.chosen} of {n_values + self.hidden:,} {what}s)" if self.hidden else ""
        self._title(f"{name(self.feature.name, 40)}: probability of each {what} given the class{more}")
        ax.legend()


def _drawn(parts: FeatureParts, columns: Any) -> tuple[str, ...]:
    """The columns that make the axes: those given, or all there are."""
    feature, inputs = parts.feature, parts.feature.inputs
    if columns is None and (len(inputs) < 3 or not parts.axes):
        return inputs
    if not parts.axes:
        raise errors.bad_setting("columns", columns, f"None for {feature.name!r}, which is no block of numbers")
    chosen = (columns,) if isinstance(columns, str) else tuple(columns) if isinstance(columns, (list, tuple)) else ()
    if len(set(chosen)) not in (1, 2) or len(set(chosen)) != len(chosen) or not set(chosen).issubset(inputs):
        raise errors.BadSetting(
            f"block {feature.name!r} has {len(inputs):,} columns ({errors.listed(inputs, 6)}), and its picture has two axes. "
            f"Name two of them, whatever the others are: columns=({inputs[0]!r}, {inputs[1]!r}). Got {columns!r} instead.",
            feature=feature.name,
            columns=list(inputs),
        )
    return chosen


def _wider(low: float, high: float) -> tuple[float, float]:
    """Room for contours around the rows."""
    return low - 0.1 * (high - low), high + 0.1 * (high - low)


def _histogram(feature: Feature, values: Real, classes: Any, at: list[int], bins: Any, total: int | None) -> RowsPerBin:
    """The rows' density in each bin; of each class it integrates to one, or, with a total, to the class's share of the rows."""
    edges = _edges(feature, values, [values[classes == c] for c in at], bins)
    columns = []
    for c in at:
        own = values[classes == c]
        counts = np.histogram(own, edges)[0]
        columns.append(counts / (np.diff(edges) * max(len(own) if total is None else total, 1)))
    return RowsPerBin(edges, np.stack(columns, axis=1))


def _edges(feature: Feature, values: Real, each: Sequence[Real], bins: Any) -> Real:
    """Those given, or bins of the width that Freedman and Diaconis have for the class in the middle; whole numbers stay whole."""
    if bins is not None:
        try:
            return np.asarray(np.histogram_bin_edges(values, bins), dtype=np.float64)
        except (TypeError, ValueError):
            raise errors.bad_setting("bins", bins, "a whole number from 1 up, or ascending edges") from None
    low, high = float(values.min()), float(values.max())
    widths = [
        2.0 * float(np.subtract(*np.quantile(own, [0.75, 0.25]))) / len(own) ** (1 / 3) for own in each if len(own)
    ]
    width = float(np.clip(np.median(widths), (high - low) / MOST_BINS, (high - low) / 10)) or 1.0
    if not np.array_equal(values, np.floor(values)):
        return np.asarray(low + width * np.arange(np.floor((high - low) / width) + 2.0))
    width = max(np.round(width), 1.0)
    return np.asarray(low - 0.5 + width * np.arange(np.floor((high - low) / width) + 2.0))
