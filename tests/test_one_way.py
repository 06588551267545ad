"""Every command judges the model that fit keeps; options refine it; estimators may come first."""

from __future__ import annotations

import csv
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import banbury as bb
from banbury import cli
from banbury.cli import judging
from banbury.quality.label_recipes import PlainLabels, WeighedLabels
from banbury.quality.recipes import Plain, Weighed
from banbury.quality.validation import default_folds
from banbury.rows.labelled import load_rows, stream_rows
from banbury.service.inspection import Inspection
from banbury.service.state import ServedState

N = 400
FIGURES = ("accuracy", "log_loss")


def passengers(n: int = N, seed: int = 0) -> dict[str, Any]:
    """Like a list of passengers: numbers, categories, gaps, an almost unique ticket, and who survived."""
    rng = np.random.default_rng(seed)
    pclass, sex = rng.integers(1, 4, n), rng.choice(["male", "female"], n, p=[0.65, 0.35])
    age = np.where(rng.random(n) < 0.2, np.nan, rng.normal(30, 12, n).clip(1, 80).round(1))
    fare = np.exp(rng.normal(4.5 - pclass, 0.5)).round(2)
    cabin = np.where(rng.random(n) < 0.3 * (4 - pclass), rng.choice(list("ABC"), n), None)
    odds = 1.5 * (sex == "female") * (4 - pclass) - 1.6 + 0.8 * (np.nan_to_num(age, nan=30) < 14)
    survived = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
    ticket = [f"{rng.choice(['A/5', 'PC', 'STON'])} {rng.integers(1000, 4000)}" for _ in range(n)]
    columns = {"Pclass": pclass, "Sex": sex, "Age": age, "Fare": fare, "Ticket": ticket, "Cabin": cabin}
    return {**columns, "Survived": survived}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(passengers()).to_csv("train.csv", index=False)
    pd.DataFrame(passengers(seed=1)).to_csv("test.csv", index=False)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert cli.main([*words, "--json"]) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out) if code == 0 else capsys.readouterr().err


def figures(facts: Any) -> list[float]:
    return [facts[name] for name in FIGURES]


@pytest.mark.usefixtures("here")
def test_every_command_prints_the_figures_of_fit(capsys: pytest.CaptureFixture[str]) -> None:
    fitted = run(capsys, "fit", "train.csv", "--target", "Survived", "-o", "m.banbury")
    model = bb.load("m.banbury")
    assert model.weighing is not None
    assert figures(run(capsys, "cross-validate", "train.csv", "--target", "Survived")) == figures(fitted)
    assert figures(run(capsys, "report", "m.banbury", "train.csv", "--no-alternatives")) == figures(fitted)
    tuned = run(capsys, "tune", "train.csv", "--target", "Survived", "-o", "t.banbury")
    best = tuned["settings"][0]
    assert best["weigh"] is True and [best["accuracy"], best["log_loss"]] == figures(fitted)
    assert bb.load("t.banbury").weighing is not None
    curve = run(capsys, "learning-curve", "train.csv", "--target", "Survived", "--sizes", "150,1.0")
    assert curve["name"] == "weighed evidence" and curve["repeats"] == 1
    assert "by weighed evidence" in run(capsys, "suspicious", "train.csv", "--target", "Survived")["method"]
    there = run(capsys, "evaluate", "m.banbury", "test.csv")
    assert figures(run(capsys, "report", "m.banbury", "test.csv", "-o", "r.html")) == figures(there)
    assert "This model predicted 400 rows" in Path("r.html").read_text()


def letters(n: int = 2_400) -> dict[str, Any]:
    """Columns that are independent given the class, so that there is nothing to weigh."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, n)
    shares = rng.dirichlet(np.ones(4) * 2, (3, 5))
    columns = {name: ["abcd"[rng.choice(4, p=shares[c, j])] for c in kind] for j, name in enumerate(NUMBERS)}
    return {**columns, "kind": ["xyz"[c] for c in kind]}


NUMBERS = ("one", "two", "three", "four", "five")


@pytest.mark.parametrize("options, folds", [([], 3), (["--plain"], 10), (["--folds", "5"], 5), (["--hold", "0"], 3)])
def test_a_plain_winner_is_judged_over_the_folds_on_which_it_won(
    options: list[str], folds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = letters()
    pd.DataFrame(rows).to_csv("letters.csv", index=False)
    words = ["letters.csv", "--target", "kind", *options]
    fitted = run(capsys, "fit", *words, "-o", "m.banbury")
    model: Any = bb.load("m.banbury")
    assert model.weighing is None and fitted["folds"] == folds
    same = [
        run(capsys, "cross-validate", *words),
        run(capsys, "report", "m.banbury", "letters.csv", "--no-alternatives"),
    ]
    assert [[each["folds"], *figures(each)] for each in same] == [[folds, *figures(fitted)]] * 2
    if options != ["--hold", "0"]:  # tune has all rows in memory
        tuned = run(capsys, "tune", *words, "-o", "t.banbury")
        plain = next(each for each in tuned["settings"] if "weigh" not in each)
        assert [tuned["folds"], plain["accuracy"], plain["log_loss"]] == [folds, *figures(fitted)]
        assert bb.report(bb.load("t.banbury"), rows, "kind", alternatives=False).findings.n_folds == folds
    labels = rows.pop("kind")
    kept = [({name: column[k] for name, column in rows.items()}, labels[k]) for k in range(len(labels))]
    with ServedState.of(pickle.loads(pickle.dumps(model)), tmp_path / "state", learned=lambda _: kept) as state:
        inspected = Inspection(state).overview()["validation"]
    assert inspected["method"] == f"{folds}-fold cross-validation of plain naive Bayes"
    assert figures(inspected) == figures(fitted)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "options, unused",
    [
        (["--features", "Pclass=categorical"], None),
        (["--features", "Ticket=none"], None),
        (["--missing", "skip"], None),
        (["--alpha", "2"], "--alpha"),
        (["--alpha", "auto"], "--alpha"),
        (["--how", "map"], "--how map"),
        (["--calibrate", "platt"], "--calibrate"),
        (["--class-prior", "uniform"], None),
    ],
)
def test_options_refine_and_do_not_lose_the_weighed_model(
    options: list[str], unused: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = run(capsys, "fit", "train.csv", "--target", "Survived", *options, "-o", "m.banbury")
    assert bb.load("m.banbury").weighing is not None
    plain, weighed = (
        next(note for note in facts["notes"] if note.startswith(f"{name:8}  ")) for name in ("plain", "weighed")
    )
    assert "log loss" in plain and "the same folds" in weighed
    told = [note for note in facts["notes"] if note.startswith("weighed evidence does not use")]
    assert told == ([] if unused is None else [f"weighed evidence does not use {unused}"])
    assert figures(run(capsys, "cross-validate", "train.csv", "--target", "Survived", *options)) == figures(facts)


@pytest.mark.usefixtures("here")
def test_only_plain_means_plain_and_what_implies_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for options, said in [
        (["--plain"], None),
        (["--how", "gibbs"], "--how gibbs"),
        (["--how", "predictive"], "--how"),
        (["--tan"], "--tan"),
    ]:
        facts = run(capsys, "fit", "train.csv", "--target", "Survived", *options, "-o", "m.banbury")
        assert bb.load("m.banbury").weighing is None
        told = [note for note in facts["notes"] if note.startswith("not weighed: ")]
        assert (said is None and not told) or said in told[0]
    for options in (["--weigh", "--plain"], ["--weigh", "--tan"], ["--weigh", "--how", "gibbs"]):
        assert "--weigh must be" in run(capsys, "fit", "train.csv", "--target", "Survived", *options, code=2)


@pytest.mark.usefixtures("here")
def test_without_cross_validation_it_weighs_and_says_that_nothing_was_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = run(capsys, "fit", "train.csv", "--target", "Survived", "--no-cross-validate", "-o", "m.banbury")
    assert bb.load("m.banbury").weighing is not None and facts["notes"] == [
        "weighed, without comparing it with plain naive Bayes"
    ]
    pd.DataFrame(passengers(60)).to_csv("few.csv", index=False)
    few = run(capsys, "fit", "few.csv", "--target", "Survived", "--no-cross-validate", "-o", "m.banbury")
    assert bb.load("m.banbury").weighing is None and few["notes"] == [
        "not weighed, because weighing takes at least 100 rows"
    ]


@pytest.mark.usefixtures("here")
def test_larger_input_is_counted_whole_and_weighed_on_a_sample(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = run(capsys, "fit", "train.csv", "--target", "Survived")
    all_rows = run(capsys, "fit", "train.csv", "--target", "Survived", "--hold", "0")
    assert figures(all_rows) == figures(here) and all_rows["notes"] == here["notes"]
    monkeypatch.setattr(judging, "MOST_ROWS", 300)
    facts = run(capsys, "fit", "train.csv", "--target", "Survived", "--hold", "0", "-o", "m.banbury")
    model = bb.load("m.banbury")
    assert model.weighing is not None and model.n_rows == N
    assert any(note.startswith("weights are learned from a sample of 300 rows") for note in facts["notes"])
    assert any(note.startswith("on the sample, chose weighed") for note in facts["notes"])
    several = run(capsys, "fit", "train.csv", "--target", "Survived", "--hold", "0", "--plain", "--alpha", "0.1,1,10")
    assert any("is the best of 3 by log loss" in note for note in several["notes"])
    assert "needs" in run(
        capsys, "fit", "train.csv", "--target", "Survived", "--hold", "0", "--calibrate", "platt", code=2
    )
    streamed = run(capsys, "cross-validate", "train.csv", "--target", "Survived", "--hold", "0", "--plain")
    plain = run(capsys, "cross-validate", "train.csv", "--target", "Survived", "--plain")
    assert figures(streamed) == figures(plain)


@pytest.mark.usefixtures("here")
def test_a_small_sample_teaches_weights_of_a_model_that_counts_all_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "MOST_ROWS", 300)
    words = ["fit", "train.csv", "--target", "Survived", "--weigh"]
    facts = run(capsys, *words, "--hold", "0", "-o", "m.banbury")
    sampled: Any = bb.load("m.banbury")
    run(capsys, *words, "-o", "h.banbury")
    held: Any = bb.load("h.banbury")
    assert any(
        note.startswith("weights are learned from a sample of 300 rows; models count all") for note in facts["notes"]
    )
    assert sampled.tally == held.tally and facts["rows"] == N
    assert not np.array_equal(sampled.weighing.weights.weights, held.weighing.weights.weights)


def test_a_sample_of_streamed_rows_counts_all_others() -> None:
    data = passengers()
    rows = stream_rows(data, "Survived")
    for counting in ({}, {"missing": "category", "trees": "all"}):
        own = rows.under(counting)
        sample = own.sample(50)
        assert sample.n_rows < N and sample.tally == own.tally == bb.count(data, target="Survived", schema=own.schema)
    plain, weighed = rows.sample(50), rows.under({"missing": "category", "trees": "all"}).sample(50)
    assert plain.labels.tolist() == weighed.labels.tolist()


def test_rows_under_another_schema_are_those_that_were_read_so() -> None:
    data = passengers()
    for counting in (
        {"missing": "category", "trees": "all"},
        {"features": {"Fare": "gaussian"}},
        {"missing": "category"},
    ):
        again = load_rows(data, "Survived", **counting)
        assert load_rows(data, "Survived").under(counting).schema == again.schema
        assert load_rows(data, "Survived").under(counting).tally == again.tally


def test_the_number_of_folds_is_one_decision() -> None:
    assert default_folds(1_999, [Plain(), Weighed()]) == 10 and default_folds(2_000, [Plain(), Weighed()]) == 3
    assert default_folds(5_000, [Plain()]) == 10 and default_folds(4, [Plain()]) == 4


@pytest.mark.usefixtures("here")
def test_a_target_that_was_measured_is_counted_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    table = passengers(600)
    table["Fare"] = (np.arange(600) * 7 % 172).astype(int)
    pd.DataFrame(table).to_csv("fares.csv", index=False)
    facts = run(capsys, "fit", "fares.csv", "--target", "Fare", "-o", "m.banbury")
    assert bb.load("m.banbury").weighing is None and len(facts["classes"]) == 172
    assert any(
        "not weighed, because it would take long; add --weigh to do it anyway" in note for note in facts["notes"]
    )
    assert not any(re.search(r"--weigh 0\.", note) for note in facts["notes"])  # nor is it tried as a way out


# Estimators first -----------------------------------------------------------------------------------------------------


def split() -> tuple[pd.DataFrame, Any]:
    frame = pd.DataFrame(passengers())
    return frame.drop(columns="Survived"), frame["Survived"]


@pytest.mark.parametrize("make", [bb.NaiveBayesClassifier, bb.EvidenceClassifier, bb.TANClassifier])
def test_an_estimator_may_come_first(make: Any, tmp_path: Path) -> None:
    X, y = split()
    clf = make().fit(X, y)
    rows = X.drop(columns="Ticket")
    fitted = make().fit(rows, y)
    judged = bb.cross_validate(clf, X, y, folds=3)
    assert re.match("3-fold cross-validation of .*: 400 rows", str(judged))
    evaluated = bb.evaluate(fitted, rows, y)
    assert evaluated.accuracy.value == pytest.approx(fitted.score(rows, y))
    assert "the rows that the model was trained on" in evaluated.notes[0]
    bb.save(fitted, tmp_path / "m.banbury")
    np.testing.assert_allclose(bb.load(tmp_path / "m.banbury").posterior(rows), fitted.predict_proba(rows), rtol=1e-9)
    assert len(bb.suspicious(fitted, rows, y, n=3).rows) == 3
    assert bb.learning_curve(fitted, rows, y, sizes=[200], repeats=1).sizes.tolist() == [200]
    assert len(bb.next_to_label(fitted, rows, n=3).rows) == 3
    assert bb.report(fitted, rows, y, alternatives=False).findings.on_training_rows
    assert bb.plots.EvidenceDisplay.from_estimator(fitted, rows.iloc[:1]).figure_ is not None
    assert bb.plots.CalibrationDisplay.from_estimator(fitted, rows, y).figure_ is not None
    assert bb.plots.ConfusionMatrixDisplay.from_estimator(fitted, rows, y).figure_ is not None
    assert (
        bb.plots.LearningCurveDisplay.from_estimator(fitted, rows, y, sizes=[100, 200], repeats=1).figure_ is not None
    )


def test_what_comes_first_and_is_no_estimator_of_ours_is_refused() -> None:
    from sklearn.linear_model import LogisticRegression

    X, y = split()
    for verb in (bb.cross_validate, bb.suspicious, bb.learning_curve):
        with pytest.raises(bb.BanburyError, match="a Banbury estimator, such as"):
            verb(LogisticRegression(), X, y)
    with pytest.raises(bb.BanburyError, match="y must be omitted unless an estimator comes first"):
        bb.cross_validate(X, y, y)
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        bb.save(bb.NaiveBayesClassifier(), "nothing.banbury")
    with pytest.raises(bb.BanburyError, match=r"labels.*399|399.*labels|400"):
        bb.evaluate(bb.NaiveBayesClassifier().fit(X, y), X, y[:399])


@pytest.mark.parametrize("make", [bb.GaussianNB, bb.MultinomialNB, bb.MultiLabelClassifier, bb.EvidenceClassifier])
def test_what_is_not_fitted_is_said(make: Any) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        bb.evaluate(make(), [[1.0], [2.0]], [0, 1])


@pytest.mark.usefixtures("here")
def test_columns_by_position_are_sampled_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    pd.DataFrame(passengers()).to_csv("rows.data", index=False, header=False)
    for features in ("1=none", "1+2=joint", "5=none"):
        words = ["rows.data", "--no-header", "--target", "7", "--features", features]
        facts = run(capsys, "fit", *words, "--hold", "0", "--weigh", "-o", "m.banbury")
        model: Any = bb.load("m.banbury")
        held = run(capsys, "fit", *words, "--weigh", "-o", "h.banbury")
        assert model.tally == bb.load("h.banbury").tally and facts["rows"] == held["rows"]
        np.testing.assert_allclose(model.posterior("rows.data"), bb.load("h.banbury").posterior("rows.data"), rtol=1e-6)


@pytest.mark.usefixtures("here")
def test_figures_agree_where_numbers_are_kept_less_finely(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2_600, 3))
    y = (x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=2_600) > 0).astype(int)
    pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y}).to_csv("many.csv", index=False)
    fitted = run(capsys, "fit", "many.csv", "--target", "y", "-o", "m.banbury")
    assert fitted["folds"] == 3 and bb.load("m.banbury").weighing is not None
    assert figures(run(capsys, "report", "m.banbury", "many.csv", "--no-alternatives")) == figures(fitted)
    suspicious = run(capsys, "suspicious", "many.csv", "--target", "y")
    assert suspicious["method"] == "leaving out one of 3 folds at a time, by weighed evidence"


def test_what_was_tuned_keeps_no_rows() -> None:
    secret = ["a quiet lunch", "zebra pills", "a quiet day", "cheap pills"] * 5
    clf = bb.NaiveBayesClassifier(alpha="auto").fit(secret, ["ham", "spam"] * 10)
    assert b"a quiet lunch" not in pickle.dumps(clf.tuning_)
    assert all(rows is None for rows, _ in clf.tuning_._comparison.tried)


def test_csv_of_tuned_settings_has_a_column_for_each_setting(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tune", "train.csv", "--target", "Survived", "--alpha", "1", "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 2 and {row["log_loss"] for row in rows}


# Sets of labels -------------------------------------------------------------------------------------------------------

LABEL_FIGURES = ("micro_f1", "macro_f1", "log_loss")
SETS = ["--target", "topics", "--target-delimiter", ";"]


def papers(n: int) -> str:
    """Texts with several topics, as lines of CSV; a topic hardly shows in its words."""
    rng = np.random.default_rng(0)
    lines = ["text,topics"]
    for _ in range(n):
        own = [topic for topic in "abcd" if rng.random() < 0.3]
        told = [f"{topic}{rng.integers(8)}" for topic in own]
        noise = [f"{rng.choice(list('abcdxyz'))}{rng.integers(8)}" for _ in range(6)]
        lines.append(f"{' '.join([*told, *noise])},{'; '.join(own)}")
    return "\n".join(lines) + "\n"


def label_figures(facts: Any) -> list[float]:
    return [facts[name] for name in LABEL_FIGURES]


@pytest.mark.parametrize(
    "options", [[], ["--plain"], ["--plain", "--alpha", "0.3"], ["--weigh"], ["--calibrate", "platt"]]
)
def test_every_command_prints_the_figures_of_fit_for_sets_of_labels(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("papers.csv").write_text(papers(150))
    fitted = run(capsys, "fit", "papers.csv", *SETS, *options, "-o", "m.banbury")
    model: Any = bb.load("m.banbury")
    there = label_figures(fitted["validation"])
    assert label_figures(run(capsys, "cross-validate", "papers.csv", *SETS, *options)) == there
    assert label_figures(run(capsys, "report", "m.banbury", "papers.csv")) == there
    tuned = run(capsys, "tune", "papers.csv", *SETS, *options)["settings"]
    assert [there[2], there[0]] in [[each["log_loss"], each["micro_f1"]] for each in tuned]
    if model.words_per_label is None:
        asked = {"alpha": model.choice.alpha, "weigh": model.weighing is not None, "target_delimiter": ";"}
        calibrate: Any = "platt" if "platt" in options else None
        found = bb.cross_validate("papers.csv", "topics", calibrate=calibrate, **asked)
        assert [getattr(found, name) for name in LABEL_FIGURES] == there


def test_sets_of_labels_have_as_many_folds_as_classes() -> None:
    assert default_folds(2_000, [PlainLabels(), WeighedLabels()]) == 3 and default_folds(2_000, [PlainLabels()]) == 10


def test_a_sample_of_sets_of_labels_counts_all_others() -> None:
    texts, sets = [f"word{i % 7} text{i % 5}" for i in range(90)], [[str(i % 3)] * (i % 2) for i in range(90)]
    data = {"text": texts, "tags": sets}
    rows = stream_rows(data, "tags")
    assert rows.sample(20).n_rows < 90 and rows.sample(20).tally == rows.tally == bb.count(data, target="tags")
    numbers = load_rows({"text": texts}, [[int(name) for name in own] for own in sets])
    assert numbers.classes == (0, 1, 2, "") and numbers.names == (0, 1, 2)
    assert [each.groups.tolist() for each in numbers.fold_sets(3, 0)] == [
        each.groups.tolist() for each in rows.fold_sets(3, 0)
    ]
