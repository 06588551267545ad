"""Why: the weight of evidence behind an answer, in decibans, and what tells each class from the rest."""

from banbury.families.evidence import Term
from banbury.model.explain.explanation import DECIBANS, Evidence, Explanation, make_explanation
from banbury.model.explain.ratios import Informative, LikelihoodRatio, informative
from banbury.model.explain.surprise import Surprise

__all__ = [
    "DECIBANS",
    "Evidence",
    "Explanation",
    "Informative",
    "LikelihoodRatio",
    "Surprise",
    "Term",
    "informative",
    "make_explanation",
]
