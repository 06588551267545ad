"""Finite hypothesis spaces: a prior, a likelihood, and Bayes' theorem over every hypothesis at once, in logarithms.

A hypothesis is a function of a row, or a column of a matrix of predictions, or a mere name whose likelihoods are given. Matrices
stand rows × hypotheses, so that rows may come in batches; they are gone through in blocks, so that a million hypotheses fit.
"""

from banbury.hypotheses.rules import conjunctions, thresholds
from banbury.hypotheses.space import Hypotheses, Trace

__all__ = ["Hypotheses", "Trace", "conjunctions", "thresholds"]
