"""Tally: the sums of a data set, per class and feature, under one schema. Tallies add, subtract and scale.

``count`` makes one of a table, batch by batch, in one pass.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial, singledispatch
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int
from banbury.errors import many
from banbury.families.bags.words import WORDS, add_texts, check_parts_of_words, subtract
from banbury.families.family import Family, Feature, Features, RowsToCount, permanent_keys
from banbury.families.keys import renumber_range, zero_based_codes
from banbury.notebooks import MOST_TABLE_ROWS, Displayed, NotebookTable, more_line
from banbury.reading import Batch, Codes, ParserWork
from banbury.reading.by_name import Columns
from banbury.reading.columns import empty_column
from banbury.sums import (
    MOST_ROWS,
    Counts,
    WholeKeys,
    Words,
    decode_weights,
    encode_weights,
    is_nonzero,
    kernel_weights,
    readable_counts,
    sort_keys,
    sum_axis,
)
from banbury.tally.label_sets import EVERY, LabelSets
from banbury.tally.schema import FamilyOption, Group, Missing, Schema
from banbury.tally.table import Labels, Table, open_table, refuse_continuous, warn_about_suspicious_classes
from banbury.threads import BackgroundThread, LimitThreads

Label = bool | int | float | str
ROWS_WORTH_A_THREAD = 1000  # so many rows of a batch, and its words are worth a thread of their own


class FamilySums(NamedTuple):
    """Features of one family, and their sums: Counts, Moments, Products or Words."""

    family: Family
    features: Features
    sums: Any


class SumsLocation(NamedTuple):
    """Where the sums of a feature are: the number of the group that it is counted in, and its position in the group."""

    group: int
    position: int


@dataclass(frozen=True, eq=False, repr=False)
class Tally(Displayed):
    """The sums of a data set per class and feature, under one schema. A tally is a frozen value and contains no
    smoothing.

    Tallies of the same schema can be added, subtracted and multiplied by a number.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> tally = bb.count(weather, target="play")
    >>> first_rows = tally.count({name: column[:5] for name, column in weather.items()})
    >>> tally - first_rows + first_rows == tally
    True
    """

    kind: ClassVar[str] = "tally"

    schema: Schema
    classes: tuple[Label, ...]
    rows: Integers  # the rows of each class, or their total weight (classes,)
    sums: tuple[Any, ...]  # one for each group of features: Counts, Moments, Products or Words
    skipped: int = 0  # rows without a target
    rounded: bool = False  # sums were rounded: scaled by a fraction, or moved to another schema
    parts: frozenset[str] = frozenset()  # the names of the parts it is made of, if any; equal sums are equal

    @property
    def n_rows(self) -> float:
        """The number of rows counted, or their total weight if weights are fractional."""
        if self.schema.labels is not None:  # rows have sets of labels, and the class EVERY holds each row once
            total = readable_counts(self.rows)[self.classes.index(EVERY)] if EVERY in self.classes else 0
        else:
            total = readable_counts(sum_axis(self.rows, axis=0))[0] if self.classes else 0
        return int(total) if self.rows.digits == 0 else float(total)

    @cached_property
    def missing(self) -> dict[str, float]:
        """The number of rows without a value, by feature; their total weight if weights are fractional.

        >>> import banbury as bb
        >>> bb.count({"fever": [38.9, None, 37.0], "ward": ["a", "b", "a"], "flu": ["yes", "no", "no"]}, target="flu").missing
        {'fever': 1.0, 'ward': 0.0}
        """
        if not self.classes:
            return dict.fromkeys(self.schema.features.names, 0.0)
        if self._each_row_once is not self:
            return self._each_row_once.missing
        n_rows = sum_axis(self.rows, axis=0)
        missing = dict[str, float]()
        for (_, features, _), sums in self._groups():
            n_present = sum_axis(sums.present, axis=1).arranged([len(features)])  # rows with a value, by feature
            n_missing = n_rows.take(np.zeros(len(features), dtype=np.int64), 0) - n_present
            missing |= zip(features.names, n_missing.value.tolist(), strict=True)
        return {name: max(missing[name], 0.0) for name in self.schema.features.names}  # in the order of the schema

    @cached_property
    def _each_row_once(self) -> Tally:
        """Where rows have sets of labels, the tally of one class that holds every row once; otherwise this tally."""
        if self.schema.labels is None or EVERY not in self.classes:
            return self
        without_label_sets = replace(self, schema=replace(self.schema, labels=None))
        return without_label_sets._of_classes([self.classes.index(EVERY)], (EVERY,))

    @cached_property
    def empty_cells(self) -> dict[str, float]:
        """The share of empty cells in the table of each joint block: the curse of dimensionality, measured.

        >>> import banbury as bb
        >>> weather = bb.datasets.play_tennis()
        >>> names = ("outlook", "temperature", "humidity")
        >>> bb.count(weather, target="play", features={names: bb.Joint()}).empty_cells
        {'outlook + temperature + humidity': 0.38888888888888884}
        """
        features = self.schema.features
        blocks = [features[index] for index in features.where(lambda template: template.columns)]  # joint features
        # By name; None for a block without a table.
        shares = {feature.name: feature.family.empty_share(feature, self.of(feature.name)) for feature in blocks}
        return {name: share for name, share in shares.items() if share is not None}

    def of(self, name: str) -> Any:
        """Returns the sums of one feature, by its name."""
        location = self.locate(self.schema[name].name)  # a group of features, and the position in it
        return self.sums[location.group].select([location.position])

    def locate(self, name: str) -> SumsLocation:
        """Returns where the sums of a feature are, by its name."""
        group, position = self._locations[self.schema.index[name]].tolist()
        return SumsLocation(group, position)

    @cached_property
    def _locations(self) -> Int:
        """The ``SumsLocation`` of each feature as integers, features × 2: its group, and its position in the group."""
        locations = np.empty((len(self.schema.features), 2), dtype=np.int64)
        for group_number, group in enumerate(self.schema.groups):
            locations[group.indices, 0] = group_number
            locations[group.indices, 1] = np.arange(len(group.indices))
        return locations

    @cached_property
    def _has_words(self) -> bool:
        """Whether some features have tables of words, which can be large."""
        return any(isinstance(sums, Words) for sums in self.sums)

    def _with_sums(self, sums_by_group: Mapping[int, Any]) -> Tally:
        """Returns the same tally with other sums for some groups; ``sums_by_group`` maps a group's number to its sums."""
        if all(self.sums[group_number] is sums for group_number, sums in sums_by_group.items()):
            return self
        return replace(
            self, sums=tuple(sums_by_group.get(group_number, sums) for group_number, sums in enumerate(self.sums))
        )

    def _read_texts(self) -> Tally:
        """Returns the same tally with all texts tokenized, which ``count_rows`` defers until the words are needed."""
        return self._with_sums(
            {group_number: sums.read_texts() for group_number, sums in enumerate(self.sums) if isinstance(sums, Words)}
        )

    def _drop_absent_words(self) -> Tally:
        """Returns the same tally without the words that no text contains any more."""
        words = ((group_number, sums) for group_number, sums in enumerate(self.sums) if isinstance(sums, Words))
        return self._with_sums({group_number: sums.drop_absent_words() for group_number, sums in words})

    def _groups(self) -> Iterator[tuple[Group, Any]]:
        """Iterates over pairs: a group of features that are counted together, and its sums."""
        return zip(self.schema.groups, self.sums, strict=True)

    # Counting more

    def count(
        self,
        data: Any,
        target: Any = None,
        *,
        weights: Any = None,
        classes: Any = None,
        threads: int | None = None,
        **reading: Any,
    ) -> Tally:
        """Counts other rows under the schema of this tally and returns their tally: ``tally + tally.count(rows)`` adds
        them.

        If this tally has one class and no target column, such as the tally of a density, all rows get that class. The
        arguments are those of ``bb.count``.
        """
        if target is None and self.schema.labels is not None and self.schema.labels.columns:
            target = self.schema.labels
        elif target is None and classes is None and np.ndim(weights) < 2:
            has_only_one_class = self.schema.target is None and len(self.classes) == 1
            target = self.schema.target
            classes = self.classes if has_only_one_class else None
        return count(data, target, schema=self.schema, weights=weights, classes=classes, threads=threads, **reading)

    # The algebra

    def __add__(self, other: Tally) -> Tally:
        """Returns the tally of both data sets together. Raises an error if they count different things, or if both
        contain a part of the same name.
        """
        if not isinstance(other, Tally):
            raise errors.not_a_tally(other, "add")
        if shared_parts := self.parts & other.parts:  # their names
            raise errors.part_twice(shared_parts)
        left, right = _align_tallies(self, other)  # both with the same classes
        # One for each group of features.
        sums = tuple(left_sums + right_sums for left_sums, right_sums in zip(left.sums, right.sums, strict=True))
        skipped = left.skipped + right.skipped
        rounded = left.rounded or right.rounded
        parts = left.parts | right.parts
        combined = replace(left, rows=left.rows + right.rows, sums=sums, skipped=skipped, rounded=rounded, parts=parts)
        return merge_excess_bins(combined._check_n_rows())

    def _check_n_rows(self) -> Tally:
        """Returns this tally, or raises an error if it has more rows than exact sums can hold."""
        if self.classes and not sum_axis(self.rows, axis=0).value[0] < MOST_ROWS:
            raise errors.too_many_rows()
        return self

    def __radd__(self, other: object) -> Tally:
        return self if other == 0 else NotImplemented  # so that sum(tallies) works

    def __sub__(self, other: Tally) -> Tally:
        """Returns the tally of this data set without the other.

        The other must be part of this one, or an error is raised and nothing changes. An error is also raised if the
        sums of either tally were rounded, because they cannot be subtracted exactly.
        """
        if not isinstance(other, Tally):
            raise errors.not_a_tally(other, "subtract")
        return self._minus(other)

    def _minus(self, other: Tally, declared: tuple[Label, ...] = ()) -> Tally:
        """Returns this tally without the other. Classes in ``declared`` stay even if they have no rows left. Raises an
        error if the other is not part of this one, or if either has rounded sums.
        """
        if self.rounded or other.rounded:
            raise errors.forget_before_fading("this tally" if self.rounded else "the tally to be subtracted")
        try:
            return self._subtract(other)._verify(self)._trim(declared)
        except errors.NegativeCount as problem:
            raise self._name_labels(problem) from None

    def _add_texts(self, texts: list[str], labels: list[str], threads: int) -> Tally | None:
        """Returns this tally with more texts added, without building a batch. ``labels`` are the class names of the
        texts; ``threads`` is how many threads may count them.

        Returns None unless the tally has a single text column and contains all the classes.
        """
        # ``sums`` has an entry for each group of features; here there must be one, a table of words.
        has_one_column = len(self.sums) == 1 and len(self.schema.columns) == 1 and not self.schema.named
        if not has_one_column or {*map(type, texts), *map(type, labels)} != {str} or len(texts) != len(labels):
            return None
        [words] = self.sums  # of the only group of features
        if not isinstance(words, Words) or not set(self.classes).issuperset(labels):
            return None
        class_numbers = _indices_of(labels, self.classes).astype(np.int32)  # of each text
        rows = self.rows + _core.count_classes(class_numbers, len(self.classes), None, threads)
        if (new_words := add_texts(self.schema.features[0], words, texts, class_numbers, threads)) is None:
            return None
        return replace(self, rows=rows, sums=(new_words,))._check_n_rows()

    def _without_part(self, part: Tally) -> Tally:
        """Returns this tally without rows that are known to be part of it, so that the result needs no check."""
        return self._subtract(part)._trim()

    def _subtract(self, other: Tally) -> Tally:
        """Returns this tally minus the other, without checking that the differences can be sums of rows, except that a
        negative number of rows raises an error.
        """
        total, part = _align_tallies(self, other)  # both with the same classes
        rows = total.rows - part.rows  # by class
        total._check_rows(rows)
        group_sums = zip(total.schema.groups, total.sums, part.sums, strict=True)
        differences = tuple(
            subtract(group.features, total_sums, part_sums, total.classes)
            for group, total_sums, part_sums in group_sums
        )
        skipped = max(0, total.skipped - part.skipped)
        return replace(total, rows=rows, sums=differences, skipped=skipped, parts=total.parts - part.parts)

    def _name_labels(self, problem: errors.NegativeCount) -> errors.NegativeCount:
        """Returns an error about negative counts that names labels instead of classes where rows have sets of labels."""
        return problem if self.schema.labels is None else _with_label_names(problem)

    def __mul__(self, factor: float) -> Tally:
        """Returns the tally with every row weighing this many times as much; a factor below one lets the past fade.

        A whole factor is exact. With any other factor, each sum is rounded down once, to 10⁻¹⁸ of a row or of a unit,
        if it has more digits than that. Nothing can be subtracted from rounded sums, so forget before you fade.
        """
        if isinstance(factor, bool) or not isinstance(factor, (int, float, np.integer, np.floating)):
            return NotImplemented
        if not 0 <= factor < MOST_ROWS or float(factor) * float(self.n_rows) >= MOST_ROWS:
            expected = "finite and non-negative, and leave fewer than 2**63 rows"
            raise errors.bad_setting("the factor of a tally", factor, expected)
        errors.require(float(factor) == factor, "the factor of a tally", factor, "a number that a double holds")
        rows, are_rows_exact = self.rows.times(factor := float(factor))
        sums_and_exactness = [sums.times(factor) for sums in self.sums]  # by group of features
        rounded = self.rounded or not (
            are_rows_exact and _is_decimal(factor) and all(is_exact for _, is_exact in sums_and_exactness)
        )
        sums = tuple(scaled_sums for scaled_sums, _ in sums_and_exactness)
        return replace(self, rows=rows, sums=sums, rounded=rounded)._trim()

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Tally:
        """Returns the tally with every row weighing this many times less."""
        return self * (1.0 / divisor) if divisor else self * float("inf")

    def __eq__(self, other: object) -> bool:
        """Whether both tallies hold the same sums, to the last bit, under the same schema. Bins of another width are
        other sums.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        same_rows = self.schema == other.schema and self.classes == other.classes and self.rows.same(other.rows)
        return same_rows and all(sums.same(other_sums) for sums, other_sums in zip(self.sums, other.sums, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _check_rows(self, rows: Integers) -> None:
        """Raises an error if a class has a negative number of rows; ``rows`` has one number per class."""
        for (class_number,) in np.argwhere(rows.is_negative()):  # the first of them raises
            raise errors.negative_count(readable_counts(rows)[class_number], self.classes[class_number])

    def _verify(self, before: Tally | None = None) -> Tally:
        """Returns this tally, or raises an error if no rows could have these sums.

        Args:
            before: A verified tally that this one was derived from. Only words that differ from it are then checked.
        """
        self._check_rows(self.rows)
        for group, sums in self._groups():
            group.counter.check(group.features, sums, self.rows, self.classes)
        if self.schema.labels is not None and EVERY in self.classes:
            self._check_labels(before)
        return self

    def _check_labels(self, before: Tally | None) -> None:
        """Raises an error if a label has more rows than there are rows, in total or for any value of a feature.

        Args:
            before: A checked tally that this one was derived from. Only words that differ from it are then checked.
        """
        all_rows = self.classes.index(EVERY)  # the number of the class that holds every row
        label_numbers = np.delete(np.arange(len(self.classes)), all_rows)  # of the other classes, which are the labels
        # The number of rows without each label.
        rows_without_label = self.rows.take(np.full(len(label_numbers), all_rows), 0) - self.rows.take(label_numbers, 0)
        for (label_index,) in np.argwhere(rows_without_label.is_negative()):
            raise _label_exceeds_rows(errors.negative_count(0, self.classes[label_numbers[label_index]]))
        try:
            for group_number, (group, sums) in enumerate(self._groups()):
                if isinstance(sums, Words):
                    changed_words = (  # their ids; None: all words are checked
                        None if before is None else sums.table.changed_since(before.sums[group_number].table)
                    )
                    check_parts_of_words(group.features[0], sums.table, changed_words, all_rows, self.classes)
                else:
                    sums_without_label = sums.take(np.full(len(label_numbers), all_rows)) - sums.take(label_numbers)
                    group.counter.check(
                        group.features,
                        sums_without_label,
                        rows_without_label,
                        [self.classes[class_number] for class_number in label_numbers],
                    )
        except errors.NegativeCount as problem:
            raise _label_exceeds_rows(problem) from None

    def to(self, schema: Schema) -> Tally:
        """Returns the same tally under another schema with the same features: numbers are shifted and bins merged.

        Raises SchemaMismatch if this would need the rows again: for other families, other categories or narrower bins.
        """
        new_and_old_features = zip(schema.features, self.schema.features, strict=False)
        # A scale to which sums can be moved is no difference: for the comparison, new features take on the old scale
        # where the same counter, which sums up the features of a family, counts both.
        rescaled = [
            new.counter.adopt_scale(new, old) if new.counter is old.counter else new
            for new, old in new_and_old_features
        ]
        on_old_scale = replace(schema, features=Features.of([*rescaled, *schema.features[len(rescaled) :]]))
        if (difference := on_old_scale._explain_difference(self.schema)) is not None:
            raise errors.schema_mismatch(difference)
        try:
            moved = _move_to(self, schema)
        except errors.SchemaMismatch:  # a ValueError too, which says precisely what cannot be moved
            raise
        except (OverflowError, ValueError):
            raise errors.schema_mismatch("origins or units are too far apart to convert sums") from None
        new_and_old_sums = zip(moved.sums, self.sums, strict=True)
        rounded = any(new is not old and not isinstance(new, Counts) for new, old in new_and_old_sums)
        return replace(moved, rounded=self.rounded or rounded)

    def _trim(self, declared: tuple[Label, ...] = ()) -> Tally:
        """Returns this tally without keys (categories, words) that no row has any more, and without classes that have
        no rows, except those in ``declared``.
        """
        tally = self
        is_kept = is_nonzero(self.rows)  # one per class
        if declared:
            declared_names = set(declared)
            is_kept = is_kept | [name in declared_names for name in self.classes]
        if not is_kept.all():
            class_numbers = np.flatnonzero(is_kept)
            tally = self._select_classes(
                class_numbers, tuple(self.classes[class_number] for class_number in class_numbers)
            )
        groups = enumerate(tally._groups())  # the number of each group of features, the group and its sums
        return tally._with_sums(
            {group_number: sums.without_empty(permanent_keys(group.features)) for group_number, (group, sums) in groups}
        )

    def _select_classes(self, class_numbers: Any, names: tuple[Label, ...]) -> Tally:
        """Returns the tally of the classes with these numbers, in this order and under these names. Keys (categories,
        words) that none of them has stay.
        """
        class_numbers = np.asarray(class_numbers, dtype=np.int64)
        if _are_all(class_numbers, len(self.classes)):
            return replace(self, classes=names)
        sums = tuple(sums.take(class_numbers) for sums in self.sums)
        return replace(self, classes=names, rows=self.rows.take(class_numbers, 0), sums=sums)

    def _with_classes(self, classes: tuple[Label, ...]) -> Tally:
        """Returns the same tally with those of these classes that it lacks, without rows. If ``classes`` has all of
        this tally's, the new tally has them in that order, otherwise all sorted.
        """
        # The names of the new tally's classes.
        names: Any = classes if set(classes).issuperset(self.classes) else sort_keys(set(self.classes).union(classes))
        if self.classes == names:
            return self
        return self._merge_classes(_indices_of(self.classes, names), names)

    def _of_classes(self, class_numbers: Sequence[int], names: tuple[Label, ...], trims: bool = True) -> Tally:
        """Returns the tally of the classes with these numbers, in this order and under these names. Unless ``trims`` is
        False, keys (categories, words) that none of them has and classes without rows are dropped.
        """
        some_classes = self._select_classes(np.asarray(class_numbers, dtype=np.int64), names)
        return some_classes._trim() if trims else some_classes

    def _merge_classes(self, new_numbers: NDArray[np.int64], names: tuple[Label, ...]) -> Tally:
        """Returns a tally whose class number ``new_numbers[c]`` contains class c of this one; classes with the same new
        number are added. ``names`` are the names of the new classes, in order.
        """
        n_classes = len(names)
        if n_classes == len(self.classes) and _are_all(new_numbers, n_classes):
            return replace(self, classes=names)
        sums = tuple(sums.merge(new_numbers, n_classes) for sums in self.sums)
        return replace(self, classes=names, rows=self.rows.merge(new_numbers, n_classes, 0), sums=sums)

    # Looking

    def numbers(self) -> dict[str, Integers]:
        """Returns all sums except those of words, by the names that they have in a file: "classes" for the rows of each
        class, and others that begin with the number of the group of features.
        """
        arrays = (  # by name
            (f"{group_number}.{name}", integers)
            for group_number, sums in enumerate(self.sums)
            for name, integers in sums.arrays().items()
        )
        return {"classes": self.rows, **dict(arrays)}

    def _states(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays that describe the sums besides the numbers, such as those of words, by their names in a
        file, which begin with the number of the group of features.
        """
        states = ((group_number, sums.state()) for group_number, sums in enumerate(self.sums))  # state: array by name
        return {f"{group_number}.{name}": array for group_number, arrays in states for name, array in arrays.items()}

    def digest(self) -> str:
        """Returns a SHA-256 hash of everything that was counted (64 hexadecimal digits). Two digests are equal exactly
        when the tallies are equal.

        This proves forgetting: a tally that forgot some rows has the same digest as one that never counted them.

        >>> import banbury as bb
        >>> weather = bb.datasets.play_tennis()
        >>> tally = bb.count(weather, target="play")
        >>> more = tally.count({name: column[:3] for name, column in weather.items()})
        >>> (tally + more - more).digest() == tally.digest()
        True
        """
        # The names of the classes, then the keys (values, bins) of each feature that has them.
        all_keys = (self.classes, *(keys for sums in self.sums for keys in sums.keys))
        digest = hashlib.sha256(f"[{json.dumps(self.schema._counting_rules())}, [".encode())
        for index, keys in enumerate(all_keys):
            digest.update(f"{', ' if index else ''}{_as_json(keys)}".encode())
        digest.update(b"]]")
        # By name: the number of decimal digits after the point, and the array; for sums an array of 64-bit limbs.
        arrays = {name: (numbers.digits, numbers.limbs()) for name, numbers in self.numbers().items()}
        arrays |= {name: (0, array) for name, array in sorted(self._states().items())}
        for name, (digits, array) in arrays.items():
            digest.update(f"{name} {digits} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def groups(self) -> list[FamilySums]:
        """Each family with its features and their sums, so that parameters of the same family are estimated together."""
        return [family_sums for group, sums in self._groups() for family_sums in _split_by_family(group, sums)]

    def n_parameters(self, naive: bool = True) -> int:
        """The number of free parameters of the model; with ``naive=False``, of the joint distribution without the
        independence assumption.

        The joint distribution has a table over all categorical features and, in each of its cells, a Gaussian with full
        covariance over the numeric ones.

        >>> import banbury as bb
        >>> two = bb.count({"a": [True, False], "b": [True, True], "y": [0, 1]}, "y", features="bernoulli")
        >>> two.n_parameters(), two.n_parameters(naive=False)
        (5, 7)
        """
        n_classes = len(self.classes)
        n_prior = max(n_classes - 1, 0)  # parameters of the class prior
        if naive:
            # For each feature the number of its parameters per class, and of those that all classes share.
            counts_by_feature = [
                counts for family, features, sums in self.groups for counts in family.n_parameters(features, sums)
            ]
            return (
                n_classes * sum(n_per_class for n_per_class, _ in counts_by_feature)
                + sum(n_tied for _, n_tied in counts_by_feature)
                + n_prior
            )
        if self._has_words:
            raise errors.bad_setting("naive", False, "True for a tally with text, because words have no joint table")
        n_numbers = 0  # numeric columns
        n_cells = 1  # combinations of all categories
        for family, features, sums in self.groups:
            if isinstance(sums, Counts):
                n_cells *= prod(n_free + 1 for n_free, _ in family.n_parameters(features, sums))
            else:
                n_numbers += len(features.inputs)
        return n_classes * (n_cells - 1 + n_cells * (n_numbers + n_numbers * (n_numbers + 1) // 2)) + n_prior

    def __str__(self) -> str:
        """Returns the tally as text: its classes with their rows, and its features with what was counted."""
        has_fractional_weights = self.rows.digits > 0  # decimals of the numbers of rows
        size = f"{float(self.n_rows):,.6g} (weights)" if has_fractional_weights else many(int(self.n_rows), "row")
        features = many(len(self.schema.features), "feature")
        noun, rows_and_shares = self._rows_and_shares()  # of each class: its name, its rows, their share of all rows
        lines = [f"Tally of {size}, {many(len(rows_and_shares), noun)}, {features}"]
        table_rows = [(errors.shortened(repr(name)), n_rows, share) for name, n_rows, share in rows_and_shares[:20]]
        width = max((len(name) for name, _, _ in table_rows), default=0)
        lines += [f"  {name:{width}}  {n_rows:>12,.12g}  {share:6.1%}" for name, n_rows, share in table_rows]
        lines += more_line(len(rows_and_shares) - len(table_rows), noun)
        lines += [f"  {line}" for line in self._feature_lines()]
        if self.skipped:
            lines.append(f"  skipped: {many(self.skipped, 'row')} without a target")
        if self.rounded:
            reason = "sums were scaled by a fraction or moved to another schema, so nothing can be forgotten"
            lines.append(f"  rounded: {reason}")
        if self.parts:
            lines.append(f"  parts: {len(self.parts):,}: {errors.listed(sorted(self.parts), 3)}")
        if self.schema.left_out:
            reasons = (f"{name} ({reason})" for name, reason in self.schema.left_out.items())
            lines.append(f"  left out: {errors.listed(reasons)}")
        return "\n".join(lines)

    __repr__ = __str__

    def _rows_and_shares(self) -> tuple[str, list[tuple[Label, float, float]]]:
        """Returns two things: the noun "class" or "label"; and for each class or label, in order, its name, its number
        of rows and their share of all rows (0 to 1).
        """
        shares = self.rows.value / max(float(self.n_rows), 1e-300)
        rows_and_shares = list(zip(self.classes, self.rows.value.tolist(), shares.tolist(), strict=True))
        if self.schema.labels is None:
            return "class", rows_and_shares
        return "label", [label for label in rows_and_shares if label[0] != EVERY]

    def _notebook_tables(self) -> list[NotebookTable]:
        """Returns the two tables that a notebook shows: the classes with their rows, and the features with what was
        counted.
        """
        noun, rows_and_shares = self._rows_and_shares()  # of each class: its name, its rows, their share of all rows
        classes: dict[str, list[Any]] = {  # the columns of the first table
            noun: [name for name, _, _ in rows_and_shares],
            "rows": [n_rows for _, n_rows, _ in rows_and_shares],
            "share": [f"{share:.1%}" for _, _, share in rows_and_shares],
        }
        summaries = self._summaries(MOST_TABLE_ROWS)  # pairs of a feature and what was counted for it
        features = {  # the columns of the second table
            "column": [feature.name for feature, _ in summaries],
            "family": [feature.family.name for feature, _ in summaries],
            "counted": [summary for _, summary in summaries],
        }
        return [NotebookTable("", classes), NotebookTable("", features)]

    def _summaries(self, most: int | None = None) -> list[tuple[Feature, str]]:
        """Returns pairs of a feature and what was counted for it, in a few words; of ``most`` features at most."""
        tally = self._each_row_once  # so that a row with several labels counts once
        features_with_sums = (
            (feature, tally.of(feature.name), tally._missing_text(feature.name))
            for feature in self.schema.features[:most]
        )
        return [
            (feature, feature.counter.summary(feature, *sums_and_missing))
            for feature, *sums_and_missing in features_with_sums
        ]

    def _feature_lines(self) -> list[str]:
        """Returns a line of text about each feature, at most 108 characters long; only the first 20 features if there
        are many.
        """
        n_features = len(self.schema.features)
        summaries = self._summaries(20 if n_features > 21 else None)  # pairs of a feature and what was counted for it
        width = max((len(feature.name) for feature, _ in summaries), default=0)
        lines = [
            f"{feature.name:{width}}  {feature.family.name:{len('kernel_density')}}  {summary}"
            for feature, summary in summaries
        ]
        cut_lines = [line if len(line) <= 108 else line[:107] + "…" for line in lines]
        return cut_lines + [line[2:] for line in more_line(n_features - len(summaries), "feature")]

    def _missing_text(self, name: str) -> str:
        """Returns how many rows have no value of a feature, as ``, 3 missing``, or an empty text."""
        return f", {self.missing[name]:,.6g} missing" if self.missing[name] else ""


def _is_decimal(factor: float) -> bool:
    """Whether a factor can be written with at most 15 significant digits and 18 decimals, so that multiplying by it is
    exact.
    """
    rounded_factor = Decimal(f"{factor:.15g}")
    exponent = int(rounded_factor.normalize().as_tuple().exponent)  # of 10, of its last digit
    return factor == int(factor) or (float(rounded_factor) == factor and exponent >= -18)


def _with_label_names(problem: errors.NegativeCount) -> errors.NegativeCount:
    """Returns the same error with ``label 'x'`` instead of ``class 'x'``, and ``all rows`` for the class that holds
    every row. ``problem`` is an error about a negative count.
    """
    label = problem.label  # type: ignore[attr-defined]  # the class whose count is negative; EVERY holds all rows
    # ``_parts`` has the error's attributes by name.
    message = str(problem).replace(f"class {label!r}", "all rows" if label == EVERY else f"label {label!r}", 1)
    return errors.NegativeCount(message.replace(" of all rows", " among all rows", 1), **problem._parts)


def _label_exceeds_rows(problem: errors.NegativeCount) -> errors.NegativeCount:
    """Returns an error that says that more rows have a label than there are rows. ``problem`` is the error about a
    negative count that it replaces.
    """
    label = problem.label  # type: ignore[attr-defined]  # the label whose count is negative
    feature = getattr(problem, "feature", None)  # its name; None: the rows themselves
    in_feature = "" if feature is None else f" in feature {feature!r}"
    return errors.NegativeCount(
        f"subtracting left more rows with label {label!r} than rows{in_feature}. A row with this label was "
        "subtracted without it, or is not part of this tally; nothing was changed. Subtract rows with the "
        "labels they were added with.",
        label=label,
        feature=feature,
    )


def _indices_of(names: Sequence[Any], names_in_order: Sequence[Any]) -> NDArray[np.int64]:
    """Returns the index of each name in ``names_in_order``, which contains them all."""
    index_of = {name: index for index, name in enumerate(names_in_order)}
    return np.array([index_of[name] for name in names], dtype=np.int64)


def _are_all(numbers: NDArray[np.int64], n: int) -> bool:
    """Whether ``numbers`` are 0 to n − 1 in order."""
    return len(numbers) == n and bool((numbers == np.arange(n)).all())


def _canonical(key: Any) -> Any:
    """Returns a key for JSON such that equal keys are written alike: 1, 1.0 and True are equal. A key is a scalar, or a
    tuple of keys, which becomes a list.
    """
    if isinstance(key, tuple):
        return [_canonical(member) for member in key]
    return int(key) if isinstance(key, (bool, float)) and key == key // 1 else key


def _as_json(keys: Any) -> str:
    """Returns the keys of a group of features as JSON text; equal keys are written alike."""
    if isinstance(keys, WholeKeys):  # Python writes lists of integers as JSON does, and faster
        return str(keys.numbers.tolist())
    needs_canonical_form = not {int, str}.issuperset(map(type, keys))
    return json.dumps([_canonical(key) for key in keys] if needs_canonical_form else list(keys))


def _split_by_family(group: Group, sums: Any) -> list[FamilySums]:
    """Returns each family of a group's features, with its features and their part of the group's sums; every block of
    columns is by itself. Features with equal settings share a template, whose number ``features.codes`` has for each.
    """
    families = list[Family]()  # without repetition
    family_number_of_template = list[int]()  # indices in ``families``
    for template in group.features.templates:
        equal_families = (  # their numbers
            number
            for number, family in enumerate(families)
            if family.name == template.family.name and family == template.family
        )
        family_number_of_template.append(next(equal_families, len(families)))
        if family_number_of_template[-1] == len(families):
            families.append(template.family)
    if len(families) == 1 and not group.features.has_blocks:
        return [FamilySums(families[0], group.features, sums)]
    family_numbers = np.array(family_number_of_template, dtype=np.int64)[group.features.codes]  # one per feature
    sums_by_family = list[FamilySums]()
    for number, family in enumerate(families):
        positions = np.flatnonzero(family_numbers == number)  # of its features in the group
        for members in positions[:, None] if group.features.has_blocks else [positions]:  # positions, too
            features = group.features.take(members)
            sums_by_family.append(FamilySums(family, features, sums.select(members.tolist())))
    return sums_by_family


def _align_tallies(first: Tally, second: Tally) -> tuple[Tally, Tally]:
    """Returns the tallies ``first`` and ``second``, both with the classes of either and the wider bins of the two, so
    that their sums can be added. Raises SchemaMismatch if they count different things.
    """
    if first.schema is not second.schema:
        difference = first.schema._explain_difference(second.schema)
        if difference is not None:
            raise errors.schema_mismatch(difference)
        schema = first.schema._with_widest_bins(second.schema)
        first = _move_to(first, schema)
        second = _move_to(second, schema)
    if first.classes != second.classes:
        classes: Any = sort_keys(set(first.classes).union(second.classes))
        first = first._with_classes(classes)
        second = second._with_classes(classes)
    return first, second


def _move_to(tally: Tally, schema: Schema) -> Tally:
    """Returns the tally with sums moved to the scales and bins of ``schema``, which counts the same features."""
    if schema is tally.schema:
        return tally
    group_sums = zip(tally.schema.groups, schema.groups, tally.sums, strict=True)  # old group, new group, old sums
    sums = tuple(old.counter.move_sums(old.features, new.features, sums) for old, new, sums in group_sums)
    return replace(tally, schema=schema, sums=sums)


def merge_excess_bins(tally: Tally) -> Tally:
    """Returns the tally with bins merged in pairs until no feature has more bins than allowed. The result depends only
    on the totals.
    """
    # Pairs of a group of features, and these features with bins as wide as their sums need.
    merged_groups = [(group, group.counter.widen(group.features, sums)) for group, sums in tally._groups()]
    if all(features is group.features for group, features in merged_groups):
        return tally
    return _move_to(tally, tally.schema._with_features(merged_groups))


def add_tally(total: Tally | None, tally: Tally) -> Tally:
    """Returns ``total + tally``; a total of None stands for no rows yet."""
    return tally._read_texts() if total is None else total + tally


# Counting -------------------------------------------------------------------------------------------------------------


def count(
    data: Any,
    target: Any = None,
    *,
    schema: Schema | None = None,
    features: FamilyOption = "auto",
    weights: Any = None,
    classes: Sequence[Label] | None = None,
    missing: Missing = "skip",
    threads: int | None = None,
    target_delimiter: str | None = None,
    engine: Any = None,
    partitions: int | None = None,
    **reading: Any,
) -> Tally:
    """Counts a table in one pass and returns its tally.

    Args:
        data: A path to a CSV, Parquet or NDJSON file; a pandas, Polars or Arrow table; a mapping of columns; a NumPy
            array; a list of records; a list of texts; a folder with one sub-folder per class; or an iterable of batches
            of these. Dask dataframes and bags and Spark dataframes are counted on their cluster.
        target: The name of the target column, or one label per row. For a folder, the names of its sub-folders unless
            given. Rows without a label are skipped and counted in ``skipped``. Lists or sets of labels, texts with
            ``target_delimiter`` between labels, several columns of flags and a matrix of flags all mean several labels
            per row (see ``bb.MultiLabelClassifier``).
        schema: What to count. If omitted, it is inferred from the first batch.
        features: Overrides the inferred families: one for all columns ("gaussian", ``bb.Histogram(bins=20)``), or a
            mapping from column to family, where None leaves a column out.
        weights: One number per row, the name of a column, or a matrix of soft labels (rows × classes).
        classes: The classes that the columns of a matrix of ``weights`` stand for. Without a target, a single name is
            the class of all rows.
        missing: "skip" ignores missing values; "category" makes a missing string, boolean or category a value of its
            own.
        threads: The number of threads: BANBURY_THREADS or all processors unless given. It never changes the result.
        target_delimiter: The text between several labels in one cell.
        engine: Where to count files and the parts of a table: a Dask client, a Spark session, "dask://host:port",
            "spark://host:port", "processes", or an executor of ``concurrent.futures``. The result is the same. See
            ``docs/how-to/engines.md``.
        partitions: The number of parts that a table in memory is split into for an engine.
        **reading: How files are read. ``columns`` names the columns of a file without a header, ``delimiter`` is detected
            unless given, ``missing_values`` lists the texts that mean missing, ``format`` says that text files are all
            "text", "mail" or "html", and ``headers`` says which mail headers are counted ("keep", "drop" or a list of
            names; "columns" or ["columns", "subject"] makes each of them a column). All other options of
            ``banbury.reading.read`` are accepted, such as ``header=False``. With a ``schema``, files are read the same
            way as the files that it was inferred from, unless options say otherwise.

    >>> import banbury as bb
    >>> tally = bb.count(bb.datasets.play_tennis(), target="play")
    >>> tally.n_rows, tally.classes
    (14, ('no', 'yes'))
    """
    if schema is not None:
        reading = {"remembered": schema.reading, **reading}
    table = open_table(
        data,
        target,
        schema=schema,
        features=features,
        weights=weights,
        classes=classes,
        missing=missing,
        threads=threads,
        target_delimiter=target_delimiter,
        engine=engine,
        partitions=partitions,
        **reading,
    )
    return count_table(table)


@singledispatch
def count_table(table: Any) -> Tally:
    """Returns the tally of a table, counted batch by batch."""
    return check_classes(*sum_table(table), table.labels.name)


def check_classes(tally: Tally, n_rows: int, target: str | None) -> Tally:
    """Returns the tally of a whole table of ``n_rows`` rows. Raises an error if no row has a target (``target`` is its
    column, for the message), and warns about classes that look like a mistake.
    """
    if not tally.classes and tally.skipped == n_rows:
        raise errors.no_target(n_rows, target)
    warn_about_suspicious_classes(tally.classes)
    return tally


def sum_table(table: Table) -> tuple[Tally, int]:
    """Counts a table, which may be a part of a larger one; returns the tally and the number of rows read.

    Words are counted in a thread of their own while the next batch is read. ``table.labels`` says where the labels of
    the rows are and how many threads may count; ``by_column`` is true if they are in columns of the table.
    """
    # The schema and the tally so far of this pass over the rows: one pair, or none before the first batch. A pass that
    # starts again empties the list.
    schema_and_total: list[tuple[Schema, Tally | None]] = []
    n_rows = 0
    parser_work = ParserWork[tuple[Tally, ...]](table.labels.threads)  # the counting that parser threads do

    def add(part: Tally) -> None:
        """Adds the tally of a batch to the total, in ``schema_and_total``; the sum may have wider bins."""
        total = add_tally(schema_and_total[0][1], part)
        schema_and_total[0] = total.schema, total

    with LimitThreads(table.labels.threads), BackgroundThread() as adding_thread:
        for batch in table.batches("counting", schema_and_total.clear, parser_work=parser_work):
            adding_thread.wait()  # the schema may become another one
            if not schema_and_total:
                schema_and_total.append((table.settle_schema(batch), None))
                n_rows = 0
            [(schema, total)] = schema_and_total
            text_columns = schema._word_columns  # their names
            n_rows += batch.n_rows
            is_large = batch.n_rows >= ROWS_WORTH_A_THREAD and table.labels.threads > 1
            aligned = table.align(batch, schema)  # the batch with the column names of the schema
            # Tallies whose sum is that of the batch: a parser thread has counted it, or it is counted now.
            for part in parser_work.result(batch) or tallies_of_batch(aligned, schema, table.labels):
                adding_thread.wait()
                if is_large and text_columns and total is not None and aligned.text_bytes(text_columns) is not None:
                    adding_thread.start(partial(add, part))
                else:
                    add(part)
            if table.labels.by_column and not text_columns:
                parser_work.work = partial(_count_in_parser_thread, table, schema_and_total[0][0])
        adding_thread.wait()
    [(_, total)] = schema_and_total
    assert total is not None
    return total, n_rows


def _count_in_parser_thread(table: Table, schema: Schema, batch: Batch) -> tuple[Tally, ...]:
    """Returns the tallies of a later batch. The thread that parsed the batch counts it, with the bins of ``schema``:
    the schema that earlier batches of the table have settled.
    """
    return tuple(tallies_of_batch(table.align(batch, schema), schema, replace(table.labels, threads=1)))


def empty_tally(schema: Schema) -> Tally:
    """Returns the tally of no rows under a schema."""
    empty_batch = Batch(schema.columns, 0, Columns(lambda name: empty_column(n_rows=0)), schema.named)
    return count_rows(
        empty_batch, schema, Codes(np.zeros(0, dtype=np.int32), low=0, values=()), weights=None, threads=1
    )._read_texts()


def tallies_of_batch(batch: Batch, schema: Schema, labels: Labels) -> Iterator[Tally]:
    """Yields tallies whose sum is the tally of the batch: one of its rows, also if they have sets of labels, or one for
    each class of soft labels.

    Texts are tokenized when their words are needed. ``labels`` says where the classes, weights or label sets
    (``sets_from``) of the batch's rows are.
    """
    if labels.sets_from is not None:
        yield count_sets(batch, schema, labels.sets_of(batch), labels.weights_of(batch), labels.threads)
        return
    for rows in rows_of_batch(batch, schema, labels):
        yield tally_of(rows, schema)


def rows_of_batch(batch: Batch, schema: Schema, labels: Labels) -> Iterator[RowsToCount]:
    """Yields the batch's rows with their classes and weights; with soft labels once for each class, weighted by its
    column. ``labels`` says where the classes and weights of the batch's rows are.
    """
    codes, weights = labels.of_batch(batch, schema.target_kind)  # weights: (rows,), or rows × classes if soft
    if weights is None or weights.ndim == 1:
        yield rows_to_count(batch, codes, weights, labels.threads)
        return
    assert labels.classes is not None
    encoded_shares = encode_weights(weights)  # rows × classes × limbs of 64 bits
    for class_number, label in enumerate(labels.classes):
        same_class = Codes(np.zeros(batch.n_rows, dtype=np.int32), low=0, values=[label])
        yield replace(rows_to_count(batch, same_class, encoded_shares[:, class_number], labels.threads), skipped=0)


def rows_to_count(batch: Batch, labels: Codes, weights: NDArray[Any] | None, threads: int) -> RowsToCount:
    """Returns the batch's rows with these labels (a code per row, one per class) and weights. Weights (one per row, or
    None if all are 1) may already be encoded in units of 10⁻¹⁸. Rows without a label are not counted. Raises an error
    if the labels look continuous, and warns of weights that are rounded to zero.
    """
    for noun, one_per_row in (("labels", labels.codes), ("weights", weights)):
        if one_per_row is not None and len(one_per_row) != batch.n_rows:
            raise errors.length_mismatch(noun, len(one_per_row), batch.n_rows)
    labels = renumber_range(labels, threads)  # ``values`` are now the names of the classes
    refuse_continuous(labels.values, batch.n_rows)
    classes = zero_based_codes(labels, threads)  # the class number of each row, −1 for none
    skipped = int(np.count_nonzero(classes < 0)) if classes.size and classes.min() < 0 else 0
    if weights is None:
        return RowsToCount(batch, labels.values, classes, weights=None, threads=threads, skipped=skipped)
    n_positive = int(np.count_nonzero(weights)) if weights.dtype == np.float64 else 0  # 0: they are encoded already
    classes, weights = kernel_weights(classes, weights)
    assert weights is not None
    _warn_about_tiny_weights(n_positive - int(np.count_nonzero(weights if weights.ndim == 1 else weights.any(axis=1))))
    return RowsToCount(batch, labels.values, classes, weights, threads, skipped=skipped)


def count_rows(batch: Batch, schema: Schema, labels: Codes, weights: NDArray[Any] | None, threads: int) -> Tally:
    """Returns the tally of the batch's rows with these labels and weights (one per row, or None if all are 1). Texts
    are tokenized when their words are needed.
    """
    return tally_of(rows_to_count(batch, labels, weights, threads), schema)


def tally_of(rows: RowsToCount, schema: Schema) -> Tally:
    """Returns the tally of these rows under a schema, or the same schema with wider bins. Texts are tokenized when
    their words are needed.
    """
    with LimitThreads(rows.threads):
        # For each group of features: the group, its features, perhaps with wider bins, and their sums.
        group_sums = [(group, *group.counter.count(group.features, rows)) for group in schema.groups]
    if not all(features is group.features for group, features, _ in group_sums):
        schema = schema._with_features((group, features) for group, features, _ in group_sums)
    tally = Tally(schema, tuple(rows.labels), rows.per_class, tuple(sums for *_, sums in group_sums), rows.skipped)
    return merge_excess_bins(_sort_classes(tally)._trim())


def round_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns weights (one per row) rounded as counting does; a weight that is too small becomes 0, with a warning."""
    rounded_weights = decode_weights(encode_weights(weights))
    _warn_about_tiny_weights(int(np.count_nonzero(weights)) - int(np.count_nonzero(rounded_weights)))
    return rounded_weights


def _warn_about_tiny_weights(n_rows: int) -> None:
    """Warns that this many rows have weights so small that they are rounded to zero."""
    if n_rows > 0:
        rows_weigh = "1 row weighs" if n_rows == 1 else f"{n_rows:,} rows weigh"
        errors.warn(
            f"{rows_weigh} less than 5e-19, which is rounded to zero. Multiply all weights by a constant to keep them"
        )


def count_sets(
    batch: Batch,
    schema: Schema,
    sets: LabelSets,
    weights: NDArray[Any] | None,
    threads: int,
    groups: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> Tally:
    """Returns the tally of rows that have several labels each: a row counts once for each of its labels, and once in
    the class of all rows, ``EVERY``.

    Each text is tokenized once.

    Args:
        batch: The rows.
        schema: What is counted.
        sets: The labels of each row. Rows without a target are skipped.
        weights: The weight of each row, or None if all are 1.
        threads: How many threads may count.
        groups: If given, each class stands for one label in one group, and its name is a number: the first number of
            the label plus the group. The pair has the group number of each row; and the first number of the class of
            all rows, then that of each label.
    """
    rows_with_target = np.flatnonzero(sets.has_target)
    # One entry for each row with a target, in the class of all rows, and then one for each label of each row.
    row_of_label = np.concatenate([rows_with_target, sets.rows])
    codes = np.concatenate([np.zeros(len(rows_with_target), dtype=np.int32), sets.codes + np.int32(1)])
    names: tuple[Label, ...] = (EVERY, *sets.names)  # of these codes
    if groups is not None:
        # The distinct numbers of classes, and for each entry the index of its number among them.
        class_numbers, codes_used = np.unique(groups[1][codes] + groups[0][row_of_label], return_inverse=True)
        names = tuple(class_numbers.tolist())
        codes = codes_used.astype(np.int32)
    classes = np.full(len(sets), -1, dtype=np.int32)  # for each row the code of the class of all rows, −1 for none
    classes[rows_with_target] = codes[: len(rows_with_target)]
    classes, row_weights = kernel_weights(classes, weights)
    tally = count_rows(
        batch.take(row_of_label),
        schema,
        Codes(codes, low=0, values=names),
        None if row_weights is None else row_weights[row_of_label],
        threads,
    )
    offsets_and_codes = sets.offsets, codes[len(rows_with_target) :]  # the labels of each row
    if weights is not None:  # rows that weigh nothing have no labels either
        _warn_about_tiny_weights(int(np.count_nonzero((weights > 0) & sets.has_target & (classes < 0))))
        n_labels = np.where(classes >= 0, np.diff(sets.offsets), 0)  # of each row
        offsets_and_codes = np.concatenate([[0], np.cumsum(n_labels)]), offsets_and_codes[1][classes[sets.rows] >= 0]
    each_row_once = RowsToCount(batch, names, classes, row_weights, threads, offsets_and_codes)
    classes_used = _indices_of(tally.classes, names)  # the indices in ``names`` of classes that have rows
    words = {  # by the number of the group of features
        group_number: WORDS.count(group.features, each_row_once)[1].take(classes_used)
        for group_number, (group, sums) in enumerate(tally._groups())
        if isinstance(sums, Words)
    }
    return replace(tally._with_sums(words), skipped=int(np.count_nonzero(~sets.has_target)))


def sums_of_rows(schema: Schema, batch: Batch, weights: NDArray[Any] | None, threads: int, features: Features) -> Any:
    """Returns the sums of some ``features``, all of one family, with every row of the batch as a class of its own.
    ``weights`` has one per row, or is None.
    """
    return sums_of_groups(schema, batch, np.arange(batch.n_rows), batch.n_rows, weights, threads, features)


def sums_of_groups(
    schema: Schema,
    batch: Batch,
    groups: NDArray[Any],
    n_groups: int,
    weights: NDArray[Any] | None,
    threads: int,
    features: Features,
) -> Any:
    """Returns the sums of some ``features``, all of one family, with every group of rows as a class of its own.
    ``groups`` has the group number of each row, from 0 to ``n_groups`` − 1; ``weights`` has one per row, or is None.
    """
    numbers = tuple(range(n_groups))  # the names of the classes
    labels = Codes(groups.astype(np.int32), low=0, values=numbers)
    tally = count_rows(batch, replace(schema, features=features), labels, weights, threads)
    [(_, _, sums)] = tally._with_classes(numbers)._read_texts().groups
    return sums


def _sort_classes(tally: Tally) -> Tally:
    """Returns the tally with its classes in order."""
    classes: Any = sort_keys(tally.classes)
    if classes == tally.classes:
        return tally
    return tally._select_classes(_indices_of(classes, tally.classes), classes)
