"""The families: the one axis that grows. A new family is a file here and a line in FAMILIES; the laws then test it."""

from __future__ import annotations

from typing import Any

from banbury import errors
from banbury.families.bags.occurrences import Occurrences
from banbury.families.bags.text import Text, tokens
from banbury.families.bernoulli import Bernoulli
from banbury.families.categorical import Categorical
from banbury.families.column_tree import ColumnTree
from banbury.families.exponential import Exponential
from banbury.families.family import Family
from banbury.families.gamma import Gamma
from banbury.families.gaussian import Gaussian, NormalInverseGamma
from banbury.families.histogram import Histogram
from banbury.families.joint import Joint
from banbury.families.kernel_density import KernelDensity
from banbury.families.log_normal import LogNormal
from banbury.families.poisson import Poisson
from banbury.families.quantile_tree import QuantileTree

NUMBERS = Gaussian, Poisson, Exponential, Gamma, LogNormal, Histogram, KernelDensity, QuantileTree
EVERY: tuple[type[Family], ...] = (Bernoulli, Categorical, *NUMBERS, Text, Occurrences, Joint, ColumnTree)
FAMILIES = {family.name: family for family in EVERY}

__all__ = ["FAMILIES", "NUMBERS", "Bernoulli", "Categorical", "Exponential", "Family", "Gamma", "Gaussian", "Histogram"]
__all__ += [
    "ColumnTree",
    "Joint",
    "KernelDensity",
    "LogNormal",
    "NormalInverseGamma",
    "Occurrences",
    "Poisson",
    "QuantileTree",
    "Text",
    "family",
    "tokens",
]


def family(spec: Any) -> Family:
    """Returns a family from its name, its class or an instance."""
    if isinstance(spec, Family):
        return spec
    if isinstance(spec, type) and issubclass(spec, Family):
        return spec()
    if isinstance(spec, str) and spec in FAMILIES:
        return FAMILIES[spec]()
    raise errors.unknown_choice("a family", spec, FAMILIES)
