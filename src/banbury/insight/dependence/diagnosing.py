"""Diagnosis: a table is read twice, for its columns and for their pairs, and what stands against naive Bayes is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.families.family import RowsToCount
from banbury.families.histogram import columns_to_compare
from banbury.families.information import LEVEL, entropy, shares
from banbury.families.keys import within_reach
from banbury.insight.dependence.information import check_n
from banbury.insight.dependence.pairs import (
    CodedRows,
    columns_to_pair,
    count_pairs,
    word_columns,
    words_to_compare,
    worst_pairs,
)
from banbury.insight.dependence.results import Diagnosis, Telling, Uninformative
from banbury.insight.dependence.testing import ColumnTest, joins, test_features
from banbury.reading import Batch
from banbury.reading.columns import Numbers
from banbury.sums import in_rows
from banbury.tally.schema import Features, Missing, Schema
from banbury.tally.table import Labels, Table
from banbury.tally.tally import Label, Tally, plus, rows_of_batch, tally_of

LIGHTEST = 1e-290  # the reciprocal of a smaller weight may be no number


def diagnose(
    data: Any,
    target: Any = None,
    *,
    features: Features = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing = "category",
    threads: int | None = None,
    n: int = 20,
    **reading: Any,
) -> Diagnosis:
    """Finds what limits naive Bayes on a table: columns that repeat each other, and columns without information about
    the class.

    ``data``, ``target``, ``features``, ``schema``, ``weights`` and ``reading`` are those of ``bb.count``. Missing
    values count as a value of their own, as in a weighed model; with ``missing="skip"`` they are ignored, as in a plain
    one. ``n`` is the number of pairs, and of words of a text, to list. The table is read twice in batches: once to
    count values, bins and words, and once to count pairs. An iterator is kept in memory between the two.

    *Pairs* are compared by I(A; B | class) over the rows that have both values. Numbers are cut into at most 12 groups
    of about equal size in each class, fewer if there are few rows. The 50 most frequent values of a category are kept
    (fewer if there are few rows), and the others are merged into groups of about equal size. Classes with fewer than
    ten rows are ignored. If there are more than 200 columns, only the most informative are compared; of texts, the
    presence of the 200 most informative words. Even independent columns appear to share about d / (2 · rows · ln 2)
    bits, where d is the sum of (values of A − 1)(values of B − 1) over the classes; this is subtracted, down to 0. A
    pair is listed if the likelihood-ratio test (G, with d degrees of freedom and Williams' correction) rejects
    independence at the level 0.05 for all pairs together.

    *Blocks* (``features={("a", "b"): ...}``) are modelled jointly, so their columns are not compared with each other,
    only with all other columns. The information of a block about the class is that of its columns together: for a joint
    table, that of one feature with many values; for a Gaussian block, that of the model, with a test that assumes
    normal columns; for a block of bins, that of a few groups of its columns, or of its best column. Columns of a matrix
    of occurrences are treated as words.

    *Columns without information* are those for which the same test between column and class does not reject
    independence at the level 0.05. (With more than 20 classes, those with fewer than ten rows are merged.) Columns that
    inference leaves out are listed with the reason. Whole weights count as numbers of rows; for fractional weights, the
    tests use Kish's effective number of rows, (Σw)² / Σw².

    >>> import banbury as bb
    >>> rooms = {"warm": [True, True, False, False] * 40, "celsius": [25.0, 24.0, 15.0, 16.0] * 40,
    ...          "door": ["a", "a", "a", "a", "b"] * 32, "full": ["yes", "yes", "yes", "no", "no", "no", "no", "yes"] * 20}
    >>> bb.diagnose(rooms, target="full")
    Diagnosis of 160 rows, 2 classes, 3 columns
    Pairs that depend on each other given the class (of 3), in bits:
      warm / celsius  0.973  100%  duplicated
    Columns without information about the class in these rows:
      warm     p = 1
      celsius  p = 1
      door     p = 1
    Counting evidence twice pushes probabilities towards 0 and 1: leave out celsius, which adds little to warm.
    """
    check_n(n)
    counting = {"schema": schema, "features": features, "weights": weights, "missing": missing, "threads": threads}
    table = Table.of(data, target, **counting, **reading)
    table.labels.check_one_class()
    return _diagnose_table(table.again(), int(n))


def _diagnose_table(table: Table, n: int) -> Diagnosis:
    tally, assigned, schema = _count_finely(table)
    scale = _rows_per_weight(assigned)
    tests = dict[str, ColumnTest]()
    rows_of_classes = tally.rows.value if table.missing == "category" else None
    for family, columns, sums in sorted(tally.groups, key=lambda group: bool(group[1][0].columns)):  # blocks come last
        tests |= zip(
            (column.name for column in columns),
            test_features(family, columns, sums, scale, n, tests, rows_of_classes),
            strict=True,
        )
    ranked = sorted((f.name for f in tally.schema.features), key=lambda name: (-tests[name].bits, tests[name].p))
    compared = columns_to_pair(tally, [name for name in ranked if tests[name].different], scale, table.labels.threads)
    texts = word_columns(tally)
    words = words_to_compare(texts, len(tally.classes))
    blocks = {f.name: f.columns for f in schema.features if joins(f)}
    block_of = {column: name for name, block in blocks.items() for column in block}
    counted = count_pairs(table.source, table.labels, tally, assigned, compared, texts, words)
    both = [counted.of_columns(block_of, scale), counted.of_words(words, scale)]
    n_pairs = sum(len(measured.bits) for measured in both)
    pairs = sorted((p for measured in both for p in worst_pairs(measured, n_pairs, n)), key=lambda p: (-p.bits, p.p))
    doubtful = ((f.name, tests[f.name]) for f in schema.features if tests[f.name].p >= LEVEL)
    idle = [Uninformative(n, t.why or f"p = {t.p:.2g}", None if t.why else t.p) for n, t in doubtful]
    left_out = [Uninformative(name, f"left out: {why}") for name, why in schema.left_out.items()]
    different = sum(test.different for test in tests.values())
    return Diagnosis(
        tally.n_rows,
        tally.classes,
        entropy(shares(tally.rows.value)),
        tuple(pairs[:n]),
        tuple(Telling(name, *tests[name][:2], tests[name].words) for name in ranked if name in schema.index),
        (*idle, *left_out),
        n_pairs,
        tuple(_notes(tally, blocks, (len(compared), different), texts, len(words))),
        blocks,
        sum(len(feature.inputs) for feature in schema.features),
        {
            f.name: "bb.Gaussian(covariance='full')" if f.family.has_density() else "bb.Joint()"
            for f in tally.schema.features
        },
    )


def _notes(
    tally: Tally, blocks: Mapping[str, Any], columns: tuple[int, int], texts: Sequence[Any], n_words: int
) -> Iterator[str]:
    """What was not compared; ``columns`` says how many were, of how many."""
    if blocks:
        yield f"Columns of one block are modelled together, so their pairs are not compared: {errors.listed(blocks, 6)}."
    if columns[1] > columns[0]:
        yield f"Only pairs of the {columns[0]:,} most informative of {columns[1]:,} columns were compared."
    n_known = sum(text.sums.table.n_words for text in texts)
    if n_known > n_words:
        yield f"Only pairs of the {n_words:,} most informative of {n_known:,} words were compared."
    if tally.skipped:
        yield f"Skipped: {tally.skipped:,} row{'s' * (tally.skipped != 1)} without a target."


# The first pass: values, bins and words


def _count_finely(table: Table) -> tuple[Tally, list[CodedRows], Schema]:
    """The tally, with numbers in fine bins; the rows' classes and weights; the schema that ``bb.count`` would have."""
    labels = table.labels
    begun = list[tuple[Schema, Schema, Tally | None]]()
    labelled: list[list[tuple[Sequence[Label], CodedRows]]] = []

    def anew() -> None:
        begun.clear()
        labelled.clear()

    for batch in table.batches("counting", anew, quietly=True):
        if not begun:
            settled = table.settle_schema(batch)
            begun.append((settled, _schema_to_compare(settled, batch), None))
        [(schema, compared, total)] = begun
        batch = table.align(batch, schema)
        _check_least(batch, schema, labels.threads)
        for k, (part, rows) in enumerate(_parts(batch, compared, labels)):
            total = plus(total, part)
            if k == len(labelled):
                labelled.append([])
            weights = None if rows.weights is None else in_rows(rows.weights)
            labelled[k].append((rows.labels, CodedRows(rows.classes, weights)))
        assert total is not None
        begun[0] = schema, total.schema, total
    [(schema, _, tally)] = begun
    assert tally is not None
    n_rows = sum(len(rows.classes) for _, rows in labelled[0])
    if not tally.classes and tally.skipped == n_rows:
        raise errors.no_target(n_rows, labels.name)
    if not tally.classes:
        raise errors.empty_data(table.name, "no row has a positive weight")
    return tally, [_concatenate(batches, tally.classes) for batches in labelled], schema


def _check_least(batch: Batch, schema: Schema, threads: int) -> None:
    """Raises for numbers that a family refuses, though they are counted in bins here."""
    rows = RowsToCount(batch, (0,), np.zeros(batch.n_rows, dtype=np.int32), None, threads)
    for feature in schema.features:
        if feature.family.least > -np.inf:
            feature.counter.count([feature], rows)


def _parts(batch: Batch, schema: Schema, labels: Labels) -> list[tuple[Tally, RowsToCount]]:
    """The batch, counted; numbers too far away for their bins to be numbered are brought nearer."""
    while True:
        try:
            return [(tally_of(rows, schema), rows) for rows in rows_of_batch(batch, schema, labels)]
        except errors.BadValue as bad:
            column = schema[bad.column] if getattr(bad, "what", None) == "too fine" else None  # type: ignore[attr-defined]
            if column is None or column.family.settings():
                raise
            numbers = within_reach(column.numbers(batch)[0].reshape(-1), column)
            batch = batch.with_columns({column.name: Numbers(numbers)})


def _schema_to_compare(schema: Schema, batch: Batch) -> Schema:
    """The schema of columns as they are compared, numbers in fine bins; columns of blocks beside the blocks, one by one."""
    columns = [column for feature in schema.features for column in columns_to_compare(feature, batch)]
    blocks = [feature for feature in schema.features if joins(feature)]
    if any(feature.columns for feature in schema.features):
        place = {name: number for number, name in enumerate(schema.columns)}
        columns.sort(key=lambda feature: place[feature.inputs[0]])
    return replace(schema, features=(*columns, *blocks))


def _concatenate(batches: Sequence[tuple[Sequence[Label], CodedRows]], classes: tuple[Label, ...]) -> CodedRows:
    """Batches, each with its own numbers of classes, one after the other."""
    place = {name: c for c, name in enumerate(classes)}
    numbers = [np.array([*(place.get(n, -1) for n in names), -1], dtype=np.int32)[a.classes] for names, a in batches]
    weights = [a.weights for _, a in batches if a.weights is not None]
    return CodedRows(np.concatenate(numbers), np.concatenate(weights) if weights else None)


def _rows_per_weight(assigned: Sequence[CodedRows]) -> float:
    """What a weight of 1 counts in a test: 1, or by Kish's number of rows where weights are fractional."""
    weights = [a.weights[a.classes >= 0] for a in assigned if a.weights is not None]
    if all(a.whole for a in assigned) or not weights:
        return 1.0
    largest = max(float(w.max(initial=0.0)) for w in weights)
    if largest < LIGHTEST:
        raise errors.bad_setting(
            "weights", f"{largest:g} at most", f"weights with at least one of {LIGHTEST:g} or more"
        )
    relative = [w / largest for w in weights]
    return sum(float(w.sum()) for w in relative) / sum(float(w @ w) for w in relative) / largest
