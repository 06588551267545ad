"""Density: the model with one class. How probable rows are, marginal and conditional probabilities, independence.

A mixture has several classes, which nobody has named: ``AsDensity`` is what both can say of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.errors import many
from banbury.families.family import Feature, Parameters
from banbury.families.information import equal_groups
from banbury.families.joint import columns_of_table
from banbury.model.explain import DECIBANS, Evidence, Surprise
from banbury.model.naive_bayes import Model, estimate, log_sum
from banbury.reading import Batch, is_texts, read
from banbury.reading.batches import Source
from banbury.reading.columns import Numbers, empty_column
from banbury.scikit_learn import BaseEstimator, DensityMixin, check_is_fitted
from banbury.sums import Keys
from banbury.tally import tally as tallies
from banbury.tally.schema import Features, Schema
from banbury.tally.table import Table, batches
from banbury.tally.tally import Tally

ALL = "all"  # the one class
MOST_COMBINATIONS = 1_000_000  # of values that one question asks for
FEW_VALUES = 20  # of a column of numbers: those of more are cut into bins before they are tested
MOST_BINS = 6  # of each such column
DRAWN = 1_000  # rows that say what is usual
ANSWERS = "a mapping from columns to values, as in {'play': 'yes'}"
FAR = 2.0**17  # the log P(row) of rows that are compared with what is usual value by value
MOST_DRAWN_CELLS = 4_000_000  # of rows × features × classes
ROWS_PER_CELL = 10  # on average: so many at least are left by the bins


class AsDensity(DensityMixin):  # type: ignore[misc]
    """Uses a fitted model as a density: P(row) regardless of the class, and what follows from it."""

    model_: Model

    def score_samples(self, X: Any) -> Real:
        """Returns log P(row) of each row, or its log density. It is −∞ only under "mle" and "map"."""
        model = self._model()
        source = self._batches(X)
        warned = set[str]()
        rows = batches(source, "scoring") if isinstance(source, Source) else source
        return np.concatenate([log_sum(_log_joint(model, *model._fitting(batch, warned))) for batch in rows])

    def anomaly_scores(self, X: Any) -> Real:
        """Returns −log P(row) of each row: the higher, the more unusual."""
        return -self.score_samples(X)

    def sample(self, n: int = 1, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Draws ``n`` rows from the distribution, as a mapping of columns. ``model_.sample`` also returns the class of
        each.
        """
        model = self._model()
        drawn = model.sample(n, seed)
        return {name: drawn[name] for feature in model.schema.features for name in feature.inputs}

    def surprise(self, row: Any, seed: int = 0) -> Surprise:
        """Explains which values make a row unusual: how likely each value is given the others, compared with rows drawn
        from the model.

        >>> import banbury as bb
        >>> wine = {name: column for name, column in bb.datasets.wine().items() if name in ("alcohol", "hue", "proline")}
        >>> bb.Density().fit(wine).surprise({"alcohol": 13.0, "hue": 1.7, "proline": 750.0})
        log P(row) -12.12, usually -8.34; each value given the others, in decibans:
          hue      = 1.7    -20.97  ---------------------
          proline  = 750     +2.24  ++
          alcohol  = 13      +2.28  ++
          row               -16.45
        """
        model = self._model()
        batch, parameters = model._fitting(model._one_row(row), {"extra"})
        lacking = {name for name in batch.names if next(iter(batch.head(name, 1)), None) is None}
        chosen = [[i for i, f in enumerate(g.features) if not lacking.issuperset(f.inputs)] for g in parameters]
        parameters = [group.select(index) for group, index in zip(parameters, chosen, strict=True) if index]
        if not parameters:
            raise errors.empty_data(None, "the row has no counted value")
        features = [feature for group in parameters for feature in group.features]
        drawn = self.sample(int(np.clip(MOST_DRAWN_CELLS // (len(features) * len(model.classes)), 100, DRAWN)), seed)
        there = {name: column for name, column in drawn.items() if name not in lacking}
        [drawn_rows] = read(there, kinds=model.schema.kinds)
        gaps = {name: empty_column(drawn_rows.n_rows) for name in drawn if name in lacking}
        log_row, log_given_rest = _condition_on_rest(model, batch, parameters, lacking)
        drawn_log_rows, usual = _condition_on_rest(model, drawn_rows.with_columns(gaps), parameters, lacking)
        evidence = []
        for feature in features:
            for name in _columns(feature, lacking):
                new = None if feature.columns else model._group(name).never_seen(batch)
                seen = new is None or not new[0, 0]
                value = next(iter(batch.head(name, 1)), None) if name in batch.names else "…"
                decibans = float((log_given_rest[name][0] - usual[name].mean()) * DECIBANS)
                evidence.append(Evidence(name, value, decibans, seen))
        return Surprise(
            float(log_row[0]), float(drawn_log_rows.mean()), tuple(sorted(evidence, key=lambda e: e.decibans))
        )

    def log_probability(self, event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> float:
        """Returns log P(event | given); for numbers, the log density.

        An event gives values for some columns and leaves the others open. A list or set of values means any one of
        them, and all of them must have been counted.
        """
        errors.require(isinstance(event, Mapping), "event", event, ANSWERS)
        errors.require(isinstance(given or {}, Mapping), "given", given, ANSWERS)
        errors.require(event, "event", event, "a value for at least one column")
        columns = {name: self._column(name) for name in event}
        values = {name: column.alternatives(event[name]) for name, column in columns.items()}
        log = float(log_sum(self._conditional(values, given or {})[None])[0])
        return log if any(column.feature.family.has_density() for column in columns.values()) else min(log, 0.0)

    def probability(self, event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> float:
        """Returns P(event | given), or a density. For a list or set of values, the probability of any one of them.

        >>> import banbury as bb
        >>> density = bb.Density(how="mle").fit({"rain": [True, False, True, True], "late": [1.0, 0.0, 1.0, 0.0]})
        >>> density.probability({"rain": True})
        0.75
        >>> bb.Density(how="mle").fit(bb.datasets.play_tennis()).probability({"outlook": ["rain", "overcast"]})
        0.6428571428571429
        """
        return float(np.exp(self.log_probability(event, given)))

    def query(self, of: str | Sequence[str], given: Mapping[str, Any] | None = None) -> dict[Any, float]:
        """Returns P(of | given): the probability of each value of a column, or of each tuple of values of several
        columns.

        The columns must be categories or flags, alone or in a joint table. ``given`` is as in ``probability``.

        >>> import banbury as bb
        >>> density = bb.Density(features={("outlook", "play"): bb.Joint()}, how="mle").fit(bb.datasets.play_tennis())
        >>> {value: round(p, 3) for value, p in density.query("play", {"outlook": "sunny"}).items()}
        {'no': 0.6, 'yes': 0.4}
        """
        names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, Sequence) else ()
        errors.require(names and len(set(names)) == len(names), "of", of, "a column, or several different columns")
        errors.require(given is None or isinstance(given, Mapping), "given", given, ANSWERS)
        values = {name: self._column(name).list_values() for name in names}
        logs = self._conditional(values, given or {})
        keys: Iterable[Any] = values[names[0]] if isinstance(of, str) else product(*values.values())
        return dict(zip(keys, np.minimum(np.exp(logs), 1.0).tolist(), strict=True))

    def _conditional(self, queried_values: Mapping[str, Sequence[Any]], evidence_values: Mapping[str, Any]) -> Real:
        """log P(values | given) of every combination of the values that are asked for."""
        if twice := [name for name in queried_values if name in evidence_values]:
            raise errors.bad_setting(
                "given", evidence_values, f"about columns outside the query; {twice[0]!r} is in both"
            )
        columns = {name: self._column(name) for name in (*queried_values, *evidence_values)}
        evidence = {name: columns[name].alternatives(value) for name, value in evidence_values.items()}
        for name, values in {**queried_values, **evidence}.items():
            for value in columns[name].unmet_values(values):
                errors.warn(
                    f"column {name!r} never had the value {value!r}, so the answer comes from smoothing "
                    f"alone, or is 0 without smoothing.{errors.did_you_mean(value, columns[name].keys or ())}"
                )
        if evidence_values and self._log(evidence)[0] == -np.inf:
            shown = errors.listed(f"{name} = {value!r}" for name, value in evidence_values.items())
            raise errors.ImpossibleEvidence(
                f"the evidence has probability 0: no row has {shown}. Smooth with "
                "how='mean', or use different evidence.",
                given=dict(evidence_values),
            )
        features = self._model().schema.features
        near = {name for f in features if not queried_values.keys().isdisjoint(f.inputs) for name in f.inputs}
        log_prior = self._log_prior({name: values for name, values in evidence.items() if name not in near})
        evidence = {name: values for name, values in evidence.items() if name in near}
        n = prod(map(len, queried_values.values()))
        return self._log({**queried_values, **evidence}, log_prior, n) - (
            self._log(evidence, log_prior) if evidence else 0.0
        )

    def _column(self, name: str) -> _AskedColumn:
        """A column that is asked for, with the values that were counted."""
        model = self._model()
        for group in model.parameters:
            for f, feature in enumerate(group.features):
                if name in feature.inputs:
                    return _AskedColumn(model.schema, name, feature, group.categories(f, name))
        raise errors.unknown_column(name, [name for feature in model.schema.features for name in feature.inputs])

    def _marginal(self, columns: Mapping[str, Any]) -> Real:
        """log P(class) + log P(row | class) of rows that have these columns only, rows × classes: the others may be anything."""
        return _log_joint(self._model(), *self._read_columns(columns))

    def _read_columns(self, columns: Mapping[str, Any]) -> tuple[Batch, list[Parameters]]:
        """Rows of these columns only, the others being anything; and the parameters of the features that have them."""
        model = self._model()
        column_names = [name for feature in model.schema.features for name in feature.inputs]
        for name in columns:
            if name not in column_names:
                raise errors.unknown_column(name, column_names)
        parameters = []
        inputs = list[str]()
        for group in model.parameters:
            index = [f for f, feature in enumerate(group.features) if not columns.keys().isdisjoint(feature.inputs)]
            parameters += [group.select(index)] if index else []
            inputs += [name for f in index for name in group.features[f].inputs]
        n_rows = len(next(iter(columns.values())))
        [batch] = read({name: columns.get(name, [None] * n_rows) for name in inputs}, kinds=model.schema.kinds)
        return batch, parameters

    def _log(self, values: Mapping[str, Sequence[Any]], log_prior: Real | None = None, n: int = 1) -> Real:
        """log P of columns' values, under this class prior or the model's own: of all combinations, or in n equal parts."""
        model = self._model() if log_prior is None else replace(self._model(), log_prior=log_prior)
        try:
            return log_sum(_log_joint(model, *self._read_columns(_combine(values))).reshape(n, -1))
        except errors.BadValue as bad:
            raise _as_question(bad, values) from None

    def _log_prior(self, values: Mapping[str, Sequence[Any]]) -> Real:
        """log P(class | values): the prior for all that is independent of these columns given the class."""
        model = self._model()
        terms = []
        flat = replace(model, log_prior=np.zeros(len(model.classes)))
        for feature in model.schema.features:
            feature_values = {name: values[name] for name in feature.inputs if name in values}
            if feature_values:
                terms.append(log_sum(_log_joint(flat, *self._read_columns(_combine(feature_values))).T))
        return _log_posterior(model.log_prior, np.array([terms]))[0] if terms else model.log_prior

    def _batches(self, X: Any) -> Iterable[Batch]:
        return self._model()._read(X, {})

    def _model(self) -> Model:
        check_is_fitted(self)
        return self.model_


def _condition_on_rest(
    model: Model, batch: Batch, parameters: Sequence[Parameters], lacking: set[str]
) -> tuple[Real, dict[str, Real]]:
    """log P(row), and by column log P(value | the row's other values); a text, or a block of occurrences, is as one column."""
    likelihoods = _parts(model, batch, parameters)
    given_others = dict[str, Real]()
    every = model.log_prior + likelihoods.sum(axis=1)
    finite = bool(np.isfinite(likelihoods).all())
    log_rows = log_sum(every)
    far = np.flatnonzero(np.abs(log_rows) > FAR)
    places = [(group, i) for group in parameters for i in range(len(group.features))]
    for f, (group, i) in enumerate(places):
        without = None if finite else np.delete(likelihoods, f, axis=1).sum(axis=1)
        log_without = every - likelihoods[:, f] if without is None else model.log_prior + without
        rest = log_sum(log_without)
        feature = group.features[i]
        with np.errstate(invalid="ignore"):
            posterior = log_without - rest[:, None]
        posterior[far] = _log_posterior(model.log_prior, np.delete(likelihoods[far], f, axis=1))
        log_with = log_sum(posterior + likelihoods[:, f])
        for name in _columns(feature, lacking):
            without = np.zeros_like(log_with)
            if name != feature.name:  # of a block the other columns stay
                gap = batch.with_columns({name: empty_column(batch.n_rows)})
                without = log_sum(posterior + _parts(model, gap, [group.select([i])])[:, 0])
            with np.errstate(invalid="ignore"):
                impossible = np.isneginf(rest) | np.isneginf(without)
                given_others[name] = np.where(impossible, likelihoods[:, f].max(axis=1), log_with - without)
    return log_rows, given_others


def _log_posterior(log_prior: Real, likelihoods: Real) -> Real:
    """log P(class | row) from log P(value | class), (rows, features, classes); what classes have in common cancels first."""
    total = log_prior + likelihoods.sum(axis=1)
    best = total.argmax(axis=1)
    with np.errstate(invalid="ignore"):
        relative = (likelihoods - np.take_along_axis(likelihoods, best[:, None, None], axis=2)).sum(axis=1)
        relative = np.where(np.isneginf(total), -np.inf, relative + (log_prior - log_prior[best][:, None]))
        return np.asarray(relative - log_sum(relative)[:, None])


def _parts(model: Model, batch: Batch, parameters: Sequence[Parameters]) -> Real:
    """log P(value | class), rows × features × classes; without smoothing a value never seen is impossible."""
    parts: Real = model._kernel(batch, parameters, "parts")[0]
    if model.choice.how in ("mle", "map"):
        first = 0
        for group in parameters:
            new = group.never_seen(batch)
            if new is not None:
                parts[:, first : first + len(group.features)][new] = -np.inf
            first += len(group.features)
    return parts


def _columns(feature: Feature, lacking: set[str]) -> list[str]:
    """The columns of a feature that a row has, each by itself; or the feature as one."""
    apart = not feature.counter.words and (feature.holds_lists or feature.name not in feature.inputs)
    return [name for name in feature.columns if name not in lacking] if apart else [feature.name]


@dataclass(frozen=True)
class _AskedColumn:
    """A column that is asked for: its feature, and the values that were counted, where these are listed."""

    schema: Schema
    name: str
    feature: Feature
    keys: Keys | None

    def list_values(self) -> list[Any]:
        """All its values."""
        if self.keys is None:
            expected = "columns with a list of values: categories, flags and joint tables"
            ask = f"ask for probability({{{self.name!r}: ...}})"
            raise errors.bad_setting(
                "of", f"{self.name!r} of family {self.feature.family.name!r}", f"{expected}; {ask}"
            )
        return list(self.keys)

    def alternatives(self, value_or_values: Any) -> list[Any]:
        """The values one of which the column has: those of a list or set, each once, or the one given."""
        several = isinstance(value_or_values, (list, tuple, set, frozenset, np.ndarray))
        if not several or (self.feature.holds_lists and not any(map(np.ndim, value_or_values))):
            return [value_or_values]
        self._check_sum(value_or_values)
        values = value_or_values.tolist() if isinstance(value_or_values, np.ndarray) else list(value_or_values)
        plain = (bool, int, float, str, np.generic)
        has_missing_key = None in (self.keys or ())
        scalars = all(isinstance(value, plain) or (value is None and has_missing_key) for value in values)
        if not values or not scalars or any(value != value for value in values):
            raise errors.bad_setting(
                f"the values of {self.name!r}", value_or_values, "at least one, each a text, a number or a boolean"
            )
        for value in self.unmet_values(values):
            raise errors.value_never_seen(value, self.name, self.keys or ())
        return list(dict(zip(self._meaning(values), values, strict=True)).values())

    def _check_sum(self, values: Any) -> None:
        """Raises unless the probabilities of several values have a sum."""
        if self.feature.counter.words:
            raise errors.bad_setting(
                f"the values of {self.name!r}",
                values,
                "one at a time, because probabilities of texts do not sum over unknown words",
            )
        if (family := self.feature.family).has_density():
            raise errors.BadSetting(
                f"column {self.name!r} is a number of family {family.name!r}, which has a density. Densities of several "
                "values do not sum to a probability. Ask for one number at a time, or use bb.Categorical(), "
                "whose values have probabilities.",
                column=self.name,
            )

    def unmet_values(self, values: Sequence[Any]) -> list[Any]:
        """Those of these values that no row counted had."""
        if self.keys is None:
            return []
        counted_meanings = {*self._meaning(self.keys), None}
        pairs = zip(values, self._meaning(values), strict=True)
        return [value for value, means in pairs if means not in counted_meanings]

    def _meaning(self, values: Sequence[Any]) -> list[Any]:
        """The values as the column counts them, None where one is missing: 1 and "1" may be the same."""
        try:
            [batch] = read({self.name: values}, kinds=self.schema.kinds)
            column = next((f for f in columns_of_table(self.feature) if f.name == self.name), self.feature)
            codes = column.family.keys_of(batch, column, strict=False)
            if codes is None or column.family.has_density():
                return list(batch.numbers([self.name])[0].reshape(-1))
            return [None if number < 0 else codes.values[number] for number in codes.codes.tolist()]
        except errors.BadValue as bad:
            raise _as_question(bad, {self.name: values}) from None


def _as_question(bad: errors.BadValue, values: Mapping[str, Sequence[Any]]) -> errors.BadValue:
    """An error about a value of a row, as one about what was asked for."""
    column: Any = getattr(bad, "column", None)
    value = getattr(bad, "value", values.get(column))
    kinds = {
        "not 0 or 1": "0 or 1",
        "not a count": "a whole number of at least 0",
        "negative": "a number of at least 0",
    }
    expected = kinds.get(getattr(bad, "what", ""), getattr(bad, "wanted", "a finite number"))
    return errors.BadValue(
        f"column {column!r} cannot be {value!r}: {expected} is needed. Use values like those in the "
        "training data, or a list of them for any of several values.",
        column=column,
        value=value,
    )


def _combine(alternatives: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Rows with every combination of the columns' values."""
    n = prod(map(len, alternatives.values()))
    errors.require(
        n <= MOST_COMBINATIONS,
        "query and given",
        f"{n:,} combinations of values",
        f"shorter lists, with at most {MOST_COMBINATIONS:,} combinations",
    )
    columns = zip(*product(*alternatives.values()), strict=True)
    return {name: list(column) for name, column in zip(alternatives, columns, strict=True)}


class Density(AsDensity, BaseEstimator):  # type: ignore[misc]
    """Estimates the distribution of rows without a target, as a scikit-learn density estimator.

    Args:
        features: The families: "auto" (independent columns, each by its type), one family for all columns, or a mapping
            by column. A block models several columns jointly, as in ``{("a", "b"): bb.Joint()}`` or ``{("x", "y"):
            bb.Gaussian(covariance="full")}``.
        how: The estimator, as in ``bb.estimate``.
        alpha: The pseudo-count, as in ``bb.estimate``.

    ``bb.Mixture`` is a density with several components and has the same methods.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> density = bb.Density(features={("outlook", "play"): bb.Joint()}, how="mle").fit(weather)
    >>> round(density.probability({"play": "yes"}, given={"outlook": "rain"}), 2)
    0.6
    >>> round(density.score(weather), 1)
    -56.4
    """

    def __init__(
        self,
        features: Features = "auto",
        how: str = "mean",
        alpha: float = 1.0,
        missing: str = "skip",
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        self.features = features
        self.how = how
        self.alpha = alpha
        self.missing = missing
        self.threads = threads
        self.seed = seed

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Density:
        """Counts the rows. ``y`` is ignored; it is accepted for pipelines."""
        tally = count_as_one_class(X, self.features, sample_weight, self.missing, self.threads)
        self._keep(estimate(tally, how=self.how, alpha=self.alpha, seed=self.seed))  # type: ignore[arg-type]
        return self

    def _keep(self, model: Model) -> None:
        names = model.schema.columns
        learned: dict[str, Any] = {"tally_": model.tally, "model_": model, "n_features_in_": len(names)}
        if model.schema.named:
            learned["feature_names_in_"] = np.array(names, dtype=object)
        settings = {name: value for name, value in self.__dict__.items() if name != "feature_names_in_"}
        self.__dict__ = settings | learned  # in one step, whenever an interrupt comes

    @classmethod
    def from_model(cls, model: Model) -> Density:
        """Returns the density of a model that was loaded, or estimated from a tally: P(row) regardless of the class.

        >>> import banbury as bb
        >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"), how="mle")
        >>> round(bb.Density.from_model(model).probability({"wind": "strong"}), 3)
        0.429
        """
        if not isinstance(model, Model):
            raise errors.bad_setting("the model", type(model).__name__, "a Model, from bb.estimate or bb.load")
        model = model.weighed(None)  # weights are for telling classes apart
        features = {feature.columns or feature.name: feature.family for feature in model.schema.features}
        density = cls(features, model.choice.how, model.choice.alpha, threads=model.threads, seed=model.choice.seed)
        density._keep(model)
        return density

    def score(self, X: Any, y: Any = None) -> float:
        """Returns the log-likelihood of all rows together."""
        return float(self.score_samples(X).sum())

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inputs = tags.input_tags
        inputs.allow_nan = inputs.string = inputs.categorical = inputs.sparse = True
        return tags


def _log_joint(model: Model, batch: Batch, parameters: Sequence[Parameters]) -> Real:
    """log P(class) + log P(row | class); without smoothing a value never seen is impossible, and no gap in what is known."""
    joint: Real = model._kernel(batch, parameters, "log_joint")[0]
    if model.choice.how in ("mle", "map"):
        for group in parameters:
            never_seen = group.never_seen(batch)
            if never_seen is not None:
                joint[never_seen.any(axis=1)] = -np.inf
    return joint


def count_as_one_class(
    data: Any, features: Features = "auto", weights: Any = None, missing: str = "skip", threads: int | None = None
) -> Tally:
    """Counts the rows of a table as one class. ``weights`` is one number per row, or one for all rows."""
    row_weights = None if weights is None else np.asarray(weights)
    every = None
    if row_weights is not None:
        fits = row_weights.dtype.kind in "biuf" and row_weights.ndim <= 1
        errors.require(fits, "sample_weight", row_weights, "one number per row, or one number for all rows")
        row_weights, every = (row_weights, None) if row_weights.ndim else (None, float(row_weights))
    shape: tuple[int, ...] = getattr(data, "shape", ())
    if len(shape) == 2 and shape[0] and not shape[1]:
        raise errors.EmptyData(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    table = {"text": list(data)} if is_texts(data) else data
    settings = {"features": features, "weights": row_weights, "missing": missing, "threads": threads, "trees": "none"}
    tally = tallies.count_table(Table.of(table, classes=[ALL], **settings))
    tally = tally if every is None else tally * every
    if not tally.classes:
        raise errors.empty_data(None, "every row has a weight of zero")
    return tally


def n_parameters(model: Model) -> int:
    """The number of free parameters, including the class prior unless it was given."""
    estimated = model.class_prior is None or isinstance(model.class_prior, (int, float))
    return model.tally.n_parameters() - (0 if estimated else len(model.classes) - 1)


# Independence --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Independence:
    """The result of a test of (conditional) independence: how much two columns depend on each other, and the p-value."""

    a: str
    b: str
    given: tuple[str, ...]
    mutual_information: float  # in bits
    statistic: float  # G
    degrees: int
    p_value: float
    n_rows: float
    bins: Mapping[str, int]  # of each column of numbers that was cut

    def __str__(self) -> str:
        what = f"{self.a} and {self.b}" + (f" given {', '.join(self.given)}" if self.given else "")
        cut = "".join(f"; {name} cut into {many(n, 'bin')}" for name, n in self.bins.items())
        test = f"G = {self.statistic:.4g} on {many(self.degrees, 'degree')} of freedom, p = {self.p_value:.3g}"
        return f"{what}: {self.mutual_information:.4f} bits, {test} ({self.n_rows:,.6g} rows{cut})"

    __repr__ = __str__


def independence(
    data: Any, a: str, b: str, given: Sequence[str] | str | None = None, *, bins: int | None = None
) -> Independence:
    """Tests whether two columns are independent (given others), by the G-test on their table of counts.

    Numeric columns with more than 20 distinct values are cut into ``bins`` of about equal size. Unless given, the
    number of bins (from 2 to 6) leaves ten rows in each cell of the table on average.

    >>> import banbury as bb
    >>> bb.independence(bb.datasets.play_tennis(), "outlook", "play")
    outlook and play: 0.2467 bits, G = 4.789 on 2 degrees of freedom, p = 0.0912 (14 rows)
    """
    for name, column in (("a", a), ("b", b)):
        errors.require(isinstance(column, str), name, column, "the name of a column")
    several: Any = () if given is None else given if isinstance(given, Iterable) else (given,)
    conditions = (given,) if isinstance(given, str) else tuple(several)
    named = all(isinstance(column, str) for column in conditions)
    errors.require(named, "given", given, "the name of a column, a list of such names, or None")
    columns = (a, b, *conditions)
    errors.require(len(set(columns)) == len(columns), "given", given, "columns other than these two, each once")
    if bins is not None:
        errors.check_whole("bins", bins, 2)
    parts = [batch for batch in read(data) if batch.n_rows]
    errors.require(len(parts) == 1, "data", f"{len(parts)} batches of rows", "one table in memory")
    batch, cut = _in_bins(parts[0], columns, bins)
    rest = {name: None for name in batch.names if name not in columns}
    [(_, _, sums)] = count_as_one_class(batch, {columns: "joint", **rest}).groups
    keys, cells = sums.feature(0)
    return _g_test(columns, keys, cells.value[:, 0], cut)


def _in_bins(batch: Batch, columns: Sequence[str], bins: int | None) -> tuple[Batch, dict[str, int]]:
    """The batch with numbers of many values cut into bins of about equal shares, NaN if missing; how many bins each has."""
    many_valued = dict[str, Real]()
    cells = 1
    for name in columns:
        numeric = batch.kind(name) in ("integer", "float") and not batch.categorical(name)
        numbers = batch.numbers([name])[0].reshape(-1).astype(np.float64) if numeric else None
        n_values = len(np.unique(numbers[~np.isnan(numbers)])) if numbers is not None else len(batch.codes(name).values)
        if numbers is not None and n_values > FEW_VALUES:
            many_valued[name] = numbers
        else:
            cells *= max(n_values, 1)
    if bins is None and many_valued:
        room = (batch.n_rows / ROWS_PER_CELL / cells) ** (1.0 / len(many_valued))
        bins = int(np.clip(room, 2, MOST_BINS))
    cut = dict[str, Numbers]()
    sizes = dict[str, int]()
    for name, numbers in many_valued.items():
        there = ~np.isnan(numbers)
        bin_of = np.full(len(numbers), np.nan)
        _, place, rows = np.unique(numbers[there], return_inverse=True, return_counts=True)
        groups = equal_groups(rows[:, None].astype(np.float64), np.array([bins]))[:, 0]
        bin_of[there] = np.unique(groups, return_inverse=True)[1][place]
        cut[name], sizes[name] = Numbers(bin_of), int(np.nanmax(bin_of)) + 1
    return batch.with_columns(cut) if cut else batch, sizes


def _g_test(columns: tuple[str, ...], keys: Sequence[Any], n: Real, cut: Mapping[str, int]) -> Independence:
    from scipy.stats import chi2
    from scipy.stats.contingency import chi2_contingency

    total = float(n.sum())
    g = 0.0
    degrees = 0
    if not total > 0:
        raise errors.empty_data(None, f"no row has values in all of {errors.listed(map(repr, columns))}")
    for context in dict.fromkeys(key[2:] for key in keys):
        here = [k for k, key in enumerate(keys) if key[2:] == context]
        left = {v: i for i, v in enumerate(dict.fromkeys(keys[k][0] for k in here))}
        right = {v: i for i, v in enumerate(dict.fromkeys(keys[k][1] for k in here))}
        table = np.zeros((len(left), len(right)))
        for k in here:
            table[left[keys[k][0]], right[keys[k][1]]] = n[k]
        test = chi2_contingency(table, correction=False, lambda_="log-likelihood")
        g += max(float(test.statistic), 0.0)
        degrees += test.dof
    p = float(chi2.sf(g, degrees)) if degrees else 1.0
    a, b, *conditions = columns
    return Independence(a, b, tuple(conditions), g / (2.0 * total * np.log(2.0)), g, degrees, p, total, cut)
