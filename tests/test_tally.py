"""Tallies: what is counted, what cannot be subtracted, what they look like."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import banbury as bb
import by_shape
from banbury.errors import BadSetting, EmptyData, NegativeCount, SchemaMismatch, UnknownColumn
from banbury.tally.tally import Tally, add_tally

WEATHER = bb.datasets.play_tennis()


def rows(table: dict[str, list[Any]], *index: int) -> dict[str, list[Any]]:
    return {name: [column[i] for i in index] for name, column in table.items()}


@pytest.fixture
def weather() -> bb.Tally:
    return bb.count(WEATHER, target="play")


MIXED = {
    "colour": ["red", "blue", "red", "green"],
    "size": [1.0, 2.5, None, 4.0],
    "fast": [True, False, True, True],
    "kind": ["a", "a", "b", "b"],
}


@pytest.fixture
def mixed() -> bb.Tally:
    return bb.count(MIXED, target="kind")


def held(tally: bb.Tally) -> list[Any]:
    """All numbers of a tally, to see that they stay."""
    return [
        tally.classes,
        by_shape.counts(tally).keys,
        *((sums.digits, sums.limbs().tolist()) for sums in tally.numbers().values()),
    ]


# What is counted


def test_a_tally_holds_counts_and_no_smoothing(weather: bb.Tally) -> None:
    assert weather.classes == ("no", "yes")
    assert weather.rows.value.tolist() == [5, 9]
    keys, cells = by_shape.counts(weather).feature(0)
    assert keys == ("overcast", "rain", "sunny")
    assert cells.value.tolist() == [[0, 4], [2, 3], [3, 2]]


def test_a_target_is_a_column_or_an_array() -> None:
    columns = {name: column for name, column in WEATHER.items() if name != "play"}
    by_name = bb.count(WEATHER, target="play")
    for labels in (WEATHER["play"], np.array(WEATHER["play"]), tuple(WEATHER["play"])):
        assert bb.count(columns, target=labels) == by_name


def test_weights_are_a_column_or_an_array() -> None:
    weights = [float(i % 3) for i in range(14)]
    table = WEATHER | {"weight": weights}
    by_name = bb.count(table, target="play", weights="weight")
    assert "weight" not in [f.name for f in by_name.schema.features]
    assert by_name == bb.count(WEATHER, target="play", weights=weights)


@pytest.mark.parametrize("labels", [["b", "a", "b"], [3, -1, 3], [True, False, True], [2.5, 0.5, 2.5]])
def test_classes_keep_their_type_and_are_in_order(labels: list[Any]) -> None:
    tally = bb.count({"x": [1.0, 2.0, 3.0]}, target=labels)
    assert tally.classes == tuple(sorted(set(labels)))
    assert {type(name) for name in tally.classes} == {type(labels[0])}
    assert tally.rows.value.tolist() == [1, 2]


def test_rows_without_a_target_are_skipped_and_counted() -> None:
    table = {"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", None, "b", None]}
    tally = bb.count(table, target="y")
    assert (tally.n_rows, tally.skipped) == (2, 2)
    assert tally == bb.count({"x": [1.0, 3.0], "y": ["a", "b"]}, target="y", schema=tally.schema)
    assert (tally + tally).skipped == 4
    assert (tally + tally - tally).skipped == 2


def test_a_missing_target_is_missing_in_arrays_too() -> None:
    tally = bb.count({"x": [1.0, 2.0, 3.0]}, target=np.array([1.0, np.nan, 0.0]))
    assert (tally.classes, tally.skipped) == ((0.0, 1.0), 1)


def test_a_table_whose_every_target_is_missing_is_refused() -> None:
    with pytest.raises(EmptyData, match="the target 'y' is missing in all 2 rows"):
        bb.count({"x": [1.0, 2.0], "y": [None, None]}, target="y")


def test_new_categories_and_classes_may_come_at_any_time(weather: bb.Tally) -> None:
    more = {"outlook": ["fog"], "temperature": ["hot"], "humidity": ["high"], "wind": ["weak"], "play": ["perhaps"]}
    grown = weather + weather.count(more)
    assert grown.classes == ("no", "perhaps", "yes")
    assert "fog" in by_shape.counts(grown).keys[0]
    assert grown - weather.count(more) == weather


def test_forgetting_a_category_takes_it_out_of_the_vocabulary(weather: bb.Tally) -> None:
    overcast = [i for i, value in enumerate(WEATHER["outlook"]) if value == "overcast"]
    left = weather - weather.count(rows(WEATHER, *overcast))
    assert by_shape.counts(left).keys[0] == ("rain", "sunny")


def test_a_declared_category_stays_without_rows() -> None:
    family = bb.Categorical(values=["a", "b", "c"])
    tally = bb.count({"x": ["a", "a"], "y": ["p", "q"]}, "y", features={"x": family})
    assert by_shape.counts(tally).keys[0] == ("a", "b", "c")
    assert by_shape.counts(tally - tally).keys[0] == ("a", "b", "c")


def test_declared_categories_may_have_missing_ones_beside_them() -> None:
    family = bb.Categorical(values=["a", "b"], missing="category")
    tally = bb.count({"x": ["a", None], "y": ["p", "q"]}, "y", features={"x": family})
    assert by_shape.counts(tally).keys[0] == ("a", "b", None)
    assert by_shape.counts(tally).cells.value.tolist() == [[1, 0], [0, 0], [0, 1]]


def test_counting_on_needs_the_columns_that_were_counted(weather: bb.Tally) -> None:
    with pytest.raises(UnknownColumn, match="no column 'wind'"):
        weather.count({name: column for name, column in WEATHER.items() if name != "wind"})


def test_counting_on_ignores_columns_that_were_not_counted(weather: bb.Tally) -> None:
    assert weather.count(WEATHER | {"moon": ["full"] * 14}) == weather


def test_arrays_are_counted_on_by_position() -> None:
    X, y = np.arange(12.0).reshape(6, 2) ** 2, [0, 1, 0, 1, 0, 1]
    tally = bb.count(X, target=y)
    assert tally == tally.count(X[:3], y[:3]) + tally.count(X[3:], y[3:])
    with pytest.raises(SchemaMismatch, match="2 columns were counted, but these rows have 1"):
        tally.count(X[:, :1], y)


def test_integers_spread_wide_are_classes_too() -> None:
    tally = bb.count({"x": [1.0, 2.0, 3.0]}, target=[10**12, -5, 10**12])
    assert tally.classes == (-5, 10**12)


def test_soft_labels_are_counted_with_their_weights() -> None:
    soft = bb.count({"x": ["a", "b"]}, weights=[[0.25, 0.75], [1.0, 0.0]], classes=["no", "yes"])
    assert soft.classes == ("no", "yes")
    assert soft.rows.value.tolist() == [1.25, 0.75]
    assert soft.n_rows == 2.0


def test_soft_labels_leave_a_target_column_aside() -> None:
    table = {"x": ["a", "b"], "y": ["p", "q"]}
    soft = bb.count(table, target="y", weights=[[1, 0], [0, 1]], classes=["p", "q"])
    assert soft == bb.count(table, target="y")


# The algebra


def test_a_tally_is_a_value(weather: bb.Tally) -> None:
    with pytest.raises(FrozenInstanceError):
        weather.skipped = 3  # type: ignore[misc]
    before = held(weather)
    part = weather.count(rows(WEATHER, 0, 1))
    _ = weather + part, weather - part, weather * 2, weather * 0.5, weather == part
    assert held(weather) == before


def test_tallies_can_be_summed(weather: bb.Tally) -> None:
    assert sum([weather.count(rows(WEATHER, i)) for i in range(14)]) == weather


def test_equal_sums_are_equal_and_others_are_not(mixed: bb.Tally) -> None:
    assert mixed == mixed.count(MIXED)
    assert mixed != mixed + mixed
    other = dict(MIXED, size=[1.0, 2.5, None, 4.0 + 1e-6])
    assert mixed != mixed.count(other)
    assert mixed != "a tally"


def test_half_of_a_tally_can_be_taken_out(mixed: bb.Tally) -> None:
    assert mixed - mixed * 0.5 == mixed * 0.5
    assert mixed - mixed * 0.25 - mixed * 0.25 == mixed * 0.5


def test_half_a_row_can_be_taken_out() -> None:
    tally = bb.count({"x": ["a"], "y": ["p"]}, "y")
    half = tally.count({"x": ["a"], "y": ["p"]}, weights=[0.5])
    assert tally - half == half


def test_heavy_weights_add_without_wrapping_round() -> None:
    table = {"x": ["a", "b"], "y": ["p", "q"]}
    heavy = bb.count(table, "y", weights=[1e18, 3e18])
    for tally in (heavy + heavy, heavy * 2):
        assert tally.classes == ("p", "q")
        assert tally.rows.value.tolist() == [2e18, 6e18]
    with pytest.raises(bb.BanburyError):
        heavy * 3
    with pytest.raises(bb.BanburyError):
        bb.count(table, "y", weights=[1e100, 3e100])


@pytest.mark.parametrize("factor", [-1, float("nan"), float("inf")])
def test_a_tally_is_not_scaled_by_what_is_no_share(weather: bb.Tally, factor: float) -> None:
    with pytest.raises(BadSetting, match="the factor of a tally must be finite and non-negative"):
        weather * factor


def test_a_tally_times_something_else_is_a_type_error(weather: bb.Tally) -> None:
    for other in ("2", None, True):
        with pytest.raises(TypeError):
            weather * other  # type: ignore[operator]
    with pytest.raises(TypeError):
        weather + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        weather - 1  # type: ignore[operator]


def test_a_tally_times_a_very_large_number_is_still_a_tally(weather: bb.Tally) -> None:
    assert (weather * 1e17).rows.value.tolist() == [5e17, 9e17]
    with pytest.raises(BadSetting, match="2\\*\\*63"):
        weather * 1e20


# What cannot be subtracted


def refused(tally: bb.Tally, other: bb.Tally, *words: str) -> None:
    before = held(tally), held(other)
    with pytest.raises(NegativeCount) as caught:
        tally - other
    for word in (*words, "nothing was changed", "Subtract only what was added"):
        assert word in str(caught.value)
    assert (held(tally), held(other)) == before


def test_more_rows_than_there_are_cannot_be_subtracted(weather: bb.Tally) -> None:
    refused(weather, weather + weather.count(rows(WEATHER, 0)), "-1 rows of class 'no'")


def test_an_unknown_class_cannot_be_subtracted(weather: bb.Tally) -> None:
    refused(weather, weather.count(dict(rows(WEATHER, 0), play=["perhaps"])), "class 'perhaps'")


def test_an_unknown_category_cannot_be_subtracted(weather: bb.Tally) -> None:
    other = weather.count(dict(rows(WEATHER, 0), outlook=["fog"]))
    refused(weather, other, "-1 rows of class 'no' in feature 'outlook' (value 'fog')")


def test_a_category_that_the_class_never_had_cannot_be_subtracted(weather: bb.Tally) -> None:
    other = weather.count(dict(rows(WEATHER, 0), outlook=["overcast"]))
    refused(weather, other, "class 'no' in feature 'outlook' (value 'overcast')")


def test_a_number_that_would_leave_a_negative_square_cannot_be_subtracted(mixed: bb.Tally) -> None:
    refused(mixed, mixed.count(dict(rows(MIXED, 0), size=[100.0])), "feature 'size'", "class 'a'")


def test_numbers_in_rows_that_had_none_cannot_be_subtracted(mixed: bb.Tally) -> None:
    b = mixed.count(dict(rows(MIXED, 2), size=[4.0])) + mixed.count(rows(MIXED, 3))
    refused(mixed, b, "feature 'size'", "class 'b'")


def test_the_last_row_cannot_go_and_leave_its_value(mixed: bb.Tally) -> None:
    """A row whose value is missing is not the row whose value is 1: it shows when the class has no row left."""
    one = mixed.count(rows(MIXED, 0))
    refused(one, mixed.count(dict(rows(MIXED, 0), size=[None])), "feature 'size'", "class 'a'")
    refused(one, mixed.count(dict(rows(MIXED, 0), colour=[None])), "feature 'colour'", "class 'a'")


def test_another_value_cannot_go_in_place_of_the_last() -> None:
    table = {"x": [1.0, 2.0], "y": ["a", "b"]}
    tally = bb.count(table, "y")
    refused(tally, tally.count({"x": [1.5], "y": ["a"]}), "feature 'x'", "class 'a'")


def test_more_weight_than_there_is_cannot_be_subtracted() -> None:
    tally = bb.count({"x": ["a", "b"], "y": ["p", "p"]}, "y", weights=[0.5, 0.25])
    refused(tally, tally.count({"x": ["a"], "y": ["p"]}, weights=[0.9]), "class 'p'")


# Schemas


def test_tallies_of_different_things_do_not_combine(weather: bb.Tally) -> None:
    other = bb.count({name: WEATHER[name] for name in ("outlook", "wind", "play")}, target="play")
    for combine in (lambda: weather + other, lambda: weather - other):
        with pytest.raises(SchemaMismatch) as caught:
            combine()
        assert "only in the first [temperature, humidity], only in the second []" in str(caught.value)
        assert "tally.to(schema)" in str(caught.value)
        assert "schema=tally.schema" in str(caught.value)


def test_tallies_of_different_things_are_not_equal(weather: bb.Tally) -> None:
    other_columns = bb.count({name: WEATHER[name] for name in ("outlook", "wind", "play")}, target="play")
    other_families = bb.count(WEATHER, target="play", features={"wind": bb.Categorical(missing="category")})
    label_sets = bb.count(WEATHER, target="play", target_delimiter=";")
    for other in (other_columns, other_families, label_sets):
        assert weather != other
        assert other != weather
        assert weather.digest() != other.digest()


def test_tallies_about_different_origins_do_not_combine_until_moved() -> None:
    a = bb.count({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]}, "y")
    b = bb.count({"x": [1001.0, 1020.0, 1030.0], "y": [0, 1, 0]}, "y")
    with pytest.raises(SchemaMismatch, match=r"'x' is gaussian about .* in one and gaussian about .* in the other"):
        a + b
    both = a + b.to(a.schema)
    assert both == a.count({"x": [1.0, 2.0, 3.0, 1001.0, 1020.0, 1030.0], "y": [0, 1, 0] * 2})
    assert a.to(b.schema).to(a.schema) == a


def test_bins_are_widened_but_never_cut() -> None:
    fine, wide = bb.Histogram(start=0, width=0.5), bb.Histogram(start=0, width=0.5)
    table = {"x": [0.1, 0.6, 1.1, 7.9], "y": [0, 1, 0, 1]}
    a = bb.count(table, "y", features={"x": fine})
    schema = bb.count(table, "y", features={"x": wide}).schema
    wider = bb.Schema.from_dict(schema.to_dict() | {"features": [dict(schema.to_dict()["features"][0], unit=2.0)]})
    moved = a.to(wider)
    assert by_shape.counts(moved).keys == ((0, 3),)
    assert by_shape.counts(moved).cells.value.tolist() == [[2, 1], [0, 1]]
    with pytest.raises(SchemaMismatch, match="cannot be cut"):
        moved.to(a.schema)


def test_a_tally_does_not_move_to_other_families() -> None:
    table = {"x": [1, 2, 3, 4], "y": [0, 1, 0, 1]}
    as_numbers = bb.count(table, "y", features={"x": "gaussian"})
    for other in ("poisson", "categorical", "histogram"):
        with pytest.raises(SchemaMismatch):
            as_numbers.to(bb.count(table, "y", features={"x": other}).schema)


# Bins


@pytest.mark.parametrize("family", ["histogram", "kernel_density"])
def test_at_most_4096_bins_are_kept_and_order_has_no_effect(family: str) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.standard_cauchy(30_000) * 100, rng.integers(0, 2, 30_000)
    schema = bb.count({"x": x[:1000], "y": y[:1000]}, "y", features={"x": family}).schema
    whole = bb.count({"x": x, "y": y}, "y", schema=schema)
    assert 2048 <= len(by_shape.counts(whole).keys[0]) <= 4096
    parts = [bb.count({"x": x[i::7], "y": y[i::7]}, "y", schema=schema) for i in range(7)]
    for order in (parts, parts[::-1], parts[3:] + parts[:3]):
        total = sum(order[1:], order[0])
        assert total.schema == whole.schema
        assert by_shape.counts(total).keys == by_shape.counts(whole).keys
        assert by_shape.counts(total).cells.same(by_shape.counts(whole).cells)
    assert sum(parts[1:], parts[0]) - parts[3] == sum(parts[:3] + parts[4:])
    batches = [{"x": x[i : i + 5000], "y": y[i : i + 5000]} for i in range(0, 30_000, 5000)]
    assert bb.count(batches, "y", schema=schema) == whole


# Looks


def test_a_tally_reads_as_a_table(mixed: bb.Tally) -> None:
    assert str(mixed) == repr(mixed) == TALLY


TALLY = """\
Tally of 4 rows, 2 classes, 3 features
  'a'             2   50.0%
  'b'             2   50.0%
  colour  categorical     3 values: 'red', 'blue', 'green'
  size    gaussian        mean 2.5, deviation 1.22474, 1 missing
  fast    bernoulli       2 values: True, False"""


def test_a_weighted_tally_says_so_and_how_many_rows_were_skipped() -> None:
    tally = bb.count({"x": ["a", "b", "a"], "y": ["p", "q", None]}, "y", weights=[0.5, 0.25, 1])
    assert str(tally) == WEIGHTED


WEIGHTED = """\
Tally of 0.75 (weights), 2 classes, 1 feature
  'p'           0.5   66.7%
  'q'          0.25   33.3%
  x  categorical     2 values: 'a', 'b'
  skipped: 1 row without a target"""


def test_many_classes_and_features_are_abridged() -> None:
    X = np.random.default_rng(0).normal(size=(60, 30))
    text = str(bb.count(X, target=list(range(60)))).splitlines()
    assert "  … and 40 more classes" in text
    assert text[-1] == "  … and 10 more features"


def test_an_empty_tally_can_be_looked_at(mixed: bb.Tally) -> None:
    assert str(mixed - mixed).splitlines()[0] == "Tally of 0 rows, 0 classes, 3 features"


# Parameters


def test_parameters_are_counted(mixed: bb.Tally, weather: bb.Tally) -> None:
    assert weather.n_parameters() == 1 + 2 * (2 + 2 + 1 + 1)
    assert weather.n_parameters(naive=False) == 1 + 2 * (3 * 3 * 2 * 2 - 1)
    assert mixed.n_parameters() == 1 + 2 * (2 + 2 + 1)
    shared = bb.count(MIXED, "kind", features={"size": bb.Gaussian(variance="shared")})
    assert shared.n_parameters() == 1 + 2 * (2 + 1 + 1) + 1
    poisson = bb.count({"x": [1, 2, 3], "y": [0, 1, 2]}, "y", features="poisson")
    assert poisson.n_parameters() == 2 + 3 * 1
    bins = bb.count({"x": [0.5, 1.5, 3.5], "y": [0, 1, 1]}, "y", features=bb.Histogram(start=0, width=1))
    assert bins.n_parameters() == 1 + 2 * (4 + 2 - 1)  # bins 0 to 3, one more each side


def test_labels_taken_from_a_column_do_not_leave_it_among_the_features() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "play": ["a", "b", "a"]})
    assert [f.name for f in bb.count(frame, frame["play"]).schema.features] == ["x"]
    assert [f.name for f in bb.count(frame, frame["play"].tolist()).schema.features] == ["x", "play"]


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_codes_beyond_those_that_some_rows_show(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(3, 9, (70_000, 2)).astype(dtype)
    y = rng.integers(0, 2, len(X))
    for odd in ([9, 1], [200, 0], [3, 8]):
        X[12_345] = odd
        whole = bb.count(X, y, features="categorical")
        parts = [bb.count(X[at], y[at], schema=whole.schema) for at in (slice(0, 30_000), slice(30_000, None))]
        assert whole == parts[0] + parts[1]


def spoken(seed: int) -> dict[str, list[str]]:
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 50, (1500, 4))
    return {
        "said": [" ".join(f"w{n}" for n in row) for row in words.tolist()],
        "who": rng.choice(["ann", "bob"], 1500).tolist(),
    }


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the words of each batch were counted on a thread of their own."""
    seen: list[bool] = []

    def add(total: Tally | None, part: Tally) -> Tally:
        seen.append(threading.current_thread() is not threading.main_thread())
        return add_tally(total, part)

    monkeypatch.setattr("banbury.tally.tally.add_tally", add)
    return seen


def test_words_of_a_batch_that_lasts_are_counted_while_the_next_is_made(
    elsewhere: list[bool],
) -> None:
    tables = [pa.table(spoken(seed)) for seed in range(4)]
    features = {"said": bb.Text()}
    alone = bb.count(pa.concat_tables(tables), "who", features=features, threads=1)
    assert not any(elsewhere)
    elsewhere.clear()
    assert bb.count(iter(tables), "who", features=features, threads=2).digest() == alone.digest()
    assert elsewhere == [False, True, True, True]


@pytest.mark.parametrize("labels", [["a", "b", None], [1, 2, 2], ["1", "2", "1"]], ids=str)
@pytest.mark.parametrize("encoded", [False, True])
def test_small_batches_of_texts_are_counted_as_one_is(labels: list[Any], encoded: bool) -> None:
    """Whatever is missing from them, and whatever their target's type."""
    texts = [["one two", None, "two"], [None, None, None], ["three", "one é", ""], ["four", "x", "two two"]]
    types = pa.schema({"said": pa.string(), "who": pa.array(labels).type})
    tables = [pa.table({"said": said, "who": labels}, types) for said in texts]
    if encoded:
        tables = [table.set_column(1, "who", table.column("who").dictionary_encode()) for table in tables]
    features = {"said": bb.Text()}
    whole = bb.count(pa.concat_tables(tables, promote_options="default").combine_chunks(), "who", features=features)
    for batches in (iter(tables), [table.to_batches()[0] for table in tables]):
        found = bb.count(batches, "who", features=features)
        assert (found, found.digest(), found.missing) == (whole, whole.digest(), whole.missing)


def test_lists_that_are_written_over_are_counted_before(elsewhere: list[bool]) -> None:
    def batches() -> Iterator[dict[str, list[str]]]:
        held: dict[str, list[str]] = {"said": [], "who": []}
        for seed in range(4):
            for name, column in spoken(seed).items():
                held[name][:] = column
            yield held

    every = [spoken(seed) for seed in range(4)]
    assert bb.count(batches(), "who", threads=2) == bb.count(every, "who", threads=1)
    assert not any(elsewhere)


def test_a_stream_that_breaks_off_and_words_that_cannot_be_counted_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[pa.Table]:
        yield from (pa.table(spoken(seed)) for seed in range(3))
        raise OSError("the line is dead")

    with pytest.raises(OSError, match="the line is dead"):
        bb.count(broken(), "who", threads=2)
    added = list[float]()

    def add(total: Tally | None, part: Tally) -> Tally:
        added.append(0 if total is None else total.n_rows)
        if len(added) == 2:
            raise NegativeCount("as it were")
        return add_tally(total, part)

    monkeypatch.setattr("banbury.tally.tally.add_tally", add)
    with pytest.raises(NegativeCount, match="as it were"):
        bb.count(iter([pa.table(spoken(seed)) for seed in range(4)]), "who", threads=2)
    assert added == [0, 1500]
