"""Information about the class, in bits: of tables of counts, of densities and of rows that are drawn; and the test of chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from banbury import _core
from banbury.arrays import Int, Real
from banbury.readers import read

BIT = float(np.log(2.0))
NODES = 801  # of a density's grid, from −9 to 9 deviations
MOST_NODES = 1 << 21  # of all densities, times the densities
DRAWN = 1 << 12  # rows of each class
LEAST_SHARE = 2.0**-1000  # whose terms of an entropy are told apart from 0
FEWEST_ROWS = 10  # of a class, for it to be tested by itself
FEW_CLASSES = 20  # up to so many, even small ones are tested one by one


class ColumnTest(NamedTuple):
    """What a feature tells about the class: bits beyond chance, and how often chance alone would come so far."""

    bits: float = 0.0
    p: float = 1.0
    different: bool = False  # whether it is a column of two values at least, and no text
    why: str = ""  # why it could not be tested, or nothing
    words: Mapping[str, float] = {}

    def at_least(self, others: Sequence[ColumnTest]) -> ColumnTest:
        """No less than the best of others tells; p is that of the best of all."""
        every = [self, *others]
        p = min(min(each.p for each in every) * len(every), 1.0)
        return self._replace(bits=max(each.bits for each in every), p=p)


# Tables --------------------------------------------------------------------------------------------------------------


def shares(cells: Real) -> Real:
    """Of the sum of all; zeros where there is none."""
    whole = float(cells.sum())
    return np.asarray(cells / whole) if whole > 0 else np.zeros_like(cells)


def entropy_terms(share: Real) -> Real:
    """−p log2 p, 0 for 0."""
    return -share * np.log2(np.maximum(share, LEAST_SHARE))


def entropy(share: Real) -> float:
    return float(entropy_terms(share).sum())


def bits_of(cells: Real) -> float:
    """I(row; column) of a table of counts."""
    share = shares(cells)
    return max(entropy(share.sum(axis=0)) + entropy(share.sum(axis=1)) - entropy(share), 0.0)


def equal_groups(cells: Real, most: Int) -> Int:
    """Of each column of cells the places in groups of about equal size, ``most`` of them; a place as large is one by itself."""
    totals = cells.sum(axis=0)
    large = cells * most > totals
    rest = np.where(large, 0.0, cells)
    sums, left = rest.sum(axis=0), most - large.sum(axis=0)
    middle = (np.cumsum(rest, axis=0) - rest / 2.0) / np.where(sums > 0, sums, 1.0)
    shared = np.clip((middle * left).astype(np.int64), 0, left - 1)
    return np.asarray(np.where(large, left + np.cumsum(large, axis=0) - 1, shared))


# Chance --------------------------------------------------------------------------------------------------------------


def expected(freedom: Any, n: Any) -> Any:
    """The bits that chance alone gives, about."""
    return freedom / (2.0 * np.maximum(n, 1e-300) * BIT)


def p_values(bits: Any, freedom: Any, excess: Any, n: Any) -> Real:
    """How often chance alone gives as many bits: the likelihood-ratio test.

    Where cells hold few rows, G = 2 · rows · nats is higher on average than chi-square with its degrees of freedom; ``excess`` is
    by how much, and G is brought down to it.
    """
    from scipy.special import chdtrc  # few need it

    some = np.asarray(freedom) > 0
    freedom = np.where(some, freedom, 1.0)
    g = 2.0 * BIT * np.asarray(n) * bits * freedom / (freedom + excess)
    return np.where(some, chdtrc(freedom, g), 1.0)


def excess(first: Any, second: Any, n: Any) -> Any:
    """Williams' correction (1976), in degrees of freedom, from Σ n / n_i over the rows of a table and over its columns."""
    return (first - 1.0) * (second - 1.0) / (6.0 * n)


def inverse_shares(cells: Real, whole: Any) -> Real:
    """whole / cell, 0 for an empty cell."""
    some = cells > 0
    return np.where(some, whole / np.where(some, cells, 1.0), 0.0)


def table_test(cells: Real, groups: Int, scale: float) -> ColumnTest:
    """What groups of values tell; ``cells`` has the rows of each value and class, of which ``scale`` makes numbers of rows."""
    n, n_classes = float(cells.sum()) * scale, cells.shape[1]
    table = np.zeros((int(groups.max(initial=0)) + 1, n_classes))
    np.add.at(table, groups, cells)
    rare = table.sum(axis=0) * scale < FEWEST_ROWS
    if n_classes > FEW_CLASSES and rare.any():  # where classes are many, those too small for a test are taken as one
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    bits, margins = bits_of(table), [table.sum(axis=axis) for axis in (1, 0)]
    values, classes = (int(np.count_nonzero(margin)) for margin in margins)
    freedom = max(values - 1, 0) * max(classes - 1, 0)
    rare_values, rare_classes = (float(inverse_shares(margin, table.sum()).sum()) for margin in margins)
    p = float(p_values(bits, freedom, excess(rare_values, rare_classes, max(n, 1e-300)), n))
    why = untested(n, n_classes, classes, "one value only" if values < 2 else "")
    return ColumnTest(max(bits - float(expected(freedom, n)), 0.0), p, values > 1, why)


def untested(n: float, n_classes: int, with_values: int, otherwise: str) -> str:
    """Why there is nothing to test."""
    if not n > 0:
        return "no value"
    if n_classes < 2:
        return "there is one class only"
    return "values in one class only" if with_values < 2 else otherwise


# Densities -----------------------------------------------------------------------------------------------------------


def log_mixture(log_likelihood: Real, prior: Real) -> Real:
    """log P(value), whatever the class, from log P(value | class), (values, classes)."""
    highest = log_likelihood.max(axis=1, keepdims=True)
    return np.asarray(highest[:, 0] + np.log(np.exp(log_likelihood - highest) @ prior))


def bits_of_densities(log_likelihood: Real, widths: Real, prior: Real) -> float:
    """I(value; class) of densities, (nodes, classes), at nodes that stand for so wide a range of values each."""
    apart = log_likelihood - log_mixture(log_likelihood, prior)[:, None]
    nats = widths @ (np.exp(log_likelihood + np.log(prior)) * apart).sum(axis=1)
    return min(max(float(nats) / BIT, 0.0), entropy(prior))


def grid(mean: Real, deviation: Real) -> Real:
    """Where densities are looked at: from −9 to 9 deviations of each of them, closely unless they are many.

    The nodes of all together, so that a narrow density among wide ones is seen.
    """
    most = MOST_NODES // len(mean)
    steps = np.linspace(-9.0, 9.0, int(np.clip(most // len(mean), 16, NODES)))
    nodes = np.unique(mean[:, None] + deviation[:, None] * steps)
    return nodes[:: -(-len(nodes) // max(most, 1))]


def bits_of_draws(parameters: Any, rows: Real) -> Real:
    """I(feature; class) of each feature: the mean of log P(value | class) − log P(value) over rows drawn from the model."""
    seen, features = np.flatnonzero(rows > 0), parameters.features
    prior = shares(rows[seen])
    if len(seen) < 2:
        return np.zeros(len(features))
    columns = parameters.sample(np.repeat(seen, DRAWN), np.random.default_rng(0))
    [batch] = read(dict(zip((name for feature in features for name in feature.inputs), columns, strict=True)))
    scores = _core.score(batch.n_rows, np.zeros(len(rows)), parameters.parts(batch), "parts", 1)[0][:, :, seen]
    bits = np.zeros(len(features))
    for f in range(len(features)):
        own = np.repeat(np.arange(len(seen)), DRAWN)
        apart = scores[np.arange(len(own)), f, own] - log_mixture(scores[:, f], prior)
        bits[f] = prior @ apart.reshape(len(seen), DRAWN).mean(axis=1) / BIT
    return np.clip(bits, 0.0, entropy(prior))
