"""Banbury classifies text, tables and both: it trains at reading speed, explains every answer, and forgets what you ask.

Learning is counting, and tallies add and subtract; everything else follows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from banbury import datasets
from banbury.calibration import Calibration, calibrate
from banbury.dependence import Diagnosis, diagnose, mutual_information
from banbury.distributions import (
    Bernoulli,
    Categorical,
    Gaussian,
    Histogram,
    KernelDensity,
    NormalInverseGamma,
    Poisson,
    Text,
)
from banbury.errors import BanburyError, BanburyWarning
from banbury.explain import Explanation, Informative
from banbury.files import load, save
from banbury.naive_bayes import Model, estimate
from banbury.schema import Schema
from banbury.selection import CrossValidation, LearningCurve, Tuning, cross_validate, learning_curve, tune
from banbury.tally import Tally, count

if TYPE_CHECKING:
    from banbury import plots
    from banbury.estimators import NaiveBayesClassifier

__version__ = "0.1.0"

__all__ = [
    "BanburyError",
    "BanburyWarning",
    "Bernoulli",
    "Calibration",
    "Categorical",
    "CrossValidation",
    "Diagnosis",
    "Explanation",
    "Gaussian",
    "Histogram",
    "Informative",
    "KernelDensity",
    "LearningCurve",
    "Model",
    "NaiveBayesClassifier",
    "NormalInverseGamma",
    "Poisson",
    "Schema",
    "Tally",
    "Text",
    "Tuning",
    "calibrate",
    "count",
    "cross_validate",
    "datasets",
    "diagnose",
    "estimate",
    "learning_curve",
    "load",
    "mutual_information",
    "plots",
    "save",
    "tune",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Estimators and pictures on demand: importing scikit-learn takes longer than all the rest, and few runs draw."""
    if name == "NaiveBayesClassifier":
        from banbury.estimators import NaiveBayesClassifier

        return NaiveBayesClassifier
    if name == "plots":
        return import_module("banbury.plots")
    raise AttributeError(f"module 'banbury' has no attribute {name!r}")
