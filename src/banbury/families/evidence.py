"""What values say of classes: the terms of a row, the values that tell classes apart, and the values that a picture names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Real

LARGEST = 1e3  # a ratio above this ranks as this: where the rest hardly ever has a value, its size is mostly chance
SIMPLER = 0.95  # a stretch that ends on both sides must tell so much more than one that ends on one
FARTHEST = 3.0  # deviations from the mean at which a stretch may end, and how many places there are
STEPS = 13
NAMED = 12  # digits of where it ends
CELLS = 1 << 21  # of classes × stretches that are looked at together
DRAWN = 1_000  # rows of each class that show where a family's values lie, if it cannot say so itself
POINTS = 2_000  # at which its density is then looked at

Drawn = Callable[[], Sequence[NDArray[Any]]]  # values of each column of a feature
LogLikelihood = Callable[[Any, Mapping[str, Any]], Real]  # parameters and columns of values → log P(value | class)


class Term(NamedTuple):
    """What a feature's value, or one of the words of a text, says of each class. The value of a block is a tuple."""

    feature: str
    value: Any
    log_likelihood: Real  # (classes,)
    seen: bool = True  # whether any counted row has the value
    times: int = 1  # how often a word occurs
    positions: tuple[tuple[int, int], ...] = ()  # where a word stands in its text
    common: bool = False  # whether many of the texts that were counted have the word


class Comparison(NamedTuple):
    """Which classes are told from the rest. Column c of ``rest`` is how all classes but c are mixed."""

    rest: Real  # (classes, classes)
    chosen: Sequence[int]
    log_likelihood: LogLikelihood  # by some parameters, of columns of values


class NamedValues(NamedTuple):
    """The values of a feature that a picture has a bar for."""

    values: list[Any]  # as rows have them
    names: list[str]
    rows: Real  # how many rows counted have each
    hidden: int = 0  # how many more there are
    share: Real | None = None  # P(value | class); None: what scoring the values says
    what: str = "value"
    chosen: str = "frequent"  # the most so are those shown

    def most_frequent(self, n: int | None) -> NamedValues:
        """The n values that most rows have, in their order."""
        kept = np.sort(np.argsort(-self.rows, kind="stable")[:n]).tolist()
        values = [self.values[k] for k in kept]
        names = [self.names[k] for k in kept]
        return self._replace(values=values, names=names, rows=self.rows[kept], hidden=len(self.values) - len(kept))


class TellingValues(NamedTuple):
    """Some values of which each may speak for each class."""

    share: Real  # P(value | class), (values, classes)
    had: Real  # the share of the rows of each class that have it
    name: Callable[[int], tuple[str, Any]]  # the feature and value of number i
    allowed: NDArray[np.bool_] | None = None  # (values, classes); None: all
    kind: Literal["value", "word", "stretch"] = "value"


def telling(share: Real, share_of_rest: Real, difference: Real) -> tuple[Real, Real]:
    """The ratio of P(value | class) to P(value | rest), and how telling it is: its logarithm times how much more of the class's
    rows than of the rest's have the value. Nothing where it does not speak for the class."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(share > 0, share / share_of_rest, 0.0)
        score = np.where((ratio > 1) & (difference > 0), difference * np.log(np.minimum(ratio, LARGEST)), 0.0)
    return ratio, score


# Stretches of numbers ------------------------------------------------------------------------------------------------


class Spreading(Protocol):
    """Columns of numbers whose distribution functions are known."""

    @property
    def features(self) -> Sequence[Any]: ...
    def spread(self, f: int) -> tuple[Real, Real]: ...
    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]: ...
    def ends(self, f: int, near: Real, step: Real) -> Real: ...


def stretches(group: Spreading, compared: Comparison) -> Iterator[TellingValues]:
    """Of each number and class the stretch of values that tells most: below a cut, from one up, or between two."""
    rest = compared.rest
    n_classes = len(rest)
    n_together = max(1, CELLS // (len(rest) * STEPS**2))
    for f, feature in enumerate(group.features):
        centre, deviation = group.spread(f)
        usable = [c for c in compared.chosen if 0 < deviation[c] < np.inf and abs(centre[c]) < np.inf]
        for classes in (usable[start : start + n_together] for start in range(0, len(usable), n_together)):
            near = centre[classes, None] + deviation[classes, None] * np.linspace(-FARTHEST, FARTHEST, STEPS)
            cuts = group.ends(f, near, _round_steps(deviation[classes] / 2.0)[:, None])
            share, low, high = _between(group, f, cuts)
            share_of_class = np.stack([share[k, :, c] for k, c in enumerate(classes)])
            share_of_rest = np.einsum("ksc,ck->ks", share, rest[:, classes])
            score = telling(share_of_class, share_of_rest, share_of_class - share_of_rest)[1]
            best = np.argmax(np.where(np.isfinite(low) & np.isfinite(high), SIMPLER, 1.0) * score, axis=1)
            at = np.arange(len(classes)), best
            whole_numbers = feature.kind == "integer"
            ends = zip(low[at].tolist(), high[at].tolist(), strict=True)
            names = [(feature.name, stretch(*low_and_high, whole_numbers=whole_numbers)) for low_and_high in ends]
            allowed = np.array(classes)[:, None] == np.arange(n_classes)
            yield TellingValues(share[at], share[at], names.__getitem__, allowed, "stretch")


def _round_steps(steps: Real) -> Real:
    """The largest of 1, 2 and 5 times a power of ten that are not above them."""
    power = 10.0 ** np.floor(np.log10(steps))
    return np.asarray(power * np.select([steps >= 5 * power, steps >= 2 * power], [5.0, 2.0], 1.0))


def _between(group: Spreading, f: int, cuts: Real) -> tuple[Real, Real, Real]:
    """P(stretch | class) of all stretches that end at cuts of one class, (classes, stretches, all classes), and their ends."""
    below, above = (tail.reshape(*cuts.shape, -1) for tail in group.tails(f, cuts.ravel()))
    i, j = np.triu_indices(cuts.shape[1], 1)
    inside = np.where(below[:, i] < 0.5, below[:, j] - below[:, i], above[:, i] - above[:, j])
    endless = np.full(cuts.shape, np.inf)
    share = np.concatenate([below, above, np.maximum(inside, 0.0)], axis=1)
    low = np.concatenate([-endless, cuts, cuts[:, i]], axis=1)
    return share, low, np.concatenate([cuts, endless, cuts[:, j]], axis=1)


def stretch(low: float, high: float, whole_numbers: bool = False) -> str:
    """Where numbers lie, in words: from ``low`` on, and below ``high``. Of whole numbers, which they are."""
    if whole_numbers:
        first = np.ceil(low) + 0.0
        last = np.ceil(high) - 1.0 + 0.0
        if np.isneginf(low) or np.isposinf(high):
            return f"≤ {last:.{NAMED}g}" if np.isneginf(low) else f"≥ {first:.{NAMED}g}"
        return f"= {first:.{NAMED}g}" if first == last else f"from {first:.{NAMED}g} to {last:.{NAMED}g}"
    low = low + 0.0  # no "-0"
    high = high + 0.0
    if np.isneginf(low):
        return f"< {high:.{NAMED}g}"
    return f"≥ {low:.{NAMED}g}" if np.isposinf(high) else f"from {low:.{NAMED}g} to {high:.{NAMED}g}"


# Families that say no more than what scores and draws ------------------------------------------------------------------


class DrawnNumbers:
    """A column of numbers whose family scores and draws, and no more: its distribution on a grid over what it draws."""

    def __init__(self, alone: Any, drawn: Real, log_likelihood: LogLikelihood) -> None:
        self.features = (feature,) = alone.features
        finite = drawn[np.isfinite(drawn)]
        low, high = np.quantile(finite, [0.001, 0.999]).tolist() if len(finite) else (0.0, 0.0)
        self.values = np.linspace(low, high, POINTS)
        share = np.exp(log_likelihood(alone, {feature.name: self.values}))
        total = share.sum(axis=0)
        self.share = share / np.where(total > 0, total, 1.0)

    def spread(self, f: int) -> tuple[Real, Real]:
        mean = self.values @ self.share
        return mean, np.sqrt(((self.values[:, None] - mean) ** 2 * self.share).sum(axis=0))

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        up_to = np.concatenate([np.zeros((1, self.share.shape[1])), np.cumsum(self.share, axis=0)])
        below = np.minimum(up_to[np.searchsorted(self.values, cuts)], 1.0)
        return below, 1.0 - below

    def ends(self, f: int, near: Real, step: Real) -> Real:
        return round_ends(self.features[f], near, step)


def round_ends(feature: Any, near: Real, step: Real) -> Real:
    """Multiples of a round step near the numbers wanted; of whole numbers just below the next one."""
    ends = np.round(near / step) * step
    return np.asarray(np.ceil(ends) - 0.5 if feature.kind == "integer" else ends)


def telling_from_draws(alone: Any, drawn: NDArray[Any], compared: Comparison) -> Iterator[TellingValues]:
    """The stretches of the one column of some parameters, or its values where they are no numbers, by what was drawn of it."""
    if drawn.dtype.kind in "iuf":
        yield from stretches(DrawnNumbers(alone, drawn.astype(np.float64), compared.log_likelihood), compared)
        return
    name = alone.features[0].name
    values = sorted(set(drawn.tolist()), key=str)
    share = np.exp(compared.log_likelihood(alone, {name: values}))
    yield TellingValues(share, share, [(name, value) for value in values].__getitem__)
