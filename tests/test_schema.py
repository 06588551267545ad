"""Schemas: what is inferred from the first rows, what is declared, and what is left out."""

from __future__ import annotations

import datetime
import json
import math
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import banbury as bb
from banbury.errors import BadSetting, BadValue, EmptyData, SchemaMismatch, UnknownColumn, UnknownValue

ROWS = 30


REPEATED = [0.5, 1.5, 2.5, 9.0, -4.0]


def families(schema: bb.Schema) -> dict[str, str]:
    return {feature.name: feature.family.name for feature in schema.features}


def table(**columns: Any) -> dict[str, Any]:
    return columns | {"y": ["a", "b"] * (ROWS // 2)}


# Inference


def test_families_follow_from_the_types_of_columns() -> None:
    schema = bb.Schema.infer(
        table(
            flag=[True, False, None] * 10,
            word=["red", "green", "blue"] * 10,
            whole=list(range(15)) * 2,
            real=np.linspace(0, 1, ROWS),
            declared=pd.Categorical([1, 2, 3] * 10),
        ),
        target="y",
    )
    assert families(schema) == {
        "flag": "bernoulli",
        "word": "categorical",
        "whole": "gaussian",
        "real": "gaussian",
        "declared": "categorical",
    }
    assert schema.target == "y"
    assert not schema.left_out


def test_what_says_nothing_is_left_out_with_the_reason() -> None:
    schema = bb.Schema.infer(
        table(
            when=[datetime.date(2024, 1, 1 + i % 28) for i in range(ROWS)],
            nothing=[None] * ROWS,
            constant=[3.5] * ROWS,
            same=["x"] * ROWS,
            customer_id=list(range(100, 100 + ROWS)),
            name=[f"person {i}" for i in range(ROWS)],
            kept=[1.0, 2.0] * 15,
        ),
        target="y",
    )
    assert families(schema) == {"kept": "gaussian"}
    assert dict(schema.left_out) == {
        "when": "a date or time; convert it to numbers or words to use it",
        "nothing": "no value",
        "constant": "one value only",
        "same": "one value only",
        "customer_id": "identifiers: a different value in every row",
        "name": "identifiers: a different value in every row",
    }


def test_strings_of_more_than_three_words_are_text() -> None:
    film = table(
        review=["it was a very good film", "it was rather a bad one"] * 15, short=["good film", "bad one"] * 15
    )
    schema = bb.Schema.infer(film, target="y")
    assert families(schema) == {"review": "text", "short": "categorical"}
    assert schema["review"].why == "6.0 words on average"


def test_integers_all_different_are_numbers_unless_named_like_identifiers() -> None:
    schema = bb.Schema.infer(table(height=list(range(ROWS)), order_id=list(range(ROWS)), valid=[7, 8] * 15), "y")
    assert families(schema) == {"height": "gaussian", "valid": "gaussian"}


def test_identifiers_that_repeat_are_kept() -> None:
    schema = bb.Schema.infer(table(shop_id=[1, 2, 3] * 10, shop=["north", "south"] * 15), "y")
    assert families(schema) == {"shop_id": "gaussian", "shop": "categorical"}


def test_the_target_is_not_looked_at() -> None:
    columns = {"x": np.arange(10.0), "word": list("ababababab")}
    by_name = [
        bb.Schema.infer(columns | {"y": labels}, target="y") for labels in (["a"] * 10, list(range(10)), [None] * 10)
    ]
    assert by_name[0] == by_name[1] == by_name[2]
    assert all("y" not in families(schema) for schema in by_name)
    assert all("y" not in schema.left_out for schema in by_name)


@pytest.mark.parametrize(("fewer", "more"), [(1, 19), (20, 100)])
def test_the_number_of_rows_makes_no_difference(fewer: int, more: int) -> None:
    once, often = (
        bb.Schema.infer({"x": REPEATED * n, "w": list("abcab") * n, "y": [0, 1, 0, 1, 0] * n}, "y")
        for n in (fewer, more)
    )
    assert once.features[0].unit == often.features[0].unit
    assert families(once) == families(often)


def test_the_number_of_rows_makes_no_difference_to_declared_numbers() -> None:
    once, often = (
        bb.Schema.infer({"x": REPEATED * n, "y": [0, 1, 0, 1, 0] * n}, "y", features="gaussian") for n in (1, 100)
    )
    assert once == often


@pytest.mark.parametrize(("n", "family"), [(99, "gaussian"), (100, "quantile_tree")])
def test_numbers_are_quantile_trees_from_a_hundred_rows_on(n: int, family: str) -> None:
    data = {"x": np.arange(n) / 4, "whole": np.arange(n), "gaps": [None, *np.arange(n - 1) / 3], "y": [0, 1] * 50}
    data["y"] = data["y"][:n]
    for target in ("y", None):
        schema = bb.Schema.infer({k: v for k, v in data.items() if target or k != "y"}, target)
        assert families(schema) == {"x": family, "whole": family, "gaps": family}


def test_one_row_is_enough() -> None:
    schema = bb.Schema.infer({"x": [4.0], "w": ["a"], "y": ["p"]}, "y")
    assert families(schema) == {"x": "gaussian", "w": "categorical"}


def test_only_the_first_batch_is_looked_at() -> None:
    batches = [{"x": [1.0, 2.0], "y": [0, 1]}, {"x": [1e9, -1e9], "y": [0, 1]}]
    assert bb.Schema.infer(batches, "y") == bb.Schema.infer(batches[0], "y")


def test_origin_and_unit_are_near_the_middle_half_of_the_column() -> None:
    x = [1e12, *np.linspace(1000.0, 1003.0, 99)]
    feature = bb.Schema.infer({"x": x, "y": [0, 1] * 50}, "y", features="gaussian").features[0]
    assert 1000 <= feature.origin <= 1003
    assert feature.unit == 1.0


def test_missing_as_a_category_is_for_words_and_booleans() -> None:
    schema = bb.Schema.infer(
        table(w=["a", None, "b"] * 10, b=[True, None, False] * 10, x=[1.0, 2.0, None] * 10), "y", missing="category"
    )
    assert families(schema) == {"w": "categorical", "b": "categorical", "x": "gaussian"}
    assert schema["w"].family == bb.Categorical(missing="category")


def test_a_column_of_one_word_and_gaps_is_kept_where_missing_is_a_category() -> None:
    x = {"x": ["a", "a", None, None], "w": list("abab"), "y": [0, 1, 0, 1]}
    assert families(bb.Schema.infer(x, "y")) == {"w": "categorical"}
    assert families(bb.Schema.infer(x, "y", missing="category")) == {"x": "categorical", "w": "categorical"}


def test_a_table_with_nothing_to_learn_from_warns() -> None:
    with pytest.warns(bb.BanburyWarning, match="there is no column to learn from.*left out: 'x'"):
        bb.Schema.infer({"x": [1, 1], "y": [0, 1]}, "y")


# Few whole numbers

N = 150
FEW = [(i * i) % 5 for i in range(N)]  # 0, 1 and 4
KINDS: dict[str, list[Any]] = {
    "whole": FEW,
    "gaps": [None if i % 7 == 0 else value for i, value in enumerate(FEW)],
    "flag": [i % 3 // 2 for i in range(N)],
    "many": list(range(N)),
    "real": [value + 0.5 for value in FEW],
    "y": ["a", "b"] * (N // 2),
}


def csv(folder: Path) -> str:
    lines = zip(*([name, *("" if v is None else v for v in column)] for name, column in KINDS.items()), strict=True)
    (folder / "few.csv").write_text("".join(f"{','.join(map(str, line))}\n" for line in lines))
    return str(folder / "few.csv")


def parquet(folder: Path) -> str:
    pq.write_table(pa.table(KINDS), folder / "few.parquet")
    return str(folder / "few.parquet")


def ndjson(folder: Path) -> str:
    (folder / "few.ndjson").write_text("".join(f"{json.dumps(each)}\n" for each in records(folder)))
    return str(folder / "few.ndjson")


def records(folder: Path) -> list[dict[str, Any]]:
    return [dict(zip(KINDS, row, strict=True)) for row in zip(*KINDS.values(), strict=True)]


def database(folder: Path) -> pd.DataFrame:
    connection = sqlite3.connect(":memory:")
    pd.DataFrame(KINDS).to_sql("few", connection, index=False)
    read = pd.read_sql("select * from few", connection)
    connection.close()
    return read


SOURCES: dict[str, Callable[[Path], Any]] = {
    "dict": lambda folder: KINDS,
    "records": records,
    "floats": lambda folder: KINDS | {"whole": list(map(float, FEW)), "many": np.arange(N) * 1.0},
    "float32": lambda folder: KINDS | {"whole": np.array(FEW, np.float32), "flag": np.array(KINDS["flag"], np.float32)},
    "bytes": lambda folder: KINDS | {"whole": np.array(FEW, np.uint8)},
    "csv": csv,
    "parquet": parquet,
    "ndjson": ndjson,
    "database": database,
    "pandas": lambda folder: pd.DataFrame(KINDS),
    "nullable": lambda folder: pd.DataFrame(KINDS).astype({"gaps": "Int64", "whole": "Float64"}),
    "polars": lambda folder: pl.DataFrame(KINDS),
    "arrow": lambda folder: pa.table(KINDS),
    "stream": lambda folder: pa.table(KINDS).to_reader(),
    "batches": lambda folder: iter([pd.DataFrame(KINDS)]),
}


@pytest.mark.parametrize("source", SOURCES)
def test_few_whole_numbers_are_categories_wherever_they_come_from(source: str, tmp_path: Path) -> None:
    tally = bb.count(SOURCES[source](tmp_path), "y")
    assert families(tally.schema) == {
        "whole": "categorical",
        "gaps": "categorical",
        "flag": "categorical",
        "many": "quantile_tree",
        "real": "quantile_tree",
    }
    assert [tally.schema[name].kind for name in ("whole", "gaps", "flag")] == ["integer"] * 3
    assert tally.schema["whole"].why == tally.schema["gaps"].why == "whole numbers, 3 different"
    assert tally == bb.count(KINDS, "y")
    assert tally.digest() == bb.count(KINDS, "y").digest()


def test_arrays_show_few_whole_numbers_whatever_their_type() -> None:
    rows = np.array([KINDS["whole"], KINDS["flag"], KINDS["many"]]).T
    tallies = [bb.count(rows.astype(dtype), KINDS["y"]) for dtype in (np.int64, np.uint8, np.float64, np.float32)]
    assert families(tallies[0].schema) == {"x0": "categorical", "x1": "categorical", "x2": "quantile_tree"}
    assert all(tally == tallies[0] for tally in tallies)
    assert all(type(key) is int for key in tallies[2].sums[0].keys[0])


@pytest.mark.parametrize(
    ("column", "family"),
    [
        ([i % 20 for i in range(1000)], "categorical"),
        ([i % 21 for i in range(1000)], "quantile_tree"),
        ([*(i % 20 for i in range(1000)), *range(1000)], "categorical"),  # the first 1,000 rows decide
        ([i % 3 for i in range(100)], "categorical"),
        ([i % 3 for i in range(99)], "gaussian"),
        ([None, *(i % 3 for i in range(99))], "quantile_tree"),
        ([None, *(i % 3 for i in range(100))], "categorical"),
        ([i % 2 for i in range(99)], "categorical"),
        ([0, 1], "categorical"),
        ([0.0, 1.0, math.nan], "categorical"),
        ([1, 2] * 40, "gaussian"),
        ([0], "gaussian"),
        ([-1, 1] * 60, "categorical"),
        ([0.5, 1] * 60, "quantile_tree"),
        ([*([0.0, 1.0] * 700), 0.5], "quantile_tree"),  # a fraction after row 1,000
        ([*([0.0, 1.0] * 700), math.inf], "quantile_tree"),
        ([2**60 + i for i in range(200)], "quantile_tree"),  # which no double tells apart
        ([1e300, 2e300] * 60, "quantile_tree"),
        ([True, False] * 60, "bernoulli"),
    ],
)
def test_how_few_whole_numbers_are_few(column: list[Any], family: str) -> None:
    schema = bb.Schema.infer({"x": column, "y": list(range(len(column)))}, "y")
    assert families(schema) == {"x": family}


def test_what_is_declared_is_not_made_categories() -> None:
    for given in ("gaussian", {"whole": "gaussian", "flag": "gaussian", "gaps": "gaussian"}):
        data = {name: column for name, column in KINDS.items() if name not in ("many", "real")}
        assert set(families(bb.Schema.infer(data, "y", features=given)).values()) == {"gaussian"}
    floats = bb.Schema.infer({"x": np.array(FEW) * 1.0, "y": KINDS["y"]}, "y", features="categorical")
    assert floats["x"].kind == "float"


def test_missing_is_a_category_of_whole_numbers() -> None:
    tally = bb.count(KINDS, "y", missing="category")
    assert tally.schema["gaps"].family == bb.Categorical(missing="category")
    assert bb.estimate(tally).likelihood("gaps", None)["a"] > 0
    assert tally.missing["gaps"] == 0


@pytest.mark.parametrize("high", [3, 3000])
def test_floats_with_gaps_are_counted_as_the_integers_they_are(high: int) -> None:
    whole = [i * 7919 % high - 2 for i in range(1200)]
    gaps = [None if i % 11 == 0 else value for i, value in enumerate(whole)]
    floats = np.array([math.nan if value is None else value for value in gaps])
    labels = list(range(600)) * 2  # so many cells that the values are numbered
    integers = bb.count(pa.table({"x": gaps}), labels, features="categorical")
    assert bb.count({"x": floats}, labels, schema=integers.schema) == integers
    assert bb.count({"x": floats.astype(np.float32)}, labels, schema=integers.schema) == integers


def test_a_number_never_seen_is_a_category_never_seen() -> None:
    model = bb.estimate(bb.count({"whole": FEW, "y": KINDS["y"]}, "y"))
    rows = [{"whole": value} for value in (4, 4.0, 17, 2.5, None)]
    probabilities = model.posterior(rows)
    assert probabilities[0].tolist() == probabilities[1].tolist()
    assert probabilities[2].tolist() == probabilities[3].tolist()


# Declaring


def test_a_family_is_declared_by_name_class_or_instance() -> None:
    x = {"x": [1, 2, 3, 4], "y": [0, 1, 0, 1]}
    schemas = [bb.Schema.infer(x, "y", features={"x": given}) for given in ("poisson", bb.Poisson, bb.Poisson())]
    assert schemas[0] == schemas[1] == schemas[2]
    assert schemas[0].features[0].why == "declared"


def test_one_family_for_all_columns() -> None:
    schema = bb.Schema.infer({"a": [1, 2], "b": [3, 4], "y": [0, 1]}, "y", features="categorical")
    assert families(schema) == {"a": "categorical", "b": "categorical"}


def test_none_leaves_a_column_out() -> None:
    schema = bb.Schema.infer({"a": [1, 2], "b": [3, 4], "y": [0, 1]}, "y", features={"a": None})
    assert families(schema) == {"b": "gaussian"}
    assert "a" in schema.left_out


def test_a_declared_column_is_never_left_out() -> None:
    schema = bb.Schema.infer(
        table(c=[3.5] * ROWS, n=[None] * ROWS), "y", features={"c": "gaussian", "n": "categorical"}
    )
    assert families(schema) == {"c": "gaussian", "n": "categorical"}


def test_columns_of_arrays_are_declared_by_position() -> None:
    schema = bb.Schema.infer(np.arange(8).reshape(4, 2) % 3, features={0: "poisson", -1: "categorical"})
    assert families(schema) == {"x0": "poisson", "x1": "categorical"}


def test_an_unknown_column_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match=r"no column 'lenght'\. Did you mean 'length'\?\n  Columns: length, y"):
        bb.Schema.infer({"length": [1, 2], "y": [0, 1]}, features={"lenght": "poisson"})
    with pytest.raises(UnknownColumn, match="no column 'z'"):
        bb.Schema.infer({"length": [1, 2], "y": [0, 1]}, target="z")


def test_an_unknown_family_is_named_with_those_there_are() -> None:
    with pytest.raises(
        BadSetting, match=r"must be one of 'bernoulli', .* Got 'gausian' instead\. Did you mean 'gaussian'\?"
    ):
        bb.Schema.infer({"x": [1, 2], "y": [0, 1]}, "y", features={"x": "gausian"})


def test_words_are_no_numbers() -> None:
    with pytest.raises(BadValue, match="row 1 of column 'x' contains 'two', but must contain a number"):
        bb.count({"x": [1, "two"], "y": [0, 1]}, "y", features={"x": "gaussian"})


def test_undeclared_values_are_refused_with_those_declared() -> None:
    family = bb.Categorical(values=["red", "green"])
    with pytest.raises(
        UnknownValue, match=r"column 'x' contains 'gren'.* Did you mean 'green'\?\n  Declared: green, red"
    ):
        bb.count({"x": ["red", "gren"], "y": [0, 1]}, "y", features={"x": family})


def test_an_empty_table_has_no_schema() -> None:
    with pytest.raises(EmptyData):
        bb.count({"x": [], "y": []}, "y")


# Values


def test_schemas_are_equal_when_they_count_the_same_things() -> None:
    x = {"x": [1.0, 2.0, 4.0], "w": ["a", "b", "a"], "y": [0, 1, 0]}
    schema = bb.Schema.infer(x, "y")
    assert schema == bb.Schema.infer(x, "y", features={"x": bb.Gaussian("shared"), "w": bb.Categorical(alpha=3)})
    assert hash(schema) == hash(bb.Schema.infer(x, "y"))
    assert schema != bb.Schema.infer(x, "y", features={"w": bb.Categorical(missing="category")})
    assert schema != bb.Schema.infer({"x": x["x"], "y": x["y"]}, "y")
    assert schema != bb.Schema.infer(x | {"x": [1.0, 2.0, 400.0]}, "y")
    assert schema != "a schema"


def test_a_schema_says_why_another_differs() -> None:
    a = bb.Schema.infer({"x": [1.0, 2.0], "w": ["a", "b"], "y": [0, 1]}, "y")
    b = bb.Schema.infer({"w": ["a", "b"], "x": [1.0, 2.0], "y": [0, 1]}, "y")
    assert a._explain_difference(b) == "the same features in another order"
    assert a._explain_difference(a) is None


EVERY_SETTING = {
    "a": bb.Bernoulli(alpha=2, beta=3, threshold=0.5),
    "b": bb.Bernoulli(m=4, p=0.25, yes="y"),
    "c": bb.Categorical(alpha={"p": 1.0, "q": 2.5}, values=["p", "q"], missing="category"),
    "d": bb.Categorical(m=2, p={True: 0.25, False: 0.75}),
    "e": bb.Gaussian("shared", bb.NormalInverseGamma(1, 2, 3, 4)),
    "f": bb.Poisson(2, 3),
    "g": bb.Histogram(0.5, 7, -1.0, 0.25),
    "h": bb.KernelDensity("cosine", 0.5),
    "i": bb.KernelDensity("box", "leave-one-out", 0.0, 0.5),
    "j": bb.Categorical(alpha={1: 1.0, 2: 0.5}),
}


def test_a_schema_survives_being_written_as_json() -> None:
    import json

    columns = {"a": [0.1, 0.9], "b": ["y", "n"], "c": ["p", None], "d": [True, False], "e": [1.0, 2.0], "f": [3, 4],
               "g": [0.0, 1.0], "h": [5.0, 6.0], "i": [7.0, 8.0], "j": [1, 2], "left": [None, None], "y": ["s", "t"]}  # fmt: skip
    schema = bb.Schema.infer(columns, "y", features=EVERY_SETTING)
    again = bb.Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert again.features == schema.features
    assert (again.target, again.columns, again.named, again.left_out) == (
        "y",
        schema.columns,
        True,
        {"left": "no value"},
    )


def test_a_feature_is_found_by_name() -> None:
    schema = bb.Schema.infer(bb.datasets.play_tennis(), "play")
    assert schema["wind"].family == bb.Categorical()
    with pytest.raises(UnknownColumn, match=r"no column 'wend'. Did you mean 'wind'"):
        schema["wend"]


# Other estimating halves


def test_the_estimating_half_may_change_without_a_recount() -> None:
    schema = bb.Schema.infer({"x": [1.0, 2.0], "w": ["a", "b"], "y": [0, 1]}, "y")
    other = schema._with_families({"x": bb.Gaussian("shared"), "w": bb.Categorical(alpha=2)})
    assert other == schema
    assert other["x"].family == bb.Gaussian("shared")


def test_bins_serve_histograms_and_kernels_alike() -> None:
    x = {"x": [1.0, 2.0, 3.0, 5.0], "y": [0, 1, 0, 1]}
    tally = bb.count(x, "y", features={"x": "histogram"})
    as_kernels = bb.estimate(tally, features={"x": "kernel_density"})
    counted = bb.estimate(bb.count(x, "y", features={"x": "kernel_density"}))
    np.testing.assert_array_equal(as_kernels.posterior(x), counted.posterior(x))


@pytest.mark.parametrize(
    "counted, other",
    [
        ("gaussian", bb.Poisson()),
        ("gaussian", bb.Histogram()),
        ("categorical", bb.Bernoulli()),
        ("categorical", bb.Gaussian()),
        ("histogram", bb.Categorical()),
        ("bernoulli", bb.Poisson()),
    ],
    ids=str,
)
def test_a_family_that_counts_otherwise_is_refused(counted: str, other: Any) -> None:
    tally = bb.count({"x": [0, 1, 1, 0, 1], "y": [0, 1, 0, 1, 1]}, "y", features={"x": counted})
    with pytest.raises(SchemaMismatch, match="feature 'x' was counted for"):
        bb.estimate(tally, features={"x": other})


@pytest.mark.parametrize("other", [bb.Categorical(values=["a", "b", "c"]), bb.Categorical(missing="category")], ids=str)
def test_a_counting_half_given_too_late_is_refused_not_dropped(other: Any) -> None:
    tally = bb.count({"x": ["a", "b", "a"], "y": [0, 1, 0]}, "y")
    with pytest.raises(SchemaMismatch):
        bb.estimate(tally, features={"x": other})


def test_bins_given_too_late_are_refused_not_dropped() -> None:
    tally = bb.count({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]}, "y", features={"x": "histogram"})
    with pytest.raises(SchemaMismatch):
        bb.estimate(tally, features={"x": bb.Histogram(start=0, width=5)})


# Looks


def test_a_schema_reads_as_a_table() -> None:
    schema = bb.Schema.infer(
        {"outlook": ["sun", "rain"], "wind": [1.5, 2.5], "id": [7, 8], "nothing": [None, None], "play": ["no", "yes"]},
        target="play",
        features={"wind": bb.Gaussian("shared")},
    )
    assert str(schema) == repr(schema) == SCHEMA


SCHEMA = """\
Schema: 2 features, target 'play'
  outlook  categorical                  strings
  wind     gaussian(variance='shared')  declared
left out:
  id       identifiers: a different value in every row
  nothing  no value"""


def test_a_wide_schema_is_abridged() -> None:
    text = str(bb.Schema.infer(np.random.default_rng(0).normal(size=(3, 100)))).splitlines()
    assert text[0] == "Schema: 100 features"
    assert text[-1] == "  … and 60 more"


# Names with a star ---------------------------------------------------------------------------------------------------


SOILS = {"soil_1": [0, 1, 1, 0], "soil_2": [1, 0, 0, 1], "high": [1.5, 2.5, 3.0, 7.0], "y": list("abab")}


def test_a_star_stands_for_all_columns_that_are_named_so():
    schema = bb.Schema.infer(SOILS, target="y", features={"soil_*": "gaussian"})
    assert families(schema) == {"soil_1": "gaussian", "soil_2": "gaussian", "high": "gaussian"}
    assert [f.why for f in schema.features if f.name.startswith("soil")] == ["declared"] * 2
    assert families(bb.Schema.infer(SOILS, target="y", features={"*_2": None})) == {
        "soil_1": "categorical",
        "high": "gaussian",
    }
    assert families(bb.Schema.infer(SOILS, target="y", features={"*": "gaussian"})) == families(schema)


def test_a_column_that_is_named_is_not_meant_by_a_star():
    for given in ({"soil_*": "gaussian", "soil_2": "bernoulli"}, {"soil_2": "bernoulli", "soil_*": "gaussian"}):
        assert families(bb.Schema.infer(SOILS, target="y", features=given))["soil_2"] == "bernoulli"
    both = bb.Schema.infer(SOILS, target="y", features={("soil_2", "high"): "joint", "soil_*": "gaussian"})
    assert [f.inputs for f in both.features] == [("soil_1",), ("soil_2", "high")]


def test_a_block_may_be_named_by_a_star():
    for given in ({("soil_*", "high"): "joint"}, {"soil_*": "joint", "high": "gaussian"}):
        assert bb.Schema.infer(SOILS, target="y", features=given).features[-1].inputs[:2] == ("soil_1", "soil_2")


def test_a_column_whose_name_has_a_star_is_taken_at_its_word():
    rows = {"soil_*": [0.5, 1.5, 2.5, 3.5], **SOILS}
    schema = bb.Schema.infer(rows, target="y", features={"soil_*": "poisson"})
    assert families(schema) == {
        "soil_*": "poisson",
        "soil_1": "categorical",
        "soil_2": "categorical",
        "high": "gaussian",
    }


def test_a_star_that_matches_nothing_is_told_with_what_is_like_it():
    with pytest.raises(UnknownColumn, match=r"no column matches 'soli_\*'.*Did you mean 'soil_\d'"):
        bb.count(SOILS, target="y", features={"soli_*": "bernoulli"})
    with pytest.raises(UnknownColumn, match=r"no column matches 'y\*'"):
        bb.count(SOILS, target="y", features={"y*": "bernoulli"})
    with pytest.raises(BadSetting, match="column 'soil_1' in two places"):
        bb.count(SOILS, target="y", features={"soil_*": "bernoulli", "*_1": "gaussian"})


def test_stars_in_estimate_and_networks():
    tally = bb.count(SOILS, target="y", features={"soil_*": bb.Bernoulli(), "high": "gaussian"})
    same = {name: bb.Bernoulli(alpha=0.25) for name in ("soil_1", "soil_2")}
    starred = bb.estimate(tally, features={"soil_*": bb.Bernoulli(alpha=0.25)})
    assert np.array_equal(starred.posterior(SOILS), bb.estimate(tally, features=same).posterior(SOILS))
    network = bb.BeliefNetwork.count(SOILS, {"soil_1": ["y"], "soil_2": ["y"]}, features={"soil_*": "categorical"})
    assert network.nodes == bb.BeliefNetwork.count(SOILS, {"soil_1": ["y"], "soil_2": ["y"]}).nodes


@pytest.mark.parametrize("n_rows", [8, 130])
@pytest.mark.parametrize("kind", ["floats", "whole floats", "integers", "flags", "gaps", "mixed"])
def test_a_matrix_is_inferred_as_its_columns_are_one_by_one(n_rows, kind):
    rng = np.random.default_rng(n_rows)
    X = {
        "floats": lambda: rng.normal(size=(n_rows, 6)),
        "whole floats": lambda: rng.integers(0, 30, (n_rows, 6)).astype(float),
        "integers": lambda: rng.integers(-900, 900, (n_rows, 6)),
        "flags": lambda: rng.integers(0, 2, (n_rows, 6)).astype(float),
        "gaps": lambda: np.where(rng.random((n_rows, 6)) < 0.3, np.nan, rng.integers(0, 4, (n_rows, 6))),
        "mixed": lambda: np.column_stack(
            [rng.normal(size=n_rows), rng.integers(0, 2, (n_rows, 4)), np.full(n_rows, 3)]
        ),
    }[kind]()
    one_by_one = bb.Schema.infer({f"x{j}": X[:, j] for j in range(6)})
    assert bb.Schema.infer(X).features == one_by_one.features
    assert bb.Schema.infer(X).left_out == one_by_one.left_out
