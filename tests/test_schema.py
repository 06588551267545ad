"""Schemas: what is inferred from the first rows, what is declared, and what is left out."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import banbury as bb
from banbury.errors import BadSetting, BadValue, EmptyData, SchemaMismatch, UnknownColumn, UnknownValue

ROWS = 30


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
        "when": "a date or time; derive numbers or words from it to use it",
        "nothing": "no value",
        "constant": "one value only",
        "same": "one value only",
        "customer_id": "identifiers: every row has its own",
        "name": "identifiers: every row has its own",
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


def test_the_number_of_rows_makes_no_difference() -> None:
    x = [0.5, 1.5, 2.5, 9.0, -4.0]
    once = bb.Schema.infer({"x": x, "w": list("abcab"), "y": [0, 1, 0, 1, 0]}, "y")
    often = bb.Schema.infer({"x": x * 100, "w": list("abcab") * 100, "y": [0, 1, 0, 1, 0] * 100}, "y")
    assert once.features[0].unit == often.features[0].unit
    assert families(once) == families(often)


def test_one_row_is_enough() -> None:
    schema = bb.Schema.infer({"x": [4.0], "w": ["a"], "y": ["p"]}, "y")
    assert families(schema) == {"x": "gaussian", "w": "categorical"}


def test_only_the_first_batch_is_looked_at() -> None:
    batches = [{"x": [1.0, 2.0], "y": [0, 1]}, {"x": [1e9, -1e9], "y": [0, 1]}]
    assert bb.Schema.infer(batches, "y") == bb.Schema.infer(batches[0], "y")


def test_origin_and_unit_are_near_the_middle_half_of_the_column() -> None:
    x = [1e12, *np.linspace(1000.0, 1003.0, 99)]
    feature = bb.Schema.infer({"x": x, "y": [0, 1] * 50}, "y").features[0]
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
    with pytest.warns(bb.BanburyWarning, match="no column is left to learn from.*left out: 'x'"):
        bb.Schema.infer({"x": [1, 1], "y": [0, 1]}, "y")


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
    with pytest.raises(BadValue, match="row 1 of column 'x' holds 'two', and a number is needed there"):
        bb.count({"x": [1, "two"], "y": [0, 1]}, "y", features={"x": "gaussian"})


def test_undeclared_values_are_refused_with_those_declared() -> None:
    family = bb.Categorical(values=["red", "green"])
    with pytest.raises(UnknownValue, match=r"column 'x' holds 'gren'.* Did you mean 'green'\?\n  Declared: green, red"):
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
    assert a.differs(b) == "the same features in another order"
    assert a.differs(a) is None


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
    other = schema.with_families({"x": bb.Gaussian("shared"), "w": bb.Categorical(alpha=2)})
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
  id       identifiers: every row has its own
  nothing  no value"""


def test_a_wide_schema_is_abridged() -> None:
    text = str(bb.Schema.infer(np.random.default_rng(0).normal(size=(3, 100)))).splitlines()
    assert text[0] == "Schema: 100 features"
    assert text[-1] == "  … and 60 more"
