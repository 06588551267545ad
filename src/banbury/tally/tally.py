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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.errors import many
from banbury.families.bags.words import WORDS, add_texts, check_parts_of_words, subtract
from banbury.families.family import Family, Feature, RowsToCount
from banbury.families.keys import code_numbers, dense
from banbury.notebooks import SHOWN, Displayed, NotebookTable
from banbury.reading import Batch, Beside, Codes
from banbury.reading.batches import join_batches
from banbury.reading.by_name import Columns
from banbury.reading.columns import empty_column
from banbury.sums import (
    MOST_ROWS,
    Counts,
    WholeKeys,
    Words,
    in_order,
    in_parts,
    in_rows,
    kernel_weights,
    rows_of,
    some,
    total,
)
from banbury.tally.label_sets import EVERY, LabelSets
from banbury.tally.schema import Features, Group, Missing, Schema
from banbury.tally.table import Labels, Table, doubt, open_table, refuse_continuous
from banbury.threads import Behind, LimitThreads

Label = bool | int | float | str
MANY_ROWS = 1000  # of a batch, whose words are worth a thread of their own
MANY_BYTES = 1 << 24  # of texts that are counted together


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
    rows: Integers  # (classes,)
    sums: tuple[Any, ...]  # of each group of features: Counts, Moments, Products or Words
    skipped: int = 0  # rows without a target
    rounded: bool = False  # sums were rounded: scaled by a fraction, or moved to another schema
    parts: frozenset[str] = frozenset()  # the names of the parts it is made of, if any; equal sums are equal

    @property
    def n_rows(self) -> float:
        """The number of rows counted, or their total weight if weights are fractional."""
        if self.schema.labels is not None:
            every = rows_of(self.rows)[self.classes.index(EVERY)] if EVERY in self.classes else 0
        else:
            every = rows_of(total(self.rows, 0))[0] if self.classes else 0
        return int(every) if self.rows.digits == 0 else float(every)

    @cached_property
    def missing(self) -> dict[str, float]:
        """The number of rows without a value, by feature; their total weight if weights are fractional.

        >>> import banbury as bb
        >>> bb.count({"fever": [38.9, None, 37.0], "ward": ["a", "b", "a"], "flu": ["yes", "no", "no"]}, target="flu").missing
        {'fever': 1.0, 'ward': 0.0}
        """
        if not self.classes:
            return {feature.name: 0.0 for feature in self.schema.features}
        if self._each_row_once is not self:
            return self._each_row_once.missing
        every = total(self.rows, 0)
        missing = dict[str, float]()
        for (_, features, _), sums in self._groups():
            there = total(sums.present, 1).arranged([len(features)])
            lacking = every.take(np.zeros(len(features), dtype=np.int64), 0) - there
            missing |= zip((f.name for f in features), lacking.value.tolist(), strict=True)
        return {f.name: max(missing[f.name], 0.0) for f in self.schema.features}

    @cached_property
    def _each_row_once(self) -> Tally:
        """Where rows have sets of labels, all of them as one class; this tally otherwise."""
        if self.schema.labels is None or EVERY not in self.classes:
            return self
        plain = replace(self, schema=replace(self.schema, labels=None))
        return plain.of_classes([self.classes.index(EVERY)], (EVERY,))

    @cached_property
    def empty_cells(self) -> dict[str, float]:
        """The share of empty cells in the table of each joint block: the curse of dimensionality, measured.

        >>> import banbury as bb
        >>> weather = bb.datasets.play_tennis()
        >>> names = ("outlook", "temperature", "humidity")
        >>> bb.count(weather, target="play", features={names: bb.Joint()}).empty_cells
        {'outlook + temperature + humidity': 0.38888888888888884}
        """
        blocks = [feature for feature in self.schema.features if feature.columns]
        shares = {feature.name: feature.family.empty_share(feature, self.of(feature.name)) for feature in blocks}
        return {name: share for name, share in shares.items() if share is not None}

    def of(self, name: str) -> Any:
        """Returns the sums of one feature."""
        group, at = self._places[self.schema[name].name]
        return self.sums[group].select([at])

    def group_of(self, name: str) -> Any:
        """Returns the sums of all features that are counted together with this one."""
        return self.sums[self._places[name][0]]

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """The group of each feature, and its place there."""
        groups = enumerate(self.schema.groups)
        return {f.name: (g, at) for g, group in groups for at, f in enumerate(group.features)}

    @cached_property
    def has_words(self) -> bool:
        """Whether some features have tables of words, which can be large."""
        return any(isinstance(sums, Words) for sums in self.sums)

    def with_sums(self, changed: Mapping[int, Any]) -> Tally:
        """Returns the same tally with other sums for some groups of features, by group number."""
        return replace(self, sums=tuple(changed.get(g, sums) for g, sums in enumerate(self.sums)))

    def read_texts(self) -> Tally:
        """Returns the same tally with all texts tokenized. ``count_rows`` defers this until the words are needed."""
        counted = {g: sums.read_texts() for g, sums in enumerate(self.sums) if isinstance(sums, Words)}
        return self.with_sums(counted) if counted else self

    def drop_absent_words(self) -> Tally:
        """Returns the same tally without words that no text contains any more."""
        used = {g: sums.drop_absent_words() for g, sums in enumerate(self.sums) if isinstance(sums, Words)}
        return self if all(self.sums[g] is sums for g, sums in used.items()) else self.with_sums(used)

    def _groups(self) -> Iterator[tuple[Group, Any]]:
        """The features that were counted together, with their sums."""
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

        If this tally has one class and no target column, such as the tally of a density, all rows get that class.
        """
        if target is None and self.schema.labels is not None and self.schema.labels.columns:
            target = self.schema.labels
        elif target is None and classes is None and np.ndim(weights) < 2:
            alone = self.schema.target is None and len(self.classes) == 1
            target = self.schema.target
            classes = self.classes if alone else None
        return count(data, target, schema=self.schema, weights=weights, classes=classes, threads=threads, **reading)

    # The algebra

    def __add__(self, other: Tally) -> Tally:
        """Both data sets together."""
        if not isinstance(other, Tally):
            raise errors.not_a_tally(other, "add")
        if twice := self.parts & other.parts:
            raise errors.part_twice(twice)
        a, b = _together(self, other)
        sums = tuple(x + y for x, y in zip(a.sums, b.sums, strict=True))
        skipped = a.skipped + b.skipped
        rounded = a.rounded or b.rounded
        parts = a.parts | b.parts
        summed = replace(a, rows=a.rows + b.rows, sums=sums, skipped=skipped, rounded=rounded, parts=parts)
        return within_bins(summed._not_too_many())

    def _not_too_many(self) -> Tally:
        if self.classes and not total(self.rows, 0).value[0] < MOST_ROWS:
            raise errors.too_many_rows()
        return self

    def __radd__(self, other: object) -> Tally:
        return self if other == 0 else NotImplemented  # so that sum(tallies) works

    def __sub__(self, other: Tally) -> Tally:
        """This data set without the other, which must be part of it; raises, and changes nothing, where it shows not to be.

        It raises, too, where the sums of one of the two were rounded.
        """
        if not isinstance(other, Tally):
            raise errors.not_a_tally(other, "subtract")
        return self.minus(other)

    def minus(self, other: Tally, declared: tuple[Label, ...] = ()) -> Tally:
        """Returns this tally without the other. Classes in ``declared`` are kept even if they have no rows left."""
        if self.rounded or other.rounded:
            raise errors.forget_before_fading("this tally" if self.rounded else "the tally to be subtracted")
        try:
            return self._minus(other).verify(self)._trim(declared)
        except errors.NegativeCount as problem:
            raise self._in_words(problem) from None

    def add_texts(self, texts: list[str], labels: list[str], threads: int) -> Tally | None:
        """Returns this tally with more texts added, without building a batch.

        Returns None unless the tally has a single text column and contains all the classes.
        """
        one_column = len(self.sums) == 1 and len(self.schema.columns) == 1 and not self.schema.named
        if not one_column or {*map(type, texts), *map(type, labels)} != {str} or len(texts) != len(labels):
            return None
        [words] = self.sums
        if not isinstance(words, Words) or not set(self.classes).issuperset(labels):
            return None
        numbers = _places(labels, self.classes).astype(np.int32)
        rows = self.rows + _core.count_classes(numbers, len(self.classes), None, threads)
        if (more := add_texts(self.schema.features[0], words, texts, numbers, threads)) is None:
            return None
        return replace(self, rows=rows, sums=(more,))._not_too_many()

    def without_part(self, part: Tally) -> Tally:
        """Returns this tally without rows that are known to be part of it, so that the result needs no check."""
        return self._minus(part)._trim()

    def _minus(self, other: Tally) -> Tally:
        a, b = _together(self, other)
        rows = a.rows - b.rows
        a._check_rows(rows)
        sums_of_both = zip(a.schema.groups, a.sums, b.sums, strict=True)
        differences = tuple(subtract(g.features, x, y, a.classes) for g, x, y in sums_of_both)
        skipped = max(0, a.skipped - b.skipped)
        return replace(a, rows=rows, sums=differences, skipped=skipped, parts=a.parts - b.parts)

    def _in_words(self, problem: errors.NegativeCount) -> errors.NegativeCount:
        """What is said of sums that cannot be; of sets of labels by their names."""
        return problem if self.schema.labels is None else _of_labels(problem)

    def __mul__(self, factor: float) -> Tally:
        """Every row so many times; a factor below one lets the past fade.

        A whole factor is exact. Of any other each sum is rounded once, down to 10⁻¹⁸ of a row or a step of it, where it has more
        digits than that. From sums that were ``rounded`` nothing can be subtracted: forget before you fade.
        """
        if isinstance(factor, bool) or not isinstance(factor, (int, float, np.integer, np.floating)):
            return NotImplemented
        if not 0 <= factor < MOST_ROWS or float(factor) * float(self.n_rows) >= MOST_ROWS:
            expected = "finite and non-negative, and leave fewer than 2**63 rows"
            raise errors.bad_setting("the factor of a tally", factor, expected)
        errors.require(float(factor) == factor, "the factor of a tally", factor, "a number that a double holds")
        rows, exact = self.rows.times(factor := float(factor))
        scaled = [sums.times(factor) for sums in self.sums]
        rounded = self.rounded or not (exact and _is_decimal(factor) and all(exact for _, exact in scaled))
        sums = tuple(part for part, _ in scaled)
        return replace(self, rows=rows, sums=sums, rounded=rounded)._trim()

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Tally:
        return self * (1.0 / divisor) if divisor else self * float("inf")

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same sums, to the last bit, under the same schema; bins of other widths are other sums."""
        if not isinstance(other, Tally):
            return NotImplemented
        a, b = _together(self, other)
        alike = self.classes == other.classes and self.schema == other.schema and a.rows.same(b.rows)
        return alike and all(x.same(y) for x, y in zip(a.sums, b.sums, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _check_rows(self, rows: Integers) -> None:
        """Raises where a class would have less than no rows."""
        for (label,) in np.argwhere(rows.is_negative()):
            raise errors.negative_count(rows_of(rows)[label], self.classes[label])

    def verify(self, before: Tally | None = None) -> Tally:
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
        """Raises where more rows have a label than there are rows, by any of their values."""
        every = self.classes.index(EVERY)
        label_numbers = np.array([c for c in range(len(self.classes)) if c != every], dtype=np.int64)
        rest = self.rows.take(np.full(len(label_numbers), every), 0) - self.rows.take(label_numbers, 0)
        for (at,) in np.argwhere(rest.is_negative()):
            raise _more_of_a_label(errors.negative_count(0, self.classes[label_numbers[at]]))
        try:
            for g, (group, sums) in enumerate(self._groups()):
                if isinstance(sums, Words):
                    changed = None if before is None else sums.table.changed_since(before.sums[g].table)
                    check_parts_of_words(group.features[0], sums.table, changed, every, self.classes)
                else:
                    without = sums.take(np.full(len(label_numbers), every)) - sums.take(label_numbers)
                    group.counter.check(group.features, without, rest, [self.classes[c] for c in label_numbers])
        except errors.NegativeCount as problem:
            raise _more_of_a_label(problem) from None

    def to(self, schema: Schema) -> Tally:
        """Returns the same tally under another schema with the same features: numbers are shifted and bins merged.

        Raises SchemaMismatch if this would need the rows again: for other families, other categories or narrower bins.
        """
        pairs = zip(schema.features, self.schema.features, strict=False)
        re_centred = tuple(a.counter.adopt_scale(a, b) if a.counter is b.counter else a for a, b in pairs)
        moved_to = replace(schema, features=re_centred + schema.features[len(re_centred) :])
        if (why := moved_to.differs(self.schema)) is not None:
            raise errors.schema_mismatch(why)
        both = zip(self.schema.groups, schema.groups, self.sums, strict=True)
        try:
            moved = tuple(old.counter.move_sums(old.features, new.features, sums) for old, new, sums in both)
        except errors.SchemaMismatch:
            raise
        except (OverflowError, ValueError):
            raise errors.schema_mismatch("origins or units are too far apart to convert sums") from None
        moves = zip(moved, self.sums, strict=True)
        rounded = any(new is not old and not isinstance(new, Counts) for new, old in moves)
        return replace(self, schema=schema, sums=moved, rounded=self.rounded or rounded)

    def _trim(self, declared: tuple[Label, ...] = ()) -> Tally:
        """Without the keys that no row has any more, and without such classes unless they are declared."""
        tally = self
        kept = np.flatnonzero(some(self.rows))
        if declared:
            stays = set(declared)
            kept = np.union1d(kept, [c for c, name in enumerate(self.classes) if name in stays]).astype(np.int64)
        if len(kept) < len(self.classes):
            tally = self._of(kept, tuple(self.classes[c] for c in kept))
        groups = enumerate(tally._groups())
        trimmed = {n: sums.without_empty(f.family.permanent_keys() for f in g.features) for n, (g, sums) in groups}
        return tally if all(sums is tally.sums[n] for n, sums in trimmed.items()) else tally.with_sums(trimmed)

    def _of(self, kept: Any, names: tuple[Label, ...]) -> Tally:
        kept = np.asarray(kept, dtype=np.int64)
        if _are_all(kept, len(self.classes)):
            return replace(self, classes=names)
        sums = tuple(sums.take(kept) for sums in self.sums)
        return replace(self, classes=names, rows=self.rows.take(kept, 0), sums=sums)

    def with_classes(self, classes: tuple[Label, ...]) -> Tally:
        """Returns the same sums with additional classes that have no rows yet."""
        names: Any = classes if set(classes).issuperset(self.classes) else in_order(set(self.classes).union(classes))
        if self.classes == names:
            return self
        return self.merge_classes(_places(self.classes, names), names)

    def of_classes(self, kept: Sequence[int], names: tuple[Label, ...], trims: bool = True) -> Tally:
        """Returns some of the classes, by number, under these names; keys that none of them has are dropped unless
        ``trims`` is False.
        """
        some_classes = self._of(np.asarray(kept, dtype=np.int64), names)
        return some_classes._trim() if trims else some_classes

    def merge_classes(self, index: NDArray[np.int64], names: tuple[Label, ...]) -> Tally:
        """Turns class c into class ``index[c]`` of these; classes with the same index are added."""
        size = len(names)
        if size == len(self.classes) and _are_all(index, size):
            return replace(self, classes=names)
        sums = tuple(sums.merge(index, size) for sums in self.sums)
        return replace(self, classes=names, rows=self.rows.merge(index, size, 0), sums=sums)

    # Looking

    def numbers(self) -> dict[str, Integers]:
        """All sums except those of words, by their names in a file."""
        arrays = ((f"{g}.{name}", part) for g, sums in enumerate(self.sums) for name, part in sums.arrays().items())
        return {"classes": self.rows, **dict(arrays)}

    def states(self) -> dict[str, NDArray[Any]]:
        states = ((g, sums.state()) for g, sums in enumerate(self.sums))
        return {f"{g}.{name}": array for g, state in states for name, array in state.items()}

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
        every = (self.classes, *(keys for sums in self.sums for keys in sums.keys))
        digest = hashlib.sha256(f"[{json.dumps(self.schema.counting_rules())}, [".encode())
        for k, keys in enumerate(every):
            digest.update(f"{', ' if k else ''}{_as_json(keys)}".encode())
        digest.update(b"]]")
        arrays = {name: (numbers.digits, numbers.limbs()) for name, numbers in self.numbers().items()}
        arrays |= {name: (0, array) for name, array in sorted(self.states().items())}
        for name, (digits, array) in arrays.items():
            digest.update(f"{name} {digits} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def groups(self) -> list[tuple[Family, tuple[Feature, ...], Any]]:
        """The features of each family and setting with their sums, so that parameters are estimated together."""
        return [part for group, sums in self._groups() for part in _by_family(group, sums)]

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
        prior = max(len(self.classes) - 1, 0)
        if naive:
            pairs = [pair for family, features, sums in self.groups for pair in family.n_parameters(features, sums)]
            return n_classes * sum(per_class for per_class, _ in pairs) + sum(tied for _, tied in pairs) + prior
        if self.has_words:
            raise errors.bad_setting("naive", False, "True for a tally with text, because words have no joint table")
        d = 0
        table = 1
        for family, features, sums in self.groups:
            if isinstance(sums, Counts):
                table *= prod(n_free + 1 for n_free, _ in family.n_parameters(features, sums))
            else:
                d += sum(len(feature.inputs) for feature in features)
        return n_classes * (table - 1 + table * (d + d * (d + 1) // 2)) + prior

    def __str__(self) -> str:
        weighted = self.rows.digits > 0
        size = f"{float(self.n_rows):,.6g} (weights)" if weighted else many(int(self.n_rows), "row")
        features = many(len(self.schema.features), "feature")
        several = self.schema.labels is not None
        named = [c for c, name in enumerate(self.classes) if not (several and name == EVERY)]
        lines = [f"Tally of {size}, {many(len(named), 'label' if several else 'class')}, {features}"]
        share = self.rows.value / max(float(self.n_rows), 1e-300)
        shown = [(self.classes[c], self.rows.value[c], share[c]) for c in named[:20]]
        names = [errors.shortened(repr(name)) for name, _, _ in shown]
        width = max(map(len, names), default=0)
        named_rows = zip(names, shown, strict=True)
        lines += [f"  {name:{width}}  {n:>12,.12g}  {part:6.1%}" for name, (_, n, part) in named_rows]
        lines += _hidden(len(named) - len(shown), "label" if several else "class")
        lines += [f"  {line}" for line in self._feature_lines()]
        if self.skipped:
            lines.append(f"  skipped: {many(self.skipped, 'row')} without a target")
        if self.rounded:
            why = "sums were scaled by a fraction or moved to another schema, so nothing can be forgotten"
            lines.append(f"  rounded: {why}")
        if self.parts:
            lines.append(f"  parts: {len(self.parts):,}: {errors.listed(sorted(self.parts), 3)}")
        if self.schema.left_out:
            reasons = (f"{name} ({why})" for name, why in self.schema.left_out.items())
            lines.append(f"  left out: {errors.listed(reasons)}")
        return "\n".join(lines)

    __repr__ = __str__

    def _notebook_tables(self) -> list[NotebookTable]:
        several = self.schema.labels is not None
        named = [c for c, name in enumerate(self.classes) if not (several and name == EVERY)]
        rows = self.rows.value
        share = self.rows.value / max(float(self.n_rows), 1e-300)
        classes: dict[str, list[Any]] = {
            "label" if several else "class": [self.classes[c] for c in named],
            "rows": [float(rows[c]) for c in named],
            "share": [f"{share[c]:.1%}" for c in named],
        }
        summaries = self.summaries(SHOWN if len(self.schema.features) > SHOWN else None)
        features = {
            "column": [feature.name for feature, _ in summaries],
            "family": [feature.family.name for feature, _ in summaries],
            "counted": [text for _, text in summaries],
        }
        return [NotebookTable("", classes), NotebookTable("", features)]

    def summaries(self, most: int | None = None) -> list[tuple[Feature, str]]:
        """Describes each feature in a few words; with ``n``, only the first ones."""
        once = self._each_row_once
        features_with_sums = ((f, once.of(f.name), once._missing_text(f.name)) for f in self.schema.features[:most])
        return [(feature, feature.counter.summary(feature, *counted)) for feature, *counted in features_with_sums]

    def _feature_lines(self) -> list[str]:
        n_features = len(self.schema.features)
        shown = self.summaries(20 if n_features > 21 else None)
        width = max((len(feature.name) for feature, _ in shown), default=0)
        lines = [f"{f.name:{width}}  {f.family.name:{len('kernel_density')}}  {text}" for f, text in shown]
        cut = [line if len(line) <= 108 else line[:107] + "…" for line in lines]
        return cut + [line[2:] for line in _hidden(n_features - len(shown), "feature")]

    def _missing_text(self, name: str) -> str:
        return f", {self.missing[name]:,.6g} missing" if self.missing[name] else ""


def _is_decimal(factor: float) -> bool:
    """Whether a factor is the number that fifteen digits, eighteen decimals at most, write."""
    written = Decimal(f"{factor:.15g}")
    return factor == int(factor) or (float(written) == factor and int(written.normalize().as_tuple().exponent) >= -18)


def _of_labels(problem: errors.NegativeCount) -> errors.NegativeCount:
    """The same where classes are labels, and one of them is that of all rows."""
    label = problem.label  # type: ignore[attr-defined]
    text = str(problem).replace(f"class {label!r}", "all rows" if label == EVERY else f"label {label!r}", 1)
    return errors.NegativeCount(text.replace(" of all rows", " among all rows", 1), **problem._parts)


def _more_of_a_label(problem: errors.NegativeCount) -> errors.NegativeCount:
    """What is left has rows of a label that are no rows at all."""
    label = problem.label  # type: ignore[attr-defined]
    feature = getattr(problem, "feature", None)
    place = "" if feature is None else f" in feature {feature!r}"
    text = f"subtracting left more rows with label {label!r} than rows{place}. A row with this label was subtracted "
    text += "without it, or is not part of this tally; nothing was changed. Subtract rows with the labels they were added with."
    return errors.NegativeCount(text, label=label, feature=feature)


def _places(names: Sequence[Any], among: Sequence[Any]) -> NDArray[np.int64]:
    """Where each name is among others, which have it."""
    place = {name: c for c, name in enumerate(among)}
    return np.array([place[name] for name in names], dtype=np.int64)


def _are_all(numbers: NDArray[np.int64], n: int) -> bool:
    """Whether these are the numbers from 0 to n in order."""
    return len(numbers) == n and bool((numbers == np.arange(n)).all())


def _canonical(key: Any) -> Any:
    """Equal keys alike: 1, 1.0 and True are."""
    if isinstance(key, tuple):
        return [_canonical(part) for part in key]
    return int(key) if isinstance(key, (bool, float)) and key == key // 1 else key


def _hidden(n: int, what: str) -> list[str]:
    return [f"  … and {many(n, 'more ' + what)}"] if n > 0 else []


def _as_json(keys: Any) -> str:
    if isinstance(keys, WholeKeys):  # of which Python writes lists as JSON does, and faster
        return str(keys.numbers.tolist())
    plain = {int, str}  # which are as they should be
    return json.dumps(list(keys) if plain.issuperset(map(type, keys)) else [_canonical(key) for key in keys])


def _by_family(group: Group, sums: Any) -> list[tuple[Family, tuple[Feature, ...], Any]]:
    """The features of a group by family, each with its part of the sums."""
    first = group.features[0].family
    if all(feature.family is first for feature in group.features):
        return [(first, group.features, sums)]
    places: list[tuple[Family, list[int]]] = []
    places_of_family: dict[int, list[int]] = {}  # most columns share their very family
    for at, feature in enumerate(group.features):
        family = feature.family
        same = (i for other, i in places if other.name == family.name and other == family)
        index = places_of_family.get(id(family)) or next(same, None)
        if index is None:
            index = []
            places.append((family, index))
        places_of_family[id(family)] = index
        index.append(at)
    return [(family, tuple(group.features[f] for f in index), sums.select(index)) for family, index in places]


def _together(a: Tally, b: Tally) -> tuple[Tally, Tally]:
    """Both over the classes, keys and bin widths of either."""
    if a.schema is not b.schema:
        why = a.schema.differs(b.schema)
        if why is not None:
            raise errors.schema_mismatch(why)
        schema = a.schema.with_widest_bins(b.schema)
        a = _coarsen(a, schema)
        b = _coarsen(b, schema)
    if a.classes != b.classes:
        classes: Any = in_order(set(a.classes).union(b.classes))
        a = a.with_classes(classes)
        b = b.with_classes(classes)
    return a, b


def _coarsen(tally: Tally, schema: Schema) -> Tally:
    """The tally with bins as wide as the schema's."""
    if schema is tally.schema:
        return tally
    both = zip(tally.schema.groups, schema.groups, tally.sums, strict=True)
    sums = tuple(old.counter.move_sums(old.features, new.features, sums) for old, new, sums in both)
    return replace(tally, schema=schema, sums=sums)


def within_bins(tally: Tally) -> Tally:
    """Merges bins in pairs until no feature has more bins than allowed. The result depends only on the totals."""
    wider = [(group, group.counter.widen(group.features, sums)) for group, sums in tally._groups()]
    if all(features is group.features for group, features in wider):
        return tally
    return _coarsen(tally, tally.schema.with_features(wider))


def plus(total: Tally | None, part: Tally) -> Tally:
    """Adds a part to a tally that may be None."""
    return part.read_texts() if total is None else total + part


# Counting -------------------------------------------------------------------------------------------------------------


def count(
    data: Any,
    target: Any = None,
    *,
    schema: Schema | None = None,
    features: Features = "auto",
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
    settings = {"schema": schema, "features": features, "weights": weights, "classes": classes, "missing": missing}
    reading["target_delimiter"] = target_delimiter
    if schema is not None:
        reading = {"remembered": schema.reading, **reading}
    where = {"engine": engine, "partitions": partitions}
    return count_table(open_table(data, target, **settings, **where, threads=threads, **reading))


@singledispatch
def count_table(table: Any) -> Tally:
    """Counts a table batch by batch."""
    return complete(*sum_table(table), table.labels.name)


def complete(tally: Tally, n_rows: int, target: str | None) -> Tally:
    """Returns the tally of a whole table; raises an error if none of its rows has a target."""
    if not tally.classes and tally.skipped == n_rows:
        raise errors.no_target(n_rows, target)
    doubt(tally.classes)
    return tally


def sum_table(table: Table) -> tuple[Tally, int]:
    """Counts a table, which may be a part of a larger one; returns the tally and the number of rows read.

    Words are counted in a thread of their own while the next batch is read.
    """
    begun: list[tuple[Schema, Tally | None]] = []
    n_rows = 0
    beside = Beside[tuple[Tally, ...]](table.labels.threads)

    def add(part: Tally) -> None:
        total = plus(begun[0][1], part)
        begun[0] = total.schema, total

    with LimitThreads(table.labels.threads), Behind() as behind:
        for batch in join_small_batches(table.batches("counting", begun.clear, beside=beside), begun):
            behind.wait()  # the schema may become another one
            if not begun:
                begun.append((table.settle_schema(batch), None))
                n_rows = 0
            [(schema, total)] = begun
            texts = schema.word_columns
            n_rows += batch.n_rows
            large = batch.n_rows >= MANY_ROWS and table.labels.threads > 1
            aligned = table.align(batch, schema)
            for part in beside.result(batch) or parts(aligned, schema, table.labels):
                behind.wait()
                if large and texts and total is not None and aligned.text_bytes(texts) is not None:
                    behind.start(partial(add, part))
                else:
                    add(part)
            if table.labels.by_column and not texts:
                beside.work = partial(_parts_beside, table, begun[0][0])
        behind.wait()
    [(_, total)] = begun
    assert total is not None
    return total, n_rows


def join_small_batches(batches: Iterator[Batch], begun: Sequence[tuple[Schema, Tally | None]]) -> Iterator[Batch]:
    """Joins small batches of texts after the first, because adding one text to a table of words costs as much as adding
    many.

    ``begun`` is empty before the first batch, and again if all batches are read a second time.
    """
    some = list[Batch]()
    size = 0
    for batch in batches:
        if not begun:
            some = []
            size = 0
        only_words = bool(begun) and all(group.counter.words for group in begun[0][0].groups)
        more = batch.text_bytes(begun[0][0].columns) if only_words else None
        if some and (more is None or batch.names != some[0].names or size + more > MANY_BYTES):
            yield join_batches(some) if len(some) > 1 else some[0]
            some = []
            size = 0
        if more is None:
            yield batch
        else:
            some.append(batch)
            size += more
    if some:
        yield join_batches(some) if len(some) > 1 else some[0]


def _parts_beside(table: Table, schema: Schema, batch: Batch) -> tuple[Tally, ...]:
    """The parts of a later batch, counted by the one thread that has parsed it, with bins as wide as they were by then."""
    return tuple(parts(table.align(batch, schema), schema, replace(table.labels, threads=1)))


def of_no_rows(schema: Schema) -> Tally:
    nothing = Batch(schema.columns, 0, Columns(lambda name: empty_column(0)), schema.named)
    return count_rows(nothing, schema, Codes(np.zeros(0, dtype=np.int32), 0, ()), None, 1).read_texts()


def parts(batch: Batch, schema: Schema, labels: Labels) -> Iterator[Tally]:
    """Yields the tally of the batch's rows, or one tally for each class of soft labels. Texts are tokenized when their
    words are needed.
    """
    if labels.several is not None:
        yield count_sets(batch, schema, labels.sets_of(batch), labels.weights_of(batch), labels.threads)
        return
    for rows in rows_of_batch(batch, schema, labels):
        yield tally_of(rows, schema)


def rows_of_batch(batch: Batch, schema: Schema, labels: Labels) -> Iterator[RowsToCount]:
    """Yields the batch's rows with their classes, once for each class of soft labels."""
    codes, weights = labels.of_batch(batch, schema.target_kind)
    if weights is None or weights.ndim == 1:
        yield rows_to_count(batch, codes, weights, labels.threads)
        return
    assert labels.classes is not None
    shares = in_parts(weights)
    for c, label in enumerate(labels.classes):
        every = Codes(np.zeros(batch.n_rows, dtype=np.int32), 0, [label])
        yield replace(rows_to_count(batch, every, shares[:, c], labels.threads), skipped=0)


def rows_to_count(batch: Batch, labels: Codes, weights: NDArray[Any] | None, threads: int) -> RowsToCount:
    """Returns the batch's rows with these labels and weights. Weights may already be in units of 10⁻¹⁸."""
    if len(labels.codes) != batch.n_rows or (weights is not None and len(weights) != batch.n_rows):
        short = len(labels.codes) if len(labels.codes) != batch.n_rows else len(weights)  # type: ignore[arg-type]
        raise errors.length_mismatch("labels" if len(labels.codes) != batch.n_rows else "weights", short, batch.n_rows)
    labels = dense(labels, threads)
    refuse_continuous(labels.values, batch.n_rows)
    classes = code_numbers(labels, threads)
    skipped = int(np.count_nonzero(classes < 0)) if classes.size and classes.min() < 0 else 0
    if weights is None:
        return RowsToCount(batch, labels.values, classes, None, threads, None, skipped)
    n_weighing = int(np.count_nonzero(weights)) if weights.dtype == np.float64 else 0
    classes, weights = kernel_weights(classes, weights)
    assert weights is not None
    _warn_of_light(n_weighing - int(np.count_nonzero(weights if weights.ndim == 1 else weights.any(axis=1))))
    return RowsToCount(batch, labels.values, classes, weights, threads, None, skipped)


def count_rows(batch: Batch, schema: Schema, labels: Codes, weights: NDArray[Any] | None, threads: int) -> Tally:
    """Counts the batch's rows with these labels and weights. Texts are tokenized when their words are needed."""
    return tally_of(rows_to_count(batch, labels, weights, threads), schema)


def tally_of(rows: RowsToCount, schema: Schema) -> Tally:
    """Counts these rows. Texts are tokenized when their words are needed."""
    with LimitThreads(rows.threads):
        counted = [(group, *group.counter.count(group.features, rows)) for group in schema.groups]
    if not all(features is group.features for group, features, _ in counted):
        schema = schema.with_features((group, features) for group, features, _ in counted)
    tally = Tally(schema, tuple(rows.labels), rows.per_class, tuple(sums for *_, sums in counted), rows.skipped)
    return within_bins(_sort_classes(tally)._trim())


def round_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounds weights as counting does; a weight that is too small becomes 0, with a warning."""
    counted = in_rows(in_parts(weights))
    _warn_of_light(int(np.count_nonzero(weights)) - int(np.count_nonzero(counted)))
    return counted


def _warn_of_light(n_rows: int) -> None:
    if n_rows > 0:
        rows_weigh = "1 row weighs" if n_rows == 1 else f"{n_rows:,} rows weigh"
        text = "less than 5e-19, which is rounded to zero. Multiply all weights by a constant to keep them"
        errors.warn(errors.BanburyWarning(f"{rows_weigh} {text}"))


def count_sets(
    batch: Batch,
    schema: Schema,
    sets: LabelSets,
    weights: NDArray[Any] | None,
    threads: int,
    groups: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> Tally:
    """Counts rows that have several labels each: a row counts once for each of its labels, and once for all rows.

    Each text is tokenized once. ``groups`` has the group of each row, and the first group number of all rows and of
    each label; each class is then a number that stands for one label in one group.
    """
    rows = np.flatnonzero(sets.has_target)
    at = np.concatenate([rows, sets.rows])
    codes = np.concatenate([np.zeros(len(rows), dtype=np.int32), sets.codes + np.int32(1)])
    names: tuple[Label, ...] = (EVERY, *sets.names)
    if groups is not None:
        used, place = np.unique(groups[1][codes] + groups[0][at], return_inverse=True)
        names = tuple(used.tolist())
        codes = place.astype(np.int32)
    classes = np.full(len(sets), -1, dtype=np.int32)
    classes[rows] = codes[: len(rows)]
    classes, row_weights = kernel_weights(classes, weights)
    part = count_rows(
        batch.take(at), schema, Codes(codes, 0, names), None if row_weights is None else row_weights[at], threads
    )
    several = sets.offsets, codes[len(rows) :]
    if weights is not None:  # rows that weigh nothing have no labels either
        _warn_of_light(int(np.count_nonzero((weights > 0) & sets.has_target & (classes < 0))))
        there = np.where(classes >= 0, np.diff(sets.offsets), 0)
        several = np.concatenate([[0], np.cumsum(there)]), several[1][classes[sets.rows] >= 0]
    once = RowsToCount(batch, names, classes, row_weights, threads, several)
    kept = _places(part.classes, names)
    words = {
        g: WORDS.count(group.features, once)[1].take(kept)
        for g, (group, sums) in enumerate(part._groups())
        if isinstance(sums, Words)
    }
    return replace(part.with_sums(words), skipped=int(np.count_nonzero(~sets.has_target)))


def sums_of_rows(
    schema: Schema, batch: Batch, weights: NDArray[Any] | None, threads: int, features: tuple[Feature, ...]
) -> Any:
    """Returns the sums of some features with every row as a class of its own."""
    return sums_of_groups(schema, batch, np.arange(batch.n_rows), batch.n_rows, weights, threads, features)


def sums_of_groups(
    schema: Schema,
    batch: Batch,
    groups: NDArray[Any],
    n_groups: int,
    weights: NDArray[Any] | None,
    threads: int,
    features: tuple[Feature, ...],
) -> Any:
    """Returns the sums of some features with every group of rows as a class of its own."""
    numbers = tuple(range(n_groups))
    labels = Codes(groups.astype(np.int32), 0, numbers)
    counted = count_rows(batch, replace(schema, features=features), labels, weights, threads)
    [(_, _, sums)] = counted.with_classes(numbers).read_texts().groups
    return sums


def _sort_classes(tally: Tally) -> Tally:
    classes: Any = in_order(tally.classes)
    if classes == tally.classes:
        return tally
    return tally._of(_places(classes, tally.classes), classes)
