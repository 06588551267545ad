"""Run by the tests of Spark in a process of its own: a count at a master's address, and one whose tasks are speculated."""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import banbury as bb
from banbury import cli
from engine_rows import parts, rows, written

SLOW = 60.0  # seconds; the copy is done long before


def main(master: str, folder: Path) -> None:
    warnings.filterwarnings("ignore", category=FutureWarning)
    settings = {"spark.speculation": "true", "spark.speculation.quantile": "0.5", "spark.speculation.interval": "50ms"}
    settings |= {"spark.speculation.minTaskRuntime": "100ms", "spark.executor.memory": "512m"}
    asked = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{asked} pyspark-shell"
    frame = rows(600)
    pattern, out, whole = (
        written(folder, parts(frame, 5), "parquet"),
        folder / "tally.banbury",
        bb.count(frame, "label"),
    )
    assert cli.main(["tally", "count", pattern, "--target", "label", "--engine", master, "-o", str(out)]) == 0
    found = bb.load(out)
    assert found == whole and isinstance(found, bb.Tally) and len(found.parts) == 5
    begun = time.monotonic()
    dawdle(folder)
    assert bb.count(pattern, "label", engine=master) == whole
    assert time.monotonic() - begun < SLOW
    # The first copy may be overtaken before it has written its name; a later copy is there only if there were two.
    copies = sorted(path.name for path in folder.iterdir() if path.name.startswith("2 "))
    assert set(copies) - {"2 0"}, f"nothing was speculated: {copies}"
    print("done")


def dawdle(folder: Path) -> None:
    """The first copy of the task of one partition takes long."""
    from banbury.engines import spark  # here, since this file is read where Spark is not installed

    added = spark.Spark.add_up_parts

    def wrapped(self: Any, work: Any) -> Any:
        def run(partition: int, rows: Any) -> Any:  # inside, so that workers need not find this file
            import time

            from pyspark import TaskContext

            attempt = TaskContext.get().attemptNumber()
            (folder / f"{partition} {attempt}").touch()
            if partition == 2 and attempt == 0:
                time.sleep(60)
            return work(partition, rows)

        return added(self, run)

    spark.Spark.add_up_parts = wrapped  # type: ignore[method-assign]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
