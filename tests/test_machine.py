"""The machine: tallies learn, forget, merge, scale and are saved, in any pieces and orders, beside a plain list of rows.

After every step the tally is a fresh count of the rows that are left, bit for bit: it is equal, so is its digest, and its model
answers with the same bytes; whenever it is saved, so are the bytes of the file. One machine runs for every family and for
mixtures of them: a thousand steps in ``make test``, sixteen thousand in ``make test-slow``, two million in ``make test-all``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import banbury as bb
import by_shape
from banbury.families import FAMILIES
from banbury.families.family import HOWS
from pools import (
    BOOLEANS,
    NOTHING,
    PARTS,
    QUARTERS,
    SMALL,
    TENTHS,
    TEXTS,
    TIMES,
    WORDS,
    Pool,
    mixed,
    rows_from,
)
from test_laws import CASES, Case, quietly

LABELS = ("maybe", "no", "yes")
steps = settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    report_multiple_bugs=False,  # one failure is enough, and the shortest way to it is found sooner
)
few_steps = settings(steps, max_examples=1, stateful_step_count=12)
many_steps = settings(
    steps,
    max_examples=max(4, settings.default.max_examples // 10),
    stateful_step_count=30 + settings.default.max_examples // 20,
)
how_long = pytest.mark.parametrize(
    "steps", [pytest.param(few_steps, id="few"), pytest.param(many_steps, id="many", marks=pytest.mark.slow)]
)

# Values --------------------------------------------------------------------------------------------------------------

SENTINELS = (0.0, -0.0, -9999.0, 1e8, 2e8, -1e8, 1e18, 5e-324)
NEARER = (0.0, -0.0, -9999.0, 1e8, 1e12, 5e-324)  # as far as bins go
ZERO_INFLATED = (0.0, 0.0, 0.0, 0.1, 2.9, 4.0, 1e8)
TINY = (0.0, 5e-324, -1e-310, 2e-308)
TIMESTAMPS = tuple(1.7e9 + i / 1000 for i in range(1000))
LARGE = (2**53 - 1, 2**53, 2**53 + 1, 2**60 + 3, -(2**62))
AMOUNTS = (0, 1, 3, 20, 10**12, 2**53)
POSITIVE_NUMBERS = (0.3, 2.9, 1e-300, 1e-12, 1e8, 1e18)
SAME = (0.3, 0.3, 0.3, 0.3, 0.7)


def beyond(case: Case) -> Pool:
    """Values of a case that no first row has."""
    more = {"moments": SENTINELS, "products": SENTINELS, "bins": NEARER, "keys": case.cells}
    if case.family.name == "poisson":
        return AMOUNTS
    if case.family.least >= 0:
        return POSITIVE_NUMBERS
    if str(case.family) == str(CASES["categorical, integers"].family):
        return LARGE
    if case.family.name == "joint" or not case.far:
        return SENTINELS if by_shape.shape(case.family) == "products" else case.cells
    return more[by_shape.shape(case.family)]


@dataclass(frozen=True)
class Column:
    """A column: values that may settle a schema, and those that may come too."""

    cells: Pool
    more: Pool = ()

    @property
    def values(self) -> Pool:
        more = [(1, self.more)] if self.more else []
        return mixed((3, self.cells), *more, (1, NOTHING))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Columns by name, and the families that count them."""

    columns: dict[str, Column]
    features: dict[Any, Any]
    marks: tuple[Any, ...] = ()

    @classmethod
    def of(cls, case: Case) -> Mixture:
        """Two columns of one family."""
        names = ("x0", "x1")
        return cls(dict.fromkeys(names, Column(case.cells, beyond(case))), case.features(names), case.marks)


NUMBER, WORD, TEXT = Column(TENTHS, SENTINELS), Column(WORDS), Column(TEXTS)
BIN, OCCURRENCE = Column(QUARTERS, NEARER), Column(TIMES + PARTS)
AMOUNT = Column(CASES["gamma"].cells, POSITIVE_NUMBERS)  # a first row of 1e-300 settles a unit that holds no other
DAMPED = bb.Text(damping="log", length=True, model="complement", idf=True, norm=True)
HARD = {
    "zeros": Column(ZERO_INFLATED),
    "tiny": Column(TINY),
    "time": Column(TIMESTAMPS),
    "large": Column(LARGE),
    "same": Column(SAME, SENTINELS),
}

MIXTURES = {
    "numbers of every kind": Mixture(
        {
            "normal": NUMBER,
            "shared": NUMBER,
            "rate": Column(TIMES, AMOUNTS),
            "bin": BIN,
            "flag": NUMBER,
            "tree": NUMBER,
        },
        {
            "normal": bb.Gaussian(),
            "shared": bb.Gaussian(variance="shared"),
            "rate": bb.Poisson(),
            "bin": bb.Histogram(),
            "flag": bb.Bernoulli(threshold=0.5),
            "tree": bb.QuantileTree(),
        },
    ),
    "numbers that are hard to hold": Mixture(HARD, dict.fromkeys(HARD, bb.Gaussian())),
    "trees of numbers that are hard to hold": Mixture(HARD, dict.fromkeys(HARD, bb.QuantileTree())),
    "a block that is hard to hold": Mixture(
        {"zeros": Column(ZERO_INFLATED), "time": Column(TIMESTAMPS), "same": Column(SAME, SENTINELS)},
        {("zeros", "time", "same"): bb.Gaussian(covariance="full")},
    ),
    "words and numbers": Mixture(
        {"number": NUMBER, "word": WORD, "text": TEXT},
        {"number": bb.Gaussian(), "word": bb.Categorical(missing="category"), "text": bb.Text()},
    ),
    "blocks and columns": Mixture(
        {"a": NUMBER, "b": NUMBER, "c": WORD, "d": Column(SMALL, LARGE), "e": NUMBER},
        {("a", "b"): bb.Gaussian(covariance="tied"), ("c", "d"): bb.Joint(), "e": bb.Gaussian()},
    ),
    "bins": Mixture(
        dict.fromkeys("abcdef", BIN),
        {
            "a": bb.Histogram(bins=5),
            "b": bb.KernelDensity(),
            ("c", "d"): bb.Histogram(bins=3),
            ("e", "f"): bb.KernelDensity("box", "silverman"),
        },
    ),
    "trees of columns": Mixture(
        {"a": WORD, "b": Column(BOOLEANS), "c": BIN, "d": Column(SMALL, LARGE), "e": BIN, "f": WORD, "number": NUMBER},
        {
            ("a", "b", "c", "d"): bb.ColumnTree(level=None),
            ("e", "f"): bb.ColumnTree(bins=3, root="f"),
            "number": bb.Gaussian(),
        },
    ),
    "texts": Mixture(
        {"plain": TEXT, "damped": TEXT},
        {"plain": bb.Text(), "damped": DAMPED},
    ),
    "occurrences and others": Mixture(
        {"p": OCCURRENCE, "q": OCCURRENCE, "r": OCCURRENCE, "number": NUMBER, "text": TEXT},
        {("p", "q", "r"): bb.Occurrences(), "number": bb.Gaussian(), "text": DAMPED},
    ),
    "everything": Mixture(
        {
            **{"a": NUMBER, "b": NUMBER, "normal": NUMBER, "rate": Column(TIMES, AMOUNTS), "bin": BIN, "kernel": BIN},
            "tree": NUMBER,
            **{"wait": AMOUNT, "income": AMOUNT, "size": AMOUNT},
            **{"c": WORD, "d": WORD, "word": WORD, "flag": Column(BOOLEANS)},
            **{"text": TEXT, "p": OCCURRENCE, "q": OCCURRENCE, "r": WORD, "s": BIN},
        },
        {
            ("a", "b"): bb.Gaussian(covariance="full"),
            "normal": bb.Gaussian(),
            "rate": bb.Poisson(),
            "wait": bb.Exponential(),
            "income": bb.Gamma(),
            "size": bb.LogNormal(),
            "bin": bb.Histogram(),
            "kernel": bb.KernelDensity(),
            "tree": bb.QuantileTree(),
            ("c", "d"): bb.Joint(),
            "word": bb.Categorical(),
            "flag": bb.Bernoulli(),
            "text": bb.Text(),
            ("p", "q"): bb.Occurrences(),
            ("r", "s"): bb.ColumnTree(level=None),
        },
    ),
}


def family_names(mixture: Mixture) -> set[str]:
    return {family.name for family in mixture.features.values()}


def test_every_family_is_in_a_mixture() -> None:
    assert set().union(*map(family_names, MIXTURES.values())) == set(FAMILIES)


def parametrized(mixtures: dict[str, Mixture]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mixture", [pytest.param(m, id=name, marks=m.marks) for name, m in mixtures.items()])


# Rows ----------------------------------------------------------------------------------------------------------------

ONE = (Decimal(1),)
WEIGHTS = tuple(map(Decimal, "1 1 1 2 0 0.1 0.7 0.25 0.001 1e-9 1e9 1000000 0.333333333333333".split()))
SHARES = st.sampled_from([("0.1", "0.2", "0.7"), ("0", "1", "0"), ("0.5", "0", "0.5"), ("0.25", "0.25", "0.5")])
FACTORS: tuple[Any, ...] = (1, 2, 3, 5, 10, 7.0, np.int64(2), np.float64(3.0))
MOST_TIMES = 10**6


@dataclass(frozen=True)
class Row:
    """The cells, the label, and a weight so many times. Every weight is a short decimal: a multiple of it is a float too."""

    cells: tuple[Any, ...]
    label: str
    weight: Decimal
    times: int = 1

    def parts(self, repeated: bool) -> list[float]:
        """Weights that come to the row's: itself so many times over, or one number, or two where one has too many digits."""
        if repeated and self.times <= 3:
            return [float(self.weight)] * self.times
        short = round(self.weight, 9)
        return [float(part * self.times) for part in (short, self.weight - short) if part] or [0.0]


@dataclass(frozen=True)
class Way:
    """How rows are counted, which must make no difference."""

    threads: int = 1
    batches: int = 1  # at most
    repeated: bool = False
    backwards: bool = False


WAYS = st.sampled_from([Way(*each) for each in product((1, 2, 3), (1, 2, 3, 4), (False, True), (False, True))])


def pieces_from(cells: Sequence[Pool], weights: Pool) -> st.SearchStrategy[list[Row]]:
    drawn = rows_from([*cells, LABELS, weights], min_size=1, max_size=4)
    return drawn.map(lambda rows: [Row(tuple(cells), label, weight) for *cells, label, weight in rows])


def pieces_of(mixture: Mixture) -> st.SearchStrategy[list[Row]]:
    cells = [column.values for column in mixture.columns.values()]
    return st.one_of(pieces_from(cells, ONE), pieces_from(cells, WEIGHTS))


def first_pieces_of(mixture: Mixture) -> st.SearchStrategy[list[Row]]:
    """Rows that settle a schema: nothing is missing, and nothing lies far out."""
    return pieces_from([column.cells for column in mixture.columns.values()], ONE)


class Source:
    """Tables and tallies of the rows of one mixture, under one schema."""

    def __init__(self, mixture: Mixture) -> None:
        self.mixture, self.names = mixture, tuple(mixture.columns)
        self.pieces, self.first = pieces_of(mixture), first_pieces_of(mixture)
        self.questions: dict[str, list[Any]] = {}

    def table(self, rows: Sequence[Row]) -> dict[str, list[Any]]:
        return {name: [row.cells[j] for row in rows] for j, name in enumerate(self.names)}

    def settle(self, rows: Sequence[Row]) -> bb.Schema:
        """The schema of these rows, which are also asked about ever after."""
        self.questions = self.table([*rows, Row((None,) * len(self.names), "no", Decimal(1))])
        labelled = self.table(rows) | {"y": [row.label for row in rows]}
        return bb.Schema.infer(labelled, target="y", features=self.mixture.features)

    def spelled(self, rows: Sequence[Row], way: Way) -> tuple[list[Row], list[float] | None]:
        """A row for every part of a weight; no weights where all are 1."""
        pairs = [(row, weight) for row in rows for weight in row.parts(way.repeated)]
        pairs = pairs[::-1] if way.backwards else pairs
        weights = [weight for _, weight in pairs]
        return [row for row, _ in pairs], None if set(weights) == {1.0} else weights

    def count(self, schema: bb.Schema, rows: Sequence[Row], way: Way) -> bb.Tally:
        rows, weights = self.spelled(rows, way)
        if not rows:
            nothing = {name: [None] for name in self.names} | {"y": ["no"]}
            return bb.count(nothing, "y", schema=schema, weights=[0.0])
        size = math.ceil(len(rows) / way.batches)
        cuts = [rows[i : i + size] for i in range(0, len(rows), size)]
        batches = [self.table(cut) | {"y": [row.label for row in cut]} for cut in cuts]
        return bb.count(batches, "y", schema=schema, weights=weights, threads=way.threads)

    def answers(self, tally: bb.Tally, how: Any) -> bytes:
        with quietly():
            return bb.estimate(tally, how=how).posterior(self.questions).tobytes()


def assert_is(tally: bb.Tally, fresh: bb.Tally) -> None:
    assert tally.classes == fresh.classes
    assert tally == fresh
    assert fresh == tally
    assert tally.digest() == fresh.digest()
    assert tally.n_rows == fresh.n_rows


def some_of(rows: list[Row], data: st.DataObject) -> tuple[list[Row], list[Row]]:
    """Some rows, or a part of their times; and the rows that are left."""
    picks = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=5, unique=True))
    share = data.draw(st.sampled_from([1, 1, 2, MOST_TIMES]))
    gone = {i: replace(rows[i], times=math.ceil(rows[i].times / share)) for i in picks}
    left = [replace(row, times=row.times - gone[i].times) if i in gone else row for i, row in enumerate(rows)]
    return list(gone.values()), [row for row in left if row.times]


# Tallies -------------------------------------------------------------------------------------------------------------


@dataclass
class Held:
    """A tally, and the rows that it must be of."""

    tally: bb.Tally
    rows: list[Row]


class Tallies(RuleBasedStateMachine):
    """Two tallies under one schema."""

    def __init__(self, mixture: Mixture, folder: Path) -> None:
        super().__init__()
        self.source, self.folder = Source(mixture), folder

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        rows = data.draw(self.source.first)
        self.schema = self.source.settle(rows)
        self.held = [Held(self.count(some, Way()), list(some)) for some in (rows, [])]

    def count(self, rows: Sequence[Row], way: Way) -> bb.Tally:
        return self.source.count(self.schema, rows, way)

    def check(self, held: Held, way: Way, how: Any = "mean") -> bb.Tally:
        fresh = self.count(held.rows, way)
        assert_is(held.tally, fresh)
        if fresh.classes:
            assert self.source.answers(held.tally, how) == self.source.answers(fresh, how)
        return fresh

    @rule(data=st.data(), which=st.integers(0, 1), way=WAYS, how=st.sampled_from(HOWS))
    def learn(self, data: st.DataObject, which: int, way: Way, how: str) -> None:
        held, more = self.held[which], data.draw(self.source.pieces)
        held.tally = held.tally + self.count(more, way)
        held.rows = held.rows + more
        self.check(held, Way(), how)

    @rule(data=st.data(), which=st.integers(0, 1), way=WAYS)
    def learn_soft_labels(self, data: st.DataObject, which: int, way: Way) -> None:
        held, some = self.held[which], data.draw(self.source.pieces)[:2]
        shares = [data.draw(SHARES) for _ in some]
        matrix = [[float(share) for share in each] for each in shares]
        table = self.source.table(some)
        soft = bb.count(table, schema=self.schema, weights=matrix, classes=LABELS, threads=way.threads)
        held.tally = soft + held.tally
        pairs = zip(some, shares, strict=True)
        held.rows = held.rows + [
            Row(row.cells, label, Decimal(share))
            for row, each in pairs
            for label, share in zip(LABELS, each, strict=True)
        ]
        self.check(held, way)

    @precondition(lambda self: any(held.rows for held in self.held))
    @rule(data=st.data(), way=WAYS, how=st.sampled_from(HOWS), one_by_one=st.booleans())
    def forget(self, data: st.DataObject, way: Way, how: str, one_by_one: bool) -> None:
        held = data.draw(st.sampled_from([held for held in self.held if held.rows]))
        gone, held.rows = some_of(held.rows, data)
        for part in [[row] for row in gone] if one_by_one else [gone]:
            held.tally = held.tally - self.count(part, way)
        self.check(held, way, how)

    @precondition(lambda self: self.held[1].rows)
    @rule(way=WAYS, turned=st.booleans())
    def merge(self, way: Way, turned: bool) -> None:
        one, other = reversed(self.held) if turned else self.held
        merged = Held(one.tally + other.tally, one.rows + other.rows)
        self.check(merged, way)
        assert_is(merged.tally - other.tally, one.tally)
        self.held = [merged, Held(other.tally - other.tally, [])]
        self.check(self.held[1], way)

    @rule(data=st.data(), which=st.integers(0, 1), way=WAYS)
    def scale(self, data: st.DataObject, which: int, way: Way) -> None:
        held = self.held[which]
        most = MOST_TIMES // max((row.times for row in held.rows), default=1)
        factor = data.draw(st.sampled_from([factor for factor in FACTORS if factor <= most]))
        held.tally = held.tally * factor
        held.rows = [replace(row, times=row.times * int(factor)) for row in held.rows]
        self.check(held, way)

    @rule(which=st.integers(0, 1))
    def scale_to_nothing(self, which: int) -> None:
        assert_is(0 * self.held[which].tally, self.count([], Way()))

    @rule(which=st.integers(0, 1), way=WAYS, as_model=st.booleans())
    def save_and_load(self, which: int, way: Way, as_model: bool) -> None:
        held = self.held[which]
        tallies: list[Any] = [held.tally, self.check(held, way)]
        if as_model and held.tally.classes:
            with quietly():
                tallies = [bb.estimate(tally) for tally in tallies]
        one, other = self.folder / "one.banbury", self.folder / "other.banbury"
        for thing, path in zip(tallies, (one, other), strict=True):
            bb.save(thing, path)
        same = one.read_bytes() == other.read_bytes()
        assert same, "the files differ"
        with quietly():
            loaded = bb.load(one)
        held.tally = loaded.tally if isinstance(loaded, bb.Model) else loaded
        self.check(held, way)


def run(machine: Callable[[], RuleBasedStateMachine], steps: settings) -> None:
    run_state_machine_as_test(machine, settings=steps)  # type: ignore[no-untyped-call]


@how_long
@parametrized({name: Mixture.of(case) for name, case in CASES.items()} | MIXTURES)
def test_tallies_are_fresh_counts_of_the_rows_that_are_left(mixture: Mixture, steps: settings, tmp_path: Path) -> None:
    run(lambda: Tallies(mixture, tmp_path), steps)


# Classifiers ---------------------------------------------------------------------------------------------------------


class Classifier(RuleBasedStateMachine):
    """An estimator, whose sums grow in their place; asked now and then, so that its model is brought up to date."""

    def __init__(self, mixture: Mixture) -> None:
        super().__init__()
        self.source = Source(mixture)

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.rows = data.draw(self.source.first)
        self.source.settle(self.rows)
        self.clf = bb.NaiveBayesClassifier(features=self.source.mixture.features)
        self.clf.partial_fit(self.source.table(self.rows), [row.label for row in self.rows])

    def change(self, change: Callable[..., Any], rows: list[Row], way: Way) -> None:
        spelled, weights = self.source.spelled(rows, way)
        change(self.source.table(spelled), [row.label for row in spelled], sample_weight=weights)

    @rule(data=st.data(), way=WAYS, asked=st.booleans())
    def learn(self, data: st.DataObject, way: Way, asked: bool) -> None:
        more = data.draw(self.source.pieces)
        self.change(self.clf.partial_fit, more, way)
        self.rows = self.rows + more
        self.check(way, asked)

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), way=WAYS, asked=st.booleans())
    def forget(self, data: st.DataObject, way: Way, asked: bool) -> None:
        gone, left = some_of(self.rows, data)
        if any(row.weight for row in left):
            self.change(self.clf.forget, gone, way)
            self.rows = left
        else:
            with pytest.raises(bb.BanburyError, match="would leave no rows"):
                self.change(self.clf.forget, gone, way)
        self.check(way, asked)

    def check(self, way: Way, asked: bool) -> None:
        """The model first, since it must come up to date by itself."""
        if not asked:
            return
        with quietly():
            answers = self.clf.predict_proba(self.source.questions).tobytes()
        fresh = self.source.count(self.clf.tally_.schema, self.rows, way)
        assert answers == self.source.answers(fresh, "mean")
        assert answers == self.source.answers(self.clf.tally_, "mean")
        assert_is(self.clf.tally_, fresh)


GROWN = {
    name: Mixture.of(CASES[name])
    for name in ("gaussian", "gaussian, full", "text, damped", "joint", "column tree, mdl")
}


@how_long
@parametrized(GROWN | MIXTURES)
def test_classifiers_hold_fresh_counts_of_the_rows_that_are_left(mixture: Mixture, steps: settings) -> None:
    run(lambda: Classifier(mixture), steps)
