"""Families that are counted by key: what flags, categories, joint tables and bins answer alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.distributions.family import ColumnReader, Family, Feature
from banbury.distributions.information import ColumnTest, bits_of, equal_groups, table_test
from banbury.sums import Counts, Keys

ROWS_PER_CELL = 5  # numbers are cut into no more groups than leave so many rows in each cell of a table, on average
MOST_GROUPS = 12  # of a column of numbers
MOST_VALUES = 50  # that are taken as they are; of more the frequent ones are, and the rest in groups of equal size
FEWEST_VALUES = 5  # however few the rows
WIDEST_LOOKUP = 1 << 20  # bins in a narrower range are looked up as they are
MISSING = int(np.iinfo(np.int64).min)  # the bin of a value that is missing
FARTHEST = 2.0**52  # bins from the origin


class KeyedFamily(Family):
    """The base of families whose sums are counts by key."""

    def joined_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        """Rows per key and class, as an estimate takes them."""
        return cells

    def has_density(self) -> bool:
        return False

    def bits(self, features: tuple[Feature, ...], sums: Counts, rows: Real) -> Real:
        each = ((feature, *sums.feature(f)) for f, feature in enumerate(features))
        return np.array([bits_of(self.joined_cells(feature, keys, cells.value)) for feature, keys, cells in each])

    def compared(self, feature: Feature) -> tuple[Feature, ...]:
        return (feature,)

    def test(
        self, features: tuple[Feature, ...], sums: Counts, scale: float, n: int, columns: Mapping[str, ColumnTest]
    ) -> list[ColumnTest]:
        tests = []
        for f, feature in enumerate(features):
            keys, rows = sums.feature(f)
            limit = int(float(rows.value.sum()) * scale / (2 * ROWS_PER_CELL * rows.shape[1]))
            test = table_test(rows.value, self.groups(feature, keys, rows.value, limit), scale)
            tests.append(test._replace(different=test.different and not feature.columns))
        return tests

    def groups(self, feature: Feature, keys: Keys, cells: Real, limit: int) -> Int:
        """The group of each key, whatever the class: so few that a table has rows enough in every cell."""
        if len(cells) <= np.clip(limit, FEWEST_VALUES, MOST_VALUES):
            return np.arange(len(cells))
        return equal_groups(cells.sum(axis=1, keepdims=True), np.array([self._most_groups(limit)]))[:, 0]

    def _most_groups(self, limit: int) -> int:
        return int(np.clip(limit, FEWEST_VALUES, MOST_VALUES))

    def groups_given_class(self, cells: Real, scale: float, most: int) -> Int:
        """The group of each key in each class, (keys, classes): the same in all classes."""
        limit = np.sqrt(cells.sum() * scale / ROWS_PER_CELL / cells.shape[1])
        values = int(min(np.clip(limit, FEWEST_VALUES, MOST_VALUES), most))
        if len(cells) <= values:
            groups = np.arange(len(cells))[:, None]
        else:
            groups = self._many_groups(cells, scale, most, values)
        return np.broadcast_to(groups, cells.shape)

    def _many_groups(self, cells: Real, scale: float, most: int, values: int) -> Int:
        return equal_groups(cells.sum(axis=1, keepdims=True), np.array([values]))


def looked_up(column: Any, places: Callable[[Sequence[Any]], Sequence[int]], absent: int = -1) -> Int:
    """Of a column of codes the place of each row's value, as ``places`` has those of values; ``absent`` where it is missing."""
    codes, values = np.subtract(column.codes, column.low - 1, dtype=np.int64), column.values
    if len(values) > len(codes):  # a wide range, of which few values occur
        inside = (codes > 0) & (codes <= len(values))
        used, at = np.unique(codes[inside], return_inverse=True)
        codes[inside], codes[~inside], values = at + 1, 0, [values[k - 1] for k in used.tolist()]
    known = np.full(len(values) + 2, absent, dtype=np.int64)  # of one before all values, and one after
    known[1:-1] = places(values)
    return np.asarray(known.take(codes, mode="clip"))


class BinnedFamily(KeyedFamily):
    """The base of families whose keys are the numbers of fine bins; of a block, of the bins of each column."""

    def has_density(self) -> bool:
        return True

    def joined_by(self) -> str:
        return "bb.Gaussian(covariance='full')"

    def groups(self, feature: Feature, keys: Keys, cells: Real, limit: int) -> Int:
        return block_groups(keys, cells, limit) if feature.columns else super().groups(feature, keys, cells, limit)

    def _most_groups(self, limit: int) -> int:
        return int(np.clip(limit, 2, MOST_GROUPS))

    def _many_groups(self, cells: Real, scale: float, most: int, values: int) -> Int:
        """Cut by the class's own quantiles."""
        limits = np.sqrt(cells.sum(axis=0) * scale / ROWS_PER_CELL)
        return equal_groups(cells, np.clip(limits, 1, min(MOST_GROUPS, most)).astype(np.int64))

    def test(
        self, features: tuple[Feature, ...], sums: Counts, scale: float, n: int, columns: Mapping[str, ColumnTest]
    ) -> list[ColumnTest]:
        """A block tells no less than its best column, of which finer groups show more."""
        tests = super().test(features, sums, scale, n, columns)
        bests = ([columns[name] for name in feature.columns] for feature in features)
        return [test.at_least(best) if best else test for test, best in zip(tests, bests, strict=True)]

    def key_finder(self, feature: Feature, keys: Keys, threads: int) -> Callable[[ColumnReader], Int] | None:
        if feature.columns:
            return None
        bins = np.array(keys, dtype=np.int64)
        low, high = (int(bins[0]), int(bins[-1])) if len(bins) else (0, 0)
        lookup = np.full(high - low + 1 if high - low < WIDEST_LOOKUP else 0, -1, dtype=np.int16)
        if len(lookup):
            lookup[bins - low] = np.arange(len(bins))

        def places(rows: ColumnReader) -> Int:
            numbers = rows.numbers([feature.name])[0].reshape(-1)
            if not len(bins):
                return np.full(len(numbers), -1)
            try:
                codes = _core.bins(numbers, feature.origin, feature.unit, threads)
            except _core.BadValue:  # of a row that is counted at the farthest bin, or not at all
                near, middle = within_reach(numbers, feature), feature.origin
                near = np.nan_to_num(near, nan=np.nan, posinf=middle, neginf=middle)
                codes = _core.bins(near, feature.origin, feature.unit, threads)
            inside = codes != MISSING
            codes = np.where(inside, np.clip(codes, low, high), low)
            if len(lookup):
                return np.where(inside, lookup[codes - low], np.int16(-1))
            place = np.minimum(np.searchsorted(bins, codes), len(bins) - 1)
            return np.where(inside & (bins[place] == codes), place, -1)

        return places


def within_reach(numbers: NDArray[Any], feature: Feature) -> Real:
    """The numbers, those too far away for their bins to be numbered brought to where they can be; infinite ones as they are."""
    reach = FARTHEST * feature.unit
    numbers = numbers.astype(np.float64)
    return np.where(np.isinf(numbers), numbers, np.clip(numbers, feature.origin - reach, feature.origin + reach))


def block_groups(keys: Keys, cells: Real, limit: int) -> Int:
    """The group of each key of a block of bins: its columns are cut into groups of about equal size, so few that their
    combinations are not many more than the limit."""
    if not keys:
        return np.zeros(0, dtype=np.int64)
    each: Any = np.array(list(keys), dtype=np.int64)
    most = max(int(np.clip(limit, FEWEST_VALUES, MOST_VALUES) ** (1.0 / each.shape[1])), 2)
    rows, groups = cells.sum(axis=1), np.zeros_like(each)
    for j in range(each.shape[1]):
        values, place = np.unique(each[:, j], return_inverse=True)
        margin = np.bincount(place.reshape(-1), rows, len(values)).astype(np.float64)
        groups[:, j] = equal_groups(margin[:, None], np.array([most]))[place.reshape(-1), 0]
    return np.asarray(np.unique(groups, axis=0, return_inverse=True)[1].reshape(-1))
