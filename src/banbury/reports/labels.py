"""The report of a multi-label model: the figures, the evidence and the missed rows of each label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.errors import many
from banbury.files.checking import JsonObject
from banbury.labels import LabelEvaluation, LabelModel
from banbury.labels.evaluation import evaluate_answers
from banbury.model.explain import Explanation, Informative
from banbury.model.explain.page import percent
from banbury.notebooks import safe
from banbury.quality.recipes import recipe_of
from banbury.quality.validation import default_folds, validate
from banbury.reports import charts
from banbury.reports.elements import (
    card,
    columns_table,
    estimation_facts,
    explanation_element,
    fact_list,
    figure,
    format_weight,
    html_page,
    lead_and_tiles,
    measure_cells,
    measures_table,
    mistake_element,
    more_note,
    name_tag,
    paragraph,
    staleness_facts,
    table_row,
)
from banbury.rows.labelled import MemoryRows, load_rows

MOST_LABELS_SHOWN = 24  # the most frequent ones, whose informative values are shown
MOST_LABELS_LISTED = 300  # in the table
AS_IT_IS = "This model was evaluated on rows other than its training rows, or on only some of them."


@dataclass(frozen=True)
class MissedLabel:
    """A row that has a ``label`` which was not predicted. ``truth``, ``predicted``: its true labels, and the predicted
    ones; ``probability``: of the label; ``explanation``: None if the model does not know the label.
    """

    row: int  # its number in the data
    truth: tuple[Any, ...]
    predicted: tuple[Any, ...]
    label: Any
    probability: float
    explanation: Explanation | None

    def to_dict(self) -> JsonObject:
        """Returns the fields as a dictionary for JSON."""
        explanation = None if self.explanation is None else self.explanation.to_dict()  # for JSON
        facts = {"row": self.row, "truth": list(self.truth), "predicted": list(self.predicted), "label": self.label}
        return facts | {"probability": self.probability, "explanation": explanation}


@dataclass(frozen=True, eq=False)
class LabelFindings:
    """A multi-label model and everything that a report says about it."""

    model: LabelModel
    validation: LabelEvaluation
    on_training_rows: bool  # whether they are exactly the training rows of the model
    informative: tuple[Informative, ...]  # one for each label listed, the most frequent first
    n_missed: int  # rows with a missed label
    missed: tuple[MissedLabel, ...]  # the least probable ones, one per row
    source: str | None = None  # the name of the data

    @property
    def title(self) -> str:
        """The names of the target and the data, as far as they have names."""
        target = self.model.target
        return " in ".join(name for name in ("Labels" if target is None else str(target), self.source) if name)

    def to_dict(self) -> JsonObject:
        """Returns the findings as a dictionary for JSON."""
        informative = [
            {"label": next(iter(ratios_of_label.ratios)), **ratios_of_label.to_dict()["classes"][0]}
            for ratios_of_label in self.informative
        ]
        facts: JsonObject = {"on_training_rows": self.on_training_rows, "evaluation": self.validation.to_dict()}
        return facts | {"informative": informative, "missed": [missed_label.to_dict() for missed_label in self.missed]}


def measure_model(
    model: LabelModel,
    data: Any,
    target: Any,
    *,
    folds: int | None,
    mistakes: int,
    informative: int,
    seed: int,
    threads: int | None,
    weights: Any,
    reading: dict[str, Any],
) -> LabelFindings:
    """Measures everything that a report shows: training rows are cross-validated, others are scored by the model
    itself. ``folds``: their number, None for the default; ``mistakes``, ``informative``: how many missed labels, and
    informative values of each label, to list; ``target``, ``weights``: those of ``bb.count``; ``reading``: options for
    reading the data; ``seed``: assigns rows to folds.
    """
    schema = model.schema
    assert schema.labels is not None
    errors.require(
        target is not None or schema.labels.columns,
        "target",
        None,
        "the labels of the rows, which were passed separately when they were counted",
    )
    if isinstance(target, str) and schema.labels.delimiter is not None:
        reading = {"target_delimiter": schema.labels.delimiter, **reading}
    target = schema.labels if target is None else target
    rows = load_rows(data, target, schema=schema, weights=weights, threads=threads, **reading)
    on_training_rows = rows.tally == model.tally
    n_rows = rows.n_labelled
    evaluation: Any
    if on_training_rows and n_rows > 1:
        recipe: Any = replace(recipe_of(model), seed=seed)  # type: ignore[call-arg]
        n_folds = default_folds(n_rows, [recipe], folds or model.choice.n_folds)
        [evaluation] = validate(rows, n_folds, [recipe], seed=seed)
    else:
        evaluation = _evaluate(model, rows)
    # The numbers of labels, the most frequent first.
    most_frequent = np.lexsort((np.arange(len(model.labels)), -model.rows_by_label))[:MOST_LABELS_SHOWN].tolist()
    informative_values = tuple(  # one object per label
        model.informative(model.labels[label_index], informative) for label_index in most_frequent
    )
    # ``truth`` and ``given``, the predictions, are flags, rows × labels.
    n_rows_with_miss = int((evaluation.truth & ~evaluation.predicted).any(axis=1).sum())
    missed = tuple(
        _describe_miss(model, rows, evaluation, row, label_index, on_training_rows)
        for row, label_index in _find_worst(evaluation, mistakes)
    )
    return LabelFindings(model, evaluation, on_training_rows, informative_values, n_rows_with_miss, missed, rows.name)


def _evaluate(model: LabelModel, rows: MemoryRows) -> LabelEvaluation:
    """Returns the evaluation of the model itself on the labelled rows."""
    assert rows.sets is not None
    labelled_rows = np.flatnonzero(rows.labels >= 0)  # row numbers; −1: the row has no label set
    # Labelled rows × labels.
    posterior = np.concatenate([model._score_batch(batch, "posterior")[0] for batch in rows.take(labelled_rows)])
    weights = None if rows.weights is None else rows.weights[labelled_rows]
    return evaluate_answers(model, rows.sets.take(labelled_rows), posterior, labelled_rows, weights)


def _find_worst(evaluation: LabelEvaluation, most: int) -> list[tuple[int, int]]:
    """Returns the position and the index of the missed label of each of the ``most`` rows whose least probable missed
    label is least probable, the least probable first.
    """
    # Rows × labels, like ``truth``, ``given`` (the predictions) and ``posterior``.
    is_missed = evaluation.truth & ~evaluation.predicted
    positions = np.flatnonzero(is_missed.any(axis=1))  # of rows with a missed label
    # The index of that label in each of these rows.
    least_probable = np.where(is_missed[positions], evaluation.posterior[positions], np.inf).argmin(axis=1)
    # Indices in ``positions``.
    order = np.argsort(evaluation.posterior[positions, least_probable], kind="stable")[:most]
    return [(int(positions[i]), int(least_probable[i])) for i in order.tolist()]


def _describe_miss(
    model: LabelModel,
    rows: MemoryRows,
    evaluation: LabelEvaluation,
    position: int,
    label_index: int,
    on_training_rows: bool,
) -> MissedLabel:
    """Returns a missed label, explained by the model without the row. ``position``: that of the row in the evaluation;
    ``label_index``: the index of the label; ``on_training_rows``: whether the model has learned from these rows, so
    that the row must be left out.
    """
    label = evaluation.labels[label_index]
    row_number = evaluation.rows[position : position + 1]  # an array of one
    [batch] = rows.take(row_number)  # of this row alone
    if on_training_rows:
        model = replace(model, tally=model.tally - rows.count_only(row_number, rows.schema)).weighed(model.weighing)
    is_counted = label in model.tally.classes  # whether the model without the row knows the label
    explanation = model.with_thresholds(model.thresholds).explain(batch, label) if is_counted else None
    flags = evaluation.truth[position], evaluation.predicted[position]  # one flag per label: true, and predicted
    truth, predicted = (  # labels
        tuple(evaluation.labels[index] for index in np.flatnonzero(has_label).tolist()) for has_label in flags
    )
    return MissedLabel(
        int(row_number[0]), truth, predicted, label, float(evaluation.posterior[position, label_index]), explanation
    )


# The page -------------------------------------------------------------------------------------------------------------


def page(findings: LabelFindings, title: str) -> str:
    """Returns the whole HTML page of a report."""
    sections = [
        ("figures", "Label by label", _measures_section(findings)),
        ("model", "The model", _model_section(findings)),
        ("informative", "Most informative values", _informative_section(findings)),
        ("mistakes", "Missed labels", _misses_section(findings)),
    ]
    return html_page(title, _summary(findings), sections)


def _summary(findings: LabelFindings) -> str:
    """Returns the summary at the top of the page as HTML."""
    evaluation = findings.validation
    model = findings.model
    how_predicted = ", each predicted by a model that had not seen it" if findings.on_training_rows else ""
    return lead_and_tiles(
        f"{'Naive Bayes' if model.weighing is None else 'Weighed evidence'}, with a yes/no decision for each of "
        f"{many(len(model.labels), 'label')}. Of {many(len(evaluation.truth), 'row')}{how_predicted}, "
        f"<b>{evaluation.subset_accuracy:.1%}</b> got exactly their labels; "
        f"micro F1 is <b>{evaluation.micro_f1:.3f}</b>.",
        _main_figures(evaluation),
    )


def _main_figures(evaluation: LabelEvaluation) -> Iterator[tuple[str, str, str]]:
    """Yields the main figures as texts: name, figure, and a note on each."""
    n_true_labels = evaluation.truth.sum()  # of all rows together; flags are rows × labels
    yield "micro F1", f"{evaluation.micro_f1:.4f}", "over all labels and rows"
    yield "macro F1", f"{evaluation.macro_f1:.4f}", "mean over labels"
    yield "exact rows", f"{evaluation.subset_accuracy:.2%}", "exactly the true labels"
    yield (
        "wrong decisions",
        f"{evaluation.hamming_loss:.3%}",
        f"predicting none: {n_true_labels / max(evaluation.truth.size, 1):.3%}",
    )
    yield "log loss", f"{evaluation.log_loss:.4f}", "per row and label"
    yield (
        "labels per row",
        f"{n_true_labels / max(len(evaluation.truth), 1):.2f}",
        f"predicted: {evaluation.predicted.mean(axis=0).sum():.2f}",
    )


def _measures_section(findings: LabelFindings) -> str:
    """Returns the section with the measures of each label as HTML."""
    evaluation = findings.validation
    measures = findings.validation.per_label  # arrays of one entry per label
    method = f"{evaluation.what}, with the model’s own schema and settings." if findings.on_training_rows else AS_IT_IS
    notes = " ".join([method, *(safe(f"{note}.") for note in evaluation.notes)])
    # The numbers of labels, the most frequent first.
    by_frequency = np.lexsort((np.arange(len(evaluation.labels)), -measures.rows))
    rows = [  # as HTML
        table_row(evaluation.labels[label_index], *measure_cells(measures, label_index))
        for label_index in by_frequency[:MOST_LABELS_LISTED].tolist()
    ]
    table = measures_table("label", rows, len(evaluation.labels))
    chart = (
        figure("F1 of each label by its number of rows", charts.draw_labels(evaluation))
        if (measures.rows > 0).any()
        else ""
    )
    return f'{paragraph(notes, "soft")}<div class="charts">{chart}</div>{table}'


def _model_section(findings: LabelFindings) -> str:
    """Returns the section about the model as HTML."""
    return fact_list(_facts(findings.model)) + columns_table(findings.model.tally)


def _facts(model: LabelModel) -> Iterator[tuple[str, str]]:
    """Yields facts about the model: the name and the text, as HTML, of each."""
    yield "counted", f"{format_weight(float(model.tally.n_rows))} rows, {many(len(model.labels), 'label')}"
    if model.weighing is None:
        yield from estimation_facts(model)
    else:
        yield "weighed", safe(model.weighing)
        yield from staleness_facts(model.weighing, model.tally)
    yield "thresholds", safe(model.thresholds)


def _informative_section(findings: LabelFindings) -> str:
    """Returns the section with the most informative values of each label as HTML."""
    note = (
        "How many times more probable a value is in rows with the label than in all other rows, most informative first."
    )
    cards = "".join(
        card(ratios_of_label, label) for ratios_of_label in findings.informative for label in ratios_of_label.ratios
    )
    omitted = more_note(len(findings.model.labels) - len(findings.informative), "label")
    return f'{paragraph(note, "soft")}<div class="cards">{cards}</div>{omitted}'


def _misses_section(findings: LabelFindings) -> str:
    """Returns the section with the missed labels as HTML."""
    if not findings.n_missed:
        return paragraph("None: every label of every row was predicted.")
    rows = many(findings.n_missed, "row")  # in words
    if not findings.missed:
        return paragraph(f"{rows} {'lacks' if findings.n_missed == 1 else 'lack'} a label; none is shown.")
    note = f"Of {rows} with a missed label, the ones where the label was least probable, each explained"
    if findings.on_training_rows:
        note += " without the row itself"
        note += "; the corrections of its words come from all rows" * (findings.model.weighing is not None)
    elements = [paragraph(f"{note}. Blue is evidence for the prediction, orange is evidence against it.", "soft")]
    for i, missed_label in enumerate(findings.missed):
        predicted = ", ".join(map(str, missed_label.predicted)) or "no label"
        description = (
            f"row {missed_label.row + 1:,} · has {', '.join(map(str, missed_label.truth))} · predicted {predicted}"
        )
        description = safe(f"{description} · P({missed_label.label}) = {percent(missed_label.probability)}")
        no_evidence = paragraph("No other row has this label, so there is no evidence.", "soft")
        body = explanation_element(missed_label.explanation) or no_evidence
        head = f"{name_tag(missed_label.label)} was missed"
        elements.append(mistake_element(head, description, body, unfolded=i == 0))
    return "".join(elements)
