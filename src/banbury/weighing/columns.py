"""The columns of a tally as their evidence is weighed: by cells, by words, or by the scores of their family."""

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
from banbury.families.family import UNUSED, Choice, Feature, HeldOutRows
from banbury.reading import Batch
from banbury.sums import Keys
from banbury.tally.table import MIX, mix
from banbury.tally.tally import Tally, sums_of_groups, sums_of_rows

MOST_CELLS = 1 << 27  # words × classes that are weighed
FARTHEST = 1e4  # nats that one column may be from the best class
FOLDS = 5  # of rows whose columns cannot be left out one by one
CHOICE = Choice()


@dataclass(frozen=True)
class WeighedColumns:
    """Columns that have cells, text columns, and others, which are scored by their families."""

    cells: tuple[Cells, ...]
    texts: tuple[Lexicon, ...]
    scored: tuple[Feature, ...]

    @classmethod
    def of(cls, tally: Tally, threads: int) -> WeighedColumns:
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
        return cls(tuple(cells), tuple(texts), tuple(scored))

    def leave_each_out(self, tally: Tally, rows: Batch, labels: NDArray[np.int32], weights: Real, threads: int) -> Real:
        """Scores each row with all others, for columns without cells or words (rows × columns × classes). The best
        class has 0.
        """
        says = np.zeros((len(labels), len(self.scored), len(tally.classes)))
        row_weights = None if (weights >= 1.0).all() else np.minimum(weights, 1.0)
        sums = partial(sums_of_rows, tally.schema, rows, row_weights, threads)
        held_out = HeldOutRows(rows, labels.astype(np.int64), row_weights, len(tally.classes), threads, sums)
        for k, feature in enumerate(self.scored):
            if feature.family.can_leave_one_out((feature,), CHOICE, row_weights is not None):
                scores = feature.family.leave_one_out((feature,), tally.of(feature.name), CHOICE, held_out)
            else:
                scores = _out_of_fold(tally, feature, rows, held_out)
            best = scores.max(axis=1, keepdims=True)
            possible = np.isfinite(best)  # in some class: otherwise the column says nothing
            says[:, k] = np.where(possible, np.maximum(scores - np.where(possible, best, 0.0), -FARTHEST), 0.0)
        return says


def _out_of_fold(tally: Tally, feature: Feature, batch: Batch, held_out: HeldOutRows) -> Real:
    """Scores rows by the rows of other folds, for a column without a leave-one-out formula; equal rows are in one fold."""
    features = (feature,)
    sums = tally.of(feature.name)
    k = len(tally.classes)
    plain = held_out.scores(feature.family.estimate(features, sums, CHOICE, UNUSED))
    hashes = np.zeros(len(plain), dtype=np.uint64)
    for column in np.ascontiguousarray(plain).view(np.uint64).T:
        hashes = mix(hashes * MIX + column)
    folds = (hashes % np.uint64(FOLDS)).astype(np.int64)
    groups = folds * k + held_out.labels
    threads = held_out.threads
    group_sums = sums_of_groups(tally.schema, batch, groups, FOLDS * k, held_out.weights, threads, features)
    scores = np.zeros_like(plain)
    for fold in np.unique(folds).tolist():
        fold_sums = group_sums.take(np.arange(fold * k, (fold + 1) * k))
        sums_without_fold = (sums - fold_sums).without_empty([feature.family.permanent_keys()])
        rows = np.flatnonzero(folds == fold)
        scores[rows] = held_out.take(rows).scores(feature.family.estimate(features, sums_without_fold, CHOICE, UNUSED))
    return scores


def _lexicon(feature: Feature, tally: Tally) -> Lexicon:
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
    """Returns the cells of each column that has some."""
    cells_by_name: dict[str, Cells] = {}
    for family, features, sums in tally.groups:
        if family.has_cells:
            family_cells = family.cells(features, sums, count_missing(tally, sums), threads)
            cells_by_name |= {cells.feature.name: cells for cells in family_cells if cells is not None}
    return cells_by_name


def count_missing(tally: Tally, sums: Any) -> Real:
    """Counts the rows of each column and class without a value."""
    return np.asarray(np.maximum(tally.rows.value - sums.present.value, 0.0))


def count_cells(tally: Tally, columns: Sequence[Cells]) -> list[Real]:
    """Returns the number of rows in each cell of each column (cells × classes), from the sums of a tally."""
    of: dict[str, tuple[Feature, Keys, Real, Real]] = {}
    for family, features, sums in tally.groups:
        if family.has_cells:
            rows = sums.cells.value
            missing = count_missing(tally, sums)
            for f, at in enumerate(map(slice, sums.offsets[:-1], sums.offsets[1:])):
                of[features[f].name] = features[f], sums.keys[f], rows[at], missing[f]
    return [cells.rows_by_cell(*of[cells.feature.name]) for cells in columns]
