"""Counting: a table becomes a tally, batch by batch, in one pass."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.distributions.family import Kind, RowsToCount
from banbury.distributions.keys import code_numbers, dense, dense_numbers
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
    in_order,
    in_parts,
    weighed,
    weighing,
)
from banbury.tally.growing import Growing, Part
from banbury.tally.tally import Label, Tally, within_bins


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


def numbered(
    batch: Batch, schema: Schema, labels: Labels
) -> tuple[NDArray[np.int32], Sequence[Label], NDArray[np.float64] | None]:
    """The number of each row's class, −1 where it has none; what the numbers stand for; and the rows' weights."""
    codes, weights = labels.of_batch(batch, schema.target_kind)
    if len(codes.codes) != batch.n_rows:
        raise errors.length_mismatch("labels", len(codes.codes), batch.n_rows)
    numbers, names = dense_numbers(codes, labels.threads)
    return numbers, names, weights


def refuse_continuous(values: Sequence[Any], n_rows: int) -> None:
    """Labels that are nearly all different and fractional are no classes."""
    if len(values) > max(100, n_rows // 2) and all(isinstance(v, float) and v % 1 for v in values):
        raise errors.continuous_target(len(values), n_rows)


def count_rows(batch: Batch, schema: Schema, labels: Codes, weights: NDArray[Any] | None, threads: int) -> Part:
    """The batch's rows, of these labels and weights, counted but for their texts. Weights may be in parts already."""
    if len(labels.codes) != batch.n_rows or (weights is not None and len(weights) != batch.n_rows):
        short = len(labels.codes) if len(labels.codes) != batch.n_rows else len(weights)  # type: ignore[arg-type]
        raise errors.length_mismatch("labels" if len(labels.codes) != batch.n_rows else "weights", short, batch.n_rows)
    labels = dense(labels, threads)
    refuse_continuous(labels.values, batch.n_rows)
    classes = code_numbers(labels)
    skipped = int(np.count_nonzero(classes < 0)) if classes.size and classes.min() < 0 else 0
    if weights is not None:
        given = int(np.count_nonzero(weights)) if weights.dtype == np.float64 else 0
        classes, weights = weighed(classes, weights)
        assert weights is not None
        if given > (heavy := int(np.count_nonzero(weighing(weights)))):
            errors.warn(errors.too_light(given - heavy))
    rows = RowsToCount(batch, labels.values, classes, weights, threads)
    counted = [(group, *group.counter.count(group.features, rows)) for group in schema.groups]
    if not all(features is group.features for group, features, _ in counted):
        schema = schema.with_features((group, features) for group, features, _ in counted)
    tally = Tally(schema, tuple(labels.values), rows.per_class, tuple(sums for *_, sums in counted), skipped)
    return Part(within_bins(_sorted_classes(tally)._trimmed()), rows)


def _sorted_classes(tally: Tally) -> Tally:
    classes: Any = in_order(tally.classes)
    if classes == tally.classes:
        return tally
    return tally._of([tally.classes.index(name) for name in classes], classes)
