"""Measures of multi-label predictions: F1 of all labels together and of each, and the accuracy of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.labels.calibration import Flags
from banbury.tally.tally import Label

LABELS_SHOWN = 20  # labels that are printed
MEASURES = {
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "subset_accuracy": "subset accuracy",
    "hamming_loss": "Hamming loss",
    "log_loss": "log loss",
}
LEAST_PROBABILITY = 1e-15  # smaller ones count as this one, so that losses are finite


class PerLabel(NamedTuple):
    """The precision, recall, F1 and number of rows of each label: arrays (labels,)."""

    precision: Real
    recall: Real
    f1: Real
    rows: Real


@dataclass(frozen=True, eq=False, repr=False)
class LabelEvaluation:
    """The true labels of rows (``truth``), the predicted ones (``predicted``), and the probabilities of labels
    (``posterior``), rows × labels each. ``rows`` has the numbers of the rows in the data.

    Precision, recall and F1 are 0 for a label without rows or without predictions.
    """

    labels: tuple[Label, ...]
    rows: Int  # the numbers of the rows in the data
    truth: Flags
    predicted: Flags  # the predicted labels
    posterior: Real
    weights: Real | None = None  # of each row
    what: str = "evaluation"  # the heading of the printed measures
    notes: tuple[str, ...] = ()
    _headline: ClassVar[str] = "micro_f1"  # the measure that is printed first
    folds: NDArray[np.int32] | None = None  # the fold that tested each row, if the rows were cross-validated

    @cached_property
    def _counts(self) -> tuple[Real, Real, Real]:
        """The weight of the rows where a label is predicted and true, where it is predicted, and where it is true:
        three arrays (labels,).
        """
        row_weights = np.ones(len(self.truth)) if self.weights is None else self.weights
        # ``truth`` and ``predicted``: which labels are true and which are predicted (rows × labels).
        return row_weights @ (self.truth & self.predicted), row_weights @ self.predicted, row_weights @ self.truth

    @cached_property
    def per_label(self) -> PerLabel:
        """The precision, recall, F1 and weight of rows of each label."""
        n_correct, n_predicted, n_true = self._counts  # rows of each label, by weight
        return PerLabel(
            _share(n_correct, n_predicted),
            _share(n_correct, n_true),
            _share(2.0 * n_correct, n_predicted + n_true),
            n_true,
        )

    @cached_property
    def micro_f1(self) -> float:
        """The F1 of all pairs of row and label together."""
        # Pairs that are predicted and true, that are predicted, and that are true, by weight.
        n_correct, n_predicted, n_true = (float(counts.sum()) for counts in self._counts)
        return 2.0 * n_correct / (n_predicted + n_true) if n_predicted + n_true else 0.0

    @cached_property
    def macro_f1(self) -> float:
        """The mean F1 over labels that occur in these rows."""
        occurs = self.per_label.rows > 0  # whether any row has the label
        return float(self.per_label.f1[occurs].mean()) if occurs.any() else 0.0

    @cached_property
    def subset_accuracy(self) -> float:
        """The share of rows (by weight) for which all labels are predicted as they are."""
        return self._mean((self.truth == self.predicted).all(axis=1))

    @cached_property
    def hamming_loss(self) -> float:
        """The share of pairs of row and label whose prediction is wrong, by the weight of rows."""
        return self._mean((self.truth != self.predicted).mean(axis=1)) if self.truth.size else 0.0

    @cached_property
    def log_loss(self) -> float:
        """The mean over rows and labels of −log P(whether the row has the label)."""
        probability_of_truth = np.clip(  # rows × labels
            np.where(self.truth, self.posterior, 1.0 - self.posterior), LEAST_PROBABILITY, 1.0
        )
        return self._mean(-np.log(probability_of_truth).mean(axis=1)) if probability_of_truth.size else 0.0

    def _mean(self, row_values: Any) -> float:
        """Returns the weighted mean of one number per row; 0 without rows."""
        return float(np.average(row_values, weights=self.weights)) if len(row_values) else 0.0

    @cached_property
    def log_odds(self) -> Real:
        """log P(label) / P(not the label) (rows × labels), computed from the probabilities, for ``bb.calibrate``."""
        probability = np.clip(self.posterior, 1e-300, 1.0 - 2.0**-53)
        return np.asarray(np.log(probability) - np.log1p(-probability))

    @property
    def n_folds(self) -> int:
        """The number of folds; 0 if the rows were not cross-validated."""
        return 0 if self.folds is None else len(np.unique(self.folds))

    @property
    def _brief(self) -> str:
        """A line of text with the measures by which models are compared."""
        return f"micro F1 {self.micro_f1:.4f}  macro F1 {self.macro_f1:.4f}  log loss {self.log_loss:.4f}"

    @property
    def predictions(self) -> list[tuple[Label, ...]]:
        """The predicted labels of each row."""
        return [tuple(self.labels[number] for number in np.flatnonzero(row_flags)) for row_flags in self.predicted]

    def to_dict(self) -> dict[str, Any]:
        """Returns the measures of all labels and of each label as a dictionary for JSON, without the rows."""
        # For each label its name and its measures; and what these are called.
        label_rows = zip(self.labels, *(column.tolist() for column in self.per_label), strict=True)
        column_names = ("label", *PerLabel._fields)
        return {
            "rows": len(self.truth),
            **{name: getattr(self, name) for name in MEASURES},
            "labels": [dict(zip(column_names, row, strict=True)) for row in label_rows],
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def __str__(self) -> str:
        """Returns the measures as text, and those of the most frequent labels."""
        row_count = errors.many(len(self.truth), "row")
        measures = self.per_label
        lines = [f"{self.what}: {row_count}, {errors.many(len(self.labels), 'label')}"]
        lines += [f"  {title:15}  {getattr(self, name):.4f}" for name, title in MEASURES.items()]
        # The labels with most rows, the first of them first.
        label_numbers = np.lexsort((np.arange(len(self.labels)), -measures.rows))[:LABELS_SHOWN].tolist()
        printed_labels = [errors.shortened(repr(self.labels[number])) for number in label_numbers]
        width = max([5, *map(len, printed_labels)])
        lines.append(f"  {'label':{width}}  precision  recall      F1        rows")
        for number, name in zip(label_numbers, printed_labels, strict=True):
            precision, recall, f1, n_rows = (column[number] for column in measures)
            lines.append(f"  {name:{width}}     {precision:.4f}  {recall:.4f}  {f1:.4f}  {n_rows:10,.6g}")
        if len(self.labels) > LABELS_SHOWN:
            lines.append(f"  … and {errors.many(len(self.labels) - LABELS_SHOWN, 'more label')}")
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    __repr__ = __str__


def _share(counts: Real, totals: Real) -> Real:
    """Returns ``counts / totals`` for each label (labels,); 0 where the total is 0."""
    return np.divide(counts, totals, out=np.zeros(len(counts)), where=totals > 0)
