"""Minimises a convex loss, some of whose variables may not be negative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Real

MOST_DENSE = 256  # with more variables, the Hessian is not stored
MOST_STEPS = 200
STEPS_HELD = 40  # steps from which L-BFGS-B estimates the Hessian
LEAST_GAIN = 1e-7  # the search ends when a step lowers the loss by less, relative to the loss
NEAR_ZERO = 1e-3  # bounded variables below this whose slope points below zero count as at the bound
DAMPING = 1e-9  # added to the diagonal of the Hessian, relative to it, so that it can be inverted

Loss = Callable[[Real], tuple[float, Real]]  # from a point to the loss and its gradient


def minimise(loss: Loss, start: Real, bounded: NDArray[np.bool_], curvature: Callable[[], Real], flat: float) -> Real:
    """Returns the point at which the loss is least. ``bounded`` variables stay at zero or above.

    Args:
        loss: Computes the loss of a point and its slope.
        start: The point where the search starts.
        bounded: Which variables are bounded.
        curvature: Computes the Hessian at the start (variables × variables). It is not called if there are many variables.
        flat: The slope at which the search ends.
    """
    if len(start) > MOST_DENSE:
        return _minimise_many(loss, start, bounded, flat)
    return _minimise_by_newton(loss, start, bounded, curvature(), flat)


def _minimise_by_newton(loss: Loss, point: Real, bounded: NDArray[np.bool_], curvature: Real, flat: float) -> Real:
    """Minimises by Newton's method with steps cut off at zero for ``bounded`` variables. ``curvature`` is the Hessian
    at the start ``point``, which each step improves by the BFGS formula. The search ends where the slope is ``flat``.
    """
    curvature[np.diag_indices_from(curvature)] *= 1.0 + DAMPING
    value, slope = loss(point)
    for _ in range(MOST_STEPS):
        is_at_bound = bounded & (point <= NEAR_ZERO) & (slope > 0.0)
        if np.abs(np.where(is_at_bound, np.minimum(slope, point), slope)).max() < flat:
            break
        step = -slope / np.diag(curvature)
        step[~is_at_bound] = -np.linalg.solve(curvature[np.ix_(~is_at_bound, ~is_at_bound)], slope[~is_at_bound])
        trial_point = _search_line(loss, point, value, slope, step, bounded)
        if trial_point is None:
            break
        trial, trial_value, trial_slope = trial_point
        change = trial - point
        slope_change = trial_slope - slope
        curved_change = curvature @ change
        if change @ slope_change > 0.0 and change @ curved_change > 0.0:
            curvature += np.outer(slope_change, slope_change) / (change @ slope_change) - np.outer(
                curved_change, curved_change
            ) / (change @ curved_change)
        gain = value - trial_value
        point = trial
        value = trial_value
        slope = trial_slope
        if gain < LEAST_GAIN * max(abs(value), 1.0):
            break
    return point


def _search_line(
    loss: Loss, point: Real, value: float, slope: Real, step: Real, bounded: NDArray[np.bool_]
) -> tuple[Real, float, Real] | None:
    """Halves a step until the loss falls enough; returns the new point, its loss and its slope, or None if there is
    none. ``value`` and ``slope`` are those of the loss at ``point``; ``bounded`` variables stay at zero or above.
    """
    for halvings in range(40):
        trial = point + 0.5**halvings * step
        trial[bounded] = np.maximum(trial[bounded], 0.0)
        trial_value, trial_slope = loss(trial)
        if trial_value < value + 1e-4 * min(float(slope @ (trial - point)), 0.0):
            return trial, trial_value, trial_slope
    return None


def _minimise_many(loss: Loss, start: Real, bounded: NDArray[np.bool_], flat: float) -> Real:
    """Minimises a loss of many variables by L-BFGS-B. ``bounded`` variables stay at zero or above; the search ends
    where the slope is ``flat``.
    """
    from scipy.optimize import minimize

    bounds = [(0.0, None) if is_bounded else (None, None) for is_bounded in bounded.tolist()]
    options: dict[str, Any] = {"maxiter": MOST_STEPS, "maxcor": STEPS_HELD, "ftol": LEAST_GAIN, "gtol": flat}
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x)
