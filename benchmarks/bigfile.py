"""A CSV file larger than one wants to hold: the peak memory of counting 100 MB and 1 GB. Only when asked for by name."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv

from benchmarks import mixed
from benchmarks.measure import Figure, Setting, WrongAnswer, say
from benchmarks.memory import in_child, peak

SMALL, LARGE = 100_000_000, 1_000_000_000  # bytes
AT_MOST = 1.25  # times the peak of the small file


def tasks(setting: Setting) -> Iterator[Figure]:
    sizes = (SMALL // 50, LARGE // 50) if setting.small else (SMALL, LARGE)
    with tempfile.TemporaryDirectory() as folder:
        found = [counted(Path(folder) / "big.csv", size, setting) for size in sizes]
    for report, size in zip(found, sizes, strict=True):
        say(f"bigfile: {size / 1e6:,.0f} MB in {report['seconds']:.1f} s, peak {report['peak'] / 1e6:,.0f} MB")
    first, second = (report["peak"] for report in found)
    what = f"CSV of {sizes[1] / 1e6:,.0f} MB beside {sizes[0] / 1e6:,.0f} MB"
    seen = f"{second / 1e6:,.0f} MB beside {first / 1e6:,.0f} MB; every row counted"
    aim = None if setting.small else AT_MOST
    yield Figure(
        "bigfile", "peak of count", what, second / first, None, "", seen, at_most=aim, unit="× the smaller file's"
    )


def counted(path: Path, size: int, setting: Setting) -> dict[str, Any]:
    """Writes a file of about that many bytes and counts it in a process of its own."""
    say(f"bigfile: writing {size / 1e6:,.0f} MB")
    block, rows = mixed.table(20_000), 0
    with path.open("wb") as file:
        while file.tell() < size:
            options = pa_csv.WriteOptions(include_header=rows == 0, quoting_style="none")
            pa_csv.write_csv(block, file, options)
            rows += len(block)
    report = in_child("bigfile", str(path), threads=setting.threads)
    path.unlink()
    if report["rows"] != rows:
        raise WrongAnswer(f"{report['rows']:,} rows were counted of {rows:,}")
    return report


def count(path: str) -> dict[str, Any]:
    import banbury as bb

    start = time.perf_counter()
    tally = bb.count(path, target="side")
    return {"rows": tally.n_rows, "seconds": time.perf_counter() - start, "peak": peak()}


if __name__ == "__main__":
    print(json.dumps(count(sys.argv[1])))
