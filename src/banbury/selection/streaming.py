"""Cross-validation of tables too large to hold: passes over the file deal the rows, count the folds apart and score them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.distributions.family import How
from banbury.naive_bayes import ClassPrior, check_seed
from banbury.schema import Features, Missing, Schema
from banbury.selection.dataset import Dataset, streamed
from banbury.selection.folds import Round, n_folds, rounds
from banbury.selection.groups import Groups
from banbury.selection.results import FoldMeasures, Outcomes
from banbury.selection.scoring import PendingWarnings, model_maker, score_batch
from banbury.tally import Label, Tally

MOST_FOLDS = 100  # each has a model of its own in memory


@dataclass(frozen=True, eq=False, repr=False)
class Streamed(FoldMeasures):
    """The cross-validation of a table that is not held: how its answers came out, without the answers."""

    tally: Tally  # of all rows
    classes: tuple[Label, ...]
    outcomes: Outcomes
    weighted: bool
    what: str
    notes: tuple[str, ...] = ()


def cross_validate_stream(
    data: Any,
    target: Any = None,
    *,
    folds: Any = 10,
    groups: Any = None,
    how: How = "mean",
    alpha: float = 1.0,
    class_prior: ClassPrior = None,
    features: Features = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing = "skip",
    seed: int = 0,
    threads: int | None = None,
    **reading: Any,
) -> Streamed:
    """Exact cross-validation of a file that does not fit in memory: a batch at a time is held.

    It is read three times: for the classes of the rows, which are dealt out to the folds as ``bb.cross_validate`` deals them;
    to count the folds apart; and to score each by the model of all rows minus its own. The settings are those of
    ``bb.cross_validate``, and so is every figure.

    >>> import banbury as bb
    >>> print(cross_validate_stream(bb.datasets.play_tennis(), target="play", folds=7))
    7-fold cross-validation in three passes: 14 rows, 2 classes
      accuracy           0.5714 ± 0.1304  (random guess 0.5000, majority 0.6429)
      log loss           0.7346
      Brier score        0.2516
      macro F1           0.4750
      calibration error  0.2090
      class  precision  recall      F1        rows  most often taken for
      'no'      0.3333  0.2000  0.2500           5  'yes' (4)
      'yes'     0.6364  0.7778  0.7000           9  'no' (2)
    """
    check_seed(seed)
    counting = {"schema": schema, "features": features, "weights": weights, "missing": missing, "threads": threads}
    rows = streamed(data, target, groups=groups, **counting, **reading)
    settings: dict[str, Any] = {"how": how, "alpha": alpha, "class_prior": class_prior, "seed": seed}
    return validated_stream(rows, rounds(folds, rows.labels, int(seed), rows.groups), settings)


def validated_stream(rows: Dataset, splits: Sequence[Round], settings: Mapping[str, Any]) -> Streamed:
    """How answers to rows come out that models have not seen, round by round: two passes for each."""
    n_splits = sum(len(each.splits) for each in splits)
    if n_splits > MOST_FOLDS:
        raise errors.bad_setting("folds", n_splits, f"{MOST_FOLDS} at most where rows are not held")
    told, start, tallies, outcomes = PendingWarnings(), 0, list[Tally](), list[Outcomes]()
    for each in splits:
        groups = Groups.of(rows, each.groups, each.n_groups)
        tallies = tallies or [replace(groups.total, skipped=rows.skipped)]
        models = [*map(model_maker(rows, each, groups, settings, told), range(len(each.splits)))]
        for batch, first in zip(rows.each("scoring"), rows.starts.tolist(), strict=False):
            at, which = slice(first, first + batch.n_rows), each.tested_by[first : first + batch.n_rows]
            tested, posteriors = which >= 0, np.empty((batch.n_rows, len(rows.classes)))
            told.impossible += score_batch(rows, models, batch, which, "posterior", posteriors)
            weights = None if rows.weights is None else rows.weights[at][tested]
            folds = which[tested] + np.int32(start)
            part = Outcomes.of(posteriors[tested], rows.labels[at][tested], folds, n_splits, weights)
            outcomes = [outcomes[0] + part if outcomes else part]
        start += len(each.splits)
    told.warn(settings["how"])
    if not outcomes[0].weight > 0:
        raise errors.tested_nothing()
    passes = "three" if len(splits) == 1 else f"{1 + 2 * len(splits):,}"
    what = f"{n_folds(splits)}-fold cross-validation in {passes} passes"
    return Streamed(tallies[0], rows.classes, outcomes[0], rows.weights is not None, what)
