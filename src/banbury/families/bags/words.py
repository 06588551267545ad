"""Words counted in a table: columns of text, and matrices that say how often each word occurs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int
from banbury.families.bags.vocabulary import Pruning, Vocabulary, every_word, mutual_information, of_one_class
from banbury.families.family import (
    Counter,
    Feature,
    Features,
    Reads,
    RowsToCount,
    Stored,
    bad_value,
)
from banbury.families.information import BIT
from banbury.sums import Words, as_index
from banbury.threads import n_threads

Ids = NDArray[np.uint32]
# Texts or matrix, classes, weights, threads, further classes.
KernelArguments = tuple[Any, NDArray[np.int32], Any, int, Any]


@dataclass(frozen=True)
class RowsOfWords:
    """Rows whose words are not counted yet. The kernel counts them straight into the table that they are added to.

    Args:
        feature: The column of texts, or the matrix of counts.
        rows: The rows with their weights.
        classes: The class number of each row, −1 if the row is not counted.
        several: Further classes of each row, as offsets and class numbers; None if no row has any.
        n_classes: The number of classes.
    """

    feature: Feature
    rows: RowsToCount
    classes: NDArray[np.int32]
    several: tuple[Int, NDArray[np.int32]] | None
    n_classes: int

    def renumber(self, new_class: Int, n_classes: int) -> RowsOfWords:
        """Returns the rows with class c renumbered to ``new_class[c]`` of ``n_classes``; −1 if its rows are not
        counted.
        """
        new_numbers = np.append(new_class, -1).astype(np.int32)  # the last is for rows of class −1
        several = None
        if self.several is not None:
            offsets, further_classes = self.several  # those of row i are offsets[i] to offsets[i + 1]
            several = (offsets, np.maximum(new_numbers[further_classes], 0))
        return replace(self, classes=new_numbers[self.classes], several=several, n_classes=n_classes)

    def change(self, kernel: Callable[..., _core.Words]) -> _core.Words:
        """Runs a kernel, the method ``count`` or ``forget`` of a table, on these rows and returns the new table."""
        family: Any = self.feature.family
        batch = self.rows.batch
        try:
            return kernel(family.tokeniser, *self._arguments)
        except _core.BadValue as bad:
            raise bad_value(bad, self.feature.inputs, batch) from None
        except OverflowError:
            family.check_rows(batch, self.feature, counting=True)
            raise errors.too_many_rows() from None

    @property
    def _arguments(self) -> KernelArguments:
        """The arguments of the kernels: texts or a matrix, the class of each row, weights, threads, and further classes
        of rows.

        Rows of a matrix are repeated for each of their classes. Texts are not, because the kernel still has to read
        them.
        """
        family: Any = self.feature.family
        rows = self.rows
        kernel_input = family.kernel_input(rows.batch, self.feature)  # texts, or a matrix of counts
        if self.several is None or not isinstance(kernel_input, _core.Matrix):
            return kernel_input, self.classes, rows.weights, rows.threads, self.several
        offsets, further_classes = self.several  # those of row i are offsets[i] to offsets[i + 1]
        n_rows = len(self.classes)
        # Every row, and once more for each of its further classes.
        row_numbers = np.concatenate([np.arange(n_rows), np.repeat(np.arange(n_rows), np.diff(offsets))])
        weights = None if rows.weights is None else rows.weights[row_numbers]
        kernel_input = family.kernel_input(rows.batch.take(row_numbers), self.feature)
        return kernel_input, np.concatenate([self.classes, further_classes]), weights, rows.threads, None


class UnreadWords(Words):
    """Words of rows whose texts are read when somebody asks. Adding them to other words counts them there directly."""

    def __init__(self, rows: RowsOfWords) -> None:
        """Takes rows whose texts are not read yet."""
        self._rows = rows

    @cached_property
    def table(self) -> _core.Words:
        """The table of these rows' words, counted into an empty one when somebody asks for it."""
        family: Any = self._rows.feature.family
        return self._rows.change(family.empty_table(self._rows.feature, self._rows.n_classes).count)

    def read_texts(self) -> Words:
        """Returns the words as a table that no longer needs the texts."""
        return Words(self.table)

    def add_to(self, table: _core.Words) -> _core.Words:
        """Returns the table with these words added; the texts of ``_rows`` are read straight into it unless they were
        read before (then the words are cached as ``self.table``).
        """
        return super().add_to(table) if "table" in self.__dict__ else self._rows.change(table.count)

    def take_from(self, table: _core.Words) -> _core.Words:
        """Returns the table without these words; the texts are read for it."""
        return self._rows.change(table.forget)

    def take(self, classes: Any) -> Words:
        """Returns the words of the classes with these numbers, in this order, still unread unless a class is asked for
        twice.
        """
        class_numbers = as_index(classes)  # ``_rows`` are the rows whose texts are not read yet
        if len(np.unique(class_numbers)) < len(class_numbers):
            return super().take(class_numbers)
        index = np.full(self._rows.n_classes, -1, dtype=np.int64)  # the new number of each class; −1: left out
        index[class_numbers] = np.arange(len(class_numbers))
        return UnreadWords(self._rows.renumber(index, len(class_numbers)))

    def merge(self, index: Any, size: int) -> Words:
        """Returns the words with those of class c moved to class ``index[c]`` of ``size`` classes, still unread."""
        return UnreadWords(self._rows.renumber(as_index(index), size))


def add_texts(
    feature: Feature, words: Words, texts: list[str], classes: NDArray[np.int32], threads: int
) -> Words | None:
    """Returns the words of a feature with those of a list of texts, which have these class numbers, added; None if the
    kernel alone cannot count them.
    """
    family: Any = feature.family
    if not feature.reads_text or family.split is not None:
        return None
    try:
        return Words(words.table.count(family.tokeniser, texts, classes, None, threads))
    except (TypeError, ValueError, OverflowError):
        return None


def check_parts_of_words(feature: Feature, table: _core.Words, ids: Ids | None, every: int, classes: Any) -> None:
    """Raises if class number ``every``, which has all rows, has one of the words (their ``ids`` in ``table``; None: any
    word) less often than another class. ``classes`` are the labels, and ``feature`` is named in the message.
    """
    # The pairs of word i and its classes are starts[i] to starts[i + 1] of the other arrays.
    starts, class_of_pair, occurrences, documents = table.pairs(ids)
    word_of_pair = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    is_total = class_of_pair == every  # of each pair
    for counts in (occurrences, documents):
        totals = np.zeros(len(starts) - 1)  # of each word
        totals[word_of_pair[is_total]] = counts[is_total]
        for first_wrong in np.flatnonzero(counts > totals[word_of_pair])[:1].tolist():
            raise errors.impossible_sums(classes[int(class_of_pair[first_wrong])], feature.name)


class WordCounter(Counter):
    """Occurrences and documents of each word and class; each feature has a table of its own."""

    apart = True
    words = True

    def reads(self, feature: Feature) -> Reads | None:
        """Returns what a column of a text file is read as: texts, or the numbers of a matrix."""
        return "number" if feature.columns else "text"

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Returns no condition, because word counts have no scale."""
        return ()

    def describe_scale(self, feature: Feature) -> str:
        """Returns an empty phrase, because word counts have no scale."""
        return ""

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Any]:
        """Returns the features as they are (there is one), and the words of the rows, which are read when somebody asks
        for them or adds them to others.
        """
        (feature,) = features
        return features, UnreadWords(RowsOfWords(feature, rows, rows.classes, rows.several, len(rows.labels)))

    def summary(self, feature: Feature, sums: Words, missing: str) -> str:
        """Describes in a few words what was counted of one feature (``sums``): how many words, and the most frequent
        ones. ``missing`` is a phrase to append about rows without a text.
        """
        family: Any = feature.family
        # The column and the word, which is None if it is the column itself.
        columns_and_words = (family.word(feature, name) for name in sums.most_frequent(5))
        names = [repr(column if word is None else word) for column, word in columns_and_words]
        # In words.
        most_frequent = ", ".join(names) + (", …" if sums.table.n_words > 5 else "")
        n_occurrences = float(sums.occurrences.value.sum())
        has_fractions = sums.occurrences.digits > 0
        digits = 6 if has_fractions else 15  # shown
        n_words = errors.many(sums.table.n_words, "column" if feature.columns else "word")
        return f"{n_words}, {n_occurrences:,.{digits}g} occurrences{missing}: {most_frequent}"

    def restore(self, features: Features, stored: Stored, n_classes: int) -> Words:
        """Returns the words of the only feature, in ``n_classes`` classes, that a file holds (``stored``); raises if
        their table is not valid.
        """
        (feature,) = features
        family: Any = feature.family
        n_columns = family.empty_table(feature, n_classes).n_columns
        table = _core.Words.from_state(n_classes, n_columns, stored.arrays, n_threads(None))
        if feature.columns and table.n_ids > len(feature.columns):
            raise ValueError(f"{feature.name!r} has occurrences of more columns than it has")
        return Words(table)


WORDS = WordCounter()


def subtract(features: Features, a: Any, b: Any, classes: Sequence[Any]) -> Any:
    """Returns the sums ``a`` without the sums ``b``; raises an error that names the word if ``a`` does not have all of
    ``b``. ``classes`` are the labels.
    """
    try:
        return a - b
    except _core.NotThere as absent:
        word_or_none, c, count_left = absent.args  # None: there are too few rows; a class number; a count below 0
        family: Any = features[0].family
        # The column, and the word in it; None: the column itself is the word, or there is no word.
        column, word = (features.names[0], None) if word_or_none is None else family.word(features[0], word_or_none)
        value_in_words = None if word is None else f"value {word!r}"
        unit = "rows" if word_or_none is None or word is not None else "occurrences"  # of the count
        raise errors.negative_count(count_left, classes[c], column, value_in_words, unit) from None


def without_rare_words(words: Words, min_count: float, every: int | None) -> Words:
    """Returns the words without those that occur fewer than ``min_count`` times in class number ``every``, which has
    all rows; if it is None, in all classes together.
    """
    table = words.table if every is None else of_one_class(words.table, every)
    pruning = Pruning(min_count, min_share=0.0, max_share=1.0, drop_most_frequent=0, max_words=None, choose_by="count")
    frequent_words = pruning.of(every_word(table, by_name=False))
    return words if frequent_words.complete else Words(words.table.only(frequent_words.ids))


# What words tell about the class ----------------------------------------------------------------------------------------


class InformativeWord(NamedTuple):
    """A word, or a column of a matrix of counts: its id in the table (``number``), its name, and how many bits its
    presence tells about the class.
    """

    number: int
    name: str
    bits: float


def most_informative(feature: Feature, words: Vocabulary, n: int) -> list[InformativeWord]:
    """Returns the n words with the most information about the class, the most informative first; ties go by name, or by
    the order of columns. ``words`` are those of the feature, in order.
    """
    information = [mutual_information(pairs, words.texts) / BIT for pairs in words]  # an array for some words at a time
    bits = np.concatenate(information) if information else np.zeros(0)  # of each word
    best = np.argsort(-bits, kind="stable")[:n]  # places in ``words``
    ids = words.ids[best]
    names = [feature.columns[k] for k in best.tolist()] if feature.columns else words.table.words(ids)
    return [InformativeWord(*word) for word in zip(ids.tolist(), names, bits[best].tolist(), strict=True)]
