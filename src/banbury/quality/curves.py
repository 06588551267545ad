"""Learning curves: measures after growing numbers of rows. Each size adds its new rows to the tally of the size before."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.families.bags.bag_of_words import bag_of_words
from banbury.families.family import Feature, How
from banbury.families.joint import columns_of_table
from banbury.families.keys import map_values
from banbury.model.naive_bayes import ClassPrior, check_seed
from banbury.notebooks import Tabular, align_columns, columns_of
from banbury.quality.cross_validation import recipe_from, settle_settings
from banbury.quality.recipes import Plain, Recipe
from banbury.quality.results import Evaluation, Mean
from banbury.reading import Batch
from banbury.rows.labelled import MemoryRows, load_rows
from banbury.rows.scoring import PendingWarnings, score_rows
from banbury.sums import Words
from banbury.tally.schema import FamilyOption, Missing, Schema
from banbury.tally.tally import Tally
from banbury.threads import OneBlasThread

N_SIZES = 10  # the number of sizes of a curve, unless given
SMALLEST_SIZE = 20  # the first of these sizes
LOGISTIC_REGRESSION = "logistic_regression"
WIDEST_ARRAY = 1000  # columns; more are given as a sparse matrix
MOST_STEPS = 10_000
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # C of logistic regression: the inverse weight of its L2 penalty
PENALTY_FOLDS = 3  # by which C is chosen


def learning_curve(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    sizes: Any = None,
    repeats: int = 5,
    test: float = 1 / 3,
    peer: Any = None,
    how: How = "mean",
    alpha: float = 1.0,
    class_prior: ClassPrior = None,
    features: FamilyOption = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing | None = None,
    weigh: bool | Mapping[str, Any] = False,
    seed: int = 0,
    threads: int | None = None,
    **reading: Any,
) -> LearningCurve:
    """Measures accuracy on held-out rows as the number of training rows grows. Each repeat costs one count.

    In each repeat a share of the rows of every class is held out. The model then learns from more and more of the other
    rows; each size includes the rows of the smaller ones and at least one row of every class. Families, origins, units
    and bins are settled once, from the data as a whole; everything else is learned from the rows of each size alone.

    An estimator of Banbury can be passed first, as in ``bb.learning_curve(clf, X, y)``. Its parameters then replace the
    settings below.

    Args:
        data: The rows, in any form that ``bb.count`` reads, or an estimator.
        target: The target, as for ``bb.count``; or the rows, if an estimator comes first.
        y: The target, if an estimator comes first.
        sizes: Numbers of training rows, or shares of the rows that are not held out, in ascending order. About ten
            sizes, evenly spaced on a logarithmic scale, unless given.
        repeats: How often to repeat with other held-out rows.
        test: The share of the rows that is held out.
        peer: Another learner to compare with on the same rows: "logistic_regression" (its penalty is chosen by
            cross-validation), or a scikit-learn classifier with ``predict_proba``. It gets standardised numbers with
            missing values replaced by the mean, categories as dummy variables, and TF-IDF weights of the words that
            naive Bayes uses.
        weigh: True, or settings of ``bb.weigh``, to weigh the evidence on the rows of each size.
        seed: The seed that selects the rows.
        **reading: All other options are those of ``bb.estimate`` and ``bb.count``.

    Returns a ``LearningCurve``: the accuracy and the log loss of each repeat and size.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_iris
    >>> flowers, species = load_iris(return_X_y=True)
    >>> bb.learning_curve(flowers, species, features="gaussian", sizes=[10, 20, 50, 100], how="predictive")
    Learning curve of plain naive Bayes: 5 repeats, 50 of 150 rows held out, 3 classes
      rows         accuracy  log loss
        10  0.8280 ± 0.0120    0.3315
        20  0.8760 ± 0.0117    0.2559
        50  0.9360 ± 0.0214    0.1731
       100  0.9480 ± 0.0206    0.1417
      random guess 0.3333, majority 0.3400
    """
    check_seed(seed)
    settings: dict[str, Any] = {"how": how, "alpha": alpha, "class_prior": class_prior, "features": features}
    settings |= {"schema": schema, "missing": missing, "weigh": weigh, "calibrate": None}
    data, target, settings = settle_settings(data, target, y, settings)
    counting_settings = {name: settings[name] for name in ("schema", "features")}
    counting_settings |= {"weights": weights, "missing": settings["missing"] or "skip", "threads": threads}
    rows = load_rows(data, target, takes_sets=False, **counting_settings, **reading)
    return learn_sizes(rows, recipe_from(settings, seed=int(seed)), sizes, repeats, test, peer)


def learn_sizes(
    rows: MemoryRows, recipe: Recipe, sizes: Any = None, repeats: int = 5, test: float = 1 / 3, peer: Any = None
) -> LearningCurve:
    """Returns the learning curve of a recipe: ``repeats`` times it holds out a share of the rows (``test``) and learns
    from growing numbers of the other rows. ``sizes`` and ``peer``, another learner, are those of ``bb.learning_curve``.
    """
    errors.check_whole("repeats", repeats, 1)
    peer_learner = None if peer is None else Peer.of(peer)
    rows = _drop_weightless_rows(recipe.under(rows))
    seed = int(getattr(recipe, "seed", 0))
    n_rows = rows.n_labelled
    n_test = _n_held_out(test, n_rows, rows.classes)  # rows held out in each repeat
    curve_sizes = _sizes(sizes, n_rows - n_test, len(rows.classes))  # numbers of training rows, ascending
    evaluations = list[list[Evaluation]]()  # by repeat and size
    peer_evaluations = list[list[Evaluation]]()  # likewise
    pending = PendingWarnings()  # issued once, after all repeats
    for repeat in range(int(repeats)):
        order = spread(rows.labels, np.random.default_rng([seed, repeat]))  # row numbers; the last are held out
        growth = Growth(rows, order, curve_sizes)  # the counts of the rows of each size
        test_rows = np.sort(order[n_rows - n_test :])
        evaluations.append(_evaluate_sizes(rows, recipe, growth, test_rows, pending))
        if peer_learner is not None:
            peer_evaluations.append(_evaluate_peer(rows, peer_learner, growth, test_rows))
    pending.warn(getattr(recipe, "how", "mean"))
    accuracies, log_losses = _measures(evaluations)
    return LearningCurve(
        recipe.describe_under(rows.schema),
        accuracies,
        log_losses,
        np.array(curve_sizes, dtype=np.int64),
        n_rows,
        n_test,
        len(rows.classes),
        majority=float(np.mean([evaluations_by_size[0].majority for evaluations_by_size in evaluations])),
        peer=None if peer_learner is None else CurveScores(peer_learner.name, *_measures(peer_evaluations)),
    )


def _evaluate_sizes(
    rows: MemoryRows, recipe: Recipe, growth: Growth, test_rows: Int, pending: PendingWarnings
) -> list[Evaluation]:
    """Learns a model from the rows of each size, and returns its evaluation on the rows numbered ``test_rows``, one for
    each size. ``growth`` has counted the rows that each size adds, and knows which rows a size has. Text columns
    without words are added to the pending warnings.
    """
    evaluations = []
    for size_number in range(len(growth.ends)):  # there is one end for each size
        if isinstance(recipe, Plain):
            model = recipe.estimate(growth.tally(size_number), rows.classes)
            pending.wordless.update(model._lost_words())
        else:
            model = recipe.learn(rows.only(growth.rows_of(size_number)))
        posteriors, _ = score_rows(rows, test_rows, replace(model, threads=rows.threads), "posterior")  # rows × classes
        evaluations.append(_evaluate_answers(rows, test_rows, posteriors))
    return evaluations


def _evaluate_peer(rows: MemoryRows, peer: Peer, growth: Growth, test_rows: Int) -> list[Evaluation]:
    """Fits ``peer``, the other learner, to the rows of each size, and returns its evaluation on the rows numbered
    ``test_rows``, one for each size. ``growth`` has counted the rows that each size adds, and knows which rows a size
    has.
    """
    arrays = PeerArrays.of(rows, growth.groups.counted)  # with the ids that words got in the count of all sizes
    evaluations = []
    for size_number in range(len(growth.ends)):  # there is one end for each size
        training_rows = growth.rows_of(size_number)
        training_weights = None if rows.weights is None else rows.weights[training_rows]
        training_matrix, test_matrix = arrays.matrices(training_rows, test_rows, growth.tally(size_number))
        training_labels = rows.labels[training_rows]  # class numbers
        posteriors = peer.posteriors(training_matrix, test_matrix, training_labels, training_weights, len(rows.classes))
        evaluations.append(_evaluate_answers(rows, test_rows, posteriors))
    return evaluations


# Which rows ----------------------------------------------------------------------------------------------------------


def _drop_weightless_rows(rows: MemoryRows) -> MemoryRows:
    """Returns the rows without the labels of rows of weight 0, and without the classes that have no other rows. Raises
    an error if every weight is 0.
    """
    if rows.weights is None or rows.weights.all():
        return rows
    labels = np.where(rows.weights > 0, rows.labels, -1)
    labels_in_use, new_labels = np.unique(labels, return_inverse=True)  # class numbers, −1 for none; and their ranks
    n_without_label = int(np.count_nonzero(labels_in_use < 0))  # 1 if some row has no label, else 0
    classes = tuple(rows.classes[class_number] for class_number in labels_in_use[n_without_label:].tolist())
    if not classes:
        raise errors.empty_data(rows.name, "the weight of every row is 0")
    return replace(rows, labels=(new_labels.reshape(-1) - n_without_label).astype(np.int32), classes=classes)


def _n_held_out(test: Any, n_rows: int, classes: Sequence[Any]) -> int:
    """Returns the number of rows to hold out: the share ``test`` of ``n_rows``. Raises an error for a single class, or
    if fewer rows than classes would remain to learn from.
    """
    if len(classes) < 2:
        raise errors.bad_setting("target", f"one class, {classes[0]!r}", "at least two classes")
    if not isinstance(test, (float, np.floating)) or not 0 < test < 1:
        raise errors.bad_setting("test", test, "the share of rows to hold out, between 0 and 1, such as 1/3")
    n_test = max(1, round(float(test) * n_rows))
    requirement = f"a share that leaves at least one of {n_rows:,} rows for each of the {len(classes):,} classes"
    errors.require(n_rows - n_test >= len(classes), "test", test, requirement)
    return n_test


def _sizes(requested: Any, n_training: int, n_classes: int) -> list[int]:
    """Returns the training sizes of a curve as numbers of rows, ascending. ``requested`` are numbers or shares of the
    ``n_training`` rows; None stands for sizes evenly spaced on a logarithmic scale. Raises an error unless they ascend,
    from ``n_classes`` rows on.
    """
    if requested is None:
        smallest = min(max(2 * n_classes, min(SMALLEST_SIZE, n_training // 2)), n_training)
        return sorted(set(np.rint(np.geomspace(smallest, n_training, N_SIZES)).astype(np.int64).tolist()))
    requirement = (
        f"an ascending list of numbers of rows, from {n_classes:,} (one per class) to {n_training:,} (all rows that are not "
        "held out), or of shares of these such as 0.5, up to 1.0"
    )
    errors.require(
        not isinstance(requested, (str, bytes)) and isinstance(requested, Iterable), "sizes", requested, requirement
    )
    sizes: list[int] = []
    for number in requested.tolist() if isinstance(requested, np.ndarray) else requested:
        is_count = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        is_share = isinstance(number, (float, np.floating)) and 0 < number <= 1
        size = int(number) if is_count else round(float(number) * n_training) if is_share else 0
        errors.require(
            n_classes <= size <= n_training, "sizes", f"{number} ({size:,} rows)" if is_share else number, requirement
        )
        sizes.append(size)
    errors.require(
        sizes and not any(later <= earlier for earlier, later in pairwise(sizes)), "sizes", sizes, requirement
    )
    return sizes


def spread(labels: NDArray[np.int32], rng: np.random.Generator) -> Int:
    """Returns the numbers of the labelled rows in a random order in which every class is spread evenly. The first row
    of each class comes first. So any beginning of the order contains every class, and any part of it has about the same
    class frequencies. ``labels`` has the class number of each row, −1 for none.
    """
    row_numbers = rng.permutation(np.flatnonzero(labels >= 0))
    row_numbers = row_numbers[np.argsort(labels[row_numbers], kind="stable")]
    class_numbers = labels[row_numbers]  # ascending
    class_sizes = np.bincount(class_numbers)
    first_of_class = np.cumsum(class_sizes) - class_sizes  # where the rows of each class begin
    rank_in_class = np.arange(len(row_numbers)) - first_of_class[class_numbers]
    # Of each row: about which share of its class comes before it; −1 for the first row of a class.
    sort_key = (rank_in_class + rng.random(len(class_sizes))[class_numbers]) / class_sizes[class_numbers]
    sort_key[rank_in_class == 0] = -1.0
    return np.asarray(row_numbers[np.argsort(sort_key, kind="stable")], dtype=np.int64)


# What is learned from them -------------------------------------------------------------------------------------------


class Growth:
    """Rows in an order with cut points ``ends``. The rows between two cuts are counted separately, all in one pass.

    ``order`` has row numbers; the first ``ends[k]`` of them are the rows of size number k. ``groups`` has the counts of
    the rows that each size adds to the one before.
    """

    def __init__(self, rows: MemoryRows, order: Int, ends: Sequence[int]) -> None:
        """Counts the rows that each size adds to the one before. ``order`` has row numbers; size k is the first
        ``ends[k]`` of them.
        """
        self.order = order
        self.ends = ends
        size_that_adds = np.full(rows.n_rows, -1, dtype=np.int32)  # of each row, −1 if no size has it
        size_that_adds[order[: ends[-1]]] = np.searchsorted(ends, np.arange(ends[-1]), side="right")
        self.groups = rows.count(size_that_adds, len(ends))

    def rows_of(self, k: int) -> Int:
        """Returns the numbers of the rows of size number k (from 0), in ascending order: the first ``self.ends[k]`` of
        ``self.order``.
        """
        return np.sort(self.order[: self.ends[k]])

    def tally(self, k: int) -> Tally:
        """Returns the tally of size number k (from 0): of the groups of rows that this and the smaller sizes add."""
        return self.groups.estimation_tally(np.arange(len(self.ends)) <= k)


def _evaluate_answers(rows: MemoryRows, test_rows: Int, posteriors: Real) -> Evaluation:
    """Returns the evaluation of the posteriors (test rows × classes) of the rows numbered ``test_rows``."""
    weights = None if rows.weights is None else rows.weights[test_rows]
    return Evaluation(rows.classes, test_rows, rows.labels[test_rows], posteriors, weights)


def _measures(evaluations: Sequence[Sequence[Evaluation]]) -> tuple[Real, Real]:
    """Returns the accuracies and the log losses (repeats × sizes each) of evaluations by repeat and size."""
    accuracies = [[evaluation.accuracy.value for evaluation in by_size] for by_size in evaluations]
    log_losses = [[evaluation.log_loss for evaluation in by_size] for by_size in evaluations]
    return np.array(accuracies), np.array(log_losses)


# Another learner on the same rows -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Peer:
    """A scikit-learn classifier that is fitted anew each time; ``choices`` has the settings to choose from first."""

    name: str  # for users
    classifier: Any
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # the values to try, by parameter

    @classmethod
    def of(cls, peer: Any) -> Peer:
        """Returns the peer called ``peer``, or that of the classifier ``peer``. Raises an error for an unknown
        name, or if the classifier lacks a method.
        """
        if isinstance(peer, str):
            if peer != LOGISTIC_REGRESSION:
                raise errors.unknown_choice("peer", peer, [LOGISTIC_REGRESSION])
            from sklearn.linear_model import LogisticRegression

            return cls("logistic regression", LogisticRegression(max_iter=MOST_STEPS), {"C": STRENGTHS})
        has_methods = all(hasattr(peer, verb) for verb in ("get_params", "fit", "predict_proba"))
        requirement = (
            f"{LOGISTIC_REGRESSION!r} or a scikit-learn classifier with predict_proba, such as RandomForestClassifier()"
        )
        errors.require(not isinstance(peer, type) and has_methods, "peer", peer, requirement)
        return cls(type(peer).__name__, peer)

    def posteriors(
        self, training_matrix: Any, test_matrix: Any, labels: Any, weights: Real | None, n_classes: int
    ) -> Real:
        """Fits a copy of the classifier to a training matrix (rows × columns) and the class numbers (``labels``) and
        weights of its rows (None: all 1). Returns P(class | row) of the test matrix (rows × all ``n_classes`` classes),
        0 for classes without training rows. ``self.choices`` has the values to try first, by parameter.
        """
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import GridSearchCV

        classifier = clone(self.classifier)
        n_folds = min(PENALTY_FOLDS, int(np.unique(labels, return_counts=True)[1].min()))
        if self.choices and n_folds > 1:  # every class has rows enough to choose its settings by cross-validation
            classifier = GridSearchCV(classifier, dict(self.choices), cv=n_folds, scoring="neg_log_loss")
        # Products of small matrices take longer with threads, many times so where the processors are busy.
        with warnings.catch_warnings(), OneBlasThread():
            warnings.simplefilter("ignore", ConvergenceWarning)
            classifier.fit(training_matrix, labels, **self._weight_settings(weights))
            # Rows × the classes that have training rows.
            known_posteriors = np.asarray(classifier.predict_proba(test_matrix), dtype=np.float64)
        all_posteriors = np.zeros((len(known_posteriors), n_classes))
        all_posteriors[:, np.asarray(classifier.classes_, dtype=np.int64)] = known_posteriors
        return all_posteriors

    def _weight_settings(self, weights: Real | None) -> dict[str, Real]:
        """Returns the keyword argument with which the classifier's ``fit`` takes row weights, as a dictionary that is
        empty if ``weights`` is None; for a pipeline, that of its last step. Raises an error if ``fit`` takes no
        weights.
        """
        from sklearn.utils.validation import has_fit_parameter

        if weights is None:
            return {}
        step_name, estimator = self.classifier.steps[-1] if hasattr(self.classifier, "steps") else ("", self.classifier)
        requirement = "a classifier that accepts sample_weight, because rows have weights"
        errors.require(has_fit_parameter(estimator, "sample_weight"), "peer", self.name, requirement)
        return {f"{step_name}__sample_weight" if step_name else "sample_weight": weights}


@dataclass(frozen=True, eq=False)
class PeerArrays:
    """A data set as arrays: numbers with NaN for missing, category numbers with −1 for missing, and word counts."""

    numbers: Real  # (rows, columns)
    categories: Int  # (rows, columns)
    words: Mapping[str, Any]  # a sparse matrix of rows × words for each column of text, or block of occurrences

    @classmethod
    def of(cls, rows: MemoryRows, counted_tally: Tally) -> PeerArrays:
        """Returns all columns of the rows as arrays, including those of blocks. Words have the ids that they have in
        ``counted_tally``, whose groups of features say how columns are counted.
        """
        from scipy import sparse

        no_columns = np.zeros((rows.n_rows, 0))  # so that there is something to join
        number_blocks = [no_columns]  # each rows × columns, as are those of categories
        category_blocks = [no_columns.astype(np.int64)]
        word_matrices = {}  # by the name of the column
        for _, features, sums in counted_tally.groups:  # the features of one family, and their counts
            if features[0].counter.words:  # a text, or a matrix of occurrences
                matrices = [_occurrences(batch, features[0], sums, rows.threads) for batch in rows.batches]
                word_matrices[features.names[0]] = sparse.vstack(matrices, format="csr")
                continue
            for feature in features:
                if feature.holds_lists:
                    list_batches = [feature.numbers(batch)[0] for batch in rows.batches]
                    number_blocks.append(np.concatenate(list_batches, dtype=np.float64))
                    continue
                # The columns of a joint table are features of their own; those of other blocks have names alone.
                for column in columns_of_table(feature) or [feature._replace(name=name) for name in feature.inputs]:
                    if _is_category(column, rows.batches[0]):
                        code_batches = [
                            column.family.keys_of(batch, column, strict=False) or batch.codes(column.name)
                            for batch in rows.batches
                        ]
                        category_blocks.append(_number_values(code_batches)[:, None])
                    else:
                        number_batches = [
                            batch.numbers([column.name])[0].reshape(batch.n_rows, -1) for batch in rows.batches
                        ]
                        number_blocks.append(np.concatenate(number_batches, dtype=np.float64))
        return cls(np.concatenate(number_blocks, axis=1), np.concatenate(category_blocks, axis=1), word_matrices)

    def matrices(self, training_rows: Int, test_rows: Int, tally: Tally) -> tuple[Any, Any]:
        """Returns the matrices (rows × columns) of the rows numbered ``training_rows`` and ``test_rows``, scaled as the
        training rows demand: arrays, or sparse matrices if they are wide or have words (``self.words``, by column).
        ``tally`` has counted the training rows; only its words are used.
        """
        from scipy import sparse

        training_blocks = []  # each rows × columns, as are those of the test rows
        test_blocks = []
        for transformer, columns in self._blocks(tally):
            if columns.shape[1]:
                training_blocks.append(transformer.fit_transform(columns[training_rows]))
                test_blocks.append(transformer.transform(columns[test_rows]))
        if not training_blocks:  # a constant column, because a classifier needs one
            training_blocks.append(np.zeros((len(training_rows), 1)))
            test_blocks.append(np.zeros((len(test_rows), 1)))
        is_sparse = bool(self.words) or sum(block.shape[1] for block in training_blocks) > WIDEST_ARRAY

        def join(blocks: list[Any]) -> Any:
            """Returns blocks of columns of the same rows (each rows × columns) as one matrix, sparse if ``is_sparse``."""
            if is_sparse:
                return sparse.hstack([sparse.csr_matrix(block) for block in blocks], format="csr")
            return np.hstack([block.toarray() if sparse.issparse(block) else block for block in blocks])

        return join(training_blocks), join(test_blocks)

    def _blocks(self, tally: Tally) -> list[tuple[Any, Any]]:
        """Returns each block of columns (all rows × columns) after the scikit-learn transformer for it: numbers,
        categories, and the words of each text column that ``tally`` uses. ``self.words`` has the counts of all words
        (rows × words) by text column.
        """
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        scaler = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
        blocks = [(scaler, self.numbers), (OneHotEncoder(handle_unknown="ignore"), self.categories)]
        for _, (feature, *_), sums in tally.groups:
            if (matrix := self.words.get(feature.name)) is not None:  # all rows × words, by word id
                word_ids = np.sort(bag_of_words(feature).words_in_use(feature, sums).ids).astype(np.int64)
                blocks.append((TfidfTransformer(), matrix[:, word_ids[word_ids < matrix.shape[1]]]))
        return blocks


def _occurrences(batch: Batch, feature: Feature, sums: Words, threads: int) -> Any:
    """Returns a sparse matrix (rows × words) of how often each row of a batch contains each word of the text column
    ``feature``, by word id. ``sums`` has the table of words; others are left out. ``threads`` read the texts.
    """
    from scipy import sparse

    # The words of row i are numbers offsets[i] to offsets[i + 1] of the ids and counts.
    offsets, ids, counts = bag_of_words(feature).bags(batch, feature, sums, threads)
    is_in_table = (ids >= 0) & (ids < sums.table.n_ids)
    row_starts = np.append(0, np.cumsum(is_in_table))[offsets]  # as the offsets, for the words in the table
    return sparse.csr_matrix(
        (counts[is_in_table].astype(np.float64), ids[is_in_table], row_starts), (batch.n_rows, sums.table.n_ids)
    )


def _is_category(column: Feature, batch: Batch) -> bool:
    """Returns whether a column is categorical: it has names, or numbers that are counted one by one. Yes/no columns are
    numbers. ``batch`` has the first rows.
    """
    if batch.kind(column.name) not in ("boolean", "integer", "float", "empty"):
        return True
    family = column.family
    return family.keyed and not family.has_density() and family.permanent_keys() != frozenset((False, True))


def _number_values(code_batches: Sequence[Any]) -> Int:
    """Returns the number of each row's value in a column, −1 where missing. Distinct values are numbered from 0 as they
    come, in the same way for all batches. ``code_batches`` has the codes of the column, batch by batch.
    """
    number_of: dict[Any, int] = {}

    def number_values(values: Sequence[Any]) -> list[int]:
        """Returns the number of each value; a new value gets the next number."""
        return [number_of.setdefault(value, len(number_of)) for value in values]

    return np.concatenate([map_values(codes, number_values) for codes in code_batches])


# The curve -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CurveScores:
    """The accuracies and log losses of a learner on the held-out rows (repeats × sizes)."""

    name: str  # of the learner, for users
    accuracy: Real  # repeats × sizes
    log_loss: Real  # repeats × sizes

    @property
    def mean_accuracy(self) -> Real:
        """The mean accuracy (repeats × sizes) over repeats, for each size."""
        return np.asarray(self.accuracy.mean(axis=0))

    @property
    def mean_log_loss(self) -> Real:
        """The mean log loss (repeats × sizes) over repeats, for each size."""
        return np.asarray(self.log_loss.mean(axis=0))

    @property
    def standard_error(self) -> Real | None:
        """The standard error of the mean accuracy, for each size; None for a single repeat."""
        n_repeats = len(self.accuracy)
        return None if n_repeats < 2 else np.asarray(self.accuracy.std(axis=0, ddof=1) / n_repeats**0.5)

    def _to_dict(self) -> dict[str, Any]:
        """Returns the scores for JSON: lists by repeat and size, and their means by size."""
        error = self.standard_error
        return {
            "name": self.name,
            "accuracy": self.accuracy.tolist(),
            "log_loss": self.log_loss.tolist(),
            "mean_accuracy": self.mean_accuracy.tolist(),
            "standard_error": None if error is None else error.tolist(),
            "mean_log_loss": self.mean_log_loss.tolist(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(Tabular, CurveScores):
    """Scores on held-out rows after learning from ``sizes`` rows; ``peer`` has those of another learner, if one was
    requested.

    ``n_test`` of ``n_rows`` rows were held out each time. ``majority`` is the accuracy of always predicting their most
    frequent class.
    """

    sizes: Int  # numbers of training rows, ascending
    n_rows: int  # labelled rows
    n_test: int
    n_classes: int
    majority: float
    peer: CurveScores | None = None
    notes: tuple[str, ...] = ()  # on what was judged

    @property
    def random_guess(self) -> float:
        """The accuracy of guessing a class at random."""
        return 1.0 / self.n_classes

    @property
    def learners(self) -> list[CurveScores]:
        """The scores of this learner, followed by those of the other learner if there is one."""
        return [self] if self.peer is None else [self, self.peer]

    def to_dict(self) -> dict[str, Any]:
        """Returns the curve for JSON."""
        return {
            "sizes": self.sizes.tolist(),
            "repeats": len(self.accuracy),
            "rows": self.n_rows,
            "test_rows": self.n_test,
            "classes": self.n_classes,
            "random_guess": self.random_guess,
            "majority": self.majority,
            **self._to_dict(),
            "peer": None if self.peer is None else self.peer._to_dict(),
            "notes": list(self.notes),
        }

    def _frame_columns(self) -> dict[str, list[Any]]:
        """Returns the columns, by name, of a table with a row for each learner and size."""
        records = []
        for learner in self.learners:
            standard_error = learner.standard_error
            for size_number, size in enumerate(self.sizes.tolist()):
                records.append(
                    {
                        "learner": learner.name,
                        "rows": size,
                        "accuracy": float(learner.mean_accuracy[size_number]),
                        "log_loss": float(learner.mean_log_loss[size_number]),
                        "standard_error": float("nan")
                        if standard_error is None
                        else float(standard_error[size_number]),
                    }
                )
        return columns_of(records)

    def __str__(self) -> str:
        """Returns the curve as a table of text, a line for each size."""
        names = " beside ".join(learner.name for learner in self.learners)
        repeats = errors.many(len(self.accuracy), "repeat")
        held_out = f"{self.n_test:,} of {self.n_rows:,} rows held out"
        title = f"Learning curve of {names}: {repeats}, {held_out}, {self.n_classes:,} classes"
        columns = [["rows", *(f"{size:,}" for size in self.sizes.tolist())]]  # of the table, each after its title
        for learner in self.learners:
            standard_error = learner.standard_error
            standard_errors = [None] * len(self.sizes) if standard_error is None else standard_error.tolist()
            accuracies = map(Mean, learner.mean_accuracy.tolist(), standard_errors)
            losses = (f"{loss:.4f}" for loss in learner.mean_log_loss.tolist())
            columns += [["accuracy", *map(str, accuracies)], ["log loss", *losses]]
        widths = [max(map(len, column)) for column in columns]
        lines = align_columns(list(zip(*columns, strict=True)), right_aligned=range(len(columns)))
        if self.peer is not None:  # the name of each learner stands above its two columns
            lines.insert(0, f"  {self.name:>{sum(widths[:3]) + 4}}  {self.peer.name:>{sum(widths[3:]) + 2}}")
        baselines = f"random guess {self.random_guess:.4f}, majority {self.majority:.4f}"
        return "\n".join([title, *lines, *(f"  {line}" for line in (baselines, *self.notes))])

    __repr__ = __str__
