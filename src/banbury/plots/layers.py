"""Places for the nodes of a graph and curves for its edges, by Sugiyama's method.

Nodes stand in columns, parents to the left of their children. An edge that skips a column has a bend there, which takes a place
among its nodes. Edges rise and fall between the columns alone, so that none runs through a box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from banbury.arrays import Real

Edge = tuple[str, str]
Bend = tuple[Edge, int]  # of an edge, in a column
Item = str | Bend
RowOfItem = dict[Item, float]

SWEEPS = 24  # in which nodes and bends come nearer to those they are tied to
BEND = 0.7  # lines between a bend and what stands above it
STRAIGHT = 4.0  # how much more a bend is drawn to its neighbours than a node


@dataclass(frozen=True)
class Layers:
    """The column and the row of each node, and of each bend of an edge; ``chains`` has what each edge passes."""

    columns: dict[str, int]
    rows: RowOfItem
    chains: dict[Edge, list[Item]]

    @classmethod
    def of(cls, nodes: Sequence[str], edges: Sequence[Edge]) -> Layers:
        columns = _columns(nodes, edges)
        # An edge passes the parent, a bend in each column that it skips, and the child.
        skipped = {edge: range(columns[edge[0]] + 1, columns[edge[1]]) for edge in edges}
        chains: Any = {edge: [edge[0], *((edge, at) for at in skipped[edge]), edge[1]] for edge in edges}
        return cls(columns, _rows(nodes, columns, chains), chains)

    def laid_out(self, widths: Mapping[str, float], line: float, gap: float) -> GraphLayout:
        """Nodes of these widths, ``line`` from one row to the next and ``gap`` between columns; edges begin behind boxes."""
        longest = [0.0] * (1 + max(self.columns.values()))
        for node, column in self.columns.items():
            longest[column] = max(longest[column], widths[node])
        left = np.cumsum([0.0, *(width + gap for width in longest[:-1])])
        right = left + longest
        places = {node: (float(left[self.columns[node]]), line * self.rows[node]) for node in widths}
        curves = {}
        for (parent, child), chain in self.chains.items():
            x, y = places[parent]
            points = [(x + widths[parent] / 2, y), (float(right[self.columns[parent]]), y)]
            for bend in chain[1:-1]:
                points += [(float(side[bend[1]]), line * self.rows[bend]) for side in (left, right)]  # type: ignore[index]
            # Béziers that leave and arrive level: straight where two points have the same height.
            bezier = points[:1]
            for (x, y), (right_x, lower) in pairwise([*points, places[child]]):
                reach = 0.5 * (right_x - x)
                bezier += [(x + reach, y), (right_x - reach, lower), (right_x, lower)]
            curves[parent, child] = np.array(bezier)
        return GraphLayout(places, curves)


@dataclass(frozen=True)
class GraphLayout:
    """The place of each node's left end, and the curve of each edge: the points of cubic Béziers that follow each other."""

    places: dict[str, tuple[float, float]]
    curves: dict[Edge, Real]


def _columns(nodes: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The column of each node: behind all its parents; a node without parents stands just before the first of its children."""
    parents: dict[str, list[str]] = {node: [] for node in nodes}
    children: dict[str, list[str]] = {node: [] for node in nodes}
    for parent, child in edges:
        parents[child].append(parent)
        children[parent].append(child)
    behind: dict[str, int] = {}
    while len(behind) < len(nodes):
        for node in nodes:
            if node not in behind and all(parent in behind for parent in parents[node]):
                behind[node] = max((behind[parent] + 1 for parent in parents[node]), default=0)
    near = {node: min(behind[child] for child in children[node]) - 1 for node in nodes if children[node]}
    return {node: column if parents[node] else near.get(node, 0) for node, column in behind.items()}


def _rows(nodes: Sequence[str], columns: Mapping[str, int], chains: Mapping[Edge, Sequence[Item]]) -> RowOfItem:
    """The row of each node and bend; nodes alone come last."""
    tied = {node for edge in chains for node in edge}
    is_forest = len({child for _, child in chains}) == len(chains)
    rows = _in_forest(nodes, tied, chains) if is_forest else _in_layers(columns, chains)
    highest = min(rows.values(), default=0.0)
    lowest = max(rows.values(), default=-1.0)
    alone: RowOfItem = {node: lowest + k for k, node in enumerate((n for n in nodes if n not in tied), 1)}
    return {node: row - highest for node, row in (rows | alone).items()}


def _in_forest(nodes: Sequence[str], tied: set[str], edges: Mapping[Edge, Sequence[Item]]) -> RowOfItem:
    """Leaves one below the other, each other node in the middle of its children."""
    children = {node: [b for a, b in edges if a == node] for node in nodes}
    below = {b for _, b in edges}
    n_leaves = 0
    rows: RowOfItem = {}
    waiting = [(node, False) for node in reversed(nodes) if node in tied and node not in below]
    while waiting:
        node, done = waiting.pop()
        if done:
            lines = [rows[child] for child in children[node]]
            rows[node] = (min(lines) + max(lines)) / 2
        elif children[node]:
            waiting += [(node, True), *((child, False) for child in reversed(children[node]))]
        else:
            rows[node], n_leaves = float(n_leaves), n_leaves + 1
    return rows


def _in_layers(columns: Mapping[str, int], chains: Mapping[Edge, Sequence[Item]]) -> RowOfItem:
    """Rows of nodes and bends, ordered so that few edges cross, each near the middle of those it is tied to."""
    layers: list[list[Item]] = [[] for _ in range(1 + max(columns.values()))]
    before: dict[Item, list[Item]] = {}
    after: dict[Item, list[Item]] = {}
    for chain in chains.values():
        for node in chain:
            if node not in before:
                before[node], after[node] = [], []
                layers[columns[node] if isinstance(node, str) else node[1]].append(node)
        for a, b in pairwise(chain):
            after[a].append(b)
            before[b].append(a)
    layers = _order_layers(layers, before, after)
    rows: RowOfItem = {node: row for layer in layers for node, row in zip(layer, _steps(layer), strict=True)}
    for sweep in range(SWEEPS):
        for layer in layers[:: -1 if sweep % 2 else 1]:
            ties = [before[node] + after[node] for node in layer]
            mean_rows = [float(np.mean([rows[tie] for tie in neighbours])) for neighbours in ties]
            rows |= zip(layer, _apart(layer, mean_rows), strict=True)
    return rows


def _order_layers(
    layers: list[list[Item]], before: Mapping[Item, list[Item]], after: Mapping[Item, list[Item]]
) -> list[list[Item]]:
    """Each layer by the mean place of those it is tied to on one side, then on the other; the order with fewest crossings."""
    best = layers
    fewest = _crossings(layers, after)
    for sweep in range(SWEEPS):
        ties, backward = (after, True) if sweep % 2 else (before, False)
        layers = [list(layer) for layer in layers]
        for k in range(len(layers))[:: -1 if backward else 1]:
            beside = k + 1 if backward else k - 1
            if 0 <= beside < len(layers):
                place = {node: at for at, node in enumerate(layers[beside])}
                old_place = {node: at for at, node in enumerate(layers[k])}
                middle = {node: np.mean([place[t] for t in ties[node]] or [old_place[node]]) for node in layers[k]}
                layers[k].sort(key=middle.__getitem__)
        n = _crossings(layers, after)
        if n < fewest:
            best = layers
            fewest = n
    return best


def _crossings(layers: Sequence[Sequence[Item]], after: Mapping[Item, Sequence[Item]]) -> int:
    """How many pairs of edges cross."""
    n = 0
    for left, right in pairwise(layers):
        place = {node: at for at, node in enumerate(right)}
        ends = np.array([(at, place[tie]) for at, node in enumerate(left) for tie in after[node]]).reshape(-1, 2)
        signs = np.sign(ends[:, None] - ends[None])
        n += int(np.count_nonzero(signs[..., 0] * signs[..., 1] < 0)) // 2
    return n


def _steps(layer: Sequence[Item]) -> Real:
    """Rows as close together as they may be."""
    between = [1.0 if isinstance(a, str) and isinstance(b, str) else BEND for a, b in pairwise(layer)]
    return np.cumsum([0.0, *between])[: len(layer)]


def _apart(layer: Sequence[Item], targets: Sequence[float]) -> list[float]:
    """The rows nearest to those wanted, by least squares, that keep the order and the distances."""
    from sklearn.isotonic import isotonic_regression  # a second to import; few need it

    steps = _steps(layer)
    weights = np.array([1.0 if isinstance(node, str) else STRAIGHT for node in layer])
    return list((isotonic_regression(np.array(targets) - steps, sample_weight=weights) + steps).tolist())


def along(curve: Real, n: int = 24) -> Real:
    """Points of a curve, ``n`` of each of its Béziers."""
    t = np.linspace(0.0, 1.0, n)[:, None]
    pieces = [curve[k : k + 4] for k in range(0, len(curve) - 1, 3)]
    return np.concatenate(
        [(1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d for a, b, c, d in pieces]
    )
