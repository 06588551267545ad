"""TANClassifier: tree-augmented naive Bayes, as scikit-learn estimators are used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.estimators.class_weights import check_class_weight, weighted_rows
from banbury.estimators.guard import in_one_step
from banbury.estimators.rows import TakesTables, one_batch, sample_weights, sorted_classes, tell_unlabelled
from banbury.explain import Explanation
from banbury.networks import BeliefNetwork, Pairs, check_level, checked_bins, checked_choice
from banbury.networks.variables import Bins
from banbury.readers import Batch, n_threads
from banbury.schema import infer
from banbury.scikit_learn import BaseEstimator, ClassifierMixin, check_is_fitted
from banbury.table import Labels


class TANClassifier(TakesTables, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Tree-augmented naive Bayes: each column depends on the class and on one other column at most.

    Strings, booleans and numbers are taken as they come; missing values are summed out exactly, and categories may be new when
    predicting. ``bins``, ``level`` and ``root`` are those of ``bb.BeliefNetwork.tan``: numbers are cut where the classes change
    (``bins="mdl"``), and into ten bins of about equal shares where no cut pays, or all of them into so many as ``bins`` says;
    edges that are not beyond chance are not drawn, unless ``level`` is None. ``how``, ``alpha`` and ``seed`` are those of
    ``bb.estimate``, ``features``, ``missing`` and ``threads`` those of ``bb.count``.

    ``class_weight``: "balanced", so that all classes weigh the same, or {class: weight}, 1 where a class has none. As in
    scikit-learn it multiplies the weights of the rows, so that the edges are those of weighted rows too, and what a small class
    says is smoothed as if it had more rows.

    After fitting: ``classes_``, ``n_features_in_``, ``feature_names_in_`` (if columns have names), and ``network_``, the belief
    network, which answers more than the class, and which ``bb.save`` keeps.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = bb.TANClassifier().fit(X, y)
    >>> round(clf.score(X, y), 3)
    0.989
    """

    classes_: NDArray[Any]
    n_features_in_: int
    network_: BeliefNetwork

    def __init__(
        self,
        features: Any = "auto",
        how: str = "mean",
        alpha: float = 1.0,
        level: float | None = 0.05,
        root: str | None = None,
        bins: Bins = "mdl",
        missing: str = "skip",
        threads: int | None = None,
        seed: int = 0,
        class_weight: Any = None,
    ) -> None:
        self.features, self.missing, self.threads = features, missing, threads
        self.how, self.alpha, self.seed, self.class_weight = how, alpha, seed, class_weight
        self.level, self.root, self.bins = level, root, bins

    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Counts all pairs of columns, and draws the tree that says most. Rows without a label are skipped, with a warning."""
        choice, bins = checked_choice(self.how, self.alpha, self.seed), checked_bins(self.bins)
        check_level(self.level)
        check_class_weight(self.class_weight)
        batch, labels = self._checked(X, y)
        threads = batch.threads = n_threads(self.threads)
        given = Labels.of(labels, sample_weights(sample_weight, batch.n_rows), None, threads)
        given.check_length(batch.n_rows)
        given = weighted_rows(self.class_weight, given)
        schema = infer(batch, [], None, self.features, self.missing, trees="none")  # type: ignore[arg-type]
        pairs = Pairs.beginning(batch, schema, given, bins)(batch).checked()
        tell_unlabelled(pairs.tally.skipped)
        network = BeliefNetwork.from_pairs(pairs, choice, self.level, self.root, self.threads)
        self.classes_, self.network_ = sorted_classes(pairs.target.values, labels.dtype), network
        self._note_columns(schema)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)  # which raises where there are no classes yet
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Real:
        """P(class | row), in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Real:
        """log P(class | row)."""
        check_is_fitted(self)
        return self.network_.log_posterior(self._ready(X))

    def predict_joint_log_proba(self, X: Any) -> Real:
        """log P(class, row)."""
        check_is_fitted(self)
        return self.network_.log_joint(self._ready(X))

    def explain(self, row: Any, against: Any = None, *, held_out: bool = False, label: Any = None) -> Explanation:
        """Why a row gets its class: the weight of evidence of every column, given the one it depends on, in decibans.

        ``held_out``: of a row that was learned, with the class ``label``, as if it had not been. See ``BeliefNetwork.explain``.
        """
        check_is_fitted(self)
        if held_out and self.class_weight is not None:
            text = "held_out=True leaves out a row that was counted once, and class_weight counts rows by their class. "
            text += "Explain it without held_out=True, or fit with class_weight=None."
            raise errors.BadSetting(text, setting="held_out", value=True)
        return self.network_.explain(row, against, held_out=held_out, label=label)

    def _ready(self, X: Any) -> Batch:
        batch = self._known_columns(X)
        if not (batch.named and "feature_names_in_" in self.__dict__):
            return batch.renamed(self.network_.columns)
        for name in self.network_.nodes[1:]:
            if name not in batch.names:
                raise errors.unknown_column(name, batch.names, batch.source)
        return batch

    def _batch(self, X: Any) -> Batch:
        if hasattr(X, "toarray") and hasattr(X, "nnz"):
            text = "Sparse data was passed, but dense data is required: a tree looks at every cell."
            raise TypeError(f"{text} Use X.toarray().")
        return one_batch(X)

    def __sklearn_is_fitted__(self) -> bool:
        return "network_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
