"""Where a convex loss is least when some of its variables may not be below zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Real

MOST_DENSE = 256  # variables whose curvature is kept whole
MOST_STEPS = 200
STEPS_HELD = 40  # of many variables, by which their curvature is guessed
LEAST_GAIN = 1e-7  # of the loss, at which steps end
EDGE = 1e-3  # variables so near to zero that would fall below it go there
DAMPING = 1e-9  # so that the curvature can be divided by, whatever it is

Loss = Callable[[Real], tuple[float, Real]]  # its value and its slope


def minimise(loss: Loss, start: Real, bounded: NDArray[np.bool_], curvature: Callable[[], Real], flat: float) -> Real:
    """Where the loss is least. ``bounded`` variables are not below zero; the slope is ``flat`` there, or next to nothing gained.

    ``curvature`` is about that at the start, (variables, variables); it is not asked for where variables are many.
    """
    if len(start) > MOST_DENSE:
        return _minimise_many(loss, start, bounded, flat)
    return _minimise_by_newton(loss, start, bounded, curvature(), flat)


def _minimise_by_newton(loss: Loss, at: Real, bounded: NDArray[np.bool_], curvature: Real, flat: float) -> Real:
    """Newton's steps, each cut off at zero; the curvature is mended by what each shows (Broyden, Fletcher, Goldfarb, Shanno)."""
    curvature[np.diag_indices_from(curvature)] *= 1.0 + DAMPING
    value, slope = loss(at)
    for _ in range(MOST_STEPS):
        at_bound = bounded & (at <= EDGE) & (slope > 0.0)
        if np.abs(np.where(at_bound, np.minimum(slope, at), slope)).max() < flat:
            break
        step = -slope / np.diag(curvature)
        step[~at_bound] = -np.linalg.solve(curvature[np.ix_(~at_bound, ~at_bound)], slope[~at_bound])
        trial_point = _search_line(loss, at, value, slope, step, bounded)
        if trial_point is None:
            break
        trial, trial_value, trial_slope = trial_point
        moved = trial - at
        slope_change = trial_slope - slope
        curved_step = curvature @ moved
        if moved @ slope_change > 0.0 and moved @ curved_step > 0.0:
            curvature += np.outer(slope_change, slope_change) / (moved @ slope_change) - np.outer(
                curved_step, curved_step
            ) / (moved @ curved_step)
        gained = value - trial_value
        at = trial
        value = trial_value
        slope = trial_slope
        if gained < LEAST_GAIN * max(abs(value), 1.0):
            break
    return at


def _search_line(
    loss: Loss, at: Real, value: float, slope: Real, step: Real, bounded: NDArray[np.bool_]
) -> tuple[Real, float, Real] | None:
    """A place along the step that is lower by enough, with its loss and slope; None where there is none."""
    for halvings in range(40):
        there = at + 0.5**halvings * step
        there[bounded] = np.maximum(there[bounded], 0.0)
        lower, steeper = loss(there)
        if lower < value + 1e-4 * min(float(slope @ (there - at)), 0.0):
            return there, lower, steeper
    return None


def _minimise_many(loss: Loss, start: Real, bounded: NDArray[np.bool_], flat: float) -> Real:
    from scipy.optimize import minimize

    bounds = [(0.0, None) if is_bounded else (None, None) for is_bounded in bounded.tolist()]
    options: dict[str, Any] = {"maxiter": MOST_STEPS, "maxcor": STEPS_HELD, "ftol": LEAST_GAIN, "gtol": flat}
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x)
