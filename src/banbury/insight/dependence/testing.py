"""What a feature tells about the class beyond chance: by groups of its values, by its words, or by all of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from banbury.arrays import Int, Real
from banbury.families.bags.words import most_telling, word_family
from banbury.families.family import Family, Feature
from banbury.families.information import (
    BIT,
    FEWEST_ROWS,
    bits_by_chance,
    bits_of,
    equal_groups,
    excess,
    inverse_shares,
    p_values,
    shares,
)
from banbury.insight.dependence.densities import bits_of_normals
from banbury.sums import Keys, Products, Words

ROWS_PER_CELL = 5  # numbers are cut into no more groups than leave so many rows in each cell of a table, on average
MOST_GROUPS = 12  # of a column of numbers
MOST_VALUES = 50  # that are taken as they are; of more the frequent ones are, and the rest in groups of equal size
FEWEST_VALUES = 5  # however few the rows
FEW_CLASSES = 20  # up to so many, even small ones are tested one by one
SAME_PLANE = 1e-10  # of the widest direction: a narrower one is rounding
NARROWEST = 1e-12  # a class's variance in units of that of all rows


class ColumnTest(NamedTuple):
    """The information of a feature about the class beyond chance, in bits, and the p-value of the test."""

    bits: float = 0.0
    p: float = 1.0
    different: bool = False  # whether it is a column of two values at least, and no text
    why: str = ""  # why it could not be tested, or nothing
    words: Mapping[str, float] = {}

    def at_least(self, tests: Sequence[ColumnTest]) -> ColumnTest:
        """Returns the larger of this information and that of the best of others; p is the smallest, corrected for their
        number.
        """
        every = [self, *tests]
        p = min(min(test.p for test in every) * len(every), 1.0)
        return self._replace(bits=max(test.bits for test in every), p=p)


def joins(feature: Feature) -> bool:
    """Whether several columns are modelled jointly, so that no independence among them is assumed."""
    return not feature.counter.words and (feature.holds_lists or feature.name not in feature.inputs)


def test_features(
    family: Family,
    features: tuple[Feature, ...],
    sums: Any,
    scale: float,
    n: int,
    columns: Mapping[str, ColumnTest],
    rows_of_classes: Real | None,
) -> list[ColumnTest]:
    """Tests the information of each feature, and of the ``n`` best words. A weight of 1 is worth ``scale`` rows.

    ``columns`` has the tests of the columns of a block: a block has at least the information of the best of them, which
    finer groups can show better. With ``rows_of_classes``, a missing number counts as a value; missing categories are
    already among the keys.
    """
    if isinstance(sums, Words):
        return [_test_words(features[0], sums, scale, n)]
    if isinstance(sums, Products):
        tied = family.n_parameters(features, sums)[0][1] > 0
        return [block_test(sums, tied, scale)]
    tests = []
    for f, feature in enumerate(features):
        best = [columns[name] for name in feature.inputs if name in columns]
        if not family.keyed:
            tests.append(ColumnTest().at_least(best) if best else ColumnTest(why="not tested"))
            continue
        keys, rows = sums.feature(f)
        limit = int(float(rows.value.sum()) * scale / (2 * ROWS_PER_CELL * rows.shape[1]))
        cells = rows.value
        groups = groups_of(feature, keys, cells, limit)
        if rows_of_classes is not None and family.has_density():
            missing = np.maximum(rows_of_classes - sums.present.value[f], 0.0)
            if len(keys) and missing.any():
                cells = np.vstack([cells, missing])
                groups = np.append(groups, groups.max() + 1)
        test = table_test(cells, groups, scale)
        test = test._replace(different=test.different and not feature.columns)
        tests.append(test.at_least(best) if best and family.has_density() else test)
    return tests


def _test_words(feature: Feature, sums: Words, scale: float, n: int) -> ColumnTest:
    """Of the word that tells most; p is that of the best of so many words."""
    words = word_family(feature).words_in_use(feature, sums)
    texts = sums.texts.value
    n_texts = float(texts.sum()) * scale
    classes = int(np.count_nonzero(texts))
    freedom = max(classes - 1, 0) if words.n_words else 0
    best = most_telling(feature, words, n)
    chance = float(bits_by_chance(freedom, n_texts))
    p = float(p_values(best[0].bits if best else 0.0, freedom, 0.0, n_texts)) * max(words.n_words, 1)
    beyond = {word.name: max(word.bits - chance, 0.0) for word in best}
    why = reason_for_no_test(n_texts, len(texts), classes, "" if words.n_words else "no words")
    return ColumnTest(max(beyond.values(), default=0.0), min(p, 1.0), False, why, beyond)


def groups_of(feature: Feature, keys: Keys, cells: Real, limit: int) -> Int:
    """Returns the group of each key, the same in every class, with few enough groups that every cell of a table has
    enough rows.
    """
    numbers = feature.family.has_density()
    if numbers and feature.columns:
        return block_groups(keys, cells, limit)
    values = np.clip(limit, FEWEST_VALUES, MOST_VALUES)
    if len(cells) <= values:
        return np.arange(len(cells))
    most = np.clip(limit, 2, MOST_GROUPS) if numbers else values
    return equal_groups(cells.sum(axis=1, keepdims=True), np.array([int(most)]))[:, 0]


def groups_given_class(family: Family, cells: Real, scale: float, most: int) -> Int:
    """Returns the group of each key in each class (keys × classes). Numbers are cut at the quantiles of each class."""
    limit = np.sqrt(cells.sum() * scale / ROWS_PER_CELL / cells.shape[1])
    values = int(min(np.clip(limit, FEWEST_VALUES, MOST_VALUES), most))
    if len(cells) <= values:
        groups = np.arange(len(cells))[:, None]
    elif family.has_density():
        limits = np.sqrt(cells.sum(axis=0) * scale / ROWS_PER_CELL)
        groups = equal_groups(cells, np.clip(limits, 1, min(MOST_GROUPS, most)).astype(np.int64))
    else:
        groups = equal_groups(cells.sum(axis=1, keepdims=True), np.array([values]))
    return np.broadcast_to(groups, cells.shape)


def block_groups(keys: Keys, cells: Real, limit: int) -> Int:
    """Returns the group of each key of a block of bins: its columns are cut into groups of about equal size, few enough
    that their combinations stay close to the limit.
    """
    if not keys:
        return np.zeros(0, dtype=np.int64)
    bins: Any = np.array(list(keys), dtype=np.int64)
    most = max(int(np.clip(limit, FEWEST_VALUES, MOST_VALUES) ** (1.0 / bins.shape[1])), 2)
    rows = cells.sum(axis=1)
    groups = np.zeros_like(bins)
    for j in range(bins.shape[1]):
        values, place = np.unique(bins[:, j], return_inverse=True)
        margin = np.bincount(place.reshape(-1), rows, len(values)).astype(np.float64)
        groups[:, j] = equal_groups(margin[:, None], np.array([most]))[place.reshape(-1), 0]
    return np.asarray(np.unique(groups, axis=0, return_inverse=True)[1].reshape(-1))


def table_test(cells: Real, groups: Int, scale: float) -> ColumnTest:
    """Tests the information of groups of values. ``cells`` has the weight of each value and class, which ``scale``
    converts to rows.
    """
    n = float(cells.sum()) * scale
    n_classes = cells.shape[1]
    table = np.zeros((int(groups.max(initial=0)) + 1, n_classes))
    np.add.at(table, groups, cells)
    rare = table.sum(axis=0) * scale < FEWEST_ROWS
    if n_classes > FEW_CLASSES and rare.any():  # where classes are many, those too small for a test are taken as one
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    bits = bits_of(table)
    margins = [table.sum(axis=axis) for axis in (1, 0)]
    values, classes = (int(np.count_nonzero(margin)) for margin in margins)
    freedom = max(values - 1, 0) * max(classes - 1, 0)
    rare_values, rare_classes = (float(inverse_shares(margin, table.sum()).sum()) for margin in margins)
    p = float(p_values(bits, freedom, excess(rare_values, rare_classes, max(n, 1e-300)), n))
    why = reason_for_no_test(n, n_classes, classes, "one value only" if values < 2 else "")
    return ColumnTest(max(bits - float(bits_by_chance(freedom, n)), 0.0), p, values > 1, why)


def reason_for_no_test(n: float, n_classes: int, with_values: int, otherwise: str) -> str:
    """Returns why there is nothing to test."""
    if not n > 0:
        return "no value"
    if n_classes < 2:
        return "there is one class only"
    return "values in one class only" if with_values < 2 else otherwise


def block_test(sums: Products, tied: bool, scale: float) -> ColumnTest:
    """Tests the information of a block of normal distributions, if there are enough rows.

    The likelihood-ratio test asks whether all classes have the same mean, and the same covariance unless it is tied.
    With few rows, G is larger on average than chi-square with its degrees of freedom, so it is divided by its
    expectation under the Wishart distribution. If a class has fewer rows than its covariance needs, only means are
    tested.
    """
    from scipy.special import chdtrc  # few need it

    n, mean, scatter = _whiten_classes(sums)
    (size, d), rows = mean.shape, n * scale
    if size < 2 or d == 0 or rows.sum() - size < d:
        return ColumnTest(
            why=reason_for_no_test(float(rows.sum()), sums.n.shape[0], size, "too few rows, or one value only")
        )
    tied = tied or bool(rows.min() < d + 1)
    covariance = scatter / n[:, None, None]
    if tied:
        covariance = np.broadcast_to(scatter.sum(axis=0) / n.sum(), scatter.shape)
    values = np.maximum(np.linalg.eigvalsh(covariance), NARROWEST)  # one that is flat is as if it were not quite
    g = max(-float(rows @ np.log(values).sum(axis=-1)), 0.0)
    chance = _mean_g(rows, d, tied)
    freedom = (size - 1) * (d if tied else d + d * (d + 1) // 2)
    bits = bits_of_normals(shares(n), mean, covariance + NARROWEST * np.eye(d))
    beyond = max(bits - chance / (2.0 * float(rows.sum()) * BIT), 0.0)
    return ColumnTest(beyond, float(chdtrc(freedom, g * freedom / chance)))


def _whiten_classes(sums: Products) -> tuple[Real, Real, Real]:
    """Rows, means and scatters of the classes that have rows, in directions in which all rows together vary by 1."""
    seen = sums.n.value > 0
    rows, centre, scatter = sums.pool()
    every = scatter / max(rows, 1e-300)
    deviation = np.sqrt(np.maximum(np.diagonal(every), 0.0))
    safe = np.where(deviation > 0, deviation, 1.0)
    values, vectors = np.linalg.eigh(every / safe[:, None] / safe)
    kept = values > SAME_PLANE * max(float(values[-1]), 1e-300)
    directions = vectors[:, kept] / safe[:, None] / np.sqrt(values[kept])
    within = directions.T @ sums.scatter[seen] @ directions
    return sums.n.value[seen], (sums.mean[seen] - centre) @ directions, within


def _mean_g(rows: Real, d: int, tied: bool) -> float:
    """What G is on average where all classes are alike."""
    n_rows = float(rows.sum())
    if tied:
        return n_rows * (_log_scatter(n_rows - 1.0, d) - _log_scatter(n_rows - len(rows), d))
    class_terms = np.array([_log_scatter(n - 1.0, d) - d * np.log(n) for n in rows.tolist()])
    return float(n_rows * (_log_scatter(n_rows - 1.0, d) - d * np.log(n_rows)) - rows @ class_terms)


def _log_scatter(degrees: float, d: int) -> float:
    """E log |S| of a Wishart distribution in d directions, but for a constant."""
    from scipy.special import digamma  # few need it

    return float(digamma((degrees - np.arange(d)) / 2.0).sum())
