"""Choosing families: every column of numbers gets the one that finds rows it has not seen likeliest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Real
from banbury.distributions import Gaussian, Histogram, KernelDensity, Poisson
from banbury.distributions.family import Family, Feature, How
from banbury.distributions.gaussian import GaussianParameters
from banbury.distributions.histogram import HistogramParameters
from banbury.distributions.kernel_density import KernelDensityParameters
from banbury.distributions.poisson import PoissonParameters
from banbury.naive_bayes import estimate
from banbury.readers import Batch
from banbury.schema import Schema, infer
from banbury.selection.dataset import Dataset
from banbury.selection.folds import Round
from banbury.selection.groups import Groups
from banbury.selection.scoring import learned

CANDIDATES: tuple[Family, ...] = (Gaussian(), Histogram(), KernelDensity(), Poisson())
BEYOND = 64  # bins beyond the outer ones of a histogram: what lies farther is next to nothing
WIDE = 100.0  # a kernel this wide is the same all over a cell, to four parts in a million
LEAST = 1e-300  # a probability below this counts as this


@dataclass(frozen=True, eq=False, repr=False)
class FamilyChoice:
    """The family chosen for each column of numbers, and the held-out log-likelihood per value of every candidate, in nats.

    Of whole numbers it is the probability of the unit cell around the value, so that densities and counts compare.
    """

    schema: Schema
    scores: dict[str, dict[str, float]]

    @property
    def names(self) -> dict[str, str]:
        return {name: max(each, key=lambda family: each[family]) for name, each in self.scores.items()}

    def __str__(self) -> str:
        if not self.scores:
            return ""
        width = max(map(len, self.scores))
        lines = ["families, by the mean held-out log-likelihood of a value:"]
        for name, each in self.scores.items():
            chosen = self.names[name]
            rest = ", ".join(f"{family} {score:.3f}" for family, score in each.items() if family != chosen)
            lines.append(f"  {name:{width}}  {chosen} {each[chosen]:.3f}" + (f" ({rest})" if rest else ""))
        return "\n".join(lines)

    __repr__ = __str__


def choose(rows: Dataset, each: Round, how: How, seed: int) -> FamilyChoice:
    """Counts the columns of numbers once for each candidate, and scores each fold by what the others say."""
    numeric = [f for f in rows.schema.features if isinstance(f.family, Gaussian)]
    whole = {f.name for f in numeric if all(_is_whole(batch, f.name) for batch in rows.batches)}
    counts = {name for name in whole if all(_is_count(batch, name) for batch in rows.batches)}
    scores: dict[str, dict[str, float]] = {f.name: {} for f in numeric}
    features: dict[str, Feature] = {}
    for candidate in CANDIDATES:
        names = [f.name for f in numeric if f.name in counts or not isinstance(candidate, Poisson)]
        if not names:
            continue
        for name, (score, part) in _tried(rows, names, candidate, each, how, seed, whole).items():
            if not scores[name] or score > max(scores[name].values()):
                features[name] = part.schema[name]._replace(why="chosen by held-out likelihood")
            scores[name][candidate.name] = score
    chosen = tuple(features.get(f.name, f) for f in rows.schema.features)
    return FamilyChoice(replace(rows.schema, features=chosen), scores)


def _tried(
    rows: Dataset, names: list[str], candidate: Family, each: Round, how: How, seed: int, whole: set[str]
) -> dict[str, tuple[float, Dataset]]:
    """The score of a candidate in each column, and as what it was counted; without columns that it cannot count."""
    try:
        part = _counted_as(rows, names, candidate)
        return {name: (score, part) for name, score in _likelihoods(part, each, how, seed, whole).items()}
    except errors.BadValue:
        if isinstance(candidate, Gaussian):
            raise
    halves = [names[: len(names) // 2], names[len(names) // 2 :]] if len(names) > 1 else []
    found = [_tried(rows, half, candidate, each, how, seed, whole) for half in halves]
    return {name: score for half in found for name, score in half.items()}


def _counted_as(rows: Dataset, names: list[str], candidate: Family) -> Dataset:
    """The data set with these columns alone, all of this family."""
    left_out = {name: "left out" for name in rows.batches[0].names if name not in names}
    schema = infer(rows.batches[0], left_out, None, dict.fromkeys(names, candidate), "skip")
    return replace(rows, schema=replace(schema, target=rows.schema.target, named=rows.schema.named))


def _likelihoods(rows: Dataset, each: Round, how: How, seed: int, whole: set[str]) -> dict[str, float]:
    """Of every feature the mean of log P(value | true class) over the values of all tests."""
    groups = Groups.of(rows, each.groups, each.n_groups)
    features = rows.schema.features
    total, n = np.zeros(len(features)), np.zeros(len(features))
    for number, split in enumerate(each.splits):
        model = estimate(learned(rows, split, groups, number), how=how, seed=seed)
        place = np.array([model.classes.index(c) if c in model.classes else -1 for c in rows.classes])
        start = 0
        for batch in rows.take(split.test):
            tested = split.test[start : start + batch.n_rows]
            labels, weights = place[rows.labels[tested]], None if rows.weights is None else rows.weights[tested]
            start += batch.n_rows
            (group,) = model.parameters
            found = _core.score(batch.n_rows, np.zeros(len(model.classes)), group.parts(batch), "parts", 1)[0]
            for f, feature in enumerate(features):
                x = np.asarray(batch.numbers([feature.name])[0], dtype=np.float64).reshape(-1)
                there = np.flatnonzero(~np.isnan(x) & (labels >= 0))
                likely = found[there, f, labels[there]]
                if feature.name in whole:
                    cells = _cells(group, f, x[there], labels[there])
                    likely = np.where(np.isfinite(cells), cells, likely)  # far out the density says more
                weight = np.ones(len(there)) if weights is None else weights[there]
                total[f] += weight @ np.maximum(likely, np.log(LEAST))
                n[f] += weight.sum()
    names = [feature.name for feature in features]
    means = total / np.where(n > 0, n, 1.0)
    return dict(zip(names, means.tolist(), strict=True))


# Whole numbers -------------------------------------------------------------------------------------------------------


def _is_whole(batch: Batch, name: str) -> bool:
    x = np.asarray(batch.numbers([name])[0], dtype=np.float64).reshape(-1)
    x = x[~np.isnan(x)]
    return bool(np.all(x == np.rint(x))) and bool(np.all(np.abs(x) < 2.0**52))


def _is_count(batch: Batch, name: str) -> bool:
    x = np.asarray(batch.numbers([name])[0], dtype=np.float64).reshape(-1)
    return not bool(np.any(x < 0)) and not bool(np.any(x > 2.0**53))


def _cells(group: object, f: int, x: Real, labels: NDArray[np.int64]) -> Real:
    """log P of the unit cell of each value in its class."""
    values, inverse = np.unique(x, return_inverse=True)
    if isinstance(group, PoissonParameters):
        table = group.log_probability(f, values)
    else:
        with np.errstate(divide="ignore"):
            table = np.log(np.maximum(_cell_table(group, f, values), 0.0))
    return np.asarray(table[inverse.reshape(-1), labels])


def _cell_table(group: object, f: int, values: Real) -> Real:
    """P(x − ½ < X < x + ½ | class), of a histogram P(x ≤ X < x + 1 | class), (values, classes)."""
    from scipy.special import ndtr

    edges = np.stack([values - 0.5, values + 0.5])
    if isinstance(group, GaussianParameters):
        z = (edges - group.origin[f]) / group.unit[f]
        below = ndtr((z[..., None] - group.mean[f]) * np.sqrt(2.0 * group.precision[f]))
    elif isinstance(group, HistogramParameters):
        width, first = group.widths[f], group.firsts[f]
        edges = edges + 0.5  # whole numbers are where bins begin
        inside = np.exp(group.tables[f]) * width
        halves = 0.5 ** np.arange(1, BEYOND + 1)[:, None]  # the density halves from bin to bin
        share = np.concatenate([inside[:1] * halves[::-1], inside, inside[-1:] * halves])
        first -= BEYOND
        steps = np.concatenate([np.zeros((1, share.shape[1])), np.cumsum(share, axis=0)])
        at = np.clip((edges - group.features[f].origin) / width - first, 0.0, len(share))
        left = np.minimum(at.astype(np.int64), len(share) - 1)
        below = steps[left] + (at - left)[..., None] * share[left]
    else:
        assert isinstance(group, KernelDensityParameters)
        bump, feature = group.bumps[f], group.features[f]
        z = (edges - feature.origin) / feature.unit
        below = np.full((2, len(values), bump.weights.shape[1]), np.nan)
        for c, bandwidth in enumerate(bump.bandwidth.tolist()):
            if bandwidth * feature.unit < WIDE:  # else the density says it
                below[..., c] = ndtr((z[..., None] - bump.centres) / bandwidth) @ bump.weights[:, c]
    return np.asarray(below[1] - below[0])
