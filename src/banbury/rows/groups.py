"""Groups: the rows of a data set counted in parts, of which any may be left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.families.bags.vocabulary import AllBut, Learned
from banbury.sums import Words
from banbury.tally.label_sets import LabelTarget
from banbury.tally.tally import Label, Tally

Ids = NDArray[np.uint32]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Groups:
    """A tally in which class ``class * n_groups + group`` has the rows of one class and one group."""

    counted: Tally
    classes: tuple[Label, ...]
    n_groups: int
    threads: int = 1
    label_target: LabelTarget | None = None  # where classes are labels, and ``EVERY`` that of all rows

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The class and the group of each class of the tally (classes × 2)."""
        class_numbers = np.array(self.counted.classes, dtype=np.int64).reshape(-1)
        return np.stack([class_numbers // self.n_groups, class_numbers % self.n_groups], axis=1)

    @cached_property
    def total(self) -> Tally:
        """The tally of all groups."""
        return self.only(np.ones(self.n_groups, dtype=np.bool_))

    def only(self, chosen: NDArray[np.bool_]) -> Tally:
        """Returns the tally of some groups."""
        return self._of_target(self._sum_groups(self.counted, chosen))

    def _of_target(self, tally: Tally) -> Tally:
        if self.label_target is None:
            return tally
        return replace(tally, schema=replace(tally.schema, labels=self.label_target))

    def _sum_groups(self, tally: Tally, chosen: NDArray[np.bool_], trims: bool = True) -> Tally:
        classes, groups = self.numbers.T
        kept = np.flatnonzero(chosen[groups])
        used, index = np.unique(classes[kept], return_inverse=True)
        names = tuple(self.classes[c] for c in used.tolist())
        if len(used) == len(kept):  # one group of each class, so that there is nothing to add up
            return tally.of_classes(kept.tolist(), names, trims)
        return tally.of_classes(kept.tolist(), tuple(range(len(kept))), trims).merge_classes(index.reshape(-1), names)

    @cached_property
    def _rest(self) -> Tally:
        """All but the words."""
        nothing = Words(_core.Words(len(self.counted.classes), 0))
        return self.counted.with_sums(dict.fromkeys(self._columns, nothing))

    @cached_property
    def _total(self) -> Tally:
        return self._sum_groups(self._rest, np.ones(self.n_groups, dtype=np.bool_))

    @property
    def word_tables(self) -> dict[str, _core.Words]:
        """The table of words of each text column."""
        columns = ((self.counted.schema.groups[g].features[0], column) for g, column in self._columns.items())
        return {feature.name: column.table for feature, column in columns if not feature.columns}

    def estimation_tally(
        self, chosen: NDArray[np.bool_], tested: int | None = None, keep: bool = False, every: bool = False
    ) -> Tally:
        """Returns the tally of some groups for estimation, whose words are read from the table of all groups.

        ``tested`` is the group that will be scored, so only its words are needed, unless ``every`` word is. ``keep``
        caches what was read, for several models.
        """
        left_out = np.flatnonzero(~chosen)
        if len(left_out) * 2 > self.n_groups:
            rest = self._sum_groups(self._rest, chosen)
        else:  # all groups minus the others, which are fewer
            rest = self._total
            for group in left_out.tolist():
                # Of the same keys as the total, so that none has to be looked up.
                rest = rest.without_part(self._sum_groups(self._rest, np.arange(self.n_groups) == group, trims=False))
        if not self._columns:
            return self._of_target(rest)
        place = {name: c for c, name in enumerate(rest.classes)}
        classes, groups = self.numbers.T
        position = np.array([place.get(name, -1) for name in self.classes], dtype=np.int64)
        index = np.where(chosen[groups], position[classes], -1)
        alone = tested is not None and int(chosen.sum()) == self.n_groups - 1 and not chosen[tested]
        learned = {}
        for g, column in self._columns.items():
            common = column.table, index, len(rest.classes), column.by_name
            if alone:
                assert tested is not None
                words = None if every else column.groups.words(tested)
                some = None if rest.classes == self._total.classes else position[self._used_classes]
                left: Any = AllBut(*common, words, column.total, column.groups, tested, {} if keep else None, some)
            else:
                any_word = every or tested is None
                left = Learned(*common, None if any_word else column.table.having(np.where(groups == tested, 0, -1)))
            learned[g] = Words(left)
        return self._of_target(rest.with_sums(learned))

    @cached_property
    def _used_classes(self) -> NDArray[np.int64]:
        """The numbers of the classes that have rows."""
        return np.unique(self.numbers[:, 0])

    @cached_property
    def _columns(self) -> dict[int, _TextColumn]:
        """What is counted in tables of words, by the number of its group of features."""
        classes, groups = self.numbers.T
        place_of_class = {int(c): at for at, c in enumerate(self._used_classes)}
        position = np.array([place_of_class.get(c, -1) for c in range(len(self.classes))], dtype=np.int64)[classes]
        tables = {g: sums.table for g, sums in enumerate(self.counted.sums) if isinstance(sums, Words)}
        common = position, np.ascontiguousarray(groups), len(place_of_class), self.n_groups, self.threads
        return {g: _TextColumn(table, *common) for g, table in tables.items()}


@dataclass(eq=False)
class _TextColumn:
    """A column of text, and what is found out about it when first asked for; folds are scored in threads."""

    table: _core.Words
    classes: NDArray[np.int64]
    of: NDArray[np.int64]  # groups
    n_classes: int
    n_groups: int
    threads: int
    _lock: Lock = field(default_factory=Lock)
    _made: dict[str, Any] = field(default_factory=dict)

    def _once(self, name: str, make: Callable[[], T]) -> T:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]  # type: ignore[no-any-return]

    @property
    def total(self) -> _core.Words:
        """All groups together, with the table's ids."""
        return self._once("total", lambda: self.table.place(self.classes, self.n_classes))

    @property
    def groups(self) -> _core.Groups:
        cut = self.classes, self.of, self.n_groups, self.threads
        return self._once("groups", lambda: _core.Groups(self.table, *cut))

    def by_name(self) -> Ids:
        """The ids of all words in the order of their names."""
        return self._once("by_name", self.table.in_order)
