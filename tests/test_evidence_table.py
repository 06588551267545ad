"""Evidence tables: the reader of the documentation computes every posterior from them, and what cannot be written is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import banbury as bb
import saved_models
from evidence_reader import posterior

NOT_WRITTEN = {  # kinds of models, and what is named when they are refused
    "predictive": "column 'number' is gaussian",
    "kernel_density": "column 'number' is kernel_density",
    "blocks": "column 'number \\+ whole' is gaussian",
    "labels of mle, calibrated by platt": "Got 'mle'",
    "tree": "column 'tree' is column_tree",
    "tree of mle": "column 'tree' is column_tree",
    "calibrated tree": "column 'tree' is column_tree",
}
KINDS = [kind for kind in saved_models.KINDS if kind not in {"tally", "weighted rows", "network", *NOT_WRITTEN}]
SHAPES = ["3 rows", "30 rows", "one class", "ten classes", "constant columns", "missing values alone", "empty texts"]
SHAPES += ["tiny numbers", "huge numbers", "whole numbers far apart", "odd names", "flags as classes"]


def rows_like(model: Any, table: saved_models.Table) -> list[saved_models.Table]:
    """Rows that were counted, and rows of odd values."""
    columns = model.schema.columns
    if set(columns) <= set(table):
        counted = {name: table[name][:8] for name in columns}
        if columns == ("number",):  # families of one column, some of numbers above zero
            counted = {"number": [abs(x) for x in counted["number"] if x is not None]}
    else:
        matrix = saved_models.as_counts(table)[:8]
        counted = {name: matrix[:, k].tolist() for k, name in enumerate(columns)}
    return [counted, saved_models.rows_for(model)]


def model_of_rare_values() -> tuple[bb.Model, saved_models.Table]:
    """A model of values, numbers and words that few rows have, and rows that have them."""
    numbers = [float(k % 10) for k in range(200)] + [55.0, 77.0]
    table = {
        "x": numbers,
        "ward": ["a", "b"] * 100 + ["rare"] * 2,
        "t": ["flu now", "all well"] * 100 + ["secret flu"] * 2,
    }
    features = {"x": bb.Histogram(), "t": bb.Text()}
    model = bb.estimate(bb.count(table, ["ill", "well"] * 100 + ["ill"] * 2, features=features))
    rows = {
        "x": [55.0, 3.0, None, 30.0],
        "ward": ["rare", "a", None, "c"],
        "t": ["secret", "flu", "well", "secret all"],
    }
    return model, rows


ANY = [1e300, 1e-300, -1e300, 0.0, 1.0, 1e8, 1e8 + 1e-3, 1e150, -1e-300, 1.7e308, None]
POSITIVE = [1e300, 1e-300, 2.0, 1e8, 1e8 + 1e-3, 1e150, 1e-150, 1.7e308, 2.3e-308, None]
EXTREME = {  # a family, where the numbers of the rows are and how far apart, and the numbers that are asked
    "gaussian": (bb.Gaussian(), 0.0, 1.0, ANY),
    "gaussian of large numbers": (bb.Gaussian(), 1e8, 1e-3, ANY),
    "gaussian of one number": (bb.Gaussian(), 5.0, 0.0, ANY),
    "gamma": (bb.Gamma(), 0.0, 1.0, POSITIVE),
    "gamma of large numbers": (bb.Gamma(), 1e8, 1e-3, POSITIVE),
    "gamma of huge numbers": (bb.Gamma(), 0.0, 1e300, POSITIVE),
    "gamma of tiny numbers": (bb.Gamma(), 0.0, 1e-300, POSITIVE),
    "gamma of one number": (bb.Gamma(), 3.0, 0.0, [3.0, 3.0 + 1e-8, 0.03, 6.0, *POSITIVE]),
    "exponential": (bb.Exponential(), 0.0, 1.0, POSITIVE),
    "exponential of huge numbers": (bb.Exponential(), 0.0, 1e300, POSITIVE),
    "poisson of one number": (bb.Poisson(), 123_456.0, 0.0, [123_456.0, 0.0, 1e15, None]),
    "histogram": (bb.Histogram(), 0.0, 1.0, ANY),
}


def extreme(kind: str) -> tuple[bb.Model, saved_models.Table]:
    """A model of numbers, and rows of numbers that are far from all of them beside ordinary ones."""
    family, middle, spread, asked = EXTREME[kind]
    rng = np.random.default_rng(1)
    spreads = np.abs(rng.normal(size=120)) if asked is POSITIVE else rng.normal(size=120)
    table = {"x": (middle + spread * spreads).tolist(), "y": rng.normal(size=120).tolist()}
    model = bb.estimate(bb.count(table, ["a", "b", "c"] * 40, features={"x": family, "y": bb.Gaussian()}))
    return model, {"x": asked, "y": [1e300 if k % 3 == 1 else 0.5 for k in range(len(asked))]}


def disagreement(model: Any, rows: saved_models.Table, tables: Any = None) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = model.posterior(rows)
        return float(np.abs(posterior(tables or model.evidence_table(), rows) - wanted).max(initial=0.0))


@pytest.mark.parametrize("kind", KINDS)
def test_the_reader_computes_every_posterior(kind: str) -> None:
    table, classes = saved_models.draw_table(150, 3), saved_models.draw_classes(150, 3, 3)
    model = saved_models.make(kind, table, classes)
    compared = 0
    for rows in rows_like(model, table):
        try:
            model.posterior(rows)
        except bb.BanburyError:  # a negative number, where none can be
            continue
        compared += 1
        assert disagreement(model, rows) <= 1e-9
    assert compared


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:every class is impossible")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_reader_agrees_on_awkward_rows(shape: str) -> None:
    table, classes = saved_models.shapes()[shape]
    for kind in KINDS:
        try:
            model = saved_models.make(kind, table, classes)
            tables = model.evidence_table()
        except bb.BanburyError:
            continue
        for rows in rows_like(model, table):
            try:
                model.posterior(rows)
            except bb.BanburyError:
                continue
            assert disagreement(model, rows, tables) <= 1e-9, kind


@pytest.mark.filterwarnings("ignore:every class is impossible")
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("method", ["platt", "isotonic", "temperature"])
def test_impossible_classes_stay_impossible_when_calibrated(method: str, n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    kinds = rng.integers(0, n_classes, 300)
    rows = {
        "common": [f"v{k}" for k in (kinds + rng.integers(0, 2, 300)) % (n_classes + 1)],
        "own": [f"w{k if lucky else n_classes}" for k, lucky in zip(kinds, rng.random(300) < 0.3, strict=True)],
        "number": (kinds + rng.normal(size=300)).tolist(),
    }
    model = bb.NaiveBayesClassifier(how="mle", calibrate=method).fit(rows, kinds.tolist()).model_
    odd = {"common": ["v0", "v1", None, "v9"], "own": ["w1", "w0", None, "w0"], "number": [1e15, -1e15, 0.0, 1e9]}
    assert np.isneginf(model.log_joint(rows)).any()
    assert disagreement(model, rows) <= 1e-9
    assert disagreement(model, odd) <= 1e-9


@pytest.mark.parametrize("kind", EXTREME)
def test_numbers_that_are_extreme(kind: str) -> None:
    assert disagreement(*extreme(kind)) <= 1e-9


@pytest.mark.parametrize("kind", NOT_WRITTEN)
def test_what_cannot_be_written_is_refused_by_name(kind: str) -> None:
    table, classes = saved_models.draw_table(150, 3), saved_models.draw_classes(150, 3, 3)
    model = saved_models.make(kind, table, classes)
    with pytest.raises(bb.BanburyError, match=NOT_WRITTEN[kind]):
        model.evidence_table()


def test_tables_have_the_documented_columns() -> None:
    model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    tables = model.evidence_table()
    assert tables.version == 1
    assert tables.answers == "classes"
    assert all(isinstance(table, pa.Table) for table in tables.tables.values())
    assert tables.prior["name"].to_pylist() == ["no", "yes"]
    assert np.exp(tables.prior["nats"].to_numpy()).sum() == pytest.approx(1.0)
    assert tables.columns["name"].to_pylist() == ["outlook", "temperature", "humidity", "wind"]
    assert tables.values.column_names == ["column", "value", "unseen", "cell", "class", "nats"]


SETTINGS: list[dict[str, Any]] = [
    {"ngrams": (1, 2), "stop_words": ["one"]},
    {"unit": "characters", "ngrams": (2, 3)},
    {"tokens": "mail", "lowercase": False},
    {"tokens": r"\w+"},
    {"damping": "log", "length": True},
    {"length": True, "idf": True},
    {"model": "presence"},
    {"model": "bernoulli"},
    {"model": "complement", "norm": True},
    {"model": "log_odds", "damping": "log"},
    {"only": ["good", "bad"], "length": True},
    {"min_count": 3},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_texts_are_read_as_they_were_counted(settings: dict[str, Any]) -> None:
    table, classes = saved_models.draw_table(60, 1), saved_models.draw_classes(60, 1, 3)
    texts = [text.replace("two", "Two@été.org") for text in table["text"]]
    tally = bb.count({"text": texts}, classes, features={"text": bb.Text(**settings)})
    rows = {"text": [*texts[:10], None, "", "never Good bad bad"]}
    assert disagreement(bb.estimate(tally), rows) <= 1e-9
    assert disagreement(bb.weigh(tally, {"text": texts}, classes), rows) <= 1e-9


def test_a_joint_distribution_of_two_columns_is_a_table_of_pairs() -> None:
    table, classes = saved_models.draw_table(60, 1), saved_models.draw_classes(60, 1, 3)
    columns = {name: table[name] for name in ("word", "flag", "whole")}
    model = bb.estimate(bb.count(columns, classes, features={("word", "flag"): bb.Joint()}))
    assert model.evidence_table().pairs.num_rows
    rows = {"word": ["a", "z", None, "b"], "flag": [True, None, None, False], "whole": [1, 2, None, 9]}
    assert disagreement(model, rows) <= 1e-9


def test_weighed_pairs_of_columns() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.integers(0, 4, 600), rng.normal(size=600)
    kind = (left % 2 == (right > 0)).tolist()
    rows = {"left": [f"v{k}" for k in left], "right": right.tolist()}
    model = bb.EvidenceClassifier(weigh=True).fit(rows, kind).model_
    tables = model.evidence_table()
    assert tables.pairs.num_rows
    odd = {"left": ["v1", "v9", None, "v2"], "right": [0.3, None, -2.0, 1e12]}
    assert disagreement(model, rows) <= 1e-9
    assert disagreement(model, odd) <= 1e-9


def test_entries_of_few_rows_are_left_out() -> None:
    table = {
        "ward": ["a"] * 20 + ["b"] * 20 + ["rare"],
        "text": ["flu again"] * 20 + ["all well"] * 20 + ["secret flu"],
    }
    tally = bb.count(table, ["ill"] * 20 + ["well"] * 21, features={"text": bb.Text()})
    tables = bb.estimate(tally).evidence_table(min_rows=2)
    assert set(tables.values["value"].to_pylist()) == {"a", "b", None}
    assert set(tables.words["word"].to_pylist()) == {"flu", "again", "all", "well", None}
    weighed = bb.weigh(tally, table, ["ill"] * 20 + ["well"] * 21).evidence_table(min_rows=2)
    assert "rare" not in weighed.values["value"].to_pylist()
    assert "secret" not in weighed.words["word"].to_pylist()
    assert not weighed.pairs.num_rows


def test_listed_numbers_of_few_rows_leave_no_trace() -> None:
    numbers = [1] * 20 + [2] * 20 + [7]
    tally = bb.count({"x": numbers}, ["a", "b", "b"] * 13 + ["a", "b"], features={"x": "categorical"})
    steps = bb.estimate(tally).evidence_table(min_rows=5).steps
    assert {value for value in steps["value"].to_pylist() if value is not None} == {"1", "2"}
    assert 7.0 not in steps["from"].to_pylist()


def test_stretches_of_few_rows_are_left_out() -> None:
    numbers = [float(k % 10) for k in range(200)] + [55.0]
    tally = bb.count({"x": numbers}, [k % 2 for k in range(201)], features={"x": bb.Histogram()})
    model = bb.estimate(tally)
    every, fewer = (model.evidence_table(min_rows=n) for n in (0, 5))
    assert 0 < fewer.steps.num_rows < every.steps.num_rows

    def says(number: float) -> bool:
        steps = [step for step in fewer.entries("steps") if step["from"] is not None and step["from"] <= number]
        return bool(steps[-1]["nats"].any())

    assert not says(55.0)
    assert says(4.0)


def test_min_rows_is_a_whole_number() -> None:
    model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    with pytest.raises(bb.BanburyError, match="min_rows"):
        model.evidence_table(min_rows=-1)


def test_texts_that_no_file_can_hold_are_refused() -> None:
    for values, classes in ((["\ud800", "b"], ["x", "y"]), (["a", "b"], ["\ud800", "y"])):
        with pytest.raises(bb.BanburyError, match="surrogate"):
            bb.estimate(bb.count({"v": values * 5}, classes * 5)).evidence_table()


def test_classes_of_one_name_are_refused() -> None:
    with pytest.raises(bb.BanburyError, match="different when they are written"):
        bb.estimate(bb.count({"v": ["a", "b"] * 5}, [1, "1"] * 5)).evidence_table()


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_blocks_of_occurrences_above_a_threshold(threshold: float) -> None:
    counts = np.random.default_rng(1).poisson(1.0, (40, 5)).astype(np.float64)
    model = bb.BernoulliNB(binarize=threshold).fit(counts, [0, 1, 1, 0] * 10).model_
    rows = counts[:9] - [[0.5], [0.0], [2.0]] * 3
    assert disagreement(model, dict(zip(model.schema.columns, rows.T.tolist(), strict=True))) <= 1e-9


def test_values_of_joint_columns_of_few_rows_are_left_out() -> None:
    rows = {"ward": ["a"] * 20 + ["b"] * 19 + ["rare"], "flag": [True, False] * 20}
    model = bb.estimate(bb.count(rows, ["ill", "well"] * 20, features={("ward", "flag"): bb.Joint()}))
    assert "rare" in model.evidence_table().values["value"].to_pylist()
    assert "rare" not in model.evidence_table(min_rows=5).values["value"].to_pylist()
