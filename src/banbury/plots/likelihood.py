"""LikelihoodDisplay: P(value | class) of one feature, over the histogram of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.families.family import Feature, in_words
from banbury.model.naive_bayes import Model
from banbury.plots.display import Display, colour, legend_beside, line_style, short_name, short_names
from banbury.plots.features import (
    ClassedRows,
    FeatureParts,
    axis_values,
    check_model,
    complete_rows,
    feature_parts_of,
    log_likelihood,
    number_of,
    range_of_counts,
    values_by_name,
)

MOST_BINS = 50
VISIBLE_DIFFERENCE = 0.05  # of the rows of two classes, below which nobody sees that they differ
SHARE_TO_KEEP = 0.6  # of the difference between histograms; if curves keep less of it, a note explains why


class RowsPerBin(NamedTuple):
    """The histogram of a column: its bins' edges (ascending, one more than bins), and the density of each class's rows
    in them (bins × classes).
    """

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
    classes: tuple[Any, ...]  # those drawn
    values: Any  # an array of numbers, or a list of other values
    likelihood: Real
    prior: bool = False
    histogram: RowsPerBin | None = None
    note: str | None = None
    value_names: Sequence[str] = ()  # of the values, unless they are numbers
    hidden: int = 0  # how many values are not drawn
    what: str = "value"  # what people call one of the values
    chosen: str = "frequent"  # why these are drawn: they are the most frequent, or the most "informative"

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
        model = model.weighed(weighing=None)  # weights change what a value is worth, not how values lie
        feature_parts = feature_parts_of(model, feature)  # the feature, its numeric columns (axes) and its sums
        drawn_classes = model.classes if classes is None else tuple(classes)
        class_numbers = [number_of(model, label) for label in drawn_classes]
        errors.require(drawn_classes, "classes", classes, "at least one of the model's classes")
        drawn_column = _column_to_draw(feature_parts, columns)
        feature = feature_parts.feature
        rows = None if data is None or not feature_parts.axes else ClassedRows(model, data, target, reading)
        # Added to the log-likelihood of each class.
        log_weight = model.log_prior if prior else np.zeros(len(model.classes))
        if not feature_parts.axes:  # values, combinations of them, or columns of occurrences
            named = values_by_name(model, feature_parts, n)  # the values to draw, with their names
            # P(value | class), values × classes.
            share = np.exp(log_likelihood(model, feature, named.values)) if named.share is None else named.share
            likelihood = (share * np.exp(log_weight))[:, class_numbers]
            # What the display says of the values.
            naming = (named.names, named.hidden, named.what, named.chosen)
            # Without a histogram and a note.
            return cls(feature, drawn_classes, named.values, likelihood, prior, None, None, *naming).plot(ax)
        row_values = None  # the numbers of the rows
        histogram = None
        note = None
        if rows is not None:
            row_values, histogram = _histogram(rows, drawn_column, class_numbers, bins, prior)
        values = axis_values(model, feature, drawn_column, row_values)  # at which the curves are drawn
        # Values × classes.
        log_likelihoods = model.log_likelihood(complete_rows(model, {drawn_column: values}), feature.name)
        likelihood = np.exp(log_likelihoods + log_weight)[:, class_numbers]
        if histogram is not None and range_of_counts(feature_parts) is not None:
            # Of a column counted value by value, held-out rows decide how far the curves of classes may differ.
            note = explain_agreement(histogram, values, likelihood)
        if len(feature.inputs) > 1:
            feature = feature._replace(name=drawn_column, columns=())
        return cls(feature, drawn_classes, values, likelihood, prior, histogram, note).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws lines for numbers, which are an array, and bars for other values."""
        (self._draw_lines if isinstance(self.values, np.ndarray) else self._draw_bars)(ax)

    def _draw_lines(self, ax: Any) -> None:
        """Draws the densities or probabilities (``self.likelihood``, values × classes) of a numeric column as lines,
        over the histogram if there is one. ``self.prior``: whether they were multiplied by P(class).
        """
        ax = self._begin(ax, width=7.4, height=3.8)
        n_classes = len(self.classes)
        # On the vertical axis.
        highest = float(self.likelihood[np.isfinite(self.likelihood)].max(initial=0.0))
        if self.histogram is not None:
            edges, density = self.histogram  # density: bins × classes
            for class_number in range(n_classes):
                style = {"color": colour(class_number), "alpha": 0.22 if n_classes < 5 else 0.12}
                ax.stairs(density[:, class_number], edges, fill=True, linewidth=0, **style)
            ax.stairs([0.0], edges[:2], fill=True, color="#CCCCCC", label="histogram of the rows")
            highest = max(highest, min(float(density.max(initial=0.0)), 4.0 * highest))  # bars may be much higher
        are_whole = np.array_equal(self.values, np.round(self.values))  # whole numbers are points
        marker = "o" if are_whole and len(self.values) <= 60 else None
        for class_number, label in enumerate(short_names(self.classes)):
            style = {"color": colour(class_number), "linestyle": line_style(class_number), "label": label}
            ax.plot(self.values, self.likelihood[:, class_number], marker=marker, markersize=3.5, **style)
        noun = "density" if self.feature.family.has_density() else "probability"
        margin = 0.6 * are_whole  # beside the first and the last value
        ax.set(xlim=(self.values[0] - margin, self.values[-1] + margin), ylim=(0.0, highest * 1.08 or 1.0))
        ax.set_xlabel(short_name(self.feature.name) + (f"\n\n{self.note}" if self.note else ""))
        ax.set_ylabel(f"P(class) · {noun} given the class" if self.prior else f"{noun} given the class")
        if are_whole:
            ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_title(
            f"{short_name(self.feature.name)}: {in_words(self.feature.family).removesuffix(' density')} {noun} of each class"
        )
        legend_beside(ax)

    def _draw_bars(self, ax: Any) -> None:
        """Draws the probabilities of values (``self.likelihood``, values × classes) as bars, a bar per class for each
        value. ``self.hidden`` is the number of values that are not drawn, ``self.what`` what a value is called, and
        ``self.chosen`` why these are drawn.
        """
        n_values, n_classes = self.likelihood.shape
        ax = self._begin(ax, width=7.4, height=1.3 + 0.16 * n_values * min(max(n_classes, 2), 5))
        bar_height = 0.84 / n_classes
        for class_number, label in enumerate(short_names(self.classes)):
            # The bars of a value take up 0.84 of its place.
            positions = np.arange(n_values) - 0.42 + bar_height * (class_number + 0.5)
            hatch = {"hatch": "//", "edgecolor": "white"} if class_number >= 8 else {}
            style = {"color": colour(class_number), "label": label, **hatch}
            ax.barh(positions, self.likelihood[:, class_number], bar_height * 0.9, **style)
        ax.set_yticks(np.arange(n_values), short_names(self.value_names))
        # The end of the horizontal axis, a probability.
        limit = float(self.likelihood.max(initial=0.0)) * 1.05 or 1.0
        ax.set(xlim=(0.0, min(limit, 1.0)), ylim=(n_values - 0.5, -0.5))
        ax.tick_params(axis="y", length=0)
        noun = self.what  # such as "value"
        ax.set_xlabel(f"P(class) · P({noun} | class)" if self.prior else f"P({noun} | class)")
        selection_note = (
            f" ({n_values:,} most {self.chosen} of {n_values + self.hidden:,} {noun}s)" if self.hidden else ""
        )
        ax.set_title(f"{short_name(self.feature.name, 40)}: probability of each {noun} given the class{selection_note}")
        legend_beside(ax)


def _column_to_draw(feature_parts: FeatureParts, columns: Any) -> str:
    """Returns the column on the axis: the one named by the argument ``columns``, or the only one of the feature. Raises
    an error if a block of several numeric columns needs another name.
    """
    feature = feature_parts.feature
    inputs = feature.inputs
    if columns is None and (len(inputs) < 2 or not feature_parts.axes):
        return inputs[0]
    errors.require(
        feature_parts.axes, "columns", columns, f"None for {feature.name!r}, which is not a block of numbers"
    )
    if columns not in inputs:
        text = f"block {feature.name!r} has {len(inputs):,} columns ({errors.listed(inputs, 6)}), but its picture has one axis. "
        text += f"Name one of them: columns={inputs[0]!r}. Got {columns!r} instead. "
        text += "bb.plots.DecisionBoundaryDisplay draws two."
        raise errors.BadSetting(text, feature=feature.name, columns=list(inputs))
    return str(columns)


def explain_agreement(histogram: RowsPerBin, values: Real, likelihood: Real) -> str | None:
    """Returns why the curves of two classes agree where their histograms differ, in words; None if both differ about as
    much. ``values``: those at which the curves are drawn; ``likelihood``: values × classes.
    """
    edges, density = histogram  # density: bins × classes
    # The share of each class that is in each bin (bins × classes), by its rows and by its curve.
    row_masses = density * np.diff(edges)[:, None]
    finite_likelihood = np.where(np.isfinite(likelihood), likelihood, 0.0)
    # Below the curves between two values, by the trapezoidal rule (intervals × classes).
    areas = np.diff(values)[:, None] * (finite_likelihood[1:] + finite_likelihood[:-1]) / 2.0
    # From the first value to each (values × classes).
    cumulative = np.concatenate([np.zeros((1, areas.shape[1])), np.cumsum(areas, axis=0)])
    curve_masses = np.stack(
        [np.diff(np.interp(edges, values, cumulative_of_class)) for cumulative_of_class in cumulative.T], axis=1
    )
    # The largest share by which two classes differ, by rows and by curves.
    row_difference = largest_class_difference(row_masses)
    curve_difference = largest_class_difference(curve_masses)
    if row_difference < VISIBLE_DIFFERENCE or curve_difference >= SHARE_TO_KEEP * row_difference:
        return None
    return (
        f"The histograms of two classes differ by up to {row_difference:.0%} of their rows, "
        f"the curves by {curve_difference:.0%}: "
        "the rest did not help to predict held-out rows and is treated as chance."
    )


def largest_class_difference(masses: Real) -> float:
    """Returns the largest share of rows, from 0 to 1, by which two classes differ. ``masses``: the rows, or their
    share, in each bin (bins × classes).
    """
    totals = masses.sum(axis=0)  # of each class
    # Of each class's rows in each bin (bins × classes that have rows).
    shares = masses[:, totals > 0] / totals[totals > 0]
    # Classes × classes.
    differences = np.abs(shares[:, :, None] - shares[:, None, :]).sum(axis=0)
    return 0.5 * float(differences.max(initial=0.0))


def _histogram(
    rows: ClassedRows, column: str, class_numbers: list[int], bins: Any, prior: bool
) -> tuple[Real, RowsPerBin]:
    """Returns the numbers of a column in the rows of these classes, and their histogram, with the density in each bin
    (bins × classes). Densities of a class integrate to 1, or with ``prior`` to its share of the rows. ``bins``: their
    number, their edges, or None for the default. Raises an error if there are no such numbers.
    """
    numbers = rows.numbers(column)  # of each row, NaN where missing
    is_used = np.isin(rows.classes, class_numbers) & np.isfinite(numbers)
    if not is_used.any():
        raise errors.empty_data(None, f"no row of these classes has a value of {column!r}")
    values = numbers[is_used]
    classes = rows.classes[is_used]
    # The values of each class.
    by_class = [values[classes == class_number] for class_number in class_numbers]
    edges = _edges(values, by_class, bins)
    n_rows = int(np.count_nonzero(rows.classes >= 0))
    density = [  # for each class an array over bins
        np.histogram(class_values, edges)[0] / (np.diff(edges) * max(n_rows if prior else len(class_values), 1))
        for class_values in by_class
    ]
    return values, RowsPerBin(edges, np.stack(density, axis=1))


def _edges(values: Real, by_class: Sequence[Real], bins: Any) -> Real:
    """Returns the ascending edges of ``bins`` (their number or their edges), or if None, of equal bins of the width by
    Freedman and Diaconis (the median over classes); integers are in the middle of bins. ``by_class``: the values of
    each class.
    """
    if bins is not None:
        try:
            return np.asarray(np.histogram_bin_edges(values, bins), dtype=np.float64)
        except (TypeError, ValueError):
            raise errors.bad_setting("bins", bins, "a whole number of at least 1, or ascending edges") from None
    low = float(values.min())
    high = float(values.max())
    widths = [  # of the bins that suit each class
        2.0 * float(np.subtract(*np.quantile(class_values, [0.75, 0.25]))) / len(class_values) ** (1 / 3)
        for class_values in by_class
        if len(class_values)
    ]
    # At least ten bins, MOST_BINS at most.
    width = float(np.clip(np.median(widths), (high - low) / MOST_BINS, (high - low) / 10)) or 1.0
    if np.array_equal(values, np.floor(values)):
        width = max(np.round(width), 1.0)
        start = low - 0.5
    else:
        start = low
    return np.asarray(start + width * np.arange(np.floor((high - low) / width) + 2.0))
