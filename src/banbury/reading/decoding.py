"""Decodes bytes as UTF-8, then in the declared encoding, then as Latin-1, which accepts every byte; converts HTML to text."""

from __future__ import annotations

import codecs
import html
import re
from functools import lru_cache

# Python has codecs that are no character sets: slow on long texts, or with escapes of their own.
NO_CHARSETS = frozenset({"idna", "mbcs", "oem", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})

# Texts in these may be valid UTF-8 by chance, so they are believed before it.
AMBIGUOUS = re.compile(r"utf-?(7|16|32)|iso-?2022|hz", re.IGNORECASE)

MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # in Python's strings no two of them make a character
HALF_A_CHARACTER = "a lone surrogate, which is half a character. Write both halves or remove it"

_META = re.compile(rb"<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
META_WITHIN = 4096  # bytes of a page in which its encoding must be declared
LONGEST_NAME = 64  # characters of an encoding's name


@lru_cache(maxsize=256)
def charset(declared: str) -> str | None:
    """The name of Python's codec for a declared character set; None if there is none."""
    try:
        name = codecs.lookup(declared.strip(" \t\"'")[:LONGEST_NAME]).name
    except (LookupError, ValueError):
        return None
    return None if name.replace("-", "_") in NO_CHARSETS else name


def decode(data: bytes, declared: str | None = None) -> str:
    """The bytes ``data`` as text. Tries UTF-8, the character set ``declared`` (None: unknown) and Latin-1, so it never
    fails.

    >>> decode("Grün".encode()), decode("Grün".encode("latin-1")), decode("Žižek".encode("cp1250"), "windows-1250")
    ('Grün', 'Grün', 'Žižek')
    """
    declared_charset = charset(declared) if declared else None  # None: unknown to Python
    is_ambiguous = declared_charset and AMBIGUOUS.match(declared_charset)  # may look like UTF-8
    for charset_name in [declared_charset, "utf-8"] if is_ambiguous else ["utf-8", declared_charset]:
        try:
            if charset_name is not None:
                return data.decode(charset_name)
        except (LookupError, ValueError):
            pass
    return data.decode("latin-1")


def decode_file(data: bytes, declared: str | None = None) -> str:
    """The text of a whole file with the bytes ``data``, which may begin with the byte-order mark of UTF-16 or UTF-32.
    ``declared``: its character set, None if unknown.
    """
    for mark, charset_name in MARKS:
        if data.startswith(mark):
            try:
                return data.decode(charset_name)
            except UnicodeDecodeError:
                if charset_name == "utf-16":
                    return data.decode(charset_name, "replace")
    return decode(data, declared)


def html_encoding(data: bytes) -> str | None:
    """The encoding that an HTML page with the bytes ``data`` declares, or None. Declared UTF-16 and UTF-32 are ignored,
    since the declaration could not be read.
    """
    declaration = _META.search(data, 0, META_WITHIN)
    name = declaration[1].decode("ascii", "replace") if declaration else ""
    return None if AMBIGUOUS.match(name) and "utf" in name.lower() else name or None


# Elements that stand apart from the text around them. All others, unknown ones too, may stand inside a word.
BLOCKS = frozenset(
    """address area article aside audio base blockquote body br button canvas caption center col colgroup dd details
    dialog dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html
    iframe img input isindex legend li link main map menu meta nav noframes noscript object ol optgroup option p param pre
    script section select style summary svg table tbody td textarea tfoot th thead title tr ul video""".split()
)

_TOO_LONG = re.compile(r"(&#\d{8})\d+")
# Not html.parser, which takes nine times as long. No alternative passes over a ``<``, except to the end of the text, so that the
# time is proportional to the length whatever is in it.
_MARKUP = re.compile(
    r"""<!--(?:-?>|.*?(?:--!?>|\Z))
    | <(script|style)\b[^<>]*+>.*?(?:</\1\b[^<>]*+>|\Z)
    | </?([a-z][^\s/<>]*+)(?:(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+>|[^<>]*+>?)
    | <[!?/][^<>]*+>?
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def html_text(markup: str) -> str:
    """The text of an HTML page that a reader would see, with the title. Accepts any markup.

    >>> html_text("<title>Offer</title><p>V<b>ia</b>gra &amp; more<br>now<!-- hidden --><script>x = '<p>'</script>")
    '\\nOffer\\n\\nViagra & more\\nnow\\n'
    """
    # Group 1 is "script" or "style", group 2 the name of any other element; comments have neither.
    text = _MARKUP.sub(lambda match: "\n" if match[1] or (match[2] or "").lower() in BLOCKS else "", markup)
    # Python refuses to make a number of thousands of digits; no character has more than seven.
    return html.unescape(_TOO_LONG.sub(r"\1", text)) if "&" in text else text
