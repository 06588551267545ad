"""What this interpreter knows about characters, as tables for the tokeniser.

Which characters make words, and what their lower case is, depends on the version of Unicode. The tokeniser must agree
with ``re`` and ``str.lower`` on every text, so it asks the interpreter it runs in, once per process, when it first
meets a character beyond ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

CODES = 0x110000  # code points of Unicode
WORD = 1 << 21  # the bit of characters that make words
SPACE = 1 << 22  # the bit of white space
DOTTED_I = 0x130
CAPITAL_SIGMA = 0x3A3
FINAL_SIGMA = 0x3C2


def table() -> NDArray[np.uint32]:
    r"""Returns for each code point its lower case (low 21 bits), and whether it is ``\w`` (bit 21) and ``\s`` (bit 22).

    The lower case is that of the character by itself. That of U+0130, the only one of two characters, is given as its
    first, ``i``.

    >>> known = table()
    >>> chr(known[ord("É")] & 0x1FFFFF), bool(known[ord("É")] & WORD), bool(known[ord("\u2028")] & SPACE)
    ('é', True, True)
    """
    text = _text(np.arange(CODES))  # every character
    lower = text.replace(chr(DOTTED_I), "i").lower()
    if len(lower) != CODES:
        raise RuntimeError("in this version of Unicode a character other than U+0130 has a lower case of several")
    is_word = _runs(run for run in re.split(r"\W+", text) if run)
    is_space = ~_runs(text.split())
    return _codes(lower) | is_word * np.uint32(WORD) | is_space * np.uint32(SPACE)


def sigma_context() -> NDArray[np.uint8]:
    """Returns how each code point bears on a capital sigma next to it: 1 if it is cased, 2 if it is looked through, or 0.

    At the end of a word the lower case of Σ is ς: after a cased letter unless a cased letter follows, looking through
    accents, apostrophes and the like. So ς after A and the character says that it is cased or looked through, and ς after
    the character alone that it is cased.

    >>> sigma_context()[[ord("ä"), ord("'"), ord("1")]].tolist()
    [1, 2, 0]
    """
    context = np.zeros(CODES, dtype=np.uint8)
    relevant_codes = np.flatnonzero(_ends_a_word("A", np.arange(CODES)))  # cased or looked through
    context[relevant_codes] = np.where(_ends_a_word(" ", relevant_codes), 1, 2)
    return context


def _ends_a_word(before: str, codes: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Returns for each of these code points whether a capital sigma becomes ς between two things: the character
    ``before`` followed by the code point, and a space.
    """
    test_strings = np.full((len(codes), 4), ord(" "), dtype=np.uint32)  # codes × characters: before, code, Σ, space
    test_strings[:, 0] = ord(before)
    # I replaces U+0130, whose lower case is two characters; spaces replace surrogates, which are slow to decode.
    test_strings[:, 1] = np.where(
        codes == DOTTED_I, ord("I"), np.where(codes // 0x800 == 0xD800 // 0x800, ord(" "), codes)
    )
    test_strings[:, 2] = CAPITAL_SIGMA
    is_final: NDArray[np.bool_] = _codes(_text(test_strings.ravel()).lower()).reshape(-1, 4)[:, 2] == FINAL_SIGMA
    return is_final


def _text(codes: NDArray[np.integer]) -> str:
    """Returns the text of these code points."""
    return codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _codes(text: str) -> NDArray[np.uint32]:
    """Returns the code points of a text, one per character."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32, copy=False)


def _runs(runs: Iterable[str]) -> NDArray[np.bool_]:
    """Returns for each code point whether it is in a run. ``runs``: texts of consecutive characters, from the first to
    the last of the run.
    """
    is_in_run = np.zeros(CODES, dtype=np.bool_)
    for run in runs:
        is_in_run[ord(run[0]) : ord(run[-1]) + 1] = True
    return is_in_run
