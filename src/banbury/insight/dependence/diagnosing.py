"""Diagnosis: a table is read twice, for its columns and for their pairs, to find what limits naive Bayes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.families.family import Features, RowsToCount
from banbury.families.histogram import columns_to_compare
from banbury.families.information import LEVEL, entropy, shares
from banbury.families.keys import clip_to_numbered_bins
from banbury.insight.dependence.information import check_n
from banbury.insight.dependence.pairs import (
    CodedRows,
    columns_to_pair,
    count_pairs,
    word_columns,
    words_to_compare,
    worst_pairs,
)
from banbury.insight.dependence.results import ColumnInformation, Diagnosis, Uninformative
from banbury.insight.dependence.testing import ColumnTest, models_jointly, test_features
from banbury.reading import Batch
from banbury.reading.columns import Numbers
from banbury.sums import decode_weights
from banbury.tally.schema import FamilyOption, Missing, Schema
from banbury.tally.table import Labels, Table
from banbury.tally.tally import Label, Tally, add_tally, rows_of_batch, tally_of

LEAST_WEIGHT = 1e-290  # the reciprocal of a smaller weight may overflow


def diagnose(
    data: Any,
    target: Any = None,
    *,
    features: FamilyOption = "auto",
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
    table = Table.of(
        data,
        target,
        schema=schema,
        features=features,
        weights=weights,
        missing=missing,
        threads=threads,
        **reading,
    )
    table.labels.check_one_class()
    return _diagnose_table(table.again(), int(n))


def _diagnose_table(table: Table, n: int) -> Diagnosis:
    """Counts the columns of a table and then their pairs, tests both, and returns what limits naive Bayes. ``n`` is the
    number of pairs and words to list.
    """
    # ``tally.schema`` has columns in fine bins, and those of a block also one by one; ``schema`` is the table's own.
    tally, coded_rows, schema = _count_finely(table)
    rows_per_weight = _rows_per_weight(coded_rows)  # how many rows a weight of 1 counts as in a test
    rows_by_class = tally.rows.value if table.missing == "category" else None  # given if missing is a value
    tests = dict[str, ColumnTest]()  # by the name of a column or block
    # Groups of features of one family: the family, the features and their sums. The tests of blocks use those of
    # columns.
    blocks_last = sorted(tally.groups, key=lambda group: bool(group[1][0].columns))
    for family, features, sums in blocks_last:
        feature_tests = test_features(family, features, sums, rows_per_weight, n, tests, rows_by_class)
        tests |= zip(features.names, feature_tests, strict=True)
    names_by_bits = sorted(tally.schema.features.names, key=lambda name: (-tests[name].bits, tests[name].p))
    names_to_pair = [  # of columns, the most informative first
        name for name in names_by_bits if tests[name].has_several_values
    ]
    compared_columns = columns_to_pair(tally, names_to_pair, rows_per_weight, table.labels.threads)
    text_columns = word_columns(tally)  # each with its counted words
    words = words_to_compare(text_columns, len(tally.classes))
    # The columns of each block by its name, and the reverse.
    blocks = {feature.name: feature.columns for feature in schema.features if models_jointly(feature)}
    block_of = {column: name for name, block in blocks.items() for column in block}
    pair_counts = count_pairs(table.source, table.labels, tally, coded_rows, compared_columns, text_columns, words)
    # How much each pair depends on each other, given the class.
    column_pairs = pair_counts.measure_columns(block_of, rows_per_weight)
    word_pairs = pair_counts.measure_words(words, rows_per_weight)
    n_pairs = len(column_pairs.bits) + len(word_pairs.bits)
    pairs = [*worst_pairs(column_pairs, n_pairs, n), *worst_pairs(word_pairs, n_pairs, n)]
    informative = [
        ColumnInformation(name, tests[name].bits, tests[name].p, tests[name].words)
        for name in names_by_bits
        if name in schema.index
    ]
    joining_families = {  # as text, by the name of the column: what models it together with others of its kind
        feature.name: "bb.Gaussian(covariance='full')" if feature.family.has_density() else "bb.Joint()"
        for feature in tally.schema.features
    }
    return Diagnosis(
        tally.n_rows,
        tally.classes,
        entropy=entropy(shares(tally.rows.value)),
        pairs=tuple(sorted(pairs, key=lambda pair: (-pair.bits, pair.p))[:n]),
        columns=tuple(informative),
        uninformative=tuple(_uninformative_columns(schema, tests)),
        n_pairs=n_pairs,
        notes=tuple(_notes(tally, blocks, len(compared_columns), len(names_to_pair), text_columns, len(words))),
        blocks=blocks,
        n_columns=len(schema.features.inputs),
        joined_by=joining_families,
    )


def _uninformative_columns(schema: Schema, tests: Mapping[str, ColumnTest]) -> Iterator[Uninformative]:
    """Yields the features whose test did not find information about the class at the level ``LEVEL``, or that could not
    be tested, then the columns that the schema leaves out. ``tests`` has the test of each feature by name.
    """
    for feature in schema.features:
        test = tests[feature.name]
        if test.p >= LEVEL:
            yield Uninformative(feature.name, test.why or f"p = {test.p:.2g}", None if test.why else test.p)
    for column, why in schema.left_out.items():
        yield Uninformative(column, f"left out: {why}")


def _notes(
    tally: Tally, blocks: Mapping[str, Any], n_compared: int, n_columns: int, texts: Sequence[Any], n_words: int
) -> Iterator[str]:
    """Yields notes on what was not compared, a sentence each: columns of ``blocks``, all but ``n_compared`` of
    ``n_columns`` columns, and all but ``n_words`` words of the ``texts`` (text columns, each with its words); and on
    rows without a target, which ``tally`` counts as skipped.
    """
    if blocks:
        yield f"Columns of one block are modelled together, so their pairs are not compared: {errors.listed(blocks, 6)}."
    if n_columns > n_compared:
        yield f"Only pairs of the {n_compared:,} most informative of {n_columns:,} columns were compared."
    n_known = sum(sums.table.n_words for _, sums in texts)
    if n_known > n_words:
        yield f"Only pairs of the {n_words:,} most informative of {n_known:,} words were compared."
    if tally.skipped:
        yield f"Skipped: {tally.skipped:,} row{'s' * (tally.skipped != 1)} without a target."


# The first pass: values, bins and words


def _count_finely(table: Table) -> tuple[Tally, list[CodedRows], Schema]:
    """Counts the table with numbers in fine bins. Returns the tally; the classes and weights of all rows, numbered as
    in the tally (one ``CodedRows``, or with soft labels one for each class); and the schema that ``bb.count`` would
    use. Raises an error if no row has a target or a positive weight.
    """
    labels = table.labels
    # Empty before the first batch, then one entry: the table's schema, the schema with fine bins, and the tally of the
    # batches so far. A list, so that ``start_over`` can empty it.
    schemas_and_tally = list[tuple[Schema, Schema, Tally | None]]()
    # For each batch, its class names, and the class number among these names (−1: none) and the weight of each row;
    # with soft labels, a pair for each class.
    coded_batches: list[list[tuple[Sequence[Label], CodedRows]]] = []

    def start_over() -> None:
        """Forgets what was counted, because the table is read again from its first batch."""
        schemas_and_tally.clear()
        coded_batches.clear()

    for batch in table.batches("counting", start_over, quietly=True):
        if not schemas_and_tally:
            settled_schema = table.settle_schema(batch)
            schemas_and_tally.append((settled_schema, _schema_to_compare(settled_schema, batch), None))
        [(schema, fine_schema, tally_so_far)] = schemas_and_tally
        batch = table.align(batch, schema)
        _check_least(batch, schema, labels.threads)
        coded_batch = []
        for batch_tally, rows in _count_batch(batch, fine_schema, labels):
            tally_so_far = add_tally(tally_so_far, batch_tally)
            weights = None if rows.weights is None else decode_weights(rows.weights)
            coded_batch.append((rows.labels, CodedRows(rows.classes, weights)))
        coded_batches.append(coded_batch)
        assert tally_so_far is not None
        schemas_and_tally[0] = schema, tally_so_far.schema, tally_so_far  # counting may have made bins wider
    [(schema, _, tally)] = schemas_and_tally
    assert tally is not None
    coded_rows = [_concatenate_rows(batches, tally.classes) for batches in zip(*coded_batches, strict=True)]
    n_rows = len(coded_rows[0].classes)
    if not tally.classes and tally.skipped == n_rows:
        raise errors.no_target(n_rows, labels.name)
    if not tally.classes:
        raise errors.empty_data(table.name, "no row has a positive weight")
    return tally, coded_rows, schema


def _check_least(batch: Batch, schema: Schema, threads: int) -> None:
    """Raises an error for numbers that a feature's family refuses, such as negative counts, which its fine bins would
    accept. For this, ``threads`` count the batch as all one class under the ``schema`` of the table; the counts are not
    kept.
    """
    one_class = np.zeros(batch.n_rows, dtype=np.int32)
    rows_to_count = RowsToCount(batch, labels=(0,), classes=one_class, weights=None, threads=threads)
    for feature_number in schema.features.where(lambda template: template.family.least > -np.inf).tolist():
        schema.features[feature_number].counter.count(schema.features.take([feature_number]), rows_to_count)


def _count_batch(batch: Batch, schema: Schema, labels: Labels) -> list[tuple[Tally, RowsToCount]]:
    """Counts a batch under a schema. Returns the tally with the rows that it counted; with soft labels, such a pair for
    each class. Numbers so far away that their bins cannot be numbered are first moved closer.
    """
    while True:
        try:
            return [(tally_of(rows, schema), rows) for rows in rows_of_batch(batch, schema, labels)]
        except errors.BadValue as error:
            # The feature whose bins are too fine; None for other errors.
            column = schema[error.column] if getattr(error, "what", None) == "too fine" else None  # type: ignore[attr-defined]
            if column is None or column.family.settings():
                raise
            numbers = clip_to_numbered_bins(column.numbers(batch)[0].reshape(-1), column)
            batch = batch.with_columns({column.name: Numbers(numbers)})


def _schema_to_compare(schema: Schema, batch: Batch) -> Schema:
    """Returns the schema with which columns are compared: columns in the order of the table, with numbers in fine bins,
    then blocks, so that the columns of a block are counted both one by one and together. ``batch`` is the first one.
    """
    columns = [column for feature in schema.features for column in columns_to_compare(feature, batch)]
    blocks = [feature for feature in schema.features if models_jointly(feature)]
    if schema.features.has_blocks:
        position_of_column = {name: number for number, name in enumerate(schema.columns)}
        columns.sort(key=lambda feature: position_of_column[feature.inputs[0]])
    return replace(schema, features=Features.of([*columns, *blocks]))


def _concatenate_rows(batches: Sequence[tuple[Sequence[Label], CodedRows]], classes: tuple[Label, ...]) -> CodedRows:
    """Returns the rows of all batches together. ``batches`` are pairs of class names and rows, whose class numbers
    refer to these names, −1 for none; the joined rows have the positions of the names in ``classes``.
    """
    number_of_class = {name: number for number, name in enumerate(classes)}
    class_numbers = [  # of the rows of each batch, in ``classes``
        np.array([*(number_of_class.get(name, -1) for name in names), -1], dtype=np.int32)[rows.classes]
        for names, rows in batches
    ]
    weights = [rows.weights for _, rows in batches if rows.weights is not None]
    return CodedRows(np.concatenate(class_numbers), np.concatenate(weights) if weights else None)


def _rows_per_weight(coded_rows: Sequence[CodedRows]) -> float:
    """Returns how many rows a weight of 1 counts as in a test: 1, or for fractional weights as many as give Kish's
    effective number of rows. ``coded_rows`` has the class and weight of each row, with soft labels once for each class.
    Raises an error if all weights are too small to divide by.
    """
    weight_arrays = [rows.weights[rows.classes >= 0] for rows in coded_rows if rows.weights is not None]
    if all(rows.whole for rows in coded_rows) or not weight_arrays:
        return 1.0
    largest_weight = max(float(batch_weights.max(initial=0.0)) for batch_weights in weight_arrays)
    if largest_weight < LEAST_WEIGHT:
        raise errors.bad_setting(
            "weights", f"{largest_weight:g} at most", f"weights with at least one of {LEAST_WEIGHT:g} or more"
        )
    relative_weight_arrays = [batch_weights / largest_weight for batch_weights in weight_arrays]
    weight_sum = sum(float(relative_weights.sum()) for relative_weights in relative_weight_arrays)
    square_sum = sum(float(relative_weights @ relative_weights) for relative_weights in relative_weight_arrays)
    return weight_sum / square_sum / largest_weight
