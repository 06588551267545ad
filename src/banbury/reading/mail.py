"""Mail → text: the chosen headers, the text parts, HTML as text, the names of attachments (RFC 5322, 2045 to 2047, 2231).

Read by hand: the standard library's email package takes four times as long, its time grows with the square of a hostile
header's length, and it fails on deeply nested parts. The tests compare the two.
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
MOST_PARTS = 10_000  # parts of a message that are read
LONGEST_MESSAGE = 64 << 20  # bytes; the rest of a longer message in an mbox is left out, and longer files are skipped

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
    """Whether bytes begin like delivered mail: with an mbox "From " line, or a header that mail servers put first."""
    return bool(_DELIVERED.match(data)) or begins_as_mbox(data)


def begins_as_post(data: bytes) -> bool:
    """Whether bytes begin with headers that include From or Subject, as news articles do."""
    return _POST.match(data) is not None


def begins_as_mbox(data: bytes) -> bool:
    """Whether bytes begin with an mbox "From " line followed by a header."""
    postmark = _POSTMARK.match(data)
    return postmark is not None and bool(_AFTER_POSTMARK.match(data, data.find(b"\n", postmark.end()) + 1))


def messages(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The messages of an mbox file, each with whether it was cut off for its length. ``lines``: the lines of the file.

    A message begins at a "From " line between a blank line and a header.
    """
    message: list[bytes] = []  # the lines of the message that is being read
    size = 0  # its bytes, with those that are left out
    after_blank = True
    from_line = b""  # the line before, if it looked like the beginning of a message
    for line in lines:
        if from_line:
            if _AFTER_POSTMARK.match(line):
                yield from _join_lines(message, size)
                message = []
                size = 0
            else:
                message.append(from_line)
            from_line = b""
        if after_blank and line.startswith(b"From ") and _POSTMARK.match(line):
            from_line = line
            after_blank = False
            continue
        after_blank = line in (b"\n", b"\r\n")
        size += len(line)
        if size <= LONGEST_MESSAGE:
            message.append(line)
    yield from _join_lines([*message, from_line], size)


def _join_lines(lines: list[bytes], size: int) -> Iterator[tuple[bytes, bool]]:
    """Yields the message of these lines with >From unescaped, and whether it was cut off; nothing if it is blank.
    ``size``: its full length in bytes.
    """
    data = b"".join(lines)
    if data.strip():
        yield _QUOTED_FROM.sub(b"", data) if b">From " in data else data, size > LONGEST_MESSAGE


def message_text(data: bytes, headers: Headers) -> tuple[str, bool]:
    """The text of one message with the bytes ``data``, and whether it is broken, so that text may be missing.
    ``headers``: which are read with the text: "keep" for all, "drop" for none, or a list of names.

    >>> message_text(b"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\\nFrom: a@b.org\\n\\nBis bald.", ["subject"])
    ('Grüße\\nBis bald.', False)
    """
    reader = _Reader(headers)
    return reader.message(_lines(data), depth=0).text(), reader.broken


def message_cells(data: bytes, names: Sequence[str]) -> tuple[list[str | None], list[str], bool]:
    """The cells of one message with the bytes ``data``: the value of each header in ``names`` (in lower case), None if
    absent, and the body. Also the names of all headers, and whether the message is broken. Subjects of enclosed
    messages stay in the body.

    >>> message_cells(b"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\\nFrom: a@b.org\\n\\nBis bald.", ["to", "subject"])
    ([None, 'Grüße', 'Bis bald.'], ['subject', 'from'], False)
    """
    reader = _Reader(SUBJECT)
    headers, body = reader.open_message(_lines(data), depth=0)
    values_by_name: dict[str, list[str]] = {name.lower(): [] for name, _ in headers}  # a header may occur twice
    for name, raw_value in headers:
        if name.lower() in names:
            values_by_name[name.lower()].append(reader.value(raw_value))
    cells = ["\n".join(values_by_name[name]) if name in values_by_name else None for name in names]
    return [*cells, body.text()], list(values_by_name), reader.broken


def _lines(data: bytes) -> bytes:
    """The bytes of a message (``data``) with a single line feed at the end of each line."""
    if b"\r" not in data:
        return data
    data = data.replace(b"\r\n", b"\n")
    return data if b"\n" in data else data.replace(b"\r", b"\n")


@dataclass(frozen=True, slots=True)
class _Content:
    """A part of a message: its content type, its texts in order, and the names of its attachments."""

    kind: str
    texts: list[str]
    names: list[str]

    def text(self) -> str:
        """The texts and then the names of attachments, one per line."""
        return "\n".join(piece for piece in self.texts + self.names if piece)


class _Reader:
    """Reads one message. ``broken``: whether something in it is malformed."""

    def __init__(self, headers: Headers) -> None:
        """``headers``: the headers to read with the text, "keep" for all, or a list of names; any other word for none."""
        self.keeps_all_headers = headers == "keep"
        self.header_names = frozenset() if isinstance(headers, str) else frozenset(name.lower() for name in headers)
        self.broken = False
        self.n_parts = 0  # parts read so far

    def message(self, data: bytes, depth: int) -> _Content:
        """The content of a message with the bytes ``data``: the chosen headers, then its text. ``depth``: how many
        messages and multiparts it is nested in.
        """
        fields, content = self.open_message(data, depth)  # the headers as pairs of name and raw value
        if self.keeps_all_headers:
            header_texts = [f"{name}: {self.value(value)}" for name, value in fields]
        else:
            header_texts = [self.value(value) for name, value in fields if name.lower() in self.header_names]
        return _Content(content.kind, header_texts + content.texts, content.names)

    def open_message(self, data: bytes, depth: int) -> tuple[list[tuple[str, bytes]], _Content]:
        """The headers of a message with the bytes ``data``, as pairs of name and raw value, and its content. ``depth``:
        how many messages and multiparts it is nested in.
        """
        envelope = _ENVELOPE.match(data)  # the "From " lines of an mbox, if it begins with any
        fields, body = self._fields(data, envelope.end() if envelope else 0)
        self.broken |= not fields and bool(body.strip())
        return fields, self._part(fields, body, depth)

    def _fields(self, data: bytes, start: int) -> tuple[list[tuple[str, bytes]], bytes]:
        """The header fields in ``data`` from byte ``start`` on as pairs of name and raw value, and the bytes after the
        blank line that ends them.
        """
        fields = []
        while match := _FIELD.match(data, start):  # group 1 is the name, group 2 the value
            fields.append((match[1].decode("ascii"), match[2]))
            start = match.end()
        if data.startswith(b"\n", start):
            return fields, data[start + 1 :]
        self.broken |= bool(fields) and start < len(data)
        return fields, data[start:]

    def value(self, raw: bytes) -> str:
        """The value of a header on one line, with its encoded words decoded. ``raw``: its bytes in the message."""
        return self._words(decode(raw.replace(b"\n", b"")).strip())

    def _words(self, text: str) -> str:
        """The text with its encoded words (RFC 2047) decoded."""
        if "=?" not in text:
            return text
        return _ENCODED_RUN.sub(self._decode_words, _BETWEEN_ENCODED.sub("", text))

    def _decode_words(self, run: re.Match[str]) -> str:
        """The text of adjacent encoded words (``run`` matches them), decoded together, since a character may be split
        between them.
        """
        encoded_texts: list[tuple[str, bytearray]] = []  # a character set, and the bytes of words in it
        for charset_name, encoding, encoded_text in _ENCODED.findall(run[0]):  # encoding: "b" or "q", in any case
            raw = encoded_text.encode("utf-8", "surrogatepass")
            data = self._base64(raw) if encoding in "bB" else binascii.a2b_qp(raw, header=True)  # the decoded bytes
            if encoded_texts and encoded_texts[-1][0] == charset_name.lower():
                encoded_texts[-1][1].extend(data)
            else:
                encoded_texts.append((charset_name.lower(), bytearray(data)))
        return "".join(self._text(bytes(data), charset_name) for charset_name, data in encoded_texts)

    def _part(
        self, fields: list[tuple[str, bytes]], body: bytes, depth: int, default_kind: str = "text/plain"
    ) -> _Content:
        """The content of a part of a message. ``fields``: its headers as pairs of name and raw value; ``body``: the
        bytes after them; ``default_kind``: its content type if they do not give a valid one; ``depth``: how many
        messages and multiparts it is nested in.
        """
        self.n_parts += 1
        if depth > DEEPEST or self.n_parts > MOST_PARTS:
            self.broken = True
            return _Content(default_kind, texts=[], names=[])
        content_fields = {name.lower(): value for name, value in reversed(fields) if name[:8].lower() == "content-"}
        kind, parameters = self._parameters(content_fields.get("content-type", b""))  # such as "text/plain"
        kind = kind if re.fullmatch(r"[^\s/]+/[^\s/]+", kind) else default_kind
        if kind.startswith("multipart/"):
            return self._multipart(kind, parameters.get("boundary", "").rstrip(), body, depth)
        disposition, disposition_parameters = self._parameters(content_fields.get("content-disposition", b""))
        # The name of an attached file; empty if there is none.
        name = self._words(disposition_parameters.get("filename") or parameters.get("name") or "")
        if kind in ("message/rfc822", "message/global", "message/news"):
            content = self.message(self._bytes(body, content_fields).lstrip(b"\n"), depth + 1)
            return _Content(kind, content.texts, [*content.names, name])
        if not kind.startswith("text/") or (disposition == "attachment" and name):
            return _Content(kind, texts=[], names=[name])
        decoded_body = self._bytes(body, content_fields)
        charset_name = parameters.get("charset")
        if kind in ("text/html", "text/xhtml"):
            markup = self._text(decoded_body, charset_name or html_encoding(decoded_body))
            return _Content(kind, [html_text(markup)], [name])
        return _Content(kind, [self._text(decoded_body, charset_name)], [name])

    def _text(self, data: bytes, declared: str | None) -> str:
        """The bytes ``data`` decoded with the declared character set, None or "" if there is none. An unknown one marks
        the message as broken.
        """
        self.broken |= bool(declared) and charset(declared or "") is None and not data.isascii()
        return decode(data, declared)

    def _multipart(self, kind: str, boundary: str, body: bytes, depth: int) -> _Content:
        """The content of a multipart body: all its parts, or of alternatives the plain text if it has words. ``kind``:
        its content type, such as "multipart/mixed"; ``boundary``: the text of the lines between parts; ``depth``: how
        many messages and multiparts it is nested in.
        """
        raw_parts = self._split_parts(body, boundary.encode("utf-8", "surrogatepass")) if boundary else []
        if not raw_parts:
            self.broken = True
            return _Content(kind, texts=[decode(body)], names=[])
        default_kind = "message/rfc822" if kind == "multipart/digest" else "text/plain"  # of parts that give none
        contents = [self._part(*self._fields(raw_part, start=0), depth + 1, default_kind) for raw_part in raw_parts]
        names = [name for content in contents for name in content.names]
        if kind == "multipart/alternative":  # one text in several forms: the plain one, if it has words
            plain_contents = [content for content in contents if content.kind == "text/plain"]
            contents = [content for content in plain_contents if any(map(_WORD.search, content.texts))] or contents
        return _Content(kind, [text for content in contents for text in content.texts], names)

    def _split_parts(self, body: bytes, boundary: bytes) -> list[bytes]:
        """The parts of a body between boundary lines; none if there is no such line."""
        parts = list[bytes]()  # the bytes of each part
        boundary_line = b"--" + boundary
        part_start = -1  # where the current part begins, −1 before the first
        # Where the next boundary line begins, −1 if there is none.
        line_start = 0 if body.startswith(boundary_line) else body.find(b"\n" + boundary_line) + 1 or -1
        while line_start >= 0 and len(parts) < MOST_PARTS:
            line_end = body.find(b"\n", line_start)
            line_tail = body[line_start + len(boundary_line) : line_end if line_end >= 0 else len(body)].rstrip(b" \t")
            if line_tail in (b"", b"--"):
                if part_start >= 0:
                    parts.append(body[part_start : max(line_start - 1, part_start)])
                part_start = line_end + 1 if line_end >= 0 else len(body)
                if line_tail and parts:
                    return parts
            line_start = body.find(b"\n" + boundary_line, max(line_start, part_start - 1)) + 1 or -1
        self.broken = True
        return [*parts, body[part_start:]] if part_start >= 0 else parts

    def _parameters(self, value: bytes) -> tuple[str, dict[str, str]]:
        """The first word of a header such as "text/plain; charset=utf-8" in lower case, and its parameters by name.
        ``value``: the bytes of the header.
        """
        text = decode(value.replace(b"\n", b""))
        main_value = " ".join(text.partition(";")[0].lower().split()[:1])
        if ";" not in text:
            return main_value, {}
        parameters = dict[str, str]()
        # Parameters split into pieces: name → number of the piece → (whether it is percent-encoded, its text).
        numbered_pieces = dict[str, dict[int, tuple[bool, str]]]()
        for name, quoted_value, plain_value in _PARAMETER.findall(text):
            content = re.sub(r"\\(.)", r"\1", quoted_value) if quoted_value else plain_value.strip()
            base_name, asterisk, suffix = name.lower().partition("*")  # such as "filename*0*"
            if asterisk:
                number = int(digits) if (digits := suffix.rstrip("*")).isdecimal() and len(digits) < 5 else 0
                numbered_pieces.setdefault(base_name, {}).setdefault(number, (name.endswith("*"), content))
            else:
                parameters.setdefault(base_name, content)
        return main_value, parameters | {name: self._join_pieces(pieces) for name, pieces in numbered_pieces.items()}

    def _join_pieces(self, pieces: dict[int, tuple[bool, str]]) -> str:
        """The value of a parameter that is split into numbered pieces (RFC 2231). ``pieces``: maps each number to
        whether the piece is percent-encoded, and its text; the first piece names the character set.
        """
        charset_name = ""
        data = b""  # the bytes of the value
        for number in sorted(pieces):
            is_encoded, text = pieces[number]
            if is_encoded and number == 0 and text.count("'") >= 2:
                charset_name, _, text = text.split("'", 2)
            data += urllib.parse.unquote_to_bytes(text) if is_encoded else text.encode("utf-8", "surrogatepass")
        return self._text(data, charset_name)

    def _bytes(self, body: bytes, content_fields: dict[str, bytes]) -> bytes:
        """The bytes of the body of a part with its transfer encoding undone. ``content_fields``: the raw values of its
        content headers, by name in lower case.
        """
        encoding = content_fields.get("content-transfer-encoding", b"").strip().lower()
        if encoding == b"base64":
            return self._base64(body)
        if encoding == b"quoted-printable":
            return binascii.a2b_qp(body)
        if encoding not in (b"x-uuencode", b"uuencode", b"x-uue", b"uue"):
            return body
        decoded_lines = []
        for line in body.split(b"\n"):
            if line and not line.startswith((b"begin ", b"end")):
                with contextlib.suppress(ValueError):
                    decoded_lines.append(binascii.a2b_uu(line))
        return b"".join(decoded_lines)

    def _base64(self, data: bytes) -> bytes:
        """The bytes that ``data`` encodes in base64. If it is malformed, marks the message as broken and decodes its
        valid characters.
        """
        try:
            return binascii.a2b_base64(data)
        except ValueError:
            self.broken = True
        valid_characters = _NO_BASE64.sub(b"", data)
        valid_characters = valid_characters[: -1 if len(valid_characters) % 4 == 1 else None]
        return binascii.a2b_base64(valid_characters + b"=" * (-len(valid_characters) % 4))
