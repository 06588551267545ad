"""Pairs of columns and of words: counted in a pass over the rows, and measured given the class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.families.bags.bag_of_words import bag_of_words
from banbury.families.bags.words import most_informative
from banbury.families.column_tree import CountedPairs, pairs_of
from banbury.families.family import Feature, Features
from banbury.families.information import (
    FEWEST_ROWS,
    LEVEL,
    NO_PAIRS,
    SAME,
    MeasuredPairs,
    PairInformation,
    measure_column,
)
from banbury.families.keys import key_positions
from banbury.insight.dependence.results import Pair
from banbury.insight.dependence.testing import MOST_VALUES, group_values_in_classes
from banbury.progress import watch
from banbury.reading import Batch, Codes, Source
from banbury.sums import Keys, Words
from banbury.tally.schema import Schema
from banbury.tally.table import Labels, align_names
from banbury.tally.tally import Tally, add_tally, count_rows

MOST_COLUMNS = 200  # columns whose pairs are counted: the most informative ones
MOST_CELLS = 1 << 25  # cells of all tables of pairs: a quarter of a gigabyte
MOST_WORDS = 200  # words whose pairs are counted: the most informative ones
ROWS_TOGETHER = 1 << 17  # rows that are counted at a time
WordColumn = tuple[Feature, Words]  # a text column or a matrix of occurrences, and its words


class CodedRows(NamedTuple):
    """The class number of each row, −1 for none, and its weight. With soft labels there is one ``CodedRows`` for each
    class.
    """

    classes: NDArray[np.int32]
    weights: Real | None  # None: all are 1

    @property
    def whole(self) -> bool:
        """Whether all weights are whole numbers."""
        return self.weights is None or bool(np.all(self.weights == np.rint(self.weights)))

    def between(self, start: int, stop: int) -> CodedRows:
        """Returns the rows from ``start`` up to ``stop``, exclusive."""
        return CodedRows(self.classes[start:stop], None if self.weights is None else self.weights[start:stop])


class Word(NamedTuple):
    """A word of a text column, or a column of a matrix of occurrences."""

    column: int  # its number among the text columns
    number: int  # its id in that column's table
    name: str


def word_columns(tally: Tally) -> list[WordColumn]:
    """Returns the text columns and matrices of occurrences of a tally, each with its counted words."""
    return [(features[0], sums) for _, features, sums in tally.groups if isinstance(sums, Words)]


def words_to_compare(text_columns: Sequence[WordColumn], n_classes: int) -> list[Word]:
    """Returns the most informative words of all text columns together, best first, few enough that tables of all their
    pairs in ``n_classes`` classes fit into memory. ``text_columns`` are features, each with its counted words.
    """
    max_words = int(min(MOST_WORDS, (MOST_CELLS / n_classes) ** 0.5))
    scored_words = []  # the bits of each, and the word
    for column_number, (feature, sums) in enumerate(text_columns):
        words_in_use = bag_of_words(feature).words_in_use(feature, sums)
        for candidate in most_informative(feature, words_in_use, max_words):
            name = candidate.name if feature.columns else f"{feature.name}:{candidate.name!r}"
            if candidate.number < sums.table.n_ids:  # some row has it
                scored_words.append((candidate.bits, Word(column_number, candidate.number, name)))
    scored_words.sort(key=lambda scored_word: -scored_word[0])
    return [word for _, word in scored_words[:max_words]]


@dataclass(frozen=True)
class Grouped:
    """A column whose values are merged into groups, in each class in its own way.

    ``keys`` are the values of the column (or its bins), and ``group_of_key`` has the group of each key in each class (keys ×
    classes): numbers are cut at other points in each class, so that its rows are spread evenly.
    """

    feature: Feature
    keys: Keys
    group_of_key: NDArray[np.uint8]
    n_groups: int  # in the class that has most
    threads: int

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.feature.name

    def code_rows(self, batch: Batch, classes: NDArray[np.int32]) -> Codes:
        """Returns the group of the value that each row of a batch has in this column, −1 if the row has no value or no
        class. ``classes`` has the class number of each row, and ``group_of_key`` the group of each of the column's
        values (``keys``) in each class.
        """
        # Of each row: the position of its value in ``keys``, −1 for none.
        key_numbers = key_positions(self.feature.family.keys_of(batch, self.feature, self.threads), self.keys)
        has_group = (key_numbers >= 0) & (classes >= 0)
        codes = np.full(len(classes), -1, dtype=np.int32)
        codes[has_group] = self.group_of_key[key_numbers[has_group], classes[has_group]]
        return Codes(codes, low=0, values=tuple(range(self.n_groups)), categorical=True)


def columns_to_pair(tally: Tally, ranked_names: Sequence[str], scale: float, threads: int) -> list[Grouped]:
    """Returns the highest-ranked columns of a tally with their values in groups, few enough that the tables of all
    pairs fit into memory. ``ranked_names`` has column names, best first; a weight of 1 is worth ``scale`` rows.
    ``threads`` will code the rows. The columns returned are in the order of the table.
    """
    max_groups_of_all = (2.0 * MOST_CELLS / len(tally.classes)) ** 0.5  # of all columns together
    selected_names = set(ranked_names[: int(np.clip(max_groups_of_all // 2, 2, MOST_COLUMNS))])
    max_groups = int(np.clip(max_groups_of_all // max(len(selected_names), 1), 2, MOST_VALUES))
    columns = []
    family: Any
    sums: Any
    for family, features, sums in tally.groups:
        for feature_number, feature in enumerate(features):
            if feature.name in selected_names:
                keys, cells = sums.feature(feature_number)  # the values, and their weights (keys × classes)
                groups = group_values_in_classes(family, cells.value, scale, max_groups)  # keys × classes
                n_groups = int(groups.max(initial=0)) + 1
                columns.append(Grouped(feature, keys, groups.astype(np.uint8), n_groups, threads))
    return sorted(columns, key=lambda column: tally.schema.index[column.name])


@dataclass(frozen=True)
class FeaturePairs:
    """Counts of every pair of columns, and of words that occur together."""

    total: float  # the weight of all rows
    columns: Sequence[Grouped]  # those whose pairs were counted
    counts: CountedPairs | None  # of the columns, by group; None where there are not two
    together: Real  # rows that have both of two marks (classes, marks, marks); marks: see ``_add_words``

    def measure_columns(self, block_of: Mapping[str, str], scale: float) -> MeasuredPairs:
        """Returns the dependence of all pairs of columns that are not in the same block, given the class. ``block_of``
        has the block of each column that is in one; a weight of 1 is worth ``scale`` rows. ``counts`` has the tables of
        all pairs, and ``total`` is the weight of all rows.
        """
        first_columns = np.arange(0)  # the numbers of the columns of each pair
        second_columns = np.arange(0)
        measures = PairInformation(*NO_PAIRS)  # arrays with an entry for each pair
        if self.counts is not None:
            first_columns, second_columns, measures = self.counts.information(
                self.total, FEWEST_ROWS / (self.total * scale)
            )
        names = [column.name for column in self.columns]
        blocks_of_columns = [block_of.get(name, name) for name in names]
        in_different_blocks = np.array(
            [
                blocks_of_columns[first] != blocks_of_columns[second]
                for first, second in zip(first_columns, second_columns, strict=True)
            ],
            dtype=np.bool_,
        )
        first_columns = first_columns[in_different_blocks]
        second_columns = second_columns[in_different_blocks]
        measures_between_blocks = PairInformation(*(measure[in_different_blocks] for measure in measures))
        return measures_between_blocks.beyond_chance(
            lambda pair: (names[first_columns[pair]], names[second_columns[pair]]), self.total, scale
        )

    def measure_words(self, words: Sequence[Word], scale: float) -> MeasuredPairs:
        """Returns the dependence of all pairs of ``words``, which are those that were counted, given the class, over
        the rows that have both of their texts. A weight of 1 is worth ``scale`` rows, and ``total`` is the weight of
        all. ``together`` (classes × marks × marks) has the weight of the rows that have both of two marks: first the
        words, then the texts, by column.
        """
        first_words, second_words = np.triu_indices(len(words), 1)  # the numbers of the words of each pair
        # Of each word: the mark of the rows that have its text.
        text_mark_of_word = np.array([len(words) + word.column for word in words], dtype=np.int64)
        frequencies = self.together / self.total  # classes × marks × marks
        # The share of rows with both words, with both texts, and with one word and both texts: classes × pairs each.
        with_both = frequencies[:, first_words, second_words]
        with_both_texts = frequencies[:, text_mark_of_word[first_words], text_mark_of_word[second_words]]
        with_first = frequencies[:, first_words, text_mark_of_word[second_words]]
        with_second = frequencies[:, text_mark_of_word[first_words], second_words]
        without_both = with_both_texts - with_first - with_second + with_both
        # The four cells of every pair's table: with both words, with one, with the other, with neither (4, classes, pairs).
        cells = np.stack([with_both, with_first - with_both, with_second - with_both, without_both])
        # Smaller ones are rounding.
        cells = np.where((with_both_texts > 0) & (cells > SAME * with_both_texts), cells, 0.0)
        # Pairs × first word or not × classes × second word or not; and then pairs and first words on one axis.
        cells_by_pair = cells.reshape(2, 2, len(frequencies), len(first_words)).transpose(3, 0, 2, 1)
        tables_of_pairs = cells_by_pair.reshape(2 * len(first_words), len(frequencies), 2)
        measures = measure_column(  # two rows of ``tables_of_pairs`` for each pair
            tables_of_pairs, np.arange(0, len(tables_of_pairs), 2), FEWEST_ROWS / (self.total * scale)
        )
        return measures.beyond_chance(
            lambda pair: (words[first_words[pair]].name, words[second_words[pair]].name), self.total, scale
        )


def worst_pairs(pairs: MeasuredPairs, n_pairs: int, limit: int) -> list[Pair]:
    """Returns at most ``limit`` of the ``pairs`` whose dependence is beyond chance, the most dependent first, if
    ``n_pairs`` were tested in all.
    """
    significant_pairs = pairs.beyond(LEVEL, n_pairs)
    # The numbers of the pairs to return.
    worst_numbers = significant_pairs[np.argsort(-pairs.bits[significant_pairs], kind="stable")][:limit]
    _, *measures = pairs  # the names, then arrays with one entry per pair
    measures_of_pairs = zip(*(measure[worst_numbers].tolist() for measure in measures), strict=True)
    return [
        Pair(*pairs.names(pair_number), *measures_of_pair)
        for pair_number, measures_of_pair in zip(worst_numbers.tolist(), measures_of_pairs, strict=True)
    ]


def count_pairs(
    source: Source,
    labels: Labels,
    tally: Tally,
    coded_rows: Sequence[CodedRows],
    columns: Sequence[Grouped],
    text_columns: Sequence[WordColumn],
    words: Sequence[Word],
) -> FeaturePairs:
    """Reads the rows again and returns the counts of every pair of columns and of words. Raises an error if there are
    more or fewer rows than the first time.

    Args:
        source: The rows.
        labels: Which of their columns are the target, weights and groups.
        tally: The tally that the first pass counted.
        coded_rows: The class and weight of each row, as the first pass found them; with soft labels, once for each class.
        columns: The columns whose pairs are counted.
        text_columns: The text columns.
        words: The words whose pairs are counted.
    """
    n_classes = len(tally.classes)
    n_marks = len(words) + len(text_columns)  # see ``_add_words``
    total = float(tally.rows.value.sum())  # the weight of all rows
    # Rows that have both of two marks.
    together = np.zeros((n_classes if words else 0, n_marks, n_marks))
    if len(columns) < 2 and len(words) < 2:
        return FeaturePairs(total, columns, counts=None, together=together)
    n_read = 0  # rows in the batches before
    # One feature, which is all pairs of these columns.
    schema = Schema(Features.of([pairs_of([column.name for column in columns])]))
    class_numbers = tuple(range(n_classes))  # the classes of the tally of pairs
    pair_tally: Tally | None = None
    for batch in watch(source, "comparing", source.name):
        if batch.n_rows:
            batch = align_names(batch, tally.schema, labels.roles())
        for start in range(0, batch.n_rows, ROWS_TOGETHER):
            chunk = batch.slice(start, start + ROWS_TOGETHER)
            for rows_of_labelling in coded_rows:  # one, or with soft labels one for each class
                chunk_rows = rows_of_labelling.between(n_read + start, n_read + start + chunk.n_rows)
                if len(chunk_rows.classes) < chunk.n_rows:
                    raise _change_error(source)
                if len(columns) > 1:
                    # The group of each row's value, by column.
                    groups = {column.name: column.code_rows(chunk, chunk_rows.classes) for column in columns}
                    codes = Codes(chunk_rows.classes, low=0, values=class_numbers)
                    chunk_tally = count_rows(
                        chunk.with_columns(groups), schema, codes, chunk_rows.weights, labels.threads
                    )
                    pair_tally = add_tally(pair_tally, chunk_tally)
                if words:
                    _add_words(together, words, text_columns, chunk, chunk_rows, labels.threads)
        n_read += batch.n_rows
    if n_read != len(coded_rows[0].classes):
        raise _change_error(source)
    if pair_tally is None:
        return FeaturePairs(total, columns, counts=None, together=together)
    # What was counted of this feature.
    pair_sums = pair_tally._with_classes(class_numbers).sums[0]
    return FeaturePairs(total, columns, CountedPairs.of(schema.features[0], pair_sums), together)


def _change_error(source: Source) -> errors.BanburyError:
    """Returns (does not raise) the error for a table whose rows changed between two passes."""
    text = f"the rows{errors.where(source.name)} had changed when they were read a second time. Read them into memory "
    return errors.BanburyError(f"{text}first, or diagnose a copy that no one writes to.")


def _add_words(
    together: Real,
    words: Sequence[Word],
    text_columns: Sequence[WordColumn],
    batch: Batch,
    rows: CodedRows,
    threads: int,
) -> None:
    """Adds to ``together`` (classes × marks × marks) the weight of the rows of each class that have both of every two
    marks.

    The marks are first the ``words``, then the ``text_columns``: a row has the mark of a column if it has a text there.
    ``rows`` has the class and weight of each row of the batch. ``threads`` read the texts.
    """
    from scipy.sparse import csr_array  # few need it

    # Row numbers, and a mark that each of these rows has, in arrays that belong together.
    mark_rows: list[Int] = []
    mark_numbers: list[Int] = []
    for column_number, (feature, sums) in enumerate(text_columns):
        # Row numbers; and of each word that occurs in a row, the number of the row and the word's id.
        rows_with_text, row_of_word, word_ids = bag_of_words(feature).words_in_rows(batch, feature, sums, threads)
        mark_rows.append(rows_with_text)
        mark_numbers.append(np.full(len(rows_with_text), len(words) + column_number))
        marks_and_ids = [(mark, word.number) for mark, word in enumerate(words) if word.column == column_number]
        largest_id = max([int(word_ids.max(initial=-1)), *(word_id for _, word_id in marks_and_ids)])
        mark_of_id = np.full(largest_id + 1, -1, dtype=np.int64)  # −1: a word without a mark
        for mark, word_id in marks_and_ids:
            mark_of_id[word_id] = mark
        marks = mark_of_id[word_ids]  # of each word that occurs in a row
        mark_rows.append(row_of_word[marks >= 0])
        mark_numbers.append(marks[marks >= 0])
    row_of_mark = np.concatenate(mark_rows)
    rows_and_marks = (row_of_mark, np.concatenate(mark_numbers))
    # 1 where a row has a mark (rows × marks).
    has_mark = csr_array((np.ones(len(row_of_mark)), rows_and_marks), shape=(batch.n_rows, together.shape[1]))
    has_mark.sum_duplicates()
    has_mark.data[:] = 1.0
    for class_number in np.unique(rows.classes[rows.classes >= 0]).tolist():
        class_rows = np.flatnonzero(rows.classes == class_number)
        class_matrix = has_mark[class_rows]  # rows of the class × marks
        weighted_matrix = class_matrix
        if rows.weights is not None:
            weighted_matrix = class_matrix.multiply(rows.weights[class_rows][:, None]).tocsr()
        together[class_number] += (class_matrix.T @ weighted_matrix).toarray()
