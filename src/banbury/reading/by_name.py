"""Columns by name: made when first asked for, or side by side in matrices, as an array for each takes far more memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
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


class Columns(dict[str, Column]):
    """Columns by name. ``make`` makes one when it is first asked for, so that a table's unused columns cost nothing.

    Those of ``matrices`` are made anew each time. ``numbers_of`` may know a faster way to the numbers of several columns: it
    gives a matrix of them, or None.
    """

    _place: Mapping[str, int] = MappingProxyType({})  # of columns of matrices
    _starts: Sequence[int]  # of each matrix, among all their columns

    def __init__(
        self,
        make: Callable[[str], Column],
        matrices: Sequence[NamedMatrix] = (),
        numbers_of: Callable[[Sequence[str]], NDArray[Any] | None] | None = None,
    ) -> None:
        super().__init__()
        self._make = make
        self._matrices = matrices
        self._numbers_of = numbers_of
        if matrices:  # of few columns this would take longer than all the rest
            self._starts = [0, *accumulate(len(names) for names, _ in matrices)]
            self._place = {name: at for at, name in enumerate(name for names, _ in matrices for name in names)}

    def __missing__(self, name: str) -> Column:
        place = self._place.get(name)
        if place is not None:
            return Numbers(self._between(place, place + 1)[:, 0])
        self[name] = column = self._make(name)
        return column

    def _between(self, first: int, end: int) -> NDArray[Any]:
        """The columns at these places, which are of one matrix."""
        at = bisect_right(self._starts, first) - 1
        return self._matrices[at][1][:, first - self._starts[at] : end - self._starts[at]]

    def stretches(self, names: Sequence[str]) -> Iterator[NDArray[Any] | str]:
        """These columns in order, as many at once as stand side by side in a matrix; the name of one that stands in none."""
        matrix = None if self._numbers_of is None else self._numbers_of(names)
        if matrix is not None:
            yield matrix
            return
        if not self._matrices:
            yield from names
            return
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

    def change(
        self, change_matrix: Callable[[NDArray[Any]], NDArray[Any]], change_column: Callable[[Column], Column]
    ) -> Columns:
        """The same columns, each of them changed, and matrices as a whole."""
        matrices = [(names, change_matrix(matrix)) for names, matrix in self._matrices]
        return Columns(lambda name: change_column(self[name]), matrices)
