"""Words counted in a table: columns of text, and blocks of columns that say how often something occurs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags.vocabulary import Pruning, Vocabulary, every_word, mutual_information, of_one_class
from banbury.families.family import ColumnReader, Counter, Family, Feature, Reads, RowsToCount, Stored, bad_value
from banbury.families.information import BIT
from banbury.sums import Words, as_index
from banbury.threads import n_threads

Ids = NDArray[np.uint32]
KernelRows = tuple[
    Any, NDArray[np.int32], Any, int, Any
]  # texts or a matrix, classes, weights, threads, further classes


class WordFamily(Family):
    """The base of families whose sums are occurrences of words; a feature tells what its most telling word does."""

    @property
    def tokeniser(self) -> _core.Tokeniser:
        """Turns a text into words; shared by threads."""
        raise NotImplementedError

    @property
    def reading(self) -> dict[str, Any]:
        """How a row is read, for those who do it elsewhere: the settings of ``LinearWords.reading``."""
        raise NotImplementedError

    @property
    def split(self) -> re.Pattern[str] | None:
        """The regular expression that finds words, where one is given."""
        return None

    def counter(self, feature: Feature) -> Counter:
        return WORDS

    def empty_table(self, feature: Feature, n_classes: int) -> _core.Words:
        raise NotImplementedError

    def kernel_input(self, rows: ColumnReader, feature: Feature) -> Any:
        """The texts of rows, or the numbers of a block, as the kernels take them."""
        raise NotImplementedError

    def check_countable(self, rows: ColumnReader, feature: Feature) -> None:
        """Raises for what is too much to be counted, with its place."""

    def word(self, feature: Feature, name: str) -> tuple[str, str | None]:
        """In a message, the column that a word is of, and the word; None where the column is the word."""
        return feature.name, f"value {name!r}"

    def words_in_use(self, feature: Feature, sums: Words) -> Vocabulary:
        """The words that an estimate uses, which tell one by one."""
        raise NotImplementedError

    def words_in_rows(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Int]:
        """The rows that have a text, and the row and the number of every word in them."""
        raise NotImplementedError

    def bags(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Real]:
        """Where the words of each row begin, the ids of all, each once in a row, and how often it is there."""
        raise NotImplementedError

    def has_density(self) -> bool:
        return False


def runs_python(family: Family) -> bool:
    """Whether Python itself goes through every row, so that several threads are no faster, and only one hears Ctrl-C."""
    return isinstance(family, WordFamily) and family.split is not None


def word_family(feature: Feature) -> WordFamily:
    """The family of a column of texts, or of a block of occurrences."""
    assert isinstance(feature.family, WordFamily)
    return feature.family


@dataclass(frozen=True)
class RowsOfWords:
    """Rows whose words are still to be counted: the kernel does it, in the table that they belong to.

    ``classes`` are numbers among ``n_classes``, −1 where a row is not counted; ``several`` are further classes of each row.
    """

    feature: Feature
    rows: RowsToCount
    classes: NDArray[np.int32]
    several: tuple[Int, NDArray[np.int32]] | None
    n_classes: int

    def renumber(self, index: Int, n_classes: int) -> RowsOfWords:
        """Class c is class ``index[c]``, −1 if it has no rows."""
        numbers = np.append(index, -1).astype(np.int32)
        several = None if self.several is None else (self.several[0], np.maximum(numbers[self.several[1]], 0))
        return replace(self, classes=numbers[self.classes], several=several, n_classes=n_classes)

    def change(self, kernel: Callable[..., _core.Words]) -> _core.Words:
        """What a kernel makes of these rows: ``count`` or ``forget`` of a table."""
        family = word_family(self.feature)
        batch = self.rows.batch
        try:
            return kernel(family.tokeniser, *self._arguments)
        except _core.BadValue as bad:
            raise bad_value(bad, self.feature.inputs, batch) from None
        except OverflowError:
            family.check_countable(batch, self.feature)
            raise errors.too_many_rows() from None

    @property
    def _arguments(self) -> KernelRows:
        """What the kernels take: texts or a matrix, classes, weights, threads and, where rows have several classes, those.

        Rows of a matrix are repeated for each of their classes; texts are not, for they are still to be read.
        """
        family = word_family(self.feature)
        rows = self.rows
        kernel_input = family.kernel_input(rows.batch, self.feature)
        if self.several is None or not isinstance(kernel_input, _core.Matrix):
            return kernel_input, self.classes, rows.weights, rows.threads, self.several
        offsets, codes = self.several
        n = len(self.classes)
        at = np.concatenate([np.arange(n), np.repeat(np.arange(n), np.diff(offsets))])
        weights = None if rows.weights is None else rows.weights[at]
        kernel_input = family.kernel_input(rows.batch.take(at), self.feature)
        return kernel_input, np.concatenate([self.classes, codes]), weights, rows.threads, None


class UnreadWords(Words):
    """Words of rows whose texts are read when they are asked for; added to other words, they are counted among those at once."""

    def __init__(self, rows: RowsOfWords) -> None:
        self._rows = rows

    @cached_property
    def _counted(self) -> _core.Words:
        empty = word_family(self._rows.feature).empty_table(self._rows.feature, self._rows.n_classes)
        return self._rows.change(empty.count)

    @property
    def table(self) -> _core.Words:
        return self._counted

    def read_texts(self) -> Words:
        return Words(self.table)

    def add_to(self, table: _core.Words) -> _core.Words:
        return super().add_to(table) if "_counted" in self.__dict__ else self._rows.change(table.count)

    def take_from(self, table: _core.Words) -> _core.Words:
        return self._rows.change(table.forget)

    def take(self, classes: Any) -> Words:
        kept = as_index(classes)
        if len(np.unique(kept)) < len(kept):
            return super().take(kept)
        index = np.full(self._rows.n_classes, -1, dtype=np.int64)
        index[kept] = np.arange(len(kept))
        return UnreadWords(self._rows.renumber(index, len(kept)))

    def merge(self, index: Any, size: int) -> Words:
        return UnreadWords(self._rows.renumber(as_index(index), size))


def add_texts(
    feature: Feature, words: Words, texts: list[str], classes: NDArray[np.int32], threads: int
) -> Words | None:
    """With more texts as they come, of classes by their numbers; None where that takes more than the kernel."""
    if not feature.reads_text or runs_python(feature.family):
        return None
    try:
        return Words(words.table.count(word_family(feature).tokeniser, texts, classes, None, threads))
    except (TypeError, ValueError, OverflowError):
        return None


def check_parts_of_words(feature: Feature, table: _core.Words, ids: Ids | None, every: int, classes: Any) -> None:
    """Raises if class ``every`` has some word, of these or of all, less often than another class."""
    starts, pair_classes, *counts = table.pairs(ids)
    word_of_pair = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    is_total = pair_classes == every
    for numbers in counts:  # occurrences, and texts
        total = np.zeros(len(starts) - 1)
        total[word_of_pair[is_total]] = numbers[is_total]
        for first_wrong in np.flatnonzero(numbers > total[word_of_pair])[:1].tolist():
            raise errors.impossible_sums(classes[int(pair_classes[first_wrong])], feature.name)


def not_there(absent: _core.NotThere, feature: Feature, classes: Sequence[Any]) -> Exception:
    """Words that were never counted, in a user's words."""
    word, label, left = absent.args
    if word is None:
        return errors.negative_count(left, classes[label], feature.name)
    column, what = word_family(feature).word(feature, word)
    if what is None:
        return errors.negative_count(left, classes[label], column, what="occurrences")
    return errors.negative_count(left, classes[label], column, what)


class WordCounter(Counter):
    """Occurrences and documents of each word and class; each feature has a table of its own."""

    apart = True
    words = True

    def reads(self, feature: Feature) -> Reads | None:
        return "number" if feature.columns else "text"

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        return ()

    def describe_scale(self, feature: Feature) -> str:
        return ""

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Any]:
        (feature,) = features
        return features, UnreadWords(RowsOfWords(feature, rows, rows.classes, rows.several, len(rows.labels)))

    def summary(self, feature: Feature, sums: Words, missing: str) -> str:
        named_words = (word_family(feature).word(feature, name) for name in sums.most_frequent(5))
        names = [repr(column) if word is None else word.removeprefix("value ") for column, word in named_words]
        most_frequent = ", ".join(names) + (", …" if sums.table.n_words > 5 else "")
        total = float(sums.occurrences.value.sum())
        has_fractions = sums.occurrences.digits > 0
        noun = "column" if feature.columns else "word"
        digits = 6 if has_fractions else 15
        n_words = errors.many(sums.table.n_words, noun)
        return f"{n_words}, {total:,.{digits}g} occurrences{missing}: {most_frequent}"

    def restore(self, features: Sequence[Feature], stored: Stored, n_classes: int) -> Words:
        (feature,) = features
        n_columns = word_family(feature).empty_table(feature, n_classes).n_columns
        table = _core.Words.from_state(n_classes, n_columns, stored.arrays, n_threads(None))
        if feature.columns and table.n_ids > len(feature.columns):
            raise ValueError(f"{feature.name!r} has occurrences of more columns than it has")
        return Words(table)


WORDS = WordCounter()


def subtract(features: Sequence[Feature], a: Any, b: Any, classes: Sequence[Any]) -> Any:
    """a − b; words that a never had are named."""
    try:
        return a - b
    except _core.NotThere as absent:
        raise not_there(absent, features[0], classes) from None


def without_rare_words(words: Words, min_count: float, every: int | None) -> Words:
    """Without those that occur fewer times than this: in the class ``every``, where that has all rows, or in all."""
    table = words.table if every is None else of_one_class(words.table, every)
    kept = Pruning(min_count, 0.0, 1.0, 0, None, "count").of(every_word(table, by_name=False))
    return words if kept.complete else Words(words.table.only(kept.ids))


# What words tell about the class ----------------------------------------------------------------------------------------


class TellingWord(NamedTuple):
    """A word, or a column of a block of occurrences: its id in the table, its name, and what its presence tells."""

    number: int
    name: str
    bits: float


def most_telling(feature: Feature, words: Vocabulary, n: int) -> list[TellingWord]:
    """The words that tell most; equals by name, columns in their order."""
    information = [mutual_information(pairs, words.texts) / BIT for pairs in words]
    bits = np.concatenate(information) if information else np.zeros(0)
    best = np.argsort(-bits, kind="stable")[:n]
    ids = words.ids[best]
    names = [feature.columns[k] for k in best.tolist()] if feature.columns else words.table.words(ids)
    return [TellingWord(*word) for word in zip(ids.tolist(), names, bits[best].tolist(), strict=True)]
