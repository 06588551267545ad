"""The families: their probabilities against the textbook's and SciPy's."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, special, stats
from scipy.special import logsumexp

import banbury as bb
import by_shape
import naive
from banbury import _core
from banbury.errors import BadSetting, BadValue
from banbury.families import FAMILIES, family
from banbury.families.family import HOWS, Feature, in_words
from banbury.families.kernel_density import SHAPES, try_bandwidths


def count(x: Any, y: Any, given: Any) -> bb.Tally:
    return bb.count({"x": x}, target=y, features={"x": given})


def likelihood(tally: bb.Tally, value: Any, **settings: Any) -> dict[Any, float]:
    return bb.estimate(tally, **settings).likelihood("x", value)


def density(tally: bb.Tally, x: Any, **settings: Any) -> np.ndarray:
    """The density of a model with one class."""
    assert len(tally.classes) == 1
    return np.exp(bb.estimate(tally, **settings).log_joint({"x": np.asarray(x)})[:, 0])


def one_class(x: Any, given: Any) -> bb.Tally:
    return count(x, ["only"] * len(x), given)


def test_a_family_is_given_by_name_class_or_instance() -> None:
    for name, kind in FAMILIES.items():
        assert family(name) == family(kind) == family(kind())
    with pytest.raises(BadSetting, match="a family must be one of"):
        family(3)


# Categorical: 3 red and 1 blue in class p, 2 blue in class q


@pytest.fixture
def colours() -> bb.Tally:
    return count(["red", "red", "red", "blue", "blue", "blue"], list("ppppqq"), "categorical")


def test_maximum_likelihood_is_the_share(colours: bb.Tally) -> None:
    assert likelihood(colours, "red", how="mle") == {"p": 3 / 4, "q": 0.0}


def test_mean_with_alpha_one_is_laplace(colours: bb.Tally) -> None:
    assert likelihood(colours, "red") == pytest.approx({"p": 4 / 6, "q": 1 / 4})


def test_any_alpha_is_lidstone(colours: bb.Tally) -> None:
    assert likelihood(colours, "red", alpha=0.5) == pytest.approx({"p": 3.5 / 5, "q": 0.5 / 3})


def test_predictive_of_one_row_is_the_mean(colours: bb.Tally) -> None:
    assert likelihood(colours, "red", how="predictive") == likelihood(colours, "red")


def test_map_has_pseudo_counts_alpha_less_one(colours: bb.Tally) -> None:
    assert likelihood(colours, "red", how="map", alpha=3) == pytest.approx({"p": 5 / 8, "q": 2 / 6})
    assert likelihood(colours, "red", how="map", alpha=1) == likelihood(colours, "red", how="mle")
    assert likelihood(colours, "blue", how="map", alpha=0.5) == pytest.approx({"p": 0.5 / 3, "q": 1.0})


def test_an_unseen_value_gets_what_the_next_new_one_would(colours: bb.Tally) -> None:
    assert likelihood(colours, "green") == pytest.approx({"p": 1 / (4 + 2), "q": 1 / (2 + 2)})
    assert likelihood(colours, "green", alpha=0.5) == pytest.approx({"p": 0.5 / (4 + 1), "q": 0.5 / (2 + 1)})


def test_an_unseen_value_says_nothing_under_maximum_likelihood(colours: bb.Tally) -> None:
    assert likelihood(colours, "green", how="mle") == {"p": 1.0, "q": 1.0}
    assert likelihood(colours, "green", how="map", alpha=1) == {"p": 1.0, "q": 1.0}


def test_declared_values_are_counted_among_the_values() -> None:
    declared = bb.Categorical(values=["red", "blue", "green", "black"])
    tally = count(["red", "red", "red", "blue", "blue", "blue"], list("ppppqq"), declared)
    assert likelihood(tally, "green") == pytest.approx({"p": 1 / 8, "q": 1 / 6})
    assert likelihood(tally, "red") == pytest.approx({"p": 4 / 8, "q": 1 / 6})
    assert likelihood(tally, "green", how="mle") == {"p": 0.0, "q": 0.0}


def test_the_m_estimate_spreads_m_rows_by_p() -> None:
    x, y = ["red", "red", "red", "blue", "blue", "blue"], list("ppppqq")
    given = bb.Categorical(m=10, p={"red": 0.2, "blue": 0.8})
    assert likelihood(count(x, y, given), "red") == pytest.approx({"p": (3 + 2) / 14, "q": 2 / 12})
    assert likelihood(count(x, y, bb.Categorical(m=10)), "red") == pytest.approx({"p": (3 + 5) / 14, "q": 5 / 12})


def test_the_m_estimate_may_come_with_the_estimate(colours: bb.Tally) -> None:
    model = bb.estimate(colours, features={"x": bb.Categorical(m=10)})
    assert model.likelihood("x", "red") == pytest.approx({"p": (3 + 5) / 14, "q": 5 / 12})


def test_every_value_may_have_its_own_alpha() -> None:
    given = bb.Categorical(alpha={"red": 3, "blue": 0.5})
    tally = count(["red", "red", "red", "blue", "blue", "blue"], list("ppppqq"), given)
    assert likelihood(tally, "red") == pytest.approx({"p": 6 / 7.5, "q": 3 / 5.5})


def test_an_alpha_for_some_values_only_is_refused() -> None:
    tally = count(["red", "blue"], ["p", "q"], bb.Categorical(alpha={"red": 3}))
    with pytest.raises(BadSetting, match="alpha must be given for every value seen; blue has none"):
        bb.estimate(tally)


def test_alpha_of_zero_is_as_good_as_none_but_makes_nothing_impossible(colours: bb.Tally) -> None:
    found = likelihood(colours, "red", alpha=0)
    assert found["p"] == pytest.approx(3 / 4)
    assert 0 < found["q"] < 1e-9


def test_missing_as_a_category_has_a_probability_of_its_own() -> None:
    tally = count(["red", None, "red", None, None, "blue"], list("pppqqq"), bb.Categorical(missing="category"))
    assert likelihood(tally, None) == pytest.approx({"p": 2 / 6, "q": 3 / 6})
    skipped = count(["red", None, "red", None, None, "blue"], list("pppqqq"), "categorical")
    assert likelihood(skipped, None) == {"p": 1.0, "q": 1.0}


def test_missing_never_seen_as_a_category_is_an_unseen_value() -> None:
    tally = count(["red", "blue"], ["p", "q"], bb.Categorical(missing="category"))
    assert likelihood(tally, None) == pytest.approx({"p": 1 / 3, "q": 1 / 3})


def test_a_class_without_a_value_gets_equal_shares() -> None:
    tally = count(["red", "blue", None], ["p", "p", "q"], "categorical")
    for how in ("mle", "map", "mean"):
        assert likelihood(tally, "red", how=how)["q"] == pytest.approx(0.5)


# Bernoulli


def test_beta_prior_counts_yes_and_no() -> None:
    tally = count([True, True, False, False, False], list("ppppq"), bb.Bernoulli(alpha=3, beta=2))
    assert likelihood(tally, True) == pytest.approx({"p": (2 + 3) / (4 + 5), "q": 3 / 6})
    assert likelihood(tally, True, how="map") == pytest.approx({"p": (2 + 2) / (4 + 3), "q": 2 / 4})
    assert likelihood(tally, False, how="map") == pytest.approx({"p": 3 / 7, "q": 2 / 4})
    assert likelihood(tally, True, how="mle") == {"p": 0.5, "q": 0.0}


def test_bernoulli_takes_an_m_estimate() -> None:
    tally = count([1, 1, 0, 0], list("ppqq"), bb.Bernoulli(m=4, p=0.25))
    assert likelihood(tally, 1) == pytest.approx({"p": 3 / 6, "q": 1 / 6})


def test_no_is_evidence_too() -> None:
    tally = count([1, 1, 0, 0], list("ppqq"), "bernoulli")
    assert bb.estimate(tally).predict({"x": [0, 1]}).tolist() == ["q", "p"]


def test_a_threshold_says_where_yes_begins() -> None:
    tally = count([0.2, 0.7, 0.5, 3.0], list("ppqq"), bb.Bernoulli(threshold=0.5))
    assert by_shape.counts(tally).cells.value.tolist() == [[1, 1], [1, 1]]
    assert likelihood(tally, 0.5, how="mle") == {"p": 0.5, "q": 0.5}


def test_a_word_may_mean_yes() -> None:
    tally = count(["ja", "nein", "ja", "vielleicht"], list("ppqq"), bb.Bernoulli(yes="ja"))
    assert by_shape.counts(tally).cells.value.tolist() == [[1, 1], [1, 1]]
    assert likelihood(tally, "never met", how="mle") == {"p": 0.5, "q": 0.5}


@pytest.mark.parametrize("value", [2, 0.5, -1])
def test_bernoulli_refuses_counts(value: float) -> None:
    with pytest.raises(
        BadValue, match=rf"row 2 of column 'x' is {value:g}, but a Bernoulli column can contain only 0 and 1"
    ):
        count([0, 1, value], list("pqp"), "bernoulli")
    tally = count([0, 1, 1], list("pqp"), "bernoulli")
    with pytest.raises(BadValue, match="row 1 of column 'x'"):
        bb.estimate(tally).predict({"x": [0, value]})


def test_bernoulli_refuses_words_that_mean_nothing() -> None:
    with pytest.raises(BadValue, match=r"column 'x' contains 'ja'.*bb\.Bernoulli\(yes="):
        count(["ja", "nein"], list("pq"), "bernoulli")


# Gaussian


LENGTHS = [1.0, 2.0, 4.5, 3.0, 9.0, 8.0, 8.5]
KINDS = list("aaaabbb")


def test_plain_gaussian_is_the_mean_and_the_variance_over_n() -> None:
    tally = count(LENGTHS, KINDS, "gaussian")
    for how in ("mle", "map", "mean"):
        found = likelihood(tally, 3.3, how=how)
        for label, x in (("a", LENGTHS[:4]), ("b", LENGTHS[4:])):
            assert found[label] == pytest.approx(stats.norm(np.mean(x), np.std(x)).pdf(3.3), rel=1e-12)


def test_shared_variance_is_tied_across_classes() -> None:
    tally = count(LENGTHS, KINDS, bb.Gaussian("shared"))
    within = np.array(LENGTHS) - np.repeat([np.mean(LENGTHS[:4]), np.mean(LENGTHS[4:])], [4, 3])
    deviation = np.sqrt((within**2).mean())
    found = likelihood(tally, 3.3)
    for label, x in (("a", LENGTHS[:4]), ("b", LENGTHS[4:])):
        assert found[label] == pytest.approx(stats.norm(np.mean(x), deviation).pdf(3.3), rel=1e-12)


def test_shared_variance_makes_the_boundary_linear() -> None:
    model = bb.estimate(count(LENGTHS, KINDS, bb.Gaussian("shared")))
    odds = np.diff(model.log_joint({"x": np.array([0.0, 1.0, 2.0, 3.0])}), axis=1)[:, 0]
    assert np.diff(odds, 2) == pytest.approx([0.0, 0.0], abs=1e-12)


def test_the_variance_is_at_least_a_billionth_of_the_columns() -> None:
    tally = count([1.0, 1.0, 5.0, 9.0], list("aabb"), "gaussian")
    floor = 1e-9 * np.var([1.0, 1.0, 5.0, 9.0])
    assert likelihood(tally, 1.0)["a"] == pytest.approx(stats.norm(1.0, np.sqrt(floor)).pdf(1.0), rel=1e-9)


def nig(x: list[float], mean: float, variance: float, kappa: float, nu: float) -> tuple[float, float, float, float]:
    """The normal-inverse-gamma posterior, as textbooks write it."""
    n, m = len(x), np.mean(x)
    kappa_n, nu_n = kappa + n, nu + n
    scale = nu * variance + np.sum((np.array(x) - m) ** 2) + kappa * n / kappa_n * (m - mean) ** 2
    return (kappa * mean + n * m) / kappa_n, kappa_n, nu_n, scale / nu_n


def test_predictive_with_a_normal_inverse_gamma_prior_is_student_t() -> None:
    prior = bb.NormalInverseGamma(kappa=2, nu=3, mean=1.5, variance=4)
    found = likelihood(count(LENGTHS, KINDS, bb.Gaussian(prior=prior)), 3.3, how="predictive")
    for label, x in (("a", LENGTHS[:4]), ("b", LENGTHS[4:])):
        mean, kappa, nu, variance = nig(x, 1.5, 4, 2, 3)
        wanted = stats.t(nu, mean, np.sqrt(variance * (kappa + 1) / kappa)).pdf(3.3)
        assert found[label] == pytest.approx(wanted, rel=1e-12)


def test_predictive_without_a_prior_is_student_t_about_the_column() -> None:
    found = likelihood(count(LENGTHS, KINDS, "gaussian"), 3.3, how="predictive")
    for label, x in (("a", LENGTHS[:4]), ("b", LENGTHS[4:])):
        mean, kappa, nu, variance = nig(x, float(np.mean(LENGTHS)), float(np.var(LENGTHS)), 1e-3, 1)
        wanted = stats.t(nu, mean, np.sqrt(variance * (kappa + 1) / kappa)).pdf(3.3)
        assert found[label] == pytest.approx(wanted, rel=1e-12)


def test_predictive_with_shared_variance_pools_the_degrees_of_freedom() -> None:
    prior = bb.NormalInverseGamma(kappa=2, nu=3, mean=1.5, variance=4)
    found = likelihood(count(LENGTHS, KINDS, bb.Gaussian("shared", prior)), 3.3, how="predictive")
    groups = {"a": LENGTHS[:4], "b": LENGTHS[4:]}
    extra = sum(nu * v - 3 * 4 for _, _, nu, v in (nig(x, 1.5, 4, 2, 3) for x in groups.values()))
    for label, x in groups.items():
        mean, kappa, _, _ = nig(x, 1.5, 4, 2, 3)
        wanted = stats.t(10, mean, np.sqrt((12 + extra) / 10 * (kappa + 1) / kappa)).pdf(3.3)
        assert found[label] == pytest.approx(wanted, rel=1e-12)


def test_mean_and_map_with_a_prior_are_those_of_the_posterior() -> None:
    tally = count(LENGTHS, KINDS, bb.Gaussian(prior=bb.NormalInverseGamma(2, 3, 1.5, 4)))
    mean, _, nu, variance = nig(LENGTHS[:4], 1.5, 4, 2, 3)
    for how, expected in (("mean", nu * variance / (nu - 2)), ("map", nu * variance / (nu + 3))):
        wanted = stats.norm(mean, np.sqrt(expected)).pdf(3.3)
        assert likelihood(tally, 3.3, how=how)["a"] == pytest.approx(wanted, rel=1e-12)


def test_a_strong_prior_wins_over_the_rows() -> None:
    strong = count(LENGTHS, KINDS, bb.Gaussian(prior=bb.NormalInverseGamma(1e9, 1e9, 100.0, 1.0)))
    assert likelihood(strong, 100.0)["a"] == pytest.approx(stats.norm.pdf(0), rel=1e-4)


def test_the_prior_may_come_with_the_estimate() -> None:
    prior = bb.NormalInverseGamma(2, 3, 1.5, 4)
    late = bb.estimate(count(LENGTHS, KINDS, "gaussian"), features={"x": bb.Gaussian(prior=prior)})
    early = bb.estimate(count(LENGTHS, KINDS, bb.Gaussian(prior=prior)))
    assert late.likelihood("x", 3.3) == early.likelihood("x", 3.3)


# Poisson


CALLS = [2, 0, 3, 9, 11]
DAYS = list("aaabb")


def test_poisson_maximum_likelihood_is_the_mean() -> None:
    found = likelihood(count(CALLS, DAYS, "poisson"), 4, how="mle")
    assert found == pytest.approx({"a": stats.poisson(5 / 3).pmf(4), "b": stats.poisson(10).pmf(4)}, rel=1e-12)


def test_poisson_mean_and_map_have_a_pseudo_row_at_the_columns_mean() -> None:
    tally = count(CALLS, DAYS, "poisson")
    wanted = {"a": stats.poisson((5 + 5) / 4).pmf(4), "b": stats.poisson((20 + 5) / 3).pmf(4)}
    assert likelihood(tally, 4) == pytest.approx(wanted, rel=1e-12)
    wanted = {"a": stats.poisson((5 + 5 - 1) / 4).pmf(4), "b": stats.poisson((20 + 5 - 1) / 3).pmf(4)}
    assert likelihood(tally, 4, how="map") == pytest.approx(wanted, rel=1e-12)


def test_poisson_predictive_is_negative_binomial() -> None:
    tally = count(CALLS, DAYS, bb.Poisson(prior_count=1.5, prior_rows=0.5))
    for x in (0, 4, 100):
        found = likelihood(tally, x, how="predictive")
        for label, events, rows in (("a", 6.5, 3.5), ("b", 21.5, 2.5)):
            assert found[label] == pytest.approx(stats.nbinom(events, rows / (rows + 1)).pmf(x), rel=1e-10)


def test_large_counts_keep_their_digits() -> None:
    counts = [1_000_000, 1_001_000, 999_000]
    tally = one_class(counts, "poisson")
    assert density(tally, [1_000_100], how="mle")[0] == pytest.approx(stats.poisson(1e6).pmf(1_000_100), rel=1e-8)


def test_a_column_of_zeros_does_not_make_other_counts_impossible() -> None:
    tally = count([0, 0, 0, 0], list("aabb"), "poisson")
    assert np.isfinite(bb.estimate(tally).log_joint({"x": [0, 3]})).all()


POSITIVE = np.array([0.3, 0.9, 1.1, 2.5, 4.0, 7.5, 0.2])


def positive(family: Any, how: Any, x: Any = POSITIVE, points: Any = (0.1, 1.0, 30.0)) -> Any:
    """Log densities of one class at some points."""
    return bb.estimate(bb.count({"x": x}, ["only"] * len(x), features={"x": family}), how=how).log_joint(
        {"x": list(points)}
    )[:, 0]


def test_exponential_distributions_are_scipys() -> None:
    points, n, mean = (0.1, 1.0, 30.0), len(POSITIVE), POSITIVE.mean()
    np.testing.assert_allclose(positive("exponential", "mle"), stats.expon.logpdf(points, scale=mean), rtol=1e-12)
    scale, shape = POSITIVE.sum() + mean, n + 1.0
    np.testing.assert_allclose(
        positive("exponential", "mean"), stats.expon.logpdf(points, scale=scale / shape), rtol=1e-12
    )
    np.testing.assert_allclose(
        positive("exponential", "map"), stats.expon.logpdf(points, scale=scale / (shape - 1.0)), rtol=1e-12
    )
    lomax = stats.lomax.logpdf(points, shape, scale=scale)
    np.testing.assert_allclose(positive("exponential", "predictive"), lomax, rtol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_gamma_distributions_are_scipys(unit: float) -> None:
    points = np.array([0.1, 1.0, 30.0]) * unit
    x = POSITIVE * unit
    shape, _, scale = stats.gamma.fit(x, floc=0)
    np.testing.assert_allclose(
        positive("gamma", "mle", x, points), stats.gamma.logpdf(points, shape, scale=scale), rtol=1e-6
    )
    np.testing.assert_allclose(
        positive("gamma", "map", x, points), stats.gamma.logpdf(points, shape, scale=scale), rtol=1e-6
    )  # one row more at the average changes neither
    a, b = shape * (len(x) + 1) + 1, x.sum() + x.mean()
    compound = stats.betaprime.logpdf(points, shape, a, scale=b)
    np.testing.assert_allclose(positive("gamma", "predictive", x, points), compound, rtol=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_log_normal_distributions_are_scipys(unit: float) -> None:
    points, x = np.array([0.1, 1.0, 30.0]) * unit, POSITIVE * unit
    logs = np.log(x)
    deviation, scale = logs.std(), np.exp(logs.mean())
    expected = stats.lognorm.logpdf(points, deviation, scale=scale)
    np.testing.assert_allclose(positive("log_normal", "mle", x, points), expected, rtol=1e-9)
    model = bb.estimate(bb.count({"x": x}, ["only"] * len(x), features={"x": "log_normal"}))
    mean, spread = model.parameters[0].spread(0)  # type: ignore[attr-defined]
    scipys = stats.lognorm(deviation, scale=scale)
    np.testing.assert_allclose([mean[0], spread[0]], [scipys.mean(), scipys.std()])
    prior = bb.NormalInverseGamma(kappa=2, nu=3, mean=1.5, variance=4)
    of_logarithms = positive(bb.Gaussian(prior=prior), "predictive", logs, np.log(points))
    found = positive(bb.LogNormal(prior), "predictive", x, points)
    np.testing.assert_allclose(found, of_logarithms - np.log(points), rtol=1e-9)


def test_a_tally_of_gamma_columns_is_one_of_log_normal_columns() -> None:
    tally = bb.count({"x": POSITIVE}, ["only"] * len(POSITIVE), features={"x": "gamma"})
    again = bb.count({"x": POSITIVE}, ["only"] * len(POSITIVE), features={"x": "log_normal"})
    assert bb.estimate(tally, features={"x": "log_normal"}).log_joint({"x": [2.0]}) == bb.estimate(again).log_joint(
        {"x": [2.0]}
    )


def test_gamma_draws_are_about_its_mode() -> None:
    rng = np.random.default_rng(2)
    tally = bb.count({"x": rng.gamma(5.0, 2.0, 2000)}, ["only"] * 2000, features={"x": "gamma"})
    drawn = [bb.estimate(tally, how="gibbs", seed=seed).parameters[0] for seed in range(200)]
    shapes = np.array([each.shape[0, 0] for each in drawn])  # type: ignore[attr-defined]
    mode = bb.estimate(tally, how="map").parameters[0].shape[0, 0]  # type: ignore[attr-defined]
    expected = (1.0 / (2001 * (special.polygamma(1, mode) - 1.0 / mode))) ** 0.5  # the inverse of Fisher's information
    assert shapes.mean() == pytest.approx(mode, abs=4 * expected / 200**0.5)
    assert shapes.std() == pytest.approx(expected, rel=0.2)


def test_narrow_gammas_keep_their_digits() -> None:
    """Of 10⁸ terms that cancel nothing is lost: about a mean it is normal."""
    rng = np.random.default_rng(0)
    x = 1000.0 + rng.normal(size=500)
    found = positive("gamma", "mle", x, [999.0, 1000.0, 1002.5])
    near = stats.norm.logpdf([999.0, 1000.0, 1002.5], x.mean(), x.std())
    np.testing.assert_allclose(found, near, atol=0.02)
    assert np.isfinite(positive("gamma", "mle", np.full(20, 3.0))).all()


@pytest.mark.parametrize("family, value, words", [
    ("exponential", -0.5, "an exponential column can contain only numbers of at least 0"),
    ("gamma", 0.0, "a gamma column can contain only numbers above 0"),
    ("gamma", -2.0, "a gamma column can contain only numbers above 0"),
    ("log_normal", 0.0, "a log_normal column can contain only numbers above 0"),
])  # fmt: skip
def test_numbers_that_are_too_small_are_refused(family: str, value: float, words: str) -> None:
    with pytest.raises(bb.BanburyError, match=words):
        bb.count({"x": [1.0, value]}, ["a", "b"], features={"x": family})
    model = bb.estimate(bb.count({"x": [1.0, 2.0]}, ["a", "b"], features={"x": family}))
    with pytest.raises(bb.BanburyError, match=words):
        model.predict({"x": [value]})


@pytest.mark.parametrize("value", [-1, 0.5, 2.5e16])
def test_poisson_refuses_what_is_no_count(value: float) -> None:
    with pytest.raises(
        BadValue, match=r"row 1 of column 'x' is .*, but a Poisson column can contain only non-negative whole numbers"
    ):
        count([1, value], list("ab"), "poisson")
    with pytest.raises(BadValue, match="row 2 of column 'x' is "):
        bb.estimate(count(CALLS, DAYS, "poisson")).predict({"x": [1, 2, value]})


def test_the_row_of_a_bad_count_is_counted_over_all_batches() -> None:
    model = bb.estimate(count(CALLS, DAYS, "poisson"))
    with pytest.raises(BadValue, match="row 4 of column 'x' is -1"):
        model.predict([{"x": [1, 2, 3]}, {"x": [4, -1]}])


# Histogram


AGES = [3.0, 4.0, 12.0, 13.0, 14.0]
SCHOOLS = ["none", "none", "high", "high", "high"]
FIVES = bb.Histogram(start=0, width=5)


def test_a_histogram_is_the_share_of_each_bin_over_its_width() -> None:
    tally = count(AGES, SCHOOLS, FIVES)
    assert by_shape.counts(tally).keys == ((0, 2),)
    assert likelihood(tally, 2.0, how="mle") == pytest.approx({"none": 1 / 5, "high": 0.0})
    # Bins -1 to 3: the occupied ones from 0 to 2, and one more on each side.
    assert likelihood(tally, 2.0) == pytest.approx({"none": 3 / 7 / 5, "high": 1 / 8 / 5})
    assert likelihood(tally, 7.0, alpha=0.5) == pytest.approx({"none": 0.5 / 4.5 / 5, "high": 0.5 / 5.5 / 5})


def test_beyond_the_outer_bins_the_density_halves_from_bin_to_bin() -> None:
    tally = count(AGES, SCHOOLS, FIVES)
    outer = likelihood(tally, 16.0)["none"]
    assert outer == pytest.approx(1 / 7 / 5 / 2)
    for beyond in range(1, 5):
        assert likelihood(tally, 16.0 + 5 * beyond)["none"] == pytest.approx(outer / 2**beyond)
        assert likelihood(tally, -1.0 - 5 * beyond)["none"] == pytest.approx(outer / 2**beyond)


def test_a_histogram_with_its_tails_sums_to_one_exactly() -> None:
    tally = one_class(AGES, FIVES)
    middles = np.arange(-100, 100) * 5 + 2.5
    assert (density(tally, middles) * 5).sum() == pytest.approx(1.0, abs=1e-14)


def test_bins_may_have_any_start_and_width() -> None:
    x = [round(0.1 * i, 1) for i in range(-50, 51)]
    tally = one_class(x, bb.Histogram(start=0.1, width=0.1))
    assert (density(tally, x, how="mle") > 0).all()


@pytest.mark.parametrize("width", [0.1, 0.3, 1 / 3, 0.7, 1e-3, 1e3])
def test_a_value_is_scored_in_the_bin_it_was_counted_in(width: float) -> None:
    x = np.round(np.arange(-300, 300) * width, 9)
    tally = one_class(x, bb.Histogram(start=0.05, width=width))
    wanted = np.array([dict(zip(*np.unique(np.floor((x - 0.05) / width), return_counts=True), strict=True))[b]
                       for b in np.floor((x - 0.05) / width)]) / len(x) / width  # fmt: skip
    np.testing.assert_allclose(density(tally, x, how="mle"), wanted, rtol=1e-12)


def test_the_most_bins_there_may_be_can_be_said() -> None:
    x = np.random.default_rng(0).normal(size=1000)
    for bins in (2, 7, 50):
        width = bb.estimate(one_class(x, bb.Histogram(bins=bins))).parameters[0].axes[0].width  # type: ignore[attr-defined]
        assert bins / 2 - 1 <= (np.floor(x.max() / width) - np.floor(x.min() / width)) + 1 <= bins


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fails what would otherwise never end."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_one_bin_is_not_sought_for_ever() -> None:
    """Bins begin at 0, so no doubling joins -1 and 1."""
    tally = one_class([-1.0, 1.0, 2.0], bb.Histogram(bins=1))
    with within(5):
        assert (density(tally, [-1.0, 1.0], how="mle") > 0).all()


def test_automatic_bins_have_about_the_width_of_freedman_and_diaconis() -> None:
    x = np.random.default_rng(0).normal(size=10_000)
    wanted = 2 * stats.iqr(x) / len(x) ** (1 / 3)
    model = bb.estimate(one_class(x, "histogram"))
    width = model.parameters[0].axes[0].width  # type: ignore[attr-defined]
    assert wanted / 1.5 <= width <= wanted * 1.5


# Histogram, cut by minimum description length


MDL = bb.Histogram(bins="mdl")
PUBLISHED = {  # what Fayyad and Irani's method finds on iris
    "sepal length (cm)": [5.55, 6.15],
    "sepal width (cm)": [2.95, 3.35],
    "petal length (cm)": [2.45, 4.75],
    "petal width (cm)": [0.8, 1.75],
}


@pytest.fixture(scope="module")
def iris() -> tuple[Any, NDArray[Any]]:
    from sklearn.datasets import load_iris

    found = load_iris(as_frame=True)
    return found.data, found.target_names[found.target]


@pytest.mark.parametrize("column", PUBLISHED)
def test_the_cuts_of_iris_are_the_published_ones_within_a_fine_bin(column: str, iris: Any) -> None:
    frame, y = iris
    values = sorted(set(frame[column]))
    rows = [(v, dict(zip(*np.unique(y[frame[column] == v], return_counts=True), strict=True))) for v in values]
    by_hand = [(a + b) / 2 for a, b in naive.fayyad_irani(rows)]
    assert by_hand == pytest.approx(PUBLISHED[column])
    model = bb.estimate(bb.count(frame, target=y, features=MDL))
    assert model.cuts(column) == pytest.approx(by_hand, abs=model.schema[column].unit)


def test_a_fold_is_cut_by_the_rows_of_the_others_alone(iris: Any) -> None:
    """Scores are those of refitting; and the cuts of refitting differ from fold to fold, so that peeking would show."""
    frame, y = iris
    folds = np.random.default_rng(0).permutation(len(y)) % 5
    found = bb.cross_validate(frame, target=y, folds=folds, features=MDL)
    schema = bb.Schema.infer(frame, features=MDL)
    cuts = set()
    for fold in range(5):
        model = bb.estimate(bb.count(frame[folds != fold], target=y[folds != fold], schema=schema))
        np.testing.assert_array_equal(found.posteriors[folds == fold], model.posterior(frame[folds == fold]))
        cuts.add(tuple(model.cuts("sepal length (cm)")))
    assert len(cuts) > 1


def test_leave_one_out_cuts_anew_without_each_row(iris: Any) -> None:
    frame, y = iris[0].iloc[::5], iris[1][::5]
    found = bb.cross_validate(frame, target=y, folds="loo", features=MDL)
    assert found.notes == ()
    schema = bb.Schema.infer(frame, features=MDL)
    for i in (0, 11, 29):
        rest = np.arange(len(y)) != i
        model = bb.estimate(bb.count(frame[rest], target=y[rest], schema=schema))
        np.testing.assert_array_equal(found.posteriors[i], model.posterior(frame.iloc[[i]])[0])


def test_a_column_without_a_cut_says_nothing_anywhere() -> None:
    tally = count([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 2.0], list("aabbbab"), MDL)
    model = bb.estimate(tally)
    assert model.cuts() == []
    for value in (-1e9, 0.9, 2.0, 3.1, 1e9):
        assert len(set(model.likelihood("x", value).values())) == 1


def test_one_class_leaves_one_bin_over_all_values() -> None:
    tally = one_class(AGES, bb.Histogram(start=0, width=5, bins="mdl"))
    assert bb.estimate(tally).cuts("x") == []
    # Bins 0 to 2, one more on each side, and beyond each of those as much again.
    assert density(tally, [-4.0, 3.0, 19.0]) == pytest.approx(1 / 7 / 5)
    assert density(tally, [-9.0, 24.0]) == pytest.approx(1 / 7 / 5 / 2)


@pytest.mark.parametrize("how", ["mle", "map", "mean", "gibbs"])
def test_densities_between_cuts_sum_to_one(how: str, iris: Any) -> None:
    frame, y = iris
    column = "petal length (cm)"
    model = bb.estimate(bb.count(frame, target=y, features=MDL), how=how)  # type: ignore[arg-type]
    width = model.schema[column].unit
    middles = (np.arange(-500, 1000) + 0.5) * width
    found = np.exp(model.log_likelihood({column: middles}, column))
    np.testing.assert_allclose((found * width).sum(axis=0), 1.0, rtol=1e-12)
    inside = (middles > model.cuts(column)[0]) & (middles < model.cuts(column)[1])
    assert len(np.unique(found[inside], axis=0)) == 1


def test_of_equally_good_cuts_the_lower_is_taken() -> None:
    """Before and after the mixed bin: by symmetry both leave the same entropy, and neither side is cut again."""
    assert _core.cuts_of(np.array([[12.0, 0.0], [2.0, 2.0], [0.0, 12.0]])) == [1]
    assert _core.cuts_of(np.array([[0.0, 12.0], [2.0, 2.0], [12.0, 0.0]])) == [1]


@hypothesis.given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=9))
def test_cuts_are_those_of_the_slow_twin(cells: list[list[int]]) -> None:
    cells = [row for row in cells if any(row)]
    rows = [(i, {c: n for c, n in enumerate(row) if n}) for i, row in enumerate(cells)]
    wanted = [right for _, right in naive.fayyad_irani(rows)]
    assert _core.cuts_of(np.array(cells, dtype=float).reshape(-1, 3)) == wanted


def test_many_bins_of_many_classes_are_cut_where_the_classes_change() -> None:
    cells = np.zeros((4000, 200))
    cells[np.arange(4000), np.arange(4000) // 20] = 50.0
    assert _core.cuts_of(cells) == list(range(20, 4000, 20))


def test_settings_are_tuned_and_pictures_drawn_of_what_is_cut(iris: Any) -> None:
    frame, y = iris
    tuned = bb.tune(frame, target=y, features=MDL, alpha=[0.1, 1.0], folds=5)
    assert tuned.model.cuts("petal width (cm)") == bb.estimate(bb.count(frame, target=y, features=MDL)).cuts(
        "petal width (cm)"
    )
    drawn = bb.plots.LikelihoodDisplay.from_model(tuned.model, "petal width (cm)", frame, y)
    inside = (np.asarray(drawn.values) > 0.1) & (np.asarray(drawn.values) < 2.5)
    assert len(np.unique(np.round(drawn.likelihood[inside], 12), axis=0)) == 3


def test_a_tally_of_kernels_can_be_cut() -> None:
    tally = count(AGES, SCHOOLS, bb.KernelDensity(start=0, width=1))
    assert bb.estimate(tally, features={"x": MDL}).cuts() == [8.0]
    with pytest.raises(BadSetting, match="feature must be a histogram column"):
        bb.estimate(tally).cuts("x")


def test_the_cuts_of_equal_bins_are_their_edges() -> None:
    assert bb.estimate(count(AGES, SCHOOLS, FIVES)).cuts("x") == [0.0, 5.0, 10.0, 15.0]


def test_a_class_without_a_value_has_equal_bins() -> None:
    tally = count([1.0, 9.0, None], list("aab"), FIVES)
    assert likelihood(tally, 2.0, how="mle")["b"] == pytest.approx(1 / 4 / 5)


# Kernel density


GRID = 2.0**-10
POINTS = (np.random.default_rng(1).integers(-4000, 4000, 200) + 0.5) * GRID  # on the centres of bins


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_normal_kernels_are_scipys(rule: str) -> None:
    tally = one_class(POINTS, bb.KernelDensity(bandwidth=rule, start=0, width=GRID))  # type: ignore[arg-type]
    x = np.linspace(-10, 10, 201)
    wanted = stats.gaussian_kde(POINTS, bw_method=rule).logpdf(x)
    np.testing.assert_allclose(np.log(density(tally, x)), wanted, rtol=1e-10, atol=1e-10)


def test_a_given_bandwidth_is_in_the_columns_own_unit() -> None:
    tally = one_class(POINTS, bb.KernelDensity(bandwidth=0.7, start=0, width=GRID))
    x = np.linspace(-10, 10, 101)
    wanted = stats.norm(POINTS[:, None], 0.7).pdf(x).mean(axis=0)
    np.testing.assert_allclose(density(tally, x), wanted, rtol=1e-10)


def test_whole_weights_are_scipys_repeated_points() -> None:
    points, weights = POINTS[:50], np.random.default_rng(2).integers(1, 4, 50)
    given = bb.KernelDensity(start=0, width=GRID)
    tally = bb.count({"x": points}, ["only"] * 50, features={"x": given}, weights=weights)
    wanted = stats.gaussian_kde(np.repeat(points, weights)).pdf([0.0, 1.0])
    np.testing.assert_allclose(density(tally, [0.0, 1.0]), wanted, rtol=1e-10)


@pytest.mark.parametrize("kernel", list(SHAPES))
def test_kernels_integrate_to_one_and_have_their_deviation(kernel: str) -> None:
    edges = [-8.0, -1.0, -0.5, 0.0, 0.5, 1.0, 8.0]
    parts = list(pairwise(edges))

    def height(u: float) -> float:
        return float(SHAPES[kernel].height(np.array([u]))[0])

    assert sum(integrate.quad(height, a, b)[0] for a, b in parts) == pytest.approx(1.0, abs=1e-9)
    variance = sum(integrate.quad(lambda u: u * u * height(u), a, b)[0] for a, b in parts)
    assert variance == pytest.approx(SHAPES[kernel].deviation ** 2, abs=1e-9)


@pytest.mark.parametrize("kernel", list(SHAPES))
def test_the_density_is_the_mean_of_the_kernels(kernel: str) -> None:
    points, h = POINTS[:30], 0.9
    tally = one_class(points, bb.KernelDensity(kernel, h, start=0, width=GRID))  # type: ignore[arg-type]
    x = np.linspace(-5, 5, 200) + 0.0123
    wanted = SHAPES[kernel].height((x[:, None] - points) / h).mean(axis=1) / h
    if kernel != "normal":
        wanted = (1 - 1e-6) * wanted + 1e-6 * stats.norm(points.mean(), points.std(ddof=1)).pdf(x)
    np.testing.assert_allclose(density(tally, x), wanted, rtol=1e-10)


@pytest.mark.parametrize("kernel", ["box", "triangle", "cosine"])
def test_compact_kernels_make_nothing_impossible(kernel: str) -> None:
    tally = count([1.0, 2.0, 8.0, 9.0], list("aabb"), bb.KernelDensity(kernel))  # type: ignore[arg-type]
    joint = bb.estimate(tally).log_joint({"x": [-50.0, 5.0, 1e9]})
    assert np.isfinite(joint).all()


def test_far_out_the_nearest_kernels_decide() -> None:
    tally = count([1.0, 2.0, 8.0, 9.0], list("aabb"), bb.KernelDensity(bandwidth=1.0))
    model = bb.estimate(tally)
    assert model.predict({"x": [-1e6, 1e6]}).tolist() == ["a", "b"]
    assert np.isfinite(model.log_joint({"x": [-1e300, 1e300]})).all()


def test_bins_of_any_width_serve_kernels_too() -> None:
    tally = one_class([1.05, 2.05, 4.05], bb.KernelDensity(bandwidth=1.0, start=0, width=0.1))
    wanted = stats.norm([1.05, 2.05, 4.05], 1.0).pdf(2.5).mean()
    assert density(tally, [2.5])[0] == pytest.approx(wanted, rel=1e-9)


def test_the_bandwidth_is_at_least_one_bin() -> None:
    tally = one_class([1.0, 2.0], bb.KernelDensity(bandwidth=1e-6, start=0, width=0.5))
    assert density(tally, [1.25])[0] == pytest.approx(stats.norm([1.25, 2.25], 0.5).pdf(1.25).mean())


def test_leave_one_out_finds_a_narrow_bandwidth_for_two_clusters() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(-10, 0.2, 200), rng.normal(10, 0.2, 200)])
    held_out = np.concatenate([rng.normal(-10, 0.2, 200), rng.normal(10, 0.2, 200)])
    scores = {
        rule: np.log(density(one_class(x, bb.KernelDensity(bandwidth=rule)), held_out)).mean()  # type: ignore[arg-type]
        for rule in ("scott", "leave-one-out")
    }
    assert scores["leave-one-out"] > scores["scott"] + 1


def test_leave_one_out_maximises_the_likelihood_of_each_row_under_the_others() -> None:
    points = POINTS[:60]

    def left_out(h: float) -> float:
        heights = stats.norm.pdf((points[:, None] - points) / h) / h
        return float(np.log((heights.sum(axis=1) - np.diag(heights)) / (len(points) - 1)).sum())

    given = bb.KernelDensity(bandwidth="leave-one-out", start=0, width=GRID)
    found = bb.estimate(one_class(points, given)).parameters[0].kernels[0].bandwidth[0] * GRID  # type: ignore[attr-defined]
    best = max(left_out(h) for h in np.geomspace(0.2, 5, 400))
    assert left_out(found) >= best - 0.005


def left_out(given: bb.KernelDensity, tally: bb.Tally) -> tuple[Any, Any]:
    """Bandwidths in bins, and the mean log-likelihood, per bin, of a row under the kernels of the others."""
    (feature,) = tally.schema.features
    found = try_bandwidths(feature._replace(family=given), tally.of(feature.name), 0, 0)
    assert found is not None
    tried, likelihoods = found
    return tried / feature.unit, likelihoods + np.log(feature.unit)


def test_leave_one_out_tries_finer_bandwidths_about_the_best() -> None:
    given = bb.KernelDensity(bandwidth="leave-one-out", start=0, width=GRID)
    tried, likelihoods = left_out(given, one_class(POINTS, given))
    best = int(likelihoods.argmax())
    assert np.all(np.diff(tried) > 0)
    np.testing.assert_allclose(np.diff(np.log2(tried))[best - 1 : best + 1], 1 / 16, rtol=1e-9)


LONELY = np.r_[np.random.default_rng(4).normal(size=80), 40.0, 41.0, -300.0, 1e5]  # far from all others


@pytest.mark.parametrize("kernel", list(SHAPES))
@pytest.mark.parametrize("x", [POINTS, POINTS.round(), LONELY], ids=["fine", "coarse", "lonely"])
def test_the_likelihood_left_out_is_that_of_pairs_of_bins(kernel: str, x: Any) -> None:
    given = bb.KernelDensity(kernel, "leave-one-out", start=0, width=2.0**-8)  # type: ignore[arg-type]
    keys, rows = by_shape.counts(one_class(x, given)).feature(0)
    tried, likelihoods = left_out(given, one_class(x, given))
    cells = {key: Fraction(int(n)) for key, n in zip(keys, rows.value[:, 0], strict=True)}
    for h, found in list(zip(tried.tolist(), likelihoods.tolist(), strict=True))[::3]:
        assert found == pytest.approx(naive.left_out(kernel, cells, h) / len(x), rel=1e-9)


def test_joining_bins_changes_the_likelihood_of_a_wide_bandwidth_by_little() -> None:
    fine, coarse = (bb.KernelDensity(bandwidth="leave-one-out", start=0, width=width) for width in (2.0**-10, 2.0**-6))
    found = {}
    for given in (fine, coarse):
        model = bb.estimate(one_class(POINTS, given))
        found[given] = model.parameters[0].kernels[0].bandwidth[0] * given.width  # type: ignore[attr-defined]
    assert found[fine] == pytest.approx(found[coarse], rel=0.1)


def test_an_outlier_left_out_is_as_unlikely_as_its_neighbours_say() -> None:
    """Others' kernels are not lost beside its own, which is taken out."""
    given = bb.KernelDensity(bandwidth="leave-one-out", start=0, width=0.5)
    tried, likelihoods = left_out(given, one_class([0.0, 1.0, 13.0], given))
    h = tried[0]
    apart = np.array([[1, 13], [1, 12], [13, 12]]) / 0.5
    wanted = np.log(stats.norm.pdf(apart, scale=h).mean(axis=1)).mean()
    assert likelihoods[0] == pytest.approx(wanted, rel=1e-9)


def bins_and_rows(rng: np.random.Generator, n: int) -> Any:
    """Values in a dense middle, a gap and a few far out."""
    return np.concatenate([rng.normal(0, 1, n), rng.normal(7, 0.3, n // 2), rng.standard_cauchy(n // 20)])


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5, 3.0])
def test_many_rows_have_the_densities_that_the_bumps_add_up_to(bandwidth: float) -> None:
    rng = np.random.default_rng(5)
    tally = one_class(bins_and_rows(rng, 2000), bb.KernelDensity(bandwidth=bandwidth, start=0, width=2.0**-6))
    model = bb.estimate(tally)
    bump = model.parameters[0].kernels[0]  # type: ignore[attr-defined]
    x = np.concatenate([np.linspace(-12, 14, 3000), rng.standard_cauchy(500) * 20])
    found = model.log_likelihood({"x": x}, "x")[:, 0]
    logs = np.log(bump.weights[:, 0]) + stats.norm.logpdf(x[:, None], bump.centres[:, 0] * 2.0**-6, bandwidth)
    np.testing.assert_allclose(found, logsumexp(logs, axis=1), rtol=1e-11, atol=1e-11)


def test_a_rows_density_does_not_depend_on_the_other_rows() -> None:
    rng = np.random.default_rng(6)
    model = bb.estimate(one_class(bins_and_rows(rng, 500), bb.KernelDensity(bandwidth=0.2)))
    x = rng.normal(2, 4, 700)
    together = model.log_likelihood({"x": x}, "x")
    for size in (1, 7, 300):
        pieces = [model.log_likelihood({"x": x[i : i + size]}, "x") for i in range(0, len(x), size)]
        assert np.array_equal(np.concatenate(pieces), together)


@hypothesis.given(
    codes=st.lists(st.integers(-60, 60) | st.integers(-(10**6), 10**6), min_size=1, max_size=40),
    bandwidth=st.floats(1.0, 200.0),
    x=st.lists(st.floats(-100, 100) | st.floats(-1e7, 1e7), min_size=1, max_size=20),
)
def test_densities_are_sums_of_bumps_wherever_these_are(codes: list[int], bandwidth: float, x: list[float]) -> None:
    family = bb.KernelDensity(bandwidth=bandwidth, start=0, width=1.0)
    model = bb.estimate(one_class([code + 0.5 for code in codes], family))
    found = model.log_likelihood({"x": x}, "x")[:, 0]
    logs = stats.norm.logpdf(np.array(x)[:, None], np.array(codes) + 0.5, bandwidth) - np.log(len(codes))
    np.testing.assert_allclose(found, logsumexp(logs, axis=1), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("factor", [0.5, 0.25, 1e-3])
@pytest.mark.parametrize("kernel", ["normal", "box"])
def test_bandwidth_does_not_explode_when_weights_are_small(kernel: str, factor: float) -> None:
    tally = one_class([0.0, 1.0, 2.0, 3.0], bb.KernelDensity(kernel))  # type: ignore[arg-type]

    def bandwidth(tally: bb.Tally) -> float:
        return float(bb.estimate(tally).parameters[0].kernels[0].bandwidth[0, 0])  # type: ignore[attr-defined]

    assert bandwidth(tally) <= bandwidth(tally * factor) <= 10 * bandwidth(tally)


# Sampling


RNG = np.random.default_rng(0)
SAMPLED: dict[str, tuple[Any, Any]] = {
    "bernoulli": ("bernoulli", RNG.random(200) < 0.3),
    "bernoulli, yes": (bb.Bernoulli(yes="ja"), np.where(RNG.random(200) < 0.3, "ja", "not ja")),
    "categorical": ("categorical", RNG.choice(["a", "b", "c"], 200, p=[0.2, 0.5, 0.3])),
    "gaussian": ("gaussian", RNG.normal(5, 2, 200)),
    "gaussian, shared": (bb.Gaussian("shared"), RNG.normal(5, 2, 200)),
    "poisson": ("poisson", RNG.poisson(7, 200)),
    "histogram": ("histogram", RNG.gamma(2, 3, 200)),
    "histogram, mdl": (bb.Histogram(bins="mdl"), RNG.gamma(np.where(np.arange(200) % 4 == 0, 2, 9), 3, 200)),
    "histogram, width": (bb.Histogram(start=0, width=0.5), RNG.gamma(2, 3, 200)),
    **{kernel: (bb.KernelDensity(kernel), RNG.gamma(2, 3, 200)) for kernel in SHAPES},  # type: ignore[arg-type]
}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", SAMPLED)
def test_samples_are_distributed_as_the_model_says(name: str, how: str) -> None:
    given, values = SAMPLED[name]
    y = np.where(np.arange(200) % 4 == 0, "p", "q")
    model = bb.estimate(bb.count({"x": values, "y": y}, "y", features={"x": given}), how=how)  # type: ignore[arg-type]
    drawn = model.sample(20_000, seed=1)
    assert list(drawn) == ["x", "y"]
    assert (drawn["y"] == "p").mean() == pytest.approx(0.25, abs=0.02)
    for c, label in enumerate("pq"):
        x = drawn["x"][drawn["y"] == label]
        if x.dtype.kind == "f":
            grid = np.linspace(x.min(), x.max(), 20_001)
            heights = np.exp(model.log_joint({"x": grid})[:, c] - model.log_prior[c])
            wanted = np.cumsum(heights) * (grid[1] - grid[0])
            found = np.searchsorted(np.sort(x), grid, side="right") / len(x)
            assert np.abs(found - wanted).max() < 0.03  # four times what Kolmogorov expects of 5,000 rows
        else:
            for value, n in zip(*np.unique(x, return_counts=True), strict=True):
                assert n / len(x) == pytest.approx(model.likelihood("x", value.item())[label], abs=0.03)


def test_samples_repeat_with_their_seed() -> None:
    model = bb.estimate(count(LENGTHS, KINDS, "gaussian"))
    once, again, other = (model.sample(100, seed=s)["x"] for s in (1, 1, 2))
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)


def test_samples_can_be_counted_under_the_models_own_schema() -> None:
    table = {"w": ["a", "b", "a", "c"], "x": [1.0, 2.0, 3.0, 9.0], "n": [1, 0, 4, 2], "b": [True, False, True, True],
             "y": ["p", "q", "p", "q"]}  # fmt: skip
    tally = bb.count(table, "y", features={"n": "poisson"})
    more = tally.count(bb.estimate(tally).sample(500))
    assert (tally + more).n_rows == 504


def test_gibbs_draws_parameters_anew_for_every_seed() -> None:
    for given, x in (
        (bb.Gaussian(), LENGTHS),
        (bb.Poisson(), [2, 0, 3, 1, 9, 11, 12]),
        (bb.Categorical(), list("ababbab")),
    ):
        tally = count(x, KINDS, given)
        draws = [likelihood(tally, x[0], how="gibbs", seed=seed)["a"] for seed in (0, 0, 1)]
        assert draws[0] == draws[1] != draws[2]


def test_gibbs_draws_average_to_the_posterior_mean() -> None:
    tally = count(["red", "red", "red", "blue", "blue", "blue"], list("ppppqq"), "categorical")
    draws = [likelihood(tally, "red", how="gibbs", seed=seed)["p"] for seed in range(400)]
    assert np.mean(draws) == pytest.approx(4 / 6, abs=0.03)
    assert np.std(draws) == pytest.approx(stats.beta(4, 2).std(), abs=0.03)


# Settings


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: bb.Categorical(alpha=-1), "alpha must be a finite number of at least 0"),
        (lambda: bb.Categorical(alpha=1, m=2), "m must be omitted when alpha is given"),
        (lambda: bb.Categorical(p={"a": 1.0}), "p must be given together with m"),
        (lambda: bb.Categorical(m=1, p={"a": 0.5}), "shares that sum to 1"),
        (lambda: bb.Categorical(values=[]), "values must be a list of at least one value"),
        (lambda: bb.Categorical(missing="drop"), "missing must be one of 'skip', 'category'"),  # type: ignore[arg-type]
        (lambda: bb.Bernoulli(beta=1), "beta must be given together with alpha"),
        (lambda: bb.Bernoulli(threshold=float("nan")), "threshold must be a finite number"),
        (lambda: bb.Bernoulli(threshold=1, yes="a"), "yes must be omitted when a threshold is given"),
        (lambda: bb.Bernoulli(m=1, p=1.5), "p must be a share from 0 to 1"),
        (lambda: bb.Gaussian("common"), "variance must be one of 'per class', 'shared'"),  # type: ignore[arg-type]
        (lambda: bb.NormalInverseGamma(kappa=0), "kappa must be a finite number above 0"),
        (lambda: bb.NormalInverseGamma(variance=-1), "variance must be a finite number above 0"),
        (lambda: bb.Poisson(prior_rows=0), "prior_rows must be a finite number above 0"),
        (lambda: bb.Histogram(start=1), "start and width must be given together"),
        (lambda: bb.Histogram(start=0, width=0), "width must be a finite number above 0"),
        (lambda: bb.Histogram(bins=0), "bins must be 'auto', 'mdl' or a whole number of at least 1"),
        (lambda: bb.Histogram(bins=True), "bins must be 'auto', 'mdl' or a whole number of at least 1"),
        (lambda: bb.Histogram(bins="MDL"), "bins must be 'auto', 'mdl' or a whole number of at least 1"),  # type: ignore[arg-type]
        (lambda: bb.Histogram(bins=["mdl"]), "bins must be 'auto', 'mdl' or a whole number of at least 1"),  # type: ignore[arg-type]
        (lambda: bb.KernelDensity("gauss"), "kernel must be one of 'normal'"),  # type: ignore[arg-type]
        (lambda: bb.KernelDensity(bandwidth="scot"), "Did you mean 'scott'"),  # type: ignore[arg-type]
        (lambda: bb.KernelDensity(bandwidth=0), "bandwidth must be a finite number above 0"),
    ],
)
def test_a_setting_outside_what_it_may_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(BadSetting) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize("d", [1, 2])
def test_the_map_of_a_variance_that_classes_share_is_the_joint_mode(d: int) -> None:
    """Of the means of all classes and the variance together: none near it is more probable, given the rows."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(9, d)), np.repeat([0, 1, 2], 3)
    prior = bb.NormalInverseGamma(kappa=1.0, nu=3.0, mean=0.0, variance=1.0)
    columns = dict(zip("ab", x.T, strict=False))
    tied = bb.Gaussian(prior=prior, covariance="tied")
    features: Any = {"a": bb.Gaussian("shared", prior)} if d == 1 else {("a", "b"): tied}
    model = bb.estimate(bb.count({**columns, "y": y}, target="y", features=features), how="map")

    def log_posterior(means: NDArray[Any], covariance: NDArray[Any]) -> float:
        inverse, volume = np.linalg.inv(covariance), float(np.linalg.slogdet(covariance)[1])
        apart = np.concatenate([means, x - means[y]])  # κ = 1: as if each class had one more row, at 0
        squares = float(np.einsum("ri,ij,rj->", apart, inverse, apart) + 3.0 * np.trace(inverse))
        return -0.5 * (squares + (3.0 + 2.0 * d + 3 + 9) * volume)

    means = np.array([x[y == c].sum(axis=0) / 4.0 for c in range(3)])
    apart = np.concatenate([means, x - means[y]])
    best = (apart.T @ apart + 3.0 * np.eye(d)) / (3.0 + 2.0 * d + 3 + 9)
    for _ in range(50):
        factor = np.eye(d) + 0.01 * rng.normal(size=(d, d))
        other = means + 0.01 * rng.normal(size=means.shape), factor @ best @ factor.T
        assert log_posterior(*other) < log_posterior(means, best)
    found = model.log_joint(columns) - model.log_prior
    expected = [stats.multivariate_normal(mean, best).logpdf(x) for mean in means]
    np.testing.assert_allclose(found, np.array(expected).T, rtol=1e-9)


# Rounded numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1.0, 0.25, 32.0])
@pytest.mark.parametrize("bins", ["auto", 1000])
def test_bins_are_no_narrower_than_what_numbers_are_rounded_to(step: float, bins: Any) -> None:
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(40, 3, 20_000)) * step
    strays = np.where(rng.random(len(x)) < 0.01, step / 7, 0.0)  # a few are not rounded
    for numbers in (x, x + strays):
        density = bb.Density(bb.Histogram(bins=bins)).fit({"x": numbers})
        share = np.mean(numbers == 40 * step)
        assert density.probability({"x": 40 * step}) == pytest.approx(share / step, rel=0.03)


def test_two_values_far_apart_have_bins_of_their_own() -> None:
    density = bb.Density("histogram").fit({"x": [0.0, 3.0] * 500})
    assert density.probability({"x": 0.0}) == pytest.approx(density.probability({"x": 3.0}), rel=1e-9)
    assert density.probability({"x": 0.0}) > 0.2 > density.probability({"x": 9.0})


def test_a_few_fine_numbers_beside_many_zeros_keep_their_bins() -> None:
    x = np.concatenate([np.zeros(600), np.linspace(10, 11, 400)])
    narrow = bb.estimate(bb.count({"x": x}, target=np.zeros(1000), features=bb.Histogram(bins=4000))).cuts("x")
    assert np.diff(narrow).max() < 0.2


def test_leave_one_out_makes_no_comb_of_rounded_numbers() -> None:
    x = np.round(np.random.default_rng(0).normal(40, 3, 5_000))
    for given in (bb.KernelDensity(bandwidth="leave-one-out"), bb.KernelDensity("epanechnikov", "leave-one-out")):
        density = bb.Density(given).fit({"x": x})
        at, between = (density.probability({"x": value}) for value in (40.0, 40.5))
        assert at == pytest.approx(between, rel=0.25)


def test_leave_one_out_does_not_ask_what_a_row_is_worth() -> None:
    """Rows that are all alone in their bins are left out with whatever weight they have."""
    x = np.concatenate([np.linspace(0, 1, 40) ** 2, 5 + np.linspace(0, 1, 40) ** 2])
    found = []
    for weight in (1.0, 0.5, 0.01):
        for features in (
            {"x": bb.KernelDensity(bandwidth="leave-one-out", start=0, width=1e-5)},
            {("x", "y"): bb.KernelDensity(bandwidth="leave-one-out", start=0, width=1e-5)},
        ):
            tally = bb.count({"x": x, "y": x}, target=np.zeros(80), features=features, weights=np.full(80, weight))
            feature = next(iter(features))
            name = feature if isinstance(feature, str) else " + ".join(feature)
            found.append(bb.estimate(tally, how="mle").bandwidths(name)[0.0])
    for one, other in ((0, 2), (2, 4), (1, 3), (3, 5)):
        assert found[one] == pytest.approx(found[other], rel=0.1)  # the search goes in steps from Scott's rule


def test_bins_do_not_depend_on_how_weights_are_added_up() -> None:
    """A row divided among classes is the row: the quartiles of both fall into the same bins."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([8, 16, 32, 64]))
        x, shares = rng.normal(size=n), rng.dirichlet(np.ones(3), n)
        hard = bb.count({"x": x}, target=np.zeros(n), features="histogram")
        soft = bb.count({"x": x}, weights=shares, classes=[0, 1, 2], schema=hard.schema)
        assert bb.estimate(soft).cuts("x") == bb.estimate(hard).cuts("x"), seed


def test_a_family_says_its_name_in_a_sentence_and_whether_it_reads_text():
    names = {name: in_words(kind()) for name, kind in FAMILIES.items()}
    blocks = {name: ("x",) * FAMILIES[name]().block for name in names}
    texts = {name for name in names if Feature("x", FAMILIES[name](), columns=blocks[name]).reads_text}
    assert texts == {"text"}
    assert (names["kernel_density"], names["text"]) == ("kernel density", "text")
    assert (names["gaussian"], names["poisson"], names["bernoulli"]) == ("Gaussian", "Poisson", "Bernoulli")
