"""Small data sets to try things on. Each is a mapping of column names to lists, one entry per row."""

from __future__ import annotations

import inspect
import pkgutil
import warnings
from collections.abc import Iterator
from importlib import import_module
from types import BuiltinFunctionType, ClassMethodDescriptorType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, NamedTuple

from banbury import errors

# The modules of ``docstrings``: every Python from 3.11 on has them, and importing them has no side effects.
MODULES = "asyncio collections decimal email http logging mailbox multiprocessing tarfile unittest urllib xml".split()

_PLAY_TENNIS = """
outlook   temperature  humidity  wind    play
sunny     hot          high      weak    no
sunny     hot          high      strong  no
overcast  hot          high      weak    yes
rain      mild         high      weak    yes
rain      cool         normal    weak    yes
rain      cool         normal    strong  no
overcast  cool         normal    strong  yes
sunny     mild         high      weak    no
sunny     cool         normal    weak    yes
rain      mild         normal    weak    yes
sunny     mild         normal    strong  yes
overcast  mild         high      strong  yes
overcast  hot          normal    weak    yes
rain      mild         high      strong  no
"""

_ENJOY_SPORT = """
sky    temp  humid   wind    water  forecast  play
sunny  warm  normal  strong  warm   same      yes
sunny  warm  high    strong  warm   same      yes
rainy  cold  high    strong  warm   change    no
sunny  warm  high    strong  cool   change    yes
"""


def play_tennis() -> dict[str, list[str]]:
    """Returns fourteen days with their weather, and whether tennis was played (Quinlan 1986; Mitchell 1997, table 3.2).

    >>> weather = play_tennis()
    >>> list(weather)
    ['outlook', 'temperature', 'humidity', 'wind', 'play']
    >>> weather["outlook"][:3], weather["play"].count("yes"), len(weather["play"])
    (['sunny', 'sunny', 'overcast'], 9, 14)
    """
    return _columns(_PLAY_TENNIS)


def enjoy_sport() -> dict[str, list[str]]:
    """Returns four days, and whether someone enjoyed their sport (Mitchell 1997, table 2.1).

    >>> days = enjoy_sport()
    >>> days["sky"], days["play"]
    (['sunny', 'sunny', 'rainy', 'sunny'], ['yes', 'yes', 'no', 'yes'])
    """
    return _columns(_ENJOY_SPORT)


def wine() -> dict[str, list[float] | list[str]]:
    """Returns thirteen measurements of 178 wines from three cultivars, from scikit-learn's copy of the UCI data set.

    >>> wines = wine()
    >>> len(wines), sorted(set(wines["cultivar"]))
    (14, ['class_0', 'class_1', 'class_2'])
    >>> wines["alcohol"][:3]
    [14.23, 13.2, 13.16]
    """
    from sklearn.datasets import load_wine

    wines = load_wine()
    columns = dict(zip(wines.feature_names, wines.data.T.tolist(), strict=True))
    return columns | {"cultivar": wines.target_names[wines.target].tolist()}


def docstrings() -> dict[str, list[Any]]:
    """Returns the docstrings of twelve modules of Python's standard library, about 2,000 texts, with the module of each.

    The other columns are the name and the kind of the object (function, method, property or class), its number of
    parameters (None if Python cannot tell), the number of lines of the text, and whether the name is private. Duplicate
    texts are removed. The number of texts depends on the version of Python.

    >>> docs = docstrings()
    >>> list(docs)
    ['name', 'text', 'kind', 'parameters', 'lines', 'private', 'module']
    >>> sorted(set(docs["module"]))[:4], len(docs["text"]) > 1_500
    (['asyncio', 'collections', 'decimal', 'email'], True)
    >>> i = docs["name"].index("tarfile.is_tarfile")
    >>> docs["kind"][i], docs["parameters"][i], docs["private"][i], docs["module"][i]
    ('function', 1, False, 'tarfile')
    """
    rows = list(_find_documented(MODULES))  # of each object: its name, docstring, kind and number of parameters
    owners = [row.name.partition(".")[0] for row in rows]  # the module of each
    if without_docstrings := [module for module in MODULES if module not in owners]:
        reason = "this Python strips docstrings, as it does with -OO or PYTHONOPTIMIZE=2. Run it without that option."
        raise errors.EmptyData(
            f"found no docstrings in {errors.listed(without_docstrings)}: {reason}", modules=without_docstrings
        )
    columns = dict(zip(_Described._fields, map(list, zip(*rows, strict=True)), strict=True))
    # Some part of a private name begins with an underscore; ``__init__`` and the like are public.
    underscored_parts = [[name_part for name_part in row.name.split(".") if name_part.startswith("_")] for row in rows]
    private = [any(not name_part.endswith("__") for name_part in name_parts) for name_parts in underscored_parts]
    return columns | {"lines": [len(row.text.splitlines()) for row in rows], "private": private, "module": owners}


class _Described(NamedTuple):
    """An object with a docstring: its qualified name, the docstring, its kind and its number of parameters."""

    name: str
    text: str
    kind: str
    parameters: int | None


def _find_documented(names: list[str]) -> Iterator[_Described]:
    """Yields the objects with docstrings in the modules ``names`` and their submodules, each docstring once, in the order
    of the sources.
    """
    earlier_docstrings: set[str] = set()
    for name in names:
        for module in _modules_in(name):
            for candidate in _members_of(module, module.__name__, module.__name__):
                if candidate.text and candidate.text not in earlier_docstrings:
                    earlier_docstrings.add(candidate.text)
                    yield candidate


def _modules_in(name: str) -> Iterator[ModuleType]:
    """Yields the module ``name`` and its submodules sorted by name, without programs and modules for other operating
    systems.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = import_module(name)
    except ImportError:  # asyncio.windows_events, for instance
        return
    yield module
    for submodule in sorted(info.name for info in pkgutil.iter_modules(getattr(module, "__path__", []))):
        if submodule not in ("__main__", "test", "tests"):
            yield from _modules_in(f"{name}.{submodule}")


def _members_of(holder: ModuleType | type, qualified_name: str, home: str) -> Iterator[_Described]:
    """Yields the functions and classes defined in a module, or the methods and classes in a class. ``holder``: the module
    or class; ``qualified_name``: its qualified name; ``home``: the name of the module. A ``candidate`` is anything that
    the holder has under a name.
    """
    for name, candidate in list(vars(holder).items()):
        if isinstance(candidate, (staticmethod, classmethod)):
            candidate = candidate.__func__
        kind = _kind(candidate, holder, home)
        if kind is not None:
            try:
                n_parameters = len(inspect.signature(candidate).parameters)
            except (NameError, TypeError, ValueError):  # properties, and C functions without a signature
                n_parameters = None
            yield _Described(f"{qualified_name}.{name}", _docstring(candidate), kind, n_parameters)
        if kind == "class":
            yield from _members_of(candidate, f"{qualified_name}.{name}", home)


def _kind(candidate: Any, holder: ModuleType | type, home: str) -> str | None:
    """Returns the kind of an object, ``candidate``: function, method, class or property; None for imported objects and
    plain values. ``holder``: the module or class that has it; ``home``: the name of the module.
    """
    in_class = isinstance(holder, type)
    if isinstance(candidate, type):
        is_defined_here = not isinstance(holder, type) or candidate.__qualname__.startswith(f"{holder.__qualname__}.")
        return "class" if candidate.__module__ == home and is_defined_here else None
    if isinstance(candidate, (MethodDescriptorType, ClassMethodDescriptorType)):
        return "method" if candidate.__objclass__ is holder else None
    if isinstance(candidate, (FunctionType, BuiltinFunctionType)):
        return ("method" if in_class else "function") if candidate.__module__ == home else None
    return "property" if in_class and isinstance(candidate, property) else None


def _docstring(candidate: Any) -> str:
    """Returns the docstring of an object without indentation; an empty text if it has none."""
    return inspect.cleandoc(candidate.__doc__) if isinstance(candidate.__doc__, str) else ""


def _columns(text: str) -> dict[str, list[str]]:
    """Returns the columns of a table that is written as text, with a header line and cells separated by spaces."""
    header, *rows = (line.split() for line in text.strip().splitlines())
    return {name: list(values) for name, values in zip(header, zip(*rows, strict=True), strict=True)}
