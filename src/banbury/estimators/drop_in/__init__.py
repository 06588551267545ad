"""Drop-in replacements of scikit-learn's five naive Bayes classes: its parameters, attributes and words; our sums."""

from banbury.estimators.drop_in.bernoulli import BernoulliNB
from banbury.estimators.drop_in.categorical import CategoricalNB
from banbury.estimators.drop_in.complement import ComplementNB
from banbury.estimators.drop_in.gaussian import GaussianNB
from banbury.estimators.drop_in.multinomial import MultinomialNB

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]
