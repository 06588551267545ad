"""Charts as SVG within a page: no script; colours are classes, which the page's style gives for light and for dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from banbury.arrays import Real
from banbury.labels import LabelEvaluation
from banbury.notebooks import safe
from banbury.plots.shapes import Shape, limits, strip_density
from banbury.quality import LearningCurve
from banbury.quality.calibration import Reliability

WIDTH = 360
HEIGHT = 270
LEFT = 50  # around what is drawn
RIGHT = 20
TOP = 12
BOTTOM = 44
UNTITLED = 18  # less, where the axis across has no title
SMALLEST = 3.0  # radii of marks
LARGEST = 9.0
STEPS = 4  # of an axis
MOST_MARKED = 6
ROW = 17  # the height of a bar, and the width of the names beside them
NAMES = 118
KINDS = ("one", "two")  # of curves
SHADES = 16  # that the eye tells apart, of strips and heat maps
HOVER_WIDTH = 9.0  # of what the pointer can rest on
Z = 1.96  # deviations that hold 95% of a normal distribution


@dataclass(frozen=True)
class Axis:
    """A stretch of numbers, and those that are marked on it."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    shown: Callable[[float], str]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a number is, from 0 to 1."""
        if self.logarithmic:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)


class Chart:
    """Two axes and what is drawn between them."""

    def __init__(self, what: str, x: Axis, y: Axis) -> None:
        self._what = what
        self._x = x
        self._y = y
        self._parts: list[str] = []

    def x(self, value: float) -> float:
        return LEFT + self._x.share(value) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - self._y.share(value) * (HEIGHT - TOP - BOTTOM)

    def line(self, xs: Sequence[float], ys: Sequence[float], kind: str) -> None:
        self._parts.append(_tag("polyline", f"line {kind}", points=self._points(xs, ys)))

    def band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], kind: str) -> None:
        points = self._points([*xs, *reversed(xs)], [*high, *reversed(low)])
        self._parts.append(_tag("polygon", f"band {kind}", points=points))

    def _points(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))

    def mark(self, x: float, y: float, radius: float, kind: str, title: str) -> None:
        self._parts.append(_tag("circle", f"mark {kind}", title, cx=self.x(x), cy=self.y(y), r=radius))

    def bar(self, start: float, end: float, height: float, title: str) -> None:
        left = self.x(start) + 1
        right = self.x(end) - 1
        top = self.y(height)
        height = HEIGHT - BOTTOM - top
        self._parts.append(_tag("rect", "column", title, x=left, y=top, width=right - left, height=height))

    def staircase(self, places: Sequence[float], heights: Sequence[float], kind: str) -> None:
        """A level line over each stretch between two places."""
        self._parts.append(_tag("path", f"line {kind}", d=f"M{self._stairs(places, heights)}"))

    def staircase_band(self, places: Sequence[float], low: Sequence[float], high: Sequence[float], kind: str) -> None:
        """The area between two staircases."""
        back = self._stairs(places[::-1], low[::-1])
        self._parts.append(_tag("path", f"band {kind}", d=f"M{self._stairs(places, high)}L{back}z"))

    def _stairs(self, places: Sequence[float], heights: Sequence[float]) -> str:
        """The path along stretches, whose heights are those of the stretches; what would not be seen to rise is left out."""
        ends = [_short_number(self.x(place)) for place in places]
        levels = [_short_number(self.y(height)) for height in heights]
        path = f"{ends[0]} {levels[0]}"
        for k, level in enumerate(levels):
            path += f"V{level}" * (k > 0 and level != levels[k - 1])
            path += f"H{ends[k + 1]}" * (k + 1 == len(levels) or levels[k + 1] != level)
        return path

    def strip(self, places: Sequence[float], shares: Sequence[float]) -> None:
        """A strip below the chart, the darker the more rows lie in a stretch."""
        top = HEIGHT - BOTTOM + 1
        by_shade: dict[int, str] = {}
        shades = [round(share * SHADES) for share in shares]
        for shade, first, last in _runs(shades):
            left = self.x(places[first])
            path = f"M{_short_number(left)} {top}h{_short_number(self.x(places[last]) - left)}v5H{_short_number(left)}z"
            by_shade[shade] = by_shade.get(shade, "") + path * (shade > 0)
        for shade, path in by_shade.items():
            if path:
                self._parts.append(f'<path class="strip" fill-opacity="{shade / SHADES:.2g}" d="{path}"/>')

    def hovers(self, places: Sequence[float], title: Callable[[int, int], str]) -> None:
        """What a pointer is told over stretches; narrow ones are joined. ``title`` is of those from one number to another."""
        first = 0
        parts = []
        for last in range(1, len(places)):
            left = self.x(places[first])
            width = self.x(places[last]) - left
            if width < HOVER_WIDTH and last + 1 < len(places):
                continue
            height = HEIGHT - BOTTOM - TOP
            path = f"M{_short_number(left)} {TOP}h{_short_number(width)}v{height}H{_short_number(left)}z"
            parts.append(f'<path d="{path}"><title>{safe(title(first, last))}</title></path>')
            first = last
        self._parts.append(f'<g class="hover">{"".join(parts)}</g>')

    def level(self, y: float) -> None:
        """A dashed level across the chart."""
        self._parts.append(_tag("line", "level", x1=LEFT, x2=WIDTH - RIGHT, y1=self.y(y), y2=self.y(y)))

    def whisker(self, x: float, low: float, high: float, kind: str) -> None:
        at = self.x(x)
        self._parts.append(_tag("line", f"whisker {kind}", x1=at, x2=at, y1=self.y(low), y2=self.y(high)))

    def __str__(self) -> str:
        height = HEIGHT if self._x.title else HEIGHT - UNTITLED
        head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{safe(self._what)}">'
        return f"{head}{''.join(self._frame())}{''.join(self._parts)}</svg>"

    def _frame(self) -> Iterator[str]:
        bottom = HEIGHT - BOTTOM
        right = WIDTH - RIGHT
        for tick in self._y.ticks:
            at = self.y(tick)
            yield _tag("line", "grid", x1=LEFT, x2=right, y1=at, y2=at)
            yield f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{safe(self._y.shown(tick))}</text>'
        for tick in self._x.ticks:
            at = self.x(tick)
            yield _tag("line", "grid", x1=at, x2=at, y1=TOP, y2=bottom)
            yield f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{safe(self._x.shown(tick))}</text>'
        middle_x = (LEFT + right) / 2
        middle_y = (TOP + bottom) / 2
        if self._x.title:
            yield f'<text class="title" x="{middle_x}" y="{HEIGHT - 6}" text-anchor="middle">{safe(self._x.title)}</text>'
        turned = f"translate(11 {middle_y}) rotate(-90)"
        yield f'<text class="title" transform="{turned}" text-anchor="middle">{safe(self._y.title)}</text>'


def _short_number(number: float) -> str:
    """A place, to a tenth."""
    return f"{number:.1f}".removesuffix(".0").replace("-0.", "-.").removeprefix("0") or "0"


def _runs(values: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Each run of equal values: the value, where it begins, and where the next one does."""
    first = 0
    for k in range(1, len(values) + 1):
        if k == len(values) or values[k] != values[first]:
            yield values[first], first, k
            first = k


def _tag(name: str, kind: str, title: str | None = None, **places: float | str) -> str:
    """A shape, its places to a tenth, and what a pointer that rests on it is told."""
    attributes = "".join(f' {k}="{_short_number(v) if isinstance(v, float) else v}"' for k, v in places.items())
    start = f'<{name} class="{kind}"{attributes}'
    return f"{start}/>" if title is None else f"{start}><title>{safe(title)}</title></{name}>"


# Shapes ---------------------------------------------------------------------------------------------------------------


def shape(drawn: Shape) -> str:
    """The evidence of a column: steps above a strip of rows, bars, or a heat map."""
    if drawn.kind == "numbers":
        return _steps(drawn)
    return _heat_map(drawn) if drawn.kind == "pairs" else _bars(drawn)


def importance(drawn: Shape) -> str:
    return f"{drawn.importance:.1f} on average"


def _decibans_in_words(decibans: float) -> str:
    return f"{decibans:+.1f} decibans".replace("-", "−")


def _steps(drawn: Shape) -> str:
    places, marked = drawn.places()
    low, high = limits(drawn)
    y = linear("decibans", low, high, lambda tick: f"{tick:+.3g}".replace("-", "−") if tick else "0")
    named = dict(marked)
    x = Axis("", 0.0, 1.0, [place for place, _ in marked], named.__getitem__)
    chart = Chart(f"{drawn.feature}: evidence in decibans", x, y)
    stretches = places.tolist()
    decibans = drawn.decibans
    if drawn.error is not None:
        edges = (decibans - drawn.error, decibans + drawn.error)
        below, above = (np.clip(edge, y.low, y.high).tolist() for edge in edges)
        chart.staircase_band(stretches, below, above, "one")
    chart.level(0.0)
    chart.staircase(stretches, decibans.tolist(), "one")
    chart.strip(stretches, strip_density(drawn, places).tolist())
    ends = drawn.ends if drawn.ends is not None else places

    def title(first: int, last: int) -> str:
        low = float(decibans[first:last].min())
        high = float(decibans[first:last].max())
        decibans_text = (
            _decibans_in_words(high)
            if f"{low:.1f}" == f"{high:.1f}"
            else f"{_decibans_in_words(low).removesuffix(' decibans')} to {_decibans_in_words(high)}"
        )
        return f"{ends[first]:,.6g} to {ends[last]:,.6g}: {decibans_text}"

    chart.hovers(stretches, title)
    if drawn.missing is not None:
        chart.mark(
            1.0,
            float(np.clip(drawn.missing, y.low, y.high)),
            SMALLEST + 1,
            "two",
            f"missing: {_decibans_in_words(drawn.missing)}",
        )
    return str(chart)


def _bars(drawn: Shape) -> str:
    """One bar for each value, its name to the left; the axis is where evidence is 0."""
    low, high = limits(drawn)
    low = min(low, 0.0)
    high = max(high, 0.0)
    top = 6
    size = ROW
    height = top + size * len(drawn.decibans) + 26
    room = WIDTH - NAMES - 14

    def at(decibans: float) -> float:
        return NAMES + room * (min(max(decibans, low), high) - low) / ((high - low) or 1.0)

    parts = [_tag("line", "grid", x1=at(0.0), x2=at(0.0), y1=top, y2=height - 24)]
    for k, (text, decibans) in enumerate(zip(drawn.names[0], drawn.decibans.tolist(), strict=True)):
        y = top + size * k
        ends = sorted((at(0.0), at(decibans)))
        kind = "one" if decibans >= 0 else "two"
        title = f"{text}: {_decibans_in_words(decibans)}"
        parts.append(
            _tag(
                "rect", f"bar {kind}", title, x=ends[0], y=y + 2.0, width=max(ends[1] - ends[0], 0.8), height=size - 5.0
            )
        )
        if drawn.error is not None:
            error = float(drawn.error[k])
            parts.append(
                _tag("line", "error", x1=at(decibans - error), x2=at(decibans + error), y1=y + 7.0, y2=y + 7.0)
            )
        parts.append(f'<text x="{NAMES - 6}" y="{y + 11}" text-anchor="end">{safe(_short(text))}</text>')
    for tick in linear("", low, high, percent).ticks:
        if low <= tick <= high:
            text = f"{tick:+.3g}".replace("-", "−") if tick else "0"
            parts.append(f'<text x="{at(tick):.1f}" y="{height - 10}" text-anchor="middle">{text}</text>')
    head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{safe(drawn.feature)}: evidence in decibans">'
    return f"{head}{''.join(parts)}</svg>"


def _heat_map(drawn: Shape) -> str:
    """A cell for each two values, the deeper the more it says."""
    down, across = drawn.names
    left = 118
    width = WIDTH - 118 - 8
    wide = width / len(across)
    high = min(ROW + 4, 190 / len(down))
    bottom = 6 + high * len(down)
    most = max(float(np.abs(drawn.decibans).max(initial=0.0)), 1e-9)
    parts = []
    names = []
    cells: dict[tuple[str, int], str] = {}
    for i, first in enumerate(down):
        y = 6 + high * i
        names.append(f'<text x="{left - 5}" y="{y + high / 2 + 3:.1f}">{safe(_short(first))}</text>')
        for j, second in enumerate(across):
            decibans = float(drawn.decibans[i, j])
            shade = round(abs(decibans) / most * SHADES)
            if not shade:
                continue
            start = f"{_short_number(left + wide * j)} {_short_number(y)}"
            path = f"M{start}h{_short_number(wide - 1)}v{_short_number(high - 1)}h-{_short_number(wide - 1)}z"
            title = safe(f"{first} with {second}: {_decibans_in_words(decibans).removesuffix(' decibans')}")
            group = "one" if decibans >= 0 else "two", shade
            cells[group] = cells.get(group, "") + f'<path d="{path}"><title>{title}</title></path>'
    for (kind, shade), paths in sorted(cells.items()):
        parts.append(f'<g class="cell {kind}" fill-opacity="{shade / SHADES:.2g}">{paths}</g>')
    for j, second in enumerate(across):
        turned = f"translate({left + wide * (j + 0.5) + 3:.1f} {bottom + 5:.1f}) rotate(-90)"
        names.append(f'<text transform="{turned}">{safe(_short(second))}</text>')
    parts.append(f'<g class="small" text-anchor="end">{"".join(names)}</g>')
    head = f'<svg viewBox="0 0 {WIDTH} {bottom + 96:.0f}" role="img" aria-label="{safe(drawn.feature)}: evidence in decibans">'
    return f"{head}{''.join(parts)}</svg>"


def _short(text: str) -> str:
    return text if len(text) <= 16 else f"{text[:15]}…"


# Scales ---------------------------------------------------------------------------------------------------------------


def percent(share: float) -> str:
    return f"{share:.4g}%"


def linear(title: str, low: float, high: float, shown: Callable[[float], str], least: float = 0.0) -> Axis:
    """An axis that begins and ends at round numbers, of about four steps; ``least`` is how long it is at least."""
    if high - low < least:
        low = max(high - least, 0.0)
        high = low + least
    shortest_step = (high - low) / STEPS
    power = 10.0 ** floor(log10(shortest_step))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= shortest_step * (1 - 1e-9))
    first = floor(low / step + 1e-9)
    last = ceil(high / step - 1e-9)
    return Axis(title, first * step, last * step, [k * step for k in range(first, last + 1)], shown)


def logarithmic(title: str, low: float, high: float) -> Axis:
    """An axis on which equal factors are equally long; marked at round numbers."""
    high = max(high, low * 1.1)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    marked: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5)):
        inside = _within([step * 10.0**power for power in powers for step in steps], low, high)
        if len(inside) <= MOST_MARKED:
            marked = inside
    if len(marked) < 3:
        marked = [tick for tick in _within(linear("", low, high, _rows).ticks, low, high) if tick == round(tick)]
    return Axis(title, low, high, marked or [low], _rows, logarithmic=True)


def _within(ticks: Sequence[float], low: float, high: float) -> list[float]:
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def _rows(n: float) -> str:
    return f"{n / 1000:,.4g}k" if n >= 10_000 else f"{n:,.6g}"


def _shares(title: str, half: bool = False) -> Axis:
    """Shares from 0 to 1; the upper half of them where no other occur."""
    ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0] if half else [0.0, 0.25, 0.5, 0.75, 1.0]
    return Axis(title, ticks[0], 1.0, ticks, lambda share: percent(share * 100))


# The charts -----------------------------------------------------------------------------------------------------------


def calibration(curves: Mapping[str, Reliability]) -> str:
    """How often answers are right over how sure they were; a mark's area grows with its rows."""
    sure = _shares("confidence of the prediction", min(curve.start.min() for curve in curves.values()) >= 0.5)
    chart = Chart("Calibration: accuracy over confidence", sure, _shares("accuracy"))
    chart.line([sure.low, 1.0], [sure.low, 1.0], "ideal")
    for kind, (name, curve) in zip(KINDS, curves.items(), strict=False):
        rows = np.maximum(curve.rows, 1e-9)  # whiskers are Wilson's intervals of 95%
        centre = (curve.accuracy + Z**2 / (2 * rows)) / (1 + Z**2 / rows)
        half = Z / (1 + Z**2 / rows) * np.sqrt(curve.accuracy * (1 - curve.accuracy) / rows + Z**2 / (4 * rows**2))
        for confidence, low, high in zip(curve.confidence, centre - half, centre + half, strict=True):
            chart.whisker(confidence, max(low, 0.0), min(high, 1.0), kind)
        chart.line(curve.confidence.tolist(), curve.accuracy.tolist(), kind)
        radii = SMALLEST + (LARGEST - SMALLEST) * np.sqrt(curve.rows / curve.rows.max())
        for confidence, accuracy, n, radius in zip(curve.confidence, curve.accuracy, curve.rows, radii, strict=True):
            chart.mark(
                confidence,
                accuracy,
                radius,
                kind,
                f"{name}: {n:,.6g} predictions, {confidence:.1%} confident, {accuracy:.1%} correct",
            )
    return str(chart)


def confidence(curve: Reliability) -> str:
    """Confidence of the predictions: the share of rows in each bin."""
    shares = (100.0 * curve.rows / curve.rows.sum()).tolist()
    sure = _shares("confidence of the prediction", curve.start.min() >= 0.5)
    chart = Chart("Confidence of the predictions", sure, linear("share of the rows", 0.0, max(shares), percent))
    for start, share, rows in zip(curve.start.tolist(), shares, curve.rows, strict=True):
        end = start + 1 / curve.bins
        chart.bar(start, end, share, f"{start:.0%} to {end:.0%} confident: {rows:,.6g} rows, {share:.1f}%")
    return str(chart)


def labels(evaluation: LabelEvaluation) -> str:
    """F1 of every label that some row has over how many have it, and micro F1 across."""
    per = evaluation.per_label
    there = np.flatnonzero(per.rows > 0)
    x = logarithmic("rows that have the label", float(per.rows[there].min()), float(per.rows[there].max()))
    y = Axis("F1", 0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0], "{:g}".format)
    chart = Chart("F1 of each label by its number of rows", x, y)
    chart.level(evaluation.micro_f1)
    for k in there.tolist():
        title = f"{evaluation.labels[k]}: F1 {per.f1[k]:.3f}, rows: {per.rows[k]:,.6g}"
        chart.mark(float(per.rows[k]), float(per.f1[k]), SMALLEST + 1, "one", title)
    return str(chart)


def accuracy_curve(curve: LearningCurve) -> str:
    """The accuracy after so many rows, its standard error, and the majority's where that is near."""
    means = 100 * curve.mean_accuracy
    error = curve.standard_error
    spread = np.zeros_like(means) if error is None else 100 * error
    low = max(float((means - spread).min()), 0.0)
    high = min(float((means + spread).max()), 100.0)
    level = 100 * curve.majority if majority_is_near(curve) else None
    y = linear("accuracy", low if level is None else min(low, level), high, percent, 1.0)
    return _draw_curve("accuracy", curve, y, means, spread, "{:.2f}%", level)


def majority_is_near(curve: LearningCurve) -> bool:
    """Whether the accuracy of the most frequent class can be drawn without flattening the curve."""
    low = float(curve.mean_accuracy.min())
    high = float(curve.mean_accuracy.max())
    return low - curve.majority <= 2 * max(high - low, 0.02)


def log_loss_curve(curve: LearningCurve) -> str:
    """The log loss after so many rows."""
    means = curve.mean_log_loss
    spread = curve.log_loss.std(axis=0, ddof=1) / len(curve.log_loss) ** 0.5 if len(curve.log_loss) > 1 else 0 * means
    low = max(0.0, float((means - spread).min()))
    high = float((means + spread).max())
    return _draw_curve("log loss", curve, linear("log loss", low, high, "{:.4g}".format, 0.01), means, spread, "{:.4f}")


def _draw_curve(
    what: str, curve: LearningCurve, y: Axis, means: Real, spread: Real, shown: str, level: float | None = None
) -> str:
    """A measure and its standard error over the rows that were learned from."""
    sizes = curve.sizes.tolist()
    x = logarithmic("training rows", float(sizes[0]), float(sizes[-1]))
    chart = Chart(f"Learning curve: {what} by number of training rows", x, y)
    if level is not None:
        chart.level(level)
    low, high = (np.clip(ends, y.low, y.high).tolist() for ends in (means - spread, means + spread))
    chart.band(sizes, low, high, "one")
    chart.line(sizes, means.tolist(), "one")
    for size, mean, error in zip(sizes, means.tolist(), spread.tolist(), strict=True):
        chart.mark(size, mean, SMALLEST, "one", f"{size:,} rows: {shown.format(mean)} ± {shown.format(error)}")
    return str(chart)
