"""Bernoulli: yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.families import dirichlet
from banbury.families.categorical import check_prior
from banbury.families.family import (
    Choice,
    ColumnReader,
    Family,
    Feature,
    KeyedParameters,
    NumberColumn,
    Reads,
    RowsToCount,
    check_finite,
    check_settings,
)
from banbury.families.keys import KeyCounter, KeyedFamily, count_values, dense_numbers, finite_numbers, scalar_keys
from banbury.reading import Batch, Codes
from banbury.sums import Counts, Key, Keys, as_index

KEYS: Keys = (False, True)
NUMBERS = {"boolean", "integer", "float", "empty"}  # the kinds of columns that arrive as such
WORDS = {"false": False, "true": True, "0": False, "1": True}


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
        if self.threshold is not None and self.yes is not None:
            raise errors.bad_setting("yes", self.yes, "omitted when a threshold is given")
        if self.threshold is not None:
            check_finite("threshold", self.threshold)
        errors.require(self.beta is None or self.alpha is not None, "beta", self.beta, "given together with alpha")
        check_prior(self.alpha, self.m, None)
        check_settings(self, "beta", zero=True)
        if self.p is not None and (self.m is None or not isinstance(self.p, (int, float)) or not 0 <= self.p <= 1):
            raise errors.bad_setting("p", self.p, "a share from 0 to 1, given together with m")

    def counter(self, feature: Feature) -> FlagCounter:
        return FLAGS

    def permanent_keys(self) -> frozenset[Key]:
        return frozenset(KEYS)

    @property
    def takes_numbers(self) -> bool:
        """Whether numbers are flags as they are, or by a threshold."""
        return self.yes is None

    def pseudo_counts(self, keys: Keys, alpha: float) -> Real:
        """Of no and of yes."""
        if self.m is not None:
            share = 0.5 if self.p is None else self.p
            return self.m * np.array([1.0 - share, share])
        yes_count = float(self.alpha if self.alpha is not None else alpha)
        return np.array([yes_count if self.beta is None else self.beta, yes_count])

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes:
        name = feature.name
        if self.threshold is not None:
            numbers = finite_numbers(rows, name)
            return Codes(np.where(np.isnan(numbers), -1, numbers > self.threshold).astype(np.int32), 0, (False, True))
        coded, values = dense_numbers(rows.codes(name), threads)
        return Codes(np.array([*self.means_yes(values, name), -1], dtype=np.int32)[coded], 0, (False, True))

    def means_yes(self, values: Sequence[Any], name: str) -> list[bool]:
        if self.yes is not None:
            means = [value == self.yes for value in values]
            unlike = isinstance(self.yes, str)
            if not any(means) and any(unlike != isinstance(value, str) for value in values):
                raise errors.wrong_type(values[0], name, f"a value like {self.yes!r}, which was declared as yes,")
            return means
        for value in values:
            if (value.lower() not in WORDS) if isinstance(value, str) else value not in (0, 1):
                raise errors.wrong_type(value, name, "0, 1, true or false (or use bb.Bernoulli(yes=...))")
        return [WORDS[value.lower()] if isinstance(value, str) else bool(value) for value in values]

    def estimate(
        self, features: tuple[Feature, ...], sums: Counts, choice: Choice, rng: np.random.Generator
    ) -> BernoulliParameters:
        alpha = np.tile(self.pseudo_counts(KEYS, choice.alpha), len(features))
        share = dirichlet.shares(sums.cells.value, sums.offsets, alpha, choice.how, rng)
        table = dirichlet.log(share).reshape(len(features), 2, -1)
        return BernoulliParameters(features, np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))

    def log_prior(self, parameters: BernoulliParameters, sums: Counts, choice: Choice) -> float:
        logs = np.stack([parameters.no.sum(axis=0), parameters.yes.sum(axis=0)])
        return dirichlet.log_prior(logs, self.pseudo_counts(KEYS, choice.alpha), choice.how)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        if column.n_values != 2:
            return ()
        low = column.least
        high = column.greatest
        middle = low / 2.0 + high / 2.0
        return (self if (low, high) == (0.0, 1.0) else Bernoulli(threshold=middle if middle < high else low),)


class FlagCounter(KeyCounter):
    """No and yes: of all columns of numbers in one pass, and of other values by what each means."""

    def reads(self, feature: Feature) -> Reads | None:
        return "number" if _family(feature).takes_numbers and feature.kind in ("integer", "float") else None

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        return ()

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        numeric = [f for f, feature in enumerate(features) if _is_numeric(feature, rows.batch)]
        answers = _count_numbers([features[f] for f in numeric], rows)
        if len(numeric) == len(features):
            return features, Counts((KEYS,) * len(features), answers)
        parts = {f: answers.take(np.arange(2 * k, 2 * k + 2), 0) for k, f in enumerate(numeric)}
        words = [f for f in range(len(features)) if f not in parts]
        counted = count_values([features[f] for f in words], [None] * len(words), rows)
        for f, (keys, cells) in zip(words, counted, strict=True):
            parts[f] = cells.merge(as_index(_family(features[f]).means_yes(keys, features[f].name)), 2, 0)
        return features, Counts.join([(KEYS, parts[f]) for f in range(len(features))], len(rows.labels))

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        if scalar_keys(feature, keys) != KEYS:
            raise ValueError(f"the keys of {feature.name!r} are not False and True")
        return KEYS


def _family(feature: Feature) -> Bernoulli:
    assert isinstance(feature.family, Bernoulli)
    return feature.family


def _is_numeric(feature: Feature, batch: Batch) -> bool:
    return _family(feature).takes_numbers and batch.kind(feature.name) not in ("string", "other", "date")


def _count_numbers(features: Sequence[Feature], rows: RowsToCount) -> Integers:
    """No and yes of each feature, one below the other."""
    names = [feature.name for feature in features]
    limits = [_family(feature).threshold for feature in features]
    threshold = np.array([np.nan if limit is None else limit for limit in limits], dtype=np.float64)
    columns = rows.batch.numbers(names) if names else []
    cells: Integers = rows.run_kernel(_core.count_flags, names, columns, threshold)
    return cells.arranged([2 * len(features), len(rows.labels)])


FLAGS = FlagCounter()


def flag_names(family: Family) -> tuple[list[Any], list[str]] | None:
    """A value that means no and one that means yes, and what they are called; None where values are no flags."""
    if not isinstance(family, Bernoulli):
        return None
    if (limit := family.threshold) is not None:
        return [limit, float(np.nextafter(limit, np.inf))], [f"at most {limit:g}", f"above {limit:g}"]
    if (yes := family.yes) is not None:
        return [f"not {yes}" if isinstance(yes, str) else yes + 1, yes], [f"not {yes}", str(yes)]
    return [False, True], ["no", "yes"]


@dataclass(frozen=True)
class BernoulliParameters(KeyedParameters):
    """Log-probabilities of no and of yes, (features, classes)."""

    features: tuple[Feature, ...]
    no: Real
    yes: Real

    @property
    def family(self) -> Bernoulli:
        return _family(self.features[0])

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        names = [feature.name for feature in self.features]
        if self.family.yes is None and {rows.kind(name) for name in names} <= NUMBERS:
            limit = np.nan if self.family.threshold is None else self.family.threshold
            return [_core.FlagsPart(rows.numbers(names), np.full(len(names), float(limit)), self.no, self.yes)]
        columns = [rows.codes(name) for name in names]
        low = np.array([column.low for column in columns], dtype=np.int64)
        yes = (self.family.means_yes(column.values, name) for name, column in zip(names, columns, strict=True))
        lookups = [np.array(is_yes, dtype=np.uint32) + np.uint32(2 * f) for f, is_yes in enumerate(yes)]
        table = np.stack([self.no, self.yes], axis=1).reshape(2 * len(names), -1)
        return [_core.TablePart([column.codes for column in columns], low, lookups, np.full(len(names), -1), table)]

    def values(self) -> tuple[Real, list[tuple[int, Any]]]:
        table = np.exp(np.stack([self.no, self.yes], axis=1).reshape(2 * len(self.features), -1))
        return table, [(f, yes) for f in range(len(self.features)) for yes in (False, True)]

    def categories(self, f: int, column: str) -> Keys | None:
        """No and yes, as a column would have them; None where numbers are."""
        if self.family.threshold is not None:
            return None
        return self._no, True if self.family.yes is None else self.family.yes

    def cuts(self, column: str | None) -> list[float] | None:
        """The least number above the threshold."""
        limit = self.family.threshold
        return None if limit is None else [float(np.nextafter(limit, np.inf))]

    @property
    def _no(self) -> Any:
        yes = self.family.yes
        return False if yes is None else f"not {yes}" if isinstance(yes, str) else 0 if yes else 1

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        share = np.exp(self.yes)
        drawn = [rng.random(len(classes)) < share[f, classes] for f in range(len(self.features))]
        yes = self.family.yes
        return list(drawn) if yes is None else [np.where(column, yes, self._no) for column in drawn]
