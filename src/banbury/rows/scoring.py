"""Scoring of rows that are left out: each by the model of what its split learns from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real, over_classes
from banbury.families.bags.text import warn_of_no_words
from banbury.model.naive_bayes import ClassPrior, Model, score_each
from banbury.progress import Steps
from banbury.reading import Batch
from banbury.reading.batches import remember_answers
from banbury.rows.folds import Round, Split
from banbury.rows.groups import Groups
from banbury.rows.labelled import LabelledRows, MemoryRows
from banbury.tally.tally import Label, Tally
from banbury.threads import each_done

TOGETHER = 1 << 20  # rows whose columns are made ready at a time, for all models


class Scores(Protocol):
    """A model seen as what scores rows under its schema: the classes or labels it knows, and its score for others."""

    @property
    def names(self) -> tuple[Label, ...]: ...
    def score(self, batch: Batch, want: str) -> tuple[Real, int]: ...
    def score_unmet(self, want: str) -> float: ...
    def lost_words(self) -> dict[str, int]: ...


class Estimates(Protocol):
    """Estimates a model from a tally whose classes are among those given."""

    def estimate(self, tally: Tally, classes: Sequence[Label]) -> Any: ...
    def reads_whole_tables(self, counted: Tally) -> bool: ...


class Sink(Protocol):
    """Receives the scores of rows, by row number, and the split that tests each (−1 for none)."""

    def put(self, rows: Int | slice, splits: NDArray[np.int32], scores: Real) -> None: ...


@dataclass
class PendingWarnings:
    """Warnings to give once, however many folds there are."""

    impossible: int = 0  # rows that are impossible in every class
    # Columns none of whose words is left, and how many there were.
    wordless: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # which are no warnings: a result has them

    def __add__(self, other: PendingWarnings) -> PendingWarnings:
        wordless = self.wordless | other.wordless
        notes = dict.fromkeys((*self.notes, *other.notes))
        return PendingWarnings(self.impossible + other.impossible, wordless, tuple(notes))

    def add(self, other: PendingWarnings) -> None:
        self.impossible += other.impossible
        self.wordless |= other.wordless
        self.notes += other.notes

    def warn(self, how: str) -> None:
        for column, n_words in self.wordless.items():
            warn_of_no_words(column, n_words)
        if self.impossible:
            errors.warn(errors.all_impossible(self.impossible, f"how={how!r}"))


@singledispatch
def leave_out(
    rows: Any,
    splits: Round,
    recipes: Sequence[Estimates],
    want: str,
    sinks: Sequence[Sink],
    pending: PendingWarnings,
) -> None:
    """Scores every row with a model of the rows that its split learns from. It counts once for all recipes and scores
    once for each.
    """
    with Steps() as steps:
        steps.begin("counting", 1.0 / (1.0 + len(recipes)), reads=True)
        groups = rows.count_round(splits)
        steps.begin("scoring", 1.0, reads=True)
        _score_round(rows, splits, groups, recipes, want, sinks, pending)


def _score_round(
    rows: Any,
    splits: Round,
    groups: Groups,
    recipes: Sequence[Estimates],
    want: str,
    sinks: Sequence[Sink],
    pending: PendingWarnings,
) -> None:
    by_recipe = [FoldModels(rows, splits, groups, recipe, pending) for recipe in recipes]
    one_by_one = groups.counted.has_words or rows.has_sets or not _learns_every_class(splits, groups)
    if isinstance(rows, MemoryRows) and one_by_one:
        _score_by_split(rows, splits, groups, by_recipe, want, sinks, pending)
        return
    workers = 1 if groups.counted.schema.runs_python else min(rows.threads, len(splits.splits))
    for fold_models, sink in zip(by_recipe, sinks, strict=True):
        models = each_done(fold_models.__getitem__, len(splits.splits), workers)
        pending.impossible += _score_in_one_pass(rows, splits, models, want, sink)


def _learns_every_class(splits: Round, groups: Groups) -> bool:
    """Whether every split learns from rows of all classes."""
    classes, group = groups.numbers.T
    chosen = [split.learned for split in splits.splits if split.learned is not None]
    learned_classes = [len(np.unique(classes[learned[group]])) for learned in chosen]
    return len(chosen) == len(splits.splits) and set(learned_classes) <= {len(groups.classes)}


def _score_in_one_pass(rows: LabelledRows, splits: Round, models: Sequence[Model], want: str, sink: Sink) -> int:
    """Each batch by the models of all splits; returns how many rows are impossible in every class."""
    impossible = 0
    tested_by = splits.tested_by
    for batch, start in zip(rows.each("scoring"), rows.starts.tolist(), strict=False):
        at = slice(start, start + batch.n_rows)
        out = np.empty((batch.n_rows, len(rows.classes)))
        impossible += score_batch(rows, models, batch, tested_by[at], want, out)
        sink.put(at, tested_by[at], out)
    return impossible


def _score_by_split(
    rows: MemoryRows,
    splits: Round,
    groups: Groups,
    by_recipe: Sequence[FoldModels],
    want: str,
    sinks: Sequence[Sink],
    pending: PendingWarnings,
) -> None:
    """One split at a time, since a model of text is large: its tally is made once for all recipes."""
    several = len(by_recipe) > 1
    encoded = rows.with_word_ids(groups.word_tables) if several else rows
    workers = 1 if groups.counted.schema.runs_python else min(rows.threads, len(splits.splits))
    reads_whole_tables = any(fold_models.recipe.reads_whole_tables(groups.counted) for fold_models in by_recipe)

    def score_split(number: int) -> int:
        split = splits.splits[number]
        impossible = 0
        if not len(split.test):
            return 0
        tally = tally_of_split(rows, split, groups, number, keep=several, reads_whole_tables=reads_whole_tables)
        source = rows if split.learned is None else encoded  # rows that are counted anew have other words
        tested = list(source.take(split.test))
        for fold_models, sink in zip(by_recipe, sinks, strict=True):
            model = replace(fold_models.estimate(tally), threads=rows.threads // workers or 1)
            scores, lost = score_batches(rows.names, tested, len(split.test), model, want)
            impossible += lost
            sink.put(split.test, np.full(len(split.test), number, dtype=np.int32), scores)
        return impossible

    pending.impossible += sum(each_done(score_split, len(splits.splits), workers))


@dataclass(frozen=True, eq=False)
class FoldModels:
    """The models of a recipe for the splits of a round, each estimated when it is needed."""

    rows: LabelledRows
    splits: Round
    groups: Groups
    recipe: Estimates
    pending: PendingWarnings

    def __getitem__(self, number: int) -> Any:
        return self.estimate(tally_of_split(self.rows, self.splits.splits[number], self.groups, number))

    def estimate(self, tally: Tally) -> Any:
        model = self.recipe.estimate(tally, self.rows.classes)
        self.pending.wordless.update(model.lost_words())
        return model


def score_batch(
    rows: LabelledRows, models: Sequence[Model], batch: Batch, which: NDArray[np.int32], want: str, out: Real
) -> int:
    """Scores the rows of a batch, each with the model of its number, and returns how many are impossible in every
    class.
    """
    impossible = 0
    if all(model.classes == rows.classes and not model.tally.has_words for model in models):
        for first in range(0, batch.n_rows, TOGETHER):
            part = remember_answers(batch.slice(first, first + TOGETHER))
            at = slice(first, first + TOGETHER)
            impossible += score_each(models, part, which[at], want, rows.threads, out[at])
        return impossible
    for number, model in enumerate(models):
        tested = np.flatnonzero(which == number)
        if len(tested):
            scores, lost = model.score(batch.take(tested), want)
            out[tested] = among_names(rows.names, model, scores, want)
            impossible += lost
    return impossible


def fitting_prior(prior: ClassPrior, classes: Sequence[Label], known_classes: Sequence[Label]) -> ClassPrior:
    """Returns the class prior; given probabilities are shared among the classes that are known."""
    if len(known_classes) == len(classes) or prior is None or isinstance(prior, (str, int, float)):
        return prior
    try:
        shares = dict(prior) if isinstance(prior, Mapping) else dict(zip(classes, prior, strict=True))
        kept = {name: float(shares[name]) for name in known_classes}
    except (KeyError, TypeError, ValueError):
        return prior  # estimating says what is wrong with it
    total = sum(kept.values())
    if not abs(sum(float(p) for p in shares.values()) - 1.0) <= 1e-9:
        return prior
    allowed = f"one that leaves some class possible where only {errors.listed(map(repr, known_classes))} are learned"
    errors.require(total > 0, "class_prior", prior, allowed)
    return {name: p / total for name, p in kept.items()}


def tally_of_split(
    rows: LabelledRows, split: Split, groups: Groups, number: int, keep: bool = False, reads_whole_tables: bool = False
) -> Tally:
    """Returns the tally that a split learns from. ``keep`` caches it for several models; ``whole`` reads whole tables
    of words.
    """
    if split.learned is not None and reads_whole_tables:
        return groups.only(split.learned)
    if split.learned is not None:
        return groups.estimation_tally(split.learned, number, keep, every=rows.any_idle)
    assert split.rows is not None
    return rows.count_only(split.rows, groups.counted.schema)


def score_rows(rows: MemoryRows, test: Int, model: Scores, want: str) -> tuple[Real, int]:
    """Returns the scores of some rows in the order of all classes or labels, and how many are impossible in every
    class.
    """
    return score_batches(rows.names, rows.take(test), len(test), model, want)


def score_batches(
    names: Sequence[Label], batches: Iterable[Batch], n_rows: int, model: Scores, want: str
) -> tuple[Real, int]:
    """Returns the same for batches. If the model is calibrated, so are the scores."""
    out = np.empty((n_rows, len(names)))
    start = 0
    impossible = 0
    for batch in batches:
        scores, lost = model.score(batch, want)
        out[start : start + batch.n_rows] = among_names(names, model, scores, want)
        start += batch.n_rows
        impossible += lost
    return out, impossible


def among_names(names: Sequence[Label], model: Scores, scores: Real, want: str) -> Real:
    """Returns scores in the order of all classes or labels, including the score for those that a model does not know."""
    if model.names == names:
        return scores
    out = np.full((len(scores), len(names)), model.score_unmet(want))
    out[:, [names.index(name) for name in model.names]] = scores
    return out


def normalise(log_joint: Real) -> Real:
    """Returns P(class | row) from log joint probabilities; equal probabilities if every class is impossible."""
    top = over_classes(np.maximum, log_joint)
    impossible = np.isneginf(top)
    if impossible.any():
        log_joint = np.where(impossible[:, None], 0.0, log_joint)
        top = np.where(impossible, 0.0, top)
    shares: Real = np.exp(log_joint - top[:, None])
    shares /= over_classes(np.add, shares)[:, None]
    return shares
