"""The scikit-learn face. X and y live here only."""

from banbury.estimators.classifier import NaiveBayesClassifier

__all__ = ["NaiveBayesClassifier"]
