"""Evaluation and CrossValidation: a model's predictions of rows that it has not seen, and their measures; and ``evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.errors import many
from banbury.labels import evaluate as evaluate_labels
from banbury.model.naive_bayes import Model, add_unknown_classes, model_of, same_rows
from banbury.notebooks import Displayed, NotebookTable, Tabular
from banbury.reading import Source, n_threads
from banbury.reading.batches import as_name
from banbury.rows.labelled import occurring_names, renumber
from banbury.sums import kernel_weights, sum_axis
from banbury.tally.partitioned import or_in_partitions
from banbury.tally.table import Labels, number_classes
from banbury.tally.tally import Label

BINS = 15  # of the expected calibration error
SHOWN = 20
TRAINING_ROWS_NOTE = (
    "these are the rows that the model was trained on, so the figures are too optimistic: use cross-validation to "
    "estimate its accuracy on others"
)
FINEST = -57  # sums of numbers are in units of two to that power
Quantity = Literal["log_loss", "squared_distance", "confidence"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)  # in the order of ``Outcomes.sums``
LEAST_PROBABILITY = np.finfo(np.float64).eps  # a lower one counts as this in the log loss, as in scikit-learn


class Mean(NamedTuple):
    """A mean over folds and its standard error."""

    value: float
    error: float | None  # None for a single fold

    @classmethod
    def of(cls, fold_values: Real) -> Mean:
        """Returns the mean of one figure per fold. A single fold has no standard error."""
        error = float(fold_values.std(ddof=1)) / len(fold_values) ** 0.5 if len(fold_values) > 1 else None
        return cls(float(fold_values.mean()), error)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4f}" + ("" if self.error is None else f" ± {self.error:.4f}")

    def __repr__(self) -> str:
        return str(self)


class PerClass(NamedTuple):
    """One number per class of each measure, in the order of the evaluation's classes; ``rows`` are numbers of rows."""

    precision: Real
    recall: Real
    f1: Real
    rows: Real


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Sums of outcomes over rows. All sums are whole numbers, so the order of rows and batches does not change the
    result.
    """

    n_rows: int  # including those of weight 0
    folds: Integers  # rows by fold and by whether they are wrong or right (folds, 2)
    confusion: Integers  # rows by true and by predicted class (classes, classes)
    bins: Integers  # rows by bin of confidence and by whether they are wrong or right (bins, 2)
    sums: Integers  # Σz and Σz² of log loss, squared distance and confidence, by bin of confidence (3, bins, 2)

    @classmethod
    def of(
        cls, posteriors: Real, truth: NDArray[np.int32], folds: NDArray[np.int32], n_folds: int, weights: Real | None
    ) -> Outcomes:
        """Returns the summed outcomes of posteriors (rows × classes), given the true class number (``truth``) and the
        fold of each row. ``weights`` are None if all are 1.
        """
        predicted = posteriors.argmax(axis=1)  # class numbers; this and what follows have one entry per row
        n_classes = posteriors.shape[1]
        row_numbers = np.arange(len(truth))
        true_posterior = posteriors[row_numbers, truth]
        confidence = posteriors[row_numbers, predicted]
        is_correct = predicted == truth
        squared_norms = np.einsum("ij,ij->i", posteriors, posteriors)  # of each row's posteriors
        losses = -np.log(np.maximum(true_posterior, LEAST_PROBABILITY))
        # Between the posteriors and the truth, which is 1 for the true class and 0 for others.
        squared_distances = np.maximum(squared_norms - 2.0 * true_posterior + 1.0, 0.0)
        bin_numbers = np.minimum((confidence * BINS).astype(np.int32), BINS - 1)
        # −1 for rows of weight 0, and the weights as the kernels take them.
        weighted_rows, unit_weights = kernel_weights(np.zeros(len(truth), dtype=np.int32), weights)
        has_no_weight = weighted_rows < 0

        def count_rows(cell_numbers: Any, *shape: int) -> Integers:
            """Returns the weights of rows (``unit_weights``, None: all 1) added up in an array of this ``shape``, where
            row i is in cell ``cell_numbers[i]``, counted line by line; rows that ``has_no_weight`` marks are left out.
            """
            cells = np.where(has_no_weight, -1, cell_numbers).astype(np.int32)  # −1 counts nowhere
            # The last argument is the number of threads.
            return _core.count_classes(cells, int(np.prod(shape)), unit_weights, 1).arranged(list(shape))

        # The bin of each row, −1 if it has no weight, and the numbers to add up.
        weighted_bins = np.where(has_no_weight, -1, bin_numbers).astype(np.int32)
        columns = [np.ascontiguousarray(column) for column in (losses, squared_distances, confidence)]
        # Σz and Σz² of each column by bin. Numbers are centred at 0 in units of 1, so as they are; the last argument is
        # the number of threads.
        _, sums = _core.count_moments(columns, np.zeros(3), np.ones(3), weighted_bins, BINS, unit_weights, 1)
        return cls(
            len(truth),
            folds=count_rows(2 * folds + is_correct, n_folds, 2),
            confusion=count_rows(truth.astype(np.int64) * n_classes + predicted, n_classes, n_classes),
            bins=count_rows(2 * bin_numbers + is_correct, BINS, 2),
            sums=sums,
        )

    def __add__(self, other: Outcomes) -> Outcomes:
        """Returns the outcomes of these and the ``other`` rows, over the same classes and folds."""
        return Outcomes(
            self.n_rows + other.n_rows,
            folds=self.folds + other.folds,
            confusion=self.confusion + other.confusion,
            bins=self.bins + other.bins,
            sums=self.sums + other.sums,
        )

    def among(self, names: Sequence[Label], all_names: Sequence[Label]) -> Outcomes:
        """Returns the outcomes for a larger list of classes, ``all_names``, of which ``names`` are those counted so
        far, in the order of ``self.confusion`` (true × predicted classes).
        """
        number_among_all = np.array([all_names.index(name) for name in names], dtype=np.int64)
        # Along axis 0, the true classes, and then along axis 1, the predicted ones.
        with_all_true_classes = self.confusion.merge(number_among_all, len(all_names), 0)
        return replace(self, confusion=with_all_true_classes.merge(number_among_all, len(all_names), 1))

    @cached_property
    def weight(self) -> float:
        """The total weight of the rows, from ``bins`` (bins × wrong or right)."""
        return float(sum_axis(sum_axis(self.bins, axis=0), axis=1).value[0, 0])

    @property
    def accuracy(self) -> float:
        """The share of correct predictions, by weight. ``self.folds`` has the rows by fold and by wrong (0) or right
        (1).
        """
        return float(sum_axis(self.folds, axis=0).value[0, 1]) / self.weight

    def mean(self, quantity: Quantity) -> float:
        """Returns the weighted mean of a quantity over all rows. ``self.sums`` has Σz and Σz² of each quantity by bin
        of confidence (quantities × bins × 2).
        """
        sums_over_bins = sum_axis(self.sums, axis=1).take(np.array([QUANTITIES.index(quantity)]), 0)  # (1, 1, 2)
        return float(sums_over_bins.values(FINEST)[0, 0, 0]) / self.weight

    @property
    def calibration_error(self) -> float:
        """The mean distance between confidence and accuracy over bins of equal width."""
        confidence_by_bin = self.sums.values(FINEST)[QUANTITIES.index("confidence"), :, 0]  # summed over the bin's rows
        n_correct_by_bin = self.bins.value[:, 1]  # column 0 has the wrong predictions
        n_rows_by_bin = sum_axis(self.bins, axis=1).value[:, 0]
        return float(np.abs(confidence_by_bin - n_correct_by_bin).sum() / n_rows_by_bin.sum())


class Measures(Displayed):
    """Measures of predictions, computed from their outcomes. They are defined as in scikit-learn."""

    classes: tuple[Label, ...]
    what: str  # what was done, for the title
    notes: tuple[str, ...]  # sentences for users
    _headline: ClassVar[str] = "accuracy"  # the measure that is printed first
    if TYPE_CHECKING:

        @property
        def _outcomes(self) -> Outcomes:
            """The sums over rows that all measures are made of."""

        @property
        def weighted(self) -> bool:
            """Whether rows had weights."""

    @property
    def accuracy(self) -> Mean:
        """The share of correct predictions."""
        return Mean(self._outcomes.accuracy, error=None)

    @property
    def random_guess(self) -> float:
        """The accuracy of guessing a class at random."""
        return 1.0 / len(self.classes)

    @property
    def majority(self) -> float:
        """The accuracy of always predicting the most frequent class."""
        return float(sum_axis(self._outcomes.confusion, axis=1).value.max() / self._outcomes.weight)

    @cached_property
    def log_loss(self) -> float:
        """The mean of −log P(true class), in nats. Probabilities below 2.2e-16 count as 2.2e-16, as in scikit-learn."""
        return self._outcomes.mean("log_loss")

    @cached_property
    def brier(self) -> float:
        """The mean squared distance between the posterior and the truth over all classes; half of it for two classes."""
        return (0.5 if len(self.classes) == 2 else 1.0) * self._outcomes.mean("squared_distance")

    @cached_property
    def confusion(self) -> NDArray[Any]:
        """The confusion matrix: true classes are rows, predicted classes are columns. Numbers of rows, or their weight
        if rows have weights.
        """
        confusion = self._outcomes.confusion.value
        return confusion if self.weighted else confusion.astype(np.int64)

    @cached_property
    def per_class(self) -> PerClass:
        """Precision, recall, F1 and number of rows of each class; 0 where they are undefined."""
        confusion = self._outcomes.confusion  # true × predicted classes
        n_correct = confusion.value.diagonal()
        n_true = sum_axis(confusion, axis=1).value[:, 0]
        n_predicted = sum_axis(confusion, axis=0).value[0]
        # Numerators and denominators of precision, recall and F1.
        fractions = (n_correct, n_predicted), (n_correct, n_true), (2.0 * n_correct, n_true + n_predicted)
        precision, recall, f1 = (
            np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)
            for numerator, denominator in fractions
        )
        return PerClass(precision, recall, f1, n_true)

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that occur in the test rows or the predictions."""
        occurs = (self.confusion.sum(axis=0) + self.confusion.sum(axis=1)) > 0
        return float(self.per_class.f1[occurs].mean())

    @cached_property
    def calibration_error(self) -> float:
        """The mean distance between confidence and accuracy over bins of equal width."""
        return self._outcomes.calibration_error

    def to_dict(self) -> dict[str, Any]:
        """Returns the measures for JSON."""
        return {
            "rows": self._outcomes.n_rows,
            **self._accuracy_dict(),
            "random_guess": self.random_guess,
            "majority": self.majority,
            "log_loss": self.log_loss,
            "brier": self.brier,
            "macro_f1": self.macro_f1,
            "calibration_error": self.calibration_error,
            **({"auc": self._auc} if self._auc is not None else {}),
            "classes": [
                {"class": name, **dict(zip(PerClass._fields, figures, strict=True))}
                for name, *figures in zip(self.classes, *(column.tolist() for column in self.per_class), strict=True)
            ],
            "confusion": self.confusion.tolist(),
            "notes": list(self.notes),
        }

    def _accuracy_dict(self) -> dict[str, Any]:
        """Returns the entries of ``to_dict`` about accuracy: the value and its standard error, None if unknown."""
        return {"accuracy": self.accuracy.value, "standard_error": self.accuracy.error}

    @property
    def _auc(self) -> float | None:
        """The area under the ROC curve; None if it cannot be computed."""
        return None

    @property
    def _n_different(self) -> int:
        """The number of distinct test rows, counting a row once even if several folds tested it."""
        return self._outcomes.n_rows

    def __str__(self) -> str:
        """Returns the measures as text: those of all rows, a line for each class, and the notes. ``self.what`` says
        what was evaluated.
        """
        baselines = f"(random guess {self.random_guess:.4f}, majority {self.majority:.4f})"
        title = f"{self.what}: {many(self._n_different, 'row')}, {many(len(self.classes), 'class')}"
        figures = {"log loss": self.log_loss, "Brier score": self.brier, "macro F1": self.macro_f1}
        figures |= {} if self._auc is None else {"AUC": self._auc}
        figures["calibration error"] = self.calibration_error
        lines = [title, f"  accuracy           {self.accuracy}  {baselines}"]
        lines += [f"  {name:17}  {figure:.4f}" for name, figure in figures.items()]
        return "\n".join([*lines, *self._class_lines(), *(f"  {note}" for note in self.notes)])

    __repr__ = __str__

    def _notebook_tables(self) -> list[NotebookTable]:
        """Returns the tables that a notebook shows: the measures, and those of each class."""
        figures = {"accuracy": str(self.accuracy), "majority": self.majority, "log loss": self.log_loss}
        figures |= {"Brier score": self.brier, "macro F1": self.macro_f1, "calibration error": self.calibration_error}
        figures |= {} if self._auc is None else {"AUC": self._auc}
        class_columns = {name: values.tolist() for name, values in self.per_class._asdict().items()}
        measures = NotebookTable("", {"measure": list(figures), "value": list(figures.values())})
        return [measures, NotebookTable("", {"class": self.classes, **class_columns})]

    def _class_lines(self) -> list[str]:
        """Returns one line of text for each class: precision, recall, F1, rows, and the class it is most often mistaken
        for.
        """
        shown_classes = range(min(len(self.classes), SHOWN))
        names = [_shorten(self.classes[number]) for number in shown_classes]
        width = max(len("class"), *map(len, names))
        size_title = "weight" if self.weighted else "rows"
        lines = [f"  {'class':{width}}  precision  recall      F1  {size_title:>10}  most often mistaken for"]
        per_class = self.per_class
        for number, name in zip(shown_classes, names, strict=True):
            mistakes = self.confusion[number].astype(np.float64)  # rows of the class, by predicted class
            mistakes[number] = 0.0
            mistaken_for = (
                f"{_shorten(self.classes[int(mistakes.argmax())])} ({mistakes.max():,.6g})" if mistakes.any() else ""
            )
            measure_text = (
                f"{per_class.precision[number]:9.4f}  {per_class.recall[number]:6.4f}  {per_class.f1[number]:6.4f}"
            )
            lines.append(f"  {name:{width}}  {measure_text}  {per_class.rows[number]:10,.6g}  {mistaken_for}".rstrip())
        n_hidden = len(self.classes) - len(names)
        return [*lines, *([f"  … and {n_hidden:,} more class{'es' * (n_hidden > 1)}"] if n_hidden else [])]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Tabular, Measures):
    """The predictions of a model for rows that it has not counted. ``posteriors`` (rows × classes) has the posterior of
    row ``rows[i]`` of the table.

    ``truth`` has class numbers.
    """

    classes: tuple[Label, ...]
    rows: Int  # numbers in the table
    truth: NDArray[np.int32]
    posteriors: Real
    weights: Real | None = None  # None if all are 1
    what: str = "Evaluation"
    notes: tuple[str, ...] = ()

    @cached_property
    def _outcomes(self) -> Outcomes:
        """The sums over rows that all measures are made of."""
        one_fold = np.zeros(len(self.truth), dtype=np.int32)
        return Outcomes.of(self.posteriors, self.truth, one_fold, n_folds=1, weights=self.weights)

    @property
    def weighted(self) -> bool:
        """Whether the rows have weights."""
        return self.weights is not None

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The classes as an array."""
        types = {type(name) for name in self.classes}
        return np.array(self.classes, dtype=object if len(types) > 1 else None)

    @cached_property
    def best(self) -> NDArray[np.int64]:
        """The number of the most probable class of each row."""
        return np.asarray(self.posteriors.argmax(axis=1))

    @property
    def predictions(self) -> NDArray[Any]:
        """The most probable class of each row."""
        return self.labels[self.best]

    def _frame_columns(self) -> dict[str, list[Any]]:
        """Returns the columns of a table with a row for each answer: the truth, the prediction, and the posterior of
        every class.
        """
        posterior_columns = {
            f"P({name})": self.posteriors[:, class_number].tolist() for class_number, name in enumerate(self.classes)
        }
        truth = [self.classes[class_number] for class_number in self.truth.tolist()]
        predictions = [self.classes[class_number] for class_number in self.best.tolist()]
        return {"row": self.rows.tolist(), "truth": truth, "prediction": predictions, **posterior_columns}

    _notebook_tables = Measures._notebook_tables

    @property
    def auc(self) -> float:
        """The area under the ROC curve: how often a row of the second class gets a higher P(second class) than a row of
        the first.

        For more than two classes, the mean over classes of the area of each class against all others. Classes without
        rows are left out.
        """
        if self._auc is None:
            n_tested_classes = np.count_nonzero(self.per_class.rows)
            raise errors.bad_setting(
                "auc", f"asked of {many(int(n_tested_classes), 'class')}", "used with at least two tested classes"
            )
        return self._auc

    @cached_property
    def _auc(self) -> float | None:
        """The area under the ROC curve, for more than two classes the mean over classes; None unless two classes have
        test rows. ``self.truth`` has class numbers.
        """
        tested_classes = np.flatnonzero(self.per_class.rows).tolist()
        if len(tested_classes) < 2:
            return None
        positive_classes = [1] if len(self.classes) == 2 else tested_classes
        areas = [
            area_under_roc(self.posteriors[:, class_number], self.truth == class_number, self.weights)
            for class_number in positive_classes
        ]
        return float(np.mean(areas))

    @property
    def _n_different(self) -> int:
        """The number of distinct test rows; ``self.rows`` has the number of the row of each prediction."""
        return len(np.unique(self.rows))


def area_under_roc(scores: Real, positive: NDArray[np.bool_], weights: Real | None) -> float:
    """Returns how often a positive row scores higher than a negative row, from 0 to 1; ties count one half. ``scores``,
    ``positive`` and ``weights`` (None: all 1) have one entry per row. The order of rows does not matter.
    """
    # Row numbers, by score; in a tie, by content, so that sums do not depend on the order of the rows.
    order = np.argsort(scores, kind="stable") if weights is None else np.lexsort((weights, positive, scores))
    row_weights = np.ones(len(order), dtype=np.int64) if weights is None else weights[order]
    is_positive = positive[order]
    tie_starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))  # below, one entry for each distinct score
    positive_weight = np.add.reduceat(np.where(is_positive, row_weights, 0), tie_starts)
    negative_weight = np.add.reduceat(np.where(is_positive, 0, row_weights), tie_starts)
    lower_negative_weight = np.cumsum(negative_weight) - negative_weight  # of all lower scores
    pair_weight = positive_weight.sum() * negative_weight.sum()
    return float((positive_weight * (2 * lower_negative_weight + negative_weight)).sum() / (2 * pair_weight))


class FoldMeasures(Measures):
    """Measures of predictions, fold by fold."""

    @cached_property
    def fold_accuracies(self) -> Real:
        """The share of correct predictions in each fold that has rows."""
        n_correct = self._outcomes.folds.value[:, 1]  # by fold; column 0 has the wrong predictions
        n_rows = sum_axis(self._outcomes.folds, axis=1).value[:, 0]  # by fold
        return n_correct[n_rows > 0] / n_rows[n_rows > 0]

    @cached_property
    def accuracy(self) -> Mean:
        """The mean share of correct predictions over folds, and its standard error."""
        return Mean.of(self.fold_accuracies)

    @property
    def n_folds(self) -> int:
        """The number of folds that have test rows."""
        return len(self.fold_accuracies)

    @property
    def _brief(self) -> str:
        """The measures by which models are compared, as text."""
        return f"{self.accuracy}  log loss {self.log_loss:.4f}"

    def _accuracy_dict(self) -> dict[str, Any]:
        """Returns the entries of ``to_dict`` about accuracy, with the number of folds."""
        mean_accuracy, standard_error = self.accuracy
        return {"folds": self.n_folds, "accuracy": mean_accuracy, "standard_error": standard_error}


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(FoldMeasures, Evaluation):
    """Out-of-fold predictions: row ``rows[i]`` was scored by a model that had not counted it, when fold ``folds[i]``
    was left out.

    With repeated splits, a row occurs once per repeat.
    """

    folds: NDArray[np.int32] = field(kw_only=True)

    @cached_property
    def _outcomes(self) -> Outcomes:
        """The sums over rows that all measures are made of, fold by fold; ``self.folds`` has the fold of each row."""
        n_folds = int(self.folds.max()) + 1
        return Outcomes.of(self.posteriors, self.truth, self.folds, n_folds, self.weights)


@dataclass(frozen=True, eq=False, repr=False)
class SummedEvaluation(Measures):
    """An evaluation that kept the sums from which measures are computed, but no predictions."""

    classes: tuple[Label, ...]
    _outcomes: Outcomes  # the sums
    weighted: bool = False  # whether rows had weights
    what: str = "Evaluation"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class SummedValidation(FoldMeasures, SummedEvaluation):
    """A cross-validation that kept the sums from which measures are computed, but no predictions."""


def _shorten(label: Label) -> str:
    """Returns a class name as text, shortened for tables."""
    return errors.shortened(repr(label))


@or_in_partitions
def evaluate(model: Any, data: Any, target: Any = None, **reading: Any) -> Any:
    """Measures a model or a fitted estimator on other rows, with the measures of ``bb.cross_validate``.

    Args:
        model: A model, or a fitted estimator.
        data: The rows, in any form that ``bb.count`` reads.
        target: The column of the true classes, or one class per row; the target column of the model unless given. Rows
            without a class are ignored. Classes that the model does not know are never predicted, so their rows count
            as wrong. For a ``bb.LabelModel``, sets of labels; the result is then a ``LabelEvaluation``.
        **reading: All other options are those of ``bb.count``. With several labels per row on an engine, ``sample``
            rows are evaluated (at most 100,000 unless given).

    Returns an ``Evaluation``, whose ``notes`` say if these are exactly the rows that the model has counted. Rows on an
    engine are scored there, with the same result.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> model = bb.estimate(bb.count({name: column[:10] for name, column in weather.items()}, target="play"))
    >>> evaluation = bb.evaluate(model, {name: column[10:] for name, column in weather.items()})
    >>> evaluation.confusion.tolist(), evaluation.accuracy.value
    ([[1, 0], [1, 2]], 0.75)
    """
    model = model_of(model)
    requirement = "a Model, from bb.estimate, or an estimator"
    errors.require(hasattr(type(model), "stream"), "the model", type(model).__name__, requirement)
    if model.schema.labels is not None:
        return evaluate_labels(model, data, target, **reading)
    source = model._read(data, reading)
    target = next((name for name in (as_name(target), model.target, source.target) if name is not None), None)
    errors.require(target is not None, "target", target, "the column with the true classes, or one class per row")
    if isinstance(target, str):
        source = replace(source, target=target)
    return _evaluate_source(model, source, target)


def _evaluate_source(model: Model, source: Source, target: Any) -> Evaluation:
    """Returns the evaluation of the model on the rows of a source, which are read once. ``target`` has their true
    classes or names the column of them. Classes that the model does not know get a posterior of 0.
    """
    labels = Labels.of(target, weights=None, classes=None, threads=n_threads(model.threads))
    names_and_numbers = list[tuple[Sequence[Label], NDArray[np.int32]]]()  # of the classes of each batch
    posterior_batches = []
    for batch, posterior in model.stream(source):
        class_numbers, class_names, _ = number_classes(batch, model.schema, labels)
        names_and_numbers.append((class_names, class_numbers))
        posterior_batches.append(posterior[class_numbers >= 0])  # −1: the row has no class
    n_rows = sum(len(class_numbers) for _, class_numbers in names_and_numbers)
    labels.check_length(n_rows)
    if not n_rows:
        raise errors.empty_data(source.name)
    occurring_classes = set[Label]().union(*(occurring_names(*batch) for batch in names_and_numbers))
    if not occurring_classes:
        raise errors.no_target(n_rows, labels.name)
    classes, notes = add_unknown_classes(model.classes, occurring_classes)
    truth = renumber(names_and_numbers, classes)
    rows = np.flatnonzero(truth >= 0)
    posteriors = np.concatenate(posterior_batches)
    posteriors = np.hstack([posteriors, np.zeros((len(posteriors), len(classes) - posteriors.shape[1]))])
    if source.again and same_rows(lambda: model.n_rows == len(rows) and model.has_counted(source, target)):
        notes = (TRAINING_ROWS_NOTE,)
    return Evaluation(classes, rows, truth[rows], posteriors, notes=notes)
