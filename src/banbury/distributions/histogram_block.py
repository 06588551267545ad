"""A histogram of several columns together: the share of each cell, divided by its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions import grid
from banbury.distributions.family import Choice, ColumnReader, Feature, Parameters, by_class, line_by_line
from banbury.distributions.joint import MOST_COMBINATIONS, shares, too_many_combinations
from banbury.sums import Keys

FARTHEST = 2.0**20  # steps: farther out a sum would lose what tells the classes apart


def reached(sizes: Int) -> Real:
    """Over how many steps' worth of density the share of each bin is spread; beyond an outer one lies one more."""
    steps = sizes.astype(np.float64)
    steps[0] += 1.0
    steps[-1] += 1.0
    return steps


class Joined(NamedTuple):
    """Bins for estimation: each is of one or more equal steps, numbered from ``first`` on and ``width`` fine bins wide."""

    first: int
    width: float
    cells: Real  # rows per bin and class
    sizes: Int  # steps per bin

    @property
    def reach(self) -> Real:
        return reached(self.sizes)


# What makes bins for estimation of a column's fine bins, their rows per class, and how many columns its block has.
Join = Callable[[Keys, Real, int], Joined]


@dataclass(frozen=True)
class BlockAxis:
    """The bins of one column of a block: steps of equal ``width`` from number ``first`` on, one or more to a bin."""

    start: float
    width: float
    first: int
    sizes: Int  # steps per bin

    @property
    def n_bins(self) -> int:
        return len(self.sizes)

    def bins(self, steps: Real) -> tuple[Int, Real]:
        """The bin of each step, and how many steps it lies beyond the outer ones."""
        ends = np.cumsum(self.sizes)
        place = steps - self.first
        inside = np.clip(place, 0.0, ends[-1] - 1.0)
        return np.searchsorted(ends, inside, side="right"), np.minimum(np.abs(place - inside), FARTHEST)

    def cuts(self) -> list[float]:
        return [self.start + self.width * (self.first + int(step)) for step in np.cumsum(self.sizes)[:-1]]

    def log_sizes(self) -> Real:
        """Of each bin the logarithm of what its share is divided by: its size, and beyond an outer one as much as a step."""
        return np.asarray(np.log(reached(self.sizes)) + np.log(self.width))

    def drawn(self, bins: Int, rng: np.random.Generator) -> Real:
        """A value in each of these bins, or beyond an outer one, where the density halves from step to step."""
        before, after = (bins == 0).astype(np.int64), (bins == self.n_bins - 1).astype(np.int64)
        size = self.sizes[bins]
        place = np.floor(rng.random(len(bins)) * (before + size + after)).astype(np.int64) - before
        beyond = rng.geometric(0.5, len(bins)) - 1
        place = np.where(place < 0, -1 - beyond, np.where(place >= size, place + beyond, place))
        steps = self.first + (np.cumsum(self.sizes) - self.sizes)[bins] + place
        return np.asarray(self.start + self.width * (steps + rng.random(len(bins))))


@dataclass(frozen=True)
class BlockCells:
    """Log-shares of the cells of a block: of those that rows have, by number, and of each of the others, per class."""

    axes: tuple[BlockAxis, ...]
    numbers: Int  # ascending
    seen: Real  # (cells, classes)
    empty: Real
    n_empty: float

    def of(self, columns: Sequence[int]) -> BlockCells:
        """The same of some of the columns, whatever the others are."""
        axes = tuple(self.axes[j] for j in columns)
        bins = np.unravel_index(self.numbers, [axis.n_bins for axis in self.axes])
        here = _numbered([bins[j] for j in columns], axes)
        numbers, where = np.unique(here, return_inverse=True)
        others = prod(axis.n_bins for j, axis in enumerate(self.axes) if j not in columns)
        with np.errstate(divide="ignore"):
            some = np.zeros((len(numbers), len(self.empty)))
            np.add.at(some, where, np.exp(self.seen))
            some += (others - np.bincount(where, minlength=len(numbers)))[:, None] * np.exp(self.empty)
            seen, empty = np.log(some), np.log(float(others)) + self.empty
        return BlockCells(axes, numbers, seen, empty, float(prod(axis.n_bins for axis in axes) - len(numbers)))

    def log_densities(self, steps: Real) -> Real:
        """Of cells of steps, (cells, columns), the log density in each class."""
        places = [axis.bins(steps[:, j]) for j, axis in enumerate(self.axes)]
        numbers = _numbered([bins for bins, _ in places], self.axes)
        at = np.minimum(np.searchsorted(self.numbers, numbers), max(len(self.numbers) - 1, 0))
        found = np.broadcast_to(self.empty, (len(numbers), len(self.empty)))
        if len(self.numbers):
            found = np.where((self.numbers[at] == numbers)[:, None], self.seen[at], found)
        sizes = sum(axis.log_sizes()[bins] for axis, (bins, _) in zip(self.axes, places, strict=True))
        beyond = sum(far for _, far in places) * np.log(2.0)
        return np.asarray(found - (sizes + beyond)[:, None])

    def drawn(self, n: int, c: int, rng: np.random.Generator) -> list[Real]:
        share = np.append(np.exp(self.seen[:, c]), self.n_empty * np.exp(self.empty[c]))
        chosen = rng.choice(len(share), n, p=share / share.sum())
        numbers = np.append(self.numbers, -1)[chosen]
        every = prod(axis.n_bins for axis in self.axes)
        while (other := np.flatnonzero(numbers < 0)).size:
            tried = rng.integers(every, size=len(other))
            numbers[other] = np.where(np.isin(tried, self.numbers), -1, tried)
        bins = np.unravel_index(numbers, [axis.n_bins for axis in self.axes])
        return [axis.drawn(np.asarray(each), rng) for axis, each in zip(self.axes, bins, strict=True)]


def _numbered(bins: Sequence[Any], axes: Sequence[BlockAxis]) -> Int:
    return np.asarray(np.ravel_multi_index(tuple(bins), [axis.n_bins for axis in axes]), dtype=np.int64)


def joined(join: Join, keys: Any, cells: Real, d: int) -> list[Joined]:
    """The bins of each column: those of a histogram of it alone, but wider, since rows are spread over more cells."""
    codes = np.array(keys, dtype=np.int64).reshape(len(keys), d)
    found = []
    for j in range(d):
        own, where = np.unique(codes[:, j], return_inverse=True)
        rows = np.zeros((len(own), cells.shape[1]))
        np.add.at(rows, where, cells)
        found.append(join(tuple(own.tolist()), rows, d))
    return found


def occupied(join: Join, feature: Feature, keys: Any, cells: Real) -> tuple[tuple[BlockAxis, ...], Int, Real]:
    """The bins of each column, the cells that rows have, and their rows per class."""
    d = len(feature.inputs)
    bins = joined(join, keys, cells, d)
    if prod(len(each.sizes) for each in bins) > MOST_COMBINATIONS:
        raise too_many_combinations(feature.name, d)
    codes = np.array(keys, dtype=np.int64).reshape(len(keys), d)
    width = grid.widths(feature)
    scales = zip(grid.starts(feature).tolist(), width.tolist(), bins, strict=True)
    axes = tuple(BlockAxis(start, min(w * each.width, 2.0**1023), each.first, each.sizes) for start, w, each in scales)
    steps = (codes[:, j] >> round(np.log2(each.width)) for j, each in enumerate(bins))
    places = [axis.bins(own.astype(np.float64))[0] for axis, own in zip(axes, steps, strict=True)]
    numbers, where = np.unique(_numbered(places, axes), return_inverse=True)
    rows = np.zeros((len(numbers), cells.shape[1]))
    np.add.at(rows, where, cells)
    return axes, numbers, rows


def cells_of(
    join: Join, feature: Feature, keys: Any, rows: Real, alpha: float, choice: Choice, rng: np.random.Generator
) -> BlockCells:
    axes, numbers, cells = occupied(join, feature, keys, rows)
    every = float(prod(axis.n_bins for axis in axes))
    seen, empty = shares(cells, every, alpha, choice, rng)
    return BlockCells(axes, numbers, seen, empty, every - len(numbers))


@dataclass(frozen=True)
class HistogramBlockParameters(Parameters):
    """The cells of some blocks."""

    features: tuple[Feature, ...]
    cells: tuple[BlockCells, ...]

    def parts(self, rows: ColumnReader) -> list[tuple[Any, ...]]:
        parts = []
        for feature, cells in zip(self.features, self.cells, strict=True):
            width = np.array([axis.width for axis in cells.axes])
            numbers, found = grid.distinct(grid.steps(rows, feature, width))
            table, there = np.zeros((len(found), len(cells.empty))), ~np.isnan(found)
            patterns, which = np.unique(there, axis=0, return_inverse=True)
            for p, pattern in enumerate(patterns):
                if columns := np.flatnonzero(pattern).tolist():
                    at = np.flatnonzero(which.reshape(-1) == p)
                    known = cells if len(columns) == len(cells.axes) else cells.of(columns)
                    table[at] = known.log_densities(found[at][:, columns])
            codes = np.where(there.any(axis=1)[numbers], numbers, -1) if len(found) else numbers
            parts.append(line_by_line(codes, table))
        return parts

    def axes(self, f: int) -> tuple[str, ...]:
        return self.features[f].inputs

    def cuts(self, column: str | None) -> list[float]:
        """The edges between the bins of a column of the one block, in order."""
        names = self.features[0].columns
        if column not in names:
            raise errors.bad_setting("feature", column, f"one column of the block: {errors.listed(names)}")
        return self.cells[0].axes[names.index(column)].cuts()

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        columns: list[NDArray[Any]] = []
        for feature, cells in zip(self.features, self.cells, strict=True):
            drawn = np.empty((len(feature.inputs), len(classes)))
            for c, rows in enumerate(by_class(classes, len(cells.empty))):
                drawn[:, rows] = cells.drawn(len(rows), c, rng)
            columns += list(drawn)
        return columns
