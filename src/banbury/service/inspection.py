"""Measures the model of a state: its accuracy, its mistakes, its evidence, and whether recent rows differ from earlier ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from banbury import errors
from banbury.files.checking import JsonObject
from banbury.model.explain.page import format_ratio, printable
from banbury.model.explain.ratios import LikelihoodRatio
from banbury.model.naive_bayes import estimate
from banbury.plots.shape import shapes_by_class
from banbury.quality import CrossValidation, cross_validate
from banbury.quality.calibration import reliability
from banbury.quality.curves import learn_sizes
from banbury.quality.recipes import Recipe, Weighed, recipe_of
from banbury.quality.validation import default_folds, validate
from banbury.reports import charts
from banbury.reports.findings import CONFIDENCE_BINS
from banbury.rows.labelled import MemoryRows, load_rows
from banbury.service.log import StoredRow
from banbury.service.rows import key
from banbury.service.state import ServedState
from banbury.service.teaching import batch_of, labels_of, row_as_dict, suspicious
from banbury.tally.tally import count
from banbury.weighing import Weighing

QUICK_SECONDS = 0.1  # faster measures are updated after every change
ROWS_PER_CHANGE = 50  # slower measures are updated when one in so many rows has changed
FEWEST_ROWS = 4  # rows below which nothing is measured
FEWEST_ROWS_OF_CURVE = 30  # rows below which there is no learning curve
RECENT_SHARE = 0.1  # share of the rows that count as recent
MOST_CLASSES = 24  # classes whose most informative values are listed
MOST_SHAPES = 24  # pictures of columns for each class
CLASSES_WITH_SHAPES = 4  # classes for which they are drawn
NORMAL_QUANTILE = 1.96  # standard deviations that contain 95 % of a normal distribution
ROWS_OF_CELL = 50  # rows that are listed of a cell of the confusion matrix


@dataclass
class CachedMeasure:
    """The last value of a measure, the change as of which it was taken (−1 before the first), and the seconds that it
    cost.
    """

    value: Any = None
    change: int = -1  # its number
    cost: float = 0.0  # seconds
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, state: ServedState, recent: bool, measure: Callable[[], Any]) -> Any:
        """Returns the cached value (as of ``self.change``, −1 before the first), measured anew with ``measure`` if rows
        have changed. ``recent``: whether an older value will do unless measuring was quick (``self.cost`` seconds) or
        many rows changed.
        """
        with self.lock:
            change = state.change_number  # the last one of the state
            has_many_changes = (change - self.change) * ROWS_PER_CHANGE >= state.learner.n_rows
            if self.change < 0 or (
                change != self.change and (not recent or self.cost <= QUICK_SECONDS or has_many_changes)
            ):
                start = perf_counter()  # seconds
                self.value = measure()
                self.change = change
                self.cost = perf_counter() - start
            return self.value


@dataclass
class Inspection:
    """Measures of the model of a state, cached until rows change. ``learning_curve``: the accuracies so far, each
    with its standard error and the number of labelled rows, fewest first.
    """

    state: ServedState
    learning_curve: list[JsonObject] = field(default_factory=list)
    _validated_rows: CachedMeasure = field(default_factory=CachedMeasure)  # what ``validate_rows`` returns
    _suspicious: CachedMeasure = field(default_factory=CachedMeasure)  # the ranking for ``suspicious``

    def rows(self) -> list[StoredRow]:
        """Returns the labelled rows of the state in the order of their ids; none if it has no folder."""
        return [] if self.state.folder is None else self.state.log.rows(labelled=True)

    def validate_rows(self, recent: bool = False) -> tuple[list[StoredRow], CrossValidation | None]:
        """Returns the labelled rows, and their cross-validation with the recipe of the served model.

        The validation is None if there are too few rows or several labels per row. ``recent``: that of some changes ago
        will do.
        """

        def validate_all() -> tuple[list[StoredRow], CrossValidation | None]:
            """Returns the labelled rows as they are now, and their cross-validation or None."""
            rows = self.rows()
            tally = self.state.learner.tally()
            has_few_rows = len(rows) < FEWEST_ROWS or len(tally.classes) < 2
            return rows, None if has_few_rows or tally.schema.labels is not None else self._validate(rows)

        return self._validated_rows.get(self.state, recent, validate_all)  # type: ignore[no-any-return]

    def suspicious(self, n: int, recent: bool = False) -> JsonObject:
        """Returns the ``n`` rows whose labels look most wrong, for JSON. ``recent``: whether a ranking of some changes
        ago will do.
        """
        if not recent:
            return suspicious(self.state, n)
        ranking: JsonObject = self._suspicious.get(
            self.state, recent=True, measure=lambda: suspicious(self.state, max(n, 20))
        )
        # Each entry of the ranking with its row as it is now, None if deleted.
        current_rows = [(entry, self.state.log.row(entry["id"])) for entry in ranking["rows"]]
        unchanged_entries = [  # whose rows still have the label that looked wrong; ``key`` returns it as a JSON text
            entry for entry, stored in current_rows if stored is not None and stored.label == key(entry["label"])
        ]
        return {"rows": unchanged_entries[:n]}

    def _validate(self, rows: list[StoredRow]) -> Any:
        """Returns the cross-validation of these rows with the recipe of the served model; None if there are too few."""
        recipe = self._recipe()  # how the served model was learned
        encoded_rows = self._load_rows(rows)
        folds = default_folds(encoded_rows.n_labelled, [recipe], self.state.learner.settings.choice.n_folds)
        return validate(encoded_rows, folds, [recipe])[0] if folds > 1 else None

    def _recipe(self) -> Recipe:
        """Returns the recipe with which the served model was learned."""
        return recipe_of(self.state.learner.settings.model(self.state.learner.tally()))

    def _load_rows(self, rows: list[StoredRow]) -> MemoryRows:
        """Returns the rows and their labels, encoded under the schema of the state."""
        return load_rows(batch_of(self.state, rows), labels_of(rows), schema=self.state.learner.schema)

    def accuracy(self) -> JsonObject:
        """Returns how many rows have a label, the cross-validated accuracy with its standard error (None if nothing can
        be measured), and how it has grown with the rows (at most 500 points), for JSON.
        """
        n_labelled, n_unlabelled = self.state.log.n_rows()
        progress: JsonObject = {
            "labelled": n_labelled,
            "unlabelled": n_unlabelled,
            "accuracy": None,
            "standard_error": None,
        }
        validation = self.validate_rows(recent=True)[1]
        if validation is not None:
            progress |= _accuracy_with_error(validation)
            point = {"rows": n_labelled, **_accuracy_with_error(validation)}
            if not self.learning_curve or self.learning_curve[-1] != point:
                self.learning_curve = [
                    *(earlier for earlier in self.learning_curve if earlier["rows"] < n_labelled),
                    point,
                ]
        return progress | {"learning_curve": self.learning_curve[-500:]}

    def overview(self) -> JsonObject:
        """Returns everything that the page shows about the model, for JSON."""
        model = self.state.learner.snapshot_model()
        # The weight of each column and pair by name; None for a plain model.
        worth = model.weighing.worth() if isinstance(model.weighing, Weighing) else None
        view: JsonObject = {"informative": _informative(model), "weights": worth}
        rows, validation = self.validate_rows()  # validation: None if there are too few rows
        if model.schema.labels is not None:
            view["validation"] = self._validate_labels(rows)
        else:
            view["validation"] = None if validation is None else _figures(validation) | _accuracy_with_error(validation)
        view["charts"] = self._charts(rows, validation)
        view["shapes"] = [] if model.schema.labels is not None else _shapes(model)
        explanation = (
            f"Figures need at least {FEWEST_ROWS} labelled rows of two classes in the state; there are {len(rows)}."
        )
        return view | {"why_no_validation": explanation, "drift": self._drift(rows)}

    def cell(self, truth: int, predicted: int) -> JsonObject:
        """Returns the rows of class ``truth`` that were predicted as class ``predicted`` (both class numbers), those
        with the surest predictions first, for JSON.
        """
        rows, validation = self.validate_rows()
        if validation is None or not (truth < len(validation.classes) and predicted < len(validation.classes)):
            raise errors.EmptyData(
                "this cell does not exist: nothing has been measured yet, or there are fewer classes."
            )
        # Positions among ``rows``; ``validation.truth`` and ``best`` have a class number per row, ``posteriors`` rows × classes.
        positions = np.flatnonzero((validation.truth == truth) & (validation.best == predicted))
        surest_positions = positions[np.argsort(-validation.posteriors[positions, predicted], kind="stable")][
            :ROWS_OF_CELL
        ]
        surest_rows = [
            (rows[position], float(validation.posteriors[position, predicted]))
            for position in surest_positions.tolist()
        ]
        row_entries = [{**row_as_dict(row), "probability": probability} for row, probability in surest_rows]
        return {"truth": validation.classes[truth], "predicted": validation.classes[predicted], "rows": row_entries}

    def _validate_labels(self, rows: list[StoredRow]) -> JsonObject | None:
        """Returns the cross-validated figures of a multi-label model on these rows, for JSON; None if there are too few
        rows.
        """
        validation = None if len(rows) < FEWEST_ROWS else self._validate(rows)
        if validation is None:
            return None
        accuracy = validation.subset_accuracy  # the share of rows all of whose labels are right
        figures = {
            "accuracy": accuracy,
            "standard_error": (accuracy * (1 - accuracy) / len(rows)) ** 0.5,
            "log_loss": validation.log_loss,
        }
        method = f"{validation.what}, exact label sets (micro F1 {validation.micro_f1:.3f})"
        return {"method": method, "rows": len(rows), **figures}

    def _charts(self, rows: list[StoredRow], validation: CrossValidation | None) -> list[dict[str, str]]:
        """Returns the calibration chart and the learning curve as captions with SVG; empty without a validation.
        ``rows``: the validated rows.
        """
        if validation is None:
            return []
        # By confidence: how often predictions are correct.
        calibration_curve = reliability(validation.posteriors, validation.truth, CONFIDENCE_BINS, validation.weights)
        figures = [_figure("Accuracy by confidence", charts.draw_calibration({"out of fold": calibration_curve}))]
        if len(rows) < FEWEST_ROWS_OF_CURVE:
            return figures
        try:
            recipe = self._recipe()
            learning_curve = learn_sizes(self._load_rows(rows), recipe, repeats=1 if isinstance(recipe, Weighed) else 5)
        except errors.BanburyError:  # too few rows of some class
            return figures
        return [*figures, _figure("Accuracy by number of training rows", charts.draw_accuracy_curve(learning_curve))]

    def _drift(self, rows: list[StoredRow]) -> JsonObject | None:
        """Returns whether a classifier can tell the last tenth of the rows from those before: message, AUC, and the
        most informative values. None for few rows.
        """
        n_recent = int(len(rows) * RECENT_SHARE)  # rows
        if n_recent < FEWEST_ROWS:
            return None
        # The positions of the rows that were changed last.
        last_rows = set(np.argsort([row.change for row in rows], kind="stable")[-n_recent:].tolist())
        # The classes that the classifier has to tell apart, one per row.
        flags = ["last" if position in last_rows else "before" for position in range(len(rows))]
        untargeted_schema = replace(self.state.learner.schema, target=None, target_kind=None, labels=None)
        batch = batch_of(self.state, rows)
        # Of a classifier for these flags.
        validation = cross_validate(batch, flags, folds=min(10, n_recent), schema=untargeted_schema)
        # The standard error of the AUC of two samples from the same distribution.
        chance_error = ((len(rows) + 1) / (12.0 * n_recent * (len(rows) - n_recent))) ** 0.5
        largest_chance_auc = 0.5 + NORMAL_QUANTILE * chance_error
        if validation.auc <= largest_chance_auc:
            message = f"No drift detected: a classifier cannot tell the last {n_recent:,} rows "
            message += f"from the {len(rows) - n_recent:,} before. "
            message += f"AUC {validation.auc:.2f}; values up to {largest_chance_auc:.2f} can occur by chance."
            return {"message": message, "auc": validation.auc, "differences": []}
        informative = _informative(estimate(count(batch, flags, schema=untargeted_schema)))
        # The values that distinguish the last rows, for JSON.
        ratios: list[Any] = next(
            (class_ratios["ratios"] for class_ratios in informative if class_ratios["class"] == "last"), []
        )
        # An AUC of 0.75 is halfway from no difference to a perfect distinction.
        verb = "differ" if validation.auc > 0.75 else "differ slightly"
        message = f"The last {n_recent:,} rows {verb} from the {len(rows) - n_recent:,} before: "
        message += f"AUC {validation.auc:.2f} (0.5: no difference)."
        return {"message": message, "auc": validation.auc, "differences": ratios}


def _figure(caption: str, svg: str) -> dict[str, str]:
    """Returns a picture with its caption, for JSON."""
    return {"caption": caption, "svg": svg}


def _shapes(model: Any) -> list[JsonObject]:
    """Returns for each class the pictures of its evidence, one per column, for JSON."""
    # Pairs of a class and the shapes of its columns.
    shapes_of_classes = shapes_by_class(model, CLASSES_WITH_SHAPES)
    return [
        {
            "class": label,
            "charts": [
                _figure(
                    f"{feature_shape.feature}: {charts.describe_importance(feature_shape)}",
                    charts.draw_shape(feature_shape),
                )
                for feature_shape in shapes[:MOST_SHAPES]
            ],
        }
        for label, shapes in shapes_of_classes
    ]


def _accuracy_with_error(validation: CrossValidation) -> dict[str, float]:
    """Returns the accuracy of a validation with its standard error over folds, for JSON."""
    return {"accuracy": float(validation.accuracy.value), "standard_error": float(validation.accuracy.error or 0.0)}


def _figures(validation: CrossValidation) -> JsonObject:
    """Returns the log loss and the confusion matrix (true class × predicted class) of a validation, for JSON."""
    figures = {
        "method": validation.what,
        "rows": len(validation.truth),
        "log_loss": float(validation.log_loss),
    }
    confusion = [
        [round(cell, 6) for cell in row] for row in np.asarray(validation.confusion, dtype=np.float64).tolist()
    ]
    return figures | {"classes": list(validation.classes), "confusion": confusion}


def _informative(model: Any) -> list[JsonObject]:
    """Returns for each class or label its eight most informative values, the most informative first, for JSON; for many
    classes only those of MOST_CLASSES.
    """
    # For each class: its name, the columns that are words, and its likelihood ratios.
    if model.schema.labels is not None:
        largest_labels = np.argsort(-model.rows_by_label, kind="stable")[:MOST_CLASSES].tolist()
        informative_labels = [
            (model.labels[label_index], model.informative(model.labels[label_index], n=8))
            for label_index in largest_labels
        ]
        class_ratios = [
            (label, informative.words, informative.ratios[label]) for label, informative in informative_labels
        ]
    elif len(model.classes) > 1:
        all_informative = model.informative(n=8)
        class_ratios = [
            (label, all_informative.words, ratios)
            for label, ratios in list(all_informative.ratios.items())[:MOST_CLASSES]
        ]
    else:
        class_ratios = []
    return [
        {"class": name, "ratios": [_ratio(ratio, words) for ratio in sorted(ratios, key=lambda ratio: -ratio.ratio)]}
        for name, words, ratios in class_ratios
    ]


def _ratio(ratio: LikelihoodRatio, word_features: frozenset[str]) -> JsonObject:
    """Returns a likelihood ratio for JSON, with the ratio as text. ``word_features``: the columns that are words."""
    # As JSON can hold it.
    value = ratio.value if isinstance(ratio.value, (str, int, float, bool)) else printable(ratio.value)
    return {
        "feature": ratio.feature,
        "word": ratio.feature in word_features,
        "value": value,
        "ratio": format_ratio(ratio.ratio),
    }
