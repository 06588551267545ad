"""How to read: the keywords of ``read``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from banbury import errors

MISSING_VALUES = ("", "NA", "NaN", "null", "?")
FORMATS = ("auto", "text", "mail", "html")
SUBJECT = ("subject",)
COLUMNS = ("subject", "from", "to", "organization")  # headers that are columns of their own where no others are named

Format = Literal["auto", "text", "mail", "html"]
Headers = Literal["keep", "drop", "columns"] | Sequence[str]


def header_columns(headers: Headers) -> tuple[str, ...]:
    """The headers that are columns of their own, in lower case; none where headers are read with the text.

    >>> header_columns("columns"), header_columns(["columns", "Subject", "X-Mailer"]), header_columns(["Subject"])
    (('subject', 'from', 'to', 'organization'), ('subject', 'x-mailer'), ())
    """
    if isinstance(headers, str):
        return COLUMNS if headers == "columns" else ()
    names = dict.fromkeys(name if name == "columns" else name.lower() for name in headers)
    return tuple(name for name in names if name != "columns") or COLUMNS if "columns" in names else ()


@dataclass(frozen=True, slots=True)
class Options:
    columns: Sequence[str] | None = None
    delimiter: str | None = None
    missing_values: Sequence[str] = MISSING_VALUES
    kinds: Mapping[str, Literal["number", "string", "text", "list"]] | None = None
    batch_rows: int | None = None
    format: Format = "auto"
    headers: Headers = SUBJECT

    def checked(self) -> Options:
        """Raises for what no option may be."""
        values, headers, rows = self.missing_values, self.headers, self.batch_rows
        spelt = values is MISSING_VALUES or _are_texts(values)
        errors.require(spelt, "missing_values", values, "the texts that stand for a missing value")
        errors.require(rows is None or rows >= 1, "batch_rows", rows, "a whole number above 0, or None")
        if self.format not in FORMATS:
            raise errors.unknown_choice("format", self.format, FORMATS)
        known = headers in (SUBJECT, "keep", "drop", "columns") or _are_texts(headers)
        errors.require(known, "headers", headers, "'keep', 'drop', 'columns' or a list of headers' names")
        return self


def _are_texts(values: Any) -> bool:
    several = isinstance(values, Iterable) and not isinstance(values, (str, bytes))
    return several and all(isinstance(value, str) for value in values)
