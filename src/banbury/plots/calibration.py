"""CalibrationDisplay: how often answers of some confidence are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.calibration import Reliability, reliability
from banbury.naive_bayes import Model
from banbury.networks import BeliefNetwork
from banbury.plots.display import FAINT, Display, check_type, colour, line, mark, name
from banbury.plots.features import ClassedRows, answering
from banbury.selection import Evaluation, evaluate

SMALLEST, LARGEST = 12.0, 150.0  # areas of marks, in square points


class CalibrationDisplay(Display):
    """Reliability diagrams: accuracy over confidence, bin by bin, beside the diagonal on which probabilities are honest.

    ``curves`` has them by name, as ``banbury.calibration.reliability`` makes them. A mark's area grows with its rows.

    >>> import banbury as bb
    >>> result = bb.cross_validate(bb.datasets.wine(), target="cultivar")
    >>> shown = bb.plots.CalibrationDisplay.from_cross_validation(result)
    >>> round(shown.curves["out of fold"].error, 4) == round(result.calibration_error, 4)
    True
    """

    def __init__(self, curves: Mapping[str, Reliability]) -> None:
        if not isinstance(curves, Mapping) or not curves:
            raise errors.bad_setting("curves", curves, "a mapping from name to Reliability, of one at least")
        for curve in curves.values():
            check_type("curves", curve, Reliability, "made by banbury.calibration.reliability")
        self.curves = dict(curves)

    @classmethod
    def from_reliability(cls, curves: Mapping[str, Reliability] | Reliability, *, ax: Any = None) -> Self:
        """Draws one curve, or several by name."""
        return cls({"posteriors": curves} if isinstance(curves, Reliability) else curves).plot(ax)

    @classmethod
    def from_cross_validation(cls, result: Evaluation, *, bins: int = 15, ax: Any = None) -> Self:
        """Draws the out-of-fold posteriors of ``bb.cross_validate``."""
        check_type("the result", result, Evaluation, "a CrossValidation, as bb.cross_validate makes it")
        curve = reliability(result.posteriors, result.truth, bins, result.weights)
        return cls({"out of fold": curve}).plot(ax)

    @classmethod
    def from_model(
        cls,
        model: Model | BeliefNetwork,
        data: Any,
        target: Any = None,
        *,
        bins: int = 15,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws posteriors of rows that were not learned from, by a model, a network with a target, or a TANClassifier.

        Of a calibrated model they are drawn before and after calibration.
        """
        model = answering(model)
        if isinstance(model, BeliefNetwork):
            evaluation = evaluate(model, data, target, **reading)
            return cls({"posteriors": reliability(evaluation.posteriors, evaluation.truth, bins)}).plot(ax)
        rows = ClassedRows(model, data, target, reading)
        truth = rows.classes
        used = truth >= 0
        plain = model.calibrated(None)

        def curve(which: Model) -> Reliability:
            posteriors = np.concatenate([which.posterior(batch) for batch in rows.batches])
            return reliability(posteriors[used], truth[used], bins)

        if model.calibration is None:
            return cls({"posteriors": curve(model)}).plot(ax)
        return cls({"before calibration": curve(plain), "after calibration": curve(model)}).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 5.0, 4.6)
        ax.plot([0.0, 1.0], [0.0, 1.0], color=FAINT, linewidth=1.2, label="honest probabilities", zorder=1)
        most = max(float(curve.rows.max()) for curve in self.curves.values())
        order = reversed(list(enumerate(self.curves.items())))
        for c, (called, curve) in list(order):
            style = {"color": colour((c + 1) % 2 if len(self.curves) == 2 else c)}
            label = f"{name(called, 40)}: error {curve.error:.3f}"
            ax.plot(curve.confidence, curve.accuracy, line(8 * c), label=label, zorder=2, **style)
            areas = SMALLEST + (LARGEST - SMALLEST) * curve.rows / most
            ax.scatter(
                curve.confidence,
                curve.accuracy,
                areas,
                marker=mark(c),
                edgecolors="white",
                linewidths=0.6,
                zorder=3,
                **style,
            )
        lowest = min(float(curve.start.min()) for curve in self.curves.values())
        low = min(lowest, min(float(curve.accuracy.min()) for curve in self.curves.values()))
        low = np.floor(10 * low) / 10
        ax.set_xlim(np.floor(10 * lowest) / 10 - 0.02, 1.03)
        ax.set_ylim(low - 0.02, 1.03)
        handles, labels = ax.get_legend_handles_labels()
        ax.legend(handles[:1] + handles[:0:-1], labels[:1] + labels[:0:-1], loc="upper left")
        ax.set_xlabel("confidence: mean posterior of the answer")
        ax.set_ylabel("accuracy: share of answers that are right")
        rows = next(iter(self.curves.values())).rows.sum()
        self._title(f"Reliability of {rows:,.6g} answers; a mark's area grows with its rows")
