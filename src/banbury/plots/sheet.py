"""Sheet: the lanes of a nomogram: values along lines and curves, the marks of a row, and the scale of sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.plots.display import AGAINST, FAINT, FOR, library

FARTHEST_SUM = 40.0  # decibans: odds of ten thousand to one
PROBABILITIES = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)
WIDTH, LETTER = 7.6, 0.062  # of the sheet and of a letter, in inches
LANE, CURVE = 1.0, 1.7  # heights of the lanes of categories and of numbers
SMALL = 7.5  # points of a letter


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
        """How much the feature can tell, in decibans."""
        return float(np.ptp(self.decibans)) if np.isfinite(self.decibans).all() else np.inf

    @property
    def height(self) -> float:
        return CURVE if self.numeric else LANE

    def heights(self, values: Any, middle: float) -> Any:
        """How high numbers lie in their lane."""
        low, high = self.values[0], self.values[-1]
        share = (np.asarray(values, dtype=np.float64) - low) / (high - low)
        return middle + 0.8 * CURVE * (np.clip(share, 0.0, 1.0) - 0.5)


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

    def line(self, decibans: Real, names: Sequence[str], rows: Real, middle: float) -> None:
        """A tick for each value; names above and below, the ends and the most frequent first, where there is room."""
        places = np.clip(decibans, self.low, self.high)
        self.ax.plot([places.min(), places.max()], [middle, middle], color="black", linewidth=0.8)
        self.ax.plot(places, np.full(len(places), middle), "|", color="black", markersize=6)
        ends = {int(places.argmin()), int(places.argmax())}
        taken: dict[int, list[tuple[float, float]]] = {1: [], -1: []}
        for k in sorted(range(len(places)), key=lambda k: (k not in ends, -rows[k])):
            text = names[k] if np.isfinite(decibans[k]) else f"{names[k]} (∞)"
            half = self._letter * (len(text) + 1) / 2
            centre = float(np.clip(places[k], self.low + half, self.high - half))
            free = [s for s, spans in taken.items() if all(centre + half <= a or b <= centre - half for a, b in spans)]
            if free:
                taken[free[0]].append((centre - half, centre + half))
                above = "bottom" if free[0] > 0 else "top"
                self.ax.text(centre, middle + 0.12 * free[0], text, ha="center", va=above, fontsize=SMALL)

    def curve(self, scale: Scale, middle: float) -> None:
        """Decibans across, the value itself upwards, with some of the values beside the curve, where it does not go."""
        values, decibans = scale.values, scale.decibans
        self.ax.plot(decibans, scale.heights(values, middle), color=FOR, linewidth=1.4)
        ticks = library().ticker.MaxNLocator(4).tick_values(values[0], values[-1])
        ticks = ticks[(ticks >= values[0]) & (ticks <= values[-1])]
        across = np.interp(ticks, values, decibans)
        beyond = np.interp(ticks + (values[-1] - values[0]) / len(values), values, decibans)
        for tick, x, onward in zip(ticks, across, beyond, strict=True):
            if self.low <= x <= self.high:
                y = float(scale.heights(tick, middle))
                self.ax.plot([x], [y], ".", color=FOR, markersize=4)
                side = {"va": "top", "xytext": (2, -1)} if onward >= x else {"va": "bottom", "xytext": (2, 1)}
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
        ends = self._of_sum([-FARTHEST_SUM, FARTHEST_SUM])
        self.ax.plot(ends, [middle, middle], color="black", linewidth=1.2)
        for total in np.arange(-FARTHEST_SUM, FARTHEST_SUM + 1.0, 10.0):
            text = f"{total:+.0f}".replace("-", "−") if total else "0"
            self._tick(float(self._of_sum(total)), middle, 1, text)
        totals = np.linspace(-FARTHEST_SUM, FARTHEST_SUM, 8_001)
        reached = np.asarray(probability(totals))
        last = -np.inf
        for share in PROBABILITIES:
            if reached[0] - 1e-12 <= share <= reached[-1] + 1e-12:
                place = float(self._of_sum(totals[min(int(np.searchsorted(reached, share)), len(totals) - 1)]))
                text = f"{100 * share:.6g}%"
                half = self._letter * (len(text) + 0.5) / 2
                fits = place - half >= last
                self._tick(place, middle, -1, text if fits else "")
                last = place + half if fits else last

    def _tick(self, place: float, middle: float, side: int, text: str) -> None:
        self.ax.plot([place, place], [middle, middle + 0.12 * side], color="black", linewidth=0.8)
        above = "bottom" if side > 0 else "top"
        self.ax.text(place, middle + 0.16 * side, text, ha="center", va=above, fontsize=SMALL)

    def sum_mark(self, total: float, middle: float) -> None:
        outside = np.inf if total > FARTHEST_SUM else -np.inf if total < -FARTHEST_SUM else 0.0
        self.mark(float(self._of_sum(total)) + outside, middle)
