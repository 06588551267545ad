"""Pictures of results: confusion matrices, calibration, learning curves, convergence of EM, posteriors of hypotheses."""

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
    draw_level_lines,
    import_matplotlib,
    legend_beside,
    line_style,
    logarithmic,
    mark,
    short_name,
    short_names,
)
from banbury.plots.features import ClassedRows, check_model
from banbury.quality import Evaluation, LearningCurve, evaluate, learning_curve
from banbury.quality.calibration import Reliability, reliability
from banbury.sums import sort_keys

MATRIX_LETTER_WIDTH = 0.075  # inches
SMALLEST_AREA = 12.0  # areas of the marks of calibration curves, in square points
LARGEST_AREA = 150.0
CellValues = Literal["counts", "shares"]  # what the cells of a confusion matrix show
CELL_VALUES = ["counts", "shares"]
LONGEST_HYPOTHESIS = 44  # characters of a hypothesis's name


class ConfusionMatrixDisplay(Display):
    """The confusion matrix: true classes are rows, predicted classes columns. The shade is the share of the true class.

    >>> import banbury as bb
    >>> result = bb.cross_validate(bb.datasets.wine(), target="cultivar")
    >>> shown = bb.plots.ConfusionMatrixDisplay.from_cross_validation(result)
    >>> int(shown.confusion_matrix.sum()), round(shown.accuracy, 3)
    (178, 0.989)
    """

    def __init__(self, confusion_matrix: Any, classes: Sequence[Any] | None = None) -> None:
        """``confusion_matrix``: numbers of rows, or their weights (true classes × predicted classes); ``classes``:
        their names, which are numbers unless given.
        """
        matrix = np.asarray(confusion_matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise errors.bad_setting("confusion_matrix", f"the shape {matrix.shape}", "a square table")
        if matrix.dtype.kind not in "iuf" or not np.isfinite(matrix).all() or (matrix < 0).any():
            raise errors.bad_setting("confusion_matrix", matrix.tolist(), "non-negative numbers")
        self.confusion_matrix = matrix
        self.values = "counts"  # what the cells show
        self.classes = tuple(range(len(matrix)) if classes is None else classes)
        if len(self.classes) != len(matrix):
            raise errors.bad_setting("classes", self.classes, f"one name for each of the {len(matrix)} classes")

    @classmethod
    def from_estimator(cls, estimator: Any, data: Any, y: Any = None, **settings: Any) -> Self:
        """Draws the predictions of a fitted estimator or a model for the rows ``data`` with the labels ``y``. The
        settings are those of ``from_cross_validation``.
        """
        return cls.from_cross_validation(evaluate(estimator, data, y), **settings)

    @classmethod
    def from_cross_validation(cls, result: Evaluation, *, values: CellValues = "counts", ax: Any = None) -> Self:
        """Draws the predictions of ``bb.cross_validate``. ``values``: "counts" for numbers of rows in the cells,
        "shares" for percentages of the true class.
        """
        check_type("the result", result, Evaluation, "a CrossValidation, from bb.cross_validate")
        return cls(result.confusion, result.classes).plot(ax, values=values)

    @classmethod
    def from_predictions(
        cls,
        truth: Any,
        predictions: Any,
        *,
        classes: Sequence[Any] | None = None,
        values: CellValues = "counts",
        ax: Any = None,
    ) -> Self:
        """Draws predictions against true classes, one of each per row. ``classes`` sets the order, which is sorted
        unless given. Raises an error for a class that is not among them.
        """
        true, predicted = (np.asarray(labels).ravel().tolist() for labels in (truth, predictions))  # classes of rows
        if len(true) != len(predicted):
            raise errors.length_mismatch("predictions", len(predicted), len(true))
        if not true:
            raise errors.empty_data(None, "there are no predictions")
        ordered_classes = tuple(sort_keys({*true, *predicted}) if classes is None else classes)
        class_number = {label: i for i, label in enumerate(ordered_classes)}
        for label in (*true, *predicted):
            if label not in class_number:
                raise errors.unknown_class(label, ordered_classes)
        matrix = np.zeros((len(ordered_classes), len(ordered_classes)), dtype=np.int64)  # true × predicted
        np.add.at(matrix, ([class_number[label] for label in true], [class_number[label] for label in predicted]), 1)
        return cls(matrix, ordered_classes).plot(ax, values=values)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each true class that was predicted as each class (true × predicted classes); 0 for classes
        without rows.
        """
        totals = self.confusion_matrix.sum(axis=1, keepdims=True)  # the rows of each true class
        return self.confusion_matrix / np.where(totals > 0, totals, 1)

    @property
    def accuracy(self) -> float:
        """The share of correct predictions."""
        total = float(self.confusion_matrix.sum())
        return float(np.trace(self.confusion_matrix)) / total if total else 0.0

    def plot(self, ax: Any = None, *, values: CellValues = "counts") -> Self:
        """Draws the matrix, on ``ax`` if given, with numbers of rows, or percentages of the true class, in its cells."""
        if values not in CELL_VALUES:
            raise errors.unknown_choice("values", values, CELL_VALUES)
        self.values = values
        return super().plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws the matrix with a number in each cell that has rows, if there are at most 40 classes: the rows, or the
        share of the true class if ``self.values`` is "shares".
        """
        n_classes = len(self.classes)
        class_names = short_names(self.classes)
        shares = self.shares  # of the true class, true × predicted classes
        # All sizes are in inches.
        label_width = MATRIX_LETTER_WIDTH * max(map(len, class_names))
        is_rotated = n_classes > 8  # whether names of predicted classes are written upwards
        cell_width = 0.34 if is_rotated else max(0.6, label_width + 0.15)  # wide enough for a label that stands upright
        width = max(0.7 + label_width + cell_width * n_classes, 4.2)
        height = max(0.8 + label_width * is_rotated + cell_width * n_classes, 3.2)
        ax = self._begin(ax, width, height)
        ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        ax.set_xticks(np.arange(n_classes), class_names, **({"rotation": 90} if is_rotated else {}))
        ax.set_yticks(np.arange(n_classes), class_names)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_xticks(np.arange(n_classes + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n_classes + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1.0)
        ax.tick_params(which="minor", length=0)
        # A number in every cell that has rows: an empty one is easier to see than a zero.
        for true_class, predicted_class in np.argwhere(self.confusion_matrix > 0).tolist() if n_classes <= 40 else ():
            n_rows = self.confusion_matrix[true_class, predicted_class]
            share = float(shares[true_class, predicted_class])
            text = f"{100 * share:.0f}" if self.values == "shares" else f"{n_rows:.4g}"
            style = {"fontsize": 7 if n_classes > 8 else 9, "color": "white" if share > 0.55 else "black"}
            ax.text(predicted_class, true_class, text, ha="center", va="center", **style)
        ax.set(xlabel="predicted class", ylabel="true class")
        summary = f"{self.confusion_matrix.sum():,.6g} rows, {self.accuracy:.1%} right"
        unit = "; cells in % of the true class" if self.values == "shares" else ""
        ax.set_title(f"Confusion matrix: {summary}{unit}")


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
        """``curves``: the curves to draw, by name."""
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
        """Draws the out-of-fold posteriors of ``bb.cross_validate``. ``bins``: the number of bins of confidence."""
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
        """Draws the posteriors of a model for the rows ``data``, which it has not learned from; for a calibrated model,
        before and after calibration. ``target``: the classes of the rows, or the column of them; ``bins``: the number
        of bins of confidence; ``reading``: options for reading the data.
        """
        check_model(model, classes=2)
        rows = ClassedRows(model, data, target, reading)
        has_class = rows.classes >= 0  # of each row
        models = {"posteriors": model}
        if model.calibration is not None:
            models = {"before calibration": model.calibrated(calibration=None), "after calibration": model}
        curves = {}
        for curve_name, model_to_draw in models.items():
            # Rows × classes.
            posteriors = np.concatenate([model_to_draw.posterior(batch) for batch in rows.batches])
            curves[curve_name] = reliability(posteriors[has_class], rows.classes[has_class], bins)
        return cls(curves).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws the curves, which are by name, and the diagonal of perfect calibration. A curve has for each bin its
        ``start``, the mean ``confidence``, the ``accuracy`` and the number of ``rows``.
        """
        ax = self._begin(ax, width=6.8, height=4.6)
        ax.plot([0.0, 1.0], [0.0, 1.0], color=FAINT, linewidth=1.2, label="perfect calibration", zorder=1)
        largest = max(float(curve.rows.max()) for curve in self.curves.values())  # number of rows in a bin
        for number, (curve_name, curve) in reversed(list(enumerate(self.curves.items()))):
            points = (curve.confidence, curve.accuracy)  # x and y, one of each per bin
            # Of two curves the first is drawn in the second colour.
            curve_colour = colour((number + 1) % 2 if len(self.curves) == 2 else number)
            label = f"{short_name(curve_name, 40)}: error {curve.error:.3f}"
            # Every eighth number has another line style, so that each curve gets its own.
            ax.plot(*points, line_style(8 * number), label=label, zorder=2, color=curve_colour)
            # Of the marks, in square points.
            areas = SMALLEST_AREA + (LARGEST_AREA - SMALLEST_AREA) * curve.rows / largest
            style = {"marker": mark(number), "edgecolors": "white", "linewidths": 0.6}
            ax.scatter(*points, areas, zorder=3, color=curve_colour, **style)
        # The first bin with rows, and the lowest point of all curves.
        left = min(float(curve.start.min()) for curve in self.curves.values())
        low = min(left, *(float(curve.accuracy.min()) for curve in self.curves.values()))
        ax.set(xlim=(np.floor(10 * left) / 10 - 0.02, 1.03), ylim=(np.floor(10 * low) / 10 - 0.02, 1.03))
        handles = ax.get_legend_handles_labels()[0]
        legend_beside(ax, handles[:1] + handles[:0:-1])  # the diagonal, then the curves in their order
        ax.set_xlabel("confidence: mean probability of the prediction")
        ax.set_ylabel("accuracy: share of correct predictions")
        n_rows = next(iter(self.curves.values())).rows.sum()
        ax.set_title(f"Reliability of {n_rows:,.6g} predictions; the area of a mark is its number of rows")


class LearningCurveDisplay(Display):
    """Mean accuracies with their standard errors against the number of training rows. ``curve`` has the numbers.

    >>> import banbury as bb
    >>> curve = bb.learning_curve(bb.datasets.wine(), target="cultivar", repeats=3)
    >>> shown = bb.plots.LearningCurveDisplay.from_learning_curve(curve)
    >>> shown.ax_.get_xlabel()
    'training rows'
    """

    def __init__(self, curve: LearningCurve) -> None:
        """``curve``: a result of ``bb.learning_curve``."""
        check_type("the curve", curve, LearningCurve, "a LearningCurve, from bb.learning_curve")
        self.curve = curve

    @classmethod
    def from_estimator(cls, estimator: Any, data: Any, y: Any = None, *, ax: Any = None, **settings: Any) -> Self:
        """Computes and draws the learning curve of an estimator for the rows ``data`` with the labels ``y``. The
        settings are those of ``bb.learning_curve``.
        """
        return cls.from_learning_curve(learning_curve(estimator, data, y, **settings), ax=ax)

    @classmethod
    def from_learning_curve(cls, curve: LearningCurve, *, ax: Any = None) -> Self:
        """Draws a result of ``bb.learning_curve``, including the curve of another learner."""
        return cls(curve).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws the mean accuracies of each learner with error bars, one for each size, and the baselines."""
        ax = self._begin(ax, width=7.4, height=4.0)
        ax.set_prop_cycle(color=COLOURS)
        curve = self.curve
        for learner in curve.learners:
            error = learner.standard_error  # of the mean accuracy for each size; None for a single repeat
            ax.errorbar(curve.sizes, learner.mean_accuracy, error, marker="o", capsize=3, label=learner.name)
        ax.axhline(curve.majority, color="grey", linestyle="--", linewidth=1, label="majority")
        ax.axhline(curve.random_guess, color="grey", linestyle=":", linewidth=1, label="random guess")
        ax.set_xscale("log")
        ax.set(xlabel="training rows", ylabel=f"accuracy on {curve.n_test:,} held-out rows")
        legend_beside(ax)
        logarithmic(ax, (1.0, 2.0, 5.0), ",.0f")
        learner_names = " beside ".join(learner.name for learner in curve.learners)
        repeats = len(curve.accuracy)
        error_note = f": mean and standard error of {repeats} repeats" if repeats > 1 else ""
        ax.set_title(f"Learning curve of {learner_names}{error_note}")


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
        """``log_likelihoods``, ``objectives``: one of each per iteration."""
        self.log_likelihoods = np.asarray(log_likelihoods, dtype=np.float64)
        self.objectives = np.asarray(objectives, dtype=np.float64)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draws the iterations of a fitted ``bb.SemiSupervisedClassifier`` or ``bb.Mixture``."""
        expected = "a fitted bb.SemiSupervisedClassifier or bb.Mixture"
        errors.require(hasattr(estimator, "objectives_"), "the estimator", type(estimator).__name__, expected)
        return cls(estimator.log_likelihoods_, estimator.objectives_).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws the gain since the first iteration, in log-likelihood and in the objective (one of each per iteration),
        in nats; only one curve if both are equal.
        """
        ax = self._begin(ax, width=7.4, height=4.0)
        iterations = 1 + np.arange(len(self.objectives))
        are_equal = np.allclose(self.log_likelihoods, self.objectives, rtol=1e-12)
        curves = {"log-likelihood": self.log_likelihoods}
        if not are_equal:
            curves["log-likelihood + log prior"] = self.objectives
        for number, (label, values) in enumerate(curves.items()):
            style = {"color": colour(number), "linestyle": line_style(number), "marker": mark(number)}
            ax.plot(iterations, values - values[0], label=label, **style)
        ax.xaxis.set_major_locator(import_matplotlib().ticker.MaxNLocator(integer=True))
        ax.yaxis.set_major_formatter(import_matplotlib().ticker.FuncFormatter(lambda gain, _: f"{gain:,.6g}"))
        draw_level_lines(ax)
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
        """``trace``: a result of ``space.trace`` with at least one row."""
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
        """Draws how ``rows``, with their labels or the column of them in ``target``, change the posterior of ``space``.
        All arguments are those of ``space.trace``.
        """
        check_type("the space", space, Hypotheses, "Hypotheses")
        return cls(space.trace(rows, target, **evidence)).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws the posteriors as stacked bands: those of the named hypotheses (steps × hypotheses), and of all others
        together.
        """
        trace = self.trace
        ax = self._begin(ax, width=8.2, height=3.8)
        # The number of rows seen at each step.
        steps = trace.first.n_rows + np.arange(len(trace.posteriors))
        bands = [*trace.posteriors.T]  # of each named hypothesis its posterior at each step
        labels = short_names(trace.names, LONGEST_HYPOTHESIS)
        colours = list(COLOURS[: len(bands)])
        n_others = len(trace.first) - len(bands)  # hypotheses without a band of their own
        if n_others:
            bands.append(trace.rest)
            labels.append(f"all others ({n_others:,})")
            colours.append(FAINT)
        ax.stackplot(steps, bands, labels=labels, colors=colours, edgecolor="white", linewidth=0.6)
        ax.set(xlim=steps[[0, -1]], ylim=(0.0, 1.0), xlabel="rows seen", ylabel="posterior (stacked to 1)")
        ax.xaxis.set_major_locator(import_matplotlib().ticker.MaxNLocator(integer=True))
        legend_beside(ax, ax.get_legend_handles_labels()[0][::-1])
        # Numbers of possible hypotheses before the first row and after the last.
        n_first, n_left = trace.n_possible[[0, -1]].tolist()
        ruled_out = f": {n_left:,} of {n_first:,} are left" if n_left < n_first else ""
        ax.set_title(f"Posterior of {len(trace.first):,} hypotheses as rows arrive{ruled_out}")
