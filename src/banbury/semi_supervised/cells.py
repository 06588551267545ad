"""Cells: columns of values and of bins, the key of each row looked up once, so that soft labels are counted by adding them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury._core import Integers
from banbury.arrays import Real
from banbury.distributions import Bernoulli, Categorical
from banbury.distributions.family import Feature
from banbury.distributions.joint import combinations
from banbury.readers import Batch, Codes
from banbury.schema import Schema
from banbury.sums import Counts, Keys, as_index, in_parts, weighed
from banbury.tally import count_rows, dense_numbers

Places = NDArray[np.int64]


@dataclass(frozen=True)
class RowCells:
    """Of every keyed feature its keys, and which of them each row has: 0 is none, 1 the first."""

    schema: Schema
    keys: tuple[Keys, ...]
    places: tuple[Places, ...]
    threads: int

    @classmethod
    def of(cls, batch: Batch, schema: Schema, weights: Real, threads: int) -> RowCells | None:
        """None where a block has bins, or bins are so many that how wide they are depends on the rows that are counted."""
        if any(feature.columns and feature.family.shape == "bins" for feature in schema.keyed):
            return None
        one = Codes(np.zeros(batch.n_rows, dtype=np.int32), 0, [0])
        counted = count_rows(batch, schema, one, np.ascontiguousarray(weights), threads).tally
        if counted.schema != schema:
            return None
        each = zip(schema.keyed, counted.counts.keys, strict=True)
        places = tuple(_places(batch, feature, keys, threads) for feature, keys in each)
        return cls(schema, counted.counts.keys, places, threads)

    def count(self, shares: Real) -> Counts:
        """The rows of each key and class, of which each class has these shares, rows × classes."""
        parts, n_classes = in_parts(shares), shares.shape[1]
        low, size = np.ones(len(self.keys), dtype=np.int64), as_index([len(keys) for keys in self.keys])
        each = []
        for c in range(n_classes):
            rows, mine = weighed(np.zeros(len(parts), dtype=np.int32), parts[:, c])
            cells = _core.count_codes(list(self.places), low, size, rows, 1, mine, self.threads)
            each.append(cells.arranged([1, int(size.sum())]))
        turned = np.arange(n_classes * size.sum()).reshape(n_classes, -1).T
        cells = Integers.join(each).arranged([int(size.sum()), n_classes], as_index(turned.reshape(-1)))
        return Counts(self.keys, cells).without_empty(self.schema.declared)


def _places(batch: Batch, feature: Feature, keys: Keys, threads: int) -> Places:
    """Which of the keys each row has."""
    family: Any = feature.family
    place: dict[Any, int] = {key: k for k, key in enumerate(keys, 1)}
    numbers: NDArray[Any]
    found: list[Any]
    if feature.columns:
        numbers, found = combinations(batch, feature, threads, counting=True)
    elif family.shape == "bins" or (isinstance(family, Bernoulli) and family.threshold is not None):
        column = batch.numbers([feature.name])[0].reshape(-1)
        if isinstance(family, Bernoulli):
            return np.where(np.isnan(column), 0, 1 + (column > family.threshold)).astype(np.int64)
        codes = _core.bins(column, feature.origin, feature.unit, threads)
        known = np.array(keys, dtype=np.int64)
        at = np.minimum(np.searchsorted(known, codes), max(len(known) - 1, 0))
        return (
            np.where(known[at] == codes, at + 1, 0).astype(np.int64) if len(known) else np.zeros(len(codes), np.int64)
        )
    else:
        numbers, names = dense_numbers(batch.codes(feature.name, _kind(feature)), threads)
        found = [*(family.means_yes(names, feature.name) if isinstance(family, Bernoulli) else names), None]
    return np.array([place.get(value, 0) for value in found], dtype=np.int64)[numbers]


def _kind(feature: Feature) -> Any:
    return feature.kind if isinstance(feature.family, Categorical) else None
