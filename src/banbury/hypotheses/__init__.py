"""Finite hypothesis spaces: a prior, a likelihood, and Bayes' theorem over every hypothesis at once, in logarithms.

A hypothesis is a function of a row, or a column of a matrix of predictions, or only a name whose likelihoods are given. Matrices
are rows × hypotheses, so that rows can come in batches. They are processed in blocks, so that a million hypotheses fit in memory.
"""

from banbury.hypotheses.rules import conjunctions, thresholds
from banbury.hypotheses.space import Hypotheses, Trace

__all__ = ["Hypotheses", "Trace", "conjunctions", "thresholds"]
