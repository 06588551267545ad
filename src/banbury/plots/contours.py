"""Contours: a density of two columns for each class, and where most of it lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Real
from banbury.plots.display import colour, legend_beside, line, mark, names

INSIDE = (0.9, 0.5)  # the shares of a class inside its contours
MOST_FILLED = 4  # classes; more would hide each other


class Plane(NamedTuple):
    """A grid over two columns, from left to right and from the lowest up; and rows as points, with their classes."""

    columns: tuple[str, str]
    across: Real
    up: Real
    points: tuple[Real, Real, NDArray[np.int64]] | None


def levels(density: Real, inside: Sequence[float] = INSIDE) -> list[float]:
    """The densities above which these shares of it lie, as far as the grid reaches; ascending where the shares fall."""
    ordered = np.sort(density[np.isfinite(density)], axis=None)[::-1]
    total = np.cumsum(ordered)
    if not len(total) or not total[-1] > 0:
        return []
    ends = [float(ordered[min(int(np.searchsorted(total, share * total[-1])), len(ordered) - 1)]) for share in inside]
    return sorted({level for level in ends if level < ordered[0]})


def draw(ax: Any, plane: Plane, density: Real, classes: Sequence[Any]) -> None:
    """Each class's contours in its colour over its rows; ``density`` is (up, across, classes)."""
    for c, label in enumerate(names(classes)):
        own, ends = density[:, :, c], levels(density[:, :, c])
        if ends and len(classes) <= MOST_FILLED:
            fill = {"colors": [colour(c)] * len(ends), "alpha": 0.16, "zorder": 0}
            for end in ends:
                ax.contourf(plane.across, plane.up, own, levels=[end, np.inf], **fill)
        if ends:
            style = {"colors": colour(c), "linestyles": line(c), "linewidths": 1.4, "zorder": 2}
            ax.contour(plane.across, plane.up, own, levels=ends, **style)
        if plane.points is None:
            ax.plot([], [], color=colour(c), linestyle=line(c), label=label)
            continue
        x, y, numbers = plane.points
        style = {"color": colour(c), "marker": mark(c), "edgecolors": "white", "linewidths": 0.5, "label": label}
        ax.scatter(x[numbers == c], y[numbers == c], s=18, zorder=3, **style)
    ax.set(xlim=plane.across[[0, -1]], ylim=plane.up[[0, -1]])
    legend_beside(ax)
