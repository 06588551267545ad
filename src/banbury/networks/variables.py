"""Variables: the nodes of a network, each a column whose values are numbered; numbers are cut into bins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.digits import told_apart
from banbury.distributions.family import Family, Feature, Kind, check_positive
from banbury.distributions.histogram import cut_by
from banbury.distributions.keys import finite_numbers
from banbury.readers import Batch, Codes, read
from banbury.readers.columns import Coded, kind_of
from banbury.schema import CATEGORICAL, Schema, warn_of_nothing
from banbury.sums import Key, Keys, in_order

Places = NDArray[np.int32]
Bins = int | Literal["mdl"]

MISSING, UNSEEN = -1, -2  # in place of a value's number
LARGEST_INTEGER = 2.0**63  # larger whole numbers are drawn as real ones


@dataclass(frozen=True)
class Variable:
    """A node: its column, and the values it can have, in order. Of numbers the values are intervals, between ``cuts``."""

    name: str
    values: Keys
    family: Family = CATEGORICAL["skip"]
    kind: Kind = "string"
    cuts: tuple[float, ...] | None = None
    ends: tuple[float, float] = (0.0, 0.0)  # the lowest and highest of the numbers that were cut

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def index(self) -> dict[Key, int]:
        return {value: k for k, value in enumerate(self.values)}

    @cached_property
    def keys(self) -> Keys:
        """What its values are counted by: themselves, or the numbers of the bins."""
        return self.values if self.cuts is None else tuple(range(self.size))

    @cached_property
    def number(self) -> dict[Key, int]:
        return {key: k for k, key in enumerate(self.keys)}

    def called(self, key: Any) -> Key:
        return key if self.cuts is None else self.values[key]  # type: ignore[no-any-return]

    def of_keys(self, keys: Iterable[Key]) -> Variable:
        """The same with the values that have these keys, and those that are declared."""
        if self.cuts is not None:
            return self
        values = in_order({*keys, *(self.family.declared() or ())})
        return self if values == self.values else replace(self, values=values)

    def differs(self, other: Variable) -> str | None:
        """Why sums of the two cannot be added, or None."""
        if self.cuts != other.cuts:
            return f"the bins of {self.name!r} have other edges here than there"
        if self.family.counted() == other.family.counted() and self.kind == other.kind:
            return None
        return f"{self.name!r} is {self.family} of {self.kind}s here, {other.family} of {other.kind}s there"

    # Rows

    def codes(self, batch: Batch, threads: int) -> Codes:
        """The number of each row's key among some, −1 where it has none."""
        if self.cuts is None:
            return self.family.node_codes(batch, self.name, self.kind, threads)  # type: ignore[no-any-return]
        numbers = finite_numbers(batch, self.name)
        places = np.searchsorted(np.array(self.cuts), numbers, side="right").astype(np.int32)
        places[np.isnan(numbers)] = MISSING
        return Codes(places, 0, self.keys)  # type: ignore[arg-type]

    def places(self, batch: Batch, threads: int) -> Places:
        """The number of each row's value; MISSING where there is none, UNSEEN for a value that was never counted."""
        codes = self.codes(batch, threads)
        if codes.values is self.keys:
            return np.asarray(codes.codes)
        numbers = [*(self.number.get(key, UNSEEN) for key in codes.values), MISSING]
        return np.array(numbers, dtype=np.int32).take(codes.codes)

    def place(self, value: Any) -> int:
        """The number of one value; raises where it was never counted."""
        value = value.item() if isinstance(value, np.generic) else value
        if self.cuts is not None and not isinstance(value, str):
            if isinstance(value, (int, float)) and abs(value) < np.inf:
                return int(np.searchsorted(self.cuts, value, side="right"))
            raise errors.value_never_seen(value, self.name, self.values)
        if isinstance(value, (bool, int, float, str, type(None))) and value in self.index:
            return self.index[value]
        place = UNSEEN
        with suppress(errors.BanburyError, ValueError, TypeError):  # it may count as another: a date as its text
            [batch] = read({self.name: [value]}, kinds={self.name: "string"} if self.kind == "string" else None)
            place = int(self.places(batch, 1)[0])
        if place < 0:
            raise errors.value_never_seen(value, self.name, self.values)
        return place

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
        wanted = "one number for each value, and each value once"
        errors.require(len(set(places)) == len(places), f"the evidence of {self.name!r}", known, wanted)
        for place, (value, weight) in zip(places, known.items(), strict=True):
            check_positive(f"the evidence of {self.name} = {value!r}", weight, zero=True)
            weights[place] = weight
        if lacking := [value for place, value in enumerate(self.values) if place not in places]:
            text = f"the soft evidence of {self.name!r} does not say how likely what was observed is under "
            text += f"{errors.listed(map(repr, lacking))}. Name every value, with 0 for what is ruled out: {lacking[0]!r}: 0"
            raise errors.BadSetting(text, name="given", value=self.name)
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


def coded(batch: Batch, variables: Sequence[Variable], threads: int) -> Batch:
    """The rows with the columns of these variables as codes of their keys; raises for a value that is not declared."""
    columns = {}
    for variable in variables:
        codes = variable.codes(batch, threads)
        declared = variable.family.declared() if variable.cuts is None else None
        for key in codes.values if declared else ():
            if key is not None and key not in declared:  # type: ignore[operator]
                raise errors.unknown_value(key, variable.name, in_order(declared))
        columns[variable.name] = Coded(codes)
    return batch.with_columns(columns)


class First(NamedTuple):
    """The first rows, which settle where numbers are cut: their weights, and their classes where there are any."""

    batch: Batch
    weights: Real | None = None
    classes: Places | None = None

    def by_class(self, numbers: Real) -> tuple[Real, Real]:
        """The numbers that occur, in order, and the weight of each in every class; rows of no weight or class do not count."""
        if self.weights is not None and len(self.weights) != self.batch.n_rows:
            raise errors.length_mismatch("weights", len(self.weights), self.batch.n_rows)
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
    family, text = feature.family, feature.family.reads_text()
    if feature.columns:
        raise no_block(feature.name)
    if not text and not family.has_density():
        return Variable(feature.name, in_order(family.declared() or ()), family, feature.kind)
    if (given := cut_by(feature)) is None:
        said = f"column {feature.name!r} cannot be a node as {'texts' if text else family.name}: a node has a table of its "
        said += "values. Declare it 'categorical', 'bernoulli' or bb.Histogram(bins=...) in features=, or leave it out with "
        raise errors.BadSetting(f"{said}features={{{feature.name!r}: None}}.", name="features", value=feature.name)
    values, cells = first.by_class(finite_numbers(first.batch, feature.name))
    cuts = given.node_cuts(values, cells, bins, feature.name)
    kind: Kind = "integer" if first.batch.kind(feature.name) == "integer" else "float"
    ends = (float(values[0]), float(values[-1])) if len(values) else (0.0, 0.0)
    return Variable(feature.name, intervals(cuts), given, kind, cuts, ends)


def intervals(cuts: Sequence[float]) -> Keys:
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
        if not feature.declared and (feature.columns or feature.family.reads_text()):
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
