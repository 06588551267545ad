"""Choosing families: each numeric column gets the family that best predicts the classes of held-out rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families import FAMILIES
from banbury.families.family import Family, Feature, Features, NumberColumn
from banbury.model.naive_bayes import Model
from banbury.quality.recipes import Plain
from banbury.reading import Batch
from banbury.reading.batches import remember_answers
from banbury.rows.folds import FoldSet
from banbury.rows.groups import Groups
from banbury.rows.labelled import MemoryRows
from banbury.rows.scoring import tally_of_split
from banbury.tally.schema import Schema, infer

LEAST_LOG_PROBABILITY = float(np.log(np.finfo(float).eps))  # scikit-learn's least log probability
ENOUGH_TESTED = 50_000  # when so many rows have been tested, the remaining folds are skipped


@dataclass(frozen=True, eq=False, repr=False)
class FamilyChoice:
    """The chosen family of each numeric column, and the held-out log loss of every candidate.

    The log loss is that of predicting the class from the class prior and this column alone, over rows that have a
    value.
    """

    schema: Schema  # with the chosen families
    scores: dict[str, dict[str, float]]  # the log loss in nats, by column and by family

    @property
    def names(self) -> dict[str, str]:
        """The name of the chosen family of each column."""
        return {name: str(self.schema[name].family) for name in self.scores}

    def __str__(self) -> str:
        """Returns a line of text for each column: the chosen family, by its name in ``names``, and the losses of all
        candidates, which ``scores`` has by column and by family.
        """
        if not self.scores:
            return ""
        width = max(map(len, self.scores))
        lines = ["families, by the held-out log loss of the column alone:"]
        for name, losses in self.scores.items():
            chosen_family = self.names[name]
            other_losses = ", ".join(
                f"{family} {loss:.3f}" for family, loss in losses.items() if family != chosen_family
            )
            line = f"  {name:{width}}  {chosen_family} {losses[chosen_family]:.3f}"
            lines.append(f"{line} ({other_losses})" if other_losses else line)
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A family, the rows with the columns that are counted as this family, and their counts fold by fold."""

    family: Family
    rows: MemoryRows
    groups: Groups


def choose_families(rows: MemoryRows, fold_set: FoldSet, recipe: Plain) -> FamilyChoice:
    """Returns the family chosen for each numeric column. The columns are counted once for each candidate family, and
    models of the other folds score the rows of each fold.

    Args:
        rows: The rows, under a schema that has the current families.
        fold_set: Which rows are tested by a model of which other rows.
        recipe: How a model is estimated from a tally.
    """
    families = [family() for family in FAMILIES.values()]  # one of each, with the default settings
    names = [  # of the numeric columns
        feature.name
        for feature in rows.schema.features
        if feature.family in families and _is_numeric(feature, rows.batches[0])
    ]
    if not names:
        return FamilyChoice(rows.schema, {})
    numbers = np.concatenate([_stack_columns(batch, names) for batch in rows.batches])  # rows × columns
    # Of each column: its smallest and largest number, and how many there are.
    summaries = {name: _describe_numbers(column) for name, column in zip(names, numbers.T, strict=True)}
    names_by_family: dict[Family, list[str]] = {}  # the columns that each candidate family may suit
    for family in families:
        for name, summary in summaries.items():
            for candidate_family in family.candidates(summary):
                names_by_family.setdefault(candidate_family, []).append(name)
    candidates = [
        candidate
        for family, columns in names_by_family.items()
        for candidate in _count_candidates(rows, columns, family, fold_set)
    ]
    losses = _mean_losses(rows, names, numbers, candidates, fold_set, recipe)  # of each candidate's columns
    scores: dict[str, dict[str, float]] = {name: {} for name in names}  # the loss, by column and by family
    # Of each column: the loss of a family, whether it is another than the current one, and the feature of that family.
    options: dict[str, list[tuple[float, bool, Feature]]] = {name: [] for name in names}
    for candidate, column_losses in zip(candidates, losses, strict=True):
        for feature, loss in zip(candidate.rows.schema.features, np.round(column_losses, 12).tolist(), strict=True):
            scores[feature.name][str(candidate.family)] = loss
            is_new = candidate.family != rows.schema[feature.name].family
            options[feature.name].append((loss, is_new, feature))

    def choose_feature(feature: Feature) -> Feature:
        """Returns the feature as the family with the lowest held-out loss counts it; unchanged if no family was tried.
        The current family wins a tie; otherwise the first option does. ``options`` has for each column its losses,
        whether each family is another than the current one, and the features.
        """
        if not options.get(feature.name):
            return feature
        best = min(options[feature.name], key=lambda option: option[:2])[2]
        return best._replace(why="chosen by held-out log loss")

    features = Features.of(map(choose_feature, rows.schema.features))
    return FamilyChoice(replace(rows.schema, features=features), scores)


def _is_numeric(feature: Feature, batch: Batch) -> bool:
    """Returns whether a feature is one column of numbers that nobody declared to be categories. ``batch`` has the first
    rows.
    """
    holds_numbers = not feature.columns and batch.kind(feature.name) in ("integer", "float")
    return holds_numbers and not batch.categorical(feature.name)


def _stack_columns(batch: Batch, names: list[str]) -> Real:
    """Returns the numeric columns ``names`` of a batch as one array (rows × columns)."""
    columns = [np.asarray(column, dtype=np.float64).reshape(batch.n_rows, -1) for column in batch.numbers(names)]
    return np.concatenate(columns, axis=1)


def _describe_numbers(numbers: Real) -> NumberColumn:
    """Returns a summary of a column of numbers, in which NaN is missing: its smallest and largest, whether all are
    integers, how many distinct ones there are, and how many are not missing.
    """
    distinct_numbers, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    are_integers = bool(np.all((distinct_numbers == np.rint(distinct_numbers)) & (np.abs(distinct_numbers) < 2.0**52)))
    least, greatest = (float(distinct_numbers[0]), float(distinct_numbers[-1])) if len(distinct_numbers) else (0.0, 0.0)
    return NumberColumn(least, greatest, are_integers, len(distinct_numbers), int(counts.sum()))


def _count_candidates(rows: MemoryRows, names: list[str], family: Family, fold_set: FoldSet) -> list[_Candidate]:
    """Counts the columns ``names`` as this family, fold by fold. If the family cannot count all of them, the two halves
    are tried separately, so that only columns that it cannot count are left out. ``fold_set`` has the fold of each
    row.
    """
    try:
        family_rows = _rows_under_family(rows, names, family)
        return [_Candidate(family, family_rows, family_rows.count(fold_set.groups, fold_set.n_groups))]
    except errors.BadValue:
        if all(rows.schema[name].family == family for name in names):  # these columns are counted as this family anyway
            raise
    name_halves = [names[: len(names) // 2], names[len(names) // 2 :]] if len(names) > 1 else []
    return [candidate for half in name_halves for candidate in _count_candidates(rows, half, family, fold_set)]


def _rows_under_family(rows: MemoryRows, names: list[str], family: Family) -> MemoryRows:
    """Returns the rows under a schema with only the columns ``names``, all of this family."""
    # By name, why a column is not a feature.
    dropped = {name: "left out" for name in rows.batches[0].names if name not in names}
    schema = infer(rows.batches[0], dropped, target=None, features=dict.fromkeys(names, family), missing="skip")
    current_schema = rows.schema
    # Columns that have this family already keep everything else that the schema knows about them.
    features = Features.of(
        current_schema[feature.name] if current_schema[feature.name].family == feature.family else feature
        for feature in schema.features
    )
    schema = replace(schema, features=features, target=current_schema.target, named=current_schema.named)
    return replace(rows, schema=schema)


# How well each predicts the classes ------------------------------------------------------------------------------------


def _mean_losses(
    rows: MemoryRows,
    names: list[str],
    numbers: Real,
    candidates: list[_Candidate],
    fold_set: FoldSet,
    recipe: Plain,
) -> list[Real]:
    """Returns an array for each candidate: the mean of −log P(true class | value) in each of its columns, over tested
    rows that have a value. ``numbers`` (rows × columns) are the values of the columns ``names``. ``fold_set`` says
    which rows are tested by a model of which other rows, and ``recipe`` how models are estimated.
    """
    column_of = {name: column_index for column_index, name in enumerate(names)}
    # Of each candidate: the indices of its columns in ``names``.
    column_indices = [
        np.array([column_of[name] for name in candidate.rows.schema.features.names]) for candidate in candidates
    ]
    loss_sums = [np.zeros(len(indices)) for indices in column_indices]  # of each candidate's columns
    column_weights = np.zeros(len(names))  # the tested rows that have a value, by weight
    n_tested = 0  # rows
    for fold, split in enumerate(fold_set.splits):
        if n_tested >= ENOUGH_TESTED:
            break
        n_tested += len(split.test)
        # Of each candidate, from the rows that the split learns from; groups are its counts, fold by fold.
        models = [
            recipe.estimate(tally_of_split(candidate.rows, split, candidate.groups, fold), rows.classes)
            for candidate in candidates
        ]
        # Values in batches, and their weights: values × columns × classes.
        for distinct_values, value_weights in _distinct_values(rows, names, numbers, split.test):
            column_weights += value_weights.sum(axis=(0, 2))
            for candidate_number, (model, indices) in enumerate(zip(models, column_indices, strict=True)):
                # Of the model's classes among all.
                class_numbers = [rows.classes.index(name) for name in model.classes]
                losses = _sum_losses(model, distinct_values, value_weights[:, indices], class_numbers, rows.threads)
                loss_sums[candidate_number] += losses
    divisors = np.where(column_weights > 0, column_weights, 1.0)
    return [sums / divisors[indices] for indices, sums in zip(column_indices, loss_sums, strict=True)]


def _distinct_values(rows: MemoryRows, names: list[str], numbers: Real, test_rows: Int) -> Iterator[tuple[Batch, Real]]:
    """Yields the rows numbered ``test_rows`` that have a label and a weight, batch by batch, as the distinct values of
    each of the columns ``names`` and the weight of each value in each class (values × columns × classes).

    The values are a table in which every column has its own distinct values from top to bottom, independently of the
    others. Shorter columns are filled up with values of weight 0. ``numbers`` (rows × columns) are the values of all
    rows.
    """
    test_rows = test_rows[rows.labels[test_rows] >= 0]
    if rows.weights is not None:
        test_rows = test_rows[rows.weights[test_rows] > 0]
    n_classes = len(rows.classes)
    start = 0  # the position of the next batch in ``test_rows``
    for batch in rows.take(test_rows):
        batch_rows = test_rows[start : start + batch.n_rows]
        start += batch.n_rows
        columns = np.ascontiguousarray(numbers[batch_rows].T)  # this and what follows: columns × rows
        order = np.argsort(columns, axis=1)
        sorted_values = np.take_along_axis(columns, order, axis=1)  # missing values come last
        is_present = ~np.isnan(sorted_values)
        is_new_value = np.diff(sorted_values, axis=1, prepend=sorted_values[:, :1]) > 0
        value_numbers = np.cumsum(is_new_value, axis=1)  # of each sorted row: the number of its value in the column
        n_values = int(value_numbers.max(initial=0)) + 1
        column_numbers = np.broadcast_to(np.arange(len(names))[:, None], value_numbers.shape)
        row_weights = is_present * (1.0 if rows.weights is None else rows.weights[batch_rows][order])
        # The cell of each sorted row in a table of values × columns × classes.
        cell_numbers = (value_numbers * len(names) + column_numbers) * n_classes + rows.labels[batch_rows][order]
        n_cells = n_values * len(names) * n_classes
        cell_weights = np.bincount(cell_numbers.reshape(-1), row_weights.reshape(-1), n_cells).astype(np.float64)
        row_of_value = np.zeros((len(names), n_values), dtype=np.int64)  # a row of the batch that has the value
        row_of_value[column_numbers[is_present], value_numbers[is_present]] = order[is_present]
        value_columns = {
            name: batch.column(name).take(value_rows) for name, value_rows in zip(names, row_of_value, strict=True)
        }
        distinct_values = Batch(tuple(names), n_values, value_columns, batch.named, batch.source)
        yield remember_answers(distinct_values), cell_weights.reshape(n_values, len(names), n_classes)


def _sum_losses(
    model: Model, distinct_values: Batch, value_weights: Real, class_numbers: list[int], threads: int
) -> Real:
    """Returns the weighted sum of −log P(true class | value) for each of the model's columns, from a table of distinct
    values and the weight of each value in each class (values × columns × classes). ``class_numbers`` are the positions
    of the model's classes among all classes. ``threads`` compute the scores.
    """
    (group,) = model.parameters  # the columns of one family are one group
    zero_prior = np.zeros(len(model.classes))
    kernel_parts = group.parts(distinct_values)  # the values and the parameters, as the kernel takes them
    # Scores are (values, columns, the model's classes): every column is scored separately.
    scores = _core.score(distinct_values.n_rows, zero_prior, kernel_parts, "parts", threads)[0] + model.log_prior
    best_scores = scores.max(axis=2, keepdims=True)
    is_impossible = np.isneginf(best_scores)  # in every class: the prior counts alone
    scores = np.where(is_impossible, model.log_prior, scores - np.where(is_impossible, 0.0, best_scores))
    with np.errstate(divide="ignore"):
        scores -= np.log(np.exp(scores).sum(axis=2, keepdims=True))
    log_posteriors = np.full(value_weights.shape, LEAST_LOG_PROBABILITY)
    log_posteriors[:, :, class_numbers] = np.maximum(scores, LEAST_LOG_PROBABILITY)
    return np.asarray(-(value_weights * log_posteriors).sum(axis=(0, 2)))
