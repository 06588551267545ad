"""A family that answers nothing but what it must: everything the toolkit asks goes by the defaults of the base classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import banbury as bb
from banbury.distributions.family import Choice, Family, Feature, Parameters


@dataclass(frozen=True, repr=False)
class Shift(Family):
    """Numbers about a mean per class, all of them one unit wide."""

    name: ClassVar[str] = "shift"
    shape: ClassVar[Any] = "moments"

    def estimate(self, features: tuple[Feature, ...], sums: Any, choice: Choice, rng: Any) -> ShiftParameters:
        mean = (sums.n.value * sums.mean) / (sums.n.value + 1.0)
        return ShiftParameters(features, mean)


@dataclass(frozen=True)
class ShiftParameters(Parameters):
    features: tuple[Feature, ...]
    mean: Any

    def parts(self, rows: Any) -> list[tuple[Any, ...]]:
        origin, unit = (np.array([getattr(f, name) for f in self.features]) for name in ("origin", "unit"))
        constant = np.broadcast_to(-0.5 * np.log(2.0 * np.pi) - np.log(unit)[:, None], self.mean.shape)
        columns = rows.numbers([f.name for f in self.features])
        return [("normal", columns, origin, unit, self.mean, np.full(self.mean.shape, 0.5), constant.copy())]

    def select(self, index: Sequence[int]) -> ShiftParameters:
        return ShiftParameters(tuple(self.features[f] for f in index), self.mean[list(index)])

    def sample(self, classes: Any, rng: np.random.Generator) -> list[Any]:
        each = zip(self.features, self.mean, strict=True)
        return [f.origin + f.unit * (mean[classes] + rng.standard_normal(len(classes))) for f, mean in each]


RNG = np.random.default_rng(3)
LABELS = np.array(["a", "b", "c"])[np.arange(90) % 3]
TABLE = {
    "x": RNG.normal(size=90) + (np.arange(90) % 3),
    "y": RNG.normal(size=90),
    "z": np.array(["red", "blue"])[(RNG.random(90) < 0.3 + 0.2 * (np.arange(90) % 3)).astype(int)],
}
FEATURES = {"x": Shift(), "y": Shift()}


def test_leave_one_out_is_refitting_without_each_row() -> None:
    found = bb.cross_validate(TABLE, LABELS, folds="loo", features=FEATURES)
    rows = np.arange(90)
    tally = bb.count(TABLE, LABELS, features=FEATURES)
    for row in (0, 1, 44, 89):
        one = {name: column[rows == row] for name, column in TABLE.items()}
        rest = tally - tally.count(one, LABELS[rows == row])
        assert found.posteriors[row] == pytest.approx(bb.estimate(rest).posterior(one)[0], rel=1e-12)


def test_mutual_information_is_that_of_rows_drawn_from_the_model() -> None:
    tally = bb.count(TABLE, LABELS, features=FEATURES)
    bits = bb.mutual_information(tally)
    means = next(group for group in bb.estimate(tally).parameters if isinstance(group, ShiftParameters)).mean[0]
    x = np.linspace(means.min() - 9.0, means.max() + 9.0, 20_001)
    each = norm.pdf(x[:, None], means)
    nats = np.trapezoid((each * np.log(each / each.mean(axis=1, keepdims=True))).mean(axis=1), x)
    assert bits["x"] == pytest.approx(nats / np.log(2), abs=0.01)
    assert bits["x"] > bits["y"]


def test_diagnose_compares_numbers_in_fine_bins() -> None:
    table = {**TABLE, "x2": TABLE["x"] * 2.0}
    features = {**FEATURES, "x2": Shift()}
    found, usual = (bb.diagnose(table, LABELS, features=each) for each in (features, "auto"))
    assert (found.pairs[0].first, found.pairs[0].second, found.pairs[0].duplicated) == ("x", "x2", True)
    assert {t.feature: t.bits for t in found.telling} == pytest.approx(
        {t.feature: t.bits for t in usual.telling}, abs=0.2
    )


def test_a_density_answers_of_a_new_family() -> None:
    density = bb.Density(features=FEATURES).fit(TABLE)
    row = {"x": 0.5, "y": 0.1, "z": "red"}
    apart = [density.probability({name: value}) for name, value in row.items()]
    assert (
        density.probability(row)
        == pytest.approx(np.prod(apart))
        == pytest.approx(np.exp(density.score_samples([row]))[0])
    )
    assert density.probability({"x": 0.5}, given={"z": "red"}) == pytest.approx(apart[0])
    assert sum(density.query("z", {"x": 0.5}).values()) == pytest.approx(1.0)
    assert set(density.sample(3)) == {"x", "y", "z"}
    assert density.surprise(row).usual == pytest.approx(density.score_samples(density.sample(1000)).mean())
    with pytest.raises(bb.errors.BadSetting, match="family 'shift', which has a density"):
        density.probability({"x": [1.0, 2.0]})


def test_unlabelled_rows_are_learned_from() -> None:
    mixture = bb.Mixture(2, features=FEATURES, seed=0).fit(TABLE)
    assert mixture.score_samples(TABLE).shape == (90,)
    labels = np.where(np.arange(90) < 45, LABELS, None)
    model = bb.SemiSupervisedClassifier(features=FEATURES).fit(pd.DataFrame(TABLE), labels)
    assert model.predict_proba(pd.DataFrame(TABLE)).sum(axis=1) == pytest.approx(np.ones(90))
