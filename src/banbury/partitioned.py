"""Data that live elsewhere: on Dask or Spark, or in parts for several processes. The verbs hand over to the engine there.

Nothing of an engine is imported to see whether data are its own: the package of their type tells. Each engine has a module of
its name in ``banbury.engines``, which is loaded when it is needed; ``banbury.engines.engine`` says what such a module has.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from banbury import errors

# The engine of things by the package of their type.
PACKAGES = {"dask": "dask", "distributed": "dask", "pyspark": "spark", "concurrent": "processes"}
EXTRAS = {"dask": "banbury[dask]", "spark": "banbury[spark]"}
WANTED = (
    "a client of Dask, a Spark session, 'dask://host:port', 'spark://host:port',"
    " 'processes', or an executor of concurrent.futures"
)


def elsewhere(data: Any, engine: Any = None, partitions: int | None = None) -> Any:
    """What does the work on data that live elsewhere: ``banbury.engines.Work``; None where the rows are here.

    ``engine`` says where; if not given, the data tell.
    """
    name = _engine_of(data) if engine is None else _named(engine)
    if name is None:
        errors.require(partitions is None, "partitions", partitions, "given with engine=, or for data of Dask or Spark")
        return None
    if partitions is not None:
        errors.check_whole("partitions", partitions, 1)
    try:
        adapter = import_module(f"banbury.engines.{name}")
    except ImportError as lacking:
        text = f"engine {name!r} needs the package {lacking.name!r}, which is not installed. "
        raise errors.MissingLibrary(f"{text}Install it: pip install '{EXTRAS.get(name, lacking.name)}'") from None
    return import_module("banbury.engines").Work(adapter.engine(data, engine, partitions))


def _engine_of(data: Any) -> str | None:
    """The engine that data live on, by their type; a list is what its first entry is."""
    if isinstance(data, (list, tuple)) and data:
        data = data[0]
    name = PACKAGES.get(type(data).__module__.partition(".")[0])
    return None if name == "processes" else name


def _named(engine: Any) -> str:
    """The name of an engine that was asked for."""
    known = {"dask", "spark", "processes"}
    if isinstance(engine, str):
        name = engine.partition("://")[0]
        name = "spark" if name in ("sc", "local") or name.startswith("local[") else name
        if name in known:
            return name
    else:
        for kind in type(engine).__mro__:
            if (found := PACKAGES.get(kind.__module__.partition(".")[0])) is not None:
                return found
    raise errors.bad_setting("engine", engine, WANTED)


def refuse_elsewhere(**settings: Any) -> None:
    """Raises where a setting is given that rows which live elsewhere cannot have."""
    for name, value in settings.items():
        errors.require(value is None, name, value, "left out where rows live elsewhere; it needs them in memory")
