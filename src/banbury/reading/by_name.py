"""Columns by name: created when first used, or stored side by side in matrices, which take far less memory than arrays."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np

from banbury.arrays import Array
from banbury.reading.columns import Column, Numbers

NamedMatrix = tuple[tuple[str, ...], Array]  # the names of its columns, and a matrix


def side_by_side(columns: dict[str, Column]) -> list[NamedMatrix]:
    """Removes the numeric columns from ``columns``, in place, and returns them as matrices with the names of their
    columns, one for each NumPy type.
    """
    arrays_by_type: dict[np.dtype[Any], dict[str, Array]] = {}
    for name, column in columns.items():
        if isinstance(column, Numbers) and not column.are_integers:
            arrays_by_type.setdefault(column.storage.dtype, {})[name] = column.storage
    for name in [name for arrays in arrays_by_type.values() for name in arrays]:
        del columns[name]
    return [(tuple(arrays), np.column_stack(list(arrays.values()))) for arrays in arrays_by_type.values()]


class Columns(dict[str, Column]):
    """A dictionary of columns by name. ``make`` creates one when it is first used and the dictionary keeps it, so that
    unused columns of a table cost nothing.

    Columns stored in ``matrices`` are created anew each time. ``numbers_of``: a faster way to get several numeric
    columns as one matrix, or None if it does not apply.
    """

    _matrix_index: Mapping[str, int] = MappingProxyType({})  # name -> number among all columns of the matrices
    _starts: Sequence[int]  # for each matrix the number of its first column

    def __init__(
        self,
        make: Callable[[str], Column],
        matrices: Sequence[NamedMatrix] = (),
        numbers_of: Callable[[Sequence[str]], Array | None] | None = None,
    ) -> None:
        """``make``: a function that creates the column of a name; ``matrices``: columns that are stored side by side;
        ``numbers_of``: a function that returns several columns as one matrix (rows × columns), or None.
        """
        super().__init__()  # the columns that were made already
        self._make = make
        self._matrices = matrices
        self._numbers_of = numbers_of
        if matrices:  # without matrices this would take longer than all the rest
            self._starts = [0, *accumulate(len(names) for names, _ in matrices)]
            self._matrix_index = {
                name: index for index, name in enumerate(name for names, _ in matrices for name in names)
            }

    def __missing__(self, name: str) -> Column:
        """Creates the column of a name that is not stored yet: from its matrix, or with ``make``."""
        number = self._matrix_index.get(name)  # among all columns of the matrices; None: in no matrix
        if number is not None:
            return Numbers(self._between(number, number + 1)[:, 0])
        self[name] = column = self._make(name)
        return column

    def _between(self, first: int, end: int) -> Array:
        """The columns with numbers from ``first`` up to ``end``, rows × columns; all must be in one matrix. Columns are
        numbered through all matrices; ``_starts`` has the number of each matrix's first column.
        """
        matrix_number = bisect_right(self._starts, first) - 1
        _, matrix = self._matrices[matrix_number]
        matrix_start = self._starts[matrix_number]
        return matrix[:, first - matrix_start : end - matrix_start]

    def contiguous_runs(self, names: Sequence[str]) -> Iterator[Array | str]:
        """Yields the columns with these names in order: adjacent ones of a matrix together as an array (rows ×
        columns), others by name.
        """
        matrix = None if self._numbers_of is None else self._numbers_of(names)  # all of them; None: not so easily
        if matrix is not None:
            yield matrix
            return
        if not self._matrices:
            yield from names
            return
        # The number of the first column of the run that is not yielded yet, and the one after its last; −1: no run.
        run_start = run_end = -1
        matrix_starts = frozenset(self._starts)  # the numbers of the first columns of matrices
        for name in names:
            number = self._matrix_index.get(name)  # of the column in its matrix; None: in no matrix
            if number == run_end and number not in matrix_starts:
                run_end += 1
                continue
            if run_start >= 0:
                yield self._between(run_start, run_end)
            if number is None:
                yield name
            run_start, run_end = (-1, -1) if number is None else (number, number + 1)
        if run_start >= 0:
            yield self._between(run_start, run_end)

    def change(self, change_matrix: Callable[[Array], Array], change_column: Callable[[Column], Column]) -> Columns:
        """These columns transformed: those in matrices by ``change_matrix`` (rows × columns), others by
        ``change_column`` when first used.
        """
        matrices = [(names, change_matrix(matrix)) for names, matrix in self._matrices]
        return Columns(lambda name: change_column(self[name]), matrices)
