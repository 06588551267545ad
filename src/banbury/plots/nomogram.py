"""NomogramDisplay: the whole model on one sheet: decibans of every value, to be added up to a probability by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.explain import DECIBANS, Explanation, Term, explained
from banbury.naive_bayes import Model
from banbury.plots.display import AGAINST, FAINT, FOR, Display, library, name, names, percent, signed
from banbury.plots.features import (
    Rows,
    check_model,
    check_whole,
    grid,
    is_numeric,
    keys,
    log_likelihood,
    number_of,
    rows_with,
)
from banbury.readers import Batch, read

Real = NDArray[np.float64]
STEPS = 200  # points of a numeric feature's curve
FARTHEST_SUM = 40.0  # decibans: odds of ten thousand to one
PROBABILITIES = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)
WIDTH, LETTER = 7.6, 0.062  # of the picture and of a letter, in inches
LANE, CURVE = 1.0, 1.7  # heights of the lanes of categories and of numbers


@dataclass(frozen=True)
class Scale:
    """The values of a feature that are drawn, and for how many decibans each speaks."""

    feature: str
    values: Any
    decibans: Real
    names: list[str]
    rows: Real  # how many have each value, where values are counted
    numeric: bool

    @property
    def range(self) -> float:
        finite = self.decibans[np.isfinite(self.decibans)]
        return float(np.ptp(finite)) if len(finite) == len(self.decibans) else np.inf


class NomogramDisplay(Display):
    """For how many decibans each value of each feature speaks for ``label`` against ``against``; and what the sum means.

    The numbers are those of ``model.explain``: ``prior``, plus the decibans of a row's values from ``scales``, is ten times log10
    of the odds, and ``probability`` turns the sum into what ``model.posterior`` says. A missing value adds nothing. Of a numeric
    feature the curve's height is the value. ``points(row)`` reads the decibans of a row off.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> row = {"outlook": "sunny", "temperature": None, "humidity": "high", "wind": "strong"}
    >>> sheet = bb.plots.NomogramDisplay.from_model(model, "yes", row=row)
    >>> {feature: round(weight, 2) for feature, weight in sheet.points(row).items()}
    {'outlook': -3.01, 'temperature': 0.0, 'humidity': -2.93, 'wind': -1.96}
    >>> sheet.probability(sheet.decibans(row)).round(4), model.posterior(row)[0, 1].round(4)
    (np.float64(0.2477), np.float64(0.2477))
    """

    def __init__(
        self,
        model: Model,
        label: Any,
        against: Any,
        scales: Sequence[Scale],
        *,
        row: Any = None,
        most: int = 12,
        limit: float = 50.0,
    ) -> None:
        self.model, self.label, self.against = model, label, against
        self.scales = {scale.feature: scale for scale in scales}
        self.row, self.most, self.limit = row, most, limit
        self.prior = self._weighed([]).prior

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
        most: int = 12,
        limit: float = 50.0,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws what speaks for a class against another, which may be left out where there are two.

        ``row`` marks the values of one row and their sum. Numbers are drawn from the lowest to the highest of ``data`` (with its
        ``target``, as ``bb.count`` takes them), or else as far as the model's own values reach. ``most``: the features that
        tell most. The picture ends ``limit`` decibans from 0.
        """
        check_model(model, classes=2)
        c = number_of(model, label)
        if against is None and len(model.classes) > 2:
            raise errors.evidence_against_the_rest(label, model.classes)
        other = model.classes[1 - c] if against is None else against
        if number_of(model, other) == c:
            raise errors.bad_setting("against", against, "another class than the one it is weighed against")
        if not isinstance(limit, (int, float)) or isinstance(limit, bool) or not 1 <= limit <= 1e6:
            raise errors.bad_setting("limit", limit, "a number of decibans from 1 to 1,000,000")
        check_whole("most", most, 1)
        for feature in model.schema.texts:
            raise errors.text_has_no_axis(feature.name)
        rows = None if data is None else Rows(model, data, target, reading)
        sheet = cls(model, label, other, [], row=row, most=most, limit=float(limit))
        sheet.scales = {f.name: sheet._scale(f, rows) for f in model.schema.features}
        return sheet.plot(ax)

    # The numbers

    def _scale(self, feature: Any, rows: Rows | None) -> Scale:
        if is_numeric(feature):
            seen = None if rows is None else rows.numbers(feature.name)
            seen = None if seen is None else seen[np.isfinite(seen)]
            values: Any = grid(self.model, feature, seen if seen is not None and len(seen) else None, STEPS)
            called: list[str] = []
            counted = np.empty(0)
        else:
            values, called = keys(self.model, feature)
            counted = rows_with(self.model, feature)
        found = log_likelihood(self.model, feature.name, values)
        told = self._weighed([Term(feature.name, k, each) for k, each in enumerate(found)])
        decibans = np.zeros(len(values))
        decibans[[e.value for e in told.evidence]] = [e.decibans for e in told.evidence]
        return Scale(feature.name, values, decibans, names(called), counted, is_numeric(feature))

    def _weighed(self, terms: Sequence[Term]) -> Explanation:
        """What ``explain`` makes of these terms, with the label in the winner's place."""
        at = [self.model.classes.index(self.label), self.model.classes.index(self.against)]
        two = [Term(term.feature, term.value, term.log_likelihood[at]) for term in terms]
        return explained((self.label, self.against), self.model.log_prior[at], two, np.array([1.0, 0.0]), 1)

    def points(self, row: Any) -> dict[str, float]:
        """For how many decibans each feature of a row speaks; 0 where its value is missing."""
        return {feature: self._weighed([term]).evidence[0].decibans for feature, term in self._terms(row).items()}

    def decibans(self, row: Any) -> float:
        """The sum of the prior and of a row's points."""
        return self._weighed(list(self._terms(row).values())).decibans

    def _terms(self, row: Any) -> dict[str, Term]:
        batch = self._read(row)
        each = {
            feature: self.model.log_likelihood(batch, feature)[0] for feature in self.scales if feature in batch.names
        }
        nothing = np.zeros(len(self.model.classes))
        return {feature: Term(feature, 0, each.get(feature, nothing)) for feature in self.scales}

    def _read(self, row: Any) -> Batch:
        """One row, under the model's names."""
        if isinstance(row, (list, tuple, np.ndarray)) and np.ndim(row) == 1 and not isinstance(row[0], Mapping):
            row = [list(row)]
        batches = list(read(row))
        if sum(batch.n_rows for batch in batches) != 1:
            raise errors.not_one_row(sum(batch.n_rows for batch in batches))
        schema = self.model.schema
        if batches[0].named and schema.named:
            return batches[0]
        if len(batches[0].names) != len(schema.columns):
            raise errors.wrong_width(len(batches[0].names), len(schema.columns))
        return batches[0].renamed(schema.columns)

    def probability(self, decibans: Any) -> Any:
        """What a sum of decibans means: P(label | row), or among more than two classes P(label | row, and one of the two)."""
        odds = np.asarray(decibans, dtype=np.float64) / DECIBANS
        if self.model.calibration is None or len(self.model.classes) > 2:
            return np.exp(-np.logaddexp(0.0, -odds))
        c = self.model.classes.index(self.label)
        scores = np.zeros((odds.size, 2))
        scores[:, c], scores[:, 1 - c] = np.minimum(odds.ravel(), 0.0), np.minimum(-odds.ravel(), 0.0)
        return self.model.calibration.apply(scores)[:, c].reshape(odds.shape)

    # The picture

    def _draw(self, ax: Any) -> None:
        shown = sorted(self.scales.values(), key=lambda scale: -scale.range)[: self.most]
        heights = [LANE, *(CURVE if scale.numeric else LANE for scale in shown), 1.5 * LANE]
        ax = self._begin(ax, WIDTH, 0.9 + 0.44 * sum(heights))
        batch = None if self.row is None else self._read(self.row)
        points = {} if batch is None else self.points(batch)
        low, high = self._ends(shown, points)
        middles = -np.cumsum(heights) + np.array(heights) / 2
        self._points(ax, np.array([self.prior]), middles[0], [signed(self.prior)], np.ones(1), (low, high))
        if batch is not None:
            self._mark(ax, self.prior, middles[0], low, high)
        labels = ["prior"]
        for scale, middle in zip(shown, middles[1:-1], strict=True):
            value = (
                None
                if batch is None or scale.feature not in batch.names
                else next(iter(batch.head(scale.feature, 1)), None)
            )
            labels.append(name(scale.feature) if batch is None else f"{name(scale.feature)} = {name(value, 18)}")
            if scale.numeric:
                self._curve(ax, scale, middle, low, high)
            else:
                self._points(ax, scale.decibans, middle, scale.names, scale.rows, (low, high))
            if batch is not None and (value is not None or points[scale.feature] != 0):
                height = self._height(scale, value, middle) if scale.numeric else middle
                self._mark(ax, points[scale.feature], height, low, high)
        self._sum(ax, middles[-1], low, high, None if batch is None else self.decibans(batch))
        edges = -np.cumsum(heights)
        for edge in edges[:-1]:
            ax.axhline(edge, color=FAINT, linewidth=0.5)
        ax.plot([0.0, 0.0], [0.0, edges[-2]], color=FAINT, linewidth=1.0, zorder=0)
        ax.set_ylim(edges[-1], 0.0)
        self._frame(ax, middles, [*labels, "sum"], low, high)
        self._title(self._what(shown))

    def _what(self, shown: Sequence[Scale]) -> str:
        parts = [f"Nomogram: {name(self.label)} against {name(self.against)}"]
        if any(scale.numeric for scale in shown):
            parts.append("of a curve, the height is the value")
        if len(shown) < len(self.scales):
            parts.append(f"{len(shown)} features of {len(self.scales)}, those that tell most")
        return "; ".join(parts)

    def _frame(self, ax: Any, middles: Real, labels: list[str], low: float, high: float) -> None:
        ax.set_yticks(middles, labels)
        ax.tick_params(axis="y", length=0)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        ax.set_xlim(low, high)
        for side in ("left", "bottom", "right"):
            ax.spines[side].set_visible(False)
        ax.spines["top"].set_visible(True)
        label, other = name(self.label), name(self.against)
        ax.set_xlabel(f"decibans: to the right for {label}, to the left for {other}")

    def _ends(self, shown: Sequence[Scale], points: Mapping[str, float]) -> tuple[float, float]:
        """Where the picture begins and ends, in decibans."""
        every = np.concatenate([[0.0, self.prior], *(scale.decibans for scale in shown), list(points.values())])
        every = np.clip(every, -self.limit, self.limit)
        room = 0.06 * float(np.ptp(every)) or 1.0
        return float(every.min()) - room, float(every.max()) + room

    def _points(
        self, ax: Any, decibans: Real, middle: float, called: Sequence[str], rows: Real, ends: tuple[float, float]
    ) -> None:
        """A line with a tick for each value; names above and below, the most frequent first, where there is room."""
        low, high = ends
        places = np.clip(decibans, low, high)
        ax.plot([places.min(), places.max()], [middle, middle], color="black", linewidth=0.8)
        ax.plot(places, np.full(len(places), middle), "|", color="black", markersize=6)
        letter = (high - low) / (WIDTH - 2.2) * LETTER
        taken: dict[int, list[tuple[float, float]]] = {1: [], -1: []}
        first = {int(places.argmin()), int(places.argmax())}
        order = sorted(range(len(places)), key=lambda k: (k not in first, -rows[k]))
        for k in order:
            half = letter * (len(called[k]) + 1) / 2
            centre = float(np.clip(places[k], low + half, high - half))
            side = next(
                (s for s in (1, -1) if all(centre + half <= a or b <= centre - half for a, b in taken[s])), None
            )
            if side is None:
                continue
            taken[side].append((centre - half, centre + half))
            at = {"va": "bottom" if side > 0 else "top", "ha": "center", "fontsize": 7.5}
            ax.text(centre, middle + 0.12 * side, called[k] + ("" if np.isfinite(decibans[k]) else " (∞)"), **at)

    def _height(self, scale: Scale, value: Any, middle: float) -> Any:
        """How high a number lies in its lane."""
        low, high = scale.values[0], scale.values[-1]
        share = (np.asarray(value, dtype=np.float64) - low) / (high - low)
        return middle + 0.8 * CURVE * (np.clip(share, 0.0, 1.0) - 0.5)

    def _curve(self, ax: Any, scale: Scale, middle: float, low: float, high: float) -> None:
        """Decibans across, the value itself upwards, with some of the values beside the curve."""
        ax.plot(scale.decibans, self._height(scale, scale.values, middle), color=FOR, linewidth=1.4)
        ticks = library().ticker.MaxNLocator(4).tick_values(scale.values[0], scale.values[-1])
        ticks = ticks[(ticks >= scale.values[0]) & (ticks <= scale.values[-1])]
        across = np.interp(ticks, scale.values, scale.decibans)
        step = (scale.values[-1] - scale.values[0]) / STEPS
        for tick, x in zip(ticks, across, strict=True):
            if low <= x <= high:
                y = float(self._height(scale, tick, middle))
                ax.plot([x], [y], ".", color=FOR, markersize=4)
                rises = (
                    np.interp(tick + step, scale.values, scale.decibans) >= x
                )  # the label goes where the curve does not
                beside = {
                    "textcoords": "offset points",
                    "va": "top" if rises else "bottom",
                    "ha": "left",
                    "fontsize": 7,
                }
                ax.annotate(f"{tick:,.6g}", (x, y), xytext=(2, -1 if rises else 1), **beside)

    def _mark(self, ax: Any, decibans: float, height: float, low: float, high: float) -> None:
        """The row's own value; an arrow where it lies outside."""
        sign = "o" if low <= decibans <= high else ">" if decibans > high else "<"
        place = float(np.clip(decibans, low, high))
        ax.plot([place], [height], sign, color=AGAINST, markersize=7, zorder=4, clip_on=False, markeredgecolor="white")

    def _sum(self, ax: Any, middle: float, low: float, high: float, total: float | None) -> None:
        """The sum's own scale: decibans above the line, the probability they mean below."""
        reach = FARTHEST_SUM
        inner = low + 0.03 * (high - low), high - 0.03 * (high - low)

        def place(decibans: Any) -> Any:
            return np.interp(decibans, [-reach, reach], inner)

        ax.plot(inner, [middle, middle], color="black", linewidth=1.2)
        tick = {"color": "black", "linewidth": 0.8}
        for decibans in np.arange(-reach, reach + 1, 10.0):
            ax.plot([place(decibans)] * 2, [middle, middle + 0.12], **tick)
            ax.text(
                place(decibans),
                middle + 0.16,
                f"{decibans:+.0f}".replace("-", "−").replace("+0", "0"),
                ha="center",
                va="bottom",
                fontsize=7.5,
            )
        sums = np.linspace(-reach, reach, 8_001)
        reached = np.maximum.accumulate(np.asarray(self.probability(sums)))
        last = -np.inf
        for share in PROBABILITIES:
            if not reached[0] - 1e-12 <= share <= reached[-1] + 1e-12:
                continue
            x = float(place(sums[min(int(np.searchsorted(reached, share)), len(sums) - 1)]))
            ax.plot([x, x], [middle - 0.12, middle], **tick)
            text = f"{100 * share:.6g}%"
            half = (high - low) / (WIDTH - 2.2) * LETTER * (len(text) + 0.5) / 2
            if x - half >= last:
                ax.text(x, middle - 0.16, text, ha="center", va="top", fontsize=7.5)
                last = x + half
        if total is not None:
            self._mark(ax, float(place(np.clip(total, -reach, reach))), middle, low, high)
            said = f"{signed(total)} decibans: {self._meaning} {percent(float(self.probability(total)))}"
        else:
            said = f"sum in decibans, and below it {self._meaning}"
        ax.text((low + high) / 2, middle - 0.52, said, ha="center", va="top", fontsize=8)

    @property
    def _meaning(self) -> str:
        label = name(self.label)
        if len(self.model.classes) == 2:
            return f"P({label})"
        before = ", before calibration" if self.model.calibration is not None else ""
        return f"P({label} | {label} or {name(self.against)}){before}"
