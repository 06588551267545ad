"""Calibration: turns out-of-fold scores into probabilities that match the observed frequencies.

Naive Bayes counts repeated evidence as if it were new, so that its posteriors are too close to 0 and 1. A calibration learns by
how much from rows that the model has not seen, and corrects it.

Inside this module, scores are (classes × rows): sums over classes then add long rows, which is fast.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.errors import check_whole, many
from banbury.labels.calibration import calibrate_labels
from banbury.tally.table import bad_weight

Method = Literal["temperature", "platt", "isotonic"]

COLDEST = 1e-3  # the lowest temperature
HOTTEST = 1e4  # the highest temperature
LEAST_SLOPE = 1e-12  # a slope of the mean log loss below this counts as 0
IMPOSSIBLE = -1e100  # replaces a log posterior of −inf: its exponential is 0 at every temperature
FLOOR = -36.04  # scikit-learn's: the logarithm of 2.2e-16
BETTER = 0.01  # the floor is used if it lowers the log loss by more than this share
FARTHEST = 1e300  # replaces infinite log-odds where a finite number is needed
ALIKE = 1e-9  # log-odds whose relative difference is smaller count as equal
SAMPLE = 2_048  # rows on which the search for the temperature starts
BLOCK = 2**15  # numbers in a block of scores, which fits in the processor's cache
HEAVIEST = 2.0**500  # weights must be below this


def calibrate(
    method: Method, log_posteriors: ArrayLike, truth: ArrayLike, weights: ArrayLike | None = None
) -> Calibration:
    """Learns a calibration from the scores of rows that the model has not seen.

    Args:
        method: "temperature" divides all log posteriors by one number, which never changes the predicted class. "platt"
            passes the log-odds of each class against the rest through a sigmoid. "isotonic" passes them through a
            rising step function, which needs some thousand rows. For several labels, "platt" fits a line per label that
            is shrunk towards the line of all labels, and "temperature" divides by one number.
        log_posteriors: Log posteriors or log joints (rows × classes). −∞ means that a class is impossible. For several
            labels, the log-odds of each label.
        truth: The class number of each row; for several labels, flags (rows × labels).
        weights: The weight of each row. Rows of weight 0 are ignored.

    Pass the result to ``calibrated`` of a model. Raises an error for scores that are probabilities, not logarithms.

    >>> certain = np.log([[0.999, 0.001], [0.999, 0.001], [0.001, 0.999], [0.001, 0.999]])
    >>> calibration = calibrate("temperature", certain, [0, 0, 0, 1])  # three of four right, and 0.999 claimed
    >>> calibration
    temperature 6.29
    >>> calibration.apply(certain).round(3).tolist()
    [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    """
    if np.ndim(truth) == 2:
        row_weights = _check_weights(weights, n_rows=len(np.asarray(truth)))
        return calibrate_labels(method, log_posteriors, truth, row_weights)  # type: ignore[return-value]
    calibration_class = _calibration_class(method)
    scores = _check_scores(log_posteriors)  # classes × rows
    unchecked_scores = np.asarray(log_posteriors)  # rows × classes
    errors.require(scores.shape[1], "log_posteriors", "no rows", "rows × classes, with at least one row")
    are_probabilities = (
        len(scores) > 1 and (unchecked_scores >= 0).all() and (np.abs(unchecked_scores.sum(axis=1) - 1.0) <= 1e-6).all()
    )
    errors.require(not are_probabilities, "log_posteriors", "probabilities", "logarithms, such as np.log(posteriors)")
    class_numbers = _check_truth(truth, *scores.shape)  # of each row
    row_weights = _check_weights(weights, scores.shape[1])
    is_weighted = row_weights > 0
    if not is_weighted.all():
        scores = scores[:, is_weighted]
        class_numbers = class_numbers[is_weighted]
        row_weights = row_weights[is_weighted]
    return calibration_class.fit(scores, class_numbers, row_weights)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(ABC):
    """Turns scores into calibrated probabilities. ``bb.calibrate`` returns one."""

    n_classes: int
    method: ClassVar[Method]  # the name by which users ask for it

    @classmethod
    @abstractmethod
    def fit(cls, scores: Real, truth: Int, weights: Real) -> Self:
        """Fits the calibration to checked log scores (classes × rows) whose maximum in every row is 0. ``truth`` has the
        class number of each row, and ``weights`` its weight, which is positive.
        """

    @property
    def keeps_order(self) -> bool:
        """Whether the most probable class always stays the most probable."""
        return self.method == "temperature"

    @property
    def scale(self) -> float:
        """The factor by which the calibration multiplies the evidence for one class against another."""
        return 1.0

    @property
    def only_scales(self) -> bool:
        """Whether the calibration only multiplies the evidence by ``scale``."""
        return False

    def apply(self, log_posteriors: ArrayLike) -> Real:
        """Returns calibrated P(class | row) (rows × classes) from log posteriors or log joints (rows × classes). A row
        in which every class is impossible gets equal probabilities.
        """
        return self._posterior_rows(log_posteriors, log=False)

    def log_apply(self, log_posteriors: ArrayLike) -> Real:
        """Returns calibrated log P(class | row) (rows × classes), also where the probability itself underflows, from
        log posteriors or log joints (rows × classes).
        """
        return self._posterior_rows(log_posteriors, log=True)

    def _posterior_rows(self, log_posteriors: ArrayLike, log: bool) -> Real:
        """Checks log posteriors (rows × classes) and returns calibrated ones, as logarithms if ``log``."""
        scores = _check_scores(log_posteriors, self.n_classes)  # classes × rows, the largest of each row 0
        with np.errstate(over="ignore", divide="ignore"):
            return np.ascontiguousarray(self._posteriors(scores, log).T)

    @abstractmethod
    def _posteriors(self, scores: Real, log: bool) -> Real:
        """Returns the calibrated probabilities, or their logarithms if ``log``, of checked log scores (classes × rows)."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Returns the parameters as arrays by name, for a file."""
        return {field.name: np.atleast_1d(getattr(self, field.name)) for field in fields(self)}

    @abstractmethod
    def rules(self) -> dict[str, Any]:
        """Returns the columns of an evidence table's calibration: for all classes one number, or one for each."""

    @staticmethod
    def from_state(method: str, state: Mapping[str, NDArray[Any]]) -> Calibration:
        """Restores a calibration by this method from its ``state``, which has arrays by name. Raises an error if one of
        them is missing or wrong.

        >>> calibration = calibrate("platt", [[-0.1, -2.4], [-3.0, -0.1]], [0, 1])
        >>> Calibration.from_state("platt", calibration.state())
        Platt, 2 classes
        """
        arrays = _State(method, state)
        return _calibration_class(method)._from_state(
            int(arrays.numbers("n_classes", size=1, integers=True)[0]), arrays
        )

    @classmethod
    @abstractmethod
    def _from_state(cls, n_classes: int, state: _State) -> Self:
        """Builds the calibration of ``n_classes`` classes from the arrays in a file. Invalid ones raise an error."""

    @abstractmethod
    def __str__(self) -> str:
        """Returns the method and its most important number."""

    def __repr__(self) -> str:
        return str(self)


# Temperature ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Temperature(Calibration):
    """P(class | row) ∝ exp(log posterior / temperature). The most probable class never changes, and ties stay ties.

    If it makes the training rows more likely, posteriors below 2.2e-16 times the highest, the precision of a double,
    are raised to that value: for long texts naive Bayes answers e^-300 where it is wrong one time in four.
    """

    temperature: float
    floor: float = IMPOSSIBLE  # lower log posteriors, relative to the row's highest, are raised to it
    method: ClassVar[Method] = "temperature"

    @classmethod
    def fit(cls, scores: Real, truth: Int, weights: Real) -> Temperature:
        """Finds the temperature with the lowest log loss for log scores (classes × rows), whose maximum in every row is
        0, and whether to raise low scores to the floor. ``truth`` has the class number of each row, and ``weights`` its
        weight. Rows whose true class is impossible are ignored, because no temperature would help; without others the
        temperature is 1.
        """
        true_scores = scores[truth, np.arange(len(truth))]  # of each row
        is_possible = true_scores > -np.inf
        if not is_possible.all():
            scores = scores[:, is_possible]
            true_scores = true_scores[is_possible]
            weights = weights[is_possible]
        best_calibration = cls(len(scores), temperature=1.0)
        least_loss = np.inf  # that of the best calibration so far
        stride = len(true_scores) // SAMPLE  # every so many rows, one is in the sample
        if not len(true_scores):
            return best_calibration
        for floor in (IMPOSSIBLE, FLOOR) if float(true_scores.min()) < FLOOR else (IMPOSSIBLE,):
            raised_scores = np.maximum(_raise_to_floor(scores, floor), IMPOSSIBLE)
            raised_true_scores = np.maximum(true_scores, floor)
            inverse_temperature = 1.0  # where the search starts
            if stride > 1:
                sampled_scores = np.ascontiguousarray(raised_scores[:, ::stride])
                inverse_temperature = _inverse_temperature(
                    sampled_scores, raised_true_scores[::stride], weights[::stride], inverse_temperature
                )
            inverse_temperature = _inverse_temperature(raised_scores, raised_true_scores, weights, inverse_temperature)
            loss = _log_loss(raised_scores, raised_true_scores, weights, inverse_temperature)
            if loss < least_loss * (1.0 - BETTER) or floor == IMPOSSIBLE:
                best_calibration = cls(len(scores), 1.0 / inverse_temperature, floor)
                least_loss = loss
        return best_calibration

    def rules(self) -> dict[str, Any]:
        """Returns the columns of an evidence table's calibration: one number each for all classes."""
        return {"temperature": self.temperature, "floor": self.floor}

    @property
    def scale(self) -> float:
        """The factor by which the calibration multiplies the evidence."""
        return 1.0 / self.temperature

    @property
    def only_scales(self) -> bool:
        """Whether the calibration only divides by the temperature, without raising low scores to a floor."""
        return self.floor <= IMPOSSIBLE

    def _posteriors(self, scores: Real, log: bool) -> Real:
        """Returns the probabilities, or their logarithms if ``log``, of log scores (classes × rows): low ones are
        raised to ``floor``, and all are divided by the temperature. A lower score never ties with the row's best.
        """
        posteriors = _softmax(_raise_to_floor(scores, self.floor) / self.temperature, log)
        # If a high temperature has rounded a lower score to the best one, it is set to the next lower number.
        is_tied = (posteriors == posteriors.max(axis=0)) & (scores < 0)
        if is_tied.any():
            posteriors[is_tied] = np.nextafter(posteriors[is_tied], -np.inf)
        return posteriors

    @classmethod
    def _from_state(cls, n_classes: int, state: _State) -> Temperature:
        """Builds the calibration of ``n_classes`` classes from ``state``, the arrays in a file, which have one number
        each: the temperature, and the floor to which lower log posteriors are raised. Raises an error for a number out
        of range.
        """
        temperature, floor = (float(state.numbers(name, size=1)[0]) for name in ("temperature", "floor"))
        in_range = 0.999 * COLDEST <= temperature <= 1.001 * HOTTEST  # rounded when it was found
        state.check("temperature", in_range, f"from {COLDEST:g} to {HOTTEST:g}")
        state.check("floor", floor < 0, "below 0")
        return cls(n_classes, temperature, floor)

    def __str__(self) -> str:
        return f"temperature {self.temperature:.3g}"


def _raise_to_floor(scores: Real, floor: float) -> Real:
    """Returns log scores (classes × rows) in which those below the floor are raised to it, except those of impossible
    classes, which are −∞.
    """
    if floor <= IMPOSSIBLE:
        return scores
    return np.where(np.isneginf(scores), scores, np.maximum(scores, floor))


def _log_loss(scores: Real, true_scores: Real, weights: Real, inverse_temperature: float) -> float:
    """Returns the weighted mean of −log P(true class) over the rows, when log scores (classes × rows) are multiplied by
    the inverse temperature. ``true_scores`` has the score of each row's true class, and ``weights`` the weight of each
    row.
    """
    loss_sum = 0.0
    for block in _blocks(scores):  # slices of the rows
        # Of each row: −log P(true class).
        losses = (
            np.log(np.exp(inverse_temperature * scores[:, block]).sum(axis=0))
            - inverse_temperature * true_scores[block]
        )
        loss_sum += _sum_of_products(weights[block], losses)
    return loss_sum / float(weights.sum())


def _blocks(scores: Real) -> Iterator[slice]:
    """Yields slices of the rows of ``scores`` (classes × rows) that are small enough for the processor's cache."""
    width = max(1, BLOCK // len(scores))  # rows in a slice
    for start in range(0, scores.shape[1], width):
        yield slice(start, start + width)


def _inverse_temperature(scores: Real, true_scores: Real, weights: Real, inverse: float) -> float:
    """Returns the inverse temperature with the lowest log loss of log scores (classes × rows), starting from
    ``inverse``. It is Newton's method between two bounds that close in. ``true_scores`` has the score of each row's
    true class, and ``weights`` the weight of each row.
    """
    low = 1.0 / HOTTEST  # the bounds of the inverse temperature
    high = 1.0 / COLDEST
    shares = weights / weights.sum()  # of the weight, by row
    for _ in range(100):  # steps; a few are usually enough
        slope, curvature = _derivatives(scores, true_scores, shares, inverse)  # of the log loss
        if abs(slope) * inverse <= LEAST_SLOPE:
            break
        low, high = (low, inverse) if slope > 0 else (inverse, high)
        step = slope / curvature if abs(slope) < curvature * high else np.inf
        next_inverse = inverse - step if low < inverse - step < high else float(np.sqrt(low * high))
        if abs(next_inverse - inverse) <= 1e-12 * inverse:
            break
        inverse = next_inverse
    return inverse


def _derivatives(scores: Real, true_scores: Real, shares: Real, inverse: float) -> tuple[float, float]:
    """Returns the first and second derivative of the mean log loss with respect to the inverse temperature, from log
    scores (classes × rows), the score of each row's true class, and each row's share of the weight. For each row they
    are its expected score minus the score of its true class, and the variance of its scores.
    """
    slope = curvature = 0.0
    for block in _blocks(scores):  # slices of the rows
        block_scores = scores[:, block]
        terms = np.exp(inverse * block_scores)  # unnormalised probabilities; below times the scores, and their squares
        sum_of_exponentials = terms.sum(axis=0)  # of each row, like what follows
        terms *= block_scores
        expected_score = terms.sum(axis=0) / sum_of_exponentials
        terms *= block_scores
        expected_square = terms.sum(axis=0) / sum_of_exponentials
        slope += _sum_of_products(shares[block], expected_score - true_scores[block])
        curvature += _sum_of_products(shares[block], expected_square - expected_score**2)
    return slope, curvature


# Platt's sigmoids -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Platt(Calibration):
    """P(class) ∝ 1 / (1 + exp(−(slope · log-odds + intercept))), with one sigmoid per class, or a single one for two
    classes.

    Infinite log-odds stay probabilities of 0 or 1 and do not influence the fit.
    """

    slopes: Real  # one per sigmoid: of each class, or of the second of two
    intercepts: Real
    method: ClassVar[Method] = "platt"

    @classmethod
    def fit(cls, scores: Real, truth: Int, weights: Real) -> Platt:
        """Fits a sigmoid to the log-odds of each class, computed from log scores (classes × rows). ``truth`` has the
        class number of each row, and ``weights`` its weight.
        """
        # For each sigmoid the log-odds of its class, one per row, and the number of its class.
        odds_and_classes = zip(_log_odds(scores), _odds_classes(len(scores)), strict=True)
        slopes, intercepts = np.array(
            [_fit_sigmoid(odds, truth == class_number, weights) for odds, class_number in odds_and_classes]
        ).T
        return cls(len(scores), slopes.copy(), intercepts.copy())

    def rules(self) -> dict[str, Any]:
        """Returns the columns of an evidence table's calibration: the slopes, one for each class or one for two
        classes, and the shift of each class.
        """
        shift = self.intercepts
        return {"slope": self.slopes, "shift": np.append(-shift, shift) if self.n_classes == 2 else shift}

    @property
    def scale(self) -> float:
        """The slope of the sigmoid of two classes, if it rises."""
        return float(self.slopes[0]) if self.n_classes == 2 and self.slopes[0] > 0 else 1.0

    def _posteriors(self, scores: Real, log: bool) -> Real:
        """Returns the probabilities (classes × rows), or their logarithms if ``log``, that the sigmoids give to log
        scores (classes × rows). There is one sigmoid per class, with its slope and intercept, or a single one for two
        classes.
        """
        from scipy.special import log_expit  # a third of a second to import; few need it

        odds = _log_odds(scores)  # sigmoids × rows
        with np.errstate(invalid="ignore"):  # a slope of 0 times infinite odds, which are not used
            logits = self.slopes[:, None] * odds + self.intercepts[:, None]
        logits = np.where(np.isinf(odds), odds, logits)
        # The logarithms of what the sigmoids give, which do not sum to 1 yet (classes × rows).
        log_shares = log_expit(np.concatenate([-logits, logits]) if self.n_classes == 2 else logits)
        return _softmax(_shift_best_to_zero(np.asarray(log_shares, dtype=np.float64)), log)

    @classmethod
    def _from_state(cls, n_classes: int, state: _State) -> Platt:
        """Builds the calibration of ``n_classes`` classes from ``state``, the arrays in a file, which have an entry for
        each sigmoid.
        """
        n_sigmoids = len(_odds_classes(n_classes))
        return cls(n_classes, state.numbers("slopes", n_sigmoids), state.numbers("intercepts", n_sigmoids))

    def __str__(self) -> str:
        return f"Platt, {many(self.n_classes, 'class')}"


def _fit_sigmoid(odds: Real, is_positive: NDArray[np.bool_], weights: Real) -> tuple[float, float]:
    """Returns the slope and intercept of a sigmoid fitted to one log-odds per row, by Newton's method on the log loss;
    1 and 0, which change nothing, without finite log-odds. ``is_positive`` says which rows have the class, and
    ``weights`` has the weight of each. The targets are Platt's, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2).
    """
    from scipy.special import expit

    is_finite = np.isfinite(odds)
    if not is_finite.any():
        return 1.0, 0.0
    odds = np.clip(odds[is_finite], -FARTHEST, FARTHEST)
    is_positive = is_positive[is_finite]
    weights = weights[is_finite]
    positive_weight = float(weights[is_positive].sum())
    negative_weight = float(weights[~is_positive].sum())
    if not (positive_weight and negative_weight):  # one target for all rows, so that scores say nothing
        return 0.0, float(np.log((positive_weight + 1.0) / (negative_weight + 1.0)))
    # Of each row: the probability to fit, which is neither 0 nor 1, so that slopes are finite.
    targets = np.where(is_positive, (positive_weight + 1.0) / (positive_weight + 2.0), 1.0 / (negative_weight + 2.0))
    centre = float(np.median(odds))  # log-odds are centred and scaled to −1 to 1 before the fit
    weight_shares = weights / weights.sum()  # of each row
    odds = odds - centre
    scale = float(np.abs(odds).max())
    if scale <= ALIKE * max(1.0, abs(centre)):
        odds = np.zeros_like(odds)  # and so the slope stays 0
        scale = 1.0
    odds /= scale

    def loss(line: Real) -> float:
        """Returns the mean log loss of a line (slope, intercept) over the rows, which have ``odds``, ``targets`` (the
        probabilities to fit) and ``weight_shares``, one entry each.
        """
        logits = line[0] * odds + line[1]
        return _sum_of_products(weight_shares, np.logaddexp(0.0, logits) - targets * logits)

    def newton(line: Real) -> tuple[Real, Real]:
        """Returns the gradient of the loss by (slope, intercept), and the step of Newton's method to be subtracted from
        the line. The rows have ``odds``, ``targets`` (the probabilities to fit) and ``weight_shares``, one entry each.
        """
        probabilities = expit(line[0] * odds + line[1])  # of each row, as the residuals and curvatures
        residuals = weight_shares * (probabilities - targets)
        curvatures = weight_shares * probabilities * (1.0 - probabilities)
        gradient = np.array([_sum_of_products(residuals, odds), residuals.sum()])
        mixed_derivative = _sum_of_products(curvatures, odds)
        hessian = np.array(
            [[_sum_of_products(curvatures, odds**2), mixed_derivative], [mixed_derivative, curvatures.sum()]]
        )
        return gradient, np.linalg.solve(hessian + np.diag(np.maximum(1e-14 * hessian.diagonal(), 1e-200)), gradient)

    # The slope and the intercept, for centred and scaled log-odds.
    line = np.array([0.0, np.log((positive_weight + 1.0) / (negative_weight + 1.0))])
    current_loss = loss(line)
    for _ in range(200):
        gradient, step = newton(line)
        gain = float(gradient @ step)  # by how much the loss falls, to first order
        step_share = 1.0  # halved until the loss falls
        next_loss = loss(line - step)
        while not next_loss <= current_loss - 1e-4 * step_share * gain and step_share > 1e-10:
            step_share /= 2.0
            next_loss = loss(line - step_share * step)
        if next_loss <= current_loss:
            line = line - step_share * step
            current_loss = next_loss
        if step_share <= 1e-10 or gain <= 1e-14 * current_loss:
            break
    for _ in range(2):  # what the loss can no longer tell apart, its slope can
        step = newton(line)[1]
        line = line - np.where(np.abs(step).max() < 1e-4, step, 0.0)
    slope = float(line[0]) / scale
    return slope, float(line[1]) - slope * centre


# Isotonic regression --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Isotonic(Calibration):
    """P(class) ∝ the non-decreasing step function that fits the outcomes best, interpolated linearly between ``odds``
    and ``shares`` and constant beyond them.

    The points of all classes are concatenated; ``lengths`` has the number of points of each. Two classes need only
    those of the second.
    """

    lengths: Int  # of each class, the number of its points
    odds: Real  # the log-odds of the points, rising within a class
    shares: Real  # the share of rows that have the class, at each point
    method: ClassVar[Method] = "isotonic"

    @classmethod
    def fit(cls, scores: Real, truth: Int, weights: Real) -> Isotonic:
        """Fits a non-decreasing step function to the log-odds of each class, computed from log scores (classes × rows).
        ``truth`` has the class number of each row, and ``weights`` its weight.
        """
        from sklearn.isotonic import IsotonicRegression  # a second to import; few need it

        # For each step function the log-odds of its class, one per row, and the number of its class.
        odds_and_classes = zip(np.clip(_log_odds(scores), -FARTHEST, FARTHEST), _odds_classes(len(scores)), strict=True)
        new_regression = partial(IsotonicRegression, out_of_bounds="clip")
        regressions = [
            new_regression().fit(odds, truth == class_number, sample_weight=weights)
            for odds, class_number in odds_and_classes
        ]
        # Of each step function the number of its points; and the points of all, one step function after the other.
        lengths = np.array([len(regression.X_thresholds_) for regression in regressions], dtype=np.int64)
        odds = np.concatenate([regression.X_thresholds_ for regression in regressions])
        shares = np.clip(np.concatenate([regression.y_thresholds_ for regression in regressions]), 0.0, 1.0)
        return cls(len(scores), lengths, odds, shares)

    def rules(self) -> dict[str, Any]:
        """Returns the columns of an evidence table's calibration: the log-odds and the shares of the points of each
        class, also of the first of two.
        """
        stairs = self._stairs  # points (log-odds, shares) of each class; of two only the second
        if self.n_classes == 2:
            odds, shares = stairs[0]
            stairs = [(-odds[::-1], 1.0 - shares[::-1]), *stairs]
        return {"odds": [odds for odds, _ in stairs], "shares": [shares for _, shares in stairs]}

    @cached_property
    def _stairs(self) -> list[tuple[Real, Real]]:
        """The points (log-odds, shares) of the step function of each class; of two classes only the second. They are
        cut from the concatenated ``odds`` and ``shares``, ``lengths`` of them for each class.
        """
        ends = np.cumsum(self.lengths)[:-1]  # where the points of each class but the last end
        return list(zip(np.split(self.odds, ends), np.split(self.shares, ends), strict=True))

    def _posteriors(self, scores: Real, log: bool) -> Real:
        """Returns the probabilities (classes × rows), or their logarithms if ``log``, that the step functions give to
        log scores (classes × rows). ``_stairs`` has the points (log-odds, shares) of each step function; two classes
        have one. Rows in which the shares of all classes are 0 get equal probabilities.
        """
        odds_by_class = np.clip(_log_odds(scores), -FARTHEST, FARTHEST)  # step functions × rows, as ``shares``
        shares = np.array([np.interp(odds, *points) for odds, points in zip(odds_by_class, self._stairs, strict=True)])
        if self.n_classes == 2:
            posteriors = np.concatenate([1.0 - shares, shares])
        else:
            sum_of_shares = shares.sum(axis=0)  # of each row
            posteriors = np.full_like(shares, 1.0 / self.n_classes)
            np.divide(shares, sum_of_shares, out=posteriors, where=sum_of_shares > 0)
        return np.log(posteriors) if log else posteriors

    @classmethod
    def _from_state(cls, n_classes: int, state: _State) -> Isotonic:
        """Builds the calibration of ``n_classes`` classes from ``state``, the arrays in a file: how many points each
        step function has, and their log-odds and shares, one step function after the other. Raises an error unless they
        rise.
        """
        lengths = state.numbers("lengths", len(_odds_classes(n_classes)), integers=True)
        n_points = sum(lengths.tolist())  # not in int64, which would go round
        calibration = cls(n_classes, lengths, state.numbers("odds", n_points), state.numbers("shares", n_points))
        for odds, shares in calibration._stairs:
            state.check("odds", bool(np.all(odds[1:] > odds[:-1])), "rising within each class")
            state.check("odds", bool(np.all(np.abs(odds) <= FARTHEST)), f"from {-FARTHEST:g} to {FARTHEST:g}")
            state.check("shares", bool(np.all(shares[1:] >= shares[:-1])), "not falling within a class")
            state.check("shares", bool(np.all((shares >= 0) & (shares <= 1))), "from 0 to 1")
        return calibration

    def __str__(self) -> str:
        return f"isotonic, {many(self.n_classes, 'class')}"


METHODS: dict[str, type[Calibration]] = {"temperature": Temperature, "platt": Platt, "isotonic": Isotonic}


def _calibration_class(method: str) -> type[Calibration]:
    """Returns the class of calibrations of this name. Raises an error for an unknown one."""
    if method not in tuple(METHODS):
        raise errors.unknown_choice("method", method, METHODS)
    return METHODS[method]


def _odds_classes(n_classes: int) -> range:
    """Returns the class numbers of the rows of ``_log_odds``: of two classes only the second."""
    return range(1, 2) if n_classes == 2 else range(n_classes)


def _log_odds(scores: Real) -> Real:
    """Returns log P(class) − log P(any other) (classes × rows) from log scores (classes × rows) whose maximum in every
    row is 0; for two classes only that of the second (1 × rows). Certain classes have ±∞.
    """
    if len(scores) == 2:
        odds: Real = scores[1:] - scores[:1]
        return odds
    best_class = scores.argmax(axis=0)  # of each row
    row_numbers = np.arange(scores.shape[1])
    # Without the best class, which is treated separately: 1 − P would be 0 long before it is.
    other_scores = scores.copy()
    other_scores[best_class, row_numbers] = -np.inf
    second_best = other_scores.max(axis=0)  # of each row: the score of the best other class
    finite_second_best = np.where(second_best > -np.inf, second_best, 0.0)
    with np.errstate(divide="ignore"):
        log_sum_of_others = second_best + np.log(np.exp(other_scores - finite_second_best).sum(axis=0))
    exponentials = np.exp(other_scores)  # classes × rows, as ``odds``
    odds = scores - np.log1p(exponentials.sum(axis=0) - exponentials)
    odds[best_class, row_numbers] = -log_sum_of_others
    return odds


def _shift_best_to_zero(scores: Real) -> Real:
    """Subtracts from the log scores of every row (classes × rows) its largest, in place, and returns them. A row of −∞
    alone becomes zeros.
    """
    best_scores = scores.max(axis=0)
    is_impossible = best_scores == -np.inf  # whether each row is, in every class
    with np.errstate(over="ignore"):
        scores -= np.where(is_impossible, 0.0, best_scores)
    if is_impossible.any():
        scores[:, is_impossible] = 0.0
    return scores


def _softmax(scores: Real, log: bool) -> Real:
    """Returns log scores (classes × rows) normalised to probabilities, or to their logarithms if ``log``."""
    exponentials = np.exp(scores)
    sum_of_exponentials = exponentials.sum(axis=0)
    return np.asarray(scores - np.log(sum_of_exponentials) if log else exponentials / sum_of_exponentials)


def _sum_of_products(weights: Real, numbers: Real) -> float:
    """Returns the sum of weights times numbers. BLAS would add in another order each time, and its threads wait for
    each other on a busy machine.
    """
    return float((weights * numbers).sum())


# What is given --------------------------------------------------------------------------------------------------------


def _check_table(name: str, values: ArrayLike, n_classes: int | None = None) -> Real:
    """Checks ``values``, an array of rows × classes from the user, and returns a copy (classes × rows). ``name`` is the
    parameter for messages, and ``n_classes`` the number of classes it must have; None allows any.
    """
    class_text = "classes" if n_classes is None else many(n_classes, "class")
    try:
        scores = np.asarray(values, dtype=np.float64)
        type_name = ""
    except (TypeError, ValueError):
        scores = np.zeros(0)  # refused below
        type_name = type(values).__name__
    has_shape = scores.ndim == 2 and scores.shape[1] > 0 and n_classes in (None, scores.shape[1])
    requirement = f"rows × {class_text}, a 2-D array of numbers"
    errors.require(has_shape, name, type_name or f"an array of the shape {scores.shape}", requirement)
    return np.array(scores.T, order="C", copy=True)


def _check_scores(log_posteriors: ArrayLike, n_classes: int | None = None) -> Real:
    """Checks log posteriors (rows × classes) and returns scores (classes × rows) whose maximum in every row is 0.
    ``n_classes`` is the number of classes they must have; None allows any.
    """
    checked_scores = _check_table("log_posteriors", log_posteriors, n_classes)
    _check_each("log_posteriors", checked_scores, checked_scores < np.inf, "a number or −inf")
    return _shift_best_to_zero(checked_scores)


def _check_each(name: str, table: Real, is_valid: NDArray[np.bool_], requirement: str) -> None:
    """Raises an error for the first number of ``table`` (classes × rows) for which ``is_valid`` (of the same shape) is
    False. ``name`` and ``requirement`` are for the message.
    """
    if not is_valid.all():
        row, class_number = (int(index) for index in np.argwhere(~is_valid.T)[0])
        value = float(table[class_number, row])
        text = f"{name} contains {value} in row {row:,} for class number {class_number:,}, but must contain {requirement}. "
        text += "Remove these rows, or check how the scores were computed."
        raise errors.BadValue(text, value=value, row=row, number=class_number)


def _check_truth(truth: ArrayLike, n_classes: int, n_rows: int) -> Int:
    """Returns the class numbers of the rows (``truth``) as an array. Raises an error unless there is one from 0 to
    ``n_classes`` − 1 for each row.
    """
    class_numbers = np.asarray(truth)
    description = f"an array of the shape {class_numbers.shape} and type {class_numbers.dtype}"
    requirement = "a 1-D array of whole numbers, each the number of its row's class"
    errors.require(class_numbers.ndim == 1 and class_numbers.dtype.kind in "iu", "truth", description, requirement)
    if len(class_numbers) != n_rows:
        raise errors.length_mismatch("class numbers", len(class_numbers), n_rows)
    for row in np.flatnonzero((class_numbers < 0) | (class_numbers >= n_classes)).tolist():
        number = int(class_numbers[row])
        text = f"the true class of row {row:,} has the number {number:,}, but the scores have {n_classes:,} classes, numbered "
        text += "from 0. Number the classes in the order of the score columns."
        raise errors.UnknownClass(text, number=number, row=row)
    return class_numbers.astype(np.int64)


def _check_weights(weights: ArrayLike | None, n_rows: int) -> Real:
    """Returns the weights of the rows as an array; ones if None. Raises an error if one is invalid or all are 0."""
    if weights is None:
        return np.ones(n_rows)
    try:
        row_weights = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise errors.bad_setting("weights", weights, "numbers, one per row") from None
    if row_weights.ndim != 1:
        raise errors.no_column(row_weights)
    if len(row_weights) != n_rows:
        raise errors.length_mismatch("weights", len(row_weights), n_rows)
    for row in np.flatnonzero(~((row_weights >= 0) & (row_weights < HEAVIEST))).tolist():
        raise bad_weight(row, float(row_weights[row]))
    errors.require(row_weights.any(), "weights", "nothing but zeros", "above 0 for at least one row")
    return row_weights


@dataclass(frozen=True)
class _State:
    """Arrays by name as a file gave them: nothing about them is known."""

    method: str
    arrays: Mapping[str, NDArray[Any]]

    def check(self, name: str, is_valid: bool, requirement: str) -> None:
        """Raises an error unless the array called ``name`` meets the requirement, which ``is_valid`` says.
        ``self.method`` is the name of the calibration, for the message.
        """
        if not is_valid:
            text = f"{name!r} of this {self.method} calibration must be {requirement}, but is not. "
            text += "Pass from_state the result of state(), or calibrate again."
            raise errors.BadValue(text, method=self.method, name=name)

    def numbers(self, name: str, size: int, integers: bool = False) -> Any:
        """Returns the array called ``name``. Raises an error unless it has this size and holds finite numbers; positive
        whole ones if ``integers``.
        """
        array = self.arrays.get(name)
        self.check(name, isinstance(array, np.ndarray), "an array")
        array = np.asarray(array)
        is_valid = array.dtype == (np.int64 if integers else np.float64) and array.shape == (size,)
        is_valid = is_valid and bool((array > 0).all() if integers else np.isfinite(array).all())
        self.check(
            name, is_valid, f"{size:,} {'positive whole numbers (int64)' if integers else 'finite numbers (float64)'}"
        )
        return array


# Reliability ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Reliability:
    """How often predictions of each confidence are right, in bins of equal width. Empty bins are left out."""

    bins: int
    start: Real  # where each bin begins; it is 1 / bins wide
    confidence: Real  # the mean posterior of the answers in it
    accuracy: Real  # the share of them that are right
    rows: Real  # the sum of their weights

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance between confidence and accuracy over the rows."""
        return float(np.abs(self.confidence - self.accuracy) @ (self.rows / self.rows.sum()))

    def __str__(self) -> str:
        """Returns the calibration error, and a line for each bin: its interval of posteriors, the mean posterior
        (``confidence``), the share of correct predictions (``accuracy``) and the weight of its rows.
        """
        lines = [f"calibration error {self.error:.4f}", "  posterior       confidence  accuracy        rows"]
        columns = self.start, self.confidence, self.accuracy, self.rows  # one entry per bin
        for start, confidence, accuracy, rows in zip(*columns, strict=True):
            interval = f"{start:.3f} to {start + 1 / self.bins:.3f}"
            lines.append(f"  {interval}  {confidence:10.4f}  {accuracy:8.4f}  {rows:10,.6g}")
        return "\n".join(lines)

    __repr__ = __str__


def reliability(
    posteriors: ArrayLike, truth: ArrayLike, bins: int = 15, weights: ArrayLike | None = None
) -> Reliability:
    """Returns the calibration curve: confidence and accuracy in ``bins`` bins of the largest posterior.

    ``posteriors`` are rows × classes; ``truth`` has the class number of each row, and ``weights`` its weight.

    >>> reliability([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6]], [0, 1, 1, 0], bins=5)
    calibration error 0.3000
      posterior       confidence  accuracy        rows
      0.600 to 0.800      0.6000    0.0000           1
      0.800 to 1.000      0.8667    0.6667           3
    """
    check_whole("bins", bins, 1, 10**6)
    probabilities = _check_table("posteriors", posteriors)  # classes × rows
    n_classes, n_rows = probabilities.shape
    errors.require(n_rows, "posteriors", "no rows", "rows × classes, with at least one row")
    _check_each(
        "posteriors", probabilities, (probabilities >= 0) & (probabilities <= 1 + 1e-9), "a probability from 0 to 1"
    )
    class_numbers = _check_truth(truth, n_classes, n_rows)
    row_weights = _check_weights(weights, n_rows)
    confidence = probabilities.max(axis=0)  # of each row
    is_right = probabilities.argmax(axis=0) == class_numbers
    bin_numbers = np.minimum((confidence * bins).astype(np.int64), bins - 1)  # of each row
    quantities = (row_weights * confidence, row_weights * is_right, row_weights)
    # The sum of each quantity over the rows of each bin.
    confidence_sums, right_weight_sums, weight_sums = (
        np.bincount(bin_numbers, weights=quantity, minlength=bins).astype(np.float64) for quantity in quantities
    )
    filled_bins = np.flatnonzero(weight_sums)
    weight_sums = weight_sums[filled_bins]
    return Reliability(
        int(bins),
        filled_bins / bins,
        confidence_sums[filled_bins] / weight_sums,
        right_weight_sums[filled_bins] / weight_sums,
        weight_sums,
    )
