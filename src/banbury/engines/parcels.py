"""Parcels: the values that work makes of partitions, and how they are sent and added."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from banbury import __version__, errors
from banbury.files import FORMAT

CELL_BYTES = 1 << 17  # 10,000 cells, which Spark sends at a time, stay below what a column of Arrow can hold


@dataclass(frozen=True)
class Parcel:
    """The value that work made of some partitions, which can be added to that of others."""

    partitions: tuple[int, ...]  # their numbers
    value: Any  # the sum of what work made of them

    def __add__(self, other: Parcel) -> Parcel:
        """Returns the parcel of the partitions of this and the ``other``, with the sum of their values. Raises an error
        if they share a partition.
        """
        if shared := set(self.partitions) & set(other.partitions):
            raise errors.part_twice(map(str, shared))
        return Parcel(self.partitions + other.partitions, self.value + other.value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the parcel with the version of this library, which is checked before anything is unpickled."""
        return _open, (this_library(), pickle.dumps((self.partitions, self.value)))


def _open(library: Mapping[str, Any], content: bytes) -> Parcel:
    """Restores a pickled parcel; raises EngineError if its library has another file format. ``library`` is what
    ``this_library`` returned there, and ``content`` has the pickled partition numbers and value.
    """
    check_format(library)
    return Parcel(*pickle.loads(content))


def add_up(parcels: Iterable[Parcel | None]) -> Parcel | None:
    """Returns the sum of parcels, some of which may be None; one whose partitions are in the sum already is skipped.
    None without any parcel.
    """
    total: Parcel | None = None
    for parcel in parcels:
        if parcel is None or (total is not None and set(parcel.partitions) <= set(total.partitions)):
            continue
        total = parcel if total is None else total + parcel
    return total


def this_library() -> dict[str, Any]:
    """Returns the format of this library's files and its version, as "format" and "library"."""
    return {"format": FORMAT, "library": __version__}


def check_format(library: Mapping[str, Any]) -> None:
    """Raises EngineError if a worker's library, of which ``this_library`` told the version, has another file format."""
    if library["format"] != FORMAT:
        raise errors.EngineError(
            f"a worker uses Banbury {library['library']}, whose tallies have format {library['format']}, but this is "
            f"Banbury {__version__} with format {FORMAT}. Install the same version everywhere: pip install "
            f"banbury=={__version__}",
            **library,
        )


def lacking_package(engine: str, text: str, where: str = "") -> errors.EngineError | None:
    """Returns the error that says what to install on workers, if ``text``, the message of a worker's error, says that a
    package is missing; otherwise None. ``engine`` is its name, and ``where`` has words that follow "on every worker".
    """
    for package in ("banbury", "pyarrow", "numpy", "scipy"):
        if f"No module named '{package}" in text:
            requirement = f"banbury=={__version__}" if package == "banbury" else package
            return errors.EngineError(
                f"a {engine} worker lacks the package {package!r}. Install it on every worker{where}: pip install {requirement}",
                package=package,
            )
    return None


def in_cells(
    partition: int, parcel_or_error: Parcel | errors.BanburyError, size: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yields a pickled parcel, or an error instead, cut into cells of ``size`` bytes (None: the usual size). A cell is
    an Arrow batch of one row: the number of the partition, the number of the cell, how many cells there are, and its
    bytes.
    """
    content = pickle.dumps(parcel_or_error)
    size = size or CELL_BYTES
    starts = range(0, len(content), size)  # of each cell, the position of its first byte
    for cell_number, start in enumerate(starts):
        cell = {"partition": [partition], "cell": [cell_number], "n_cells": [len(starts)]}
        yield pa.RecordBatch.from_pydict({**cell, "content": pa.array([content[start : start + size]], pa.binary())})


def parcels_in(cells: Iterable[tuple[int, int, int, bytes]]) -> Iterator[tuple[int, Parcel]]:
    """Restores parcels from cells that ``in_cells`` made: tuples of partition, cell number, number of cells and bytes. Yields
    each partition once, as soon as it is complete. Raises the error that was sent instead of a parcel.
    """
    incomplete = dict[int, dict[int, bytes]]()  # partition → cell number → bytes
    complete = set[int]()  # partitions
    for partition, cell_number, n_cells, content in cells:
        if partition in complete:
            continue
        bytes_by_cell = incomplete.setdefault(partition, {})
        bytes_by_cell[cell_number] = content
        if len(bytes_by_cell) == n_cells:
            complete.add(partition)
            parcel_or_error = pickle.loads(
                b"".join(content for _, content in sorted(incomplete.pop(partition).items()))
            )
            if isinstance(parcel_or_error, errors.BanburyError):
                raise parcel_or_error
            yield partition, parcel_or_error
