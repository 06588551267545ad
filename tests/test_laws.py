"""The laws, for every family. A new family joins CASES, once, and meets them all."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banbury as bb
import by_shape
import naive
from banbury.families import FAMILIES, Family
from banbury.families.family import HOWS
from banbury.files import to_bytes
from banbury.sums import Moments, to_python_integers
from pools import (
    AMOUNTS,
    ANYWHERE,
    BOOLEANS,
    FAR,
    NEW_TEXTS,
    NEW_WORDS,
    NOTHING,
    PARTS,
    POSITIVE,
    QUARTERS,
    SMALL,
    SMALLER,
    TENTHS,
    TEXTS,
    TIMES,
    VOCABULARY,
    WEIGHTS,
    WORDS,
    Pool,
    choices,
    mixed,
    rows_from,
)

# Drawing tables ------------------------------------------------------------------------------------------------------

# As many examples as the profile says, shared out among the families.
law = settings(max_examples=max(10, settings.default.max_examples // 6))


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """A family with some settings, and values it can count."""

    family: Family
    cells: Pool
    strangers: Pool  # values met only when predicting
    far: bool = False  # whether values may lie far out
    marks: tuple[Any, ...] = ()  # of pytest
    block: bool = False  # whether all columns are counted together

    def __repr__(self) -> str:
        return str(self.family)

    def values(self, far: bool = True) -> Pool:
        """Cells, some of them missing, some far out."""
        return (
            mixed((2, self.cells), (1, FAR), (1, NOTHING)) if self.far and far else mixed((1, self.cells), (1, NOTHING))
        )

    @property
    def widths(self) -> tuple[int, ...]:
        """How many columns are worth trying: a tree of two has one edge at most."""
        return (1, 2, 3) if self.family.name == "column_tree" else (1, 2)

    def features(self, names: Sequence[str]) -> Any:
        """Each column by itself, or all in one block; a family that says what its columns are is given as it is."""
        if getattr(self.family, "columns", "auto") != "auto":
            return self.family
        return {tuple(names): self.family} if self.block or self.family.block else dict.fromkeys(names, self.family)


def text(marks: tuple[Any, ...] = (), **settings: Any) -> Case:
    return Case(bb.Text(**settings), TEXTS, NEW_TEXTS, marks=marks)


PRUNED_AWAY = pytest.mark.filterwarnings("ignore:none of the .* words:banbury.BanburyWarning")
LOOSE = pytest.mark.filterwarnings(
    "ignore:(block .* so its covariance has no inverse|no row has all of):banbury.BanburyWarning"
)

CASES = {
    "bernoulli": Case(bb.Bernoulli(), BOOLEANS, BOOLEANS),
    "bernoulli, threshold": Case(bb.Bernoulli(threshold=0.5), TENTHS, ANYWHERE, far=True),
    "bernoulli, yes": Case(bb.Bernoulli(yes="a", alpha=2, beta=0.5), WORDS, NEW_WORDS),
    "categorical": Case(bb.Categorical(), WORDS, NEW_WORDS),
    "categorical, integers": Case(bb.Categorical(alpha=0.5), SMALL, SMALLER),
    "categorical, booleans": Case(bb.Categorical(m=3), BOOLEANS, BOOLEANS),
    "categorical, declared": Case(bb.Categorical(values=["a", "b", "c", "d", "ü"]), WORDS, NEW_WORDS),
    "categorical, missing": Case(bb.Categorical(missing="category"), WORDS, NEW_WORDS),
    "gaussian": Case(bb.Gaussian(), TENTHS, ANYWHERE, far=True),
    "gaussian, shared": Case(bb.Gaussian(variance="shared"), TENTHS, ANYWHERE, far=True),
    "gaussian, prior": Case(bb.Gaussian(prior=bb.NormalInverseGamma(2, 3, 1.5, 4)), TENTHS, ANYWHERE, far=True),
    "gaussian, full": Case(bb.Gaussian(covariance="full"), TENTHS, ANYWHERE, marks=(LOOSE,)),
    "gaussian, tied": Case(bb.Gaussian(covariance="tied"), TENTHS, ANYWHERE, marks=(LOOSE,)),
    "gaussian, shrunk": Case(bb.Gaussian(covariance="shrunk"), TENTHS, ANYWHERE, marks=(LOOSE,)),
    "poisson": Case(bb.Poisson(), tuple(range(21)), (0, 1, 10**12, 2**53)),
    "exponential": Case(bb.Exponential(), AMOUNTS, (0.0, 0.1, 40.0, 1e12, 1e300)),
    "exponential, prior": Case(bb.Exponential(prior_rows=2.5, prior_total=1.5), AMOUNTS, AMOUNTS),
    "gamma": Case(bb.Gamma(), POSITIVE, (1e-300, 0.1, 40.0, 1e12, 1e300)),
    "gamma, prior": Case(bb.Gamma(prior_rows=2.5), POSITIVE, POSITIVE),
    "log-normal": Case(bb.LogNormal(), POSITIVE, (1e-300, 0.1, 40.0, 1e12, 1e300)),
    "log-normal, prior": Case(bb.LogNormal(bb.NormalInverseGamma(2, 3, 0.5, 4)), POSITIVE, POSITIVE),
    "histogram": Case(bb.Histogram(), QUARTERS, ANYWHERE, far=True),
    "histogram, bins": Case(bb.Histogram(bins=5, alpha=0.5), QUARTERS, ANYWHERE, far=True),
    "histogram, mdl": Case(bb.Histogram(bins="mdl"), QUARTERS, ANYWHERE, far=True),
    "histogram, width": Case(bb.Histogram(start=-0.5, width=0.25), QUARTERS, ANYWHERE, far=True),
    "kernel density": Case(bb.KernelDensity(), QUARTERS, ANYWHERE, far=True),
    "kernel density, box": Case(bb.KernelDensity("box", "silverman"), QUARTERS, ANYWHERE, far=True),
    "kernel density, width": Case(
        bb.KernelDensity("triweight", 1.5, start=-0.5, width=0.25), QUARTERS, ANYWHERE, far=True
    ),
    "kernel density, leave-one-out": Case(bb.KernelDensity(bandwidth="leave-one-out"), QUARTERS, ANYWHERE, far=True),
    "quantile tree": Case(bb.QuantileTree(), TENTHS, ANYWHERE, far=True),
    "quantile tree, m": Case(bb.QuantileTree(m=3), QUARTERS, ANYWHERE, far=True),
    "text": text(),
    "text, presence": text(model="presence", tokens="word1", lowercase=False),
    "text, bernoulli": text(model="bernoulli", alpha=0.5),
    "text, complement": text(model="complement", tokens="mail"),
    "text, log-odds": text(model="log_odds", damping="log", length=True),
    "text, transformed": text(damping="log", length=True, model="complement", idf=True, norm=True),
    "text, word pairs": text(ngrams=(1, 2), stop_words=["cd"]),
    "text, characters": text(unit="characters", ngrams=(1, 2)),
    "text, damped": text(damping="log", length=True),
    "text, only some": text(only=["ab", "cd ab", "AB CD", "Σίσυφος"], ngrams=(1, 2), damping="log", length=True),
    "text, idf": text(idf=True),
    "text, pruned": text((PRUNED_AWAY,), min_count=1.5, drop_most_frequent=1, max_words=3),
    "text, shares": text((PRUNED_AWAY,), min_share=0.2, max_share=0.8, model="bernoulli"),
    "text, regular expression": text(tokens=r"(\w\w?)\w*", model="presence"),
    "text, vocabulary": text(vocabulary=["ab", "Σίσυφος", "quince"]),
    "joint": Case(bb.Joint(), WORDS, NEW_WORDS, block=True),
    "joint, integers": Case(bb.Joint(alpha=0.5), SMALL, SMALLER, block=True),
    "block of histograms": Case(bb.Histogram(), QUARTERS, ANYWHERE, far=True, block=True),
    "block of histograms, bins": Case(bb.Histogram(bins=3, alpha=0.5), QUARTERS, ANYWHERE, far=True, block=True),
    "block of histograms, mdl": Case(bb.Histogram(bins="mdl"), QUARTERS, ANYWHERE, far=True, block=True),
    "block of histograms, width": Case(bb.Histogram(start=-0.5, width=2.5, alpha=2), QUARTERS, ANYWHERE, block=True),
    "block of kernels": Case(bb.KernelDensity(), QUARTERS, ANYWHERE, far=True, block=True),
    "block of kernels, box": Case(bb.KernelDensity("box", "silverman"), QUARTERS, ANYWHERE, far=True, block=True),
    "block of kernels, width": Case(
        bb.KernelDensity("triweight", 1.5, start=-0.5, width=0.25), QUARTERS, ANYWHERE, far=True, block=True
    ),
    "block of kernels, leave-one-out": Case(
        bb.KernelDensity(bandwidth="leave-one-out"), QUARTERS, ANYWHERE, far=True, block=True
    ),
    "column tree": Case(bb.ColumnTree(), WORDS, NEW_WORDS),
    "column tree, whole": Case(bb.ColumnTree(level=None), WORDS, NEW_WORDS),
    "column tree, missing": Case(
        bb.ColumnTree(level=None, columns=bb.Categorical(0.5, missing="category")), WORDS, NEW_WORDS
    ),
    "column tree, mdl": Case(bb.ColumnTree(level=None), QUARTERS, ANYWHERE, far=True),
    "column tree, bins": Case(bb.ColumnTree(level=None, bins=3), SMALL, SMALLER),
    "occurrences": Case(bb.Occurrences(), TIMES, TIMES),
    "occurrences, parts": Case(bb.Occurrences(alpha=0.5), PARTS, PARTS),
    "occurrences, bernoulli": Case(bb.Occurrences("bernoulli", 0.5), PARTS, PARTS),
    "occurrences, complement": Case(bb.Occurrences("complement", norm=True), TIMES, PARTS),
    "occurrences, threshold": Case(bb.Occurrences("complement", 0.2, alpha=2.0), PARTS, TIMES),
}


def parametrized(cases: Mapping[str, Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", [pytest.param(case, id=name, marks=case.marks) for name, case in cases.items()]
    )


every_family = parametrized(CASES)
BAGS = {name: case for name, case in CASES.items() if case.family.name == "text"}
OTHERS = {name: case for name, case in CASES.items() if by_shape.shape(case.family) != "words"}
every_bag, every_other = parametrized(BAGS), parametrized(OTHERS)


def test_every_family_meets_the_laws() -> None:
    assert {case.family.name for case in CASES.values()} == set(FAMILIES)


def is_far(cell: Any) -> bool:
    return isinstance(cell, float) and abs(cell) > 1e6


@dataclass(frozen=True)
class Table:
    """Rows of cells, the last of them the label; and a weight per row, or None."""

    rows: tuple[tuple[Any, ...], ...]
    weights: tuple[float, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"x{j}" for j in range(len(self.rows[0]) - 1))

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, index: Sequence[int]) -> Table:
        weights = None if self.weights is None else tuple(self.weights[i] for i in index)
        return Table(tuple(self.rows[i] for i in index), weights)

    def cut(self, start: int, stop: int) -> Table:
        return self.at(range(len(self))[start:stop])

    def columns(self, labelled: bool = True) -> dict[str, list[Any]]:
        names = (*self.names, "y") if labelled else self.names
        return {name: [row[j] for row in self.rows] for j, name in enumerate(names)}

    def labels(self) -> list[Any]:
        return [row[-1] for row in self.rows]

    def records(self) -> list[dict[str, Any]]:
        return [dict(zip((*self.names, "y"), row, strict=True)) for row in self.rows]

    def schema(self, case: Case) -> bb.Schema:
        """Settled by the values that do not lie far out, as a longer table's quartiles would settle it."""
        near = {name: [None if is_far(cell) else cell for cell in column] for name, column in self.columns().items()}
        return bb.Schema.infer(near, target="y", features=case.features(self.names))

    def count(self, schema: bb.Schema, **more: Any) -> bb.Tally:
        return bb.count(self.columns(), target="y", schema=schema, weights=self.weights, **more)


@cache
def tables(
    case: Case,
    min_size: int = 1,
    max_size: int = 8,
    weights: tuple[str, ...] = tuple(WEIGHTS),
    far: bool = True,
    width: int | None = None,
) -> st.SearchStrategy[Table]:
    """Tables of one column or two, of a tree also three (or ``width``), with weights of these kinds."""
    widths = case.widths if width is None else (width,)
    return st.one_of([_tables(case, min_size, max_size, kind, far, size) for kind in weights for size in widths])


def _tables(case: Case, min_size: int, max_size: int, kind: str, far: bool, width: int) -> st.SearchStrategy[Table]:
    def table(drawn: list[Pool]) -> Table:
        return Table(tuple(r[:-1] for r in drawn), None if kind == "none" else tuple(r[-1] for r in drawn))

    pools = [*[case.values(far)] * width, ("no", "yes", "maybe"), WEIGHTS[kind]]
    return rows_from(pools, min_size, max_size).map(table)


@cache
def several(case: Case, n: int) -> st.SearchStrategy[list[bb.Tally]]:
    """Tallies under one schema, which the first of them settled."""

    def counted(drawn: tuple[Table, ...]) -> list[bb.Tally]:
        schema = drawn[0].schema(case)
        return [table.count(schema) for table in drawn]

    same_width = (st.tuples(*[tables(case, max_size=5, width=width)] * n) for width in case.widths)
    return st.one_of([*same_width]).map(counted)


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warning that every class is impossible."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bb.BanburyWarning)
        yield


def assert_same(a: bb.Tally, b: bb.Tally) -> None:
    assert a.classes == b.classes
    assert by_shape.counts(a).keys == by_shape.counts(b).keys
    assert words_of(a) == words_of(b)
    assert a == b
    assert b == a


def words_of(tally: bb.Tally) -> list[set[str]]:
    """The words that are there; of columns, which always are, those that occur."""
    tables = [
        (words.table, feature.columns)
        for words, feature in zip(by_shape.words(tally), by_shape.texts(tally.schema), strict=True)
    ]
    return [set(table.words(table.in_order() if columns else None)) for table, columns in tables]


def bits(tally: bb.Tally) -> tuple[Any, ...]:
    """Everything a tally holds, to the last bit."""
    words = [{name: array.tobytes() for name, array in words.table.state().items()} for words in by_shape.words(tally)]
    return tally.digest(), words, tally.skipped


def damped(feature: Any) -> bool:
    return feature.family.name == "text" and bool(feature.family.damping or feature.family.length)


# The algebra of tallies ----------------------------------------------------------------------------------------------


@every_family
@law
@given(data=st.data())
def test_adding_commutes(case: Case, data: st.DataObject) -> None:
    a, b = data.draw(several(case, 2))
    assert_same(a + b, b + a)


@every_family
@law
@given(data=st.data())
def test_adding_associates(case: Case, data: st.DataObject) -> None:
    a, b, c = data.draw(several(case, 3))
    assert_same((a + b) + c, a + (b + c))


@every_family
@law
@given(data=st.data())
def test_subtracting_undoes_adding(case: Case, data: st.DataObject) -> None:
    a, b = data.draw(several(case, 2))
    assert_same(a + b - b, a)


@every_family
@law
@given(data=st.data())
def test_a_tally_minus_itself_is_empty(case: Case, data: st.DataObject) -> None:
    (a,) = data.draw(several(case, 1))
    nothing = a - a
    assert nothing.classes == ()
    assert nothing.n_rows == 0
    assert_same(nothing + a, a)


@every_family
@law
@given(data=st.data())
def test_the_whole_is_the_sum_of_its_parts_wherever_it_is_cut(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, min_size=2))
    schema = table.schema(case)
    together = table.count(schema)
    for at in range(1, len(table)):
        parts = table.cut(0, at).count(schema) + table.cut(at, len(table)).count(schema)
        assert_same(parts, together)
        assert bits(parts) == bits(together)
    assert_same(
        sum((table.cut(i, i + 1).count(schema) for i in range(1, len(table))), table.cut(0, 1).count(schema)), together
    )


@every_family
@law
@given(data=st.data())
def test_batches_count_as_the_table(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, min_size=2))
    schema = table.schema(case)
    at = data.draw(st.integers(1, len(table) - 1))
    batches = [table.cut(0, at).columns(), table.cut(at, len(table)).columns()]
    assert_same(bb.count(batches, "y", schema=schema, weights=table.weights), table.count(schema))


@every_family
@law
@given(data=st.data())
def test_the_order_of_rows_has_no_effect(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, min_size=2))
    schema = table.schema(case)
    shuffled = table.at(data.draw(st.permutations(range(len(table))))).count(schema)
    in_order = table.count(schema)
    assert_same(shuffled, in_order)
    assert bits(shuffled) == bits(in_order)


@every_family
@law
@given(data=st.data())
def test_a_weight_of_two_is_the_row_twice(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, max_size=6, weights=("none",)))
    schema = table.schema(case)
    times = data.draw(st.lists(st.integers(1, 3), min_size=len(table), max_size=len(table)))
    weighted = replace(table, weights=tuple(map(float, times)))
    repeated = table.at([i for i, n in enumerate(times) for _ in range(n)])
    assert_same(weighted.count(schema), repeated.count(schema))
    assert_same(table.count(schema) * 2, table.at([*range(len(table))] * 2).count(schema))


@every_family
@law
@given(data=st.data())
def test_a_weight_of_zero_is_no_row_no_key_and_no_class(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, min_size=2, weights=("whole", "mixed")))
    assert table.weights is not None
    kept = [i for i, weight in enumerate(table.weights) if weight > 0]
    schema = table.schema(case)
    tally = table.count(schema)
    if kept:
        assert_same(tally, table.at(kept).count(schema))
    assert bits(tally * 0) == bits(tally - tally)


def pairs_with_column(keys_and_cells: tuple[Any, Any], k: int) -> dict[Any, list[Fraction]]:
    """The exact rows of each two values of which one is in column k, and is not missing."""
    keys, cells = keys_and_cells
    of_column = [at for at, pair in enumerate(keys) if any(j == k and value is not None for j, value in pair)]
    return {keys[at]: exact(cells.take(np.array([at]), 0)) for at in of_column}


@every_family
@law
@given(data=st.data())
def test_a_missing_value_leaves_its_features_sums_alone(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, width=2))
    schema = table.schema(case)
    blank = Table(tuple((None, *row[1:]) for row in table.rows), table.weights)
    alone = table.count(schema)
    more = alone + blank.count(schema)
    if by_shape.measured(schema):
        sums = by_shape.moments(more).take([0], 0)
        assert sums.same(by_shape.moments(alone).take([0], 0))
    elif by_shape.shape(case.family) == "log moments":
        assert more.of(schema.features[0].name).same(alone.of(schema.features[0].name))
    elif by_shape.blocks(schema):
        assert by_shape.products(more)[0].same(by_shape.products(alone)[0])
    elif case.family.name in ("joint", "histogram", "kernel_density") and schema.features[0].columns:
        assert by_shape.counts(more).same(
            by_shape.counts(alone)
        )  # a row that lacks one value of a block is in none of its cells
    elif case.family.name == "column_tree":
        of_column = [pairs_with_column(by_shape.counts(tally).feature(0), 0) for tally in (more, alone)]
        assert of_column[0] == of_column[1]
    elif case.family.block:
        found, before = (pairs_of(by_shape.words(tally)[0].table, tally.classes) for tally in (more, alone))
        for (word, label), cell in found.items():
            assert cell == before[word, label] if word == "#0" else cell >= before[word, label]
    elif by_shape.texts(schema):
        assert by_shape.words(more)[0].same(by_shape.words(alone)[0])
        assert exact(by_shape.words(more)[0].texts) == exact(by_shape.words(alone)[0].texts)
    else:
        keys, cells = by_shape.counts(more).feature(0)
        own, before = by_shape.counts(alone).feature(0)
        assert [key for key in keys if key is not None] == [key for key in own if key is not None]
        index = np.array([k for k, key in enumerate(own) if key is not None], dtype=np.int64)
        assert cells.take(index, 0).same(before.take(index, 0))


@every_family
@law
@given(data=st.data())
def test_two_halves_are_the_whole(case: Case, data: st.DataObject) -> None:
    (a,) = data.draw(several(case, 1))
    for share in (0.5, 0.25):
        part, rest = a * share, a * (1 - share)
        if not part.rounded and not rest.rounded:
            assert_same(part + rest, a)
        assert (part + rest).n_rows == pytest.approx(a.n_rows, rel=1e-15, abs=2e-18)
    assert_same(a * 3, a + a + a)
    assert_same(a * 1, a)


@every_family
@law
@given(data=st.data())
def test_scaling_distributes_over_adding(case: Case, data: st.DataObject) -> None:
    a, b = data.draw(several(case, 2))
    factor = data.draw(st.sampled_from([0.5, 2, 0.1, 3.7]))
    together, apart = (a + b) * factor, a * factor + b * factor
    if not together.rounded and not apart.rounded:
        assert_same(together, apart)
    assert together.n_rows == pytest.approx(apart.n_rows, rel=1e-15, abs=2e-18)
    if isinstance(factor, int):
        assert_same(together, apart)


@every_family
@law
@given(data=st.data())
def test_soft_labels_of_zero_and_one_are_labels(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case))
    schema = table.schema(case)
    classes = ["maybe", "no", "yes"]
    weights = table.weights or [1.0] * len(table)
    matrix = [[w * (row[-1] == c) for c in classes] for row, w in zip(table.rows, weights, strict=True)]
    soft = bb.count(table.columns(labelled=False), weights=matrix, classes=classes, schema=schema)
    assert_same(soft, table.count(schema))


@every_family
@law
@given(data=st.data())
def test_soft_labels_are_rows_of_every_class_with_those_weights(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, weights=("none",), max_size=5))
    schema = table.schema(case)
    share = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    matrix = data.draw(st.lists(st.tuples(share, share), min_size=len(table), max_size=len(table)))
    soft = bb.count(table.columns(labelled=False), weights=matrix, classes=["a", "b"], schema=schema)
    rows = tuple((*row[:-1], label) for label in "ab" for row in table.rows)
    assert_same(soft, Table(rows, tuple(pair[c] for c in (0, 1) for pair in matrix)).count(schema))


@every_family
@law
@given(data=st.data())
def test_a_tally_moves_to_another_schema(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, far=False, width=1))
    here = table.schema(case)
    there = data.draw(tables(case, far=False, width=1)).schema(case)._with_widest_bins(here)
    if case.block and by_shape.shape(case.family) == "bins":
        (a,), (b,) = here.features, there.features
        widest = tuple((start, max(own, other)) for (start, own), (_, other) in zip(a.scales, b.scales, strict=True))
        there = replace(there, features=(b._replace(scales=widest),))
    if [(f.kind, f.kinds) for f in here.features] != [(f.kind, f.kinds) for f in there.features]:
        return  # a column without a value has words for categories
    if case.family.name == "column_tree" and here.features[0].counting_key() != there.features[0].counting_key():
        with pytest.raises(bb.BanburyError, match="different things"):  # rows between two cuts cannot be cut elsewhere
            table.count(here).to(there)
        return
    moved, fresh = table.count(here).to(there), table.count(there)
    assert moved.schema == there
    if not moved.rounded:
        assert_same(moved, fresh)
        return
    assert moved.classes == fresh.classes
    for a, b in [
        (by_shape.moments(moved), by_shape.moments(fresh)),
        *zip(by_shape.products(moved), by_shape.products(fresh), strict=True),
    ]:
        spread = "spread" if isinstance(a, Moments) else "scatter"
        assert a.n.same(b.n)
        np.testing.assert_allclose(a.mean, b.mean, rtol=1e-15, atol=1e-15)
        np.testing.assert_allclose(getattr(a, spread), getattr(b, spread), rtol=1e-12, atol=1e-15)


def test_a_tree_that_says_what_its_columns_are_takes_all_of_them() -> None:
    table = {"a": ["p", "q"], "b": ["r", "s"], "y": ["no", "yes"]}
    with pytest.raises(bb.BanburyError, match="columns must be omitted when the columns are named as a block"):
        bb.count(table, "y", features={("a", "b"): bb.ColumnTree(columns="categorical")})


# Against the naive twin ----------------------------------------------------------------------------------------------


def exact(sums: Any) -> list[Fraction]:
    """Whole numbers of rows, or of parts of them, as exact numbers of rows."""
    return [Fraction(number, 10**36) for number in to_python_integers(sums, 36).ravel()]


def assert_counts(tally: bb.Tally, slow: naive.Tally) -> None:
    assert list(tally.classes) == slow.classes()
    assert exact(tally.rows) == [slow.rows[c] for c in tally.classes]
    for f, feature in enumerate(by_shape.keyed(tally.schema)):
        keys, cells = by_shape.counts(tally).feature(f)
        assert list(keys) == slow.values(feature)
        cell = slow.keys[feature.name]
        assert exact(cells) == [cell.get((k, c), Fraction(0)) for k in keys for c in tally.classes]
    for f, feature in enumerate(by_shape.measured(tally.schema)):
        for c, label in enumerate(tally.classes):
            n, first, second = slow.sums[feature.name].get(label, (Fraction(0),) * 3)
            one = by_shape.moments(tally).take([f], 0).take([c], 1)
            assert exact(one.n) == [n]
            origin, unit = Fraction(feature.origin), Fraction(feature.unit)
            square = (second - 2 * origin * first + n * origin**2) / unit**2
            assert exact(one.sums) == [(first - n * origin) / unit * 2**57, square * 4**57]
    for feature, products in zip(by_shape.blocks(tally.schema), by_shape.products(tally), strict=True):
        assert_products(products, feature, tally.classes, slow)
    for feature, words in zip(by_shape.texts(tally.schema), by_shape.words(tally), strict=True):
        assert_words(words, feature, tally.classes, slow)


def assert_products(products: Any, feature: Any, classes: Sequence[Any], slow: naive.Tally) -> None:
    """Of a block of numbers: rows and sums, and the covariances that follow from them."""
    own, d = slow.sums[feature.name], len(feature.scales)
    assert exact(products.n) == [own[c][0] if c in own else 0 for c in classes]
    for c, label in enumerate(classes):
        n, first, second = own.get(label, (Fraction(0), [Fraction(0)] * d, [[Fraction(0)] * d] * d))
        (o, u) = ([Fraction(number) for number in part] for part in zip(*feature.scales, strict=True))
        wanted = [(a - n * o[i]) / u[i] * 2**57 for i, a in enumerate(first)]
        for i, j in zip(*np.tril_indices(products.n_columns), strict=True):
            about = second[i][j] - o[i] * first[j] - o[j] * first[i] + n * o[i] * o[j]
            wanted.append(about / u[i] / u[j] * 4**57)
        assert exact(products.take([c]).sums) == wanted
        for (i, j), found in np.ndenumerate(products.scatter[c]):
            scatter = (second[i][j] - first[i] * first[j] / n) / u[i] / u[j] if n else 0
            assert found == pytest.approx(float(scatter), rel=1e-15)


def assert_words(words: Any, feature: Any, classes: Sequence[Any], slow: naive.Tally) -> None:
    table, expected, texts = words.table, slow.words[feature.name], slow.texts[feature.name]
    assert exact(words.texts) == [texts.get(c, Fraction(0)) for c in classes]
    found = pairs_of(table, classes)
    assert table.n_words == len({word for word, _ in found})
    assert found == {pair: tuple(map(float, both)) for pair, both in expected.items() if all(both)}
    for which, sums in enumerate((table.occurrences(), table.documents())):
        for c, together in zip(classes, exact(sums), strict=True):
            wanted = sum((each[which] for (_, label), each in expected.items() if label == c), Fraction(0))
            assert together == wanted


def pairs_of(table: Any, classes: Sequence[Any]) -> dict[tuple[str, Any], tuple[float, float]]:
    """(word, class) → occurrences and documents, as the core has them."""
    names, (starts, numbers, *both) = table.words(None), table.pairs(None)
    owners = np.repeat(np.arange(table.n_ids), np.diff(starts)).tolist()
    pairs = [(names[word], classes[c]) for word, c in zip(owners, numbers.tolist(), strict=True)]
    assert len(pairs) == len(set(pairs))
    return dict(zip(pairs, zip(*map(np.ndarray.tolist, both), strict=True), strict=True))


@every_family
@law
@given(data=st.data())
def test_counts_are_those_of_the_naive_twin(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case))
    schema = table.schema(case)
    assert_counts(table.count(schema), naive.count(schema, table.records(), "y", table.weights))


@every_family
@law
@given(data=st.data())
def test_forgetting_is_counting_without_the_rows(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, min_size=2))
    schema = table.schema(case)
    gone = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=1, unique=True))
    left = table.count(schema) - table.at(gone).count(schema)
    assert_counts(left, naive.forget(schema, table.records(), gone, "y", table.weights))


def close(found: float, expected: float, size: float = 1.0) -> bool:
    return found == expected or abs(found - expected) <= 1e-9 * max(1.0, abs(expected), size)


def rounded(slow: naive.Tally, schema: bb.Schema) -> bool:
    """Whether a class lies so far from the origin, and so close together, that a double's mean misses it."""
    for feature in by_shape.measured(schema):
        for sums in slow.sums[feature.name].values():
            n, mean, spread = naive.moments(sums)
            if abs(mean) > 1e6 * feature.unit and spread < n * mean**2 / 10**6:
                return True
    return False


REPEATABLE = choices(tuple(how for how in HOWS if how != "gibbs"), (0.0, 0.5, 1.0, 2.0), (None, "uniform", 1.0, 0.5))


@every_family
@law
@given(data=st.data())
def test_log_joints_are_those_of_the_naive_twin(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case))
    schema = table.schema(case)
    slow = naive.count(schema, table.records(), "y", table.weights)
    if not slow.rows or rounded(slow, schema):
        return
    choice = data.draw(REPEATABLE)
    model = bb.estimate(table.count(schema), **choice)
    rows = Table(tuple(data.draw(tables(case, max_size=4, width=len(table.names))).rows) + table.rows)
    found = model.log_joint(rows.columns())
    for row, joint in zip(rows.records(), found.tolist(), strict=True):
        expected = naive.log_joint(slow, schema, row, *choice.values())
        assert list(model.classes) == list(expected)
        for value, wanted in zip(joint, expected.values(), strict=True):
            size = (
                1e3 * abs(wanted) if by_shape.blocks(schema) else 1.0
            )  # covariances that rows do not settle are inverted all the same
            assert close(value, wanted, size), (row, joint, expected)


@every_bag
def test_weights_that_add_up_in_another_order_leave_no_trace(case: Case) -> None:
    """A word of every text, and words of one class alone: sums of weights miss one another by their rounding, no more."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights = tuple(rng.uniform(0.1, 3.0, size=4).tolist())
        table = Table((("ab", "no"), ("ab", "maybe"), ("ab cd", "yes"), ("ab x", "yes")), weights)
        schema = table.schema(case)
        model = bb.estimate(table.count(schema), how="mle")
        slow = naive.count(schema, table.records(), "y", table.weights)
        for row, joint in zip(table.records(), model.log_joint(table.columns()).tolist(), strict=True):
            for value, wanted in zip(joint, naive.log_joint(slow, schema, row, "mle", 1.0).values(), strict=True):
                assert close(value, wanted), (weights, row)


@every_family
@law
@given(data=st.data())
def test_evidence_is_that_of_the_naive_twin(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, far=False, weights=("none", "whole")))
    schema = table.schema(case)
    slow = naive.count(schema, table.records(), "y", table.weights)
    if len(slow.rows) < 2:
        return
    how = data.draw(st.sampled_from(["mean", "predictive"]))
    model = bb.estimate(table.count(schema), how=how)
    row = table.records()[0]
    told = model.explain(row)
    wanted = naive.evidence(slow, schema, row, told.winner, told.against, how, 1.0)
    for name, decibans in wanted.items():
        found = sum(e.decibans for e in told.evidence if case.family.block or e.feature == name)
        loose = 1e-6 if by_shape.blocks(schema) else 1e-9  # as above
        assert found == pytest.approx(decibans, rel=loose, abs=10 * loose)


# Models --------------------------------------------------------------------------------------------------------------


@every_family
@law
@given(data=st.data())
def test_leaving_a_row_out_by_subtraction_is_refitting_without_it(case: Case, data: st.DataObject) -> None:
    kinds = (
        ("none", "whole") if by_shape.shape(case.family) == "products" else tuple(WEIGHTS)
    )  # of a sixteenth, noise may be left
    table = data.draw(tables(case, min_size=2, weights=kinds))
    schema = table.schema(case)
    together = table.count(schema)
    how = data.draw(st.sampled_from(HOWS))
    for i in range(len(table)):
        left = together - table.at([i]).count(schema)
        refitted = table.at([j for j in range(len(table)) if j != i]).count(schema)
        assert_same(left, refitted)
        if left.classes:
            models = (bb.estimate(each, how=how) for each in (left, refitted))
            tolerance = (
                1e-6 if by_shape.blocks(schema) else 1e-9
            )  # covariances that rows do not settle are inverted all the same
            assert_same_answers(*models, table.at([i]).columns(), tolerance)


def assert_same_answers(a: bb.Model, b: bb.Model, rows: dict[str, list[Any]], tolerance: float = 1e-9) -> None:
    """Where log joints are astronomical, the posterior hangs on digits that no double has."""
    here, there = a.log_joint(rows), b.log_joint(rows)
    np.testing.assert_allclose(here, there, rtol=tolerance, atol=tolerance)
    with quietly():
        near = np.abs(np.where(np.isfinite(there), there, 0.0)).max(axis=1) < 1e3
        np.testing.assert_allclose(a.posterior(rows)[near], b.posterior(rows)[near], rtol=0, atol=tolerance)


@every_family
@law
@given(data=st.data())
def test_partial_fit_over_any_batches_is_fit(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, min_size=2, weights=("none", "whole", "fractional")))
    if table.weights is not None and table.weights[0] == 0:
        table = replace(table, weights=(1.0, *table.weights[1:]))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(table) - 1))) | {0, len(table)})
    parts = [table.cut(a, b) for a, b in pairwise(cuts)]
    clf = bb.NaiveBayesClassifier(features=case.features(table.names))
    for part in [parts[0], *data.draw(st.permutations(parts[1:]))]:
        clf.partial_fit(part.columns(labelled=False), part.labels(), sample_weight=part.weights)
    whole_tally = table.count(clf.tally_.schema)
    assert_same(clf.tally_, whole_tally)
    model, rows = bb.estimate(whole_tally), table.columns(labelled=False)
    near = np.abs(model.log_joint(rows)).max(axis=1) < 1e3
    np.testing.assert_allclose(clf.predict_proba(rows)[near], model.posterior(rows)[near], rtol=0, atol=1e-12)
    if len(parts) == 1:
        fitted = bb.NaiveBayesClassifier(features=case.features(table.names))
        fitted.fit(rows, table.labels(), sample_weight=table.weights)
        np.testing.assert_array_equal(fitted.predict_proba(rows), clf.predict_proba(rows))


CHOICES = choices(HOWS, (0.0, 1.0, 0.3), (None, "uniform", 1.0))


@cache
def strangers(case: Case, width: int, min_size: int = 1) -> st.SearchStrategy[list[Pool]]:
    """Rows of values that were never met, without a label."""
    return rows_from([*[case.strangers] * width, NOTHING], min_size, 3)


@st.composite
def models(draw: st.DrawFn, case: Case, min_classes: int = 1) -> tuple[bb.Model, Table]:
    """A model, and rows to ask it about: its own, others, values it never met."""
    table = draw(tables(case))
    rest = [Table(((None,) * len(table.names) + (label,),)) for label in ("no", "yes")][:min_classes]
    schema = table.schema(case)
    tally = sum((one.count(schema) for one in rest), table.count(schema))
    model = bb.estimate(tally, **draw(CHOICES))
    return model, Table(table.rows + tuple(draw(strangers(case, len(table.names)))))


@every_family
@law
@given(data=st.data())
def test_probabilities_are_probabilities(case: Case, data: st.DataObject) -> None:
    model, rows = data.draw(models(case))
    with quietly():
        posterior = model.posterior(rows.columns())
        classes = model.predict(rows.columns())
    assert not np.isnan(posterior).any()
    assert ((posterior >= 0) & (posterior <= 1)).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    chosen = posterior[np.arange(len(classes)), [model.classes.index(c) for c in classes.tolist()]]
    assert (chosen >= posterior.max(axis=1) * (1 - 1e-15)).all()  # of two that are even but for rounding, either
    joint = model.log_joint(rows.columns())
    assert not np.isnan(joint).any()
    assert not np.isposinf(joint).any()
    if model.choice.how not in ("mle", "map"):
        assert np.isfinite(joint).all()


@every_family
@law
@given(data=st.data())
def test_log_posteriors_are_the_logs_of_posteriors(case: Case, data: st.DataObject) -> None:
    model, rows = data.draw(models(case))
    with quietly():
        posterior, logs = model.posterior(rows.columns()), model.log_posterior(rows.columns())
    np.testing.assert_allclose(np.exp(logs), posterior, rtol=1e-12, atol=1e-300)


@every_family
@law
@given(data=st.data())
def test_one_row_is_answered_as_among_many(case: Case, data: st.DataObject) -> None:
    model, rows = data.draw(models(case))
    together = model.log_joint(rows.columns())
    for i, record in enumerate(rows.records()):
        alone = model.log_joint({name: [record[name]] for name in rows.names})
        np.testing.assert_array_equal(alone[0], together[i])


@every_family
@law
@given(data=st.data())
def test_the_evidence_and_the_prior_are_the_log_odds(case: Case, data: st.DataObject) -> None:
    model, rows = data.draw(models(case, min_classes=2))
    for record in rows.records():
        row = {name: record[name] for name in rows.names}
        joint = model.log_joint({name: [value] for name, value in row.items()})[0]
        with quietly():
            posterior, answer = model.posterior(row)[0], model.predict(row)[0]
        best = model.classes.index(answer)
        assert posterior[best] == posterior.max()
        if np.isfinite(joint.max()):  # far out a joint probability has no digits left for what tells classes apart
            assert joint[best] >= joint.max() - 1e-12 * max(abs(joint.max()), 1.0)
        else:
            assert best == np.argmax(model.log_prior)
        for c, label in enumerate(model.classes):
            if c == best:
                continue
            told = model.explain(row, against=label)
            assert (told.winner, told.against) == (model.classes[best], label) == (answer, label)
            said = told.probability, told.probability_against
            assert said == pytest.approx((posterior[best], posterior[c]), rel=0, abs=1e-12)
            if np.isfinite(joint[[best, c]]).all():
                size = abs(told.prior) + sum(abs(e.decibans) for e in told.evidence) + abs(joint[[best, c]]).sum()
                assert abs(told.log_odds - (joint[best] - joint[c])) <= 1e-12 * max(size, 1.0)
            else:
                assert not math.isnan(told.decibans)


@every_family
@law
@given(data=st.data())
def test_what_is_informative_is_likelier_in_its_class_than_in_the_rest(case: Case, data: st.DataObject) -> None:
    model, _ = data.draw(models(case, min_classes=2))
    found = model.informative(3)
    assert list(found.ratios) == list(model.classes)
    for label, rows in found.ratios.items():
        assert len(rows) <= 3
        for row in rows:
            assert row.label == label
            assert 0 <= row.probability_rest < row.probability <= 1 + 1e-12
            if row.probability_rest < 1e-300:  # too small to divide by
                assert row.ratio > 1
            else:
                assert row.ratio == pytest.approx(row.probability / row.probability_rest)
            if by_shape.shape(case.family) == "keys" and not isinstance(row.value, bool):
                assert row.probability == pytest.approx(model.likelihood(row.feature, row.value)[label])


@every_family
@law
@given(data=st.data())
def test_a_loaded_model_answers_as_the_saved_one(
    case: Case, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    model, rows = data.draw(models(case))
    path = Path(tmp_path_factory.getbasetemp()) / "law.banbury"
    bb.save(model, path)
    loaded = bb.load(path)
    assert isinstance(loaded, bb.Model)
    assert bits(loaded.tally) == bits(model.tally)
    np.testing.assert_array_equal(loaded.log_joint(rows.columns()), model.log_joint(rows.columns()))
    bb.save(model.tally, path)
    tally = bb.load(path)
    assert isinstance(tally, bb.Tally)
    assert bits(tally) == bits(model.tally)
    assert tally.schema == model.schema


SECRET = "Жщюэя"  # its letters are in no other word, and nowhere else in a file
WRITTEN = {
    name: case for name, case in CASES.items() if case.cells is WORDS and not case.family.permanent_keys()
} | BAGS


def traces(content: bytes) -> list[str]:
    """Two letters of the secret that stand side by side, as they are or as JSON has them."""
    pairs = [a + b for word in (SECRET, SECRET.lower()) for a, b in pairwise(word)]
    return [pair for pair in pairs if pair.encode() in content or json.dumps(pair)[1:-1].encode() in content]


@parametrized(WRITTEN)
@law
@given(data=st.data())
def test_nothing_of_what_was_forgotten_is_in_the_file(case: Case, data: st.DataObject) -> None:
    kept = data.draw(tables(case, max_size=4, width=1, weights=("none",)))
    before = data.draw(st.sampled_from(["", "ab ", "x ab "])) if by_shape.shape(case.family) == "words" else ""
    labels = st.sampled_from(["no", f"class {SECRET}"])
    gone = Table(tuple((f"{before}{SECRET}", data.draw(labels)) for _ in range(data.draw(st.integers(1, 3)))))
    both = Table(kept.rows + gone.rows)
    schema = both.schema(case)
    together = both.count(schema)
    unnamed = by_shape.shape(case.family) == "keys" or case.family.only
    assert unnamed or traces(to_bytes(together))
    left = together - gone.count(schema)
    clf = bb.NaiveBayesClassifier(features=case.features(["x0"])).fit(both.columns(labelled=False), both.labels())
    clf.predict(both.columns(labelled=False))
    clf.forget(gone.columns(labelled=False), gone.labels())
    for thing in (left, bb.estimate(left), clf.tally_, clf.model_):
        content = to_bytes(thing)
        assert not traces(content)
        alone = kept.count(thing.schema)
        never = to_bytes(alone if isinstance(thing, bb.Tally) else bb.estimate(alone))
        assert content == never
    assert not traces(pickle.dumps(clf))


@every_family
@law
@given(data=st.data())
def test_a_value_that_was_counted_is_possible(case: Case, data: st.DataObject) -> None:
    """Even under maximum likelihood: in the class it was counted in. A block counts rows that have all its values."""
    table = data.draw(tables(case))
    schema = table.schema(case)
    tally = table.count(schema)
    if not tally.classes:
        return
    joint = bb.estimate(tally, how="mle").log_joint(table.columns())
    for i, label in enumerate(table.labels()):
        counted = by_shape.texts(schema) or not schema.features[0].columns or None not in table.rows[i]
        if counted and (table.weights is None or table.weights[i] > 0):
            assert np.isfinite(joint[i, tally.classes.index(label)])


# Threads -------------------------------------------------------------------------------------------------------------


@every_family
@law
@given(data=st.data())
def test_one_thread_is_eight(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case))
    schema = table.schema(case)
    assert bits(table.count(schema, threads=1)) == bits(table.count(schema, threads=8))


@pytest.fixture(scope="module")
def large() -> tuple[dict[str, Any], np.ndarray]:
    """Two hundred thousand rows with a column for every case but those of text, a twentieth of them missing."""
    rng, n = np.random.default_rng(7), 200_000
    y = rng.integers(0, 3, n)
    numbers = rng.normal(y, 1.0)
    numbers[rng.integers(0, n, 50)] = 1e12
    numbers[rng.random(n) < 0.05] = np.nan
    words = np.array(["a", "b", "c", "ü"])[rng.integers(0, 4, n)].astype(object)
    words[rng.random(n) < 0.05] = None
    columns: dict[str, Any] = {}
    for name, case in OTHERS.items():
        if case.far:
            columns[name] = numbers
        elif case.cells is WORDS:
            columns[name] = words
        elif case.cells in (AMOUNTS, POSITIVE):
            columns[name] = np.abs(numbers) + 0.01
        else:
            columns[name] = rng.integers(0, 2, n) == 1 if "oo" in name or name == "bernoulli" else rng.poisson(y + 1)
    return columns, y


@pytest.mark.parametrize("weights", ["none", "whole", "fractional"])
def test_one_thread_is_eight_over_many_rows(large: tuple[dict[str, Any], np.ndarray], weights: str) -> None:
    columns, y = large
    rng = np.random.default_rng(1)
    w = {"none": None, "whole": rng.integers(0, 4, len(y)), "fractional": rng.random(len(y))}[weights]
    named = {name: case for name, case in OTHERS.items() if case.features([name]) is not case.family}
    features = {name: case.family for name, case in named.items()}
    columns = {name: columns[name] for name in named}
    one, eight = (bb.count(columns, target=y, features=features, weights=w, threads=t) for t in (1, 8))
    assert bits(one) == bits(eight)
    model = bb.estimate(one)
    few = {name: column[:20_000] for name, column in columns.items()}
    answers = [replace(model, threads=t).posterior(few) for t in (1, 8)]
    np.testing.assert_array_equal(*answers)


@pytest.fixture(scope="module")
def library() -> tuple[list[str | None], np.ndarray]:
    """Eight thousand texts of many words, half a megabyte: enough for several threads; some are empty, some missing."""
    rng, n = np.random.default_rng(8), 8_000
    words = [*VOCABULARY, *(f"w{i}" for i in range(3_000))]
    drawn = (rng.zipf(1.3, (n, 16)) - 1) % len(words)
    lengths = rng.integers(0, 17, n)
    texts: list[str | None] = [
        " ".join(words[w] for w in row[:k]) for row, k in zip(drawn.tolist(), lengths, strict=True)
    ]
    for i in rng.integers(0, n, 100).tolist():
        texts[i] = None
    return texts, np.sort(rng.integers(0, 5, n))


@pytest.mark.parametrize("weights", ["none", "whole", "fractional"])
@every_bag
def test_one_thread_is_eight_over_many_texts(
    case: Case, library: tuple[list[str | None], np.ndarray], weights: str
) -> None:
    texts, y = library
    rng = np.random.default_rng(1)
    w = {"none": None, "whole": rng.integers(0, 4, len(y)), "fractional": rng.random(len(y))}[weights]
    features = {"text": case.family}
    counted = [bb.count({"text": texts}, target=y, features=features, weights=w, threads=t) for t in (1, 2, 8)]
    assert bits(counted[0]) == bits(counted[1]) == bits(counted[2])
    model = bb.estimate(counted[0])
    answers = [replace(model, threads=t).log_joint({"text": texts}) for t in (1, 8)]
    np.testing.assert_array_equal(*answers)
    half = {"text": texts[::2]}
    left = [
        counted[0] - counted[0].count(half, y[::2], weights=None if w is None else w[::2], threads=t) for t in (1, 8)
    ]
    assert bits(left[0]) == bits(left[1])
    assert_same(left[0], counted[0].count({"text": texts[1::2]}, y[1::2], weights=None if w is None else w[1::2]))


# Densities -----------------------------------------------------------------------------------------------------------


def some_rows(case: Case) -> list[Any]:
    rng = np.random.default_rng(3)
    if case.far:
        return [*(np.round(rng.normal(0.0, 2.0, 30) * 4) / 4).tolist(), *(rng.integers(20, 60, 10) / 4).tolist()]
    if case.cells is WORDS:
        return [["a", "b", "c", "ü"][i] for i in rng.integers(0, 4, 20)]
    if case.family.name == "poisson":
        return rng.poisson(4.0, 20).tolist()
    if case.cells in (AMOUNTS, POSITIVE):
        return np.round(rng.exponential(3.0, 20) + 0.01, 2).tolist()
    if case.family.name == "bernoulli" or case.cells is BOOLEANS:
        return (rng.random(20) < 0.3).tolist()
    return rng.integers(-2, 3, 20).tolist()


SHELF = {
    "text": ["ab ab cd Σίσυφος", "cd x", "AB üß 中文", "", "Σίσυφος cd cd x", "ab ΣΊΣΥΦΟΣ", "x x ü İ", None],
    "y": ["a", "a", "a", "a", "b", "b", "b", "b"],
}


def log_shares(bag: Any) -> np.ndarray:
    """What one token of each word adds to the score of each class, before it is weighed by idf: words × classes."""
    table, scores = bag.table, bag.scores
    ids = table.in_order() if bag.word_ids is None else bag.word_ids
    there, rows, _ = scores.weights.rows(ids)
    return (rows + scores.base if scores.polya is None else np.log(rows / scores.polya))[there]


@pytest.mark.parametrize("how", HOWS)
@every_bag
def test_probabilities_of_words_sum_to_one(case: Case, how: str) -> None:
    model = bb.estimate(bb.count(SHELF, "y", features={"text": case.family}), how=how)  # type: ignore[arg-type]
    (bag,) = model.parameters
    if case.family.model == "bernoulli":
        # So do those of all texts, of which there are as many as sets of words: each word is there or not.
        words = bag.vocabulary
        texts = [
            " ".join(some) for n in range(words.n_words + 1) for some in combinations(words.table.words(words.ids), n)
        ]
        total = np.exp(model.log_joint({"text": texts}) - model.log_prior).sum(axis=0)
    elif case.family.model == "log_odds":
        if how == "gibbs":
            return  # what all others say is another draw
        rest = bb.estimate(model.tally, features={"text": replace(case.family, model="complement")}, how=how)  # type: ignore[arg-type]
        own = log_shares(bag) / bag.scores.margin - log_shares(rest.parameters[0])
        total = np.exp(own).sum(axis=0)
    elif case.family.norm:
        total = np.abs(log_shares(bag)).sum(axis=0)
    else:
        total = np.exp(log_shares(bag) * (-1 if case.family.model == "complement" else 1)).sum(axis=0)
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["text", "text, presence", "text, regular expression", "text, vocabulary"])
def test_probabilities_of_texts_of_one_word_sum_to_one(name: str, how: str) -> None:
    model = bb.estimate(bb.count(SHELF, "y", features={"text": CASES[name].family}), how=how)  # type: ignore[arg-type]
    words = model.parameters[0].vocabulary
    texts = words.table.words(words.ids)
    total = np.exp(model.log_joint({"text": texts}) - model.log_prior).sum(axis=0)
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("how", HOWS)
@every_other
def test_densities_and_probabilities_sum_to_one(case: Case, how: str) -> None:
    values = some_rows(case)
    tally = bb.count({"x": values}, target=["only"] * len(values), features=case.features(["x"]))
    model = bb.estimate(tally, how=how)  # type: ignore[arg-type]

    def density(points: Any) -> np.ndarray:
        return np.exp(model.log_joint({"x": points})[:, 0])

    if by_shape.shape(case.family) == "keys":
        keys = by_shape.counts(tally).keys[0]
        if case.block:
            keys = [key for (key,) in keys]
        if case.family.name == "column_tree":
            (variable,) = model.parameters[0].variables
            keys = variable.values if variable.cuts is None else (min(variable.cuts) - 1, *variable.cuts)
        if case.family.name == "bernoulli":
            keys = (
                {0.5: (0.0, 1.0), None: (False, True)}[case.family.threshold] if case.family.yes is None else ("a", "b")
            )
        assert density(list(keys)).sum() == pytest.approx(1.0, abs=1e-12)
    elif case.family.name == "poisson":
        assert density(np.arange(2000)).sum() == pytest.approx(1.0, abs=1e-12)
    elif case.cells in (AMOUNTS, POSITIVE):  # x = 4 t / (1 − t) takes all that is above 0 into a finite interval
        t = (np.arange(400_000) + 0.5) / 400_000
        assert (density(4.0 * t / (1.0 - t)) * 4.0 / (1.0 - t) ** 2).mean() == pytest.approx(1.0, abs=1e-4)
    else:
        # x = 2 tan(u) takes the whole line, tails and all, into a finite interval.
        n = 400_000
        u = (np.arange(n) + 0.5) / n * np.pi - np.pi / 2
        total = float((density(2.0 * np.tan(u)) * 2.0 / np.cos(u) ** 2).sum() * np.pi / n)
        assert total == pytest.approx(1.0, abs=1e-4 if by_shape.shape(case.family) == "bins" else 1e-9)
