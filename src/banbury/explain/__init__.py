"""Why: the weight of evidence behind an answer, in decibans, and what tells each class from the rest."""

from banbury.explain.explanation import DECIBANS, Evidence, Explanation, Term, explained
from banbury.explain.ratios import Informative, LikelihoodRatio, informative
from banbury.explain.surprise import Surprise

__all__ = [
    "DECIBANS",
    "Evidence",
    "Explanation",
    "Informative",
    "LikelihoodRatio",
    "Surprise",
    "Term",
    "explained",
    "informative",
]
