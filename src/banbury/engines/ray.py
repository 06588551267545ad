"""Ray: blocks of a dataset, each made a parcel by ``map_batches`` where it is; parcels are added here as they come.

Blocks have no numbers. Ray itself sees to it that of a task that is run again one result is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
from ray.data import Dataset
from ray.exceptions import RayError

from banbury import errors
from banbury.distributions.scales import SAMPLE
from banbury.engines.engine import Add, Answer, Parcel, PartWork, Steps
from banbury.engines.parcels import arrow_columns, in_cells, lacking_package, parcels_in

BLOCKS: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": None}  # whole ones


def engine(data: Any, engine: Any, partitions: int | None) -> Ray:
    """The blocks of a dataset, as they are."""
    wanted = "a ray.data.Dataset, which comes in blocks: repartition() it for others"
    errors.require(isinstance(data, Dataset) and partitions is None, "data of Ray", type(data).__name__, wanted)
    if leaves_out := data.context.max_errored_blocks:
        wanted = "0, as blocks that fail would be left out of the count"
        raise errors.bad_setting("max_errored_blocks of the dataset", leaves_out, wanted)
    return Ray(data)


class Ray:
    """Blocks that Ray computes where they are."""

    name = "Ray"
    n_partitions: int | None = None
    names: Sequence[str] | None = None
    progress = None
    are_files, are_numbered = False, False

    def __init__(self, data: Any) -> None:
        self.data = data

    @property
    def columns(self) -> Sequence[str]:
        return tuple(map(str, self.data.columns() or ()))

    def first(self, take: PartWork) -> Steps[Parcel]:
        with _explained():
            for number, rows in enumerate(self.data.limit(SAMPLE).iter_batches(**BLOCKS)):
                yield take(number, rows)

    def each(self, work: PartWork, skip: Collection[int]) -> Steps[tuple[int, Parcel]]:
        with _explained():
            made = self.data.map_batches(partial(_made, work), **BLOCKS).iter_batches(**BLOCKS)
            yield from parcels_in(row for table in made for row in zip(*map(_values, table.columns), strict=True))

    def added(self, work: PartWork, add: Add) -> Steps[tuple[int, Parcel | None]]:
        """What is made of each block is added here: the sum and one more are held."""
        return ((n_done, parcel) for n_done, (_, parcel) in enumerate(self.each(work, ()), 1))

    def answered(self, work: Answer) -> Any:
        return self.data.map_batches(partial(_answered, work), batch_format="pyarrow")


def _values(column: Any) -> Any:
    return column.to_pylist()


def _made(work: PartWork, rows: Any) -> Any:
    """What the work makes of a block, as a table of cells; an error says that it is of a block."""
    number = uuid4().int >> 65
    try:
        made: Parcel | errors.BanburyError = work(number, rows)
    except errors.BanburyError as problem:
        text = str(problem).removeprefix(f"partition {number:,}: ")
        made = type(problem)(f"a block of Ray's: {text}", **{**problem._parts, "partition": None})
    return pa.Table.from_batches(in_cells(number, made))


def _answered(work: Answer, rows: Any) -> Any:
    for name, column in arrow_columns(work, rows).items():
        rows = rows.append_column(name, column)
    return rows


@contextmanager
def _explained() -> Iterator[None]:
    """What goes wrong on Ray, in words; errors of a user's own dataset stay as they are."""
    try:
        yield
    except RayError as problem:
        if (lacking := lacking_package("Ray", str(problem))) is None:
            raise
        raise lacking from problem
