"""Positions for the nodes of a graph and curves for its edges, by Sugiyama's method.

Nodes stand in columns, parents to the left of their children. An edge that skips a column has a bend there, which takes
a row of its own. Edges rise and fall only between columns, so that none crosses a box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from banbury.arrays import Real

Edge = tuple[str, str]
Bend = tuple[Edge, int]  # an edge, and the column in which it bends
Item = str | Bend  # a node or a bend
RowOfItem = dict[Item, float]

SWEEPS = 24  # in each, nodes and bends move towards their neighbours
BEND_DISTANCE = 0.7  # rows between a bend and the item above it
BEND_WEIGHT = 4.0  # weight of a bend relative to that of a node when items move towards their neighbours


@dataclass(frozen=True)
class Layers:
    """The column of each node, the row of each node and bend, and the ``chains`` of items (nodes and bends) that each
    edge passes from parent to child.
    """

    columns: dict[str, int]  # from 0
    rows: RowOfItem  # from 0; fractions lie between rows
    chains: dict[Edge, list[Item]]

    @classmethod
    def of(cls, nodes: Sequence[str], edges: Sequence[Edge]) -> Layers:
        """Assigns columns and rows to the nodes of a graph, and bends to the edges. ``edges``: pairs of parent and
        child.
        """
        columns = _columns(nodes, edges)
        # An edge passes the parent, a bend in each column that it skips, and the child.
        # Columns by edge.
        skipped = {edge: range(columns[edge[0]] + 1, columns[edge[1]]) for edge in edges}
        chains: Any = {edge: [edge[0], *((edge, column) for column in skipped[edge]), edge[1]] for edge in edges}
        return cls(columns, _rows(nodes, columns, chains), chains)

    def lay_out(self, widths: Mapping[str, float], line: float, gap: float) -> GraphLayout:
        """Returns positions and curves for nodes of these widths, with ``line`` between rows and ``gap`` between
        columns, all in one unit. ``self.columns`` has the column of each node, ``self.rows`` the row of each node and
        bend, and ``self.chains`` the nodes and bends (edge, column) that each edge passes.
        """
        column_widths = [0.0] * (1 + max(self.columns.values()))
        for node, column in self.columns.items():
            column_widths[column] = max(column_widths[column], widths[node])
        # Of each column.
        left_edges = np.cumsum([0.0, *(width + gap for width in column_widths[:-1])])
        right_edges = left_edges + column_widths
        positions = {node: (float(left_edges[self.columns[node]]), line * self.rows[node]) for node in widths}
        curves = {}
        for (parent, child), chain in self.chains.items():
            x, y = positions[parent]
            # The points that the edge passes before the child: from the middle of the parent to the end of its column.
            corners = [(x + widths[parent] / 2, y), (float(right_edges[self.columns[parent]]), y)]
            for bend in chain[1:-1]:
                corners += [(float(side[bend[1]]), line * self.rows[bend]) for side in (left_edges, right_edges)]  # type: ignore[index]
            # Béziers that leave and arrive level: straight where two points have the same height.
            bezier = corners[:1]
            for (x, y), (right_x, lower) in pairwise([*corners, positions[child]]):
                # Half the horizontal distance.
                half_width = 0.5 * (right_x - x)
                bezier += [(x + half_width, y), (right_x - half_width, lower), (right_x, lower)]
            curves[parent, child] = np.array(bezier)
        return GraphLayout(positions, curves)


@dataclass(frozen=True)
class GraphLayout:
    """``positions``: the position (x, y) of the middle of each node's left side; ``curves``: each edge as the points of
    consecutive cubic Béziers.
    """

    positions: dict[str, tuple[float, float]]
    curves: dict[Edge, Real]


def _columns(nodes: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Returns the column of each node: right of all its parents; a node without parents stands just left of its first
    child.
    """
    parents: dict[str, list[str]] = {node: [] for node in nodes}
    children: dict[str, list[str]] = {node: [] for node in nodes}
    for parent, child in edges:
        parents[child].append(parent)
        children[parent].append(child)
    column_of: dict[str, int] = {}  # of the nodes placed so far
    while len(column_of) < len(nodes):
        for node in nodes:
            if node not in column_of and all(parent in column_of for parent in parents[node]):
                column_of[node] = max((column_of[parent] + 1 for parent in parents[node]), default=0)
    left_of_children = {node: min(column_of[child] for child in children[node]) - 1 for node in nodes if children[node]}
    return {node: column if parents[node] else left_of_children.get(node, 0) for node, column in column_of.items()}


def _rows(nodes: Sequence[str], columns: Mapping[str, int], chains: Mapping[Edge, Sequence[Item]]) -> RowOfItem:
    """Returns the row of each node and bend, from 0; nodes without edges come last. ``columns``: the column of each
    node; ``chains``: the items that each edge passes.
    """
    # Nodes that have edges.
    connected = {node for edge in chains for node in edge}
    is_forest = len({child for _, child in chains}) == len(chains)
    rows = _in_forest(nodes, connected, chains) if is_forest else _in_layers(columns, chains)
    highest = min(rows.values(), default=0.0)  # the first and the last row
    lowest = max(rows.values(), default=-1.0)
    unconnected: RowOfItem = {
        node: lowest + number for number, node in enumerate((name for name in nodes if name not in connected), 1)
    }
    return {node: row - highest for node, row in (rows | unconnected).items()}


def _in_forest(nodes: Sequence[str], connected: set[str], edges: Mapping[Edge, Sequence[Item]]) -> RowOfItem:
    """Returns the row of each node of a forest: leaves one below the other, each other node in the middle of its
    children. ``connected``: the nodes that have edges; ``edges``: pairs of parent and child, whose chains are not
    needed.
    """
    children = {node: [child for parent, child in edges if parent == node] for node in nodes}
    nodes_with_parents = {child for _, child in edges}
    n_leaves = 0  # so far
    rows: RowOfItem = {}
    # Nodes to place, the next one last, and whether their children have been placed.
    stack = [(node, False) for node in reversed(nodes) if node in connected and node not in nodes_with_parents]
    while stack:
        node, children_done = stack.pop()
        if children_done:
            child_rows = [rows[child] for child in children[node]]
            rows[node] = (min(child_rows) + max(child_rows)) / 2
        elif children[node]:
            stack += [(node, True), *((child, False) for child in reversed(children[node]))]
        else:
            rows[node] = float(n_leaves)
            n_leaves += 1
    return rows


def _in_layers(columns: Mapping[str, int], chains: Mapping[Edge, Sequence[Item]]) -> RowOfItem:
    """Returns the row of each node and bend, ordered so that few edges cross, each near the mean of its neighbours.
    ``columns``: the column of each node; ``chains``: the items that each edge passes.
    """
    layers: list[list[Item]] = [[] for _ in range(1 + max(columns.values()))]  # the items of each column, from the top
    # The neighbours of each item in the column to the left, and in the one to the right.
    before: dict[Item, list[Item]] = {}
    after: dict[Item, list[Item]] = {}
    for chain in chains.values():
        for node_or_bend in chain:
            if node_or_bend not in before:
                before[node_or_bend] = []
                after[node_or_bend] = []
                layers[columns[node_or_bend] if isinstance(node_or_bend, str) else node_or_bend[1]].append(node_or_bend)
        for left_item, right_item in pairwise(chain):
            after[left_item].append(right_item)
            before[right_item].append(left_item)
    layers = _order_layers(layers, before, after)
    rows: RowOfItem = {
        node_or_bend: row for layer in layers for node_or_bend, row in zip(layer, _closest_rows(layer), strict=True)
    }
    for sweep in range(SWEEPS):
        for layer in layers[:: -1 if sweep % 2 else 1]:
            neighbours_of_layer = [before[node_or_bend] + after[node_or_bend] for node_or_bend in layer]
            # Of the neighbours of each item.
            mean_rows = [
                float(np.mean([rows[neighbour] for neighbour in neighbours])) for neighbours in neighbours_of_layer
            ]
            rows |= zip(layer, _rows_near(layer, mean_rows), strict=True)
    return rows


def _order_layers(
    layers: list[list[Item]], before: Mapping[Item, list[Item]], after: Mapping[Item, list[Item]]
) -> list[list[Item]]:
    """Returns the layers (the items of each column, from the top), each sorted by the mean position of its neighbours
    on one side, in the order with the fewest crossings. ``before``, ``after``: the neighbours of each item in the
    previous and the next layer.
    """
    best = layers  # so far
    fewest = _crossings(layers, after)  # the crossings of the best layers
    for sweep in range(SWEEPS):
        # Sweeps alternate between left to right and back; ``neighbours_of`` has those that a sweep looks at.
        neighbours_of, backward = (after, True) if sweep % 2 else (before, False)
        layers = [list(layer) for layer in layers]
        for layer_number in range(len(layers))[:: -1 if backward else 1]:
            neighbour_layer = layer_number + 1 if backward else layer_number - 1
            if 0 <= neighbour_layer < len(layers):
                # By item, from the top: in the neighbouring layer, and in this one.
                position = {node: i for i, node in enumerate(layers[neighbour_layer])}
                old_position = {node: i for i, node in enumerate(layers[layer_number])}
                mean_position = {
                    node: np.mean([position[neighbour] for neighbour in neighbours_of[node]] or [old_position[node]])
                    for node in layers[layer_number]
                }
                layers[layer_number].sort(key=mean_position.__getitem__)
        n_crossings = _crossings(layers, after)
        if n_crossings < fewest:
            best = layers
            fewest = n_crossings
    return best


def _crossings(layers: Sequence[Sequence[Item]], after: Mapping[Item, Sequence[Item]]) -> int:
    """Returns the number of pairs of edges that cross. ``layers``: the items of each column, from the top; ``after``:
    the neighbours of each item in the next layer.
    """
    n_crossings = 0
    for left_layer, right_layer in pairwise(layers):
        position = {node: i for i, node in enumerate(right_layer)}  # from the top, by item
        # The positions of both ends of each edge (edges × 2).
        ends = np.array(
            [(i, position[neighbour]) for i, node in enumerate(left_layer) for neighbour in after[node]]
        ).reshape(-1, 2)
        # Which end of two edges is higher (edges × edges × left or right end); each pair is there twice.
        signs = np.sign(ends[:, None] - ends[None])
        n_crossings += int(np.count_nonzero(signs[..., 0] * signs[..., 1] < 0)) // 2
    return n_crossings


def _closest_rows(layer: Sequence[Item]) -> Real:
    """Returns the row of each item of a layer, from 0, as close together as allowed: a whole row between two nodes,
    less beside a bend.
    """
    distances = [  # between neighbouring items, in rows
        1.0 if isinstance(upper, str) and isinstance(lower, str) else BEND_DISTANCE for upper, lower in pairwise(layer)
    ]
    return np.cumsum([0.0, *distances])[: len(layer)]


def _rows_near(layer: Sequence[Item], targets: Sequence[float]) -> list[float]:
    """Returns the rows nearest to the targets (one per item) by least squares that keep the order and the smallest
    distances.
    """
    from sklearn.isotonic import isotonic_regression  # a second to import; few need it

    closest_rows = _closest_rows(layer)  # one per item, like the weights
    weights = np.array([1.0 if isinstance(node, str) else BEND_WEIGHT for node in layer])
    return list((isotonic_regression(np.array(targets) - closest_rows, sample_weight=weights) + closest_rows).tolist())


def along(curve: Real, n: int = 24) -> Real:
    """Returns points of a curve (points × 2), ``n`` for each of its cubic Béziers. ``curve``: their ends and control
    points (× 2), where neighbours share an end.
    """
    t = np.linspace(0.0, 1.0, n)[:, None]  # the share of the way along a Bézier, ends a and d, control points b and c
    # Four points each.
    beziers = [curve[start : start + 4] for start in range(0, len(curve) - 1, 3)]
    return np.concatenate(
        [(1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d for a, b, c, d in beziers]
    )
