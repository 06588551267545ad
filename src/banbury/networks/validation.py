"""Cross-validation of trees: of each fold a tree, cut, drawn and counted from the rows of all others."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from banbury.arrays import Int, Real
from banbury.dependence.pairs import LEVEL
from banbury.distributions.family import Choice
from banbury.networks.network import BeliefNetwork
from banbury.networks.pairs import Pairs
from banbury.networks.variables import Bins
from banbury.quality import CrossValidation
from banbury.readers import Batch, Codes
from banbury.rows.folds import rounds
from banbury.rows.labelled import MemoryRows
from banbury.table import Labels


def cross_validated(rows: MemoryRows, folds: int, choice: Choice, bins: Bins) -> tuple[CrossValidation, Real]:
    """What trees say of rows they have not seen, over the folds that ``bb.cross_validate`` has; a class they lack has 0.

    Also the log posteriors, to learn a calibration from.
    """
    (each,) = rounds(folds, rows.labels, choice.seed, None)
    scores = np.full((rows.n_rows, len(rows.classes)), -np.inf)
    for k, split in enumerate(each.splits):
        tree = _tree(rows, np.flatnonzero((each.groups >= 0) & (each.groups != k)), choice, bins)
        known = np.array([rows.classes.index(name) for name in tree.classes])
        answers = np.concatenate([tree.log_posterior(part) for part in rows.take(split.test)])
        scores[split.test[:, None], known] = answers
    tested = np.flatnonzero(each.groups >= 0)
    weights = None if rows.weights is None else rows.weights[tested]
    what = f"{len(each.splits)}-fold cross-validation of a tree (TAN)"
    scores = scores[tested]
    answers, folded = np.exp(scores), each.groups[tested]
    found = CrossValidation(rows.classes, tested, rows.labels[tested], answers, weights, what, folds=folded)
    return found, scores


def _tree(rows: MemoryRows, chosen: Int, choice: Choice, bins: Bins) -> BeliefNetwork:
    """The tree of some rows, whose numbers ascend; what the first batch has of them settles where numbers are cut."""
    codes = Codes(rows.labels[chosen], 0, list(rows.classes))
    weights = None if rows.weights is None else rows.weights[chosen]
    labels, batches = Labels(None, None, codes, None, weights, None, rows.threads), list[Batch]()
    ends = np.searchsorted(chosen, rows.starts)
    for batch, start, a, b in zip(rows.batches, rows.starts, ends, ends[1:], strict=False):
        if b > a:
            part = batch.take(chosen[a:b] - start)
            part.first_row, part.threads = int(a), rows.threads  # labels and weights are found by it
            batches.append(part)
    count = Pairs.beginning(batches[0], rows.schema, labels, bins)
    return BeliefNetwork.from_pairs(reduce(add, map(count, batches)).checked(), choice, LEVEL, None, rows.threads)
