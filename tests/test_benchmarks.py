"""The benchmarks run, refuse wrong answers, and exist under the names that the pages give them."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks import (
    accuracy,
    datasets,
    em,
    labels,
    measure,
    memory,
    newsgroups,
    peers,
    quality,
    report,
    suspicious,
    synthetic,
    when_not,
    which_line,
)
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.datasets import Part
from benchmarks.measure import Figure, Setting, WrongAnswer

import banbury as bb

ROOT = Path(__file__).parents[1]
SLOW = ("memory", "start", "service", "engines")  # these start processes
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process, on little made-up data: its status and what it printed."""
    monkeypatch.delenv("BANBURY_DATA", raising=False)
    monkeypatch.setattr(synthetic, "DOCUMENTS", 400)

    def call(*arguments):
        return main(["--small", "--repeats", "1", *arguments]), capsys.readouterr()

    return call


def some_table(rows=200):
    """A frame of a word and a number with gaps that tell the label, and the labels."""
    rng = np.random.default_rng(0)
    answers = rng.choice(["no", "yes"], rows)
    frame = pd.DataFrame(
        {"n": rng.normal(size=rows) + 3 * (answers == "yes"), "word": np.where(answers == "yes", "u", "v")}
    )
    frame.loc[::7, "n"] = np.nan
    frame.loc[3::11, "word"] = None
    return Part(frame, answers)


def some_texts(rows=60):
    rng = np.random.default_rng(0)
    kinds = np.array(["ham", "spam"] * (rows // 2))
    return Part([" ".join([kind, *rng.choice(["at", "noon", "free"], 3)]) for kind in kinds], kinds)


# Speed ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_on_small_data_and_its_answers_agree(name, run, monkeypatch):
    if name in SLOW and not THOROUGH:
        pytest.skip("it starts processes: make test-all runs it")
    if name == "weighed":
        monkeypatch.setattr(datasets, "has_data", lambda *_: True)
        monkeypatch.setattr(datasets, "adult_split", lambda: (some_table(), some_table()))
    status, printed = run(name, "--json")
    assert status == 0, printed.err
    figures = json.loads(printed.out)
    assert {figure["benchmark"] for figure in figures} == (set() if name == "labels" else {name})  # it needs Reuters
    assert all(figure["ours"] > 0 for figure in figures)
    assert all(figure["peer"] is None or figure["ratio"] == figure["peer"] / figure["ours"] for figure in figures)


def test_memory_is_measured_beside_the_peer():
    reports = {
        task: memory.measure(task, "1000")
        for task in ("numbers, ours", "numbers, GaussianNB", "texts, ours", "texts, CountVectorizer")
    }
    assert reports["numbers, ours"]["data"] == reports["numbers, GaussianNB"]["data"] == 1000 * 20 * 8
    assert all(result["peak"] >= 0 for result in reports.values())


def lose_rows(fit):
    return lambda self, X, y, **settings: fit(self, X[:-50], y[:-50], **settings)


def swap_classes(predict):
    return lambda self, X: np.roll(predict(self, X), 1)


def roll_posteriors(validate):
    def wrong(*arguments, **settings):
        result = validate(*arguments, **settings)
        return dataclasses.replace(result, posteriors=np.roll(result.posteriors, 1, axis=1))

    return wrong


@pytest.mark.parametrize(
    ("name", "where", "method", "break_it", "message"),
    [
        ("tables", bb.NaiveBayesClassifier, "fit", lose_rows, "probabilities are"),
        ("tables", bb.NaiveBayesClassifier, "predict", swap_classes, "ours and the peer agree on"),
        ("tables", bb.GaussianNB, "predict", swap_classes, "ours and the peer agree on"),
        ("mixed", bb.Model, "predict", swap_classes, "ours and the peer agree on"),
        ("text", bb.NaiveBayesClassifier, "fit", lose_rows, "ours and the peer agree on"),
        ("selection", bb, "cross_validate", roll_posteriors, "probabilities are|ours and the peer agree on"),
    ],
)
def test_a_wrong_answer_fails_the_run_and_nothing_is_recorded(
    name, where, method, break_it, message, run, monkeypatch, tmp_path
):
    monkeypatch.setattr(where, method, break_it(getattr(where, method)))
    status, printed = run(name, "--record", str(tmp_path / "figures.csv"))
    assert status == 1
    assert re.search(rf"WRONG ANSWER in {name}: ({message})", printed.err)
    assert not (tmp_path / "figures.csv").exists()


def test_the_peer_that_is_shown_a_part_has_its_time_multiplied():
    peer = measure.Peer("theirs", lambda: "part", scale=1e6)
    setting = Setting(repeats=3, small=True)
    figure = measure.compare(("b", "t", "d"), lambda: "whole", lambda *both: str(both), setting, peer)
    assert figure.answers == "('whole', 'part')"
    assert figure.ratio == figure.peer / figure.ours > 10


def test_a_slow_engine_has_no_further_turn(monkeypatch):
    monkeypatch.setattr(measure, "ENOUGH_SECONDS", 0.02)
    turns = {"slow": 0, "quick": 0}

    def slow():
        turns["slow"] += 1
        time.sleep(0.03)

    def quick():
        turns["quick"] += 1

    times, _ = measure.take_turns({"slow": slow, "quick": quick}, Setting(repeats=3, small=True))
    assert turns["slow"] == 1 and turns["quick"] >= 3
    assert times["slow"] >= 0.03 > times["quick"]


def test_a_share_is_never_rounded_up_to_all_and_no_gap_hides_a_nan():
    ours = np.zeros(1_000_000, dtype=int)
    theirs = ours.copy()
    theirs[0] = 1
    assert measure.same_classes()(ours, theirs) == "99.9999 % same classes"
    theirs[:100] = 1
    with pytest.raises(WrongAnswer, match=r"ours and the peer agree on 99.9900%"):
        measure.same_classes()(ours, theirs)
    with pytest.raises(WrongAnswer, match="nan apart"):
        measure.largest_gap(np.array([0.5, np.nan]), np.array([0.5, 0.5]), within=1e-6)


def test_figures_are_recorded_and_replace_those_of_the_page(tmp_path):
    figures = [
        Figure("text", "fit", "words", 0.25, 10.0, "CountVectorizer", "same"),
        Figure("memory", "peak", "words", 1.5, unit="MB"),
    ]
    done = report.Run(figures, Setting(repeats=1), busy_share=0.5)
    report.write_csv(done, tmp_path / "figures.csv")
    assert (tmp_path / "figures.csv").read_text(encoding="utf-8").count("\n") == 3
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n<!-- figures -->\n\n### start\n\nof an earlier run\n\n### text\n\nold\n\n<!-- end of figures -->\nThe end.\n"
    )
    for _ in range(2):
        report.write_page(done, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Title\n<!-- figures -->\n\n### start\n\nof an earlier run\n\n### text\n\nMeasured on ")
    assert text.endswith("\n\n<!-- end of figures -->\nThe end.\n")
    assert ".\n\n| task | data | ours | peer | its time | ratio | answers |\n" in text
    assert "| fit | words | 250 ms | CountVectorizer | 10.00 s | 40× | same |\n" in text
    assert "| task | data | ours |\n| --- | --- | --- |\n| peak | words | 1.50 MB |\n" in text
    assert "old" not in text and text.count("### text") == 1 and "IT WAS NOT IDLE" in text
    page.write_text("# Title\n")
    with pytest.raises(SystemExit, match="has no lines <!-- figures -->"):
        report.write_page(done, page)


def test_the_page_of_docs_has_a_place_for_the_figures():
    page = (ROOT / "benchmarks" / "record" / "figures.md").read_text(encoding="utf-8")
    assert report.FIGURES.search(page)
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) <= set(BENCHMARKS)


# The commands that pages name -----------------------------------------------------------------------------------------

COMMAND = re.compile(r"python -m (benchmarks[\w.]*)([^`\n;)\]]*)")
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_exists(page):
    for module, arguments in COMMAND.findall(page.read_text(encoding="utf-8")):
        name = f"{module}.__main__" if module == "benchmarks" else module.rstrip(".")
        importlib.import_module(name).parser().parse_args(shlex.split(arguments.rstrip(",. ")))


def test_the_command_explains_itself():
    done = subprocess.run([sys.executable, "-m", "benchmarks", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and ", ".join(BENCHMARKS) in " ".join(done.stdout.split())


# Accuracy -------------------------------------------------------------------------------------------------------------


def test_quality_is_a_mean_over_the_rows_of_all_splits():
    class Guess:
        classes_ = np.array(["ham", "spam"])

        def fit(self, rows, labels):
            pass

        def predict_proba(self, rows):
            return np.tile([0.75, 0.25], (len(rows), 1))

    ham = Part(["a"] * 3, np.array(["ham"] * 3))
    spam = Part(["b"], np.array(["spam"]))
    result = quality.measure(lambda rows: Guess(), [(ham, ham), (ham, spam)])
    assert result.accuracy == 0.75
    assert result.log_loss == pytest.approx(-(3 * np.log(0.75) + np.log(0.25)) / 4)


def test_every_learner_of_the_tables_of_accuracies_learns():
    tables = accuracy.folds(lambda: some_table(), 2)
    texts = accuracy.folds(lambda: some_texts(), 2)
    cheap = {name: accuracy.LEARNERS[name] for name in ("Gaussian", "trees", "TAN", "weighed", "boosting")}
    for learners, splits in ((cheap, tables), ({"NBSVM": accuracy.TEXT_LEARNERS["NBSVM"]}, texts)):
        for name, make in learners.items():
            cell = accuracy.table_cell("made-up", name, make, splits())
            assert float(cell.split()[0]) > 0.9, name
            assert ("/ —" in cell) == (name == "NBSVM")
    for make in when_not.LEARNERS.values():
        assert len(when_not.table_row(make, some_texts(), some_texts())) == len(when_not.HEADINGS) - 1


def test_folds_test_every_row_once_and_thirds_a_third_of_each_class():
    part = some_table(90)
    tested = [test.rows.index.tolist() for _, test in accuracy.folds(lambda: part, 5)()]
    assert sorted(row for rows in tested for row in rows) == list(range(90))
    texts = Part([str(i) for i in range(90)], np.array(["ham", "ham", "spam"] * 30))
    train, test = datasets.thirds(texts)
    assert sorted([*train.rows, *test.rows], key=int) == texts.rows
    assert [int(np.sum(each.labels == "spam")) for each in (train, test)] == [20, 10]
    assert all(texts.labels[int(text)] == label for text, label in zip(test.rows, test.labels, strict=True))


def test_every_learner_of_several_labels_is_measured():
    rng = np.random.default_rng(0)
    topics = [[name for name in ("grain", "fuel", "gold") if rng.random() < 0.4] for _ in range(150)]
    texts = [" ".join([*names, *names, *rng.choice(["at", "noon", "rise"], 3)]) for names in topics]
    stories = datasets.Stories(texts, topics)
    setting = Setting(repeats=1, small=True)
    rows = labels.measure(stories.first(120), datasets.Stories(texts[120:], topics[120:]), setting)
    assert list(rows) == [*labels.OURS, *labels.PEERS]
    assert all(row.micro_f1 > 0.7 and row.fit > 0 and row.predict > 0 for row in rows.values())
    assert len(list(labels.folds(stories.first(120), stories, setting))) == 2
    assert len(labels.time_many_labels(50, 200, setting)) == len(labels.MANY_HEADINGS)


def test_suspicious_labels_and_the_next_ones_are_measured(monkeypatch):
    part = some_table(300)
    planted, wrong = suspicious.replace_labels(part, 0.1, seed=0)
    assert wrong.sum() == 30 and np.array_equal(planted != part.labels, wrong)
    ours = next(suspicious.precision("made-up", part, 0.1, (1, 1)))
    assert len(ours) == len(suspicious.HEADINGS) and float(ours[4].rstrip("%")) > 80
    monkeypatch.setattr(suspicious, "WITHHELD", 50)
    for ask in (False, True):
        assert len(suspicious.curve(part, ask, first=20, more=10, rounds=2, seed=0)) == 3


def test_every_line_of_the_page_is_run_and_every_line_that_is_run_stands_there(capsys, data_dir):
    page = (ROOT / "docs" / "how-to" / "which-line.md").read_text(encoding="utf-8")
    rows = page.partition("\n## ")[0].splitlines()
    named = [row.rsplit("`", 2)[1] for row in rows if row.startswith("| ") and row.endswith("` |")]
    assert named == list(which_line.LINES)
    assert which_line.main(["outliers", "drop-in", "embeddings"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"AUC of 0\.967", shown) and "0.943 right, log loss 0.295" in shown and "within" in shown


# Data -----------------------------------------------------------------------------------------------------------------


def test_a_story_of_reuters_is_its_title_and_text():
    story = '<TOPICS><D>grain</D></TOPICS><TEXT TYPE="NORM"><TITLE>CORN &lt;C></TITLE><BODY>It rises.</BODY></TEXT>'
    assert datasets.story_text(story) == "CORN <C>\nIt rises."
    assert datasets.story_text('<TOPICS></TOPICS><TEXT TYPE="UNPROC">all <X>of it</TEXT>') == "\nall  of it"


def test_posts_lose_the_headers_that_name_groups_and_equal_bodies_stay_on_one_side():
    post = "Path: a!b\nFrom: me\nXref: one\n two\nSubject: Re: path\nNewsgroups: sci.space\n\nPath: of a rocket\n"
    bare = "From: me\nSubject: Re: path\n\nPath: of a rocket\n"
    assert datasets.without_headers(post) == bare
    assert newsgroups.bodies([post, "From: you\n\nother", bare]).tolist() in ([0, 1, 0], [1, 0, 1])
    groups = np.array([0, 1, 2, 0, 3, 4, 5, 5, 5])
    for seed in range(20):
        train, test = newsgroups.split(groups, seed)
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(9))
        assert len(set(groups[test])) == 2


def test_posts_with_and_without_a_label_are_drawn_apart():
    posts = Part([str(i) for i in range(90)], np.repeat(["a", "b", "c"], 30))
    for seed in range(5):
        texts, drawn = em.draw(posts, 12, seed)
        assert sorted(map(int, texts)) == list(range(90))
        assert sorted(drawn[:12]) == [*"aaaabbbbcccc"]
        assert [posts.labels[int(text)] for text in texts[:12]] == drawn[:12].tolist()
        assert set(drawn[12:]) == {None}


# Peers of the accuracy table ------------------------------------------------------------------------------------------


def test_peers_are_given_a_table_as_numbers():
    rows = pd.DataFrame({"word": ["b", "a", "b", None], "n": [1.0, None, 3.0, 5.0]})
    numbered = peers.Numbered(rows)
    ranks = numbered.ranks["word"]
    assert numbered.word_columns == [0]
    assert numbered(rows).tolist() == [[0, 1], [ranks["a"], 3], [0, 3], [ranks["?"], 5]]
    assert numbered(pd.DataFrame({"word": ["never seen"], "n": [None]})).tolist() == [[0, 3]]


@pytest.mark.parametrize(("library", "name"), [("skbn", "MixedNB"), ("skbn", "AODE"), ("pyagrum", "pyAgrum TAN")])
def test_peers_learn_tables_with_words_and_gaps(library, name):
    pytest.importorskip(library)
    part = some_table()
    model = peers.TABLES[name](part.rows).fit(part.rows[:150], part.labels[:150])
    tested = part.rows[150:].assign(word=["never seen", *part.rows["word"][151:]])
    posteriors = model.predict_proba(tested)
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, atol=1e-6)
    assert np.mean(model.classes_[posteriors.argmax(axis=1)] == part.labels[150:]) > 0.9


@pytest.mark.parametrize(("library", "name"), [("fasttext", "fastText"), ("vowpalwabbit", "Vowpal Wabbit")])
def test_peers_learn_texts(library, name):
    pytest.importorskip(library)
    texts = ["good | fine: day", "bad, grim night", "a fine good lunch", "a grim bad lunch"] * 40
    model = peers.TEXTS[name](texts).fit(texts, np.array(["up", "down"] * 80))
    posteriors = model.predict_proba([*texts[:2], ""])
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, atol=1e-6)
    assert model.classes_[posteriors.argmax(axis=1)][:2].tolist() == ["up", "down"]


def test_a_peer_that_is_not_installed_is_left_out():
    assert peers.choose_installed({"ours": ("json", str), "theirs": ("no_such_library", str)}) == {"ours": str}
