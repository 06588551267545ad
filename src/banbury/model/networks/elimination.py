"""Variable elimination: sums of products of tables, one variable after the other, in an order that keeps tables small.

The order is opt_einsum's. The products are made here, one at a time, so that each can be brought back to a largest entry of 1
and none underflows however many are multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.arrays import Real

ROW = -1  # the axis of rows, which comes first where a table has it
MOST_CELLS = 1 << 26  # of a table: half a gigabyte


class Factor(NamedTuple):
    """A table over some variables. If ROW is among them, it has one table for each of several rows."""

    scope: tuple[int, ...]
    table: Real


def eliminate(factors: Sequence[Factor], keep: Sequence[int], sizes: Mapping[int, int]) -> Real:
    """Returns log Σ Π factors, summed over every variable except those in ``keep``, which are the axes of the result;
    −∞ for 0.

    >>> import numpy as np
    >>> half = Factor((0,), np.array([0.5, 0.5]))
    >>> copied = Factor((0, 1), np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> np.exp(eliminate([half, copied], [1], {0: 2, 1: 2})).round(2).tolist()
    [0.55, 0.45]
    """
    keep = tuple(keep)
    shape = tuple(sizes[variable] for variable in keep)
    operands = []
    log_scale = np.zeros(shape[0] if ROW in keep else ())
    for factor in factors:
        scaled, log = _scale(factor)
        operands.append(scaled)
        log_scale = log_scale + log
    for step in _path(*_shapes(operands, sizes), keep):
        taken = [operands[at] for at in step]
        for at in sorted(step, reverse=True):
            del operands[at]
        needed = {*keep, *(name for factor in operands for name in factor.scope)}
        scaled, log = _scale(_product(taken, needed))
        operands.append(scaled)
        log_scale = log_scale + log
    table = _product(operands, set(keep), keep, sizes).table
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    return np.asarray(logs + log_scale.reshape(log_scale.shape + (1,) * (len(shape) - log_scale.ndim)))


def products_of_others(factors: Sequence[Factor], sizes: Mapping[int, int]) -> list[Real]:
    """Returns for each factor the product of all others, summed over variables that the factor does not have, up to a
    constant.

    This is the derivative of the sum of products, computed by going back along the contraction path.
    """
    tape = [_scale(factor)[0] for factor in factors]
    alive = list(range(len(tape)))
    steps = []
    for step in _path(*_shapes(tape, sizes), ()):
        taken = [alive[at] for at in step]
        alive = [number for number in alive if number not in taken]
        needed = {name for number in alive for name in tape[number].scope}
        steps.append((len(tape), taken))
        alive.append(len(tape))
        tape.append(_scale(_product([tape[number] for number in taken], needed))[0])
    rest = {number: Factor(tape[number].scope, np.ones_like(tape[number].table)) for number in alive}
    for made, taken in reversed(steps):
        above = rest.pop(made)
        for one in taken:
            neighbours = [above, *(tape[number] for number in taken if number != one)]
            scope = tape[one].scope
            rest[one] = _scale(_product(neighbours, set(scope), scope, sizes))[0]
    return [rest[number].table for number in range(len(factors))]


Shapes = tuple[tuple[int, ...], ...]


def _shapes(factors: Sequence[Factor], sizes: Mapping[int, int]) -> tuple[Shapes, Shapes]:
    """The variables of each table, and how many values these have."""
    scopes = tuple(factor.scope for factor in factors)
    return scopes, tuple(tuple(sizes[name] for name in scope) for scope in scopes)


@lru_cache(256)  # the same is asked of many rows
def _path(scopes: Shapes, shapes: Shapes, keep: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Which tables are multiplied, step by step; raises where one of the products would be too large."""
    if len(scopes) < 2:
        return []
    import opt_einsum  # only here is it needed

    symbols = {name: opt_einsum.get_symbol(k) for k, name in enumerate(dict.fromkeys(n for s in scopes for n in s))}
    formula = ",".join("".join(symbols[name] for name in scope) for scope in scopes)
    formula += "->" + "".join(symbols[name] for name in keep if name in symbols)
    for effort in ("auto", "auto-hq"):
        path, about = opt_einsum.contract_path(formula, *shapes, shapes=True, optimize=effort)
        if about.largest_intermediate <= MOST_CELLS:
            return [tuple(step) for step in path]
    cells = int(about.largest_intermediate)
    raise errors.TooManyCells(
        f"the answer needs an intermediate table of {cells:,} cells, but the limit is {MOST_CELLS:,}: too many "
        "nodes are connected. Query fewer variables at once, add evidence, or use fewer parents or values.",
        cells=cells,
    )


def _product(
    factors: Sequence[Factor],
    needed: set[int],
    keep: tuple[int, ...] | None = None,
    sizes: Mapping[int, int] | None = None,
) -> Factor:
    """The product, summed over variables that are not needed; over exactly the axes of ``keep`` where they are given."""
    names = list(dict.fromkeys(name for factor in factors for name in factor.scope))
    number = {name: k for k, name in enumerate(names)}
    out = [name for name in names if name in needed] if keep is None else [name for name in keep if name in number]
    out.sort(key=lambda name: name != ROW)  # rows come first; the sort is stable
    arguments: list[Any] = []
    for factor in factors:
        arguments += [factor.table, [number[name] for name in factor.scope]]
    table = np.einsum(*arguments, [number[name] for name in out]) if arguments else np.ones(())
    if keep is None or sizes is None:
        return Factor(tuple(out), np.asarray(table))
    absent = [axis for axis, name in enumerate(keep) if name not in number]
    if not absent:
        return Factor(keep, np.asarray(table))
    wide = np.broadcast_to(np.expand_dims(table, absent), tuple(sizes[name] for name in keep))
    return Factor(keep, wide)


def _scale(factor: Factor) -> tuple[Factor, Real]:
    """The table with a largest entry of 1, in each row where it has rows; and the logarithm of what it was divided by."""
    table = factor.table
    axes = tuple(range(1 if ROW in factor.scope else 0, table.ndim))
    largest = table.max(axis=axes, keepdims=True, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)
    logs = np.log(largest).reshape(-1) if ROW in factor.scope else np.log(largest).reshape(())
    return Factor(factor.scope, table / largest), logs
