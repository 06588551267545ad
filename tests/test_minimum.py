"""Where weights are learned: the least of a convex loss, by Newton's steps and by those of many variables."""

from __future__ import annotations

import numpy as np
import pytest

from banbury import _core
from banbury.arrays import Real
from banbury.weighing import minimum
from banbury.weighing.learning import _curvature


class Logistic:
    """Rows of evidence with classes and weights, under a ridge of 1 on everything; none is learned below zero but intercepts."""

    def __init__(self, seed: int, n_classes: int, n_terms: int, weight: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.k, self.passes = n_terms, n_classes, 0
        self.says = rng.normal(size=(400, n_classes - 1, n_terms)).astype(np.float32)
        self.labels = rng.integers(0, n_classes, 400).astype(np.int32)
        self.row_weights = weight * (0.1 + rng.random(400))
        self.start = np.full(n_terms + n_classes, 0.7)
        self.bounded = np.arange(n_terms + n_classes) < n_terms

    def loss(self, z: Real) -> tuple[float, Real]:
        self.passes += 1
        value, slope = _core.weighed_slope(
            self.says, z[: self.n], z[self.n :], self.labels, self.row_weights, threads=1
        )
        return value + 0.5 * float(z @ z), slope + z

    def curvature(self) -> Real:
        bent = _curvature(self.says, self.row_weights, self.start[: self.n], self.start[self.n :])
        return bent + np.eye(len(self.start))


@pytest.mark.parametrize("weight", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize(("n_classes", "n_terms"), [(2, 1), (2, 30), (3, 8), (7, 4)])
def test_no_step_leads_lower(n_classes: int, n_terms: int, weight: float) -> None:
    """Slopes are flat, or rise from zero; both ways end at one place."""
    of = Logistic(n_classes, n_classes, n_terms, weight)
    found = minimum.minimise(of.loss, of.start, of.bounded, of.curvature, 1e-7 * weight)
    passes = of.passes
    value, slope = of.loss(found)
    free = ~(of.bounded & (found == 0.0))
    assert (found[of.bounded] >= 0.0).all() and 0 < passes < 60
    of.start = found
    still = 0.5 * slope[free] @ np.linalg.solve(of.curvature()[np.ix_(free, free)], slope[free])
    assert still < 1e-6 * value and (slope[~free] > 0.0).all()
    other = minimum._minimise_many(of.loss, np.full(len(found), 0.7), of.bounded, 1e-7 * weight)
    assert abs(value - of.loss(other)[0]) <= 1e-6 * value


@pytest.mark.parametrize("n_classes", [2, 4])
def test_curvature_is_how_the_slope_changes(n_classes: int) -> None:
    of = Logistic(5, n_classes, 6)
    small = 1e-5 * np.eye(len(of.start))
    slopes = [(of.loss(of.start + step)[1] - of.loss(of.start - step)[1]) / 2e-5 for step in small]
    np.testing.assert_allclose(of.curvature(), slopes, atol=1e-6)


def test_many_variables_need_no_curvature() -> None:
    of = Logistic(1, 2, minimum.MOST_DENSE + 1)

    def none() -> Real:
        raise AssertionError("there is no room for it")

    found = minimum.minimise(of.loss, of.start, of.bounded, none, 1e-4)
    assert of.loss(found)[0] < of.loss(of.start)[0]


def test_a_curvature_far_from_the_truth_is_mended() -> None:
    """Steps end by what they gain, a ten-millionth of a loss of 270, so that a slow approach may end so much higher."""
    of = Logistic(2, 3, 5)
    right = minimum.minimise(of.loss, of.start, of.bounded, of.curvature, 1e-6)
    for wrong in (1e-6, 1e2):
        found = minimum.minimise(of.loss, of.start, of.bounded, lambda w=wrong: w * of.curvature(), 1e-6)
        assert of.loss(found)[0] - of.loss(right)[0] < 1e-2
