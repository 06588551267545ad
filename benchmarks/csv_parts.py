"""Where the time of a CSV goes: `python -m benchmarks.csv_parts` prints processor seconds for the file of `mixed`.

Arrow's parser alone with words as strings, the same with our encoding of the words, Arrow's own dictionary encoding, our parser.
Then all of a count on one thread, and what of it is done by the thread that adds up, which is the share that no further thread
helps: one more reads ahead, and all others parse and count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import banbury as bb
from banbury import _core
from banbury.readers.arrow import Strings
from banbury.readers.blocks import Block, cut
from benchmarks.measure import ours_on
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
            "our parser, which encodes": lambda: [plain(block, names) for block in blocks],
        }
        for what, work in parts.items():
            print(f"  {least(work, time.process_time):.2f}  {what}")
        count = ours_on(1, lambda: bb.count(str(path), "side"))
        whole_time, serial = least(count, time.process_time), least(count, time.thread_time)
        print(f"  {whole_time:.2f}  bb.count, all of it, on one thread")
        print(f"  {serial:.2f}  of that, the thread that adds up: {serial / whole_time:.0%}")


def least(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    def once() -> float:
        start = clock()
        work()
        return clock() - start

    return min(once() for _ in range(3))


def parsed(block: Block, names: list[str], words: pa.DataType) -> pa.Table:
    types = {name: pa.float64() if name in NUMERIC else words for name in names}
    return pa_csv.read_csv(
        pa.BufferReader(block.data),
        pa_csv.ReadOptions(use_threads=False, block_size=2 * len(block.data) + 1024, column_names=names),
        pa_csv.ParseOptions(newlines_in_values=True),
        pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True),
    )


def plain(block: Block, names: list[str]) -> Any:
    kinds = "".join("f" if name in NUMERIC else "s" for name in names)
    nothing = [b""] * len(names)
    return _core.parse_fields(np.frombuffer(block.data, np.uint8), ord(","), ord('"'), kinds, [b""], nothing)


def encoded(read: pa.Table) -> None:
    for column in read.columns:
        if pa.types.is_string(column.type):
            Strings(column.chunk(0), True).encode()


if __name__ == "__main__":
    main()
