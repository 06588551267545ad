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

UNASKED = ("scipy.stats", "pandas")


class _Later(ModuleType):
    """Stands for a module while scikit-learn is imported. Whoever asks it for a name, then or later, has the module imported."""

    def __getattr__(self, name: str) -> Any:
        _give_way(self)
        return getattr(import_module(self.__name__), name)


def _give_way(module: _Later) -> None:
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]


@contextmanager
def _later(names: tuple[str, ...]) -> Iterator[None]:
    """Meanwhile, modules of these names that are there to be imported, and are not imported yet, wait to be asked."""
    waiting = [_Later(name) for name in names if name not in sys.modules and find_spec(name) is not None]
    sys.modules.update({module.__name__: module for module in waiting})
    try:
        yield
    finally:
        for module in waiting:
            _give_way(module)


with _later(UNASKED):
    from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, clone
    from sklearn.exceptions import DataConversionWarning, NotFittedError
    from sklearn.utils.validation import check_is_fitted
