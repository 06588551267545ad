"""Belief networks again, slow and obvious: every assignment of every node is written down, and added up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

Row = Mapping[str, Any]
Tables = Mapping[str, Mapping[tuple[Any, ...], Mapping[Any, float]]]  # node → values of its parents → its value → share


def worlds(
    values: Mapping[str, Sequence[Any]], parents: Mapping[str, Sequence[str]], tables: Tables
) -> Iterator[tuple[Row, float]]:
    """Every assignment of all nodes, and its probability."""
    for several in product(*values.values()):
        world = dict(zip(values, several, strict=True))
        share = 1.0
        for node, value in world.items():
            share *= tables[node][tuple(world[parent] for parent in parents.get(node, ()))][value]
        yield world, share


def evidence(
    values: Mapping[str, Sequence[Any]],
    parents: Mapping[str, Sequence[str]],
    tables: Tables,
    given: Mapping[str, Mapping[Any, float]],
) -> float:
    """P(given), where ``given`` weighs the values of some nodes."""
    return sum(share * _weight(world, given) for world, share in worlds(values, parents, tables))


def query(
    of: Sequence[str],
    values: Mapping[str, Sequence[Any]],
    parents: Mapping[str, Sequence[str]],
    tables: Tables,
    given: Mapping[str, Mapping[Any, float]],
) -> dict[tuple[Any, ...], float] | None:
    """P(of | given); None where what is given cannot be."""
    found: dict[tuple[Any, ...], float] = dict.fromkeys(product(*(values[node] for node in of)), 0.0)
    for world, share in worlds(values, parents, tables):
        found[tuple(world[node] for node in of)] += share * _weight(world, given)
    whole = sum(found.values())
    return {key: share / whole for key, share in found.items()} if whole > 0 else None


def _weight(world: Row, given: Mapping[str, Mapping[Any, float]]) -> float:
    weight = 1.0
    for node, weights in given.items():
        weight *= weights.get(world[node], 0.0)
    return weight


def counted(
    rows: Sequence[Row], values: Mapping[str, Sequence[Any]], parents: Mapping[str, Sequence[str]], alpha: float
) -> dict[str, dict[tuple[Any, ...], dict[Any, float]]]:
    """The tables of rows that have the node and all its parents; α = 0 for maximum likelihood."""
    tables: dict[str, dict[tuple[Any, ...], dict[Any, float]]] = {}
    for node in values:
        above = tuple(parents.get(node, ()))
        complete = [row for row in rows if None not in (row[node], *(row[parent] for parent in above))]
        cells = product(*(values[parent] for parent in above))
        tables[node] = {
            cell: shares(complete, values, node, dict(zip(above, cell, strict=True)), alpha) for cell in cells
        }
    return tables


def shares(
    rows: Sequence[Row], values: Mapping[str, Sequence[Any]], node: str, given: Mapping[str, Any], alpha: float
) -> dict[Any, float]:
    """P(value | given): (n + α) / (N + αK) with one parent at most, (n + m r) / (N + m) with more: r is of fewer parents."""
    own, within = values[node], matching(rows, given)
    n = {value: sum(row[node] == value for row in within) for value in own}
    if len(given) < 2:
        whole = len(within) + alpha * len(own)
        return {value: (n[value] + alpha) / whole if whole else 1 / len(own) for value in own}
    last = list(given)[-1]
    others = {parent: value for parent, value in given.items() if parent != last}
    fewer = shares(rows, values, node, others, alpha)
    alone = shares(rows, values, node, {}, alpha)
    beside = shares(rows, values, node, {last: given[last]}, alpha)
    product_ = {value: fewer[value] * beside[value] / alone[value] if alone[value] else 0.0 for value in own}
    lower = {value: product_[value] / sum(product_.values()) for value in own} if any(product_.values()) else fewer
    before = entropy(rows, node, list(others))
    open_ = entropy(rows, node, list(given)) / before if before > 0 else 1.0
    m = alpha * (1 + open_**2 * math.sqrt(len(matching(rows, others))))
    return {
        value: (n[value] + m * lower[value]) / (len(within) + m) if len(within) + m else lower[value] for value in own
    }


def matching(rows: Sequence[Row], given: Mapping[str, Any]) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in given.items())]


def entropy(rows: Sequence[Row], node: str, given: Sequence[str]) -> float:
    """H(node | given) in nats, times the number of rows."""
    nats = 0.0
    for row in rows:
        alike = matching(rows, {name: row[name] for name in given})
        nats -= math.log(sum(other[node] == row[node] for other in alike) / len(alike))
    return nats


def information(rows: Sequence[Row], a: str, b: str, target: str) -> float:
    """I(a; b | target) in bits, of rows that have all three."""
    rows = [row for row in rows if None not in (row[a], row[b], row[target])]
    bits = 0.0
    for x, y, c in {(row[a], row[b], row[target]) for row in rows}:
        both = sum((row[a], row[b], row[target]) == (x, y, c) for row in rows)
        first = sum((row[a], row[target]) == (x, c) for row in rows)
        second = sum((row[b], row[target]) == (y, c) for row in rows)
        whole = sum(row[target] == c for row in rows)
        bits += both / len(rows) * math.log2(both * whole / (first * second))
    return bits


def spanning_trees(nodes: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Every tree of three nodes or more, by its Prüfer code."""
    for code in product(range(len(nodes)), repeat=len(nodes) - 2):
        degree = [1 + code.count(k) for k in range(len(nodes))]
        edges = []
        for k in code:
            leaf = degree.index(1)
            edges.append((nodes[leaf], nodes[k]))
            degree[leaf] = 0
            degree[k] -= 1
        a, b = (k for k, left in enumerate(degree) if left == 1)
        yield [*edges, (nodes[a], nodes[b])]
