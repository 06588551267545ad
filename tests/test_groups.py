"""Words in groups, of which one at a time is left out, against slow twins: the store of the texts that are left."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_weights
import naive_words as naive
from banbury._core import Groups, Tokeniser, Weights, Words
from test_words import VOCABULARY, arguments, assert_pairs, assert_sums, counted, tokeniser

N_CLASSES, N_GROUPS = 3, 4
PARTS = N_CLASSES * N_GROUPS  # class c and group g of the texts is class c * N_GROUPS + g of the store
REAL = st.sampled_from([0.1, 1 / 3, 0.75, 20.3, 2.0, 1e-3, 1e-18, 1e16])


def of(numbers):
    return np.array(numbers, np.int64)


CLASSES = of([part // N_GROUPS for part in range(PARTS)])
IN_GROUP = of([part % N_GROUPS for part in range(PARTS)])


class Corpus:
    """Texts with a part each, counted by the core into parts; by the twin, whichever of them are asked for."""

    def __init__(self, texts, parts, weights=None, log=False):
        self.texts, self.parts, self.weights, self.log = texts, parts, weights, log
        self.words = counted(texts, parts, weights, n_classes=PARTS, by=tokeniser(log=log))

    @property
    def total(self):
        return self.words.place(CLASSES, N_CLASSES)

    @property
    def groups(self):
        return Groups(self.words, CLASSES, IN_GROUP, N_GROUPS)

    def slowly(self, index, n_classes):
        """The twin of the texts alone whose part has an index that is not −1."""
        chosen = [i for i, part in enumerate(self.parts) if part >= 0 and index[part] >= 0]
        words = naive.Words(n_classes)
        weights = None if self.weights is None else [self.weights[i] for i in chosen]
        texts, classes = [self.texts[i] for i in chosen], [int(index[self.parts[i]]) for i in chosen]
        words.count(texts, classes, weights, self.log)
        return words

    def ids(self, names):
        """The numbers of words by their names, in order."""
        return sorted(self.words.find(list(names)).tolist())


@st.composite
def corpora(draw):
    texts = draw(st.lists(st.none() | st.lists(st.sampled_from(VOCABULARY), max_size=8), max_size=10))
    n = len(texts)
    parts = draw(st.lists(st.integers(-1, PARTS - 1), min_size=n, max_size=n))
    kind = draw(st.sampled_from(["ones", "whole", "real", "damped"]))
    if kind == "ones":
        return Corpus(texts, parts)
    values = st.integers(1, 2**40) if kind == "whole" else REAL
    return Corpus(texts, parts, draw(st.lists(values, min_size=n, max_size=n)), log=kind == "damped")


def assert_ids(found, corpus, ids, expected):
    """The pairs of these words, in this order, are the twin's cells."""
    assert_pairs(found, corpus.words.words(np.array(ids, np.uint32)), expected)


indices = st.lists(st.integers(-1, N_CLASSES - 1), min_size=PARTS, max_size=PARTS)


@given(corpora(), indices, st.data())
def test_pairs_of_some_classes_are_those_of_their_texts_alone(corpus, index, data):
    """Classes in any order, several that are one, some left out; words in any order, and more than once."""
    expected, n_ids = corpus.slowly(index, N_CLASSES), corpus.words.n_ids
    every = list(range(n_ids))
    assert_ids(corpus.words.pairs(None, of(index)), corpus, every, expected)
    ids = data.draw(st.lists(st.sampled_from(every), max_size=8)) if every else []
    assert_ids(corpus.words.pairs(np.array(ids, np.uint32), of(index)), corpus, ids, expected)


@given(corpora(), indices)
def test_having_is_every_word_of_their_texts(corpus, index):
    found = corpus.words.having(of(index))
    assert found.dtype == np.uint32
    assert found.tolist() == corpus.ids(corpus.slowly(index, N_CLASSES).words())


@given(corpora())
def test_having_nothing_and_everything(corpus):
    assert corpus.words.having(of([-1] * PARTS)).tolist() == []
    assert corpus.words.having(of([0] * PARTS)).tolist() == list(range(corpus.words.n_words))
    same = corpus.words.pairs(None, of(range(PARTS)))
    for one, other in zip(same, corpus.words.pairs(None), strict=True):
        np.testing.assert_array_equal(one, other)


@given(corpora(), st.integers(0, N_GROUPS - 1))
def test_words_and_gone(corpus, group):
    groups, total = corpus.groups, corpus.total
    own = corpus.slowly([0 if g == group else -1 for g in IN_GROUP], 1).words()
    others = set(corpus.slowly([-1 if g == group else 0 for g in IN_GROUP], 1).words())
    found, gone = groups.words(group), groups.gone(total, group)
    assert (found.dtype, gone.dtype) == (np.uint32, np.uint32)
    assert found.tolist() == corpus.ids(own)
    assert gone.tolist() == corpus.ids(set(own) - others)


@given(corpora(), st.integers(0, N_GROUPS - 1), st.data())
def test_pairs_without_a_group_are_those_of_the_other_texts(corpus, group, data):
    expected = corpus.slowly([-1 if g == group else c for c, g in zip(CLASSES, IN_GROUP, strict=True)], N_CLASSES)
    every = range(corpus.words.n_ids)
    ids = sorted(data.draw(st.sets(st.sampled_from(every)))) if every else []
    for chosen in (list(every), ids, ids[::-1]):
        found = corpus.groups.pairs_without(corpus.total, group, np.array(chosen, np.uint32))
        assert_ids(found, corpus, chosen, expected)


@given(corpora(), st.none() | st.integers(0, N_GROUPS - 1), st.booleans(), st.booleans(), st.integers(1, 3))
def test_rows_of_weights_from_counts(corpus, group, once, others, threads):
    """With a group left out or none; where counts are real or large, no word has a row."""
    total, groups, ids = corpus.total, corpus.groups, np.arange(corpus.words.n_ids, dtype=np.uint32)
    pairs = total.pairs(ids) if group is None else groups.pairs_without(total, group, ids)
    values, default = np.log(np.arange(4) + 0.5), np.array([0.0, -1.0, 2.0])
    found, expected = Weights(N_CLASSES, default), naive_weights.Weights(N_CLASSES, default)
    without = None if group is None else (groups, group)
    left = found.set_counted(total, ids, once, others, values, threads, without).tolist()
    whole = np.asarray(corpus.weights or [1.0])
    if corpus.log or (whole % 1).any() or total.occurrences().value.sum() >= 2**32:
        assert left == ids.tolist()
        return
    assert left == expected.set_counted(pairs, ids, once, others, values)
    for one, other in zip(found.rows(ids), expected.rows(ids), strict=True):
        assert np.array_equal(one, other)


@given(
    st.lists(st.tuples(st.lists(st.sampled_from(VOCABULARY), max_size=12), st.integers(0, 39)), min_size=1), st.data()
)
def test_rows_of_weights_follow_texts_that_come_and_go(texts, data):
    """Rows grow from pairs to whole rows, and go where no text has the word any more."""
    words, default, values = Words(40, 0), np.arange(40.0), np.log(np.arange(9) + 0.5)
    found, expected = Weights(40, default), naive_weights.Weights(40, default)
    forgotten = data.draw(st.lists(st.sampled_from(texts), unique_by=id))
    once, others = data.draw(st.tuples(st.booleans(), st.booleans()))
    for step, (tokens, label) in [("count", text) for text in texts] + [("forget", text) for text in forgotten]:
        before, words = words, getattr(words, step)(*arguments([tokens], [label]))
        changed = words.changed_since(before)
        touched = np.arange(words.n_ids, dtype=np.uint32) if changed is None else changed
        pairs = words.pairs(touched)
        left = found.follow(words, touched, once, others, values).tolist()
        assert left == expected.follow(pairs, touched, once, others, values)
        ids = np.arange(words.n_ids, dtype=np.uint32)
        for one, other in zip(found.rows(ids), expected.rows(ids), strict=True):
            assert np.array_equal(one, other)


def test_rows_of_weights_from_counts_replace_former_rows():
    words, weights = counted([["yes", "no"]], [0], n_classes=1), Weights(1, np.zeros(1))
    ids, values = np.arange(2, dtype=np.uint32), np.zeros(9)
    assert weights.set_counted(words, ids[:1], False, False, values + 1.0, 1).tolist() == []
    assert weights.rows(ids)[1].tolist() == [[1.0], [0.0]]
    assert weights.set_counted(words, ids, False, False, values + 2.0, 1).tolist() == []
    assert weights.rows(ids)[1].tolist() == [[2.0], [2.0]]
    with pytest.raises(ValueError, match="those of words"):
        weights.set_counted(words, ids + 1, False, False, values, 1)


@given(corpora(), st.integers(0, N_GROUPS - 1))
def test_what_is_left_without_a_group_is_bit_for_bit_what_pairs_are(corpus, group):
    index = np.where(group == IN_GROUP, -1, CLASSES)
    ids = np.arange(corpus.words.n_ids, dtype=np.uint32)
    left = corpus.groups.pairs_without(corpus.total, group, ids)
    direct = corpus.words.pairs(ids, index)
    for one, other in zip(left, direct, strict=True):
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("weight", [None, 2**40, 0.1])
def test_words_by_the_thousand_are_left_out_alike_by_any_threads_and_in_any_order(threads, weight):
    rng = np.random.default_rng(4)
    texts = [[f"w{int(i)}" for i in 9_000 * rng.random(60) ** 2] for _ in range(400)]
    parts = rng.integers(0, PARTS, len(texts)).tolist()
    corpus = Corpus(texts, parts, None if weight is None else [weight] * len(texts))
    groups, total = Groups(corpus.words, CLASSES, IN_GROUP, N_GROUPS, threads), corpus.total
    for group in range(N_GROUPS):
        index = np.where(group == IN_GROUP, -1, CLASSES)
        its_own = corpus.words.having(np.where(group == IN_GROUP, 0, -1))
        assert groups.words(group).tolist() == its_own.tolist()
        kept = corpus.words.having(index)
        assert groups.gone(total, group).tolist() == np.setdiff1d(its_own, kept).tolist()
        for ids in its_own, rng.permutation(corpus.words.n_ids).astype(np.uint32):
            left = groups.pairs_without(total, group, ids)
            for one, other in zip(left, corpus.words.pairs(ids, index), strict=True):
                assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())


def test_a_group_far_heavier_than_the_rest_leaves_the_rest_exact():
    texts = [["a"], ["a"], ["a", "b"]]
    corpus = Corpus(texts, [0, 1, 1], [4e18, 0.1, 0.3])
    ids = np.arange(2, dtype=np.uint32)
    *_, occurrences, documents = corpus.groups.pairs_without(corpus.total, 0, ids)
    assert occurrences.tolist() == documents.tolist() == [0.4, 0.3]


def test_classes_of_a_group_that_have_become_one():
    """Two classes of the store may stand for one class and group."""
    words = counted([["a", "b"], ["a"], ["b", "b"], ["c"]], [0, 1, 2, 3], n_classes=4)
    classes, groups = of([0, 0, 0, 1]), of([0, 0, 1, 1])
    made, total = Groups(words, classes, groups, 2), words.place(classes, 2)
    names = words.words(None)
    assert [names[i] for i in made.words(0)] == ["a", "b"]
    assert [names[i] for i in made.gone(total, 0)] == ["a"]
    starts, found, occurrences, documents = made.pairs_without(total, 1, np.arange(3, dtype=np.uint32))
    assert (starts.tolist(), found.tolist()) == ([0, 1, 2, 2], [0, 0])
    assert (occurrences.tolist(), documents.tolist()) == ([2, 1], [2, 1])


def by_name(words, found):
    """(word, class) → occurrences and documents, of the pairs of all ids."""
    starts, classes, occurrences, documents = found
    names = np.repeat(np.array(words.words(None), dtype=object), np.diff(starts))
    keys = zip(names.tolist(), classes.tolist(), strict=True)
    return dict(zip(keys, zip(occurrences.tolist(), documents.tolist(), strict=True), strict=True))


def test_totals_of_all_groups_are_those_of_the_store():
    corpus = Corpus([["a", "b"], ["a"], None, []], [0, 5, 6, 11], [0.5, 2.0, 1.0, 3.0])
    expected = corpus.slowly(CLASSES.tolist(), N_CLASSES)
    assert_sums(corpus.total.texts(), expected.texts)
    assert_sums(corpus.total.occurrences(), expected.total(0))
    assert_sums(corpus.total.documents(), expected.total(1))


def test_no_words_and_no_groups():
    empty = Words(PARTS, 0)
    groups = Groups(empty, CLASSES, IN_GROUP, N_GROUPS)
    nothing = np.zeros(0, np.uint32)
    assert groups.words(0).tolist() == groups.gone(empty.place(CLASSES, N_CLASSES), 0).tolist() == []
    assert groups.pairs_without(empty.place(CLASSES, N_CLASSES), 0, nothing)[0].tolist() == [0]
    assert empty.having(of([0] * PARTS)).tolist() == []
    none = Groups(Words(0, 0), of([]), of([]), 0)
    with pytest.raises(ValueError, match="no group 0"):
        none.words(0)


def test_threads_may_share_them():
    rng = np.random.default_rng(0)
    texts = [[VOCABULARY[i] for i in rng.integers(0, len(VOCABULARY), 9)] for _ in range(300)]
    corpus = Corpus(texts, rng.integers(0, PARTS, 300).tolist())
    groups, total = corpus.groups, corpus.total
    ids = np.arange(corpus.words.n_ids, dtype=np.uint32)
    found = {}

    def ask(group):
        found[group] = groups.pairs_without(total, group, ids)

    threads = [threading.Thread(target=ask, args=(group,)) for group in range(N_GROUPS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for group in range(N_GROUPS):
        for one, other in zip(found[group], groups.pairs_without(total, group, ids), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "classes, groups, n_groups, words",
    [
        ([0] * (PARTS - 1), IN_GROUP, N_GROUPS, "one number per class"),
        (CLASSES, [0] * (PARTS + 1), N_GROUPS, "one number per class"),
        (CLASSES, IN_GROUP, N_GROUPS - 1, "from 0 up"),
        ([-1, *CLASSES[1:]], IN_GROUP, N_GROUPS, "from 0 up"),
        (CLASSES, [-1, *IN_GROUP[1:]], N_GROUPS, "from 0 up"),
        ([2**31, *CLASSES[1:]], IN_GROUP, N_GROUPS, "from 0 up"),
        (CLASSES, IN_GROUP, -1, "n_groups"),
        ([2 - c for c in CLASSES], IN_GROUP, N_GROUPS, "ascend within a group"),
    ],
)
def test_groups_that_do_not_fit(classes, groups, n_groups, words):
    store = counted([["a"]] * PARTS, range(PARTS), n_classes=PARTS)
    with pytest.raises(ValueError, match=words):
        Groups(store, of(classes), of(groups), n_groups)


def test_questions_that_do_not_fit():
    corpus = Corpus([["a", "b"], ["b"]], [0, 1])
    groups, total = corpus.groups, corpus.total
    ids = np.arange(2, dtype=np.uint32)
    for group in (N_GROUPS, -1, 2**40):
        for ask in (groups.words, lambda g: groups.gone(total, g), lambda g: groups.pairs_without(total, g, ids)):
            with pytest.raises(ValueError, match="group"):
                ask(group)
    with pytest.raises(ValueError, match="ids"):
        groups.pairs_without(total, 0, np.array([2], np.uint32))
    larger = counted([["a", "b", "c"]], [0])
    weighted = counted([["a", "b"]], [0], [0.5])
    for other in (larger, weighted):
        with pytest.raises(ValueError, match="all groups together"):
            groups.gone(other, 0)
        with pytest.raises(ValueError, match="all groups together"):
            groups.pairs_without(other, 0, ids)
    for index in ([0] * (PARTS - 1), [-2] + [0] * (PARTS - 1), [2**31] + [0] * (PARTS - 1)):
        with pytest.raises(ValueError, match="index"):
            corpus.words.having(of(index))
        with pytest.raises(ValueError, match="index"):
            corpus.words.pairs(None, of(index))


def test_what_is_changed_later_is_not_what_was_grouped():
    """Groups hold cells of their own: a store that grows on is another one, and is refused."""
    corpus = Corpus([["a"], ["b"]], [0, 1])
    groups, total = corpus.groups, corpus.total
    by = Tokeniser("given", True, False, 1, 1, [], False, False)
    corpus.words = counted([["new"]], [0], into=corpus.words, n_classes=PARTS, by=by)
    assert groups.words(0).tolist() == [0]
    assert groups.gone(total, 0).tolist() == [0]
    with pytest.raises(ValueError, match="all groups together"):
        groups.gone(corpus.total, 0)
