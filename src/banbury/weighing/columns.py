"""The columns whose evidence is weighed: columns with cells, text columns, and columns that their family scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.families.bags.lexicon import Lexicon
from banbury.families.cells import Cells
from banbury.families.family import UNUSED_GENERATOR, Choice, Feature, Features, HeldOutRows
from banbury.reading import Batch
from banbury.sums import Keys
from banbury.tally.table import HASH_FACTOR, mix
from banbury.tally.tally import Tally, sums_of_groups, sums_of_rows

MOST_CELLS = 1 << 27  # words × classes of a text column
MOST_NATS_BEHIND = 1e4  # nats: a column's score of a class is at most so much below that of its best class
FOLDS = 5  # for columns of families that have no leave-one-out formula
CHOICE = Choice()


@dataclass(frozen=True)
class WeighedColumns:
    """The columns of a tally by how their evidence is weighed.

    ``cells`` are columns whose values fall into cells, ``texts`` are columns of words, and ``scored`` are columns that
    their family scores.
    """

    cells: tuple[Cells, ...]
    texts: tuple[Lexicon, ...]
    scored: Features

    @classmethod
    def of(cls, tally: Tally, threads: int) -> WeighedColumns:
        """Returns the features of a tally, divided by how their evidence is weighed: columns with cells, text columns,
        and columns that their family scores. ``threads``: how many to use.
        """
        cells_by_name = cells_of(tally, threads)
        cells = list[Cells]()
        texts = list[Lexicon]()
        scored = list[Feature]()
        for feature in tally.schema.features:
            if feature.name in cells_by_name:
                cells.append(cells_by_name[feature.name])
            elif feature.counter.words:
                texts.append(_lexicon(feature, tally))
            else:
                scored.append(feature)
        return cls(tuple(cells), tuple(texts), Features.of(scored))

    def leave_each_out(self, tally: Tally, rows: Batch, labels: NDArray[np.int32], weights: Real, threads: int) -> Real:
        """Returns the score of each row by all other rows, for the columns without cells or words (``scored``): rows ×
        columns × classes. In each column, the best class of a row scores 0.

        Args:
            tally: The tally that counted the rows.
            rows: The rows.
            labels: The class number of each.
            weights: The weight of each.
            threads: How many threads to use.
        """
        column_scores = np.zeros((len(labels), len(self.scored), len(tally.classes)))
        # What is left out of each row: all of it (None), or the part that was counted if its weight is below 1.
        row_weights = None if (weights >= 1.0).all() else np.minimum(weights, 1.0)
        sums = partial(sums_of_rows, tally.schema, rows, row_weights, threads)  # counts the rows by themselves
        held_out = HeldOutRows(rows, labels.astype(np.int64), row_weights, len(tally.classes), threads, sums)
        for position, feature in enumerate(self.scored):
            column = self.scored.take([position])  # this feature alone; its scores are rows × classes
            if feature.family.can_leave_one_out(column, CHOICE, row_weights is not None):
                scores = feature.family.leave_one_out(column, tally.of(feature.name), CHOICE, held_out)
            else:
                scores = _out_of_fold(tally, feature, rows, held_out)
            best_scores = scores.max(axis=1, keepdims=True)  # of each row
            is_possible = np.isfinite(best_scores)  # in some class; otherwise the column has no evidence
            differences = scores - np.where(is_possible, best_scores, 0.0)  # from the best class, in nats
            column_scores[:, position] = np.where(is_possible, np.maximum(differences, -MOST_NATS_BEHIND), 0.0)
        return column_scores


def _out_of_fold(tally: Tally, feature: Feature, batch: Batch, held_out: HeldOutRows) -> Real:
    """Returns the scores of rows by the rows of other folds, for the column ``feature`` without a leave-one-out
    formula: rows × classes. Equal rows are in the same fold. ``tally`` has counted the rows of ``batch``, and
    ``held_out`` has their classes and weights.
    """
    features = Features.of([feature])
    sums = tally.of(feature.name)  # what was counted of the column
    n_classes = len(tally.classes)
    scores_by_all_rows = held_out.scores(feature.family.estimate(features, sums, CHOICE, UNUSED_GENERATOR))
    hashes = np.zeros(len(scores_by_all_rows), dtype=np.uint64)  # of each row's scores, which equal rows share
    for score_bits in np.ascontiguousarray(scores_by_all_rows).view(np.uint64).T:  # of one class after the other
        hashes = mix(hashes * HASH_FACTOR + score_bits)
    folds = (hashes % np.uint64(FOLDS)).astype(np.int64)
    groups = folds * n_classes + held_out.labels  # of each row: a number for its fold and class
    threads = held_out.threads
    # What was counted of the feature in each group, as if groups were classes.
    group_sums = sums_of_groups(tally.schema, batch, groups, FOLDS * n_classes, held_out.weights, threads, features)
    scores = np.zeros_like(scores_by_all_rows)
    for fold in np.unique(folds).tolist():
        fold_sums = group_sums.take(np.arange(fold * n_classes, (fold + 1) * n_classes))  # of this fold, by class
        sums_without_fold = (sums - fold_sums).without_empty([feature.family.permanent_keys()])
        rows = np.flatnonzero(folds == fold)
        scores[rows] = held_out.take(rows).scores(
            feature.family.estimate(features, sums_without_fold, CHOICE, UNUSED_GENERATOR)
        )
    return scores


def _lexicon(feature: Feature, tally: Tally) -> Lexicon:
    """Returns the words of the text column ``feature`` from a tally; raises an error if words × classes are more than
    ``MOST_CELLS``.
    """
    lexicon = Lexicon.of(feature, tally.of(feature.name))
    if len(lexicon) * len(tally.classes) > MOST_CELLS:
        raise errors.BadSetting(
            f"column {feature.name!r} has {len(lexicon):,} words and there are {len(tally.classes):,} classes, "
            "which are too many to weigh every word in each. "
            "Keep fewer words with bb.Text(min_count=..., max_words=...), or do not weigh.",
            column=feature.name,
        )
    return lexicon


def cells_of(tally: Tally, threads: int) -> dict[str, Cells]:
    """Returns the cells of each column of a tally that has cells, by the column's name. ``threads``: how many to use."""
    cells_by_name: dict[str, Cells] = {}
    # For each group of features of one family: the family, the features, and what was counted of them.
    for family, features, sums in tally.groups:
        if family.has_cells:
            family_cells = family.cells(features, sums, count_missing(tally, sums), threads)
            cells_by_name |= {cells.feature.name: cells for cells in family_cells if cells is not None}
    return cells_by_name


def count_missing(tally: Tally, sums: Any) -> Real:
    """Returns the number of rows of a tally without a value (columns × classes), for the group of columns of which
    ``sums`` was counted.
    """
    return np.asarray(np.maximum(tally.rows.value - sums.present.value, 0.0))


def count_cells(tally: Tally, columns: Sequence[Cells]) -> list[Real]:
    """Returns the number of rows in each cell of each column, from the sums of a tally: an array of cells × classes per
    column.
    """
    # By name: the feature, its keys, and the rows of each key and without a value, by class.
    sums_of_column: dict[str, tuple[Feature, Keys, Real, Real]] = {}
    for family, features, sums in tally.groups:
        if family.has_cells:
            counts = sums.cells.value  # rows of each key (keys of one column after the other × classes)
            missing = count_missing(tally, sums)  # columns × classes
            for position, keys_of_column in enumerate(map(slice, sums.offsets[:-1], sums.offsets[1:])):
                sums_of_column[features.names[position]] = (
                    features[position],
                    sums.keys[position],
                    counts[keys_of_column],
                    missing[position],
                )
    return [cells.rows_by_cell(*sums_of_column[cells.feature.name]) for cells in columns]
