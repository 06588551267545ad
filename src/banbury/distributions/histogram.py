"""Histogram: the share of each bin, whatever the shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.distributions import dirichlet
from banbury.distributions.family import Choice, Columns, Family, Feature, Shape, by_class, check_finite, check_positive
from banbury.sums import Counts, Keys, Moments

Real = NDArray[np.float64]
Int = NDArray[np.int64]

MOST_BINS = 4096


def check_grid(start: float | None, width: float | None) -> None:
    if (start is None) != (width is None):
        raise errors.bad_setting("start and width", (start, width), "given together")
    if width is not None:
        check_positive("width", width)
    if start is not None:
        check_finite("start", start)


@dataclass(frozen=True, repr=False)
class Histogram(Family):
    """The share of rows in each bin, divided by its width.

    Counting uses fine bins; ``bins`` says how they are joined for estimation: ``"auto"`` (about the Freedman–Diaconis
    width), or the most bins there may be (two at least: 0 is an edge). ``start`` and ``width`` set the bins themselves; they
    are doubled only if there would be more than 4,096. The Dirichlet prior ``alpha`` covers the bins from the lowest to the
    highest occupied in any class and one more on each side; that outer bin's share is spread over it and all beyond, the
    density halving from bin to bin, so that the density has no edge and integrates to one.

    >>> import banbury as bb
    >>> ages = {"age": [3.0, 4.0, 12.0, 13.0], "school": ["none", "none", "high", "high"]}
    >>> tally = bb.count(ages, target="school", features={"age": bb.Histogram(start=0, width=5)})
    >>> bb.estimate(tally).predict({"age": [1.0, 14.0]}).tolist()
    ['none', 'high']
    """

    alpha: float | None = None
    bins: int | Literal["auto"] = "auto"
    start: float | None = None
    width: float | None = None

    name: ClassVar[str] = "histogram"
    shape: ClassVar[Shape] = "bins"
    counting: ClassVar[tuple[str, ...]] = ("start", "width")

    def __post_init__(self) -> None:
        check_grid(self.start, self.width)
        if self.alpha is not None:
            check_positive("alpha", self.alpha, zero=True)
        if self.bins != "auto" and (isinstance(self.bins, bool) or not isinstance(self.bins, int) or self.bins < 1):
            raise errors.bad_setting("bins", self.bins, "'auto' or a whole number from 1 up")

    def doublings(self, codes: Int, rows: Real) -> int:
        """How often the fine bins are doubled before estimation; a function of the totals alone."""
        if not len(codes):
            return 0
        free = self.bins == "auto" and self.width is None
        times = max(0, round(float(np.log2(_freedman_diaconis(codes, rows))))) if free else 0
        most = (
            MOST_BINS if self.bins == "auto" else min(max(self.bins, 2), MOST_BINS)
        )  # 0 is an edge: never one for −1 and 1
        while (codes[-1] >> times) - (codes[0] >> times) + 1 > most:
            times += 1
        return times

    def estimate(
        self, features: tuple[Feature, ...], sums: Counts, choice: Choice, rng: np.random.Generator
    ) -> Histograms:
        alpha = choice.alpha if self.alpha is None else self.alpha
        tables, firsts, widths = [], [], []
        for f, feature in enumerate(features):
            keys, rows = sums.feature(f)
            first, width, cells = self.joined(keys, rows.value)
            share = dirichlet.shares(cells, np.array([0, len(cells)]), np.full(len(cells), alpha), choice.how, rng)
            share[[0, -1]] /= 2.0
            firsts.append(first)
            widths.append(min(width * feature.unit, 2.0**1023))
            tables.append(dirichlet.log(share) - np.log(widths[-1]))
        return Histograms(features, tuple(firsts), tuple(widths), tuple(tables))

    def joined(self, keys: Keys, cells: Real) -> tuple[int, float, Real]:
        """The lowest bin's number, the width in fine bins, and rows per bin; with one bin more on each side."""
        codes = np.array(keys, dtype=np.int64)
        times = self.doublings(codes, cells.sum(axis=1))
        coarse = codes >> times
        low, high = (int(coarse[0]), int(coarse[-1])) if len(coarse) else (0, 0)
        result = np.zeros((high - low + 3, cells.shape[1]))
        np.add.at(result, coarse - low + 1, cells)
        return low - 1, float(2**times), result

    def n_parameters(self, features: tuple[Feature, ...], sums: Counts | Moments) -> list[tuple[int, int]]:
        assert isinstance(sums, Counts)
        return [(len(self.joined(*_cells(sums, f))[2]) - 1, 0) for f in range(len(features))]


def _cells(sums: Counts, f: int) -> tuple[Keys, Real]:
    keys, rows = sums.feature(f)
    return keys, rows.value


def _freedman_diaconis(codes: Int, rows: Real) -> float:
    """2 · IQR / n^(1/3) in bins, at least 1; from the spread of the occupied bins where half the rows share one bin."""
    below = np.cumsum(rows)
    low, high = (codes[np.searchsorted(below, share * below[-1])] for share in (0.25, 0.75))
    spread = float(high - low) or float(codes[-1] - codes[0]) / 4.0
    return float(max(1.0, 2.0 * spread / float(below[-1]) ** (1.0 / 3.0)))


@dataclass(frozen=True)
class Histograms:
    """Log densities of the bins of each feature, (bins, classes), from bin ``first`` on, ``width`` wide."""

    features: tuple[Feature, ...]
    firsts: tuple[int, ...]
    widths: tuple[float, ...]
    tables: tuple[Real, ...]

    def parts(self, rows: Columns) -> list[tuple[Any, ...]]:
        columns = [rows.numbers([feature.name])[0].reshape(-1) for feature in self.features]
        origins = [feature.origin for feature in self.features]
        bins = zip(columns, origins, self.widths, self.firsts, self.tables, strict=True)
        return [("histogram", *each) for each in bins]

    def select(self, index: Sequence[int]) -> Histograms:
        features, tables = tuple(self.features[f] for f in index), tuple(self.tables[f] for f in index)
        return Histograms(features, tuple(self.firsts[f] for f in index), tuple(self.widths[f] for f in index), tables)

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for feature, first, width, table in zip(self.features, self.firsts, self.widths, self.tables, strict=True):
            share = np.exp(table + np.log(width))
            share[[0, -1]] *= 2.0
            bins = np.zeros(len(classes), dtype=np.int64)
            for c, rows in enumerate(by_class(classes, table.shape[1])):
                bins[rows] = rng.choice(len(share), size=len(rows), p=share[:, c] / share[:, c].sum())
            beyond = rng.geometric(0.5, len(classes)) - 1
            bins = np.where(bins == 0, -beyond, np.where(bins == len(share) - 1, bins + beyond, bins))
            columns.append(feature.origin + width * (first + bins + rng.random(len(classes))))
        return columns

    def spread(self, f: int) -> tuple[Real, Real]:
        """Of a feature: its mean and deviation in each class, what lies beyond the outer bins taken as within them."""
        share = self._masses(f)
        share[[0, -1]] *= 2.0
        bins = np.arange(len(share)) + 0.5
        mean = bins @ share
        deviation = np.sqrt(((bins[:, None] - mean) ** 2 * share).sum(axis=0))
        return self._edges(f)[0] + self.widths[f] * mean, self.widths[f] * deviation

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """P(x < cut | class) and P(x ≥ cut | class), (cuts, classes)."""
        edges, masses = self._edges(f), self._masses(f)
        below = _below(edges, masses, self.widths[f], cuts)
        return below, _below(-edges[::-1], masses[::-1], self.widths[f], -cuts)

    def nearest_edges(self, f: int, cuts: Real) -> Real:
        """For each of these numbers the edge of a bin that lies nearest."""
        edges = self._edges(f)
        at = np.clip(np.round((cuts - edges[0]) / self.widths[f]), 0, len(edges) - 1)
        return np.asarray(edges[at.astype(np.int64)])

    def _edges(self, f: int) -> Real:
        bins = self.firsts[f] + np.arange(len(self.tables[f]) + 1)
        return np.asarray(self.features[f].origin + self.widths[f] * bins, dtype=np.float64)

    def _masses(self, f: int) -> Real:
        """The shares of the bins, (bins, classes); beyond each outer bin lies as much again."""
        return np.asarray(np.exp(self.tables[f]) * self.widths[f])


def _below(edges: Real, masses: Real, width: float, cuts: Real) -> Real:
    """The mass below each cut, (cuts, classes): even within a bin; of what lies beyond the first, half in each next one."""
    sums = np.cumsum(np.concatenate([masses[:1], masses]), axis=0)
    within = np.stack([np.interp(cuts, edges, each) for each in sums.T], axis=1)
    far = np.maximum(edges[0] - cuts, 0.0) / width
    whole = np.floor(far)
    left = masses[0] * (2.0**-whole * (1.0 - (far - whole) / 2.0))[:, None]
    far = np.maximum(cuts - edges[-1], 0.0) / width
    whole = np.floor(far)
    right = masses[-1] * (1.0 - 2.0**-whole * (1.0 - (far - whole) / 2.0))[:, None]
    return np.asarray(np.where((cuts < edges[0])[:, None], left, within + right))
