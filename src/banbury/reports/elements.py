"""The elements of a report's page as HTML. All text that comes from data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import log
from typing import Any

from banbury import __version__, errors
from banbury.arrays import Real
from banbury.errors import many
from banbury.labels import LabelModel, LabelWeighing
from banbury.model.explain import Explanation, Informative
from banbury.model.explain.page import explanation_body, format_ratio, name_class
from banbury.model.naive_bayes import Model
from banbury.notebooks import STYLE as NOTEBOOK_STYLE
from banbury.notebooks import safe
from banbury.reports.style import STYLE
from banbury.tally.tally import Tally
from banbury.weighing import Weighing

CURVE_CLASSES = ("one", "two")  # CSS classes of curves
COLUMNS_UNFOLDED = 15  # columns of the model that are listed unfolded
MOST_COLUMNS_LISTED = 300  # most columns of the model that are listed
MOST_CHARACTERS = 1_200  # most characters of a mistake's text
MOST_BARS = 12  # most bars of the evidence of a mistake
HOW_IN_WORDS = {
    "mle": "maximum likelihood: plain counting, where zeros stay zero",
    "map": "the mode of the posterior",
    "mean": "the mean of the posterior",
    "predictive": "predictive: parameters integrated out",
    "gibbs": "one sample of the parameters from the posterior",
}


def html_page(title: str, summary: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """Returns a complete HTML page with links to its sections. ``summary``: the HTML below the title; ``sections``:
    identifier, heading and HTML of each.
    """
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


def name_tag(value: Any) -> str:
    """Returns ``value``, a name of any type, as HTML in bold type, escaped and cut to 60 characters."""
    return f'<span class="name">{safe(shorten(value))}</span>'


def shorten(value: Any, most: int = 60) -> str:
    """Returns ``value``, a name or a cell of any type, as text of at most ``most`` characters."""
    return errors.shortened(value, most)


def breakable(html: str) -> str:
    """Returns HTML in which long column names may break after underscores and slashes."""
    return html.replace("_", "_<wbr>").replace("/", "/<wbr>")


def element(name: str, text: str, kind: str = "") -> str:
    """Returns an HTML element called ``name``. ``text``: its content as HTML; ``kind``: its CSS class."""
    return f'<{name} class="{kind}">{text}</{name}>' if kind else f"<{name}>{text}</{name}>"


paragraph = partial(element, "p")
text_cell = partial(element, "td")
number_cell = partial(text_cell, kind="number")


def html_table(head: Sequence[str], rows: Iterable[str], numeric_columns: Sequence[int] = ()) -> str:
    """Returns an HTML table. ``head``: the headings; ``rows``: its rows as HTML; ``numeric_columns``: the indices of
    its numeric columns.
    """
    # The headings as HTML.
    cells = "".join(element("th", name, "number" * (i in numeric_columns)) for i, name in enumerate(head))
    return f'<div class="box"><table><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def table_row(name: Any, *cells: str) -> str:
    """Returns a table row as HTML: a heading, which is escaped and shortened, and cells, which are HTML."""
    return f"<tr><th>{breakable(safe(shorten(name)))}</th>{''.join(cells)}</tr>"


def bar_cell(share: float, text: str, kind: str = "meter") -> str:
    """Returns a table cell as HTML with a bar, filled by ``share`` (from 0 to 1), and a text. ``kind``: the CSS class
    of the bar.
    """
    # Of the filled part, in percent.
    width = 100 * min(max(share, 0.0), 1.0)
    return f'<td class="bars"><span class="{kind}"><i style="width:{width:.1f}%"></i></span>{text}</td>'


def fold_element(summary: str, content: str) -> str:
    """Returns a folded element as HTML. ``summary``: what is visible; ``content``: the rest; both as HTML."""
    return f"<details><summary>{summary}</summary>{content}</details>"


def long_table(
    head: Sequence[str],
    rows: Sequence[str],
    what: str,
    numeric_columns: Sequence[int] = (),
    shown: int = 12,
    n: int = 0,
) -> str:
    """Returns an HTML table whose rows after the first ``shown`` are folded, unless these are at most three. ``head``:
    the headings; ``rows``: its rows as HTML; ``what``: what a row is called; ``numeric_columns``: the indices of
    numeric columns; ``n``: how many rows there would be in all.
    """
    omitted = more_note(n - len(rows), what)  # a note as HTML
    if len(rows) <= shown + 3:
        return html_table(head, rows, numeric_columns) + omitted
    # HTML, like ``omitted``.
    folded = fold_element(many(len(rows) - shown, "more " + what), html_table(head, rows[shown:], numeric_columns))
    return html_table(head, rows[:shown], numeric_columns) + folded + omitted


def more_note(n: int, what: str) -> str:
    """Returns a note, as HTML, that ``n`` more are not listed; empty if there are none. ``what``: what one of them is
    called.
    """
    return paragraph(f"… and {many(n, 'more ' + what)}", "soft") if n > 0 else ""


def format_weight(n_rows: float) -> str:
    """Returns a number of rows, which weights can make fractional, as text."""
    return f"{n_rows:,.12g}" if float(n_rows).is_integer() else f"{n_rows:,.6g}"


def lead_and_tiles(lead: str, figures: Iterable[tuple[str, str, str]]) -> str:
    """Returns the first sentence and the main figures as HTML. ``figures``: name, figure and note of each."""
    # HTML, like what follows.
    tile_texts = (f"<span>{name}</span><b>{value}</b><span>{note}</span>" for name, value, note in figures)
    tiles = "".join(f'<div class="tile">{tile}</div>' for tile in tile_texts)
    return f'{paragraph(lead, "lead")}<div class="tiles">{tiles}</div>'


def figure(caption: str, chart: str, keys: Sequence[str] = ()) -> str:
    """Returns a figure as HTML with a caption and a legend. ``chart``: an SVG element; ``keys``: the names of the
    curves in the legend.
    """
    curves = zip(CURVE_CLASSES, keys, strict=False)  # the CSS class and the name of each
    legend = "".join(f'<span class="key"><i class="{kind}"></i>{safe(name)}</span>' for kind, name in curves)
    return f"<figure><figcaption>{caption}{legend}</figcaption>{chart}</figure>"


# What both kinds of report show ----------------------------------------------------------------------------------------


def card(informative: Informative, label: Any) -> str:
    """Returns the most informative values of the class ``label`` as an HTML card, the highest ratio first."""
    # Likelihood ratios, each with its value and its column.
    ratios = sorted(informative.ratios[label], key=lambda ratio: -ratio.ratio)
    rows = ""
    for ratio in ratios:
        share = 100 * min(log(max(ratio.ratio, 1.0)) / log(1000.0), 1.0)  # in percent: all of it from 1000 on
        # CSS of the row.
        shade = f"background:linear-gradient(90deg,rgba(var(--blue),.2) {share:.0f}%,transparent {share:.0f}%)"
        value = breakable(safe(informative.shown(ratio)))
        rows += f'<li style="{shade}"><span>{value}</span><b>{format_ratio(ratio.ratio)} : 1</b></li>'
    list_of_values = f"<ol>{rows}</ol>" if rows else paragraph("Nothing separates it from the rest.", "soft")
    return f'<div class="card"><h3>{safe(shorten(name_class(label, informative.target)))}</h3>{list_of_values}</div>'


def measure_cells(measures: Sequence[Real], number: int) -> list[str]:
    """Returns the table cells, as HTML, of the class or label with this number. ``measures``: the precision, recall, F1
    and number of rows, with one entry of each per class or label.
    """
    precision, recall, f1, n_rows = (float(values[number]) for values in measures)
    # The first cells.
    figures = [number_cell(f"{measure:.4f}") for measure in (precision, recall)]
    return [*figures, bar_cell(f1, f"{f1:.4f}"), number_cell(format_weight(n_rows))]


def measures_table(noun: str, rows: Sequence[str], n: int, *more_headings: str) -> str:
    """Returns the table, as HTML, of the measures of each class or label (``noun``), of which there are ``n``.
    ``rows``: those listed, as HTML; ``more_headings``: of further columns.
    """
    head = [noun, "precision", "recall", "F1", "rows", *more_headings]
    return long_table(head, rows, noun, numeric_columns=(1, 2, 4), shown=24, n=n)


def columns_table(tally: Tally) -> str:
    """Returns a table of the columns, with the family of each and what was counted, as HTML."""
    rows = []  # as HTML
    for feature, summary in tally._summaries(MOST_COLUMNS_LISTED):
        family = shorten(repr(feature.family).removesuffix("()"), 120)
        rows.append(table_row(feature.name, text_cell(safe(family)), text_cell(safe(shorten(summary, 160)), "long")))
    n_columns = len(tally.schema.features)
    table = long_table(["column", "family", "counted"], rows, "column", shown=COLUMNS_UNFOLDED, n=n_columns)
    return f"<h3>Columns</h3>{table}"


def fact_list(facts: Iterable[tuple[str, str]]) -> str:
    """Returns a list of facts as HTML. ``facts``: the name and the text, as HTML, of each."""
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in facts)}</dl>"


def estimation_facts(model: Model | LabelModel) -> Iterator[tuple[str, str]]:
    """Yields the name and the text, as HTML, of facts about how an unweighed model is estimated."""
    how = model.choice.how
    yield "estimation", f"{HOW_IN_WORDS[how]} (<code>how={how!r}</code>)"
    yield "smoothing", f"α = {model.choice.alpha:g} unless a family has its own prior"


def staleness_facts(weighing: Weighing | LabelWeighing, tally: Tally) -> Iterator[tuple[str, str]]:
    """Yields a fact, as HTML, if rows were learned or forgotten since the evidence was weighed."""
    if weighing.is_stale(tally):
        yield "stale", "rows have been learned or forgotten since these weights were learned; refit relearns them"


def mistake_element(head: str, description: str, body: str, unfolded: bool) -> str:
    """Returns a mistake as HTML. ``head``: what was mistaken; ``description``: the row; ``body``: the explanation,
    which is visible at first if ``unfolded``.
    """
    summary = f'<summary>{head}<span class="soft">{description}</span></summary>'
    return f'<details class="mistake"{" open" * unfolded}>{summary}{body}</details>'


def explanation_element(explanation: Explanation | None) -> str:
    """Returns an explanation with its strongest evidence as HTML; empty if there is none."""
    return "" if explanation is None else explanation_body(explanation, MOST_BARS, MOST_CHARACTERS)
