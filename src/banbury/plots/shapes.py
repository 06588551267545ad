"""ShapesDisplay: what a model has learned, as a picture of the evidence of each column in decibans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import FARTHEST, Int, Real
from banbury.families.cells import HALF_ROW, Cells, NamedCells, NumberCells, class_shares
from banbury.families.family import Feature
from banbury.model.explain import DECIBANS
from banbury.model.naive_bayes import Model
from banbury.plots.display import AGAINST, FAINT, FOR, Display, ink, library, pyplot, short_name, short_names
from banbury.plots.features import (
    check_model,
    evidence_factor,
    grid,
    has_axis,
    log_likelihood,
    number_of,
    parts_of,
    span,
    values_by_name,
)
from banbury.plots.scales import ToDecibans, text_scale
from banbury.sums import Counts
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

    feature: str
    kind: Kind
    decibans: Real
    rows: Real
    names: tuple[list[str], ...] = ()
    ends: Real | None = None
    error: Real | None = None
    missing: float | None = None
    n_values: int = 0  # of a category, of which the most frequent are shown

    @property
    def importance(self) -> float:
        """The mean absolute evidence over the rows; for words, over those shown."""
        total = float(self.rows.sum())
        return float((np.abs(self.decibans) * self.rows).sum() / total) if total > 0 else 0.0

    @property
    def is_even(self) -> bool:
        """Whether intervals are drawn equally wide, because on a linear axis most could not be seen."""
        if self.ends is None or len(self.ends) < 4:
            return False
        widths = np.diff(self.ends)
        return bool(np.median(widths) < NARROWEST_INTERVAL * (self.ends[-1] - self.ends[0]))

    def places(self) -> tuple[Real, Sequence[tuple[float, str]]]:
        """Returns the positions of the ends of intervals along the axis, from 0 to 1, and the ticks as pairs of
        position and text.
        """
        assert self.ends is not None
        low = float(self.ends[0])
        high = float(self.ends[-1])
        if not self.is_even:
            positions = (self.ends - low) / ((high - low) or 1.0)
            ticks = round_numbers(low, high, 1.0 if self.is_whole else 0.0)
            return positions, [((value - low) / ((high - low) or 1.0), _number(value)) for value in ticks]
        positions = np.linspace(0.0, 1.0, len(self.ends))
        ticks = np.unique(np.linspace(0, len(positions) - 1, 5).astype(np.int64)).tolist()
        ends = np.ceil(self.ends) if self.is_whole else self.ends
        return positions, [(float(positions[i]), _number(float(ends[i]))) for i in ticks]

    @property
    def is_whole(self) -> bool:
        """Whether intervals begin and end at whole numbers, or halfway between two."""
        if self.ends is None:
            return False
        return bool((np.mod(2.0 * self.ends, 1.0) == 0).all() and (np.mod(self.ends[[0, -1]], 1.0) == 0).all())


def round_numbers(low: float, high: float, closest: float = 0.0) -> list[float]:
    """Returns about four round numbers between ``low`` and ``high``, at least ``closest`` apart, for ticks."""
    if not high > low:
        return [low]
    smallest_step = max((high - low) / 5.0, closest)
    power = 10.0 ** np.floor(np.log10(smallest_step))
    step = power * next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= smallest_step)
    return (np.arange(np.ceil(low / step), np.floor(high / step) + 1.0) * step).tolist()  # type: ignore[no-any-return]


def _number(value: float) -> str:
    """Returns a number as the label of a tick."""
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.2g}"


def shapes_of(model: Model, label: Any = None, against: Any = None) -> tuple[Shape, ...]:
    """Returns the evidence of every column and pair that can be drawn, the most important first, for ``label`` (the
    last class unless given) against ``against`` (all others together unless given).
    """
    class_number, other_number = _sides(model, label, against)
    to_decibans = _evidence(model, class_number, other_number)
    classes = [model.classes[number] for number in (class_number, other_number) if number is not None]
    make_shapes = _shapes_of_tables if model.weighing is not None else _shapes_of_plain
    shapes = list(make_shapes(model, to_decibans, _ErrorBands(model, to_decibans, class_number, other_number), classes))
    return tuple(sorted(shapes, key=lambda shape: (-shape.importance, shape.feature)))


def shapes_by_class(model: Model, n_classes: int) -> list[tuple[Any, tuple[Shape, ...]]]:
    """Returns the evidence for each class; for two classes only the last, for many the ``n_classes`` most frequent."""
    if len(model.classes) < 2:
        return []
    most_frequent = np.sort(np.argsort(-model.tally.rows.value, kind="stable")[:n_classes]).tolist()
    class_numbers = most_frequent if len(model.classes) > 2 else [1]
    labels = [model.classes[class_number] for class_number in class_numbers]
    return [(label, tuple(shape for shape in shapes_of(model, label) if shape.importance > 0)) for label in labels]


def _sides(model: Model, label: Any, against: Any) -> tuple[int, int | None]:
    """Returns the numbers of the class ``label`` (the last unless given) and of the class ``against`` that it is
    compared with, None for all others together.
    """
    check_model(model, classes=2)
    class_number = len(model.classes) - 1 if label is None else number_of(model, label)
    if against is None:
        return class_number, 1 - class_number if len(model.classes) == 2 else None
    other_number = number_of(model, against)
    if class_number == other_number:
        raise errors.bad_setting("against", against, "another class than the one it is compared with")
    return class_number, other_number


def _evidence(model: Model, class_number: int, other_number: int | None) -> ToDecibans:
    """Returns a function that converts log-likelihoods (values × classes) to the decibans of each value for one class
    against another, or against all others if ``other_number`` is None.
    """
    all_others = [number for number in range(len(model.classes)) if number != class_number]
    other_classes = all_others if other_number is None else [other_number]
    log_share = model.log_prior[other_classes] - np.logaddexp.reduce(model.log_prior[other_classes])
    scale = DECIBANS * evidence_factor(model)

    def decibans(log_likelihoods: Real) -> Real:
        """Returns the decibans of each value, at most STRONGEST_EVIDENCE. ``log_likelihoods``: values × classes."""
        with np.errstate(invalid="ignore"):
            log_likelihood_of_others = np.logaddexp.reduce(log_likelihoods[:, other_classes] + log_share, axis=1)
            nats = log_likelihoods[:, class_number] - log_likelihood_of_others
        finite = np.nan_to_num(scale * nats, nan=0.0, posinf=STRONGEST_EVIDENCE, neginf=-STRONGEST_EVIDENCE)
        return np.asarray(np.clip(finite, -STRONGEST_EVIDENCE, STRONGEST_EVIDENCE))

    return decibans


class _ErrorBands:
    """Half the width of 95 % intervals of the evidence: how much it would vary with other samples of as many rows."""

    def __init__(self, model: Model, to_decibans: ToDecibans, class_number: int, other_number: int | None) -> None:
        """``to_decibans``: converts log-likelihoods; ``class_number``, ``other_number``: the class, and the one it is
        compared with, None for all others together.
        """
        self._to_decibans = to_decibans
        self._sides = class_number, other_number
        self._alpha = model.choice.alpha
        weighing = model.weighing
        self._worth = weighing.worth() if isinstance(weighing, Weighing) else {}
        self._strength = max(weighing.weights.strengths, default=0.0) if isinstance(weighing, Weighing) else 0.0

    def of_cells(self, cells: Cells, rows: Real) -> Real:
        """Returns the errors of cells, from rows resampled with the estimated class shares of each cell, plus those of
        corrections. ``rows``: cells × classes.
        """
        shares = cells.tree.shares(rows, class_shares(rows))[-1]
        expected = rows.sum(axis=1, keepdims=True) * shares
        rng = np.random.default_rng(0)
        resampled = [
            self._to_decibans(self._log_evidence(cells, rng.poisson(expected).astype(np.float64)))
            for _ in range(N_RESAMPLES)
        ]
        variance = np.var(resampled, axis=0) + self._of_corrections(cells, rows)
        return np.asarray(np.minimum(NORMAL_QUANTILE * np.sqrt(variance), STRONGEST_EVIDENCE))

    def _log_evidence(self, cells: Cells, rows: Real) -> Real:
        """Returns the weighed log evidence of cells with these rows (cells × classes), with their trend."""
        name = cells.feature.name
        prior = class_shares(rows)
        with np.errstate(divide="ignore"):
            shares = cells.tree.shares(rows, prior)[-1]
            log_evidence = self._worth.get(name, 1.0) * np.log(shares / prior)
        if trend_weight := self._worth.get(f"{name}, by trend", 0.0):
            n_cells = len(cells.positions)
            trends = Trends(cells.positions, np.array([n_cells]))
            log_evidence[:n_cells] += trend_weight * trends.evidence(rows[:n_cells], False)
        return np.asarray(log_evidence)

    def _of_corrections(self, cells: Cells, rows: Real) -> Real:
        """Returns the variance of the corrections of all levels of a tree, for each cell; their regularisation shrinks
        them towards 0. ``rows``: cells × classes.
        """
        variance = np.zeros(len(rows))
        if not self._strength:
            return variance
        tree = cells.tree
        shrinkage = len(tree.levels) / (2.0 * self._strength)
        shares_by_level = tree.shares(rows, class_shares(rows))
        for nodes, shares, level in zip(tree.sums(rows), shares_by_level, tree.levels, strict=True):
            rows_of_class, rows_of_other = self._of_sides(nodes.sum(axis=1, keepdims=True) * shares)
            information = rows_of_class * rows_of_other / np.maximum(rows_of_class + rows_of_other, 1.0)
            variance += (information / (shrinkage + information) ** 2)[level]
        return DECIBANS**2 * variance

    def of_values(self, rows: Real) -> Real:
        """Returns the errors of values that are counted one by one and smoothed with α. ``rows``: values × classes."""
        sides = np.stack(self._of_sides(rows))
        total = sides.sum(axis=0)
        share = sides.sum(axis=1, keepdims=True) / max(float(total.sum()), 1.0)
        expected = total * (sides + self._alpha * share) / np.maximum(total + self._alpha, 1.0)
        variance = (expected / np.maximum(expected + self._alpha, HALF_ROW) ** 2).sum(axis=0)
        return np.asarray(np.minimum(NORMAL_QUANTILE * DECIBANS * np.sqrt(variance), STRONGEST_EVIDENCE))

    def _of_sides(self, rows: Real) -> tuple[Real, Real]:
        """Returns the rows of the class and those of the class it is compared with, or of all others. ``rows``: cells ×
        classes.
        """
        class_number, other_number = self._sides
        rows_of_class = rows[:, class_number]
        return rows_of_class, rows.sum(axis=1) - rows_of_class if other_number is None else rows[:, other_number]


# Of each kind of model ------------------------------------------------------------------------------------------------


def _shapes_of_tables(
    model: Model, to_decibans: ToDecibans, interval_errors: _ErrorBands, classes: Sequence[Any]
) -> Iterator[Shape]:
    """Yields the columns and pairs of a weighed model, with the numbers that the model itself adds.
    ``interval_errors``: computes their errors; ``classes``: those for which words are drawn.
    """
    plain_model = model.weighed(None)
    for group in model.parameters:
        if not isinstance(group, WeighedParameters):
            weighed = _scale_evidence(to_decibans, float(getattr(group, "weight", 1.0)))
            for feature in group.features:
                source, evidence = (model, to_decibans) if feature.reads_text else (plain_model, weighed)
                if shape := _plain_shape(source, feature, evidence, interval_errors, classes, None):
                    yield shape
            continue
        for feature, table, (first_column, second_column) in zip(
            group.features, group.tables, group.kernel_terms.columns, strict=True
        ):
            decibans = to_decibans(table)
            cells = group.cells[first_column]
            rows = group.counts[first_column]
            if second_column >= 0:
                row_names, n_down, seen_down = _nodes_with_names(cells, rows)
                column_names, n_across, seen_across = _nodes_with_names(
                    group.cells[second_column], group.counts[second_column]
                )
                seen_cells = np.ix_(seen_down, seen_across)
                expected_rows = np.outer(n_down, n_across) / max(float(n_across.sum()), 1e-300)
                yield Shape(
                    feature.name,
                    "pairs",
                    decibans.reshape(expected_rows.shape)[seen_cells],
                    expected_rows[seen_cells],
                    (row_names, column_names),
                )
                continue
            yield _of_cells(model, feature, cells, decibans[: len(rows)], rows, interval_errors.of_cells(cells, rows))


def _scale_evidence(to_decibans: ToDecibans, weight: float) -> ToDecibans:
    """Returns a function that converts log-likelihoods, multiplied by ``weight``, to decibans."""
    return lambda log_likelihoods: to_decibans(weight * log_likelihoods)


def _shapes_of_plain(
    model: Model, to_decibans: ToDecibans, interval_errors: _ErrorBands, classes: Sequence[Any]
) -> Iterator[Shape]:
    """Yields the columns of a plain model. The arguments are those of ``_shapes_of_tables``."""
    columns = cells_of(model.tally, n_threads(model.threads))
    for feature in model.schema.features:
        if shape := _plain_shape(model, feature, to_decibans, interval_errors, classes, columns.get(feature.name)):
            yield shape


def _plain_shape(
    model: Model,
    feature: Feature,
    to_decibans: ToDecibans,
    interval_errors: _ErrorBands,
    classes: Sequence[Any],
    cells: Cells | None,
) -> Shape | None:
    """Returns the evidence of a column that is not weighed; None for blocks and lists, which have no axis. ``cells``:
    the intervals or values in which its rows are counted, or None; the other arguments are those of
    ``_shapes_of_tables``.
    """
    if feature.reads_text:
        scale = text_scale(model, feature, to_decibans, classes)
        order = np.argsort(-scale.decibans, kind="stable")
        words = [str(scale.values[i]) for i in order.tolist()]
        return Shape(feature.name, "words", scale.decibans[order], np.ones(len(order)), (short_names(words),))
    if not has_axis(feature):
        return None
    if isinstance(cells, NumberCells):
        (rows,) = count_cells(model.tally, [cells])
        ends = _ends(model, feature, cells.cuts)
        middles = (ends[:-1] + ends[1:]) / 2.0
        decibans = to_decibans(log_likelihood(model, feature, middles))
        n = len(middles)
        return _of_cells(model, feature, cells, decibans, rows[:n], interval_errors.of_cells(cells, rows)[:n])
    feature_parts = parts_of(model, feature.name)
    if feature_parts.is_numeric:
        points = grid(model, feature, feature.inputs[0], None, POINTS_OF_CURVE)
        log_likelihoods = log_likelihood(model, feature, points)
        ends = np.concatenate([points[:1], (points[1:] + points[:-1]) / 2.0, points[-1:]])
        rows = np.exp(log_likelihoods + model.log_prior).sum(axis=1) * np.diff(ends)
        return Shape(feature.name, "numbers", to_decibans(log_likelihoods), rows / max(rows.sum(), 1e-300), ends=ends)
    named = values_by_name(model, feature_parts, MOST_VALUES)
    decibans = to_decibans(log_likelihood(model, feature, named.values))
    order = np.argsort(-decibans, kind="stable")
    error = None
    if isinstance(feature_parts.sums, Counts):
        keys, rows_of_keys = feature_parts.sums.feature(feature_parts.position)
        position = {key: i for i, key in enumerate(keys)}
        if all(value in position for value in named.values):
            rows_of_values = rows_of_keys.value[[position[value] for value in named.values]]
            error = interval_errors.of_values(rows_of_values)[order]
    texts = short_names([named.names[i] for i in order.tolist()])
    n_values = len(named.names) + named.hidden
    return Shape(feature.name, "categories", decibans[order], named.rows[order], (texts,), None, error, None, n_values)


def _of_cells(model: Model, feature: Feature, cells: Cells, decibans: Real, rows: Real, error: Real) -> Shape:
    """Returns the shape of a column's cells: intervals in order, or the most frequent values by their evidence.
    ``decibans``, ``error``: one per cell; ``rows``: cells × classes.
    """
    total = rows.sum(axis=1)
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
    """Returns the ends of the intervals: the cuts, and the lowest and highest number that was counted."""
    low, high = span(model, feature.name, None, 0.0)
    ends = np.concatenate([[min([low, *cuts[:1]])], cuts, [max([high, *cuts[-1:]])]])
    return np.asarray(np.clip(ends, -FARTHEST, FARTHEST))


def _nodes_with_names(cells: Cells, rows: Real) -> tuple[list[str], Real, NDArray[np.bool_]]:
    """Returns the nodes (groups of values) of a column in a pair, the last for all other values: the names of those
    with rows, the rows of all, and which have rows. ``rows``: cells × classes.
    """
    node_of_cell = cells.nodes.fine[:-1]
    first_cells = np.unique(node_of_cell, return_index=True)[1]
    last_cells = np.unique(node_of_cell[::-1], return_index=True)[1]
    values = [
        cells.name(int(first_cell), len(node_of_cell) - 1 - int(reversed_last_cell))
        for first_cell, reversed_last_cell in zip(first_cells, last_cells, strict=True)
    ]
    node_names = [
        *(_short(value) if isinstance(cells, NumberCells) else short_name(value, 18) for value in values),
        "any other",
    ]
    n_rows = np.bincount(node_of_cell, rows.sum(axis=1), len(node_names)).astype(np.float64)
    return [text for text, n_node_rows in zip(node_names, n_rows, strict=True) if n_node_rows > 0], n_rows, n_rows > 0


def _short(interval: str | None) -> str:
    """Returns the name of an interval with few digits."""
    words = short_name(interval, 60).removeprefix("from ").replace(" to ", " – ").split(" ")
    return " ".join(word if word in "<≤=≥–" or interval is None else f"{float(word):,.5g}" for word in words)


# The picture ----------------------------------------------------------------------------------------------------------


class ShapesDisplay(Display):
    """What a model has learned, column by column: the evidence of every value for ``label``, in decibans.

    Numbers are drawn as steps with a 95 % band, above a strip that shows where the rows are. Categories and words are
    bars, and pairs are heat maps. Columns are sorted by mean absolute evidence, which is relative to ``against``, or to
    all other classes together. ``bb.plots.shapes(model)`` draws them. ``shapes`` has the numbers, which equal those of
    ``model.explain``, so the evidence of a row can be read off column by column.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> shown = bb.plots.shapes(model)
    >>> [(shape.feature, round(shape.importance, 1)) for shape in shown.shapes]
    [('humidity', 3.2), ('outlook', 2.8), ('wind', 1.8), ('temperature', 1.1)]
    """

    def __init__(self, shapes: Sequence[Shape], label: Any, against: Any = None, *, n: int = 12) -> None:
        """``shapes``: the evidence of each column, the most important first; ``label``, ``against``: the class and the
        one it is compared with, None for all others; ``n``: how many columns to draw.
        """
        self.shapes = tuple(shapes)
        self.label = label
        self.against = against
        self.n = n

    @classmethod
    def from_model(cls, model: Model, label: Any = None, against: Any = None, *, n: int = 12) -> Self:
        """Draws the ``n`` most important columns and pairs, for the last class unless ``label`` is given."""
        errors.check_whole("n", n, 1)
        class_number, other_number = _sides(model, label, against)
        opponent = None if other_number is None else model.classes[other_number]
        return cls(shapes_of(model, label, against), model.classes[class_number], opponent, n=int(n)).plot()

    def _draw(self, ax: Any) -> None:
        """Draws a picture for each of the most important columns."""
        if ax is not None:
            raise errors.bad_setting("ax", ax, "None, because each column has its own picture")
        drawn_shapes = self.shapes[: self.n]
        if not drawn_shapes:
            raise errors.empty_data(None, "no column of the model can be drawn")
        n_columns = min(len(drawn_shapes), 3)
        n_rows = -(-len(drawn_shapes) // n_columns)
        size = 3.6 * n_columns + 0.4, 2.6 * n_rows + 0.4
        figure, axes = pyplot().subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)
        self.figure_ = figure
        self.ax_ = axes.ravel()[: len(drawn_shapes)]
        for unused in axes.ravel()[len(drawn_shapes) :]:
            unused.set_axis_off()
        draw_by_kind = {"numbers": _steps, "categories": _bars, "words": _bars, "pairs": _heat_map}
        for axis, shape in zip(self.ax_, drawn_shapes, strict=True):
            draw_by_kind[shape.kind](axis, shape)
            axis.set_title(short_name(shape.feature, 44))
        opponent = "all others" if self.against is None else short_name(self.against)
        figure.supxlabel(f"decibans for {short_name(self.label)} (blue) against {opponent} (orange)", fontsize=9)


def _steps(ax: Any, shape: Shape) -> None:
    """Draws the shape of a numeric column: steps, their error band, the strip of rows, and the mark of a missing value."""
    positions, ticks = shape.places()
    bottom, top = limits(shape)
    ax.axhline(0.0, color=FAINT, linewidth=0.8)
    if shape.error is not None:
        low, high = (np.clip(shape.decibans + side * shape.error, bottom, top) for side in (-1.0, 1.0))
        ax.stairs(high, positions, baseline=low, fill=True, color=FOR, alpha=0.18, linewidth=0)
    ax.stairs(shape.decibans, positions, baseline=None, color=FOR, linewidth=1.6)
    strip_height = 0.09 * (top - bottom)
    density = strip_density(shape, positions)
    for ends, darkness in zip(pairwise(positions), density.tolist(), strict=True):
        ax.fill_between(ends, bottom - strip_height, bottom, color=ink(), alpha=0.75 * darkness, linewidth=0)
    if shape.missing is not None:
        ax.plot([1.04], [np.clip(shape.missing, bottom, top)], "D", color=AGAINST, markersize=4, clip_on=False)
        ax.annotate("missing", (1.0, 1.0), xycoords="axes fraction", ha="right", va="bottom", fontsize=7, color=AGAINST)
    ax.set(xlim=(0.0, 1.08 if shape.missing is not None else 1.0), ylim=(bottom - strip_height, top))
    ax.set_xticks([position for position, _ in ticks], [text for _, text in ticks])


def limits(shape: Shape) -> tuple[float, float]:
    """Returns the lowest and highest decibans to draw: all evidence, and error bands up to half as much again."""
    values = [*shape.decibans.ravel().tolist(), 0.0, *([] if shape.missing is None else [shape.missing])]
    low = min(values)
    high = max(values)
    room = max(0.5 * (high - low), 1.0)
    if shape.error is not None:
        low = max(float((shape.decibans - shape.error).min()), low - room)
        high = min(float((shape.decibans + shape.error).max()), high + room)
    return low - 0.05 * room, high + 0.05 * room


def strip_density(shape: Shape, end_positions: Real) -> Real:
    """Returns how densely rows lie in each interval, relative to the densest; as a square root, so that few rows are
    visible.
    """
    density = shape.rows / np.maximum(np.diff(end_positions), 1e-9)
    return np.sqrt(density / max(float(density.max(initial=0.0)), 1e-300))


def _bars(ax: Any, shape: Shape) -> None:
    """Draws the shape of a categorical column or of words as bars."""
    positions = np.arange(len(shape.decibans))
    colours = [FOR if value >= 0 else AGAINST for value in shape.decibans.tolist()]
    error_style = {"ecolor": "#555555", "elinewidth": 0.9}
    ax.barh(positions, shape.decibans, 0.7, color=colours, xerr=shape.error, error_kw=error_style)
    ax.axvline(0.0, color=FAINT, linewidth=0.8)
    hidden = shape.n_values - len(positions)
    ax.set_yticks(positions, shape.names[0], fontsize=7)
    ax.set(xlim=limits(shape), ylim=(len(positions) - 0.4, -0.6))
    if hidden > 0:
        ax.set_xlabel(f"{hidden:,} rarer values not shown", fontsize=7)
    ax.tick_params(axis="y", length=0)


def _heat_map(ax: Any, shape: Shape) -> None:
    """Draws the shape of a pair of columns as a heat map."""
    strongest = max(float(np.abs(shape.decibans).max(initial=0.0)), 1e-9)
    colours = library().colors.LinearSegmentedColormap.from_list("evidence", [AGAINST, "white", FOR])
    image = ax.imshow(shape.decibans, cmap=colours, vmin=-strongest, vmax=strongest, aspect="auto")
    ax.figure.colorbar(image, ax=ax, shrink=0.9).ax.tick_params(labelsize=7)
    for axis, texts, angle in ((ax.xaxis, shape.names[1], 90), (ax.yaxis, shape.names[0], 0)):
        axis.set_ticks(np.arange(len(texts)), texts, fontsize=6, rotation=angle)
