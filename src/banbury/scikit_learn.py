"""scikit-learn's base classes and checks, without the modules that scikit-learn imports too and that estimators do not need.

Importing those takes longer than the rest of a first fit. They are imported when one of their names is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "DataConversionWarning",
    "DensityMixin",
    "NotFittedError",
    "check_is_fitted",
    "clone",
]

DELAYED_MODULES = (
    "asyncio",
    "narwhals",
    "narwhals.stable",
    "narwhals.stable.v2",
    "numpy.f2py",
    "numpy.testing",
    "pandas",
    "psutil",
    "scipy.special",
    "scipy.stats",
)


class _Later(ModuleType):
    """Stands in for a module while scikit-learn is imported. Looking up a name in it, then or later, imports the module."""

    def __getattr__(self, name: str) -> Any:
        """Imports the module and returns what it calls ``name``."""
        _remove(self)
        return getattr(import_module(self.__name__), name)


def _remove(module: _Later) -> None:
    """Removes a stand-in from the list of imported modules, and from its package, unless it was replaced there."""
    package, _, name = module.__name__.rpartition(".")
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]
    if package and vars(sys.modules.get(package, module)).get(name) is module:
        delattr(sys.modules[package], name)


@contextmanager
def _delay_imports(names: tuple[str, ...]) -> Iterator[None]:
    """Within this context, importing one of the modules ``names`` only yields a stand-in. Modules that are not
    installed, or that are already imported, are not affected. The context yields nothing.
    """
    module_names = [name for name in names if name not in sys.modules and find_spec(name.partition(".")[0]) is not None]
    stand_ins = [_Later(name) for name in module_names]
    for module in stand_ins:
        package, _, name = module.__name__.rpartition(".")
        sys.modules[module.__name__] = module
        if package:
            setattr(import_module(package), name, module)
    try:
        yield
    finally:
        for module in stand_ins:
            _remove(module)


with _delay_imports(DELAYED_MODULES):
    from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, clone
    from sklearn.exceptions import DataConversionWarning, NotFittedError
    from sklearn.utils.validation import check_is_fitted
