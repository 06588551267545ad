"""Parcels: what work made of some partitions, as it travels and is added up."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from banbury import __version__, errors
from banbury.files import FORMAT

CELL = 1 << 17  # bytes; 10,000 of them, which Spark sends at a time, stay below what a column of Arrow can hold


@dataclass(frozen=True)
class Parcel:
    """What work made of some partitions: a value that can be added to that of others."""

    partitions: tuple[int, ...]
    value: Any

    def __add__(self, other: Parcel) -> Parcel:
        if twice := set(self.partitions) & set(other.partitions):
            raise errors.part_twice(map(str, twice))
        return Parcel(self.partitions + other.partitions, self.value + other.value)

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels with the version that made it, which is looked at before anything else is."""
        return _open, (this_library(), pickle.dumps((self.partitions, self.value)))


def _open(library: Mapping[str, Any], content: bytes) -> Parcel:
    check_format(library)
    return Parcel(*pickle.loads(content))


def add_up(parcels: Iterable[Parcel | None]) -> Parcel | None:
    """The sum of parcels, one after the other; of partitions that come twice, once. None where there is none."""
    total: Parcel | None = None
    for parcel in parcels:
        if parcel is None or (total is not None and set(parcel.partitions) <= set(total.partitions)):
            continue
        total = parcel if total is None else total + parcel
    return total


def this_library() -> dict[str, Any]:
    return {"format": FORMAT, "library": __version__}


def check_format(library: Mapping[str, Any]) -> None:
    """Raises where a worker has a Banbury of another format."""
    if library["format"] != FORMAT:
        raise errors.EngineError(
            f"a worker uses Banbury {library['library']}, whose tallies have format {library['format']}, but this is "
            f"Banbury {__version__}with format {FORMAT}. Install the same version everywhere: pip install "
            f"banbury=={__version__}",
            **library,
        )


def lacking_package(engine: str, text: str, where: str = "") -> errors.EngineError | None:
    """What is to be installed on workers, if an error of theirs says that they lack it."""
    for package in ("banbury", "pyarrow", "numpy", "scipy"):
        if f"No module named '{package}" in text:
            requirement = f"banbury=={__version__}" if package == "banbury" else package
            return errors.EngineError(
                f"a {engine} worker lacks the package {package!r}. Install it on every worker{where}: pip install {requirement}",
                package=package,
            )
    return None


def in_cells(partition: int, made: Parcel | errors.BanburyError, size: int | None = None) -> Iterator[pa.RecordBatch]:
    """A parcel, or the error in its place, as rows of Arrow: cells beside the number of their partition and their place."""
    content = pickle.dumps(made)
    size = size or CELL
    starts = range(0, len(content), size)
    for place, at in enumerate(starts):
        cell = {"partition": [partition], "place": [place], "n_places": [len(starts)]}
        yield pa.RecordBatch.from_pydict({**cell, "content": pa.array([content[at : at + size]], pa.binary())})


def parcels_in(cells: Iterable[tuple[int, int, int, bytes]]) -> Iterator[tuple[int, Parcel]]:
    """Parcels, put together again as soon as their cells are complete, each partition once; raises where one is an error."""
    incomplete = dict[int, dict[int, bytes]]()
    done = set[int]()
    for partition, place, n_places, content in cells:
        if partition in done:
            continue
        pieces = incomplete.setdefault(partition, {})
        pieces[place] = content
        if len(pieces) == n_places:
            done.add(partition)
            made = pickle.loads(b"".join(content for _, content in sorted(incomplete.pop(partition).items())))
            if isinstance(made, errors.BanburyError):
                raise made
            yield partition, made
