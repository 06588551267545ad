"""The families: the one axis that grows. A new family is a file here and a line in FAMILIES; the laws then test it."""

from __future__ import annotations

from typing import Any

from banbury import errors
from banbury.distributions.bernoulli import Bernoulli
from banbury.distributions.categorical import Categorical
from banbury.distributions.column_tree import ColumnTree
from banbury.distributions.exponential import Exponential
from banbury.distributions.family import Family
from banbury.distributions.gamma import Gamma
from banbury.distributions.gaussian import Gaussian, NormalInverseGamma
from banbury.distributions.histogram import Histogram
from banbury.distributions.joint import Joint
from banbury.distributions.kernel_density import KernelDensity
from banbury.distributions.occurrences import Occurrences
from banbury.distributions.poisson import Poisson
from banbury.distributions.quantile_tree import QuantileTree
from banbury.distributions.text import Text

NUMBERS = Gaussian, Poisson, Exponential, Gamma, Histogram, KernelDensity, QuantileTree
EVERY: tuple[type[Family], ...] = (Bernoulli, Categorical, *NUMBERS, Text, Occurrences, Joint, ColumnTree)
FAMILIES = {family.name: family for family in EVERY}

__all__ = ["FAMILIES", "NUMBERS", "Bernoulli", "Categorical", "Exponential", "Family", "Gamma", "Gaussian", "Histogram"]
__all__ += [
    "ColumnTree",
    "Joint",
    "KernelDensity",
    "NormalInverseGamma",
    "Occurrences",
    "Poisson",
    "QuantileTree",
    "Text",
    "family",
]


def family(given: Any) -> Family:
    """A family from its name, its class or an instance."""
    if isinstance(given, Family):
        return given
    if isinstance(given, type) and issubclass(given, Family):
        return given()
    if isinstance(given, str) and given in FAMILIES:
        return FAMILIES[given]()
    raise errors.unknown_choice("a family", given, FAMILIES)
