"""Explanations and likelihood ratios as HTML for notebooks, without scripts or external resources.

Evidence for the winner is blue, and evidence against it orange and underlined, which no common colour blindness confuses.
Colours are translucent and text has the page's colour, so that light and dark pages both suit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from banbury.notebooks import AGAINST, FOR, STYLE, safe

# Explanations and ratios are Any, because their modules import this one.
Span = tuple[
    int, int, list[tuple[Any, float]]
]  # start, end, and the words there, each with the evidence of one occurrence

ROWS = 20  # features and words that are listed with a bar
CHARACTERS = 10_000  # of a text that are shown
LONGEST = 40  # characters of a value that are shown
NAMED = 3  # words that a tooltip lists where n-grams overlap
DEEPEST = 0.6  # the opacity of full colour
UNDERLINED = 0.15  # weaker evidence against the winner, as a share of full colour, is not underlined
STRONG = 0.98  # the quantile of the evidence in texts that gets full colour, so that one extreme word does not pale all others

# An explanation ------------------------------------------------------------------------------------------------------


def explanation(why: Any) -> str:
    """Returns an ``Explanation`` (``why``) as HTML: the two classes, the texts with shaded words, and a bar for each
    feature and word.
    """
    return STYLE + explanation_body(why)


def explanation_body(why: Any, rows: int = ROWS, characters: int = CHARACTERS) -> str:
    """Returns an ``Explanation`` (``why``) as HTML without its style sheet, for pages with several explanations. At most
    ``rows`` features and words are listed with a bar, and so many ``characters`` of each text are shown.

    The words of a text cover spans of it; a span has its start, its end and its words, each with the decibans of one
    occurrence. The words are shaded by these.
    """
    winner_percent, against_percent = (safe(percent(share)) for share in (why.probability, why.probability_against))
    winner, against = (safe(name_class(label, why.target)) for label in (why.winner, why.against))
    head = f'<p class="head"><b>{winner}</b> {winner_percent} against <b>{against}</b> {against_percent}</p>'
    spans_by_feature = {
        name: list(_spans(why.evidence, name, min(len(text), characters))) for name, text in why.texts.items()
    }
    # The decibans of each span of all texts.
    weights = (sum(weight for _, weight in words) for spans in spans_by_feature.values() for _, _, words in spans)
    weight_sizes = sorted(abs(weight) for weight in weights if isfinite(weight))
    # The decibans that get full colour.
    full = max(weight_sizes[int(STRONG * (len(weight_sizes) - 1))], 1e-300) if weight_sizes else 1.0
    texts = "".join(
        _text(why, feature, text, spans_by_feature[feature], full, characters) for feature, text in why.texts.items()
    )
    sides = (("", FOR, winner), (" against", AGAINST, against))  # the end of a CSS class, a colour, and a class
    key_attributes = (
        (f'class="key{kind}" style="background:rgba({colour}, .4)"', name) for kind, colour, name in sides
    )
    # The legend of both colours.
    keys = " ".join(f"<span {attributes}>for {name}</span>" for attributes, name in key_attributes)
    legend = f'<p class="note">Evidence in decibans (+10 multiplies the odds by ten): {keys}</p>'
    notes = "".join(f'<p class="note">{safe(note)}</p>' for note in why.notes)
    return f'<div class="banbury">{head}{legend}{texts}{_bars(why, rows)}{notes}</div>'


def _text(why: Any, feature: str, text: str, spans: Sequence[Span], full: float, characters: int) -> str:
    """Returns the text of a feature as HTML, with words shaded by the evidence of each occurrence.

    Args:
        why: The explanation.
        feature: The name of the feature.
        text: Its text.
        spans: The spans of the text that words cover, in order.
        full: The evidence, in decibans, that gets the full colour.
        characters: How many characters of the text to show.
    """
    pieces = []
    position = 0  # where the text goes on after the last span
    for start, end, words in spans:
        pieces.append(safe(text[position:start]) + _shade(text[start:end], words, full))
        position = end
    n_hidden = len(text) - characters
    pieces.append(safe(text[position:characters]) + (f"… and {n_hidden:,} more characters" if n_hidden > 0 else ""))
    name = f'<p class="note">{safe(feature)}</p>' if len(why.texts) > 1 else ""
    return f'{name}<div class="text" dir="auto">{"".join(pieces)}</div>'


def _spans(evidence: Sequence[Any], feature: str, size: int) -> Iterator[Span]:
    """Yields the spans of a text of ``size`` characters that words cover, in order: start, end, and the words that
    cover it, each with the evidence of one occurrence. ``evidence`` has the words of all features; those of ``feature``
    count.
    """
    words = [
        (word_evidence, word_evidence.decibans / max(word_evidence.times, 1))
        for word_evidence in evidence
        if word_evidence.feature == feature
    ]
    starts = dict[int, list[int]]()  # by position in the text: the numbers of the words that start there
    ends = dict[int, list[int]]()  # by position: the numbers of the words that end there
    for number, (word, _) in enumerate(words):
        for start, end in word.positions:
            starts.setdefault(start, []).append(number)
            ends.setdefault(end, []).append(number)
    covering = list[int]()  # the numbers of the words that cover the text from ``span_start`` on
    span_start = 0
    for span_end in sorted({*starts, *ends}):
        if span_start >= size:
            return
        if covering:
            yield span_start, min(span_end, size), [words[number] for number in covering]
        for number in ends.get(span_end, ()):
            covering.remove(number)
        covering += starts.get(span_end, [])
        span_start = span_end


def _shade(text: str, words: list[tuple[Any, float]], full: float) -> str:
    """Returns a piece of text as HTML, coloured by the evidence of its words, which are listed in a tooltip. ``words``
    has each word with the decibans of one occurrence; ``full`` is the decibans that get the full colour.
    """
    weight = sum(word_weight for _, word_weight in words)
    strength = min(abs(weight) / full, 1.0) if weight == weight else 0.0  # NaN: infinities of both signs
    colour = FOR if weight > 0 else AGAINST
    class_attribute = ' class="against"' if weight < 0 and strength >= UNDERLINED else ""
    lines = []
    for word, word_weight in sorted(words, key=lambda pair: -abs(pair[1]))[:NAMED]:
        times = f", {word.times} times: {_decibans(word.decibans)}" if word.times > 1 else ""
        lines.append(f"{printable(word.value)}: {_decibans(word_weight)} decibans{times}")
    lines += [f"and {len(words) - NAMED} more"] if len(words) > NAMED else []
    shade = f"background:rgba({colour}, {strength * DEEPEST:.3f})"
    title = "\n".join(lines)
    return f'<span{class_attribute} style="{shade}" title="{safe(title)}">{safe(text)}</span>'


def _bars(why: Any, most: int) -> str:
    """Returns a table of an ``Explanation`` (``why``) as HTML: a row for the prior, each of the ``most`` strongest pieces
    of evidence, the rest together, and the sum.
    """
    listed, summaries = strongest(why.evidence, most)  # a summary is a description, some examples, and decibans
    rows = [(name, "", weight) for name, weight in why.before]
    rows += [(evidence.feature, value(evidence), evidence.decibans) for evidence in listed]
    if {evidence.feature for evidence in why.evidence} == set(why.texts):  # words of one text need not say so
        rows = [(value or name, "", weight) for name, value, weight in rows] if len(why.texts) == 1 else rows
    # The CSS class of each line, with its name, value and decibans.
    lines = [("", row) for row in rows] + [("name", summary) for summary in summaries]
    lines.append(("sum", ("sum", "", why.decibans)))
    longest = max((abs(weight) for _, (_, _, weight) in lines if isfinite(weight)), default=0.0) or 1.0
    table_rows = (f'<tr class="{kind}">{_cells(*line)}{_bar(line[2], longest)}</tr>' for kind, line in lines)
    return f"<table>{''.join(table_rows)}</table>"


def strongest(evidence: Sequence[Any], most: int) -> tuple[Sequence[Any], list[tuple[str, str, float]]]:
    """Returns the ``most`` strongest pieces of evidence, and sums of the rest: common words and everything else, those
    for the winner first, then those against it.

    ``evidence`` is sorted, strongest first. A sum is a description, some examples, and decibans.
    """
    sums = []
    for side, sign in ("for", 1.0), ("against", -1.0):
        rest = [weak_evidence for weak_evidence in evidence[most:] if sign * weak_evidence.decibans > 0]
        if common := [weak_evidence for weak_evidence in rest if weak_evidence.common]:
            summary = f"and {len(common):,} common word{'s' * (len(common) != 1)} {side}"
            words = ", ".join(printable(word.value) for word in common[:3]) + ", …" * (len(common) > 3)
            sums.append((summary, words, sum(word.decibans for word in common)))
        if rest_decibans := [weak_evidence.decibans for weak_evidence in rest if not weak_evidence.common]:
            sums.append((f"and {len(rest_decibans):,} more {side}", "", sum(rest_decibans)))
    return evidence[:most], sums


def value(evidence: Any) -> str:
    """Returns the value of a piece of evidence for people, with how often it occurs if more than once, and whether it
    was never seen.
    """
    times = f" × {evidence.times}" if evidence.times > 1 else ""
    return printable(evidence.value) + times + ("" if evidence.seen else " (never seen)")


def _cells(name: str, value: str, weight: float) -> str:
    """Returns the HTML of three table cells: a name, a value and a weight in decibans."""
    value = f'<td class="value">{safe(value)}</td>'
    return f'<td>{safe(name)}</td>{value}<td class="number">{_decibans(weight)}</td>'


def _bar(weight: float, longest: float) -> str:
    """Returns the HTML of the table cell with the bar of a weight, to the right if it is positive. ``longest`` is the
    weight with the longest bar.
    """
    width_percent = 100.0 if not isfinite(weight) else 100.0 * min(abs(weight) / longest, 1.0)
    bar = f'<i style="width:{width_percent:.1f}%"></i>'
    left, right = ("", bar) if weight > 0 else (bar, "")
    halves = f'<div class="half left">{left}</div><div class="half right">{right}</div>'
    return f'<td class="bar"><div class="track">{halves}</div></td>'


def _decibans(weight: float) -> str:
    """Formats a weight (in decibans) with its sign, and with the signs "−" and "∞"."""
    return format_weight(weight).replace("-", "−").replace("inf", "∞")


def format_weight(weight: float, digits: int = 2) -> str:
    """Formats a weight with its sign and so many ``digits`` after the point; if it rounds to zero, as +0.00."""
    return f"{round(weight, digits) + 0.0:+.{digits}f}"


# Likelihood ratios ---------------------------------------------------------------------------------------------------


def informative(values: Any) -> str:
    """Returns ``values``, an ``Informative``, as HTML: a table of likelihood ratios for each class, side by side if there
    is room.
    """
    tables = ""
    for label, ratios in values.ratios.items():
        value_and_ratio = ((safe(values.shown(ratio)), format_ratio(ratio.ratio)) for ratio in ratios)
        rows = (
            f'<tr><td class="value">{value_text}</td><td class="number">{ratio_text} : 1</td></tr>'
            for value_text, ratio_text in value_and_ratio
        )
        tables += f"<table><caption>{safe(name_class(label, values.target))}</caption>{''.join(rows)}</table>"
    note = "How many times more probable a value is in the class than in all other classes together"
    return f'{STYLE}<div class="banbury"><p class="note">{note}</p><div class="classes">{tables}</div></div>'


# Classes, values and figures -----------------------------------------------------------------------------------------


def name_class(label: Any, target: str | None) -> str:
    """Returns a class (``label``) for people: a number, true or false is named with its target, the column of the
    classes, unless that is None.

    >>> name_class(0, "Survived"), name_class("spam", "folder"), name_class(0, None)
    ('Survived = 0', 'spam', '0')
    """
    return str(label) if target is None or isinstance(label, str) else f"{target} = {label}"


def quote_class(label: Any, target: str | None) -> str:
    """Returns a class (``label``) for use within a sentence: a text in quotes, anything else with ``target``, the column
    of the classes, unless that is None.
    """
    return repr(label) if isinstance(label, str) else name_class(label, target)


def class_and_share(label: Any, target: str | None, probability: float) -> str:
    """Returns a class (``label``) with its probability. ``target`` is the column of the classes, or None.

    >>> class_and_share(0, "Survived", 0.829), class_and_share("spam", None, 0.829)
    ('Survived = 0: 82.9%', "'spam' 82.9%")
    """
    separator = " " if target is None or isinstance(label, str) else ": "
    return f"{quote_class(label, target)}{separator}{percent(probability)}"


def printable(value: Any) -> str:
    """Returns a value on one line, cut if it is longer than ``LONGEST``, and in quotes if it has outer spaces or
    characters that cannot be seen. None is "missing".
    """
    if value is None:
        return "missing"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if text != text.strip() or not text.isprintable():
        text = repr(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def percent(probability: float) -> str:
    """Formats a probability as a percentage; probabilities close to 0 and 1 become ``< 0.1%`` and ``> 99.9%``."""
    if probability < 0.0005:
        return "< 0.1%"
    return "> 99.9%" if probability >= 0.9995 else f"{probability:.1%}"


def format_ratio(ratio: float) -> str:
    """Formats a ratio: with one digit after the point below 10, as a whole number below a million, rounded to a power
    of ten above; infinity as ∞.
    """
    if not isfinite(ratio):
        return "∞"
    if ratio >= 1e6:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"
