"""Diagnosis: a table is read twice, for its columns and for their pairs, and what stands against naive Bayes is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.dependence.blocks import FINEST, block_of, is_joined, one_by_one, told_by_normals
from banbury.dependence.groups import ROWS_PER_CELL, Grouped, compared_columns, grouped, overall_groups, within_reach
from banbury.dependence.information import (
    bits_of,
    check_most,
    entropy,
    excess,
    expected,
    inverse_shares,
    kept_words,
    p_values,
    shares,
    words_of,
)
from banbury.dependence.pairs import FEWEST_ROWS, LEVEL, LabelledRows, Word, compared_words, count_pairs
from banbury.dependence.results import Diagnosis, Telling, Uninformative
from banbury.distributions import Gaussian, Histogram
from banbury.distributions.family import Feature
from banbury.distributions.moments import check_counts
from banbury.distributions.poisson import Poisson
from banbury.readers import Batch
from banbury.readers.batches import LazyColumns
from banbury.readers.columns import Numbers
from banbury.schema import FINE_BINS, Features, Missing, Schema
from banbury.sums import Keys, Products, Words, in_rows
from banbury.table import Labels, Table
from banbury.tally import Growing, Label, Part, Tally, parts

FEW_CLASSES = 20  # up to so many, even small ones are tested one by one
LIGHTEST = 1e-290  # the reciprocal of a smaller weight may be no number


def diagnose(
    data: Any,
    target: Any = None,
    *,
    features: Features = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing = "skip",
    threads: int | None = None,
    most: int = 20,
    **reading: Any,
) -> Diagnosis:
    """Finds what stands against naive Bayes in a table: columns that repeat each other, and columns that tell nothing.

    ``data``, ``target``, ``features``, ``schema``, ``weights``, ``missing`` and ``reading`` are those of ``bb.count``. The table
    is read twice, batch by batch (an iterator is kept meanwhile): to count values, bins and words, and then to count pairs.
    ``most`` is how many pairs, and words of a text, are listed.

    Pairs are compared by I(A; B | class), over the rows that have both values. Numbers are cut into at most 12 groups of about
    equal size in each class, fewer where rows are few; up to 50 values of a category, fewer where rows are few, are taken as they
    are, and of more the frequent ones, the rest by name in groups of about equal size; classes of fewer than ten rows are left
    aside. Among more than 200 columns the most telling are compared; of texts the presence of the 200 most telling words. Even
    independent columns seem to share about
    d / (2 · rows · ln 2) bits, where d adds up (values of A − 1)(values of B − 1) over the classes: that is taken off, down to 0.
    A pair is listed if the likelihood-ratio test (G, with d degrees of freedom and Williams' correction) finds it beyond chance
    at the level 0.05 over all pairs together.

    Columns of one block (``features={("a", "b"): ...}``) are modelled together, so their pairs are not compared; each is compared
    with all columns outside. What a block tells about the class is what its columns tell together: of a joint table that of one
    feature with many values; of a Gaussian block that of the model, tested as if its columns were normal; of a block of bins that
    of a few groups of its columns, or of its best column; columns of a block of occurrences are compared as words are.

    A column tells nothing if the same test, of the column and the class, does not find it beyond chance at the level 0.05 (among
    more than 20 classes those of fewer than ten rows are then taken as one); columns that inference leaves out are listed with
    the reason. Whole weights count as so many rows; of fractional ones the tests take Kish's number of rows, (Σw)² / Σw².

    >>> import banbury as bb
    >>> rooms = {"warm": [True, True, False, False] * 40, "celsius": [25.0, 24.0, 15.0, 16.0] * 40,
    ...          "door": ["a", "a", "a", "a", "b"] * 32, "full": ["yes", "yes", "yes", "no", "no", "no", "no", "yes"] * 20}
    >>> bb.diagnose(rooms, target="full")
    Diagnosis of 160 rows, 2 classes, 3 columns
    Pairs that depend on each other given the class (of 3), in bits:
      warm / celsius  0.973  100%  duplicated
    Columns that tell nothing about the class, as far as these rows show:
      warm     p = 1
      celsius  p = 1
      door     p = 1
    Evidence that is counted twice pushes posteriors towards 0 and 1: leave out one of warm and celsius.
    """
    check_most(most)
    counting = {"schema": schema, "features": features, "weights": weights, "missing": missing, "threads": threads}
    return _diagnosed(Table.of(data, target, **counting, **reading).again(), int(most))


def _diagnosed(table: Table, most: int) -> Diagnosis:
    tally, assigned, schema = _counted(table)
    scale = _rows_per_weight(assigned)
    every = sorted(_singles(tally, scale, most), key=lambda s: (-s.bits, s.p))
    columns = compared_columns(tally, [s.feature for s in every if s.different], scale)
    ranked = [s for s in every if s.feature in schema.index]
    words = compared_words(tally)
    counted = count_pairs(table.source, table.labels, tally, assigned, columns, words)
    found = [counted.of_columns(columns, block_of(schema), scale), counted.of_words(words, scale)]
    n_pairs = sum(len(each.bits) for each in found)
    pairs = sorted((p for each in found for p in each.listed(n_pairs, most)), key=lambda p: (-p.bits, p.p))
    idle = [
        Uninformative(s.feature, s.why or f"p = {s.p:.2g}", None if s.why else s.p)
        for s in sorted(ranked, key=lambda s: schema.index[s.feature])
        if s.p >= LEVEL
    ]
    left_out = [Uninformative(name, f"left out: {why}") for name, why in schema.left_out.items()]
    return Diagnosis(
        tally.n_rows,
        tally.classes,
        entropy(shares(tally.rows.value)),
        tuple(pairs[:most]),
        tuple(Telling(s.feature, s.bits, s.p, s.words) for s in ranked),
        (*idle, *left_out),
        n_pairs,
        tuple(_notes(schema, tally, every, columns, words)),
        {block.name: block.columns for block in filter(is_joined, schema.features)},
        sum(len(feature.inputs) for feature in schema.features),
        frozenset(f.name for f in schema.features if f.family.shape in ("moments", "bins") and not f.columns),
    )


def _notes(
    schema: Schema, tally: Tally, singles: Sequence[Single], columns: Sequence[Grouped], words: Sequence[Word]
) -> Iterator[str]:
    """What was not compared."""
    blocks = [feature.name for feature in schema.features if is_joined(feature)]
    if blocks:
        yield f"Columns of one block are modelled together, so their pairs are not compared: {errors.listed(blocks, 6)}."
    different = sum(s.different for s in singles)
    if different > len(columns):
        yield f"Pairs are those of the {len(columns):,} most telling of {different:,} columns."
    known = sum(each.table.n_words for each in tally.words)
    if known > len(words):
        yield f"Pairs of words are those of the {len(words):,} most telling of {known:,} words."
    if tally.skipped:
        yield f"Skipped: {tally.skipped:,} row{'s' * (tally.skipped != 1)} without a target."


# The first pass: values, bins and words


def _counted(
    table: Table,
) -> tuple[Tally, list[LabelledRows], Schema]:
    """The tally, with numbers in fine bins; the rows' classes and weights; the schema that ``bb.count`` would have."""
    labels, begun = table.labels, list[tuple[Schema, Growing]]()
    found: list[list[tuple[Sequence[Label], LabelledRows]]] = []

    def anew() -> None:
        begun.clear()
        found.clear()

    for batch in table.batches("counting", anew, quietly=True):
        if not begun:
            begun.append((settled := table.settled(batch), Growing(_in_bins(settled))))
        [(schema, growing)] = begun
        batch = table.aligned(batch, schema)
        for feature in schema.measured:
            if isinstance(feature.family, Poisson):
                check_counts(batch, [feature.name], labels.threads)
        for k, part in enumerate(_parts(batch, growing.schema, labels)):
            growing.add(part)
            if k == len(found):
                found.append([])
            weights = None if part.rows.weights is None else in_rows(part.rows.weights)
            found[k].append((part.rows.labels, LabelledRows(part.rows.classes, weights)))
    [(schema, growing)] = begun
    tally = growing.frozen()
    n_rows = sum(len(rows.classes) for _, rows in found[0])
    if not tally.classes and tally.skipped == n_rows:
        raise errors.no_target(n_rows, labels.name)
    if not tally.classes:
        raise errors.empty_data(table.name, "no row has a weight above 0")
    return tally, [_joined(each, tally.classes) for each in found], schema


def _parts(batch: Batch, schema: Schema, labels: Labels) -> list[Part]:
    """The batch, counted; numbers too far away for their bins to be numbered are brought nearer."""
    while True:
        try:
            return list(parts(batch, schema, labels))
        except errors.BadValue as bad:
            column = schema[bad.column] if getattr(bad, "what", None) == "too fine" else None  # type: ignore[attr-defined]
            if column is None or column.family.settings():
                raise
            batch = _nearer(batch, column)


def _nearer(batch: Batch, feature: Feature) -> Batch:
    """The batch, with one column's numbers within reach of its bins."""
    near = Numbers(within_reach(batch.numbers([feature.name])[0].reshape(-1), feature))
    columns = LazyColumns(lambda name: near if name == feature.name else batch.column(name))
    result = Batch(batch.names, batch.n_rows, columns, batch.named, batch.source)
    result.first_row, result.threads = batch.first_row, batch.threads
    return result


def _in_bins(schema: Schema) -> Schema:
    """The schema with fine bins in place of moments, and the columns of blocks beside them, one by one."""

    def binned(feature: Feature) -> Feature:
        if feature.family.shape != "moments":
            return feature
        finer = 1.0 if isinstance(feature.family, Poisson) else 2.0**-FINE_BINS
        return feature._replace(family=Histogram(), unit=max(feature.unit * finer, FINEST))

    alone = [binned(feature) for feature in schema.features if not feature.columns or feature.family.shape == "words"]
    blocks = [feature for feature in schema.features if feature.columns and feature.family.shape != "words"]
    if blocks:
        place = {name: number for number, name in enumerate(schema.columns)}
        alone += [column for feature in blocks for column in one_by_one(feature)]
        alone.sort(key=lambda feature: place[feature.inputs[0]])
    return replace(schema, features=(*alone, *filter(is_joined, blocks)))


def _joined(found: Sequence[tuple[Sequence[Label], LabelledRows]], classes: tuple[Label, ...]) -> LabelledRows:
    """Batches, each with its own numbers of classes, one after the other."""
    place = {name: c for c, name in enumerate(classes)}
    numbers = [np.array([*(place.get(n, -1) for n in names), -1], dtype=np.int32)[a.classes] for names, a in found]
    weights = [a.weights for _, a in found if a.weights is not None]
    return LabelledRows(np.concatenate(numbers), np.concatenate(weights) if weights else None)


def _rows_per_weight(assigned: Sequence[LabelledRows]) -> float:
    """What a weight of 1 counts in a test: 1, or by Kish's number of rows where weights are fractional."""
    weights = [a.weights[a.classes >= 0] for a in assigned if a.weights is not None]
    if all(a.whole for a in assigned) or not weights:
        return 1.0
    largest = max(float(w.max(initial=0.0)) for w in weights)
    if largest < LIGHTEST:
        raise errors.bad_setting("weights", f"{largest:g} at most", f"weights of which one is {LIGHTEST:g} at least")
    relative = [w / largest for w in weights]
    return sum(float(w.sum()) for w in relative) / sum(float(w @ w) for w in relative) / largest


# Columns one by one


class Single(NamedTuple):
    """What one column tells: bits beyond chance, and how often chance would come so far."""

    feature: str
    bits: float
    p: float
    different: bool  # whether it is a column of two values at least, and no text
    why: str  # why it could not be tested, or nothing
    words: Mapping[str, float]


def _singles(tally: Tally, scale: float, most: int) -> list[Single]:
    """What each column tells about the class."""
    keyed, texts, products = iter(range(len(tally.schema.keyed))), iter(tally.words), iter(tally.products)
    found = []
    for feature in tally.schema.features:
        if feature.family.shape == "words":
            found.append(_of_text(feature, next(texts), scale, most))
        elif feature.family.shape == "products":
            found.append(_of_normals(feature, next(products), scale))
        else:
            keys, rows = tally.counts.feature(next(keyed))
            found.append(_of_values(feature, keys, rows.value, scale))
    return _at_least_by_column(tally.schema, found)


def _at_least_by_column(schema: Schema, singles: Sequence[Single]) -> list[Single]:
    """A block of bins tells no less than its best column, of which finer groups show more; p is that of the best of all."""
    by_name = {single.feature: single for single in singles}

    def raised(single: Single) -> Single:
        feature = schema[single.feature]
        if not (is_joined(feature) and feature.family.shape == "bins"):
            return single
        every = [single, *(by_name[column] for column in feature.columns)]
        p = min(min(each.p for each in every) * len(every), 1.0)
        return single._replace(bits=max(each.bits for each in every), p=p)

    return [raised(single) for single in singles]


def _of_normals(feature: Feature, sums: Products, scale: float) -> Single:
    """Of a Gaussian block."""
    assert isinstance(feature.family, Gaussian)
    told = told_by_normals(sums, feature.family.covariance == "tied", scale)
    if told is None:
        n, classes = sums.n.value, int(np.count_nonzero(sums.n.value))
        why = _untested(float(n.sum()) * scale, len(n), classes, "too few rows, or one value only")
        return Single(feature.name, 0.0, 1.0, False, why, {})
    return Single(feature.name, max(told.bits - told.chance, 0.0), told.p, False, "", {})


def _of_values(feature: Feature, keys: Keys, cells: Real, scale: float) -> Single:
    """``cells``: rows per value and class."""
    n = float(cells.sum()) * scale
    groups = overall_groups(feature, keys, cells, int(n / (2 * ROWS_PER_CELL * cells.shape[1])))
    table = _without_rare_classes(grouped(cells, groups), scale)
    bits, margins = bits_of(table), [table.sum(axis=axis) for axis in (1, 0)]
    values, classes = (int(np.count_nonzero(margin)) for margin in margins)
    freedom = max(values - 1, 0) * max(classes - 1, 0)
    rare = [float(inverse_shares(margin, table.sum()).sum()) for margin in margins]
    p = float(p_values(bits, freedom, excess(rare[0], rare[1], max(n, 1e-300)), n))
    why = _untested(n, cells.shape[1], classes, "one value only" if values < 2 else "")
    return Single(
        feature.name, max(bits - float(expected(freedom, n)), 0.0), p, values > 1 and not feature.columns, why, {}
    )


def _without_rare_classes(table: Real, scale: float) -> Real:
    """Where classes are many, those with too few rows for a test taken as one."""
    rare = table.sum(axis=0) * scale < FEWEST_ROWS
    if table.shape[1] <= FEW_CLASSES or not rare.any():
        return table
    return np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])


def _of_text(feature: Feature, words: Words, scale: float, most: int) -> Single:
    """Of the word that tells most; p is that of the best of so many words."""
    texts, n_words = words.texts.value, kept_words(feature, words).n_words
    n, freedom = float(texts.sum()) * scale, max(int(np.count_nonzero(texts)) - 1, 0) if n_words else 0
    chance, best = float(expected(freedom, n)), words_of(feature, words, most)
    p = min(float(p_values(max(best.values(), default=0.0), freedom, 0.0, n)) * max(n_words, 1), 1.0)
    beyond = {word: max(bits - chance, 0.0) for word, bits in best.items()}
    why = _untested(n, len(texts), int(np.count_nonzero(texts)), "" if n_words else "no words")
    return Single(feature.name, max(beyond.values(), default=0.0), p, False, why, beyond)


def _untested(n: float, n_classes: int, with_values: int, otherwise: str) -> str:
    """Why there is nothing to test."""
    if not n > 0:
        return "no value"
    if n_classes < 2:
        return "there is one class only"
    return "values in one class only" if with_values < 2 else otherwise
