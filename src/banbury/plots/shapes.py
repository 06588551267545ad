"""ShapesDisplay: what a model has learned, one picture per column, in decibans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import FARTHEST, Int, Real
from banbury.families.cells import HALF_ROW, Cells, NamedCells, NumberCells, prior_of
from banbury.families.family import Feature
from banbury.model.explain import DECIBANS
from banbury.model.naive_bayes import Model
from banbury.plots.display import AGAINST, FAINT, FOR, Display, ink, library, name, names, pyplot
from banbury.plots.features import (
    check_model,
    grid,
    has_axis,
    log_likelihood,
    number_of,
    parts_of,
    span,
    values_by_name,
)
from banbury.plots.scales import Apart, text_scale
from banbury.sums import Counts
from banbury.threads import n_threads
from banbury.weighing.columns import cells_of, count_cells
from banbury.weighing.model import WeighedParameters, Weighing
from banbury.weighing.trends import Trends

Kind = Literal["numbers", "categories", "pairs", "words"]
STRONGEST = 60.0  # decibans, odds of a million to one: what speaks more strongly is drawn as this
Z = 1.96  # deviations that hold 95 % of a normal distribution
POINTS = 80  # of a density's curve
MOST_VALUES = 16  # of a category
NARROWEST = 0.02  # of the axis: where most stretches are narrower, each is drawn as wide as the others
DRAWS = 40  # of the rows of each cell


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
        """Whether stretches are drawn equally wide, because on a linear axis most could not be seen."""
        if self.ends is None or len(self.ends) < 4:
            return False
        widths = np.diff(self.ends)
        return bool(np.median(widths) < NARROWEST * (self.ends[-1] - self.ends[0]))

    def places(self) -> tuple[Real, Sequence[tuple[float, str]]]:
        """Where the ends of stretches lie along the axis, from 0 to 1, and the numbers to mark on it."""
        assert self.ends is not None
        low = float(self.ends[0])
        high = float(self.ends[-1])
        if not self.is_even:
            share = (self.ends - low) / ((high - low) or 1.0)
            marked = round_numbers(low, high, 1.0 if self.is_whole else 0.0)
            return share, [((value - low) / ((high - low) or 1.0), _number(value)) for value in marked]
        share = np.linspace(0.0, 1.0, len(self.ends))
        marked = np.unique(np.linspace(0, len(share) - 1, 5).astype(np.int64)).tolist()
        ends = np.ceil(self.ends) if self.is_whole else self.ends
        return share, [(float(share[k]), _number(float(ends[k]))) for k in marked]

    @property
    def is_whole(self) -> bool:
        """Whether stretches begin and end with whole numbers, or halfway between two."""
        if self.ends is None:
            return False
        return bool((np.mod(2.0 * self.ends, 1.0) == 0).all() and (np.mod(self.ends[[0, -1]], 1.0) == 0).all())


def round_numbers(low: float, high: float, closest: float = 0.0) -> list[float]:
    """About four round numbers between two others, and ``closest`` to one another at least."""
    if not high > low:
        return [low]
    least = max((high - low) / 5.0, closest)
    power = 10.0 ** np.floor(np.log10(least))
    step = power * next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least)
    return (np.arange(np.ceil(low / step), np.floor(high / step) + 1.0) * step).tolist()  # type: ignore[no-any-return]


def _number(value: float) -> str:
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.2g}"


def shapes_of(model: Model, label: Any = None, against: Any = None) -> tuple[Shape, ...]:
    """Returns the evidence of every column and pair that can be drawn, the most important first."""
    c, d = _sides(model, label, against)
    apart = _evidence(model, c, d)
    classes = (
        [model.classes[c]] if d is None and len(model.classes) > 2 else [model.classes[c], model.classes[d or 1 - c]]
    )
    shapes_in = _shapes_of_tables if model.weighing is not None else _shapes_of_plain
    shapes = list(shapes_in(model, apart, _Errors(model, apart, c, d), classes))
    return tuple(sorted(shapes, key=lambda shape: (-shape.importance, shape.feature)))


def shapes_by_class(model: Model, n_classes: int) -> list[tuple[Any, tuple[Shape, ...]]]:
    """Returns the evidence for each class; for two classes only the last, for many the ``n_classes`` most frequent."""
    if len(model.classes) < 2:
        return []
    often = np.sort(np.argsort(-model.tally.rows.value, kind="stable")[:n_classes]).tolist()
    chosen = [model.classes[c] for c in often] if len(model.classes) > 2 else [model.classes[1]]
    return [(label, tuple(s for s in shapes_of(model, label) if s.importance > 0)) for label in chosen]


def _sides(model: Model, label: Any, against: Any) -> tuple[int, int | None]:
    """The numbers of the class and of the one it is compared with; None for all others together."""
    check_model(model, classes=2)
    c = len(model.classes) - 1 if label is None else number_of(model, label)
    if against is None:
        return c, 1 - c if len(model.classes) == 2 else None
    d = number_of(model, against)
    if c == d:
        raise errors.bad_setting("against", against, "another class than the one it is compared with")
    return c, d


def _evidence(model: Model, c: int, d: int | None) -> Apart:
    """What values say of each class, (values, classes), as decibans for one class against another or against all others."""
    rest = [k for k in range(len(model.classes)) if k != c] if d is None else [d]
    log_share = model.log_prior[rest] - np.logaddexp.reduce(model.log_prior[rest])
    calibration = model.calibration
    scales = calibration is not None and (calibration.only_scales or len(model.classes) == 2)
    scale = DECIBANS * (calibration.scale if scales and calibration is not None else 1.0)

    def decibans(says: Real) -> Real:
        with np.errstate(invalid="ignore"):
            nats = says[:, c] - np.logaddexp.reduce(says[:, rest] + log_share, axis=1)
        finite = np.nan_to_num(scale * nats, nan=0.0, posinf=STRONGEST, neginf=-STRONGEST)
        return np.asarray(np.clip(finite, -STRONGEST, STRONGEST))

    return decibans


class _Errors:
    """Half of a 95 % interval of evidence: how far it would be off if as many rows were drawn anew."""

    def __init__(self, model: Model, apart: Apart, c: int, d: int | None) -> None:
        self._apart = apart
        self._sides = c, d
        self._alpha = model.choice.alpha
        weighing = model.weighing
        self._worth = weighing.worth() if isinstance(weighing, Weighing) else {}
        self._strength = max(weighing.weights.strengths, default=0.0) if isinstance(weighing, Weighing) else 0.0

    def of_cells(self, cells: Cells, rows: Real) -> Real:
        """Of cells, whose rows are drawn anew with the shares of classes that they are taken to have; and of corrections."""
        shares = cells.tree.shares(rows, cells.strengths, prior_of(rows))[-1]
        expected = rows.sum(axis=1, keepdims=True) * shares
        rng = np.random.default_rng(0)
        again = [self._apart(self._says(cells, rng.poisson(expected).astype(np.float64))) for _ in range(DRAWS)]
        variance = np.var(again, axis=0) + self._of_corrections(cells, rows)
        return np.asarray(np.minimum(Z * np.sqrt(variance), STRONGEST))

    def _says(self, cells: Cells, rows: Real) -> Real:
        """What cells of these rows say of each class, with their trend."""
        name = cells.feature.name
        prior = prior_of(rows)
        with np.errstate(divide="ignore"):
            says = self._worth.get(name, 1.0) * np.log(cells.tree.shares(rows, cells.strengths, prior)[-1] / prior)
        if trend := self._worth.get(f"{name}, by trend", 0.0):
            n = len(cells.places)
            says[:n] += trend * Trends(cells.places, np.array([n])).evidence(rows[:n], False)
        return np.asarray(says)

    def _of_corrections(self, cells: Cells, rows: Real) -> Real:
        """The variance of the corrections of all levels of a tree, which C pulls towards 0."""
        variance = np.zeros(len(rows))
        if not self._strength:
            return variance
        tree = cells.tree
        pull = len(tree.levels) / (2.0 * self._strength)
        shares_by_level = tree.shares(rows, cells.strengths, prior_of(rows))
        for nodes, shares, level in zip(tree.sums(rows), shares_by_level, tree.levels, strict=True):
            first, second = self._of_sides(nodes.sum(axis=1, keepdims=True) * shares)
            information = first * second / np.maximum(first + second, 1.0)
            variance += (information / (pull + information) ** 2)[level]
        return DECIBANS**2 * variance

    def of_values(self, rows: Real) -> Real:
        """Of values that are counted one by one, to which α is added."""
        sides = np.stack(self._of_sides(rows))
        total = sides.sum(axis=0)
        share = sides.sum(axis=1, keepdims=True) / max(float(total.sum()), 1.0)
        expected = total * (sides + self._alpha * share) / np.maximum(total + self._alpha, 1.0)
        variance = (expected / np.maximum(expected + self._alpha, HALF_ROW) ** 2).sum(axis=0)
        return np.asarray(np.minimum(Z * DECIBANS * np.sqrt(variance), STRONGEST))

    def _of_sides(self, rows: Real) -> tuple[Real, Real]:
        c, d = self._sides
        first = rows[:, c]
        return first, rows.sum(axis=1) - first if d is None else rows[:, d]


# Of each kind of model ------------------------------------------------------------------------------------------------


def _shapes_of_tables(model: Model, apart: Apart, within: _Errors, classes: Sequence[Any]) -> Iterator[Shape]:
    """The columns and pairs of a weighed model: the very numbers that it adds up."""
    plain = model.weighed(None)
    for group in model.parameters:
        if not isinstance(group, WeighedParameters):
            weighed = _times(apart, float(getattr(group, "weight", 1.0)))
            for feature in group.features:
                source, evidence = (model, apart) if feature.reads_text else (plain, weighed)
                if shape := _plain_shape(source, feature, evidence, within, classes, None):
                    yield shape
            continue
        for feature, table, (first, second) in zip(group.features, group.tables, group.found_by.columns, strict=True):
            decibans = apart(table)
            cells = group.cells[first]
            rows = group.counts[first]
            if second >= 0:
                down, n_down, seen_down = _nodes(cells, rows)
                across, n_across, seen_across = _nodes(group.cells[second], group.counts[second])
                seen = np.ix_(seen_down, seen_across)
                together = np.outer(n_down, n_across) / max(float(n_across.sum()), 1e-300)
                yield Shape(
                    feature.name, "pairs", decibans.reshape(together.shape)[seen], together[seen], (down, across)
                )
                continue
            yield _of_cells(model, feature, cells, decibans[: len(rows)], rows, within.of_cells(cells, rows))


def _times(apart: Apart, weight: float) -> Apart:
    return lambda says: apart(weight * says)


def _shapes_of_plain(model: Model, apart: Apart, within: _Errors, classes: Sequence[Any]) -> Iterator[Shape]:
    columns = cells_of(model.tally, n_threads(model.threads))
    for feature in model.schema.features:
        if shape := _plain_shape(model, feature, apart, within, classes, columns.get(feature.name)):
            yield shape


def _plain_shape(
    model: Model, feature: Feature, apart: Apart, within: _Errors, classes: Sequence[Any], cells: Cells | None
) -> Shape | None:
    """The evidence of a column as it was counted; None for blocks and lists, whose values do not lie along a line."""
    if feature.reads_text:
        scale = text_scale(model, feature, apart, classes)
        order = np.argsort(-scale.decibans, kind="stable")
        words = [str(scale.values[k]) for k in order.tolist()]
        return Shape(feature.name, "words", scale.decibans[order], np.ones(len(order)), (names(words),))
    if not has_axis(feature):
        return None
    if isinstance(cells, NumberCells):
        (rows,) = count_cells(model.tally, [cells])
        ends = _ends(model, feature, cells.cuts)
        middles = (ends[:-1] + ends[1:]) / 2.0
        decibans = apart(log_likelihood(model, feature, middles))
        n = len(middles)
        return _of_cells(model, feature, cells, decibans, rows[:n], within.of_cells(cells, rows)[:n])
    parts = parts_of(model, feature.name)
    if parts.is_numeric:
        points = grid(model, feature, feature.inputs[0], None, POINTS)
        says = log_likelihood(model, feature, points)
        ends = np.concatenate([points[:1], (points[1:] + points[:-1]) / 2.0, points[-1:]])
        rows = np.exp(says + model.log_prior).sum(axis=1) * np.diff(ends)
        return Shape(feature.name, "numbers", apart(says), rows / max(rows.sum(), 1e-300), ends=ends)
    shown = values_by_name(model, parts, MOST_VALUES)
    decibans = apart(log_likelihood(model, feature, shown.values))
    error = None
    if isinstance(parts.sums, Counts):
        keys, of_keys = parts.sums.feature(parts.at)
        place = {key: k for k, key in enumerate(keys)}
        if all(value in place for value in shown.values):
            error = within.of_values(of_keys.value[[place[value] for value in shown.values]])
    order = np.argsort(-decibans, kind="stable")
    texts = names([shown.names[k] for k in order.tolist()])
    n_values = len(shown.names) + shown.hidden
    error = None if error is None else error[order]
    return Shape(
        feature.name, "categories", decibans[order], shown.rows[order], (texts,), error=error, n_values=n_values
    )


def _of_cells(model: Model, feature: Feature, cells: Cells, decibans: Real, rows: Real, error: Real) -> Shape:
    """The cells of a column: stretches of numbers in their order, values by their evidence."""
    total = rows.sum(axis=1)
    if isinstance(cells, NumberCells):
        n = len(cells.cuts) + 1
        missing = float(decibans[n]) if len(decibans) > n and total[n] > 0 else None
        ends = _ends(model, feature, cells.cuts)
        return Shape(feature.name, "numbers", decibans[:n], total[:n], ends=ends, error=error[:n], missing=missing)
    assert isinstance(cells, NamedCells)
    there = np.flatnonzero(total[: len(cells.keys)] > 0)  # a value that was forgotten has no rows
    often: Int = there[np.argsort(-total[there], kind="stable")][:MOST_VALUES]
    order = often[np.argsort(-decibans[often], kind="stable")]
    texts = names(["missing" if cells.keys[k] is None else cells.keys[k] for k in order.tolist()])
    return Shape(
        feature.name, "categories", decibans[order], total[order], (texts,), error=error[order], n_values=len(there)
    )


def _ends(model: Model, feature: Feature, cuts: Real) -> Real:
    """The cuts between the least and the greatest number that was counted."""
    low, high = span(model, feature.name, None, 0.0)
    ends = np.concatenate([[min([low, *cuts[:1]])], cuts, [max([high, *cuts[-1:]])]])
    return np.asarray(np.clip(ends, -FARTHEST, FARTHEST))


def _nodes(cells: Cells, rows: Real) -> tuple[list[str], Real, NDArray[np.bool_]]:
    """A column's nodes as pairs have them, the last with all other values: names of those with rows; rows; which have some."""
    fine = cells.nodes.fine[:-1]
    first = np.unique(fine, return_index=True)[1]
    last = np.unique(fine[::-1], return_index=True)[1]
    values = [cells.name(int(a), len(fine) - 1 - int(b)) for a, b in zip(first, last, strict=True)]
    called = [*(_short(value) if isinstance(cells, NumberCells) else name(value, 18) for value in values), "any other"]
    n_rows = np.bincount(fine, rows.sum(axis=1), len(called)).astype(np.float64)
    return [text for text, n in zip(called, n_rows, strict=True) if n > 0], n_rows, n_rows > 0


def _short(stretch: str | None) -> str:
    """Where numbers lie, with few digits."""
    words = name(stretch, 60).removeprefix("from ").replace(" to ", " – ").split(" ")
    return " ".join(word if word in "<≤=≥–" or stretch is None else f"{float(word):,.5g}" for word in words)


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
        self.shapes, self.label, self.against = tuple(shapes), label, against
        self.n = n

    @classmethod
    def from_model(cls, model: Model, label: Any = None, against: Any = None, *, n: int = 12) -> Self:
        """Draws the ``n`` most important columns and pairs, for the last class unless ``label`` is given."""
        errors.check_whole("n", n, 1)
        c, d = _sides(model, label, against)
        other = None if d is None else model.classes[d]
        return cls(shapes_of(model, label, against), model.classes[c], other, n=int(n)).plot()

    def _draw(self, ax: Any) -> None:
        if ax is not None:
            raise errors.bad_setting("ax", ax, "None, because each column has its own picture")
        shown = self.shapes[: self.n]
        if not shown:
            raise errors.empty_data(None, "no column of the model can be drawn")
        across = min(len(shown), 3)
        down = -(-len(shown) // across)
        size = 3.6 * across + 0.4, 2.6 * down + 0.4
        figure, axes = pyplot().subplots(down, across, figsize=size, layout="constrained", squeeze=False)
        self.figure_, self.ax_ = figure, axes.ravel()[: len(shown)]
        for unused in axes.ravel()[len(shown) :]:
            unused.set_axis_off()
        draw = {"numbers": _steps, "categories": _bars, "words": _bars, "pairs": _heat_map}
        for axis, shape in zip(self.ax_, shown, strict=True):
            draw[shape.kind](axis, shape)
            axis.set_title(name(shape.feature, 44))
        opponent = "all others" if self.against is None else name(self.against)
        figure.supxlabel(f"decibans for {name(self.label)} (blue) against {opponent} (orange)", fontsize=9)


def _steps(ax: Any, shape: Shape) -> None:
    places, marked = shape.places()
    bottom, top = limits(shape)
    ax.axhline(0.0, color=FAINT, linewidth=0.8)
    if shape.error is not None:
        low, high = (np.clip(shape.decibans + side * shape.error, bottom, top) for side in (-1.0, 1.0))
        ax.stairs(high, places, baseline=low, fill=True, color=FOR, alpha=0.18, linewidth=0)
    ax.stairs(shape.decibans, places, baseline=None, color=FOR, linewidth=1.6)
    room = 0.09 * (top - bottom)
    density = strip_density(shape, places)
    for left, right, share in zip(places[:-1], places[1:], density.tolist(), strict=True):
        ax.fill_between([left, right], bottom - room, bottom, color=ink(), alpha=0.75 * share, linewidth=0)
    if shape.missing is not None:
        ax.plot([1.04], [np.clip(shape.missing, bottom, top)], "D", color=AGAINST, markersize=4, clip_on=False)
        ax.annotate("missing", (1.0, 1.0), xycoords="axes fraction", ha="right", va="bottom", fontsize=7, color=AGAINST)
    ax.set(xlim=(0.0, 1.08 if shape.missing is not None else 1.0), ylim=(bottom - room, top))
    ax.set_xticks([place for place, _ in marked], [text for _, text in marked])


def limits(shape: Shape) -> tuple[float, float]:
    """The lowest and highest decibans to draw: all of the evidence, and of the errors half as much again at most."""
    values = [*shape.decibans.ravel().tolist(), 0.0, *([] if shape.missing is None else [shape.missing])]
    low = min(values)
    high = max(values)
    room = max(0.5 * (high - low), 1.0)
    if shape.error is not None:
        low = max(float((shape.decibans - shape.error).min()), low - room)
        high = min(float((shape.decibans + shape.error).max()), high + room)
    return low - 0.05 * room, high + 0.05 * room


def strip_density(shape: Shape, places: Real) -> Real:
    """How closely rows lie in each stretch, as a share of the densest; its square root, so that few rows are seen too."""
    density = shape.rows / np.maximum(np.diff(places), 1e-9)
    return np.sqrt(density / max(float(density.max(initial=0.0)), 1e-300))


def _bars(ax: Any, shape: Shape) -> None:
    places = np.arange(len(shape.decibans))
    colours = [FOR if value >= 0 else AGAINST for value in shape.decibans.tolist()]
    ax.barh(
        places, shape.decibans, 0.7, color=colours, xerr=shape.error, error_kw={"ecolor": "#555555", "elinewidth": 0.9}
    )
    ax.axvline(0.0, color=FAINT, linewidth=0.8)
    hidden = shape.n_values - len(places)
    ax.set_yticks(places, shape.names[0], fontsize=7)
    ax.set(xlim=limits(shape), ylim=(len(places) - 0.4, -0.6))
    if hidden > 0:
        ax.set_xlabel(f"{hidden:,} rarer values not shown", fontsize=7)
    ax.tick_params(axis="y", length=0)


def _heat_map(ax: Any, shape: Shape) -> None:
    most = max(float(np.abs(shape.decibans).max(initial=0.0)), 1e-9)
    colours = library().colors.LinearSegmentedColormap.from_list("evidence", [AGAINST, "white", FOR])
    drawn = ax.imshow(shape.decibans, cmap=colours, vmin=-most, vmax=most, aspect="auto")
    ax.figure.colorbar(drawn, ax=ax, shrink=0.9).ax.tick_params(labelsize=7)
    for axis, texts, angle in ((ax.xaxis, shape.names[1], 90), (ax.yaxis, shape.names[0], 0)):
        axis.set_ticks(np.arange(len(texts)), texts, fontsize=6, rotation=angle)
