"""NetworkCounts: a tally of a table of each node's values, and of a table of those together with its parents'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.arrays import Int
from banbury.errors import many
from banbury.families.column_tree import DrawnTree
from banbury.families.joint import table_of
from banbury.families.nodes import Variable, encode_variables
from banbury.model.networks.elimination import MOST_CELLS
from banbury.reading import Batch, Codes, Source
from banbury.sums import Combinations, Counts, Keys, as_index, cells_of, in_order, total
from banbury.tally.schema import ColumnFacts, Schema
from banbury.tally.table import Labels, Table
from banbury.tally.tally import Tally, count_rows

EVERY = ("rows",)  # the one class, of all rows
Parents = tuple[tuple[int, ...], ...]


def tables_of(variables: Sequence[Variable], parents: Parents) -> Schema:
    names = [variable.name for variable in variables]
    return Schema(tuple(table_of([names[v] for v in scope]) for scope in scopes_of(parents)))


def scopes_of(parents: Parents) -> list[tuple[int, ...]]:
    """The variables of each table of a network: each node alone, then each node with its parents."""
    return [*((v,) for v in range(len(parents))), *((v, *above) for v, above in enumerate(parents))]


def axes_of(variables: Sequence[Variable], parents: Parents) -> list[tuple[Keys, ...]]:
    return [tuple(variables[v].keys for v in scope) for scope in scopes_of(parents)]


def keys_at(places: Int, variables: Sequence[Variable], parents: Parents) -> list[Combinations]:
    """Returns the keys of each table from their positions among all combinations, one table after the other."""
    axes = axes_of(variables, parents)
    starts = np.cumsum([0, *(prod(map(len, table_axes)) for table_axes in axes)])
    parts = np.split(places, np.searchsorted(places, starts[1:-1]))
    return [
        Combinations(table_axes, part - start)
        for table_axes, part, start in zip(axes, parts, starts.tolist(), strict=False)
    ]


@dataclass(frozen=True, eq=False)
class NetworkCounts:
    """The tally of a network, which has one class. A row counts for a table if it has a value of each of its nodes.

    Keys are tuples of values, the node's first. Numbers that are cut into bins are represented by bin numbers.
    """

    variables: tuple[Variable, ...]
    parents: Parents
    tally: Tally

    @classmethod
    def of(cls, variables: Sequence[Variable], parents: Parents, tally: Tally) -> NetworkCounts:
        """Gives the variables the values that rows have or that are declared."""
        counts = tally.sums[0]
        counted_variables = tuple(
            v.of_keys(key for (key,) in keys) for v, keys in zip(variables, counts.keys, strict=False)
        )
        for v, above in enumerate(parents):
            check_size(counted_variables, v, above)
        return cls(counted_variables, parents, tally.with_classes(EVERY))

    @classmethod
    def count(
        cls, batch: Batch, variables: Sequence[Variable], parents: Parents, labels: Labels, target: int | None = None
    ) -> NetworkCounts:
        """Counts these rows; if there is a target, only those with a value of it."""
        columns = encode_variables(batch, variables, labels.threads)
        every = np.zeros(batch.n_rows, dtype=np.int32)
        if target is not None:
            every[columns.codes(variables[target].name).codes < 0] = -1
        schema = tables_of(variables, parents)
        weights = labels.weights_of(batch)
        part = count_rows(columns, schema, Codes(every, 0, EVERY), weights, labels.threads)
        return cls.of(variables, parents, replace(part, skipped=0))

    @classmethod
    def of_tables(
        cls, variables: tuple[Variable, ...], parents: Parents, rows: Integers, tables: Sequence[Integers]
    ) -> NetworkCounts:
        """Returns the counts of tables that have a cell for every combination of a node's values and of those with its
        parents' values.
        """
        parts = []
        scopes = scopes_of(parents)
        for scope, table in zip(scopes, tables, strict=True):
            axes = np.unravel_index(np.arange(prod(table.shape)), [variables[v].size for v in scope])
            names = ([variables[v].keys[k] for k in axis.tolist()] for v, axis in zip(scope, axes, strict=True))
            combined: Any = tuple(zip(*names, strict=True))
            parts.append((combined, table.arranged([prod(table.shape), 1])))
        counts = Counts.join(parts, 1).without_empty([])
        return cls.of(variables, parents, Tally(tables_of(variables, parents), EVERY, rows, (counts,)))

    @classmethod
    def of_tree(cls, tree: DrawnTree, target: Variable, rows: Integers) -> NetworkCounts:
        """Returns the counts of a tree next to a target with this many rows of each value."""
        place = {k: 1 + at for at, k in enumerate(tree.known)}
        parents: list[tuple[int, ...]] = [()]
        seen = [rows]
        cells = [rows]
        for k in tree.known:
            above = tree.parents[k]
            parents.append((0,) if above is None else (0, place[above]))
            seen.append(total(tree.pairs.alone(k), 1).arranged([tree.variables[k].size]))
            cells.append(tree.cells(k))
        variables = (target, *(tree.variables[k] for k in tree.known))
        return cls.of_tables(variables, tuple(parents), total(rows, 0), seen + cells)

    @property
    def rows(self) -> Integers:
        return self.tally.rows

    @cached_property
    def seen(self) -> tuple[Integers, ...]:
        return tuple(self._table(v, (v,)) for v in range(len(self.variables)))

    @cached_property
    def cells(self) -> tuple[Integers, ...]:
        """Returns for each node a table with a cell for every combination (values × values of each parent)."""
        n = len(self.variables)
        return tuple(self._table(n + v, (v, *above)) for v, above in enumerate(self.parents))

    def _table(self, f: int, scope: Sequence[int]) -> Integers:
        variables = [self.variables[v] for v in scope]
        shape = [variable.size for variable in variables]
        counts: Counts = self.tally.sums[0]
        keys, cells = counts.feature(f)
        return cells.merge(cells_of(keys, tuple(v.keys for v in variables)), prod(shape), 0).arranged(shape)

    @property
    def places(self) -> Int:
        """The positions of the keys among all combinations, one table after the other."""
        table_places = []
        start = 0
        for axes, keys in zip(axes_of(self.variables, self.parents), self.tally.sums[0].keys, strict=True):
            table_places.append(start + cells_of(keys, axes))
            start += prod(map(len, axes))
        return np.concatenate(table_places)

    # The algebra

    def _with(self, other: NetworkCounts, combine: Callable[[Tally, Tally], Any]) -> Any:
        """What is made of both tallies; raises where they do not count the same things."""
        why = _other_structure(self._names(), other._names())
        for mine, theirs in zip(self.variables, other.variables, strict=False):
            why = why or mine.differs(theirs)
        if why:
            raise errors.unlike_networks(why)
        return combine(self.tally, other.tally)

    def _names(self) -> dict[str, list[str]]:
        names = [variable.name for variable in self.variables]
        return {name: [names[p] for p in above] for name, above in zip(names, self.parents, strict=True)}

    def __add__(self, other: NetworkCounts) -> NetworkCounts:
        return NetworkCounts.of(self.variables, self.parents, self._with(other, Tally.__add__))

    def __sub__(self, other: NetworkCounts) -> NetworkCounts:
        try:
            left = NetworkCounts.of(self.variables, self.parents, self._with(other, Tally.__sub__))
        except errors.NegativeCount as short:
            key: Any = getattr(short, "key", None)
            fewer = getattr(short, "left", None)
            if fewer is None:  # more rows have a value than there are
                fewer = (self.rows - other.rows).value - (self.tally.sums[0] - other.tally.sums[0]).present.value
            for node in self.variables if key is not None else ():
                if node.name == short.feature:  # type: ignore[attr-defined]
                    raise errors.negative_rows(fewer, node.name, node.name_of_key(key[0])) from None
            raise errors.negative_rows(np.min(fewer), None, None) from None
        return left.check_consistency()

    def check_consistency(self) -> NetworkCounts:
        """Returns these counts. Raises an error if no rows can have them, because a value occurs more often with its
        parents' values than in all.
        """
        counts = self.tally.sums[0]
        n = len(self.variables)
        for v, variable in enumerate(self.variables):
            (alone, seen), (keys, cells) = counts.feature(v), counts.feature(n + v)
            node_keys = [key[0] for key in keys]
            every = in_order({key[0] for key in (*alone, *keys)})
            place = {key: k for k, key in enumerate(every)}
            seen = seen.merge(as_index([place[key] for (key,) in alone]), len(every), 0)
            left = seen - cells.merge(as_index([place[key] for key in node_keys]), len(every), 0)
            for k, _ in np.argwhere(left.is_negative()):
                raise errors.negative_rows(left.value[k, 0], variable.name, variable.name_of_key(every[k]))
        return self

    def __mul__(self, factor: float) -> NetworkCounts:
        return NetworkCounts.of(self.variables, self.parents, self.tally * factor)

    def same(self, other: NetworkCounts) -> bool:
        return bool(self._with(other, Tally.__eq__))


def _other_structure(here: Mapping[str, Sequence[str]], there: Mapping[str, Sequence[str]]) -> str | None:
    """How the parents of two networks' nodes differ, or None."""
    for named, lacking in (("the other", set(here) - set(there)), ("this one", set(there) - set(here))):
        if lacking:
            return f"{named} has no node {errors.listed(map(repr, sorted(lacking)))}"
    for name in here:
        if here[name] != there[name]:
            mine, theirs = (errors.listed(above) or "none" for above in (here[name], there[name]))
            return f"the parents of {name!r} are {mine} in one network and {theirs} in the other"
    if list(here) != list(there):
        return f"the nodes are in a different order: {errors.listed(here)} and {errors.listed(there)}"
    return None


def check_size(variables: Sequence[Variable], v: int, parents: Sequence[int]) -> None:
    cells = prod(variables[u].size for u in (v, *parents))
    if cells > MOST_CELLS:
        name = variables[v].name
        sizes = " × ".join(f"{variables[u].size:,} of {variables[u].name!r}" for u in (v, *parents))
        raise errors.TooManyCells(
            f"the table of {name!r} given its {many(len(parents), 'parent')} would have {cells:,} cells ({sizes}), but "
            f"the limit is {MOST_CELLS:,}. Use fewer parents, fewer bins, or join rare values.",
            column=name,
            cells=cells,
        )


def count_batches(source: Source, labels: Labels, begin: Callable[[Batch, ColumnFacts], Callable[[Batch], Any]]) -> Any:
    """Sums over batches, with what the first batch settles. If a column then needs a wider type, everything is read
    again.
    """
    so_far: list[Any] = []  # what counts a batch, and what it counted
    table = Table(source, labels)
    for batch in table.batches("counting", so_far.clear, quietly=True):
        count = so_far[0] if so_far else begin(batch, table.facts)
        part = count(batch)
        so_far[:] = [count, so_far[1] + part if so_far else part]
    return so_far[1]
