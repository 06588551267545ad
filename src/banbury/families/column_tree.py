"""ColumnTree: columns that each depend on the class and on at most one other column: tree-augmented naive Bayes (TAN)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Bool, Int, Real
from banbury.families.bernoulli import Bernoulli
from banbury.families.categorical import Categorical, counts_missing
from banbury.families.dirichlet import conditional
from banbury.families.evidence import Term
from banbury.families.family import (
    Choice,
    ColumnReader,
    Family,
    Feature,
    Features,
    Kind,
    Parameters,
    RowsToCount,
    line_by_line,
)
from banbury.families.histogram import Histogram
from banbury.families.information import FEWEST_ROWS, LEVEL, PairInformation, pair_information
from banbury.families.joint import COLUMNS_TOGETHER, CombinationCounter, fill_tables, number_in_order, stack_columns
from banbury.families.keys import KEY_TYPES, column_kind
from banbury.families.nodes import (
    FEWEST_FINE,
    FINE_IN_ALL,
    MISSING,
    MOST_FINE,
    UNSEEN,
    Bins,
    Node,
    NodeForest,
    ValueNumbers,
    Variable,
    as_node,
    can_be_node,
    children_first,
    intervals,
)
from banbury.reading import Batch
from banbury.sums import Combinations, Counts, Keys, as_index, cells_of, nonzero_lines, sort_keys
from banbury.threads import n_threads

MOST_CELLS = 1 << 26  # of the tables of all pairs: half a gigabyte
DECIMALS_OF_BITS = 9  # pairs that differ by less are tied: the first columns come first, whichever way sums are rounded
MOST_NUMBERS_AT_ONCE = 1 << 22  # in the tables of the rows that are scored together
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
        """Raises unless the settings are valid; nodes from a file become variables."""
        check_level(self.level)
        object.__setattr__(self, "bins", check_bins(self.bins))
        if not all(isinstance(node, Variable) for node in self.nodes):  # out of a file
            object.__setattr__(self, "nodes", tuple(_restore_node(node) for node in self.nodes))

    def settings(self) -> dict[str, Any]:
        """Returns the settings that differ from the defaults, for JSON. Once the nodes are known, they replace
        ``columns``.
        """
        settings = super().settings()
        if self.nodes:
            settings.pop("columns", None)
            settings["nodes"] = self.counting_key()[1]
        return settings

    def __str__(self) -> str:
        """Returns the name of the family with its settings, without the nodes, which the rows decided."""
        return str(replace(self, nodes=())) if self.nodes else super().__str__()

    def __repr__(self) -> str:
        """Returns the family as Python code, without the nodes, which the rows decided."""
        return repr(replace(self, nodes=())) if self.nodes else super().__repr__()

    def counter(self, feature: Feature) -> TreeCounter:
        """Returns the counter that turns the values of a feature of this family into sums."""
        return TREES

    def counting_key(self) -> tuple[Any, ...]:
        """Returns what two trees must have in common for their counts to be added: the family's name, and the same
        nodes, cut at the same numbers.
        """
        return self.name, [_plain_node(node) for node in self.nodes]

    def check_columns(self, feature: Feature) -> None:
        """Raises an error if the settings do not fit the columns of the feature."""
        if not self.nodes and self.columns != "auto":
            expected = "omitted when the columns are named as a block; features=ColumnTree(columns=...) joins all columns it can"
            raise errors.bad_setting("columns", self.columns, expected)
        if self.root is not None and self.root not in feature.columns:
            raise errors.unknown_column(self.root, feature.columns)

    def join(self, features: Features, batch: Batch) -> Features:
        """Returns the features with the columns that can have tables joined into one, the tree, which comes first; all
        others stay as they are. ``batch`` has the first rows, which decide where numbers are cut.
        """
        tree_columns = [feature for feature in features if can_be_node(feature)]
        if not tree_columns:
            return features
        nodes = self.settle_nodes(tree_columns, batch)
        names = tuple(node.name for node in nodes)
        tree = Feature("tree", replace(self, nodes=nodes), columns=names)
        while tree.name in batch.names:  # the name of a column
            tree = tree._replace(name=f"({tree.name})")
        tree.family.check_columns(tree)
        return Features.of([tree, *(feature for feature in features if not can_be_node(feature))])

    def settle_nodes(self, columns: Sequence[Feature], batch: Batch) -> tuple[Variable, ...]:
        """Returns the columns (features) as nodes of the tree. The more columns of numbers there are, the fewer fine
        bins each has. ``batch`` has the first rows, which decide where numbers are cut.
        """
        n_numbers = sum(column.family.has_density() for column in columns)  # columns of numbers
        n_fine = int(np.clip(FINE_IN_ALL // max(n_numbers, 1), FEWEST_FINE, MOST_FINE))  # fine bins of each
        return tuple(as_node(batch, column, self.bins, n_fine=n_fine) for column in columns)

    def estimate(self, features: Features, sums: Counts, choice: Choice, rng: Generator) -> TreeParameters:
        """Finds the tree of a block and estimates its tables P(value | class, parent's value) from the counts of pairs
        (``sums``), as ``choice`` says; ``rng`` draws under "gibbs".
        """
        tree = self.find_tree(features[0], sums)
        nodes = dict[int, Node]()  # by the number of the column
        for k in tree.columns_with_values:
            variable = tree.variables[k]
            parent = tree.parents[k]
            alpha = variable.family.pseudo_counts(variable.values, choice.alpha)  # of each value
            # Probabilities (values × classes × parent's values), and the log-probability of a value that was never
            # counted (classes × parent's values); without a parent, the last axis is added.
            table, unseen = conditional(tree.cells(k).value, alpha, choice.how, rng)
            if parent is None:
                table = table[..., None]
                unseen = unseen[..., None]
            nodes[k] = Node(k, parent, np.ascontiguousarray(table.transpose(1, 2, 0)), unseen)
        order = [k for k in children_first(tree.parents) if k in nodes]  # column numbers
        forest = NodeForest(tuple(nodes[k] for k in order), query=None, size=tree.pairs.cells.shape[1])
        return TreeParameters(features, tree, forest)

    def find_tree(self, feature: Feature, sums: Counts) -> DependencyTree:
        """Returns the tree of a block from its counts of pairs (``sums``, of this block alone)."""
        pairs = CountedPairs.of(feature, sums)
        return DependencyTree(pairs, pairs.parents(self.level, self.root))

    def n_parameters(self, features: Features, sums: Counts) -> list[tuple[int, int]]:
        """Returns one pair, for the block: the number of parameters of its tree per class, and 0 that classes share."""
        return [(self.find_tree(features[0], sums).n_parameters, 0)]

    def has_density(self) -> bool:
        """Returns False: trees give probabilities of values and bins, not densities."""
        return False

    def can_leave_one_out(self, features: Features, choice: Choice, weighted: bool) -> bool:
        """Returns False: there is no formula for leaving one row out."""
        return False  # one row may change every edge


def joining_family(family: Family) -> ColumnTree | None:
    """Returns the family if it joins columns, otherwise None."""
    return family if isinstance(family, ColumnTree) else None


def find_trees(parameters: Iterable[Parameters]) -> list[DependencyTree]:
    """Returns the trees among a model's parameters."""
    return [group.tree for group in parameters if isinstance(group, TreeParameters)]


def tree_of_columns(**settings: Any) -> Family:
    """Returns a ``ColumnTree`` with these settings."""
    return ColumnTree(**settings)


def check_level(level: Any) -> None:
    """Raises an error unless the level of significance is above 0 and up to 1, or None."""
    is_number = level is None or (isinstance(level, (int, float, np.number)) and not isinstance(level, bool))
    if not is_number or (level is not None and not 0 < level <= 1):
        raise errors.bad_setting("level", level, "a share above 0 and up to 1, or None for the whole tree")


def check_bins(bins: Any, with_classes: bool = True) -> Any:
    """Checks a setting of how numbers are cut into bins, and returns it: a whole number of at least 2, or "mdl", which
    is allowed only if the rows have classes (``with_classes``).
    """
    if with_classes and isinstance(bins, str) and bins == "mdl":
        return bins
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 2:
        raise errors.bad_setting("bins", bins, "a whole number of at least 2" + ', or "mdl"' * with_classes)
    return int(bins)


def _plain_node(node: Variable) -> list[Any]:
    """Returns a node as a nested list for JSON: name, family, settings, type of values, cuts (None for categories), and
    lowest and highest number.
    """
    settings = [  # pairs of name and value
        [name, list(value) if isinstance(value, tuple) else value] for name, value in node.family.settings().items()
    ]
    cuts = None if node.cuts is None else list(node.cuts)
    return [node.name, node.family.name, settings, node.kind, cuts, list(node.ends)]


def _restore_node(node: Any) -> Variable:
    """Returns the node that a list made by ``_plain_node`` describes; raises an error if it is malformed. The list has
    the name of the column, that of its family, the family's settings as pairs, the type of values, the cuts of numbers
    (None for categories), and the lowest and highest number.
    """
    name, family, settings, kind, cuts, ends = node
    family_settings = {
        key: dict(map(tuple, value["pairs"])) if isinstance(value, dict) else value for key, value in settings
    }
    node_family = NODES[family](**family_settings)
    if not isinstance(name, str) or kind not in get_args(Kind) or (cuts is None) is node_family.has_density():
        raise ValueError(f"{name!r} is not a column of a tree")
    if cuts is None:
        return Variable(name, sort_keys(node_family.permanent_keys() or ()), node_family, kind)
    if not all(type(number) is float and isfinite(number) for number in (*cuts, *ends)) or len(ends) != 2:
        raise ValueError(f"the bins of {name!r} are not those of numbers")
    if not all(np.diff(cuts) > 0) or not ends[0] <= ends[1]:
        raise ValueError(f"the cuts of {name!r} are not in order")
    return Variable(name, intervals(cuts), node_family, kind, tuple(cuts), (ends[0], ends[1]))


# Counting -------------------------------------------------------------------------------------------------------------


class TreeCounter(CombinationCounter):
    """Counts the rows of each pair of values of two columns, and of each value alone.

    A key is the number and value of a column, and those of an earlier column; or of the same column for a value alone.
    """

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Returns no condition: all that has to agree is in the nodes, which are settings of the family."""
        return ()

    def describe_scale(self, feature: Feature) -> str:
        """Returns where the first rows cut numbers, as a phrase, which is what differs between trees of the same
        columns.
        """
        columns_with_cuts = [
            f"{node.name!r} at {errors.listed(map(str, node.cuts), most=6)}" for node in nodes_of(feature) if node.cuts
        ]
        return f" that cuts {errors.listed(columns_with_cuts)}" if columns_with_cuts else ""

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the features with the nodes of their columns (in the family), settled by the first rows (``batch``):
        numbers are cut into bins, everything else is a category.
        """

        def with_nodes(feature: Feature) -> Feature:
            """Returns a feature whose family has the nodes of its columns."""
            family: Any = feature.family
            if family.nodes:
                return feature
            columns = [_choose_family(name, batch) for name in feature.columns]
            return feature._replace(family=replace(family, nodes=family.settle_nodes(columns, batch)))

        return Features.of(map(with_nodes, features))

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Counts]:
        """Counts the pairs of values in these rows. Returns the features as they are, and the rows of each pair that
        occurs.
        """
        return features, Counts.join([self._count_feature(feature, rows) for feature in features], len(rows.labels))

    def _count_feature(self, feature: Feature, rows: RowsToCount) -> tuple[Any, Integers]:
        """Returns the keys of one feature, which are the pairs of values that rows have, and their counts (keys ×
        classes). The values of all columns are numbered one after the other; a pair is an upper value, of the later
        column, and a lower one.
        """
        columns = [  # the values of each column in order, and the code of each row's value
            number_in_order(node.codes_to_count(rows.batch, rows.threads), rows.threads) for node in nodes_of(feature)
        ]
        sizes = [len(column.values) for column in columns]
        check_pairs(feature.columns, sizes, len(rows.labels))
        numbered_values = stack_columns([column.values for column in columns])  # pairs of column number and value
        first_values = np.cumsum([0, *sizes])  # the number of each column's first value
        keys = [np.zeros(0, dtype=np.int64)]  # of each table: upper value · number of all values + lower value
        cells = list[Integers]()  # of each table: rows (keys × classes)
        for later_column, column in enumerate(columns):
            n_values = max(len(column.values), 1)
            first_lower = 0  # the first value of the earlier columns in the next table
            # The lines of the first are the column's values; those of the others are pairs, an earlier column's value ·
            # n_values + this column's, for a few earlier columns each.
            tables = [
                *fill_tables([column], [], rows),
                *fill_tables(columns[:later_column], [column], rows, COLUMNS_TOGETHER),
            ]
            for table_number, table in enumerate(tables):
                used_lines = np.flatnonzero(nonzero_lines(table))
                cells.append(table.take(used_lines, 0))
                if table_number == 0:  # the values alone
                    upper_values = lower_values = first_values[later_column] + used_lines
                else:
                    upper_values = first_values[later_column] + used_lines % n_values
                    lower_values = first_lower + used_lines // n_values
                    first_lower += table.shape[0] // n_values
                keys.append(upper_values * len(numbered_values) + lower_values)
        key_numbers = np.concatenate(keys)
        order = np.argsort(key_numbers)  # sorts the keys
        return Combinations((numbered_values, numbered_values), key_numbers[order]), Integers.join(cells).take(order, 0)

    def check(self, features: Features, sums: Counts, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises an error if no rows can have these sums. ``rows`` has the number of rows of each class, and
        ``classes`` their labels.
        """
        for f, feature in enumerate(features):  # a row counts once for each pair
            n_columns = len(feature.columns)
            n_pairs_of_rows, _ = rows.times(n_columns * (n_columns + 1) / 2)  # of each class
            super().check(features.take([f]), sums.select([f]), n_pairs_of_rows, classes)
            pairs = CountedPairs.of(feature, sums.select([f]), joins_bins=False)
            for column, c in np.argwhere(pairs.has_too_many_rows(rows.value)):
                raise errors.impossible_sums(classes[c], feature.columns[column])

    def key(self, feature: Feature, key: Any) -> str:
        """Returns a key, which is a pair of (column number, value) pairs, in words for messages."""
        (column, value), (other_column, other_value) = key
        shown = f"{feature.columns[column]} = {value!r}"
        return shown if other_column == column else f"{shown} with {feature.columns[other_column]} = {other_value!r}"

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        """Describes in a few words what was counted of a feature; rows that lack a value are counted with all other
        columns, so ``missing`` is not shown.
        """
        return f"{errors.many(len(feature.columns), 'column')}, each two together"

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """Returns the keys of a feature from a file, as pairs of (column number, value) pairs; raises an error unless
        they are valid, distinct and in order.
        """
        nodes = nodes_of(feature)
        if tuple(node.name for node in nodes) != feature.columns:
            raise ValueError(f"the nodes of {feature.name!r} are not its columns")
        pairs: Any = tuple((tuple(upper), tuple(lower)) for upper, lower in keys)
        for (column, value), (other_column, other_value) in pairs:
            if (
                type(column) is not int
                or type(other_column) is not int
                or not 0 <= other_column <= column < len(nodes)
                or (other_column == column and value != other_value)
            ):
                raise ValueError(f"the keys of {feature.name!r} are not pairs of its columns")
            if not (_is_key(nodes[column], value) and _is_key(nodes[other_column], other_value)):
                raise TypeError(f"the keys of {feature.name!r} are not all values of its columns")
        if sort_keys(set(pairs)) != pairs:
            raise ValueError(f"the keys of {feature.name!r} are not distinct and in ascending order")
        single_values = {upper for upper, lower in pairs if upper == lower}
        if not all(upper in single_values and lower in single_values for upper, lower in pairs):
            raise ValueError(f"the keys of {feature.name!r} have values that no row has")
        return pairs  # type: ignore[no-any-return]


TREES = TreeCounter()


def pairs_of(names: Sequence[str]) -> Feature:
    """Returns the feature that counts every pair of these columns, with values as they are."""
    kind: Any = None
    nodes = tuple(Variable(name, (), kind=kind) for name in names)
    return Feature("pairs", ColumnTree(nodes=nodes), columns=tuple(names))


def nodes_of(feature: Feature) -> tuple[Variable, ...]:
    """Returns the nodes of a tree's columns, in order; they are settings of its family."""
    family: Any = feature.family
    return family.nodes  # type: ignore[no-any-return]


def _choose_family(name: str, batch: Batch) -> Feature:
    """Returns the column with this name as a feature: a histogram if it has numbers, otherwise categories."""
    kind = column_kind(batch, name)
    has_numbers = kind in ("integer", "float")
    return Feature(name, Histogram() if has_numbers else Categorical(), kind=kind)


def _is_key(node: Variable, key: Any) -> bool:
    """Whether a key from a file (a value, or the number of a bin) can be a key of this node."""
    if node.cuts is not None:
        return type(key) is int and 0 <= key < node.size
    if key is None:
        return counts_missing(node.family)
    declared = node.family.permanent_keys()
    return key in declared if declared else type(key) is KEY_TYPES[node.kind] and key == key


def check_pairs(names: Sequence[str], sizes: Sequence[int], n_classes: int) -> None:
    """Raises an error if the tables of all pairs of the columns with these names, in ``n_classes`` classes, would be
    too large. ``sizes`` has the number of values of each column.
    """
    n_values = np.array(sizes, dtype=np.float64)
    n_cells = (n_values.sum() ** 2 - (n_values**2).sum()) / 2 * n_classes  # of all tables
    if n_cells > MOST_CELLS:
        widest = int(n_values.argmax())  # the column with most values
        text = (
            f"the tables of all pairs of columns would have {int(n_cells):,} cells, but the limit is {MOST_CELLS:,}; "
        )
        text += f"{names[widest]!r} alone has {sizes[widest]:,} values. Leave it out with features={{{names[widest]!r}: None}}, "
        text += "join its rare values, or cut numbers into fewer bins."
        raise errors.TooManyCells(text, column=names[widest], cells=int(n_cells))


# Finding the tree --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountedPairs:
    """The rows of each pair of values of two columns.

    The values of all columns are numbered one after the other; ``upper`` and ``lower`` are the numbers of the two
    values of each key, where the upper one belongs to the later column.
    """

    variables: tuple[Variable, ...]
    upper: Int
    lower: Int
    cells: Integers  # (keys, classes)

    @classmethod
    def of(cls, feature: Feature, sums: Counts, joins_bins: bool = True) -> CountedPairs:
        """Returns the pairs that one feature has counted (``sums`` are its own). ``joins_bins``: whether fine bins are
        merged where the class frequencies do not change.
        """
        keys, cells = sums.feature(0)  # pairs of (column number, value) pairs, and the rows of each (keys × classes)
        values: list[set[Any]] = [set() for _ in feature.columns]  # that occur in each column
        for column, value in _values_of(keys):
            values[column].add(value)
        variables = [node.of_keys(column_values) for node, column_values in zip(nodes_of(feature), values, strict=True)]
        check_pairs(feature.columns, [variable.size for variable in variables], cells.shape[1])
        numbered_keys = stack_columns([variable.keys for variable in variables])  # (column number, value) pairs
        # The number of a key's cell is upper · number of values + lower.
        upper, lower = np.divmod(cells_of(keys, (numbered_keys, numbered_keys)), max(len(numbered_keys), 1))
        pairs = cls(tuple(variables), upper, lower, cells)
        return pairs._join_bins() if joins_bins else pairs

    def _join_bins(self) -> CountedPairs:
        """Returns the pairs with fine bins merged where the class frequencies do not change. ``self.upper`` and
        ``self.lower`` have the numbers of each key's two values, counted over all columns; the upper one belongs to the
        later column.
        """
        if not any(variable.cut_by_class for variable in self.variables):
            return self
        variables = []
        new_numbers = list[Int]()  # of each column's old values, as numbered over all columns
        start = 0  # the new number of the column's first value
        for k, fine_variable in enumerate(self.variables):
            variable, bin_of_value = fine_variable.join_bins(self.count_values(k).value)
            variables.append(variable)
            new_numbers.append(start + bin_of_value)
            start += variable.size
        new_number = np.concatenate(new_numbers)  # of each old value
        return replace(self, variables=tuple(variables), upper=new_number[self.upper], lower=new_number[self.lower])

    @cached_property
    def starts(self) -> Int:
        """The number of each column's first value, if the values of all columns are numbered one after the other; last,
        the number of values.
        """
        return np.cumsum([0, *(variable.size for variable in self.variables)])

    @cached_property
    def _columns_of_keys(self) -> tuple[Int, Int]:
        """The column of the upper value of each key, and that of the lower value. ``self.upper`` and ``self.lower``
        have the numbers of each key's two values, counted over all columns; the upper one belongs to the later column.
        ``self.starts`` has the number of each column's first value.
        """
        column_of_value = np.repeat(np.arange(len(self.variables)), np.diff(self.starts))
        return column_of_value[self.upper], column_of_value[self.lower]

    def has_too_many_rows(self, rows: Real) -> Bool:
        """Returns whether each column has more rows of a class than there are (columns × classes). ``rows`` is the
        number of rows of each class.
        """
        upper_columns, lower_columns = self._columns_of_keys  # of the two values of each key
        single_values = np.flatnonzero(upper_columns == lower_columns)  # keys that are a value alone
        # The rows with a value (columns × classes), from those of each key (keys × classes).
        present = self.cells.take(single_values, 0).merge(
            as_index(upper_columns[single_values]), len(self.variables), 0
        )
        return present.value > rows

    def count_values(self, k: int) -> Integers:
        """Returns the rows of each value of column number k (values × classes). ``self.upper`` has the number of each
        key's upper value, counted over all columns, and ``self.starts`` that of each column's first value.
        """
        return self._table(k, k, self.variables[k].size, self.upper - self.starts[k])

    def count_pairs(self, k: int, j: int) -> Integers:
        """Returns the rows of each pair of values of two different columns, by their numbers k and j (values of k ×
        values of j × classes). ``self.upper`` and ``self.lower`` have the numbers of each key's two values, counted
        over all columns; the upper one belongs to the later column. ``self.starts`` has the number of each column's
        first value.
        """
        sizes = self.variables[k].size, self.variables[j].size  # how many values the two columns have
        # Of each key: its values, counted within the two columns (meaningless for keys of other columns).
        later = self.upper - self.starts[max(k, j)]
        earlier = self.lower - self.starts[min(k, j)]
        value_of_k, value_of_j = (later, earlier) if k > j else (earlier, later)
        table = self._table(max(k, j), min(k, j), sizes[0] * sizes[1], value_of_k * sizes[1] + value_of_j)
        return table.arranged([*sizes, self.cells.shape[1]])

    def _table(self, k: int, j: int, size: int, lines: Int) -> Integers:
        """Returns the counts of the pairs of columns k and j, k the later one, as a table of ``size`` lines (lines ×
        classes). ``lines`` has the line of each key. ``self.cells`` has the rows of each key (keys × classes).
        """
        upper_columns, lower_columns = self._columns_of_keys  # of the two values of each key
        keys_of_pair = np.flatnonzero((upper_columns == k) & (lower_columns == j))
        return self.cells.take(keys_of_pair, 0).merge(as_index(lines[keys_of_pair]), size, 0)

    def parents(self, level: float | None, root: str | None) -> list[int | None]:
        """Returns for each column the number of the column that it depends on, None for none: the Chow–Liu tree,
        without edges that are not significant at ``level`` (None: with all edges). Edges lead away from the column
        named ``root``, or from the first.
        """
        names = [variable.name for variable in self.variables]
        edges = [(first_column, second_column) for first_column, second_column, _ in self.rank_edges(level)]
        root_number = 0 if root is None else names.index(root)
        return direct_edges(spanning_forest(edges, len(names)), len(names), root_number)

    def information(self, n_rows: float, least: float, fewest: int = 1) -> tuple[Int, Int, PairInformation]:
        """Returns the pairs of columns with at least ``fewest`` values each, as two arrays of column numbers, and the
        information that each pair shares. A class counts if it has at least the share ``least`` of the ``n_rows`` rows.
        """
        usable_columns = as_index([k for k, variable in enumerate(self.variables) if variable.size >= fewest])
        sizes = [self.variables[k].size for k in usable_columns.tolist()]  # how many values each has
        tables = self._tables(usable_columns.tolist(), sizes)
        # Where the two columns of each pair are among ``usable_columns``, and what the pairs share.
        first_places, second_places, information = pair_information(tables, sizes, n_rows, least)
        return usable_columns[first_places], usable_columns[second_places], information

    def rank_edges(self, level: float | None) -> list[tuple[int, int, float]]:
        """Returns pairs of columns, by number, with I(A; B | class) in bits, largest first: those that are significant
        at ``level``, or all if it is None.
        """
        # The rows of the column with fewest gaps.
        n_rows = max((float(self.count_values(k).value.sum()) for k in range(len(self.variables))), default=0.0)
        if not n_rows > 0:
            return []
        least = 0.0 if level is None else FEWEST_ROWS / n_rows  # share of rows that a class needs
        # The numbers of each pair's columns, and what the pair shares.
        first, second, information = self.information(n_rows, least, fewest=2)
        bits = information.joint  # of each pair
        chosen_pairs = np.arange(len(first))  # where they are in these arrays
        if level is not None:
            measured_pairs = information.beyond_chance(lambda k: (str(first[k]), str(second[k])), n_rows, scale=1.0)
            bits = measured_pairs.bits
            chosen_pairs = measured_pairs.beyond(level, len(first))
        ranks = second, first, -np.round(bits, DECIMALS_OF_BITS)  # of each pair; the last one decides first
        order = chosen_pairs[np.lexsort([rank[chosen_pairs] for rank in ranks])]
        return [(int(first[pair]), int(second[pair]), float(bits[pair])) for pair in order]

    def _tables(self, varied: Sequence[int], sizes: Sequence[int]) -> Iterator[Real]:
        """Yields for each of the columns ``varied`` but the first a table of rows: values of all earlier ones × its own
        values × classes. ``sizes`` has the number of values of each. ``self.upper`` and ``self.lower`` have the numbers
        of each key's two values, counted over all columns; the upper one belongs to the later column. ``self.starts``
        has the number of each column's first value.
        """
        # Of each value, counting those of ``varied`` alone; −1: of another column.
        new_number = np.full(int(self.starts[-1]), -1)
        starts = np.cumsum([0, *sizes])  # the new number of the first value of each column
        for column, start, size in zip(varied, starts.tolist(), sizes, strict=False):
            new_number[self.starts[column] : self.starts[column + 1]] = start + np.arange(size)
        rows = self.cells.value  # keys × classes
        upper_columns, lower_columns = self._columns_of_keys  # of the two values of each key
        for start, size, column in zip(starts[1:].tolist(), sizes[1:], varied[1:], strict=False):
            table = np.zeros((start * size, rows.shape[1]))
            # Whether each key is a pair of this column and an earlier one of ``varied``; and the lines of those that are.
            is_pair = (upper_columns == column) & (lower_columns < column) & (new_number[self.lower] >= 0)
            lines = new_number[self.lower[is_pair]] * size + self.upper[is_pair] - self.starts[column]
            np.add.at(table, lines, rows[is_pair])
            yield table.reshape(start, size, rows.shape[1])


def _values_of(keys: Sequence[Any]) -> Iterable[tuple[int, Any]]:
    """Returns the values that rows have, each as a pair of its column's number and the value, from the keys of a tree:
    those whose two values are the same.
    """
    if isinstance(keys, Combinations):
        upper, lower = np.unravel_index(keys.cells, [len(axis) for axis in keys.axes])  # the numbers of their values
        numbered_values: Any = keys.axes[0]
        return [numbered_values[k] for k in upper[upper == lower].tolist()]
    return [upper for upper, lower in keys if upper == lower]


@dataclass(frozen=True, eq=False)
class DependencyTree:
    """The counts of pairs of columns, and the number of the column that each column depends on (``parents``), None for
    none.
    """

    pairs: CountedPairs
    parents: list[int | None]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The columns as variables, in order."""
        return self.pairs.variables

    @property
    def columns_with_values(self) -> list[int]:
        """The numbers of the columns that have a value in some row."""
        return [k for k, variable in enumerate(self.variables) if variable.size]

    @property
    def n_parameters(self) -> int:
        """The number of free parameters per class: each column has one distribution, or one for each value of its
        parent (``self.parents`` has its number).
        """
        sizes = [variable.size for variable in self.variables]  # how many values each column has
        n_distributions = (1 if parent is None else sizes[parent] for parent in self.parents)
        return sum(max(size - 1, 0) * copies for size, copies in zip(sizes, n_distributions, strict=True))

    def cells(self, k: int) -> Integers:
        """Returns the rows of column k by its values and classes (values × classes), or by the values of its parent too
        (values × classes × parent's values). ``self.parents`` has the number of each column's parent.
        """
        parent = self.parents[k]
        if parent is None:
            return self.pairs.count_values(k)
        table = self.pairs.count_pairs(k, parent)  # values × parent's values × classes
        cell_numbers = np.arange(np.prod(table.shape)).reshape(table.shape).transpose(0, 2, 1)
        # The parent's values become the last axis.
        return table.arranged(list(cell_numbers.shape), as_index(cell_numbers.reshape(-1)))


def spanning_forest(edges: Iterable[tuple[int, int]], n_nodes: int) -> list[tuple[int, int]]:
    """Returns those edges that close no cycle with earlier ones (Kruskal's algorithm), in their order. Edges are pairs
    of node numbers below ``n_nodes``, with the heaviest first.
    """
    parent_of = list(range(n_nodes))  # in the union–find forest: a node that is in the same tree

    def find(node: int) -> int:
        """Returns the node that stands for the tree in which a node is (union–find with path halving)."""
        while parent_of[node] != node:
            parent_of[node] = parent_of[parent_of[node]]
            node = parent_of[node]
        return node

    forest = []
    for first_node, second_node in edges:
        if (first_root := find(first_node)) != (second_root := find(second_node)):
            parent_of[second_root] = first_root
            forest.append((first_node, second_node))
    return forest


def direct_edges(edges: Iterable[tuple[int, int]], n_nodes: int, root: int = 0) -> list[int | None]:
    """Returns the number of the parent of each of ``n_nodes`` nodes, None for none, if edges (pairs of node numbers)
    lead away from ``root``, and in other trees of the forest from their first node.
    """
    neighbours: list[list[int]] = [[] for _ in range(n_nodes)]  # the numbers of each node's neighbours
    for first_node, second_node in edges:
        neighbours[first_node].append(second_node)
        neighbours[second_node].append(first_node)
    parents: list[int | None] = [None] * n_nodes
    visited: set[int] = set()
    for start in (root, *range(n_nodes)):
        waiting = [] if start in visited or start >= n_nodes else [start]  # visited nodes whose neighbours are not
        visited.update(waiting)
        while waiting:
            node = waiting.pop()
            for neighbour in neighbours[node]:
                if neighbour not in visited:
                    visited.add(neighbour)
                    parents[neighbour] = node
                    waiting.append(neighbour)
    return parents


# Answering ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeParameters(Parameters):
    """The probability tables of a tree. Missing values of a row are summed out exactly."""

    features: Features
    tree: DependencyTree
    forest: NodeForest

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The columns as variables, in order."""
        return self.tree.variables

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the part with which the kernel adds log P(values of the row | class) of the tree for each of these
        rows.
        """
        return [line_by_line(np.arange(rows.n_rows, dtype=np.int32), self.log_likelihood(self.value_numbers(rows)))]

    def value_numbers(self, rows: ColumnReader) -> list[ValueNumbers]:
        """Returns for each column the number of each row's value (rows), MISSING if there is none, UNSEEN if it was
        never counted.
        """
        threads = n_threads(None)
        all_missing = np.full(rows.n_rows, MISSING, dtype=np.int32)
        return [variable.value_numbers(rows, threads) if variable.size else all_missing for variable in self.variables]

    def log_likelihood(self, values: Sequence[ValueNumbers]) -> Real:
        """Returns log P(observed values | class) (rows × classes). ``values`` has for each column the numbers of the
        rows' values, negative where there is none. ``self.forest`` has the tables of the tree.
        """
        n_rows = len(values[0])
        scores = np.empty((n_rows, self.forest.size))  # rows × classes
        # ``width`` is how many numbers a row needs at most.
        rows_at_once = max(int(MOST_NUMBERS_AT_ONCE // max(self.forest.width, 1)), 1)
        for start in range(0, n_rows, rows_at_once):
            chunk = slice(start, start + rows_at_once)
            scores[chunk] = self.forest.log_joint([column[chunk] for column in values])
        return scores

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """Explains the first row: returns a term for each column that has a value, given the columns above it; parents
        come before their children. ``log_likelihoods`` are not used.
        """
        # Of the first row (columns).
        value_numbers = np.array([column[:1] for column in self.value_numbers(rows)], dtype=np.int32)[:, 0]
        # The columns that have a value, parents first (``forest.nodes`` has them children first).
        order = [node.variable for node in reversed(self.forest.nodes) if value_numbers[node.variable] != MISSING]
        # Artificial rows: the first has no value, and each of the next has the value of one more column.
        values_shown = np.full((len(value_numbers), len(order) + 1), MISSING, dtype=np.int32)  # columns × rows
        for n_shown, k in enumerate(order, 1):
            values_shown[k, n_shown:] = value_numbers[k]
        scores = self.log_likelihood(list(values_shown))  # rows × classes
        is_ruled_out = np.isneginf(scores[:-1])  # already, so that nothing is added
        # What each column of ``order`` adds (columns × classes).
        differences = np.where(is_ruled_out, 0.0, scores[1:] - np.where(is_ruled_out, 0.0, scores[:-1]))
        terms = []
        for k, difference in zip(order, differences, strict=True):
            [value] = rows.first([self.variables[k].name])
            terms.append(Term(self.variables[k].name, value, difference, seen=bool(value_numbers[k] != UNSEEN)))
        return terms

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each feature for a row of each of these ``classes`` (class numbers); returns an array per
        column.
        """
        drawn: dict[int, Int] = {}  # the number of each row's value, by column
        for node in reversed(self.forest.nodes):  # parents before their children
            # The number of each row's value in the parent's column.
            parent_values = drawn[node.parent] if node.parent is not None else np.zeros(len(classes), dtype=np.int64)
            # Cumulative probabilities (classes × parent's values × values).
            cumulative = np.cumsum(node.table, axis=2)[:, :, :-1]
            # Rows × values but the last: whether the drawn value is a later one.
            is_later = cumulative[classes, parent_values] <= rng.random(len(classes))[:, None]
            drawn[node.variable] = is_later.sum(axis=1)
        all_missing = np.full(len(classes), None, dtype=object)
        numbered_variables = enumerate(self.variables)
        return [variable.draw(drawn[k], rng) if k in drawn else all_missing for k, variable in numbered_variables]

    def never_seen(self, rows: ColumnReader) -> Bool:
        """Returns whether each row has a value that no counted row had (rows × 1)."""
        return np.any([column == UNSEEN for column in self.value_numbers(rows)], axis=0)[:, None]  # type: ignore[no-any-return]

    def categories(self, f: int, column: str) -> Keys | None:
        """Returns the values of a column of the tree, by its name; None for a column of numbers in bins. ``f`` is 0,
        the only feature.
        """
        variable = next(node for node in self.variables if node.name == column)
        return variable.values if variable.cuts is None else None
