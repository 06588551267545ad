"""Exact cross-validation: what a fold's model says is what a model says that was fitted to the other rows alone.

The oracle is refitting: ``bb.count`` of the rows learned from, under the schema of all rows, ``bb.estimate``, ``posterior``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.pipeline import make_pipeline

import banbury as bb
import by_shape
from banbury import errors
from banbury.families import FAMILIES
from banbury.families.family import HOWS
from banbury.quality import CrossValidation, Evaluation
from banbury.reading import blocks
from pools import WEIGHTS, Pool, rows_from
from test_laws import CASES, PRUNED_AWAY, Case, damped, is_far, law, parametrized, quietly, text

# The oracle ----------------------------------------------------------------------------------------------------------

MORE = {
    "categorical, declared and missing": Case(
        bb.Categorical(values=["a", "b", "c", "ü"], missing="category"), CASES["categorical"].cells, ("a",)
    ),
    "gaussian, shared, prior": Case(
        bb.Gaussian(variance="shared", prior=bb.NormalInverseGamma(2, 3, 1.5, 4)),
        CASES["gaussian"].cells,
        (0.0,),
        far=True,
    ),
    "text, presence, idf": text(model="presence", idf=True),
    "text, presence, word pairs": text(model="presence", ngrams=2),
    "text, log": text(damping="log"),
    "text, length": text(length=True, model="presence"),
    "text, complement, norm": text(model="complement", norm=True),
    "text, log-odds": text(model="log_odds", damping="log", length=True),
    "text, best by count": text(max_words=2),
    "text, best by mutual information": text(max_words=2, choose_by="mutual_information"),
    "text, best of a Bernoulli": text(max_words=3, choose_by="mutual_information", model="bernoulli"),
    "text, best of a complement": text(
        max_words=3, choose_by="mutual_information", model="complement", norm=True, idf=True
    ),
    "text, min_count": text((PRUNED_AWAY,), min_count=2),
    "text, shares of a presence": text((PRUNED_AWAY,), min_share=0.3, max_share=0.7, model="presence"),
    "text, all but the most frequent": text((PRUNED_AWAY,), drop_most_frequent=2, idf=True),
    "text, vocabulary, pruned": text((PRUNED_AWAY,), vocabulary=["ab", "cd", "quince"], max_words=2),
    "text, vocabulary of a Bernoulli": text(vocabulary=["ab", "cd", "quince"], model="bernoulli"),
    "text, vocabulary of a complement": text(vocabulary=["ab", "cd", "quince"], model="complement", idf=True),
}
COLUMNS = {name: case for name, case in CASES.items() if not case.block or case.family.block}
EVERY = COLUMNS | MORE  # families that need not be blocks, as blocks: see test_blocks.py
every_case = parametrized(EVERY)


def test_every_family_is_cross_validated() -> None:
    assert {case.family.name for case in EVERY.values()} == set(FAMILIES)


def declared(families: Mapping[str, Any]) -> Any:
    """The families of columns; one that takes a block has all columns that name it, and one that takes all is alone."""
    groups: dict[str, list[str]] = {}
    for name, family in families.items():
        groups.setdefault(repr(family) if getattr(family, "block", False) else name, []).append(name)
    features: dict[Any, Any] = {}
    for key, names in groups.items():
        family = families[names[0]]
        if getattr(family, "columns", "auto") != "auto":
            return family
        features[key if key in families else tuple(names)] = family
    return features


@dataclass(frozen=True)
class Data:
    """Columns with a family for each, labels of which some may be missing, and weights or None."""

    columns: Mapping[str, Sequence[Any]]
    families: Mapping[str, Any]
    labels: Sequence[Any]
    weights: Sequence[float] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, index: Iterable[int]) -> dict[str, list[Any]]:
        index = list(index)
        return {name: [column[i] for i in index] for name, column in self.columns.items()}

    @property
    def schema(self) -> bb.Schema:
        """Settled by the values that do not lie far out, as a longer table's quartiles would settle it."""
        near = {name: [None if is_far(x) else x for x in column] for name, column in self.columns.items()}
        return bb.Schema.infer({**near, "y": self.labels}, target="y", features=declared(self.families))

    def count(self, schema: bb.Schema, index: Iterable[int]) -> bb.Tally:
        index = list(index)
        weights = None if self.weights is None else [self.weights[i] for i in index]
        return bb.count(self.rows(index), [self.labels[i] for i in index], schema=schema, weights=weights)

    def validate(self, **settings: Any) -> CrossValidation:
        settings = {"threads": 1, "schema": self.schema, **settings}
        return bb.cross_validate(self.rows(range(len(self))), self.labels, weights=self.weights, **settings)

    @property
    def known(self) -> set[Any]:
        """The classes of which some row counts: there are no others."""
        return {self.labels[i] for i in self.weighed(range(len(self)))}

    def labelled(self, index: Iterable[int]) -> list[int]:
        known = self.known
        return [i for i in index if self.labels[i] in known]

    def weighed(self, index: Iterable[int]) -> list[int]:
        """The rows that count."""
        weights = [1.0] * len(self) if self.weights is None else self.weights
        return [i for i in index if self.labels[i] is not None and weights[i] > 0]

    def classes_of(self, index: Iterable[int]) -> set[Any]:
        return {self.labels[i] for i in self.weighed(index)}

    @property
    def only_whole_numbers(self) -> bool:
        """Whether all sums are whole numbers, so that no order of adding them up can show."""
        schema, weights = self.schema, self.weights or ()
        parts = any(
            x and x != int(x)
            for feature in by_shape.texts(schema)
            for name in feature.columns
            for x in self.columns[name]
        )
        inexact = parts or any(map(damped, by_shape.texts(schema)))
        return all(w == int(w) for w in weights) and not (
            by_shape.measured(schema) or by_shape.blocks(schema) or inexact
        )


Splits = list[tuple[list[int], list[int]]]


def refitted(data: Data, splits: Splits, **settings: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Classes, rows tested, posteriors, and whether a double has digits enough to tell the posterior, fold by fold."""
    schema = data.count(data.schema, range(len(data))).schema
    classes = sorted(data.known)
    answers, sure, tested = [], [], []
    for train, test in splits:
        model = bb.estimate(data.count(schema, train), **settings)
        rows = data.rows(data.labelled(sorted(test)))
        joint = model.log_joint(rows)
        sure.append(np.abs(np.where(np.isfinite(joint), joint, 0.0)).max(axis=1) < 1e3)
        wide = np.zeros((len(joint), len(classes)))
        wide[:, [classes.index(name) for name in model.classes]] = model.posterior(rows)
        answers.append(wide)
        tested += data.labelled(sorted(test))
    return tuple(classes), np.array(tested), np.concatenate(answers), np.concatenate(sure)


def assert_exact(found: CrossValidation, data: Data, splits: Splits, partition: bool, **settings: Any) -> None:
    """Bit for bit where all sums are whole numbers. Where they are not, a fold's sums were added and taken away again: the
    last digit of an expansion may differ, and 1e-10 of the posterior is more than that can make."""
    classes, tested, expected, sure = refitted(data, splits, **settings)
    numbers = np.repeat(np.arange(len(splits)), [len(data.labelled(test)) for _, test in splits])
    if partition:
        order = np.argsort(tested, kind="stable")
        tested, numbers, expected, sure = tested[order], numbers[order], expected[order], sure[order]
    assert found.classes == classes
    assert found.rows.tolist() == tested.tolist()
    assert found.folds.tolist() == numbers.tolist()
    assert [found.classes[c] for c in found.truth] == [data.labels[i] for i in tested]
    assert not np.isnan(found.posteriors).any()
    np.testing.assert_allclose(found.posteriors.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    if data.only_whole_numbers:
        np.testing.assert_array_equal(found.posteriors, expected)
    else:
        np.testing.assert_allclose(found.posteriors[sure], expected[sure], rtol=0, atol=1e-10)


def of_folds(folds: Sequence[Any], data: Data) -> Splits:
    """The splits of a partition, its folds in order."""
    names = sorted({folds[i] for i in data.labelled(range(len(data)))})
    every = range(len(folds))
    return [([i for i in every if folds[i] != k], [i for i in every if folds[i] == k]) for k in names]


@cache
def tables_of(case: Case) -> st.SearchStrategy[Data]:
    return st.one_of([tables((case,) * width) for width in case.widths])


@cache
def tables(cases: tuple[Case, ...], far: bool = True, most: int = 9) -> st.SearchStrategy[Data]:
    """Rows of these families, a column each; some labels are missing, weights are of every kind."""
    return st.one_of([_tables(cases, far, most, kind) for kind in WEIGHTS])


def _tables(cases: tuple[Case, ...], far: bool, most: int, kind: str) -> st.SearchStrategy[Data]:
    families = {f"x{j}": case.family for j, case in enumerate(cases)}

    def table(rows: list[Pool]) -> Data:
        *columns, labels, weights = map(list, zip(*rows, strict=True))
        return Data(dict(zip(families, columns, strict=True)), families, labels, None if kind == "none" else weights)

    pools = [*(case.values(far) for case in cases), ("no", "yes", "maybe", "no", "yes", None), WEIGHTS[kind]]
    return rows_from(pools, 3, most).map(table)


@st.composite
def choices(draw: st.DrawFn, data: Data, splits: Splits) -> dict[str, Any]:
    """What estimate is told. A probability per class is only given where no class is ever out of sight."""
    priors: list[Any] = [None, "uniform", 1.0, 0.5]
    every = data.classes_of(range(len(data)))
    if all(data.classes_of(train) == every for train, _ in splits):
        share = [i + 1.0 for i in range(len(every))]
        priors += [
            [x / sum(share) for x in share],
            dict(zip(sorted(every), (x / sum(share) for x in share), strict=True)),
        ]
    ((how, alpha, prior, seed),) = draw(rows_from([HOWS, (0.0, 0.3, 1.0, 2.0), tuple(priors), (0, 1, 2, 3)], 1, 1))
    return {"how": how, "alpha": alpha, "class_prior": prior, "seed": seed}


def check_partition(draw: Any, data: Data) -> None:
    """Folds by their numbers or names, whatever rows they have."""
    names = draw(st.sampled_from([(0, 1, 2), (-7, 3, 40), ("a", "b", "ü"), (0.5, 1.5, 2.0)]))
    folds = [name for (name,) in draw(rows_from([names], len(data), len(data)))]
    splits = of_folds(folds, data)
    settings = draw(choices(data, splits))
    with quietly():
        if len(splits) < 2 or not all(data.weighed(train) for train, _ in splits):
            with pytest.raises(bb.BanburyError):
                data.validate(folds=folds, **settings)
            return
        assert_exact(data.validate(folds=folds, **settings), data, splits, True, **settings)


def check_pairs(draw: Any, data: Data) -> None:
    """Splits that are no partition: rows in neither part, rows tested more than once, parts of different sizes."""
    drawn = draw(rows_from([("train", "test", "neither")] * len(data), 1, 4))
    splits = [tuple([i for i, x in enumerate(row) if x == part] for part in ("train", "test")) for row in drawn]
    settings = draw(choices(data, splits))  # type: ignore[arg-type]
    with quietly():
        learnable = all(data.weighed(train) and data.labelled(test) for train, test in splits)
        if not learnable or not any(data.weighed(test) for _, test in splits):
            with pytest.raises(bb.BanburyError):
                data.validate(folds=splits, **settings)
            return
        tested = [i for _, test in splits for i in data.labelled(test)]
        once = len(set(tested)) == len(tested)  # then the result is in the order of the rows
        assert_exact(data.validate(folds=splits, **settings), data, splits, once, **settings)  # type: ignore[arg-type]


@every_case
@law
@given(data=st.data())
def test_a_partition_is_refitting(case: Case, data: st.DataObject) -> None:
    check_partition(data.draw, data.draw(tables_of(case)))


@pytest.mark.slow
@every_case
@law
@given(data=st.data())
def test_any_splits_are_refitting(case: Case, data: st.DataObject) -> None:
    check_pairs(data.draw, data.draw(tables_of(case)))


SIDE_BY_SIDE = [case for case in EVERY.values() if case.features(["x0"]) is not case.family]
some_cases = st.lists(st.sampled_from(SIDE_BY_SIDE), min_size=2, max_size=4).map(tuple)


@given(data=st.data())
def test_mixed_families_are_refitted(data: st.DataObject) -> None:
    check_partition(data.draw, data.draw(tables(data.draw(some_cases), far=False)))


@given(data=st.data())
def test_mixed_families_under_any_splits(data: st.DataObject) -> None:
    check_pairs(data.draw, data.draw(tables(data.draw(some_cases), far=False)))


@pytest.mark.slow
@every_case
@law
@given(data=st.data())
def test_the_rest_of_a_fold_has_no_say(case: Case, data: st.DataObject) -> None:
    """Whatever else is held out, and however it is labelled, a row's answer stays the same: nothing leaks."""
    before = data.draw(tables((case,), far=False))
    n = len(before)
    held_out = data.draw(st.integers(1, n - 1))
    folds = [0] * held_out + [1] * (n - held_out)
    cells = [cell for (cell,) in data.draw(rows_from([case.values(False)], held_out - 1, held_out - 1))]
    classes = sorted({label for label in before.labels if label is not None})
    if before.labels[0] is None or not before.weighed(range(held_out, n)):
        return
    labels = [label for (label,) in data.draw(rows_from([tuple(classes)], held_out - 1, held_out - 1))]
    column = [before.columns["x0"][0], *cells, *before.columns["x0"][held_out:]]
    after = Data(
        {"x0": column}, before.families, [before.labels[0], *labels, *before.labels[held_out:]], before.weights
    )
    settings = {"folds": folds, "schema": before.schema, "how": data.draw(st.sampled_from(HOWS))}
    if not before.weighed(range(held_out)) or not after.weighed(range(held_out)):
        return
    with quietly():
        one, other = before.validate(**settings), after.validate(**settings)
    if one.rows[0] != 0 or other.rows[0] != 0:  # of a class whose rows all weigh nothing: it is not tested
        return
    known = {name: c for c, name in enumerate(other.classes)}
    kept = [c for c, name in enumerate(one.classes) if name in known]
    expected = one.posteriors[0, kept]
    found = other.posteriors[0, [known[one.classes[c]] for c in kept]]
    if before.only_whole_numbers and after.only_whole_numbers:  # the classes that are summed over may differ
        np.testing.assert_allclose(found, expected, rtol=4e-15)
    else:
        # Sums are the same to 1e-12; posteriors of rows far out, where log likelihoods are large, to a little less.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


# What is in one fold only --------------------------------------------------------------------------------------------


def test_a_class_whose_rows_are_all_in_one_fold_is_impossible_there() -> None:
    data = {"x": ["a", "b", "a", "b", "c", "c"]}
    found = bb.cross_validate(data, ["p", "q", "p", "q", "r", "r"], folds=[0, 0, 1, 1, 2, 2], features="categorical")
    assert found.classes == ("p", "q", "r")
    np.testing.assert_array_equal(found.posteriors[4:], [[0.5, 0.5, 0.0]] * 2)
    assert (found.posteriors[:4, 2] > 0).all()
    assert found.per_class.recall[2] == 0.0
    assert np.isfinite(found.log_loss)


@pytest.mark.parametrize(
    "declared, expected",
    [
        # Folds 0 and 1 learn from two rows of p and one of q or the other way round; "c" is unknown to fold 1's model.
        (None, [(1 / 4) * 2, (1 / 3)]),
        (["a", "b", "c"], [(1 / 5) * 2, (1 / 4)]),
    ],
)
def test_a_category_of_one_fold_is_no_value_of_the_others(declared: Any, expected: list[float]) -> None:
    """K is recounted: α / (n + αK), and K is 2 where only a and b are known."""
    data = {"x": ["a", "b", "a", "c"]}
    labels = ["p", "p", "q", "q"]
    found = bb.cross_validate(
        data, labels, folds=[1, 1, 1, 0], features={"x": bb.Categorical(values=declared)}, class_prior=None
    )
    np.testing.assert_allclose(found.posteriors[3], np.array(expected) / sum(expected), rtol=1e-12)


def test_a_word_of_one_fold_is_no_word_of_the_others() -> None:
    """It is skipped, and the vocabulary of the others is one smaller."""
    data = {"t": ["good good", "bad", "good unheard unheard"]}
    found = bb.cross_validate(data, ["p", "n", "p"], folds=[0, 0, 1], features={"t": bb.Text()})
    joint = np.array([0.5 * (0 + 1) / (1 + 2), 0.5 * (2 + 1) / (2 + 2)])  # of "good" alone, of two words
    np.testing.assert_allclose(found.posteriors[2], joint / joint.sum(), rtol=1e-12)


def test_a_number_far_out_in_one_fold_leaves_the_other_bins_alone() -> None:
    near = {"x": [0.25, 0.5, 0.75, 1.0, 0.25, 1.0]}
    far = {"x": [*near["x"], 2.0**30]}
    for family in (bb.Histogram(), bb.KernelDensity()):
        schema = bb.Schema.infer(near, features={"x": family})
        labels = ["a", "b"] * 3
        one = bb.cross_validate(near, labels, folds=[0, 0, 1, 1, 1, 1], schema=schema)
        other = bb.cross_validate(far, [*labels, "a"], folds=[0, 0, 1, 1, 1, 1, 0], schema=schema)
        np.testing.assert_array_equal(one.posteriors[:2], other.posteriors[:2])


def test_bins_that_are_coarsened_are_those_of_all_rows() -> None:
    """More than 4,096 bins are joined; the schema of all rows says how."""
    rng = np.random.default_rng(0)
    n = 9_000
    values = np.where(np.arange(n) % 2 == 0, rng.integers(0, 2**20, n), rng.integers(0, 8, n)).astype(float)
    labels = np.where(rng.random(n) < 0.5, "a", "b").tolist()
    family = bb.Histogram(start=0.0, width=1.0)
    data = Data({"x": values.tolist()}, {"x": family}, labels)
    folds = (np.arange(n) % 2).tolist()
    total = data.count(data.schema, range(n))
    assert total.schema["x"].unit > data.schema["x"].unit
    assert_exact(data.validate(folds=folds), data, of_folds(folds, data), True)


@pytest.mark.parametrize("folds, expected", [([0, 0, 1, 1, 1, 1], 0), ([0, 0, 0, 0, 1, 1], 0)])
def test_a_column_of_text_that_is_missing_throughout_a_fold(folds: list[int], expected: int) -> None:
    data = Data({"t": [None, None, "good", "bad", "good day", "bad day"]}, {"t": bb.Text()}, ["p", "n"] * 3)
    for model in ("multinomial", "presence", "bernoulli", "complement", "log_odds"):
        for how in HOWS:
            data = Data(data.columns, {"t": bb.Text(model=model)}, data.labels)
            with quietly():
                found = data.validate(folds=folds, how=how)
                assert_exact(found, data, of_folds(folds, data), True, how=how)
            np.testing.assert_array_equal(found.posteriors[expected], [0.5, 0.5])


def test_folds_of_one_row() -> None:
    data = mixed_frame(12)
    with quietly():
        assert_exact(data.validate(folds=list(range(12))), data, of_folds(range(12), data), True)
        assert len(data.validate(folds=12).fold_accuracies) == 12


# Folds of every kind -------------------------------------------------------------------------------------------------


def mixed_frame(n: int, seed: int = 0, weights: Sequence[float] | None = None, missing: bool = False) -> Data:
    """A column of every family, and three classes that they tell something of."""
    rng = np.random.default_rng(seed)
    c = rng.permutation(np.arange(n) % 3)
    words = np.array("alpha beta gamma delta epsilon zeta eta theta".split())
    columns = {
        "on": (rng.random(n) < 0.3 + 0.2 * c).tolist(),
        "colour": np.array(["red", "green", "blue"])[(c + (rng.random(n) < 0.4)) % 3].tolist(),
        "size": (rng.normal(size=n) + c).tolist(),
        "seen": rng.poisson(1 + c).tolist(),
        "wide": (rng.integers(-8, 9, n) / 4 + c).tolist(),
        "deep": (rng.integers(-8, 9, n) / 4 - c).tolist(),
        "said": [" ".join(rng.choice(words[k : k + 5], rng.integers(1, 6))) for k in c],
    }
    families = {
        "on": bb.Bernoulli(),
        "colour": bb.Categorical(),
        "size": bb.Gaussian(),
        "seen": bb.Poisson(),
        "wide": bb.Histogram(),
        "deep": bb.KernelDensity(),
        "said": bb.Text(min_count=2),
    }
    labels: list[Any] = np.array(["no", "perhaps", "yes"])[c].tolist()
    if missing:
        labels[n // 2] = labels[n // 3] = None
        columns["said"][1] = columns["colour"][2] = columns["size"][3] = None
    return Data(columns, families, labels, weights)


N = 36
GROUPS = [f"g{i % 9}" for i in range(N)]
SPLITTERS = {
    "KFold": KFold(3),
    "KFold, shuffled": KFold(4, shuffle=True, random_state=1),
    "StratifiedKFold": StratifiedKFold(3),
    "GroupKFold": GroupKFold(3),
    "StratifiedGroupKFold": StratifiedGroupKFold(3),
    "LeaveOneGroupOut": LeaveOneGroupOut(),
    "RepeatedStratifiedKFold": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "TimeSeriesSplit": TimeSeriesSplit(4),
    "TimeSeriesSplit, gap": TimeSeriesSplit(3, gap=2, max_train_size=9),
    "ShuffleSplit": ShuffleSplit(5, test_size=0.3, train_size=0.5, random_state=0),
    "ShuffleSplit, one": ShuffleSplit(1, random_state=0),
    "PredefinedSplit": PredefinedSplit([i % 4 - 1 for i in range(N)]),
}


@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_splitter_of_scikit_learn(name: str, weighted: bool) -> None:
    splitter = SPLITTERS[name]
    data = mixed_frame(N, weights=(np.arange(N) % 4 + 0.5).tolist() if weighted else None)
    groups = GROUPS if "Group" in name else None
    splits = [(a.tolist(), b.tolist()) for a, b in splitter.split(np.zeros((N, 1)), data.labels, groups)]
    tested = [i for _, test in splits for i in test]
    with quietly():
        found = data.validate(folds=splitter, groups=groups)
        assert_exact(found, data, splits, len(set(tested)) == len(tested))
    assert len(found.fold_accuracies) == len(splits)
    times = "2 × 3" if "Repeated" in name else len(splits)
    assert str(found).startswith(
        f"{times}-fold cross-validation of plain naive Bayes: {len(set(tested))} rows, 3 classes\n"
    )


def test_rows_without_a_label_are_neither_learned_from_nor_tested() -> None:
    data = mixed_frame(N, missing=True)
    for splitter in (KFold(3), TimeSeriesSplit(3), ShuffleSplit(2, random_state=0)):
        rows = np.array(data.labelled(range(N)))  # all that a splitter sees
        splits = [(rows[a].tolist(), rows[b].tolist()) for a, b in splitter.split(np.zeros((len(rows), 1)))]
        tested = [i for _, test in splits for i in data.labelled(test)]
        found = data.validate(folds=splitter)
        assert_exact(found, data, splits, len(set(tested)) == len(tested))
    assert data.validate(folds=3).rows.tolist() == data.labelled(range(N))


def test_groups_by_a_columns_name() -> None:
    data = mixed_frame(N)
    frame = pd.DataFrame(data.columns).assign(who=GROUPS, y=data.labels)
    settings = {"features": {**data.families, "who": None}, "folds": GroupKFold(3)}
    by_name = bb.cross_validate(frame, "y", groups="who", **settings)
    by_array = bb.cross_validate(frame, "y", groups=frame["who"], **settings)
    np.testing.assert_array_equal(by_name.posteriors, by_array.posteriors)
    np.testing.assert_array_equal(by_name.folds, by_array.folds)
    apart = pd.Series(by_name.folds).groupby(GROUPS).nunique()
    assert (apart == 1).all()


def test_pairs_of_row_numbers_are_as_their_splitter() -> None:
    data = mixed_frame(N)
    pairs = list(KFold(3).split(np.zeros(N)))
    expected = data.validate(folds=KFold(3)).posteriors
    masks = [(np.isin(np.arange(N), a), np.isin(np.arange(N), b)) for a, b in pairs]
    for folds in (pairs, tuple(pairs), iter(pairs), [[a.tolist(), b.tolist()] for a, b in pairs], masks):
        np.testing.assert_array_equal(data.validate(folds=folds).posteriors, expected)
    shuffled = [(a[::-1], b[::-1]) for a, b in pairs]
    np.testing.assert_array_equal(data.validate(folds=shuffled).posteriors, expected)


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        iter,
        np.array,
        lambda x: np.array(x, dtype=object),
        pd.Series,
        lambda x: pd.Series(x, dtype="category"),
        lambda x: pd.Series(x, index=range(100, 100 + N)),
        pl.Series,
    ],
)
def test_a_fold_for_each_row_however_it_is_given(convert: Any) -> None:
    data = mixed_frame(N)
    numbers = [i % 3 for i in range(N)]
    expected = data.validate(folds=numbers)
    np.testing.assert_array_equal(expected.folds, numbers)
    np.testing.assert_array_equal(data.validate(folds=convert(numbers)).posteriors, expected.posteriors)
    by_name = data.validate(folds=convert([("a", "b", "ü")[k] for k in numbers]))
    np.testing.assert_array_equal(by_name.posteriors, expected.posteriors)
    np.testing.assert_array_equal(by_name.folds, numbers)


labels_strategy = st.lists(st.sampled_from([*"aaabbc", None]), min_size=4, max_size=60)


@given(labels=labels_strategy, folds=st.integers(2, 12), seed=st.integers(0, 2**32))
def test_folds_are_stratified(labels: list[Any], folds: int, seed: int) -> None:
    labelled = [i for i, label in enumerate(labels) if label is not None]
    if folds > len(labelled):
        return
    with quietly():
        found = bb.cross_validate(
            {"x": [float(i % 5) for i in range(len(labels))]}, labels, folds=folds, seed=seed, threads=1
        )
    assert found.rows.tolist() == labelled
    for label in set(labels) - {None}:
        each = np.bincount(found.folds[[labels[i] == label for i in labelled]], minlength=folds)
        assert each.max() - each.min() <= 1
    sizes = np.bincount(found.folds, minlength=folds)
    assert sizes.max() - sizes.min() <= 1


def test_the_seed_settles_the_folds() -> None:
    data = mixed_frame(60)
    one, same, other = (data.validate(folds=5, seed=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one.folds, same.folds)
    np.testing.assert_array_equal(one.posteriors, same.posteriors)
    assert one.folds.tolist() != other.folds.tolist()
    assert_exact(one, data, of_folds(one.folds.tolist(), data), True)
    assert data.validate(folds=np.int64(5), seed=7).folds.tolist() == one.folds.tolist()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_thread_equals_two_bit_for_bit(how: Any, weighted: bool) -> None:
    n = 1_200
    weights = np.random.default_rng(1).random(n).tolist() if weighted else None
    data = mixed_frame(n, weights=weights, missing=True)
    with quietly():
        for folds in (5, TimeSeriesSplit(4), ShuffleSplit(3, random_state=0)):
            one, two = (data.validate(folds=folds, how=how, threads=threads) for threads in (1, 2))
            np.testing.assert_array_equal(one.posteriors, two.posteriors)
            np.testing.assert_array_equal(one.folds, two.folds)


# Data of every kind --------------------------------------------------------------------------------------------------


def records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


FORMS: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "pandas, another index": lambda columns: pd.DataFrame(columns, index=range(50, 50 + N)),
    "polars": pl.DataFrame,
    "polars, lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "arrow": lambda columns: pl.DataFrame(columns).to_arrow(),
    "records": records,
}


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_every_kind(form: str) -> None:
    data = mixed_frame(N)
    columns = {**data.columns, "y": data.labels}
    schema, folds = data.schema, [i % 3 for i in range(N)]
    expected = data.validate(folds=folds)
    found = bb.cross_validate(FORMS[form](columns), "y", schema=schema, folds=folds)
    np.testing.assert_array_equal(found.posteriors, expected.posteriors)
    assert found.classes == expected.classes


@pytest.mark.parametrize("kind", ["list", "iterator", "csv"])
def test_batches_are_one_table(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds run across batches, classes and words turn up late, and some batches have no row of a fold."""
    data = mixed_frame(N)
    frame = pd.DataFrame({**data.columns, "y": data.labels}).sort_values("y", kind="stable", ignore_index=True)
    if kind == "csv":
        frame = frame.drop(columns="on")  # until test_a_file_of_booleans_is_counted_under_its_schema passes
    families = {name: data.families[name] for name in frame.columns[:-1]}
    data = Data(frame[list(families)].to_dict("list"), families, frame["y"].tolist())
    pieces: Any = [frame[a : a + 7] for a in range(0, N, 7)]
    if kind == "iterator":
        pieces = iter(pieces)
    if kind == "csv":
        monkeypatch.setattr(blocks, "BLOCK", 256)
        pieces = tmp_path / "data.csv"
        frame.to_csv(pieces, index=False)
        assert len(list(bb.reading.read(pieces))) > 3
    folds = [0] * 10 + [i % 3 for i in range(N - 10)]
    with quietly():
        found = bb.cross_validate(pieces, "y", schema=data.schema, folds=folds)
        # Numbers are added up batch by batch, which is another order: the last digit of their sums may differ.
        np.testing.assert_allclose(found.posteriors, data.validate(folds=folds).posteriors, rtol=0, atol=1e-12)
    assert found.folds.tolist() == folds
    assert [found.classes[c] for c in found.truth] == data.labels


def test_batches_of_counts_are_one_table_bit_for_bit() -> None:
    data = mixed_frame(N)
    kept = [name for name, family in data.families.items() if by_shape.shape(family) != "moments"]
    data = Data({name: data.columns[name] for name in kept}, {name: data.families[name] for name in kept}, data.labels)
    folds = [i % 3 for i in range(N)]
    pieces = [data.rows(range(a, min(a + 5, N))) for a in range(0, N, 5)]
    found = bb.cross_validate(pieces, data.labels, schema=data.schema, folds=folds)
    np.testing.assert_array_equal(found.posteriors, data.validate(folds=folds).posteriors)


def test_a_list_of_texts() -> None:
    texts = ["good day", "bad night", "good night", "bad day", "so good", "so bad", "good good", "bad"]
    labels = ["p", "n"] * 4
    folds = [0, 0, 1, 1, 2, 2, 0, 1]
    expected = bb.cross_validate({"t": texts}, labels, folds=folds, features={"t": bb.Text()})
    for given_texts in (texts, pd.Series(texts), np.array(texts), tuple(texts)):
        found = bb.cross_validate(given_texts, labels, folds=folds, features=bb.Text())
        np.testing.assert_array_equal(found.posteriors, expected.posteriors)


def test_an_array_of_numbers() -> None:
    rng = np.random.default_rng(0)
    matrix, labels = rng.normal(size=(30, 3)), ["a", "b", "c"] * 10
    folds = rng.integers(0, 4, 30)
    expected = bb.cross_validate({f"x{j}": matrix[:, j] for j in range(3)}, labels, folds=folds)
    for given_array in (matrix, np.asfortranarray(matrix), matrix.tolist()):
        np.testing.assert_array_equal(
            bb.cross_validate(given_array, labels, folds=folds).posteriors, expected.posteriors
        )


@pytest.mark.parametrize(
    "labels, classes",
    [
        ([True, False], (False, True)),
        (np.array([True, False]), (False, True)),
        ([3, -1, 2], (-1, 2, 3)),
        ([0.5, 2.0], (0.5, 2.0)),
        (["a", 1, 2.5], (1, 2.5, "a")),
        ([1, "1"], (1, "1")),
        (pd.Series(["a", "b"], dtype="category"), ("a", "b")),
    ],
)
def test_labels_of_every_kind(labels: Any, classes: tuple[Any, ...]) -> None:
    data = mixed_frame(N)
    repeated = list(islice(cycle(labels), N))
    found = bb.cross_validate(data.columns, repeated, features=dict(data.families), folds=3)
    assert found.classes == classes
    assert set(found.predictions.tolist()) <= set(classes)
    assert [found.classes[c] for c in found.truth] == repeated
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["rows"] == N
    assert repr(classes[0]) in str(found)


def test_very_many_classes() -> None:
    n = 2_400
    labels = [f"class {i % 800}" for i in range(n)]
    data = {"x": [float(i % 800) for i in range(n)], "t": [f"w{i % 800} w{i % 7}" for i in range(n)]}
    found = bb.cross_validate(data, labels, folds=3, features={"x": "gaussian", "t": bb.Text()})
    assert len(found.classes) == 800
    assert found.accuracy.value == 1.0
    shown = str(found)
    assert "… and 780 more classes" in shown
    assert len(shown.splitlines()) < 40


def test_settings_are_those_of_estimate_and_count() -> None:
    data = mixed_frame(N)
    frame = {**data.columns, "y": data.labels, "w": [1.0, 2.0, 0.5] * (N // 3)}
    inferred = bb.cross_validate(frame, "y", folds=3, features={"w": None})
    tally = bb.count(frame, "y", features={"w": None})
    again = bb.cross_validate(data.columns, data.labels, folds=3, schema=tally.schema)
    np.testing.assert_array_equal(inferred.posteriors, again.posteriors)
    blank = {"x": ["a", None, "b", None] * 3}
    skipped, counted = (
        bb.cross_validate(blank, ["p", "q"] * 6, folds=3, missing=missing) for missing in ("skip", "category")
    )
    assert skipped.accuracy.value < counted.accuracy.value == 1.0


def test_nothing_to_learn_from_is_the_class_prior() -> None:
    with pytest.warns(bb.BanburyWarning, match="there is no column to learn from"):
        found = bb.cross_validate({"x": [1.0] * 9}, ["a", "a", "b"] * 3, folds=3, features={"x": None})
    np.testing.assert_allclose(found.posteriors, [[2 / 3, 1 / 3]] * 9, rtol=1e-12)
    assert found.accuracy.value == found.majority == pytest.approx(2 / 3)


# Real data -----------------------------------------------------------------------------------------------------------


def test_messages_against_refitting_and_against_scikit_learn(unpacked: Callable[[str], Path]) -> None:
    """Bit for bit what refitting says; and what scikit-learn's pipeline says, which learns its words from each fold's rows."""
    lines = (unpacked("sms-spam") / "SMSSpamCollection").read_text().splitlines()[:2_000]
    labels, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    folds = [i * 7 % 5 for i in range(len(lines))]
    for model, theirs in (
        ("multinomial", make_pipeline(CountVectorizer(), MultinomialNB())),
        ("complement", None),
        ("presence", make_pipeline(CountVectorizer(binary=True), MultinomialNB())),
        ("bernoulli", make_pipeline(CountVectorizer(), BernoulliNB())),
    ):
        data = Data({"t": texts}, {"t": bb.Text(model=model)}, labels)
        found = data.validate(folds=folds, threads=2)
        assert_exact(found, data, of_folds(folds, data), True)
        if theirs is not None:
            cv = PredefinedSplit(folds)
            expected = cross_val_predict(theirs, texts, labels, cv=cv, method="predict_proba")
            np.testing.assert_allclose(found.posteriors, expected, rtol=0, atol=1e-9)


def test_the_census_against_refitting(adult_train: pd.DataFrame) -> None:
    frame = adult_train[:6_000]
    total = bb.count(frame, "income")
    folds = np.arange(len(frame)) * 7 % 4
    found = bb.cross_validate(frame, "income", folds=folds)
    for k in range(4):
        model = bb.estimate(bb.count(frame[folds != k], "income", schema=total.schema))
        expected = model.posterior(frame[folds == k])
        np.testing.assert_allclose(found.posteriors[folds == k], expected, rtol=0, atol=1e-10)
    assert found.accuracy.value > found.majority


def test_mushrooms_against_refitting(mushroom: pd.DataFrame) -> None:
    """Categories only: bit for bit."""
    total = bb.count(mushroom, "class")
    folds = mushroom["habitat"].to_numpy()
    with quietly():
        found = bb.cross_validate(mushroom, "class", folds=LeaveOneGroupOut(), groups=folds)
        for k in np.unique(folds):
            model = bb.estimate(bb.count(mushroom[folds != k], "class", schema=total.schema))
            np.testing.assert_array_equal(found.posteriors[folds == k], model.posterior(mushroom[folds == k]))


# How good it is ------------------------------------------------------------------------------------------------------


def validated(n_classes: int, weighted: bool, how: Any = "mean") -> tuple[CrossValidation, Any]:
    """A result, and what scikit-learn's functions take."""
    rng = np.random.default_rng(n_classes)
    n = 150
    labels = rng.integers(0, n_classes, n)
    data = {"x": labels + rng.normal(size=n) * 1.5, "c": np.array(list("abcd"))[(labels + rng.integers(0, 3, n)) % 4]}
    weights = rng.choice([0.25, 1.0, 3.0], n) if weighted else None
    names = np.array(["no", "yes", "perhaps", "never"])[labels]
    with quietly():
        found = bb.cross_validate(data, names, folds=6, how=how, weights=weights)
    return found, SimpleNamespace(truth=names, weight=None if weights is None else {"sample_weight": weights})


every_result = pytest.mark.parametrize("n_classes, weighted", [(2, False), (2, True), (4, False), (4, True)])


@every_result
def test_measures_are_those_of_scikit_learn(n_classes: int, weighted: bool) -> None:
    found, given_to = validated(n_classes, weighted)
    more, truth, said = given_to.weight or {}, given_to.truth, found.predictions
    labels = list(found.classes)
    assert labels == sorted(set(truth))
    assert found.log_loss == pytest.approx(metrics.log_loss(truth, found.posteriors, labels=labels, **more), rel=1e-12)
    brier = metrics.brier_score_loss(truth, found.posteriors, labels=labels, **more)
    assert found.brier == pytest.approx(brier, rel=1e-12)
    assert found.macro_f1 == pytest.approx(metrics.f1_score(truth, said, average="macro", **more), rel=1e-12)
    each = metrics.precision_recall_fscore_support(truth, said, labels=labels, zero_division=0.0, **more)
    for mine, theirs in zip(found.per_class, each, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    np.testing.assert_allclose(found.confusion, metrics.confusion_matrix(truth, said, labels=labels, **more))
    if n_classes == 2:
        auc = metrics.roc_auc_score(truth == "yes", found.posteriors[:, 1], **more)
    else:
        auc = metrics.roc_auc_score(truth, found.posteriors, labels=labels, multi_class="ovr", average="macro", **more)
    assert found.auc == pytest.approx(auc, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_area_under_the_curve_counts_every_pair_of_rows(weighted: bool) -> None:
    """Against a loop over all pairs, with equal scores; a class without rows is left out; row order changes no bit."""
    rng = np.random.default_rng(5)
    n = 60
    posteriors = rng.integers(0, 4, (n, 4)) / 12.0
    truth = rng.integers(0, 3, n).astype(np.int32)  # nobody is of the last class
    weights = rng.random(n) if weighted else None
    row_weights = np.ones(n) if weights is None else weights
    areas = []
    for c in range(3):
        wins = pairs = 0.0
        for i in np.flatnonzero(truth == c):
            for j in np.flatnonzero(truth != c):
                pair = row_weights[i] * row_weights[j]
                higher = np.sign(posteriors[i, c] - posteriors[j, c])
                wins += pair * (1.0 + higher) / 2.0
                pairs += pair
        areas.append(wins / pairs)
    found = [
        Evaluation(
            tuple("abcd"), np.arange(n), truth[order], posteriors[order], None if weights is None else weights[order]
        )
        for order in (np.arange(n), rng.permutation(n))
    ]
    assert found[0].auc == pytest.approx(np.mean(areas), rel=1e-12)
    assert found[0].auc == found[1].auc
    assert f"AUC                {found[0].auc:.4f}" in str(found[0])


def test_one_class_has_no_area_under_the_curve() -> None:
    found = Evaluation(("a", "b"), np.arange(3), np.zeros(3, dtype=np.int32), np.full((3, 2), 0.5))
    assert "auc" not in found.to_dict() and "AUC" not in str(found)
    with pytest.raises(bb.BanburyError, match="two tested classes"):
        _ = found.auc


def test_measures_do_not_import_scikit_learn() -> None:
    """Importing its metrics takes seconds, longer than scoring a million rows."""
    code = (
        "import sys, banbury as bb; weather = bb.datasets.play_tennis(); model = bb.estimate(bb.count(weather, target='play'));"
        "bb.evaluate(model, weather).auc; print([name for name in sys.modules if name.startswith('sklearn')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@every_result
def test_accuracy_is_the_mean_over_folds(n_classes: int, weighted: bool) -> None:
    found, given_to = validated(n_classes, weighted)
    weight = np.ones(len(found.rows)) if given_to.weight is None else given_to.weight["sample_weight"]
    each = []
    for k in range(6):
        inside = found.folds == k
        right = (found.predictions == given_to.truth)[inside]
        each.append(metrics.accuracy_score(right, np.ones(len(right), bool), sample_weight=weight[inside]))
    np.testing.assert_allclose(found.fold_accuracies, each, rtol=1e-12)
    assert found.accuracy.value == float(found.accuracy) == pytest.approx(sum(each) / 6, rel=1e-12)
    error = (sum((a - sum(each) / 6) ** 2 for a in each) / 5 / 6) ** 0.5
    assert found.accuracy.error == pytest.approx(error, rel=1e-12)
    assert found.random_guess == 1 / n_classes
    share = [weight[given_to.truth == name].sum() for name in found.classes]
    assert found.majority == pytest.approx(max(share) / sum(share), rel=1e-12)


def slow_calibration_error(posteriors: Any, right: Any, weights: Any) -> float:
    """Fifteen bins of equal width; 1 belongs to the last."""
    total = 0.0
    for b in range(15):
        said = came = 0.0
        for p, hit, w in zip(posteriors, right, weights, strict=True):
            if b <= p * 15 < b + 1 or (b == 14 and p * 15 >= 15):
                said += w * p
                came += w * hit
        total += abs(said - came)
    return total / sum(weights)


@pytest.mark.parametrize("how", ["mean", "mle"])
@every_result
def test_the_calibration_error_is_that_of_a_slow_twin(n_classes: int, weighted: bool, how: str) -> None:
    found, given_to = validated(n_classes, weighted, how)
    weight = np.ones(len(found.rows)) if given_to.weight is None else given_to.weight["sample_weight"]
    right = found.predictions == given_to.truth
    expected = slow_calibration_error(found.posteriors.max(axis=1).tolist(), right.tolist(), weight.tolist())
    assert found.calibration_error == pytest.approx(expected, rel=1e-10)


@every_result
def test_the_result_as_json_and_as_text(n_classes: int, weighted: bool) -> None:
    found, _ = validated(n_classes, weighted)
    told = found.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert (told["rows"], told["folds"]) == (150, 6)
    for name in ("log_loss", "brier", "macro_f1", "calibration_error", "majority", "random_guess"):
        assert told[name] == getattr(found, name)
    assert (told["accuracy"], told["standard_error"]) == tuple(found.accuracy)
    assert told["auc"] == found.auc
    assert [each["class"] for each in told["classes"]] == list(found.classes)
    assert [each["f1"] for each in told["classes"]] == found.per_class.f1.tolist()
    assert told["confusion"] == found.confusion.tolist()
    shown = str(found)
    assert shown == repr(found)
    for line, figure in {
        "accuracy": f"{found.accuracy.value:.4f} ± {found.accuracy.error:.4f}",
        "log loss": f"{found.log_loss:.4f}",
        "Brier score": f"{found.brier:.4f}",
        "macro F1": f"{found.macro_f1:.4f}",
        "calibration error": f"{found.calibration_error:.4f}",
        "random guess": f"{found.random_guess:.4f}",
        "majority": f"{found.majority:.4f}",
    }.items():
        (told_line,) = [each for each in shown.splitlines() if line in each]
        assert f"{figure}" in told_line
    for c, name in enumerate(found.classes):
        (told_line,) = [each for each in shown.splitlines() if each.startswith(f"  {name!r}")]
        precision, recall, f1 = told_line.split()[1:4]
        assert [precision, recall, f1] == [f"{x[c]:.4f}" for x in found.per_class[:3]]


def test_one_row_is_evaluated_without_a_standard_error() -> None:
    weather = bb.datasets.play_tennis()
    model = bb.estimate(bb.count(weather, target="play"))
    for n in (1, 5):
        found = bb.evaluate(model, {name: column[:n] for name, column in weather.items()})
        assert found.accuracy.error is None and found.to_dict()["standard_error"] is None
        assert "nan" not in str(found) and str(found.accuracy) == f"{found.accuracy.value:.4f}"


def test_one_fold_has_no_standard_error() -> None:
    data = mixed_frame(N)
    found = data.validate(folds=ShuffleSplit(1, test_size=0.5, random_state=0))
    assert found.accuracy.error is None
    assert found.to_dict()["standard_error"] is None
    assert "±" not in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_best_of_equals_is_the_first() -> None:
    found = bb.cross_validate({"x": ["a"] * 4}, ["p", "q"] * 2, folds=2, features="categorical")
    np.testing.assert_array_equal(found.posteriors, [[0.5, 0.5]] * 4)
    assert found.predictions.tolist() == ["p"] * 4


# What cannot be asked ------------------------------------------------------------------------------------------------

GOOD = {"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "c": list("aabbab"), "y": ["p", "q"] * 3}
EACH = np.arange(6)


@pytest.mark.parametrize(
    "settings, error, words",
    [
        ({"folds": 1}, bb.BanburyError, "folds must be a number of folds, at least 2.*Got 1"),
        ({"folds": 0}, bb.BanburyError, "Got 0"),
        ({"folds": -3}, bb.BanburyError, "Got -3"),
        ({"folds": 2.5}, bb.BanburyError, "Got 2.5"),
        ({"folds": True}, bb.BanburyError, "Got True"),
        ({"folds": np.True_}, bb.BanburyError, "True"),
        ({"folds": None}, bb.BanburyError, "Got None"),
        ({"folds": "ten"}, bb.BanburyError, "Got 'ten'"),
        ({"folds": 7}, bb.BanburyError, "number of labelled rows, 6. Got 7"),
        ({"folds": 10**6}, bb.BanburyError, "10,000 at most"),
        ({"folds": [0, 1]}, bb.BanburyError, "6 rows but 2 folds"),
        ({"folds": []}, bb.BanburyError, "6 rows but 0 folds"),
        ({"folds": [0.0, 1.0, np.nan, 0.0, 1.0, 0.0]}, bb.BanburyError, "NaN"),
        ({"folds": ["a", "b", None, "a", "b", "a"]}, bb.BanburyError, "a fold for each row"),
        ({"folds": [3] * 6}, bb.BanburyError, "at least two folds"),
        ({"folds": [([], [1])]}, bb.BanburyError, "rows both for training and for testing"),
        ({"folds": [([1], [])]}, bb.BanburyError, "rows both for training and for testing"),
        ({"folds": [([1, 2], [6])]}, bb.BanburyError, "row numbers from 0 to 5"),
        ({"folds": [([1, 2], [-1])]}, bb.BanburyError, "row numbers from 0 to 5"),
        ({"folds": [([1, 1, 2], [3])]}, bb.BanburyError, "a row twice"),
        ({"folds": SimpleNamespace(split=lambda *_: iter([]))}, bb.BanburyError, "no splits"),
        (
            {"folds": SimpleNamespace(split=lambda *_: [(EACH, EACH[:0])])},
            bb.BanburyError,
            "both for training and for testing",
        ),
        ({"folds": SimpleNamespace(split=lambda *_: [(EACH, EACH + 1)])}, bb.BanburyError, "row numbers"),
        ({"folds": KFold(9)}, ValueError, "n_splits=9 greater than the number of samples"),
        ({"folds": GroupKFold(2)}, ValueError, "groups"),
        ({"folds": GroupKFold(2), "groups": [1, 2]}, ValueError, "inconsistent numbers of samples"),
        ({"folds": GroupKFold(2), "groups": "nobody"}, bb.BanburyError, "no column 'nobody'"),
        ({"target": None}, bb.BanburyError, "target must be a column's name"),
        ({"target": "z"}, bb.BanburyError, "no column 'z'"),
        ({"target": ["p"]}, bb.BanburyError, "6 rows but 1 labels"),
        ({"target": [None] * 6}, bb.BanburyError, "missing in all"),
        ({"data": {"x": [], "y": []}}, bb.BanburyError, "no rows"),
        ({"data": []}, bb.BanburyError, "empty"),
        ({"weights": [1.0]}, bb.BanburyError, "6 rows but 1 weights"),
        ({"weights": [-1.0] * 6}, bb.BanburyError, "negative"),
        ({"weights": [np.nan] * 6}, bb.BanburyError, "weight"),
        ({"weights": [0.0] * 6}, bb.BanburyError, "nothing to"),
        ({"weights": np.ones((6, 2))}, bb.BanburyError, "one number per row"),
        ({"how": "mode"}, bb.BanburyError, "how must be one of.*'mode'"),
        ({"alpha": -1.0}, bb.BanburyError, "alpha"),
        ({"seed": -1}, bb.BanburyError, "seed"),
        ({"seed": 1.5}, bb.BanburyError, "seed"),
        ({"class_prior": [0.5, 0.4, 0.1]}, bb.BanburyError, "class_prior must be one probability for each of the 2"),
        ({"class_prior": "flat"}, bb.BanburyError, "class_prior"),
        ({"schema": "x"}, bb.BanburyError, "schema must be a Schema"),
        ({"features": {"nobody": "gaussian"}}, bb.BanburyError, "nobody"),
        ({"threads": 0}, bb.BanburyError, "threads"),
    ],
    ids=lambda x: None if isinstance(x, (type, str)) else ", ".join(x),
)
def test_bad_input(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    given_all = {"data": GOOD, "target": "y", "folds": 2, **settings}
    with pytest.raises(error, match=f"(?s){words}"):
        bb.cross_validate(given_all.pop("data"), given_all.pop("target"), **given_all)


def test_more_folds_than_labelled_rows() -> None:
    with pytest.raises(bb.BanburyError, match="labelled rows, 4"):
        bb.cross_validate(GOOD, ["p", None, "q", "p", None, "q"], folds=5)


# What went wrong once -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["multinomial", "presence", "complement", "log_odds"])
def test_a_text_of_weight_zero_is_scored_by_its_words(model: Any) -> None:
    data = Data(
        {"t": ["good", "bad", "good", "so"]}, {"t": bb.Text(model=model)}, ["p", "n", "p", "n"], [1.0, 1.0, 0.0, 1.0]
    )
    folds = [0, 0, 1, 1]
    assert_exact(data.validate(folds=folds), data, of_folds(folds, data), True)


def test_groups_by_name_are_the_same_in_every_batch() -> None:
    data = mixed_frame(N)
    frame = pd.DataFrame(data.columns).assign(who=[f"g{i // 4}" for i in range(N)], y=data.labels)
    settings = {"features": {**data.families, "who": None}, "folds": GroupKFold(6), "groups": "who"}
    whole = bb.cross_validate(frame, "y", **settings)
    found = bb.cross_validate([frame[:12], frame[12:24], frame[24:]], "y", **settings)
    assert found.folds.tolist() == whole.folds.tolist()


def test_the_groups_column_is_no_feature() -> None:
    data = {"c": list("aabb") * 6, "who": [f"g{i // 4}" for i in range(24)], "y": ["p", "q", "q"] * 8}
    found = bb.cross_validate(data, "y", folds=GroupKFold(3), groups="who")
    apart = bb.cross_validate(data, "y", folds=GroupKFold(3), groups="who", features={"who": None})
    np.testing.assert_array_equal(found.posteriors, apart.posteriors)


@pytest.mark.parametrize("folds", [3, [0, 1, 2] * 2])
def test_groups_without_a_splitter_are_refused(folds: Any) -> None:
    with pytest.raises(bb.BanburyError, match="groups"):
        bb.cross_validate(GOOD, "y", folds=folds, groups=[1, 1, 1, 2, 2, 2])


def test_features_beside_a_schema_are_refused() -> None:
    schema = bb.Schema.infer(GOOD, target="y")
    with pytest.raises(bb.BanburyError, match="features"):
        bb.count(GOOD, "y", schema=schema, features={"x": None})
    with pytest.raises(bb.BanburyError, match="features"):
        bb.cross_validate(GOOD, "y", schema=schema, features={"x": None}, folds=2)


@pytest.mark.parametrize("which", ["weights by name", "target from the frame", "target of a schema without one"])
def test_columns_with_a_part_of_their_own_are_no_surprise(which: str) -> None:
    frame = pd.DataFrame(GOOD).assign(w=2.0)
    if which == "weights by name":
        bb.count(frame, "y", weights="w")
        bb.cross_validate(frame, "y", weights="w", folds=2)
    elif which == "target from the frame":
        bb.count(frame, frame["y"])
        bb.cross_validate(frame, frame["y"], folds=2)
    else:
        schema = bb.Schema.infer({"x": GOOD["x"]})
        bb.count(frame[["x", "y"]], "y", schema=schema)
        bb.cross_validate(frame[["x", "y"]], "y", schema=schema, folds=2)


@pytest.mark.parametrize("which", ["no words left", "all impossible"])
def test_warnings_are_given_once_and_name_the_callers_line(which: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if which == "no words left":
            texts = {"t": ["good", "bad", "good", "bad", "good", "bad"]}
            bb.cross_validate(texts, ["p", "q"] * 3, folds=3, features={"t": bb.Text(min_count=99)})
        else:
            data = {"c": list("abab"), "d": list("abba")}
            labels = ["p", "q", "p", "q"]
            bb.cross_validate(data, labels, folds=[0, 0, 1, 1], how="mle", features="categorical")
    assert [warning.filename for warning in told] == [__file__]


def test_a_stratified_splitter_does_not_take_missing_for_a_class() -> None:
    bb.cross_validate(GOOD, ["p", "q", "p", "q", None, "p"], folds=StratifiedKFold(2))


@pytest.mark.parametrize("how_it_is_shown", ["text", "json"])
def test_two_classes_of_which_one_is_tested(how_it_is_shown: str) -> None:
    found = bb.cross_validate(GOOD, ["p", "q", "p", "q", "q", "q"], folds=[([0, 1, 2, 3], [4, 5])])
    if how_it_is_shown == "text":
        assert "nan" not in str(found)
    else:
        json.dumps(found.to_dict(), allow_nan=False)


def test_one_class_only() -> None:
    found = bb.cross_validate({"c": GOOD["c"]}, ["p"] * 6, folds=2)
    assert found.accuracy.value == 1.0
    assert found.confusion.tolist() == [[6]]
    assert str(found)


MISSING_FOLD = {
    "NaN among names": ["a", "b", np.nan, "a", "b", "a"],
    "NaN among objects": np.array([0.0, 1.0, np.nan, 0.0, 1.0, 0.0], dtype=object),
    "NA": pd.Series(["a", "b", pd.NA, "a", "b", "a"]),
    "NaT": pd.to_datetime(pd.Series(["2020", "2021", None, "2020", "2021", "2020"])),
    "masked": np.ma.array([0, 1, 0, 1, 0, 1], mask=[0, 0, 1, 0, 0, 0]),
}


@pytest.mark.parametrize("name", MISSING_FOLD)
def test_a_missing_fold_is_refused(name: str) -> None:
    with pytest.raises(bb.BanburyError, match="folds"):
        bb.cross_validate(GOOD, "y", folds=MISSING_FOLD[name])


NOT_FOLDS = {
    "a number in an array": np.array(3),
    "bytes": b"three",
    "a matrix": np.zeros((6, 2), dtype=int),
    "names of two parts": [("a", i % 2) for i in range(6)],
    "one list": [[0, 1]],
    "a splitter's class": KFold,
    "a split of names": [(["a"], ["b"])],
    "a split of nothing": [(None, None)],
}


@pytest.mark.parametrize("name", NOT_FOLDS)
def test_what_is_no_fold_is_refused_in_words(name: str) -> None:
    with pytest.raises(bb.BanburyError, match="folds"):
        bb.cross_validate(GOOD, "y", folds=NOT_FOLDS[name])


@pytest.mark.parametrize("part", [[0.5, 1.7, 2.0], [True, True, False], [[0, 1], [2, 3]]], ids=str)
def test_row_numbers_that_are_none_are_refused(part: Any) -> None:
    with pytest.raises(bb.BanburyError, match="folds"):
        bb.cross_validate(GOOD, "y", folds=[(part, [4, 5])])


@pytest.mark.parametrize("prior", [[0.2, 0.3, 0.5], {"p": 0.2, "q": 0.3, "r": 0.5}], ids=["list", "mapping"])
def test_a_given_class_prior_where_a_class_is_in_one_fold_only(prior: Any) -> None:
    data = {"x": ["a"] * 6}
    labels = ["p", "q", "p", "q", "r", "r"]
    found = bb.cross_validate(data, labels, folds=[0, 0, 1, 1, 2, 2], class_prior=prior, features="categorical")
    np.testing.assert_allclose(found.posteriors[4:], [[0.4, 0.6, 0.0]] * 2, rtol=1e-12)


def test_a_class_of_weight_zero_is_no_class() -> None:
    weights = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    labels = ["p", "q", "p", "q", "r", "r"]
    found = bb.cross_validate({"x": GOOD["x"]}, labels, folds=2, weights=weights)
    assert found.classes == bb.count({"x": GOOD["x"]}, labels, weights=weights).classes
    assert found.random_guess == 0.5


def test_many_categories_classes_and_folds() -> None:
    n = 30_000
    data = {"c": [f"v{i}" for i in range(n)], "y": [i % 100 for i in range(n)]}
    features = {"c": bb.Categorical()}
    assert bb.count(data, "y", features=features).n_rows == n
    with pytest.raises(bb.BanburyError, match=r"'c' has too many values for 300 folds × 100 classes.*fewer folds"):
        bb.cross_validate(data, "y", features=features, folds=np.arange(n) % 300)


def test_the_log_loss_of_an_impossible_class_is_scikit_learns() -> None:
    found = bb.cross_validate({"x": list("ab") * 2}, ["p", "q", "r", "r"], folds=[0, 0, 1, 1], features="categorical")
    assert found.log_loss == pytest.approx(metrics.log_loss(found.truth, found.posteriors, labels=[0, 1, 2]))


def test_the_brier_score_of_two_classes_is_scikit_learns() -> None:
    found, given_to = validated(2, False)
    assert found.brier == pytest.approx(metrics.brier_score_loss(given_to.truth == "yes", found.posteriors[:, 1]))


def test_one_of_a_kind_is_told_so() -> None:
    found = bb.cross_validate({"x": GOOD["x"]}, ["p", "q", "r"] * 2, folds=[([0, 1, 2], [3])])
    assert str(found).startswith("1-fold cross-validation of plain naive Bayes: 1 row, 3 classes\n")


def test_a_file_of_booleans_is_counted_under_its_schema(tmp_path: Path) -> None:
    frame = pd.DataFrame({"on": [True, False] * 4, "y": ["a", "b"] * 4})
    frame.to_csv(tmp_path / "on.csv", index=False)
    schema = bb.Schema.infer(frame, target="y", features={"on": bb.Bernoulli()})
    assert bb.count(tmp_path / "on.csv", "y", schema=schema) == bb.count(frame, "y", schema=schema)


# Choosing within folds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"alpha": "auto"}, {"alpha": [0.1, 2.0]}, {"features": "choose"}], ids=str)
def test_a_choice_is_made_within_the_rows_that_a_fold_learns_from(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    data = {"n": rng.poisson(2.0 + labels).tolist(), "c": (rng.integers(0, 4, 90) * (labels > 0)).astype(str).tolist()}
    found = bb.cross_validate(data, labels, folds=4, **settings)
    assert "tuned within each fold" in str(found)
    for k in range(4):
        train, test = found.folds != k, found.folds == k
        rows = {name: [x for x, kept in zip(column, train, strict=True) if kept] for name, column in data.items()}
        model = bb.tune(rows, labels[train], **{"alpha": [1.0], **settings}).model
        rows = {name: [x for x, kept in zip(column, test, strict=True) if kept] for name, column in data.items()}
        np.testing.assert_allclose(found.posteriors[test], model.posterior(rows), rtol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"alpha": [0.1, 2.0]}], ids=str)
@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_folds_calibrate_each_other(method: str, settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 400)
    X = np.repeat(rng.normal(size=(400, 1)) + labels[:, None], 4, axis=1)  # one column four times: far too sure
    found = bb.cross_validate(X, labels, folds=4, calibrate=method, features="gaussian", **settings)
    if not settings:
        assert f"of plain naive Bayes, calibrated ({method}): 400 rows" in str(found)
        plain = bb.cross_validate(X, labels, folds=4, features="gaussian")
        for k in range(4):
            here = plain.folds == k
            learned = bb.calibrate(method, np.log(plain.posteriors[~here]), plain.truth[~here])
            expected = learned.apply(np.log(plain.posteriors[here]))
            np.testing.assert_allclose(found.posteriors[here], expected, rtol=1e-6)
        clf = bb.NaiveBayesClassifier("gaussian", calibrate=method)
        same = bb.cross_validate(clf, X, labels, folds=4)
        np.testing.assert_array_equal(same.posteriors, found.posteriors)
    assert found.log_loss < bb.cross_validate(X, labels, folds=4, features="gaussian", **settings).log_loss


def test_what_cannot_be_calibrated_within_folds_is_said() -> None:
    for settings, said in [
        ({"calibrate": "plat"}, "Did you mean 'platt'"),
        ({"calibrate": "platt", "weigh": True}, "omitted for weighed evidence"),
        ({"calibrate": "platt", "folds": "loo"}, "a number of folds when settings are chosen, calibrated or weighed"),
    ]:
        with pytest.raises(bb.BanburyError, match=said):
            bb.cross_validate(GOOD, "y", **settings)


def test_leave_one_out_does_not_choose() -> None:
    with pytest.raises(bb.BanburyError, match="a number of folds when settings are chosen"):
        bb.cross_validate(GOOD, "y", folds="loo", alpha="auto")


# Many rows, many batches ---------------------------------------------------------------------------------------------


def close_by(n: int) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return {"x": y + rng.normal(0, 0.3, n)}, y


def test_a_single_setting_chosen_within_folds_is_that_setting_however_many_rows_there_are() -> None:
    data, y = close_by(20_000)  # more than are copied at a time
    plain = bb.cross_validate(data, target=y, alpha=1.0, folds=3)
    chosen = bb.cross_validate(data, target=y, alpha=[1.0], folds=3)
    np.testing.assert_allclose(chosen.posteriors, plain.posteriors, atol=1e-12)


def test_a_single_setting_chosen_within_folds_is_that_setting_however_rows_are_cut() -> None:
    data, y = close_by(600)
    batches = [{"x": data["x"][a : a + 100], "y": y[a : a + 100]} for a in range(0, 600, 100)]
    folds = np.repeat(np.arange(6), 100)
    plain = bb.cross_validate(data, target=y, folds=folds)
    chosen = bb.cross_validate(iter(batches), target="y", alpha=[1.0], folds=folds)
    np.testing.assert_allclose(chosen.posteriors, plain.posteriors, atol=1e-12)


@pytest.mark.parametrize(
    "folds", [ShuffleSplit(4, test_size=0.2, train_size=0.3, random_state=0), [([1, 2, 3, 4], [6, 7])]]
)
def test_tuning_scores_texts_as_cross_validation_does_when_some_rows_are_not_learned(folds: Any) -> None:
    words = np.random.default_rng(1)
    y = ["s", "h"] * 40
    texts = [f"{'spam' if name == 's' else 'ham'} w{words.integers(30)} w{words.integers(30)}" for name in y]
    found = bb.tune(texts, y, alpha=[0.01, 1.0], folds=folds)
    for i, setting in enumerate(found.settings):
        expected = bb.cross_validate(texts, y, folds=folds, alpha=setting["alpha"])
        np.testing.assert_allclose(found.scores[i], expected.log_loss, rtol=1e-12)


# Odd input -----------------------------------------------------------------------------------------------------------

NUMBERS = np.arange(12.0).reshape(-1, 1)
LETTERS = list("ab") * 6


class Yields:
    """A splitter of whatever it was given."""

    def __init__(self, *splits: Any) -> None:
        self.splits = splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        return iter(self.splits)


@pytest.mark.parametrize(
    "split",
    [([True, False], [0]), (1, 2, 3), 5, None, ([0, 1], [[1], [2, 3]]), (0, 1), ([0.5], [1])],
)
def test_a_splitter_of_nonsense_is_refused(split: Any) -> None:
    with pytest.raises(errors.BadSetting, match="folds"):
        bb.cross_validate(NUMBERS, LETTERS, folds=Yields(split))


@pytest.mark.parametrize("groups", [[1, None] * 6, [{}] * 12, 5, True, [[1]] * 12, [1, "b"] * 6, [np.nan] * 12])
def test_groups_of_nonsense_are_refused(groups: Any) -> None:
    with pytest.raises(errors.BanburyError, match=r"groups|no column .5."):
        bb.cross_validate(NUMBERS, LETTERS, folds=GroupKFold(2), groups=groups)


def test_a_split_that_tests_what_it_learned_is_told() -> None:
    with pytest.warns(errors.BanburyWarning, match="also learns from"):
        bb.cross_validate(NUMBERS, LETTERS, folds=[(range(12), range(12))])


def test_tests_of_no_weight_are_refused() -> None:
    given: dict[str, Any] = {"folds": [([0, 1, 2, 3], [4, 5])], "weights": [1, 1, 1, 1, 0, 0] + [1] * 6}
    with pytest.raises(errors.EmptyData, match="weight of zero"):
        bb.cross_validate(NUMBERS, LETTERS, **given)
    with pytest.raises(errors.EmptyData, match="weight of zero"):
        bb.tune(NUMBERS, LETTERS, alpha=[1.0, 2.0], **given)


def test_a_continuous_target_is_refused() -> None:
    target = np.random.default_rng(0).normal(size=400)
    for run in (bb.cross_validate, bb.tune):
        with pytest.raises(errors.BadValue, match="continuous"):
            run({"x": np.arange(400.0)}, target=target)


@pytest.mark.parametrize("alpha", [None, 1j, 10**400, -1.0, "1.0"])
def test_alpha_of_nonsense_is_refused_when_one_row_is_left_out(alpha: Any) -> None:
    with pytest.raises(errors.BadSetting):
        bb.cross_validate(NUMBERS, LETTERS, folds="loo", alpha=alpha)


@pytest.mark.parametrize("keyword, meant", [("cv", "folds"), ("sample_weight", "weights"), ("delimeter", "delimiter")])
def test_a_misspelt_keyword_is_named(keyword: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"unknown keyword '{keyword}'. Did you mean '{meant}'"):
        bb.cross_validate(NUMBERS, LETTERS, **{keyword: 5})


def test_folds_are_numbers_or_names() -> None:
    with pytest.raises(errors.BadSetting, match="numbers and names"):
        bb.cross_validate(NUMBERS, LETTERS, folds=[1, "1", "2", 2] * 3)


def test_a_prior_that_a_fold_cannot_keep_is_refused() -> None:
    folds = [0] * 6 + [1] * 6
    labels = list("aaabab") + ["a"] * 6  # fold 1 learns from both classes, fold 0 from "a" alone
    assert np.isfinite(bb.cross_validate(NUMBERS, labels, folds=folds, class_prior=[0.7, 0.3]).log_loss)
    for wrong in ([0.7, 0.7], {"a": 0.0, "b": 1.0}):
        with pytest.raises(errors.BadSetting, match="class_prior"):
            bb.cross_validate(NUMBERS, labels, folds=folds, class_prior=wrong)


def test_repeats_are_told_as_such() -> None:
    found = bb.cross_validate(NUMBERS, LETTERS, folds=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))
    assert str(found).startswith("2 × 3-fold cross-validation of plain naive Bayes: 12 rows")
    assert str(bb.cross_validate(NUMBERS, LETTERS, folds=[(range(8), range(8, 12))]).accuracy).count("±") == 0
    assert "  weight  " in str(bb.cross_validate(NUMBERS, LETTERS, folds=3, weights=np.full(12, 0.5)))


def test_rows_none_of_whose_labels_is_a_class_of_the_model_are_told_with_what_to_do(recwarn):
    model = bb.estimate(bb.count({"x": list("aabb"), "y": ["<=50K", "<=50K", ">50K", ">50K"]}, target="y"))
    found = bb.evaluate(model, {"x": list("ab"), "y": ["<=50K.", ">50K."]})
    [warning] = recwarn
    assert "the labels are '<=50K.', '>50K.', but the model's classes are '<=50K', '>50K'" in str(warning.message)
    assert "every predicted class is wrong. Did you mean '<=50K'? Spell them as the model does" in str(warning.message)
    assert found.accuracy.value == 0 and found.notes[0].startswith("none of these labels is a class of the model")
    assert bb.evaluate(model, {"x": list("ab"), "y": ["<=50K", "new"]}).notes == ("the model does not know 'new'",)
    assert len(recwarn) == 1
