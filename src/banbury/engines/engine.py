"""Engine: what is asked of Dask, of Spark, or of a pool of processes. All the rest is done once for all of them.

A module of an engine's name in this package has a function ``engine(data, engine, partitions)`` that makes one of these; data are
those of a user, ``engine`` is what was given (a client, a name, or None where the data themselves tell).

Work is a function of the number of a partition and its rows, which gives a parcel: a list of bytes, none of them longer than
``parcels.CHUNK``, so that each fits a binary cell of Arrow. It can be pickled, and changes nothing: whether it is run once
or twice, here or there, the parcel is the same. Rows are whatever ``bb.count`` reads: a frame of pandas, an Arrow table, a list
of records or texts, a stream of Arrow's, the name of a file.

Work and additions that have a method ``value`` give the same before it is packed; pickling packs it. An engine that keeps
results in a worker's memory until they are sent asks for that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from banbury.progress import Ask

T = TypeVar("T")
Parcel = list[bytes]
PartWork = Callable[[int, Any], Parcel]
Add = Callable[[Iterable[Parcel]], Parcel]
Steps: TypeAlias = Generator[T, None, None]  # closed when no more is wanted
FAN_IN = 8  # parcels that are added up at a time


class Answer(Protocol):
    """Work whose result is columns that stand beside those of the rows."""

    @property
    def columns(self) -> Mapping[str, str]:
        """Their names, each with its kind: boolean, integer, float, string or list (of strings)."""
        ...

    def __call__(self, rows: Any) -> Mapping[str, Any]:
        """The columns, of the rows of a partition."""
        ...


class Engine(Protocol):
    """Where partitions of a table are, and how work is done there."""

    name: str  # in a sentence
    n_partitions: int | None
    names: Sequence[str] | None  # what the partitions are called, whoever reads them and when; None: nothing
    columns: Sequence[str]  # of the rows, where they are known
    progress: Ask | None  # tasks that are done, and their share, where that is known before what they made comes
    are_files: bool  # whether rows are the names of files, which are read where the work is done

    def first(self, take: PartWork) -> Steps[Parcel]:
        """What the work makes of the first partition, the second and so on, for as long as it is asked."""
        ...

    def each(self, work: PartWork) -> Steps[tuple[int, Parcel]]:
        """What the work makes of each partition, as it is done. When the iterator is closed, what runs is cancelled."""
        ...

    def added(self, work: PartWork, add: Add) -> Steps[tuple[int, Parcel | None]]:
        """The same, with parcels added up on the engine, eight at a time; the number of partitions that are done.

        The last that comes, or each that is not None, are parts of the sum that have no partition in common.
        """
        ...

    def answered(self, work: Answer) -> Any:
        """A frame of the same kind, lazily: the rows with the columns of the answer beside theirs."""
        ...
