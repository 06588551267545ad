"""Text: bags of words against scikit-learn, SciPy and the naive twin."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB

import banbury as bb
import by_shape
import naive
from banbury.errors import BadFile, BadSetting, BanburyWarning, SchemaMismatch
from banbury.families.bags import event_models, parameters, vocabulary
from banbury.families.bags.parameters import BagParameters
from banbury.families.family import HOWS
from banbury.reading import read
from banbury.sums import from_python_integers
from test_words import same_bits

WORDS = "ale bun cod dill egg fig gin ham ice jam kiwi leek mint nut oat pie".split()
MODELS = ("multinomial", "presence", "bernoulli", "complement", "log_odds")
MEALS = ["egg egg ham", "ham jam egg", "fig jam", "fig fig fig nut", "", "egg oat"]
KINDS = list("aabbab")

bags = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
alphas = st.sampled_from([0.1, 0.5, 1.0, 1.5, 3.0])


@st.composite
def corpora(draw: Any, most_classes: int = 4) -> tuple[list[str], list[int]]:
    """Texts and their classes, all of which occur; at least one word."""
    texts = draw(st.lists(bags, min_size=1, max_size=14))
    n_classes = draw(st.integers(1, min(most_classes, len(texts))))
    rest = draw(st.lists(st.integers(0, n_classes - 1), min_size=len(texts), max_size=len(texts)))
    assume(any(texts))
    return texts, [*range(n_classes), *rest[n_classes:]]


def count(texts: Any, labels: Any, given: Any = "text", **settings: Any) -> bb.Tally:
    return bb.count({"text": texts}, target=labels, features={"text": given}, **settings)


def joint(tally: bb.Tally, texts: Any, **settings: Any) -> np.ndarray:
    return bb.estimate(tally, **settings).log_joint({"text": texts})


def bag_of(tally: bb.Tally, **settings: Any) -> BagParameters:
    (found,) = bb.estimate(tally, **settings).parameters
    assert isinstance(found, BagParameters)
    return found


def evidence(bag: BagParameters, text: str) -> list[Any]:
    [batch] = read({bag.features.names[0]: [text]})
    return bag.evidence(bag.family.words_of_row(batch, bag.features[0], bag.table))


def follows(bag: BagParameters) -> bool:
    """Whether following changed counts costs only the words of a text."""
    return bag.pseudo_count is not None


def whole_likelihoods(tally: bb.Tally, texts: Any, **settings: Any) -> np.ndarray:
    """With the coefficients of bags."""
    return bb.estimate(tally, **settings).log_likelihood({"text": list(texts)}, "text")


def likelihoods(tally: bb.Tally, texts: Any, **settings: Any) -> np.ndarray:
    """Without the class prior."""
    model = bb.estimate(tally, **settings)
    return model.log_joint({"text": texts}) - model.log_prior


def assert_close(ours: Any, theirs: Any, rel: float = 1e-9) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=rel, atol=rel)


# scikit-learn --------------------------------------------------------------------------------------------------------


def vectorised(texts: list[str], new: list[str], **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    vectoriser = CountVectorizer(**settings).fit(texts)
    return vectoriser.transform(texts).toarray(), vectoriser.transform(new).toarray()


@given(corpus=corpora(), new=st.lists(bags, max_size=5), alpha=alphas)
def test_multinomial_is_scikit_learns(corpus, new, alpha):
    texts, labels = corpus
    X, X_new = vectorised(texts, [*texts, *new])
    oracle = MultinomialNB(alpha=alpha).fit(X, labels)
    assert_close(joint(count(texts, labels), [*texts, *new], alpha=alpha), oracle.predict_joint_log_proba(X_new))


@given(corpus=corpora(), new=st.lists(bags, max_size=5), alpha=alphas)
def test_presence_is_scikit_learns_multinomial_of_ones(corpus, new, alpha):
    texts, labels = corpus
    X, X_new = vectorised(texts, [*texts, *new], binary=True)
    oracle = MultinomialNB(alpha=alpha).fit(X, labels)
    tally = count(texts, labels, bb.Text(model="presence"))
    assert_close(joint(tally, [*texts, *new], alpha=alpha), oracle.predict_joint_log_proba(X_new))


@given(corpus=corpora(), new=st.lists(bags, max_size=5), alpha=alphas)
def test_bernoulli_is_scikit_learns(corpus, new, alpha):
    texts, labels = corpus
    X, X_new = vectorised(texts, [*texts, *new])
    oracle = BernoulliNB(alpha=alpha).fit(X, labels)
    tally = count(texts, labels, bb.Text(model="bernoulli"))
    assert_close(joint(tally, [*texts, *new], alpha=alpha), oracle.predict_joint_log_proba(X_new))


@given(corpus=corpora(), new=st.lists(bags, max_size=5), alpha=alphas, norm=st.booleans())
def test_complement_is_scikit_learns_under_a_uniform_class_prior(corpus, new, alpha, norm):
    texts, labels = corpus
    X, X_new = vectorised(texts, [*texts, *new])
    assume(not norm or X.shape[1] > 1)  # theirs is not a number for one word
    oracle = ComplementNB(alpha=alpha, norm=norm).fit(X, labels)
    theirs = X_new @ oracle.feature_log_prob_.T - np.log(len(oracle.classes_))
    tally = count(texts, labels, bb.Text(model="complement", norm=norm))
    model = bb.estimate(tally, alpha=alpha, class_prior="uniform")
    assert_close(model.log_joint({"text": [*texts, *new]}), theirs)
    weighed = bb.estimate(tally, alpha=alpha)  # theirs learns the class prior and ignores it
    assert_close(
        weighed.log_joint({"text": new}) - weighed.log_prior, theirs[len(texts) :] + np.log(len(oracle.classes_))
    )


@given(corpus=corpora(), weights=st.lists(st.floats(0.1, 5), min_size=14, max_size=14), alpha=alphas)
def test_weighted_texts_are_scikit_learns(corpus, weights, alpha):
    texts, labels = corpus
    X, _ = vectorised(texts, [])
    weights = weights[: len(texts)]
    oracle = MultinomialNB(alpha=alpha).fit(X, labels, sample_weight=weights)
    assert_close(joint(count(texts, labels, weights=weights), texts, alpha=alpha), oracle.predict_joint_log_proba(X))


@given(
    corpus=corpora(),
    ngrams=st.sampled_from([(1, 2), (2, 2), (1, 3)]),
    stop=st.lists(st.sampled_from(WORDS), max_size=3),
)
def test_ngrams_and_stop_words_are_count_vectorizers(corpus, ngrams, stop):
    texts, labels = corpus
    try:
        X, _ = vectorised(texts, [], ngram_range=ngrams, stop_words=stop or None)
    except ValueError:  # no word is left
        assume(False)
    tally = count(texts, labels, bb.Text(ngrams=ngrams, stop_words=stop))
    assert_close(joint(tally, texts), MultinomialNB().fit(X, labels).predict_joint_log_proba(X))


@given(corpus=corpora(), n=st.integers(1, 4))
def test_characters_are_count_vectorizers(corpus, n):
    texts, labels = corpus
    X, _ = vectorised(texts, [], analyzer="char", ngram_range=(1, n))
    tally = count(texts, labels, bb.Text(unit="characters", ngrams=n))
    assert_close(joint(tally, texts), MultinomialNB().fit(X, labels).predict_joint_log_proba(X))


@given(corpus=corpora(), shares=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted))
def test_shares_of_documents_are_count_vectorizers(corpus, shares):
    texts, labels = corpus
    low, high = shares
    try:
        X, _ = vectorised(texts, [], min_df=low, max_df=high)
    except ValueError:  # no word is left, or less than one document is asked for
        return
    tally = count(texts, labels, bb.Text(min_share=low, max_share=high))
    assert_close(joint(tally, texts), MultinomialNB().fit(X, labels).predict_joint_log_proba(X))


def test_the_most_words_are_those_count_vectorizer_keeps():
    texts = [" ".join(word for word, n in zip(WORDS, range(1, 17), strict=True) if i < n) for i in range(16)]
    labels = [i % 2 for i in range(16)]
    X, _ = vectorised(texts, [], max_features=5)
    tally = count(texts, labels, bb.Text(max_words=5))
    assert_close(joint(tally, texts), MultinomialNB().fit(X, labels).predict_joint_log_proba(X))


def test_a_given_vocabulary_is_count_vectorizers():
    texts, labels = ["egg ham ham", "fig egg", "nut"], ["a", "b", "b"]
    words = ["ham", "fig", "quince"]
    X, _ = vectorised(texts, [], vocabulary=words)
    tally = count(texts, labels, bb.Text(vocabulary=words))
    assert_close(joint(tally, texts), MultinomialNB().fit(X, labels).predict_joint_log_proba(X))
    assert bag_of(tally).n_words == 3
    assert tally.n_parameters() == 1 + 2 * 2


# The naive twin ------------------------------------------------------------------------------------------------------


def settings_of_text() -> st.SearchStrategy[bb.Text]:
    counting = {
        "damping": st.sampled_from([None, "log"]),
        "length": st.booleans(),
        "ngrams": st.sampled_from([1, 2, (2, 3)]),
        "tokens": st.sampled_from(["word", "word1", r"[aeiou]\w+", r"(\w)\w*"]),
    }
    pruning = {
        "min_count": st.sampled_from([0, 1, 2]),
        "min_share": st.sampled_from([0.0, 0.3]),
        "max_share": st.sampled_from([1.0, 0.8]),
        "drop_most_frequent": st.sampled_from([0, 1, 2]),
        "max_words": st.sampled_from([None, 1, 3]),
        "vocabulary": st.sampled_from([None, ["egg", "Ham", "quince", "egg ham"]]),
    }
    estimating = {"model": st.sampled_from(MODELS), "idf": st.booleans(), "norm": st.booleans()}

    @st.composite
    def build(draw: Any) -> bb.Text:
        chosen = {name: draw(each) for name, each in estimating.items()}
        for group in (counting, pruning):
            if draw(st.booleans()):
                chosen |= {name: draw(each) for name, each in group.items()}
        chosen["idf"] &= chosen["model"] != "bernoulli"
        chosen["norm"] &= chosen["model"] == "complement"
        return bb.Text(**chosen)

    return build()


@given(
    corpus=corpora(),
    new=st.lists(bags, max_size=3),
    family=settings_of_text(),
    how=st.sampled_from([how for how in HOWS if how != "gibbs"]),
    alpha=st.sampled_from([0.0, 0.5, 1.0, 2.5]),
    weighted=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:none of the")
def test_every_setting_is_its_naive_twin(corpus, new, family, how, alpha, weighted):
    texts, labels = corpus
    weights = [0.25 + 0.5 * (i % 4) for i in range(len(texts))] if weighted else None
    tally = count(texts, labels, family, weights=weights)
    rows = [{"text": text, "y": label} for text, label in zip(texts, labels, strict=True)]
    twin = naive.count(tally.schema, rows, "y", weights)
    ours = likelihoods(tally, [*texts, *new], how=how, alpha=alpha)
    for text, row in zip([*texts, *new], ours, strict=True):
        each = naive.likelihoods(twin, tally.schema.features[0], text, how, alpha)
        assert_close(row, [each[c] for c in tally.classes], rel=1e-9)


@given(corpus=corpora(), most=st.integers(1, 6))
def test_the_most_informative_words_are_kept(corpus, most):
    texts, labels = corpus
    family = bb.Text(max_words=most, choose_by="mutual_information")
    tally = count(texts, labels, family)
    rows = [{"text": text, "y": label} for text, label in zip(texts, labels, strict=True)]
    twin, feature = naive.count(tally.schema, rows, "y"), tally.schema.features[0]
    kept = set(bag_of(tally).linear()[0])
    information = {word: naive.information(twin, feature, word) for word, _ in twin.words["text"]}
    assert len(kept) == min(most, len(information))
    least = min(information[word] for word in kept)
    assert all(value <= least + 1e-12 for word, value in information.items() if word not in kept)


def test_equally_frequent_words_are_kept_by_name():
    texts, labels = ["pie ham egg", "nut ale"], ["a", "b"]
    for order in itertools.permutations(range(2)):
        tally = count([texts[i] for i in order], [labels[i] for i in order], bb.Text(max_words=3))
        assert bag_of(tally).linear()[0] == ["ale", "egg", "ham"]
    tally = count(texts, labels, bb.Text(drop_most_frequent=3))
    assert bag_of(tally).linear()[0] == ["nut", "pie"]


@pytest.mark.parametrize("weight", [1, 2, 0.1, 0.3, 0.7, 1 / 3])
def test_the_most_frequent_words_are_told_by_name_where_they_are_equals(weight):
    for order in (WORDS, WORDS[::-1], WORDS[5:] + WORDS[:5]):
        texts, labels = [*order, "zz zz"], ["a", "b"] * 8 + ["a"]
        tally = count(texts, labels, weights=[weight] * len(texts))
        assert by_shape.words(tally)[0].most_frequent(16) == ["zz", *WORDS[:15]]


def test_the_most_frequent_of_all_words_are_dropped_and_the_rare():
    texts, labels = ["egg egg egg ham ham jam", "egg ham jam jam nut fig"], ["a", "b"]
    tally = count(texts, labels)
    kept = {"text": bb.Text(min_count=3, drop_most_frequent=1)}
    assert bag_of(tally, features=kept).linear()[0] == ["ham", "jam"]


def test_nothing_left_says_nothing():
    tally = count(MEALS, KINDS, bb.Text(min_count=100))
    with pytest.warns(BanburyWarning, match="none of the 6 words of column 'text' is left"):
        found = likelihoods(tally, ["egg", "", "fig nut"])
    assert not found.any()


# Words and texts -----------------------------------------------------------------------------------------------------


def test_a_regular_expression_finds_the_words():
    tally = count(["A-1 b-2", "b-2 c3"], ["x", "y"], bb.Text(tokens=r"[a-z]-\d"))
    assert bag_of(tally).linear()[0] == ["a-1", "b-2"]
    kept = count(["A-1 b-2", "b-2 c3"], ["x", "y"], bb.Text(tokens=r"[a-zA-Z]-\d", lowercase=False))
    assert bag_of(kept).linear()[0] == ["A-1", "b-2"]


def test_the_one_group_of_a_regular_expression_is_the_word():
    tally = count(
        ["<ham> egg <jam>", "<jam> nut"], ["x", "y"], bb.Text(tokens=r"<(\w+)>", ngrams=2, stop_words=["nut"])
    )
    assert bag_of(tally).linear()[0] == ["ham", "ham jam", "jam"]
    with pytest.raises(BadSetting, match=r"at most one group, the word \(this one has 2\)"):
        bb.Text(tokens=r"(\w)(\w)")


@pytest.mark.parametrize("given", ["word", r"\b\w\w+\b"])
def test_texts_come_from_lists_arrow_and_arrays_alike(given):
    texts = ["egg egg ham", None, "", "fïg ☕ nut", "jam"]
    labels = [0, 0, 0, 1, 1]
    tallies = [
        count(texts, labels, bb.Text(tokens=given)),
        count(pa.array(texts), labels, bb.Text(tokens=given)),
        count(pa.chunked_array([texts[:2], texts[2:]]), labels, bb.Text(tokens=given)),
        count(pa.array(["x", *texts])[1:], labels, bb.Text(tokens=given)),
        count(np.array(texts, dtype=object), labels, bb.Text(tokens=given)),
    ]
    found = [
        joint(tally, column) for tally in tallies for column in (texts, pa.array(texts), pa.array(["x", *texts])[1:])
    ]
    for other in found[1:]:
        assert np.array_equal(found[0], other)
    assert by_shape.words(tallies[0])[0].texts.same(from_python_integers(np.array([2, 2]), 0))
    assert all(tally == tallies[0] for tally in tallies)


def test_the_slow_path_agrees_with_the_fast_one():
    fast, slow = count(MEALS, KINDS), count(MEALS, KINDS, bb.Text(tokens=r"\b\w\w+\b"))
    assert np.array_equal(joint(fast, MEALS), joint(slow, MEALS))


@pytest.mark.parametrize("model", MODELS)
def test_a_missing_text_says_nothing_and_an_empty_one_has_no_words(model):
    tally = count([*MEALS, None], [*KINDS, "a"], bb.Text(model=model))
    missing, empty = likelihoods(tally, [None, ""])
    assert not missing.any()
    assert empty.any() == (model == "bernoulli")
    assert by_shape.words(tally)[0].texts.same(from_python_integers(np.array([3, 3]), 0))


def test_words_never_seen_are_skipped():
    tally = count(MEALS, KINDS)
    assert np.array_equal(joint(tally, ["egg quince ham"]), joint(tally, ["egg ham"]))


@pytest.mark.parametrize("model", MODELS)
@given(corpus=corpora(), kept=st.sets(st.sampled_from(WORDS), min_size=1))
def test_only_some_words_are_those_of_all_that_a_vocabulary_leaves(corpus: Any, kept: set[str], model: Any) -> None:
    texts, labels = corpus
    seen = kept & set(" ".join(texts).split())
    assume(seen)
    some = count(texts, labels, bb.Text(model=model, only=sorted(kept)))
    assert set(some.of("text").table.words(None)) == seen
    every = count(texts, labels, bb.Text(model=model, vocabulary=sorted(seen)))
    np.testing.assert_array_equal(joint(some, texts), joint(every, texts))


@pytest.mark.filterwarnings("ignore:none of the .* words:banbury.BanburyWarning")
@given(corpus=corpora(), n_parts=st.integers(1, 4), least=st.integers(1, 3))
def test_a_word_that_is_frequent_is_so_in_one_of_the_parts(corpus: Any, n_parts: int, least: int) -> None:
    texts, labels = corpus
    words = set[str]()
    for i in range(n_parts):
        if "".join(texts[i::n_parts]):
            part = bb.estimate(
                count(texts[i::n_parts], labels[i::n_parts]), features={"text": bb.Text(min_count=least)}
            )
            words.update(part.linear().words)
    often = bb.Text(min_count=n_parts * (least - 1) + 1)
    kept = bb.estimate(count(texts, labels), features={"text": often}).linear().words
    assert words.issuperset(kept)
    assume(kept)
    some = count(texts, labels, bb.Text(only=sorted(words)))
    expected = joint(count(texts, labels), texts, features={"text": often})
    np.testing.assert_array_equal(joint(some, texts, features={"text": often}), expected)


def test_only_some_words_may_be_a_file_and_are_part_of_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("Egg\nham\n\n", encoding="utf-8")
    some = count(MEALS, KINDS, bb.Text(only=path))
    assert some == count(MEALS, KINDS, bb.Text(only=["HAM", "egg", "egg"]))
    assert some.of("text").most_frequent(9) == ["egg", "ham"]
    assert some.of("text").texts.value.sum() == 6  # a text without a word is one all the same
    with pytest.raises(SchemaMismatch):
        some + count(MEALS, KINDS)
    with pytest.raises(BadSetting, match="only must be a list of at least one word, or a text file"):
        bb.Text(only=[])
    with pytest.raises(BadFile, match="nowhere"):
        bb.Text(only=tmp_path / "nowhere.txt")
    with pytest.raises(BadSetting, match="only must be a list of words"):
        bb.Text(only=[3])  # type: ignore[list-item]
    expression = count(MEALS, KINDS, bb.Text(tokens="[a-z]+", ngrams=2, only=["egg ham", "nut"]))
    assert expression.of("text").most_frequent(9) == ["egg ham", "nut"]


def test_a_vocabulary_may_be_a_file(tmp_path: Path):
    file = tmp_path / "words.txt"
    file.write_bytes("﻿egg\r\n  ham \n\négal\negg\n".encode())
    assert bb.Text(vocabulary=file).vocabulary == bb.Text(vocabulary=str(file)).vocabulary == ("egg", "ham", "égal")
    file.write_bytes("égal".encode("latin-1"))
    assert bb.Text(vocabulary=file).vocabulary == ("égal",)
    with pytest.raises(BadFile, match="nowhere"):
        bb.Text(vocabulary=tmp_path / "nowhere.txt")
    file.write_text("\n")
    with pytest.raises(BadSetting, match="at least one word"):
        bb.Text(vocabulary=file)


# Estimates -----------------------------------------------------------------------------------------------------------


def families() -> list[bb.Text]:
    found = []
    for model, damping, length, idf in itertools.product(MODELS, (None, "log"), (False, True), (False, True)):
        if not (idf and model == "bernoulli"):
            found.append(bb.Text(model=model, damping=damping, length=length, idf=idf))
    return [*found, bb.Text(model="complement", norm=True), bb.Text(model="complement", norm=True, idf=True)]


@pytest.mark.parametrize("family", families(), ids=str)
def test_no_answer_is_ever_not_a_number(family):
    texts = [*MEALS, "egg egg egg quince", "ham fig nut jam oat egg", None, "egg " * 1000]
    tally = count(["egg ham", "egg egg nut", "", None, "egg oat", "jam", "egg"], list("aabbccd"), family)
    for how, alpha in itertools.product(HOWS, [0.0, 0.5, 1.0, 2.0]):
        found = likelihoods(tally, texts, how=how, alpha=alpha)
        assert not np.isnan(found).any() and not np.isposinf(found).any()
        zeros = family.model == "bernoulli" and (how == "mle" or (how == "map" and alpha <= 1))
        assert np.isfinite(found).all() or zeros
        bag_model = bag_of(tally, how=how, alpha=alpha)
        for text, row in zip(texts, found, strict=True):
            if text is not None:
                told = sum((word.log_likelihood for word in evidence(bag_model, text)), np.zeros(4))
                rounding = 1e-13 * (1 + len(text.split())) ** 2  # of sums of numbers down to log(1e-308)
                np.testing.assert_allclose(told, row, rtol=1e-12, atol=rounding)


def bag_of_model(model: bb.Model) -> BagParameters:
    (found,) = model.parameters
    assert isinstance(found, BagParameters)
    return found


@pytest.mark.parametrize("how", ["mle", "map"])
@pytest.mark.parametrize("model", [model for model in MODELS if model != "bernoulli"])
def test_a_zero_is_a_pseudo_count_of_1e_10_under_maximum_likelihood_and_map(model, how):
    tally = count(["egg ham", "egg", "fig"], list("aab"), bb.Text(model=model))
    found = likelihoods(tally, ["egg", "ham fig"], how=how)
    assert_close(found, likelihoods(tally, ["egg", "ham fig"], how="mean", alpha=1e-10))


def test_words_of_another_class_are_all_but_impossible_under_maximum_likelihood():
    tally = count(["egg ham", "egg", "fig"], list("aab"))
    assert_close(likelihoods(tally, ["egg"], how="mle"), [[np.log(2 / 3), np.log(1e-10)]], rel=1e-9)


def test_a_class_without_words_gives_all_words_equal_shares_under_maximum_likelihood():
    tally = count(["egg ham", "egg", "", None], list("aabc"))
    assert_close(likelihoods(tally, ["egg"], how="mle"), np.log([[2 / 3, 1 / 2, 1 / 2]]))


def test_a_word_in_every_text_of_a_class_is_demanded_under_maximum_likelihood():
    """Bernoulli with p = 1: a text with the word says nothing about it, one without it is impossible."""
    tally = count(["egg ham", "egg", "fig", "fig egg"], list("aabb"), bb.Text(model="bernoulli"))
    found = likelihoods(tally, ["egg ham", "egg", "ham", "fig", "egg fig", "", None], how="mle")
    half = np.log(1 / 2)
    assert found.tolist() == [
        [pytest.approx(half), -np.inf],
        [pytest.approx(half), -np.inf],
        [-np.inf, -np.inf],
        [-np.inf, pytest.approx(half)],
        [-np.inf, pytest.approx(half)],
        [-np.inf, -np.inf],
        [0.0, 0.0],
    ]
    words = evidence(bag_of(tally, how="mle"), "egg ham")
    assert [word.value for word in words] == ["egg", "ham", bb.Text.absent]
    assert words[0].log_likelihood.tolist() == [0.0, pytest.approx(half - half)]


def test_predictive_is_polyas_urn():
    tally = count(MEALS, KINDS)
    names = bag_of(tally, alpha=0.7).linear()[0]
    text = "egg egg ham jam egg fig"
    times = np.array([text.split().count(word) for word in names])
    (ours,) = whole_likelihoods(tally, [text], how="predictive", alpha=0.7)
    for c, label in enumerate(tally.classes):
        own = np.array(
            [" ".join(t for t, k in zip(MEALS, KINDS, strict=True) if k == label).split().count(w) for w in names]
        )
        theirs = stats.dirichlet_multinomial.logpmf(times, own + 0.7, times.sum())
        assert ours[c] == pytest.approx(theirs, rel=1e-12)
    coefficient = stats.multinomial.logpmf(times, times.sum(), np.full(len(names), 1 / len(names)))
    coefficient += times.sum() * np.log(len(names))
    assert_close(likelihoods(tally, [text], how="predictive", alpha=0.7)[0] + coefficient, ours)


@pytest.mark.parametrize("family", [bb.Text(idf=True), bb.Text(damping="log"), bb.Text(model="bernoulli")], ids=str)
def test_predictive_is_the_mean_where_there_is_no_urn(family):
    tally = count(MEALS, KINDS, family)
    assert np.array_equal(joint(tally, MEALS, how="predictive"), joint(tally, MEALS))


@given(
    corpus=corpora(),
    how=st.sampled_from(["map", "mean"]),
    family=st.sampled_from([{}, {"damping": "log", "length": True}]),
)
def test_log_odds_are_what_a_class_says_less_what_all_others_say(corpus, how, family):
    """Of K classes that have texts (K − 1) / K times; of two that is the multinomial model's answer."""
    texts, labels = corpus
    tally = count(texts, labels, bb.Text(**family))
    each = {}
    for model in ("multinomial", "complement", "log_odds"):
        features = {"text": bb.Text(model=model, **family)}
        each[model] = likelihoods(tally, texts, features=features, how=how, alpha=1.5)
        each[model, "posterior"] = bb.estimate(tally, features=features, how=how, alpha=1.5).posterior({"text": texts})
    n = len(tally.classes)
    np.testing.assert_allclose(
        each["log_odds"], (n - 1) / n * (each["multinomial"] + each["complement"]), rtol=1e-12, atol=1e-12
    )
    if n == 2:
        np.testing.assert_allclose(each["log_odds", "posterior"], each["multinomial", "posterior"], rtol=0, atol=1e-12)


def test_a_class_without_a_text_is_none_of_those_that_log_odds_tell_apart():
    family = bb.Text(model="log_odds")
    two = likelihoods(count(MEALS, KINDS, family), MEALS)
    three = likelihoods(count([*MEALS, None], [*KINDS, "c"], family), MEALS)
    np.testing.assert_allclose(three[:, :2], two, rtol=1e-12, atol=1e-12)
    clf, meals = bb.NaiveBayesClassifier(features={"text": family}), {"text": MEALS}
    clf.fit(meals, KINDS).partial_fit({"text": [None]}, ["c"]).predict(meals)
    clf.partial_fit({"text": ["egg"]}, ["c"])  # the third class has a text now
    again = bb.estimate(count([*MEALS, None, "egg"], [*KINDS, "c", "c"], family))
    assert_close(clf.predict_joint_log_proba(meals), again.log_joint(meals))


def test_the_likelihood_of_a_document_has_its_coefficient():
    """LECTURES row 41: equal to scipy.stats.multinomial.logpmf over the vocabulary."""
    tally = count(MEALS, KINDS)
    bag_model = bag_of(tally)
    names, weights, *_ = bag_model.linear()
    text = "egg ham egg nut unheard-of"
    times = np.array([text.split().count(word) for word in names])
    theirs = [stats.multinomial.logpmf(times, times.sum(), np.exp(weights[:, c])) for c in range(2)]
    found, of_nothing = whole_likelihoods(tally, [text, ""])
    assert_close(found, theirs, rel=1e-12)
    assert not of_nothing.any()


@pytest.mark.parametrize(
    "family", [bb.Text(model="complement"), bb.Text(model="log_odds"), bb.Text(idf=True), bb.Text(length=True)], ids=str
)
def test_weights_are_no_likelihood(family):
    with pytest.raises(BadSetting, match="a model that gives texts a probability"):
        whole_likelihoods(count(MEALS, KINDS, family), ["egg"])


def test_the_bernoulli_likelihood_of_all_documents_is_one():
    tally = count(["egg ham", "egg jam", "jam"], list("aab"), bb.Text(model="bernoulli"))
    texts = [" ".join(words) for n in range(4) for words in itertools.combinations(["egg", "ham", "jam"], n)]
    total = np.exp(whole_likelihoods(tally, texts)).sum(axis=0)
    assert_close(total, [1.0, 1.0], rel=1e-12)


@given(corpus=corpora(), new=st.lists(bags, min_size=1, max_size=4), family=settings_of_text())
@pytest.mark.filterwarnings("ignore:none of the")
def test_scores_are_linear_in_the_words(corpus, new, family):
    """LECTURES row 19: posterior log-odds equal the linear form to 1e-12."""
    texts, labels = corpus
    tally = count(texts, labels, family)
    model = bb.estimate(tally)
    words, weights, intercepts, *_ = bag_of_model(model).linear()
    position = {word: i for i, word in enumerate(words)}
    for text, row in zip(new, model.log_posterior({"text": new}), strict=True):
        counts = np.zeros(len(words))
        for word, x in naive.weighed(family, text).items():
            if word in position:
                counts[position[word]] = 1.0 if family.once else x
        line = model.log_prior + intercepts + counts @ weights
        np.testing.assert_allclose(line - line[0], row - row[0], rtol=1e-12, atol=1e-12)


def test_an_urn_and_certainty_are_not_linear():
    with pytest.raises(BadSetting, match="how must be a different setting for a linear form"):
        bag_of(count(MEALS, KINDS), how="predictive").linear()
    certain = count(["egg ham", "egg"], list("ab"), bb.Text(model="bernoulli"))
    with pytest.raises(BadSetting, match="how must be a different setting for a linear form"):
        bag_of(certain, how="mle").linear()


# Gibbs ---------------------------------------------------------------------------------------------------------------


GIBBS = [*(bb.Text(model=model) for model in MODELS), bb.Text(idf=True), bb.Text(model="complement", norm=True)]


@pytest.mark.parametrize("family", GIBBS, ids=str)
def test_a_draw_depends_on_the_seed_and_not_on_the_order_of_texts(family):
    tally, turned = count(MEALS, KINDS, family), count(MEALS[::-1], KINDS[::-1], family)
    first = joint(tally, MEALS, how="gibbs", seed=3)
    assert np.array_equal(first, joint(turned, MEALS, how="gibbs", seed=3))
    assert not np.array_equal(first, joint(tally, MEALS, how="gibbs", seed=4))
    assert np.isfinite(first).all()


@pytest.mark.parametrize("family", GIBBS, ids=str)
def test_a_draw_does_not_depend_on_how_many_words_are_drawn_together(family, monkeypatch):
    tally = count(MEALS, KINDS, family)
    together = joint(tally, MEALS, how="gibbs", seed=5)
    monkeypatch.setattr(vocabulary, "CELLS", 4)
    assert_close(joint(tally, MEALS, how="gibbs", seed=5), together, rel=1e-12)


@pytest.mark.parametrize("model", ["multinomial", "presence", "bernoulli"])
def test_draws_have_the_mean_of_the_posterior(model):
    tally = count(MEALS, KINDS, bb.Text(model=model))
    drawn = [np.exp(likelihoods(tally, ["jam"], how="gibbs", seed=seed)) for seed in range(600)]
    expected = np.exp(likelihoods(tally, ["jam"]))  # a product of independent means, or one
    assert_close(np.mean(drawn, axis=0), expected, rel=0.15)


def test_draws_of_log_odds_have_the_mean_of_the_logarithms():
    """Of the Dirichlet posteriors of a class and of all others: E log p = ψ(n + α) − ψ(N + αV)."""
    tally = count(["egg ham", "egg", "fig jam", "jam"], list("aabc"), bb.Text(model="log_odds"))
    drawn = [likelihoods(tally, ["jam"], how="gibbs", seed=seed) for seed in range(2000)]
    n, total = np.array([0, 1, 1]), np.array([3, 2, 1])

    def mean(n: Any, total: Any) -> Any:
        return special.digamma(n + 1) - special.digamma(total + 4)

    expected = 2 / 3 * (mean(n, total) - mean(2 - n, 6 - total))
    np.testing.assert_allclose(np.mean(drawn, axis=0)[0], expected, atol=0.1)
    assert (np.abs(expected) > 0.3).sum() >= 2


def test_what_needs_a_number_for_every_pair_is_refused_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(event_models, "MOST_CELLS", 11)
    tally = count(MEALS, KINDS)
    with pytest.raises(BadSetting, match="'text' has 6 words and there are 2 classes, and how='gibbs' needs"):
        bb.estimate(tally, how="gibbs")
    with pytest.raises(BadSetting, match="norm=True needs"):
        bb.estimate(tally, features={"text": bb.Text(model="complement", norm=True)})
    with pytest.raises(BadSetting, match="the linear form needs"):
        bag_of(tally).linear()
    assert np.isfinite(joint(tally, MEALS)).all()


@pytest.mark.parametrize("family", families(), ids=str)
def test_words_are_looked_at_some_at_a_time(family, monkeypatch):
    tally = count(MEALS, KINDS, family)
    together = {how: joint(tally, MEALS, how=how) for how in ("mle", "mean", "predictive")}
    monkeypatch.setattr(vocabulary, "CELLS", 4)
    monkeypatch.setattr(parameters, "CELLS", 4)
    for how, expected in together.items():
        assert_close(joint(tally, MEALS, how=how), expected, rel=1e-12)


# Growing -------------------------------------------------------------------------------------------------------------


@given(
    corpus=corpora(),
    model=st.sampled_from(MODELS),
    how=st.sampled_from(HOWS),
    alpha=st.sampled_from([0.5, 1.0, 2.0]),
    damping=st.sampled_from([None, "log"]),
)
def test_learning_and_forgetting_one_text_at_a_time_is_learning_what_is_left(corpus, model, how, alpha, damping):
    texts, labels = corpus
    settings = {"features": bb.Text(model=model, damping=damping), "how": how, "alpha": alpha}
    clf = bb.NaiveBayesClassifier(**settings).partial_fit(texts[:1], labels[:1])
    clf.predict_joint_log_proba(texts)
    for text, label in zip(texts[1:], labels[1:], strict=True):
        clf.partial_fit([text], [label]).predict_joint_log_proba([text])
    once = bb.NaiveBayesClassifier(**settings).fit(texts, labels)
    assert same_sums(clf.tally_, once.tally_)
    assert_close(clf.predict_joint_log_proba(texts), once.predict_joint_log_proba(texts))
    half = len(texts) // 2
    for text, label in zip(texts[:half], labels[:half], strict=True):
        clf.forget([text], [label]).predict_joint_log_proba([text])
    rest = bb.NaiveBayesClassifier(**settings).fit(texts[half:], labels[half:])
    assert clf.classes_.tolist() == rest.classes_.tolist()
    assert same_sums(clf.tally_, rest.tally_)
    assert_close(clf.predict_joint_log_proba(texts), rest.predict_joint_log_proba(texts))


def same_sums(a: bb.Tally, b: bb.Tally) -> bool:
    """Equal, and the same arrays of words to the bit."""
    return a == b and b == a and all(map(same_bits, *([words.table for words in by_shape.words(t)] for t in (a, b))))


@given(
    corpus=corpora(),
    weights=st.lists(st.sampled_from([0.1, 0.7, 1 / 3, 1.0, 2.0, 1e-9, 1e9]), min_size=14, max_size=14),
    settings=st.sampled_from([{}, {"damping": "log"}, {"length": True}, {"ngrams": 2, "damping": "log"}]),
    data=st.data(),
)
def test_texts_of_any_weight_are_forgotten_to_the_bit(corpus, weights, settings, data):
    """In any order and any pieces, from a tally and from a classifier."""
    texts, labels = corpus
    family, every = bb.Text(**settings), range(len(texts))
    tally = count(texts, labels, family, weights=weights[: len(texts)])
    clf = bb.NaiveBayesClassifier(features=family).fit(texts, labels, sample_weight=weights[: len(texts)])
    gone = data.draw(st.permutations(every))[data.draw(st.integers(1, len(texts))) :]
    kept = [i for i in every if i not in gone]
    cut = data.draw(st.integers(0, len(gone)))

    def some(rows: list[int]) -> tuple[list[str], list[int], list[float]]:
        return [texts[i] for i in rows], [labels[i] for i in rows], [weights[i] for i in rows]

    for rows in (gone[:cut], gone[cut:]):
        if rows:
            part, whose, weigh = some(rows)
            tally = tally - tally.count({"text": part}, whose, weights=weigh)
            clf.forget(part, whose, sample_weight=weigh)
    part, whose, weigh = some(kept)
    fresh = count(part, whose, family, weights=weigh)
    assert same_sums(tally, fresh)
    assert same_sums(clf.tally_, bb.NaiveBayesClassifier(features=family).fit(part, whose, sample_weight=weigh).tally_)


def test_bags_that_can_change_in_place_say_so():
    tally = count(MEALS, KINDS)
    live = {model: follows(bag_of(tally, features={"text": bb.Text(model=model)})) for model in MODELS}
    assert live == {"multinomial": True, "presence": True, "bernoulli": False, "complement": True, "log_odds": True}
    for settings in ({"idf": True}, {"min_count": 2}, {"vocabulary": ["egg"]}, {"max_words": 3}, {"max_share": 0.9}):
        assert not follows(bag_of(tally, features={"text": bb.Text(**settings)}))
    assert [how for how in HOWS if not follows(bag_of(tally, how=how))] == ["gibbs"]
    assert follows(bag_of(tally, how="map", alpha=0.5))


# Explaining and drawing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", families(), ids=str)
def test_every_word_is_explained(family):
    model = bb.estimate(count(MEALS, KINDS, family))
    answer = model.explain({"text": "jam egg egg quince"})
    log_posterior = model.log_posterior({"text": ["jam egg egg quince"]})[0]
    gap = log_posterior.max() - log_posterior.min()
    assert answer.log_odds == pytest.approx(gap, rel=1e-12, abs=1e-12)
    told = {evidence.value: evidence.times for evidence in answer.evidence}
    assert told == {"jam": 1, "egg": 2} | ({bb.Text.absent: 1} if family.model == "bernoulli" else {})


@pytest.mark.parametrize("model", ["multinomial", "presence", "bernoulli"])
def test_texts_drawn_from_a_model_give_the_model_back(model):
    texts = ["egg egg ham oat", "egg oat pie", "fig jam jam", "fig nut jam pie"]
    family = bb.Text(model=model)
    tally = count(texts, list("aabb"), family)
    drawn = bb.estimate(tally, class_prior="uniform").sample(4000, seed=1)
    again = count(drawn["text"], drawn["class"], family)
    ours, theirs = (shares(bag_of(t)) for t in (tally, again))
    if model == "presence":  # different words are not drawn independently: their shares come out more alike
        assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.98
    else:
        np.testing.assert_allclose(theirs, ours, rtol=0.12)


def shares(bag_model: BagParameters) -> np.ndarray:
    """P(word | class), or of its presence, (words, classes)."""
    _, weights, *_ = bag_model.linear()
    return 1 / (1 + np.exp(-weights)) if bag_model.family.model == "bernoulli" else np.exp(weights)


def test_texts_drawn_from_polyas_urn_repeat_themselves():
    tally = count(["egg ham jam nut fig oat pie"] * 3, ["a"] * 3)
    distinct = {}
    for how in ("mean", "predictive"):
        drawn = bb.estimate(tally, how=how, alpha=0.01).sample(2000, seed=2)["text"]
        distinct[how] = np.mean([len(set(text.split())) for text in drawn])
    assert distinct["predictive"] < distinct["mean"] - 0.2


@pytest.mark.parametrize("model", ["complement", "log_odds"])
def test_what_cannot_be_drawn_from_is_refused(model):
    with pytest.raises(
        BadSetting, match=f"model must be a model that can generate texts, such as 'multinomial'.*{model}"
    ):
        bb.estimate(count(MEALS, KINDS, bb.Text(model=model))).sample(3)


@pytest.mark.parametrize("family", [bb.Text(unit="characters"), bb.Text(ngrams=2)], ids=str)
def test_any_words_can_be_drawn(family):
    drawn = bb.estimate(count(MEALS, KINDS, family)).sample(20, seed=0)["text"]
    assert all(isinstance(text, str) for text in drawn)
    assert any(drawn)


def test_a_class_without_texts_has_texts_of_the_usual_length():
    tally = count(["egg ham nut", "egg ham fig", None], list("aab"))
    drawn = bb.estimate(tally, class_prior="uniform").sample(500, seed=0)
    lengths = [len(text.split()) for text, label in zip(drawn["text"], drawn["class"], strict=True) if label == "b"]
    assert np.mean(lengths) == pytest.approx(3, abs=0.5)


# Settings ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"tokens": "words"}, "tokens must be one of 'word', 'word1', 'mail', 'a regular expression'. Got 'words'"),
        ({"tokens": 3}, "tokens must be one of"),
        ({"tokens": "("}, "tokens must be a regular expression (missing )"),
        ({"lowercase": "yes"}, "lowercase must be True or False"),
        ({"unit": "letters"}, "unit must be one of 'words', 'characters'"),
        ({"unit": ["words"]}, "unit must be one of"),
        ({"ngrams": 0}, "ngrams must be (shortest, longest) from 1 to 5"),
        ({"ngrams": (2, 1)}, "ngrams must be (shortest, longest) from 1 to 5"),
        ({"ngrams": (1, 6)}, "ngrams must be (shortest, longest) from 1 to 5"),
        ({"ngrams": "2"}, "ngrams must be (shortest, longest) from 1 to 5"),
        ({"stop_words": "english"}, "stop_words must be a list of words (scikit-learn has one for English"),
        ({"stop_words": ["a", 3]}, "stop_words must be a list of words"),
        ({"damping": "square"}, "damping must be one of None, 'log'"),
        ({"model": "gaussian"}, "model must be one of 'multinomial', 'presence', 'bernoulli', 'complement'"),
        ({"alpha": -1}, "alpha must be a finite number of at least 0"),
        ({"min_count": -1}, "min_count must be a finite number of at least 0"),
        ({"min_share": 1.5}, "min_share must be a share of the texts from 0 to 1"),
        ({"min_share": 0.5, "max_share": 0.4}, "min_share must be max_share, 0.4, at most"),
        ({"drop_most_frequent": -1}, "drop_most_frequent must be a whole number of at least 0"),
        ({"max_words": 0}, "max_words must be None or a whole number of at least 1"),
        ({"choose_by": "chance"}, "choose_by must be one of 'count', 'mutual_information'"),
        ({"choose_by": "mutual_information"}, "choose_by must be given together with max_words"),
        ({"vocabulary": []}, "vocabulary must be a list of at least one word"),
        ({"vocabulary": 3}, "vocabulary must be a list of words"),
        ({"idf": True, "model": "bernoulli"}, "idf must be False when model='bernoulli'"),
        ({"norm": True}, "norm must be False unless model='complement'"),
        ({"unit": "characters", "tokens": "word1"}, "tokens must be omitted when unit='characters'"),
        ({"unit": "characters", "stop_words": ["a"]}, "stop_words must be omitted when unit='characters'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(BadSetting, match=re.escape(message)):
        bb.Text(**settings)


def test_settings_are_brought_to_one_form():
    family = bb.Text(ngrams=2, stop_words=["The", "a", "the"], vocabulary=["b", "a", "b"])
    assert (family.ngrams, family.stop_words, family.vocabulary) == ((1, 2), ("a", "the"), ("a", "b"))
    assert family == bb.Text(ngrams=[1, 2], stop_words=("a", "the"), vocabulary=("a", "b"))
    assert bb.Text(stop_words=["The"], lowercase=False).stop_words == ("The",)
    assert bb.Text(ngrams=1, stop_words=[]) == bb.Text()
    assert str(bb.Text()) == "text"
    assert str(family) == "text(ngrams=(1, 2), stop_words=('a', 'the'), vocabulary=('a', 'b'))"


def test_settings_are_copied_and_pickled_without_their_tokeniser():
    family = bb.Text(tokens=r"\w+x", min_count=2)
    family.tokeniser, family.split  # noqa: B018
    for twin in (pickle.loads(pickle.dumps(family)), copy.deepcopy(family), copy.copy(family)):
        assert twin == family
        assert set(twin.__dict__) == set(bb.Text().__dict__)


def test_counting_and_estimating_settings_stay_apart():
    tally = count(MEALS, KINDS, bb.Text(ngrams=2))
    again = bb.estimate(tally, features={"text": bb.Text(model="complement", idf=True)})
    assert again.schema.features[0].family == bb.Text(ngrams=2, model="complement", idf=True)
    with pytest.raises(bb.errors.SchemaMismatch, match=r"counted with ngrams=\(1, 2\), not \(1, 3\)"):
        bb.estimate(tally, features={"text": bb.Text(ngrams=3)})


@pytest.mark.parametrize("model", MODELS)
def test_parameters_are_those_of_the_words_kept(model):
    tally = count(MEALS, KINDS, bb.Text(model=model))
    assert tally.n_parameters() == 1 + 2 * (6 if model == "bernoulli" else 5)
    pruned = count(MEALS, KINDS, bb.Text(model=model, min_count=2))
    assert pruned.n_parameters() == 1 + 2 * (4 if model == "bernoulli" else 3)
