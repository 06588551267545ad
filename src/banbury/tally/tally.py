"""Tally: the sums of a data set, per class and feature, under one schema. Tallies add, subtract and scale."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.distributions import grid
from banbury.distributions.family import MOST_BINS, Family, Feature
from banbury.distributions.poisson import Poisson
from banbury.schema import Schema
from banbury.sums import GRID, MOST_ROWS, Counts, Moments, Products, Words, in_order, is_decimal, rows_of, some, total

Label = bool | int | float | str
ROUNDED = 1e-9  # of a class's rows: what subtracting sums that were rounded may leave below zero
Sums = Counts | Moments | Words | Products


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
    counts: Counts  # keyed features
    moments: Moments  # measured features
    words: tuple[Words, ...] = ()  # features of text
    products: tuple[Products, ...] = ()  # blocks of numbers
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
        every = total(self.rows, 0)
        missing: dict[str, float] = {}
        for features, sums in ((self.schema.measured, self.moments.n), (self.schema.keyed, self.counts.present)):
            there = total(sums, 1).arranged([len(features)])
            lacking = every.take(np.zeros(len(features), dtype=np.int64), 0) - there
            missing |= zip((f.name for f in features), lacking.value.tolist(), strict=True)
        several = [*(words.texts for words in self.words), *(block.n for block in self.products)]
        for feature, n in zip((*self.schema.texts, *self.schema.blocks), several, strict=True):
            missing[feature.name] = float((every - total(n, 0)).value[0])
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
        found = {}
        for f, feature in enumerate(self.schema.keyed):
            keys, rows = self.counts.feature(f)
            share = feature.family.empty_share(feature, keys, rows.value) if feature.columns else None
            if share is not None:
                found[feature.name] = share
        return found

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
            counts=a.counts + b.counts,
            moments=a.moments + b.moments,
            words=tuple(x + y for x, y in zip(a.words, b.words, strict=True)),
            products=tuple(x + y for x, y in zip(a.products, b.products, strict=True)),
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
        left = replace(
            a,
            rows=a.rows - b.rows,
            counts=a.counts - b.counts,
            moments=a.moments - b.moments,
            words=_without_words(a, b, rounded),
            products=tuple(x - y for x, y in zip(a.products, b.products, strict=True)),
            skipped=max(0, a.skipped - b.skipped),
            rounded=rounded,
        )
        return (left._possible(a) if rounded else left.checked())._trimmed()

    def _possible(self, before: Tally) -> Tally:
        """The nearest sums that rows can have, where sums were rounded before they were subtracted and that is all."""
        for (label,) in np.argwhere(self.rows.value < -ROUNDED * before.rows.value):
            raise errors.negative_count(rows_of(self.rows)[label], self.classes[label])
        for row, label in np.argwhere(self.counts.cells.value < -ROUNDED * before.rows.value):
            f = int(np.searchsorted(self.counts.offsets, row, side="right")) - 1
            left = rows_of(self.counts.cells)[row, label]
            raise errors.negative_count(left, self.classes[label], self.schema.keyed[f].name)
        for f, label in np.argwhere(self.moments.n.value < -ROUNDED * before.rows.value):
            left = rows_of(self.moments.n)[f, label]
            raise errors.negative_count(left, self.classes[label], self.schema.measured[f].name)
        counts = Counts(self.counts.keys, self.counts.cells.at_least_zero())
        products = tuple(block.possible() for block in self.products)
        return replace(
            self, rows=self.rows.at_least_zero(), counts=counts, moments=self.moments.possible(), products=products
        )

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
        rows, *exact = self.rows.times(factor)
        counts, one = self.counts.times(factor)
        moments, two = self.moments.times(factor)
        words, products = [x.times(factor) for x in self.words], [x.times(factor) for x in self.products]
        exact += [is_decimal(factor), one, two, *(each for _, each in words), *(each for _, each in products)]
        return replace(
            self,
            rows=rows,
            counts=counts,
            moments=moments,
            words=tuple(each for each, _ in words),
            products=tuple(each for each, _ in products),
            rounded=self.rounded or not all(exact),
        )._trimmed()

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Tally:
        return self * (1.0 / divisor) if divisor else self * float("inf")

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same sums, to the last bit, under the same schema; bins of other widths are other sums."""
        if not isinstance(other, Tally):
            return NotImplemented
        a, b = _together(self, other)
        pairs: list[tuple[Any, Any]] = [(a.rows, b.rows), (a.counts, b.counts), (a.moments, b.moments)]
        pairs += [*zip(a.words, b.words, strict=True), *zip(a.products, b.products, strict=True)]
        alike = self.classes == other.classes and self.schema == other.schema
        return alike and all(mine.same(theirs) for mine, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]

    def checked(self) -> Tally:
        """This tally; raises where its sums cannot be those of any rows."""
        _refuse_negative(self)
        return self

    def to(self, schema: Schema) -> Tally:
        """The same tally under another schema of the same features: re-centred, and its bins widened.

        Raises SchemaMismatch where that would need the rows again: other families, other categories, narrower bins.
        """
        re_centred = tuple(_same_scale(a, b) for a, b in zip(schema.features, self.schema.features, strict=False))
        why = replace(schema, features=re_centred + schema.features[len(re_centred) :]).differs(self.schema)
        if why is not None:
            raise errors.schema_mismatch(why)
        try:
            products = tuple(
                _moved_block(*each) for each in zip(self.products, self.schema.blocks, schema.blocks, strict=True)
            )
            moments = self._moved(schema)
        except (OverflowError, ValueError):
            raise errors.schema_mismatch("origins or units are too far apart for sums to be moved") from None
        moved = moments is not self.moments or any(a is not b for a, b in zip(products, self.products, strict=True))
        tally = replace(_coarsened(self, schema), moments=moments, products=products, schema=schema)
        return replace(tally, rounded=self.rounded or moved)

    def _moved(self, schema: Schema) -> Moments:
        old, new = self.schema.measured, schema.measured
        if all(a.origin == b.origin and a.unit == b.unit for a, b in zip(old, new, strict=True)):
            return self.moments
        with np.errstate(over="ignore"):
            shift = np.array([(a.origin - b.origin) / a.unit for a, b in zip(old, new, strict=True)])
        return self.moments.shift(shift, np.array([a.unit / b.unit for a, b in zip(old, new, strict=True)]))

    def _trimmed(self) -> Tally:
        """Without the classes and the keys that no row has any more."""
        tally, kept = self, np.flatnonzero(some(self.rows))
        if len(kept) < len(self.classes):
            tally = self._of(kept, tuple(self.classes[c] for c in kept))
        counts = tally.counts.without_empty(self.schema.declared)
        return tally if counts is tally.counts else replace(tally, counts=counts)

    def _of(self, kept: Any, names: tuple[Label, ...]) -> Tally:
        kept = np.asarray(kept, dtype=np.int64)
        return replace(
            self,
            classes=names,
            rows=self.rows.take(kept, 0),
            counts=self.counts.take(kept),
            moments=self.moments.take(kept),
            words=tuple(words.take(kept) for words in self.words),
            products=tuple(products.take(kept) for products in self.products),
        )

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
        return replace(
            self,
            classes=names,
            rows=self.rows.merge(index, size, 0),
            counts=self.counts.merge(index, size),
            moments=self.moments.merge(index, size),
            words=tuple(words.merge(index, size) for words in self.words),
            products=tuple(products.merge(index, size) for products in self.products),
        )

    # Looking

    def sums(self) -> dict[str, Integers]:
        """All sums but those of words, by the names that they have in a file."""
        found = {
            "classes": self.rows,
            "counts": self.counts.cells,
            "moments.n": self.moments.n,
            "moments.sums": self.moments.sums,
        }
        for i, block in enumerate(self.products):
            found |= {f"products.{i}.n": block.n, f"products.{i}.sums": block.sums}
        return found

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
        keys = [[_canonical(key) for key in keys] for keys in (self.classes, *self.counts.keys)]
        found = hashlib.sha256(json.dumps([self.schema.counted(), keys]).encode())
        arrays = {name: (numbers.digits, numbers.limbs()) for name, numbers in self.sums().items()}
        for i, words in enumerate(self.words):
            state = sorted(words.table.state().items())
            arrays |= {f"words.{i}.{name}": (0, array) for name, array in state if name != "slots"}
        for name, (digits, array) in arrays.items():
            found.update(f"{name} {digits} {array.dtype.str} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    @cached_property
    def groups(self) -> list[tuple[Family, tuple[Feature, ...], Sums]]:
        """Features of one family and settings with their sums, so that parameters are estimated together."""
        return grouped(self.schema, self.counts, self.moments, self.words, self.products)

    def n_parameters(self, naive: bool = True) -> int:
        """Free parameters of the model of this tally; ``naive=False``: of the joint distribution without independence.

        The joint one has a table over all keyed features and, in each of its cells, a Gaussian with full covariance over
        the measured ones.

        >>> import banbury as bb
        >>> two = bb.count({"a": [True, False], "b": [True, True], "y": [0, 1]}, "y", features="bernoulli")
        >>> two.n_parameters(), two.n_parameters(naive=False)
        (5, 7)
        """
        if not naive and self.words:
            raise errors.bad_setting("naive", naive, "True for a tally with text, whose words have no joint table")
        n_classes, prior = len(self.classes), max(len(self.classes) - 1, 0)
        per_class, shared, cells = 0, 0, []
        for given, features, sums in self.groups:
            each = given.n_parameters(features, sums)
            per_class += sum(own for own, _ in each)
            shared += sum(tied for _, tied in each)
            cells += [own + 1 for own, _ in each] if given.shape in ("keys", "bins") else []
        if naive:
            return n_classes * per_class + shared + prior
        d, table = len(self.schema.measured), prod(cells)
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
        found, keyed, measured, texts = [], 0, 0, 0
        for feature in self.schema.features[:most]:
            if feature.family.shape == "moments":
                text = self._measured_text(feature, measured)
                measured += 1
            elif feature.family.shape == "products":
                n = sum(p.n.value.sum() for f, p in zip(self.schema.blocks, self.products, strict=True) if f is feature)
                text = f"{many(len(feature.inputs), 'column')} together, {n:,.6g} rows that have all of them"
            elif feature.family.shape == "words":
                text = self._words_text(feature, self.words[texts])
                texts += 1
            else:
                text = self._keyed_text(feature, keyed)
                keyed += 1
            found.append((feature, text))
        return found

    def _feature_lines(self) -> list[str]:
        n_features = len(self.schema.features)
        shown = self.summaries(20 if n_features > 21 else None)
        width = max((len(feature.name) for feature, _ in shown), default=0)
        lines = [f"{f.name:{width}}  {f.family.name:{len('kernel_density')}}  {text}" for f, text in shown]
        cut = [line if len(line) <= 108 else line[:107] + "…" for line in lines]
        return cut + [line[2:] for line in _hidden(n_features - len(shown), "feature")]

    def _measured_text(self, feature: Feature, at: int) -> str:
        n, centre, spread = (float(x[0, 0]) for x in self.moments.take([at], 0).pooled())
        if n == 0:
            return "no values"
        mean, deviation = feature.origin + feature.unit * centre, feature.unit * (spread / n) ** 0.5
        return f"mean {mean:g}, deviation {deviation:g}" + self._missing_text(feature.name)

    def _keyed_text(self, feature: Feature, at: int) -> str:
        keys, rows = self.counts.feature(at)
        each = rows.value.sum(axis=1)
        if feature.family.shape == "bins":
            return f"{many(len(keys), 'cell' if feature.columns else 'bin')} occupied" + self._missing_text(
                feature.name
            )
        often = [repr(keys[k]) for k in np.argsort(-each, kind="stable")]
        what = many(len(keys), "combination" if feature.columns else "value")
        return f"{what}{self._missing_text(feature.name)}: {errors.listed(often, 6)}"

    def _words_text(self, feature: Feature, words: Words) -> str:
        missing = self._missing_text(feature.name)
        names = words.most_frequent(5)
        if feature.columns:
            names = [feature.columns[int(name.removeprefix("#"))] for name in names]
        often = ", ".join(map(repr, names)) + (", …" if words.table.n_words > 5 else "")
        total, real = float(words.occurrences.value.sum()), words.occurrences.digits > 0
        what = "column" if feature.columns else "bucket" if words.table.buckets else "word"
        return f"{many(words.table.n_words, what)}, {total:,.{6 if real else 15}g} occurrences{missing}: {often}"

    def _missing_text(self, name: str) -> str:
        return f", {self.missing[name]:,.6g} missing" if self.missing[name] else ""


def _canonical(key: Any) -> Any:
    """Equal keys alike: 1, 1.0 and True are."""
    if isinstance(key, tuple):
        return [_canonical(part) for part in key]
    return int(key) if isinstance(key, (bool, float)) and key == key // 1 else key


def many(n: float, what: str) -> str:
    """So many of something, in words."""
    return f"{n:,} {what}" + ("" if n == 1 else "es" if what.endswith("s") else "s")


def _hidden(n: int, what: str) -> list[str]:
    return [f"  … and {many(n, 'more ' + what)}"] if n > 0 else []


def grouped(
    schema: Schema,
    counts: Counts,
    moments: Moments,
    words: tuple[Words, ...] = (),
    products: tuple[Products, ...] = (),
) -> list[tuple[Family, tuple[Feature, ...], Sums]]:
    """Features of equal families, each group with its part of the sums; a column of text is a group by itself."""
    texts: list[tuple[Family, tuple[Feature, ...], Sums]]
    texts = [(feature.family, (feature,), sums) for feature, sums in zip(schema.texts, words, strict=True)]
    blocks = zip(schema.blocks, products, strict=True) if products else ()
    texts = [*((feature.family, (feature,), sums) for feature, sums in blocks), *texts]
    if len(texts) == len(schema.features):
        return texts
    first = schema.features[0]
    only, single = first.family, not first.columns
    if all(feature.family is only and bool(feature.columns) != single for feature in schema.features):
        return [(only, schema.features, moments if only.shape == "moments" else counts)]
    found: list[tuple[Family, list[Feature], list[int]]] = []
    known: dict[tuple[int, bool], tuple[Family, list[Feature], list[int]]] = {}  # most columns share their very family
    n_keyed = n_measured = 0
    for feature in schema.features:
        given = feature.family
        if given.shape in ("words", "products"):
            continue
        alike = id(given), bool(feature.columns)
        group = known.get(alike) or next((g for g in found if _alike(g[1][0], feature)), None)
        if group is None:
            group = given, [], []
            found.append(group)
        known[alike] = group
        group[1].append(feature)
        if given.shape == "moments":
            group[2].append(n_measured)
            n_measured += 1
        else:
            group[2].append(n_keyed)
            n_keyed += 1
    rest: list[tuple[Family, tuple[Feature, ...], Sums]] = [
        (given, tuple(features), moments.select(index) if given.shape == "moments" else counts.select(index))
        for given, features, index in found
    ]
    return rest + texts


def _alike(a: Feature, b: Feature) -> bool:
    """Whether two features are estimated together: of equal families, both columns or both blocks."""
    return type(a.family) is type(b.family) and a.family == b.family and bool(a.columns) == bool(b.columns)


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


def _same_scale(a: Feature, b: Feature) -> Feature:
    """``a`` with ``b``'s origin and unit, where sums can be moved from one to the other."""
    if a.family.shape == b.family.shape == "products":
        return a._replace(scales=b.scales)
    if (
        a.family.shape == b.family.shape == "bins"
        and a.columns
        and [s for s, _ in a.scales] == [s for s, _ in b.scales]
    ):
        return a._replace(scales=b.scales, unit=b.unit)
    return a._replace(origin=b.origin, unit=b.unit) if a.family.shape == b.family.shape == "moments" else a


def _moved_block(products: Products, old: Feature, new: Feature) -> Products:
    if old.scales == new.scales:
        return products
    (origin, unit), (to, width) = np.array(old.scales).T, np.array(new.scales).T
    return products.shift((origin - to) / unit, unit / width)


def _coarsened(tally: Tally, schema: Schema) -> Tally:
    """The tally with bins as wide as the schema's."""
    counts = tally.counts
    for f, (old, new) in enumerate(zip(tally.schema.keyed, schema.keyed, strict=True)):
        if old.family.shape == "bins" and (new.unit, new.scales) != (old.unit, old.scales):
            here, there = (grid.widths(each) if each.columns else np.array([each.unit]) for each in (old, new))
            doublings = np.log2(there / here)
            if (doublings < 0).any() or (doublings != np.rint(doublings)).any():
                j = int(np.argmax((doublings < 0) | (doublings != np.rint(doublings))))
                raise errors.schema_mismatch(
                    f"bins of {old.inputs[j]!r} of width {here[j]:g} cannot be cut to width {there[j]:g}"
                )
            times = doublings.astype(np.int64)
            counts = counts.coarsen(f, times if old.columns else int(times[0]))
    return tally if schema is tally.schema else replace(tally, counts=counts, schema=schema)


def within_bins(tally: Tally) -> Tally:
    """The tally with bins doubled until no feature occupies more than 4,096: a function of the totals alone."""
    units = {}
    for f, feature in enumerate(tally.schema.keyed):
        if feature.family.shape == "bins" and feature.columns:
            if len(tally.counts.keys[f]) > grid.most_cells(feature):
                units[feature.name] = grid.fitting(feature, np.array(tally.counts.keys[f], dtype=np.int64)).unit
        elif feature.family.shape == "bins" and len(tally.counts.keys[f]) > MOST_BINS:
            codes = np.array(tally.counts.keys[f], dtype=np.int64)
            doublings = 1
            while len(np.unique(codes >> doublings)) > MOST_BINS:
                doublings += 1
            units[feature.name] = feature.unit * 2.0**doublings
    if not units:
        return tally
    wider = tuple(f._replace(unit=units[f.name]) if f.name in units else f for f in tally.schema.features)
    return _coarsened(tally, replace(tally.schema, features=wider))


def _refuse_negative(tally: Tally) -> None:
    """Raises if these sums cannot be those of any rows: a cell below zero, or a feature with more rows than its class."""
    rows, names, counts, schema = tally.rows, tally.classes, tally.counts, tally.schema
    for (label,) in np.argwhere(rows.is_negative()):
        raise errors.negative_count(rows_of(rows)[label], names[label])
    for row, label in np.argwhere(counts.cells.is_negative()):
        f = int(np.searchsorted(counts.offsets, row, side="right")) - 1
        feature, key = schema.keyed[f], counts.keys[f][row - counts.offsets[f]]
        shown = _bin(feature, key) if feature.family.shape == "bins" else f"value {key!r}"
        raise errors.negative_count(rows_of(counts.cells)[row, label], names[label], feature.name, shown)
    moments = tally.moments
    for f, label in np.argwhere(moments.n.is_negative()):
        raise errors.negative_count(rows_of(moments.n)[f, label], names[label], schema.measured[f].name)
    rates = np.array([isinstance(feature.family, Poisson) for feature in schema.measured], dtype=bool)[:, None]
    uneven = rates & (moments.sums.values(-GRID)[..., 0] > moments.sums.values(-2 * GRID)[..., 1])  # Σx ≤ Σx²
    for f, label in np.argwhere(moments.below_zero() | uneven | _overfull(moments.n, rows)):
        raise errors.impossible_sums(names[label], schema.measured[f].name)
    for f, label in np.argwhere(_overfull(counts.present, rows)):
        raise errors.impossible_sums(names[label], schema.keyed[f].name)
    for block, feature in zip(tally.products, schema.blocks, strict=True):
        for (label,) in np.argwhere(block.below_zero() | _overfull(block.n, rows)):
            raise errors.impossible_sums(names[label], feature.name)
    for words, feature in zip(tally.words, schema.texts, strict=False):
        for (label,) in np.argwhere(_overfull(words.texts, rows)):
            raise errors.impossible_sums(names[label], feature.name)


def _bin(feature: Feature, key: Any) -> str:
    """Where a bin lies, or a cell of a block: from where to where in each column."""
    if not feature.columns:
        starts, widths, numbers = [feature.origin], [feature.unit], [key]
    else:
        starts, widths, numbers = grid.starts(feature).tolist(), grid.widths(feature).tolist(), list(key)
    each = zip(feature.inputs, starts, widths, numbers, strict=True)
    return errors.listed((f"{name} {start + w * k:.9g} to {start + w * (k + 1):.9g}" for name, start, w, k in each), 6)


def _without_words(a: Tally, b: Tally, rounded: bool) -> tuple[Words, ...]:
    """The words of ``a`` without those of ``b``; raises if they are not there."""
    left = []
    for x, y, feature in zip(a.words, b.words, a.schema.texts, strict=False):
        try:
            left.append(x.minus(y, rounded))
        except _core.NotThere as absent:
            raise not_there(absent, feature, a.classes) from None
    return tuple(left)


def not_there(absent: _core.NotThere, feature: Feature, classes: tuple[Label, ...]) -> Exception:
    """The core's finding in a user's words."""
    word, label, left = absent.args
    if feature.columns and word is not None:
        column = feature.columns[int(word.removeprefix("#"))]
        return errors.negative_count(left, classes[label], column, what="occurrences")
    return errors.negative_count(left, classes[label], feature.name, None if word is None else f"value {word!r}")


def bad_occurrence(bad: _core.BadValue, feature: Feature, batch: Any) -> errors.BadValue:
    """The same of a number in a block that cannot be counted."""
    what, column, row, number = bad.args
    return errors.bad_value(what, number, feature.inputs[column], batch.first_row + row, batch.source)


def _overfull(n: Integers, rows: Integers) -> NDArray[np.bool_]:
    """Where a feature has values in more rows than its class has."""
    return np.asarray(n.value > rows.value)  # both are rounded alike: no larger number becomes the smaller one
