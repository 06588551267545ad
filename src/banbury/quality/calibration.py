"""Calibration: honest probabilities from out-of-fold scores. Scores in, probabilities out: it knows of no rows and no folds.

Naive Bayes counts evidence that says the same thing twice as if it were new, so that its posteriors lie too close to 0 and 1.
How much too close is seen on rows that the model has not learned from; a calibration learns it there, and undoes it.

Inside, scores stand class by class, (classes, rows): sums over few classes are then sums of long rows, and fast.
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

COLDEST = 1e-3  # temperatures
HOTTEST = 1e4
SETTLED = 1e-12  # a slope of the mean log loss below this is none
IMPOSSIBLE = -1e100  # stands for a log posterior of −inf: its exponential is 0 at every temperature
FLOOR = -36.04  # scikit-learn's: the logarithm of 2.2e-16
BETTER = 0.01  # of the log loss must be gained to use it
FARTHEST = 1e300  # stands for infinite log-odds where a finite number is needed
ALIKE = 1e-9  # log-odds that differ by less, in parts of their size, are the same
SAMPLE = 2_048  # rows that suffice to find roughly the right temperature
BLOCK = 2**15  # numbers in a block of scores: the processor keeps them at hand
HEAVIEST = 2.0**500


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

    Pass the result to ``calibrated`` of a model.

    >>> certain = np.log([[0.999, 0.001], [0.999, 0.001], [0.001, 0.999], [0.001, 0.999]])
    >>> found = calibrate("temperature", certain, [0, 0, 0, 1])  # three of four right, and 0.999 claimed
    >>> found
    temperature 6.29
    >>> found.apply(certain).round(3).tolist()
    [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    """
    if np.ndim(truth) == 2:
        weighed = _weights(weights, len(np.asarray(truth)))
        return calibrate_labels(method, log_posteriors, truth, weighed)  # type: ignore[return-value]
    kind = _kind(method)
    scores = _scores(log_posteriors)
    raw = np.asarray(log_posteriors)
    errors.require(scores.shape[1], "log_posteriors", "no rows", "rows × classes, with at least one row")
    shares = len(scores) > 1 and (raw >= 0).all() and (np.abs(raw.sum(axis=1) - 1.0) <= 1e-6).all()
    fits = not shares  # which are above zero
    errors.require(fits, "log_posteriors", "probabilities", "logarithms, such as np.log(posteriors)")
    classes = _truth(truth, *scores.shape)
    weighed = _weights(weights, scores.shape[1])
    used = weighed > 0
    if not used.all():
        scores = scores[:, used]
        classes = classes[used]
        weighed = weighed[used]
    return kind.fit(scores, classes, weighed)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(ABC):
    """Turns scores into calibrated probabilities. ``bb.calibrate`` returns one."""

    n_classes: int
    method: ClassVar[Method]

    @classmethod
    @abstractmethod
    def fit(cls, scores: Real, truth: Int, weights: Real) -> Self:
        """Fits the calibration to checked scores (classes × rows) whose maximum in every row is 0. All weights are
        positive.
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
        """Whether the calibration does nothing else."""
        return False

    def apply(self, log_posteriors: ArrayLike) -> Real:
        """Returns calibrated P(class | row) (rows × classes). A row in which every class is impossible gets equal
        probabilities.
        """
        return self._posterior_rows(log_posteriors, log=False)

    def log_apply(self, log_posteriors: ArrayLike) -> Real:
        """Returns calibrated log P(class | row), also where the probability itself underflows."""
        return self._posterior_rows(log_posteriors, log=True)

    def _posterior_rows(self, log_posteriors: ArrayLike, log: bool) -> Real:
        scores = _scores(log_posteriors, self.n_classes)
        with np.errstate(over="ignore", divide="ignore"):
            return np.ascontiguousarray(self._posteriors(scores, log).T)

    @abstractmethod
    def _posteriors(self, scores: Real, log: bool) -> Real:
        """Of checked scores, classes × rows: probabilities, or their logarithms."""

    def state(self) -> dict[str, NDArray[Any]]:
        """The parameters as arrays by name, for a file."""
        return {field.name: np.atleast_1d(getattr(self, field.name)) for field in fields(self)}

    @staticmethod
    def from_state(method: str, state: Mapping[str, NDArray[Any]]) -> Calibration:
        """Restores a calibration from its ``state``, which is checked.

        >>> found = calibrate("platt", [[-0.1, -2.4], [-3.0, -0.1]], [0, 1])
        >>> Calibration.from_state("platt", found.state())
        Platt, 2 classes
        """
        arrays = _State(method, state)
        return _kind(method)._from_state(int(arrays.numbers("n_classes", 1, integers=True)[0]), arrays)

    @classmethod
    @abstractmethod
    def _from_state(cls, n_classes: int, state: _State) -> Self: ...

    @abstractmethod
    def __str__(self) -> str: ...

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
    floor: float = IMPOSSIBLE
    method: ClassVar[Method] = "temperature"

    @classmethod
    def fit(cls, scores: Real, truth: Int, weights: Real) -> Temperature:
        """Finds the temperature with the lowest log loss. Rows whose true class is impossible are ignored, because no
        temperature would help.
        """
        possible = (true_scores := scores[truth, np.arange(len(truth))]) > -np.inf
        if not possible.all():
            scores = scores[:, possible]
            true_scores = true_scores[possible]
            weights = weights[possible]
        best = cls(len(scores), 1.0)
        least = np.inf
        every = len(true_scores) // SAMPLE
        if not len(true_scores):
            return best
        for floor in (IMPOSSIBLE, FLOOR) if float(true_scores.min()) < FLOOR else (IMPOSSIBLE,):
            raised = np.maximum(_raise_to_floor(scores, floor), IMPOSSIBLE)
            raised_true = np.maximum(true_scores, floor)
            inverse = 1.0
            if every > 1:
                sampled = np.ascontiguousarray(raised[:, ::every])
                inverse = _inverse_temperature(sampled, raised_true[::every], weights[::every], inverse)
            inverse = _inverse_temperature(raised, raised_true, weights, inverse)
            loss = _log_loss(raised, raised_true, weights, inverse)
            if loss < least * (1.0 - BETTER) or floor == IMPOSSIBLE:
                best = cls(len(scores), 1.0 / inverse, floor)
                least = loss
        return best

    @property
    def scale(self) -> float:
        return 1.0 / self.temperature

    @property
    def only_scales(self) -> bool:
        return self.floor <= IMPOSSIBLE

    def _posteriors(self, scores: Real, log: bool) -> Real:
        values = _softmax(_raise_to_floor(scores, self.floor) / self.temperature, log)
        # What scored less than the best stays below it, by the last bit, where a high temperature has rounded the two together.
        tied = (values == values.max(axis=0)) & (scores < 0)
        if tied.any():
            values[tied] = np.nextafter(values[tied], -np.inf)
        return values

    @classmethod
    def _from_state(cls, n_classes: int, state: _State) -> Temperature:
        temperature, floor = (float(state.numbers(name, 1)[0]) for name in ("temperature", "floor"))
        in_range = 0.999 * COLDEST <= temperature <= 1.001 * HOTTEST  # rounded when it was found
        state.check("temperature", in_range, f"from {COLDEST:g} to {HOTTEST:g}")
        state.check("floor", floor < 0, "below 0")
        return cls(n_classes, temperature, floor)

    def __str__(self) -> str:
        return f"temperature {self.temperature:.3g}"


def _raise_to_floor(scores: Real, floor: float) -> Real:
    """Scores that are at least the floor, but for those of impossible classes."""
    if floor <= IMPOSSIBLE:
        return scores
    return np.where(np.isneginf(scores), scores, np.maximum(scores, floor))


def _log_loss(scores: Real, true_scores: Real, weights: Real, inverse: float) -> float:
    total = 0.0
    for block in _blocks(scores):
        lost = np.log(np.exp(inverse * scores[:, block]).sum(axis=0)) - inverse * true_scores[block]
        total += _sum(weights[block], lost)
    return total / float(weights.sum())


def _blocks(scores: Real) -> Iterator[slice]:
    width = max(1, BLOCK // len(scores))
    for start in range(0, scores.shape[1], width):
        yield slice(start, start + width)


def _inverse_temperature(scores: Real, true_scores: Real, weights: Real, inverse: float) -> float:
    """Where the log loss, convex in the inverse temperature, is least: Newton's steps, kept between the nearest bounds."""
    low = 1.0 / HOTTEST
    high = 1.0 / COLDEST
    shares = weights / weights.sum()
    for _ in range(100):
        slope, curvature = _slopes(scores, true_scores, shares, inverse)
        if abs(slope) * inverse <= SETTLED:
            break
        low, high = (low, inverse) if slope > 0 else (inverse, high)
        step = slope / curvature if abs(slope) < curvature * high else np.inf
        following = inverse - step if low < inverse - step < high else float(np.sqrt(low * high))
        if abs(following - inverse) <= 1e-12 * inverse:
            break
        inverse = following
    return inverse


def _slopes(scores: Real, true_scores: Real, shares: Real, inverse: float) -> tuple[float, float]:
    """The first and second derivative of the mean log loss: what a row expects of its scores less its own, and their variance."""
    slope = curvature = 0.0
    for block in _blocks(scores):
        values = scores[:, block]
        terms = np.exp(inverse * values)
        total = terms.sum(axis=0)
        terms *= values
        mean = terms.sum(axis=0) / total
        terms *= values
        slope += _sum(shares[block], mean - true_scores[block])
        curvature += _sum(shares[block], terms.sum(axis=0) / total - mean**2)
    return slope, curvature


# Platt's sigmoids -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Platt(Calibration):
    """P(class) ∝ 1 / (1 + exp(−(slope · log-odds + intercept))), with one sigmoid per class, or a single one for two
    classes.

    Infinite log-odds stay probabilities of 0 or 1 and do not influence the fit.
    """

    slopes: Real
    intercepts: Real
    method: ClassVar[Method] = "platt"

    @classmethod
    def fit(cls, scores: Real, truth: Int, weights: Real) -> Platt:
        odds_by_class = zip(_log_odds(scores), _odds_classes(len(scores)), strict=True)
        slopes, intercepts = np.array([_sigmoid(odds, truth == number, weights) for odds, number in odds_by_class]).T
        return cls(len(scores), slopes.copy(), intercepts.copy())

    @property
    def scale(self) -> float:
        """The slope of the sigmoid of two classes, if it rises."""
        return float(self.slopes[0]) if self.n_classes == 2 and self.slopes[0] > 0 else 1.0

    def _posteriors(self, scores: Real, log: bool) -> Real:
        from scipy.special import log_expit  # a third of a second to import; few need it

        odds = _log_odds(scores)
        with np.errstate(invalid="ignore"):  # a slope of 0 times infinite odds, which are not used
            lines = self.slopes[:, None] * odds + self.intercepts[:, None]
        lines = np.where(np.isinf(odds), odds, lines)
        shares = log_expit(np.concatenate([-lines, lines]) if self.n_classes == 2 else lines)
        return _softmax(_shift_best_to_zero(np.asarray(shares, dtype=np.float64)), log)

    @classmethod
    def _from_state(cls, n_classes: int, state: _State) -> Platt:
        size = len(_odds_classes(n_classes))
        return cls(n_classes, state.numbers("slopes", size), state.numbers("intercepts", size))

    def __str__(self) -> str:
        return f"Platt, {many(self.n_classes, 'class')}"


def _sigmoid(odds: Real, positive: NDArray[np.bool_], weights: Real) -> tuple[float, float]:
    """Slope and intercept of the least log loss against Platt's targets, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2), by Newton."""
    from scipy.special import expit

    finite = np.isfinite(odds)
    if not finite.any():
        return 1.0, 0.0
    odds = np.clip(odds[finite], -FARTHEST, FARTHEST)
    positive = positive[finite]
    weights = weights[finite]
    yes = float(weights[positive].sum())
    no = float(weights[~positive].sum())
    if not (yes and no):  # one target for all rows, so that scores say nothing
        return 0.0, float(np.log((yes + 1.0) / (no + 1.0)))
    targets = np.where(positive, (yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0))  # so that slopes are finite
    centre = float(np.median(odds))
    shares = weights / weights.sum()
    odds = odds - centre
    scale = float(np.abs(odds).max())
    if scale <= ALIKE * max(1.0, abs(centre)):
        odds = np.zeros_like(odds)  # and so the slope stays 0
        scale = 1.0
    odds /= scale

    def loss(line: Real) -> float:
        values = line[0] * odds + line[1]
        return _sum(shares, np.logaddexp(0.0, values) - targets * values)

    def newton(line: Real) -> tuple[Real, Real]:
        """The slope of the loss, and the step that Newton's method would take back."""
        chances = expit(line[0] * odds + line[1])
        left = shares * (chances - targets)
        curve = shares * chances * (1.0 - chances)
        slope = np.array([_sum(left, odds), left.sum()])
        across = _sum(curve, odds)
        bend = np.array([[_sum(curve, odds**2), across], [across, curve.sum()]])
        return slope, np.linalg.solve(bend + np.diag(np.maximum(1e-14 * bend.diagonal(), 1e-200)), slope)

    line = np.array([0.0, np.log((yes + 1.0) / (no + 1.0))])
    now = loss(line)
    for _ in range(200):
        slope, step = newton(line)
        gain = float(slope @ step)
        part = 1.0
        following = loss(line - step)
        while not following <= now - 1e-4 * part * gain and part > 1e-10:
            part /= 2.0
            following = loss(line - part * step)
        if following <= now:
            line = line - part * step
            now = following
        if part <= 1e-10 or gain <= 1e-14 * now:
            break
    for _ in range(2):  # what the loss can no longer tell apart, its slope can
        step = newton(line)[1]
        line = line - np.where(np.abs(step).max() < 1e-4, step, 0.0)
    rise = float(line[0]) / scale
    return rise, float(line[1]) - rise * centre


# Isotonic regression --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Isotonic(Calibration):
    """P(class) ∝ the non-decreasing step function that fits the outcomes best, interpolated linearly between ``odds``
    and ``shares`` and constant beyond them.

    The points of all classes are concatenated; ``lengths`` has the number of points of each. Two classes need only
    those of the second.
    """

    lengths: Int
    odds: Real
    shares: Real
    method: ClassVar[Method] = "isotonic"

    @classmethod
    def fit(cls, scores: Real, truth: Int, weights: Real) -> Isotonic:
        from sklearn.isotonic import IsotonicRegression  # a second to import; few need it

        odds_by_class = zip(np.clip(_log_odds(scores), -FARTHEST, FARTHEST), _odds_classes(len(scores)), strict=True)
        of = partial(IsotonicRegression, out_of_bounds="clip")
        stairs = [of().fit(odds, truth == number, sample_weight=weights) for odds, number in odds_by_class]
        lengths = np.array([len(one.X_thresholds_) for one in stairs], dtype=np.int64)
        odds = np.concatenate([one.X_thresholds_ for one in stairs])
        shares = np.clip(np.concatenate([one.y_thresholds_ for one in stairs]), 0.0, 1.0)
        return cls(len(scores), lengths, odds, shares)

    @cached_property
    def _stairs(self) -> list[tuple[Real, Real]]:
        ends = np.cumsum(self.lengths)[:-1]
        return list(zip(np.split(self.odds, ends), np.split(self.shares, ends), strict=True))

    def _posteriors(self, scores: Real, log: bool) -> Real:
        all_odds = np.clip(_log_odds(scores), -FARTHEST, FARTHEST)
        shares = np.array([np.interp(odds, *stairs) for odds, stairs in zip(all_odds, self._stairs, strict=True)])
        if self.n_classes == 2:
            posteriors = np.concatenate([1.0 - shares, shares])
        else:
            total = shares.sum(axis=0)
            posteriors = np.full_like(shares, 1.0 / self.n_classes)
            np.divide(shares, total, out=posteriors, where=total > 0)
        return np.log(posteriors) if log else posteriors

    @classmethod
    def _from_state(cls, n_classes: int, state: _State) -> Isotonic:
        lengths = state.numbers("lengths", len(_odds_classes(n_classes)), integers=True)
        size = sum(lengths.tolist())  # not in int64, which would go round
        calibration = cls(n_classes, lengths, state.numbers("odds", size), state.numbers("shares", size))
        for odds, shares in calibration._stairs:
            state.check("odds", bool(np.all(odds[1:] > odds[:-1])), "rising within each class")
            state.check("odds", bool(np.all(np.abs(odds) <= FARTHEST)), f"from {-FARTHEST:g} to {FARTHEST:g}")
            state.check("shares", bool(np.all(shares[1:] >= shares[:-1])), "not falling within a class")
            state.check("shares", bool(np.all((shares >= 0) & (shares <= 1))), "from 0 to 1")
        return calibration

    def __str__(self) -> str:
        return f"isotonic, {many(self.n_classes, 'class')}"


METHODS: dict[str, type[Calibration]] = {"temperature": Temperature, "platt": Platt, "isotonic": Isotonic}


def _kind(method: str) -> type[Calibration]:
    if method not in tuple(METHODS):
        raise errors.unknown_choice("method", method, METHODS)
    return METHODS[method]


def _odds_classes(n_classes: int) -> range:
    """The classes that the rows of ``_log_odds`` are of."""
    return range(1, 2) if n_classes == 2 else range(n_classes)


def _log_odds(scores: Real) -> Real:
    """log P(class) − log P(any other), (classes, rows); of two classes that of the second, (1, rows). ±inf if certain."""
    if len(scores) == 2:
        odds: Real = scores[1:] - scores[:1]
        return odds
    best = scores.argmax(axis=0)
    row = np.arange(scores.shape[1])
    rest_scores = scores.copy()
    rest_scores[best, row] = -np.inf  # the rest of the best is summed by itself: 1 − P would be 0 long before it is
    second = rest_scores.max(axis=0)
    with np.errstate(divide="ignore"):
        rest_of_best = second + np.log(np.exp(rest_scores - np.where(second > -np.inf, second, 0.0)).sum(axis=0))
    terms = np.exp(rest_scores)
    odds = scores - np.log1p(terms.sum(axis=0) - terms)
    odds[best, row] = -rest_of_best
    return odds


def _shift_best_to_zero(scores: Real) -> Real:
    """In place, so that the largest of every row is 0; a row of −inf alone becomes one of zeros."""
    best = scores.max(axis=0)
    nothing = best == -np.inf
    with np.errstate(over="ignore"):
        scores -= np.where(nothing, 0.0, best)
    if nothing.any():
        scores[:, nothing] = 0.0
    return scores


def _softmax(scores: Real, log: bool) -> Real:
    shares = np.exp(scores)
    total = shares.sum(axis=0)
    return np.asarray(scores - np.log(total) if log else shares / total)


def _sum(weights: Real, values: Real) -> float:
    """Of products; not by BLAS, whose threads add in another order each time, and wait for each other on a busy machine."""
    return float((weights * values).sum())


# What is given --------------------------------------------------------------------------------------------------------


def _table(name: str, values: ArrayLike, n_classes: int | None = None) -> Real:
    """Rows × classes, as a copy that stands class by class."""
    classes = "classes" if n_classes is None else many(n_classes, "class")
    try:
        table = np.asarray(values, dtype=np.float64)
        got = ""
    except (TypeError, ValueError):
        table = np.zeros(0)
        got = type(values).__name__
    fits = table.ndim == 2 and table.shape[1] > 0 and n_classes in (None, table.shape[1])
    requirement = f"rows × {classes}, a 2-D array of numbers"
    errors.require(fits, name, got or f"an array of the shape {table.shape}", requirement)
    return np.array(table.T, order="C", copy=True)


def _scores(log_posteriors: ArrayLike, n_classes: int | None = None) -> Real:
    scores = _table("log_posteriors", log_posteriors, n_classes)
    _check_each("log_posteriors", scores, scores < np.inf, "a number or −inf")
    return _shift_best_to_zero(scores)


def _check_each(name: str, table: Real, fits: NDArray[np.bool_], requirement: str) -> None:
    if not fits.all():
        row, number = (int(place) for place in np.argwhere(~fits.T)[0])
        value = float(table[number, row])
        text = f"{name} contains {value} in row {row:,} for class number {number:,}, but must contain {requirement}. "
        text += "Remove these rows, or check how the scores were computed."
        raise errors.BadValue(text, value=value, row=row, number=number)


def _truth(truth: ArrayLike, n_classes: int, n_rows: int) -> Int:
    numbers = np.asarray(truth)
    got = f"an array of the shape {numbers.shape} and type {numbers.dtype}"
    requirement = "a 1-D array of whole numbers, each the number of its row's class"
    errors.require(numbers.ndim == 1 and numbers.dtype.kind in "iu", "truth", got, requirement)
    if len(numbers) != n_rows:
        raise errors.length_mismatch("class numbers", len(numbers), n_rows)
    for row in np.flatnonzero((numbers < 0) | (numbers >= n_classes)).tolist():
        number = int(numbers[row])
        text = f"the true class of row {row:,} has the number {number:,}, but the scores have {n_classes:,} classes, numbered "
        text += "from 0. Number the classes in the order of the score columns."
        raise errors.UnknownClass(text, number=number, row=row)
    return numbers.astype(np.int64)


def _weights(weights: ArrayLike | None, n_rows: int) -> Real:
    if weights is None:
        return np.ones(n_rows)
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise errors.bad_setting("weights", weights, "numbers, one per row") from None
    if numbers.ndim != 1:
        raise errors.no_column(numbers)
    if len(numbers) != n_rows:
        raise errors.length_mismatch("weights", len(numbers), n_rows)
    for row in np.flatnonzero(~((numbers >= 0) & (numbers < HEAVIEST))).tolist():
        raise bad_weight(row, float(numbers[row]))
    errors.require(numbers.any(), "weights", "nothing but zeros", "above 0 for at least one row")
    return numbers


@dataclass(frozen=True)
class _State:
    """Arrays by name as a file gave them: nothing about them is known."""

    method: str
    arrays: Mapping[str, NDArray[Any]]

    def check(self, name: str, fits: bool, requirement: str) -> None:
        if not fits:
            text = f"{name!r} of this {self.method} calibration must be {requirement}, but is not. "
            text += "Pass from_state the result of state(), or calibrate again."
            raise errors.BadValue(text, method=self.method, name=name)

    def numbers(self, name: str, size: int, integers: bool = False) -> Any:
        array = self.arrays.get(name)
        self.check(name, isinstance(array, np.ndarray), "an array")
        array = np.asarray(array)
        fits = array.dtype == (np.int64 if integers else np.float64) and array.shape == (size,)
        fits = fits and bool((array > 0).all() if integers else np.isfinite(array).all())
        self.check(
            name, fits, f"{size:,} {'positive whole numbers (int64)' if integers else 'finite numbers (float64)'}"
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
        lines = [f"calibration error {self.error:.4f}", "  posterior       confidence  accuracy        rows"]
        columns = self.start, self.confidence, self.accuracy, self.rows
        for start, confidence, accuracy, rows in zip(*columns, strict=True):
            place = f"{start:.3f} to {start + 1 / self.bins:.3f}"
            lines.append(f"  {place}  {confidence:10.4f}  {accuracy:8.4f}  {rows:10,.6g}")
        return "\n".join(lines)

    __repr__ = __str__


def reliability(
    posteriors: ArrayLike, truth: ArrayLike, bins: int = 15, weights: ArrayLike | None = None
) -> Reliability:
    """Returns the calibration curve: confidence and accuracy in bins of the largest posterior.

    >>> reliability([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6]], [0, 1, 1, 0], bins=5)
    calibration error 0.3000
      posterior       confidence  accuracy        rows
      0.600 to 0.800      0.6000    0.0000           1
      0.800 to 1.000      0.8667    0.6667           3
    """
    check_whole("bins", bins, 1, 10**6)
    shares = _table("posteriors", posteriors)
    n_classes, n_rows = shares.shape
    errors.require(n_rows, "posteriors", "no rows", "rows × classes, with at least one row")
    _check_each("posteriors", shares, (shares >= 0) & (shares <= 1 + 1e-9), "a probability from 0 to 1")
    classes = _truth(truth, n_classes, n_rows)
    weighed = _weights(weights, n_rows)
    confidence = shares.max(axis=0)
    right = shares.argmax(axis=0) == classes
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    amounts = (weighed * confidence, weighed * right, weighed)
    confidence_sums, right_rows, rows = (
        np.bincount(place, weights=x, minlength=bins).astype(np.float64) for x in amounts
    )
    filled = np.flatnonzero(rows)
    rows = rows[filled]
    return Reliability(int(bins), filled / bins, confidence_sums[filled] / rows, right_rows[filled] / rows, rows)
