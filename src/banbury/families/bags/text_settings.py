"""Checks of the settings of ``bb.Text``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from banbury import errors

PATTERNS = ("word", "word1", "mail")
LONGEST_NGRAM = 5


def is_whole(number: Any) -> bool:
    """Whether a value is a whole number, of Python or of NumPy; True and False are none."""
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def check_choice(setting: str, choice: Any, choices: tuple[str | None, ...]) -> None:
    """Raises unless the value of a setting, ``choice``, is one of its choices."""
    if not (choice is None or isinstance(choice, str)) or choice not in choices:
        raise errors.unknown_choice(setting, choice, choices)


def find_pattern(tokens: Any) -> re.Pattern[str] | None:
    """Returns the regular expression that the setting ``tokens`` is, or None if it is the name of a pattern; raises if
    it is neither.
    """
    if not isinstance(tokens, str) or (tokens not in PATTERNS and re.fullmatch(r"\w*", tokens)):
        raise errors.unknown_choice("tokens", tokens, [*PATTERNS, "a regular expression"])
    if tokens in PATTERNS:
        return None
    try:
        pattern = re.compile(tokens)
    except re.error as problem:
        raise errors.bad_setting("tokens", tokens, f"a regular expression ({problem})") from None
    expected = f"a regular expression with at most one group, the word (this one has {pattern.groups})"
    errors.require(pattern.groups <= 1, "tokens", tokens, expected)
    return pattern


def check_ngrams(ngrams: Any) -> tuple[int, int]:
    """Returns the shortest and longest n-gram; raises unless the setting is a pair of lengths, or the longest, in
    range.
    """
    span = (1, ngrams) if is_whole(ngrams) else tuple(ngrams) if isinstance(ngrams, (tuple, list)) else ()
    fits = len(span) == 2 and all(map(is_whole, span)) and 1 <= span[0] <= span[1] <= LONGEST_NGRAM
    expected = f"(shortest, longest) from 1 to {LONGEST_NGRAM}, or the longest, as in 2 for (1, 2)"
    errors.require(fits, "ngrams", ngrams, expected)
    return int(span[0]), int(span[1])


def _strings_of(setting: str, word_list: Any) -> list[str]:
    """Returns a list of words as Python strings; raises if it is something else. ``setting`` is its name in the
    message.
    """
    english = " (scikit-learn has one for English: sklearn.feature_extraction.text.ENGLISH_STOP_WORDS)"
    expected = "a list of words" + english * (setting == "stop_words")
    is_list = not isinstance(word_list, (str, bytes)) and isinstance(word_list, Iterable)
    errors.require(is_list, setting, word_list, expected)
    words = list(word_list)
    errors.require(all(isinstance(word, str) for word in words), setting, word_list, expected)
    return [str(word) for word in words]


def sort_stop_words(stop_words: Any, lowercase: bool) -> tuple[str, ...] | None:
    """Returns the distinct stop words in order, in lower case if texts are converted to it; None if there are none."""
    words = [] if stop_words is None else _strings_of("stop_words", stop_words)
    return tuple(sorted({word.lower() if lowercase else word for word in words})) or None


def read_word_list(setting: str, word_list: Any, lowercase: bool = False) -> tuple[str, ...] | None:
    """Returns the words of a setting in order, each once; None if there is no list. A list that is a path is a file
    with a word on each line. ``lowercase`` converts words to lower case.
    """
    if word_list is None:
        return None
    words = _lines(word_list) if isinstance(word_list, (str, os.PathLike)) else _strings_of(setting, word_list)
    distinct_words = sorted({word.lower() if lowercase else word for word in words} - {""})
    expected = "a list of at least one word, or a text file with a word on each line"
    errors.require(distinct_words, setting, word_list, expected)
    return tuple(distinct_words)


def _lines(path: str | os.PathLike[str]) -> list[str]:
    """Returns the lines of a text file in UTF-8 or Latin-1, without white space at their ends; raises if it cannot be
    read.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise errors.bad_file(path, "it is not a file of words.")
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as problem:
        raise errors.bad_file(path, getattr(problem, "strerror", None) or str(problem)) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return [line.strip() for line in text.splitlines()]
