"""Families that are counted by key: what flags, categories, joint tables and bins answer alike."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.distributions.family import ColumnReader, Family, Feature
from banbury.distributions.information import bits_of
from banbury.readers import Codes
from banbury.sums import Counts, Keys

MISSING_BIN = int(np.iinfo(np.int64).min)
FARTHEST = 2.0**52  # bins from the origin


class KeyedFamily(Family):
    """The base of families whose sums are counts by key."""

    keyed: ClassVar[bool] = True

    def joined_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        """Rows per key and class, as an estimate takes them."""
        return cells

    def has_density(self) -> bool:
        return False

    def bits(self, features: tuple[Feature, ...], sums: Counts, rows: Real) -> Real:
        each = ((feature, *sums.feature(f)) for f, feature in enumerate(features))
        return np.array([bits_of(self.joined_cells(feature, keys, cells.value)) for feature, keys, cells in each])


class BinnedFamily(KeyedFamily):
    """The base of families whose keys are the numbers of fine bins; of a block, of the bins of each column."""

    def has_density(self) -> bool:
        return True

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes | None:
        if feature.columns:
            return None
        numbers = rows.numbers([feature.name])[0].reshape(-1)
        try:
            bins = _core.bins(numbers, feature.origin, feature.unit, threads)
        except _core.BadValue:  # of a row that is counted at the farthest bin, or not at all
            near, middle = within_reach(numbers, feature), feature.origin
            near = np.nan_to_num(near, nan=np.nan, posinf=middle, neginf=middle)
            bins = _core.bins(near, feature.origin, feature.unit, threads)
        return bin_codes(bins)


def bin_codes(bins: Int) -> Codes:
    """The numbers of bins as codes; where a value is missing they are MISSING_BIN."""
    there = bins[bins != MISSING_BIN]
    low, high = (int(there.min()), int(there.max())) if len(there) else (0, -1)
    return Codes(bins, low, range(low, high + 1))


def within_reach(numbers: NDArray[Any], feature: Feature) -> Real:
    """The numbers, those too far away for their bins to be numbered brought to where they can be; infinite ones as they are."""
    reach = FARTHEST * feature.unit
    numbers = numbers.astype(np.float64)
    return np.where(np.isinf(numbers), numbers, np.clip(numbers, feature.origin - reach, feature.origin + reach))
