"""Belief networks beside pyAgrum: the tree of Adult's columns, its answers, and posteriors in a network of 37 nodes.

Adult's complete rows, numbers cut into eight bins beforehand for both. pyAgrum's classifier draws no edge below half the mean
information, so its edges must be among ours; its `fit` also looks for a threshold on the ROC curve, about half of its
time, which a classifier of two classes there cannot be had without.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banbury as bb
from benchmarks import datasets
from benchmarks.measure import Setting, Task, WrongAnswer, say

BINS = 8
NODES, EVIDENCE = 37, 6


def tasks(setting: Setting) -> Iterator[Task]:
    try:
        import pyagrum  # noqa: F401
    except ImportError:
        say("networks: pyAgrum is not installed")
        return
    yield from posteriors()
    if datasets.there("adult"):
        yield from trees(setting)
    else:
        say(f"networks: {datasets.UNSET}")


# The tree of Adult ---------------------------------------------------------------------------------------------------


def trees(setting: Setting) -> Iterator[Task]:
    X, y = adult(setting.rows(50_000))
    what = f"Adult, {len(X):,} complete rows, {X.shape[1]} columns, 2 classes"
    once = functools.cache(lambda: theirs(X, y))
    yield Task(
        "networks", "fit TAN", what, lambda: ours(X, y), same_edges, lambda: theirs(X, y), "pyAgrum", at_least=10.0
    )
    mine, some = ours(X, y), X[:2000]
    predict = lambda: mine.predict_proba(some)  # noqa: E731
    peer = lambda: np.asarray(once().predict_proba(some))  # noqa: E731
    agree = lambda answers: as_right(answers, y[: len(some)])  # noqa: E731
    yield Task("networks", "predict", f"{len(some):,} of these rows", predict, agree, peer, "pyAgrum", prepare=once)
    many = X[:10_000]
    gaps = many.mask(np.random.default_rng(0).random(many.shape) < 0.3, None)
    for name, rows in (("predict, complete", many), ("predict, 30 % of the cells missing", gaps)):
        yield Task(
            "networks", name, f"{len(rows):,} of these rows", partial(mine.predict_proba, rows), partial(usable, y)
        )


def usable(y: NDArray[Any], answers: Mapping[str, Any]) -> str:
    """Ours alone: posteriors that sum to one, and more often right than the more frequent class is."""
    found = answers["ours"]
    own = y[: len(found)]
    right = float((np.unique(y)[found.argmax(axis=1)] == own).mean())
    if not np.allclose(found.sum(axis=1), 1.0) or right <= np.unique(own, return_counts=True)[1].max() / len(own):
        raise WrongAnswer(f"{right:.1%} right")
    return f"{right:.1%} right"


def adult(rows: int) -> tuple[Any, NDArray[Any]]:
    """Complete rows, every column a word."""
    import pandas as pd

    frame = datasets.frame("adult", "adult.data", datasets.ADULT).dropna()[:rows]
    labels = frame.pop(datasets.INCOME).to_numpy(dtype=object)
    words = {
        name: frame[name].astype(str)
        if frame[name].dtype.kind not in "iuf"
        else "b" + pd.qcut(frame[name].rank(method="first"), BINS, labels=False).astype(str)
        for name in frame
    }
    return pd.DataFrame(words).astype(object), labels


def ours(X: Any, y: NDArray[Any]) -> bb.TANClassifier:
    return bb.TANClassifier(level=None, features="categorical").fit(X, y)


def theirs(X: Any, y: NDArray[Any]) -> Any:
    from pyagrum.skbn import createBNClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return createBNClassifier(learningMethod="TAN", discretizationThreshold=1000).fit(X, y)


def same_edges(answers: Mapping[str, Any]) -> str:
    mine = {frozenset(edge) for edge in answers["ours"].network_.edges if "class" not in edge}
    network = answers["peer"].bn_
    every = ([network.variable(node).name() for node in arc] for arc in network.arcs())
    found = {frozenset(edge) for edge in every if "y" not in edge}
    if not found <= mine:
        raise WrongAnswer(f"{len(found - mine)} of pyAgrum's {len(found)} edges are not in our tree")
    return f"all {len(found)} of its edges are among our {len(mine)}"


def as_right(answers: Mapping[str, Any], labels: NDArray[Any]) -> str:
    """Smoothed and not, they differ where a cell is empty: ours may not be less often right by more than a point."""
    classes = np.unique(labels)
    right = {name: float(np.mean(classes[answer.argmax(axis=1)] == labels)) for name, answer in answers.items()}
    if right["ours"] < right["peer"] - 0.01:
        raise WrongAnswer(f"ours is right in {right['ours']:.2%} of rows, pyAgrum in {right['peer']:.2%}")
    return f"right: ours {right['ours']:.1%}, pyAgrum {right['peer']:.1%}"


# Posteriors of many nodes --------------------------------------------------------------------------------------------


def posteriors() -> Iterator[Task]:
    network = made_up()
    seen = network.sample(1, seed=1)
    evidence = {node: seen[node][0].item() for node in network.nodes[:: NODES // EVIDENCE]}
    asked = [node for node in network.nodes if node not in evidence]
    peer = in_pyagrum(network)
    what = f"{len(network.nodes)} nodes, {len(network.edges)} edges, {len(evidence)} of them known"

    def theirs() -> NDArray[np.float64]:
        import pyagrum

        engine = pyagrum.LazyPropagation(peer)
        engine.setEvidence(evidence)
        engine.makeInference()
        return np.concatenate([engine.posterior(node)[:] for node in asked])

    def ours() -> NDArray[np.float64]:
        found = network.posteriors(evidence)
        return np.concatenate([list(found[node].values()) for node in asked])

    yield Task("networks", "all posteriors", what, ours, same_shares, theirs, "pyAgrum")


def made_up() -> bb.BeliefNetwork:
    """Nodes of two to four values with up to three parents among the six before them."""
    rng = np.random.default_rng(3)
    names = [f"n{k}" for k in range(NODES)]
    sizes = rng.integers(2, 5, NODES)
    parents = {
        name: [
            names[p] for p in rng.choice(np.arange(max(k - 6, 0), k), min(k, int(rng.integers(0, 4))), replace=False)
        ]
        for k, name in enumerate(names)
    }
    values = {name: [f"v{k}" for k in range(size)] for name, size in zip(names, sizes, strict=True)}
    tables = {
        name: np.moveaxis(rng.dirichlet(np.ones(len(values[name])), [len(values[p]) for p in parents[name]]), -1, 0)
        for name in names
    }
    return bb.BeliefNetwork.from_tables(tables, parents, values=values)


def in_pyagrum(network: bb.BeliefNetwork) -> Any:
    import pyagrum

    made = pyagrum.BayesNet()
    for node, values in network.values.items():
        made.add(pyagrum.LabelizedVariable(node, node, [str(value) for value in values]))
    for parent, child in network.edges:
        made.addArc(parent, child)
    for node, table in network.tables.items():
        mine = [node, *network.parents[node]]
        axes = [mine.index(name) for name in reversed(made.cpt(node).names)]
        made.cpt(node)[:] = np.ascontiguousarray(table.transpose(axes))
    return made


def same_shares(answers: Mapping[str, Any]) -> str:
    gap = float(np.abs(answers["ours"] - answers["peer"]).max())
    if not gap <= 1e-9:
        raise WrongAnswer(f"posteriors are {gap:.1e} apart")
    return f"posteriors within {gap:.0e}"
