"""LikelihoodDisplay: P(value | class) of one feature, over the histogram of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.families.family import Feature, in_words
from banbury.model.naive_bayes import Model
from banbury.plots.display import Display, colour, legend_beside, line, name, names
from banbury.plots.features import (
    ClassedRows,
    FeatureParts,
    check_model,
    counted_range,
    grid,
    log_likelihood,
    number_of,
    parts_of,
    table,
    values_by_name,
)

MOST_BINS = 50
LEAST_DIFFERENCE = 0.05  # of the rows of two classes, below which nobody sees that they differ
SHRUNK = 0.6  # of that difference; curves that keep less are explained


class RowsPerBin(NamedTuple):
    """The histogram of a column: its bins' edges, and the density of each class's rows in them, bins × classes."""

    edges: Real
    density: Real


@dataclass(eq=False, repr=False)
class LikelihoodDisplay(Display):
    """P(value | class) of one feature: densities for a numeric column, over a histogram if rows are given; otherwise
    bars.

    ``values`` are those drawn, and ``likelihood`` their likelihoods (values × classes), multiplied by P(class) if
    ``prior`` is true. ``histogram`` has the densities of the rows, or is None. For a block of numbers, one column is
    drawn; for a joint table, its combinations of values; for a matrix of occurrences, its most informative columns.
    ``note`` explains why the curves of trees are closer together than the histograms, if they are.

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
    what: str = field(default="value", kw_only=True)
    chosen: str = field(default="frequent", kw_only=True)
    note: str | None = field(default=None, kw_only=True)

    @classmethod
    def from_model(
        cls,
        model: Model,
        feature: Any,
        data: Any = None,
        target: Any = None,
        *,
        columns: str | None = None,
        classes: Sequence[Any] | None = None,
        prior: bool = False,
        bins: int | Sequence[float] | None = None,
        n: int = 20,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws the likelihood of a feature.

        Args:
            model: A model with the feature.
            feature: The name of the feature, or the columns of a block.
            data: Rows for a histogram behind the densities, in any form that ``bb.count`` reads.
            target: The classes of these rows.
            bins: The number of bins of the histogram, or their edges.
            classes: The classes to draw; all unless given.
            prior: Whether to multiply by P(class), and the histogram by the class frequencies.
            n: How many of the most frequent values of a category to draw.
            columns: The column of a block of numbers to draw.
        """
        check_model(model)
        errors.check_whole("n", n, 1, 10**6)
        model = model.weighed(None)  # weights change what a value is worth, not how values lie
        parts = parts_of(model, feature)
        chosen = model.classes if classes is None else tuple(classes)
        at = [number_of(model, label) for label in chosen]
        errors.require(chosen, "classes", classes, "at least one of the model's classes")
        drawn = _column_to_draw(parts, columns)
        feature = parts.feature
        rows = None if data is None or not parts.axes else ClassedRows(model, data, target, reading)
        weight = model.log_prior if prior else np.zeros(len(model.classes))
        more: dict[str, Any] = {"prior": prior}
        if not parts.axes:  # values, combinations of them, or columns of occurrences
            shown = values_by_name(model, parts, n)
            values: Any = shown.values
            more |= {"value_names": shown.names, "hidden": shown.hidden, "what": shown.what, "chosen": shown.chosen}
            likelihoods = np.exp(log_likelihood(model, feature, values)) if shown.share is None else shown.share
            likelihood = likelihoods * np.exp(weight)
        else:
            seen = None
            if rows is not None:
                seen, more["histogram"] = _histogram(rows, drawn, at, bins, prior)
            values = grid(model, feature, drawn, seen)
            logs = model.log_likelihood(table(model, {drawn: values}), feature.name)
            likelihood = np.exp(logs + weight)
            if (
                "histogram" in more and counted_range(parts) is not None
            ):  # rows left out decide how far classes may differ
                more["note"] = explain_agreement(more["histogram"], values, likelihood[:, at])
            if len(feature.inputs) > 1:
                feature = feature._replace(name=drawn, columns=())
        return cls(feature, chosen, values, likelihood[:, at], **more).plot(ax)

    def _draw(self, ax: Any) -> None:
        (self._lines if isinstance(self.values, np.ndarray) else self._bars)(ax)

    def _lines(self, ax: Any) -> None:
        ax = self._begin(ax, 7.4, 3.8)
        called = names(self.classes)
        classes = range(len(self.classes))
        top = float(self.likelihood[np.isfinite(self.likelihood)].max(initial=0.0))
        if self.histogram is not None:
            edges, density = self.histogram
            for c in classes:
                fill = {"color": colour(c), "alpha": 0.22 if len(classes) < 5 else 0.12, "linewidth": 0}
                ax.stairs(density[:, c], edges, fill=True, **fill)
            ax.stairs([0.0], edges[:2], fill=True, color="#CCCCCC", label="histogram of the rows")
            top = max(top, min(float(density.max(initial=0.0)), 4.0 * top))  # bars may be a good deal higher
        counts = np.array_equal(self.values, np.round(self.values))  # whole numbers are points
        has_marks = counts and len(self.values) <= 60
        for c in classes:
            style = {"color": colour(c), "linestyle": line(c), "label": called[c]}
            ax.plot(self.values, self.likelihood[:, c], marker="o" if has_marks else None, markersize=3.5, **style)
        what = "density" if self.feature.family.has_density() else "probability"
        room = 0.6 * counts
        ax.set(xlim=(self.values[0] - room, self.values[-1] + room), ylim=(0.0, top * 1.08 or 1.0))
        ax.set_xlabel(name(self.feature.name) + (f"\n\n{self.note}" if self.note else ""))
        ax.set_ylabel(f"P(class) · {what} given the class" if self.prior else f"{what} given the class")
        if counts:
            ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_title(
            f"{name(self.feature.name)}: {in_words(self.feature.family).removesuffix(' density')} {what} of each class"
        )
        legend_beside(ax)

    def _bars(self, ax: Any) -> None:
        n_values, n_classes = self.likelihood.shape
        ax = self._begin(ax, 7.4, 1.3 + 0.16 * n_values * min(max(n_classes, 2), 5))
        thick = 0.84 / n_classes
        for c, label in enumerate(names(self.classes)):
            places = np.arange(n_values) - 0.42 + thick * (c + 0.5)
            hatch = {"hatch": "//", "edgecolor": "white"} if c >= 8 else {}
            ax.barh(places, self.likelihood[:, c], thick * 0.9, color=colour(c), label=label, **hatch)
        ax.set_yticks(np.arange(n_values), names(self.value_names))
        most = float(self.likelihood.max(initial=0.0)) * 1.05 or 1.0
        ax.set(xlim=(0.0, min(most, 1.0)), ylim=(n_values - 0.5, -0.5))
        ax.tick_params(axis="y", length=0)
        what = self.what
        ax.set_xlabel(f"P(class) · P({what} | class)" if self.prior else f"P({what} | class)")
        rank = "informative" if self.chosen == "telling" else self.chosen
        more = f" ({n_values:,} most {rank} of {n_values + self.hidden:,} {what}s)" if self.hidden else ""
        ax.set_title(f"{name(self.feature.name, 40)}: probability of each {what} given the class{more}")
        legend_beside(ax)


def _column_to_draw(parts: FeatureParts, columns: Any) -> str:
    """The column that makes the axis: the one given, or the only one there is."""
    feature = parts.feature
    inputs = parts.feature.inputs
    if columns is None and (len(inputs) < 2 or not parts.axes):
        return inputs[0]
    errors.require(parts.axes, "columns", columns, f"None for {feature.name!r}, which is not a block of numbers")
    if columns not in inputs:
        text = f"block {feature.name!r} has {len(inputs):,} columns ({errors.listed(inputs, 6)}), but its picture has one axis. "
        text += f"Name one of them: columns={inputs[0]!r}. Got {columns!r} instead. "
        text += "bb.plots.DecisionBoundaryDisplay draws two."
        raise errors.BadSetting(text, feature=feature.name, columns=list(inputs))
    return str(columns)


def explain_agreement(histogram: RowsPerBin, values: Real, likelihood: Real) -> str | None:
    """Why the curves of two classes agree where their histograms differ; None where both differ about as much."""
    edges, density = histogram
    rows = density * np.diff(edges)[:, None]
    heights = np.where(np.isfinite(likelihood), likelihood, 0.0)
    steps = np.diff(values)[:, None] * (heights[1:] + heights[:-1]) / 2.0
    area = np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)])
    curves = np.stack([np.diff(np.interp(edges, values, area[:, c])) for c in range(area.shape[1])], axis=1)
    of_rows = largest_difference(rows)
    of_curves = largest_difference(curves)
    if of_rows < LEAST_DIFFERENCE or of_curves >= SHRUNK * of_rows:
        return None
    return (
        f"The histograms of two classes differ by up to {of_rows:.0%} of their rows, the curves by {of_curves:.0%}: "
        "the rest did not help to predict held-out rows and is treated as chance."
    )


def largest_difference(masses: Real) -> float:
    """The share of rows that would have to move for two classes to agree, bins × classes: that of the classes most unlike."""
    total = masses.sum(axis=0)
    shares = masses[:, total > 0] / total[total > 0]
    between = (0.5 * np.abs(shares - shares[:, [c]]).sum(axis=0).max(initial=0.0) for c in range(shares.shape[1]))
    return float(max(between, default=0.0))


def _histogram(rows: ClassedRows, column: str, at: list[int], bins: Any, prior: bool) -> tuple[Real, RowsPerBin]:
    """The numbers, and their density in each bin: that of a class integrates to 1, or with the prior to its share of the rows."""
    numbers = rows.numbers(column)
    used = np.isin(rows.classes, at) & np.isfinite(numbers)
    if not used.any():
        raise errors.empty_data(None, f"no row of these classes has a value of {column!r}")
    values = numbers[used]
    classes = rows.classes[used]
    by_class = [values[classes == c] for c in at]
    edges = _edges(values, by_class, bins)
    total = int(np.count_nonzero(rows.classes >= 0))
    density = [
        np.histogram(class_values, edges)[0] / (np.diff(edges) * max(total if prior else len(class_values), 1))
        for class_values in by_class
    ]
    return values, RowsPerBin(edges, np.stack(density, axis=1))


def _edges(values: Real, by_class: Sequence[Real], bins: Any) -> Real:
    """Those given, or bins of the width that Freedman and Diaconis have for the class in the middle; whole numbers stay whole."""
    if bins is not None:
        try:
            return np.asarray(np.histogram_bin_edges(values, bins), dtype=np.float64)
        except (TypeError, ValueError):
            raise errors.bad_setting("bins", bins, "a whole number of at least 1, or ascending edges") from None
    low = float(values.min())
    high = float(values.max())
    quartiles = (
        (np.quantile(class_values, [0.75, 0.25]), len(class_values)) for class_values in by_class if len(class_values)
    )
    widths = [2.0 * float(np.subtract(*ends)) / n ** (1 / 3) for ends, n in quartiles]
    width = float(np.clip(np.median(widths), (high - low) / MOST_BINS, (high - low) / 10)) or 1.0
    if not np.array_equal(values, np.floor(values)):
        return np.asarray(low + width * np.arange(np.floor((high - low) / width) + 2.0))
    width = max(np.round(width), 1.0)
    return np.asarray(low - 0.5 + width * np.arange(np.floor((high - low) / width) + 2.0))
