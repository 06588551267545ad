"""What tells each class from the rest: the values, words and stretches of numbers that speak for it, as likelihood ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.distributions.bag import TextParameters
from banbury.distributions.bernoulli import BernoulliParameters
from banbury.distributions.categorical import CategoricalParameters
from banbury.distributions.covariance import GaussianBlockParameters
from banbury.distributions.family import Feature, Parameters
from banbury.distributions.gaussian import GaussianParameters
from banbury.distributions.histogram import HistogramParameters
from banbury.distributions.histogram_block import HistogramBlockParameters
from banbury.distributions.joint import JointParameters
from banbury.distributions.kernel_block import KernelBlockParameters
from banbury.distributions.occurrences import OccurrencesParameters
from banbury.distributions.poisson import PoissonParameters
from banbury.distributions.vocabulary import CELLS
from banbury.explain import page
from banbury.explain.explanation import strict

LARGEST = 1e3  # a ratio above this ranks as this: where the rest hardly ever has a value, its size is mostly chance
SIMPLER = 0.95  # a stretch that ends on both sides must tell so much more than one that ends on one
FARTHEST, STEPS = 3.0, 13  # deviations from the mean at which a stretch may end, and how many places there are
NAMED = 12  # digits of where it ends


@dataclass(frozen=True)
class LikelihoodRatio:
    """A value that speaks for a class: it is ``ratio`` times as probable there as in the rest, all other classes together.

    ``value`` is a word, a category, True or False, of a joint table a tuple of them, or of a number where it lies, as in "< 2.1".
    """

    label: Any
    feature: str
    value: Any
    ratio: float
    probability: float
    probability_rest: float


@dataclass(frozen=True)
class Informative:
    """What tells each class from the rest, the most telling first: likelihood ratios by class.

    ``left_aside`` names the blocks that speak by all their columns at once, of which no value or stretch can be named.
    """

    ratios: dict[Any, tuple[LikelihoodRatio, ...]]
    words: frozenset[str] = frozenset()  # the features that are text
    alone: bool = False  # whether a text is the only feature there is
    left_aside: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """What was left aside, in a sentence; nothing if nothing was."""
        return (
            f"Left aside, since their columns speak together: {', '.join(self.left_aside)}." if self.left_aside else ""
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it: a list, since a class need not be a text."""
        return {
            "classes": [{"class": label, "ratios": [self._row(r) for r in rows]} for label, rows in self.ratios.items()]
        }

    @staticmethod
    def _row(ratio: LikelihoodRatio) -> dict[str, Any]:
        row = {name: value for name, value in asdict(ratio).items() if name != "label"}
        return {name: strict(value) if isinstance(value, float) else value for name, value in row.items()}

    def shown(self, ratio: LikelihoodRatio) -> str:
        """The value with its feature, or the word alone where there is nothing but a text."""
        value = page.printable(", ".join(map(str, ratio.value)) if isinstance(ratio.value, tuple) else ratio.value)
        if ratio.feature in self.words:
            return value if self.alone else f"{ratio.feature}: {value}"
        stretch = isinstance(ratio, Stretch)
        return f"{ratio.feature} {'' if stretch else '= '}{value}"

    def __str__(self) -> str:
        names = {id(r): self.shown(r) for rows in self.ratios.values() for r in rows}
        width = max(map(len, names.values()), default=0)
        lines = []
        for label, rows in self.ratios.items():
            against = f"{label} : rest ="
            lines.append(f"{label!r}" + ("" if rows else ": nothing tells it from the rest"))
            figures = [page.stated(r.ratio) for r in rows]
            most = max(map(len, figures), default=0)
            lines += [
                f"  {names[id(r)]:{width}}  {against} {figure:>{most}} : 1"
                for r, figure in zip(rows, figures, strict=True)
            ]
        return "\n".join([*lines, *filter(None, [self.note])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return page.informative(self)


class Stretch(LikelihoodRatio):
    """The stretch of a number's values that speaks for a class; of a column of occurrences that it occurs."""


# Finding them --------------------------------------------------------------------------------------------------------


class Values(NamedTuple):
    """Some values of which each may speak for each class."""

    share: Real  # P(value | class), (values, classes)
    had: Real  # the share of the rows of each class that have it
    allowed: NDArray[np.bool_] | None  # (values, classes); None: all
    name: Callable[[int], tuple[type[LikelihoodRatio], str, Any]]  # the feature and value of number i


class NumericParameters(Protocol):
    """Parameters of columns of numbers."""

    @property
    def features(self) -> tuple[Feature, ...]: ...
    def spread(self, f: int) -> tuple[Real, Real]: ...
    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]: ...


def informative(
    labels: Sequence[Any],
    parameters: Sequence[Parameters],
    log_prior: Real,
    n: int = 10,
    classes: Sequence[Any] | None = None,
) -> Informative:
    """The ``n`` most telling values of each class, by ``Model.informative``'s rule."""
    chosen = _chosen(labels, classes)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise errors.bad_setting("n", n, "a whole number from 1 up")
    if len(labels) < 2:
        raise errors.bad_setting("the model", f"one class, {labels[0]!r}", "one of two classes at least to tell apart")
    rest = _rest(np.exp(log_prior))
    best: list[list[tuple[float, LikelihoodRatio]]] = [[] for _ in labels]
    for values in _every(parameters, rest, chosen):
        _take(values, rest, chosen, labels, int(n), best)
    texts = frozenset(f.name for group in parameters if isinstance(group, TextParameters) for f in group.features)
    alone = len(texts) == sum(len(group.features) for group in parameters) == 1
    aside = tuple(
        f.name
        for g in parameters
        if isinstance(g, (HistogramBlockParameters, KernelBlockParameters))
        for f in g.features
    )
    return Informative({labels[c]: tuple(ratio for _, ratio in best[c]) for c in chosen}, texts, alone, aside)


def _chosen(labels: Sequence[Any], classes: Any) -> list[int]:
    """The numbers of the classes that are asked for."""
    if classes is None:
        return list(range(len(labels)))
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__iter__"):
        raise errors.bad_setting("classes", classes, "None or a list of classes")
    known = {label: c for c, label in enumerate(labels)}
    chosen = dict.fromkeys(classes)
    for label in chosen:
        if label not in known:
            raise errors.unknown_class(label, labels)
    return [known[label] for label in chosen]


def _rest(prior: Real) -> Real:
    """How the other classes are mixed: column c has their shares without class c; equal where their prior is 0."""
    weights = np.repeat(prior[:, None], len(prior), axis=1)
    np.fill_diagonal(weights, 0.0)
    total = weights.sum(axis=0)
    equal = (1.0 - np.eye(len(prior))) / (len(prior) - 1)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), equal)


def _take(
    values: Values,
    rest: Real,
    chosen: list[int],
    labels: Sequence[Any],
    n: int,
    best: list[list[tuple[float, LikelihoodRatio]]],
) -> None:
    """Keeps of what each class had and of these values the n that tell most."""
    elsewhere = values.share @ rest[:, chosen]
    more = values.had[:, chosen] - (elsewhere if values.had is values.share else values.had @ rest[:, chosen])
    ratio, telling = _telling(values.share[:, chosen], elsewhere, more)
    for k, c in enumerate(chosen):
        score = telling[:, k] if values.allowed is None else np.where(values.allowed[:, c], telling[:, k], 0.0)
        for i in _highest(score, n):
            kind, feature, value = values.name(i)
            found = kind(
                labels[c], feature, value, float(ratio[i, k]), float(values.share[i, c]), float(elsewhere[i, k])
            )
            best[c].append((float(score[i]), found))
        best[c].sort(key=lambda each: (-each[0], each[1].feature, str(each[1].value)))
        del best[c][n:]


def _highest(score: Real, n: int) -> list[int]:
    """The places of the n highest above 0; of equals the first."""
    least = np.partition(score, -n)[-n] if len(score) > n else 0.0
    places = np.flatnonzero((score >= least) & (score > 0))
    return [int(i) for i in places[np.argsort(-score[places], kind="stable")][:n]]


def _telling(own: Real, elsewhere: Real, more: Real) -> tuple[Real, Real]:
    """The ratio of P(value | class) to P(value | rest), and how telling it is: its logarithm times how much more of the class's
    rows than of the rest's have the value. Nothing where it does not speak for the class."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(own > 0, own / elsewhere, 0.0)
        telling = np.where((ratio > 1) & (more > 0), more * np.log(np.minimum(ratio, LARGEST)), 0.0)
    return ratio, telling


def _every(parameters: Sequence[Parameters], rest: Real, chosen: list[int]) -> Iterator[Values]:
    for group in parameters:
        if isinstance(group, TextParameters):
            yield from _words(group)
        elif isinstance(group, OccurrencesParameters):
            yield from _columns(group)
        elif isinstance(group, GaussianBlockParameters):
            yield from _stretches(_one_by_one(group), rest, chosen)
        elif isinstance(group, (HistogramBlockParameters, KernelBlockParameters)):
            continue
        elif isinstance(group, (BernoulliParameters, CategoricalParameters, JointParameters)):
            share, names = group.values()
            yield Values(share, share, None, _namer(group.features, names))
        else:
            yield from _stretches(cast("NumericParameters", group), rest, chosen)


def _namer(
    features: Sequence[Feature], names: list[tuple[int, Any]]
) -> Callable[[int], tuple[type[LikelihoodRatio], str, Any]]:
    return lambda i: (LikelihoodRatio, features[names[i][0]].name, names[i][1])


def _words(bag: TextParameters) -> Iterator[Values]:
    feature = bag.features[0].name
    for ids, share, had in bag.values():

        def name(i: int, ids: Any = ids) -> tuple[type[LikelihoodRatio], str, Any]:
            return LikelihoodRatio, feature, bag.table.words(ids[i : i + 1])[0]

        yield Values(share, had, None, name)


def _columns(block: OccurrencesParameters) -> Iterator[Values]:
    names = block.features[0].inputs
    for places, share, had in block.values():

        def name(i: int, places: Any = places) -> tuple[type[LikelihoodRatio], str, Any]:
            return Stretch, names[int(places[i])], "occurs"

        yield Values(share, had, None, name)


def _one_by_one(block: GaussianBlockParameters) -> GaussianParameters:
    """The columns of a Gaussian block, each as it is distributed whatever the others are."""
    (feature,) = block.features
    columns = tuple(feature._replace(name=column, columns=(), scales=()) for column in feature.columns)
    origin, unit = np.array(feature.scales).T
    variance = np.diagonal(block.covariance, axis1=1, axis2=2).T
    nu = None if block.nu is None else np.broadcast_to(block.nu, variance.shape)
    precision = 0.5 / variance if nu is None else 1.0 / (nu * variance)
    constant = np.zeros_like(variance)  # ratios of tails need none
    return GaussianParameters(
        columns, origin, unit, block.mean.T, precision, constant, None if nu is None else (nu + 1.0) / 2.0
    )


def _stretches(group: NumericParameters, rest: Real, chosen: list[int]) -> Iterator[Values]:
    """Of each number and class the stretch of values that tells most: below a cut, from one up, or between two."""
    n_classes, step = len(rest), max(1, CELLS // (len(rest) * STEPS**2))
    for f, feature in enumerate(group.features):
        centre, deviation = group.spread(f)
        usable = [c for c in chosen if 0 < deviation[c] < np.inf and abs(centre[c]) < np.inf]
        for some in (usable[start : start + step] for start in range(0, len(usable), step)):
            cuts = _cuts(centre[some], deviation[some], isinstance(group, PoissonParameters))
            if isinstance(group, HistogramParameters):
                cuts = group.nearest_edges(f, cuts)
            share, low, high = _between(group, f, cuts)
            own = np.stack([share[k, :, c] for k, c in enumerate(some)])
            elsewhere = np.einsum("ksc,ck->ks", share, rest[:, some])
            telling = _telling(own, elsewhere, own - elsewhere)[1]
            best = np.argmax(np.where(np.isfinite(low) & np.isfinite(high), SIMPLER, 1.0) * telling, axis=1)
            at = np.arange(len(some)), best
            names = [_stretch(*ends) for ends in zip(low[at].tolist(), high[at].tolist(), strict=True)]
            allowed = np.array(some)[:, None] == np.arange(n_classes)
            yield Values(share[at], share[at], allowed, _stretch_namer(feature.name, names))


def _stretch_namer(feature: str, names: list[str]) -> Callable[[int], tuple[type[LikelihoodRatio], str, Any]]:
    return lambda i: (Stretch, feature, names[i])


def _cuts(centre: Real, deviation: Real, whole: bool) -> Real:
    """Round numbers within some deviations of the mean, (classes, cuts); of counts whole ones from 1 up."""
    wanted = centre[:, None] + deviation[:, None] * np.linspace(-FARTHEST, FARTHEST, STEPS)
    step = _round_steps(deviation / 2.0)[:, None]
    if whole:
        step = np.maximum(step, 1.0)
        return np.maximum(np.round(wanted / step), 1.0) * step
    return np.round(wanted / step) * step


def _round_steps(steps: Real) -> Real:
    """The largest of 1, 2 and 5 times a power of ten that are not above them."""
    power = 10.0 ** np.floor(np.log10(steps))
    return np.asarray(power * np.select([steps >= 5 * power, steps >= 2 * power], [5.0, 2.0], 1.0))


def _between(group: NumericParameters, f: int, cuts: Real) -> tuple[Real, Real, Real]:
    """P(stretch | class) of all stretches that end at cuts of one class, (classes, stretches, all classes), and their ends."""
    below, above = (tail.reshape(*cuts.shape, -1) for tail in group.tails(f, cuts.ravel()))
    i, j = np.triu_indices(cuts.shape[1], 1)
    inside = np.where(below[:, i] < 0.5, below[:, j] - below[:, i], above[:, i] - above[:, j])
    endless = np.full(cuts.shape, np.inf)
    share = np.concatenate([below, above, np.maximum(inside, 0.0)], axis=1)
    low = np.concatenate([-endless, cuts, cuts[:, i]], axis=1)
    return share, low, np.concatenate([cuts, endless, cuts[:, j]], axis=1)


def _stretch(low: float, high: float) -> str:
    low, high = low + 0.0, high + 0.0  # no "-0"
    if np.isneginf(low):
        return f"< {high:.{NAMED}g}"
    return f"≥ {low:.{NAMED}g}" if np.isposinf(high) else f"from {low:.{NAMED}g} to {high:.{NAMED}g}"
