"""The drop-in replacements of scikit-learn's naive Bayes classes beside the originals: numbers, errors, habits and extras."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn import naive_bayes as theirs
from sklearn.exceptions import NotFittedError

import banbury as bb

NAMES = ("BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB")
COUNTING = ("BernoulliNB", "ComplementNB", "MultinomialNB")
DISCRETE = (*COUNTING, "CategoricalNB")
ATTRIBUTES = """classes_ class_count_ class_log_prior_ class_prior_ feature_count_ feature_log_prob_ feature_all_ theta_ var_
    epsilon_ category_count_ n_categories_ n_features_in_ feature_names_in_""".split()

every_class = pytest.mark.parametrize("name", NAMES)
every_counting = pytest.mark.parametrize("name", COUNTING)
every_discrete = pytest.mark.parametrize("name", DISCRETE)

# As many examples as the profile says, shared out among the classes.
law = settings(max_examples=max(10, settings.default.max_examples // 3))


def ours(name: str, **parameters: Any) -> Any:
    return getattr(bb, name)(**parameters)


def original(name: str, **parameters: Any) -> Any:
    return getattr(theirs, name)(**parameters)


# Comparing -----------------------------------------------------------------------------------------------------------


def close(found: Any, expected: Any, rtol: float = 1e-10) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def assert_attributes(mine: Any, other: Any, without: tuple[str, ...] = (), rtol: float = 1e-10) -> None:
    """Every fitted attribute: there or not, value, shape and type."""
    for name in ATTRIBUTES:
        assert hasattr(mine, name) == hasattr(other, name), name
        if name in without or not hasattr(other, name):
            continue
        found, expected = getattr(mine, name), getattr(other, name)
        assert isinstance(found, list) == isinstance(expected, list), name
        for a, b in zip(found, expected, strict=True) if isinstance(found, list) else [(found, expected)]:
            assert (np.shape(a), np.asarray(a).dtype) == (np.shape(b), np.asarray(b).dtype), name
            if np.asarray(b).dtype.kind in "fc":
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=name)
            else:
                np.testing.assert_array_equal(a, b, err_msg=name)


def assert_answers(mine: Any, other: Any, rows: Any, rtol: float = 1e-10) -> None:
    """All four methods. Where log joints are astronomical, posteriors hang on digits that no double has."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        joint, logs, shares = (
            getattr(other, f"predict_{each}")(rows) for each in ("joint_log_proba", "log_proba", "proba")
        )
    found = mine.predict_joint_log_proba(rows)
    assert (found.shape, found.dtype) == (joint.shape, joint.dtype)
    close(found, joint, rtol)
    finite = np.where(np.isfinite(joint), joint, 0.0)
    slack = rtol * (1.0 + np.abs(finite).max(axis=1, keepdims=True))
    assert (mine.predict_proba(rows).dtype, mine.predict_log_proba(rows).dtype) == (shares.dtype, logs.dtype)
    assert (np.abs(mine.predict_proba(rows) - shares) <= 4 * slack).all()
    np.testing.assert_array_equal(np.isneginf(mine.predict_log_proba(rows)), np.isneginf(logs))
    there = np.isfinite(logs)
    gap = mine.predict_log_proba(rows)[there] - logs[there]
    assert (np.abs(gap) <= (4 * slack + rtol * np.abs(np.where(there, logs, 0.0)))[there]).all()
    best, wanted = mine.predict(rows), other.predict(rows)
    assert (best.shape, best.dtype) == (wanted.shape, wanted.dtype)
    at = np.searchsorted(other.classes_, best)
    tie = finite.max(axis=1, where=np.isfinite(joint), initial=-np.inf) - finite[np.arange(len(at)), at]
    assert ((best == wanted) | (np.abs(tie) <= 4 * slack[:, 0])).all()


# Drawing rows --------------------------------------------------------------------------------------------------------

DENSE = ("C", "F", "strided", "list", "pandas", "polars")
SPARSE = ("csr_matrix", "csr_array", "csc_matrix", "csc_array", "coo_matrix", "coo_array")
DTYPES = ("int64", "int32", "uint8", "float32", "float64", "bool")
LABELS = {
    "whole": np.array([-3, 0, 7]),
    "texts": np.array(["ham", "maybe", "spam"]),
    "objects": np.array(["ham", "maybe", "spam"], dtype=object),
    "floats": np.array([-1.0, 0.0, 2.0]),
}


def contained(X: Any, kind: str) -> Any:
    """The rows in a container."""
    if kind == "C":
        return np.ascontiguousarray(X)
    if kind == "F":
        return np.asfortranarray(X)
    if kind == "strided":
        wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
        wide[::2, ::3] = X
        return wide[::2, ::3]
    if kind == "list":
        return X.tolist()
    names = [f"column {j}" for j in range(X.shape[1])]
    if kind == "pandas":
        return pd.DataFrame(X, columns=names)
    if kind == "polars":
        return pl.DataFrame(dict(zip(names, X.T, strict=True)))
    return getattr(sp, kind)(X)


@dataclass(frozen=True)
class Rows:
    """Rows to learn from and rows to ask about, in one container and of one type."""

    X: Any
    y: Any
    weights: Any
    asked: Any
    container: str
    classes: Any = field(default=None)

    def at(self, index: Any) -> tuple[Any, Any, Any]:
        """Some rows as they would come."""
        weights = None if self.weights is None else self.weights[index]
        return contained(self.X[index], self.container), self.y[index], weights

    @property
    def all(self) -> tuple[Any, Any, Any]:
        return self.at(np.arange(len(self.y)))

    @property
    def questions(self) -> Any:
        return contained(self.asked, self.container)


def cells(name: str, dtype: str) -> st.SearchStrategy[Any]:
    """What a class takes for numbers."""
    if dtype == "bool":
        return st.booleans()
    if name == "CategoricalNB":
        return st.integers(0, 4)
    if dtype[0] != "f":
        lowest = 0 if dtype[0] == "u" or name in ("ComplementNB", "MultinomialNB") else -3
        return st.integers(lowest, 6)
    if name in ("ComplementNB", "MultinomialNB"):
        return st.sampled_from([0.0, 0.0, 1.0, 2.0, 0.25, 0.1, 3.7, 1e-3, 1e3])
    if name == "BernoulliNB":
        return st.integers(-4, 8).map(lambda i: i / 4)
    return st.sampled_from([0.0, 0.1, -0.3, 1.0, 2.5, -7.25, 11.0, 100.1])


@st.composite
def tables(
    draw: st.DrawFn, name: str, container: tuple[str, ...] | None = None, dtype: tuple[str, ...] = DTYPES
) -> Rows:
    """Rows that both take, with labels and weights of every kind."""
    takes_sparse = name not in ("CategoricalNB", "GaussianNB")
    kind = draw(st.sampled_from(container or (DENSE + SPARSE if takes_sparse else DENSE)))
    n, k, more = draw(st.integers(2, 10)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    given_dtype = draw(st.sampled_from(dtype))
    X = draw(
        arrays.arrays(
            given_dtype, (n + more, k), elements=cells(name, given_dtype).map(lambda x: np.dtype(given_dtype).type(x))
        )
    )
    names = LABELS[draw(st.sampled_from(sorted(LABELS)))]
    y = names[draw(arrays.arrays(np.int64, n, elements=st.integers(0, 2)))]
    weight = {
        "none": None,
        "whole": st.integers(1, 4).map(float),
        "fractional": st.sampled_from([0.1, 0.5, 1.0, 1.7, 2**-6]),
        "zeros": st.sampled_from([0.0, 1.0, 0.5]),
    }[draw(st.sampled_from(["none", "none", "whole", "fractional", "zeros"]))]
    weights = None if weight is None else draw(arrays.arrays(np.float64, n, elements=weight))
    if weights is not None and not weights.any():
        weights[0] = 1.0
    if weights is not None and name == "GaussianNB":  # a class without rows is a case of its own
        weights[np.unique(y, return_index=True)[1]] = 1.0
    if name == "CategoricalNB":  # theirs fails on what it has not seen, and rows of no weight bring it categories
        seen = X[:n] if weights is None else X[:n][weights > 0]
        X = np.minimum(X, seen.max(axis=0))
    return Rows(X[:n], y, weights, X, kind, names)


@st.composite
def parameters(draw: st.DrawFn, name: str, n_features: int, n_classes: int) -> dict[str, Any]:
    """Settings that both take and that both do right."""
    shares = draw(st.lists(st.integers(1, 9), min_size=n_classes, max_size=n_classes))
    prior = np.array(shares) / sum(shares)
    if name == "GaussianNB":
        chosen = {"priors": prior, "var_smoothing": draw(st.sampled_from([1e-9, 1e-3, 0.5]))}
    else:
        vector = draw(st.lists(st.sampled_from([0.1, 1.0, 2.5]), min_size=n_features, max_size=n_features))
        one = [1.0, 0.5, 3, 1e-3]
        chosen = {
            "alpha": draw(
                st.sampled_from([*one, vector, np.array(vector)] if name in ("ComplementNB", "MultinomialNB") else one)
            ),
            "force_alpha": draw(st.booleans()),
            "class_prior": draw(st.sampled_from([prior, prior.tolist(), prior * 3])),
            "fit_prior": draw(st.booleans()),
        }
    if name == "BernoulliNB":
        chosen["binarize"] = draw(st.sampled_from([0.0, 0.5, 1, 1.25]))
    if name == "ComplementNB":
        chosen |= {"norm": n_features > 1 and draw(st.booleans()), "fit_prior": False, "class_prior": None}
    if name == "CategoricalNB":
        least = draw(st.lists(st.integers(1, 7), min_size=n_features, max_size=n_features))
        chosen["min_categories"] = draw(st.sampled_from([6, least, np.array(least)]))
    kept = draw(st.sets(st.sampled_from(sorted(chosen))))
    if name == "ComplementNB":
        kept |= {"fit_prior"}
    return {key: value for key, value in chosen.items() if key in kept}


def same_floor(other: Any, mine: Any) -> Any:
    """Theirs with our floor of variances: theirs does not weigh the rows that it follows from."""
    if hasattr(other, "epsilon_"):
        other.var_ += mine.epsilon_ - other.epsilon_
        other.epsilon_ = type(other.epsilon_)(mine.epsilon_)
    return other


# Numbers -------------------------------------------------------------------------------------------------------------


@every_class
@law
@given(data=st.data())
def test_a_fit_has_their_numbers(name: str, data: st.DataObject) -> None:
    rows = data.draw(tables(name))
    chosen = data.draw(parameters(name, rows.X.shape[1], len(np.unique(rows.y))))
    X, y, weights = rows.all
    mine = ours(name, **chosen).fit(X, y, sample_weight=weights)
    other = original(name, **chosen).fit(X, y, sample_weight=weights)
    if weights is not None:
        same_floor(other, mine)
    assume(getattr(other, "epsilon_", 1.0) > 0)  # a column of one number alone
    rtol = 1e-10 if rows.X.dtype != np.float32 or name != "GaussianNB" else 1e-4
    assert_attributes(mine, other, rtol=rtol)
    assert_answers(mine, other, rows.questions, rtol=rtol)


def batches(data: st.DataObject, rows: Rows) -> list[Any]:
    """All rows in some order, cut somewhere; but none of no weight, which both refuse."""
    n = len(rows.y)
    order = np.array(data.draw(st.permutations(range(n))))
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=3)) | {0, n})
    parts = [order[a:b] for a, b in pairwise(cuts)]
    return [rows.at(part) for part in parts if rows.weights is None or rows.weights[part].any()]


@every_discrete
@law
@given(data=st.data())
def test_after_every_batch_it_has_their_numbers(name: str, data: st.DataObject) -> None:
    rows = data.draw(tables(name))
    chosen = data.draw(parameters(name, rows.X.shape[1], len(rows.classes)))
    if name == "CategoricalNB":
        chosen["min_categories"] = 6  # theirs keeps the number of the last batch, and fails on what is new
    mine, other = ours(name, **chosen), original(name, **chosen)
    for X, y, weights in batches(data, rows):
        mine.partial_fit(X, y, classes=rows.classes, sample_weight=weights)
        other.partial_fit(X, y, classes=rows.classes, sample_weight=weights)
        assert_attributes(mine, other)
        assert_answers(mine, other, rows.questions)


@every_class
@law
@given(data=st.data())
def test_batches_in_any_cut_and_order_are_their_fit(name: str, data: st.DataObject) -> None:
    rows = data.draw(tables(name, dtype=("int64", "float64")))
    chosen = data.draw(parameters(name, rows.X.shape[1], len(np.unique(rows.y))))
    X, y, weights = rows.all
    other, mine = original(name, **chosen).fit(X, y, sample_weight=weights), ours(name, **chosen)
    for X, y, weights in batches(data, rows):
        mine.partial_fit(X, y, classes=other.classes_, sample_weight=weights)
    if weights is not None:
        same_floor(other, mine)
    assume(getattr(other, "epsilon_", 1.0) > 0)
    assert_attributes(mine, other)
    assert_answers(mine, other, rows.questions)


@every_class
@law
@given(data=st.data())
def test_batches_of_one_row_and_predictions_between_are_their_fit(name: str, data: st.DataObject) -> None:
    rows = data.draw(tables(name, dtype=("int64", "float64")))
    X, y, weights = rows.all
    other = original(name, **({"fit_prior": False} if name == "ComplementNB" else {})).fit(X, y, sample_weight=weights)
    mine = ours(name, **({"fit_prior": False} if name == "ComplementNB" else {}))
    for i in range(len(y)) if weights is None else np.flatnonzero(weights):
        X, label, weight = rows.at([i])
        mine.partial_fit(X, label, classes=other.classes_, sample_weight=weight)
        mine.predict_proba(rows.questions)
    if weights is not None:
        same_floor(other, mine)
    assume(getattr(other, "epsilon_", 1.0) > 0)
    rtol = (
        1e-8 if name == "GaussianNB" else 1e-10
    )  # the first row's place settles about what the others' squares are summed
    assert_attributes(mine, other, rtol=rtol)
    assert_answers(mine, other, rows.questions, rtol)


@law
@given(data=st.data())
def test_shares_of_a_bernoulli_column_have_their_numbers(data: st.DataObject) -> None:
    """``binarize=None`` with numbers from 0 to 1."""
    rows = data.draw(tables("BernoulliNB", dtype=("float64",)))
    X, y, weights = contained(np.abs(rows.X) / 2, rows.container), rows.y, rows.weights
    mine, other = (make("BernoulliNB", binarize=None).fit(X, y, sample_weight=weights) for make in (ours, original))
    assert_attributes(mine, other)
    assert_answers(mine, other, X)


@law
@given(data=st.data())
def test_variances_without_smoothing_have_their_numbers(data: st.DataObject) -> None:
    rows = data.draw(tables("GaussianNB", dtype=("int64", "float64")))
    X, y = np.vstack([rows.X, rows.X + 1]), np.r_[rows.y, rows.y]  # no column of a class is all of one number
    weights = None if rows.weights is None else np.r_[rows.weights, rows.weights]
    X = contained(X, rows.container)
    mine = ours("GaussianNB", var_smoothing=0).fit(X, y, sample_weight=weights)
    other = original("GaussianNB", var_smoothing=0).fit(X, y, sample_weight=weights)
    assert_attributes(mine, other)
    assert_answers(mine, other, rows.questions)


@every_class
def test_one_weight_for_all_rows_is_a_number(name: str) -> None:
    mine, other = (make(name).fit([[0, 1], [1, 0], [1, 1]], [0, 1, 1], sample_weight=3) for make in (ours, original))
    assert_attributes(mine, other)


@every_class
@pytest.mark.parametrize("labels", ["series", "list", "column", "polars"])
def test_labels_come_as_they_do_to_theirs(name: str, labels: str) -> None:
    X, y = np.array([[0, 1], [1, 0], [1, 1], [0, 0]]), ["spam", "ham", "ham", "more"]
    given_labels = {
        "series": pd.Series(y, index=[7, 8, 9, 7]),
        "list": y,
        "column": np.array(y)[:, None],
        "polars": pl.Series(y),
    }[labels]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that y is a column
        mine, other = (make(name).fit(X, given_labels) for make in (ours, original))
    assert_attributes(mine, other)
    assert (mine.predict(X).dtype, set(mine.predict(X)) <= set(y)) == (other.predict(X).dtype, True)


@every_counting
def test_twins_in_a_sparse_matrix_are_summed(name: str) -> None:
    """Two numbers that stand in one place are their sum."""
    cells = ([0.5, 0.75, 1.0, 2.0], ([0, 0, 1, 2], [1, 1, 0, 1]))
    chosen = {"fit_prior": False} | ({"binarize": 1.0} if name == "BernoulliNB" else {})
    for kind in SPARSE:
        X = getattr(sp, kind)(cells, shape=(3, 2))
        mine, other = (make(name, **chosen).fit(X.toarray(), [0, 1, 1]) for make in (ours, original))
        again = ours(name, **chosen).fit(X, [0, 1, 1])
        assert_attributes(again, other)
        assert_answers(again, mine, X)


# Where theirs is wrong -----------------------------------------------------------------------------------------------


def nans(call: Any) -> Any:
    """What theirs answers, without the warnings that come with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def test_their_variances_depend_on_the_order_of_batches_and_ours_do_not() -> None:
    X, y = np.array([[0.0], [1000.0], [0.0], [0.001], [0.0], [0.002]]), np.array([0, 1, 0, 0, 1, 1])
    parts, classes = [slice(0, 2), slice(2, 4), slice(4, 6)], [0, 1]
    found: dict[str, list[Any]] = {"mine": [], "other": []}
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        mine, other = ours("GaussianNB", var_smoothing=0.1), original("GaussianNB", var_smoothing=0.1)
        for i in order:
            mine.partial_fit(X[parts[i]], y[parts[i]], classes)
            other.partial_fit(X[parts[i]], y[parts[i]], classes)
        found["mine"].append(mine.var_)
        found["other"].append(other.var_)
    fitted = original("GaussianNB", var_smoothing=0.1).fit(X, y).var_
    for var in found["mine"]:
        close(var, fitted)
    assert max(abs(var - fitted).max() for var in found["other"]) > 1000


def test_their_variances_reach_zero_row_by_row_and_ours_never_do() -> None:
    X, y = [[1.0], [0.0], [1.0], [2.0]], [0, 1, 0, 1]
    mine, other = ours("GaussianNB"), original("GaussianNB")
    for x, label in zip(X, y, strict=True):
        mine.partial_fit([x], [label], [0, 1])
        other.partial_fit([x], [label], [0, 1])
    assert other.var_.min() == 0
    assert np.isnan(nans(lambda: other.predict_proba(X))).any()
    whole = original("GaussianNB").fit(X, y)
    assert_attributes(mine, whole)
    assert_answers(mine, whole, X)


def test_a_row_of_no_weight_moves_their_variances_and_not_ours() -> None:
    X, y, weights = [[0.0], [1.0], [0.0], [1.0], [1e9]], [0, 0, 1, 1, 1], [1, 1, 1, 1, 0]
    mine, other = (make("GaussianNB").fit(X, y, sample_weight=weights) for make in (ours, original))
    close(mine.var_, [[0.25 + 0.25e-9], [0.25 + 0.25e-9]])
    assert (other.var_ > 1e8).all()
    again = ours("GaussianNB").fit(X[:4], y[:4])
    assert_attributes(mine, again)


@law
@given(data=st.data())
def test_what_smoothing_adds_follows_from_all_rows_and_their_weights(data: st.DataObject) -> None:
    rows = data.draw(tables("GaussianNB", dtype=("float64",)))
    X, y, weights = rows.all
    share = data.draw(st.sampled_from([1e-9, 0.25]))
    mine = ours("GaussianNB", var_smoothing=share).fit(X, y, sample_weight=weights)
    w = np.ones(len(y)) if weights is None else weights
    mean = np.average(rows.X, axis=0, weights=w)
    spread = np.average((rows.X - mean) ** 2, axis=0, weights=w).max()
    if spread > 1e-20:
        close(mine.epsilon_, share * spread)
    assert mine.epsilon_ >= 0
    assert (mine.var_ > 0).all()
    assert (mine.var_ >= mine.epsilon_ * (1 - 1e-12)).all()


@law
@given(data=st.data())
def test_a_gaussian_is_never_without_an_answer(data: st.DataObject) -> None:
    """Columns of one number alone, no smoothing, any batches: theirs has NaN."""
    rows = data.draw(tables("GaussianNB", dtype=("int64", "bool", "float64")))
    clf = ours("GaussianNB", var_smoothing=data.draw(st.sampled_from([0.0, 1e-9])))
    for X, y, weights in batches(data, rows):
        clf.partial_fit(X, y, rows.classes, weights)
        assert (clf.var_ > 0).all()
        close(clf.predict_proba(rows.questions).sum(axis=1), 1.0)


def test_a_column_of_one_number_gives_nan_there_and_the_prior_here() -> None:
    X, y = [[1.0], [1.0], [1.0]], [0, 1, 1]
    assert np.isnan(nans(lambda: original("GaussianNB").fit(X, y).predict_proba(X))).all()
    close(ours("GaussianNB").fit(X, y).predict_proba(X), [[1 / 3, 2 / 3]] * 3)


@every_class
@pytest.mark.parametrize("labels", [[0, 5], [5, 6], [5, 5]])
def test_a_label_that_was_not_declared_raises_as_their_gaussian_does(name: str, labels: list[int]) -> None:
    clf = ours(name).partial_fit([[1, 0], [0, 1]], [0, 1], classes=[0, 1])
    with pytest.raises(ValueError) as told:
        original("GaussianNB").partial_fit([[1, 0], [0, 1]], labels, classes=[0, 1])
    for each in (clf, ours(name)):
        with pytest.raises(ValueError) as said:
            each.partial_fit([[1, 0], [0, 1]], labels, classes=[0, 1])
        assert str(said.value) == str(told.value)
    assert clf.class_count_.tolist() == [1, 1]
    if name != "GaussianNB":  # theirs counts it for the first class, or nowhere
        other = original(name).partial_fit([[1, 0], [0, 1]], [0, 1], classes=[0, 1])
        assert other.partial_fit([[1, 0], [0, 1]], labels).class_count_.tolist() == [3, 1]


@law
@given(data=st.data())
def test_an_unseen_category_has_the_share_of_its_pseudo_count(data: st.DataObject) -> None:
    rows = data.draw(tables("CategoricalNB", dtype=("int64",)))
    alpha, (X, y, weights) = data.draw(st.sampled_from([0.5, 1.0, 2.0])), rows.all
    clf = ours("CategoricalNB", alpha=alpha, fit_prior=False).fit(X, y, sample_weight=weights)
    unseen = contained(np.full((1, rows.X.shape[1]), 9), rows.container)
    n, K = clf.class_count_, clf.n_categories_[:, None]
    expected = np.log(alpha / (n + alpha * K)).sum(axis=0) - np.log(len(n))
    close(clf.predict_joint_log_proba(unseen)[0], expected)
    other = original("CategoricalNB", alpha=alpha).fit(X, y, sample_weight=weights)
    with pytest.raises(IndexError):
        other.predict(unseen)


@law
@given(data=st.data())
def test_there_are_as_many_categories_as_all_batches_have(data: st.DataObject) -> None:
    rows = data.draw(tables("CategoricalNB", dtype=("int64", "int32")))
    least = data.draw(st.sampled_from([None, 3, [2] * rows.X.shape[1]]))
    clf = ours("CategoricalNB", min_categories=least)
    for X, y, weights in batches(data, rows):
        clf.partial_fit(X, y, np.unique(rows.y), weights)
    X, y, weights = rows.all
    whole = ours("CategoricalNB", min_categories=least).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(clf.n_categories_, whole.n_categories_)
    assert [counts.shape[1] for counts in clf.category_count_] == clf.n_categories_.tolist()
    assert_answers(clf, whole, rows.questions)


def test_their_number_of_categories_is_that_of_the_last_batch() -> None:
    mine, other = ours("CategoricalNB"), original("CategoricalNB")
    for each in (mine, other):
        each.partial_fit([[4]], [0], [0, 1]).partial_fit([[1]], [1])
    assert (mine.n_categories_.tolist(), other.n_categories_.tolist()) == ([5], [2])


def test_rows_of_no_weight_bring_them_categories_and_us_none() -> None:
    X, y = [[0], [1], [4]], [0, 1, 1]
    mine, other = (make("CategoricalNB").fit(X, y, sample_weight=[1, 1, 0]) for make in (ours, original))
    assert (mine.n_categories_.tolist(), other.n_categories_.tolist()) == ([2], [5])
    assert_attributes(mine, ours("CategoricalNB").fit(X[:2], y[:2]))


@every_discrete
@law
@given(data=st.data())
def test_without_smoothing_no_answer_is_nan(name: str, data: st.DataObject) -> None:
    rows = data.draw(tables(name))
    X, y, weights = rows.all
    vector = [0.0] * rows.X.shape[1]
    alpha = data.draw(st.sampled_from([0, 0.0] if name == "CategoricalNB" else [0, 0.0, vector]))
    clf = ours(name, alpha=alpha, fit_prior=data.draw(st.booleans())).fit(X, y, sample_weight=weights)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bb.BanburyWarning)  # that every class is impossible
            shares, logs = clf.predict_proba(rows.questions), clf.predict_log_proba(rows.questions)
            labels = clf.predict(rows.questions)
        close(shares.sum(axis=1), 1.0)
        close(np.exp(logs), shares)
        assert not np.isnan(clf.predict_joint_log_proba(rows.questions)).any()
        assert set(labels) <= set(clf.classes_)
        clf.partial_fit(X, y, sample_weight=weights)


def test_without_smoothing_theirs_is_nan_and_ours_knows_the_class() -> None:
    X, y = np.array([[1, 0], [1, 0], [0, 1]]), [0, 0, 1]
    mine, other = ours("BernoulliNB", alpha=0).fit(X, y), nans(lambda: original("BernoulliNB", alpha=0).fit(X, y))
    assert np.isnan(nans(lambda: other.predict_proba(X))).all()
    np.testing.assert_array_equal(mine.predict_proba(X), [[1, 0], [1, 0], [0, 1]])
    np.testing.assert_array_equal(mine.feature_log_prob_, other.feature_log_prob_)


@law
@given(data=st.data())
def test_occurrences_have_the_least_alpha_where_none_is_given(data: st.DataObject) -> None:
    rows = data.draw(tables("MultinomialNB", container=("csr_matrix", "csr_array"), dtype=("int64", "float64")))
    _, y, weights = rows.all
    X = contained(rows.X, rows.container)
    mine = ours("MultinomialNB", alpha=0).fit(X, y, sample_weight=weights)
    other = original("MultinomialNB", alpha=1e-10).fit(X, y, sample_weight=weights)
    close(mine.feature_log_prob_, other.feature_log_prob_)
    close(mine.predict_joint_log_proba(X), other.predict_joint_log_proba(X))


@every_discrete
def test_a_little_alpha_is_raised_unless_forced(name: str) -> None:
    X, y = [[1, 0], [1, 1], [0, 1]], [0, 0, 1]
    chosen = {"alpha": 1e-20, "force_alpha": False, "fit_prior": False}
    with pytest.warns(UserWarning, match="alpha too small") as said:
        mine = ours(name, **chosen).fit(X, y)
    with pytest.warns(UserWarning, match="alpha too small") as told:
        other = original(name, **chosen).fit(X, y)
    assert [str(w.message) for w in said] == [str(w.message) for w in told]
    assert_attributes(mine, other, rtol=1e-7)  # theirs takes 1 from 1 + 1e-10
    assert_answers(mine, other, X, rtol=1e-7)


@every_class
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_negative_weights_raise(name: str, method: str) -> None:
    clf = ours(name).fit([[0, 1], [1, 0]], [0, 1])
    more = {"classes": [0, 1]} if method == "partial_fit" else {}
    with pytest.raises(ValueError, match=r"Negative values in data passed to .*\(sample_weight\): row 1 weighs -2"):
        getattr(clf, method)([[0, 1], [1, 0]], [0, 1], sample_weight=[1, -2], **more)
    assert clf.class_count_.tolist() == [1, 1]
    other = nans(lambda: getattr(original(name), method)([[0, 1], [1, 0]], [0, 1], sample_weight=[1, -2], **more))
    assert other.class_count_.tolist() == [1, -2]


@pytest.mark.parametrize("container", ["C", "list", "csr_matrix", "coo_array", "pandas"])
@pytest.mark.parametrize("number", [2.0, 1.5, -0.25])
def test_bernoulli_refuses_what_is_no_share(container: str, number: float) -> None:
    X = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, 0.25]])
    clf = ours("BernoulliNB", binarize=None).fit(contained(X, container), [0, 1, 1])
    before, bad = clf.predict_proba(contained(X, container)), X.copy()
    bad[1, 1] = number
    said = f"takes numbers from 0 to 1, but X contains {number:g}. Use binarize=0.0"
    for call in (
        clf.predict,
        clf.predict_proba,
        lambda X: clf.fit(X, [0, 1, 1]),
        lambda X: clf.partial_fit(X, [0, 1, 1]),
    ):
        with pytest.raises(ValueError, match=said):
            call(contained(bad, container))
    np.testing.assert_array_equal(clf.predict_proba(contained(X, container)), before)
    other = nans(lambda: original("BernoulliNB", binarize=None).fit(np.full((2, 1), 3.0), [0, 1]))
    assert (other.feature_log_prob_ > 0).all()


@law
@given(data=st.data())
def test_complement_adds_the_prior_that_it_learns(data: st.DataObject) -> None:
    rows = data.draw(tables("ComplementNB"))
    X, y, weights = rows.all
    assume(len(np.unique(y)) > 1)
    norm = rows.X.shape[1] > 1 and data.draw(st.booleans())
    other = original("ComplementNB", norm=norm).fit(X, y, sample_weight=weights)
    bare = other.predict_joint_log_proba(rows.questions)
    mine = ours("ComplementNB", norm=norm).fit(X, y, sample_weight=weights)
    assert_attributes(mine, other)
    close(mine.predict_joint_log_proba(rows.questions), bare if norm else bare + other.class_log_prior_)
    prior = np.arange(1.0, 1.0 + len(mine.classes_)) / 10
    mine.set_params(class_prior=prior).fit(X, y, sample_weight=weights)
    close(mine.predict_joint_log_proba(rows.questions), bare + np.log(prior))
    mine.set_params(class_prior=None, fit_prior=False).fit(X, y, sample_weight=weights)
    close(mine.predict_joint_log_proba(rows.questions), bare)


def test_one_normalised_column_is_nan_there_and_even_here() -> None:
    X, y = [[1], [2]], [0, 1]
    assert np.isnan(nans(lambda: original("ComplementNB", norm=True).fit(X, y).predict_proba(X))).all()
    close(ours("ComplementNB", norm=True).fit(X, y).predict_proba(X), [[0.5, 0.5]] * 2)


@law
@given(data=st.data())
def test_a_bernoulli_column_has_an_alpha_of_its_own(data: st.DataObject) -> None:
    rows = data.draw(tables("BernoulliNB"))
    k = rows.X.shape[1]
    alpha = data.draw(st.lists(st.sampled_from([0.1, 1.0, 2.5]), min_size=k, max_size=k))
    X, y, weights = rows.all
    mine = ours("BernoulliNB", alpha=alpha, fit_prior=False).fit(X, y, sample_weight=weights)
    joint = np.zeros((len(rows.asked), len(mine.classes_)))
    for j, a in enumerate(alpha):  # theirs with one column, once for each
        other = original("BernoulliNB", alpha=a, class_prior=np.ones(len(mine.classes_)))
        other.fit(rows.X[:, [j]], y, sample_weight=weights)
        close(mine.feature_log_prob_[:, j], other.feature_log_prob_[:, 0])
        joint += other.predict_joint_log_proba(rows.asked[:, [j]])
    close(mine.predict_joint_log_proba(rows.questions), joint - np.log(len(mine.classes_)))


@every_class
def test_a_class_that_is_declared_and_has_no_rows(name: str) -> None:
    """It has no share of the prior; with a prior that is given it is smoothed, or what all classes are together."""
    X, y = np.array([[0, 1, 2], [1, 0, 1], [1, 1, 0]]), [0, 1, 1]
    mine, other = ours(name).partial_fit(X, y, [0, 1, 2]), original(name).partial_fit(X, y, [0, 1, 2])
    if name not in ("GaussianNB", "ComplementNB"):
        assert_attributes(mine, other)
        assert_answers(mine, other, X)
    assert (mine.class_count_.tolist(), mine.classes_.tolist()) == ([1, 2, 0], [0, 1, 2])
    assert (mine.predict_proba(X)[:, 2] == 0).all()
    assert np.isneginf(mine.predict_joint_log_proba(X)[:, 2]).all()
    prior = {"priors" if name == "GaussianNB" else "class_prior": [0.25, 0.25, 0.5]}
    mine.set_params(**prior).partial_fit(X, y, [0, 1, 2])
    shares = mine.predict_proba(X)
    assert ((shares[:, 2] > 0) & (shares[:, 2] < 1)).all()
    if name == "GaussianNB":
        close(mine.theta_[2], X.mean(axis=0))
        close(mine.var_[2], X.var(axis=0) + mine.epsilon_)
    mine.partial_fit([[2, 2, 2]], [2])
    assert mine.class_count_.tolist() == [2, 4, 1]


# What both refuse ----------------------------------------------------------------------------------------------------

GOOD = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0], [1, 2, 0]])
Y = np.array([0, 1, 1, 0])


def spoilt(value: Any, dtype: Any = np.float64) -> Any:
    """Good rows but for one number."""
    X = GOOD.astype(dtype)
    X[2, 1] = value
    return X


def frame(*names: str) -> Any:
    return pd.DataFrame(GOOD.astype(float)[:, : len(names)], columns=list(names))


BAD_ROWS = {
    "NaN": lambda: spoilt(np.nan),
    "NaN, float32": lambda: spoilt(np.nan, np.float32),
    "infinity": lambda: spoilt(np.inf),
    "minus infinity": lambda: spoilt(-np.inf),
    "NaN and infinity": lambda: np.array([[np.nan, np.inf, 1.0]] * 4),
    "infinity, float32": lambda: spoilt(np.inf, np.float32),
    "negative": lambda: spoilt(-1),
    "negative, whole": lambda: spoilt(-1, np.int64),
    "negative, int8": lambda: spoilt(-1, np.int8),
    "negative, list": lambda: spoilt(-1).tolist(),
    "negative, columns first": lambda: np.asfortranarray(spoilt(-1)),
    "NaN, frame": lambda: pd.DataFrame(spoilt(np.nan)),
    "negative, frame": lambda: pd.DataFrame(spoilt(-2)),
    "negative, Polars": lambda: pl.DataFrame(spoilt(-2)),
    "None": lambda: spoilt(None, object),
    "NaN, objects": lambda: spoilt(np.nan, object),
    "a vector": lambda: np.array([1.0, 2.0, 3.0, 4.0]),
    "a list of numbers": lambda: [1, 2, 3, 4],
    "three dimensions": lambda: np.ones((4, 3, 2)),
    "a number": lambda: 3.0,
    "nothing": lambda: None,
    "no rows": lambda: np.empty((0, 3)),
    "no rows, list": lambda: [],
    "no columns": lambda: np.empty((4, 0)),
    "texts": lambda: np.array([["a", "b", "c"]] * 4),
    "texts, objects": lambda: np.array([["a", "b", "c"]] * 4, dtype=object),
    "texts, list": lambda: [["a", "b", "c"]] * 4,
    "bytes": lambda: np.array([[b"a", b"b", b"c"]] * 4),
    "complex": lambda: GOOD + 1j,
    "a dictionary": lambda: {"a": [1, 2, 3, 4]},
    "ragged": lambda: [[1, 2, 3], [1, 2], [1], [4]],
    "a text": lambda: "abc",
    "records": lambda: np.zeros(4, dtype=[("a", float), ("b", float)]),
    **{
        f"{what}, {kind}": lambda kind=kind, value=value: getattr(sp, kind)(spoilt(value))
        for kind in ("csr_matrix", "csc_array", "coo_matrix")
        for what, value in {"NaN": np.nan, "infinity": np.inf, "negative": -1}.items()
    },
    "complex, sparse": lambda: sp.csr_matrix(GOOD + 1j),
    "no rows, sparse": lambda: sp.csr_matrix((0, 3)),
    "no columns, sparse": lambda: sp.csr_matrix((4, 0)),
    "one dimension, sparse": lambda: sp.coo_array(np.array([1.0, 2.0, 3.0, 4.0])),
    "another kind of sparse": lambda: sp.dia_matrix(spoilt(-1)),
}
NARROW = {
    "narrow": lambda: GOOD[:, :2],
    "wide": lambda: np.hstack([GOOD, GOOD]),
    "narrow, list": lambda: GOOD[:, :2].tolist(),
    "narrow, sparse": lambda: sp.csr_matrix(GOOD[:, :2]),
    "wide, sparse": lambda: sp.csr_matrix(np.hstack([GOOD, GOOD])),
}
BAD_LABELS = {
    "none": lambda: None,
    "continuous": lambda: np.array([0.5, 1.25, 2.5, 0.5]),
    "two columns": lambda: np.array([[0, 1], [1, 0], [1, 1], [0, 0]]),
    "NaN": lambda: np.array([0.0, np.nan, 1.0, 1.0]),
    "infinity": lambda: np.array([0.0, np.inf, 1.0, 1.0]),
    "NaN, objects": lambda: np.array(["a", np.nan, "b", "b"], dtype=object),
    "None among texts": lambda: np.array(["a", None, "b", "b"], dtype=object),
    "too few": lambda: Y[:3],
    "too many": lambda: np.r_[Y, 1],
    "empty": lambda: [],
    "a number": lambda: 1,
    "a text": lambda: "abcd",
    "texts and numbers": lambda: np.array(["a", 1, "b", 2], dtype=object),
    "numbers as objects": lambda: np.array([0, 1, 1, 0], dtype=object),
    "lists": lambda: [[0], [1, 2], [1], [0]],
    "complex": lambda: Y + 1j,
    "sparse": lambda: sp.csr_matrix(Y),
    "three dimensions": lambda: np.zeros((4, 1, 1)),
}
BAD_WEIGHTS = {
    "too few": lambda: [1.0, 2.0],
    "too many": lambda: np.ones(5),
    "two columns": lambda: np.ones((4, 2)),
    "one column": lambda: np.ones((4, 1)),
    "NaN": lambda: [1.0, np.nan, 1.0, 1.0],
    "infinity": lambda: [1.0, np.inf, 1.0, 1.0],
    "texts": lambda: ["a", "b", "c", "d"],
    "all zero": lambda: np.zeros(4),
    "complex": lambda: np.ones(4) * 1j,
    "empty": lambda: [],
}


# Labels that are no classes are refused by one check in fit and in every batch; theirs has another text for each class and
# method, and GaussianNB.partial_fit takes some of them.
NO_CLASSES = {"continuous": "Unknown label type: continuous.", "numbers as objects": "Unknown label type: unknown."}
ASKING = ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba")


def outcome(call: Any) -> Any:
    """The type and the text of the error, and the warnings before it; or None."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            return type(error), str(error), [str(w.message) for w in warned]
    return None


def refused() -> Any:
    """(what, call) of what both refuse; a call takes an estimator that has learned, and one that has not."""
    for what, make in {**BAD_ROWS, **NARROW}.items():
        if what not in NARROW:
            yield f"fit, rows: {what}", lambda old, new, make=make: new.fit(make(), Y)
            yield f"fit again, rows: {what}", lambda old, new, make=make: old.fit(make(), Y)
            yield f"first batch, rows: {what}", lambda old, new, make=make: new.partial_fit(make(), Y, [0, 1])
        yield f"next batch, rows: {what}", lambda old, new, make=make: old.partial_fit(make(), Y)
        for method in ("predict", "predict_joint_log_proba"):
            yield f"{method}, rows: {what}", lambda old, new, make=make, m=method: getattr(old, m)(make())
    for what, make in BAD_LABELS.items():
        yield f"fit, labels: {what}", lambda old, new, make=make: new.fit(GOOD, make())
        yield f"first batch, labels: {what}", lambda old, new, make=make: new.partial_fit(GOOD, make(), [0, 1])
        yield f"next batch, labels: {what}", lambda old, new, make=make: old.partial_fit(GOOD, make())
    for what, make in BAD_WEIGHTS.items():
        yield f"fit, weights: {what}", lambda old, new, make=make: new.fit(GOOD, Y, make())
        yield f"first batch, weights: {what}", lambda old, new, make=make: new.partial_fit(GOOD, Y, [0, 1], make())
        yield f"next batch, weights: {what}", lambda old, new, make=make: old.partial_fit(GOOD, Y, None, make())
    for method in ASKING:
        yield f"{method}, not fitted", lambda old, new, m=method: getattr(new, m)(GOOD)
    yield "score, not fitted", lambda old, new: new.score(GOOD, Y)
    yield "classes missing", lambda old, new: new.partial_fit(GOOD, Y)
    yield "classes changed", lambda old, new: old.partial_fit(GOOD, Y, [0, 2])
    yield "classes added", lambda old, new: old.partial_fit(GOOD, Y, [0, 1, 2])
    yield "classes missing one", lambda old, new: old.partial_fit(GOOD, Y, [0])
    yield "classes of another kind", lambda old, new: old.partial_fit(GOOD, Y, ["a", "b"])
    yield "no labels at all", lambda old, new: old.fit(GOOD, [])


@every_class
def test_it_refuses_what_they_refuse_in_their_words_and_answers_as_before(name: str) -> None:
    fitted = ours(name).fit(GOOD, Y)
    before, theirs_fitted = fitted.predict_joint_log_proba(GOOD), original(name).fit(GOOD, Y)
    for what, call in refused():
        learns = what.startswith(("fit again", "next batch", "classes", "no labels"))
        old, mine = (copy.deepcopy(each) if learns else each for each in (theirs_fitted, fitted))
        told = outcome(lambda old=old, call=call: call(old, original(name)))
        said = outcome(lambda mine=mine, call=call: call(mine, ours(name)))
        kind = what.partition("labels: ")[2]
        if kind in NO_CLASSES:
            assert said is not None
            assert (said[0], said[1].startswith(NO_CLASSES[kind])) == (ValueError, True), what
        else:
            assert said == told, what
        if said is not None:
            np.testing.assert_array_equal(mine.predict_joint_log_proba(GOOD), before, err_msg=what)
        if said is not None and learns:
            assert_attributes(mine, fitted)


@every_class
@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "d"), ("c", "b", "a"), ("a", "b", "c", "x")])
def test_columns_of_other_names_are_refused_in_their_words(name: str, names: tuple[str, ...]) -> None:
    given_rows = pd.DataFrame(np.ones((4, len(names)), int), columns=list(names))
    mine, other = (make(name).fit(frame("a", "b", "c").astype(int), Y) for make in (ours, original))
    before = mine.predict_proba(frame("a", "b", "c").astype(int))
    for method in (*ASKING, "partial_fit"):
        more = (Y,) if method == "partial_fit" else ()
        said = outcome(lambda method=method, more=more: getattr(mine, method)(given_rows, *more))
        assert said is not None
        assert said == outcome(lambda method=method, more=more: getattr(other, method)(given_rows, *more))
    np.testing.assert_array_equal(mine.predict_proba(frame("a", "b", "c").astype(int)), before)


@every_class
def test_columns_with_names_after_columns_without_warn_in_their_words(name: str) -> None:
    for first, second in ((frame("a", "b", "c").astype(int), GOOD), (GOOD, frame("a", "b", "c").astype(int))):
        mine, other = (make(name).fit(first, Y) for make in (ours, original))
        for method in ASKING:
            said = []
            for each in (mine, other):
                with pytest.warns(UserWarning, match="feature names") as warned:
                    getattr(each, method)(second)
                said.append([str(w.message) for w in warned])
            assert said[0] == said[1]


BAD_PARAMETERS = [
    *[
        (name, {"alpha": a})
        for name in DISCRETE
        for a in (-1, "x", np.nan, [1.0, 2.0], [-1.0, 1.0, 1.0], None, [[1.0] * 3])
    ],
    *[(name, {"fit_prior": f}) for name in DISCRETE for f in ("yes", None, 3)],
    *[(name, {"force_alpha": f}) for name in DISCRETE for f in ("yes", None, 3)],
    *[(name, {"class_prior": p}) for name in DISCRETE for p in ([0.5], [0.2, 0.3, 0.5], "even", 0.5)],
    *[
        ("GaussianNB", {"priors": p})
        for p in ([0.5], [0.2, 0.3, 0.5], "even", 0.5, [0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0])
    ],
    *[("GaussianNB", {"var_smoothing": v}) for v in (-1, "x", None)],
    *[("BernoulliNB", {"binarize": b}) for b in (-1, "x", True)],
    *[("ComplementNB", {"norm": n}) for n in ("x", None, 2)],
    *[
        ("CategoricalNB", {"min_categories": m})
        for m in ("x", 2.5, 0, -1, [2, 2], [2.0, 2.0, 2.0], [[2, 2, 2]], ["a", "b", "c"])
    ],
]


@pytest.mark.parametrize("name, given_parameters", BAD_PARAMETERS, ids=str)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_refused_in_their_words(name: str, given_parameters: dict[str, Any], method: str) -> None:
    more = {"classes": [0, 1]} if method == "partial_fit" else {}
    said, told = (
        outcome(lambda make=make: getattr(make(name, **given_parameters), method)(GOOD, Y, **more))
        for make in (ours, original)
    )
    if given_parameters == {"min_categories": [2, 2]}:  # theirs adds arrays of different sizes before it looks
        assert said[1] == "'min_categories' should have shape (3,) when an array-like is provided. Got (2,) instead."
    else:
        assert said == told
    clf = ours(name).fit(GOOD, Y)
    before = clf.predict_proba(GOOD)
    if outcome(lambda: getattr(clf.set_params(**given_parameters), method)(GOOD, Y)) is not None:
        np.testing.assert_array_equal(clf.predict_proba(GOOD), before)
        assert_attributes(clf, ours(name).fit(GOOD, Y))
        assert clf.set_params(**{key: getattr(ours(name), key) for key in given_parameters}).partial_fit(GOOD, Y)


@every_class
def test_bad_parameters_of_ours_are_refused_in_the_same_words(name: str) -> None:
    with pytest.raises(ValueError, match=f"The 'missing' parameter of {name} must be .* Got 'drop' instead"):
        ours(name, missing="drop").fit(GOOD, Y)


@every_class
def test_what_is_learned_is_no_attribute_before(name: str) -> None:
    clf = ours(name)
    for attribute in (*ATTRIBUTES, "tally_", "model_"):
        with pytest.raises(AttributeError, match=attribute):
            getattr(clf, attribute)
    for call in (lambda: clf.explain([1, 2, 3]), clf.informative, lambda: clf.forget(GOOD, Y)):
        with pytest.raises((NotFittedError, AttributeError)):
            call()


def test_a_wide_bernoulli_model_grows_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banbury.families.bags.parameters.MOST_WEIGHTS", 1)
    rng = np.random.default_rng(5)
    X, y = sp.csr_matrix(rng.random((60, 40)) < 0.2, dtype=np.float64), rng.integers(0, 3, 60)
    y[:3] = range(3)
    clf = bb.BernoulliNB().fit(X[:20], y[:20])
    for start in range(20, 60, 2):
        clf.partial_fit(X[start : start + 2], y[start : start + 2]).predict(X[start])
    clf.partial_fit(X[:4], y[:4], sample_weight=[0.5, 2, 1, 0.25])
    clf.predict(X[:1])
    clf.forget(X[:4], y[:4], sample_weight=[0.5, 2, 1, 0.25])
    whole, other = bb.BernoulliNB().fit(X, y), theirs.BernoulliNB().fit(X, y)
    for rows in (X.toarray(), X[:1], X):
        np.testing.assert_array_equal(clf.predict_joint_log_proba(rows), whole.predict_joint_log_proba(rows))
        np.testing.assert_allclose(clf.predict_log_proba(rows), other.predict_log_proba(rows), rtol=1e-9)
    np.testing.assert_allclose(clf.feature_log_prob_, other.feature_log_prob_, rtol=1e-12)
