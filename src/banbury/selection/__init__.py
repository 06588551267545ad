"""Choosing a model: exact cross-validation by subtraction, leave-one-out, learning curves, the choice of prior and family."""

from banbury.selection.cross_validation import cross_validate
from banbury.selection.learning import LearningCurve, learning_curve
from banbury.selection.results import CrossValidation
from banbury.selection.tuning import Tuning, tune

__all__ = ["CrossValidation", "LearningCurve", "Tuning", "cross_validate", "learning_curve", "tune"]
