"""The words of a column of text that an estimate uses, and their counts, some words at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.sums import ROUNDING
from banbury.threads import n_threads

Ids = NDArray[np.uint32]

CELLS = 1 << 21  # words × classes that are processed together, so that millions of pairs need no large temporaries


@dataclass(frozen=True)
class WordClassPairs:
    """Some words and the classes they occur in: word i has the pairs ``starts[i]`` to ``starts[i + 1]``.

    Each pair has a class, and the occurrences and documents of the word in it: whole numbers, or float64 where weights
    or damping made the sums real.
    """

    ids: Ids
    starts: Int  # (words + 1)
    classes: NDArray[np.int32]  # the class number of each pair
    occurrences: NDArray[Any]  # of each pair
    documents: NDArray[Any]  # of each pair

    @cached_property
    def sizes(self) -> Int:
        """In how many classes each word occurs (words)."""
        return self.starts[1:] - self.starts[:-1]  # np.diff takes longer than one text's other steps

    @cached_property
    def full(self) -> bool:
        """Whether every word occurs in some class."""
        return bool(self.sizes.all())

    def per_word(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Returns the counts of pairs (``counts``) summed over the classes of each word (words). Word i, with the id
        ``ids[i]``, has the pairs ``starts[i]`` to ``starts[i + 1]``, which are ``sizes[i]``.
        """
        if self.full:  # every word has pairs
            return np.add.reduceat(counts, self.starts[:-1]) if len(counts) else counts
        word_sums = np.zeros(len(self.ids), dtype=counts.dtype)
        has_pairs = self.sizes > 0  # reduceat would give an empty word its neighbour's first pair
        if len(counts):
            word_sums[has_pairs] = np.add.reduceat(counts, self.starts[:-1][has_pairs])
        return word_sums

    def per_pair(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Returns the number of each word (``numbers``) for each of its pairs (pairs)."""
        return np.repeat(numbers, self.sizes)

    def per_class(self, counts: NDArray[Any], n_classes: int) -> Real:
        """Returns the counts of pairs (``counts``) summed over the words of each of ``n_classes`` classes (classes).
        ``self.classes`` has the class number of each pair.
        """
        sums: Real = np.bincount(self.classes, weights=counts, minlength=n_classes).astype(np.float64, copy=False)
        return sums

    def cells(self, counts: NDArray[Any], n_classes: int) -> Real:
        """Returns the counts of pairs as a table (words × classes), 0 where there is no pair. ``classes`` has the class
        number of each pair.
        """
        table = np.zeros((len(self.ids), n_classes))
        table[self.per_pair(np.arange(len(self.ids))), self.classes] = counts
        return table

    def only(self, keeps_word: NDArray[np.bool_]) -> WordClassPairs:
        """Returns the pairs of the words that a mask selects (``keeps_word``), which has a boolean for each word. Word
        i has the pairs ``starts[i]`` to ``starts[i + 1]``, which are ``sizes[i]``.
        """
        if keeps_word.all():
            return self
        starts = np.concatenate([[0], np.cumsum(self.sizes[keeps_word])])
        keeps_pair = self.per_pair(keeps_word)
        # Of the pairs that stay.
        counts = self.occurrences[keeps_pair], self.documents[keeps_pair]
        return WordClassPairs(self.ids[keeps_word], starts, self.classes[keeps_pair], *counts)


def pairs_of(table: Any, ids: Ids) -> WordClassPairs:
    """Returns the words with these ids in a table of words, with the classes in which they occur and their counts
    there.
    """
    if isinstance(table, _core.Words):
        # None: the classes are those of the table.
        return WordClassPairs(ids, *table.pairs(ids, None, n_threads(None)))
    return WordClassPairs(ids, *table.pairs(ids))


@dataclass(frozen=True)
class Learned:
    """The texts of a table that a model learns from while others are left out; the classes of the table are groups of
    texts.

    Class c of the table is part of class ``index[c]`` of ``n_classes`` here, or left out if that is −1. Words have the
    same ids as in the table (``core``). ``tested_ids`` are the words of the texts that will be scored; None if any word
    may be asked for.
    """

    core: _core.Words
    index: Int
    n_classes: int
    by_name: Callable[[], Ids]  # all ids of the table in the order of their names
    tested_ids: Ids | None

    @property
    def n_ids(self) -> int:
        """The number of word ids of the table, whether or not one of these texts has the word."""
        return self.core.n_ids

    @cached_property
    def learned_ids(self) -> Ids:
        """The ids of the words that some of these texts have, in order; ``self.core`` is the table, and ``self.index``
        is −1 for classes of the table that are left out.
        """
        return self.core.having(self.index)

    @cached_property
    def needed_ids(self) -> Ids | None:
        """The ids of the words that scoring will ask for (``tested_ids``) and that some of these texts have
        (``learned_ids``); None for any word.
        """
        return (
            None if self.tested_ids is None else np.intersect1d(self.tested_ids, self.learned_ids, assume_unique=True)
        )

    @property
    def n_words(self) -> int:
        """The number of words that some of these texts have."""
        return len(self.learned_ids)

    def pairs(self, ids: Ids) -> tuple[Int, NDArray[np.int32], Real, Real]:
        """Returns for the words with these ids where the pairs of each begin (words + 1), and the classes, occurrences
        and documents of the pairs. ``core`` is the table, and ``index`` has the number here of each of its classes.
        """
        return self.core.pairs(ids, self.index)

    def texts(self) -> Integers:
        """Returns the number of texts of each class here, or their weight (classes)."""
        return self._of_classes(self.core.texts())

    def occurrences(self) -> Integers:
        """Returns the occurrences of all words together, in each class (classes)."""
        return self._of_classes(self.core.occurrences())

    def documents(self) -> Integers:
        """Returns for each class the number of texts that have a word, summed over words (classes)."""
        return self._of_classes(self.core.documents())

    def in_order(self) -> Ids:
        """Returns the ids of the words that some of these texts have, in the order of their names."""
        has_text = np.zeros(self.n_ids, dtype=np.bool_)  # of each id of the table
        has_text[self.learned_ids] = True
        sorted_ids = self.by_name()  # all ids of the table, by name
        return sorted_ids[has_text[sorted_ids]]

    def words(self, ids: Ids | None) -> list[str]:
        """Returns the words with these ids; None for all words of the table."""
        return self.core.words(ids)

    def find(self, words: list[str]) -> Int:
        """Returns the ids of these words in the table, −1 for a word that it does not have."""
        return self.core.find(words)

    def with_columns(self, n_columns: int) -> Learned:
        """Returns the same texts in a table with at least this many columns."""
        return self._with_core(self.core.with_columns(n_columns))

    def with_words(self, words: list[str]) -> Learned:
        """Returns the same texts in a table that also has these words."""
        return self._with_core(self.core.with_words(words))

    def _with_core(self, core: _core.Words) -> Learned:
        """Returns the same texts in another table, which has more words."""
        return Learned(core, self.index, self.n_classes, core.in_order, tested_ids=None)

    def _of_classes(self, per_class: Integers) -> Integers:
        """Returns sums of the table's classes (``per_class``) added up for the classes here: class c of the table is
        ``self.index[c]`` here, or left out if that is −1.
        """
        learned_classes = np.flatnonzero(self.index >= 0)  # classes of the table
        return per_class.take(learned_classes, 0).merge(self.index[learned_classes], self.n_classes, 0)


@dataclass(frozen=True)
class AllBut(Learned):
    """The texts of a table without one group: the sums of all texts minus those of the group. ``total`` has the table's
    ids.

    Args:
        total: The words of all texts.
        groups: The words of each group of texts.
        group: The number of the group that is left out.
        cached_pairs: Pairs that were read before, by their ids; None to keep none.
        new_class: Class c of ``total`` is class ``new_class[c]`` here, or −1 if no text of it is left; None if all
            classes are left.
        only_class: The class that alone counts, if any.
    """

    total: _core.Words
    groups: _core.Groups
    group: int
    cached_pairs: dict[Any, Any] | None = None
    new_class: Int | None = None
    only_class: int | None = None

    def of_class(self, c: int) -> AllBut:
        """Returns the texts of class number c alone, as the only class. It has all words of the other classes.
        ``index`` has the number here of each class of the table, −1 if it is left out.
        """
        return replace(self, index=np.where(self.index == c, 0, -1), n_classes=1, only_class=c)

    @cached_property
    def lost_ids(self) -> Ids:
        """The ids of the words that only texts of the group (the one that is left out) have."""
        return self.groups.gone(self.total, self.group)

    @cached_property
    def needed_ids(self) -> Ids | None:
        """The ids of the words that scoring will ask for (``tested_ids``) and that not only texts of the group have
        (``lost_ids``); None for any word.
        """
        return None if self.tested_ids is None else np.setdiff1d(self.tested_ids, self.lost_ids, assume_unique=True)

    @cached_property
    def learned_ids(self) -> Ids:
        """The ids of the words that some text outside the group has, in order."""
        return np.delete(np.arange(self.n_ids, dtype=np.uint32), self.lost_ids)

    @property
    def n_words(self) -> int:
        """The number of words that some text outside the group has."""
        return self.n_ids - len(self.lost_ids)

    def pairs(self, ids: Ids) -> tuple[Int, NDArray[np.int32], Real, Real]:
        """Returns for the words with these ids where the pairs of each begin (words + 1), and their classes,
        occurrences and documents without the group. ``new_class[c]`` is the number here of class c of all texts;
        ``only_class`` alone counts, if given.
        """
        cached_pairs = {} if self.cached_pairs is None else self.cached_pairs  # by the bytes of the ids
        key = ids.tobytes()
        if key not in cached_pairs:
            cached_pairs[key] = self.groups.pairs_without(self.total, self.group, ids)
        starts, classes, occurrences, documents = cached_pairs[key]  # the classes are those of all texts
        if self.new_class is not None:
            classes = self.new_class[classes].astype(np.int32)
        if self.only_class is None:
            return starts, classes, occurrences, documents
        stays = classes == self.only_class  # whether each pair is of this class
        starts = np.concatenate([[0], np.cumsum(stays)])[starts]
        return starts, np.zeros(int(starts[-1]), dtype=np.int32), occurrences[stays], documents[stays]


def whole_counts(table: Any) -> tuple[_core.Words, tuple[_core.Groups, int] | None] | None:
    """Returns what the kernels take for a table's counts: the words, and what to leave out, which is None or all groups
    and the number of one; None for a table that they cannot take.
    """
    if isinstance(table, _core.Words):
        return table, None
    if not isinstance(table, AllBut) or table.cached_pairs is not None:
        return None
    if table.new_class is not None or table.only_class is not None:  # its classes are not those of the words
        return None
    return table.total, (table.groups, table.group)


@dataclass(frozen=True)
class Vocabulary:
    """The words that a model uses, by their ids in a table; ``complete`` if they are all words of the table.

    ``size`` is the number of words if ``ids`` has only those that are needed, else None.
    """

    table: Any  # _core.Words or Learned
    ids: Ids
    complete: bool
    size: int | None = None

    @property
    def n_words(self) -> int:
        """The number of words that the model uses, also where ``ids`` has only those that are needed."""
        return len(self.ids) if self.size is None else self.size

    @property
    def n_classes(self) -> int:
        """The number of classes of the table."""
        return int(self.table.n_classes)

    @cached_property
    def texts(self) -> Real:
        """The number of texts of each class (classes)."""
        texts: Integers = self.table.texts()
        return texts.value

    def __iter__(self) -> Iterator[WordClassPairs]:
        """Yields the pairs of some words at a time, in the order of ``ids``."""
        n_together = max(1, CELLS // max(self.n_classes, 1))
        for start in range(0, len(self.ids), n_together):
            yield pairs_of(self.table, self.ids[start : start + n_together])

    def keep(self, keeps_word: NDArray[np.bool_]) -> Vocabulary:
        """Returns the words that a mask selects, which has a boolean for each of ``ids``."""
        return self if keeps_word.all() else Vocabulary(self.table, self.ids[keeps_word], complete=False)


def core_of(table: Any) -> _core.Words:
    """Returns the table in the core that has a table's words: that of a ``Learned``, or the table itself."""
    return table.core if isinstance(table, Learned) else table


def of_one_class(table: Any, number: int) -> Learned:
    """Returns the texts of class number ``number`` of a table, as the only class."""
    index = np.full(table.n_classes, -1, dtype=np.int64)  # the new number of each class; −1: left out
    index[number] = 0
    return Learned(table, index, n_classes=1, by_name=table.in_order, tested_ids=None)


def every_word(table: Any, by_name: bool) -> Vocabulary:
    """Returns all words that some text in the table has; ``by_name`` sorts them, so that their order does not depend on
    the order of rows.
    """
    if by_name:
        return Vocabulary(table, table.in_order(), complete=True)
    if isinstance(table, Learned):
        return Vocabulary(table, table.learned_ids, complete=True)
    return Vocabulary(table, table.having(np.zeros(table.n_classes, dtype=np.int64)), complete=True)


def words_by_name(table: Any, words: Iterable[str]) -> Vocabulary:
    """Returns these words, in the order of their names, as words of ``table``, whether or not any text has them."""
    names = sorted(set(words))
    table = table.with_words(names)
    return Vocabulary(table, table.find(names).astype(np.uint32), complete=False)


@dataclass(frozen=True)
class Pruning:
    """The settings that drop words as too rare, too common or not informative enough. Pruning needs no pass over the
    texts.

    Args:
        min_count: The fewest occurrences of a word that stays.
        min_share: The smallest share of texts that have a word that stays.
        max_share: The largest such share.
        drop_most_frequent: How many of the most frequent words are dropped.
        max_words: How many words stay at most; None for no limit.
        choose_by: What they are ranked by.
    """

    min_count: float
    min_share: float
    max_share: float
    drop_most_frequent: int
    max_words: int | None
    choose_by: Literal["count", "mutual_information"]

    @property
    def ranks(self) -> bool:
        """Whether words are ranked, so that ties have to be broken by name."""
        return self.drop_most_frequent > 0 or self.max_words is not None

    @property
    def any(self) -> bool:
        """Whether some setting can drop a word."""
        return self.ranks or self.min_count > 0 or self.min_share > 0 or self.max_share < 1

    def of(self, words: Vocabulary) -> Vocabulary:
        """Returns the words that stay: drops the most frequent words, then rare and common words, and keeps the best of
        the rest. ``max_words`` is None without a limit.
        """
        if not self.any:
            return words
        occurrences, documents, information = self._totals(words)  # of each word
        n_texts = float(words.texts.sum())
        rounding = 1.0 - ROUNDING  # lets sums that rounding made a little too small pass
        # Whether each word is frequent enough.
        stays = (occurrences >= self.min_count * rounding) & (documents >= self.min_share * n_texts * rounding)
        if self.max_share < 1:
            stays &= documents * rounding <= self.max_share * n_texts
        if self.drop_most_frequent:
            stays[_best(occurrences, self.drop_most_frequent)] = False
        if self.max_words is not None:
            # What words are ranked by.
            scores = np.where(stays, occurrences if self.choose_by == "count" else information, -np.inf)
            is_best = np.zeros(len(stays), dtype=np.bool_)
            is_best[_best(scores, self.max_words)] = True
            stays &= is_best
        return words.keep(stays)

    def _totals(self, words: Vocabulary) -> tuple[Real, Real, Real]:
        """Returns the occurrences, documents and mutual information of every word (words each), over all classes; the
        last are zeros if nobody needs them.
        """
        occurrences, documents, information = np.zeros((3, words.n_words))
        needs_information = self.max_words is not None and self.choose_by == "mutual_information"
        start = 0
        for pairs in words:
            some_words = slice(start, start + len(pairs.ids))  # the places of the words of these pairs
            occurrences[some_words] = _round_sums(pairs.per_word(pairs.occurrences))
            documents[some_words] = _round_sums(pairs.per_word(pairs.documents))
            if needs_information:
                information[some_words] = mutual_information(pairs, words.texts)
            start = some_words.stop
        return occurrences, documents, information


def _round_sums(sums: NDArray[Any]) -> Real:
    """Returns sums rounded to twelve digits, because the soft labels of a row may add up to a little less or more than
    its weight.
    """
    mantissas, exponents = np.frexp(sums)
    return np.asarray(np.ldexp(np.rint(mantissas * 2.0**40), exponents - 40))


def _best(scores: Real, n: int) -> Int:
    """Returns the indices of the n highest scores, highest first; ties go to the first."""
    return np.argsort(-scores, kind="stable")[:n]


def mutual_information(pairs: WordClassPairs, texts: Real) -> Real:
    """Returns the mutual information, in nats, of each word's presence in a text and the text's class (words);
    ``texts`` has the number of texts of each class.
    """
    n_texts = float(texts.sum())
    if n_texts <= 0:
        return np.zeros(len(pairs.ids))
    # Of each pair: the texts of the class with the word, and all texts of the class.
    texts_with_word = pairs.documents.astype(np.float64)
    texts_of_class = texts[pairs.classes]
    # Of each word: −N · H(presence | class) and −N · H(presence) for N texts; classes without it add nothing to either.
    by_class = pairs.per_word(_entropy_terms(texts_with_word, texts_of_class))
    overall = _entropy_terms(pairs.per_word(texts_with_word), np.full(len(pairs.ids), n_texts))
    return np.maximum((by_class - overall) / n_texts, 0.0)


def _entropy_terms(part: Real, total: Real) -> Real:
    """Returns part · log(part / total) + rest · log(rest / total), in the shape of ``part``, where the rest is what the
    part leaves of the total.
    """
    rest = np.maximum(total - part, 0.0)
    return _times_log(part, total) + _times_log(rest, total)


def _times_log(part: Real, total: Real) -> Real:
    """Returns part · log(part / total), in the shape of ``part``, or 0 where the part is 0."""
    is_positive = part > 0
    return np.where(is_positive, part * np.log(np.where(is_positive, part, 1.0) / np.where(total > 0, total, 1.0)), 0.0)
