"""Learning curves: how good the model is after so many rows. Each size adds the tally of its new rows to the tally before it."""

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
from banbury.families.bags.words import word_family
from banbury.families.family import Feature, How
from banbury.families.joint import columns_of_table
from banbury.families.keys import look_up
from banbury.model.naive_bayes import ClassPrior, check_seed
from banbury.notebooks import Tabular, columns_of
from banbury.quality.cross_validation import recipe_from, settle_settings
from banbury.quality.recipes import Plain, Recipe
from banbury.quality.results import Evaluation, Mean
from banbury.reading import Batch
from banbury.rows.labelled import MemoryRows, load_rows
from banbury.rows.scoring import PendingWarnings, score_rows
from banbury.sums import Words
from banbury.tally.schema import Features, Missing, Schema
from banbury.tally.tally import Tally
from banbury.threads import OneBlasThread

N_SIZES = 10  # of a curve, if not given
FEWEST_ROWS = 20  # where such a curve begins
LOGISTIC_REGRESSION = "logistic_regression"
WIDEST_ARRAY = 1000  # columns; more are given as a sparse matrix
MOST_STEPS = 10_000
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # of logistic regression: the inverse of what its L2 penalty weighs
FOLDS = 3  # by which it chooses among them


def learning_curve(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    sizes: Any = None,
    repeats: int = 5,
    test: float = 1 / 3,
    beside: Any = None,
    how: How = "mean",
    alpha: float = 1.0,
    class_prior: ClassPrior = None,
    features: Features = "auto",
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
        beside: Another learner to compare with on the same rows: "logistic_regression" (its penalty is chosen by
            cross-validation), or a scikit-learn classifier with ``predict_proba``. It gets standardised numbers with
            missing values replaced by the mean, categories as dummy variables, and TF-IDF weights of the words that
            naive Bayes uses.
        weigh: True, or settings of ``bb.weigh``, to weigh the evidence on the rows of each size.
        seed: The seed that selects the rows.
        **reading: All other options are those of ``bb.estimate`` and ``bb.count``.

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
    counting = {name: settings[name] for name in ("schema", "features")}
    counting |= {"weights": weights, "missing": settings["missing"] or "skip", "threads": threads}
    rows = load_rows(data, target, takes_sets=False, **counting, **reading)
    return learn_sizes(rows, recipe_from(settings, int(seed)), sizes, repeats, test, beside)


def learn_sizes(
    rows: MemoryRows, recipe: Recipe, sizes: Any = None, repeats: int = 5, test: float = 1 / 3, beside: Any = None
) -> LearningCurve:
    """Computes the learning curve of a recipe."""
    errors.check_whole("repeats", repeats, 1)
    peer = None if beside is None else Peer.of(beside)
    rows = _weighing(recipe.under(rows))
    seed = int(getattr(recipe, "seed", 0))
    n_rows = rows.n_labelled
    n_classes = len(rows.classes)
    n_test = _withheld(test, n_rows, rows.classes)
    ends = _sizes(sizes, n_rows - n_test, n_classes)
    validations = list[list[Evaluation]]()
    peer_validations = list[list[Evaluation]]()
    pending = PendingWarnings()
    for number in range(int(repeats)):
        order = spread(rows.labels, np.random.default_rng([seed, number]))
        growth = Growth(rows, order, ends)
        tested = np.sort(order[n_rows - n_test :])
        tallies = [growth.tally(k) for k in range(len(ends))] if isinstance(recipe, Plain) or peer else []
        validations.append([])
        for k in range(len(ends)):
            if isinstance(recipe, Plain):
                model = recipe.estimate(tallies[k], rows.classes)
                pending.wordless.update(model.lost_words())
            else:
                model = recipe.learn(rows.only(growth.rows_of(k)))
            model = replace(model, threads=rows.threads)
            validations[-1].append(_evaluate_answers(rows, tested, score_rows(rows, tested, model, "posterior")[0]))
        if peer is not None:
            table = PeerArrays.of(rows, growth.groups.counted)
            peer_validations.append([])
            for k, tally in enumerate(tallies):
                learned = growth.rows_of(k)
                own_weights = None if rows.weights is None else rows.weights[learned]
                matrices = table.matrices(learned, tested, tally)
                posteriors = peer.posteriors(*matrices, rows.labels[learned], own_weights, n_classes)
                peer_validations[-1].append(_evaluate_answers(rows, tested, posteriors))
    pending.warn(getattr(recipe, "how", "mean"))
    majority = float(np.mean([by_size[0].majority for by_size in validations]))
    scores = _measures(validations)
    at = np.array(ends, dtype=np.int64)
    side = None if peer is None else CurveScores(peer.name, *_measures(peer_validations))
    return LearningCurve(recipe.describe_under(rows.schema), *scores, at, n_rows, n_test, n_classes, majority, side)


# Which rows ----------------------------------------------------------------------------------------------------------


def _weighing(rows: MemoryRows) -> MemoryRows:
    """Rows of weight 0 are no rows, and a class that has no others is no class."""
    if rows.weights is None or rows.weights.all():
        return rows
    labels = np.where(rows.weights > 0, rows.labels, -1)
    used, numbers = np.unique(labels, return_inverse=True)
    n_unused = int(np.count_nonzero(used < 0))
    classes = tuple(rows.classes[c] for c in used[n_unused:].tolist())
    if not classes:
        raise errors.empty_data(rows.name, "the weight of every row is 0")
    return replace(rows, labels=(numbers.reshape(-1) - n_unused).astype(np.int32), classes=classes)


def _withheld(test: Any, n_rows: int, classes: Sequence[Any]) -> int:
    """How many rows are withheld."""
    if len(classes) < 2:
        raise errors.bad_setting("target", f"one class, {classes[0]!r}", "at least two classes")
    if not isinstance(test, (float, np.floating)) or not 0 < test < 1:
        raise errors.bad_setting("test", test, "the share of rows to hold out, between 0 and 1, such as 1/3")
    n_test = max(1, round(float(test) * n_rows))
    requirement = f"a share that leaves at least one of {n_rows:,} rows for each of the {len(classes):,} classes"
    errors.require(n_rows - n_test >= len(classes), "test", test, requirement)
    return n_test


def _sizes(numbers: Any, most: int, n_classes: int) -> list[int]:
    """The sizes of a curve in rows."""
    if numbers is None:
        first = min(max(2 * n_classes, min(FEWEST_ROWS, most // 2)), most)
        return sorted(set(np.rint(np.geomspace(first, most, N_SIZES)).astype(np.int64).tolist()))
    requirement = (
        f"an ascending list of numbers of rows, from {n_classes:,} (one per class) to {most:,} (all rows that are not held out), "
        "or of shares of these such as 0.5, up to 1.0"
    )
    errors.require(
        not isinstance(numbers, (str, bytes)) and isinstance(numbers, Iterable), "sizes", numbers, requirement
    )
    sizes: list[int] = []
    for number in numbers.tolist() if isinstance(numbers, np.ndarray) else numbers:
        is_count = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        share = isinstance(number, (float, np.floating)) and 0 < number <= 1
        size = int(number) if is_count else round(float(number) * most) if share else 0
        errors.require(
            n_classes <= size <= most, "sizes", f"{number} ({size:,} rows)" if share else number, requirement
        )
        sizes.append(size)
    errors.require(sizes and not any(b <= a for a, b in pairwise(sizes)), "sizes", sizes, requirement)
    return sizes


def spread(labels: NDArray[np.int32], rng: np.random.Generator) -> Int:
    """Returns the labelled rows in a random order in which every class is spread evenly. The first row of each class
    comes first.

    So any prefix contains every class, and any part of the order has about the same class frequencies.
    """
    rows = rng.permutation(np.flatnonzero(labels >= 0))
    rows = rows[np.argsort(labels[rows], kind="stable")]
    owner = labels[rows]
    sizes = np.bincount(labels[rows])
    nth = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[owner]
    place = (nth + rng.random(len(sizes))[owner]) / sizes[owner]
    return np.asarray(rows[np.argsort(np.where(nth == 0, -1.0, place), kind="stable")], dtype=np.int64)


# What is learned from them -------------------------------------------------------------------------------------------


class Growth:
    """Rows in an order with cut points ``ends``. The rows between two cuts are counted separately, all in one pass."""

    def __init__(self, rows: MemoryRows, order: Int, ends: Sequence[int]) -> None:
        self.order = order
        self.ends = ends
        added = np.full(rows.n_rows, -1, dtype=np.int32)
        added[order[: ends[-1]]] = np.searchsorted(ends, np.arange(ends[-1]), side="right")
        self.groups = rows.count(added, len(ends))

    def rows_of(self, k: int) -> Int:
        """Returns the rows of the k-th size."""
        return np.sort(self.order[: self.ends[k]])

    def tally(self, k: int) -> Tally:
        """Returns the tally of the k-th size."""
        return self.groups.estimation_tally(np.arange(len(self.ends)) <= k)


def _evaluate_answers(rows: MemoryRows, tested: Int, posteriors: Real) -> Evaluation:
    weights = None if rows.weights is None else rows.weights[tested]
    return Evaluation(rows.classes, tested, rows.labels[tested], posteriors, weights)


def _measures(validations: Sequence[Sequence[Evaluation]]) -> tuple[Real, Real]:
    """Accuracies and log losses, repeats × sizes."""
    accuracy = np.array([[evaluation.accuracy.value for evaluation in repeat] for repeat in validations])
    return accuracy, np.array([[evaluation.log_loss for evaluation in repeat] for repeat in validations])


# Another learner on the same rows -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Peer:
    """A scikit-learn classifier that is fitted anew each time; ``choices`` has the settings to choose from first."""

    name: str
    classifier: Any
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, beside: Any) -> Peer:
        if isinstance(beside, str):
            if beside != LOGISTIC_REGRESSION:
                raise errors.unknown_choice("beside", beside, [LOGISTIC_REGRESSION])
            from sklearn.linear_model import LogisticRegression

            return cls("logistic regression", LogisticRegression(max_iter=MOST_STEPS), {"C": STRENGTHS})
        able = all(hasattr(beside, verb) for verb in ("get_params", "fit", "predict_proba"))
        requirement = (
            f"{LOGISTIC_REGRESSION!r} or a scikit-learn classifier with predict_proba, such as RandomForestClassifier()"
        )
        errors.require(not isinstance(beside, type) and able, "beside", beside, requirement)
        return cls(type(beside).__name__, beside)

    def posteriors(self, learned: Any, tested: Any, labels: Any, weights: Real | None, n_classes: int) -> Real:
        """Fits to the training rows and returns P(class | row) of the test rows."""
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import GridSearchCV

        classifier = clone(self.classifier)
        folds = min(FOLDS, int(np.unique(labels, return_counts=True)[1].min()))
        if self.choices and folds > 1:  # every class has rows enough to choose its settings by cross-validation
            classifier = GridSearchCV(classifier, dict(self.choices), cv=folds, scoring="neg_log_loss")
        # Products of small matrices take longer with threads, many times so where the processors are busy.
        with warnings.catch_warnings(), OneBlasThread():
            warnings.simplefilter("ignore", ConvergenceWarning)
            classifier.fit(learned, labels, **self._weight_settings(weights))
            shares = np.asarray(classifier.predict_proba(tested), dtype=np.float64)
        wide = np.zeros((len(shares), n_classes))
        wide[:, np.asarray(classifier.classes_, dtype=np.int64)] = shares
        return wide

    def _weight_settings(self, weights: Real | None) -> dict[str, Real]:
        """The weights of rows as the classifier takes them, or the last step of a pipeline."""
        from sklearn.utils.validation import has_fit_parameter

        if weights is None:
            return {}
        name, last = self.classifier.steps[-1] if hasattr(self.classifier, "steps") else ("", self.classifier)
        requirement = "a classifier that accepts sample_weight, because rows have weights"
        errors.require(has_fit_parameter(last, "sample_weight"), "beside", self.name, requirement)
        return {f"{name}__sample_weight" if name else "sample_weight": weights}


@dataclass(frozen=True, eq=False)
class PeerArrays:
    """A data set as arrays: numbers with NaN for missing, category numbers with −1 for missing, and word counts."""

    numbers: Real  # (rows, columns)
    categories: Int  # (rows, columns)
    words: Mapping[str, Any]  # a sparse matrix of rows × words for each column of text, or block of occurrences

    @classmethod
    def of(cls, rows: MemoryRows, counted: Tally) -> PeerArrays:
        """Converts all columns, including those of blocks; words have their numbers in a tally."""
        from scipy import sparse

        none = np.zeros((rows.n_rows, 0))
        numbers = [none]
        categories = [none.astype(np.int64)]
        words = {}
        for _, features, sums in counted.groups:
            if features[0].counter.words:
                matrices = [_occurrences(batch, features[0], sums, rows.threads) for batch in rows.batches]
                words[features[0].name] = sparse.vstack(matrices, format="csr")
                continue
            for feature in features:
                if feature.holds_lists:
                    numbers += [np.concatenate([feature.numbers(b)[0] for b in rows.batches], dtype=np.float64)]
                    continue
                for column in columns_of_table(feature) or [feature._replace(name=name) for name in feature.inputs]:
                    if _is_category(column, rows.batches[0]):
                        codes = [
                            column.family.keys_of(b, column, strict=False) or b.codes(column.name) for b in rows.batches
                        ]
                        categories.append(_number_values(codes)[:, None])
                    else:
                        columns = [b.numbers([column.name])[0].reshape(b.n_rows, -1) for b in rows.batches]
                        numbers.append(np.concatenate(columns, dtype=np.float64))
        return cls(np.concatenate(numbers, axis=1), np.concatenate(categories, axis=1), words)

    def matrices(self, learned: Int, tested: Int, tally: Tally) -> tuple[Any, Any]:
        """Returns the training and test matrices, scaled by the training rows: arrays, or sparse matrices if they are
        wide.

        ``tally`` has counted the training rows; only its words are used.
        """
        from scipy import sparse

        ways = [(way, columns) for way, columns in self._blocks(tally) if columns.shape[1]]
        blocks = [(way.fit_transform(columns[learned]), way.transform(columns[tested])) for way, columns in ways]
        sides: Any = list(zip(*blocks, strict=True)) if blocks else [[np.zeros((len(x), 1))] for x in (learned, tested)]
        if self.words or sum(part.shape[1] for part in sides[0]) > WIDEST_ARRAY:
            fitted, answered = ([sparse.csr_matrix(part) for part in side] for side in sides)
            return sparse.hstack(fitted, format="csr"), sparse.hstack(answered, format="csr")
        plain = [[part.toarray() if sparse.issparse(part) else part for part in side] for side in sides]
        return np.hstack(plain[0]), np.hstack(plain[1])

    def _blocks(self, tally: Tally) -> list[tuple[Any, Any]]:
        """Columns of each kind, and what scikit-learn makes of them."""
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        scaled = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
        blocks = [(scaled, self.numbers), (OneHotEncoder(handle_unknown="ignore"), self.categories)]
        for _, (feature, *_), sums in tally.groups:
            if (matrix := self.words.get(feature.name)) is not None:
                kept = np.sort(word_family(feature).words_in_use(feature, sums).ids).astype(np.int64)
                blocks.append((TfidfTransformer(), matrix[:, kept[kept < matrix.shape[1]]]))
        return blocks


def _occurrences(batch: Batch, feature: Feature, sums: Words, threads: int) -> Any:
    """How often each row has each word, by the ids of words."""
    from scipy import sparse

    offsets, ids, times = word_family(feature).bags(batch, feature, sums, threads)
    in_table = (ids >= 0) & (ids < sums.table.n_ids)
    starts = np.append(0, np.cumsum(in_table))[offsets]
    return sparse.csr_matrix(
        (times[in_table].astype(np.float64), ids[in_table], starts), (batch.n_rows, sums.table.n_ids)
    )


def _is_category(column: Feature, batch: Batch) -> bool:
    """Whether a column is one of names: numbers are, too, where each is counted by itself, but for yes and no."""
    if batch.kind(column.name) not in ("boolean", "integer", "float", "empty"):
        return True
    family = column.family
    return family.keyed and not family.has_density() and family.permanent_keys() != frozenset((False, True))


def _number_values(batches: Sequence[Any]) -> Int:
    """Numbers of a column's values, the same in all batches; −1 where missing."""
    place: dict[Any, int] = {}

    def numbers(values: Sequence[Any]) -> list[int]:
        return [place.setdefault(value, len(place)) for value in values]

    return np.concatenate([look_up(column, numbers) for column in batches])


# The curve -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CurveScores:
    """The accuracies and log losses of a learner on the held-out rows (repeats × sizes)."""

    name: str
    accuracy: Real
    log_loss: Real

    @property
    def mean_accuracy(self) -> Real:
        """The mean accuracy over repeats, for each size."""
        return np.asarray(self.accuracy.mean(axis=0))

    @property
    def mean_log_loss(self) -> Real:
        return np.asarray(self.log_loss.mean(axis=0))

    @property
    def standard_error(self) -> Real | None:
        """The standard error of the mean accuracy, for each size; None for a single repeat."""
        n = len(self.accuracy)
        return None if n < 2 else np.asarray(self.accuracy.std(axis=0, ddof=1) / n**0.5)

    def _to_dict(self) -> dict[str, Any]:
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
    """Scores on held-out rows after learning from ``sizes`` rows; ``beside`` has those of another learner, if one was
    requested.

    ``n_test`` of ``n_rows`` rows were held out each time. ``majority`` is the accuracy of always predicting their most
    frequent class.
    """

    sizes: Int
    n_rows: int
    n_test: int
    n_classes: int
    majority: float
    beside: CurveScores | None = None
    notes: tuple[str, ...] = ()  # on what was judged

    @property
    def random_guess(self) -> float:
        """The accuracy of guessing a class at random."""
        return 1.0 / self.n_classes

    @property
    def learners(self) -> list[CurveScores]:
        """This one, and the other if there is one."""
        return [self] if self.beside is None else [self, self.beside]

    def to_dict(self) -> dict[str, Any]:
        """Returns the curve for JSON."""
        return {
            "sizes": self.sizes.tolist(),
            "repeats": len(self.accuracy),
            "rows": self.n_rows,
            "withheld": self.n_test,
            "classes": self.n_classes,
            "random_guess": self.random_guess,
            "majority": self.majority,
            **self._to_dict(),
            "beside": None if self.beside is None else self.beside._to_dict(),
            "notes": list(self.notes),
        }

    def _frame_columns(self) -> dict[str, list[Any]]:
        """A row for each learner and size."""
        records = []
        for learner in self.learners:
            error = learner.standard_error
            for k, size in enumerate(self.sizes.tolist()):
                scores = {"accuracy": float(learner.mean_accuracy[k]), "log_loss": float(learner.mean_log_loss[k])}
                scores["standard_error"] = float("nan") if error is None else float(error[k])
                records.append({"learner": learner.name, "rows": size, **scores})
        return columns_of(records)

    def __str__(self) -> str:
        named = " beside ".join(learner.name for learner in self.learners)
        n = errors.many(len(self.accuracy), "repeat")
        head = f"Learning curve of {named}: {n}, {self.n_test:,} of {self.n_rows:,} rows held out, {self.n_classes:,} classes"
        columns = [["rows", *(f"{size:,}" for size in self.sizes.tolist())]]
        for learner in self.learners:
            error = learner.standard_error
            means = enumerate(learner.mean_accuracy.tolist())
            accuracies = (Mean(mean, None if error is None else error[k]) for k, mean in means)
            losses = (f"{loss:.4f}" for loss in learner.mean_log_loss.tolist())
            columns += [["accuracy", *map(str, accuracies)], ["log loss", *losses]]
        widths = [max(map(len, column)) for column in columns]
        padded = ([f"{cell:>{width}}" for cell in column] for column, width in zip(columns, widths, strict=True))
        lines = ["  ".join(row) for row in zip(*padded, strict=True)]
        if self.beside is not None:
            lines.insert(0, f"{self.name:>{sum(widths[:3]) + 4}}  {self.beside.name:>{sum(widths[3:]) + 2}}")
        guess = f"random guess {self.random_guess:.4f}, majority {self.majority:.4f}"
        return "\n".join([head, *(f"  {line}" for line in [*lines, guess, *self.notes])])

    __repr__ = __str__
