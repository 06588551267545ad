"""Columns whose values are brought into a few groups, so that tables of pairs have rows enough in every cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.distributions import Bernoulli, Categorical
from banbury.distributions.family import Feature
from banbury.readers import Batch
from banbury.sums import Keys
from banbury.tally import Tally

Byte = NDArray[np.uint8]

ROWS_PER_CELL = 5  # numbers are cut into no more groups than leave so many rows in each cell of a table, on average
MOST_GROUPS = 12  # of a column of numbers
MOST_VALUES = 50  # that are taken as they are; of more the frequent ones are, and the rest in groups of equal size
FEWEST_VALUES = 5  # however few the rows
MOST_COLUMNS = 200  # whose pairs are counted: the most telling ones
MOST_CELLS = 1 << 25  # of all tables of pairs: a quarter of a gigabyte
WIDEST_LOOKUP = 1 << 20  # bins in a narrower range are looked up as they are
ABSENT = 255  # the group of a value that is missing
MISSING = int(np.iinfo(np.int64).min)  # the bin of one
FARTHEST = 2.0**52  # bins from the origin


def overall_groups(feature: Feature, keys: Keys, cells: Real, limit: int) -> Int:
    """The group of each key, whatever the class."""
    if feature.columns and feature.family.shape == "bins":
        return block_groups(keys, cells, limit)
    values = int(np.clip(limit, FEWEST_VALUES, MOST_VALUES))
    if len(cells) <= values:
        return np.arange(len(cells))
    most = int(np.clip(limit, 2, MOST_GROUPS)) if feature.family.shape == "bins" else values
    return equal_groups(cells.sum(axis=1, keepdims=True), np.array([most]))[:, 0]


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


def equal_groups(cells: Real, most: Int) -> Int:
    """Of each column of cells the places in groups of about equal size, ``most`` of them; a place as large is one by itself."""
    totals = cells.sum(axis=0)
    large = cells * most > totals
    rest = np.where(large, 0.0, cells)
    sums, left = rest.sum(axis=0), most - large.sum(axis=0)
    middle = (np.cumsum(rest, axis=0) - rest / 2.0) / np.where(sums > 0, sums, 1.0)
    shared = np.clip((middle * left).astype(np.int64), 0, left - 1)
    return np.asarray(np.where(large, left + np.cumsum(large, axis=0) - 1, shared))


def grouped(cells: Real, groups: Int) -> Real:
    result = np.zeros((int(groups.max(initial=0)) + 1, cells.shape[1]))
    np.add.at(result, groups, cells)
    return result


@dataclass(frozen=True)
class Grouped:
    """A column whose values stand for groups: ``groups`` has that of each key in the rows of each class."""

    feature: Feature
    keys: Keys
    groups: Byte  # (keys, classes)
    size: int

    def codes(self, batch: Batch, classes: NDArray[np.int32], threads: int) -> Byte:
        """The group of each row; ABSENT where it has no value or no class."""
        if not self.keys:
            return np.full(len(classes), ABSENT, dtype=np.uint8)
        place = self._places(batch, threads)
        known = (place >= 0) & (classes >= 0)
        found = self.groups[np.where(known, place, 0), np.where(known, classes, 0)]
        return np.where(known, found, np.uint8(ABSENT))

    def _places(self, batch: Batch, threads: int) -> NDArray[Any]:
        """Which key each row has; −1 for none."""
        feature, family = self.feature, self.feature.family
        if family.shape == "bins":
            numbers = batch.numbers([feature.name])[0].reshape(-1)
            try:
                return self._bin_places(_core.bins(numbers, feature.origin, feature.unit, threads))
            except _core.BadValue:  # of a row that is counted at the farthest bin, or not at all
                near = np.nan_to_num(
                    within_reach(numbers, feature), nan=np.nan, posinf=feature.origin, neginf=feature.origin
                )
                return self._bin_places(_core.bins(near, feature.origin, feature.unit, threads))
        if isinstance(family, Bernoulli):
            numeric = batch.kind(feature.name) not in ("string", "other", "date")
            if family.yes is None and numeric:
                numbers = batch.numbers([feature.name])[0].reshape(-1)
                yes = numbers > (0.5 if family.threshold is None else family.threshold)
                return np.where(np.isnan(numbers), -1, yes) if numbers.dtype.kind == "f" else yes.astype(np.int64)
            column = batch.codes(feature.name)
            return _looked_up(column, [int(yes) for yes in family.means_yes(column.values, feature.name)], -1)
        column = batch.codes(feature.name, feature.kind)
        absent = self._index.get(None, -1) if isinstance(family, Categorical) and family.missing == "category" else -1
        return _looked_up(column, [self._index.get(value, -1) for value in column.values], absent)

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {key: k for k, key in enumerate(self.keys)}

    @cached_property
    def _bins(self) -> Int:
        return np.array(self.keys, dtype=np.int64)

    @cached_property
    def _lookup(self) -> NDArray[np.int16] | None:
        low, high = int(self._bins[0]), int(self._bins[-1])
        if high - low >= WIDEST_LOOKUP:
            return None
        lookup = np.full(high - low + 1, -1, dtype=np.int16)
        lookup[self._bins - low] = np.arange(len(self._bins))
        return lookup

    def _bin_places(self, codes: Int) -> NDArray[Any]:
        codes = np.where(codes == MISSING, codes, np.clip(codes, self._bins[0], self._bins[-1]))
        inside = codes >= self._bins[0]
        if self._lookup is not None:
            return np.where(inside, self._lookup[np.where(inside, codes - self._bins[0], 0)], np.int16(-1))
        place = np.minimum(np.searchsorted(self._bins, codes), len(self._bins) - 1)
        return np.where(self._bins[place] == codes, place, -1)


def within_reach(numbers: NDArray[Any], feature: Feature) -> Real:
    """The numbers, those too far away for their bins to be numbered brought to where they can be; infinite ones as they are."""
    reach = FARTHEST * feature.unit
    numbers = numbers.astype(np.float64)
    return np.where(np.isinf(numbers), numbers, np.clip(numbers, feature.origin - reach, feature.origin + reach))


def _looked_up(column: Any, places: Sequence[int], absent: int) -> NDArray[Any]:
    """The place of each row's value; ``absent`` where it is missing."""
    lookup = np.array([*places, absent], dtype=np.int64)
    at = column.codes.astype(np.int64) - column.low
    return np.asarray(lookup[np.where((at >= 0) & (at < len(places)), at, len(places))])


def compared_columns(tally: Tally, ranked: Sequence[str], scale: float) -> list[Grouped]:
    """The first of the ranked columns, in the table's order, with groups so few that the tables of all pairs fit."""
    n_classes = len(tally.classes)
    room = (2.0 * MOST_CELLS / n_classes) ** 0.5  # groups of all columns
    chosen = set(ranked[: int(np.clip(room // 2, 2, MOST_COLUMNS))])
    most = int(np.clip(room // max(len(chosen), 1), 2, MOST_VALUES))
    columns = []
    for f, feature in enumerate(tally.schema.keyed):
        if feature.name in chosen:
            keys, rows = tally.counts.feature(f)
            groups = _groups_given_class(feature, rows.value, scale, most)
            columns.append(Grouped(feature, keys, groups.astype(np.uint8), int(groups.max(initial=0)) + 1))
    return columns


def _groups_given_class(feature: Feature, cells: Real, scale: float, most: int) -> Int:
    """The group of each key in each class: numbers cut by the class's own quantiles, values the same in all classes."""
    limit = np.sqrt(cells.sum() * scale / ROWS_PER_CELL / cells.shape[1])
    values = int(min(np.clip(limit, FEWEST_VALUES, MOST_VALUES), most))
    if len(cells) <= values:
        groups = np.arange(len(cells))[:, None]
    elif feature.family.shape == "bins":
        limits = np.sqrt(cells.sum(axis=0) * scale / ROWS_PER_CELL)
        return equal_groups(cells, np.clip(limits, 1, min(MOST_GROUPS, most)).astype(np.int64))
    else:
        groups = equal_groups(cells.sum(axis=1, keepdims=True), np.array([values]))
    return np.repeat(groups, cells.shape[1], axis=1)
