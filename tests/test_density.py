"""The model with one class: likelihoods, queries, comparisons, independence; rows 21, 23, 24, 26 and 42 of the lectures."""

from __future__ import annotations

import gzip
import io
import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks import densities
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, multivariate_normal, norm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.mixture import GaussianMixture
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky
from sklearn.utils.estimator_checks import parametrize_with_checks

import banbury as bb
from banbury import errors
from banbury.model.naive_bayes import log_sum
from test_laws import law

ROOT = Path(__file__).parents[1]
ALARM = {  # theft, alarm, quake
    (True, True, True): 0.01,
    (True, True, False): 0.08,
    (True, False, True): 0.001,
    (True, False, False): 0.009,
    (False, True, True): 0.01,
    (False, True, False): 0.09,
    (False, False, True): 0.01,
    (False, False, False): 0.79,
}
TABLE = {
    (0, 0, 0): 30,
    (0, 0, 1): 5,
    (0, 1, 0): 10,
    (0, 1, 1): 5,
    (1, 0, 0): 5,
    (1, 0, 1): 10,
    (1, 1, 0): 25,
    (1, 1, 1): 10,
}


def rows_of(table: dict[tuple[Any, ...], float], names: tuple[str, ...], times: int) -> dict[str, list[Any]]:
    """Rows in the proportions of a table of probabilities."""
    rows = [key for key, share in table.items() for _ in range(round(share * times))]
    return {name: [row[j] for row in rows] for j, name in enumerate(names)}


# Row 23


def test_the_alarm_table_is_learned_by_counting_and_answers_any_query(figure):
    names = ("theft", "alarm", "quake")
    density = bb.Density(features={names: bb.Joint()}, how="mle").fit(rows_of(ALARM, names, 1000))
    alarm, theft = density.probability({"alarm": True}), density.probability({"theft": True})
    both = density.probability({"theft": True}, given={"alarm": True})
    assert (alarm, theft, both) == (pytest.approx(0.19), pytest.approx(0.10), pytest.approx(0.09 / 0.19))
    for query in product([True, False, None], repeat=3):
        asked = {name: value for name, value in zip(names, query, strict=True) if value is not None}
        if asked:
            by_hand = sum(
                p for key, p in ALARM.items() if all(key[names.index(name)] == value for name, value in asked.items())
            )
            assert density.probability(asked) == pytest.approx(by_hand, rel=1e-12)
    figure(
        23,
        "joint table of alarm, theft and earthquake: P(alarm), P(theft), P(theft given alarm)",
        ".19, .10, .09/.19",
        f"{alarm:.2f}, {theft:.2f}, {both:.4f}",
        'bb.Density({("theft", "alarm", "quake"): bb.Joint()}).probability(...)',
    )


def test_a_joint_table_of_three_flags_has_the_records_shares(figure):
    names = ("A", "B", "C")
    density = bb.Density(features={names: bb.Joint()}, how="mle").fit(rows_of(TABLE, names, 1))
    found = density.probability({"A": 1, "B": 1, "C": 0})
    assert found == pytest.approx(0.25)
    figure(23, "joint table of A, B, C: P(A, B, not C)", ".25", f"{found:.2f}", "density.probability(...)")


def test_adults_sex_hours_and_income_are_a_joint_table(archived, figure):
    frame = adult(archived)
    table = pd.DataFrame(
        {"sex": frame.sex, "hours": frame.hours_per_week > 40.5, "rich": frame.income.str.contains(">")}
    )
    density = bb.Density(features={("sex", "hours", "rich"): bb.Joint()}, how="mle").fit(table)
    wanted = {"Female": [0.2531, 0.0246, 0.0422, 0.0116], "Male": [0.3313, 0.0971, 0.1341, 0.1059]}
    found = {
        sex: [
            density.probability({"sex": sex, "hours": hours, "rich": rich})
            for hours, rich in ((False, False), (False, True), (True, False), (True, True))
        ]
        for sex in wanted
    }
    assert len(table) == 48_842
    for sex, shares in wanted.items():
        assert found[sex] == pytest.approx(shares, abs=5e-5)
    figure(
        23,
        "Adult: sex, hours above 40.5, income",
        "Female .2531 .0246 .0422 .0116, Male .3313 .0971 .1341 .1059",
        ", ".join(f"{sex} {' '.join(f'{p:.4f}'.removeprefix('0') for p in shares)}" for sex, shares in found.items()),
        'bb.Density({("sex", "hours", "rich"): bb.Joint()})',
    )


def adult(archived: Any) -> pd.DataFrame:
    from benchmarks.datasets import ADULT

    files = archived("adult")
    parts = []
    for name, content in files.items():
        if name.endswith(("adult.data", "adult.test")):
            lines = [line for line in content.decode().splitlines() if line.count(",") == 14]
            parts.append(pd.read_csv(io.StringIO("\n".join(lines)), names=ADULT, skipinitialspace=True))
    return pd.concat(parts, ignore_index=True)


# Row 24


@pytest.fixture
def cars(data_dir: Path) -> pd.DataFrame:
    """auto-mpg's complete rows: good or bad mileage, three spans of years, three makers."""
    with gzip.open(data_dir / "auto-mpg" / "auto-mpg.data.gz", "rt") as lines:
        rows = [line.split('"')[0].split() for line in lines]
    rows = [row for row in rows if "?" not in row]
    year = np.array([int(row[6]) for row in rows])
    return pd.DataFrame(
        {
            "mpg": np.where(np.array([float(row[0]) for row in rows]) > 22.5, "good", "bad"),
            "year": np.select([year <= 74, year <= 78], ["70-74", "75-78"], "79-83"),
            "maker": [["america", "europe", "asia"][int(row[7]) - 1] for row in rows],
        }
    )


def test_a_joint_table_overfits_and_the_naive_one_less(cars, figure):
    names = ("mpg", "year", "maker")
    assert len(cars) == 392
    totals, infinite, gaps = [], 0, []
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(392)
        learned, others = cars.iloc[order[:196]], cars.iloc[order[196:]]
        joint = bb.Density(features={names: bb.Joint()}, how="mle").fit(learned)
        naive = bb.Density(how="mle").fit(learned)
        totals.append(joint.score(learned))
        held_out = joint.score(others)
        infinite += held_out == -np.inf
        if np.isfinite(held_out):
            gaps.append((totals[-1] - held_out, naive.score(learned) - naive.score(others)))
        smooth = bb.Density(features={names: bb.Joint()}).fit(learned)
        assert np.isfinite(smooth.score(others))
    assert np.mean(totals) == pytest.approx(-469, abs=3)
    assert 4 < np.std(totals) < 12
    assert infinite > 0
    joint_gap, naive_gap = np.mean(gaps, axis=0)
    assert naive_gap < joint_gap
    figure(
        24,
        "auto-mpg, joint table of 196 random rows: log-likelihood of these rows",
        "-466.19",
        f"{np.mean(totals):.1f} ± {np.std(totals):.1f} over 60 halves; −∞ on the other half in {infinite} of them",
        'bb.Density({("mpg", "year", "maker"): bb.Joint()}, how="mle").score(...)',
    )


# Row 21


def test_densities_of_iris_are_compared_on_held_out_rows(figure):
    names = ("sepal length", "sepal width", "petal length", "petal width")
    frame = dict(zip(names, load_iris().data.T, strict=True))
    order = np.random.default_rng(1).permutation(150)
    held_out, learned = ({name: column[rows] for name, column in frame.items()} for rows in (order[:75], order[75:]))
    features = {
        "histogram": bb.Histogram(bins=10),
        "gaussian": "gaussian",
        "kernel density": "kernel_density",
        "histogram of the block": {names: bb.Histogram()},
        "kernel density of the block": {names: bb.KernelDensity()},
        "gaussian, full covariance": {names: bb.Gaussian(covariance="full")},
    }
    scores = {name: bb.Density(family).fit(learned).score(held_out) / 75 for name, family in features.items()}
    assert max(scores, key=scores.__getitem__) == "gaussian, full covariance"
    assert scores["kernel density of the block"] > scores["kernel density"] > scores["gaussian"]
    assert scores["histogram of the block"] < scores["histogram"], "most of its cells are empty"
    figure(
        21,
        "iris: held-out log-likelihood per row of histogram, Gaussian and kernel density, per column and of one block",
        "none",
        ", ".join(f"{name} {score:.2f}" for name, score in scores.items()),
        "bb.Density(features).fit(learned).score(held_out)",
    )


@pytest.mark.slow
@pytest.mark.usefixtures("data_dir")
def test_densities_of_adult_are_compared_on_held_out_rows(figure):
    table = densities.compare_densities(densities.adult())
    (bells, block, kernels, kernel_block, cells, naive, seven, three, few, many) = (score for *_, score in table)
    assert many > few + 0.5 > naive + 1.5  # nats per row
    assert bells < block < naive < kernel_block < kernels < three < few, "of three columns bandwidths are wider"
    assert cells < naive
    assert seven < naive, "188,000 cells are too many for 20,000 rows"
    page = (ROOT / "docs" / "reference" / "density.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in densities.lines(table) if line not in page] == []
    figure(
        21,
        "Adult: held-out log-likelihood per row of bell curves, kernels, histograms, joint tables and mixtures",
        "none",
        "; ".join(f"{name} {score:.2f}" for name, *_, score in table),
        "bb.Density(features).fit(learned).score(held_out)",
    )


# Row 26


def test_a_tied_covariance_is_linear_discriminant_analysis(figure):
    X, y = load_iris(return_X_y=True)
    names = ("a", "b", "c", "d")
    frame = dict(zip(names, X.T, strict=True))
    tally = bb.count(frame, y, features={names: bb.Gaussian(covariance="tied")})
    model = bb.estimate(tally, how="mle")
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).predict_proba(X)
    gap = float(np.abs(model.posterior(frame) - theirs).max())
    assert gap < 1e-8
    figure(
        26,
        "a Gaussian block with tied covariance beside LDA: largest difference of posteriors on iris",
        "none",
        "below 1e-8",
        'bb.Gaussian(covariance="tied")',
    )


# Row 42


def test_the_more_columns_the_more_cells_are_empty(archived, figure):
    frame = adult(archived)
    names = ["sex", "race", "workclass", "education", "marital_status", "occupation", "relationship", "native_country"]
    shares = []
    for n in range(2, len(names) + 1):
        block = tuple(names[:n])
        tally = bb.count(frame[[*block, "income"]], target="income", features={block: bb.Joint()})
        (share,) = tally.empty_cells.values()
        shares.append(share)
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] > 0.99
    figure(
        42,
        "Adult: the share of empty cells of a joint table of 2, 3, … 8 columns",
        "none",
        ", ".join(f"{share:.1%}" for share in shares),
        "tally.empty_cells",
    )


def test_the_more_numbers_the_more_cells_of_a_histogram_are_empty(archived, figure):
    frame = adult(archived)
    names = ["age", "hours_per_week", "education_num", "fnlwgt"]
    shares = []
    for n in range(1, len(names) + 1):
        block = tuple(names[:n])
        tally = bb.count(frame[[*block, "income"]], target="income", features={block: bb.Histogram(bins=10)})
        (share,) = tally.empty_cells.values()
        shares.append(share)
    assert shares == sorted(shares)
    assert shares[0] < 0.1
    assert shares[-1] > 0.7
    figure(
        42,
        "Adult: the share of empty cells of a histogram of 1, 2, 3 and 4 columns in ten bins at most",
        "none",
        ", ".join(f"{share:.1%}" for share in shares),
        "tally.empty_cells",
    )


# Densities -----------------------------------------------------------------------------------------------------------

FLAGS = st.lists(st.tuples(st.booleans(), st.sampled_from("xyz"), st.integers(0, 2)), min_size=1, max_size=25)


@given(
    rows=FLAGS,
    how=st.sampled_from(["mean", "mle", "map", "predictive", "gibbs"]),
    alpha=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_the_cells_of_a_joint_table_sum_to_one(rows, how, alpha):
    frame = {name: [row[j] for row in rows] for j, name in enumerate("abc")}
    density = bb.Density(features={("a", "b", "c"): bb.Joint()}, how=how, alpha=alpha).fit(frame)
    values = [sorted(set(column), key=str) for column in frame.values()]
    cells = {name: [row[j] for row in product(*values)] for j, name in enumerate("abc")}
    assert np.exp(density.score_samples(cells)).sum() == pytest.approx(1.0, abs=1e-9)
    for name, seen in zip("abc", values, strict=True):
        assert sum(density.probability({name: value}) for value in seen) == pytest.approx(1.0, abs=1e-9)


@given(rows=FLAGS)
def test_mle_of_a_joint_table_is_the_share_of_rows(rows):
    frame = {name: [row[j] for row in rows] for j, name in enumerate("abc")}
    density = bb.Density(features={("a", "b", "c"): bb.Joint()}, how="mle").fit(frame)
    counts = [rows.count(row) / len(rows) for row in rows]
    assert np.exp(density.score_samples(frame)) == pytest.approx(counts)


def test_a_gaussian_block_has_scipys_density_and_its_marginals():
    rng = np.random.default_rng(0)
    mean, root = np.array([1.0, -2.0, 3.0]), rng.normal(size=(3, 3))
    data = mean + rng.normal(size=(500, 3)) @ root
    frame = dict(zip("abc", data.T, strict=True))
    density = bb.Density(features={("a", "b", "c"): bb.Gaussian(covariance="full")}, how="mle").fit(frame)
    centre, covariance = data.mean(axis=0), np.cov(data.T, bias=True)
    assert density.score_samples(frame) == pytest.approx(
        multivariate_normal(centre, covariance).logpdf(data), rel=1e-10
    )
    gaps = {"a": [0.5, np.nan], "b": [np.nan, -1.0], "c": [2.0, np.nan]}
    two = multivariate_normal(centre[[0, 2]], covariance[np.ix_([0, 2], [0, 2])]).logpdf([0.5, 2.0])
    one = norm(centre[1], covariance[1, 1] ** 0.5).logpdf(-1.0)
    assert density.score_samples(gaps) == pytest.approx([two, one], rel=1e-10)
    assert density.log_probability({"a": 0.5}, given={"c": 2.0}) == pytest.approx(
        two - norm(centre[2], covariance[2, 2] ** 0.5).logpdf(2.0), rel=1e-10
    )


def test_unusual_rows_have_the_highest_anomaly_scores():
    rng = np.random.default_rng(1)
    frame = {"x": np.append(rng.normal(size=200), 9.0), "y": np.append(rng.normal(size=200), -9.0)}
    density = bb.Density().fit(frame)
    assert int(np.argmax(density.anomaly_scores(frame))) == 200
    assert density.score(frame) == pytest.approx(-density.anomaly_scores(frame).sum())


def test_samples_have_the_columns_and_their_shares():
    names = ("theft", "alarm", "quake")
    density = bb.Density(features={names: bb.Joint()}, how="mle").fit(rows_of(ALARM, names, 1000))
    drawn = density.sample(20_000, seed=3)
    assert set(drawn) == set(names)
    assert np.mean(drawn["alarm"]) == pytest.approx(0.19, abs=0.01)
    assert np.mean(drawn["theft"] & drawn["alarm"]) == pytest.approx(0.09, abs=0.01)
    assert {name: column.tolist() for name, column in density.sample(5, seed=3).items()} == {
        name: column.tolist() for name, column in density.sample(5, seed=3).items()
    }


def test_weights_count_rows_several_times():
    frame = {"a": ["x", "y", "y"], "b": [1.0, 2.0, 4.0]}
    twice = {name: [*column, column[1]] for name, column in frame.items()}
    weighted = bb.Density().fit(frame, sample_weight=[1, 2, 1])
    assert weighted.score_samples(frame) == pytest.approx(bb.Density().fit(twice).score_samples(frame), rel=1e-9)


def test_a_density_is_cloned_and_says_when_it_is_not_fitted():
    density = clone(bb.Density(how="mle", alpha=0.5))
    assert density.get_params()["how"] == "mle"
    with pytest.raises(NotFittedError, match="not fitted"):
        density.score([[1.0]])


@pytest.mark.parametrize("estimator", [bb.Density(how="map", alpha=2.0), bb.Mixture(2, starts=1)])
def test_a_density_that_was_saved_answers_as_before(estimator, tmp_path):
    frame = {"by": list("aabbcc"), "x": np.array([1.0, 2.0, 9.0, 8.0, 2.0, 7.0])}
    before = clone(estimator).fit(frame)
    bb.save(before.model_, tmp_path / "rows.banbury")
    after = bb.Density.from_model(bb.load(tmp_path / "rows.banbury"))
    np.testing.assert_array_equal(after.score_samples(frame), before.score_samples(frame))
    query = {"by": ["a", "b"]}, {"x": 2.0}
    assert after.probability(*query) == before.probability(*query)
    np.testing.assert_array_equal(after.sample(5, seed=1)["x"], before.sample(5, seed=1)["x"])
    assert after.feature_names_in_.tolist() == ["by", "x"] and after.tally_ == before.tally_


def test_a_density_made_of_a_model_can_be_fitted_anew():
    weather = bb.datasets.play_tennis()
    model = bb.estimate(bb.count(weather, target="play", features={("outlook", "wind"): bb.Joint()}), how="mle")
    density = bb.Density.from_model(model)
    assert density.probability({"outlook": "sunny"}) == pytest.approx(5 / 14)
    del weather["play"]
    assert clone(density).fit(weather).probability({"wind": "weak", "outlook": "sunny"}) == pytest.approx(3 / 14)
    with pytest.raises(errors.BadSetting, match="must be a Model, from"):
        bb.Density.from_model(model.tally)


def test_queries_that_cannot_be_answered_say_why():
    names = ("theft", "alarm", "quake")
    density = bb.Density(features={names: bb.Joint()}, how="mle").fit(rows_of(ALARM, names, 1000))
    never = bb.Density(features={("a", "b", "c"): bb.Joint()}, how="mle").fit({"a": [0, 1], "b": [0, 1], "c": [0, 1]})
    with pytest.raises(errors.ImpossibleEvidence, match="no row has a = 0, b = 1"):
        never.probability({"c": 1}, given={"a": 0, "b": 1})
    with pytest.raises(errors.UnknownColumn, match="smoke"):
        density.probability({"smoke": True})
    with pytest.raises(errors.BadSetting, match="'alarm' is in both"):
        density.probability({"alarm": True}, given={"alarm": False})
    with pytest.raises(errors.BadSetting, match="event"):
        density.probability({})


@pytest.mark.parametrize("several", [list, tuple, set, frozenset, np.array])
def test_one_of_several_values_has_the_sum_of_their_probabilities(several):
    weather = bb.datasets.play_tennis()
    joint = bb.Density({("outlook", "wind", "play"): bb.Joint()}).fit(weather)
    for density in (joint, bb.Mixture(2, starts=1, how="mean").fit(weather)):
        outlooks = several(["rain", "sunny"])
        each = [density.probability({"outlook": o, "play": "yes"}) for o in ("rain", "sunny")]
        assert density.probability({"outlook": outlooks, "play": "yes"}) == pytest.approx(sum(each))
        alone = sum(density.probability({"outlook": o}) for o in ("rain", "sunny"))
        assert density.probability({"play": "yes"}, given={"outlook": outlooks}) == pytest.approx(sum(each) / alone)
        both = density.probability({"outlook": outlooks, "wind": several(["strong", "weak"])})
        assert both == pytest.approx(alone)


def test_values_that_mean_the_same_are_summed_once():
    density = bb.Density(
        {"rain": bb.Bernoulli(yes="wet"), "n": bb.Bernoulli(threshold=2), "k": "poisson"}, how="mle"
    ).fit({"rain": ["wet", "dry", "dusty", "dry"], "n": [1, 2, 3, 4], "k": [0, 1, 2, 1]})
    assert density.probability({"rain": ["dry", "dusty", "dry"]}) == pytest.approx(0.75)
    assert density.probability({"n": [3, 4, 9]}) == pytest.approx(0.5)
    assert density.probability({"n": [3, 1]}) == pytest.approx(1.0)
    assert density.probability({"k": [0, 1, 1.0]}) == pytest.approx(2 * np.exp(-1))


def test_values_that_a_column_cannot_have_are_refused_by_name():
    density = bb.Density({"k": "poisson"}).fit({"x": np.arange(9.0), "by": list("aaabbbccc"), "k": np.arange(9)})
    with pytest.raises(errors.BadSetting, match="column 'x' is a number of family 'gaussian'"):
        density.probability({"x": [1.0, 2.0]})
    for asked in ({"x": "hot"}, {"by": "a", "x": "hot"}):
        with pytest.raises(errors.BadValue, match="column 'x' cannot be 'hot': a number is needed") as caught:
            density.probability(asked)
        assert "row" not in str(caught.value).split("rows learned")[0]
    with pytest.raises(errors.BadValue, match="column 'x' cannot be inf: a finite number is needed"):
        density.probability({"by": "a"}, given={"x": np.inf})
    with pytest.raises(errors.BadValue, match=r"column 'k' cannot be 0\.5: a whole number of at least 0 is needed"):
        density.probability({"k": 0.5})
    for values in ([], [None, "a"], [["a"]], [np.nan]):
        with pytest.raises(errors.BadSetting, match="the values of 'by' must be at least one"):
            density.probability({"by": values})
    counts = bb.Density("poisson").fit({"i": [1, 2, 5], "j": [0, 2, 4]})
    with pytest.raises(errors.BadSetting, match="1,001,000 combinations"):
        counts.probability({"i": [*range(1000)], "j": [*range(1001)]})


def test_values_are_told_apart_as_their_column_counts_them():
    numbers = bb.Density({"n": "categorical"}).fit({"n": [1, 2, 3]})
    assert numbers.probability({"n": [1, 2, 3, "1", "2"]}) == pytest.approx(1.0)
    assert numbers.probability({"n": ["1", 1]}) == numbers.probability({"n": 1}) == pytest.approx(1 / 3)
    joint = bb.Density({("s", "g"): bb.Joint()}).fit({"s": [1, 2, 1], "g": ["k", "l", "k"]})
    assert joint.probability({"g": "k"}, given={"s": [1, "1", 1.0]}) == pytest.approx(0.75)
    above = bb.Density({"n": bb.Bernoulli(threshold=2)}).fit({"n": [1, 2, 3]})
    with pytest.raises(errors.BadValue, match="column 'n' cannot be '3': a number is needed"):
        above.probability({"n": ["3", 1]})


def test_never_counted_values_are_refused_in_lists_so_that_no_sum_is_above_one():
    joint = bb.Density({("s", "g"): bb.Joint()}).fit({"s": ["u", "v", "u"], "g": ["kilo", "l", "kilo"]})
    for density in (joint, bb.Density().fit({"s": ["u", "v"], "g": ["kilo", "l"]})):
        with pytest.raises(errors.UnknownValue, match=r"'g' has no value 'Kilo'\. Did you mean 'kilo'\?"):
            density.probability({"g": ["Kilo", "l"]})
        with pytest.raises(errors.UnknownValue, match="'s' has no value 'w'"):
            density.probability({"g": "l"}, given={"s": ["u", "w"]})
        with pytest.warns(bb.BanburyWarning, match=r"never had the value 'Kilo'.* Did you mean 'kilo'") as caught:
            assert 0 < density.probability({"g": "Kilo"}) < 0.5
        assert caught[0].filename == __file__ and len(caught) == 1
    texts = bb.Density().fit({"text": ["a walk in the park", "lunch in the park at noon"]})
    with pytest.raises(errors.BadSetting, match="the values of 'text' must be one at a time"):
        texts.probability({"text": ["never heard", "of such"]})


@given(rows=st.lists(st.tuples(*[st.sampled_from([0, 1, "1", "b", "2"])] * 2), min_size=1, max_size=8), data=st.data())
def test_no_list_of_values_has_a_probability_above_one(rows, data):
    frame = {"a": [str(row[0]) for row in rows], "b": [row[1] for row in rows]}
    features = data.draw(st.sampled_from(["categorical", {("a", "b"): bb.Joint()}]))
    density = bb.Density(features, how=data.draw(st.sampled_from(["mle", "mean"]))).fit(frame)
    lists = {name: st.lists(st.sampled_from(values), min_size=1, max_size=4) for name, values in frame.items()}
    asked = {name: data.draw(values) for name, values in lists.items()}
    assert 0 <= density.probability(asked) <= 1
    assert density.probability({"a": asked["a"]}) <= 1 and density.probability({"a": frame["a"]}) == pytest.approx(1.0)


@pytest.mark.parametrize("features", ["auto", {("a", "b"): bb.Joint()}])
def test_a_value_never_seen_is_impossible_without_smoothing(features):
    frame, new = {"a": ["x", "y", "x"], "b": ["u", "u", "v"]}, {"a": ["z", "x", None], "b": ["u", "u", "u"]}
    assert np.isneginf(bb.Density(features, how="mle").fit(frame).score_samples(new)).tolist() == [True, False, False]
    assert np.isfinite(bb.Density(features).fit(frame).score_samples(new)).all()


def test_what_is_missing_as_a_category_is_summed_out_too():
    frame = {"a": ["x", None, "x", "y"], "b": ["u", "v", None, None]}
    density = bb.Density(missing="category", how="mle").fit(frame)
    assert density.probability({"a": "x"}) == pytest.approx(0.5)
    assert density.probability({"b": None}) == pytest.approx(0.5)
    assert density.probability({"a": "x"}, given={"b": "u"}) == pytest.approx(0.5)


def test_a_column_that_is_left_out_is_not_sampled():
    density = bb.Density({"class": None}).fit({"class": ["p", "q"], "x": [1.0, 2.0]})
    assert list(density.sample(3)) == ["x"]


def test_a_file_whose_later_lines_are_of_another_kind_is_read_again(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y,z\n" + "1,a,1\n2,b,2\n" * 450_000 + "word,a,3\n")
    with pytest.warns(errors.BanburyWarning, match="column 'x'"):
        density = bb.Density({"z": None}, how="mle").fit(path)
    assert density.probability({"x": "word"}) == pytest.approx(1 / 900_001)
    of_z = bb.Density({"x": None, "y": None}).fit({"x": ["p"], "y": ["q"], "z": [1.0]})
    assert len(of_z.score_samples(path)) == 900_001


@parametrize_with_checks([bb.Density(), bb.Density(how="mle", features=bb.Histogram())])
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        check(estimator)


# Mixtures ------------------------------------------------------------------------------------------------------------

FEATURES = {
    "naive": "auto",
    "categories": "categorical",
    "pair": {("a", "b"): bb.Joint()},
    "all": {("a", "b", "c"): bb.Joint()},
    "flag": {"a": bb.Bernoulli(), "b": bb.Categorical(values=[*"wxyz"]), "c": bb.Categorical(alpha=0.3)},
}


EVERY_VALUE = {"a": [True, False, True], "b": list("xyz"), "c": list("uvv")}


def total(cells: list[dict[str, Any]], table: list[float], asked: dict[str, Any]) -> float:
    """The sum of the cells that have these values."""
    return sum(p for cell, p in zip(cells, table, strict=True) if asked.items() <= cell.items())


def by_hand(model: bb.Model, row: dict[str, Any]) -> float:
    """P of a whole row: over the components, the share of each times the likelihoods of all features."""
    each = np.exp(model.log_prior)
    for feature in model.schema.features:
        value = tuple(row[name] for name in feature.inputs) if len(feature.inputs) > 1 else row[feature.name]
        each = each * [model.likelihood(feature.name, value)[c] for c in model.classes]
    return float(each.sum())


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
@law
@given(
    rows=st.lists(st.tuples(st.booleans(), st.sampled_from("xyz"), st.sampled_from("uv")), min_size=3, max_size=15),
    n=st.integers(1, 3),
    setting=st.sampled_from([("mean", 1.0), ("mean", 0.2), ("map", 1.5), ("map", 1.0), ("mle", 1.0)]),
)
def test_a_mixtures_marginals_are_sums_and_its_conditionals_ratios(features, rows, n, setting):
    frame = {name: [*(row[j] for row in rows), *more] for j, (name, more) in enumerate(EVERY_VALUE.items())}
    how, alpha = setting
    mixture = bb.Mixture(n, features, how=how, alpha=alpha, starts=1, max_iter=5).fit(frame)
    values = [(True, False), "wxyz" if features is FEATURES["flag"] else "xyz", "uv"]
    cells = [dict(zip("abc", cell, strict=True)) for cell in product(*values)]
    table = [by_hand(mixture.model_, cell) for cell in cells]
    found = mixture.score_samples({name: [cell[name] for cell in cells] for name in "abc"})
    assert sum(table) == pytest.approx(1.0, abs=1e-9)
    assert not np.isnan(found).any()
    np.testing.assert_allclose(np.exp(found), table, rtol=1e-9, atol=1e-300)
    for query in ({"a": True}, {"b": "x"}, {"a": False, "c": "u"}, {"a": True, "b": "y", "c": "v"}):
        wanted = total(cells, table, query)
        assert mixture.probability(query) == pytest.approx(wanted, rel=1e-9, abs=1e-300)
        evidence = {"b": "z"} if "b" not in query else {}
        if evidence and total(cells, table, evidence) > 0:
            ratio = total(cells, table, query | evidence) / total(cells, table, evidence)
            assert mixture.probability(query, given=evidence) == pytest.approx(ratio, rel=1e-9, abs=1e-300)


NUMBERS = ["gaussian", bb.Gaussian("shared"), bb.Histogram(bins=4), "kernel_density", "poisson"]


@pytest.mark.filterwarnings("ignore:a Gaussian component has collapsed")  # of few rows
@pytest.mark.parametrize("family", NUMBERS, ids=str)
@law
@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.sampled_from("uv")), min_size=1, max_size=12),
    n=st.integers(1, 3),
    how=st.sampled_from(["mean", "map", "mle"]),
)
def test_numbers_are_summed_out_and_given_too(family, rows, n, how):
    frame = {"x": [1, 4, 7, *(x for x, _ in rows)], "by": [*"uvv", *(by for _, by in rows)]}
    mixture = bb.Mixture(n, {"x": family}, how=how, starts=1, max_iter=3).fit(frame)
    for x in (1, 4, 8):
        each = [mixture.probability({"x": x, "by": by}) for by in "uv"]
        assert each == pytest.approx([by_hand(mixture.model_, {"x": x, "by": by}) for by in "uv"], rel=1e-9, abs=1e-300)
        assert mixture.probability({"x": x}) == pytest.approx(sum(each), rel=1e-9, abs=1e-300)
        if sum(each) > 1e-290:
            assert mixture.probability({"by": "u"}, given={"x": x}) == pytest.approx(each[0] / sum(each), rel=1e-9)
    assert sum(mixture.probability({"by": by}) for by in "uv") == pytest.approx(1.0)


CURVES: dict[str, Any] = {
    "diag": "gaussian",
    "full": {("a", "b", "c"): bb.Gaussian(covariance="full")},
    "tied": {("a", "b", "c"): bb.Gaussian(covariance="tied")},
}


def curves(model: bb.Model) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances of a mixture's bell curves, in the columns' own units."""
    (group,) = model.parameters
    if hasattr(group, "covariance"):
        origin, unit = np.array(group.features[0].scales).T
        return origin + unit * group.mean, group.covariance * np.outer(unit, unit)
    means = (group.origin[:, None] + group.unit[:, None] * group.mean).T
    variances = (np.square(group.unit)[:, None] * 0.5 / group.precision).T
    return means, np.array([np.diag(each) for each in variances])


@pytest.mark.parametrize("kind", CURVES)
def test_a_mixture_of_the_same_curves_has_scikit_learns_density(kind):
    rng = np.random.default_rng(4)
    data = np.concatenate([rng.normal(size=(90, 3)) @ rng.normal(size=(3, 3)) + centre for centre in (-3.0, 0.0, 4.0)])
    frame = dict(zip("abc", data.T, strict=True))
    mixture = bb.Mixture(3, CURVES[kind], starts=3).fit(frame)
    means, covariances = curves(mixture.model_)
    theirs = GaussianMixture(3, covariance_type=kind).fit(data)  # for its shapes: all it learned is replaced
    shares = np.exp(mixture.model_.log_prior)
    given = {"diag": covariances.diagonal(axis1=1, axis2=2), "full": covariances, "tied": covariances[0]}[kind]
    theirs.weights_, theirs.means_, theirs.covariances_ = shares, means, given
    theirs.precisions_cholesky_ = _compute_precision_cholesky(given, kind)
    np.testing.assert_allclose(mixture.score_samples(frame), theirs.score_samples(data), rtol=1e-9)
    assert mixture.score(frame) == pytest.approx(theirs.score(data), rel=1e-9)
    assert mixture.tally_.n_parameters() == theirs._n_parameters()

    def density(columns: list[int], at: list[float]) -> float:
        each = (
            multivariate_normal(m[columns], c[np.ix_(columns, columns)]).pdf(at)
            for m, c in zip(means, covariances, strict=True)
        )
        return float(shares @ list(each))

    assert mixture.probability({"b": 0.5}) == pytest.approx(density([1], [0.5]), rel=1e-9)
    found = mixture.probability({"b": 0.5, "a": -1.0}, given={"c": 2.0})
    assert found == pytest.approx(density([0, 1, 2], [-1.0, 0.5, 2.0]) / density([2], [2.0]), rel=1e-9)
    gaps = mixture.score_samples({"a": [-1.0, np.nan], "b": [np.nan, np.nan], "c": [2.0, np.nan]})
    np.testing.assert_allclose(gaps, [np.log(density([0, 2], [-1.0, 2.0])), 0.0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("features", ["auto", {("a", "b"): bb.Joint()}])
def test_a_value_never_seen_is_impossible_in_every_component(features):
    frame, new = {"a": list("xyxy"), "b": list("uvuv")}, {"a": ["z", "x", None], "b": ["u", "u", "v"]}
    for how in ("mle", "map"):
        mixture = bb.Mixture(2, features, how=how, starts=1).fit(frame)
        assert np.isneginf(mixture.score_samples(new)).tolist() == [True, False, False]
        with pytest.warns(bb.BanburyWarning, match="or is 0 without smoothing"):
            assert mixture.probability({"a": "z"}) == 0.0
        with pytest.warns(bb.BanburyWarning), pytest.raises(errors.ImpossibleEvidence, match="a = 'z'"):
            mixture.probability({"b": "u"}, given={"a": "z"})
    assert np.isfinite(bb.Mixture(2, features, starts=1).fit(frame).score_samples(new)).all()


def test_what_lies_between_two_clumps_is_unusual_to_a_mixture_alone():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-5, 1, 100), [0.0], rng.normal(5, 1, 100)])[:, None]
    assert int(bb.Mixture(2).fit(x).anomaly_scores(x).argmax()) == 100
    assert int(bb.Density().fit(x).anomaly_scores(x).argmin()) == 100


def test_samples_of_a_mixture_are_rows_of_its_table():
    rng = np.random.default_rng(0)
    kind = rng.random(400) < 0.25
    frame = {"size": np.where(kind, 9.0, 1.0) + rng.normal(size=400), "by": np.where(kind, "foot", "bus")}
    mixture = bb.Mixture(2).fit(frame)
    drawn = mixture.sample(20_000, seed=1)
    assert list(drawn) == ["size", "by"]
    foot = drawn["by"] == "foot"
    assert np.mean(foot) == pytest.approx(mixture.probability({"by": "foot"}), abs=0.01)
    assert np.mean(drawn["size"][foot]) == pytest.approx(frame["size"][kind].mean(), abs=0.3)
    assert np.isfinite(mixture.score_samples(drawn)).all()
    assert mixture.score(drawn) == pytest.approx(mixture.score(frame), abs=0.1)


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "auto", None])
def test_a_number_of_components_that_cannot_be_is_refused(n):
    with pytest.raises(errors.BadSetting, match="n_components must be a whole number of at least 1"):
        bb.Mixture(n).fit({"x": np.arange(9.0)})


def test_questions_to_a_mixture_that_cannot_be_answered_say_why():
    mixture = bb.Mixture(2, starts=1).fit({"x": np.arange(9.0), "by": list("aaabbbccc")})
    with pytest.raises(errors.UnknownColumn, match=r"no column 'class'.\n  Columns: x, by"):
        mixture.probability({"class": 0})
    with pytest.raises(errors.BadSetting, match="n_components must be at most 9"):
        bb.Mixture(10).fit({"x": np.arange(9.0)})
    with pytest.raises(NotFittedError):
        bb.Mixture(2).probability({"x": 1.0})


# Independence --------------------------------------------------------------------------------------------------------


def test_the_g_test_is_scipys():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 3, 400)
    b = np.where(rng.random(400) < 0.3, a, rng.integers(0, 3, 400))
    found = bb.independence({"a": a, "b": b}, "a", "b")
    table = np.array([[np.sum((a == i) & (b == j)) for j in range(3)] for i in range(3)])
    statistic, p, degrees, _ = chi2_contingency(table, correction=False, lambda_="log-likelihood")
    assert (found.statistic, found.p_value, found.degrees) == (pytest.approx(statistic), pytest.approx(p), degrees)


@pytest.mark.parametrize("given", [(), "c"])
@pytest.mark.parametrize("n", [200, 1000])
def test_numbers_that_are_independent_seem_otherwise_one_time_in_twenty(n, given):
    rng = np.random.default_rng(7)
    tables = [
        {"a": rng.normal(size=n), "b": rng.exponential(size=n), "c": rng.choice(list("xy"), n)} for _ in range(200)
    ]
    p_values = np.array([bb.independence(table, "a", "b", given).p_value for table in tables])
    assert 0.01 < np.mean(p_values < 0.05) < 0.1
    assert 0.35 < np.mean(p_values < 0.5) < 0.65


def test_numbers_that_depend_on_each_other_are_found_to():
    rng = np.random.default_rng(8)
    a = rng.normal(size=500)
    found = bb.independence({"a": a, "b": a + 1e-6 * rng.normal(size=500)}, "a", "b")
    assert found.p_value < 1e-100 and found.bins == {"a": 6, "b": 6} and found.degrees == 25
    assert str(found).endswith("(500 rows; a cut into 6 bins; b cut into 6 bins)")
    assert bb.independence({"a": a, "b": np.where(a > 0, "up", "down")}, "a", "b").p_value < 1e-50


def test_bins_are_asked_for_and_few_values_stay_as_they_are():
    rng = np.random.default_rng(9)
    table = {"a": rng.normal(size=300), "b": rng.integers(0, 20, 300), "c": rng.choice([True, False], 300)}
    table["a"][:3] = np.nan
    found = bb.independence(table, "a", "c", bins=2)
    assert (found.bins, found.degrees, found.n_rows) == ({"a": 2}, 1, 297)
    assert "on 1 degree of freedom" in str(found)
    assert bb.independence(table, "b", "c").bins == {}
    assert bb.independence({**table, "b": np.arange(300) % 21}, "b", "c").bins == {"b": 6}
    for bins in (1, True, 2.5):
        with pytest.raises(errors.BadSetting, match="bins must be a whole number of at least 2"):
            bb.independence(table, "a", "c", bins=bins)
    with pytest.raises(errors.UnknownColumn):
        bb.independence(table, "a", "d")


def test_a_value_as_frequent_as_a_bin_is_one_by_itself():
    rng = np.random.default_rng(10)
    hours = np.where(rng.random(1000) < 0.6, 40.0, rng.normal(40, 10, 1000))
    yes = rng.random(1000) < np.where(hours == 40.0, 0.8, 0.3)
    found = bb.independence({"hours": hours, "yes": yes}, "hours", "yes")
    assert found.bins == {"hours": 6} and found.p_value < 1e-30


def test_what_a_third_column_explains_is_independent_given_it():
    rng = np.random.default_rng(5)
    cause = rng.integers(0, 2, 4000)
    a, b = (np.where(rng.random(4000) < 0.8, cause, 1 - cause) for _ in range(2))
    frame = {"cause": cause, "a": a, "b": b}
    assert bb.independence(frame, "a", "b").p_value < 1e-6
    assert bb.independence(frame, "a", "b", given="cause").p_value > 0.01
    assert "a and b given cause" in str(bb.independence(frame, "a", "b", given=["cause"]))
    with pytest.raises(errors.BadSetting, match="each once"):
        bb.independence(frame, "a", "b", given="a")


def test_what_is_independent_of_the_query_cancels_out_however_far():
    rng = np.random.default_rng(1)
    density = bb.Density().fit({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    near = density.probability({"b": 1.0})
    assert [density.probability({"b": 1.0}, given={"a": far}) for far in (0.0, 1e7, 1e9, 1e300)] == [near] * 4


@pytest.mark.parametrize(("query", "given"), [("a", None), ({"a": 1.0}, "b"), (["a"], None), ({"a": 1.0}, 3)])
def test_questions_that_are_no_mappings_are_refused(query, given):
    density = bb.Density().fit({"a": [1.0, 2.0], "b": [2.0, 4.0]})
    with pytest.raises(errors.BadSetting, match="a mapping from columns to values"):
        density.probability(query, given)


def test_one_weight_is_that_of_every_row():
    table = {"a": ["x", "y", "x"]}
    twice = bb.Density().fit(table, sample_weight=2.0)
    assert twice.tally_ == bb.Density().fit(table, sample_weight=[2, 2, 2]).tally_
    for weights in ("a", [[1.0, 2.0], [3.0, 4.0]]):
        with pytest.raises(errors.BadSetting, match="one number per row, or one number for all rows"):
            bb.Density().fit(table, sample_weight=weights)


def test_independence_needs_rows_that_have_both():
    with pytest.raises(errors.EmptyData, match="no row has values in all of 'a', 'b'"):
        bb.independence({"a": ["x", None], "b": [None, "y"]}, "a", "b")


# Surprise ------------------------------------------------------------------------------------------------------------


def test_what_is_unusual_of_a_row_adds_up_where_columns_are_independent():
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=500), "n": rng.poisson(3, 500), "s": rng.choice(list("aab"), 500)}
    density = bb.Density({"n": "poisson"}).fit(table)
    found = density.surprise({"x": 4.0, "n": 3, "s": "z"})
    assert found.log_probability == pytest.approx(density.score_samples({"x": [4.0], "n": [3], "s": ["z"]})[0])
    assert found.usual == pytest.approx(density.score_samples(density.sample(1000, seed=0)).mean())
    assert sum(e.decibans for e in found.evidence) == pytest.approx(found.decibans)
    assert [(e.feature, e.value) for e in found.evidence] == [("x", 4.0), ("s", "z"), ("n", 3)]
    assert [e.seen for e in found.evidence] == [True, False, True]
    assert found.evidence[0].decibans < -30 < found.evidence[-1].decibans < 10
    assert (
        "s    = z (never seen)" in str(found)
        and json.loads(json.dumps(found.to_dict()))["evidence"][0]["feature"] == "x"
    )


def test_in_a_mixture_a_value_is_unusual_beside_the_others():
    """Either value is usual by itself; together they are not, and each says so."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 1000)
    table = {"x": rng.normal(10 * kind, 1), "y": rng.normal(10 * kind, 1)}
    mixture = bb.Mixture(2, starts=3).fit(table)
    odd, usual = mixture.surprise({"x": 0.0, "y": 10.0}), mixture.surprise({"x": 10.0, "y": 10.0})
    assert max(e.decibans for e in odd.evidence) < -100 and min(e.decibans for e in usual.evidence) > -5
    for e in odd.evidence:
        rest = {name: value for name, value in (("x", 0.0), ("y", 10.0)) if name != e.feature}
        given = mixture.log_probability({e.feature: e.value}, given=rest)
        drawn = mixture.sample(1000, seed=0)
        each = mixture.score_samples(drawn) - log_sum(mixture._marginal({next(iter(rest)): drawn[next(iter(rest))]}))
        assert e.decibans == pytest.approx((given - each.mean()) * 10 / np.log(10), rel=1e-9)


def test_what_a_row_lacks_is_no_surprise():
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=300), "y": rng.normal(size=300), "z": rng.normal(size=300)}
    density = bb.Density({("x", "y"): bb.Gaussian(covariance="full"), "z": "gaussian"}).fit(table)
    found = density.surprise({"x": 5.0, "y": None, "z": None})
    assert [(e.feature, e.value) for e in found.evidence] == [("x", 5.0)]
    alone = bb.Density().fit({"x": table["x"]}).surprise({"x": 5.0})
    assert found.decibans == pytest.approx(alone.decibans, abs=3.0)
    with pytest.raises(bb.errors.EmptyData, match="the row has no counted value"):
        density.surprise({"x": None, "y": None, "z": None})


def test_of_a_block_every_column_is_weighed_beside_the_others():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    table = {"x": x, "y": x + 0.1 * rng.normal(size=500), "z": rng.normal(size=500)}
    for features in ({("x", "y"): bb.Gaussian(covariance="full")}, {("x", "y"): bb.KernelDensity()}):
        density = bb.Density(features).fit(table)
        found = {e.feature: e.decibans for e in density.surprise({"x": 1.0, "y": -1.0, "z": 0.0}).evidence}
        assert found["x"] < -20 and found["y"] < -20 and -5 < found["z"] < 5
    usual = (density.score_samples(density.sample(1000)) - log_sum(density._marginal(
        {name: density.sample(1000)[name] for name in "yz"}))).mean()  # fmt: skip
    given = density.log_probability({"x": 1.0}, given={"y": -1.0, "z": 0.0})
    assert found["x"] == pytest.approx((given - usual) * 10 / np.log(10), rel=1e-6)


def test_a_text_and_a_block_of_occurrences_surprise_as_one():
    rng = np.random.default_rng(0)
    texts = ["we met at noon for lunch in town today"] * 30 + ["nobody of us was there at noon for that lunch"] * 30
    table = {"note": texts, **{f"n{j}": rng.poisson(1, 60) for j in range(3)}}
    density = bb.Density({"note": bb.Text(), ("n0", "n1", "n2"): bb.Occurrences()}).fit(table)
    found = density.surprise({"note": "lunch lunch lunch lunch", "n0": 9, "n1": 0, "n2": 0})
    assert {e.feature for e in found.evidence} == {"note", "n0 + n1 + n2"}
    assert all(np.isfinite(e.decibans) for e in found.evidence)


def test_what_cannot_occur_is_infinitely_surprising():
    density = bb.Density(how="mle").fit({"s": ["a", "b", "a"], "t": ["c", "c", "d"]})
    found = density.surprise({"s": "a", "t": "e"})
    assert found.decibans == -np.inf and found.evidence[0].decibans == -np.inf
    assert found.to_dict()["decibans"] == "-inf" and np.isfinite(found.evidence[1].decibans)


def test_nothing_is_given_where_given_is_none_and_what_names_no_column_is_refused():
    weather = bb.datasets.play_tennis()
    assert bb.independence(weather, "outlook", "play", given=None) == bb.independence(weather, "outlook", "play")
    assert bb.independence(weather, "outlook", "play", given=["wind"]).given == ("wind",)
    for wrong in (5, [["wind"]], ["wind", 3], 1.5):
        with pytest.raises(
            errors.BadSetting, match="given must be the name of a column, a list of such names, or None"
        ):
            bb.independence(weather, "outlook", "play", given=wrong)
    for a, b, which in ((["outlook"], "play", "a"), ("outlook", 7, "b"), (None, "play", "a")):
        with pytest.raises(errors.BadSetting, match=f"{which} must be the name of a column"):
            bb.independence(weather, a, b)


# Rows far from every class -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("far", [1e3, 1e10, -1e150])
def test_a_constant_column_swallows_nothing_that_is_asked(far: float) -> None:
    x = [0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.5]
    table = {"x": x, "w": list("uuuvvvvv"), "constant": [5.0] * 8, "y": list("aaaabbbb")}
    families = {"x": bb.Gaussian(), "constant": bb.Gaussian()}
    density = bb.Density.from_model(bb.estimate(bb.count(table, "y", features=families)))

    def asked(constant: float) -> list[float]:
        evidence = density.surprise({"x": 2.25, "w": "u", "constant": constant}).evidence
        return [
            density.probability({"w": "u"}, given={"x": 2.25, "constant": constant}),
            density.probability({"w": ["u", "v"]}, given={"x": 2.25, "constant": constant}),
            density.log_probability({"x": 2.25}, given={"constant": constant, "w": "u"}),
            density.log_probability({"x": 2.25}, given={"constant": constant, "w": ["u", "v"]}),
            *sorted(e.decibans for e in evidence if e.feature != "constant"),
        ]

    assert asked(far) == pytest.approx(asked(5.0), rel=1e-9)


def test_what_is_given_in_a_block_stays_beside_what_is_given_elsewhere() -> None:
    rng = np.random.default_rng(2)
    table: dict[str, Any] = {"u": rng.normal(size=40), "k": np.full(40, 3.0), "y": ["p", "q"] * 20}
    table["v"] = table["u"] + rng.normal(size=40) + np.tile([0.0, 2.0], 20)
    families: Any = {("u", "v"): bb.Gaussian(covariance="full"), "k": bb.Gaussian()}
    density = bb.Density.from_model(bb.estimate(bb.count(table, "y", features=families)))
    wanted = density.log_probability({"u": 0.5, "v": 1.0}) - density.log_probability({"v": 1.0})
    for k in (3.0, 1e12):
        assert density.log_probability({"u": 0.5}, given={"v": 1.0, "k": k}) == pytest.approx(wanted, rel=1e-9)


# Distributions over values -------------------------------------------------------------------------------------------


def test_query_has_the_probability_of_every_value_and_of_every_combination():
    weather = bb.datasets.play_tennis()
    density = bb.Density(features={("outlook", "play"): bb.Joint()}).fit(weather)
    for of in ("outlook", "play", "wind", ("outlook", "wind"), ["play", "outlook"]):
        for known in (None, {"humidity": "high"}, {"temperature": ["hot", "mild"]}):
            found = density.query(of, known)
            assert sum(found.values()) == pytest.approx(1.0)
            for value, p in found.items():
                event = {of: value} if isinstance(of, str) else dict(zip(of, value, strict=True))
                assert p == pytest.approx(density.probability(event, known))
    sunny = density.query("play", {"outlook": "sunny"})
    assert (
        sunny["no"]
        == pytest.approx(density.probability({"play": "no"}, {"outlook": "sunny"}))
        != density.query("play")["no"]
    )


def test_query_of_flags_and_of_a_mixture():
    rain = {"rain": ["rain", "sun", "rain", "rain"], "late": [True, False, True, False], "x": [1.0, 2.0, 3.0, 4.0]}
    features = {"rain": bb.Bernoulli(yes="rain"), "late": "bernoulli"}
    density = bb.Density(features=features, how="mle").fit(rain)
    assert density.query("rain") == pytest.approx({"not rain": 0.25, "rain": 0.75})
    assert density.query("late") == {False: 0.5, True: 0.5}
    mixture = bb.Mixture(2, seed=1).fit(bb.datasets.play_tennis())
    assert sum(mixture.query("play", {"wind": "weak"}).values()) == pytest.approx(1.0)


def test_query_asks_for_columns_whose_values_are_listed():
    density = bb.Density(features={"n": bb.Bernoulli(threshold=2.0)}).fit(
        {"x": [1.5, 2.5, 2.0], "n": [1.0, 2.0, 3.0], "c": ["a", "b", "a"]}
    )
    for name in ("x", "n"):
        with pytest.raises(
            errors.BadSetting, match=f"of must be columns with a list of values.*Got \"'{name}' of family"
        ):
            density.query(name)
    for of in ([], ("c", "c"), 3, None):
        with pytest.raises(errors.BadSetting, match="of must be a column, or several different columns"):
            density.query(of)
    with pytest.raises(errors.UnknownColumn):
        density.query("d")
    with pytest.raises(errors.BadSetting, match="'c' is in both"):
        density.query("c", {"c": "a"})
    with pytest.raises(errors.BadSetting, match="given must be a mapping"):
        density.query("c", "a")
