"""NetworkDisplay: the nodes of a belief network and what depends on what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.networks import BeliefNetwork
from banbury.plots.display import COLOURS, FAINT, Display, name

MOST_NODES = 150
LETTER, LINE, GAP = 0.085, 0.36, 0.85  # inches: of a letter, from node to node, from the end of a name to the next
SWEEPS = 8  # in which nodes come nearer to their parents and children
Edge = tuple[str, str]


class NetworkDisplay(Display):
    """The graph of a network, parents to the left of their children; ``positions`` has the places, in inches.

    The number at an edge, and its width, is I(parent; child | the child's other parents), in bits. Of a network with a target, on
    which every other node depends, the target is named and those edges are left out: what remains is the tree of TAN.

    >>> import banbury as bb
    >>> network = bb.BeliefNetwork.tan(bb.datasets.play_tennis(), target="play", level=None)
    >>> shown = bb.plots.NetworkDisplay.from_network(network)
    >>> shown.edges
    [('outlook', 'temperature'), ('temperature', 'humidity'), ('outlook', 'wind')]
    """

    def __init__(self, network: BeliefNetwork) -> None:
        if not isinstance(network, BeliefNetwork):
            raise errors.bad_setting("the network", type(network).__name__, "a BeliefNetwork")
        if len(network.nodes) > MOST_NODES:
            raise errors.bad_setting(
                "the network", f"{len(network.nodes):,} nodes", f"one of {MOST_NODES} nodes at most"
            )
        self.network = network
        others = [node for node in network.nodes if node != network.target]
        everywhere = network.target is not None and all(network.target in network.parents[node] for node in others)
        self.target = network.target if everywhere and others else None
        self.nodes = [node for node in network.nodes if node != self.target]
        self.edges = [edge for edge in network.edges if edge[0] != self.target]
        self.bits: Mapping[Edge, float] = {} if network.sums is None else network.information
        self.positions = _laid_out(self.nodes, self.edges)

    @classmethod
    def from_network(cls, network: BeliefNetwork, *, ax: Any = None) -> Self:
        """Draws a network that was counted, learned or given."""
        return cls(network).plot(ax)

    def _draw(self, ax: Any) -> None:
        xs, ys = (np.array(each) for each in zip(*self.positions.values(), strict=True))
        ends = [x + LETTER * len(name(node)) for node, (x, _) in self.positions.items()]
        width, height = max(ends) + 0.3, ys.max() + LINE
        ax = self._begin(ax, max(width, 5.0), max(height + 0.9, 2.0))
        ax.set_xlim(xs.min() - 0.2, max(width, 5.0))
        ax.set_ylim(max(height, 1.1), -LINE)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_visible(False)
        boxes = {
            node: ax.text(
                x,
                y,
                name(node),
                va="center",
                fontsize=9,
                bbox={"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": COLOURS[0], "linewidth": 1.0},
                zorder=3,
            )
            for node, (x, y) in self.positions.items()
        }
        most = max((self.bits.get(edge, 0.0) for edge in self.edges), default=0.0)
        for edge in self.edges:
            self._edge(ax, edge, boxes, most)
        unit = ": I(parent; child | the child's other parents) in bits" if self.bits and self.edges else ""
        ax.set_xlabel(f"from parent to child{unit}")
        told = f"; all others depend on {name(self.target)!r} too" if self.target is not None else ""
        self._title(f"Belief network of {len(self.network.nodes)} nodes{told}")

    def _edge(self, ax: Any, edge: Edge, boxes: Mapping[str, Any], most: float) -> None:
        parent, child = edge
        bits = self.bits.get(edge)
        (x, y), (right, lower) = self.positions[parent], self.positions[child]
        start = (x + LETTER * len(name(parent)), y)
        strength = 0.2 if bits is None or most == 0 else bits / most
        arrow = {
            "arrowstyle": "-|>",
            "color": FAINT if strength < 0.02 else COLOURS[7],
            "linewidth": 0.8 + 2.0 * strength,
            "patchA": boxes[parent].get_bbox_patch(),
            "shrinkA": 0,
            "patchB": boxes[child].get_bbox_patch(),
            "shrinkB": 1,
        }
        middle = x + LETTER * len(name(parent)) / 2
        ax.annotate("", xy=(right, lower), xytext=(middle, y), arrowprops=arrow, zorder=1)
        if bits is not None:
            near = 0.62  # of the way: there edges of one parent are apart
            place = start[0] + near * (right - start[0]), y + near * (lower - y)
            white = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            ax.text(*place, f"{bits:.2f}", fontsize=7, ha="center", va="center", color="#444444", bbox=white, zorder=2)


def _laid_out(nodes: Sequence[str], edges: Sequence[Edge]) -> dict[str, tuple[float, float]]:
    """A place for each node: columns by its depth, and in a column near its parents and children."""
    parents: dict[str, list[str]] = {node: [a for a, b in edges if b == node] for node in nodes}
    children: dict[str, list[str]] = {node: [b for a, b in edges if a == node] for node in nodes}
    depth: dict[str, int] = {}
    while len(depth) < len(nodes):
        for node in nodes:
            if node not in depth and all(parent in depth for parent in parents[node]):
                depth[node] = max((depth[parent] + 1 for parent in parents[node]), default=0)
    is_forest = all(len(above) <= 1 for above in parents.values())
    rows = _forest(nodes, children, depth) if is_forest else _layers(nodes, parents, children, depth)
    longest = [
        max((len(name(node)) for node in nodes if depth[node] == d), default=0) for d in range(1 + max(depth.values()))
    ]
    left = np.cumsum([0.0, *(LETTER * n + GAP for n in longest[:-1])])
    return {node: (float(left[depth[node]]), LINE * rows[node]) for node in nodes}


def _forest(nodes: Sequence[str], children: Mapping[str, Sequence[str]], depth: Mapping[str, int]) -> dict[str, float]:
    """Leaves one below the other, each other node in the middle of its children; nodes alone come last."""
    rows: dict[str, float] = {}
    roots = sorted((node for node in nodes if depth[node] == 0), key=lambda node: not children[node])
    lines = 0
    for root in roots:
        waiting = [(root, False)]
        while waiting:
            node, done = waiting.pop()
            if done:
                below = [rows[child] for child in children[node]]
                rows[node] = (min(below) + max(below)) / 2
            elif children[node]:
                waiting += [(node, True), *((child, False) for child in reversed(children[node]))]
            else:
                rows[node] = float(lines)
                lines += 1
    return rows


def _layers(
    nodes: Sequence[str],
    parents: Mapping[str, Sequence[str]],
    children: Mapping[str, Sequence[str]],
    depth: Mapping[str, int],
) -> dict[str, float]:
    """In each column the nodes in the order of the mean place of those they are tied to, spread over the height."""
    columns = [[node for node in nodes if depth[node] == d] for d in range(1 + max(depth.values()))]
    height = max(map(len, columns))
    rows: dict[str, float] = {}
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else columns[::-1]:
            tied = {node: [rows[n] for n in (*parents[node], *children[node]) if n in rows] for node in column}
            column.sort(key=lambda node: np.mean(tied[node]) if tied[node] else 0.0)
            for at, node in enumerate(column):
                rows[node] = (at + 0.5) * height / len(column) - 0.5
    return rows
