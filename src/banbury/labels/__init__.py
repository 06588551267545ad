"""Several labels per row: one tally, a yes or no for every label, the rest by subtraction."""

from __future__ import annotations

from banbury.label_sets import LabelSets
from banbury.labels.model import LabelModel, yes_no
from banbury.labels.thresholds import Thresholds

__all__ = ["LabelModel", "LabelSets", "Thresholds", "yes_no"]
