"""Evidence of values: the terms of a row, the most informative values of each class, and the values that a plot shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Bool, Real, divide

LARGEST_RATIO = 1e3  # larger ratios rank equal: where the other classes hardly ever have a value, it is mostly chance
TWO_ENDS = 0.95  # the score of an interval with two ends is multiplied by this, so that a single end is preferred
FARTHEST = 3.0  # an interval ends at most so many deviations from the mean
ENDS = 13  # numbers at which an interval may end
DIGITS = 12  # of the ends in an interval's name
CELLS = 1 << 21  # classes × intervals that are scored together
DRAWS = 1_000  # rows drawn of each class to find the range of values, for families that cannot give it
POINTS = 2_000  # of the grid on which the density of such a family is computed

Drawn = Callable[[], Sequence[NDArray[Any]]]  # values of each column of a feature
LogLikelihood = Callable[[Any, Mapping[str, Any]], Real]  # parameters and columns of values → log P(value | class)


class Term(NamedTuple):
    """The log-likelihoods of a feature's value in every class, or of one word of a text. The value of a block is a
    tuple; that of a word is the word.
    """

    feature: str
    value: Any
    log_likelihood: Real  # (classes,)
    seen: bool = True  # whether any counted row has the value
    times: int = 1  # how often a word occurs
    positions: tuple[tuple[int, int], ...] = ()  # where a word stands in its text
    common: bool = False  # whether many of the texts that were counted have the word


class Comparison(NamedTuple):
    """Classes, each of which is compared with the mixture of all others.

    Args:
        rest: Column c has the weights that mix all classes but c (classes × classes).
        chosen: The numbers of the classes to compare.
        log_likelihood: Returns log P(value | class), given parameters and columns of values.
    """

    rest: Real
    chosen: Sequence[int]
    log_likelihood: LogLikelihood


class NamedValues(NamedTuple):
    """The values of a feature that a plot shows a bar for."""

    values: list[Any]  # as rows have them
    names: list[str]
    rows: Real  # how many rows counted have each
    hidden: int = 0  # how many more there are
    share: Real | None = None  # P(value | class); None: what scoring the values says
    what: str = "value"  # what people call one of them
    chosen: str = "frequent"  # why these are shown: they are the most frequent, or the most "informative"

    def most_frequent(self, n: int | None) -> NamedValues:
        """Returns the n most frequent values (None: all), in the order that they have here. ``rows`` has the number of
        rows with each value, and ``hidden`` will be the number of others.
        """
        kept = np.sort(np.argsort(-self.rows, kind="stable")[:n]).tolist()  # places in ``self.values``
        values = [self.values[k] for k in kept]
        names = [self.names[k] for k in kept]
        return self._replace(values=values, names=names, rows=self.rows[kept], hidden=len(self.values) - len(kept))


class InformativeValues(NamedTuple):
    """Values that may be informative about classes."""

    share: Real  # P(value | class), (values, classes)
    had: Real  # the share of the counted rows of each class that have the value, (values, classes)
    name: Callable[[int], tuple[str, Any]]  # the feature and value of number i
    allowed: Bool | None = None  # whether a value may be named for a class, (values, classes); None: all
    kind: Literal["value", "word", "interval"] = "value"


def measure_informativeness(share: Real, share_of_rest: Real, difference: Real) -> tuple[Real, Real]:
    """Returns the ratio of P(value | class) to P(value | rest), and a score of how informative the value is, both in
    the shape of the arguments, which broadcast. ``share`` and ``share_of_rest`` are the two probabilities.

    The score is the logarithm of the ratio times ``difference``, the difference between the shares of rows that have
    the value; 0 if the value does not favour the class.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(share > 0, share / share_of_rest, 0.0)
        score = np.where((ratio > 1) & (difference > 0), difference * np.log(np.minimum(ratio, LARGEST_RATIO)), 0.0)
    return ratio, score


# Intervals of numbers ------------------------------------------------------------------------------------------------


class HasTails(Protocol):
    """Parameters of columns of numbers whose distribution functions are known. ``spread``, ``tails`` and ``ends`` are
    those of ``NumericParameters``.
    """

    @property
    def features(self) -> Sequence[Any]: ...
    def spread(self, f: int) -> tuple[Real, Real]: ...
    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]: ...
    def ends(self, f: int, near: Real, step: Real) -> Real: ...


def informative_intervals(group: HasTails, compared: Comparison) -> Iterator[InformativeValues]:
    """Yields the most informative interval of each column of numbers for each class that is compared: below a cut, from
    a cut up, or between two. Each result has the intervals of one column for some of the classes. ``group`` has the
    parameters of the columns.
    """
    rest = compared.rest  # the weights that mix all classes but c are column c
    n_classes = len(rest)
    n_together = max(1, CELLS // (n_classes * ENDS**2))  # classes that are compared at once
    ends_in_deviations = np.linspace(-FARTHEST, FARTHEST, ENDS)  # from the mean
    for f, feature in enumerate(group.features):
        mean, deviation = group.spread(f)  # of each class
        usable = [c for c in compared.chosen if 0 < deviation[c] < np.inf and abs(mean[c]) < np.inf]  # class numbers
        for classes in (usable[start : start + n_together] for start in range(0, len(usable), n_together)):
            # The numbers at which an interval may end (compared classes × ends), first exact, then round.
            exact_ends = mean[classes, None] + deviation[classes, None] * ends_in_deviations
            cuts = group.ends(f, exact_ends, _round_steps(deviation[classes] / 2.0)[:, None])
            # (compared classes, intervals, all classes), and twice (compared classes, intervals).
            share, low, high = _intervals_of_cuts(group, f, cuts)
            # (compared classes, intervals), as all that follows.
            share_of_class = np.stack([share[k, :, c] for k, c in enumerate(classes)])
            share_of_rest = np.einsum("ksc,ck->ks", share, rest[:, classes])
            _, score = measure_informativeness(share_of_class, share_of_rest, share_of_class - share_of_rest)
            has_two_ends = np.isfinite(low) & np.isfinite(high)
            # The place of each compared class, and of its best interval.
            best = np.arange(len(classes)), np.argmax(np.where(has_two_ends, TWO_ENDS, 1.0) * score, axis=1)
            whole_numbers = feature.kind == "integer"
            lows_and_highs = zip(low[best].tolist(), high[best].tolist(), strict=True)
            names = [
                (feature.name, name_interval(*low_and_high, whole_numbers=whole_numbers))
                for low_and_high in lows_and_highs
            ]
            # An interval may be named for the class that it was chosen for alone.
            allowed = np.array(classes)[:, None] == np.arange(n_classes)
            yield InformativeValues(share[best], share[best], names.__getitem__, allowed, "interval")


def _round_steps(steps: Real) -> Real:
    """Returns for each step the largest number of the form 1, 2 or 5 times a power of ten that is not above it."""
    power = 10.0 ** np.floor(np.log10(steps))  # the largest power of ten that is not above the step
    return np.asarray(power * np.select([steps >= 5 * power, steps >= 2 * power], [5.0, 2.0], 1.0))


class _Intervals(NamedTuple):
    """Intervals of numbers, the same number for each class that is compared."""

    share: Real  # P(interval | class), (compared classes, intervals, all classes)
    low: Real  # (compared classes, intervals)
    high: Real


def _intervals_of_cuts(group: HasTails, f: int, cuts: Real) -> _Intervals:
    """Returns the intervals of feature number f below each cut, above each, and between every two of them; ``cuts`` are
    those of each compared class (classes × cuts), and ``group`` has the parameters of the features.
    """
    # P(value < cut | class) and P(value ≥ cut | class): (compared classes, cuts, all classes).
    below, above = (tail.reshape(*cuts.shape, -1) for tail in group.tails(f, cuts.ravel()))
    # The cuts that bound each interval with two ends, and its probability: (compared classes, intervals, all classes).
    lower_cut, upper_cut = np.triu_indices(cuts.shape[1], 1)
    inside = np.where(
        below[:, lower_cut] < 0.5, below[:, upper_cut] - below[:, lower_cut], above[:, lower_cut] - above[:, upper_cut]
    )
    infinity = np.full(cuts.shape, np.inf)
    share = np.concatenate([below, above, np.maximum(inside, 0.0)], axis=1)
    low = np.concatenate([-infinity, cuts, cuts[:, lower_cut]], axis=1)
    return _Intervals(share, low, np.concatenate([cuts, infinity, cuts[:, upper_cut]], axis=1))


def name_interval(low: float, high: float, whole_numbers: bool = False) -> str:
    """Returns a name of the interval from ``low`` up to, but not including, ``high``; for whole numbers, by the first
    and last number in it.
    """
    if whole_numbers:
        first = np.ceil(low) + 0.0  # no "-0"
        last = np.ceil(high) - 1.0 + 0.0
        if np.isneginf(low) or np.isposinf(high):
            return f"≤ {last:.{DIGITS}g}" if np.isneginf(low) else f"≥ {first:.{DIGITS}g}"
        return f"= {first:.{DIGITS}g}" if first == last else f"from {first:.{DIGITS}g} to {last:.{DIGITS}g}"
    low = low + 0.0
    high = high + 0.0
    if np.isneginf(low):
        return f"< {high:.{DIGITS}g}"
    return f"≥ {low:.{DIGITS}g}" if np.isposinf(high) else f"from {low:.{DIGITS}g} to {high:.{DIGITS}g}"


# Families that can only score and draw ---------------------------------------------------------------------------------


class DrawnNumbers:
    """The distribution of a column of numbers on a grid, for families that can only score and draw."""

    def __init__(self, alone: Any, drawn: Real, log_likelihood: LogLikelihood) -> None:
        """Computes the density between the extreme quantiles of ``drawn`` numbers. ``alone`` has the parameters of this
        column alone, and ``log_likelihood`` scores numbers by them.
        """
        self.features = (feature,) = alone.features
        finite = drawn[np.isfinite(drawn)]
        # The ends of the grid.
        low, high = np.quantile(finite, [0.001, 0.999]).tolist() if len(finite) else (0.0, 0.0)
        self.values = np.linspace(low, high, POINTS)  # the points of the grid
        density = np.exp(log_likelihood(alone, {feature.name: self.values}))  # points × classes
        self.share = divide(density, density.sum(axis=0))  # the probability of each point (points × classes)

    def spread(self, f: int) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation in each class (classes each); ``f`` is 0, because there is one
        column. ``values`` are the points of a grid, and ``share`` their probabilities (points × classes).
        """
        mean = self.values @ self.share
        return mean, np.sqrt(((self.values[:, None] - mean) ** 2 * self.share).sum(axis=0))

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """Returns P(value < cut) and P(value ≥ cut) in each class, for these numbers (cuts × classes each); ``f`` is 0.
        ``values`` are the points of a grid, and ``share`` their probabilities (points × classes).
        """
        # The probability of the points before each point of the grid (points + 1 × classes).
        cumulative = np.concatenate([np.zeros((1, self.share.shape[1])), np.cumsum(self.share, axis=0)])
        below = np.minimum(cumulative[np.searchsorted(self.values, cuts)], 1.0)
        return below, 1.0 - below

    def ends(self, f: int, near: Real, step: Real) -> Real:
        """Returns round numbers near the wanted ones (``near``), at which an interval may end: multiples of ``step``.
        ``f`` is 0.
        """
        return round_ends(self.features[f], near, step)


def round_ends(feature: Any, near: Real, step: Real) -> Real:
    """Returns multiples of a round ``step`` near the wanted numbers (``near``), in their shape; for whole numbers, just
    below the next one. ``feature`` tells whether they are whole.
    """
    multiples = np.round(near / step) * step
    return np.ceil(multiples) - 0.5 if feature.kind == "integer" else multiples


def values_from_draws(alone: Any, drawn: NDArray[Any], compared: Comparison) -> Iterator[InformativeValues]:
    """Yields informative intervals of a column, or its values if they are not numbers, from values drawn from it
    (``drawn``, in rows of all classes). ``alone`` has the parameters of this column alone, and ``compared`` says which
    classes are compared with which others.
    """
    if drawn.dtype.kind in "iuf":
        yield from informative_intervals(
            DrawnNumbers(alone, drawn.astype(np.float64), compared.log_likelihood), compared
        )
        return
    name = alone.features.names[0]
    values = sorted(set(drawn.tolist()), key=str)
    share = np.exp(compared.log_likelihood(alone, {name: values}))  # P(value | class) (values × classes)
    yield InformativeValues(share, share, [(name, value) for value in values].__getitem__)
