"""Growing: a tally that rows are added to and taken from in place, so that one text costs its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.distributions import Occurrences, Text
from banbury.distributions.family import Feature
from banbury.readers import Batch
from banbury.schema import Schema
from banbury.sums import Words
from banbury.tally.tally import Label, Tally, bad_occurrence, not_there

Touched = dict[str, NDArray[np.uint32]]  # of each column of text the ids of words


def together(changes: Sequence[Touched]) -> Touched:
    """The words that any of these changes touched."""
    if len(changes) == 1:
        return changes[0]
    return {name: np.unique(np.concatenate([each[name] for each in changes])) for name in changes[0]}


@dataclass(frozen=True)
class Assigned:
    """Rows with their classes and weights, as the kernels take them."""

    batch: Batch
    labels: Sequence[Label]  # what the class numbers stand for
    classes: NDArray[np.int32]  # -1: not counted
    weights: NDArray[Any] | None  # whole numbers, or limbs of parts of a row
    threads: int

    @property
    def whole(self) -> bool:
        return self.weights is None or self.weights.ndim == 1


@dataclass(frozen=True)
class Part:
    """Some rows: the tally of all but their texts, and the rows, whose texts are still to be counted."""

    tally: Tally
    rows: Assigned


class Growing:
    """The sums of all rows so far. Words grow in place; all other sums are small, and are added as tallies are."""

    def __init__(self, schema: Schema, declared: tuple[Label, ...] = ()) -> None:
        self._schema = schema
        self._declared = declared  # classes that stay, with rows or without
        self._rest: Tally | None = None  # all but the words
        self._words: list[_core.Words] = []

    @classmethod
    def of(cls, tally: Tally, declared: tuple[Label, ...] = ()) -> Growing:
        """One that begins with these sums."""
        growing = cls(tally.schema, declared)
        growing._rest = replace(tally, words=())
        growing._words = [words.table.copy() for words in tally.words]
        return growing

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
    def seen(self) -> Tally:
        """The tally as it stands, for looking only: its words go on growing."""
        assert self._rest is not None
        return replace(self._rest, words=tuple(map(Words, self._words)))

    def frozen(self) -> Tally:
        """The tally as it stands, for keeping."""
        seen = self.seen
        whole = [isinstance(feature.family, Occurrences) for feature in self.schema.texts]
        return replace(seen, words=tuple(words.frozen(keep) for words, keep in zip(seen.words, whole, strict=True)))

    def add(self, part: Part) -> Touched:
        """Adds rows; the ids of the words that they have. If it raises, nothing was changed."""
        rest = self._plus(part.tally)
        if not self.schema.texts:
            self._rest = rest
            return {}
        touched = self._each_text(rest, part.rows, _core.Words.count, _core.Words.forget)
        self._rest = rest
        return touched

    def _plus(self, more: Tally) -> Tally:
        """All but the words, together; where there is nothing but texts, only rows are to be added, and at once."""
        if self._declared and not set(more.classes).issuperset(self._declared):
            more = more.with_classes(self._declared)
        rest = self._rest
        if rest is None:
            return more
        if len(self.schema.texts) < len(self.schema.features) or not set(rest.classes).issuperset(more.classes):
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
        if not self.schema.texts:
            self._rest = rest
            return {}
        touched = self._each_text(self._rest, part.rows, _core.Words.forget, _core.Words.count)
        self._check_texts(part.rows, rest)
        if rest.classes != self._rest.classes:
            kept = np.array([self._rest.classes.index(name) for name in rest.classes], dtype=np.int64)
            self._words = [words.take(kept) for words in self._words]
        self._rest = rest
        return touched

    def _each_text(self, tally: Tally, rows: Assigned, change: Any, undo: Any) -> Touched:
        """Counts or forgets the texts of every column, or of none."""
        texts = [_given(feature, rows.batch) for feature in self.schema.texts]
        words = self._with_classes(tally.classes)
        numbers = _numbers(rows, tally.classes)
        settings = numbers, rows.weights, rows.threads
        touched: Touched = {}
        for feature, table, column in zip(self.schema.texts, words, texts, strict=True):
            try:
                touched[feature.name] = change(table, feature.family.tokeniser, column, *settings)  # type: ignore[attr-defined]
            except BaseException as problem:
                done = zip(self.schema.texts[: len(touched)], words, texts, strict=False)
                for other, counted, its_texts in done:
                    undo(counted, other.family.tokeniser, its_texts, *settings)  # type: ignore[attr-defined]
                if isinstance(problem, _core.NotThere):
                    raise not_there(problem, feature, tally.classes) from None
                if isinstance(problem, _core.BadValue):
                    raise bad_occurrence(problem, feature, rows.batch) from None
                if isinstance(problem, ValueError) and "2**62" in str(problem):
                    feature.family.check(rows.batch, feature, counting=True)  # type: ignore[attr-defined]
                if isinstance(problem, ValueError) and "2**63" in str(problem):
                    raise errors.too_many_rows() from None
                raise
        self._words = words
        return touched

    def _check_texts(self, rows: Assigned, left: Tally) -> None:
        """Raises, after putting all back, if more texts are left than rows: some that were forgotten had none."""
        assert self._rest is not None
        rows_left = dict(zip(left.classes, left.rows.value.tolist(), strict=True))
        if left.rounded:
            return
        for feature, table in zip(self.schema.texts, self._words, strict=True):
            for name, texts in zip(self._rest.classes, Words(table).texts.value.tolist(), strict=True):
                if texts > rows_left.get(name, 0.0):
                    self._each_text(self._rest, rows, _core.Words.count, _core.Words.forget)
                    raise errors.impossible_sums(name, feature.name)

    def _with_classes(self, classes: tuple[Any, ...]) -> list[_core.Words]:
        """The words with room for these classes."""
        old = () if self._rest is None else self._rest.classes
        if not self._words:
            return [_table(feature, len(classes)) for feature in self.schema.texts]
        if classes == old:
            return self._words
        index = np.array([classes.index(name) for name in old], dtype=np.int64)
        return [words.place(index, len(classes)) for words in self._words]

    def __getstate__(self) -> tuple[Tally, tuple[Label, ...]]:
        return self.frozen(), self._declared

    def __setstate__(self, state: tuple[Tally, tuple[Label, ...]]) -> None:
        self.__dict__ = Growing.of(*state).__dict__


def _table(feature: Feature, n_classes: int) -> _core.Words:
    """An empty one."""
    family = feature.family
    if isinstance(family, Occurrences):
        return family.table(feature, n_classes)
    assert isinstance(family, Text)
    return _core.Words(n_classes, family.buckets or 0)


def _given(feature: Feature, batch: Batch) -> Any:
    """A column's texts, or a block's numbers, as the kernel takes them."""
    if isinstance(feature.family, Occurrences):
        return feature.family.given(batch, feature)
    assert isinstance(feature.family, Text)
    return feature.family.texts(batch, feature.name)


def _numbers(rows: Assigned, classes: tuple[Any, ...]) -> NDArray[np.int32]:
    """The rows' classes by their place in ``classes``."""
    if tuple(rows.labels) == classes:
        return rows.classes
    place = {name: c for c, name in enumerate(classes)}
    lookup = np.array([*(place.get(name, -1) for name in rows.labels), -1], dtype=np.int32)
    return lookup[rows.classes]
