"""Wrong labels: rows whose label all other rows speak against.

Every row is left out and asked for its class; the answers are calibrated; and a row whose label is far less probable than
another is suspicious. Classes overlap, so most rows that are answered wrongly have the right label. How many labels are wrong
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
from banbury.notebooks import Tabular, columns_of
from banbury.quality.calibration import calibrate
from banbury.quality.cross_validation import recipe_from, settle_settings
from banbury.quality.leave_one_out import can_leave_one_out, leave_each_out
from banbury.quality.recipes import LogScores, Plain, Recipe, SplitModels
from banbury.quality.validation import default_folds
from banbury.rows.labelled import MemoryRows, load_rows
from banbury.rows.scoring import PendingWarnings
from banbury.tally.schema import Features, Missing, Schema
from banbury.tally.table import content_hashes
from banbury.tally.tally import Label

By = Literal["margin", "self_confidence"]
BYS = ("margin", "self_confidence")
ALPHA = 0.1  # a rare word must be able to say that a label is wrong
LEAST = 1e-300  # a probability below this has the odds of this
DECIMALS = 8  # of a log posterior: what the order of sums may change is beyond them
FARTHEST = -1e200  # nats: a class farther behind is as far behind as this, so that no sum overflows
SAME = 1e-9  # probabilities that differ by less are the same, whatever the order of rows
TELLING = 3  # pieces of evidence that are shown of each row
SHOWN = 10  # pairs of classes that are shown
# The share of the rows answered with a class that show how many of its labels are wrong. Of 7,000 rows of Adult with 0, 141 and
# 683 labels changed, a fifth gives 10, 155 and 684; half gives 198, 370 and 924, and confident learning 371, 697 and 1,224.
SUREST = 0.2
FEWEST_SUREST = 30


def suspicious(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    n: int = 10,
    by: By = "margin",
    alpha: float = ALPHA,
    weigh: bool | Mapping[str, Any] = False,
    features: Features = "auto",
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
    >>> found = bb.suspicious([*texts, "cheap pills and watches"], target=["spam"] * 3 + ["ham"] * 4, n=1)
    >>> row = found.rows[0]
    >>> row.row, row.given, row.suggested
    (6, 'ham', 'spam')
    """
    settings: dict[str, Any] = {"how": "mean", "alpha": alpha, "class_prior": None, "features": features}
    settings |= {"schema": schema, "missing": missing, "weigh": weigh, "calibrate": None}
    data, target, settings = settle_settings(data, target, y, settings)
    if settings["weigh"] is not False:
        settings["alpha"] = 1.0  # which weighed evidence does not use
    counting = {name: settings[name] for name in ("schema", "features")}
    counting |= {"weights": weights, "missing": settings["missing"] or "skip", "threads": threads}
    rows = load_rows(data, target, groups=groups, takes_sets=False, **counting, **reading)
    return find_suspicious(rows, recipe_from(settings, 0), n, by)


def find_suspicious(
    rows: MemoryRows, recipe: Recipe, n: int = 10, by: By = "margin", n_folds: int | None = None
) -> Suspicious:
    """Finds the rows whose labels look most wrong to models that a recipe learns from the other rows.

    ``n_folds`` is the number of folds over which the recipe was chosen, if it was.
    """
    errors.check_whole("n", n, 1)
    if by not in BYS:
        raise errors.unknown_choice("by", by, BYS)
    rows = recipe.under(rows)
    if len(rows.classes) < 2:
        expected = "at least two classes"
        raise errors.bad_setting("the classes", f"one, {rows.classes[0]!r}", expected)
    if isinstance(recipe, Plain) and rows.groups is None and can_leave_one_out(rows, recipe.choice):
        model = recipe.learn(rows)
        left_out = leave_each_out(rows, model)
        answers = Answers(left_out.tested, left_out.scores, "leaving out one row at a time", model, left_out.notes)
    else:
        answers = _leave_out_folds(rows, recipe, n_folds)
    return _rank_rows(rows, answers, int(n), by)


# What the other rows say ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Answers:
    """Log posteriors of rows from models that have not seen them, and those models: one of all rows, or one per fold."""

    tested: Int
    scores: Real
    told_by: str
    model_of_all: Model | None = None
    notes: tuple[str, ...] = ()
    folds: NDArray[np.int32] | None = None  # of all rows
    models: SplitModels | None = None

    def fold_of(self, row: SuspiciousRow) -> int:
        """The fold that was left out to score a row; 0 where only the row was."""
        return 0 if self.folds is None else int(self.folds[row.row])

    def explain(self, rows: MemoryRows, row: SuspiciousRow) -> Explanation:
        """Explains why the row is in one class or the other. The effect of a calibration has a line of its own."""
        (batch,) = rows.take(np.array([row.row]))
        if self.model_of_all is not None:
            weight = 1.0 if rows.weights is None else float(rows.weights[row.row])
            model = self.model_of_all.without(batch, row.given, weight)
            held_out = True
        else:
            assert self.models is not None
            model = self.models[self.fold_of(row)]
            held_out = False
        explanation = model.between(row.given, row.suggested).explain(batch)
        sides = [row.probability, row.self_confidence]
        odds = float(np.diff(np.log(np.maximum(sides, LEAST)))[0]) * (
            -1.0 if explanation.winner == row.suggested else 1.0
        )
        explanation = explanation.rescale(1.0, odds - explanation.log_odds)
        first, second = sides if explanation.winner == row.suggested else sides[::-1]
        target = rows.schema.target
        label = quote_class(row.given, target)
        fold = f"this row is labelled {label}; its fold was left out here so as not to bias the explanation"
        remarks = (is_left_out(row.given, target) if held_out else fold,)
        return replace(explanation, probability=first, probability_against=second, held_out=held_out, remarks=remarks)


def _leave_out_folds(rows: MemoryRows, recipe: Recipe, n_folds: int | None) -> Answers:
    """What models of the other folds say of each row."""
    folds = _deal_folds(rows, default_folds(rows.n_labelled, [recipe], n_folds))
    (splits,) = replace(rows, fold=folds, groups=None).deal(None, 0)
    left_out = LogScores.of(rows, splits, recipe, PendingWarnings())
    scores = left_out.scores
    scores = np.where(scores > -np.inf, np.maximum(scores, np.log(LEAST)), scores)
    told_by = f"{_of_folds(rows, folds)}, by {recipe.describe_under(rows.schema)}"
    models = SplitModels(rows, splits, recipe, left_out.models)
    return Answers(left_out.rows, scores, told_by, folds=folds, models=models)


def _of_folds(rows: MemoryRows, folds: NDArray[np.int32]) -> str:
    together = "" if rows.groups is None else " of whole groups"
    return f"leaving out one of {many(int(folds.max()) + 1, 'fold')}{together} at a time"


def _deal_folds(rows: MemoryRows, n_folds: int) -> NDArray[np.int32]:
    """A fold for every row that was counted, by what it holds or by its group: those that are alike are in one."""
    counted = rows.labels >= 0 if rows.weights is None else (rows.labels >= 0) & (rows.weights > 0)
    if rows.groups is None:
        names: Any = np.concatenate([content_hashes(batch, rows.schema.columns) for batch in rows.batches])
    else:
        names = np.asarray(rows.groups)
        if len(names) != rows.n_rows:
            raise errors.length_mismatch("groups", len(names), rows.n_rows)
    different, place = np.unique(names[counted], return_inverse=True)
    if len(different) < 2:
        what = "the rows" if rows.groups is None else "the groups"
        raise errors.bad_setting(what, "all alike", "at least two different groups")
    folds = np.full(rows.n_rows, -1, dtype=np.int32)
    folds[counted] = place.reshape(-1) % min(n_folds, len(different))
    return folds


# Which labels are wrong ----------------------------------------------------------------------------------------------


def _rank_rows(rows: MemoryRows, answers: Answers, n: int, by: By) -> Suspicious:
    """The most suspicious of the rows that others of their class speak for."""
    truth = rows.labels[answers.tested]
    every = np.arange(len(answers.tested))
    is_known = answers.scores > -np.inf  # what the other rows know of: not the class of which the row was the last
    comparable = is_known[every, truth] & (np.count_nonzero(is_known, axis=1) > 1)
    weighs = np.ones(len(truth), dtype=np.bool_) if rows.weights is None else rows.weights[answers.tested] > 0
    kept = np.flatnonzero(comparable & weighs)
    if not len(kept):
        text = "no class has two rows to compare, so wrong labels cannot be found."
        raise errors.BadSetting(f"{text} Add more rows.")
    tested = answers.tested[kept]
    scores = answers.scores[kept]
    truth = truth[kept]
    weights = None if rows.weights is None else rows.weights[tested]
    behind = scores - scores.max(axis=1, keepdims=True)
    scores = np.where(is_known[kept], np.round(np.maximum(behind, FARTHEST), DECIMALS), -np.inf)
    posteriors = calibrate("isotonic", scores, truth, weights).apply(scores)
    noise = estimate_wrong(posteriors, truth, weights)
    at = np.arange(len(kept))
    of_label = posteriors[at, truth]
    raw = scores[at, truth]
    without_label = posteriors.copy()
    raw_without_label = scores.copy()
    without_label[~is_known[kept]] = -1.0
    without_label[at, truth], raw_without_label[at, truth] = -1.0, -np.inf
    suggested = without_label.argmax(axis=1)
    margin = of_label - without_label[at, suggested]
    order = _order(
        rows, tested, of_label if by == "self_confidence" else margin, raw - raw_without_label.max(axis=1), n
    )
    columns = tested, truth, suggested, of_label, without_label[at, suggested]
    columns_in_order = tuple(column[order] for column in columns)
    alone = int(np.count_nonzero(~comparable & weighs))
    size = float(len(kept)) if weights is None else float(weights.sum())
    counts = noise, size, rows.skipped, alone
    return Suspicious(columns_in_order, rows.classes, *counts, by, answers.told_by, rows, answers)


def estimate_wrong(posteriors: Real, truth: NDArray[np.int32], weights: Real | None = None) -> Real:
    """Estimates how many rows of each label (down) really belong to each other class (across).

    Among the rows predicted as a class, those that the model is surest of show how often such a row has another label:
    where classes do not overlap, only a wrong label differs from the prediction. The same rate is assumed for all rows
    predicted as that class.
    """
    n_classes = posteriors.shape[1]
    row_weights = np.ones(len(truth)) if weights is None else weights
    answers = posteriors.argmax(axis=1)
    wrong = np.zeros((n_classes, n_classes))
    for answer in np.unique(answers):
        rows = np.flatnonzero(answers == answer)
        rows = rows[np.argsort(-posteriors[rows, answer], kind="stable")]
        n_surest = max(int(SUREST * len(rows)), min(FEWEST_SUREST, len(rows)))
        surest = rows[posteriors[rows, answer] >= posteriors[rows[n_surest - 1], answer] - SAME]
        labels = np.bincount(truth[surest], row_weights[surest], n_classes)
        wrong[:, answer] = labels / labels.sum() * row_weights[rows].sum()
    np.fill_diagonal(wrong, 0.0)
    return wrong


def _order(rows: MemoryRows, tested: Int, measure: Real, raw: Real, n: int) -> Int:
    """The first rows by a measure, then by what was said before calibration, then by what they hold."""
    measure = np.round(measure, 9)
    raw = np.round(raw, 6)
    most = np.partition(measure, n - 1)[n - 1] if n < len(measure) else np.inf
    first = np.flatnonzero(measure <= most)
    order = first[np.lexsort((raw[first], measure[first]))]
    if n < len(order):
        last = order[n - 1]
        order = order[(measure[order] != measure[last]) | (raw[order] <= raw[last])]
    near = order[:-1]
    far = order[1:]
    alike = np.concatenate([[False], (measure[near] == measure[far]) & (raw[near] == raw[far])])
    tied = np.sort(order[alike | np.append(alike[1:], False)])
    hashes = np.zeros(len(measure), dtype=np.uint64)
    if len(tied):
        hashes[tied] = np.concatenate([content_hashes(part, rows.schema.columns) for part in rows.take(tested[tied])])
    return np.asarray(order[np.lexsort((order, hashes[order], raw[order], measure[order]))][:n])


# What was found ------------------------------------------------------------------------------------------------------


class SuspiciousRow(NamedTuple):
    """Row number ``row`` of the data, counting from 0, with its label, the most probable other class, and the
    posteriors of both.

    ``file`` is the file that the row was read from, if each row has its own.
    """

    row: int
    given: Label
    suggested: Label
    self_confidence: float
    probability: float  # of the suggested label
    file: str | None = None

    @property
    def margin(self) -> float:
        """The posterior of the label minus that of the suggested class."""
        return self.self_confidence - self.probability

    def to_dict(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        file = {} if self.file is None else {"file": self.file}
        probabilities = {
            "self_confidence": self.self_confidence,
            "probability": self.probability,
            "margin": self.margin,
        }
        labels = {"given": self.given, "suggested": self.suggested}
        return {"row": self.row, **file, **labels, **probabilities}


class Listed(Tabular):
    """Rows to ask people about: a heading, a line of six cells for each row, and notes."""

    HEAD: ClassVar[tuple[str, ...]]
    rows: Any
    head: Any
    feet: Any
    lines: Any

    def __str__(self) -> str:
        cells = [self.HEAD, *self.lines()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        sides = str.rjust, str.ljust, str.rjust, str.ljust, str.rjust, str.ljust
        padded = ([side(c, w) for side, c, w in zip(sides, line, widths, strict=True)] for line in cells)
        rows = [f"  {'  '.join(line)}".rstrip() for line in padded]
        return "\n".join([self.head, *rows, *(f"  {line}" for line in self.feet)])

    __repr__ = __str__

    def _frame_columns(self) -> dict[str, list[Any]]:
        """A row for each row of the list."""
        return columns_of(row.to_dict() for row in self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class Suspicious(Listed):
    """The rows whose labels look wrong, worst first. ``bb.suspicious`` returns it.

    ``noise`` estimates how many rows of each label (down) really belong to each other class (across). ``n_rows`` rows
    were compared, ``skipped`` have no label, and ``alone`` are the only rows of their class, so that they cannot be
    compared.
    """

    _found: tuple[NDArray[Any], ...]  # what each row has, in columns
    classes: tuple[Label, ...]
    noise: Real
    n_rows: float
    skipped: int
    alone: int
    by: By
    told_by: str
    _data: MemoryRows
    _answers: Answers

    @cached_property
    def rows(self) -> tuple[SuspiciousRow, ...]:
        """The rows, worst first."""
        data = self._data
        classes = self.classes
        named = any(batch.row_names is not None for batch in data.batches)
        return tuple(
            SuspiciousRow(row, classes[label], classes[other], p, q, data.row_name(row) if named else None)
            for row, label, other, p, q in zip(*(column.tolist() for column in self._found), strict=True)
        )

    @property
    def indices(self) -> Int:
        """The numbers of the rows."""
        return self._found[0].astype(np.int64)

    @property
    def wrong(self) -> float:
        """The estimated number of wrong labels."""
        return float(self.noise.sum())

    @property
    def pairs(self) -> list[tuple[Label, Label, float]]:
        """Pairs of a label and the class that its rows seem to have, with the estimated number of rows, largest first."""
        cells = np.argwhere(self.noise > 0).tolist()
        pairs = [(self.classes[g], self.classes[c], float(self.noise[g, c])) for g, c in cells]
        return sorted(pairs, key=lambda pair: -pair[2])

    @cached_property
    def explanations(self) -> tuple[Explanation, ...]:
        """Why each row is suspicious: the evidence between its label and the suggested one, without the row itself."""
        by_fold = sorted(range(len(self.rows)), key=lambda k: self._answers.fold_of(self.rows[k]))
        explanations = {k: self.explain(k) for k in by_fold}
        return tuple(explanations[k] for k in range(len(self.rows)))

    def explain(self, k: int) -> Explanation:
        """Explains why the row in place ``k``, counting from 0, is suspicious."""
        errors.check_whole("k", k, 0, len(self.rows) - 1)
        return self._answers.explain(self._data, self.rows[k])

    def to_dict(self, explanations: bool = True) -> dict[str, Any]:
        """Returns everything for JSON; with ``explanations=False``, without the explanation of every row."""
        rows = [row.to_dict() for row in self.rows]
        if explanations:
            rows = [r | {"explanation": why.to_dict()} for r, why in zip(rows, self.explanations, strict=True)]
        numbers = {"compared": self.n_rows, "skipped": self.skipped, "alone": self.alone, "wrong": self.wrong}
        return {
            "rows": rows,
            **numbers,
            "by": self.by,
            "told_by": self.told_by,
            "classes": list(self.classes),
            "pairs": [{"label": label, "really": other, "rows": rows} for label, other, rows in self.pairs],
            "notes": self.notes,
        }

    @property
    def notes(self) -> list[str]:
        """Notes, one sentence each."""
        notes = [f"{many(self.skipped, 'row')} without a label skipped"] * bool(self.skipped)
        if self.alone:
            notes.append(
                f"{many(self.alone, 'row')} not judged, because no other row has the same label, or none has a different one"
            )
        notes += self._answers.notes
        return notes

    def lines(self, first: int = 0) -> list[list[str]]:
        """Returns the cells of a line for each row: its number, both labels with their posteriors, and the strongest
        evidence.

        Row numbers start at ``first``.
        """
        lines = []
        for row, why in zip(self.rows, self.explanations, strict=True):
            side = 1.0 if why.winner == row.suggested else -1.0
            speaks = [e for e in why.evidence if side * e.decibans > 0][:TELLING]
            evidence = ", ".join(
                errors.shortened(_evidence_in_words(e, len(self._data.schema.features) == 1), 30) for e in speaks
            )
            where = f"{row.row + first:,}" if row.file is None else row.file
            labels = [errors.shortened(self._quote(label)) for label in (row.given, row.suggested)]
            lines.append(
                [where, labels[0], percent(row.self_confidence), labels[1], percent(row.probability), evidence]
            )
        return lines

    HEAD: ClassVar = ("row", "label", "", "suggested", "", "because of")

    @property
    def head(self) -> str:
        """The estimated number of wrong labels."""
        n_wrong = round(self.wrong)
        how_many = f"About {n_wrong:,} of" if n_wrong else "Few or none of"
        verb = "seems" if n_wrong == 1 else "seem"
        return f"{how_many} {self.n_rows:,.6g} labels {verb} wrong, by {self.told_by}"

    @property
    def feet(self) -> list[str]:
        """A line for each pair of classes that seem to be confused, and the notes."""
        pairs = [(round(n), label, other) for label, other, n in self.pairs if round(n)]
        lines = [
            f"about {n:,} labelled {self._quote(label)} {'looks' if n == 1 else 'look'} like {self._quote(other)}"
            for n, label, other in pairs
        ]
        more = [f"and {len(lines) - SHOWN:,} more pairs of classes"] if len(lines) > SHOWN else []
        return [*lines[:SHOWN], *more, *self.notes]

    def _quote(self, label: Label) -> str:
        return quote_class(label, self._data.schema.target)


def _evidence_in_words(evidence: Evidence, alone: bool) -> str:
    if evidence.value is None:
        return f"{evidence.feature} missing"
    return printable(evidence.value) if alone else f"{evidence.feature} = {printable(evidence.value)}"
