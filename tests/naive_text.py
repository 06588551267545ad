"""Text to tokens again, slow and obvious: what the compiled tokeniser must find."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

PATTERNS = {"word": r"(?u)\b\w\w+\b", "word1": r"\w+", "mail": r"\w+(?:[-.@'+&]\w+)*"}


def tokens(
    text: str | Sequence[str],
    pattern: str = "word",
    lowercase: bool = True,
    characters: bool = False,
    shortest: int = 1,
    longest: int = 1,
    stop_words: Collection[str] = (),
    only: Collection[str] = (),
) -> list[str]:
    if isinstance(text, str):
        text = text.lower() if lowercase else text
        if characters:
            text = list(re.sub(r"\s\s+", " ", text))
        else:
            text = [word for word in re.findall(PATTERNS[pattern], text) if pattern == "word1" or len(word) >= 2]
    words = [word for word in text if word not in stop_words]
    return [gram for gram in grams(words, "" if characters else " ", shortest, longest) if not only or gram in only]


def grams(words: list[str], between: str, shortest: int, longest: int) -> list[str]:
    return [between.join(words[i : i + n]) for n in range(shortest, longest + 1) for i in range(len(words) - n + 1)]


def places(
    text: str | Sequence[str],
    pattern: str = "word",
    lowercase: bool = True,
    characters: bool = False,
    shortest: int = 1,
    longest: int = 1,
    stop_words: Collection[str] = (),
    only: Collection[str] = (),
) -> list[tuple[int, int]]:
    """Where each of these tokens starts and ends, in characters of the text, or in words of those given."""
    if isinstance(text, str):
        lowered = text.lower() if lowercase else text
        written = [i for i, character in enumerate(text) for _ in (character.lower() if lowercase else character)]
        found = re.finditer(r"(?s)\s\s+|." if characters else PATTERNS[pattern], lowered)
        kept = [m for m in found if characters or ((pattern == "word1" or len(m[0]) >= 2) and m[0] not in stop_words)]
        units = [(written[m.start()], written[m.end() - 1] + 1) for m in kept]
    else:
        units = [(i, i + 1) for i, word in enumerate(text) if word not in stop_words]
    every = tokens(text, pattern, lowercase, characters, shortest, longest, stop_words)
    spans = [
        (units[i][0], units[i + n - 1][1]) for n in range(shortest, longest + 1) for i in range(len(units) - n + 1)
    ]
    return [span for token, span in zip(every, spans, strict=True) if not only or token in only]
