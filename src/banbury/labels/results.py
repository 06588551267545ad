"""How good labels are: F1 of all together and label by label, and what is right of whole rows."""

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

SHOWN = 20  # labels that are printed
MEASURES = {
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "subset_accuracy": "subset accuracy",
    "hamming_loss": "Hamming loss",
    "log_loss": "log loss",
}
SMALLEST = 1e-15  # a probability, lest a loss be without end


class PerLabel(NamedTuple):
    """The precision, recall, F1 and number of rows of each label."""

    precision: Real
    recall: Real
    f1: Real
    rows: Real


@dataclass(frozen=True, eq=False, repr=False)
class LabelEvaluation:
    """The true labels of rows, the predicted ones, and their probabilities (rows × labels each).

    Precision, recall and F1 are 0 for a label without rows or without predictions.
    """

    labels: tuple[Label, ...]
    rows: Int
    truth: Flags
    given: Flags
    posterior: Real
    weights: Real | None = None
    what: str = "evaluation"
    notes: tuple[str, ...] = ()
    headline: ClassVar[str] = "micro_f1"  # the measure that is told first
    folds: NDArray[np.int32] | None = None  # that each row was tested in, where models left it out

    @cached_property
    def _counts(self) -> tuple[Real, Real, Real]:
        """Of each label: rows where it is right, where it is given, where it is there."""
        w = np.ones(len(self.truth)) if self.weights is None else self.weights
        return tuple(w @ flags for flags in (self.truth & self.given, self.given, self.truth))  # type: ignore[return-value]

    @cached_property
    def per_label(self) -> PerLabel:
        right, answered, there = self._counts
        return PerLabel(_share(right, answered), _share(right, there), _share(2.0 * right, answered + there), there)

    @cached_property
    def micro_f1(self) -> float:
        """The F1 of all pairs of row and label together."""
        right, answered, there = (float(counts.sum()) for counts in self._counts)
        return 2.0 * right / (answered + there) if answered + there else 0.0

    @cached_property
    def macro_f1(self) -> float:
        """The mean F1 over labels that occur in these rows."""
        there = self.per_label.rows > 0
        return float(self.per_label.f1[there].mean()) if there.any() else 0.0

    @cached_property
    def subset_accuracy(self) -> float:
        """The share of rows for which all labels are right."""
        return self._mean((self.truth == self.given).all(axis=1))

    @cached_property
    def hamming_loss(self) -> float:
        """The share of pairs of row and label that are wrong."""
        return self._mean((self.truth != self.given).mean(axis=1)) if self.truth.size else 0.0

    @cached_property
    def log_loss(self) -> float:
        """The mean over rows and labels of −log P(whether the row has the label)."""
        p = np.clip(np.where(self.truth, self.posterior, 1.0 - self.posterior), SMALLEST, 1.0)
        return self._mean(-np.log(p).mean(axis=1)) if p.size else 0.0

    def _mean(self, row_values: Any) -> float:
        return float(np.average(row_values, weights=self.weights)) if len(row_values) else 0.0

    @cached_property
    def log_odds(self) -> Real:
        """log P(label) / P(not the label) (rows × labels), computed from the probabilities, for ``bb.calibrate``."""
        p = np.clip(self.posterior, 1e-300, 1.0 - 2.0**-53)
        return np.asarray(np.log(p) - np.log1p(-p))

    @property
    def n_folds(self) -> int:
        return 0 if self.folds is None else len(np.unique(self.folds))

    @property
    def brief(self) -> str:
        """The measures by which models are compared."""
        return f"micro F1 {self.micro_f1:.4f}  macro F1 {self.macro_f1:.4f}  log loss {self.log_loss:.4f}"

    @property
    def predictions(self) -> list[tuple[Label, ...]]:
        """The predicted labels of each row."""
        return [tuple(self.labels[k] for k in np.flatnonzero(row)) for row in self.given]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything except the rows for JSON."""
        rows = zip(self.labels, *(column.tolist() for column in self.per_label), strict=True)
        names = ("label", *PerLabel._fields)
        return {
            "rows": len(self.truth),
            **{name: getattr(self, name) for name in MEASURES},
            "labels": [dict(zip(names, row, strict=True)) for row in rows],
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def __str__(self) -> str:
        rows = errors.many(len(self.truth), "row")
        per = self.per_label
        lines = [f"{self.what}: {rows}, {errors.many(len(self.labels), 'label')}"]
        lines += [f"  {title:15}  {getattr(self, name):.4f}" for name, title in MEASURES.items()]
        order = np.lexsort((np.arange(len(self.labels)), -per.rows))[:SHOWN].tolist()
        shown = [errors.shortened(repr(self.labels[k])) for k in order]
        width = max([5, *map(len, shown)])
        lines.append(f"  {'label':{width}}  precision  recall      F1        rows")
        for k, name in zip(order, shown, strict=True):
            lines.append(
                f"  {name:{width}}     {per.precision[k]:.4f}  {per.recall[k]:.4f}  {per.f1[k]:.4f}  {per.rows[k]:10,.6g}"
            )
        if len(self.labels) > SHOWN:
            lines.append(f"  … and {errors.many(len(self.labels) - SHOWN, 'more label')}")
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    __repr__ = __str__


def _share(part: Real, total: Real) -> Real:
    return np.divide(part, total, out=np.zeros(len(part)), where=total > 0)
