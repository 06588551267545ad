"""Several labels per row: one tally, a yes or no for every label, the rest by subtraction."""

from __future__ import annotations

from banbury.labels.evaluation import evaluate
from banbury.labels.model import LabelModel, yes_no
from banbury.labels.results import LabelEvaluation, PerLabel
from banbury.labels.thresholds import Thresholds
from banbury.labels.weighing import LabelWeighing
from banbury.tally.label_sets import LabelSets

__all__ = [
    "LabelEvaluation",
    "LabelModel",
    "LabelSets",
    "LabelWeighing",
    "PerLabel",
    "Thresholds",
    "evaluate",
    "yes_no",
]
