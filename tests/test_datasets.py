"""The data sets that ship with the package, and the public ones that other tests rely on, are what they should be."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest

from banbury import datasets


def rows(columns: dict[str, list[str]]) -> list[tuple[str, ...]]:
    return list(zip(*columns.values(), strict=True))


def test_play_tennis_is_the_table_of_fourteen_days() -> None:
    weather = datasets.play_tennis()
    assert list(weather) == ["outlook", "temperature", "humidity", "wind", "play"]
    assert len(set(rows(weather))) == 14
    assert rows(weather)[0] == ("sunny", "hot", "high", "weak", "no")
    assert rows(weather)[-1] == ("rain", "mild", "high", "strong", "no")
    assert Counter(zip(weather["outlook"], weather["play"], strict=True)) == {
        ("sunny", "yes"): 2,
        ("sunny", "no"): 3,
        ("overcast", "yes"): 4,
        ("rain", "yes"): 3,
        ("rain", "no"): 2,
    }
    assert Counter(zip(weather["wind"], weather["play"], strict=True))["strong", "no"] == 3


def test_enjoy_sport_is_the_table_of_four_days() -> None:
    days = datasets.enjoy_sport()
    assert list(days) == ["sky", "temp", "humid", "wind", "water", "forecast", "play"]
    assert rows(days) == [
        ("sunny", "warm", "normal", "strong", "warm", "same", "yes"),
        ("sunny", "warm", "high", "strong", "warm", "same", "yes"),
        ("rainy", "cold", "high", "strong", "warm", "change", "no"),
        ("sunny", "warm", "high", "strong", "cool", "change", "yes"),
    ]


def test_wine_has_thirteen_measurements_and_three_cultivars() -> None:
    wines = datasets.wine()
    assert {len(column) for column in wines.values()} == {178}
    assert list(wines)[-1] == "cultivar"
    assert Counter(wines.pop("cultivar")) == {"class_0": 59, "class_1": 71, "class_2": 48}
    assert len(wines) == 13
    assert all(type(value) is float for column in wines.values() for value in column)


def test_a_data_set_changed_by_its_user_is_whole_the_next_time() -> None:
    datasets.play_tennis()["play"].clear()
    assert len(datasets.play_tennis()["play"]) == 14


@pytest.mark.parametrize(
    "name, target, counts",
    [
        ("adult_train", "income", {"<=50K": 24_720, ">50K": 7_841}),
        ("adult_test", "income", {"<=50K": 12_435, ">50K": 3_846}),
        ("mushroom", "class", {"e": 4_208, "p": 3_916}),
        ("car", "class", {"unacc": 1_210, "acc": 384, "good": 69, "vgood": 65}),
        ("house_votes", "party", {"democrat": 267, "republican": 168}),
        ("auto_mpg", "origin", {1: 249, 2: 70, 3: 79}),
    ],
)
def test_public_data_have_their_published_class_counts(
    name: str, target: str, counts: dict[object, int], request: pytest.FixtureRequest
) -> None:
    frame: pd.DataFrame = request.getfixturevalue(name)
    assert frame[target].value_counts().to_dict() == counts


@pytest.mark.parametrize(
    "name, missing",
    [
        ("adult_train", {"workclass": 1_836, "occupation": 1_843, "native_country": 583}),
        ("mushroom", {"stalk_root": 2_480}),
        ("auto_mpg", {"horsepower": 6}),
        ("car", {}),
    ],
)
def test_a_question_mark_is_read_as_missing(name: str, missing: dict[str, int], request: pytest.FixtureRequest) -> None:
    frame: pd.DataFrame = request.getfixturevalue(name)
    found = frame.isna().sum()
    assert found[found > 0].to_dict() == missing


def test_the_numbers_of_adult_are_numbers(adult_train: pd.DataFrame, adult_test: pd.DataFrame) -> None:
    numeric = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
    for frame in (adult_train, adult_test):
        assert frame.select_dtypes("number").columns.tolist() == numeric
