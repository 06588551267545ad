"""Histogram: the share of each bin, whatever the shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families import dirichlet
from banbury.families.bins import (
    BINS,
    BLOCK_CELLS,
    BinCounter,
    block_starts,
    block_steps,
    block_widths,
    distinct_cells,
    rounding,
)
from banbury.families.categorical import Categorical
from banbury.families.dirichlet import Shares
from banbury.families.family import (
    MOST_BINS,
    Choice,
    ColumnReader,
    Family,
    Feature,
    NumberColumn,
    NumericParameters,
    Parameters,
    by_class,
    check_finite,
    check_positive,
    check_settings,
    line_by_line,
)
from banbury.families.joint import (
    MOST_COMBINATIONS,
    columns_of_table,
    log_prior_of_cells,
    shares,
    too_many_combinations,
)
from banbury.families.keys import BinnedFamily
from banbury.sums import ROUNDING, Counts, Keys, Moments

FINE = 2.0**-6  # of a column's spread: its fine bins
FINEST = 2.0**-1020
FARTHEST = 2.0**20  # steps: farther out a sum would lose what tells the classes apart
NODE_BINS = 10  # that a network cuts numbers into, where nothing else is said and no class says where


def numbers_of_setting(setting: Any) -> tuple[Any, ...]:
    """A setting's numbers, one for each column of a block; none of None."""
    return setting if isinstance(setting, tuple) else () if setting is None else (setting,)


def reach_of(sizes: Int) -> Real:
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
        return reach_of(self.sizes)


class GridFamily(BinnedFamily):
    """The base of families of bins whose ``start`` and ``width`` may be set; of a block, for each column."""

    start: float | tuple[float, ...] | None
    width: float | tuple[float, ...] | None
    counting: ClassVar[tuple[str, ...]] = ("start", "width")
    blocks: ClassVar[bool] = True
    per_column: ClassVar[tuple[str, ...]] = ("start", "width")  # settings of which a block may have several

    def __post_init__(self) -> None:
        for setting in self.per_column:
            if isinstance(values := getattr(self, setting), (list, np.ndarray)):
                object.__setattr__(self, setting, tuple(np.asarray(values, dtype=object).tolist()))
        start = self.start
        width = self.width
        errors.require((start is None) == (width is None), "start and width", (start, width), "given together")
        for number in numbers_of_setting(width):
            check_positive("width", number)
        for number in numbers_of_setting(start):
            check_finite("start", number)

    def counter(self, feature: Feature) -> BinCounter:
        return BLOCK_CELLS if feature.columns else BINS

    def counting_key(self) -> tuple[Any, ...]:
        return "bins", self.start, self.width

    def check_columns(self, feature: Feature) -> None:
        """Raises where a setting has several numbers, and not one for each column of a block."""
        n_columns = len(feature.columns)
        block = f"a number, or one for each of the {n_columns} columns"
        column = f"one number for the column {feature.name!r}; only a block takes several"
        for setting in self.per_column:
            value = getattr(self, setting)
            fits = not isinstance(value, tuple) or (n_columns and len(value) == n_columns)
            errors.require(fits, setting, value, block if n_columns else column)

    def grid(self, fine: Real) -> tuple[tuple[float, float], ...]:
        """Start and width of each column's bins; ``fine`` are widths that will do."""
        if self.start is None:
            return tuple((0.0, width) for width in fine.tolist())
        starts_and_widths = (
            np.broadcast_to(np.array(g, dtype=np.float64), fine.shape).tolist() for g in (self.start, self.width)
        )
        return tuple(zip(*starts_and_widths, strict=True))


@dataclass(frozen=True, repr=False)
class Histogram(GridFamily):
    """Numbers whose density is a histogram: the share of rows in each bin, divided by its width.

    Args:
        bins: How the fine bins in which numbers are counted are merged for estimation: "auto" (about the
            Freedman–Diaconis width), the maximum number of bins (at least two, because 0 is an edge), or "mdl" (cut
            where the class frequencies change; Fayyad and Irani, 1993).
        start: The left end of a bin, if bins are set by hand.
        width: The width of the bins, if they are set by hand. It is only doubled if there would be more than 4,096
            bins.
        alpha: The pseudo-count of the Dirichlet prior. It covers the bins from the lowest to the highest that is
            occupied in any class, and one more on each side. The probability of these outer bins extends to infinity,
            with a density that halves from bin to bin. With "mdl", the outer bins are the first and the last.

    A block of columns has a cell for every combination of their bins, which are wider the more columns there are;
    ``tally.empty_cells`` is the share without rows. ``start`` and ``width`` can then be given for each column.

    >>> import banbury as bb
    >>> ages = {"age": [3.0, 4.0, 12.0, 13.0], "school": ["none", "none", "high", "high"]}
    >>> tally = bb.count(ages, target="school", features={"age": bb.Histogram(start=0, width=5)})
    >>> bb.estimate(tally).predict({"age": [1.0, 14.0]}).tolist()
    ['none', 'high']
    >>> bb.estimate(tally, features={"age": bb.Histogram(bins="mdl")}).cuts("age")
    [5.0]
    """

    alpha: float | None = None
    bins: int | Literal["auto", "mdl"] = "auto"
    start: float | tuple[float, ...] | None = None
    width: float | tuple[float, ...] | None = None

    name: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, "alpha", zero=True)
        is_number = isinstance(self.bins, int) and not isinstance(self.bins, bool) and self.bins >= 1
        if not is_number and not (isinstance(self.bins, str) and self.bins in ("auto", "mdl")):
            raise errors.bad_setting("bins", self.bins, "'auto', 'mdl' or a whole number of at least 1")

    def doublings(self, codes: Int, rows: Real, n_columns: int = 1) -> int:
        """How often the fine bins are doubled before estimation; a function of the totals alone."""
        if not len(codes):
            return 0
        free = self.bins == "auto" and self.width is None
        times = max(0, round(float(np.log2(_freedman_diaconis(codes, rows, n_columns))))) if free else 0
        if self.width is None and self.bins != "mdl":  # narrower bins would have voids between them, and reach too high
            times = max(times, int(np.log2(rounding(codes, rows))))
        most = MOST_BINS if isinstance(self.bins, str) else min(max(self.bins, 2), MOST_BINS)  # 0 is an edge: never one
        while (codes[-1] >> times) - (codes[0] >> times) + 1 > most:
            times += 1
        return times

    def estimate(
        self, features: tuple[Feature, ...], sums: Counts, choice: Choice, rng: np.random.Generator
    ) -> HistogramParameters | HistogramBlockParameters:
        alpha = self._alpha(choice)
        if features[0].columns:
            counted_blocks = ((feature, *_cells(sums, f)) for f, feature in enumerate(features))
            cells = tuple(cells_of(self, *block, alpha, choice, rng) for block in counted_blocks)
            return HistogramBlockParameters(features, cells)
        joined = self._join_all(sums)
        ends = np.cumsum([0, *(len(bins.cells) for bins in joined)])
        all_cells = np.concatenate([b.cells for b in joined])
        share = dirichlet.shares(all_cells, ends, np.full(ends[-1], alpha), choice.how, rng)
        log_density = dirichlet.log(share / np.concatenate([bins.reach for bins in joined])[:, None])
        parameters = HistogramParameters.of(features, joined, np.split(log_density, ends[1:-1]))
        steps = zip(parameters.tables, joined, parameters.widths, strict=True)
        mdl = self.bins == "mdl"
        tables = (
            (np.repeat(table, bins.sizes, axis=0) if mdl else table) - np.log(width) for table, bins, width in steps
        )
        return replace(parameters, tables=tuple(tables))

    def _alpha(self, choice: Choice) -> float:
        return choice.alpha if self.alpha is None else self.alpha

    def _join_all(self, sums: Counts) -> list[Joined]:
        """The bins of every column, which no prior changes."""
        settings = (type(self), self.bins, self.width)
        if any(settings not in derived for derived in sums.derived):
            counts = zip(sums.keys, np.split(sums.cells.value, sums.offsets[1:-1]), strict=True)
            for derived, (keys, cells) in zip(sums.derived, counts, strict=True):
                derived[settings] = self.join_bins(keys, cells)
        return [derived[settings] for derived in sums.derived]

    def join_bins(self, keys: Keys, cells: Real, n_columns: int = 1) -> Joined:
        """The bins for estimation, from the fine ones and their rows per class; ``n_columns``: of the block they are of."""
        codes = np.array(keys, dtype=np.int64)
        times = self.doublings(codes, cells.sum(axis=1), n_columns)
        coarse = codes >> times
        low, high = (int(coarse[0]), int(coarse[-1])) if len(coarse) else (0, 0)
        rows = np.zeros((high - low + 3, cells.shape[1]))
        np.add.at(rows, coarse - low + 1, cells)
        if self.bins != "mdl":
            return Joined(low - 1, float(2**times), rows, np.ones(len(rows), dtype=np.int64))
        there = np.flatnonzero(rows.any(axis=1))
        begins = np.array(_core.cuts_of(rows[there]), dtype=np.int64)
        cuts = (there[begins - 1] + there[begins] + 1) // 2  # half-way between neighbours, as far as bins allow
        starts = np.array([0, *cuts], dtype=np.int64)
        sizes = np.diff([*starts, len(rows)])
        return Joined(low - 1, float(2**times), np.add.reduceat(rows, starts, axis=0), sizes)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        told_apart = Histogram(bins="mdl")
        return (told_apart,) if column.has_few_values else (self, told_apart)

    def log_prior(self, parameters: Any, sums: Counts, choice: Choice) -> float:
        alpha = self._alpha(choice)
        if isinstance(parameters, HistogramBlockParameters):
            return sum(log_prior_of_cells(c.seen, c.empty, c.n_empty, alpha, choice) for c in parameters.cells)
        first_steps = [np.cumsum(sizes) - sizes for sizes in parameters.sizes]
        logs = [bins[steps] for bins, steps in zip(parameters.tables, first_steps, strict=True)]
        return sum(dirichlet.log_prior(bins_logs, np.full(len(bins_logs), alpha), choice.how) for bins_logs in logs)

    def n_parameters(self, features: tuple[Feature, ...], sums: Counts | Moments) -> list[tuple[int, int]]:
        assert isinstance(sums, Counts)
        n_columns = [len(feature.inputs) for feature in features]
        if features[0].columns:
            bins = [join_columns(self, *_cells(sums, f), d) for f, d in enumerate(n_columns)]
            return [(prod(len(column.sizes) for column in block) - 1, 0) for block in bins]
        return [(len(bins.cells) - 1, 0) for bins in self._join_all(sums)]

    def empty_share(self, feature: Feature, sums: Counts) -> float:
        """Between the lowest and the highest bin of each column that rows have."""
        axes, numbers, _ = block_table(self, feature, *_cells(sums, 0))
        bins = np.unravel_index(numbers, [axis.n_bins for axis in axes])
        return 1.0 - len(numbers) / prod(int(np.ptp(column)) + 1 for column in bins) if len(numbers) else 0.0

    def join_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        return block_table(self, feature, keys, cells)[2] if feature.columns else self.join_bins(keys, cells).cells

    def node_cuts(self, values: Real, cells: Real, bins: int | Literal["mdl"], name: str) -> tuple[float, ...]:
        """Where a network cuts a column's numbers, midway between two that occur: with "mdl" where the classes change.

        Where they do not change, or where a number of bins is asked for: a bin for each where they are few; of many, a number
        that alone is as frequent as a bin would be has its own, and the others are cut into about equal shares. ``cells`` are
        the rows of each number and class. What the family says comes before ``bins``.
        """
        if self.width is not None:
            return self._edges_between(values, name)
        bins_or_rule = bins if self.bins == "auto" else self.bins
        cuts = _core.cuts_of(cells) if bins_or_rule == "mdl" else []
        most = next((choice for choice in (bins_or_rule, bins) if isinstance(choice, int)), NODE_BINS)
        group = np.arange(len(values))
        if cuts:
            group = np.searchsorted(cuts, group, side="right")
        elif len(values) > most:
            n = cells.sum(axis=1)
            large = n * most > n.sum()
            rest = np.where(large, 0.0, n)
            middle = (np.cumsum(rest) - rest / 2.0) / max(rest.sum(), np.finfo(float).tiny)
            left = max(most - int(large.sum()), 1)
            group = np.where(large, -1 - np.arange(len(n)), np.minimum((middle * left).astype(np.int64), left - 1))
        return cuts_after(values, np.flatnonzero(np.diff(group)))

    def _edges_between(self, values: Real, name: str) -> tuple[float, ...]:
        """The edges of bins of the given start and width, between the lowest number and the highest."""
        start = self.start
        width = self.width
        if not isinstance(start, (int, float)) or not isinstance(width, (int, float)):
            raise errors.bad_setting(f"start and width of {name!r}", (start, width), "one number each")
        if not len(values):
            return ()
        first, last = (int(np.floor((x - start) / width)) for x in (values[0], values[-1]))
        expected = f"a width that makes at most {MOST_BINS:,} bins, not {last - first + 1:,}"
        errors.require(last - first < MOST_BINS, f"width of {name!r}", width, expected)
        return tuple((start + width * np.arange(first + 1, last + 1)).tolist())

    def pseudo_counts(self, keys: Keys, alpha: float) -> Real:
        return np.full(len(keys), float(alpha if self.alpha is None else self.alpha))

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        """A row may move every cut of "mdl"."""
        cuts_depend_on_rows = self.bins == "mdl" or bool(features[0].columns)
        return not cuts_depend_on_rows and super().can_leave_one_out(features, choice, weighted)

    def shares(self, feature: Feature, keys: Keys, cells: Real, choice: Choice) -> tuple[Shares, Int]:
        """The bins are those of all rows, and all stay."""
        bins = self.join_bins(keys, cells)
        width = _width(bins, feature)
        n_bins = len(bins.cells)
        every = np.ones(n_bins, dtype=np.bool_)
        shares = Shares(bins.cells, np.full(n_bins, self._alpha(choice)), choice.how, every, log_width=np.log(width))
        return shares, (np.array(keys, dtype=np.int64) >> int(np.log2(bins.width))) - bins.first

    def leave_one_out_notes(self) -> list[str]:
        return ["the bins of histograms"]


def cuts_after(values: Real, last: Int) -> tuple[float, ...]:
    """Cuts midway between these of the values, which are in order, and the next."""
    low = values[last]
    high = values[last + 1]
    between = low / 2.0 + high / 2.0
    return tuple(np.where(between > low, between, high).tolist())


def cutting_histogram(feature: Feature) -> Histogram | None:
    """What says where a network cuts a column; None where another family was asked for, which has no cuts."""
    if isinstance(feature.family, Histogram):
        return feature.family
    return None if feature.declared or feature.reads_text else Histogram()


def column_in_bins(name: str, start: float, width: float) -> Feature:
    """A column of numbers in bins so wide, to be compared with others."""
    return Feature(name, Histogram(), start, max(width, FINEST), "float")


def columns_to_compare(feature: Feature, rows: Any) -> tuple[Feature, ...]:
    """The columns of a feature as they are compared with others: numbers in fine bins, all else as values."""
    family = feature.family
    inputs = feature.inputs
    if feature.counter.words or (family.keyed and not feature.columns):
        return (feature,)
    if feature.kinds or feature.holds_lists:
        return columns_of_table(feature)
    if family.keyed:
        grid = zip(inputs, block_starts(feature).tolist(), block_widths(feature).tolist(), strict=True)
        return tuple(column_in_bins(*column) for column in grid)
    fine = FINE if family.has_density() else 1.0
    scales = feature.scales or ((feature.origin, feature.unit),) * len(inputs)
    columns = []
    for name, (origin, unit) in zip(inputs, scales, strict=True):
        kind = rows.kind(name)
        numeric = kind in ("integer", "float", "empty")
        columns.append(
            column_in_bins(name, origin, unit * fine) if numeric else Feature(name, Categorical(), kind=kind)
        )
    return tuple(columns)


def _cells(sums: Counts, f: int) -> tuple[Keys, Real]:
    keys, rows = sums.feature(f)
    return keys, rows.value


def _freedman_diaconis(codes: Int, rows: Real, n_columns: int) -> float:
    """2 · IQR / n^(1 / (2 + columns)) in bins, at least 1; of the occupied bins where half the rows share one bin."""
    below = np.cumsum(rows)
    low, high = (codes[np.searchsorted(below, (share - ROUNDING) * below[-1])] for share in (0.25, 0.75))
    spread = float(high - low) or float(codes[-1] - codes[0]) / 4.0
    return float(max(1.0, 2.0 * spread / float(below[-1]) ** (1.0 / (2.0 + n_columns))))


def _width(bins: Joined, feature: Feature) -> float:
    """How wide a step is, as the column has it."""
    return min(bins.width * feature.unit, 2.0**1023)


@dataclass(frozen=True)
class HistogramParameters(NumericParameters):
    """Log densities of the steps of each feature, (steps, classes), from step ``first`` on, ``width`` wide; steps per bin."""

    features: tuple[Feature, ...]
    firsts: tuple[int, ...]
    widths: tuple[float, ...]
    tables: tuple[Real, ...]
    sizes: tuple[Int, ...]

    @classmethod
    def of(cls, features: tuple[Feature, ...], joined: Sequence[Joined], tables: Sequence[Real]) -> HistogramParameters:
        firsts = tuple(bins.first for bins in joined)
        sizes = tuple(bins.sizes for bins in joined)
        widths = map(_width, joined, features)
        return cls(features, firsts, tuple(widths), tuple(tables), sizes)

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        columns = [rows.numbers([feature.name])[0].reshape(-1) for feature in self.features]
        origins = [feature.origin for feature in self.features]
        bins = zip(columns, origins, self.widths, self.firsts, self.tables, strict=True)
        return [_core.HistogramPart(*arguments) for arguments in bins]

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for feature, first, width, table in zip(self.features, self.firsts, self.widths, self.tables, strict=True):
            share = np.exp(table + np.log(width))
            share[[0, -1]] *= 2.0
            bins = dirichlet.draw_cells(share, classes, rng)
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
        edges = self._edges(f)
        masses = self._masses(f)
        below = _below(edges, masses, self.widths[f], cuts)
        return below, _below(-edges[::-1], masses[::-1], self.widths[f], -cuts)

    def ends(self, f: int, near: Real, step: Real) -> Real:
        """The edges of bins that lie nearest to round numbers."""
        edges = self._edges(f)
        cuts = super().ends(f, near, step)
        at = np.clip(np.round((cuts - edges[0]) / self.widths[f]), 0, len(edges) - 1).astype(np.int64)
        ends = np.cumsum([0, *self.sizes[f]])
        above = np.searchsorted(ends, at)
        below = np.maximum(above - 1, 0)
        nearest = np.where(at - ends[below] < ends[above] - at, ends[below], ends[above])
        return np.asarray(edges[nearest])

    def cuts(self, column: str | None) -> list[float]:
        """The edges between the bins of the one feature, in order."""
        return [float(cut) for cut in self._edges(0)[np.cumsum(self.sizes[0])[:-1]]]

    def _edges(self, f: int) -> Real:
        bins = self.firsts[f] + np.arange(len(self.tables[f]) + 1)
        return np.asarray(self.features[f].origin + self.widths[f] * bins, dtype=np.float64)

    def _masses(self, f: int) -> Real:
        """The shares of the bins, (bins, classes); beyond each outer bin lies as much again."""
        return np.asarray(np.exp(self.tables[f]) * self.widths[f])


def _below(edges: Real, masses: Real, width: float, cuts: Real) -> Real:
    """The mass below each cut, (cuts, classes): even within a bin; of what lies beyond the first, half in each next one."""
    sums = np.cumsum(np.concatenate([masses[:1], masses]), axis=0)
    within = np.stack([np.interp(cuts, edges, column) for column in sums.T], axis=1)
    far = np.maximum(edges[0] - cuts, 0.0) / width
    n_bins = np.floor(far)
    left = masses[0] * (2.0**-n_bins * (1.0 - (far - n_bins) / 2.0))[:, None]
    far = np.maximum(cuts - edges[-1], 0.0) / width
    n_bins = np.floor(far)
    right = masses[-1] * (1.0 - 2.0**-n_bins * (1.0 - (far - n_bins) / 2.0))[:, None]
    return np.asarray(np.where((cuts < edges[0])[:, None], left, within + right))


# Blocks ---------------------------------------------------------------------------------------------------------------


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
        return np.asarray(np.log(reach_of(self.sizes)) + np.log(self.width))

    def draw(self, bins: Int, rng: np.random.Generator) -> Real:
        """A value in each of these bins, or beyond an outer one, where the density halves from step to step."""
        before = (bins == 0).astype(np.int64)
        after = (bins == self.n_bins - 1).astype(np.int64)
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
        here = _cell_numbers([bins[j] for j in columns], axes)
        numbers, where = np.unique(here, return_inverse=True)
        n_others = prod(axis.n_bins for j, axis in enumerate(self.axes) if j not in columns)
        with np.errstate(divide="ignore"):
            some = np.zeros((len(numbers), len(self.empty)))
            np.add.at(some, where, np.exp(self.seen))
            some += (n_others - np.bincount(where, minlength=len(numbers)))[:, None] * np.exp(self.empty)
            seen = np.log(some)
            empty = np.log(float(n_others)) + self.empty
        return BlockCells(axes, numbers, seen, empty, float(prod(axis.n_bins for axis in axes) - len(numbers)))

    def log_densities(self, steps: Real) -> Real:
        """Of cells of steps, (cells, columns), the log density in each class."""
        places = [axis.bins(steps[:, j]) for j, axis in enumerate(self.axes)]
        numbers = _cell_numbers([bins for bins, _ in places], self.axes)
        at = np.minimum(np.searchsorted(self.numbers, numbers), max(len(self.numbers) - 1, 0))
        log_shares = np.broadcast_to(self.empty, (len(numbers), len(self.empty)))
        if len(self.numbers):
            log_shares = np.where((self.numbers[at] == numbers)[:, None], self.seen[at], log_shares)
        sizes = sum(axis.log_sizes()[bins] for axis, (bins, _) in zip(self.axes, places, strict=True))
        beyond = sum(far for _, far in places) * np.log(2.0)
        return np.asarray(log_shares - (sizes + beyond)[:, None])

    def draw(self, n: int, c: int, rng: np.random.Generator) -> list[Real]:
        share = np.append(np.exp(self.seen[:, c]), self.n_empty * np.exp(self.empty[c]))
        chosen = rng.choice(len(share), n, p=share / share.sum())
        numbers = np.append(self.numbers, -1)[chosen]
        every = prod(axis.n_bins for axis in self.axes)
        while (other := np.flatnonzero(numbers < 0)).size:
            tried = rng.integers(every, size=len(other))
            numbers[other] = np.where(np.isin(tried, self.numbers), -1, tried)
        bins = np.unravel_index(numbers, [axis.n_bins for axis in self.axes])
        return [axis.draw(np.asarray(column), rng) for axis, column in zip(self.axes, bins, strict=True)]


def _cell_numbers(bins: Sequence[Any], axes: Sequence[BlockAxis]) -> Int:
    return np.asarray(np.ravel_multi_index(tuple(bins), [axis.n_bins for axis in axes]), dtype=np.int64)


def join_columns(family: Histogram, keys: Any, cells: Real, d: int) -> list[Joined]:
    """The bins of each column: those of a histogram of it alone, but wider, since rows are spread over more cells."""
    codes = np.array(keys, dtype=np.int64).reshape(len(keys), d)
    joined = []
    for j in range(d):
        column_bins, where = np.unique(codes[:, j], return_inverse=True)
        rows = np.zeros((len(column_bins), cells.shape[1]))
        np.add.at(rows, where, cells)
        joined.append(family.join_bins(tuple(column_bins.tolist()), rows, d))
    return joined


def block_table(family: Histogram, feature: Feature, keys: Any, cells: Real) -> tuple[tuple[BlockAxis, ...], Int, Real]:
    """The bins of each column, the cells that rows have, and their rows per class."""
    d = len(feature.inputs)
    bins = join_columns(family, keys, cells, d)
    if prod(len(column.sizes) for column in bins) > MOST_COMBINATIONS:
        raise too_many_combinations(feature.name, d)
    codes = np.array(keys, dtype=np.int64).reshape(len(keys), d)
    width = block_widths(feature)
    scales = zip(block_starts(feature).tolist(), width.tolist(), bins, strict=True)
    axes = tuple(
        BlockAxis(start, min(w * column.width, 2.0**1023), column.first, column.sizes) for start, w, column in scales
    )
    steps = (codes[:, j] >> round(np.log2(column.width)) for j, column in enumerate(bins))
    places = [axis.bins(column_steps.astype(np.float64))[0] for axis, column_steps in zip(axes, steps, strict=True)]
    numbers, where = np.unique(_cell_numbers(places, axes), return_inverse=True)
    rows = np.zeros((len(numbers), cells.shape[1]))
    np.add.at(rows, where, cells)
    return axes, numbers, rows


def cells_of(
    family: Histogram, feature: Feature, keys: Any, rows: Real, alpha: float, choice: Choice, rng: np.random.Generator
) -> BlockCells:
    axes, numbers, cells = block_table(family, feature, keys, rows)
    every = float(prod(axis.n_bins for axis in axes))
    seen, empty = shares(cells, every, alpha, choice, rng)
    return BlockCells(axes, numbers, seen, empty, every - len(numbers))


@dataclass(frozen=True)
class HistogramBlockParameters(Parameters):
    """The cells of some blocks."""

    features: tuple[Feature, ...]
    cells: tuple[BlockCells, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        parts = []
        for feature, cells in zip(self.features, self.cells, strict=True):
            width = np.array([axis.width for axis in cells.axes])
            numbers, distinct = distinct_cells(block_steps(rows, feature, width))
            table = np.zeros((len(distinct), len(cells.empty)))
            there = ~np.isnan(distinct)
            patterns, which = np.unique(there, axis=0, return_inverse=True)
            for p, pattern in enumerate(patterns):
                if columns := np.flatnonzero(pattern).tolist():
                    at = np.flatnonzero(which.reshape(-1) == p)
                    marginal = cells if len(columns) == len(cells.axes) else cells.of(columns)
                    table[at] = marginal.log_densities(distinct[at][:, columns])
            codes = np.where(there.any(axis=1)[numbers], numbers, -1) if len(distinct) else numbers
            parts.append(line_by_line(codes, table))
        return parts

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
                drawn[:, rows] = cells.draw(len(rows), c, rng)
            columns += list(drawn)
        return columns
