"""ColumnTree: columns of values that each depend on one other column beside the class, at most; with it naive Bayes is TAN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families.bernoulli import Bernoulli
from banbury.families.categorical import Categorical, counts_missing
from banbury.families.dirichlet import conditional
from banbury.families.evidence import Term
from banbury.families.family import (
    Choice,
    ColumnReader,
    Family,
    Feature,
    Kind,
    Parameters,
    RowsToCount,
    line_by_line,
)
from banbury.families.histogram import Histogram
from banbury.families.information import FEWEST_ROWS, LEVEL, PairInformation, pair_information
from banbury.families.joint import TOGETHER, CombinationCounter, OrderedColumn, fill_tables, stack_columns
from banbury.families.keys import KEY_TYPES, kind_of
from banbury.families.nodes import (
    FEWEST_FINE,
    FINE_IN_ALL,
    MISSING,
    MOST_FINE,
    UNSEEN,
    Bins,
    Node,
    NodeForest,
    Places,
    Variable,
    as_node,
    can_be_node,
    children_first,
    intervals,
)
from banbury.reading import Batch
from banbury.sums import Combinations, Counts, Keys, as_index, cells_of, in_order, lines_with_some
from banbury.threads import n_threads

MOST_CELLS = 1 << 26  # of the tables of all pairs: half a gigabyte
TIED = 9  # decimals of bits: where pairs differ by less, the first columns come first, whichever way sums are rounded
MOST_AT_ONCE = 1 << 22  # numbers in the tables of the rows that are scored together
NODES: dict[str, Any] = {family.name: family for family in (Bernoulli, Categorical, Histogram)}  # that have tables


@dataclass(frozen=True, repr=False)
class ColumnTree(Family):
    """Columns that each depend on the class and on at most one other column: tree-augmented naive Bayes.

    The tree is the Chow–Liu tree, which maximises the sum of I(A; B | class) over its edges. Only edges that are
    significant at the ``level`` are kept, as in ``bb.diagnose``, so that columns that are independent given the class
    stay as in naive Bayes; ``level=None`` keeps all edges. Edges lead away from ``root``, or from the first column.
    Every pair of columns is counted, so the tree can be computed again for any rows.

    Numbers are counted in up to 256 fine bins, settled by the first rows, and then cut into fewer: ``bins="mdl"`` cuts
    where the class frequencies change, by the minimum description length principle (Fayyad and Irani, 1993), and into
    ten bins of about equal size if no cut is worth it. A number cuts all columns into that many bins of about equal
    size. ``columns`` can override this by column, like ``features`` in ``bb.count``. Columns that cannot be in a table,
    such as texts, stay outside the tree.

    >>> import banbury as bb
    >>> rooms = {"warm": [True, True, False, False] * 40, "celsius": [25.0, 24.0, 15.0, 16.0] * 40,
    ...          "door": ["a", "a", "a", "a", "b"] * 32, "full": ["yes", "yes", "yes", "no", "no", "no", "no", "yes"] * 20}
    >>> model = bb.estimate(bb.count(rows := rooms, target="full", features=bb.ColumnTree()))
    >>> bb.BeliefNetwork.from_model(model).edges
    [('full', 'warm'), ('full', 'celsius'), ('warm', 'celsius'), ('full', 'door')]
    """

    level: float | None = LEVEL
    root: str | None = None
    bins: Bins = "mdl"
    columns: Any = "auto"
    nodes: tuple[Variable, ...] = ()  # what the first rows settled

    name: ClassVar[str] = "column_tree"
    counting: ClassVar[tuple[str, ...]] = ("nodes",)
    block: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_level(self.level)
        object.__setattr__(self, "bins", check_bins(self.bins))
        if not all(isinstance(node, Variable) for node in self.nodes):  # out of a file
            object.__setattr__(self, "nodes", tuple(_restore_node(node) for node in self.nodes))

    def settings(self) -> dict[str, Any]:
        """The settings that differ from the defaults, as JSON can hold them; what columns were to be is in the nodes."""
        chosen = super().settings()
        if self.nodes:
            chosen.pop("columns", None)
            chosen["nodes"] = self.counting_key()[1]
        return chosen

    def __str__(self) -> str:
        return str(replace(self, nodes=())) if self.nodes else super().__str__()

    def __repr__(self) -> str:
        return repr(replace(self, nodes=())) if self.nodes else super().__repr__()

    def counter(self, feature: Feature) -> TreeCounter:
        return TREES

    def counting_key(self) -> tuple[Any, ...]:
        return self.name, [_plain_node(node) for node in self.nodes]

    def check_columns(self, feature: Feature) -> None:
        if not self.nodes and self.columns != "auto":
            expected = "omitted when the columns are named as a block; features=ColumnTree(columns=...) joins all columns it can"
            raise errors.bad_setting("columns", self.columns, expected)
        if self.root is not None and self.root not in feature.columns:
            raise errors.unknown_column(self.root, feature.columns)

    def join(self, features: Sequence[Feature], batch: Batch) -> list[Feature]:
        """The columns that have tables as one feature; all others stand beside it."""
        inside = [feature for feature in features if can_be_node(feature)]
        if not inside:
            return list(features)
        nodes = self.settle_nodes(inside, batch)
        names = tuple(node.name for node in nodes)
        block = Feature("tree", replace(self, nodes=nodes), columns=names)
        while block.name in batch.names:
            block = block._replace(name=f"({block.name})")
        block.family.check_columns(block)
        return [block, *(feature for feature in features if feature not in inside)]

    def settle_nodes(self, columns: Sequence[Feature], batch: Batch) -> tuple[Variable, ...]:
        """The columns as nodes; the more of them are numbers, the fewer fine bins has each."""
        n_numbers = sum(column.family.has_density() for column in columns)
        n_fine = int(np.clip(FINE_IN_ALL // max(n_numbers, 1), FEWEST_FINE, MOST_FINE))
        return tuple(as_node(batch, column, self.bins, n_fine=n_fine) for column in columns)

    def estimate(
        self, features: tuple[Feature, ...], sums: Counts, choice: Choice, rng: np.random.Generator
    ) -> TreeParameters:
        trees = (self.draw(feature, sums.select([f])) for f, feature in enumerate(features))
        return TreeParameters(features, tuple(EstimatedTree.of(tree, choice, rng) for tree in trees))

    def draw(self, feature: Feature, sums: Counts) -> DrawnTree:
        """The tree of the pairs that were counted of one feature."""
        pairs = CountedPairs.of(feature, sums)
        return DrawnTree(pairs, pairs.parents(self.level, self.root))

    def n_parameters(self, features: tuple[Feature, ...], sums: Counts) -> list[tuple[int, int]]:
        trees = [self.draw(feature, sums.select([f])) for f, feature in enumerate(features)]
        return [(tree.n_parameters, 0) for tree in trees]

    def has_density(self) -> bool:
        return False

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        return False  # a row may change every edge


def joining_family(family: Family) -> ColumnTree | None:
    """The family, where it joins all columns it can."""
    return family if isinstance(family, ColumnTree) else None


def find_trees(parameters: Iterable[Parameters]) -> list[DrawnTree]:
    """The trees of columns that each depend on one other, of a model's parameters."""
    return [tree.drawn for group in parameters if isinstance(group, TreeParameters) for tree in group.trees]


def tree_of_columns(**settings: Any) -> Family:
    """The family that joins all columns it can, for those who ask for it and do not look inside."""
    return ColumnTree(**settings)


def check_level(level: Any) -> None:
    number = level is None or (isinstance(level, (int, float, np.number)) and not isinstance(level, bool))
    if not number or (level is not None and not 0 < level <= 1):
        raise errors.bad_setting("level", level, "a share above 0 and up to 1, or None for the whole tree")


def check_bins(bins: Any, with_classes: bool = True) -> Any:
    """How numbers are cut; where the classes change only if there are classes."""
    if with_classes and isinstance(bins, str) and bins == "mdl":
        return bins
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 2:
        raise errors.bad_setting("bins", bins, "a whole number of at least 2" + ', or "mdl"' * with_classes)
    return int(bins)


def _plain_node(node: Variable) -> list[Any]:
    """A node as JSON can hold it."""
    settings = [
        [name, list(value) if isinstance(value, tuple) else value] for name, value in node.family.settings().items()
    ]
    cuts = None if node.cuts is None else list(node.cuts)
    return [node.name, node.family.name, settings, node.kind, cuts, list(node.ends)]


def _restore_node(node: Any) -> Variable:
    """A node out of a file; raises some error or other where it is none."""
    name, family, settings, kind, cuts, ends = node
    chosen = {key: dict(map(tuple, value["pairs"])) if isinstance(value, dict) else value for key, value in settings}
    node_family = NODES[family](**chosen)
    if not isinstance(name, str) or kind not in get_args(Kind) or (cuts is None) is node_family.has_density():
        raise ValueError(f"{name!r} is not a column of a tree")
    if cuts is None:
        return Variable(name, in_order(node_family.permanent_keys() or ()), node_family, kind)
    if not all(type(number) is float and isfinite(number) for number in (*cuts, *ends)) or len(ends) != 2:
        raise ValueError(f"the bins of {name!r} are not those of numbers")
    if not all(np.diff(cuts) > 0) or not ends[0] <= ends[1]:
        raise ValueError(f"the cuts of {name!r} are not in order")
    return Variable(name, intervals(cuts), node_family, kind, tuple(cuts), (ends[0], ends[1]))


# Counting -------------------------------------------------------------------------------------------------------------


class TreeCounter(CombinationCounter):
    """Rows of each two values of two columns, and of each value alone.

    A key is a column's number and value, and those of a column before it, or of itself again for the value alone.
    """

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        return ()

    def describe_scale(self, feature: Feature) -> str:
        """Where the first rows cut numbers, since that is what differs between trees of the same columns."""
        cuts = [f"{node.name!r} at {errors.listed(map(str, node.cuts), 6)}" for node in nodes_of(feature) if node.cuts]
        return f" that cuts {errors.listed(cuts)}" if cuts else ""

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        """With the nodes of columns that were named as a block: numbers are cut, all else are values."""
        settled = []
        for feature in features:
            family: Any = feature.family
            if not family.nodes:
                columns = [_by_type(name, batch) for name in feature.columns]
                feature = feature._replace(family=replace(family, nodes=family.settle_nodes(columns, batch)))
            settled.append(feature)
        return settled

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        parts = [self._count_feature(feature, rows) for feature in features]
        return features, Counts.join(parts, len(rows.labels))

    def _count_feature(self, feature: Feature, rows: RowsToCount) -> tuple[Any, Integers]:
        columns = [
            OrderedColumn.of(node.codes_to_count(rows.batch, rows.threads), rows.threads) for node in nodes_of(feature)
        ]
        values = [column.values for column in columns]
        check_pairs(feature.columns, [len(column_values) for column_values in values], len(rows.labels))
        axis = stack_columns(values)
        starts = np.cumsum([0, *map(len, values)])
        keys = [np.zeros(0, dtype=np.int64)]
        cells = list[Integers]()
        for b, column in enumerate(columns):
            size = max(len(column.values), 1)
            line = 0
            tables = [*fill_tables([column], [], rows), *fill_tables(columns[:b], [column], rows, TOGETHER)]
            for number, table in enumerate(tables):
                used = np.flatnonzero(lines_with_some(table))
                cells.append(table.take(used, 0))
                if number == 0:  # the values alone
                    upper = lower = starts[b] + used
                else:
                    upper = starts[b] + used % size
                    lower = line + used // size
                    line += table.shape[0] // size
                keys.append(upper * len(axis) + lower)
        places = np.concatenate(keys)
        order = np.argsort(places)
        return Combinations((axis, axis), places[order]), Integers.join(cells).take(order, 0)

    def check(self, features: Sequence[Feature], sums: Counts, rows: Integers, classes: Sequence[Any]) -> None:
        for f, feature in enumerate(features):  # a row counts once for each pair
            n = len(feature.columns)
            most, _ = rows.times(n * (n + 1) / 2)
            super().check([feature], sums.select([f]), most, classes)
            pairs = CountedPairs.of(feature, sums.select([f]), joined=False)
            for k, _ in np.argwhere(pairs.overfull(rows.value)):
                raise errors.impossible_sums(classes[0], feature.columns[k])

    def key(self, feature: Feature, key: Any) -> str:
        (k, value), (j, other) = key
        shown = f"{feature.columns[k]} = {value!r}"
        return shown if j == k else f"{shown} with {feature.columns[j]} = {other!r}"

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        return f"{errors.many(len(feature.columns), 'column')}, each two together"

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        nodes = nodes_of(feature)
        if tuple(node.name for node in nodes) != feature.columns:
            raise ValueError(f"the nodes of {feature.name!r} are not its columns")
        combined: Any = tuple((tuple(upper), tuple(lower)) for upper, lower in keys)
        allowed = [_key_check(node) for node in nodes]
        for (k, value), (j, other) in combined:
            if type(k) is not int or type(j) is not int or not 0 <= j <= k < len(nodes) or (j == k and value != other):
                raise ValueError(f"the keys of {feature.name!r} are not pairs of its columns")
            if not (allowed[k](value) and allowed[j](other)):
                raise TypeError(f"the keys of {feature.name!r} are not all values of its columns")
        if in_order(set(combined)) != combined:
            raise ValueError(f"the keys of {feature.name!r} are not distinct and in ascending order")
        single_values = {upper for upper, lower in combined if upper == lower}
        if not all(upper in single_values and lower in single_values for upper, lower in combined):
            raise ValueError(f"the keys of {feature.name!r} have values that no row has")
        return combined  # type: ignore[no-any-return]


TREES = TreeCounter()


def pairs_of(names: Sequence[str]) -> Feature:
    """Every two of these columns, whose values are taken as they come."""
    kind: Any = None
    nodes = tuple(Variable(name, (), kind=kind) for name in names)
    return Feature("pairs", ColumnTree(nodes=nodes), columns=tuple(names))


def nodes_of(feature: Feature) -> tuple[Variable, ...]:
    family: Any = feature.family
    return family.nodes  # type: ignore[no-any-return]


def _by_type(name: str, batch: Batch) -> Feature:
    kind = kind_of(batch, name)
    numbers = kind in ("integer", "float")
    return Feature(name, Histogram() if numbers else Categorical(), kind=kind)


def _key_check(node: Variable) -> Any:
    """What says whether a key out of a file is one of a node's."""
    if node.cuts is not None:
        return lambda key: type(key) is int and 0 <= key < node.size
    declared = node.family.permanent_keys()
    of_kind = KEY_TYPES[node.kind]
    if declared:
        return lambda key: (key in declared and key == key) or (key is None and counts_missing(node.family))
    return lambda key: (type(key) is of_kind and key == key) or (key is None and counts_missing(node.family))


def check_pairs(names: Sequence[str], sizes: Sequence[int], n_classes: int) -> None:
    """Raises where the tables of all pairs would not fit."""
    n_values = np.array(sizes, dtype=np.float64)
    cells = (n_values.sum() ** 2 - (n_values**2).sum()) / 2 * n_classes
    if cells > MOST_CELLS:
        widest = int(n_values.argmax())
        text = f"the tables of all pairs of columns would have {int(cells):,} cells, but the limit is {MOST_CELLS:,}; "
        text += f"{names[widest]!r} alone has {sizes[widest]:,} values. Leave it out with features={{{names[widest]!r}: None}}, "
        text += "join its rare values, or cut numbers into fewer bins."
        raise errors.TooManyCells(text, column=names[widest], cells=int(cells))


# Drawing --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountedPairs:
    """The rows of each two values, of columns with the values that rows have, or that are declared, and of bins joined by class.

    Values are numbered through all columns; ``upper`` and ``lower`` are those of each key, the later column's first.
    """

    variables: tuple[Variable, ...]
    upper: Int
    lower: Int
    cells: Integers  # (keys, classes)

    @classmethod
    def of(cls, feature: Feature, sums: Counts, joined: bool = True) -> CountedPairs:
        keys, cells = sums.feature(0)
        values: list[set[Any]] = [set() for _ in feature.columns]
        for k, value in _values_of(keys):
            values[k].add(value)
        variables = [node.of_keys(column_values) for node, column_values in zip(nodes_of(feature), values, strict=True)]
        check_pairs(feature.columns, [variable.size for variable in variables], cells.shape[1])
        axis = stack_columns([variable.keys for variable in variables])
        upper, lower = np.divmod(cells_of(keys, (axis, axis)), max(len(axis), 1))
        pairs = cls(tuple(variables), upper, lower, cells)
        return pairs._join_bins() if joined else pairs

    def _join_bins(self) -> CountedPairs:
        """With the bins that the classes make of fine ones."""
        if not any(variable.cut_by_class for variable in self.variables):
            return self
        variables = []
        groups = list[Int]()
        start = 0
        for k, fine in enumerate(self.variables):
            variable, group = fine.join_bins(self.alone(k).value)
            variables.append(variable)
            groups.append(start + group)
            start += variable.size
        moved = np.concatenate(groups)
        return replace(self, variables=tuple(variables), upper=moved[self.upper], lower=moved[self.lower])

    @cached_property
    def starts(self) -> Int:
        return np.cumsum([0, *(variable.size for variable in self.variables)])

    @cached_property
    def _columns(self) -> tuple[Int, Int]:
        """The columns of each key."""
        owner = np.repeat(np.arange(len(self.variables)), np.diff(self.starts))
        return owner[self.upper], owner[self.lower]

    def overfull(self, rows: Real) -> NDArray[np.bool_]:
        """Where a column has more rows than there are, (columns, classes)."""
        k, j = self._columns
        alone = np.flatnonzero(k == j)
        present = self.cells.take(alone, 0).merge(as_index(k[alone]), len(self.variables), 0)
        return np.asarray(present.value > rows)

    def alone(self, k: int) -> Integers:
        """Rows by the values of a column, (values, classes)."""
        return self._table(k, k, self.variables[k].size, self.upper - self.starts[k])

    def together(self, k: int, j: int) -> Integers:
        """Rows by the values of two columns, (values of the one, values of the other, classes)."""
        sizes = self.variables[k].size, self.variables[j].size
        later = self.upper - self.starts[max(k, j)]
        earlier = self.lower - self.starts[min(k, j)]
        of_k, of_j = (later, earlier) if k > j else (earlier, later)
        table = self._table(max(k, j), min(k, j), sizes[0] * sizes[1], of_k * sizes[1] + of_j)
        return table.arranged([*sizes, self.cells.shape[1]])

    def _table(self, k: int, j: int, size: int, places: Int) -> Integers:
        columns = self._columns
        at = np.flatnonzero((columns[0] == k) & (columns[1] == j))
        return self.cells.take(at, 0).merge(as_index(places[at]), size, 0)

    def parents(self, level: float | None, root: str | None) -> list[int | None]:
        """Of each column the one it depends on beside the class: Chow and Liu's tree, or what of it is beyond chance."""
        names = [variable.name for variable in self.variables]
        edges = [(a, b) for a, b, _ in self.rank_edges(level)]
        first = 0 if root is None else names.index(root)
        return direct_edges(spanning_forest(edges, len(names)), len(names), first)

    def information(self, n_rows: float, least: float, fewest: int = 1) -> tuple[Int, Int, PairInformation]:
        """Every two columns of so many values at least, and what they share, as ``informed`` says of their tables."""
        varied = [k for k, variable in enumerate(self.variables) if variable.size >= fewest]
        sizes = [self.variables[k].size for k in varied]
        first, second, every = pair_information(self._tables(varied, sizes), sizes, n_rows, least)
        return as_index(varied)[first], as_index(varied)[second], every

    def rank_edges(self, level: float | None) -> list[tuple[int, int, float]]:
        """Pairs of columns and I(A; B | class) in bits, the greatest first: those beyond chance at the level, or all."""
        n_rows = max((float(self.alone(k).value.sum()) for k in range(len(self.variables))), default=0.0)
        if not n_rows > 0:
            return []
        least = 0.0 if level is None else FEWEST_ROWS / n_rows
        first, second, every = self.information(n_rows, least, fewest=2)
        bits = every.joint
        shown = np.arange(len(first))
        if level is not None:
            measured_pairs = every.beyond_chance(lambda k: (str(first[k]), str(second[k])), n_rows, 1.0)
            bits = measured_pairs.bits
            shown = measured_pairs.beyond(level, len(first))
        order = shown[np.lexsort((second[shown], first[shown], -np.round(bits[shown], TIED)))]
        return [(int(first[k]), int(second[k]), float(bits[k])) for k in order]

    def _tables(self, varied: Sequence[int], sizes: Sequence[int]) -> Iterator[Real]:
        """Of each varied column but the first: rows by the values of all before it, its own values, and classes."""
        place = np.full(int(self.starts[-1]), -1)
        starts = np.cumsum([0, *sizes])
        for k, start in zip(varied, starts.tolist(), strict=False):
            place[self.starts[k] : self.starts[k + 1]] = start + np.arange(self.variables[k].size)
        rows = self.cells.value
        columns = self._columns
        for at, b in enumerate(varied[1:], 1):
            table = np.zeros((starts[at] * sizes[at], rows.shape[1]))
            keys_of_pair = np.flatnonzero((columns[0] == b) & (columns[1] < b) & (place[self.lower] >= 0))
            lines = place[self.lower[keys_of_pair]] * sizes[at] + self.upper[keys_of_pair] - self.starts[b]
            np.add.at(table, lines, rows[keys_of_pair])
            yield table.reshape(starts[at], sizes[at], rows.shape[1])


def _values_of(keys: Sequence[Any]) -> Iterable[tuple[int, Any]]:
    """The numbers of columns, and the values, of which there are rows."""
    if isinstance(keys, Combinations):
        upper, lower = np.unravel_index(keys.cells, [len(axis) for axis in keys.axes])
        axis: Any = keys.axes[0]
        return [axis[k] for k in upper[upper == lower].tolist()]
    return [upper for upper, lower in keys if upper == lower]


@dataclass(frozen=True, eq=False)
class DrawnTree:
    """Columns, and of each the one that it depends on beside the class, if any."""

    pairs: CountedPairs
    parents: list[int | None]

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.pairs.variables

    @property
    def known(self) -> list[int]:
        """The columns of which rows have a value."""
        return [k for k, variable in enumerate(self.variables) if variable.size]

    @property
    def n_parameters(self) -> int:
        sizes = [variable.size for variable in self.variables]
        above = (1 if parent is None else sizes[parent] for parent in self.parents)
        return sum(max(size - 1, 0) * n for size, n in zip(sizes, above, strict=True))

    def cells(self, k: int) -> Integers:
        """Rows by a column's values and classes, and by its parent's values, if it has a parent."""
        parent = self.parents[k]
        if parent is None:
            return self.pairs.alone(k)
        table = self.pairs.together(k, parent)
        index = np.arange(np.prod(table.shape)).reshape(table.shape).transpose(0, 2, 1)
        return table.arranged(list(index.shape), as_index(index.reshape(-1)))


def spanning_forest(edges: Iterable[tuple[int, int]], n_nodes: int) -> list[tuple[int, int]]:
    """The edges that close no cycle with those before them (Kruskal): of edges by falling weight, a tree of the greatest."""
    root = list(range(n_nodes))

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    kept = []
    for a, b in edges:
        if (of_a := find(a)) != (of_b := find(b)):
            root[of_b] = of_a
            kept.append((a, b))
    return kept


def direct_edges(edges: Iterable[tuple[int, int]], n_nodes: int, root: int = 0) -> list[int | None]:
    """The parent of each node, when the edges of a forest lead away from ``root``, and in other trees from the first node."""
    beside: list[list[int]] = [[] for _ in range(n_nodes)]
    for a, b in edges:
        beside[a].append(b)
        beside[b].append(a)
    parent: list[int | None] = [None] * n_nodes
    met: set[int] = set()
    for first in (root, *range(n_nodes)):
        waiting = [] if first in met or first >= n_nodes else [first]
        met.update(waiting)
        while waiting:
            node = waiting.pop()
            for other in beside[node]:
                if other not in met:
                    met.add(other)
                    parent[other] = node
                    waiting.append(other)
    return parent


# Answering ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EstimatedTree:
    """The tables of a tree: what is missing of a row is summed out exactly."""

    drawn: DrawnTree
    forest: NodeForest

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.drawn.variables

    @classmethod
    def of(cls, tree: DrawnTree, choice: Choice, rng: np.random.Generator) -> EstimatedTree:
        nodes = dict[int, Node]()
        n_classes = tree.pairs.cells.shape[1]
        for k in tree.known:
            variable = tree.variables[k]
            parent = tree.parents[k]
            alpha = variable.family.pseudo_counts(variable.values, choice.alpha)
            table, unseen = conditional(tree.cells(k).value, alpha, choice.how, rng)
            if parent is None:
                table = table[..., None]
                unseen = unseen[..., None]
            nodes[k] = Node(k, parent, np.ascontiguousarray(table.transpose(1, 2, 0)), unseen)
        order = [k for k in children_first(tree.parents) if k in nodes]
        return cls(tree, NodeForest(tuple(nodes[k] for k in order), None, n_classes))

    def places(self, rows: ColumnReader) -> list[Places]:
        threads = n_threads(None)
        nothing = np.full(rows.n_rows, MISSING, dtype=np.int32)
        return [variable.places(rows, threads) if variable.size else nothing for variable in self.variables]

    def log_likelihood(self, places: Sequence[Places]) -> Real:
        """log P(what the rows show | class), (rows, classes)."""
        n_rows = len(places[0])
        scores = np.empty((n_rows, self.forest.size))
        at_once = max(int(MOST_AT_ONCE // max(self.forest.width, 1)), 1)
        for start in range(0, n_rows, at_once):
            part = slice(start, start + at_once)
            scores[part] = self.forest.log_joint([column[part] for column in places])
        return scores

    def terms(self, rows: ColumnReader) -> list[Term]:
        """What each column says given the columns above it: parents come before their children."""
        places = np.array([column[:1] for column in self.places(rows)], dtype=np.int32)[:, 0]
        order = [node.variable for node in reversed(self.forest.nodes) if places[node.variable] != MISSING]
        # Rows that show nothing, then one column more each.
        prefixes = np.full((len(places), len(order) + 1), MISSING, dtype=np.int32)
        for n_shown, k in enumerate(order, 1):
            prefixes[k, n_shown:] = places[k]
        scores = self.log_likelihood(list(prefixes))
        ruled_out = np.isneginf(scores[:-1])  # already, so that nothing is added
        steps = np.where(ruled_out, 0.0, scores[1:] - np.where(ruled_out, 0.0, scores[:-1]))
        terms = []
        for k, step in zip(order, steps, strict=True):
            value = next(iter(rows.head(self.variables[k].name, 1)), None)
            terms.append(Term(self.variables[k].name, value, step, bool(places[k] != UNSEEN)))
        return terms

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        places: dict[int, Int] = {}
        for node in reversed(self.forest.nodes):
            above = places[node.parent] if node.parent is not None else np.zeros(len(classes), dtype=np.int64)
            below = np.cumsum(node.table, axis=2)[:, :, :-1]
            places[node.variable] = (below[classes, above] <= rng.random(len(classes))[:, None]).sum(axis=1)
        nothing = np.full(len(classes), None, dtype=object)
        numbered_variables = enumerate(self.variables)
        return [variable.draw(places[k], rng) if k in places else nothing for k, variable in numbered_variables]


@dataclass(frozen=True)
class TreeParameters(Parameters):
    """The tables of some trees."""

    features: tuple[Feature, ...]
    trees: tuple[EstimatedTree, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        lines = np.arange(rows.n_rows, dtype=np.int32)
        return [line_by_line(lines, tree.log_likelihood(tree.places(rows))) for tree in self.trees]

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        return [term for tree in self.trees for term in tree.terms(rows)]

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_]:
        columns = (np.any([column == UNSEEN for column in tree.places(rows)], axis=0) for tree in self.trees)
        return np.stack(list(columns), axis=1)

    def categories(self, f: int, column: str) -> Keys | None:
        variable = next(node for node in self.trees[f].variables if node.name == column)
        return variable.values if variable.cuts is None else None

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        return [column for tree in self.trees for column in tree.sample(classes, rng)]
