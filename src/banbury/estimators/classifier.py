"""The scikit-learn face: NaiveBayesClassifier. X and y live here only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.calibration import Calibration
from banbury.estimators.class_weights import BALANCED, check_class_weight, weighted_prior
from banbury.estimators.guard import in_one_step, noted
from banbury.estimators.rows import (
    TakesTables,
    as_array,
    labels_of,
    part_of,
    sample_weights,
    sorted_classes,
    tell_unlabelled,
    to_validate,
)
from banbury.explain import Explanation, Informative
from banbury.naive_bayes import LiveModel, Model, checked_choice, estimate, shares_by_class, tell_other_columns
from banbury.partitioned import elsewhere
from banbury.readers import Batch, n_threads
from banbury.schema import Schema
from banbury.scikit_learn import BaseEstimator, ClassifierMixin
from banbury.table import Table, aligned, class_number
from banbury.tally import Growing, Part, Tally, Touched, count
from banbury.threads import taken

if TYPE_CHECKING:
    from banbury.quality import Tuning

FOLDS = 10  # rows are left out in so many parts where something is chosen or calibrated
METHODS = ("temperature", "platt", "isotonic")
CHOSEN = {"alpha": "auto", "features": "choose"}  # settings, and the word that has them chosen
COUNTED_BY = ("features", "how", "alpha", "class_prior", "missing", "calibrate", "seed", "threads")


class NaiveBayesClassifier(TakesTables, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes for texts, tables of mixed columns and both, as scikit-learn estimators are used.

    A list of strings is a column of text. Strings, booleans and numbers are counted as they come, missing values are
    skipped, categories, words and classes may be new at any time. ``features`` chooses families ("auto", one for all columns,
    or a mapping by column), ``how``, ``alpha``, ``class_prior`` and ``seed`` are those of ``bb.estimate``, ``missing`` and
    ``threads`` those of ``bb.count``.

    ``alpha="auto"`` (of texts that nobody declared their model too) and ``features="choose"`` are chosen as ``bb.tune`` does,
    within the rows that are given to ``fit``.
    ``calibrate``: "temperature", "platt" or "isotonic" makes probabilities honest, learned from what models of the other rows say
    of each row; an α that is chosen is then the one that does best once it is calibrated.

    ``class_weight``: "balanced", or {class: weight}, 1 where a class has none: so many times as much does a row of the class
    weigh, as in scikit-learn. It multiplies the class's odds: the class prior is the share of each class's rows, or what
    ``class_prior`` says, times its weight, and "balanced" is a uniform prior. The tally stays that of the rows as they are,
    exact to forget from; so does what is said of a class by its own rows, which ``sample_weight`` instead would smooth by an α
    of fewer or more rows.

    After fitting: ``classes_``, ``n_features_in_``, ``feature_names_in_`` (if columns have names), ``tally_`` (the sums),
    ``model_`` (what was derived from them), ``alpha_``, and ``tuning_`` and ``calibration_`` where they were asked for.

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
    _tally: Tally | None  # what was handed out of it
    _live: LiveModel | None  # of what was counted; not handed out, since its words go on growing
    _frozen: Model | None  # the model that was handed out
    _touched: list[Touched]  # words that changed since the model was made
    _declared: frozenset[Any]  # classes named in advance
    _dtype: np.dtype[Any] | None  # of the labels
    alpha_: float
    tuning_: Tuning | None
    calibration_: Calibration | None

    def __init__(
        self,
        features: Any = "auto",
        how: str = "mean",
        alpha: Any = 1.0,
        class_prior: Any = None,
        missing: str = "skip",
        threads: int | None = None,
        seed: int = 0,
        calibrate: str | None = None,
        class_weight: Any = None,
    ) -> None:
        self.features, self.missing, self.threads = features, missing, threads
        self.how, self.alpha, self.class_prior, self.seed = how, alpha, class_prior, seed
        self.calibrate, self.class_weight = calibrate, class_weight

    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Counts the rows and forgets all that was learned before. Rows without a label are skipped, with a warning.

        Of a frame of Dask or Spark, which is counted where it is, ``y`` and ``sample_weight`` are names of columns.
        """
        self._check_class_weight()
        if elsewhere(X) is not None:
            self._fit_elsewhere(X, y, sample_weight)
            return
        batch, labels = self._checked(X, y)
        if self._chosen or self.calibrate is not None:
            growing, alpha, tuning, calibration = self._learned_by_choosing(batch, labels, sample_weight)
        else:
            growing = self._first(batch, labels, sample_weight)
            alpha, tuning, calibration = float(self.alpha), None, None
        check_class_weight(self.class_weight, growing.classes)
        model = self._estimated(growing.seen, alpha).calibrated(calibration)
        self._keep(growing, labels.dtype, frozenset())
        self._note_columns(growing.schema)
        self.alpha_, self.tuning_, self.calibration_ = alpha, tuning, calibration
        self._live = LiveModel(model)

    def _fit_elsewhere(self, X: Any, y: Any, sample_weight: Any) -> None:
        from banbury.quality import tune

        checked_choice(self.how, 1.0 if "alpha" in self._chosen else self.alpha, self.seed)
        counting = {"features": self.features, "weights": sample_weight, "missing": self.missing}
        alpha, tuning, calibration = self.alpha, None, None
        if self._chosen or self.calibrate is not None:
            settings = {"how": self.how, "class_prior": self.class_prior, "seed": self.seed}
            settings |= {"alpha": self.alpha, "calibrate": self.calibrate, "threads": self.threads}
            tuning = tune(X, y, folds=FOLDS, **counting, **settings)
            alpha, tally, calibration = tuning.best["alpha"], tuning.tally, tuning.calibration
        else:
            tally = count(X, y, **counting, threads=self.threads)
        tell_unlabelled(tally.skipped)
        check_class_weight(self.class_weight, tally.classes)
        model = self._estimated(tally, float(alpha)).calibrated(calibration)
        self._keep_tally(tally)
        self.alpha_, self.tuning_, self.calibration_ = float(alpha), tuning, calibration
        self._live = LiveModel(model)

    def _keep_tally(self, tally: Tally) -> None:
        """What was counted where rows are, as if it had been counted here."""
        dtype = np.asarray(tally.classes).dtype
        self._keep(Growing.of(tally), dtype if dtype.kind in "biuf" else np.dtype(object), frozenset())
        self._note_columns(tally.schema)

    @in_one_step
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> None:
        """Counts more rows. New classes, categories and words may come at any time; ``classes`` may name some in advance.

        The first call settles the schema; from then on any batches in any order give the tally of all rows at once. One text
        costs its words, however many were counted before.
        """
        for name in self._chosen:
            text = f"{name}={CHOSEN[name]!r} is chosen among all rows at once, and partial_fit sees some of them at a time."
            text += " Choose with fit or bb.tune, and give partial_fit what was chosen."
            raise errors.BadSetting(text, name=name)
        self._check_class_weight()
        if classes is None and sample_weight is None and self._learn_texts(X, y):
            return
        declared = frozenset() if classes is None else frozenset(labels_of(classes, "classes").tolist())
        batch, labels = self._checked(X, y)
        if not self.__sklearn_is_fitted__():
            growing = self._first(batch, labels, sample_weight, more_to_come=True)
            self._keep(growing, labels.dtype, declared)
            self._note_columns(growing.schema)
            self.alpha_, self.tuning_, self.calibration_ = float(self.alpha), None, None
            if self.calibrate is not None:
                errors.warn(errors.not_calibrated("partial_fit"))
            return
        part = self._more(batch, labels, sample_weight)
        dtype, declared = _common(self._dtype, labels.dtype), self._declared | declared
        known = self._growing.classes
        more = not set(known).issuperset(part.tally.classes)
        if more or dtype != self._dtype or declared != self._declared:
            self.classes_ = sorted_classes(declared.union(known, part.tally.classes), dtype)
        self._dtype, self._declared = dtype, declared
        self._grow(self._growing + part)
        self._drop_calibration("partial_fit")

    def _learn_texts(self, texts: Any, labels: Any) -> bool:
        """Counts a list of texts, all that a row has, of classes that are known; False if it is something else."""
        if not (type(texts) is type(labels) is list and self.__sklearn_is_fitted__() and self.calibration_ is None):
            return False
        if not texts or (self._dtype is not None and self._dtype.kind not in "UT"):
            return False
        growing = self._growing.add_texts(texts, labels, n_threads(self.threads))
        if growing is not None:
            self._grow(growing)
        return growing is not None

    @in_one_step
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Takes rows out again: the twin of ``partial_fit``.

        Rows that were never learned raise, and change nothing, wherever it shows: a value, word or class would be left fewer
        than no times.
        """
        self._check_fitted()
        batch, labels = self._checked(X, y)
        self._grow(self._growing - self._more(batch, labels, sample_weight))
        self.classes_ = sorted_classes(self._declared.union(self._growing.classes), self._dtype)
        self._drop_calibration("forget")

    def validation(self, X: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """The rows and settings by which ``bb.cross_validate`` counts and estimates as this classifier does."""
        settings = {name: getattr(self, name) for name in COUNTED_BY}
        return to_validate(X), settings | self._prior_to_validate()

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row; of a frame of Dask or Spark that frame, with a column more."""
        with self._lock:
            if elsewhere(X) is not None:
                return self.model_.predict(X)
            model = self._current()
            if (scores := model._texts_scored(X, model._wanted)) is None:
                scores = model._scored(self._known_columns(X), model._wanted, {})
            same = len(self.classes_) == len(model.classes)
            labels = self.classes_ if same else as_array(model.classes, self._dtype)
            return taken(labels, model._best(scores), model.threads)

    def predict_proba(self, X: Any) -> Real:
        """P(class | row), in the order of ``classes_``; of a frame of Dask or Spark that frame, with a column for each class."""
        if elsewhere(X) is not None:
            return self.model_.posterior(X)
        return self._answers(X, lambda model, batch: model.posterior(batch), 0.0)

    def predict_log_proba(self, X: Any) -> Real:
        """log P(class | row)."""
        return self._answers(X, lambda model, batch: model.log_posterior(batch), -np.inf)

    def predict_joint_log_proba(self, X: Any) -> Real:
        """log P(class) + log P(row | class)."""
        return self._answers(X, lambda model, batch: model.log_joint(batch), -np.inf)

    def explain(self, row: Any, against: Any = None, *, held_out: bool = False, label: Any = None) -> Explanation:
        """Why a row gets its class: the weight of evidence of every column and of every word, in decibans.

        ``held_out``: of a row that was learned, with the class ``label``, as if it had not been. See ``Model.explain``.
        """
        with self._lock:
            model = self.model_ if held_out else self._current()  # whose words do not grow, it can be subtracted from
            if label is not None and self._listed(label) not in model.classes:
                text = (
                    f"no row of class {label!r} was counted, so none can be left out. Explain it without held_out=True."
                )
                raise errors.BadSetting(text, setting="label", value=label)
            if against is None or (other := self._listed(against)) in model.classes:
                return model.explain(row, against, held_out=held_out, label=label)
            return model.explain(row, held_out=held_out, label=label).against_unseen(other)

    def informative(self, n: int = 10, classes: Any = None) -> Informative:
        """The ``n`` values that best tell each class from the rest, as likelihood ratios: see ``Model.informative``."""
        with self._lock:
            model = self._current()
            if len(self.classes_) == len(model.classes) or classes is None or isinstance(classes, (str, bytes)):
                return model.informative(n, classes)
            names = [self._listed(name) for name in classes]
            found = model.informative(n, [name for name in names if name in model.classes])
            return replace(found, ratios={name: found.ratios.get(name, ()) for name in names})

    def _listed(self, name: Any) -> Any:
        """A class as ``classes_`` lists it, which may have been named in advance and have no rows yet."""
        classes = self.classes_.tolist()
        return classes[class_number(name, classes)]

    @property
    def tally_(self) -> Tally:
        """The sums of all rows as they stand."""
        with self._lock:
            self._check_fitted()
            if self._tally is None:
                self._tally = self._growing.frozen()
            return self._tally

    @property
    def model_(self) -> Model:
        """The model of the tally as it stands."""
        with self._lock:
            if not self._check_fitted().grows_in_place:
                return self._current()
            if self._frozen is None:
                self._frozen = self._estimated(self.tally_, self.alpha_).calibrated(self.calibration_)
            return self._frozen

    def __getstate__(self) -> Any:
        """Without the models, which are made again when first asked for."""
        state = super().__getstate__()
        made: dict[str, Any] = {"_tally": None, "_live": None, "_frozen": None, "_touched": []}
        return state | made if "_growing" in state else state

    def __copy__(self) -> NaiveBayesClassifier:
        """A copy learns apart; what was counted is copied when one of the two goes on."""
        other = type(self).__new__(type(self))
        other.__dict__ |= self.__getstate__()
        if self.__sklearn_is_fitted__():
            other._growing = Growing.of(self.tally_)
        return other

    # Keeping what was learned

    def _drop_calibration(self, why: str) -> None:
        """What was learned of other rows does not hold for these."""
        if self.calibration_ is not None:
            errors.warn(errors.not_calibrated(why))
            self.calibration_ = None
            self._live = None if self._live is None else LiveModel(self._live.model.calibrated(None))

    @property
    def _chosen(self) -> list[str]:
        """The settings that are to be chosen, which needs all rows at once."""
        settings = {name: getattr(self, name) for name in CHOSEN}
        return [name for name, value in settings.items() if isinstance(value, str) and value == CHOSEN[name]]

    def _learned_by_choosing(
        self, batch: Batch, labels: NDArray[Any], sample_weight: Any
    ) -> tuple[Growing, float, Tuning | None, Calibration | None]:
        """The sums of all rows, and what was chosen by leaving some of them out: α, the tuning, the calibration."""
        from banbury.quality.recipes import Calibrated, Plain
        from banbury.quality.tuning import Tuned
        from banbury.rows.labelled import load_rows

        if self.calibrate is not None and self.calibrate not in METHODS:
            raise errors.unknown_choice("calibrate", self.calibrate, METHODS)
        chosen, alpha = self._chosen, self.alpha
        checked_choice(self.how, 1.0 if "alpha" in chosen else alpha, self.seed)
        counting: dict[str, Any] = {"missing": self.missing, "threads": self.threads}
        features = "auto" if "features" in chosen else self.features
        weights = sample_weights(sample_weight, batch.n_rows)
        rows = load_rows(batch, labels, features=features, weights=weights, **counting)
        n_rows = int(np.count_nonzero(rows.labels >= 0))
        if n_rows < 2:
            raise errors.empty_data(None, "choosing and calibrating need two rows at least, to leave some out")
        tell_unlabelled(rows.skipped)
        folds = min(FOLDS, n_rows)
        if chosen:
            families = "choose" if "features" in chosen else "auto"
            grid = Tuned.of(alpha, self.how, None, families, self.class_prior, self.seed, self.calibrate)
            tuning = grid.tune(rows, folds)
            return Growing.of(tuning.tally), tuning.best["alpha"], tuning, tuning.calibration
        plain = Plain(self.how, float(alpha), self.class_prior, int(self.seed))  # type: ignore[arg-type]
        model = Calibrated(plain, self.calibrate).learn(rows)  # type: ignore[arg-type]
        return Growing.of(model.tally), float(alpha), None, model.calibration  # type: ignore[return-value]

    def _first(self, batch: Batch, labels: NDArray[Any], sample_weight: Any, more_to_come: bool = False) -> Growing:
        """The sums of the first rows, which settle the schema."""
        checked_choice(self.how, self.alpha, self.seed)
        batch.threads = n_threads(self.threads)
        schema = self._schema(batch, more_to_come)
        part = _counted(batch, schema, labels, sample_weight)
        if not part.tally.classes:
            raise errors.empty_data(None, "every row has a weight of zero or a missing label")
        return Growing(schema) + part

    def _schema(self, batch: Batch, more_to_come: bool) -> Schema:
        table = Table.of(batch, labelled=False, features=self.features, missing=self.missing)  # type: ignore[arg-type]
        return table.settled(batch, more_to_come)

    def _more(self, batch: Batch, labels: NDArray[Any], sample_weight: Any) -> Part:
        """Rows under the schema that stands, apart."""
        self._check_columns(batch)
        schema = self._growing.schema
        if batch.named and "feature_names_in_" in self.__dict__ and batch.names != schema.columns:
            known = set(schema.columns)
            if extra := [name for name in batch.names if name not in known]:
                tell_other_columns([], extra, set())
        batch.threads = n_threads(self.threads)
        return _counted(aligned(batch, schema), schema, labels, sample_weight)

    def _keep(self, growing: Growing, dtype: np.dtype[Any] | None, declared: frozenset[Any]) -> None:
        self.classes_ = sorted_classes(declared.union(growing.classes), dtype)  # it may fail, so it comes first
        self._growing, self._dtype, self._declared = growing, dtype, declared
        self._tally = self._live = self._frozen = None
        self._touched = []

    def _grow(self, growing: Growing) -> None:
        """Takes over changed sums; classes that came or went may have given the words other ids, so the model is made anew."""
        if growing.classes == self._growing.classes:
            self._touched = noted(self._touched, growing.touched)
        else:
            self._live, self._touched = None, []
        self._growing = growing
        self._tally = self._frozen = None

    def _current(self) -> Model:
        """The model of what was counted, brought up to date; its words go on growing."""
        growing = self._check_fitted()
        growing.keep()
        if self._live is not None and not self._touched:
            return self._live.model
        live, self._live = self._live, None  # if it is interrupted now, it is made anew
        seen = growing.seen
        if live is None:
            live = LiveModel(self._estimated(seen, self.alpha_).calibrated(self.calibration_))
        else:
            live.follow(seen, self._touched, self._prior(seen))
        self.__dict__.update(_live=live, _touched=[])
        return live.model

    def _estimated(self, tally: Tally, alpha: float) -> Model:
        prior = self._prior(tally)
        model = estimate(tally, how=self.how, alpha=alpha, class_prior=prior, seed=self.seed)  # type: ignore[arg-type]
        return model if self.threads is None else replace(model, threads=self.threads)

    # Weights of classes

    def _check_class_weight(self) -> None:
        """Before anything is counted."""
        if self.class_weight is None:
            return
        check_class_weight(self.class_weight)
        wanted = "None with class_weight: probabilities are those of rows as they are, or of weighted ones"
        errors.require(self.calibrate is None, "calibrate", self.calibrate, wanted)
        if isinstance(self.class_weight, str) and self.class_prior is not None:
            wanted = "None with class_weight='balanced', which is a uniform class prior"
            raise errors.bad_setting("class_prior", self.class_prior, wanted)

    def _prior(self, tally: Tally) -> Any:
        prior = self.class_prior
        if isinstance(prior, Mapping):  # what was said of classes without rows is shared among the others
            unseen = [
                name for name in self.__dict__.get("_declared", ()) if name in prior and name not in tally.classes
            ]
            shares = shares_by_class(prior, (*tally.classes, *unseen))
            total = sum(shares[name] for name in tally.classes)
            errors.require(total > 0, "class_prior", prior, "one that leaves some class possible that has rows")
            prior = {name: shares[name] / total for name in tally.classes} if unseen else prior
        return weighted_prior(self.class_weight, prior, tally)

    def _prior_to_validate(self) -> dict[str, Any]:
        """The class prior within every fold, which weights by name would have depend on the fold."""
        if self.class_weight is None:
            return {}
        self._check_class_weight()
        wanted = "None or 'balanced' in an estimator to validate here; scikit-learn's cross_validate takes it"
        errors.require(self.class_weight == BALANCED, "class_weight", self.class_weight, wanted)
        return {"class_prior": "uniform"}

    def _answers(self, X: Any, asked: Callable[[Model, Batch], Real], absent: float) -> Real:
        """What the model says, with a column for each class that was declared and has no rows yet."""
        with self._lock:
            model = self._current()
            scores, known = asked(model, self._known_columns(X)), set(model.classes)
            if len(self.classes_) == len(known):
                return scores
            wide = np.full((len(scores), len(self.classes_)), absent)
            wide[:, [c for c, name in enumerate(self.classes_.tolist()) if name in known]] = scores
            return wide


def _counted(batch: Batch, schema: Schema, labels: NDArray[Any], weights: Any) -> Part:
    """The rows, counted but for their texts; raises unless some of them have a label."""
    part = part_of(batch, schema, labels, weights)
    if part.tally.skipped == batch.n_rows:
        raise errors.no_target(batch.n_rows, None)
    tell_unlabelled(part.tally.skipped)
    return part


def _common(a: np.dtype[Any] | None, b: np.dtype[Any]) -> np.dtype[Any] | None:
    """A type for labels of both, None when only objects can hold them."""
    if a is None or a == b or (a.kind in "UT" and b.kind in "UT"):
        return a
    return np.result_type(a, b) if a.kind in "biuf" and b.kind in "biuf" else None
