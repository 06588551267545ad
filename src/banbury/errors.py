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

HERE = os.path.dirname(__file__) + os.sep
WITHIN = contextlib.__file__, functools.__file__  # what decorators of the package pass through


class BanburyError(ValueError):
    """The base class of all errors that Banbury raises about its input."""

    def __init__(self, message: str, **parts: Any) -> None:
        super().__init__(message)
        self.__dict__.update(parts)
        self._parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self._parts)


def _rebuild(kind: type[BanburyError], message: str, parts: dict[str, Any]) -> BanburyError:
    return kind(message, **parts)


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


_led_here = threading.local()


def _line() -> tuple[str, int, str, dict[Any, Any]]:
    """The line outside of the package that led here: its file, number and module, and what was said there before."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((HERE, *WITHIN)):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    return frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", "<string>"), registry


def warn(warning: Warning | str) -> None:
    """Gives a warning (a BanburyWarning if it is a string) at the line outside the package that caused it."""
    pending = warning if isinstance(warning, Warning) else BanburyWarning(warning)
    if (heard := getattr(_led_here, "heard", None)) is not None:
        heard.setdefault(str(pending))
        return
    file, line, module, registry = getattr(_led_here, "line", None) or _line()
    warnings.warn_explicit(pending, type(pending), file, line, module, registry)


@contextlib.contextmanager
def collect_warnings() -> Iterator[dict[str, None]]:
    """Collects the warnings of this thread, each once, so that they can be given elsewhere."""
    before = getattr(_led_here, "heard", None)
    heard = dict[str, None]()
    _led_here.heard = heard
    try:
        yield heard
    finally:
        _led_here.heard = before


def warn_at_callers_line(work: Callable[[int], Any]) -> Callable[[int], Any]:
    """Wraps a function for other threads, so that its warnings point at the current line."""
    line = _line()

    def done(number: int) -> Any:
        _led_here.line = line
        return work(number)

    return done


SHORT = 40  # characters of a name, of the data's, that is shown
LONG = 300  # letters of a value that is refused


def listed(names: Iterable[Any], most: int = 12) -> str:
    """Lists the first few of ``names`` and how many more there are."""
    names = [str(name) for name in names]
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def many(n: float, what: str, several: str | None = None) -> str:
    """Formats a number with a noun: ``1 row``, ``2 rows``, ``3 classes``."""
    plural = several or what + ("es" if what.endswith("s") else "s")
    return f"{n:,} {what if n == 1 else plural}"


def shortened(text: Any, most: int = SHORT) -> str:
    r"""Returns the text on one line, truncated if it is long.

    >>> shortened("a line\nand another", 8)
    'a line …'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """Returns `` Did you mean 'length'?``, or an empty string if no known name is similar."""
    near = {str(other).casefold(): str(other) for other in known}  # whatever the case
    close = difflib.get_close_matches(str(name).casefold(), list(near), n=1, cutoff=0.6)
    return f" Did you mean {near[close[0]]!r}?" if close else ""


def where(source: str | None) -> str:
    return f" in {source}" if source else ""


COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
DELIMITED = (".csv", ".tsv", ".txt", ".data", ".dat", ".tab", "")


def unknown_column(name: Any, known: Sequence[Any], source: str | None = None) -> UnknownColumn:
    numbered = list(known) == [str(number + 1) for number in range(len(known))]  # as they are without a header
    hint = A_HEADER * bool(source) if numbered else header_hint(source)
    columns = f"  Columns: {listed(map(shortened, known))}{hint}"
    if name in ("subject", "body") and tuple(known) in (("text",), ("class", "text")):
        columns += "\n  To read mail headers as columns, pass headers='columns'."
    named = "matches " if isinstance(name, str) and "*" in name else ""
    text = f"no column {named}{name!r}{where(source)}.{did_you_mean(name, known)}\n{columns}"
    return UnknownColumn(text, column=name, known=list(known))


NO_HEADER = "\n  The first line was read as the header. If it is a row, pass header=False, or columns=[...]."


A_HEADER = "\n  The file was read without a header. If its first line is a header, pass header=True."


def header_hint(source: str | None) -> str:
    """Returns a hint for a missing column, if the file may have no header or another delimiter."""
    if source is None:
        return ""
    name, how = os.path.splitext(source.lower())
    kind = os.path.splitext(name)[1] if how in COMPRESSED else how
    return NO_HEADER if kind in DELIMITED and (kind or os.path.isfile(source)) else ""


def unknown_class(name: Any, known: Sequence[Any]) -> UnknownClass:
    text = f"no class {name!r}.{did_you_mean(name, known)}\n  Classes: {listed(known)}"
    return UnknownClass(text, name=name, known=list(known))


def unknown_value(value: Any, column: str, declared: Sequence[Any]) -> UnknownValue:
    text = f"column {column!r} contains {value!r}, which is not one of its declared values.{did_you_mean(value, declared)}\n"
    text += f"  Declared: {listed(declared)}. Declare this value too, or omit values= to count any value."
    return UnknownValue(text, value=value, column=column)


def empty_data(source: str | None = None, why: str = "it has no rows") -> EmptyData:
    return EmptyData(f"nothing to count{where(source)}: {why}.")


def no_target(n_rows: int, target: Any) -> EmptyData:
    name = f" {target!r}" if isinstance(target, str) else ""
    text = f"the target{name} is missing in all {n_rows:,} rows. Nothing can be learned from rows without a target; "
    return EmptyData(f"{text}check the column's name and the spelling of missing values.")


def bad_value(what: str, value: Any, column: str, row: int, source: str | None = None) -> BadValue:
    """Returns the error for a value that a kernel rejected."""
    place = f"row {row:,} of column {column!r}{where(source)}"
    sentences = {
        "infinite": f"{place} is infinite ({value}). Replace it with a number, or with NaN to skip it.",
        "too far": f"{place} is {value:g}, more than 2**400 units from the column's origin. "
        "Replace it, or infer the schema from rows that show the column's scale.",
        "not 0 or 1": f"{place} is {value:g}, but a Bernoulli column can contain only 0 and 1. "
        "Set a threshold with bb.Bernoulli(threshold=...), or choose another family.",
        "not a count": f"{place} is {value:g}, but a Poisson column can contain only non-negative whole numbers. "
        "Use 'quantile_tree', 'gaussian', 'histogram' or 'kernel_density' instead.",
        "missing": f"{place} is missing. Give a number, or pass missing='skip' to skip missing values.",
        "too many": f"{place} is {value:g}, too large to be summed exactly. Replace it.",
        "negative": f"{place} is {value:g}, but counts cannot be negative. "
        "Use 'quantile_tree', 'gaussian', 'histogram' or 'kernel_density' instead.",
        "too fine": f"{place} is {value:g}, more than 2**53 bins from the start. "
        "Replace it, or use wider bins with bb.Histogram(start=..., width=...).",
    }
    return BadValue(sentences[what], what=what, value=value, column=column, row=row)


def wrong_type(
    value: Any, column: str, requirement: str, row: int | None = None, source: str | None = None, hint: str = ""
) -> BadValue:
    place = f"row {row:,} of column {column!r}" if row is not None else f"column {column!r}"
    other = "choose another family for the column in features="
    if isinstance(value, float):
        other = f"choose another family for the column, as in features={{{column!r}: 'gaussian'}}"
    text = f"{place}{where(source)} contains {value!r}, but must contain {requirement}. "
    text += f"Fix the value, list it in missing_values=, or {other}.{hint}"
    return BadValue(text, value=value, column=column, row=row, wanted=requirement)


def length_mismatch(what: str, length: int, n_rows: int) -> LengthMismatch:
    text = f"Found input variables with inconsistent numbers of samples: {n_rows:,} rows but {length:,} {what}. "
    return LengthMismatch(f"{text}The two must have the same length.")


def not_a_tally(other: Any, sign: str) -> NotATally:
    text = f"cannot {sign} a tally and a {type(other).__name__}. Count the rows first: tally + tally.count(rows), "
    return NotATally(f"{text}or tally - tally.count(rows) to forget them.")


def part_twice(names: Iterable[str]) -> PartTwice:
    names = sorted(names)
    text = f"part {names[0]!r}" if len(names) == 1 else f"the parts {listed(map(repr, names), 3)}"
    text = f"{text} would be counted twice: both tallies hold {'it' if len(names) == 1 else 'them'} (see tally.parts). Add each "
    return PartTwice(f"{text}part once, or subtract it from one of the tallies first.", parts=names)


def no_test_rows() -> EmptyData:
    text = (
        "every test row has a weight of zero, so there is nothing to measure. Give at least one row a positive weight."
    )
    return EmptyData(text)


def bad_file(path: Any, why: str) -> BadFile:
    return BadFile(f"cannot read {path}: {why}", path=str(path))


def unwritable_file(path: Any, why: str) -> BadFile:
    advice = "Choose a file in an existing, writable folder."
    return BadFile(f"cannot write {path}: {why}. {advice}", path=str(path))


def damaged_file(path: Any, why: str) -> DamagedFile:
    return DamagedFile(
        f"cannot read {path}: {why}. The file is damaged or incomplete: copy or save it again.", path=str(path)
    )


def _cut(text: str) -> str:
    """A value as it is written, unless that fills the screen."""
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def bad_setting(name: str, value: Any, requirement: str) -> BadSetting:
    return BadSetting(f"{name} must be {requirement}. Got {_cut(repr(value))} instead.", setting=name, value=value)


def require(fits: object, name: str, value: Any, requirement: str) -> None:
    """Raises an error unless a setting is valid."""
    if not fits:
        raise bad_setting(name, value, requirement)


def check_whole(name: str, value: Any, low: int, high: int | None = None) -> None:
    """Raises an error unless a setting is a whole number between ``low`` and ``high``."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    limits = f"of at least {low:,}" if high is None else f"from {low:,} to {high:,}"
    if not is_whole or value < low or (high is not None and value > high):
        raise bad_setting(name, value, f"a whole number {limits}")


def unknown_choice(name: str, value: Any, known: Iterable[Any]) -> BadSetting:
    known = list(known)
    text = f"{name} must be one of {listed(map(repr, known))}. Got {value!r} instead.{did_you_mean(value, known)}"
    return BadSetting(text, setting=name, value=value)


def schema_mismatch(why: str) -> SchemaMismatch:
    text = f"cannot combine tallies that counted different things: {why}.\n"
    text += (
        "  Count both with the same schema (bb.count(..., schema=tally.schema)), or convert one with tally.to(schema)."
    )
    return SchemaMismatch(text)


NOT_PART = "The subtracted tally was not part of this one; nothing was changed. Subtract only what was added."


def forget_before_fading(whose: str) -> RoundedTally:
    text = f"the sums of {whose} were rounded when it was scaled by a fraction or moved to another schema (tally.rounded), so no "
    text += "rows can be taken out exactly; nothing was changed. Forget before you fade: keep the unfaded tally, subtract the "
    return RoundedTally(f"{text}rows there, and fade a copy, as in (tally - rows) * 0.9.")


def too_many_rows() -> BadSetting:
    advice = "Use smaller weights, or scale the tallies down."
    return BadSetting(f"the sum would reach 2**63 rows or occurrences, which is too many. {advice}")


def negative_count(
    left: Any, label: Any, feature: str | None = None, shown: str | None = None, what: str = "rows", key: Any = None
) -> NegativeCount:
    """Returns the error. ``shown`` is the value or its bin, ``key`` what it is counted by."""
    place = "" if feature is None else f" in feature {feature!r}"
    place += "" if shown is None else f" ({shown})"
    text = f"subtracting left {left} {what} of class {label!r}{place}. {NOT_PART}"
    return NegativeCount(text, left=left, label=label, feature=feature, key=key)


def impossible_sums(label: Any, feature: str) -> NegativeCount:
    what = "that no data can have (a negative sum of squares, or a sum without rows)"
    text = f"subtracting left sums of feature {feature!r} in class {label!r} {what}. {NOT_PART}"
    return NegativeCount(text, label=label, feature=feature)


def wrong_width(n_columns: int, expected: int, who: str = "Model", names: Sequence[str] = ()) -> WrongWidth:
    """Returns the error in scikit-learn's wording. Columns can be given by name, and some can then be absent."""
    hint = f" Pass columns by name, in a frame or a mapping: {listed(map(repr, names))}." if names else ""
    return WrongWidth(f"X has {n_columns} features, but {who} is expecting {expected} features as input.{hint}")


def no_column(values: Any) -> BanburyError:
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
    hint = f" Did you mean {near[0]!r}?" if near else otherwise
    shown = path if len(str(path)) <= 200 else f"{str(path)[:197]}..."
    return bad_file(shown, f"{why}.{hint}")


def not_one_row(n_rows: int) -> BanburyError:
    return BanburyError(f"one row is needed, but this table has {n_rows:,}. Pass a single row.")


def all_impossible(n_rows: int, setting: str, advice: str = "how='mean'") -> BanburyWarning:
    text = f"every class is impossible for {n_rows:,} rows under {setting}; their posterior is the class prior. "
    return BanburyWarning(f"{text}Use {advice} to smooth the probabilities.")


def not_calibrated(what: str) -> BanburyWarning:
    text = f"after {what} the probabilities are no longer calibrated, because fit learns calibration from all rows. "
    return BanburyWarning(f"{text}Call fit again to calibrate them.")


def value_never_seen(value: Any, column: str, known: Sequence[Any]) -> UnknownValue:
    text = f"{column!r} has no value {value!r}.{did_you_mean(value, known)}\n  Values: {listed(map(repr, known))}"
    return UnknownValue(text, value=value, column=column, known=list(known))


def impossible_given(evidence: Iterable[str], smoothed: bool) -> ImpossibleEvidence:
    hint = "Check it, or" if smoothed else "Smooth the tables with how='mean', or"
    what = f"the evidence {listed(evidence)} has probability zero in this network, so it has no consequences."
    return ImpossibleEvidence(f"{what} {hint} give fewer observations.")


def negative_rows(left: Any, node: str | None, value: Any) -> NegativeCount:
    place = "" if node is None else f" of {node!r} = {value!r}"
    text = f"subtracting left {left:g} rows{place}. The subtracted rows were not part of this network; nothing was changed. "
    return NegativeCount(f"{text}Subtract only what was added.", left=left, feature=node)


def unlike_networks(why: str) -> SchemaMismatch:
    text = f"networks that counted different things cannot be added, subtracted or compared: {why}. Count the other rows with "
    return SchemaMismatch(f"{text}network.count_more(rows), which keeps this network's structure and bins.")


def bad_table(node: str, why: str) -> BadSetting:
    return BadSetting(f"the table of {node!r} {why}.", name="tables", value=node)
