"""Reports: one HTML file with everything in it, whose figures are those of the functions that make them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banbury as bb
from banbury.errors import BadFile, BadSetting, BanburyError, BanburyWarning, EmptyData, UnknownColumn
from banbury.plots.shape import shapes_of
from banbury.quality.calibration import reliability
from banbury.reports import Report, charts, findings
from banbury.rows.labelled import load_rows as held
from test_labels import made

SECTIONS = ["model", "figures", "confusion", "calibration", "learning", "informative", "mistakes", "pairs"]
VOID = {"meta", "wbr"}
HOSTILE = "<script>alert('&\"')</script>"


class Page(HTMLParser):
    """A page as its parser sees it: every tag is closed, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(autouse=True)
def _no_alternatives(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying them takes seconds; tests of them are marked."""
    if "alternatives" not in request.node.name:
        monkeypatch.setattr(findings, "try_alternatives", lambda *args, **kwargs: None)


def check(made: Report) -> Page:
    """What holds for every page."""
    page = Page(made.html)
    next_step = ["next"] if made.findings.alternatives or made.findings.next_steps else []
    sections = [each["id"] for each in page.of("section")]
    model = made.findings.model
    pictures = len(model.classes) > 1 and any(shape.importance > 0 for shape in shapes_of(model, model.classes[1]))
    assert "shapes" in sections or not pictures
    assert [name for name in sections if name != "shapes"] == [*next_step, *SECTIONS]
    for _, attributes in page.tags:
        assert "src" not in attributes and not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert {each["href"] for each in page.of("a")} == {f"#{name}" for name in sections}
    assert not page.of("script") and not page.of("link") and not page.of("img")
    style = "".join(re.findall(r"<style>(.*?)</style>", made.html, re.DOTALL))
    assert "@import" not in style and "url(" not in style and "http" not in style
    assert not re.search(r'style="[^"]*url\(', made.html)
    assert not re.search(r'="[^"]*\b(nan|inf)\b[^"]*"', made.html)
    return page


def model_of(data: Any, target: Any, **settings: Any) -> bb.Model:
    return bb.estimate(bb.count(data, target=target, **settings))


def mail() -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    words = {
        "spam": "free prize money win click now cheap".split(),
        "ham": "meeting notes lunch report monday now".split(),
    }
    kinds = ["spam", "ham", "ham"] * 40
    texts = [" ".join(rng.choice(words[kind if rng.random() < 0.8 else "ham"], 6)) for kind in kinds]
    links = [rng.poisson(4 if kind == "spam" else 1) + 0.5 for kind in kinds]  # numbers, and no categories
    return {"subject": texts, "links": links, "kind": kinds}


# Every kind of data ---------------------------------------------------------------------------------------------------


def numbered_classes(n_classes: int, each: int, n_columns: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    classes = np.repeat(np.arange(n_classes), each)
    columns = {f"column_{i}": classes * rng.normal() + rng.normal(size=len(classes)) for i in range(n_columns)}
    return {**columns, "class": classes}


DATA: dict[str, tuple[Callable[[], Any], str]] = {
    "words": (bb.datasets.play_tennis, "play"),
    "numbers": (bb.datasets.wine, "cultivar"),
    "text beside a number": (mail, "kind"),
    "one column": (lambda: {"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0], "y": [0, 0, 0, 1, 0, 1, 1, 1]}, "y"),
    "booleans": (lambda: {"a": [True, False] * 10 + [True] * 3, "y": [True, False, False] * 7 + [True, True]}, "y"),
    "fifty classes": (lambda: numbered_classes(50, 6, 3), "class"),
    "many columns": (lambda: numbered_classes(3, 20, 130), "class"),
    "missing values": (lambda: {"a": [1.0, None, 3.0, 4.0] * 5, "b": ["x", None] * 10, "y": ["p", "q"] * 10}, "y"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "many columns" else name for name in DATA]
)
def test_every_kind_of_data_has_its_page(name: str, tmp_path: Path) -> None:
    make, target = DATA[name]
    data = make()
    model = model_of(data, target)
    made = bb.report(model, data, path=tmp_path / "report.html")
    check(made)
    expected = bb.cross_validate(data, target, schema=model.schema, folds=min(10, len(data[target])))
    found = made.findings.validation
    assert np.array_equal(found.posteriors, expected.posteriors) and np.array_equal(found.rows, expected.rows)
    assert made.findings.on_training_rows
    assert (tmp_path / "report.html").read_bytes().decode() == made.html


def test_figures_are_those_of_cross_validation() -> None:
    wine = bb.datasets.wine()
    made = bb.report(model_of(wine, "cultivar"), wine)
    expected = bb.cross_validate(wine, "cultivar")
    text = check(made).text
    assert f"{expected.accuracy.value:.2%}" in text and f"± {100 * expected.accuracy.error:.2f}" in text
    for figure in (expected.log_loss, expected.brier, expected.macro_f1, expected.calibration_error):
        assert f"{figure:.4f}" in text
    for figure in (*expected.per_class.precision, *expected.per_class.recall, *expected.per_class.f1):
        assert f"{figure:.4f}" in text
    for row in expected.confusion:
        assert all(f">{n}</td>" in made.html for n in row.tolist() if n)
    assert made.findings.validation.to_dict() == expected.to_dict()
    assert f"{expected.majority:.1%}" in text and f"{expected.auc:.4f}" in text


def test_two_classes_have_an_area_under_the_curve() -> None:
    weather = bb.datasets.play_tennis()
    made = bb.report(model_of(weather, "play"), weather, folds=7)
    auc = bb.cross_validate(weather, "play", folds=7).auc
    assert f"{auc:.4f}" in check(made).text


def test_settings_of_the_model_are_those_of_its_folds() -> None:
    weather = bb.datasets.play_tennis()
    tally = bb.count(weather, target="play")
    model = bb.estimate(tally, how="predictive", alpha=0.5, class_prior={"no": 0.3, "yes": 0.7})
    made = bb.report(model, weather, folds=5, seed=3)
    prior = {"no": 0.3, "yes": 0.7}
    expected = bb.cross_validate(weather, "play", folds=5, seed=3, how="predictive", alpha=0.5, class_prior=prior)
    np.testing.assert_allclose(made.findings.validation.posteriors, expected.posteriors, rtol=1e-14)
    text = check(made).text
    assert "how='predictive'" in text and "α = 0.5" in text and "given" in text


def test_families_chosen_for_the_model_are_those_of_its_folds() -> None:
    wine = bb.datasets.wine()
    model = model_of(wine, "cultivar", features={"alcohol": bb.Histogram(), "hue": bb.KernelDensity(), "ash": None})
    made = bb.report(model, wine)
    expected = bb.cross_validate(wine, "cultivar", schema=model.schema)
    assert np.array_equal(made.findings.validation.posteriors, expected.posteriors)
    assert "10 quantile tree columns, 1 histogram column, 1 kernel density column" in check(made).text


def test_a_tally_is_taken_as_estimate_makes_a_model_of_it() -> None:
    weather = bb.datasets.play_tennis()
    tally = bb.count(weather, target="play")
    assert bb.report(tally, weather).html == bb.report(bb.estimate(tally), weather).html


def test_the_same_report_comes_out_each_time() -> None:
    data = mail()
    model = model_of(data, "kind")
    assert bb.report(model, data).html == bb.report(model, data, threads=1).html


def test_labels_may_be_given_apart() -> None:
    wine = bb.datasets.wine()
    labels = wine.pop("cultivar")
    model = model_of(wine, labels)
    made = bb.report(model, wine, labels)
    assert np.array_equal(made.findings.validation.posteriors, bb.cross_validate(wine, labels).posteriors)
    array = np.array(list(wine.values())).T
    check(bb.report(bb.estimate(bb.count(array, target=labels)), array, labels))


def test_a_list_of_texts_and_a_stream_of_batches_will_do() -> None:
    data = mail()
    texts, kinds = data["subject"], data["kind"]
    check(bb.report(model_of(texts, kinds), texts, kinds))
    frame = pd.DataFrame(data)
    made = bb.report(model_of(data, "kind"), (frame[i : i + 50] for i in range(0, len(frame), 50)))
    assert made.findings.on_training_rows and check(made)


def test_weights_count() -> None:
    weather = bb.datasets.play_tennis()
    weights = np.linspace(0.5, 2.0, 14)
    made = bb.report(model_of(weather, "play", weights=weights), weather, weights=weights)
    assert made.findings.on_training_rows
    expected = bb.cross_validate(weather, "play", weights=weights)
    assert f"{expected.log_loss:.4f}" in check(made).text


def test_rows_without_a_target_are_left_aside_and_told() -> None:
    weather: dict[str, Any] = bb.datasets.play_tennis()
    weather["play"] = [None, *weather["play"][1:]]
    made = bb.report(model_of(weather, "play"), weather)
    assert made.findings.n_rows == 13 and made.findings.unlabelled == 1
    assert "1 row without a target were ignored" in check(made).text


def test_adult(adult_train: pd.DataFrame, tmp_path: Path) -> None:
    model = model_of(adult_train, "income")
    made = bb.report(model, adult_train, path=tmp_path / "adult.html")
    expected = bb.cross_validate(adult_train, "income")
    assert f"{expected.accuracy.value:.2%}" in check(made).text
    assert len(made.html) < 300_000
    assert ("education", "education_num") in [(pair.first, pair.second) for pair in made.findings.diagnosis.pairs]


@pytest.mark.slow
def test_newsgroups(unpacked: Callable[[str], Path], tmp_path: Path) -> None:
    folder = unpacked("20news-bydate") / "20news-bydate-test"
    model = model_of(folder, None)
    made = bb.report(model, folder, path=tmp_path / "news.html", mistakes=5)
    page = check(made)
    assert (tmp_path / "news.html").stat().st_size < 1_000_000
    assert made.findings.on_training_rows and len(made.findings.mistakes) == 5
    for mistake in made.findings.mistakes:
        assert mistake.name is not None and "/".join(Path(mistake.name).parts[-2:]) in page.text
    assert str(folder) not in made.html
    assert made.findings.validation.accuracy.value > 0.7


# What is said of the rows ---------------------------------------------------------------------------------------------


def test_other_rows_than_the_models_own_are_told() -> None:
    wine = bb.datasets.wine()
    even = {name: column[::2] for name, column in wine.items()}
    odd = {name: column[1::2] for name, column in wine.items()}
    model = model_of(even, "cultivar")
    own, other = bb.report(model, even), bb.report(model, odd)
    assert own.findings.on_training_rows and "the rows that the model was trained on" in check(own).text
    assert not other.findings.on_training_rows and "not the rows that the model was trained on" in check(other).text
    expected = bb.evaluate(model, odd)
    assert np.array_equal(other.findings.validation.confusion, expected.confusion)
    assert other.findings.validation.log_loss == expected.log_loss and other.findings.learning_curve is None
    assert str(other).splitlines()[1].startswith("Evaluation of this model as it is: 89 rows")
    assert str(own).splitlines()[1].startswith("10-fold cross-validation of plain naive Bayes: 89 rows")


def test_classes_that_the_model_has_not_counted_are_told() -> None:
    wine = bb.datasets.wine()
    some = {name: column[:120] for name, column in wine.items()}
    made = bb.report(model_of(some, "cultivar"), wine)
    assert made.findings.unknown == ("class_2",)
    assert "The model does not know the classes 'class_2'" in check(made).text


def test_given_probabilities_are_those_of_the_folds() -> None:
    wine = bb.datasets.wine()
    every = bb.estimate(bb.count(wine, target="cultivar"), class_prior=[0.25, 0.25, 0.5])
    made = bb.report(every, wine)
    expected = bb.cross_validate(wine, "cultivar", schema=every.schema, class_prior=[0.25, 0.25, 0.5])
    np.testing.assert_allclose(made.findings.validation.posteriors, expected.posteriors, rtol=1e-12)


# Mistakes -------------------------------------------------------------------------------------------------------------


def test_mistakes_are_those_that_gave_the_true_class_the_least() -> None:
    data = mail()
    made = bb.report(model_of(data, "kind"), data, mistakes=4)
    found = bb.cross_validate(data, "kind")
    given = found.posteriors[np.arange(len(found.truth)), found.truth]
    wrong = np.flatnonzero(found.best != found.truth)
    assert made.findings.n_mistakes == len(wrong) > 4
    worst = sorted(wrong, key=lambda i: (given[i], i))[:4]
    assert [mistake.row for mistake in made.findings.mistakes] == worst
    assert [mistake.probability_truth for mistake in made.findings.mistakes] == [given[i] for i in worst]
    assert [mistake.truth for mistake in made.findings.mistakes] == [data["kind"][i] for i in worst]
    assert len([each for each in check(made).of("details") if each.get("class") == "mistake"]) == 4


@pytest.mark.parametrize("how", ["mean", "predictive", "map"])
@pytest.mark.parametrize("name", ["words", "numbers", "text beside a number"])
def test_a_mistake_is_explained_by_the_model_of_its_fold(name: str, how: Any) -> None:
    make, target = DATA[name]
    data = make()
    made = bb.report(bb.estimate(bb.count(data, target), how=how), data)
    assert made.findings.mistakes
    for mistake in made.findings.mistakes:
        told = mistake.explanation
        assert told is not None
        assert (told.winner, told.against) == (mistake.predicted, mistake.truth)
        assert told.probability == pytest.approx(mistake.probability, rel=1e-9)
        assert told.probability_against == pytest.approx(mistake.probability_truth, rel=1e-9)
        folds = np.full(len(data[target]), -1)
        folds[made.findings.validation.rows] = made.findings.validation.folds
        learned = {
            column: [v for v, f in zip(values, folds, strict=True) if f != mistake.fold]
            for column, values in data.items()
        }
        refitted = bb.estimate(bb.count(learned, target, schema=made.findings.model.schema), how=how)
        row = {column: values[mistake.row] for column, values in data.items() if column != target}
        assert refitted.explain(row, against=mistake.truth).decibans == pytest.approx(told.decibans, rel=1e-9)


def test_probabilities_too_small_for_a_number_are_still_told_apart() -> None:
    rng = np.random.default_rng(0)
    words = {"even": ["one", "two", "three"], "odd": ["four", "five", "six"]}
    labels = ["even", "odd"] * 20
    texts = [" ".join(rng.choice(words[label], 1000)) for label in labels]
    for row, size in ((0, 900), (2, 3000), (4, 1500)):
        texts[row] = " ".join(["five"] * size)
    model = bb.estimate(bb.count({"t": texts, "y": labels}, "y", features={"t": "text"}))
    made = bb.report(model, {"t": texts, "y": labels}, mistakes=2)
    assert [mistake.probability_truth for mistake in made.findings.mistakes] == [0.0, 0.0]
    assert [mistake.row for mistake in made.findings.mistakes] == [2, 4]
    for mistake in made.findings.mistakes:
        assert mistake.explanation is not None
        assert f"true class &lt; 0.1%, {mistake.explanation.decibans:,.1f} decibans less" in made.html


def test_a_class_of_one_row_is_weighed_against_the_runner_up() -> None:
    data = {"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 2.5], "y": ["p", "p", "p", "q", "q", "q", "lonely"]}
    made = bb.report(model_of(data, "y"), data)
    (mistake,) = [mistake for mistake in made.findings.mistakes if mistake.truth == "lonely"]
    assert mistake.explanation is not None and mistake.explanation.against != "lonely"
    assert mistake.probability_truth == 0
    assert "No row of the true class was in the other folds" in check(made).text


def test_with_one_class_left_there_is_nothing_to_weigh() -> None:
    data = {"a": [1.0, 2.0, 3.0], "y": ["p", "q", "q"]}
    made = bb.report(model_of(data, "y"), data)
    alone = [mistake for mistake in made.findings.mistakes if mistake.truth == "p"]
    assert [mistake.explanation for mistake in alone] == [None]
    assert "so there is no evidence to compare" in check(made).text and json.dumps(made.to_dict())


def test_no_mistakes_and_none_wanted() -> None:
    easy = {"a": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2] * 3, "y": ["p", "p", "p", "q", "q", "q"] * 3}
    made = bb.report(model_of(easy, "y"), easy)
    assert made.findings.mistakes == () and "every row was predicted correctly" in check(made).text
    weather = bb.datasets.play_tennis()
    assert "none is shown" in check(bb.report(model_of(weather, "play"), weather, mistakes=0)).text


def test_long_texts_are_cut() -> None:
    data = mail()
    data["subject"] = [f"{text} {'and so on ' * 500}" for text in data["subject"]]
    made = bb.report(model_of(data, "kind", features={"links": "gaussian"}), data)
    assert made.findings.mistakes and "more characters" in check(made).text
    assert len(made.html) < 400_000


# What to do next ------------------------------------------------------------------------------------------------------


def checkerboard(n: int, told: bool = True) -> dict[str, Any]:
    """Neither column alone tells the class; both together do, or not even they."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, n)).round(3)
    return {"a": a, "b": b, "y": np.where(a * b > 0, "p", "q") if told else rng.choice(["p", "q"], n)}


def test_alternatives_are_tried_over_the_same_folds_and_the_best_is_advised() -> None:
    board = checkerboard(400)
    made = bb.report(model_of(board, "y"), board)
    tried = made.findings.alternatives
    assert tried is not None and (tried.folds, tried.n_rows) == (10, 400)
    assert tried.current.log_loss == bb.cross_validate(board, "y").log_loss
    by_option = {each.option: each for each in tried.tried}
    weighed = bb.cross_validate(board, "y", weigh=True)
    assert (by_option["--weigh"].accuracy, by_option["--weigh"].log_loss) == (weighed.accuracy.value, weighed.log_loss)
    assert [each.log_loss for each in tried.tried] == sorted(each.log_loss for each in tried.tried)
    assert {each.option for each in tried.better} >= {
        "--weigh",
        "--tan",
    } and tried.current.accuracy < 0.6 < 0.9 < weighed.accuracy.value
    text = check(made).text
    assert made.findings.next_steps[0] in text and "banbury fit --weigh" in text
    assert json.loads(json.dumps(made.to_dict()))["next_steps"] == list(made.findings.next_steps)
    assert bb.report(model_of(board, "y"), board, alternatives=False).findings.alternatives is None
    assert bb.report(model_of(board, "y"), iter([board])).findings.alternatives is None  # it can be read but once


def test_alternatives_that_do_not_help_are_not_advised() -> None:
    noise = checkerboard(300, told=False)
    made = bb.report(model_of(noise, "y"), noise)
    assert made.findings.alternatives is not None and made.findings.alternatives.tried
    assert not made.findings.alternatives.better
    if not made.findings.next_steps:
        assert "None of the alternatives tried is clearly better" in check(made).text


def test_a_weighed_model_with_pairs_is_judged_by_its_calibration() -> None:
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 300)
    first = np.where(rng.random(300) < 0.8, y, 1 - y)
    rows = {"first": first.astype(str), "again": first.astype(str), "y": y.astype(str)}  # a column twice
    tally = bb.count(rows, "y")
    plain = bb.report(bb.estimate(tally), rows)
    weighed = bb.report(bb.weigh(tally, rows), rows)
    error = weighed.findings.validation.calibration_error
    assert plain.findings.diagnosis.pairs and weighed.findings.diagnosis.pairs
    assert f"its confidence differs from its accuracy by {100 * error:.1f} points" in weighed.html
    assert plain.findings.diagnosis.advice in plain.html and plain.findings.diagnosis.advice not in weighed.html


@pytest.mark.slow
def test_alternatives_of_what_is_weighed_or_calibrated_already() -> None:
    board = checkerboard(300)
    weighed = bb.weigh(bb.count(board, "y", missing="category"), board, "y")
    for model in (
        weighed,
        model_of(board, "y").calibrated(bb.calibrate("platt", np.log([[0.6, 0.4]] * 4), [0, 1, 0, 0])),
    ):
        tried = bb.report(model, board).findings.alternatives
        assert tried is not None
        options = {each.option for each in tried.tried}
        assert "--calibrate temperature" not in options and ("--weigh" in options) == (model is not weighed)


@pytest.mark.slow
def test_alternatives_of_texts_are_no_trees() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    texts = [" ".join(rng.choice(["red", "green", "blue", f"own{c}"], 6)) for c in y]
    made = bb.report(bb.estimate(bb.count({"t": texts, "y": y}, "y", features={"t": "text"})), {"t": texts, "y": y})
    assert made.findings.alternatives is not None
    assert {each.option for each in made.findings.alternatives.tried} == {
        "--weigh",
        "--calibrate temperature",
        "--features choose",
    }


def test_more_rows_are_advised_where_the_curve_still_rises() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 150, 400)
    rows = {"x": x, "y": x * 7 % 5}  # each value of the column is to be met once
    made = bb.report(bb.estimate(bb.count(rows, "y", features="categorical")), rows)
    assert made.findings.more_rows is not None
    first, last, gain, error = made.findings.more_rows
    assert 1.4 * first < last and gain > 2 * error
    curve = made.findings.learning_curve
    assert curve is not None and gain == pytest.approx(
        curve.mean_accuracy[-1] - curve.mean_accuracy[list(curve.sizes).index(first)]
    )
    assert made.findings.next_steps[-1].endswith(f"from {first:,} to {last:,} rows.")


def test_bars_of_classes_end_at_all_rows() -> None:
    rows = {"x": ["a", "b"] * 50, "y": ["yes"] * 75 + ["no"] * 25}
    html = bb.report(model_of(rows, "y"), rows, mistakes=0, alternatives=False).html
    classes = html[html.index("<h3>Classes</h3>") : html.index("<h3>Columns</h3>")]
    assert re.findall(r"width:([0-9.]+)%", classes) == ["25.0", "75.0"]


def test_the_title_names_the_target_and_the_data(tmp_path: Path) -> None:
    wine = bb.datasets.wine()
    pd.DataFrame(wine).to_csv(tmp_path / "wine & co.csv", index=False)
    model = model_of(wine, "cultivar")
    for data, title in ((tmp_path / "wine & co.csv", "Predicting cultivar from wine & co.csv"), (wine, "cultivar")):
        assert check(bb.report(model, data, mistakes=0)).text.count(title) >= 1
    columns = {name: column for name, column in wine.items() if name != "cultivar"}
    unnamed = bb.report(bb.estimate(bb.count(columns, wine["cultivar"])), columns, wine["cultivar"], mistakes=0)
    assert "<h1>Banbury report</h1>" in unnamed.html
    assert "<h1>mine</h1>" in bb.report(model, wine, title="mine", mistakes=0).html


# The other sections ---------------------------------------------------------------------------------------------------


def test_calibration_is_reliability_before_and_after() -> None:
    wine = bb.datasets.wine()
    found = bb.cross_validate(wine, "cultivar")
    model = model_of(wine, "cultivar")
    plain = bb.report(model, wine)
    assert list(plain.findings.reliabilities) == ["out of fold"]
    expected = reliability(found.posteriors, found.truth, bins=10)
    assert plain.findings.reliabilities["out of fold"].error == expected.error
    with np.errstate(divide="ignore"):
        honest = bb.calibrate("temperature", np.log(found.posteriors), found.truth)
    made = bb.report(model.calibrated(honest), wine)
    assert list(made.findings.reliabilities) == ["calibrated", "before calibration"]
    text = check(made).text
    assert "the probabilities before calibration" in text and str(honest) in text
    assert made.html.count('class="mark one"') >= len(made.findings.reliabilities["calibrated"].rows)
    assert made.html.count('class="mark two"') == len(made.findings.reliabilities["before calibration"].rows)


@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_a_calibrated_model_is_reported_by_its_calibrated_figures(method: Any) -> None:
    """As `banbury fit` says them: the posteriors of each fold are calibrated by what was said of the other folds' rows."""
    wine = bb.datasets.wine()
    found = bb.cross_validate(wine, "cultivar")
    with np.errstate(divide="ignore"):
        scores = np.log(found.posteriors)
    expected = np.empty_like(found.posteriors)
    for fold in range(10):
        own = found.folds == fold
        expected[own] = bb.calibrate(method, scores[~own], found.truth[~own]).apply(scores[own])
    honest = bb.calibrate(method, scores, found.truth)
    made = bb.report(model_of(wine, "cultivar").calibrated(honest), wine)
    told = made.findings.validation
    np.testing.assert_allclose(told.posteriors, expected, atol=1e-6)
    assert made.findings.before_calibration is not None
    assert made.findings.before_calibration.log_loss == pytest.approx(found.log_loss, rel=1e-9)
    assert f"<b>{told.log_loss:.4f}</b>" in made.html
    assert f"Before calibration the log loss was {found.log_loss:.4f}" in made.html
    for mistake in made.findings.mistakes:
        why = mistake.explanation
        assert why is not None and why.uncalibrated is not None
        assert (why.probability, why.winner) == (pytest.approx(mistake.probability, rel=1e-6), mistake.predicted)


def test_the_learning_curve_and_the_diagnosis_are_the_functions_own() -> None:
    wine = bb.datasets.wine()
    made = bb.report(model_of(wine, "cultivar"), wine)
    curve = bb.learning_curve(wine, "cultivar")
    assert made.findings.learning_curve is not None
    assert made.findings.learning_curve.to_dict() == curve.to_dict()
    learning = made.html.split('<section id="learning">')[1].split("</section>")[0]
    assert learning.count('<polygon class="band one"') == 2 and "5 times; the band is the standard error" in learning
    told = bb.diagnose(wine, "cultivar")
    assert made.findings.diagnosis.to_dict() == told.to_dict()
    text = check(made).text
    assert told.advice in text and all(f"{pair.first} / {pair.second}" in text for pair in told.pairs)


def test_a_curve_of_one_repeat_has_no_band() -> None:
    wine = bb.datasets.wine()
    weighed = bb.weigh(model_of(wine, "cultivar"), wine, "cultivar")  # which takes long: once
    text = check(bb.report(weighed, wine, mistakes=0, alternatives=False)).text
    assert "the band is the standard error" not in text


def test_too_few_rows_for_a_curve_are_told() -> None:
    data = {"a": [1.0, 2.0, 3.0, 4.0], "y": ["p", "q", "r", "s"]}
    made = bb.report(model_of(data, "y"), data)
    assert made.findings.learning_curve is None
    assert "Not drawn: of 4 rows, two thirds cannot contain a row of each of the 4 classes" in check(made).text
    six, weights = {"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": ["p", "q", "r", "p", "q", "r"]}, [1, 1, 1, 0, 0, 0]
    made = bb.report(model_of(six, "y", weights=weights), six, weights=weights)
    assert "Not drawn: of 3 rows" in check(made).text


def test_of_very_many_rows_a_sample_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MOST_ROWS_MEASURED", 90)
    wine = bb.datasets.wine()
    model = model_of(wine, "cultivar")
    made = bb.report(model, wine)
    assert made.findings.n_sampled == 90 and len(made.findings.validation.truth) == 178
    assert made.findings.learning_curve is not None and made.findings.learning_curve.n_rows == 90
    assert made.findings.diagnosis.n_rows == 90
    assert check(made).text.count("sample of 90 rows") == 2
    assert made.html == bb.report(model, wine).html != bb.report(model, wine, seed=1).html


def test_values_of_column_are_the_models_own() -> None:
    data = mail()
    model = model_of(data, "kind")
    made = bb.report(model, data, informative=3)
    assert made.findings.informative == model.informative(3)
    text = check(made).text
    assert all(
        made.findings.informative.shown(r) in text for rows in model.informative(3).ratios.values() for r in rows
    )


def test_of_very_many_classes_the_most_frequent_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MOST_CLASSES", 2)
    data = {"a": [1.0, 2.0, 1.5, 4.0, 5.0, 9.0, 9.5, 10.0], "y": ["p", "p", "p", "q", "q", "r", "r", "r"]}
    made = bb.report(model_of(data, "y"), data)
    assert list(made.findings.informative.ratios) == ["p", "r"] and "… and 1 more class" in check(made).text


def test_a_matrix_that_could_not_be_read_gives_way_to_a_list() -> None:
    data = numbered_classes(50, 6, 3)
    html = bb.report(model_of(data, "class"), data).html
    assert '<div class="box matrix' not in html and "Most frequent confusions" in html
    data = numbered_classes(20, 6, 3)
    html = bb.report(model_of(data, "class"), data).html
    assert '<div class="box matrix many"' in html and "Most frequent confusions" in html


def test_impossible_rows_are_answered_and_warned_of() -> None:
    data = {"a": ["u", "u", "v", "v", "u"], "b": ["s", "s", "t", "t", "t"], "y": ["p", "p", "q", "q", "p"]}
    model = bb.estimate(bb.count(data, target="y"), how="mle")
    with pytest.warns(BanburyWarning, match="every class is impossible"):
        made = bb.report(model, data)
    assert "zeros stay zero" in check(made).text


# Escaping -------------------------------------------------------------------------------------------------------------


def hostile() -> dict[str, list[Any]]:
    texts = [f"{HOSTILE} {word} of many" for word in ("this", "that", "those", "these")] * 6
    values = [HOSTILE, "b", "c", "d", HOSTILE] * 5
    classes = [HOSTILE, "</style>"] * 12
    return {"<b>text": texts, f"{HOSTILE}&": values[:24], "y<i>": classes}


def test_whatever_comes_from_data_is_escaped(tmp_path: Path) -> None:
    data = hostile()
    made = bb.report(model_of(data, "y<i>"), data, title=HOSTILE, path=tmp_path / "<b>.html")
    page = check(made)
    assert "<script" not in made.html and "<b>text" not in made.html and "<i>&" not in made.html
    assert made.html.count("</style>") == 2 == len(page.of("style"))
    assert HOSTILE in page.text and "<b>text" in page.text and "y<i>" in page.text


def test_names_of_files_are_escaped(tmp_path: Path) -> None:
    for label in ("ham", "spam"):
        (tmp_path / label).mkdir()
        for i in range(6):
            (tmp_path / label / f"<img src=x>{i}&.txt").write_text(f"some words {i} of text")
    made = bb.report(model_of(tmp_path, None), tmp_path)
    page = check(made)
    assert made.findings.mistakes and all("<img src=x>" in str(each.name) for each in made.findings.mistakes)
    assert "<img src=x>" in page.text


NAMES = st.text(min_size=1).filter(lambda name: not re.search(r"\b(nan|inf)\b", name))  # no attribute may hold these


@given(NAMES, NAMES)
def test_any_names_make_a_page_that_parses(label: str, column: str) -> None:
    other = label + "!"
    data = {column: ["u", "v", "u", "w"] * 2, column + "2": [0.0, 1.0, 2.0, 3.5] * 2}
    labels = [label, other] * 4
    model = bb.estimate(bb.count(data, target=labels, features={column: "categorical"}))
    check(bb.report(model, data, labels, title=label)).text.encode()


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weather = bb.datasets.play_tennis()
    model, path = model_of(weather, "play"), tmp_path / "report.html"
    path.write_text("the old report")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(BadFile, match="No space left on device"):
            bb.report(model, weather, path=path)
    with pytest.raises(UnknownColumn):
        bb.report(model, {"outlook": ["sunny"], "play": ["no"]}, path=path)
    assert path.read_text() == "the old report" and list(tmp_path.iterdir()) == [path]
    made = bb.report(model, weather, path=path)
    assert path.read_text(encoding="utf-8") == made.html and list(tmp_path.iterdir()) == [path]
    assert made.path == path


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    weather = bb.datasets.play_tennis()
    made = bb.report(model_of(weather, "play"), weather)
    assert made.path is None and list(tmp_path.iterdir()) == [] and "not written to a file" in str(made)


def unwritable(folder: Path) -> Iterator[tuple[Any, type[BanburyError], str]]:
    yield folder, BadFile, "it is a folder"
    yield folder / "absent" / "report.html", BadFile, "does not exist"
    yield "a\0b.html", BadFile, "cannot write"
    yield 5, BadSetting, "path must be"


@pytest.mark.parametrize("number", range(4))
def test_a_path_that_cannot_be_written_is_told_before_the_rows_are_read(number: int, tmp_path: Path) -> None:
    path, error, message = list(unwritable(tmp_path))[number]

    def rows() -> Iterator[Any]:
        pytest.fail("the rows were read")
        yield

    with pytest.raises(error, match=message):
        bb.report(model_of(bb.datasets.play_tennis(), "play"), rows(), path=path)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_told(tmp_path: Path) -> None:
    weather = bb.datasets.play_tennis()
    tmp_path.chmod(0o500)
    with pytest.raises(BadFile, match="is not writable"):
        bb.report(model_of(weather, "play"), weather, path=tmp_path / "report.html")


# What is refused ------------------------------------------------------------------------------------------------------


def tennis(**changes: Any) -> dict[str, Any]:
    return {**bb.datasets.play_tennis(), **changes}


@pytest.mark.parametrize(
    "data, error, message",
    [
        ({name: column for name, column in tennis().items() if name != "play"}, UnknownColumn, "no column 'play'"),
        (tennis(play=[None] * 14), EmptyData, "is missing in all 14 rows"),
        ({name: column for name, column in tennis().items() if name != "wind"}, UnknownColumn, "no column 'wind'"),
        (tennis(play=["yes"] * 14), BadSetting, "the data must have at least two classes.*'yes'"),
        ({name: [] for name in tennis()}, EmptyData, "it has no rows"),
        ([], EmptyData, "the list is empty"),
        ("no such file.csv", BadFile, "does not exist"),
    ],
)
def test_data_that_do_not_fit_are_refused(data: Any, error: type[BanburyError], message: str) -> None:
    with pytest.raises(error, match=message):
        bb.report(model_of(bb.datasets.play_tennis(), "play"), data)


def test_labels_apart_must_be_given_again() -> None:
    texts, kinds = mail()["subject"], mail()["kind"]
    with pytest.raises(BadSetting, match="target must be"):
        bb.report(model_of(texts, kinds), texts)


def test_a_model_of_one_class_is_refused() -> None:
    weather = bb.datasets.play_tennis()
    model = model_of(tennis(play=["yes"] * 14), "play")
    with pytest.raises(BadSetting, match="the model must have at least two classes"):
        bb.report(model, weather)


@pytest.mark.parametrize(
    "settings",
    [
        {"folds": 1},
        {"folds": "loo"},
        {"folds": True},
        {"mistakes": -1},
        {"mistakes": 2.5},
        {"informative": 0},
        {"seed": -1},
        {"title": 3},
        {"alternatives": 1},
        {"weights": np.ones((14, 2))},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    weather = bb.datasets.play_tennis()
    with pytest.raises(BadSetting, match=next(iter(settings))):
        bb.report(model_of(weather, "play"), weather, **settings)


def test_what_is_no_model_and_what_is_no_keyword_are_refused() -> None:
    weather = bb.datasets.play_tennis()
    with pytest.raises(BadSetting, match="model must be a Model, a LabelModel, a Tally or an estimator"):
        bb.report(weather, weather)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"unknown keyword 'cv'.*folds"):
        bb.report(model_of(weather, "play"), weather, cv=5)


# The result -----------------------------------------------------------------------------------------------------------


def test_the_result_is_json_and_prints_its_figures(tmp_path: Path) -> None:
    wine = bb.datasets.wine()
    made = bb.report(model_of(wine, "cultivar"), wine, path=tmp_path / "wine.html")
    told = json.loads(json.dumps(made.to_dict()))
    assert told["path"] == str(tmp_path / "wine.html") and told["bytes"] == (tmp_path / "wine.html").stat().st_size
    assert told["validation"]["accuracy"] == made.findings.validation.accuracy.value
    assert len(told["mistakes"]) == len(made.findings.mistakes) > 0 and told["mistakes"][0]["evidence"]
    assert str(made).splitlines()[0].endswith("wine.html)") and str(made.findings.validation) in str(made)


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    weather = bb.datasets.play_tennis()
    made = bb.report(model_of(weather, "play"), weather)
    (frame,) = Page(made._repr_html_()).of("iframe")
    assert frame["srcdoc"] == made.html


def test_files_of_rows_have_their_names() -> None:
    rows = held(mail(), "kind")
    assert rows.row_name(3) is None
    named = replace(rows, batches=(rows.batches[0].slice(0, 70), rows.batches[0].slice(70, 120)))
    named.batches[1].row_names = [f"file {i}" for i in range(50)]
    assert named.row_name(69) is None and named.row_name(70) == "file 0"
    assert named.row_name(119) == "file 49"


# Charts ---------------------------------------------------------------------------------------------------------------


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_axes_hold_what_they_are_made_for(a: float, b: float) -> None:
    low, high = sorted((a, b))
    axis = charts.linear_axis("", low, high, str, 0.01)
    assert axis.low <= low * (1 + 1e-6) + 1e-9 and axis.high >= high * (1 - 1e-6)
    assert 2 <= len(axis.ticks) <= 10 and len(set(axis.ticks)) == len(axis.ticks)
    assert axis.share(axis.low) == 0 and axis.share(axis.high) == 1


@given(st.integers(1, 10**9), st.integers(0, 10**9))
def test_logarithmic_axes_are_marked_at_whole_numbers_within(low: int, more: int) -> None:
    axis = charts.logarithmic_axis("", low, low + more)
    assert 1 <= len(axis.ticks) <= 10
    assert all(low * 0.999 <= tick <= max(low + more, 1.1 * low) * 1.001 for tick in axis.ticks)
    assert all(tick == pytest.approx(round(tick)) for tick in axis.ticks)


# In a browser ---------------------------------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium")


def chromium(folder: Path, *arguments: str) -> str:
    assert CHROMIUM is not None
    quiet = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'profile'}",
    ]
    done = subprocess.run([CHROMIUM, *quiet, *arguments], capture_output=True, text=True, timeout=600, check=True)
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_browser_draws_it_by_day_and_by_night(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    wine = bb.datasets.wine()
    made = bb.report(model_of(wine, "cultivar"), wine, path=tmp_path / "wine.html")
    assert made.path is not None
    brightness = []
    for scheme in (0, 1):
        picture = tmp_path / f"{scheme}.png"
        settings = f"--blink-settings=preferredColorScheme={scheme}"
        chromium(tmp_path, settings, "--window-size=1200,3000", f"--screenshot={picture}", made.path.as_uri())
        pixels = np.asarray(image.open(picture).convert("RGB"), dtype=np.int64)
        assert pixels.shape == (3000, 1200, 3)
        for part in np.split(pixels @ [1 << 16, 1 << 8, 1], 3):
            assert len(np.unique(part)) > 20
        brightness.append(pixels.mean())
    assert brightness[0] < 80 < 200 < brightness[1]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("name", ["text beside a number", "fifty classes", "many columns"])
def test_a_narrow_window_need_not_be_scrolled_sideways(name: str, tmp_path: Path) -> None:
    make, target = DATA[name]
    data = make()
    made = bb.report(model_of(data, target), data, title="a_very_long_name_of_a_model_" * 5)
    (tmp_path / "report.html").write_text(made.html, encoding="utf-8")
    frame = '<iframe src="report.html" style="width:360px;height:4000px" onload="measure(this)"></iframe>'
    script = "<script>function measure(frame) { document.title = frame.contentDocument.documentElement.scrollWidth }</script>"
    (tmp_path / "narrow.html").write_text(f"<title></title>{script}{frame}", encoding="utf-8")
    shown = chromium(tmp_path, "--allow-file-access-from-files", "--dump-dom", (tmp_path / "narrow.html").as_uri())
    assert re.search("<title>(.*)</title>", shown)[1] == "360"  # type: ignore[index]


def test_importing_banbury_does_not_load_reports() -> None:
    code = "import banbury, sys; assert 'banbury.reports' not in sys.modules; banbury.report"
    python = import_module("sys").executable
    subprocess.run(
        [python, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(import_module("sys").path)}
    )


# Several labels per row -----------------------------------------------------------------------------------------------

LABEL_SECTIONS = ["figures", "model", "informative", "mistakes"]


def ids(page: Page) -> list[str | None]:
    return [attributes.get("id") for tag, attributes in page.tags if tag == "section"]


@pytest.mark.parametrize("weigh", [False, True])
def test_a_model_of_labels_is_judged_by_folds_of_its_own_rows(weigh: bool, tmp_path: Path) -> None:
    texts, sets = made(150)
    model = bb.MultiLabelClassifier(weigh=weigh).fit({"text": texts}, sets).model_
    report = bb.report(model, {"text": texts}, sets, tmp_path / "labels.html", folds=3, mistakes=4, informative=2)
    found = report.findings
    settings: dict[str, Any] = {"alpha": model.choice.alpha, "weigh": weigh}
    again = bb.cross_validate({"text": texts}, sets, folds=3, schema=model.schema, **settings)
    assert found.on_training_rows
    assert found.validation.micro_f1 == again.micro_f1
    assert [own.ratios.keys() for own in found.informative] == [{label: 0}.keys() for label in ("a", "b", "c", "d")]
    lost = again.truth & ~again.predicted
    assert found.n_missed == int(lost.any(axis=1).sum())
    for each in found.missed:
        assert each.label in sets[each.row]
        assert each.label not in each.predicted
    page = Page(report.html)
    assert ids(page) == LABEL_SECTIONS
    assert report.path is not None
    assert report.path.read_text(encoding="utf-8") == report.html
    marks = [attributes for tag, attributes in page.tags if tag == "circle"]
    assert len(marks) == 4
    assert json.loads(json.dumps(report.to_dict()))["evaluation"] == json.loads(json.dumps(again.to_dict()))
    assert f"micro F1         {again.micro_f1:.4f}" in str(report)


def test_a_model_of_labels_is_judged_as_it_is_by_other_rows() -> None:
    texts, sets = made(150)
    model = bb.LabelModel.of(bb.count({"text": texts, "topics": sets}, target="topics"))
    other = {"text": ["a1 a2 b3 zz", "w1 w2 c3", HOSTILE], "topics": [["a", "d"], ["c", "new"], [HOSTILE]]}
    report = bb.report(model, other)
    found = report.findings
    assert not found.on_training_rows
    assert found.validation.labels[4:] == tuple(sorted(["new", HOSTILE]))
    assert found.validation.micro_f1 == bb.evaluate(model, other).micro_f1
    told = {each.label: each.explanation for each in found.missed}
    assert told["new"] is None
    assert told["d"].to_dict() == model.explain("a1 a2 b3 zz", "d").to_dict()
    assert HOSTILE not in report.html
    assert ids(Page(report.html)) == LABEL_SECTIONS
    assert "the model does not know" in report.html
    tally = bb.report(model.tally, other)
    assert tally.findings.validation.micro_f1 == found.validation.micro_f1
    with pytest.raises(BadSetting, match="the labels of the rows"):
        bb.report(bb.LabelModel.of(bb.count(texts, target=sets)), {"text": texts})


def test_a_missed_label_is_explained_without_its_row() -> None:
    texts = ["wheat corn harvest field"] * 6 + ["crude oil barrel pipe"] * 6 + ["quiet day in town"]
    sets = [["grain"]] * 6 + [["fuel"]] * 6 + [["rare"]]
    model = bb.LabelModel.of(bb.count({"text": texts}, target=sets))
    found = bb.report(model, {"text": texts}, sets, folds=13).findings
    [missed] = [each for each in found.missed if each.label == "rare"]
    assert missed.explanation is None  # no other row has it
    assert missed.row == 12


def test_the_command_line_writes_a_page_of_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from banbury.cli import main

    texts, sets = made(120)
    rows, model, page = tmp_path / "papers.ndjson", tmp_path / "papers.banbury", tmp_path / "papers.html"
    rows.write_text("".join(json.dumps({"text": t, "topics": s}) + "\n" for t, s in zip(texts, sets, strict=True)))
    bb.save(bb.LabelModel.of(bb.count(rows, target="topics")), model)
    assert main(["report", str(model), str(rows), "-o", str(page), "--folds", "3"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["micro_f1"] == bb.cross_validate(rows, "topics", folds=3, threshold=None).micro_f1
    assert ids(Page(page.read_text(encoding="utf-8"))) == LABEL_SECTIONS
