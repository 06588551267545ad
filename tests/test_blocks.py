"""Blocks: columns modelled together. Their sums meet the laws, and their answers are those of other implementations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_t
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold

import banbury as bb
from banbury import _core, errors

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
    alone = bb.estimate(bb.count({"a": FLOWERS["a"]}, SPECIES), how="predictive")
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
    one, eight = (_core.count_products(columns, *scale, classes, 3, None, True, threads) for threads in (1, 8))
    assert all(np.array_equal(a, b) for a, b in zip(one, eight, strict=True) if a is not None)
    n, _, sums = one
    own = columns[0][classes == 1]
    assert n[1] == len(own)
    first, second = np.tril_indices(5)
    assert sums[1, :5].sum(axis=-1) == pytest.approx(own.sum(axis=0), rel=1e-10)
    assert sums[1, 5:].sum(axis=-1) == pytest.approx((own[:, first] * own[:, second]).sum(axis=0), rel=1e-10)


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
        ({("a", "b"): "gaussian"}, "family of several columns"),
        ({("a", "b"): FULL, "a": "poisson"}, "'a' in two places"),
        ({("a", "b"): FULL, ("b", "c"): FULL}, "'b' in two places"),
        ({("a", "smoke"): FULL}, "smoke"),
        ({(): FULL}, "no columns"),
        ({("a", "b"): bb.Text()}, "family of several columns"),
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
