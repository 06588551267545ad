"""The drop-in replacements of scikit-learn's naive Bayes classes beside the originals: numbers, errors, habits and extras."""

from __future__ import annotations

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
import os; from hypothesis import Phase
if os.environ.get("DEV"): law = settings(law, phases=[Phase.generate], max_examples=int(os.environ["DEV"]))


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
        joint, logs, shares = (getattr(other, f"predict_{each}")(rows) for each in ("joint_log_proba", "log_proba", "proba"))
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
        return pl.DataFrame({name: column for name, column in zip(names, X.T, strict=True)})
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
def tables(draw: st.DrawFn, name: str, container: tuple[str, ...] | None = None, dtype: tuple[str, ...] = DTYPES) -> Rows:
    """Rows that both take, with labels and weights of every kind."""
    takes_sparse = name not in ("CategoricalNB", "GaussianNB")
    kind = draw(st.sampled_from(container or (DENSE + SPARSE if takes_sparse else DENSE)))
    n, k, more = draw(st.integers(2, 10)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    given_dtype = draw(st.sampled_from(dtype))
    X = draw(arrays.arrays(given_dtype, (n + more, k), elements=cells(name, given_dtype).map(lambda x: np.dtype(given_dtype).type(x))))
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
            "alpha": draw(st.sampled_from(one + [vector, np.array(vector)] if name in ("ComplementNB", "MultinomialNB") else one)),
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
    assert_attributes(mine, other)
    assert_answers(mine, other, rows.questions)
