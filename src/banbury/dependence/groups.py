"""Columns whose values are brought into a few groups, so that tables of pairs have rows enough in every cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Int
from banbury.distributions.family import ColumnReader
from banbury.distributions.key_families import MOST_VALUES
from banbury.readers import Batch, Codes
from banbury.readers.columns import Coded
from banbury.tally import Tally

Byte = NDArray[np.uint8]

MOST_COLUMNS = 200  # whose pairs are counted: the most telling ones
MOST_CELLS = 1 << 25  # of all tables of pairs: a quarter of a gigabyte


@dataclass(frozen=True)
class Grouped:
    """A column whose values stand for groups: ``groups`` has that of each key in the rows of each class."""

    name: str
    groups: Byte  # (keys, classes)
    size: int
    places: Callable[[ColumnReader], Int]  # which key each row has; −1 for none

    def coded(self, batch: Batch, classes: NDArray[np.int32]) -> Coded:
        """The group of each row; none where it has no value or no class."""
        place = self.places(batch) if len(self.groups) else np.full(len(classes), -1)
        known = (place >= 0) & (classes >= 0)
        codes = np.full(len(classes), -1, dtype=np.int32)
        codes[known] = self.groups[place[known], classes[known]]
        return Coded(Codes(codes, 0, tuple(range(self.size))))


def compared_columns(tally: Tally, ranked: Sequence[str], scale: float, threads: int) -> list[Grouped]:
    """The first of the ranked columns, in the table's order, with groups so few that the tables of all pairs fit."""
    room = (2.0 * MOST_CELLS / len(tally.classes)) ** 0.5  # groups of all columns
    chosen = set(ranked[: int(np.clip(room // 2, 2, MOST_COLUMNS))])
    most = int(np.clip(room // max(len(chosen), 1), 2, MOST_VALUES))
    columns = []
    family: Any
    sums: Any
    for family, features, sums in tally.groups:
        for f, feature in enumerate(features):
            if feature.name in chosen:
                keys, rows = sums.feature(f)
                groups = family.groups_given_class(rows.value, scale, most)
                places = family.key_finder(feature, keys, threads)
                columns.append(Grouped(feature.name, groups.astype(np.uint8), int(groups.max(initial=0)) + 1, places))
    return sorted(columns, key=lambda column: tally.schema.index[column.name])
