"""Kernel density: a sum of kernels, one on every row. Rows are counted in fine bins, so that counts add and subtract.

On a block of columns, each row has a product of kernels, one per column, each with its own bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real, divide
from banbury.families.bins import bin_starts, bin_widths, smallest_gap
from banbury.families.dirichlet import log
from banbury.families.evidence import Comparison, InformativeValues
from banbury.families.family import (
    UNUSED_GENERATOR,
    Choice,
    ColumnReader,
    Family,
    Feature,
    Features,
    HeldOutRows,
    NumberColumn,
    NumericParameters,
    Parameters,
    check_positive,
    number_column,
    rows_by_class,
)
from banbury.families.histogram import GridFamily, Histogram, numbers_of_setting
from banbury.families.moments import CELLS
from banbury.sums import ROUNDING, Counts, Keys
from banbury.threads import n_threads

RULES = ("scott", "silverman", "leave-one-out")
SEARCH_STEPS = (0.25, 0.125, 0.0625)  # doublings from the best bandwidth to the next; at first half of one
MOST_BINS_PER_BANDWIDTH = 32  # of a column; more do not change its likelihood
SPARSE = 16  # where the range has this many times as many bins as are occupied, they are added pair by pair
NORMAL_REACH = 9.0  # bandwidths: beyond, a normal kernel's height is below 1e-18 ...
LONELY = 1e-11  # ... and nothing to a density above this share of all rows
MOST_ROWS_TRIED = 10_000  # rows of a column whose family is chosen: every row is scored by every bin
NEIGHBOURS = 256  # occupied bins on either side of a lonely one
BLOCK_SEARCH_STEPS = (1.0, 0.5, 0.25, 0.125)  # doublings from the best bandwidth of a block's column to the next
MOST_SWEEPS = 8  # over the columns, with each of these steps
MOST_BLOCK_BINS_PER_BANDWIDTH = 8  # of a block's column; more hardly change its likelihood
MOST_CELLS_LEFT_OUT = 2048  # in one likelihood; of more cells, every second, third, ...

Kernel = Literal["normal", "box", "triangle", "epanechnikov", "biweight", "triweight", "cosine"]

WIDEST = 2.0**480  # bins that a bandwidth may be
SMALLEST = np.finfo(float).tiny  # the least density of a row that is left out
MIXED_IN = 1e-6  # of a normal over all classes, so that a compact kernel makes nothing impossible


def means_and_deviations(centres: Real, rows: Real) -> tuple[Any, Any]:
    """Returns the mean and standard deviation of ``centres`` (bins) weighted by ``rows``; or, if they are bins ×
    columns, of each column. ``rows`` has the rows of each bin.

    The variance is divided by n − 1, as in SciPy, or by n / 2 if the weights sum to less than two.
    """
    n_rows = max(float(rows.sum()), np.finfo(float).tiny)
    reference = centres[rows.argmax()]  # that of the fullest bin; far from 0 a sum would be rounded
    mean = reference + rows @ (centres - reference) / n_rows
    return mean, np.sqrt(rows @ (centres - mean) ** 2 / max(n_rows - 1.0, n_rows / 2.0))


def least_bandwidth(kernel: str, centres: Real, rows: Real) -> float:
    """Returns the least useful bandwidth of a column, in bins, from the centres of its occupied bins, in order, and the
    rows of each. Below it, the density would be a comb of the values that rows are rounded to. ``kernel`` is the
    kernel's name.
    """
    return max(1.0, 0.5 * smallest_gap(centres, rows) / SHAPES[kernel].deviation)


class KernelShape(NamedTuple):
    """A kernel with bandwidth 1: box on [−½, ½), the normal kernel everywhere, the others on [−1, 1].

    Args:
        deviation: Its standard deviation.
        height: Returns the density at u.
        area: Returns the integral up to u.
        draw: Draws random numbers: an array of the given size or shape.
    """

    deviation: float
    height: Callable[[Real], Real]
    area: Callable[[Real], Real]
    draw: Callable[[Generator, Any], Real]


def _beta_shape(power: int, top: float, deviation: float, half_area: Callable[[Real], Real]) -> KernelShape:
    """Returns the kernel ``top`` · (1 − u²)^``power``, with this standard ``deviation``. ``half_area`` returns its
    integral from 0 to u, divided by ``top``.
    """
    return KernelShape(
        deviation,
        lambda u: top * np.maximum(1.0 - u * u, 0.0) ** power,
        lambda u: 0.5 + top * half_area(np.clip(u, -1.0, 1.0)),
        lambda rng, size: 2.0 * rng.beta(power + 1.0, power + 1.0, size) - 1.0,
    )


def _normal_area(u: Real) -> Real:
    """Returns the standard normal distribution function at each u."""
    from scipy.special import ndtr  # a third of a second to import; few need it

    return np.asarray(ndtr(u))


def _triangle_area(u: Real) -> Real:
    """Returns the integral of the triangle kernel up to each u."""
    u = np.clip(u, -1.0, 1.0)
    return 0.5 + u - 0.5 * u * np.abs(u)


SHAPES: dict[str, KernelShape] = {
    "normal": KernelShape(
        1.0,
        lambda u: np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi),
        _normal_area,
        lambda rng, size: rng.standard_normal(size),
    ),
    "box": KernelShape(
        12.0**-0.5,
        lambda u: ((u >= -0.5) & (u < 0.5)).astype(np.float64),
        lambda u: np.clip(u + 0.5, 0.0, 1.0),
        lambda rng, size: rng.random(size) - 0.5,
    ),
    "triangle": KernelShape(
        6.0**-0.5,
        lambda u: np.maximum(1.0 - np.abs(u), 0.0),
        _triangle_area,
        lambda rng, size: rng.random(size) - rng.random(size),
    ),
    "epanechnikov": _beta_shape(1, 0.75, 5.0**-0.5, lambda u: u - u**3 / 3.0),
    "biweight": _beta_shape(2, 15.0 / 16.0, 7.0**-0.5, lambda u: u - 2.0 * u**3 / 3.0 + u**5 / 5.0),
    "triweight": _beta_shape(3, 35.0 / 32.0, 1.0 / 3.0, lambda u: u - u**3 + 3.0 * u**5 / 5.0 - u**7 / 7.0),
    "cosine": KernelShape(
        (1.0 - 8.0 / np.pi**2) ** 0.5,
        lambda u: np.where(np.abs(u) <= 1.0, np.pi / 4.0 * np.cos(np.pi / 2.0 * u), 0.0),
        lambda u: 0.5 + 0.5 * np.sin(np.pi / 2.0 * np.clip(u, -1.0, 1.0)),
        lambda rng, size: 2.0 / np.pi * np.arcsin(2.0 * rng.random(size) - 1.0),
    ),
}


@dataclass(frozen=True, repr=False)
class KernelDensity(GridFamily):
    """Numbers whose density is a sum of normal kernels, one on every row of the class.

    ``bandwidth`` is a number in the units of the column, or a rule for each class: "scott", "silverman" (both set the
    standard deviation of the kernel, as in SciPy) or "leave-one-out", which maximises the likelihood of each row under
    the kernels of the others. Rows are kept as fine bins, so the bandwidth is at least one bin, and a row is placed at
    the centre of its bin. "gibbs" draws the weights of the bins (the Bayesian bootstrap); "mle", "map", "mean" and
    "predictive" are the same.

    A block of columns has a product of kernels on every row, each column with its own bandwidth. ``bandwidth``,
    ``start`` and ``width`` can then be given for each column.

    >>> import banbury as bb
    >>> waits = {"wait": [1.0, 1.2, 4.8, 5.0, 2.9, 3.1], "kind": ["a", "a", "a", "a", "b", "b"]}
    >>> tally = bb.count(waits, target="kind", features={"wait": bb.KernelDensity(bandwidth=0.3)})
    >>> bb.estimate(tally).predict({"wait": [1.1, 3.0, 4.9]}).tolist()
    ['a', 'b', 'a']
    """

    kernel: Kernel = "normal"
    bandwidth: float | tuple[float, ...] | Literal["scott", "silverman", "leave-one-out"] = "scott"
    start: float | tuple[float, ...] | None = None
    width: float | tuple[float, ...] | None = None

    name: ClassVar[str] = "kernel_density"
    per_column: ClassVar[tuple[str, ...]] = ("start", "width", "bandwidth")

    def __post_init__(self) -> None:
        """Raises unless the settings are valid and go together."""
        super().__post_init__()
        if not isinstance(self.kernel, str) or self.kernel not in SHAPES:
            raise errors.unknown_choice("kernel", self.kernel, SHAPES)
        if isinstance(self.bandwidth, str):
            if self.bandwidth not in RULES:
                raise errors.unknown_choice("bandwidth", self.bandwidth, RULES)
        else:
            for number in numbers_of_setting(self.bandwidth) or (self.bandwidth,):
                check_positive("bandwidth", number)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """Returns this family for a column with many values and few enough rows to score each by all others."""
        return () if column.has_few_values or column.n_rows > MOST_ROWS_TRIED else (self,)

    def estimate(self, features: Features, sums: Counts, choice: Choice, rng: Generator) -> KernelDensityParameters:
        """Places the kernels of each feature on its counts of fine bins (``sums``), as ``choice`` says; ``rng`` draws
        their weights under "gibbs".
        """
        kernels = (self._kernels(feature, *sums.feature(f), choice, rng) for f, feature in enumerate(features))
        return KernelDensityParameters(features, tuple(kernels))

    def _kernels(self, feature: Feature, keys: Any, rows: Integers, choice: Choice, rng: Generator) -> Kernels:
        """Returns the kernels of one feature. ``keys`` are the numbers of its occupied bins, or of the bins of a
        block's cells in each column, and ``rows`` their counts (bins × classes).
        """
        n_columns = len(feature.inputs)
        n_classes = rows.shape[1]
        if not keys:
            # One centre with weight 0, and bandwidth 1.
            no_kernels = np.zeros((1, n_columns)), np.zeros((1, n_classes)), np.ones((n_classes, n_columns))
            return Kernels(self.kernel, *no_kernels, np.array([np.zeros(n_columns), np.ones(n_columns)]))
        weights = rows.value  # of bins (bins × classes)
        rows_of_all = weights.sum(axis=1, keepdims=True)  # of all classes (bins × 1)
        # A class without rows here: all classes together.
        weights = np.where(weights.sum(axis=0) > 0, weights, rows_of_all)
        centres = np.array(keys, dtype=np.float64).reshape(len(keys), n_columns) + 0.5  # in bins (bins × columns)
        bandwidths = np.clip(self._bandwidths(feature, centres, weights), 1.0, WIDEST)  # in bins (classes × columns)
        if choice.how == "gibbs":
            drawn_weights = rng.standard_gamma(weights)
            weights = np.where(drawn_weights.sum(axis=0) > 0, drawn_weights, weights)
        mean_of_all, deviation_of_all = means_and_deviations(centres, rows_of_all[:, 0])  # (columns each)
        wide_normal = np.array([mean_of_all, np.maximum(deviation_of_all, 1.0)])  # mixed into compact kernels
        return Kernels(self.kernel, centres, weights / weights.sum(axis=0), bandwidths, wide_normal)

    def _bandwidths(self, feature: Feature, centres: Real, rows_in_bins: Real) -> Real:
        """Returns the bandwidth of each class and column, in bins (classes × columns), from the centres of the occupied
        bins (bins × columns) and the rows in each (``rows_in_bins``, bins × classes).
        """
        if not isinstance(self.bandwidth, str):
            bandwidths = np.broadcast_to(np.asarray(self.bandwidth, dtype=np.float64), centres.shape[1:])  # (columns)
            return np.tile(bandwidths / bin_widths(feature), (rows_in_bins.shape[1], 1))
        return np.array([self._bandwidths_by_rule(centres, rows, bool(feature.columns)) for rows in rows_in_bins.T])

    def _bandwidths_by_rule(self, centres: Real, rows: Real, is_block: bool = False) -> Real:
        """Returns the bandwidth of each column for one class, in bins (columns), by the rule that was chosen.
        ``centres`` are those of the occupied bins (bins × columns), and ``rows`` the rows of the class in each bin.

        "leave-one-out" searches from Scott's bandwidth for the one with the highest likelihood of each row under the
        kernels of the others. ``is_block``: whether the columns are a block, whose bandwidths are searched together.
        """
        n_columns = centres.shape[1]
        effective_rows = rows.sum()
        if self.bandwidth == "silverman":
            effective_rows = effective_rows * (n_columns + 2.0) / 4.0
        # Of each column, in standard deviations of the kernel.
        deviation = means_and_deviations(centres, rows)[1] / SHAPES[self.kernel].deviation
        bandwidths = deviation * effective_rows ** (-1.0 / (n_columns + 4.0))
        if self.bandwidth != "leave-one-out":
            return np.asarray(bandwidths)
        if is_block:
            return _search_block_bandwidths(self.kernel, centres, rows, bandwidths)
        tried, likelihoods = self._try_bandwidths(centres[:, 0], rows, float(bandwidths[0]))  # bandwidths, ascending
        return tried[[likelihoods.argmax()]] if len(tried) else bandwidths

    def _try_bandwidths(self, centres: Real, rows: Real, rule: float) -> tuple[Real, Real]:
        """Returns bandwidths of one column, in bins and in ascending order, and the log-likelihood of the rows of one
        class under each, where every row is left out of its own density. ``centres`` are those of the bins, ``rows``
        has the rows in each, and ``rule`` is the bandwidth in the middle of those tried.

        Both are empty if fewer than two bins are occupied.
        """
        centres = centres[rows > 0]
        rows = rows[rows > 0]
        if len(centres) < 2:
            return np.empty(0), np.empty(0)
        least = least_bandwidth(self.kernel, centres, rows)

        def likelihoods(tried: Iterable[float]) -> dict[float, float]:
            """Returns the leave-one-out log-likelihood of the rows by bandwidth: each of ``tried``, raised to the least
            useful one.
            """
            return {
                bandwidth: self._likelihood_left_out(centres, rows, bandwidth)
                for bandwidth in (max(bandwidth, least) for bandwidth in tried)
            }

        # Half a doubling apart, from a 64th of the rule to eight times.
        by_bandwidth = likelihoods(rule * 2.0 ** (half_doublings / 2.0) for half_doublings in range(-12, 7))
        for step in SEARCH_STEPS:
            likeliest = max(by_bandwidth, key=lambda bandwidth: by_bandwidth[bandwidth])
            by_bandwidth |= likelihoods([likeliest / 2.0**step, likeliest * 2.0**step])
        tried = np.array(sorted(by_bandwidth))
        return tried, np.array([by_bandwidth[bandwidth] for bandwidth in tried.tolist()])

    def _likelihood_left_out(self, centres: Real, rows: Real, bandwidth: float) -> float:
        """Returns the log-likelihood of the ``rows`` of bins with these ``centres``, each row left out of its own
        density; ``bandwidth`` is in bins. ``self.kernel`` is the kernel's name.
        """
        centres, rows, joined_bandwidth = _join_bins(centres, rows, bandwidth)
        own_weight = np.minimum(rows, 1.0)  # one row of a bin; all of it where weights make it less
        n_rows = rows.sum()
        top = SHAPES[self.kernel].height(np.zeros(1))[0]  # the kernel's height at its centre
        # The sum of the heights of all other rows' kernels, in each bin.
        heights = _density_of_other_bins(self.kernel, centres, rows, joined_bandwidth) + (rows - own_weight) * top
        log_densities = _mean_of_others(np.log(np.maximum(heights, SMALLEST)), own_weight, n_rows)
        return float(rows @ log_densities) - float(n_rows * np.log(bandwidth))

    def n_parameters(self, features: Features, sums: Counts) -> list[tuple[int, int]]:
        """Returns a pair for each feature: its number of parameters per class, and the number that all classes share;
        ``sums`` has the occupied bins.
        """
        features_and_bins = zip(features, sums.keys, strict=True)
        return [(max(len(keys) - 1, 0) + len(feature.inputs), 0) for feature, keys in features_and_bins]

    def join_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        """Returns the rows per bin and class, with fine bins joined like those of a histogram. ``keys`` are the fine
        bins, and ``cells`` their rows (bins × classes).
        """
        return Histogram().join_cells(feature, keys, cells)

    def can_leave_one_out(self, features: Features, choice: Choice, weighted: bool) -> bool:
        """Whether ``leave_one_out`` applies: to single columns, not to blocks."""
        return not features.has_blocks and super().can_leave_one_out(features, choice, weighted)

    def leave_one_out(self, features: Features, sums: Counts, choice: Choice, held_out: HeldOutRows) -> Real:
        """Returns log P(values | class) of each held-out row without itself (rows × classes). Only the density of the
        row's own class changes; the bandwidths are those of all rows, whose counts are ``sums``.
        """
        parameters = self.estimate(features, sums, choice, UNUSED_GENERATOR)
        scores = held_out.scores(parameters, want="parts")  # rows × features × classes
        for f, (feature, kernels) in enumerate(zip(features, parameters.kernels, strict=True)):
            keys, counts = sums.feature(f)  # the occupied bins, and their rows (bins × classes)
            if not keys:
                continue
            numbers = number_column(held_out.rows, feature.name).astype(np.float64)
            rows_with_value = np.flatnonzero(~np.isnan(numbers))
            numbers = np.ascontiguousarray(numbers[rows_with_value])
            z = (numbers - feature.origin) / feature.unit  # in bins
            bin_numbers = _core.bins(numbers, feature.origin, feature.unit, held_out.threads)
            # The place of each number's bin among the occupied ones.
            bins = np.searchsorted(np.array(keys, dtype=np.int64), bin_numbers)
            labels = held_out.labels[rows_with_value]  # the class of each, and its weight
            weights = held_out.weight[rows_with_value]
            class_is_empty = counts.value.sum(axis=0) <= 0  # such a class has the kernels of all rows, the left-out too
            for c in range(len(class_is_empty)):
                # The numbers, by their place in ``z``, whose kernels are in this class.
                own_numbers = np.flatnonzero((labels == c) | class_is_empty[c])
                for chunk in np.array_split(own_numbers, max(1, len(own_numbers) * len(keys) // CELLS)):
                    log_density = _density_without(kernels, counts.value, c, z[chunk], bins[chunk], weights[chunk])
                    scores[rows_with_value[chunk], f, c] = log_density - np.log(feature.unit)
        return np.asarray(scores.sum(axis=1))

    def leave_one_out_notes(self) -> list[str]:
        """Returns what is still estimated from all rows when one is left out, as phrases for people."""
        return ["the bandwidths of kernels"]


def try_bandwidths(feature: Feature, sums: Any, f: int, c: int) -> tuple[Real, Real] | None:
    """Returns bandwidths of column f (``feature``) in class number c, in its own unit, and for each the mean
    log-likelihood of a row under the kernels of the others. ``sums`` are those of all columns.

    Returns None if the column has no kernel density, and empty arrays if it has fewer than two values.
    """
    family = feature.family
    if not isinstance(family, KernelDensity):
        return None
    keys, rows = sums.feature(f)  # the occupied bins, and their rows (bins × classes)
    centres = np.array(keys, dtype=np.float64) + 0.5  # in bins
    class_rows = rows.value[:, c]  # of each bin
    if not class_rows.any():
        return np.empty(0), np.empty(0)
    (scott,) = replace(family, bandwidth="scott")._bandwidths_by_rule(centres[:, None], class_rows)
    tried, likelihoods = family._try_bandwidths(centres, class_rows, float(scott))  # bandwidths in bins
    return tried * feature.unit, likelihoods / class_rows.sum() - np.log(feature.unit)


def _join_bins(centres: Real, rows: Real, bandwidth: float) -> tuple[Real, Real, float]:
    """Joins bins in pairs until the bandwidth is only a few bins. Returns the centres and rows of the new bins, and the
    bandwidth, in new bins. ``centres`` are those of the old bins, and ``rows`` the rows in each.
    """
    n_joins = max(int(np.floor(np.log2(bandwidth / MOST_BINS_PER_BANDWIDTH))), 0)
    if not n_joins:
        return centres, rows, bandwidth
    joined, new_bin = np.unique(np.floor(centres / 2.0**n_joins), return_inverse=True)  # new bins; that of each old one
    return joined, np.asarray(np.bincount(new_bin, rows), dtype=np.float64), bandwidth / 2.0**n_joins


def _mean_of_others(log_heights: Real, own_weight: Real, n_rows: float) -> Real:
    """Returns log densities of rows (bins) from the logarithm of the sum of all other rows' kernels at each of them
    (``log_heights``), which is divided by their weight: ``n_rows``, the weight of all rows, less the row's
    ``own_weight``. It is at least that of the smallest number, also where no other rows are left.
    """
    others = n_rows - own_weight
    log_densities = log_heights - np.log(np.maximum(others, SMALLEST))
    return np.where(others > ROUNDING * n_rows, log_densities, np.log(SMALLEST))


def _density_of_other_bins(kernel: str, centres: Real, rows: Real, bandwidth: float) -> Real:
    """Returns for each bin Σ rows · K((centre − other centre) / bandwidth) over all other bins (bins). Bins far away
    are added only where no bin is near. Centres and bandwidth are in bins; ``rows`` has the rows of each bin, and
    ``kernel`` is its name.

    Terms are added directly, because the rounding of an FFT would decide the density of isolated rows.
    """
    density = _density_of_near_bins(kernel, centres, rows, bandwidth, NORMAL_REACH if kernel == "normal" else 1.0)
    if kernel == "normal":
        isolated = np.flatnonzero(density < LONELY * rows.sum())  # places of bins
        for some_bins in np.array_split(isolated, len(isolated) // 256 + 1):
            # The places of their neighbours among the bins (some bins × neighbours), and whether there are such bins.
            neighbours = some_bins[:, None] + np.concatenate([np.arange(-NEIGHBOURS, 0), np.arange(1, NEIGHBOURS + 1)])
            exists = (neighbours >= 0) & (neighbours < len(centres))
            neighbours = np.clip(neighbours, 0, len(centres) - 1)
            heights = SHAPES[kernel].height((centres[some_bins, None] - centres[neighbours]) / bandwidth)
            density[some_bins] = (heights * rows[neighbours] * exists).sum(axis=1)
    return density


def _density_of_near_bins(kernel: str, centres: Real, rows: Real, bandwidth: float, reach: float) -> Real:
    """Returns for each bin Σ rows · K((centre − other centre) / bandwidth) over the other bins within ``reach``
    bandwidths (bins). Centres, which are in order, and bandwidth are in bins; ``rows`` has the rows of each bin, and
    ``kernel`` is its name.
    """
    n_bins_in_reach = int(reach * bandwidth) + 1
    if centres[-1] - centres[0] > SPARSE * len(centres):
        density = np.empty(len(centres))
        for some_bins in np.array_split(np.arange(len(centres)), len(centres) // 64 + 1):
            # The places of the bins in their reach: from ``low`` up to, but not including, ``high``.
            low, high = np.searchsorted(
                centres, [centres[some_bins[0]] - n_bins_in_reach, centres[some_bins[-1]] + n_bins_in_reach + 1]
            )
            heights = SHAPES[kernel].height((centres[some_bins, None] - centres[low:high]) / bandwidth)
            heights[some_bins - some_bins[0], some_bins - low] = 0.0  # of a bin with itself
            density[some_bins] = heights @ rows[low:high]
        return density
    bin_numbers = (centres - centres[0]).astype(np.int64)  # counted from the first
    # At every distance in reach, a bin apart.
    heights = SHAPES[kernel].height(np.arange(-n_bins_in_reach, n_bins_in_reach + 1) / bandwidth)
    heights[n_bins_in_reach] = 0.0  # of a bin with itself
    return np.asarray(np.convolve(np.bincount(bin_numbers, rows), heights)[n_bins_in_reach + bin_numbers])


def _density_without(kernels: Kernels, cells: Real, c: int, z: Real, bins: Int, weights: Real) -> Real:
    """Returns the log density, per bin, of each value in class c (values), with its own weight left out of its own bin.

    It is 0 where no rows are left.

    Args:
        kernels: The kernels of the column, from all rows.
        cells: The rows in each bin (bins × classes).
        z: The values, in bins.
        bins: The place of each value's bin among the bins of ``cells``.
        weights: The weight of each value.
    """
    # The rows in each bin without the value's own (values × bins).
    counts = np.broadcast_to(cells[:, c], (len(z), len(cells))).copy()
    value_numbers = np.arange(len(z))
    counts[value_numbers, bins] = np.maximum(counts[value_numbers, bins] - weights, 0.0)
    class_is_empty = ~counts.any(axis=1)  # of each value: whether no other row is left
    if class_is_empty.any():  # a class without rows: all classes together
        counts_of_all = np.broadcast_to(cells.sum(axis=1), (int(class_is_empty.sum()), len(cells))).copy()
        counts_of_all[np.arange(len(counts_of_all)), bins[class_is_empty]] -= weights[class_is_empty]
        counts[class_is_empty] = np.maximum(counts_of_all, 0.0)
    (bandwidth,) = kernels.bandwidth[c]  # of the only column
    distances = (z[:, None] - kernels.centres[:, 0]) / bandwidth  # values × bins
    totals = counts.sum(axis=1)  # of each value
    has_no_rows = totals <= 0
    weights_of_bins = divide(counts, totals[:, None])
    if kernels.kernel == "normal":
        # Values × bins: the logarithm of what each bin adds to the density; and the largest for each value.
        logs = log(weights_of_bins) - 0.5 * distances * distances - 0.5 * np.log(2.0 * np.pi)
        highest = np.where(has_no_rows, 0.0, logs.max(axis=1))
        log_sums = np.log(np.where(has_no_rows, 1.0, np.exp(logs - highest[:, None]).sum(axis=1)))
        return np.where(has_no_rows, 0.0, highest + log_sums - np.log(bandwidth))
    density = (weights_of_bins * SHAPES[kernels.kernel].height(distances)).sum(axis=1) / bandwidth
    mean, deviation = kernels.wide_normal[:, 0]  # of the normal distribution that is mixed in
    log_normal_density = -0.5 * ((z - mean) / deviation) ** 2 - np.log(deviation * np.sqrt(2.0 * np.pi))
    mixed_density = (1.0 - MIXED_IN) * density + MIXED_IN * np.exp(log_normal_density)
    log_mixed_density = np.where(
        mixed_density > 0,
        np.log(np.where(mixed_density > 0, mixed_density, 1.0)),
        np.log(MIXED_IN) + log_normal_density,
    )
    return np.where(has_no_rows, 0.0, log_mixed_density)


# Blocks ---------------------------------------------------------------------------------------------------------------


def _search_block_bandwidths(kernel: str, centres: Real, rows: Real, rule: Real) -> Real:
    """Returns the bandwidths of a block's columns, in bins, with the highest leave-one-out likelihood of one class's
    rows. ``centres`` are those of cells (cells × columns), ``rows`` has the rows in each, and ``kernel`` is the
    kernel's name. The search starts at ``rule`` (columns); it changes all bandwidths together first, then each of them,
    in smaller and smaller steps.
    """
    has_rows = rows > 0  # of each cell
    centres = centres[has_rows]
    rows = rows[has_rows]
    if len(centres) < 2:
        return rule
    likelihoods: dict[tuple[float, ...], float] = {}  # by the bandwidths of the columns

    def likelier(tried: Real, best: Real) -> Real:
        """Returns whichever of two bandwidths of the columns, ``tried`` and ``best`` (columns each), makes the rows
        likelier; ``best`` if they are equal. Keeps the likelihoods that it computes.
        """
        for bandwidths in (tried, best):
            if tuple(bandwidths) not in likelihoods:
                likelihoods[tuple(bandwidths)] = _block_likelihood(kernel, centres, rows, bandwidths)
        return tried if likelihoods[tuple(tried)] > likelihoods[tuple(best)] else best

    least_bandwidths = np.array([_least_bandwidth_of_column(kernel, column, rows) for column in centres.T])
    best = np.maximum(rule, least_bandwidths)  # the likeliest bandwidths so far (columns)
    for half_doublings in range(-8, 5):
        best = likelier(np.maximum(rule * 2.0 ** (half_doublings / 2.0), least_bandwidths), best)
    for step in BLOCK_SEARCH_STEPS:
        for _ in range(MOST_SWEEPS):
            previous = best
            for j, doublings in product(range(len(rule)), (-step, step)):
                factors = 2.0 ** (doublings * (np.arange(len(rule)) == j))  # 1 but for column j
                best = likelier(np.maximum(best * factors, least_bandwidths), best)
            if best is previous:
                break
    return np.asarray(best)


def _least_bandwidth_of_column(kernel: str, column: Real, rows: Real) -> float:
    """Returns the least useful bandwidth of one column of a block, in bins. ``column`` has the centre of each cell in
    this column, ``rows`` the rows of each cell, and ``kernel`` is the kernel's name.
    """
    column_bins, bin_of_cell = np.unique(column, return_inverse=True)  # centres in order, and which of them cells have
    return least_bandwidth(kernel, column_bins, np.asarray(np.bincount(bin_of_cell, rows), dtype=np.float64))


def _block_likelihood(kernel: str, centres: Real, rows: Real, bandwidth: Real) -> float:
    """Returns the mean log-likelihood of a block's rows of one class, each left out of its own density.

    ``centres`` are the occupied cells (cells × columns), ``rows`` the number of rows in each, ``bandwidth`` has one per
    column, and lengths are in bins. ``kernel`` is the kernel's name.
    """
    # How often bins are joined in pairs, so that the narrowest bandwidth is only a few bins.
    n_joins = max(int(np.floor(np.log2(bandwidth.min() / MOST_BLOCK_BINS_PER_BANDWIDTH))), 0)
    if n_joins:
        # The joined cells (cells × columns), and which of them each old one is in.
        cells, new_cell = np.unique(np.floor(centres / 2.0**n_joins), axis=0, return_inverse=True)
        rows = np.asarray(np.bincount(new_cell.reshape(-1), rows), dtype=np.float64)
        centres = cells + 0.5
        bandwidth = bandwidth / 2.0**n_joins
    # Every k-th cell, with k so large that few enough are left.
    sampled = np.arange(0, len(rows), -(-len(rows) // MOST_CELLS_LEFT_OUT))
    centres = np.ascontiguousarray(centres)
    # Of each sampled cell: the logarithm of the sum of all other rows' kernels.
    log_heights = _core.kernels_left_out(kernel, centres, rows, bandwidth, sampled, n_threads(None))
    own_weight = np.minimum(rows[sampled], 1.0)  # one row of a cell; all of it where weights make it less
    log_densities = _mean_of_others(np.maximum(log_heights, np.log(SMALLEST)), own_weight, rows.sum())
    return float(rows[sampled] @ log_densities / rows[sampled].sum()) - n_joins * len(bandwidth) * float(np.log(2.0))


# Asking ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernels:
    """The kernels of one feature, in bins: one on each occupied bin, or on each cell of a block.

    ``wide_normal`` has the mean and the deviation of a wide normal distribution of all classes, which is mixed into compact
    kernels so that no value is impossible.
    """

    kernel: str
    centres: Real  # (cells, columns)
    weights: Real  # (cells, classes)
    bandwidth: Real  # (classes, columns)
    wide_normal: Real  # (2, columns)


@dataclass(frozen=True)
class KernelDensityParameters(NumericParameters):
    """The kernels of each feature, a column or a block."""

    features: Features
    kernels: tuple[Kernels, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the parts with which the kernel adds up log P(value | class) of the features for each of these rows.
        Kernels are in bins.
        """
        parts: list[_core.Part] = []
        for feature, kernels in zip(self.features, self.kernels, strict=True):
            columns = rows.numbers(feature.inputs)  # arrays of rows, or of rows × columns
            widths = bin_widths(feature)  # of each column, as the next two
            units = 2.0 ** np.floor(np.log2(widths))  # powers of two, so that dividing by them is exact
            scale = widths / units
            # In units instead of bins, in their shapes: (cells × columns), (classes × columns), (2 × columns).
            centres, bandwidth, wide_normal = (
                lengths * scale for lengths in (kernels.centres, kernels.bandwidth, kernels.wide_normal)
            )
            if feature.columns:
                kernel_arrays = (centres, kernels.weights, bandwidth, wide_normal)
                parts.append(_core.ProductPart(columns, bin_starts(feature), units, kernels.kernel, *kernel_arrays))
                continue
            (unit,) = units.tolist()
            constant = np.full(len(bandwidth), -np.log(unit))  # of each class: turns densities into the column's unit
            arrays_of_column = (centres[:, 0], kernels.weights, bandwidth[:, 0], constant, wide_normal[:, 0])
            column = columns[0].reshape(-1)
            parts.append(_core.KernelPart(column, feature.origin, unit, kernels.kernel, *arrays_of_column))
        return parts

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each feature for a row of each of these ``classes`` (class numbers); returns an array per
        column.
        """
        columns: list[NDArray[Any]] = []
        for feature, kernels in zip(self.features, self.kernels, strict=True):
            numbers_in_bins = np.empty((len(classes), len(feature.inputs)))  # rows × columns
            for c, rows in enumerate(rows_by_class(classes, kernels.weights.shape[1])):
                if not len(rows):
                    continue
                # Of the cells; all alike if no row has a value.
                weights = kernels.weights[:, c] if kernels.weights[:, c].any() else np.full(len(kernels.weights), 1.0)
                # Of each row's kernel (rows × columns).
                centres = kernels.centres[rng.choice(len(weights), size=len(rows), p=weights / weights.sum())]
                numbers_in_bins[rows] = centres + kernels.bandwidth[c] * SHAPES[kernels.kernel].draw(rng, centres.shape)
                # Some rows are drawn from the wide normal distribution that is mixed into compact kernels.
                from_wide_normal = (rng.random(len(rows)) < MIXED_IN) & (kernels.kernel != "normal")
                mean, deviation = kernels.wide_normal  # of each column
                shape = (int(from_wide_normal.sum()), numbers_in_bins.shape[1])
                numbers_in_bins[rows[from_wide_normal]] = rng.normal(mean, deviation, shape)
            columns += list((bin_starts(feature) + bin_widths(feature) * numbers_in_bins).T)
        return columns

    def informative_values(self, compared: Comparison) -> Iterator[InformativeValues] | None:
        """Yields the most informative interval of each column for each class that is ``compared``; None for blocks."""
        return None if self.features.has_blocks else super().informative_values(compared)

    def spread(self, f: int) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of feature number f, a single column, in each class (classes
        each). Kernels are in bins, which are ``feature.unit`` wide.
        """
        kernels = self.kernels[f]  # centres (bins × 1), weights (bins × classes), bandwidth (classes × 1)
        feature = self.features[f]
        mean = kernels.centres[:, 0] @ kernels.weights  # in bins, in each class, as the next two
        variance = ((kernels.centres - mean) ** 2 * kernels.weights).sum(axis=0)
        deviation = np.sqrt(variance + (kernels.bandwidth[:, 0] * SHAPES[kernels.kernel].deviation) ** 2)
        return feature.origin + feature.unit * mean, feature.unit * deviation

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """Returns P(value < cut) and P(value ≥ cut) of feature f in each class, for these numbers (cuts × classes
        each). Kernels are in bins; compact ones have a wide normal distribution mixed in.
        """
        from scipy.special import ndtr  # a third of a second to import; few need it

        kernels = self.kernels[f]
        shape = SHAPES[kernels.kernel]
        cuts_in_bins = (cuts - self.features[f].origin) / self.features[f].unit
        distances = cuts_in_bins[:, None] - kernels.centres[:, 0]  # from the centres (cuts × bins)
        tails = []
        for sign in (1.0, -1.0):  # below and above the cuts
            areas = [  # of each class, from its bandwidth and the weights of its bins (cuts)
                shape.area(sign * distances / bandwidth) @ weights
                for bandwidth, weights in zip(kernels.bandwidth[:, 0], kernels.weights.T, strict=True)
            ]
            mass = np.stack(areas, axis=1)  # cuts × classes
            if kernels.kernel != "normal":
                normal_mass = ndtr(sign * (cuts_in_bins - kernels.wide_normal[0]) / kernels.wide_normal[1])
                mass = (1.0 - MIXED_IN) * mass + MIXED_IN * normal_mass[:, None]
            tails.append(mass)
        return tails[0], tails[1]


def bandwidths_of(parameters: Parameters) -> list[Any] | None:
    """Returns the bandwidth of the only feature in each class, in its own unit: a list of numbers, or for a block of
    dictionaries by column name. None for parameters that are no kernel density.
    """
    if not isinstance(parameters, KernelDensityParameters):
        return None
    (feature,) = parameters.features
    bandwidths = (parameters.kernels[0].bandwidth * bin_widths(feature)).tolist()  # classes × columns
    if not feature.columns:
        return [bandwidth for (bandwidth,) in bandwidths]
    return [dict(zip(feature.columns, class_bandwidths, strict=True)) for class_bandwidths in bandwidths]
