"""How to read: the keywords of ``read``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from banbury import errors

MISSING_VALUES = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?")
NAMES = ("columns", "header")  # either says what columns are called, so that nothing else is remembered of that
SUBJECT = ("subject",)
COLUMNS = ("subject", "from", "to", "organization")  # headers that are columns of their own where no others are named

# What other libraries call our keywords.
SAID_ELSEWHERE = dict(
    pair.split("=")
    for pair in """alphas=alpha cv=folds k=folds n_folds=folds n_splits=folds n_jobs=threads n_repeats=repeats random_state=seed
    sample_weight=weights sep=delimiter train_sizes=sizes top=n y=target""".split()
)


Format = Literal["auto", "text", "lines", "mail", "html"]
FORMATS = get_args(Format)
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


# What a setting is for: any table of text, how the text of one is laid out, documents in files or below folders.
_TABLE = {"uses": ("tables",)}
_TEXT = {"uses": ("tables", "text tables")}
_FILE = {"uses": ("documents", "files")}


@dataclass(frozen=True, slots=True)
class Options:
    """How to read: the settings that a user may give, and what whoever reads adds to them."""

    columns: Sequence[str] | None = field(default=None, metadata=_TABLE)
    delimiter: str | None = field(default=None, metadata=_TABLE)
    missing_values: Sequence[str] = field(default=MISSING_VALUES, metadata=_TABLE)
    header: bool | None = field(default=None, metadata=_TEXT)
    quote: str | None = field(default=None, metadata=_TEXT)
    comment: str | None = field(default=None, metadata=_TEXT)
    skip_lines: int = field(default=0, metadata=_TEXT)
    format: Format = field(default="auto", metadata=_FILE)
    headers: Headers = field(default=SUBJECT, metadata=_FILE)
    class_from: Mapping[str, str] | None = field(default=None, metadata={"uses": ("documents", "files", "folders")})
    classes_at: int | None = field(default=None, metadata={"uses": ("documents", "folders")})
    kinds: Mapping[str, Literal["number", "string", "text", "list"]] | None = None
    batch_rows: int | None = None
    numbered: bool = False  # columns are named by numbers, though there is a header
    remembered: Mapping[str, Any] = field(default_factory=dict)  # what was said of other data, and not of these

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], kinds: Any, batch_rows: int | None, remembered: Mapping[str, Any]
    ) -> Options:
        """The options of the settings that a user gave."""
        spelt = settings.get("missing_values")
        changed: dict[str, Any] = {"missing_values": (spelt,)} if isinstance(spelt, str) else {}
        if "class_from" in settings:
            changed["class_from"] = class_patterns(settings["class_from"])
        replaced = {*settings, *(NAMES if not settings.keys().isdisjoint(NAMES) else ())}
        rest = {name: value for name, value in remembered.items() if name not in replaced}
        numbered = bool(settings.get("header") and remembered.get("header") is False)
        return cls(
            **{**settings, **changed}, kinds=kinds, batch_rows=batch_rows, numbered=numbered, remembered=rest
        ).check()

    def are_texts(self) -> bool:
        """Whether strings are texts for sure: nothing is said of how they are read, and a model of texts is to answer."""
        return "text" in (self.kinds or {}).values() and not self.settings(
            [name for name in SETTINGS if name != "columns"]
        )

    def recall(self, names: Sequence[str]) -> Options:
        """The same, with those of these settings that are remembered."""
        return replace(self, **{name: value for name, value in self.remembered.items() if name in names})

    def settings(self, names: Sequence[str]) -> dict[str, Any]:
        """Those of these settings that are not the usual ones, as JSON can hold them."""
        settings = {name: _plain(getattr(self, name)) for name in names}
        return {name: value for name, value in settings.items() if value != _plain(getattr(USUAL, name))}

    def are_of_table(self) -> bool:
        """Whether something is said or remembered that only a table of text has."""
        return bool(self.settings(TABLE_SETTINGS)) or not self.remembered.keys().isdisjoint(TABLE_SETTINGS)

    def check(self) -> Options:
        """Raises for what no option may be."""
        values = self.missing_values
        headers = self.headers
        rows = self.batch_rows
        are_texts = values is MISSING_VALUES or _are_texts(values)
        errors.require(are_texts, "missing_values", values, "the texts that mean a missing value")
        errors.require(rows is None or rows >= 1, "batch_rows", rows, "a positive whole number or None")
        is_choice = self.header in (True, False, None)
        allowed = "True, False, or None to detect it"
        errors.require(is_choice, "header", self.header, allowed)
        is_quote = self.quote in (None, "none") or is_mark(self.quote)
        errors.require(is_quote, "quote", self.quote, "one ASCII character, or 'none'")
        is_comment = self.comment in (None, "none") or is_mark(self.comment)
        errors.require(is_comment, "comment", self.comment, "one ASCII character, or 'none'")
        errors.check_whole("skip_lines", self.skip_lines, 0)
        if self.classes_at is not None:
            errors.check_whole("classes_at", self.classes_at, 1)
        if self.format not in FORMATS:
            raise errors.unknown_choice("format", self.format, FORMATS)
        are_headers = headers in (SUBJECT, "keep", "drop", "columns") or _are_texts(headers)
        errors.require(are_headers, "headers", headers, "'keep', 'drop', 'columns' or a list of header names")
        return self

    def refuse(self, names: Sequence[str], what: str) -> None:
        """Raises where one of these was said of something that it does not apply to."""
        for name in names:
            if getattr(self, name) != getattr(USUAL, name):
                setting = f"{name}={getattr(self, name)!r}"
                raise errors.BadSetting(f"{setting} is for {what}. Omit it.", setting=name, value=getattr(self, name))


USUAL = Options()


def _settings_for(use: str) -> tuple[str, ...]:
    return tuple(setting.name for setting in fields(Options) if use in setting.metadata.get("uses", ()))


# What a model remembers of how its data were read: of tables of text, and of documents, in files and in folders.
TABLE_SETTINGS = _settings_for("tables")
OF_TEXT_TABLES = _settings_for("text tables")
DOCUMENT_SETTINGS = _settings_for("documents")
FILE_SETTINGS = _settings_for("files")
OF_FOLDERS = _settings_for("folders")
SETTINGS = (*TABLE_SETTINGS, *DOCUMENT_SETTINGS)


def check_names(settings: Iterable[str]) -> None:
    """Raises where a setting is none of ours."""
    names = [*SETTINGS, "batch_rows"]
    for name in settings:
        if name not in names:
            near = SAID_ELSEWHERE.get(name)
            hint = f" Did you mean {near!r}?" if near else errors.did_you_mean(name, names)
            every = f" Reading options: {errors.listed(names)}."
            raise errors.UnknownKeyword(f"unknown keyword {name!r}.{hint or every}", name=name)


def class_patterns(class_from: Mapping[str, str] | str | None) -> Mapping[str, str] | None:
    """Patterns of file names, each with the class it tells; as a mapping, or as the command line spells one.

    >>> class_patterns("spm*=spam,*=ham")
    {'spm*': 'spam', '*': 'ham'}
    """
    patterns: Any = class_from
    if isinstance(class_from, str):
        patterns = dict(pair.rpartition("=")[::2] for pair in class_from.split(","))
    texts = [text for pair in patterns.items() for text in pair] if isinstance(patterns, Mapping) else []
    fits = patterns is None or (texts and all(isinstance(text, str) and text for text in texts))
    errors.require(
        fits, "class_from", class_from, "patterns for file names, with their classes, as in 'spm*=spam,*=ham'"
    )
    return None if patterns is None else dict(patterns)


def _plain(setting: Any) -> Any:
    """A setting as JSON can hold it; columns may have been named by numbers."""
    if isinstance(setting, Mapping):
        return dict(setting)
    if isinstance(setting, Iterable) and not isinstance(setting, str):
        return list(map(str, setting))
    return setting.item() if isinstance(setting, np.generic) else setting


def is_mark(text: Any) -> bool:
    """Whether a text is one character that may divide or quote."""
    return isinstance(text, str) and len(text) == 1 and text.isascii() and text not in "\0\n\r"


def _are_texts(values: Any) -> bool:
    several = isinstance(values, Iterable) and not isinstance(values, (str, bytes))
    return several and all(isinstance(value, str) for value in values)
