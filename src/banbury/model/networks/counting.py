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

ONE_CLASS = ("rows",)  # the one class, of all rows
Parents = tuple[tuple[int, ...], ...]


def scopes_of(parents: Parents) -> list[tuple[int, ...]]:
    """Returns the numbers of the nodes of each table that is counted: each node alone, then each node with its parents.
    ``parents`` has the numbers of each node's parents.
    """
    return [
        *((node,) for node in range(len(parents))),
        *((node, *node_parents) for node, node_parents in enumerate(parents)),
    ]


def schema_of_tables(variables: Sequence[Variable], parents: Parents) -> Schema:
    """Returns the schema of a network's tally, whose features are its tables, in the order of ``scopes_of``.
    ``parents`` has the numbers of each variable's parents.
    """
    names = [variable.name for variable in variables]
    return Schema(Features.of(table_of([names[node] for node in scope]) for scope in scopes_of(parents)))


def axes_of(variables: Sequence[Variable], parents: Parents) -> list[tuple[Keys, ...]]:
    """Returns for each table of a network, in the order of ``scopes_of``, the keys (values or bin numbers) of the
    variables that are its axes. ``parents`` has the numbers of each variable's parents.
    """
    return [tuple(variables[node].keys for node in scope) for scope in scopes_of(parents)]


def keys_at(cell_numbers: Int, variables: Sequence[Variable], parents: Parents) -> list[Combinations]:
    """Returns the keys of the cells with these numbers, table by table. The cells of all tables of a network are
    numbered one table after the other, and ``cell_numbers`` are ascending. ``parents`` has the numbers of each
    variable's parents.
    """
    axes = axes_of(variables, parents)  # of each table, the keys along each axis
    starts = np.cumsum([0, *(prod(map(len, table_axes)) for table_axes in axes)])  # the first cell of each table
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

    variables: tuple[Variable, ...]  # one per node
    parents: Parents  # the numbers of each node's parents
    tally: Tally  # has one feature per table, in the order of ``scopes_of``

    @classmethod
    def of(cls, variables: Sequence[Variable], parents: Parents, tally: Tally) -> NetworkCounts:
        """Returns the counts in a tally of these variables; their variables have the values that were counted or
        declared. ``parents`` has the numbers of each variable's parents. Raises an error if a table would be too large.
        """
        counts = tally.sums[0]  # ``keys`` begin with those of each variable alone
        counted_variables = tuple(
            variable.of_keys(key for (key,) in keys) for variable, keys in zip(variables, counts.keys, strict=False)
        )
        for node, node_parents in enumerate(parents):
            check_size(counted_variables, node, node_parents)
        return cls(counted_variables, parents, tally._with_classes(ONE_CLASS))

    @classmethod
    def count(
        cls, batch: Batch, variables: Sequence[Variable], parents: Parents, labels: Labels, target: int | None = None
    ) -> NetworkCounts:
        """Returns the counts of the rows of a batch; if there is a ``target`` (a variable number), only of those with a
        value of it. ``parents`` has the numbers of each variable's parents, ``labels`` the weights of the rows and the
        number of threads.
        """
        columns = encode_variables(batch, variables, labels.threads)  # a batch with a column of codes per variable
        class_numbers = np.zeros(batch.n_rows, dtype=np.int32)
        if target is not None:
            class_numbers[columns.codes(variables[target].name).codes < 0] = -1  # not counted
        schema = schema_of_tables(variables, parents)
        weights = labels.weights_of(batch)
        tally = count_rows(columns, schema, Codes(class_numbers, low=0, values=ONE_CLASS), weights, labels.threads)
        return cls.of(variables, parents, replace(tally, skipped=0))

    @classmethod
    def of_tree(cls, tree: DependencyTree, target: Variable, rows: Integers) -> NetworkCounts:
        """Returns the counts of the network of a tree. The target is node 0 and a parent of every other node.

        Args:
            tree: The tree of the other columns; ``tree.columns_with_values`` are the numbers of those with a value in
                some row, and ``tree.parents`` has the number of each column's parent, or None.
            target: The variable of the classes.
            rows: The number of rows with each value of the target.
        """
        node_of_column = {column: node for node, column in enumerate(tree.columns_with_values, start=1)}
        parents: list[tuple[int, ...]] = [()]
        node_tables = [rows]  # of each node: rows by value
        tables_with_parents = [rows]  # of each node: values × values of each parent
        for column in tree.columns_with_values:
            parent_column = tree.parents[column]
            parents.append((0,) if parent_column is None else (0, node_of_column[parent_column]))
            node_tables.append(sum_axis(tree.pairs.count_values(column), 1).arranged([tree.variables[column].size]))
            tables_with_parents.append(tree.cells(column))
        variables = (target, *(tree.variables[column] for column in tree.columns_with_values))
        keys_and_cells = []  # of each table: a tuple of values per cell, and the rows of each (cells × 1)
        for axes, table in zip(axes_of(variables, tuple(parents)), node_tables + tables_with_parents, strict=True):
            keys: Any = tuple(product(*axes))
            keys_and_cells.append((keys, table.arranged([len(keys), 1])))
        counts = Counts.join(keys_and_cells, 1).without_empty([])
        tally = Tally(schema_of_tables(variables, tuple(parents)), ONE_CLASS, sum_axis(rows, 0), (counts,))
        return cls.of(variables, tuple(parents), tally)

    @property
    def rows(self) -> Integers:
        """The number of rows, as exact sums with one entry, that of the only class."""
        return self.tally.rows

    @cached_property
    def value_counts(self) -> tuple[Integers, ...]:
        """The number of rows with each value of each node: an array (values,) by node."""
        return tuple(self._table(node) for node in range(len(self.variables)))

    @cached_property
    def cell_counts(self) -> tuple[Integers, ...]:
        """The number of rows with each value of a node and of its parents (values × values of each parent), by node."""
        n_nodes = len(self.variables)
        return tuple(self._table(n_nodes + node) for node in range(n_nodes))

    def _table(self, number: int) -> Integers:
        """Returns the table of counts with this number, with an axis for each of its variables. It has a cell for every
        combination of their values. Tables are numbered as in ``scopes_of``: each node alone, then each with its parents.
        """
        axes = axes_of(self.variables, self.parents)[number]
        shape = [len(values) for values in axes]
        counts: Counts = self.tally.sums[0]
        keys, cells = counts.feature(number)  # tuples of values that rows have, and their rows (keys × 1)
        return cells.merge(cells_of(keys, axes), prod(shape), 0).arranged(shape)

    @property
    def cell_numbers(self) -> Int:
        """The numbers of the cells that have rows, in ascending order, as ``keys_at`` takes them. The cells of all
        tables are numbered one table after the other.
        """
        numbers_by_table = []
        start = 0  # the number of the table's first cell
        for axes, keys in zip(axes_of(self.variables, self.parents), self.tally.sums[0].keys, strict=True):
            numbers_by_table.append(start + cells_of(keys, axes))
            start += prod(map(len, axes))
        return np.concatenate(numbers_by_table)

    # The algebra

    def _check_same_structure(self, other: NetworkCounts) -> None:
        """Raises an error unless ``other`` has the same structure, and nodes with the same bins and families."""
        difference = self._describe_other_structure(other)
        if difference:
            raise errors.unlike_networks(difference)

    def _describe_other_structure(self, other: NetworkCounts) -> str | None:
        """Returns how the structure of ``other``, or the bins or family of a node, differ from these; None if they do
        not.
        """
        difference = _describe_difference(self._parent_names(), other._parent_names())
        for variable, other_variable in zip(self.variables, other.variables, strict=False):
            difference = difference or variable.incompatibility(other_variable)
        return difference

    def _parent_names(self) -> dict[str, list[str]]:
        """Returns the names of the parents of each node, by the name of the node."""
        names = [variable.name for variable in self.variables]
        return {
            name: [names[parent] for parent in node_parents]
            for name, node_parents in zip(names, self.parents, strict=True)
        }

    def __add__(self, other: NetworkCounts) -> NetworkCounts:
        """Returns the counts of both together; raises an error if they count different tables."""
        self._check_same_structure(other)
        return NetworkCounts.of(self.variables, self.parents, self.tally + other.tally)

    def __sub__(self, other: NetworkCounts) -> NetworkCounts:
        """Returns these counts less the other ones; raises an error if they count different tables, or if the other
        rows are not among these.
        """
        self._check_same_structure(other)
        try:
            remaining = NetworkCounts.of(self.variables, self.parents, self.tally - other.tally)
        except errors.NegativeCount as problem:
            key: Any = getattr(problem, "key", None)  # of the negative cell: a tuple that begins with a node's value
            n_missing = getattr(problem, "left", None)  # the negative number of rows
            if n_missing is None:  # more rows would have a value than there are rows
                n_missing = (self.rows - other.rows).value - (self.tally.sums[0] - other.tally.sums[0]).present.value
            for variable in self.variables if key is not None else ():
                if variable.name == problem.feature:  # type: ignore[attr-defined]
                    raise errors.negative_rows(n_missing, variable.name, variable.name_of_key(key[0])) from None
            raise errors.negative_rows(np.min(n_missing), None, None) from None
        return remaining.check_consistency()

    def check_consistency(self) -> NetworkCounts:
        """Returns these counts. Raises an error if no rows can have them, because more rows have a value together with
        parents' values than have it at all.
        """
        counts = self.tally.sums[0]
        for node, variable in enumerate(self.variables):
            # Each is a pair: keys (tuples that begin with a value of the node), and rows by key (keys × 1).
            node_table = counts.feature(node)
            table_with_parents = counts.feature(len(self.variables) + node)
            values = sort_keys({key[0] for keys, _ in (node_table, table_with_parents) for key in keys})
            number_of_value = {value: number for number, value in enumerate(values)}
            rows_with_value, rows_with_parents = (  # values × 1
                cells.merge(as_index([number_of_value[key[0]] for key in keys]), len(values), 0)
                for keys, cells in (node_table, table_with_parents)
            )
            rows_without_parents = rows_with_value - rows_with_parents
            for value_number, _ in np.argwhere(rows_without_parents.is_negative()):
                raise errors.negative_rows(
                    rows_without_parents.value[value_number, 0],
                    variable.name,
                    variable.name_of_key(values[value_number]),
                )
        return self

    def __mul__(self, factor: float) -> NetworkCounts:
        """Returns the counts with the weight of every row multiplied by a factor."""
        return NetworkCounts.of(self.variables, self.parents, self.tally * factor)

    def equals(self, other: NetworkCounts) -> bool:
        """Whether both count the same tables and have equal counts."""
        return not self._describe_other_structure(other) and self.tally == other.tally


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
                errors.listed(node_parents) or "none" for node_parents in (own_parents[name], other_parents[name])
            )
            return f"the parents of {name!r} are {own_names} in one network and {other_names} in the other"
    if list(own_parents) != list(other_parents):
        return f"the nodes are in a different order: {errors.listed(own_parents)} and {errors.listed(other_parents)}"
    return None


def check_size(variables: Sequence[Variable], node: int, parents: Sequence[int]) -> None:
    """Raises an error if the table of a node given its parents would have more than ``MOST_CELLS`` cells. Nodes are
    numbers of ``variables``.
    """
    n_cells = prod(variables[number].size for number in (node, *parents))
    if n_cells > MOST_CELLS:
        name = variables[node].name
        sizes = " × ".join(f"{variables[number].size:,} of {variables[number].name!r}" for number in (node, *parents))
        raise errors.TooManyCells(
            f"the table of {name!r} given its {many(len(parents), 'parent')} would have {n_cells:,} cells ({sizes}), but "
            f"the limit is {MOST_CELLS:,}. Use fewer parents, fewer bins, or join rare values.",
            column=name,
            cells=n_cells,
        )


def count_batches(
    source: Source, labels: Labels, begin: Callable[[Batch, ColumnFacts], Callable[[Batch], NetworkCounts]]
) -> NetworkCounts:
    """Counts batch by batch and returns the sum. If a later batch needs a wider type for a column, all rows are read
    again.

    Args:
        source: The rows.
        labels: The weights of the rows and the number of threads.
        begin: Called with the first batch and what is known of its columns; returns the function that counts a batch.
    """
    total: NetworkCounts | None = None  # of the batches so far

    def start_over() -> None:
        """Forgets what was counted, because all rows are read again."""
        nonlocal total
        total = None

    table = Table(source, labels)
    for batch in table.batches("counting", start_over, quietly=True):
        if total is None:
            count = begin(batch, table.facts)  # counts a batch
            total = count(batch)
        else:
            total = total + count(batch)
    assert total is not None  # a table without rows raises an error
    return total
