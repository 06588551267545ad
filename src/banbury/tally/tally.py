"""Tally: the sums of a data set, per class and feature, under one schema. Tallies add, subtract and scale."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury._core import Integers
from banbury.distributions.family import Family, Feature
from banbury.errors import many
from banbury.schema import Group, Schema
from banbury.sums import MOST_ROWS, Counts, Moments, in_order, is_decimal, rows_of, some, total

Label = bool | int | float | str
ROUNDED = 1e-9  # of a class's rows: what subtracting sums that were rounded may leave below zero


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """The sums of a data set, per class and feature, under one schema: a frozen value, with no smoothing inside.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> tally = bb.count(weather, target="play")
    >>> first_rows = tally.count({name: column[:5] for name, column in weather.items()})
    >>> tally - first_rows + first_rows == tally
    True
    """

    schema: Schema
    classes: tuple[Label, ...]
    rows: Integers  # (classes,)
    sums: tuple[Any, ...]  # of each group of features: Counts, Moments, Products or Words
    skipped: int = 0  # rows without a target
    rounded: bool = False  # sums were rounded: scaled by a fraction, or read from a file of an older format

    @property
    def n_rows(self) -> float:
        """Rows counted, or their weight when weights are fractional."""
        every = rows_of(total(self.rows, 0))[0] if self.classes else 0
        return int(every) if self.rows.digits == 0 else float(every)

    @cached_property
    def missing(self) -> dict[str, float]:
        """How many rows have no value, by feature; their weight when weights are fractional.

        >>> import banbury as bb
        >>> bb.count({"fever": [38.9, None, 37.0], "ward": ["a", "b", "a"], "flu": ["yes", "no", "no"]}, target="flu").missing
        {'fever': 1.0, 'ward': 0.0}
        """
        if not self.classes:
            return {feature.name: 0.0 for feature in self.schema.features}
        every, missing = total(self.rows, 0), dict[str, float]()
        for (_, features, _), sums in self._groups():
            there = total(sums.present, 1).arranged([len(features)])
            lacking = every.take(np.zeros(len(features), dtype=np.int64), 0) - there
            missing |= zip((f.name for f in features), lacking.value.tolist(), strict=True)
        return {f.name: max(missing[f.name], 0.0) for f in self.schema.features}

    @cached_property
    def empty_cells(self) -> dict[str, float]:
        """Of each block's table the share of cells that no row has: the curse of dimensionality, measured.

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
        """The sums of one feature."""
        group, at = self._places[self.schema[name].name]
        return self.sums[group].select([at])

    def group_of(self, name: str) -> Any:
        """The sums of all features that are counted together with this one."""
        return self.sums[self._places[name][0]]

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """The group of each feature, and its place there."""
        groups = enumerate(self.schema.groups)
        return {f.name: (g, at) for g, group in groups for at, f in enumerate(group.features)}

    # TRANSITION
    @cached_property
    def counts(self) -> Any:
        parts = [self.of(f.name).feature(0) for f in self.schema.keyed]
        return Counts.join(parts, len(self.classes))

    @cached_property
    def moments(self) -> Any:
        each = [self.of(f.name) for f in self.schema.measured]
        if not each:
            return Moments.zeros(0, len(self.classes))
        return Moments(Integers.join([m.n for m in each]), Integers.join([m.sums for m in each]))

    @cached_property
    def words(self) -> tuple[Any, ...]:
        return tuple(self.of(f.name) for f in self.schema.texts)

    @cached_property
    def products(self) -> tuple[Any, ...]:
        return tuple(self.of(f.name) for f in self.schema.blocks)

    # END OF TRANSITION
    def with_sums(self, changed: Mapping[int, Any]) -> Tally:
        """The same with other sums of some groups of features, by their numbers."""
        return replace(self, sums=tuple(changed.get(g, sums) for g, sums in enumerate(self.sums)))

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
        """Counts more rows under this tally's schema, apart: ``tally + tally.count(rows)`` adds them.

        Of a tally of one class and without a target, such as a density's, all rows are of that class.
        """
        from banbury.tally.counting import count

        if target is None and classes is None and np.ndim(weights) < 2:
            alone = self.schema.target is None and len(self.classes) == 1
            target, classes = self.schema.target, self.classes if alone else None
        return count(data, target, schema=self.schema, weights=weights, classes=classes, threads=threads, **reading)

    # The algebra

    def __add__(self, other: Tally) -> Tally:
        """Both data sets together."""
        if not isinstance(other, Tally):
            raise errors.not_a_tally(other, "add")
        a, b = _together(self, other)
        summed = replace(
            a,
            rows=a.rows + b.rows,
            sums=tuple(x + y for x, y in zip(a.sums, b.sums, strict=True)),
            skipped=a.skipped + b.skipped,
            rounded=a.rounded or b.rounded,
        )
        return within_bins(summed._not_too_many())

    def _not_too_many(self) -> Tally:
        if self.classes and not total(self.rows, 0).value[0] < MOST_ROWS:
            raise errors.too_many_rows()
        return self

    def __radd__(self, other: object) -> Tally:
        return self if other == 0 else NotImplemented  # so that sum(tallies) works

    def __sub__(self, other: Tally) -> Tally:
        """This data set without the other, which must be part of it; raises, and changes nothing, where it shows not to be."""
        if not isinstance(other, Tally):
            raise errors.not_a_tally(other, "subtract")
        a, b = _together(self, other)
        rounded = a.rounded or b.rounded
        differences = (
            counter.minus(features, x, y, rounded, a.classes)
            for (counter, features, _), x, y in zip(a.schema.groups, a.sums, b.sums, strict=True)
        )
        skipped = max(0, a.skipped - b.skipped)
        left = replace(a, rows=a.rows - b.rows, sums=tuple(differences), skipped=skipped, rounded=rounded)
        return (left._possible(a) if rounded else left.checked())._trimmed()

    def _possible(self, before: Tally) -> Tally:
        """The nearest sums that rows can have, where sums were rounded before they were subtracted and that is all."""
        least = -ROUNDED * before.rows.value
        for (label,) in np.argwhere(self.rows.value < least):
            raise errors.negative_count(rows_of(self.rows)[label], self.classes[label])
        clamped = (g.counter.clamped(g.features, sums, least, self.classes) for g, sums in self._groups())
        return replace(self, rows=self.rows.at_least_zero(), sums=tuple(clamped))

    def __mul__(self, factor: float) -> Tally:
        """Every row so many times; a factor below one lets the past fade.

        A whole factor is exact. Of any other each sum is rounded once, down to 10⁻¹⁸ of a row or a step of it, where it has more
        digits than that.
        """
        if isinstance(factor, bool) or not isinstance(factor, (int, float, np.integer, np.floating)):
            return NotImplemented
        if not 0 <= factor < MOST_ROWS or float(factor) * float(self.n_rows) >= MOST_ROWS:
            raise errors.bad_setting(
                "the factor of a tally", factor, "finite and not negative, and leave fewer than 2**63 rows"
            )
        if float(factor) != factor:
            raise errors.bad_setting("the factor of a tally", factor, "a number that a double holds")
        factor = float(factor)
        rows, exact = self.rows.times(factor)
        scaled = [sums.times(factor) for sums in self.sums]
        rounded = not (exact and is_decimal(factor) and all(exact for _, exact in scaled))
        sums = tuple(each for each, _ in scaled)
        return replace(self, rows=rows, sums=sums, rounded=self.rounded or rounded)._trimmed()

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

    def checked(self) -> Tally:
        """This tally; raises where its sums cannot be those of any rows."""
        for (label,) in np.argwhere(self.rows.is_negative()):
            raise errors.negative_count(rows_of(self.rows)[label], self.classes[label])
        for group, sums in self._groups():
            group.counter.check(group.features, sums, self.rows, self.classes)
        return self

    def to(self, schema: Schema) -> Tally:
        """The same tally under another schema of the same features: re-centred, and its bins widened.

        Raises SchemaMismatch where that would need the rows again: other families, other categories, narrower bins.
        """
        re_centred = tuple(
            a.counter.rescaled(a, b) if a.counter is b.counter else a
            for a, b in zip(schema.features, self.schema.features, strict=False)
        )
        why = replace(schema, features=re_centred + schema.features[len(re_centred) :]).differs(self.schema)
        if why is not None:
            raise errors.schema_mismatch(why)
        both = zip(self.schema.groups, schema.groups, self.sums, strict=True)
        try:
            moved = tuple(old.counter.moved(old.features, new.features, sums) for old, new, sums in both)
        except (OverflowError, ValueError):
            raise errors.schema_mismatch("origins or units are too far apart for sums to be moved") from None
        rounded = any(new is not old for new, old in zip(moved, self.sums, strict=True))
        return _coarsened(replace(self, sums=moved, rounded=self.rounded or rounded), schema)

    def _trimmed(self) -> Tally:
        """Without the classes and the keys that no row has any more."""
        tally, kept = self, np.flatnonzero(some(self.rows))
        if len(kept) < len(self.classes):
            tally = self._of(kept, tuple(self.classes[c] for c in kept))
        return replace(tally, sums=tuple(g.counter.trimmed(g.features, sums) for g, sums in tally._groups()))

    def _of(self, kept: Any, names: tuple[Label, ...]) -> Tally:
        kept = np.asarray(kept, dtype=np.int64)
        sums = tuple(sums.take(kept) for sums in self.sums)
        return replace(self, classes=names, rows=self.rows.take(kept, 0), sums=sums)

    def with_classes(self, classes: tuple[Label, ...]) -> Tally:
        """The same sums with these classes too, which have no rows yet."""
        names: Any = classes if set(classes).issuperset(self.classes) else in_order(set(self.classes).union(classes))
        if self.classes == names:
            return self
        return self.merged(np.array([names.index(name) for name in self.classes], dtype=np.int64), names)

    def of_classes(self, kept: Sequence[int], names: tuple[Label, ...]) -> Tally:
        """Some of the classes, by their numbers, under these names; without the keys that none of them has."""
        return self._of(np.asarray(kept, dtype=np.int64), names)._trimmed()

    def merged(self, index: NDArray[np.int64], names: tuple[Label, ...]) -> Tally:
        """Class c is class ``index[c]`` of these; those that become one are added up."""
        size = len(names)
        sums = tuple(sums.merge(index, size) for sums in self.sums)
        return replace(self, classes=names, rows=self.rows.merge(index, size, 0), sums=sums)

    # Looking

    def numbers(self) -> dict[str, Integers]:
        """All sums but those of words, by the names that they have in a file."""
        each = ((f"{g}.{name}", part) for g, sums in enumerate(self.sums) for name, part in sums.arrays().items())
        return {"classes": self.rows, **dict(each)}

    def states(self) -> dict[str, NDArray[Any]]:
        """The sums of words, likewise."""
        each = ((g, sums.state()) for g, sums in enumerate(self.sums))
        return {f"{g}.{name}": array for g, state in each for name, array in state.items()}

    def digest(self) -> str:
        """A SHA-256 of all that was counted, 64 hexadecimal digits: equal exactly when tallies are equal.

        So forgetting can be proved: a tally that forgot rows has the digest of one that never met them.

        >>> import banbury as bb
        >>> weather = bb.datasets.play_tennis()
        >>> tally = bb.count(weather, target="play")
        >>> more = tally.count({name: column[:3] for name, column in weather.items()})
        >>> (tally + more - more).digest() == tally.digest()
        True
        """
        every = (self.classes, *(keys for sums in self.sums for keys in sums.keys))
        keys = [[_canonical(key) for key in keys] for keys in every]
        digest = hashlib.sha256(json.dumps([self.schema.counted(), keys]).encode())
        arrays = {name: (numbers.digits, numbers.limbs()) for name, numbers in self.numbers().items()}
        arrays |= {name: (0, array) for name, array in sorted(self.states().items()) if not name.endswith(".slots")}
        for name, (digits, array) in arrays.items():
            digest.update(f"{name} {digits} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def groups(self) -> list[tuple[Family, tuple[Feature, ...], Any]]:
        """Features of one family and settings with their sums, so that parameters are estimated together."""
        return [each for group, sums in self._groups() for each in _by_family(group, sums)]

    def n_parameters(self, naive: bool = True) -> int:
        """Free parameters of the model of this tally; ``naive=False``: of the joint distribution without independence.

        The joint one has a table over all keyed features and, in each of its cells, a Gaussian with full covariance over
        the measured ones.

        >>> import banbury as bb
        >>> two = bb.count({"a": [True, False], "b": [True, True], "y": [0, 1]}, "y", features="bernoulli")
        >>> two.n_parameters(), two.n_parameters(naive=False)
        (5, 7)
        """
        n_classes, prior = len(self.classes), max(len(self.classes) - 1, 0)
        if naive:
            each = [each for given, features, sums in self.groups for each in given.n_parameters(features, sums)]
            return n_classes * sum(own for own, _ in each) + sum(tied for _, tied in each) + prior
        groups = ((features[0].counter, given, features, sums) for given, features, sums in self.groups)
        cells = [each for counter, *group in groups for each in counter.table_cells(*group)]
        d, table = sum(size is None for size in cells), prod(size for size in cells if size is not None)
        return n_classes * (table - 1 + table * (d + d * (d + 1) // 2)) + prior

    def __str__(self) -> str:
        weighted = self.rows.digits > 0
        size = f"{float(self.n_rows):,.6g} (weights)" if weighted else many(int(self.n_rows), "row")
        features = many(len(self.schema.features), "feature")
        lines = [f"Tally of {size}, {many(len(self.classes), 'class')}, {features}"]
        share = self.rows.value / max(float(self.rows.value.sum()), 1e-300)
        shown = list(zip(self.classes, self.rows.value, share, strict=True))[:20]
        names = [errors.shortened(repr(name)) for name, _, _ in shown]
        width = max(map(len, names), default=0)
        lines += [
            f"  {name:{width}}  {n:>12,.12g}  {part:6.1%}" for name, (_, n, part) in zip(names, shown, strict=True)
        ]
        lines += _hidden(len(self.classes) - len(shown), "class")
        lines += [f"  {line}" for line in self._feature_lines()]
        if self.skipped:
            lines.append(f"  skipped: {many(self.skipped, 'row')} without a target")
        if self.rounded:
            lines.append(
                "  rounded: its sums were scaled by a fraction, or kept as doubles once; forgetting is approximate"
            )
        if self.schema.left_out:
            lines.append(
                f"  left out: {errors.listed(f'{name} ({why})' for name, why in self.schema.left_out.items())}"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def summaries(self, most: int | None = None) -> list[tuple[Feature, str]]:
        """The features, or the first of them, each with what was counted of it in a few words."""
        return [
            (feature, feature.counter.summary(feature, self.of(feature.name), self._missing_text(feature.name)))
            for feature in self.schema.features[:most]
        ]

    def _feature_lines(self) -> list[str]:
        n_features = len(self.schema.features)
        shown = self.summaries(20 if n_features > 21 else None)
        width = max((len(feature.name) for feature, _ in shown), default=0)
        lines = [f"{f.name:{width}}  {f.family.name:{len('kernel_density')}}  {text}" for f, text in shown]
        cut = [line if len(line) <= 108 else line[:107] + "…" for line in lines]
        return cut + [line[2:] for line in _hidden(n_features - len(shown), "feature")]

    def _missing_text(self, name: str) -> str:
        return f", {self.missing[name]:,.6g} missing" if self.missing[name] else ""


def _canonical(key: Any) -> Any:
    """Equal keys alike: 1, 1.0 and True are."""
    if isinstance(key, tuple):
        return [_canonical(part) for part in key]
    return int(key) if isinstance(key, (bool, float)) and key == key // 1 else key


def _hidden(n: int, what: str) -> list[str]:
    return [f"  … and {many(n, 'more ' + what)}"] if n > 0 else []


def _by_family(group: Group, sums: Any) -> list[tuple[Family, tuple[Feature, ...], Any]]:
    """The features of a group by family, each with its part of the sums."""
    first = group.features[0].family
    if all(feature.family is first for feature in group.features):
        return [(first, group.features, sums)]
    places: list[tuple[Family, list[int]]] = []
    known: dict[int, list[int]] = {}  # most columns share their very family
    for at, feature in enumerate(group.features):
        family = feature.family
        index = known.get(id(family)) or next((i for given, i in places if _are_equal(given, family)), None)
        if index is None:
            index = []
            places.append((family, index))
        known[id(family)] = index
        index.append(at)
    return [(family, tuple(group.features[f] for f in index), sums.select(index)) for family, index in places]


def _are_equal(a: Family, b: Family) -> bool:
    return a.name == b.name and a == b


def _together(a: Tally, b: Tally) -> tuple[Tally, Tally]:
    """Both over the classes, keys and bin widths of either."""
    if a.schema is not b.schema:
        why = a.schema.differs(b.schema)
        if why is not None:
            raise errors.schema_mismatch(why)
        schema = a.schema.with_widest_bins(b.schema)
        a, b = _coarsened(a, schema), _coarsened(b, schema)
    if a.classes != b.classes:
        classes: Any = in_order(set(a.classes).union(b.classes))
        a, b = a.with_classes(classes), b.with_classes(classes)
    return a, b


def _coarsened(tally: Tally, schema: Schema) -> Tally:
    """The tally with bins as wide as the schema's."""
    if schema is tally.schema:
        return tally
    both = zip(tally.schema.groups, schema.groups, tally.sums, strict=True)
    sums = tuple(old.counter.coarsened(old.features, new.features, sums) for old, new, sums in both)
    return replace(tally, schema=schema, sums=sums)


def within_bins(tally: Tally) -> Tally:
    """The tally with bins doubled until no feature occupies more than may be: a function of the totals alone."""
    wider = [(group, group.counter.widened(group.features, sums)) for group, sums in tally._groups()]
    if all(features is group.features for group, features in wider):
        return tally
    return _coarsened(tally, tally.schema.with_features(wider))
