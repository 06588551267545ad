"""Numbers counted by bins: a column's fine bins, or the cells of a block of columns.

Bins are doubled when too many are occupied, so that a finer grid always fits into a coarser one.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    RowsToCount,
    bad_value,
    columns_of,
    is_power,
)
from banbury.families.keys import LOWEST, KeyCounter, count_codes, narrow, scalar_keys
from banbury.families.moments import first_rows, names_of, scales
from banbury.reading import Batch, Codes
from banbury.sums import ROUNDING, Counts, Keys

FINE_BINS = 6  # a fine bin is 2**-6 of the column's spread
LARGEST_BIN = 2**53
FARTHEST_BIN = 1e300  # in bins
MOST_CELLS = 2**14
FEW = 0.05  # of the rows may have values that are not rounded as the others are


class BinCounter(KeyCounter):
    """The rows of each fine bin of a column."""

    most: ClassVar[int] = MOST_BINS  # that may be occupied
    reads = Counter.reads
    describe_scale = Counter.describe_scale

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        return feature.origin, feature.scales

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        fine = _fine(batch, names_of(features, batch))
        grids = ((feature, *_grid(feature, fine[f : f + 1])[0]) for f, feature in enumerate(features))
        return [feature._replace(kind="float", origin=start, unit=width) for feature, start, width in grids]

    def has_valid_scale(self, feature: Feature) -> bool:
        return not feature.scales

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        parts = [count_codes([feature], [_bins(feature, rows)], rows)[0] for feature in features]
        return features, Counts.join(parts, len(rows.labels))

    def key(self, feature: Feature, key: Any) -> str:
        return _span([feature.name], [feature.origin], [feature.unit], [key])

    def widen(self, features: Sequence[Feature], sums: Counts) -> Sequence[Feature]:
        if max(map(len, sums.keys), default=0) <= self.most:
            return features
        return [_within(feature, keys, self.most) for feature, keys in zip(features, sums.keys, strict=True)]

    def move_sums(self, old: Sequence[Feature], new: Sequence[Feature], sums: Counts) -> Counts:
        for f, (a, b) in enumerate(zip(old, new, strict=True)):
            if (a.unit, a.scales) != (b.unit, b.scales):
                sums = sums.coarsen(f, _doublings(a, b))
        return sums

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        return f"{errors.many(len(sums.keys[0]), 'cell' if feature.columns else 'bin')} occupied{missing}"

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        if not all(type(key) is int and abs(key) <= LARGEST_BIN for key in scalar_keys(feature, keys)):
            raise ValueError(f"the keys of {feature.name!r} are not the numbers of bins")
        return tuple(keys)


def _grid(feature: Feature, fine: Real) -> tuple[tuple[float, float], ...]:
    family: Any = feature.family
    return family.grid(fine)  # type: ignore[no-any-return]


def _fine(batch: Batch, names: Sequence[str]) -> Real:
    """Widths of fine bins, as the first rows want them."""
    return np.maximum(scales(first_rows(batch, names))[1] * 2.0**-FINE_BINS, 2.0**-1020)


def _bins(feature: Feature, rows: RowsToCount) -> Codes:
    """The numbers of the fine bins a column's values fall into."""
    codes = bins_of(rows.batch.numbers([feature.name])[0].reshape(-1), feature.name, feature.origin, feature.unit, rows)
    low, high = (int(x[0]) for x in _core.span([codes], rows.threads))
    return narrow(Codes(codes, low, range(low, high + 1)), rows)


def bins_of(column: NDArray[Any], name: str, start: float, width: float, rows: RowsToCount) -> NDArray[np.int64]:
    try:
        return _core.bins(column, start, width, rows.threads)
    except _core.BadValue as bad:
        raise bad_value(bad, [name], rows.batch) from None


def _within(feature: Feature, keys: Keys, most: int) -> Feature:
    """The feature with bins doubled until no more of these are left than may be."""
    codes = np.array(keys, dtype=np.int64)
    doublings = 0
    while len(np.unique(codes >> doublings)) > most:
        doublings += 1
    return feature._replace(unit=feature.unit * 2.0**doublings) if doublings else feature


def _doublings(old: Feature, new: Feature) -> Any:
    """How often the bins of a column, or of each of a block's, are doubled; raises where that does not make the new ones."""
    here, there = (block_widths(feature) if feature.columns else np.array([feature.unit]) for feature in (old, new))
    doublings = np.log2(there / here)
    unfit = (doublings < 0) | (doublings != np.rint(doublings))
    if unfit.any():
        j = int(np.argmax(unfit))
        name = old.inputs[j]
        raise errors.schema_mismatch(f"bins of {name!r} of width {here[j]:g} cannot be cut to width {there[j]:g}")
    return doublings.astype(np.int64) if old.columns else int(doublings[0])


def _span(names: Sequence[str], starts: Sequence[float], widths: Sequence[float], numbers: Sequence[int]) -> str:
    """Where a bin lies, or a cell of a block: from where to where in each column."""
    places = zip(names, starts, widths, numbers, strict=True)
    return errors.listed(
        (f"{name} {start + w * k:.9g} to {start + w * (k + 1):.9g}" for name, start, w, k in places), 6
    )


class CellCounter(BinCounter):
    """The rows of each cell of a block of columns; a row that lacks one of the values is in none."""

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        return [f._replace(scales=_grid(f, _fine(batch, f.inputs))) for f in features]

    def has_valid_scale(self, feature: Feature) -> bool:
        return len(feature.scales) == len(feature.columns) and is_power(feature.unit)

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        """With bins as wide as these rows want them, so that no more cells are made than are kept."""
        wider = []
        parts = []
        for feature in features:
            codes = _block_codes(feature, rows)
            cells = distinct_cells(codes[(rows.classes >= 0) & (codes != LOWEST).all(axis=1)], rows.threads)[1]
            wider.append(fitting_block(feature, cells, rows.threads))
            codes = codes if wider[-1] is feature else _block_codes(wider[-1], rows)
            parts += count_codes([feature], [_cells(codes, rows)], rows)
        return wider, Counts.join(parts, len(rows.labels))

    def key(self, feature: Feature, key: Any) -> str:
        return _span(feature.inputs, block_starts(feature).tolist(), block_widths(feature).tolist(), list(key))

    def widen(self, features: Sequence[Feature], sums: Counts) -> Sequence[Feature]:
        blocks = zip(features, sums.keys, strict=True)
        return [fitting_block(f, np.array(k, dtype=np.int64)) if len(k) > most_cells(f) else f for f, k in blocks]

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        if [start for start, _ in feature.scales] != [start for start, _ in other.scales]:
            return feature
        return feature._replace(scales=other.scales, unit=other.unit)

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        cells = tuple(tuple(key) for key in keys)
        width = len(feature.inputs)
        fit = all(len(cell) == width and all(type(b) is int and abs(b) <= LARGEST_BIN for b in cell) for cell in cells)
        if not fit or tuple(sorted(set(cells))) != cells:
            raise ValueError(f"the keys of {feature.name!r} are not distinct numbers of cells in ascending order")
        return cells  # type: ignore[return-value]


def _block_codes(feature: Feature, rows: RowsToCount) -> NDArray[np.int64]:
    """The numbers of the fine bins, (rows, columns)."""
    matrices = [column.reshape(rows.batch.n_rows, -1) for column in rows.batch.numbers(feature.inputs)]
    columns = [np.ascontiguousarray(matrix[:, k]) for matrix in matrices for k in range(matrix.shape[1])]
    places = zip(columns, feature.inputs, block_starts(feature), block_widths(feature), strict=True)
    return np.column_stack([bins_of(*place, rows) for place in places])


def _cells(codes: NDArray[np.int64], rows: RowsToCount) -> Codes:
    """The numbers of the cells that a block's values fall into."""
    complete = (rows.classes >= 0) & (codes != LOWEST).all(axis=1)
    numbers = np.full(len(codes), -1, dtype=np.int32)
    numbers[complete], cells = distinct_cells(codes[complete], rows.threads)
    keys: Any = [tuple(cell) for cell in cells.tolist()]
    return Codes(numbers, 0, keys)


# Blocks of columns cut into cells. A cell's key is the number of its bin in each column. When too many cells are occupied, bins
# are doubled in one column after the other; ``unit`` of a block is 2 to how often that has happened.


def most_cells(feature: Feature) -> int:
    """How many cells of a block may be occupied: twice as many with every column more."""
    return min(MOST_BINS << (len(feature.inputs) - 1), MOST_CELLS)


def block_doublings(feature: Feature) -> Int:
    """How often the bins of each column have been doubled."""
    n = len(feature.inputs)
    return (round(float(np.log2(feature.unit))) + np.arange(n - 1, -1, -1)) // n


def block_widths(feature: Feature) -> Real:
    return np.asarray(np.array([width for _, width in feature.scales]) * 2.0 ** block_doublings(feature))


def block_starts(feature: Feature) -> Real:
    """Where the bin 0 of each column begins."""
    return np.array([start for start, _ in feature.scales])


def rounding(codes: NDArray[Any], rows: Real) -> float:
    """How many bins a column's values are apart at least, as if rounded; the rarest, a twentieth of the rows, aside."""
    ordered = np.sort(rows)
    below = np.cumsum(ordered)
    rare = ordered[np.searchsorted(below, (FEW + ROUNDING) * below[-1], side="right")]
    kept = codes[(rows > 0) & (rows >= (1.0 - ROUNDING) * rare)]
    return float(np.diff(kept).min()) if len(kept) > 1 else 1.0


def distinct_cells(codes: NDArray[Any], threads: int = 1) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The number of each row's cell, and the cells in the order in which they first occur."""
    codes = np.ascontiguousarray(codes)
    records = codes.view(np.uint8).reshape(len(codes), codes.shape[1] * codes.itemsize)
    numbers, first, _ = _core.encode_records(records, threads)
    return numbers, codes[first]


def fitting_block(feature: Feature, cells: Int, threads: int = 1) -> Feature:
    """The block with bins doubled until no more of these cells are left than may be."""
    while len(cells) > most_cells(feature):
        wider = feature._replace(unit=feature.unit * 2.0)
        cells = distinct_cells(cells >> (block_doublings(wider) - block_doublings(feature)), threads)[1]
        feature = wider
    return feature


def block_steps(rows: ColumnReader, feature: Feature, width: Real) -> Real:
    """The bins, of these widths, that rows to be scored fall into, (rows, columns); NaN where a value is missing."""
    steps = np.empty((rows.n_rows, len(width)))
    for j, (column, start) in enumerate(zip(columns_of(rows, feature), block_starts(feature), strict=True)):
        with np.errstate(over="ignore", invalid="ignore"):
            z = (
                np.floor(np.clip((column - start) / width[j], -FARTHEST_BIN, FARTHEST_BIN)) + 0.0
            )  # −0 is no other number
            steps[:, j] = np.where(np.isnan(z), np.nan, z)
    return steps


BINS = BinCounter()
BLOCK_CELLS = CellCounter()
