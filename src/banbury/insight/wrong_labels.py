"""Wrong labels: rows whose label contradicts all other rows.

Every row is scored by models that have not seen it, and the scores are calibrated. A row whose label is far less probable than
another is suspicious. Classes overlap, so most rows that are predicted wrongly have the right label. How many labels are wrong
is therefore estimated where the classes do not overlap: among the rows of which the model is surest. T. Liu and D. Tao call
them anchor points, *Classification with noisy labels by importance reweighting* (2016); C. Northcutt, L. Jiang and I. Chuang
choose them by thresholds, *Confident learning: estimating uncertainty in dataset labels* (2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.errors import many
from banbury.model.explain import Explanation
from banbury.model.explain.explanation import Evidence, is_left_out
from banbury.model.explain.page import percent, printable, quote_class
from banbury.model.naive_bayes import Model
from banbury.notebooks import Tabular, align_columns, columns_of
from banbury.quality.calibration import calibrate
from banbury.quality.cross_validation import recipe_from, settle_settings
from banbury.quality.leave_one_out import can_leave_one_out, leave_each_out
from banbury.quality.recipes import LogScores, Plain, Recipe, SplitModels
from banbury.quality.validation import default_folds
from banbury.rows.labelled import MemoryRows, load_rows
from banbury.rows.scoring import PendingWarnings
from banbury.tally.schema import FamilyOption, Missing, Schema
from banbury.tally.table import content_hashes
from banbury.tally.tally import Label

By = Literal["margin", "self_confidence"]
RANKINGS = ("margin", "self_confidence")
ALPHA = 0.1  # a rare word must be able to say that a label is wrong
LEAST_PROBABILITY = 1e-300  # lower probabilities count as this one
DECIMALS = 8  # log posteriors are rounded, so that the order of sums does not matter
LEAST_SCORE = -1e200  # nats; a class farther behind the best counts as this far, so that no sum overflows
SAME_PROBABILITY = 1e-9  # probabilities that differ by less count as equal, so that the order of rows does not matter
MOST_REASONS = 3  # pieces of evidence that are shown for each row
MOST_PAIRS = 10  # pairs of classes that are shown
# The share of the rows answered with a class that show how many of its labels are wrong. Of 7,000 rows of Adult with 0, 141 and
# 683 labels changed, a fifth gives 10, 155 and 684; half gives 198, 370 and 924, and confident learning 371, 697 and 1,224.
SUREST_SHARE = 0.2
FEWEST_SUREST = 30  # rows, if there are so many


def suspicious(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    n: int = 10,
    by: By = "margin",
    alpha: float = ALPHA,
    weigh: bool | Mapping[str, Any] = False,
    features: FamilyOption = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    groups: Any = None,
    missing: Missing | None = None,
    threads: int | None = None,
    **reading: Any,
) -> Suspicious:
    """Finds the ``n`` rows whose labels look most wrong, with the label that the other rows suggest and the reason.

    Every row is scored by the model of all other rows, and posteriors are calibrated on these scores. Models without a
    closed formula for leaving one row out, such as complement naive Bayes on texts, leave out ten folds in turn
    instead. ``wrong`` estimates how many labels are wrong, and ``pairs`` which. An estimator of Banbury can be passed
    first, as in ``bb.suspicious(clf, X, y)``; its parameters then replace the settings.

    With ``groups`` (a column, or one group per row), a row is scored by the model of the rows of other groups, over ten
    folds. With ``weigh``, the evidence is weighed as ``bb.EvidenceClassifier`` does, over ten folds, or three from
    2,000 rows on. The content of a row alone decides its fold. ``by`` ranks rows by "margin" (how far the label falls
    behind another one) or "self_confidence" (how improbable the label is); ties are ranked by the margin before
    calibration. Rows without a label are skipped. All other options are those of ``bb.count``.

    >>> import banbury as bb
    >>> texts = ["cheap pills now", "cheap watches now", "pills and watches", "lunch at noon", "see you at lunch", "noon is fine"]
    >>> labels = ["spam"] * 3 + ["ham"] * 4
    >>> [row] = bb.suspicious([*texts, "cheap pills and watches"], target=labels, n=1).rows
    >>> row.row, row.label, row.suggested
    (6, 'ham', 'spam')
    """
    settings: dict[str, Any] = {"how": "mean", "alpha": alpha, "class_prior": None, "features": features}
    settings |= {"schema": schema, "missing": missing, "weigh": weigh, "calibrate": None}
    data, target, settings = settle_settings(data, target, y, settings)
    if settings["weigh"] is not False:
        settings["alpha"] = 1.0  # which weighed evidence does not use
    counting_settings = {name: settings[name] for name in ("schema", "features")}
    counting_settings |= {"weights": weights, "missing": settings["missing"] or "skip", "threads": threads}
    rows = load_rows(data, target, groups=groups, takes_sets=False, **counting_settings, **reading)
    return find_suspicious(rows, recipe_from(settings, seed=0), n, by)


def find_suspicious(
    rows: MemoryRows, recipe: Recipe, n: int = 10, by: By = "margin", n_folds: int | None = None
) -> Suspicious:
    """Returns the rows whose labels look most wrong to models that a recipe learns from the other rows.

    Args:
        rows: The labelled rows.
        recipe: How a model is learned from rows.
        n: How many rows to list.
        by: What rows are ranked by: "margin" (how far the label falls behind another one) or "self_confidence" (how
            improbable it is).
        n_folds: The number of folds over which the recipe was chosen, if it was.
    """
    errors.check_whole("n", n, 1)
    if by not in RANKINGS:
        raise errors.unknown_choice("by", by, RANKINGS)
    rows = recipe.under(rows)
    if len(rows.classes) < 2:
        expected = "at least two classes"
        raise errors.bad_setting("the classes", f"one, {rows.classes[0]!r}", expected)
    if isinstance(recipe, Plain) and rows.groups is None and can_leave_one_out(rows, recipe.choice):
        model = recipe.learn(rows)
        left_out = leave_each_out(rows, model)
        answers = Answers(left_out.row_numbers, left_out.scores, "leaving out one row at a time", model, left_out.notes)
    else:
        answers = _leave_out_folds(rows, recipe, n_folds)
    return _rank_rows(rows, answers, int(n), by)


# Scores from the other rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Answers:
    """What models that have not seen a row say about it: its log posteriors. There is one model of all rows, from which
    the row is taken out, or one model per fold.

    ``method`` describes for users how rows were left out.
    """

    row_numbers: Int  # of the tested rows
    scores: Real  # log posteriors (tested rows, classes)
    method: str
    model_of_all: Model | None = None  # None if folds were left out
    notes: tuple[str, ...] = ()
    folds: NDArray[np.int32] | None = None  # the fold of each of all rows; None if one row was left out at a time
    models: SplitModels | None = None  # by fold: the model of all other folds

    def fold_of(self, row: SuspiciousRow) -> int:
        """Returns the number of the fold that was left out to score a row; 0 if only the row itself was left out."""
        return 0 if self.folds is None else int(self.folds[row.row])

    def explain(self, rows: MemoryRows, row: SuspiciousRow) -> Explanation:
        """Returns why a row is in its label's class rather than the suggested one, or the reverse, by a model that has
        not seen it: ``model_of_all`` without the row, or that of its fold. The effect of a calibration has a line of
        its own. ``rows`` are all rows of the data.
        """
        (batch,) = rows.take(np.array([row.row]))  # this row alone
        if self.model_of_all is not None:
            weight = 1.0 if rows.weights is None else float(rows.weights[row.row])
            model = self.model_of_all._leave_row_out(batch, row.label, weight)
            held_out = True
        else:
            assert self.models is not None
            model = self.models[self.fold_of(row)]
            held_out = False
        explanation = model.between(row.label, row.suggested).explain(batch)
        probabilities = [row.probability, row.self_confidence]
        if explanation.winner != row.suggested:
            probabilities.reverse()
        # Of the class that the explanation argues for, and of the other.
        log_winner, log_loser = np.log(np.maximum(probabilities, LEAST_PROBABILITY)).tolist()
        explanation = explanation.rescale(slope=1.0, shift=log_winner - log_loser - explanation.log_odds)
        target = rows.schema.target
        label = quote_class(row.label, target)
        fold_remark = f"this row is labelled {label}; its fold was left out here so as not to bias the explanation"
        remarks = (is_left_out(row.label, target) if held_out else fold_remark,)
        return replace(
            explanation,
            probability=probabilities[0],
            probability_against=probabilities[1],
            held_out=held_out,
            remarks=remarks,
        )


def _leave_out_folds(rows: MemoryRows, recipe: Recipe, n_folds: int | None) -> Answers:
    """Returns the scores of each row by a model of the other folds. ``n_folds`` is the number of folds over which the
    recipe was chosen, if it was.
    """
    folds = _deal_folds(rows, default_folds(rows.n_labelled, [recipe], n_folds))
    # The one way to divide the rows into these folds, and the scores of each row by the model of the other folds.
    (fold_set,) = replace(rows, fold=folds, groups=None).fold_sets(folds=None, seed=0)
    log_scores = LogScores.of(rows, fold_set, recipe, PendingWarnings())
    scores = log_scores.scores  # log posteriors (tested rows × classes)
    log_posteriors = np.where(scores > -np.inf, np.maximum(scores, np.log(LEAST_PROBABILITY)), scores)
    whole_groups = "" if rows.groups is None else " of whole groups"
    method = f"leaving out one of {many(int(folds.max()) + 1, 'fold')}{whole_groups} at a time"
    method += f", by {recipe.describe_under(rows.schema)}"
    models = SplitModels(rows, fold_set, recipe, log_scores.models)
    return Answers(log_scores.rows, log_posteriors, method, folds=folds, models=models)


def _deal_folds(rows: MemoryRows, n_folds: int) -> NDArray[np.int32]:
    """Returns the number of the fold of each row, one of ``n_folds`` for every row that was counted: rows with the same
    content, or of the same group, share one. Other rows have −1. Raises an error if all rows would share one.
    """
    is_counted = rows.labels >= 0 if rows.weights is None else (rows.labels >= 0) & (rows.weights > 0)
    # Rows with the same key, which is a hash of their content or their group, share a fold.
    if rows.groups is None:
        row_keys: Any = np.concatenate([content_hashes(batch, rows.schema.columns) for batch in rows.batches])
    else:
        row_keys = np.asarray(rows.groups)
        if len(row_keys) != rows.n_rows:
            raise errors.length_mismatch("groups", len(row_keys), rows.n_rows)
    distinct_keys, key_numbers = np.unique(row_keys[is_counted], return_inverse=True)
    if len(distinct_keys) < 2:
        subject = "the rows" if rows.groups is None else "the groups"
        raise errors.bad_setting(subject, "all alike", "at least two different groups")
    folds = np.full(rows.n_rows, -1, dtype=np.int32)
    folds[is_counted] = key_numbers.reshape(-1) % min(n_folds, len(distinct_keys))
    return folds


# Which labels are wrong ----------------------------------------------------------------------------------------------


def _rank_rows(rows: MemoryRows, answers: Answers, n: int, by: By) -> Suspicious:
    """Returns the ``n`` most suspicious rows, and estimates of how many labels are wrong. A row is compared if its
    class has other rows, and it has a weight.

    ``answers`` has the log posteriors of rows by models that have not seen them. ``by`` says what rows are ranked by:
    "margin" (how far the label falls behind another one) or "self_confidence" (how improbable it is).
    """
    tested_labels = rows.labels[answers.row_numbers]  # class numbers
    is_known = answers.scores > -np.inf  # rows × classes; a class is unknown if the row was the last of it
    knows_label = is_known[np.arange(len(tested_labels)), tested_labels]
    is_comparable = knows_label & (np.count_nonzero(is_known, axis=1) > 1)
    has_weight = np.ones(len(tested_labels), dtype=np.bool_)
    if rows.weights is not None:
        has_weight = rows.weights[answers.row_numbers] > 0
    compared = np.flatnonzero(is_comparable & has_weight)  # positions among the tested rows
    if not len(compared):
        text = "no class has two rows to compare, so wrong labels cannot be found."
        raise errors.BadSetting(f"{text} Add more rows.")
    row_numbers = answers.row_numbers[compared]  # this and everything below is about the compared rows
    labels = tested_labels[compared]
    is_known = is_known[compared]
    weights = None if rows.weights is None else rows.weights[row_numbers]
    scores = answers.scores[compared]
    behind_best = np.maximum(scores - scores.max(axis=1, keepdims=True), LEAST_SCORE)
    scores = np.where(is_known, np.round(behind_best, DECIMALS), -np.inf)  # rows × classes, as ``posteriors``
    posteriors = calibrate("isotonic", scores, labels, weights).apply(scores)
    label_cells = np.arange(len(compared)), labels  # the cell of each row's label in tables of rows × classes
    other_posteriors = np.where(is_known, posteriors, -1.0)  # rows × classes, without the label of each row
    other_posteriors[label_cells] = -1.0
    other_scores = scores.copy()  # likewise
    other_scores[label_cells] = -np.inf
    suggested = other_posteriors.argmax(axis=1)  # the number of the most probable other class of each row
    suggested_posteriors = other_posteriors.max(axis=1)
    label_posteriors = posteriors[label_cells]
    ranked_by = label_posteriors if by == "self_confidence" else label_posteriors - suggested_posteriors
    label_behind = scores[label_cells] - other_scores.max(axis=1)  # of each row, before calibration
    order = _order_rows(rows, row_numbers, ranked_by, label_behind, n)  # positions among the compared rows
    suspicious_rows = [
        SuspiciousRow(
            row=int(row_numbers[position]),
            label=rows.classes[labels[position]],
            suggested=rows.classes[suggested[position]],
            self_confidence=float(label_posteriors[position]),
            probability=float(suggested_posteriors[position]),
            file=rows.row_name(int(row_numbers[position])),
        )
        for position in order.tolist()
    ]
    return Suspicious(
        tuple(suspicious_rows),
        rows.classes,
        noise=estimate_wrong(posteriors, labels, weights),
        n_rows=float(len(compared)) if weights is None else float(weights.sum()),
        skipped=rows.skipped,
        not_compared=int(np.count_nonzero(~is_comparable & has_weight)),
        by=by,
        method=answers.method,
        _data=rows,
        _answers=answers,
    )


def estimate_wrong(posteriors: Real, truth: NDArray[np.int32], weights: Real | None = None) -> Real:
    """Returns an estimate of how many rows of each label (down) really belong to each other class (across), as an array
    (classes × classes), from their calibrated posteriors (rows × classes), their labels ``truth`` (class numbers), and
    their weights.

    Among the rows predicted as a class, those that the model is surest of show how often such a row has another label:
    where classes do not overlap, only a wrong label differs from the prediction. The same rate is assumed for all rows
    predicted as that class.
    """
    n_classes = posteriors.shape[1]
    row_weights = np.ones(len(truth)) if weights is None else weights
    predicted_classes = posteriors.argmax(axis=1)
    wrong_labels = np.zeros((n_classes, n_classes))  # by label and by predicted class
    for predicted_class in np.unique(predicted_classes):
        predicted_rows = np.flatnonzero(predicted_classes == predicted_class)
        # Row numbers, those first of which the model is surest.
        rows_by_certainty = predicted_rows[np.argsort(-posteriors[predicted_rows, predicted_class], kind="stable")]
        n_surest = max(int(SUREST_SHARE * len(rows_by_certainty)), min(FEWEST_SUREST, len(rows_by_certainty)))
        surest_rows = rows_by_certainty[
            posteriors[rows_by_certainty, predicted_class]
            >= posteriors[rows_by_certainty[n_surest - 1], predicted_class] - SAME_PROBABILITY
        ]
        weight_by_label = np.bincount(truth[surest_rows], row_weights[surest_rows], n_classes)  # of the surest rows
        wrong_labels[:, predicted_class] = (
            weight_by_label / weight_by_label.sum() * row_weights[rows_by_certainty].sum()
        )
    np.fill_diagonal(wrong_labels, 0.0)
    return wrong_labels


def _order_rows(rows: MemoryRows, row_numbers: Int, ranked_by: Real, label_behind: Real, n: int) -> Int:
    """Returns the positions of the first ``n`` rows among the compared ones, in the order in which they are listed.

    Args:
        rows: The data.
        row_numbers: The numbers of the compared rows in the data.
        ranked_by: One number per compared row, by which they are sorted, lowest first.
        label_behind: The score of the label minus that of the best other class, before calibration. It decides ties,
            lowest first, and then the content of rows does.
        n: How many rows are wanted.
    """
    ranked_by = np.round(ranked_by, decimals=9)
    label_behind = np.round(label_behind, decimals=6)
    last_listed = np.lexsort((label_behind, ranked_by))[:n][-1]  # the position of the last row, but for ties
    ties_with_last = ranked_by == ranked_by[last_listed]
    candidates = np.flatnonzero(  # positions of the rows that may be listed
        (ranked_by < ranked_by[last_listed]) | (ties_with_last & (label_behind <= label_behind[last_listed]))
    )
    batches = rows.take(row_numbers[candidates])
    hashes = np.concatenate([content_hashes(batch, rows.schema.columns) for batch in batches])
    order = np.lexsort((hashes, label_behind[candidates], ranked_by[candidates]))
    return np.asarray(candidates[order[:n]])


# What was found ------------------------------------------------------------------------------------------------------


class SuspiciousRow(NamedTuple):
    """Row number ``row`` of the data, counting from 0, with its label, the most probable other class, and the
    posteriors of both.

    ``file`` is the file that the row was read from, if each row has its own.
    """

    row: int
    label: Label  # the label in the data
    suggested: Label  # the most probable other class
    self_confidence: float  # the posterior of the label in the data
    probability: float  # of the suggested label
    file: str | None = None

    @property
    def margin(self) -> float:
        """The posterior of the label minus that of the suggested class."""
        return self.self_confidence - self.probability

    def to_dict(self) -> dict[str, Any]:
        """Returns the row as a dictionary for JSON."""
        file_entry = {} if self.file is None else {"file": self.file}
        probabilities = {
            "self_confidence": self.self_confidence,
            "probability": self.probability,
            "margin": self.margin,
        }
        labels = {"label": self.label, "suggested": self.suggested}
        return {"row": self.row, **file_entry, **labels, **probabilities}


class Listed(Tabular):
    """A list of rows to ask people about, printed as a heading, a line of six cells for each row, and notes.

    Subclasses have the rows, the six column titles (``_header``), the heading (``_first_line``), the cells of each line
    (``_lines``) and the notes (``_last_lines``).
    """

    _header: ClassVar[tuple[str, ...]]
    rows: Any
    _first_line: Any
    _last_lines: Any
    _lines: Any

    def __str__(self) -> str:
        """Returns the list as text with aligned columns."""
        row_lines = align_columns([self._header, *self._lines()], right_aligned=(0, 2, 4))
        return "\n".join([self._first_line, *row_lines, *(f"  {line}" for line in self._last_lines)])

    __repr__ = __str__

    @property
    def indices(self) -> Int:
        """The numbers of the listed rows, in order."""
        return np.array([row.row for row in self.rows], dtype=np.int64)

    def _frame_columns(self) -> dict[str, list[Any]]:
        """Returns the columns of a table with one line for each row of the list: a list of values by name."""
        return columns_of(row.to_dict() for row in self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class Suspicious(Listed):
    """The rows whose labels look wrong, worst first. ``bb.suspicious`` returns it.

    ``noise`` estimates how many rows of each label (down) really belong to each other class (across). ``n_rows`` rows
    were compared, ``skipped`` have no label, and ``not_compared`` are the only rows of their class, so that they cannot be
    compared.
    """

    rows: tuple[SuspiciousRow, ...]
    classes: tuple[Label, ...]
    noise: Real  # (classes, classes)
    n_rows: float
    skipped: int
    not_compared: int
    by: By  # what rows are ranked by
    method: str  # how rows were left out, for users
    _data: MemoryRows  # all rows
    _answers: Answers  # the scores of the rows by models that have not seen them

    @property
    def estimated_wrong(self) -> float:
        """The estimated number of wrong labels: the sum of ``noise``."""
        return float(self.noise.sum())

    @property
    def pairs(self) -> list[tuple[Label, Label, float]]:
        """Pairs of a label and the class that its rows seem to have, with the estimated number of rows, largest first."""
        pairs = [
            (self.classes[label], self.classes[suggested], float(self.noise[label, suggested]))
            for label, suggested in np.argwhere(self.noise > 0).tolist()
        ]
        return sorted(pairs, key=lambda pair: -pair[2])

    @cached_property
    def explanations(self) -> tuple[Explanation, ...]:
        """Why each row is suspicious: the evidence between its label and the suggested one, without the row itself."""
        # Positions in the list, fold by fold, because only the last model learned again is kept.
        sorted_by_fold = sorted(range(len(self.rows)), key=lambda position: self._answers.fold_of(self.rows[position]))
        explanations = {position: self.explain(position) for position in sorted_by_fold}
        return tuple(explanations[position] for position in range(len(self.rows)))

    def explain(self, k: int) -> Explanation:
        """Explains why row number ``k`` of the list, counting from 0, is suspicious."""
        errors.check_whole("k", k, 0, len(self.rows) - 1)
        return self._answers.explain(self._data, self.rows[k])

    def to_dict(self, explanations: bool = True) -> dict[str, Any]:
        """Returns everything as a dictionary for JSON; with ``explanations=False``, without the explanation of every
        row.
        """
        rows = [row.to_dict() for row in self.rows]
        if explanations:
            rows = [
                row | {"explanation": explanation.to_dict()}
                for row, explanation in zip(rows, self.explanations, strict=True)
            ]
        counts = {
            "compared": self.n_rows,
            "skipped": self.skipped,
            "not_compared": self.not_compared,
            "estimated_wrong": self.estimated_wrong,
        }
        return {
            "rows": rows,
            **counts,
            "by": self.by,
            "method": self.method,
            "classes": list(self.classes),
            "pairs": [
                {"label": label, "suggested": suggested, "rows": n_rows} for label, suggested, n_rows in self.pairs
            ],
            "notes": self.notes,
        }

    @property
    def notes(self) -> list[str]:
        """Notes about rows that were skipped or not compared, and about how rows were scored, one sentence each."""
        notes = [f"{many(self.skipped, 'row')} without a label skipped"] * bool(self.skipped)
        if self.not_compared:
            notes.append(
                f"{many(self.not_compared, 'row')} not judged, because no other row has the same label, or none has a "
                "different one"
            )
        notes += self._answers.notes
        return notes

    def _lines(self, first: int = 0) -> list[list[str]]:
        """Returns the cells of a line for each row, as texts: its number, both labels with their posteriors, and the
        strongest evidence.

        The number ``first`` stands for the first row of the data.
        """
        lines = []
        for row, explanation in zip(self.rows, self.explanations, strict=True):
            sign = 1.0 if explanation.winner == row.suggested else -1.0
            strongest_evidence = [evidence for evidence in explanation.evidence if sign * evidence.decibans > 0][
                :MOST_REASONS
            ]
            reasons = ", ".join(
                errors.shortened(_evidence_in_words(evidence, len(self._data.schema.features) == 1), 30)
                for evidence in strongest_evidence
            )
            row_name = f"{row.row + first:,}" if row.file is None else row.file
            quoted_labels = [errors.shortened(self._quote(label)) for label in (row.label, row.suggested)]
            lines.append(
                [
                    row_name,
                    quoted_labels[0],
                    percent(row.self_confidence),
                    quoted_labels[1],
                    percent(row.probability),
                    reasons,
                ]
            )
        return lines

    _header: ClassVar = ("row", "label", "", "suggested", "", "because of")

    @property
    def _first_line(self) -> str:
        """A line of text with the estimated number of wrong labels."""
        n_wrong = round(self.estimated_wrong)
        how_many = f"About {n_wrong:,} of" if n_wrong else "Few or none of"
        verb = "seems" if n_wrong == 1 else "seem"
        return f"{how_many} {self.n_rows:,.6g} labels {verb} wrong, by {self.method}"

    @property
    def _last_lines(self) -> list[str]:
        """A line for each pair of classes that seem to be confused, and the notes."""
        pairs = [(round(n_rows), label, suggested) for label, suggested, n_rows in self.pairs if round(n_rows)]
        lines = [
            f"about {n_rows:,} labelled {self._quote(label)} {'looks' if n_rows == 1 else 'look'} like {self._quote(suggested)}"
            for n_rows, label, suggested in pairs
        ]
        more_line = [f"and {len(lines) - MOST_PAIRS:,} more pairs of classes"] if len(lines) > MOST_PAIRS else []
        return [*lines[:MOST_PAIRS], *more_line, *self.notes]

    def _quote(self, label: Label) -> str:
        """Returns a class name as messages show it."""
        return quote_class(label, self._data.schema.target)


def _evidence_in_words(evidence: Evidence, is_only_feature: bool) -> str:
    """Returns a piece of evidence in words; the feature is named unless it is the only one."""
    if evidence.value is None:
        return f"{evidence.feature} missing"
    return printable(evidence.value) if is_only_feature else f"{evidence.feature} = {printable(evidence.value)}"
