"""Variable elimination: multiplies factors and sums out one variable after the other, in an order that keeps factors small.

opt_einsum finds the order. The products are computed here, one at a time, so that each can be divided by its largest entry
and none underflows, however many factors are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.arrays import Real

ROW = -1  # stands for the rows among the variables of a factor that differs by row; always the first axis
MOST_CELLS = 1 << 26  # of a table: half a gigabyte


class Factor(NamedTuple):
    """A table with an axis for each variable in ``scope``. If ROW is among them, it has a table for each row."""

    scope: tuple[int, ...]
    table: Real


Scopes = tuple[tuple[int, ...], ...]


def eliminate(factors: Sequence[Factor], keep: Sequence[int], sizes: Mapping[int, int]) -> Real:
    """Multiplies factors and sums out every variable except those in ``keep``. Returns the logarithm, −∞ for 0, with an
    axis for each kept variable.

    ``sizes`` has the number of values of each variable, and the number of rows for ROW.

    >>> import numpy as np
    >>> prior = Factor((0,), np.array([0.5, 0.5]))
    >>> transition = Factor((0, 1), np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> np.exp(eliminate([prior, transition], [1], {0: 2, 1: 2})).round(2).tolist()
    [0.55, 0.45]
    """
    keep = tuple(keep)
    remaining = list[Factor]()
    log_scale = np.zeros(sizes[ROW] if ROW in keep else ())  # what was divided out, in all or by row
    for factor in factors:
        scaled, log_largest = _scale(factor)  # divided by its largest entry, and the logarithm of that
        remaining.append(scaled)
        log_scale = log_scale + log_largest
    for positions in _elimination_order(remaining, keep):  # of the factors to multiply, in ``remaining``
        multiplied = [remaining[position] for position in positions]
        remaining = [factor for position, factor in enumerate(remaining) if position not in positions]
        scope = _remaining_scope(multiplied, remaining, keep)
        scaled, log_largest = _scale(_product(multiplied, scope, sizes))
        remaining.append(scaled)
        log_scale = log_scale + log_largest
    table = _product(remaining, keep, sizes).table
    with np.errstate(divide="ignore"):
        log_table = np.log(table)
    return np.asarray(log_table + log_scale.reshape(log_scale.shape + (1,) * (len(keep) - log_scale.ndim)))


def outside_products(factors: Sequence[Factor], sizes: Mapping[int, int]) -> list[Real]:
    """Returns for each factor a table with its axes: the product of all other factors, summed over variables that the
    factor does not have, up to a constant. ``sizes`` has the number of values of each variable.

    Multiplied by the factor itself, it is the joint distribution of the factor's variables. Two passes compute all of
    them: forwards, factors are multiplied pair by pair until one is left; backwards, each pair gets the product of
    everything outside it.
    """
    tables = [_scale(factor)[0] for factor in factors]  # the factors, followed by the product of each step
    remaining = list(range(len(tables)))  # the numbers of tables that no step has multiplied yet
    steps = []  # the numbers of the tables that each step multiplies
    for positions in _elimination_order(tables, ()):
        multiplied = [remaining[position] for position in positions]
        remaining = [number for number in remaining if number not in multiplied]
        step_factors = [tables[number] for number in multiplied]
        scope = _remaining_scope(step_factors, (tables[number] for number in remaining))
        steps.append(multiplied)
        remaining.append(len(tables))
        tables.append(_scale(_product(step_factors, scope, sizes))[0])
    # By the number of a table: the product of everything outside it. What the last step leaves has nothing outside.
    outside_of = {number: Factor(tables[number].scope, np.ones_like(tables[number].table)) for number in remaining}
    for product_number, multiplied in reversed([*enumerate(steps, len(factors))]):  # the number of a step's product
        outside = outside_of.pop(product_number)
        for number in multiplied:
            step_factors = [outside, *(tables[sibling] for sibling in multiplied if sibling != number)]
            outside_of[number] = _scale(_product(step_factors, tables[number].scope, sizes))[0]
    return [outside_of[number].table for number in range(len(factors))]


def _elimination_order(factors: Sequence[Factor], keep: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Returns the positions of the factors that each step multiplies, in the list that is left by the steps before. A
    step takes them out of it, and the product goes to the end. ``keep`` has the variables that are not summed out.
    """
    return _find_order(tuple(factor.scope for factor in factors), tuple(factor.table.shape for factor in factors), keep)


@lru_cache(256)  # batches of rows ask for the same order again and again
def _find_order(scopes: Scopes, shapes: Scopes, keep: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Returns the positions of the factors that each step multiplies, in the list that is left by the steps before.
    ``scopes`` has the variables of each factor and ``shapes`` their numbers of values; ``keep`` has the variables that
    are not summed out. Raises an error if a product would have more than ``MOST_CELLS`` cells.
    """
    if len(scopes) < 2:
        return []
    import opt_einsum  # imported here because it takes long and few programs need it

    variables = dict.fromkeys(variable for scope in scopes for variable in scope)  # each once
    symbols = {variable: opt_einsum.get_symbol(number) for number, variable in enumerate(variables)}
    formula = ",".join("".join(symbols[variable] for variable in scope) for scope in scopes)
    formula += "->" + "".join(symbols[variable] for variable in keep if variable in symbols)
    for effort in ("auto", "auto-hq"):
        order, costs = opt_einsum.contract_path(formula, *shapes, shapes=True, optimize=effort)
        if costs.largest_intermediate <= MOST_CELLS:
            return [tuple(positions) for positions in order]
    cells = int(costs.largest_intermediate)
    raise errors.TooManyCells(
        f"the answer needs an intermediate table of {cells:,} cells, but the limit is {MOST_CELLS:,}: too many "
        "nodes are connected. Query fewer variables at once, add evidence, or use fewer parents or values.",
        cells=cells,
    )


def _remaining_scope(
    multiplied: Sequence[Factor], remaining: Iterable[Factor], keep: Sequence[int] = ()
) -> tuple[int, ...]:
    """Returns the variables of the product of the factors ``multiplied`` that are not summed out, rows first: those of
    ``keep`` and of the ``remaining`` factors.
    """
    needed = {*keep, *(variable for factor in remaining for variable in factor.scope)}
    variables = dict.fromkeys(variable for factor in multiplied for variable in factor.scope if variable in needed)
    return tuple(sorted(variables, key=lambda variable: variable != ROW))


def _product(factors: Sequence[Factor], scope: tuple[int, ...], sizes: Mapping[int, int]) -> Factor:
    """Returns the product of factors, with all variables summed out that are not in ``scope``, and its axes in that
    order. If no factor has a variable of ``scope``, the product is the same for all of its values. ``sizes`` has the
    number of values of each variable.
    """
    axis_of = {  # the number that einsum knows a variable by
        variable: axis
        for axis, variable in enumerate(dict.fromkeys(variable for factor in factors for variable in factor.scope))
    }
    arguments: list[Any] = []  # of einsum: each table, followed by the numbers of its axes
    for factor in factors:
        arguments += [factor.table, [axis_of[variable] for variable in factor.scope]]
    axes = [axis_of[variable] for variable in scope if variable in axis_of]  # that stay, in the order of ``scope``
    table = np.asarray(np.einsum(*arguments, axes) if arguments else np.ones(()))
    if len(axes) < len(scope):
        missing_axes = [axis for axis, variable in enumerate(scope) if variable not in axis_of]
        shape = [sizes[variable] for variable in scope]
        table = np.broadcast_to(np.expand_dims(table, missing_axes), shape)
    return Factor(scope, table)


def _scale(factor: Factor) -> tuple[Factor, Real]:
    """Returns a factor divided by its largest entry, row by row if it has rows, and the logarithm of that entry: a
    number, or one per row.
    """
    has_rows = ROW in factor.scope  # rows are the first axis
    axes = tuple(range(1 if has_rows else 0, factor.table.ndim))  # all others
    largest = factor.table.max(axis=axes, keepdims=True, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)
    return Factor(factor.scope, factor.table / largest), np.log(largest).reshape(-1 if has_rows else ())
