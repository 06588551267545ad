"""Sums: how many rows have each value of a node together with each of its parents'. They add and subtract as tallies do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.networks.elimination import MOST_CELLS
from banbury.networks.variables import MISSING, Places, Variable, check_length
from banbury.progress import watched
from banbury.readers import Batch, Source, Widened
from banbury.sums import IMPOSSIBLE, Rows, total
from banbury.tally import Labels

Real = NDArray[np.float64]
Int = NDArray[np.int64]


class Weighed(NamedTuple):
    """Weights of rows, and whether all of them are whole numbers."""

    weights: Real | None
    whole: bool

    @classmethod
    def of(cls, weights: Real | None) -> Weighed:
        if weights is None:
            return cls(None, True)
        whole = bool(np.all(weights == np.rint(weights))) and float(weights.sum()) < 2.0**53
        return cls(np.ascontiguousarray(weights), whole)

    def without_idle(self, places: Places) -> Places:
        """The numbers, but of a row that weighs nothing none."""
        return places if self.weights is None else np.where(self.weights > 0, places, np.int32(MISSING))


def tallied(
    columns: Sequence[Places], sizes: Sequence[int], within: Places, n: int, rows: Weighed, threads: int
) -> Rows:
    """Rows of each value of each column, one column below the other, within each of ``n`` groups."""
    low, size = np.zeros(len(columns), dtype=np.int64), np.array(sizes, dtype=np.int64)
    return Rows(*_core.count_codes(list(columns), low, size, within, n, rows.weights, rows.whole, threads))


def joint_places(places: Sequence[Places], sizes: Sequence[int], n_rows: int) -> Places:
    """The number of each row's cell in a table of these variables; MISSING where one of them is."""
    cells = np.zeros(n_rows, dtype=np.int32)
    known = np.ones(n_rows, dtype=np.bool_)
    for each, size in zip(places, sizes, strict=True):
        cells = cells * np.int32(size) + np.maximum(each, 0)
        known &= each >= 0
    return np.where(known, cells, np.int32(MISSING))


def reshaped(cells: Rows, shape: tuple[int, ...]) -> Rows:
    return Rows(cells.rows.reshape(shape), None if cells.weights is None else cells.weights.reshape(*shape, 3))


def turned(cells: Rows, axes: tuple[int, ...]) -> Rows:
    """The same cells with their axes in another order."""
    weights = None if cells.weights is None else cells.weights.transpose(*axes, len(axes))
    return Rows(cells.rows.transpose(axes), weights)


def summed(cells: Rows, axis: int) -> Rows:
    return Rows(cells.rows.sum(axis=axis), None if cells.weights is None else total(cells.weights, axis))


@dataclass(frozen=True, eq=False)
class Sums:
    """The rows of each variable's values, and of its values together with those of its parents.

    A row counts for a variable and its parents where it has a value of each of them.
    """

    variables: tuple[Variable, ...]
    parents: tuple[tuple[int, ...], ...]
    rows: Rows  # (1,)
    seen: tuple[Rows, ...]  # (values,)
    cells: tuple[Rows, ...]  # (values, values of each parent)

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
            seen.append(
                reshaped(tallied([places[v]], [found[v].size], all_of_them, 1, rows, threads), (found[v].size,))
            )
            within = joint_places([*(places[p] for p in above), all_of_them], [*sizes, 1], n_rows)
            table = tallied([places[v]], [found[v].size], within, prod(sizes), rows, threads)
            cells.append(reshaped(table, (found[v].size, *sizes)))
        n = Rows(*_core.count_classes(all_of_them, 1, rows.weights, rows.whole, threads))
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
            seen.append(self.seen[v].place(index[v], variables[v].size, 0))
            table = self.cells[v]
            for axis, each in enumerate((v, *above)):
                table = table.place(index[each], variables[each].size, axis)
            cells.append(table)
        return replace(self, variables=variables, seen=tuple(seen), cells=tuple(cells))

    def trimmed(self) -> Sums:
        """Without the values that no row has, unless they are declared."""
        kept = [
            np.flatnonzero([n > 0 or value in declared for n, value in zip(rows.rows, each.values, strict=True)])
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
        return a._with([x + y for x, y in zip(a._all(), b._all(), strict=True)])

    def __sub__(self, other: Sums) -> Sums:
        a, b = self._together(other)
        return a._with([x - y for x, y in zip(a._all(), b._all(), strict=True)]).checked().trimmed()

    def checked(self) -> Sums:
        """These sums; raises where no rows can have them: less than none, or more with their parents' values than in all."""
        for each, rows in zip([None, *self.variables, *self.variables], self._all(), strict=True):
            for cell in np.argwhere(rows.below_zero()):
                value = None if each is None else each.values[cell[0]]
                raise errors.negative_rows(rows.value[tuple(cell)], None if each is None else each.name, value)
        for variable, seen, cells in zip(self.variables, self.seen, self.cells, strict=True):
            with_parents = cells.value.sum(axis=tuple(range(1, cells.rows.ndim)))
            for (k,) in np.argwhere(with_parents > _most(seen)):
                raise errors.negative_rows(seen.value[k] - with_parents[k], variable.name, variable.values[k])
            if seen.value.sum() > _most(self.rows)[0]:
                raise errors.negative_rows(self.rows.value[0] - seen.value.sum(), None, None)
        return self

    def __mul__(self, factor: float) -> Sums:
        scaled = self._with([rows * factor for rows in self._all()])
        return scaled.trimmed() if factor == 0 else scaled

    def same(self, other: Sums) -> bool:
        a, b = self._together(other)
        values = all(v.values == w.values for v, w in zip(self.variables, other.variables, strict=True))
        return values and all(x.same(y) for x, y in zip(a._all(), b._all(), strict=True))

    def _all(self) -> list[Rows]:
        return [self.rows, *self.seen, *self.cells]

    def _with(self, rows: Sequence[Rows]) -> Sums:
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


def _most(rows: Rows) -> Real:
    """What a part of these rows can sum to, up to rounding."""
    return np.asarray(rows.value * (1.0 + IMPOSSIBLE) + (0.0 if rows.weights is None else IMPOSSIBLE))


def check_size(variables: Sequence[Variable], v: int, parents: Sequence[int]) -> None:
    """Raises where a table would be too large."""
    cells = prod(variables[each].size for each in (v, *parents))
    if cells > MOST_CELLS:
        sizes = [(variables[each].name, variables[each].size) for each in (v, *parents)]
        raise errors.table_too_large(sizes, cells, MOST_CELLS)


def counted(source: Source, labels: Labels, begin: Callable[[Batch], Callable[[Batch], Any]]) -> Any:
    """The sum of what is made of each batch, by what the first one settles; where a column widens, all is read again."""
    while True:
        found, seen, count = None, 0, None
        try:
            for batch in watched(source, "counting", source.name):
                batch.threads = labels.threads
                seen += batch.n_rows
                if batch.n_rows:
                    count = count or begin(batch)
                    part = count(batch)
                    found = part if found is None else found + part
        except Widened as wider:
            if not source.again:
                raise errors.cannot_restart(wider.column, wider.kind) from None
            continue
        labels.check_length(seen)
        if found is None:
            raise errors.empty_data(source.name)
        return found
