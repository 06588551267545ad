"""The command line on rows with several labels: every verb that takes them says what the library says, and others refuse them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import banbury as bb
from banbury.cli import main
from test_cli import _as_it_was, refused, said  # noqa: F401
from test_labels import TEXTS, TOPICS, made

SETS = ["--target", "topics", "--target-delimiter", ";"]


@pytest.fixture
def papers(tmp_path, monkeypatch) -> Path:
    """Rows with labels in a CSV file with a delimiter, in lists of an NDJSON file, and in columns of flags."""
    monkeypatch.chdir(tmp_path)
    texts, sets = made(300)
    rows = list(zip(texts, sets, strict=True))
    lines = ["text,topics", *(f"{text},{'; '.join(own)}" for text, own in rows)]
    Path("papers.csv").write_text("\n".join(lines) + "\n")
    for name, some in (("papers", rows), ("early", rows[:200]), ("late", rows[200:])):
        records = (json.dumps({"text": text, "topics": own}) + "\n" for text, own in some)
        Path(f"{name}.ndjson").write_text("".join(records))
    flags = ([text, *(str(int(label in own)) for label in "abcd")] for text, own in rows)
    Path("flags.csv").write_text("\n".join(["text,a,b,c,d", *map(",".join, flags)]) + "\n")
    return tmp_path


def printed(capsys, *arguments) -> list[dict]:
    """The lines of JSON that a command prints."""
    assert main(list(map(str, arguments))) == 0, capsys.readouterr().err
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("papers")
def test_labels_are_fitted_predicted_and_evaluated(capsys):
    facts = said(capsys, "fit", "papers.csv", *SETS, "-o", "papers.banbury")
    assert facts["validation"]["micro_f1"] > 0.95
    assert [own["label"] for own in facts["validation"]["labels"]] == ["a", "b", "c", "d"]
    model = bb.load("papers.banbury")
    assert isinstance(model, bb.LabelModel)
    assert model.weighing is not None
    texts, sets = made(300)
    found = printed(capsys, "predict", "papers.banbury", "papers.csv")
    assert [record["labels"] for record in found] == [list(own) for own in model.predict({"text": texts})]
    assert all(record["probabilities"] == sorted(record["probabilities"], reverse=True) for record in found)
    assert [len(r["labels"]) for r in printed(capsys, "predict", "papers.banbury", "papers.csv", "--top", 2)] == [
        2
    ] * 300
    few = printed(capsys, "predict", "papers.banbury", "papers.csv", "--at-least-one", "--posteriors")
    assert all(record["labels"] and set(record["posteriors"]) == set("abcd") for record in few)
    facts = said(capsys, "evaluate", "papers.banbury", "papers.ndjson")
    assert facts == json.loads(json.dumps(bb.evaluate(model, {"text": texts}, sets).to_dict()))
    assert main(["predict", "papers.banbury", "papers.csv", "--csv"]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert (head, first.split(",")[1]) == ("row,labels,probabilities", "; ".join(found[0]["labels"]))


@pytest.mark.usefixtures("papers")
def test_a_table_without_texts_is_weighed(capsys):
    rng = np.random.default_rng(0)
    lines = ["cm,inches,grams,coat,kinds"]
    for _ in range(150):
        cm, coat = rng.normal(170, 10), rng.choice(["red", "green"])
        own = ["tall"] * int(cm > 175) + ["seen"] * int(coat == "red")
        lines.append(f"{cm:.1f},{cm / 2.54:.1f},{rng.normal(60, 9):.1f},{coat},{';'.join(own)}")
    Path("people.csv").write_text("\n".join(lines) + "\n")
    facts = said(
        capsys, "fit", "people.csv", "--target", "kinds", "--target-delimiter", ";", "-o", "p.banbury", "--weigh"
    )
    assert any("chose weighed, " in note for note in facts["notes"])
    assert facts["validation"]["micro_f1"] > 0.95
    assert bb.load("p.banbury").weighing.cells.names == ("cm", "inches", "grams", "coat")
    told = said(capsys, "explain", "p.banbury", "people.csv", "--row", 1, "--label", "seen")
    assert told["evidence"][0]["feature"] == "coat"


@pytest.mark.usefixtures("papers")
def test_a_label_is_explained(capsys):
    said(capsys, "fit", "papers.ndjson", "--target", "topics", "--plain", "-o", "papers.banbury")
    model = bb.load("papers.banbury")
    facts = said(capsys, "explain", "papers.banbury", "papers.csv", "--row", 2, "--label", "c")
    told = model.explain(made(300)[0][1], "c").to_dict()
    assert facts == json.loads(json.dumps({"label": "c", **told}))
    best = said(capsys, "explain", "papers.banbury", "--text", "a1 a2 a3")
    assert best["label"] == "a"
    assert "'e'" in refused(capsys, "explain", "papers.banbury", "--text", "a1", "--label", "e")[1]
    shown = said(capsys, "show", "papers.banbury", "--informative", 2)
    assert [own["label"] for own in shown["labels"]] == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("papers")
def test_labels_are_cross_validated_from_every_kind_of_target(capsys):
    found = [
        said(capsys, "cross-validate", *rest, "--folds", 5)
        for rest in (
            ["papers.csv", *SETS],
            ["papers.ndjson", "--target", "topics"],
            ["flags.csv", "--target", "a,b,c,d"],
        )
    ]
    texts, sets = made(300)
    expected = json.loads(json.dumps(bb.cross_validate(texts, sets, folds=5, weigh=True).to_dict()))
    assert found[0] == found[1] == found[2] and found[0]["notes"].pop().startswith("chose weighed")
    assert {**found[0], "notes": expected.get("notes", [])} == {**expected, "notes": expected.get("notes", [])}
    fitted = said(capsys, "fit", "papers.csv", *SETS, "--folds", 5)
    assert fitted["validation"]["log_loss"] == expected["log_loss"]


@pytest.mark.usefixtures("papers")
def test_tallies_of_labels_are_counted_merged_subtracted_and_estimated(capsys):
    said(capsys, "tally", "count", "early.ndjson", "--target", "topics", "-o", "early.banbury")
    said(capsys, "tally", "count", "late.ndjson", "--like", "early.banbury", "-o", "late.banbury")
    said(capsys, "tally", "merge", "early.banbury", "late.banbury", "-o", "all.banbury")
    whole = bb.load("all.banbury")
    texts, sets = made(300)
    assert whole == bb.count({"text": texts, "topics": sets}, target="topics")
    said(capsys, "tally", "subtract", "all.banbury", "late.banbury", "-o", "rest.banbury")
    assert bb.load("rest.banbury") == bb.load("early.banbury")
    said(capsys, "tally", "estimate", "all.banbury", "--alpha", "0.1", "-o", "model.banbury")
    model = bb.load("model.banbury")
    assert np.array_equal(model.posterior(texts[:9]), bb.LabelModel.of(whole, alpha=0.1).posterior(texts[:9]))


@pytest.mark.usefixtures("papers")
def test_settings_are_tuned_on_labels(capsys):
    asked = [*SETS, "--alpha", "0.1,1", "--folds", 4, "-o", "best.banbury"]
    texts, sets = made(300)
    for options, weigh in ((["--plain"], False), ([], [False, True])):
        facts = said(capsys, "tune", "papers.csv", *asked, *options)
        found = bb.tune({"text": texts}, sets, alpha=[0.1, 1], folds=4, weigh=weigh)
        assert facts == {"model": "best.banbury", **json.loads(json.dumps(found.to_dict()))}
    assert isinstance(bb.load("best.banbury"), bb.LabelModel)


@pytest.mark.usefixtures("papers")
def test_verbs_of_one_class_for_each_row_refuse_labels(capsys):
    for verb in ("diagnose", "learning-curve"):
        assert "one class per row" in refused(capsys, verb, "papers.ndjson", "--target", "topics")[1]
        assert "--target-delimiter" in refused(capsys, verb, "papers.csv", *SETS)[1]
    said(capsys, "fit", "papers.csv", *SETS, "--plain", "-o", "papers.banbury")
    assert "multi-label model" in refused(capsys, "plot", "confusion", "papers.banbury", "papers.csv", "-o", "x.png")[1]


def test_learners_of_one_class_for_each_row_name_the_one_of_several():
    for learner in (bb.NaiveBayesClassifier, bb.EvidenceClassifier):
        with pytest.raises(bb.errors.BadSetting, match="MultiLabelClassifier"):
            learner().fit(TEXTS, TOPICS)
        with pytest.raises(bb.errors.BadSetting, match="MultiLabelClassifier"):
            learner().fit(TEXTS, [set(own) for own in TOPICS])
        with pytest.raises(ValueError, match="MultiLabelClassifier"):
            learner().fit(TEXTS, np.eye(6, 2, dtype=int))
    with pytest.raises(bb.errors.BadSetting, match="one class per row"):
        bb.diagnose(TEXTS, TOPICS)


def test_labels_in_one_text_are_doubted_and_a_flag_that_is_no_column_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("tags.csv").write_text("x,tags\n" + "a,spam;ad\nb,ham\na,ad;ham\nb,spam\n" * 4)
    assert main(["tally", "count", "tags.csv", "--target", "tags", "-o", "tags.banbury"]) == 0
    said = capsys.readouterr().err
    assert "the class 'ad;ham' looks like several labels with ';' between them, as do 2 of 4 classes" in said
    assert "'ham', 'spam' are classes on their own" in said and "pass --target-delimiter ';'." in said
    assert (
        main(["tally", "count", "tags.csv", "--target", "tags", "--target-delimiter", ";", "-o", "tags.banbury"]) == 0
    )
    assert "looks like" not in capsys.readouterr().err
    Path("names.csv").write_text("x,y\n" + 'a,"Smith, J."\nb,"Smith, A."\na,"Jones, B."\n' * 4)
    assert main(["tally", "count", "names.csv", "--target", "y", "-o", "names.banbury"]) == 0
    assert "looks like" not in capsys.readouterr().err
    Path("flags.csv").write_text("x,funny,sad\n" + "a,1,0\nb,0,1\n" * 4)
    assert main(["fit", "flags.csv", "--target", "funny,sda"]) == 1
    assert "no column 'sda'. Did you mean 'sad'?" in capsys.readouterr().err
