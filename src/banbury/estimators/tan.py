"""TANClassifier, tree-augmented naive Bayes as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury.estimators.classifier import NaiveBayesClassifier
from banbury.estimators.rows import one_batch, sample_weights
from banbury.families.column_tree import tree_of_columns
from banbury.families.family import Family
from banbury.learner import Learner
from banbury.model.naive_bayes import choice_of
from banbury.model.networks import BeliefNetwork
from banbury.reading import Batch


class TANClassifier(NaiveBayesClassifier):
    """Tree-augmented naive Bayes: each column depends on the class and on at most one other column.

    It equals ``bb.NaiveBayesClassifier(features=bb.ColumnTree(level, root, bins, features))`` and learns and forgets in
    the same way; the tree is computed again from the counts. Strings, booleans and numbers need no encoding, missing
    values are summed out exactly, and new categories may come when predicting. ``bins``, ``level`` and ``root`` are
    those of ``bb.ColumnTree``; all other parameters are those of ``bb.NaiveBayesClassifier``.

    After fitting, the attributes of a ``bb.NaiveBayesClassifier`` are set, and ``network_``, the belief network, which
    also answers questions about other columns.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = bb.TANClassifier().fit(X, y)
    >>> round(clf.score(X, y), 3)
    0.989
    """

    calibrate = None

    def __init__(
        self,
        features: Any = "auto",  # the families: "auto", one for all columns, or by column
        how: str = "mean",  # how parameters are estimated, such as "mle" or "mean"
        alpha: float = 1.0,  # the pseudo-count
        class_prior: Any = None,  # None for class frequencies, "uniform", or P(class)
        level: float | None = 0.05,  # significance of a dependence; None keeps all
        root: str | None = None,  # the column at the root of the tree; None: any
        bins: Any = "mdl",  # how numbers are cut: "mdl", or how many bins
        missing: str = "skip",  # "skip" missing values, or count them as a "category"
        threads: int | None = None,  # how many; None for all processors
        seed: int = 0,  # of everything drawn at random
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
        self.level = level
        self.root = root
        self.bins = bins
        self.class_weight = class_weight

    @property
    def network_(self) -> BeliefNetwork:
        """The belief network of the current model."""
        return BeliefNetwork.from_model(self.model_)

    @property
    def _names_to_choose(self) -> list[str]:
        """No parameter is chosen on held-out rows; raises an error for invalid parameters."""
        choice_of(self.how, self.alpha, self.seed)
        return []

    @property
    def _families(self) -> Family:
        """The family of all columns: a tree."""
        return tree_of_columns(level=self.level, root=self.root, bins=self.bins, columns=self.features)

    def _learn_first(self, batch: Batch, labels: Any, sample_weight: Any, more_to_come: bool = False) -> Learner:
        """Returns a learner of ``batch``, the first rows. Rows of weight zero are left out first, so that they have no
        influence on where numbers are cut into bins. ``labels``, ``sample_weight``: one per row; the latter may be
        None; ``more_to_come``: whether further rows follow.
        """
        if sample_weight is not None:
            weights = np.asarray(sample_weights(sample_weight, batch.n_rows))  # one per row
            weighted_rows = np.flatnonzero(weights)  # the numbers of rows with a weight above 0
            if 0 < len(weighted_rows) < batch.n_rows:
                batch = batch.take(weighted_rows)
                labels = labels[weighted_rows]
                sample_weight = weights[weighted_rows]
        return super()._learn_first(batch, labels, sample_weight, more_to_come)

    def _batch(self, X: Any) -> Batch:
        """Returns the rows X as one batch. Raises TypeError for a sparse matrix."""
        if hasattr(X, "toarray") and hasattr(X, "nnz"):
            raise TypeError(
                "Sparse data was passed, but dense data is required, because a tree needs every cell. Use X.toarray()."
            )
        return one_batch(X)

    def __sklearn_tags__(self) -> Any:
        """Returns the tags of scikit-learn, which say that sparse matrices are not accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
