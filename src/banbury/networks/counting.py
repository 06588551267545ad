"""NetworkCounts: rows of each value of a node, and of it with each of its parents'. They add and subtract as tallies do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.errors import many
from banbury.networks.elimination import MOST_CELLS
from banbury.networks.variables import MISSING, Places, Variable, check_length
from banbury.readers import Batch, Source
from banbury.sums import Counts, as_index, in_parts, is_decimal, some, total, weighing
from banbury.table import Labels, Table
from banbury.tally import ROUNDED


class Weighed(NamedTuple):
    """Weights of rows, as the kernels take them."""

    weights: NDArray[Any] | None

    @classmethod
    def of(cls, weights: Real | None) -> Weighed:
        return cls(None if weights is None else in_parts(weights))

    def without_idle(self, places: Places) -> Places:
        """The numbers, but of a row that weighs nothing none."""
        return places if self.weights is None else np.where(weighing(self.weights), places, np.int32(MISSING))


def tallied(
    columns: Sequence[Places], sizes: Sequence[int], within: Places, n: int, rows: Weighed, threads: int
) -> Integers:
    """Rows of each value of each column, one column below the other, within each of ``n`` groups."""
    low, size = np.zeros(len(columns), dtype=np.int64), np.array(sizes, dtype=np.int64)
    return _core.count_codes(list(columns), low, size, within, n, rows.weights, threads)


def joint_places(places: Sequence[Places], sizes: Sequence[int], n_rows: int) -> Places:
    """The number of each row's cell in a table of these variables; MISSING where one of them is."""
    cells = np.zeros(n_rows, dtype=np.int32)
    known = np.ones(n_rows, dtype=np.bool_)
    for each, size in zip(places, sizes, strict=True):
        cells = cells * np.int32(size) + np.maximum(each, 0)
        known &= each >= 0
    return np.where(known, cells, np.int32(MISSING))


def turned(cells: Integers, axes: tuple[int, ...]) -> Integers:
    """The same cells with their axes in another order."""
    index = np.arange(prod(cells.shape)).reshape(cells.shape).transpose(axes)
    return cells.arranged(list(index.shape), as_index(index.reshape(-1)))


def summed(cells: Integers, axis: int) -> Integers:
    every = total(cells, axis)
    return every.arranged([*every.shape[:axis], *every.shape[axis + 1 :]])


@dataclass(frozen=True, eq=False)
class NetworkCounts:
    """Counts of a network: of each node's values, then of each node's values together with those of its parents.

    A row counts for a node and its parents where it has a value of each of them. Keys are values, or tuples of them, the node's
    first; of numbers that are cut they are the numbers of the bins.
    """

    variables: tuple[Variable, ...]
    parents: tuple[tuple[int, ...], ...]
    rows: Integers  # (1,)
    counts: Counts  # of one class
    rounded: bool = False  # they were scaled by a fraction, or kept as doubles once

    @classmethod
    def count(
        cls,
        batch: Batch,
        variables: Sequence[Variable],
        parents: tuple[tuple[int, ...], ...],
        labels: Labels,
        target: int | None = None,
    ) -> NetworkCounts:
        """Of these rows; of those alone that have a value of the target, where there is one."""
        rows, threads, n_rows = Weighed.of(labels.weights_of(batch)), labels.threads, batch.n_rows
        check_length(rows.weights, n_rows)
        met = [variable.met(batch, threads) for variable in variables]
        known, places = tuple(variable for variable, _ in met), [each for _, each in met]
        all_of_them = rows.without_idle(np.zeros(n_rows, dtype=np.int32))
        if target is not None:
            all_of_them = np.where(places[target] < 0, np.int32(MISSING), all_of_them)
        seen, cells = [], []
        for v, above in enumerate(parents):
            sizes = [known[p].size for p in above]
            check_size(known, v, above)
            seen.append(tallied([places[v]], [known[v].size], all_of_them, 1, rows, threads))
            within = joint_places([*(places[p] for p in above), all_of_them], [*sizes, 1], n_rows)
            cells.append(tallied([places[v]], [known[v].size], within, prod(sizes), rows, threads))
        n = _core.count_classes(all_of_them, 1, rows.weights, threads)
        return cls.of_tables(known, parents, n, seen, cells)

    @classmethod
    def of_tables(
        cls,
        variables: tuple[Variable, ...],
        parents: tuple[tuple[int, ...], ...],
        rows: Integers,
        seen: Sequence[Integers],
        cells: Sequence[Integers],
        rounded: bool = False,
    ) -> NetworkCounts:
        """From tables that have a cell for every combination: of each node's values, and of those with its parents'."""
        keys = [variable.keys for variable in variables]
        parts = [(own, rows.arranged([len(own), 1])) for own, rows in zip(keys, seen, strict=True)]
        for v, above in enumerate(parents):
            flat = cells[v].arranged([prod(cells[v].shape), 1])
            used = np.flatnonzero(some(flat))
            axes = np.unravel_index(used, [len(keys[each]) for each in (v, *above)])
            names = ([keys[each][k] for k in axis.tolist()] for each, axis in zip((v, *above), axes, strict=True))
            combined: Any = tuple(zip(*names, strict=True))
            parts.append((combined, flat.take(as_index(used), 0)))
        return cls(variables, parents, rows, Counts.join(parts, 1), rounded).trimmed()

    @cached_property
    def seen(self) -> tuple[Integers, ...]:
        """Rows of each value of each node."""
        return tuple(self.counts.feature(v)[1].arranged([each.size]) for v, each in enumerate(self.variables))

    @cached_property
    def cells(self) -> tuple[Integers, ...]:
        """Of each node a table with a cell for every combination, (values, values of each parent)."""
        return tuple(self._table(v) for v in range(len(self.variables)))

    def _table(self, v: int) -> Integers:
        scope = (v, *self.parents[v])
        check_size(self.variables, v, self.parents[v])
        shape = [self.variables[each].size for each in scope]
        keys, cells = self.counts.feature(len(self.variables) + v)
        index = np.zeros(len(keys), dtype=np.int64)
        for each, size, column in zip(scope, shape, zip(*keys, strict=True), strict=False):
            place = self.counts.index[each]
            index = index * size + np.array([place[key] for key in column], dtype=np.int64)
        return cells.merge(index, prod(shape), 0).arranged(shape)

    def trimmed(self) -> NetworkCounts:
        """Without the values that no row has, unless they are declared."""
        n, declared = len(self.variables), [variable.declared() for variable in self.variables]
        counts = self.counts.without_empty([*declared, *(None for _ in declared)])
        gone = [set(old).difference(new) for old, new in zip(self.counts.keys[:n], counts.keys[:n], strict=True)]
        if any(gone):  # sums that were rounded may have rows of a value with its parents' that have none of the value
            scopes = [(v, *above) for v, above in enumerate(self.parents)]
            kept = [*(True for keys in counts.keys[:n] for _ in keys)]
            for scope, keys in zip(scopes, counts.keys[n:], strict=True):
                kept += [not any(k in gone[v] for v, k in zip(scope, key, strict=True)) for key in keys]  # type: ignore[arg-type]
            counts = counts.only(np.array(kept, dtype=np.bool_))
        return replace(self, counts=counts)._with_values()

    def _with_values(self) -> NetworkCounts:
        """The same, its variables with the values that are counted."""
        variables = (v.of_keys(keys) for v, keys in zip(self.variables, self.counts.keys, strict=False))
        return replace(self, variables=tuple(variables))

    def _check_alike(self, other: NetworkCounts) -> None:
        """Raises where they do not count the same things."""
        if why := _other_structure(self._above(), other._above()):
            raise errors.unlike_networks(why)
        for mine, theirs in zip(self.variables, other.variables, strict=True):
            if why := mine.differs(theirs):
                raise errors.unlike_networks(why)

    def _above(self) -> dict[str, list[str]]:
        """The parents of each variable, by name."""
        names = [variable.name for variable in self.variables]
        return {name: [names[p] for p in above] for name, above in zip(names, self.parents, strict=True)}

    def __add__(self, other: NetworkCounts) -> NetworkCounts:
        self._check_alike(other)
        rounded = self.rounded or other.rounded
        both = replace(self, rows=self.rows + other.rows, counts=self.counts + other.counts, rounded=rounded).trimmed()
        for v, above in enumerate(both.parents):
            check_size(both.variables, v, above)
        return both

    def __sub__(self, other: NetworkCounts) -> NetworkCounts:
        self._check_alike(other)
        rounded = self.rounded or other.rounded
        left = replace(self, rows=self.rows - other.rows, counts=self.counts - other.counts, rounded=rounded)
        if not rounded:
            return left._with_values().checked().trimmed()
        short = min(float(rows.value.min(initial=0.0)) for rows in (left.rows, left.counts.cells))
        if short < -ROUNDED * float(self.rows.value[0]):
            raise errors.negative_rows(short, None, None)
        counts = Counts(left.counts.keys, left.counts.cells.at_least_zero())
        return replace(left, rows=left.rows.at_least_zero(), counts=counts).trimmed()

    def _check_cells(self) -> NetworkCounts:
        """These counts; raises where one is below zero."""
        if self.rows.is_negative().any():
            raise errors.negative_rows(self.rows.value[0], None, None)
        for row, _ in np.argwhere(self.counts.cells.is_negative()):
            f = int(np.searchsorted(self.counts.offsets, row, side="right")) - 1
            variable = self.variables[f % len(self.variables)]
            key: Any = self.counts.keys[f][row - self.counts.offsets[f]]
            own = key if f < len(self.variables) else key[0]
            value = own if variable.cuts is None else variable.values[own]
            raise errors.negative_rows(self.counts.cells.value[row, 0], variable.name, value)
        return self

    def checked(self) -> NetworkCounts:
        """These counts; raises where no rows can have them: less than none, or more with their parents' values than in all."""
        self._check_cells()
        for v, variable in enumerate(self.variables):
            keys, cells = self.counts.feature(len(self.variables) + v)
            own = as_index([self.counts.index[v][key[0]] for key in keys])  # type: ignore[index]
            left = self.seen[v].arranged([variable.size, 1]) - cells.merge(own, variable.size, 0)
            for k, _ in np.argwhere(left.is_negative()):
                raise errors.negative_rows(left.value[k, 0], variable.name, variable.values[k])
            lacking = self.rows - total(self.seen[v], 0)
            if lacking.is_negative().any():
                raise errors.negative_rows(lacking.value[0], None, None)
        return self

    def __mul__(self, factor: float) -> NetworkCounts:
        rows, exact = self.rows.times(factor)
        counts, also = self.counts.times(factor)
        rounded = self.rounded or not (exact and also and is_decimal(factor))
        return replace(self, rows=rows, counts=counts, rounded=rounded).trimmed()

    def same(self, other: NetworkCounts) -> bool:
        self._check_alike(other)
        return self.rows.same(other.rows) and self.counts.same(other.counts)


def _other_structure(here: Mapping[str, Sequence[str]], there: Mapping[str, Sequence[str]]) -> str | None:
    """How the parents of two networks' nodes differ, or None."""
    for named, lacking in (("the other", set(here) - set(there)), ("this one", set(there) - set(here))):
        if lacking:
            return f"{named} has no node {errors.listed(map(repr, sorted(lacking)))}"
    for name in here:
        if here[name] != there[name]:
            mine, theirs = (errors.listed(above) or "none" for above in (here[name], there[name]))
            return f"the parents of {name!r} are {mine} here, {theirs} there"
    if list(here) != list(there):
        return f"the nodes come as {errors.listed(here)} here, as {errors.listed(there)} there"
    return None


def check_size(variables: Sequence[Variable], v: int, parents: Sequence[int]) -> None:
    """Raises where a table would be too large."""
    cells = prod(variables[each].size for each in (v, *parents))
    if cells > MOST_CELLS:
        name = variables[v].name
        sizes = " × ".join(f"{variables[each].size:,} of {variables[each].name!r}" for each in (v, *parents))
        raise errors.TooManyCells(
            f"the table of {name!r} given its {many(len(parents), 'parent')} would have {cells:,} cells ({sizes}), and "
            f"{MOST_CELLS:,} are the most. Give it fewer parents, columns cut into fewer bins, or rare values joined.",
            column=name,
            cells=cells,
        )


def counted(source: Source, labels: Labels, begin: Callable[[Batch], Callable[[Batch], Any]]) -> Any:
    """The sum of what is made of each batch, by what the first one settles; where a column widens, all is read again."""
    sums: list[Any] = []
    counts: list[Callable[[Batch], Any]] = []

    def anew() -> None:
        sums.clear()
        counts.clear()

    for batch in Table(source, labels).batches("counting", anew, quietly=True):
        if not counts:
            counts.append(begin(batch))
        part = counts[0](batch)
        sums[:] = [sums[0] + part if sums else part]
    return sums[0]
