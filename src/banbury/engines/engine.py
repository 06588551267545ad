"""Engine: the protocol that Dask, Spark and pools of processes implement. Everything else is shared.

The module of each engine has a function ``engine(data, engine, partitions)`` that makes one; ``engine`` is what the user passed
(a client, a name, or None if the data determine it).

Work is a function of the number of a partition and its rows that returns a parcel, or None if there is nothing. Both can be
pickled, and work has no side effects: however often and wherever it runs, the parcel is the same. Rows are whatever ``bb.count``
reads: a pandas frame, an Arrow table or stream, a list of records or texts, the name of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from banbury.engines.parcels import Parcel
from banbury.progress import Ask

T = TypeVar("T")
PartWork = Callable[[int, Any], Parcel | None]  # (partition number, its rows) → parcel; None if there is nothing
Steps: TypeAlias = Generator[T, None, None]  # the consumer closes it to stop the work
FAN_IN = 8  # parcels that are added in one step


class Answer(Protocol):
    """Work that computes additional columns for the rows."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The names of the columns, each with its kind: boolean, integer, float, string or list (of strings)."""
        ...

    def __call__(self, rows: Any) -> Mapping[str, Any]:
        """Returns the columns for the rows of a partition, a value per row for each."""
        ...


class Engine(Protocol):
    """Where the partitions of a table are, and how work is done there."""

    name: str  # in a sentence
    n_partitions: int | None
    names: Sequence[str] | None  # stable names of the partitions, if they have any
    columns: Sequence[str]  # the columns of the rows, if known
    progress: Ask | None  # how many tasks are done, and their share, if that is known before their parcels arrive
    are_files: bool  # whether rows are file names, which workers read

    def first(self, take: PartWork) -> Steps[Parcel | None]:
        """Yields the parcels that ``take`` makes of the partitions, in order, perhaps None for an empty one, until the
        consumer stops.
        """
        ...

    def add_up_parts(self, work: PartWork) -> Steps[tuple[int, Parcel | None]]:
        """Adds the parcels that the work makes of all partitions on the engine, eight at a time. Yields pairs of the
        number of partitions done so far and a parcel, or None.

        Either the last parcel is the sum of all, or the parcels have no partition in common and the consumer adds
        them. Closing the iterator cancels the work.
        """
        ...

    def answer(self, work: Answer) -> Any:
        """Returns a lazy frame of the same kind, whose rows have the columns of the answer in addition to their own."""
        ...
