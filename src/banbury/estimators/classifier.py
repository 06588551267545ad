"""NaiveBayesClassifier, naive Bayes as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.estimators.class_weights import BALANCED, ClassifierSettings, check_class_weight
from banbury.estimators.guard import in_one_step
from banbury.estimators.rows import (
    LearnsRows,
    as_array,
    count_batch,
    labels_of,
    rows_to_validate,
    sample_weights,
    sort_classes,
    warn_of_missing_labels,
    with_absent_columns,
)
from banbury.learner import Learner
from banbury.model.explain import Explanation, Informative
from banbury.model.naive_bayes import Model, choice_of, warn_about_other_columns
from banbury.quality.calibration import Calibration
from banbury.reading import Batch, n_threads
from banbury.scikit_learn import BaseEstimator, ClassifierMixin
from banbury.tally.partitioned import or_in_partitions, partitions_of
from banbury.tally.schema import Schema
from banbury.tally.table import align_names, class_number
from banbury.tally.tally import Tally, count
from banbury.threads import look_up

if TYPE_CHECKING:
    from banbury.quality import Tuning

CHOOSING_FOLDS = 10  # folds that are held out in turn to choose or calibrate something
VALUES_TO_CHOOSE = {
    "alpha": "auto",
    "features": "choose",
}  # the value of each parameter that has it chosen on held-out rows
PARAMETERS_OF_VALIDATION = ("features", "how", "alpha", "class_prior", "missing", "calibrate", "seed", "threads")


class NaiveBayesClassifier(LearnsRows[Model], ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes for texts, tables of mixed columns and both, as a scikit-learn estimator.

    A list of strings is one text column. Strings, booleans and numbers need no encoding, missing values are skipped,
    and new categories, words and classes may come at any time.

    Args:
        features: The families: "auto", one for all columns, or a mapping from column to family. "choose" chooses them
            as ``bb.tune`` does, within the training rows.
        how: The estimator, as in ``bb.estimate``.
        alpha: The pseudo-count, as in ``bb.estimate``. "auto" chooses it as ``bb.tune`` does, within the training rows;
            for texts without a declared model, the model too.
        class_prior: The class prior, as in ``bb.estimate``.
        missing: What to do with missing values, as in ``bb.count``.
        calibrate: "temperature", "platt" or "isotonic" calibrates the probabilities, using posteriors of rows that the
            model has not seen. A pseudo-count is then chosen by its calibrated posteriors.
        class_weight: "balanced", or a mapping from class to weight, as in scikit-learn. It multiplies the odds of each
            class, and "balanced" is a uniform class prior. Unlike ``sample_weight``, it does not change the tally, so
            that forgetting stays exact and smoothing stays the same.
        threads: The number of threads. It never changes the result.
        seed: The seed for everything that is drawn at random.

    After fitting, these attributes are set: ``classes_``, ``n_features_in_``, ``feature_names_in_`` (if columns have
    names), ``tally_``, ``model_``, ``alpha_``, and ``tuning_`` and ``calibration_`` if requested.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = bb.NaiveBayesClassifier().fit(X, y)
    >>> round(clf.score(X, y), 3)
    1.0
    >>> clf.forget(X[:10], y[:10]).partial_fit(X[:10], y[:10]).tally_ == bb.count(X, target=y, schema=clf.tally_.schema)
    True
    """

    classes_: NDArray[Any]
    n_features_in_: int
    tuning_: Tuning | None  # None if nothing was chosen
    _label_dtype: np.dtype[Any] | None  # of the labels; None if they are of several types

    def __init__(
        self,
        features: Any = "auto",  # the families: "auto", one for all columns, or by column
        how: str = "mean",  # how parameters are estimated, such as "mle" or "mean"
        alpha: Any = 1.0,  # the pseudo-count
        class_prior: Any = None,  # None for class frequencies, "uniform", or P(class)
        missing: str = "skip",  # "skip" missing values, or count them as a "category"
        threads: int | None = None,  # how many; None for all processors
        seed: int = 0,  # of everything drawn at random
        calibrate: str | None = None,  # the method of calibration; None for no calibration
        class_weight: Any = None,  # "balanced", or a factor by class
    ) -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        self.features = features
        self.missing = missing
        self.threads = threads
        self.how = how
        self.alpha = alpha
        self.class_prior = class_prior
        self.seed = seed
        self.calibrate = calibrate
        self.class_weight = class_weight

    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Learns from the rows and forgets everything learned before. Rows without a label are skipped, with a warning.

        For a Dask or Spark dataframe, ``y`` and ``sample_weight`` are column names, and the rows are counted on the
        cluster.
        """
        self._check_class_weight()
        self.tuning_ = None
        if partitions_of(X) is not None:
            return self._begin(self._learn_partitions(X, y, sample_weight))
        batch, labels = self._read_rows_and_labels(X, y)  # labels: one per row
        # Whether something is chosen on held-out rows.
        chooses = self._names_to_choose or self.calibrate is not None
        # The method that learns from all rows.
        learn = self._learn_by_choosing if chooses else self._learn_first
        return self._begin(learn(batch, labels, sample_weight), labels.dtype)

    def _learn_partitions(self, frame: Any, target: Any, weights: Any) -> Learner:
        """Returns a learner of ``frame``, a Dask or Spark dataframe whose rows are counted on the cluster. ``target``,
        ``weights``: column names, or None for no weights. Parameters that are to be chosen are chosen, and a
        calibration is learned.
        """
        if not self._names_to_choose and self.calibrate is None:
            settings = self._settings(self.alpha)
            tally = count(frame, target, weights=weights, features=self._families, **self._counting)
            warn_of_missing_labels(tally.skipped)
            return Learner(tally, settings)
        from banbury.quality import tune

        names = ("how", "class_prior", "seed", "features", "calibrate")  # of parameters that ``tune`` takes too
        tuning_settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        tuning_settings |= {"alpha": self._alpha_tried, "weights": weights}
        tuning = tune(frame, target, folds=CHOOSING_FOLDS, **tuning_settings, **self._counting)
        warn_of_missing_labels(tuning.tally.skipped)
        return self._learner_of(tuning)

    @property
    def _counting(self) -> dict[str, Any]:
        """The options for counting, as keyword arguments of ``bb.count``."""
        return {"missing": self.missing, "threads": self.threads}

    def _settings(self, alpha: Any, calibration: Calibration | None = None, weighing: Any = None) -> ClassifierSettings:
        """Returns the settings with which models are derived: the estimator's current parameters, with the pseudo-count
        ``alpha``, a calibration, and weights of evidence (``weighing``).
        """
        choice = choice_of(self.how, alpha, self.seed)
        return ClassifierSettings(choice, self.class_prior, calibration, weighing, self.threads, self.class_weight)

    def _begin(self, learner: Learner, dtype: np.dtype[Any] | None = None) -> None:
        """Adopts the learner that ``fit`` made. Raises an error if no model can be derived from it. ``dtype``: the type
        of the labels; that of the classes unless given.
        """
        check_class_weight(self.class_weight, learner.classes)
        _ = learner.current  # derives the model
        self._keep(learner, dtype_of(learner.classes) if dtype is None else dtype)

    @in_one_step
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> None:
        """Learns from more rows. New classes, categories and words may come at any time; ``classes`` can name some in
        advance.

        The first call settles the schema. From then on, batches give the same tally in any order and of any size.
        Learning one text costs as much as its words, however many were learned before.
        """
        for name in self._names_to_choose:
            raise errors.BadSetting(
                f"{name}={VALUES_TO_CHOOSE[name]!r} needs all rows at once, but partial_fit sees only some of them at a time. "
                "Choose with fit or bb.tune, then pass the choice to partial_fit.",
                name=name,
            )
        self._check_class_weight()
        if classes is None and sample_weight is None and self._learn_texts(X, y):
            return
        # Classes that exist even without rows.
        declared = frozenset() if classes is None else frozenset(labels_of(classes, "classes").tolist())
        batch, labels = self._read_rows_and_labels(X, y)  # labels: one per row
        if not self.__sklearn_is_fitted__():  # the first call
            learner = self._learn_first(batch, labels, sample_weight, more_to_come=True)
            self._keep(learner.under(replace(learner.settings, declared=declared)), labels.dtype)
            self.tuning_ = None
            if self.calibrate is not None:
                errors.warn(errors.not_calibrated("partial_fit"))
            return
        tally = self._count_more(batch, labels, sample_weight)  # of these rows
        self._label_dtype = _common_dtype(self._label_dtype, labels.dtype)
        declared |= self._learner.settings.declared
        self._take_over(self._learner.learn, tally, declared, "partial_fit")

    def _learn_texts(self, texts: Any, labels: Any) -> bool:
        """A shortcut for ``partial_fit``: learns ``texts``, a list of strings, with ``labels``, a list of one known
        class for each, and returns True.

        Returns False, without learning anything, if one of both is something else.
        """
        if not (type(texts) is type(labels) is list and texts and self.__sklearn_is_fitted__()):
            return False
        learner = self._learner
        # A calibration must be dropped, and labels that are no texts must be converted.
        if learner.settings.calibration is not None or (
            self._label_dtype is not None and self._label_dtype.kind not in "UT"
        ):
            return False
        # None if some label is not a known class.
        new_learner = learner.learn_texts(texts, labels, n_threads(self.threads))
        if new_learner is not None:
            self._learner = new_learner
        return new_learner is not None

    @in_one_step
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Removes rows that were learned, exactly.

        If it shows that the rows were never learned, because a count would become negative, an error is raised and
        nothing changes.
        """
        declared = self._learner_of_fit().settings.declared  # classes that exist even without rows
        batch, labels = self._read_rows_and_labels(X, y)  # labels: one per row
        tally = self._count_more(batch, labels, sample_weight)  # of these rows
        self._take_over(self._learner.forget, tally, declared, "forget")

    def _take_over(
        self, change: Callable[..., Learner], tally: Tally, declared: frozenset[Any], method_name: str
    ) -> None:
        """Replaces the learner by ``change`` (its method learn or forget) of it with the tally of some rows, and sets
        ``classes_``. Drops a calibration with a warning, since it was learned from other rows. ``declared``: classes
        that exist even without rows; ``method_name``: the name of the public method.
        """
        settings_before = self._learner.settings
        self._learner = change(tally, replace(settings_before, declared=declared, calibration=None))
        self.classes_ = sort_classes(declared.union(self._learner.classes), self._label_dtype)
        if settings_before.calibration is not None:
            errors.warn(errors.not_calibrated(method_name))

    def _rows_and_settings(self, X: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the rows and settings with which ``bb.cross_validate`` counts and estimates as this classifier does."""
        settings = {name: getattr(self, name) for name in PARAMETERS_OF_VALIDATION} | {"features": self._families}
        return rows_to_validate(X), settings | self._prior_to_validate()

    @or_in_partitions
    def predict(self, X: Any) -> NDArray[Any]:
        """Returns the most probable class of each row; for a Dask or Spark dataframe, the dataframe with an additional
        column.
        """
        with self._lock:
            model = self._learner_of_fit().current
            # Rows × classes, as the most probable class needs them; texts are scored without being read as a table.
            if (scores := model._score_texts(X, model._scores_for_class)) is None:
                scores = model._score_all(self._read_rows(X), model._scores_for_class, reading={})
            has_same_classes = len(self.classes_) == len(model.classes)  # none is declared without rows
            labels = self.classes_ if has_same_classes else as_array(model.classes, self._label_dtype)
            return look_up(labels, model._best(scores), model.threads)  # the label of each row's class number

    @or_in_partitions
    def predict_proba(self, X: Any) -> Real:
        """Returns P(class | row) in the order of ``classes_``; for a Dask or Spark dataframe, the dataframe with a
        column per class.
        """
        return self._answers(X, Model.posterior, absent=0.0)

    def predict_log_proba(self, X: Any) -> Real:
        """Returns log P(class | row), rows × classes, in the order of ``classes_``."""
        return self._answers(X, Model.log_posterior, absent=-np.inf)

    def predict_joint_log_proba(self, X: Any) -> Real:
        """Returns log P(class) + log P(row | class), rows × classes, in the order of ``classes_``."""
        return self._answers(X, Model.log_joint, absent=-np.inf)

    def explain(self, row: Any, against: Any = None, *, held_out: bool = False, label: Any = None) -> Explanation:
        """Explains why a row gets its class: the weight of evidence of every column and word, in decibans.

        ``against`` is the class to compare with, by default the runner-up. ``held_out`` explains a row of the training
        data, with the class ``label``, as if it had not been learned. See ``Model.explain``.
        """
        with self._lock:
            # ``current`` may be updated in place when rows are learned, and rows are left out of a fixed tally only.
            learner = self._learner_of_fit()
            model: Model = learner.model if held_out else learner.current
            if label is not None and self._find_class(label) not in model.classes:
                raise errors.BadSetting(
                    f"the model has no rows of class {label!r}, so none can be left out. Explain it without held_out=True.",
                    setting="label",
                    value=label,
                )
            if against is None or (opponent := self._find_class(against)) in model.classes:
                return model.explain(row, against, held_out=held_out, label=label)
            return model.explain(row, held_out=held_out, label=label).against_unseen(opponent)

    def informative(self, n: int = 10, classes: Any = None) -> Informative:
        """Returns the ``n`` values that best tell each class, or each of ``classes``, from the others. See
        ``Model.informative``.
        """
        with self._lock:
            model: Model = self._learner_of_fit().current
            if len(self.classes_) == len(model.classes) or classes is None or isinstance(classes, (str, bytes)):
                return model.informative(n, classes)
            names = [self._find_class(name) for name in classes]  # some may be declared and have no rows
            informative = model.informative(n, [name for name in names if name in model.classes])
            return replace(informative, ratios={name: informative.ratios.get(name, ()) for name in names})

    def _find_class(self, name: Any) -> Any:
        """Returns the class named ``name`` as ``classes_`` lists it, with its own type. It may have been declared and
        have no rows yet. Raises an error for an unknown class.
        """
        classes = self.classes_.tolist()
        return classes[class_number(name, classes)]

    @property
    def calibration_(self) -> Calibration | None:
        """The calibration, or None if there is none."""
        return self._learner_of_fit().settings.calibration  # type: ignore[no-any-return]

    # Within

    @property
    def _names_to_choose(self) -> list[str]:
        """The names of the parameters that are to be chosen, which needs all rows at once."""
        settings = {name: getattr(self, name) for name in VALUES_TO_CHOOSE}  # by parameter
        return [name for name, value in settings.items() if isinstance(value, str) and value == VALUES_TO_CHOOSE[name]]

    @property
    def _alpha_tried(self) -> Any:
        """What is tuned: "auto" for several pseudo-counts, or the given one."""
        return "auto" if "alpha" in self._names_to_choose else self._settings(self.alpha).choice.alpha

    def _learn_by_choosing(self, batch: Batch, labels: Any, sample_weight: Any) -> Learner:
        """Returns a learner of all rows of ``batch``, after choosing the pseudo-count, the families or a calibration on
        held-out rows. ``labels``, ``sample_weight``: one per row; the latter may be None.
        """
        from banbury.quality.recipes import Calibrated, Plain
        from banbury.quality.tuning import Tuned
        from banbury.rows.labelled import load_rows

        weights = sample_weights(sample_weight, batch.n_rows)  # one per row, or None
        rows = load_rows(batch, labels, features=self.features, weights=weights, **self._counting)
        if rows.n_labelled < 2:
            raise errors.empty_data(None, "choosing and calibrating need at least two rows")
        warn_of_missing_labels(rows.skipped)
        names = ("how", "class_prior", "seed", "calibrate")
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        if not self._names_to_choose:  # only a calibration is learned, so that there is nothing to compare
            method = settings.pop("calibrate")
            recipe = Calibrated(Plain(alpha=self._alpha_tried, **settings), method)
            model: Any = recipe.learn(recipe.under(rows))
            return Learner(model.tally, self._settings(self.alpha, model.calibration))
        families = "choose" if "features" in self._names_to_choose else "auto"
        # The settings to compare.
        grid = Tuned.of(alpha=self._alpha_tried, features=families, **settings)
        return self._learner_of(grid.tune(rows, min(CHOOSING_FOLDS, rows.n_labelled)))

    def _learner_of(self, tuning: Tuning) -> Learner:
        """Returns the learner with the best settings of a tuning, which becomes ``tuning_`` if a parameter was to be
        chosen.
        """
        self.tuning_ = tuning if self._names_to_choose else None
        return Learner(tuning.tally, self._settings(tuning.best["alpha"], tuning.calibration))

    def _learn_first(
        self, batch: Batch, labels: NDArray[Any], sample_weight: Any, more_to_come: bool = False
    ) -> Learner:
        """Returns a learner of the first rows, from which the schema is inferred. ``labels``, ``sample_weight``: one
        per row; the latter may be None; ``more_to_come``: whether further rows follow. Raises an error if no row has a
        label and a weight.
        """
        settings = self._settings(self.alpha)
        schema = self._schema(batch, more_to_come)
        tally = _count_rows(batch, schema, labels, sample_weight, self.threads)
        if not tally.classes:
            raise errors.empty_data(None, "every row has a missing label or a weight of zero")
        return Learner(tally, settings)

    def _count_more(self, batch: Batch, labels: NDArray[Any], sample_weight: Any) -> Tally:
        """Returns the tally of more rows under the existing schema. Warns about columns that it does not have.
        ``labels``, ``sample_weight``: one per row; the latter may be None.
        """
        self._check_columns(batch)
        schema = self._learner.schema
        if batch.named and "feature_names_in_" in self.__dict__ and batch.names != schema.columns:
            counted_columns = set(schema.columns)
            if extra := [name for name in batch.names if name not in counted_columns]:
                warn_about_other_columns(absent=[], extra=extra, warned=set())
        return _count_rows(align_names(batch, schema), schema, labels, sample_weight, self.threads)

    def _keep(self, learner: Learner, dtype: np.dtype[Any] | None) -> None:
        """Stores a learner and sets the attributes that follow from it. ``dtype``: the type of the labels, None for
        mixed types.
        """
        self.classes_ = sort_classes(learner.settings.declared.union(learner.classes), dtype)
        self._learner = learner
        self._label_dtype = dtype
        self._note_columns(learner.schema)

    # Weights of classes

    def _check_class_weight(self) -> None:
        """Raises BadSetting if ``class_weight`` is invalid or contradicts another parameter."""
        if self.class_weight is None:
            return
        check_class_weight(self.class_weight)
        errors.require(
            self.calibrate is None,
            "calibrate",
            self.calibrate,
            "None with class_weight, because calibration would undo the class weights",
        )
        if isinstance(self.class_weight, str) and self.class_prior is not None:
            raise errors.bad_setting(
                "class_prior", self.class_prior, "None with class_weight='balanced', which is a uniform class prior"
            )

    def _prior_to_validate(self) -> dict[str, Any]:
        """Returns the class prior for ``bb.cross_validate``: uniform for balanced class weights. Weights by class would
        depend on the fold, so they are refused.
        """
        if self.class_weight is None:
            return {}
        self._check_class_weight()
        errors.require(
            self.class_weight == BALANCED,
            "class_weight",
            self.class_weight,
            "None or 'balanced' here; scikit-learn's cross_validate accepts other values",
        )
        return {"class_prior": "uniform"}

    def _answers(self, X: Any, score: Callable[[Model, Batch], Real], absent: float) -> Real:
        """Returns the scores (rows × ``classes_``) that ``score`` computes from the model for the rows X. A declared
        class without rows gets the score ``absent``.
        """
        with self._lock:
            model = self._learner_of_fit().current
            return with_absent_columns(score(model, self._read_rows(X)), model.classes, self.classes_, absent)


def _count_rows(batch: Batch, schema: Schema, labels: NDArray[Any], weights: Any, threads: int | None) -> Tally:
    """Returns the tally of the rows of ``batch`` under a schema. ``labels``, ``weights``: one per row; weights may be
    None. Raises an error if no row has a label, and warns about those without.
    """
    tally = count_batch(batch, schema, labels, weights, threads)
    if tally.skipped == batch.n_rows:
        raise errors.no_target(batch.n_rows, target=None)
    warn_of_missing_labels(tally.skipped)
    return tally


def dtype_of(classes: tuple[Any, ...]) -> np.dtype[Any]:
    """Returns the NumPy type of the classes, or object unless they are numbers or booleans."""
    dtype = np.asarray(classes).dtype
    return dtype if dtype.kind in "biuf" else np.dtype(object)


def _common_dtype(first_dtype: np.dtype[Any] | None, second_dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Returns a NumPy type that holds labels of both types, of which the first may be None for mixed ones; None if only
    objects can.
    """
    if first_dtype is None or first_dtype == second_dtype or (first_dtype.kind in "UT" and second_dtype.kind in "UT"):
        return first_dtype
    return (
        np.result_type(first_dtype, second_dtype)
        if first_dtype.kind in "biuf" and second_dtype.kind in "biuf"
        else None
    )
