"""Groups: the rows of a data set counted in groups, any of which may be left out."""

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

    counted: Tally  # its classes are numbers: class * n_groups + group
    classes: tuple[Label, ...]  # the names of the classes that these number
    n_groups: int
    threads: int = 1
    label_target: LabelTarget | None = None  # for sets of labels: where they were read; EVERY is the class of all rows

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles what was counted, without the tallies that were computed from it and cached."""
        return Groups, (self.counted, self.classes, self.n_groups, self.threads, self.label_target)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The class number and the group number of each class of the counted tally (counted classes × 2). Its classes
        are named by the number ``class * n_groups + group``.
        """
        class_numbers = np.array(self.counted.classes, dtype=np.int64).reshape(-1)
        return np.stack([class_numbers // self.n_groups, class_numbers % self.n_groups], axis=1)

    @cached_property
    def total(self) -> Tally:
        """The tally of all groups."""
        return self.only(np.ones(self.n_groups, dtype=np.bool_))

    def only(self, is_chosen: NDArray[np.bool_]) -> Tally:
        """Returns the tally of some groups; ``is_chosen`` has a boolean per group."""
        return self._with_label_target(self._sum_groups(self.counted, is_chosen))

    def _with_label_target(self, tally: Tally) -> Tally:
        """Returns the tally with ``label_target`` in its schema if rows have sets of labels; otherwise the tally."""
        if self.label_target is None:
            return tally
        return replace(tally, schema=replace(tally.schema, labels=self.label_target))

    def _sum_groups(self, tally: Tally, is_chosen: NDArray[np.bool_], trims: bool = True) -> Tally:
        """Returns the sum of the chosen groups of a tally whose classes are pairs of class and group, as ``counted``
        has them. ``is_chosen`` has a boolean per group; ``trims`` says whether keys that no row has any more are
        dropped.
        """
        classes, groups = self.numbers.T  # the class and the group of each pair
        counted_numbers = np.flatnonzero(is_chosen[groups])  # of the pairs to sum
        # The classes that they have, and the index of each pair's class among these.
        class_numbers, class_position_of = np.unique(classes[counted_numbers], return_inverse=True)
        names = tuple(self.classes[class_number] for class_number in class_numbers.tolist())
        if len(class_numbers) == len(counted_numbers):  # one group of each class, so that there is nothing to add up
            return tally._of_classes(counted_numbers.tolist(), names, trims)
        return tally._of_classes(counted_numbers.tolist(), tuple(range(len(counted_numbers))), trims)._merge_classes(
            class_position_of.reshape(-1), names
        )

    @cached_property
    def _without_words(self) -> Tally:
        """The counted tally with an empty table of words for each text column."""
        empty_words = Words(_core.Words(len(self.counted.classes), 0))
        return self.counted._with_sums(dict.fromkeys(self._columns, empty_words))

    @cached_property
    def _total_without_words(self) -> Tally:
        """The tally of all groups, without words."""
        return self._sum_groups(self._without_words, np.ones(self.n_groups, dtype=np.bool_))

    @property
    def word_tables(self) -> dict[str, _core.Words]:
        """The table of words (of all pairs of class and group) of each text column that is not in a block, by name."""
        # Pairs of a feature and its text column, which is a group of features by itself.
        columns = ((self.counted.schema.groups[number].features[0], column) for number, column in self._columns.items())
        return {feature.name: column.table for feature, column in columns if not feature.columns}

    def estimation_tally(
        self,
        is_chosen: NDArray[np.bool_],
        tested_group: int | None = None,
        caches: bool = False,
        needs_all_words: bool = False,
    ) -> Tally:
        """Returns the tally of some groups for estimation, whose words are read from the table of all groups when they
        are needed. ``is_chosen`` has a boolean per group.

        ``tested_group`` is the number of the group that will be scored: then only its words are read, unless
        ``needs_all_words``. ``caches`` says whether what is read is cached, for several models.
        """
        omitted_groups = np.flatnonzero(~is_chosen)
        if len(omitted_groups) * 2 > self.n_groups:
            tally = self._sum_groups(self._without_words, is_chosen)
        else:  # all groups minus the others, which are fewer
            tally = self._total_without_words
            for group in omitted_groups.tolist():
                # With the keys of the total, so that none has to be looked up.
                tally = tally._without_part(
                    self._sum_groups(self._without_words, np.arange(self.n_groups) == group, trims=False)
                )
        if not self._columns:
            return self._with_label_target(tally)
        number_in_tally = {name: class_number for class_number, name in enumerate(tally.classes)}
        classes, groups = self.numbers.T  # the class and the group of each counted class
        # The number in ``tally`` of each class, and of each counted class; −1: it has no rows there.
        tally_number_of_class = np.array([number_in_tally.get(name, -1) for name in self.classes], dtype=np.int64)
        tally_number_of_counted = np.where(is_chosen[groups], tally_number_of_class[classes], -1)
        leaves_one_out = (
            tested_group is not None and int(is_chosen.sum()) == self.n_groups - 1 and not is_chosen[tested_group]
        )
        words_by_group = {}  # by the number of the group of features
        # Text columns, each by the number of its group of features.
        for feature_group, column in self._columns.items():
            # What a table of words needs in both cases: all words, where counted classes go, and the words' order.
            shared_arguments = column.table, tally_number_of_counted, len(tally.classes), column.by_name
            if leaves_one_out:
                assert tested_group is not None
                needed_words = None if needs_all_words else column.groups.words(tested_group)  # their ids; None: all
                class_positions = (  # in ``tally``, of each class that has rows; None: they are the same
                    None
                    if tally.classes == self._total_without_words.classes
                    else tally_number_of_class[self._used_classes]
                )
                learned_words: Any = AllBut(
                    *shared_arguments,
                    needed_words,
                    column.total,
                    column.groups,
                    tested_group,
                    {} if caches else None,
                    class_positions,
                )
            else:
                needs_all = needs_all_words or tested_group is None
                learned_words = Learned(
                    *shared_arguments,
                    None if needs_all else column.table.having(np.where(groups == tested_group, 0, -1)),
                )
            words_by_group[feature_group] = Words(learned_words)
        return self._with_label_target(tally._with_sums(words_by_group))

    @cached_property
    def _used_classes(self) -> NDArray[np.int64]:
        """The numbers of the classes that have rows."""
        return np.unique(self.numbers[:, 0])

    @cached_property
    def _columns(self) -> dict[int, _TextColumn]:
        """The text columns by the number of their group of features in the schema."""
        classes, groups = self.numbers.T  # the class and the group of each counted class
        position_of_class = {int(class_number): position for position, class_number in enumerate(self._used_classes)}
        class_positions = np.array(  # of each counted class, the position of its class among those that have rows
            [position_of_class.get(class_number, -1) for class_number in range(len(self.classes))], dtype=np.int64
        )[classes]
        tables = {number: sums.table for number, sums in enumerate(self.counted.sums) if isinstance(sums, Words)}
        shared_fields = (  # of all text columns
            class_positions,
            np.ascontiguousarray(groups),
            len(position_of_class),
            self.n_groups,
            self.threads,
        )
        return {number: _TextColumn(table, *shared_fields) for number, table in tables.items()}


@dataclass(eq=False)
class _TextColumn:
    """A text column of a tally of groups. What is computed from it is computed once, also if several threads need it."""

    table: _core.Words  # the words of each counted class, which is a pair of class and group
    classes: NDArray[np.int64]  # the position of each counted class among the classes that have rows
    group_numbers: NDArray[np.int64]  # the group of each counted class
    n_classes: int  # classes that have rows
    n_groups: int
    threads: int
    _lock: Lock = field(default_factory=Lock)
    _cache: dict[str, Any] = field(default_factory=dict)  # by name

    def _once(self, name: str, make: Callable[[], T]) -> T:
        """Returns the object that is cached under ``name``, computed by ``make`` when it is first needed."""
        with self._lock:
            if name not in self._cache:
                self._cache[name] = make()
            return self._cache[name]  # type: ignore[no-any-return]

    @property
    def total(self) -> _core.Words:
        """The table of words of all groups together, by class."""
        return self._once("total", lambda: self.table.place(self.classes, self.n_classes))

    @property
    def groups(self) -> _core.Groups:
        """The table of words divided into groups."""
        partition = self.classes, self.group_numbers, self.n_groups, self.threads
        return self._once("groups", lambda: _core.Groups(self.table, *partition))

    def by_name(self) -> Ids:
        """The ids of all words in the order of their names."""
        return self._once("by_name", self.table.in_order)
