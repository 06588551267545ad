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
        loss: Computes the loss of a point and its slope (the gradient, one number per variable).
        start: The point where the search starts.
        bounded: Whether each variable is bounded.
        curvature: Computes the Hessian at the start (variables × variables). It is not called if there are many variables.
        flat: The search ends where no variable has a steeper slope than this.
    """
    if len(start) > MOST_DENSE:
        return _minimise_many(loss, start, bounded, flat)
    return _minimise_by_newton(loss, start, bounded, curvature(), flat)


def _minimise_by_newton(loss: Loss, point: Real, bounded: NDArray[np.bool_], curvature: Real, flat: float) -> Real:
    """Returns the point of the least loss, by Newton's method with steps cut off at zero for ``bounded`` variables.
    ``curvature`` is the Hessian at the start ``point``; it is changed in place, because each step improves it by the
    BFGS formula. The search ends where no slope is steeper than ``flat``.
    """
    curvature[np.diag_indices_from(curvature)] *= 1.0 + DAMPING
    value, slope = loss(point)  # the loss there, and its gradient
    for _ in range(MOST_STEPS):
        is_at_bound = bounded & (point <= NEAR_ZERO) & (slope > 0.0)
        if np.abs(np.where(is_at_bound, np.minimum(slope, point), slope)).max() < flat:
            break
        step = -slope / np.diag(curvature)
        step[~is_at_bound] = -np.linalg.solve(curvature[np.ix_(~is_at_bound, ~is_at_bound)], slope[~is_at_bound])
        new_point_and_loss = _search_line(loss, point, value, slope, step, bounded)
        if new_point_and_loss is None:
            break
        new_point, new_value, new_slope = new_point_and_loss
        change = new_point - point
        slope_change = new_slope - slope
        curved_change = curvature @ change  # the change of the slope that the Hessian predicts
        if change @ slope_change > 0.0 and change @ curved_change > 0.0:
            curvature += np.outer(slope_change, slope_change) / (change @ slope_change) - np.outer(
                curved_change, curved_change
            ) / (change @ curved_change)
        gain = value - new_value  # how much the loss has fallen
        point = new_point
        value = new_value
        slope = new_slope
        if gain < LEAST_GAIN * max(abs(value), 1.0):
            break
    return point


def _search_line(
    loss: Loss, point: Real, value: float, slope: Real, step: Real, bounded: NDArray[np.bool_]
) -> tuple[Real, float, Real] | None:
    """Halves a step (one number per variable) until the loss falls enough; returns the new point, its loss and its
    slope, or None if 40 halvings do not suffice. ``value`` is the loss at ``point`` and ``slope`` its gradient;
    ``bounded`` variables stay at zero or above.
    """
    for halvings in range(40):
        new_point = point + 0.5**halvings * step
        new_point[bounded] = np.maximum(new_point[bounded], 0.0)
        new_value, new_slope = loss(new_point)
        if new_value < value + 1e-4 * min(float(slope @ (new_point - point)), 0.0):  # Armijo's condition
            return new_point, new_value, new_slope
    return None


def _minimise_many(loss: Loss, start: Real, bounded: NDArray[np.bool_], flat: float) -> Real:
    """Returns the point of the least loss, for many variables, by L-BFGS-B from ``start``. ``bounded`` variables stay
    at zero or above; the search ends where no slope is steeper than ``flat``.
    """
    from scipy.optimize import minimize

    bounds = [(0.0, None) if is_bounded else (None, None) for is_bounded in bounded.tolist()]
    options: dict[str, Any] = {"maxiter": MOST_STEPS, "maxcor": STEPS_HELD, "ftol": LEAST_GAIN, "gtol": flat}
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x)
