"""Choosing families: every column of numbers gets the one that finds rows it has not seen likeliest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from banbury import _core, errors
from banbury.distributions import FAMILIES
from banbury.distributions.family import Family, Feature, How
from banbury.naive_bayes import estimate
from banbury.readers import Batch
from banbury.schema import Schema, infer
from banbury.selection.dataset import Dataset
from banbury.selection.folds import Round
from banbury.selection.groups import Groups
from banbury.selection.scoring import learned

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
    families = [family() for family in FAMILIES.values()]
    numeric = [f for f in rows.schema.features if f.family in families and _is_numeric(f, rows.batches[0])]
    spans = {f.name: [_span(batch, f.name) for batch in rows.batches] for f in numeric}
    least, whole = ({name: min(span[k] for span in each) for name, each in spans.items()} for k in (0, 1))
    scores: dict[str, dict[str, float]] = {f.name: {} for f in numeric}
    features: dict[str, Feature] = {}
    for candidate in families:
        suited = (f for f in numeric if f.family == candidate or candidate.suits(least[f.name], bool(whole[f.name])))
        names = [f.name for f in suited]
        for name, (score, part) in _tried(rows, names, candidate, each, how, seed, whole).items():
            if not scores[name] or score > max(scores[name].values()):
                features[name] = part.schema[name]._replace(why="chosen by held-out likelihood")
            scores[name][candidate.name] = score
    chosen = tuple(features.get(f.name, f) for f in rows.schema.features)
    return FamilyChoice(replace(rows.schema, features=chosen), scores)


def _is_numeric(feature: Feature, batch: Batch) -> bool:
    """Whether it is counted as numbers, or as categories for no other reason than that these are few whole numbers."""
    if feature.family.suits(-np.inf, False):
        return True
    return feature.kind == "integer" and not feature.columns and not batch.categorical(feature.name)


def _tried(
    rows: Dataset, names: list[str], candidate: Family, each: Round, how: How, seed: int, whole: Mapping[str, float]
) -> dict[str, tuple[float, Dataset]]:
    """The score of a candidate in each column, and as what it was counted; without columns that it cannot count."""
    if not names:
        return {}
    try:
        part = _counted_as(rows, names, candidate)
        return {name: (score, part) for name, score in _likelihoods(part, each, how, seed, whole).items()}
    except errors.BadValue:
        if all(rows.schema[name].family == candidate for name in names):  # as they are counted otherwise
            raise
    halves = [names[: len(names) // 2], names[len(names) // 2 :]] if len(names) > 1 else []
    return {k: v for half in halves for k, v in _tried(rows, half, candidate, each, how, seed, whole).items()}


def _counted_as(rows: Dataset, names: list[str], candidate: Family) -> Dataset:
    """The data set with these columns alone, all of this family."""
    left_out = {name: "left out" for name in rows.batches[0].names if name not in names}
    schema = infer(rows.batches[0], left_out, None, dict.fromkeys(names, candidate), "skip")
    known = ((f, rows.schema[f.name]) for f in schema.features)
    features = tuple(own if own.family == f.family else f for f, own in known)
    return replace(rows, schema=replace(schema, features=features, target=rows.schema.target, named=rows.schema.named))


def _likelihoods(rows: Dataset, each: Round, how: How, seed: int, whole: Mapping[str, float]) -> dict[str, float]:
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
            scores = _core.score(batch.n_rows, np.zeros(len(model.classes)), group.parts(batch), "parts", 1)[0]
            for f, feature in enumerate(features):
                x = np.asarray(batch.numbers([feature.name])[0], dtype=np.float64).reshape(-1)
                there = np.flatnonzero(~np.isnan(x) & (labels >= 0))
                likely = scores[there, f, labels[there]]
                values, inverse = np.unique(x[there], return_inverse=True)
                table = group.log_cells(f, values) if whole[feature.name] else None
                if table is not None:
                    cells = table[inverse.reshape(-1), labels[there]]
                    likely = np.where(np.isfinite(cells), cells, likely)  # far out the density says more
                weight = np.ones(len(there)) if weights is None else weights[there]
                total[f] += weight @ np.maximum(likely, np.log(LEAST))
                n[f] += weight.sum()
    names = [feature.name for feature in features]
    means = total / np.where(n > 0, n, 1.0)
    return dict(zip(names, means.tolist(), strict=True))


def _span(batch: Batch, name: str) -> tuple[float, bool]:
    """The least of a column's numbers, and whether all are whole."""
    x = np.asarray(batch.numbers([name])[0], dtype=np.float64).reshape(-1)
    x = x[~np.isnan(x)]
    return float(x.min(initial=np.inf)), bool(np.all((x == np.rint(x)) & (np.abs(x) < 2.0**52)))
