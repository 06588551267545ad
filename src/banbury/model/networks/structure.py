"""The graph of a network: parents, an order in which none comes before its parents, cycles, ancestors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from banbury import errors

LONG_CYCLE = 12  # nodes of a cycle that are shown


def checked_parents(parents: Any) -> dict[str, tuple[str, ...]]:
    """Every node with its parents, those that are named as parents only included; raises unless each is named once."""
    if not isinstance(parents, Mapping) or not parents:
        raise errors.bad_setting("parents", parents, "a mapping from each column to the list of its parents")
    found: dict[str, tuple[str, ...]] = {}
    for name, given in parents.items():
        several = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
        for each in (name, *several):
            if not isinstance(each, str):
                raise errors.bad_setting("parents", f"{name!r}: {given!r}", "names of columns, which are texts")
        errors.require(len(set(several)) == len(several), "parents", f"{name!r}: {list(several)!r}", "each parent once")
        found[name] = several
    for several in list(found.values()):
        for each in several:
            found.setdefault(each, ())
    return found


def in_topological_order(parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The nodes, parents before their children and otherwise as they were given; raises where there is a cycle."""
    place = {name: at for at, name in enumerate(parents)}
    order = list[str]()
    sorter = TopologicalSorter(parents)
    try:
        sorter.prepare()
    except CycleError as problem:
        cycle = problem.args[1]
        shown = " → ".join(cycle if len(cycle) <= LONG_CYCLE else [*cycle[: LONG_CYCLE - 1], "…", cycle[-1]])
        raise errors.CyclicStructure(
            f"the parents make a cycle: {shown}. A belief network has none; take one of these edges out.", cycle=cycle
        ) from None
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=place.__getitem__)
        order += ready
        sorter.done(*ready)
    return tuple(order)


def ancestors(of: Iterable[int], parents: Sequence[Sequence[int]]) -> set[int]:
    found: set[int] = set()
    waiting = list(of)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += parents[node]
    return found
