"""Results on stdout: for reading on a terminal, as JSON or CSV for other programs."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from banbury.cli.wording import printable

# Characters that move the cursor or change the writing direction, and halves of characters.
_CONTROLS = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def kind(args: Namespace) -> str:
    """Returns the output format: "table", "json" or "csv"; by default a table on a terminal and JSON in a pipe."""
    return args.kind or ("table" if sys.stdout.isatty() else "json")


def result(
    args: Namespace, facts: Mapping[str, Any], text: str, rows: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Prints the outcome of a command in the requested format: ``text`` for people, ``facts`` as JSON, or ``rows`` as
    CSV (if None, ``facts`` as one line).
    """
    output_format = kind(args)
    if output_format == "table":
        print(printable(text))
    elif output_format == "json":
        print(encoder(indent=2)(plain(facts)))
    else:
        as_csv([facts] if rows is None else rows)


def size(path: str) -> str:
    """Returns the size of a file as a text, such as "1.23 MB"."""
    amount = float(os.path.getsize(path))
    unit = "bytes"
    for larger_unit in ("kB", "MB", "GB"):
        if amount < 1000:
            break
        amount = amount / 1000  # in the larger unit
        unit = larger_unit
    return f"{amount:.3g} {unit}"


def encoder(indent: int | None = None) -> Callable[[Any], str]:
    """Returns a function that encodes objects as JSON for this stdout, with control characters escaped. ``indent``:
    spaces per level; None for a single line.
    """
    # Whether stdout can show every character.
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") in ("utf8", "utf8sig")
    encode = json.JSONEncoder(indent=indent, ensure_ascii=not unicode).encode
    return lambda facts: _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", encode(facts))


class CsvStream:
    """Standard output as a file that the csv module writes to; control characters are escaped on a terminal."""

    def write(self, text: str) -> None:
        """Writes a text to stdout."""
        sys.stdout.write("".join(map(printable, text.splitlines(keepends=True))) if sys.stdout.isatty() else text)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints rows as CSV, without columns whose first value is a list or a dictionary; nothing if there are no rows."""
    if rows:
        names = [name for name, value in rows[0].items() if not isinstance(value, (list, dict))]  # of the columns
        writer = csv.DictWriter(CsvStream(), names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Returns a table as text, drawn by Rich, at most as wide as the terminal. ``header``: the titles of the columns;
    ``rows``: the texts of the cells of each row; ``right``: the indices of right-aligned columns.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rich_table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for number, name in enumerate(header):
        rich_table.add_column(name, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        rich_table.add_row(*(Text(printable(cell)) for cell in row))
    width = Console().width if sys.stdout.isatty() else 100  # characters
    console = Console(file=StringIO(), width=width)
    console.print(rich_table)
    return "\n".join(f"  {line.rstrip()}" for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]


def plain(value: Any) -> Any:
    """Returns ``value``, and everything in it, as JSON can hold it: NaN becomes None, infinities become texts, and keys
    are texts.
    """
    if isinstance(value, Mapping):
        return {str(name): plain(element) for name, element in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
