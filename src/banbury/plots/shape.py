"""Shape: the evidence of each column of a model in decibans, ready to be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from banbury import errors
from banbury.arrays import FARTHEST, Int, Real
from banbury.families.cells import HALF_ROW, Cells, NamedCells, NumberCells, class_shares
from banbury.families.family import Feature
from banbury.model.explain import DECIBANS
from banbury.model.naive_bayes import Model
from banbury.plots.display import short_name, short_names
from banbury.plots.features import (
    axis_range,
    axis_values,
    check_model,
    evidence_factor,
    feature_parts_of,
    has_axis,
    log_likelihood,
    number_of,
    values_by_name,
)
from banbury.plots.scales import text_scale
from banbury.sums import Counts
from banbury.tally.tally import Label
from banbury.threads import n_threads
from banbury.weighing.columns import cells_of, count_cells
from banbury.weighing.model import WeighedParameters, Weighing
from banbury.weighing.trends import Trends

Kind = Literal["numbers", "categories", "pairs", "words"]
STRONGEST_EVIDENCE = 60.0  # decibans, odds of a million to one: stronger evidence is drawn like this
NORMAL_QUANTILE = 1.96  # standard deviations that contain 95 % of a normal distribution
POINTS_OF_CURVE = 80  # points of a density's curve
MOST_VALUES = 16  # of a category
NARROWEST_INTERVAL = 0.02  # share of the axis: if most intervals are narrower, all are drawn equally wide
N_RESAMPLES = 40  # samples of the rows of each cell


@dataclass(frozen=True, eq=False)
class Shape:
    """The evidence of one column, or of a pair, for a class, in decibans: one entry per interval, value or word.

    ``ends`` are the ends of the intervals, one more than there are intervals. ``error`` is half of a 95 % interval: how
    the evidence would vary with other samples of rows. For a pair, ``decibans`` and ``rows`` are tables, and ``names``
    has the values down and across. ``missing`` is the evidence of a missing number.
    """

    feature: str  # the name of the column or pair
    kind: Kind
    decibans: Real
    rows: Real  # how many rows each has; for words, ones
    names: tuple[list[str], ...] = ()  # one list: of values or words; two for a pair; none for numbers
    ends: Real | None = None
    error: Real | None = None
    missing: float | None = None
    n_values: int = 0  # of a category, of which the most frequent are shown

    @property
    def importance(self) -> float:
        """The mean absolute evidence in decibans over the rows; for words, over those shown."""
        total = float(self.rows.sum())
        return float((np.abs(self.decibans) * self.rows).sum() / total) if total > 0 else 0.0

    @property
    def _has_equal_widths(self) -> bool:
        """Whether intervals, whose ends are ``self.ends``, are drawn equally wide, because on a linear axis most could
        not be seen.
        """
        if self.ends is None or len(self.ends) < 4:
            return False
        widths = np.diff(self.ends)  # of the intervals
        return bool(np.median(widths) < NARROWEST_INTERVAL * (self.ends[-1] - self.ends[0]))

    def axis_positions(self) -> tuple[Real, Sequence[tuple[float, str]]]:
        """Returns the positions of the ends of intervals along the axis, from 0 to 1, and the ticks as pairs of
        position and text.
        """
        assert self.ends is not None
        low = float(self.ends[0])
        high = float(self.ends[-1])
        if not self._has_equal_widths:
            positions = (self.ends - low) / ((high - low) or 1.0)
            ticks = round_numbers(low, high, closest=1.0 if self._has_whole_ends else 0.0)
            return positions, [((value - low) / ((high - low) or 1.0), _number(value)) for value in ticks]
        positions = np.linspace(0.0, 1.0, len(self.ends))
        ticks = np.unique(np.linspace(0, len(positions) - 1, 5).astype(np.int64)).tolist()  # indices of ends
        ends = np.ceil(self.ends) if self._has_whole_ends else self.ends
        return positions, [(float(positions[i]), _number(float(ends[i]))) for i in ticks]

    @property
    def _has_whole_ends(self) -> bool:
        """Whether intervals begin and end at whole numbers or halfway between two, and the first and last end are
        whole.
        """
        if self.ends is None:
            return False
        return bool((np.mod(2.0 * self.ends, 1.0) == 0).all() and (np.mod(self.ends[[0, -1]], 1.0) == 0).all())


def round_numbers(low: float, high: float, closest: float = 0.0) -> list[float]:
    """Returns about four round numbers from ``low`` to ``high``, ascending, at least ``closest`` apart, for ticks."""
    if not high > low:
        return [low]
    smallest_step = max((high - low) / 5.0, closest)
    power = 10.0 ** np.floor(np.log10(smallest_step))  # of ten, at most as large
    step = power * next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= smallest_step)
    return (np.arange(np.ceil(low / step), np.floor(high / step) + 1.0) * step).tolist()  # type: ignore[no-any-return]


def _number(value: float) -> str:
    """Returns ``value``, a number, as the label of a tick."""
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.2g}"


def shapes_of(model: Model, label: Any = None, against: Any = None) -> tuple[Shape, ...]:
    """Returns the evidence of every column and pair that can be drawn, the most important first, for ``label`` (the
    last class unless given) against ``against`` (all others together unless given).
    """
    contrast = ClassContrast.of(model, label, against)
    shapes = _shapes_with_weights(contrast) if model.weighing is not None else _shapes_without_weights(contrast)
    return tuple(sorted(shapes, key=lambda shape: (-shape.importance, shape.feature)))


def shapes_by_class(model: Model, n_classes: int) -> list[tuple[Any, tuple[Shape, ...]]]:
    """Returns each class with the evidence of the columns and pairs for it, those without evidence left out; for two
    classes only the last, for many the ``n_classes`` most frequent. Nothing for a single class.
    """
    if len(model.classes) < 2:
        return []
    # Class numbers.
    most_frequent = np.sort(np.argsort(-model.tally.rows.value, kind="stable")[:n_classes]).tolist()
    class_numbers = most_frequent if len(model.classes) > 2 else [1]
    labels = [model.classes[class_number] for class_number in class_numbers]
    return [(label, tuple(shape for shape in shapes_of(model, label) if shape.importance > 0)) for label in labels]


@dataclass(frozen=True, eq=False)
class ClassContrast:
    """One class of a model against another, or against all others together if ``other_number`` is None."""

    model: Model
    class_number: int
    other_number: int | None

    @classmethod
    def of(cls, model: Model, label: Any, against: Any) -> ClassContrast:
        """Returns the contrast of the class ``label`` (the last unless given) and the class ``against`` (all others
        unless given). Raises an error for unknown or equal classes.
        """
        check_model(model, classes=2)
        class_number = len(model.classes) - 1 if label is None else number_of(model, label)
        if against is None:
            return cls(model, class_number, 1 - class_number if len(model.classes) == 2 else None)
        other_number = number_of(model, against)
        if class_number == other_number:
            raise errors.bad_setting("against", against, "another class than the one it is compared with")
        return cls(model, class_number, other_number)

    @property
    def label(self) -> Label:
        """The class for which evidence is positive."""
        return self.model.classes[self.class_number]

    @property
    def against(self) -> Label | None:
        """The class that it is compared with; None for all others together."""
        return None if self.other_number is None else self.model.classes[self.other_number]

    def decibans(self, log_likelihoods: Real) -> Real:
        """Converts log-likelihoods (values × classes) to the decibans of each value for the class, with the
        calibration's factor, between −STRONGEST_EVIDENCE and STRONGEST_EVIDENCE.
        """
        log_prior = self.model.log_prior  # one per class
        # Class numbers.
        all_others = [number for number in range(len(log_prior)) if number != self.class_number]
        other_classes = all_others if self.other_number is None else [self.other_number]
        # The share of each of the other classes among these.
        log_share = log_prior[other_classes] - np.logaddexp.reduce(log_prior[other_classes])
        with np.errstate(invalid="ignore"):
            log_likelihood_of_others = np.logaddexp.reduce(log_likelihoods[:, other_classes] + log_share, axis=1)
            # The evidence of each value.
            nats = log_likelihoods[:, self.class_number] - log_likelihood_of_others
        decibans = DECIBANS * evidence_factor(self.model) * nats
        finite = np.nan_to_num(decibans, nan=0.0, posinf=STRONGEST_EVIDENCE, neginf=-STRONGEST_EVIDENCE)
        return np.asarray(np.clip(finite, -STRONGEST_EVIDENCE, STRONGEST_EVIDENCE))

    # Half the width of 95 % intervals: how much evidence would vary with other samples of as many rows.

    def errors_of_cells(self, cells: Cells, rows: Real) -> Real:
        """Returns the error (half a 95 % interval) of each cell in decibans, from rows resampled with the estimated
        class shares of each cell, plus those of corrections. ``rows``: cells × classes.
        """
        shares = cells.tree.shares(rows, class_shares(rows))[-1]  # of the finest level: cells × classes
        expected = rows.sum(axis=1, keepdims=True) * shares  # numbers of rows, cells × classes
        rng = np.random.default_rng(0)
        resampled = [  # the decibans of each cell, for each sample of rows
            self.decibans(self._log_evidence(cells, rng.poisson(expected).astype(np.float64)))
            for _ in range(N_RESAMPLES)
        ]
        variance = np.var(resampled, axis=0) + self._variance_of_corrections(cells, rows)  # of each cell
        return np.asarray(np.minimum(NORMAL_QUANTILE * np.sqrt(variance), STRONGEST_EVIDENCE))

    @cached_property
    def _weights(self) -> dict[str, float]:
        """The weights of columns and trends by name; empty if the model does not weigh its evidence."""
        weighing = self.model.weighing
        return weighing.worth() if isinstance(weighing, Weighing) else {}

    def _log_evidence(self, cells: Cells, rows: Real) -> Real:
        """Returns the weighed log evidence (cells × classes) of a column's cells with these rows (cells × classes),
        with their trend.
        """
        name = cells.feature.name
        prior = class_shares(rows)  # P(class) among these rows
        with np.errstate(divide="ignore"):
            shares = cells.tree.shares(rows, prior)[-1]  # of the finest level: cells × classes
            log_evidence = self._weights.get(name, 1.0) * np.log(shares / prior)
        if trend_weight := self._weights.get(f"{name}, by trend", 0.0):
            n_cells = len(cells.positions)  # a missing value has no position, and its cell comes after them
            trends = Trends(cells.positions, np.array([n_cells]))
            log_evidence[:n_cells] += trend_weight * trends.evidence(rows[:n_cells], left_out=False)
        return np.asarray(log_evidence)

    def _variance_of_corrections(self, cells: Cells, rows: Real) -> Real:
        """Returns the variance, in squared decibans, of the corrections of all levels of a tree, for each cell; their
        regularisation shrinks them towards 0. ``rows``: cells × classes.
        """
        variance = np.zeros(len(rows))  # of each cell
        weighing = self.model.weighing
        # How strongly corrections are learned; 0 if there are none.
        strength = max(weighing.weights.strengths, default=0.0) if isinstance(weighing, Weighing) else 0.0
        if not strength:
            return variance
        tree = cells.tree
        shrinkage = len(tree.levels) / (2.0 * strength)  # in rows, like the information below
        # Of each level: the rows of its nodes and the shares of the classes in them (nodes × classes), and the node of
        # each cell.
        shares_by_level = tree.shares(rows, class_shares(rows))
        for nodes, shares, level in zip(tree.sums(rows), shares_by_level, tree.levels, strict=True):
            rows_of_class, rows_of_other = self._rows_of_sides(nodes.sum(axis=1, keepdims=True) * shares)
            # Of each node, in rows.
            information = rows_of_class * rows_of_other / np.maximum(rows_of_class + rows_of_other, 1.0)
            variance += (information / (shrinkage + information) ** 2)[level]
        return DECIBANS**2 * variance

    def errors_of_values(self, rows: Real) -> Real:
        """Returns the error (half a 95 % interval) in decibans of each of the values, which are counted one by one and
        smoothed with α. ``rows``: values × classes.
        """
        alpha = self.model.choice.alpha  # the pseudo-count
        sides = np.stack(self._rows_of_sides(rows))  # the class and what it is compared with × values
        total = sides.sum(axis=0)  # of each value
        # Of each side among all rows (2 × 1).
        share = sides.sum(axis=1, keepdims=True) / max(float(total.sum()), 1.0)
        # The smoothed numbers of rows (2 × values), and the variance of each value's evidence, in squared nats.
        expected = total * (sides + alpha * share) / np.maximum(total + alpha, 1.0)
        variance = (expected / np.maximum(expected + alpha, HALF_ROW) ** 2).sum(axis=0)
        return np.asarray(np.minimum(NORMAL_QUANTILE * DECIBANS * np.sqrt(variance), STRONGEST_EVIDENCE))

    def _rows_of_sides(self, rows: Real) -> tuple[Real, Real]:
        """Returns, for each cell, the rows of the class and those of the class it is compared with, or of all others.
        ``rows``: cells × classes.
        """
        rows_of_class = rows[:, self.class_number]
        if self.other_number is None:
            return rows_of_class, rows.sum(axis=1) - rows_of_class
        return rows_of_class, rows[:, self.other_number]


# Of each kind of model ------------------------------------------------------------------------------------------------


def _shapes_with_weights(contrast: ClassContrast) -> Iterator[Shape]:
    """Yields the evidence of the columns and pairs of a weighed model, with the numbers that the model itself adds.
    ``contrast``: the model, and the classes that are compared.
    """
    model = contrast.model
    plain_model = model.weighed(weighing=None)
    for group in model.parameters:
        if not isinstance(group, WeighedParameters):
            weight = float(getattr(group, "weight", 1.0))  # of the evidence of these columns
            for feature in group.features:
                # The model that scores its values, and its weight.
                source, feature_weight = (model, 1.0) if feature.reads_text else (plain_model, weight)
                if shape := _plain_shape(contrast, source, feature, cells=None, weight=feature_weight):
                    yield shape
            continue
        # Of each column or pair: its scores (cells × classes), and the numbers of its columns (second −1: none).
        for feature, table, (first_column, second_column) in zip(
            group.features, group.tables, group.kernel_terms.columns, strict=True
        ):
            decibans = contrast.decibans(table)  # of each cell
            cells = group.cells[first_column]  # intervals or values of the first column
            rows = group.counts[first_column]  # cells × classes
            if second_column < 0:
                errors_of_cells = contrast.errors_of_cells(cells, rows)
                yield _shape_of_cells(model, feature, cells, decibans[: len(rows)], rows, errors_of_cells)
                continue
            down = NamedNodes.of(cells, rows)  # the values of the first column, and of the second
            across = NamedNodes.of(group.cells[second_column], group.counts[second_column])
            # An index of the cells whose values both have rows.
            cells_with_rows = np.ix_(down.n_rows > 0, across.n_rows > 0)
            # Of each cell (first × second column), as if the columns of the pair were independent.
            expected_rows = np.outer(down.n_rows, across.n_rows) / max(float(across.n_rows.sum()), 1e-300)
            yield Shape(
                feature.name,
                "pairs",
                decibans.reshape(expected_rows.shape)[cells_with_rows],
                expected_rows[cells_with_rows],
                (down.names_with_rows, across.names_with_rows),
            )


def _shapes_without_weights(contrast: ClassContrast) -> Iterator[Shape]:
    """Yields the evidence of the columns of a plain model that can be drawn. ``contrast``: the model, and the classes
    that are compared.
    """
    model = contrast.model
    columns = cells_of(model.tally, n_threads(model.threads))  # the cells of columns that have them, by name
    for feature in model.schema.features:
        if shape := _plain_shape(contrast, model, feature, columns.get(feature.name)):
            yield shape


def _plain_shape(
    contrast: ClassContrast, model: Model, feature: Feature, cells: Cells | None, weight: float = 1.0
) -> Shape | None:
    """Returns the evidence of a column outside the tables of a weighed model; None for blocks and lists, which have no
    axis. ``contrast``: the classes that are compared; ``model`` scores its values; ``cells``: the intervals or values
    in which its rows are counted, or None; ``weight`` multiplies its evidence.
    """

    def to_decibans(log_likelihoods: Real) -> Real:
        """Converts log-likelihoods (values × classes) to the decibans of each value."""
        return contrast.decibans(weight * log_likelihoods)

    if feature.reads_text:
        # The classes that are compared.
        sides = [label for label in (contrast.label, contrast.against) if label is not None]
        scale = text_scale(model, feature, to_decibans, sides)  # words with their decibans
        order = np.argsort(-scale.decibans, kind="stable")  # the strongest evidence for the class first
        words = [str(scale.values[i]) for i in order.tolist()]
        return Shape(feature.name, "words", scale.decibans[order], np.ones(len(order)), (short_names(words),))
    if not has_axis(feature):
        return None
    if isinstance(cells, NumberCells):
        (rows,) = count_cells(model.tally, [cells])  # cells × classes; the last may be for missing values
        ends = _ends(model, feature, cells.cuts)
        middles = (ends[:-1] + ends[1:]) / 2.0
        decibans = to_decibans(log_likelihood(model, feature, middles))
        n_intervals = len(middles)
        errors_of_intervals = contrast.errors_of_cells(cells, rows)[:n_intervals]
        return _shape_of_cells(model, feature, cells, decibans, rows[:n_intervals], errors_of_intervals)
    feature_parts = feature_parts_of(model, feature.name)
    if feature_parts.is_numeric:
        points = axis_values(model, feature, feature.inputs[0], steps=POINTS_OF_CURVE)
        log_likelihoods = log_likelihood(model, feature, points)
        # Each point stands for an interval, which ends halfway to its neighbours.
        ends = np.concatenate([points[:1], (points[1:] + points[:-1]) / 2.0, points[-1:]])
        rows = np.exp(log_likelihoods + model.log_prior).sum(axis=1) * np.diff(ends)  # the share of rows expected there
        return Shape(feature.name, "numbers", to_decibans(log_likelihoods), rows / max(rows.sum(), 1e-300), ends=ends)
    named = values_by_name(model, feature_parts, MOST_VALUES)  # the most frequent values, with names and rows
    decibans = to_decibans(log_likelihood(model, feature, named.values))
    order = np.argsort(-decibans, kind="stable")  # the strongest evidence for the class first
    errors_of_values = None
    if isinstance(feature_parts.sums, Counts):
        # The counted values, and their rows (values × classes).
        keys, rows_of_keys = feature_parts.sums.feature(feature_parts.position)
        position = {key: i for i, key in enumerate(keys)}
        if all(value in position for value in named.values):
            rows_of_values = rows_of_keys.value[[position[value] for value in named.values]]
            errors_of_values = contrast.errors_of_values(rows_of_values)[order]
    texts = short_names([named.names[i] for i in order.tolist()])
    n_values = len(named.names) + named.hidden
    return Shape(
        feature.name,
        "categories",
        decibans[order],
        named.rows[order],
        (texts,),
        error=errors_of_values,
        n_values=n_values,
    )


def _shape_of_cells(model: Model, feature: Feature, cells: Cells, decibans: Real, rows: Real, error: Real) -> Shape:
    """Returns the shape of a column's cells: intervals in order, or the most frequent values by their evidence.
    ``decibans``, ``error``: one per cell; ``rows``: cells × classes. Intervals may be followed by a cell for missing
    values.
    """
    total = rows.sum(axis=1)  # of each cell
    if isinstance(cells, NumberCells):
        n_intervals = len(cells.cuts) + 1
        missing = float(decibans[n_intervals]) if len(decibans) > n_intervals and total[n_intervals] > 0 else None
        ends = _ends(model, feature, cells.cuts)
        return Shape(
            feature.name,
            "numbers",
            decibans[:n_intervals],
            total[:n_intervals],
            ends=ends,
            error=error[:n_intervals],
            missing=missing,
        )
    assert isinstance(cells, NamedCells)
    values_with_rows = np.flatnonzero(total[: len(cells.keys)] > 0)  # a value that was forgotten has no rows
    most_frequent: Int = values_with_rows[np.argsort(-total[values_with_rows], kind="stable")][:MOST_VALUES]
    # The numbers of these cells, the strongest evidence for the class first.
    order = most_frequent[np.argsort(-decibans[most_frequent], kind="stable")]
    texts = short_names(
        ["missing" if cells.keys[position] is None else cells.keys[position] for position in order.tolist()]
    )
    return Shape(
        feature.name,
        "categories",
        decibans[order],
        total[order],
        (texts,),
        error=error[order],
        n_values=len(values_with_rows),
    )


def _ends(model: Model, feature: Feature, cuts: Real) -> Real:
    """Returns the ends of the intervals between ``cuts``, ascending: the cuts, and the lowest and highest number that
    was counted.
    """
    low, high = axis_range(model, feature.name, margin_share=0.0)  # the lowest and the highest number
    ends = np.concatenate([[min([low, *cuts[:1]])], cuts, [max([high, *cuts[-1:]])]])
    return np.asarray(np.clip(ends, -FARTHEST, FARTHEST))


class NamedNodes(NamedTuple):
    """The nodes (groups of values) of a column in a pair, the last for all other values: their names, and their rows."""

    names: list[str]
    n_rows: Real  # of each node

    @classmethod
    def of(cls, cells: Cells, rows: Real) -> NamedNodes:
        """Returns the nodes of a column's cells with their names and the sum of their rows (cells × classes); the last
        one, "any other", is for values in no cell.
        """
        node_of_cell = cells.nodes.fine[:-1]  # neighbouring cells share one; the last entry is for values in no cell
        # Of each node, whose cells are neighbours.
        first_cells = np.unique(node_of_cell, return_index=True)[1]
        last_cells = len(node_of_cell) - 1 - np.unique(node_of_cell[::-1], return_index=True)[1]
        values = [  # the name of each node's values, or None for a missing one
            cells.name(first, last) for first, last in zip(first_cells.tolist(), last_cells.tolist(), strict=True)
        ]
        names = [_short(value) if isinstance(cells, NumberCells) else short_name(value, 18) for value in values]
        n_rows = np.bincount(node_of_cell, rows.sum(axis=1), len(names) + 1).astype(np.float64)
        return cls([*names, "any other"], n_rows)

    @property
    def names_with_rows(self) -> list[str]:
        """The names of the nodes that have rows."""
        return [name for name, n_rows in zip(self.names, self.n_rows.tolist(), strict=True) if n_rows > 0]


def _short(interval: str | None) -> str:
    """Returns the name of an interval with few digits; None stands for a missing value."""
    # Numbers and signs.
    words = short_name(interval, 60).removeprefix("from ").replace(" to ", " – ").split(" ")
    return " ".join(word if word in "<≤=≥–" or interval is None else f"{float(word):,.5g}" for word in words)


def limits(shape: Shape) -> tuple[float, float]:
    """Returns the lowest and highest decibans to draw of a shape: all evidence, and error bands up to half as much
    again.
    """
    # Decibans.
    values = [*shape.decibans.ravel().tolist(), 0.0, *([] if shape.missing is None else [shape.missing])]
    low = min(values)
    high = max(values)
    margin = max(0.5 * (high - low), 1.0)
    if shape.error is not None:
        low = max(float((shape.decibans - shape.error).min()), low - margin)
        high = min(float((shape.decibans + shape.error).max()), high + margin)
    return low - 0.05 * margin, high + 0.05 * margin


def strip_density(shape: Shape, end_positions: Real) -> Real:
    """Returns how densely rows lie in each interval, relative to the densest, from 0 to 1; as a square root, so that
    few rows are visible. ``end_positions``: of the ends of the intervals on the axis.
    """
    # Rows per length of the axis, of each interval.
    density = shape.rows / np.maximum(np.diff(end_positions), 1e-9)
    return np.sqrt(density / max(float(density.max(initial=0.0)), 1e-300))
