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
from banbury.plots.display import COLOURS, FAINT, SUM, Display, check_type, import_matplotlib, short_name
from banbury.plots.layers import Edge, GraphLayout, Layers, along

MOST_NODES = 150
LINE_HEIGHT = 0.36  # inches: from one row of nodes to the next
COLUMN_GAP = 0.85  # inches: between two columns of nodes
GAP_FACTORS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0)  # factors of the gap, tried until all numbers at edges fit
NODE_FONT = 9  # points
NUMBER_FONT = 7  # points; of the numbers at edges
BOX_PADDING = 0.3 * NODE_FONT / 72  # inches: between a name and its box
BOX_HEIGHT = 1.8 * NODE_FONT / 72  # inches
HALF_NUMBER_SIZE = np.array([0.12, 0.06])  # inches: half the width and half the height of a number at an edge
WIDEST_BY_PIXELS = 1.05  # fitting letters to pixels widens a text at most by so much
SHARE_OF_EDGE = 0.62  # the number stands at this share of an edge's length, where edges of one parent have separated


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
        """Lays out the network. If its numbers overlap, columns are moved further apart."""
        check_type("the network", network, BeliefNetwork, "a BeliefNetwork")
        expected = f"a network with at most {MOST_NODES} nodes"
        errors.require(len(network.nodes) <= MOST_NODES, "the network", f"{len(network.nodes):,} nodes", expected)
        self.network = network
        # The nodes without the target, which is left out of the picture if all of them depend on it.
        children = [node for node in network.nodes if node != network.target]
        has_common_parent = bool(children) and all(network.target in network.parents[node] for node in children)
        self.target = network.target if has_common_parent else None
        self.nodes = [node for node in network.nodes if node != self.target]
        self.edges = [edge for edge in network.edges if edge[0] != self.target]
        # Of each edge; none if the network was not counted.
        self.bits: Mapping[Edge, float] = {} if network._counts is None else network.information
        self._widths = {
            node: WIDEST_BY_PIXELS * _width(short_name(node), NODE_FONT) + 2 * BOX_PADDING for node in self.nodes
        }
        layers = Layers.of(self.nodes, self.edges)  # the column and the row of each node
        texts = {edge: f"{self.bits[edge]:.2f}" for edge in self.edges if self.bits}  # the numbers at edges
        for factor in GAP_FACTORS:
            # The positions of nodes and the curves of edges.
            layout = layers.lay_out(self._widths, LINE_HEIGHT, COLUMN_GAP * factor)
            # Where the numbers of edges stand, and whether none overlaps anything.
            self._numbers, fits = _place_numbers(layout, self._widths, texts)
            if fits:
                break
        self.positions = layout.positions
        self.curves = layout.curves

    @classmethod
    def from_network(cls, network: BeliefNetwork, *, ax: Any = None) -> Self:
        """Draws a network."""
        return cls(network).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws the nodes, the edges and their numbers. ``self.positions`` has the left end (x, y) of each node's box,
        and ``self.curves`` the points of each edge (points × 2), in inches from the top left; ``self._widths`` are
        those of the boxes, and ``self.bits`` the numbers of the edges.
        """
        # The right end of each box.
        ends = [(x + self._widths[node], y) for node, (x, y) in self.positions.items()]
        # The ends of everything drawn, and the size of the picture, in inches.
        right, bottom = np.concatenate([ends, *self.curves.values()]).max(axis=0)
        width = max(right + 0.3, 5.0)
        height = max(bottom + 2 * LINE_HEIGHT, 1.1)
        ax = self._begin(ax, width=width, height=height + 0.55)  # with the title and the axis label
        ax.set(xlim=(-0.1, width - 0.2), ylim=(height - LINE_HEIGHT, -LINE_HEIGHT), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": COLOURS[0], "linewidth": 1.0}
        for node, (x, y) in self.positions.items():
            ax.text(x + BOX_PADDING, y, short_name(node), va="center", fontsize=NODE_FONT, bbox=box, zorder=3)
        largest = max((self.bits.get(edge, 0.0) for edge in self.edges), default=0.0)
        for edge in self.edges:
            self._draw_edge(ax, edge, largest)
        unit = ": I(parent; child | the child's other parents) in bits" if self.bits and self.edges else ""
        ax.set_xlabel(f"from parent to child{unit}")
        note = f"; all others depend on {short_name(self.target)!r} too" if self.target is not None else ""
        ax.set_title(f"Belief network of {many(len(self.network.nodes), 'node')}{note}")

    def _draw_edge(self, ax: Any, edge: Edge, largest: float) -> None:
        """Draws an edge (parent, child) as an arrow, wider for more information, with its number of bits if it is
        known. ``largest``: the largest number of all edges. ``self.curves`` has the points of its Béziers (points × 2),
        and ``self._numbers`` the position (x, y) of its number.
        """
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        bits = self.bits.get(edge)  # None if the network was not counted
        strength = 0.2 if bits is None or largest == 0 else bits / largest  # from 0 to 1
        curve = self.curves[edge]
        # The first point, then the points of cubic Béziers.
        path = Path(curve, [Path.MOVETO, *[Path.CURVE4] * (len(curve) - 1)])
        style: Any = {"color": FAINT if strength < 0.02 else COLOURS[7], "linewidth": 0.8 + 2.0 * strength, "zorder": 1}
        ax.add_patch(FancyArrowPatch(path=path, arrowstyle="-|>", mutation_scale=10, **style))
        if bits is not None:
            style = {"fontsize": NUMBER_FONT, "ha": "center", "va": "center", "color": SUM, "zorder": 2}
            white = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            ax.text(*self._numbers[edge], f"{bits:.2f}", bbox=white, **style)


def _width(text: str, size: float) -> float:
    """Returns the width of a text in inches, 72 points each. ``size``: the size of its letters in points."""
    import_matplotlib()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0] / 72)


def _place_numbers(
    layout: GraphLayout, widths: Mapping[str, float], texts: Mapping[Edge, str]
) -> tuple[dict[Edge, Real], bool]:
    """Returns a position (x, y) in inches for the number of each edge, on its curve and away from others; and whether
    none overlaps a box or another number.

    ``layout``: the left ends (x, y) of the nodes' boxes, and the curves of the edges; ``widths``: those of the nodes in
    inches; ``texts``: the numbers as texts. A number goes to the point of its curve with the lowest penalty.
    """
    points_by_edge = {edge: along(layout.curves[edge]) for edge in texts}  # points × 2
    crossings_by_edge = _find_crossings(points_by_edge)  # of each point, whether another edge is near
    # What a number must not cover, nodes and then placed numbers: left, right, top, bottom of each.
    boxes = np.array(
        [(x, x + widths[node], y - BOX_HEIGHT / 2, y + BOX_HEIGHT / 2) for node, (x, y) in layout.positions.items()]
    )
    positions: dict[Edge, Real] = {}
    all_fit = True
    for edge in sorted(
        texts, key=lambda edge: np.ptp(points_by_edge[edge][:, 0])
    ):  # shortest first, since they have the least choice
        # Half the width and half the height of the number, in inches, with a small margin (2 entries).
        half_size = np.array([_width(texts[edge], NUMBER_FONT) / 2 + 0.04, 0.6 * NUMBER_FONT / 72 + 0.03])
        path = points_by_edge[edge]  # where the number may be
        x, y = path.T[:, :, None]  # points × 1, so that what follows is points × boxes
        left, right, top, bottom = boxes.T
        # Whether a number at each point is beside each box (points × boxes), and whether it overlaps any (points).
        is_beside = (x + half_size[0] < left) | (x - half_size[0] > right)
        overlaps = (~is_beside & (y + half_size[1] > top) & (y - half_size[1] < bottom)).any(axis=1)
        distance = np.cumsum([0.0, *np.hypot(*np.diff(path, axis=0).T)])  # along the curve, from its start
        # An overlap costs most, then a crossing (1), then the distance from the best place (below 1).
        penalties = 10.0 * overlaps + crossings_by_edge[edge] + np.abs(distance / distance[-1] - SHARE_OF_EDGE)
        best = int(np.argmin(penalties))
        all_fit &= not overlaps[best]
        positions[edge] = path[best]
        boxes = np.vstack([boxes, np.stack([path[best] - half_size, path[best] + half_size], axis=1).ravel()])
    return positions, all_fit


def _find_crossings(points: Mapping[Edge, Real]) -> dict[Edge, NDArray[np.bool_]]:
    """Returns for each point of each edge whether another edge is near: in the same cell of a grid or a neighbouring
    one. ``points``: those of each edge (points × 2), in inches.
    """
    # The cell (column, row) of each point; cells have half the size of a number.
    cells = {
        edge: np.rint(points_of_edge / HALF_NUMBER_SIZE).astype(np.int64) for edge, points_of_edge in points.items()
    }
    neighbours = np.array([(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)])
    n_edges = Counter[tuple[int, int]]()  # by cell: how many edges are in it or in a neighbouring one
    for cells_of_edge in cells.values():
        n_edges.update({(x, y) for x, y in (cells_of_edge[:, None] + neighbours).reshape(-1, 2).tolist()})
    return {
        edge: np.array([n_edges[x, y] > 1 for x, y in cells_of_edge.tolist()]) for edge, cells_of_edge in cells.items()
    }
