"""Counting: a table becomes a tally, batch by batch, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.distributions import Bernoulli, Categorical, grid
from banbury.distributions.bernoulli import KEYS
from banbury.distributions.family import Feature, Kind, side_by_side
from banbury.distributions.joint import combinations
from banbury.distributions.poisson import check_counts
from banbury.progress import watched
from banbury.readers import (
    MISSING_VALUES,
    SUBJECT,
    Batch,
    Codes,
    Format,
    Headers,
    Source,
    Widened,
    encode,
    from_texts,
    is_texts,
    n_threads,
    read,
)
from banbury.schema import Features, Missing, Schema, infer
from banbury.sums import (
    MOST_ROWS,
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
from banbury.tally.growing import Assigned, Growing, Part
from banbury.tally.tally import Label, Tally, within_bins

MOST_CELLS = 2**28  # of a table of values and classes: two gigabytes
LOWEST = int(np.iinfo(np.int64).min)  # the bin of a missing value


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

    How it is read: ``names`` names columns that have no names (a CSV file then has no header line), ``delimiter`` is found out
    if not given (in tab-separated text quotation marks are letters like others, unless the header has them),
    ``missing_values`` are the texts that mean missing in a text file. ``format`` says that files of texts are all "text",
    "mail" or "html", and ``headers`` which headers of mail count: "keep", "drop" or a list of names. ``threads``:
    BANBURY_THREADS or all processors if not given; the answer does not depend on it.

    >>> import banbury as bb
    >>> tally = bb.count(bb.datasets.play_tennis(), target="play")
    >>> tally.n_rows, tally.classes
    (14, ('no', 'yes'))
    """
    if schema is not None and not (isinstance(features, str) and features == "auto"):
        raise errors.bad_setting("features", features, "left out when a schema is given, which has its families")
    if schema is not None and not isinstance(schema, Schema):
        raise errors.bad_setting("schema", schema, "a Schema, such as tally.schema")
    kinds = schema.kinds() if schema is not None and not isinstance(data, Batch) else None
    reading = {
        "names": names,
        "delimiter": delimiter,
        "missing_values": missing_values,
        "format": format,
        "headers": headers,
    }
    known = schema is not None and schema.texts and format == "auto" and is_texts(data)  # texts, and no names of files
    source = from_texts(data, names, None) if known else read(data, kinds=kinds, **reading)  # type: ignore[arg-type]
    target = source.target if target is None and classes is None and np.ndim(weights) < 2 else target
    labels = Labels.of(target, weights, classes, n_threads(threads))
    while True:
        try:
            return _counted(source, labels, schema, features, missing)
        except Widened as wider:
            if not source.again:
                raise errors.cannot_restart(wider.column, wider.kind) from None
            errors.warn(errors.widened(wider.column, wider.kind, source.name))


def _counted(source: Source, labels: Labels, schema: Schema | None, features: Features, missing: Missing) -> Tally:
    growing, seen = None, 0
    for batch in watched(source, "counting", source.name):
        batch.threads = labels.threads
        seen += batch.n_rows
        if schema is None:
            if batch.n_rows == 0:
                continue
            known = labels.column in batch.names and labels.column not in labels.reserved()
            leaked = {labels.column: "the target"} if known and labels.column is not None else {}
            schema = infer(batch, labels.reserved() | leaked, labels.name, features, missing)
        growing = growing or Growing(schema)
        for part in parts(aligned(batch, growing.schema, labels.reserved()), growing.schema, labels):
            growing.add(part)
    labels.check_length(seen)
    if growing is None or seen == 0:
        raise errors.empty_data(source.name)
    tally = growing.frozen()
    if not tally.classes and tally.skipped == seen:
        raise errors.no_target(seen, labels.name)
    return tally


def aligned(batch: Batch, schema: Schema, reserved: Collection[str] = ()) -> Batch:
    """The batch with the schema's column names where either has positions only."""
    if batch.named and schema.named:
        for feature in schema.features:
            for name in feature.inputs:
                if name not in batch.names:
                    raise errors.unknown_column(name, batch.names, batch.source)
        return batch
    if batch.names == schema.columns:
        return batch
    rest = [name for name in batch.names if name not in reserved]
    if len(rest) != len(schema.columns):
        raise errors.schema_mismatch(f"{len(schema.columns)} columns were counted, and these rows have {len(rest)}")
    names = iter(schema.columns)
    return batch.renamed(tuple(name if name in reserved else next(names) for name in batch.names))


@dataclass(frozen=True)
class Labels:
    """Where the labels and weights of rows come from: a column, an array, or soft labels."""

    name: str | None  # the target's column
    column: str | None  # the column that labels given as an array were taken from, if they say so
    codes: Codes | None  # labels given as an array
    weight_name: str | None
    weights: NDArray[np.float64] | None  # (rows,) or (rows, classes)
    classes: tuple[Label, ...] | None  # of soft labels, or the one of all rows
    threads: int

    @classmethod
    def of(cls, target: Any, weights: Any, classes: Sequence[Label] | None, threads: int) -> Labels:
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
            classes = tuple(range(array.shape[1])) if classes is None else _class_names(classes)
            if len(classes) != array.shape[1] or not classes:
                raise errors.bad_setting(
                    "classes", classes, f"one name for each of the {array.shape[1]} columns of weights"
                )
        elif classes is not None:
            classes = _class_names(classes)
            if target is not None or len(classes) != 1:
                raise errors.bad_setting(
                    "classes", classes, "left out unless weights are soft labels, or all rows of one class"
                )
        elif target is None:
            raise errors.bad_setting("target", target, "a column's name, one label per row, or soft labels in weights=")
        column = getattr(target, "name", None)
        return cls(
            name,
            column if isinstance(column, str) else None,
            codes,
            weight_name,
            array,
            classes,
            threads,
        )

    @classmethod
    def without_target(cls, weights: Any, threads: int) -> Labels:
        """Weights alone, of rows that belong to no class."""
        name = weights if isinstance(weights, str) else None
        array = None if weights is None or name is not None else _weights(weights)
        if array is not None and array.ndim == 2:
            raise errors.bad_setting("weights", f"an array of shape {array.shape}", "one number per row")
        return cls(None, None, None, name, array, None, threads)

    def reserved(self) -> dict[str, str]:
        """The columns that are no features, each with what it is."""
        roles = ((self.weight_name, "named in weights="), (self.name, "the target"))
        return {name: role for name, role in roles if name is not None}

    def check_length(self, n_rows: int) -> None:
        if self.codes is not None and len(self.codes.codes) != n_rows:
            raise errors.length_mismatch("labels", len(self.codes.codes), n_rows)
        if self.weights is not None and len(self.weights) != n_rows:
            raise errors.length_mismatch("weights", len(self.weights), n_rows)

    def of_batch(self, batch: Batch, kind: Kind | None) -> tuple[Codes, NDArray[np.float64] | None]:
        """The batch's labels, of the kind that the first rows settled, and weights."""
        rows = slice(batch.first_row, batch.first_row + batch.n_rows)
        weights = self.weights_of(batch)
        if self.classes is not None:
            soft = weights is not None and weights.ndim == 2
            return Codes(np.zeros(0 if soft else batch.n_rows, dtype=np.int32), 0, self.classes), weights
        if self.codes is None:
            assert self.name is not None
            return batch.codes(self.name, kind), weights
        return Codes(self.codes.codes[rows], self.codes.low, self.codes.values), weights

    def weights_of(self, batch: Batch) -> NDArray[np.float64] | None:
        """The weights of the batch's rows."""
        if self.weight_name is not None:
            return _weights(batch.numbers([self.weight_name])[0].reshape(-1), batch.first_row)
        return None if self.weights is None else self.weights[batch.first_row : batch.first_row + batch.n_rows]


def _class_names(classes: Any) -> tuple[Label, ...]:
    """Names of soft labels' columns: scalars, each once."""
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in classes)
    fit = all(isinstance(name, (bool, int, float, str)) and name == name for name in names)
    if not fit or len(set(names)) != len(names):
        raise errors.bad_setting("classes", names, "texts, numbers or booleans, each once")
    return names


def _weights(weights: Any, first_row: int = 0) -> NDArray[np.float64]:
    try:
        given = np.asarray(weights.filled(np.nan) if isinstance(weights, np.ma.MaskedArray) else weights)
        if given.dtype.kind not in "biufO":
            raise TypeError
        array = given.astype(np.float64)
    except (TypeError, ValueError):
        raise errors.bad_setting("weights", type(weights).__name__, "numbers, one per row or rows × classes") from None
    if (
        given.dtype.kind in "iu"
        and array.size
        and array.max() >= 2.0**53
        and (array.astype(given.dtype) != given).any()
    ):
        raise errors.bad_setting(
            "weights", int(given.max()), "whole numbers that a double holds, as all below 2**53 are"
        )
    if array.ndim not in (1, 2):
        raise errors.bad_setting(
            "weights", f"an array of {array.ndim} dimensions", "one number per row, or rows × classes"
        )
    if array.size and not (array.min() >= 0 and array.max() < MOST_ROWS):
        row = int(np.argwhere(~(array >= 0) | (array >= MOST_ROWS))[0][0])
        cells = array[row : row + 1].ravel()
        raise errors.bad_weight(first_row + row, float(cells[~(cells >= 0) | (cells >= MOST_ROWS)][0]))
    return array


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


def numbered(
    batch: Batch, schema: Schema, labels: Labels
) -> tuple[NDArray[np.int32], Sequence[Label], NDArray[np.float64] | None]:
    """The number of each row's class, −1 where it has none; what the numbers stand for; and the rows' weights."""
    codes, weights = labels.of_batch(batch, schema.target_kind)
    if len(codes.codes) != batch.n_rows:
        raise errors.length_mismatch("labels", len(codes.codes), batch.n_rows)
    numbers, names = dense_numbers(codes, labels.threads)
    return numbers, names, weights


def dense_numbers(codes: Codes, threads: int) -> tuple[NDArray[np.int32], Sequence[Label]]:
    """The number of each row's value among those that occur, −1 where it is missing; and the values."""
    dense = _dense(codes, threads)
    return _class_numbers(dense), dense.values


def refuse_continuous(values: Sequence[Any], n_rows: int) -> None:
    """Labels that are nearly all different and fractional are no classes."""
    if len(values) > max(100, n_rows // 2) and all(isinstance(v, float) and v % 1 for v in values):
        raise errors.continuous_target(len(values), n_rows)


def count_rows(batch: Batch, schema: Schema, labels: Codes, weights: NDArray[Any] | None, threads: int) -> Part:
    """The batch's rows, of these labels and weights, counted but for their texts. Weights may be in parts already."""
    if len(labels.codes) != batch.n_rows or (weights is not None and len(weights) != batch.n_rows):
        short = len(labels.codes) if len(labels.codes) != batch.n_rows else len(weights)  # type: ignore[arg-type]
        raise errors.length_mismatch("labels" if len(labels.codes) != batch.n_rows else "weights", short, batch.n_rows)
    labels = _dense(labels, threads)
    refuse_continuous(labels.values, batch.n_rows)
    classes = _class_numbers(labels)
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


def _dense(column: Codes, threads: int) -> Codes:
    """Integers numbered by those that occur: a range may be wide and hold few of them."""
    if not isinstance(column.values, range):
        return column
    plain = np.ascontiguousarray(column.codes)
    if len(column.values) <= 64:
        shifted = (plain if column.low == 0 else plain - plain.dtype.type(column.low)).astype(np.int32)
        if plain.dtype == np.int64 and plain.min() == LOWEST:
            shifted[plain == LOWEST] = -1
        return Codes(shifted, 0, list(column.values))
    codes, first, _ = _core.encode_records(plain.view(np.uint8).reshape(len(plain), plain.itemsize), threads)
    values = plain[first].tolist()
    if LOWEST in values:
        missing = values.index(LOWEST)
        codes = np.where(codes == missing, -1, codes - (codes > missing)).astype(np.int32)
        del values[missing]
    return Codes(codes, 0, values)


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
    return _dense(column, rows.threads)


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
