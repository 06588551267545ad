"""What pictures ask of a model: the values to draw of a feature, what the model says of them, and the rows beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.distributions import Bernoulli
from banbury.distributions.family import Feature
from banbury.naive_bayes import Model
from banbury.networks import BeliefNetwork
from banbury.readers import read
from banbury.selection import held
from banbury.tally import aligned

SAMPLED = 4_000  # rows drawn from a model to see where its values lie
STEPS = 1_000
MOST_POINTS = 2_000


def check_model(model: Any, classes: int = 1) -> None:
    """Raises unless it is a model of so many classes at least."""
    if not isinstance(model, Model):
        tree = isinstance(getattr(model, "network_", model), BeliefNetwork)
        wanted = "that of a classifier is its model_"
        if tree:
            wanted = "a network, as network_ of a TANClassifier, is drawn by NetworkDisplay and EvidenceDisplay"
        raise errors.bad_setting("the model", type(model).__name__, f"a Model, as bb.estimate makes it; {wanted}")
    _check_classes(model.classes, classes)


def _check_classes(found: Sequence[Any], least: int) -> None:
    if len(found) < least:
        raise errors.bad_setting(
            "the model", f"one class, {found[0]!r}", "one of two classes at least for this picture"
        )


def answering(model: Any) -> Model | BeliefNetwork:
    """What predicts and explains: a model, a network with a target, or that of a TANClassifier."""
    found = getattr(model, "network_", model)
    if not isinstance(found, BeliefNetwork):
        check_model(found, classes=2)
        return found  # type: ignore[no-any-return]
    if found.target is None:
        raise errors.bad_setting(
            "the network",
            "one that was made without a target",
            "one with a target, or network.explain(row, of=...) drawn",
        )
    _check_classes(found.classes, 2)
    return found


def check_whole(setting: str, value: Any, low: int, high: int = 10**6) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise errors.bad_setting(setting, value, f"a whole number from {low:,} to {high:,}")


def number_of(model: Model, label: Any) -> int:
    """The number of a class."""
    if label not in model.classes:
        raise errors.unknown_class(label, model.classes)
    return model.classes.index(label)


def holds_numbers(feature: Feature) -> bool:
    """Whether it has a density: of a column of numbers, or of a block of them."""
    return feature.family.shape in ("moments", "bins", "products")


def is_numeric(feature: Feature) -> bool:
    """Whether its values lie on one axis."""
    return holds_numbers(feature) and len(feature.inputs) == 1


def column_of(model: Model, column: str) -> Feature:
    """The feature that a column belongs to: itself, or its block."""
    return next((f for f in model.schema.features if column in f.columns), None) or model.schema[column]


def numeric(model: Model, column: str) -> None:
    """Raises unless the column holds numbers, by itself or in a block."""
    found = column_of(model, column)
    if not holds_numbers(found) or column not in found.inputs:
        raise errors.not_numeric(column, found.family.name)


def only_missing(model: Model, n_rows: int) -> dict[str, Any]:
    """Rows of which nothing is known, as the model reads rows; columns of occurrences have none."""
    nothing: dict[str, Any] = {name: np.nan for f in model.schema.features if holds_numbers(f) for name in f.inputs}
    nothing |= {name: 0.0 for f in model.schema.texts for name in f.columns}
    return {column: [nothing.get(column)] * n_rows for column in model.schema.columns}


def table(model: Model, given: Mapping[str, Sequence[Any] | Real]) -> dict[str, Any]:
    """Rows of which these columns are known and all others missing."""
    n_rows = len(next(iter(given.values())))
    return {**only_missing(model, n_rows), **given}


def log_likelihood(model: Model, feature: str, values: Any) -> Real:
    """log P(value | class), values × classes, as the model scores rows; a value of a block is a tuple."""
    found, given = model.schema[feature], {feature: values}
    if found.columns and not is_numeric(found):
        given = {column: [value[j] for value in values] for j, column in enumerate(found.columns)}
    return model.log_likelihood(table(model, given), found.name)


def keys(model: Model, feature: Feature) -> tuple[list[Any], list[str]]:
    """The values of a feature that is no number, as rows have them, and what they are called."""
    family = feature.family
    if isinstance(family, Bernoulli):
        if family.threshold is not None:
            t = family.threshold
            return [t, float(np.nextafter(t, np.inf))], [f"at most {t:g}", f"above {t:g}"]
        if family.yes is not None:
            other = f"not {family.yes}" if isinstance(family.yes, str) else family.yes + 1
            return [other, family.yes], [f"not {family.yes}", str(family.yes)]
        return [False, True], ["no", "yes"]
    place = [f.name for f in model.schema.keyed].index(feature.name)
    found: list[Any] = list(model.tally.counts.keys[place])
    if feature.columns:
        return found, [", ".join(map(str, key)) for key in found]
    return found, ["missing" if key is None else str(key) for key in found]


def rows_with(model: Model, feature: Feature) -> Real:
    """How many rows counted have each of the values that ``keys`` names."""
    place = [f.name for f in model.schema.keyed].index(feature.name)
    return np.asarray(model.tally.counts.feature(place)[1].value.sum(axis=1))


def span(model: Model, feature: str, values: Real | None = None) -> tuple[float, float]:
    """Where to draw: from the lowest to the highest of the values, or of nearly all that the model would draw."""
    if values is None:
        drawn = np.asarray(model.sample(SAMPLED)[feature], dtype=np.float64)
        low, high = np.quantile(drawn[np.isfinite(drawn)], [0.005, 0.995])
    else:
        low, high = values.min(), values.max()
    room = (high - low) * 0.05 or abs(low) * 0.05 or 0.5
    return float(low - room), float(high + room)


def grid(model: Model, feature: Feature, values: Real | None = None, steps: int = STEPS) -> Real:
    """Values to draw a numeric feature at; of counts the whole numbers."""
    low, high = span(model, feature.name, values)
    if feature.family.name != "poisson":
        return np.linspace(low, high, steps)
    low, high = max(np.floor(low), 0.0), np.ceil(high)
    return np.unique(np.round(np.linspace(low, high, min(int(high - low) + 1, steps))))


class ClassedRows:
    """Labelled rows beside a model: the number of each one's class, and columns of numbers. One class needs no labels."""

    def __init__(self, model: Model, data: Any, target: Any, reading: Mapping[str, Any]) -> None:
        target = model.schema.target if target is None else target
        if target is None and len(model.classes) == 1:
            source = read(data, kinds=model.schema.kinds(), **reading)
            self.batches = tuple(aligned(batch, model.schema) for batch in source if batch.n_rows)
            self.classes: NDArray[np.int64] = np.zeros(sum(batch.n_rows for batch in self.batches), dtype=np.int64)
            return
        labelled = held(data, target, schema=model.schema, **reading)
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
        used = np.flatnonzero(np.isfinite(x) & np.isfinite(y) & (self.classes >= 0))
        if not len(used):
            raise errors.empty_data(None, f"no row has values of both {columns[0]!r} and {columns[1]!r}")
        used = used[np.unique(np.linspace(0, len(used) - 1, min(len(used), MOST_POINTS)).astype(np.int64))]
        return x[used], y[used], self.classes[used]
