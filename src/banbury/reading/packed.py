"""A great many columns by name: those of numbers lie side by side in matrices, since an array for each takes far more memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.reading.columns import Column, Numbers

NamedMatrix = tuple[tuple[str, ...], NDArray[Any]]  # the names of its columns, and a matrix


def side_by_side(columns: dict[str, Column]) -> list[NamedMatrix]:
    """The columns of numbers, which are taken out of ``columns``: a matrix for each type that they are of."""
    alike: dict[np.dtype[Any], dict[str, NDArray[Any]]] = {}
    for name, column in columns.items():
        if isinstance(column, Numbers) and not column.are_integers:
            alike.setdefault(column.held.dtype, {})[name] = column.held
    for name in [name for held in alike.values() for name in held]:
        del columns[name]
    return [(tuple(held), np.column_stack(list(held.values()))) for held in alike.values()]


class PackedColumns(dict[str, Column]):
    """Columns of matrices, each made anew whenever it is asked for; and others, which are as they are given."""

    def __init__(self, matrices: Sequence[NamedMatrix], other_columns: Mapping[str, Column]) -> None:
        super().__init__()
        self._matrices = matrices
        self._others = other_columns
        self._starts = [0, *accumulate(len(names) for names, _ in matrices)]  # of each matrix, among all their columns
        self._place = {name: place for place, name in enumerate(name for names, _ in matrices for name in names)}

    def __missing__(self, name: str) -> Column:
        place = self._place.get(name)
        return self._others[name] if place is None else Numbers(self._between(place, place + 1)[:, 0])

    def _between(self, first: int, end: int) -> NDArray[Any]:
        """The columns at these places, which are of one matrix."""
        at = bisect_right(self._starts, first) - 1
        return self._matrices[at][1][:, first - self._starts[at] : end - self._starts[at]]

    def stretches(self, names: Sequence[str]) -> Iterator[NDArray[Any] | str]:
        """These columns in order, as many at once as stand side by side in a matrix; the name of one that stands in none."""
        first = end = -1  # of the stretch that is not given yet
        begins = frozenset(self._starts)
        for name in names:
            place = self._place.get(name)
            if place == end and place not in begins:
                end += 1
                continue
            if first >= 0:
                yield self._between(first, end)
            if place is None:
                yield name
            first, end = (-1, -1) if place is None else (place, place + 1)
        if first >= 0:
            yield self._between(first, end)

    def with_matrices(
        self, change: Callable[[NDArray[Any]], NDArray[Any]], other_columns: Mapping[str, Column]
    ) -> PackedColumns:
        """The same columns with each matrix changed, and others in the place of those of no matrix."""
        return PackedColumns([(names, change(matrix)) for names, matrix in self._matrices], other_columns)
