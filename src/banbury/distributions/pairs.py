"""Tables of columns that come as codes, whatever their families: of some together, and of every two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from banbury._core import Integers
from banbury.arrays import Int
from banbury.distributions.family import Counter, Feature, RowsToCount
from banbury.distributions.joint import CombinationCounter, Joint, filled, ordered_columns
from banbury.distributions.key_families import KeyedFamily
from banbury.sums import Combinations, Counts, Keys, lines_with_some

TOGETHER = 16  # columns whose tables are filled together: so many stay in the processor's cache


class ColumnPairs(KeyedFamily):
    """The last column of a block together with each of the others, pair by pair; it is counted, and never estimated."""

    name: ClassVar[str] = "pairs"
    block: ClassVar[bool] = True

    def counter(self, feature: Feature) -> Counter:
        return PAIRS


class PairCounter(CombinationCounter):
    """Rows of each pair of values: keys are which of the other columns it is and its value, and the value of the last.

    Of blocks that are counted together each has the columns of the one before, and one more.
    """

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        columns = ordered_columns(features[-1], rows, {})
        above, keys, cells = stacked([column.values for column in columns]), list[Any](), list[Integers]()
        starts = np.cumsum([0, *(len(column.values) for column in columns)])
        for feature in features:
            b, start, used = len(feature.columns) - 1, 0, list[Int]()
            for table in filled(columns[:b], columns[b : b + 1], rows, TOGETHER):
                at = np.flatnonzero(lines_with_some(table))
                used.append(start + at)
                cells.append(table.take(at, 0))
                start += table.shape[0]
            keys.append(Combinations((above[: starts[b]], columns[b].values), np.concatenate(used)))
        return features, Counts(tuple(keys), Integers.join(cells))

    def check(self, features: Sequence[Feature], sums: Counts, rows: Integers, classes: Sequence[Any]) -> None:
        for f, feature in enumerate(features):  # a row counts once for each of the others
            most, _ = rows.times(float(len(feature.columns) - 1))
            super().check([feature], sums.select([f]), most, classes)


PAIRS, JOINT, EVERY_TWO = PairCounter(), Joint(), ColumnPairs()


def stacked(columns: Sequence[Keys]) -> Any:
    """The values of columns, one column below the other, each with the column's number."""
    return tuple((k, value) for k, values in enumerate(columns) for value in values)


def table_of(columns: Sequence[str]) -> Feature:
    """A table of columns, with a cell for every combination; it is called by the first of them."""
    kinds: Any = (None,) * len(columns)
    return Feature(columns[0], JOINT, columns=tuple(columns), kinds=kinds)


def pairs_of(columns: Sequence[str]) -> list[Feature]:
    """Tables of every two columns: of each with all those before it."""
    kinds: Any = (None,) * len(columns)
    return [
        Feature(columns[b], EVERY_TWO, columns=tuple(columns[: b + 1]), kinds=kinds[: b + 1])
        for b in range(1, len(columns))
    ]
