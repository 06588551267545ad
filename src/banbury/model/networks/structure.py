"""The graph of a network: parents, topological order, cycles and ancestors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from banbury import errors

LONG_CYCLE = 12  # a longer cycle is abbreviated in the error


def complete_parents(parents: Any) -> dict[str, tuple[str, ...]]:
    """Returns every node with its parents, including nodes that occur only as parents, which have none. ``parents`` is
    the user's mapping from a node to its parents, or to its only parent. Raises an error if it is not valid.
    """
    if not isinstance(parents, Mapping) or not parents:
        raise errors.bad_setting("parents", parents, "a mapping from each column to the list of its parents")
    structure: dict[str, tuple[str, ...]] = {}
    for name, parent_or_parents in parents.items():
        node_parents = (
            (parent_or_parents,)
            if isinstance(parent_or_parents, str) or not isinstance(parent_or_parents, Iterable)
            else tuple(parent_or_parents)
        )
        for node in (name, *node_parents):
            if not isinstance(node, str):
                raise errors.bad_setting(
                    "parents", f"{name!r}: {parent_or_parents!r}", "column names, which must be texts"
                )
        errors.require(
            len(set(node_parents)) == len(node_parents),
            "parents",
            f"{name!r}: {list(node_parents)!r}",
            "each parent once",
        )
        structure[name] = node_parents
    for node_parents in list(structure.values()):
        for node in node_parents:
            structure.setdefault(node, ())
    return structure


def in_topological_order(parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Returns the names of the nodes with parents before their children, otherwise in the given order. ``parents`` has
    the parents of each node. Raises an error if there is a cycle.
    """
    position = {name: number for number, name in enumerate(parents)}
    order = list[str]()
    sorter = TopologicalSorter(parents)
    try:
        sorter.prepare()
    except CycleError as problem:
        cycle = problem.args[1]
        shown = " → ".join(cycle if len(cycle) <= LONG_CYCLE else [*cycle[: LONG_CYCLE - 1], "…", cycle[-1]])
        raise errors.CyclicStructure(
            f"the parents make a cycle: {shown}. A belief network must have no cycles; remove one of these edges.",
            cycle=cycle,
        ) from None
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=position.__getitem__)
        order += ready
        sorter.done(*ready)
    return tuple(order)


def ancestors(nodes: Iterable[int], parents: Sequence[Sequence[int]]) -> set[int]:
    """Returns these nodes and all their ancestors, by number. ``parents`` has the parents of each node."""
    visited: set[int] = set()
    to_visit = list(nodes)
    while to_visit:
        node = to_visit.pop()
        if node not in visited:
            visited.add(node)
            to_visit += parents[node]
    return visited
