"""MultiLabelClassifier, a yes/no decision for every label, as a scikit-learn estimator."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from banbury import errors
from banbury.arrays import Real
from banbury.estimators.guard import in_one_step
from banbury.estimators.rows import (
    WeighsEvidence,
    count_batch,
    labels_of,
    row_weights,
    rows_to_validate,
    sample_weights,
    with_absent_columns,
)
from banbury.labels import LabelModel, Thresholds
from banbury.labels.calibration import METHODS
from banbury.labels.model import find_label
from banbury.labels.weighing import FEWEST_ROWS, can_weigh
from banbury.learner import LabelSettings, Learner, settings_of
from banbury.model.explain import Explanation, Informative
from banbury.model.naive_bayes import check_seed, choice_of, is_auto
from banbury.quality.label_recipes import PlainLabels, WeighedLabels
from banbury.reading import Batch, n_threads
from banbury.reading.columns import is_missing
from banbury.rows.labelled import MemoryRows, load_rows
from banbury.scikit_learn import BaseEstimator, ClassifierMixin
from banbury.sums import sort_keys
from banbury.tally.label_sets import EVERY, LabelSets, LabelTarget, are_sets
from banbury.tally.schema import Schema
from banbury.tally.table import align_names
from banbury.tally.tally import Tally


class RowsWithLabelSets(NamedTuple):
    """Rows with their label sets. ``label_form`` is the form of ``y``: "sets", "flags" (a matrix), "sparse" (a sparse
    matrix) or "one" (one label per row); ``flag_labels`` are the labels of the columns of flags, otherwise empty.
    """

    batch: Batch
    sets: LabelSets
    label_form: str
    flag_labels: tuple[Any, ...]


class MultiLabelClassifier(WeighsEvidence[LabelModel], ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for any number of labels per row: one tally, and a yes/no model for every label.

    ``y`` has a list or set of labels for each row, or a matrix of flags (rows × labels), dense or sparse; ``predict``
    returns the same kind. Rows without labels count too. X is what ``NaiveBayesClassifier`` accepts. Learning and
    forgetting keep the tally exact; weights and thresholds do not change until ``refit``.

    Args:
        features: The families, as in ``NaiveBayesClassifier``.
        how: The estimator, as in ``bb.estimate``.
        alpha: The pseudo-count. "auto" chooses it on held-out rows, and for texts also whether all words are used or
            the 200 most informative words of each label.
        weigh: Whether to weigh words, categories and intervals of numbers and to learn corrections for all labels:
            "auto" (from 100 rows on), True, or False for plain counts.
        threshold: How probable a label must be to be predicted: "f1" (chosen for each label on held-out rows, and
            shrunk towards a common threshold for rare labels), a number, one number per label, None for one half
            without looking at held-out rows, or "auto" ("f1" from 100 rows on, otherwise None).
        at_least_one: Predicts the most probable label if no label reaches its threshold.
        calibrate: "temperature" calibrates with one number, "platt" with two per label. By default, two numbers for all
            labels are used when thresholds are chosen.
        missing: What to do with missing values, as in ``bb.count``.
        threads: The number of threads. It never changes the result.
        seed: The seed for everything that is drawn at random.

    After fitting, these attributes are set: ``classes_`` (the labels), ``tally_``, ``model_``, ``thresholds_`` and
    ``weighing_``.

    >>> import banbury as bb
    >>> texts = ["wheat and corn", "crude oil", "corn oil", "a quiet day"]
    >>> clf = bb.MultiLabelClassifier().fit(texts, [["grain"], ["fuel"], ["fuel", "grain"], []])
    >>> clf.predict(["wheat", "crude"])
    [('grain',), ('fuel',)]
    >>> clf.forget(["corn oil"], [["fuel", "grain"]]).tally_.n_rows
    3
    """

    classes_: NDArray[Any]
    n_features_in_: int
    _label_form: str  # of the first rows, as in ``RowsWithLabelSets``
    _flag_labels: tuple[Any, ...]  # of the first rows, as in ``RowsWithLabelSets``

    def __init__(
        self,
        features: Any = "auto",  # the families: "auto", one for all columns, or by column
        how: str = "mean",  # how parameters are estimated, such as "mle" or "mean"
        alpha: Any = "auto",  # the pseudo-count
        weigh: Any = "auto",  # whether to weigh evidence; "auto": if there are enough rows
        threshold: Any = "auto",  # how probable a label must be; "f1": chosen to maximise F1
        at_least_one: bool = False,  # whether each row gets the most probable label at least
        calibrate: str | None = None,  # the method of calibration; None for no calibration
        missing: str = "skip",  # "skip" missing values, or count them as a "category"
        threads: int | None = None,  # how many; None for all processors
        seed: int = 0,  # of everything drawn at random
    ) -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        self.features = features
        self.how = how
        self.alpha = alpha
        self.weigh = weigh
        self.threshold = threshold
        self.at_least_one = at_least_one
        self.calibrate = calibrate
        self.missing = missing
        self.threads = threads
        self.seed = seed

    def __sklearn_tags__(self) -> Any:
        """Returns the tags of scikit-learn, which say that a row can have several labels."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    # Learning

    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Counts the rows, weighs their evidence and chooses thresholds, all within these rows."""
        self._check_settings()
        labelled = self._read_sets(X, y)  # rows with label sets, and the form of y
        rows = self._rows(labelled, sample_weight)  # the same rows, encoded and with weights
        if not rows.names:
            raise errors.empty_data(None, "no row has a label and a positive weight, so there is nothing to learn")
        model = self._learn(rows)
        # The form of y, to which answers are converted back, and the labels of its columns if it was flags.
        self._label_form = labelled.label_form
        self._flag_labels = labelled.flag_labels
        self._keep(Learner(model.tally, settings_of(model, self.threads)))
        self._note_columns(model.schema)

    @in_one_step
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> None:
        """Learns from more rows. New labels, categories and words may come at any time. Thresholds and weights do not
        change.

        The first call settles the schema and sets thresholds to one half; ``refit`` chooses them.
        """
        self._check_settings()
        labelled = self._read_sets(X, y)  # rows with label sets, and the form of y
        if not self.__sklearn_is_fitted__():
            # How parameters are estimated.
            choice = choice_of(self.how, 1.0 if is_auto(self.alpha) else self.alpha, seed=0)
            schema = replace(self._schema(labelled.batch, more_to_come=True), labels=LabelTarget())
            # With which models are derived.
            settings = LabelSettings(choice, Thresholds.half(()), threads=self.threads)
            self._label_form = labelled.label_form
            self._flag_labels = labelled.flag_labels
            self._note_columns(schema)
            tally = count_batch(labelled.batch, schema, labelled.sets, sample_weight, self.threads)
            self._keep(Learner(tally, settings))
            return
        self._check_label_form(labelled)
        self._keep(self._learner.learn(self._count_more(labelled, sample_weight)))

    @in_one_step
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Removes rows that were learned, exactly. If they were never learned, an error is raised and nothing changes."""
        learner = self._learner_of_fit()
        learner = learner.forget(self._count_more(self._read_sets(X, y), sample_weight))
        self._keep(learner.under(learner.settings.without_forgotten(learner.tally)))

    @in_one_step
    def refit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Learns weights and thresholds again from rows that were already counted. The tally does not change."""
        learner = self._learner_of_fit()
        labelled = self._read_sets(X, y)  # rows with label sets, and the form of y
        self._check_columns(labelled.batch)
        rows = self._rows(labelled, sample_weight, learner.schema)
        if rows.tally != learner.tally:
            rows = rows.among(learner.tally)
        self._learner = learner.under(settings_of(self._learn(rows), self.threads))

    # Answers

    def predict(self, X: Any, top: int | None = None) -> Any:
        """Returns the labels of each row in the form of ``y``: tuples with the most probable label first, or flags.
        ``top`` returns that many labels per row, as tuples.
        """
        with self._lock:
            model = self._learner_of_fit().current
            batch = self._read_rows(X)
            if top is not None:
                return model.predict(batch, top=top)
            posterior = model.posterior(batch)  # rows × the labels of the model
            if self._label_form == "one":
                return self.classes_[self._with_absent_labels(model, posterior).argmax(axis=1)]
            if self._label_form == "sets":
                return model._choose_labels(posterior, at_least_one=bool(self.at_least_one))
            # 0 or 1, rows × ``classes_``.
            flags = self._with_absent_labels(model, model.flags(posterior, bool(self.at_least_one))).astype(np.int64)
            return flags if self._label_form == "flags" else csr_matrix(flags)

    def predict_proba(self, X: Any) -> Real:
        """Returns P(label | row) (rows × labels) in the order of ``classes_``, for each label independently.

        If ``y`` had exactly one label per row and no sets, the probabilities of a row are normalised.
        """
        with self._lock:
            model = self._learner_of_fit().current
            batch = self._read_rows(X)
            # Rows × ``classes_``.
            posterior = np.asarray(self._with_absent_labels(model, model.posterior(batch)), dtype=np.float64)
            if self._label_form != "one":
                return posterior
            totals = posterior.sum(axis=1, keepdims=True)  # of each row
            uniform = np.full(posterior.shape, 1.0 / posterior.shape[1])
            return np.where(totals > 0, posterior / np.where(totals > 0, totals, 1.0), uniform)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Returns the share of rows for which all labels are right, by weight. Raises an error if no row has labels and
        a weight.
        """
        self._learner_of_fit()
        if self._label_form != "sets":
            return float(super().score(X, y, sample_weight))
        labelled = self._read_sets(X, y)  # rows with label sets, and the form of y
        sets = labelled.sets  # the true labels of the rows
        weights = row_weights(sample_weight, labelled.batch)
        is_labelled = sets.has_target & (weights > 0)  # of each row
        if not is_labelled.any():
            raise errors.empty_data(None, "no row has labels and a positive weight, so there is nothing to score")
        # The true labels of each row; their numbers (``codes``) lie between two offsets.
        label_sets = (
            {sets.names[code] for code in sets.codes[start:end]} for start, end in pairwise(sets.offsets.tolist())
        )
        is_correct = np.array(  # of each row
            [set(predicted) == true_labels for predicted, true_labels in zip(self.predict(X), label_sets, strict=True)]
        )
        return float(np.average(is_correct[is_labelled], weights=weights[is_labelled]))

    def explain(self, row: Any, label: Any) -> Explanation:
        """Explains why a row gets a label or does not: the weight of evidence of every column and word, in decibans."""
        with self._lock:
            model: LabelModel = self._learner_of_fit().current
            label = self._find_label(label)
            if label in model.labels:
                return model.explain(row, label)
            remarks = ("the model has no rows with this label, so the prior alone rules it out",)
            fields = {"prior": math.inf, "evidence": (), "log_odds": math.inf, "remarks": remarks}
            return Explanation(f"not {label}", label, probability=1.0, probability_against=0.0, **fields)  # type: ignore[arg-type]

    def informative(self, label: Any, n: int = 10) -> Informative:
        """Returns the ``n`` values that best tell rows with a label from others; none for a label without rows."""
        with self._lock:
            model: LabelModel = self._learner_of_fit().current
            label = self._find_label(label)
            return model.informative(label, n) if label in model.labels else Informative({label: ()})

    @property
    def thresholds_(self) -> Thresholds:
        """How probable each label must be to be predicted."""
        return self._learner_of_fit().settings.thresholds  # type: ignore[no-any-return]

    def _rows_and_settings(self, X: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the rows X, and the settings by name, with which ``bb.cross_validate`` learns as this classifier
        does.
        """
        batch = rows_to_validate(X)
        settings = {name: getattr(self, name) for name in ("features", "how", "missing", "threads", "seed")}
        weighable = False  # whether some column can be weighed
        if isinstance(batch, Batch):
            templates = self._schema(batch).features.templates
            weighable = any(feature.family.has_cells or feature.reads_text for feature in templates)
        return batch, settings | self._settle_options(len(y), weighable)

    # Within

    def _check_settings(self) -> None:
        """Raises an error for an invalid ``seed``, ``weigh``, ``calibrate`` or ``threshold``."""
        check_seed(self.seed)
        if not is_auto(self.weigh) and not isinstance(self.weigh, (bool, np.bool_)):
            raise errors.unknown_choice("weigh", self.weigh, ["auto", True, False])
        if self.calibrate not in (None, *METHODS):
            raise errors.unknown_choice("calibrate", self.calibrate, METHODS)
        if isinstance(self.threshold, str) and self.threshold not in ("auto", "f1"):
            raise errors.unknown_choice("threshold", self.threshold, ["auto", "f1", 0.5])

    def _read_sets(self, X: Any, y: Any) -> RowsWithLabelSets:
        """Returns the rows X with their label sets y, in any form that ``fit`` accepts, and which form that was. Raises
        an error if their numbers differ, or if no row has labels.
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        batch = self._batch(X)
        # Below: the label sets of the rows, the form of y, and the labels of the columns of flags, if y is flags.
        if are_sets(y):
            sets = LabelSets.of(y)
            label_form = "sparse" if hasattr(y, "tocsr") else "flags" if sets.from_flags else "sets"
            flag_labels = sets.names if label_form != "sets" else ()
            if label_form == "sets" and sets.single and len(sets) > 1:
                errors.warn("every row has exactly one label, so use bb.NaiveBayesClassifier instead")
        else:
            labels = labels_of(y, "y").tolist()
            label_form = "one"
            flag_labels = ()
            sets = LabelSets.of([None if is_missing(label) else [label] for label in labels])
        if len(sets) != batch.n_rows:
            raise errors.length_mismatch("labels", len(sets), batch.n_rows)
        if not sets.has_target.any():
            raise errors.no_target(batch.n_rows, target=None)
        return RowsWithLabelSets(batch, sets, label_form, flag_labels)

    def _count_more(self, labelled: RowsWithLabelSets, sample_weight: Any) -> Tally:
        """Returns the tally of more rows with their label sets (``labelled``) under the existing schema.
        ``sample_weight``: one per row, or None.
        """
        self._check_columns(labelled.batch)
        schema = self._learner.schema
        return count_batch(align_names(labelled.batch, schema), schema, labelled.sets, sample_weight, self.threads)

    def _check_label_form(self, labelled: RowsWithLabelSets) -> None:
        """Raises BadSetting if more rows (``labelled``) come in another form than the first, or with labels that no
        flag stood for.
        """
        flag_labels = labelled.flag_labels  # of the new rows; ``self._flag_labels`` are those of the first rows
        errors.require(not flag_labels or self._flag_labels, "y", "flags", "sets of labels, like the first rows")
        new_labels = sort_keys(name for name in labelled.sets.names if name not in self._flag_labels)
        if self._flag_labels and (new_labels or (flag_labels and len(flag_labels) != len(self._flag_labels))):
            actual = f"labels {errors.listed(map(repr, new_labels), 5)}" if new_labels else f"{len(flag_labels)} labels"
            raise errors.bad_setting(
                "y", actual, f"the {len(self._flag_labels)} labels of the first rows, which were flags"
            )

    def _rows(self, labelled: RowsWithLabelSets, sample_weight: Any, schema: Schema | None = None) -> MemoryRows:
        """Returns the rows with their label sets and weights (one per row, or None), encoded in memory under ``schema``
        or an inferred one.
        """
        settings = {"features": self.features, "missing": self.missing} if schema is None else {"schema": schema}
        weights = sample_weights(sample_weight, labelled.batch.n_rows)
        return load_rows(labelled.batch, labelled.sets, weights=weights, threads=n_threads(self.threads), **settings)

    def _learn(self, rows: MemoryRows) -> LabelModel:
        """Returns a model of these rows, with weights and thresholds according to the parameters."""
        # Whether weighing is possible, if it is to be chosen automatically.
        weighable = is_auto(self.weigh) and rows.n_labelled >= FEWEST_ROWS and can_weigh(rows.tally, rows.n_rows)
        # By name. Too large a problem is not weighed by default; if weighing is requested, it raises an error.
        options = self._settle_options(rows.n_labelled, weighable)
        # Of both kinds of learning.
        settings = self.how, options["threshold"], self.calibrate, int(self.seed)
        unweighed_learning = PlainLabels(*settings, alpha=options["alpha"])  # type: ignore[arg-type]
        unweighed_learning.check()
        return WeighedLabels(*settings).learn(rows) if options["weigh"] else unweighed_learning.learn(rows)  # type: ignore[arg-type]

    def _settle_options(self, n_rows: int, weighable: bool) -> dict[str, Any]:
        """Returns the options in place of "auto", for learning from ``n_rows`` rows: if they are few, nothing is
        weighed or chosen by default. ``weighable``: whether weighing is possible.
        """
        has_enough_rows = n_rows >= FEWEST_ROWS
        threshold = self.threshold  # "f1", None, a number, or one per label
        if isinstance(threshold, str):
            threshold = None if threshold == "auto" and not has_enough_rows else "f1"
        alpha = 1.0 if isinstance(self.alpha, str) and not has_enough_rows else self.alpha
        weigh = has_enough_rows and weighable if is_auto(self.weigh) else bool(self.weigh)
        return {"weigh": weigh, "threshold": threshold, "calibrate": self.calibrate, "alpha": alpha}

    def _keep(self, learner: Learner) -> None:
        """Stores a learner and sets ``classes_`` to its labels, or to those of the flags (``_flag_labels``)."""
        # The labels; EVERY, the class of all rows, is none.
        names = self._flag_labels or sort_keys(name for name in learner.classes if name != EVERY)
        array = np.array(names)  # which may have changed their types
        self.classes_ = array if array.tolist() == list(names) else np.array(names, dtype=object)
        self._learner = learner

    def _find_label(self, label: Any) -> Any:
        """Returns the label as ``classes_`` lists it, with its own type. In a matrix of flags it may have no rows."""
        return find_label(label, self.classes_.tolist())

    def _with_absent_labels(self, model: LabelModel, values: NDArray[Any]) -> NDArray[Any]:
        """Returns ``values``, probabilities or flags (rows × the labels of the model), as rows × ``classes_``, with
        zeros in the columns of labels that have no rows.
        """
        return with_absent_columns(values, model.labels, self.classes_)
