"""Evaluation and CrossValidation: what a model said of rows it had not seen, and how good that was; and ``evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.errors import many
from banbury.families.keys import dense_numbers
from banbury.labels import evaluate as evaluate_labels
from banbury.model.naive_bayes import Model, add_unknown_classes, model_of, same_rows
from banbury.notebooks import Displayed, NotebookTable, Tabular
from banbury.reading import Source, n_threads
from banbury.reading.batches import as_name
from banbury.rows.labelled import occurring_names, renumber
from banbury.sums import kernel_weights, total
from banbury.tally.partitioned import or_in_partitions
from banbury.tally.table import Labels
from banbury.tally.tally import Label

BINS = 15  # of the expected calibration error
SHOWN = 20
OWN_ROWS = (
    "these are the rows that the model was trained on, so the figures are too optimistic: use cross-validation to "
    "estimate its accuracy on others"
)
FINEST = -57  # sums of numbers are in units of two to that power
FEWEST = np.finfo(np.float64).eps  # a lower probability counts as this in the log loss, as scikit-learn has it


class Mean(NamedTuple):
    """A mean over folds and its standard error."""

    value: float
    error: float | None

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
    """One number per class, in the order of ``classes``."""

    precision: Real
    recall: Real
    f1: Real
    rows: Real


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Sums of outcomes over rows. All sums are whole numbers, so the order of rows and batches does not change the
    result.
    """

    n_rows: int  # those of weight 0 too
    folds: Integers  # (folds, wrong or right): rows
    cells: Integers  # (true class, answered class): rows
    bins: Integers  # (bins of confidence, wrong or right): rows
    sums: Integers  # (−log P(true class), squared distance from the truth, confidence; bins; Σz, Σz²)

    @classmethod
    def of(
        cls, posteriors: Real, truth: NDArray[np.int32], folds: NDArray[np.int32], n_folds: int, weights: Real | None
    ) -> Outcomes:
        """Sums the outcomes of posteriors (rows × classes) of rows with known classes and folds."""
        best = posteriors.argmax(axis=1)
        n_classes = posteriors.shape[1]
        at = np.arange(len(truth))
        true_posterior = posteriors[at, truth]
        confidence = posteriors[at, best]
        right = best == truth
        square = np.einsum("ij,ij->i", posteriors, posteriors)
        numbers = (
            -np.log(np.maximum(true_posterior, FEWEST)),
            np.maximum(square - 2.0 * true_posterior + 1.0, 0.0),
            confidence,
        )
        place = np.minimum((confidence * BINS).astype(np.int32), BINS - 1)
        rows, weight = kernel_weights(np.zeros(len(truth), dtype=np.int32), weights)

        def count_cells(number: Any, *shape: int) -> Integers:
            cells = np.where(rows < 0, -1, number).astype(np.int32)
            return _core.count_classes(cells, int(np.prod(shape)), weight, 1).arranged(list(shape))

        bins = np.where(rows < 0, -1, place).astype(np.int32)
        columns = [np.ascontiguousarray(column) for column in numbers]
        _, sums = _core.count_moments(columns, np.zeros(3), np.ones(3), bins, BINS, weight, 1)
        cells = count_cells(truth.astype(np.int64) * n_classes + best, n_classes, n_classes)
        return cls(
            len(truth), count_cells(2 * folds + right, n_folds, 2), cells, count_cells(2 * place + right, BINS, 2), sums
        )

    def __add__(self, other: Outcomes) -> Outcomes:
        n_rows = self.n_rows + other.n_rows
        folds = self.folds + other.folds
        cells = self.cells + other.cells
        return Outcomes(n_rows, folds, cells, self.bins + other.bins, self.sums + other.sums)

    def among(self, names: Sequence[Label], all_names: Sequence[Label]) -> Outcomes:
        """Returns the same outcomes for a larger list of classes."""
        place = np.array([all_names.index(name) for name in names], dtype=np.int64)
        return replace(self, cells=self.cells.merge(place, len(all_names), 0).merge(place, len(all_names), 1))

    @cached_property
    def weight(self) -> float:
        """The total weight of the rows."""
        return float(total(total(self.bins, 0), 1).value[0, 0])

    @property
    def right(self) -> float:
        """The share of correct predictions."""
        return float(total(self.folds, 0).value[0, 1]) / self.weight

    def mean(self, number: int) -> float:
        """Returns the mean of one of the sums over all rows."""
        every = total(self.sums, 1).take(np.array([number]), 0)
        return float(every.values(FINEST)[0, 0, 0]) / self.weight

    @property
    def by_confidence(self) -> tuple[Real, Real, Real]:
        """Returns the sums of confidence, of correct predictions and of weights in bins of equal width."""
        return self.sums.values(FINEST)[2, :, 0], self.bins.value[:, 1], total(self.bins, 1).value[:, 0]


class Measures(Displayed):
    """Measures of predictions, computed from their outcomes. They are defined as in scikit-learn."""

    classes: tuple[Label, ...]
    what: str
    notes: tuple[str, ...]
    headline: ClassVar[str] = "accuracy"  # the measure that is told first
    if TYPE_CHECKING:

        @property
        def outcomes(self) -> Outcomes:
            """The sums over rows that all measures are made of."""

        @property
        def weighted(self) -> bool:
            """Whether rows had weights."""

    @property
    def accuracy(self) -> Mean:
        """The share of correct predictions."""
        return Mean(self.outcomes.right, None)

    @property
    def random_guess(self) -> float:
        """The accuracy of guessing a class at random."""
        return 1.0 / len(self.classes)

    @property
    def majority(self) -> float:
        """The accuracy of always predicting the most frequent class."""
        return float(total(self.outcomes.cells, 1).value.max() / self.outcomes.weight)

    @cached_property
    def log_loss(self) -> float:
        """The mean of −log P(true class), in nats. Probabilities below 2.2e-16 count as 2.2e-16, as in scikit-learn."""
        return self.outcomes.mean(0)

    @cached_property
    def brier(self) -> float:
        """The mean squared distance between the posterior and the truth over all classes; half of it for two classes."""
        return (0.5 if len(self.classes) == 2 else 1.0) * self.outcomes.mean(1)

    @cached_property
    def confusion(self) -> NDArray[Any]:
        """The confusion matrix: true classes are rows, predicted classes are columns."""
        cells = self.outcomes.cells.value
        return cells if self.weighted else cells.astype(np.int64)

    @cached_property
    def per_class(self) -> PerClass:
        """Precision, recall, F1 and number of rows of each class; 0 where they are undefined."""
        cells = self.outcomes.cells
        right = cells.value.diagonal()
        true = total(cells, 1).value[:, 0]
        answered = total(cells, 0).value[0]
        shares = (right, answered), (right, true), (2.0 * right, true + answered)
        precision, recall, f1 = (np.divide(a, b, out=np.zeros(len(a)), where=b > 0) for a, b in shares)
        return PerClass(precision, recall, f1, true)

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that occur in the test rows or the predictions."""
        occurs = (self.confusion.sum(axis=0) + self.confusion.sum(axis=1)) > 0
        return float(self.per_class.f1[occurs].mean())

    @cached_property
    def calibration_error(self) -> float:
        """The mean distance between confidence and accuracy over bins of equal width."""
        confidence, right, rows = self.outcomes.by_confidence
        return float(np.abs(confidence - right).sum() / rows.sum())

    def to_dict(self) -> dict[str, Any]:
        """Returns the measures for JSON."""
        return {
            "rows": self.outcomes.n_rows,
            **self._of_accuracy(),
            "random_guess": self.random_guess,
            "majority": self.majority,
            "log_loss": self.log_loss,
            "brier": self.brier,
            "macro_f1": self.macro_f1,
            "calibration_error": self.calibration_error,
            **({"auc": self._auc} if self._auc is not None else {}),
            "classes": [
                {"class": name, "precision": p, "recall": r, "f1": f, "rows": n}
                for name, p, r, f, n in zip(self.classes, *(x.tolist() for x in self.per_class), strict=True)
            ],
            "confusion": self.confusion.tolist(),
            "notes": list(self.notes),
        }

    def _of_accuracy(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy.value, "standard_error": self.accuracy.error}

    @property
    def _auc(self) -> float | None:
        """The area under the ROC curve, where it can be told."""
        return None

    @property
    def _n_different(self) -> int:
        """The rows that were answered, each once."""
        return self.outcomes.n_rows

    def __str__(self) -> str:
        guesses = f"(random guess {self.random_guess:.4f}, majority {self.majority:.4f})"
        head = f"{self.what}: {many(self._n_different, 'row')}, {many(len(self.classes), 'class')}"
        figures = {"log loss": self.log_loss, "Brier score": self.brier, "macro F1": self.macro_f1}
        figures |= {} if self._auc is None else {"AUC": self._auc}
        figures["calibration error"] = self.calibration_error
        lines = [head, f"  accuracy           {self.accuracy}  {guesses}"]
        lines += [f"  {name:17}  {figure:.4f}" for name, figure in figures.items()]
        return "\n".join([*lines, *self._class_lines(), *(f"  {note}" for note in self.notes)])

    __repr__ = __str__

    def _notebook_tables(self) -> list[NotebookTable]:
        figures = {"accuracy": str(self.accuracy), "majority": self.majority, "log loss": self.log_loss}
        figures |= {"Brier score": self.brier, "macro F1": self.macro_f1, "calibration error": self.calibration_error}
        figures |= {} if self._auc is None else {"AUC": self._auc}
        class_columns = {name: values.tolist() for name, values in self.per_class._asdict().items()}
        measures = NotebookTable("", {"measure": list(figures), "value": list(figures.values())})
        return [measures, NotebookTable("", {"class": self.classes, **class_columns})]

    def _class_lines(self) -> list[str]:
        """A line for each class: precision, recall, F1, rows, and the class it is most often mistaken for."""
        shown = range(min(len(self.classes), SHOWN))
        names = [_shorten(self.classes[c]) for c in shown]
        width = max(len("class"), *map(len, names))
        measure = "weight" if self.weighted else "rows"
        lines = [f"  {'class':{width}}  precision  recall      F1  {measure:>10}  most often mistaken for"]
        per_class = self.per_class
        for c, name in zip(shown, names, strict=True):
            mistakes = self.confusion[c].astype(np.float64)
            mistakes[c] = 0.0
            taken = (
                f"{_shorten(self.classes[int(mistakes.argmax())])} ({mistakes.max():,.6g})" if mistakes.any() else ""
            )
            shares = f"{per_class.precision[c]:9.4f}  {per_class.recall[c]:6.4f}  {per_class.f1[c]:6.4f}"
            lines.append(f"  {name:{width}}  {shares}  {per_class.rows[c]:10,.6g}  {taken}".rstrip())
        hidden = len(self.classes) - len(names)
        return [*lines, *([f"  … and {hidden:,} more class{'es' * (hidden > 1)}"] if hidden else [])]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Tabular, Measures):
    """The predictions of a model for rows that it has not counted. ``posteriors`` (rows × classes) has the posterior of
    row ``rows[i]`` of the table.

    ``truth`` has class numbers.
    """

    classes: tuple[Label, ...]
    rows: Int
    truth: NDArray[np.int32]
    posteriors: Real
    weights: Real | None = None
    what: str = "Evaluation"
    notes: tuple[str, ...] = ()

    @cached_property
    def outcomes(self) -> Outcomes:
        one_fold = np.zeros(len(self.truth), dtype=np.int32)
        return Outcomes.of(self.posteriors, self.truth, one_fold, 1, self.weights)

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The classes as an array."""
        kinds = {type(name) for name in self.classes}
        return np.array(self.classes, dtype=object if len(kinds) > 1 else None)

    @cached_property
    def best(self) -> NDArray[np.int64]:
        """The number of the most probable class of each row."""
        return np.asarray(self.posteriors.argmax(axis=1))

    @property
    def predictions(self) -> NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.labels[self.best])

    def _frame_columns(self) -> dict[str, list[Any]]:
        """A row for each answer: the truth, the prediction, and the posterior of every class."""
        shares = {f"P({name})": self.posteriors[:, c].tolist() for c, name in enumerate(self.classes)}
        truth = [self.classes[c] for c in self.truth.tolist()]
        predictions = [self.classes[c] for c in self.best.tolist()]
        return {"row": self.rows.tolist(), "truth": truth, "prediction": predictions, **shares}

    _notebook_tables = Measures._notebook_tables

    @property
    def auc(self) -> float:
        """The area under the ROC curve: how often a row of the second class gets a higher P(second class) than a row of
        the first.

        For more than two classes, the mean over classes of the area of each class against all others. Classes without
        rows are left out.
        """
        if self._auc is None:
            tested = np.count_nonzero(self.per_class.rows)
            raise errors.bad_setting(
                "auc", f"asked of {many(int(tested), 'class')}", "used with at least two tested classes"
            )
        return self._auc

    @cached_property
    def _auc(self) -> float | None:
        tested = np.flatnonzero(self.per_class.rows).tolist()
        if len(tested) < 2:
            return None
        positive = [1] if len(self.classes) == 2 else tested
        areas = [area_under_roc(self.posteriors[:, c], self.truth == c, self.weights) for c in positive]
        return float(np.mean(areas))

    @property
    def _n_different(self) -> int:
        return len(np.unique(self.rows))


def area_under_roc(scores: Real, positive: NDArray[np.bool_], weights: Real | None) -> float:
    """Returns how often a positive row scores higher than a negative row; ties count one half. The order of rows does
    not matter.
    """
    order = np.argsort(scores, kind="stable") if weights is None else np.lexsort((weights, positive, scores))
    row_weights = np.ones(len(order), dtype=np.int64) if weights is None else weights[order]
    is_positive = positive[order]
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
    positives = np.add.reduceat(np.where(is_positive, row_weights, 0), starts)
    negatives = np.add.reduceat(np.where(is_positive, 0, row_weights), starts)
    lower = np.cumsum(negatives) - negatives
    pairs = positives.sum() * negatives.sum()
    return float((positives * (2 * lower + negatives)).sum() / (2 * pairs))


class FoldMeasures(Measures):
    """Measures of predictions, fold by fold."""

    @cached_property
    def fold_accuracies(self) -> Real:
        """The share of correct predictions in each fold."""
        right = self.outcomes.folds.value[:, 1]
        every = total(self.outcomes.folds, 1).value[:, 0]
        return np.asarray(right[every > 0] / every[every > 0])

    @cached_property
    def accuracy(self) -> Mean:
        """The mean over folds and its standard error."""
        return Mean.of(self.fold_accuracies)

    @property
    def n_folds(self) -> int:
        return len(self.fold_accuracies)

    @property
    def brief(self) -> str:
        """The measures by which models are compared."""
        return f"{self.accuracy}  log loss {self.log_loss:.4f}"

    def _of_accuracy(self) -> dict[str, Any]:
        value, error = self.accuracy
        return {"folds": self.n_folds, "accuracy": value, "standard_error": error}


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(FoldMeasures, Evaluation):
    """Out-of-fold predictions: row ``rows[i]`` was scored by a model that had not counted it, when fold ``folds[i]``
    was left out.

    With repeated splits, a row occurs once per repeat.
    """

    folds: NDArray[np.int32] = field(kw_only=True)

    @cached_property
    def outcomes(self) -> Outcomes:
        n_folds = int(self.folds.max()) + 1
        return Outcomes.of(self.posteriors, self.truth, self.folds, n_folds, self.weights)


@dataclass(frozen=True, eq=False, repr=False)
class SummedValidation(FoldMeasures):
    """A cross-validation that kept the sums from which measures are computed, but no predictions."""

    classes: tuple[Label, ...]
    outcomes: Outcomes
    weighted: bool
    what: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class SummedEvaluation(Measures):
    """An evaluation that kept the sums from which measures are computed, but no predictions."""

    classes: tuple[Label, ...]
    outcomes: Outcomes
    weighted: bool = False
    what: str = "Evaluation"
    notes: tuple[str, ...] = ()


def _shorten(label: Label) -> str:
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

    If these are exactly the rows that the model has counted, ``notes`` say so. Rows on an engine are scored there, with
    the same result.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> model = bb.estimate(bb.count({name: column[:10] for name, column in weather.items()}, target="play"))
    >>> found = bb.evaluate(model, {name: column[10:] for name, column in weather.items()})
    >>> found.confusion.tolist(), found.accuracy.value
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
    """How a model answers rows, which are read once."""
    labels = Labels.of(target, None, None, 1)
    parts: list[tuple[Any, Any]] = []
    posteriors = []
    for batch, posterior in model.stream(source):
        codes, _ = labels.of_batch(batch, model.target_kind)
        if len(codes.codes) != batch.n_rows:
            raise errors.length_mismatch("labels", len(codes.codes), batch.n_rows)
        numbers, names = dense_numbers(codes, n_threads(model.threads))
        parts.append((names, numbers))
        posteriors.append(posterior[numbers >= 0])
    n_rows = sum(len(numbers) for _, numbers in parts)
    labels.check_length(n_rows)
    if not n_rows:
        raise errors.empty_data(source.name)
    seen = set[Label]().union(*(occurring_names(names, numbers) for names, numbers in parts))
    if not seen:
        raise errors.no_target(n_rows, labels.name)
    classes, notes = add_unknown_classes(model.classes, seen)
    truth = renumber(parts, classes)
    rows = np.flatnonzero(truth >= 0)
    scores = np.concatenate(posteriors)
    scores = np.hstack([scores, np.zeros((len(scores), len(classes) - scores.shape[1]))])
    if source.again and same_rows(lambda: model.n_rows == len(rows) and model.has_counted(source, target)):
        notes = (OWN_ROWS,)
    return Evaluation(classes, rows, truth[rows], scores, notes=notes)
