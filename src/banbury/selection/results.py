"""CrossValidation: what a model said of rows it had not seen, and how good that was. The measures are scikit-learn's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.tally import Label, many

BINS = 15  # of the expected calibration error
SHOWN = 20


class Mean(NamedTuple):
    """A mean over folds and its standard error."""

    value: float
    error: float | None

    @classmethod
    def of(cls, each: Real) -> Mean:
        """Of a figure per fold; of one alone there is no error to tell."""
        error = float(each.std(ddof=1)) / len(each) ** 0.5 if len(each) > 1 else None
        return cls(float(each.mean()), error)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4f}" + ("" if self.error is None else f" ± {self.error:.4f}")

    def __repr__(self) -> str:
        return str(self)


class PerClass(NamedTuple):
    """One number for each class, in the order of ``classes``."""

    precision: Real
    recall: Real
    f1: Real
    rows: Real


class Validation(Protocol):
    """What every cross-validation can say of itself, whether it held the rows or not."""

    @property
    def fold_accuracies(self) -> Real: ...
    @property
    def accuracy(self) -> Mean: ...
    @property
    def random_guess(self) -> float: ...
    @property
    def majority(self) -> float: ...
    @property
    def log_loss(self) -> float: ...


def measures(found: Validation, rows: float) -> dict[str, Any]:
    """The measures, as JSON can hold them."""
    return {
        "rows": rows,
        "folds": len(found.fold_accuracies),
        "accuracy": found.accuracy.value,
        "standard_error": found.accuracy.error,
        "random_guess": found.random_guess,
        "majority": found.majority,
        "log_loss": found.log_loss,
    }


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """Out-of-fold answers: row ``rows[i]`` was scored by a model that had not counted it, when fold ``folds[i]`` was left out.

    ``posteriors`` is rows × classes; ``truth`` holds class numbers. With repeated splits a row comes once for each.
    """

    classes: tuple[Label, ...]
    rows: Int
    folds: NDArray[np.int32]
    truth: NDArray[np.int32]
    posteriors: Real
    weights: Real | None = None
    what: str = ""
    notes: tuple[str, ...] = ()

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

    # How good they are

    @cached_property
    def fold_accuracies(self) -> Real:
        """The share of right answers in each fold."""
        weights = np.ones(len(self.truth)) if self.weights is None else self.weights
        n = int(self.folds.max()) + 1
        right = np.bincount(self.folds, weights=weights * (self.best == self.truth), minlength=n)
        every = np.bincount(self.folds, weights=weights, minlength=n)
        return right[every > 0] / every[every > 0]

    @cached_property
    def accuracy(self) -> Mean:
        """The mean over folds, and its standard error."""
        return Mean.of(self.fold_accuracies)

    @property
    def random_guess(self) -> float:
        """The accuracy of throwing a die that has a side for each class."""
        return 1.0 / len(self.classes)

    @cached_property
    def majority(self) -> float:
        """The accuracy of always answering with the most frequent class."""
        each = np.bincount(self.truth, weights=self.weights, minlength=len(self.classes))
        return float(each.max() / each.sum())

    @cached_property
    def log_loss(self) -> float:
        """The mean of −log P(true class), in nats; a probability below 2.2e-16 counts as that, as scikit-learn has it."""
        at = self.posteriors[np.arange(len(self.truth)), self.truth]
        return float(np.average(-np.log(np.maximum(at, np.finfo(float).eps)), weights=self.weights))

    @cached_property
    def brier(self) -> float:
        """The mean squared distance of the posterior from the truth, over all classes; half of it for two classes."""
        square = np.einsum("ij,ij->i", self.posteriors, self.posteriors)
        at = self.posteriors[np.arange(len(self.truth)), self.truth]
        half = 0.5 if len(self.classes) == 2 else 1.0
        return half * float(np.average(np.maximum(square - 2.0 * at + 1.0, 0.0), weights=self.weights))

    @cached_property
    def per_class(self) -> PerClass:
        """Precision, recall, F1 and rows of each class; 0 where there is nothing to divide."""
        from sklearn.metrics import precision_recall_fscore_support

        found = precision_recall_fscore_support(
            self.truth,
            self.best,
            labels=np.arange(len(self.classes)),
            sample_weight=self.weights,
            zero_division=0.0,
        )
        return PerClass(*(np.asarray(x, dtype=np.float64) for x in found))

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that were tested or predicted."""
        occurs = (self.confusion.sum(axis=0) + self.confusion.sum(axis=1)) > 0
        return float(self.per_class.f1[occurs].mean())

    @cached_property
    def confusion(self) -> NDArray[Any]:
        """Rows of each true class (down) that were given each class (across)."""
        table = np.zeros((len(self.classes), len(self.classes)), dtype=np.int64 if self.weights is None else np.float64)
        np.add.at(table, (self.truth, self.best), 1 if self.weights is None else self.weights)
        return table

    @cached_property
    def auc(self) -> float:
        """The area under the ROC curve, of two classes: how often a row of the second class gets the higher posterior."""
        if not self._has_auc:
            raise errors.bad_setting(
                "auc", f"asked of {len(self.classes)} classes", "asked of two classes, both of them tested"
            )
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(self.truth, self.posteriors[:, 1], sample_weight=self.weights))

    @property
    def _has_auc(self) -> bool:
        weights = np.ones(len(self.truth)) if self.weights is None else self.weights
        return len(self.classes) == 2 and bool(np.bincount(self.truth, weights=weights, minlength=2).all())

    @cached_property
    def calibration_error(self) -> float:
        """How far the posterior of the answer is from how often it is right, on average over bins of equal width."""
        return calibration_error(self.posteriors.max(axis=1), self.best == self.truth, self.weights)

    def to_dict(self) -> dict[str, Any]:
        """The measures, as JSON can hold them."""
        per_class = self.per_class
        return {
            **measures(self, len(self.truth)),
            "brier": self.brier,
            "macro_f1": self.macro_f1,
            "calibration_error": self.calibration_error,
            **({"auc": self.auc} if self._has_auc else {}),
            "classes": [
                {"class": name, "precision": p, "recall": r, "f1": f, "rows": n}
                for name, p, r, f, n in zip(self.classes, *(x.tolist() for x in per_class), strict=True)
            ],
            "confusion": self.confusion.tolist(),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        head = f"{self.what}: {many(len(np.unique(self.rows)), 'row')}, {many(len(self.classes), 'class')}"
        lines = [head, f"  accuracy           {self._accuracy_text()}"]
        lines += [f"  log loss           {self.log_loss:.4f}", f"  Brier score        {self.brier:.4f}"]
        lines += [f"  macro F1           {self.macro_f1:.4f}"]
        lines += [f"  AUC                {self.auc:.4f}"] if self._has_auc else []
        lines += [f"  calibration error  {self.calibration_error:.4f}"]
        lines += self._class_lines()
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    __repr__ = __str__

    def _accuracy_text(self) -> str:
        return f"{self.accuracy}  (random guess {self.random_guess:.4f}, majority {self.majority:.4f})"

    def _class_lines(self) -> list[str]:
        """A line for each class: precision, recall, F1, rows, and the class it is most often taken for."""
        shown = range(min(len(self.classes), SHOWN))
        names = [_shown(self.classes[c]) for c in shown]
        width = max(len("class"), *map(len, names))
        measure = "rows" if self.weights is None else "weight"
        lines = [f"  {'class':{width}}  precision  recall      F1  {measure:>10}  most often taken for"]
        each = self.per_class
        for c, name in zip(shown, names, strict=True):
            others = self.confusion[c].astype(np.float64)
            others[c] = 0.0
            taken = f"{_shown(self.classes[int(others.argmax())])} ({others.max():,.6g})" if others.any() else ""
            lines.append(
                f"  {name:{width}}  {each.precision[c]:9.4f}  {each.recall[c]:6.4f}  {each.f1[c]:6.4f}  "
                f"{each.rows[c]:10,.6g}  {taken}".rstrip()
            )
        hidden = len(self.classes) - len(names)
        return [*lines, *([f"  … and {hidden:,} more class{'es' * (hidden > 1)}"] if hidden else [])]


def by_confidence(
    confidence: Real, right: NDArray[np.bool_], weights: Real, bins: int = BINS
) -> tuple[Real, Real, Real]:
    """In bins of equal width, the sums of what was said, of what came true, and of the rows' weights."""
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    each = (weights * confidence, weights * right, weights)
    said, came, rows = (np.bincount(place, weights=x, minlength=bins).astype(np.float64) for x in each)
    return said, came, rows


def calibration_error(confidence: Real, right: NDArray[np.bool_], weights: Real | None = None) -> float:
    """The expected calibration error: bins of equal width, each weighed by its rows."""
    said, came, rows = by_confidence(confidence, right, np.ones(len(confidence)) if weights is None else weights)
    return float(np.abs(said - came).sum() / rows.sum())


def _shown(label: Label) -> str:
    return errors.shortened(repr(label))
