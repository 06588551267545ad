"""How good a model is: recipes, their validation over folds, tuning, learning curves and results."""

from banbury.quality.cross_validation import cross_validate
from banbury.quality.curves import LearningCurve, learning_curve
from banbury.quality.results import CrossValidation, Evaluation, SummedValidation, evaluate
from banbury.quality.tuning import Tuning, tune

__all__ = ["CrossValidation", "Evaluation", "LearningCurve", "SummedValidation", "Tuning", "cross_validate", "evaluate"]
__all__ += ["learning_curve", "tune"]
