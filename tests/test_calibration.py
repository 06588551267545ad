"""Calibration: each method beside an obvious slow twin and scikit-learn's own; its laws; 20 Newsgroups before and after."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

import banbury as bb
from banbury import errors
from banbury.quality.calibration import METHODS, Calibration, Isotonic, Platt, Temperature, calibrate, reliability

EVERY = sorted(METHODS)


def drawn(n: int, n_classes: int, seed: int = 0, scale: float = 20.0) -> tuple[np.ndarray, np.ndarray]:
    """Log posteriors that claim too much, and the true classes."""
    rng = np.random.default_rng(seed)
    joint = rng.normal(0, scale, (n, n_classes))
    truth = (joint + rng.gumbel(0, scale / 2, joint.shape)).argmax(axis=1)
    return joint - np.logaddexp.reduce(joint, axis=1)[:, None], truth


def log_loss(log_posteriors: np.ndarray, truth: Any, weights: Any = None) -> float:
    return -float(np.average(log_posteriors[np.arange(len(truth)), truth], weights=weights))


# The slow twins


def naive_log_sum(values: list[float]) -> float:
    top = max(values, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(math.exp(v - top) for v in values))


def naive_log_odds(row: list[float], number: int) -> float:
    return row[number] - naive_log_sum(row[:number] + row[number + 1 :])


def naive_temperature_loss(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray, temperature: float) -> float:
    rows = ([s / temperature for s in row] for row in scores.tolist())
    return math.fsum(w * (naive_log_sum(row) - row[t]) for row, t, w in zip(rows, truth, weights, strict=True))


def naive_temperature(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> float:
    """Grids about the best of the grid before, each ten times finer."""
    best, width = 0.0, 10.0
    for _ in range(8):
        grid = [best + width * k / 10 for k in range(-10, 11)]
        best = min(grid, key=lambda t: naive_temperature_loss(scores, truth, weights, math.exp(t)))
        width /= 5
    return math.exp(best)


def naive_sigmoid(odds: list[float], positive: list[bool], weights: list[float]) -> Callable[[float], float]:
    yes = sum(w for w, p in zip(weights, positive, strict=True) if p)
    no = sum(weights) - yes
    targets = [(yes + 1) / (yes + 2) if p else 1 / (no + 2) for p in positive]

    def loss(line: Any) -> float:
        values = [line[0] * f + line[1] for f in odds]
        return math.fsum(w * (naive_log_sum([0, v]) - t * v) for v, t, w in zip(values, targets, weights, strict=True))

    a, b = minimize(loss, [0, 0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 5_000}).x
    return lambda f: 1 / (1 + math.exp(-(a * f + b)))


def naive_isotonic(odds: list[float], positive: list[bool], weights: list[float]) -> Callable[[float], float]:
    """Neighbours that fall are pooled until none does; between two log-odds the share lies on the line."""
    pools: list[list[Any]] = []  # weight, weight of the class, log-odds
    for f in sorted(set(odds)):
        here = [(w, w * p) for g, w, p in zip(odds, weights, positive, strict=True) if g == f]
        pools.append([sum(w for w, _ in here), sum(p for _, p in here), [f]])
        while len(pools) > 1 and pools[-2][1] / pools[-2][0] >= pools[-1][1] / pools[-1][0]:
            last = pools.pop()
            pools[-1] = [mine + its for mine, its in zip(pools[-1], last, strict=True)]
    points = [(f, p / w) for w, p, many in pools for f in many]

    def share(f: float) -> float:
        if f <= points[0][0]:
            return points[0][1]
        for (f0, s0), (f1, s1) in pairwise(points):
            if f <= f1:
                return s0 + (s1 - s0) * (f - f0) / (f1 - f0)
        return points[-1][1]

    return share


def naive_one_against_rest(twin: Any, scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Posteriors of the very rows that were learned from."""
    n_classes, rows = scores.shape[1], scores.tolist()
    shares = []
    for number in [1] if n_classes == 2 else range(n_classes):
        odds = [naive_log_odds(row, number) for row in rows]
        found = twin(odds, (truth == number).tolist(), weights.tolist())
        shares.append([found(f) for f in odds])
    if n_classes == 2:
        return np.array([[1 - s, s] for s in shares[0]])
    return np.array([[s / sum(row) if sum(row) else 1 / n_classes for s in row] for row in zip(*shares, strict=True)])


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("scale", [0.3, 20.0, 300.0])
def test_temperature_is_the_best_of_a_grid(n_classes: int, scale: float) -> None:
    scores, truth = drawn(150, n_classes, scale=scale)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 150)
    found = calibrate("temperature", scores, truth, weights)
    assert isinstance(found, Temperature)
    assert found.temperature == pytest.approx(naive_temperature(scores, truth, weights), rel=1e-4)
    losses = [
        naive_temperature_loss(scores, truth, weights, t)
        for t in (found.temperature, found.temperature * 1.001, found.temperature / 1.001)
    ]
    assert min(losses) == losses[0]


@pytest.mark.parametrize("n_classes", [1, 2, 3, 5])
@pytest.mark.parametrize("method, twin, near", [("platt", naive_sigmoid, 1e-6), ("isotonic", naive_isotonic, 1e-12)])
def test_one_against_rest_is_its_twin(method: Any, twin: Any, near: float, n_classes: int) -> None:
    scores, truth = drawn(80, n_classes)
    if n_classes == 1:
        assert (calibrate(method, scores, truth).apply(scores) == 1).all()
        return
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 80)
    expected = naive_one_against_rest(twin, scores, truth, weights)
    np.testing.assert_allclose(calibrate(method, scores, truth, weights).apply(scores), expected, rtol=0, atol=near)


# scikit-learn


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose decision function is its input."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_classes = n_classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Scores:
        raise AssertionError("it is frozen")

    @property
    def classes_(self) -> np.ndarray:
        return np.arange(self.n_classes)

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] if self.n_classes == 2 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        raise AssertionError("its scores are wanted")

    def __sklearn_is_fitted__(self) -> bool:
        return True


def peer(method: str, scores: np.ndarray, truth: np.ndarray, weights: Any, new: np.ndarray) -> np.ndarray:
    n_classes = scores.shape[1]

    def decisions(table: np.ndarray) -> np.ndarray:
        if n_classes == 2:  # to scikit-learn one score x is the logits −x and x
            odds = table[:, 1:] - table[:, :1]
            return odds / 2 if method == "temperature" else odds
        if method == "temperature":
            return table
        return np.array([[naive_log_odds(row, c) for c in range(n_classes)] for row in table.tolist()])

    theirs = CalibratedClassifierCV(FrozenEstimator(Scores(n_classes)), method={"platt": "sigmoid"}.get(method, method))
    theirs.fit(decisions(scores), truth, sample_weight=weights)
    return np.asarray(theirs.predict_proba(decisions(new)))


@pytest.mark.filterwarnings("ignore:.*sample weights will only be used for the calibration")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("scale", [1.0, 20.0, 300.0])
@pytest.mark.parametrize("method", EVERY)
def test_it_is_what_scikit_learn_finds(method: Any, scale: float, n_classes: int, weighted: bool) -> None:
    (scores, truth), (new, _) = drawn(1_500, n_classes, 0, scale), drawn(500, n_classes, 1, scale)
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], 1_500) if weighted else None
    if scale == 1.0:
        scores, new = scores / 3, new / 3  # too timid instead
    expected = peer(method, scores, truth, weights, new)
    np.testing.assert_allclose(calibrate(method, scores, truth, weights).apply(new), expected, rtol=0, atol=1e-6)


# Laws

log_posterior = st.one_of(
    st.floats(-1_000, 0), st.floats(-2, 0), st.sampled_from([-math.inf, -1.7e308, -1e300, -745.2, -1e-13, -5e-324, 0.0])
)


@st.composite
def scored(draw: Any, fewest: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, n_classes = draw(st.integers(fewest, 12)), draw(st.integers(1, 4))
    scores = draw(arrays(np.float64, (n, n_classes), elements=log_posterior))
    truth = draw(arrays(np.int64, n, elements=st.integers(0, n_classes - 1)))
    weights = draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 1e-3, 1.0, 2.0, 1e6])))
    assume(weights.any())
    return scores, truth, weights


@pytest.mark.parametrize("method", EVERY)
@given(data=scored(), unseen=st.data())
def test_probabilities_whatever_comes(method: Any, data: Any, unseen: Any) -> None:
    scores, truth, weights = data
    found = calibrate(method, scores, truth, weights)
    new = unseen.draw(arrays(np.float64, (5, scores.shape[1]), elements=log_posterior))
    for table in (scores, new, new[:0]):
        posteriors, logs = found.apply(table), found.log_apply(table)
        assert posteriors.shape == logs.shape == table.shape
        assert ((posteriors >= 0) & (posteriors <= 1)).all() and not np.isnan(logs).any()
        np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.exp(logs), posteriors, rtol=0, atol=1e-12)
        if method != "isotonic":
            some = (table > -np.inf).any(axis=1)
            assert (posteriors[some][table[some] == -np.inf] == 0).all()


@given(data=scored(), hotness=st.sampled_from([None, 1e-3, 0.5, 300.0, 1e4]))
def test_temperature_keeps_every_answer_and_every_tie(data: Any, hotness: float | None) -> None:
    scores, truth, weights = data
    found = calibrate("temperature", scores, truth, weights)
    if hotness is not None:
        found = Temperature(scores.shape[1], hotness)
    best = scores == scores.max(axis=1, keepdims=True)
    for answers in (found.apply(scores), found.log_apply(scores)):
        np.testing.assert_array_equal(answers == answers.max(axis=1, keepdims=True), best)
        np.testing.assert_array_equal(answers.argmax(axis=1), scores.argmax(axis=1))


@pytest.mark.parametrize("method", EVERY)
@given(data=scored())
def test_a_weight_of_two_is_the_row_twice_and_of_zero_no_row(method: Any, data: Any) -> None:
    scores, truth, weights = data
    twice = np.where(weights > 0, 2, 0)
    rows = np.repeat(np.arange(len(truth)), twice)
    weighed, repeated = calibrate(method, scores, truth, twice), calibrate(method, scores[rows], truth[rows])
    np.testing.assert_allclose(weighed.apply(scores), repeated.apply(scores), rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", EVERY)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_changes_nothing(method: Any, n_classes: int) -> None:
    scores, truth = drawn(300, n_classes)
    expected = calibrate(method, scores, truth).apply(scores)

    def same(found: Calibration, table: np.ndarray) -> None:
        np.testing.assert_allclose(found.apply(table), expected, rtol=0, atol=1e-8)

    joints = scores - np.arange(300.0)[:, None]
    same(calibrate(method, joints, truth), joints)  # a number added to all scores of a row
    backwards = calibrate(method, scores[::-1], truth[::-1])
    same(backwards, scores)  # the order of the rows
    same(calibrate(method, np.asfortranarray(scores), truth), np.asfortranarray(scores))
    same(calibrate(method, scores.tolist(), truth.tolist()), scores)
    if method != "platt":  # whose prior counts rows
        same(calibrate(method, scores, truth, np.full(300, 1e-3)), scores)
    if n_classes > 2 or method == "temperature":
        turned = calibrate(method, scores[:, ::-1], n_classes - 1 - truth)  # the order of the classes
        np.testing.assert_allclose(turned.apply(scores[:, ::-1]), expected[:, ::-1], rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", EVERY)
def test_what_is_given_is_left_alone(method: Any) -> None:
    scores, truth = drawn(50, 3)
    for table in (scores, np.asfortranarray(scores)):
        table.flags.writeable = False
        calibrate(method, table, truth).apply(table)


@pytest.mark.parametrize("method", EVERY)
@given(data=scored())
def test_state_is_all_there_is(method: Any, data: Any) -> None:
    scores, truth, weights = data
    found = calibrate(method, scores, truth, weights)
    for again in (Calibration.from_state(method, found.state()), pickle.loads(pickle.dumps(found))):
        assert type(again) is type(found) and str(again) == str(found) and again.method == method
        np.testing.assert_array_equal(again.apply(scores), found.apply(scores))


# Edges


def test_one_line_each() -> None:
    scores, truth = drawn(100, 3)
    assert str(calibrate("platt", scores, truth)) == "Platt, 3 classes"
    assert repr(calibrate("isotonic", scores, truth)) == "isotonic, 3 classes"
    assert str(calibrate("platt", [[-1.0]], [0])) == "Platt, 1 class"
    assert str(Temperature(3, 3.2149)) == "temperature 3.21"


def test_separated_scores_keep_temperature_bounded() -> None:
    for scale in (1e-6, 1.0, 1e6, 1e300):
        scores = -scale * (1.0 - np.eye(3))
        found = calibrate("temperature", scores, [0, 1, 2])
        assert isinstance(found, Temperature) and 1e-3 <= found.temperature <= 1e4
        wrong = calibrate("temperature", scores, [1, 2, 0])
        assert isinstance(wrong, Temperature) and wrong.temperature == pytest.approx(1e4)
        assert np.isfinite(wrong.log_apply(scores)).all()


def test_nothing_to_gain_leaves_temperature_at_one() -> None:
    for scores, truth in (
        (np.zeros((4, 3)), [0, 1, 2, 0]),  # all tied
        (np.full((2, 2), -np.inf), [0, 1]),  # all impossible, so equal
        ([[0.0, -np.inf], [-np.inf, 0.0]], [0, 1]),  # all certain, and right
        ([[0.0, -np.inf], [-np.inf, 0.0]], [1, 0]),  # all certain, and wrong
        ([[-3.0]], [0]),  # one class
    ):
        assert calibrate("temperature", scores, truth).state()["temperature"] == 1.0


def test_an_impossible_true_class_has_no_say_in_the_temperature() -> None:
    scores, truth = drawn(200, 3)
    more = np.concatenate([scores, [[0.0, -np.inf, -1.0]] * 50]), np.concatenate([truth, [1] * 50])
    found = [calibrate("temperature", *data).state()["temperature"] for data in ((scores, truth), more)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize("method", EVERY)
def test_a_class_without_rows_is_improbable_and_a_number_all_the_same(method: Any) -> None:
    scores, truth = drawn(400, 4)
    truth = np.where(truth == 3, 0, truth)
    posteriors = calibrate(method, scores, truth).apply(scores)
    assert posteriors[:, 3].mean() < calibrate("temperature", scores, truth).apply(scores)[:, 3].mean() + 1e-12
    if method == "isotonic":
        assert set(posteriors[:, 3]) <= {0.0, 0.25}  # a quarter where all shares are zero


def test_isotonic_shares_that_are_all_zero_become_equal() -> None:
    found = Isotonic(3, np.array([2, 2, 2]), np.tile([-1.0, 1.0], 3), np.tile([0.0, 1.0], 3))
    near = np.log([1.01, 1.0, 1.0])  # every log-odds near log ½, so a share above 0
    assert found.apply([near])[0].argmax() == 0
    high = Isotonic(3, np.array([2, 2, 2]), np.tile([5.0, 6.0], 3), np.tile([0.0, 1.0], 3))
    assert high.apply([near]).tolist() == [[1 / 3] * 3]


def test_log_odds_do_not_saturate() -> None:
    """1 − P is 0 in all these rows; the log-odds are 100, 400 and 900 and a bit."""
    scores = np.array([[0.0, -100.0, -200.0], [0.0, -400.0, -500.0], [0.0, -900.0, -901.0]])
    logs = Platt(3, np.full(3, 0.01), np.zeros(3)).log_apply(scores)
    for row, found in zip(scores.tolist(), logs, strict=True):
        values = [-naive_log_sum([0.0, -0.01 * naive_log_odds(row, c)]) for c in range(3)]
        np.testing.assert_allclose(found, np.array(values) - naive_log_sum(values), rtol=1e-12)


def test_platt_keeps_apart_what_is_too_small_for_a_number() -> None:
    logs = calibrate("platt", *drawn(300, 3)).log_apply([[0.0, -1e5, -2e5]])
    assert np.isfinite(logs).all() and logs[0, 0] > logs[0, 1] > logs[0, 2]


GOOD = [[-0.1, -2.0], [-3.0, -0.1]]


@pytest.mark.parametrize(
    "call, kind, says",
    [
        (lambda: calibrate("plat", GOOD, [0, 1]), errors.BadSetting, "Did you mean 'platt'"),  # type: ignore[arg-type]
        (lambda: calibrate("platt", [[0, np.inf], [0, 0]], [0, 1]), errors.BadValue, "inf in row 0 for class number 1"),
        (lambda: calibrate("platt", [[0, 0], [np.nan, 0]], [0, 1]), errors.BadValue, "nan in row 1 for class number 0"),
        (lambda: calibrate("platt", [0.0, 1.0], [0, 1]), errors.BadSetting, r"rows × classes.*shape \(2,\)"),
        (lambda: calibrate("platt", [["a", "b"]], [0]), errors.BadSetting, "a 2-D array of numbers"),
        (lambda: calibrate("platt", np.zeros((0, 2)), []), errors.BadSetting, "at least one row"),
        (lambda: calibrate("platt", np.zeros((2, 0)), [0, 1]), errors.BadSetting, r"shape \(2, 0\)"),
        (lambda: calibrate("platt", GOOD, [0, 2]), errors.UnknownClass, "row 1 has the number 2"),
        (lambda: calibrate("platt", GOOD, [-1, 0]), errors.UnknownClass, "row 0 has the number -1"),
        (lambda: calibrate("platt", GOOD, [0.0, 1.0]), errors.BadSetting, "whole numbers.*float64"),
        (lambda: calibrate("platt", GOOD, [0]), errors.LengthMismatch, "2 rows but 1 class numbers"),
        (lambda: calibrate("platt", GOOD, [0, 1], [1.0]), errors.LengthMismatch, "2 rows but 1 weights"),
        (lambda: calibrate("platt", GOOD, [0, 1], [1.0, -1.0]), errors.BadWeight, "row 1 is negative"),
        (lambda: calibrate("platt", GOOD, [0, 1], [np.nan, 1.0]), errors.BadWeight, "row 0 is missing"),
        (lambda: calibrate("platt", GOOD, [0, 1], [0, 0]), errors.BadSetting, "above 0 for at least one row"),
        (lambda: calibrate("platt", GOOD, [0, 1], ["a", "b"]), errors.BadSetting, "weights must be numbers"),
        (lambda: calibrate("platt", GOOD, [0, 1], [[1, 1]]), errors.BanburyError, "1-D array"),
        (lambda: calibrate("platt", GOOD, [0, 1]).apply(np.zeros((1, 3))), errors.BadSetting, "rows × 2 classes"),
        (lambda: reliability([[0.5, 1.5]], [0]), errors.BadValue, "posteriors contains 1.5 in row 0"),
        (lambda: reliability([[0.5, np.nan]], [0]), errors.BadValue, "a probability from 0 to 1"),
        (lambda: reliability([[0.5, 0.5]], [0], bins=0), errors.BadSetting, "bins must be a whole number"),
        (lambda: reliability(np.zeros((0, 2)), []), errors.BadSetting, "at least one row"),
    ],
)
def test_errors_name_the_value_and_the_place(call: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        call()


@pytest.mark.parametrize(
    "method, changed, says",
    [
        ("temperature", {"temperature": None}, "'temperature' .* must be an array"),
        ("temperature", {"temperature": np.array([0.0])}, "from 0.001"),
        ("temperature", {"temperature": np.array([np.nan])}, "finite"),
        ("temperature", {"temperature": np.array([1, 2])}, "1 finite numbers"),
        ("temperature", {"floor": np.array([0.0])}, "below 0"),
        ("temperature", {"n_classes": np.array([0])}, "'n_classes' .* positive whole"),
        ("temperature", {"n_classes": np.array([2.0])}, "whole numbers"),
        ("platt", {"slopes": np.zeros(2)}, "3 finite numbers"),
        ("platt", {"intercepts": np.zeros((3, 1))}, "3 finite numbers"),
        ("platt", {"n_classes": np.array([10**15])}, "'slopes' of this platt calibration"),
        ("isotonic", {"lengths": np.array([1, 1])}, "3 positive whole numbers"),
        ("isotonic", {"lengths": np.array([1, 1, 0])}, "positive whole numbers"),
        ("isotonic", {"lengths": np.full(3, 2**62)}, "'odds' of this isotonic calibration"),
        ("isotonic", {"odds": np.zeros(4)}, "rising"),
        ("isotonic", {"odds": np.array([0.0, 1.0, 0.0, np.inf])}, "finite"),
        ("isotonic", {"odds": np.array([0.0, 1.0, 0.0, 1e308])}, "from -1e"),
        ("isotonic", {"shares": np.array([0.5, 0.4, 0.0, 0.0])}, "not falling"),
        ("isotonic", {"shares": np.array([0.5, 1.4, 0.0, 0.0])}, "from 0 to 1"),
    ],
)
def test_arrays_that_do_not_fit_are_named(method: str, changed: dict[str, Any], says: str) -> None:
    good: dict[str, dict[str, Any]] = {
        "temperature": {"temperature": np.array([2.0]), "floor": np.array([-36.0])},
        "platt": {"slopes": np.ones(3), "intercepts": np.zeros(3)},
        "isotonic": {
            "lengths": np.array([2, 1, 1]),
            "odds": np.array([0.0, 1.0, 0.0, 0.0]),
            "shares": np.array([0.1, 0.2, 0.5, 0.5]),
        },
    }
    state = {"n_classes": np.array([3]), **good[method]}
    assert Calibration.from_state(method, state).n_classes == 3
    with pytest.raises(errors.BadValue, match=says):
        Calibration.from_state(method, state | changed)


def test_a_state_of_an_unknown_method() -> None:
    with pytest.raises(errors.BadSetting, match="method must be one of"):
        Calibration.from_state("beta", {})


# Reliability


@given(data=scored(), bins=st.integers(1, 20))
def test_reliability_is_that_of_a_loop(data: Any, bins: int) -> None:
    scores, truth, weights = data
    posteriors = Temperature(scores.shape[1], 3.0).apply(scores)
    found = reliability(posteriors, truth, bins, weights)
    error = 0.0
    for b in range(bins):
        here = [i for i, p in enumerate(posteriors) if weights[i] > 0 and min(int(max(p) * bins), bins - 1) == b]
        if here:
            rows = sum(weights[i] for i in here)
            said = sum(weights[i] * max(posteriors[i]) for i in here) / rows
            came = sum(weights[i] * (np.argmax(posteriors[i]) == truth[i]) for i in here) / rows
            error += rows / weights.sum() * abs(said - came)
            at = found.start.tolist().index(b / bins)
            assert [found.confidence[at], found.accuracy[at], found.rows[at]] == pytest.approx([said, came, rows])
    assert found.error == pytest.approx(error, abs=1e-12)
    assert found.rows.sum() == pytest.approx(weights.sum())
    assert len(found.start) == len(found.rows) <= bins and len(str(found).splitlines()) == 2 + len(found.rows)


def test_probabilities_that_come_true_as_said_have_no_error() -> None:
    said = np.array([[0.75, 0.25]] * 4 + [[0.5, 0.5]] * 2)
    assert reliability(said, [0, 0, 0, 1, 0, 1]).error == 0.0


# 20 Newsgroups by date


@pytest.fixture(scope="module")
def posts(archived: Callable[[str], dict[str, bytes]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Out-of-fold log posteriors of the older posts and their classes; log posteriors of the newer, and theirs."""
    files = archived("20news-bydate")
    parts = []
    for part in ("train", "test"):
        names = [name for name in files if name.startswith(f"20news-bydate-{part}/")]
        parts.append(([files[name].decode("latin-1") for name in names], [name.split("/")[1] for name in names]))
    (texts, groups), (newer, newer_groups) = parts
    folds = np.random.default_rng(0).permutation(len(texts)) % 5
    scores = np.empty((len(texts), 20))
    for fold in range(5):
        learned, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        tally = bb.count([texts[i] for i in learned], target=[groups[i] for i in learned])
        scores[held] = bb.estimate(tally).log_posterior([texts[i] for i in held])
    model = bb.estimate(bb.count(texts, target=groups))
    numbers = {name: number for number, name in enumerate(model.classes)}
    truth, newer_truth = (np.array([numbers[name] for name in names]) for names in (groups, newer_groups))
    return scores, truth, model.log_posterior(newer), newer_truth


@pytest.mark.parametrize(
    "method, most_loss, most_error", [("temperature", 1.05, 0.05), ("platt", 1.15, 0.10), ("isotonic", None, 0.07)]
)
def test_newsgroups_become_honest(posts: Any, method: Any, most_loss: float | None, most_error: float) -> None:
    """Row 37 of the lectures. Raw: log loss 13.7, calibration error 0.21."""
    scores, truth, newer, newer_truth = posts
    raw = np.exp(newer)
    assert log_loss(newer, newer_truth) > 10 and reliability(raw, newer_truth).error > 0.2
    found = calibrate(method, scores, truth)
    posteriors = found.apply(newer)
    assert reliability(posteriors, newer_truth).error < most_error
    if most_loss is not None:  # an isotonic share may be 0 where the class is true: an infinite loss
        assert log_loss(found.log_apply(newer), newer_truth) < most_loss
    if method == "temperature":
        np.testing.assert_array_equal(posteriors.argmax(axis=1), newer.argmax(axis=1))
    else:
        right, raw_right = (np.mean(p.argmax(axis=1) == newer_truth) for p in (posteriors, raw))
        assert right > raw_right


def test_probabilities_are_not_taken_for_logarithms():
    with pytest.raises(errors.BadSetting, match="logarithms"):
        bb.calibrate("temperature", [[0.2, 0.8], [0.6, 0.4]], [0, 1])


@pytest.mark.parametrize("given", ["platt", 5, {}])
def test_only_a_calibration_calibrates(given):
    model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    with pytest.raises(errors.BadSetting, match=r"from bb.calibrate"):
        model.calibrated(given)


def test_a_warning_that_is_an_error_changes_nothing():
    X, y = np.arange(40.0).reshape(-1, 1), ["a", "b"] * 20
    clf = bb.NaiveBayesClassifier(calibrate="temperature").fit(X, y)
    for change in (clf.forget, clf.partial_fit):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(errors.BanburyWarning):
                change(X[:2], y[:2])
        assert clf.tally_.n_rows == 40 and clf.calibration_ is not None
