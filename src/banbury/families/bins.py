"""Numbers counted by bins: a column's fine bins, or the cells of a block of columns.

Bins are doubled when too many are occupied, so that a finer grid always fits into a coarser one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Real
from banbury.families import grid
from banbury.families.family import MOST_BINS, Counter, Feature, RowsToCount, is_power, named
from banbury.families.keys import LOWEST, KeyCounter, count_codes, narrow, scalar_keys
from banbury.families.moments import first_rows, names_of, scales
from banbury.reading import Batch, Codes
from banbury.sums import Counts, Keys

FINE_BINS = 6  # a fine bin is 2**-6 of the column's spread
LARGEST_BIN = 2**53


class BinCounter(KeyCounter):
    """The rows of each fine bin of a column."""

    most: ClassVar[int] = MOST_BINS  # that may be occupied
    reads, described = Counter.reads, Counter.described

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        return feature.origin, feature.scales

    def settled(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        fine = _fine(batch, names_of(features, batch))
        each = ((feature, *_grid(feature, fine[f : f + 1])[0]) for f, feature in enumerate(features))
        return [feature._replace(kind="float", origin=start, unit=width) for feature, start, width in each]

    def is_settled(self, feature: Feature) -> bool:
        return not feature.scales

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        parts = [count_codes([feature], [_bins(feature, rows)], rows)[0] for feature in features]
        return features, Counts.join(parts, len(rows.labels))

    def key(self, feature: Feature, key: Any) -> str:
        return _span([feature.name], [feature.origin], [feature.unit], [key])

    def widened(self, features: Sequence[Feature], sums: Counts) -> Sequence[Feature]:
        if max(map(len, sums.keys), default=0) <= self.most:
            return features
        return [_within(feature, keys, self.most) for feature, keys in zip(features, sums.keys, strict=True)]

    def moved(self, old: Sequence[Feature], new: Sequence[Feature], sums: Counts) -> Counts:
        for f, (a, b) in enumerate(zip(old, new, strict=True)):
            if (a.unit, a.scales) != (b.unit, b.scales):
                sums = sums.coarsen(f, _doublings(a, b))
        return sums

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        return f"{errors.many(len(sums.keys[0]), 'cell' if feature.columns else 'bin')} occupied{missing}"

    def checked_keys(self, feature: Feature, keys: Any) -> Keys:
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
        raise named(bad, [name], rows.batch) from None


def _within(feature: Feature, keys: Keys, most: int) -> Feature:
    """The feature with bins doubled until no more of these are left than may be."""
    codes, doublings = np.array(keys, dtype=np.int64), 0
    while len(np.unique(codes >> doublings)) > most:
        doublings += 1
    return feature._replace(unit=feature.unit * 2.0**doublings) if doublings else feature


def _doublings(old: Feature, new: Feature) -> Any:
    """How often the bins of a column, or of each of a block's, are doubled; raises where that does not make the new ones."""
    here, there = (grid.widths(each) if each.columns else np.array([each.unit]) for each in (old, new))
    doublings = np.log2(there / here)
    unfit = (doublings < 0) | (doublings != np.rint(doublings))
    if unfit.any():
        j = int(np.argmax(unfit))
        name = old.inputs[j]
        raise errors.schema_mismatch(f"bins of {name!r} of width {here[j]:g} cannot be cut to width {there[j]:g}")
    return doublings.astype(np.int64) if old.columns else int(doublings[0])


def _span(names: Sequence[str], starts: Sequence[float], widths: Sequence[float], numbers: Sequence[int]) -> str:
    """Where a bin lies, or a cell of a block: from where to where in each column."""
    each = zip(names, starts, widths, numbers, strict=True)
    return errors.listed((f"{name} {start + w * k:.9g} to {start + w * (k + 1):.9g}" for name, start, w, k in each), 6)


class CellCounter(BinCounter):
    """The rows of each cell of a block of columns; a row that lacks one of the values is in none."""

    def settled(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        return [f._replace(scales=_grid(f, _fine(batch, f.inputs))) for f in features]

    def is_settled(self, feature: Feature) -> bool:
        return len(feature.scales) == len(feature.columns) and is_power(feature.unit)

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        """With bins as wide as these rows want them, so that no more cells are made than are kept."""
        wider, parts = [], []
        for feature in features:
            codes = _block_codes(feature, rows)
            cells = grid.distinct(codes[(rows.classes >= 0) & (codes != LOWEST).all(axis=1)], rows.threads)[1]
            wider.append(grid.fitting(feature, cells, rows.threads))
            codes = codes if wider[-1] is feature else _block_codes(wider[-1], rows)
            parts += count_codes([feature], [_cells(codes, rows)], rows)
        return wider, Counts.join(parts, len(rows.labels))

    def key(self, feature: Feature, key: Any) -> str:
        return _span(feature.inputs, grid.starts(feature).tolist(), grid.widths(feature).tolist(), list(key))

    def widened(self, features: Sequence[Feature], sums: Counts) -> Sequence[Feature]:
        each = zip(features, sums.keys, strict=True)
        return [grid.fitting(f, np.array(k, dtype=np.int64)) if len(k) > grid.most_cells(f) else f for f, k in each]

    def rescaled(self, feature: Feature, other: Feature) -> Feature:
        if [start for start, _ in feature.scales] != [start for start, _ in other.scales]:
            return feature
        return feature._replace(scales=other.scales, unit=other.unit)

    def checked_keys(self, feature: Feature, keys: Any) -> Keys:
        cells = tuple(tuple(key) for key in keys)
        width = len(feature.inputs)
        fit = all(len(cell) == width and all(type(b) is int and abs(b) <= LARGEST_BIN for b in cell) for cell in cells)
        if not fit or tuple(sorted(set(cells))) != cells:
            raise ValueError(f"the keys of {feature.name!r} are not the numbers of cells, in order and each once")
        return cells  # type: ignore[return-value]


def _block_codes(feature: Feature, rows: RowsToCount) -> NDArray[np.int64]:
    """The numbers of the fine bins, (rows, columns)."""
    matrices = [column.reshape(rows.batch.n_rows, -1) for column in rows.batch.numbers(feature.inputs)]
    columns = [np.ascontiguousarray(matrix[:, k]) for matrix in matrices for k in range(matrix.shape[1])]
    places = zip(columns, feature.inputs, grid.starts(feature), grid.widths(feature), strict=True)
    return np.column_stack([bins_of(*place, rows) for place in places])


def _cells(codes: NDArray[np.int64], rows: RowsToCount) -> Codes:
    """The numbers of the cells that a block's values fall into."""
    whole = (rows.classes >= 0) & (codes != LOWEST).all(axis=1)
    numbers = np.full(len(codes), -1, dtype=np.int32)
    numbers[whole], cells = grid.distinct(codes[whole], rows.threads)
    keys: Any = [tuple(cell) for cell in cells.tolist()]
    return Codes(numbers, 0, keys)


BINS, BLOCK_CELLS = BinCounter(), CellCounter()
