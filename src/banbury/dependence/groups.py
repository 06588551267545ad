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
from banbury.readers import Batch
from banbury.tally import Tally

Byte = NDArray[np.uint8]

MOST_COLUMNS = 200  # whose pairs are counted: the most telling ones
MOST_CELLS = 1 << 25  # of all tables of pairs: a quarter of a gigabyte
ABSENT = 255  # the group of a value that is missing


@dataclass(frozen=True)
class Grouped:
    """A column whose values stand for groups: ``groups`` has that of each key in the rows of each class."""

    name: str
    groups: Byte  # (keys, classes)
    size: int
    places: Callable[[ColumnReader], Int]  # which key each row has; −1 for none

    def codes(self, batch: Batch, classes: NDArray[np.int32]) -> Byte:
        """The group of each row; ABSENT where it has no value or no class."""
        if not len(self.groups):
            return np.full(len(classes), ABSENT, dtype=np.uint8)
        place = self.places(batch)
        known = (place >= 0) & (classes >= 0)
        groups = self.groups[np.where(known, place, 0), np.where(known, classes, 0)]
        return np.where(known, groups, np.uint8(ABSENT))


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
