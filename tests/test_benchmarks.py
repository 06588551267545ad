"""The benchmarks run, and refuse wrong answers."""

import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import banbury as bb

ROOT = Path(__file__).parents[1]
OF_MANY_FILES = ("20news-bydate", "20_newsgroups", "spamassassin")  # which are only read


@pytest.fixture
def run(monkeypatch, capsys, request):
    """Runs the command in this process, on large data sets that tests share; gives its exit status and what it printed."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import datasets
    from benchmarks.__main__ import main

    own = datasets.unpacked

    def unpacked(name):
        return nullcontext(request.getfixturevalue("unpacked")(name)) if name in OF_MANY_FILES else own(name)

    monkeypatch.setattr(datasets, "unpacked", unpacked)

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


def test_weights_and_blocks_run_small_and_agree_with_their_peers(run):
    status, printed = run("weighted", "blocks", "--json")
    assert status == 0, printed.err
    assert [(f["task"], f["peer_name"]) for f in json.loads(printed.out)] == [
        ("fit, fractional weights", "GaussianNB"),
        ("fit, whole weights", "GaussianNB"),
        ("fit, full covariance", "QuadraticDiscriminantAnalysis"),
        ("fit, tied covariance", "LinearDiscriminantAnalysis"),
    ]


def test_trees_run_small_beside_bell_curves_and_wrong_ones_are_refused(run, monkeypatch):
    status, printed = run("trees", "--json")
    assert status == 0, printed.err
    assert [(f["task"], f["peer_name"]) for f in json.loads(printed.out)] == [
        ("fit", "our bell curves"),
        ("predict", "our bell curves"),
    ]
    right = bb.NaiveBayesClassifier.predict
    monkeypatch.setattr(bb.NaiveBayesClassifier, "predict", lambda self, X: right(self, X[::-1]))
    status, printed = run("trees")
    assert status == 1
    assert "WRONG ANSWER in trees: tables looked up by NumPy agree on" in printed.err


def test_weights_and_columns_that_are_lost_are_refused(run, monkeypatch):
    right = bb.NaiveBayesClassifier.fit

    def wrong(self, X, y, sample_weight=None):
        return right(self, X if sample_weight is not None else np.column_stack([X[:, :-1], X[::-1, -1]]), y)

    monkeypatch.setattr(bb.NaiveBayesClassifier, "fit", wrong)
    for name in ("weighted", "blocks"):
        status, printed = run(name)
        assert status == 1
        assert f"WRONG ANSWER in {name}: peer's parameters are" in printed.err


def test_figures_are_recorded_and_make_a_page(run, tmp_path):
    record, page = tmp_path / "figures.csv", tmp_path / "page.md"
    status, printed = run("tiny", "--record", str(record), "--page", str(page))
    assert status == 0
    assert "GaussianNB" in printed.out
    assert record.read_text(encoding="utf-8").count("\n") == 3
    assert "### tiny" in page.read_text(encoding="utf-8") and "{{" not in page.read_text(encoding="utf-8")


def test_the_page_begins_with_what_its_tables_say(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.measure import Figure
    from benchmarks.report import summary

    figures = [
        Figure("text", "fit", "words", 1.0, 40.0, "CountVectorizer", "", at_least=30),
        Figure("text", "predict", "words", 1.0, 8.0, "CountVectorizer", "", at_least=10),
        Figure("text", "fit", "words", 1.0, 0.5, "C: words only", ""),
        Figure("text", "peak", "words", 1.0, 1.5, "CountVectorizer", "", unit="MB"),
        Figure("start", "import", "", 2.0, None, "", "", at_most=1.0),
        Figure("trees", "fit", "numbers", 2.0, 1.0, "our bell curves", ""),
    ]
    assert summary(figures).splitlines()[2:] == [
        "| text | 8× |  | 40× | 1 of 2 |",
        "| start |  |  |  | 0 of 1 |",
        "| trees, beside ours | 0.5× |  | 0.5× |  |",
        "",
        "1 of 3 aims are met. Furthest from theirs ([all that are missed](#aims-missed)):",
        "",
        "- start, import (): 2.00 s; aim ≤ 1.00 s MISSED",
        "- text, predict (words): 8×; aim ≥ 10× MISSED",
    ]


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


def test_text_runs_small_and_agrees_with_its_peers(run):
    status, printed = run("text", "--json")
    assert status == 0, printed.err
    figures = json.loads(printed.out)
    found = {(f["benchmark"], f["task"]) for f in figures}
    assert {("text", f"{task}, {n}") for task in ("fit", "predict") for n in ("1 thread", "2 threads")} <= found
    assert {("text", f"fit, {task}, 2 threads") for task in ("weighted", "log, length and idf")} <= found
    assert {("text, one document", task) for task in ("model.predict", "predict", "partial_fit")} <= found
    trainers = [f["peer_name"] for f in figures if f["benchmark"] == "text, other trainers"]
    assert any(name.startswith("Vowpal Wabbit") for name in trainers)
    assert any(name.startswith("fastText") for name in trainers)


def test_files_runs_small_and_agrees_with_its_peer(run):
    status, printed = run("files", "--json")
    assert status == 0, printed.err
    figures = json.loads(printed.out)
    assert [f["task"] for f in figures] == [
        "save",
        "load",
        "load, verify=False",
        "load, then the first document",
        "size",
    ]
    assert all(f["ours"] > 0 for f in figures)


def test_kernel_density_runs_small_and_agrees_with_its_peers(run):
    status, printed = run("kernel_density", "--json")
    assert status == 0, printed.err
    tasks = [(f["peer_name"], f["task"]) for f in json.loads(printed.out)]
    assert tasks[-4:] == [
        ("KernelDensity", "fit, and the densities at 1,000 points"),
        ("NumPy and SciPy, all pairs", "leave-one-out bandwidth"),
        ("", "leave-one-out bandwidth"),
        ("KernelDensity", "fit, and the densities of two columns at 1,000 points"),
    ]
    if importlib.util.find_spec("KDEpy"):
        assert [peer for peer, _ in tasks[:-4]] == [
            "FFTKDE on 4,096 points, interpolated",
            "FFTKDE on 4,096 points",
        ]
    else:
        assert len(tasks) == 4 and "KDEpy is left out" in printed.err


def test_wrong_densities_and_bandwidths_are_refused(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import kernel_density
    from benchmarks.measure import WrongAnswer

    right = np.array([0.1, 0.2, 0.3])
    with pytest.raises(WrongAnswer, match=r"densities are 0\.02 of their sum apart"):
        kernel_density.same_densities({"ours": right * 1.02, "peer": right})
    with pytest.raises(WrongAnswer, match="of their sum apart"):
        kernel_density.same_densities({"ours": right - [0.1001, 0, 0], "peer": right - [0.1, 0, 0]})
    x = kernel_density.data(200, 3)
    with pytest.raises(WrongAnswer, match="nats less likely than by the peer's bandwidth"):
        kernel_density.same_likelihood(x, {"ours": 8.0, "peer": kernel_density.bandwidth(x)})


def test_wrong_words_are_refused(run, monkeypatch):
    right = bb.NaiveBayesClassifier.fit
    monkeypatch.setattr(bb.NaiveBayesClassifier, "fit", lambda self, X, y: right(self, X[:-50], y[:-50]))
    status, printed = run("text")
    assert status == 1
    assert "WRONG ANSWER in text: peer and ours agree on" in printed.err


def test_drop_in_runs_small_and_agrees_with_its_peers(run):
    status, printed = run("drop_in", "--json")
    assert status == 0, printed.err
    figures = json.loads(printed.out)
    made = [f for f in figures if "Newsgroups" not in f["data"]]
    learning = ["fit", "predict", "partial_fit", "partial_fit, then predict"]
    for name in ("GaussianNB", "MultinomialNB", "ComplementNB", "BernoulliNB", "CategoricalNB"):
        tasks = [f["task"] for f in made if f["task"].startswith(name) and "sparse" not in f["data"]]
        assert tasks == [f"{name}.{task}" for task in [*learning[:2] * 4, *learning[2:] * 2]]
    sparse = [f for f in made if "sparse" in f["data"]]
    assert len(sparse) == 3 * (12 + 2)
    texts = len(figures) - len(made)
    assert texts == 10 if os.environ.get("BANBURY_DATA") else "drop_in: 20 Newsgroups are left out" in printed.err
    assert all(f["ratio"] == f["peer"] / f["ours"] for f in figures)


def test_a_batch_that_is_learned_wrongly_is_refused(run, monkeypatch):
    right = bb.GaussianNB.partial_fit
    monkeypatch.setattr(bb.GaussianNB, "partial_fit", lambda self, X, y: right(self, X, y, None, np.full(len(X), 2.0)))
    status, printed = run("drop_in")
    assert status == 1
    assert "WRONG ANSWER in drop_in: peer's parameters are" in printed.err


def test_selection_runs_small_and_agrees_with_its_peers(run):
    status, printed = run("selection", "--json")
    assert status == 0, printed.err
    figures = json.loads(printed.out)
    assert [f["task"] for f in figures[:9]] == [
        *("10 folds", "50 folds", "leave-one-out", "10 folds", "10 folds"),
        *("10 folds", "50 folds", "leave-one-out", "10 folds"),
    ]
    assert [f["unit"] for f in figures[:3]] == ["× fit and predict", "× 10 folds", "× 10 folds"]
    assert all((f["peer"] is None) == (f["ratio"] is None) for f in figures)
    rest = [f["task"] for f in figures[9:]]
    if os.environ.get("BANBURY_DATA"):
        tune = "tune, 20 values of alpha, 10 folds"
        assert rest == ["leave-one-out", tune, tune, "fit, calibrate='temperature'", "fit, calibrate='platt'"]
    else:
        assert not rest and "selection: Adult is left out" in printed.err


def test_wrong_folds_are_refused(run, monkeypatch):
    right = bb.cross_validate

    def wrong(*arguments, **settings):
        found = right(*arguments, **settings)
        return replace(found, posteriors=np.roll(found.posteriors, 1, axis=1))

    monkeypatch.setattr(bb, "cross_validate", wrong)
    status, printed = run("selection")
    assert status == 1
    assert "WRONG ANSWER in selection: posteriors of 10-fold cross-validation are" in printed.err


def test_posteriors_that_are_no_numbers_are_refused(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.measure import WrongAnswer
    from benchmarks.selection import within

    assert within([0.0, 0.0], "ten folds") == "as refitted"
    assert within([1e-12, 0.0], "ten folds") == "within 1e-12 of refitted"
    with pytest.raises(WrongAnswer, match="posteriors of ten folds are nan away"):
        within([0.0, np.nan], "ten folds")


def test_tuned_names_what_stays_below_the_peers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.tuned import Outcome

    peers = {"MultinomialNB": 0.7, "ComplementNB": 0.8}
    outcome = Outcome("news", 200, 100, 0.05, peers, 0.7, 0.79, "alpha=1", 0.9, "a machine")
    assert outcome.told()[-1] == "BELOW ComplementNB by 0.0100, 1 answer"
    assert not any("BELOW" in text for text in replace(outcome, tuned=0.8).told())


def test_tuned_tests_a_third_of_each_class(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.tuned import Part, split

    texts = [str(i) for i in range(90)]
    labels = np.array(["ham", "ham", "spam"] * 30)
    train, test = split(Part(texts[:50], labels[:50]), Part(texts[50:], labels[50:]))
    assert sorted([*train.rows, *test.rows], key=int) == texts
    assert [int(np.sum(part.labels == "spam")) for part in (train, test)] == [20, 10]
    assert all(labels[int(text)] == label for text, label in zip(test.rows, test.labels, strict=True))


def test_when_not_measures_every_learner(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import when_not
    from benchmarks.tuned import Part

    rng = np.random.default_rng(0)
    labels = np.array(["ham", "spam"] * 30)
    texts = [" ".join([label, *rng.choice(["at", "noon", "free"], 3)]) for label in labels]
    frame = pd.DataFrame({"word": labels, "number": rng.random(60)})
    frame.loc[7, "word"] = None
    for rows, learners, n in ((texts, when_not.of_texts, 8), (frame, when_not.of_columns, 6)):
        part = Part(rows, labels)
        found = [when_not.measured(*learner) for learner in learners(part, part)]
        assert [len(cells) for cells in found] == [len(when_not.HEADINGS)] * n
        assert all(float(cells[1]) > 0.9 for cells in found)
        assert sum(cells[2] == "none" for cells in found) == (rows is texts)


def test_labels_are_measured_for_every_learner(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import labels

    rng = np.random.default_rng(0)
    topics = [[name for name in ("grain", "fuel", "gold") if rng.random() < 0.4] for _ in range(150)]
    texts = [" ".join([*own, *own, *rng.choice(["at", "noon", "rise"], 3)]) for own in topics]
    train, test = labels.Stories(texts, topics).some(120), labels.Stories(texts[120:], topics[120:])
    found = list(labels.measured(train, test, 1))
    assert [cells[0] for cells in found] == list(labels.LEARNERS)
    assert all(len(cells) == len(labels.HEADINGS) and float(cells[1]) > 0.7 for cells in found)
    assert sum("ten exact folds" in said for said in labels.folds(train, test, 1)) == 2
    assert len(labels.many(50, 200, 1)) == len(labels.MANY_HEADINGS)


def test_a_story_of_reuters_is_its_title_and_text(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import labels

    story = '<TOPICS><D>grain</D></TOPICS><TEXT TYPE="NORM"><TITLE>CORN &lt;C></TITLE><BODY>It rises.</BODY></TEXT>'
    assert labels.text_of(story) == "CORN <C>\nIt rises."
    assert labels.text_of('<TOPICS></TOPICS><TEXT TYPE="UNPROC">all <X>of it</TEXT>') == "\nall  of it"


def test_many_classes_run_small(run):
    status, printed = run("many_classes", "--json")
    assert status == 0, printed.err
    assert [f["task"] for f in json.loads(printed.out)] == ["peak, train", "peak, save", "peak, load", "peak, score"]


@pytest.fixture
def billion(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import billion

    return billion


def test_a_billion_words_run_small(billion, capsys):
    assert billion.main(["--words", "1e5"]) == 0
    told = capsys.readouterr().out
    lines = [line.split(" | ") for line in told.splitlines() if line.startswith("| ")]
    assert [line[0].strip("| *") for line in lines[1:]] == [
        "counting all words of a hundredth",
        "counting the stream while it is made",
        "saving the tally",
        "loading it",
        "estimating",
        "evaluating on other documents",
        "making a part of the stream, which is held",
        "counting it, threads: 1, least of three",
        "counting it, threads: 2, least of three",
    ]
    assert "100,000 words" in told and "by the law" in told


def test_a_word_that_is_not_counted_is_a_wrong_answer(billion, monkeypatch, tmp_path):
    from benchmarks.measure import WrongAnswer

    monkeypatch.setattr(billion, "LETTERS", 1)  # words of one letter are none
    with pytest.raises(WrongAnswer, match="words were counted of"):
        list(billion.lines(10_000, 0, tmp_path / "stream.banbury"))


def test_a_stream_is_counted_alike_whatever_its_batches_order_and_threads(billion, monkeypatch):
    monkeypatch.setattr(billion, "BATCH", 60_000)
    tables, rng = list(billion.Stream(3, 200_000)), np.random.default_rng(4)
    schema = bb.count(tables[0], "class", features={"text": bb.Text()}).schema
    whole = bb.count(tables, "class", schema=schema, threads=1)
    assert whole.of("text").table.n_words > 4000
    every = pa.concat_tables(tables)
    shuffled = every.take(pa.array(rng.permutation(len(every))))
    for threads in (1, 2, 3):
        for data in (iter(tables), tables[::-1], every, shuffled, [shuffled[:17], shuffled[17:]]):
            assert bb.count(data, "class", schema=schema, threads=threads).digest() == whole.digest()
    part = bb.count(tables[1], "class", schema=schema)
    assert whole - part == bb.count([tables[0], *tables[2:]], "class", schema=schema)
    assert whole - part + part == whole


def test_a_stream_has_new_words_all_the_time_and_the_law_knows_best(billion):
    blocks = [billion.block((6, i), 200_000) for i in range(3)]
    seen = set()
    for made in blocks:
        words = set(" ".join(made.table["text"].to_pylist()).split())
        assert len(words - seen) > 5_000
        seen |= words
    made = blocks[0]
    best = np.mean(billion.best_classes(made) == made.classes)
    model = bb.estimate(bb.count([made.table for made in blocks[1:]], "class", features={"text": bb.Text()}))
    assert bb.evaluate(model, made.table).accuracy.value < best < 0.97


def test_c_loops_count_the_words_that_scikit_learn_counts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import zipf
    from benchmarks.words import Loops
    from benchmarks.yardstick import loops
    from sklearn.feature_extraction.text import CountVectorizer

    if loops() is None:
        pytest.skip("the C loops need gcc")
    texts, labels = zipf.texts(300)
    texts += ["", "a", "x" * 63 + " of", "ab" * 40 + "_9\n", "An an AN, aN?", "12345678 123456789 1234567"]
    classes = np.append(np.searchsorted(zipf.LABELS, labels), np.zeros(6, dtype=np.int64))
    vectoriser = CountVectorizer()
    theirs = vectoriser.fit_transform(texts).toarray()
    made = Loops(texts, classes, zipf.CLASSES, 40_000)
    for threads in (1, 2):
        found = made.rows(threads)
        words = found.table.words()
        assert sorted(words) == sorted(vectoriser.vocabulary_)
        places = [vectoriser.vocabulary_[word] for word in words]
        for c in range(zipf.CLASSES):
            mine, expected = found.rows[c, : len(words)], theirs[classes == c][:, places]
            assert np.array_equal(mine[:, 0], expected.sum(axis=0))
            assert np.array_equal(mine[:, 1], (expected > 0).sum(axis=0))
        assert made.only(threads)[0] == theirs.sum()
        assert made.total(threads).used[0] == len(words)
        assert made.tables(threads).tolist() == [
            np.any(theirs[classes == c], axis=0).sum() for c in range(zipf.CLASSES)
        ]


def test_posts_lose_the_headers_that_name_groups(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.newsgroups import NAMING, body_hash, without_headers

    post = "Path: a!b\nFrom: me\nXref: one\n two\nSubject: Re: path\nNewsgroups: sci.space\n\nPath: of a rocket\n"
    bare = "From: me\nSubject: Re: path\n\nPath: of a rocket\n"
    assert without_headers(post, NAMING) == bare
    assert body_hash(post) == body_hash(bare)


def test_posts_with_and_without_a_label_are_drawn_apart(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.em import Posts

    texts, groups = [str(i) for i in range(90)], np.repeat(["a", "b", "c"], 30)
    posts = Posts(texts, groups, [], np.array([]))
    for seed in range(5):
        drawn, labels = posts.split(12, seed)
        assert sorted(map(int, drawn)) == list(range(90))
        assert sorted(labels[:12]) == [*"aaaabbbbcccc"]
        assert [groups[int(text)] for text in drawn[:12]] == labels[:12].tolist()
        assert set(labels[12:]) == {None}


def test_posts_of_one_body_stay_on_one_side(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.newsgroups import halved

    groups = np.array([0, 1, 2, 0, 3, 4, 5, 5, 5])
    for seed in range(20):
        train, test = halved(groups, seed)
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(9))
        assert len(set(groups[test])) == 2


def test_tan_measures_every_model(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import tan

    rng = np.random.default_rng(0)
    told = rng.choice(["u", "v"], 200)
    frame = pd.DataFrame({"a": told, "b": told, "x": rng.normal(size=200), "y": rng.choice(["no", "yes"], 200)})
    outcome = tan.compared("made up", frame, "y")
    assert outcome.worst == "a / b" and outcome.n_rows == 200
    assert outcome.worst_bits == pytest.approx(1.0, abs=0.05)
    assert set(outcome.right) == set(tan.MODELS) and all(0.3 < share < 0.7 for share in outcome.right.values())
    assert len(outcome.cells()) == len(tan.HEADINGS) == len(tan.WIDTHS)


def test_networks_refuse_wrong_posteriors_and_edges(monkeypatch):
    pytest.importorskip("pyagrum")
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import networks
    from benchmarks.measure import WrongAnswer

    [task] = networks.posteriors()
    answers = {"ours": task.ours(), "peer": task.peer()}
    assert task.check(answers).startswith("posteriors within")
    with pytest.raises(WrongAnswer, match="apart"):
        task.check({**answers, "peer": answers["peer"] + 1e-6})


def test_em_counts_what_it_is_measured_beside_and_refuses_an_objective_that_falls(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import em
    from benchmarks.measure import Setting, WrongAnswer

    rng = np.random.default_rng(0)
    groups = np.repeat([f"g{c:02}" for c in range(20)], 60)
    texts = [" ".join(rng.choice([group, "the", "of", "and", f"w{rng.integers(300)}"], 12)) for group in groups]
    every, _ = em.iterations(em.Posts(texts, groups, [], groups[:0]), 0.1, Setting(small=True))
    climbed, counted = every.ours(), every.peer()
    assert counted.n_rows == len(climbed.posteriors) == 1000
    assert every.check({"ours": climbed, "peer": counted}).startswith("objective -")
    lower = dataclasses.replace(climbed, objectives=(climbed.objectives[-1] + 1e9,))
    with pytest.raises(WrongAnswer, match="the objective fell by"):
        every.check({"ours": lower, "peer": counted})


# Peers of the accuracy table -----------------------------------------------------------------------------------------


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import peers

    return peers


def test_peers_are_given_a_table_as_numbers(peers):
    rows = pd.DataFrame({"word": ["b", "a", "b", None], "n": [1.0, None, 3.0, 5.0]})
    numbered = peers.Numbered(rows)
    assert numbered.places == [0]
    assert numbered(rows).tolist() == [
        [0, 1],
        [numbered.words["word"]["a"], 3],
        [0, 3],
        [numbered.words["word"]["?"], 5],
    ]
    assert numbered(pd.DataFrame({"word": ["never seen"], "n": [None]})).tolist() == [[0, 3]]


@pytest.mark.parametrize(("library", "name"), [("skbn", "MixedNB"), ("skbn", "AODE"), ("pyagrum", "pyAgrum TAN")])
def test_peers_learn_tables_with_words_and_gaps(peers, library, name):
    pytest.importorskip(library)
    rng = np.random.default_rng(0)
    labels = rng.choice(["no", "yes"], 200)
    rows = pd.DataFrame(
        {"n": rng.normal(size=200) + 2 * (labels == "yes"), "word": np.where(labels == "yes", "u", "v")}
    )
    rows.loc[::7, "n"], rows.loc[3::11, "word"] = np.nan, None
    model = peers.TABLES[name](rows).fit(rows[:150], labels[:150])
    tested = rows[150:].assign(word=["never seen", *rows["word"][151:]])
    shares = model.predict_proba(tested)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-6)
    assert np.mean(model.classes_[shares.argmax(axis=1)] == labels[150:]) > 0.9


@pytest.mark.parametrize(("library", "name"), [("fasttext", "fastText"), ("vowpalwabbit", "Vowpal Wabbit")])
def test_peers_learn_texts(peers, library, name):
    pytest.importorskip(library)
    texts = ["good | fine: day", "bad, grim night", "a fine good lunch", "a grim bad lunch"] * 40
    labels = np.array(["up", "down"] * 80)
    model = peers.TEXTS[name](texts).fit(texts, labels)
    shares = model.predict_proba([*texts[:2], ""])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-6)
    assert model.classes_[shares.argmax(axis=1)][:2].tolist() == ["up", "down"]


def test_a_peer_that_is_not_installed_is_left_out(peers):
    assert peers.installed({"ours": ("json", str), "theirs": ("no_such_library", str)}) == {"ours": str}


def test_every_line_of_the_page_is_run_and_every_line_that_is_run_stands_there(capsys):
    from benchmarks import which_line

    page = (Path(__file__).parents[1] / "docs" / "which-line.md").read_text(encoding="utf-8")
    table = page.partition("## And then")[0].splitlines()
    named = [row.rsplit("`", 2)[1] for row in table if row.startswith("| ") and row.endswith("` |")]
    assert named == list(which_line.LINES)
    assert which_line.main(["outliers", "drop-in", "embeddings"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"AUC of 0\.967", shown) and "0.943 right, log loss 0.295" in shown and "within" in shown
