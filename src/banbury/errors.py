"""The errors, and the messages that several places say: what happened, with the value; where; and what to do next.

One base class, so that ``except BanburyError`` catches all of them. It is a ValueError, as scikit-learn's users expect.
The parts of a message are attributes too, so that a program can act on them.
"""

from __future__ import annotations

import difflib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

HERE = os.path.dirname(__file__) + os.sep


class BanburyError(ValueError):
    """The base of every error that Banbury raises about its input."""

    def __init__(self, message: str, **parts: Any) -> None:
        super().__init__(message)
        self.__dict__.update(parts)
        self._parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self._parts)


def _rebuild(kind: type[BanburyError], message: str, parts: dict[str, Any]) -> BanburyError:
    return kind(message, **parts)


class BanburyWarning(UserWarning):
    """The base of every warning that Banbury gives."""


class UnknownColumn(BanburyError):
    """A column was asked for that the data do not have."""


class UnknownClass(BanburyError):
    """A class was named that the tally or the model does not have."""


class UnknownValue(BanburyError):
    """A value was met that the schema's declaration rules out."""


class UnknownKeyword(BanburyError, TypeError):
    """A keyword that no part of the call knows."""


class EmptyData(BanburyError):
    """There is nothing to count."""


class BadValue(BanburyError):
    """A value that cannot be counted: infinite, negative where counts are meant, of the wrong type."""


class BadWeight(BanburyError):
    """A weight that is negative, missing or infinite, or weights of the wrong shape."""


class LengthMismatch(BanburyError):
    """Two things that must have one entry per row do not."""


class DuplicateColumn(BanburyError):
    """Two columns of one name."""


class BadFile(BanburyError):
    """A file that is missing, unreadable or not what its name says."""


class DamagedFile(BadFile):
    """A model file that is not what was written: cut off, or changed since."""


class UnknownFormat(BadFile):
    """A model file of a format that this version does not read."""


class BadSetting(BanburyError):
    """An argument outside what it may be."""


class SchemaMismatch(BanburyError):
    """Two tallies, or a tally and rows, that do not count the same things."""


class NotATally(BanburyError, TypeError):
    """Arithmetic of a tally with something else."""


class MissingLibrary(BanburyError, ImportError):
    """An optional library that is not installed."""


class NegativeCount(BanburyError):
    """More was subtracted than had been added."""


_led_here = threading.local()


def _line() -> tuple[str, int, str, dict[Any, Any]]:
    """The line outside of the package that led here: its file, number and module, and what was said there before."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    said = frame.f_globals.setdefault("__warningregistry__", {})
    return frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", "<string>"), said


def warn(warning: Warning | str) -> None:
    """Gives a warning, at the line outside of the package that led to it."""
    file, line, module, said = getattr(_led_here, "line", None) or _line()
    kind = type(warning) if isinstance(warning, Warning) else UserWarning
    warnings.warn_explicit(warning, kind, file, line, module, said)


def led_from_here(work: Callable[[int], Any]) -> Callable[[int], Any]:
    """The same work for other threads, whose warnings point at the line that led here."""
    line = _line()

    def done(number: int) -> Any:
        _led_here.line = line
        return work(number)

    return done


SHORT = 40  # characters of a name, of the data's, that is shown


def listed(names: Iterable[Any], most: int = 12) -> str:
    """The first few of ``names``, and how many more there are."""
    names = [str(name) for name in names]
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def many(n: float, what: str, several: str | None = None) -> str:
    """So many of something, in words: ``1 row``, ``2 rows``, ``3 classes``."""
    plural = several or what + ("es" if what.endswith("s") else "s")
    return f"{n:,} {what if n == 1 else plural}"


def shortened(text: Any, most: int = SHORT) -> str:
    """The text on one line, cut off where it is long.

    >>> shortened("a line\\nand another", 8)
    'a line …'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """`` Did you mean 'length'?``, or nothing when no known name is near."""
    near = {str(other).casefold(): str(other) for other in known}  # whatever the case
    close = difflib.get_close_matches(str(name).casefold(), list(near), n=1, cutoff=0.6)
    return f" Did you mean {near[close[0]]!r}?" if close else ""


def where(source: str | None) -> str:
    return f" in {source}" if source else ""


DELIMITED = tuple(
    f".{kind}{how}" for kind in ("csv", "tsv", "txt", "data", "dat", "tab") for how in ("", ".gz", ".bz2")
)


def unknown_column(name: Any, known: Sequence[Any], source: str | None = None) -> UnknownColumn:
    return UnknownColumn(
        f"no column {name!r}{where(source)}.{did_you_mean(name, known)}\n"
        f"  Columns: {listed(map(shortened, known))}{header_hint(source)}",
        column=name,
        known=list(known),
    )


def reserved_column(name: str, role: str) -> BadSetting:
    return BadSetting(
        f"column {name!r} is {role}, so it cannot be a feature or in a block too. Leave it out of features=.",
        setting="features",
        value=name,
        column=name,
    )


def column_in_block(name: str, columns: Sequence[str]) -> UnknownColumn:
    shown = f"({listed(map(repr, columns), 6)})" if len(columns) > 1 else f"({columns[0]!r},)"
    return UnknownColumn(
        f"column {name!r} has no distribution of its own: it is in the block {shown}. Name the block in its place, all of its "
        "columns together.",
        column=name,
        block=tuple(columns),
    )


def header_hint(source: str | None) -> str:
    delimited = source is not None and source.lower().endswith(DELIMITED)
    return "\n  The first line was taken for the header; if the file has none, give columns=[...]." if delimited else ""


def unknown_class(name: Any, known: Sequence[Any]) -> UnknownClass:
    return UnknownClass(
        f"no class {name!r}.{did_you_mean(name, known)}\n  Classes: {listed(known)}", name=name, known=list(known)
    )


def unknown_value(value: Any, column: str, declared: Sequence[Any]) -> UnknownValue:
    return UnknownValue(
        f"column {column!r} holds {value!r}, which is not among the values declared for it.{did_you_mean(value, declared)}\n"
        f"  Declared: {listed(declared)}. Declare it too, or leave values= out to count whatever comes.",
        value=value,
        column=column,
    )


def empty_data(source: str | None = None, why: str = "it has no rows") -> EmptyData:
    return EmptyData(f"nothing to count{where(source)}: {why}.")


def empty_table(n_rows: int, n_columns: int) -> EmptyData:
    """Worded as scikit-learn words it."""
    what, shape = "feature" if n_rows else "sample", (n_rows, n_columns)
    return EmptyData(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")


def no_target(n_rows: int, target: Any) -> EmptyData:
    name = f" {target!r}" if isinstance(target, str) else ""
    return EmptyData(
        f"every one of the {n_rows:,} rows has a missing target{name}. Rows without a target teach nothing; "
        "check the column's name and the spelling of missing values."
    )


def bad_value(what: str, value: Any, column: str, row: int, source: str | None = None) -> BadValue:
    """``what`` as the kernels say it."""
    place = f"row {row:,} of column {column!r}{where(source)}"
    sentences = {
        "infinite": f"{place} is infinite ({value}). Replace it by a number, or by NaN to have it skipped.",
        "too far": f"{place} is {value:g}, more than 2**400 units from the column's origin. "
        "Replace it, or infer the schema from rows that show the column's scale.",
        "not 0 or 1": f"{place} is {value:g}, and a Bernoulli column holds 0 and 1. "
        "Say where yes begins with bb.Bernoulli(threshold=...), or count it as another family.",
        "not a count": f"{place} is {value:g}, and a Poisson column holds whole numbers from 0 up. "
        "Count it as 'gaussian', 'histogram' or 'kernel_density' instead.",
        "missing": f"{place} is missing. Give a number, or have missing ones skipped with missing='skip'.",
        "too many": f"{place} is {value:g}, more occurrences than can be added up. Replace it.",
        "negative": f"{place} is {value:g}, and nothing occurs fewer than no times. "
        "Count the columns as 'gaussian', 'histogram' or 'kernel_density' instead.",
        "too fine": f"{place} is {value:g}, more than 2**53 bins from the start. "
        "Replace it, or give the bins a greater width with bb.Histogram(start=..., width=...).",
    }
    return BadValue(sentences[what], what=what, value=value, column=column, row=row)


def wrong_type(value: Any, column: str, wanted: str, row: int | None = None, source: str | None = None) -> BadValue:
    place = f"row {row:,} of column {column!r}" if row is not None else f"column {column!r}"
    other = f"count the column as another family, as in features={{{column!r}: 'gaussian'}}"
    if not isinstance(value, float):
        other = "choose another family for the column in features="
    return BadValue(
        f"{place}{where(source)} holds {value!r}, and {wanted} is needed there. "
        f"Mend the value, name it in missing_values=, or {other}.",
        value=value,
        column=column,
        row=row,
        wanted=wanted,
    )


def bad_weight(row: int, value: Any) -> BadWeight:
    what = (
        "missing"
        if value != value
        else "negative"
        if value < 0
        else "infinite"
        if value == float("inf")
        else "too large"
    )
    return BadWeight(
        f"the weight of row {row:,} is {what} ({value}). Weights are not negative and below 2**63; to take rows out, "
        "subtract their tally.",
        row=row,
        value=value,
    )


def length_mismatch(what: str, length: int, n_rows: int) -> LengthMismatch:
    return LengthMismatch(
        f"Found input variables with inconsistent numbers of samples: {n_rows:,} rows but {length:,} {what}. "
        f"Give one of the {what} per row."
    )


def not_a_tally(other: Any, sign: str) -> NotATally:
    return NotATally(
        f"cannot {sign} a tally and a {type(other).__name__}. Count the rows first: tally + tally.count(rows), "
        "or tally - tally.count(rows) to forget them."
    )


def tested_what_it_learned() -> BanburyWarning:
    return BanburyWarning(
        "some split tests rows that it also learns from, so its answers are not those of a model that has not seen them."
    )


def tested_nothing() -> EmptyData:
    return EmptyData(
        "every row that is tested has a weight of zero, so there is nothing to measure. Give some a weight."
    )


def continuous_target(n_values: int, n_rows: int) -> BadValue:
    return BadValue(
        f"the target has {n_values:,} different fractional numbers in {n_rows:,} rows: it looks continuous, and classes are "
        "wanted. Cut it into classes first, for instance with pandas.cut(...).astype(str)."
    )


def duplicate_column(name: Any, source: str | None = None) -> DuplicateColumn:
    return DuplicateColumn(f"two columns are named {name!r}{where(source)}. Rename one of them.", column=name)


def bad_file(path: Any, why: str) -> BadFile:
    return BadFile(f"cannot read {path}: {why}", path=str(path))


def unwritable_file(path: Any, why: str) -> BadFile:
    return BadFile(
        f"cannot write {path}: {why}. Name a file in a folder that exists and may be written to.", path=str(path)
    )


def damaged_file(path: Any, why: str) -> DamagedFile:
    return DamagedFile(f"cannot read {path}: {why}. It is damaged or cut off: copy or save it again.", path=str(path))


def unknown_format(path: Any, found: Any, known: int) -> UnknownFormat:
    return UnknownFormat(
        f"cannot read {path}: it has format {found!r}, and this version of Banbury reads formats up to {known}. "
        "Install the version that wrote it, or a newer one.",
        path=str(path),
        format=found,
    )


def cannot_be_saved(path: Any, why: str) -> BadFile:
    return BadFile(
        f"cannot write {path}: one of its labels, names or settings cannot stand in a file ({why}). "
        "Make it a text, a number or a boolean.",
        path=str(path),
    )


def header_too_long(path: Any, length: int, most: int) -> BadFile:
    return BadFile(
        f"cannot write {path}: its names, classes and categories take {length:,} bytes, and {most:,} are the most. "
        "Count columns of so many different values as text, or leave them out with features={...: None}.",
        path=str(path),
    )


def bad_setting(name: str, value: Any, wanted: str) -> BadSetting:
    return BadSetting(f"{name} must be {wanted}. Got {value!r} instead.", setting=name, value=value)


def missing_library(name: str, what: str, otherwise: str, extra: str = "plots") -> MissingLibrary:
    return MissingLibrary(
        f"{what} with {name}, which is not installed. Install it with: pip install 'banbury[{extra}]'. Without it, {otherwise}.",
        library=name,
    )


def unknown_choice(name: str, value: Any, known: Iterable[Any]) -> BadSetting:
    known = list(known)
    return BadSetting(
        f"{name} must be one of {listed(map(repr, known))}. Got {value!r} instead.{did_you_mean(value, known)}",
        setting=name,
        value=value,
    )


def schema_mismatch(why: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"cannot combine tallies that counted different things: {why}.\n"
        "  Count both with the same schema (bb.count(..., schema=tally.schema)), or bring one over with tally.to(schema)."
    )


def counted_otherwise(why: str) -> SchemaMismatch:
    return SchemaMismatch(f"{why}: that needs the rows again. Count them with bb.count(..., features=...).")


def cannot_restart(column: str, kind: str) -> BadValue:
    declared = f", name its family, as in features={{{column!r}: 'gaussian'}}" if kind == "float" else ""
    return BadValue(
        f"column {column!r} does not stay what its first rows were, and counting again from the start, reading it as {kind}s, "
        f"needs data that can be read twice. Give a list instead of an iterator{declared}, or a schema made from all of it.",
        column=column,
    )


def widened(column: str, kind: str, source: str | None = None) -> BanburyWarning:
    return BanburyWarning(
        f"column {column!r}{where(source)} does not stay what its first rows were: "
        f"counting again from the start, reading it as {kind}s"
    )


def too_light(n_rows: int) -> BanburyWarning:
    rows = "1 row weighs" if n_rows == 1 else f"{n_rows:,} rows weigh"
    return BanburyWarning(
        f"{rows} less than 5e-19, which counts as nothing. Multiply all weights by a number to count them"
    )


class TooManyCells(BadValue):
    """A table of values and classes would not fit into memory."""


def too_many_cells(column: str, n_values: int, n_classes: int) -> TooManyCells:
    return TooManyCells(
        f"column {column!r} has {n_values:,} values and there are {n_classes:,} classes: a table of all pairs would not fit. "
        f"Leave the column out with features={{{column!r}: None}}, or join its rare values first.",
        column=column,
    )


def too_many_rows() -> BadSetting:
    return BadSetting(
        "the sum would hold 2**63 rows or occurrences, more than can be counted. Give smaller weights, or scale tallies down."
    )


def negative_count(
    left: Any, label: Any, feature: str | None = None, shown: str | None = None, what: str = "rows", key: Any = None
) -> NegativeCount:
    """``shown``: the value, or where its bin lies; ``key``: what it is counted by."""
    place = f"class {label!r}"
    if feature is not None:
        place += f" in feature {feature!r}"
    if shown is not None:
        place += f" ({shown})"
    return NegativeCount(
        f"subtracting left {left} {what} of {place}. The tally subtracted was not part of this one; nothing was changed. "
        "Subtract only what was added.",
        left=left,
        label=label,
        feature=feature,
        key=key,
    )


def impossible_sums(label: Any, feature: str) -> NegativeCount:
    return NegativeCount(
        f"subtracting left sums of feature {feature!r} in class {label!r} that no rows can have (a negative sum of squares, or "
        "a sum without rows). The tally subtracted was not part of this one; nothing was changed. Subtract only what was added.",
        label=label,
        feature=feature,
    )


class WrongWidth(BanburyError):
    """An array with another number of columns than the model was made from."""


def wrong_width(found: int, expected: int, who: str = "Model", names: Sequence[str] = ()) -> WrongWidth:
    """Worded as scikit-learn words it; columns that have names may be given by name, and then some of them may be absent."""
    hint = f" Give them by name, as a frame or a mapping: {listed(map(repr, names))}." if names else ""
    return WrongWidth(f"X has {found} features, but {who} is expecting {expected} features as input.{hint}")


def cannot_convert(thing: Any, why: str) -> TypeError:
    return TypeError(
        f"cannot make a model of this {type(thing).__name__}. {why} Give a fitted naive Bayes of scikit-learn, or a pipeline of "
        "CountVectorizer and one; or learn anew with bb.NaiveBayesClassifier().fit(rows, labels)."
    )


def not_one_column(shape: tuple[int, ...]) -> BanburyError:
    return BanburyError(f"one value per row is needed, and this array has the shape {shape}. Give a 1-D array.")


def not_a_column(values: Any) -> BanburyError:
    return BanburyError(f"one value per row is needed, and this is {values!r}. Give a list or a 1-D array.")


def scalar_for_column(name: str, value: Any) -> BanburyError:
    return BanburyError(
        f"column {name!r} is {value!r}, and a column is a list or an array with one value per row. "
        "For a single row give a list with one mapping in it.",
        column=name,
    )


def uneven_columns(name: str, length: int, other: str, other_length: int) -> LengthMismatch:
    return LengthMismatch(
        f"column {name!r} has {length:,} rows and column {other!r} has {other_length:,}. Give columns of one length.",
        column=other,
    )


def ragged_rows(row: int, length: int, expected: int) -> LengthMismatch:
    if length == expected:
        return LengthMismatch("the rows hold sequences of different lengths. Give one number or text per cell.")
    return LengthMismatch(
        f"row {row:,} has {length:,} cells and row 0 has {expected:,}. Give rows of one length.", row=row
    )


def missing_file(
    path: Any,
    near: Sequence[str],
    why: str = "there is no such file",
    otherwise: str = " A text to be read is given in a list, or in a column.",
) -> BadFile:
    hint = f" Did you mean {near[0]!r}?" if near else otherwise
    shown = path if len(str(path)) <= 200 else f"{str(path)[:197]}..."
    return bad_file(shown, f"{why}.{hint}")


def wrong_type_in_line(value: Any, column: str, wanted: str, line: int | None, path: Any) -> BadValue:
    place = f"line {line:,}" if line else "a line"
    return BadValue(
        f"{path}, {place}: column {column!r} holds {value!r}, and {wanted} is needed there. "
        "Mend the value, name it in missing_values=, or choose another family for the column in features=.",
        value=value,
        column=column,
        line=line,
        path=str(path),
    )


def bad_line(path: Any, line: int | None, why: str) -> BadFile:
    place = f"line {line:,}" if line else "a line"
    return BadFile(f"{path}, {place}: {why}", path=str(path), line=line)


def not_one_row(n_rows: int) -> BanburyError:
    return BanburyError(f"one row is needed, and this table has {n_rows:,}. Give one of them.")


def all_impossible(n_rows: int, setting: str, advice: str = "how='mean'") -> BanburyWarning:
    return BanburyWarning(
        f"every class is impossible for {n_rows:,} rows under {setting}; they are answered by the class prior. "
        f"Smooth with {advice} to have the evidence weighed."
    )


def other_columns_than_counted(what: str, names: Sequence[str]) -> BanburyWarning:
    shown, several = listed(map(repr, names)), len(names) > 1
    if what == "absent":
        return BanburyWarning(f"no column{'s' * several} {shown} in these rows: skipped")
    return BanburyWarning(
        f"columns {shown} were not counted, and are ignored"
        if several
        else f"column {shown} was not counted, and is ignored"
    )


def nothing_chosen(left_out: dict[str, str]) -> BanburyWarning:
    why = listed((f"{name!r} ({reason})" for name, reason in left_out.items()), 6)
    return BanburyWarning(
        "no column is left to learn from, so every row will be answered by the class prior"
        + (f"; left out: {why}. Name a family in features= to have a column counted all the same" if why else "")
    )


def too_many_words(column: str, n_words: int, n_classes: int, why: str) -> BadSetting:
    return BadSetting(
        f"column {column!r} has {n_words:,} words and there are {n_classes:,} classes: {why} needs a number for every pair, more "
        "than fit. Keep fewer words with bb.Text(min_count=..., max_words=...).",
        column=column,
    )


def loose_covariance(block: str, n_columns: int, n_rows: int, tied: bool) -> BanburyWarning:
    """``n_rows``: of the smallest class whose covariance it is; of all classes together where one is ``tied`` to all."""
    rows, advice = many(n_rows, "row"), "" if tied else "covariance='tied', "
    few = f"has {rows}" if tied else f"has a class of {rows}"
    return BanburyWarning(
        f"block {block!r} of {many(n_columns, 'column')} {few}, whose covariance has no inverse; a little of "
        f"each column's own variance is mixed into it. Take fewer columns, {advice}or a prior."
    )


def too_many_combinations(block: str, n_columns: int) -> BanburyError:
    return BanburyError(
        f"block {block!r} of {n_columns} columns has more combinations of values than can be numbered (2**62). "
        "Take fewer columns."
    )


def no_words_left(column: str, n_words: int) -> BanburyWarning:
    return BanburyWarning(
        f"none of the {n_words:,} words of column {column!r} is left, so its texts say nothing. Prune less: see min_count, "
        "min_share, max_share and drop_most_frequent of bb.Text."
    )


def too_many_to_leave_out(n_rows: int, most: int) -> BadSetting:
    return BadSetting(
        f"folds='loo' has no formula for these settings, and there are {n_rows:,} rows; row by row it can be done for two to "
        f"{most:,} of them. Give a number of folds, or how='mean'."
    )


def not_calibrated(what: str) -> BanburyWarning:
    return BanburyWarning(
        f"after {what} probabilities are not calibrated: a calibration is learned with fit, from all rows. Fit again to have one."
    )


def too_many_folds(column: str, n_groups: int, n_classes: int) -> BadSetting:
    return BadSetting(
        f"column {column!r} has too many values for {n_groups:,} folds × {n_classes:,} classes: there is a number for each of "
        "them. Give fewer folds.",
        column=column,
    )


class BadPrior(BanburyError):
    """Prior probabilities of hypotheses that do not sum to one."""


class UnknownHypothesis(BanburyError):
    """A hypothesis was named that the space does not have, or one was left out."""


class UnknownLabel(BanburyError):
    """A hypothesis predicts, or a row has, what is not among the labels."""


class ImpossibleEvidence(BanburyError):
    """Rows that have probability zero under every hypothesis."""


class CyclicStructure(BanburyError):
    """A network whose edges lead back to where they began."""


def value_never_seen(value: Any, column: str, known: Sequence[Any]) -> UnknownValue:
    return UnknownValue(
        f"{column!r} has no value {value!r}.{did_you_mean(value, known)}\n  Values: {listed(map(repr, known))}",
        value=value,
        column=column,
        known=list(known),
    )


def impossible_given(evidence: Iterable[str], smoothed: bool) -> ImpossibleEvidence:
    hint = "" if smoothed else " Smooth the tables with how='mean', or"
    return ImpossibleEvidence(
        f"the evidence {listed(evidence)} has probability zero in this network, so nothing follows from it."
        f"{hint or ' Check it, or'} give less evidence."
    )


def no_block_in_a_network(block: str) -> BadSetting:
    return BadSetting(
        f"block {block!r} cannot be a node: a network's nodes are single columns, and its arrows say which depend on which. "
        "Name the columns one by one in features=, or leave the block out of it.",
        name="features",
        value=block,
    )


def left_out_of_tree(column: str, why: str) -> UnknownColumn:
    return UnknownColumn(
        f"column {column!r} is no node of this network: it was left out ({why}). Name its family in features= to have it counted "
        "all the same.",
        column=column,
    )


def negative_rows(left: Any, node: str | None, value: Any) -> NegativeCount:
    place = "" if node is None else f" of {node!r} = {value!r}"
    return NegativeCount(
        f"subtracting left {left:g} rows{place}. What was subtracted was not part of this network; nothing was changed. "
        "Subtract only what was added.",
        left=left,
        feature=node,
    )


def unlike_networks(why: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"networks that counted different things cannot be added, subtracted or compared: {why}. Count the other rows with "
        "network.count_more(rows), which keeps this network's structure and bins."
    )


def bad_table(node: str, why: str) -> BadSetting:
    return BadSetting(f"the table of {node!r} {why}.", name="tables", value=node)
