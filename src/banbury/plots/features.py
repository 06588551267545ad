"""What pictures need from a model: the values of a feature to draw, their likelihoods, and rows as points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import FARTHEST, Real
from banbury.families import NUMBERS
from banbury.families.bags.occurrences import informative_columns
from banbury.families.bernoulli import flag_names
from banbury.families.evidence import NamedValues
from banbury.families.family import Feature, Parameters
from banbury.families.quantile_tree import value_range
from banbury.model.naive_bayes import Model
from banbury.rows.labelled import load_rows
from banbury.sums import Counts
from banbury.tally.table import align_names, class_number

SAMPLED_ROWS = 4_000  # rows drawn from a model to see where its values lie
POINTS_OF_CURVE = 1_000  # values at which a curve is drawn
MARGIN = 0.05  # share of an axis beyond the values at either end
MOST_POINTS = 2_000


def check_model(model: Any, classes: int = 1) -> None:
    """Raises BadSetting unless ``model`` is a Model with at least so many ``classes``."""
    if not isinstance(model, Model):
        expected = "a Model, from bb.estimate, or the model_ of a classifier"
        raise errors.bad_setting("the model", type(model).__name__, expected)
    if len(model.classes) < classes:
        expected = "a model with at least two classes for this picture"
        raise errors.bad_setting("the model", f"one class, {model.classes[0]!r}", expected)


def number_of(model: Model, label: Any) -> int:
    """Returns the number of the class ``label`` in the model. Raises an error for an unknown class."""
    return class_number(label, model.classes)


def evidence_factor(model: Model) -> float:
    """Returns the factor by which calibration multiplies evidence; 1 without a calibration, or if it is not a single
    factor for all pairs of classes.
    """
    calibration = model.calibration
    is_one_factor = calibration is not None and (calibration.only_scales or len(model.classes) == 2)
    return calibration.scale if calibration is not None and is_one_factor else 1.0


class FeatureParts(NamedTuple):
    """One feature of a model: the group of parameters that contains it, its ``position`` in the group, and the sums
    that the group was estimated from.
    """

    feature: Feature
    group: Parameters  # of all features of the group
    position: int
    sums: Any  # of all features of the group

    @property
    def axes(self) -> tuple[str, ...]:
        """The numeric columns of the feature; none if its values are names."""
        if self.feature.counter.words or self.feature.holds_lists:
            return ()
        with np.errstate(over="ignore"):
            # One row of class 0, whose values show which columns are numbers.
            sample = self.group.select([self.position]).sample(np.zeros(1, dtype=np.int64), np.random.default_rng(0))
        columns = zip(self.feature.inputs, sample, strict=True)  # pairs of name and sampled values
        return tuple(
            name
            for name, column in columns
            if column.dtype.kind in "iuf" and self.group.categories(self.position, name) is None
        )

    @property
    def is_numeric(self) -> bool:
        """Whether the feature is a single numeric column."""
        return len(self.axes) == len(self.feature.inputs) == 1


def feature_parts_of(model: Model, feature: Any) -> FeatureParts:
    """Returns the parts of a feature, given by its name or the columns of a block: its group of parameters and what it
    was estimated from; those of a weighed model without its weights.
    """
    schema_feature = model.schema[feature]
    model = model.weighed(weighing=None)
    for group, (_, features, sums) in zip(model.parameters, model.tally.groups, strict=True):
        if schema_feature in features:
            return FeatureParts(schema_feature, group, features.index(schema_feature), sums)
    raise AssertionError("every feature of a model is in a group")


def column_of(model: Model, column: str) -> Feature:
    """Returns the feature that a column belongs to: itself or its block."""
    return (
        next((feature for feature in model.schema.features if column in feature.columns), None) or model.schema[column]
    )


def has_axis(feature: Feature) -> bool:
    """Whether the values of a feature can be drawn along one axis; combinations of values can."""
    # Whether several columns of numbers are modelled together.
    block_of_numbers = len(feature.inputs) > 1 and not feature.kinds
    return not (feature.holds_lists or block_of_numbers or (feature.columns and feature.counter.words))


def check_axis(feature: Feature) -> None:
    """Raises an error unless the values of a feature can be drawn along one axis."""
    if not has_axis(feature):
        raise no_axis(feature)


def no_axis(feature: Feature) -> errors.BadSetting:
    """Returns the error of a feature whose values have no axis, with advice on what to draw instead."""
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
    """Returns the names of two numeric columns, which may be in blocks. Raises an error for others."""
    for column in (names := pair_of("features", columns, "the names of two numeric columns")):
        feature = column_of(model, column)
        if feature.holds_lists:
            raise no_axis(feature)
        if column not in feature_parts_of(model, feature.name).axes:
            text = f"column {column!r} is of family {feature.family.name}, but a numeric column is needed to draw an axis. "
            text += f"Name another column, of family {errors.listed(family.name for family in NUMBERS)}, or count this "
            text += "one as a number with features=."
            raise errors.BadSetting(text, column=column, family=feature.family.name)
    return names


def pair_of(setting: str, setting_value: Any, expected: str) -> tuple[Any, Any]:
    """Returns the two different entries of the setting named ``setting``. Raises BadSetting unless there are two.
    ``expected``: what they must be, in words.
    """
    if (
        isinstance(setting_value, str)
        or not isinstance(setting_value, Sequence)
        or len(setting_value) != 2
        or setting_value[0] == setting_value[1]
    ):
        raise errors.bad_setting(setting, setting_value, expected)
    return setting_value[0], setting_value[1]


def complete_rows(model: Model, columns: Mapping[str, Sequence[Any] | Real]) -> dict[str, Any]:
    """Returns rows with these columns and all other columns of the model missing, as the model reads them: a list or
    array by column. Columns of occurrences are zeros.
    """
    n_rows = len(next(iter(columns.values())))
    occurrence_columns = {  # those of blocks whose columns are counted like words
        name for feature in model.schema.features if feature.counter.words for name in feature.columns
    }
    empty_columns = {
        column: [0.0 if column in occurrence_columns else None] * n_rows for column in model.schema.columns
    }
    return {**empty_columns, **columns}


def log_likelihood(model: Model, feature: Feature, values: Any) -> Real:
    """Returns log P(value | class) of a feature (values × classes). A combination of values of a block is a tuple."""
    columns = {feature.inputs[0]: values}  # the values by column
    if len(values) and isinstance(values[0], tuple):
        columns = {column: [value[i] for value in values] for i, column in enumerate(feature.columns)}
    return model.log_likelihood(complete_rows(model, columns), feature.name)


def values_by_name(model: Model, feature_parts: FeatureParts, n: int | None = None) -> NamedValues:
    """Returns the values of a feature that is not numeric, or the ``n`` most frequent ones: of counted values all, of
    others those of rows that are drawn from the model. Raises an error for texts and lists.
    """
    feature = feature_parts.feature
    sums = feature_parts.sums
    if feature.reads_text or feature.holds_lists:
        raise no_axis(feature)
    if feature.counter.words:
        return informative_columns(feature_parts.group, sums, n)
    if isinstance(sums, Counts) and (feature.kinds or not feature.columns):
        # The counted values, and the rows of each (values × classes).
        keys, cells = sums.feature(feature_parts.position)
        values, names = flag_names(feature.family) or (list(keys), [_value_name(key) for key in keys])
        noun = "combination" if feature.kinds else "value"
        return NamedValues(values, names, cells.value.sum(axis=1), what=noun).most_frequent(n)
    rng = np.random.default_rng(0)
    # Rows drawn from the model, whose classes come first.
    classes = rng.choice(len(model.classes), SAMPLED_ROWS, p=np.exp(model.log_prior))
    sample = feature_parts.group.select([feature_parts.position]).sample(classes, rng)[0]  # a value per class
    value_names, rows = np.unique(np.array(list(map(str, sample))), return_counts=True)
    return NamedValues(value_names.tolist(), value_names.tolist(), rows.astype(np.float64)).most_frequent(n)


def _value_name(key: Any) -> str:
    """Returns ``key``, a value or a tuple of values of several columns, as text."""
    return ", ".join(map(str, key)) if isinstance(key, tuple) else "missing" if key is None else str(key)


def range_of_counts(feature_parts: FeatureParts) -> tuple[float, float] | None:
    """Returns the lowest and highest number of a column that is counted value by value; None for other columns.
    ``feature_parts``: the column with its sums and its position in them.
    """
    return (
        value_range(feature_parts.feature, feature_parts.sums.feature(feature_parts.position)[0])
        if isinstance(feature_parts.sums, Counts)
        else None
    )


def axis_range(
    model: Model, column: str, values: Real | None = None, margin_share: float = MARGIN
) -> tuple[float, float]:
    """Returns the lowest and highest number to draw of the column named ``column``: of ``values``, or of the counted
    numbers, or of nearly all (99 %) that the model would sample.

    ``margin_share``: the margin on either side, as a share of the range. Counted numbers have none.
    """
    if values is None and column in model.schema.index:  # it is a feature, not a column of a block
        counted_range = range_of_counts(feature_parts_of(model, column))
        if counted_range is not None and counted_range[0] < counted_range[1]:
            return counted_range
    if values is None:
        sample = np.asarray(model.sample(SAMPLED_ROWS)[column], dtype=np.float64)  # drawn numbers of the column
        low, high = np.quantile(np.clip(sample[~np.isnan(sample)], -FARTHEST, FARTHEST), [0.005, 0.995])
    else:
        low, high = np.clip([values.min(), values.max()], -FARTHEST, FARTHEST)
    margin = (high - low) * margin_share if high > low else abs(low) * MARGIN or 0.5
    return float(low - margin), float(high + margin)


def axis_values(
    model: Model,
    feature: Feature,
    column: str,
    values: Real | None = None,
    steps: int = POINTS_OF_CURVE,
    margin_share: float = MARGIN,
) -> Real:
    """Returns the values at which a numeric column of a feature is drawn, ascending, ``steps`` at most: evenly spaced,
    and whole numbers unless the family has a density. ``values``: those over whose range
    it is drawn, by default those that the model knows; ``margin_share``: the margin on either side, as a share of it.
    """
    low, high = axis_range(model, column, values, margin_share)
    lowest_possible = feature.family.least  # a number; may be −∞
    if feature.family.has_density():
        start = max(low, lowest_possible, (high - low) / steps) if lowest_possible > 0 else max(low, lowest_possible)
        return 2.0 * np.linspace(0.5 * start, 0.5 * high, steps)  # their difference may be more than a double holds
    low = max(np.floor(low), lowest_possible)
    high = np.ceil(high)
    return np.unique(np.round(np.linspace(low, high, min(int(high - low) + 1, steps))))


def select_rows(usable: NDArray[np.bool_], columns: tuple[str, str]) -> NDArray[np.int64]:
    """Returns the numbers of the usable rows, or an even selection if there are many. Raises EmptyData if there are
    none. ``usable``: whether each row is; ``columns``: the two columns, for the message.
    """
    row_numbers = np.flatnonzero(usable)
    if not len(row_numbers):
        raise errors.empty_data(None, f"no row has values of both {columns[0]!r} and {columns[1]!r}")
    return row_numbers[
        np.unique(np.linspace(0, len(row_numbers) - 1, min(len(row_numbers), MOST_POINTS)).astype(np.int64))
    ]


class ClassedRows:
    """Labelled rows to draw with a model: ``classes`` has the class number of each, −1 for a missing label. A model
    with one class needs no labels.
    """

    def __init__(self, model: Model, data: Any, target: Any, reading: Mapping[str, Any]) -> None:
        """Reads ``data``, labelled rows. ``target``: their labels or the column of them; that of the model unless
        given; ``reading``: options for reading them.
        """
        target = model.schema.target if target is None else target
        if target is None and len(model.classes) == 1:
            source = model._read(data, reading)
            self.batches = tuple(align_names(batch, model.schema) for batch in source if batch.n_rows)
            self.classes: NDArray[np.int64] = np.zeros(sum(batch.n_rows for batch in self.batches), dtype=np.int64)
            return
        # The rows, with class numbers of their own in ``labels``.
        labelled = load_rows(data, target, schema=model.schema, takes_sets=False, **reading)
        for label in labelled.classes:
            number_of(model, label)
        # The model's class number of each class of the rows.
        lookup = np.array([*(model.classes.index(label) for label in labelled.classes), -1], dtype=np.int64)
        self.batches = labelled.batches
        self.classes = lookup[labelled.labels]  # −1, for no label, is the last entry

    def numbers(self, feature: str) -> Real:
        """Returns the numbers of the column ``feature`` of all rows, batch after batch, NaN where missing."""
        arrays = [batch.numbers([feature])[0].reshape(-1) for batch in self.batches]
        return np.concatenate([np.zeros(0), *arrays]).astype(np.float64)

    def points(self, columns: tuple[str, str]) -> tuple[Real, Real, NDArray[np.int64]]:
        """Returns the rows with a class and both values, evenly selected if there are many: x, y and class numbers."""
        x, y = (self.numbers(column) for column in columns)
        row_numbers = select_rows(np.isfinite(x) & np.isfinite(y) & (self.classes >= 0), columns)
        return x[row_numbers], y[row_numbers], self.classes[row_numbers]
