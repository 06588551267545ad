"""The benchmarks run, and refuse wrong answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import banbury as bb

ROOT = Path(__file__).parents[1]


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command in this process; gives its exit status and what it printed."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.__main__ import main

    def call(*arguments):
        return main(["--small", "--repeats", "1", *arguments]), capsys.readouterr()

    return call


def test_small_benchmarks_run_as_a_command():
    command = [sys.executable, "-m", "benchmarks", "categorical", "tiny", "--small", "--repeats", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert [(f["benchmark"], f["task"]) for f in figures] == [
        ("categorical", "fit"),
        ("categorical", "predict"),
        ("tiny", "fit"),
        ("tiny", "predict"),
    ]
    assert all(f["ours"] > 0 and f["ratio"] == f["peer"] / f["ours"] for f in figures)


def test_wrong_classes_are_refused(run, monkeypatch):
    right = bb.NaiveBayesClassifier.predict
    monkeypatch.setattr(bb.NaiveBayesClassifier, "predict", lambda self, X: (right(self, X) + 1) % 5)
    status, printed = run("bernoulli")
    assert status == 1
    assert "WRONG ANSWER in bernoulli: peer and ours agree on" in printed.err


def test_wrong_parameters_are_refused_and_not_recorded(run, monkeypatch, tmp_path):
    right = bb.NaiveBayesClassifier.fit
    monkeypatch.setattr(bb.NaiveBayesClassifier, "fit", lambda self, X, y: right(self, X[:-50], y[:-50]))
    record = tmp_path / "figures.csv"
    status, printed = run("gaussian", "--record", str(record))
    assert status == 1
    assert "peer's parameters are" in printed.err
    assert not record.exists()


def test_figures_are_recorded_and_make_a_page(run, tmp_path):
    record, page = tmp_path / "figures.csv", tmp_path / "page.md"
    status, printed = run("tiny", "--record", str(record), "--page", str(page))
    assert status == 0
    assert "GaussianNB" in printed.out
    assert record.read_text(encoding="utf-8").count("\n") == 3
    assert "### tiny" in page.read_text(encoding="utf-8") and "{{" not in page.read_text(encoding="utf-8")


def test_a_share_is_never_rounded_up_to_all(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.measure import WrongAnswer, same_classes

    ours = np.zeros(1_000_000, dtype=int)
    theirs = ours.copy()
    theirs[0] = 1
    assert same_classes({"ours": ours, "peer": theirs}) == "99.9999 % same classes"
    theirs[:100] = 1
    with pytest.raises(WrongAnswer, match=r"peer and ours agree on 99.9900%"):
        same_classes({"ours": ours, "peer": theirs})
