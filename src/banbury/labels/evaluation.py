"""How good a model of labels is on rows that have theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real
from banbury.labels.model import LabelModel
from banbury.labels.results import LabelEvaluation
from banbury.model.naive_bayes import add_unknown_classes
from banbury.tally.label_sets import LabelSets, LabelTarget, join_same_files
from banbury.tally.table import Labels, label_target, wants_folders


def evaluate(model: LabelModel, data: Any, target: Any = None, **reading: Any) -> LabelEvaluation:
    """The measures of a model of labels on other rows. Labels that it does not know are never given, so they are missed."""
    target = model.schema.labels if target is None and model.schema.labels is not None else target
    if target is None or (isinstance(target, LabelTarget) and not target.columns):
        raise errors.bad_setting("target", None, "the column of labels, columns of flags, or one set of labels per row")
    delimiter = reading.pop("target_delimiter", None)
    if isinstance(target, LabelTarget) and delimiter is not None and not target.flags:
        (target,) = target.columns
    elif isinstance(target, str) and delimiter is None and model.schema.labels is not None:
        delimiter = model.schema.labels.delimiter
    source = model.read(data, reading)
    if wants_folders(source, target):
        source, target = join_same_files(source), LabelTarget((str(source.target),), folders=True)
    labels = Labels.of(label_target(source, target, delimiter if isinstance(target, str) else None), None, None, 1)
    errors.require(
        labels.several is not None, "target", target, "sets of labels: lists, flags, or texts with target_delimiter="
    )
    sets = []
    posteriors = []
    for batch, posterior in model.stream(source):
        sets.append(labels.sets_of(batch))
        posteriors.append(posterior)
    if not sets:
        raise errors.empty_data(source.name)
    labels.check_length(sum(map(len, sets)))
    every = LabelSets.of_batches(sets)
    labelled = np.flatnonzero(every.has_target)
    return evaluate_answers(model, every.take(labelled), np.concatenate(posteriors)[labelled], labelled)


def evaluate_answers(
    model: LabelModel, sets: LabelSets, posterior: Real, rows: Int, weights: Real | None = None
) -> LabelEvaluation:
    """The measures of P(label | row) of rows with these labels; labels that the model does not know are never given."""
    names: Any
    names, notes = add_unknown_classes(model.labels, set(sets.names), "label")
    n_new = len(names) - len(model.labels)
    answers = np.hstack([model.flags(posterior), np.zeros((len(posterior), n_new), dtype=np.bool_)])
    posterior = np.hstack([posterior, np.zeros((len(posterior), n_new))])
    return LabelEvaluation(names, rows, sets.flags(names), answers, posterior, weights, notes=notes)
