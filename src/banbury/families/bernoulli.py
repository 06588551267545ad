"""Bernoulli: yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families import dirichlet
from banbury.families.categorical import check_prior
from banbury.families.family import (
    Choice,
    ColumnReader,
    Family,
    Feature,
    Features,
    KeyedParameters,
    NumberColumn,
    Reads,
    RowsToCount,
    check_finite,
    check_settings,
)
from banbury.families.keys import KeyCounter, KeyedFamily, check_key_order, count_values, finite_numbers, number_values
from banbury.reading import Batch, Codes
from banbury.sums import Counts, Key, Keys, as_index

KEYS: Keys = (False, True)
NUMBERS = {"boolean", "integer", "float", "empty"}  # the kinds of columns that arrive as numbers
MEANINGS = {"false": False, "true": True, "0": False, "1": True}


@dataclass(frozen=True, repr=False)
class Bernoulli(KeyedFamily):
    """A yes/no column: booleans, or numbers 0 and 1.

    Args:
        alpha: The pseudo-count of yes in the Beta prior.
        beta: The pseudo-count of no; ``alpha`` unless given.
        m: The strength of an m-estimate, an alternative to ``alpha`` and ``beta``.
        p: The prior share of yes in an m-estimate.
        threshold: Treats numbers above it as yes and all others as no.
        yes: The value of a string column that means yes; all others mean no.

    >>> import banbury as bb
    >>> tally = bb.count({"rain": [True, False, False], "late": ["yes", "no", "no"]}, target="late")
    >>> bb.estimate(tally, how="mean", alpha=1).likelihood("rain", True)
    {'no': 0.25, 'yes': 0.6666666666666666}
    """

    alpha: float | None = None
    beta: float | None = None
    m: float | None = None
    p: float | None = None
    threshold: float | None = None
    yes: Key = None

    name: ClassVar[str] = "bernoulli"
    counting: ClassVar[tuple[str, ...]] = ("threshold", "yes")

    def __post_init__(self) -> None:
        """Raises unless the settings are valid and go together."""
        if self.threshold is not None and self.yes is not None:
            raise errors.bad_setting("yes", self.yes, "omitted when a threshold is given")
        if self.threshold is not None:
            check_finite("threshold", self.threshold)
        errors.require(self.beta is None or self.alpha is not None, "beta", self.beta, "given together with alpha")
        check_prior(self.alpha, self.m, p=None)
        check_settings(self, "beta", zero=True)
        if self.p is not None and (self.m is None or not isinstance(self.p, (int, float)) or not 0 <= self.p <= 1):
            raise errors.bad_setting("p", self.p, "a share from 0 to 1, given together with m")

    def counter(self, feature: Feature) -> FlagCounter:
        """Returns the counter that turns the values of a feature of this family into sums."""
        return FLAGS

    def permanent_keys(self) -> frozenset[Key]:
        """Returns no and yes, which stay in a tally even if no row has them."""
        return frozenset(KEYS)

    @property
    def takes_numbers(self) -> bool:
        """Whether numbers can be counted, directly or by a threshold; otherwise one declared value means yes."""
        return self.yes is None

    def pseudo_counts(self, keys: Keys, alpha: float) -> Real:
        """Returns the pseudo-counts of no and of yes, in this order, whatever ``keys`` are; ``alpha`` is the one for
        families that do not set their own.
        """
        if self.m is not None:  # an m-estimate
            share = 0.5 if self.p is None else self.p  # of yes
            return self.m * np.array([1.0 - share, share])
        yes_count = float(self.alpha if self.alpha is not None else alpha)
        # ``beta`` is that of no, if it was set.
        return np.array([yes_count if self.beta is None else self.beta, yes_count])

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes:
        """Returns as codes for each row whether it means yes (1) or no (0), −1 if its value is missing. ``strict``
        makes no difference.
        """
        name = feature.name
        if self.threshold is not None:
            numbers = finite_numbers(rows, name)
            answers = np.where(np.isnan(numbers), -1, numbers > self.threshold).astype(np.int32)
            return Codes(answers, low=0, values=(False, True))
        number_of_row, distinct_values = number_values(rows.codes(name), threads)
        # Of each distinct value; the last entry, −1, is for rows without one.
        meanings = np.array([*self.means_yes(distinct_values, name), -1], dtype=np.int32)
        return Codes(meanings[number_of_row], low=0, values=(False, True))

    def means_yes(self, values: Sequence[Any], name: str) -> list[bool]:
        """Returns for each of these values of column ``name`` whether it means yes; raises for a value that means
        neither yes nor no.
        """
        if self.yes is not None:
            are_yes = [value == self.yes for value in values]
            expects_string = isinstance(self.yes, str)
            if not any(are_yes) and any(expects_string != isinstance(value, str) for value in values):
                raise errors.wrong_type(values[0], name, f"a value like {self.yes!r}, which was declared as yes,")
            return are_yes
        for value in values:
            if (value.lower() not in MEANINGS) if isinstance(value, str) else value not in (0, 1):
                raise errors.wrong_type(value, name, "0, 1, true or false (or use bb.Bernoulli(yes=...))")
        return [MEANINGS[value.lower()] if isinstance(value, str) else bool(value) for value in values]

    def estimate(self, features: Features, sums: Counts, choice: Choice, rng: Generator) -> BernoulliParameters:
        """Estimates the parameters of these features from their sums, as ``choice`` says; ``rng`` draws under "gibbs"."""
        alpha = np.tile(self.pseudo_counts(KEYS, choice.alpha), len(features))  # of no and yes of each feature
        share = dirichlet.shares(sums.cells.value, sums.offsets, alpha, choice.how, rng)  # (2 · features) × classes
        table = dirichlet.log(share).reshape(len(features), 2, -1)
        return BernoulliParameters(features, np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))

    def log_prior(self, parameters: BernoulliParameters, sums: Counts, choice: Choice) -> float:
        """Returns what the Beta prior adds to the log-likelihood of these parameters, over all features and classes."""
        # Log-probabilities of no and of yes, summed over features (2 × classes).
        log_shares = np.stack([parameters.no.sum(axis=0), parameters.yes.sum(axis=0)])
        return dirichlet.log_prior(log_shares, self.pseudo_counts(KEYS, choice.alpha), choice.how)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """Returns this family, with a threshold unless the values are 0 and 1, for a column of two values; nothing for
        others.
        """
        if column.n_values != 2:
            return ()
        least = column.least
        greatest = column.greatest
        if (least, greatest) == (0.0, 1.0):
            return (self,)
        middle = least / 2.0 + greatest / 2.0
        return (Bernoulli(threshold=middle if middle < greatest else least),)


class FlagCounter(KeyCounter):
    """Counts no and yes: all columns of numbers in one pass, other columns by what each value means."""

    def reads(self, feature: Feature) -> Reads | None:
        """Returns what a column of a text file is read as: numbers if they are counted as such, else what the first
        rows decide.
        """
        return "number" if _family(feature).takes_numbers and feature.kind in ("integer", "float") else None

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Returns no condition: all counts of no and yes can be added."""
        return ()

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Counts]:
        """Counts no and yes of these rows. Returns the features as they are, and their counts. Counts have two lines
        per feature, no and yes (lines × classes).
        """
        numeric_features = [f for f, feature in enumerate(features) if _is_numeric(feature, rows.batch)]  # by number
        numeric_cells = _count_numbers(features.take(numeric_features), rows)
        if len(numeric_features) == len(features):
            return features, Counts((KEYS,) * len(features), numeric_cells)
        # By feature number: the lines no and yes (2 × classes).
        cells_of = {
            f: numeric_cells.take(np.arange(2 * place, 2 * place + 2), 0) for place, f in enumerate(numeric_features)
        }
        other_features = [f for f in range(len(features)) if f not in cells_of]
        counts_of_values = count_values([features.names[f] for f in other_features], [None] * len(other_features), rows)
        for f, (keys, cells) in zip(other_features, counts_of_values, strict=True):
            # The lines of values that mean no are added up as line 0, the others as line 1 of 2.
            cells_of[f] = cells.merge(as_index(_family(features[f]).means_yes(keys, features.names[f])), 2, 0)
        return features, Counts.join([(KEYS, cells_of[f]) for f in range(len(features))], len(rows.labels))

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """Returns the keys of a feature from a file, as a tuple; raises unless they are valid, distinct and in order."""
        if check_key_order(feature, keys) != KEYS:
            raise ValueError(f"the keys of {feature.name!r} are not False and True")
        return KEYS


def _family(feature: Feature) -> Bernoulli:
    """Returns the Bernoulli family of a feature."""
    assert isinstance(feature.family, Bernoulli)
    return feature.family


def _is_numeric(feature: Feature, batch: Batch) -> bool:
    """Whether the batch holds the feature as numbers that can be counted directly."""
    return _family(feature).takes_numbers and batch.kind(feature.name) not in ("string", "other", "date")


def _count_numbers(features: Features, rows: RowsToCount) -> Integers:
    """Returns the rows of no and of yes of each feature in each class ((2 · features) × classes); no and yes of a
    feature are adjacent lines. A feature without a threshold, which must hold 0 and 1 alone, has NaN as its threshold.
    """
    names = features.names
    thresholds_or_none = [_family(feature).threshold for feature in features]
    threshold = np.array([np.nan if limit is None else limit for limit in thresholds_or_none], dtype=np.float64)
    columns = rows.batch.numbers(names) if names else []  # arrays of rows, or of rows × columns
    cells: Integers = rows.run_kernel(_core.count_flags, names, columns, threshold)  # in another shape
    return cells.arranged([2 * len(features), len(rows.labels)])


FLAGS = FlagCounter()


def flag_names(family: Family) -> tuple[list[Any], list[str]] | None:
    """Returns two lists: a value that means no and one that means yes, and their names; None for families other than
    Bernoulli.
    """
    if not isinstance(family, Bernoulli):
        return None
    if (limit := family.threshold) is not None:
        return [limit, float(np.nextafter(limit, np.inf))], [f"at most {limit:g}", f"above {limit:g}"]
    if (yes := family.yes) is not None:
        return [f"not {yes}" if isinstance(yes, str) else yes + 1, yes], [f"not {yes}", str(yes)]
    return [False, True], ["no", "yes"]


@dataclass(frozen=True)
class BernoulliParameters(KeyedParameters):
    """Log-probabilities of no and of yes, each features × classes."""

    features: Features
    no: Real
    yes: Real

    @property
    def family(self) -> Bernoulli:
        """The family with its settings, which all features of a group share."""
        return _family(self.features.templates[0])

    @property
    def _table(self) -> Real:
        """The log-probabilities of no and yes of each feature, one below the other: line 2f is no of feature f, line 2f
        + 1 is yes ((2 · features) × classes).
        """
        return np.stack([self.no, self.yes], axis=1).reshape(2 * len(self.features), -1)

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the part with which the kernel scores these rows: log P(value | class) of each feature."""
        names = self.features.names
        if self.family.yes is None and {rows.kind(name) for name in names} <= NUMBERS:
            limit = np.nan if self.family.threshold is None else self.family.threshold
            return [_core.FlagsPart(rows.numbers(names), np.full(len(names), float(limit)), self.no, self.yes)]
        columns = [rows.codes(name) for name in names]
        low = np.array([column.low for column in columns], dtype=np.int64)  # the lowest code of each column
        # For each column, whether each of its values means yes.
        are_yes = (self.family.means_yes(column.values, name) for name, column in zip(names, columns, strict=True))
        # The line of ``_table`` of each value of a column; feature f has the lines 2f and 2f + 1.
        lookups = [np.array(is_yes, dtype=np.uint32) + np.uint32(2 * f) for f, is_yes in enumerate(are_yes)]
        codes = [column.codes for column in columns]
        # −1: missing values have no line.
        return [_core.TablePart(codes, low, lookups, np.full(len(names), -1), self._table)]

    def values(self) -> tuple[Real, list[tuple[int, Any]]]:
        """Returns P(value | class) of no and yes of every feature (values × classes), and for each line the feature's
        number and the value, False or True.
        """
        return np.exp(self._table), [(f, yes) for f in range(len(self.features)) for yes in (False, True)]

    def categories(self, f: int, column: str) -> Keys | None:
        """Returns a value of the column that means no, and the one that means yes; None if a threshold cuts numbers."""
        if self.family.threshold is not None:
            return None
        return self._no, True if self.family.yes is None else self.family.yes

    def cuts(self, column: str | None) -> list[float] | None:
        """Returns the least number above the threshold, where the density jumps, in a list; None without a threshold."""
        limit = self.family.threshold
        return None if limit is None else [float(np.nextafter(limit, np.inf))]

    @property
    def _no(self) -> Any:
        """A value that means no, like those of the column: False, "not …" for strings, 0 (or 1 if 0 means yes) for
        numbers.
        """
        yes = self.family.yes  # the declared value that means yes
        return False if yes is None else f"not {yes}" if isinstance(yes, str) else 0 if yes else 1

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each feature for a row of each of these ``classes`` (class numbers): a boolean, or a value
        that means yes or no in the column. Returns one array per feature.
        """
        share = np.exp(self.yes)  # P(yes | class) (features × classes)
        drawn = [rng.random(len(classes)) < share[f, classes] for f in range(len(self.features))]
        yes = self.family.yes  # the value that means yes; None: True
        return list(drawn) if yes is None else [np.where(column, yes, self._no) for column in drawn]
