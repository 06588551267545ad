"""A belief network in a file: its nodes as JSON; its tally, or the tables that were given; and all of it checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any, get_args

import numpy as np

from banbury import errors
from banbury.families.family import Choice, Kind
from banbury.families.keys import names_of, scalars
from banbury.families.nodes import Variable, intervals
from banbury.files import contents
from banbury.files.checking import Arrays, check, reading_of, real, texts
from banbury.model.naive_bayes import choice_of
from banbury.model.networks import BeliefNetwork
from banbury.model.networks.counting import EVERY, NetworkCounts, Parents, axes_of, check_size, keys_at, tables_of
from banbury.model.networks.structure import complete_parents, in_topological_order
from banbury.model.networks.tables import CLOSE, check_shares
from banbury.sums import in_order
from banbury.tally.schema import family_from_dict, family_to_dict

FAMILIES = {"bernoulli", "categorical", "histogram"}  # that a node may have
SETTINGS = {"how", "alpha", "seed"}
GIVEN = "tables"
PLACES = "places"


# Taken apart ----------------------------------------------------------------------------------------------------------


def about(network: BeliefNetwork) -> dict[str, Any]:
    """All but the arrays, as JSON can hold it."""
    nodes = [_node(variable, network.parents[variable.name]) for variable in network.variables]
    choice = network.choice
    sums = network.sums
    return {
        "network": {
            "nodes": nodes,
            "target": network.target,
            "columns": list(network.columns),
            "named": network.named,
            "left_out": dict(network.left_out),
            **({"reading": dict(network.reading)} if network.reading else {}),
        },
        "tally": None if sums is None else contents.about_sums(sums.tally),
        "model": None if sums is None else {"how": choice.how, "alpha": choice.alpha, "seed": choice.seed},
    }


def _node(variable: Variable, parents: Sequence[str]) -> dict[str, Any]:
    node = {"name": variable.name, "parents": list(parents), **family_to_dict(variable.family), "kind": variable.kind}
    if variable.cuts is not None:
        return node | {"cuts": list(variable.cuts), "ends": list(variable.ends)}
    return node | {"values": list(scalars(f"the values of {variable.name!r}", variable.values))}


def arrays(network: BeliefNetwork) -> Arrays:
    """The tally's, or the tables of all nodes, one after the other."""
    if network.sums is not None:
        return {PLACES: network.sums.places, **contents.arrays(network.sums.tally)}
    return {GIVEN: np.concatenate([table.reshape(-1) for table in network.tables.values()])}


# Put together ---------------------------------------------------------------------------------------------------------


def put_together(about: Mapping[str, Any], arrays: Arrays) -> BeliefNetwork:
    """The network; whatever does not fit raises some error or other."""
    network = about["network"]
    settings = about["model"]
    variables = tuple(_variable(node, settings is not None) for node in network["nodes"])
    parents = _parents(network["nodes"])
    columns = texts("columns", network["columns"])
    named = network["named"]
    left_out = network["left_out"]
    texts("what is left out", [*left_out.keys(), *left_out.values()])
    check(isinstance(named, bool), "named is neither true nor false")
    check(
        (target := network["target"]) in [None, *(variable.name for variable in variables)],
        "the target is not one of the nodes",
    )
    choice = Choice("mle")
    sums = None
    tables = ()
    if settings is None:
        tables = _tables(variables, parents, arrays)
    else:
        check(settings.keys() == SETTINGS, "the network's settings are missing or unknown")
        choice = choice_of(**settings)
        sums = _sums(variables, parents, about["tally"], arrays)
    rest = target, columns, named, left_out
    return BeliefNetwork(variables, parents, choice, sums, tables, *rest, reading=reading_of(network))


def _variable(node: Mapping[str, Any], counted: bool) -> Variable:
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
    values = (names_of if counted else scalars)(f"the values of {name!r}", node["values"])
    declared = family.permanent_keys()
    there = tuple(value for value in values if value is not None)
    fit = declared is None or there == in_order(declared)
    check(fit, f"the values of {name!r} are not those that were declared")
    return Variable(name, values, family, kind)


def _numbers(what: str, numbers: Any) -> tuple[float, ...]:
    finite = all(type(number) is float and math.isfinite(number) for number in numbers)
    check(finite, f"{what} are not finite numbers")
    check(all(a <= b for a, b in pairwise(numbers)), f"{what} are not in order")
    return tuple(numbers)


def _parents(nodes: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, ...], ...]:
    """Of each node the numbers of its parents; raises where one is no node, or where there is a cycle."""
    parent_names = {node["name"]: texts(f"the parents of {node['name']!r}", node["parents"]) for node in nodes}
    place = {name: v for v, name in enumerate(parent_names)}
    structure = complete_parents(parent_names)
    check(len(nodes) == len(parent_names) == len(structure), "two nodes have the same name, or a parent is not a node")
    in_topological_order(structure)
    return tuple(tuple(place[name] for name in above) for above in parent_names.values())


def _sums(variables: tuple[Variable, ...], parents: Parents, about: Mapping[str, Any], arrays: Arrays) -> NetworkCounts:
    for v, above in enumerate(parents):
        check_size(variables, v, above)
    places = arrays[PLACES]
    rest = {name: array for name, array in arrays.items() if name != PLACES}
    check(places.dtype == np.int64 and places.ndim == 1 and (np.diff(places) > 0).all(), "places are not in order")
    most = sum(prod(map(len, axes)) for axes in axes_of(variables, parents))
    check(not len(places) or 0 <= places[0] <= places[-1] < most, "a place lies outside the tables")
    keys = keys_at(places.copy(), variables, parents)
    try:
        tally = contents.restore_tally(tables_of(variables, parents), EVERY, {**about, "keys": [keys]}, rest)
        counts = NetworkCounts.of(variables, parents, tally)
        check(counts.variables == variables, "a node has a value that no row has")
        return counts if tally.rounded else counts.check_consistency()
    except errors.NegativeCount:
        raise ValueError("a value has a negative number of rows, or more than the network") from None


def _tables(variables: Sequence[Variable], parents: Parents, arrays: Arrays) -> tuple[Any, ...]:
    shapes = [tuple(variables[u].size for u in (v, *above)) for v, above in enumerate(parents)]
    check(arrays.keys() == {GIVEN}, "there are arrays other than the tables")
    every = real(GIVEN, arrays, (sum(map(prod, shapes)),))
    check((every >= 0).all() and (every <= 1.0 + CLOSE).all(), "a share is not from 0 to 1")
    places = pairwise([0, *accumulate(map(prod, shapes))])
    tables = tuple(every[a:b].reshape(shape) for (a, b), shape in zip(places, shapes, strict=True))
    for variable, table in zip(variables, tables, strict=True):
        check_shares(variable.name, table)
    return tables
