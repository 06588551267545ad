"""scikit-learn's base classes and checks, without the modules that it imports beside them and that estimators never ask for.

Those take more time than all the rest of a first fit. They are imported when something of theirs is first asked for.
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

UNASKED = (
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
    """Stands for a module while scikit-learn is imported. Whoever asks it for a name, then or later, has the module imported."""

    def __getattr__(self, name: str) -> Any:
        _give_way(self)
        return getattr(import_module(self.__name__), name)


def _give_way(module: _Later) -> None:
    package, _, name = module.__name__.rpartition(".")
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]
    if package and vars(sys.modules.get(package, module)).get(name) is module:
        delattr(sys.modules[package], name)


@contextmanager
def _later(names: tuple[str, ...]) -> Iterator[None]:
    """Meanwhile, modules of packages that are there, and which are not imported yet, wait to be asked."""
    absent = [name for name in names if name not in sys.modules and find_spec(name.partition(".")[0]) is not None]
    waiting = [_Later(name) for name in absent]
    for module in waiting:
        package, _, name = module.__name__.rpartition(".")
        sys.modules[module.__name__] = module
        if package:
            setattr(import_module(package), name, module)
    try:
        yield
    finally:
        for module in waiting:
            _give_way(module)


with _later(UNASKED):
    from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, clone
    from sklearn.exceptions import DataConversionWarning, NotFittedError
    from sklearn.utils.validation import check_is_fitted
