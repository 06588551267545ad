"""DensityDisplay: the distribution of two numeric columns, as contours over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.plots.display import COLOURS, FAINT, Display, name
from banbury.plots.features import check_whole
from banbury.readers import read

if TYPE_CHECKING:
    from banbury.density import Density

Real = NDArray[np.float64]
MOST_POINTS = 2_000
MARGIN = 0.1
INSIDE = (0.99, 0.9, 0.5, 0.1)  # of the rows that are drawn, the shares inside the contours


class DensityDisplay(Display):
    """Contours of the density of two numeric columns, the others being anything; and the rows as points.

    ``xx0`` and ``xx1`` are the grid, ``log_density`` what the density says there, (len(xx1), len(xx0)), and ``levels`` the
    contours, which have these shares of the rows inside.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_iris
    >>> flowers = dict(zip("abcd", load_iris().data.T, strict=True))
    >>> density = bb.Density(features={("c", "d"): bb.Gaussian(covariance="full")}).fit(flowers)
    >>> bb.plots.DensityDisplay.from_density(density, ["c", "d"], flowers, steps=50).log_density.shape
    (50, 50)
    """

    def __init__(
        self,
        features: tuple[str, str],
        xx0: Real,
        xx1: Real,
        log_density: Real,
        points: tuple[Real, Real],
        levels: Real,
    ) -> None:
        self.features, self.xx0, self.xx1, self.log_density = features, xx0, xx1, log_density
        self.points, self.levels = points, levels

    @classmethod
    def from_density(
        cls, density: Density, features: Sequence[str], data: Any, *, steps: int = 200, ax: Any = None
    ) -> Self:
        """Draws two columns of a fitted density over the rows of ``data`` (2,000 of them at most)."""
        if isinstance(features, str) or not isinstance(features, Sequence) or len(set(features)) != 2:
            raise errors.bad_setting("features", features, "the names of two numeric columns")
        check_whole("steps", steps, 2, 2_000)
        first, second = features
        x, y = _points(data, first, second)
        (left, right), (low, high) = _span(x), _span(y)
        xx0, xx1 = np.linspace(left, right, steps), np.linspace(low, high, steps)
        across, up = np.meshgrid(xx0, xx1)
        found = _scores(density, first, second, across.ravel(), up.ravel()).reshape(steps, steps)
        own = _scores(density, first, second, x, y)
        levels = np.unique(np.quantile(own[np.isfinite(own)], [1.0 - share for share in INSIDE]))
        return cls((first, second), xx0, xx1, found, (x, y), levels).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 5.8, 4.4)
        ax.scatter(*self.points, s=12, color=FAINT, zorder=1)
        lowest = float(self.levels[0]) - 1.0
        style = {"colors": COLOURS[0], "linestyles": "solid", "zorder": 2}
        lines = ax.contour(self.xx0, self.xx1, np.maximum(self.log_density, lowest), levels=self.levels, **style)
        shown = {level: f"{share:.0%}" for level, share in zip(self.levels, INSIDE, strict=False)}
        ax.clabel(lines, fmt=shown, fontsize=8)
        ax.set_xlabel(name(self.features[0], 40))
        ax.set_ylabel(name(self.features[1], 40))
        self._title("Density; contours with so many of the rows inside")


def _points(data: Any, first: str, second: str) -> tuple[Real, Real]:
    """The rows that have both values, evenly picked where there are many."""
    columns = [[batch.numbers([column])[0].reshape(-1) for batch in read(data)] for column in (first, second)]
    x, y = (np.concatenate(parts).astype(np.float64) for parts in columns)
    used = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if not len(used):
        raise errors.empty_data(None, f"no row has values of both {first!r} and {second!r}")
    used = used[np.unique(np.linspace(0, len(used) - 1, min(len(used), MOST_POINTS)).astype(np.int64))]
    return x[used], y[used]


def _span(values: Real) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = MARGIN * (high - low) or 1.0
    return low - margin, high + margin


def _scores(density: Density, first: str, second: str, x: Real, y: Real) -> Real:
    """log density of two columns at points, the other columns missing."""
    names = [column for feature in density.tally_.schema.features for column in feature.inputs]
    for column in (first, second):
        if column not in names:
            raise errors.unknown_column(column, names)
    rest: dict[str, Any] = {column: [None] * len(x) for column in names}
    return density.score_samples({**rest, first: x, second: y})
