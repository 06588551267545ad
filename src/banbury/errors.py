"""The errors, and the messages that several places say: what happened, with the value; where; and what to do next.

One base class, so that ``except BanburyError`` catches all of them. It is a ValueError, as scikit-learn's users expect.
The parts of a message are attributes too, so that a program can act on them.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any

PACKAGE_FOLDER = os.path.dirname(__file__) + os.sep
DECORATOR_FILES = contextlib.__file__, functools.__file__  # files of frames that decorators add


class BanburyError(ValueError):
    """The base class of all errors that Banbury raises about its input."""

    def __init__(self, message: str, **parts: Any) -> None:
        """``parts``: the parts of the message, such as the column, which become attributes of the error."""
        super().__init__(message)
        self.__dict__.update(parts)
        self._parts = parts  # by name

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns how pickle restores the error: a function and its arguments."""
        return _rebuild, (type(self), str(self), self._parts)


def _rebuild(error_class: type[BanburyError], message: str, parts: dict[str, Any]) -> BanburyError:
    """Returns a pickled error as it was, with the parts of its message as attributes."""
    return error_class(message, **parts)


class BanburyWarning(UserWarning):
    """The base class of all warnings that Banbury gives."""


class UnknownColumn(BanburyError):
    """A column that the data do not have."""


class UnknownClass(BanburyError):
    """A class that the tally or the model does not have."""


class UnknownValue(BanburyError):
    """A value that the declared schema does not allow."""


class UnknownKeyword(BanburyError, TypeError):
    """A keyword argument that does not exist."""


class EmptyData(BanburyError):
    """There are no rows to count."""


class BadValue(BanburyError):
    """A value that cannot be counted: infinite, negative where counts are expected, or of the wrong type."""


class TooManyCells(BadValue):
    """A table of values and classes that would not fit into memory."""


class BadWeight(BanburyError):
    """A weight that is negative, missing or infinite, or weights of the wrong shape."""


class LengthMismatch(BanburyError):
    """Two arguments that should have one entry per row have different lengths."""


class WrongWidth(BanburyError):
    """An array with a different number of columns than the model was made from."""


class DuplicateColumn(BanburyError):
    """Two columns with the same name."""


class BadFile(BanburyError):
    """A file that is missing, unreadable, or not in the format that its name suggests."""


class DamagedFile(BadFile):
    """A model file that is truncated or was changed."""


class UnknownFormat(BadFile):
    """A model file in a format that this version does not read."""


class BadSetting(BanburyError):
    """An argument with an invalid value."""


class SchemaMismatch(BanburyError):
    """Two tallies, or a tally and rows, that do not count the same things."""


class NotATally(BanburyError, TypeError):
    """Arithmetic between a tally and something else."""


class MissingLibrary(BanburyError, ImportError):
    """An optional library that is not installed."""


class NegativeCount(BanburyError):
    """Rows were subtracted that had not been added."""


class RoundedTally(BanburyError):
    """Subtraction from sums that were rounded."""


class BadPrior(BanburyError):
    """Prior probabilities of hypotheses that do not sum to one."""


class UnknownHypothesis(BanburyError):
    """A hypothesis that the space does not have, or one that is missing."""


class UnknownLabel(BanburyError):
    """A prediction or a row with a label that is not among the labels."""


class ImpossibleEvidence(BanburyError):
    """Rows that have probability zero under every hypothesis."""


class PartTwice(BanburyError):
    """A part of the data that would be counted twice."""


class EngineError(BanburyError):
    """An engine that is missing, lacks something on its workers, or failed."""


class CyclicStructure(BanburyError):
    """A network whose edges form a cycle."""


# Of each thread: ``collected``, a dictionary whose keys are the texts of warnings, None unless they are collected; and
# ``line``, what ``_callers_line`` returned in the thread that began the work, if it was another.
_thread_state = threading.local()


def _callers_line() -> tuple[str, int, str, dict[Any, Any]]:
    """Returns the innermost line outside the package that led here: its file, number, module, and the module's
    registry of warnings already given.
    """
    frame = sys._getframe(1)  # the caller's
    while frame.f_back is not None and frame.f_code.co_filename.startswith((PACKAGE_FOLDER, *DECORATOR_FILES)):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    return frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", "<string>"), registry


def warn(warning: Warning | str) -> None:
    """Gives a warning (a BanburyWarning if it is a string) at the line outside the package that caused it. While
    ``collect_warnings`` is active in this thread, its text is collected instead. It becomes a key of a dictionary
    there, so that each text occurs once.
    """
    pending = warning if isinstance(warning, Warning) else BanburyWarning(warning)
    if (collected := getattr(_thread_state, "collected", None)) is not None:
        collected.setdefault(str(pending))
        return
    # Of the line to name: its file, number, module, and the module's registry of warnings already given.
    file, line, module, registry = getattr(_thread_state, "line", None) or _callers_line()
    warnings.warn_explicit(pending, type(pending), file, line, module, registry)


@contextlib.contextmanager
def collect_warnings() -> Iterator[dict[str, None]]:
    """Collects the texts of this thread's warnings, each once, so that they can be given elsewhere. Yields the
    dictionary whose keys they are.
    """
    outer_collection = getattr(_thread_state, "collected", None)
    collected = dict[str, None]()
    _thread_state.collected = collected
    try:
        yield collected
    finally:
        _thread_state.collected = outer_collection


def warn_at_callers_line(work: Callable[[int], Any]) -> Callable[[int], Any]:
    """Wraps ``work``, a function of a number that is called in another thread, so that its warnings point at the
    current line.
    """
    line = _callers_line()  # its file, number, module and registry

    def work_at_line(number: int) -> Any:
        """Calls ``work`` in a thread whose warnings point at ``line`` (its file, number, module and registry)."""
        _thread_state.line = line
        return work(number)

    return work_at_line


MOST_NAME_CHARACTERS = 40  # most characters of a name from the data in a message
MOST_VALUE_CHARACTERS = 300  # most characters of a refused value in a message


def listed(names: Iterable[Any], most: int = 12) -> str:
    """Returns the first ``most`` of ``names`` as one text with commas between them, and how many more there are."""
    names = [str(name) for name in names]
    remainder = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + remainder


def many(n: float, what: str, several: str | None = None) -> str:
    """Returns a number with a noun as a text: ``1 row``, ``2 rows``, ``3 classes``. ``what``: the noun; ``several``:
    its plural, if it is irregular.
    """
    plural = several or what + ("es" if what.endswith("s") else "s")
    return f"{n:,} {what if n == 1 else plural}"


def shortened(text: Any, most: int = MOST_NAME_CHARACTERS) -> str:
    r"""Returns the text on one line, truncated if it has more than ``most`` characters.

    >>> shortened("a line\nand another", 8)
    'a line …'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def did_you_mean(name: Any, known_names: Iterable[Any]) -> str:
    """Returns `` Did you mean 'length'?``, or an empty string if no known name is similar to ``name``."""
    name_by_lower_case = {known_name.casefold(): known_name for known_name in map(str, known_names)}
    matches = difflib.get_close_matches(str(name).casefold(), list(name_by_lower_case), n=1, cutoff=0.6)
    return f" Did you mean {name_by_lower_case[matches[0]]!r}?" if matches else ""


def where(source: str | None) -> str:
    """Returns `` in SOURCE`` for messages, or an empty text."""
    return f" in {source}" if source else ""


# Endings of files that are compressed, and of files with delimiters (none, if there is no ending).
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
DELIMITED = (".csv", ".tsv", ".txt", ".data", ".dat", ".tab", "")


def unknown_column(name: Any, known_names: Sequence[Any], source: str | None = None) -> UnknownColumn:
    """Returns the error of a column that the data do not have. ``known_names``: the columns that they have; ``source``:
    the file that has them, if it is one.
    """
    # Columns of a file without a header are numbered from 1.
    are_numbers = all(known_name == str(number) for number, known_name in enumerate(known_names, 1))
    hint = A_HEADER * bool(source) if are_numbers else header_hint(source)
    columns = f"  Columns: {listed(map(shortened, known_names))}{hint}"
    if name in ("subject", "body") and tuple(known_names) in (("text",), ("class", "text")):
        columns += "\n  To read mail headers as columns, pass headers='columns'."
    verb = "matches " if isinstance(name, str) and "*" in name else ""
    return UnknownColumn(
        f"no column {verb}{name!r}{where(source)}.{did_you_mean(name, known_names)}\n{columns}",
        column=name,
        known=list(known_names),
    )


NO_HEADER = "\n  The first line was read as the header. If it is a row, pass header=False, or columns=[...]."


A_HEADER = "\n  The file was read without a header. If its first line is a header, pass header=True."


def header_hint(source: str | None) -> str:
    """Returns a hint for a missing column, if the file ``source`` may have no header or another delimiter; otherwise an
    empty string.
    """
    if source is None:
        return ""
    name, suffix = os.path.splitext(source.lower())  # the suffix begins with a point
    kind = os.path.splitext(name)[1] if suffix in COMPRESSED else suffix  # the ending before that of a compression
    return NO_HEADER if kind in DELIMITED and (kind or os.path.isfile(source)) else ""


def unknown_class(name: Any, known_names: Sequence[Any]) -> UnknownClass:
    """Returns the error of a class that the model does not have. ``known_names``: the classes that it has."""
    return UnknownClass(
        f"no class {name!r}.{did_you_mean(name, known_names)}\n  Classes: {listed(known_names)}",
        name=name,
        known=list(known_names),
    )


def unknown_value(value: Any, column: str, declared: Sequence[Any]) -> UnknownValue:
    """Returns the error of a value that is not among the ``declared`` values of a column."""
    return UnknownValue(
        f"column {column!r} contains {value!r}, which is not one of its declared values.{did_you_mean(value, declared)}\n "
        f" Declared: {listed(declared)}. Declare this value too, or omit values= to count any value.",
        value=value,
        column=column,
    )


def empty_data(source: str | None = None, why: str = "it has no rows") -> EmptyData:
    """Returns the error of data without rows to count. ``source``: the file, if there is one; ``why``: the reason in
    words.
    """
    return EmptyData(f"nothing to count{where(source)}: {why}.")


def no_target(n_rows: int, target: Any) -> EmptyData:
    """Returns the error of rows that all lack a target. ``target``: the name of the target column, or anything else if
    it has none.
    """
    name = f" {target!r}" if isinstance(target, str) else ""
    return EmptyData(
        f"the target{name} is missing in all {n_rows:,} rows. Nothing can be learned from rows without a target; "
        "check the column's name and the spelling of missing values."
    )


def bad_value(what: str, value: Any, column: str, row: int, source: str | None = None) -> BadValue:
    """Returns the error for a value, in a row of a column, that a kernel rejected. ``what``: what is wrong with it, in
    one of the kernel's phrases below; ``source``: the file, if there is one.
    """
    location = f"row {row:,} of column {column!r}{where(source)}"
    sentences = {
        "infinite": f"{location} is infinite ({value}). Replace it with a number, or with NaN to skip it.",
        "too far": f"{location} is {value:g}, more than 2**400 units from the column's origin. "
        "Replace it, or infer the schema from rows that show the column's scale.",
        "not 0 or 1": f"{location} is {value:g}, but a Bernoulli column can contain only 0 and 1. "
        "Set a threshold with bb.Bernoulli(threshold=...), or choose another family.",
        "not a count": f"{location} is {value:g}, but a Poisson column can contain only non-negative whole numbers. "
        "Use 'quantile_tree', 'gaussian', 'histogram' or 'kernel_density' instead.",
        "missing": f"{location} is missing. Give a number, or pass missing='skip' to skip missing values.",
        "too many": f"{location} is {value:g}, too large to be summed exactly. Replace it.",
        "negative": f"{location} is {value:g}, but counts cannot be negative. "
        "Use 'quantile_tree', 'gaussian', 'histogram' or 'kernel_density' instead.",
        "too fine": f"{location} is {value:g}, more than 2**53 bins from the start. "
        "Replace it, or use wider bins with bb.Histogram(start=..., width=...).",
    }
    return BadValue(sentences[what], what=what, value=value, column=column, row=row)


def wrong_type(
    value: Any, column: str, requirement: str, row: int | None = None, source: str | None = None, hint: str = ""
) -> BadValue:
    """Returns the error of a value in a column. ``requirement``: what the column must contain; ``row``: None if it is
    not known; ``source``: the file, if there is one; ``hint``: a sentence that ends the message.
    """
    location = f"row {row:,} of column {column!r}" if row is not None else f"column {column!r}"
    advice = "choose another family for the column in features="
    if isinstance(value, float):
        advice = f"choose another family for the column, as in features={{{column!r}: 'gaussian'}}"
    return BadValue(
        f"{location}{where(source)} contains {value!r}, but must contain {requirement}. "
        f"Fix the value, list it in missing_values=, or {advice}.{hint}",
        value=value,
        column=column,
        row=row,
        wanted=requirement,
    )


def length_mismatch(what: str, length: int, n_rows: int) -> LengthMismatch:
    """Returns the error of two arguments with different numbers of rows, in scikit-learn's wording. ``what``: the
    second argument, which has this ``length``; the first has ``n_rows``.
    """
    return LengthMismatch(
        f"Found input variables with inconsistent numbers of samples: {n_rows:,} rows but {length:,} {what}. "
        "The two must have the same length."
    )


def not_a_tally(other: Any, sign: str) -> NotATally:
    """Returns the error of arithmetic between a tally and something else, ``other``. ``sign``: the operation as a verb,
    such as "add".
    """
    return NotATally(
        f"cannot {sign} a tally and a {type(other).__name__}. Count the rows first: tally + tally.count(rows), "
        "or tally - tally.count(rows) to forget them."
    )


def part_twice(names: Iterable[str]) -> PartTwice:
    """Returns the error of parts, given by name, that are in both tallies."""
    names = sorted(names)
    text = f"part {names[0]!r}" if len(names) == 1 else f"the parts {listed(map(repr, names), most=3)}"
    return PartTwice(
        f"{text} would be counted twice: both tallies hold {'it' if len(names) == 1 else 'them'} (see tally.parts). Add each "
        "part once, or subtract it from one of the tallies first.",
        parts=names,
    )


def no_test_rows() -> EmptyData:
    """Returns the error of test rows that all have weight zero."""
    return EmptyData(
        "every test row has a weight of zero, so there is nothing to measure. Give at least one row a positive weight."
    )


def bad_file(path: Any, why: str) -> BadFile:
    """Returns the error of a file that cannot be read. ``path``: of the file; ``why``: the reason in words."""
    return BadFile(f"cannot read {path}: {why}", path=str(path))


def unwritable_file(path: Any, why: str) -> BadFile:
    """Returns the error of a file that cannot be written. ``why``: the reason in words."""
    advice = "Choose a file in an existing, writable folder."
    return BadFile(f"cannot write {path}: {why}. {advice}", path=str(path))


def damaged_file(path: Any, why: str) -> DamagedFile:
    """Returns the error of a file that is truncated or was changed. ``why``: the reason in words."""
    return DamagedFile(
        f"cannot read {path}: {why}. The file is damaged or incomplete: copy or save it again.", path=str(path)
    )


def _cut(text: str) -> str:
    """Returns the text of a value, truncated if it is too long for a message."""
    return text if len(text) <= MOST_VALUE_CHARACTERS else f"{text[:MOST_VALUE_CHARACTERS]}…"


def bad_setting(name: str, value: Any, requirement: str) -> BadSetting:
    """Returns the error of an invalid setting. ``name``: the setting; ``value``: what it is; ``requirement``: what it
    must be.
    """
    return BadSetting(f"{name} must be {requirement}. Got {_cut(repr(value))} instead.", setting=name, value=value)


def require(fits: object, name: str, value: Any, requirement: str) -> None:
    """Raises an error unless ``value``, that of the setting ``name``, is valid. ``fits``: whether it is;
    ``requirement``: what it must be.
    """
    if not fits:
        raise bad_setting(name, value, requirement)


def check_whole(name: str, value: Any, low: int, high: int | None = None) -> None:
    """Raises an error unless ``value``, that of the setting ``name``, is a whole number from ``low`` to ``high`` (None
    for no limit).
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    limits = f"of at least {low:,}" if high is None else f"from {low:,} to {high:,}"
    if not is_whole or value < low or (high is not None and value > high):
        raise bad_setting(name, value, f"a whole number {limits}")


def unknown_choice(name: str, value: Any, known_names: Iterable[Any]) -> BadSetting:
    """Returns the error of a setting (``name``) whose value is not among the known choices, with a suggestion."""
    known_names = list(known_names)
    return BadSetting(
        f"{name} must be one of {listed(map(repr, known_names))}. Got {value!r} instead.{did_you_mean(value, known_names)}",
        setting=name,
        value=value,
    )


def schema_mismatch(why: str) -> SchemaMismatch:
    """Returns the error of tallies that count different things. ``why``: the difference in words."""
    return SchemaMismatch(
        f"cannot combine tallies that counted different things: {why}.\n "
        " Count both with the same schema (bb.count(..., schema=tally.schema)), or convert one with tally.to(schema)."
    )


# Ends the message of a subtraction that failed.
NOT_PART = "The subtracted tally was not part of this one; nothing was changed. Subtract only what was added."


def forget_before_fading(whose: str) -> RoundedTally:
    """Returns the error of a subtraction from rounded sums. ``whose``: what has the sums, such as "feature 'x'"."""
    return RoundedTally(
        f"the sums of {whose} were rounded when it was scaled by a fraction or moved to another schema (tally.rounded), so no "
        "rows can be taken out exactly; nothing was changed. Forget before you fade: keep the unfaded tally, subtract the "
        "rows there, and fade a copy, as in (tally - rows) * 0.9."
    )


def too_many_rows() -> BadSetting:
    """Returns the error of sums that would overflow."""
    advice = "Use smaller weights, or scale the tallies down."
    return BadSetting(f"the sum would reach 2**63 rows or occurrences, which is too many. {advice}")


def negative_count(
    left: Any, label: Any, feature: str | None = None, shown: str | None = None, what: str = "rows", key: Any = None
) -> NegativeCount:
    """Returns the error of a subtraction that would leave a negative number, ``left``, of rows (or of ``what``) of the
    class ``label``. ``feature``: the column that they are counted in; ``shown``: the value or its bin as a text;
    ``key``: the value or bin itself, an attribute of the error.
    """
    location = "" if feature is None else f" in feature {feature!r}"
    location += "" if shown is None else f" ({shown})"
    return NegativeCount(
        f"subtracting left {left} {what} of class {label!r}{location}. {NOT_PART}",
        left=left,
        label=label,
        feature=feature,
        key=key,
    )


def impossible_sums(label: Any, feature: str) -> NegativeCount:
    """Returns the error of a subtraction that leaves impossible sums of a feature in the class ``label``."""
    what = "that no data can have (a negative sum of squares, or a sum without rows)"
    return NegativeCount(
        f"subtracting left sums of feature {feature!r} in class {label!r} {what}. {NOT_PART}",
        label=label,
        feature=feature,
    )


def wrong_width(n_columns: int, expected: int, who: str = "Model", names: Sequence[str] = ()) -> WrongWidth:
    """Returns the error of rows with the wrong number of columns, in scikit-learn's wording. ``who``: what expects
    another number; ``names``: the columns that can be given by name, where some may then be absent. ``n_columns``: the
    columns that there are; ``expected``: the number that is needed.
    """
    hint = f" Pass columns by name, in a frame or a mapping: {listed(map(repr, names))}." if names else ""
    return WrongWidth(f"X has {n_columns} features, but {who} is expecting {expected} features as input.{hint}")


def no_column(values: Any) -> BanburyError:
    """Returns the error of ``values``, which the user passes as a column of values and which are none."""
    if hasattr(values, "shape"):
        what = f"this array has the shape {values.shape}"
        return BanburyError(f"one value per row is needed, but {what}. Pass a 1-D array.")
    return BanburyError(f"one value per row is needed, but this is {values!r}. Pass a list or a 1-D array.")


def missing_file(
    path: Any,
    near: Sequence[str],
    why: str = "the file does not exist",
    otherwise: str = " To classify a text instead of a file, pass it in a list or a column.",
) -> BadFile:
    """Returns the error of a file that does not exist. ``near``: names of similar files; ``why``: what is wrong;
    ``otherwise``: the hint if there are no similar names.
    """
    hint = f" Did you mean {near[0]!r}?" if near else otherwise
    short_path = path if len(str(path)) <= 200 else f"{str(path)[:197]}..."  # at most 200 characters
    return bad_file(short_path, f"{why}.{hint}")


def not_one_row(n_rows: int) -> BanburyError:
    """Returns the error of a table of ``n_rows`` rows where a single row is needed."""
    return BanburyError(f"one row is needed, but this table has {n_rows:,}. Pass a single row.")


def all_impossible(n_rows: int, setting: str, advice: str = "how='mean'") -> BanburyWarning:
    """Returns the warning about rows that are impossible in every class. ``setting``: the setting to blame; ``advice``:
    the one to use instead.
    """
    return BanburyWarning(
        f"every class is impossible for {n_rows:,} rows under {setting}; their posterior is the class prior. "
        f"Use {advice} to smooth the probabilities."
    )


def not_calibrated(what: str) -> BanburyWarning:
    """Returns the warning that a calibration was dropped. ``what``: the operation after which."""
    return BanburyWarning(
        f"after {what} the probabilities are no longer calibrated, because fit learns calibration from all rows. "
        "Call fit again to calibrate them."
    )


def value_never_seen(value: Any, column: str, known: Sequence[Any]) -> UnknownValue:
    """Returns the error of a value that no row of the column has. ``known``: the values that rows have."""
    return UnknownValue(
        f"{column!r} has no value {value!r}.{did_you_mean(value, known)}\n  Values: {listed(map(repr, known))}",
        value=value,
        column=column,
        known=list(known),
    )


def impossible_given(evidence: Iterable[str], smoothed: bool) -> ImpossibleEvidence:
    """Returns the error of evidence that has probability zero in a network. ``evidence``: the observations as texts;
    ``smoothed``: whether the tables of the network are, so that smoothing is no advice.
    """
    hint = "Check it, or" if smoothed else "Smooth the tables with how='mean', or"
    return ImpossibleEvidence(
        f"the evidence {listed(evidence)} has probability zero in this network, so it has no consequences. "
        f"{hint} give fewer observations."
    )


def negative_rows(left: Any, node: str | None, value: Any) -> NegativeCount:
    """Returns the error of a subtraction from a network that would leave a negative number, ``left``, of rows, or of
    rows in which ``node`` has this value. ``node``: None for all rows.
    """
    location = "" if node is None else f" of {node!r} = {value!r}"
    return NegativeCount(
        f"subtracting left {left:g} rows{location}. The subtracted rows were not part of this network; nothing was changed. "
        "Subtract only what was added.",
        left=left,
        feature=node,
    )


def unlike_networks(why: str) -> SchemaMismatch:
    """Returns the error of networks that counted different things. ``why``: the difference in words."""
    return SchemaMismatch(
        f"networks that counted different things cannot be added or subtracted: {why}. Count the other rows with "
        "network.count_more(rows), which keeps this network's structure and bins."
    )


def bad_table(node: str, why: str) -> BadSetting:
    """Returns the error of an invalid table of a node. ``why``: the fault in words."""
    return BadSetting(f"the table of {node!r} {why}.", name="tables", value=node)
