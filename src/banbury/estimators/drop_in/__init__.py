"""Drop-in replacements of scikit-learn's five naive Bayes classes: its parameters, attributes and words; our sums."""

from banbury.estimators.drop_in.categorical import CategoricalNB
from banbury.estimators.drop_in.discrete import BernoulliNB, ComplementNB, MultinomialNB
from banbury.estimators.drop_in.gaussian import GaussianNB
from banbury.renamed import old_module

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]

old_module("banbury.estimators.drop_in.state", "State")
for _module, _class in (("bernoulli", BernoulliNB), ("complement", ComplementNB), ("multinomial", MultinomialNB)):
    old_module(f"banbury.estimators.drop_in.{_module}", **{_class.__name__: _class})
