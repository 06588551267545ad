"""The scikit-learn face. X and y live here only."""

import banbury.engines  # noqa: F401 (frames of Dask and Spark are opened from now on)
from banbury.estimators.classifier import NaiveBayesClassifier

__all__ = ["NaiveBayesClassifier"]
