"""Tuning: every setting's score is what cross-validation of that setting alone says, and the best is the best."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, KFold, RepeatedStratifiedKFold, ShuffleSplit, StratifiedKFold

import banbury as bb
from banbury import errors
from banbury.quality import CrossValidation, Tuning
from banbury.quality import families as choosing
from banbury.quality.tuning import AUTO, SCORINGS
from test_laws import quietly
from test_selection import mixed_frame

# Texts are judged once in every run, and by each method in the slow tests.
ONE_FAST_METHOD = ["temperature", *(pytest.param(method, marks=pytest.mark.slow) for method in ("platt", "isotonic"))]
N = 48
RNG = np.random.default_rng(0)
LABELS: list[str] = RNG.permutation(["a", "b", "c"] * (N // 3)).tolist()
WORDS = {"a": "red green blue one two", "b": "one two three four red", "c": "three five six seven"}
TEXTS = [" ".join(RNG.choice(WORDS[label].split(), RNG.integers(1, 9))) for label in LABELS]
WEIGHTS: dict[str, list[float] | None] = {
    "none": None,
    "fractional": (RNG.random(N) + 0.05).tolist(),
    "whole": RNG.integers(1, 4, N).astype(float).tolist(),
    "some are zero": [0.0 if i % 6 == 1 else 1.0 for i in range(N)],
}
FOLDS: dict[str, Any] = {
    "number": 4,
    "given": [i % 3 for i in range(N)],
    "names": [("x", "y", "z")[i % 3] for i in range(N)],
    "KFold": KFold(3),
    "StratifiedKFold": StratifiedKFold(4, shuffle=True, random_state=1),
    "repeated": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "ShuffleSplit": ShuffleSplit(3, test_size=0.4, random_state=0),
    "pairs": [(list(range(0, 30)), list(range(30, N))), (list(range(20, N)), list(range(20)))],
}


def measure(found: CrossValidation, scoring: str) -> float:
    """As cross_validate says it: accuracy is the mean over folds."""
    return float(found.accuracy.value if scoring == "accuracy" else getattr(found, scoring))


def assert_scores(found: Tuning, data: Any, labels: Any, features: Any, scoring: str, **common: Any) -> None:
    """Every setting by itself; and the best is the best of them."""
    expected, right = [], []
    for setting in found.settings:
        given: Any = features
        if "text" in setting:
            given = {"text": bb.Text(**setting["text"])}
        with quietly():
            alone = bb.cross_validate(
                data, labels, features=given, how=setting["how"], alpha=setting["alpha"], **common
            )
        expected.append(measure(alone, scoring))
        right.append(measure(alone, "accuracy"))
    np.testing.assert_allclose(found.scores, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.accuracies, right, rtol=0, atol=1e-12)
    sign = 1 if scoring in ("log_loss", "brier") else -1
    best = found.settings.index(found.best)
    assert sign * expected[best] <= min(sign * x for x in expected) + 1e-9
    assert [sign * found.scores[i] for i in found.order] == pytest.approx(sorted(sign * found.scores), abs=1e-11)


def frame() -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """A column of every family but text."""
    data = mixed_frame(N)
    columns = {name: column for name, column in data.columns.items() if name != "said"}
    return columns, {name: data.families[name] for name in columns}, list(data.labels)


# Scores ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_tables(scoring: Any, weights: str) -> None:
    columns, families, labels = frame()
    common = {"folds": 4, "weights": WEIGHTS[weights], "seed": 3}
    with quietly():
        found = bb.tune(
            columns,
            labels,
            features=families,
            alpha=[0.1, 1.0, 5],
            how=["mean", "map", "predictive"],
            scoring=scoring,
            **common,
        )
    assert len(found.settings) == 9 and found.scoring == scoring
    assert_scores(found, columns, labels, families, scoring, **common)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_texts(scoring: Any, weights: str) -> None:
    common = {"folds": 4, "weights": WEIGHTS[weights]}
    text = {"model": ["multinomial", "presence", "bernoulli", "complement", "log_odds"], "min_count": [1, 3]}
    with quietly():
        found = bb.tune(
            {"text": TEXTS},
            LABELS,
            features={"text": bb.Text()},
            alpha=[0.1, 1.0],
            text=text,
            scoring=scoring,
            **common,
        )
    assert len(found.settings) == 20
    assert_scores(found, {"text": TEXTS}, LABELS, None, scoring, **common)


@pytest.mark.parametrize("folds", FOLDS)
@pytest.mark.parametrize("scoring", ["log_loss", "macro_f1"])
def test_folds_of_every_kind(scoring: Any, folds: str) -> None:
    columns, families, labels = frame()
    families = {**families, "text": bb.Text()}
    columns = {**columns, "text": TEXTS}
    common = {"folds": FOLDS[folds], "class_prior": "uniform"}
    with quietly():
        found = bb.tune(columns, labels, features=families, alpha=[0.3, 3.0], scoring=scoring, **common)
    assert_scores(found, columns, labels, families, scoring, **common)


def test_groups_by_name_and_by_value() -> None:
    columns, families, labels = frame()
    who = [f"g{i % 8}" for i in range(N)]
    table = pd.DataFrame({**columns, "who": who})
    settings: Any = {"features": {**families, "who": None}, "alpha": [0.3, 3.0], "folds": GroupKFold(4)}
    one = bb.tune(table, labels, groups="who", **settings)
    other = bb.tune(table, labels, groups=who, **settings)
    np.testing.assert_array_equal(one.scores, other.scores)
    assert_scores(one, columns, labels, families, "log_loss", folds=GroupKFold(4), groups=who)


@pytest.mark.parametrize(
    "text",
    [
        {"damping": [None, "log"], "length": [False, True], "model": ["multinomial", "log_odds"]},
        {"ngrams": [(1, 1), (1, 2), 2], "model": ["presence", "complement"]},
        {"stop_words": [["one"], None], "min_share": [0.0, 0.1], "max_share": 0.7},
        {"idf": [False, True]},
        {"unit": ["words", "characters"], "max_words": [3, None]},
        {"vocabulary": [["red", "five", "nope"], None], "drop_most_frequent": [0, 1]},
        {"max_words": [2, 5], "choose_by": ["count", "mutual_information"], "model": "bernoulli"},
        {"tokens": ["word", "word1", r"\w\w\w+"], "lowercase": True, "norm": [True, False], "model": "complement"},
        {"alpha": [0.01, None]},
    ],
    ids=str,
)
def test_every_setting_of_text(text: dict[str, Any]) -> None:
    with quietly():
        found = bb.tune(
            {"text": TEXTS},
            LABELS,
            features={"text": bb.Text()},
            alpha=[0.2, 1.0],
            how=["mean", "predictive"],
            text=text,
            folds=3,
        )
    each = [value if isinstance(value, list) else [value] for value in text.values()]
    families = {
        bb.Text(**dict(zip(text, values, strict=True))) for values in product(*each)
    }  # the same model is tried once
    assert len(found.settings) == 4 * len(families)
    assert_scores(found, {"text": TEXTS}, LABELS, None, "log_loss", folds=3)
    json.dumps(found.to_dict())
    with quietly():
        counted = bb.count({"text": TEXTS}, LABELS, features={"text": bb.Text(**found.best["text"])})
    assert found.tally == counted and found.tally.schema == counted.schema


def test_settings_of_text_hold_for_all_columns_of_text_and_keep_the_rest_of_theirs() -> None:
    data = {"one": TEXTS, "two": TEXTS[::-1]}
    families = {"one": bb.Text(stop_words=["red"]), "two": bb.Text(ngrams=2)}
    found = bb.tune(data, LABELS, features=families, alpha=1.0, text={"model": ["presence", "bernoulli"]}, folds=3)
    for i, model in enumerate(("presence", "bernoulli")):
        own: Any = {"one": bb.Text(stop_words=["red"], model=model), "two": bb.Text(ngrams=2, model=model)}
        assert found.scores[i] == pytest.approx(
            bb.cross_validate(data, LABELS, features=own, folds=3).log_loss, abs=1e-10
        )


# What is tried, and what comes of it ----------------------------------------------------------------------------------


def test_auto_tries_thirteen_and_those_near_one_come_first() -> None:
    found = bb.tune(TEXTS, LABELS, features=bb.Text(), folds=4)
    alphas = [setting["alpha"] for setting in found.settings]
    assert len(alphas) == 13 and sorted(alphas) == sorted(AUTO) and min(alphas) == 0.001 and max(alphas) == 10.0
    assert alphas[0] == 1.0
    assert_scores(found, TEXTS, LABELS, "auto", "log_loss", folds=4)


def test_auto_tries_every_model_of_texts_that_nobody_declared() -> None:
    found, declared = (bb.tune(TEXTS, LABELS, folds=4, **own) for own in ({}, {"features": bb.Text()}))
    models = [(each["text"]["model"], each["text"]["damping"]) for each in found.settings]
    damped = [("multinomial", "log"), ("log_odds", "log")]
    every = [("multinomial", None), ("presence", None), ("bernoulli", None), *damped]
    assert models == [model for model in every for _ in AUTO]  # of equals the plainest is taken
    np.testing.assert_array_equal(found.scores[: len(AUTO)], declared.scores)
    for model, damping in every:
        own = bb.Text(model=model, damping=damping, length=damping is not None)  # type: ignore[arg-type]
        at = [i for i, each in enumerate(models) if each == (model, damping)]
        np.testing.assert_array_equal(found.scores[at], bb.tune(TEXTS, LABELS, features=own, folds=4).scores)


@pytest.mark.parametrize(
    "named",
    [
        {"alpha": [0.1, 1.0]},
        {"features": {"text": bb.Text()}},
        {"text": {"min_count": 1}},
        {"schema": bb.count({"text": TEXTS}, LABELS).schema},
    ],
    ids=str,
)
def test_a_model_of_texts_that_is_declared_stays(named: dict[str, Any]) -> None:
    found = bb.tune({"text": TEXTS}, LABELS, folds=4, **named)
    assert {setting.get("text", {}).get("model") for setting in found.settings} == {None}
    assert found.features["text"].model == "multinomial" and found.features["text"].damping is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", ONE_FAST_METHOD)
def test_calibrated_models_of_texts_are_judged_as_if_each_were_alone(method: Any) -> None:
    splitter = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    for folds in (4, splitter):
        found = bb.tune(TEXTS, LABELS, folds=folds, calibrate=method)
        for i in (0, 14, 30, len(found.settings) - 1):
            own, alpha = found.settings[i]["text"], found.settings[i]["alpha"]
            alone = bb.tune(TEXTS, LABELS, alpha=alpha, text=own, folds=folds, calibrate=method)
            assert alone.scores[0] == found.scores[i] and alone.accuracies[0] == found.accuracies[i]


def test_where_alpha_makes_no_difference_it_stays_one() -> None:
    x = RNG.normal(size=30)
    found = bb.tune({"x": x}, ["a", "b"] * 15, folds=3)
    assert found.best == {"alpha": 1.0, "how": "mean"} and np.ptp(found.scores) < 1e-12


@pytest.mark.parametrize(
    "alpha",
    [2, 2.0, np.float64(2.0), [2], (2.0,), np.array([2.0]), iter([2.0]), range(2, 3)],
    ids=lambda given: type(given).__name__,
)
def test_alpha_however_it_is_given(alpha: Any) -> None:
    found = bb.tune(TEXTS, LABELS, alpha=alpha, folds=3)
    assert found.settings == ({"alpha": 2.0, "how": "mean"},)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("prior", [None, "uniform", 1.0, [0.2, 0.3, 0.5]], ids=str)
def test_tally_and_model_are_those_of_the_best_settings(weights: str, prior: Any) -> None:
    columns, families, labels = frame()
    found = bb.tune(
        columns,
        labels,
        features=families,
        alpha=[0.1, 2.0],
        how=["map", "mean"],
        weights=WEIGHTS[weights],
        class_prior=prior,
        folds=3,
    )
    tally = bb.count(columns, labels, features=families, weights=WEIGHTS[weights])
    assert found.tally == tally
    model = bb.estimate(tally, how=found.best["how"], alpha=found.best["alpha"], class_prior=prior)
    np.testing.assert_allclose(found.model.posterior(columns), model.posterior(columns), rtol=0, atol=1e-12)
    assert found.model.choice.how == found.best["how"] and found.model.choice.alpha == found.best["alpha"]
    assert found.model.tally is found.tally


def test_a_model_of_texts_predicts_and_goes_on() -> None:
    found = bb.tune(TEXTS, LABELS, alpha=[0.5], text={"damping": ["log", None], "min_count": [0, 2]}, folds=3)
    expected = bb.estimate(bb.count(TEXTS, LABELS, features=bb.Text(**found.best["text"])), alpha=0.5)
    np.testing.assert_array_equal(found.model.posterior(TEXTS), expected.posterior(TEXTS))
    assert found.tally + found.tally.count(TEXTS[:2], LABELS[:2]) == expected.tally + expected.tally.count(
        TEXTS[:2], LABELS[:2]
    )


def test_best_is_a_copy() -> None:
    found = bb.tune(TEXTS, LABELS, alpha=[0.5, 1.0], folds=3)
    found.best["alpha"] = 99.0
    assert found.best["alpha"] != 99.0


def test_one_thread_equals_two() -> None:
    columns, families, labels = frame()
    columns, families = {**columns, "text": TEXTS}, {**families, "text": bb.Text()}
    settings: Any = {
        "features": families,
        "alpha": [0.1, 1.0],
        "text": {"model": ["presence", "complement"], "ngrams": [1, 2]},
        "folds": 5,
    }
    one, two = (bb.tune(columns, labels, threads=threads, **settings) for threads in (1, 2))
    np.testing.assert_allclose(one.scores, two.scores, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(one.accuracies, two.accuracies)
    assert one.best == two.best and one.tally == two.tally and str(one) == str(two)


def test_the_seed_settles_the_folds() -> None:
    one, same, other = (bb.tune(TEXTS, LABELS, alpha=[0.1, 1.0], seed=seed, folds=4) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.scores, same.scores)
    assert (one.scores != other.scores).any()


def test_rows_without_a_label_have_no_say() -> None:
    labels: list[Any] = [None if i % 5 == 0 else label for i, label in enumerate(LABELS)]
    known = [i for i, label in enumerate(labels) if label is not None]
    folds = np.arange(N) % 3
    found = bb.tune(TEXTS, labels, alpha=[0.1, 1.0], folds=folds)
    fewer = bb.tune([TEXTS[i] for i in known], [labels[i] for i in known], alpha=[0.1, 1.0], folds=folds[known])
    np.testing.assert_allclose(found.scores, fewer.scores, rtol=0, atol=1e-12)


def test_a_class_that_is_in_one_fold_only() -> None:
    labels = ["rare", *LABELS[1:]]
    found = bb.tune(TEXTS, labels, alpha=[0.1, 1.0], folds=4, class_prior=None)
    assert np.isfinite(found.scores).all()
    assert_scores(found, TEXTS, labels, "auto", "log_loss", folds=4)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_to_dict_is_json_and_best_first(scoring: Any) -> None:
    found = bb.tune(
        TEXTS, LABELS, alpha=[0.1, 1.0], text={"model": ["presence", "bernoulli"]}, scoring=scoring, folds=3
    )
    told = json.loads(json.dumps(found.to_dict()))
    assert told["scoring"] == scoring and told["best"] == found.best
    assert [each[scoring] for each in told["settings"]] == [pytest.approx(found.scores[i]) for i in found.order]
    assert all({"alpha", "how", "text", "accuracy"} <= set(each) for each in told["settings"])


def test_it_prints_the_best_ten() -> None:
    found = bb.tune(TEXTS, LABELS, features=bb.Text(), folds=3)
    lines = str(found).splitlines()
    assert lines[0] == "13 settings tried on 48 rows by 3-fold cross-validation, best first:"
    assert lines[1].split() == ["settings", "log", "loss", "accuracy"]
    assert len(lines) == 13 and lines[-1] == "  … and 3 more" and repr(found) == str(found)
    best = found.best
    assert lines[2].startswith(f"  alpha={best['alpha']:g}, how='mean'")
    assert lines[2].split()[-2:] == [f"{found.scores[found.order[0]]:.4f}", f"{found.accuracies[found.order[0]]:.4f}"]
    assert str(bb.tune(TEXTS, LABELS, alpha=1.0, folds=3)).startswith(
        "1 setting tried on 48 rows by 3-fold cross-validation, best first:\n"
    )
    one_column = str(bb.tune(TEXTS, LABELS, alpha=1.0, folds=3, scoring="accuracy"))
    assert one_column.splitlines()[1].split() == ["settings", "accuracy"]
    assert "min_count=2" in str(bb.tune(TEXTS, LABELS, alpha=1.0, folds=3, text={"min_count": 2}))


# Calibrating ----------------------------------------------------------------------------------------------------------


def many_words(n: int = 400) -> tuple[list[str], np.ndarray]:
    """Texts in which few words tell the class, and a plain α of 1 is the best of powers of ten."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, n)
    tells = rng.random((n, 6)) < 0.4
    words = np.where(tells, rng.integers(0, 12, (n, 6)) + 100 * y[:, None], rng.integers(200, 500, (n, 6)))
    return [" ".join(f"w{word}" for word in row) for row in words], y


@pytest.mark.parametrize("method", ONE_FAST_METHOD)
def test_settings_are_judged_after_calibration(method: Any) -> None:
    texts, y = many_words()
    grid = [1.0, 10.0]
    found, plain = bb.tune(texts, y, alpha=grid, calibrate=method), bb.tune(texts, y, alpha=grid)
    for i, alpha in enumerate(grid):
        out = bb.cross_validate(texts, y, alpha=alpha)
        scores, honest = np.log(out.posteriors), np.empty_like(out.posteriors)
        for fold in range(10):  # each by what is said of the others
            here = out.folds == fold
            honest[here] = bb.calibrate(method, scores[~here], out.truth[~here]).apply(scores[here])
        expected = -np.log(np.maximum(honest[np.arange(len(y)), out.truth], np.finfo(float).eps)).mean()
        assert found.scores[i] == pytest.approx(expected, rel=1e-6)
    assert plain.best["alpha"] == 1.0 and found.best["alpha"] == 10.0
    assert found.calibration is not None and found.calibration.method == method and plain.calibration is None
    assert found.model.calibration is found.calibration
    assert f", each calibrated ({method}), best first:" in str(found)
    clf = bb.NaiveBayesClassifier(alpha="auto", calibrate=method).fit(texts, y)
    assert clf.alpha_ == bb.tune(texts, y, calibrate=method).best["alpha"] != bb.tune(texts, y).best["alpha"]


def test_calibration_of_a_weighted_and_repeated_round() -> None:
    texts, y = many_words(120)
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, 120)
    found = bb.tune(texts, y, alpha=[0.1, 1.0], folds=folds, weights=weights, calibrate="temperature", scoring="brier")
    assert found.calibration is not None and np.isfinite(found.scores).all()


# Edges ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "alpha, said",
    [
        (
            [0.1, 0.001, 0.01],
            r"the best alpha is 0\.1, the largest value tried, and larger values may be better\. Widen the",
        ),
        ([10.0, 100.0, 1000.0], "the best alpha is 10, the least value tried, and smaller values may be better"),
        ([0.1, 1.0, 10.0], None),
        ([1.0, 10.0], None),
        ("auto", None),
    ],
    ids=str,
)
def test_the_edge_of_a_grid_is_told(alpha: Any, said: str | None) -> None:
    texts, y = many_words()
    if said is None:
        assert bb.tune(texts, y, alpha=alpha).edges == {}  # a warning would be an error
        return
    with pytest.warns(bb.BanburyWarning, match=said) as told:
        found = bb.tune(texts, y, alpha=alpha)
    assert len(told) == 1 and told[0].filename == __file__ and set(found.edges) == {"alpha"}


def test_an_edge_beyond_which_there_is_nothing_is_not_told() -> None:
    found = bb.tune(TEXTS, LABELS, alpha=1.0, folds=3, text={"min_count": [1, 2, 40]})
    assert found.best["text"]["min_count"] == 1 and found.edges == {}


def test_weighed_evidence_that_is_best_has_no_edge() -> None:
    a, b = np.divmod(np.arange(400) % 16, 4)
    rows = {"a": [f"v{k}" for k in a], "b": [f"v{k}" for k in b]}
    options: Any = {"alpha": [1.0, 2.0, 3.0], "folds": 3, "weigh": [False, True]}
    found = bb.tune(rows, (a < 1) | (b < 2) & (a < 3), **options)  # a warning would be an error
    assert found.best == {"weigh": True} and found.edges == {}
    assert found.order[1] == 0  # the least α is the best of the others
    rng = np.random.default_rng(0)
    with pytest.warns(bb.BanburyWarning, match="the best alpha is 3, the largest"):
        found = bb.tune({"a": [f"v{k}" for k in rng.integers(0, 9, 60)]}, ["x", "y"] * 30, **options)
    assert set(found.edges) == {"alpha"} and len(found.settings) == 4


def test_the_best_setting_has_no_edge_if_its_neighbours_give_the_same_model() -> None:
    rows = [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]
    options: Any = {"features": "gaussian", "folds": 2, "how": ["mle", "mean"]}  # "mle" ignores α: it is tried once
    found = bb.tune({"x": rows}, ["a"] * 4 + ["b"] * 4, alpha=[0.1, 1.0, 10.0], **options)
    assert found.best["how"] == "mle" and len(found.settings) == 4 and found.edges == {}


def test_a_setting_without_effect_has_no_edge() -> None:
    rng = np.random.default_rng(0)
    assert bb.tune({"x": rng.normal(size=60)}, ["a", "b"] * 30, alpha=[1.0, 2.0, 3.0], features="gaussian").edges == {}


# Choosing families ----------------------------------------------------------------------------------------------------


def drawn(n: int = 600) -> tuple[dict[str, Any], np.ndarray]:
    rng = np.random.default_rng(7)
    y = np.arange(n) % 2
    columns = {
        "counts": rng.poisson(np.where(y, 2.0, 6.0)),
        "bumps": np.where(rng.random(n) < 0.5, -6.0, 6.0) + rng.normal(size=n) * (1.0 + y),
        "normal": rng.normal(size=n) + 2.0 * y,
        "colour": rng.choice(["u", "v"], n),
        "large_integers": np.rint(rng.normal(1_000.0 + 200.0 * y, 150.0)).astype(int),
        "negative_integers": np.rint(rng.normal(-3.0 * y, 4.0)).astype(int),
    }
    return columns, np.where(y, "yes", "no")


def test_a_family_is_chosen_that_tells_the_classes() -> None:
    columns, y = drawn()
    found = bb.tune(columns, y, features="choose", alpha=1.0, folds=5)
    assert found.family_choice is not None
    names = found.family_choice.names
    assert names["bumps"] != "gaussian"  # which cannot tell the two bumps from one
    assert "colour" not in names
    assert {f.name: str(f.family) for f in found.tally.schema.features} == {**names, "colour": "categorical"}
    for name, each in found.family_choice.scores.items():
        assert each[names[name]] == min(each.values())
        assert ("poisson" in each) == (name in ("counts", "large_integers"))
        assert MDL in each and ("categorical" in each) == (name == "counts")
    assert found.to_dict()["families"] == names
    json.dumps(found.to_dict())
    assert "families, by the held-out log loss of the column alone:" in str(found)
    score = found.family_choice.scores["counts"][names["counts"]]
    assert f"counts             {names['counts']} {score:.3f} (" in str(found)


MDL = "histogram(bins='mdl')"
SHAPES = {"gaussian", "histogram", MDL, "kernel_density", "quantile_tree"}


@pytest.mark.parametrize(
    "x, candidates",
    [
        (np.arange(400) % 2, {"bernoulli", MDL}),
        (np.where(np.arange(400) % 2, 0.5, 2.5), {"bernoulli(threshold=1.5)", MDL}),
        (np.arange(400) % 20, {"categorical", "gaussian", "poisson", MDL}),
        (np.arange(400) % 20 - 1, {"categorical", "gaussian", MDL}),
        (np.arange(400) % 20 / 7, {"categorical", "gaussian", MDL}),
        (np.arange(400) % 21, SHAPES | {"poisson", "exponential"}),
        (np.arange(400) % 21 + 0.5, SHAPES | {"exponential", "gamma", "log_normal"}),
        (np.arange(400) % 21 - 3.5, SHAPES),
        (np.arange(99) % 3 - 1.5, SHAPES),  # in few rows, few values show nothing
        (np.arange(10_001) % 21 - 3.5, SHAPES - {"kernel_density"}),
    ],
    ids=["flags", "two", "whole", "below 0", "few", "counts", "positive", "numbers", "few rows", "many rows"],
)
def test_candidates_are_what_a_column_allows(x: np.ndarray, candidates: set[str]) -> None:
    y = np.random.default_rng(0).integers(0, 2, len(x))
    found = bb.tune({"x": x}, y, features="choose", alpha=1.0, folds=3)
    assert found.family_choice is not None and set(found.family_choice.scores["x"]) == candidates


def test_the_current_family_wins_a_tie() -> None:
    """A column that no labelled row has a value in says nothing under any family."""
    rng = np.random.default_rng(0)
    y = [None] * 120 + rng.choice(["a", "b"], 200).tolist()
    columns = {"tied": np.concatenate([rng.normal(size=120), np.full(200, np.nan)]), "x": rng.normal(size=320)}
    found = bb.tune(columns, y, features="choose", alpha=1.0, folds=3)
    assert found.family_choice is not None and set(found.family_choice.scores["tied"].values()) == {0.0}
    assert found.family_choice.names["tied"] == str(bb.count(columns, y).schema["tied"].family) == "quantile_tree"


def test_columns_of_zero_and_one_are_not_taken_for_densities() -> None:
    """Of noise, bins by description length make one bin, which says nothing; of what tells the classes, yes and no."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 1000)
    X = (rng.random((1000, 12)) < np.where(np.arange(12) < 3, 0.3 + 0.4 * y[:, None], 0.5)).astype(int)
    found = bb.tune(X, y, features="choose", alpha=1.0)
    assert found.family_choice is not None
    names = list(found.family_choice.names.values())
    assert set(names[:3]) <= {"bernoulli", MDL} and names[3:].count(MDL) >= 6
    assert found.scores[0] <= bb.cross_validate(X, y, features="bernoulli").log_loss
    assert bb.NaiveBayesClassifier(features=found.features).fit(X, y).tally_ == found.tally


def test_of_many_rows_some_folds_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, y = drawn(300)
    folds = np.arange(300) % 3
    monkeypatch.setattr(choosing, "ENOUGH_TESTED", 150)
    scores = choices(columns["normal"], y, folds)
    first_two = twin(columns["normal"], y, bb.Gaussian(), np.where(folds < 2, folds, 3), tested=(0, 1))
    assert scores["gaussian"] == pytest.approx(first_two, abs=1e-9)


@pytest.mark.parametrize("weights", ["none", "fractional"])
def test_the_chosen_families_are_those_that_are_scored_and_counted(weights: str) -> None:
    columns, y = drawn(200)
    own = None if weights == "none" else (np.random.default_rng(1).random(200) + 0.1)
    found = bb.tune(columns, y, features="choose", alpha=[0.1, 1.0], folds=4, weights=own)
    schema = found.tally.schema
    assert found.tally == bb.count(columns, y, schema=schema, weights=own)
    for i, alpha in enumerate((0.1, 1.0)):
        alone = bb.cross_validate(columns, y, schema=schema, alpha=alpha, folds=4, weights=own)
        assert found.scores[i] == pytest.approx(alone.log_loss, abs=1e-9)
    np.testing.assert_allclose(
        found.model.posterior(columns),
        bb.estimate(found.tally, alpha=found.best["alpha"]).posterior(columns),
        rtol=0,
        atol=1e-12,
    )


CANDIDATES: dict[str, Any] = {
    "bernoulli": bb.Bernoulli(),
    "categorical": bb.Categorical(),
    "gaussian": bb.Gaussian(),
    "histogram": bb.Histogram(),
    MDL: bb.Histogram(bins="mdl"),
    "kernel_density": bb.KernelDensity(),
    "poisson": bb.Poisson(),
    "quantile_tree": bb.QuantileTree(),
}


def twin(
    x: np.ndarray, y: np.ndarray, family: Any, folds: np.ndarray, tested: tuple[int, ...] = (0, 1, 2), **settings: Any
) -> float:
    """The mean of −log P(true class | value), by loops over folds and rows."""
    schema = bb.count({"x": x}, y, features={"x": family}).schema
    total: list[float] = []
    for k in tested:
        train, test = folds != k, np.flatnonzero((folds == k) & ~np.isnan(x))
        model = bb.estimate(bb.count({"x": x[train]}, y[train], schema=schema), **settings)
        total += [-model.log_posterior({"x": [x[i]]})[0, model.classes.index(y[i])] for i in test]
    return float(np.mean(total))


def choices(x: np.ndarray, y: np.ndarray, folds: np.ndarray, **settings: Any) -> Mapping[str, float]:
    found = bb.tune({"x": x}, y, features="choose", folds=folds, **{"alpha": 1.0, **settings})
    assert found.family_choice is not None
    return found.family_choice.scores["x"]


@pytest.mark.parametrize("settings", [{}, {"class_prior": [0.3, 0.7]}, {"how": "map", "alpha": 2.0}], ids=str)
@pytest.mark.parametrize("column", ["counts", "bumps", "normal", "gappy", "negative_integers", "flags", "few"])
def test_scores_of_families_are_those_of_a_slow_twin(column: str, settings: dict[str, Any]) -> None:
    columns, y = drawn(150)
    columns |= {"flags": columns["counts"] > 3, "few": columns["counts"] % 5, "gappy": columns["normal"].copy()}
    columns["gappy"][::7] = np.nan
    x, folds = columns[column].astype(float), np.arange(150) % 3
    scores = choices(x, y, folds, **settings)
    assert len(scores) > 1
    for name in CANDIDATES.keys() & scores.keys():
        assert scores[name] == pytest.approx(twin(x, y, CANDIDATES[name], folds, **settings), abs=1e-9)


def test_a_class_that_a_fold_lacks_is_as_unlikely_as_can_be() -> None:
    x, y = np.arange(40.0), np.array(["a"] * 20 + ["b"] * 20)
    folds = np.where(y == "b", 2, np.arange(40) % 2)
    expected = (20 * 0.0 + 20 * -np.log(np.finfo(float).eps)) / 40  # the third fold's model knows "a" alone
    assert choices(x, y, folds)["gaussian"] >= expected


@pytest.mark.parametrize("method", [None, "temperature"])
def test_the_model_of_a_text_is_chosen_too(method: Any) -> None:
    with quietly():
        found = bb.tune(TEXTS, LABELS, features="choose", alpha=[0.1, 1.0], folds=3, calibrate=method)
    tried = {(s["text"]["model"], s["text"]["damping"], s["text"]["length"]) for s in found.settings}
    plain = {(model, None, False) for model in ("multinomial", "presence", "bernoulli")}
    assert tried == plain | {(model, "log", True) for model in ("multinomial", "log_odds")}
    assert len(found.settings) == 10 and found.family_choice is not None and found.family_choice.names == {}
    assert found.features == {"text": bb.Text(**found.best["text"])}
    if method is None:
        assert_scores(found, {"text": TEXTS}, LABELS, None, "log_loss", folds=3)
    clf = bb.NaiveBayesClassifier(features="choose", alpha=0.1, calibrate=method).fit(TEXTS, LABELS)
    assert clf.tuning_.best["text"] == {
        k: getattr(clf.tally_.schema["text"].family, k) for k in clf.tuning_.best["text"]
    }
    with quietly():
        own = bb.tune(TEXTS, LABELS, features="choose", alpha=1.0, text={"min_count": [1, 2]}, folds=3)
    assert [s["text"] for s in own.settings] == [{"min_count": 1}, {"min_count": 2}]  # what is asked for, and no more


def test_nothing_to_choose() -> None:
    found = bb.tune({"x": ["u", "v"] * 10}, ["a", "b"] * 10, features="choose", alpha=1.0, folds=4)
    assert found.family_choice is not None and found.family_choice.names == {} and "families" not in str(found)
    with pytest.raises(bb.BanburyError, match=r"a family must be one of .* Got 'chose'"):
        bb.tune({"x": ["u", "v"]}, ["a", "b"], features="chose", folds=2)


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"scoring": "f1"}, "scoring must be one of 'log_loss'"),
        ({"scoring": "logloss"}, "'log_loss'"),
        ({"calibrate": "plat"}, "calibrate must be one of 'temperature', 'platt', 'isotonic'"),
        ({"alpha": []}, "alpha must be at least one number"),
        ({"alpha": "best"}, "alpha must be a number, several of them, or 'auto'"),
        ({"alpha": [1.0, -1.0]}, "alpha"),
        ({"alpha": [1.0, float("nan")]}, "alpha"),
        ({"alpha": [1.0, "x"]}, "alpha"),
        ({"alpha": None}, "alpha"),
        ({"how": []}, "how must be at least one"),
        ({"how": "average"}, "how must be one of"),
        ({"how": ["mean", "average"]}, "'average'"),
        ({"how": None}, "how must be one of"),
        ({"how": [[]]}, "how must be one of"),
        ({"text": {"modell": ["presence"]}}, "a setting of text must be one of"),
        ({"text": {"model": ["precense"]}}, "model must be one of"),
        ({"text": {"min_count": [1, -1]}}, "min_count"),
        ({"text": ["presence"]}, "text must be a mapping"),
        ({"text": "presence"}, "text must be a mapping"),
        ({"folds": 1}, "folds"),
        ({"folds": "loo"}, "folds"),
        ({"seed": -1}, "seed"),
        ({"features": "chosen"}, "chosen"),
    ],
    ids=str,
)
def test_bad_settings_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(bb.BanburyError, match=said):
        bb.tune(TEXTS, LABELS, **settings)


def test_settings_of_text_need_a_column_of_text() -> None:
    with pytest.raises(bb.BanburyError, match="text must be omitted when no column is text"):
        bb.tune({"x": ["u", "v"] * 10}, ["a", "b"] * 10, features="categorical", text={"min_count": [1, 2]})


def test_choosing_with_a_schema_of_its_own() -> None:
    columns, families, labels = frame()
    schema = bb.count(columns, labels, features=families).schema
    found = bb.tune(columns, labels, schema=schema, alpha=[0.1, 1.0], folds=3)
    assert_scores(found, columns, labels, families, "log_loss", folds=3)


# Defects --------------------------------------------------------------------------------------------------------------


def test_an_empty_list_of_a_setting_of_text_is_refused() -> None:
    with pytest.raises(bb.BanburyError, match="model"):
        bb.tune(TEXTS, LABELS, text={"model": []})


def test_weights_are_repeated_rows_when_families_are_chosen() -> None:
    columns, y = drawn(90)
    x, folds, weights = columns["normal"], np.arange(90) % 3, 1 + np.arange(90) % 4
    once = bb.tune({"x": x}, y, weights=weights, folds=folds, features="choose", alpha=1.0)
    many = bb.tune(
        {"x": np.repeat(x, weights)},
        np.repeat(y, weights),
        folds=np.repeat(folds, weights),
        features="choose",
        alpha=1.0,
    )
    assert once.family_choice is not None and many.family_choice is not None
    assert once.family_choice.scores["x"]["gaussian"] == pytest.approx(
        many.family_choice.scores["x"]["gaussian"], abs=1e-9
    )


@pytest.mark.parametrize("kind", ["path", "numpy"])
def test_to_dict_is_json_whatever_settings_were_given(kind: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("red\nfive\n")
    text = {"vocabulary": tmp_path / "words.txt"} if kind == "path" else {"min_count": [np.int64(2)]}
    json.dumps(bb.tune(TEXTS, LABELS, alpha=1.0, text=text, folds=3).to_dict())


def test_the_refusal_of_leave_one_out_does_not_offer_it() -> None:
    with pytest.raises(bb.BanburyError, match=r"^folds must be (?!.*'loo', or).*Got 'loo' instead"):
        bb.tune(TEXTS, LABELS, alpha=1.0, folds="loo")


def test_families_of_huge_integers() -> None:
    found = bb.tune(
        {"x": [2**60 + 1024 * i for i in range(40)]}, ["a", "b"] * 20, features="choose", alpha=1.0, folds=4
    )
    assert found.family_choice is not None and 0.0 < found.family_choice.scores["x"]["gaussian"] < 2.0


def test_a_candidate_that_cannot_count_a_column_is_passed_over():
    rng = np.random.default_rng(0)
    data = {"far": rng.normal(size=40), "near": rng.normal(size=40)}
    data["far"][3] = 1e18
    found = bb.tune(data, ["a", "b"] * 20, features="choose", alpha=1.0)
    assert set(found.family_choice.scores["far"]) == {"gaussian", "quantile_tree"}
    assert {"gaussian", "histogram", "kernel_density", "quantile_tree"} <= set(found.family_choice.scores["near"])


def test_small_weights_do_not_change_the_scores_of_families():
    rng = np.random.default_rng(0)
    data, y = {"x": rng.normal(size=40)}, ["a", "b"] * 20
    plain = bb.tune(data, y, features="choose", alpha=1.0).family_choice.scores["x"]
    light = bb.tune(data, y, features="choose", alpha=1.0, weights=np.full(40, 0.01)).family_choice.scores["x"]
    np.testing.assert_allclose(light["gaussian"], plain["gaussian"], rtol=1e-9)


# Weighed evidence ----------------------------------------------------------------------------------------------------


def rows_with_pairs(n: int = 300) -> tuple[dict[str, Any], list[str]]:
    """Two flags that say something together only, and a number."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 2, n), rng.integers(0, 2, n)
    label = np.where(rng.random(n) < 0.9, a ^ b, 1 - (a ^ b))
    return {"a": a.tolist(), "b": b.tolist(), "x": (rng.normal(size=n) + label).tolist()}, label.astype(str).tolist()


@pytest.mark.parametrize("scoring", ["log_loss", "accuracy", "brier", "macro_f1"])
def test_weighed_evidence_is_judged_as_cross_validation_judges_it(scoring: Any) -> None:
    data, labels = rows_with_pairs()
    weights = np.random.default_rng(0).integers(1, 3, len(labels))
    found = bb.tune(data, labels, weigh={"pairs": [True, False]}, scoring=scoring, folds=3, weights=weights, seed=2)
    assert [each["weigh"] for each in found.settings] == [{"pairs": True}, {"pairs": False}]
    for settings, score, accuracy in zip(found.settings, found.scores, found.accuracies, strict=True):
        there = bb.cross_validate(data, labels, folds=3, weights=weights, seed=2, **settings)
        assert score == pytest.approx(accuracy if scoring == "accuracy" else getattr(there, scoring))
        assert accuracy == pytest.approx(there.accuracy.value)
    assert found.best == {"weigh": {"pairs": True}}
    fitted = bb.EvidenceClassifier(weigh=True, seed=2).fit(pd.DataFrame(data), labels, sample_weight=weights)
    np.testing.assert_allclose(found.model.posterior(data), fitted.predict_proba(pd.DataFrame(data)), atol=1e-12)
    assert found.model.weighing is not None and found.tally == found.model.tally


def test_plain_and_weighed_settings_are_compared() -> None:
    data, labels = rows_with_pairs()
    found = bb.tune(data, labels, weigh=[False, True], alpha=[0.5, 1.0], folds=3)
    assert found.best == {"weigh": True} and len(found.settings) == 3
    plain = bb.tune(data, labels, alpha=[0.5, 1.0], folds=3)
    assert found.scores[:2].tolist() == plain.scores.tolist()
    assert "weigh=True" in str(found) and found.to_dict()["best"] == {"weigh": True}
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=40), rng.integers(0, 2, 40)
    beside = bb.tune({"x": x}, y, weigh=[False, {"fewest": 0}], alpha=[1.0, 10.0], features="histogram", folds=4)
    best = beside.settings[int(np.argmin(beside.scores))]
    assert beside.best == best and ("alpha" in best) == (beside.model.weighing is None)


def test_what_comes_once_is_tuned_plain_and_weighed() -> None:
    data, labels = rows_with_pairs()
    once = bb.tune(iter([pd.DataFrame(data)]), labels, weigh=[False, True], alpha=1.0, folds=3)
    assert once.scores.tolist() == bb.tune(data, labels, weigh=[False, True], alpha=1.0, folds=3).scores.tolist()


def test_tuned_weighing_takes_a_schema_and_groups() -> None:
    data, labels = rows_with_pairs()
    schema = bb.Schema.infer(data, features="quantile_tree")
    groups = np.repeat(np.arange(60), 5)
    found = bb.tune(data, labels, schema=schema, weigh=[False, True], alpha=1.0, folds=GroupKFold(3), groups=groups)
    there = bb.cross_validate(data, labels, schema=schema, weigh=True, folds=GroupKFold(3), groups=groups)
    assert found.scores[1] == pytest.approx(there.log_loss)


def test_what_weighing_does_without_is_said() -> None:
    data, labels = rows_with_pairs(120)
    for settings, told in [
        ({"weigh": {"pair": True}}, "Did you mean 'pairs'"),
        ({"weigh": []}, "True, False, settings of bb.weigh, or a list"),
        ({"weigh": {"pairs": []}}, "True, False, settings of bb.weigh, or a list"),
        ({"weigh": "yes"}, "True, False, or settings of bb.weigh"),
        ({"weigh": True, "alpha": [0.1, 1.0]}, "omitted if how or alpha is given"),
        ({"weigh": True, "text": {"model": "presence"}}, "omitted for weighed evidence"),
        ({"weigh": True, "calibrate": "platt"}, "calibrate must be omitted for weighed evidence"),
        ({"estimator": bb.EvidenceClassifier()}, "estimator must be omitted"),
    ]:
        with pytest.raises(errors.BadSetting, match=told):
            bb.tune(data, labels, **settings)
