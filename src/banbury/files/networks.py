"""A belief network in a file: its nodes as JSON; its sums, or the tables that were given, as arrays; and all of it checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any, get_args

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.calibration import Calibration
from banbury.distributions.family import Choice, Kind
from banbury.distributions.keys import names_of, scalars
from banbury.files.checking import Arrays, integers_of, real, texts, under
from banbury.networks import BeliefNetwork, checked_choice
from banbury.networks.counting import NetworkCounts
from banbury.networks.structure import checked_parents, in_topological_order
from banbury.networks.tables import CLOSE, check_shares
from banbury.networks.variables import Variable, intervals
from banbury.schema import family_from_dict, family_to_dict
from banbury.sums import MOST_ROWS, in_order

FAMILIES = {"bernoulli", "categorical", "histogram"}  # that a node may have
SETTINGS = {"how", "alpha", "seed"}
COUNTED, GIVEN = ("network", "values", "cells"), "tables"
CALIBRATION = "calibration."  # how the names of its arrays begin


# Taken apart ----------------------------------------------------------------------------------------------------------


def about(network: BeliefNetwork) -> dict[str, Any]:
    """All but the arrays, as JSON can hold it."""
    nodes = [_node(variable, network.parents[variable.name]) for variable in network.variables]
    choice, calibration = network.choice, _calibration_of(network)
    return {
        "network": {
            "nodes": nodes,
            "target": network.target,
            "columns": list(network.columns),
            "named": network.named,
            "left_out": dict(network.left_out),
        },
        "model": None if network.sums is None else {"how": choice.how, "alpha": choice.alpha, "seed": choice.seed},
        "digits": {name: numbers.digits for name, numbers in sums_of(network).items()},
        "rounded": network.sums is not None and network.sums.tally.rounded,
        **({} if calibration is None else {"calibration": calibration.method}),
    }


def _node(variable: Variable, parents: Sequence[str]) -> dict[str, Any]:
    found = {"name": variable.name, "parents": list(parents), **family_to_dict(variable.family), "kind": variable.kind}
    if variable.cuts is not None:
        return found | {"cuts": list(variable.cuts), "ends": list(variable.ends)}
    return found | {"values": list(scalars(f"the values of {variable.name!r}", variable.values))}


def arrays(network: BeliefNetwork) -> Arrays:
    """The tables of all nodes, one after the other; and what a calibration has learned."""
    calibration = _calibration_of(network)
    state = {} if calibration is None else calibration.state()
    beside = {f"{CALIBRATION}{name}": np.ascontiguousarray(array) for name, array in state.items()}
    if network.sums is None:
        return {GIVEN: np.concatenate([table.reshape(-1) for table in network.tables.values()]), **beside}
    return {name: np.ascontiguousarray(numbers.limbs()) for name, numbers in sums_of(network).items()} | beside


def _calibration_of(network: BeliefNetwork) -> Calibration | None:
    calibration = network.calibration
    if calibration is not None and not isinstance(calibration, Calibration):
        raise errors.bad_setting("the network's calibration", type(calibration).__name__, "one that bb.calibrate made")
    return calibration


def sums_of(network: BeliefNetwork) -> dict[str, Integers]:
    """The sums of all nodes, by name, one node after the other."""
    if network.sums is None:
        return {}
    tables = zip(COUNTED, ((network.sums.rows,), network.sums.seen, network.sums.cells), strict=True)
    return {name: Integers.join([table.arranged([prod(table.shape)]) for table in each]) for name, each in tables}


# Put together ---------------------------------------------------------------------------------------------------------


def put_together(about: Mapping[str, Any], arrays: Arrays) -> BeliefNetwork:
    """The network; whatever does not fit raises some error or other."""
    state = {name: array.copy() for name, array in under(CALIBRATION, arrays).items()}
    rest = {name: array for name, array in arrays.items() if not name.startswith(CALIBRATION)}
    network = _uncalibrated(about, rest)
    if "calibration" in about:
        return network.calibrated(Calibration.from_state(about["calibration"], state))
    if state:
        raise ValueError("there are arrays of a calibration, and none is named")
    return network


def _uncalibrated(about: Mapping[str, Any], arrays: Arrays) -> BeliefNetwork:
    found, settings = about["network"], about["model"]
    variables = tuple(_variable(node, settings is not None) for node in found["nodes"])
    parents = _parents(found["nodes"])
    shapes = [tuple(variables[each].size for each in (v, *above)) for v, above in enumerate(parents)]
    columns, named, left_out = texts("columns", found["columns"]), found["named"], found["left_out"]
    texts("what is left out", [*left_out.keys(), *left_out.values()])
    if not isinstance(named, bool):
        raise TypeError("columns have names or positions")
    target = found["target"]
    if target is not None and target not in [variable.name for variable in variables]:
        raise ValueError("the target is none of the nodes")
    if settings is None:
        tables = _tables(variables, shapes, arrays)
        return BeliefNetwork(variables, parents, Choice("mle"), None, tables, target, columns, named, left_out)
    if settings.keys() != SETTINGS:
        raise ValueError("the network has other settings")
    sums = _sums(variables, parents, shapes, arrays, about["digits"], about["rounded"])
    return BeliefNetwork(variables, parents, checked_choice(**settings), sums, (), target, columns, named, left_out)


def _variable(node: Mapping[str, Any], counted: bool) -> Variable:
    (name,) = texts("names of nodes", [node["name"]])
    if node["family"] not in FAMILIES or node["kind"] not in get_args(Kind):
        raise ValueError(f"{name!r} has the family {node['family']!r} of {node['kind']!r}, and no node has")
    family, kind = family_from_dict(node), node["kind"]
    if family.has_density():  # of numbers, which are cut
        cuts, ends = _numbers(f"the cuts of {name!r}", node["cuts"]), _numbers(f"the ends of {name!r}", node["ends"])
        if len(ends) != 2 or kind not in ("integer", "float"):
            raise ValueError(f"the bins of {name!r} are not those of numbers")
        return Variable(name, intervals(cuts), family, kind, cuts, (ends[0], ends[1]))
    values = (names_of if counted else scalars)(f"the values of {name!r}", node["values"])
    declared = family.declared()
    if declared is not None and tuple(value for value in values if value is not None) != in_order(declared):
        raise ValueError(f"the values of {name!r} are not those that were declared")
    return Variable(name, values, family, kind)


def _numbers(what: str, numbers: Any) -> tuple[float, ...]:
    if not all(type(number) is float and math.isfinite(number) for number in numbers):
        raise TypeError(f"{what} are not finite numbers")
    if any(a > b for a, b in pairwise(numbers)):
        raise ValueError(f"{what} are not in order")
    return tuple(numbers)


def _parents(nodes: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, ...], ...]:
    """Of each node the numbers of its parents; raises where one is no node, or where there is a cycle."""
    given = {node["name"]: texts(f"the parents of {node['name']!r}", node["parents"]) for node in nodes}
    place = {name: v for v, name in enumerate(given)}
    structure = checked_parents(given)
    if not len(nodes) == len(given) == len(structure):
        raise ValueError("two nodes have one name, or a parent is no node")
    in_topological_order(structure)
    return tuple(tuple(place[each] for each in above) for above in given.values())


def _sums(
    variables: tuple[Variable, ...],
    parents: tuple[tuple[int, ...], ...],
    shapes: Sequence[tuple[int, ...]],
    arrays: Arrays,
    digits: Any,
    rounded: Any,
) -> NetworkCounts:
    if arrays.keys() != set(COUNTED):
        raise ValueError("there are arrays that no network has, or too few")
    if type(rounded) is not bool:
        raise TypeError("sums were rounded or not")
    rows = integers_of("network", arrays, digits, (1,))
    if not rows.value[0] < MOST_ROWS:
        raise ValueError("there are more rows than can be counted")
    seen, cells = (
        tuple(_parts(name, of, arrays, digits))
        for name, of in (("values", [(variable.size,) for variable in variables]), ("cells", shapes))
    )
    try:
        found = NetworkCounts.of_tables(variables, parents, rows, seen, cells, rounded)
        if not rounded:
            found.checked().tally.checked()
        return found
    except errors.NegativeCount:
        raise ValueError("a value has fewer rows than none, or more than there are") from None


def _parts(name: str, shapes: Sequence[tuple[int, ...]], arrays: Arrays, digits: Any) -> list[Integers]:
    """The tables of all nodes, each in its shape."""
    every = integers_of(name, arrays, digits, (sum(map(prod, shapes)),))
    places = _places(shapes)
    return [every.take(at, 0).arranged(list(shape)) for at, shape in zip(places, shapes, strict=True)]


def _places(shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Where each table's numbers stand, one table after the other."""
    return [np.arange(a, b) for a, b in pairwise([0, *accumulate(map(prod, shapes))])]


def _tables(variables: Sequence[Variable], shapes: Sequence[tuple[int, ...]], arrays: Arrays) -> tuple[Any, ...]:
    if arrays.keys() != {GIVEN}:
        raise ValueError("there are other arrays than tables")
    every = real(GIVEN, arrays, (sum(map(prod, shapes)),))
    if (every < 0).any() or (every > 1.0 + CLOSE).any():
        raise ValueError("a share is not from 0 to 1")
    tables = tuple(every[at].reshape(shape) for at, shape in zip(_places(shapes), shapes, strict=True))
    for variable, table in zip(variables, tables, strict=True):
        check_shares(variable.name, table)
    return tables
