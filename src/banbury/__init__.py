"""Banbury classifies text, tables and both: it trains at reading speed, explains every answer, and forgets what you ask.

Learning is counting, and tallies add and subtract; everything else follows.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _modules() -> dict[str, str]:
    """Returns the module of each public name, as ``__init__.pyi`` lists them: ``from MODULE import NAME as NAME``."""
    lines = Path(__file__).with_suffix(".pyi").read_text().splitlines()
    words = [line.split() for line in lines if line.startswith("from ")]  # of each such line
    return {name: module for _, module, _, name, *_ in words}


_MODULES = _modules()
__all__ = sorted(_MODULES)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Returns a public name or a module of the package, imported when it is first asked for, so that a short command
    starts at once.
    """
    module = _MODULES.get(name, "banbury")
    if module != "banbury":
        import_module(f"{__name__}.engines")  # from now on, data of Dask and Spark are opened
        public = getattr(import_module(module), name)
        globals()[name] = public
        return public
    if not name.startswith("_") and find_spec(f"banbury.{name}") is not None:
        return import_module(f"banbury.{name}")
    raise AttributeError(f"module 'banbury' has no attribute {name!r}")
