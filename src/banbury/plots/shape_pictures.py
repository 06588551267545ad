"""ShapesDisplay: what a model has learned, as a picture of the evidence of each column in decibans."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.model.naive_bayes import Model
from banbury.plots.display import AGAINST, FAINT, FOR, Display, import_matplotlib, short_name, text_colour
from banbury.plots.shape import ClassContrast, Shape, limits, shapes_of, strip_density


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
        self.shapes = tuple(shapes)  # the most important first
        self.label = label
        self.against = against
        self.n = n

    @classmethod
    def from_model(cls, model: Model, label: Any = None, against: Any = None, *, n: int = 12) -> Self:
        """Draws the ``n`` most important columns and pairs, for the class ``label`` (the last unless given) against the
        class ``against`` (all others unless given).
        """
        errors.check_whole("n", n, 1)
        contrast = ClassContrast.of(model, label, against)
        return cls(shapes_of(model, label, against), contrast.label, contrast.against, n=int(n)).plot()

    def _draw(self, ax: Any) -> None:
        """Draws a picture for each of the ``self.n`` most important columns, three side by side. Raises an error if
        ``ax`` is given, or if no column can be drawn.
        """
        if ax is not None:
            raise errors.bad_setting("ax", ax, "None, because each column has its own picture")
        drawn_shapes = self.shapes[: self.n]
        if not drawn_shapes:
            raise errors.empty_data(None, "no column of the model can be drawn")
        n_columns = min(len(drawn_shapes), 3)
        n_rows = -(-len(drawn_shapes) // n_columns)
        # Width and height, in inches.
        size = 3.6 * n_columns + 0.4, 2.6 * n_rows + 0.4
        figure, axes = import_matplotlib().pyplot.subplots(
            n_rows, n_columns, figsize=size, layout="constrained", squeeze=False
        )
        self.figure_ = figure
        self.ax_ = axes.ravel()[: len(drawn_shapes)]
        for unused in axes.ravel()[len(drawn_shapes) :]:
            unused.set_axis_off()
        # Functions of axes and a shape.
        draw_by_kind = {"numbers": _draw_steps, "categories": _draw_bars, "words": _draw_bars, "pairs": _draw_heat_map}
        for axis, shape in zip(self.ax_, drawn_shapes, strict=True):
            draw_by_kind[shape.kind](axis, shape)
            axis.set_title(short_name(shape.feature, 44))
        opponent = "all others" if self.against is None else short_name(self.against)
        figure.supxlabel(f"decibans for {short_name(self.label)} (blue) against {opponent} (orange)", fontsize=9)


def _draw_steps(ax: Any, shape: Shape) -> None:
    """Draws the shape of a numeric column: steps, their error band, the strip of rows, and the mark of a missing value.
    The axes go from 0 to 1 across, and over the decibans upwards.
    """
    positions, ticks = shape.axis_positions()  # of the ends of intervals; ticks are pairs of position and text
    bottom, top = limits(shape)  # the lowest and the highest decibans to draw
    ax.axhline(0.0, color=FAINT, linewidth=0.8)
    if shape.error is not None:
        # The edges of the band, one per interval.
        low, high = (np.clip(shape.decibans + side * shape.error, bottom, top) for side in (-1.0, 1.0))
        ax.stairs(high, positions, baseline=low, fill=True, color=FOR, alpha=0.18, linewidth=0)
    ax.stairs(shape.decibans, positions, baseline=None, color=FOR, linewidth=1.6)
    strip_height = 0.09 * (top - bottom)
    density = strip_density(shape, positions)  # of the rows in each interval, from 0 to 1
    for ends, darkness in zip(pairwise(positions), density.tolist(), strict=True):
        ax.fill_between(ends, bottom - strip_height, bottom, color=text_colour(), alpha=0.75 * darkness, linewidth=0)
    if shape.missing is not None:
        ax.plot([1.04], [np.clip(shape.missing, bottom, top)], "D", color=AGAINST, markersize=4, clip_on=False)
        ax.annotate("missing", (1.0, 1.0), xycoords="axes fraction", ha="right", va="bottom", fontsize=7, color=AGAINST)
    ax.set(xlim=(0.0, 1.08 if shape.missing is not None else 1.0), ylim=(bottom - strip_height, top))
    ax.set_xticks([position for position, _ in ticks], [text for _, text in ticks])


def _draw_bars(ax: Any, shape: Shape) -> None:
    """Draws the shape of a categorical column or of words as bars, one for each of ``shape.names[0]``."""
    positions = np.arange(len(shape.decibans))
    colours = [FOR if value >= 0 else AGAINST for value in shape.decibans.tolist()]
    error_style = {"ecolor": "#555555", "elinewidth": 0.9}
    ax.barh(positions, shape.decibans, 0.7, color=colours, xerr=shape.error, error_kw=error_style)
    ax.axvline(0.0, color=FAINT, linewidth=0.8)
    hidden = shape.n_values - len(positions)  # how many values are not shown
    ax.set_yticks(positions, shape.names[0], fontsize=7)
    ax.set(xlim=limits(shape), ylim=(len(positions) - 0.4, -0.6))
    if hidden > 0:
        ax.set_xlabel(f"{hidden:,} rarer values not shown", fontsize=7)
    ax.tick_params(axis="y", length=0)


def _draw_heat_map(ax: Any, shape: Shape) -> None:
    """Draws the shape of a pair of columns as a heat map of ``shape.decibans`` (values of the first column down, of the
    second across).
    """
    # In decibans.
    strongest = max(float(np.abs(shape.decibans).max(initial=0.0)), 1e-9)
    colours = import_matplotlib().colors.LinearSegmentedColormap.from_list("evidence", [AGAINST, "white", FOR])
    image = ax.imshow(shape.decibans, cmap=colours, vmin=-strongest, vmax=strongest, aspect="auto")
    ax.figure.colorbar(image, ax=ax, shrink=0.9).ax.tick_params(labelsize=7)
    for axis, texts, angle in ((ax.xaxis, shape.names[1], 90), (ax.yaxis, shape.names[0], 0)):
        axis.set_ticks(np.arange(len(texts)), texts, fontsize=6, rotation=angle)
