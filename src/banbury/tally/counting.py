"""Counting: a table becomes a tally, batch by batch, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.distributions.family import RowsToCount
from banbury.distributions.keys import code_numbers, dense
from banbury.readers import MISSING_VALUES, SUBJECT, Batch, Codes, Format, Headers
from banbury.renamed import takes_old
from banbury.schema import Features, Missing, Schema
from banbury.sums import in_order, in_parts, weighed, weighing
from banbury.table import Labels, Table, refuse_continuous
from banbury.tally.growing import Growing, Part
from banbury.tally.tally import Label, Tally, within_bins


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
    ``missing="category"`` makes a missing word, boolean or category a value of its own; otherwise what is missing is skipped.
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
