"""Families that say nothing but what counts, estimates, scores and draws: all that is asked of a family works by defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import banbury as bb
from banbury import _core, plots
from banbury.errors import BadSetting
from banbury.families import Family
from banbury.families.family import Choice, Counter, Feature, Features, Parameters, line_by_line
from banbury.families.keys import KeyCounter, count_codes
from banbury.families.moments import MOMENTS
from banbury.sums import Counts

matplotlib.use("Agg")


@dataclass(frozen=True, repr=False)
class Laplace(Family):
    """Numbers, in two tails that fall alike."""

    name: ClassVar[str] = "laplace"

    def counter(self, feature: Any) -> Any:
        return bb.Gaussian().counter(feature)

    def estimate(self, features: Any, sums: Any, choice: Any, rng: Any) -> LaplaceParameters:
        n = np.maximum(sums.n.value, 1.0)
        units = features.units[:, None]
        origins = features.origins[:, None]
        scale = np.maximum(np.sqrt(sums.spread / n / 2.0), 1e-3)
        return LaplaceParameters(features, origins + units * sums.mean, units * scale)


@dataclass(frozen=True)
class LaplaceParameters(Parameters):
    features: Features
    mean: np.ndarray
    scale: np.ndarray

    def parts(self, rows: Any) -> list[_core.Part]:
        parts = []
        for f, feature in enumerate(self.features):
            x = rows.numbers([feature.name])[0].reshape(-1).astype(np.float64)
            table = stats.laplace.logpdf(x[:, None], self.mean[f], self.scale[f])
            parts.append(line_by_line(np.where(np.isnan(x), -1, np.arange(len(x))), table))
        return parts

    def select(self, index: Sequence[int]) -> LaplaceParameters:
        at = list(index)
        return LaplaceParameters(self.features.take(at), self.mean[at], self.scale[at])

    def sample(self, classes: Any, rng: Any) -> list[np.ndarray]:
        return [rng.laplace(mean[classes], scale[classes]) for mean, scale in zip(self.mean, self.scale, strict=True)]


class NameCounter(KeyCounter):
    """The rows of each value."""

    def count(self, features: Any, rows: Any) -> Any:
        columns = [rows.batch.codes(feature.name) for feature in features]
        return features, Counts.join(count_codes(features.names, columns, rows), len(rows.labels))


NAMES = NameCounter()


@dataclass(frozen=True, repr=False)
class Names(Family):
    """One of the values that were counted."""

    name: ClassVar[str] = "names"

    def counter(self, feature: Any) -> Any:
        return NAMES

    def estimate(self, features: Any, sums: Any, choice: Any, rng: Any) -> NamesParameters:
        tables = []
        for f in range(len(features)):
            keys, rows = sums.feature(f)
            share = (rows.value + 1.0) / (rows.value.sum(axis=0) + len(keys) + 1.0)
            tables.append(dict(zip(keys, share, strict=True)))
        return NamesParameters(features, tuple(tables))


@dataclass(frozen=True)
class NamesParameters(Parameters):
    features: Features
    tables: tuple[dict[Any, np.ndarray], ...]

    def parts(self, rows: Any) -> list[_core.Part]:
        parts = []
        for feature, table in zip(self.features, self.tables, strict=True):
            column = rows.codes(feature.name)
            rest = 1.0 - sum(table.values())
            logs = np.log([table.get(value, rest) for value in column.values]).reshape(-1, len(rest))
            lookup, low = np.arange(len(column.values), dtype=np.uint32), np.array([column.low], dtype=np.int64)
            parts.append(_core.TablePart([column.codes], low, [lookup], np.full(1, -1), logs))
        return parts

    def select(self, index: Sequence[int]) -> NamesParameters:
        return NamesParameters(self.features.take(index), tuple(self.tables[f] for f in index))

    def sample(self, classes: Any, rng: Any) -> list[np.ndarray]:
        drawn = []
        for table in self.tables:
            share = np.array(list(table.values()))[:, classes]
            chosen = [rng.choice(len(share), p=each / each.sum()) for each in share.T]
            drawn.append(np.array(list(table))[chosen])
        return drawn


@dataclass(frozen=True, repr=False)
class Shift(Family):
    """Numbers about a mean per class, all of them one unit wide."""

    name: ClassVar[str] = "shift"

    def counter(self, feature: Feature) -> Counter:
        return MOMENTS

    def estimate(self, features: Features, sums: Any, choice: Choice, rng: Any) -> ShiftParameters:
        mean = (sums.n.value * sums.mean) / (sums.n.value + 1.0)
        return ShiftParameters(features, mean)


@dataclass(frozen=True)
class ShiftParameters(Parameters):
    features: Features
    mean: Any

    def parts(self, rows: Any) -> list[_core.Part]:
        origin, unit = self.features.origins, self.features.units
        constant = np.broadcast_to(-0.5 * np.log(2.0 * np.pi) - np.log(unit)[:, None], self.mean.shape)
        columns = rows.numbers(self.features.names)
        return [
            _core.NormalPart(columns, origin, unit, self.mean, np.full(self.mean.shape, 0.5), constant.copy(), None)
        ]

    def select(self, index: Sequence[int]) -> ShiftParameters:
        return ShiftParameters(self.features.take(index), self.mean[list(index)])

    def sample(self, classes: Any, rng: np.random.Generator) -> list[Any]:
        each = zip(self.features, self.mean, strict=True)
        return [f.origin + f.unit * (mean[classes] + rng.standard_normal(len(classes))) for f, mean in each]


def model() -> bb.Model:
    rng = np.random.default_rng(3)
    kinds = np.arange(400) % 2
    data = {
        "x": rng.laplace(4.0 * kinds, 1.0),
        "z": rng.laplace(0.0, 1.0, 400),
        "w": np.where(rng.random(400) < 0.2 + 0.6 * kinds, "up", "down"),
    }
    families = {"x": Laplace(), "z": Laplace(), "w": Names()}
    return bb.estimate(bb.count(data, target=np.array(["a", "b"])[kinds], features=families))


def test_a_row_is_explained() -> None:
    told = model().explain({"x": 6.0, "z": 0.1, "w": "up"})
    assert told.winner == "b" and {e.feature for e in told.evidence} == {"x", "z", "w"}
    assert told.prior + sum(e.decibans for e in told.evidence) == pytest.approx(told.decibans)
    assert told.evidence[0].value == 6.0 and all(e.seen for e in told.evidence)


def test_its_values_tell_classes_apart() -> None:
    found = model().informative().ratios
    first = {label: rows[0] for label, rows in found.items()}
    assert first["a"].feature == "x" and first["a"].value.startswith("< ")
    cut = float(first["a"].value.removeprefix("< "))
    assert first["a"].probability == pytest.approx(stats.laplace.cdf(cut, 0.0, 1.0), abs=0.05)
    assert first["a"].ratio > 5
    words = {label: [r for r in rows if r.feature == "w"] for label, rows in found.items()}
    assert [r.value for r in words["a"]] == ["down"] and [r.value for r in words["b"]] == ["up"]
    assert words["b"][0].probability == pytest.approx(0.8, abs=0.1)


def test_its_likelihood_is_drawn() -> None:
    numbers = plots.LikelihoodDisplay.from_model(model(), "x")
    assert "laplace density" in numbers.ax_.get_title("left")
    np.testing.assert_allclose(np.trapezoid(numbers.likelihood, numbers.values, axis=0), 1.0, atol=0.05)
    bars = plots.LikelihoodDisplay.from_model(model(), "w")
    assert bars.value_names == ["down", "up"] and bars.likelihood[1, 1] > 2 * bars.likelihood[1, 0]


def test_it_has_a_line_in_a_nomogram() -> None:
    row = {"x": 6.0, "z": 0.1, "w": "up"}
    sheet = plots.NomogramDisplay.from_model(model(), "b", row=row)
    told = model().explain(row, "a")
    assert sheet.decibans(row) == pytest.approx(told.decibans)
    assert sheet.scales["x"].numeric and not sheet.scales["w"].numeric


def test_it_has_a_boundary() -> None:
    shown = plots.DecisionBoundaryDisplay.from_model(model(), ["x", "z"], steps=20)
    assert shown.posterior.shape == (20, 20, 2)
    with pytest.raises(BadSetting, match="'w' is of family names"):
        plots.DecisionBoundaryDisplay.from_model(model(), ["x", "w"])


def test_what_it_has_not_is_said() -> None:
    with pytest.raises(BadSetting, match="a histogram column"):
        model().cuts("x")
    with pytest.raises(BadSetting, match="a kernel density column"):
        model().bandwidths("x")
    with pytest.raises(BadSetting, match="a text column or a block of occurrences"):
        model().linear("w")
    with pytest.raises(BadSetting, match="which has no bandwidth"):
        plots.BandwidthDisplay.from_model(model(), "x", "a")


def test_likelihoods_are_those_of_the_scores() -> None:
    found = model().likelihood("x", 1.0)
    assert found["a"] > found["b"]
    both = model().log_likelihood({"x": [1.0], "z": [0.0], "w": ["up"]}, "x")
    assert np.exp(both[0]).tolist() == pytest.approx(list(found.values()))


def test_a_row_is_unusual() -> None:
    rng = np.random.default_rng(5)
    density = bb.Density(features={"x": Laplace()}).fit({"x": rng.laplace(0.0, 1.0, 300)})
    unusual = density.surprise({"x": 9.0})
    assert unusual.decibans < -10 and unusual.evidence[0].feature == "x"


# Numbers that are known by their moments, beside names

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
    each = stats.norm.pdf(x[:, None], means)
    nats = np.trapezoid((each * np.log(each / each.mean(axis=1, keepdims=True))).mean(axis=1), x)
    assert bits["x"] == pytest.approx(nats / np.log(2), abs=0.01)
    assert bits["x"] > bits["y"]


def test_diagnose_compares_numbers_in_fine_bins() -> None:
    table = {**TABLE, "x2": TABLE["x"] * 2.0}
    features = {**FEATURES, "x2": Shift()}
    found, usual = (bb.diagnose(table, LABELS, features=each) for each in (features, "auto"))
    assert (found.pairs[0].first, found.pairs[0].second, found.pairs[0].duplicated) == ("x", "x2", True)
    assert {t.feature: t.bits for t in found.columns} == pytest.approx(
        {t.feature: t.bits for t in usual.columns}, abs=0.2
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
