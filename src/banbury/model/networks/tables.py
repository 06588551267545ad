"""Reads and checks the conditional probability tables that users write down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Real, plain
from banbury.families.categorical import scalar_values
from banbury.families.nodes import Variable
from banbury.sums import Key, Keys, sort_keys

CLOSE = 1e-9  # how far the sum of probabilities may be from 1


def values_of_node(name: str, table: Any, n_parents: int, values: Mapping[str, Sequence[Key]] | None) -> Keys:
    """Returns the values of the node ``name``: those that ``values`` declares for it, or else those in its table,
    sorted. ``table`` is what the user wrote: a mapping from values to probabilities, or if the node has parents
    (``n_parents`` is not 0), from their values to such mappings. Raises an error if it or the values are not valid.
    """
    if values is not None and name in values:
        scalar_values(values[name])
        declared = tuple(plain(value) for value in values[name])
        errors.require(len(set(declared)) == len(declared), "values", {name: list(declared)}, "each value once")
        return declared
    if not isinstance(table, Mapping):
        raise errors.bad_table(name, "is not a mapping; to use an array, name the node's values in values=")
    distributions = list(table.values()) if n_parents else [table]  # mappings from values to probabilities
    if not distributions or not all(isinstance(shares, Mapping) and shares for shares in distributions):
        raise errors.bad_table(
            name, "must map the values of its parents to mappings from its own values to probabilities"
        )
    distinct = dict.fromkeys(plain(value) for shares in distributions for value in shares)
    for value in distinct:
        if not isinstance(value, (bool, int, float, str, type(None))) or value != value:
            raise errors.bad_table(name, f"must have texts, numbers, booleans or None as values, but has {value!r}")
    return sort_keys(distinct)


def table_of_node(variable: Variable, parents: Sequence[Variable], table: Any) -> Real:
    """Returns the table of a node (``variable``), P(value | values of the parents), as an array (values × values of each
    parent). ``table`` is what the user wrote: a mapping or an array. Raises an error if it is not valid.
    """
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
    return np.ascontiguousarray(array / array.sum(axis=0))  # contiguous, so that later sums do not depend on the layout


def check_shares(name: str, table: Real) -> None:
    """Raises an error unless the probabilities of the node ``name`` are not negative and sum to 1 for all values of its
    parents. ``table`` is values × values of each parent.
    """
    with np.errstate(over="ignore"):  # infinity is not 1 either
        sums = table.sum(axis=0).reshape(-1)  # one for each combination of the parents' values
    if not np.all(table >= 0):
        wrong = float(table[~(table >= 0)].flat[0])
        raise errors.bad_table(name, f"must have non-negative shares, but one is {wrong:g}")
    if not np.all(np.abs(sums - 1.0) <= CLOSE):
        worst = float(sums[np.abs(sums - 1.0).argmax()]) if sums.size else 0.0
        raise errors.bad_table(name, f"must have non-negative shares that sum to 1; these sum to {worst:.12g}")


def _from_mapping(variable: Variable, parents: Sequence[Variable], table: Mapping[Any, Any]) -> Real:
    """Returns the table of a node (``variable``) as an array (values × values of each parent), from a mapping of its
    parents' values to distributions: mappings from the node's values to probabilities. Without parents, ``table`` is
    the distribution. Raises an error if a combination of the parents' values is missing or unknown.
    """
    distributions: dict[Any, Any] = {(): table}
    if parents:
        distributions = {key if isinstance(key, tuple) else (key,): shares for key, shares in table.items()}
    combinations = list(product(*(parent.values for parent in parents)))  # of the parents' values
    unmatched = sorted(set(combinations).symmetric_difference(distributions), key=repr)
    if unmatched:
        shown = ", ".join(f"{parent.name} = {value!r}" for parent, value in zip(parents, unmatched[0], strict=False))
        raise errors.bad_table(
            variable.name, f"has {'no row' if unmatched[0] in combinations else 'a row too many,'} for {shown}"
        )
    columns = []  # for each combination, the probability of each value
    for combination in combinations:
        column = np.zeros(variable.size)
        for value, share in distributions[combination].items():
            if value not in variable.index:
                raise errors.value_never_seen(value, variable.name, variable.values)
            if isinstance(share, bool) or not isinstance(share, (int, float, np.number)):
                raise errors.bad_table(variable.name, f"must have numbers, but has {share!r} for {value!r}")
            column[variable.index[value]] = share
        columns.append(column)
    return np.stack(columns, axis=1).reshape(variable.size, *(parent.size for parent in parents))
