"""Choosing a model: exact cross-validation by subtraction, leave-one-out, learning curves, the choice of prior and family."""

from banbury.selection.cross_validation import (
    calibrated_within,
    can_leave_one_out,
    counted_and_validated,
    cross_validate,
    cross_validate_stream,
    leave_one_out,
    left_out,
    scored_and_validated,
    weighed_and_validated,
    without_each,
)
from banbury.selection.dataset import has_sets, held, streamed
from banbury.selection.learning import LearningCurve, learning_curve
from banbury.selection.results import CrossValidation, Evaluation, Streamed, evaluate
from banbury.selection.tuning import Tuning, tune
from banbury.selection.weighing import weighed, weighed_rows

__all__ = ["CrossValidation", "Evaluation", "LearningCurve", "Streamed", "Tuning", "calibrated_within"]
__all__ += ["can_leave_one_out", "counted_and_validated", "cross_validate", "cross_validate_stream", "evaluate"]
__all__ += ["has_sets", "held", "learning_curve", "leave_one_out", "left_out", "scored_and_validated", "streamed"]
__all__ += ["tune", "weighed", "weighed_and_validated", "weighed_rows", "without_each"]
