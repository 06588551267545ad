"""Engines: the same count on a user's Dask or Spark, or on several processes, exact with workers killed and tasks repeated.

A partition's tally is a value: the same whoever makes it, when, and how often. ``Partitions`` asks an engine for these values,
and adds each partition once. What an engine must do for that is little: see ``banbury.engines.engine``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from banbury import errors
from banbury.tally.partitioned import open_by

if TYPE_CHECKING:
    from banbury.engines.partitions import Partitions

# The engine of things by the package of their type.
PACKAGES = {"dask": "dask", "distributed": "dask", "pyspark": "spark", "concurrent": "processes"}
EXTRAS = {"dask": "banbury[dask]", "spark": "banbury[spark]"}
WANTED = (
    "a Dask client, a Spark session, 'dask://host:port', 'spark://host:port',"
    " 'processes', or an executor of concurrent.futures"
)


def open_partitions(data: Any, engine: Any = None, partitions: int | None = None) -> Partitions | None:
    """The partitions of data on an engine: the one that is given, or that whose data they are; None of any other data.

    An engine is imported when its data come. Workers, which load a part of this package, need not load what is imported here.
    """
    name = _engine_of(data) if engine is None else _name_of(engine)
    if name is None:
        return None
    if partitions is not None:
        errors.check_whole("partitions", partitions, 1)
    import banbury.engines.rows  # noqa: F401
    from banbury.engines.partitions import Partitions

    return Partitions(_adapter(name).engine(data, engine, partitions))


def _adapter(name: str) -> Any:
    """The module of an engine; raises where what it needs is not installed."""
    try:
        if name == "dask":
            from banbury.engines import dask as adapter
        elif name == "spark":
            from banbury.engines import spark as adapter  # type: ignore[no-redef]
        else:
            from banbury.engines import processes as adapter  # type: ignore[no-redef]
    except ImportError as lacking:
        raise errors.MissingLibrary(
            f"engine {name!r} needs the package {lacking.name!r}, which is not installed. Install it with: pip install "
            f"'{EXTRAS.get(name, lacking.name)}'"
        ) from None
    return adapter


def _engine_of(data: Any) -> str | None:
    """The engine that data live on, by their type; a list is what its first entry is."""
    if isinstance(data, (list, tuple)) and data:
        data = data[0]
    name = PACKAGES.get(type(data).__module__.partition(".")[0])
    return None if name == "processes" else name


def _name_of(engine: Any) -> str:
    """The name of an engine that was asked for."""
    engine_names = {"dask", "spark", "processes"}
    if isinstance(engine, str):
        name = engine.partition("://")[0]
        name = "spark" if name in ("sc", "local") or name.startswith("local[") else name
        if name in engine_names:
            return name
    else:
        for kind in type(engine).__mro__:
            if (package := PACKAGES.get(kind.__module__.partition(".")[0])) is not None:
                return package
    raise errors.bad_setting("engine", engine, WANTED)


open_by(open_partitions)
