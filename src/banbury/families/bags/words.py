"""Words counted in a table that grows in place: columns of text, and blocks of columns that say how often something occurs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families.bags.vocabulary import Pruning, Vocabulary, every_word, mutual_information, of_one_class
from banbury.families.family import ColumnReader, Counter, Family, Feature, Reads, RowsToCount, Stored, bad_value
from banbury.families.information import BIT
from banbury.sums import UNCOUNTED, Words
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

    def frozen(self, words: Words) -> Words:
        """The same words, apart from a table that goes on growing."""
        return words.frozen()

    def used_words(self, feature: Feature, sums: Words) -> Vocabulary:
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


VERSIONS = count(1)  # of tables that change in place: no two states of a table have the same one


class WordTable:
    """A table of words that changes in place, and the last change, which can be undone until it is kept.

    A change is one call of the kernel, which sets the table's version as well. So an interrupt finds the table as it was before
    the change or as it is after it, and ``at`` tells which.
    """

    def __init__(self, tokeniser: _core.Tokeniser, table: _core.Words) -> None:
        self.tokeniser = tokeniser
        self.table = table
        self._last: tuple[int, bool, KernelRows] | None = None  # the version before, add or forget, the rows

    def change(self, version: int, adds: bool, rows: KernelRows) -> tuple[Ids, int]:
        """Adds rows to the table as of a version, or takes them out: the ids of their words, and the new version.

        ``rows`` are arguments of the kernel. If it raises, nothing was changed.
        """
        table = self.at(version)
        self._last = version, adds, rows  # first: from the kernel's return on, it may be needed
        after = next(VERSIONS)
        kernel = table.count if adds else table.forget
        return kernel(self.tokeniser, *rows, version=after), after

    def at(self, version: int) -> _core.Words:
        """The table as of a version. A later change was interrupted before anybody kept it, and is undone."""
        if self.table.version != version:
            assert self._last is not None
            before, added, rows = self._last
            assert before == version
            kernel = self.table.forget if added else self.table.count
            kernel(self.tokeniser, *rows, version=version)
        return self.table

    def keep(self, version: int) -> None:
        """From now on the table as of this version stands, and rows that were needed to undo a change are let go."""
        self.at(version)
        self._last = None


class GrowingWords:
    """The words of all rows so far. Adding rows gives another one, for the price of their words.

    Only the latest one that is used is cheap: all share one table, which changes in place.
    """

    def __init__(self, feature: Feature, table: WordTable, version: int) -> None:
        self.feature = feature
        self._table = table
        self._version = version

    @classmethod
    def of(cls, feature: Feature, table: _core.Words) -> GrowingWords:
        return cls(feature, WordTable(word_family(feature).tokeniser, table), table.version)

    @classmethod
    def begin(cls, feature: Feature, n_classes: int, words: Words | None) -> GrowingWords:
        """Beginning with these words, or with none."""
        table = word_family(feature).empty_table(feature, n_classes) if words is None else words.table.copy()
        return cls.of(feature, table)

    @property
    def table(self) -> _core.Words:
        return self._table.at(self._version)

    def keep(self) -> None:
        """From now on no older one can be used."""
        self._table.keep(self._version)

    def seen(self) -> Words:
        return Words(self.table)

    def frozen(self) -> Words:
        return word_family(self.feature).frozen(self.seen())

    def _changed(self, adds: bool, rows: KernelRows) -> tuple[GrowingWords, Ids]:
        ids, version = self._table.change(self._version, adds, rows)
        return GrowingWords(self.feature, self._table, version), ids

    def count(self, rows: RowsToCount, numbers: NDArray[np.int32]) -> tuple[GrowingWords, Ids]:
        """With more rows, of classes by these numbers; the ids of their words too."""
        family = word_family(self.feature)
        try:
            return self._changed(True, _arguments(self.feature, numbers, rows))
        except _core.BadValue as bad:
            raise bad_value(bad, self.feature.inputs, rows.batch) from None
        except OverflowError:
            family.check_countable(rows.batch, self.feature)
            raise errors.too_many_rows() from None

    def count_texts(
        self, texts: list[str], numbers: NDArray[np.int32], threads: int
    ) -> tuple[GrowingWords, Ids] | None:
        """The same of texts as they come; None where that takes more than the kernel."""
        if not self.feature.reads_text or runs_python(self.feature.family):
            return None
        try:
            return self._changed(True, (texts, numbers, None, threads, None))
        except (TypeError, ValueError, OverflowError):
            return None

    def forget(self, rows: RowsToCount, numbers: NDArray[np.int32], classes: Sequence[Any]) -> tuple[GrowingWords, Ids]:
        """Without rows that were added; raises where their words were not."""
        family = word_family(self.feature)
        try:
            return self._changed(False, _arguments(self.feature, numbers, rows))
        except _core.NotThere as absent:
            raise not_there(absent, self.feature, classes) from None
        except _core.BadValue as bad:
            raise bad_value(bad, self.feature.inputs, rows.batch) from None
        except OverflowError:
            family.check_countable(rows.batch, self.feature)
            raise

    def check_parts(self, ids: Ids, every: int, classes: Sequence[Any]) -> None:
        """Raises if class ``every`` has some of these words less often than another class."""
        check_parts_of_words(self.feature, self.table, ids, every, classes)

    def placed(self, index: Int, n_classes: int) -> GrowingWords:
        """The same with room for more classes: class c is class ``index[c]`` there."""
        return GrowingWords.of(self.feature, self.table.place(index, n_classes))

    def taken(self, kept: Int) -> GrowingWords:
        return GrowingWords.of(self.feature, self.table.take(kept))


def _arguments(feature: Feature, numbers: NDArray[np.int32], rows: RowsToCount) -> KernelRows:
    """What the kernels take: texts or a matrix, classes, weights, threads and, where rows have several classes, those.

    Rows of a matrix are repeated for each of their classes; texts are not, for they are still to be read.
    """
    family = word_family(feature)
    given = family.kernel_input(rows.batch, feature)
    if rows.several is None or not (isinstance(given, tuple) and isinstance(given[0], str)):
        return given, numbers, rows.weights, rows.threads, rows.several
    offsets, codes = rows.several
    at = np.concatenate([np.arange(len(numbers)), np.repeat(np.arange(len(numbers)), np.diff(offsets))])
    weights = None if rows.weights is None else rows.weights[at]
    given = family.kernel_input(rows.batch.take(at), feature)
    return given, np.concatenate([numbers, codes]), weights, rows.threads, None


def check_parts_of_words(feature: Feature, table: _core.Words, ids: Ids | None, every: int, classes: Any) -> None:
    """Raises if class ``every`` has some word, of these or of all, less often than another class."""
    starts, own, *counts = table.pairs(ids)
    words = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    of_every = own == every
    for each in counts:  # occurrences, and texts
        total = np.zeros(len(starts) - 1)
        total[words[of_every]] = each[of_every]
        for at in np.flatnonzero(each > total[words])[:1].tolist():
            raise errors.impossible_sums(classes[int(own[at])], feature.name)


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
        return features, UNCOUNTED

    def check(self, features: Sequence[Feature], sums: Any, rows: Integers, classes: Sequence[Any]) -> None:
        if sums is not UNCOUNTED:
            super().check(features, sums, rows, classes)

    def summary(self, feature: Feature, sums: Words, missing: str) -> str:
        each = (word_family(feature).word(feature, name) for name in sums.most_frequent(5))
        names = [repr(column) if what is None else what.removeprefix("value ") for column, what in each]
        often = ", ".join(names) + (", …" if sums.table.n_words > 5 else "")
        total = float(sums.occurrences.value.sum())
        real = sums.occurrences.digits > 0
        what = "column" if feature.columns else "word"
        return f"{errors.many(sums.table.n_words, what)}, {total:,.{6 if real else 15}g} occurrences{missing}: {often}"

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
    each = [mutual_information(pairs, words.texts) / BIT for pairs in words]
    bits = np.concatenate(each) if each else np.zeros(0)
    best = np.argsort(-bits, kind="stable")[:n]
    ids = words.ids[best]
    names = [feature.columns[k] for k in best.tolist()] if feature.columns else words.table.words(ids)
    return [TellingWord(*word) for word in zip(ids.tolist(), names, bits[best].tolist(), strict=True)]
