"""Honest probabilities of labels, each by itself: their log-odds times a slope, and a shift, learned from rows held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real

RIDGE = 1.0  # of the slope of all labels, towards 1; and of a label's own slope and shift, towards those of all
STRETCHES = 1 << 13  # of log-odds
FARTHEST = 1e6  # nats
FLATTEST = 1e-6  # least slope, above 0 to keep the order of probabilities; it makes one nat of the farthest log-odds
METHODS = ("temperature", "platt")
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class LabelCalibration:
    """Of each label a slope, above zero, and a shift of its log-odds; and those of labels that come later."""

    slopes: Real
    shifts: Real
    slope: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        steepness = np.append(self.slopes, self.slope)
        usable = np.isfinite(steepness).all() and steepness.min() >= FLATTEST
        errors.require(usable, "slopes of a calibration", steepness.tolist(), f"finite numbers from {FLATTEST:g} up")
        offsets = np.append(self.shifts, self.shift)
        errors.require(np.isfinite(offsets).all(), "shifts of a calibration", offsets.tolist(), "finite numbers")

    @classmethod
    def uniform(cls, n_labels: int, slope: float = 1.0, shift: float = 0.0) -> LabelCalibration:
        """One slope and shift for all labels."""
        return cls(np.full(n_labels, slope), np.full(n_labels, shift), slope, shift)

    @classmethod
    def fit(cls, method: str | None, log_odds: Real, flags: Flags, weights: Real | None) -> LabelCalibration:
        """From log-odds of rows held out, (rows, labels), and the labels that they have.

        None: a slope and a shift for all labels. "temperature": a slope for all. "platt": a slope and a shift for each, drawn
        towards those of all.
        """
        if method not in (None, *METHODS):
            raise errors.unknown_choice("method", method, METHODS)
        if method == "temperature":
            slope, _, _ = _line(log_odds, flags, weights, ridge=(RIDGE, 1e12))
            return cls.uniform(log_odds.shape[1], slope)
        slope, shift, _ = _line(log_odds, flags, weights)
        if method is None:
            return cls.uniform(log_odds.shape[1], slope, shift)
        drawn = {"towards": (slope, shift), "ridge": (RIDGE, RIDGE)}
        lines = [_line(log_odds[:, [k]], flags[:, [k]], weights, **drawn)[:2] for k in range(log_odds.shape[1])]
        slopes, shifts = np.array(lines).reshape(-1, 2).T.copy()
        return cls(slopes, shifts, slope, shift)

    @property
    def n_labels(self) -> int:
        return len(self.slopes)

    @property
    def changes(self) -> bool:
        """Whether probabilities are others after it."""
        return (self.slope, self.shift) != (1.0, 0.0) or not self.is_shared

    @property
    def is_shared(self) -> bool:
        """Whether all labels have one slope and shift."""
        return bool((self.slopes == self.slope).all() and (self.shifts == self.shift).all())

    @property
    def method(self) -> str | None:
        """How it was learned; None: a slope and a shift of all labels."""
        if not self.is_shared:
            return "platt"
        return "temperature" if self.shift == 0.0 else None

    def odds(self, log_odds: Real) -> Real:
        return np.asarray(self.slopes * log_odds + self.shifts)

    def apply(self, log_odds: Any) -> Real:
        """Calibrated P(label | row), rows × labels, of log-odds.

        >>> LabelCalibration.uniform(2, slope=0.5).apply([[2.0, -2.0]]).round(3).tolist()
        [[0.731, 0.269]]
        """
        return np.asarray(sigmoid(self.odds(_table(log_odds, self.n_labels))))

    def before(self, odds: Real) -> Real:
        """The log-odds that it turns into these, of each label."""
        return np.asarray((odds - self.shifts) / self.slopes)

    def take(self, places: list[int | None]) -> LabelCalibration:
        """The same of other labels, by their places among these; None of labels that are new."""
        lines = [(self.slope, self.shift) if k is None else (self.slopes[k], self.shifts[k]) for k in places]
        slopes, shifts = np.array(lines, dtype=np.float64).reshape(-1, 2).T.copy()
        return LabelCalibration(slopes, shifts, self.slope, self.shift)

    def __str__(self) -> str:
        if not self.is_shared:
            return f"Platt, {errors.many(self.n_labels, 'label')}"
        if self.shift == 0.0:
            return f"temperature {1.0 / self.slope:.3g}"
        return f"slope {self.slope:.3g} and shift {self.shift:.3g} of all log-odds"

    __repr__ = __str__


def calibrate_labels(method: str, log_odds: Any, flags: Any, weights: Real) -> LabelCalibration:
    """The same of what a user gives."""
    if method not in METHODS:
        raise errors.unknown_choice("method", method, METHODS)
    truth = np.asarray(flags)
    scores = _table(log_odds, truth.shape[1])
    errors.require(len(scores), "log_posteriors", "no rows", "log-odds, rows × labels, with at least one row")
    if len(truth) != len(scores):
        raise errors.length_mismatch("rows of flags", len(truth), len(scores))
    plain = truth.dtype.kind in "biuf" and bool(np.isin(truth, (0, 1)).all())
    errors.require(plain, "truth", f"an array of {truth.dtype}", "flags, rows × labels: 0 and 1 or True and False")
    used = weights > 0
    return LabelCalibration.fit(method, scores[used], truth[used].astype(np.bool_), weights[used])


def _table(log_odds: Any, n_labels: int) -> Real:
    try:
        table = np.asarray(log_odds, dtype=np.float64)
        got = ""
    except (TypeError, ValueError):
        table = np.zeros(0)
        got = type(log_odds).__name__
    fits = table.ndim == 2 and table.shape[1] == n_labels
    errors.require(
        fits,
        "log_posteriors",
        got or f"an array of the shape {table.shape}",
        f"log-odds, rows × {errors.many(n_labels, 'label')}",
    )
    if np.isnan(table).any():
        row, label = (int(place) for place in np.argwhere(np.isnan(table))[0])
        raise errors.BadValue(
            f"log_posteriors contains nan in row {row:,} for label number {label:,}, but must contain log-odds. Remove these "
            "rows, or check how the scores were computed.",
            row=row,
            number=label,
        )
    return np.clip(table, -FARTHEST, FARTHEST)


def sigmoid(odds: Any) -> Any:
    """The probability of log-odds, as exact where it is small as where it is large."""
    odds = np.asarray(odds, dtype=np.float64)
    small = np.exp(-np.abs(odds))
    return np.where(odds < 0, small, 1.0) / (1.0 + small)


def in_stretches(log_odds: Real, flags: Flags, weights: Real | None) -> tuple[Real, Real, Real]:
    """Stretches of log-odds, narrow near zero, that some have; of each its middle, and how many have no label there, and one."""
    squeezed = np.arcsinh(log_odds.ravel())
    low, high = (float(squeezed.min()), float(squeezed.max())) if squeezed.size else (0.0, 0.0)
    width = max(high - low, 1e-9) / STRETCHES
    place = np.minimum((squeezed - low) / width, STRETCHES - 1).astype(np.int64) * 2 + flags.ravel()
    pair_weights = None if weights is None else np.repeat(weights, log_odds.shape[1])
    counted = np.bincount(place, pair_weights, 2 * STRETCHES).astype(np.float64).reshape(-1, 2)
    kept = np.flatnonzero(counted.sum(axis=1) > 0)
    no, yes = counted[kept].T
    return np.sinh(low + (kept + 0.5) * width), no, yes


def honest_loss(log_odds: NDArray[Any], flags: Flags, weights: Real | None) -> float:
    """The mean log loss, over rows and labels, of log-odds that a slope and a shift of all labels make honest."""
    return _line(log_odds.astype(np.float64), flags, weights)[2]


def _line(
    log_odds: Real,
    flags: Flags,
    weights: Real | None,
    towards: tuple[float, float] = (1.0, 0.0),
    ridge: tuple[float, float] = (RIDGE, 0.0),
) -> tuple[float, float, float]:
    """Slope and shift that lose least, drawn towards others, and the mean loss: Newton's steps over stretches of log-odds."""
    x, no, yes = in_stretches(log_odds, flags, weights)
    n, (first, second), (of_slope, of_shift) = float(no.sum() + yes.sum()), towards, ridge

    def loss(slope: float, shift: float) -> float:
        z = slope * x + shift
        off = of_slope * (slope - first) ** 2 + of_shift * (shift - second) ** 2
        return float(yes @ np.logaddexp(0.0, -z) + no @ np.logaddexp(0.0, z)) + off

    if not of_shift and not (yes.sum() > 0 and no.sum() > 0):
        return first, second, loss(first, second) / max(n, 1.0)
    both = yes + no
    farthest = max(float(np.abs(x).max(initial=0.0)), 3.0)
    slope = max(min(first, 3.0 / farthest), FLATTEST)  # no sigmoid is saturated there, so that Newton finds its way
    shift = second
    now = loss(slope, shift)
    for _ in range(100):
        p = sigmoid(slope * x + shift)
        left = both * p - yes
        curve = both * p * (1.0 - p)
        down = left @ x + 2.0 * of_slope * (slope - first), left.sum() + 2.0 * of_shift * (shift - second)
        a = float(curve @ x**2) + 2.0 * of_slope
        b = float(curve @ x)
        c = float(curve.sum()) + 2.0 * of_shift + 1e-9
        step = np.array([c * down[0] - b * down[1], a * down[1] - b * down[0]]) / max(a * c - b * b, 1e-300)
        if slope == FLATTEST and step[0] > 0:  # the slope cannot fall any more, so that only the shift moves
            step = np.array([0.0, down[1] / c])
        size = 1.0
        before = now
        while size > 1e-9:
            new = max(slope - size * float(step[0]), FLATTEST), shift - size * float(step[1])
            if (now := loss(*new)) <= before:
                slope, shift = new
                break
            size /= 2.0
        if not before - now > 1e-10 * before:
            break
    return slope, shift, loss(slope, shift) / max(n, 1.0)
