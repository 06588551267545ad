"""Variables: the nodes of a network, each a column whose values are numbered; numbers are cut into bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.digits import told_apart
from banbury.distributions import Bernoulli, Categorical, Histogram
from banbury.distributions.bernoulli import KEYS
from banbury.distributions.description_length import cuts_of
from banbury.distributions.family import MOST_BINS, Family, Feature, Kind, check_positive
from banbury.distributions.keys import dense_numbers
from banbury.readers import Batch, read
from banbury.readers.columns import kind_of
from banbury.schema import Schema, warn_of_nothing
from banbury.sums import Key, Keys, in_order

Places = NDArray[np.int32]
Bins = int | Literal["mdl"]

MISSING, UNSEEN = -1, -2  # in place of a value's number
CATEGORICAL = Categorical()
LARGEST_INTEGER = 2.0**63  # larger whole numbers are drawn as real ones
BINS = 10  # that numbers are cut into, where nothing else is said and no class says where


@dataclass(frozen=True)
class Variable:
    """A node: its column, and the values it can have, in order. Of numbers the values are intervals, between ``cuts``."""

    name: str
    values: Keys
    family: Family = CATEGORICAL
    kind: Kind = "string"
    cuts: tuple[float, ...] | None = None
    ends: tuple[float, float] = (0.0, 0.0)  # the lowest and highest of the numbers that were cut

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def index(self) -> dict[Key, int]:
        return {value: k for k, value in enumerate(self.values)}

    @property
    def keys(self) -> Keys:
        """What its values are counted by: themselves, or the numbers of the bins."""
        return self.values if self.cuts is None else tuple(range(self.size))

    def of_keys(self, keys: Keys) -> Variable:
        """The same with the values that have these keys."""
        return self if self.cuts is not None or keys == self.values else self.of(keys)

    def pseudo_counts(self, alpha: float) -> Real:
        """The prior's α for each value."""
        if isinstance(self.family, Categorical):
            return self.family.pseudo_counts(self.values, alpha)
        if isinstance(self.family, Bernoulli):
            return self.family.pseudo_counts(alpha)
        own = getattr(self.family, "alpha", None)
        return np.full(self.size, float(alpha if own is None else own))

    def declared(self) -> frozenset[Key]:
        """The keys of values that stay though no row has them."""
        return frozenset(self.keys) if self.cuts is not None else self.family.declared() or frozenset()

    def differs(self, other: Variable) -> str | None:
        """Why sums of the two cannot be added, or None."""
        if self.cuts != other.cuts:
            return f"the bins of {self.name!r} have other edges here than there"
        same = self.family.counted() == other.family.counted() and self.kind == other.kind
        return (
            None
            if same
            else f"{self.name!r} is {self.family} of {self.kind}s here, {other.family} of {other.kind}s there"
        )

    def union(self, other: Variable) -> Variable:
        """The same with the other's values too."""
        if self.values == other.values:
            return self
        return self.of(in_order({*self.values, *other.values}))

    def of(self, values: Keys) -> Variable:
        """The same with these values."""
        return replace(self, values=values)

    # Rows

    def met(self, batch: Batch, threads: int) -> tuple[Variable, Places]:
        """The variable with the values that these rows have, and the number of each row's value."""
        if self.cuts is not None or isinstance(self.family, Bernoulli):
            return self, self.places(batch, threads)
        numbers, names = dense_numbers(batch.codes(self.name, self.kind), threads)
        absent = MISSING
        keys: list[Key] = [*names]
        if self.family.counts_missing():
            absent = len(keys)
            keys = [*keys, None]
        declared = self.declared()
        for key in keys if declared else ():
            if key is not None and key not in declared:
                raise errors.unknown_value(key, self.name, in_order(declared))
        found = self.of(in_order(declared.union(keys)))
        lookup = np.array([*(found.index[key] for key in keys[: len(names)]), MISSING], dtype=np.int32)
        if absent != MISSING:
            lookup[-1] = found.index[None]
        return found, lookup[numbers]

    def places(self, batch: Batch, threads: int) -> Places:
        """The number of each row's value; MISSING where there is none, UNSEEN for a value that was never counted."""
        if self.cuts is not None:
            return self._bin(numbers_of(batch, self.name))
        if isinstance(self.family, Bernoulli):
            return self._flags(batch, self.family, threads)
        numbers, names = dense_numbers(batch.codes(self.name, self.kind), threads)
        places = [self.index.get(name, UNSEEN) for name in names]
        absent = self.index.get(None, UNSEEN) if self.family.counts_missing() else MISSING
        lookup = np.array([*places, absent], dtype=np.int32)
        return lookup[numbers]

    def _bin(self, numbers: Real) -> Places:
        places = np.searchsorted(np.array(self.cuts), numbers, side="right").astype(np.int32)
        places[np.isnan(numbers)] = MISSING
        return places

    def _flags(self, batch: Batch, family: Bernoulli, threads: int) -> Places:
        if family.threshold is not None:
            numbers = numbers_of(batch, self.name)
            return np.where(np.isnan(numbers), MISSING, numbers > family.threshold).astype(np.int32)
        coded, names = dense_numbers(batch.codes(self.name), threads)
        return np.array([*family.means_yes(names, self.name), MISSING], dtype=np.int32)[coded]

    def place(self, value: Any) -> int:
        """The number of one value; raises where it was never counted."""
        value = value.item() if isinstance(value, np.generic) else value
        if self.cuts is not None and not isinstance(value, str):
            if isinstance(value, (int, float)) and abs(value) < np.inf:
                return int(np.searchsorted(self.cuts, value, side="right"))
            raise errors.value_never_seen(value, self.name, self.values)
        if isinstance(value, (bool, int, float, str, type(None))) and value in self.index:
            return self.index[value]
        place = self._as_in_a_row(value)
        if place < 0:
            raise errors.value_never_seen(value, self.name, self.values)
        return place

    def _as_in_a_row(self, value: Any) -> int:
        """The number of a value that a column may have counted as another: of a date or a decimal its text."""
        try:
            [batch] = read({self.name: [value]}, kinds={self.name: "string"} if self.kind == "string" else None)
            return int(self.places(batch, 1)[0])
        except (errors.BanburyError, ValueError, TypeError):  # no column could hold it
            return UNSEEN

    def likelihood(self, known: Any) -> Real:
        """How likely what was observed is under each value: 1 or 0 of a value or several; soft evidence names every value."""
        weights = np.zeros(self.size)
        if isinstance(known, np.ndarray) and known.ndim == 0:
            known = known.item()
        if not isinstance(known, Mapping):
            several = known if isinstance(known, (list, tuple, set, frozenset, np.ndarray)) else (known,)
            weights[[self.place(value) for value in several]] = 1.0
            return weights
        places = [self.place(value) for value in known]
        if len(set(places)) < len(places):
            raise errors.bad_setting(
                f"the evidence of {self.name!r}", known, "one number for each value, and each value once"
            )
        for place, (value, weight) in zip(places, known.items(), strict=True):
            check_positive(f"the evidence of {self.name} = {value!r}", weight, zero=True)
            weights[place] = weight
        if lacking := [value for place, value in enumerate(self.values) if place not in places]:
            raise errors.BadSetting(
                f"the soft evidence of {self.name!r} does not say how likely what was observed is under "
                f"{errors.listed(map(repr, lacking))}. Name every value, with 0 for what is ruled out: {lacking[0]!r}: 0",
                name="given",
                value=self.name,
            )
        return weights

    def drawn(self, places: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """Values with these numbers: of bins any number within, each as likely as another."""
        if self.cuts is None:
            same = len({type(value) for value in self.values}) == 1
            return np.array(self.values, dtype=None if same else object)[places]
        lowest, highest = min([self.ends[0], *self.cuts[:1]]), max([self.ends[1], *self.cuts[-1:]])
        edges = np.array([lowest, *self.cuts, highest])
        low, high = edges[places], edges[places + 1]
        if self.kind != "integer" or np.abs(edges).max() >= LARGEST_INTEGER:
            half = (high / 2.0 - low / 2.0) * rng.random(len(places))  # the whole width may be beyond all numbers
            return np.asarray(low + half + half)
        first, last = np.ceil(low).astype(np.int64), np.ceil(high).astype(np.int64)
        last += (places == len(self.cuts)) & (high == last)  # the highest itself is in the last bin
        return np.asarray(rng.integers(first, np.maximum(last, first + 1)))


def kind_of_values(values: Sequence[Any]) -> Kind:
    found = kind_of([value for value in values if value is not None])
    return found if found in ("boolean", "integer", "float", "string") else "string"


def numbers_of(batch: Batch, name: str) -> Real:
    """A column of numbers, NaN where one is missing; raises where one is infinite."""
    numbers = batch.numbers([name])[0].reshape(-1).astype(np.float64)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        row = int(infinite[0])
        raise errors.bad_value("infinite", float(numbers[row]), name, batch.first_row + row, batch.source)
    return numbers


def check_length(weights: Real | None, n_rows: int) -> None:
    if weights is not None and len(weights) != n_rows:
        raise errors.length_mismatch("weights", len(weights), n_rows)


class First(NamedTuple):
    """The first rows, which settle where numbers are cut: their weights, and their classes where there are any."""

    batch: Batch
    weights: Real | None = None
    classes: Places | None = None

    @classmethod
    def of(cls, batch: Batch, weights: Real | None, classes: Places | None = None) -> First:
        check_length(weights, batch.n_rows)
        return cls(batch, weights, classes)

    def by_class(self, numbers: Real) -> tuple[Real, Real]:
        """The numbers that occur, in order, and the weight of each in every class; rows of no weight or class do not count."""
        kept = ~np.isnan(numbers)
        if self.weights is not None:
            kept &= self.weights > 0
        if self.classes is not None:
            kept &= self.classes >= 0
        values, at = np.unique(numbers[kept], return_inverse=True)
        classes = np.zeros(len(at), dtype=np.int64) if self.classes is None else self.classes[kept]
        n = int(classes.max(initial=0)) + 1
        weights = None if self.weights is None else self.weights[kept]
        cells = np.bincount(at.reshape(-1) * n + classes, weights, len(values) * n)
        return values, cells.reshape(len(values), n).astype(np.float64)


def settled(first: First, feature: Feature, bins: Bins) -> Variable:
    """The variable of a column; where numbers are cut is settled by the first rows."""
    family = feature.family
    if isinstance(family, Bernoulli):
        return Variable(feature.name, KEYS, family, feature.kind)
    if isinstance(family, Categorical):
        return Variable(feature.name, in_order(family.declared() or ()), family, feature.kind)
    if feature.columns:
        raise no_block(feature.name)
    text = family.reads_text()
    if text or (feature.why == "declared" and not isinstance(family, Histogram)):
        raise errors.BadSetting(
            f"column {feature.name!r} cannot be a node as {'texts' if text else family.name}: a node has a table of its values. "
            f"Declare it 'categorical', 'bernoulli' or bb.Histogram(bins=...) in features=, or leave it out with "
            f"features={{{feature.name!r}: None}}.",
            name="features",
            value=feature.name,
        )
    values, cells = first.by_class(numbers_of(first.batch, feature.name))
    given = family if isinstance(family, Histogram) else Histogram()
    cuts = _grid(values, given, feature) if given.width is not None else _bins(values, cells, given, bins)
    kind: Kind = "integer" if first.batch.kind(feature.name) == "integer" else "float"
    ends = (float(values[0]), float(values[-1])) if len(values) else (0.0, 0.0)
    return Variable(feature.name, intervals(cuts), given, kind, cuts, ends)


def _bins(values: Real, cells: Real, family: Histogram, bins: Bins) -> tuple[float, ...]:
    """Where numbers are cut, midway between two that occur: with "mdl" where the classes change, by minimum description length.

    Where they do not change, or where a number of bins is asked for: a bin for each where they are few; of many, a number that
    alone is as frequent as a bin would be has its own, and the others are cut into about equal shares. ``cells`` are the rows
    of each number and class. What the family says comes first.
    """
    wanted = bins if family.bins == "auto" else family.bins
    cuts = cuts_of(cells) if wanted == "mdl" else []
    most = next((each for each in (wanted, bins) if isinstance(each, int)), BINS)
    group = np.arange(len(values))
    if cuts:
        group = np.searchsorted(cuts, group, side="right")
    elif len(values) > most:
        n = cells.sum(axis=1)
        large = n * most > n.sum()
        rest = np.where(large, 0.0, n)
        middle = (np.cumsum(rest) - rest / 2.0) / max(rest.sum(), np.finfo(float).tiny)
        left = max(most - int(large.sum()), 1)
        group = np.where(large, -1 - np.arange(len(n)), np.minimum((middle * left).astype(np.int64), left - 1))
    last = np.flatnonzero(np.diff(group))
    low, high = values[last], values[last + 1]
    between = low / 2.0 + high / 2.0
    return tuple(np.where(between > low, between, high).tolist())


def _grid(values: Real, family: Histogram, feature: Feature) -> tuple[float, ...]:
    """The edges of bins of a given start and width, between the lowest number and the highest."""
    start, width = family.start, family.width
    if not isinstance(start, (int, float)) or not isinstance(width, (int, float)):
        raise errors.bad_setting(f"start and width of {feature.name!r}", (start, width), "one number each")
    if not len(values):
        return ()
    first, last = (int(np.floor((x - start) / width)) for x in (values[0], values[-1]))
    if last - first >= MOST_BINS:
        raise errors.bad_setting(
            f"width of {feature.name!r}",
            width,
            f"one that makes {MOST_BINS:,} bins at most, not {last - first + 1:,}",
        )
    return tuple((start + width * np.arange(first + 1, last + 1)).tolist())


def intervals(cuts: Sequence[float]) -> Keys:
    """What bins are called."""
    if not cuts:
        return ("any",)
    shown = told_apart(cuts)
    between = (f"{a} to {b}" for a, b in pairwise(shown))
    return (f"below {shown[0]}", *between, f"{shown[-1]} and above")


def chosen(first: First, schema: Schema, bins: Bins) -> tuple[tuple[Variable, ...], dict[str, str]]:
    """The variables of a schema's columns; and those that a network cannot have, with the reason."""
    left_out = dict(schema.left_out)
    found = []
    for feature in schema.features:
        if feature.why != "declared" and (feature.columns or feature.family.reads_text()):
            what = feature.why if feature.holds_lists else "texts"
            left_out[feature.name] = f"{what}, which have no table"
        else:
            found.append(settled(first, feature, bins))
    if schema.features and not found:
        warn_of_nothing(left_out)
    return tuple(found), left_out


def no_block(block: str) -> errors.BadSetting:
    text = f"block {block!r} cannot be a node: a network's nodes are single columns, and its arrows say which depend on which. "
    text += "Name the columns one by one in features=, or leave the block out of it."
    return errors.BadSetting(text, name="features", value=block)
