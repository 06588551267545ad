"""DensityDisplay: the distribution of two numeric columns, as contours over the rows; of a mixture its components too.

The density of a histogram has steps, at whose edges contours would overlap, so it is shaded instead.
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
from banbury.plots.display import COLOURS, FAINT, Display, colour, legend_beside, short_name
from banbury.plots.features import column_of, feature_parts_of, select_rows, two_columns
from banbury.reading import read

if TYPE_CHECKING:
    from banbury.model.density import AsDensity  # imports scikit-learn, which reports and pictures do without

MARGIN_AROUND_ROWS = 0.1  # around the rows, as a share of their range
SHARES_INSIDE = (0.99, 0.9, 0.5, 0.1)  # shares of the drawn rows inside the contours
# Log density above the grid around a row: with more, the row is on a peak that the grid misses.
PEAK_HEIGHT = np.log(10.0)
COMPONENT_SHARE = 0.5  # the share of a component inside its line
SHADES = ("#dbe9f4", "#b4d0e7", "#7fb0d6", "#3f88c0")  # from the outermost share to the innermost
MOST_COMPONENTS = 7  # the largest ones are drawn: there are so many colours besides the first


@dataclass(eq=False, repr=False)
class DensityDisplay(Display):
    """Contours of the density of two numeric columns, with the rows as points. Other columns are summed out.

    ``xx0`` and ``xx1`` are the grid, ``log_density`` the log density on it (len(xx1) × len(xx0)), and ``levels`` the
    contours; ``inside`` has the share of the rows inside each. ``components`` has the log density of each component
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
    points: tuple[Real, Real]  # x and y of the rows
    levels: Real  # log densities, ascending
    components: Mapping[Any, Real] = field(default_factory=dict)
    hidden: float = 0.0
    stepped: bool = False
    inside: Sequence[float] = SHARES_INSIDE

    @classmethod
    def from_density(
        cls, density: AsDensity, features: Sequence[str], data: Any, *, steps: int = 200, ax: Any = None
    ) -> Self:
        """Draws two columns (``features``, their names) of a fitted density or mixture, and the rows of ``data`` (at
        most 2,000). The grid has ``steps`` values of each column.
        """
        if not hasattr(density, "anomaly_scores"):
            raise errors.bad_setting("the density", type(density).__name__, "a fitted bb.Density or bb.Mixture")
        errors.check_whole("steps", steps, 2, 2_000)
        x_column, y_column = two_columns(density._model(), features)
        # The numbers of each of both columns, as one array per batch.
        columns = [[batch.numbers([column])[0].reshape(-1) for batch in read(data)] for column in (x_column, y_column)]
        x, y = (np.concatenate(arrays).astype(np.float64) for arrays in columns)  # of each row
        # Row numbers.
        drawn_rows = select_rows(np.isfinite(x) & np.isfinite(y), (x_column, y_column))
        x = x[drawn_rows]
        y = y[drawn_rows]
        # The lowest and the highest value of each column, and the margin around them.
        ranges = [(values.min(), values.max(), MARGIN_AROUND_ROWS * np.ptp(values) or 1.0) for values in (x, y)]
        xx0, xx1 = (np.linspace(low - margin, high + margin, steps) for low, high, margin in ranges)
        grid_x, grid_y = np.meshgrid(xx0, xx1)
        # The log density of each component (grid points × components).
        joint = density._marginal({x_column: grid_x.ravel(), y_column: grid_y.ravel()})
        # The log density at each drawn row.
        at_points = log_sum(density._marginal({x_column: x, y_column: y}))
        log_density = log_sum(joint).reshape(steps, steps)
        # Whether the density contains a histogram.
        stepped = any(_has_steps(density.model_, column) for column in (x_column, y_column))
        grid = xx0, xx1, log_density, x, y  # the arguments of both functions below
        # The log density at each drawn row, as far as the grid shows it.
        grid_density = np.minimum(_highest_around(*grid), at_points) if stepped else _interpolate(*grid)
        # The log density that these shares of the rows exceed.
        quantiles = np.quantile(grid_density, [1.0 - share for share in SHARES_INSIDE])
        # The contours, ascending, and for each the index of its share.
        levels, share_numbers = np.unique(quantiles, return_index=True)
        # Steps may have several shares at one level: there the largest.
        inside = [SHARES_INSIDE[i] for i in share_numbers.tolist()]
        # The share of rows on peaks that the grid misses.
        hidden = float(np.mean(at_points > grid_density + PEAK_HEIGHT))
        components = {} if joint.shape[1] == 1 else _components(density.model_, joint, steps)
        return cls(
            (x_column, y_column), xx0, xx1, log_density, (x, y), levels, components, hidden, stepped, inside
        ).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws the contours or shaded regions, the rows, and the components of a mixture (log densities on the grid,
        by number). ``self.levels`` are log densities, ascending, and ``self.inside`` the share of the rows inside each.
        """
        ax = self._begin(ax, width=6.8 if self.components or self.stepped else 5.8, height=4.4)
        ax.scatter(*self.points, s=12, color=FAINT, zorder=1)
        if self.stepped:
            self._shade(ax)
        else:
            # Far below the lowest level nothing is drawn, and −∞ has no contours.
            clipped_density = np.maximum(self.log_density, float(self.levels[0]) - 1.0)
            style = {"colors": COLOURS[0], "linestyles": "solid", "zorder": 2}
            lines = ax.contour(self.xx0, self.xx1, clipped_density, self.levels, **style)
            level_labels = {level: f"{share:.0%}" for level, share in zip(self.levels, self.inside, strict=False)}
            ax.clabel(lines, fmt=level_labels, fontsize=8)
        for colour_number, (number, component) in enumerate(self.components.items(), 1):  # log densities by number
            highest = float(component.max())  # subtracted, so that the exponentials do not overflow
            line_colour = colour(colour_number)
            # The density at the line, relative to the highest one.
            if (relative_level := level_inside(np.exp(component - highest), COMPONENT_SHARE)) is not None:
                level = highest + float(np.log(relative_level))
                style = {"colors": line_colour, "linestyles": "dashed", "zorder": 3}
                ax.contour(self.xx0, self.xx1, np.maximum(component, level - 1.0), [level], **style)
            ax.plot([], [], color=line_colour, linestyle="dashed", label=f"component {number}")
        if self.components or self.stepped:
            legend_beside(ax)
        ax.set(xlabel=short_name(self.features[0], 40), ylabel=short_name(self.features[1], 40))
        component_note = "; broken lines with half of a component" if self.components else ""
        hidden_note = f"; {self.hidden:.0%} of the rows on peaks too narrow to draw" if self.hidden >= 0.005 else ""
        regions = "densest regions" if self.stepped else "contours"
        ax.set_title(f"Density; {regions} containing these shares of the rows{component_note}{hidden_note}")

    def _shade(self, ax: Any) -> None:
        """Shades the regions between ``self.levels`` (log densities, ascending), darker for denser ones.
        ``self.inside``: the share of the rows above each.
        """
        from matplotlib.colors import ListedColormap

        shades = SHADES[-len(self.levels) :]
        bands = np.searchsorted(self.levels, self.log_density, side="right")  # as many levels as it reaches
        visible_bands = np.ma.masked_equal(bands, 0)
        style = {"shading": "nearest", "zorder": 0, "rasterized": True}
        ax.pcolormesh(self.xx0, self.xx1, visible_bands, cmap=ListedColormap(shades), vmin=1, vmax=len(shades), **style)
        for share, shade in zip(self.inside, shades, strict=False):
            ax.fill([], [], color=shade, label=f"{share:.0%}")


def _has_steps(model: Model, column: str) -> bool:
    """Whether the density of a column has steps, as that of a histogram has."""
    feature_parts = feature_parts_of(model, column_of(model, column).name)  # the column's parameters and its position
    return feature_parts.group.select([feature_parts.position]).cuts(column) is not None


def level_inside(density: Real, share: float) -> float | None:
    """Returns the density level above which this share of the density on the grid lies; None if all of it is at one
    point.
    """
    # The densities of the grid's points.
    descending = np.sort(density[np.isfinite(density)], axis=None)[::-1]
    cumulative = np.cumsum(descending)
    if not len(cumulative) or not cumulative[-1] > 0:
        return None
    level = float(descending[min(int(np.searchsorted(cumulative, share * cumulative[-1])), len(descending) - 1)])
    return level if level < descending[0] else None


def _interpolate(xx0: Real, xx1: Real, log_density: Real, x: Real, y: Real) -> Real:
    """Returns the log density at each of the points (x, y), interpolated bilinearly on the grid ``xx0`` × ``xx1`` as
    contours are. ``log_density``: len(xx1) × len(xx0).
    """
    # The log densities of the grid where they are finite.
    finite = log_density[np.isfinite(log_density)]
    # Where the density is zero, its logarithm counts as 1 less than the lowest finite one (or 0).
    heights = np.maximum(log_density, float(finite.min(initial=0.0)) - 1.0)
    column = _cell_of(xx0, x)  # of the grid point before each point
    row = _cell_of(xx1, y)
    # How far each point is on the way to the next grid point, from 0 to 1.
    x_share = (x - xx0[column]) / (xx0[column + 1] - xx0[column])
    y_share = (y - xx1[row]) / (xx1[row + 1] - xx1[row])
    # The log density at the x of each point on the grid line below it, and on the one above.
    below = heights[row, column] * (1.0 - x_share) + heights[row, column + 1] * x_share
    above = heights[row + 1, column] * (1.0 - x_share) + heights[row + 1, column + 1] * x_share
    return np.asarray(below * (1.0 - y_share) + above * y_share)


def _cell_of(grid: Real, values: Real) -> NDArray[np.intp]:
    """Returns for each value the index of the grid point before it, such that another one follows. ``grid``: ascending."""
    return np.clip(np.searchsorted(grid, values) - 1, 0, len(grid) - 2)


def _highest_around(xx0: Real, xx1: Real, log_density: Real, x: Real, y: Real) -> Real:
    """Returns the highest log density at the four points of the grid ``xx0`` × ``xx1`` around each point (x, y): one of
    them is on its step, unless that is narrow. ``log_density``: len(xx1) × len(xx0).
    """
    column = _cell_of(xx0, x)  # of the grid point before each point
    row = _cell_of(xx1, y)
    corner_densities = [
        log_density[row + row_step, column + column_step] for row_step in (0, 1) for column_step in (0, 1)
    ]
    return np.asarray(np.max(corner_densities, axis=0))


def _components(model: Model, joint: Real, steps: int) -> dict[Any, Real]:
    """Returns the log density on the grid (steps × steps) of each of the components with the largest share, by number.
    ``joint``: the log density of each (grid points × components).
    """
    highest = joint.max(axis=0)  # of each component
    present = np.flatnonzero(np.isfinite(highest))  # components, by number, that are somewhere on the grid
    # Of each of these, relative to others.
    share = np.exp(joint[:, present] - highest.max()).sum(axis=0)
    largest = np.sort(present[np.argsort(-share, kind="stable")[:MOST_COMPONENTS]])
    return {model.classes[component]: joint[:, component].reshape(steps, steps) for component in largest.tolist()}
