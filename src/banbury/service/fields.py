"""The form of a row on the page: a field for each column, and a nomogram of the evidence of its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import banbury
from banbury import errors
from banbury.arrays import FARTHEST
from banbury.families.quantile_tree import value_range
from banbury.files.checking import JsonObject
from banbury.labels import yes_no
from banbury.model.explain.explanation import strict
from banbury.model.naive_bayes import estimate
from banbury.service.learner import ServedLearner
from banbury.service.state import ServedState
from banbury.sums import Counts

if TYPE_CHECKING:
    from banbury.plots.scales import Scale

MOST_FIELDS = 300  # of the form
MOST_VALUES = 2_000  # of a category
MOST_NOMOGRAM_COLUMNS = 20  # most columns of a model with a nomogram
MOST_CURVE_POINTS = 60  # most points of a curve
SHARE_OUTSIDE = 0.1  # share of the rows below the range of a number field, and above it
SAMPLED_ROWS = 400  # rows that are sampled for the range of numbers


def fields(state: ServedState) -> JsonObject:
    """Returns the fields of a row with their usual values, and the names of the classes or labels (those without rows
    last), for JSON.
    """
    learner = state.learner
    tally = learner.tally()
    # Classes or labels that have rows; "" stands for all rows of a model of labels.
    names = [name for name in tally.classes if not (tally.schema.labels is not None and name == "")]
    new_names = [name for name in state.names or [] if name not in names]  # that users may choose
    description = {"fields": list(_fields(learner)), "names": names + new_names, "target": tally.schema.target}
    # Whether there is something to compare with.
    has_two_sides = len(names) > 1 or tally.schema.labels is not None
    return description | {"has_nomogram": has_two_sides and _can_be_drawn(learner)}


def _can_be_drawn(learner: ServedLearner) -> bool:
    """Returns whether the model has a readable nomogram: few columns, not weighed, no lists and no blocks."""
    features = learner.tally().schema.features
    if len(features) > MOST_NOMOGRAM_COLUMNS or learner.settings.weighing is not None:
        return False
    # Pictures are not imported until one is asked for.
    return all(map(banbury.plots.features.has_axis, features))


def _fields(learner: ServedLearner) -> Iterator[JsonObject]:
    """Yields a dictionary for each column of the served model: its kind, the values of a category, the usual range of a
    number.
    """
    tally = learner.tally()
    kinds = learner.schema.kinds  # the type of each column
    # Pairs of a feature and one of its columns.
    columns = [(feature, column) for feature in learner.schema.features for column in feature.inputs][:MOST_FIELDS]
    model = estimate(tally._each_row_once) if tally.classes else None  # of one class if rows have label sets
    # Values by column, drawn from the model; and the parameters of each group of features.
    samples = {} if model is None else model.sample(SAMPLED_ROWS)
    parameter_groups = () if model is None else model.parameters
    group_and_position = {  # of each feature by name: its parameters, and its position among their features
        group_feature.name: (group, position)
        for group in parameter_groups
        for position, group_feature in enumerate(group.features)
    }
    ranges = {} if model is None else _ranges(model)  # low and high by column
    for feature, column in columns:
        # For JSON, as if it were a text.
        field = {"name": column, "kind": "text", "values": None, "low": None, "high": None}
        if feature.reads_text:
            yield field
            continue
        # The parameters of the feature's group, None without a model, and its position in the group.
        group, position = group_and_position.get(feature.name, (None, 0))
        # The values of a category; None for other columns.
        categories = None if group is None else group.categories(position, column)
        if categories is not None:
            yield field | {
                "kind": "category",
                "values": [category for category in categories if category is not None][:MOST_VALUES],
            }
            continue
        kind = {"string": "category", "list": "list"}.get(str(kinds.get(column)), "number")
        if column in ranges:
            low, high = ranges[column]
            yield field | {"kind": kind, "low": low, "high": high}
        else:
            yield field | {"kind": kind} | (_ends(samples[column]) if kind == "number" and column in samples else {})


def _ranges(model: Any) -> dict[str, tuple[float, float]]:
    """Returns the range (low and high) of the middle 80 % of the rows for each column whose numbers are counted one by
    one.
    """
    ranges = {}  # low and high by column
    for _, features, sums in model.tally.groups:
        for position, feature in enumerate(features if isinstance(sums, Counts) else ()):
            keys, rows = sums.feature(position)  # the column's values, and their rows (values × classes)
            # Low and high; None for other columns.
            range_ends = value_range(feature, keys, rows.value.sum(axis=1), SHARE_OUTSIDE)
            if range_ends is not None:
                ranges[feature.name] = range_ends
    return ranges


def _ends(values: Any) -> dict[str, float | None]:
    """Returns the range of the middle 80 % of ``values``, numbers of which some may be NaN, as "low" and "high",
    rounded to two digits.
    """
    numbers = np.asarray(values, dtype=np.float64)
    low, high = np.quantile(
        np.clip(numbers[~np.isnan(numbers)], -FARTHEST, FARTHEST), [SHARE_OUTSIDE, 1.0 - SHARE_OUTSIDE]
    ).tolist()
    return {"low": float(f"{low:.2g}"), "high": float(f"{high:.2g}")}


def nomogram(learner: ServedLearner, row: Any, against: Any, label: Any) -> JsonObject:
    """Returns the decibans of every value for the predicted class against another, or for a label against its absence,
    for JSON.

    ``against``, ``label``: as the request gives them, or None.
    """
    batch = learner.rows.batch([row])
    model: Any = learner.snapshot_model()
    posterior = model.posterior(batch)[0]  # of each class or label
    if model.schema.labels is not None:
        label = model.labels[int(np.argmax(posterior))] if label is None else label
        model = estimate(yes_no(model.tally, label))  # of two classes: rows with the label and rows without
        names: tuple[Any, Any] = (True, False)  # the class that evidence is for, and the other
    elif len(model.classes) < 2:
        raise errors.EmptyData(
            f"{model.classes[0]!r} is the only class so far, but evidence compares two classes. Learn rows of a second "
            "class first."
        )
    else:
        # Class numbers, the most probable first.
        best, *runners_up = np.argsort(-posterior, kind="stable").tolist()
        names = model.classes[best], model.classes[runners_up[0]] if against is None else against
        # The class to compare with may be the predicted one.
        names = (names[0], model.classes[runners_up[0]]) if names[0] == names[1] else names
    display = banbury.plots.NomogramDisplay.of(model, *names)  # pictures are not imported until one is asked for
    points = display.points(batch)  # the decibans of the row's value by column
    # One per column, the widest first.
    scales = sorted(display.scales.values(), key=lambda scale: -scale.range)
    # What evidence is for and against, as people call it.
    side_names = (label, f"not {label}") if names == (True, False) and label is not None else names
    # For JSON, with the decibans of the row's own value.
    scale_records = [{**_scale_for_json(scale), "points": strict(points[scale.feature])} for scale in scales]
    return {"label": side_names[0], "against": side_names[1], "prior": strict(display.prior), "scales": scale_records}


def _scale_for_json(scale: Scale) -> JsonObject:
    """Returns ``scale``, a column of the nomogram, for JSON: its values, their names and decibans; a long curve is
    thinned out.
    """
    decibans = scale.decibans  # of each value
    values = list(scale.values)
    names = list(scale.names)  # of each value; empty for numbers
    if scale.numeric and len(values) > MOST_CURVE_POINTS:  # only the values at these positions remain
        positions = np.linspace(0, len(values) - 1, MOST_CURVE_POINTS).astype(np.int64).tolist()
    else:
        positions = list(range(len(values)))
    python_values = [
        value.item() if isinstance(value, np.generic) else value
        for value in (values[position] for position in positions)
    ]
    return {
        "feature": scale.feature,
        "numeric": scale.numeric,
        "values": [value if isinstance(value, (str, int, float, bool)) else None for value in python_values],
        "names": []
        if scale.numeric
        else ["missing" if values[position] is None else names[position] for position in positions],
        "decibans": [strict(number) for number in decibans[positions].tolist()],
    }
