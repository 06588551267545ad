"""Tally: the sums of a data set, per class and feature, under one schema. Tallies add, subtract and scale."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.distributions import Bernoulli, Categorical
from banbury.distributions.bernoulli import KEYS
from banbury.distributions.family import Family, Feature
from banbury.distributions.histogram import MOST_BINS
from banbury.distributions.poisson import Poisson
from banbury.readers import MISSING_VALUES, Batch, Codes, Source, Widened, encode, read
from banbury.schema import Features, Missing, Schema, infer
from banbury.sums import Counts, Key, Keys, Moments, Rows, in_order, plus, total

Label = bool | int | float | str
Int = NDArray[np.int64]
LOWEST = int(np.iinfo(np.int64).min)


def n_threads(threads: int | None) -> int:
    """``threads``, else the environment's BANBURY_THREADS, else the processors this process may use."""
    if threads is None:
        given = os.environ.get("BANBURY_THREADS", "")
        if not given:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not given.isdecimal() or int(given) < 1:
            raise errors.bad_setting("BANBURY_THREADS", given, "a whole number from 1 up")
        return int(given)
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise errors.bad_setting("threads", threads, "a whole number from 1 up, or None for all processors")
    return int(threads)


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
    rows: Rows  # (classes,)
    counts: Counts  # keyed features
    moments: Moments  # measured features
    skipped: int = 0  # rows without a target

    @property
    def n_rows(self) -> float:
        """Rows counted, or their weight when weights are fractional."""
        weight = float(self.rows.value.sum())
        return int(weight) if self.rows.weights is None else weight

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
        """Counts more rows under this tally's schema, apart: ``tally + tally.count(rows)`` adds them."""
        target = self.schema.target if target is None and classes is None else target
        return count(data, target, schema=self.schema, weights=weights, classes=classes, threads=threads, **reading)

    # The algebra

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        a, b = _together(self, other)
        counts = Counts(a.counts.keys, a.counts.cells + b.counts.cells)
        summed = replace(
            a, rows=a.rows + b.rows, counts=counts, moments=a.moments + b.moments, skipped=a.skipped + b.skipped
        )
        return _within_bins(summed)

    def __radd__(self, other: object) -> Tally:
        return self if other == 0 else NotImplemented  # so that sum(tallies) works

    def __sub__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        a, b = _together(self, other)
        rows, cells, moments = a.rows - b.rows, a.counts.cells - b.counts.cells, a.moments - b.moments
        _refuse_negative(a, rows, cells, moments)
        left = replace(
            a, rows=rows, counts=Counts(a.counts.keys, cells), moments=moments, skipped=max(0, a.skipped - b.skipped)
        )
        return left._trimmed()

    def __mul__(self, factor: float) -> Tally:
        if isinstance(factor, bool) or not isinstance(factor, (int, float, np.integer, np.floating)):
            return NotImplemented
        if not np.isfinite(factor) or factor < 0:
            raise errors.bad_setting("the factor of a tally", factor, "finite and not negative")
        factor = float(factor)
        counts = Counts(self.counts.keys, self.counts.cells * factor)
        scaled = replace(self, rows=self.rows * factor, counts=counts, moments=self.moments * factor)
        return scaled._trimmed() if factor == 0 else scaled

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same sums: exactly for whole numbers, within 1e-12 of the sums for the rest."""
        if not isinstance(other, Tally):
            return NotImplemented
        a, b = _together(self, other)
        same_rows = self.classes == other.classes and a.rows.same(b.rows)
        return same_rows and a.counts.same(b.counts) and a.moments.same(b.moments)

    __hash__ = None  # type: ignore[assignment]

    def to(self, schema: Schema) -> Tally:
        """The same tally under another schema of the same features: re-centred, and its bins widened.

        Raises SchemaMismatch where that would need the rows again: other families, other categories, narrower bins.
        """
        re_centred = tuple(_same_scale(a, b) for a, b in zip(schema.features, self.schema.features, strict=False))
        why = replace(schema, features=re_centred + schema.features[len(re_centred) :]).differs(self.schema)
        if why is not None:
            raise errors.schema_mismatch(why)
        return replace(_coarsened(self, schema), moments=self._moved(schema), schema=schema)

    def _moved(self, schema: Schema) -> Moments:
        old, new = self.schema.measured, schema.measured
        if all(a.origin == b.origin and a.unit == b.unit for a, b in zip(old, new, strict=True)):
            return self.moments
        shift = np.array([(a.origin - b.origin) / a.unit for a, b in zip(old, new, strict=True)])
        return self.moments.shift(shift, np.array([a.unit / b.unit for a, b in zip(old, new, strict=True)]))

    def _trimmed(self) -> Tally:
        """Without the classes and the keys that no row has any more."""
        tally, kept = self, np.flatnonzero(self.rows.rows > 0)
        if len(kept) < len(self.classes):
            cells = Counts(self.counts.keys, self.counts.cells.take(kept, 1))
            names = tuple(self.classes[c] for c in kept)
            tally = replace(
                self, classes=names, rows=self.rows.take(kept, 0), counts=cells, moments=self.moments.take(kept, 1)
            )
        return replace(tally, counts=tally.counts.without_empty(self.schema.declared))

    # Looking

    @cached_property
    def groups(self) -> list[tuple[Family, tuple[Feature, ...], Counts | Moments]]:
        """Features of one family and settings with their sums, so that parameters are estimated together."""
        return grouped(self.schema, self.counts, self.moments)

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
        per_class, shared, cells = 0, 0, []
        for given, features, sums in self.groups:
            each = given.n_parameters(features, sums)
            per_class += sum(own for own, _ in each)
            shared += sum(tied for _, tied in each)
            cells += [own + 1 for own, _ in each] if given.shape != "moments" else []
        if naive:
            return n_classes * per_class + shared + prior
        d, table = len(self.schema.measured), prod(cells)
        return n_classes * (table - 1 + table * (d + d * (d + 1) // 2)) + prior

    def __str__(self) -> str:
        weight = f"{self.n_rows:,}" if self.rows.weights is None else f"{self.n_rows:,.2f} (weighted)"
        head = f"Tally of {weight} rows, {len(self.classes):,} classes, {len(self.schema.features):,} features"
        lines = [head + (f"; {self.skipped:,} rows without a target skipped" if self.skipped else "")]
        share = self.rows.value / max(float(self.rows.value.sum()), 1e-300)
        shown = list(zip(self.classes, self.rows.value, share, strict=True))[:20]
        names = max((len(repr(name)) for name, _, _ in shown), default=0)
        lines += [f"  {name!r:{names}}  {rows:>12,g}  {part:6.1%}" for name, rows, part in shown]
        if len(self.classes) > len(shown):
            lines.append(f"  … and {len(self.classes) - len(shown):,} more classes")
        return "\n".join(lines + [f"  {line}" for line in self._feature_lines()])

    __repr__ = __str__

    def _feature_lines(self) -> list[str]:
        lines, keyed, measured = [], 0, 0
        for feature in self.schema.features[:20]:
            if feature.family.shape == "moments":
                n, centre, spread = (float(x[0, 0]) for x in self.moments.take([measured], 0).pooled())
                mean, deviation = (
                    feature.origin + feature.unit * centre,
                    feature.unit * (spread / max(n, 1e-300)) ** 0.5,
                )
                lines.append(f"{feature.name}: {feature.family.name}, mean {mean:g}, deviation {deviation:g}")
                measured += 1
            else:
                keys = self.counts.keys[keyed]
                what = "bins occupied" if feature.family.shape == "bins" else "values"
                shown = f": {errors.listed(map(repr, keys), 6)}" if feature.family.shape == "keys" else ""
                lines.append(f"{feature.name}: {feature.family.name}, {len(keys):,} {what}{shown}")
                keyed += 1
        more = len(self.schema.features) - 20
        return lines + ([f"… and {more:,} more features"] if more > 0 else [])


def grouped(
    schema: Schema, counts: Counts, moments: Moments
) -> list[tuple[Family, tuple[Feature, ...], Counts | Moments]]:
    """Features of equal families, each group with its part of the sums."""
    found: list[tuple[Family, list[Feature], list[int]]] = []
    known: dict[int, tuple[Family, list[Feature], list[int]]] = {}  # by identity: most columns share their family
    n_keyed = n_measured = 0
    for feature in schema.features:
        given = feature.family
        group = known.get(id(given)) or next((g for g in found if type(g[0]) is type(given) and g[0] == given), None)
        if group is None:
            group = given, [], []
            found.append(group)
        known[id(given)] = group
        group[1].append(feature)
        if given.shape == "moments":
            group[2].append(n_measured)
            n_measured += 1
        else:
            group[2].append(n_keyed)
            n_keyed += 1
    return [
        (given, tuple(features), moments.select(index) if given.shape == "moments" else counts.select(index))
        for given, features, index in found
    ]


def _together(a: Tally, b: Tally) -> tuple[Tally, Tally]:
    """Both over the classes, keys and bin widths of either."""
    if a.schema is not b.schema:
        why = a.schema.differs(b.schema)
        if why is not None:
            raise errors.schema_mismatch(why)
        schema = a.schema.with_widest_bins(b.schema)
        a, b = _coarsened(a, schema), _coarsened(b, schema)
    if a.classes != b.classes:
        classes = in_order(set(a.classes).union(b.classes))
        a, b = _with_classes(a, classes), _with_classes(b, classes)
    left, right = a.counts.union(b.counts)
    return replace(a, counts=left), replace(b, counts=right)


def _with_classes(tally: Tally, classes: Any) -> Tally:
    if tally.classes == classes:
        return tally
    index = np.array([classes.index(name) for name in tally.classes], dtype=np.int64)
    counts = Counts(tally.counts.keys, tally.counts.cells.place(index, len(classes), 1))
    moments = tally.moments.place(index, len(classes), 1)
    return replace(
        tally, classes=classes, rows=tally.rows.place(index, len(classes), 0), counts=counts, moments=moments
    )


def _same_scale(a: Feature, b: Feature) -> Feature:
    """``a`` with ``b``'s origin and unit, where sums can be moved from one to the other."""
    return replace(a, origin=b.origin, unit=b.unit) if a.family.shape == b.family.shape == "moments" else a


def _coarsened(tally: Tally, schema: Schema) -> Tally:
    """The tally with bins as wide as the schema's."""
    counts = tally.counts
    for f, (old, new) in enumerate(zip(tally.schema.keyed, schema.keyed, strict=True)):
        if old.family.shape == "bins" and new.unit != old.unit:
            doublings = np.log2(new.unit / old.unit)
            if doublings < 0 or doublings != int(doublings):
                raise errors.schema_mismatch(
                    f"bins of {old.name!r} of width {old.unit:g} cannot be cut to width {new.unit:g}"
                )
            counts = counts.coarsen(f, int(doublings))
    return tally if schema is tally.schema else replace(tally, counts=counts, schema=schema)


def _within_bins(tally: Tally) -> Tally:
    """The tally with bins doubled until no feature occupies more than 4,096: a function of the totals alone."""
    units = {}
    for f, feature in enumerate(tally.schema.keyed):
        if feature.family.shape == "bins" and len(tally.counts.keys[f]) > MOST_BINS:
            codes = np.array(tally.counts.keys[f], dtype=np.int64)
            doublings = 1
            while len(np.unique(codes >> doublings)) > MOST_BINS:
                doublings += 1
            units[feature.name] = feature.unit * 2.0**doublings
    if not units:
        return tally
    wider = tuple(replace(f, unit=units[f.name]) if f.name in units else f for f in tally.schema.features)
    return _coarsened(tally, replace(tally.schema, features=wider))


def _refuse_negative(before: Tally, rows: Rows, cells: Rows, moments: Moments) -> None:
    wrong = np.argwhere(rows.below_zero(before.rows))
    if len(wrong):
        raise errors.negative_count(_left(rows, wrong[0]), before.classes[wrong[0][0]])
    wrong = np.argwhere(cells.below_zero(before.counts.cells))
    if len(wrong):
        row, label = wrong[0]
        f = int(np.searchsorted(before.counts.offsets, row, side="right")) - 1
        key = before.counts.keys[f][row - before.counts.offsets[f]]
        raise errors.negative_count(_left(cells, wrong[0]), before.classes[label], before.schema.keyed[f].name, key)
    wrong = np.argwhere(moments.below_zero(before.moments))
    if len(wrong):
        f, label = wrong[0]
        name = before.schema.measured[f].name
        if moments.n.rows[f, label] < 0:
            raise errors.negative_count(_left(moments.n, wrong[0]), before.classes[label], name)
        raise errors.impossible_sums(before.classes[label], name)


def _left(rows: Rows, cell: Any) -> Any:
    count = int(rows.rows[tuple(cell)])
    return count if count < 0 or rows.weights is None else float(rows.value[tuple(cell)])


# Counting ------------------------------------------------------------------------------------------------------------


def count(
    data: Any,
    target: Any = None,
    *,
    schema: Schema | None = None,
    features: Features = "auto",
    weights: Any = None,
    classes: Sequence[Label] | None = None,
    missing: Missing = "skip",
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    missing_values: Sequence[str] = MISSING_VALUES,
    threads: int | None = None,
) -> Tally:
    """Counts a table into a tally, in one pass.

    ``data``: a path to CSV, Parquet or NDJSON; a pandas, Polars or Arrow table; a mapping of columns; a NumPy array (with
    ``names`` or by position); an iterable of batches of these. ``target`` is a column's name or one label per row; rows whose
    label is missing are skipped and counted in ``skipped``. Without ``schema``, one is inferred from the first batch, with
    ``features`` overriding the choice. ``weights`` is one number per row, a column's name, or a matrix of soft labels, rows ×
    classes, whose columns ``classes`` names.

    >>> import banbury as bb
    >>> tally = bb.count(bb.datasets.play_tennis(), target="play")
    >>> tally.n_rows, tally.classes
    (14, ('no', 'yes'))
    """
    kinds = schema.kinds() if schema is not None else None
    source = read(data, names=names, delimiter=delimiter, missing_values=missing_values, kinds=kinds)
    labels = _Labels.of(target, weights, classes, n_threads(threads))
    while True:
        try:
            return _counted(source, labels, schema, features, missing)
        except Widened as wider:
            warnings.warn(
                f"column {wider.column!r}{errors.where(source.name)} does not stay what its first rows were: "
                f"counting again from the start, reading it as {wider.kind}s",
                errors.BanburyWarning,
                stacklevel=2,
            )


def _counted(source: Source, labels: _Labels, schema: Schema | None, features: Features, missing: Missing) -> Tally:
    tally, seen = None, 0
    for batch in source:
        seen += batch.n_rows
        if schema is None:
            if batch.n_rows == 0:
                continue
            schema = infer(batch, labels.reserved(), labels.name, features, missing)
        part = _count_batch(aligned(batch, schema, labels.reserved()), schema, labels)
        tally = part if tally is None else tally + part
        schema = tally.schema
    labels.check_length(seen)
    if tally is None or seen == 0:
        raise errors.empty_data(source.name)
    if not tally.classes and tally.skipped == seen:
        raise errors.no_target(seen, labels.name)
    return tally


def aligned(batch: Batch, schema: Schema, reserved: Sequence[str] = ()) -> Batch:
    """The batch with the schema's column names where either has positions only."""
    if batch.named and schema.named:
        for feature in schema.features:
            if feature.name not in batch.names:
                raise errors.unknown_column(feature.name, batch.names, batch.source)
        return batch
    rest = [name for name in batch.names if name not in reserved]
    if len(rest) != len(schema.columns):
        raise errors.schema_mismatch(f"{len(schema.columns)} columns were counted, and these rows have {len(rest)}")
    names = iter(schema.columns)
    return batch.renamed(tuple(name if name in reserved else next(names) for name in batch.names))


@dataclass(frozen=True)
class _Labels:
    """Where the labels and weights of rows come from: a column, an array, or soft labels."""

    name: str | None  # the target's column
    codes: Codes | None  # labels given as an array
    weight_name: str | None
    weights: NDArray[np.float64] | None  # (rows,) or (rows, classes)
    classes: tuple[Label, ...] | None  # of soft labels
    threads: int

    @classmethod
    def of(cls, target: Any, weights: Any, classes: Sequence[Label] | None, threads: int) -> _Labels:
        name = target if isinstance(target, str) else None
        weight_name = weights if isinstance(weights, str) else None
        array = None if weights is None or weight_name is not None else _weights(weights)
        soft = array is not None and array.ndim == 2
        codes = None if target is None or name is not None else encode(target, threads)
        if soft and codes is not None:
            raise errors.bad_setting(
                "target", "an array", "left out, or a column to leave aside, when weights are soft labels"
            )
        if soft:
            assert array is not None
            classes = tuple(range(array.shape[1])) if classes is None else tuple(classes)
            if len(classes) != array.shape[1]:
                raise errors.bad_setting(
                    "classes", classes, f"one name for each of the {array.shape[1]} columns of weights"
                )
        elif classes is not None:
            raise errors.bad_setting("classes", classes, "left out unless weights are soft labels")
        elif target is None:
            raise errors.bad_setting("target", target, "a column's name, one label per row, or soft labels in weights=")
        return cls(name, codes, weight_name, array, classes if soft else None, threads)

    def reserved(self) -> list[str]:
        return [name for name in (self.name, self.weight_name) if name is not None]

    def check_length(self, n_rows: int) -> None:
        if self.codes is not None and len(self.codes.codes) != n_rows:
            raise errors.length_mismatch("labels", len(self.codes.codes), n_rows)
        if self.weights is not None and len(self.weights) != n_rows:
            raise errors.length_mismatch("weights", len(self.weights), n_rows)

    def of_batch(self, batch: Batch) -> tuple[Codes, NDArray[np.float64] | None]:
        rows = slice(batch.first_row, batch.first_row + batch.n_rows)
        weights = self.weights
        if self.weight_name is not None:
            weights = _weights(batch.numbers([self.weight_name])[0].reshape(-1))
        elif weights is not None:
            weights = weights[rows]
        if self.classes is not None:
            return Codes(np.zeros(0, dtype=np.int32), 0, self.classes), weights
        if self.codes is None:
            assert self.name is not None
            return batch.codes(self.name), weights
        return Codes(self.codes.codes[rows], self.codes.low, self.codes.values), weights


def _weights(weights: Any) -> NDArray[np.float64]:
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise errors.bad_setting("weights", type(weights).__name__, "numbers, one per row or rows × classes") from None
    if array.ndim not in (1, 2):
        raise errors.bad_setting(
            "weights", f"an array of {array.ndim} dimensions", "one number per row, or rows × classes"
        )
    if array.size and not (array.min() >= 0 and array.max() < np.inf):
        row = int(np.argwhere(~(array >= 0) | np.isinf(array))[0][0])
        raise errors.bad_weight(
            row, float(array[row] if array.ndim == 1 else array[row][~(array[row] >= 0) | np.isinf(array[row])][0])
        )
    return array


def _count_batch(batch: Batch, schema: Schema, labels: _Labels) -> Tally:
    codes, weights = labels.of_batch(batch)
    if weights is None or weights.ndim == 1:
        return _count_rows(batch, schema, codes, weights, labels.threads)
    assert labels.classes is not None
    parts = [
        _count_rows(batch, schema, Codes(np.zeros(batch.n_rows, dtype=np.int32), 0, [label]), column, labels.threads)
        for label, column in zip(labels.classes, weights.T, strict=True)
    ]
    together = parts[0]
    for part in parts[1:]:
        together = together + part
    return replace(together, skipped=0)


@dataclass(frozen=True)
class _Assigned:
    """Rows with their classes and weights, as the kernels take them."""

    batch: Batch
    classes: NDArray[np.int32]  # -1: not counted
    n_classes: int
    weights: NDArray[np.float64] | None
    whole: bool
    threads: int

    def count(self, kernel: Callable[..., Any], names: Sequence[str], *arguments: Any) -> Any:
        """Calls a counting kernel; a bad value gets its column's name and its row."""
        try:
            return kernel(*arguments, self.classes, self.n_classes, self.weights, self.whole, self.threads)
        except _core.BadValue as bad:
            raise named(bad, names, self.batch) from None


def named(bad: _core.BadValue, names: Sequence[str], batch: Batch) -> errors.BadValue:
    what, feature, row, number = bad.args
    return errors.bad_value(what, number, names[feature], batch.first_row + row, batch.source)


def _count_rows(
    batch: Batch, schema: Schema, labels: Codes, weights: NDArray[np.float64] | None, threads: int
) -> Tally:
    if len(labels.codes) != batch.n_rows or (weights is not None and len(weights) != batch.n_rows):
        short = len(labels.codes) if len(labels.codes) != batch.n_rows else len(weights)  # type: ignore[arg-type]
        raise errors.length_mismatch("labels" if len(labels.codes) != batch.n_rows else "weights", short, batch.n_rows)
    labels = _dense(labels, threads)
    classes = _class_numbers(labels)
    skipped = int(np.count_nonzero(classes < 0)) if classes.size and classes.min() < 0 else 0
    whole = True
    if weights is not None:
        whole = bool(np.all(weights == np.rint(weights))) and float(weights.sum()) < 2.0**53
        classes = np.where(weights > 0, classes, np.int32(-1))
        weights = np.ascontiguousarray(weights)
    rows = _Assigned(batch, classes, len(labels.values), weights, whole, threads)
    per_class = Rows(*_core.count_classes(classes, rows.n_classes, weights, whole, threads))
    counts = Counts.join([_count_keys(feature, rows, per_class) for feature in schema.keyed], rows.n_classes)
    counts = _with_flags(counts, schema, rows)
    tally = Tally(schema, tuple(labels.values), per_class, counts, _count_moments(schema, rows), skipped)
    return _within_bins(_sorted_classes(tally)._trimmed())


def _dense(labels: Codes, threads: int) -> Codes:
    """Labels numbered by those that occur: a range of integers may be wide and hold few of them."""
    if not isinstance(labels.values, range):
        return labels
    plain = np.ascontiguousarray(labels.codes)
    codes, first, _ = _core.encode_records(plain.view(np.uint8).reshape(len(plain), plain.itemsize), threads)
    return Codes(codes, 0, plain[first].tolist())


def _class_numbers(labels: Codes) -> NDArray[np.int32]:
    codes = labels.codes
    if labels.low == 0 and codes.dtype == np.int32:
        return np.ascontiguousarray(codes)
    shifted = codes.astype(np.int64) - labels.low
    outside = (shifted < 0) | (shifted >= len(labels.values))
    return np.where(outside, -1, shifted).astype(np.int32)


def _sorted_classes(tally: Tally) -> Tally:
    classes: Any = in_order(tally.classes)
    if classes == tally.classes:
        return tally
    index = [tally.classes.index(name) for name in classes]
    counts = Counts(tally.counts.keys, tally.counts.cells.take(index, 1))
    return replace(
        tally, classes=classes, rows=tally.rows.take(index, 0), counts=counts, moments=tally.moments.take(index, 1)
    )


def _count_moments(schema: Schema, rows: _Assigned) -> Moments:
    if not schema.measured:
        return Moments.zeros(0, rows.n_classes)
    names = [feature.name for feature in schema.measured]
    columns = rows.batch.numbers(names)
    for feature in schema.measured:
        if isinstance(feature.family, Poisson):
            try:
                _core.not_counts(rows.batch.numbers([feature.name]), rows.threads)
            except _core.BadValue as bad:
                raise named(bad, [feature.name], rows.batch) from None
    origin = np.array([feature.origin for feature in schema.measured])
    unit = np.array([feature.unit for feature in schema.measured])
    n, weights, sums = rows.count(_core.count_moments, names, columns, origin, unit)
    return Moments(Rows(n, weights), sums)


def _is_flag(feature: Feature, batch: Batch) -> bool:
    """Whether a Bernoulli feature arrives as numbers."""
    given = feature.family
    return (
        isinstance(given, Bernoulli)
        and given.yes is None
        and batch.kind(feature.name) not in ("string", "other", "date")
    )


def _with_flags(counts: Counts, schema: Schema, rows: _Assigned) -> Counts:
    """Fills in the Bernoulli features that arrive as numbers, all in one pass."""
    flags = [f for f, feature in enumerate(schema.keyed) if _is_flag(feature, rows.batch)]
    if not flags:
        return counts
    names = [schema.keyed[f].name for f in flags]
    limits = [schema.keyed[f].family.threshold for f in flags]  # type: ignore[attr-defined]
    threshold = np.array([np.nan if limit is None else limit for limit in limits])
    n, weights = rows.count(_core.count_flags, names, rows.batch.numbers(names), threshold)
    found = Rows(n.reshape(-1, rows.n_classes), None if weights is None else weights.reshape(-1, rows.n_classes, 3))
    if len(flags) == len(schema.keyed):
        return Counts(counts.keys, found)
    at = np.concatenate([[counts.offsets[f], counts.offsets[f] + 1] for f in flags])
    return Counts(counts.keys, counts.cells + found.place(at, len(counts.cells.rows), 0))


def _count_keys(feature: Feature, rows: _Assigned, per_class: Rows) -> tuple[Keys, Rows]:
    """One feature's keys in order, and the rows of each."""
    given = feature.family
    if _is_flag(feature, rows.batch):
        return KEYS, Rows.zeros((2, rows.n_classes))
    if given.shape == "bins":
        column = _bins(feature, rows)
    else:
        column = rows.batch.codes(feature.name, feature.kind if isinstance(given, Categorical) else None)
    size = np.array([len(column.values)], dtype=np.int64)
    low = np.array([column.low], dtype=np.int64)
    cells = Rows(*rows.count(_core.count_codes, [feature.name], [column.codes], low, size))
    used = np.flatnonzero(cells.rows.any(axis=1))
    keys: list[Key] = [column.values[k] for k in used.tolist()]
    cells = cells.take(used, 0)
    if isinstance(given, Bernoulli):
        return KEYS, _as_flags(given.means_yes(keys, feature.name), cells)
    return _completed(given, feature.name, keys, cells, per_class)


def _bins(feature: Feature, rows: _Assigned) -> Codes:
    """The numbers of the fine bins a column's values fall into."""
    column = rows.batch.numbers([feature.name])[0].reshape(-1)
    try:
        codes = _core.bins(column, feature.origin, feature.unit, rows.threads)
    except _core.BadValue as bad:
        raise named(bad, [feature.name], rows.batch) from None
    if (rows.classes < 0).any():
        codes = np.where(rows.classes < 0, LOWEST, codes)
    low, high = (int(x[0]) for x in _core.span([codes], rows.threads))
    if high - low < max(65536, 4 * len(codes)):
        return Codes(codes, low, range(low, high + 1))
    return (
        encode(np.where(codes == LOWEST, np.nan, codes), rows.threads)
        if (codes == LOWEST).any()
        else encode(codes, rows.threads)
    )


def _as_flags(yes: list[bool], cells: Rows) -> Rows:
    found = Rows.zeros((2, cells.rows.shape[1]))
    for k, is_yes in enumerate(yes):
        found = found + cells.take([k], 0).place(np.array([int(is_yes)]), 2, 0)
    return found


def _completed(given: Family, name: str, keys: list[Key], cells: Rows, per_class: Rows) -> tuple[Keys, Rows]:
    """Keys in order, with those declared, and with missing as a value where it is one."""
    if given.shape == "bins":
        keys = [int(key) for key in keys]  # type: ignore[arg-type]
    if isinstance(given, Categorical) and given.missing == "category":
        keys.append(None)
        cells = Rows.concatenate([cells, _rest(per_class, cells)])
    declared = given.declared()
    if declared:
        for key in keys:
            if key not in declared and not (key is None and not cells.rows[-1].any()):
                raise errors.unknown_value(key, name, in_order(declared))
        wanted = in_order(declared.union(keys))
    else:
        wanted = in_order(keys)
    if wanted == tuple(keys):
        return wanted, cells
    position = {key: k for k, key in enumerate(wanted)}
    return wanted, cells.place(np.array([position[key] for key in keys], dtype=np.int64), len(wanted), 0)


def _rest(per_class: Rows, cells: Rows) -> Rows:
    """The rows of each class that are in none of the cells, (1, classes)."""
    rows = (per_class.rows - cells.rows.sum(axis=0))[None]
    if per_class.weights is None:
        return Rows(rows)
    weights = plus(per_class.weights, -total(cells.exact, 0))[None]
    weights[rows == 0] = 0.0
    return Rows(rows, weights)
