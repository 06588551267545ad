"""How good the model of a state is by now, where it errs, what it goes by, and whether the last rows are like the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from banbury import errors
from banbury.model.explain.page import format_ratio, printable
from banbury.model.explain.ratios import LikelihoodRatio
from banbury.model.naive_bayes import estimate
from banbury.plots.shapes import shapes_by_class
from banbury.quality import CrossValidation, cross_validate
from banbury.quality.calibration import reliability
from banbury.quality.curves import learn_sizes
from banbury.quality.recipes import Recipe, Weighed, recipe_of
from banbury.quality.validation import default_folds, validate
from banbury.reports import charts
from banbury.reports.findings import BINS
from banbury.rows.labelled import MemoryRows, load_rows
from banbury.service.log import Kept
from banbury.service.rows import key
from banbury.service.state import ServedState
from banbury.service.teaching import batch_of, labels_of, row_as_dict, suspicious
from banbury.tally.tally import count
from banbury.weighing import Weighing

QUICK = 0.1  # seconds: what is measured faster is measured after every change
MANY = 50  # and anything else when one row of so many changed
FEWEST = 4  # rows that figures are made of
CURVE = 30  # rows from which on there is a learning curve
LAST = 0.1  # of the rows: those that are held against the rest
SHOWN = 24  # classes whose telling values are listed
SHAPES = 24  # pictures of columns for each class, and of so many classes
SHAPE_CLASSES = 4
Z = 1.96  # deviations that hold 95 % of a normal distribution
CELL = 50  # rows of a cell of the confusion matrix


class Remembered:
    """What was measured last, and as of which change."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.change = -1
        self.cost = 0.0
        self.value = None

    def get(self, state: ServedState, recent: bool, measure: Callable[[], Any]) -> Any:
        """Measured anew where rows changed; if a ``recent`` value will do, only where that is quick, or many rows did."""
        with self.lock:
            change = state.change_number
            has_many_changes = (change - self.change) * MANY >= state.learner.n_rows
            if self.change < 0 or (change != self.change and (not recent or self.cost <= QUICK or has_many_changes)):
                start = perf_counter()
                self.value, self.change = measure(), change
                self.cost = perf_counter() - start
            return self.value


@dataclass
class Looking:
    """Measures of a state, made anew where rows were learned or forgotten, beside the answers."""

    state: ServedState
    grown: list[dict[str, Any]] = field(default_factory=list)  # accuracy, each time that it was asked for
    _judged_rows: Remembered = field(default_factory=Remembered)
    _suspicious: Remembered = field(default_factory=Remembered)

    def rows(self) -> list[Kept]:
        """The rows with a label, in the order of their ids; none without a state."""
        return [] if self.state.folder is None else self.state.log.rows(labelled=True)

    def validate_rows(self, recent: bool = False) -> tuple[list[Kept], CrossValidation | None]:
        """Every row with a label, judged by models of other rows that learn as the served model did.

        None where there are too few rows, or labels are sets.
        """

        def validate_all() -> tuple[list[Kept], CrossValidation | None]:
            rows = self.rows()
            tally = self.state.learner.tally()
            has_few_rows = len(rows) < FEWEST or len(tally.classes) < 2
            return rows, None if has_few_rows or tally.schema.labels is not None else self._validate(rows)

        rows_and_validation: tuple[list[Kept], CrossValidation | None] = self._judged_rows.get(
            self.state, recent, validate_all
        )
        return rows_and_validation

    def suspicious(self, n: int, recent: bool = False) -> dict[str, Any]:
        """Rows whose labels look wrong; ``recent``: those of some changes ago will do."""
        if not recent:
            return suspicious(self.state, n)
        ranking: dict[str, Any] = self._suspicious.get(self.state, True, lambda: suspicious(self.state, max(n, 20)))
        now = [(entry, self.state.log.row(entry["id"])) for entry in ranking["rows"]]
        left = [entry for entry, kept in now if kept is not None and kept.label == key(entry["given"])]
        return {"rows": left[:n]}

    def _validate(self, rows: list[Kept]) -> Any:
        """The rows judged by models that have not seen them; None where there are too few for that."""
        recipe = self._recipe()
        loaded = self._load_rows(rows)
        folds = default_folds(loaded.n_labelled, [recipe], self.state.learner.settings.choice.n_folds)
        return validate(loaded, folds, [recipe])[0] if folds > 1 else None

    def _recipe(self) -> Recipe:
        """How the model that is served was learned."""
        return recipe_of(self.state.learner.settings.model(self.state.learner.tally()))

    def _load_rows(self, rows: list[Kept]) -> MemoryRows:
        return load_rows(batch_of(self.state, rows), labels_of(rows), schema=self.state.learner.schema)

    def accuracy(self) -> dict[str, Any]:
        """The share of right answers on rows that were left out, with its error, and how it grew."""
        labelled, unlabelled = self.state.log.n_rows()
        progress: dict[str, Any] = {"labelled": labelled, "unlabelled": unlabelled, "accuracy": None, "error": None}
        validation = self.validate_rows(recent=True)[1]
        if validation is not None:
            progress |= _right(validation)
            point = {"rows": labelled, **_right(validation)}
            if not self.grown or self.grown[-1] != point:
                self.grown = [*(p for p in self.grown if p["rows"] < labelled), point]
        return progress | {"grown": self.grown[-500:]}

    def look(self) -> dict[str, Any]:
        """All that a page shows of a model."""
        model = self.state.learner.apart()
        worth = model.weighing.worth() if isinstance(model.weighing, Weighing) else None
        view: dict[str, Any] = {"informative": _informative(model), "weights": worth}
        rows, validation = self.validate_rows()
        if model.schema.labels is not None:
            view["measured"] = self._of_labels(rows)
        else:
            view["measured"] = None if validation is None else _figures(validation) | _right(validation)
        view["charts"] = self._charts(rows, validation)
        view["shapes"] = [] if model.schema.labels is not None else _shapes(model)
        why = f"Figures need at least {FEWEST} labelled rows of two classes in the state; there are {len(rows)}."
        return view | {"why": why, "drift": self._drift(rows)}

    def cell(self, truth: int, answer: int) -> dict[str, Any]:
        """The rows of one class that were taken for another, those first of which that was surest."""
        rows, validation = self.validate_rows()
        if validation is None or not (truth < len(validation.classes) and answer < len(validation.classes)):
            raise errors.EmptyData(
                "this cell does not exist: nothing has been measured yet, or there are fewer classes."
            )
        at = np.flatnonzero((validation.truth == truth) & (validation.best == answer))
        order = at[np.argsort(-validation.posteriors[at, answer], kind="stable")][:CELL]
        surest_rows = [(rows[k], float(validation.posteriors[k, answer])) for k in order.tolist()]
        listed = [{**row_as_dict(row), "probability": share} for row, share in surest_rows]
        return {"truth": validation.classes[truth], "answer": validation.classes[answer], "rows": listed}

    def _of_labels(self, rows: list[Kept]) -> dict[str, Any] | None:
        validation = None if len(rows) < FEWEST else self._validate(rows)
        if validation is None:
            return None
        right = validation.subset_accuracy
        figures = {
            "accuracy": right,
            "error": (right * (1 - right) / len(rows)) ** 0.5,
            "log_loss": validation.log_loss,
        }
        what = f"{validation.what}, exact label sets (micro F1 {validation.micro_f1:.3f})"
        return {"what": what, "rows": len(rows), **figures}

    def _charts(self, rows: list[Kept], validation: CrossValidation | None) -> list[dict[str, str]]:
        """Those of a report, with their captions."""
        if validation is None:
            return []
        curve = reliability(validation.posteriors, validation.truth, BINS, validation.weights)
        drawn = [_figure("Accuracy by confidence", charts.calibration({"out of fold": curve}))]
        if len(rows) < CURVE:
            return drawn
        try:
            recipe = self._recipe()
            grown = learn_sizes(self._load_rows(rows), recipe, repeats=1 if isinstance(recipe, Weighed) else 5)
        except errors.BanburyError:  # too few rows of some class
            return drawn
        return [*drawn, _figure("Accuracy by number of training rows", charts.accuracy_curve(grown))]

    def _drift(self, rows: list[Kept]) -> dict[str, Any] | None:
        """Whether the rows that came last can be told from those before: two classes like any others."""
        n = int(len(rows) * LAST)
        if n < FEWEST:
            return None
        late = set(np.argsort([row.change for row in rows], kind="stable")[-n:].tolist())
        flags = ["last" if k in late else "before" for k in range(len(rows))]
        apart = replace(self.state.learner.schema, target=None, target_kind=None, labels=None)
        batch = batch_of(self.state, rows)
        validation = cross_validate(batch, flags, folds=min(10, n), schema=apart)
        noise = (
            0.5 + Z * ((len(rows) + 1) / (12.0 * n * (len(rows) - n))) ** 0.5
        )  # of the AUC of rows that do not differ
        if validation.auc <= noise:
            message = (
                f"No drift detected: a classifier cannot tell the last {n:,} rows from the {len(rows) - n:,} before. "
            )
            message += f"AUC {validation.auc:.2f}; values up to {noise:.2f} can occur by chance."
            return {"said": message, "auc": validation.auc, "telling": []}
        informative = _informative(estimate(count(batch, flags, schema=apart)))
        telling: list[Any] = next(
            (class_ratios["ratios"] for class_ratios in informative if class_ratios["class"] == "last"), []
        )
        differ = "differ" if validation.auc > 0.75 else "differ slightly"
        message = f"The last {n:,} rows {differ} from the {len(rows) - n:,} before: "
        message += f"AUC {validation.auc:.2f} (0.5: no difference)."
        return {"said": message, "auc": validation.auc, "telling": telling}


def _figure(caption: str, svg: str) -> dict[str, str]:
    return {"caption": caption, "svg": svg}


def _shapes(model: Any) -> list[dict[str, Any]]:
    """The evidence of every column, for each class."""
    groups = shapes_by_class(model, SHAPE_CLASSES)
    return [
        {
            "class": label,
            "charts": [_figure(f"{s.feature}: {charts.importance(s)}", charts.shape(s)) for s in shapes[:SHAPES]],
        }
        for label, shapes in groups
    ]


def _right(validation: CrossValidation) -> dict[str, float]:
    """The share that is right, with its standard error over folds, as every command has them."""
    return {"accuracy": float(validation.accuracy.value), "error": float(validation.accuracy.error or 0.0)}


def _figures(validation: CrossValidation) -> dict[str, Any]:
    figures = {
        "what": validation.what,
        "rows": len(validation.truth),
        "log_loss": float(validation.log_loss),
    }
    confusion = [[round(x, 6) for x in row] for row in np.asarray(validation.confusion, dtype=np.float64).tolist()]
    return figures | {"classes": list(validation.classes), "confusion": confusion}


def _informative(model: Any) -> list[dict[str, Any]]:
    if model.schema.labels is not None:
        most = np.argsort(-model.n_rows, kind="stable")[:SHOWN].tolist()
        informative_labels = [(model.labels[k], model.informative(model.labels[k], 8)) for k in most]
        class_ratios = [
            (label, informative.words, informative.ratios[label]) for label, informative in informative_labels
        ]
    elif len(model.classes) > 1:
        all_informative = model.informative(8)
        class_ratios = [
            (label, all_informative.words, ratios) for label, ratios in list(all_informative.ratios.items())[:SHOWN]
        ]
    else:
        class_ratios = []
    return [
        {"class": name, "ratios": [_ratio(r, words) for r in sorted(ratios, key=lambda r: -r.ratio)]}
        for name, words, ratios in class_ratios
    ]


def _ratio(ratio: LikelihoodRatio, words: frozenset[str]) -> dict[str, Any]:
    value = ratio.value if isinstance(ratio.value, (str, int, float, bool)) else printable(ratio.value)
    return {
        "feature": ratio.feature,
        "word": ratio.feature in words,
        "value": value,
        "shown": format_ratio(ratio.ratio),
    }
