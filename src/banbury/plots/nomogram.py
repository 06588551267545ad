"""NomogramDisplay: the whole model on one sheet: decibans of every value, to be added up to a probability by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.families.family import Feature, first_value
from banbury.model.explain import DECIBANS, Explanation, Term, make_explanation
from banbury.model.explain.page import percent, printable
from banbury.model.naive_bayes import Model
from banbury.plots.display import AGAINST, FAINT, FOR, Display, format_decibans, ink, library, name
from banbury.plots.features import ClassedRows, check_axis, check_model, number_of
from banbury.plots.scales import LANE, Scale, plain_scale
from banbury.reading import Batch

FARTHEST_SUM = 40.0  # decibans: odds of ten thousand to one
PROBABILITIES = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)
WIDTH = 7.6  # of the sheet and of a letter, in inches
LETTER = 0.062
SMALL = 7.5  # points of a letter


class NomogramDisplay(Display):
    """The evidence of each value of each feature for ``label`` against ``against``, in decibans, and the probability of
    the sum.

    The numbers are those of ``model.explain``: ``prior`` plus the decibans of a row's values in ``scales`` is ten times
    log10 of the odds, and ``probability`` converts the sum to the posterior, including a calibration. For a text, the
    most informative words have a place each, as if each occurred alone; ``points(row)`` returns the decibans of a row,
    including all its words. A missing value adds nothing. For a numeric feature, the height of the curve is the value.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> row = {"outlook": "sunny", "temperature": None, "humidity": "high", "wind": "strong"}
    >>> sheet = bb.plots.NomogramDisplay.from_model(model, "yes", row=row)
    >>> {feature: round(weight, 2) for feature, weight in sheet.points(row).items()}
    {'outlook': -3.01, 'temperature': 0.0, 'humidity': -2.93, 'wind': -1.96}
    >>> round(float(sheet.probability(sheet.decibans(row))), 3), model.posterior(row).round(3).tolist()
    (0.226, [[0.774, 0.226]])
    """

    def __init__(
        self,
        model: Model,
        label: Any,
        against: Any,
        scales: Sequence[Scale],
        *,
        row: Any = None,
        n: int = 12,
        limit: float = 50.0,
    ) -> None:
        self.model = model
        self.label = label
        self.against = against
        self.scales = {scale.feature: scale for scale in scales}
        self.row = row
        self.n = n
        self.limit = limit
        self.prior = self._explain_terms([]).prior

    @classmethod
    def from_model(
        cls,
        model: Model,
        label: Any,
        against: Any = None,
        *,
        data: Any = None,
        target: Any = None,
        row: Any = None,
        n: int = 12,
        limit: float = 50.0,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws the evidence for a class against another, which can be omitted if there are two.

        ``row`` marks the values of one row and their sum. Numbers are drawn over the range of ``data`` (with its
        ``target``, as in ``bb.count``), or over the range that the model knows. ``n`` is the number of most informative
        features, and ``limit`` the largest distance from 0 to draw, in decibans.
        """
        if not isinstance(limit, (int, float)) or isinstance(limit, bool) or not 1 <= limit <= 1e6:
            raise errors.bad_setting("limit", limit, "a number of decibans from 1 to 1,000,000")
        errors.check_whole("n", n, 1, 10**6)
        sheet = cls.of(model, label, against, data=data, target=target, **reading)
        sheet.row, sheet.n, sheet.limit = row, n, float(limit)
        return sheet.plot(ax)

    @classmethod
    def of(
        cls, model: Model, label: Any, against: Any = None, *, data: Any = None, target: Any = None, **reading: Any
    ) -> Self:
        """Computes the numbers without drawing them."""
        check_model(model, classes=2)
        c = number_of(model, label)
        if against is None and len(model.classes) > 2:
            rivals = errors.listed((repr(class_name) for class_name in model.classes if class_name != label), 6)
            text = f"of {len(model.classes):,} classes {label!r} cannot be compared with all others at once, "
            text += "because that evidence does not add up feature by feature. Name one class with against= "
            raise errors.BadSetting(
                f"{text}({rivals}), or use a target with two classes, {label!r} and the rest.", label=label
            )
        other = model.classes[1 - c] if against is None else against
        if number_of(model, other) == c:
            raise errors.bad_setting("against", against, "a class other than the one it is compared with")
        for feature in model.schema.features:
            check_axis(feature)
        if model.weighing is not None:
            text = "the model weighs its evidence, and a sheet with all its columns and pairs cannot be read. Draw what it has "
            text += "learned with bb.plots.shapes(model), or the evidence as it was counted: model.weighed(None)."
            raise errors.BadSetting(text)
        rows = None if data is None else ClassedRows(model, data, target, reading)
        sheet = cls(model, label, other, [])
        for feature in model.schema.features:
            sheet.scales[feature.name] = plain_scale(model, feature, sheet._apart, rows, [label, other])
        return sheet

    # The numbers

    def _apart(self, log_likelihoods: Real) -> Real:
        """For how many decibans values speak, from what they say of each class, (values, classes)."""
        explanation = self._explain_terms(
            [Term("", k, log_likelihood) for k, log_likelihood in enumerate(log_likelihoods)]
        )
        decibans = np.zeros(len(log_likelihoods))
        decibans[[e.value for e in explanation.evidence]] = [e.decibans for e in explanation.evidence]
        return decibans

    def _explain_terms(self, terms: Sequence[Term]) -> Explanation:
        """What ``explain`` makes of these terms, with the label in the winner's place."""
        classes = self.model.classes
        at = classes.index(self.label), classes.index(self.against)
        return make_explanation(
            classes, self.model.log_prior, terms, np.exp(self.model.log_prior), *at, scale=self._scale
        )

    @property
    def _scale(self) -> float:
        """How many times as heavy calibration makes evidence; 1 where the sum of two of many classes cannot tell what it does."""
        calibration = self.model.calibration
        is_one_factor = calibration is not None and (calibration.only_scales or len(self.model.classes) == 2)
        return calibration.scale if calibration is not None and is_one_factor else 1.0

    def points(self, row: Any) -> dict[str, float]:
        """Returns the decibans of each feature of a row; 0 if its value is missing."""
        return {feature: self._explain_terms([term]).evidence[0].decibans for feature, term in self._terms(row).items()}

    def decibans(self, row: Any) -> float:
        """Returns the sum of the prior and of a row's points."""
        return self._explain_terms(list(self._terms(row).values())).decibans

    def _terms(self, row: Any) -> dict[str, Term]:
        batch, parameters = self.model._fitting(self._read(row), {"absent", "extra"})
        names = [feature.name for group in parameters for feature in group.features]
        scores = dict(zip(names, self.model._kernel(batch, parameters, "parts")[0][0], strict=True))
        nothing = np.zeros(len(self.model.classes))
        return {feature: Term(feature, 0, scores.get(feature, nothing)) for feature in self.scales}

    def _read(self, row: Any) -> Batch:
        """One row, under the model's names."""
        return self.model._fitting(self.model._one_row(row), {"absent", "extra"})[0]

    def probability(self, decibans: Any) -> Any:
        """Converts a sum of decibans to P(label | row); with more than two classes, P(label | row, one of the two)."""
        odds = np.asarray(decibans, dtype=np.float64) / DECIBANS
        if self.model.calibration is None or len(self.model.classes) > 2:
            return np.exp(-np.logaddexp(0.0, -odds))
        odds = odds / self._scale
        c = self.model.classes.index(self.label)
        scores = np.zeros((odds.size, 2))
        scores[:, c], scores[:, 1 - c] = np.minimum(odds.ravel(), 0.0), np.minimum(-odds.ravel(), 0.0)
        return self.model.calibration.apply(scores)[:, c].reshape(odds.shape)

    # The picture

    def _draw(self, ax: Any) -> None:
        shown = sorted(self.scales.values(), key=lambda scale: -scale.range)[: self.n]
        heights = [LANE, *(scale.height for scale in shown), 1.5 * LANE]
        ax = self._begin(ax, WIDTH, 0.9 + 0.44 * sum(heights))
        batch = None if self.row is None else self._read(self.row)
        points = {} if batch is None else self.points(batch)
        all_decibans = np.concatenate([[0.0, self.prior], *(s.decibans for s in shown), list(points.values())])
        all_decibans = np.clip(all_decibans, -self.limit, self.limit)
        margin = 0.06 * float(np.ptp(all_decibans)) or 1.0
        sheet = Sheet(ax, float(all_decibans.min()) - margin, float(all_decibans.max()) + margin)
        middles = sheet.lanes(heights)
        sheet.line(np.array([self.prior]), [format_decibans(self.prior)], np.ones(1), middles[0])
        for scale, middle in zip(shown, middles[1:-1], strict=True):
            if scale.numeric:
                sheet.curve(scale, middle)
            else:
                sheet.line(scale.decibans, scale.names, scale.rows, middle, 2 if scale.words else 1)
        sheet.sums(self.probability, middles[-1])
        features = {feature.name: feature for group in self.model.parameters for feature in group.features}
        values = {} if batch is None else {scale.feature: _value(batch, features[scale.feature]) for scale in shown}
        caption = f"sum in decibans, and below it {self._meaning}"
        if batch is not None:
            total = self.decibans(batch)
            sheet.mark(self.prior, middles[0])
            for scale, middle in zip(shown, middles[1:-1], strict=True):
                value = values[scale.feature]
                weight = points[scale.feature]
                if value is not None or weight != 0:  # what is missing has a mark where it is a value of its own
                    sheet.mark(weight, float(scale.heights(value, middle)) if scale.numeric else middle)
            sheet.sum_mark(total, middles[-1])
            caption = f"{format_decibans(total)} decibans: {self._meaning} {percent(float(self.probability(total)))}"
        caption = textwrap.fill(caption, 60)
        ax.text((sheet.low + sheet.high) / 2, middles[-1] - 0.52, caption, ha="center", va="top", fontsize=8)
        labels = [s.label(*([values[s.feature]] if values else [])) for s in shown]
        self._frame(ax, middles, ["prior", *labels, "sum"])
        curves_note = "; a curve's height is the value" if any(scale.numeric for scale in shown) else ""
        fewer_note = f"; {len(shown)} features of {len(self.scales)}, those that tell most"
        fewer_note = fewer_note if len(shown) < len(self.scales) else ""
        ax.set_title(f"Nomogram: {name(self.label)} against {name(self.against)}{curves_note}{fewer_note}")

    def _frame(self, ax: Any, middles: Real, labels: list[str]) -> None:
        ax.set_yticks(middles, labels)
        ax.tick_params(axis="y", length=0)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        ax.spines[["left", "bottom", "right"]].set_visible(False)
        ax.spines["top"].set_visible(True)
        ax.set_xlabel(f"decibans: to the right for {name(self.label)}, to the left for {name(self.against)}")

    @property
    def _meaning(self) -> str:
        label = name(self.label)
        if len(self.model.classes) == 2:
            return f"P({label})"
        calibration = self.model.calibration
        before = ", before calibration" if calibration is not None and not calibration.only_scales else ""
        return f"P({label} | {label} or {name(self.against)}){before}"


def _value(batch: Batch, feature: Feature) -> Any:
    """A row's value of a feature; None where it is missing. Of a block the values of its columns."""
    if not set(feature.inputs).issubset(batch.names):
        return None
    value = first_value(batch, feature)
    several = isinstance(value, tuple) and any(part is not None for part in value) and len(value) > 1
    return ", ".join(map(printable, value)) if several else value[0] if isinstance(value, tuple) else value


# The sheet: values along lines and curves, the marks of a row, and the scale of sums ------------------------------------


@dataclass(frozen=True)
class Sheet:
    """Axes whose breadth is ``low`` to ``high`` decibans."""

    ax: Any
    low: float
    high: float

    @property
    def _letter(self) -> float:
        """The width of a letter, in decibans."""
        return (self.high - self.low) / (WIDTH - 2.2) * LETTER

    def lanes(self, heights: Sequence[float]) -> Real:
        """Draws the lines between lanes, from the top, and gives the lanes' middles; the last has a scale of its own."""
        edges = -np.cumsum(heights)
        for edge in edges[:-1]:
            self.ax.axhline(edge, color=FAINT, linewidth=0.5)
        self.ax.plot([0.0, 0.0], [0.0, edges[-2]], color=FAINT, linewidth=1.0, zorder=0)
        self.ax.set(xlim=(self.low, self.high), ylim=(edges[-1], 0.0))
        return np.asarray(edges + np.array(heights) / 2)

    def line(self, decibans: Real, names: Sequence[str], rows: Real, middle: float, levels: int = 1) -> None:
        """A tick for each value; names above and below, the ends and the most frequent first, where there is room."""
        places = np.clip(decibans, self.low, self.high)
        self.ax.plot([places.min(), places.max()], [middle, middle], color=ink(), linewidth=0.8)
        self.ax.plot(places, np.full(len(places), middle), "|", color=ink(), markersize=6)
        ends = {int(places.argmin()), int(places.argmax())}
        heights = [side * (0.12 + 0.34 * level) for level in range(levels) for side in (1, -1)]
        taken: dict[float, list[tuple[float, float]]] = {height: [] for height in heights}
        for k in sorted(range(len(places)), key=lambda k: (k not in ends, -rows[k])):
            text = names[k] if np.isfinite(decibans[k]) else f"{names[k]} (∞)"
            half = self._letter * (len(text) + 1) / 2
            centre = float(np.clip(places[k], self.low + half, self.high - half))
            free = [y for y, spans in taken.items() if all(centre + half <= a or b <= centre - half for a, b in spans)]
            if free:
                taken[free[0]].append((centre - half, centre + half))
                above = "bottom" if free[0] > 0 else "top"
                if levels > 1:
                    self.ax.plot([places[k], centre], [middle, middle + free[0]], color=FAINT, linewidth=0.6, zorder=1)
                self.ax.text(centre, middle + free[0], text, ha="center", va=above, fontsize=SMALL)

    def curve(self, scale: Scale, middle: float) -> None:
        """Decibans across, the value itself upwards, with some of the values beside the curve, where it does not go."""
        values = scale.values
        decibans = scale.decibans
        self.ax.plot(decibans, scale.heights(values, middle), color=FOR, linewidth=1.4)
        ticks = library().ticker.MaxNLocator(4).tick_values(values[0], values[-1])
        ticks = ticks[(ticks >= values[0]) & (ticks <= values[-1])]
        tick_decibans = np.interp(ticks, values, decibans)
        next_decibans = np.interp(ticks + (values[-1] - values[0]) / len(values), values, decibans)
        for tick, x, next_x in zip(ticks, tick_decibans, next_decibans, strict=True):
            if self.low <= x <= self.high:
                y = float(scale.heights(tick, middle))
                self.ax.plot([x], [y], ".", color=FOR, markersize=4)
                side = {"va": "top", "xytext": (2, -1)} if next_x >= x else {"va": "bottom", "xytext": (2, 1)}
                self.ax.annotate(f"{tick:,.6g}", (x, y), textcoords="offset points", fontsize=SMALL, **side)

    def mark(self, decibans: float, height: float) -> None:
        """A row's own value; an arrow where it lies outside."""
        sign = "o" if self.low <= decibans <= self.high else ">" if decibans > self.high else "<"
        place = float(np.clip(decibans, self.low, self.high))
        style = {"color": AGAINST, "markersize": 7, "markeredgecolor": "white", "zorder": 4, "clip_on": False}
        self.ax.plot([place], [height], sign, **style)

    def _of_sum(self, total: Any) -> Any:
        """Where a sum lies on its own scale."""
        room = 0.03 * (self.high - self.low)
        return np.interp(total, [-FARTHEST_SUM, FARTHEST_SUM], [self.low + room, self.high - room])

    def sums(self, probability: Callable[[Any], Any], middle: float) -> None:
        """The scale of sums: decibans above the line, the probability they mean below."""
        self.ax.plot(self._of_sum([-FARTHEST_SUM, FARTHEST_SUM]), [middle, middle], color=ink(), linewidth=1.2)
        for total in np.arange(-FARTHEST_SUM, FARTHEST_SUM + 1.0, 10.0):
            text = f"{total:+.0f}".replace("-", "−") if total else "0"
            self._tick(float(self._of_sum(total)), middle, 1, text)
        totals = np.linspace(-FARTHEST_SUM, FARTHEST_SUM, 8_001)
        last = -np.inf
        reached = np.asarray(probability(totals))
        for share in PROBABILITIES:
            if reached[0] - 1e-12 <= share <= reached[-1] + 1e-12:
                place = float(self._of_sum(totals[min(int(np.searchsorted(reached, share)), len(totals) - 1)]))
                text = f"{100 * share:.6g}%"
                half = self._letter * (len(text) + 0.5) / 2
                fits = place - half >= last
                self._tick(place, middle, -1, text if fits else "")
                last = place + half if fits else last

    def _tick(self, place: float, middle: float, side: int, text: str) -> None:
        self.ax.plot([place, place], [middle, middle + 0.12 * side], color=ink(), linewidth=0.8)
        above = "bottom" if side > 0 else "top"
        self.ax.text(place, middle + 0.16 * side, text, ha="center", va=above, fontsize=SMALL)

    def sum_mark(self, total: float, middle: float) -> None:
        outside = np.inf if total > FARTHEST_SUM else -np.inf if total < -FARTHEST_SUM else 0.0
        self.mark(float(self._of_sum(total)) + outside, middle)
