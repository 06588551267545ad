"""Choosing families: every column of numbers gets the one by which it tells the classes of rows it has not seen best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families import FAMILIES
from banbury.families.family import Family, Feature, NumberColumn
from banbury.model.naive_bayes import Model
from banbury.quality.recipes import Plain
from banbury.reading import Batch
from banbury.reading.batches import remember_answers
from banbury.rows.folds import Round, Split
from banbury.rows.groups import Groups
from banbury.rows.labelled import MemoryRows
from banbury.rows.scoring import tally_of_split
from banbury.tally.schema import Schema, infer

LEAST = float(np.log(np.finfo(float).eps))  # scikit-learn's least log probability
ENOUGH = 50_000  # rows tested by which a family is chosen; of more, the folds after these are left


@dataclass(frozen=True, eq=False, repr=False)
class FamilyChoice:
    """The chosen family of each numeric column, and the held-out log loss of every candidate.

    The log loss is that of predicting the class from the class prior and this column alone, over rows that have a
    value.
    """

    schema: Schema
    scores: dict[str, dict[str, float]]

    @property
    def names(self) -> dict[str, str]:
        return {name: str(self.schema[name].family) for name in self.scores}

    def __str__(self) -> str:
        if not self.scores:
            return ""
        width = max(map(len, self.scores))
        lines = ["families, by the held-out log loss of the column alone:"]
        for name, losses in self.scores.items():
            chosen = self.names[name]
            rest = ", ".join(f"{family} {score:.3f}" for family, score in losses.items() if family != chosen)
            lines.append(f"  {name:{width}}  {chosen} {losses[chosen]:.3f}" + (f" ({rest})" if rest else ""))
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A family, and the columns that are counted as it, fold by fold."""

    family: Family
    rows: MemoryRows
    groups: Groups


def choose(rows: MemoryRows, splits: Round, recipe: Plain) -> FamilyChoice:
    """Counts the numeric columns once for each candidate, and scores the rows of each fold with models of the other
    folds.
    """
    families = [family() for family in FAMILIES.values()]
    numeric = [f for f in rows.schema.features if f.family in families and _is_numeric(f, rows.batches[0])]
    if not numeric:
        return FamilyChoice(rows.schema, {})
    names = [f.name for f in numeric]
    numbers = np.concatenate([_numbers(batch, names) for batch in rows.batches])
    summaries = {name: _describe_numbers(x) for name, x in zip(names, numbers.T, strict=True)}
    names_by_family: dict[Family, list[str]] = {}
    for family in families:
        for name, column in summaries.items():
            for one in family.candidates(column):
                names_by_family.setdefault(one, []).append(name)
    candidates = [
        c for family, columns in names_by_family.items() for c in _count_candidates(rows, columns, family, splits)
    ]
    losses = _losses(rows, names, numbers, candidates, splits, recipe)
    scores: dict[str, dict[str, float]] = {name: {} for name in names}
    chosen: dict[str, tuple[float, Feature]] = {}
    for candidate, lost in zip(candidates, losses, strict=True):
        for feature, loss in zip(candidate.rows.schema.features, np.round(lost, 12).tolist(), strict=True):
            scores[feature.name][str(candidate.family)] = loss
            is_current = (
                candidate.family == rows.schema[feature.name].family
            )  # of equals it stays, or the first is taken
            if feature.name not in chosen or (loss, not is_current) < (chosen[feature.name][0], False):
                chosen[feature.name] = loss, feature._replace(why="chosen by held-out log loss")
    features = tuple(chosen[f.name][1] if f.name in chosen else f for f in rows.schema.features)
    return FamilyChoice(replace(rows.schema, features=features), scores)


def _is_numeric(feature: Feature, batch: Batch) -> bool:
    """Whether it is one column of numbers, which nobody declared to be categories."""
    numbers = not feature.columns and batch.kind(feature.name) in ("integer", "float")
    return numbers and not batch.categorical(feature.name)


def _numbers(batch: Batch, names: list[str]) -> Real:
    """The columns side by side."""
    columns = [np.asarray(x, dtype=np.float64).reshape(batch.n_rows, -1) for x in batch.numbers(names)]
    return np.concatenate(columns, axis=1)


def _describe_numbers(x: Real) -> NumberColumn:
    values, rows = np.unique(x[~np.isnan(x)], return_counts=True)
    integers = bool(np.all((values == np.rint(values)) & (np.abs(values) < 2.0**52)))
    least, greatest = (float(values[0]), float(values[-1])) if len(values) else (0.0, 0.0)
    return NumberColumn(least, greatest, integers, len(values), int(rows.sum()))


def _count_candidates(rows: MemoryRows, names: list[str], candidate: Family, splits: Round) -> list[_Candidate]:
    """The columns as this family counts them, fold by fold; without those that it cannot count."""
    try:
        part = _rows_under_family(rows, names, candidate)
        return [_Candidate(candidate, part, part.count(splits.groups, splits.n_groups))]
    except errors.BadValue:
        if all(rows.schema[name].family == candidate for name in names):  # as they are counted otherwise
            raise
    halves = [names[: len(names) // 2], names[len(names) // 2 :]] if len(names) > 1 else []
    return [countable for half in halves for countable in _count_candidates(rows, half, candidate, splits)]


def _rows_under_family(rows: MemoryRows, names: list[str], candidate: Family) -> MemoryRows:
    """The data set with these columns alone, all of this family."""
    left_out = {name: "left out" for name in rows.batches[0].names if name not in names}
    schema = infer(rows.batches[0], left_out, None, dict.fromkeys(names, candidate), "skip")
    feature_pairs = ((f, rows.schema[f.name]) for f in schema.features)
    features = tuple(current if current.family == f.family else f for f, current in feature_pairs)
    return replace(rows, schema=replace(schema, features=features, target=rows.schema.target, named=rows.schema.named))


# How well each tells the classes ---------------------------------------------------------------------------------------


def _losses(
    rows: MemoryRows,
    names: list[str],
    numbers: Real,
    candidates: list[_Candidate],
    splits: Round,
    recipe: Plain,
) -> list[Real]:
    """Of every candidate the mean of −log P(true class | value) in each of its columns, over the values that are tested."""
    place = {name: j for j, name in enumerate(names)}
    columns = [np.array([place[f.name] for f in c.rows.schema.features]) for c in candidates]
    losses = [np.zeros(len(places)) for places in columns]
    weight = np.zeros(len(names))
    n_tested = 0
    for number, split in enumerate(splits.splits):
        if n_tested >= ENOUGH:
            break
        n_tested += len(split.test)
        models = [_model(c, split, number, recipe) for c in candidates]
        for batch, cells in _values(rows, names, numbers, split.test):
            weight += cells.sum(axis=(0, 2))
            for model, places, lost in zip(models, columns, losses, strict=True):
                lost += _lost(model, batch, cells[:, places], rows)
    mean = np.where(weight > 0, weight, 1.0)
    return [lost / mean[places] for places, lost in zip(columns, losses, strict=True)]


def _model(candidate: _Candidate, split: Split, number: int, recipe: Plain) -> Model:
    tally = tally_of_split(candidate.rows, split, candidate.groups, number)
    return recipe.estimate(tally, candidate.rows.classes)


def _values(rows: MemoryRows, names: list[str], numbers: Real, test: Int) -> Iterator[tuple[Batch, Real]]:
    """Tested rows, some at a time, as a table of each column's different values, and the weight of each value in every class.

    Shorter columns are filled up with values of no weight.
    """
    test = test[rows.labels[test] >= 0]
    if rows.weights is not None:
        test = test[rows.weights[test] > 0]
    n_classes = len(rows.classes)
    start = 0
    for batch in rows.take(test):
        tested = test[start : start + batch.n_rows]
        start += batch.n_rows
        x = np.ascontiguousarray(numbers[tested].T)
        order = np.argsort(x, axis=1)
        x = np.take_along_axis(x, order, axis=1)
        there = ~np.isnan(x)
        code = np.cumsum(np.diff(x, axis=1, prepend=x[:, :1]) > 0, axis=1)  # those that are missing stand last
        n_values = int(code.max(initial=0)) + 1
        line = np.arange(len(names))[:, None]
        weights = there * (1.0 if rows.weights is None else rows.weights[tested][order])
        at = (code * len(names) + line) * n_classes + rows.labels[tested][order]
        size = n_values * len(names) * n_classes
        cells: Real = np.bincount(at.reshape(-1), weights.reshape(-1), size).astype(np.float64)
        shown = np.zeros((len(names), n_values), dtype=np.int64)
        shown[np.broadcast_to(line, code.shape)[there], code[there]] = order[there]
        columns = {name: batch.column(name).take(value_rows) for name, value_rows in zip(names, shown, strict=True)}
        table = remember_answers(Batch(tuple(names), n_values, columns, batch.named, batch.source))
        yield table, cells.reshape(n_values, len(names), n_classes)


def _lost(model: Model, batch: Batch, cells: Real, rows: MemoryRows) -> Real:
    """−log P(true class | value) of each feature, added up over its values and their weights in every class."""
    (group,) = model.parameters
    scores = _core.score(batch.n_rows, np.zeros(len(model.classes)), group.parts(batch), "parts", rows.threads)[0]
    scores += model.log_prior
    best = scores.max(axis=2, keepdims=True)
    scores = np.where(np.isneginf(best), model.log_prior, scores - np.where(np.isneginf(best), 0.0, best))
    with np.errstate(divide="ignore"):
        scores -= np.log(np.exp(scores).sum(axis=2, keepdims=True))
    class_numbers = [rows.classes.index(name) for name in model.classes]
    likely = np.full(cells.shape, LEAST)
    likely[:, :, class_numbers] = np.maximum(scores, LEAST)
    return np.asarray(-(cells * likely).sum(axis=(0, 2)))
