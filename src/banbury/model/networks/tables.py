"""Tables of a node given its parents that are given by hand, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Real, plain
from banbury.families.categorical import scalar_values
from banbury.families.nodes import Variable
from banbury.sums import Key, Keys, in_order

CLOSE = 1e-9  # shares that sum to 1 within this are taken as they are


def values_of_node(name: str, table: Any, n_parents: int, values: Mapping[str, Sequence[Key]] | None) -> Keys:
    """Returns the declared values of a node, or those of its table in order."""
    if values is not None and name in values:
        scalar_values(values[name])
        named = tuple(plain(value) for value in values[name])
        errors.require(len(set(named)) == len(named), "values", {name: list(named)}, "each value once")
        return named
    if not isinstance(table, Mapping):
        raise errors.bad_table(name, "is not a mapping; to use an array, name the node's values in values=")
    rows = list(table.values()) if n_parents else [table]
    if not rows or not all(isinstance(row, Mapping) and row for row in rows):
        raise errors.bad_table(
            name, "must map the values of its parents to mappings from its own values to probabilities"
        )
    distinct = dict.fromkeys(plain(value) for row in rows for value in row)
    for value in distinct:
        if not isinstance(value, (bool, int, float, str, type(None))) or value != value:
            raise errors.bad_table(name, f"must have texts, numbers, booleans or None as values, but has {value!r}")
    return in_order(distinct)


def table_of_node(variable: Variable, parents: Sequence[Variable], table: Any) -> Real:
    """Returns P(value | values of the parents) (values × values of each parent)."""
    shape = (variable.size, *(parent.size for parent in parents))
    if isinstance(table, Mapping):
        array = _from_mapping(variable, parents, table)
    else:
        try:
            array = np.asarray(table, dtype=np.float64)
        except (TypeError, ValueError):
            raise errors.bad_table(variable.name, "must have numbers") from None
        if array.shape != shape:
            raise errors.bad_table(
                variable.name, f"has the shape {array.shape}, but (values, values of each parent) is {shape}"
            )
    check_shares(variable.name, array)
    return np.ascontiguousarray(array / array.sum(axis=0))  # sums are taken in one order, however it was laid out


def check_shares(name: str, table: Real) -> None:
    """Raises an error unless the probabilities of a node's values sum to 1 for all values of its parents."""
    with np.errstate(over="ignore"):  # infinity is not 1 either
        sums = table.sum(axis=0).reshape(-1)
    if not np.all(table >= 0):
        wrong = float(table[~(table >= 0)].flat[0])
        raise errors.bad_table(name, f"must have non-negative shares, but one is {wrong:g}")
    if not np.all(np.abs(sums - 1.0) <= CLOSE):
        worst = float(sums[np.abs(sums - 1.0).argmax()]) if sums.size else 0.0
        raise errors.bad_table(name, f"must have non-negative shares that sum to 1; these sum to {worst:.12g}")


def _from_mapping(variable: Variable, parents: Sequence[Variable], table: Mapping[Any, Any]) -> Real:
    rows: dict[Any, Any] = {(): table}
    if parents:
        rows = {key if isinstance(key, tuple) else (key,): row for key, row in table.items()}
    cells = list(product(*(parent.values for parent in parents)))
    odd = sorted(set(cells).symmetric_difference(rows), key=repr)
    if odd:
        shown = ", ".join(f"{parent.name} = {value!r}" for parent, value in zip(parents, odd[0], strict=False))
        raise errors.bad_table(variable.name, f"has {'no row' if odd[0] in cells else 'a row too many,'} for {shown}")
    columns = []
    for cell in cells:
        column = np.zeros(variable.size)
        for value, share in rows[cell].items():
            if value not in variable.index:
                raise errors.value_never_seen(value, variable.name, variable.values)
            if isinstance(share, bool) or not isinstance(share, (int, float, np.number)):
                raise errors.bad_table(variable.name, f"must have numbers, but has {share!r} for {value!r}")
            column[variable.index[value]] = share
        columns.append(column)
    return np.stack(columns, axis=1).reshape(variable.size, *(parent.size for parent in parents))
