"""Pairs: every two columns counted together within each class, in one pass; and the tree that says most of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.dependence.pairs import informed
from banbury.distributions.information import FEWEST_ROWS
from banbury.distributions.joint import pairs_of, stacked, table_of
from banbury.networks.counting import NetworkCounts, counted
from banbury.networks.elimination import MOST_CELLS
from banbury.networks.structure import directed, spanning_forest
from banbury.networks.variables import Bins, First, Variable, chosen, coded, kind_of_values
from banbury.readers import Batch, Codes, n_threads, read
from banbury.schema import Features, Missing, Schema, infer
from banbury.sums import Counts, as_index, cells_of, total, zeros
from banbury.table import Labels, aligned, doubt, numbered
from banbury.tally import Tally, count_rows


@dataclass(frozen=True, eq=False)
class Pairs:
    """A tally, per class, of each column's values, and of the values of every two columns together."""

    name: str  # of the target
    columns_counted: tuple[Variable, ...]
    tally: Tally
    columns: tuple[str, ...] = ()
    named: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)

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
        labels = Labels.of(target, source.weights if weights is None else weights, None, n_threads(threads))
        errors.require(labels.classes is None, "weights", "soft labels", "one number per row")

        def begin(batch: Batch) -> Callable[[Batch], Pairs]:
            leaked = {name: "the target" for name in (labels.column,) if name is not None and name in batch.names}
            schema = infer(batch, leaked | labels.reserved(), labels.name, features, missing, trees="none")
            return cls.beginning(batch, replace(schema, reading=source.reading), labels, bins)

        found: Pairs = counted(source, labels, begin)
        return found.checked()

    @classmethod
    def beginning(cls, batch: Batch, schema: Schema, labels: Labels, bins: Bins) -> Callable[[Batch], Pairs]:
        """What counts a batch, under what the first one settles."""
        classes, _, weights = numbered(batch, schema, labels)
        variables, left_out = chosen(First(batch, weights, classes), schema, bins)
        name = labels.name or labels.column or "class"
        while name in schema.columns:
            name += "_"
        names_counted = [variable.name for variable in variables]
        pairs = Schema((*(table_of([each]) for each in names_counted), *pairs_of(names_counted)))

        def count(batch: Batch) -> Pairs:
            batch = aligned(batch, schema, labels.reserved())
            numbers, names, weights = numbered(batch, schema, labels)
            columns = coded(batch, variables, labels.threads)
            _check_size([v.of_keys(columns.codes(v.name).values) for v in variables], len(names))
            tally = count_rows(columns, pairs, Codes(numbers, 0, names), weights, labels.threads).tally
            return cls(name, variables, tally, schema.columns, schema.named, left_out, schema.reading)

        return count

    def __add__(self, other: Pairs) -> Pairs:
        both = replace(self, tally=self.tally + other.tally)
        _check_size(both.features, len(both.tally.classes))
        return both

    def checked(self) -> Pairs:
        """These pairs; raises where there is no class."""
        if not self.tally.classes:
            raise errors.empty_data(None, "every row has a weight of zero or a missing class")
        doubt(self.tally.classes)
        return self

    @cached_property
    def target(self) -> Variable:
        return Variable(self.name, self.tally.classes, kind=kind_of_values(self.tally.classes))

    @cached_property
    def features(self) -> tuple[Variable, ...]:
        """The columns with the values that rows have, or that are declared."""
        keys: Any = self._counts[0].keys
        return tuple(v.of_keys(key for (key,) in own) for v, own in zip(self.columns_counted, keys, strict=False))

    @property
    def _counts(self) -> tuple[Counts, Counts]:
        nothing = Counts((), zeros(0, len(self.tally.classes)))
        single, pairs = (*self.tally.sums, nothing, nothing)[:2]
        return single, pairs

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
        whole = float(self.tally.rows.value.sum())
        least = 0.0 if level is None else FEWEST_ROWS / whole
        varied = [k for k, variable in enumerate(self.features) if variable.size > 1]
        if len(varied) < 2:
            return []
        values = [variable.keys for variable in self.features]
        first, second, every = informed(self._counts[1], values, varied, whole, least)
        bits, shown = every.joint, np.arange(len(first))
        if level is not None:
            names = [variable.name for variable in self.features]
            found = every.beyond_chance(lambda k: (names[first[k]], names[second[k]]), whole, 1.0)
            bits, shown = found.bits, np.flatnonzero((found.p * len(first) < level) & (found.bits > 0))
        order = shown[np.lexsort((second[shown], first[shown], -bits[shown]))]
        return [(int(first[k]), int(second[k]), float(bits[k])) for k in order]

    def sums(self, tree: Sequence[int | None]) -> NetworkCounts:
        """The sums of a network in which each column has the class and one other as parents, at most."""
        kept = [k for k, variable in enumerate(self.features) if variable.size]
        place = {k: 1 + at for at, k in enumerate(kept)}
        parents: list[tuple[int, ...]] = [()]
        classes = self.tally.rows
        seen, cells = [classes], [classes]
        for b in kept:
            a, alone = tree[b], self._table(b)
            parents.append((0,) if a is None else (0, place[a]))
            seen.append(total(alone, 1).arranged([self.features[b].size]))
            cells.append(alone if a is None else self._table(b, a))
        variables = (self.target, *(self.features[k] for k in kept))
        return NetworkCounts.of_tables(variables, tuple(parents), total(classes, 0), seen + cells)

    def _table(self, b: int, a: int | None = None) -> Integers:
        """(values of b, classes), or (values of b, classes, values of a)."""
        values, (singles, pairs) = [variable.keys for variable in self.features], self._counts
        if a is None:
            keys, cells = singles.feature(b)
            return cells.merge(cells_of(keys, (values[b],)), len(values[b]), 0)
        low, high = min(a, b), max(a, b)
        above = stacked(values[:high])
        keys, cells = pairs.feature(high - 1)
        table = cells.merge(cells_of(keys, (above, values[high])), len(above) * len(values[high]), 0)
        shape = len(above), len(values[high]), len(self.tally.classes)
        start = sum(map(len, values[:low]))
        index = np.arange(prod(shape)).reshape(shape)[start : start + len(values[low])]
        index = index.transpose((1, 2, 0) if a < b else (0, 2, 1))
        return table.arranged(list(index.shape), as_index(index.reshape(-1)))


def _check_size(features: Sequence[Variable], n_classes: int) -> None:
    """Raises where the tables of all pairs would not fit."""
    sizes = np.array([variable.size for variable in features], dtype=np.float64)
    cells = (sizes.sum() ** 2 - (sizes**2).sum()) / 2 * n_classes
    if cells > MOST_CELLS:
        widest = features[int(sizes.argmax())]
        text = f"the tables of all pairs of columns would have {int(cells):,} cells, and {MOST_CELLS:,} are the most; "
        text += f"{widest.name!r} alone has {widest.size:,} values. Leave it out with features={{{widest.name!r}: None}}, join "
        text += "its rare values, or cut numbers into fewer bins."
        raise errors.TooManyCells(text, column=widest.name, cells=int(cells))


def left_out_of_tree(column: str, why: str) -> errors.UnknownColumn:
    text = f"column {column!r} is no node of this network: it was left out ({why}). Name its family in features= to have it "
    text += "counted all the same."
    return errors.UnknownColumn(text, column=column)
