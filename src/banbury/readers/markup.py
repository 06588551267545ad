"""HTML → text: what a reader would see, and the title. No markup is an error.

One regular expression instead of html.parser, which takes nine times as long. No alternative passes over a ``<``,
except to the end of the text, so that the time is proportional to the length whatever is in it.
"""

from __future__ import annotations

import html
import re

# Elements that stand apart from the text around them. All others, unknown ones too, may stand inside a word.
BLOCKS = frozenset(
    """address area article aside audio base blockquote body br button canvas caption center col colgroup dd details
    dialog dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html
    iframe img input isindex legend li link main map menu meta nav noframes noscript object ol optgroup option p param pre
    script section select style summary svg table tbody td textarea tfoot th thead title tr ul video""".split()
)

_TOO_LONG = re.compile(r"(&#\d{8})\d+")
_MARKUP = re.compile(
    r"""<!--(?:-?>|.*?(?:--!?>|\Z))
    | <(script|style)\b[^<>]*+>.*?(?:</\1\b[^<>]*+>|\Z)
    | </?([a-z][^\s/<>]*+)(?:(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+>|[^<>]*+>?)
    | <[!?/][^<>]*+>?
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def html_text(markup: str) -> str:
    """The text of an HTML page.

    >>> html_text("<title>Offer</title><p>V<b>ia</b>gra &amp; more<br>now<!-- hidden --><script>x = '<p>'</script>")
    '\\nOffer\\n\\nViagra & more\\nnow\\n'
    """
    text = _MARKUP.sub(_separator, markup)
    # Python refuses to make a number of thousands of digits; no character has more than seven.
    return html.unescape(_TOO_LONG.sub(r"\1", text)) if "&" in text else text


def _separator(markup: re.Match[str]) -> str:
    name = markup[2]
    if name is None:
        return "\n" if markup[1] else ""
    return "\n" if name.lower() in BLOCKS else ""
