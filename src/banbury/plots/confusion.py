"""ConfusionMatrixDisplay: which classes are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.plots.display import Display, check_type, names
from banbury.selection import Evaluation
from banbury.sums import in_order


class ConfusionMatrixDisplay(Display):
    """Rows of each true class (down) that were given each class (across); the shade is the share of the true class.

    >>> import banbury as bb
    >>> result = bb.cross_validate(bb.datasets.wine(), target="cultivar")
    >>> shown = bb.plots.ConfusionMatrixDisplay.from_cross_validation(result)
    >>> int(shown.confusion_matrix.sum()), round(shown.accuracy, 3)
    (178, 0.978)
    """

    def __init__(self, confusion_matrix: Any, classes: Sequence[Any] | None = None) -> None:
        matrix = np.asarray(confusion_matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise errors.bad_setting("confusion_matrix", f"the shape {matrix.shape}", "a square table")
        if matrix.dtype.kind not in "iuf" or not np.isfinite(matrix).all() or (matrix < 0).any():
            raise errors.bad_setting("confusion_matrix", matrix.tolist(), "numbers from 0 up")
        self.confusion_matrix, self.values = matrix, "counts"
        self.classes = tuple(range(len(matrix)) if classes is None else classes)
        if len(self.classes) != len(matrix):
            raise errors.bad_setting("classes", self.classes, f"one name for each of the {len(matrix)} classes")

    @classmethod
    def from_cross_validation(
        cls, result: Evaluation, *, values: Literal["counts", "shares"] = "counts", ax: Any = None
    ) -> Self:
        """Draws the answers of ``bb.cross_validate``."""
        check_type("the result", result, Evaluation, "a CrossValidation, as bb.cross_validate makes it")
        return cls(result.confusion, result.classes).plot(ax, values=values)

    @classmethod
    def from_predictions(
        cls,
        truth: Any,
        predictions: Any,
        *,
        classes: Sequence[Any] | None = None,
        values: Literal["counts", "shares"] = "counts",
        ax: Any = None,
    ) -> Self:
        """Draws answers beside the true classes, one of each per row; ``classes``: in this order."""
        true, given = (np.asarray(labels).ravel().tolist() for labels in (truth, predictions))
        if len(true) != len(given):
            raise errors.length_mismatch("predictions", len(given), len(true))
        if not true:
            raise errors.empty_data(None, "there are no predictions")
        order = tuple(in_order({*true, *given}) if classes is None else classes)
        place = {label: c for c, label in enumerate(order)}
        for label in (*true, *given):
            if label not in place:
                raise errors.unknown_class(label, order)
        matrix = np.zeros((len(order), len(order)), dtype=np.int64)
        np.add.at(matrix, ([place[label] for label in true], [place[label] for label in given]), 1)
        return cls(matrix, order).plot(ax, values=values)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each true class that was given each class; 0 in classes without rows."""
        totals = self.confusion_matrix.sum(axis=1, keepdims=True)
        return self.confusion_matrix / np.where(totals > 0, totals, 1)

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        total = float(self.confusion_matrix.sum())
        return float(np.trace(self.confusion_matrix)) / total if total else 0.0

    def plot(self, ax: Any = None, *, values: Literal["counts", "shares"] = "counts") -> Self:
        """Draws it, on ``ax`` if given, with numbers of rows or shares of the true class, in %, in its cells."""
        if values not in ("counts", "shares"):
            raise errors.unknown_choice("values", values, ["counts", "shares"])
        self.values = values
        return super().plot(ax)

    def _draw(self, ax: Any) -> None:
        n, called = len(self.classes), names(self.classes)
        longest = max(map(len, called))
        tilted = n > 6 or longest > 9
        cell, label = 0.34 if n > 8 else 0.6, 0.075 * longest
        ax = self._begin(ax, max(0.7 + label + cell * n, 4.2), max(0.8 + label * tilted + cell * n, 3.2))
        shares = self.shares
        ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        tilt = {"rotation": 90} if tilted else {}
        ax.set_xticks(np.arange(n), called, **tilt)
        ax.set_yticks(np.arange(n), called)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1.0)
        ax.tick_params(which="minor", length=0)
        if n <= 40:
            self._numbers(ax, shares, 7 if n > 8 else 9)
        ax.set_xlabel("class given")
        ax.set_ylabel("true class")
        total = f"{self.confusion_matrix.sum():,.6g} rows, {self.accuracy:.1%} right"
        unit = "; cells in % of the true class" if self.values == "shares" else ""
        self._title(f"Confusion matrix: {total}{unit}")

    def _numbers(self, ax: Any, shares: NDArray[np.float64], size: int) -> None:
        """A number in every cell that has rows: an empty one is easier to see than a zero."""
        for true, given in np.argwhere(self.confusion_matrix > 0).tolist():
            cell, share = self.confusion_matrix[true, given], float(shares[true, given])
            text = f"{100 * share:.0f}" if self.values == "shares" else f"{cell:.4g}"
            ax.text(
                given, true, text, ha="center", va="center", fontsize=size, color="white" if share > 0.55 else "black"
            )
