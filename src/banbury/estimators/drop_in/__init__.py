"""Drop-in replacements of scikit-learn's five naive Bayes classes: its parameters, attributes and messages; our sums."""

from banbury.estimators.drop_in.categorical import CategoricalNB
from banbury.estimators.drop_in.discrete import BernoulliNB, ComplementNB, MultinomialNB
from banbury.estimators.drop_in.gaussian import GaussianNB

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]
