"""NetworkDisplay: the nodes of a belief network and what depends on what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.errors import many
from banbury.model.networks import BeliefNetwork
from banbury.plots.display import COLOURS, FAINT, SUM, Display, check_type, library, name
from banbury.plots.layers import Edge, GraphLayout, Layers, along

MOST_NODES = 150
LINE = 0.36  # inches: from row to row, and from column to column
GAP = 0.85
WIDER = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0)  # times the gap, until all numbers at edges have a place
FONT = 9  # points: of nodes, and of the numbers at edges
SMALL = 7
PAD = 0.3 * FONT / 72  # inches: between a name and its box, and the box from top to bottom
HIGH = 1.8 * FONT / 72
CELL = np.array([0.12, 0.06])  # inches: half the size of a number at an edge
ROUNDED = 1.05  # a text is so much wider at most where its letters are fitted to pixels
NEAR = 0.62  # of the way: there edges of one parent are apart


class NetworkDisplay(Display):
    """The graph of a belief network, with parents to the left of their children. Edges are bent around nodes.

    ``positions`` has the left ends of the nodes' boxes, and ``curves`` the points of the cubic Béziers of each edge, in
    inches. The number and the width of an edge show I(parent; child | the child's other parents), in bits. If every
    other node depends on a target, the target is named and its edges are left out, which leaves the tree of TAN.

    >>> import banbury as bb
    >>> network = bb.BeliefNetwork.tan(bb.datasets.play_tennis(), target="play", level=None)
    >>> shown = bb.plots.NetworkDisplay.from_network(network)
    >>> shown.edges
    [('outlook', 'temperature'), ('temperature', 'humidity'), ('outlook', 'wind')]
    """

    def __init__(self, network: BeliefNetwork) -> None:
        check_type("the network", network, BeliefNetwork, "a BeliefNetwork")
        expected = f"a network with at most {MOST_NODES} nodes"
        errors.require(len(network.nodes) <= MOST_NODES, "the network", f"{len(network.nodes):,} nodes", expected)
        self.network = network
        children = [node for node in network.nodes if node != network.target]
        everywhere = network.target is not None and all(network.target in network.parents[node] for node in children)
        self.target = network.target if everywhere and children else None
        self.nodes = [node for node in network.nodes if node != self.target]
        self.edges = [edge for edge in network.edges if edge[0] != self.target]
        self.bits: Mapping[Edge, float] = {} if network.sums is None else network.information
        self._widths = {node: ROUNDED * _width(name(node), FONT) + 2 * PAD for node in self.nodes}
        layers = Layers.of(self.nodes, self.edges)
        texts = {edge: f"{self.bits[edge]:.2f}" for edge in self.edges if self.bits}
        for wider in WIDER:
            layout = layers.laid_out(self._widths, LINE, GAP * wider)
            self._numbers, apart = _numbers(layout, self._widths, texts)
            if apart:
                break
        self.positions, self.curves = layout.places, layout.curves

    @classmethod
    def from_network(cls, network: BeliefNetwork, *, ax: Any = None) -> Self:
        """Draws a network."""
        return cls(network).plot(ax)

    def _draw(self, ax: Any) -> None:
        ends = [(x + self._widths[node], y) for node, (x, y) in self.positions.items()]
        right, bottom = np.concatenate([ends, *self.curves.values()]).max(axis=0)
        width = max(right + 0.3, 5.0)
        height = max(bottom + 2 * LINE, 1.1)
        ax = self._begin(ax, width, height + 0.55)
        ax.set(xlim=(-0.1, width - 0.2), ylim=(height - LINE, -LINE), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": COLOURS[0], "linewidth": 1.0}
        for node, (x, y) in self.positions.items():
            ax.text(x + PAD, y, name(node), va="center", fontsize=FONT, bbox=box, zorder=3)
        most = max((self.bits.get(edge, 0.0) for edge in self.edges), default=0.0)
        for edge in self.edges:
            self._edge(ax, edge, most)
        unit = ": I(parent; child | the child's other parents) in bits" if self.bits and self.edges else ""
        ax.set_xlabel(f"from parent to child{unit}")
        note = f"; all others depend on {name(self.target)!r} too" if self.target is not None else ""
        ax.set_title(f"Belief network of {many(len(self.network.nodes), 'node')}{note}")

    def _edge(self, ax: Any, edge: Edge, most: float) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        bits = self.bits.get(edge)
        strength = 0.2 if bits is None or most == 0 else bits / most
        curve = self.curves[edge]
        path = Path(curve, [Path.MOVETO, *[Path.CURVE4] * (len(curve) - 1)])
        style: Any = {"color": FAINT if strength < 0.02 else COLOURS[7], "linewidth": 0.8 + 2.0 * strength, "zorder": 1}
        ax.add_patch(FancyArrowPatch(path=path, arrowstyle="-|>", mutation_scale=10, **style))
        if bits is not None:
            style = {"fontsize": SMALL, "ha": "center", "va": "center", "color": SUM, "zorder": 2}
            white = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            ax.text(*self._numbers[edge], f"{bits:.2f}", bbox=white, **style)


def _width(text: str, size: float) -> float:
    """How wide a text is, in inches."""
    library()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0] / 72)


def _numbers(
    layout: GraphLayout, widths: Mapping[str, float], texts: Mapping[Edge, str]
) -> tuple[dict[Edge, Real], bool]:
    """A place for the number of each edge, on its curve and off the others; and whether none lies on a box or another number."""
    points = {edge: along(layout.curves[edge]) for edge in texts}
    crossed = _find_crossings(points)
    taken = np.array([(x, x + widths[n], y - HIGH / 2, y + HIGH / 2) for n, (x, y) in layout.places.items()])
    places: dict[Edge, Real] = {}
    apart = True
    for edge in sorted(texts, key=lambda edge: np.ptp(points[edge][:, 0])):  # the short have least choice
        half = np.array([_width(texts[edge], SMALL) / 2 + 0.04, 0.6 * SMALL / 72 + 0.03])
        path = points[edge]
        (x, y), (left, right, top, bottom) = path.T[:, :, None], taken.T
        beside = (x + half[0] < left) | (x - half[0] > right)
        clash = (~beside & (y + half[1] > top) & (y - half[1] < bottom)).any(axis=1)
        done = np.cumsum([0.0, *np.hypot(*np.diff(path, axis=0).T)])
        best = int(np.argmin(10.0 * clash + crossed[edge] + np.abs(done / done[-1] - NEAR)))
        apart &= not clash[best]
        places[edge] = path[best]
        taken = np.vstack([taken, np.stack([path[best] - half, path[best] + half], axis=1).reshape(1, 4)])
    return places, apart


def _find_crossings(points: Mapping[Edge, Real]) -> dict[Edge, NDArray[np.bool_]]:
    """Whether another edge is near, of each point of each edge: in the same cell of a grid or one beside it."""
    cells = {edge: np.rint(points_of_edge / CELL).astype(np.int64) for edge, points_of_edge in points.items()}
    beside = np.array([(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)])
    n = Counter[tuple[int, int]]()
    for cells_of_edge in cells.values():
        n.update({(x, y) for x, y in (cells_of_edge[:, None] + beside).reshape(-1, 2).tolist()})
    return {edge: np.array([n[x, y] > 1 for x, y in cells_of_edge.tolist()]) for edge, cells_of_edge in cells.items()}
