"""Sums: how many rows have each value of a node together with each of its parents'. They add and subtract as tallies do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.networks.elimination import MOST_CELLS
from banbury.networks.variables import MISSING, Places, Variable, check_length
from banbury.readers import Batch, Source
from banbury.sums import as_index, in_parts, is_decimal, some, total, weighing
from banbury.table import Table
from banbury.tally import Labels
from banbury.tally.tally import ROUNDED


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
class Sums:
    """The rows of each variable's values, and of its values together with those of its parents.

    A row counts for a variable and its parents where it has a value of each of them.
    """

    variables: tuple[Variable, ...]
    parents: tuple[tuple[int, ...], ...]
    rows: Integers  # (1,)
    seen: tuple[Integers, ...]  # (values,)
    cells: tuple[Integers, ...]  # (values, values of each parent)
    rounded: bool = False  # they were scaled by a fraction, or kept as doubles once

    @classmethod
    def count(
        cls,
        batch: Batch,
        variables: Sequence[Variable],
        parents: tuple[tuple[int, ...], ...],
        labels: Labels,
        target: int | None = None,
    ) -> Sums:
        """Of these rows; of those alone that have a value of the target, where there is one."""
        rows, threads, n_rows = Weighed.of(labels.weights_of(batch)), labels.threads, batch.n_rows
        check_length(rows.weights, n_rows)
        met = [variable.met(batch, threads) for variable in variables]
        found, places = tuple(variable for variable, _ in met), [each for _, each in met]
        all_of_them = rows.without_idle(np.zeros(n_rows, dtype=np.int32))
        if target is not None:
            all_of_them = np.where(places[target] < 0, np.int32(MISSING), all_of_them)
        seen, cells = [], []
        for v, above in enumerate(parents):
            sizes = [found[p].size for p in above]
            check_size(found, v, above)
            seen.append(tallied([places[v]], [found[v].size], all_of_them, 1, rows, threads).arranged([found[v].size]))
            within = joint_places([*(places[p] for p in above), all_of_them], [*sizes, 1], n_rows)
            table = tallied([places[v]], [found[v].size], within, prod(sizes), rows, threads)
            cells.append(table.arranged([found[v].size, *sizes]))
        n = _core.count_classes(all_of_them, 1, rows.weights, threads)
        return cls(found, parents, n, tuple(seen), tuple(cells)).trimmed()

    def with_values(self, variables: tuple[Variable, ...]) -> Sums:
        """The same sums in tables that have at least these values."""
        if all(a.values == b.values for a, b in zip(variables, self.variables, strict=True)):
            return replace(self, variables=variables)
        index = [
            np.array([new.index[value] for value in old.values], dtype=np.int64)
            for new, old in zip(variables, self.variables, strict=True)
        ]
        seen, cells = [], []
        for v, above in enumerate(self.parents):
            check_size(variables, v, above)
            seen.append(self.seen[v].merge(index[v], variables[v].size, 0))
            table = self.cells[v]
            for axis, each in enumerate((v, *above)):
                table = table.merge(index[each], variables[each].size, axis)
            cells.append(table)
        return replace(self, variables=variables, seen=tuple(seen), cells=tuple(cells))

    def trimmed(self) -> Sums:
        """Without the values that no row has, unless they are declared."""
        kept = [
            np.flatnonzero([n or value in declared for n, value in zip(some(rows), each.values, strict=True)])
            for each, rows, declared in ((v, s, v.declared()) for v, s in zip(self.variables, self.seen, strict=True))
        ]
        if all(len(k) == v.size for k, v in zip(kept, self.variables, strict=True)):
            return self
        variables = tuple(v.of(tuple(v.values[i] for i in k)) for v, k in zip(self.variables, kept, strict=True))
        seen = tuple(rows.take(k, 0) for rows, k in zip(self.seen, kept, strict=True))
        cells = []
        for v, above in enumerate(self.parents):
            table = self.cells[v]
            for axis, each in enumerate((v, *above)):
                table = table.take(kept[each], axis)
            cells.append(table)
        return replace(self, variables=variables, seen=seen, cells=tuple(cells))

    def _together(self, other: Sums) -> tuple[Sums, Sums]:
        """Both with the values of either; raises where they do not count the same things."""
        if why := _other_structure(self._above(), other._above()):
            raise errors.unlike_networks(why)
        for mine, theirs in zip(self.variables, other.variables, strict=True):
            if why := mine.differs(theirs):
                raise errors.unlike_networks(why)
        variables = tuple(a.union(b) for a, b in zip(self.variables, other.variables, strict=True))
        return self.with_values(variables), other.with_values(variables)

    def _above(self) -> dict[str, list[str]]:
        """The parents of each variable, by name."""
        names = [variable.name for variable in self.variables]
        return {name: [names[p] for p in above] for name, above in zip(names, self.parents, strict=True)}

    def __add__(self, other: Sums) -> Sums:
        a, b = self._together(other)
        return replace(
            a._with([x + y for x, y in zip(a._all(), b._all(), strict=True)]), rounded=a.rounded or b.rounded
        )

    def __sub__(self, other: Sums) -> Sums:
        a, b = self._together(other)
        left = a._with([x - y for x, y in zip(a._all(), b._all(), strict=True)])
        if not a.rounded and not b.rounded:
            return left.checked().trimmed()
        short = min(float(rows.value.min(initial=0.0)) for rows in left._all())
        if short < -ROUNDED * float(a.rows.value[0]):
            raise errors.negative_rows(short, None, None)
        return replace(left._with([rows.at_least_zero() for rows in left._all()]), rounded=True).trimmed()

    def checked(self) -> Sums:
        """These sums; raises where no rows can have them: less than none, or more with their parents' values than in all."""
        for each, rows in zip([None, *self.variables, *self.variables], self._all(), strict=True):
            for cell in np.argwhere(rows.is_negative()):
                value = None if each is None else each.values[cell[0]]
                raise errors.negative_rows(rows.value[tuple(cell)], None if each is None else each.name, value)
        for variable, seen, cells in zip(self.variables, self.seen, self.cells, strict=True):
            with_parents = cells.arranged([cells.shape[0], prod(cells.shape[1:])])
            for (k,) in np.argwhere((seen - summed(with_parents, 1)).is_negative()):
                over = (seen - summed(with_parents, 1)).value[k]
                raise errors.negative_rows(over, variable.name, variable.values[k])
            left = self.rows - total(seen, 0)
            if left.is_negative().any():
                raise errors.negative_rows(left.value[0], None, None)
        return self

    def __mul__(self, factor: float) -> Sums:
        scaled = [rows.times(factor) for rows in self._all()]
        rounded = self.rounded or not is_decimal(factor) or not all(exact for _, exact in scaled)
        return replace(self._with([rows for rows, _ in scaled]), rounded=rounded).trimmed()

    def same(self, other: Sums) -> bool:
        a, b = self._together(other)
        values = all(v.values == w.values for v, w in zip(self.variables, other.variables, strict=True))
        return values and all(x.same(y) for x, y in zip(a._all(), b._all(), strict=True))

    def _all(self) -> list[Integers]:
        return [self.rows, *self.seen, *self.cells]

    def _with(self, rows: Sequence[Integers]) -> Sums:
        n = len(self.variables) + 1
        return replace(self, rows=rows[0], seen=tuple(rows[1:n]), cells=tuple(rows[n:]))


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
        sizes = [(variables[each].name, variables[each].size) for each in (v, *parents)]
        raise errors.table_too_large(sizes, cells, MOST_CELLS)


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
