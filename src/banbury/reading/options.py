"""How to read: the keywords of ``read``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from banbury import errors
from banbury.arrays import plain

MISSING_VALUES = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?")
NAMING_SETTINGS = ("columns", "header")  # each names the columns, so if one is given neither is taken from memory
SUBJECT = ("subject",)
HEADER_COLUMNS = ("subject", "from", "to", "organization")  # the headers that become columns if the user names none

# Keywords of other libraries, and ours for the same.
OTHER_NAMES = dict(
    pair.split("=")
    for pair in """alphas=alpha cv=folds k=folds n_folds=folds n_splits=folds n_jobs=threads n_repeats=repeats random_state=seed
    sample_weight=weights sep=delimiter train_sizes=sizes top=n y=target""".split()
)


Format = Literal["auto", "text", "lines", "mail", "html"]
FORMATS = get_args(Format)
Headers = Literal["keep", "drop", "columns"] | Sequence[str]


def header_columns(headers: Headers) -> tuple[str, ...]:
    """The mail headers that become columns, in lower case; none if headers are read with the text.

    >>> header_columns("columns"), header_columns(["columns", "Subject", "X-Mailer"]), header_columns(["Subject"])
    (('subject', 'from', 'to', 'organization'), ('subject', 'x-mailer'), ())
    """
    if isinstance(headers, str):
        return HEADER_COLUMNS if headers == "columns" else ()
    names = dict.fromkeys(name if name == "columns" else name.lower() for name in headers)
    return tuple(name for name in names if name != "columns") or HEADER_COLUMNS if "columns" in names else ()


# What a setting is for: any table of text, how the text of one is laid out, documents in files or below folders.
_TABLE = {"uses": ("tables",)}
_TEXT = {"uses": ("tables", "text tables")}
_FILE = {"uses": ("documents", "files")}


@dataclass(frozen=True, slots=True)
class Options:
    """How to read data: the options that a user may give, and what the reader adds. ``kinds``: what the model expects
    in each column.

    ``numbered``: columns are named by their numbers although there is a header. ``remembered``: options with which
    other data were read, which apply where the user gives none.
    """

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
    numbered: bool = False
    remembered: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], kinds: Any, batch_rows: int | None, remembered: Mapping[str, Any]
    ) -> Options:
        """Options from the keywords that a user gave (``settings``). ``kinds``: what the model needs in each column, or
        None; ``batch_rows``: the most rows of a batch, or None; ``remembered``: options with which other data were
        read.
        """
        missing_values = settings.get("missing_values")
        # Options that may be given in a short form, in their full form.
        converted: dict[str, Any] = {"missing_values": (missing_values,)} if isinstance(missing_values, str) else {}
        if "class_from" in settings:
            converted["class_from"] = class_patterns(settings["class_from"])
        # Given options are not remembered; if one that names the columns is given, none of these is.
        overridden = {*settings, *(() if settings.keys().isdisjoint(NAMING_SETTINGS) else NAMING_SETTINGS)}
        still_remembered = {name: value for name, value in remembered.items() if name not in overridden}
        return cls(
            **{**settings, **converted},
            kinds=kinds,
            batch_rows=batch_rows,
            numbered=bool(settings.get("header") and remembered.get("header") is False),
            remembered=still_remembered,
        ).check()

    def are_texts(self) -> bool:
        """Whether strings are certainly texts and not paths: no reading option is given, and the model has a text
        column.
        """
        return "text" in (self.kinds or {}).values() and not self.settings(
            [name for name in SETTINGS if name != "columns"]
        )

    def recall(self, names: Sequence[str]) -> Options:
        """A copy in which the options in ``names`` that are remembered from other data have their remembered values."""
        return replace(self, **{name: value for name, value in self.remembered.items() if name in names})

    def settings(self, names: Sequence[str]) -> dict[str, Any]:
        """The options in ``names`` that differ from their defaults, by name, as values that JSON can store."""
        settings = {name: _plain(getattr(self, name)) for name in names}
        return {name: value for name, value in settings.items() if value != _plain(getattr(DEFAULTS, name))}

    def has_table_settings(self) -> bool:
        """Whether an option is given or remembered that only text tables have."""
        return bool(self.settings(TABLE_SETTINGS)) or not self.remembered.keys().isdisjoint(TABLE_SETTINGS)

    def check(self) -> Options:
        """Raises BadSetting for an invalid option; otherwise returns itself."""
        missing_values = self.missing_values
        headers = self.headers
        batch_rows = self.batch_rows
        are_texts = missing_values is MISSING_VALUES or _are_texts(missing_values)
        errors.require(are_texts, "missing_values", missing_values, "the texts that mean a missing value")
        errors.require(
            batch_rows is None or batch_rows >= 1, "batch_rows", batch_rows, "a positive whole number or None"
        )
        is_choice = self.header in (True, False, None)
        errors.require(is_choice, "header", self.header, "True, False, or None to detect it")
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

    def refuse(self, names: Sequence[str], purpose: str) -> None:
        """Raises BadSetting if an option in ``names`` is given, since the data are of another kind. ``purpose``: what
        such options are for, in words.
        """
        for name in names:
            if getattr(self, name) != getattr(DEFAULTS, name):
                raise errors.BadSetting(
                    f"{name}={getattr(self, name)!r} is for {purpose}. Omit it.",
                    setting=name,
                    value=getattr(self, name),
                )


DEFAULTS = Options()


def _settings_for(use: str) -> tuple[str, ...]:
    """The names of the options with this use, such as "tables", in the order of the fields of ``Options``."""
    return tuple(setting.name for setting in fields(Options) if use in setting.metadata.get("uses", ()))


# Options that a model remembers: for text tables, and for documents in files and folders.
TABLE_SETTINGS = _settings_for("tables")
TEXT_TABLE_SETTINGS = _settings_for("text tables")
DOCUMENT_SETTINGS = _settings_for("documents")
FILE_SETTINGS = _settings_for("files")
FOLDER_SETTINGS = _settings_for("folders")
SETTINGS = (*TABLE_SETTINGS, *DOCUMENT_SETTINGS)


def check_names(settings: Iterable[str]) -> None:
    """Raises UnknownKeyword for the first of the names ``settings`` that is not a reading option, with a suggestion."""
    names = [*SETTINGS, "batch_rows"]  # of all options
    for name in settings:
        if name not in names:
            our_name = OTHER_NAMES.get(name)  # of what other libraries call so
            hint = f" Did you mean {our_name!r}?" if our_name else errors.did_you_mean(name, names)
            all_names = f" Reading options: {errors.listed(names)}."
            raise errors.UnknownKeyword(f"unknown keyword {name!r}.{hint or all_names}", name=name)


def class_patterns(class_from: Mapping[str, str] | str | None) -> Mapping[str, str] | None:
    """Returns ``class_from`` as a mapping from patterns of file names to classes, or None. On the command line it is
    one text. Raises BadSetting if it is invalid.

    >>> class_patterns("spm*=spam,*=ham")
    {'spm*': 'spam', '*': 'ham'}
    """
    patterns: Any = class_from
    if isinstance(class_from, str):
        patterns = dict(pair.rpartition("=")[::2] for pair in class_from.split(","))
    texts = [text for pair in patterns.items() for text in pair] if isinstance(patterns, Mapping) else []
    are_valid = patterns is None or (texts and all(isinstance(text, str) and text for text in texts))
    errors.require(
        are_valid, "class_from", class_from, "patterns for file names, with their classes, as in 'spm*=spam,*=ham'"
    )
    return None if patterns is None else dict(patterns)


def _plain(setting: Any) -> Any:
    """The value of an option, ``setting``, as one that JSON can store."""
    if isinstance(setting, Mapping):
        return dict(setting)
    if isinstance(setting, Iterable) and not isinstance(setting, str):
        return list(map(str, setting))
    return plain(setting)


def is_mark(text: Any) -> bool:
    """Whether a text is one character that can be a delimiter or a quotation mark."""
    return isinstance(text, str) and len(text) == 1 and text.isascii() and text not in "\0\n\r"


def _are_texts(values: Any) -> bool:
    """Whether ``values`` is a collection of strings, and not a string itself."""
    is_collection = isinstance(values, Iterable) and not isinstance(values, (str, bytes))
    return is_collection and all(isinstance(value, str) for value in values)
