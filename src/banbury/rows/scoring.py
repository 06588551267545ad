"""Scoring of held-out rows, each with the model of the rows that its split learns from."""

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
from banbury.rows.folds import FoldSet, Split
from banbury.rows.groups import Groups
from banbury.rows.labelled import LabelledRows, MemoryRows
from banbury.tally.tally import Label, Tally
from banbury.threads import run_in_threads

ROWS_PER_PIECE = 1 << 20  # rows whose columns are prepared at a time, for all models


class Scores(Protocol):
    """A model, as far as scoring rows under its schema needs it.

    ``want`` says which scores are wanted: "posterior", "log_posterior" or "log_joint", or "log_odds" for labels.
    """

    @property
    def _names(self) -> tuple[Label, ...]:
        """The classes or labels that the model knows."""

    def _score_batch(self, batch: Batch, want: str) -> tuple[Real, int]:
        """Returns the scores of a batch (rows × known classes), and how many rows are impossible in every class."""

    def _score_of_unknown_class(self, want: str) -> float:
        """Returns the score of a class that the model does not know."""

    def _lost_words(self) -> dict[str, int]:
        """Returns the text columns that have no words left, with the number of words that they had."""


class Estimates(Protocol):
    """A recipe, as far as scoring held-out rows needs it: it estimates a model from a tally."""

    def estimate(self, tally: Tally, classes: Sequence[Label]) -> Any:
        """Estimates the model of a tally. ``classes`` has all classes of the data."""

    def reads_whole_tables(self, counted: Tally) -> bool:
        """Whether leaving rows out needs whole tables of words rather than their changes."""


class Sink(Protocol):
    """Receives the scores of rows. A fold is the number of a split in its fold set."""

    def put(self, rows: Int | slice, folds: NDArray[np.int32], scores: Real) -> None:
        """Receives the scores (rows × classes) of the rows with these numbers, and the fold that tests each, −1 for
        none.
        """


@dataclass
class PendingWarnings:
    """Warnings to give once, however many folds there are."""

    n_impossible: int = 0  # rows that are impossible in every class
    # Columns none of whose words is left, and how many there were.
    wordless: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # sentences that a result has; these are no warnings

    def __add__(self, other: PendingWarnings) -> PendingWarnings:
        """Combines two sets of warnings."""
        wordless = self.wordless | other.wordless
        notes = dict.fromkeys((*self.notes, *other.notes))
        return PendingWarnings(self.n_impossible + other.n_impossible, wordless, tuple(notes))

    def add(self, other: PendingWarnings) -> None:
        """Adds the warnings of another part of the work to these, in place."""
        self.n_impossible += other.n_impossible
        self.wordless |= other.wordless
        self.notes += other.notes

    def warn(self, how: str) -> None:
        """Issues the warnings. ``how`` is the estimator's setting, named in the message."""
        for column, n_words in self.wordless.items():
            warn_of_no_words(column, n_words)
        if self.n_impossible:
            errors.warn(errors.all_impossible(self.n_impossible, f"how={how!r}"))


@singledispatch
def leave_out(
    rows: Any,
    fold_set: FoldSet,
    recipes: Sequence[Estimates],
    want: str,
    sinks: Sequence[Sink],
    pending: PendingWarnings,
) -> None:
    """Scores every row of a fold set (of the labelled ``rows``) with a model of the rows that its split learns from, and
    puts the scores of each recipe into its sink (``sinks`` has one per recipe). Rows are counted once for all recipes,
    and scored once for each. ``want`` is the kind of score: "posterior", "log_posterior", "log_joint" or "log_odds".
    Adds to ``pending`` the warnings to give later.
    """
    with Steps() as steps:
        steps.begin("counting", 1.0 / (1.0 + len(recipes)), reads=True)
        groups = rows.count_fold_set(fold_set)  # the counts of each group of rows
        steps.begin("scoring", 1.0, reads=True)
        models_by_recipe = [FoldModels(rows, fold_set, groups, recipe, pending) for recipe in recipes]
        # Whether to score split by split rather than all rows in one pass.
        scores_by_split = groups.counted._has_words or rows.has_sets or not _learns_every_class(fold_set, groups)
        if isinstance(rows, MemoryRows) and scores_by_split:
            _score_by_split(rows, fold_set, groups, models_by_recipe, want, sinks, pending)
            return
        n_workers = 1 if groups.counted.schema._runs_python else min(rows.threads, len(fold_set.splits))
        for fold_models, sink in zip(models_by_recipe, sinks, strict=True):
            models = run_in_threads(fold_models.__getitem__, len(fold_set.splits), n_workers)
            pending.n_impossible += _score_in_one_pass(rows, fold_set, models, want, sink)


def _learns_every_class(fold_set: FoldSet, groups: Groups) -> bool:
    """Whether every split of the fold set learns whole groups (``is_learned`` has a boolean per group), in which all
    classes have rows. ``groups`` has the counts of each group.
    """
    class_numbers, group_numbers = groups.numbers.T  # of each counted pair of class and group
    learned_by_split = [split.is_learned for split in fold_set.splits if split.is_learned is not None]
    # The number of classes that have rows in the groups that each split learns from.
    n_classes_by_split = [len(np.unique(class_numbers[is_learned[group_numbers]])) for is_learned in learned_by_split]
    return len(learned_by_split) == len(fold_set.splits) and set(n_classes_by_split) <= {len(groups.classes)}


def _score_in_one_pass(rows: LabelledRows, fold_set: FoldSet, models: Sequence[Model], want: str, sink: Sink) -> int:
    """Scores each batch of the rows once, every row with the model of the split that tests it, and puts the scores (rows
    × classes) into the sink. ``models`` has a model for each split of the fold set; ``want`` is the kind of score, such
    as "posterior". Returns how many rows are impossible in every class.
    """
    n_impossible = 0
    fold_of_row = fold_set.tested_by  # the number of the split that tests each row, −1 for none
    for batch, start in zip(rows.each_batch("scoring"), rows.starts.tolist(), strict=False):
        batch_rows = slice(start, start + batch.n_rows)
        scores = np.empty((batch.n_rows, len(rows.classes)))
        n_impossible += score_batch(rows, models, batch, fold_of_row[batch_rows], want, scores)
        sink.put(batch_rows, fold_of_row[batch_rows], scores)
    return n_impossible


def _score_by_split(
    rows: MemoryRows,
    fold_set: FoldSet,
    groups: Groups,
    models_by_recipe: Sequence[FoldModels],
    want: str,
    sinks: Sequence[Sink],
    pending: PendingWarnings,
) -> None:
    """Scores the test rows of one split after the other with the models of each recipe, and puts the scores into the
    sinks. So only few models of text, which are large, are in memory at a time. The tally of a split is built once for
    all recipes. ``groups`` has the counts of each group of the fold set, ``models_by_recipe`` estimates the models of
    each recipe, and ``sinks`` has a sink for each; ``want`` is the kind of score, such as "posterior". Adds to
    ``pending`` the warnings to give later.
    """
    has_several_recipes = len(models_by_recipe) > 1
    # With the words of texts replaced by their ids, so that several recipes need not read the texts again.
    encoded_rows = rows.with_word_ids(groups.word_tables) if has_several_recipes else rows
    n_workers = 1 if groups.counted.schema._runs_python else min(rows.threads, len(fold_set.splits))
    reads_whole_tables = any(fold_models.recipe.reads_whole_tables(groups.counted) for fold_models in models_by_recipe)

    def score_split(fold: int) -> int:
        """Scores the test rows of split number ``fold`` with all recipes. Returns how many are impossible in every
        class.
        """
        split = fold_set.splits[fold]
        n_impossible = 0
        if not len(split.test):
            return 0
        tally = tally_of_split(
            rows, split, groups, fold, keep=has_several_recipes, reads_whole_tables=reads_whole_tables
        )
        # Rows whose words are ids in the tables of ``groups``; rows that are counted anew have other tables.
        source_rows = rows if split.is_learned is None else encoded_rows
        test_batches = list(source_rows.take(split.test))
        for fold_models, sink in zip(models_by_recipe, sinks, strict=True):
            model = replace(fold_models.estimate(tally), threads=rows.threads // n_workers or 1)
            scores, n_batch_impossible = score_batches(rows.names, test_batches, len(split.test), model, want)
            n_impossible += n_batch_impossible
            sink.put(split.test, np.full(len(split.test), fold, dtype=np.int32), scores)
        return n_impossible

    pending.n_impossible += sum(run_in_threads(score_split, len(fold_set.splits), n_workers))


@dataclass(frozen=True, eq=False)
class FoldModels:
    """The models of a recipe for the splits of a fold set, each estimated when it is needed."""

    rows: LabelledRows
    fold_set: FoldSet
    groups: Groups
    recipe: Estimates
    pending: PendingWarnings

    def __getitem__(self, fold: int) -> Any:
        """Estimates the model of split number ``fold``."""
        return self.estimate(tally_of_split(self.rows, self.fold_set.splits[fold], self.groups, fold))

    def estimate(self, tally: Tally) -> Any:
        """Estimates the model of a tally. Text columns that have no words left are added to the pending warnings."""
        model = self.recipe.estimate(tally, self.rows.classes)
        self.pending.wordless.update(model._lost_words())
        return model


def score_batch(
    rows: LabelledRows,
    models: Sequence[Model],
    batch: Batch,
    model_numbers: NDArray[np.int32],
    want: str,
    scores_out: Real,
) -> int:
    """Scores each row of a batch with the model whose number ``model_numbers`` has, and writes the scores (rows ×
    classes) into ``scores_out``. Rows with number −1 are not scored. ``want`` is the kind of score, such as
    "posterior", and ``rows`` has all classes. Returns how many rows are impossible in every class.
    """
    n_impossible_so_far = 0
    # One call of the kernel scores all rows if all models have all classes and none has words.
    if all(model.classes == rows.classes and not model.tally._has_words for model in models):
        for piece_start in range(0, batch.n_rows, ROWS_PER_PIECE):
            piece = remember_answers(batch.slice(piece_start, piece_start + ROWS_PER_PIECE))
            piece_rows = slice(piece_start, piece_start + ROWS_PER_PIECE)
            n_impossible_so_far += score_each(
                models, piece, model_numbers[piece_rows], want, rows.threads, scores_out[piece_rows]
            )
        return n_impossible_so_far
    for number, model in enumerate(models):
        model_rows = np.flatnonzero(model_numbers == number)
        if len(model_rows):
            scores, n_impossible = model._score_batch(batch.take(model_rows), want)
            scores_out[model_rows] = expand_scores(rows.names, model, scores, want)
            n_impossible_so_far += n_impossible
    return n_impossible_so_far


def restrict_prior(prior: ClassPrior, classes: Sequence[Label], known_classes: Sequence[Label]) -> ClassPrior:
    """Returns the class prior for a model that knows only some of the ``classes``: given probabilities (by name, or one
    per class) are divided by their sum over the known ones. Any other prior, and one that estimating will refuse, is
    returned as it is.
    """
    if len(known_classes) == len(classes) or prior is None or isinstance(prior, (str, int, float)):
        return prior
    try:
        probabilities = dict(prior) if isinstance(prior, Mapping) else dict(zip(classes, prior, strict=True))
        known_probabilities = {name: float(probabilities[name]) for name in known_classes}
    except (KeyError, TypeError, ValueError):
        return prior  # estimating says what is wrong with it
    known_sum = sum(known_probabilities.values())
    if not abs(sum(float(probability) for probability in probabilities.values()) - 1.0) <= 1e-9:
        return prior
    known_names = errors.listed(map(repr, known_classes))
    requirement = f"one that leaves some class possible where only {known_names} are learned"
    errors.require(known_sum > 0, "class_prior", prior, requirement)
    return {name: probability / known_sum for name, probability in known_probabilities.items()}


def tally_of_split(
    rows: LabelledRows, split: Split, groups: Groups, fold: int, keep: bool = False, reads_whole_tables: bool = False
) -> Tally:
    """Returns the tally of the rows that a split learns from, where ``fold`` is the split's number and ``groups`` are
    the counted groups of its fold set. ``keep`` caches what is read, for several models; ``reads_whole_tables`` reads
    whole tables of words, rather than only what the test rows need.

    ``split.is_learned`` has a boolean per group; if it is None, ``split.rows`` has the numbers of the training rows,
    which are counted now.
    """
    if split.is_learned is not None and reads_whole_tables:
        return groups.only(split.is_learned)
    if split.is_learned is not None:
        return groups.estimation_tally(split.is_learned, fold, caches=keep, needs_all_words=rows.any_idle)
    assert split.rows is not None
    return rows.count_only(split.rows, groups.counted.schema)


def score_rows(rows: MemoryRows, row_numbers: Int, model: Scores, want: str) -> tuple[Real, int]:
    """Returns the scores of the rows with these ascending numbers (rows × ``rows.names``, the classes or labels), and
    how many are impossible in every class. ``want`` is the kind of score, such as "posterior" or "log_odds".
    """
    return score_batches(rows.names, rows.take(row_numbers), len(row_numbers), model, want)


def score_batches(
    names: Sequence[Label], batches: Iterable[Batch], n_rows: int, model: Scores, want: str
) -> tuple[Real, int]:
    """Scores batches that have ``n_rows`` rows together. Returns the scores (rows × ``names``), and how many rows are
    impossible in every class. If the model is calibrated, so are the scores. ``names`` are all classes or labels, and
    ``want`` is the kind of score, such as "posterior".
    """
    all_scores = np.empty((n_rows, len(names)))
    start = 0  # the first row of the next batch
    n_impossible_so_far = 0
    for batch in batches:
        scores, n_impossible = model._score_batch(batch, want)
        all_scores[start : start + batch.n_rows] = expand_scores(names, model, scores, want)
        start += batch.n_rows
        n_impossible_so_far += n_impossible
    return all_scores, n_impossible_so_far


def expand_scores(names: Sequence[Label], model: Scores, scores: Real, want: str) -> Real:
    """Returns scores (rows × the model's classes, ``model._names``) as rows × ``names``, which are all classes or
    labels. Those that the model does not know get its score for unknown classes. ``want`` is the kind of score, such as
    "posterior".
    """
    if model._names == names:
        return scores
    all_scores = np.full((len(scores), len(names)), model._score_of_unknown_class(want))
    all_scores[:, [names.index(name) for name in model._names]] = scores
    return all_scores


def normalise(log_joint: Real) -> Real:
    """Returns P(class | row) from log joint probabilities (rows × classes). A row that is impossible in every class
    gets equal probabilities.
    """
    largest = over_classes(np.maximum, log_joint)  # of each row
    is_impossible = np.isneginf(largest)
    if is_impossible.any():
        log_joint = np.where(is_impossible[:, None], 0.0, log_joint)
        largest = np.where(is_impossible, 0.0, largest)
    posteriors: Real = np.exp(log_joint - largest[:, None])
    posteriors /= over_classes(np.add, posteriors)[:, None]
    return posteriors
