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

# What is no letter but moves the cursor, turns the writing direction or is half a character.
_CONTROLS = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def kind(args: Namespace) -> str:
    """ "table", "json" or "csv": what was asked for, or what suits where stdout goes."""
    return args.kind or ("table" if sys.stdout.isatty() else "json")


def result(
    args: Namespace, facts: Mapping[str, Any], text: str, rows: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """One result: ``text`` for reading, ``facts`` as JSON; as CSV the ``rows``, or else a line of what is one number or word."""
    how = kind(args)
    if how == "table":
        print(printable(text))
    elif how == "json":
        print(encoder(indent=2)(plain(facts)))
    else:
        as_csv([facts] if rows is None else rows)


def size(path: str) -> str:
    """How large a file is."""
    n = float(os.path.getsize(path))
    unit = "bytes"
    for larger in ("kB", "MB", "GB"):
        if n < 1000:
            break
        n = n / 1000
        unit = larger
    return f"{n:.3g} {unit}"


def encoder(indent: int | None = None) -> Callable[[Any], str]:
    """Makes JSON that standard output can hold, and that moves no cursor."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") in ("utf8", "utf8sig")
    encode = json.JSONEncoder(indent=indent, ensure_ascii=not unicode).encode
    return lambda facts: _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", encode(facts))


class Shown:
    """Standard output for CSV: on a terminal control characters are spelt out."""

    def write(self, text: str) -> None:
        sys.stdout.write("".join(map(printable, text.splitlines(True))) if sys.stdout.isatty() else text)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """The rows as CSV, without what is itself a list."""
    if rows:
        names = [name for name, value in rows[0].items() if not isinstance(value, (list, dict))]
        writer = csv.DictWriter(Shown(), names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table drawn by Rich: as wide as the terminal at most, long cells wrapped."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for number, name in enumerate(header):
        drawn.add_column(name, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    width = Console().width if sys.stdout.isatty() else 100
    page = Console(file=StringIO(), width=width)
    page.print(drawn)
    return "\n".join(f"  {line.rstrip()}" for line in page.file.getvalue().splitlines())  # type: ignore[attr-defined]


def plain(value: Any) -> Any:
    """The value as JSON can hold it: NaN is null, and what is infinite is a word."""
    if isinstance(value, Mapping):
        return {str(name): plain(element) for name, element in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
