"""Model: a class prior times families, derived from a tally; it predicts, explains and samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Real
from banbury.errors import many
from banbury.families.bags.parameters import check_rows, log_orders, lost_words, texts_and_unknown_words
from banbury.families.dirichlet import log
from banbury.families.family import HOWS, Choice, Feature, Features, How, Kind, Parameters, bad_value, check_positive
from banbury.families.kernel_density import bandwidths_of
from banbury.families.keys import number_values
from banbury.model.evidence_table import EvidenceTable, evidence_table
from banbury.model.explain import Explanation, Informative, informative, make_explanation
from banbury.model.explain.explanation import is_left_out
from banbury.notebooks import Displayed, NotebookTable
from banbury.reading import Batch, ParserWork, Source, n_threads, read, read_row
from banbury.reading.columns import Codes, empty_column
from banbury.sums import sort_keys
from banbury.tally.partitioned import or_in_partitions
from banbury.tally.schema import Schema
from banbury.tally.table import align_names, class_number, open_source, read_batches
from banbury.tally.tally import Label, Tally, count, count_rows
from banbury.threads import LimitThreads, look_up

MOST_SAMPLED = 10**10  # rows
UNUSED_GENERATOR = np.random.default_rng(0)  # only "gibbs" draws, and making one takes longer than most estimates
ClassPrior = Literal["uniform"] | float | Sequence[float] | Mapping[Any, float] | None


def estimate(
    tally: Tally,
    *,
    how: How = "mean",
    alpha: float = 1.0,
    class_prior: ClassPrior = None,
    features: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Model:
    """Estimates a model from a tally. This takes milliseconds and never reads the data again.

    Args:
        tally: What was counted, by ``bb.count``.
        how: The estimator: "mle" (maximum likelihood, where a count of zero stays a probability of zero), "map" (the
            mode of the posterior), "mean" (its mean; with ``alpha=1`` this is add-one smoothing), "predictive" (the
            parameters are integrated out) or "gibbs" (the parameters are drawn once, with ``seed``).
        alpha: The pseudo-count of the Dirichlet prior for families that have no prior of their own. Zero is treated as
            1e-10.
        class_prior: None for the class frequencies, "uniform", a probability for each class, or a number α for (n + α)
            / (N + αC).
        features: Other priors for some columns, as a mapping from column to family.
        seed: The seed for "gibbs".

    >>> import banbury as bb
    >>> tally = bb.count(bb.datasets.play_tennis(), target="play")
    >>> row = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    >>> bb.estimate(tally, how="mle").posterior(row).round(3).tolist()
    [[0.795, 0.205]]
    """
    errors.require(isinstance(tally, Tally), "the tally", type(tally).__name__, "a Tally, from bb.count")
    if features is not None and not isinstance(features, Mapping):
        raise errors.bad_setting("features", features, "a mapping from column to family")
    expected = "one class per row; for sets of labels use bb.LabelModel.of(tally)"
    errors.require(tally.schema.labels is None, "the tally", "a tally of label sets", expected)
    choice = choice_of(how, alpha, seed)
    tally = replace(tally, schema=tally.schema._with_families(features)) if features else tally
    return model_under(tally, choice, class_prior)


def is_auto(setting: Any) -> bool:
    """Whether a setting is the word "auto"."""
    return isinstance(setting, str) and setting == "auto"


def choice_of(how: Any, alpha: Any, seed: Any, waits: bool = False) -> Choice:
    """Checks an estimator (``how``), a prior's pseudo-count (``alpha``) and a seed, and returns them as a ``Choice``.
    Raises an error if one is not valid. ``waits``: whether weights of words are computed only when they are needed.
    """
    if not isinstance(how, str) or how not in HOWS:
        raise errors.unknown_choice("how", how, HOWS)
    check_positive("alpha", alpha, zero=True)
    check_seed(seed)
    return Choice(how, float(alpha), int(seed), waits=waits)


def model_under(tally: Tally, choice: Choice, class_prior: ClassPrior) -> Model:
    """Estimates the model of a tally with the estimator, pseudo-count and seed of ``choice``, and the user's class prior.
    ``tally.groups`` has for each group of features of one family: the family, the features and their sums. Raises an
    error if the tally has no classes.
    """
    if not tally.classes:
        raise errors.empty_data(None, "the tally has no classes, so there is nothing to predict")
    rng = np.random.default_rng(choice.seed) if choice.how == "gibbs" else UNUSED_GENERATOR
    log_prior = class_log_prior(class_prior, tally)
    parameters = tuple(family.estimate(columns, sums, choice, rng) for family, columns, sums in tally.groups)
    return Model(tally, choice, class_prior, log_prior, parameters)


def complete_model(tally: Tally, choice: Choice, class_prior: ClassPrior) -> Model:
    """Returns the model of a tally, estimated as ``choice`` and ``class_prior`` say, with the weights of all words
    computed at once.
    """
    return model_under(tally, replace(choice, waits=False), class_prior)


class Calibrates(Protocol):
    """Turns log posteriors into calibrated posteriors; ``bb.calibrate`` returns one."""

    @property
    def n_classes(self) -> int:
        """The number of classes that it was learned for."""

    @property
    def keeps_order(self) -> bool:
        """Whether the most probable class of a row stays the same."""

    @property
    def scale(self) -> float:
        """The factor by which it multiplies all evidence."""

    @property
    def only_scales(self) -> bool:
        """Whether it does nothing but multiply the evidence by ``scale``."""

    def apply(self, log_posteriors: Any) -> Real:
        """Returns calibrated posteriors from log posteriors (rows × classes each)."""

    def rules(self) -> dict[str, Any]:
        """Returns its columns in the table of calibration of an ``EvidenceTable``."""

    def log_apply(self, log_posteriors: Any) -> Real:
        """Returns calibrated log posteriors from log posteriors (rows × classes each)."""


class Weighs(Protocol):
    """Weighs the evidence of a model's columns; ``bb.weigh`` returns one."""

    def is_stale(self, tally: Tally) -> bool:
        """Whether the tally has learned or forgotten rows since the weights were learned."""

    def log_prior(self, log_prior: Real, tally: Tally) -> Real:
        """Returns the log prior of a weighed model (classes,), given that of the plain one."""

    def parameters(self, model: Model) -> tuple[Parameters, ...]:
        """Returns the weighed parameters of a plain model, by group of features."""

    def _without_forgotten(self, tally: Tally) -> Weighs:
        """Returns the same weights without those of classes, values and words that no row of the tally has any more."""


def check_calibration(calibration: Any, n_classes: int) -> None:
    """Raises an error unless the calibration is None or has the given number of classes."""
    if calibration is not None and not hasattr(calibration, "log_apply"):
        raise errors.bad_setting("calibration", calibration, "a calibration from bb.calibrate, or None")
    if calibration is not None and calibration.n_classes != n_classes:
        expected = f"a calibration for the model's {n_classes} classes"
        raise errors.bad_setting("calibration", f"a calibration for {calibration.n_classes} classes", expected)


class LinearForm(NamedTuple):
    """The weights of a text model: class scores are ``intercepts + counts @ weights``."""

    words: list[str]
    weights: Real  # (words, classes)
    intercepts: Real  # (classes,)

    def __repr__(self) -> str:
        return f"LinearForm of {len(self.words):,} words and {len(self.intercepts):,} classes"


@dataclass(frozen=True, eq=False, repr=False)
class Model(Displayed):
    """A classifier: parameters estimated from a tally, which predict, explain and sample."""

    kind: ClassVar[str] = "model"

    tally: Tally
    choice: Choice  # the estimator, and the prior of families that have none of their own
    class_prior: ClassPrior  # as the user gave it
    log_prior: Real  # by class; with weighed evidence, plus the intercepts
    parameters: tuple[Parameters, ...]  # one for each group of features of the same family
    threads: int | None = None
    calibration: Calibrates | None = None  # corrects posteriors
    weighing: Weighs | None = None  # the weights of the evidence

    def __reduce__(self) -> Any:
        """Pickles a model as its tally and settings, the arguments of ``_unpack_model``, which estimates it again."""
        settings = self.tally, self.choice, self.class_prior, self.threads, self.calibration, self.weighing
        return _unpack_model, settings

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes, in order."""
        return self.tally.classes

    @property
    def _names(self) -> tuple[Label, ...]:
        """The classes; a model of labels has the labels here."""
        return self.classes

    def _reading_model(self) -> Model:
        """Returns the model that reads and scores the rows to be answered: this one."""
        return self

    def _prepare(self) -> None:
        """Computes in advance what the first prediction would compute: nothing for this kind of model."""

    def _records(self, posterior: Real, unsure: float | None = None) -> list[dict[str, Any]]:
        """Returns one record for each row of posteriors (rows × classes): a dict of the most probable "class" and its
        "probability". The class is None where this is below ``unsure``, if that is given.
        """
        classes_and_probabilities = zip(posterior.argmax(axis=1).tolist(), posterior.max(axis=1).tolist(), strict=True)
        return [
            {
                "class": self.classes[best_class] if unsure is None or probability >= unsure else None,
                "probability": probability,
            }
            for best_class, probability in classes_and_probabilities
        ]

    @property
    def schema(self) -> Schema:
        """The features that were counted."""
        return self.tally.schema

    @property
    def target(self) -> str | None:
        """The name of the target column, or None if the labels were passed as an array."""
        return self.schema.target

    @property
    def _target_kind(self) -> Kind | None:
        """The type of the target column."""
        return self.schema.target_kind

    @property
    def n_rows(self) -> float:
        """The number of rows counted, or the sum of their weights."""
        return self.tally.n_rows

    def has_counted(self, data: Any, target: Any = None, **reading: Any) -> bool:
        """Whether the model was counted from exactly these rows. The rows are counted to find out; the arguments are
        those of ``bb.count``.

        >>> import banbury as bb
        >>> weather = bb.datasets.play_tennis()
        >>> model = bb.estimate(bb.count(weather, target="play"))
        >>> model.has_counted(weather), model.has_counted({name: column[1:] for name, column in weather.items()})
        (True, False)
        """
        target = self.target if target is None else target
        return same_rows(lambda: count(data, target, schema=self.schema, **reading) == self.tally)

    @cached_property
    def _class_array(self) -> NDArray[Any]:
        """The classes as an array; of objects if they differ in type."""
        types = {type(name) for name in self.classes}
        return np.array(self.classes, dtype=object if len(types) > 1 else None)

    def with_class_prior(self, class_prior: ClassPrior) -> Model:
        """Returns the same model with another class prior: "uniform", a probability per class, or None for the class
        frequencies.

        The new model is not calibrated, because a calibration depends on the class prior it was learned with.
        """
        log_prior = class_log_prior(class_prior, self.tally)
        if self.weighing is not None:
            log_prior = self.weighing.log_prior(log_prior, self.tally)
        return replace(self, class_prior=class_prior, log_prior=log_prior, calibration=None)

    def weighed(self, weighing: Weighs | None) -> Model:
        """Returns the same model with weighed evidence, or without if ``weighing`` is None. Corrections for values that
        no row has are dropped.
        """
        if weighing is None and self.weighing is None:
            return self
        unweighed = self if self.weighing is None else complete_model(self.tally, self.choice, self.class_prior)
        if weighing is None:
            return replace(unweighed, threads=self.threads)
        weighing = weighing._without_forgotten(self.tally)
        log_prior = weighing.log_prior(unweighed.log_prior, self.tally)
        return replace(unweighed, weighing=weighing, log_prior=log_prior, parameters=weighing.parameters(unweighed))

    def calibrated(self, calibration: Calibrates | None) -> Model:
        """Returns the same model with this calibration, or uncalibrated if it is None."""
        check_calibration(calibration, len(self.classes))
        return replace(self, calibration=calibration)

    # Answers

    @or_in_partitions
    def predict(self, rows: Any, *, costs: Any = None, unsure: float | None = None, **reading: Any) -> NDArray[Any]:
        """Returns the most probable class of each row.

        Args:
            rows: The rows, in any form that ``bb.count`` reads. A Dask dataframe or bag returns a lazy one: the same
                rows with an additional column "class".
            costs: The cost of each mistake, as a matrix (true class × predicted class) or as {true: {predicted: cost}}.
                Mistakes that are not listed cost 1, correct answers 0. With costs, the class with the lowest expected
                cost is returned.
            unsure: A probability. Rows whose predicted class is less probable get None.
            **reading: Options for reading files, as in ``bb.count``.
        """
        if costs is None and unsure is None:
            return look_up(
                self._class_array, self._best(self._score_all(rows, self._scores_for_class, reading)), self.threads
            )
        if unsure is not None and not (isinstance(unsure, (int, float, np.number)) and 0 <= unsure <= 1):
            raise errors.bad_setting("unsure", unsure, "a probability from 0 to 1")
        costs_by_class = None if costs is None else cost_matrix(costs, self.classes)
        posterior = self.posterior(rows, **reading)
        best_classes = (  # their numbers
            posterior.argmax(axis=1) if costs_by_class is None else (posterior @ costs_by_class).argmin(axis=1)
        )
        predictions: NDArray[Any] = self._class_array[best_classes]
        if unsure is not None:
            predictions = predictions.astype(object)
            predictions[posterior[np.arange(len(best_classes)), best_classes] < unsure] = None
        return predictions

    @or_in_partitions
    def posterior(self, rows: Any, **reading: Any) -> Real:
        """Returns P(class | row) as an array (rows × classes), in the order of ``classes``; for a Dask dataframe, as
        additional columns. ``rows`` are read as by ``bb.count``, with its options for ``reading``.
        """
        if self.calibration is None:
            return self._score_all(rows, "posterior", reading)
        return self.calibration.apply(self._score_all(rows, "log_posterior", reading))

    def log_posterior(self, rows: Any, **reading: Any) -> Real:
        """Returns log P(class | row) as an array (rows × classes), calibrated if the model is. ``rows`` are read as by
        ``bb.count``, with its options for ``reading``.
        """
        scores = self._score_all(rows, "log_posterior", reading)
        return scores if self.calibration is None else self.calibration.log_apply(scores)

    def log_joint(self, rows: Any, **reading: Any) -> Real:
        """Returns log P(class) + log P(row | class) as an array (rows × classes). It is −∞ only under "mle" and "map".
        ``rows`` are read as by ``bb.count``, with its options for ``reading``.
        """
        return self._score_all(rows, "log_joint", reading)

    def stream(self, rows: Any, **reading: Any) -> Iterator[tuple[Batch, Real]]:
        """Yields batches of rows together with their posteriors (rows × classes). Only one batch is in memory at a
        time, however long the table is. ``rows`` are read as by ``bb.count``, with its options for ``reading``.

        >>> import banbury as bb
        >>> weather = bb.datasets.play_tennis()
        >>> model = bb.estimate(bb.count(weather, target="play"))
        >>> [(batch.n_rows, posterior.shape) for batch, posterior in model.stream(weather)]
        [(14, (14, 2))]
        """
        want = "posterior" if self.calibration is None else "log_posterior"  # the name of the scores
        source = rows if isinstance(rows, Source) else self._read(rows, reading)
        for batch, scores, n_impossible in self._batches(source, want):
            self._warn_impossible(n_impossible, want)
            yield batch, scores if self.calibration is None else self.calibration.apply(scores)

    def _batches(self, source: Source, want: str) -> Iterator[tuple[Batch, NDArray[Any], int]]:
        """Yields each batch of ``source`` with the scores that ``want`` names, such as "posterior" (rows × classes), and
        the number of its rows that are impossible in every class.
        """
        warned = set[str]()  # the kinds of warnings about columns that were given, which every batch would repeat

        def score(batch: Batch) -> tuple[NDArray[Any], int]:
            """Returns the scores of a batch and the number of its impossible rows."""
            return self._score_features(*self._align(batch, warned, source.target), want)

        parser_work = ParserWork(self.threads, score)
        for batch in read_batches(source, "scoring", parser_work):  # the parser's threads may have scored the batch
            yield batch, *(parser_work.result(batch) or score(batch))

    @or_in_partitions
    def explain(self, row: Any, against: Any = None, *, held_out: bool = False, label: Any = None) -> Explanation:
        """Explains the prediction for one row: the weight of every piece of evidence, in decibans.

        Args:
            row: The row to explain. A Dask dataframe or bag returns a lazy one: for each row the predicted class, the
                class it is compared with, and the decibans of the prior and of each column, which add up to the column
                "decibans".
            against: The class to compare the prediction with: the runner-up unless given.
            held_out: Explains a row of the training data as if it had not been counted: the row is subtracted first,
                with its class. Weights of evidence and a calibration are kept as they were learned.
            label: The class of a row that is held out, unless the row has a target column.

        >>> import banbury as bb
        >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
        >>> model.explain({"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"})
        'no' 72.0% against 'yes' 28.0%, in decibans:
          prior                     -2.55  ---
          outlook      = sunny      +3.01  +++
          humidity     = high       +2.93  +++
          wind         = strong     +1.96  ++
          temperature  = cool       -1.25  -
          sum                       +4.10
        """
        if len(self.classes) < 2:
            raise errors.BadSetting(
                f"an explanation compares two classes, but the model has only {self.classes[0]!r}. To see what is unusual about "
                "a row, use bb.Density.from_model(model).surprise(row).",
                setting="model",
                value=self.classes,
            )
        if held_out:
            return self._explain_left_out(self._one_row(row), against, label)
        # A batch of this row alone, and the parameters of the features that it has.
        batch, parameters = self._align(self._one_row(row), set())
        # The number of the best class, arrays by class, and log likelihoods (features × classes).
        best_class, posterior, log_posterior, log_likelihoods = self._score_row(batch, parameters)
        # The numbers of the predicted class, which a calibration may change, and of the class to compare it with.
        winner, other = self._classes_to_compare(best_class, log_posterior, against)
        texts, unknown_words = texts_and_unknown_words(parameters, batch)  # texts: of the row, by column
        explanation = make_explanation(
            self.classes,
            self.log_prior,
            self._terms(batch, parameters, log_likelihoods),
            posterior,
            winner,
            other,
            scale=1.0 if self.calibration is None else self.calibration.scale,
        )
        explanation = replace(
            explanation, unknown=tuple(unknown_words), texts=texts, stale=self._stale, target=self.target
        )
        if self.calibration is None:
            return explanation
        log_posteriors = log_posterior[None]
        posterior = self.calibration.apply(log_posteriors)[0]
        log_posterior = self.calibration.log_apply(log_posteriors)[0]
        return explanation.calibrate(posterior[[winner, other]], log_posterior[[winner, other]])

    def _explain_left_out(self, batch: Batch, against: Any, label: Any) -> Explanation:
        """Explains a row of the training data (``batch`` has this row alone) by the model of all other rows.
        ``against`` is the class to compare with, None for the runner-up; ``label`` is the row's class, None if the row
        has a target column. ``remarks`` are sentences of the explanation.
        """
        row_label = self._label_of_counted_row(batch, label)
        remarks = [is_left_out(row_label, self.target)]
        remarks += ["the weights of evidence were learned with it and do not change"] * (self.weighing is not None)
        explanation = self._leave_row_out(batch, row_label).explain(batch, against)
        return replace(explanation, held_out=True, stale=self._stale, remarks=tuple(remarks))

    def _classes_to_compare(self, best: int, log_posterior: Real, against: Any) -> tuple[int, int]:
        """Returns the number of a row's predicted class, and of the class it is compared with.

        Args:
            best: The number of the class with the highest score before calibration.
            log_posterior: The row's log posterior before calibration, by class.
            against: The name of the class to compare with; None for the runner-up.
        """
        posterior = log_posterior if self.calibration is None else self.calibration.apply(log_posterior[None])[0]
        winner = best if self._scores_for_class == "class" else int(posterior.argmax())
        other = winner if against is None else class_number(against, self.classes)
        if other == winner:  # many calibrated posteriors may be 0; the uncalibrated ones break ties
            ranked = np.lexsort((-log_posterior, -posterior)).tolist()
            other = next(number for number in ranked if number != winner)
        return winner, other

    def _terms(self, batch: Batch, parameters: Sequence[Parameters], likelihoods: Real) -> list[Any]:
        """Returns the evidence of each feature (or word) of the one row in ``batch``, in the order of the schema.
        ``likelihoods`` has log-likelihoods, features × classes, in the order of ``parameters``.
        """
        terms = []
        start = 0  # the first line of ``likelihoods`` of the group
        for group in parameters:
            stop = start + len(group.features)
            terms += group.terms(batch, likelihoods[start:stop])
            start = stop
        if tuple([term.feature for term in terms]) != self.schema.features.names:
            feature_number_of_column = {
                name: number for number, feature in enumerate(self.schema.features) for name in feature.inputs
            }
            terms.sort(key=lambda term: feature_number_of_column.get(term.feature, len(feature_number_of_column)))
        return terms

    def between(self, one: Label, other: Label) -> Model:
        """Returns the same model with the prior of all classes but ``one`` and ``other`` set to 0, so that the odds of
        these two do not change. The new model is not calibrated.
        """
        class_shares = self._class_shares
        class_numbers = [class_number(name, self.classes) for name in (one, other)]
        prior_of_two = np.zeros(len(class_shares))
        prior_of_two[class_numbers] = class_shares[class_numbers] / class_shares[class_numbers].sum()
        return self.with_class_prior(prior_of_two.tolist())

    @property
    def _class_shares(self) -> Real:
        """P(class) under the class prior, by class. (``log_prior`` also includes the intercepts of a weighed model.)"""
        return np.exp(class_log_prior(self.class_prior, self.tally))

    @property
    def _stale(self) -> bool:
        """Whether rows were learned or forgotten since the evidence was weighed."""
        return self.weighing is not None and self.weighing.is_stale(self.tally)

    def _label_of_counted_row(self, batch: Batch, label: Any) -> Label:
        """Returns the class of a counted row, from ``label``, or if that is None from the target column of ``batch``,
        which has this row alone. Raises an error if neither has it.
        """
        if label is None and self.target is not None and self.target in batch.names:
            class_numbers, class_names = number_values(batch.codes(self.target, self._target_kind), threads=1)
            label = class_names[class_numbers[0]] if class_numbers[0] >= 0 else None  # −1: missing
        if label is None:
            alternative = "" if self.target is None else f", or include it in the row as column {self.target!r}"
            raise errors.BadSetting(
                f"the row's class is needed to leave the row out. Pass label=...{alternative}.",
                setting="label",
                value=None,
            )
        return self.classes[class_number(label, self.classes)]

    def _leave_row_out(self, batch: Batch, label: Label, weight: float = 1.0) -> Model:
        """Returns the same model without the one row in ``batch``, which was counted with the class ``label`` and this
        weight. Raises an error if it was not, or if it is the only row of its class.
        """
        row = align_names(batch, self.schema, (self.target or "",))
        weights = None if weight == 1.0 else np.array([weight])
        row_tally = count_rows(
            row, self.schema, Codes(np.zeros(1, dtype=np.int32), low=0, values=[label]), weights, threads=1
        )
        try:
            tally_without_row = (self.tally - row_tally)._drop_absent_words()
        except errors.NegativeCount as problem:
            reason = problem.args[0].partition(". ")[0]
            raise errors.NegativeCount(
                f"the row was not counted with class {label!r}, so it cannot be left out: {reason}. Explain it without "
                "held_out=True.",
                label=label,
            ) from None
        if label not in tally_without_row.classes:
            raise errors.BadSetting(
                f"this is the only row of class {label!r}, so without it the class has no rows. Explain "
                "it without held_out=True.",
                label=label,
            )
        tally_without_row = tally_without_row._with_classes(self.classes)  # some were named before they had rows
        return _unpack_model(
            tally_without_row, self.choice, self.class_prior, self.threads, self.calibration, self.weighing
        )

    def informative(self, n: int = 10, classes: Sequence[Any] | None = None) -> Informative:
        """Returns the ``n`` values (such as words) that best tell each class from the others, as likelihood ratios.

        The other classes are mixed by their prior probabilities. Values are ranked by the product of two numbers: the
        difference between the share of the class's rows that have the value and the share of other rows that have it,
        and the logarithm of the ratio of these shares. A word at the top is therefore common in its class and rare
        elsewhere. Numbers are represented by their most informative interval, and joint tables by combinations of
        values.

        Args:
            n: How many values to return for each class.
            classes: The classes to return; all unless given.

        >>> import banbury as bb
        >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
        >>> model.informative(2)
        'no'
          humidity = high     no : rest = 2.0 : 1
          outlook = sunny     no : rest = 2.0 : 1
        'yes'
          outlook = overcast  yes : rest = 3.3 : 1
          humidity = normal   yes : rest = 2.2 : 1
        """
        informative_values = informative(
            self.classes, self.parameters, self.log_prior, self._log_likelihood_of, n, classes
        )
        return replace(informative_values, target=self.target)

    def _log_likelihood_of(self, group: Parameters, columns: Mapping[str, Any]) -> Real:
        """Returns log P(value | class) of one feature (rows × classes), for values in ``columns``, a sequence by column
        name; ``group`` has the parameters of this feature alone.
        """
        batch = next(iter(read(dict(columns))))
        return self._score_features(batch, [group], "parts")[0][:, 0]

    def _one_row(self, row: Any) -> Batch:
        """Reads one row as ``predict`` would, and returns a batch with this row alone. ``row`` is a mapping or Series
        by name, a list or array by position, a table with one row, or a text. Raises an error if it is not one row.
        """
        if isinstance(row, str) and len(self.schema.features) == 1 and "text" in self.schema.kinds.values():
            row = {self.schema.features.names[0]: row}
        if isinstance(row, (list, tuple, np.ndarray)):
            n_columns = len(self.schema.columns)
            is_several_texts = isinstance(row, list) and n_columns == 1 < len(row) and isinstance(row[0], str)
            if not len(row) or is_several_texts:
                raise errors.not_one_row(len(row))
            if np.ndim(row) == 1 and not isinstance(row[0], Mapping):
                if len(row) != n_columns:
                    raise errors.wrong_width(len(row), n_columns)
                return read_row(row, self.schema.columns, self.schema.named)
        batches_with_rows = [batch for batch in self._read(row, {}) if batch.n_rows]
        if (n_rows := sum(batch.n_rows for batch in batches_with_rows)) != 1:
            raise errors.not_one_row(n_rows)
        return batches_with_rows[0]

    def likelihood(self, feature: str, value: Any) -> dict[Label, float]:
        """Returns P(value | class) of one feature, or its density, for every class. For a block of columns, pass one
        value per column.
        """
        group = self._group(feature)
        (column_or_block,) = group.features
        is_sequence = isinstance(value, (list, tuple, np.ndarray))
        if len(column_or_block.columns) == 1 and (column_or_block.holds_lists or not is_sequence):
            value = (value,)
            is_sequence = True
        if column_or_block.columns and not (is_sequence and len(value) == len(column_or_block.columns)):
            expected = (
                f"as many values as {column_or_block.name!r} has columns ({errors.listed(column_or_block.columns)})"
            )
            raise errors.bad_setting("value", value, expected)
        values = (
            dict(zip(column_or_block.columns, value, strict=True))
            if column_or_block.columns  # a block; a single column has none
            else {column_or_block.name: value}
        )
        log_likelihoods = self._log_likelihood_of(
            group, {name: [column_value] for name, column_value in values.items()}
        )[0]
        return dict(zip(self.classes, np.exp(log_likelihoods).tolist(), strict=True))

    def log_likelihood(self, rows: Any, feature: str | None = None, **reading: Any) -> Real:
        """Returns log P(value | class) of one feature as an array (rows × classes).

        For a text this is the multinomial likelihood of its bag of words, including the multinomial coefficient, which
        is the same for every class. ``feature`` can be omitted if there is only one. A missing value has log likelihood
        0. ``rows`` are read as by ``bb.count``, with its options for ``reading``.

        >>> import banbury as bb
        >>> model = bb.estimate(bb.count(["good good bad", "bad"], target=["yes", "no"]))
        >>> model.log_likelihood(["bad good"]).round(3).tolist()  # two orders of one third and two thirds; of 2/5 and 3/5
        [[-0.811, -0.734]]
        """
        parameters = self._group(feature)
        log_likelihoods = []  # of each batch (rows × classes)
        for batch in self._read(rows, reading):
            batch, _ = self._align(batch, {"absent", "extra"})  # without warnings about other columns
            log_likelihoods.append(
                self._score_features(batch, [parameters], "parts")[0][:, 0]
                + np.reshape(log_orders(parameters, batch), (-1, 1))
            )
        return np.concatenate(log_likelihoods)

    def cuts(self, feature: str | None = None) -> list[float]:
        """Returns the cut points between the bins of a histogram, in ascending order.

        ``feature`` can be omitted if there is only one, and can be one column of a block of histograms.

        >>> import banbury as bb
        >>> ages = {"age": [3.0, 4.0, 12.0, 13.0], "school": ["none", "none", "high", "high"]}
        >>> bb.estimate(bb.count(ages, target="school", features={"age": bb.Histogram(bins="mdl")})).cuts("age")
        [8.0]
        """
        feature_or_block = next((block.name for block in self.schema.features if feature in block.columns), feature)
        cuts = self._group(feature_or_block).cuts(feature)
        if cuts is None:
            name = self._group(feature).features.names[0]
            raise errors.bad_setting("feature", name, "a histogram column")
        return cuts

    def bandwidths(self, feature: str | None = None) -> dict[Label, Any]:
        """Returns the bandwidth of a kernel density estimate in each class, in the units of the column; for a block,
        one bandwidth per column.

        >>> import banbury as bb
        >>> waits = {"wait": [1.0, 1.2, 4.8, 5.0, 2.9, 3.1], "kind": ["a", "a", "a", "a", "b", "b"]}
        >>> tally = bb.count(waits, target="kind", features={"wait": bb.KernelDensity()})
        >>> {kind: round(h, 2) for kind, h in bb.estimate(tally).bandwidths("wait").items()}
        {'a': 1.66, 'b': 0.13}
        """
        group = self._group(feature)  # the parameters of this feature alone
        bandwidths = bandwidths_of(group)  # one per class; None unless it is a kernel density estimate
        if bandwidths is None:
            raise errors.bad_setting("feature", group.features.names[0], "a kernel density column")
        return dict(zip(self.classes, bandwidths, strict=True))

    def linear(self, feature: str | None = None) -> LinearForm:
        """Returns a text model as a linear classifier: log P(class) + log P(text | class) = intercepts + counts @
        weights.

        For a matrix of occurrences, the words are its columns. If it has a threshold, values above the threshold count
        as 1 and all others as 0. ``feature`` can be omitted if there is only one.

        >>> import banbury as bb
        >>> model = bb.estimate(bb.count(["good good bad", "bad"], target=["yes", "no"]))
        >>> form = model.linear()
        >>> form.words, (form.intercepts + [2, 1] @ form.weights).round(3).tolist()
        (['bad', 'good'], [-2.603, -3.037])
        >>> model.log_joint(["bad good bad"]).round(3).tolist()
        [[-2.603, -3.037]]
        """
        group = self._group(feature)  # the parameters of this feature alone
        form = group.linear()  # None unless it counts words or occurrences
        if form is None:
            expected = "a text column or a block of occurrences"
            raise errors.bad_setting("feature", group.features.names[0], expected)
        if form.scale is not None:
            raise errors.bad_setting("the text", "weighed", "plain for a linear form; use model.weighed(None)")
        return LinearForm(form.words, form.weights, self.log_prior + form.intercepts)

    def evidence_table(self, *, min_rows: int = 0) -> EvidenceTable:
        """Returns the model as Arrow tables from which every posterior can be computed. See
        ``docs/reference/evidence-table.md``.

        Args:
            min_rows: Leaves out values, intervals and words that fewer rows have. It also leaves out all pairs of
                columns, because the number of rows in each cell of a pair is not known.

        >>> import banbury as bb
        >>> bb.estimate(bb.count(bb.datasets.play_tennis(), target="play")).evidence_table()
        EvidenceTable of classes, rows: prior 2, columns 4, values 32, calibration 2
        """
        rules = {} if self.calibration is None else self.calibration.rules()  # columns of the table of calibration
        return evidence_table([self], self.log_prior, self.classes, rules, self.tally, min_rows)

    def _group(self, feature: str | None) -> Parameters:
        """Returns the parameters of one feature alone; it need not be named if there is only one. Raises an error if
        the model has none for it.
        """
        if feature is None and len(self.schema.features) != 1:
            names = errors.listed(self.schema.features.names)
            raise errors.bad_setting("feature", feature, f"the name of one of the features ({names})")
        name = self.schema.features.names[0] if feature is None else self.schema[feature].name
        group = next((group for group in self.parameters if name in group.features.names), None)
        if group is None:
            raise errors.BadSetting(
                f"column {name!r} repeats another column, so weighed evidence leaves it out. Ask the plain "
                "model: model.weighed(None).",
                column=name,
            )
        return group.select([group.features.names.index(name)])

    def sample(self, n: int, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Draws ``n`` rows from the model, as a mapping from column to its array. The class is in the column of the
        target ("class" if it has no name).
        """
        check_sample_size(n, seed)
        if self.weighing is not None:  # weights improve predictions, but do not describe how rows are distributed
            return self.weighed(None).sample(n, seed)
        rng = np.random.default_rng(seed)
        drawn_columns = dict[str, NDArray[Any]]()  # by name
        class_numbers = rng.choice(len(self.classes), size=n, p=np.exp(self.log_prior))
        for group in self.parameters:
            with np.errstate(over="ignore"):
                drawn_columns |= dict(
                    zip(group.features.inputs, map(_finite, group.sample(class_numbers, rng)), strict=True)
                )
        columns = {name: drawn_columns[name] for name in self.schema.features.inputs}
        name = self.schema.target or "class"
        while name in columns:
            name += "_"
        return columns | {name: self._class_array[class_numbers]}

    def __str__(self) -> str:
        """Returns a line with the number of classes and the settings, and a line with the prior of each class."""
        settings = f"how={self.choice.how!r}, alpha={self.choice.alpha:g}"
        settings += "" if self.weighing is None else f", weighed: {self.weighing}"
        settings += "" if self.calibration is None else f", calibrated: {self.calibration}"
        first_line = (
            f"Model of {many(len(self.classes), 'class')}, {many(len(self.schema.features), 'feature')} ({settings})"
        )
        names = [errors.shortened(repr(name)) for name in self.classes[:20]]
        width = max(map(len, names))
        lines = [f"  P({name:{width}}) = {share:.4f}" for name, share in zip(names, self._class_shares, strict=False)]
        last_line = [f"  … and {len(self.classes) - 20:,} more classes"] if len(self.classes) > 20 else []
        return "\n".join([first_line, *lines, *last_line])

    __repr__ = __str__

    def _notebook_tables(self) -> list[NotebookTable]:
        """Returns the two tables that a notebook shows: the classes with their prior, and the features with their
        families.
        """
        class_columns = {"class": self.classes, "P(class)": self._class_shares.tolist()}
        features = self.schema.features
        feature_columns = {"column": features.names, "family": [str(feature.family) for feature in features]}
        return [NotebookTable("", class_columns), NotebookTable("", feature_columns)]

    # Scoring

    @property
    def _scores_for_class(self) -> str:
        """The name of the scores that are needed to find the most probable class: "class", the number of the best class
        itself, or "log_posterior" if the calibration may make another class the best.
        """
        return "class" if self.calibration is None or self.calibration.keeps_order else "log_posterior"

    def _best(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Returns the number of each row's most probable class, from the scores named by ``_scores_for_class``: these
        numbers already, or log posteriors (rows × classes).
        """
        if self.calibration is None or self._scores_for_class == "class":
            return scores
        return np.asarray(self.calibration.apply(scores).argmax(axis=1))

    def _score_all(self, rows: Any, want: str, reading: Mapping[str, Any]) -> NDArray[Any]:
        """Returns the scores of all rows, and warns about rows that are impossible in every class. ``want`` names the
        scores: "posterior", "log_posterior" or "log_joint" (rows × classes), or "class" (the number of each row's most
        probable class). ``reading`` has the user's options for reading the rows.
        """
        if not reading and (text_scores := self._score_texts(rows, want)) is not None:
            return text_scores
        batch_scores = [  # of each batch the scores, and the number of impossible rows
            (scores, n_impossible) for _, scores, n_impossible in self._batches(self._read(rows, reading), want)
        ]
        self._warn_impossible(sum(n_impossible for _, n_impossible in batch_scores), want)
        return batch_scores[0][0] if len(batch_scores) == 1 else np.concatenate([scores for scores, _ in batch_scores])

    def _score_texts(self, rows: Any, want: str) -> NDArray[Any] | None:
        """Returns the scores that ``want`` names, such as "posterior", of a list of texts without building a batch;
        None if rows are anything else.
        """
        if self._only_text is None or type(rows) is not list or not rows or type(rows[0]) is not str:
            return None
        try:
            scores, n_impossible = self._run_kernel(len(rows), self._only_text.parts(PlainTexts(rows)), want)  # type: ignore[arg-type]
        except TypeError:  # not all are texts: reading them as a batch raises an error that names the first
            return None
        self._warn_impossible(n_impossible, want)
        return scores

    def _read(self, rows: Any, reading: Mapping[str, Any]) -> Source:
        """Opens rows as batches, read like the rows that were counted unless ``reading``, the options of ``bb.count``
        for reading files, says otherwise.
        """
        return open_source(rows, self.schema, reading)

    @cached_property
    def _only_text(self) -> Parameters | None:
        """The parameters of the only column if it has no name and holds texts, so that rows can be plain texts;
        otherwise None.
        """
        has_one_column = len(self.parameters) == len(self.schema.columns) == 1 and not self.schema.named
        return (
            self.parameters[0]
            if has_one_column and self.schema.features[0].reads_text and not self.schema._runs_python
            else None
        )

    def _warn_impossible(self, n_rows: int, want: str) -> None:
        """Warns that ``n_rows`` rows are impossible in every class, if there are any, unless ``want``, the name of the
        scores, is "log_joint", which shows it.
        """
        if n_rows and want != "log_joint":
            errors.warn(errors.all_impossible(n_rows, f"how={self.choice.how!r}"))

    def _run_kernel(self, n_rows: int, parts: list[_core.Part], want: str) -> tuple[NDArray[Any], int]:
        """Returns the scores of rows, and the number of rows that are impossible in every class. ``parts`` has the
        parameters and the values of the rows for each group of features; ``want`` names the scores: "posterior",
        "log_posterior", "log_joint", "class" or "parts".
        """
        return _core.score(n_rows, self.log_prior, parts, want, n_threads(self.threads))

    def _score_batch(self, batch: Batch, want: str) -> tuple[Real, int]:
        """Returns the calibrated scores (rows × classes) of rows that were already read under the model's schema, and
        the number of rows that are impossible in every class. ``want`` is "posterior" or "log_posterior".
        """
        scores, n_impossible = self._score_features(
            batch, self.parameters, want if self.calibration is None else "log_posterior"
        )
        if self.calibration is not None:
            scores = (self.calibration.apply if want == "posterior" else self.calibration.log_apply)(scores)
        return scores, n_impossible

    def _score_of_unknown_class(self, want: str) -> float:
        """Returns the score of a class that the model has not seen, which is impossible; ``want`` is "posterior" or
        "log_posterior".
        """
        return 0.0 if want == "posterior" else -np.inf

    def _lost_words(self) -> dict[str, int]:
        """Returns the text columns that have no words left, each with the number of words it had."""
        groups = zip(self.parameters, self.tally.groups, strict=True)  # a text column is a group by itself
        n_lost_words = {features.names[0]: lost_words(group, sums) for group, (_, features, sums) in groups}
        return {name: n_words for name, n_words in n_lost_words.items() if n_words}

    def _score_features(self, batch: Batch, parameters: Sequence[Parameters], want: str) -> tuple[NDArray[Any], int]:
        """Returns the scores of a batch by the features of ``parameters``, before calibration, and the number of rows
        that are impossible in every class.

        Args:
            want: The scores to return: "posterior", "log_posterior" or "log_joint" (rows × classes), "class" (the number of each
                row's most probable class), or "parts" (the log likelihoods of each feature, rows × features × classes).
        """
        parts = self._parts(batch, parameters)
        try:
            return self._run_kernel(batch.n_rows, parts, want)
        except _core.BadValue as bad:
            raise _name_bad_value(bad, parameters, batch) from None

    def _score_row(self, batch: Batch, parameters: Sequence[Parameters]) -> tuple[int, Real, Real, Real]:
        """Scores a batch of one row by the features of ``parameters``. Returns the number of its class, its posterior
        and log posterior by class, not calibrated, and the log likelihoods of its features (features × classes).
        """
        parts = self._parts(batch, parameters)
        try:
            return _core.score_row(self.log_prior, parts)
        except _core.BadValue as bad:
            raise _name_bad_value(bad, parameters, batch) from None

    def _parts(self, batch: Batch, parameters: Sequence[Parameters]) -> list[_core.Part]:
        """Returns what the scoring kernel needs to know about the batch: one or more parts for each group of features,
        each with the group's parameters and values.
        """
        check_rows(parameters, batch)
        with LimitThreads(self.threads):
            return [part for group in parameters for part in group.parts(batch)]

    def _align(self, batch: Batch, warned: set[str], target: str | None = None) -> tuple[Batch, Sequence[Parameters]]:
        """Returns the batch under the schema's column names, and the parameters of the features that it has. Raises an
        error if it has no feature, or without names, if it has another number of columns.

        ``warned`` collects the kinds of warnings that were given ("absent", "extra"), which are not repeated.
        ``target`` is the column of the true classes, which needs no warning.
        """
        schema = self.schema  # ``inputs`` are the columns that features are counted from, ``columns`` all of the table
        if not (batch.named and schema.named):
            if schema.target in batch.names and set(batch.names).issuperset(schema.columns):
                batch = batch.only(schema.columns)
            elif batch.named and schema.target in batch.names:
                batch = batch.without(schema.target)
            if len(batch.names) != len(schema.columns):
                names = schema.columns if schema.named else ()
                raise errors.wrong_width(len(batch.names), len(schema.columns), names=names)
            return batch.rename(schema.columns), self.parameters
        present = set(batch.names)
        incomplete = (  # features that lack a column
            []
            if present >= schema.inputs
            else [feature for feature in schema.features if not present.issuperset(feature.inputs)]
        )
        incomplete_blocks = [
            feature for feature in incomplete if not feature.counter.words and not present.isdisjoint(feature.columns)
        ]
        missing_columns = [name for block in incomplete_blocks for name in block.columns if name not in present]
        if missing_columns:  # a block is scored by the columns that there are
            batch = batch.with_columns({name: empty_column(batch.n_rows) for name in missing_columns})
            present.update(missing_columns)
        # The names of features that cannot be scored.
        absent = [feature.name for feature in incomplete if not present.issuperset(feature.inputs)]
        if absent and len(absent) == len(schema.features):
            missing_column = next(name for name in schema.features[0].inputs if name not in present)
            raise errors.unknown_column(missing_column, batch.names, batch.source)
        extra = present.difference(schema.columns, [schema.target, target], batch.non_features)
        warn_about_other_columns([*missing_columns, *absent], sorted(extra), warned)
        if not absent:
            return batch, self.parameters
        return batch, select_features(self.parameters, lambda feature: present.issuperset(feature.inputs))


def select_features(groups: Sequence[Parameters], condition: Callable[[Feature], bool]) -> list[Parameters]:
    """Returns the parameters of those features that meet a condition, group by group, without empty groups. ``groups``
    has the parameters of features of one family each.
    """
    selected = (  # each group, and the positions of these features in it
        (group, [number for number, feature in enumerate(group.features) if condition(feature)]) for group in groups
    )
    return [group.select(numbers) for group, numbers in selected if numbers]


class PlainTexts:
    """Texts that are scored without building a batch."""

    def __init__(self, texts: list[str]) -> None:
        """Stores the texts of the rows, in order."""
        self._texts = texts
        self.n_rows = len(texts)

    def texts(self, name: str) -> list[str]:
        """Returns the texts, whatever the name of their column."""
        return self._texts


def warn_about_other_columns(absent: Sequence[str], extra: Sequence[str], warned: set[str]) -> None:
    """Warns about columns that the rows lack (``absent``) and about columns that were never counted (``extra``), unless
    ``warned`` contains "absent" or "extra"; adds these words to it.
    """
    for problem, names in (("absent", absent), ("extra", extra)):
        if names and problem not in warned:
            warned.add(problem)
            plural, was, is_ = ("s", "were", "are") if len(names) > 1 else ("", "was", "is")
            columns = f"column{plural} {errors.listed(map(repr, names))}"
            if problem == "absent":
                errors.warn(f"these rows have no {columns}, which {is_} treated as missing")
            else:
                errors.warn(f"{columns} {was} not counted and {is_} ignored")


def same_rows(count_and_compare: Callable[[], bool]) -> bool:
    """Whether rows give the same tally when ``count_and_compare`` counts them again; False if they cannot be counted.
    Warnings are suppressed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return count_and_compare()
    except errors.BanburyError:
        return False


def cost_matrix(costs: Any, classes: Sequence[Any]) -> Real:
    """Returns the user's costs, a matrix or a mapping {true: {predicted: cost}}, as a matrix (true class × predicted
    class). Mistakes that a mapping does not list cost 1. Raises an error if the costs are not valid.
    """
    n_classes = len(classes)
    expected = (
        f"a finite {n_classes} × {n_classes} matrix, true class × predicted class, or {{true: {{predicted: cost}}}}"
    )
    try:
        if isinstance(costs, Mapping):
            matrix = 1.0 - np.eye(n_classes)
            for true_class, cost_of_prediction in costs.items():
                for predicted_class, cost in cost_of_prediction.items():
                    matrix[class_number(true_class, classes), class_number(predicted_class, classes)] = cost
        else:
            matrix = np.asarray(costs, dtype=np.float64)
    except errors.UnknownClass:
        raise
    except (TypeError, ValueError, AttributeError):
        raise errors.bad_setting("costs", costs, expected) from None
    errors.require(matrix.shape == (n_classes, n_classes) and np.all(np.isfinite(matrix)), "costs", costs, expected)
    return matrix


def add_unknown_classes(
    class_names: Sequence[Label], row_classes: Iterable[Label], what: str = "class"
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Returns the model's classes (``class_names``) followed by classes that only the rows have, and a tuple with a
    note that names these, or an empty one. Warns if no row has a class of the model. ``row_classes`` are the classes of
    the rows, and ``what`` is "class" or "label".
    """
    row_classes = set(row_classes)
    unknown = sort_keys(row_classes.difference(class_names))
    if unknown and not row_classes.intersection(class_names):
        row_labels, model_labels = (errors.listed(map(repr, names), 5) for names in (unknown, class_names))
        plural = many(2, what).removeprefix("2 ")  # "classes" or "labels"
        note = (
            f"none of these labels is a {what} of the model: the labels are {row_labels}, "
            f"but the model's {plural} are {model_labels}"
        )
        advice = f"So every predicted {what} is wrong.{errors.did_you_mean(unknown[0], class_names)}"
        errors.warn(f"{note}. {advice} Spell them as the model does, or name another column with target=.")
        return (*class_names, *unknown), (note,)
    notes = (f"the model does not know {errors.listed(map(repr, unknown), 5)}",) if unknown else ()
    return (*class_names, *unknown), notes


def score_each(
    models: Sequence[Model], batch: Batch, which: NDArray[np.int32], want: str, threads: int, out: Real
) -> int:
    """Scores each row with one of several models, before calibration, and writes the scores into ``out`` (rows ×
    classes); 0 for rows that are left out. Returns the number of rows that are impossible in every class.

    Args:
        models: The models, which have the same features and classes.
        batch: The rows.
        which: The number of each row's model; −1 leaves a row out.
        want: The scores to write: "posterior" or "log_posterior".
        threads: How many threads may score.
        out: The array that receives the scores.
    """
    parts_by_model = [[part for group in model.parameters for part in group.parts(batch)] for model in models]
    # By model: its log prior, and the parameters and values of its groups of features.
    priors_and_parts = [(model.log_prior, parts) for model, parts in zip(models, parts_by_model, strict=True)]
    try:
        return _core.score_each(which, priors_and_parts, want, threads, out)
    except _core.BadValue as bad:
        raise _name_bad_value(bad, models[0].parameters, batch) from None


def log_sum(log_joint: Real) -> Real:
    """Returns log P(row) for each row of ``log_joint`` (rows × classes): the log-sum-exp over classes, −∞ where every
    class is impossible.
    """
    highest = log_joint.max(axis=1)  # of each row
    finite_highest = np.where(np.isfinite(highest), highest, 0.0)  # 0 for impossible rows
    return np.asarray(finite_highest + log(np.exp(log_joint - finite_highest[:, None]).sum(axis=1)))


def _name_bad_value(bad: _core.BadValue, parameters: Sequence[Parameters], batch: Batch) -> errors.BadValue:
    """Returns the error about a value that cannot be scored, with its column and row. ``bad``: the kernel's error, with
    a message, the number of the feature, the row and the value; it counts the columns of a block one by one. The batch
    was scored by the features of ``parameters``, in their order.
    """
    _, feature_number, row, value = bad.args
    features = Features.join([group.features for group in parameters])
    for first_position in features.where(lambda template: template.columns).tolist():  # of blocks of columns
        feature = features[first_position]
        if first_position <= feature_number < first_position + len(feature.columns):
            column = feature.columns[feature_number - first_position]
            cell = batch.take(np.array([row])).numbers([column])[0].reshape(-1)[0]
            if cell == value or (cell != cell and value != value):  # both NaN
                return bad_value(_core.BadValue(bad.args[0], 0, row, value), [column], batch)
    return bad_value(bad, features.names, batch)


def _finite(column: NDArray[Any]) -> NDArray[Any]:
    """Returns a column of floats with infinities replaced by the largest finite numbers, so that drawn rows can be
    written and counted; any other column unchanged.
    """
    largest = np.finfo(np.float64).max
    return np.clip(column, -largest, largest) if column.dtype.kind == "f" else column


def _unpack_model(
    tally: Tally,
    choice: Choice,
    class_prior: ClassPrior,
    threads: int | None,
    calibration: Calibrates | None,
    weighing: Weighs | None = None,
) -> Model:
    """Estimates a pickled model from its tally: with the estimator of ``choice``, the user's ``class_prior``, the number
    of threads, the ``calibration`` of its posteriors and the ``weighing`` of its evidence, None if it has none.
    """
    model = complete_model(tally, choice, class_prior)
    model = model if weighing is None else model.weighed(weighing)
    return replace(model, threads=threads, calibration=calibration)


def check_seed(seed: Any) -> None:
    """Raises an error unless the seed is a whole number of at least 0."""
    errors.check_whole("seed", seed, 0)


def check_sample_size(n: Any, seed: Any) -> None:
    """Raises an error unless ``n`` rows can be drawn with this seed."""
    is_whole = isinstance(n, (int, np.integer)) and not isinstance(n, bool)
    errors.require(
        is_whole and 0 <= n <= MOST_SAMPLED, "n", n, f"a whole number of at least 0, {MOST_SAMPLED:,} at most"
    )
    check_seed(seed)


def class_log_prior(class_prior: ClassPrior, tally: Tally) -> Real:
    """Returns log P(class) for every class of a tally, from the user's class prior: None, "uniform", a pseudo-count, or
    a probability per class. Raises an error if it is not valid.
    """
    rows_by_class = tally.rows.value  # or their total weight
    n_classes = len(tally.classes)
    if not (n_rows := rows_by_class.sum()) > 0:
        raise errors.empty_data(None, "the weights of all rows have faded to zero")
    if class_prior is None:
        return log(rows_by_class / n_rows)
    if isinstance(class_prior, str):
        if class_prior != "uniform":
            raise errors.unknown_choice("class_prior", class_prior, ["uniform"])
        return np.full(n_classes, -np.log(n_classes))
    if isinstance(class_prior, (int, float)) and not isinstance(class_prior, bool):
        check_positive("class_prior", class_prior, zero=True)
        return log((rows_by_class + class_prior) / (n_rows + class_prior * n_classes))
    return log(np.array([*shares_by_class(class_prior, tally.classes).values()]))


def shares_by_class(class_prior: Any, classes: Sequence[Any]) -> dict[Any, float]:
    """Returns the probability of each class, from ``class_prior``, a mapping by class or a sequence in the order of
    ``classes``. Raises an error unless there is one for each class and they sum to 1.
    """
    n_classes = len(classes)
    probabilities = class_prior
    if isinstance(class_prior, Mapping):
        share_of_number = {class_number(name, classes): share for name, share in class_prior.items()}
        if without_share := [repr(name) for number, name in enumerate(classes) if number not in share_of_number]:
            expected = f"a probability for each class; {errors.listed(without_share)} has none"
            raise errors.bad_setting("class_prior", class_prior, expected)
        probabilities = [share_of_number[number] for number in range(n_classes)]
    try:
        shares = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.zeros(())  # of the wrong shape
    one_per_class = f"one probability for each of the {n_classes} classes"
    errors.require(shares.shape == (n_classes,), "class_prior", class_prior, one_per_class)
    expected = f"probabilities that sum to 1, one for each class (these sum to {shares.sum():g})"
    errors.require(np.all(shares >= 0) and abs(shares.sum() - 1.0) <= 1e-9, "class_prior", class_prior, expected)
    return dict(zip(classes, shares.tolist(), strict=True))


def model_of(model_or_estimator: Any) -> Any:
    """Returns the model of a fitted estimator, and anything else unchanged."""
    if isinstance(model_or_estimator, type) or not hasattr(model_or_estimator, "get_params"):
        return model_or_estimator
    from sklearn.utils.validation import check_is_fitted

    if hasattr(type(model_or_estimator), "_rows_and_settings"):  # an estimator of Banbury
        check_is_fitted(model_or_estimator)
    return model_or_estimator.model_ if hasattr(model_or_estimator, "model_") else model_or_estimator
