"""How to read: the keywords of ``read``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from banbury import errors

MISSING_VALUES = ("", "NA", "NaN", "null", "?")
FORMATS = ("auto", "text", "mail", "html")
SUBJECT = ("subject",)

Format = Literal["auto", "text", "mail", "html"]
Headers = Literal["keep", "drop"] | Sequence[str]


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
        values = self.missing_values
        if values is not MISSING_VALUES and not _are_texts(values):
            raise errors.bad_setting("missing_values", values, "the texts that stand for a missing value")
        if self.batch_rows is not None and self.batch_rows < 1:
            raise errors.bad_setting("batch_rows", self.batch_rows, "a whole number above 0, or None")
        if self.format not in FORMATS:
            raise errors.unknown_choice("format", self.format, FORMATS)
        if self.headers not in (SUBJECT, "keep", "drop") and not _are_texts(self.headers):
            raise errors.bad_setting("headers", self.headers, "'keep', 'drop' or a list of headers' names")
        return self


def _are_texts(values: Any) -> bool:
    several = isinstance(values, Iterable) and not isinstance(values, (str, bytes))
    return several and all(isinstance(value, str) for value in values)
