"""Choosing a model: exact cross-validation by subtraction, leave-one-out, learning curves, the choice of prior and family."""

from banbury.selection.cross_validation import cross_validate
from banbury.selection.learning import LearningCurve, learning_curve
from banbury.selection.results import CrossValidation

__all__ = ["CrossValidation", "LearningCurve", "cross_validate", "learning_curve"]
