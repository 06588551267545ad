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
    """Renders the two classes, the texts with shaded words, and a bar for each feature and word."""
    return STYLE + explanation_body(why)


def explanation_body(why: Any, rows: int = ROWS, characters: int = CHARACTERS) -> str:
    """Renders the same without its style sheet, for pages with several explanations, with limits for bars and text."""
    first, second = (safe(percent(share)) for share in (why.probability, why.probability_against))
    winner, against = (safe(name_class(label, why.target)) for label in (why.winner, why.against))
    head = f'<p class="head"><b>{winner}</b> {first} against <b>{against}</b> {second}</p>'
    spans = {name: list(_spans(why.evidence, name, min(len(text), characters))) for name, text in why.texts.items()}
    weights = (sum(weight for _, weight in words) for of_text in spans.values() for _, _, words in of_text)
    weight_sizes = sorted(abs(weight) for weight in weights if isfinite(weight))
    full = max(weight_sizes[int(STRONG * (len(weight_sizes) - 1))], 1e-300) if weight_sizes else 1.0
    texts = "".join(_text(why, feature, text, spans[feature], full, characters) for feature, text in why.texts.items())
    sides = (("", FOR, winner), (" against", AGAINST, against))
    coloured = ((f'class="key{kind}" style="background:rgba({colour}, .4)"', name) for kind, colour, name in sides)
    keys = " ".join(f"<span {style}>for {name}</span>" for style, name in coloured)
    legend = f'<p class="note">Evidence in decibans (+10 multiplies the odds by ten): {keys}</p>'
    notes = "".join(f'<p class="note">{safe(note)}</p>' for note in why.notes)
    return f'<div class="banbury">{head}{legend}{texts}{_bars(why, rows)}{notes}</div>'


def _text(why: Any, feature: str, text: str, spans: Sequence[Span], full: float, characters: int) -> str:
    """Renders a text whose words are shaded by the evidence of each occurrence. ``full`` is the evidence that gets the
    full colour.
    """
    shaded = []
    at = 0
    for start, end, words in spans:
        shaded.append(safe(text[at:start]) + _shade(text[start:end], words, full))
        at = end
    n_hidden = len(text) - characters
    shaded.append(safe(text[at:characters]) + (f"… and {n_hidden:,} more characters" if n_hidden > 0 else ""))
    name = f'<p class="note">{safe(feature)}</p>' if len(why.texts) > 1 else ""
    return f'{name}<div class="text" dir="auto">{"".join(shaded)}</div>'


def _spans(evidence: Sequence[Any], feature: str, size: int) -> Iterator[Span]:
    """Yields spans of a text, in order, with the words that cover each and the evidence of one occurrence of each
    word.
    """
    words = [(e, e.decibans / max(e.times, 1)) for e in evidence if e.feature == feature]
    starts = dict[int, list[int]]()
    ends = dict[int, list[int]]()
    for number, (word, _) in enumerate(words):
        for start, end in word.positions:
            starts.setdefault(start, []).append(number)
            ends.setdefault(end, []).append(number)
    open_ = list[int]()
    at = 0
    for cut in sorted({*starts, *ends}):
        if at >= size:
            return
        if open_:
            yield at, min(cut, size), [words[number] for number in open_]
        for number in ends.get(cut, ()):
            open_.remove(number)
        open_ += starts.get(cut, [])
        at = cut


def _shade(text: str, words: list[tuple[Any, float]], full: float) -> str:
    """Renders a stretch of text, coloured by the evidence of its words, which are listed in a tooltip."""
    weight = sum(word_weight for _, word_weight in words)
    strength = min(abs(weight) / full, 1.0) if weight == weight else 0.0
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
    """Renders a table row for the prior, each of the strongest pieces of evidence, the rest together, and the sum."""
    listed, summaries = strongest(why.evidence, most)
    rows = [(name, "", weight) for name, weight in why.before]
    rows += [(e.feature, value(e), e.decibans) for e in listed]
    if {e.feature for e in why.evidence} == set(why.texts):  # words of one text need not say so
        rows = [(value or name, "", weight) for name, value, weight in rows] if len(why.texts) == 1 else rows
    lines = [("", row) for row in rows] + [("name", summary) for summary in summaries]
    lines.append(("sum", ("sum", "", why.decibans)))
    longest = max((abs(weight) for _, (_, _, weight) in lines if isfinite(weight)), default=0.0) or 1.0
    cells = (f'<tr class="{kind}">{_cells(*line)}{_bar(line[2], longest)}</tr>' for kind, line in lines)
    return f"<table>{''.join(cells)}</table>"


def strongest(evidence: Sequence[Any], most: int) -> tuple[Sequence[Any], list[tuple[str, str, float]]]:
    """Returns the strongest evidence, and sums of the rest: first common words, each for and against.

    ``evidence`` is sorted, strongest first. A sum is a description, some examples, and decibans.
    """
    sums = []
    for side, sign in ("for", 1.0), ("against", -1.0):
        rest = [e for e in evidence[most:] if sign * e.decibans > 0]
        if common := [e for e in rest if e.common]:
            summary = f"and {len(common):,} common word{'s' * (len(common) != 1)} {side}"
            words = ", ".join(printable(e.value) for e in common[:3]) + ", …" * (len(common) > 3)
            sums.append((summary, words, sum(e.decibans for e in common)))
        if rest_decibans := [e.decibans for e in rest if not e.common]:
            sums.append((f"and {len(rest_decibans):,} more {side}", "", sum(rest_decibans)))
    return evidence[:most], sums


def value(evidence: Any) -> str:
    """Returns the value of some evidence and how often it occurs."""
    times = f" × {evidence.times}" if evidence.times > 1 else ""
    return printable(evidence.value) + times + ("" if evidence.seen else " (never seen)")


def _cells(name: str, value: str, weight: float) -> str:
    """Renders the cells for a name, a value and a weight."""
    value = f'<td class="value">{safe(value)}</td>'
    return f'<td>{safe(name)}</td>{value}<td class="number">{_decibans(weight)}</td>'


def _bar(weight: float, longest: float) -> str:
    """Renders the cell with the bar of a weight, to the right if it is positive."""
    share = 100.0 if not isfinite(weight) else 100.0 * min(abs(weight) / longest, 1.0)
    bar = f'<i style="width:{share:.1f}%"></i>'
    left, right = ("", bar) if weight > 0 else (bar, "")
    halves = f'<div class="half left">{left}</div><div class="half right">{right}</div>'
    return f'<td class="bar"><div class="track">{halves}</div></td>'


def _decibans(weight: float) -> str:
    """Formats a weight with a minus sign and the sign for infinity."""
    return format_weight(weight).replace("-", "−").replace("inf", "∞")


def format_weight(weight: float, digits: int = 2) -> str:
    """Formats a weight with its sign; if it rounds to zero, as +0.00."""
    return f"{round(weight, digits) + 0.0:+.{digits}f}"


# Likelihood ratios ---------------------------------------------------------------------------------------------------


def informative(result: Any) -> str:
    """Renders a table for each class, side by side if there is room."""
    tables = ""
    for label, ratios in result.ratios.items():
        cells = ((safe(result.shown(ratio)), format_ratio(ratio.ratio)) for ratio in ratios)
        rows = (f'<tr><td class="value">{a}</td><td class="number">{b} : 1</td></tr>' for a, b in cells)
        tables += f"<table><caption>{safe(name_class(label, result.target))}</caption>{''.join(rows)}</table>"
    note = "How many times more probable a value is in the class than in all other classes together"
    return f'{STYLE}<div class="banbury"><p class="note">{note}</p><div class="classes">{tables}</div></div>'


# Classes, values and figures -----------------------------------------------------------------------------------------


def name_class(label: Any, target: str | None) -> str:
    """Returns a class for people: a number, true or false is named with its target.

    >>> name_class(0, "Survived"), name_class("spam", "folder"), name_class(0, None)
    ('Survived = 0', 'spam', '0')
    """
    return str(label) if target is None or isinstance(label, str) else f"{target} = {label}"


def quote_class(label: Any, target: str | None) -> str:
    """Returns a class for use within a sentence, where texts are quoted."""
    return repr(label) if isinstance(label, str) else name_class(label, target)


def class_and_share(label: Any, target: str | None, probability: float) -> str:
    """Returns a class with its probability.

    >>> class_and_share(0, "Survived", 0.829), class_and_share("spam", None, 0.829)
    ('Survived = 0: 82.9%', "'spam' 82.9%")
    """
    separator = " " if target is None or isinstance(label, str) else ": "
    return f"{quote_class(label, target)}{separator}{percent(probability)}"


def printable(value: Any) -> str:
    """Returns a value on one line, cut if it is long, and in quotes if it could not be seen otherwise."""
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
    """Formats a ratio with a reasonable number of digits."""
    if not isfinite(ratio):
        return "∞"
    if ratio >= 1e6:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"
