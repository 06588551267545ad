"""Numbers at the edges: constants, single rows, nothing at all, the very large, the very small and the very many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import banbury as bb
import by_shape
from banbury import plots
from banbury.errors import BadValue, EmptyData
from banbury.families import FAMILIES
from banbury.families.family import HOWS

NUMERIC = [
    "gaussian",
    bb.Gaussian("shared"),
    "histogram",
    bb.Histogram(bins="mdl"),
    "kernel_density",
    bb.KernelDensity("box"),
    "quantile_tree",
]
LARGEST = float(np.finfo(np.float64).max)
REAL = [*NUMERIC, bb.Histogram(start=0, width=0.5)]


def answers(table: dict[str, Any], features: Any = "auto", rows: Any = None, **settings: Any) -> np.ndarray:
    """The posterior of rows (of the table's own), checked to be one."""
    model = bb.estimate(bb.count(table, "y", features=features), **settings)
    rows = {name: column for name, column in table.items() if name != "y"} if rows is None else rows
    posterior = model.posterior(rows)
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-12)
    return posterior


# Little to learn from


@pytest.mark.parametrize("value", [0.0, 0.1, 7.7, 1 / 3, -123.456, 1e8 + 0.1, 1e-300, 1e300])
@pytest.mark.parametrize("family", NUMERIC, ids=str)
def test_a_constant_column_says_nothing(family: Any, value: float) -> None:
    """Not even by the rounding of its sums, which differs between classes."""
    posterior = answers({"x": [value] * 11, "y": list("aaabbbbbccc")}, {"x": family}, class_prior="uniform")
    np.testing.assert_allclose(posterior, 1 / 3, atol=0.25 if family == "histogram" else 1e-6)


def test_a_constant_far_from_the_first_rows_says_nothing() -> None:
    schema = bb.Schema.infer({"x": [0.0, 1.0, 2.0, 3.0], "y": list("abab")}, "y")
    weights = [0.3, 0.1, 0.7, 0.2, 0.9, 0.4]
    tally = bb.count({"x": [1e12] * 6, "y": list("aaabbb")}, "y", schema=schema, weights=weights)
    assert by_shape.moments(tally).spread.tolist() == [[0.0, 0.0]]


def zero_of(family: str) -> float:
    """0, or 0.5 for a family of numbers above 0."""
    return 0.5 if FAMILIES[family].least > 0 else 0


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_class_may_have_one_row(family: str, how: str) -> None:
    zero = zero_of(family)
    answers({"x": [1, zero, 1, zero, 1], "y": list("aaaab")}, {"x": family}, how=how)


@pytest.mark.parametrize("how", ["map", "mean", "predictive", "gibbs"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_tally_may_have_one_row(family: str, how: str) -> None:
    assert answers({"x": [1], "y": ["a"]}, {"x": family}, how=how).tolist() == [[1.0]]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_class_may_have_no_value_in_a_column(family: str, how: str) -> None:
    zero = zero_of(family)
    table = {"x": [1, zero, None, None], "w": list("uvuv"), "y": list("aabb")}
    asked = {"x": [zero, zero if how == "map" else 1, None], "w": [None] * 3}
    posterior = answers(table, {"x": family}, how=how, rows=asked)
    assert posterior[2] == pytest.approx([0.5, 0.5])
    if how not in ("map", "gibbs"):  # a mode may be zero, and a draw far out
        assert ((posterior > 0) & (posterior < 1))[:2].all()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_column_may_have_no_value_at_all(family: str, how: str) -> None:
    table = {"x": [None] * 4, "w": list("uvuv"), "y": list("aabb")}
    answers(table, {"x": family, "w": "categorical"}, how=how)
    asked = {"categorical": "1", "poisson": int(how != "map")}.get(family, 1)  # a mode may be zero
    answers(table, {"x": family, "w": "categorical"}, how=how, rows={"x": [asked, None], "w": ["u", None]})


@pytest.mark.parametrize("family", FAMILIES)
def test_alpha_of_zero_gives_probabilities(family: str) -> None:
    zero = zero_of(family)
    answers({"x": [1, 1, zero, zero], "y": list("aabb")}, {"x": family}, alpha=0)


def test_a_zero_weight_outlier_moves_nothing() -> None:
    """scikit-learn's variance went from 0.25 to 1.6e8."""
    x, y = [1.0, 2.0, 5.0, 6.0, 1e6], list("aabba")
    plain = bb.count({"x": x[:4], "y": y[:4]}, "y")
    weighted = bb.count({"x": x, "y": y}, "y", weights=[1, 1, 1, 1, 0], schema=plain.schema)
    assert weighted == plain
    assert np.array_equal(bb.estimate(weighted).posterior({"x": x}), bb.estimate(plain).posterior({"x": x}))


def test_zero_weight_rows_may_hold_anything_that_is_a_number() -> None:
    tally = bb.count({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "c"]}, "y", weights=[1, 1, 0])
    assert tally.classes == ("a", "b")


# Very large, very small


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-9, 1e9, 1e150, 1e300])
@pytest.mark.parametrize("how", ["mle", "mean", "predictive", "gibbs"])
@pytest.mark.parametrize("family", NUMERIC, ids=str)
def test_the_scale_of_a_column_makes_no_difference(family: Any, how: str, scale: float) -> None:
    x, y = np.array([1.0, 1.5, 2.25, 6.0, 6.5, 7.75]), list("aaabbb")
    rows = np.array([1.25, 4.0, 6.75])
    plain = answers({"x": x, "y": y}, {"x": family}, {"x": rows}, how=how)
    factor = 2.0 ** round(np.log2(scale))
    scaled = answers({"x": x * factor, "y": y}, {"x": family}, {"x": rows * factor}, how=how)
    coarser = "kernel" in str(family) and scale == 1e-300  # bins of less than 2**-1000 there are none
    np.testing.assert_allclose(scaled, plain, rtol=1e-9, atol=1e-8 if coarser else 1e-12)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([-1.7e308, -1e300, 1e300, 1.7e308], id="wide"),
        pytest.param([LARGEST, -LARGEST] * 4, id="both ends"),
        pytest.param([LARGEST] * 4, id="one end"),
    ],
)
@pytest.mark.parametrize("family", NUMERIC, ids=str)
def test_a_column_may_span_everything_a_double_can_hold(family: Any, values: list[float]) -> None:
    """It is counted, scored, drawn from, explained and drawn on a sheet."""
    table = {"x": values, "y": ["aabb"[k % 4] for k in range(len(values))]}
    answers(table, {"x": family})
    model = bb.estimate(bb.count(table, "y", features={"x": family}))
    assert not np.isnan(model.sample(20, seed=0)["x"]).any()
    assert np.isfinite(model.explain({"x": values[0]}).decibans)
    assert np.isfinite(plots.NomogramDisplay.of(model, "a").scales["x"].decibans).all()


@pytest.mark.parametrize("family", NUMERIC, ids=str)
def test_the_smallest_doubles_are_numbers_too(family: Any) -> None:
    answers({"x": [5e-324, 1e-323, 2e-320, 0.0], "y": list("aabb")}, {"x": family})


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("family", REAL, ids=str)
def test_far_values_are_finite_when_predicting(family: Any, how: str) -> None:
    model = bb.estimate(bb.count({"x": [1.0, 2.0, 5.0, 7.0], "y": list("aabb")}, "y", features={"x": family}), how=how)  # type: ignore[arg-type]
    rows = {"x": [1e300, -1e300, 1.7e308, 5e-324, 1e12]}
    joint = model.log_joint(rows)
    assert not np.isnan(joint).any()
    assert not np.isposinf(joint).any()
    if how != "mle" and how != "map":
        assert np.isfinite(joint).all()
        posterior = model.posterior(rows)
        assert np.isfinite(posterior).all()


@pytest.mark.parametrize("family", ["histogram", "kernel_density", "gaussian"])
def test_a_far_value_meets_a_tiny_column_without_overflow(family: str) -> None:
    model = bb.estimate(bb.count({"x": [1e-300, 2e-300, 5e-300], "y": list("aab")}, "y", features={"x": family}))
    assert np.isfinite(model.log_joint({"x": [1e300, -1e300, 1.0]})).all()
    assert np.isfinite(model.posterior({"x": [1e300, -1e300, 1.0]})).all()


def test_a_prior_in_the_columns_unit_meets_a_tiny_column() -> None:
    prior = bb.NormalInverseGamma(1, 1, 0.0, 1.0)
    model = bb.estimate(
        bb.count({"x": [1e-300, 2e-300, 5e-300], "y": list("aab")}, "y", features={"x": bb.Gaussian(prior=prior)})
    )
    assert np.isfinite(model.log_joint({"x": [1e-300]})).all()


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("family", REAL, ids=str)
def test_infinity_raises_with_its_row_and_column(family: Any, value: float) -> None:
    table = {"w": list("uvw"), "x": [1.0, 2.0, value], "y": list("aba")}
    with pytest.raises(BadValue, match=r"row 2 of column 'x' is infinite"):
        bb.count(table, "y", features={"x": family})
    model = bb.estimate(bb.count({"w": list("uv"), "x": [1.0, 2.0], "y": list("ab")}, "y", features={"x": family}))
    with pytest.raises(BadValue, match=r"row 1 of column 'x' is infinite"):
        model.predict({"w": list("uv"), "x": [1.0, value]})


def test_infinity_is_above_every_threshold() -> None:
    model = bb.estimate(
        bb.count({"x": [1.0, np.inf, -np.inf], "y": list("aab")}, "y", features=bb.Bernoulli(threshold=5))
    )
    assert model.likelihood("x", np.inf) == pytest.approx({"a": 2 / 4, "b": 1 / 3})


def test_the_row_of_a_bad_value_is_counted_over_all_batches() -> None:
    batches = [{"x": [1.0, 2.0], "y": ["a", "b"]}, {"x": [3.0, np.inf], "y": ["a", "b"]}]
    with pytest.raises(BadValue, match="row 3 of column 'x'"):
        bb.count(batches, "y")
    model = bb.estimate(bb.count(batches[0], "y"))
    with pytest.raises(BadValue, match="row 3 of column 'x'"):
        model.predict([{"x": batch["x"]} for batch in batches])


def test_bad_values_of_rows_without_a_class_do_not_stop_the_count() -> None:
    tally = bb.count({"x": [1.0, np.inf, 2.0], "y": ["a", None, "b"]}, "y", features={"x": "gaussian"})
    assert tally.n_rows == 2


# An outlier learned and forgotten


@pytest.mark.parametrize("outlier", [1e6, 1e9, 1e12, -1e12])
def test_an_outlier_forgotten_leaves_the_variance_as_it_was(outlier: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(5.0, 1.0, 1000)
    clean = bb.count({"x": x, "y": ["a"] * 1000}, "y", features="gaussian")
    one = clean.count({"x": [outlier], "y": ["a"]})
    again = clean + one - one
    assert by_shape.moments(again).spread[0, 0] == pytest.approx(by_shape.moments(clean).spread[0, 0], rel=1e-9)
    unit = clean.schema.features[0].unit
    assert by_shape.moments(again).spread[0, 0] / 1000 * unit**2 == pytest.approx(np.var(x), rel=1e-9)
    rows = {"x": np.linspace(0, 10, 11)}
    np.testing.assert_allclose(bb.estimate(again).log_joint(rows), bb.estimate(clean).log_joint(rows), rtol=1e-9)


def test_a_thousand_outliers_may_come_and_go() -> None:
    rng = np.random.default_rng(1)
    x, far = rng.normal(0, 1, 500), rng.normal(0, 1e12, 1000)
    clean = bb.count({"x": x, "y": ["a"] * 500}, "y", features="gaussian")
    both = clean.count({"x": np.concatenate([far[:600], x, far[600:]]), "y": ["a"] * 1500})
    left = both - clean.count({"x": far, "y": ["a"] * 1000})
    assert left == clean
    assert by_shape.moments(left).spread[0, 0] == pytest.approx(by_shape.moments(clean).spread[0, 0], rel=1e-9)


def test_a_column_far_from_zero_keeps_its_variance() -> None:
    x = 1e9 + np.random.default_rng(2).normal(0, 1, 1000)
    tally = bb.count({"x": x, "y": ["a"] * 1000}, "y", features="gaussian")
    assert by_shape.moments(tally).spread[0, 0] / 1000 * tally.schema.features[0].unit ** 2 == pytest.approx(
        np.var(x), rel=1e-9
    )


def test_the_first_rows_may_lie_far_from_the_rest() -> None:
    """The schema's origin and unit are settled by them; the answers must not suffer."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(0, 1, 2000), np.repeat(["a", "b"], 1000)
    x[1000:] += 2
    first = bb.count({"x": [1e6, 1e6 + 1], "y": ["a", "b"]}, "y", features="gaussian")
    tally = first.count({"x": x, "y": y})
    plain = bb.count({"x": x, "y": y}, "y", features="gaussian")
    rows = {"x": np.linspace(-3, 5, 9)}
    np.testing.assert_allclose(bb.estimate(tally).posterior(rows), bb.estimate(plain).posterior(rows), rtol=1e-6)


def test_a_histogram_with_a_given_width_bears_an_outlier() -> None:
    table = {"x": [0.0, 1.0, 1e12], "y": list("aab")}
    model = bb.estimate(bb.count(table, "y", features={"x": bb.Histogram(start=-0.5, width=0.25)}))
    assert np.isfinite(model.log_joint({"x": [0.0, 5.0, 1e12, 1e13]})).all()


# Very many


def test_ten_thousand_columns() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(40, 10_000)), np.arange(40) % 2
    X[y == 1, :50] += 3
    tally = bb.count(X, target=y)
    model = bb.estimate(tally)
    assert (model.predict(X) == y).all()
    assert tally - tally.count(X[:5], y[:5]) == tally.count(X[5:], y[5:])


@pytest.mark.parametrize("family", ["bernoulli", "categorical", "gaussian", "poisson"])
@pytest.mark.parametrize("how", ["mle", "mean", "predictive"])
def test_two_thousand_features_do_not_underflow(family: str, how: str) -> None:
    rng = np.random.default_rng(5)
    X, y = (rng.random((60, 2000)) < 0.5).astype(int), np.arange(60) % 3
    model = bb.estimate(bb.count(X, target=y, features=family), how=how)  # type: ignore[arg-type]
    posterior = model.posterior(X)
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-12)
    assert (model.log_joint(X).max(axis=1) < -700).all()


def test_a_thousand_classes() -> None:
    y = np.repeat(np.arange(1000), 3)
    x = y * 10.0 + np.tile([-0.5, 0.0, 0.5], 1000)
    model = bb.estimate(bb.count({"x": x, "y": y}, "y", features="gaussian"))
    assert (model.predict({"x": x}) == y).all()


def test_a_billion_rows_by_weight() -> None:
    table = {"x": ["u", "v", "u"], "y": list("aab")}
    tally = bb.count(table, "y", weights=[10**9, 3 * 10**9, 2])
    assert tally.n_rows == 4 * 10**9 + 2
    assert bb.estimate(tally, how="mle").likelihood("x", "u") == {"a": 0.25, "b": 1.0}


def test_tiny_weights_are_weights() -> None:
    table = {"x": [1.0, 2.0, 5.0, 7.0], "y": list("aabb")}
    light = bb.estimate(bb.count(table, "y", weights=[1e-15] * 4))
    plain = bb.estimate(bb.count(table, "y"))
    np.testing.assert_allclose(light.posterior(table), plain.posterior(table), rtol=1e-9)


def test_a_weight_below_half_a_part_is_no_row_and_is_told() -> None:
    table = {"x": [1.0, 2.0, 5.0, 7.0], "y": list("aabb")}
    with pytest.warns(bb.BanburyWarning, match="2 rows weigh less than 5e-19"):
        tally = bb.count(table, "y", weights=[1.0, 1e-200, 1.0, 4e-19])
    assert tally == tally.count({"x": [1.0, 5.0], "y": list("ab")})


def test_a_tally_decayed_to_nothing_says_so() -> None:
    tally = bb.count({"x": [1.0, 2.0, 5.0, 7.0], "y": list("aabb")}, "y")
    for _ in range(1200):
        tally = tally * 0.5
    with pytest.raises(EmptyData):
        bb.estimate(tally)


def test_a_class_decayed_to_nothing_is_never_the_answer() -> None:
    old = bb.count({"x": [1.0, 2.0, 5.0, 7.0], "y": list("aabb")}, "y")
    tally = old
    for _ in range(1200):
        tally = tally * 0.5
    model = bb.estimate(tally + old.count({"x": [5.0, 6.0, 8.0], "y": ["c", "b", "c"]}))
    posterior = model.posterior({"x": [1.0, 6.0]})
    assert np.isfinite(posterior).all()
    assert "a" not in model.predict({"x": [1.0, 6.0]})


def test_the_predictive_answer_needs_no_second_row() -> None:
    model = bb.estimate(bb.count({"x": [1.0, 9.0], "y": ["a", "b"]}, "y"), how="predictive")
    posterior = model.posterior({"x": [1.0, 5.0, 9.0]})
    assert posterior[:, 0] == pytest.approx([1 - posterior[2, 0], 0.5, posterior[2, 0]])
    wanted = stats.t(2, (1e-3 * 5 + 1) / 1.001, np.sqrt((16 + 1e-3 / 1.001 * 16) / 2 * 2.001 / 1.001)).logpdf(3.0)
    assert model.log_joint({"x": [3.0]})[0, 0] == pytest.approx(wanted + np.log(0.5), rel=1e-9)


def test_the_lowest_whole_number_stands_for_a_missing_one() -> None:
    tally = bb.count(np.array([[-(2**63)], [1], [2]]), np.array([0, 0, 1]), features="categorical")
    assert by_shape.counts(tally).keys == ((1, 2),)
    assert bb.count({"x": ["a", "b", "a"]}, np.array([5, 6, -(2**63)])).skipped == 1
