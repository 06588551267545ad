"""What a feature tells about the class beyond chance: by groups of its values, by its words, or by all of a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from banbury.arrays import Int, Real
from banbury.families.bags.words import most_telling, word_family
from banbury.families.covariance import block_test
from banbury.families.family import Family, Feature
from banbury.families.information import (
    ColumnTest,
    bits_by_chance,
    equal_groups,
    p_values,
    reason_not_tested,
    table_test,
)
from banbury.sums import Keys, Products, Words

ROWS_PER_CELL = 5  # numbers are cut into no more groups than leave so many rows in each cell of a table, on average
MOST_GROUPS = 12  # of a column of numbers
MOST_VALUES = 50  # that are taken as they are; of more the frequent ones are, and the rest in groups of equal size
FEWEST_VALUES = 5  # however few the rows


def joins(feature: Feature) -> bool:
    """Whether several columns are modelled together, so that no independence is assumed among them."""
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
    """What each feature tells; of words the best n. A weight of 1 is worth ``scale`` rows.

    ``columns`` has the tests of a block's columns one by one: a block tells no less than the best of them, of which finer groups
    show more. With ``rows_of_classes`` a missing number is a value, too; missing categories are among the keys already.
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
    words = word_family(feature).used_words(feature, sums)
    texts = sums.texts.value
    n_texts = float(texts.sum()) * scale
    classes = int(np.count_nonzero(texts))
    freedom = max(classes - 1, 0) if words.n_words else 0
    best = most_telling(feature, words, n)
    chance = float(bits_by_chance(freedom, n_texts))
    p = float(p_values(best[0].bits if best else 0.0, freedom, 0.0, n_texts)) * max(words.n_words, 1)
    beyond = {word.name: max(word.bits - chance, 0.0) for word in best}
    why = reason_not_tested(n_texts, len(texts), classes, "" if words.n_words else "no words")
    return ColumnTest(max(beyond.values(), default=0.0), min(p, 1.0), False, why, beyond)


def groups_of(feature: Feature, keys: Keys, cells: Real, limit: int) -> Int:
    """The group of each key, whatever the class: so few that a table has rows enough in every cell."""
    numbers = feature.family.has_density()
    if numbers and feature.columns:
        return block_groups(keys, cells, limit)
    values = np.clip(limit, FEWEST_VALUES, MOST_VALUES)
    if len(cells) <= values:
        return np.arange(len(cells))
    most = np.clip(limit, 2, MOST_GROUPS) if numbers else values
    return equal_groups(cells.sum(axis=1, keepdims=True), np.array([int(most)]))[:, 0]


def groups_given_class(family: Family, cells: Real, scale: float, most: int) -> Int:
    """The group of each key in each class, (keys, classes): numbers are cut by each class's own quantiles."""
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
    """The group of each key of a block of bins: its columns are cut into groups of about equal size, so few that their
    combinations are not many more than the limit."""
    if not keys:
        return np.zeros(0, dtype=np.int64)
    each: Any = np.array(list(keys), dtype=np.int64)
    most = max(int(np.clip(limit, FEWEST_VALUES, MOST_VALUES) ** (1.0 / each.shape[1])), 2)
    rows = cells.sum(axis=1)
    groups = np.zeros_like(each)
    for j in range(each.shape[1]):
        values, place = np.unique(each[:, j], return_inverse=True)
        margin = np.bincount(place.reshape(-1), rows, len(values)).astype(np.float64)
        groups[:, j] = equal_groups(margin[:, None], np.array([most]))[place.reshape(-1), 0]
    return np.asarray(np.unique(groups, axis=0, return_inverse=True)[1].reshape(-1))
