"""Charts as SVG for a page, without scripts. Colours are CSS classes, which the page defines for light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10

import numpy as np

from banbury.arrays import Real
from banbury.labels import LabelEvaluation
from banbury.notebooks import safe
from banbury.plots.shape import Shape, limits, strip_density
from banbury.quality import LearningCurve
from banbury.quality.calibration import Reliability
from banbury.reports.elements import CURVE_CLASSES, shorten

CHART_WIDTH = 360  # of a chart, in pixels, as all sizes here
CHART_HEIGHT = 270
LEFT_MARGIN = 50
RIGHT_MARGIN = 20
TOP_MARGIN = 12
BOTTOM_MARGIN = 44
TITLE_HEIGHT = 18  # height saved if the horizontal axis has no title
SMALLEST_RADIUS = 3.0  # of marks
LARGEST_RADIUS = 9.0
N_INTERVALS = 4  # about so many on an axis
MOST_LOGARITHMIC_TICKS = 6  # ticks of a logarithmic axis
BAR_ROW_HEIGHT = 17  # of a bar with its name
NAME_WIDTH = 118  # of the names beside bars
N_SHADES = 16  # distinguishable shades of strips and heat maps
MIN_HOVER_WIDTH = 9.0  # narrowest area with a tooltip
NORMAL_QUANTILE = 1.96  # standard deviations that contain 95% of a normal distribution


@dataclass(frozen=True)
class Axis:
    """An axis from ``low`` to ``high`` with the numbers ``ticks`` marked on it. ``format_tick``: formats a tick."""

    title: str  # may be empty
    low: float
    high: float
    ticks: Sequence[float]
    format_tick: Callable[[float], str]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Returns the position of ``value``, a number, along the axis, from 0 to 1."""
        if self.logarithmic:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)


@dataclass
class Chart:
    """A chart with two axes. ``_description`` is for screen readers; ``_x`` and ``_y`` are its axes."""

    _description: str
    _x: Axis
    _y: Axis
    _elements: list[str] = field(default_factory=list)  # what was drawn, as SVG, from the back to the front

    def x(self, value: float) -> float:
        """Returns the horizontal position of a value in pixels, from the left. ``self._x`` is the horizontal axis."""
        return LEFT_MARGIN + self._x.share(value) * (CHART_WIDTH - LEFT_MARGIN - RIGHT_MARGIN)

    def y(self, value: float) -> float:
        """Returns the vertical position of a value in pixels, from the top. ``self._y`` is the vertical axis."""
        return CHART_HEIGHT - BOTTOM_MARGIN - self._y.share(value) * (CHART_HEIGHT - TOP_MARGIN - BOTTOM_MARGIN)

    def draw_line(self, xs: Sequence[float], ys: Sequence[float], css_class: str) -> None:
        """Draws a line through the points with the values ``xs`` and ``ys``."""
        self._elements.append(_tag("polyline", f"line {css_class}", points=self._points(xs, ys)))

    def draw_band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], css_class: str) -> None:
        """Draws the area between two lines. ``low``, ``high``: their heights at each of ``xs``."""
        points = self._points([*xs, *reversed(xs)], [*high, *reversed(low)])
        self._elements.append(_tag("polygon", f"band {css_class}", points=points))

    def _points(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        """Returns the points with the values ``xs`` and ``ys`` as SVG writes them: pairs of pixels."""
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))

    def draw_mark(self, x: float, y: float, radius: float, css_class: str, title: str) -> None:
        """Draws a dot at (x, y), with ``title`` as its tooltip. ``radius``: in pixels."""
        self._elements.append(_tag("circle", f"mark {css_class}", title, cx=self.x(x), cy=self.y(y), r=radius))

    def draw_bar(self, start: float, end: float, value: float, title: str) -> None:
        """Draws a bar from ``start`` to ``end`` on the horizontal axis, as high as ``value``, with a tooltip."""
        left_edge = self.x(start) + 1  # a pixel of space on either side
        right_edge = self.x(end) - 1
        top = self.y(value)
        bar_height = CHART_HEIGHT - BOTTOM_MARGIN - top
        self._elements.append(
            _tag("rect", "column", title, x=left_edge, y=top, width=right_edge - left_edge, height=bar_height)
        )

    def draw_staircase(self, interval_ends: Sequence[float], heights: Sequence[float], css_class: str) -> None:
        """Draws a level line over each interval between two of ``interval_ends``. ``heights``: one per interval."""
        self._elements.append(_tag("path", f"line {css_class}", d=f"M{self._staircase_path(interval_ends, heights)}"))

    def draw_staircase_band(
        self, interval_ends: Sequence[float], low: Sequence[float], high: Sequence[float], css_class: str
    ) -> None:
        """Draws the area between two staircases. ``low``, ``high``: their heights, one per interval."""
        # Backwards.
        lower_path = self._staircase_path(interval_ends[::-1], low[::-1])
        self._elements.append(
            _tag("path", f"band {css_class}", d=f"M{self._staircase_path(interval_ends, high)}L{lower_path}z")
        )

    def _staircase_path(self, interval_ends: Sequence[float], heights: Sequence[float]) -> str:
        """Returns the SVG path of a staircase; invisible rises are left out. ``heights``: one per interval between two
        of ``interval_ends``.
        """
        x_positions = [_short_number(self.x(end)) for end in interval_ends]  # pixels as texts, as below
        y_positions = [_short_number(self.y(height)) for height in heights]
        path = f"{x_positions[0]} {y_positions[0]}"
        for i, level in enumerate(y_positions):
            path += f"V{level}" * (i > 0 and level != y_positions[i - 1])
            path += f"H{x_positions[i + 1]}" * (i + 1 == len(y_positions) or y_positions[i + 1] != level)
        return path

    def draw_strip(self, interval_ends: Sequence[float], shares: Sequence[float]) -> None:
        """Draws a strip below the chart that is darker where more rows lie. ``shares``: how dense they are, one per
        interval, from 0 to 1.
        """
        top = CHART_HEIGHT - BOTTOM_MARGIN + 1
        path_by_shade: dict[int, str] = {}  # SVG paths of the intervals of each shade
        shades = [round(share * N_SHADES) for share in shares]
        for shade, first_interval, end_interval in _runs_of_equal_values(shades):
            left = self.x(interval_ends[first_interval])
            width = _short_number(self.x(interval_ends[end_interval]) - left)
            # A rectangle, five pixels high.
            path = f"M{_short_number(left)} {top}h{width}v5H{_short_number(left)}z"
            path_by_shade[shade] = path_by_shade.get(shade, "") + path * (shade > 0)
        for shade, path in path_by_shade.items():
            if path:
                self._elements.append(f'<path class="strip" fill-opacity="{shade / N_SHADES:.2g}" d="{path}"/>')

    def add_tooltips(self, interval_ends: Sequence[float], title: Callable[[int, int], str]) -> None:
        """Adds tooltips over intervals, whose ends are ``interval_ends``; narrow ones are joined. ``title(first,
        last)`` is the text for the intervals numbered ``first`` to ``last`` − 1.
        """
        first_interval = 0  # of the next area
        areas = []  # the rectangles with tooltips, as SVG
        for end_interval in range(1, len(interval_ends)):
            left = self.x(interval_ends[first_interval])
            width = self.x(interval_ends[end_interval]) - left
            if width < MIN_HOVER_WIDTH and end_interval + 1 < len(interval_ends):
                continue
            height = CHART_HEIGHT - BOTTOM_MARGIN - TOP_MARGIN
            path = f"M{_short_number(left)} {TOP_MARGIN}h{_short_number(width)}v{height}H{_short_number(left)}z"
            areas.append(f'<path d="{path}"><title>{safe(title(first_interval, end_interval))}</title></path>')
            first_interval = end_interval
        self._elements.append(f'<g class="hover">{"".join(areas)}</g>')

    def draw_level(self, y: float) -> None:
        """Draws a dashed horizontal line at the value ``y``."""
        self._elements.append(
            _tag("line", "level", x1=LEFT_MARGIN, x2=CHART_WIDTH - RIGHT_MARGIN, y1=self.y(y), y2=self.y(y))
        )

    def draw_whisker(self, x: float, low: float, high: float, css_class: str) -> None:
        """Draws a vertical error bar at ``x``, from ``low`` to ``high``."""
        x_position = self.x(x)
        self._elements.append(
            _tag("line", f"whisker {css_class}", x1=x_position, x2=x_position, y1=self.y(low), y2=self.y(high))
        )

    def __str__(self) -> str:
        """Returns the chart as an SVG element."""
        height = CHART_HEIGHT if self._x.title else CHART_HEIGHT - TITLE_HEIGHT
        return (
            f'<svg viewBox="0 0 {CHART_WIDTH} {height}" role="img" aria-label="{safe(self._description)}">'
            f"{''.join(self._frame())}{''.join(self._elements)}</svg>"
        )

    def _frame(self) -> Iterator[str]:
        """Yields the grid, tick labels and titles of both axes as SVG elements."""
        bottom = CHART_HEIGHT - BOTTOM_MARGIN  # pixels from the top; all positions are in pixels
        right_edge = CHART_WIDTH - RIGHT_MARGIN
        for tick in self._y.ticks:
            position = self.y(tick)
            yield _tag("line", "grid", x1=LEFT_MARGIN, x2=right_edge, y1=position, y2=position)
            yield f'<text x="{LEFT_MARGIN - 6}" y="{position + 4:.1f}" text-anchor="end">{safe(self._y.format_tick(tick))}</text>'
        for tick in self._x.ticks:
            position = self.x(tick)
            yield _tag("line", "grid", x1=position, x2=position, y1=TOP_MARGIN, y2=bottom)
            yield f'<text x="{position:.1f}" y="{bottom + 18}" text-anchor="middle">{safe(self._x.format_tick(tick))}</text>'
        middle_x = (LEFT_MARGIN + right_edge) / 2
        middle_y = (TOP_MARGIN + bottom) / 2
        if self._x.title:
            yield f'<text class="title" x="{middle_x}" y="{CHART_HEIGHT - 6}" text-anchor="middle">{safe(self._x.title)}</text>'
        transform = f"translate(11 {middle_y}) rotate(-90)"  # upwards, beside the tick labels
        yield f'<text class="title" transform="{transform}" text-anchor="middle">{safe(self._y.title)}</text>'


def _short_number(number: float) -> str:
    """Returns a number rounded to one decimal as SVG writes it most briefly, such as ".5" for 0.5."""
    return f"{number:.1f}".removesuffix(".0").replace("-0.", "-.").removeprefix("0") or "0"


def _runs_of_equal_values(values: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yields each run of equal values: the value, the index where it begins, and the index after its end."""
    run_start = 0  # the index where the current run begins
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[run_start]:
            yield values[run_start], run_start, i
            run_start = i


def _tag(name: str, css_class: str, title: str | None = None, **numbers: float | str) -> str:
    """Returns an SVG element called ``name`` with a CSS class, a tooltip (``title``), and attributes by name
    (``numbers``), of which floats are rounded to a tenth.
    """
    attributes = "".join(
        f' {attribute}="{_short_number(value) if isinstance(value, float) else value}"'
        for attribute, value in numbers.items()
    )
    start = f'<{name} class="{css_class}"{attributes}'
    return f"{start}/>" if title is None else f"{start}><title>{safe(title)}</title></{name}>"


# Shapes ---------------------------------------------------------------------------------------------------------------


def draw_shape(feature_shape: Shape) -> str:
    """Returns ``feature_shape``, the evidence of a column, as a chart, an SVG element: steps above a strip of rows for
    numbers, a heat map for a pair, bars for values and words.
    """
    if feature_shape.kind == "numbers":
        return _draw_steps(feature_shape)
    return _draw_heat_map(feature_shape) if feature_shape.kind == "pairs" else _draw_bars(feature_shape)


def describe_importance(feature_shape: Shape) -> str:
    """Returns the mean absolute evidence of a column, in decibans, in words."""
    return f"{feature_shape.importance:.1f} on average"


def _decibans_in_words(decibans: float) -> str:
    """Returns decibans with a sign, in words."""
    return f"{decibans:+.1f} decibans".replace("-", "−")


def _draw_steps(feature_shape: Shape) -> str:
    """Returns the chart of a numeric column as SVG: decibans over its intervals, with error band, strip of rows and
    tooltips.
    """
    # The positions of the ends of intervals, from 0 to 1; and the ticks, pairs of position and text.
    positions, ticks = feature_shape.axis_positions()
    low, high = limits(feature_shape)  # in decibans
    y_axis = linear_axis("decibans", low, high, lambda tick: f"{tick:+.3g}".replace("-", "−") if tick else "0")
    label_by_position = dict(ticks)  # its own position is the value of a tick
    x_axis = Axis(
        "", low=0.0, high=1.0, ticks=[position for position, _ in ticks], format_tick=label_by_position.__getitem__
    )
    chart = Chart(f"{feature_shape.feature}: evidence in decibans", x_axis, y_axis)
    interval_ends = positions.tolist()
    decibans = feature_shape.decibans  # of each interval
    if feature_shape.error is not None:
        error_limits = (decibans - feature_shape.error, decibans + feature_shape.error)
        # One per interval.
        below, above = (np.clip(edge, y_axis.low, y_axis.high).tolist() for edge in error_limits)
        chart.draw_staircase_band(interval_ends, below, above, "one")
    chart.draw_level(y=0.0)
    chart.draw_staircase(interval_ends, decibans.tolist(), "one")
    chart.draw_strip(interval_ends, strip_density(feature_shape, positions).tolist())
    # The numbers at the ends of intervals, for tooltips.
    interval_values = feature_shape.ends if feature_shape.ends is not None else positions

    def title(first: int, last: int) -> str:
        """Returns the tooltip of the intervals numbered ``first`` to ``last`` − 1: their ends and their decibans."""
        low = float(decibans[first:last].min())
        high = float(decibans[first:last].max())
        decibans_text = (
            _decibans_in_words(high)
            if f"{low:.1f}" == f"{high:.1f}"
            else f"{_decibans_in_words(low).removesuffix(' decibans')} to {_decibans_in_words(high)}"
        )
        return f"{interval_values[first]:,.6g} to {interval_values[last]:,.6g}: {decibans_text}"

    chart.add_tooltips(interval_ends, title)
    if feature_shape.missing is not None:
        chart.draw_mark(
            1.0,
            float(np.clip(feature_shape.missing, y_axis.low, y_axis.high)),
            SMALLEST_RADIUS + 1,
            "two",
            f"missing: {_decibans_in_words(feature_shape.missing)}",
        )
    return str(chart)


def _draw_bars(feature_shape: Shape) -> str:
    """Returns the chart of a categorical column as SVG: a bar for each value, beginning at 0, with its name to the
    left.
    """
    low, high = limits(feature_shape)  # in decibans
    low = min(low, 0.0)
    high = max(high, 0.0)
    top_margin = 6  # pixels, as all sizes here
    row_height = BAR_ROW_HEIGHT
    height = top_margin + row_height * len(feature_shape.decibans) + 26
    plot_width = CHART_WIDTH - NAME_WIDTH - 14

    def x_of(decibans: float) -> float:
        """Returns the horizontal position of these decibans in pixels."""
        return NAME_WIDTH + plot_width * (min(max(decibans, low), high) - low) / ((high - low) or 1.0)

    # As SVG.
    elements = [_tag("line", "grid", x1=x_of(0.0), x2=x_of(0.0), y1=top_margin, y2=height - 24)]
    for i, (text, decibans) in enumerate(zip(feature_shape.names[0], feature_shape.decibans.tolist(), strict=True)):
        y = top_margin + row_height * i  # the top of the row
        bar_ends = sorted((x_of(0.0), x_of(decibans)))
        css_class = "one" if decibans >= 0 else "two"
        elements.append(
            _tag(
                "rect",
                f"bar {css_class}",
                f"{text}: {_decibans_in_words(decibans)}",
                x=bar_ends[0],
                y=y + 2.0,
                width=max(bar_ends[1] - bar_ends[0], 0.8),
                height=row_height - 5.0,
            )
        )
        if feature_shape.error is not None:
            error = float(feature_shape.error[i])
            elements.append(
                _tag("line", "error", x1=x_of(decibans - error), x2=x_of(decibans + error), y1=y + 7.0, y2=y + 7.0)
            )
        elements.append(f'<text x="{NAME_WIDTH - 6}" y="{y + 11}" text-anchor="end">{safe(shorten(text, 16))}</text>')
    for tick in linear_axis("", low, high, format_percent).ticks:
        if low <= tick <= high:
            text = f"{tick:+.3g}".replace("-", "−") if tick else "0"
            elements.append(f'<text x="{x_of(tick):.1f}" y="{height - 10}" text-anchor="middle">{text}</text>')
    description = f"{safe(feature_shape.feature)}: evidence in decibans"
    return f'<svg viewBox="0 0 {CHART_WIDTH} {height}" role="img" aria-label="{description}">{"".join(elements)}</svg>'


def _draw_heat_map(feature_shape: Shape) -> str:
    """Returns the chart of a pair of columns as SVG: a cell for each pair of values, darker for stronger evidence. The
    decibans are values of the first column (down) × of the second (across). Sizes are in pixels.
    """
    row_names, column_names = feature_shape.names  # of the values of the first column, and of the second
    left_margin = 118
    width = CHART_WIDTH - 118 - 8
    cell_width = width / len(column_names)
    cell_height = min(BAR_ROW_HEIGHT + 4, 190 / len(row_names))
    bottom = 6 + cell_height * len(row_names)
    strongest = max(float(np.abs(feature_shape.decibans).max(initial=0.0)), 1e-9)  # decibans
    elements = []  # as SVG, like the labels
    labels = []
    paths_by_colour: dict[tuple[str, int], str] = {}  # SVG paths by CSS class and shade
    for row, row_name in enumerate(row_names):
        y = 6 + cell_height * row
        labels.append(
            f'<text x="{left_margin - 5}" y="{y + cell_height / 2 + 3:.1f}">{safe(shorten(row_name, 16))}</text>'
        )
        for column, column_name in enumerate(column_names):
            decibans = float(feature_shape.decibans[row, column])
            shade = round(abs(decibans) / strongest * N_SHADES)
            if not shade:
                continue
            start = f"{_short_number(left_margin + cell_width * column)} {_short_number(y)}"
            path = f"M{start}h{_short_number(cell_width - 1)}v{_short_number(cell_height - 1)}h-{_short_number(cell_width - 1)}z"
            title = safe(f"{row_name} with {column_name}: {_decibans_in_words(decibans).removesuffix(' decibans')}")
            colour = "one" if decibans >= 0 else "two", shade
            paths_by_colour[colour] = (
                paths_by_colour.get(colour, "") + f'<path d="{path}"><title>{title}</title></path>'
            )
    for (css_class, shade), paths in sorted(paths_by_colour.items()):
        elements.append(f'<g class="cell {css_class}" fill-opacity="{shade / N_SHADES:.2g}">{paths}</g>')
    for column, column_name in enumerate(column_names):
        transform = f"translate({left_margin + cell_width * (column + 0.5) + 3:.1f} {bottom + 5:.1f}) rotate(-90)"
        labels.append(f'<text transform="{transform}">{safe(shorten(column_name, 16))}</text>')
    elements.append(f'<g class="small" text-anchor="end">{"".join(labels)}</g>')
    title = f"{safe(feature_shape.feature)}: evidence in decibans"
    return (
        f'<svg viewBox="0 0 {CHART_WIDTH} {bottom + 96:.0f}" role="img" aria-label="{title}">{"".join(elements)}</svg>'
    )


# Scales ---------------------------------------------------------------------------------------------------------------


def format_percent(percentage: float) -> str:
    """Returns a percentage as text. ``percentage``: from 0 to 100."""
    return f"{percentage:.4g}%"


def linear_axis(title: str, low: float, high: float, format_tick: Callable[[float], str], least: float = 0.0) -> Axis:
    """Returns a linear axis from a round number to a round number, which contains ``low`` and ``high``, with about four
    intervals. ``format_tick``: formats a tick; ``least``: its minimum length.
    """
    if high - low < least:
        low = max(high - least, 0.0)
        high = low + least
    shortest_step = (high - low) / N_INTERVALS
    # The power of ten that is at most as large.
    power = 10.0 ** floor(log10(shortest_step))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= shortest_step * (1 - 1e-9))
    # The ends of the axis, in steps from 0.
    first_step = floor(low / step + 1e-9)
    last_step = ceil(high / step - 1e-9)
    return Axis(
        title, first_step * step, last_step * step, [i * step for i in range(first_step, last_step + 1)], format_tick
    )


def logarithmic_axis(title: str, low: float, high: float) -> Axis:
    """Returns a logarithmic axis of numbers of rows from ``low`` to ``high`` with ticks at round numbers."""
    high = max(high, low * 1.1)
    # The exponents of the powers of ten around the axis.
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5)):
        # Ticks at these multiples of powers of ten.
        candidates = _within([step * 10.0**power for power in powers for step in steps], low, high)
        if len(candidates) <= MOST_LOGARITHMIC_TICKS:
            ticks = candidates
    if len(ticks) < 3:
        ticks = [
            tick for tick in _within(linear_axis("", low, high, _format_rows).ticks, low, high) if tick == round(tick)
        ]
    return Axis(title, low, high, ticks or [low], _format_rows, logarithmic=True)


def _within(ticks: Sequence[float], low: float, high: float) -> list[float]:
    """Returns the ticks between ``low`` and ``high``, or beyond them by at most a thousandth."""
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def _format_rows(n: float) -> str:
    """Returns a number of rows as text, in thousands if it is large."""
    return f"{n / 1000:,.4g}k" if n >= 10_000 else f"{n:,.6g}"


def _share_axis(title: str, half: bool = False) -> Axis:
    """Returns an axis of shares from 0 to 1. ``half``: whether it begins at 0.5."""
    ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0] if half else [0.0, 0.25, 0.5, 0.75, 1.0]
    return Axis(title, ticks[0], 1.0, ticks, lambda share: format_percent(share * 100))


# The charts -----------------------------------------------------------------------------------------------------------


def draw_calibration(curves: Mapping[str, Reliability]) -> str:
    """Returns a chart (SVG) of accuracy over confidence for each of at most two named curves; the area of a mark grows
    with its rows. A curve has one entry for each bin of confidence.
    """
    confidence_axis = _share_axis(
        "confidence of the prediction", min(curve.start.min() for curve in curves.values()) >= 0.5
    )
    chart = Chart("Calibration: accuracy over confidence", confidence_axis, _share_axis("accuracy"))
    chart.draw_line([confidence_axis.low, 1.0], [confidence_axis.low, 1.0], "ideal")
    for css_class, (name, curve) in zip(CURVE_CLASSES, curves.items(), strict=False):
        row_counts = np.maximum(curve.rows, 1e-9)  # of each bin
        # The centre and half the width of Wilson's interval of each bin.
        wilson_centre = (curve.accuracy + NORMAL_QUANTILE**2 / (2 * row_counts)) / (1 + NORMAL_QUANTILE**2 / row_counts)
        wilson_half = (
            NORMAL_QUANTILE
            / (1 + NORMAL_QUANTILE**2 / row_counts)
            * np.sqrt(curve.accuracy * (1 - curve.accuracy) / row_counts + NORMAL_QUANTILE**2 / (4 * row_counts**2))
        )
        for confidence, low, high in zip(
            curve.confidence, wilson_centre - wilson_half, wilson_centre + wilson_half, strict=True
        ):
            chart.draw_whisker(confidence, max(low, 0.0), min(high, 1.0), css_class)
        chart.draw_line(curve.confidence.tolist(), curve.accuracy.tolist(), css_class)
        # Of the mark of each bin, in pixels.
        radii = SMALLEST_RADIUS + (LARGEST_RADIUS - SMALLEST_RADIUS) * np.sqrt(curve.rows / curve.rows.max())
        for confidence, accuracy, n_rows, radius in zip(
            curve.confidence, curve.accuracy, curve.rows, radii, strict=True
        ):
            chart.draw_mark(
                confidence,
                accuracy,
                radius,
                css_class,
                f"{name}: {n_rows:,.6g} predictions, {confidence:.1%} confident, {accuracy:.1%} correct",
            )
    return str(chart)


def draw_confidence(curve: Reliability) -> str:
    """Returns a chart (SVG) of the share of rows, in percent, in each bin of confidence. A bin is 1 / ``curve.bins``
    wide.
    """
    shares = (100.0 * curve.rows / curve.rows.sum()).tolist()  # of the rows, in percent, one per bin
    confidence_axis = _share_axis("confidence of the prediction", curve.start.min() >= 0.5)
    chart = Chart(
        "Confidence of the predictions",
        confidence_axis,
        linear_axis("share of the rows", low=0.0, high=max(shares), format_tick=format_percent),
    )
    for start, share, rows in zip(curve.start.tolist(), shares, curve.rows, strict=True):
        end = start + 1 / curve.bins
        chart.draw_bar(start, end, share, f"{start:.0%} to {end:.0%} confident: {rows:,.6g} rows, {share:.1f}%")
    return str(chart)


def draw_labels(evaluation: LabelEvaluation) -> str:
    """Returns a chart (SVG) of the F1 of each label that has rows over their number, with micro F1 as a line."""
    measures = evaluation.per_label  # arrays of one entry per label
    labels_with_rows = np.flatnonzero(measures.rows > 0)  # their indices
    x_axis = logarithmic_axis(
        "rows that have the label",
        float(measures.rows[labels_with_rows].min()),
        float(measures.rows[labels_with_rows].max()),
    )
    y_axis = Axis("F1", low=0.0, high=1.0, ticks=[0.0, 0.25, 0.5, 0.75, 1.0], format_tick="{:g}".format)
    chart = Chart("F1 of each label by its number of rows", x_axis, y_axis)
    chart.draw_level(evaluation.micro_f1)
    for label_index in labels_with_rows.tolist():
        chart.draw_mark(
            float(measures.rows[label_index]),
            float(measures.f1[label_index]),
            SMALLEST_RADIUS + 1,
            "one",
            f"{evaluation.labels[label_index]}: F1 {measures.f1[label_index]:.3f}, rows: {measures.rows[label_index]:,.6g}",
        )
    return str(chart)


def draw_accuracy_curve(curve: LearningCurve) -> str:
    """Returns a chart (SVG) of accuracy over training rows with its standard error, and the accuracy of the most
    frequent class if that is near.
    """
    means = 100 * curve.mean_accuracy  # in percent, as all below; one for each size
    standard_error = curve.standard_error  # of the accuracy (0 to 1) for each size; None for a single repeat
    error_in_percent = np.zeros_like(means) if standard_error is None else 100 * standard_error
    low = max(float((means - error_in_percent).min()), 0.0)  # the ends of what is drawn
    high = min(float((means + error_in_percent).max()), 100.0)
    level = 100 * curve.majority if majority_is_near(curve) else None  # of the dashed line
    y_axis = linear_axis("accuracy", low if level is None else min(low, level), high, format_percent, least=1.0)
    return _draw_curve("accuracy", curve, y_axis, means, error_in_percent, "{:.2f}%", level)


def majority_is_near(curve: LearningCurve) -> bool:
    """Whether the accuracy of the most frequent class can be drawn without flattening the curve."""
    low = float(curve.mean_accuracy.min())  # accuracies from 0 to 1
    high = float(curve.mean_accuracy.max())
    return low - curve.majority <= 2 * max(high - low, 0.02)


def draw_log_loss_curve(curve: LearningCurve) -> str:
    """Returns a chart (SVG) of log loss over training rows with its standard error."""
    means = curve.mean_log_loss  # one for each size
    standard_error = (  # ``curve.log_loss`` is repeats × sizes
        curve.log_loss.std(axis=0, ddof=1) / len(curve.log_loss) ** 0.5 if len(curve.log_loss) > 1 else 0 * means
    )
    low = max(0.0, float((means - standard_error).min()))  # the ends of what is drawn, in nats
    high = float((means + standard_error).max())
    return _draw_curve(
        "log loss",
        curve,
        linear_axis("log loss", low, high, "{:.4g}".format, least=0.01),
        means,
        standard_error,
        "{:.4f}",
    )


def _draw_curve(
    measure: str,
    curve: LearningCurve,
    y_axis: Axis,
    means: Real,
    errors: Real,
    number_format: str,
    level: float | None = None,
) -> str:
    """Returns a chart (SVG) of a measure over training rows. ``measure``: its name; ``y_axis``: the vertical axis;
    ``means``, ``errors``: mean and standard error for each size; ``number_format``: for tooltips, as for
    ``str.format``; ``level``: where to draw a dashed line, if anywhere.
    """
    sizes = curve.sizes.tolist()  # numbers of training rows
    x_axis = logarithmic_axis("training rows", float(sizes[0]), float(sizes[-1]))
    chart = Chart(f"Learning curve: {measure} by number of training rows", x_axis, y_axis)
    if level is not None:
        chart.draw_level(level)
    # The edges of the band, one for each size.
    low, high = (np.clip(edge, y_axis.low, y_axis.high).tolist() for edge in (means - errors, means + errors))
    chart.draw_band(sizes, low, high, "one")
    chart.draw_line(sizes, means.tolist(), "one")
    for size, mean, error in zip(sizes, means.tolist(), errors.tolist(), strict=True):
        chart.draw_mark(
            size,
            mean,
            SMALLEST_RADIUS,
            "one",
            f"{size:,} rows: {number_format.format(mean)} ± {number_format.format(error)}",
        )
    return str(chart)
