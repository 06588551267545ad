"""Evaluates a multi-label model on rows whose labels are known."""

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
    """Evaluates a multi-label model on other rows. ``target`` has the true labels, as for ``bb.count``; by default, they
    are in the same columns as in the training data. Rows without a target are left out. A label that the model does not
    know counts as missed. ``reading``: options for reading files, and ``target_delimiter``.
    """
    target = model.schema.labels if target is None and model.schema.labels is not None else target
    if target is None or (isinstance(target, LabelTarget) and not target.columns):
        raise errors.bad_setting("target", None, "the column of labels, columns of flags, or one set of labels per row")
    delimiter = reading.pop("target_delimiter", None)  # between the labels in a text
    if isinstance(target, LabelTarget) and delimiter is not None and not target.flags:
        (target,) = target.columns
    elif isinstance(target, str) and delimiter is None and model.schema.labels is not None:
        delimiter = model.schema.labels.delimiter
    source = model._read(data, reading)
    if wants_folders(source, target):
        source, target = join_same_files(source), LabelTarget((str(source.target),), folders=True)
    source = source.peekable()
    # Where the sets of labels are: columns, or the labels themselves.
    sets_target = label_target(source, target, delimiter if isinstance(target, str) else None)
    labels_reader = Labels.of(sets_target, weights=None, classes=None, threads=1)
    errors.require(
        labels_reader.sets_from is not None,
        "target",
        target,
        "sets of labels: lists, flags, or texts with target_delimiter=",
    )
    set_batches = []  # the sets of labels of each batch
    posterior_batches = []  # rows × labels
    for batch, batch_posterior in model.stream(source):
        set_batches.append(labels_reader.sets_of(batch))
        posterior_batches.append(batch_posterior)
    if not set_batches:
        raise errors.empty_data(source.name)
    labels_reader.check_length(sum(map(len, set_batches)))
    label_sets = LabelSets.of_batches(set_batches)
    labelled_rows = np.flatnonzero(label_sets.has_target)  # numbers of rows
    return evaluate_answers(
        model, label_sets.take(labelled_rows), np.concatenate(posterior_batches)[labelled_rows], labelled_rows
    )


def evaluate_answers(
    model: LabelModel, sets: LabelSets, posterior: Real, rows: Int, weights: Real | None = None
) -> LabelEvaluation:
    """Evaluates posteriors of rows whose labels are known. A label that the model does not know counts as missed.

    Args:
        model: The model, whose thresholds decide which labels are predicted.
        sets: The true labels of the rows.
        posterior: P(label | row) (rows × the model's labels).
        rows: The numbers of the rows in the data.
        weights: The weight of each row, or None.
    """
    label_names: Any  # the model's labels, then those that it does not know
    # ``notes``: sentences about unknown labels, for the printed evaluation.
    label_names, notes = add_unknown_classes(model.labels, set(sets.names), "label")
    n_unknown_labels = len(label_names) - len(model.labels)
    # Whether each label is predicted, and its probability (rows × labels): unknown ones never.
    predicted = np.hstack([model.flags(posterior), np.zeros((len(posterior), n_unknown_labels), dtype=np.bool_)])
    posterior = np.hstack([posterior, np.zeros((len(posterior), n_unknown_labels))])
    return LabelEvaluation(label_names, rows, sets.flags(label_names), predicted, posterior, weights, notes=notes)
