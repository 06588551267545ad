"""Converts belief networks to JSON and arrays and back: nodes, and counts or given tables; checks everything from a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any, get_args

import numpy as np

from banbury import errors
from banbury.families.family import Choice, Kind
from banbury.families.keys import check_scalar_order, check_scalars
from banbury.families.nodes import Variable, intervals
from banbury.files import contents
from banbury.files.checking import Arrays, JsonObject, check, reading_of, real, texts
from banbury.model.naive_bayes import choice_of
from banbury.model.networks import BeliefNetwork
from banbury.model.networks.counting import (
    ONE_CLASS,
    NetworkCounts,
    Parents,
    axes_of,
    check_size,
    keys_at,
    schema_of_tables,
)
from banbury.model.networks.structure import complete_parents, in_topological_order
from banbury.model.networks.tables import CLOSE, check_shares
from banbury.sums import sort_keys
from banbury.tally.schema import family_from_dict, family_to_dict

FAMILIES = {"bernoulli", "categorical", "histogram"}  # families that a node may have
SETTINGS = {"how", "alpha", "seed"}
GIVEN = "tables"  # names of arrays: given tables, and the numbers of the cells that have rows
PLACES = "places"


# Taken apart ----------------------------------------------------------------------------------------------------------


def about(network: BeliefNetwork) -> JsonObject:
    """Returns the JSON object of a network: everything but the arrays. A network with given tables has no counts
    (``_counts`` is None), so "tally" and "model" are None.
    """
    nodes = [_node(variable, network.parents[variable.name]) for variable in network._variables]
    choice = network.choice  # how tables are estimated from counts
    sums = network._counts  # None if the tables are given
    return {
        "network": {
            "nodes": nodes,
            "target": network.target,
            "columns": list(network.columns),
            "named": network._named,  # whether the columns of the rows had names
            "left_out": dict(network.left_out),
            **({"reading": dict(network._reading)} if network._reading else {}),
        },
        "tally": None if sums is None else contents.about_sums(sums.tally),
        "model": None if sums is None else {"how": choice.how, "alpha": choice.alpha, "seed": choice.seed},
    }


def _node(variable: Variable, parents: Sequence[str]) -> JsonObject:
    """Returns a node for JSON: its name, parents, family and kind; and its values, or the cuts between its intervals
    with the lowest and highest number. ``variable.cuts`` is None unless its numbers are cut.
    """
    node = {"name": variable.name, "parents": list(parents), **family_to_dict(variable.family), "kind": variable.kind}
    if variable.cuts is not None:
        return node | {"cuts": list(variable.cuts), "ends": list(variable.ends)}
    return node | {"values": list(check_scalars(f"the values of {variable.name!r}", variable.values))}


def arrays(network: BeliefNetwork) -> Arrays:
    """Returns the arrays of a network by name: the numbers of the cells of its tables that have rows, with their
    counts; or the given tables of all nodes, one after the other.
    """
    if network._counts is not None:
        return {PLACES: network._counts.cell_numbers, **contents.arrays(network._counts.tally)}
    return {GIVEN: np.concatenate([table.reshape(-1) for table in network.tables.values()])}


# Put together ---------------------------------------------------------------------------------------------------------


def from_json_and_arrays(about: JsonObject, arrays: Arrays) -> BeliefNetwork:
    """Returns the network of a file: ``about`` is its JSON object, and ``arrays`` are its arrays by name. Raises some
    exception if the contents are inconsistent.
    """
    network = about["network"]
    settings = about["model"]  # None if the tables are given
    variables = tuple(_variable(node, settings is not None) for node in network["nodes"])
    parents = _parents(network["nodes"])  # for each node the numbers of its parents
    columns = texts("columns", network["columns"])
    has_names = network["named"]  # whether the columns of the rows had names
    left_out = network["left_out"]  # the reason for each column that is not a node
    texts("what is left out", [*left_out.keys(), *left_out.values()])
    check(isinstance(has_names, bool), "named is neither true nor false")
    check(
        (target := network["target"]) in [None, *(variable.name for variable in variables)],
        "the target is not one of the nodes",
    )
    choice = Choice("mle")  # for given tables
    sums = None  # counts, unless tables are given
    tables = ()  # those given
    if settings is None:
        tables = _tables(variables, parents, arrays)
    else:
        check(settings.keys() == SETTINGS, "the network's settings are missing or unknown")
        choice = choice_of(**settings)
        sums = _sums(variables, parents, about["tally"], arrays)
    reading = reading_of(network)
    return BeliefNetwork(
        variables, parents, choice, sums, tables, target, columns, has_names, left_out, _reading=reading
    )


def _variable(node: JsonObject, counted: bool) -> Variable:
    """Returns the variable that the JSON object of a node describes. ``counted`` says whether its values were counted
    rather than given. Raises an error if it is inconsistent.
    """
    (name,) = texts("names of nodes", [node["name"]])
    can_be_node = node["family"] in FAMILIES and node["kind"] in get_args(Kind)
    check(can_be_node, f"{name!r} has the family {node['family']!r} of {node['kind']!r}, which no node can have")
    family = family_from_dict(node)
    kind = node["kind"]
    if family.has_density():  # of numbers, which are cut
        cuts = _numbers(f"the cuts of {name!r}", node["cuts"])
        ends = _numbers(f"the ends of {name!r}", node["ends"])
        check(len(ends) == 2 and kind in ("integer", "float"), f"the bins of {name!r} are not those of numbers")
        return Variable(name, intervals(cuts), family, kind, cuts, (ends[0], ends[1]))
    values = (check_scalar_order if counted else check_scalars)(f"the values of {name!r}", node["values"])
    declared = family.permanent_keys()  # None if no values were declared
    present = tuple(value for value in values if value is not None)
    are_declared = declared is None or present == sort_keys(declared)
    check(are_declared, f"the values of {name!r} are not those that were declared")
    return Variable(name, values, family, kind)


def _numbers(what: str, numbers: Any) -> tuple[float, ...]:
    """Returns the numbers as a tuple. Raises ValueError unless they are finite and ascending. ``what`` says what they
    are.
    """
    are_finite = all(type(number) is float and math.isfinite(number) for number in numbers)
    check(are_finite, f"{what} are not finite numbers")
    check(all(number <= next_number for number, next_number in pairwise(numbers)), f"{what} are not in order")
    return tuple(numbers)


def _parents(nodes: Sequence[JsonObject]) -> tuple[tuple[int, ...], ...]:
    """Returns for each node the numbers of its parents. ``nodes`` are their JSON objects. Raises an error for unknown
    parents or cycles.
    """
    parent_names = {node["name"]: texts(f"the parents of {node['name']!r}", node["parents"]) for node in nodes}
    node_numbers = {name: number for number, name in enumerate(parent_names)}
    complete = complete_parents(parent_names)  # also of nodes that are named only as parents
    check(len(nodes) == len(parent_names) == len(complete), "two nodes have the same name, or a parent is not a node")
    in_topological_order(complete)
    return tuple(tuple(node_numbers[name] for name in parent_list) for parent_list in parent_names.values())


def _sums(variables: tuple[Variable, ...], parents: Parents, about: JsonObject, arrays: Arrays) -> NetworkCounts:
    """Returns the counts of a network in a file. ``variables`` are its nodes, and ``parents`` has for each of them the
    numbers of its parents; ``about`` is the tally's JSON object, and ``arrays`` are those of the file. Raises
    ValueError if they cannot be those of rows.
    """
    for node, node_parents in enumerate(parents):
        check_size(variables, node, node_parents)
    # Of the cells that have rows; the cells of all tables are numbered one table after the other.
    cell_numbers = arrays[PLACES]
    tally_arrays = {name: array for name, array in arrays.items() if name != PLACES}
    check(
        cell_numbers.dtype == np.int64 and cell_numbers.ndim == 1 and (np.diff(cell_numbers) > 0).all(),
        "places are not in order",
    )
    # Of all tables; ``axes_of`` gives for each the values of each of its axes.
    n_cells = sum(prod(map(len, axes)) for axes in axes_of(variables, parents))
    check(
        not len(cell_numbers) or 0 <= cell_numbers[0] <= cell_numbers[-1] < n_cells, "a place lies outside the tables"
    )
    keys = keys_at(cell_numbers.copy(), variables, parents)  # for each table the combinations of values that rows have
    try:
        tally = contents.restore_tally(
            schema_of_tables(variables, parents), ONE_CLASS, {**about, "keys": [keys]}, tally_arrays
        )
        counts = NetworkCounts.of(variables, parents, tally)
        check(counts.variables == variables, "a node has a value that no row has")
        return counts if tally.rounded else counts.check_consistency()
    except errors.NegativeCount:
        raise ValueError("a value has a negative number of rows, or more than the network") from None


def _tables(variables: Sequence[Variable], parents: Parents, arrays: Arrays) -> tuple[Any, ...]:
    """Returns the given tables in a file, one per node, with an axis for the node and then one for each parent.
    ``variables`` are the nodes, ``parents`` has for each of them the numbers of its parents, and ``arrays`` are those
    of the file. Raises ValueError if they are not probabilities.
    """
    shapes = [  # of the table of each node
        tuple(variables[axis_node].size for axis_node in (node, *node_parents))
        for node, node_parents in enumerate(parents)
    ]
    check(arrays.keys() == {GIVEN}, "there are arrays other than the tables")
    all_shares = real(GIVEN, arrays, (sum(map(prod, shapes)),))
    check((all_shares >= 0).all() and (all_shares <= 1.0 + CLOSE).all(), "a share is not between 0 and 1")
    # Where the numbers of each node's table start and end.
    ranges = pairwise([0, *accumulate(map(prod, shapes))])
    tables = tuple(all_shares[start:end].reshape(shape) for (start, end), shape in zip(ranges, shapes, strict=True))
    for variable, table in zip(variables, tables, strict=True):
        check_shares(variable.name, table)
    return tables
