"""LabelModel: a yes or no for every label, all of them derived from one tally."""

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
from banbury.families.family import Choice, Feature, How
from banbury.labels.calibration import FARTHEST, LabelCalibration, sigmoid
from banbury.labels.thresholds import Thresholds
from banbury.labels.weighing import LabelTables, LabelWeighing
from banbury.labels.words import LabelWords, TellingWords
from banbury.model.evidence_table import EvidenceTable, evidence_table
from banbury.model.explain import Explanation, Informative, make_explanation
from banbury.model.naive_bayes import Model, choice_of, model_under
from banbury.reading import Batch, Beside, Source, n_threads
from banbury.sums import Words
from banbury.tally.label_sets import EVERY
from banbury.tally.partitioned import or_in_partitions
from banbury.tally.schema import Schema
from banbury.tally.table import batches, class_number
from banbury.tally.tally import Label, Tally

CELLS = 1 << 24  # rows × labels that are scored together
YES = True
NO = False


def labels_of(tally: Tally) -> tuple[Label, ...]:
    """The labels that some row has."""
    _check(tally)
    return tuple(label for label in tally.classes if label != EVERY)


def find_label(label: Any, labels: Sequence[Label]) -> Label:
    """A label as it is listed among these."""
    try:
        return labels[class_number(label, labels)]
    except errors.UnknownClass:
        raise errors.unknown_choice("label", label, list(labels)) from None


def _check(tally: Any) -> None:
    if not isinstance(tally, Tally) or tally.schema.labels is None:
        shown = "one class per row" if isinstance(tally, Tally) else type(tally).__name__
        raise errors.bad_setting(
            "the tally",
            shown,
            "a tally of label sets, which bb.count makes from lists, flags or delimited texts",
        )
    if tally.classes and EVERY not in tally.classes:
        raise errors.bad_setting("the tally", "labels without rows", "a tally with rows as well as labels")


def yes_no(tally: Tally, label: Label) -> Tally:
    """The tally of rows with a label, True, and of all others, False, by subtraction: that of counting these two classes.

    >>> import banbury as bb
    >>> papers = {"text": ["wheat and corn", "crude oil", "corn oil"], "topics": [["grain"], ["fuel"], ["grain", "fuel"]]}
    >>> tally = bb.count(papers, target="topics")
    >>> bb.labels.yes_no(tally, "grain") == bb.count({"text": papers["text"]}, target=[True, False, True])
    True
    """
    _check(tally)
    label = find_label(label, labels_of(tally))
    plain = replace(tally, schema=replace(tally.schema, labels=None, target=None, target_kind=None), skipped=0)
    every = plain.of_classes([tally.classes.index(EVERY)], (YES,))
    with_it = plain.of_classes([tally.classes.index(label)], (YES,))
    without = replace(every - with_it, classes=(NO,)) if float(every.n_rows) > float(with_it.n_rows) else None
    return with_it if without is None else without + with_it


def of_features(tally: Tally, names: Sequence[str]) -> Tally:
    """The same rows by some of their features alone."""
    schema = replace(tally.schema, features=tuple(tally.schema[name] for name in names))
    sums = []
    for group in schema.groups:
        places = [tally._places[feature.name] for feature in group.features]
        (number,) = {g for g, _ in places}
        sums.append(tally.sums[number].select([at for _, at in places]))
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

    tally: Tally
    choice: Choice
    thresholds: Thresholds
    threads: int | None = None
    weighing: LabelWeighing | None = None  # what its words are worth
    telling: int | None = None  # of each label so many words count that tell most of it; None: all count

    @classmethod
    def of(
        cls,
        tally: Tally,
        *,
        how: How = "mean",
        alpha: float = 1.0,
        features: Mapping[str, Any] | None = None,
        telling: int | None = None,
        threads: int | None = None,
    ) -> LabelModel:
        """Estimates the model of a tally of label sets, with thresholds of one half.

        With ``telling``, each label uses only its n most informative words, in texts whose length is normalised.
        """
        if telling is not None and (isinstance(telling, bool) or not isinstance(telling, int) or telling < 1):
            raise errors.bad_setting("telling", telling, "a number of words, at least 1, or None for all")
        _check(tally)
        if features:
            tally = replace(tally, schema=tally.schema.with_families(features))
        if not labels_of(tally):
            raise errors.empty_data(None, "no row has a label, so there is nothing to predict")
        return cls(tally, choice_of(how, alpha, 0), Thresholds.half(labels_of(tally)), threads, None, telling)

    def with_thresholds(self, thresholds: Thresholds) -> LabelModel:
        return replace(self, thresholds=thresholds.of(self.labels))

    def calibrated(self, calibration: LabelCalibration | None) -> LabelModel:
        """Returns the same model with this calibration, or uncalibrated if it is None. Predictions do not change.

        >>> import banbury as bb
        >>> texts = ["wheat and corn", "crude oil", "corn oil", "a quiet day"] * 5
        >>> topics = [["grain"], ["fuel"], ["fuel", "grain"], []] * 5
        >>> model = bb.LabelModel.of(bb.count(texts, target=topics))
        >>> found = bb.cross_validate(texts, topics, folds=4, threshold=None)
        >>> model.calibrated(bb.calibrate("temperature", found.log_odds, found.truth)).calibration
        temperature 0.586
        """
        return replace(self, thresholds=self.thresholds.recalibrate(calibration))

    @property
    def calibration(self) -> LabelCalibration | None:
        """The calibration; None if probabilities are uncalibrated."""
        return self.thresholds.calibration if self.thresholds.calibration.changes else None

    def weighed(self, weighing: LabelWeighing | None) -> LabelModel:
        """Returns the same model with weighed evidence, or plain if it is None. Corrections for values that no row has
        are dropped.
        """
        return replace(self, weighing=None if weighing is None else weighing.without_forgotten(self.tally))

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        return labels_of(self.tally)

    @property
    def names(self) -> tuple[Label, ...]:
        """The labels."""
        return self.labels

    @property
    def schema(self) -> Schema:
        return self.tally.schema

    @property
    def target(self) -> str | None:
        return self.schema.target

    @cached_property
    def n_rows(self) -> Real:
        """The number of rows with each label."""
        place = {label: c for c, label in enumerate(self.tally.classes)}
        return np.asarray(self.tally.rows.value[[place[label] for label in self.labels]])

    @cached_property
    def _every(self) -> Model:
        """All rows as one class: it reads rows as they were counted."""
        plain = replace(self.tally, schema=replace(self.schema, labels=None))
        every = plain.of_classes([self.tally.classes.index(EVERY)], (YES,))
        return replace(model_under(every, Choice(waits=True), None), threads=self.threads)

    @cached_property
    def _words(self) -> tuple[LabelWords | TellingWords, ...]:
        """Columns of texts, where a label costs the words that it occurs with."""
        rows = self.tally.classes.index(EVERY), self.n_rows, float(self.tally.n_rows)
        return tuple(self._words_of(f, self.tally.of(f.name), *rows) for f in self.texts)

    def _words_of(
        self, feature: Feature, sums: Words, every: int, rows: Real, n_rows: float
    ) -> LabelWords | TellingWords:
        """What words of a column say, from counts of which class ``every`` has all rows; ``rows`` have each label."""
        if self.telling is not None:
            return TellingWords.of(feature, sums, every, rows, n_rows, self.telling)
        return LabelWords.of(feature, sums, every, self.choice)

    @cached_property
    def _weighed(self) -> LabelTables | None:
        return None if self.weighing is None else LabelTables(self.tally, self.labels, self.weighing)

    @property
    def texts(self) -> tuple[Feature, ...]:
        """The text columns that are scored for all labels at once, without weighing."""
        return tuple(f for f in self.schema.features if label_words(f.family, self.choice) is not None)

    @cached_property
    def _rest(self) -> tuple[Model, ...]:
        """Of all other columns: the model of each label, with its prior."""
        together = {feature.name for feature in self.texts} if self._weighed is None else set(self._weighed.names)
        names = [feature.name for feature in self.schema.features if feature.name not in together]
        if not names:
            return ()
        fewer = of_features(self.tally, names)
        return tuple(model_under(yes_no(fewer, label), self.choice, None) for label in self.labels)

    @cached_property
    def log_prior_odds(self) -> Real:
        """log P(label) / P(not the label). If all rows have it, half a row without it is added."""
        rest = float(self.tally.n_rows) - self.n_rows
        return np.where(rest > 0, np.log(self.n_rows / np.where(rest > 0, rest, 1.0)), np.log(2.0 * self.n_rows + 1.0))

    # Answers

    def as_answering(self) -> Model:
        """The model of all rows as one class, which reads the rows to be answered."""
        return self._every

    def prepare(self) -> None:
        """Computes in advance what the first prediction would compute."""
        _ = self._every, self._weighed, self._words if self.weighing is None else (), self._rest, self.log_prior_odds

    def read(self, rows: Any, reading: Mapping[str, Any]) -> Source:
        """Reads data as the model's training data were read."""
        return self._every._read(rows, reading)

    def stream(self, rows: Any, **reading: Any) -> Iterator[tuple[Batch, Real]]:
        """Yields batches of rows together with their P(label | row) (rows × labels)."""
        source = rows if isinstance(rows, Source) else self.read(rows, reading)
        for batch in batches(source, "scoring", Beside(self.threads)):
            most = max(1, CELLS // len(self.labels))
            for start in range(0, batch.n_rows, most):
                part = batch if batch.n_rows <= most else batch.slice(start, start + most)
                yield part, self.thresholds.honest(self.scores(part))

    def scores(self, batch: Batch) -> Real:
        """Returns uncalibrated log P(label | row) / P(not the label | row) (rows × labels)."""
        batch, _ = self._every._fitting(self._without_labels(batch), set())
        return self._odds(batch)

    def score(self, batch: Batch, want: str) -> tuple[Real, int]:
        """What it says of rows under its schema: log-odds as counted, or P(label | row); and that none is impossible."""
        odds = np.clip(self._odds(batch), -FARTHEST, FARTHEST)
        return odds if want == "log_odds" else self.thresholds.honest(odds), 0

    def score_unmet(self, want: str) -> float:
        """What it says of a label that no row has: as if half a row had it."""
        odds = -float(np.log(2.0 * max(float(self.tally.n_rows), 1.0) + 1.0))
        calibration = self.thresholds.calibration
        return odds if want == "log_odds" else float(sigmoid(calibration.slope * odds + calibration.shift))

    def lost_words(self) -> dict[str, int]:
        """The columns none of whose words is left: labels are told by the prior there."""
        return {}

    def _odds(self, batch: Batch) -> Real:
        if not self.labels:
            return np.zeros((batch.n_rows, 0))
        threads = n_threads(self.threads)
        if self._weighed is not None:
            said_by_words = self._weighed.scores(batch, threads)
        else:
            said_by_words = np.zeros((batch.n_rows, len(self.labels)))
            for words in self._words:
                said_by_words += words.scores(words.lexicon.bags(batch, words.sums, threads), threads)
        return self._add_up(said_by_words, self._of_rest(batch) if self._rest else None)

    def _add_up(self, said_by_words: Real, said_by_rest: Real | None) -> Real:
        """The log-odds of rows, (rows, labels), from what their words say and what all other columns say.

        The prior alone answers where a row is impossible with the label and without it, and for a label that every row has: there
        are no rows without it to compare with.
        """
        odds = self._prior + said_by_words
        if said_by_rest is not None:
            odds = np.where(np.isnan(said_by_rest), self._prior, odds + said_by_rest)
        if self._on_every_row.any():
            odds[:, self._on_every_row] = self._prior[self._on_every_row]
        return odds

    @property
    def _prior(self) -> Real:
        """The log-odds of each label before anything is known of a row."""
        return self.log_prior_odds if self._weighed is None else self._weighed.log_prior

    @cached_property
    def _on_every_row(self) -> NDArray[np.bool_]:
        """Which labels every row counted has."""
        return np.asarray(self.n_rows >= float(self.tally.n_rows))

    def _without_labels(self, batch: Batch) -> Batch:
        """The rows without the columns that their labels are in."""
        for name in self.schema.labels.columns if self.schema.labels is not None else ():
            batch = batch.without(name) if name in batch.names else batch
        return batch

    def _of_rest(self, batch: Batch) -> Real:
        """What all columns but those of texts say of each label, (rows, labels), in log-odds; NaN where they are impossible with
        the label and without it."""
        return np.stack([self._of_label(model, batch) for model in self._rest], axis=1)

    def _of_label(self, model: Model, batch: Batch) -> Real:
        if len(model.classes) < 2:  # all rows have the label
            return np.zeros(batch.n_rows)
        fitting = model._fitting(batch, {"absent", "extra"})
        logs, n_impossible = model._kernel(*fitting, "log_posterior")  # which compares classes far out too
        odds = logs[:, 1] - logs[:, 0] - (model.log_prior[1] - model.log_prior[0])
        if n_impossible:
            odds[np.isneginf(model._kernel(*fitting, "log_joint")[0]).all(axis=1)] = np.nan
        return np.asarray(odds)

    def log_odds(self, rows: Any, **reading: Any) -> Real:
        """Returns uncalibrated log P(label | row) / P(not the label | row) (rows × labels), in the order of ``labels``."""
        plain = self.calibrated(None)
        return self._join(plain.scores(batch) for batch, _ in plain.stream(rows, **reading))

    @or_in_partitions
    def posterior(self, rows: Any, **reading: Any) -> Real:
        """Returns P(label | row) (rows × labels) in the order of ``labels``, for each label independently, so that rows
        do not sum to one.
        """
        return self._join(posterior for _, posterior in self.stream(rows, **reading))

    def _join(self, parts: Iterable[Real]) -> Real:
        """What is said of all rows, (rows, labels)."""
        return np.concatenate([np.zeros((0, len(self.labels))), *parts])

    @or_in_partitions
    def predict(
        self, rows: Any, *, top: int | None = None, at_least_one: bool = False, **reading: Any
    ) -> list[tuple[Label, ...]]:
        """Returns the labels of each row, the most probable first: those above their thresholds, or the ``top`` most
        probable.

        With ``at_least_one``, the most probable label is returned if none is above its threshold.
        """
        if top is not None:
            errors.check_whole("top", top, 1)
        parts = (self.choose_labels(posterior, top, at_least_one) for _, posterior in self.stream(rows, **reading))
        return list(chain.from_iterable(parts))

    def flags(self, posterior: Real, at_least_one: bool = False) -> NDArray[np.bool_]:
        """Returns which labels are above their thresholds (rows × labels)."""
        flags = posterior >= self.thresholds.probabilities
        if at_least_one and len(flags):
            none = np.flatnonzero(~flags.any(axis=1))
            flags[none, posterior[none].argmax(axis=1)] = True
        return np.asarray(flags)

    def choose_labels(
        self, posterior: Real, top: int | None = None, at_least_one: bool = False
    ) -> list[tuple[Label, ...]]:
        """Returns the labels of rows from their posteriors."""
        if top is not None:
            n = min(top, len(self.labels))
            best = np.argpartition(-posterior, n - 1, axis=1)[:, :n]
            order = np.lexsort((best, -np.take_along_axis(posterior, best, axis=1)), axis=1)
            return [tuple(self.labels[k] for k in row) for row in np.take_along_axis(best, order, axis=1).tolist()]
        result = []
        for shares, flags in zip(posterior, self.flags(posterior, at_least_one), strict=True):
            places = np.flatnonzero(flags)
            order = places[np.argsort(-shares[places], kind="stable")]
            result.append(tuple(self.labels[k] for k in order.tolist()))
        return result

    def records(self, posterior: Real, top: int | None = None, at_least_one: bool = False) -> list[dict[str, Any]]:
        """Returns one answer per row of posteriors: its labels and their probabilities."""
        place = {label: k for k, label in enumerate(self.labels)}
        return [
            {"labels": list(labels), "probabilities": [row[place[label]] for label in labels]}
            for labels, row in zip(self.choose_labels(posterior, top, at_least_one), posterior.tolist(), strict=True)
        ]

    # Looking

    def of_label(self, label: Label) -> Model:
        """Returns the yes/no model of one label, a ``Model`` with the classes True and False."""
        plain = replace(model_under(yes_no(self.tally, label), self.choice, None), threads=self.threads)
        if len(plain.classes) < 2 or (self._weighed is None and self.telling is None):
            return plain
        if self._weighed is None:
            return self._of_telling(label, plain)
        log_prior = np.array([0.0, self._weighed.log_prior[self.labels.index(label)]])
        parameters = self._weighed.parameters(label, plain)
        return replace(plain, parameters=parameters, log_prior=log_prior - np.logaddexp(*log_prior))

    def _of_telling(self, label: Label, plain: Model) -> Model:
        """The same of the words that tell most of a label."""
        k = self.labels.index(label)
        n_texts = np.array([float(self.tally.n_rows) - self.n_rows[k], self.n_rows[k]])
        words = {
            feature.name: column_parameters for feature, column_parameters in zip(self.texts, self._words, strict=True)
        }
        parameters = []
        for column_parameters in plain.parameters:
            column = words.get(column_parameters.features[0].name)
            if isinstance(column, TellingWords):
                sums = plain.tally.of(column_parameters.features[0].name)
                parameters.append(column.parameters(k, sums, column_parameters.features[0], n_texts))
            else:
                parameters.append(column_parameters)
        return replace(plain, parameters=tuple(parameters))

    def evidence_table(self, *, min_rows: int = 0) -> EvidenceTable:
        """Returns the same tables as ``Model.evidence_table``, with log-odds of each label. See
        ``docs/reference/evidence-table.md``.
        """
        models = [
            None if sure else self.of_label(label) for label, sure in zip(self.labels, self._on_every_row, strict=True)
        ]
        thresholds = self.thresholds
        calibration = {
            "slope": thresholds.calibration.slopes,
            "shift": thresholds.calibration.shifts,
            "threshold": thresholds.probabilities,
        }
        return evidence_table(models, self._prior, self.labels, calibration, self._every, min_rows, of_labels=True)

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
        model = self.of_label(label)
        k = self.labels.index(label)
        row = self._without_labels(row) if isinstance(row, Batch) else row
        explanation = self._explain_by_prior(model, k, row) if self._on_every_row[k] else model.explain(row)
        stale = self._weighed is not None and self._weighed.stale
        if self.calibration is not None:
            sign = 1.0 if explanation.winner is True else -1.0
            explanation = explanation.rescale(
                float(self.calibration.slopes[k]), sign * float(self.calibration.shifts[k])
            )
        return replace(explanation, stale=stale).of_label(label)

    def _explain_by_prior(self, model: Model, k: int, row: Any) -> Explanation:
        """The explanation of a label that every row has: the prior answers, whatever the row holds."""
        model._fitting(model._one_row(row), set())  # refuses what is not one row of these columns
        log_prior = np.array([0.0, self._prior[k]])
        log_prior -= np.logaddexp(*log_prior)
        winner = int(log_prior.argmax())
        explanation = make_explanation((NO, YES), log_prior, (), np.exp(log_prior), winner, 1 - winner)
        return replace(explanation, remarks=("every row has this label, so the prior decides",))

    def informative(self, label: Label, n: int = 10) -> Informative:
        """Returns the ``n`` values that best tell rows with a label from rows without."""
        label = find_label(label, self.labels)
        model = self.of_label(label)
        lacking = len(model.classes) > 1
        errors.require(lacking, "label", label, "a label that some rows do not have")
        return model.informative(n, [True]).of_label(label)

    def __str__(self) -> str:
        return f"LabelModel of {errors.many(len(self.labels), 'label')}, {errors.many(int(self.tally.n_rows), 'row')}"

    __repr__ = __str__
