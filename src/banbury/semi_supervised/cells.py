"""Cells: columns of values and of bins, the key of each row looked up once, so that soft labels are counted by adding them up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury._core import Integers
from banbury.arrays import Real
from banbury.readers import Batch, Codes
from banbury.schema import Schema
from banbury.sums import Counts, Keys, as_index, in_parts, weighed
from banbury.tally import count_rows


@dataclass(frozen=True)
class RowCells:
    """Of every feature that is counted by key its keys, and which of them each row has: 0 is none, 1 the first."""

    schema: Schema  # of these features alone
    keys: tuple[Keys, ...]
    places: tuple[NDArray[np.int64], ...]
    threads: int

    @classmethod
    def of(cls, batch: Batch, schema: Schema, weights: Real, threads: int) -> RowCells | None:
        """None where bins are so many that how wide they are depends on the rows that are counted."""
        keyed = tuple(f for f in schema.features if f.family.key_finder(f, (), threads) is not None)
        schema = replace(schema, features=keyed)
        if not keyed:
            return cls(schema, (), (), threads)
        one = Codes(np.zeros(batch.n_rows, dtype=np.int32), 0, [0])
        counted = count_rows(batch, schema, one, np.ascontiguousarray(weights), threads).tally
        if counted.schema != schema:
            return None
        known = {f.name: sums.keys[k] for _, group, sums in counted.groups for k, f in enumerate(group)}
        finders = [feature.family.key_finder(feature, known[feature.name], threads) for feature in keyed]
        places = tuple(np.asarray(find(batch)).astype(np.int64) + 1 for find in finders if find is not None)
        return cls(schema, tuple(known[feature.name] for feature in keyed), places, threads)

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
        return Counts(self.keys, cells).without_empty([f.family.declared() for f in self.schema.features])
