"""Numbers counted by bins: a column's fine bins, or the cells of a block of columns.

Bins are doubled when too many are occupied, so that a finer grid always fits into a coarser one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.family import (
    MOST_BINS,
    ColumnReader,
    Counter,
    Feature,
    Features,
    RowsToCount,
    bad_value,
    block_columns,
    is_power,
    number_column,
)
from banbury.families.keys import MISSING_BIN, KeyCounter, check_key_order, count_codes, renumber_wide_range
from banbury.families.moments import as_number, first_rows, scales
from banbury.reading import Batch, Codes
from banbury.sums import ROUNDING, Counts, Keys

DOUBLINGS_TO_SPREAD = 6  # a fine bin is 2**-6 of the column's spread
LARGEST_BIN = 2**53  # the largest number of a bin in a file
FARTHEST_BIN = 1e300  # the largest number of a bin that is scored
MOST_CELLS = 2**14  # of a block that may be occupied
UNROUNDED_SHARE = 0.05  # of the rows may have values that are not rounded as the others are


class BinCounter(KeyCounter):
    """Counts the rows of each fine bin of a column."""

    most: ClassVar[int] = MOST_BINS  # that may be occupied
    reads = Counter.reads
    describe_scale = Counter.describe_scale

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Returns what two features must have in common for their counts to be added: the origin, and the ``scales`` of
        a block; widths may differ, because bins can be joined.
        """
        return feature.origin, feature.scales

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the features with the start and the width of their bins (origin and unit), settled by the first rows
        (``batch``).
        """
        fine_widths = _fine_widths(batch, features.names)  # of each column
        # The start and width of each column's bins.
        grids = [_grid(feature, fine_widths[f : f + 1])[0] for f, feature in enumerate(features)]
        origins, units = np.array(grids, dtype=np.float64).reshape(-1, 2).T.copy()
        return replace(features.change(as_number), origins=origins, units=units)

    def has_valid_scale(self, feature: Feature) -> bool:
        """Whether a feature from a file is a single column, which has no scales of a block."""
        return not feature.scales

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Counts]:
        """Counts these rows in the bins of the features. Returns the features as they are, and the counts."""
        counts = [count_codes([feature.name], [_encode_bins(feature, rows)], rows)[0] for feature in features]
        return features, Counts.join(counts, len(rows.labels))

    def key(self, feature: Feature, key: Any) -> str:
        """Returns the interval of a bin (``key`` is its number), or of a block's cell in each column, in words for
        messages.
        """
        bin_numbers = key if feature.columns else [key]  # one of each column
        starts = bin_starts(feature).tolist()
        widths = bin_widths(feature).tolist()
        intervals = (
            f"{name} {start + width * k:.9g} to {start + width * (k + 1):.9g}"
            for name, start, width, k in zip(feature.inputs, starts, widths, bin_numbers, strict=True)
        )
        return errors.listed(intervals, most=6)

    def widen(self, features: Features, sums: Counts) -> Features:
        """Returns the features with wider bins (a larger unit) where more bins are occupied in ``sums`` than may be
        (``self.most``).
        """
        overfull = [f for f, keys in enumerate(sums.keys) if len(keys) > self.most]  # feature numbers
        if not overfull:
            return features
        units = features.units.copy()
        units[overfull] *= np.exp2([_doublings_to_fit(sums.keys[f], self.most) for f in overfull])
        return replace(features, units=units)

    def move_sums(self, old: Features, new: Features, sums: Counts) -> Counts:
        """Returns the sums with the bins of the features ``old`` joined to those of ``new``, which may be wider."""
        for f in np.flatnonzero(old.units != new.units).tolist():
            sums = sums.coarsen(f, _doublings(old[f], new[f]))
        return sums

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        """Describes in a few words how many bins or cells of one feature have rows (``sums`` are its own); ``missing``
        is a phrase to append about rows without a value.
        """
        return f"{errors.many(len(sums.keys[0]), 'cell' if feature.columns else 'bin')} occupied{missing}"

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """Returns the keys of a feature from a file, as a tuple; raises unless they are valid, distinct and in order."""
        if not all(type(key) is int and abs(key) <= LARGEST_BIN for key in check_key_order(feature, keys)):
            raise ValueError(f"the keys of {feature.name!r} are not the numbers of bins")
        return tuple(keys)


def _grid(feature: Feature, fine_widths: Real) -> tuple[tuple[float, float], ...]:
    """Returns for each column of a feature the start and width of its bins: those that the feature's family sets, or 0
    and ``fine_widths``, one for each column.
    """
    family: Any = feature.family
    return family.grid(fine_widths)  # type: ignore[no-any-return]


def _fine_widths(batch: Batch, names: Sequence[str]) -> Real:
    """Returns the width of a fine bin of each of these columns (columns), from the spread of the first rows
    (``batch``).
    """
    _, spreads = scales(first_rows(batch, names))
    return np.maximum(spreads * 2.0**-DOUBLINGS_TO_SPREAD, 2.0**-1020)


def _encode_bins(feature: Feature, rows: RowsToCount) -> Codes:
    """Returns the number of the fine bin of each row's value of a single column, as codes."""
    bin_numbers = number_bins(number_column(rows.batch, feature.name), feature.name, feature.origin, feature.unit, rows)
    # Of each column, here the only one.
    lowest, highest = _core.span([bin_numbers], rows.threads)
    return renumber_wide_range(Codes(bin_numbers, int(lowest[0]), range(int(lowest[0]), int(highest[0]) + 1)), rows)


def number_bins(column: NDArray[Any], name: str, start: float, width: float, rows: RowsToCount) -> Int:
    """Returns for each row the number of its value's bin, MISSING_BIN if it has none, given where bin 0 starts and the
    width of bins; raises for a value that no bin can have. ``name`` is the column, for messages.
    """
    try:
        return _core.bins(column, start, width, rows.threads)
    except _core.BadValue as bad:
        raise bad_value(bad, [name], rows.batch) from None


def _doublings_to_fit(keys: Keys, most: int) -> int:
    """Returns how often bins must be joined in pairs so that at most ``most`` of the bins with these numbers (``keys``)
    are left.
    """
    bin_numbers = np.array(keys, dtype=np.int64)
    doublings = 0
    while len(np.unique(bin_numbers >> doublings)) > most:
        doublings += 1
    return doublings


def _doublings(old: Feature, new: Feature) -> Any:
    """Returns how often the bins of a column (a number), or of each of a block's columns (an array), are joined in
    pairs to get from the feature ``old`` to ``new``; raises if that is impossible.
    """
    old_widths = bin_widths(old)
    new_widths = bin_widths(new)
    doublings = np.log2(new_widths / old_widths)  # of each column
    is_impossible = (doublings < 0) | (doublings != np.rint(doublings))
    if is_impossible.any():
        j = int(np.argmax(is_impossible))
        name = old.inputs[j]
        raise errors.schema_mismatch(
            f"bins of {name!r} of width {old_widths[j]:g} cannot be cut to width {new_widths[j]:g}"
        )
    return doublings.astype(np.int64) if old.columns else int(doublings[0])


class CellCounter(BinCounter):
    """Counts the rows of each cell of a block of columns. A row that lacks one of the values is in no cell."""

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the blocks with a start and a width of the bins of each column (``scales``), from the spread of the
        first rows (``batch``).
        """
        return Features.of(block._replace(scales=_grid(block, _fine_widths(batch, block.inputs))) for block in features)

    def has_valid_scale(self, feature: Feature) -> bool:
        """Whether a block from a file has a scale for each column, and its bins were joined in pairs."""
        return len(feature.scales) == len(feature.columns) and is_power(feature.unit)

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Counts]:
        """Counts rows in bins that are as wide as these rows need, so that no more cells are created than are kept.
        Returns the blocks, whose bins may be wider than before, and the rows of each cell.
        """
        blocks = []  # with bins that are wide enough
        counts = []  # of each block: occupied cells, and their rows (cells × classes)
        for feature in features:
            bin_numbers = _number_fine_bins(feature, rows)  # rows × columns
            is_counted = (rows.classes >= 0) & (bin_numbers != MISSING_BIN).all(axis=1)  # of each row
            _, cells = distinct_cells(bin_numbers[is_counted], rows.threads)  # cells × columns
            block = widen_block(feature, cells, rows.threads)
            blocks.append(block)
            if block is not feature:
                bin_numbers = _number_fine_bins(block, rows)
            counts += count_codes([feature.name], [_encode_cells(bin_numbers, rows)], rows)
        return Features.of(blocks), Counts.join(counts, len(rows.labels))

    def widen(self, features: Features, sums: Counts) -> Features:
        """Returns the blocks with wider bins (a larger unit) where more cells are occupied in ``sums`` than may be."""
        blocks = list(zip(features, sums.keys, strict=True))  # each with its occupied cells
        if all(len(keys) <= most_cells(feature) for feature, keys in blocks):
            return features
        return Features.of(widen_block(feature, np.array(keys, dtype=np.int64)) for feature, keys in blocks)

    def move_sums(self, old: Features, new: Features, sums: Counts) -> Counts:
        """Returns the sums with the bins of the blocks ``old`` joined to those of ``new``, which may be wider."""
        for f, (old_block, new_block) in enumerate(zip(old, new, strict=True)):
            if (old_block.unit, old_block.scales) != (new_block.unit, new_block.scales):
                sums = sums.coarsen(f, _doublings(old_block, new_block))
        return sums

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        """Returns the block with the bins of ``other``, if bin 0 starts at the same numbers in both; otherwise as it
        is.
        """
        if [start for start, _ in feature.scales] != [start for start, _ in other.scales]:
            return feature
        return feature._replace(scales=other.scales, unit=other.unit)

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """Returns the keys of a block from a file, as tuples of bin numbers, one per column; raises unless they are
        valid, distinct and in order.
        """
        cells = tuple(tuple(key) for key in keys)  # tuples of bin numbers
        n_columns = len(feature.inputs)
        are_cells = all(
            len(cell) == n_columns
            and all(type(bin_number) is int and abs(bin_number) <= LARGEST_BIN for bin_number in cell)
            for cell in cells
        )
        if not are_cells or tuple(sorted(set(cells))) != cells:
            raise ValueError(f"the keys of {feature.name!r} are not distinct numbers of cells in ascending order")
        return cells  # type: ignore[return-value]


def _number_fine_bins(feature: Feature, rows: RowsToCount) -> Int:
    """Returns the numbers of the fine bins of a block's rows (rows × columns), MISSING_BIN where a value is missing."""
    # Arrays of rows × columns, which together have the columns in order.
    matrices = [column.reshape(rows.batch.n_rows, -1) for column in rows.batch.numbers(feature.inputs)]
    columns = [np.ascontiguousarray(matrix[:, j]) for matrix in matrices for j in range(matrix.shape[1])]
    columns_and_grids = zip(columns, feature.inputs, bin_starts(feature), bin_widths(feature), strict=True)
    return np.column_stack(
        [number_bins(column, name, start, width, rows) for column, name, start, width in columns_and_grids]
    )


def _encode_cells(codes: Int, rows: RowsToCount) -> Codes:
    """Returns the cells of rows as codes, from the numbers of their bins (``codes``, rows × columns). A row without a
    class or one of the values has none (−1). A cell's key is the tuple of its bins.
    """
    is_counted = (rows.classes >= 0) & (codes != MISSING_BIN).all(axis=1)
    cell_numbers = np.full(len(codes), -1, dtype=np.int32)  # of each row, among the distinct ``cells``
    cell_numbers[is_counted], cells = distinct_cells(codes[is_counted], rows.threads)
    keys: Any = [tuple(cell) for cell in cells.tolist()]
    return Codes(cell_numbers, low=0, values=keys)


# Blocks of columns cut into cells. A cell's key is the number of its bin in each column. When too many cells are occupied, bins
# are doubled in one column after the other; ``unit`` of a block is 2 to how often that has happened.


def most_cells(feature: Feature) -> int:
    """Returns how many cells of a block may be occupied: twice as many with each additional column, up to a limit."""
    return min(MOST_BINS << (len(feature.inputs) - 1), MOST_CELLS)


def block_doublings(feature: Feature) -> Int:
    """Returns how often the bins of each column of a block have been joined in pairs (columns). ``feature.unit`` is 2
    to how often that happened in all; the first columns come first.
    """
    n_columns = len(feature.inputs)
    doublings_in_all = round(float(np.log2(feature.unit)))
    return (doublings_in_all + np.arange(n_columns - 1, -1, -1)) // n_columns


def bin_widths(feature: Feature) -> Real:
    """Returns the width of the bins of each column of a block (columns), or of the only column (1)."""
    if not feature.columns:
        return np.array([feature.unit])
    return np.asarray(np.array([width for _, width in feature.scales]) * 2.0 ** block_doublings(feature))


def bin_starts(feature: Feature) -> Real:
    """Returns where bin 0 of each column of a block begins (columns), or of the only column (1)."""
    return np.array([start for start, _ in feature.scales] if feature.columns else [feature.origin])


def smallest_gap(codes: NDArray[Any], rows: Real) -> float:
    """Returns the smallest distance, in bins, between the values of a column, given its bins (``codes``, in order) and
    the rows in each; 1 if there is one value. The rarest values, which have a twentieth of the rows, are ignored.
    """
    sorted_rows = np.sort(rows)
    cumulative = np.cumsum(sorted_rows)  # from the rarest bin on
    fewest_rows = sorted_rows[np.searchsorted(cumulative, (UNROUNDED_SHARE + ROUNDING) * cumulative[-1], side="right")]
    frequent_codes = codes[(rows > 0) & (rows >= (1.0 - ROUNDING) * fewest_rows)]
    return float(np.diff(frequent_codes).min()) if len(frequent_codes) > 1 else 1.0


def distinct_cells(codes: NDArray[Any], threads: int = 1) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Returns for each row the number of its cell, and the distinct cells (cells × columns) in the order in which they
    first occur. ``codes`` has the bins of rows (rows × columns).
    """
    codes = np.ascontiguousarray(codes)
    records = codes.view(np.uint8).reshape(len(codes), codes.shape[1] * codes.itemsize)  # rows × bytes
    cell_of_row, first_rows, _ = _core.encode_records(records, threads)  # ``first_rows``: the first row of each cell
    return cell_of_row, codes[first_rows]


def widen_block(feature: Feature, cells: Int, threads: int = 1) -> Feature:
    """Returns the block with its bins joined in pairs (its unit doubled) until no more of its cells are occupied than
    ``most_cells`` allows. ``cells`` are the bins of the occupied ones (cells × columns).
    """
    while len(cells) > most_cells(feature):
        wider = feature._replace(unit=feature.unit * 2.0)
        cells = distinct_cells(cells >> (block_doublings(wider) - block_doublings(feature)), threads)[1]
        feature = wider
    return feature


def number_block_bins(rows: ColumnReader, feature: Feature, widths: Real) -> Real:
    """Returns the numbers of the bins of a block's rows, as floats (rows × columns), NaN where a value is missing.
    ``widths`` has the width of each column's bins.
    """
    bin_numbers = np.empty((rows.n_rows, len(widths)))
    for j, (column, start) in enumerate(zip(block_columns(rows, feature), bin_starts(feature), strict=True)):
        with np.errstate(over="ignore", invalid="ignore"):
            distance = np.clip((column - start) / widths[j], -FARTHEST_BIN, FARTHEST_BIN)  # from ``start``, in bins
            bin_numbers[:, j] = np.where(np.isnan(distance), np.nan, np.floor(distance) + 0.0)  # + 0 turns −0 into 0
    return bin_numbers


BINS = BinCounter()
BLOCK_CELLS = CellCounter()
