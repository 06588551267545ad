"""EvidenceClassifier, naive Bayes with weighed evidence as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from banbury import errors
from banbury.estimators.class_weights import check_class_weight
from banbury.estimators.classifier import NaiveBayesClassifier
from banbury.estimators.guard import in_one_step
from banbury.estimators.rows import WeighsEvidence, rows_to_validate, sample_weights, warn_of_missing_labels
from banbury.learner import Learner
from banbury.model.naive_bayes import Model, check_seed
from banbury.reading import Batch, n_threads
from banbury.tally.partitioned import partitions_of
from banbury.tally.table import Table, open_table
from banbury.tally.tally import Tally, count_table
from banbury.weighing import FEWEST_ROWS, learn_table


class EvidenceClassifier(WeighsEvidence[Model], NaiveBayesClassifier):
    """Naive Bayes with weighed evidence: a weight for each column, pairs of columns that add information, and
    corrections.

    The rows are counted as ``NaiveBayesClassifier`` does, with numbers as quantile trees and missing values as values
    of their own. The weights are then learned from leave-one-out evidence, within the training rows. The log-odds
    remain a sum that ``explain`` shows. Learning and forgetting keep the tally exact; the weights become stale
    (``weights_stale_``) until ``refit`` learns them again.

    Args:
        features: The families, as in ``NaiveBayesClassifier``.
        weigh: "auto" weighs from 100 rows on; True always, False never.
        pairs: Whether to look for pairs of columns.
        correct: Whether to learn corrections.
        threads: The number of threads. It never changes the result.
        seed: The seed for everything that is drawn at random.
        class_weight: Multiplies the odds of each class, as in ``NaiveBayesClassifier``.
        sample: The number of rows, selected by their content, from which weights are learned; the tally counts all
            rows. All rows unless given, or 100,000 of a Dask or Spark dataframe.

    After fitting, the attributes of a ``NaiveBayesClassifier`` and ``weighing_`` are set; ``weighing_`` is None if the
    evidence was not weighed.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = bb.EvidenceClassifier().fit(X[::2], y[::2])
    >>> clf.score(X[1::2], y[1::2]) > 0.9
    True
    """

    how = "mean"
    alpha = 1.0
    class_prior = None
    missing = "category"
    calibrate = None
    _trees = "all"

    def __init__(
        self,
        features: Any = "auto",  # the families: "auto", one for all columns, or by column
        weigh: Any = "auto",  # whether to weigh evidence; "auto": if there are enough rows
        pairs: bool = True,  # whether to look for pairs of columns
        correct: bool = True,  # whether to learn corrections
        threads: int | None = None,  # how many; None for all processors
        seed: int = 0,  # of everything drawn at random
        class_weight: Any = None,  # "balanced", or a factor by class
        sample: int | None = None,  # how many rows weights are learned from; None for all
    ) -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        self.features = features
        self.weigh = weigh
        self.pairs = pairs
        self.correct = correct
        self.threads = threads
        self.seed = seed
        self.class_weight = class_weight
        self.sample = sample

    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> None:
        """Counts the rows and weighs their evidence. Rows of the same group in ``groups`` stay in the same fold.

        Rows without a label are skipped, with a warning. For a Dask or Spark dataframe, ``y``, ``sample_weight`` and
        ``groups`` are column names; all rows are counted on the cluster, and weights are learned from a ``sample``.
        """
        self._check_weighing()
        self._check_class_weight()
        self.tuning_ = None
        if partitions_of(X) is not None:
            return self._begin(self._learn_partitions(X, y, sample_weight, groups))
        batch, labels = self._read_rows_and_labels(X, y)  # labels: one per row
        learner = self._learn_first(batch, labels, sample_weight)
        check_class_weight(self.class_weight, learner.classes)
        # The weights of the evidence; None if it is not weighed.
        weighing = self._weigh_rows(learner.tally, batch, labels, sample_weight, groups)
        return self._begin(learner.under(self._settings(alpha=1.0, weighing=weighing)), labels.dtype)

    def _learn_partitions(self, frame: Any, target: Any, weights: Any, groups: Any = None) -> Learner:
        """Returns a learner of a Dask or Spark dataframe, counted on the cluster, with weights of evidence learned from
        a sample. ``target``, ``weights``, ``groups``: column names; the latter two may be None.
        """
        count_options = {"features": self.features, "missing": self.missing, "trees": "all", "threads": self.threads}
        table = open_table(frame, target, weights=weights, groups=groups, **count_options)
        tally = count_table(table)
        warn_of_missing_labels(tally.skipped)
        check_class_weight(self.class_weight, tally.classes)
        return Learner(tally, self._settings(alpha=1.0, weighing=self._learn_weights(tally, table)))

    @in_one_step
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> None:
        """Learns from more rows. The weights do not change and are stale until ``refit``."""
        self._check_weighing()
        super().partial_fit(X, y, classes, sample_weight)

    @in_one_step
    def forget(self, X: Any, y: Any, sample_weight: Any = None, refit: Any = None) -> None:
        """Removes rows that were learned, and the corrections for values that no row has any more.

        ``refit`` takes rows to learn the weights from again, as (X, y) or (X, y, sample_weight).
        """
        super().forget(X, y, sample_weight)
        if self.weighing_ is not None:
            self._learner = self._learner.under(self._learner.settings.without_forgotten(self._learner.tally))
        if refit is not None:
            self.refit(*refit)

    @in_one_step
    def refit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> None:
        """Learns the weights again from rows that were already counted. The tally does not change. Rows of the same
        group in ``groups`` stay in the same fold.
        """
        learner = self._learner_of_fit()
        batch, labels = self._read_rows_and_labels(X, y)  # labels: one per row
        self._check_columns(batch)
        weighing = self._weigh_rows(learner.tally, batch, labels, sample_weight, groups)
        self._learner = learner.under(replace(learner.settings, weighing=weighing))
        _ = self._learner.model  # derives it, which may raise an error

    def _rows_and_settings(self, X: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the rows and settings with which ``bb.cross_validate`` weighs within each fold as this classifier
        does.
        """
        weigh: Any = False  # or the options of the weighing
        if self.weigh is not False:
            weigh = {"pairs": bool(self.pairs), "correct": bool(self.correct)}
            weigh |= {"fewest": 0} if self.weigh is True else {}  # weighs however few rows there are
        settings = {"weigh": weigh, "features": self.features, "seed": self.seed, "threads": self.threads}
        return rows_to_validate(X), settings | self._prior_to_validate()

    # Weighing

    def _check_weighing(self) -> None:
        """Raises an error for an invalid ``seed`` or ``weigh``."""
        check_seed(self.seed)
        if self.weigh not in ("auto", True, False):
            raise errors.unknown_choice("weigh", self.weigh, ["auto", True, False])

    def _weigh_rows(self, tally: Tally, batch: Batch, labels: NDArray[Any], sample_weight: Any, groups: Any) -> Any:
        """Returns the weights of evidence learned from these rows, which the tally has counted; None if nothing is
        weighed. ``labels``, ``sample_weight`` and ``groups``: one per row; the latter two may be None.
        """
        weights = sample_weights(sample_weight, batch.n_rows)
        table = Table.of(
            batch, labels, schema=tally.schema, weights=weights, groups=groups, threads=n_threads(self.threads)
        )
        return self._learn_weights(tally, table)

    def _learn_weights(self, tally: Tally, table: Any) -> Any:
        """Returns the weights of evidence learned from a table of rows that the tally has counted; None for too few
        rows, a single class, or ``weigh=False``.
        """
        has_few_rows = self.weigh == "auto" and float(tally.n_rows) < FEWEST_ROWS
        if self.weigh is False or len(tally.classes) < 2 or has_few_rows:
            return None
        # Options of the weighing.
        settings: dict[str, Any] = {"pairs": bool(self.pairs), "correct": bool(self.correct), "seed": int(self.seed)}
        return learn_table(tally, table, self.sample, self.threads, **settings)
