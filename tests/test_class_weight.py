"""class_weight: so many times as much does a row of a class weigh, as in scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.model_selection
import sklearn.naive_bayes
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

import banbury as bb
from banbury import errors

CLASSIFIERS = [bb.NaiveBayesClassifier, bb.EvidenceClassifier, bb.TANClassifier]
WEIGHTS = ["balanced", {"rare": 7.5}, {"rare": 3, "often": 0.25, "some": 1, "never": 2}]


def rows(n: int = 300, seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.choice(["often", "rare", "some"], n, p=[0.75, 0.05, 0.2])
    return rng.normal(size=(n, 3)) + (labels == "rare")[:, None] - 0.5 * (labels == "some")[:, None], labels


def odds(answers: np.ndarray) -> np.ndarray:
    return answers - answers[:, :1]


def weights_of(class_weight, labels: np.ndarray) -> np.ndarray:
    """As scikit-learn makes them, one for each class in order."""
    each = dict(zip(labels, compute_sample_weight(class_weight, labels), strict=True))
    return np.array([each[name] for name in sorted(each)])


@pytest.mark.parametrize("class_weight", WEIGHTS[:2])
def test_the_odds_are_those_of_scikit_learns_weighted_rows(class_weight):
    """Without smoothing a class says what it says whatever its rows weigh, so that the prior is all there is to it."""
    X, y = rows()
    ours = bb.NaiveBayesClassifier("gaussian", how="mle", class_weight=class_weight).fit(X, y)
    theirs = sklearn.naive_bayes.GaussianNB(var_smoothing=0)
    theirs.fit(X, y, sample_weight=compute_sample_weight(class_weight, y))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("class_weight", WEIGHTS[:2])
@pytest.mark.parametrize("classifier", CLASSIFIERS[:2])
def test_it_multiplies_the_odds_and_leaves_the_tally_alone(classifier, class_weight):
    X, y = rows()
    plain, weighted = classifier().fit(X, y), classifier(class_weight=class_weight).fit(X, y)
    assert weighted.tally_ == plain.tally_
    more = odds(weighted.predict_log_proba(X)) - odds(plain.predict_log_proba(X))
    expected = odds(np.log(weights_of(class_weight, y))[None])
    np.testing.assert_allclose(more, np.broadcast_to(expected, more.shape), atol=1e-9)
    saved = weighted.model_.posterior(X)
    np.testing.assert_array_equal(saved, weighted.predict_proba(X))


def test_balanced_is_a_uniform_prior_whatever_the_rows_weigh():
    X, y = rows()
    weights = np.random.default_rng(0).random(len(y))
    balanced = bb.NaiveBayesClassifier(class_weight="balanced").fit(X, y, weights).predict_proba(X)
    np.testing.assert_array_equal(
        balanced, bb.NaiveBayesClassifier(class_prior="uniform").fit(X, y, weights).predict_proba(X)
    )


@pytest.mark.parametrize("class_weight", WEIGHTS)
def test_the_prior_follows_rows_that_come_and_go(class_weight):
    texts = ["free pills", "lunch at noon", "free lunch", "pills pills", "noon meeting", "meeting lunch"]
    labels = ["rare", "often", "rare", "rare", "often", "some"]
    clf = bb.NaiveBayesClassifier(class_weight=class_weight)
    for text, label in zip(texts, labels, strict=True):
        clf.partial_fit([text], [label]).predict(["free lunch"])
    whole = bb.NaiveBayesClassifier(class_weight=class_weight).fit(texts, labels)
    np.testing.assert_allclose(clf.predict_proba(texts), whole.predict_proba(texts), atol=1e-12)
    clf.forget(texts[:1], labels[:1])
    less = bb.NaiveBayesClassifier(class_weight=class_weight).fit(texts[1:], labels[1:])
    np.testing.assert_allclose(clf.predict_proba(texts), less.predict_proba(texts), atol=1e-12)
    np.testing.assert_allclose(clf.model_.posterior(texts), less.predict_proba(texts), atol=1e-12)


@pytest.mark.parametrize("class_weight", WEIGHTS[:2])
def test_a_tree_stays_that_of_the_rows_and_the_odds_are_weighted(class_weight):
    X, y = rows()
    tree, plain = bb.TANClassifier(class_weight=class_weight).fit(X, y), bb.TANClassifier().fit(X, y)
    assert tree.tally_ == plain.tally_ and tree.network_.edges == plain.network_.edges
    weights = compute_class_weight(class_weight, classes=plain.classes_, y=y)
    shares = plain.predict_proba(X) * weights
    np.testing.assert_allclose(tree.predict_proba(X), shares / shares.sum(axis=1, keepdims=True), atol=1e-9)


def test_balanced_trees_do_not_depend_on_the_order_of_rows():
    X, y = rows()
    weights = np.random.default_rng(1).random(len(y))
    order = np.random.default_rng(2).permutation(len(y))
    one, other = bb.TANClassifier(class_weight="balanced"), bb.TANClassifier(class_weight="balanced")
    one.fit(X, y, weights), other.fit(X[order], y[order], weights[order])
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_what_is_no_class_weight_is_said(classifier):
    X, y = rows()
    for wrong, said in [
        ("balancd", "Did you mean 'balanced'"),
        ({"raer": 2}, "no class 'raer'. Did you mean 'rare'"),
        ({"rare": 0}, r"class_weight\['rare'\] must be a finite number above 0. Got 0"),
        ({"rare": float("nan")}, "above 0. Got nan"),
        ([1, 2, 3], "a mapping from class to weight"),
    ]:
        with pytest.raises(errors.BanburyError, match=said):
            classifier(class_weight=wrong).fit(X, y)
    classifier(class_weight={"rare": 2, "often": 1, "some": 1, "absent in this fold": 3}).fit(X, y)


def test_it_multiplies_a_class_prior_that_is_given():
    X, y = rows()
    given = bb.NaiveBayesClassifier(class_prior=[0.5, 0.3, 0.2], class_weight={"rare": 2, "some": 0.5}).fit(X, y)
    same = bb.NaiveBayesClassifier(class_prior=[0.5 / 1.2, 0.6 / 1.2, 0.1 / 1.2]).fit(X, y)
    np.testing.assert_allclose(given.predict_proba(X), same.predict_proba(X), atol=1e-12)


def test_balanced_with_a_class_prior_and_a_calibration_are_refused():
    X, y = rows()
    for settings in ({"class_prior": "uniform"}, {"calibrate": "platt"}):
        with pytest.raises(errors.BadSetting, match="must be None with class_weight"):
            bb.NaiveBayesClassifier(class_weight="balanced", **settings).fit(X, y)


def test_validation_takes_balanced_and_names_the_way_for_others():
    X, y = rows()
    for classifier in CLASSIFIERS[:2]:
        here = bb.cross_validate(classifier(class_weight="balanced"), X, y, folds=5)
        weigh = {"weigh": True} if classifier is bb.EvidenceClassifier else {}
        np.testing.assert_array_equal(
            here.posteriors, bb.cross_validate(X, y, folds=5, class_prior="uniform", **weigh).posteriors
        )
        with pytest.raises(errors.BadSetting, match="scikit-learn's cross_validate accepts other values"):
            bb.cross_validate(classifier(class_weight={"rare": 2}), X, y)
    scores = sklearn.model_selection.cross_val_score(bb.NaiveBayesClassifier(class_weight={"rare": 2}), X, y)
    assert (scores > 0.5).all()


def test_an_alpha_that_is_chosen_is_that_of_the_rows_as_they_are():
    X, y = rows()
    weighted = bb.NaiveBayesClassifier("histogram", alpha="auto", class_weight={"rare": 5}).fit(X, y)
    assert weighted.alpha_ == bb.NaiveBayesClassifier("histogram", alpha="auto").fit(X, y).alpha_
