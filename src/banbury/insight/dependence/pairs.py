"""Pairs of columns and of words: counted in a pass over the rows, and measured given the class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.families.bags.vocabulary import Vocabulary
from banbury.families.bags.words import most_telling, word_family
from banbury.families.column_tree import CountedPairs, pairs_of
from banbury.families.family import Feature
from banbury.families.information import (
    FEWEST_ROWS,
    LEVEL,
    NOTHING,
    SAME,
    MeasuredPairs,
    PairInformation,
    measure_column,
)
from banbury.families.keys import places_of
from banbury.insight.dependence.results import Pair
from banbury.insight.dependence.testing import MOST_VALUES, groups_given_class
from banbury.progress import watch
from banbury.reading import Batch, Codes, Source
from banbury.sums import Keys
from banbury.tally.schema import Schema
from banbury.tally.table import Labels, align_names
from banbury.tally.tally import Tally, count_rows

MOST_COLUMNS = 200  # whose pairs are counted: the most telling ones
MOST_CELLS = 1 << 25  # of all tables of pairs: a quarter of a gigabyte
MOST_WORDS = 200  # whose pairs are counted: the most telling ones
CHUNK = 1 << 17  # rows that are looked at together


class CodedRows(NamedTuple):
    """The class of each row of the table, −1 for none, and its weight. With soft labels there is one for each class."""

    classes: NDArray[np.int32]
    weights: Real | None

    @property
    def whole(self) -> bool:
        return self.weights is None or bool(np.all(self.weights == np.rint(self.weights)))


class WordColumn(NamedTuple):
    """A text column or a matrix of occurrences, and the words of it that are counted."""

    feature: Feature
    sums: Any
    words: Vocabulary


class Word(NamedTuple):
    """A word of a text column, or a column of a matrix of occurrences."""

    column: int
    number: int  # its id in that column's table
    name: str


def word_columns(tally: Tally) -> list[WordColumn]:
    columns = ((feature, sums) for _, features, sums in tally.groups for feature in features if feature.counter.words)
    return [WordColumn(feature, sums, word_family(feature).words_in_use(feature, sums)) for feature, sums in columns]


def words_to_compare(texts: Sequence[WordColumn], n_classes: int) -> list[Word]:
    most = int(min(MOST_WORDS, (MOST_CELLS / n_classes) ** 0.5))
    telling = []
    for at, (feature, sums, vocabulary) in enumerate(texts):
        for candidate in most_telling(feature, vocabulary, most):
            name = candidate.name if feature.columns else f"{feature.name}:{candidate.name!r}"
            if candidate.number < sums.table.n_ids:  # some row has it
                telling.append((candidate.bits, Word(at, candidate.number, name)))
    telling.sort(key=lambda ranked: -ranked[0])
    return [word for _, word in telling[:most]]


@dataclass(frozen=True)
class Grouped:
    """A column whose values are merged into groups; ``groups`` has the group of each key in each class."""

    feature: Feature
    keys: Keys
    groups: NDArray[np.uint8]  # (keys, classes)
    size: int
    threads: int

    @property
    def name(self) -> str:
        return self.feature.name

    def code_rows(self, batch: Batch, classes: NDArray[np.int32]) -> Codes:
        """Returns the group of each row, or −1 if it has no value or no class."""
        place = places_of(self.feature.family.keys_of(batch, self.feature, self.threads), self.keys)
        has_group = (place >= 0) & (classes >= 0)
        codes = np.full(len(classes), -1, dtype=np.int32)
        codes[has_group] = self.groups[place[has_group], classes[has_group]]
        return Codes(codes, 0, tuple(range(self.size)), categorical=True)


def columns_to_pair(tally: Tally, ranked: Sequence[str], scale: float, threads: int) -> list[Grouped]:
    """Returns the highest-ranked columns, in the order of the table, with few enough groups for the tables of all
    pairs.
    """
    room = (2.0 * MOST_CELLS / len(tally.classes)) ** 0.5  # groups of all columns
    chosen = set(ranked[: int(np.clip(room // 2, 2, MOST_COLUMNS))])
    most = int(np.clip(room // max(len(chosen), 1), 2, MOST_VALUES))
    columns = []
    family: Any
    sums: Any
    for family, features, sums in tally.groups:
        for f, feature in enumerate(features):
            if feature.name in chosen:
                keys, rows = sums.feature(f)
                groups = groups_given_class(family, rows.value, scale, most)
                size = int(groups.max(initial=0)) + 1
                columns.append(Grouped(feature, keys, groups.astype(np.uint8), size, threads))
    return sorted(columns, key=lambda column: tally.schema.index[column.name])


@dataclass(frozen=True)
class FeaturePairs:
    """Counts of every pair of columns, and of words that occur together."""

    total: float  # the weight of all rows
    columns: Sequence[Grouped]
    counts: CountedPairs | None  # of the columns, by group; None where there are not two
    together: Real  # (classes, words and columns of text, the same)

    def of_columns(self, block: Mapping[str, str], scale: float) -> MeasuredPairs:
        """Returns the pairs of columns that are not in the same block."""
        first = np.arange(0)
        second = np.arange(0)
        measures = PairInformation(*NOTHING)
        if self.counts is not None:
            first, second, measures = self.counts.information(self.total, FEWEST_ROWS / (self.total * scale))
        names = [column.name for column in self.columns]
        of = [block.get(name, name) for name in names]
        apart = np.array([of[a] != of[b] for a, b in zip(first, second, strict=True)], dtype=np.bool_)
        first = first[apart]
        second = second[apart]
        kept = PairInformation(*(measure[apart] for measure in measures))
        return kept.beyond_chance(lambda k: (names[first[k]], names[second[k]]), self.total, scale)

    def of_words(self, words: Sequence[Word], scale: float) -> MeasuredPairs:
        first, second = np.triu_indices(len(words), 1)
        text = np.array([len(words) + word.column for word in words], dtype=np.int64)
        counts = self.together / self.total
        both = counts[:, first, second]
        rows_with_both = counts[:, text[first], text[second]]
        a = counts[:, first, text[second]]
        b = counts[:, text[first], second]
        cells = np.stack(
            [both, a - both, b - both, rows_with_both - a - b + both]
        )  # with both words, with one, without
        cells = np.where((rows_with_both > 0) & (cells > SAME * rows_with_both), cells, 0.0)  # the rest is rounding
        turned = cells.reshape(2, 2, len(counts), len(first)).transpose(3, 0, 2, 1)
        table = turned.reshape(2 * len(first), len(counts), 2)
        measures = measure_column(table, np.arange(0, len(table), 2), FEWEST_ROWS / (self.total * scale))
        return measures.beyond_chance(lambda k: (words[first[k]].name, words[second[k]].name), self.total, scale)


def worst_pairs(pairs: MeasuredPairs, n_pairs: int, most: int) -> list[Pair]:
    """Returns the most dependent of ``n_pairs`` pairs, those beyond chance."""
    beyond = pairs.beyond(LEVEL, n_pairs)
    worst = beyond[np.argsort(-pairs.bits[beyond], kind="stable")][:most]
    figures = zip(*(measure[worst].tolist() for measure in pairs[1:]), strict=True)
    return [Pair(*pairs.names(k), *figure) for k, figure in zip(worst.tolist(), figures, strict=True)]


def count_pairs(
    source: Source,
    labels: Labels,
    tally: Tally,
    assigned: Sequence[CodedRows],
    columns: Sequence[Grouped],
    texts: Sequence[WordColumn],
    words: Sequence[Word],
) -> FeaturePairs:
    n_classes = len(tally.classes)
    n_marks = len(words) + len(texts)
    total = float(tally.rows.value.sum())
    together = np.zeros((n_classes if words else 0, n_marks, n_marks))
    if len(columns) < 2 and len(words) < 2:
        return FeaturePairs(total, columns, None, together)
    seen = 0
    schema = Schema((pairs_of([column.name for column in columns]),))
    every_class = tuple(range(n_classes))
    pairs = list[Tally]()
    for batch in watch(source, "comparing", source.name):
        if batch.n_rows:
            batch = align_names(batch, tally.schema, labels.roles())
        for start in range(0, batch.n_rows, CHUNK):
            rows = batch if batch.n_rows <= CHUNK else batch.slice(start, start + CHUNK)
            at = slice(seen + start, seen + start + rows.n_rows)
            for every in assigned:
                weights = None if every.weights is None else every.weights[at]
                part = CodedRows(every.classes[at], weights)
                if len(part.classes) < rows.n_rows:
                    raise _change_error(source)
                if len(columns) > 1:
                    groups = rows.with_columns(
                        {column.name: column.code_rows(rows, part.classes) for column in columns}
                    )
                    codes = Codes(part.classes, 0, every_class)
                    pairs[:] = [sum(pairs, count_rows(groups, schema, codes, weights, labels.threads))]
                if words:
                    _add_words(together, words, texts, rows, part, labels.threads)
        seen += batch.n_rows
    if seen != len(assigned[0].classes):
        raise _change_error(source)
    counted = [tally_of_pairs.with_classes(every_class).sums[0] for tally_of_pairs in pairs]
    return FeaturePairs(total, columns, CountedPairs.of(schema.features[0], counted[0]) if counted else None, together)


def _change_error(source: Source) -> errors.BanburyError:
    text = f"the rows{errors.where(source.name)} had changed when they were read a second time. Read them into memory "
    return errors.BanburyError(f"{text}first, or diagnose a copy that no one writes to.")


def _add_words(
    together: Real, words: Sequence[Word], texts: Sequence[WordColumn], batch: Batch, rows: CodedRows, threads: int
) -> None:
    """Counts the texts that have two words, or a word and another text beside it."""
    from scipy.sparse import csr_array  # few need it

    marks: list[tuple[Int, Int]] = []
    for at, (feature, sums, _) in enumerate(texts):
        present, row, ids = word_family(feature).words_in_rows(batch, feature, sums, threads)
        marks.append((present, np.full(len(present), len(words) + at)))
        mark_of = np.full(sums.table.n_ids + len(feature.columns) + 1, -1, dtype=np.int64)
        mine = [(k, word.number) for k, word in enumerate(words) if word.column == at]
        mark_of[[number for _, number in mine]] = [k for k, _ in mine]
        mark = mark_of[ids]
        marks.append((row[mark >= 0], mark[mark >= 0]))
    row, mark = (np.concatenate(x) for x in zip(*marks, strict=True))
    matrix = csr_array((np.ones(len(row)), (row, mark)), shape=(batch.n_rows, together.shape[1]))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    for c in np.unique(rows.classes[rows.classes >= 0]).tolist():
        of_class = np.flatnonzero(rows.classes == c)
        part = matrix[of_class]
        weighed = part if rows.weights is None else part.multiply(rows.weights[of_class][:, None]).tocsr()
        together[c] += (part.T @ weighed).toarray()
