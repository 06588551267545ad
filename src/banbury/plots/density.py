"""DensityDisplay: the distribution of two numeric columns, as contours over the rows; of a mixture its components too.

The density of a histogram has steps, on whose edges contours would lie upon one another: it is shaded instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.model.naive_bayes import Model, log_sum
from banbury.plots.display import COLOURS, FAINT, Display, colour, legend_beside, name
from banbury.plots.features import column_of, parts_of, some_rows, two_columns
from banbury.reading import read

if TYPE_CHECKING:
    from banbury.model.density import AsDensity  # imports scikit-learn, which reports and pictures do without

MARGIN = 0.1
INSIDE = (0.99, 0.9, 0.5, 0.1)  # of the rows that are drawn, the shares inside the contours
PEAK = np.log(10.0)  # a row whose density is ten times that of the grid around it is on a peak that is not drawn
HALF = 0.5  # of a component, what is inside its line
SHADES = ("#dbe9f4", "#b4d0e7", "#7fb0d6", "#3f88c0")  # from the outermost share to the innermost
MOST_COMPONENTS = 7  # that are drawn, those of the largest share: as many as there are colours beside the first


@dataclass(eq=False, repr=False)
class DensityDisplay(Display):
    """Contours of the density of two numeric columns, with the rows as points. Other columns are summed out.

    ``xx0`` and ``xx1`` are the grid, ``log_density`` the log density on it (len(xx1) × len(xx0)), and ``levels`` the
    contours; ``inside`` has the share of the density inside each. ``components`` has the log density of each component
    of a mixture, whose broken line contains half of it. ``hidden`` is the share of rows on peaks too narrow for the
    grid, which the title mentions. If ``stepped``, the density contains a histogram and is shaded.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_iris
    >>> flowers = dict(zip("abcd", load_iris().data.T, strict=True))
    >>> density = bb.Density(features={("c", "d"): bb.Gaussian(covariance="full")}).fit(flowers)
    >>> bb.plots.DensityDisplay.from_density(density, ["c", "d"], flowers, steps=50).log_density.shape
    (50, 50)
    """

    features: tuple[str, str]
    xx0: Real
    xx1: Real
    log_density: Real
    points: tuple[Real, Real]
    levels: Real
    components: Mapping[Any, Real] = field(default_factory=dict)
    hidden: float = 0.0
    stepped: bool = False
    inside: Sequence[float] = INSIDE

    @classmethod
    def from_density(
        cls, density: AsDensity, features: Sequence[str], data: Any, *, steps: int = 200, ax: Any = None
    ) -> Self:
        """Draws two columns of a fitted density or mixture, and the rows of ``data`` (at most 2,000)."""
        if not hasattr(density, "anomaly_scores"):
            raise errors.bad_setting("the density", type(density).__name__, "a fitted bb.Density or bb.Mixture")
        errors.check_whole("steps", steps, 2, 2_000)
        first, second = two_columns(density._model(), features)
        columns = [[batch.numbers([column])[0].reshape(-1) for batch in read(data)] for column in (first, second)]
        x, y = (np.concatenate(parts).astype(np.float64) for parts in columns)
        used = some_rows(np.isfinite(x) & np.isfinite(y), (first, second))
        x = x[used]
        y = y[used]
        reach = [(values.min(), values.max(), MARGIN * np.ptp(values) or 1.0) for values in (x, y)]
        xx0, xx1 = (np.linspace(low - room, high + room, steps) for low, high, room in reach)
        across, up = np.meshgrid(xx0, xx1)
        joint = density._marginal({first: across.ravel(), second: up.ravel()})
        at_points = log_sum(density._marginal({first: x, second: y}))
        log_density = log_sum(joint).reshape(steps, steps)
        parts = {column: parts_of(density.model_, column_of(density.model_, column).name) for column in (first, second)}
        stepped = any(
            feature_parts.group.select([feature_parts.at]).cuts(column) is not None
            for column, feature_parts in parts.items()
        )
        grid = xx0, xx1, log_density, x, y
        drawn = np.minimum(_beside(*grid), at_points) if stepped else _between(*grid)
        levels, first_of = np.unique(np.quantile(drawn, [1.0 - share for share in INSIDE]), return_index=True)
        inside = [INSIDE[i] for i in first_of.tolist()]  # steps may have several shares at one level: there the largest
        hidden = float(np.mean(at_points > drawn + PEAK))
        components = {} if joint.shape[1] == 1 else _components(density.model_, joint, steps)
        return cls((first, second), xx0, xx1, log_density, (x, y), levels, components, hidden, stepped, inside).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 6.8 if self.components or self.stepped else 5.8, 4.4)
        ax.scatter(*self.points, s=12, color=FAINT, zorder=1)
        if self.stepped:
            self._shade(ax)
        else:
            heights = np.maximum(self.log_density, float(self.levels[0]) - 1.0)
            style = {"colors": COLOURS[0], "linestyles": "solid", "zorder": 2}
            lines = ax.contour(self.xx0, self.xx1, heights, levels=self.levels, **style)
            shown = {level: f"{share:.0%}" for level, share in zip(self.levels, self.inside, strict=False)}
            ax.clabel(lines, fmt=shown, fontsize=8)
        for c, (number, part) in enumerate(self.components.items(), 1):
            highest = float(part.max())
            style = {"colors": colour(c), "linestyles": "dashed", "zorder": 3}
            if (end := level_inside(np.exp(part - highest), HALF)) is not None:
                level = highest + float(np.log(end))
                ax.contour(self.xx0, self.xx1, np.maximum(part, level - 1.0), levels=[level], **style)
            ax.plot([], [], color=colour(c), linestyle="dashed", label=f"component {number}")
        if self.components or self.stepped:
            legend_beside(ax)
        ax.set(xlabel=name(self.features[0], 40), ylabel=name(self.features[1], 40))
        broken = "; broken lines with half of a component" if self.components else ""
        hidden = f"; {self.hidden:.0%} of the rows on peaks too narrow to draw" if self.hidden >= 0.005 else ""
        shares = "contours containing these shares of the rows"
        if self.stepped:
            shares = "densest regions containing these shares of the rows"
        ax.set_title(f"Density; {shares}{broken}{hidden}")

    def _shade(self, ax: Any) -> None:
        from matplotlib.colors import ListedColormap

        shades = SHADES[-len(self.levels) :]
        bands = np.searchsorted(self.levels, self.log_density, side="right")  # as many levels as it reaches
        shown = np.ma.masked_equal(bands, 0)
        style = {"shading": "nearest", "zorder": 0, "rasterized": True}
        ax.pcolormesh(self.xx0, self.xx1, shown, cmap=ListedColormap(shades), vmin=1, vmax=len(shades), **style)
        for share, shade in zip(self.inside, shades, strict=False):
            ax.fill([], [], color=shade, label=f"{share:.0%}")


def level_inside(density: Real, share: float) -> float | None:
    """Returns the density level above which this share of the density on the grid lies; None if all of it is at one
    point.
    """
    ordered = np.sort(density[np.isfinite(density)], axis=None)[::-1]
    total = np.cumsum(ordered)
    if not len(total) or not total[-1] > 0:
        return None
    level = float(ordered[min(int(np.searchsorted(total, share * total[-1])), len(ordered) - 1)])
    return level if level < ordered[0] else None


def _between(xx0: Real, xx1: Real, log_density: Real, x: Real, y: Real) -> Real:
    """The density at points as contours have it: between those of the four places of the grid around each, in proportion."""
    finite = log_density[np.isfinite(log_density)]
    heights = np.maximum(log_density, float(finite.min(initial=0.0)) - 1.0)
    i = _before(xx0, x)
    j = _before(xx1, y)
    right = (x - xx0[i]) / (xx0[i + 1] - xx0[i])
    up = (y - xx1[j]) / (xx1[j + 1] - xx1[j])
    below = heights[j, i] * (1.0 - right) + heights[j, i + 1] * right
    above = heights[j + 1, i] * (1.0 - right) + heights[j + 1, i + 1] * right
    return np.asarray(below * (1.0 - up) + above * up)


def _before(grid: Real, values: Real) -> NDArray[np.intp]:
    """The places of the grid before the values, each with one behind it."""
    return np.clip(np.searchsorted(grid, values) - 1, 0, len(grid) - 2)


def _beside(xx0: Real, xx1: Real, log_density: Real, x: Real, y: Real) -> Real:
    """The highest density at the four places of the grid around each point: one of them is on its step, unless that is narrow."""
    i = _before(xx0, x)
    j = _before(xx1, y)
    around = [log_density[j + up, i + right] for up in (0, 1) for right in (0, 1)]
    return np.asarray(np.max(around, axis=0))


def _components(model: Model, joint: Real, steps: int) -> dict[Any, Real]:
    """What each component adds to the density at the points of the grid; of many those of the largest share there."""
    highest = joint.max(axis=0)
    there = np.flatnonzero(np.isfinite(highest))
    share = np.exp(joint[:, there] - highest.max()).sum(axis=0)
    largest = np.sort(there[np.argsort(-share, kind="stable")[:MOST_COMPONENTS]])
    return {model.classes[c]: joint[:, c].reshape(steps, steps) for c in largest.tolist()}
