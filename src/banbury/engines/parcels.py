"""Parcels: how a tally travels, with what else is to be told of the rows that it counts. A list of bytes, none too long."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from banbury import __version__, errors
from banbury.engines.engine import Answer, Parcel
from banbury.files import FORMAT, from_bytes, to_bytes
from banbury.tally.tally import Tally

CHUNK = 1 << 28  # bytes of a piece; binary cells of Arrow end at 2**31
CELL = 1 << 17  # bytes; 10,000 of them, which Spark sends at a time, stay below what a column of Arrow can hold


@dataclass(frozen=True)
class Wider:
    """What some partitions show of columns that the first rows did not."""

    fractional: frozenset[str] = frozenset()  # numbers that are not all whole
    varied: frozenset[str] = frozenset()  # more than one value
    kinds: Mapping[str, str] = field(default_factory=dict)  # values, where there was none, or of another kind

    def __bool__(self) -> bool:
        return bool(self.fractional or self.varied or self.kinds)

    def __or__(self, other: Wider) -> Wider:
        kinds = {**self.kinds, **other.kinds}
        for name in self.kinds.keys() & other.kinds.keys():
            kinds[name] = wider_kind(self.kinds[name], other.kinds[name])
        return Wider(self.fractional | other.fractional, self.varied | other.varied, kinds)

    @property
    def columns(self) -> list[str]:
        return sorted({*self.fractional, *self.varied, *self.kinds})


NUMBERS = ("boolean", "integer", "float")  # from narrow to wide


def wider_kind(a: str, b: str) -> str:
    """The kind of a column that is of one kind in some partitions and of another in others."""
    if a == b:
        return a
    return NUMBERS[max(NUMBERS.index(a), NUMBERS.index(b))] if {a, b} <= set(NUMBERS) else "string"


@dataclass(frozen=True)
class CountedPartitions:
    """The tally of some partitions, or what they show that it must be counted with."""

    partitions: tuple[int, ...]
    n_rows: int
    tally: Tally | None
    wider: Wider = Wider()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: CountedPartitions) -> CountedPartitions:
        if twice := set(self.partitions) & set(other.partitions):
            raise errors.part_twice(map(str, twice))
        wider, said = self.wider | other.wider, tuple(dict.fromkeys(self.warnings + other.warnings))
        both = not wider and self.tally is not None and other.tally is not None
        tally = self.tally + other.tally if both else None  # type: ignore[operator]
        return CountedPartitions(self.partitions + other.partitions, self.n_rows + other.n_rows, tally, wider, said)

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels as a parcel, which is opened by who adds it; where it stays, it is not packed."""
        return list, (self.packed(),)

    def packed(self) -> Parcel:
        wider = {"fractional": sorted(self.wider.fractional), "varied": sorted(self.wider.varied)}
        head = {
            **of_this_library(),
            "partitions": self.partitions,
            "n_rows": self.n_rows,
            "wider": {**wider, "kinds": dict(self.wider.kinds)},
            "warnings": self.warnings,
        }
        return [json.dumps(head).encode(), *in_chunks(b"" if self.tally is None else to_bytes(self.tally))]

    @classmethod
    def unpacked(cls, parcel: Sequence[bytes]) -> CountedPartitions:
        head = json.loads(bytes(parcel[0]))
        check_format(head)
        shown, partitions = head["wider"], tuple(head["partitions"])
        wider = Wider(frozenset(shown["fractional"]), frozenset(shown["varied"]), shown["kinds"])
        what = f"the tally of partition {partitions[0]:,}"
        tally: Any = from_bytes(b"".join(parcel[1:]), what) if len(parcel) > 1 else None
        return cls(partitions, head["n_rows"], tally, wider, tuple(head["warnings"]))


def of_this_library() -> dict[str, Any]:
    return {"format": FORMAT, "library": __version__}


def check_format(head: Mapping[str, Any]) -> None:
    """Raises where a worker has a Banbury of another format."""
    if head["format"] != FORMAT:
        text = f"a worker counts with Banbury {head['library']}, whose tallies have format {head['format']}, and this is Banbury "
        text += f"{__version__}, of format {FORMAT}. Install the same version everywhere: pip install banbury=={__version__}"
        raise errors.EngineError(text, format=head["format"], library=head["library"])


def lacking_package(engine: str, text: str, where: str = "") -> errors.EngineError | None:
    """What is to be installed on workers, if an error of theirs says that they lack it."""
    for package in ("banbury", "pyarrow", "numpy", "scipy"):
        if f"No module named '{package}" in text:
            wanted = f"banbury=={__version__}" if package == "banbury" else package
            said = f"a worker of {engine} has no package {package!r}. Install it on every worker{where}"
            return errors.EngineError(f"{said}: pip install {wanted}", package=package)
    return None


def in_chunks(content: bytes) -> list[bytes]:
    return [content[at : at + CHUNK] for at in range(0, len(content), CHUNK)]


def in_cells(partition: int, made: Parcel | errors.BanburyError, size: int = CELL) -> Iterator[pa.RecordBatch]:
    """A parcel, or the error in its place, as rows of Arrow: cells beside the number of their partition and their place."""
    content = pickle.dumps(made)
    starts = range(0, len(content), size)
    for place, at in enumerate(starts):
        cell = {"partition": [partition], "place": [place], "n_places": [len(starts)]}
        yield pa.RecordBatch.from_pydict({**cell, "content": pa.array([content[at : at + size]], pa.binary())})


def parcels_in(cells: Iterable[tuple[int, int, int, bytes]]) -> Iterator[tuple[int, Parcel]]:
    """Parcels, put together again as soon as their cells are complete, each partition once; raises where one is an error."""
    waiting, done = dict[int, dict[int, bytes]](), set[int]()
    for partition, place, n_places, content in cells:
        if partition in done:
            continue
        found = waiting.setdefault(partition, {})
        found[place] = content
        if len(found) == n_places:
            done.add(partition)
            made = pickle.loads(b"".join(content for _, content in sorted(waiting.pop(partition).items())))
            if isinstance(made, errors.BanburyError):
                raise made
            yield partition, made


def arrow_columns(work: Answer, rows: Any) -> dict[str, pa.Array]:
    """The columns of an answer to rows, as Arrow has them."""
    types = {"boolean": pa.bool_(), "integer": pa.int64(), "float": pa.float64(), "string": pa.string()}
    types["list"] = pa.list_(pa.string())
    found = {}
    for name, values in work(rows).items():
        if (kind := work.columns[name]) == "string":
            values = [None if value is None else str(value) for value in values]
        found[name] = pa.array(values, types[kind])
    return found


class Adding:
    """The sum of parcels, as a parcel, one after the other: what an engine does with eight at a time.

    ``value`` is the sum before it is packed.
    """

    def __call__(self, parcels: Iterable[Any]) -> Parcel:
        """One alone stays as it is."""
        each = iter(parcels)
        few = list(islice(each, 2))
        return few[0] if len(few) == 1 and isinstance(few[0], list) else self.value(chain(few, each)).packed()

    def value(self, parcels: Iterable[Any]) -> CountedPartitions:
        return total(map(opened, parcels))


def opened(parcel: Any) -> CountedPartitions:
    """What is in a parcel, or was never packed."""
    return parcel if isinstance(parcel, CountedPartitions) else CountedPartitions.unpacked(parcel)


def total(each: Iterable[CountedPartitions]) -> CountedPartitions:
    """The sum of what was counted, one after the other; of a partition that comes twice, once."""
    found: CountedPartitions | None = None
    for counted in each:
        if found is not None and set(counted.partitions) <= set(found.partitions):
            continue
        found = counted if found is None else found + counted
    if found is None:
        raise errors.empty_data(None, "there is no partition")
    return found


def repeat_warnings(said: Iterable[str]) -> None:
    """Gives the warnings of workers here."""
    for text in said:
        errors.warn(errors.BanburyWarning(text))
