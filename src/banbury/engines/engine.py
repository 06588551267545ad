"""Engine: what is asked of Dask, of Spark, or of a pool of processes. All the rest is done once for all of them.

A module of an engine's name in this package has a function ``engine(data, engine, partitions)`` that makes one of these; data are
those of a user, ``engine`` is what was given (a client, a name, or None where the data themselves tell).

Work is a function of the number of a partition and its rows, which makes a parcel, or None where there is nothing. Both can be
pickled, and work changes nothing: whether it is run once or twice, here or there, the parcel is the same. Rows are whatever
``bb.count`` reads: a frame of pandas, an Arrow table, a list of records or texts, a stream of Arrow's, the name of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from banbury.engines.parcels import Parcel
from banbury.progress import Ask

T = TypeVar("T")
PartWork = Callable[[int, Any], Parcel | None]
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

    def first(self, take: PartWork) -> Steps[Parcel | None]:
        """What the work makes of the first partition, the second and so on, for as long as it is asked."""
        ...

    def add_up_parts(self, work: PartWork) -> Steps[tuple[int, Parcel | None]]:
        """What the work makes of all partitions, added up on the engine, eight at a time; and how many partitions are done.

        The last that comes, or each that is not None, are parts of the sum that have no partition in common. When the
        iterator is closed, what runs is cancelled.
        """
        ...

    def answer(self, work: Answer) -> Any:
        """A frame of the same kind, lazily: the rows with the columns of the answer beside theirs."""
        ...
