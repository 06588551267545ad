"""LabelModel: several labels per row. It decides on each label by itself, and all decisions come from one tally."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.families.bags.text import label_words
from banbury.families.family import Choice, Features, How
from banbury.labels.calibration import FARTHEST, LabelCalibration, sigmoid
from banbury.labels.cells import as_one_class, tally_of_all_rows
from banbury.labels.thresholds import Thresholds
from banbury.labels.weighing import LabelTables, LabelWeighing
from banbury.labels.words import InformativeWords, LabelWords
from banbury.model.evidence_table import EvidenceTable, evidence_table
from banbury.model.explain import Explanation, Informative, make_explanation
from banbury.model.naive_bayes import Model, choice_of, model_under
from banbury.reading import Batch, ParserWork, Source, n_threads
from banbury.tally.label_sets import EVERY
from banbury.tally.partitioned import or_in_partitions
from banbury.tally.schema import Schema
from banbury.tally.table import class_number, read_batches
from banbury.tally.tally import Label, Tally

CELLS_TOGETHER = 1 << 24  # rows × labels, of the rows that are scored together
YES = True
NO = False


def labels_of(tally: Tally) -> tuple[Label, ...]:
    """Returns the labels that at least one row has, in the order of the tally's classes. Raises if ``tally`` is not a
    tally of label sets.
    """
    _check(tally)
    return tuple(label for label in tally.classes if label != EVERY)


def find_label(label: Any, labels: Sequence[Label]) -> Label:
    """Returns the label of ``labels`` that the user's ``label`` stands for. Raises if there is none."""
    try:
        return labels[class_number(label, labels)]
    except errors.UnknownClass:
        raise errors.unknown_choice("label", label, list(labels)) from None


def _check(tally: Any) -> None:
    """Raises if ``tally`` is not a tally of label sets, or has labels but no rows."""
    if not isinstance(tally, Tally) or tally.schema.labels is None:
        description = "one class per row" if isinstance(tally, Tally) else type(tally).__name__
        raise errors.bad_setting(
            "the tally",
            description,
            "a tally of label sets, which bb.count makes from lists, flags or delimited texts",
        )
    if tally.classes and EVERY not in tally.classes:
        raise errors.bad_setting("the tally", "labels without rows", "a tally with rows as well as labels")


def yes_no(tally: Tally, label: Label) -> Tally:
    """Returns the tally of two classes, all rows without a label (False) and the rows with it (True), by subtraction.
    If all rows have the label, True is the only class.

    >>> import banbury as bb
    >>> papers = {"text": ["wheat and corn", "crude oil", "corn oil"], "topics": [["grain"], ["fuel"], ["grain", "fuel"]]}
    >>> tally = bb.count(papers, target="topics")
    >>> bb.labels.yes_no(tally, "grain") == bb.count({"text": papers["text"]}, target=[True, False, True])
    True
    """
    _check(tally)
    label = find_label(label, labels_of(tally))
    tally = replace(tally, schema=replace(tally.schema, target=None, target_kind=None), skipped=0)
    all_rows = tally_of_all_rows(tally)  # a tally, as the next; both have the one class True
    rows_with_label = as_one_class(tally, label)
    if not float(all_rows.n_rows) > float(rows_with_label.n_rows):
        return rows_with_label
    return replace(all_rows - rows_with_label, classes=(NO,)) + rows_with_label


def of_features(tally: Tally, names: Sequence[str]) -> Tally:
    """Returns the tally of the same rows with only the features ``names``. A group has the features of one family, and
    ``tally.sums`` has what was counted of each group.
    """
    features = tally.schema.features.take([tally.schema.index[name] for name in names])
    schema = replace(tally.schema, features=features)
    sums = []  # of each group of these features
    for group in schema.groups:
        # Where the sums of each feature are: the number of their group, and the position in it.
        locations = [tally.locate(name) for name in group.features.names]
        (group_number,) = {location.group for location in locations}
        sums.append(tally.sums[group_number].select([location.position for location in locations]))
    return replace(tally, schema=schema, sums=tuple(sums))


@dataclass(frozen=True, eq=False, repr=False)
class LabelModel:
    """A model for several labels per row: P(label | row) for each label independently, from one tally.

    >>> import banbury as bb
    >>> texts = ["wheat and corn", "crude oil", "corn oil", "a quiet day"]
    >>> model = bb.LabelModel.of(bb.count(texts, target=[["grain"], ["fuel"], ["fuel", "grain"], []]))
    >>> model.predict(["wheat", "crude"])
    [('grain',), ('fuel',)]
    """

    kind: ClassVar[str] = "model of labels"

    tally: Tally  # its classes are the labels, and EVERY for all rows
    choice: Choice  # the estimator and the prior
    thresholds: Thresholds  # also has the calibration
    threads: int | None = None
    weighing: LabelWeighing | None = None  # learned corrections of the evidence of words and cells
    words_per_label: int | None = None  # how many words of each label count, the most informative ones; None for all

    @classmethod
    def of(
        cls,
        tally: Tally,
        *,
        how: How = "mean",
        alpha: float = 1.0,
        features: Mapping[str, Any] | None = None,
        words_per_label: int | None = None,
        threads: int | None = None,
    ) -> LabelModel:
        """Returns the model of a tally of label sets, with thresholds of one half.

        Args:
            tally: The counts of rows with sets of labels.
            how: The estimator, as in ``bb.estimate``.
            alpha: The pseudo-count of each value.
            features: Other families for some features, by name; None for those that counted.
            words_per_label: How many words each label uses, the most informative ones, in texts whose length is
                normalised; None for all words.
            threads: How many threads predictions use; None for all cores.
        """
        if words_per_label is not None and (
            isinstance(words_per_label, bool) or not isinstance(words_per_label, int) or words_per_label < 1
        ):
            raise errors.bad_setting(
                "words_per_label", words_per_label, "a number of words, at least 1, or None for all"
            )
        _check(tally)
        if features:
            tally = replace(tally, schema=tally.schema._with_families(features))
        if not labels_of(tally):
            raise errors.empty_data(None, "no row has a label, so there is nothing to predict")
        return cls(
            tally,
            choice_of(how, alpha, seed=0),
            Thresholds.half(labels_of(tally)),
            threads,
            weighing=None,
            words_per_label=words_per_label,
        )

    def with_thresholds(self, thresholds: Thresholds) -> LabelModel:
        """Returns the same model with these thresholds. Labels that they lack get the common threshold."""
        return replace(self, thresholds=thresholds.of(self.labels))

    def calibrated(self, calibration: LabelCalibration | None) -> LabelModel:
        """Returns the same model with this calibration, or uncalibrated if it is None. Predictions do not change.

        >>> import banbury as bb
        >>> texts = ["wheat and corn", "crude oil", "corn oil", "a quiet day"] * 5
        >>> topics = [["grain"], ["fuel"], ["fuel", "grain"], []] * 5
        >>> model = bb.LabelModel.of(bb.count(texts, target=topics))
        >>> evaluation = bb.cross_validate(texts, topics, folds=4, threshold=None)
        >>> model.calibrated(bb.calibrate("temperature", evaluation.log_odds, evaluation.truth)).calibration
        temperature 0.586
        """
        return replace(self, thresholds=self.thresholds.recalibrate(calibration))

    @property
    def calibration(self) -> LabelCalibration | None:
        """The calibration; None if probabilities are uncalibrated."""
        return self.thresholds.calibration if self.thresholds.calibration.changes else None

    def weighed(self, weighing: LabelWeighing | None) -> LabelModel:
        """Returns the same model with the corrections in ``weighing``, or without any if it is None. Corrections for
        values that no row has are dropped.
        """
        return replace(self, weighing=None if weighing is None else weighing._without_forgotten(self.tally))

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The labels, in the order of the columns of posteriors."""
        return labels_of(self.tally)

    @property
    def _names(self) -> tuple[Label, ...]:
        """The labels."""
        return self.labels

    @property
    def schema(self) -> Schema:
        """The schema of the training data."""
        return self.tally.schema

    @property
    def target(self) -> str | None:
        """The name of the column of labels; None if there is none."""
        return self.schema.target

    @cached_property
    def rows_by_label(self) -> Real:
        """The number of rows with each label, in the order of ``labels``."""
        return np.delete(self.tally.rows.value, self.tally.classes.index(EVERY))

    @cached_property
    def _one_class_model(self) -> Model:
        """The model of all rows as one class, which reads rows as the training data were read."""
        return replace(
            model_under(tally_of_all_rows(self.tally), Choice(waits=True), class_prior=None), threads=self.threads
        )

    @cached_property
    def _words(self) -> tuple[LabelWords | InformativeWords, ...]:
        """The evidence of the words of each text column, in the order of ``_texts``: of all words, or of the
        ``words_per_label`` most informative words of each label.
        """
        if self.words_per_label is None:
            return tuple(LabelWords.of(self.tally, column, self.choice) for column in self._texts.names)
        return tuple(InformativeWords.of(self.tally, column, self.words_per_label) for column in self._texts.names)

    @cached_property
    def _weighed(self) -> LabelTables | None:
        """The tables of evidence of weighed columns, with the weighed log prior odds; None without weighing."""
        return None if self.weighing is None else LabelTables(self.tally, self.labels, self.weighing)

    @property
    def _texts(self) -> Features:
        """The text columns that are scored for all labels at once, without weighing."""
        features = self.schema.features
        return features.take(features.where(lambda feature: label_words(feature.family, self.choice) is not None))

    @cached_property
    def _other_models(self) -> tuple[Model, ...]:
        """The yes/no model of each label with its prior, by the columns that are not scored for all labels at once; in
        the order of ``labels``, empty if there are no such columns.
        """
        scored_together = set(self._texts.names) if self._weighed is None else set(self._weighed.column_names)
        names = [name for name in self.schema.features.names if name not in scored_together]
        if not names:
            return ()
        tally = of_features(self.tally, names)  # of these columns alone
        return tuple(model_under(yes_no(tally, label), self.choice, class_prior=None) for label in self.labels)

    @cached_property
    def _log_prior_odds(self) -> Real:
        """log P(label) / P(not the label) for each label (labels,). If all rows have it, half a row without it is
        added.
        """
        rows_without_label = float(self.tally.n_rows) - self.rows_by_label  # of each label
        return np.where(
            rows_without_label > 0,
            np.log(self.rows_by_label / np.where(rows_without_label > 0, rows_without_label, 1.0)),
            np.log(2.0 * self.rows_by_label + 1.0),
        )

    # Answers

    def _reading_model(self) -> Model:
        """Returns the model that reads the rows to be answered: the model of all rows as one class."""
        return self._one_class_model

    def _prepare(self) -> None:
        """Computes in advance what the first prediction would compute, and keeps it in the cached properties."""
        _ = (
            self._one_class_model,
            self._weighed,
            self._words if self.weighing is None else (),
            self._other_models,
            self._log_prior_odds,
        )

    def _read(self, rows: Any, reading: Mapping[str, Any]) -> Source:
        """Opens ``rows`` as batches, read as the model's training data were unless ``reading`` (options) says
        otherwise.
        """
        return self._one_class_model._read(rows, reading)

    def stream(self, rows: Any, **reading: Any) -> Iterator[tuple[Batch, Real]]:
        """Yields batches of rows together with their P(label | row) (rows × labels). ``reading``: options for reading
        files.
        """
        source = rows if isinstance(rows, Source) else self._read(rows, reading)
        for batch in read_batches(source, "scoring", ParserWork(self.threads)):
            most_rows = max(1, CELLS_TOGETHER // len(self.labels))  # that are scored at a time
            for start in range(0, batch.n_rows, most_rows):
                rows_slice = batch if batch.n_rows <= most_rows else batch.slice(start, start + most_rows)
                yield rows_slice, self.thresholds.honest(self._scores(rows_slice))

    def _scores(self, batch: Batch) -> Real:
        """Returns uncalibrated log P(label | row) / P(not the label | row) (rows × labels) for a batch of rows as the
        user's data have them.
        """
        batch, _ = self._one_class_model._align(self._without_labels(batch), set())
        return self._odds(batch)

    def _score_batch(self, batch: Batch, want: str) -> tuple[Real, int]:
        """Returns the scores of a batch of rows, read under the model's schema (rows × labels), and the number of
        impossible rows, 0 here.

        ``want`` is "log_odds" for uncalibrated log-odds; otherwise the scores are P(label | row).
        """
        log_odds = np.clip(self._odds(batch), -FARTHEST, FARTHEST)
        return log_odds if want == "log_odds" else self.thresholds.honest(log_odds), 0

    def _score_of_unknown_class(self, want: str) -> float:
        """Returns the score of a label that no row has, as if half a row had it: its log-odds if ``want`` is
        "log_odds", otherwise its calibrated probability.
        """
        log_odds = -float(np.log(2.0 * max(float(self.tally.n_rows), 1.0) + 1.0))
        calibration = self.thresholds.calibration
        return log_odds if want == "log_odds" else float(sigmoid(calibration.slope * log_odds + calibration.shift))

    def _lost_words(self) -> dict[str, int]:
        """Returns the columns that have lost all words, with the number lost: none, because labels fall back to the
        prior.
        """
        return {}

    def _odds(self, batch: Batch) -> Real:
        """Returns uncalibrated log-odds (rows × labels) for a batch of rows read under the model's schema: the prior
        (``_prior``), plus what words and cells add for all labels at once, plus what the yes/no models of
        ``_other_models`` add.
        """
        if not self.labels:
            return np.zeros((batch.n_rows, 0))
        threads = n_threads(self.threads)
        if self._weighed is not None:
            scores_together = self._weighed.scores(batch, threads)  # rows × labels
        else:
            scores_together = np.zeros((batch.n_rows, len(self.labels)))
            for column_words in self._words:
                scores_together += column_words.scores(batch, threads)
        log_odds = self._prior + scores_together
        # The prior alone decides about rows that are impossible both with the label and without it, and about labels that
        # all rows have, because there are no rows without them to compare with.
        if self._other_models:
            # Rows × labels; NaN: impossible.
            other_scores = np.stack([self._yes_no_scores(model, batch) for model in self._other_models], axis=1)
            log_odds = np.where(np.isnan(other_scores), self._prior, log_odds + other_scores)
        if self._is_on_all_rows.any():
            log_odds[:, self._is_on_all_rows] = self._prior[self._is_on_all_rows]
        return log_odds

    @property
    def _prior(self) -> Real:
        """The log prior odds of each label (labels,); with weighing, plus what is added to every row."""
        return self._log_prior_odds if self._weighed is None else self._weighed.log_prior

    @cached_property
    def _is_on_all_rows(self) -> NDArray[np.bool_]:
        """Whether all rows of the training data have the label (labels,)."""
        return np.asarray(self.rows_by_label >= float(self.tally.n_rows))

    def _without_labels(self, batch: Batch) -> Batch:
        """Returns the rows of a batch without the columns that hold their labels, if it has them."""
        for name in self.schema.labels.columns if self.schema.labels is not None else ():
            batch = batch.without(name) if name in batch.names else batch
        return batch

    def _yes_no_scores(self, model: Model, batch: Batch) -> Real:
        """Returns the log-odds of each row of a batch by the yes/no ``model`` of a label, without its prior; NaN for a
        row that is impossible in both classes.
        """
        if len(model.classes) < 2:  # all rows have the label
            return np.zeros(batch.n_rows)
        kernel_input = model._align(batch, {"absent", "extra"})  # batch and parameters, without warnings about columns
        # Rows × (no, yes), precise for improbable rows too; and the number of rows that are impossible in both.
        log_posteriors, n_impossible = model._score_features(*kernel_input, "log_posterior")
        log_odds = log_posteriors[:, 1] - log_posteriors[:, 0] - (model.log_prior[1] - model.log_prior[0])
        if n_impossible:
            log_odds[np.isneginf(model._score_features(*kernel_input, "log_joint")[0]).all(axis=1)] = np.nan
        return np.asarray(log_odds)

    def log_odds(self, rows: Any, **reading: Any) -> Real:
        """Returns uncalibrated log P(label | row) / P(not the label | row) (rows × labels), in the order of ``labels``.
        ``reading``: options for reading files.
        """
        uncalibrated = self.calibrated(None)
        return self._join(uncalibrated._scores(batch) for batch, _ in uncalibrated.stream(rows, **reading))

    @or_in_partitions
    def posterior(self, rows: Any, **reading: Any) -> Real:
        """Returns P(label | row) (rows × labels) in the order of ``labels``, for each label independently, so that rows
        do not sum to one. ``reading``: options for reading files.
        """
        return self._join(posterior for _, posterior in self.stream(rows, **reading))

    def _join(self, score_batches: Iterable[Real]) -> Real:
        """Returns batches of scores as one array (rows × labels)."""
        return np.concatenate([np.zeros((0, len(self.labels))), *score_batches])

    @or_in_partitions
    def predict(
        self, rows: Any, *, top: int | None = None, at_least_one: bool = False, **reading: Any
    ) -> list[tuple[Label, ...]]:
        """Returns the labels of each row, the most probable first: those above their thresholds, or the ``top`` most
        probable.

        With ``at_least_one``, the most probable label is returned if none is above its threshold. ``reading``: options
        for reading files.
        """
        if top is not None:
            errors.check_whole("top", top, 1)
        label_batches = (  # for each batch a list with the labels of each row
            self._choose_labels(posterior, top, at_least_one) for _, posterior in self.stream(rows, **reading)
        )
        return list(chain.from_iterable(label_batches))

    def flags(self, posterior: Real, at_least_one: bool = False) -> NDArray[np.bool_]:
        """Returns which labels are at or above their thresholds (rows × labels), from P(label | row) in ``posterior``
        (rows × labels). With ``at_least_one``, a row that has none gets its most probable label.
        """
        flags = posterior >= self.thresholds.probabilities
        if at_least_one and len(flags):
            rows_without_label = np.flatnonzero(~flags.any(axis=1))
            flags[rows_without_label, posterior[rows_without_label].argmax(axis=1)] = True
        return np.asarray(flags)

    def _choose_labels(
        self, posterior: Real, top: int | None = None, at_least_one: bool = False
    ) -> list[tuple[Label, ...]]:
        """Returns the labels of each row of posteriors (rows × labels), a tuple with the most probable first: the
        ``top`` most probable, or those above their thresholds. With ``at_least_one``, every row gets a label.
        """
        if top is None:
            flags = self.flags(posterior, at_least_one)
        else:
            n_labels = min(top, len(self.labels))
            best_labels = np.argpartition(-posterior, n_labels - 1, axis=1)[:, :n_labels]  # numbers (rows × n_labels)
            flags = np.zeros(posterior.shape, dtype=np.bool_)
            np.put_along_axis(flags, best_labels, True, axis=1)
        labels_of_rows = []
        for row_posterior, row_flags in zip(posterior, flags, strict=True):
            label_numbers = np.flatnonzero(row_flags)  # of the chosen labels
            label_numbers = label_numbers[np.argsort(-row_posterior[label_numbers], kind="stable")]
            labels_of_rows.append(tuple(self.labels[label_number] for label_number in label_numbers.tolist()))
        return labels_of_rows

    def _records(self, posterior: Real, top: int | None = None, at_least_one: bool = False) -> list[dict[str, Any]]:
        """Returns one dict per row of posteriors (rows × labels): its "labels", the most probable first, and their
        "probabilities". ``top`` and ``at_least_one`` are those of ``predict``.
        """
        number_of_label = {label: number for number, label in enumerate(self.labels)}
        chosen_labels = self._choose_labels(posterior, top, at_least_one)
        return [
            {"labels": list(labels), "probabilities": [probabilities[number_of_label[label]] for label in labels]}
            for labels, probabilities in zip(chosen_labels, posterior.tolist(), strict=True)
        ]

    # Explanations

    def of_label(self, label: Label) -> Model:
        """Returns the yes/no model of one label, a ``Model`` with the classes False and True (True alone if all rows
        have the label).

        With weighing (``_weighed`` has the tables), it has the weighed evidence and prior of the label; with
        ``words_per_label``, the evidence of the label's most informative words.
        """
        unweighed = replace(model_under(yes_no(self.tally, label), self.choice, class_prior=None), threads=self.threads)
        if len(unweighed.classes) < 2 or (self._weighed is None and self.words_per_label is None):
            return unweighed
        if self._weighed is None:
            return self._with_informative_words(label, unweighed)
        # By class (False, True), up to a constant: the weighed tables have the prior log-odds of each label.
        log_prior = np.array([0.0, self._weighed.log_prior[self.labels.index(label)]])
        parameters = self._weighed.parameters(label, unweighed)
        return replace(unweighed, parameters=parameters, log_prior=log_prior - np.logaddexp(*log_prior))

    def _with_informative_words(self, label: Label, plain: Model) -> Model:
        """Returns the yes/no model ``plain`` of a label, with the evidence of the label's most informative words
        in place of that of all words.
        """
        label_number = self.labels.index(label)
        n_with_label = self.rows_by_label[label_number]
        n_texts = np.array([float(self.tally.n_rows) - n_with_label, n_with_label])  # without the label, with it
        words_by_column = dict(zip(self._texts.names, self._words, strict=True))  # the evidence of words
        parameters = []
        for group in plain.parameters:
            feature = group.features[0]  # the only one, if it is a column of texts
            column_words = words_by_column.get(feature.name)  # None: not a column of texts
            if isinstance(column_words, InformativeWords):
                group = column_words.parameters(label_number, plain.tally.of(feature.name), feature, n_texts)
            parameters.append(group)
        return replace(plain, parameters=tuple(parameters))

    def evidence_table(self, *, min_rows: int = 0) -> EvidenceTable:
        """Returns the same tables as ``Model.evidence_table``, with log-odds of each label. Values and words that fewer
        than ``min_rows`` rows have are left out. See ``docs/reference/evidence-table.md``.
        """
        yes_no_models = [  # of each label; None: all rows have it
            None if is_on_all_rows else self.of_label(label)
            for label, is_on_all_rows in zip(self.labels, self._is_on_all_rows, strict=True)
        ]
        thresholds = self.thresholds
        # By field of the table of calibration, one number per label.
        calibration = {
            "slope": thresholds.calibration.slopes,
            "shift": thresholds.calibration.shifts,
            "threshold": thresholds.probabilities,
        }
        return evidence_table(
            yes_no_models, self._prior, self.labels, calibration, self._one_class_model.tally, min_rows, of_labels=True
        )

    def explain(self, row: Any, label: Label) -> Explanation:
        """Explains why a row gets a label or does not: the weight of evidence, in decibans.

        >>> import banbury as bb
        >>> texts = ["wheat and corn", "crude oil", "corn oil", "a quiet day"]
        >>> tally = bb.count(texts, target=[["grain"], ["fuel"], ["fuel", "grain"], []])
        >>> bb.LabelModel.of(tally).explain("crude oil", "fuel")
        'fuel' 87.7% against 'not fuel' 12.3%, in decibans:
          prior              +0.00
          text   = oil       +5.15  +++++
          text   = crude     +3.39  +++
          sum                +8.54
        """
        label = find_label(label, self.labels)
        model = self.of_label(label)  # the yes/no model
        label_number = self.labels.index(label)
        row = self._without_labels(row) if isinstance(row, Batch) else row
        explanation = (  # of the classes True and False, uncalibrated
            self._explain_by_prior(model, label_number, row)
            if self._is_on_all_rows[label_number]
            else model.explain(row)
        )
        is_stale = self._weighed is not None and self._weighed.is_stale
        if self.calibration is not None:
            sign = 1.0 if explanation.winner is True else -1.0  # the shift is in favour of the label
            explanation = explanation.rescale(
                float(self.calibration.slopes[label_number]), sign * float(self.calibration.shifts[label_number])
            )
        return replace(explanation, stale=is_stale).of_label(label)

    def _explain_by_prior(self, model: Model, label_number: int, row: Any) -> Explanation:
        """Returns the explanation of the label number ``label_number``, which every row has: the prior decides,
        whatever the row contains. ``model`` is the label's yes/no model. Raises an error if ``row`` is not one row of
        the model's columns.
        """
        model._align(model._one_row(row), set())  # refuses what is not one row of these columns
        log_prior = np.array([0.0, self._prior[label_number]])  # of no and yes, up to a constant
        log_prior -= np.logaddexp(*log_prior)
        winner = int(log_prior.argmax())  # 0: no, 1: yes
        explanation = make_explanation((NO, YES), log_prior, (), np.exp(log_prior), winner, 1 - winner)
        return replace(explanation, remarks=("every row has this label, so the prior decides",))

    def informative(self, label: Label, n: int = 10) -> Informative:
        """Returns the ``n`` values that best tell rows with a label from rows without, as likelihood ratios."""
        label = find_label(label, self.labels)
        model = self.of_label(label)
        has_both_classes = len(model.classes) > 1
        errors.require(has_both_classes, "label", label, "a label that some rows do not have")
        return model.informative(n, [True]).of_label(label)

    def __str__(self) -> str:
        """Returns how many labels and rows the model has."""
        return f"LabelModel of {errors.many(len(self.labels), 'label')}, {errors.many(int(self.tally.n_rows), 'row')}"

    __repr__ = __str__
