"""Growing: a tally that rows are added to and taken from in place, so that one text costs its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.distributions.family import GrowingSums, RowsToCount
from banbury.schema import Schema
from banbury.sums import UNCOUNTED
from banbury.tally.tally import Label, Tally

Touched = dict[
    str, NDArray[np.uint32]
]  # of features whose sums grow in place, what rows changed: the ids of their words


def together(changes: Sequence[Touched]) -> Touched:
    """The words that any of these changes touched."""
    if len(changes) == 1:
        return changes[0]
    return {name: np.unique(np.concatenate([each[name] for each in changes])) for name in changes[0]}


@dataclass(frozen=True)
class Part:
    """Some rows: the tally of all but what grows in place, and the rows, of which that is still to be counted."""

    tally: Tally
    rows: RowsToCount


class Growing:
    """The sums of all rows so far. Words grow in place; all other sums are small, and are added as tallies are."""

    def __init__(self, schema: Schema, declared: tuple[Label, ...] = ()) -> None:
        self._schema = schema
        self._declared = declared  # classes that stay, with rows or without
        self._rest: Tally | None = None  # all but what grows
        self._growing: dict[int, GrowingSums] = {}  # by the number of the group

    @classmethod
    def of(cls, tally: Tally, declared: tuple[Label, ...] = ()) -> Growing:
        """One that begins with these sums."""
        growing = cls(tally.schema, declared)
        growing._growing = growing._begun(len(tally.classes), tally.sums)
        growing._rest = tally.with_sums(dict.fromkeys(growing._growing, UNCOUNTED))
        return growing

    def _begun(self, n_classes: int, sums: tuple[Any, ...] | None = None) -> dict[int, GrowingSums]:
        """Those sums that grow in place: empty, or beginning with these."""
        begun = {}
        for g, (counter, features, _) in enumerate(self.schema.groups):
            growing = counter.growing(features[0], n_classes, None if sums is None else sums[g])
            if growing is not None:
                begun[g] = growing
        return begun

    def declare(self, classes: tuple[Label, ...]) -> None:
        """From now on these classes stay."""
        self._declared = classes

    @property
    def schema(self) -> Schema:
        return self._schema if self._rest is None else self._rest.schema

    @property
    def classes(self) -> tuple[Label, ...]:
        return () if self._rest is None else self._rest.classes

    @property
    def grows_in_place(self) -> bool:
        """Whether what was seen goes on growing, so that it is to be frozen before it is kept."""
        return bool(self._growing)

    @property
    def seen(self) -> Tally:
        """The tally as it stands, for looking only: its words go on growing."""
        return self._with({g: growing.seen() for g, growing in self._growing.items()})

    def frozen(self) -> Tally:
        """The tally as it stands, for keeping."""
        return self._with({g: growing.frozen() for g, growing in self._growing.items()})

    def _with(self, grown: dict[int, Any]) -> Tally:
        assert self._rest is not None
        return self._rest.with_sums(grown)

    def add(self, part: Part) -> Touched:
        """Adds rows; what they changed in place. If it raises, nothing was changed."""
        rest = self._plus(part.tally)
        touched = self._each(part.rows, rest.classes, forgetting=False)
        self._rest = rest
        return touched

    def _plus(self, more: Tally) -> Tally:
        """All but what grows, together; where there is nothing else, only rows are to be added, and at once."""
        if self._declared and not set(more.classes).issuperset(self._declared):
            more = more.with_classes(self._declared)
        rest = self._rest
        if rest is None:
            return more
        if len(self._growing) < len(rest.sums) or not set(rest.classes).issuperset(more.classes):
            return rest + more
        place = np.array([rest.classes.index(label) for label in more.classes], dtype=np.int64)
        rows = rest.rows + more.rows.merge(place, len(rest.classes), 0)
        return replace(rest, rows=rows, skipped=rest.skipped + more.skipped)._not_too_many()

    def forget(self, part: Part) -> Touched:
        """Takes rows out again. If they were never added, or nothing would be left, it raises and changes nothing."""
        assert self._rest is not None
        rest = self._rest - part.tally
        if self._declared and rest.classes:
            rest = rest.with_classes(self._declared)
        if not rest.classes:
            raise errors.empty_data(None, "forgetting these rows would leave no row at all")
        touched = self._each(part.rows, self._rest.classes, forgetting=True)
        self._check_left(part.rows, rest)
        if rest.classes != self._rest.classes:
            kept = np.array([self._rest.classes.index(name) for name in rest.classes], dtype=np.int64)
            self._growing = {g: growing.taken(kept) for g, growing in self._growing.items()}
        self._rest = rest
        return touched

    def _each(self, rows: RowsToCount, classes: tuple[Label, ...], forgetting: bool) -> Touched:
        """Adds rows to all that grows, or takes them from it; if it raises, to none of it."""
        every = self._with_classes(classes)
        if not every:
            return {}
        numbers, touched, done = _numbers(rows, classes), {}, list[GrowingSums]()
        try:
            for g, growing in every.items():
                ids = growing.forget(rows, numbers, classes) if forgetting else growing.count(rows, numbers)
                touched[self.schema.groups[g].features[0].name] = ids
                done.append(growing)
        except BaseException:
            for growing in done:
                growing.count(rows, numbers) if forgetting else growing.forget(rows, numbers, classes)
            raise
        self._growing = every
        return touched

    def _check_left(self, rows: RowsToCount, left: Tally) -> None:
        """Raises, after putting all back, if more texts are left than rows: some that were forgotten had none."""
        assert self._rest is not None
        if left.rounded:
            return
        rows_left = dict(zip(left.classes, left.rows.value.tolist(), strict=True))
        for g, growing in self._growing.items():
            for name, texts in zip(self._rest.classes, growing.seen().present.value[0].tolist(), strict=True):
                if texts > rows_left.get(name, 0.0):
                    self._each(rows, self._rest.classes, forgetting=False)
                    raise errors.impossible_sums(name, self.schema.groups[g].features[0].name)

    def _with_classes(self, classes: tuple[Any, ...]) -> dict[int, GrowingSums]:
        """What grows, with room for these classes."""
        if self._rest is None:
            return self._begun(len(classes))
        if classes == self._rest.classes or not self._growing:
            return self._growing
        index = np.array([classes.index(name) for name in self._rest.classes], dtype=np.int64)
        return {g: growing.placed(index, len(classes)) for g, growing in self._growing.items()}

    def __getstate__(self) -> tuple[Tally, tuple[Label, ...]]:
        return self.frozen(), self._declared

    def __setstate__(self, state: tuple[Tally, tuple[Label, ...]]) -> None:
        self.__dict__ = Growing.of(*state).__dict__


def _numbers(rows: RowsToCount, classes: tuple[Any, ...]) -> NDArray[np.int32]:
    """The rows' classes by their place in ``classes``."""
    if tuple(rows.labels) == classes:
        return rows.classes
    place = {name: c for c, name in enumerate(classes)}
    lookup = np.array([*(place.get(name, -1) for name in rows.labels), -1], dtype=np.int32)
    return lookup[rows.classes]
