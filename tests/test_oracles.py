"""scikit-learn as an oracle: the same rows, the same prior, the same probabilities to 1e-9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB

import banbury as bb
from banbury import NaiveBayesClassifier

LOADERS = [load_wine, load_iris, load_digits, load_breast_cancer]
FLOOR = 1e-9  # of the column's variance: the least our Gaussian's variance can be


def assert_same(ours: NaiveBayesClassifier, oracle: Any, X: Any, X_oracle: Any = None, rel: float = 1e-9) -> None:
    """The same classes, joint log-likelihoods, posteriors and answers."""
    X_oracle = X if X_oracle is None else X_oracle
    assert ours.classes_.tolist() == oracle.classes_.tolist()
    joint = oracle.predict_joint_log_proba(X_oracle)
    np.testing.assert_allclose(ours.predict_joint_log_proba(X), joint, rtol=rel, atol=rel)
    np.testing.assert_allclose(ours.predict_log_proba(X), oracle.predict_log_proba(X_oracle), rtol=rel, atol=rel)
    np.testing.assert_allclose(ours.predict_proba(X), oracle.predict_proba(X_oracle), rtol=rel, atol=rel)
    top = np.sort(joint, axis=1)
    clear = top[:, -1] - top[:, -2] > 1e-6 if joint.shape[1] > 1 else np.ones(len(joint), dtype=bool)
    assert (ours.predict(X) == oracle.predict(X_oracle))[clear].all()


def floored(oracle: GaussianNB, X: Any, sample_weight: Any = None) -> GaussianNB:
    """The oracle with our floor in place of its addend."""
    assert oracle.var_smoothing == 0
    mean = np.average(X, axis=0, weights=sample_weight)
    oracle.var_ = np.maximum(oracle.var_, FLOOR * np.average((X - mean) ** 2, axis=0, weights=sample_weight))
    return oracle


def draw(seed: int, n_rows: int, n_columns: int, n_classes: int) -> tuple[np.random.Generator, np.ndarray]:
    """A generator, and labels with at least two rows of each class."""
    rng = np.random.default_rng(seed)
    rest = rng.integers(0, n_classes, max(0, n_rows - 2 * n_classes))
    return rng, rng.permutation(np.concatenate([np.arange(n_classes), np.arange(n_classes), rest]))


shapes = st.tuples(
    st.integers(0, 2**32 - 1), st.integers(1, 200), st.sampled_from([1, 2, 3, 7, 40]), st.sampled_from([1, 2, 3, 6])
)
priors = st.sampled_from(["frequencies", "uniform", "given"])


def class_prior(kind: str, n_classes: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """The same prior for us and for scikit-learn, where None means the frequencies."""
    if kind == "frequencies":
        return None, None
    if kind == "uniform":
        return "uniform", np.full(n_classes, 1 / n_classes)
    given = rng.dirichlet(np.ones(n_classes))
    return given, given


# Gaussian


@given(shape=shapes, prior=priors, weighted=st.booleans(), place=st.sampled_from([0.0, -50.0, 1e4]))
def test_gaussian(shape, prior, weighted, place):
    rng, y = draw(*shape)
    _, _, n_columns, n_classes = shape
    X = (rng.normal(size=(len(y), n_columns)) + y[:, None] + place) * np.exp(rng.normal(size=n_columns) * 3)
    weights = rng.random(len(y)) + 0.05 if weighted else None
    ours, theirs = class_prior(prior, n_classes, rng)
    clf = NaiveBayesClassifier(features="gaussian", class_prior=ours).fit(X, y, sample_weight=weights)
    oracle = floored(GaussianNB(priors=theirs, var_smoothing=0).fit(X, y, sample_weight=weights), X, weights)
    assert_same(clf, oracle, X, rel=tolerance(oracle, X))


def tolerance(oracle: GaussianNB, X: np.ndarray) -> float:
    """1e-9, or what variances are good for where that is less.

    Theirs lose digits to a far place. Ours are sums about the column's origin, rounded within a block: of a class that is
    narrow in a wide column they keep 16 digits of the column's variance.
    """
    theirs = 1e-14 * oracle.theta_**2 / oracle.var_
    ours = 4e-15 * X.var(axis=0) / oracle.var_
    return max(1e-9, float(theirs.max()), float(ours.max()))


@pytest.mark.parametrize("place", [2.0**20, -(2.0**30), 2.0**40])
def test_gaussian_far_from_zero_loses_nothing(place):
    rng = np.random.default_rng(5)
    X, y = rng.integers(-200, 200, (300, 4)) / 64, np.arange(300) % 3  # sums with the place are exact
    clf = NaiveBayesClassifier(features="gaussian").fit(X + place, y)
    assert_same(clf, GaussianNB(var_smoothing=0).fit(X, y), X + place, X)


@pytest.mark.parametrize("load", LOADERS)
def test_gaussian_on_known_data(load):
    X, y = load(return_X_y=True)
    X = X[:, X.var(axis=0) > 0]
    clf = NaiveBayesClassifier(features="gaussian").fit(X, y)
    assert_same(clf, floored(GaussianNB(var_smoothing=0).fit(X, y), X), X)


@pytest.mark.parametrize("load", LOADERS)
def test_constant_columns_say_nothing(load):
    """Left out, and therefore as if they were not there (scikit-learn's floor makes them say nothing too)."""
    X, y = load(return_X_y=True)
    steady = np.column_stack([X, np.full(len(X), 3.0)])
    assert list(NaiveBayesClassifier().fit(steady, y).tally_.schema.left_out) == [
        f"x{j}" for j in np.flatnonzero(steady.var(axis=0) == 0)
    ]
    clf = NaiveBayesClassifier(features={f"x{j}": "gaussian" for j in np.flatnonzero(steady.var(axis=0) > 0)})
    clf.fit(steady, y)
    kept = X[:, X.var(axis=0) > 0]
    assert_same(clf, floored(GaussianNB(var_smoothing=0).fit(kept, y), kept), steady, kept)


@pytest.mark.parametrize("load", LOADERS)
def test_gaussian_in_batches_on_known_data(load):
    X, y = load(return_X_y=True)
    X = X[:, X.var(axis=0) > 0]
    clf = NaiveBayesClassifier(features="gaussian")
    for part in np.array_split(np.random.default_rng(0).permutation(len(X)), 7):
        clf.partial_fit(X[part], y[part])
    assert_same(clf, floored(GaussianNB(var_smoothing=0).fit(X, y), X), X)


@pytest.mark.parametrize("how", ["mle", "map", "mean"])
def test_without_a_prior_mle_map_and_mean_are_one(how):
    X, y = load_wine(return_X_y=True)
    clf = NaiveBayesClassifier(features="gaussian", how=how).fit(X, y)
    assert_same(clf, GaussianNB(var_smoothing=0).fit(X, y), X)


# What holds the numbers


INPUTS = {
    "fortran": lambda X: np.asfortranarray(X),
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: X[::-1, ::-1][::-1, ::-1],
    "list": lambda X: X.tolist(),
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "object": lambda X: X.astype(object),
    "read-only": lambda X: np.frombuffer(X.tobytes(), dtype=X.dtype).reshape(X.shape),
}


@pytest.mark.parametrize("held", INPUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16, np.uint8])
def test_how_an_array_is_held_has_no_effect(held, dtype):
    X, y = load_digits(return_X_y=True)
    X, y = (X[:400, 2:6] * (1.1 if np.dtype(dtype).kind == "f" else 1)).astype(dtype), y[:400]
    clf = NaiveBayesClassifier(features="gaussian").fit(INPUTS[held](X), y)
    plain = X.astype(np.float64)
    assert_same(clf, floored(GaussianNB(var_smoothing=0).fit(plain, y), plain), INPUTS[held](X), plain)


def test_float32_is_read_as_the_numbers_it_holds():
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32)
    oracle = GaussianNB(var_smoothing=0).fit(X.astype(np.float64), y)
    assert_same(NaiveBayesClassifier(features="gaussian").fit(X, y), oracle, X, X.astype(np.float64))


def test_float16_is_read_as_the_numbers_it_holds():
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float16)
    oracle = GaussianNB(var_smoothing=0).fit(X.astype(np.float64), y)
    assert_same(NaiveBayesClassifier(features="gaussian").fit(X, y), oracle, X, X.astype(np.float64))


# Bernoulli


@given(
    shape=shapes,
    prior=priors,
    weighted=st.booleans(),
    alpha=st.sampled_from([0.01, 0.1, 1.0, 3.5]),
    dtype=st.sampled_from([bool, np.int8, np.int64, np.float32, np.float64]),
)
def test_bernoulli(shape, prior, weighted, alpha, dtype):
    rng, y = draw(*shape)
    X = (rng.random((len(y), shape[2])) < rng.random(shape[2])).astype(dtype)
    weights = rng.random(len(y)) + 0.05 if weighted else None
    ours, theirs = class_prior(prior, shape[3], rng)
    clf = NaiveBayesClassifier(features="bernoulli", alpha=alpha, class_prior=ours).fit(X, y, sample_weight=weights)
    oracle = BernoulliNB(alpha=alpha, class_prior=theirs).fit(X, y, sample_weight=weights)
    assert_same(clf, oracle, X)


@pytest.mark.parametrize("fit_prior", [True, False])
@pytest.mark.parametrize("load", LOADERS)
def test_bernoulli_above_a_threshold_on_known_data(load, fit_prior):
    X, y = load(return_X_y=True)
    threshold = float(np.median(X))
    given = None if fit_prior else "uniform"
    clf = NaiveBayesClassifier(features=bb.Bernoulli(threshold=threshold), class_prior=given).fit(X, y)
    assert_same(clf, BernoulliNB(binarize=threshold, fit_prior=fit_prior).fit(X, y), X)


def test_alpha_zero_is_raised_as_scikit_learn_raises_it():
    """(Against CategoricalNB: BernoulliNB takes log(1 − p), which for p = 1 − 1e-10 has lost ten digits.)"""
    X, y = np.array([[0, 1], [1, 0], [1, 1], [0, 1]]), [0, 1, 1, 0]
    with pytest.warns(UserWarning, match="alpha too small"):
        oracle = CategoricalNB(alpha=0, force_alpha=False).fit(X, y)
    for features in ("bernoulli", "categorical"):
        assert_same(NaiveBayesClassifier(features=features, alpha=0).fit(X, y), oracle, X)


def test_a_matrix_of_booleans_is_bernoulli():
    rng = np.random.default_rng(3)
    X, y = rng.random((60, 5)) < 0.3, np.arange(60) % 3
    assert_same(NaiveBayesClassifier().fit(X, y), BernoulliNB().fit(X, y), X)


# Categorical


@given(
    shape=shapes,
    prior=priors,
    weighted=st.booleans(),
    alpha=st.sampled_from([1e-10, 0.1, 1.0, 3.5]),
    n_values=st.integers(2, 9),
    dtype=st.sampled_from([np.int8, np.int64, np.uint16, np.float64]),
)
def test_categorical_with_declared_values(shape, prior, weighted, alpha, n_values, dtype):
    rng, y = draw(*shape)
    X = rng.integers(0, n_values, (len(y), shape[2])).astype(dtype)
    weights = rng.random(len(y)) + 0.05 if weighted else None
    ours, theirs = class_prior(prior, shape[3], rng)
    features = bb.Categorical(values=range(n_values))
    clf = NaiveBayesClassifier(features=features, alpha=alpha, class_prior=ours).fit(X, y, sample_weight=weights)
    oracle = CategoricalNB(alpha=alpha, class_prior=theirs, min_categories=n_values).fit(X, y, sample_weight=weights)
    unseen = rng.integers(0, n_values, (20, shape[2]))  # seen or not: declared
    assert_same(clf, oracle, X)
    assert_same(clf, oracle, unseen.astype(dtype), unseen)


@given(shape=shapes, n_values=st.integers(2, 9), fit_prior=st.booleans())
def test_categorical_with_the_values_seen(shape, n_values, fit_prior):
    rng, y = draw(*shape)
    X = rng.integers(0, n_values, (len(y), shape[2]))
    X = np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T])  # scikit-learn knows no gaps
    given = None if fit_prior else "uniform"
    clf = NaiveBayesClassifier(features="categorical", class_prior=given).fit(X, y)
    assert_same(clf, CategoricalNB(fit_prior=fit_prior).fit(X, y), X)


@given(seed=st.integers(0, 2**32 - 1), min_categories=st.lists(st.integers(1, 8), min_size=3, max_size=3))
def test_declared_values_are_min_categories_column_by_column(seed, min_categories):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, size, 30) for size in min_categories])
    y = np.arange(30) % 2
    declared = {j: bb.Categorical(values=range(size)) for j, size in enumerate(min_categories)}
    clf = NaiveBayesClassifier(features=declared).fit(X, y)
    assert_same(clf, CategoricalNB(min_categories=min_categories).fit(X, y), X)


def test_words_are_scored_as_their_codes():
    rng = np.random.default_rng(4)
    codes, y = rng.integers(0, 5, (200, 6)), rng.choice(["x", "y", "z"], 200)
    words = np.array(["red", "green", "blue", "grey", "été"])[codes]
    for X in (words, words.astype(object), words.tolist()):
        assert_same(NaiveBayesClassifier().fit(X, y), CategoricalNB(min_categories=5).fit(codes, y), X, codes)


@pytest.mark.parametrize("load", [load_digits])
def test_categorical_on_known_data(load):
    X, y = load(return_X_y=True)
    clf = NaiveBayesClassifier(features=bb.Categorical(values=range(17)), alpha=0.5).fit(X, y)
    assert_same(clf, CategoricalNB(alpha=0.5, min_categories=17).fit(X, y), X)


# Together


@given(shape=shapes, weighted=st.booleans())
def test_a_mixed_model_is_the_sum_of_its_parts(shape, weighted):
    rng, y = draw(*shape)
    n, d = len(y), shape[2]
    numbers = rng.normal(size=(n, d)) + y[:, None]
    flags = (rng.random((n, d)) < 0.4).astype(float)
    values = rng.integers(0, 4, (n, d)).astype(float)
    weights = rng.random(n) + 0.05 if weighted else None
    columns = {f"number{j}": numbers[:, j] for j in range(d)}
    columns |= {f"flag{j}": flags[:, j] for j in range(d)}
    columns |= {f"value{j}": values[:, j] for j in range(d)}
    names = rng.permutation(list(columns)).tolist()  # families in any order
    features = {"n": bb.Gaussian(), "f": bb.Bernoulli(), "v": bb.Categorical(values=range(4))}
    clf = NaiveBayesClassifier(features={name: features[name[0]] for name in names})
    X = {name: columns[name] for name in names}
    clf.fit(X, y, sample_weight=weights)
    oracles = GaussianNB(var_smoothing=0), BernoulliNB(), CategoricalNB(min_categories=4)
    for oracle, Z in zip(oracles, (numbers, flags, values), strict=True):
        oracle.fit(Z, y, sample_weight=weights)
    floored(oracles[0], numbers, weights)
    joint = sum(o.predict_joint_log_proba(Z) for o, Z in zip(oracles, (numbers, flags, values), strict=True))
    joint -= 2 * np.log(oracles[0].class_prior_)  # the prior was in each of the three
    rel = tolerance(oracles[0], numbers)
    np.testing.assert_allclose(clf.predict_joint_log_proba(X), joint, rtol=rel, atol=rel)


# A shared variance


@given(
    seed=st.integers(0, 2**32 - 1), n_classes=st.sampled_from([2, 3, 5]), how=st.sampled_from(["mle", "mean", "gibbs"])
)
def test_log_odds_are_linear_when_the_variance_is_shared(seed, n_classes, how):
    rng, y = draw(seed, 60, 4, n_classes)
    X = rng.normal(size=(len(y), 4)) * (1 + y[:, None]) + y[:, None]
    clf = NaiveBayesClassifier(features=bb.Gaussian(variance="shared"), how=how).fit(X, y)

    def log_odds(rows: np.ndarray) -> np.ndarray:
        joint = clf.predict_joint_log_proba(rows)
        return joint - joint[:, [0]]

    a, b, t = rng.normal(size=(20, 4)) * 5, rng.normal(size=(20, 4)) * 5, rng.normal(size=(20, 1)) * 2
    straight = (1 - t) * log_odds(a) + t * log_odds(b)
    np.testing.assert_allclose(log_odds((1 - t) * a + t * b), straight, rtol=1e-8, atol=1e-7)


def test_a_shared_variance_is_the_mean_within_classes():
    X, y = load_iris(return_X_y=True)
    clf = NaiveBayesClassifier(features=bb.Gaussian(variance="shared"), how="mle").fit(X, y)
    oracle = GaussianNB(var_smoothing=0).fit(X, y)
    oracle.var_ = np.tile(np.average(oracle.var_, axis=0, weights=oracle.class_count_), (3, 1))
    assert_same(clf, oracle, X)


def test_a_shared_variance_of_one_column_is_lda():
    """With a single column there is no covariance to leave out, so the two are one model."""
    X, y = load_iris(return_X_y=True)
    for j in range(4):
        clf = NaiveBayesClassifier(features=bb.Gaussian(variance="shared"), how="mle").fit(X[:, [j]], y)
        lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X[:, [j]], y)
        # lsqr's covariance is the mean within classes over n, as ours
        np.testing.assert_allclose(clf.predict_proba(X[:, [j]]), lda.predict_proba(X[:, [j]]), rtol=1e-7, atol=1e-9)


def test_without_a_shared_variance_log_odds_are_not_linear():
    X, y = load_iris(return_X_y=True)
    joint = NaiveBayesClassifier().fit(X, y).predict_joint_log_proba(np.array([[4.0] * 4, [5.0] * 4, [6.0] * 4]))
    odds = joint[:, 1] - joint[:, 0]
    assert abs(odds[0] - 2 * odds[1] + odds[2]) > 1
