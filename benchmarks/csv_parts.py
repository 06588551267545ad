"""Where the time of a CSV goes: `python -m benchmarks.csv_parts` prints processor seconds for the file of `mixed`.

Arrow's parser alone with words as strings, the same with our encoding of the words, and Arrow's own dictionary encoding.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

import banbury as bb
from banbury.readers.arrow import Strings
from banbury.readers.blocks import Block, cut
from benchmarks.mixed import NUMERIC, ROWS, table


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixed.csv"
        whole = table(ROWS)
        pa_csv.write_csv(whole, path, pa_csv.WriteOptions(quoting_style="none"))
        names = whole.column_names
        blocks = list(cut(str(path), path.read_bytes().index(b"\n") + 1))
        print(f"{path.stat().st_size / 1e6:.0f} MB in {len(blocks)} blocks; processor seconds, least of 3:")
        codes = pa.dictionary(pa.int32(), pa.string())
        parts: dict[str, Callable[[], Any]] = {
            "parse, words as strings": lambda: [parsed(block, names, pa.string()) for block in blocks],
            "parse, words as dictionaries": lambda: [parsed(block, names, codes) for block in blocks],
            "parse, and our encoding": lambda: [encoded(parsed(block, names, pa.string())) for block in blocks],
            "bb.count, all of it": lambda: bb.count(str(path), "side"),
        }
        for what, work in parts.items():
            print(f"  {least(work):.2f}  {what}")


def least(work: Callable[[], Any]) -> float:
    def once() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once() for _ in range(3))


def parsed(block: Block, names: list[str], words: pa.DataType) -> pa.Table:
    types = {name: pa.float64() if name in NUMERIC else words for name in names}
    return pa_csv.read_csv(
        pa.BufferReader(block.data),
        pa_csv.ReadOptions(use_threads=False, block_size=2 * len(block.data) + 1024, column_names=names),
        pa_csv.ParseOptions(newlines_in_values=True),
        pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True),
    )


def encoded(read: pa.Table) -> None:
    for column in read.columns:
        if pa.types.is_string(column.type):
            Strings(column.chunk(0), True).encode()


if __name__ == "__main__":
    main()
