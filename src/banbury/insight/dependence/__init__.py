"""Mutual information: which features tell the classes apart, and which pairs break the independence that is assumed.

Naive Bayes multiplies the evidence of its features as if, within a class, none of them said what another has said. I(A; B |
class), in bits, is how wrong that is for a pair: 0 where they are independent given the class, and as much as the features
themselves hold where one repeats the other.
"""

from banbury.insight.dependence.diagnosing import diagnose
from banbury.insight.dependence.information import informative_words, mutual_information
from banbury.insight.dependence.results import ColumnInformation, Diagnosis, Information, Pair, Uninformative

__all__ = ["ColumnInformation", "Diagnosis", "Information", "Pair", "Uninformative"]
__all__ += ["diagnose", "informative_words", "mutual_information"]
