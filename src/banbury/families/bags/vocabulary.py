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

CELLS = 1 << 21  # of words × classes that are looked at together, so that millions of pairs need no large temporaries


@dataclass(frozen=True)
class WordClassPairs:
    """Some words and the classes they occur in: word i has the pairs ``starts[i]`` to ``starts[i + 1]``.

    Occurrences and documents are whole numbers, or float64 where weights or damping made the sums real.
    """

    ids: Ids
    starts: Int
    classes: NDArray[np.int32]
    occurrences: NDArray[Any]
    documents: NDArray[Any]

    @cached_property
    def sizes(self) -> Int:
        return self.starts[1:] - self.starts[:-1]  # np.diff takes longer than one text's other steps

    @cached_property
    def full(self) -> bool:
        return bool(self.sizes.all())

    def per_word(self, counts: NDArray[Any]) -> NDArray[Any]:
        if self.full:
            return np.add.reduceat(counts, self.starts[:-1]) if len(counts) else counts
        result = np.zeros(len(self.ids), dtype=counts.dtype)
        filled = self.sizes > 0  # reduceat would give an empty word its neighbour's first pair
        if len(counts):
            result[filled] = np.add.reduceat(counts, self.starts[:-1][filled])
        return result

    def per_pair(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(numbers, self.sizes)

    def per_class(self, counts: NDArray[Any], n_classes: int) -> Real:
        sums: Real = np.bincount(self.classes, weights=counts, minlength=n_classes).astype(np.float64, copy=False)
        return sums

    def cells(self, counts: NDArray[Any], n_classes: int) -> Real:
        result = np.zeros((len(self.ids), n_classes))
        result[self.per_pair(np.arange(len(self.ids))), self.classes] = counts
        return result

    def only(self, kept: NDArray[np.bool_]) -> WordClassPairs:
        if kept.all():
            return self
        starts = np.concatenate([[0], np.cumsum(self.sizes[kept])])
        pairs = self.per_pair(kept)
        counts = self.occurrences[pairs], self.documents[pairs]
        return WordClassPairs(self.ids[kept], starts, self.classes[pairs], *counts)


def pairs_of(table: Any, ids: Ids) -> WordClassPairs:
    if isinstance(table, _core.Words):
        return WordClassPairs(ids, *table.pairs(ids, None, n_threads(None)))
    return WordClassPairs(ids, *table.pairs(ids))


@dataclass(frozen=True)
class Learned:
    """Some of the texts of a table whose classes are groups of texts: those that are learned from while others are left out.

    Class c of the table is class ``index[c]`` of ``n_classes`` here, together with all others that are; −1 is left out. Words
    have the ids that they have in the table, which finds them. ``tested`` are the words of the texts that will be scored; None:
    they may have any.
    """

    core: _core.Words
    index: Int
    n_classes: int
    by_name: Callable[[], Ids]  # all ids of the table in the order of their names
    tested: Ids | None

    @property
    def n_ids(self) -> int:
        return self.core.n_ids

    @cached_property
    def live(self) -> Ids:
        """The words that some of these texts have."""
        return self.core.having(self.index)

    @cached_property
    def asked(self) -> Ids | None:
        """The words that will be asked for; None: any."""
        return None if self.tested is None else np.intersect1d(self.tested, self.live, assume_unique=True)

    @property
    def n_words(self) -> int:
        return len(self.live)

    def pairs(self, ids: Ids) -> tuple[Int, NDArray[np.int32], Real, Real]:
        return self.core.pairs(ids, self.index)

    def texts(self) -> Integers:
        return self._of_classes(self.core.texts())

    def occurrences(self) -> Integers:
        return self._of_classes(self.core.occurrences())

    def documents(self) -> Integers:
        return self._of_classes(self.core.documents())

    def in_order(self) -> Ids:
        there = np.zeros(self.n_ids, dtype=np.bool_)
        there[self.live] = True
        every = self.by_name()
        return every[there[every]]

    def words(self, ids: Ids | None) -> list[str]:
        return self.core.words(ids)

    def find(self, words: list[str]) -> Int:
        return self.core.find(words)

    def with_columns(self, n_columns: int) -> Learned:
        core = self.core.with_columns(n_columns)
        return Learned(core, self.index, self.n_classes, core.in_order, None)

    def with_words(self, words: list[str]) -> Learned:
        core = self.core.with_words(words)
        return Learned(core, self.index, self.n_classes, core.in_order, None)

    def _of_classes(self, per_class: Integers) -> Integers:
        kept = np.flatnonzero(self.index >= 0)
        return per_class.take(kept, 0).merge(self.index[kept], self.n_classes, 0)


@dataclass(frozen=True)
class AllBut(Learned):
    """The same where one group is left out: what all have together, minus its own. ``total`` has the table's ids.

    ``places`` are those here of the classes of ``total``, −1 where none of a class's texts is left; None: all are left.
    """

    total: _core.Words
    groups: _core.Groups
    group: int
    kept: dict[Any, Any] | None = None  # pairs that were read before
    places: Int | None = None
    one: int | None = None  # the class that alone counts, if any

    def of_class(self, c: int) -> AllBut:
        """The texts of one class, which has all words of the others."""
        return replace(self, index=np.where(self.index == c, 0, -1), n_classes=1, one=c)

    @cached_property
    def gone(self) -> Ids:
        """The words that only texts of the group have."""
        return self.groups.gone(self.total, self.group)

    @cached_property
    def asked(self) -> Ids | None:
        return None if self.tested is None else np.setdiff1d(self.tested, self.gone, assume_unique=True)

    @cached_property
    def live(self) -> Ids:
        return np.delete(np.arange(self.n_ids, dtype=np.uint32), self.gone)

    @property
    def n_words(self) -> int:
        return self.n_ids - len(self.gone)

    def pairs(self, ids: Ids) -> tuple[Int, NDArray[np.int32], Real, Real]:
        if self.kept is None:
            pairs = self.groups.pairs_without(self.total, self.group, ids)
        else:
            key = ids.tobytes()
            if key not in self.kept:
                self.kept[key] = self.groups.pairs_without(self.total, self.group, ids)
            pairs = self.kept[key]
        starts, classes, occurrences, documents = pairs
        if self.places is not None:
            classes = self.places[classes].astype(np.int32)
        if self.one is None:
            return starts, classes, occurrences, documents
        of_one_class = classes == self.one
        starts = np.concatenate([[0], np.cumsum(of_one_class)])[starts]
        return starts, np.zeros(int(starts[-1]), dtype=np.int32), occurrences[of_one_class], documents[of_one_class]


def whole_counts(table: Any) -> tuple[_core.Words, tuple[_core.Groups, int] | None] | None:
    """What the kernels take for a table's counts: words, and the group that is left out of them; None where they cannot."""
    if isinstance(table, _core.Words):
        return table, None
    if isinstance(table, AllBut) and table.kept is None and table.places is None and table.one is None:
        return table.total, (table.groups, table.group)
    return None


@dataclass(frozen=True)
class Vocabulary:
    """The words kept, by their ids in a table. ``complete``: they are all that the table has.

    ``size`` is how many there are where ``ids`` are only those that are needed.
    """

    table: Any  # _core.Words or Learned
    ids: Ids
    complete: bool
    size: int | None = None

    @property
    def n_words(self) -> int:
        return len(self.ids) if self.size is None else self.size

    @property
    def n_classes(self) -> int:
        return int(self.table.n_classes)

    @cached_property
    def texts(self) -> Real:
        texts: Integers = self.table.texts()
        return texts.value

    def __iter__(self) -> Iterator[WordClassPairs]:
        """The words' pairs, chunk by chunk, in the order of ``ids``."""
        size = max(1, CELLS // max(self.n_classes, 1))
        for start in range(0, len(self.ids), size):
            yield pairs_of(self.table, self.ids[start : start + size])

    def keep(self, kept: NDArray[np.bool_]) -> Vocabulary:
        return self if kept.all() else Vocabulary(self.table, self.ids[kept], False)


def of_one_class(table: Any, number: int) -> Learned:
    """The texts of one class of a table."""
    index = np.full(table.n_classes, -1, dtype=np.int64)
    index[number] = 0
    return Learned(table, index, 1, table.in_order, None)


def every_word(table: Any, by_name: bool) -> Vocabulary:
    """All words that some text has; ``by_name``: in an order that does not depend on where they were met."""
    if by_name:
        return Vocabulary(table, table.in_order(), True)
    if isinstance(table, Learned):
        return Vocabulary(table, table.live, True)
    if table.n_ids == table.n_words:
        return Vocabulary(table, np.arange(table.n_ids, dtype=np.uint32), True)
    return Vocabulary(table, np.sort(table.in_order()), True)


def words_by_name(table: Any, words: Iterable[str]) -> Vocabulary:
    """These words, whether any text has them or not, by name."""
    names = sorted(set(words))
    table = table.with_words(names)
    return Vocabulary(table, table.find(names).astype(np.uint32), False)


@dataclass(frozen=True)
class Pruning:
    """What makes a word too rare, too common or not telling enough; it costs a pass over the counts, none over the texts."""

    min_count: float
    min_share: float
    max_share: float
    drop_most_frequent: int
    max_words: int | None
    choose_by: Literal["count", "mutual_information"]

    @property
    def ranks(self) -> bool:
        """Whether words are ranked, so that equals must be told apart by name."""
        return self.drop_most_frequent > 0 or self.max_words is not None

    @property
    def any(self) -> bool:
        return self.ranks or self.min_count > 0 or self.min_share > 0 or self.max_share < 1

    def of(self, words: Vocabulary) -> Vocabulary:
        """The most frequent of all words are dropped first, then the rare and the common; of the rest the best are kept."""
        if not self.any:
            return words
        occurrences, documents, information = self._totals(words)
        n_texts = float(words.texts.sum())
        near = 1.0 - ROUNDING
        kept = (occurrences >= self.min_count * near) & (documents >= self.min_share * n_texts * near)
        if self.max_share < 1:
            kept &= documents * near <= self.max_share * n_texts
        if self.drop_most_frequent:
            kept[_best(occurrences, self.drop_most_frequent)] = False
        if self.max_words is not None:
            score = np.where(kept, occurrences if self.choose_by == "count" else information, -np.inf)
            best = np.zeros(len(kept), dtype=np.bool_)
            best[_best(score, self.max_words)] = True
            kept &= best
        return words.keep(kept)

    def _totals(self, words: Vocabulary) -> tuple[Real, Real, Real]:
        """Occurrences, documents and mutual information of every word."""
        occurrences, documents, information = np.zeros((3, words.n_words))
        needs_information = self.max_words is not None and self.choose_by == "mutual_information"
        start = 0
        for pairs in words:
            at = slice(start, start + len(pairs.ids))
            occurrences[at] = _round_sums(pairs.per_word(pairs.occurrences))
            documents[at] = _round_sums(pairs.per_word(pairs.documents))
            if needs_information:
                information[at] = mutual_information(pairs, words.texts)
            start = at.stop
        return occurrences, documents, information


def _round_sums(sums: NDArray[Any]) -> Real:
    """To twelve digits: soft labels of one row may add up to a little less or more than its weight."""
    digits, exponents = np.frexp(sums)
    return np.asarray(np.ldexp(np.rint(digits * 2.0**40), exponents - 40))


def _best(score: Real, n: int) -> Int:
    """The places of the n highest; of equals the first."""
    return np.argsort(-score, kind="stable")[:n]


def mutual_information(pairs: WordClassPairs, texts: Real) -> Real:
    """Between a word's presence in a text and the text's class, in nats; ``texts`` per class."""
    n_texts = float(texts.sum())
    if n_texts <= 0:
        return np.zeros(len(pairs.ids))
    with_word = pairs.documents.astype(np.float64)
    of_class = texts[pairs.classes]
    # H(presence) − H(presence | class); classes without the word add nothing to either sum.
    given_class = pairs.per_word(_entropy_terms(with_word, of_class))
    all_classes = _entropy_terms(pairs.per_word(with_word), np.full(len(pairs.ids), n_texts))
    return np.maximum((given_class - all_classes) / n_texts, 0.0)


def _entropy_terms(part: Real, total: Real) -> Real:
    """part · log(part / whole) + the same for the rest."""
    rest = np.maximum(total - part, 0.0)
    return _times_log(part, total) + _times_log(rest, total)


def _times_log(part: Real, total: Real) -> Real:
    """part · log(part / whole), 0 where there is none."""
    some = part > 0
    return np.where(some, part * np.log(np.where(some, part, 1.0) / np.where(total > 0, total, 1.0)), 0.0)
