"""Density: how probable rows are, marginal and conditional probabilities, and tests of independence.

A density is a model with one class, and a mixture a model with several unnamed ones. ``AsDensity`` has the methods of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from banbury.model.naive_bayes import Model, estimate, log_sum, select_features
from banbury.reading import Batch, is_texts, read
from banbury.reading.batches import Source
from banbury.reading.columns import Numbers, empty_column
from banbury.scikit_learn import BaseEstimator, DensityMixin, check_is_fitted
from banbury.sums import Keys
from banbury.tally import tally as tallies
from banbury.tally.schema import FamilyOption, Schema
from banbury.tally.table import Table, read_batches
from banbury.tally.tally import Tally

ONE_CLASS = "all"  # the name of the only class
MOST_COMBINATIONS = 1_000_000  # combinations of values in one query
FEW_VALUES = 20  # a column with more distinct numbers is cut into bins before it is tested
MOST_BINS = 6  # bins of such a column
ROWS_DRAWN = 1_000  # rows that are drawn from the model to find out which values are usual
EXAMPLE_EVENT = "a mapping from columns to values, as in {'play': 'yes'}"
EXTREME_LOG = 2.0**17  # where log P(row) is farther from 0, subtracting logarithms would lose digits
MOST_DRAWN_CELLS = 4_000_000  # drawn rows × features × classes
ROWS_PER_CELL = 10  # the number of bins leaves at least so many rows in each cell of the table, on average


class AsDensity(DensityMixin):  # type: ignore[misc]
    """Uses a fitted model as a density: P(row) regardless of the class, and what follows from it."""

    model_: Model

    def score_samples(self, X: Any) -> Real:
        """Returns log P(row) of each row of ``X``, or its log density. It is −∞ only under "mle" and "map"."""
        model = self._model()
        source = self._batches(X)  # rows in batches
        warned = set[str]()  # the kinds of warnings about columns that were given, which every batch would repeat
        batches = read_batches(source, "scoring") if isinstance(source, Source) else source
        return np.concatenate([log_sum(_log_joint(model, *model._align(batch, warned))) for batch in batches])

    def anomaly_scores(self, X: Any) -> Real:
        """Returns −log P(row) of each row of ``X``: the higher, the more unusual."""
        return -self.score_samples(X)

    def sample(self, n: int = 1, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Draws ``n`` rows from the distribution, as a mapping from column to its array. ``model_.sample`` also returns
        the class of each.
        """
        model = self._model()
        drawn_columns = model.sample(n, seed)
        return {name: drawn_columns[name] for name in model.schema.features.inputs}

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
        # A batch of this row alone, and the parameters of its features; without a warning about extra columns.
        batch, parameters = model._align(model._one_row(row), {"extra"})
        # The columns without a value in the row.
        missing_columns = {name for name in batch.names if next(iter(batch.head(name, 1)), None) is None}
        parameters = select_features(parameters, lambda feature: not missing_columns.issuperset(feature.inputs))
        if not parameters:
            raise errors.empty_data(None, "the row has no counted value")
        features = [feature for group in parameters for feature in group.features]
        # Rows to draw, fewer if there are many features and classes.
        n_drawn = int(np.clip(MOST_DRAWN_CELLS // (len(features) * len(model.classes)), 100, ROWS_DRAWN))
        all_columns = self.sample(n_drawn, seed)
        drawn_columns = {name: column for name, column in all_columns.items() if name not in missing_columns}
        [drawn_rows] = read(drawn_columns, kinds=model.schema.kinds)
        drawn_rows = drawn_rows.with_columns(
            {name: empty_column(n_drawn) for name in all_columns if name in missing_columns}
        )
        # log P(row) of each row, and by column log P(value | the other values) of each row; then those of drawn rows.
        log_rows, log_value_given_rest = _condition_on_rest(model, batch, parameters, missing_columns)
        drawn_log_rows, drawn_value_given_rest = _condition_on_rest(model, drawn_rows, parameters, missing_columns)
        evidence = []
        for feature in features:
            for name in _columns(feature, missing_columns):
                # Whether each row (here one) has a value of the feature that was never seen; None: all are seen.
                never_seen = None if feature.columns else model._group(name).never_seen(batch)
                is_seen = never_seen is None or not never_seen[0, 0]
                value = next(iter(batch.head(name, 1)), None) if name in batch.names else "…"
                decibans = float((log_value_given_rest[name][0] - drawn_value_given_rest[name].mean()) * DECIBANS)
                evidence.append(Evidence(name, value, decibans, is_seen))
        evidence.sort(key=lambda value_evidence: value_evidence.decibans)
        return Surprise(float(log_rows[0]), float(drawn_log_rows.mean()), tuple(evidence))

    def log_probability(self, event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> float:
        """Returns log P(event | given); for numbers, the log density.

        An event gives values for some columns and leaves the others open. A list or set of values means any one of
        them, and all of them must have been counted. ``given`` is such an event too.
        """
        errors.require(isinstance(event, Mapping), "event", event, EXAMPLE_EVENT)
        errors.require(isinstance(given or {}, Mapping), "given", given, EXAMPLE_EVENT)
        errors.require(event, "event", event, "a value for at least one column")
        columns = {name: self._column(name) for name in event}
        # The possible values of each column, of which the event has one.
        values = {name: column.list_alternatives(event[name]) for name, column in columns.items()}
        log_probability = float(log_sum(self._condition(values, given or {})[None])[0])
        has_density = any(column.feature.family.has_density() for column in columns.values())
        return log_probability if has_density else min(log_probability, 0.0)

    def probability(self, event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> float:
        """Returns P(event | given), or a density. Both map columns to a value, or to a list or set of values: then it is
        the probability of any one of them.

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

        The columns must be categories or flags, alone or in a joint table. ``given`` has known values of other columns:
        one, or a list or set of which any is possible.

        >>> import banbury as bb
        >>> density = bb.Density(features={("outlook", "play"): bb.Joint()}, how="mle").fit(bb.datasets.play_tennis())
        >>> {value: round(p, 3) for value, p in density.query("play", {"outlook": "sunny"}).items()}
        {'no': 0.6, 'yes': 0.4}
        """
        names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, Sequence) else ()
        errors.require(names and len(set(names)) == len(names), "of", of, "a column, or several different columns")
        errors.require(given is None or isinstance(given, Mapping), "given", given, EXAMPLE_EVENT)
        values = {name: self._column(name).list_values() for name in names}
        log_probabilities = self._condition(values, given or {})
        keys: Iterable[Any] = values[names[0]] if isinstance(of, str) else product(*values.values())
        return dict(zip(keys, np.minimum(np.exp(log_probabilities), 1.0).tolist(), strict=True))

    def _condition(self, queried_values: Mapping[str, Sequence[Any]], evidence_values: Mapping[str, Any]) -> Real:
        """Returns log P(values | given) for every combination of the queried values, which are listed by column, as an
        array (combinations,) in the order of ``itertools.product``. ``evidence_values`` maps columns to a value or to
        several possible values. Raises an error if the evidence is impossible.
        """
        if in_both := [name for name in queried_values if name in evidence_values]:
            raise errors.bad_setting(
                "given", evidence_values, f"about columns outside the query; {in_both[0]!r} is in both"
            )
        columns = {name: self._column(name) for name in (*queried_values, *evidence_values)}
        # By column, the values of which one is known to be the row's.
        evidence = {name: columns[name].list_alternatives(value) for name, value in evidence_values.items()}
        for name, values in {**queried_values, **evidence}.items():
            for value in columns[name].find_uncounted_values(values):
                errors.warn(
                    f"column {name!r} never had the value {value!r}, so the answer comes from smoothing "
                    f"alone, or is 0 without smoothing.{errors.did_you_mean(value, columns[name].keys or ())}"
                )
        if evidence_values and self._log_probability(evidence)[0] == -np.inf:
            shown = errors.listed(f"{name} = {value!r}" for name, value in evidence_values.items())
            raise errors.ImpossibleEvidence(
                f"the evidence has probability 0: no row has {shown}. Smooth with "
                "how='mean', or use different evidence.",
                given=dict(evidence_values),
            )
        # The queried columns, and the columns of their blocks; all others are independent of them given the class.
        dependent_columns = {
            name
            for feature in self._model().schema.features
            if not queried_values.keys().isdisjoint(feature.inputs)
            for name in feature.inputs
        }
        log_prior = self._log_prior_given(
            {name: values for name, values in evidence.items() if name not in dependent_columns}
        )
        evidence = {name: values for name, values in evidence.items() if name in dependent_columns}
        n_combinations = prod(map(len, queried_values.values()))
        return self._log_probability({**queried_values, **evidence}, log_prior, n_combinations) - (
            self._log_probability(evidence, log_prior) if evidence else 0.0
        )

    def _column(self, name: str) -> _QueryColumn:
        """Returns the column ``name`` of a query with the values that were counted; raises an error if it was not
        counted.
        """
        model = self._model()
        for group in model.parameters:
            for position, feature in enumerate(group.features):
                if name in feature.inputs:
                    return _QueryColumn(model.schema, name, feature, group.categories(position, name))
        raise errors.unknown_column(name, model.schema.features.inputs)

    def _marginal(self, columns: Mapping[str, Any]) -> Real:
        """Returns log P(class) + log P(values | class) of rows that have these columns only, a sequence of values each
        (rows × classes); other columns are summed out.
        """
        return _log_joint(self._model(), *self._read_columns(columns))

    def _read_columns(self, columns: Mapping[str, Any]) -> tuple[Batch, list[Parameters]]:
        """Returns a batch of rows with these columns (a sequence of values each) and the other columns of their
        features, which are missing; also returns the parameters of these features. Raises an error for an unknown
        column.
        """
        model = self._model()
        column_names = model.schema.features.inputs
        for name in columns:
            if name not in column_names:
                raise errors.unknown_column(name, column_names)
        parameters = select_features(model.parameters, lambda feature: not columns.keys().isdisjoint(feature.inputs))
        inputs = [name for group in parameters for name in group.features.inputs]
        n_rows = len(next(iter(columns.values())))
        [batch] = read({name: columns.get(name, [None] * n_rows) for name in inputs}, kinds=model.schema.kinds)
        return batch, parameters

    def _log_probability(
        self, values: Mapping[str, Sequence[Any]], log_prior: Real | None = None, n_sums: int = 1
    ) -> Real:
        """Returns log P(values of columns), summed over all combinations of the values: an array with one number, or
        one for each of ``n_sums`` equal parts of the combinations, in their order. ``values`` lists the values of each
        column; ``log_prior`` replaces the log prior of the model.
        """
        model = self._model() if log_prior is None else replace(self._model(), log_prior=log_prior)
        try:
            return log_sum(_log_joint(model, *self._read_columns(_combine(values))).reshape(n_sums, -1))
        except errors.BadValue as bad:
            raise _as_query_error(bad, values) from None

    def _log_prior_given(self, values: Mapping[str, Sequence[Any]]) -> Real:
        """Returns log P(class | values), by class: the prior for columns that are independent of these given the class.
        ``values`` lists the possible values of each column.
        """
        model = self._model()
        log_likelihoods = []  # of each feature: log P(its values | class), by class
        model_without_prior = replace(model, log_prior=np.zeros(len(model.classes)))
        for feature in model.schema.features:
            feature_values = {name: values[name] for name in feature.inputs if name in values}
            if feature_values:
                rows = self._read_columns(_combine(feature_values))  # one for each combination, and the parameters
                log_likelihoods.append(log_sum(_log_joint(model_without_prior, *rows).T))
        return _log_posterior(model.log_prior, np.array([log_likelihoods]))[0] if log_likelihoods else model.log_prior

    def _batches(self, X: Any) -> Iterable[Batch]:
        """Opens the rows ``X`` as batches, read like the rows that were counted."""
        return self._model()._read(X, {})

    def _model(self) -> Model:
        """Returns the fitted model; raises an error if it is not fitted."""
        check_is_fitted(self)
        return self.model_


def _condition_on_rest(
    model: Model, batch: Batch, parameters: Sequence[Parameters], missing_columns: set[str]
) -> tuple[Real, dict[str, Real]]:
    """Returns log P(row) of each row, and by column log P(value | the row's other values), both arrays (rows,).
    ``parameters`` are those of the features to use, and ``missing_columns`` the columns that the row to explain lacks.

    A text counts as one column, and so does a block of occurrences.
    """
    log_likelihoods = _log_likelihoods(model, batch, parameters)  # rows × features × classes
    log_value_given_rest = dict[str, Real]()  # by column, one per row
    # "Rest": the features of a row other than the one in turn. ``log_joint`` arrays are rows × classes.
    log_joint = model.log_prior + log_likelihoods.sum(axis=1)
    all_finite = bool(np.isfinite(log_likelihoods).all())
    log_rows = log_sum(log_joint)  # log P(row)
    extreme_rows = np.flatnonzero(np.abs(log_rows) > EXTREME_LOG)
    parameters_by_feature = [
        group.select([position]) for group in parameters for position in range(len(group.features))
    ]
    for feature_number, feature_parameters in enumerate(parameters_by_feature):
        if all_finite:
            log_joint_of_rest = log_joint - log_likelihoods[:, feature_number]
        else:
            log_joint_of_rest = model.log_prior + np.delete(log_likelihoods, feature_number, axis=1).sum(axis=1)
        log_rest = log_sum(log_joint_of_rest)  # log P(the other features), one per row
        feature = feature_parameters.features[0]
        with np.errstate(invalid="ignore"):
            log_posterior = log_joint_of_rest - log_rest[:, None]  # of the classes given the other features
        log_posterior[extreme_rows] = _log_posterior(
            model.log_prior, np.delete(log_likelihoods[extreme_rows], feature_number, axis=1)
        )
        # log P(feature | the other features), one per row.
        log_feature = log_sum(log_posterior + log_likelihoods[:, feature_number])
        for name in _columns(feature, missing_columns):
            log_other_columns = np.zeros_like(log_feature)  # log P(other columns of the block | other features)
            if name != feature.name:  # the other columns of a block are also given
                batch_without_column = batch.with_columns({name: empty_column(batch.n_rows)})
                # log P(other columns of the block | class): rows × classes.
                log_others = _log_likelihoods(model, batch_without_column, [feature_parameters])[:, 0]
                log_other_columns = log_sum(log_posterior + log_others)
            with np.errstate(invalid="ignore"):
                impossible = np.isneginf(log_rest) | np.isneginf(log_other_columns)
                log_value = np.where(
                    impossible, log_likelihoods[:, feature_number].max(axis=1), log_feature - log_other_columns
                )
            log_value_given_rest[name] = log_value
    return log_rows, log_value_given_rest


def _log_posterior(log_prior: Real, likelihoods: Real) -> Real:
    """Returns log P(class | row) (rows × classes) from ``log_prior``, log P(class) (classes,), and ``likelihoods``, log
    P(value | class) (rows × features × classes). What classes have in common cancels first, so that no digits are lost.
    """
    log_joint = log_prior + likelihoods.sum(axis=1)  # rows × classes
    best = log_joint.argmax(axis=1)  # the number of each row's most probable class
    with np.errstate(invalid="ignore"):
        # The log likelihood of each class less that of the best class, rows × classes.
        relative = (likelihoods - np.take_along_axis(likelihoods, best[:, None, None], axis=2)).sum(axis=1)
        relative = np.where(np.isneginf(log_joint), -np.inf, relative + (log_prior - log_prior[best][:, None]))
        return np.asarray(relative - log_sum(relative)[:, None])


def _log_likelihoods(model: Model, batch: Batch, parameters: Sequence[Parameters]) -> Real:
    """Returns log P(value | class) (rows × features × classes), for the features of ``parameters`` in order. Without
    smoothing, a value that was never seen is impossible.
    """
    log_likelihoods: Real = model._score_features(batch, parameters, "parts")[0]
    # A slice of features, and whether each row has a value of them that was never seen (rows × these features).
    for features, never_seen in _never_seen(model, batch, parameters):
        log_likelihoods[:, features][never_seen] = -np.inf
    return log_likelihoods


def _log_joint(model: Model, batch: Batch, parameters: Sequence[Parameters]) -> Real:
    """Returns log P(class) + log P(row | class) (rows × classes), by the features of ``parameters``. Without smoothing,
    a value that was never seen is impossible.
    """
    log_joint: Real = model._score_features(batch, parameters, "log_joint")[0]
    for _, never_seen in _never_seen(model, batch, parameters):  # rows × some features
        log_joint[never_seen.any(axis=1)] = -np.inf
    return log_joint


def _never_seen(
    model: Model, batch: Batch, parameters: Sequence[Parameters]
) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """Yields for each group of features their positions among all features of ``parameters`` (a slice), and whether
    each row has a value of them that was never seen (rows × features of the group). Yields nothing if the model is
    smoothed.
    """
    first_feature = 0
    for group in parameters if model.choice.how in ("mle", "map") else ():
        features = slice(first_feature, first_feature + len(group.features))
        never_seen = group.never_seen(batch)
        if never_seen is not None:
            yield features, never_seen
        first_feature = features.stop


def _columns(feature: Feature, missing_columns: set[str]) -> list[str]:
    """Returns the names under which a feature's evidence is listed: the columns of a block but the missing ones, or the
    feature itself if it is one column, a text or a block of occurrences.
    """
    lists_columns = not feature.counter.words and (feature.holds_lists or feature.name not in feature.inputs)
    return [name for name in feature.columns if name not in missing_columns] if lists_columns else [feature.name]


@dataclass(frozen=True)
class _QueryColumn:
    """A column of a query: its feature, and the values that were counted if they can be listed."""

    schema: Schema
    name: str
    feature: Feature  # the column itself, or the block that it belongs to
    keys: Keys | None  # the counted values; None if they cannot be listed

    def list_values(self) -> list[Any]:
        """Returns all values of the column; raises an error if they cannot be listed."""
        if self.keys is None:
            expected = "columns with a list of values: categories, flags and joint tables"
            advice = f"ask for probability({{{self.name!r}: ...}})"
            raise errors.bad_setting(
                "of", f"{self.name!r} of family {self.feature.family.name!r}", f"{expected}; {advice}"
            )
        return list(self.keys)

    def list_alternatives(self, value_or_values: Any) -> list[Any]:
        """Returns the values of which the column has one: those of a list or set, each once, or the single value.
        Raises an error if several values are not valid, were never counted, or have probabilities without a meaningful
        sum.
        """
        is_list = isinstance(value_or_values, (list, tuple, set, frozenset, np.ndarray))
        if not is_list or (self.feature.holds_lists and not any(map(np.ndim, value_or_values))):
            return [value_or_values]
        self._check_sum(value_or_values)
        values = value_or_values.tolist() if isinstance(value_or_values, np.ndarray) else list(value_or_values)
        scalar_types = (bool, int, float, str, np.generic)
        has_missing_key = None in (self.keys or ())
        are_scalars = all(isinstance(value, scalar_types) or (value is None and has_missing_key) for value in values)
        if not values or not are_scalars or any(value != value for value in values):
            raise errors.bad_setting(
                f"the values of {self.name!r}", value_or_values, "at least one, each a text, a number or a boolean"
            )
        for value in self.find_uncounted_values(values):
            raise errors.value_never_seen(value, self.name, self.keys or ())
        return list(dict(zip(self._meaning(values), values, strict=True)).values())

    def _check_sum(self, values: Any) -> None:
        """Raises an error if the probabilities of several values of this column have no meaningful sum."""
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

    def find_uncounted_values(self, values: Sequence[Any]) -> list[Any]:
        """Returns those of these values that no counted row had; none if values cannot be listed. The meaning of a value
        is the value as the column counts it: 1 and "1" can be the same.
        """
        if self.keys is None:
            return []
        counted_meanings = {*self._meaning(self.keys), None}
        values_and_meanings = zip(values, self._meaning(values), strict=True)
        return [value for value, meaning in values_and_meanings if meaning not in counted_meanings]

    def _meaning(self, values: Sequence[Any]) -> list[Any]:
        """Returns the values as the column counts them, None if missing. 1 and "1" can be the same value."""
        try:
            [batch] = read({self.name: values}, kinds=self.schema.kinds)
            # Of a joint table, the feature of this column alone.
            column = next(
                (member for member in columns_of_table(self.feature) if member.name == self.name), self.feature
            )
            # A code for each value, −1 if missing, and the values that codes stand for; None unless it is counted so.
            codes = column.family.keys_of(batch, column, strict=False)
            if codes is None or column.family.has_density():
                return list(batch.numbers([self.name])[0].reshape(-1))
            return [None if number < 0 else codes.values[number] for number in codes.codes.tolist()]
        except errors.BadValue as bad:
            raise _as_query_error(bad, {self.name: values}) from None


def _as_query_error(bad: errors.BadValue, values: Mapping[str, Sequence[Any]]) -> errors.BadValue:
    """Turns ``bad``, an error about a value in a row, into one about a value in a query. ``values``: those of the query
    by column.
    """
    column: Any = getattr(bad, "column", None)  # its name
    value = getattr(bad, "value", values.get(column))
    expected_by_kind = {  # by what is wrong with the value
        "not 0 or 1": "0 or 1",
        "not a count": "a whole number of at least 0",
        "negative": "a number of at least 0",
    }
    expected = expected_by_kind.get(getattr(bad, "what", ""), getattr(bad, "wanted", "a finite number"))
    return errors.BadValue(
        f"column {column!r} cannot be {value!r}: {expected} is needed. Use values like those in the "
        "training data, or a list of them for any of several values.",
        column=column,
        value=value,
    )


def _combine(alternatives: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Returns rows with every combination of the columns' values, as a mapping of columns; the values of the last
    column change fastest. ``alternatives``: the values of each column. Raises an error if there are too many
    combinations.
    """
    n_combinations = prod(map(len, alternatives.values()))
    errors.require(
        n_combinations <= MOST_COMBINATIONS,
        "query and given",
        f"{n_combinations:,} combinations of values",
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
        features: FamilyOption = "auto",
        how: str = "mean",
        alpha: float = 1.0,
        missing: str = "skip",
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        """Stores the settings, as scikit-learn wants it; ``fit`` checks them. ``features``: the families; ``how``, ``alpha``
        and ``seed``: those of ``bb.estimate``; ``missing``: "category" makes a missing value a category.
        """
        self.features = features
        self.how = how
        self.alpha = alpha
        self.missing = missing
        self.threads = threads
        self.seed = seed

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Density:
        """Counts the rows ``X``, weighted by ``sample_weight`` if given. ``y`` is ignored; it is accepted for pipelines."""
        tally = count_as_one_class(X, self.features, sample_weight, self.missing, self.threads)
        self._keep(estimate(tally, how=self.how, alpha=self.alpha, seed=self.seed))  # type: ignore[arg-type]
        return self

    def _keep(self, model: Model) -> None:
        """Stores a model, with the attributes that scikit-learn expects of a fitted estimator."""
        names = model.schema.columns
        learned: dict[str, Any] = {"tally_": model.tally, "model_": model, "n_features_in_": len(names)}
        if model.schema.named:
            learned["feature_names_in_"] = np.array(names, dtype=object)
        # All other attributes, with what an earlier fit has learned.
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
        model = model.weighed(None)  # weights separate classes, and a density has none
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
        """Returns scikit-learn's tags of the estimator, which say what inputs it accepts."""
        tags = super().__sklearn_tags__()
        inputs = tags.input_tags
        inputs.allow_nan = inputs.string = inputs.categorical = inputs.sparse = True
        return tags


def count_as_one_class(
    data: Any, features: FamilyOption = "auto", weights: Any = None, missing: str = "skip", threads: int | None = None
) -> Tally:
    """Returns the tally of a table whose rows are all of one class. ``features`` has the families that the user asks for,
    and ``missing="category"`` makes a missing value a category. ``weights`` is one number per row, or one for all rows.
    Raises an error if the weights are not valid or leave no row.
    """
    row_weights = None if weights is None else np.asarray(weights)
    weight_of_all = 1.0  # of every row
    if row_weights is not None:
        is_valid = row_weights.dtype.kind in "biuf" and row_weights.ndim <= 1
        errors.require(is_valid, "sample_weight", row_weights, "one number per row, or one number for all rows")
        if not row_weights.ndim:
            weight_of_all = float(row_weights)
            row_weights = None
    shape: tuple[int, ...] = getattr(data, "shape", ())
    if len(shape) == 2 and shape[0] and not shape[1]:
        raise errors.EmptyData(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    table = {"text": list(data)} if is_texts(data) else data
    settings = {"features": features, "weights": row_weights, "missing": missing, "threads": threads, "trees": "none"}
    tally = tallies.count_table(Table.of(table, classes=[ONE_CLASS], **settings))
    tally = tally if weight_of_all == 1.0 else tally * weight_of_all  # multiplies all counts
    if not tally.classes:
        raise errors.empty_data(None, "every row has a weight of zero")
    return tally


def n_parameters(model: Model) -> int:
    """Returns the number of free parameters, including the class prior unless it was given."""
    estimates_prior = model.class_prior is None or isinstance(model.class_prior, (int, float))  # number: a pseudo-count
    return model.tally.n_parameters() - (0 if estimates_prior else len(model.classes) - 1)


# Independence --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Independence:
    """The result of a test of (conditional) independence: how much two columns depend on each other, and the p-value."""

    a: str
    b: str
    given: tuple[str, ...]  # the columns that are the conditions
    mutual_information: float  # in bits
    statistic: float  # G
    degrees: int  # of freedom
    p_value: float
    n_rows: float  # with a value in all columns
    bins: Mapping[str, int]  # the number of bins of each column of numbers that was cut

    def __str__(self) -> str:
        """Returns the result as one line: the columns, what they depend on each other, and the test."""
        tested = f"{self.a} and {self.b}" + (f" given {', '.join(self.given)}" if self.given else "")
        cuts = "".join(f"; {name} cut into {many(n_bins, 'bin')}" for name, n_bins in self.bins.items())
        test = f"G = {self.statistic:.4g} on {many(self.degrees, 'degree')} of freedom, p = {self.p_value:.3g}"
        return f"{tested}: {self.mutual_information:.4f} bits, {test} ({self.n_rows:,.6g} rows{cuts})"

    __repr__ = __str__


def independence(
    data: Any, a: str, b: str, given: Sequence[str] | str | None = None, *, bins: int | None = None
) -> Independence:
    """Tests whether two columns are independent (given others), by the G-test on their table of counts. ``a``, ``b`` and
    ``given`` are names of columns.

    Numeric columns with more than 20 distinct values are cut into ``bins`` of about equal size. Unless given, the
    number of bins (from 2 to 6) leaves ten rows in each cell of the table on average.

    >>> import banbury as bb
    >>> bb.independence(bb.datasets.play_tennis(), "outlook", "play")
    outlook and play: 0.2467 bits, G = 4.789 on 2 degrees of freedom, p = 0.0912 (14 rows)
    """
    for name, column in (("a", a), ("b", b)):
        errors.require(isinstance(column, str), name, column, "the name of a column")
    is_several = isinstance(given, Iterable) and not isinstance(given, str)
    conditions: tuple[Any, ...] = () if given is None else tuple(given) if is_several else (given,)
    are_names = all(isinstance(column, str) for column in conditions)
    errors.require(are_names, "given", given, "the name of a column, a list of such names, or None")
    columns = (a, b, *conditions)
    errors.require(len(set(columns)) == len(columns), "given", given, "columns other than these two, each once")
    if bins is not None:
        errors.check_whole("bins", bins, 2)
    batches_with_rows = [batch for batch in read(data) if batch.n_rows]
    n_batches = len(batches_with_rows)
    errors.require(n_batches == 1, "data", f"{n_batches} batches of rows", "one table in memory")
    batch, n_bins = bin_numbers(batches_with_rows[0], columns, bins)
    left_out = {name: None for name in batch.names if name not in columns}  # None: not counted
    [(_, _, sums)] = count_as_one_class(batch, {columns: "joint", **left_out}).groups
    keys, cells = sums.feature(0)  # tuples of values of the columns, and the rows that have them (keys × 1)
    return _g_test(columns, keys, cells.value[:, 0], n_bins)


def bin_numbers(batch: Batch, columns: Sequence[str], bins: int | None) -> tuple[Batch, dict[str, int]]:
    """Cuts those of the columns that have more than ``FEW_VALUES`` distinct numbers into ``bins`` bins of about equal
    size; None chooses how many. Returns the batch, in which these columns have the number of each row's bin (NaN if
    missing), and how many bins each of them has.
    """
    numbers_to_cut = dict[str, Real]()  # by column, one number per row
    n_cells = 1  # of the table of all other columns
    for name in columns:
        is_numeric = batch.kind(name) in ("integer", "float") and not batch.categorical(name)
        numbers = batch.numbers([name])[0].reshape(-1).astype(np.float64) if is_numeric else None
        n_values = len(batch.codes(name).values) if numbers is None else len(np.unique(numbers[~np.isnan(numbers)]))
        if numbers is not None and n_values > FEW_VALUES:
            numbers_to_cut[name] = numbers
        else:
            n_cells *= max(n_values, 1)
    if bins is None and numbers_to_cut:
        bins_per_column = (batch.n_rows / ROWS_PER_CELL / n_cells) ** (1.0 / len(numbers_to_cut))
        bins = int(np.clip(bins_per_column, 2, MOST_BINS))
    bin_columns = dict[str, Numbers]()  # by name
    n_bins = dict[str, int]()  # by name
    for name, numbers in numbers_to_cut.items():
        is_present = ~np.isnan(numbers)
        # Of each number that is present, its index among the distinct values; and how many rows have each of these.
        _, value_number, rows_of_value = np.unique(numbers[is_present], return_inverse=True, return_counts=True)
        # Consecutive values are grouped, so that groups have about as many rows.
        group_of_value = equal_groups(rows_of_value[:, None].astype(np.float64), np.array([bins]))[:, 0]
        # The groups that have a value, and for each value the index of its group among them.
        occupied_groups, bin_of_value = np.unique(group_of_value, return_inverse=True)
        bin_of_row = np.full(len(numbers), np.nan)
        bin_of_row[is_present] = bin_of_value[value_number]
        bin_columns[name] = Numbers(bin_of_row)
        n_bins[name] = len(occupied_groups)
    return batch.with_columns(bin_columns), n_bins


def _g_test(columns: tuple[str, ...], keys: Sequence[Any], n: Real, cut: Mapping[str, int]) -> Independence:
    """Tests the independence of two columns by the G statistic, summed over the values of the conditions. Raises an
    error if no row has all values.

    Args:
        columns: The two columns, followed by the conditions.
        keys: The values of these columns in each cell of their table, a tuple each.
        n: The number of rows in each cell.
        cut: The number of bins of each column of numbers that was cut.
    """
    from scipy.stats import chi2
    from scipy.stats.contingency import chi2_contingency

    total = float(n.sum())
    g_statistic = 0.0
    degrees = 0  # of freedom
    if not total > 0:
        raise errors.empty_data(None, f"no row has values in all of {errors.listed(map(repr, columns))}")
    # For each combination of the conditions' values: the number of rows of each pair of values.
    tables = dict[Any, dict[Any, float]]()
    for (a_value, b_value, *condition_values), n_rows in zip(keys, n.tolist(), strict=True):
        tables.setdefault(tuple(condition_values), {})[a_value, b_value] = n_rows
    for cells in tables.values():
        a_values, b_values = (dict.fromkeys(values) for values in zip(*cells, strict=True))
        # Rows by value of the first and of the second column.
        table = np.array([[cells.get((a_value, b_value), 0.0) for b_value in b_values] for a_value in a_values])
        test = chi2_contingency(table, correction=False, lambda_="log-likelihood")
        g_statistic += max(float(test.statistic), 0.0)
        degrees += test.dof
    p_value = float(chi2.sf(g_statistic, degrees)) if degrees else 1.0
    a, b, *conditions = columns
    return Independence(
        a,
        b,
        tuple(conditions),
        mutual_information=g_statistic / (2.0 * total * np.log(2.0)),
        statistic=g_statistic,
        degrees=degrees,
        p_value=p_value,
        n_rows=total,
        bins=cut,
    )
