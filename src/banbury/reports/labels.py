"""The report of a model of labels: how good each of several labels per row is, what speaks for it, and where it is missed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.errors import many
from banbury.labels import LabelEvaluation, LabelModel
from banbury.labels.evaluation import evaluate_answers
from banbury.model.explain import Explanation, Informative
from banbury.model.explain import page as evidence
from banbury.model.explain.page import percent
from banbury.notebooks import safe
from banbury.quality.recipes import recipe_of
from banbury.quality.validation import default_folds, validate
from banbury.reports import charts
from banbury.reports import page as pieces
from banbury.rows.labelled import MemoryRows, load_rows

TOLD = 24  # labels whose telling values are shown, those of most rows
LISTED = 300  # labels in the table
AS_IT_IS = "This model was evaluated on rows other than its training rows, or on only some of them."


@dataclass(frozen=True)
class MissedLabel:
    """A row that was not given a label that it has."""

    row: int
    truth: tuple[Any, ...]
    given: tuple[Any, ...]
    label: Any
    probability: float
    explanation: Explanation | None  # None where the model does not know the label

    def to_dict(self) -> dict[str, Any]:
        explanation = None if self.explanation is None else self.explanation.to_dict()
        facts = {"row": self.row, "truth": list(self.truth), "given": list(self.given), "label": self.label}
        return facts | {"probability": self.probability, "explanation": explanation}


@dataclass(frozen=True, eq=False)
class LabelFindings:
    """What a page says of a model of labels and rows."""

    model: LabelModel
    validation: LabelEvaluation
    own_rows: bool  # the model has counted these very rows
    informative: tuple[Informative, ...]
    n_missed: int
    missed: tuple[MissedLabel, ...]
    source: str | None = None

    @property
    def title(self) -> str:
        target = self.model.target
        return " in ".join(part for part in ("Labels" if target is None else str(target), self.source) if part)

    def to_dict(self) -> dict[str, Any]:
        informative = [
            {"label": next(iter(ratios_of_label.ratios)), **ratios_of_label.to_dict()["classes"][0]}
            for ratios_of_label in self.informative
        ]
        facts: dict[str, Any] = {"own_rows": self.own_rows, "evaluation": self.validation.to_dict()}
        return facts | {"informative": informative, "missed": [missed_label.to_dict() for missed_label in self.missed]}


def measure(
    model: LabelModel,
    data: Any,
    target: Any,
    *,
    folds: int | None,
    mistakes: int,
    telling: int,
    seed: int,
    threads: int | None,
    weights: Any,
    reading: dict[str, Any],
) -> LabelFindings:
    """Rows that the model has counted are judged by folds, and others by the model as it is."""
    schema = model.schema
    assert schema.labels is not None
    expected = "the labels of the rows, which were passed separately when they were counted"
    errors.require(target is not None or schema.labels.columns, "target", None, expected)
    if isinstance(target, str) and schema.labels.delimiter is not None:
        reading = {"target_delimiter": schema.labels.delimiter, **reading}
    target = schema.labels if target is None else target
    rows = load_rows(data, target, schema=schema, weights=weights, threads=threads, **reading)
    own_rows = rows.tally == model.tally
    n_rows = rows.n_labelled
    evaluation: Any
    if own_rows and n_rows > 1:
        recipe: Any = replace(recipe_of(model), seed=seed)  # type: ignore[call-arg]
        n_folds = default_folds(n_rows, [recipe], folds or model.choice.n_folds)
        [evaluation] = validate(rows, n_folds, [recipe], seed=seed)
    else:
        evaluation = _judge_as_it_is(model, rows)
    order = np.lexsort((np.arange(len(model.labels)), -model.n_rows))[:TOLD].tolist()
    informative = tuple(model.informative(model.labels[k], telling) for k in order)
    n_lost = int((evaluation.truth & ~evaluation.given).any(axis=1).sum())
    missed = tuple(_describe_miss(model, rows, evaluation, row, k, own_rows) for row, k in _worst(evaluation, mistakes))
    return LabelFindings(model, evaluation, own_rows, informative, n_lost, missed, rows.name)


def _judge_as_it_is(model: LabelModel, rows: MemoryRows) -> LabelEvaluation:
    """The model as it is on rows."""
    assert rows.sets is not None
    labelled_rows = np.flatnonzero(rows.labels >= 0)
    posterior = np.concatenate([model.score(batch, "posterior")[0] for batch in rows.take(labelled_rows)])
    weights = None if rows.weights is None else rows.weights[labelled_rows]
    return evaluate_answers(model, rows.sets.take(labelled_rows), posterior, labelled_rows, weights)


def _worst(evaluation: LabelEvaluation, most: int) -> list[tuple[int, int]]:
    """Rows, and of each the true label of least probability among those that were missed; the least probable first."""
    lost = evaluation.truth & ~evaluation.given
    at = np.flatnonzero(lost.any(axis=1))
    label = np.where(lost[at], evaluation.posterior[at], np.inf).argmin(axis=1)
    order = np.argsort(evaluation.posterior[at, label], kind="stable")[:most]
    return [(int(at[k]), int(label[k])) for k in order.tolist()]


def _describe_miss(
    model: LabelModel, rows: MemoryRows, evaluation: LabelEvaluation, row: int, k: int, own_rows: bool
) -> MissedLabel:
    """Explained by the model as if it had not counted the row."""
    label = evaluation.labels[k]
    number = evaluation.rows[row : row + 1]
    [batch] = rows.take(number)
    if own_rows:
        model = replace(model, tally=model.tally - rows.count_only(number, rows.schema)).weighed(model.weighing)
    is_counted = label in model.tally.classes
    explanation = model.with_thresholds(model.thresholds).explain(batch, label) if is_counted else None
    flags = evaluation.truth[row], evaluation.given[row]
    truth, predicted = (tuple(evaluation.labels[j] for j in np.flatnonzero(has_label).tolist()) for has_label in flags)
    return MissedLabel(int(number[0]), truth, predicted, label, float(evaluation.posterior[row, k]), explanation)


# The page -------------------------------------------------------------------------------------------------------------


def page(findings: LabelFindings, title: str) -> str:
    """The whole file."""
    sections = [
        ("figures", "Label by label", _figures(findings)),
        ("model", "The model", _model(findings)),
        ("telling", "Most informative values", _telling(findings)),
        ("mistakes", "Missed labels", _misses(findings)),
    ]
    return pieces.whole(title, _summary(findings), sections)


def _summary(findings: LabelFindings) -> str:
    evaluation = findings.validation
    model = findings.model
    judged = ", each predicted by a model that had not seen it" if findings.own_rows else ""
    lead = (
        f"{'Naive Bayes' if model.weighing is None else 'Weighed evidence'}, with a yes/no decision for each of "
        f"{many(len(model.labels), 'label')}. Of {many(len(evaluation.truth), 'row')}{judged}, "
        f"<b>{evaluation.subset_accuracy:.1%}</b> got exactly their labels; "
        f"micro F1 is <b>{evaluation.micro_f1:.3f}</b>."
    )
    return pieces._lead_and_tiles(lead, _tiles(evaluation))


def _tiles(evaluation: LabelEvaluation) -> Iterator[tuple[str, str, str]]:
    n = evaluation.truth.sum()
    yield "micro F1", f"{evaluation.micro_f1:.4f}", "over all labels and rows"
    yield "macro F1", f"{evaluation.macro_f1:.4f}", "mean over labels"
    yield "exact rows", f"{evaluation.subset_accuracy:.2%}", "exactly the true labels"
    yield (
        "wrong decisions",
        f"{evaluation.hamming_loss:.3%}",
        f"predicting none: {n / max(evaluation.truth.size, 1):.3%}",
    )
    yield "log loss", f"{evaluation.log_loss:.4f}", "per row and label"
    yield (
        "labels per row",
        f"{n / max(len(evaluation.truth), 1):.2f}",
        f"given: {evaluation.given.mean(axis=0).sum():.2f}",
    )


def _figures(findings: LabelFindings) -> str:
    evaluation = findings.validation
    per = findings.validation.per_label
    how = f"{evaluation.what}, with the model’s own schema and settings." if findings.own_rows else AS_IT_IS
    notes = " ".join([how, *(safe(f"{note}.") for note in evaluation.notes)])
    order = np.lexsort((np.arange(len(evaluation.labels)), -per.rows))
    rows = []
    for k in order[:LISTED].tolist():
        figures = [pieces._number(f"{x:.4f}") for x in (per.precision[k], per.recall[k])]
        f1 = pieces._bar_cell(float(per.f1[k]), f"{per.f1[k]:.4f}")
        rows.append(pieces._row(evaluation.labels[k], *figures, f1, pieces._number(pieces._weight(per.rows[k]))))
    head = ["label", "precision", "recall", "F1", "rows"]
    table = pieces._long_table(head, rows, "label", (1, 2, 4), 24, len(evaluation.labels))
    drawn = (
        pieces._figure("F1 of each label by its number of rows", charts.labels(evaluation))
        if (per.rows > 0).any()
        else ""
    )
    return f'{pieces._paragraph(notes, "soft")}<div class="charts">{drawn}</div>{table}'


def _model(findings: LabelFindings) -> str:
    model = findings.model
    tally = findings.model.tally
    facts = [("counted", f"{pieces._weight(float(tally.n_rows))} rows, {many(len(model.labels), 'label')}")]
    if model.weighing is None:
        facts.append(("estimation", f"{pieces.HOWS[model.choice.how]} (<code>how={model.choice.how!r}</code>)"))
        facts.append(("smoothing", f"α = {model.choice.alpha:g} unless a family has its own prior"))
    else:
        facts.append(("weighed", safe(model.weighing)))
        if model.weighing.is_stale(tally):
            facts.append(
                ("stale", "rows have been learned or forgotten since these weights were learned; refit relearns them")
            )
    facts.append(("thresholds", safe(model.thresholds)))
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts)
    rows = [
        pieces._row(f.name, pieces._cell(safe(f.family.name)), pieces._cell(safe(pieces._shorten(text, 160)), "long"))
        for f, text in tally.summaries(pieces.ALL_COLUMNS)
    ]
    n = len(tally.schema.features)
    head = ["column", "family", "counted"]
    columns = pieces._long_table(head, rows, "column", shown=pieces.COLUMNS, n=n)
    return f"<dl>{listed}</dl><h3>Columns</h3>{columns}"


def _telling(findings: LabelFindings) -> str:
    note = (
        "How many times more probable a value is in rows with the label than in all other rows, most informative first."
    )
    cards = "".join(
        pieces._card(ratios_of_label, label)
        for ratios_of_label in findings.informative
        for label in ratios_of_label.ratios
    )
    more = pieces._more(len(findings.model.labels) - len(findings.informative), "label")
    return f'{pieces._paragraph(note, "soft")}<div class="cards">{cards}</div>{more}'


def _misses(findings: LabelFindings) -> str:
    if not findings.n_missed:
        return pieces._paragraph("None: every label of every row was predicted.")
    rows = many(findings.n_missed, "row")
    if not findings.missed:
        return pieces._paragraph(f"{rows} {'lacks' if findings.n_missed == 1 else 'lack'} a label; none is shown.")
    note = f"Of {rows} with a missed label, the ones where the label was least probable, each explained"
    if findings.own_rows:
        note += " without the row itself"
        note += "; the corrections of its words come from all rows" * (findings.model.weighing is not None)
    parts = [pieces._paragraph(f"{note}. Blue is evidence for the prediction, orange is evidence against it.", "soft")]
    for n, missed_label in enumerate(findings.missed):
        predicted = ", ".join(map(str, missed_label.given)) or "no label"
        about = f"row {missed_label.row + 1:,} · has {', '.join(map(str, missed_label.truth))} · predicted {predicted}"
        about = safe(f"{about} · P({missed_label.label}) = {percent(missed_label.probability)}")
        if missed_label.explanation is None:
            body = pieces._paragraph("No other row has this label, so there is no evidence.", "soft")
        else:
            body = evidence.explanation_body(missed_label.explanation, pieces.BARS, pieces.TEXT)
        head = f'<summary>{pieces._name_tag(missed_label.label)} was missed<span class="soft">{about}</span></summary>'
        parts.append(f'<details class="mistake"{" open" * (n == 0)}>{head}{body}</details>')
    return "".join(parts)
