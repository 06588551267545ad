"""Examples: rows in any of the usual shapes, with their targets; and what hypotheses say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.hypotheses.values import Array, is_scalar, objects, vector

Chosen = NDArray[np.intp] | None  # numbers of hypotheses; None: all of them


class Examples:
    """Rows in any form: a frame, a mapping of columns or of one row's values, a matrix, or a sequence of rows."""

    def __init__(self, data: Any, target: Any = None) -> None:
        self._target = target if is_scalar(target) else None  # a column's name, or the targets themselves
        self._rows: Any = None
        self.columns: dict[Any, Array] = {}
        names = getattr(data, "column_names", getattr(data, "columns", None))  # Arrow's, or pandas' and Polars'
        if names is not None or isinstance(data, Mapping):
            self._read_columns(data, list(data if names is None else names))
            return
        rows = not is_scalar(data) and (not isinstance(data, np.ndarray) or data.ndim)
        errors.require(rows, "rows", data, "a frame, a mapping of columns, a list of rows or an array")
        self._rows = data if isinstance(data, np.ndarray) else list(data)
        self._length = len(self._rows)
        if isinstance(data, np.ndarray) and data.ndim == 2:
            self.columns = {j: data[:, j] for j in range(data.shape[1])}
        elif self._length and all(isinstance(row, Mapping) for row in self._rows):
            self.columns = {name: vector([row.get(name) for row in self._rows]) for name in self._rows[0]}

    def _read_columns(self, data: Any, names: list[Any]) -> None:
        for name in names if len(set(names)) < len(names) else ():
            if names.count(name) > 1:
                raise errors.DuplicateColumn(f"two columns are named {name!r}. Rename one of them.", column=name)
        if isinstance(data, Mapping):
            scalars = [name for name in names if is_scalar(data[name])]
            if len(scalars) == len(names):  # one row
                data = {name: [data[name]] for name in names}
            elif scalars:
                raise errors.BanburyError(
                    f"column {str(scalars[0])!r} is {data[scalars[0]]!r}, but a column must be a list or an array with one value "
                    "per row. For a single row, pass a list that contains one mapping.",
                    column=str(scalars[0]),
                )
        self.columns = {name: vector(data[name]) for name in names}
        self._length = len(self.columns[names[0]]) if names else 0
        for name, column in self.columns.items():
            if len(column) != self._length:
                first = f"column {str(names[0])!r} has {self._length:,} rows"
                text = "All columns must have the same length."
                other = f"column {str(name)!r} has {len(column):,}"
                raise errors.LengthMismatch(f"{first} but {other}. {text}", column=str(name))

    def __len__(self) -> int:
        return self._length

    @cached_property
    def each(self) -> Any:
        """Yields the rows one by one, for functions of a row. A row of a table is a mapping without the target column."""
        if self._rows is not None:
            return self._rows
        columns = {name: column.tolist() for name, column in self.columns.items() if name != self._target}
        return [{name: values[row] for name, values in columns.items()} for row in range(len(self))]

    def column(self, name: Any) -> Array:
        if not len(self) and not self.columns:
            return vector([])  # an empty list has no columns, and every one
        if name not in self.columns:
            raise errors.unknown_column(name, list(self.columns))
        return self.columns[name]

    def target(self, target: Any) -> Array:
        """Returns the targets, from a column or one for each row."""
        column = self.column(target) if is_scalar(target) else vector(target)
        if len(column) != len(self):
            raise errors.length_mismatch("targets", len(column), len(self))
        return column

    def choose_columns(self, columns: Iterable[Any] | None, target: Any) -> list[Any]:
        """Returns the columns that hypotheses are about: all but the target."""
        errors.require(
            self.columns,
            "the table",
            "rows without columns",
            "a frame, a mapping of columns, a list of records or a 2-D array",
        )
        target_name = None
        if target is not None:
            self.target(target)
            target_name = target if is_scalar(target) else getattr(target, "name", None)
        every = [name for name in self.columns if name != target_name]
        chosen = every if columns is None else vector(columns, "columns").tolist()
        for name in chosen:
            self.column(name)
        each_once = chosen and len(set(chosen)) == len(chosen)
        errors.require(each_once, "columns", chosen, "columns of the table, one at least and each once")
        return chosen


@runtime_checkable
class Askable(Protocol):
    """Hypotheses that can make predictions for rows."""

    def on(self, rows: Examples) -> Predictions:
        """Returns their predictions for these rows."""


@dataclass(frozen=True)
class Predictions:
    """The predictions of hypotheses for rows.

    ``mistakes`` counts the mistakes of each hypothesis, given the numbers of the correct labels, if the hypotheses can
    count them themselves; predictions are then label numbers.
    """

    n_rows: int
    of: Callable[[slice, Chosen], Array]  # predictions of some rows by some hypotheses, rows × hypotheses
    mistakes: Callable[[slice, Array, Chosen], Array] | None = None
    at_once: int = 8  # rows that cost little more than one
    counted_at_once: int = 0  # the same where mistakes are counted, if it is more


class Functions:
    """Hypotheses that are functions of a row."""

    def __init__(self, functions: list[Any]) -> None:
        self.functions = functions

    def on(self, rows: Examples) -> Predictions:
        def predict(part: slice, chosen: Chosen) -> Array:
            functions = self.functions if chosen is None else [self.functions[h] for h in chosen.tolist()]
            return objects([function(row) for row in rows.each[part] for function in functions]).reshape(
                -1, len(functions)
            )

        return Predictions(len(rows), predict)
