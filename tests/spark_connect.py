"""Run by the tests of Spark in a process of its own: a session of Spark Connect counts and answers as one process does."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import banbury as bb
from banbury import errors
from engine_rows import parts, rows, told_while_counting


def main() -> None:
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", category=FutureWarning)
    session: Any = (
        SparkSession.builder.remote("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    frame = rows(1500)
    schema = pa.Schema.from_pandas(frame, preserve_index=False)
    pieces = parts(frame, 4)
    tables = (pa.Table.from_pandas(piece, schema, preserve_index=False) for piece in pieces)
    first, *rest = map(session.createDataFrame, tables)
    data = first
    for part in rest:
        data = data.union(part)
    whole = bb.count(frame, "label", weights="weight")
    assert bb.count(data, "label", weights="weight") == whole
    model = bb.estimate(whole)
    some, same = first.drop("weight"), pieces[0].drop(columns="weight")
    answers = model.predict(some)
    assert type(answers) is type(some)
    assert [row["class"] for row in answers.collect()] == model.predict(same).tolist()
    assert bb.evaluate(model, some).accuracy == bb.evaluate(model, same).accuracy
    address = f"sc://{session.client.host}"
    assert bb.count(pieces, "label", engine=address) == bb.count(frame, "label")
    refused(lambda: bb.count(data, "lable"), errors.UnknownColumn, "no column 'lable'")
    progress_moves(session)
    interrupted(data)
    session.stop()
    refused(lambda: bb.count(data, "label"), errors.EngineError, "the Spark session is stopped")
    print("done")


def refused(ask: Any, kind: type[BaseException], wanted: str) -> None:
    with pytest.raises(kind, match=wanted):
        ask()


def progress_moves(session: Any) -> None:
    """Connect tells every two seconds how many tasks are done."""
    table = session.createDataFrame(rows(60)[["grade", "colour", "label"]]).repartition(10)
    slow = table.mapInArrow(partial(slowly, 1.2), table.schema)
    schema = bb.count(rows(60)[["grade", "colour", "label"]], "label").schema
    with pytest.MonkeyPatch.context() as patch:
        said = told_while_counting(patch, lambda: bb.count(slow, "label", schema=schema))
    assert any(0 < share < 1 for *_, share in said), said
    assert not session.client._progress_handlers


def interrupted(data: Any) -> None:
    """Ctrl-C ends the work on the server as well: what is asked next is answered soon."""
    slow = data.mapInArrow(partial(slowly, 120.0), data.schema)
    threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    refused(lambda: bb.count(slow, "label"), KeyboardInterrupt, "")
    begun = time.monotonic()
    assert data.count() == 1500 and time.monotonic() - begun < 60


def slowly(seconds: float, batches: Any) -> Any:
    for batch in batches:
        time.sleep(seconds)
        yield batch


if __name__ == "__main__":
    main()
