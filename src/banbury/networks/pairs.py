"""Pairs: every two columns counted together within each class, in one pass; and the tree that says most of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.dependence.pairs import PairInformation, measured
from banbury.distributions.information import FEWEST_ROWS
from banbury.networks.counting import NetworkCounts, Weighed, counted, summed, tallied, turned
from banbury.networks.elimination import MOST_CELLS
from banbury.networks.structure import directed, spanning_forest
from banbury.networks.variables import MISSING, Bins, First, Places, Variable, check_length, chosen, kind_of_values
from banbury.readers import Batch, n_threads, read
from banbury.schema import Features, Missing, Schema, infer
from banbury.sums import in_order, some, total, zeros
from banbury.table import Labels, aligned, numbered, refuse_continuous

TOGETHER = 16  # columns whose tables are filled together: so many stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of each class, of each column's values within it, and of the values of every two columns; they add and subtract."""

    target: Variable
    features: tuple[Variable, ...]
    classes: Integers  # (classes,)
    single: tuple[Integers, ...]  # (values, classes)
    pairs: tuple[
        Integers, ...
    ]  # of column b: (values of all columns before it, one below the other; classes; values of b)
    columns: tuple[str, ...] = ()
    named: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def count(
        cls,
        data: Any,
        target: Any,
        features: Features,
        bins: Bins,
        weights: Any,
        missing: Missing,
        threads: int | None,
        reading: Mapping[str, Any],
    ) -> Pairs:
        source = read(data, **reading)
        target = source.target if target is None else target
        labels = Labels.of(target, weights, None, n_threads(threads))
        if labels.classes is not None:
            raise errors.bad_setting("weights", "soft labels", "one number per row")

        def begin(batch: Batch) -> Callable[[Batch], Pairs]:
            leaked = {name: "the target" for name in (labels.column,) if name is not None and name in batch.names}
            schema = infer(batch, leaked | labels.reserved(), labels.name, features, missing)
            return cls.beginning(batch, schema, labels, bins)

        found: Pairs = counted(source, labels, begin)
        return found.checked()

    @classmethod
    def beginning(cls, batch: Batch, schema: Schema, labels: Labels, bins: Bins) -> Callable[[Batch], Pairs]:
        """What counts a batch, under what the first one settles."""
        classes, _, weights = numbered(batch, schema, labels)
        variables, left_out = chosen(First.of(batch, weights, classes), schema, bins)
        name = labels.name or labels.column or "class"
        while name in schema.columns:
            name += "_"
        kind = schema.target_kind or "string"

        def count(batch: Batch) -> Pairs:
            batch = aligned(batch, schema, labels.reserved())
            found = cls._of_batch(batch, schema, Variable(name, (), kind=kind), variables, labels)
            return replace(found, columns=schema.columns, named=schema.named, left_out=left_out)

        return count

    @classmethod
    def _of_batch(
        cls, batch: Batch, schema: Schema, target: Variable, features: Sequence[Variable], labels: Labels
    ) -> Pairs:
        numbers, names, weights = numbered(batch, schema, labels)
        check_length(weights, batch.n_rows)
        refuse_continuous(names, batch.n_rows)
        rows, threads = Weighed.of(weights), labels.threads
        target = replace(target.of(in_order(names)), kind=kind_of_values(names))
        lookup = np.array([*(target.index[name] for name in names), MISSING], dtype=np.int32)
        classes = rows.without_idle(lookup[numbers])
        met = [variable.met(batch, threads) for variable in features]
        found, places = tuple(variable for variable, _ in met), [each for _, each in met]
        sizes, n_classes = [variable.size for variable in found], target.size
        _check_size(found, n_classes)
        every = tallied(places, sizes, classes, n_classes, rows, threads) if found else zeros(0, n_classes)
        starts = np.cumsum([0, *sizes]).tolist()
        single = tuple(every.take(np.arange(a, b), 0) for a, b in pairwise(starts))
        together = np.minimum(classes, 0)
        of_class = tallied([classes], [n_classes], together, 1, rows, threads)
        pairs = tuple(_pairs_of(b, places, sizes, classes, n_classes, rows, threads) for b in range(len(found)))
        return cls(target, found, of_class.arranged([n_classes]), single, pairs)._trimmed()

    def checked(self) -> Pairs:
        """These pairs; raises where there is no class."""
        if not self.target.size:
            raise errors.empty_data(None, "every row has a weight of zero or a missing class")
        return self

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each column's values begin in tables of those before another; last, their number."""
        return np.cumsum([0, *(variable.size for variable in self.features)], dtype=np.int64)

    # The algebra

    def _placed(self, target: Variable, features: tuple[Variable, ...]) -> Pairs:
        """The same in tables that have at least these values."""
        c = np.array([target.index[name] for name in self.target.values], dtype=np.int64)
        index = [
            np.array([new.index[value] for value in old.values], dtype=np.int64)
            for new, old in zip(features, self.features, strict=True)
        ]
        sizes = [variable.size for variable in features]
        starts = np.cumsum([0, *sizes])
        before = np.concatenate([np.zeros(0, dtype=np.int64), *(i + s for i, s in zip(index, starts, strict=False))])
        single = tuple(
            t.merge(i, n, 0).merge(c, target.size, 1) for t, i, n in zip(self.single, index, sizes, strict=True)
        )
        pairs = tuple(
            t.merge(before[: t.shape[0]], int(starts[b]), 0).merge(c, target.size, 1).merge(index[b], sizes[b], 2)
            for b, t in enumerate(self.pairs)
        )
        classes = self.classes.merge(c, target.size, 0)
        return replace(self, target=target, features=features, classes=classes, single=single, pairs=pairs)

    def _trimmed(self) -> Pairs:
        """Without classes that no row has, and without values, unless they are declared."""
        c = np.flatnonzero(some(self.classes))
        kept = []
        for variable, table in zip(self.features, self.single, strict=True):
            declared, seen = variable.declared(), np.asarray(some(table).any(axis=1))
            kept.append([k for k, value in enumerate(variable.keys) if seen[k] or value in declared])
        if len(c) == self.target.size and all(len(k) == v.size for k, v in zip(kept, self.features, strict=True)):
            return self
        index = [np.array(k, dtype=np.int64) for k in kept]
        before = np.concatenate(
            [np.zeros(0, dtype=np.int64), *(i + s for i, s in zip(index, self.starts, strict=False))]
        )
        features = tuple(v.of(tuple(v.values[i] for i in k)) for v, k in zip(self.features, kept, strict=True))
        pairs = tuple(
            t.take(before[before < self.starts[b]], 0).take(c, 1).take(index[b], 2) for b, t in enumerate(self.pairs)
        )
        return replace(
            self,
            target=self.target.of(tuple(self.target.values[k] for k in c.tolist())),
            features=features,
            classes=self.classes.take(c, 0),
            single=tuple(t.take(i, 0).take(c, 1) for t, i in zip(self.single, index, strict=True)),
            pairs=pairs,
        )

    def _together(self, other: Pairs) -> tuple[Pairs, Pairs]:
        for a, b in zip(self.features, other.features, strict=True):
            if why := a.differs(b):
                raise errors.unlike_networks(why)
        features = tuple(a.union(b) for a, b in zip(self.features, other.features, strict=True))
        target = self.target.union(other.target)
        _check_size(features, target.size)
        return self._placed(target, features), other._placed(target, features)

    def __add__(self, other: Pairs) -> Pairs:
        a, b = self._together(other)
        return a._with([x + y for x, y in zip(a._all(), b._all(), strict=True)])

    def __sub__(self, other: Pairs) -> Pairs:
        a, b = self._together(other)
        left = [x - y for x, y in zip(a._all(), b._all(), strict=True)]
        if any(rows.is_negative().any() for rows in left):
            raise errors.negative_rows(min(float(rows.value.min(initial=0.0)) for rows in left), None, None)
        return a._with(left)._trimmed()

    def _all(self) -> list[Integers]:
        return [self.classes, *self.single, *self.pairs]

    def _with(self, rows: Sequence[Integers]) -> Pairs:
        n = len(self.features) + 1
        return replace(self, classes=rows[0], single=tuple(rows[1:n]), pairs=tuple(rows[n:]))

    # The tree

    def tree(self, level: float | None, root: str | None = None) -> list[int | None]:
        """Of each column the one it depends on beside the class: Chow and Liu's tree, or what of it is beyond chance."""
        names = [variable.name for variable in self.features]
        if root is not None and root in self.left_out:
            raise left_out_of_tree(root, self.left_out[root])
        if root is not None and root not in names:
            raise errors.unknown_column(root, names)
        edges = [(int(a), int(b)) for a, b, _ in self.weighed(level)]
        first = 0 if root is None else names.index(root)
        return directed(spanning_forest(edges, len(names)), len(names), first)

    def weighed(self, level: float | None) -> list[tuple[int, int, float]]:
        """Pairs of columns and I(A; B | class) in bits, the greatest first: those beyond chance at the level, or all."""
        whole = float(self.classes.value.sum())
        least = 0.0 if level is None else FEWEST_ROWS / whole
        varied = [k for k, variable in enumerate(self.features) if variable.size > 1]
        compared = [(varied[:at], b) for at, b in enumerate(varied) if at]
        if not compared:
            return []
        of_each = [measured(*self._before(b, before, whole), least) for before, b in compared]
        every = PairInformation(*(np.concatenate(arrays) for arrays in zip(*of_each, strict=True)))
        first = np.array([a for before, _ in compared for a in before], dtype=np.int64)
        second = np.repeat([b for _, b in compared], [len(before) for before, _ in compared])
        bits, shown = every.joint, np.arange(len(first))
        if level is not None:
            found = every.beyond_chance(
                lambda k: (self.features[first[k]].name, self.features[second[k]].name), whole, 1.0
            )
            bits, shown = found.bits, np.flatnonzero((found.p * len(first) < level) & (found.bits > 0))
        order = shown[np.lexsort((second[shown], first[shown], -bits[shown]))]
        return [(int(first[k]), int(second[k]), float(bits[k])) for k in order]

    def _before(self, b: int, before: Sequence[int], whole: float) -> tuple[Real, NDArray[np.int64]]:
        """The shares of rows of column b with each of some columns before it, and where each of these begins."""
        table = self.pairs[b]
        if len(before) < b:
            table = table.take(np.concatenate([np.arange(*self.starts[a : a + 2]) for a in before]), 0)
        starts = np.cumsum([0, *(self.features[a].size for a in before)])[:-1]
        return table.value / whole, starts

    def sums(self, tree: Sequence[int | None]) -> NetworkCounts:
        """The sums of a network in which each column has the class and one other as parents, at most."""
        kept = [k for k, variable in enumerate(self.features) if variable.size]
        place = {k: 1 + at for at, k in enumerate(kept)}
        parents: list[tuple[int, ...]] = [()]
        seen, cells = [self.classes], [self.classes]
        for b in kept:
            a = tree[b]
            parents.append((0,) if a is None else (0, place[a]))
            seen.append(summed(self.single[b], 1))
            cells.append(self.single[b] if a is None else self._pair(a, b))
        rows = total(self.classes, 0)
        variables = (self.target, *(self.features[k] for k in kept))
        return NetworkCounts.of_tables(variables, tuple(parents), rows, seen, cells)

    def _pair(self, a: int, b: int) -> Integers:
        """(values of b, classes, values of a)."""
        low, high = min(a, b), max(a, b)
        table = self.pairs[high].take(np.arange(self.starts[low], self.starts[low + 1]), 0)
        return turned(table, (2, 1, 0)) if a < b else table


def _pairs_of(
    b: int, places: Sequence[Places], sizes: Sequence[int], classes: Places, n_classes: int, rows: Weighed, threads: int
) -> Integers:
    """Column b within each class, together with every column before it."""
    shape = (n_classes, sizes[b])
    cells = np.where((classes >= 0) & (places[b] >= 0), classes * np.int32(sizes[b]) + places[b], np.int32(MISSING))
    parts = [
        tallied(
            places[a : min(a + TOGETHER, b)], sizes[a : min(a + TOGETHER, b)], cells, shape[0] * shape[1], rows, threads
        )
        for a in range(0, b, TOGETHER)
    ]
    joined = Integers.join(parts) if parts else zeros(0, shape[0] * shape[1])
    return joined.arranged([joined.shape[0], *shape])


def _check_size(features: Sequence[Variable], n_classes: int) -> None:
    """Raises where the tables of all pairs would not fit."""
    sizes = np.array([variable.size for variable in features], dtype=np.float64)
    cells = (sizes.sum() ** 2 - (sizes**2).sum()) / 2 * n_classes
    if cells > MOST_CELLS:
        widest = features[int(sizes.argmax())]
        raise errors.TooManyCells(
            f"the tables of all pairs of columns would have {int(cells):,} cells, and {MOST_CELLS:,} are the most; "
            f"{widest.name!r} alone has {widest.size:,} values. Leave it out with features={{{widest.name!r}: None}}, "
            "join its rare values, or cut numbers into fewer bins.",
            column=widest.name,
            cells=int(cells),
        )


def left_out_of_tree(column: str, why: str) -> errors.UnknownColumn:
    text = f"column {column!r} is no node of this network: it was left out ({why}). Name its family in features= to have it "
    text += "counted all the same."
    return errors.UnknownColumn(text, column=column)
