"""Parsing: JSON and numbers of a request, checked before anything else sees them."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from banbury import errors

MOST_LEVELS = 32  # of objects and lists inside each other; a request needs five


class Problem(Exception):
    """A request that gets no answer, and why."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        """``status``: the HTTP status; ``detail``: the message; ``headers``: of the response."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers


def parse_json(body: bytes) -> Any:
    """Returns what ``body``, a JSON text in UTF-8, contains.

    Refuses with 400 what is not JSON, and with 422 what is JSON but cannot be kept and sent back unchanged.

    >>> parse_json(b'{"row": [1, 2.5, "a"]}')
    {'row': [1, 2.5, 'a']}
    """
    try:
        text = body.decode("utf-8-sig")
        content = DECODER.decode(text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise Problem(
            400, f"the request body is not valid JSON in UTF-8: {errors.shortened(error, most=120)}."
        ) from None
    _check_depth(content)
    if "\\ud" in text or "\\uD" in text:  # it escapes surrogates
        _check_characters(content)
    return content


def parse_whole_number(text: str, most: int) -> int | None:
    """Returns the number whose decimal digits, after any number of zeros, ``text`` has; None unless it is from 0 to
    ``most``.

    >>> parse_whole_number("007", 10), parse_whole_number("0" * 9_000 + "11", 10), parse_whole_number("-1", 10)
    (7, None, None)
    """
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(most)):  # int() refuses thousands of digits
        return None
    number = int(digits)
    return number if number <= most else None


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the JSON object with these pairs. Raises Problem if a name occurs twice."""
    json_object = dict(pairs)
    if len(json_object) < len(pairs):
        name, frequency = Counter(name for name, _ in pairs).most_common(1)[0]
        raise Problem(
            422, f"an object contains the name {errors.shortened(repr(name))} {frequency} times. Send each name once."
        )
    return json_object


def _parse_integer(digits: str) -> int:
    """Returns the integer with these digits. Raises Problem if a 64-bit float could not hold it."""
    if len(digits) > 300:  # the largest 64-bit float has 309 digits, and int() refuses more than 4,300
        _parse_float(digits)
    return int(digits)


def _parse_float(digits: str) -> float:
    """Returns the float with these digits. Raises Problem if it is infinite."""
    number = float(digits)
    if math.isinf(number):
        raise Problem(
            422,
            f"the number {errors.shortened(digits)} is too large for a 64-bit float. Send one between -1.79e308 and 1.79e308.",
        )
    return number


def _refuse_constant(name: str) -> Any:
    """Raises ValueError for the number ``name``, NaN or Infinity, which JSON does not have."""
    raise ValueError(f"{name} is not a JSON number")


DECODER = json.JSONDecoder(
    object_pairs_hook=_make_object,
    parse_int=_parse_integer,
    parse_float=_parse_float,
    parse_constant=_refuse_constant,
)


def _check_depth(value: Any) -> None:
    """Raises Problem if lists and objects in ``value``, the JSON of a request, are nested too deeply."""
    containers = [value]  # the lists and objects of one level
    for _ in range(MOST_LEVELS):
        containers = [
            child
            for parent in containers
            if type(parent) in (dict, list)
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) in (dict, list)
        ]
        if not containers:
            return
    raise _too_deep()


def _check_characters(value: Any) -> None:
    """Raises Problem if a text in ``value``, the JSON of a request, has half of a surrogate pair, which JSON can escape
    but UTF-8 cannot hold.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise Problem(
            422,
            f"the escape \\u{ord(half):04x} is half of a surrogate pair, not a character. Send both halves, or neither.",
        ) from None


def _too_deep() -> Problem:
    """Returns the error of a request with too many levels of objects and lists."""
    return Problem(422, f"the request is nested too deeply: more than {MOST_LEVELS} levels of objects and lists.")
