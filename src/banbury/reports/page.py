"""The page of a report as HTML. All text that comes from data is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite, log
from pathlib import Path
from typing import Any

import numpy as np

from banbury import errors
from banbury.errors import many
from banbury.families.family import in_words
from banbury.model.explain.page import name_class, percent, printable, quote_class
from banbury.notebooks import safe
from banbury.plots.shape import Shape, shapes_by_class
from banbury.reports import charts
from banbury.reports.alternatives import Alternatives
from banbury.reports.elements import (
    COLUMNS_UNFOLDED,
    MOST_COLUMNS_LISTED,
    bar_cell,
    card,
    columns_table,
    estimation_facts,
    explanation_element,
    fact_list,
    figure,
    fold_element,
    format_weight,
    html_page,
    html_table,
    lead_and_tiles,
    long_table,
    measure_cells,
    measures_table,
    mistake_element,
    more_note,
    name_tag,
    number_cell,
    paragraph,
    shorten,
    staleness_facts,
    table_row,
    text_cell,
)
from banbury.reports.findings import MOST_ROWS_MEASURED, Findings, Mistake
from banbury.weighing import Weighing

MOST_CLASSES_OF_MATRIX = 30  # most classes of a legible confusion matrix
MANY_CLASSES = 8  # from so many classes on, a confusion matrix is set in small type
MOST_CLASSES_LISTED = 100  # most rows of a table of classes
MOST_UPRIGHT_CLASSES = 8  # most classes whose names are set horizontally above a confusion matrix
SHAPES_UNFOLDED = 12  # pictures of columns that are shown unfolded
MOST_SHAPES = 60  # most pictures of columns
MIN_PAIR_DECIBANS = 0.25  # mean decibans below which a pair of columns has no picture: a sixteenth more or less
MOST_SHAPE_CLASSES = 6  # most classes with pictures, if there are more than two
MOST_CONFUSIONS = 15  # most pairs of confused classes
MOST_CARDS_UNFOLDED = 24  # most classes whose informative values are all shown unfolded
CARDS_UNFOLDED_OF_MANY = 12  # so many are unfolded if there are more classes
MOST_REASONS = 3  # values that are named as reasons of a mistake, at most
FULL_OPACITY = 0.5  # opacity of a full cell


def page(findings: Findings, title: str) -> str:
    """Returns the whole HTML page of a report."""
    sections = [
        *(
            [("next", "What to do next", _suggestions_section(findings))]
            if findings.alternatives or findings.next_steps
            else []
        ),
        ("model", "The model", _model_section(findings)),
        ("figures", "Cross-validation" if findings.on_training_rows else "Accuracy", _measures_section(findings)),
        ("confusion", "Confusion", _confusion_section(findings)),
        ("calibration", "Calibration", _calibration_section(findings)),
        ("learning", "Learning curve", _learning_section(findings)),
        *([("shapes", "What the model has learned", shapes)] if (shapes := _shapes_section(findings)) else []),
        ("informative", "What separates the classes", _informative_section(findings)),
        ("mistakes", "The worst mistakes", _mistakes_section(findings)),
        ("pairs", "Pairs that break independence", _pairs_section(findings)),
    ]
    return html_page(title, _summary(findings), sections)


# Summary --------------------------------------------------------------------------------------------------------------


def _summary(findings: Findings) -> str:
    """Returns the summary at the top of the page as HTML."""
    validation = findings.validation
    most_frequent = int(  # the number of the most frequent class
        np.bincount(validation.truth, weights=validation.weights, minlength=len(validation.classes)).argmax()
    )
    target = findings.model.schema.target
    purpose = f" for {name_tag(target)}" if target else ""
    method = "Naive Bayes" if findings.model.weighing is None else "Weighed evidence"
    how_predicted = (
        "each predicted by a model that had not seen it" if findings.on_training_rows else "predicted by this model"
    )
    return lead_and_tiles(
        f"{method}{purpose}: {many(len(validation.classes), 'class')} and "
        f"{many(len(findings.model.schema.features), 'column')}. Of {many(findings.n_rows, 'row')}, {how_predicted}, "
        f"<b>{validation.accuracy.value:.1%}</b> are correct; always answering "
        f"{name_tag(findings.name_class(validation.classes[most_frequent]))} would be correct for {validation.majority:.1%}.",
        _main_figures(findings),
    )


def _main_figures(findings: Findings) -> Iterator[tuple[str, str, str]]:
    """Yields the main figures as texts: name, figure and a note with a value to compare it with."""
    validation = findings.validation
    error = validation.accuracy.error  # of the accuracy, over folds; None for a single one
    n_classes = len(validation.classes)
    without_error = "one fold" if findings.on_training_rows else "on these rows"
    yield (
        "accuracy",
        f"{validation.accuracy.value:.2%}",
        without_error if error is None else f"± {100 * error:.2f} over folds",
    )
    yield "log loss", f"{validation.log_loss:.4f}", f"guessing: {log(n_classes):.4f}"
    # The Brier score of equal probabilities.
    guessing = 0.25 if n_classes == 2 else 1 - 1 / n_classes
    yield "Brier score", f"{validation.brier:.4f}", f"guessing: {guessing:.4f}"
    yield "macro F1", f"{validation.macro_f1:.4f}", "best: 1"
    if "auc" in (measures := validation.to_dict()):
        yield "AUC", f"{measures['auc']:.4f}", "guessing: 0.5"
    yield "calibration error", f"{validation.calibration_error:.4f}", "honest: 0"


# What to do next ------------------------------------------------------------------------------------------------------


def _suggestions_section(findings: Findings) -> str:
    """Returns the section with suggestions as HTML, and the figures of everything that was tried."""
    items = "".join(f"<li>{safe(step)}</li>" for step in findings.next_steps)
    no_better = paragraph("None of the alternatives tried is clearly better.")
    table = "" if findings.alternatives is None else _alternatives_table(findings, findings.alternatives)
    return (f"<ol>{items}</ol>" if items else no_better) + table


def _alternatives_table(findings: Findings, tried: Alternatives) -> str:
    """Returns a table of the alternatives that were tried, with their figures, as HTML."""
    sampling = "all there are" if tried.n_rows == findings.n_rows else "stratified by class"
    note = (
        f"Each was tried on the same {tried.folds} folds of {many(tried.n_rows, 'row')}, {sampling}; the figures above come from "
        f"{findings.n_folds} folds of {many(findings.n_rows, 'row')}."
    )
    lowest_log_loss = min(alternative.log_loss for alternative in (tried.current, *tried.tried)) or 1.0
    rows = []  # as HTML
    for alternative in (tried.current, *tried.tried):
        # In words, as the code is.
        error = "" if alternative.standard_error is None else f" ± {alternative.standard_error:.4f}"
        code = (
            f"<code>{safe(alternative.python)}</code> <code>banbury fit {safe(alternative.option)}</code>"
            if alternative.option
            else ""
        )
        log_loss_bar = bar_cell(
            lowest_log_loss / alternative.log_loss if alternative.log_loss else 1.0, f"{alternative.log_loss:.4f}"
        )
        rows.append(
            table_row(
                alternative.name, number_cell(f"{alternative.accuracy:.4f}{error}"), log_loss_bar, text_cell(code)
            )
        )
    return html_table(["what", "accuracy", "log loss", "how"], rows, numeric_columns=(1,)) + paragraph(note, "soft")


# The model ------------------------------------------------------------------------------------------------------------


def _model_section(findings: Findings) -> str:
    """Returns the section about the model as HTML."""
    model = findings.model
    tally = model.tally
    # Triples of a class, its number of rows and P(class).
    class_facts = zip(model.classes, tally.rows.value.tolist(), model._class_shares.tolist(), strict=True)
    rows = [  # as HTML
        table_row(findings.name_class(label), number_cell(format_weight(n_rows)), bar_cell(share, f"{share:.1%}"))
        for label, n_rows, share in list(class_facts)[:MOST_CLASSES_LISTED]
    ]
    head = ["class", "rows", "P(class)"]
    classes = long_table(head, rows, "class", numeric_columns=(1,), n=len(model.classes))
    return f"{fact_list(_facts(findings))}<h3>Classes</h3>{classes}{columns_table(tally)}{_weights_table(findings)}"


def _weights_table(findings: Findings) -> str:
    """Returns a table of the weights of columns, trends and pairs as HTML; empty if the evidence is not weighed."""
    weighing = findings.model.weighing
    if not isinstance(weighing, Weighing):
        return ""
    note = "1: evidence as counted; less than 1: other columns repeat it; 0: ignored. "
    note += "Corrections are added to it, even where the weight is 0. " * bool(weighing.weights.strengths)
    note += "A pair adds what it says beyond both columns. "
    note += "A trend is a straight line through a numeric column, in addition to the evidence of its intervals."
    text = ""
    weights = list(weighing.worth().items())  # names and weights: of columns, then trends, then pairs
    weight_groups = weighing.weights  # with the weights of columns, trends and pairs apart
    kinds = (
        ["column"] * len(weight_groups.columns)
        + ["trend"] * len(weight_groups.trends)
        + ["pair"] * len(weight_groups.pairs)
    )
    kinds += ["column"] * (len(weights) - len(kinds))  # what kind each weight is of
    # The largest weight.
    largest = max((weight for _, weight in weights), default=0.0) or 1.0
    for kind_name in ("column", "trend", "pair"):
        # Pairs of name and weight, the largest first.
        entries = [entry for kind, entry in zip(kinds, weights, strict=True) if kind == kind_name]
        entries.sort(key=lambda entry: -entry[1])
        rows = [table_row(name, bar_cell(weight / largest, f"{weight:.2f}", "meter wide")) for name, weight in entries]
        text += (
            long_table(
                [kind_name, "weight"], rows[:MOST_COLUMNS_LISTED], kind_name, shown=COLUMNS_UNFOLDED, n=len(rows)
            )
            if rows
            else ""
        )
    return f"<h3>Weights of the evidence</h3>{paragraph(note, 'soft')}{text}"


def _facts(findings: Findings) -> Iterator[tuple[str, str]]:
    """Yields facts about the model: the name and the text of each as HTML."""
    model = findings.model
    tally = findings.model.tally
    yield "counted", f"{format_weight(float(tally.n_rows))} rows" if tally.n_rows != 1 else "1 row"
    if tally.skipped:
        yield "skipped", f"{many(tally.skipped, 'row')} without a target"
    kinds_of_columns = (
        f"{in_words(feature.family)} {'block' if feature.columns else 'column'}" for feature in model.schema.features
    )
    yield "family", safe(", ".join(many(count, name) for name, count in Counter(kinds_of_columns).most_common()))
    if model.schema.left_out:
        columns_left_out = errors.listed((f"{name} ({reason})" for name, reason in model.schema.left_out.items()), 20)
        yield "left out", safe(columns_left_out)
    if model.weighing is None:
        yield from estimation_facts(model)
    prior = model.class_prior
    if prior is None or isinstance(prior, (int, float)):
        addition = "" if prior is None else f", with α = {prior:g} added to each"
        yield "class prior", f"the class frequencies{addition}"
    else:
        yield "class prior", "uniform" if isinstance(prior, str) else "given"
    yield "parameters", f"{tally.n_parameters():,}"
    if isinstance(weighing := model.weighing, Weighing):
        yield "weighed", safe(weighing)
        if not weighing.weights.strengths:
            reason = ": they did not help on held-out rows" * bool(weighing.weights.losses)
            yield "corrections", f"none (C = 0){reason}"
        temperature = weighing.weights.temperature
        yield "temperature", f"{temperature:.3g}" + ": scores are not rescaled" * (temperature == 1.0)
        # Columns without a weight.
        if duplicates := [feature.name for feature in model.schema.features if feature.name not in weighing.worth()]:
            yield "not weighed", safe(f"{errors.listed(duplicates, 20)}: another column repeats it")
        yield from staleness_facts(weighing, tally)
    if model.calibration is not None:
        yield "calibration", safe(model.calibration)


# Figures --------------------------------------------------------------------------------------------------------------


def _measures_section(findings: Findings) -> str:
    """Returns the section with the measures of each class as HTML."""
    validation = findings.validation
    if findings.on_training_rows:
        method = (
            f"{findings.n_folds}-fold cross-validation of {many(findings.n_rows, 'row')}: each fold was scored by a model of "
            "all other rows, obtained exactly by subtraction, with the model’s own schema "
            "and settings"
        )
        method += "." if findings.model.weighing is None else "; its weights were learned again from those rows."
        notes = [method, "These are the rows that the model was trained on."]
    else:
        notes = [
            f"This model predicted {many(findings.n_rows, 'row')}. They are not its training rows, "
            "or only some of them."
        ]
    if findings.unlabelled:
        notes.append(f"{many(findings.unlabelled, 'row')} without a target were ignored.")
    if findings.unknown:
        unknown = errors.listed(quote_class(label, findings.model.target) for label in findings.unknown)
        notes.append(f"The model does not know the classes {safe(unknown)}.")
    if (uncalibrated := findings.before_calibration) is not None:
        by_others = ", each fold by the other folds" * findings.on_training_rows
        notes.append(
            f"Probabilities are calibrated{by_others}. Before calibration the log loss was "
            f"{uncalibrated.log_loss:.4f} and the accuracy {uncalibrated.accuracy.value:.1%}."
        )
    measures = validation.per_class  # arrays of one entry per class
    names = list(map(findings.name_class, validation.classes))
    rows = []  # as HTML
    for class_index, name in list(enumerate(names))[:MOST_CLASSES_LISTED]:
        mistakes = validation.confusion[class_index].astype(np.float64)  # rows of the class, by predicted class
        mistakes[class_index] = 0.0
        most_mistaken_for = (
            f"{safe(shorten(names[int(mistakes.argmax())]))} ({format_weight(mistakes.max())})"
            if mistakes.any()
            else ""
        )
        rows.append(table_row(name, *measure_cells(measures, class_index), text_cell(most_mistaken_for)))
    table = measures_table("class", rows, len(validation.classes), "most often mistaken for")
    return paragraph(" ".join(notes), "soft") + table


# Confusion ------------------------------------------------------------------------------------------------------------


def _confusion_section(findings: Findings) -> str:
    """Returns the section with the confusion matrix as HTML, or a list of the most frequent confusions for many
    classes.
    """
    confusion = findings.validation.confusion  # numbers of rows, true classes × predicted classes
    classes = list(map(findings.name_class, findings.validation.classes))
    note = "Rows by true class (down) and predicted class (across); darker cells have a larger share of the class."
    matrix = (
        paragraph(note, "soft") + _confusion_matrix(confusion, classes)
        if len(classes) <= MOST_CLASSES_OF_MATRIX
        else ""
    )
    return matrix + (_confusions_table(confusion, classes) if len(classes) >= MANY_CLASSES else "")


def _confusion_matrix(confusion: Any, classes: Sequence[Any]) -> str:
    """Returns ``confusion``, a confusion matrix (numbers of rows, true classes × predicted classes), as an HTML table.
    ``classes``: their names.
    """
    head = "".join(f"<th>{safe(shorten(label))}</th>" for label in classes)
    if len(classes) > MOST_UPRIGHT_CLASSES:
        head = "".join(f'<th class="up"><div>{safe(shorten(label, 30))}</div></th>' for label in classes)
    rows = []  # as HTML
    for truth, name in enumerate(classes):  # truth, predicted: class numbers
        total = float(confusion[truth].sum()) or 1.0  # rows of the class
        cells = ""
        for predicted, n_rows in enumerate(map(float, confusion[truth])):
            title = f"{format_weight(n_rows)} of {shorten(name)}, {n_rows / total:.1%}, predicted {shorten(classes[predicted])}"
            colour = f"rgba(var({'--blue' if truth == predicted else '--orange'}),{FULL_OPACITY * (n_rows / total) ** 0.5:.3f})"
            cells += (
                f'<td style="background:{colour}" title="{safe(title)}">{format_weight(n_rows)}</td>'
                if n_rows
                else "<td></td>"
            )
        rows.append(f'<tr><th title="{safe(name)}">{safe(shorten(name, 30))}</th>{cells}</tr>')
    css_class = "box matrix many" if len(classes) >= MANY_CLASSES else "box matrix"
    head = f'<tr><th class="corner">true ↓ predicted →</th>{head}</tr>'
    return f'<div class="{css_class}"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _confusions_table(confusion: Any, classes: Sequence[Any]) -> str:
    """Returns the pairs of classes that are confused most often as an HTML table. ``confusion``: numbers of rows (true
    classes × predicted classes); ``classes``: their names.
    """
    off_diagonal = np.array(confusion, dtype=np.float64)  # without correct predictions, below
    # The rows of each true class.
    totals = np.maximum(off_diagonal.sum(axis=1), 1e-300)
    np.fill_diagonal(off_diagonal, 0.0)
    # Positions in the flattened matrix of the largest cells.
    largest = np.argsort(-off_diagonal, axis=None, kind="stable")[:MOST_CONFUSIONS]
    rows = []  # as HTML
    # The numbers of the true class and of the predicted one.
    for truth, predicted in zip(*np.unravel_index(largest, off_diagonal.shape), strict=True):
        n_rows = float(off_diagonal[truth, predicted])
        if n_rows:
            share = n_rows / float(totals[truth])
            predicted_cell = text_cell(safe(shorten(classes[predicted])))
            bar = bar_cell(share, f"{share:.1%}", "meter wrong")
            rows.append(table_row(classes[truth], predicted_cell, number_cell(format_weight(n_rows)), bar))
    if not rows:
        return paragraph("No class was mistaken for another.")
    return "<h3>Most frequent confusions</h3>" + html_table(
        ["true class", "predicted", "rows", "of the class"], rows, numeric_columns=(2,)
    )


# Calibration and learning ---------------------------------------------------------------------------------------------


def _calibration_section(findings: Findings) -> str:
    """Returns the section with the calibration chart as HTML."""
    curves = findings.reliabilities  # by name, the first of the probabilities as predicted
    first_curve = next(iter(curves.values()))
    keys = list(curves) if len(curves) > 1 else []  # names for the legend
    figures = figure("Accuracy by confidence", charts.draw_calibration(curves), keys)
    figures += figure("Confidence", charts.draw_confidence(first_curve))
    mean_confidence, mean_accuracy = (  # over the rows, from one figure per bin
        float(figures_of_bins @ first_curve.rows / first_curve.rows.sum())
        for figures_of_bins in (first_curve.confidence, first_curve.accuracy)
    )
    direction = "overconfident" if mean_confidence > mean_accuracy else "underconfident"
    opening = (
        f"The model was {direction} by {100 * abs(mean_confidence - mean_accuracy):.1f} points: on average "
        if abs(mean_confidence - mean_accuracy) >= 0.0005
        else "On average "
    )
    text = f"{opening}{mean_confidence:.1%} confident and {mean_accuracy:.1%} correct. "
    text += "On the dashed line, confidence equals accuracy; the whiskers are 95 % intervals."
    if keys:
        text += " The second curve shows the probabilities before calibration."
    elif mean_confidence - mean_accuracy > 0.02:
        text += " To correct this, see <code>bb.calibrate</code>."
    return f'{paragraph(text)}<div class="charts">{figures}</div>'


def _learning_section(findings: Findings) -> str:
    """Returns the section with the learning curve as HTML, or why there is none."""
    if (curve := findings.learning_curve) is None:
        return paragraph(f"Not drawn: {safe(findings.why_no_curve)}.")
    verdict = ""  # whether more rows would help, as far as the last doubling tells
    if findings.more_rows is not None:
        n_before, n_after, gain, _ = findings.more_rows  # gain: in accuracy, from 0 to 1
        verdict = f"From {n_before:,} to {n_after:,} rows accuracy changed by {100 * gain:+.1f} points.".replace(
            "-", "−"
        )
    text = f"{many(curve.n_test, 'row')} of {curve.n_rows:,} were held out; the model learned from a growing number of the others"
    repeats = len(curve.accuracy)
    text += f", {repeats} times; the band is the standard error. {verdict}" if repeats > 1 else f". {verdict}"
    legend = '<span class="key"><i class="level"></i>always the most frequent class</span>'
    caption = f"Accuracy{legend if charts.majority_is_near(curve) else ''}"
    log_loss = "Log loss" if findings.before_calibration is None else "Log loss, before calibration"
    figures = figure(caption, charts.draw_accuracy_curve(curve)) + figure(log_loss, charts.draw_log_loss_curve(curve))
    return f'{paragraph(text + _sample_note(findings))}<div class="charts">{figures}</div>'


def _sample_note(findings: Findings) -> str:
    """Returns a note that only a sample was measured; empty if all rows were."""
    if findings.n_sampled == findings.n_rows:
        return ""
    sample = f" Measured on a stratified sample of {findings.n_sampled:,} rows"
    return f"{sample}, because more than {MOST_ROWS_MEASURED:,} would take long."


# What it has learned --------------------------------------------------------------------------------------------------


def _shapes_section(findings: Findings) -> str:
    """Returns the section with a picture of the evidence of each column as HTML, the most important first, for each
    class against all others.
    """
    # Pairs of a class and its pictures as HTML.
    groups = [(label, _shape_figures(shapes)) for label, shapes in shapes_by_class(findings.model, MOST_SHAPE_CLASSES)]
    if not any(text for _, text in groups):
        return ""
    if len(groups) == 1:
        [(label, figures)] = groups
        return paragraph(_shape_note(*map(findings.name_class, (label, findings.model.classes[0]))), "soft") + figures
    figures = "".join(
        f"<details{' open' * (i == 0)}><summary>{name_tag(findings.name_class(label))}</summary>{text}</details>"
        for i, (label, text) in enumerate(groups)
    )
    return paragraph(_shape_note("a class", "all other classes together"), "soft") + figures


def _shape_note(label: str, opponent: str) -> str:
    """Returns what the pictures show, in words. ``label``, ``opponent``: the classes that are compared."""
    return (
        f"The evidence of every value for {safe(shorten(label))} against {safe(shorten(opponent))}, in decibans "
        "(10 are odds of ten to one). "
        "Lines and bands are 95 % intervals. The strip under a numeric column shows where the rows are, and the dot at its "
        "right end is the evidence of a missing value. The column with the largest mean evidence comes first."
    )


def _shape_figures(shapes_of_columns: Sequence[Shape]) -> str:
    """Returns pictures of the evidence of columns as HTML, without weak pairs; those after the first twelve are folded.
    Empty if there are none.
    """
    drawn_shapes = [
        shape for shape in shapes_of_columns if shape.kind != "pairs" or shape.importance >= MIN_PAIR_DECIBANS
    ]
    figures = [
        figure(
            f'{safe(shorten(feature_shape.feature))} <span class="key">{charts.describe_importance(feature_shape)}</span>',
            charts.draw_shape(feature_shape),
        )
        for feature_shape in drawn_shapes
    ]
    if not figures:
        return ""
    folded_html = f'<div class="charts shapes">{"".join(figures[SHAPES_UNFOLDED:MOST_SHAPES])}</div>'
    shown_html = f'<div class="charts shapes">{"".join(figures[:SHAPES_UNFOLDED])}</div>'
    n_hidden = len(shapes_of_columns) - len(drawn_shapes)
    hidden_pairs = (
        f"{many(n_hidden, 'more pair')} of columns, with at most {MIN_PAIR_DECIBANS:g} decibans on average, not drawn"
    )
    note = paragraph(hidden_pairs, "soft") if n_hidden else ""
    return (
        shown_html
        + (
            fold_element(many(len(figures) - SHAPES_UNFOLDED, "more picture"), folded_html)
            if len(figures) > SHAPES_UNFOLDED
            else ""
        )
        + note
    )


# What tells -----------------------------------------------------------------------------------------------------------


def _informative_section(findings: Findings) -> str:
    """Returns the section with the most informative columns and values as HTML."""
    columns = _information_table(findings) if len(findings.diagnosis.columns) > 1 else ""
    note = "How many times more probable a value is in the class than in all other classes together, most informative first."
    # As HTML, one per class.
    cards = [card(findings.informative, label) for label in findings.informative.ratios]
    n_unfolded = MOST_CARDS_UNFOLDED if len(cards) <= MOST_CARDS_UNFOLDED else CARDS_UNFOLDED_OF_MANY
    # As HTML: what is visible at first, and the rest.
    cards_html, folded = (
        f'<div class="cards">{"".join(group)}</div>' for group in (cards[:n_unfolded], cards[n_unfolded:])
    )
    cards_html += fold_element(many(len(cards) - n_unfolded, "more class"), folded) if len(cards) > n_unfolded else ""
    cards_html += more_note(len(findings.model.classes) - len(cards), "class")
    remark = paragraph(safe(findings.informative.note), "soft") if findings.informative.note else ""
    return f"{columns}<h3>Class by class</h3>{paragraph(note, 'soft')}{cards_html}{remark}"


def _information_table(findings: Findings) -> str:
    """Returns a table of the information, in bits, that each column by itself has about the class, as HTML."""
    diagnosis = findings.diagnosis
    # In bits.
    largest = max((column.bits for column in diagnosis.columns), default=0.0) or 1.0
    rows = []  # as HTML
    for column in diagnosis.columns[:MOST_COLUMNS_LISTED]:
        words = safe(", ".join(map(printable, list(column.words)[:8])))
        rows.append(
            table_row(
                column.feature,
                bar_cell(column.bits / largest, f"{column.bits:.3f}", "meter wide"),
                text_cell(words, "long"),
            )
        )
    head = ["column", "bits about the class", "its words"]
    note = f"How many of the {diagnosis.entropy:.3f} bits of the class each column provides by itself"
    if diagnosis.blocks:
        note += ", and each block of columns together"
    block_names = {feature.name for feature in findings.model.schema.features if feature.columns}
    # Of each column with words: whether it is a block of occurrences rather than a text.
    if are_blocks := [column.feature in block_names for column in diagnosis.columns if column.words]:
        explanations = ["a text, by its most informative word"] * (not all(are_blocks))
        explanations += ["a block of occurrences, by its most informative column"] * any(are_blocks)
        note += f" ({'; '.join(explanations)})"
    else:
        head = head[:2]
        rows = [row.replace('<td class="long"></td>', "") for row in rows]
    return paragraph(f"{note}:") + long_table(head, rows, "column")


# Mistakes -------------------------------------------------------------------------------------------------------------


def _mistakes_section(findings: Findings) -> str:
    """Returns the section with the worst mistakes as HTML."""
    if not findings.n_mistakes:
        return paragraph("None: every row was predicted correctly.")
    if not findings.mistakes:
        return paragraph(f"{many(findings.n_mistakes, 'row')} were predicted incorrectly; none is shown.")
    selection = "The only one."
    subject = "It is"
    if findings.n_mistakes > 1:
        selection = f"Of {findings.n_mistakes:,}, the ones where the true class was least probable."
        subject = "Each is"
    method = (
        "explained by the model of its fold, which has not seen the row"
        if findings.on_training_rows
        else "explained by this model"
    )
    return paragraph(
        f"{selection} {subject} {method}: blue is evidence for the prediction, orange for the true class.", "soft"
    ) + "".join(_mistake(mistake, i == 0, findings.model.target) for i, mistake in enumerate(findings.mistakes))


def _mistake(mistake: Mistake, unfolded: bool, target: str | None) -> str:
    """Returns a mistake with its explanation as HTML. ``unfolded``: whether the explanation is visible at first;
    ``target``: the name of the target, if it has one.
    """
    explanation = mistake.explanation  # None if the model of the fold has only one class
    name = "" if mistake.name is None else f", {safe('/'.join(Path(mistake.name).parts[-2:]))}"
    head = (
        f"{name_tag(name_class(mistake.truth, target))} mistaken for {name_tag(name_class(mistake.predicted, target))}"
    )
    probability_truth = safe(percent(mistake.probability_truth))  # in words
    if explanation is not None and explanation.against == mistake.truth and isfinite(explanation.decibans):
        probability_truth += f", {explanation.decibans:,.1f} decibans less"
    description = (
        f"row {mistake.row + 1:,}{name} · predicted class {safe(percent(mistake.probability))}, "
        f"true class {probability_truth}"
    )
    if explanation is not None:  # the values that speak most for the answer
        reasons = [entry for entry in explanation.evidence if entry.decibans > 0][:MOST_REASONS]
        # The beginning of each reason: its column, unless that is a text.
        prefixes = ("" if entry.feature in explanation.texts else f"{entry.feature} = " for entry in reasons)
        reason_texts = [prefix + printable(entry.value) for prefix, entry in zip(prefixes, reasons, strict=True)]
        description += f" · by {safe(', '.join(reason_texts))}" if reason_texts else ""
    body = explanation_element(explanation)
    if explanation is None or mistake.truth not in (explanation.winner, explanation.against):
        remark = (
            "there is no evidence to compare"
            if explanation is None
            else "the prediction is compared with the runner-up"
        )
        body = paragraph(f"No row of the true class was in the other folds, so {remark}.", "soft") + body
    return mistake_element(head, description, body, unfolded)


# Pairs ----------------------------------------------------------------------------------------------------------------


def _pairs_section(findings: Findings) -> str:
    """Returns the section with pairs of dependent columns, and columns without information, as HTML."""
    diagnosis = findings.diagnosis
    advice = diagnosis.advice
    if diagnosis.pairs and isinstance(findings.model.weighing, Weighing):
        error = findings.validation.calibration_error  # from 0 to 1
        advice = "This model weighs its evidence, which takes these pairs into account: its confidence differs "
        advice += f"from its accuracy by {100 * error:.1f} points on average."
    note = (
        "Naive Bayes assumes that columns are independent given the class. "
        f"{many(diagnosis.n_pairs, 'pair')} {'was' if diagnosis.n_pairs == 1 else 'were'} compared; "
        f"{'those listed share' if diagnosis.pairs else 'none shares'} more information given the class than chance explains."
    )
    rows = []  # as HTML
    for pair in diagnosis.pairs:
        names = f"{shorten(pair.first, 28)} / {shorten(pair.second, 28)}"
        # The share of the largest information that the pair could share, in words.
        percentage = f"{pair.share:.0%}" + ' <span class="tag">duplicated</span>' * pair.duplicated
        bar = bar_cell(pair.share, percentage)
        row_count = number_cell(format_weight(pair.rows))
        rows.append(table_row(names, number_cell(f"{pair.bits:.3f}"), bar, row_count))
    head = ["pair", "bits shared", "of the maximum", "rows"]
    table = html_table(head, rows, numeric_columns=(1, 3)) if rows else ""
    notes = "".join(paragraph(safe(note), "soft") for note in diagnosis.notes)
    if uninformative := diagnosis.uninformative:
        rows = [
            table_row(column.feature, text_cell(safe(column.why))) for column in uninformative[:MOST_COLUMNS_LISTED]
        ]
        notes += "<h3>Columns without information about the class</h3>"
        notes += long_table(["column", "why"], rows, "column", n=len(uninformative))
    return f"{paragraph(note + _sample_note(findings))}{paragraph(safe(advice), 'advice')}{table}{notes}"
