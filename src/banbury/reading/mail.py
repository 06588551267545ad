"""Mail → text: the chosen headers, the text parts, HTML as text, the names of attachments (RFC 5322, 2045 to 2047, 2231).

Read by hand: the standard library's email package takes four times as long, its time grows with the square of a hostile
header's length, and parts nested too deep are an error to it. The tests hold the two against each other.
"""

from __future__ import annotations

import binascii
import contextlib
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from banbury.reading.decoding import charset, decode, html_encoding, html_text
from banbury.reading.options import SUBJECT, Headers

DEEPEST = 30  # messages and multiparts within each other
MOST_PARTS = 10_000
LONGEST_MESSAGE = 64 << 20  # bytes; what is beyond in an mbox is left out, and longer files are

# What a message begins with once it has been delivered. A news article, or a letter saved as text, does not.
_DELIVERED = re.compile(
    rb"""(?:Return-Path|Received|Delivered-To|X-Original-To|Envelope-To|Delivery-Date|Authentication-Results|ARC-Seal
    |DKIM-Signature|X-Status|X-Mozilla-Status|X-Gmail-Labels|X-GM-THRID)[ \t]*:""",
    re.IGNORECASE | re.VERBOSE,
)
_POSTMARK = re.compile(rb"From [^\n]{0,320}?\b\d{1,2}:\d\d[^\n]{0,40}?\b(?:19|20)\d\d\b")
_FIELD = re.compile(rb"([!-9;-~]++)[ \t]*+:[ \t]*+([^\n]*+(?:\n[ \t][^\n]*+)*+)(?:\n|\Z)")
_POST = re.compile(
    rb"""(?:(?!From:|Subject:)[!-9;-~]++[ \t]*+:[^\n]*+\n(?:[ \t][^\n]*+\n)*+)*+(?:From|Subject):""", re.IGNORECASE
)
_AFTER_POSTMARK = re.compile(rb">From |[!-9;-~]++[ \t]*+:")
_ENVELOPE = re.compile(rb"(?:>?From [^\n]*\n)+")
_QUOTED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)
_PARAMETER = re.compile(r""";\s*+([^\s=;"]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"?|([^;]*))""", re.DOTALL)
_ENCODED = re.compile(r"=\?([^?\s*]+)(?:\*[^?\s]*)?\?([bq])\?([^?]*)\?=", re.IGNORECASE)
_ENCODED_RUN = re.compile(r"(?:=\?[^?\s]+\?[bq]\?[^?]*\?=)+", re.IGNORECASE)
_BETWEEN_ENCODED = re.compile(r"(?<=\?=)\s+(?==\?)")
_NO_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
_WORD = re.compile(r"\w")


def begins_as_mail(data: bytes) -> bool:
    """Whether a file begins as delivered mail does: with a postmark, or with a header that delivery puts first."""
    return bool(_DELIVERED.match(data)) or begins_as_mbox(data)


def begins_as_post(data: bytes) -> bool:
    """Whether a file begins with headers, From or Subject among them, as a news article does."""
    return _POST.match(data) is not None


def begins_as_mbox(data: bytes) -> bool:
    """Whether a file begins with a postmark and a header after it."""
    postmark = _POSTMARK.match(data)
    return postmark is not None and bool(_AFTER_POSTMARK.match(data, data.find(b"\n", postmark.end()) + 1))


def messages(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The messages of an mbox, whether each was cut off; each begins at a postmark between a blank line and a header."""
    message: list[bytes] = []
    size = 0
    after_blank = True
    postmark = b""
    for line in lines:
        if postmark:
            if _AFTER_POSTMARK.match(line):
                yield from _join_lines(message, size)
                message = []
                size = 0
            else:
                message.append(postmark)
            postmark = b""
        if after_blank and line.startswith(b"From ") and _POSTMARK.match(line):
            postmark = line
            after_blank = False
            continue
        after_blank = line in (b"\n", b"\r\n")
        size += len(line)
        if size <= LONGEST_MESSAGE:
            message.append(line)
    yield from _join_lines([*message, postmark], size)


def _join_lines(lines: list[bytes], size: int) -> Iterator[tuple[bytes, bool]]:
    data = b"".join(lines)
    if data.strip():
        yield _QUOTED_FROM.sub(b"", data) if b">From " in data else data, size > LONGEST_MESSAGE


def message_text(data: bytes, headers: Headers) -> tuple[str, bool]:
    """The text of one message, and whether the message is broken, so that there may have been more.

    >>> message_text(b"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\\nFrom: a@b.org\\n\\nBis bald.", ["subject"])
    ('Grüße\\nBis bald.', False)
    """
    reader = _Reader(headers)
    return reader.message(_lines(data), 0).text(), reader.broken


def message_cells(data: bytes, names: Sequence[str]) -> tuple[list[str | None], list[str], bool]:
    """The value of each of these headers, None where there is none, and the body; what headers there are; whether it is broken.

    The subjects of messages within the message stay in the body.

    >>> message_cells(b"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\\nFrom: a@b.org\\n\\nBis bald.", ["to", "subject"])
    ([None, 'Grüße', 'Bis bald.'], ['subject', 'from'], False)
    """
    reader = _Reader(SUBJECT)
    fields, content = reader.open_message(_lines(data), 0)
    values: dict[str, list[str]] = {name.lower(): [] for name, _ in fields}
    for name, value in fields:
        if name.lower() in names:
            values[name.lower()].append(reader.value(value))
    cells = ["\n".join(values[name]) if name in values else None for name in names]
    return [*cells, content.text()], list(values), reader.broken


def _lines(data: bytes) -> bytes:
    """The message with plain ends of lines."""
    if b"\r" not in data:
        return data
    data = data.replace(b"\r\n", b"\n")
    return data if b"\n" in data else data.replace(b"\r", b"\n")


@dataclass(frozen=True, slots=True)
class _Content:
    """What a part holds: texts in order, and the names of attachments."""

    kind: str
    texts: list[str]
    names: list[str]

    def text(self) -> str:
        return "\n".join(piece for piece in self.texts + self.names if piece)


class _Reader:
    """Reads one message. ``broken`` says that something in it is not as it should be."""

    def __init__(self, headers: Headers) -> None:
        self.keep = headers == "keep"
        self.names = frozenset() if isinstance(headers, str) else frozenset(name.lower() for name in headers)
        self.broken = False
        self.n_parts = 0

    def message(self, data: bytes, depth: int) -> _Content:
        fields, content = self.open_message(data, depth)
        if self.keep:
            chosen = [f"{name}: {self.value(value)}" for name, value in fields]
        else:
            chosen = [self.value(value) for name, value in fields if name.lower() in self.names]
        return _Content(content.kind, chosen + content.texts, content.names)

    def open_message(self, data: bytes, depth: int) -> tuple[list[tuple[str, bytes]], _Content]:
        """The headers of a message, and what it holds."""
        envelope = _ENVELOPE.match(data)
        fields, body = self._fields(data, envelope.end() if envelope else 0)
        self.broken |= not fields and bool(body.strip())
        return fields, self._part(fields, body, depth)

    def _fields(self, data: bytes, start: int) -> tuple[list[tuple[str, bytes]], bytes]:
        """The header fields, and what follows the blank line after them."""
        fields = []
        while one := _FIELD.match(data, start):
            fields.append((one[1].decode("ascii"), one[2]))
            start = one.end()
        if data.startswith(b"\n", start):
            return fields, data[start + 1 :]
        self.broken |= bool(fields) and start < len(data)
        return fields, data[start:]

    def value(self, value: bytes) -> str:
        """A header's value on one line, with its encoded words decoded."""
        return self._words(decode(value.replace(b"\n", b"")).strip())

    def _words(self, text: str) -> str:
        if "=?" not in text:
            return text
        return _ENCODED_RUN.sub(self._decode_words, _BETWEEN_ENCODED.sub("", text))

    def _decode_words(self, run: re.Match[str]) -> str:
        """Encoded words side by side: a character may begin in one and end in the next."""
        pieces: list[tuple[str, bytearray]] = []
        for name, how, text in _ENCODED.findall(run[0]):
            raw = text.encode("utf-8", "surrogatepass")
            data = self._base64(raw) if how in "bB" else binascii.a2b_qp(raw, header=True)
            if pieces and pieces[-1][0] == name.lower():
                pieces[-1][1].extend(data)
            else:
                pieces.append((name.lower(), bytearray(data)))
        return "".join(self._text(bytes(data), name) for name, data in pieces)

    def _part(
        self, fields: list[tuple[str, bytes]], body: bytes, depth: int, otherwise: str = "text/plain"
    ) -> _Content:
        self.n_parts += 1
        if depth > DEEPEST or self.n_parts > MOST_PARTS:
            self.broken = True
            return _Content(otherwise, [], [])
        content_fields = {name.lower(): value for name, value in reversed(fields) if name[:8].lower() == "content-"}
        kind, parameters = self._parameters(content_fields.get("content-type", b""))
        kind = kind if re.fullmatch(r"[^\s/]+/[^\s/]+", kind) else otherwise
        if kind.startswith("multipart/"):
            return self._multipart(kind, parameters.get("boundary", "").rstrip(), body, depth)
        placed, placing = self._parameters(content_fields.get("content-disposition", b""))
        name = self._words(placing.get("filename") or parameters.get("name") or "")
        if kind in ("message/rfc822", "message/global", "message/news"):
            content = self.message(self._bytes(body, content_fields).lstrip(b"\n"), depth + 1)
            return _Content(kind, content.texts, [*content.names, name])
        if not kind.startswith("text/") or (placed == "attachment" and name):
            return _Content(kind, [], [name])
        data = self._bytes(body, content_fields)
        declared = parameters.get("charset")
        if kind in ("text/html", "text/xhtml"):
            return _Content(kind, [html_text(self._text(data, declared or html_encoding(data)))], [name])
        return _Content(kind, [self._text(data, declared)], [name])

    def _text(self, data: bytes, declared: str | None) -> str:
        self.broken |= bool(declared) and charset(declared or "") is None and not data.isascii()
        return decode(data, declared)

    def _multipart(self, kind: str, boundary: str, body: bytes, depth: int) -> _Content:
        parts = self._divide(body, boundary.encode("utf-8", "surrogatepass")) if boundary else []
        if not parts:
            self.broken = True
            return _Content(kind, [decode(body)], [])
        otherwise = "message/rfc822" if kind == "multipart/digest" else "text/plain"
        contents = [self._part(*self._fields(part, 0), depth + 1, otherwise) for part in parts]
        names = [name for content in contents for name in content.names]
        if kind == "multipart/alternative":  # one text in several forms: the plain one, if it has words
            plain = [content for content in contents if content.kind == "text/plain"]
            contents = [content for content in plain if any(map(_WORD.search, content.texts))] or contents
        return _Content(kind, [text for content in contents for text in content.texts], names)

    def _divide(self, body: bytes, boundary: bytes) -> list[bytes]:
        """The parts between the lines that are the boundary; none if there is no such line."""
        parts = list[bytes]()
        line = b"--" + boundary
        begin = -1
        at = 0 if body.startswith(line) else body.find(b"\n" + line) + 1 or -1
        while at >= 0 and len(parts) < MOST_PARTS:
            end = body.find(b"\n", at)
            rest = body[at + len(line) : end if end >= 0 else len(body)].rstrip(b" \t")
            if rest in (b"", b"--"):
                if begin >= 0:
                    parts.append(body[begin : max(at - 1, begin)])
                begin = end + 1 if end >= 0 else len(body)
                if rest and parts:
                    return parts
            at = body.find(b"\n" + line, max(at, begin - 1)) + 1 or -1
        self.broken = True
        return [*parts, body[begin:]] if begin >= 0 else parts

    def _parameters(self, value: bytes) -> tuple[str, dict[str, str]]:
        """``text/plain; charset=utf-8`` as its first word in lower case, and its parameters by name."""
        text = decode(value.replace(b"\n", b""))
        first = " ".join(text.partition(";")[0].lower().split()[:1])
        if ";" not in text:
            return first, {}
        parameters = dict[str, str]()
        pieces = dict[str, dict[int, tuple[bool, str]]]()
        for name, quoted, plain in _PARAMETER.findall(text):
            content = re.sub(r"\\(.)", r"\1", quoted) if quoted else plain.strip()
            stem, star, number = name.lower().partition("*")
            if star:
                place = int(digits) if (digits := number.rstrip("*")).isdecimal() and len(digits) < 5 else 0
                pieces.setdefault(stem, {}).setdefault(place, (name.endswith("*"), content))
            else:
                parameters.setdefault(stem, content)
        return first, parameters | {name: self._join_pieces(places) for name, places in pieces.items()}

    def _join_pieces(self, pieces: dict[int, tuple[bool, str]]) -> str:
        """A parameter in numbered pieces, some percent-encoded; the first names their character set (RFC 2231)."""
        name = ""
        data = b""
        for place in sorted(pieces):
            encoded, text = pieces[place]
            if encoded and place == 0 and text.count("'") >= 2:
                name, _, text = text.split("'", 2)
            data += urllib.parse.unquote_to_bytes(text) if encoded else text.encode("utf-8", "surrogatepass")
        return self._text(data, name)

    def _bytes(self, body: bytes, content_fields: dict[str, bytes]) -> bytes:
        encoding = content_fields.get("content-transfer-encoding", b"").strip().lower()
        if encoding == b"base64":
            return self._base64(body)
        if encoding == b"quoted-printable":
            return binascii.a2b_qp(body)
        if encoding not in (b"x-uuencode", b"uuencode", b"x-uue", b"uue"):
            return body
        pieces = []
        for line in body.split(b"\n"):
            if line and not line.startswith((b"begin ", b"end")):
                with contextlib.suppress(ValueError):
                    pieces.append(binascii.a2b_uu(line))
        return b"".join(pieces)

    def _base64(self, data: bytes) -> bytes:
        try:
            return binascii.a2b_base64(data)
        except ValueError:
            self.broken = True
        kept = _NO_BASE64.sub(b"", data)
        kept = kept[: -1 if len(kept) % 4 == 1 else None]
        return binascii.a2b_base64(kept + b"=" * (-len(kept) % 4))
