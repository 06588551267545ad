"""Weights of words, and the scores of texts that read them, against their slow twins in naive_weights.py."""

import math
import re
import threading

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import naive_core
import naive_weights as naive
from banbury import _core
from kernel_parts import score

CLASSES = [1, 2, 7, 8, 16, 20, 30, 39, 40, 65, 130]
WANTS = ["log_joint", "posterior", "log_posterior", "class", "parts"]
WORDS = [f"word{i}" for i in range(12)]
STRANGE = ["strange", "außer", "слово", "𝔽𝔽"]
MODES = ["plain", "once", "log", "length", "log length", "polya", "polya once"]


def numbers(rng, n, mode, never):
    """Weights, or balls of an urn; some at -inf, or 0."""
    values = rng.gamma(1.0, 3.0, n) if mode.startswith("polya") else rng.normal(size=n) * 4
    lowest = 0.0 if mode.startswith("polya") else -math.inf
    return np.where(rng.random(n) < (0.3 if never else 0.0), lowest, values)


def pairs(rng, n, n_classes, share, mode, never):
    """starts, classes and values of n words, with pairs in that share of the classes."""
    there = rng.random((n, n_classes)) < share
    starts = np.concatenate([[0], there.sum(axis=1).cumsum()])
    return starts, np.nonzero(there)[1].astype(np.int32), numbers(rng, starts[-1], mode, never)


def random_rows(rng, ids, n_classes, mode="plain", share=0.1, never=False, scaled=False):
    """Arguments of ``set``."""
    n = len(ids)
    scale = rng.choice([0.0, 0.5, 1.0, 3.0], n) if scaled else None
    common = numbers(rng, n, mode, never)
    return np.asarray(ids, np.uint32), common, scale, *pairs(rng, n, n_classes, share, mode, never)


def same_rows(found, expected, ids):
    return all(np.array_equal(a, b) for a, b in zip(found.rows(ids), expected.rows(ids), strict=True))


@given(data=st.data())
def test_rows_are_set_again_skipped_and_copied(data):
    n_classes = data.draw(st.sampled_from(CLASSES))
    never, scaled = data.draw(st.booleans()), data.draw(st.booleans())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    default = numbers(rng, n_classes, "plain", never)
    found, expected = _core.Weights(n_classes, default), naive.Weights(n_classes, default)
    everything = np.append(np.arange(30, dtype=np.uint32), np.uint32(2**32 - 1))
    copies = []
    some = st.lists(st.integers(0, 24), max_size=8)
    for step in data.draw(st.lists(st.sampled_from(["set", "set", "set", "skip", "copy"]), max_size=12)):
        ids = np.array(data.draw(some), np.uint32)
        if step == "copy":
            copies.append((found.copy(), expected.copy()))
        elif step == "skip":
            found.skip(ids)
            expected.skip(ids)
        else:
            rows = random_rows(rng, ids, n_classes, "plain", rng.random(), never, scaled)
            found.set(*rows)
            expected.set(*rows)
    for one, other in [(found, expected), *copies]:
        assert same_rows(one, other, everything)


def test_a_word_that_grows_pair_by_pair():
    n_classes = 200
    found, expected = _core.Weights(n_classes, np.zeros(n_classes)), naive.Weights(n_classes, np.zeros(n_classes))
    ids = np.arange(70, dtype=np.uint32)
    for n in [*range(100), *range(100, 0, -7)]:
        for word in ids[n % 3 :: 3]:
            classes = np.arange(n, dtype=np.int32)
            row = np.array([word]), np.array([-1.0]), None, np.array([0, n]), classes, np.full(n, float(word + n))
            found.set(*row)
            expected.set(*row)
    assert same_rows(found, expected, ids)


def test_copies_may_change_while_others_read():
    n_classes, rng = 50, np.random.default_rng(1)
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    ids = np.arange(2000, dtype=np.uint32)
    weights.set(*random_rows(rng, ids, n_classes))
    frozen = weights.copy()
    before = frozen.rows(ids)

    def write():
        for _ in range(20):
            weights.set(*random_rows(np.random.default_rng(2), ids, n_classes))

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert all(np.array_equal(a, b) for a, b in zip(frozen.rows(ids), before, strict=True))
    for thread in threads:
        thread.join()
    expected = naive.Weights(n_classes, np.zeros(n_classes))
    expected.set(*random_rows(np.random.default_rng(2), ids, n_classes))
    assert same_rows(weights, expected, ids)


# ---- texts


def tokeniser(mode="plain", pattern="word"):
    return _core.Tokeniser(pattern, True, False, 1, 1, [], "log" in mode, "length" in mode)


def tokens_of(text):
    return None if text is None else re.findall(r"\b\w\w+\b", text.lower())


def as_list(texts):
    return texts


def as_arrow(offset_type):
    def lay(texts):
        encoded = [(text or "").encode() for text in texts]
        offsets = np.cumsum([0, *map(len, encoded)]).astype(offset_type)
        valid = np.packbits([False] * 3 + [text is not None for text in texts], bitorder="little")
        return _core.ArrowTexts(offsets, np.frombuffer(b"".join(encoded), np.uint8), valid, 3)

    return lay


def as_tokens(texts):
    tokens = [tokens_of(text) or [] for text in texts]
    offsets = np.cumsum([0, *map(len, tokens)])
    missing = np.array([text is None for text in texts], bool)
    return _core.TokenLists([token for text in tokens for token in text], offsets, missing)


LAYOUTS = {"list": as_list, "arrow": as_arrow(np.int32), "large arrow": as_arrow(np.int64), "tokens": as_tokens}


def random_texts(rng, n, most=30):
    """Texts of known and unknown words, some of them empty or missing, some without any known word."""

    def text():
        if rng.random() < 0.1:
            return None
        known = [] if rng.random() < 0.1 else [w.title() for w in WORDS]
        return " - ".join(rng.choice([*known, *STRANGE], rng.integers(0, most)))

    return [text() for _ in range(n)]


class Case:
    """A 'words' part and its twin."""

    def __init__(self, rng, n_classes, mode, texts, layout="list", share=0.2, never=False, scaled=False, base=True):
        self.texts, self.n_classes, self.mode = texts, n_classes, mode
        default = numbers(rng, n_classes, mode, never)
        self.words = _core.Words(n_classes, 0).with_words(WORDS)
        self.ids = dict(zip(WORDS, self.words.find(WORDS).tolist(), strict=True))
        self.weights, self.twin = _core.Weights(n_classes, default), naive.Weights(n_classes, default)
        chosen = rng.permutation([self.ids[word] for word in WORDS[1:]])
        for ids in (chosen[:6], chosen[3:]):
            rows = random_rows(rng, ids, n_classes, mode, share if ids is chosen else rng.random(), never, scaled)
            self.weights.set(*rows)
            self.twin.set(*rows)
        self.base = rng.normal(size=n_classes) - 5 if base and "polya" not in mode else None
        self.constant = numbers(rng, n_classes, "plain", never)
        self.polya = rng.gamma(2.0, 50.0, n_classes) if "polya" in mode else None
        self.once = "once" in mode
        made = tokeniser(mode, "given" if layout == "tokens" else "word")
        self.part = ("words", LAYOUTS[layout](texts), made, self.words, self.weights, self.base, self.constant)
        self.part += (self.once, self.polya)
        self.prior = np.log(rng.dirichlet(np.ones(n_classes)))

    def each(self):
        """(n, 1, C) log-likelihoods."""
        rest = (self.base, self.constant, "log" in self.mode, "length" in self.mode, self.once, self.polya)
        rows = [naive.log_likelihood(tokens_of(text), self.ids, self.twin, *rest) for text in self.texts]
        return np.array(rows).reshape(len(rows), 1, self.n_classes)


def assert_score(found, expected):
    assert found[1] == expected[1]
    assert found[0].shape == expected[0].shape
    assert not np.isnan(found[0]).any()
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-11)


@given(
    st.integers(0, 2**32),
    st.sampled_from(CLASSES),
    st.sampled_from(MODES),
    st.sampled_from(list(LAYOUTS)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_scores_of_texts(seed, n_classes, mode, layout, never, scaled, base):
    rng = np.random.default_rng(seed)
    texts = random_texts(rng, int(rng.integers(0, 9)))
    case = Case(rng, n_classes, mode, texts, layout, rng.random(), never, scaled, base)
    each = case.each()
    for want in WANTS:
        found = score(len(texts), case.prior, [case.part], want, 1)
        assert_score(found, naive_core.finish(each, case.prior, want))


@given(st.integers(0, 2**32), st.sampled_from(CLASSES), st.sampled_from(MODES), st.booleans())
def test_texts_whose_words_were_looked_up_before_score_alike(seed, n_classes, mode, never):
    rng = np.random.default_rng(seed)
    texts = random_texts(rng, int(rng.integers(0, 9)))
    if "length" in mode:  # an unknown word has a part in a text's length, and only its name tells it from others
        texts = [text and re.sub("|".join(STRANGE), "", text, flags=re.IGNORECASE) for text in texts]
    case = Case(rng, n_classes, mode, texts, never=never)
    offsets, ids = case.words.encode(case.part[2], texts, 1)
    missing = np.array([text is None for text in texts], bool)
    encoded = ("words", _core.EncodedTexts(offsets, ids, None, missing), *case.part[2:])
    starts, words, times = case.words.bags(case.part[2], texts, 1)
    bags = ("words", _core.EncodedTexts(starts, words, times, missing), *case.part[2:])
    for want in WANTS:
        found, expected = (score(len(texts), case.prior, [part], want, 1) for part in (encoded, case.part))
        assert np.array_equal(found[0], expected[0])
        assert found[1] == expected[1]
        assert_score(score(len(texts), case.prior, [bags], want, 1), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n_classes", [3, 60])
def test_texts_beside_other_columns(n_classes, mode):
    rng = np.random.default_rng(3)
    n = 300
    case = Case(rng, n_classes, mode, random_texts(rng, n), never=True)
    curves = [rng.normal(size=(2, n_classes)), rng.random((2, n_classes)), rng.normal(size=(2, n_classes))]
    normal = ("normal", [rng.normal(size=(n, 2))], np.zeros(2), np.ones(2), *curves)
    lookup = [np.arange(4, dtype=np.uint32)]
    table = (
        "table",
        [rng.integers(0, 5, n)],
        np.zeros(1, np.int64),
        lookup,
        np.array([-1]),
        rng.normal(size=(4, n_classes)),
    )
    numeric = [naive_core.score(n, case.prior, [part], "parts")[0] for part in (normal, table)]
    each = np.concatenate([numeric[0], case.each(), numeric[1]], axis=1)
    for want in WANTS:
        for threads in (1, 8):
            found = score(n, case.prior, [normal, case.part, table], want, threads)
            assert_score(found, naive_core.finish(each, case.prior, want))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n_classes", [2, 20, 100])
def test_threads_and_neighbours_change_nothing(n_classes, mode):
    rng = np.random.default_rng(4)
    texts = random_texts(rng, 1500, 60)
    case = Case(rng, n_classes, mode, texts, never=True, scaled=True)
    for want in WANTS:
        one = score(len(texts), case.prior, [case.part], want, 1)
        for threads in (2, 8):
            many = score(len(texts), case.prior, [case.part], want, threads)
            assert one[0].tobytes() == many[0].tobytes()
            assert one[1] == many[1]
        alone, _ = score(1, case.prior, [("words", texts[777:778], *case.part[2:])], want, 8)
        assert alone.tobytes() == one[0][777:778].tobytes()


def test_long_texts_are_shared_among_threads():
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice([*WORDS, *STRANGE], 20_000)) for _ in range(5)]
    for mode in MODES:
        case = Case(rng, 4, mode, texts)
        each = case.each()
        for threads in (1, 8):
            found = score(5, case.prior, [case.part], "parts", threads)
            np.testing.assert_allclose(found[0], each, rtol=1e-12, atol=1e-9)


def test_a_text_without_known_words_adds_the_constant_and_a_missing_one_nothing():
    weights = _core.Weights(2, np.zeros(2))
    weights.set(
        np.array([0], np.uint32), np.zeros(1), None, np.array([0, 1]), np.array([0], np.int32), np.array([-1.0])
    )
    words = _core.Words(2, 0).with_words(["word", "skipped"])
    base, constant = np.array([-3.0, -math.inf]), np.array([0.5, 0.25])
    texts = ["", "strange skipped", None, "word word"]
    part = ("words", texts, tokeniser(), words, weights, base, constant, False, None)
    found, _ = score(4, np.zeros(2), [part], "log_joint", 1)
    assert found.tolist() == [[0.5, 0.25], [0.5, 0.25], [0.0, 0.0], [-7.5, -math.inf]]
    weights.skip(np.array([0], np.uint32))
    found, _ = score(4, np.zeros(2), [part], "log_joint", 1)
    assert found.tolist() == [[0.5, 0.25], [0.5, 0.25], [0.0, 0.0], [0.5, 0.25]]


def test_words_of_weight_zero_are_no_evidence_even_of_the_impossible():
    for n_classes in (2, 100):
        weights = _core.Weights(n_classes, np.full(n_classes, -math.inf))
        ids, starts = np.array([0, 1], np.uint32), np.array([0, 1, 2])
        weights.set(ids, np.zeros(2), np.array([0.0, 2.0]), starts, np.zeros(2, np.int32), np.array([-1.0, -2.0]))
        words = _core.Words(n_classes, 0).with_words(["zero", "two"])
        constant = np.zeros(n_classes)
        part = ("words", ["zero zero", "zero two"], tokeniser(), words, weights, None, constant, False, None)
        found, _ = score(2, np.zeros(n_classes), [part], "log_joint", 1)
        assert not found[0].any()
        assert found[1].tolist() == [-4.0] + [-math.inf] * (n_classes - 1)


# ---- what does not fit


ROWS = {
    "ids": np.array([1, 2], np.uint32),
    "common": np.zeros(2),
    "scale": np.ones(2),
    "starts": np.array([0, 1, 3]),
    "classes": np.array([0, 0, 1], np.int32),
    "values": np.zeros(3),
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"ids": np.array([1], np.uint32)},
        {"ids": np.array([1, 2])},
        {"ids": np.array([1, 2**31], np.uint32)},
        {"common": np.array([0.0, math.nan])},
        {"common": np.array([0.0, math.inf])},
        {"common": np.zeros(3)},
        {"scale": np.array([1.0, -1.0])},
        {"scale": np.array([1.0, math.nan])},
        {"scale": np.array([1.0, math.inf])},
        {"starts": np.array([0, 1])},
        {"starts": np.array([0, 2, 1])},
        {"starts": np.array([-1, 1, 3])},
        {"starts": np.array([0, 1, 4])},
        {"classes": np.array([0, 1, 1], np.int32)},
        {"classes": np.array([0, 1, 0], np.int32)},
        {"classes": np.array([0, 0, 2], np.int32)},
        {"classes": np.array([0, -1, 1], np.int32)},
        {"classes": np.array([0, 1], np.int32)},
        {"values": np.array([0.0, math.nan, 0.0])},
        {"values": np.array([0.0, 1e300, 0.0])},
    ],
)
def test_rows_that_do_not_fit_change_nothing(wrong):
    weights = _core.Weights(2, np.zeros(2))
    weights.set(*ROWS.values())
    before = weights.rows(ROWS["ids"])
    with pytest.raises(ValueError):
        weights.set(*(ROWS | {"values": np.ones(3)} | wrong).values())
    assert all(np.array_equal(a, b) for a, b in zip(weights.rows(ROWS["ids"]), before, strict=True))


@pytest.mark.parametrize("default", [np.zeros(1), np.zeros(3), np.array([0.0, math.nan]), np.array([0.0, math.inf])])
def test_defaults_that_do_not_fit(default):
    with pytest.raises(ValueError):
        _core.Weights(2, default)


def test_parts_that_do_not_fit():
    words = _core.Words(2, 0).with_words(["word"])
    weights = _core.Weights(2, np.zeros(2))
    weights.set(np.array([0], np.uint32), np.array([-1.0]), None, np.array([0, 0]), np.zeros(0, np.int32), np.zeros(0))
    good = ["words", ["a word"], tokeniser(), words, weights, np.zeros(2), np.zeros(2), False, None]

    def refuses(sentence, **wrong):
        names = ["name", "texts", "tokeniser", "words", "weights", "base", "constant", "once", "polya"]
        part = dict(zip(names, good, strict=True)) | wrong
        with pytest.raises((ValueError, TypeError), match=sentence):
            score(1, np.zeros(2), [tuple(part.values())], "class", 1)

    assert score(1, np.zeros(2), [tuple(good)], "class", 1)[0].tolist() == [0]
    refuses("n_rows texts", texts=["one", "two"])
    refuses("one number per class", weights=_core.Weights(3, np.zeros(3)))
    refuses("one number per class", base=np.zeros(3))
    refuses("one number per class", constant=np.zeros(1))
    refuses("-inf or between", base=np.array([0.0, math.nan]))
    refuses("-inf or between", constant=np.array([0.0, math.inf]))
    refuses("instead of base", polya=np.ones(2))
    refuses("positive", base=None, polya=np.array([1.0, 0.0]))
    refuses("negative", base=None, polya=np.ones(2))
    one = np.zeros(1, np.int32)
    refuses("offsets must ascend", texts=_core.EncodedTexts(np.array([0, 2]), one, None, None))
    refuses("offsets must ascend", texts=_core.EncodedTexts(np.array([-1, 1]), one, None, None))
    refuses("one text fewer", texts=_core.EncodedTexts(np.array([0, 1]), one, None, np.zeros(2, bool)))
    for times in (one, np.ones(2, np.int32)):
        refuses("times must be", texts=_core.EncodedTexts(np.array([0, 1]), one, times, None))
    refuses("Tokeniser", tokeniser=None)
    refuses("Words", words=weights)
    refuses("Weights", weights=words)
    looked_up = _core.EncodedTexts(np.array([0, 1]), one, None, None)
    with pytest.raises(ValueError, match="scored, and nothing else"):
        words.count(tokeniser(), looked_up, np.zeros(1, np.int32), None, 1)
