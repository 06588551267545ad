"""Calibration of multi-label models: a slope and a shift of log-odds, learned from held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real

RIDGE = 1.0  # pulls the slope of all labels towards 1, and the slope and shift of one label towards those of all labels
NO_SHIFT = 1e12  # a penalty on the shift so large that the shift is 0
N_BINS = 1 << 13  # of log-odds
FARTHEST = 1e6  # log-odds are clipped to ± this
FLATTEST = 1e-6  # the least slope: above 0 to keep the order of probabilities; it turns FARTHEST into one nat
METHODS = ("temperature", "platt")
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class LabelCalibration:
    """A slope, above zero, and a shift of the log-odds of each label. Labels that come later get ``slope`` and ``shift``."""

    slopes: Real  # (labels,)
    shifts: Real  # (labels,)
    slope: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        """Raises if a slope is too small or a number is not finite."""
        all_slopes = np.append(self.slopes, self.slope)
        are_valid = np.isfinite(all_slopes).all() and all_slopes.min() >= FLATTEST
        errors.require(
            are_valid, "slopes of a calibration", all_slopes.tolist(), f"finite numbers from {FLATTEST:g} up"
        )
        all_shifts = np.append(self.shifts, self.shift)
        errors.require(np.isfinite(all_shifts).all(), "shifts of a calibration", all_shifts.tolist(), "finite numbers")

    @classmethod
    def uniform(cls, n_labels: int, slope: float = 1.0, shift: float = 0.0) -> LabelCalibration:
        """Returns the calibration of ``n_labels`` labels with the same slope and shift for all, also new ones."""
        return cls(np.full(n_labels, slope), np.full(n_labels, shift), slope, shift)

    @classmethod
    def fit(cls, method: str | None, log_odds: Real, flags: Flags, weights: Real | None) -> LabelCalibration:
        """Returns a calibration that is learned from held-out rows.

        With ``method`` None, one slope and one shift are learned for all labels; with "temperature", one slope. With
        "platt", each label has its own slope and shift, shrunk towards those of all labels.

        Args:
            method: "temperature", "platt" or None.
            log_odds: The log-odds of the rows (rows × labels).
            flags: Which labels the rows have (rows × labels).
            weights: The weight of each row, or None.
        """
        if method not in (None, *METHODS):
            raise errors.unknown_choice("method", method, METHODS)
        if method == "temperature":
            slope, _, _ = _fit_line(log_odds, flags, weights, ridge=(RIDGE, NO_SHIFT))
            return cls.uniform(log_odds.shape[1], slope)
        slope, shift, _ = _fit_line(log_odds, flags, weights)  # of all labels
        if method is None:
            return cls.uniform(log_odds.shape[1], slope, shift)
        lines = []  # the slope and shift of each label
        for label_number in range(log_odds.shape[1]):
            line_and_loss = _fit_line(
                log_odds[:, [label_number]],
                flags[:, [label_number]],
                weights,
                towards=(slope, shift),
                ridge=(RIDGE, RIDGE),
            )
            lines.append(line_and_loss[:2])
        return cls._of_lines(lines, slope, shift)

    @classmethod
    def _of_lines(cls, lines: list[tuple[float, float]], slope: float, shift: float) -> LabelCalibration:
        """Returns the calibration in which each label has the slope and shift of its line (slope, shift), and new
        labels have ``slope`` and ``shift``.
        """
        slopes, shifts = np.array(lines, dtype=np.float64).reshape(-1, 2).T.copy()  # one per label
        return cls(slopes, shifts, slope, shift)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self.slopes)

    @property
    def changes(self) -> bool:
        """Whether the calibration changes any probabilities."""
        return (self.slope, self.shift) != (1.0, 0.0) or not self.is_shared

    @property
    def is_shared(self) -> bool:
        """Whether all labels have one slope and shift."""
        return bool((self.slopes == self.slope).all() and (self.shifts == self.shift).all())

    @property
    def method(self) -> str | None:
        """The method that it was learned by: "platt" (each label has a slope and a shift), "temperature" (one slope),
        or None (one slope and one shift of all labels).
        """
        if not self.is_shared:
            return "platt"
        return "temperature" if self.shift == 0.0 else None

    def odds(self, log_odds: Real) -> Real:
        """Returns the calibrated log-odds from uncalibrated ones (rows × labels, or one row's labels)."""
        return np.asarray(self.slopes * log_odds + self.shifts)

    def apply(self, log_odds: Any) -> Real:
        """Returns the calibrated P(label | row) from log-odds (rows × labels each).

        >>> LabelCalibration.uniform(2, slope=0.5).apply([[2.0, -2.0]]).round(3).tolist()
        [[0.731, 0.269]]
        """
        return np.asarray(sigmoid(self.odds(_table(log_odds, self.n_labels))))

    def before(self, calibrated_odds: Real) -> Real:
        """Returns the log-odds that the calibration turns into ``calibrated_odds``: the inverse of ``odds``. Both have
        one number per label, on the last axis.
        """
        return np.asarray((calibrated_odds - self.shifts) / self.slopes)

    def take(self, label_numbers: list[int | None]) -> LabelCalibration:
        """Returns the calibration of the labels with these numbers, in this order; None stands for a new label."""
        lines = [  # the slope and shift of each label
            (self.slope, self.shift) if number is None else (self.slopes[number], self.shifts[number])
            for number in label_numbers
        ]
        return self._of_lines(lines, self.slope, self.shift)

    def __str__(self) -> str:
        """Describes the calibration in a few words."""
        if not self.is_shared:
            return f"Platt, {errors.many(self.n_labels, 'label')}"
        if self.shift == 0.0:
            return f"temperature {1.0 / self.slope:.3g}"
        return f"slope {self.slope:.3g} and shift {self.shift:.3g} of all log-odds"

    __repr__ = __str__


def calibrate_labels(method: str, log_odds: Any, flags: Any, weights: Real) -> LabelCalibration:
    """Checks log-odds and flags (rows × labels each) that a user passes, and returns a calibration learned from the
    rows whose weights are above zero. ``method`` is "temperature" or "platt", and ``weights`` has one number per row.
    """
    if method not in METHODS:
        raise errors.unknown_choice("method", method, METHODS)
    flag_table = np.asarray(flags)
    odds_table = _table(log_odds, flag_table.shape[1])
    errors.require(len(odds_table), "log_posteriors", "no rows", "log-odds, rows × labels, with at least one row")
    if len(flag_table) != len(odds_table):
        raise errors.length_mismatch("rows of flags", len(flag_table), len(odds_table))
    is_zero_or_one = flag_table.dtype.kind in "biuf" and bool(np.isin(flag_table, (0, 1)).all())
    errors.require(
        is_zero_or_one, "truth", f"an array of {flag_table.dtype}", "flags, rows × labels: 0 and 1 or True and False"
    )
    has_weight = weights > 0
    return LabelCalibration.fit(
        method, odds_table[has_weight], flag_table[has_weight].astype(np.bool_), weights[has_weight]
    )


def _table(log_odds: Any, n_labels: int) -> Real:
    """Returns log-odds that a user passes as an array (rows × ``n_labels``), clipped to ±FARTHEST. Raises if they have
    another shape or contain nan.
    """
    try:
        odds_table = np.asarray(log_odds, dtype=np.float64)
        type_name = ""  # of what cannot be converted to an array of numbers
    except (TypeError, ValueError):
        odds_table = np.zeros(0)
        type_name = type(log_odds).__name__
    has_shape = odds_table.ndim == 2 and odds_table.shape[1] == n_labels
    errors.require(
        has_shape,
        "log_posteriors",
        type_name or f"an array of the shape {odds_table.shape}",
        f"log-odds, rows × {errors.many(n_labels, 'label')}",
    )
    if np.isnan(odds_table).any():
        row, label = (int(number) for number in np.argwhere(np.isnan(odds_table))[0])
        raise errors.BadValue(
            f"log_posteriors contains nan in row {row:,} for label number {label:,}, but must contain log-odds. Remove these "
            "rows, or check how the scores were computed.",
            row=row,
            number=label,
        )
    return np.clip(odds_table, -FARTHEST, FARTHEST)


def sigmoid(odds: Any) -> Any:
    """Returns the probability for each of these log-odds, as precise for small probabilities as for large ones."""
    odds = np.asarray(odds, dtype=np.float64)  # log-odds
    exp_of_minus_distance = np.exp(-np.abs(odds))
    return np.where(odds < 0, exp_of_minus_distance, 1.0) / (1.0 + exp_of_minus_distance)


def bin_log_odds(log_odds: Real, flags: Flags, weights: Real | None) -> tuple[Real, Real, Real]:
    """Groups the log-odds of all rows and labels into bins, which are narrow near zero. Returns, for each bin that is
    not empty, its middle, the weight of pairs of row and label where the row does not have the label, and of those
    where it does.

    ``log_odds`` and ``flags``, which say which labels rows have, are rows × labels; ``weights`` has one number per row,
    or is None.
    """
    arcsinh_odds = np.arcsinh(log_odds.ravel())  # of each pair of row and label; bins have one width on this scale
    low, high = (float(arcsinh_odds.min()), float(arcsinh_odds.max())) if arcsinh_odds.size else (0.0, 0.0)
    width = max(high - low, 1e-9) / N_BINS
    # Of each pair of row and label: twice the number of its bin, plus 1 if the row has the label.
    bin_and_flag = np.minimum((arcsinh_odds - low) / width, N_BINS - 1).astype(np.int64) * 2 + flags.ravel()
    pair_weights = None if weights is None else np.repeat(weights, log_odds.shape[1])
    # The weight of the pairs in each bin: bins × (without the label, with it).
    bin_weights = np.bincount(bin_and_flag, pair_weights, 2 * N_BINS).astype(np.float64).reshape(-1, 2)
    # Of the bins that are not empty:
    bin_numbers = np.flatnonzero(bin_weights.sum(axis=1) > 0)
    weight_without_label, weight_with_label = bin_weights[bin_numbers].T
    return np.sinh(low + (bin_numbers + 0.5) * width), weight_without_label, weight_with_label


def honest_loss(log_odds: NDArray[Any], flags: Flags, weights: Real | None) -> float:
    """Returns the mean log loss over rows and labels after one slope and one shift for all labels have been learned
    from these log-odds (rows × labels) and flags (rows × labels), which say which labels the rows have. ``weights``
    has one number per row, or is None.
    """
    return _fit_line(log_odds.astype(np.float64), flags, weights)[2]


def _fit_line(
    log_odds: Real,
    flags: Flags,
    weights: Real | None,
    towards: tuple[float, float] = (1.0, 0.0),
    ridge: tuple[float, float] = (RIDGE, 0.0),
) -> tuple[float, float, float]:
    """Returns the slope and shift of log-odds that have the least log loss, and their mean log loss.

    Newton's method runs on binned log-odds.

    Args:
        log_odds: The log-odds of rows (rows × labels), for all of which one line is learned.
        flags: Which labels the rows have (rows × labels).
        weights: The weight of each row, or None.
        towards: The slope and shift that the line is shrunk towards.
        ridge: The penalties on the squared distances of slope and shift from these.
    """
    # The middle of each bin, and the weight of the pairs in it whose row lacks the label, and has it.
    bin_odds, no_weight, yes_weight = bin_log_odds(log_odds, flags, weights)
    total_weight = float(no_weight.sum() + yes_weight.sum())
    prior_slope, prior_shift = towards
    slope_ridge, shift_ridge = ridge

    def loss(slope: float, shift: float) -> float:
        """Returns the summed log loss of this slope and shift, plus the penalties on their distances from the prior
        ones. ``bin_odds`` has the middle of each bin, and ``yes_weight`` and ``no_weight`` the weight of its pairs.
        """
        calibrated_odds = slope * bin_odds + shift  # of each bin
        penalty = slope_ridge * (slope - prior_slope) ** 2 + shift_ridge * (shift - prior_shift) ** 2
        return (
            float(yes_weight @ np.logaddexp(0.0, -calibrated_odds) + no_weight @ np.logaddexp(0.0, calibrated_odds))
            + penalty
        )

    if not shift_ridge and not (yes_weight.sum() > 0 and no_weight.sum() > 0):
        return prior_slope, prior_shift, loss(prior_slope, prior_shift) / max(total_weight, 1.0)
    bin_weight = yes_weight + no_weight  # of all pairs in each bin
    farthest = max(float(np.abs(bin_odds).max(initial=0.0)), 3.0)  # log-odds
    # Newton's method starts where no sigmoid is saturated.
    slope = max(min(prior_slope, 3.0 / farthest), FLATTEST)
    shift = prior_shift
    current_loss = loss(slope, shift)
    for _ in range(100):
        probabilities = sigmoid(slope * bin_odds + shift)  # of each bin, as the next two
        residual = bin_weight * probabilities - yes_weight
        curvature = bin_weight * probabilities * (1.0 - probabilities)
        # The derivatives of the loss.
        slope_gradient = residual @ bin_odds + 2.0 * slope_ridge * (slope - prior_slope)
        shift_gradient = residual.sum() + 2.0 * shift_ridge * (shift - prior_shift)
        # The second derivatives of the loss: its Hessian.
        by_slope_twice = float(curvature @ bin_odds**2) + 2.0 * slope_ridge
        by_slope_and_shift = float(curvature @ bin_odds)
        by_shift_twice = float(curvature.sum()) + 2.0 * shift_ridge + 1e-9
        newton_step = np.array(  # of the slope and of the shift, to be subtracted
            [
                by_shift_twice * slope_gradient - by_slope_and_shift * shift_gradient,
                by_slope_twice * shift_gradient - by_slope_and_shift * slope_gradient,
            ]
        )
        newton_step = newton_step / max(
            by_slope_twice * by_shift_twice - by_slope_and_shift * by_slope_and_shift, 1e-300
        )
        if slope == FLATTEST and newton_step[0] > 0:  # the slope cannot fall any more, so that only the shift moves
            newton_step = np.array([0.0, shift_gradient / by_shift_twice])
        step_size = 1.0
        previous_loss = current_loss
        while step_size > 1e-9:  # halves the step until the loss falls
            new_slope = max(slope - step_size * float(newton_step[0]), FLATTEST)
            new_shift = shift - step_size * float(newton_step[1])
            current_loss = loss(new_slope, new_shift)
            if current_loss <= previous_loss:
                slope = new_slope
                shift = new_shift
                break
            step_size /= 2.0
        if not previous_loss - current_loss > 1e-10 * previous_loss:
            break
    return slope, shift, loss(slope, shift) / max(total_weight, 1.0)
