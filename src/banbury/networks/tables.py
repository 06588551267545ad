"""Tables of a node given its parents: estimated from counts, where one of several parents leans on those of fewer; or given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.distributions import dirichlet
from banbury.distributions.categorical import declared_values
from banbury.distributions.family import How, at_least
from banbury.networks.variables import Variable
from banbury.sums import Key, Keys, in_order

CLOSE = 1e-9  # shares that sum to 1 within this are taken as they are


def conditional(cells: Real, alpha: Real, how: How, rng: np.random.Generator) -> tuple[Real, Real]:
    """P(value | values of the parents), and the log-probability of a value that was never counted, by the parents' values.

    ``cells`` are rows, (values, values of each parent); ``alpha`` is the prior's pseudo-count of each value. With one parent or
    none that is all. With several, the parents' values may never have been seen together, so the prior is what fewer parents
    say: P(x | all but the last) · P(x | the last) / P(x), as if the last and the others were independent given the node. It is
    worth α (1 + h² √n) rows: n rows have the values of all parents but the last, and h is the share of the node's entropy that
    the last one leaves. So a table that only repeats its last parent stays sharp, and any number of rows outgrows the prior.
    Under "mle", and under "map" with α up to 1, it answers only where there is no row at all.
    """
    if cells.ndim < 3:
        offsets, flat = np.array([0, len(cells)]), cells.reshape(len(cells), -1)
        table = dirichlet.shares(flat, offsets, alpha, how, rng).reshape(cells.shape)
        return table, dirichlet.unseen(flat, offsets, alpha, how).reshape(cells.shape[1:])
    lower, new = _of_fewer_parents(cells, alpha, how, rng)
    rows_of_fewer = cells.sum(axis=(0, -1))[..., None]
    whole, each = _entropy(cells.sum(axis=-1)), float(alpha.mean())
    left_open = _entropy(cells) / whole if whole > 0 else 1.0  # of the node's entropy given its other parents
    pseudo_count = 0.0 if how == "mle" else max(each - 1.0, 0.0) if how == "map" else float(at_least(each))
    strength = pseudo_count * (1.0 + left_open**2 * np.sqrt(rows_of_fewer))
    weights = cells + strength * lower
    if how == "gibbs":
        weights = np.maximum(rng.standard_gamma(weights), np.finfo(float).tiny)
    rows = weights.sum(axis=0)
    table = np.where(rows > 0, weights / np.where(rows > 0, rows, 1.0), lower)
    pulled = strength > 0
    logs = np.log(np.where(pulled, strength, 1.0)) - np.log(np.where(pulled, cells.sum(axis=0) + strength, 1.0))
    return table, np.where(pulled, logs + new, 0.0)


def _entropy(cells: Real) -> float:
    """H(node | parents) of all rows together, in nats."""
    share = cells / np.maximum(cells.sum(axis=0), np.finfo(float).tiny)
    return -float((cells * np.log(np.where(share > 0, share, 1.0))).sum())


def _of_fewer_parents(cells: Real, alpha: Real, how: How, rng: np.random.Generator) -> tuple[Real, Real]:
    """P(x | all parents but the last) · P(x | the last) / P(x), in shares; and the log-probability of a new value."""
    others, new_of_others = conditional(cells.sum(axis=-1), alpha, how, rng)
    between = tuple(range(1, cells.ndim - 1))
    last, new_of_last = conditional(cells.sum(axis=between), alpha, how, rng)
    alone, new_alone = conditional(cells.sum(axis=(*between, -1)), alpha, how, rng)
    shape = (len(cells), *(1 for _ in between), -1)
    ratio = np.where(alone[:, None] > 0, last / np.where(alone > 0, alone, 1.0)[:, None], 0.0)
    product = others[..., None] * ratio.reshape(shape)
    whole = product.sum(axis=0)
    lower = np.where(whole > 0, product / np.where(whole > 0, whole, 1.0), others[..., None])
    new = new_of_others[..., None] + (new_of_last - new_alone).reshape(shape[1:])
    return lower, new - np.log(np.where(whole > 0, whole, 1.0))


# Tables that are given by hand, checked


def given_values(name: str, table: Any, n_parents: int, values: Mapping[str, Sequence[Key]] | None) -> Keys:
    """The values of a node: those that are named, as they stand, or those of its table, in order."""
    if values is not None and name in values:
        declared_values(values[name])
        named = tuple(_plain(value) for value in values[name])
        errors.require(len(set(named)) == len(named), "values", {name: list(named)}, "each value once")
        return named
    if not isinstance(table, Mapping):
        raise errors.bad_table(name, "is no mapping; name the node's values in values= to give an array")
    rows = list(table.values()) if n_parents else [table]
    if not rows or not all(isinstance(row, Mapping) and row for row in rows):
        why = "must map the values of its parents to mappings from its own values to probabilities"
        raise errors.bad_table(name, why)
    plain = dict.fromkeys(_plain(value) for row in rows for value in row)
    for value in plain:
        if not isinstance(value, (bool, int, float, str, type(None))) or value != value:
            why = f"must have texts, numbers, True and False or None for values, and has {value!r}"
            raise errors.bad_table(name, why)
    return in_order(plain)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def given_table(variable: Variable, parents: Sequence[Variable], table: Any) -> Real:
    """P(value | values of the parents), (values, values of each parent)."""
    shape = (variable.size, *(parent.size for parent in parents))
    if isinstance(table, Mapping):
        array = _from_mapping(variable, parents, table)
    else:
        try:
            array = np.asarray(table, dtype=np.float64)
        except (TypeError, ValueError):
            raise errors.bad_table(variable.name, "must have numbers") from None
        if array.shape != shape:
            why = f"has the shape {array.shape}, and (values, values of each parent) is {shape}"
            raise errors.bad_table(variable.name, why)
    check_shares(variable.name, array)
    return np.ascontiguousarray(array / array.sum(axis=0))  # sums are taken in one order, however it was laid out


def check_shares(name: str, table: Real) -> None:
    """Raises unless the shares of a node's values sum to 1, whatever its parents' are."""
    with np.errstate(over="ignore"):  # infinity is not 1 either
        sums = table.sum(axis=0).reshape(-1)
    if not np.all(table >= 0):
        wrong = float(table[~(table >= 0)].flat[0])
        raise errors.bad_table(name, f"must have shares from 0 up; {wrong:g} is one of them")
    if not np.all(np.abs(sums - 1.0) <= CLOSE):
        worst = float(sums[np.abs(sums - 1.0).argmax()]) if sums.size else 0.0
        raise errors.bad_table(name, f"must have shares from 0 up that sum to 1; these sum to {worst:.12g}")


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
                raise errors.bad_table(variable.name, f"must have numbers, and has {share!r} for {value!r}")
            column[variable.index[value]] = share
        columns.append(column)
    return np.stack(columns, axis=1).reshape(variable.size, *(parent.size for parent in parents))
