"""What pictures ask of a model: the values to draw of a feature, what the model says of them, and the rows beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import FARTHEST, Real
from banbury.families import NUMBERS
from banbury.families.bags.occurrences import telling_columns
from banbury.families.bernoulli import flag_names
from banbury.families.evidence import NamedValues
from banbury.families.family import Feature, Parameters
from banbury.families.quantile_tree import value_range
from banbury.model.naive_bayes import Model
from banbury.rows.labelled import load_rows
from banbury.sums import Counts
from banbury.tally.table import align_names, class_number

SAMPLED = 4_000  # rows drawn from a model to see where its values lie
STEPS = 1_000
ROOM = 0.05  # of an axis, beyond the values at either end
MOST_POINTS = 2_000


def check_model(model: Any, classes: int = 1) -> None:
    """Raises unless it is a model of so many classes at least."""
    if not isinstance(model, Model):
        expected = "a Model, from bb.estimate, or the model_ of a classifier"
        raise errors.bad_setting("the model", type(model).__name__, expected)
    if len(model.classes) < classes:
        expected = "a model with at least two classes for this picture"
        raise errors.bad_setting("the model", f"one class, {model.classes[0]!r}", expected)


def number_of(model: Model, label: Any) -> int:
    """The number of a class."""
    return class_number(label, model.classes)


class FeatureParts(NamedTuple):
    """One feature of a model: the group of parameters that it is in, its place there, and the group's sums."""

    feature: Feature
    group: Parameters
    at: int
    sums: Any

    @property
    def axes(self) -> tuple[str, ...]:
        """Its columns of numbers; none where values are names."""
        if self.feature.counter.words or self.feature.holds_lists:
            return ()
        with np.errstate(over="ignore"):
            drawn = self.group.select([self.at]).sample(np.zeros(1, dtype=np.int64), np.random.default_rng(0))
        columns = zip(self.feature.inputs, drawn, strict=True)
        return tuple(
            name
            for name, column in columns
            if column.dtype.kind in "iuf" and self.group.categories(self.at, name) is None
        )

    @property
    def is_numeric(self) -> bool:
        """Whether its values lie on one axis."""
        return len(self.axes) == len(self.feature.inputs) == 1


def parts_of(model: Model, feature: Any) -> FeatureParts:
    """A feature by its name, or a block by its columns; of a weighed model as it was counted."""
    declared = model.schema[feature]
    model = model.weighed(None)
    for group, (_, features, sums) in zip(model.parameters, model.tally.groups, strict=True):
        if declared in features:
            return FeatureParts(declared, group, features.index(declared), sums)
    raise AssertionError("every feature of a model is in a group")


def column_of(model: Model, column: str) -> Feature:
    """The feature that a column belongs to: itself, or its block."""
    return next((f for f in model.schema.features if column in f.columns), None) or model.schema[column]


def has_axis(feature: Feature) -> bool:
    """Whether the values of a feature can stand along one axis; combinations of values can."""
    block_of_numbers = len(feature.inputs) > 1 and not feature.kinds
    return not (feature.holds_lists or block_of_numbers or (feature.columns and feature.counter.words))


def check_axis(feature: Feature) -> None:
    """Raises unless the values of a feature can stand along one axis."""
    if not has_axis(feature):
        raise no_axis(feature)


def no_axis(feature: Feature) -> errors.BadSetting:
    """Why the values of a feature have no axis, and what to draw instead."""
    name = feature.name
    if feature.reads_text:
        text = f"column {name!r} is text, which has no axis to draw. Draw the evidence of the words of one text "
        text += f"with bb.plots.EvidenceDisplay, or count without the column: features={{{name!r}: None}}."
        return errors.BadSetting(text, column=name)
    if feature.holds_lists:
        text = f"column {name!r} holds lists of {len(feature.scales):,} numbers, which have no axis to draw. "
        text += "Draw the evidence of one row with bb.plots.EvidenceDisplay, or draw another column."
        return errors.BadSetting(text, feature=name, family=feature.family.name)
    text = f"block {name!r} models {len(feature.inputs):,} columns together as {feature.family.name}, so none of them has a "
    text += "line of its own to be drawn on. Draw the block with bb.plots.LikelihoodDisplay, or what one row says "
    return errors.BadSetting(f"{text}with bb.plots.EvidenceDisplay.", feature=name, family=feature.family.name)


def two_columns(model: Model, columns: Any) -> tuple[str, str]:
    """The names of two columns that hold numbers, by themselves or in a block; raises unless they are."""
    for column in (pair := pair_of("features", columns, "the names of two numeric columns")):
        feature = column_of(model, column)
        if feature.holds_lists:
            raise no_axis(feature)
        if column not in parts_of(model, feature.name).axes:
            text = f"column {column!r} is of family {feature.family.name}, but a numeric column is needed to draw an axis. "
            text += f"Name another column, of family {errors.listed(family.name for family in NUMBERS)}, or count this "
            text += "one as a number with features=."
            raise errors.BadSetting(text, column=column, family=feature.family.name)
    return pair


def pair_of(setting: str, setting_value: Any, expected: str) -> tuple[Any, Any]:
    """Two different things; raises unless it is they."""
    if (
        isinstance(setting_value, str)
        or not isinstance(setting_value, Sequence)
        or len(setting_value) != 2
        or setting_value[0] == setting_value[1]
    ):
        raise errors.bad_setting(setting, setting_value, expected)
    return setting_value[0], setting_value[1]


def table(model: Model, columns: Mapping[str, Sequence[Any] | Real]) -> dict[str, Any]:
    """Rows of which these columns are known and nothing of all others, as the model reads rows."""
    n_rows = len(next(iter(columns.values())))
    occurring = {name for f in model.schema.features if f.counter.words for name in f.columns}
    nothing = {column: [0.0 if column in occurring else None] * n_rows for column in model.schema.columns}
    return {**nothing, **columns}


def log_likelihood(model: Model, feature: Feature, values: Any) -> Real:
    """log P(value | class), values × classes, as the model scores rows; a combination of values is a tuple."""
    columns = {feature.inputs[0]: values}
    if len(values) and isinstance(values[0], tuple):
        columns = {column: [value[j] for value in values] for j, column in enumerate(feature.columns)}
    return model.log_likelihood(table(model, columns), feature.name)


def values_by_name(model: Model, parts: FeatureParts, n: int | None = None) -> NamedValues:
    """The values of a feature that is no number, or the n of most rows."""
    feature = parts.feature
    sums = parts.sums
    if feature.reads_text or feature.holds_lists:
        raise no_axis(feature)
    if feature.counter.words:
        return telling_columns(parts.group, sums, n)
    if isinstance(sums, Counts) and (feature.kinds or not feature.columns):
        keys, cells = sums.feature(parts.at)
        values, names = flag_names(feature.family) or (list(keys), [_value_name(key) for key in keys])
        what = "combination" if feature.kinds else "value"
        return NamedValues(values, names, cells.value.sum(axis=1), what=what).most_frequent(n)
    rng = np.random.default_rng(0)
    classes = rng.choice(len(model.classes), SAMPLED, p=np.exp(model.log_prior))
    drawn = parts.group.select([parts.at]).sample(classes, rng)[0]
    called, rows = np.unique(np.array(list(map(str, drawn))), return_counts=True)
    return NamedValues(called.tolist(), called.tolist(), rows.astype(np.float64)).most_frequent(n)


def _value_name(key: Any) -> str:
    """A value, or a combination of values, in a picture."""
    return ", ".join(map(str, key)) if isinstance(key, tuple) else "missing" if key is None else str(key)


def counted_range(parts: FeatureParts) -> tuple[float, float] | None:
    """The least and the greatest number of a column that is counted number by number; None of other columns."""
    return value_range(parts.feature, parts.sums.feature(parts.at)[0]) if isinstance(parts.sums, Counts) else None


def span(model: Model, feature: str, values: Real | None = None, room: float = ROOM) -> tuple[float, float]:
    """Where to draw: from the lowest to the highest of the values, or counted number, or nearly all that the model would draw.

    ``room``: how much farther on either side, as a share; no farther than numbers that were counted.
    """
    if values is None and feature in model.schema.index:  # no column of a block
        counted = counted_range(parts_of(model, feature))
        if counted is not None and counted[0] < counted[1]:
            return counted
    if values is None:
        drawn = np.asarray(model.sample(SAMPLED)[feature], dtype=np.float64)
        low, high = np.quantile(np.clip(drawn[~np.isnan(drawn)], -FARTHEST, FARTHEST), [0.005, 0.995])
    else:
        low, high = np.clip([values.min(), values.max()], -FARTHEST, FARTHEST)
    margin = (high - low) * room if high > low else abs(low) * ROOM or 0.5
    return float(low - margin), float(high + margin)


def grid(
    model: Model, feature: Feature, column: str, values: Real | None = None, steps: int = STEPS, room: float = ROOM
) -> Real:
    """Values to draw a column of numbers at: such as it may hold."""
    low, high = span(model, column, values, room)
    least = feature.family.least
    if feature.family.has_density():
        start = max(low, least, (high - low) / steps) if least > 0 else max(low, least)
        return 2.0 * np.linspace(0.5 * start, 0.5 * high, steps)  # their difference may be more than a double holds
    low = max(np.floor(low), least)
    high = np.ceil(high)
    return np.unique(np.round(np.linspace(low, high, min(int(high - low) + 1, steps))))


def some_rows(usable: NDArray[np.bool_], columns: tuple[str, str]) -> NDArray[np.int64]:
    """The rows that are usable, for they have values of both columns; evenly picked where there are many."""
    used = np.flatnonzero(usable)
    if not len(used):
        raise errors.empty_data(None, f"no row has values of both {columns[0]!r} and {columns[1]!r}")
    return used[np.unique(np.linspace(0, len(used) - 1, min(len(used), MOST_POINTS)).astype(np.int64))]


class ClassedRows:
    """Labelled rows beside a model: the number of each one's class, and columns of numbers. One class needs no labels."""

    def __init__(self, model: Model, data: Any, target: Any, reading: Mapping[str, Any]) -> None:
        target = model.schema.target if target is None else target
        if target is None and len(model.classes) == 1:
            source = model._read(data, reading)
            self.batches = tuple(align_names(batch, model.schema) for batch in source if batch.n_rows)
            self.classes: NDArray[np.int64] = np.zeros(sum(batch.n_rows for batch in self.batches), dtype=np.int64)
            return
        labelled = load_rows(data, target, schema=model.schema, takes_sets=False, **reading)
        for label in labelled.classes:
            number_of(model, label)
        lookup = np.array([*(model.classes.index(label) for label in labelled.classes), -1], dtype=np.int64)
        self.batches, self.classes = labelled.batches, lookup[labelled.labels]

    def numbers(self, feature: str) -> Real:
        parts = [batch.numbers([feature])[0].reshape(-1) for batch in self.batches]
        return np.concatenate([np.zeros(0), *parts]).astype(np.float64)

    def points(self, columns: tuple[str, str]) -> tuple[Real, Real, NDArray[np.int64]]:
        """The rows that have both values and a class, evenly picked where there are many: the values, and the classes."""
        x, y = (self.numbers(column) for column in columns)
        used = some_rows(np.isfinite(x) & np.isfinite(y) & (self.classes >= 0), columns)
        return x[used], y[used], self.classes[used]
