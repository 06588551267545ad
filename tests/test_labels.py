"""Rows with several labels: counted once, a yes or no for each, exact to the last bit; thresholds, measures, files, faces."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, hamming_loss, log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

import banbury as bb
import naive_labels
from banbury import _core
from banbury.errors import BadSetting, BadValue, BanburyError, BanburyWarning, NegativeCount, SchemaMismatch
from banbury.labels import Thresholds, yes_no
from banbury.labels.calibration import LabelCalibration
from banbury.labels.thresholds import best_f1
from banbury.tally.label_sets import EVERY, LabelSets

TEXTS = [
    "wheat and corn prices rise",
    "crude oil falls again",
    "corn oil and wheat",
    "a quiet day",
    "oil oil oil",
    "corn corn harvest",
]
TOPICS: list[list[str]] = [["grain"], ["fuel"], ["grain", "fuel"], [], ["fuel"], ["grain"]]
WORDS = ["wheat", "corn", "crude", "oil", "day", "rise", "again"]


def made(n: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts whose words depend on their labels."""
    rng = np.random.default_rng(seed)
    labels, texts, sets = ["a", "b", "c", "d"], [], []
    for _ in range(n):
        own = [label for label, p in zip(labels, (0.4, 0.3, 0.15, 0.05), strict=True) if rng.random() < p]
        words = [f"{label}{rng.integers(8)}" for label in own for _ in range(3)]
        texts.append(" ".join([*words, *(f"w{rng.integers(60)}" for _ in range(8))]))
        sets.append(own)
    return texts, sets


def made_table(n: int, seed: int = 0) -> tuple[dict[str, Any], list[list[str]]]:
    """Rows of every kind of column, the first of them with some values missing, that depend on their labels."""
    texts, sets = made(n, seed)
    rng = np.random.default_rng(seed + 1)
    has = {label: np.array([label in own for own in sets]) for label in "abcd"}
    numbers = np.where(has["b"], np.abs(rng.normal(size=n)) + 1.0, rng.normal(size=n))
    numbers[: n // 10] = np.nan
    frame = {"text": texts, "n": numbers, "m": 2.0 * numbers + rng.normal(size=n) / 10, "f": rng.random(n) < 0.5}
    frame["c"] = np.where(has["a"], "x", "y").tolist()
    frame["c"][1::5] = ["z"] * len(frame["c"][1::5])
    return frame, sets


def repeated_columns(n: int, seed: int = 0) -> tuple[dict[str, Any], list[list[str]]]:
    """The same without texts, and with columns that say once more what another says."""
    frame, sets = made_table(n, seed)
    del frame["text"]
    return frame | {f"m{k}": frame["m"] + k for k in range(6)}, sets


# Counting -------------------------------------------------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
        st.sampled_from([1e12, 1.0, 0.1, -3.5, -99999.0, float("nan")]),
        st.sampled_from(["x", "y", None]),
        st.sets(st.sampled_from(["grain", "fuel", "metal"])),
    ),
    min_size=2,
    max_size=12,
)
FEATURES = {"text": bb.Text(), "n": bb.Gaussian(), "c": bb.Categorical()}


def table(rows: Any) -> dict[str, Any]:
    text, n, c, _ = zip(*rows, strict=True)
    return {"text": list(text), "n": np.array(n), "c": list(c)}


@given(ROWS, st.integers(0, 12), st.randoms())
def test_laws_hold(rows: Any, cut: int, random: Any) -> None:
    sets = [sorted(own) for *_, own in rows]
    whole = bb.count(table(rows), target=sets, features=FEATURES)
    cut = min(max(cut, 1), len(rows) - 1)
    first = bb.count(table(rows[:cut]), target=sets[:cut], schema=whole.schema)
    second = bb.count(table(rows[cut:]), target=sets[cut:], schema=whole.schema)
    assert first + second == whole == second + first
    assert whole - second == first and (whole - first).digest() == second.digest()
    order = list(range(len(rows)))
    random.shuffle(order)
    mixed = bb.count(table([rows[i] for i in order]), target=[sets[i] for i in order], schema=whole.schema, threads=2)
    assert mixed == whole and mixed.digest() == whole.digest()
    assert whole.n_rows == len(rows)
    twice = bb.count(table(rows), target=sets, schema=whole.schema, weights=[2] * len(rows))
    assert twice == whole + whole == whole * 2


@given(ROWS)
def test_every_label_is_what_counting_it_against_the_rest_gives(rows: Any) -> None:
    sets = [sorted(own) for *_, own in rows]
    whole = bb.count(table(rows), target=sets, features=FEATURES)
    for label in set().union(*sets):
        flags = [label in own for own in sets]
        counted = bb.count(table(rows), target=flags, schema=_single(whole.schema))
        assert yes_no(whole, label) == counted and yes_no(whole, label).digest() == counted.digest()


def _single(schema: Any) -> Any:
    from dataclasses import replace

    return replace(schema, labels=None)


def test_targets_of_every_kind_count_the_same(tmp_path: Path) -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    names = ["fuel", "grain"]
    flags = np.array([[name in own for name in names] for own in TOPICS])
    tally = bb.count({"text": TEXTS, "topics": TOPICS}, target="topics")
    frames: list[Any] = [
        pa.table({"text": TEXTS, "topics": TOPICS}),
        pd.DataFrame({"text": TEXTS, "topics": [set(own) for own in TOPICS]}),
        pl.DataFrame({"text": TEXTS, "topics": TOPICS}),
        [{"text": text, "topics": own} for text, own in zip(TEXTS, TOPICS, strict=True)],
    ]
    assert all(bb.count(frame, target="topics") == tally for frame in frames)
    file = tmp_path / "papers.ndjson"
    file.write_text("".join(json.dumps(record) + "\n" for record in frames[-1]))
    assert bb.count(file, target="topics") == tally
    joined = {"text": TEXTS, "topics": [";".join(own) for own in TOPICS]}
    assert bb.count(joined, target="topics", target_delimiter=";") == tally
    pd.DataFrame(joined).to_csv(tmp_path / "papers.csv", index=False)
    assert bb.count(tmp_path / "papers.csv", target="topics", target_delimiter=";") == tally
    assert bb.count({"text": TEXTS}, target=TOPICS) == tally
    numbered = bb.count({"text": TEXTS}, target=flags)
    assert numbered == bb.count({"text": TEXTS}, target=sparse.csr_matrix(flags)) and numbered.n_rows == 6
    columns = {"text": TEXTS, "fuel": flags[:, 0], "grain": flags[:, 1].astype(int)}
    apart = bb.count(columns, target=["fuel", "grain"])
    assert apart == tally and apart.schema.labels is not None and apart.schema.labels.flags
    assert bb.count({"text": TEXTS}, target=pd.DataFrame(flags, columns=names)) == tally
    assert tally.count(columns | {"topics": TOPICS}) == tally


def test_a_file_that_lies_in_several_folders_has_their_labels(tmp_path: Path) -> None:
    for number, (text, own) in enumerate(zip(TEXTS, TOPICS, strict=True)):
        for topic in own:
            (tmp_path / topic).mkdir(exist_ok=True)
            (tmp_path / topic / f"{number}.txt").write_text(text)
    (tmp_path / "fuel" / "0.txt").write_text("another text of that name")
    rows = [(text, own) for text, own in zip(TEXTS, TOPICS, strict=True) if own] + [
        ("another text of that name", ["fuel"])
    ]
    texts, topics = zip(*rows, strict=True)
    tally = bb.count(tmp_path, target="folders")
    assert tally == bb.count({"text": list(texts)}, target=list(topics)) and tally.n_rows == 6
    assert bb.evaluate(bb.LabelModel.of(tally), tmp_path).truth.sum() == 7
    assert bb.count(tmp_path).n_rows == 7  # each a row of its own, where folders are classes
    bb.save(tally, tmp_path / "tally.banbury")
    assert bb.load(tmp_path / "tally.banbury").schema.labels == tally.schema.labels  # type: ignore[union-attr]


def test_a_row_without_labels_counts_and_one_without_a_target_does_not() -> None:
    tally = bb.count({"text": TEXTS, "topics": [["grain"], None, [], [], ["fuel"], None]}, target="topics")
    assert (tally.n_rows, tally.skipped, tally.classes) == (4, 2, (EVERY, "fuel", "grain"))
    assert "2 labels" in str(tally) and "''" not in str(tally).splitlines()[1]


def test_a_tally_of_labels_is_told_by_its_rows_each_once() -> None:
    rows = {
        "text": ["a long text of words", "so is this one", "and this"],
        "n": [1.0, None, 3.0],
        "c": ["x", None, "y"],
    }
    one = str(bb.count(rows, target=["p", "p", "p"])).splitlines()[2:]
    several = bb.count(rows, target=[["p", "q"], ["p"], []])
    assert str(several).splitlines()[3:] == one
    assert several.missing == {"text": 0.0, "n": 1.0, "c": 1.0}
    model = bb.LabelModel.of(several)
    assert str(model.thresholds) == "2 thresholds, 0.500; 0.500 for new labels"


def test_labels_may_come_at_any_time_and_go() -> None:
    tally = bb.count({"text": TEXTS}, target=TOPICS)
    more = bb.count({"text": ["gold and silver"]}, target=[["metal", "gold"]], schema=tally.schema)
    assert (tally + more).classes == (EVERY, "fuel", "gold", "grain", "metal")
    assert tally + more - more == tally
    with pytest.raises(NegativeCount):
        tally - more
    with pytest.raises(SchemaMismatch):
        tally + bb.count({"text": TEXTS}, target=["a"] * 6)


# Scoring --------------------------------------------------------------------------------------------------------------


@given(ROWS.filter(lambda rows: any(own for *_, own in rows)), st.sampled_from([1.0, 0.01]))
def test_texts_are_scored_as_one_against_the_rest(rows: Any, alpha: float) -> None:
    texts, sets = [text.split() for text, *_ in rows], [own for *_, own in rows]
    tally = bb.count(
        {"text": [" ".join(text) for text in texts]}, target=[sorted(own) for own in sets], features="text"
    )
    model = bb.LabelModel.of(tally, alpha=alpha)
    asked = ["wheat corn corn", "oil", "", "unheard of"]
    found = model.posterior({"text": asked})
    for k, label in enumerate(model.labels):
        if all(label in own for own in sets):
            continue
        for text, p in zip(asked, found[:, k].tolist(), strict=True):
            want = naive_labels.log_odds(texts, sets, label, text.split(), alpha)
            assert_allclose(p, 1 / (1 + np.exp(-want)), rtol=0, atol=1e-9)


@given(ROWS.filter(lambda rows: any(own for *_, own in rows)))
def test_mixed_rows_are_scored_as_models_of_yes_and_no(rows: Any) -> None:
    sets = [sorted(own) for *_, own in rows]
    model = bb.LabelModel.of(bb.count(table(rows), target=sets, features=FEATURES))
    found = model.posterior(table(rows))
    assert np.isfinite(found).all() and (found >= 0).all() and (found <= 1).all()
    for k, label in enumerate(model.labels):
        own = model.of_label(label)
        if len(own.classes) == 2:
            assert_allclose(own.posterior(table(rows))[:, 1], found[:, k], rtol=0, atol=1e-9)


def test_the_kernel_is_a_dense_product() -> None:
    rng = np.random.default_rng(0)
    dense = rng.random((7, 5)) * (rng.random((7, 5)) < 0.4)
    counts = sparse.csr_matrix(rng.integers(0, 3, (600, 7)) * (rng.random((600, 7)) < 0.5))
    index, base, slopes = sparse.csr_matrix(dense), rng.normal(size=7), rng.normal(size=5)
    parts = index.indptr.astype(np.int64), index.indices.astype(np.uint32), index.data, base
    values, hashes = counts.data.astype(np.float64), np.zeros(600, dtype=np.uint64)
    bags = _core.Bags(counts.indptr.astype(np.int64), counts.indices.astype(np.uint32), values, hashes, 7)
    want = counts @ dense + (counts @ base)[:, None] + np.outer(counts.sum(axis=1), slopes)
    for threads in (1, 2):
        assert_allclose(bags.label_scores(values, parts, slopes, threads), want, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="labels must be below"):
        bags.label_scores(values, (parts[0], parts[1] + 9, parts[2], base), slopes, 1)


def test_texts_are_scored_in_doubles() -> None:
    rng = np.random.default_rng(0)
    counts = sparse.csr_matrix(rng.random((600, 7)) * (rng.random((600, 7)) < 0.5))
    scale, table = rng.random(7).astype(np.float32), rng.normal(size=(7, 3)).astype(np.float32)
    cells = counts.indptr.astype(np.int64), counts.indices.astype(np.uint32), counts.data
    bags = _core.Bags(*cells, np.zeros(600, dtype=np.uint64), 7)
    for often, dense in ((True, np.sqrt(counts.toarray())), (False, (counts.toarray() > 0) * 1.0)):
        dense *= scale
        dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-300)
        for threads in (1, 2):
            values = bags.values(often, scale, threads)
            assert_allclose(values, dense[counts.nonzero()], rtol=1e-14)
            assert_allclose(bags.scores(values, table, threads), dense @ table.astype(np.float64), rtol=0, atol=1e-14)


def test_a_label_of_all_rows_and_one_of_none() -> None:
    flags = np.array([[1, 0, 0], [1, 0, 1], [1, 0, 1], [1, 0, 0]])
    clf = bb.MultiLabelClassifier().fit(TEXTS[:4], flags)
    assert clf.predict(TEXTS[:4])[:, :2].tolist() == [[1, 0]] * 4
    found = clf.predict_proba(["oil", "nothing"])
    assert found.shape == (2, 3) and (found[:, 1] == 0).all() and (found[:, 0] > 0.5).all()
    assert not np.isnan(found).any()


def test_the_most_probable_come_first_and_one_at_least_if_asked() -> None:
    model = bb.LabelModel.of(bb.count({"text": TEXTS}, target=TOPICS))
    assert model.predict(["corn oil"], top=2)[0] in (("grain", "fuel"), ("fuel", "grain"))
    strict = model.with_thresholds(Thresholds.half(model.labels).override(1.0))
    assert strict.predict(["corn"]) == [()] and strict.predict(["corn"], at_least_one=True) == [("grain",)]
    for top in (0, -1, True, 1.5):
        with pytest.raises(BadSetting):
            model.predict(["corn"], top=top)  # type: ignore[arg-type]


def test_informative_values_are_those_of_the_label() -> None:
    frame, sets = made_table(300)
    of_texts = bb.MultiLabelClassifier(weigh=True).fit({"text": frame.pop("text")}, sets).model_
    assert [ratio.value[0] for ratio in of_texts.informative("a", 3).ratios["a"]] == ["a"] * 3
    of_table = bb.MultiLabelClassifier(weigh=True).fit(frame, sets).model_
    assert of_table.informative("a", 1).ratios["a"][0].feature == "c"


@pytest.mark.parametrize("n", [1, 3, 500])
def test_the_words_that_tell_most_of_a_label_alone_count(n: int) -> None:
    texts, sets = made(200)
    tally = bb.count({"text": texts}, target=sets)
    model = bb.LabelModel.of(tally, words_per_label=n)
    found = model.posterior({"text": texts[:20]})
    total = {word: sum(text.split().count(word) for text in texts) for word in {w for t in texts for w in t.split()}}
    everything = sum(total.values())
    for k, label in enumerate(model.labels):
        own = [text for text, labels in zip(texts, sets, strict=True) if label in labels]
        ratios = {}
        for word in total:
            table = np.zeros((2, 2))
            for text, labels in zip(texts, sets, strict=True):
                table[int(word in text.split()), int(label in labels)] += 1
            expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
            if table[1, 1]:
                ratios[word] = float((table[table > 0] * np.log(table[table > 0] / expected[table > 0])).sum())
        chosen = sorted(ratios, key=lambda word: (-round(ratios[word], 9), word))[:n]
        said = {}
        for word in chosen:
            counted = sum(text.split().count(word) for text in own)
            inside, prior = sum(len(text.split()) for text in own), 1000.0 * total[word] / everything
            here = (counted + prior) / (inside + 1000.0)
            said[word] = np.log(here / ((total[word] - counted + prior) / (everything - inside + 1000.0)))
        for row, text in enumerate(texts[:20]):
            times = {word: text.split().count(word) for word in set(text.split())}
            length = np.sqrt(sum(times.values()))
            odds = (
                np.log(len(own) / (200 - len(own)))
                + sum(np.sqrt(times.get(w, 0)) * s for w, s in said.items()) / length
            )
            assert_allclose(found[row, k], 1 / (1 + np.exp(-odds)), rtol=0, atol=1e-9)
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(BadSetting, match="words_per_label"):
            bb.LabelModel.of(tally, words_per_label=wrong)  # type: ignore[arg-type]


# Thresholds and measures ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=1, max_size=12))
def test_the_best_threshold_is_the_best_there_is(rows: Any) -> None:
    odds, there = np.array([odd for odd, _ in rows], dtype=np.float64), np.array([flag for _, flag in rows])
    cut = best_f1(odds, there, np.ones(len(odds)))[0]
    if there.any():
        assert naive_labels.f1((odds >= cut).tolist(), there.tolist()) == naive_labels.best_f1(odds, there.tolist())


def test_rows_that_are_far_apart_are_parted_at_even_odds() -> None:
    odds, there = np.array([30.0, 12.0, -9.0, -400.0]), np.array([True, True, False, False])
    assert best_f1(odds, there, np.ones(4))[0] == 1.5
    assert best_f1(odds[[0, 1, 3]], there[[0, 1, 3]], np.ones(3))[0] == 0.0
    assert (
        best_f1(odds[[0, 3]] - 33.0, there[[0, 3]], np.ones(2))[0] == -5.0
    )  # nearer to what has the label than to what has not


def test_honest_numbers_lose_least() -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(scale=4, size=(4000, 2)) - 1
    flags = rng.random(odds.shape) < 1 / (1 + np.exp(-(0.3 * odds - 0.5)))
    found = LabelCalibration.fit(None, odds, flags, None)
    slope, shift = found.slope, found.shift
    assert abs(slope - 0.3) < 0.03 and abs(shift + 0.5) < 0.1
    assert not LabelCalibration.fit(None, odds, np.zeros_like(flags), None).changes


def test_calibration_is_learned_of_all_labels_or_of_each(tmp_path: Path) -> None:
    (frame, sets), (test, truth) = repeated_columns(300), repeated_columns(300, seed=1)
    model = bb.LabelModel.of(bb.count(frame, target=sets))
    assert model.calibration is None
    before = bb.evaluate(model, test, truth).log_loss
    held = bb.cross_validate(frame, sets, folds=5, threshold=None)
    losses = []
    for method in ("temperature", "platt"):
        found = bb.calibrate(method, held.log_odds, held.truth)
        honest = model.calibrated(found)  # type: ignore[arg-type]
        same = [set(own) for own in honest.predict(test)] == [set(own) for own in model.predict(test)]
        assert same  # for thresholds go along
        assert_allclose(honest.log_odds(test), model.log_odds(test))
        assert_allclose(honest.posterior(test), found.apply(model.log_odds(test)))
        told, p = honest.explain([{k: v[0] for k, v in test.items()}], "b"), honest.posterior(test)[0, 1]
        assert_allclose(told.probability if told.winner == "b" else told.probability_against, p, rtol=1e-9)
        bb.save(honest, tmp_path / "honest.banbury")
        loaded = bb.load(tmp_path / "honest.banbury")
        assert str(loaded.calibration) == str(found) and np.array_equal(loaded.posterior(test), honest.posterior(test))
        assert honest.calibrated(None).predict(test) == model.predict(test)
        losses.append(bb.evaluate(honest, test, truth).log_loss)
        within = bb.cross_validate(frame, sets, folds=5, threshold=None, calibrate=method)
        assert within.log_loss < 0.8 * held.log_loss
        clf = bb.MultiLabelClassifier(weigh=False, calibrate=method).fit(frame, sets)
        assert type(clf.model_.calibration) is type(found) and clf.model_.calibration.is_shared == (method != "platt")
        clf.partial_fit(taken(test, [0]), [["new"]])
        assert clf.predict_proba(test).shape == (300, 5)
    assert losses[0] < 0.8 * before and losses[1] < losses[0]


def test_the_line_of_a_label_is_drawn_towards_that_of_all() -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(size=(4000, 3)) * 5
    flags = rng.random((4000, 3)) < 1 / (1 + np.exp(-(odds * [0.2, 0.5, 0.2] + [0.0, -1.0, 1.0])))
    flags[:, 2] = False  # never there
    found = LabelCalibration.fit("platt", odds, flags, None)
    assert_allclose(found.slopes[:2], [0.2, 0.5], atol=0.05)
    assert_allclose(found.shifts[:2], [0.0, -1.0], atol=0.15)
    assert np.isfinite(found.shifts).all() and found.apply(odds)[:, 2].max() < 0.1
    twice = LabelCalibration.fit("platt", odds, flags, np.full(4000, 2.0))
    both = LabelCalibration.fit("platt", np.tile(odds, (2, 1)), np.tile(flags, (2, 1)), None)
    assert_allclose(twice.slopes, both.slopes)
    for bad, said in (
        ((odds, flags[:-1]), "rows of flags"),
        ((odds[:, :2], flags), "3 labels"),
        ((odds, odds), "flags"),
    ):
        with pytest.raises(BanburyError, match=said):
            bb.calibrate("platt", *bad)
    with pytest.raises(BanburyError, match="isotonic"):
        bb.calibrate("isotonic", odds, flags)
    with pytest.raises(BadValue, match="row 0 for label number 1"):
        bb.calibrate("platt", np.where(np.arange(3) == 1, np.nan, odds), flags)
    with pytest.raises(BadSetting, match="a calibration for 3 labels"):
        bb.LabelModel.of(bb.count(TEXTS, target=TOPICS)).calibrated(found)


def test_measures_are_those_of_scikit_learn() -> None:
    texts, sets = made(240)
    found = bb.cross_validate(texts, sets, folds=5)
    truth, given_ = found.truth, found.predicted
    assert_allclose(found.micro_f1, f1_score(truth, given_, average="micro"))
    assert_allclose(found.macro_f1, f1_score(truth, given_, average="macro"))
    assert_allclose(found.hamming_loss, hamming_loss(truth, given_))
    assert_allclose(found.subset_accuracy, (truth == given_).all(axis=1).mean())
    each = [log_loss(truth[:, k], found.posterior[:, k], labels=[False, True]) for k in range(truth.shape[1])]
    assert_allclose(found.log_loss, np.mean(each))
    assert found.to_dict()["labels"][0]["rows"] == sum("a" in own for own in sets)
    assert found.predictions[0] == tuple(found.labels[k] for k in np.flatnonzero(given_[0]))


@pytest.mark.parametrize(
    "family",
    [
        bb.Text(model="presence", min_count=2),
        bb.Text(max_share=0.25),
        bb.Text(drop_most_frequent=2, max_words=40),
        bb.Text(model="bernoulli"),
    ],
    ids=["presence", "max_share", "max_words", "bernoulli"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_of_pruned_and_weighted_texts_are_those_of_refitting(family: Any, weighted: bool) -> None:
    texts, sets = made(90)
    sets[4] = ["alone", *sets[4]]  # a label that the other folds do not have
    frame, features = {"text": texts, "c": [own[:1] == ["a"] for own in sets]}, {"text": family}
    weights = np.where(np.arange(90) % 3 == 0, 0.1, 2.5) if weighted else None
    folds = np.arange(90) % 4
    found = bb.cross_validate(frame, sets, folds=folds, threshold=None, features=features, weights=weights, alpha=0.3)
    for fold in range(4):
        learned, tested = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        rest = {name: [column[i] for i in learned] for name, column in frame.items()}
        own = None if weights is None else weights[learned]
        tally = bb.count(rest, target=[sets[i] for i in learned], features=features, weights=own)
        model = bb.LabelModel.of(tally, alpha=0.3)
        scores = model.log_odds({name: [column[i] for i in tested] for name, column in frame.items()})
        columns = [found.labels.index(label) for label in model.labels]
        assert_allclose(found.log_odds[np.ix_(tested, columns)], scores, rtol=1e-6, atol=1e-9)


def test_folds_are_those_of_refitting() -> None:
    texts, sets = made(60)
    folds = [i % 3 for i in range(60)]
    found = bb.cross_validate(texts, sets, folds=folds, threshold=None)
    for fold in range(3):
        inside = [i for i in range(60) if i % 3 != fold]
        model = bb.LabelModel.of(bb.count([texts[i] for i in inside], target=[sets[i] for i in inside]))
        at = [i for i in range(60) if i % 3 == fold]
        want = model.posterior({"text": [texts[i] for i in at]})
        assert_allclose(found.posterior[at][:, [found.labels.index(label) for label in model.labels]], want, atol=1e-12)


def taken(frame: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: [column[i] for i in rows] for name, column in frame.items()}


@pytest.mark.parametrize("columns", [["text"], ["n", "c"], ["text", "n", "m", "c", "f"]])
def test_no_order_of_rows_and_no_number_of_threads_changes_an_answer(columns: list[str]) -> None:
    frame, sets = made_table(260)
    frame = {name: frame[name] for name in columns}
    order = np.random.default_rng(1).permutation(260)
    for weigh in (False, True):
        first = bb.MultiLabelClassifier(weigh=weigh, threads=1).fit(frame, sets)
        clf = bb.MultiLabelClassifier(weigh=weigh, threads=2)
        second = clf.fit(taken(frame, order), [sets[i] for i in order])
        assert np.array_equal(first.thresholds_.probabilities, second.thresholds_.probabilities)
        assert np.array_equal(first.predict_proba(frame), second.predict_proba(frame))


@pytest.mark.parametrize("columns", [["text"], ["n", "c"], ["text", "n", "m", "c", "f"]])
def test_a_weight_of_two_is_the_row_twice_and_one_of_none_no_row(columns: list[str]) -> None:
    frame, sets = made_table(200)
    frame = {name: frame[name] for name in columns}
    weights = np.random.default_rng(0).integers(0, 3, 200)
    weights[:150] = np.maximum(weights[:150], 1)
    rows = np.repeat(np.arange(200), weights)
    for weigh in (False, True):
        first = bb.MultiLabelClassifier(weigh=weigh).fit(frame, sets, sample_weight=weights)
        clf = bb.MultiLabelClassifier(weigh=weigh)
        second = clf.fit(taken(frame, rows), [sets[i] for i in rows])
        assert_allclose(first.predict_proba(frame), second.predict_proba(frame), atol=1e-9)
        assert first.predict(frame) == second.predict(frame)


def test_a_table_is_weighed_and_what_was_learned_stays_with_it(tmp_path: Path) -> None:
    (frame, sets), (test, truth) = repeated_columns(400), repeated_columns(300, seed=1)
    clf = bb.MultiLabelClassifier().fit(frame, sets)
    assert clf.weighing_.cells.names[:4] == ("n", "m", "c", "m0") and "9 columns × 4 labels" in str(clf.weighing_)
    plain = bb.MultiLabelClassifier(weigh=False).fit(frame, sets)
    losses = [bb.evaluate(each.model_, test, truth).log_loss for each in (clf, plain)]
    assert losses[0] < 0.95 * losses[1]  # columns that say the same are heard once
    bb.save(clf.model_, tmp_path / "table.banbury")
    loaded = bb.load(tmp_path / "table.banbury")
    assert np.array_equal(loaded.posterior(test), clf.model_.posterior(test))
    before = clf.predict_proba(frame)
    first, rest = {name: column[:1] for name, column in frame.items()}, [sets[0]]
    clf.partial_fit({**first, "c": ["unheard"]}, [["new"]])
    assert clf.weights_stale_ and clf.explain([{**{k: v[0] for k, v in first.items()}, "c": "unheard"}], "new").stale
    clf.forget({**first, "c": ["unheard"]}, [["new"]])
    assert not clf.weights_stale_ and np.array_equal(clf.predict_proba(frame), before)
    clf.forget(first, rest)
    assert clf.weights_stale_ and not np.array_equal(clf.predict_proba(frame), before)
    clf.partial_fit(first, rest)
    assert not clf.weights_stale_ and np.array_equal(clf.predict_proba(frame), before)
    clf.forget(first, rest).refit(taken(frame, range(1, 400)), sets[1:])
    assert not clf.weights_stale_ and bb.evaluate(clf.model_, test, truth).log_loss < losses[1]


def test_corrections_of_words_that_were_forgotten_and_came_again_are_gone() -> None:
    texts, sets = made(150)
    clf = bb.MultiLabelClassifier().fit(["zzz yyy", *texts], [["a"], *sets])
    clf.forget(["zzz yyy"], [["a"]]).partial_fit(["zzz yyy"], [["a"]])
    assert clf.predict_proba(["zzz", texts[0]]).shape == (2, 4)


def test_weighing_and_thresholds_pay() -> None:
    texts, sets = made(600)
    test, truth = made(400, seed=1)
    flags = LabelSets.of(truth).flags(["a", "b", "c", "d"])
    scores = {}
    for name, settings in {
        "plain": {"weigh": False},
        "half": {"weigh": False, "threshold": 0.5},
        "weighed": {},
    }.items():
        clf = bb.MultiLabelClassifier(**settings).fit(texts, sets)
        given_ = LabelSets.of([list(own) for own in clf.predict(test)]).flags(["a", "b", "c", "d"])
        scores[name] = f1_score(flags, given_, average="micro")
    assert scores["weighed"] > 0.97 and scores["weighed"] >= scores["plain"] >= scores["half"] - 0.01


def test_settings_are_tuned_and_the_best_is_kept(tmp_path: Path) -> None:
    texts, sets = made(200)
    found = bb.tune(
        texts, sets, alpha=[1.0, 0.01], text={"model": ["multinomial", "presence"]}, weigh=[False, True], folds=4
    )
    assert len(found.settings) == 5 and found.best == found.settings[int(np.argmin(found.scores))]
    assert str(found).startswith(
        "5 settings tried on 200 rows by 4-fold cross-validation, best first:"
    ) and "micro f1" in str(found)
    alone = bb.cross_validate(texts, sets, folds=4, alpha=0.01)
    assert (
        found.scores[found.settings.index({"alpha": 0.01, "how": "mean", "text": {"model": "multinomial"}})]
        == alone.log_loss
    )
    bb.save(found.model, tmp_path / "best.banbury")
    with pytest.raises(BanburyError, match="scoring"):
        bb.tune(texts, sets, scoring="brier")


# The estimator --------------------------------------------------------------------------------------------------------


@parametrize_with_checks([bb.MultiLabelClassifier(), bb.MultiLabelClassifier(weigh=False, threshold=0.5)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_answers_are_in_kind() -> None:
    texts, sets = made(120)
    flags = LabelSets.of(sets).flags(["a", "b", "c", "d"]).astype(int)
    dense = bb.MultiLabelClassifier().fit(texts, flags)
    thin = bb.MultiLabelClassifier().fit(texts, sparse.csr_matrix(flags))
    named = bb.MultiLabelClassifier().fit(texts, sets)
    assert isinstance(dense.predict(texts[:3]), np.ndarray) and sparse.issparse(thin.predict(texts[:3]))
    assert np.array_equal(thin.predict(texts).toarray(), dense.predict(texts))
    assert all(isinstance(own, tuple) for own in named.predict(texts[:3]))
    assert named.classes_.tolist() == ["a", "b", "c", "d"] and dense.classes_.tolist() == [0, 1, 2, 3]
    assert named.score(texts, sets) > 0.8


def test_learning_and_forgetting_are_exact() -> None:
    texts, sets = made(150)
    whole = bb.MultiLabelClassifier().fit(texts, sets)
    parts = bb.MultiLabelClassifier().fit(texts[:120], sets[:120]).partial_fit(texts[120:], sets[120:])
    assert parts.tally_ == whole.tally_ and parts.weights_stale_ and not whole.weights_stale_
    digest = whole.tally_.digest()
    whole.partial_fit(["zzz"], [["new"]])
    assert whole.classes_.tolist() == ["a", "b", "c", "d", "new"]
    assert whole.predict_proba(texts[:2]).shape == (2, 5)
    whole.forget(["zzz"], [["new"]])
    assert whole.tally_.digest() == digest and not whole.weights_stale_
    with pytest.raises(NegativeCount):
        whole.forget(["never seen this"], [["a"]])
    assert whole.tally_.digest() == digest
    again = pickle.loads(pickle.dumps(whole))
    assert np.array_equal(again.predict_proba(texts[:9]), whole.predict_proba(texts[:9]))
    parts.refit(texts, sets)
    assert not parts.weights_stale_
    assert np.array_equal(parts.predict_proba(texts[:9]), whole.predict_proba(texts[:9]))


def test_batches_alone_make_the_tally_of_all() -> None:
    texts, sets = made(90)
    clf = bb.MultiLabelClassifier()
    for start in range(0, 90, 30):
        clf.partial_fit(texts[start : start + 30], sets[start : start + 30])
    assert clf.tally_ == bb.count(texts, target=sets)
    assert clf.predict([texts[0]])


# Files ----------------------------------------------------------------------------------------------------------------


def test_models_are_saved_and_loaded(tmp_path: Path) -> None:
    texts, sets = made(150)
    numbers = np.arange(150.0)
    frame = {"text": texts, "n": numbers}
    for settings in ({"weigh": False}, {"weigh": True}):
        clf = bb.MultiLabelClassifier(**settings).fit(frame, sets)
        bb.save(clf.model_, tmp_path / "labels.banbury")
        loaded = bb.load(tmp_path / "labels.banbury")
        assert isinstance(loaded, bb.LabelModel) and loaded.tally == clf.tally_
        assert np.array_equal(loaded.posterior(frame), clf.model_.posterior(frame))
        assert loaded.predict(frame) == clf.predict(frame)
    tally = bb.count(frame, target=sets)
    bb.save(tally, tmp_path / "tally.banbury")
    assert bb.load(tmp_path / "tally.banbury") == tally


def test_no_byte_of_what_was_forgotten_is_in_a_file(tmp_path: Path) -> None:
    texts, sets = made(150)
    clf = bb.MultiLabelClassifier().fit([*texts, "xyzzyplugh secret"], [*sets, ["hushhush"]])
    clf.forget(["xyzzyplugh secret"], [["hushhush"]])
    bb.save(clf.model_, tmp_path / "labels.banbury")
    held = (tmp_path / "labels.banbury").read_bytes()
    assert b"xyzzyplugh" not in held and b"hushhush" not in held
    assert bb.load(tmp_path / "labels.banbury").predict({"text": texts[:3]})  # type: ignore[union-attr]


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ([["a"], [None], ["b"]], "missing"),
        ([["a"], [float("nan")], ["b"]], "missing"),
        ([["a"], [object()], ["b"]], "not a text, a number"),
        ([["a"], [""], ["b"]], "an empty text"),
        ([["a"], "b", ["c"]], "no set of labels"),
        ([["a"], 3, ["c"]], "no set of labels"),
        (np.array([[0.5, 1], [0, 1], [1, 1]]), "flags"),
        (np.array([["a", "b"], ["c", "d"], ["e", "f"]]), "flags"),
    ],
    ids=["none", "nan", "object", "empty", "text", "number", "half", "texts"],
)
def test_what_is_no_label_is_named(target: Any, said: str) -> None:
    with pytest.raises(BanburyError, match=said):
        bb.count({"text": TEXTS[:3]}, target=target)


def test_a_label_that_stands_twice_counts_once_and_that_is_said() -> None:
    with pytest.warns(BanburyWarning, match="1 label occurs twice"):
        tally = bb.count({"text": TEXTS[:2]}, target=[["a", "a"], ["b"]])
    assert tally == bb.count({"text": TEXTS[:2]}, target=[["a"], ["b"]])


def test_one_label_for_each_row_works_and_says_what_is_meant() -> None:
    with pytest.warns(BanburyWarning, match="NaiveBayesClassifier"):
        clf = bb.MultiLabelClassifier().fit(TEXTS[:2], [["a"], ["b"]])
    assert clf.predict(["wheat"]) == [("a",)]


def test_settings_that_do_not_fit_are_refused() -> None:
    texts, sets = made(120)
    clf = bb.MultiLabelClassifier().fit(texts, LabelSets.of(sets).flags(["a", "b"]))
    with pytest.raises(BadSetting, match="the 2 labels of the first rows"):
        clf.partial_fit(texts, np.zeros((120, 3)))
    for settings in (
        {"weigh": "often"},
        {"threshold": "often"},
        {"threshold": 1.5},
        {"threshold": {"zz": 0.5}},
        {"seed": -1},
    ):
        with pytest.raises(BanburyError):
            bb.MultiLabelClassifier(**settings).fit(texts, sets)
    with pytest.raises(BadSetting, match="without texts, categories and numbers"):
        bb.MultiLabelClassifier(weigh=True).fit({"flag": [True, False] * 60}, sets)
    with pytest.raises(BanburyError, match="nothing to learn"):
        bb.MultiLabelClassifier().fit(texts, [[] for _ in texts])
    with pytest.raises(BanburyError):
        bb.MultiLabelClassifier().fit(texts, sets[:-1])
    with pytest.raises(BadSetting, match="sets of labels"):
        bb.estimate(bb.count(texts, target=sets))
    with pytest.raises(BadSetting, match="one class per row"):
        bb.LabelModel.of(bb.count(texts, target=["a"] * 120))
    with pytest.raises(BadSetting, match="target_delimiter"):
        bb.count({"text": texts}, target=sets, target_delimiter=";")
    with pytest.raises(BadValue, match="yes or no"):
        bb.count({"text": TEXTS, "a": [1, 0, 1, 0, 1, 7], "b": [0] * 6}, target=["a", "b"])
    with pytest.raises(BanburyError, match="'grane'"):
        bb.LabelModel.of(bb.count({"text": TEXTS}, target=TOPICS)).explain("corn", "grane")


def test_what_is_given_in_another_dress_counts_the_same() -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    texts, sets = made(120)
    clf = bb.MultiLabelClassifier().fit(texts, sets)
    for y in (polars.Series(sets), pyarrow.array(sets), pyarrow.chunked_array([sets[:50], sets[50:]])):
        again = bb.MultiLabelClassifier().fit(texts, y)
        assert again.tally_ == clf.tally_ and again.predict(texts) == clf.predict(texts)
        assert again.score(texts, y) == clf.score(texts, sets)
    with pytest.raises(BadValue, match="missing"):
        bb.MultiLabelClassifier().fit(texts, polars.Series([[*own, None] for own in sets]))
    flags = LabelSets.of(sets).flags(["a", "b", "c"]).astype(np.int64)
    columns = {name: flags[:, k] for k, name in enumerate("abc")}
    for frame in (polars.DataFrame(columns), pyarrow.table(columns)):
        named = bb.MultiLabelClassifier().fit(texts, frame)
        assert named.classes_.tolist() == ["a", "b", "c"]
        assert_allclose(named.predict_proba(texts), bb.MultiLabelClassifier().fit(texts, flags).predict_proba(texts))


def test_more_rows_have_labels_as_the_first_had() -> None:
    texts, sets = made(120)
    flags = LabelSets.of(sets).flags(["a", "b"]).astype(np.int64)
    clf = bb.MultiLabelClassifier().fit(texts, flags)
    before = clf.tally_
    for y, said in ((sets, "labels 'a', 'b'"), (flags[:, [0, 1, 1]], "labels 2"), (np.c_[flags, flags], "labels 2, 3")):
        with pytest.raises(BadSetting, match=said):
            clf.partial_fit(texts, y)
    assert clf.tally_ == before and clf.predict(texts).shape == (120, 2)
    with pytest.raises(BadSetting, match="sets of labels, like the first rows"):
        bb.MultiLabelClassifier().fit(texts, sets).partial_fit(texts, flags)


def test_a_score_is_of_rows_that_have_labels_and_weigh() -> None:
    texts, sets = made(120)
    clf = bb.MultiLabelClassifier().fit(texts, sets)
    weights = np.r_[np.ones(60), np.zeros(60)]
    assert clf.score(texts, sets, weights) == clf.score(texts[:60], sets[:60])
    assert clf.score(texts, [*sets[:60], *[None] * 60]) == clf.score(texts[:60], sets[:60])
    for y, own in ((sets[:-1], None), (sets, [0] * 120), (sets, [-1] * 120), (sets, [1.0]), ([None] * 120, None)):
        with pytest.raises(BanburyError):
            clf.score(texts, y, own)
    with pytest.raises(NotFittedError):
        bb.MultiLabelClassifier().score(texts, sets)


@pytest.mark.parametrize("y", [[{"a": 1}, {"b": 1}], np.zeros((2, 0)), iter([["a"], ["b"]]), [["a"], {"b": 1}]])
def test_what_is_no_target_is_refused(y: Any) -> None:
    with pytest.raises(ValueError, match=r"label|y should be"):
        bb.MultiLabelClassifier().fit(TEXTS[:2], y)


def test_weigh_is_yes_or_no_and_alpha_a_number() -> None:
    texts, sets = made(120)
    assert bb.MultiLabelClassifier(weigh=np.True_).fit(texts, sets).weighing_ is not None
    for settings in ({"weigh": 1}, {"weigh": None}, {"alpha": "often"}, {"alpha": None}):
        for learn in (bb.MultiLabelClassifier(**settings).fit, bb.MultiLabelClassifier(**settings).partial_fit):
            with pytest.raises(BadSetting):
                learn(texts, sets)


@pytest.mark.filterwarnings("error")
def test_values_that_are_impossible_either_way_say_nothing() -> None:
    clf = bb.MultiLabelClassifier(how="mle").fit(
        {word: [word in t for t in TEXTS] for word in ("wheat", "crude")}, TOPICS
    )
    assert clf.predict({"wheat": [True, False], "crude": [False, True]}) == [("grain",), ("fuel",)]
    both = {"wheat": [True], "crude": [True]}
    assert_allclose(clf.predict_proba(both), [[1.0, 0.5]], atol=1e-12)  # half of the rows are of grain


def test_rows_that_weigh_next_to_nothing_are_counted_once_when_they_are_told() -> None:
    with pytest.warns(BanburyWarning, match="^2 rows weigh less"):
        tally = bb.count({"text": TEXTS}, target=TOPICS, weights=[1e-30, 1e-30, 1, 1, 1, 0.5])
    assert tally == bb.count({"text": TEXTS[2:]}, target=TOPICS[2:], weights=[1, 1, 1, 0.5])


def test_views_of_strings_are_counted_like_others() -> None:
    polars = pytest.importorskip("polars")
    papers = {"text": TEXTS, "topics": TOPICS}
    assert bb.count(polars.DataFrame(papers), target="topics") == bb.count(papers, target="topics")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"alpha": []}, "alpha must be at least one number"),
        ({"weigh": []}, "weigh must be True, False, settings"),
        ({"weigh": "often"}, "weigh must be True, False or both"),
        ({"text": 5}, "text must be a mapping from settings"),
        ({"text": {"often": 1}}, "a setting of text must be one of"),
        ({"groups": "text"}, "groups must be omitted"),
        ({"calibrate": "isotonic"}, "calibrate must be one of"),
        ({"class_prior": "uniform"}, "class_prior must be omitted"),
    ],
)
def test_settings_that_cannot_be_tried_are_refused(settings: Any, said: str) -> None:
    texts, sets = made(60)
    with pytest.raises(BadSetting, match=said):
        bb.tune({"text": texts}, sets, **settings)


def test_folds_and_weigh_that_do_not_fit_are_refused() -> None:
    texts, sets = made(60)
    for settings in ({"folds": [None] * 60}, {"folds": [[0]] * 60}, {"folds": 61}, {"weigh": "often"}):
        with pytest.raises(BadSetting):
            bb.cross_validate({"text": texts}, sets, **settings)
    with pytest.raises(BanburyError, match="1 row with a label"):
        bb.cross_validate({"text": texts[:1]}, [["a"]])
    with pytest.raises(BadValue, match="infinite"):
        bb.count({"text": texts[:2]}, target=[["a"], [float("inf")]])


def test_labels_with_a_delimiter_may_look_like_numbers(tmp_path: Path) -> None:
    rows = list(zip(TEXTS, ["1", "2", "", "12", "1", "2"], strict=True))
    plain, mixed = tmp_path / "plain.csv", tmp_path / "mixed.csv"
    plain.write_text("text,y\n" + "".join(f"{text},{y}\n" for text, y in rows))
    mixed.write_text("text,y\n" + "".join(f"{text},{y}\n" for text, y in [*rows, ("corn", "1;2")]))
    tally = bb.count(plain, target="y", target_delimiter=";")
    assert tally.classes == (EVERY, "1", "12", "2")
    more = bb.count({"text": ["corn"], "y": ["1;2"]}, target="y", target_delimiter=";", schema=tally.schema)
    assert tally + more == bb.count(mixed, target="y", target_delimiter=";", schema=tally.schema)
    model = bb.LabelModel.of(bb.count({"text": TEXTS, "y": [["1"], ["2"], [], ["12"], ["1"], ["2"]]}, target="y"))
    assert (
        bb.evaluate(model, plain, target_delimiter=";").micro_f1
        == bb.evaluate(model, {"text": TEXTS}, [["1"], ["2"], [], ["12"], ["1"], ["2"]]).micro_f1
    )


def test_what_was_not_counted_with_these_labels_is_not_forgotten() -> None:
    frame, sets = made_table(60)
    sets[30], frame["text"][30], frame["c"][30] = ["a"], "xylophone", "unheard"  # what no other row has
    for columns in (["text"], ["c"], ["text", "n", "c"]):
        some = {name: frame[name] for name in columns}
        clf = bb.MultiLabelClassifier(weigh=False, threshold=None).fit(some, sets)
        tally, one = clf.tally_, taken(some, [30])
        for given_ in ([], ["b"]):
            with pytest.raises(NegativeCount, match=r"label '[ab]'"):
                clf.forget(one, [given_])
            with pytest.raises(NegativeCount, match=r"label '[ab]'"):
                tally - bb.count(one, target=[given_], schema=tally.schema)
            assert clf.tally_ == tally
        assert clf.forget(one, [sets[30]]).tally_ == tally - bb.count(one, target=[sets[30]], schema=tally.schema)
    clf = bb.MultiLabelClassifier().fit(TEXTS, TOPICS)
    with pytest.raises(NegativeCount, match=r"left -1 rows among all rows in feature 'text' \(value 'zzz'\)"):
        clf.forget(["zzz"], [["grain"]])
    with pytest.raises(NegativeCount, match=r"left -1 rows of label 'fuel' in feature 'text' \(value '\w+'\)"):
        clf.forget([TEXTS[0]], [["fuel"]])


def test_batches_that_come_but_once_may_hold_lists() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = pyarrow.table({"text": TEXTS, "topics": TOPICS})
    none = pyarrow.table({"text": [], "topics": []}, schema=rows.schema)
    for data in (
        lambda: iter([*none.to_batches(), *rows.to_batches(2)]),
        lambda: pyarrow.RecordBatchReader.from_batches(rows.schema, rows.to_batches(4)),
        lambda: ({"text": TEXTS[k : k + 3], "topics": TOPICS[k : k + 3]} for k in (0, 3)),
    ):
        assert bb.count(data(), target="topics") == bb.count(rows, target="topics")
        tuned = bb.tune(data(), target="topics", folds=2)
        assert str(tuned) == str(bb.tune(rows, target="topics", folds=2))
        found = bb.cross_validate(data(), target="topics", folds=2)
        assert found.to_dict() == bb.cross_validate(rows, target="topics", folds=2).to_dict()


def test_rows_none_of_whose_labels_the_model_has_are_told_with_what_to_do(recwarn):
    model = bb.LabelModel.of(bb.count({"x": list("aabb")}, [["grain"], ["grain", "oil"], ["oil"], []]))
    found = bb.evaluate(model, {"x": list("ab")}, [["grian"], []])
    [warning] = recwarn
    assert "none of these labels is a label of the model: the labels are 'grian', but the model's labels are" in str(
        warning.message
    )
    assert "every predicted label is wrong. Did you mean 'grain'?" in str(warning.message)
    assert found.notes[0].startswith("none of these labels is a label of the model")
    assert bb.evaluate(model, {"x": list("ab")}, [["grain", "new"], []]).notes == ("the model does not know 'new'",)
    assert len(recwarn) == 1


# Few rows, and rows that are all alike -----------------------------------------------------------------------------------

SMALL_ROWS: dict[str, Any] = {
    "one row": ["xx yy zz and more"],
    "one row without a word": ["x y"],
    "two": ["xx yy zz and more", "yy zz and no more"],
    "two alike": ["xx yy zz and more"] * 2,
    "one of three is empty": ["xx yy zz and more", "", "yy ww and no more"],
    "all empty": [""] * 3,
    "constant columns": pd.DataFrame({"number": [1.0] * 3, "word": ["u"] * 3}),
    "columns": pd.DataFrame({"number": [1.0, 2.0, 7.0], "word": ["u", None, "v"]}),
}


def small_labels(n: int) -> dict[str, list[list[str]]]:
    return {
        "all rows": [["a"]] * n,
        "the first": [["a"], *[[]] * (n - 1)],
        "all but the last": [*[["a"]] * (n - 1), []],
        "both": [["a", "b"]] * n,
        "in turn": [[["a"], ["b"], []][i % 3] for i in range(n)],
        "no row": [[]] * n,
    }


@pytest.mark.filterwarnings("ignore::banbury.BanburyWarning")
@pytest.mark.parametrize("name", SMALL_ROWS)
@pytest.mark.parametrize("weigh", [True, False, "auto"])
def test_few_rows_are_answered_or_refused_in_plain_words(name: str, weigh: Any) -> None:
    rows = SMALL_ROWS[name]
    for labels in small_labels(len(rows)).values():
        for threshold, calibrate, alpha in (
            ("auto", None, "auto"),
            ("f1", "platt", "auto"),
            ("f1", "temperature", 1.0),
            (None, None, 0.0),
            (0.5, "platt", 0.0),
        ):
            settings = {"threshold": threshold, "calibrate": calibrate, "alpha": alpha, "weigh": weigh}
            try:
                clf = bb.MultiLabelClassifier(**settings).fit(rows, labels)
            except bb.BanburyError as refused:
                expected = "no row has a label" if not any(labels) else "weigh must be False for rows without"
                if expected not in str(refused):
                    raise
                continue
            probabilities = clf.predict_proba(rows)
            assert probabilities.shape == (len(rows), len(clf.classes_))
            assert ((probabilities >= 0) & (probabilities <= 1)).all()
            assert len(clf.predict(rows)) == len(rows)


def test_rows_that_are_all_alike_are_not_weighed_and_tuning_says_so() -> None:
    texts, labels = ["xx yy zz and more"] * 120, [["a"], []] * 60
    assert bb.MultiLabelClassifier().fit(texts, labels).weighing_ is None
    with pytest.raises(bb.BanburyError, match="weigh must be False when all rows are identical"):
        bb.tune(texts, labels, weigh=True, folds=2, features="text")


def test_two_rows_that_differ_are_in_two_folds() -> None:
    """So that whether they are weighed does not depend on their hashes."""
    for number in range(12):
        texts = [f"xx yy zz and {number}{letter}" for letter in ("one", "two")]
        assert bb.MultiLabelClassifier(weigh=True).fit(texts, [["a"], []]).weighing_ is not None


def test_batches_that_come_only_once_are_evaluated_like_the_rows_together() -> None:
    texts = ["cheap crude oil", "corn and wheat", "oil and corn", "wheat"]
    rows = {"text": texts, "topics": [["oil"], ["grain"], ["oil", "grain"], ["grain"]]}
    model = bb.LabelModel.of(bb.count(rows, "topics"))
    halves = ({name: column[part] for name, column in rows.items()} for part in (slice(2), slice(2, None)))
    assert str(bb.evaluate(model, halves, "topics")) == str(bb.evaluate(model, rows, "topics"))
