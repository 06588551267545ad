"""Variables: columns whose values are numbered, as trees and networks take them; numbers are cut into bins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.digits import told_apart
from banbury.families.categorical import Categorical
from banbury.families.dirichlet import log
from banbury.families.family import ColumnReader, Family, Feature, Kind, check_positive
from banbury.families.histogram import NODE_BINS, Histogram, cuts_after, cutting_histogram
from banbury.families.keys import finite_numbers
from banbury.reading import Batch, Codes, read
from banbury.reading.columns import kind_of
from banbury.sums import Key, Keys, in_order

Places = NDArray[np.int32]
Bins = int | Literal["mdl"]

MISSING = -1  # in place of a value's number
UNSEEN = -2
CATEGORICAL = Categorical()
MOST_FINE = 256  # bins of numbers that are cut by the classes, before they are joined ...
FEWEST_FINE = 16
FINE_IN_ALL = 1024  # ... and of all columns: of every two of these bins rows are counted
LARGEST_INTEGER = 2.0**63  # larger whole numbers are drawn as real ones


@dataclass(frozen=True)
class Variable:
    """A node: its column, and the values it can have, in order. Of numbers the values are intervals, between ``cuts``."""

    name: str
    values: Keys
    family: Family = CATEGORICAL
    kind: Kind = "string"
    cuts: tuple[float, ...] | None = None
    ends: tuple[float, float] = (0.0, 0.0)  # the lowest and highest of the numbers that were cut

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def index(self) -> dict[Key, int]:
        return {value: k for k, value in enumerate(self.values)}

    @cached_property
    def keys(self) -> Keys:
        """What its values are counted by: themselves, or the numbers of the bins."""
        return self.values if self.cuts is None else tuple(range(self.size))

    @cached_property
    def number(self) -> dict[Key, int]:
        return {key: k for k, key in enumerate(self.keys)}

    def name_of_key(self, key: Any) -> Key:
        return key if self.cuts is None else self.values[key]  # type: ignore[no-any-return]

    def of_keys(self, keys: Iterable[Key]) -> Variable:
        """The same with the values that have these keys, and those that are declared."""
        if self.cuts is not None:
            return self
        values = in_order({*keys, *(self.family.permanent_keys() or ())})
        return self if values == self.values else replace(self, values=values)

    def differs(self, other: Variable) -> str | None:
        """Why sums of the two cannot be added, or None."""
        if self.cuts != other.cuts:
            return f"the bins of {self.name!r} have different edges"
        if self.family.counting_key() == other.family.counting_key() and self.kind == other.kind:
            return None
        return f"{self.name!r} is {self.family} of {self.kind}s here, {other.family} of {other.kind}s there"

    @property
    def cut_by_class(self) -> bool:
        """Whether its bins are fine ones, to be joined where the classes do not change."""
        return isinstance(self.family, Histogram) and self.family.bins == "mdl" and self.family.width is None

    def join_bins(self, cells: Real) -> tuple[Variable, Int]:
        """The same with bins that end where the classes change, by the rows of each fine bin and class; and where each went."""
        if self.cuts is None or not (isinstance(self.family, Histogram) and self.cut_by_class):
            return self, np.arange(self.size)
        occupied = np.flatnonzero(cells.sum(axis=1) > 0)
        between = self.family.node_cuts(occupied.astype(np.float64), cells[occupied], "mdl", self.name)
        last = np.floor(between).astype(np.int64)  # of the fine bins of each bin, but for the last
        cuts = tuple(self.cuts[k] for k in last.tolist())
        return replace(self, values=intervals(cuts), cuts=cuts), np.searchsorted(last, np.arange(self.size))

    # Rows

    def codes(self, batch: ColumnReader, threads: int) -> Codes:
        """The number of each row's key among some, −1 where it has none."""
        if self.cuts is None:
            return self._keys(batch, threads)
        numbers = finite_numbers(batch, self.name)
        places = np.searchsorted(np.array(self.cuts), numbers, side="right").astype(np.int32)
        places[np.isnan(numbers)] = MISSING
        return Codes(places, 0, self.keys)  # type: ignore[arg-type]

    def _keys(self, batch: ColumnReader, threads: int) -> Codes:
        keys = self.family.keys_of(batch, Feature(self.name, self.family, kind=self.kind), threads)
        assert keys is not None
        return keys

    def codes_to_count(self, batch: ColumnReader, threads: int) -> Codes:
        """The same of rows to count; raises for a value that is not declared."""
        codes = self.codes(batch, threads)
        declared = self.family.permanent_keys() if self.cuts is None else None
        for key in codes.values if declared else ():
            if key is not None and key not in declared:  # type: ignore[operator]
                raise errors.unknown_value(key, self.name, in_order(declared))
        return codes

    def places(self, batch: ColumnReader, threads: int) -> Places:
        """The number of each row's value; MISSING where there is none, UNSEEN for a value that was never counted."""
        codes = self.codes(batch, threads)
        if codes.values is self.keys:
            return np.asarray(codes.codes)
        numbers = [*(self.number.get(key, UNSEEN) for key in codes.values), MISSING]
        return np.array(numbers, dtype=np.int32).take(codes.codes)

    def place(self, value: Any) -> int:
        """The number of one value; raises where it was never counted."""
        value = value.item() if isinstance(value, np.generic) else value
        if self.cuts is not None and not isinstance(value, str):
            if isinstance(value, (int, float)) and abs(value) < np.inf:
                return int(np.searchsorted(self.cuts, value, side="right"))
            raise errors.value_never_seen(value, self.name, self.values)
        if isinstance(value, (bool, int, float, str, type(None))) and value in self.index:
            return self.index[value]
        place = UNSEEN
        with suppress(errors.BanburyError, ValueError, TypeError):  # it may count as another: a date as its text
            [batch] = read({self.name: [value]}, kinds={self.name: "string"} if self.kind == "string" else None)
            place = int(self.places(batch, 1)[0])
        if place < 0:
            raise errors.value_never_seen(value, self.name, self.values)
        return place

    def likelihood(self, evidence: Any) -> Real:
        """How likely what was observed is under each value: 1 or 0 of a value or several; soft evidence names every value."""
        weights = np.zeros(self.size)
        if isinstance(evidence, np.ndarray) and evidence.ndim == 0:
            evidence = evidence.item()
        if not isinstance(evidence, Mapping):
            values = evidence if isinstance(evidence, (list, tuple, set, frozenset, np.ndarray)) else (evidence,)
            weights[[self.place(value) for value in values]] = 1.0
            return weights
        places = [self.place(value) for value in evidence]
        expected = "one number for each value, and each value once"
        errors.require(len(set(places)) == len(places), f"the evidence of {self.name!r}", evidence, expected)
        for place, (value, weight) in zip(places, evidence.items(), strict=True):
            check_positive(f"the evidence of {self.name} = {value!r}", weight, zero=True)
            weights[place] = weight
        if lacking := [value for place, value in enumerate(self.values) if place not in places]:
            text = f"the soft evidence of {self.name!r} has no likelihood for "
            text += (
                f"{errors.listed(map(repr, lacking))}. Give every value, with 0 for impossible ones: {lacking[0]!r}: 0"
            )
            raise errors.BadSetting(text, name="given", value=self.name)
        return weights

    def draw(self, places: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """Values with these numbers: of bins any number within, each as likely as another."""
        if self.cuts is None:
            same = len({type(value) for value in self.values}) == 1
            return np.array(self.values, dtype=None if same else object)[places]
        lowest = min([self.ends[0], *self.cuts[:1]])
        highest = max([self.ends[1], *self.cuts[-1:]])
        edges = np.array([lowest, *self.cuts, highest])
        low = edges[places]
        high = edges[places + 1]
        if self.kind != "integer" or np.abs(edges).max() >= LARGEST_INTEGER:
            half = (high / 2.0 - low / 2.0) * rng.random(len(places))  # the whole width may be beyond all numbers
            return np.asarray(low + half + half)
        first = np.ceil(low).astype(np.int64)
        last = np.ceil(high).astype(np.int64)
        last += (places == len(self.cuts)) & (high == last)  # the highest itself is in the last bin
        return np.asarray(rng.integers(first, np.maximum(last, first + 1)))


def kind_of_values(values: Sequence[Any]) -> Kind:
    kind = kind_of([value for value in values if value is not None])
    return kind if kind in ("boolean", "integer", "float", "string") else "string"


def encode_variables(batch: Batch, variables: Sequence[Variable], threads: int) -> Batch:
    """The rows with the columns of these variables as codes of their keys; raises for a value that is not declared."""
    return batch.with_columns({v.name: v.codes_to_count(batch, threads).as_categorical() for v in variables})


def count_numbers(batch: Batch, name: str, weights: Real | None = None) -> tuple[Real, Real]:
    """The numbers that occur in a column, in order, and the rows or the weight of each; rows of no weight do not count."""
    numbers = finite_numbers(batch, name)
    kept = ~np.isnan(numbers)
    if weights is not None:
        if len(weights) != batch.n_rows:
            raise errors.length_mismatch("weights", len(weights), batch.n_rows)
        kept &= weights > 0
    values, at = np.unique(numbers[kept], return_inverse=True)
    rows = np.bincount(at.reshape(-1), None if weights is None else weights[kept], len(values))
    return values, rows.astype(np.float64)


def fine_cuts(values: Real, rows: Real, n_bins: int) -> tuple[float, ...]:
    """Cuts into about so many bins of about equal shares, each cut in the widest gap that is near.

    So values that stand apart are not in one bin, and a number that alone is as frequent as a bin has its own.
    """
    last = np.arange(len(values) - 1)
    if len(values) > n_bins:
        n_rows = rows.sum()
        window = ((np.cumsum(rows) - rows / 2.0) / n_rows * n_bins).astype(np.int64)[:-1]
        with np.errstate(over="ignore"):
            widest_first = np.lexsort((-np.diff(values), window))
        last = widest_first[np.unique(window[widest_first], return_index=True)[1]]
        frequent = np.flatnonzero(rows * n_bins > n_rows)
        last = np.unique(np.concatenate([last, frequent, frequent - 1]))
        last = last[(last >= 0) & (last < len(values) - 1)]
    return cuts_after(values, last)


def can_be_node(feature: Feature) -> bool:
    """Whether a column has a table of its values, or of bins of its numbers."""
    family = feature.family
    if feature.columns or feature.reads_text:
        return False
    return not family.has_density() or cutting_histogram(feature) is not None


def as_node(
    batch: Batch, feature: Feature, bins: Bins, weights: Real | None = None, n_fine: int = MOST_FINE
) -> Variable:
    """The variable of a column; where numbers are cut is settled by the first rows, which these are.

    Where they are to be cut by the classes, which are not looked at here, they are cut finely first (``Variable.joined``).
    """
    cut = cutting_histogram(feature) if feature.family.has_density() else None
    if cut is None:
        return Variable(feature.name, in_order(feature.family.permanent_keys() or ()), feature.family, feature.kind)
    values, rows = count_numbers(batch, feature.name, weights)
    if cut.bins == "auto":
        cut = replace(cut, bins=bins)
    if cut.bins == "mdl" and cut.width is None:
        cuts = fine_cuts(values, rows, n_fine)
    else:
        cuts = cut.node_cuts(values, rows[:, None], NODE_BINS, feature.name)
    kind: Kind = "integer" if batch.kind(feature.name) == "integer" else "float"
    ends = (float(values[0]), float(values[-1])) if len(values) else (0.0, 0.0)
    return Variable(feature.name, intervals(cuts), cut, kind, cuts, ends)


def intervals(cuts: Sequence[float]) -> Keys:
    if not cuts:
        return ("any",)
    shown = told_apart(cuts)
    between = (f"{a} to {b}" for a, b in pairwise(shown))
    return (f"below {shown[0]}", *between, f"{shown[-1]} and above")


def no_block(block: str) -> errors.BadSetting:
    text = f"block {block!r} cannot be a node, because the nodes of a network are single columns. "
    text += "Name the columns one by one in features=, or leave the block out of it."
    return errors.BadSetting(text, name="features", value=block)


# Forests: where each variable has one parent at most beside the one that is asked for, one pass sums out all that is missing.
# Children come before their parents. Each says of its parent, for every row and every value of what is asked for, how likely it
# is that the row shows what it does at the child and below. Rows need not lack the same values.

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

    def log_shown(self, place: Places, above: Places | None) -> Real:
        """log P(value) where rows show it: (rows, asked), or (rows, asked, parent) where they do not show the parent's."""
        return self.logs.transpose(2, 0, 1)[place] if above is None else self.logs.transpose(2, 1, 0)[place, above]

    def sum_out(self, messages: Real, above: Places | None) -> Real:
        """The same where rows lack it, and its children have said something of each of its values: (rows, asked, values)."""
        highest = messages.max(axis=2, keepdims=True)
        highest = np.where(np.isfinite(highest), highest, 0.0)
        weights = np.exp(messages - highest)
        if above is None:
            return log((weights.transpose(1, 0, 2) @ self.table.transpose(0, 2, 1)).transpose(1, 0, 2)) + highest
        return log((weights * self.table.transpose(1, 0, 2)[above]).sum(axis=2)) + highest[:, :, 0]

    def log_unseen(self, unseen: Real, above: Places | None) -> Real:
        """The same where rows have a value that was never counted."""
        return unseen[None] if above is None else unseen.T[above]


@dataclass
class Messages:
    """What is known of each row, (rows, asked); and of rows that lack a variable, what its children say of its values."""

    log_joint: Real
    below: dict[int, Real] = field(default_factory=dict)  # (rows, asked, values)
    lacking: dict[int, NDArray[np.bool_]] = field(default_factory=dict)  # which of the rows that is said of

    def tell(self, node: Node, rows: Int, above: Places, says: Says) -> None:
        """What a node says of its parent is known where the parent is; elsewhere it is kept for the parent's turn."""
        there = above[rows] >= 0
        shown = rows[there]
        lacking = rows[~there]
        self.log_joint[shown] += says(shown, above[shown])
        if node.parent is not None and len(lacking):
            if node.parent not in self.below:
                self.below[node.parent] = np.zeros((*self.log_joint.shape, node.table.shape[1]))
                self.lacking[node.parent] = np.zeros(len(self.log_joint), dtype=np.bool_)
            self.below[node.parent][lacking] += says(lacking, None)
            self.lacking[node.parent][lacking] = True

    def speak(self, node: Node, place: Places, above: Places) -> None:
        """A node's turn, after all of its children's."""
        self.tell(node, np.flatnonzero(place >= 0), above, lambda rows, at: node.log_shown(place[rows], at))
        if node.variable in self.below:
            message = self.below.pop(node.variable)
            lacking = self.lacking.pop(node.variable)
            self.tell(node, np.flatnonzero(lacking), above, lambda rows, at: node.sum_out(message[rows], at))
        if (unseen := node.unseen) is not None:
            self.tell(node, np.flatnonzero(place == UNSEEN), above, lambda rows, at: node.log_unseen(unseen, at))


@dataclass(frozen=True)
class NodeForest:
    """The nodes, children before their parents; what is asked for, if anything, and how many values it has."""

    nodes: tuple[Node, ...]
    query: int | None
    size: int

    @classmethod
    def of(
        cls,
        tables: Sequence[Real],
        unseen: Sequence[Real | None],
        parents: Sequence[tuple[int, ...]],
        query: int | None,
    ) -> NodeForest | None:
        """None where a variable has two parents beside what is asked for."""
        above = [[p for p in node_parents if p != query] for node_parents in parents]
        if any(len(node_parents) > 1 for node_parents in above):
            return None
        parent = [node_parents[0] if node_parents else None for node_parents in above]
        size = 1 if query is None else len(tables[query])
        nodes = []
        for v in children_first(parent):
            table = tables[v]
            new = unseen[v]
            if v == query:  # it has one value, whichever is asked for
                expanded = _laid_out(table, (v, *parents[v]), (query, parent[v]), size)[:, :, None]
                nodes.append(Node(v, parent[v], expanded, None))
                continue
            expanded = _laid_out(table, (v, *parents[v]), (query, parent[v], v), size)
            new = None if new is None else _laid_out(new, parents[v], (query, parent[v]), size)
            nodes.append(Node(v, parent[v], expanded, new))
        return cls(tuple(nodes), query, size)

    def at(self, k: int) -> NodeForest:
        """The same for the one value of what is asked for that has this number."""
        one = slice(k, k + 1)
        tables_at = ((node, None if node.unseen is None else node.unseen[one]) for node in self.nodes)
        nodes = (replace(node, table=node.table[one], unseen=unseen) for node, unseen in tables_at)
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
            place = first if node.variable == self.query else places[node.variable]
            messages.speak(node, place, first if node.parent is None else places[node.parent])
        return messages.log_joint


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
