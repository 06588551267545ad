"""Engines: counting on a user's Dask or Spark, or in several processes; exact even if workers die and tasks are repeated.

A partition's tally is a value, the same whichever worker makes it and how often. ``Partitions`` asks an engine for these values
and adds each once. See ``banbury.engines.engine`` for the little that an engine must do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from banbury import errors
from banbury.tally.partitioned import open_by

if TYPE_CHECKING:
    from banbury.engines.partitions import Partitions

# Engines by the package that defines the type of the data.
ENGINE_BY_PACKAGE = {"dask": "dask", "distributed": "dask", "pyspark": "spark", "concurrent": "processes"}
PACKAGE_TO_INSTALL = {"dask": "banbury[dask]", "spark": "banbury[spark]"}
ENGINES_IN_WORDS = (
    "a Dask client, a Spark session, 'dask://host:port', 'spark://host:port',"
    " 'processes', or an executor of concurrent.futures"
)


def open_partitions(data: Any, engine: Any = None, partitions: int | None = None) -> Partitions | None:
    """Returns the partitions of data on the given engine, or on the one that the data live on; None for data that need
    no engine. ``engine`` is a name, an address, a client, a session or an executor. ``partitions`` is the number of
    parts into which data on this machine are cut; None lets the engine choose.

    Engines are imported here, so that workers, which load only a part of this package, do not import them.
    """
    name = _engine_of(data) if engine is None else _name_of(engine)  # "dask", "spark", "processes" or None
    if name is None:
        return None
    if partitions is not None:
        errors.check_whole("partitions", partitions, 1)
    import banbury.engines.rows  # noqa: F401
    from banbury.engines.partitions import Partitions

    return Partitions(_adapter(name).engine(data, engine, partitions))


def _adapter(name: str) -> Any:
    """Returns the module of the engine with this ``name``: "dask", "spark" or "processes". Raises MissingLibrary if its
    library is not installed.
    """
    try:
        if name == "dask":
            from banbury.engines import dask as adapter
        elif name == "spark":
            from banbury.engines import spark as adapter  # type: ignore[no-redef]
        else:
            from banbury.engines import processes as adapter  # type: ignore[no-redef]
    except ImportError as error:
        raise errors.MissingLibrary(
            f"engine {name!r} needs the package {error.name!r}, which is not installed. Install it with: pip install "
            f"'{PACKAGE_TO_INSTALL.get(name, error.name)}'"
        ) from None
    return adapter


def _engine_of(data: Any) -> str | None:
    """Returns the name of the engine that data live on, by their type (for a list that of its first entry); None for
    other data.
    """
    if isinstance(data, (list, tuple)) and data:
        data = data[0]
    name = ENGINE_BY_PACKAGE.get(type(data).__module__.partition(".")[0])
    return None if name == "processes" else name


def _name_of(engine: Any) -> str:
    """Returns the name ("dask", "spark" or "processes") of the engine that a user passed as a name, an address, a
    client, a session or an executor. Raises BadSetting for anything else.
    """
    engine_names = {"dask", "spark", "processes"}
    if isinstance(engine, str):
        name = engine.partition("://")[0]
        name = "spark" if name in ("sc", "local") or name.startswith("local[") else name
        if name in engine_names:
            return name
    else:
        for base_class in type(engine).__mro__:
            if (package := ENGINE_BY_PACKAGE.get(base_class.__module__.partition(".")[0])) is not None:
                return package
    raise errors.bad_setting("engine", engine, ENGINES_IN_WORDS)


open_by(open_partitions)
