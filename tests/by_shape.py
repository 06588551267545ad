"""Sums and features by what is counted, for tests that look inside: a tally keeps them by group."""

from __future__ import annotations

from typing import Any

from banbury._core import Integers
from banbury.families.bags.words import WordCounter
from banbury.families.bins import BinCounter
from banbury.families.family import Counter, Family, Feature
from banbury.families.keys import KeyCounter
from banbury.families.moments import MomentCounter, ProductCounter
from banbury.families.positive import LogMomentCounter
from banbury.sums import Counts, Moments, zeros
from banbury.tally.schema import Schema
from banbury.tally.tally import Tally

SHAPES: dict[type[Counter], str] = {  # the first that a counter is
    LogMomentCounter: "log moments",
    BinCounter: "bins",
    KeyCounter: "keys",
    MomentCounter: "moments",
    ProductCounter: "products",
    WordCounter: "words",
}


def shape(family: Family) -> str:
    """What a family's sums are: of keys, bins, moments, products or words."""
    counter = family.counter(Feature("", family))
    return next(name for kind, name in SHAPES.items() if isinstance(counter, kind))


def of_shape(schema: Schema, *shapes: str) -> tuple[Feature, ...]:
    return tuple(feature for feature in schema.features if shape(feature.family) in shapes)


def keyed(schema: Schema) -> tuple[Feature, ...]:
    return of_shape(schema, "keys", "bins")


def measured(schema: Schema) -> tuple[Feature, ...]:
    return of_shape(schema, "moments")


def blocks(schema: Schema) -> tuple[Feature, ...]:
    return of_shape(schema, "products")


def texts(schema: Schema) -> tuple[Feature, ...]:
    return of_shape(schema, "words")


def counts(tally: Tally) -> Counts:
    """Those of all features that are counted by key."""
    return Counts.join([tally.of(f.name).feature(0) for f in keyed(tally.schema)], len(tally.classes))


def moments(tally: Tally) -> Moments:
    """Those of all columns of numbers."""
    each = [tally.of(f.name) for f in measured(tally.schema)]
    if not each:
        return Moments(zeros(0, len(tally.classes)), zeros(0, len(tally.classes), 2))
    return Moments(Integers.join([m.n for m in each]), Integers.join([m.sums for m in each]))


def words(tally: Tally) -> tuple[Any, ...]:
    return tuple(tally.of(f.name) for f in texts(tally.schema))


def products(tally: Tally) -> tuple[Any, ...]:
    return tuple(tally.of(f.name) for f in blocks(tally.schema))
