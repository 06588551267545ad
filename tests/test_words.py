"""The store of words in the Rust core against its slow twin in naive_words.py."""

import itertools
import math
import re
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_words as naive
from banbury import _core
from banbury._core import NotThere, Tokeniser, Words

N_CLASSES = 3
# Short, longer than a machine word, longer than two; equal beginnings and ends; no text at all.
VOCABULARY = """a b ab ba aa aaaaaaaa aaaaaaab aaaaaaaaa aaaaaaaab baaaaaaaa longer-than-sixteen-bytes longer-than-sixteen-byteS
    longer-than-sixteen longer-than-sixteen-and-than-thirty-two-bytes é straße \U0001f600 \ud800
    a\ud800b \udfff a\0 \0 a\0b""".split()
VOCABULARY += ["", "two words", "a" * 300]


def tokeniser(pattern="given", lowercase=True, shortest=1, longest=1, stop_words=(), log=False, length=False):
    return Tokeniser(pattern, lowercase, False, shortest, longest, list(stop_words), log, length)


GIVEN = tokeniser()
WORD = tokeniser("word")


def given_texts(texts):
    """Lists of tokens as the core takes them; None is missing."""
    tokens = [token for text in texts for token in text or []]
    offsets = np.cumsum([0] + [len(text or []) for text in texts]).astype(np.int64)
    missing = np.array([text is None for text in texts], bool)
    return _core.TokenLists(tokens, offsets, missing if missing.any() else None)


def arrow(strings, dtype=np.int32, missing=()):
    """Bytes as Arrow has them, something before and after."""
    offsets = np.concatenate([[3], 3 + np.cumsum([len(s) for s in strings])]).astype(dtype)
    bits = [False, True] + [i not in missing for i in range(len(strings))]
    valid = np.packbits(np.array(bits), bitorder="little") if missing else None
    return _core.ArrowTexts(offsets, np.frombuffer(b"xyz" + b"".join(strings) + b"rest", np.uint8), valid, 2)


def codes(classes):
    return np.array(classes, np.int32)


def weighing(weights):
    """Weights as the core takes them: None, whole numbers, or doubles in parts."""
    if weights is None or all(isinstance(weight, int) for weight in weights):
        return None if weights is None else np.array(weights, np.int64)
    return _core.parts(np.array(weights, float))


def arguments(texts, classes, weights=None, by=GIVEN, threads=1):
    """Of ``count`` and ``forget``."""
    return by, given_texts(texts), codes(classes), weighing(weights), threads


def counted(texts, classes, weights=None, into=None, n_classes=N_CLASSES, by=GIVEN, threads=1):
    words = Words(n_classes, 0) if into is None else into
    return words.count(*arguments(texts, classes, weights, by, threads))


def forgotten(words, texts, classes, weights=None, by=GIVEN, threads=1):
    return words.forget(*arguments(texts, classes, weights, by, threads))


def counted_slowly(texts, classes, weights=None, **settings):
    words = naive.Words(N_CLASSES)
    words.count(texts, classes, weights, **settings)
    return words


def assert_sums(found, expected):
    """The same numbers, in as few digits and limbs as will do."""
    assert found.shape == [len(expected)]
    assert naive.from_limbs(found.limbs(), found.digits) == expected
    assert found.digits == min(n for n in (0, 18, 36) if all(naive.in_units(number, n) for number in expected))
    sizes = [int(number * 10**found.digits).bit_length() for number in expected]
    assert found.limbs().shape[-1] == 1 + max(sizes, default=0) // 64
    assert found.value.tolist() == [float(number) for number in expected]


def assert_pairs(found, names, expected):
    """The cells of these words, in this order, each rounded once."""
    starts, classes, occurrences, documents = found
    assert [array.dtype for array in found] == [np.int64, np.int32, np.float64, np.float64]
    of_word = [[c for c in range(expected.n_classes) if (name, c) in expected.cells] for name in names]
    assert starts.tolist() == np.cumsum([0, *map(len, of_word)]).tolist()
    keys = [(name, c) for name, here in zip(names, of_word, strict=True) for c in here]
    assert classes.tolist() == [c for _, c in keys]
    for which, values in enumerate([occurrences, documents]):
        assert values.tolist() == [float(expected.cells[key][which]) for key in keys]


def assert_state(state, expected):
    """Every number to the last digit, in the one form that it has."""
    names = expected.words()
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    assert bytes(state["bytes"]) == b"".join(encoded)
    assert state["ends"].tolist() == np.cumsum([len(name) for name in encoded]).tolist()
    keys = [(name, c) for name in names for c in range(expected.n_classes) if (name, c) in expected.cells]
    assert state["classes"].tolist() == [c for _, c in keys]
    assert state["starts"].tolist() == [0, *itertools.accumulate(sum(key[0] == name for key in keys) for name in names)]
    cells = [number for key in keys for number in expected.cells[key]]
    shared = {"bytes", "ends", "starts", "classes"}
    if all(number.denominator == 1 for number in expected.numbers()) and sum(expected.total(0)) < 2**32:
        assert set(state) == shared | {"occurrences", "documents", "texts"}
        assert (state["occurrences"].dtype, state["documents"].dtype) == (np.uint32, np.uint32)
        assert (state["texts"].dtype, state["texts"].tolist()) == (np.int64, expected.texts)
        assert (state["occurrences"].tolist(), state["documents"].tolist()) == (cells[::2], cells[1::2])
    else:
        assert set(state) == shared | {"parts", "texts.parts"}
        assert (state["parts"].dtype, state["parts"].shape) == (np.int64, (len(keys), 2, 3))
        assert (state["texts.parts"].dtype, state["texts.parts"].shape) == (np.int64, (expected.n_classes, 3))
        assert naive.from_limbs(state["parts"], 36) == cells
        assert naive.from_limbs(state["texts.parts"], 36) == expected.texts


def assert_equal(words, expected):
    """The store holds what its twin holds, however it is asked."""
    assert words.n_classes == expected.n_classes
    ids, names = words.in_order(), expected.words()
    assert ids.dtype == np.uint32
    assert words.words(ids) == names
    assert words.n_words == len(ids) <= words.n_ids
    assert_pairs(words.pairs(ids), names, expected)
    assert_sums(words.texts(), expected.texts)
    assert_sums(words.occurrences(), expected.total(0))
    assert_sums(words.documents(), expected.total(1))
    assert_state(words.state(), expected)


def same_bits(a, b):
    """The same arrays in the state of both."""
    a, b = a.state(), b.state()
    return a.keys() == b.keys() and all(
        a[key].dtype == b[key].dtype and a[key].shape == b[key].shape and a[key].tobytes() == b[key].tobytes()
        for key in a
    )


texts_strategy = st.lists(st.none() | st.lists(st.sampled_from(VOCABULARY), max_size=12), max_size=8)


@st.composite
def batches(draw):
    """Texts, classes, and weights: ones, whole numbers, or doubles, some of which are whole, or one part."""
    texts = draw(texts_strategy)
    n = len(texts)
    classes = draw(st.lists(st.integers(-1, N_CLASSES - 1), min_size=n, max_size=n))
    kind = draw(st.sampled_from(["ones", "whole", "real"]))
    if kind == "ones":
        return texts, classes, None
    real = st.sampled_from([0.1, 1 / 3, 0.75, 20.3, 2.0, 1e-18, 1e-17 / 3, 1e15 + 0.125, 1e16])
    values = st.integers(1, 2**40) if kind == "whole" else real | st.floats(1e-18, 1e16)
    return texts, classes, draw(st.lists(values, min_size=n, max_size=n))


dampings = st.sampled_from([{}, {}, {"log": True}, {"length": True}, {"log": True, "length": True}])


def some_of(batch, rows):
    texts, classes, weights = batch
    chosen = None if weights is None else [weights[i] for i in rows]
    return [texts[i] for i in rows], [classes[i] for i in rows], chosen


def pieces(data, rows):
    """Rows in any order, cut anywhere."""
    rows = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    return [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


# ---- counting


@given(batches(), dampings)
def test_counts_are_those_of_the_twin(batch, damping):
    assert_equal(counted(*batch, by=tokeniser(**damping)), counted_slowly(*batch, **damping))


@given(batches(), dampings, st.data())
def test_whatever_the_cut_and_the_order(batch, damping, data):
    by, words = tokeniser(**damping), Words(N_CLASSES, 0)
    for rows in pieces(data, range(len(batch[0]))):
        words = counted(*some_of(batch, rows), into=words, by=by)
    assert same_bits(words, counted(*batch, by=by))


@given(batches())
def test_the_words_that_changed_are_those_of_the_texts(batch):
    texts, classes, _ = batch
    before = counted([["b", "zz"], ["a"]], [0, 1])
    words = before.count(*arguments(*batch))
    ids = words.changed_since(before)
    assert ids.dtype == np.uint32
    of_texts = {word for text, c in zip(texts, classes, strict=True) if c >= 0 for word in text or []}
    assert sorted(words.words(ids)) == sorted(of_texts)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 1000])
def test_the_same_numbers_are_the_same_state_however_they_came(n):
    """A weight of n is n texts, and n times an nth is one wherever decimals write it."""
    for damping in ({}, {"log": True}, {"length": True}):
        by, text = tokeniser(**damping), ["a", "b", "a"]
        once = counted([text], [1], by=by)
        often = counted([text] * n, [1] * n, by=by)
        assert same_bits(often, counted([text], [1], [n], by=by))
        assert same_bits(often, counted([text], [1], [float(n)], by=by))
        assert same_bits(often, once.times(float(n))[0])
        if n in (1, 2, 10, 1000):
            assert same_bits(once, counted([text] * n, [1] * n, [1 / n] * n, by=by))
            assert same_bits(once, often.times(1 / n)[0])


@given(st.floats(0, 9e18) | st.integers(0, 10**15).map(lambda n: n / 10**9) | st.sampled_from([0.1, 0.3, 1e-18, 2e-19]))
def test_parts_of_a_weight(x):
    limbs = _core.parts(np.array([x, x]))
    assert (limbs.dtype, limbs.shape) == (np.uint64, (2, 2))
    expected = int(naive.in_parts(x) * naive.PARTS)
    assert limbs.tolist() == [[expected % 2**64, expected >> 64]] * 2


def zipf(rng, n, size=3000, longest=300):
    """Texts of words that occur as words do."""
    rank = np.arange(1, size + 1)
    names = np.array([format(i * 2654435761 % 2**32, "b")[: 3 + i % 25] + str(i) for i in range(size)])
    p = 1 / rank / (1 / rank).sum()
    return [" ".join(rng.choice(names, rng.integers(0, longest), p=p)) for _ in range(n)]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("kind", ["ones", "whole", "real"])
def test_one_thread_equals_four_bit_for_bit(kind, log):
    rng = np.random.default_rng(0)
    texts = zipf(rng, 1500)
    assert sum(map(len, texts)) > 2_000_000  # more than one chunk
    classes = rng.integers(-1, 2, len(texts)).astype(np.int32)
    real = _core.parts(rng.random(1500) + 0.1)
    weights = {"ones": None, "whole": rng.integers(1, 9, 1500), "real": real}[kind]
    by = tokeniser("word", log=log, length=log)
    found = []
    for threads in (1, 4):
        found.append(Words(2, 0).count(by, texts, classes, weights, threads))
    one, four = found
    assert same_bits(one, four)
    assert one.words(None) == four.words(None)  # numbered alike, too
    if kind == "ones" and not log:
        expected = naive.Words(2)
        expected.count([re.findall(r"\w\w+", text) for text in texts], classes.tolist())
        assert one.words(one.in_order()) == expected.words()
        assert_pairs(one.pairs(one.in_order()), expected.words(), expected)


def test_a_store_that_grows_text_by_text():
    """Cells are moved and moved together again; nothing is lost."""
    rng = np.random.default_rng(1)
    texts, n_classes = zipf(rng, 400, size=60, longest=30), 40
    classes = rng.integers(0, n_classes, len(texts)).astype(np.int32)
    once, grown = Words(n_classes, 0), Words(n_classes, 0)
    once = once.count(WORD, texts, classes, None, 1)
    for text, c in zip(texts, classes, strict=True):
        grown = grown.count(WORD, [text], codes([c]), None, 1)
    assert same_bits(once, grown)
    for text, c in zip(texts[:200], classes[:200], strict=True):
        grown = grown.forget(WORD, [text], codes([c]), None, 1)
    rest = Words(n_classes, 0)
    rest = rest.count(WORD, texts[200:], classes[200:], None, 1)
    assert same_bits(rest, grown)


def test_numbers_of_more_than_32_bits():
    texts, classes = [["a", "b", "a"], ["b"]], [0, 1]
    for weights in ([2**32 - 1, 1], [2**31, 1], [2**52, 2**52], [2**58, 2**58]):
        expected = counted_slowly(texts, classes, weights)
        assert_equal(counted(texts, classes, weights), expected)
        words = counted(texts, classes)
        words = counted(texts, classes, weights, into=words)
        assert_equal(words, expected.plus(counted_slowly(texts, classes)))
        for _ in range(3):
            words = counted([["c"]], [2], into=words)
        words = forgotten(words, texts, classes, weights)
        assert words.state()["occurrences"].dtype == np.uint32
        assert same_bits(words, counted([["c"]] * 3, [2] * 3, into=counted(texts, classes)))


@pytest.mark.parametrize("weight", [2**53, 2.0**53, 2.0**53 - 0.5])
def test_sums_that_no_int64_holds_are_refused(weight):
    words = Words(1, 0)
    batch = arguments([["a"] * 1000], [0], [weight])
    words = words.count(*batch)
    before = words
    with pytest.raises(OverflowError, match=r"2\*\*63"):
        words = words.count(*batch)
    with pytest.raises(OverflowError, match=r"2\*\*63"):
        words.plus(words)
    with pytest.raises(OverflowError, match=r"2\*\*63"):
        words.take(np.array([0, 0]))
    with pytest.raises(OverflowError, match=r"2\*\*63"):
        words.times(2.0)
    assert same_bits(words, before)
    assert_sums(words.occurrences(), [1000 * Fraction(weight)])


@pytest.mark.parametrize("weight", [2**62, 2**63 - 1, 2.0**62])
def test_what_was_counted_is_forgotten_however_much_it_is(weight):
    for text in (["a"], []):
        words = counted([text], [0], [weight])
        assert same_bits(forgotten(words, [text], [0], [weight]), Words(N_CLASSES, 0))


# ---- texts


def test_texts_of_every_kind():
    texts = ["The cat, the dog", "", "\ud800cat \udfff", "nul\0cat\0", "STRASSE Straße 東京 ﬁn", None, "x"]
    classes = codes([0, 1, 2, 0, 1, 2, 0])
    lists = [None if text is None else naive.tokens(text) for text in texts]
    expected = counted_slowly(lists, classes.tolist())
    words = Words(N_CLASSES, 0)
    words = words.count(WORD, texts, classes, None, 1)
    assert_equal(words, expected)
    encoded = [(text or "").encode("utf-8", "surrogatepass") for text in texts]
    for dtype in (np.int32, np.int64):
        words = Words(N_CLASSES, 0)
        words = words.count(WORD, arrow(encoded, dtype, missing=[5]), classes, None, 1)
        assert_equal(words, expected)


class Phrase(str):
    pass


def test_missing_texts_and_kinds_of_str():
    texts = [Phrase("cat dog"), np.str_("dog"), None, float("nan"), np.float64("nan"), "cat"]
    words = Words(1, 0)
    words = words.count(WORD, texts, codes([0] * 6), None, 1)
    assert words.words(None) == ["cat", "dog"]
    assert_sums(words.texts(), [3])


def test_invalid_utf8_counts_the_words_around_it():
    strings = [b"caf\xe9 noir", b"\xff\xfe cat\x80dog", b"\xe2\x82", b"\xed\xa0\x80 surrogate"]
    words = Words(1, 0)
    words = words.count(WORD, arrow(strings), codes([0] * 4), None, 1)
    assert words.words(words.in_order()) == ["caf", "cat", "dog", "noir", "surrogate"]
    by_characters = Tokeniser("word", True, True, 1, 3, [], False, False)
    words = Words(1, 0)
    words = words.count(by_characters, arrow(strings), codes([0] * 4), None, 1)
    assert Words.from_state(1, 0, words.state()).same(words)
    assert words.words(None)  # every one can be decoded


@pytest.mark.parametrize("shortest, longest", [(1, 1), (1, 2), (2, 2), (1, 5), (3, 4)])
def test_n_grams(shortest, longest):
    rng = np.random.default_rng(2)
    texts = [*zipf(rng, 30, size=20, longest=40), "", "one", "Of the ONE of"]
    classes = rng.integers(0, N_CLASSES, len(texts)).astype(np.int32)
    stop_words = ["of", "one"]
    words = Words(N_CLASSES, 0)
    words = words.count(tokeniser("word", True, shortest, longest, stop_words), texts, classes, None, 1)
    lists = [naive.tokens(text, "word", True, shortest, longest, stop_words) for text in texts]
    assert_equal(words, counted_slowly(lists, classes.tolist()))


@pytest.mark.parametrize(
    "texts, error, words",
    [
        (["a", 1], TypeError, "int in row 1"),
        (["a", b"a"], TypeError, "bytes in row 1"),
        ([1.5], TypeError, "float in row 0"),
        (("a",), ValueError, "texts must be a list of str or of a class of texts, got <class 'tuple'>"),
        ("abc", ValueError, "texts must be a list of str"),
        (_core.TokenLists(["a", None], np.array([0, 2]), None), TypeError, "NoneType in row 1"),
        (_core.TokenLists(["a"], np.array([0, 2]), None), ValueError, "offsets"),
        (_core.TokenLists(["a"], np.array([1, 0]), None), ValueError, "offsets"),
        (_core.TokenLists(["a"], np.array([-1, 1]), None), ValueError, "offsets"),
        (_core.TokenLists(["a"], np.zeros(0, np.int64), None), ValueError, "offsets"),
        (_core.TokenLists(["a"], np.array([0, 1]), np.zeros(2, bool)), ValueError, "missing"),
        (_core.TokenLists(["a"], np.array([0, 1], np.int32), None), ValueError, "offsets"),
        (_core.ArrowTexts(np.array([0, 9], np.int32), np.zeros(3, np.uint8), None, 0), ValueError, "offsets"),
        (
            _core.ArrowTexts(np.array([0, 3], np.int32), np.zeros(3, np.uint8), np.zeros(0, np.uint8), 0),
            ValueError,
            "bitmap",
        ),
        (["a", "b"], ValueError, "1 classes for 2 texts"),
    ],
)
def test_texts_that_are_none(texts, error, words):
    store = Words(1, 0)
    by = GIVEN if isinstance(texts, _core.TokenLists) else WORD
    with pytest.raises(error, match=words):
        store = store.count(by, texts, codes([0]), None, 1)
    assert store.n_ids == 0


def test_arguments_that_do_not_fit():
    words = Words(2, 0)
    texts = given_texts([["a"]])
    for classes, weights, threads in [
        ([2], None, 1),
        ([-2], None, 1),
        ([0], np.array([0]), 1),
        ([0], np.array([-1]), 1),
        ([0], np.array([1, 1]), 1),
        ([0], np.array([[1]]), 1),
        ([0], np.array([1.0]), 1),
        ([0], np.array([1], np.int32), 1),
        ([0], np.array([1, 0], np.uint64), 1),
        ([0], np.array([[1, 0], [1, 0]], np.uint64), 1),
        ([0], np.array([[0, 0]], np.uint64), 1),
        ([0], np.array([[0, 2**63]], np.uint64), 1),
        ([0], np.array([[2**63 * 10**18 % 2**64, 2**63 * 10**18 >> 64]], np.uint64), 1),
        ([0], _core.parts(np.array([1e-30])), 1),
        ([0], None, 0),
    ]:
        for call in (words.count, words.forget):
            with pytest.raises(ValueError):
                call(GIVEN, texts, codes(classes), weights, threads)
    for weight in (-1.0, np.nan, np.inf, 1e19):
        with pytest.raises(ValueError):
            _core.parts(np.array([weight]))
    for n_classes, n_columns in [(-1, 0), (1, -4), (1, 2**31)]:
        with pytest.raises(ValueError):
            Words(n_classes, n_columns)
    with pytest.raises(ValueError, match="the words are columns of a matrix"):
        Words(1, 3).count(WORD, ["some text"], codes([0]), None, 1)
    with pytest.raises(ValueError, match="tokens that come ready"):
        words = words.count(WORD, texts, codes([0]), None, 1)
    with pytest.raises(ValueError, match="tokens that come ready"):
        words = words.count(GIVEN, ["a"], codes([0]), None, 1)
    assert words.n_ids == 0


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (2, 3), (2, 1), (2, 0)])
def test_weights_in_parts_are_two_limbs_each(shape):
    words, weights = Words(1, 0), np.arange(1, 1 + shape[0] * shape[1], dtype=np.uint64).reshape(shape)
    with pytest.raises(ValueError):
        words = words.count(GIVEN, given_texts([["a"], ["b"]]), codes([0, 0]), weights, 1)
    assert words.n_words == 0


def test_no_texts_and_no_classes():
    words = counted([], [])
    assert_equal(words, counted_slowly([], []))
    words = counted([[], None, ["a"]], [0, 1, -1])
    assert_equal(words, counted_slowly([[], None, ["a"]], [0, 1, -1]))
    assert words.n_ids == 0
    none = counted([["a"]], [-1], n_classes=0)
    assert none.n_words == 0
    assert none.plus(none).same(none)
    assert Words.from_state(0, 0, none.state()).same(none)


# ---- the algebra


@given(batches(), batches())
def test_plus(a, b):
    one, two = counted(*a), counted(*b)
    both = one.plus(two)
    assert_equal(both, counted_slowly(*a).plus(counted_slowly(*b)))
    assert both.same(two.plus(one))
    assert_equal(one, counted_slowly(*a))
    assert both.words(np.arange(one.n_ids, dtype=np.uint32)) == one.words(None)


@given(batches(), batches(), dampings, dampings)
def test_minus_undoes_plus(a, b, damping, other):
    one, two = counted(*a, by=tokeniser(**damping)), counted(*b, by=tokeniser(**other))
    assert same_bits(one.plus(two).minus(two), one)
    assert same_bits(one.plus(two).minus(one), two)
    assert one.minus(one).n_ids == 0
    assert same_bits(one.minus(one), Words(N_CLASSES, 0))


@given(batches(), batches(), dampings)
def test_minus_of_what_is_not_there(a, b, damping):
    by = tokeniser(**damping)
    one, two = counted(*a, by=by), counted(*b, by=by)
    slow_one, slow_two = counted_slowly(*a, **damping), counted_slowly(*b, **damping)
    try:
        expected = slow_one.minus(slow_two)
    except naive.NotThere:
        with pytest.raises(NotThere):
            one.minus(two)
    else:
        assert_equal(one.minus(two), expected)
    assert_equal(one, slow_one)


@given(batches(), dampings, st.sampled_from([0.0, 1.0, 2.0, 0.5, 1.5, 0.1, 1 / 3, 1e-5, 1e-18, 1e-19, 2.0**60, 7.0]))
def test_times(batch, damping, factor):
    words, slowly = counted(*batch, by=tokeniser(**damping)), counted_slowly(*batch, **damping)
    try:
        expected, lossless = slowly.times(factor)
    except naive.TooMany:
        with pytest.raises(OverflowError, match=r"2\*\*63"):
            words.times(factor)
        return
    found, exact = words.times(factor)
    assert_equal(found, expected)
    assert exact is lossless
    back = {1.0: 1.0, 2.0: 0.5, 0.5: 2.0, 0.1: 10.0, 1e-5: 1e5}.get(factor)
    if exact and back:
        again, exact = found.times(back)
        assert exact
        assert same_bits(again, words)


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf"), -0.5, 1e301, 2.0**63])
def test_factors_that_are_none(factor):
    words = counted([["a"]], [0])
    with pytest.raises(ValueError, match="factor"):
        words.times(factor)


@given(batches(), batches())
def test_same(a, b):
    one, two = counted(*a), counted(*b)
    assert one.same(two) == counted_slowly(*a).same(counted_slowly(*b)) == same_bits(one, two)
    assert one.same(counted(*a)) and one.same(one)


def test_same_is_by_name_and_to_the_last_part():
    assert counted([["a", "b"]], [0]).same(counted([["b", "a"]], [0]))
    assert not counted([["a", "b"]], [0]).same(counted([["b", "a"]], [1]))
    assert not counted([["a"]], [0]).same(counted([["a", "a"]], [0]))
    assert not counted([["a"]], [0]).same(counted([["a"], []], [0, 0]))
    assert not counted([["a"]], [0]).same(counted([["c"]], [0]))
    third = counted([["a"]], [0], [1 / 3])
    assert third.same(counted([["a"]], [0], [1 / 3]))
    assert not third.same(counted([["a"]], [0], [1 / 3 + 1e-16]))
    assert not third.same(counted([["a"]], [0], [1 / 3 + 1e-10]))
    more = counted([["a"]], [0], [1e-18], into=third)
    assert not third.same(more) and not more.same(third)
    less = forgotten(more, [["a"]], [0], [1e-18])
    assert third.same(less) and less.same(third)
    assert counted([["a"]], [0]).same(counted([["a"]] * 10, [0] * 10, [0.1] * 10))
    assert not counted([["a"]], [0]).same(counted([["a"]], [0], n_classes=4))
    assert not counted([["a"]], [0]).same(Words(N_CLASSES, 8))


@given(batches(), st.lists(st.integers(0, N_CLASSES - 1), max_size=4))
def test_take(batch, index):
    found = counted(*batch).take(np.array(index, np.int64))
    assert_equal(found, counted_slowly(*batch).take(index))
    assert found.n_words == found.n_ids


@given(batches(), st.permutations(range(5)))
def test_place(batch, order):
    index = order[:N_CLASSES]
    words = counted(*batch)
    found = words.place(np.array(index, np.int64), 5)
    assert_equal(found, counted_slowly(*batch).place(index, 5))
    assert found.words(None) == words.words(None)
    assert found.take(np.array(index, np.int64)).same(words)


@given(batches(), st.lists(st.integers(0, 2), min_size=N_CLASSES, max_size=N_CLASSES))
def test_classes_that_are_placed_together_are_added_up(batch, index):
    words = counted(*batch)
    found = words.place(np.array(index, np.int64), 3)
    assert_equal(found, counted_slowly(*batch).place(index, 3))
    assert found.words(None) == words.words(None)


def test_indexes_of_classes_that_are_none():
    words = counted([["a"]], [0])
    for index, n in [([0, 1], 3), ([0, 1, 3], 3), ([0, -1, 2], 3), ([0, 1, 2], 2)]:
        with pytest.raises(ValueError, match="index"):
            words.place(np.array(index), n)
    for index in ([3], [-1]):
        with pytest.raises(ValueError, match="index"):
            words.take(np.array(index))
    for other in (Words(2, 0), Words(3, 16)):
        with pytest.raises(ValueError, match="same"):
            words.plus(other)
        with pytest.raises(ValueError, match="same"):
            words.minus(other)


@given(batches(), batches())
def test_a_change_leaves_the_words_before_as_they_were(a, b):
    before = counted(*a)
    words = counted(*b, into=before)
    assert_equal(before, counted_slowly(*a))
    assert_equal(words, counted_slowly(*a).plus(counted_slowly(*b)))


@given(st.lists(batches(), min_size=1, max_size=4), st.data())
def test_whatever_is_made_of_words_leaves_them_as_they_were(kinds, data):
    """Values that share a base, in any order of being made, read and dropped."""
    values = [(counted(*kinds[0]), counted_slowly(*kinds[0]))]
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(values) - 1))
        batch = data.draw(st.sampled_from(kinds))
        (words, slow), more = values[at], counted_slowly(*batch)
        what = data.draw(st.sampled_from(["count", "plus", "forget", "minus", "read", "drop"]))
        if what in ("count", "plus"):
            made = counted(*batch, into=words) if what == "count" else words.plus(counted(*batch))
            values.append((made, slow.plus(more)))
        elif what in ("forget", "minus"):
            try:
                left = slow.minus(more, plain=True)
                values.append((forgotten(words, *batch) if what == "forget" else words.minus(counted(*batch)), left))
            except (naive.NotThere, NotThere):
                pass
        elif what == "read":
            assert_equal(words, slow)
        elif len(values) > 1:
            del values[at], words
    for words, slow in values:
        assert_equal(words, slow)


@pytest.mark.parametrize("weight", [None, 0.3])
def test_few_words_are_added_to_many_where_these_are(weight):
    texts = zipf(np.random.default_rng(8), 200)
    weights = None if weight is None else _core.parts(np.full(200, weight))
    some, every = codes(np.arange(200) % 2), codes([0, 1, 0])
    many = Words(2, 0).count(WORD, texts, some, None, 1)
    few = Words(2, 0).count(
        WORD, ["new " + texts[0][:40], "", "never"], every, None if weights is None else weights[:3], 1
    )
    both = many.plus(few)
    assert sorted(both.words(both.changed_since(many))) == sorted(few.words(None))
    assert same_bits(both, few.plus(many))
    assert same_bits(many, Words(2, 0).count(WORD, texts, some, None, 1))
    assert same_bits(both.minus(few), many)


def test_words_that_change_all_the_time_leave_behind_those_that_somebody_kept():
    texts = zipf(np.random.default_rng(6), 300)
    first = words = Words(1, 0).count(WORD, texts[:1], codes([0]), None, 1)
    for text in texts[1:]:
        before = words
        words = words.count(WORD, [text], codes([0]), None, 1)
    assert words.changed_since(first) is None
    assert words.changed_since(before).tolist() == sorted({*words.find(naive.tokens(texts[-1])).tolist()})
    assert same_bits(first, Words(1, 0).count(WORD, texts[:1], codes([0]), None, 1))
    assert same_bits(words, Words(1, 0).count(WORD, texts, codes([0] * 300), None, 1))


# ---- forgetting


@given(batches(), batches(), dampings, dampings)
def test_forget_is_the_twin_of_count(a, b, damping, other):
    by = tokeniser(**damping), tokeniser(**other)
    words, kept = counted(*a, by=by[0]), counted(*a, by=by[0])
    words = counted(*b, into=words, by=by[1])
    both = counted_slowly(*a, **damping).plus(counted_slowly(*b, **other))
    assert_equal(words, both)
    texts, classes, _ = b
    if other or not damping:  # else words may be left that count less than once
        before = words
        words = before.forget(*arguments(*b, by=by[1]))
        ids = words.changed_since(before)
        of_texts = {word for text, c in zip(texts, classes, strict=True) if c >= 0 for word in text or []}
        assert sorted(words.words(ids)) == sorted(of_texts)
        assert words.same(kept)
        assert same_bits(words, kept)
        assert_equal(words, counted_slowly(*a, **damping))


@given(batches(), dampings, st.data())
def test_what_is_left_is_what_was_never_forgotten_whatever_the_pieces(batch, damping, data):
    """Of texts in any order, and forgotten in any pieces, the arrays of the rest alone; at last those of nothing."""
    by, every = tokeniser(**damping), range(len(batch[0]))
    words = Words(N_CLASSES, 0)
    for rows in pieces(data, every):
        words = counted(*some_of(batch, rows), into=words, by=by)
    for left in (data.draw(st.lists(st.sampled_from(every), unique=True)) if every else [], []):
        gone = [row for row in every if row not in left]
        for rows in pieces(data, gone):
            words = forgotten(words, *some_of(batch, rows), by=by)
        subtracted = words
        for rows in pieces(data, gone):
            subtracted = subtracted.plus(counted(*some_of(batch, rows), by=by))
        fresh = counted(*some_of(batch, left), by=by)
        assert same_bits(words, fresh)
        for rows in pieces(data, gone):
            subtracted = subtracted.minus(counted(*some_of(batch, rows), by=by))
        assert same_bits(subtracted, fresh)
        every = left


@given(st.lists(batches(), max_size=4), st.data())
def test_batches_of_every_kind_leave_no_trace_in_one_another(kinds, data):
    """Ones, whole and fractional weights in one store: what is left is held as if the others had never been."""
    words = Words(N_CLASSES, 0)
    for batch in kinds:
        words = counted(*batch, into=words)
    left = data.draw(st.permutations(range(len(kinds))))
    while left:
        words = forgotten(words, *kinds[left.pop()])
        fresh = Words(N_CLASSES, 0)
        for i in left:
            fresh = counted(*kinds[i], into=fresh)
        assert same_bits(words, fresh)
    assert words.n_words == 0


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("kind", ["ones", "whole", "real"])
def test_many_texts_are_forgotten_to_the_bit(kind, log, threads):
    rng = np.random.default_rng(7)
    n = 600
    texts, classes = zipf(rng, n), rng.integers(-1, N_CLASSES, n).astype(np.int32)
    real = _core.parts(rng.gamma(1.0, 3.0, n) + 1e-9)
    weights = {"ones": None, "whole": rng.integers(1, 9, n), "real": real}[kind]
    by, piece = tokeniser("word", log=log, length=log), rng.integers(0, 4, n)

    def batch(rows):
        at = np.flatnonzero(rows)
        chosen = None if weights is None else weights[at]
        return by, [texts[i] for i in at], classes[at], chosen, threads

    words, fresh = Words(N_CLASSES, 0), Words(N_CLASSES, 0)
    words = words.count(*batch(piece >= 0))
    for i in (2, 0, 3):
        words = words.forget(*batch(piece == i))
    fresh = fresh.count(*batch(piece == 1))
    assert same_bits(words, fresh)
    words = words.forget(*batch(piece == 1))
    assert same_bits(words, Words(N_CLASSES, 0))


@given(batches(), batches(), dampings)
def test_forgetting_what_is_not_there_changes_nothing(a, b, damping):
    by = tokeniser(**damping)
    words, before = counted(*a, by=by), counted(*a, by=by)
    try:
        expected = counted_slowly(*a, **damping).minus(counted_slowly(*b, **damping), plain=not damping)
    except naive.NotThere:
        expected = None
    try:
        words = forgotten(words, *b, by=by)
    except NotThere:
        assert expected is None
        assert same_bits(words, before)
    else:
        # It may not show: words of other texts are not looked at.
        if expected is not None:
            assert_equal(words, expected)
            assert same_bits(words, before.minus(counted(*b, by=by)))
        words = counted(*b, into=words, by=by)
        assert same_bits(words, before)


@pytest.mark.parametrize(
    "texts, classes, args",
    [
        ([["a", "c"]], [0], ("c", 0, -1)),
        ([["a"], ["zz", "zz"]], [0, 1], ("zz", 1, -2)),
        ([["a", "a", "a"]], [0], ("a", 0, -1)),
        ([["b"]], [1], ("b", 1, -1)),
        ([[]], [2], (None, 2, -1)),
        ([["a"]], [0], ("a", 0, -1)),  # an occurrence without a document
        ([[], []], [0, 0], (None, 0, -3)),  # occurrences without a text
    ],
)
def test_what_is_not_there_is_named(texts, classes, args):
    words = counted([["a", "b", "a"], [], []], [0, 0, 1])
    with pytest.raises(NotThere) as caught:
        words = words.forget(GIVEN, given_texts(texts), codes(classes), None, 1)
    assert caught.value.args == args
    assert isinstance(caught.value, ValueError)


def test_what_is_not_there_of_fractional_sums():
    words = counted([["a"]], [0], [0.5])
    before = words
    for weight in (0.6, 0.5 + 1e-8, 0.5 + 1e-12, 0.5 + 2**-53, 1.5):
        with pytest.raises(NotThere) as caught:
            words = forgotten(words, [["a"]], [0], [weight])
        assert caught.value.args == (None, 0, float(Fraction(1, 2) - naive.in_parts(weight)))
        assert same_bits(words, before)
    one_part_more = np.array([[5 * 10**17 + 1, 0]], np.uint64)
    with pytest.raises(NotThere) as caught:
        words = words.forget(GIVEN, given_texts([["a"]]), codes([0]), one_part_more, 1)
    assert caught.value.args == (None, 0, -1e-18)
    assert same_bits(words, before)
    one_part_less = np.array([[5 * 10**17 - 1, 0]], np.uint64)
    words = words.forget(GIVEN, given_texts([["a"]]), codes([0]), one_part_less, 1)
    assert_equal(words, counted_slowly([["a"]], [0], [1e-18]))
    words = forgotten(words, [["a"]], [0], [1e-18])
    assert words.n_words == 0
    assert_sums(words.texts(), [0, 0, 0])
    assert same_bits(words, Words(N_CLASSES, 0))


def test_forgotten_words_leave_no_trace():
    words = counted([["stays"], ["secret", "stays"]], [0, 0])
    words = words.forget(GIVEN, given_texts([["secret", "stays"]]), codes([0]), None, 1)
    assert (words.n_words, words.n_ids) == (1, 2)
    assert words.words(words.in_order()) == ["stays"]
    assert bytes(words.state()["bytes"]) == b"stays"
    assert words.same(counted([["stays"]], [0])) and counted([["stays"]], [0]).same(words)
    assert words.take(np.arange(N_CLASSES)).n_ids == 1
    assert words.minus(Words(N_CLASSES, 0)).n_ids == 1
    again = words.count(GIVEN, given_texts([["secret"]]), codes([1]), None, 1)
    assert words.words(again.changed_since(words)) == ["secret"]
    assert again.n_words == 2


# ---- words and their numbers


def test_words_are_numbered_as_they_come():
    words = counted([["b", "a", "b"], ["c", "a"]], [0, 1])
    assert words.words(None) == ["b", "a", "c"]
    assert words.words(np.array([2, 0, 2], np.uint32)) == ["c", "b", "c"]
    assert words.find(["c", "x", "", "b"]).tolist() == [2, -1, -1, 0]
    assert words.in_order().tolist() == [1, 0, 2]
    for ids in ([3], [2**32 - 1]):
        for call in (words.words, words.pairs):
            with pytest.raises(ValueError, match="3 ids"):
                call(np.array(ids, np.uint32))
    with pytest.raises(ValueError, match="uint32"):
        words.words(np.array([0]))
    with pytest.raises(TypeError, match="NoneType in row 1"):
        words.find(["a", None])


@given(st.lists(st.text(max_size=20) | st.sampled_from(VOCABULARY)))
def test_every_word_is_found_and_comes_back(names):
    words = counted([names], [0])
    distinct = list(dict.fromkeys(names))
    assert words.words(None) == distinct
    assert words.find(names).tolist() == [distinct.index(name) for name in names]
    assert words.words(words.in_order()) == sorted(distinct, key=lambda word: word.encode("utf-8", "surrogatepass"))


def test_with_words():
    words = counted([["b", "a"]], [0])
    more = words.with_words(["c", "a", "\ud800", "c", ""])
    assert more.words(None) == ["b", "a", "c", "\ud800", ""]
    assert (more.n_words, more.n_ids, words.n_ids) == (2, 5, 2)
    assert more.same(words)
    starts, *_ = more.pairs(None)
    assert starts.tolist() == [0, 1, 2, 2, 2, 2]
    more = counted([["c"]], [1], into=more)
    assert_equal(more, counted_slowly([["b", "a"], ["c"]], [0, 1]))
    assert words.with_words(["zz"]).plus(more).same(more.plus(words))


def test_pairs_of_chosen_words():
    words = counted([["b", "a", "b"], ["a"], ["c"]], [0, 1, 2])
    starts, classes, occurrences, documents = words.pairs(np.array([1, 0, 1], np.uint32))
    assert starts.tolist() == [0, 2, 3, 5]
    assert classes.tolist() == [0, 1, 0, 0, 1]
    assert occurrences.tolist() == [1, 1, 2, 1, 1]
    assert documents.tolist() == [1, 1, 1, 1, 1]
    assert [len(a) for a in words.pairs(np.zeros(0, np.uint32))] == [1, 0, 0, 0]


@pytest.mark.parametrize("threads", [1, 4])
def test_encode(threads):
    rng = np.random.default_rng(3)
    texts = [*zipf(rng, 600), None, ""]
    words = Words(1, 0)
    words = words.count(WORD, texts[:20], codes([0] * 20), None, 1)
    offsets, found = words.encode(WORD, texts, threads)
    assert (offsets.dtype, found.dtype) == (np.int64, np.int32)
    assert offsets[0] == 0 and len(offsets) == len(texts) + 1
    lists = [naive.tokens(text or "") for text in texts]
    assert np.diff(offsets).tolist() == [len(tokens) for tokens in lists]
    flat = [token for tokens in lists for token in tokens]
    assert found.tolist() == words.find(flat).tolist()
    assert -1 in found


# ---- columns


def test_columns_have_names():
    words = Words(1, 64).with_columns(3)
    assert (words.n_columns, Words(1, 0).n_columns) == (64, 0)
    assert words.words(None) == ["#0", "#1", "#2"]
    assert words.find(["#64", "#07", "#-1", "#", "17", "#+1", "#x", "#3"]).tolist() == [-1] * 8
    assert words.with_words(["#63"]).find(["#63"]).tolist() == [3]
    with pytest.raises(ValueError, match="none is named"):
        words.with_words(["#64"])


# ---- the state


@given(batches(), dampings)
def test_state_there_and_back(batch, damping):
    words = counted(*batch, by=tokeniser(**damping))
    again = Words.from_state(N_CLASSES, 0, words.state())
    assert_equal(again, counted_slowly(*batch, **damping))
    assert same_bits(again, words)
    assert again.n_words == again.n_ids
    assert again.words(None) == words.words(words.in_order())


def hostile():
    """Each array of a state, spoiled in one way."""
    words = counted([["a", "bb", "longer than eight"], ["bb"], ["é"]], [0, 1, 1])
    state = words.state()
    parted = words.times(0.5)[0].state()

    def spoil(name, change, of=state):
        array = of[name].copy()
        array = change(array)
        return {**of, name: array}

    def put(*pairs):
        def change(array):
            for at, value in pairs:
                array.flat[at] = value
            return array

        return change

    for name in state:
        yield f"no {name}", {key: array for key, array in state.items() if key != name}
        yield f"short {name}", spoil(name, lambda array: array[:-1])
        yield f"long {name}", spoil(name, lambda array: np.append(array, array[-1:]))
        yield f"float {name}", spoil(name, lambda array: array.astype(float))
        yield f"deep {name}", spoil(name, lambda array: array[None])
        yield f"list {name}", {**state, name: state[name].tolist()}
    yield "more", {**state, "more": np.zeros(1)}
    yield "number", {**state, 1: np.zeros(1)}
    yield "ends descend", spoil("ends", put((0, 3), (1, 1)))
    yield "ends negative", spoil("ends", put((0, -1)))
    yield "ends beyond", spoil("ends", put((3, 99)))
    yield "words out of order", spoil("bytes", put((0, ord("z"))))
    yield "words twice", spoil("ends", put((0, 0), (1, 0)))
    yield "not UTF-8", spoil("bytes", put((-1, 0x20)))
    yield "cut in a character", spoil("ends", put((2, 21)))
    yield "starts negative", spoil("starts", put((0, -1)))
    yield "starts late", spoil("starts", put((0, 1)))
    yield "starts descend", spoil("starts", put((1, 4), (2, 2)))
    yield "starts beyond", spoil("starts", put((-1, 99)))
    yield "word without cells", spoil("starts", put((1, 0)))
    yield "class beyond", spoil("classes", put((0, 3)))
    yield "classes twice", spoil("classes", put((1, 1)))
    yield "classes descend", spoil("classes", put((1, 2)))
    yield "no documents", spoil("documents", put((0, 0)))
    yield "more documents than occurrences", spoil("documents", put((0, 2)))
    yield "more documents than texts", {**spoil("documents", put((0, 9))), "occurrences": np.full(5, 9, np.uint32)}
    yield "wide for no reason", {**state, **{key: state[key].astype(np.int64) for key in ("occurrences", "documents")}}
    yield "one of them wide", spoil("documents", lambda array: array.astype(np.int64))
    yield "too many for 32 bits", spoil("occurrences", put(*[(i, 2**32 - 1) for i in range(5)]))
    wide = np.full(5, 2**62)
    yield "too many for 64 bits", {**state, "occurrences": wide, "documents": np.ones(5, np.int64)}
    yield "negative", {**state, "occurrences": -wide, "documents": np.ones(5, np.int64)}
    yield "texts negative", spoil("texts", put((2, -1)))
    yield "texts overflow", spoil("texts", put((0, 2**62), (1, 2**62)))
    yield "no texts", spoil("texts", put((0, 0)))
    for name in ("parts", "texts.parts"):
        yield f"no {name}", {key: array for key, array in parted.items() if key != name}
        yield f"{name} beside whole numbers", {**state, name: parted[name]}
        yield f"{name} short", spoil(name, lambda array: array[:-1], parted)
        yield f"{name} long", spoil(name, lambda array: np.concatenate([array, array[-1:]]), parted)
        yield f"{name} flat", spoil(name, lambda array: array.ravel(), parted)
        yield f"{name} thin", spoil(name, lambda array: array[..., :2], parted)
        yield f"{name} deep", spoil(name, lambda array: array[None], parted)
        for shape in {"parts": [(5, 3, 2), (1, 10, 3), (5, 6, 1)], "texts.parts": [(1, 9), (9, 1)]}[name]:
            yield f"{name} {shape}", spoil(name, lambda array, shape=shape: array.reshape(shape), parted)
        yield f"{name} unsigned", spoil(name, lambda array: array.astype(np.uint64), parted)
        yield f"{name} float", spoil(name, lambda array: array.astype(float), parted)
        yield f"{name} list", {**parted, name: parted[name].tolist()}
        yield f"{name} negative", spoil(name, put((2, -1)), parted)
        yield f"{name} too large", spoil(name, put((2, 2**62)), parted)
        yield f"{name} none", spoil(name, np.zeros_like, parted)
    for name in ("occurrences", "documents", "texts"):
        yield f"{name} beside parts", {**parted, name: state[name]}
    yield "parts without occurrences", spoil("parts", put((0, 0), (1, 0), (2, 0)), parted)
    yield "parts without documents", spoil("parts", put((3, 0), (4, 0), (5, 0)), parted)
    yield "more documents than texts, in parts", spoil("parts", put((3, int(parted["parts"].flat[3]) + 1)), parted)
    texts = np.array([[10**36 % 2**64, 10**36 >> 64, 0]] * 3, np.uint64).astype(np.int64)
    ones = np.broadcast_to(texts[0], parted["parts"].shape).copy()
    yield "parts that are whole", {**parted, "parts": ones, "texts.parts": texts}
    yield "weights", {**state, "weights": np.ones((5, 2, 3))}


@pytest.mark.parametrize("state", [pytest.param(state, id=name) for name, state in hostile()])
def test_hostile_states_are_refused(state):
    with pytest.raises(ValueError):
        Words.from_state(N_CLASSES, 0, state)


def test_hostile_settings_of_a_state():
    state = counted([["a"]], [0]).state()
    for n_classes, n_columns in [(2, 0), (4, 0), (-1, 0), (3, 5), (3, 16), (2**40, 0)]:
        with pytest.raises(ValueError):
            Words.from_state(n_classes, n_columns, state)
    numbered = {**state, "bytes": np.frombuffer(b"#15", np.uint8), "ends": np.array([3])}
    assert Words.from_state(3, 16, numbered).words(None) == ["#15"]
    for name in ("#16", "#01", "x", "#-1", ""):
        bytes_ = np.frombuffer(name.encode(), np.uint8)
        with pytest.raises(ValueError):
            Words.from_state(3, 16, {**state, "bytes": bytes_, "ends": np.array([len(bytes_)])})


@given(st.data())
def test_spoiled_states_are_refused_or_whole(data):
    """Whatever is written into the arrays, a store that is made of them works."""
    words = counted([["a", "bb", "longer than eight"], ["bb"], ["é"]], [0, 1, 1])
    state = data.draw(st.sampled_from([words.state(), words.times(0.5)[0].state()])).copy()
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from(sorted(state)))
        array = state[name] = state[name].copy()
        at = data.draw(st.integers(0, array.size - 1))
        if array.dtype == float:
            array.flat[at] = data.draw(st.floats())
        else:
            info = np.iinfo(array.dtype)
            array.flat[at] = data.draw(st.integers(info.min, info.max) | st.integers(0, 5))
    try:
        found = Words.from_state(N_CLASSES, 0, state)
    except ValueError:
        return
    assert found.find(found.words(None)).tolist() == list(range(found.n_ids))
    assert same_bits(Words.from_state(N_CLASSES, 0, found.state()), found)
    assert found.minus(found).n_words == 0
    if (
        2 * max(math.ceil(sum(naive.from_limbs(n.limbs(), n.digits))) for n in (found.texts(), found.occurrences()))
        < 2**63
    ):
        assert same_bits(found.plus(found).minus(found), found)
    else:
        with pytest.raises(ValueError, match=r"2\*\*63"):
            found.plus(found)


# ---- threads of Python


def test_two_threads_may_use_one_store():
    rng = np.random.default_rng(5)
    texts, n = [*zipf(rng, 40), "Ünïcödé"], 20
    classes, failures = codes([0] * len(texts)), []
    words = Words(1, 0).count(WORD, texts, classes, None, 1)

    def work(call):
        try:
            for _ in range(n):
                call()
        except Exception as error:
            failures.append(error)

    calls = [
        lambda: words.count(WORD, texts, classes, None, 2),
        lambda: words.count(WORD, texts, classes, None, 1),
        lambda: words.plus(words),
        lambda: (words.state(), words.count(WORD, texts, classes, None, 1), words.n_words),
    ]
    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    assert same_bits(words, Words(1, 0).count(WORD, texts, classes, None, 1))


def test_weights_are_summed_exactly():
    words = counted([["a"]] * 3, [0] * 3, [0.1, 1e16, 1 / 3])
    words = forgotten(words, [["a"]], [0], [1e16])
    _, _, occurrences, documents = words.pairs(None)
    expected = Fraction(1, 10) + Fraction(333333333333333315, 10**18)
    assert occurrences.tolist() == documents.tolist() == [float(expected)]
    assert_sums(words.occurrences(), [expected, 0, 0])
    assert same_bits(words, counted([["a"]] * 2, [0] * 2, [1 / 3, 0.1]))


def test_a_damped_token_counts_parts_of_a_token_times_parts_of_a_row():
    words = counted([["a", "b", "a"]], [0], [1 / 3], by=tokeniser(log=True))
    third, two, one = (naive.in_parts(x) for x in (1 / 3, math.log1p(2), math.log1p(1)))
    assert naive.from_limbs(words.state()["parts"], 36) == [two * third, third, one * third, third]
    assert_sums(words.occurrences(), [(two + one) * third, 0, 0])
    assert words.occurrences().digits == 36
    assert words.documents().digits == words.texts().digits == 18
