"""MultiLabelClassifier: a yes or no for every label, as scikit-learn estimators are used."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from banbury import errors
from banbury.arrays import Real
from banbury.estimators.guard import in_one_step
from banbury.estimators.rows import WeighsEvidence, labels_of, part_of, sample_weights, to_validate
from banbury.labels import LabelModel, Thresholds
from banbury.labels.calibration import METHODS
from banbury.labels.model import find_label
from banbury.labels.weighing import FEWEST_ROWS, can_weigh
from banbury.learner import LabelSettings, Learner, settings_of
from banbury.model.explain import Explanation, Informative
from banbury.model.naive_bayes import check_seed, choice_of, is_auto
from banbury.quality.label_recipes import PlainLabels, WeighedLabels
from banbury.reading import Batch, n_threads
from banbury.reading.columns import missing
from banbury.rows.labelled import MemoryRows, load_rows
from banbury.scikit_learn import BaseEstimator, ClassifierMixin
from banbury.sums import in_order
from banbury.tally.label_sets import EVERY, LabelSets, LabelTarget, are_sets
from banbury.tally.schema import Schema
from banbury.tally.table import Held, Labels, Table, align_names


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
    _kind: str  # how labels were given: "sets", "flags", "sparse" or "one"
    _columns: tuple[Any, ...]  # of flags

    def __init__(
        self,
        features: Any = "auto",
        how: str = "mean",
        alpha: Any = "auto",
        weigh: Any = "auto",
        threshold: Any = "auto",
        at_least_one: bool = False,
        calibrate: str | None = None,
        missing: str = "skip",
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
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
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    # Learning

    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Counts the rows, weighs their evidence and chooses thresholds, all within these rows."""
        self._check_settings()
        batch, sets, kind, columns = self._read_sets(X, y)
        rows = self._rows(batch, sets, sample_weight)
        if not rows.names:
            raise errors.empty_data(None, "no row has a label and a positive weight, so there is nothing to learn")
        model = self._learn(rows)
        self._kind, self._columns = kind, columns
        self._keep(Learner(model.tally, settings_of(model, self.threads)))
        self._note_columns(model.schema)

    @in_one_step
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> None:
        """Learns from more rows. New labels, categories and words may come at any time. Thresholds and weights do not
        change.

        The first call settles the schema and sets thresholds to one half; ``refit`` chooses them.
        """
        self._check_settings()
        batch, sets, kind, columns = self._read_sets(X, y)
        if not self.__sklearn_is_fitted__():
            choice = choice_of(self.how, 1.0 if is_auto(self.alpha) else self.alpha, 0)
            table = Table.of(batch, labelled=False, features=self.features, missing=self.missing)  # type: ignore[arg-type]
            schema = replace(table.settle_schema(batch, True), labels=LabelTarget())
            settings = LabelSettings(choice, Thresholds.half(()), threads=self.threads)
            self._kind, self._columns = kind, columns
            self._note_columns(schema)
            self._keep(Learner(part_of(batch, schema, sets, sample_weight, self.threads), settings))
            return
        learner = self._learner
        self._check_columns(batch)
        self._check_kind(sets, columns)
        batch = align_names(batch, learner.schema)
        self._keep(learner.learn(part_of(batch, learner.schema, sets, sample_weight, self.threads)))

    @in_one_step
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Removes rows that were learned, exactly. If they were never learned, an error is raised and nothing changes."""
        learner = self._learner_of_fit()
        batch, sets, _, _ = self._read_sets(X, y)
        self._check_columns(batch)
        learner = learner.forget(
            part_of(align_names(batch, learner.schema), learner.schema, sets, sample_weight, self.threads)
        )
        self._keep(learner.under(learner.settings.without_forgotten(learner.tally)))

    @in_one_step
    def refit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Learns weights and thresholds again from rows that were already counted. The tally does not change."""
        learner = self._learner_of_fit()
        batch, sets, _, _ = self._read_sets(X, y)
        self._check_columns(batch)
        rows = self._rows(batch, sets, sample_weight, learner.schema)
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
            posterior = model.posterior(batch)
            if self._kind == "one":
                return self.classes_[self._wide(model, posterior).argmax(axis=1)]
            if self._kind == "sets":
                return model.choose_labels(posterior, at_least_one=bool(self.at_least_one))
            flags = self._wide(model, model.flags(posterior, bool(self.at_least_one))).astype(np.int64)
            return flags if self._kind == "flags" else csr_matrix(flags)

    def predict_proba(self, X: Any) -> Real:
        """Returns P(label | row) (rows × labels) in the order of ``classes_``, for each label independently.

        If ``y`` had exactly one label per row and no sets, the probabilities of a row are normalised.
        """
        with self._lock:
            model = self._learner_of_fit().current
            batch = self._read_rows(X)
            posterior = np.asarray(self._wide(model, model.posterior(batch)), dtype=np.float64)
            if self._kind != "one":
                return posterior
            total = posterior.sum(axis=1, keepdims=True)
            even = np.full(posterior.shape, 1.0 / posterior.shape[1])
            return np.where(total > 0, posterior / np.where(total > 0, total, 1.0), even)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Returns the share of rows for which all labels are right."""
        self._learner_of_fit()
        if self._kind != "sets":
            return float(super().score(X, y, sample_weight))
        batch, sets, _, _ = self._read_sets(X, y)
        row_weights = Labels.without_target(sample_weights(sample_weight, batch.n_rows), n_threads(self.threads))
        row_weights.check_length(batch.n_rows)
        weights = row_weights.weights_of(batch)
        is_labelled = sets.has_target if weights is None else sets.has_target & (weights > 0)
        if not is_labelled.any():
            raise errors.empty_data(None, "no row has labels and a positive weight, so there is nothing to score")
        true = ({sets.names[k] for k in sets.codes[a:b]} for a, b in pairwise(sets.offsets.tolist()))
        right = np.array(
            [set(predicted) == true_labels for predicted, true_labels in zip(self.predict(X), true, strict=True)]
        )
        return float(np.average(right[is_labelled], weights=None if weights is None else weights[is_labelled]))

    def explain(self, row: Any, label: Any) -> Explanation:
        """Explains why a row gets a label or does not: the weight of evidence of every column and word, in decibans."""
        with self._lock:
            model: LabelModel = self._learner_of_fit().current
            label = self._find_label(label)
            if label in model.labels:
                return model.explain(row, label)
            remarks = ("the model has no rows with this label, so the prior alone rules it out",)
            nothing = {"prior": math.inf, "evidence": (), "log_odds": math.inf, "remarks": remarks}
            return Explanation(f"not {label}", label, 1.0, 0.0, **nothing)  # type: ignore[arg-type]

    def informative(self, label: Any, n: int = 10) -> Informative:
        """Returns the ``n`` values that best tell rows with a label from rows without."""
        with self._lock:
            model: LabelModel = self._learner_of_fit().current
            label = self._find_label(label)
            return model.informative(label, n) if label in model.labels else Informative({label: ()})

    @property
    def thresholds_(self) -> Thresholds:
        """How probable each label must be to be predicted."""
        return self._learner_of_fit().settings.thresholds  # type: ignore[no-any-return]

    def validation(self, X: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the rows and settings with which ``bb.cross_validate`` learns as this classifier does."""
        batch = to_validate(X)
        settings = {name: getattr(self, name) for name in ("features", "how", "missing", "threads", "seed")}
        weighable = False
        if isinstance(batch, Batch):
            schema = Table.of(batch, labelled=False, features=self.features).settle_schema(batch)
            weighable = any(f.family.has_cells or f.reads_text for f in schema.features)
        return batch, settings | self._settle_options(len(y), weighable)

    # Within

    def _check_settings(self) -> None:
        check_seed(self.seed)
        if not is_auto(self.weigh) and not isinstance(self.weigh, (bool, np.bool_)):
            raise errors.unknown_choice("weigh", self.weigh, ["auto", True, False])
        if self.calibrate not in (None, *METHODS):
            raise errors.unknown_choice("calibrate", self.calibrate, METHODS)
        if isinstance(self.threshold, str) and self.threshold not in ("auto", "f1"):
            raise errors.unknown_choice("threshold", self.threshold, ["auto", "f1", 0.5])

    def _read_sets(self, X: Any, y: Any) -> tuple[Batch, LabelSets, str, tuple[Any, ...]]:
        """The rows, their labels, how these were given, and the columns of flags."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        batch = self._batch(X)
        if are_sets(y):
            sets = LabelSets.of(y)
            kind = "sparse" if hasattr(y, "tocsr") else "flags" if sets.from_flags else "sets"
            columns = sets.names if kind != "sets" else ()
            if kind == "sets" and sets.single and len(sets) > 1:
                errors.warn("every row has exactly one label, so use bb.NaiveBayesClassifier instead")
        else:
            labels = labels_of(y, "y").tolist()
            kind = "one"
            columns = ()
            sets = LabelSets.of([None if missing(label) else [label] for label in labels])
        if len(sets) != batch.n_rows:
            raise errors.length_mismatch("labels", len(sets), batch.n_rows)
        if not sets.has_target.any():
            raise errors.no_target(batch.n_rows, None)
        return batch, sets, kind, columns

    def _check_kind(self, sets: LabelSets, columns: tuple[Any, ...]) -> None:
        """Raises where more rows have flags and the first had none, or labels that no flag of the first rows stands for."""
        errors.require(not columns or self._columns, "y", "flags", "sets of labels, like the first rows")
        new = in_order(name for name in sets.names if name not in self._columns)
        if self._columns and (new or (columns and len(columns) != len(self._columns))):
            actual = f"labels {errors.listed(map(repr, new), 5)}" if new else f"{len(columns)} labels"
            raise errors.bad_setting(
                "y", actual, f"the {len(self._columns)} labels of the first rows, which were flags"
            )

    def _rows(self, batch: Batch, sets: LabelSets, sample_weight: Any, schema: Schema | None = None) -> MemoryRows:
        settings = {"features": self.features, "missing": self.missing} if schema is None else {"schema": schema}
        weights = sample_weights(sample_weight, batch.n_rows)
        return load_rows(Held((batch,)), sets, weights=weights, threads=n_threads(self.threads), **settings)

    def _learn(self, rows: MemoryRows) -> LabelModel:
        """Counts, weighs and chooses thresholds within these rows."""
        weighable = is_auto(self.weigh) and rows.n_labelled >= FEWEST_ROWS and can_weigh(rows.tally, rows.n_rows)
        # Where there is too much, nothing is weighed unless it is asked for, and then refused by name.
        options = self._settle_options(rows.n_labelled, weighable)
        common = self.how, options["threshold"], self.calibrate, int(self.seed)
        plain = PlainLabels(*common, alpha=options["alpha"])  # type: ignore[arg-type]
        plain.check()
        return WeighedLabels(*common).learn(rows) if options["weigh"] else plain.learn(rows)  # type: ignore[arg-type]

    def _settle_options(self, n_rows: int, weighable: bool) -> dict[str, Any]:
        """What is weighed and chosen: of few rows nothing, unless it was asked for."""
        enough = n_rows >= FEWEST_ROWS
        threshold = self.threshold
        if isinstance(threshold, str):
            threshold = None if threshold == "auto" and not enough else "f1"
        alpha = 1.0 if isinstance(self.alpha, str) and not enough else self.alpha
        weigh = enough and weighable if is_auto(self.weigh) else bool(self.weigh)
        return {"weigh": weigh, "threshold": threshold, "calibrate": self.calibrate, "alpha": alpha}

    def _keep(self, learner: Learner) -> None:
        names = self._columns or in_order(name for name in learner.classes if name != EVERY)
        array = np.array(names)
        self.classes_ = array if array.tolist() == list(names) else np.array(names, dtype=object)
        self._learner = learner

    def _find_label(self, label: Any) -> Any:
        """A label as ``classes_`` lists it, which some rows may have or, where ``y`` had flags, none."""
        return find_label(label, self.classes_.tolist())

    def _wide(self, model: LabelModel, columns: NDArray[Any]) -> NDArray[Any]:
        """With a column for each label, those without rows too."""
        names = self.classes_.tolist()
        if tuple(names) == model.labels:
            return columns
        place = {name: k for k, name in enumerate(names)}
        wide = np.zeros((len(columns), len(names)), dtype=columns.dtype)
        wide[:, [place[label] for label in model.labels]] = columns
        return wide
