"""NetworkCounts: the tally of a network. It counts the values of each node, alone and together with those of its parents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.arrays import Int
from banbury.errors import many
from banbury.families.column_tree import DependencyTree
from banbury.families.family import Features
from banbury.families.joint import table_of
from banbury.families.nodes import Variable, encode_variables
from banbury.model.networks.elimination import MOST_CELLS
from banbury.reading import Batch, Codes, Source
from banbury.sums import Combinations, Counts, Keys, as_index, cells_of, sort_keys, sum_axis
from banbury.tally.schema import ColumnFacts, Schema
from banbury.tally.table import Labels, Table
from banbury.tally.tally import Tally, count_rows

EVERY = ("rows",)  # the one class, of all rows
Parents = tuple[tuple[int, ...], ...]


def scopes_of(parents: Parents) -> list[tuple[int, ...]]:
    """Returns the variables of each table that is counted, by number: each node alone, then each node with its parents."""
    return [*((v,) for v in range(len(parents))), *((v, *above) for v, above in enumerate(parents))]


def tables_of(variables: Sequence[Variable], parents: Parents) -> Schema:
    """Returns the schema of a network's tally, whose features are its tables."""
    names = [variable.name for variable in variables]
    return Schema(Features.of(table_of([names[v] for v in scope]) for scope in scopes_of(parents)))


def axes_of(variables: Sequence[Variable], parents: Parents) -> list[tuple[Keys, ...]]:
    """Returns for each table the values of the variables that are its axes."""
    return [tuple(variables[v].keys for v in scope) for scope in scopes_of(parents)]


def keys_at(cell_numbers: Int, variables: Sequence[Variable], parents: Parents) -> list[Combinations]:
    """Returns the keys of the cells with these numbers, table by table. The cells of all tables are numbered one table
    after the other, and ``cell_numbers`` are ascending.
    """
    axes = axes_of(variables, parents)
    starts = np.cumsum([0, *(prod(map(len, table_axes)) for table_axes in axes)])
    numbers_by_table = np.split(cell_numbers, np.searchsorted(cell_numbers, starts[1:-1]))
    return [
        Combinations(table_axes, numbers - start)
        for table_axes, numbers, start in zip(axes, numbers_by_table, starts.tolist(), strict=False)
    ]


@dataclass(frozen=True, eq=False)
class NetworkCounts:
    """The tally of a network, which has one class. A row counts for a table if it has a value of every node in it.

    Keys are tuples of values: the node's, then those of its parents. Numbers that are cut into bins are represented by
    bin numbers.
    """

    variables: tuple[Variable, ...]
    parents: Parents
    tally: Tally

    @classmethod
    def of(cls, variables: Sequence[Variable], parents: Parents, tally: Tally) -> NetworkCounts:
        """Returns the counts in a tally; their variables have the values that were counted or declared."""
        counts = tally.sums[0]
        counted_variables = tuple(
            variable.of_keys(key for (key,) in keys) for variable, keys in zip(variables, counts.keys, strict=False)
        )
        for v, above in enumerate(parents):
            check_size(counted_variables, v, above)
        return cls(counted_variables, parents, tally._with_classes(EVERY))

    @classmethod
    def count(
        cls, batch: Batch, variables: Sequence[Variable], parents: Parents, labels: Labels, target: int | None = None
    ) -> NetworkCounts:
        """Counts the rows of a batch; if there is a ``target`` (a variable number), only those with a value of it."""
        columns = encode_variables(batch, variables, labels.threads)
        class_numbers = np.zeros(batch.n_rows, dtype=np.int32)
        if target is not None:
            class_numbers[columns.codes(variables[target].name).codes < 0] = -1
        schema = tables_of(variables, parents)
        weights = labels.weights_of(batch)
        tally = count_rows(columns, schema, Codes(class_numbers, 0, EVERY), weights, labels.threads)
        return cls.of(variables, parents, replace(tally, skipped=0))

    @classmethod
    def of_tree(cls, tree: DependencyTree, target: Variable, rows: Integers) -> NetworkCounts:
        """Returns the counts of the network of a tree. The target is node 0 and a parent of every other node.

        Args:
            tree: The tree of the other columns; ``tree.known`` are those with a value in some row.
            rows: The number of rows with each value of the target.
        """
        node_of_column = {k: node for node, k in enumerate(tree.columns_with_values, 1)}
        parents: list[tuple[int, ...]] = [()]
        node_tables = [rows]
        tables_with_parents = [rows]
        for k in tree.columns_with_values:
            parent = tree.parents[k]
            parents.append((0,) if parent is None else (0, node_of_column[parent]))
            node_tables.append(sum_axis(tree.pairs.count_values(k), 1).arranged([tree.variables[k].size]))
            tables_with_parents.append(tree.cells(k))
        variables = (target, *(tree.variables[k] for k in tree.columns_with_values))
        keys_and_cells = []
        for axes, table in zip(axes_of(variables, tuple(parents)), node_tables + tables_with_parents, strict=True):
            keys: Any = tuple(product(*axes))
            keys_and_cells.append((keys, table.arranged([len(keys), 1])))
        counts = Counts.join(keys_and_cells, 1).without_empty([])
        tally = Tally(tables_of(variables, tuple(parents)), EVERY, sum_axis(rows, 0), (counts,))
        return cls.of(variables, tuple(parents), tally)

    @property
    def rows(self) -> Integers:
        """The number of rows, exactly."""
        return self.tally.rows

    @cached_property
    def seen(self) -> tuple[Integers, ...]:
        """The number of rows with each value of each node."""
        return tuple(self._table(v) for v in range(len(self.variables)))

    @cached_property
    def cells(self) -> tuple[Integers, ...]:
        """The number of rows with each value of a node and of its parents (values × values of each parent), by node."""
        n_nodes = len(self.variables)
        return tuple(self._table(n_nodes + v) for v in range(n_nodes))

    def _table(self, number: int) -> Integers:
        """Returns a table of counts by its number. It has a cell for every combination of its variables' values."""
        axes = axes_of(self.variables, self.parents)[number]
        shape = [len(values) for values in axes]
        counts: Counts = self.tally.sums[0]
        keys, cells = counts.feature(number)
        return cells.merge(cells_of(keys, axes), prod(shape), 0).arranged(shape)

    @property
    def places(self) -> Int:
        """The numbers of the cells that rows have, as ``keys_at`` takes them."""
        cell_numbers = []
        start = 0
        for axes, keys in zip(axes_of(self.variables, self.parents), self.tally.sums[0].keys, strict=True):
            cell_numbers.append(start + cells_of(keys, axes))
            start += prod(map(len, axes))
        return np.concatenate(cell_numbers)

    # The algebra

    def _check_same_structure(self, other: NetworkCounts) -> None:
        """Raises an error if the other counts are those of another structure, or of nodes with other bins or families."""
        reason = _describe_difference(self._parent_names(), other._parent_names())
        for node, other_node in zip(self.variables, other.variables, strict=False):
            reason = reason or node.incompatibility(other_node)
        if reason:
            raise errors.unlike_networks(reason)

    def _parent_names(self) -> dict[str, list[str]]:
        """Returns the names of the parents of each node, by the name of the node."""
        names = [variable.name for variable in self.variables]
        return {name: [names[p] for p in above] for name, above in zip(names, self.parents, strict=True)}

    def __add__(self, other: NetworkCounts) -> NetworkCounts:
        self._check_same_structure(other)
        return NetworkCounts.of(self.variables, self.parents, self.tally + other.tally)

    def __sub__(self, other: NetworkCounts) -> NetworkCounts:
        self._check_same_structure(other)
        try:
            remaining = NetworkCounts.of(self.variables, self.parents, self.tally - other.tally)
        except errors.NegativeCount as problem:
            key: Any = getattr(problem, "key", None)
            n_missing = getattr(problem, "left", None)
            if n_missing is None:  # more rows would have a value than there are rows
                n_missing = (self.rows - other.rows).value - (self.tally.sums[0] - other.tally.sums[0]).present.value
            for node in self.variables if key is not None else ():
                if node.name == problem.feature:  # type: ignore[attr-defined]
                    raise errors.negative_rows(n_missing, node.name, node.name_of_key(key[0])) from None
            raise errors.negative_rows(np.min(n_missing), None, None) from None
        return remaining.check_consistency()

    def check_consistency(self) -> NetworkCounts:
        """Returns these counts. Raises an error if no rows can have them, because more rows have a value together with
        parents' values than have it at all.
        """
        counts = self.tally.sums[0]
        for v, variable in enumerate(self.variables):
            node_table = counts.feature(v)
            table_with_parents = counts.feature(len(self.variables) + v)
            values = sort_keys({key[0] for keys, _ in (node_table, table_with_parents) for key in keys})
            place_of_value = {value: k for k, value in enumerate(values)}
            rows_with_value, rows_with_parents = (
                cells.merge(as_index([place_of_value[key[0]] for key in keys]), len(values), 0)
                for keys, cells in (node_table, table_with_parents)
            )
            rows_without_parents = rows_with_value - rows_with_parents
            for k, _ in np.argwhere(rows_without_parents.is_negative()):
                raise errors.negative_rows(
                    rows_without_parents.value[k, 0], variable.name, variable.name_of_key(values[k])
                )
        return self

    def __mul__(self, factor: float) -> NetworkCounts:
        return NetworkCounts.of(self.variables, self.parents, self.tally * factor)

    def same(self, other: NetworkCounts) -> bool:
        """Whether both are the same counts; raises an error if they are not counts of the same tables."""
        self._check_same_structure(other)
        return bool(self.tally == other.tally)


def _describe_difference(
    own_parents: Mapping[str, Sequence[str]], other_parents: Mapping[str, Sequence[str]]
) -> str | None:
    """Returns how the structures of two networks differ, or None if they do not. Both arguments map nodes to parents."""
    for network, missing_nodes in (
        ("the other", set(own_parents) - set(other_parents)),
        ("this one", set(other_parents) - set(own_parents)),
    ):
        if missing_nodes:
            return f"{network} has no node {errors.listed(map(repr, sorted(missing_nodes)))}"
    for name in own_parents:
        if own_parents[name] != other_parents[name]:
            own_names, other_names = (
                errors.listed(above) or "none" for above in (own_parents[name], other_parents[name])
            )
            return f"the parents of {name!r} are {own_names} in one network and {other_names} in the other"
    if list(own_parents) != list(other_parents):
        return f"the nodes are in a different order: {errors.listed(own_parents)} and {errors.listed(other_parents)}"
    return None


def check_size(variables: Sequence[Variable], v: int, parents: Sequence[int]) -> None:
    """Raises an error if the table of a node given its parents would have too many cells."""
    n_cells = prod(variables[u].size for u in (v, *parents))
    if n_cells > MOST_CELLS:
        name = variables[v].name
        sizes = " × ".join(f"{variables[u].size:,} of {variables[u].name!r}" for u in (v, *parents))
        raise errors.TooManyCells(
            f"the table of {name!r} given its {many(len(parents), 'parent')} would have {n_cells:,} cells ({sizes}), but "
            f"the limit is {MOST_CELLS:,}. Use fewer parents, fewer bins, or join rare values.",
            column=name,
            cells=n_cells,
        )


def count_batches(source: Source, labels: Labels, begin: Callable[[Batch, ColumnFacts], Callable[[Batch], Any]]) -> Any:
    """Counts batch by batch and returns the sum. If a later batch needs a wider type for a column, all rows are read
    again.

    Args:
        begin: Called with the first batch; returns the function that counts a batch.
    """
    count_and_sum: list[Any] = []  # the function that counts a batch, and the sum so far; empty before the first batch
    table = Table(source, labels)
    for batch in table.batches("counting", count_and_sum.clear, quietly=True):
        count = count_and_sum[0] if count_and_sum else begin(batch, table.facts)
        counts = count(batch)
        count_and_sum[:] = [count, count_and_sum[1] + counts if count_and_sum else counts]
    return count_and_sum[1]
