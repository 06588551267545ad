"""The page of a report: sections of HTML in the order in which one asks. Whatever comes from data is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import isfinite, log
from pathlib import Path
from typing import Any

import numpy as np

from banbury import __version__, errors
from banbury.errors import many
from banbury.families.family import in_words
from banbury.model.explain import Informative
from banbury.model.explain import page as evidence
from banbury.model.explain.page import format_ratio, name_class, percent, printable, quote_class
from banbury.notebooks import STYLE as NOTEBOOK_STYLE
from banbury.notebooks import safe
from banbury.plots.shapes import Shape, shapes_by_class
from banbury.reports import charts
from banbury.reports.alternatives import Alternatives
from banbury.reports.findings import MOST_ROWS, Findings, Mistake
from banbury.reports.style import STYLE
from banbury.weighing import Weighing

MATRIX = 30  # classes up to which a confusion matrix can be read
MANY = 8  # classes from which it is set small
CLASSES = 100  # rows of a table of classes
COLUMNS = 15  # of the model that are shown at once
ALL_COLUMNS = 300  # and when asked for
UPRIGHT = 8  # classes up to which the labels of the confusion matrix stand upright
SHAPES = 12  # pictures of columns that are shown at once, and at all
MOST_SHAPES = 60
LEAST_PAIR = 0.25  # decibans on average, below which a pair of columns has no picture: a sixteenth more or less
SHAPE_CLASSES = 6  # classes that have pictures, if there are more than two
CONFUSED = 15  # pairs of classes that are named
CARDS = 24  # classes up to which the telling values of all are shown at once
FIRST_CARDS = 12  # how many of more
REASONS = 3  # values that a mistake is put down to
TEXT = 1_200  # characters of a mistake's text, and bars
BARS = 12
DEEPEST = 0.5  # colour of a full cell
HOWS = {
    "mle": "maximum likelihood: plain counting, where zeros stay zero",
    "map": "the mode of the posterior",
    "mean": "the mean of the posterior",
    "predictive": "predictive: parameters integrated out",
    "gibbs": "one sample of the parameters from the posterior",
}


def page(findings: Findings, title: str) -> str:
    """The whole file."""
    sections = [
        *([("next", "What to do next", _next(findings))] if findings.alternatives or findings.next_steps else []),
        ("model", "The model", _model(findings)),
        ("figures", "Cross-validation" if findings.own_rows else "Accuracy", _figures(findings)),
        ("confusion", "Confusion", _confusion(findings)),
        ("calibration", "Calibration", _calibration(findings)),
        ("learning", "Learning curve", _learning(findings)),
        *([("shapes", "What the model has learned", shapes)] if (shapes := _shapes(findings)) else []),
        ("telling", "What separates the classes", _telling(findings)),
        ("mistakes", "The worst mistakes", _mistakes(findings)),
        ("pairs", "Pairs that break independence", _pairs(findings)),
    ]
    return whole(title, _summary(findings), sections)


def whole(title: str, summary: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """A file of sections: of each its name, heading and text."""
    links = "".join(f'<a href="#{name}">{heading}</a>' for name, heading, _ in sections)
    body = "".join(f'<section id="{name}"><h2>{heading}</h2>{text}</section>' for name, heading, text in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{safe(title)}</title>'
        f"<style>{STYLE}</style>{NOTEBOOK_STYLE}</head>\n"
        f"<body><header><h1>{safe(title)}</h1>{summary}<nav>{links}</nav></header>\n"
        f"<main>{body}</main>\n"
        f"<footer>Made by Banbury {__version__}. This file is complete: nothing in it is loaded from elsewhere.</footer>"
        "</body></html>\n"
    )


# Pieces --------------------------------------------------------------------------------------------------------------


def _name_tag(value: Any) -> str:
    return f'<span class="name">{safe(_shorten(value))}</span>'


def _shorten(value: Any, most: int = 60) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _breakable(html: str) -> str:
    """May go on to the next line after these, as names of columns are long."""
    return html.replace("_", "_<wbr>").replace("/", "/<wbr>")


def _element(name: str, text: str, kind: str = "") -> str:
    return f'<{name} class="{kind}">{text}</{name}>' if kind else f"<{name}>{text}</{name}>"


_paragraph = partial(_element, "p")
_cell = partial(_element, "td")
_number = partial(_cell, kind="number")


def _table(head: Sequence[str], rows: Iterable[str], numbers: Sequence[int] = ()) -> str:
    cells = "".join(_element("th", name, "number" * (i in numbers)) for i, name in enumerate(head))
    return f'<div class="box"><table><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _row(name: Any, *cells: str) -> str:
    return f"<tr><th>{_breakable(safe(_shorten(name)))}</th>{''.join(cells)}</tr>"


def _bar_cell(share: float, text: str, kind: str = "meter") -> str:
    """A bar as long as a share of the whole, and its figure."""
    width = 100 * min(max(share, 0.0), 1.0)
    return f'<td class="bars"><span class="{kind}"><i style="width:{width:.1f}%"></i></span>{text}</td>'


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>"


def _long_table(
    head: Sequence[str], rows: Sequence[str], what: str, numbers: Sequence[int] = (), shown: int = 12, n: int = 0
) -> str:
    """A table, of which what is beyond the first rows is folded away; ``n`` is how many rows there would be in all."""
    more = _more(n - len(rows), what)
    if len(rows) <= shown + 3:
        return _table(head, rows, numbers) + more
    rest = _details(many(len(rows) - shown, "more " + what), _table(head, rows[shown:], numbers))
    return _table(head, rows[:shown], numbers) + rest + more


def _more(n: int, what: str) -> str:
    return _paragraph(f"… and {many(n, 'more ' + what)}", "soft") if n > 0 else ""


def _weight(rows: float) -> str:
    return f"{rows:,.12g}" if float(rows).is_integer() else f"{rows:,.6g}"


# Summary --------------------------------------------------------------------------------------------------------------


def _summary(findings: Findings) -> str:
    result = findings.validation
    often = int(np.bincount(result.truth, weights=result.weights, minlength=len(result.classes)).argmax())
    target = findings.model.schema.target
    about = f" for {_name_tag(target)}" if target else ""
    what = "Naive Bayes" if findings.model.weighing is None else "Weighed evidence"
    judged = "each predicted by a model that had not seen it" if findings.own_rows else "predicted by this model"
    lead = (
        f"{what}{about}: {many(len(result.classes), 'class')} and "
        f"{many(len(findings.model.schema.features), 'column')}. Of {many(findings.n_rows, 'row')}, {judged}, "
        f"<b>{result.accuracy.value:.1%}</b> are correct; always answering "
        f"{_name_tag(findings.name_class(result.classes[often]))} would be correct for {result.majority:.1%}."
    )
    return _lead_and_tiles(lead, _tiles(findings))


def _lead_and_tiles(lead: str, figures: Iterable[tuple[str, str, str]]) -> str:
    """What stands first, and figures with their names and notes."""
    tile_texts = (f"<span>{name}</span><b>{value}</b><span>{note}</span>" for name, value, note in figures)
    tiles = "".join(f'<div class="tile">{tile}</div>' for tile in tile_texts)
    return f'{_paragraph(lead, "lead")}<div class="tiles">{tiles}</div>'


def _tiles(findings: Findings) -> Iterator[tuple[str, str, str]]:
    """Each figure with its name, and what it is to be held against."""
    figures = findings.validation
    error = figures.accuracy.error
    n_classes = len(figures.classes)
    one = "one fold" if findings.own_rows else "on these rows"
    yield "accuracy", f"{figures.accuracy.value:.2%}", one if error is None else f"± {100 * error:.2f} over folds"
    yield "log loss", f"{figures.log_loss:.4f}", f"guessing: {log(n_classes):.4f}"
    guessing = 0.25 if n_classes == 2 else 1 - 1 / n_classes
    yield "Brier score", f"{figures.brier:.4f}", f"guessing: {guessing:.4f}"
    yield "macro F1", f"{figures.macro_f1:.4f}", "best: 1"
    if "auc" in (measures := figures.to_dict()):
        yield "AUC", f"{measures['auc']:.4f}", "guessing: 0.5"
    yield "calibration error", f"{figures.calibration_error:.4f}", "honest: 0"


# What to do next ------------------------------------------------------------------------------------------------------


def _next(findings: Findings) -> str:
    """What was measured to help, and how good everything was that was tried."""
    steps = "".join(f"<li>{safe(step)}</li>" for step in findings.next_steps)
    none = _paragraph("None of the alternatives tried is clearly better.")
    tried = "" if findings.alternatives is None else _table_of_alternatives(findings, findings.alternatives)
    return (f"<ol>{steps}</ol>" if steps else none) + tried


def _table_of_alternatives(findings: Findings, tried: Alternatives) -> str:
    of = "all there are" if tried.n_rows == findings.n_rows else "stratified by class"
    note = (
        f"Each was tried on the same {tried.folds} folds of {many(tried.n_rows, 'row')}, {of}; the figures above come from "
        f"{findings.n_folds} folds of {many(findings.n_rows, 'row')}."
    )
    least = min(alternative.log_loss for alternative in (tried.now, *tried.others)) or 1.0
    rows = []
    for way in (tried.now, *tried.others):
        error = "" if way.standard_error is None else f" ± {way.standard_error:.4f}"
        how = f"<code>{safe(way.python)}</code> <code>banbury fit {safe(way.option)}</code>" if way.option else ""
        loss = _bar_cell(least / way.log_loss if way.log_loss else 1.0, f"{way.log_loss:.4f}")
        rows.append(_row(way.name, _number(f"{way.accuracy:.4f}{error}"), loss, _cell(how)))
    return _table(["what", "accuracy", "log loss", "how"], rows, (1,)) + _paragraph(note, "soft")


# The model ------------------------------------------------------------------------------------------------------------


def _model(findings: Findings) -> str:
    model = findings.model
    tally = findings.model.tally
    facts = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in _facts(findings))
    priors = model.class_shares.tolist()
    counts = tally.rows.value.tolist()
    class_facts = list(zip(model.classes, counts, priors, strict=True))[:CLASSES]
    rows = [_row(findings.name_class(c), _number(_weight(n)), _bar_cell(p, f"{p:.1%}")) for c, n, p in class_facts]
    classes = _long_table(["class", "rows", "P(class)"], rows, "class", (1,), n=len(model.classes))
    rows = []
    for feature, text in tally.summaries(ALL_COLUMNS):
        family = _shorten(repr(feature.family).removesuffix("()"), 120)
        rows.append(_row(feature.name, _cell(safe(family)), _cell(safe(_shorten(text, 160)), "long")))
    head = ["column", "family", "counted"]
    n_columns = len(tally.schema.features)
    columns = _long_table(head, rows, "column", shown=COLUMNS, n=n_columns)
    return f"<dl>{facts}</dl><h3>Classes</h3>{classes}<h3>Columns</h3>{columns}{_worth(findings)}"


def _worth(findings: Findings) -> str:
    """What the evidence of each column, trend and pair is worth, where it is weighed."""
    weighing = findings.model.weighing
    if not isinstance(weighing, Weighing):
        return ""
    note = "1: evidence as counted; less than 1: other columns repeat it; 0: ignored. "
    note += "Corrections are added to it, even where the weight is 0. " * bool(weighing.weights.strengths)
    note += "A pair adds what it says beyond both columns. "
    note += "A trend is a straight line through a numeric column, in addition to the evidence of its intervals."
    text = ""
    worth = list(weighing.worth().items())
    learned = weighing.weights
    kinds = ["column"] * len(learned.columns) + ["trend"] * len(learned.trends) + ["pair"] * len(learned.pairs)
    kinds += ["column"] * (len(worth) - len(kinds))
    most = max((weight for _, weight in worth), default=0.0) or 1.0
    for what in ("column", "trend", "pair"):
        some = [entry for kind, entry in zip(kinds, worth, strict=True) if kind == what]
        some.sort(key=lambda entry: -entry[1])
        rows = [_row(name, _bar_cell(weight / most, f"{weight:.2f}", "meter wide")) for name, weight in some]
        text += _long_table([what, "weight"], rows[:ALL_COLUMNS], what, shown=COLUMNS, n=len(rows)) if rows else ""
    return f"<h3>Weights of the evidence</h3>{_paragraph(note, 'soft')}{text}"


def _facts(findings: Findings) -> Iterator[tuple[str, str]]:
    model = findings.model
    tally = findings.model.tally
    yield "counted", f"{_weight(float(tally.n_rows))} rows" if tally.n_rows != 1 else "1 row"
    if tally.skipped:
        yield "skipped", f"{many(tally.skipped, 'row')} without a target"
    kinds_of_columns = (f"{in_words(f.family)} {'block' if f.columns else 'column'}" for f in model.schema.features)
    yield "family", safe(", ".join(many(n, name) for name, n in Counter(kinds_of_columns).most_common()))
    if model.schema.left_out:
        left = errors.listed((f"{name} ({why})" for name, why in model.schema.left_out.items()), 20)
        yield "left out", safe(left)
    if model.weighing is None:
        yield "estimation", f"{HOWS[model.choice.how]} (<code>how={model.choice.how!r}</code>)"
        yield "smoothing", f"α = {model.choice.alpha:g} unless a family has its own prior"
    prior = model.class_prior
    if prior is None or isinstance(prior, (int, float)):
        added = "" if prior is None else f", with α = {prior:g} added to each"
        yield "class prior", f"the class frequencies{added}"
    else:
        yield "class prior", "uniform" if isinstance(prior, str) else "given"
    yield "parameters", f"{tally.n_parameters():,}"
    if isinstance(weighing := model.weighing, Weighing):
        yield "weighed", safe(weighing)
        if not weighing.weights.strengths:
            why = ": they did not help on held-out rows" * bool(weighing.weights.losses)
            yield "corrections", f"none (C = 0){why}"
        temperature = weighing.weights.temperature
        yield "temperature", f"{temperature:.3g}" + ": scores are not rescaled" * (temperature == 1.0)
        if twins := [f.name for f in model.schema.features if f.name not in weighing.worth()]:
            yield "not weighed", safe(f"{errors.listed(twins, 20)}: another column repeats it")
        if weighing.is_stale(tally):
            since = "rows have been learned or forgotten since these weights were learned"
            yield "stale", f"{since}; refit relearns them"
    if model.calibration is not None:
        yield "calibration", safe(model.calibration)


# Figures --------------------------------------------------------------------------------------------------------------


def _figures(findings: Findings) -> str:
    result = findings.validation
    if findings.own_rows:
        how = (
            f"{findings.n_folds}-fold cross-validation of {many(findings.n_rows, 'row')}: each fold was scored by a model of "
            "all other rows, obtained exactly by subtraction, with the model’s own schema "
            "and settings"
        )
        how += "." if findings.model.weighing is None else "; its weights were learned again from those rows."
        notes = [how, "These are the rows that the model was trained on."]
    else:
        notes = [
            f"This model predicted {many(findings.n_rows, 'row')}. They are not its training rows, "
            "or only some of them."
        ]
    if findings.unlabelled:
        notes.append(f"{many(findings.unlabelled, 'row')} without a target were ignored.")
    if findings.unknown:
        unknown = errors.listed(quote_class(c, findings.model.target) for c in findings.unknown)
        notes.append(f"The model does not know the classes {safe(unknown)}.")
    if (before := findings.before_calibration) is not None:
        by_others = ", each fold by the other folds" * findings.own_rows
        notes.append(
            f"Probabilities are calibrated{by_others}. Before calibration the log loss was "
            f"{before.log_loss:.4f} and the accuracy {before.accuracy.value:.1%}."
        )
    measures = result.per_class
    names = list(map(findings.name_class, result.classes))
    rows = []
    for c, name in list(enumerate(names))[:CLASSES]:
        mistaken = result.confusion[c].astype(np.float64)
        mistaken[c] = 0.0
        taken = f"{safe(_shorten(names[int(mistaken.argmax())]))} ({_weight(mistaken.max())})" if mistaken.any() else ""
        figures = [f"{x:.4f}" for x in (measures.precision[c], measures.recall[c])]
        f1 = _bar_cell(float(measures.f1[c]), f"{measures.f1[c]:.4f}")
        rows.append(_row(name, *map(_number, figures), f1, _number(_weight(measures.rows[c])), _cell(taken)))
    head = ["class", "precision", "recall", "F1", "rows", "most often mistaken for"]
    table = _long_table(head, rows, "class", (1, 2, 4), 24, len(result.classes))
    return _paragraph(" ".join(notes), "soft") + table


# Confusion ------------------------------------------------------------------------------------------------------------


def _confusion(findings: Findings) -> str:
    table = findings.validation.confusion
    classes = list(map(findings.name_class, findings.validation.classes))
    note = "Rows by true class (down) and predicted class (across); darker cells have a larger share of the class."
    matrix = _paragraph(note, "soft") + _matrix(table, classes) if len(classes) <= MATRIX else ""
    return matrix + (_list_confusions(table, classes) if len(classes) >= MANY else "")


def _matrix(table: Any, classes: Sequence[Any]) -> str:
    head = "".join(f"<th>{safe(_shorten(c))}</th>" for c in classes)
    if len(classes) > UPRIGHT:
        head = "".join(f'<th class="up"><div>{safe(_shorten(c, 30))}</div></th>' for c in classes)
    rows = []
    for c, name in enumerate(classes):
        total = float(table[c].sum()) or 1.0
        cells = ""
        for k, n in enumerate(map(float, table[c])):
            title = f"{_weight(n)} of {_shorten(name)}, {n / total:.1%}, predicted {_shorten(classes[k])}"
            colour = f"rgba(var({'--blue' if c == k else '--orange'}),{DEEPEST * (n / total) ** 0.5:.3f})"
            cells += f'<td style="background:{colour}" title="{safe(title)}">{_weight(n)}</td>' if n else "<td></td>"
        rows.append(f'<tr><th title="{safe(name)}">{safe(_shorten(name, 30))}</th>{cells}</tr>')
    kind = "box matrix many" if len(classes) >= MANY else "box matrix"
    head = f'<tr><th class="corner">true ↓ predicted →</th>{head}</tr>'
    return f'<div class="{kind}"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _list_confusions(table: Any, classes: Sequence[Any]) -> str:
    """The pairs of classes that are taken for one another most often."""
    wrong = np.array(table, dtype=np.float64)
    totals = np.maximum(wrong.sum(axis=1), 1e-300)
    np.fill_diagonal(wrong, 0.0)
    often = np.argsort(-wrong, axis=None, kind="stable")[:CONFUSED]
    rows = []
    for truth, answer in zip(*np.unravel_index(often, wrong.shape), strict=True):
        n = float(wrong[truth, answer])
        if n:
            share = n / float(totals[truth])
            other = _cell(safe(_shorten(classes[answer])))
            bar = _bar_cell(share, f"{share:.1%}", "meter wrong")
            rows.append(_row(classes[truth], other, _number(_weight(n)), bar))
    if not rows:
        return _paragraph("No class was mistaken for another.")
    return "<h3>Most frequent confusions</h3>" + _table(["true class", "given", "rows", "of the class"], rows, (2,))


# Calibration and learning ---------------------------------------------------------------------------------------------


def _figure(caption: str, chart: str, keys: Sequence[str] = ()) -> str:
    kinds = zip(charts.KINDS, keys, strict=False)
    key = "".join(f'<span class="key"><i class="{kind}"></i>{safe(name)}</span>' for kind, name in kinds)
    return f"<figure><figcaption>{caption}{key}</figcaption>{chart}</figure>"


def _calibration(findings: Findings) -> str:
    curves = findings.reliabilities
    curve = next(iter(curves.values()))
    keys = list(curves) if len(curves) > 1 else []
    drawn = _figure("Accuracy by confidence", charts.calibration(curves), keys)
    drawn += _figure("Confidence", charts.confidence(curve))
    sure, right = (float(rates @ curve.rows / curve.rows.sum()) for rates in (curve.confidence, curve.accuracy))
    how = "overconfident" if sure > right else "underconfident"
    gap = (
        f"The model was {how} by {100 * abs(sure - right):.1f} points: on average "
        if abs(sure - right) >= 0.0005
        else "On average "
    )
    text = f"{gap}{sure:.1%} confident and {right:.1%} correct. "
    text += "On the dashed line, confidence equals accuracy; the whiskers are 95 % intervals."
    if keys:
        text += " The second curve shows the probabilities before calibration."
    elif sure - right > 0.02:
        text += " To correct this, see <code>bb.calibrate</code>."
    return f'{_paragraph(text)}<div class="charts">{drawn}</div>'


def _learning(findings: Findings) -> str:
    if (curve := findings.learning_curve) is None:
        return _paragraph(f"Not drawn: {safe(findings.why_no_curve)}.")
    verdict = ""  # whether more rows would help, as far as the last doubling tells
    if findings.more_rows is not None:
        first, last, gain, _ = findings.more_rows
        verdict = f"From {first:,} to {last:,} rows accuracy changed by {100 * gain:+.1f} points.".replace("-", "−")
    text = f"{many(curve.n_test, 'row')} of {curve.n_rows:,} were held out; the model learned from a growing number of the others"
    repeats = len(curve.accuracy)
    text += f", {repeats} times; the band is the standard error. {verdict}" if repeats > 1 else f". {verdict}"
    key = '<span class="key"><i class="level"></i>always the most frequent class</span>'
    caption = f"Accuracy{key if charts.majority_is_near(curve) else ''}"
    log_loss = "Log loss" if findings.before_calibration is None else "Log loss, before calibration"
    drawn = _figure(caption, charts.accuracy_curve(curve)) + _figure(log_loss, charts.log_loss_curve(curve))
    return f'{_paragraph(text + _sample(findings))}<div class="charts">{drawn}</div>'


def _sample(findings: Findings) -> str:
    sample = f" Measured on a stratified sample of {findings.n_sampled:,} rows, because more than {MOST_ROWS:,} would take long."
    return sample if findings.n_sampled < findings.n_rows else ""


# What it has learned --------------------------------------------------------------------------------------------------


def _shapes(findings: Findings) -> str:
    """The evidence of every column, those that tell most first; of several classes each against all others."""
    groups = [(label, _shape_figures(shapes)) for label, shapes in shapes_by_class(findings.model, SHAPE_CLASSES)]
    if not any(text for _, text in groups):
        return ""
    if len(groups) == 1:
        [(label, drawn)] = groups
        return _paragraph(_shape_note(*map(findings.name_class, (label, findings.model.classes[0]))), "soft") + drawn
    drawn = "".join(
        f"<details{' open' * (k == 0)}><summary>{_name_tag(findings.name_class(label))}</summary>{text}</details>"
        for k, (label, text) in enumerate(groups)
    )
    return _paragraph(_shape_note("a class", "all other classes together"), "soft") + drawn


def _shape_note(label: str, other: str) -> str:
    text = f"The evidence of every value for {safe(_shorten(label))} against {safe(_shorten(other))}, in decibans "
    text += "(10 are odds of ten to one). "
    text += "Lines and bands are 95 % intervals. The strip under a numeric column shows where the rows are, and the dot at its "
    return text + "right end is the evidence of a missing value. The column with the largest mean evidence comes first."


def _shape_figures(shapes_of_columns: Sequence[Shape]) -> str:
    shapes = [shape for shape in shapes_of_columns if shape.kind != "pairs" or shape.importance >= LEAST_PAIR]
    figures = [
        _figure(f'{safe(_shorten(s.feature))} <span class="key">{charts.importance(s)}</span>', charts.shape(s))
        for s in shapes
    ]
    if not figures:
        return ""
    folded_html = f'<div class="charts shapes">{"".join(figures[SHAPES:MOST_SHAPES])}</div>'
    shown_html = f'<div class="charts shapes">{"".join(figures[:SHAPES])}</div>'
    hidden = len(shapes_of_columns) - len(shapes)
    hidden_pairs = f"{many(hidden, 'more pair')} of columns, with at most {LEAST_PAIR:g} decibans on average, not drawn"
    note = _paragraph(hidden_pairs, "soft") if hidden else ""
    return (
        shown_html
        + (_details(many(len(figures) - SHAPES, "more picture"), folded_html) if len(figures) > SHAPES else "")
        + note
    )


# What tells -----------------------------------------------------------------------------------------------------------


def _telling(findings: Findings) -> str:
    columns = _information(findings) if len(findings.diagnosis.telling) > 1 else ""
    note = "How many times more probable a value is in the class than in all other classes together, most informative first."
    cards = [_card(findings.informative, label) for label in findings.informative.ratios]
    first = CARDS if len(cards) <= CARDS else FIRST_CARDS
    shown, rest = (f'<div class="cards">{"".join(some)}</div>' for some in (cards[:first], cards[first:]))
    shown += _details(many(len(cards) - first, "more class"), rest) if len(cards) > first else ""
    shown += _more(len(findings.model.classes) - len(cards), "class")
    aside = _paragraph(safe(findings.informative.note), "soft") if findings.informative.note else ""
    return f"{columns}<h3>Class by class</h3>{_paragraph(note, 'soft')}{shown}{aside}"


def _information(findings: Findings) -> str:
    """What each column tells about the class, by itself."""
    diagnosis = findings.diagnosis
    most = max((t.bits for t in diagnosis.telling), default=0.0) or 1.0
    rows = []
    for t in diagnosis.telling[:ALL_COLUMNS]:
        words = safe(", ".join(map(printable, list(t.words)[:8])))
        rows.append(_row(t.feature, _bar_cell(t.bits / most, f"{t.bits:.3f}", "meter wide"), _cell(words, "long")))
    head = ["column", "bits about the class", "its words"]
    note = f"How many of the {diagnosis.entropy:.3f} bits of the class each column provides by itself"
    if diagnosis.blocks:
        note += ", and each block of columns together"
    blocks = {f.name for f in findings.model.schema.features if f.columns}
    if worded := [t.feature in blocks for t in diagnosis.telling if t.words]:
        by = ["a text, by its most informative word"] * (not all(worded))
        by += ["a block of occurrences, by its most informative column"] * any(worded)
        note += f" ({'; '.join(by)})"
    else:
        head = head[:2]
        rows = [row.replace('<td class="long"></td>', "") for row in rows]
    return _paragraph(f"{note}:") + _long_table(head, rows, "column")


def _card(informative: Informative, label: Any) -> str:
    ratios = sorted(informative.ratios[label], key=lambda ratio: -ratio.ratio)
    rows = ""
    for ratio in ratios:
        share = 100 * min(log(max(ratio.ratio, 1.0)) / log(1000.0), 1.0)
        shade = f"background:linear-gradient(90deg,rgba(var(--blue),.2) {share:.0f}%,transparent {share:.0f}%)"
        value = _breakable(safe(informative.shown(ratio)))
        rows += f'<li style="{shade}"><span>{value}</span><b>{format_ratio(ratio.ratio)} : 1</b></li>'
    list_of_values = f"<ol>{rows}</ol>" if rows else _paragraph("Nothing separates it from the rest.", "soft")
    return f'<div class="card"><h3>{safe(_shorten(name_class(label, informative.target)))}</h3>{list_of_values}</div>'


# Mistakes -------------------------------------------------------------------------------------------------------------


def _mistakes(findings: Findings) -> str:
    if not findings.n_mistakes:
        return _paragraph("None: every row was predicted correctly.")
    if not findings.mistakes:
        return _paragraph(f"{many(findings.n_mistakes, 'row')} were predicted incorrectly; none is shown.")
    which = "The only one."
    subject = "It is"
    if findings.n_mistakes > 1:
        which = f"Of {findings.n_mistakes:,}, the ones where the true class was least probable."
        subject = "Each is"
    by = (
        "explained by the model of its fold, which has not seen the row"
        if findings.own_rows
        else "explained by this model"
    )
    note = f"{which} {subject} {by}: blue is evidence for the prediction, orange for the true class."
    return _paragraph(note, "soft") + "".join(
        _mistake(m, n == 0, findings.model.target) for n, m in enumerate(findings.mistakes)
    )


def _mistake(mistake: Mistake, unfolded: bool, target: str | None) -> str:
    explanation = mistake.explanation
    name = "" if mistake.name is None else f", {safe('/'.join(Path(mistake.name).parts[-2:]))}"
    head = (
        f"{_name_tag(name_class(mistake.truth, target))} mistaken for {_name_tag(name_class(mistake.answer, target))}"
    )
    probability_truth = safe(percent(mistake.probability_truth))
    why = explanation
    if why is not None and why.against == mistake.truth and isfinite(why.decibans):
        probability_truth += f", {why.decibans:,.1f} decibans less"
    about = (
        f"row {mistake.row + 1:,}{name} · predicted class {safe(percent(mistake.probability))}, "
        f"true class {probability_truth}"
    )
    if explanation is not None:  # the values that speak most for the answer
        speaking = [e for e in explanation.evidence if e.decibans > 0][:REASONS]
        names = ("" if e.feature in explanation.texts else f"{e.feature} = " for e in speaking)
        words = [of + printable(e.value) for of, e in zip(names, speaking, strict=True)]
        about += f" · by {safe(', '.join(words))}" if words else ""
    body = "" if explanation is None else evidence.explanation_body(explanation, BARS, TEXT)
    if explanation is None or mistake.truth not in (explanation.winner, explanation.against):
        against = (
            "there is no evidence to compare"
            if explanation is None
            else "the prediction is compared with the runner-up"
        )
        body = _paragraph(f"No row of the true class was in the other folds, so {against}.", "soft") + body
    summary = f'<summary>{head}<span class="soft">{about}</span></summary>'
    return f'<details class="mistake"{" open" * unfolded}>{summary}{body}</details>'


# Pairs ----------------------------------------------------------------------------------------------------------------


def _pairs(findings: Findings) -> str:
    diagnosis = findings.diagnosis
    advice = diagnosis.advice
    if diagnosis.pairs and isinstance(findings.model.weighing, Weighing):
        error = findings.validation.calibration_error
        advice = "This model weighs its evidence, which takes these pairs into account: its confidence differs "
        advice += f"from its accuracy by {100 * error:.1f} points on average."
    note = (
        "Naive Bayes assumes that columns are independent given the class. "
        f"{many(diagnosis.n_pairs, 'pair')} {'was' if diagnosis.n_pairs == 1 else 'were'} compared; "
        f"{'those listed share' if diagnosis.pairs else 'none shares'} more information given the class than chance explains."
    )
    rows = []
    for pair in diagnosis.pairs:
        names = f"{_shorten(pair.first, 28)} / {_shorten(pair.second, 28)}"
        share = f"{pair.share:.0%}" + ' <span class="tag">duplicated</span>' * pair.duplicated
        bar = _bar_cell(pair.share, share)
        n = _number(_weight(pair.rows))
        rows.append(_row(names, _number(f"{pair.bits:.3f}"), bar, n))
    head = ["pair", "bits shared", "of the maximum", "rows"]
    table = _table(head, rows, (1, 3)) if rows else ""
    notes = "".join(_paragraph(safe(note), "soft") for note in diagnosis.notes)
    if idle := diagnosis.uninformative:
        rows = [_row(column.feature, _cell(safe(column.why))) for column in idle[:ALL_COLUMNS]]
        notes += "<h3>Columns without information about the class</h3>"
        notes += _long_table(["column", "why"], rows, "column", n=len(idle))
    return f"{_paragraph(note + _sample(findings))}{_paragraph(safe(advice), 'advice')}{table}{notes}"
