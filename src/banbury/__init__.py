"""Banbury classifies text, tables and both: it trains at reading speed, explains every answer, and forgets what you ask.

Learning is counting, and tallies add and subtract; everything else follows.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from banbury import datasets, plots
    from banbury.calibration import Calibration, calibrate
    from banbury.density import Density, independence
    from banbury.dependence import Diagnosis, diagnose, mutual_information
    from banbury.distributions import (
        Bernoulli,
        Categorical,
        Exponential,
        Gamma,
        Gaussian,
        Histogram,
        Joint,
        KernelDensity,
        NormalInverseGamma,
        Occurrences,
        Poisson,
        QuantileTree,
        Text,
    )
    from banbury.errors import BanburyError, BanburyWarning
    from banbury.estimators import NaiveBayesClassifier
    from banbury.estimators.drop_in import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
    from banbury.estimators.evidence import EvidenceClassifier
    from banbury.estimators.multi_label import MultiLabelClassifier
    from banbury.estimators.semi_supervised import Mixture, SemiSupervisedClassifier
    from banbury.estimators.tan import TANClassifier
    from banbury.explain import Explanation, Informative
    from banbury.files import load, save
    from banbury.hypotheses import Hypotheses, conjunctions, thresholds
    from banbury.labels import LabelEvaluation, LabelModel
    from banbury.naive_bayes import Model, estimate
    from banbury.networks import BeliefNetwork
    from banbury.next_labels import NextToLabel, next_to_label
    from banbury.quality import (
        CrossValidation,
        Evaluation,
        LearningCurve,
        Tuning,
        cross_validate,
        evaluate,
        learning_curve,
        tune,
    )
    from banbury.reports import Report, report
    from banbury.schema import Schema
    from banbury.tally import Tally, count
    from banbury.weighing import Weighing, weigh
    from banbury.wrong_labels import Suspicious, suspicious

__version__ = "0.1.0"

__all__ = [
    "BanburyError",
    "BanburyWarning",
    "BeliefNetwork",
    "Bernoulli",
    "BernoulliNB",
    "Calibration",
    "Categorical",
    "CategoricalNB",
    "ComplementNB",
    "CrossValidation",
    "Density",
    "Diagnosis",
    "Evaluation",
    "EvidenceClassifier",
    "Explanation",
    "Exponential",
    "Gamma",
    "Gaussian",
    "GaussianNB",
    "Histogram",
    "Hypotheses",
    "Informative",
    "Joint",
    "KernelDensity",
    "LabelEvaluation",
    "LabelModel",
    "LearningCurve",
    "Mixture",
    "Model",
    "MultiLabelClassifier",
    "MultinomialNB",
    "NaiveBayesClassifier",
    "NextToLabel",
    "NormalInverseGamma",
    "Occurrences",
    "Poisson",
    "QuantileTree",
    "Report",
    "Schema",
    "SemiSupervisedClassifier",
    "Suspicious",
    "TANClassifier",
    "Tally",
    "Text",
    "Tuning",
    "Weighing",
    "calibrate",
    "conjunctions",
    "count",
    "cross_validate",
    "datasets",
    "diagnose",
    "estimate",
    "evaluate",
    "independence",
    "learning_curve",
    "load",
    "mutual_information",
    "next_to_label",
    "plots",
    "report",
    "save",
    "suspicious",
    "thresholds",
    "tune",
    "weigh",
]

# Where each name lives. A module is imported when one of its names is first asked for, so that a short command starts at once.
_HOMES = {
    "calibration": "Calibration calibrate",
    "density": "Density independence",
    "dependence": "Diagnosis diagnose mutual_information",
    "distributions": "Bernoulli Categorical Exponential Gamma Gaussian "
    "Histogram Joint KernelDensity NormalInverseGamma Occurrences Poisson QuantileTree Text",
    "errors": "BanburyError BanburyWarning",
    "estimators": "NaiveBayesClassifier",
    "estimators.evidence": "EvidenceClassifier",
    "estimators.multi_label": "MultiLabelClassifier",
    "estimators.semi_supervised": "Mixture SemiSupervisedClassifier",
    "estimators.drop_in": "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB",
    "estimators.tan": "TANClassifier",
    "explain": "Explanation Informative",
    "files": "load save",
    "hypotheses": "Hypotheses conjunctions thresholds",
    "labels": "LabelEvaluation LabelModel",
    "naive_bayes": "Model estimate",
    "networks": "BeliefNetwork",
    "next_labels": "NextToLabel next_to_label",
    "quality": "CrossValidation Evaluation LearningCurve Tuning cross_validate evaluate learning_curve tune",
    "reports": "Report report",
    "schema": "Schema",
    "tally": "Tally count",
    "weighing": "Weighing weigh",
    "wrong_labels": "Suspicious suspicious",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """A public name, or a module of the package."""
    if name in _HOME:
        found = getattr(import_module(f"banbury.{_HOME[name]}"), name)
        globals()[name] = found
        return found
    if not name.startswith("_") and find_spec(f"banbury.{name}") is not None:
        return import_module(f"banbury.{name}")
    raise AttributeError(f"module 'banbury' has no attribute {name!r}")
