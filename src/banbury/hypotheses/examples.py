"""Examples: rows in any of the usual forms, with their targets; and the predictions of hypotheses for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.hypotheses.values import Array, is_scalar, objects, vector

HypothesisNumbers = NDArray[np.intp] | slice  # the numbers of some hypotheses, or ALL
ALL = slice(None)


class Examples:
    """Rows in any form: a frame, a mapping of columns or of one row's values, a matrix, or a sequence of rows."""

    def __init__(self, data: Any, target: Any = None) -> None:
        """Reads the rows in ``data``. ``target`` is the name of the target column, which is no part of a row, or the
        targets themselves, which are not stored.
        """
        self._target = target if is_scalar(target) else None  # the name of the target column, if it is one
        self._rows: Any = None  # a sequence of rows; None for a table
        self.columns: dict[Any, Array] = {}  # by name, or by number for a matrix
        names = getattr(data, "column_names", getattr(data, "columns", None))  # Arrow's, or pandas' and Polars'
        if names is not None or isinstance(data, Mapping):
            self._read_columns(data, list(data if names is None else names))
            return
        are_rows = not is_scalar(data) and (not isinstance(data, np.ndarray) or data.ndim)
        errors.require(are_rows, "rows", data, "a frame, a mapping of columns, a list of rows or an array")
        self._rows = data if isinstance(data, np.ndarray) else list(data)
        self._length = len(self._rows)
        if isinstance(data, np.ndarray) and data.ndim == 2:
            self.columns = {number: data[:, number] for number in range(data.shape[1])}
        elif self._length and all(isinstance(row, Mapping) for row in self._rows):
            self.columns = {name: vector([row.get(name) for row in self._rows]) for name in self._rows[0]}

    def _read_columns(self, data: Any, names: list[Any]) -> None:
        """Reads the columns ``names`` of a frame or mapping (``data``) into ``columns``; a mapping of single values is
        one row. Raises an error for duplicate names or unequal lengths.
        """
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
                first_text = f"column {str(names[0])!r} has {self._length:,} rows"
                text = "All columns must have the same length."
                other_text = f"column {str(name)!r} has {len(column):,}"
                raise errors.LengthMismatch(f"{first_text} but {other_text}. {text}", column=str(name))

    def __len__(self) -> int:
        """Returns the number of rows."""
        return self._length

    @cached_property
    def records(self) -> Any:
        """The rows as a sequence, for functions of a row: as the user gave them (``_rows``), or for a table a mapping
        for each row, without the target column (``_target``, its name or None).
        """
        if self._rows is not None:
            return self._rows
        columns = {name: column.tolist() for name, column in self.columns.items() if name != self._target}
        return [{name: values[row] for name, values in columns.items()} for row in range(len(self))]

    def column(self, name: Any) -> Array:
        """Returns the column with this name, one value per row. Raises UnknownColumn if there is none."""
        if not len(self) and not self.columns:
            return vector([])  # an empty list has no columns, and every one
        if name not in self.columns:
            raise errors.unknown_column(name, list(self.columns))
        return self.columns[name]

    def target(self, target: Any) -> Array:
        """Returns the targets, one per row. ``target`` is the name of a column, or has one target for each row. Raises
        LengthMismatch if these are too few or too many.
        """
        column = self.column(target) if is_scalar(target) else vector(target)
        if len(column) != len(self):
            raise errors.length_mismatch("targets", len(column), len(self))
        return column

    def choose_columns(self, columns: Iterable[Any] | None, target: Any) -> list[Any]:
        """Returns the names of the columns that hypotheses are about: ``columns``, or by default (None) all but the
        target. ``target`` is the name of its column, or has one target for each row, or is None. Raises an error for
        unknown or repeated names.
        """
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
        feature_names = [name for name in self.columns if name != target_name]
        names = feature_names if columns is None else vector(columns, "columns").tolist()
        for name in names:
            self.column(name)
        are_unique = names and len(set(names)) == len(names)
        errors.require(are_unique, "columns", names, "columns of the table, one at least and each once")
        return names


@runtime_checkable
class Askable(Protocol):
    """Hypotheses that can make predictions for rows."""

    def on(self, rows: Examples) -> Predictions:
        """Returns their predictions for these rows."""


@dataclass(frozen=True)
class Predictions:
    """The predictions of hypotheses for ``n_rows`` rows.

    ``of(rows, hypotheses)`` returns them (rows × hypotheses) for a slice of the rows and the numbers of some
    hypotheses, or ALL. ``mistakes(rows, truth, hypotheses)`` counts the mistakes of each hypothesis against the
    numbers of the correct labels, if the hypotheses can count them themselves; predictions are then label numbers.
    ``at_once``: so many rows cost little more than one; ``counted_at_once``: the same for counting mistakes, if more.
    """

    n_rows: int
    of: Callable[[slice, HypothesisNumbers], Array]
    mistakes: Callable[[slice, Array, HypothesisNumbers], Array] | None = None
    at_once: int = 8
    counted_at_once: int = 0


class Functions:
    """Hypotheses that are functions of a row."""

    def __init__(self, functions: list[Any]) -> None:
        """Stores the functions, each of which takes a row and returns its prediction."""
        self.functions = objects(functions)  # an array, one per hypothesis

    def on(self, rows: Examples) -> Predictions:
        """Returns the predictions of the functions for these rows (rows × hypotheses), made when they are asked for."""

        def predict(row_slice: slice, hypothesis_numbers: HypothesisNumbers) -> Array:
            """Returns the predictions of some of the hypotheses, which are functions of a row, for a slice of rows
            (rows × hypotheses). ``hypothesis_numbers`` may be ALL.
            """
            functions = self.functions[hypothesis_numbers].tolist()
            return objects([function(row) for row in rows.records[row_slice] for function in functions]).reshape(
                -1, len(functions)
            )

        return Predictions(len(rows), predict)
