"""Several labels per row: one tally, a yes or no for every label, the rest by subtraction."""

from __future__ import annotations

from banbury.label_sets import LabelSets
from banbury.labels.learning import LabelTuning, cross_validate, evaluate, fitted, tune, validated
from banbury.labels.model import LabelModel, yes_no
from banbury.labels.results import LabelEvaluation, PerLabel
from banbury.labels.thresholds import Thresholds
from banbury.labels.validation import HeldRows, label_rows, refuse_of_sets
from banbury.labels.weighing import LabelWeighing

__all__ = [
    "HeldRows",
    "LabelEvaluation",
    "LabelModel",
    "LabelSets",
    "LabelTuning",
    "LabelWeighing",
    "PerLabel",
    "Thresholds",
    "cross_validate",
    "evaluate",
    "fitted",
    "label_rows",
    "refuse_of_sets",
    "tune",
    "validated",
    "yes_no",
]
