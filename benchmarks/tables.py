"""Tables in memory: our families and our five drop-in classes beside scikit-learn's, and a tree beside pyAgrum's."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import naive_bayes as theirs

import banbury as bb
from benchmarks import datasets, synthetic
from benchmarks.measure import Figure, Peer, Setting, WrongAnswer, compare, same_classes, same_posteriors, say
from benchmarks.synthetic import Table

TWENTY_OF_EIGHT = (8,) * 20  # columns of eight codes
CHECKED = 10_000  # rows whose probabilities are compared
WIDE = 2**18  # columns of the model that learns one row more


@dataclass(frozen=True)
class Case:
    """A model of ours, and the same model of scikit-learn's; the data, and how many rows to use."""

    name: str
    ours: Callable[[], Any]
    peer: Callable[[], Any]
    data: Callable[[int], Table]
    sizes: tuple[int, ...]


def family(name: str) -> Callable[[], Any]:
    return functools.partial(bb.NaiveBayesClassifier, features=name)


# A billionth of the widest column's variance, GaussianNB's default, is not small beside the narrowest column's.
UNSMOOTHED = functools.partial(theirs.GaussianNB, var_smoothing=0.0)
# scikit-learn's ComplementNB ignores the class prior.
OUR_COMPLEMENT = functools.partial(bb.ComplementNB, fit_prior=False)
NUMBERS = functools.partial(synthetic.numbers, classes=3, scales=1)
CODES = functools.partial(synthetic.codes, classes=3, values=TWENTY_OF_EIGHT)
CASES = (
    Case("gaussian", family("gaussian"), UNSMOOTHED, synthetic.numbers, (2_000_000,)),
    Case("categorical", family("categorical"), theirs.CategoricalNB, synthetic.codes, (2_000_000,)),
    Case("bernoulli", family("bernoulli"), theirs.BernoulliNB, synthetic.bits, (1_000_000,)),
    Case("GaussianNB", bb.GaussianNB, theirs.GaussianNB, NUMBERS, (10, 1_000_000)),
    Case("MultinomialNB", bb.MultinomialNB, theirs.MultinomialNB, synthetic.counts, (1_000_000,)),
    Case("ComplementNB", OUR_COMPLEMENT, theirs.ComplementNB, synthetic.counts, (1_000_000,)),
    Case("BernoulliNB", bb.BernoulliNB, theirs.BernoulliNB, synthetic.counts, (1_000_000,)),
    Case("CategoricalNB", bb.CategoricalNB, theirs.CategoricalNB, CODES, (1_000_000,)),
)


def figures(setting: Setting) -> Iterator[Figure]:
    for case in CASES:
        for size in case.sizes:
            yield from fit_and_predict(case, setting.rows(size), setting)
    yield learn_one_row(CASES[4], setting)
    if find_spec("pyagrum") and datasets.has_data("adult"):
        yield from tree(setting)
    else:
        say(f"tables: the tree is left out; it needs pyAgrum and Adult ({datasets.UNSET})")


def fit_and_predict(case: Case, rows: int, setting: Setting) -> Iterator[Figure]:
    X, y = case.data(rows)
    data = f"{rows:,} × {X.shape[1]} {X.dtype}, {len(np.unique(y))} classes"
    name = type(case.peer()).__name__
    fit = Peer(name, lambda: case.peer().fit(X, y))
    check = same_posteriors(X[:CHECKED])
    yield compare(("tables", f"{case.name}: fit", data), lambda: case.ours().fit(X, y), check, setting, fit)
    ours = case.ours().fit(X, y)
    peer = case.peer().fit(X, y)
    predict = Peer(name, lambda: peer.predict(X))
    yield compare(("tables", f"{case.name}: predict", data), lambda: ours.predict(X), same_classes(), setting, predict)


def learn_one_row(case: Case, setting: Setting) -> Figure:
    """One sparse row more for a model of many columns, and then an answer, which brings our model up to date."""
    columns = setting.rows(WIDE)
    rng = np.random.default_rng(24)
    X = sp.csr_matrix(rng.integers(1, 4, (20, columns)).astype(np.float64))
    y = np.arange(20)
    row = np.zeros((1, columns))
    np.add.at(row[0], synthetic.zipf(rng, columns, 100), 1.0)
    batch = sp.csr_matrix(row)
    ours = case.ours().fit(X, y)
    peer = case.peer().fit(X, y)

    def check(_: Any, __: Any) -> str:
        """Two models that learned the row once agree; the two above learned it as often as their turns allowed."""
        both = [make().fit(X, y).partial_fit(batch, [3]) for make in (case.ours, case.peer)]
        return same_posteriors(X)(*both)

    data = f"1 × {columns:,} float64, sparse, 100 occurrences; 20 classes known"
    return compare(
        ("tables", f"{case.name}: partial_fit, then predict", data),
        lambda: ours.partial_fit(batch, [3]).predict(batch),
        check,
        setting,
        Peer(case.name, lambda: peer.partial_fit(batch, [3]).predict(batch)),
    )


# The tree of Adult's columns, numbers in eight bins for both ----------------------------------------------------------


def tree(setting: Setting) -> Iterator[Figure]:
    X, y = words_of_adult(setting.rows(50_000))
    data = f"Adult, {len(X):,} complete rows, {X.shape[1]} columns, 2 classes"
    ours = bb.TANClassifier(level=None, features="categorical").fit
    yield compare(
        ("tables", "TANClassifier: fit", data),
        lambda: ours(X, y),
        same_edges,
        setting,
        Peer("pyAgrum BNClassifier", lambda: fit_pyagrum(X, y)),
    )
    our_tree = ours(X, y)
    peer = fit_pyagrum(X, y)
    predicted_rows = X[:2000]

    def as_accurate(ours: Any, theirs: Any) -> str:
        """They differ where a cell is empty, because only ours smooths it."""
        shares = [float(np.mean(np.asarray(answer) == y[: len(predicted_rows)])) for answer in (ours, theirs)]
        if shares[0] < shares[1] - 0.01:
            raise WrongAnswer(f"the accuracy of our tree is {shares[0]:.2%}, that of pyAgrum's {shares[1]:.2%}")
        return f"{shares[0]:.1%} right, the peer {shares[1]:.1%}"

    predict = Peer("pyAgrum BNClassifier", lambda: peer.predict(predicted_rows))
    data = f"{len(predicted_rows):,} of these rows"
    yield compare(
        ("tables", "TANClassifier: predict", data),
        lambda: our_tree.predict(predicted_rows),
        as_accurate,
        setting,
        predict,
    )


def words_of_adult(rows: int) -> tuple[Any, Any]:
    """Complete rows, every column a word."""
    import pandas as pd

    part = datasets.table("census")
    frame = part.rows.dropna()[:rows]
    words = {
        name: column.astype(str)
        if column.dtype.kind not in "iuf"
        else "b" + pd.qcut(column.rank(method="first"), 8, labels=False).astype(str)
        for name, column in frame.items()
    }
    return pd.DataFrame(words).astype(object), part.labels[frame.index].astype(object)


def fit_pyagrum(X: Any, y: Any) -> Any:
    from pyagrum.skbn import createBNClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return createBNClassifier(learningMethod="TAN", discretizationThreshold=1000).fit(X, y)


def same_edges(ours: Any, theirs: Any) -> str:
    """pyAgrum draws no edge below half the mean information, so its edges are some of ours."""
    our_edges = {frozenset(edge) for edge in ours.network_.edges if "class" not in edge}
    network = theirs.bn_
    names = ([network.variable(node).name() for node in arc] for arc in network.arcs())
    peer_edges = {frozenset(edge) for edge in names if "y" not in edge}
    if not peer_edges <= our_edges:
        raise WrongAnswer(f"{len(peer_edges - our_edges)} of pyAgrum's {len(peer_edges)} edges are not in our tree")
    return f"all {len(peer_edges)} of its edges are among our {len(our_edges)}"
