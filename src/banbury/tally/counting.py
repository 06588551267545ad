"""Counting: a table becomes a tally, batch by batch, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.distributions import Bernoulli, Categorical, grid
from banbury.distributions.bernoulli import KEYS
from banbury.distributions.family import Feature, side_by_side
from banbury.distributions.joint import combinations
from banbury.distributions.poisson import check_counts
from banbury.readers import MISSING_VALUES, SUBJECT, Batch, Codes, Format, Headers
from banbury.renamed import takes_old
from banbury.schema import Features, Missing, Schema
from banbury.sums import (
    Counts,
    Keys,
    Moments,
    Products,
    as_index,
    in_order,
    in_parts,
    some,
    total,
    weighed,
    weighing,
)
from banbury.table import LOWEST, Labels, Table, class_numbers, dense, refuse_continuous
from banbury.tally.growing import Assigned, Growing, Part
from banbury.tally.tally import Label, Tally, within_bins

MOST_CELLS = 2**28  # of a table of values and classes: two gigabytes


@takes_old(names="columns")
def count(
    data: Any,
    target: Any = None,
    *,
    schema: Schema | None = None,
    features: Features = "auto",
    weights: Any = None,
    classes: Sequence[Label] | None = None,
    missing: Missing = "skip",
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    missing_values: Sequence[str] = MISSING_VALUES,
    format: Format = "auto",
    headers: Headers = SUBJECT,
    threads: int | None = None,
) -> Tally:
    """Counts a table into a tally, in one pass.

    ``data``: a path to CSV, Parquet or NDJSON; a pandas, Polars or Arrow table; a mapping of columns; a NumPy array; a list
    of records; a list of texts; a folder with a sub-folder per class; an iterable of batches of these. ``target`` is a
    column's name or one label per row (of a folder, if not given, the names of the sub-folders); rows whose label is missing
    are skipped and counted in ``skipped``.

    What is counted: ``schema`` says it, or else it is inferred from the first batch, where ``features`` overrides the choice:
    a family for all columns ("gaussian", bb.Histogram(bins=20)), or a mapping from column to family, None to leave it out.
    ``missing="category"`` makes a missing word or boolean a value of its own; otherwise what is missing is skipped.
    ``weights`` is one number per row, a column's name, or a matrix of soft labels, rows × classes, whose columns ``classes``
    names; a single name, without a target, is the class of all rows.

    How it is read: ``columns`` names columns that have no names (a CSV file then has no header line), ``delimiter`` is found out
    if not given (in tab-separated text quotation marks are letters like others, unless the header has them),
    ``missing_values`` are the texts that mean missing in a text file. ``format`` says that files of texts are all "text",
    "mail" or "html", and ``headers`` which headers of mail count: "keep", "drop" or a list of names. ``threads``:
    BANBURY_THREADS or all processors if not given; the answer does not depend on it.

    >>> import banbury as bb
    >>> tally = bb.count(bb.datasets.play_tennis(), target="play")
    >>> tally.n_rows, tally.classes
    (14, ('no', 'yes'))
    """
    given = {"schema": schema, "features": features, "weights": weights, "classes": classes, "missing": missing}
    reading = {"columns": columns, "delimiter": delimiter, "missing_values": missing_values}
    return counted(Table.of(data, target, **given, threads=threads, **reading, format=format, headers=headers))  # type: ignore[arg-type]


def counted(table: Table) -> Tally:
    """The tally of a table, batch by batch."""
    growing: list[Growing] = []
    n_rows = 0
    for batch in table.batches("counting", growing.clear):
        if not growing:
            growing.append(Growing(table.settled(batch)))
            n_rows = 0
        n_rows += batch.n_rows
        for part in parts(table.aligned(batch, growing[0].schema), growing[0].schema, table.labels):
            growing[0].add(part)
    tally = growing[0].frozen()
    if not tally.classes and tally.skipped == n_rows:
        raise errors.no_target(n_rows, table.labels.name)
    return tally


def parts(batch: Batch, schema: Schema, labels: Labels) -> Iterator[Part]:
    """The batch's rows, counted but for their texts: one part, or one for each class of soft labels."""
    codes, weights = labels.of_batch(batch, schema.target_kind)
    if weights is None or weights.ndim == 1:
        yield count_rows(batch, schema, codes, weights, labels.threads)
        return
    assert labels.classes is not None
    shares = in_parts(weights)
    for c, label in enumerate(labels.classes):
        every = Codes(np.zeros(batch.n_rows, dtype=np.int32), 0, [label])
        part = count_rows(batch, schema, every, shares[:, c], labels.threads)
        yield replace(part, tally=replace(part.tally, skipped=0))


def _kernel(rows: Assigned, kernel: Callable[..., Any], names: Sequence[str], *arguments: Any) -> Any:
    """Calls a counting kernel; a bad value gets its column's name and its row."""
    try:
        return kernel(*arguments, rows.classes, len(rows.labels), rows.weights, rows.threads)
    except _core.BadValue as bad:
        raise named(bad, names, rows.batch) from None


def named(bad: _core.BadValue, names: Sequence[str], batch: Batch) -> errors.BadValue:
    what, feature, row, number = bad.args
    return errors.bad_value(what, number, names[feature], batch.first_row + row, batch.source)


def count_rows(batch: Batch, schema: Schema, labels: Codes, weights: NDArray[Any] | None, threads: int) -> Part:
    """The batch's rows, of these labels and weights, counted but for their texts. Weights may be in parts already."""
    if len(labels.codes) != batch.n_rows or (weights is not None and len(weights) != batch.n_rows):
        short = len(labels.codes) if len(labels.codes) != batch.n_rows else len(weights)  # type: ignore[arg-type]
        raise errors.length_mismatch("labels" if len(labels.codes) != batch.n_rows else "weights", short, batch.n_rows)
    labels = dense(labels, threads)
    refuse_continuous(labels.values, batch.n_rows)
    classes = class_numbers(labels)
    skipped = int(np.count_nonzero(classes < 0)) if classes.size and classes.min() < 0 else 0
    if weights is not None:
        given = int(np.count_nonzero(weights)) if weights.dtype == np.float64 else 0
        classes, weights = weighed(classes, weights)
        assert weights is not None
        if given > (heavy := int(np.count_nonzero(weighing(weights)))):
            errors.warn(errors.too_light(given - heavy))
    rows = Assigned(batch, labels.values, classes, weights, threads)
    per_class = _core.count_classes(classes, len(labels.values), weights, threads)
    schema = _with_cells(schema, rows)
    counts = _count_keyed(schema, rows, per_class)
    products = tuple(_count_products(feature, rows) for feature in schema.blocks)
    moments = _count_moments(schema, rows)
    tally = Tally(schema, tuple(labels.values), per_class, counts, moments, (), products, skipped)
    return Part(within_bins(_sorted_classes(tally)._trimmed()), rows)


def _sorted_classes(tally: Tally) -> Tally:
    classes: Any = in_order(tally.classes)
    if classes == tally.classes:
        return tally
    return tally._of([tally.classes.index(name) for name in classes], classes)


def _count_moments(schema: Schema, rows: Assigned) -> Moments:
    if not schema.measured:
        return Moments.zeros(0, len(rows.labels))
    whole = len(schema.measured) == len(schema.columns)
    names = schema.columns if whole else [feature.name for feature in schema.measured]
    columns = rows.batch.numbers(names)
    for feature in schema.rates:
        check_counts(rows.batch, feature.name, rows.threads)
    origin, unit = schema.scales
    return Moments(*_kernel(rows, _core.count_moments, names, columns, origin, unit))


def _count_products(feature: Feature, rows: Assigned) -> Products:
    """The sums of a block of numbers."""
    origin, unit = (np.ascontiguousarray(part) for part in np.array(feature.scales).T)
    columns = rows.batch.numbers(feature.inputs)
    return Products(*_kernel(rows, _core.count_products, feature.inputs, columns, origin, unit))


def _is_flag(feature: Feature, batch: Batch) -> bool:
    """Whether a Bernoulli feature arrives as numbers."""
    given = feature.family
    return (
        isinstance(given, Bernoulli)
        and given.yes is None
        and batch.kind(feature.name) not in ("string", "other", "date")
    )


def _count_keyed(schema: Schema, rows: Assigned, per_class: Integers) -> Counts:
    """The keyed features: numbers meant as flags in one pass, all columns of values in another, then bins."""
    if not schema.keyed:
        return Counts.join([], len(rows.labels))
    flags = [f for f, feature in enumerate(schema.keyed) if _is_flag(feature, rows.batch)]
    answers = _count_flags([schema.keyed[f] for f in flags], rows)
    if len(flags) == len(schema.keyed):
        return Counts((KEYS,) * len(flags), answers)
    found = {f: (KEYS, answers.take(np.arange(2 * k, 2 * k + 2), 0)) for k, f in enumerate(flags)}
    for f, feature in enumerate(schema.keyed):
        if feature.columns and feature.family.shape == "keys":
            found[f] = _count_codes([feature], [_complete(feature, rows)], rows)[0]
    values = [f for f, feature in enumerate(schema.keyed) if f not in found and feature.family.shape == "keys"]
    found |= dict(zip(values, _count_values([schema.keyed[f] for f in values], rows, per_class), strict=True))
    for f, feature in enumerate(schema.keyed):
        if f not in found:
            bins = _cells(feature, rows) if feature.columns else _bins(feature, rows)
            found[f] = _count_codes([feature], [bins], rows)[0]
    return Counts.join([found[f] for f in range(len(schema.keyed))], len(rows.labels))


def _complete(feature: Feature, rows: Assigned) -> Codes:
    """The combinations of a block's values; a row that lacks one has none."""
    numbers, found = combinations(rows.batch, feature, rows.threads, counting=True)
    whole = np.array([None not in value for value in found], dtype=np.bool_)
    place = np.where(whole, np.cumsum(whole) - 1, -1).astype(np.int32)
    kept: Any = [value for value, there in zip(found, whole.tolist(), strict=True) if there]
    return Codes(place[numbers] if len(found) else numbers, 0, kept)


def _count_flags(features: Sequence[Feature], rows: Assigned) -> Integers:
    """No and yes of each feature, one below the other."""
    names = [feature.name for feature in features]
    limits = [getattr(feature.family, "threshold", None) for feature in features]
    threshold = np.array([np.nan if limit is None else limit for limit in limits], dtype=np.float64)
    columns = rows.batch.numbers(names) if names else []
    cells: Integers = _kernel(rows, _core.count_flags, names, columns, threshold)
    return cells.arranged([2 * len(features), len(rows.labels)])


def _count_values(features: Sequence[Feature], rows: Assigned, per_class: Integers) -> list[tuple[Keys, Integers]]:
    kinds = [feature.kind if isinstance(feature.family, Categorical) else None for feature in features]
    columns = [rows.batch.codes(feature.name, kind) for feature, kind in zip(features, kinds, strict=True)]
    counted = _count_codes(features, [_narrow(column, rows) for column in columns], rows)
    return [
        _completed(feature, keys, cells, per_class) for feature, (keys, cells) in zip(features, counted, strict=True)
    ]


def _count_codes(features: Sequence[Feature], columns: Sequence[Codes], rows: Assigned) -> list[tuple[Keys, Integers]]:
    """For each column the values that occur, in order, and the rows of each."""
    if not columns:
        return []
    low = np.array([column.low for column in columns], dtype=np.int64)
    size = np.array([len(column.values) for column in columns], dtype=np.int64)
    if int(size.sum()) * len(rows.labels) * (1 if rows.whole else 2) > MOST_CELLS:
        widest = int(size.argmax())
        raise errors.too_many_cells(features[widest].name, int(size[widest]), len(rows.labels))
    names = [feature.name for feature in features]
    codes = side_by_side([column.codes for column in columns])
    cells: Integers = _kernel(rows, _core.count_codes, names, codes, low, size)
    occupied, counted, start = np.asarray(some(cells).any(axis=1)), [], 0
    for column in columns:
        used = np.flatnonzero(occupied[start : start + len(column.values)])
        keys = [column.values[k] for k in used.tolist()]
        order = in_order(keys)
        if order != tuple(keys):
            position: dict[Any, int] = dict(zip(keys, used.tolist(), strict=True))
            used = np.array([position[key] for key in order])
        counted.append((order, cells.take(as_index(start + used), 0)))
        start += len(column.values)
    return counted


def _narrow(column: Codes, rows: Assigned) -> Codes:
    """Codes whose table over the classes is not much larger than the column: a wide range is numbered by what occurs."""
    if not isinstance(column.values, range) or len(column.values) * len(rows.labels) <= max(2**20, len(column.codes)):
        return column
    return dense(column, rows.threads)


def _bins(feature: Feature, rows: Assigned) -> Codes:
    """The numbers of the fine bins a column's values fall into."""
    column = rows.batch.numbers([feature.name])[0].reshape(-1)
    try:
        codes = _core.bins(column, feature.origin, feature.unit, rows.threads)
    except _core.BadValue as bad:
        raise named(bad, [feature.name], rows.batch) from None
    low, high = (int(x[0]) for x in _core.span([codes], rows.threads))
    return _narrow(Codes(codes, low, range(low, high + 1)), rows)


def _with_cells(schema: Schema, rows: Assigned) -> Schema:
    """The schema with blocks of bins as wide as these rows want them, so that no more cells are made than are kept."""
    wider = {}
    for feature in schema.keyed:
        if feature.columns and feature.family.shape == "bins":
            codes = _block_codes(feature, rows)
            counted = codes[(rows.classes >= 0) & (codes != LOWEST).all(axis=1)]
            cells = grid.distinct(counted, rows.threads)[1]
            wider[feature.name] = grid.fitting(feature, cells, rows.threads)
    if not wider:
        return schema
    return replace(schema, features=tuple(wider.get(f.name, f) for f in schema.features))


def _block_codes(feature: Feature, rows: Assigned) -> NDArray[np.int64]:
    """The numbers of the fine bins, (rows, columns)."""
    matrices = [column.reshape(rows.batch.n_rows, -1) for column in rows.batch.numbers(feature.inputs)]
    wide = [matrix[:, k] for matrix in matrices for k in range(matrix.shape[1])]
    bins = []
    for name, column, start, width in zip(
        feature.inputs, wide, grid.starts(feature), grid.widths(feature), strict=True
    ):
        try:
            bins.append(_core.bins(np.ascontiguousarray(column), start, width, rows.threads))
        except _core.BadValue as bad:
            raise named(bad, [name], rows.batch) from None
    return np.column_stack(bins)


def _cells(feature: Feature, rows: Assigned) -> Codes:
    """The numbers of the cells that a block's values fall into; a row that lacks one of them falls into none."""
    codes = _block_codes(feature, rows)
    whole = (rows.classes >= 0) & (codes != LOWEST).all(axis=1)
    numbers = np.full(len(codes), -1, dtype=np.int32)
    numbers[whole], cells = grid.distinct(codes[whole], rows.threads)
    keys: Any = [tuple(cell) for cell in cells.tolist()]
    return Codes(numbers, 0, keys)


def _completed(feature: Feature, keys: Keys, cells: Integers, per_class: Integers) -> tuple[Keys, Integers]:
    """The keys that the family has: yes and no; those declared; missing as a value where it is one."""
    given = feature.family
    if isinstance(given, Bernoulli):
        return KEYS, cells.merge(as_index(given.means_yes(keys, feature.name)), 2, 0)
    if isinstance(given, Categorical) and given.missing == "category":
        rest = per_class.arranged([1, *per_class.shape]) - total(cells, 0)
        keys, cells = (*keys, None), Integers.join([cells, rest])
    declared = given.declared()
    if not declared:
        return keys, cells
    for key in keys:
        if key is not None and key not in declared:
            raise errors.unknown_value(key, feature.name, in_order(declared))
    wanted = in_order(declared.union(keys))
    return wanted, cells.merge(as_index([wanted.index(key) for key in keys]), len(wanted), 0)
