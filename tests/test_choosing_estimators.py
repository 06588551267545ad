"""NaiveBayesClassifier that chooses and calibrates within fit: what bb.tune and bb.calibrate say on the same folds."""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import banbury as bb
from banbury.quality import Tuning
from banbury.quality.calibration import METHODS, Calibration
from test_laws import quietly
from test_selection import mixed_frame

RNG = np.random.default_rng(0)
N = 90
LABELS = np.array(["no", "maybe", "yes"])[np.arange(N) % 3]
WORDS = {"no": "red green blue one two", "maybe": "one two three four red", "yes": "three five six one two"}
TEXTS = [" ".join(RNG.choice(WORDS[label].split(), RNG.integers(1, 12))) for label in LABELS]
EVERY_COLUMN, CULTIVARS = load_wine(return_X_y=True)
WINE = EVERY_COLUMN[:, [0, 6, 9, 12]], CULTIVARS  # some will do: choosing tries many families for each
IRIS = load_iris(return_X_y=True)
MIXED = mixed_frame(N, seed=1)
FRAME = pd.DataFrame(MIXED.columns)
DATA: dict[str, tuple[Any, Any]] = {
    "wine": WINE,
    "iris": IRIS,
    "binary": (WINE[0][WINE[1] < 2], WINE[1][WINE[1] < 2]),
    "strings": (WINE[0], np.array(["a", "b", "ü"])[WINE[1]]),
    "frame": (FRAME, np.array(MIXED.labels)),
    "texts": (TEXTS, LABELS),
}
every_method = pytest.mark.parametrize("method", METHODS)
every_data = pytest.mark.parametrize("name", DATA)
NB = bb.NaiveBayesClassifier


@cache
def fitted(name: str, **settings: Any) -> bb.NaiveBayesClassifier:
    """Learned once, for tests that change nothing."""
    return NB(**settings).fit(*DATA[name])


def rows_of(X: Any, index: Any) -> Any:
    return X.iloc[index] if isinstance(X, pd.DataFrame) else [X[i] for i in index] if isinstance(X, list) else X[index]


def out_of_fold(X: Any, y: Any, weights: Any = None, **settings: Any) -> tuple[Any, Any, Any]:
    """Log posteriors of models refitted without each of cross-validation's folds, the true classes, and the weights."""
    y = np.asarray(y)
    own: Any = {k: v for k, v in settings.items() if k in ("features",)}
    how: Any = {k: v for k, v in settings.items() if k not in own}
    places = bb.cross_validate(X, y, weights=weights, **own).folds
    schema = bb.count(X, y, weights=weights, **own).schema
    classes = sorted(set(y.tolist()))
    scores = np.full((len(y), len(classes)), -np.inf)
    for k in np.unique(places):
        train, test = np.flatnonzero(places != k), np.flatnonzero(places == k)
        given = None if weights is None else np.asarray(weights)[train]
        model = bb.estimate(bb.count(rows_of(X, train), y[train], schema=schema, weights=given), **how)
        scores[np.ix_(test, [classes.index(c) for c in model.classes])] = model.log_posterior(rows_of(X, test))
    truth = np.array([classes.index(label) for label in y.tolist()])
    return scores, truth, weights


def assert_same_calibration(found: Any, expected: Calibration) -> None:
    assert type(found) is type(expected) and found.n_classes == expected.n_classes
    scores = np.log(np.random.default_rng(1).dirichlet(np.ones(found.n_classes), 50))
    np.testing.assert_allclose(found.apply(scores), expected.apply(scores), rtol=0, atol=1e-5)


# Calibration ----------------------------------------------------------------------------------------------------------


@every_data
def test_a_calibration_is_that_of_the_out_of_fold_scores(name: str) -> None:
    X, y = DATA[name]
    plain, scores = fitted(name), out_of_fold(X, y)
    for method in METHODS:
        clf = fitted(name, calibrate=method)
        assert clf.alpha_ == 1.0 and clf.tuning_ is None and clf.calibration_ is not None
        assert clf.calibration_.method == method and clf.model_.calibration is clf.calibration_
        assert_same_calibration(clf.calibration_, bb.calibrate(method, *scores))
        assert clf.tally_ == plain.tally_
        expected = clf.calibration_.apply(plain.predict_log_proba(X))
        np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=0, atol=1e-12)


@every_data
@every_method
def test_predictions_agree_with_probabilities(name: str, method: str) -> None:
    X, _ = DATA[name]
    clf, plain = fitted(name, calibrate=method), fitted(name)
    shares = clf.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[shares.argmax(axis=1)])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)), shares, rtol=0, atol=1e-12)
    np.testing.assert_allclose(clf.predict_joint_log_proba(X), plain.predict_joint_log_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(clf.model_.predict(X), clf.predict(X))
    np.testing.assert_allclose(clf.model_.posterior(X), shares, rtol=0, atol=1e-12)
    if method == "temperature":
        np.testing.assert_array_equal(clf.predict(X), plain.predict(X))


@pytest.mark.parametrize("weights", ["fractional", "whole", "some are zero", "one number"])
def test_weights(weights: str) -> None:
    X, y = WINE
    rng = np.random.default_rng(2)
    given: Any = {
        "fractional": rng.random(len(y)) + 0.1,
        "whole": rng.integers(1, 4, len(y)).astype(float),
        "some are zero": np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.5),
        "one number": 2.0,
    }[weights]
    plain = NB().fit(X, y, sample_weight=given)
    each = np.full(len(y), given) if np.ndim(given) == 0 else given
    scores = out_of_fold(X, y, each)
    for method in METHODS:
        clf = NB(calibrate=method).fit(X, y, sample_weight=given)
        assert clf.tally_ == plain.tally_
        assert_same_calibration(clf.calibration_, bb.calibrate(method, *scores))


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.1},
        {"how": "map", "alpha": 2.0},
        {"class_prior": "uniform"},
        {"how": "predictive"},
        {"features": "histogram"},
        {"class_prior": [0.2, 0.3, 0.5]},
    ],
    ids=str,
)
def test_settings_hold_for_the_folds_too(settings: dict[str, Any]) -> None:
    X, y = DATA["texts" if "alpha" in settings else "iris"]  # bell curves know no α
    scores = out_of_fold(X, y, **settings)
    for method in METHODS:
        clf = NB(calibrate=method, **settings).fit(X, y)
        assert_same_calibration(clf.calibration_, bb.calibrate(method, *scores))


def test_the_seed_settles_the_folds() -> None:
    one, same, other = (NB(calibrate="temperature", seed=seed).fit(*WINE) for seed in (1, 1, 2))
    assert one.calibration_.temperature == same.calibration_.temperature != other.calibration_.temperature


# Choosing -------------------------------------------------------------------------------------------------------------


@every_data
def test_auto_is_tune(name: str) -> None:
    X, y = DATA[name]
    clf = fitted(name, alpha="auto")
    found = bb.tune(X, y)
    assert clf.alpha == "auto" and clf.alpha_ == found.best["alpha"] and clf.calibration_ is None
    assert isinstance(clf.tuning_, Tuning)
    np.testing.assert_array_equal(clf.tuning_.scores, found.scores)
    assert clf.tally_ == found.tally
    np.testing.assert_array_equal(clf.predict_proba(X), found.model.posterior(X))
    plain = NB(found.features, alpha=clf.alpha_).fit(X, y)  # which adds up its rows in another order
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["wine", "iris", "frame", "strings"])
@pytest.mark.parametrize("alpha", [1.0, 0.1, "auto"])
def test_choose_is_tune(name: str, alpha: Any) -> None:
    X, y = DATA[name]
    clf = NB(features="choose", alpha=alpha).fit(X, y)
    found = bb.tune(X, y, features="choose", alpha=alpha)
    assert clf.tuning_ is not None and clf.tuning_.family_choice is not None and found.family_choice is not None
    assert clf.tuning_.family_choice.names == found.family_choice.names and clf.alpha_ == found.best["alpha"]
    assert clf.tally_.schema == found.tally.schema and clf.tally_ == found.tally
    np.testing.assert_array_equal(clf.predict_proba(X), found.model.posterior(X))


@every_method
def test_all_at_once(method: str) -> None:
    X, y = WINE
    clf = NB(features="choose", alpha="auto", calibrate=method, how="map", class_prior="uniform").fit(X, y)
    found = bb.tune(X, y, features="choose", how="map", class_prior="uniform", calibrate=method)  # type: ignore[arg-type]
    assert clf.alpha_ == found.best["alpha"] and clf.tally_ == found.tally
    np.testing.assert_array_equal(clf.predict_proba(X), found.model.posterior(X))
    out = bb.cross_validate(X, y, schema=found.tally.schema, how="map", class_prior="uniform", alpha=clf.alpha_)
    with np.errstate(divide="ignore"):
        expected = bb.calibrate(method, np.log(out.posteriors), out.truth)  # type: ignore[arg-type]
    assert clf.calibration_ is not None and clf.calibration_.method == method
    if method == "temperature":
        assert clf.calibration_.temperature == pytest.approx(expected.temperature, rel=1e-4)  # type: ignore[attr-defined]


def test_weights_when_alpha_is_chosen() -> None:
    weights = np.random.default_rng(3).random(N) + 0.1
    clf = NB(alpha="auto").fit(TEXTS, LABELS, sample_weight=weights)
    found = bb.tune(TEXTS, LABELS, weights=weights)
    np.testing.assert_array_equal(clf.tuning_.scores, found.scores)
    assert clf.alpha_ == found.best["alpha"]


# Keeping it -----------------------------------------------------------------------------------------------------------

CONFIGURATIONS: list[dict[str, Any]] = [
    *({"calibrate": method} for method in METHODS),
    {"alpha": "auto"},
    {"features": "choose"},
    {"features": "choose", "alpha": "auto", "calibrate": "isotonic"},
]
every_configuration = pytest.mark.parametrize("settings", CONFIGURATIONS, ids=str)


@every_configuration
def test_parameters_and_clones(settings: dict[str, Any]) -> None:
    clf = NB(**settings)
    assert {name: clf.get_params()[name] for name in settings} == settings
    other = clone(clf.fit(*WINE))
    assert not other.__sklearn_is_fitted__() and other.get_params() == clf.get_params()
    np.testing.assert_array_equal(other.fit(*WINE).predict_proba(WINE[0]), clf.predict_proba(WINE[0]))
    assert NB().set_params(**settings).get_params() == clf.get_params()
    assert all(str(value) in repr(clf) for value in settings.values())


@every_configuration
@pytest.mark.parametrize(
    "name", ["frame", *(pytest.param(name, marks=pytest.mark.slow) for name in ("strings", "texts"))]
)
def test_pickles_answer_the_same(settings: dict[str, Any], name: str) -> None:
    X, _ = DATA[name]
    clf = fitted(name, **settings)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    assert again.alpha_ == clf.alpha_ and str(again.tuning_) == str(clf.tuning_)
    assert str(again.calibration_) == str(clf.calibration_)


@every_configuration
@pytest.mark.parametrize("name", ["strings", "texts", "frame"])
def test_files_keep_the_calibration(settings: dict[str, Any], name: str, tmp_path: Path) -> None:
    X, _ = DATA[name]
    clf = fitted(name, **settings)
    bb.save(clf.model_, tmp_path / "m")
    model = bb.load(tmp_path / "m")
    assert isinstance(model, bb.Model)
    np.testing.assert_array_equal(model.posterior(X), clf.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), clf.predict(X))
    assert str(model.calibration) == str(clf.calibration_) and model.choice.alpha == clf.alpha_
    assert str(model) == str(clf.model_)


# Learning on ----------------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("step", ["partial_fit", "forget"])
@pytest.mark.parametrize("name", ["wine", "texts"])
def test_learning_on_drops_the_calibration_with_one_warning(method: str, step: str, name: str) -> None:
    X, y = DATA[name]
    some = np.arange(0, len(y), 7)
    clf, plain = NB(calibrate=method).fit(X, y), NB().fit(X, y)
    clf.predict(X)
    with pytest.warns(bb.BanburyWarning, match=f"after {step} the probabilities are no longer calibrated") as told:
        getattr(clf, step)(rows_of(X, some), y[some])
    assert len(told) == 1 and told[0].filename == __file__
    assert clf.calibration_ is None and clf.model_.calibration is None
    getattr(plain, step)(rows_of(X, some), y[some])
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), plain.predict(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(clf, step)(rows_of(X, some + 1)[:3], y[some + 1][:3])
        assert clf.fit(X, y).calibration_ is not None


@every_method
def test_partial_fit_from_the_start_is_not_calibrated_and_says_so_once(method: str) -> None:
    X, y = WINE
    clf = NB(calibrate=method)
    with pytest.warns(bb.BanburyWarning, match="after partial_fit the probabilities are no longer calibrated") as told:
        clf.partial_fit(X[::2], y[::2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.partial_fit(X[1::2], y[1::2])
    assert len(told) == 1 and clf.calibration_ is None and clf.alpha_ == 1.0 and clf.tuning_ is None
    np.testing.assert_array_equal(
        clf.predict_proba(X), NB().partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2]).predict_proba(X)
    )


@pytest.mark.parametrize("settings", [{"alpha": "auto"}, {"features": "choose"}], ids=str)
def test_partial_fit_cannot_choose(settings: dict[str, Any]) -> None:
    X, y = WINE
    ((name, value),) = settings.items()
    clf = NB(**settings)
    said = f"{name}='{value}' needs all rows at once, but partial_fit sees only some"
    with pytest.raises(bb.BanburyError, match=said):
        clf.partial_fit(X, y)
    assert not clf.__sklearn_is_fitted__()
    clf.fit(X, y)
    before = clf.predict_proba(X)
    with pytest.raises(bb.BanburyError, match=said):
        clf.partial_fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_a_refused_step_keeps_the_calibration() -> None:
    X, y = WINE
    clf = NB(calibrate="platt").fit(X, y)
    before = clf.predict_proba(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bb.BanburyError):
            clf.forget(X[:1], ["never"])
        with pytest.raises(ValueError):
            clf.partial_fit(X[:2], y[:1])
    assert clf.calibration_ is not None
    np.testing.assert_array_equal(clf.predict_proba(X), before)


# Inside scikit-learn --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@every_configuration
def test_nested_in_cross_validation_it_sees_the_training_rows_alone(settings: dict[str, Any]) -> None:
    X, y = WINE
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found = cross_val_score(NB(**settings), X, y, cv=folds, scoring="neg_log_loss", error_score="raise")
    for score, (train, test) in zip(found, folds.split(X, y), strict=True):
        shares = NB(**settings).fit(X[train], y[train]).predict_proba(X[test])
        own = np.log(np.maximum(shares[np.arange(len(test)), y[test]], np.finfo(float).eps))
        assert score == pytest.approx(own.mean(), abs=1e-9)


@pytest.mark.slow
def test_grid_search_over_calibrations_and_alphas() -> None:
    grid = {"calibrate": [None, *METHODS], "alpha": ["auto", 1.0]}
    search = GridSearchCV(NB(), grid, cv=3, scoring="neg_log_loss", error_score="raise").fit(np.array(TEXTS), LABELS)
    assert len(search.cv_results_["params"]) == 8 and np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.predict(TEXTS).shape == (N,)


@every_configuration
def test_pipelines(settings: dict[str, Any]) -> None:
    X, y = WINE
    pipe = make_pipeline(StandardScaler(), SelectKBest(k=3), NB(**settings)).fit(X, y)
    assert pipe.score(X, y) > 0.9
    np.testing.assert_array_equal(pipe.predict(X), pipe.classes_[pipe.predict_proba(X).argmax(axis=1)])


@every_configuration
@pytest.mark.parametrize("sigmoid", ["sigmoid", pytest.param("isotonic", marks=pytest.mark.slow)])
def test_calibrated_classifier(settings: dict[str, Any], sigmoid: str) -> None:
    X, y = DATA["strings"]
    clf = CalibratedClassifierCV(NB(**settings), method=sigmoid, cv=3).fit(X, y)
    shares = clf.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert clf.score(X, y) > 0.9


# Few rows -------------------------------------------------------------------------------------------------------------


@every_configuration
@pytest.mark.parametrize("n", [2, 3, 5, 9, 10, 11])
def test_few_rows(settings: dict[str, Any], n: int) -> None:
    X, y = np.arange(float(n))[:, None] ** 2, np.array(["a", "b"])[np.arange(n) % 2]
    with quietly():
        clf = NB(**settings).fit(X, y)
        shares = clf.predict_proba(X)
        np.testing.assert_array_equal(clf.predict(X), clf.classes_[shares.argmax(axis=1)])
    assert np.isfinite(shares).all() and clf.classes_.tolist() == ["a", "b"]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@every_configuration
@pytest.mark.parametrize("name", ["wine", "texts"])
def test_a_class_of_one_row(settings: dict[str, Any], name: str) -> None:
    X, y = DATA[name]
    y = np.where(np.arange(len(y)) == 0, "rare", y.astype(str))
    with quietly():
        clf = NB(**settings).fit(X, y)
        shares = clf.predict_proba(X)
    assert "rare" in clf.classes_.tolist() and np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[shares.argmax(axis=1)])


@every_configuration
def test_one_class(settings: dict[str, Any]) -> None:
    with quietly():
        clf = NB(**settings).fit([[0.0], [1.0], [2.0]], ["a"] * 3)
    np.testing.assert_array_equal(clf.predict_proba([[5.0]]), [[1.0]])


@every_configuration
def test_one_row_is_refused(settings: dict[str, Any]) -> None:
    clf = NB(**settings)
    with pytest.raises(bb.BanburyError, match="at least two rows"):
        clf.fit([[0.0]], ["a"])
    with pytest.raises(bb.BanburyError, match="at least two rows"):
        clf.fit([[0.0], [1.0]], ["a", None])
    with pytest.raises(bb.BanburyError):
        clf.fit([[0.0], [1.0]], ["a", "b"], sample_weight=[1.0, 0.0])
    assert not clf.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"calibrate": "sigmoid"}, "calibrate must be one of 'temperature'"),
        ({"calibrate": True}, "calibrate must be one of"),
        ({"calibrate": ["platt"]}, "calibrate must be one of"),
        ({"calibrate": "platt", "how": "average"}, "how must be one of"),
        ({"calibrate": "platt", "alpha": -1.0}, "alpha"),
        ({"alpha": "best"}, "alpha"),
        ({"features": "chosen"}, "chosen"),
        ({"alpha": "auto", "how": "average"}, "how must be one of"),
        ({"features": "choose", "alpha": "best"}, "alpha"),
    ],
    ids=str,
)
def test_bad_settings_are_named_and_change_nothing(settings: dict[str, Any], said: str) -> None:
    clf = NB().fit(*WINE)
    before = clf.predict_proba(WINE[0])
    with pytest.raises(bb.BanburyError, match=said):
        clf.set_params(**settings).fit(*WINE)
    np.testing.assert_array_equal(clf.predict_proba(WINE[0]), before)


def test_fit_again_forgets_what_was_chosen() -> None:
    clf = NB(alpha="auto", calibrate="platt").fit(TEXTS, LABELS)
    clf.set_params(alpha=0.5, calibrate=None).fit(TEXTS, LABELS)
    assert clf.alpha_ == 0.5 and clf.tuning_ is None and clf.calibration_ is None and clf.model_.calibration is None


# More of the same -----------------------------------------------------------------------------------------------------


@every_method
def test_rows_without_a_label_have_no_say(method: str) -> None:
    X, y = WINE
    labels = np.array(y, dtype=object)
    labels[::5] = None
    known = np.array([label is not None for label in labels])
    with pytest.warns(bb.BanburyWarning, match="36 rows without a label"):
        clf = NB(calibrate=method).fit(X, labels)
    expected = NB(calibrate=method).fit(X[known], y[known])
    np.testing.assert_allclose(clf.predict_proba(X), expected.predict_proba(X), rtol=0, atol=1e-12)


@every_configuration
def test_a_class_whose_rows_weigh_nothing_is_not_there(settings: dict[str, Any]) -> None:
    X, y = WINE
    clf = NB(**settings).fit(X, y, sample_weight=np.where(y == 1, 0.0, 1.0))
    assert clf.classes_.tolist() == [0, 2] and clf.predict_proba(X).shape == (len(y), 2)


@every_configuration
@pytest.mark.parametrize("prior", [[0.2, 0.3, 0.3, 0.2], {0: 0.2, 1: 0.3, 2: 0.3, 9: 0.2}], ids=["list", "mapping"])
def test_a_given_prior_and_a_class_that_some_folds_do_not_know(settings: dict[str, Any], prior: Any) -> None:
    X, y = WINE
    clf = NB(class_prior=prior, **settings).fit(X, np.where(np.arange(len(y)) == 0, 9, y))
    assert np.isfinite(clf.predict_proba(X)).all() and clf.classes_.tolist() == [0, 1, 2, 9]


@every_method
@pytest.mark.parametrize("how", ["mle", "map", "gibbs", "predictive"])
def test_impossible_words_and_other_estimates(method: str, how: str) -> None:
    texts = [*TEXTS, "unheard of", "red five four", ""]
    with quietly():
        clf = NB(how=how, calibrate=method).fit(TEXTS, LABELS)
        shares = clf.predict_proba(texts)
        np.testing.assert_array_equal(clf.predict(texts), clf.classes_[shares.argmax(axis=1)])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@every_configuration
def test_copies_and_threads_change_nothing(settings: dict[str, Any]) -> None:
    X, y = WINE
    clf = fitted("wine", **settings)
    shares = clf.predict_proba(X)
    for other in (copy.copy(clf), copy.deepcopy(clf), NB(threads=1, **settings).fit(X, y)):
        np.testing.assert_allclose(other.predict_proba(X), shares, rtol=0, atol=1e-9)


@pytest.mark.parametrize("settings", [{"alpha": "auto"}, {"features": "choose"}], ids=str)
def test_forget_keeps_what_was_chosen(settings: dict[str, Any]) -> None:
    X, y = WINE
    clf = NB(**settings).fit(X, y)
    chosen, schema = clf.alpha_, clf.tally_.schema
    clf.forget(X[:5], y[:5])
    assert clf.alpha_ == chosen and clf.tally_ == bb.count(X[5:], y[5:], schema=schema)
    expected = bb.estimate(clf.tally_, alpha=chosen).posterior(X)
    np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=0, atol=1e-12)


# Defects --------------------------------------------------------------------------------------------------------------


def test_forget_where_warnings_are_errors_does_all_or_nothing() -> None:
    X, y = WINE
    clf = NB(calibrate="platt").fit(X, y)
    clf.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bb.BanburyWarning):
            clf.forget(X[:5], y[:5])
    expected = bb.estimate(clf.tally_).calibrated(clf.calibration_)
    np.testing.assert_allclose(clf.predict_proba(X), expected.posterior(X), rtol=0, atol=1e-9)


def test_partial_fit_where_warnings_are_errors_does_all_or_nothing() -> None:
    X, y = WINE
    clf = NB(calibrate="platt").fit(X[10:], y[10:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bb.BanburyWarning):
            clf.partial_fit(X[:10], y[:10])
    assert (clf.tally_.n_rows == len(y)) == (clf.calibration_ is None)
