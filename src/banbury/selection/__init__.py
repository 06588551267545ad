"""Choosing a model: exact cross-validation by subtraction, leave-one-out, learning curves, the choice of prior and family."""

from banbury.selection.cross_validation import cross_validate, left_out
from banbury.selection.dataset import held
from banbury.selection.learning import LearningCurve, learning_curve
from banbury.selection.results import CrossValidation
from banbury.selection.tuning import Tuning, tune

__all__ = ["CrossValidation", "LearningCurve", "Tuning", "cross_validate", "held", "learning_curve", "left_out", "tune"]
