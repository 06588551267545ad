"""Pictures of results: confusion matrices, reliability, learning curves, the climb of EM, posteriors of hypotheses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.hypotheses import Hypotheses, Trace
from banbury.model.naive_bayes import Model
from banbury.plots.display import (
    COLOURS,
    FAINT,
    Display,
    check_type,
    colour,
    legend_beside,
    levels_behind,
    library,
    line,
    logarithmic,
    mark,
    name,
    names,
)
from banbury.plots.features import ClassedRows, check_model
from banbury.quality import Evaluation, LearningCurve, evaluate, learning_curve
from banbury.quality.calibration import Reliability, reliability
from banbury.sums import in_order

SMALLEST = 12.0  # areas of marks of reliability, in square points
LARGEST = 150.0
LONGEST = 44  # characters of a hypothesis
CLIMBS = ("log-likelihood", "log-likelihood + log prior")


class ConfusionMatrixDisplay(Display):
    """The confusion matrix: true classes are rows, predicted classes columns. The shade is the share of the true class.

    >>> import banbury as bb
    >>> result = bb.cross_validate(bb.datasets.wine(), target="cultivar")
    >>> shown = bb.plots.ConfusionMatrixDisplay.from_cross_validation(result)
    >>> int(shown.confusion_matrix.sum()), round(shown.accuracy, 3)
    (178, 0.989)
    """

    def __init__(self, confusion_matrix: Any, classes: Sequence[Any] | None = None) -> None:
        matrix = np.asarray(confusion_matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise errors.bad_setting("confusion_matrix", f"the shape {matrix.shape}", "a square table")
        if matrix.dtype.kind not in "iuf" or not np.isfinite(matrix).all() or (matrix < 0).any():
            raise errors.bad_setting("confusion_matrix", matrix.tolist(), "non-negative numbers")
        self.confusion_matrix = matrix
        self.values = "counts"
        self.classes = tuple(range(len(matrix)) if classes is None else classes)
        if len(self.classes) != len(matrix):
            raise errors.bad_setting("classes", self.classes, f"one name for each of the {len(matrix)} classes")

    @classmethod
    def from_estimator(cls, estimator: Any, data: Any, y: Any = None, **settings: Any) -> Self:
        """Draws the predictions of a fitted estimator or a model for labelled rows."""
        return cls.from_cross_validation(evaluate(estimator, data, y), **settings)

    @classmethod
    def from_cross_validation(
        cls, result: Evaluation, *, values: Literal["counts", "shares"] = "counts", ax: Any = None
    ) -> Self:
        """Draws the predictions of ``bb.cross_validate``."""
        check_type("the result", result, Evaluation, "a CrossValidation, from bb.cross_validate")
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
        """Draws predictions against true classes, one of each per row. ``classes`` sets the order."""
        true, predicted = (np.asarray(labels).ravel().tolist() for labels in (truth, predictions))
        if len(true) != len(predicted):
            raise errors.length_mismatch("predictions", len(predicted), len(true))
        if not true:
            raise errors.empty_data(None, "there are no predictions")
        order = tuple(in_order({*true, *predicted}) if classes is None else classes)
        place = {label: c for c, label in enumerate(order)}
        for label in (*true, *predicted):
            if label not in place:
                raise errors.unknown_class(label, order)
        matrix = np.zeros((len(order), len(order)), dtype=np.int64)
        np.add.at(matrix, ([place[label] for label in true], [place[label] for label in predicted]), 1)
        return cls(matrix, order).plot(ax, values=values)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each true class that was predicted as each class; 0 for classes without rows."""
        totals = self.confusion_matrix.sum(axis=1, keepdims=True)
        return self.confusion_matrix / np.where(totals > 0, totals, 1)

    @property
    def accuracy(self) -> float:
        """The share of correct predictions."""
        total = float(self.confusion_matrix.sum())
        return float(np.trace(self.confusion_matrix)) / total if total else 0.0

    def plot(self, ax: Any = None, *, values: Literal["counts", "shares"] = "counts") -> Self:
        """Draws the matrix, on ``ax`` if given, with numbers of rows, or percentages of the true class, in its cells."""
        if values not in ("counts", "shares"):
            raise errors.unknown_choice("values", values, ["counts", "shares"])
        self.values = values
        return super().plot(ax)

    def _draw(self, ax: Any) -> None:
        n = len(self.classes)
        called = names(self.classes)
        shares = self.shares
        longest = max(map(len, called))
        label = 0.075 * longest
        tilted = n > 8
        cell = 0.34 if tilted else max(0.6, label + 0.15)  # wide enough for a label that stands upright
        ax = self._begin(ax, max(0.7 + label + cell * n, 4.2), max(0.8 + label * tilted + cell * n, 3.2))
        ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        ax.set_xticks(np.arange(n), called, **({"rotation": 90} if tilted else {}))
        ax.set_yticks(np.arange(n), called)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1.0)
        ax.tick_params(which="minor", length=0)
        # A number in every cell that has rows: an empty one is easier to see than a zero.
        for true, predicted in np.argwhere(self.confusion_matrix > 0).tolist() if n <= 40 else ():
            rows = self.confusion_matrix[true, predicted]
            share = float(shares[true, predicted])
            text = f"{100 * share:.0f}" if self.values == "shares" else f"{rows:.4g}"
            style = {"fontsize": 7 if n > 8 else 9, "color": "white" if share > 0.55 else "black"}
            ax.text(predicted, true, text, ha="center", va="center", **style)
        ax.set(xlabel="predicted class", ylabel="true class")
        total = f"{self.confusion_matrix.sum():,.6g} rows, {self.accuracy:.1%} right"
        unit = "; cells in % of the true class" if self.values == "shares" else ""
        ax.set_title(f"Confusion matrix: {total}{unit}")


class CalibrationDisplay(Display):
    """Calibration curves: accuracy against confidence in bins, with the diagonal of perfect calibration.

    ``curves`` has the curves by name, from ``banbury.quality.calibration.reliability``. The area of a mark grows with
    its number of rows.

    >>> import banbury as bb
    >>> result = bb.cross_validate(bb.datasets.wine(), target="cultivar")
    >>> shown = bb.plots.CalibrationDisplay.from_cross_validation(result)
    >>> round(shown.curves["out of fold"].error, 4) == round(result.calibration_error, 4)
    True
    """

    def __init__(self, curves: Mapping[str, Reliability]) -> None:
        if not isinstance(curves, Mapping) or not curves:
            raise errors.bad_setting("curves", curves, "a mapping from names to at least one Reliability")
        for curve in curves.values():
            check_type("curves", curve, Reliability, "made by banbury.quality.calibration.reliability")
        self.curves = dict(curves)

    @classmethod
    def from_reliability(cls, curves: Mapping[str, Reliability] | Reliability, *, ax: Any = None) -> Self:
        """Draws one curve, or several by name."""
        return cls({"posteriors": curves} if isinstance(curves, Reliability) else curves).plot(ax)

    @classmethod
    def from_cross_validation(cls, result: Evaluation, *, bins: int = 15, ax: Any = None) -> Self:
        """Draws the out-of-fold posteriors of ``bb.cross_validate``."""
        check_type("the result", result, Evaluation, "a CrossValidation, from bb.cross_validate")
        curve = reliability(result.posteriors, result.truth, bins, result.weights)
        return cls({"out of fold": curve}).plot(ax)

    @classmethod
    def from_model(
        cls,
        model: Model,
        data: Any,
        target: Any = None,
        *,
        bins: int = 15,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws the posteriors of a model for rows that it has not learned from; for a calibrated model, before and
        after calibration.
        """
        check_model(model, classes=2)
        rows = ClassedRows(model, data, target, reading)
        used = rows.classes >= 0
        models = {"posteriors": model}
        if model.calibration is not None:
            models = {"before calibration": model.calibrated(None), "after calibration": model}
        curves = {}
        for called, which in models.items():
            posteriors = np.concatenate([which.posterior(batch) for batch in rows.batches])
            curves[called] = reliability(posteriors[used], rows.classes[used], bins)
        return cls(curves).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 6.8, 4.6)
        ax.plot([0.0, 1.0], [0.0, 1.0], color=FAINT, linewidth=1.2, label="perfect calibration", zorder=1)
        most = max(float(curve.rows.max()) for curve in self.curves.values())
        for c, (called, curve) in reversed(list(enumerate(self.curves.items()))):
            points = (curve.confidence, curve.accuracy)
            curve_colour = colour((c + 1) % 2 if len(self.curves) == 2 else c)
            label = f"{name(called, 40)}: error {curve.error:.3f}"
            ax.plot(*points, line(8 * c), label=label, zorder=2, color=curve_colour)
            areas = SMALLEST + (LARGEST - SMALLEST) * curve.rows / most
            ax.scatter(*points, areas, marker=mark(c), edgecolors="white", linewidths=0.6, zorder=3, color=curve_colour)
        left = min(float(curve.start.min()) for curve in self.curves.values())
        low = min(left, *(float(curve.accuracy.min()) for curve in self.curves.values()))
        ax.set(xlim=(np.floor(10 * left) / 10 - 0.02, 1.03), ylim=(np.floor(10 * low) / 10 - 0.02, 1.03))
        handles = ax.get_legend_handles_labels()[0]
        legend_beside(ax, handles[:1] + handles[:0:-1])
        ax.set_xlabel("confidence: mean probability of the prediction")
        ax.set_ylabel("accuracy: share of correct predictions")
        rows = next(iter(self.curves.values())).rows.sum()
        ax.set_title(f"Reliability of {rows:,.6g} predictions; the area of a mark is its number of rows")


class LearningCurveDisplay(Display):
    """Mean accuracies with their standard errors against the number of training rows. ``curve`` has the numbers.

    >>> import banbury as bb
    >>> curve = bb.learning_curve(bb.datasets.wine(), target="cultivar", repeats=3)
    >>> shown = bb.plots.LearningCurveDisplay.from_learning_curve(curve)
    >>> shown.ax_.get_xlabel()
    'training rows'
    """

    def __init__(self, curve: LearningCurve) -> None:
        check_type("the curve", curve, LearningCurve, "a LearningCurve, from bb.learning_curve")
        self.curve = curve

    @classmethod
    def from_estimator(cls, estimator: Any, data: Any, y: Any = None, *, ax: Any = None, **settings: Any) -> Self:
        """Computes and draws the learning curve of an estimator. The settings are those of ``bb.learning_curve``."""
        return cls.from_learning_curve(learning_curve(estimator, data, y, **settings), ax=ax)

    @classmethod
    def from_learning_curve(cls, curve: LearningCurve, *, ax: Any = None) -> Self:
        """Draws a result of ``bb.learning_curve``, including the curve of another learner."""
        return cls(curve).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 7.4, 4.0)
        ax.set_prop_cycle(color=COLOURS)
        curve = self.curve
        for learner in curve.learners:
            error = learner.standard_error
            ax.errorbar(curve.sizes, learner.mean_accuracy, error, marker="o", capsize=3, label=learner.name)
        ax.axhline(curve.majority, color="grey", linestyle="--", linewidth=1, label="majority")
        ax.axhline(curve.random_guess, color="grey", linestyle=":", linewidth=1, label="random guess")
        ax.set_xscale("log")
        ax.set(xlabel="training rows", ylabel=f"accuracy on {curve.n_test:,} held-out rows")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))  # where no curve is
        logarithmic(ax, (1.0, 2.0, 5.0), ",.0f")
        names = " beside ".join(learner.name for learner in curve.learners)
        repeats = len(curve.accuracy)
        bars = f": mean and standard error of {repeats} repeats" if repeats > 1 else ""
        ax.set_title(f"Learning curve of {names}{bars}")


class ConvergenceDisplay(Display):
    """The gain of each iteration of EM: in log-likelihood, and in the objective, which includes the log prior.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_iris
    >>> mixture = bb.Mixture(3).fit(load_iris().data)
    >>> shown = bb.plots.ConvergenceDisplay.from_estimator(mixture)
    >>> len(shown.log_likelihoods) == len(shown.objectives) == mixture.n_iter_
    True
    """

    def __init__(self, log_likelihoods: Any, objectives: Any) -> None:
        self.log_likelihoods = np.asarray(log_likelihoods, dtype=np.float64)
        self.objectives = np.asarray(objectives, dtype=np.float64)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draws the iterations of a fitted ``bb.SemiSupervisedClassifier`` or ``bb.Mixture``."""
        expected = "a fitted bb.SemiSupervisedClassifier or bb.Mixture"
        errors.require(hasattr(estimator, "objectives_"), "the estimator", type(estimator).__name__, expected)
        return cls(estimator.log_likelihoods_, estimator.objectives_).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 7.4, 4.0)
        iterations = 1 + np.arange(len(self.objectives))
        alike = np.allclose(self.log_likelihoods, self.objectives, rtol=1e-12)
        for c, values in enumerate([self.log_likelihoods] if alike else [self.log_likelihoods, self.objectives]):
            ax.plot(iterations, values - values[0], color=colour(c), linestyle=line(c), marker=mark(c), label=CLIMBS[c])
        ax.xaxis.set_major_locator(library().ticker.MaxNLocator(integer=True))
        ax.yaxis.set_major_formatter(library().ticker.FuncFormatter(lambda gain, _: f"{gain:,.6g}"))
        levels_behind(ax)
        ax.set(xlabel="iteration", ylabel="gain since the first, in nats")
        legend_beside(ax)
        ax.set_title(f"Expectation maximisation: {len(iterations):,} iterations")


class PosteriorDisplay(Display):
    """The posteriors of hypotheses after each row, stacked up to 1. ``trace`` has the numbers.

    >>> import banbury as bb
    >>> days = bb.datasets.enjoy_sport()
    >>> space = bb.conjunctions(days, "play", labels=["no", "yes"])
    >>> shown = bb.plots.PosteriorDisplay.from_hypotheses(space, days, "play")
    >>> shown.trace.n_possible.tolist()
    [487, 64, 32, 28, 6]
    """

    def __init__(self, trace: Trace) -> None:
        check_type("the trace", trace, Trace, "a Trace, from space.trace")
        errors.require(len(trace.posteriors) >= 2, "the trace", "no rows", "a trace of at least one row")
        if len(trace.names) >= len(COLOURS):
            raise errors.bad_setting("the trace", len(trace.names), f"a trace of at most {len(COLOURS) - 1} hypotheses")
        self.trace = trace

    @classmethod
    def from_trace(cls, trace: Trace, *, ax: Any = None) -> Self:
        """Draws a result of ``space.trace``."""
        return cls(trace).plot(ax)

    @classmethod
    def from_hypotheses(
        cls, space: Hypotheses, rows: Any = None, target: Any = None, *, ax: Any = None, **evidence: Any
    ) -> Self:
        """Draws how rows change the posterior. The arguments are those of ``space.trace``."""
        check_type("the space", space, Hypotheses, "Hypotheses")
        return cls(space.trace(rows, target, **evidence)).plot(ax)

    def _draw(self, ax: Any) -> None:
        trace = self.trace
        ax = self._begin(ax, 8.2, 3.8)
        steps = trace.first.n_rows + np.arange(len(trace.posteriors))
        bands = [*trace.posteriors.T]
        labels = names(trace.names, LONGEST)
        colours = list(COLOURS[: len(bands)])
        n_rest = len(trace.first) - len(bands)
        if n_rest:
            bands = [*bands, trace.others]
            labels = [*labels, f"all others ({n_rest:,})"]
            colours = [*colours, FAINT]
        ax.stackplot(steps, bands, labels=labels, colors=colours, edgecolor="white", linewidth=0.6)
        ax.set(xlim=steps[[0, -1]], ylim=(0.0, 1.0), xlabel="rows seen", ylabel="posterior (stacked to 1)")
        ax.xaxis.set_major_locator(library().ticker.MaxNLocator(integer=True))
        legend_beside(ax, ax.get_legend_handles_labels()[0][::-1])
        before, left = trace.n_possible[[0, -1]].tolist()
        ruled_out = f": {left:,} of {before:,} are left" if left < before else ""
        ax.set_title(f"Posterior of {len(trace.first):,} hypotheses as rows arrive{ruled_out}")
