"""What a row is made of, for a page that asks for one: a field for each column, and what each of its values would say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import banbury
from banbury import errors
from banbury.arrays import FARTHEST
from banbury.families.quantile_tree import value_range
from banbury.labels import yes_no
from banbury.model.explain.explanation import strict
from banbury.model.naive_bayes import estimate
from banbury.service.learner import ServedLearner
from banbury.service.state import ServedState
from banbury.sums import Counts

if TYPE_CHECKING:
    from banbury.plots.scales import Scale

MOST_FIELDS = 300
MOST_VALUES = 2_000
LANES = 20  # columns of a model that has a nomogram, at most
POINTS = 60  # of a curve
MIDDLE = 0.1  # of the rows lie below the least number that is named, and above the greatest
SAMPLED = 400  # rows that are drawn to tell the range of numbers


def fields(state: ServedState) -> dict[str, Any]:
    """The columns of a row, each with the values that it had; and the names of classes or labels, those without rows last."""
    learner = state.learner
    tally = learner.tally()
    names = [name for name in tally.classes if not (tally.schema.labels is not None and name == "")]
    new_names = [name for name in state.names or [] if name not in names]
    description = {"fields": list(_fields(learner)), "names": names + new_names, "target": tally.schema.target}
    has_two_sides = len(names) > 1 or tally.schema.labels is not None
    return description | {"sheet": has_two_sides and _can_be_drawn(learner)}


def _can_be_drawn(learner: ServedLearner) -> bool:
    """Whether a nomogram can be read: of few columns that are not weighed, each with a line; lists and blocks have none."""
    features = learner.tally().schema.features
    if len(features) > LANES or learner.settings.weighing is not None:
        return False
    # Pictures are not imported until one is asked for.
    return all(map(banbury.plots.features.has_axis, features))


def _fields(learner: ServedLearner) -> Iterator[dict[str, Any]]:
    tally = learner.tally()
    kinds = learner.schema.kinds
    columns = [(feature, column) for feature in learner.schema.features for column in feature.inputs][:MOST_FIELDS]
    model = estimate(tally._each_row_once) if tally.classes else None
    drawn = {} if model is None else model.sample(SAMPLED)
    groups = () if model is None else model.parameters
    places = {f.name: (group, k) for group in groups for k, f in enumerate(group.features)}
    ranges = {} if model is None else _ranges(model)
    for feature, column in columns:
        field = {"name": column, "kind": "text", "values": None, "low": None, "high": None}
        if feature.reads_text:
            yield field
            continue
        group, k = places.get(feature.name, (None, 0))
        listed = None if group is None else group.categories(k, column)
        if listed is not None:
            yield field | {"kind": "category", "values": [v for v in listed if v is not None][:MOST_VALUES]}
            continue
        kind = {"string": "category", "list": "list"}.get(str(kinds.get(column)), "number")
        if column in ranges:
            low, high = ranges[column]
            yield field | {"kind": kind, "low": low, "high": high}
        else:
            yield field | {"kind": kind} | (_ends(drawn[column]) if kind == "number" and column in drawn else {})


def _ranges(model: Any) -> dict[str, tuple[float, float]]:
    """Between which numbers eight in ten rows lie, of columns whose numbers are counted one by one: such as rows have."""
    ranges = {}
    for _, features, sums in model.tally.groups:
        for k, feature in enumerate(features if isinstance(sums, Counts) else ()):
            keys, rows = sums.feature(k)
            middle = value_range(feature, keys, rows.value.sum(axis=1), MIDDLE)
            if middle is not None:
                ranges[feature.name] = middle
    return ranges


def _ends(values: Any) -> dict[str, float | None]:
    """Between which numbers most that a model draws lie, in two digits."""
    numbers = np.asarray(values, dtype=np.float64)
    low, high = np.quantile(np.clip(numbers[~np.isnan(numbers)], -FARTHEST, FARTHEST), [MIDDLE, 1.0 - MIDDLE]).tolist()
    return {"low": float(f"{low:.2g}"), "high": float(f"{high:.2g}")}


def nomogram(learner: ServedLearner, row: Any, against: Any, label: Any) -> dict[str, Any]:
    """For how many decibans each value speaks for the class of a row against another; of labels, for one against its absence."""
    batch = learner.rows.batch([row])
    model: Any = learner.apart()
    posterior = model.posterior(batch)[0]
    if model.schema.labels is not None:
        label = model.labels[int(np.argmax(posterior))] if label is None else label
        model = estimate(yes_no(model.tally, label))
        names: tuple[Any, Any] = (True, False)
    elif len(model.classes) < 2:
        raise errors.EmptyData(
            f"{model.classes[0]!r} is the only class so far, but evidence compares two classes. Learn rows of a second "
            "class first."
        )
    else:
        best, *runners_up = np.argsort(-posterior, kind="stable").tolist()
        names = model.classes[best], model.classes[runners_up[0]] if against is None else against
        names = (names[0], model.classes[runners_up[0]]) if names[0] == names[1] else names
    sheet = banbury.plots.NomogramDisplay.of(model, *names)  # pictures are not imported until one is asked for
    points = sheet.points(batch)
    shown = sorted(sheet.scales.values(), key=lambda scale: -scale.range)
    side_names = (label, f"not {label}") if names == (True, False) and label is not None else names
    lanes = [{**_lane(scale), "points": strict(points[scale.feature])} for scale in shown]
    return {"label": side_names[0], "against": side_names[1], "prior": strict(sheet.prior), "scales": lanes}


def _lane(scale: Scale) -> dict[str, Any]:
    decibans = scale.decibans
    values = list(scale.values)
    names = list(scale.names)
    if scale.numeric and len(values) > POINTS:
        some = np.linspace(0, len(values) - 1, POINTS).astype(np.int64).tolist()
    else:
        some = list(range(len(values)))
    plain = [value.item() if isinstance(value, np.generic) else value for value in (values[k] for k in some)]
    return {
        "feature": scale.feature,
        "numeric": scale.numeric,
        "values": [v if isinstance(v, (str, int, float, bool)) else None for v in plain],
        "names": [] if scale.numeric else ["missing" if values[k] is None else names[k] for k in some],
        "decibans": [strict(d) for d in decibans[some].tolist()],
    }
