"""banbury tune, diagnose and plot; several settings of texts, names with a star, calibration within folds."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

import banbury as bb
from banbury import plots
from banbury.cli import main, parsers
from banbury.cli import plot as plotting
from test_cli import _as_it_was, here, refused, said  # noqa: F401
from test_labels import made

WINE = "alcohol,hue"


@pytest.fixture(scope="module")
def wine(tmp_path_factory) -> Path:
    """A table of numbers, and models of it in files."""
    from sklearn.datasets import load_wine

    folder = tmp_path_factory.mktemp("wine")
    frame = load_wine(as_frame=True).frame[["alcohol", "hue", "ash", "target"]]
    frame["target"] = frame["target"].map({0: "red", 1: "rose", 2: "white"})
    frame.to_csv(folder / "wine.csv", index=False)
    csv = str(folder / "wine.csv")
    for name, families in [("plain", "auto"), ("kernels", "kernel_density")]:
        bb.save(bb.estimate(bb.count(csv, "target", features=families)), folder / f"{name}.banbury")
    X, y = frame[["alcohol", "hue", "ash"]], frame["target"]
    bb.save(bb.EvidenceClassifier().fit(X, y).model_, folder / "weighed.banbury")
    bb.save(bb.EvidenceClassifier("gaussian").fit(X, y).model_, folder / "bells.banbury")
    bb.save(bb.estimate(bb.count(csv, "target", features=bb.ColumnTree())), folder / "tree.banbury")
    papers = [{"text": text, "topics": topics} for text, topics in zip(*made(120), strict=True)]
    (folder / "papers.ndjson").write_text("".join(json.dumps(paper) + "\n" for paper in papers))
    bb.save(bb.LabelModel.of(bb.count(papers, "topics")), folder / "labels.banbury")
    return folder


# tune ----------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_tune_says_what_the_library_says_and_keeps_the_best(capsys):
    options = ["--alpha", "0.1,1", "--how", "mean,predictive", "--scoring", "brier", "--folds", "7", "--seed", "3"]
    facts = said(capsys, "tune", "weather.csv", "--target", "play", *options, "-o", "best.banbury")
    found = bb.tune("weather.csv", "play", alpha=[0.1, 1], how=["mean", "predictive"], scoring="brier", folds=7, seed=3)
    assert facts == {"model": "best.banbury", **json.loads(json.dumps(found.to_dict()))}
    kept = bb.load("best.banbury")
    assert np.array_equal(kept.posterior("weather.csv"), found.model.posterior("weather.csv"))


@pytest.mark.usefixtures("here")
def test_tune_tries_several_text_models_at_once(capsys):
    facts = said(
        capsys,
        "tune",
        "mail",
        "--text",
        "model=multinomial,presence",
        "--text",
        "min_count=1,2",
        "--alpha",
        "1",
        "--folds",
        "3",
    )
    assert {(own["model"], own["min_count"]) for own in (each.get("text") for each in facts["settings"]) if own} == {
        (model, least) for model in ("multinomial", "presence") for least in (1, 2)
    }
    found = bb.tune("mail", text={"model": ["multinomial", "presence"], "min_count": [1, 2]}, alpha=1, folds=3)
    assert [each["log_loss"] for each in facts["settings"] if "text" in each] == [
        each["log_loss"] for each in found.to_dict()["settings"]
    ]


@pytest.mark.usefixtures("here")
def test_a_setting_of_a_text_that_has_commas_itself_is_repeated(capsys):
    words = ["--text", "ngrams=1", "--text", "ngrams=1,2", "--text", "stop_words=a,the", "--alpha", "1", "--folds", "3"]
    facts = said(capsys, "tune", "mail", *words)
    texts = [each["text"] for each in facts["settings"] if "text" in each]
    assert sorted(str(text["ngrams"]) for text in texts) == ["1", "[1, 2]"]
    assert all(text["stop_words"] == ["a", "the"] for text in texts)


@pytest.mark.usefixtures("here")
def test_tune_prints_a_table_and_csv(capsys):
    assert main(["tune", "mail", "--text", "model=multinomial,presence", "--alpha", "1", "--folds", "3", "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "model,alpha,how,log_loss,accuracy" and len(lines) == 3
    assert main(["tune", "weather.csv", "--target", "play", "--alpha", "1", "--table", "-o", "x.banbury"]) == 0
    shown = capsys.readouterr().out
    assert "1 setting tried on 14 rows" in shown and "The best model was saved to x.banbury (" in shown


@pytest.mark.usefixtures("here")
def test_what_tune_cannot_do(capsys):
    for options, message in [
        (["--scoring", "los"], "--scoring must be one of 'log_loss'"),
        (["--text", "model=presence"], "--text must be omitted when no column is text"),
        (["--how", "mean,mpa"], "Did you mean 'map'"),
        (["--folds", "loo"], "--folds must be a whole number of at least 2"),
        (["--calibrate", "plat"], "Did you mean 'platt'"),
    ]:
        code, err = refused(capsys, "tune", "weather.csv", "--target", "play", *options)
        assert code == 2 and message in err


@pytest.mark.usefixtures("here")
def test_tune_keeps_groups_together_and_calibrates(capsys):
    rows = {"x": list(range(40)), "patient": [k // 4 for k in range(40)], "y": ["a", "b"] * 20}
    Path("rows.csv").write_text(
        "x,patient,y\n" + "\n".join(f"{a},{b},{c}" for a, b, c in zip(*rows.values(), strict=True))
    )
    options = ["--groups", "patient", "--folds", "5", "--alpha", "1", "--calibrate", "platt"]
    facts = said(capsys, "tune", "rows.csv", "--target", "y", *options, "-o", "model.banbury")
    from sklearn.model_selection import GroupKFold

    found = bb.tune("rows.csv", "y", groups="patient", folds=GroupKFold(5), alpha=1, calibrate="platt")
    assert facts["settings"] == found.to_dict()["settings"]
    assert bb.load("model.banbury").calibration.method == "platt"


def test_tune_compares_plain_and_weighed(wine, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(wine)
    kept = tmp_path / "best.banbury"
    facts = said(
        capsys, "tune", "wine.csv", "--target", "target", "--weigh", "--alpha", "1", "--folds", "3", "-o", kept
    )
    found = bb.tune("wine.csv", "target", weigh=[False, True], alpha=1.0, folds=3)
    assert facts["settings"] == found.to_dict()["settings"] and len(facts["settings"]) == 2
    assert np.array_equal(bb.load(kept).posterior("wine.csv"), found.model.posterior("wine.csv"))


# diagnose ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_diagnose_says_what_the_library_says(capsys):
    pairs = "\n".join(f"{k % 3},{k % 3},{k % 5},{'yes' if k % 2 else 'no'}" for k in range(300))
    Path("pairs.csv").write_text("a,b,c,y\n" + pairs)
    facts = said(capsys, "diagnose", "pairs.csv", "--target", "y", "--n", "1")
    assert facts == json.loads(json.dumps(bb.diagnose("pairs.csv", "y", n=1).to_dict()))
    assert (facts["pairs"][0]["first"], facts["pairs"][0]["second"]) == ("a", "b")
    assert main(["diagnose", "pairs.csv", "--target", "y", "--table"]) == 0
    assert "a / b" in capsys.readouterr().out
    assert main(["diagnose", "pairs.csv", "--target", "y", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("a,b,")
    told = "a,b,y\n" + "0,0,n\n0,1,y\n1,0,y\n1,1,n\n" * 50
    Path("together.csv").write_text(told)
    advice = said(capsys, "diagnose", "together.csv", "--target", "y")["advice"]
    assert all(way in advice for way in ("banbury fit --weigh", "--features a+b=joint", "banbury fit --tan"))
    assert main(["diagnose", "together.csv", "--target", "y", "--table"]) == 0
    assert capsys.readouterr().out.endswith(
        f"given the class, which naive Bayes does not see: {advice.partition(': ')[2]}\n"
    )
    code, err = refused(capsys, "diagnose", "pairs.csv")
    assert code == 2 and "--target y" in err


# cross-validate --calibrate ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_cross_validate_calibrates_within_folds(capsys):
    facts = said(
        capsys, "cross-validate", "weather.csv", "--target", "play", "--calibrate", "temperature", "--folds", "7"
    )
    found = bb.cross_validate("weather.csv", "play", calibrate="temperature", folds=7)
    assert facts["log_loss"] == found.log_loss != bb.cross_validate("weather.csv", "play", folds=7).log_loss


# Names with a star ---------------------------------------------------------------------------------------------------


def test_features_may_be_named_by_a_star(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("soil.csv").write_text("soil_1,soil_2,high,y\n0,1,2.5,a\n1,0,3.5,b\n1,1,2.0,a\n0,0,1.0,b\n")
    facts = said(
        capsys, "tally", "count", "soil.csv", "--target", "y", "--features", "soil_*=bernoulli", "-o", "soil.banbury"
    )
    assert [each["family"].partition("(")[0] for each in facts["features"]] == ["bernoulli", "bernoulli", "gaussian"]
    facts = said(
        capsys, "tally", "count", "soil.csv", "--target", "y", "--features", "soil_*+high=joint", "-o", "soil.banbury"
    )
    assert len(facts["features"]) == 1
    code, err = refused(
        capsys, "tally", "count", "soil.csv", "--target", "y", "--features", "soli_*=bernoulli", "-o", "x.banbury"
    )
    assert code == 1 and "no column matches 'soli_*' in soil.csv. Did you mean 'soil_" in err


# plot ----------------------------------------------------------------------------------------------------------------

DRAWN = {
    "evidence": ["plain.banbury wine.csv --row 3 --n 2", "tree.banbury wine.csv --against white"],
    "compared-evidence": ["weighed.banbury wine.csv", "plain.banbury wine.csv --row 80 --peer kernels.banbury"],
    "likelihood": ["plain.banbury --columns alcohol", "kernels.banbury wine.csv --columns hue"],
    "bandwidth": ["kernels.banbury --columns alcohol --class red"],
    "boundary": [f"kernels.banbury --columns {WINE}", f"kernels.banbury wine.csv --columns {WINE}"],
    "density": [f"kernels.banbury wine.csv --columns {WINE}"],
    "nomogram": [
        "plain.banbury --class red --against white",
        "plain.banbury wine.csv --target target --class red --against white --row 2",
    ],
    "calibration": ["plain.banbury wine.csv", "tree.banbury wine.csv"],
    "confusion": ["plain.banbury wine.csv --shares", "tree.banbury wine.csv"],
    "labels": ["labels.banbury papers.ndjson"],
    "learning-curve": ["wine.csv --target target --sizes 60,100 --features gaussian"],
    "network": ["tree.banbury"],
    "shapes": ["plain.banbury --class red --against white", "weighed.banbury --class red"],
}


def test_every_display_has_a_name_or_is_said_to_be_of_python():
    shown = {get_type_hints(each.draw)["return"] for each in plotting.PICTURES.values()}
    assert {getattr(plots, name) for name in plots.__all__ if name != "shapes"} == shown | set(plotting.ONLY_IN_PYTHON)
    assert set(DRAWN) == set(plotting.PICTURES)
    [verb] = [verb for verb in parsers.VERBS if verb.name == "plot"]
    told = next(line for line in verb.options if line.startswith("picture "))
    assert all(name in told for name in plotting.PICTURES)


@pytest.mark.parametrize(
    ("picture", "of"),
    [
        pytest.param(picture, of, marks=pytest.mark.slow if number else ())
        for picture, ways in DRAWN.items()
        for number, of in enumerate(ways)
    ],
)
def test_each_picture_is_drawn_by_its_name(picture, of, wine, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(wine)
    png, svg = tmp_path / "picture.png", tmp_path / "picture.svg"
    facts = said(capsys, "plot", picture, *of.split(), "-o", png)
    assert facts == {"picture": picture, "file": str(png)}
    data = png.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert data.startswith(b"\x89PNG") and min(width, height) > 100
    said(capsys, "plot", picture, *of.split(), "-o", svg)
    assert "</svg>" in svg.read_text()


def test_a_picture_is_that_of_the_library(wine, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(wine)
    said(capsys, "plot", "evidence", "plain.banbury", "wine.csv", "--row", "5", "-o", tmp_path / "here.svg")
    import pandas as pd

    row = pd.read_csv("wine.csv").iloc[[4]]
    plots.EvidenceDisplay.from_model(bb.load("plain.banbury"), row).save(tmp_path / "there.svg")
    assert (tmp_path / "here.svg").read_bytes() == (tmp_path / "there.svg").read_bytes()


def test_the_list_of_pictures(capsys):
    facts = said(capsys, "plot", "--list")
    assert [each["picture"] for each in facts["pictures"]] == list(plotting.PICTURES)
    assert main(["plot", "--list", "--table"]) == 0
    shown = capsys.readouterr().out
    assert "banbury plot confusion MODEL INPUT..." in shown and "bb.plots.ConvergenceDisplay" in shown


def test_what_plot_cannot_draw(wine, monkeypatch, capsys):
    monkeypatch.chdir(wine)
    for words, code, message in [
        ("", 2, "no picture was named. See: banbury plot --list"),
        ("evidnce plain.banbury", 2, "Did you mean 'evidence'"),
        ("evidence", 2, "no model given. Usage: banbury plot evidence MODEL INPUT..."),
        ("evidence plain.banbury", 2, "nothing to explain"),
        ("evidence plain.banbury wine.csv -o why.pdf", 2, "--output must be a file whose name ends in .png or .svg"),
        ("calibration plain.banbury", 2, "no rows given"),
        ("likelihood plain.banbury", 2, "--columns must be the name of a column (of alcohol, hue, ash)"),
        ("likelihood plain.banbury --columns hu", 1, "Did you mean 'hue'"),
        ("boundary kernels.banbury --columns hue", 2, "the names of two columns of numbers"),
        ("bandwidth kernels.banbury --columns hue", 2, "--class must be one of the classes (red, rose, white). It was"),
        (
            "bandwidth plain.banbury --columns hue",
            2,
            "column 'hue' is counted as quantile_tree, which has no bandwidth",
        ),
        ("bandwidth plain.banbury --columns hue", 2, "use --features hue=kernel_density."),
        ("compared-evidence plain.banbury wine.csv", 2, "--peer must be the file of another model"),
        ("network plain.banbury", 1, "plain.banbury does not contain a belief network"),
        ("nomogram tree.banbury", 2, "cannot be compared with all others at once"),
        ("nomogram bells.banbury --class red --against rose", 2, "Draw what it has learned with banbury plot shapes."),
        ("learning-curve wine.csv", 2, "which column in wine.csv should be predicted?"),
    ]:
        found, err = refused(capsys, "plot", *words.split())
        assert (found, message in err) == (code, True), (words, err)
