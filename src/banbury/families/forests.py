"""Forests: where each variable has one parent at most beside the one that is asked for, one pass sums out all that is missing.

Children come before their parents. Each says of its parent, for every row and every value of what is asked for, how likely it
is that the row shows what it does at the child and below. Rows need not lack the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Int, Real
from banbury.families.dirichlet import log
from banbury.families.nodes import UNSEEN, Places

Says = Callable[[Int, Places | None], Real]  # of some rows, given their parents' values or else for each value


@dataclass(frozen=True)
class Node:
    """A variable and its table, P(value | asked, parent): (values of what is asked for, of the parent, of the variable)."""

    variable: int
    parent: int | None
    table: Real
    unseen: Real | None  # log-probability of a value that was never counted, without the axis of values

    @cached_property
    def logs(self) -> Real:
        return log(self.table)

    def shown(self, place: Places, above: Places | None) -> Real:
        """log P(value) where rows show it: (rows, asked), or (rows, asked, parent) where they do not show the parent's."""
        return self.logs.transpose(2, 0, 1)[place] if above is None else self.logs.transpose(2, 1, 0)[place, above]

    def summed(self, said: Real, above: Places | None) -> Real:
        """The same where rows lack it, and its children have said something of each of its values: (rows, asked, values)."""
        highest = said.max(axis=2, keepdims=True)
        highest = np.where(np.isfinite(highest), highest, 0.0)
        weights = np.exp(said - highest)
        if above is None:
            return log((weights.transpose(1, 0, 2) @ self.table.transpose(0, 2, 1)).transpose(1, 0, 2)) + highest
        return log((weights * self.table.transpose(1, 0, 2)[above]).sum(axis=2)) + highest[:, :, 0]

    def new(self, unseen: Real, above: Places | None) -> Real:
        """The same where rows have a value that was never counted."""
        return unseen[None] if above is None else unseen.T[above]


@dataclass
class Messages:
    """What is known of each row, (rows, asked); and of rows that lack a variable, what its children say of its values."""

    known: Real
    below: dict[int, Real] = field(default_factory=dict)  # (rows, asked, values)
    told: dict[int, NDArray[np.bool_]] = field(default_factory=dict)  # which of the rows that is said of

    def tell(self, node: Node, rows: Int, above: Places, says: Says) -> None:
        """What a node says of its parent is known where the parent is; elsewhere it is kept for the parent's turn."""
        there = above[rows] >= 0
        shown, lacking = rows[there], rows[~there]
        self.known[shown] += says(shown, above[shown])
        if node.parent is not None and len(lacking):
            if node.parent not in self.below:
                self.below[node.parent] = np.zeros((*self.known.shape, node.table.shape[1]))
                self.told[node.parent] = np.zeros(len(self.known), dtype=np.bool_)
            self.below[node.parent][lacking] += says(lacking, None)
            self.told[node.parent][lacking] = True

    def speak(self, node: Node, place: Places, above: Places) -> None:
        """A node's turn, after all of its children's."""
        self.tell(node, np.flatnonzero(place >= 0), above, lambda rows, at: node.shown(place[rows], at))
        if node.variable in self.below:
            said, told = self.below.pop(node.variable), self.told.pop(node.variable)
            self.tell(node, np.flatnonzero(told), above, lambda rows, at: node.summed(said[rows], at))
        if (unseen := node.unseen) is not None:
            self.tell(node, np.flatnonzero(place == UNSEEN), above, lambda rows, at: node.new(unseen, at))


@dataclass(frozen=True)
class NodeForest:
    """The nodes, children before their parents; what is asked for, if anything, and how many values it has."""

    nodes: tuple[Node, ...]
    asked: int | None
    size: int

    @classmethod
    def of(
        cls,
        tables: Sequence[Real],
        unseen: Sequence[Real | None],
        parents: Sequence[tuple[int, ...]],
        asked: int | None,
    ) -> NodeForest | None:
        """None where a variable has two parents beside what is asked for."""
        above = [[p for p in each if p != asked] for each in parents]
        if any(len(each) > 1 for each in above):
            return None
        parent = [each[0] if each else None for each in above]
        size = 1 if asked is None else len(tables[asked])
        nodes = []
        for v in children_first(parent):
            table, new = tables[v], unseen[v]
            if v == asked:  # it has one value, whichever is asked for
                whole = _laid_out(table, (v, *parents[v]), (asked, parent[v]), size)[:, :, None]
                nodes.append(Node(v, parent[v], whole, None))
                continue
            whole = _laid_out(table, (v, *parents[v]), (asked, parent[v], v), size)
            new = None if new is None else _laid_out(new, parents[v], (asked, parent[v]), size)
            nodes.append(Node(v, parent[v], whole, new))
        return cls(tuple(nodes), asked, size)

    def at(self, k: int) -> NodeForest:
        """The same for the one value of what is asked for that has this number."""
        one = slice(k, k + 1)
        each = ((node, None if node.unseen is None else node.unseen[one]) for node in self.nodes)
        nodes = (replace(node, table=node.table[one], unseen=unseen) for node, unseen in each)
        return replace(self, nodes=tuple(nodes), size=1)

    @property
    def width(self) -> int:
        """How many numbers a row needs at most."""
        return self.size * sum(int(node.table.shape[2]) for node in self.nodes)

    def log_joint(self, places: Sequence[Places]) -> Real:
        """log P(asked, what the rows show), (rows, values of what is asked for)."""
        n_rows = len(places[0])
        messages = Messages(np.zeros((n_rows, self.size)))
        first = np.zeros(n_rows, dtype=np.int32)
        for node in self.nodes:
            place = first if node.variable == self.asked else places[node.variable]
            messages.speak(node, place, first if node.parent is None else places[node.parent])
        return messages.known


def children_first(parent: Sequence[int | None]) -> list[int]:
    children: list[list[int]] = [[] for _ in parent]
    for v, above in enumerate(parent):
        if above is not None:
            children[above].append(v)
    order = [v for v, above in enumerate(parent) if above is None]
    for v in order:
        order += children[v]
    return order[::-1]


def _laid_out(table: Real, scope: tuple[int, ...], axes: tuple[int | None, ...], size: int) -> Real:
    """The table with these axes, the first of which has this size; of length 1 where the table has none."""
    turned = table.transpose([scope.index(axis) for axis in axes if axis in scope])
    spread = np.expand_dims(turned, [at for at, axis in enumerate(axes) if axis not in scope])
    return np.broadcast_to(spread, (size, *spread.shape[1:]))
