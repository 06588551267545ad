"""Histogram: the share of each bin, whatever the shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families import dirichlet
from banbury.families.bins import (
    BINS,
    BLOCK_CELLS,
    BinCounter,
    bin_starts,
    bin_widths,
    distinct_cells,
    number_block_bins,
    smallest_gap,
)
from banbury.families.categorical import Categorical
from banbury.families.dirichlet import Shares
from banbury.families.family import (
    MOST_BINS,
    Choice,
    ColumnReader,
    Family,
    Feature,
    Features,
    NumberColumn,
    NumericParameters,
    Parameters,
    check_finite,
    check_positive,
    check_settings,
    line_by_line,
    number_column,
    rows_by_class,
    rows_by_columns_present,
)
from banbury.families.information import equal_groups
from banbury.families.joint import MOST_COMBINATIONS, SparseShares, columns_of_table, too_many_combinations
from banbury.families.keys import BinnedFamily
from banbury.sums import ROUNDING, Counts, Keys

FINE_WIDTH = 2.0**-6  # of a column's spread: the width of its fine bins
LEAST_WIDTH = 2.0**-1020  # of a bin
MOST_STEPS_BEYOND = (
    2.0**20
)  # a number lies at most so many steps beyond the outer bins: farther out, sums would round away
NODE_BINS = 10  # a network cuts numbers into so many bins, unless a setting or the classes decide


def numbers_of_setting(setting: float | tuple[float, ...] | None) -> tuple[float, ...]:
    """Returns the numbers of a setting as a tuple: one, or one for each column of a block; none if the setting is None."""
    return setting if isinstance(setting, tuple) else () if setting is None else (setting,)


def steps_per_share(sizes: Int) -> Real:
    """Returns over how many steps each bin spreads its share (bins), given its size in steps (``sizes``). The mass
    beyond an outer bin counts as one step more.
    """
    n_steps = sizes.astype(np.float64)
    n_steps[0] += 1.0
    n_steps[-1] += 1.0
    return n_steps


class JoinedBins(NamedTuple):
    """The bins of a column for estimation. Each joins one or more equal steps, and each step one or more fine bins.

    ``first`` is the number of the first step, counted from the column's origin, and ``width`` the number of fine bins
    in a step.
    """

    first: int
    width: float
    cells: Real  # rows (bins × classes)
    sizes: Int  # steps per bin

    def axis(self, start: float, fine_width: float) -> BinAxis:
        """Returns the bins in the column's unit; fine bin 0 begins at ``start``, and fine bins are ``fine_width`` wide."""
        # ``width`` has the number of fine bins in a step, ``first`` that of the first step, and ``sizes`` the steps per bin.
        return BinAxis(start, min(self.width * fine_width, 2.0**1023), self.first, self.sizes)


class GridFamily(BinnedFamily):
    """The base of families of bins whose ``start`` and ``width`` may be set; of a block, for each column."""

    start: float | tuple[float, ...] | None
    width: float | tuple[float, ...] | None
    counting: ClassVar[tuple[str, ...]] = ("start", "width")
    blocks: ClassVar[bool] = True
    per_column: ClassVar[tuple[str, ...]] = ("start", "width")  # settings of which a block may have several

    def __post_init__(self) -> None:
        """Raises unless start and width are valid and given together; lists of numbers become tuples."""
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
        """Returns the counter of single columns, or of blocks."""
        return BLOCK_CELLS if feature.columns else BINS

    def counting_key(self) -> tuple[Any, ...]:
        """Returns what two families must have in common for their counts to be added: the start and width that were
        set, if any.
        """
        return "bins", self.start, self.width

    def check_columns(self, feature: Feature) -> None:
        """Raises an error if a setting has several numbers, but not one for each column of the feature, which must then
        be a block.
        """
        n_columns = len(feature.columns)
        for_block = f"a number, or one for each of the {n_columns} columns"
        for_column = f"one number for the column {feature.name!r}; only a block takes several"
        for setting in self.per_column:
            value = getattr(self, setting)
            fits = not isinstance(value, tuple) or (n_columns and len(value) == n_columns)
            errors.require(fits, setting, value, for_block if n_columns else for_column)

    def grid(self, default_widths: Real) -> tuple[tuple[float, float], ...]:
        """Returns for each column the start and width of its bins: those that were set, or 0 and ``default_widths``
        (columns).
        """
        if self.start is None:
            return tuple((0.0, width) for width in default_widths.tolist())
        starts = np.broadcast_to(np.array(self.start, dtype=np.float64), default_widths.shape)
        widths = np.broadcast_to(np.array(self.width, dtype=np.float64), default_widths.shape)
        return tuple(zip(starts.tolist(), widths.tolist(), strict=True))


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
        """Raises unless the settings are valid and go together."""
        super().__post_init__()
        check_settings(self, "alpha", zero=True)
        is_number = isinstance(self.bins, int) and not isinstance(self.bins, bool) and self.bins >= 1
        if not is_number and not (isinstance(self.bins, str) and self.bins in ("auto", "mdl")):
            raise errors.bad_setting("bins", self.bins, "'auto', 'mdl' or a whole number of at least 1")

    def doublings(self, codes: Int, rows: Real, n_columns: int = 1) -> int:
        """Returns how often neighbouring fine bins are joined in pairs before estimation. It depends only on the total
        rows (``rows``) of each occupied fine bin (its number in ``codes``, in order), and on the number of columns of
        the block (``n_columns``). ``self.width`` is the width that was set, or None.
        """
        if not len(codes):
            return 0
        n_doublings = 0
        if self.bins == "auto" and self.width is None:
            n_doublings = max(0, round(float(np.log2(_freedman_diaconis(codes, rows, n_columns)))))
        if self.width is None and self.bins != "mdl":  # narrower bins would have voids between them, and reach too high
            n_doublings = max(n_doublings, int(np.log2(smallest_gap(codes, rows))))
        most_bins = MOST_BINS
        if not isinstance(self.bins, str):
            most_bins = min(max(self.bins, 2), MOST_BINS)  # 0 is an edge: never one
        while (codes[-1] >> n_doublings) - (codes[0] >> n_doublings) + 1 > most_bins:
            n_doublings += 1
        return n_doublings

    def estimate(
        self, features: Features, sums: Counts, choice: Choice, rng: Generator
    ) -> HistogramParameters | HistogramBlockParameters:
        """Estimates the shares of bins, or of the cells of the only feature if it is a block, from their counts
        (``sums``), as ``choice`` says; ``rng`` draws under "gibbs".
        """
        alpha = self._alpha(choice)  # the pseudo-count of a bin
        if features.has_blocks:
            table = block_table(self, features[0], sums.keys[0], sums.cells.value)  # the cells that rows have
            n_cells = float(prod(axis.n_bins for axis in table.axes))  # with those that no row has
            shares = SparseShares.estimate(table.rows, n_cells, alpha, choice, rng)
            return HistogramBlockParameters(features, BlockCells(table.axes, table.numbers, shares))
        bins_by_column = self._join_all(sums)
        offsets = np.cumsum([0, *(len(bins.cells) for bins in bins_by_column)])  # where each column's bins start
        all_cells = np.concatenate([bins.cells for bins in bins_by_column])  # rows (bins of all columns × classes)
        share = dirichlet.shares(all_cells, offsets, np.full(offsets[-1], alpha), choice.how, rng)  # in the same shape
        n_steps = np.concatenate([steps_per_share(bins.sizes) for bins in bins_by_column])  # of each bin
        # Of each column, the log share of one step of each bin (bins × classes).
        log_share_of_step = np.split(dirichlet.log(share / n_steps[:, None]), offsets[1:-1])
        grids = zip(bins_by_column, features.origins.tolist(), features.units.tolist(), strict=True)
        axes = tuple(bins.axis(start, fine_width) for bins, start, fine_width in grids)
        # Of each column, the log density of each step (steps × classes).
        tables = (
            np.repeat(log_share, axis.sizes, axis=0) - np.log(axis.width)
            for log_share, axis in zip(log_share_of_step, axes, strict=True)
        )
        return HistogramParameters(features, axes, tuple(tables))

    def _alpha(self, choice: Choice) -> float:
        """Returns the pseudo-count of a bin: the family's own, or that of ``choice``, which is for all families."""
        return choice.alpha if self.alpha is None else self.alpha

    def _join_all(self, sums: Counts) -> list[JoinedBins]:
        """Returns the fine bins of every column joined for estimation. The sums cache the result, because no prior
        changes it.
        """
        settings = (type(self), self.bins, self.width)  # the key in ``sums.caches``, which has a dictionary per column
        if any(settings not in cache for cache in sums.caches):
            cells_by_column = np.split(sums.cells.value, sums.offsets[1:-1])  # rows (fine bins × classes)
            for cache, keys, cells in zip(sums.caches, sums.keys, cells_by_column, strict=True):
                cache[settings] = self.join_bins(keys, cells)
        return [cache[settings] for cache in sums.caches]

    def join_bins(self, keys: Keys, cells: Real, n_columns: int = 1) -> JoinedBins:
        """Returns the occupied fine bins of one column (``keys``, their numbers) joined for estimation; ``cells`` has
        their rows (bins × classes).

        ``n_columns`` is the number of columns of the block that the column is in.
        """
        fine_bins = np.array(keys, dtype=np.int64)  # in order
        n_doublings = self.doublings(fine_bins, cells.sum(axis=1), n_columns)
        step_of_bin = fine_bins >> n_doublings
        first_step, last_step = (int(step_of_bin[0]), int(step_of_bin[-1])) if len(step_of_bin) else (0, 0)
        # Steps × classes, with an empty step on each side.
        rows = np.zeros((last_step - first_step + 3, cells.shape[1]))
        np.add.at(rows, step_of_bin - first_step + 1, cells)
        if self.bins != "mdl":
            return JoinedBins(first_step - 1, float(2**n_doublings), rows, np.ones(len(rows), dtype=np.int64))
        occupied = np.flatnonzero(rows.any(axis=1))  # steps with rows
        # The place in ``occupied`` of the first step of each bin but the first.
        first_of_bin = np.array(_core.cuts_of(rows[occupied]), dtype=np.int64)
        # The first step of each bin: half-way between neighbours, as far as steps allow.
        cuts = (occupied[first_of_bin - 1] + occupied[first_of_bin] + 1) // 2
        starts = np.array([0, *cuts], dtype=np.int64)
        sizes = np.diff([*starts, len(rows)])  # steps per bin
        return JoinedBins(first_step - 1, float(2**n_doublings), np.add.reduceat(rows, starts, axis=0), sizes)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """Returns histograms to try for a column of numbers: one cut by the classes and, if there are many values, this
        one.
        """
        cut_by_class = Histogram(bins="mdl")
        return (cut_by_class,) if column.has_few_values else (self, cut_by_class)

    def log_prior(self, parameters: Any, sums: Counts, choice: Choice) -> float:
        """Returns what the prior adds to the log-likelihood of these parameters, over all features and classes;
        ``sums`` make no difference.
        """
        alpha = self._alpha(choice)  # the pseudo-count of a bin
        if isinstance(parameters, HistogramBlockParameters):
            return parameters.cells.shares.log_prior(alpha, choice)
        log_prior = 0.0
        for table, axis in zip(parameters.tables, parameters.axes, strict=True):  # log densities (steps × classes)
            first_steps = np.cumsum(axis.sizes) - axis.sizes  # the first line of each bin in the table
            log_prior += dirichlet.log_prior(table[first_steps], np.full(axis.n_bins, alpha), choice.how)
        return log_prior

    def n_parameters(self, features: Features, sums: Counts) -> list[tuple[int, int]]:
        """Returns a pair for each feature: its number of parameters per class, and the number that all classes share."""
        if features.has_blocks:
            # The joined bins of each column of the block.
            columns = join_columns(self, sums.keys[0], sums.cells.value, len(features[0].inputs))
            return [(prod(len(column.sizes) for column in columns) - 1, 0)]
        return [(len(bins.cells) - 1, 0) for bins in self._join_all(sums)]

    def empty_share(self, feature: Feature, sums: Counts) -> float:
        """Returns the share of empty cells of a block between the lowest and the highest occupied bin of each column.
        ``sums`` are those of the block alone.
        """
        table = block_table(self, feature, sums.keys[0], sums.cells.value)  # the cells that rows have
        if not len(table.numbers):
            return 0.0
        # Of each column, the bin of each occupied cell.
        bins_by_column = np.unravel_index(table.numbers, [axis.n_bins for axis in table.axes])
        return 1.0 - len(table.numbers) / prod(int(np.ptp(bins)) + 1 for bins in bins_by_column)

    def join_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        """Returns the rows per bin or cell and class (bins × classes), with the fine bins (``keys``; ``cells`` has
        their rows) joined as for an estimate.
        """
        return block_table(self, feature, keys, cells).rows if feature.columns else self.join_bins(keys, cells).cells

    def node_cuts(self, values: Real, cells: Real, bins: int | Literal["mdl"], name: str) -> tuple[float, ...]:
        """Returns where a network cuts a column's numbers, midway between two that occur: with "mdl" where the class
        frequencies change.

        If they do not change, or if a number of bins is requested, few distinct numbers have a bin each. Of many, a
        number that alone is as frequent as a bin has its own, and the others are cut into parts of about equal size.
        The settings of the family take precedence over ``bins``.

        Args:
            values: The distinct numbers, in order.
            cells: The rows of each number (numbers × classes).
            bins: The number of bins, or "mdl".
            name: The name of the column, for messages.
        """
        if self.width is not None:
            return self._edges_between(values, name)
        bins_or_rule = bins if self.bins == "auto" else self.bins
        # The place of the first number of each bin but the first.
        cuts = _core.cuts_of(cells) if bins_or_rule == "mdl" else []
        most_bins = next((setting for setting in (bins_or_rule, bins) if isinstance(setting, int)), NODE_BINS)
        bin_of_number = np.arange(len(values))
        if cuts:
            bin_of_number = np.searchsorted(cuts, bin_of_number, side="right")
        elif len(values) > most_bins:
            bin_of_number = equal_groups(cells.sum(axis=1, keepdims=True), np.array([most_bins]))[:, 0]
        return cuts_after(values, np.flatnonzero(np.diff(bin_of_number)))

    def _edges_between(self, values: Real, name: str) -> tuple[float, ...]:
        """Returns the edges between the lowest and the highest of the numbers (``values``, in order), for bins of the
        start and width that were set. ``name`` is the column, for messages.
        """
        start = self.start
        width = self.width
        if not isinstance(start, (int, float)) or not isinstance(width, (int, float)):
            raise errors.bad_setting(f"start and width of {name!r}", (start, width), "one number each")
        if not len(values):
            return ()
        first, last = (int(np.floor((x - start) / width)) for x in (values[0], values[-1]))  # the numbers of bins
        expected = f"a width that makes at most {MOST_BINS:,} bins, not {last - first + 1:,}"
        errors.require(last - first < MOST_BINS, f"width of {name!r}", width, expected)
        return tuple((start + width * np.arange(first + 1, last + 1)).tolist())

    def pseudo_counts(self, keys: Keys, alpha: float) -> Real:
        """Returns the same pseudo-count for each key: the family's own, or ``alpha`` if it has none."""
        return np.full(len(keys), float(alpha if self.alpha is None else self.alpha))

    def can_leave_one_out(self, features: Features, choice: Choice, weighted: bool) -> bool:
        """Whether there is a leave-one-out formula; with "mdl" a row may move every cut."""
        cuts_depend_on_rows = self.bins == "mdl" or features.has_blocks
        return not cuts_depend_on_rows and super().can_leave_one_out(features, choice, weighted)

    def shares(self, feature: Feature, keys: Keys, cells: Real, choice: Choice) -> tuple[Shares, Int]:
        """Returns the shares of the bins, which are those of all rows and from which rows can be left out, and for each
        key, a fine bin, the number of its bin. ``cells`` has the rows of each key (keys × classes).
        """
        bins = self.join_bins(keys, cells)
        log_width = np.log(bins.axis(feature.origin, feature.unit).width)  # of a bin, in the column's unit
        n_bins = len(bins.cells)
        stays = np.ones(n_bins, dtype=np.bool_)  # whether a bin is there even without rows
        shares = Shares(bins.cells, np.full(n_bins, self._alpha(choice)), choice.how, stays, log_width=log_width)
        return shares, (np.array(keys, dtype=np.int64) >> int(np.log2(bins.width))) - bins.first

    def leave_one_out_notes(self) -> list[str]:
        """Returns what is still estimated from all rows when one is left out, as phrases for people."""
        return ["the bins of histograms"]


def cuts_after(values: Real, last_of_bin: Int) -> tuple[float, ...]:
    """Returns cuts midway between the last value of each bin and the next value. ``values`` are in order, and
    ``last_of_bin`` has the index of the last value of each bin but the last.
    """
    low = values[last_of_bin]  # on each side of each cut
    high = values[last_of_bin + 1]
    middle = low / 2.0 + high / 2.0
    return tuple(np.where(middle > low, middle, high).tolist())


def cutting_histogram(feature: Feature) -> Histogram | None:
    """Returns the histogram that decides where a network cuts a column; None if the column is a text or was declared to
    have another family.
    """
    if isinstance(feature.family, Histogram):
        return feature.family
    return None if feature.declared or feature.reads_text else Histogram()


def column_in_bins(name: str, start: float, width: float) -> Feature:
    """Returns the column of numbers with this name in bins of this start and width, for comparison with other columns."""
    return Feature(name, Histogram(), origin=start, unit=max(width, LEAST_WIDTH), kind="float")


def columns_to_compare(feature: Feature, rows: Any) -> tuple[Feature, ...]:
    """Returns the columns of a feature for comparison with other columns: numbers in fine bins, everything else as
    values. ``rows`` tells the type of each column.
    """
    family = feature.family
    inputs = feature.inputs
    if feature.counter.words or (family.keyed and not feature.columns):
        return (feature,)
    if feature.kinds or feature.holds_lists:
        return columns_of_table(feature)
    if family.keyed:
        grid = zip(inputs, bin_starts(feature).tolist(), bin_widths(feature).tolist(), strict=True)
        return tuple(column_in_bins(*column) for column in grid)
    width_share = FINE_WIDTH if family.has_density() else 1.0  # a bin's share of the column's unit
    scales = feature.scales or ((feature.origin, feature.unit),) * len(inputs)  # origin and unit of each column
    columns = []
    for name, (origin, unit) in zip(inputs, scales, strict=True):
        kind = rows.kind(name)
        has_numbers = kind in ("integer", "float", "empty")
        columns.append(
            column_in_bins(name, origin, unit * width_share) if has_numbers else Feature(name, Categorical(), kind=kind)
        )
    return tuple(columns)


def _freedman_diaconis(codes: Int, rows: Real, n_columns: int) -> float:
    """Returns the width of Freedman and Diaconis in fine bins, at least 1: 2 · IQR / n^(1 / (2 + columns)). ``codes``
    are the numbers of the occupied fine bins, in order, and ``rows`` the rows of each. If half the rows are in one bin,
    a quarter of the range replaces the IQR. ``n_columns`` is the number of columns of the block, 1 for a single column.
    """
    cumulative = np.cumsum(rows)
    # The fine bins that hold the quartiles.
    low_quartile, high_quartile = (
        codes[np.searchsorted(cumulative, (share - ROUNDING) * cumulative[-1])] for share in (0.25, 0.75)
    )
    interquartile_range = float(high_quartile - low_quartile) or float(codes[-1] - codes[0]) / 4.0
    return float(max(1.0, 2.0 * interquartile_range / float(cumulative[-1]) ** (1.0 / (2.0 + n_columns))))


@dataclass(frozen=True)
class BinAxis:
    """The bins of a column. They join one or more steps of equal ``width``, which are numbered from ``first`` on."""

    start: float
    width: float
    first: int
    sizes: Int  # steps per bin

    @property
    def n_bins(self) -> int:
        """The number of bins."""
        return len(self.sizes)

    def bins(self, steps: Real) -> tuple[Int, Real]:
        """Returns for each step, given by its number, its bin, and how many steps it lies beyond the outer bins.
        ``self.sizes`` has the number of steps in each bin.
        """
        ends = np.cumsum(self.sizes)  # where each bin ends, in steps from the first
        step_indices = steps - self.first
        nearest_inside = np.clip(step_indices, 0.0, ends[-1] - 1.0)
        n_beyond = np.minimum(np.abs(step_indices - nearest_inside), MOST_STEPS_BEYOND)
        return np.searchsorted(ends, nearest_inside, side="right"), n_beyond

    def edges(self) -> Real:
        """Returns the edges of the steps in the column's unit (steps + 1), in order. ``sizes`` has the steps per bin;
        step 0 begins at ``start``, steps are ``width`` wide, and the first one has the number ``first``.
        """
        step_numbers = self.first + np.arange(self.sizes.sum() + 1)
        return np.asarray(self.start + self.width * step_numbers, dtype=np.float64)

    def cuts(self) -> list[float]:
        """Returns the edges between bins in the column's unit, in order. ``self.sizes`` has the number of steps in each
        bin, and ``self.first`` is the number of the first one; step 0 begins at ``self.start``, and steps are
        ``self.width`` wide.
        """
        return [self.start + self.width * (self.first + int(step)) for step in np.cumsum(self.sizes)[:-1]]

    def log_sizes(self) -> Real:
        """Returns for each bin the logarithm of the width that its share is divided by; an outer bin is one step wider."""
        return np.asarray(np.log(steps_per_share(self.sizes)) + np.log(self.width))

    def draw(self, bins: Int, rng: Generator) -> Real:
        """Draws a value in each of these ``bins`` (their numbers). Beyond the outer bins, the density halves from step
        to step. ``self.sizes`` has the number of steps in each bin; step 0 begins at ``self.start``, and the first step
        has the number ``self.first``.
        """
        is_first = (bins == 0).astype(np.int64)  # 1 or 0: a step more, which stands for all before the bin
        is_last = (bins == self.n_bins - 1).astype(np.int64)
        size = self.sizes[bins]  # of each draw's bin, in steps
        # From the bin's first step; −1 or ``size``: beyond an outer bin.
        step_in_bin = np.floor(rng.random(len(bins)) * (is_first + size + is_last)).astype(np.int64) - is_first
        n_beyond = rng.geometric(0.5, len(bins)) - 1  # steps farther out, in the mass beyond an outer bin
        step_in_bin = np.where(
            step_in_bin < 0, -1 - n_beyond, np.where(step_in_bin >= size, step_in_bin + n_beyond, step_in_bin)
        )
        steps = self.first + (np.cumsum(self.sizes) - self.sizes)[bins] + step_in_bin  # from ``start``, in widths
        return self.start + self.width * (steps + rng.random(len(bins)))


@dataclass(frozen=True)
class HistogramParameters(NumericParameters):
    """The bins of each feature, and the log density of their steps (``tables``, steps × classes)."""

    features: Features
    axes: tuple[BinAxis, ...]
    tables: tuple[Real, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the parts with which the kernel adds up log P(value | class) of the features for each of these rows."""
        columns = [number_column(rows, name) for name in self.features.names]
        return [  # for each feature its bins (``axes``) and the log densities of their steps (steps × classes)
            _core.HistogramPart(column, axis.start, axis.width, axis.first, table)
            for column, axis, table in zip(columns, self.axes, self.tables, strict=True)
        ]

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each feature for a row of each of these ``classes`` (class numbers); returns an array per
        column.
        """
        columns = []
        # The bins of each feature, which consist of steps, and the log densities of the steps (steps × classes).
        for axis, table in zip(self.axes, self.tables, strict=True):
            share = np.exp(table + np.log(axis.width))  # of each step (steps × classes)
            share[[0, -1]] *= 2.0  # as much lies beyond an outer step as in it
            steps = dirichlet.draw_cells(share, classes, rng)  # of each row
            n_steps_beyond = rng.geometric(0.5, len(classes)) - 1  # if it is an outer step
            steps = np.where(
                steps == 0, -n_steps_beyond, np.where(steps == len(share) - 1, steps + n_steps_beyond, steps)
            )
            columns.append(axis.start + axis.width * (axis.first + steps + rng.random(len(classes))))
        return columns

    def spread(self, f: int) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of feature f in each class (classes each). Mass beyond the outer
        bins counts as within them.
        """
        axis = self.axes[f]  # the bins of the feature, which consist of steps
        share = self._masses(f)  # of each step (steps × classes)
        share[[0, -1]] *= 2.0  # as much lies beyond an outer step as in it
        middles = np.arange(len(share)) + 0.5  # in steps from the first edge, as the next two
        mean = middles @ share
        deviation = np.sqrt(((middles[:, None] - mean) ** 2 * share).sum(axis=0))
        return axis.edges()[0] + axis.width * mean, axis.width * deviation

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """Returns P(value < cut) and P(value ≥ cut) of feature f in each class, for these numbers (cuts × classes
        each).
        """
        edges = self.axes[f].edges()  # of the steps, in order
        width = self.axes[f].width  # of a step
        masses = self._masses(f)  # of each step (steps × classes)
        return _below(edges, masses, width, cuts), _below(-edges[::-1], masses[::-1], width, -cuts)

    def ends(self, f: int, near: Real, step: Real) -> Real:
        """Returns for each of the wanted numbers (``near``) the edge of a bin of feature f that is nearest to a round
        number, a multiple of ``step``, near it.
        """
        axis = self.axes[f]  # the bins of the feature
        edges = axis.edges()  # of the steps that bins are made of
        round_numbers = super().ends(f, near, step)
        # The edge of a step that is nearest to each, by its index.
        nearest = np.clip(np.round((round_numbers - edges[0]) / axis.width), 0, len(edges) - 1).astype(np.int64)
        bin_edges = np.cumsum([0, *axis.sizes])  # the edges of bins, by their index in ``edges``
        upper_place = np.searchsorted(bin_edges, nearest)
        # The edges of bins on both sides.
        lower = bin_edges[np.maximum(upper_place - 1, 0)]
        upper = bin_edges[upper_place]
        return np.asarray(edges[np.where(nearest - lower < upper - nearest, lower, upper)])

    def cuts(self, column: str | None) -> list[float]:
        """Returns the edges between the bins of the only feature, in ascending order; ``column`` is not needed."""
        return self.axes[0].cuts()

    def _masses(self, f: int) -> Real:
        """Returns the probability of each step of feature f (steps × classes). As much as an outer step has lies beyond
        it. ``tables`` has the log density of each step.
        """
        return np.exp(self.tables[f]) * self.axes[f].width


def _below(edges: Real, masses: Real, width: float, cuts: Real) -> Real:
    """Returns the probability below each cut (cuts × classes), given the edges of steps, their masses (steps × classes)
    and their width. It is even within a step; beyond the outer steps it halves from step to step.
    """
    # Below each edge (edges × classes): as much as the first step has lies below it.
    cumulative = np.cumsum(np.concatenate([masses[:1], masses]), axis=0)
    # Cuts × classes, as all that follows: below the cut, or below the outer edge beyond which it lies.
    probability_within = np.stack([np.interp(cuts, edges, column) for column in cumulative.T], axis=1)
    below_first_step = masses[0] * _share_beyond(np.maximum(edges[0] - cuts, 0.0) / width)[:, None]
    above_last_step = masses[-1] * (1.0 - _share_beyond(np.maximum(cuts - edges[-1], 0.0) / width))[:, None]
    return np.asarray(np.where((cuts < edges[0])[:, None], below_first_step, probability_within + above_last_step))


def _share_beyond(distances: Real) -> Real:
    """Returns the share of the mass beyond an outer step that lies farther out than each of these distances (in steps),
    in their shape: the density halves from step to step.
    """
    n_whole_steps = np.floor(distances)
    return np.asarray(2.0**-n_whole_steps * (1.0 - (distances - n_whole_steps) / 2.0))


# Blocks ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockCells:
    """The log-shares of a block's cells in each class.

    Args:
        axes: The bins of each column.
        numbers: The numbers of the cells that rows have, in ascending order; a cell's number encodes its bin on every axis.
        shares: The log-shares of these cells and of all others.
    """

    axes: tuple[BinAxis, ...]
    numbers: Int
    shares: SparseShares

    def marginal(self, columns: Sequence[int]) -> BlockCells:
        """Returns the cells of the columns with these numbers alone, summed over all other columns. ``self.numbers``
        are those of the cells that rows have, ``self.shares`` the log-shares of cells, and ``self.axes`` the bins of
        each column.
        """
        axes = tuple(self.axes[j] for j in columns)
        bins_by_column = np.unravel_index(self.numbers, [axis.n_bins for axis in self.axes])  # of each cell
        cells_of_columns = _cell_numbers([bins_by_column[j] for j in columns], axes)
        # The new cells that rows have, and which of them each old one is part of.
        numbers, new_cell = np.unique(cells_of_columns, return_inverse=True)
        # How many old cells make a new one.
        n_summed = prod(axis.n_bins for j, axis in enumerate(self.axes) if j not in columns)
        shares = np.zeros((len(numbers), len(self.shares.empty)))  # new cells × classes
        np.add.at(shares, new_cell, np.exp(self.shares.seen))
        n_empty = n_summed - np.bincount(new_cell, minlength=len(numbers))  # old cells without rows in each new one
        shares += n_empty[:, None] * np.exp(self.shares.empty)
        log_empty = np.log(float(n_summed)) + self.shares.empty  # of each new cell without rows (classes)
        n_cells = prod(axis.n_bins for axis in axes)
        return BlockCells(axes, numbers, SparseShares(dirichlet.log(shares), log_empty, float(n_cells - len(numbers))))

    def log_densities(self, steps: Real) -> Real:
        """Returns the log density of rows in each class (rows × classes). ``steps`` has the number of each row's step
        on each axis (rows × columns). ``shares.seen`` has the log-shares of the cells that rows have (cells × classes),
        whose numbers are ``numbers``, and ``shares.empty`` that of any other cell (classes).
        """
        # For each axis: the bin of each row, and how many steps it lies beyond the outer bins.
        bins_and_distances = [axis.bins(steps[:, j]) for j, axis in enumerate(self.axes)]
        numbers = _cell_numbers([bins for bins, _ in bins_and_distances], self.axes)  # the cell of each row
        lines = np.searchsorted(self.numbers, numbers)  # of the cells that rows have; the last stands for all others
        lines[~np.isin(numbers, self.numbers)] = len(self.numbers)
        log_shares = np.vstack([self.shares.seen, self.shares.empty])[lines]  # rows × classes
        # Of each row: the log size of its cell, and by how much its density is lower beyond the outer bins.
        log_sizes = sum(axis.log_sizes()[bins] for axis, (bins, _) in zip(self.axes, bins_and_distances, strict=True))
        log_decay = sum(distance for _, distance in bins_and_distances) * np.log(2.0)
        return np.asarray(log_shares - (log_sizes + log_decay)[:, None])

    def draw(self, n: int, c: int, rng: Generator) -> list[Real]:
        """Draws n values of each column for class number c; returns one array per column. ``axes`` has the bins of each
        column, and ``shares`` the log-shares of cells.
        """
        numbers = np.append(self.numbers, -1)[self.shares.draw(n, c, rng)]  # of cells; −1: any that no row has
        n_cells = prod(axis.n_bins for axis in self.axes)
        while (without_cell := np.flatnonzero(numbers < 0)).size:  # any cell that no row has
            random_cells = rng.integers(n_cells, size=len(without_cell))
            numbers[without_cell] = np.where(np.isin(random_cells, self.numbers), -1, random_cells)
        bins_by_column = np.unravel_index(numbers, [axis.n_bins for axis in self.axes])  # of each draw
        return [axis.draw(np.asarray(bins), rng) for axis, bins in zip(self.axes, bins_by_column, strict=True)]


def _cell_numbers(bins: Sequence[Any], axes: Sequence[BinAxis]) -> Int:
    """Returns the number of each cell among all combinations of bins (cells). ``bins`` has for each axis the bin of
    every cell, and ``axes`` the bins of each column of the block.
    """
    return np.asarray(np.ravel_multi_index(tuple(bins), [axis.n_bins for axis in axes]), dtype=np.int64)


def join_columns(family: Histogram, keys: Sequence[Any], cells: Real, n_columns: int) -> list[JoinedBins]:
    """Returns for each of a block's columns its fine bins joined for estimation. ``keys`` are the fine cells that were
    counted, each with the bin of every column, and ``cells`` their rows (cells × classes). Bins are wider than those of
    a single column, because a block has more cells.
    """
    fine_bins = np.array(keys, dtype=np.int64).reshape(len(keys), n_columns)  # cells × columns
    bins_by_column = []
    for j in range(n_columns):
        # The occupied fine bins of the column, and which of them each cell is in.
        occupied_bins, bin_of_cell = np.unique(fine_bins[:, j], return_inverse=True)
        rows = np.zeros((len(occupied_bins), cells.shape[1]))  # fine bins × classes
        np.add.at(rows, bin_of_cell, cells)
        bins_by_column.append(family.join_bins(tuple(occupied_bins.tolist()), rows, n_columns))
    return bins_by_column


class BlockTable(NamedTuple):
    """The cells of a block that rows have."""

    axes: tuple[BinAxis, ...]  # the bins of each column
    numbers: Int  # of the cells, in ascending order
    rows: Real  # (cells, classes)


def block_table(family: Histogram, feature: Feature, keys: Sequence[Any], cells: Real) -> BlockTable:
    """Returns the fine cells of a block (``keys``, each with the bin of every column) joined for estimation; ``cells``
    has their rows (cells × classes).
    """
    n_columns = len(feature.inputs)
    bins_by_column = join_columns(family, keys, cells, n_columns)
    if prod(len(bins.sizes) for bins in bins_by_column) > MOST_COMBINATIONS:
        raise too_many_combinations(feature.name, n_columns)
    fine_bins = np.array(keys, dtype=np.int64).reshape(len(keys), n_columns)  # keys × columns
    grids = zip(bins_by_column, bin_starts(feature).tolist(), bin_widths(feature).tolist(), strict=True)
    axes = tuple(bins.axis(start, fine_width) for bins, start, fine_width in grids)
    # For each column, the step and then the joined bin of each key.
    steps = (fine_bins[:, j] >> round(np.log2(bins.width)) for j, bins in enumerate(bins_by_column))
    new_bins = [axis.bins(column_steps.astype(np.float64))[0] for axis, column_steps in zip(axes, steps, strict=True)]
    # The numbers of the joined cells, and which of them each key is in.
    numbers, cell_of_key = np.unique(_cell_numbers(new_bins, axes), return_inverse=True)
    rows = np.zeros((len(numbers), cells.shape[1]))  # joined cells × classes
    np.add.at(rows, cell_of_key, cells)
    return BlockTable(axes, numbers, rows)


@dataclass(frozen=True)
class HistogramBlockParameters(Parameters):
    """The cells of a block."""

    features: Features
    cells: BlockCells

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the part with which the kernel adds log P(values of the block | class) of these rows; a missing value
        is summed out.
        """
        cells = self.cells  # their log-shares in each class, and the bins of each column (``axes``)
        widths = np.array([axis.width for axis in cells.axes])  # of a step of each column
        # The distinct combinations of steps (lines × columns; NaN: missing), and the line of each row.
        line_of_row, steps = distinct_cells(number_block_bins(rows, self.features[0], widths))
        log_densities = np.zeros((len(steps), len(cells.shares.empty)))  # lines × classes
        for columns, lines in rows_by_columns_present(steps):
            marginal = cells if len(columns) == len(cells.axes) else cells.marginal(columns.tolist())
            log_densities[lines] = marginal.log_densities(steps[np.ix_(lines, columns)])
        is_missing = np.isnan(steps).all(axis=1)  # of each line
        return [line_by_line(np.where(is_missing[line_of_row], -1, line_of_row), log_densities)]

    def cuts(self, column: str | None) -> list[float]:
        """Returns the edges between the bins of one column of the block, in order; raises unless ``column`` names one."""
        names = self.features[0].columns
        if column not in names:
            raise errors.bad_setting("feature", column, f"one column of the block: {errors.listed(names)}")
        return self.cells.axes[names.index(column)].cuts()

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each column for a row of each of these ``classes`` (class numbers); returns an array per
        column. ``cells`` has the bins of each column (``axes``) and the log-shares of cells.
        """
        drawn = np.empty((len(self.cells.axes), len(classes)))  # columns × rows
        for c, rows in enumerate(rows_by_class(classes, len(self.cells.shares.empty))):
            drawn[:, rows] = self.cells.draw(len(rows), c, rng)
        return list(drawn)
