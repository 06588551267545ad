"""Tests of the information of a feature about the class: by groups of its values, by its words, or of a whole block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from banbury.arrays import Int, Real, divide
from banbury.families.bags.bag_of_words import bag_of_words
from banbury.families.bags.words import most_informative
from banbury.families.family import Family, Feature, Features
from banbury.families.information import (
    BIT,
    FEWEST_ROWS,
    bits_by_chance,
    bits_of,
    equal_groups,
    excess,
    p_values,
    shares,
)
from banbury.insight.dependence.densities import bits_of_normals
from banbury.sums import Keys, Products, Words

ROWS_PER_CELL = 5  # numbers are cut into no more groups than leave so many rows in each cell of a table, on average
MOST_GROUPS = 12  # groups into which a column of numbers is cut
MOST_VALUES = 50  # if there are more values, the most frequent are kept and the others are merged into equal groups
FEWEST_VALUES = 5  # values that are kept, however few the rows
FEW_CLASSES = 20  # with more classes, small ones are merged
LEAST_VARIANCE_SHARE = 1e-10  # a direction with less variance, relative to the widest, is rounding
LEAST_CLASS_VARIANCE = 1e-12  # least variance of a class, relative to that of all rows


class ColumnTest(NamedTuple):
    """The information of a feature about the class beyond chance, in bits, and the p-value of the test."""

    bits: float = 0.0  # beyond chance
    p: float = 1.0
    has_several_values: bool = False  # whether it is a column with at least two values, and not a text
    why: str = ""  # why it could not be tested, or nothing
    words: Mapping[str, float] = {}  # of a text: its most informative words with their bits

    def at_least(self, tests: Sequence[ColumnTest]) -> ColumnTest:
        """Returns this test with the largest information of all: itself and the other ``tests``. Its p-value is the
        smallest of all, multiplied by their number.
        """
        all_tests = [self, *tests]
        p = min(min(test.p for test in all_tests) * len(all_tests), 1.0)
        return self._replace(bits=max(test.bits for test in all_tests), p=p)


def models_jointly(feature: Feature) -> bool:
    """Returns whether a feature models several columns, or a list of numbers, jointly, so that no independence among
    them is assumed. Texts and blocks of occurrences do not.
    """
    return not feature.counter.words and (feature.holds_lists or feature.name not in feature.inputs)


def test_features(
    family: Family,
    features: Features,
    sums: Any,
    scale: float,
    n: int,
    columns: Mapping[str, ColumnTest],
    rows_of_classes: Real | None,
) -> list[ColumnTest]:
    """Returns the test of the information of each feature; for a text, that of its best word.

    Args:
        family: The family of all these features.
        features: The features.
        sums: What was counted of them.
        scale: How many rows a weight of 1 is worth.
        n: How many words of a text to list.
        columns: The tests of the columns of a block: a block has at least the information of the best of them, which
            finer groups can show better.
        rows_of_classes: If given, a missing number counts as a value: the weight of all rows of each class. Missing
            categories are already among the keys.
    """
    if isinstance(sums, Words):
        return [_test_words(features[0], sums, scale, n)]
    if isinstance(sums, Products):
        is_tied = family.n_parameters(features, sums)[0][1] > 0
        return [measure_block(sums, is_tied, scale)]
    tests = []
    for feature_number, feature in enumerate(features):
        column_tests = [columns[name] for name in feature.inputs if name in columns]
        if not family.keyed:
            tests.append(ColumnTest().at_least(column_tests) if column_tests else ColumnTest(why="not tested"))
            continue
        keys, exact_cells = sums.feature(feature_number)  # the values (or bins), and their weights by class
        cells = exact_cells.value  # keys × classes
        max_groups = int(float(cells.sum()) * scale / (2 * ROWS_PER_CELL * cells.shape[1]))
        group_of_key = group_values(feature, keys, cells, max_groups)  # its number, the same in every class
        if rows_of_classes is not None and family.has_density():
            # The weight of the rows of each class that have no value.
            missing_rows = np.maximum(rows_of_classes - sums.present.value[feature_number], 0.0)
            if len(keys) and missing_rows.any():
                cells = np.vstack([cells, missing_rows])
                group_of_key = np.append(group_of_key, group_of_key.max() + 1)
        test = measure_table(cells, group_of_key, scale)
        test = test._replace(has_several_values=test.has_several_values and not feature.columns)
        tests.append(test.at_least(column_tests) if column_tests and family.has_density() else test)
    return tests


def _test_words(feature: Feature, sums: Words, scale: float, n: int) -> ColumnTest:
    """Returns the test of the most informative word of the text column ``feature``. The p-value is corrected for the
    number of words. ``sums`` are the counted words. A weight of 1 is worth ``scale`` rows, and ``n`` is the number of
    words to list.
    """
    words = bag_of_words(feature).words_in_use(feature, sums)  # those that some row has
    texts_by_class = sums.texts.value  # the weight of the texts of each class
    n_texts = float(texts_by_class.sum()) * scale
    n_classes = int(np.count_nonzero(texts_by_class))  # classes with texts
    freedom = max(n_classes - 1, 0) if words.n_words else 0  # degrees of freedom of the test
    best_words = most_informative(feature, words, n)
    chance_bits = float(bits_by_chance(freedom, n_texts))
    p = float(p_values(best_words[0].bits if best_words else 0.0, freedom, excess=0.0, n=n_texts)) * max(
        words.n_words, 1
    )
    bits_beyond_chance = {word.name: max(word.bits - chance_bits, 0.0) for word in best_words}
    why = reason_for_no_test(n_texts, len(texts_by_class), n_classes, "" if words.n_words else "no words")
    most_bits = max(bits_beyond_chance.values(), default=0.0)
    return ColumnTest(most_bits, min(p, 1.0), has_several_values=False, why=why, words=bits_beyond_chance)


def group_values(feature: Feature, keys: Keys, cells: Real, limit: int) -> Int:
    """Returns the number of the group of each key of a feature (keys,), the same in every class. ``cells`` (keys ×
    classes) are the weights of the rows; ``limit`` is how many groups leave enough rows in every cell of a table.
    """
    are_numbers = feature.family.has_density()
    if are_numbers and feature.columns:
        return group_block(keys, cells, limit)
    max_values = np.clip(limit, FEWEST_VALUES, MOST_VALUES)
    if len(cells) <= max_values:
        return np.arange(len(cells))
    max_groups = np.clip(limit, 2, MOST_GROUPS) if are_numbers else max_values
    return equal_groups(cells.sum(axis=1, keepdims=True), np.array([int(max_groups)]))[:, 0]


def group_values_in_classes(family: Family, cells: Real, scale: float, most: int) -> Int:
    """Returns the number of the group of each key of a feature of this family in each class (keys × classes). ``cells``
    (keys × classes) are weights, worth ``scale`` rows each. Numbers are cut at the quantiles of each class. No class
    has more than ``most`` groups.
    """
    limit = np.sqrt(cells.sum() * scale / ROWS_PER_CELL / cells.shape[1])  # values that leave enough rows in each cell
    max_values = int(min(np.clip(limit, FEWEST_VALUES, MOST_VALUES), most))
    if len(cells) <= max_values:
        groups = np.arange(len(cells))[:, None]  # keys × 1, if they are the same in every class
    elif family.has_density():
        limits = np.sqrt(cells.sum(axis=0) * scale / ROWS_PER_CELL)  # of each class
        groups = equal_groups(cells, np.clip(limits, 1, min(MOST_GROUPS, most)).astype(np.int64))
    else:
        groups = equal_groups(cells.sum(axis=1, keepdims=True), np.array([max_values]))
    return np.broadcast_to(groups, cells.shape)


def group_block(keys: Keys, cells: Real, limit: int) -> Int:
    """Returns the number of the group of each key (keys,) of a block of bins, whose keys are tuples of bin numbers:
    each column is cut into groups of about equal size, few enough that their combinations, which are the groups, stay
    close to ``limit``. ``cells`` (keys × classes) are the weights of the rows.
    """
    if not keys:
        return np.zeros(0, dtype=np.int64)
    bin_numbers: Any = np.array(list(keys), dtype=np.int64)
    max_groups = max(int(np.clip(limit, FEWEST_VALUES, MOST_VALUES) ** (1.0 / bin_numbers.shape[1])), 2)
    rows_by_key = cells.sum(axis=1)
    groups = np.zeros_like(bin_numbers)  # keys × columns, as the bin numbers
    for column in range(bin_numbers.shape[1]):
        # The column's bins that occur, and the index among them of each key's bin.
        values, value_numbers = np.unique(bin_numbers[:, column], return_inverse=True)
        rows_by_value = np.bincount(value_numbers.reshape(-1), rows_by_key, len(values)).astype(np.float64)
        groups[:, column] = equal_groups(rows_by_value[:, None], np.array([max_groups]))[value_numbers.reshape(-1), 0]
    _, combination_numbers = np.unique(groups, axis=0, return_inverse=True)
    return np.asarray(combination_numbers.reshape(-1))


def measure_table(cells: Real, groups: Int, scale: float) -> ColumnTest:
    """Returns the test of the information of groups of values. ``cells`` (values × classes) are weights, worth
    ``scale`` rows each, and ``groups`` has the number of the group of each value.
    """
    n_rows = float(cells.sum()) * scale
    n_classes = cells.shape[1]
    # The weight of each group in each class.
    group_table = np.zeros((int(groups.max(initial=0)) + 1, n_classes))
    np.add.at(group_table, groups, cells)
    is_rare = group_table.sum(axis=0) * scale < FEWEST_ROWS
    if n_classes > FEW_CLASSES and is_rare.any():  # where classes are many, those too small for a test are taken as one
        group_table = np.column_stack([group_table[:, ~is_rare], group_table[:, is_rare].sum(axis=1)])
    bits = bits_of(group_table)
    margins = [group_table.sum(axis=axis) for axis in (1, 0)]  # by group, and by class
    n_values, n_used_classes = (int(np.count_nonzero(margin)) for margin in margins)
    freedom = max(n_values - 1, 0) * max(n_used_classes - 1, 0)
    # Sums of the reciprocals of the shares of the groups and of the classes, which correct the test.
    value_terms, class_terms = (float(divide(group_table.sum(), margin).sum()) for margin in margins)
    p = float(p_values(bits, freedom, excess(value_terms, class_terms, max(n_rows, 1e-300)), n_rows))
    why = reason_for_no_test(n_rows, n_classes, n_used_classes, "one value only" if n_values < 2 else "")
    return ColumnTest(
        max(bits - float(bits_by_chance(freedom, n_rows)), 0.0), p, has_several_values=n_values > 1, why=why
    )


def reason_for_no_test(n_rows: float, n_classes: int, n_used_classes: int, otherwise: str) -> str:
    """Returns why a feature cannot be tested: no rows, one class, or values in one class only; ``otherwise`` if none of
    these is the case. ``n_used_classes`` is the number of classes, of ``n_classes``, in which it has values.
    """
    if not n_rows > 0:
        return "no value"
    if n_classes < 2:
        return "there is one class only"
    return "values in one class only" if n_used_classes < 2 else otherwise


def measure_block(sums: Products, is_tied: bool, scale: float) -> ColumnTest:
    """Returns the test of the information of a block of normal distributions, if there are enough rows.

    ``sums`` are the products that were counted. ``is_tied`` says whether all classes share a covariance. A weight of 1 is
    worth ``scale`` rows.

    The likelihood-ratio test asks whether all classes have the same mean, and the same covariance unless it is tied.
    With few rows, G is larger on average than chi-square with its degrees of freedom, so it is divided by its
    expectation under the Wishart distribution. If a class has fewer rows than its covariance needs, only means are
    tested.
    """
    from scipy.special import chdtrc  # few need it

    class_weights, mean, scatter = _whiten_classes(sums)  # of the classes that have rows
    n_classes, n_directions = mean.shape
    class_rows = class_weights * scale  # how many rows each class counts as
    if n_classes < 2 or n_directions == 0 or class_rows.sum() - n_classes < n_directions:
        return ColumnTest(
            why=reason_for_no_test(
                float(class_rows.sum()), sums.n.shape[0], n_classes, "too few rows, or one value only"
            )
        )
    is_tied = is_tied or bool(class_rows.min() < n_directions + 1)
    covariance = scatter / class_weights[:, None, None]  # classes × directions × directions
    if is_tied:
        covariance = np.broadcast_to(scatter.sum(axis=0) / class_weights.sum(), scatter.shape)
    # Classes × directions; a class without any variance in a direction gets a little.
    eigenvalues = np.maximum(np.linalg.eigvalsh(covariance), LEAST_CLASS_VARIANCE)
    statistic = max(-float(class_rows @ np.log(eigenvalues).sum(axis=-1)), 0.0)
    expected_statistic = _mean_g(class_rows, n_directions, is_tied)
    freedom = (n_classes - 1) * (n_directions if is_tied else n_directions + n_directions * (n_directions + 1) // 2)
    bits = bits_of_normals(shares(class_weights), mean, covariance + LEAST_CLASS_VARIANCE * np.eye(n_directions))
    bits_beyond_chance = max(bits - expected_statistic / (2.0 * float(class_rows.sum()) * BIT), 0.0)
    return ColumnTest(bits_beyond_chance, float(chdtrc(freedom, statistic * freedom / expected_statistic)))


def _whiten_classes(sums: Products) -> tuple[Real, Real, Real]:
    """Returns the weights (classes,), means (classes × directions) and scatters (classes × directions × directions) of
    the classes that have rows, in directions in which all rows together have variance 1. ``sums`` are the counted
    products of a block's columns.
    """
    has_rows = sums.n.value > 0  # of each class
    # Of the rows of all classes together: the mean of each column, and the scatter (columns × columns).
    total_weight, centre, pooled_scatter = sums.pool()
    pooled_covariance = pooled_scatter / max(total_weight, 1e-300)
    deviations = np.sqrt(np.maximum(np.diagonal(pooled_covariance), 0.0))  # of the columns
    scales = np.where(deviations > 0, deviations, 1.0)
    eigenvalues, vectors = np.linalg.eigh(pooled_covariance / scales[:, None] / scales)
    has_variance = eigenvalues > LEAST_VARIANCE_SHARE * max(float(eigenvalues[-1]), 1e-300)
    directions = vectors[:, has_variance] / scales[:, None] / np.sqrt(eigenvalues[has_variance])
    scatters = directions.T @ sums.scatter[has_rows] @ directions
    return sums.n.value[has_rows], (sums.mean[has_rows] - centre) @ directions, scatters


def _mean_g(class_rows: Real, n_directions: int, is_tied: bool) -> float:
    """Returns the expectation of the likelihood-ratio statistic G if all classes have the same distribution.
    ``class_rows`` has the rows of each class, ``n_directions`` is the number of columns, and ``is_tied`` says whether
    all classes share a covariance.
    """
    n_rows = float(class_rows.sum())
    if is_tied:
        return n_rows * (
            _log_scatter(n_rows - 1.0, n_directions) - _log_scatter(n_rows - len(class_rows), n_directions)
        )
    # Of each class: the expected log determinant of its covariance.
    class_terms = np.array(
        [
            _log_scatter(n_class_rows - 1.0, n_directions) - n_directions * np.log(n_class_rows)
            for n_class_rows in class_rows.tolist()
        ]
    )
    return float(
        n_rows * (_log_scatter(n_rows - 1.0, n_directions) - n_directions * np.log(n_rows)) - class_rows @ class_terms
    )


def _log_scatter(degrees: float, n_directions: int) -> float:
    """Returns E log |S| of a Wishart-distributed matrix S of ``n_directions`` rows and columns with these degrees of
    freedom, without a constant.
    """
    from scipy.special import digamma  # few need it

    return float(digamma((degrees - np.arange(n_directions)) / 2.0).sum())
