"""Blocks: columns modelled together. Their sums meet the laws, and their answers are those of other implementations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csr_array
from scipy.stats import multivariate_t, norm
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.metrics import mutual_info_score
from sklearn.model_selection import StratifiedKFold

import banbury as bb
import by_shape
from banbury import _core, errors
from banbury.families.column_tree import pairs_of
from banbury.families.joint import table_of
from banbury.insight.dependence import informative_words
from banbury.insight.dependence.densities import bits_of_normals
from banbury.insight.dependence.testing import group_block, measure_block
from banbury.reading import encode, read
from banbury.tally.tally import count_rows

NAMES = ("a", "b", "c", "d")
IRIS, SPECIES = load_iris(return_X_y=True)
FLOWERS = dict(zip(NAMES, IRIS.T, strict=True))
FULL, TIED = bb.Gaussian(covariance="full"), bb.Gaussian(covariance="tied")


def some(rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: column[rows] for name, column in FLOWERS.items()}


# Discriminant analysis -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "peer"),
    [
        (FULL, QuadraticDiscriminantAnalysis(solver="eigen")),
        (TIED, LinearDiscriminantAnalysis(solver="lsqr")),
        (TIED, LinearDiscriminantAnalysis(solver="eigen")),
    ],
)
@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_posteriors_are_those_of_discriminant_analysis(family, peer, data):
    X, y = data(return_X_y=True)
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    model = bb.estimate(bb.count(X, y, features={names: family}), how="mle")
    assert model.posterior(X) == pytest.approx(peer.fit(X, y).predict_proba(X), abs=1e-8)


def test_two_blocks_and_a_column_are_independent_of_each_other():
    tally = bb.count(FLOWERS, SPECIES, features={("a", "b"): FULL, ("c",): FULL})
    model = bb.estimate(tally, how="mle")
    joint = model.log_prior
    for names, family in ((("a", "b"), FULL), (("c",), FULL), (("d",), None)):
        own = {name: FLOWERS[name] for name in names}
        part = bb.estimate(bb.count(own, SPECIES, features={names: family} if family else "auto"), how="mle")
        joint = joint + part.log_joint(own) - part.log_prior
    assert model.log_joint(FLOWERS) == pytest.approx(joint, rel=1e-9)


def test_a_block_of_one_column_is_that_column():
    alone = bb.estimate(bb.count({"a": FLOWERS["a"]}, SPECIES, features="gaussian"), how="predictive")
    block = bb.estimate(bb.count({"a": FLOWERS["a"]}, SPECIES, features={("a",): FULL}), how="predictive")
    assert block.log_joint({"a": FLOWERS["a"]}) == pytest.approx(alone.log_joint({"a": FLOWERS["a"]}), rel=1e-6)


def test_the_predictive_distribution_is_students():
    tally = bb.count(some(np.arange(50)), SPECIES[:50], features={NAMES: FULL})
    model = bb.estimate(tally, how="predictive")
    group = model.parameters[0]
    origin, unit = np.array(tally.schema.features[0].scales).T
    student = multivariate_t(
        origin + unit * group.mean[0], unit[:, None] * group.covariance[0] * unit, df=float(group.nu[0])
    )
    assert model.log_joint(FLOWERS)[:, 0] == pytest.approx(student.logpdf(IRIS), rel=1e-9)


@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive", "gibbs"])
@pytest.mark.parametrize(
    "family", [FULL, TIED, bb.Gaussian(covariance="full", prior=bb.NormalInverseGamma(2, 3, 1.5, 4))]
)
def test_every_estimate_answers(how, family):
    model = bb.estimate(bb.count(FLOWERS, SPECIES, features={NAMES: family}), how=how)
    posterior = model.posterior(FLOWERS)
    assert np.isfinite(posterior).all()
    assert posterior.sum(axis=1) == pytest.approx(1.0)
    assert (model.predict(FLOWERS) == SPECIES).mean() > 0.9
    drawn = model.sample(3000, seed=1)
    assert np.mean(drawn["c"]) == pytest.approx(IRIS[:, 2].mean(), abs=0.3)


# Laws ----------------------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(st.floats(-50, 50, width=32), st.sampled_from([1e12, -1e9, 0.1]))
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from("pq")), min_size=2, max_size=12)


@given(rows=ROWS, cut=st.integers(0, 12), order=st.randoms(use_true_random=False))
def test_products_add_subtract_and_do_not_care_for_order(rows, cut, order):
    def table(some):
        return {"x": [r[0] for r in some], "y": [r[1] for r in some]}, [r[2] for r in some]

    base = bb.count({"x": [0.0, 1.0, 2.0], "y": [1.0, 0.0, 3.0]}, ["p", "q", "p"], features={("x", "y"): FULL})
    whole = base + base.count(*table(rows))
    cut = min(cut, len(rows) - 1)
    parts = base
    for part in (rows[:cut], rows[cut:]):
        parts = parts + base.count(*table(part)) if part else parts
    assert parts == whole
    shuffled = rows[:]
    order.shuffle(shuffled)
    assert base + base.count(*table(shuffled)) == whole
    assert whole - base.count(*table(rows)) == base
    assert base.count(*table(rows), weights=[2] * len(rows)) == base.count(*table(rows + rows))
    assert base.count(*table(rows)) * 2 == base.count(*table(rows + rows))


def test_one_thread_equals_eight():
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=(30_000, 5))]
    classes = rng.integers(-1, 3, 30_000).astype(np.int32)
    scale = np.zeros(5), np.ones(5)
    one, eight = (_core.count_products(columns, *scale, classes, 3, None, threads) for threads in (1, 8))
    assert all(a.same(b) for a, b in zip(one, eight, strict=True))
    n, sums = one
    own = columns[0][classes == 1]
    assert n.value[1] == len(own)
    first, second = np.tril_indices(5)
    assert sums.values(-57)[1, :5] == pytest.approx(own.sum(axis=0), rel=1e-10)
    assert sums.values(-114)[1, 5:] == pytest.approx((own[:, first] * own[:, second]).sum(axis=0), rel=1e-10)


def test_tallies_of_other_origins_meet_by_to():
    first = bb.count(some(np.arange(0, 150, 2)), SPECIES[::2], features={NAMES: FULL})
    shifted = {name: column + 100.0 for name, column in FLOWERS.items()}
    other = bb.count(shifted, SPECIES, features={NAMES: FULL})
    with pytest.raises(errors.SchemaMismatch):
        first + other
    again = other.to(first.schema)
    assert again == first.count(shifted, SPECIES)


@pytest.mark.parametrize("family", [FULL, TIED])
def test_cross_validation_is_refitting(family):
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found = bb.cross_validate(FLOWERS, SPECIES, features={NAMES: family}, folds=folds)
    for train, test in folds.split(IRIS, SPECIES):
        model = bb.estimate(bb.count(some(train), SPECIES[train], features={NAMES: family}))
        assert found.posteriors[test] == pytest.approx(model.posterior(some(test)), abs=1e-9)


def test_joint_tables_cross_validate_as_refitted():
    weather = bb.datasets.play_tennis()
    block = {("outlook", "wind"): bb.Joint()}
    play = np.array(weather["play"])
    folds = StratifiedKFold(5)
    found = bb.cross_validate(weather, target="play", features=block, folds=folds)
    for train, test in folds.split(play, play):
        part = {name: [column[i] for i in train] for name, column in weather.items()}
        model = bb.estimate(bb.count(part, target="play", features=block))
        rows = {name: [column[i] for i in test] for name, column in weather.items()}
        assert found.posteriors[test] == pytest.approx(model.posterior(rows), abs=1e-12)


CELLS = st.lists(
    st.tuples(st.sampled_from(["x", "y", None]), st.sampled_from([0, 1, 2]), st.sampled_from("pq")),
    min_size=1,
    max_size=15,
)


@given(rows=CELLS, more=CELLS)
def test_joint_tables_add_and_subtract(rows, more):
    def table(some):
        return {"a": [r[0] for r in some], "b": [r[1] for r in some]}, [r[2] for r in some]

    base = bb.count({"a": ["x", "y"], "b": [0, 1]}, ["p", "q"], features={("a", "b"): bb.Joint()})
    one, two = base.count(*table(rows)), base.count(*table(more))
    assert one + two == two + one
    assert base + one + two - one == base + two
    assert base.count(*table(rows + more)) == one + two
    model = bb.estimate(base + one)
    posterior = model.posterior(table(more)[0])
    assert np.isfinite(posterior).all()
    assert posterior.sum(axis=1) == pytest.approx(1.0)


def test_blocks_are_saved_and_loaded(tmp_path: Path):
    frame = pd.DataFrame(FLOWERS).assign(kind=np.where(IRIS[:, 0] > 6, "long", "short"), even=np.arange(150) % 2)
    blocks = {("a", "b"): FULL, ("kind", "even"): bb.Joint(alpha=0.5)}
    model = bb.estimate(bb.count(frame, SPECIES, features=blocks, weights=np.linspace(0.5, 2, 150)))
    bb.save(model, tmp_path / "blocks.banbury")
    again = bb.load(tmp_path / "blocks.banbury")
    assert isinstance(again, bb.Model)
    assert again.tally == model.tally
    assert again.posterior(frame) == pytest.approx(model.posterior(frame), abs=1e-12)


# What is said, and what is refused -----------------------------------------------------------------------------------


def test_a_row_with_gaps_is_scored_by_what_it_has():
    model = bb.estimate(bb.count(FLOWERS, SPECIES, features={NAMES: FULL}), how="mle")
    three = bb.estimate(bb.count({n: FLOWERS[n] for n in "acd"}, SPECIES, features={("a", "c", "d"): FULL}), how="mle")
    gaps = FLOWERS | {"b": np.full(150, np.nan)}
    assert model.posterior(gaps) == pytest.approx(three.posterior({n: FLOWERS[n] for n in "acd"}), abs=1e-9)
    nothing = {name: np.full(1, np.nan) for name in NAMES}
    assert model.posterior(nothing) == pytest.approx(np.full((1, 3), 1 / 3))


def test_explanations_name_the_block_and_its_values():
    model = bb.estimate(bb.count(FLOWERS, SPECIES, features={("a", "b"): FULL}))
    why = model.explain({"a": 5.1, "b": 3.5, "c": 1.4, "d": 0.2})
    assert [e.feature for e in why.evidence if "+" in e.feature] == ["a + b"]
    assert "5.1, 3.5" in str(why)
    assert set(model.likelihood("a + b", (5.1, 3.5))) == {0, 1, 2}


def test_a_class_with_fewer_rows_than_columns_is_mended_with_a_warning():
    rows = np.r_[0:3, 50:100]
    tally = bb.count(some(rows), SPECIES[rows], features={NAMES: FULL})
    with pytest.warns(bb.BanburyWarning, match="class of 3 rows.*no inverse.*tied"):
        model = bb.estimate(tally)
    assert np.isfinite(model.posterior(FLOWERS)).all()
    assert np.isfinite(bb.estimate(tally, how="predictive").posterior(FLOWERS)).all()


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({("a", "b"): "gaussian"}, "a family that models columns jointly"),
        ({("a", "b"): FULL, "a": "poisson"}, "'a' in two places"),
        ({("a", "b"): FULL, ("b", "c"): FULL}, "'b' in two places"),
        ({("a", "smoke"): FULL}, "smoke"),
        ({(): FULL}, "no columns"),
        ({("a", "b"): bb.Text()}, "a family that models columns jointly"),
    ],
)
def test_blocks_that_cannot_be(features, said):
    with pytest.raises(errors.BanburyError, match=said):
        bb.count(FLOWERS, SPECIES, features=features)


@pytest.mark.parametrize(
    "settings",
    [{"covariance": "round"}, {"covariance": "full", "variance": "shared"}, {"covariance": "full", "smoothing": 0.1}],
)
def test_settings_that_cannot_be(settings):
    with pytest.raises(errors.BadSetting):
        bb.Gaussian(**settings)


def test_rows_that_were_never_counted_cannot_be_forgotten():
    tally = bb.count(FLOWERS, SPECIES, features={NAMES: FULL})
    with pytest.raises(errors.BanburyError):
        tally - tally.count({name: column + 1e6 for name, column in FLOWERS.items()}, SPECIES)
    joint = bb.count({"a": ["x", "y"], "b": [0, 1]}, ["p", "q"], features={("a", "b"): bb.Joint()})
    with pytest.raises(errors.NegativeCount):
        joint - joint.count({"a": ["x"], "b": [1]}, ["p"])


# Cells: histograms and kernel densities of several columns -----------------------------------------------------------

HISTOGRAMS = [bb.Histogram(), bb.Histogram(bins=4), bb.Histogram(bins="mdl"), bb.Histogram(start=0, width=(1.0, 0.5))]
KERNELS = [
    bb.KernelDensity(),
    bb.KernelDensity(bandwidth="leave-one-out"),
    bb.KernelDensity("epanechnikov", "silverman"),
    bb.KernelDensity("box", (0.4, 0.7)),
]
PETALS = {"c": FLOWERS["c"], "d": FLOWERS["d"]}
every_grid = pytest.mark.parametrize("family", [*HISTOGRAMS, *KERNELS], ids=str)


@every_grid
def test_densities_of_two_columns_integrate_to_one(family):
    model = bb.estimate(bb.count(PETALS, ["all"] * 150, features={("c", "d"): family}))
    n = 700  # x = tan(u) takes the whole line into a finite interval
    u = (np.arange(n) + 0.5) / n * np.pi - np.pi / 2
    x, scale = 3.0 * np.tan(u) + 2.0, 3.0 / np.cos(u) ** 2 * np.pi / n
    columns = dict(zip("cd", (axis.ravel() for axis in np.meshgrid(x, x, indexing="ij")), strict=True))
    total = float((np.exp(model.log_joint(columns)[:, 0]) * np.outer(scale, scale).ravel()).sum())
    assert total == pytest.approx(1.0, abs=0.01)


@every_grid
def test_what_a_row_lacks_is_integrated_out(family):
    model = bb.estimate(bb.count(PETALS, SPECIES, features={("c", "d"): family}))
    d = (np.arange(60_000) + 0.5) / 1000 - 30.0
    for c in (1.4, 4.61, 8.3):
        both = np.exp(model.log_joint({"c": np.full(len(d), c), "d": d}) - model.log_prior).sum(axis=0) / 1000
        alone = np.exp(model.log_joint({"c": [c], "d": [None]}) - model.log_prior)[0]
        assert alone == pytest.approx(both, rel=2e-3)
    assert model.posterior({"c": [None], "d": [None]}) == pytest.approx(np.full((1, 3), 1 / 3))


@every_grid
def test_a_block_of_one_column_has_that_columns_density(family):
    if isinstance(getattr(family, "bandwidth", getattr(family, "width", None)), tuple) or family.settings().get(
        "width"
    ):
        family = bb.KernelDensity("box", 0.4)
    alone = bb.estimate(bb.count({"a": FLOWERS["a"]}, SPECIES, features=family))
    block = bb.estimate(bb.count({"a": FLOWERS["a"]}, SPECIES, features={("a",): family}))
    if getattr(family, "bandwidth", None) == "leave-one-out":  # which is searched in larger steps
        (bump,) = block.parameters[0].kernels
        assert bump.bandwidth[:, 0] == pytest.approx(alone.parameters[0].kernels[0].bandwidth[:, 0], rel=0.1)
        return
    rows = {"a": [*FLOWERS["a"], 0.0, 12.7, 1e6, -1e300, None]}
    assert block.log_joint(rows) == pytest.approx(alone.log_joint(rows), rel=1e-9)


@every_grid
def test_cells_cross_validate_explain_and_save(family, tmp_path: Path):
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found = bb.cross_validate(PETALS, SPECIES, features={("c", "d"): family}, folds=folds)
    assert found.accuracy.value > 0.75
    whole = bb.count(PETALS, SPECIES, features={("c", "d"): family})
    for train, test in folds.split(IRIS, SPECIES):
        rows = {name: column[train] for name, column in PETALS.items()}
        model = bb.estimate(whole.count(rows, SPECIES[train]))
        left = {name: column[test] for name, column in PETALS.items()}
        assert found.posteriors[test] == pytest.approx(model.posterior(left), abs=1e-12)
    model = bb.estimate(whole)
    why = model.explain({"c": 4.5, "d": 1.4})
    log_joint = model.log_joint({"c": [4.5], "d": [1.4]})[0]
    assert why.log_odds == pytest.approx(log_joint[why.winner] - log_joint[why.against], abs=1e-9)
    assert "c + d" in str(why)
    bb.save(model, tmp_path / "cells.banbury")
    again = bb.load(tmp_path / "cells.banbury")
    np.testing.assert_array_equal(again.log_joint(PETALS), model.log_joint(PETALS))
    assert again.tally == model.tally


@every_grid
def test_samples_have_the_density(family):
    model = bb.estimate(bb.count(PETALS, SPECIES, features={("c", "d"): family}))
    drawn = model.sample(60_000, seed=3)
    label = next(name for name in drawn if name not in PETALS)
    for c in range(3):
        own = drawn[label] == c
        for name, (low, high) in {"c": (4.0, 5.5), "d": (0.9, 1.9)}.items():
            x = low + (np.arange(4000) + 0.5) / 4000 * (high - low)
            points = {n: x if n == name else np.full(4000, np.nan) for n in PETALS}
            wanted = float(np.exp(model.log_joint(points)[:, c] - model.log_prior[c]).mean() * (high - low))
            between = (drawn[name][own] >= low) & (drawn[name][own] < high)
            assert between.mean() == pytest.approx(wanted, abs=0.015)
        if (
            isinstance(family, bb.KernelDensity) and family.kernel == "normal"
        ):  # columns that go together are drawn together
            own_rows = np.corrcoef(PETALS["c"][c == SPECIES], PETALS["d"][c == SPECIES])[0, 1]
            assert np.corrcoef(drawn["c"][own], drawn["d"][own])[0, 1] == pytest.approx(own_rows, abs=0.25)


def many_rows(n: int = 40_000) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=n), rng.integers(0, 2, n)
    return {"x": x + y, "y": 0.6 * x + rng.normal(size=n) ** 3, "z": rng.exponential(size=n)}, y


def test_cells_are_joined_by_the_totals_alone():
    columns, y = many_rows()
    whole = bb.count(columns, y, features={("x", "y", "z"): bb.KernelDensity()})
    assert 4096 < len(by_shape.counts(whole).keys[0]) <= 16_384
    assert whole.schema.features[0].unit > 1.0
    base = bb.count({n: c[:1000] for n, c in columns.items()}, y[:1000], features={("x", "y", "z"): bb.KernelDensity()})
    assert base.schema.features[0].unit == 1.0
    order = np.random.default_rng(1).permutation(len(y))
    parts = [base.count({n: c[some] for n, c in columns.items()}, y[some]) for some in np.array_split(order, 7)]
    assert sum(parts) == whole
    assert sum(reversed(parts)) == whole
    assert (whole + parts[0]) - parts[0] == whole
    ones = bb.count(columns, y, features={("x", "y", "z"): bb.KernelDensity()}, threads=1)
    assert ones == whole
    assert list(by_shape.counts(ones).keys) == list(by_shape.counts(whole).keys)


def test_rows_of_no_weight_widen_no_cells():
    columns, y = many_rows()
    weights = np.where(np.arange(len(y)) < 1000, 1.0, 0.0)
    few = bb.count(columns, y, features={("x", "y", "z"): bb.KernelDensity()}, weights=weights)
    assert few.schema.features[0].unit == 1.0
    assert few.n_rows == 1000


def test_bandwidths_left_out_are_likelier_than_scotts():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(-4, 0.3, 600), rng.normal(4, 0.3, 600)])
    two = {"x": x, "y": np.where(np.arange(1200) % 3, 1.0, -1.0) * 3 + rng.normal(0, 1.0, 1200)}
    learn, test = np.arange(1200) % 2 == 0, np.arange(1200) % 2 == 1
    scores = {}
    for rule in ("scott", "silverman", "leave-one-out"):
        density = bb.Density(features={("x", "y"): bb.KernelDensity(bandwidth=rule)})
        density.fit({name: column[learn] for name, column in two.items()})
        scores[rule] = density.score({name: column[test] for name, column in two.items()})
    assert scores["leave-one-out"] > scores["scott"] + 100
    assert scores["leave-one-out"] > scores["silverman"] + 100


def test_the_bandwidth_left_out_is_the_best_of_many():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=300), rng.exponential(size=300)
    features = {("x", "y"): bb.KernelDensity(bandwidth="leave-one-out")}
    tally = bb.count({"x": x, "y": y}, ["all"] * 300, features=features)
    (chosen,) = bb.estimate(tally).parameters[0].kernels[0].bandwidth
    keys, rows = by_shape.counts(tally).feature(0)
    centres, weights = np.array(keys) + 0.5, rows.value[:, 0]
    every = np.arange(len(keys))

    def likelihood(h: np.ndarray) -> float:
        return float(weights @ _core.kernels_left_out("normal", centres, weights, h, every, 1))

    best = likelihood(chosen)
    for factor in np.exp(rng.normal(0, 0.7, (300, 2))):
        assert likelihood(chosen * factor) <= best + 0.02 * abs(best) / 300


def test_kernel_sums_are_those_of_scipy():
    from scipy.stats import norm

    model = bb.estimate(bb.count(PETALS, SPECIES, features={("c", "d"): bb.KernelDensity(bandwidth=(0.3, 0.2))}))
    keys, rows = by_shape.counts(model.tally).feature(0)
    widths = [width for _, width in model.schema.features[0].scales]
    centres = (np.array(keys) + 0.5) * widths
    points = np.column_stack([np.linspace(0, 8, 50), np.linspace(3, 0, 50)])
    bumps = norm.pdf(points[:, None, 0], centres[:, 0], 0.3) * norm.pdf(points[:, None, 1], centres[:, 1], 0.2)
    wanted = np.log(bumps @ rows.value / rows.value.sum(axis=0))
    found = model.log_joint({"c": points[:, 0], "d": points[:, 1]}) - model.log_prior
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_the_share_of_empty_cells_of_a_histogram():
    columns = {"x": [0.5, 1.5, 2.5, 3.5], "y": [0.5, 0.5, 1.5, 1.5]}
    tally = bb.count(columns, list("ppqq"), features={("x", "y"): bb.Histogram(start=0, width=1)})
    assert tally.empty_cells == {"x + y": 0.5}  # four of four times two
    assert "4 cells occupied" in str(tally)
    assert tally.n_parameters() == 2 * (6 * 4 - 1) + 1
    kernels = bb.count(columns, list("ppqq"), features={("x", "y"): bb.KernelDensity()})
    assert kernels.empty_cells == {}


def test_the_cuts_of_a_blocks_columns_are_those_of_the_columns():
    family = bb.Histogram(bins="mdl")
    block = bb.estimate(bb.count(PETALS, SPECIES, features={("c", "d"): family}))
    apart = bb.estimate(bb.count(PETALS, SPECIES, features=family))
    for name in PETALS:
        assert block.cuts(name) == apart.cuts(name)
    with pytest.raises(errors.BadSetting, match="one column of the block: c, d"):
        block.cuts("c + d")


def test_families_of_cells_are_exchanged_without_counting_again():
    tally = bb.count(PETALS, SPECIES, features={("c", "d"): bb.Histogram()})
    smooth = bb.estimate(tally, features={("c", "d"): bb.KernelDensity(bandwidth="leave-one-out")})
    again = bb.estimate(bb.count(PETALS, SPECIES, features={("c", "d"): bb.KernelDensity(bandwidth="leave-one-out")}))
    assert smooth.log_joint(PETALS) == pytest.approx(again.log_joint(PETALS), rel=1e-12)


def test_more_columns_than_rows_are_no_problem_for_cells():
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=6) for j in range(9)}
    for family in (bb.KernelDensity(), bb.KernelDensity(bandwidth="leave-one-out"), bb.Histogram(bins=2)):
        model = bb.estimate(bb.count(columns, list("pppqqq"), features={tuple(columns): family}))
        posterior = model.posterior(columns)
        assert np.isfinite(posterior).all()
        assert posterior.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({("a", "b"): bb.KernelDensity(bandwidth=(0.1, 0.2, 0.3))}, "one for each of the 2 columns"),
        ({("a", "b"): bb.Histogram(start=(0, 0), width=(1, 2, 3))}, "one for each of the 2 columns"),
        ({"a": bb.KernelDensity(bandwidth=(0.1, 0.2))}, "only a block takes several"),
        ({"a": bb.Histogram(start=(0,), width=(1,))}, "only a block takes several"),
    ],
)
def test_settings_of_cells_that_cannot_be(features, said):
    with pytest.raises(errors.BadSetting, match=said):
        bb.count(FLOWERS, SPECIES, features=features)


@pytest.mark.parametrize("family", [bb.KernelDensity(), bb.Histogram()])
def test_an_infinite_value_in_a_block_is_named(family):
    tally = bb.count(PETALS, SPECIES, features={("c", "d"): family})
    rows = {"c": [1.0, 2.0], "d": [0.1, np.inf]}
    for act in (bb.estimate(tally).predict, lambda given: tally.count(given, [0, 1])):
        with pytest.raises(errors.BadValue, match=r"row 1 of column 'd'.*infinite"):
            act(rows)
    with pytest.raises(errors.BanburyError, match="'d'"):
        bb.count({"c": [1.0, 2.0], "d": ["x", "y"]}, [0, 1], features={("c", "d"): family})


def test_cells_of_rows_never_counted_cannot_be_forgotten():
    tally = bb.count(PETALS, SPECIES, features={("c", "d"): bb.KernelDensity()})
    with pytest.raises(errors.NegativeCount):
        tally - tally.count({"c": [100.0], "d": [100.0]}, [0])


@pytest.mark.parametrize("family", [bb.KernelDensity(), bb.Histogram(), FULL, bb.Joint()], ids=str)
def test_of_rows_that_have_faded_to_nothing_there_is_no_model(family):
    faded = bb.count(PETALS, SPECIES, features={("c", "d"): family}) * 1e-9 * 1e-9 * 1e-9
    assert (faded.n_rows, faded.classes) == (0, ())
    with pytest.raises(errors.EmptyData, match="the tally has no class"):
        bb.estimate(faded)


# Looking -------------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
KIND = RNG.integers(0, 2, 300)
TIMES = RNG.poisson(np.array([[3, 0.5, 1, 0.2], [0.4, 2, 1, 0.5]])[KIND]).astype(float)
LABELS = np.array(["ham", "spam"])[KIND]
WORDS = tuple(f"w{j}" for j in range(4))
EVERYTHING = {
    **dict(zip(WORDS, TIMES.T, strict=True)),
    "x": KIND + RNG.normal(size=300),
    "colour": RNG.choice(["red", "green"], 300),
    "size": RNG.choice(["s", "m", "l"], 300),
    "flag": RNG.random(300) < 0.3 + 0.4 * KIND,
}
EVERYTHING["z"] = EVERYTHING["x"] + RNG.normal(size=300)
BLOCKS = {WORDS: bb.Occurrences(), ("x", "z"): FULL, ("colour", "size"): bb.Joint()}
NAMED = ["w0 … w3", "x + z", "colour + size"]


def test_what_a_joint_table_tells_is_that_of_one_column_with_its_combinations():
    even = np.arange(400) % 2
    table = {"a": (np.arange(400) // 2) % 2, "b": (even + np.arange(400) // 2) % 2}
    block = {("a", "b"): bb.Joint()}
    combined = [f"{a} {b}" for a, b in zip(table["a"], table["b"], strict=True)]
    assert bb.mutual_information(bb.count(table, even, features=block))["a + b"] == pytest.approx(1.0)
    assert mutual_info_score(combined, even) / np.log(2) == pytest.approx(1.0)
    apart, together = (bb.diagnose(table, even, features=given) for given in ("categorical", block))
    assert [u.feature for u in apart.uninformative] == ["a", "b"]
    assert together.uninformative == () and together.columns[0].bits == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("apart", [0.5, 1.5, 4.0])
def test_what_normal_distributions_tell_depends_on_how_far_apart_they_are(apart):
    mix = np.array([[2.0, 0.0], [1.0, 0.5]])
    means = np.array([[0.0, 0.0], [apart, 0.0]]) @ mix.T
    found = bits_of_normals(np.array([0.3, 0.7]), means, np.array([mix @ mix.T] * 2))
    x = np.linspace(-9, 9 + apart, 40_001)
    each = np.stack([norm.pdf(x), norm.pdf(x, apart)])
    mixture = 0.3 * each[0] + 0.7 * each[1]
    nats = sum(p * np.trapezoid(f * np.log(f / mixture), x) for p, f in zip((0.3, 0.7), each, strict=True))
    assert found == pytest.approx(nats / np.log(2), abs=0.005)


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_a_block_of_noise_tells_something_as_often_as_the_test_says(covariance):
    rng, names, alarms = np.random.default_rng(3), ("x0", "x1", "x2"), 0
    for _ in range(100):
        noise = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 3))
        tally = bb.count(noise, np.arange(30) % 2, features={names: bb.Gaussian(covariance=covariance)})
        told = measure_block(by_shape.products(tally)[0], covariance == "tied", 1.0)
        alarms += told.p < 0.05
    assert alarms <= 12  # 5 are expected


def test_a_block_tells_by_its_covariance_alone_unless_that_is_tied():
    rng = np.random.default_rng(4)
    kinds = np.arange(400) % 2
    table = {"a": rng.normal(size=400)}
    table["b"] = np.where(kinds == 0, 1.0, -1.0) * table["a"] + 0.3 * rng.normal(size=400)
    full, tied = (bb.diagnose(table, kinds, features={("a", "b"): family}) for family in (FULL, TIED))
    assert full.columns[0].bits > 0.4 and not full.uninformative
    assert [u.feature for u in tied.uninformative] == ["a + b"]


@pytest.mark.parametrize("rows", [6, 40])
def test_columns_that_lie_in_a_plane_and_few_rows_are_borne(rows):
    kinds = np.arange(rows) % 3
    flat = {"a": kinds + np.linspace(0, 0.1, rows), "b": np.ones(rows), "c": np.arange(rows) * 1.0}
    flat["d"] = 2.0 * flat["a"]
    diagnosis = bb.diagnose(flat, kinds, features={tuple("abcd"): FULL})
    assert diagnosis.columns[0].bits > 0 and diagnosis.columns[0].p < 0.05
    nothing = bb.diagnose({"a": np.ones(rows), "b": np.ones(rows)}, kinds, features={("a", "b"): FULL})
    assert nothing.uninformative[0].why == "too few rows, or one value only"


def test_pairs_of_one_block_are_not_compared_and_those_with_other_columns_are():
    apart = bb.diagnose(FLOWERS, SPECIES)
    block = bb.diagnose(FLOWERS, SPECIES, features={("a", "b"): FULL})
    figures = {(p.first, p.second): p.bits for p in apart.pairs}
    assert ("a", "b") in figures and apart.n_pairs == 6
    assert {(p.first, p.second): p.bits for p in block.pairs} == {k: v for k, v in figures.items() if k != ("a", "b")}
    assert block.n_pairs == 5 and "a + b" in block.notes[0]
    assert block.advice.endswith("EvidenceClassifier(), or add c to the block a + b if its family allows it.")
    assert block.to_dict()["blocks"] == {"a + b": ["a", "b"]}
    two = bb.diagnose(FLOWERS, SPECIES, features={("a", "b"): FULL, ("c", "d"): TIED})
    assert two.n_pairs == 4 and two.advice.endswith("make one block of a + b and c + d.")
    assert bb.diagnose(FLOWERS, SPECIES, features={NAMES: FULL}).n_pairs == 0


def test_pairs_of_joint_tables_are_those_of_their_columns():
    table = {"a": list("xxyy") * 50, "b": list("uvuv") * 50, "c": list("xxyy") * 50}
    diagnosis = bb.diagnose(table, np.arange(200) // 4 % 2, features={("a", "b"): bb.Joint()})
    assert [(p.first, p.second, p.duplicated) for p in diagnosis.pairs] == [("a", "c", True)]
    assert diagnosis.n_pairs == 2


@pytest.mark.parametrize("sparsely", [False, True])
def test_columns_of_occurrences_tell_and_pair_as_flags_do(sparsely):
    times = TIMES.copy()
    times[:, 3] = times[:, 0] * (RNG.random(300) < 0.9)
    block = {tuple(f"x{j}" for j in range(4)): bb.Occurrences()}
    data = sparse.csr_array(times) if sparsely else times
    flags = bb.mutual_information(bb.count(times, LABELS, features=bb.Bernoulli(threshold=0.0)))
    tally = bb.count(data, LABELS, features=block)
    found = informative_words(tally)
    assert found == pytest.approx(dict(flags)) and list(found) == list(flags)
    assert bb.mutual_information(tally)["x0 … x3"] == max(flags.values())
    diagnosis, other = (
        bb.diagnose(data, LABELS, features=block),
        bb.diagnose(times, LABELS, features=bb.Bernoulli(threshold=0.0)),
    )
    assert [(p.first, p.second) for p in diagnosis.pairs] == [("x0", "x3")]
    assert diagnosis.pairs[0].bits == pytest.approx(other.pairs[0].bits)


def test_a_block_of_bins_is_cut_column_by_column():
    keys = [(i, j) for i in range(10) for j in range(10)]
    groups = group_block(keys, np.ones((100, 2)), 25)
    assert len(set(groups)) == 25 and set(np.bincount(groups)) == {4}
    assert group_block([], np.zeros((0, 2)), 25).tolist() == []


def test_a_gaussian_block_is_informative_column_by_column_as_its_columns_are():
    apart, block = (bb.estimate(bb.count(FLOWERS, SPECIES, features=f), how="mle") for f in ("gaussian", {NAMES: FULL}))
    for how in (apart, block):
        assert {r.feature for rows in how.informative(4).ratios.values() for r in rows} == set(NAMES)
    pairs = zip(apart.informative(4).ratios.values(), block.informative(4).ratios.values(), strict=True)
    for ours, theirs in pairs:
        assert [(r.feature, r.value) for r in ours] == [(r.feature, r.value) for r in theirs]
        assert [r.ratio for r in ours] == pytest.approx([r.ratio for r in theirs], rel=1e-6)


@pytest.mark.parametrize("settings", [{}, {"model": "bernoulli", "threshold": 0.0}, {"model": "complement"}])
def test_occurrences_have_a_linear_form(settings):
    model = bb.estimate(bb.count(TIMES, LABELS, features=bb.Occurrences(**settings)))
    form = model.linear()
    counts = TIMES if "threshold" not in settings else TIMES > 0
    assert form.words == ["x0", "x1", "x2", "x3"]
    assert form.intercepts + counts @ form.weights == pytest.approx(model.log_joint(TIMES))
    with pytest.raises(errors.BadSetting, match="a text column or a block of occurrences"):
        bb.estimate(bb.count(FLOWERS, SPECIES, features={NAMES: FULL})).linear()


@pytest.mark.parametrize("only", [None, *BLOCKS])
def test_reports_and_figures_name_every_block(only):
    data = EVERYTHING if only is None else {name: EVERYTHING[name] for name in only}
    blocks = BLOCKS if only is None else {only: BLOCKS[only]}
    names = NAMED if only is None else [NAMED[list(BLOCKS).index(only)]]
    model = bb.estimate(bb.count(data, LABELS, features=blocks))
    page = bb.report(model, data, LABELS).html
    told = {t.feature for t in bb.diagnose(data, LABELS, schema=model.schema).columns}
    for name in names:
        assert name in page and name in str(model.tally) and name in told
        assert name in bb.mutual_information(model.tally)
    if ("colour", "size") in blocks:
        assert "6 combinations" in str(model.tally) and "colour + size = green, " in str(model.informative())


def test_another_learner_is_given_the_columns_of_blocks():
    data = {name: EVERYTHING[name] for name in ("x", "z", "colour", "size")}
    settings = {"peer": "logistic_regression", "repeats": 2, "sizes": [60, 120]}
    apart = bb.learning_curve(data, LABELS, **settings)
    blocks = bb.learning_curve(data, LABELS, features={("x", "z"): FULL, ("colour", "size"): bb.Joint()}, **settings)
    assert blocks.peer.mean_accuracy == pytest.approx(apart.peer.mean_accuracy)
    counts = bb.learning_curve(sparse.csr_array(TIMES), LABELS, **settings).peer
    assert counts.mean_accuracy[-1] > 0.8
    dense = bb.learning_curve(TIMES, LABELS, features=bb.Occurrences(), **settings).peer
    assert counts.mean_accuracy == pytest.approx(dense.mean_accuracy)


@pytest.mark.parametrize("family", [bb.Histogram(), bb.KernelDensity()])
def test_blocks_of_bins_are_looked_at(family):
    kinds = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
    model = bb.estimate(bb.count(FLOWERS, kinds, features={("c", "d"): family}))
    alone = bb.diagnose(FLOWERS, kinds)
    diagnosis = bb.diagnose(FLOWERS, kinds, schema=model.schema)
    assert diagnosis.n_pairs == 5 and ("c", "d") not in {(p.first, p.second) for p in diagnosis.pairs}
    assert {p.bits for p in diagnosis.pairs} < {p.bits for p in alone.pairs}
    told = {t.feature: t.bits for t in diagnosis.columns}
    assert told["c + d"] >= max(t.bits for t in alone.columns if t.feature in "cd")
    assert 1.0 < bb.mutual_information(model.tally)["c + d"] < np.log2(3)
    assert model.informative(2).left_aside == ("c + d",)
    assert str(model.informative(2)).endswith("are modelled together: c + d.")
    assert "are modelled together: c + d." in bb.report(model, FLOWERS, kinds).html


def test_joint_tables_are_learned_without_labels_too():
    frame = pd.DataFrame({"colour": EVERYTHING["colour"], "size": EVERYTHING["size"], "x": EVERYTHING["x"]})
    some_labels = np.where(np.arange(300) % 3 == 0, LABELS, None)
    learned = bb.SemiSupervisedClassifier(features={("colour", "size"): bb.Joint()}).fit(frame, some_labels)
    assert (learned.predict(frame) == LABELS).mean() > 0.6


def test_likelihood_asks_for_a_value_of_each_column():
    model = bb.estimate(bb.count(FLOWERS, SPECIES, features={("a", "b"): FULL, ("c",): FULL}))
    assert model.likelihood("c", 1.4) == model.likelihood(("c",), (1.4,))
    assert model.likelihood(("a", "b"), [5.1, 3.5]) == model.likelihood("a + b", (5.1, 3.5))
    for wrong in (5.1, (5.1,), (5.1, 3.5, 1.0), "5.1"):
        with pytest.raises(errors.BadSetting, match=r"as many values as 'a \+ b' has columns \(a, b\)"):
            model.likelihood("a + b", wrong)


# What bad input and large numbers met ---------------------------------------------------------------------------------


def test_a_block_is_scored_by_the_columns_that_rows_have():
    weather = bb.datasets.play_tennis()
    model = bb.estimate(bb.count(weather, target="play", features={("outlook", "wind"): bb.Joint()}))
    rest = {"humidity": ["high"], "temperature": ["hot"], "outlook": ["sunny"]}
    with pytest.warns(bb.BanburyWarning, match="these rows have no column 'wind'"):
        found = model.posterior(rest)
    assert found == pytest.approx(model.posterior(rest | {"wind": [None]}))
    flowers = bb.estimate(bb.count(PETALS, SPECIES, features={("c", "d"): FULL}))
    with pytest.warns(bb.BanburyWarning, match="no column 'd'"):
        assert flowers.posterior({"c": [4.0]}) == pytest.approx(flowers.posterior({"c": [4.0], "d": [None]}))


def test_a_column_named_like_a_block_is_another_feature(tmp_path: Path):
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=20), "b": rng.normal(size=20), "a + b": list("uv") * 10, "y": list("pq") * 10}
    tally = bb.count(table, target="y", features={("a", "b"): bb.Histogram()})
    assert [feature.name for feature in tally.schema.features] == ["a + b", "(a + b)"]
    assert bb.estimate(tally).posterior(table)[:2, 0] == pytest.approx([0.95, 0.05], abs=0.05)
    bb.save(tally, tmp_path / "names.banbury")
    assert bb.load(tmp_path / "names.banbury") == tally
    two = bb.count(
        {"a": [1.0, 2.0], "b + c": [1.0, 2.0], "a + b": [1.0, 2.0], "c": [1.0, 2.0]},
        ["p", "q"],
        features={("a", "b + c"): bb.Histogram(), ("a + b", "c"): bb.Histogram()},
    )
    assert [feature.name for feature in two.schema.features] == ["a + b + c", "(a + b + c)"]


def test_more_rows_than_can_be_counted():
    for features in ("auto", {NAMES: FULL}):
        tally = bb.count(FLOWERS, SPECIES, features=features)
        assert (tally * 6e16).n_rows == 9e18
        for times in (7e16, 1e50, float("inf"), float("nan"), -1.0):
            with pytest.raises(errors.BadSetting, match=r"fewer than 2\*\*63 rows"):
                tally * times


@pytest.mark.parametrize("times", [1e6, 1e10, 1e14, 6e16])
def test_of_very_many_rows_the_predictive_answer_is_that_of_maximum_likelihood(times):
    counts = bb.count({"n": [2, 3, 4, 3]}, list("pppp"), features="poisson")
    assert bb.estimate(counts * times, how="predictive").likelihood("n", 3)["p"] == pytest.approx(
        bb.estimate(counts, how="mle").likelihood("n", 3)["p"], rel=1e-5
    )
    rows = {"a": [5.0, 6.1], "b": [3.0, None], "c": [4.0, 4.4], "d": [1.2, None]}
    for features in ("auto", {NAMES: FULL}, {NAMES: TIED}):
        tally = bb.count(FLOWERS, SPECIES, features=features)
        found = bb.estimate(tally * times, how="predictive").posterior(rows)
        assert found == pytest.approx(bb.estimate(tally, how="mle").posterior(rows), abs=1e-4)


@pytest.mark.parametrize("how", ["mean", "map", "predictive", "gibbs"])
@pytest.mark.parametrize("prior", [{"mean": 1e12}, {"nu": 1e100}, {"mean": -1e200, "nu": 3.0}])
def test_no_prior_leaves_a_covariance_without_a_root(how, prior):
    family = bb.Gaussian(covariance="full", prior=bb.NormalInverseGamma(**prior))
    model = bb.estimate(bb.count(FLOWERS, SPECIES, features={NAMES: family}), how=how)
    posterior = model.posterior(FLOWERS | {"b": np.where(np.arange(150) % 3, FLOWERS["b"], np.nan)})
    assert np.isfinite(posterior).all()
    assert all(np.isfinite(column).all() for name, column in model.sample(50).items() if name in NAMES)


def test_values_far_out_are_far_and_not_infinite():
    small = {"a": FLOWERS["a"] * 1e-3, "b": FLOWERS["b"]}
    model = bb.estimate(bb.count(small, SPECIES, features={("a", "b"): FULL}))
    assert np.isfinite(model.posterior({"a": [0.0, 1e308], "b": [1.0, None]})).all()
    assert np.isfinite(model.posterior({"a": [0.0, 1e308], "b": [1.0, 2.0]})).all()
    for rows in ({"a": [0.0, np.inf], "b": [None, 1.0]}, {"a": [0.0, np.inf], "b": [1.0, 1.0]}):
        with pytest.raises(errors.BadValue, match="row 1 of column 'a' is infinite"):
            model.posterior(rows)


@pytest.mark.parametrize("features", ["columns", "block"])
def test_far_beyond_a_histogram_its_last_bin_decides(features):
    for bins in ("auto", "mdl"):
        family = bb.Histogram(bins=bins)
        chosen = {("c",): family} if features == "block" else {"c": family}
        model = bb.estimate(bb.count({"c": FLOWERS["c"]}, SPECIES, features=chosen))
        far = model.posterior({"c": [1e4, 1e6, 1e12, 1e15, 1e18, 1e300]})
        assert far == pytest.approx(np.tile(far[0], (6, 1)), abs=1e-6)


def test_draws_at_the_edge_of_what_a_number_can_be_are_numbers():
    edge = {"a": 1.7e308 * np.where(np.arange(60) % 2, 1.0, -1.0), "b": np.arange(60.0)}
    for family in (bb.Histogram(), bb.KernelDensity(), bb.Gaussian(covariance="full")):
        model = bb.estimate(bb.count(edge, ["p", "q", "p"] * 20, features={("a", "b"): family}))
        assert np.isfinite(model.sample(500, seed=1)["a"]).all()


def test_bandwidths_are_told_in_the_columns_own_units():
    given = bb.estimate(bb.count(PETALS, SPECIES, features={("c", "d"): bb.KernelDensity(bandwidth=(0.3, 0.2))}))
    assert given.bandwidths("c + d") == {c: {"c": pytest.approx(0.3), "d": pytest.approx(0.2)} for c in range(3)}
    with pytest.raises(errors.BadSetting, match="a kernel density column"):
        bb.estimate(bb.count(PETALS, SPECIES)).bandwidths("c")


@pytest.mark.parametrize("bandwidth", [None, (), 0.0, (0.1, None), "narrow"])
def test_bandwidths_that_cannot_be(bandwidth):
    with pytest.raises(errors.BanburyError, match="bandwidth"):
        bb.KernelDensity(bandwidth=bandwidth)


def test_wide_kernels_on_small_numbers_tell_nothing():
    tiny = {"a": FLOWERS["a"] * 1e-150, "b": FLOWERS["b"] * 1e-150}
    for features in ({("a", "b"): bb.KernelDensity(bandwidth=1.0)}, bb.KernelDensity(bandwidth=1.0)):
        model = bb.estimate(bb.count(tiny, SPECIES, features=features))
        assert model.posterior({"a": [0.0], "b": [1e-150]}) == pytest.approx(np.full((1, 3), 1 / 3))


def test_beside_a_value_never_seen_a_joint_table_still_sums_to_one():
    weather = bb.datasets.play_tennis()
    density = bb.Density({("outlook", "play"): bb.Joint()}).fit(weather)
    with pytest.warns(bb.BanburyWarning, match="never had the value 'fog'"):
        answers = [density.probability({"play": answer}, given={"outlook": "fog"}) for answer in ("yes", "no")]
    assert answers == pytest.approx([0.5, 0.5])


def test_values_of_another_type_and_too_many_combinations_are_named():
    clf = bb.NaiveBayesClassifier(features={("a", "b"): bb.Joint()}).fit({"a": [1.0, 2.0], "b": [1.0, 2.0]}, ["p", "q"])
    with pytest.raises(errors.BadValue, match="row 0 of column 'b' contains 'x'"):
        clf.partial_fit({"a": [1.0], "b": ["x"]}, ["p"])
    assert clf.tally_.n_rows == 2
    many = {f"c{j}": list("abcdefghij") for j in range(40)}
    with pytest.raises(errors.BanburyError, match="too many combinations of values"):
        bb.Density({tuple(many): bb.Joint()}).fit(many)
    empty = bb.Density({("a", "b"): bb.Joint()}).fit({"a": ["x", None], "b": [None, "y"]})
    assert empty.sample(2)["a"].tolist() == [None, None]


def test_what_does_not_occur_is_refused_when_asked_as_when_counted():
    counts = {"a": [0.2, 0.9, 0.3, 0.8], "b": [40.0, 1.0, 2.0, 55.0]}
    model = bb.estimate(bb.count(counts, list("pqpq"), features={("a", "b"): bb.Occurrences()}))
    with pytest.raises(errors.BadValue, match="row 1 of column 'a' is -5, but counts cannot be negative"):
        model.posterior({"a": [1.0, -5.0], "b": [3.0, 2.0]})
    with pytest.raises(errors.BadValue, match=r"row 1 of column 'b' is 1e\+308, too large to be summed exactly"):
        model.posterior({"a": [1.0, 5.0], "b": [3.0, 1e308]})
    with pytest.raises(errors.BadValue, match="too large to be summed exactly"):
        bb.count({"a": [1.0, 1e302], "b": [1.0, 1.0]}, ["p", "q"], features={("a", "b"): bb.Occurrences()})
    sparse = csr_array(np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 3.0]]))
    told = bb.estimate(bb.count(sparse, [0, 1, 0]))
    below = sparse.copy()
    below.data[1] = -1.0
    with pytest.raises(errors.BadValue, match="row 1 of column 'x0' is -1"):
        told.posterior(below)
    assert np.isfinite(told.posterior({"x0": [None, 1.0], "x1": [2.0, None]})).all()
    flags = bb.estimate(bb.count(counts, list("pqpq"), features={("a", "b"): bb.Occurrences("bernoulli", 0.5)}))
    assert np.isfinite(flags.posterior({"a": [-5.0], "b": [1e308]})).all()


# Estimated otherwise than counted ------------------------------------------------------------------------------------

FOUR = {"a": [1.0, 2, 3, 4], "b": [2.0, 1, 4, 3], "y": ["p", "q", "p", "q"]}


@pytest.mark.parametrize(
    "other", ["gaussian", bb.Gaussian(variance="shared"), bb.Gaussian(prior=bb.NormalInverseGamma()), bb.Joint()]
)
def test_a_gaussian_block_is_not_estimated_as_what_was_not_counted(other):
    tally = bb.count(FOUR, "y", features={("a", "b"): FULL})
    with pytest.raises(errors.SchemaMismatch, match=r"'a \+ b' was counted for gaussian\(covariance='full'\), not for"):
        bb.estimate(tally, features={("a", "b"): other})


def test_a_column_is_not_estimated_as_a_gaussian_block():
    tally = bb.count({"a": FOUR["a"], "y": FOUR["y"]}, "y")
    with pytest.raises(errors.SchemaMismatch, match=r"'a' was counted for gaussian, not for gaussian\(cov"):
        bb.estimate(tally, features={"a": FULL})


def test_a_full_covariance_may_be_estimated_as_a_tied_one_and_back():
    full, tied = (bb.count(FLOWERS, SPECIES, features={NAMES: family}) for family in (FULL, TIED))
    for counted, asked, same in ((full, TIED, tied), (tied, FULL, full)):
        found = bb.estimate(counted, features={NAMES: asked}).posterior(FLOWERS)
        assert found.tolist() == bb.estimate(same).posterior(FLOWERS).tolist()


@pytest.mark.parametrize("bandwidth", [[1.0], [1.0, 2.0, 3.0]])
def test_a_block_has_a_bandwidth_for_each_column_however_it_was_counted(bandwidth):
    family, said = bb.KernelDensity(bandwidth=bandwidth), "bandwidth must be a number, or one for each of the 2 columns"
    with pytest.raises(errors.BadSetting, match=said):
        bb.count(FOUR, "y", features={("a", "b"): family})
    with pytest.raises(errors.BadSetting, match=said):
        bb.estimate(bb.count(FOUR, "y", features={("a", "b"): bb.Histogram()}), features={("a", "b"): family})


def test_a_column_has_one_bandwidth_however_it_was_counted():
    family, said = bb.KernelDensity(bandwidth=[1.0, 2.0]), "bandwidth must be one number for the column 'a'"
    with pytest.raises(errors.BadSetting, match=said):
        bb.count(FOUR, "y", features={"a": family})
    with pytest.raises(errors.BadSetting, match=said):
        bb.estimate(bb.count(FOUR, "y", features={"a": bb.Histogram()}), features={"a": family})


# No rows -------------------------------------------------------------------------------------------------------------

MIXED = {
    "a": [1.0, 2, 4, 3],
    "b": [2.0, 1, 4, 9],
    "n": [0, 1, 2, 1],
    "f": [True, False, False, True],
    "s": ["u", "v", "u", "v"],
    "t": ["one word here", "two words", "x y z", "u v"],
}
EVERY_FAMILY = [
    {"a": "gaussian"},
    {"a": "histogram"},
    {"a": bb.Histogram(bins="mdl")},
    {"a": "kernel_density"},
    {"n": "poisson"},
    {"f": "bernoulli"},
    {"s": "categorical"},
    {"t": "text"},
    {("a", "b"): TIED},
    {("a", "b"): bb.Histogram()},
    {("a", "b"): bb.KernelDensity()},
    {("s", "f"): bb.Joint()},
    {("n", "f"): bb.Occurrences()},
]


@pytest.mark.parametrize("features", EVERY_FAMILY, ids=str)
@pytest.mark.parametrize("nothing", [list, lambda: np.empty(0)], ids=["lists", "arrays"])
def test_no_rows_have_no_answers(features, nothing):
    names = [name for key in features for name in (key if isinstance(key, tuple) else (key,))]
    rows, none = {name: MIXED[name] for name in names}, {name: nothing() for name in names}
    model = bb.estimate(bb.count(rows | {"y": ["p", "q", "q", "q"]}, "y", features=features), how="predictive")
    assert model.posterior(none).shape == model.log_joint(none).shape == model.log_likelihood(none).shape == (0, 2)
    assert model.predict(none).shape == model.predict(none, unsure=0.5).shape == (0,)
    assert [(batch.n_rows, found.shape) for batch, found in model.stream(none)] == [(0, (0, 2))]
    assert bb.Density(features=features, how="predictive").fit(rows).score_samples(none).shape == (0,)
    with pytest.raises(errors.EmptyData, match="no rows"):
        bb.evaluate(model, none | {"y": nothing()})


# Messages ------------------------------------------------------------------------------------------------------------


def test_a_column_of_a_block_is_asked_for_by_its_block():
    model = bb.estimate(bb.count(FOUR, "y", features={("a", "b"): bb.KernelDensity()}))
    for ask in (lambda name: model.likelihood(name, 1.0), model.bandwidths, model.cuts, model.schema.__getitem__):
        with pytest.raises(errors.UnknownColumn, match=r"in the block \('a', 'b'\)") as caught:
            ask("a")
        assert caught.value.block == ("a", "b")
    assert model.likelihood(("a", "b"), (1.0, 2.0)).keys() == model.bandwidths(("a", "b")).keys() == {"p", "q"}


def test_a_bin_that_was_never_counted_is_named_by_where_it_lies():
    features, rows = {("a", "b"): bb.Histogram(start=0, width=0.5)}, {"a": [49.0], "b": [28.2], "y": ["p"]}
    block = bb.count(FOUR, "y", features=features)
    with pytest.raises(errors.NegativeCount, match=r"\(a 49 to 49.5, b 28 to 28.5\)"):
        block - block.count(rows)
    column = bb.count(FOUR, "y", features={"a": bb.Histogram(start=1, width=2), "b": None})
    with pytest.raises(errors.NegativeCount, match=r"\(a 49 to 51\)"):
        column - column.count(rows)


@pytest.mark.parametrize(
    ("family", "said", "unsaid"),
    [
        (FULL, "a class of 1 row, so", "1 rows"),
        (TIED, "2 columns has 3 rows, so its covariance", "covariance='tied'"),
    ],
)
def test_a_covariance_without_an_inverse_is_said_in_numbers_that_are_true(family, said, unsaid):
    tally = bb.count({"a": [1.0, 2, 3], "b": [1.0, 2, 3]}, ["p", "q", "q"], features={("a", "b"): family})
    with pytest.warns(bb.BanburyWarning, match=said) as caught:
        bb.estimate(tally)
    assert unsaid not in str(caught[0].message)


@pytest.mark.parametrize("family", [FULL, TIED])
@pytest.mark.parametrize("how", ["mean", "predictive"])
def test_a_block_without_a_complete_row_says_so_and_tells_nothing(family, how):
    rows = {"a": [1.0, None, 3.0], "b": [None, 2.0, None]}
    tally = bb.count(rows, ["p", "q", "q"], features={("a", "b"): family})
    with pytest.warns(bb.BanburyWarning, match="no row has all of a, b") as caught:
        model = bb.estimate(tally, how=how)
    assert len(caught) == 1
    assert model.posterior({"a": [5.0], "b": [6.0]})[0] == pytest.approx([1 / 3, 2 / 3])


def test_more_rows_of_a_density_are_counted_without_a_target():
    rows = {"a": FOUR["a"], "b": FOUR["b"]}
    tally = bb.Density().fit(rows).tally_
    more = tally.count({"a": [7.0], "b": [9.0]}, weights=[2.0])
    assert (more.classes, more.n_rows) == (tally.classes, 2)
    assert tally + tally.count(rows) == tally * 2
    with pytest.raises(errors.BadSetting, match="target must be a column's name"):
        bb.count(rows, ["p", "q", "p", "q"]).count(rows)


@pytest.mark.parametrize(
    ("numbers", "n_rows", "warns"),
    [
        (np.sqrt(np.arange(60.0)), 60, True),
        (np.sqrt(np.arange(49.0)), 49, False),  # too few to say
        (np.arange(60) % 7 / 2, 60, False),  # few values
        (np.arange(60), 60, False),  # whole numbers may be names
    ],
)
def test_a_table_of_fractional_numbers_that_no_two_rows_share_is_warned_of(numbers, n_rows, warns, recwarn):
    labels = np.where(np.arange(n_rows) % 2, "p", "q")
    table = {"a": numbers, "b": np.arange(n_rows) % 3}
    bb.estimate(bb.count(table, labels, features={("a", "b"): bb.Joint()}))
    assert [str(each.message).partition(" is ")[0] for each in recwarn] == ["block 'a + b'"] * warns


# How combinations are counted ----------------------------------------------------------------------------------------

TABLE = st.lists(
    st.tuples(
        st.sampled_from(["x", "y", None]),
        st.sampled_from([1, 2, None]),
        st.booleans(),
        st.sampled_from("pq"),
        st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    ),
    min_size=1,
    max_size=12,
)


@given(TABLE)
def test_tables_with_a_cell_for_every_combination_count_as_those_of_what_occurs(rows):
    table = dict(zip(("a", "b", "c", "y"), map(list, zip(*(row[:4] for row in rows), strict=True)), strict=True))
    if any(all(cell is None for cell in column) for column in table.values()):
        return  # a column of nothing has no type
    counting = {"features": {("a", "b", "c"): bb.Joint()}, "weights": [row[4] for row in rows]}
    dense = bb.count(table, "y", **counting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banbury.families.joint.FEW_CELLS", 0)
        patch.setattr("banbury.families.joint.CELLS_PER_ROW", 0)
        assert bb.count(table, "y", **counting) == dense
    naive = {}
    for a, b, c, y, weight in rows:
        if None not in (a, b) and weight:
            naive[(a, b, c), y] = naive.get(((a, b, c), y), 0.0) + weight
    ((keys, cells),) = [dense.of("a + b + c").feature(0)]
    found = {(k, y): cells.value[i, j] for i, k in enumerate(keys) for j, y in enumerate(dense.classes)}
    assert {each: rows for each, rows in found.items() if rows} == naive


@given(TABLE)
def test_pairs_of_columns_are_counted_as_tables_of_two(rows):
    columns = dict(zip("abc", zip(*(row[:3] for row in rows), strict=True), strict=True))
    [batch] = read({name: list(column) for name, column in columns.items()})
    batch = batch.with_columns({name: encode(list(column), 1) for name, column in columns.items()})
    labels, weights = encode([row[3] for row in rows], 1), np.array([row[4] for row in rows])
    pairs, tables = (
        count_rows(batch, bb.Schema(tuple(features)), labels, weights, 1)
        for features in ([pairs_of("abc")], [table_of(pair) for pair in ("ab", "ac", "bc")])
    )
    assert pairs.rows.same(tables.rows)
    together = (
        {
            ("abc"[j], "abc"[k], other, value): pairs.sums[0].cells.value[i].tolist()
            for i, ((k, value), (j, other)) in enumerate(pairs.sums[0].keys[0])
            if j < k
        }
        if pairs.classes
        else {}
    )
    apart = {
        (*pair, *key): tables.sums[0].feature(f)[1].value[i].tolist()
        for f, pair in enumerate(("ab", "ac", "bc"))
        for i, key in enumerate(tables.sums[0].keys[f])
    }
    assert together == apart
    assert (pairs + pairs - pairs) == pairs
