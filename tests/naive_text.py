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
) -> list[str]:
    if not isinstance(text, str):
        return grams([word for word in text if word not in stop_words], " ", shortest, longest)
    if lowercase:
        text = text.lower()
    if characters:
        return grams(list(re.sub(r"\s\s+", " ", text)), "", shortest, longest)
    found = [word for word in re.findall(PATTERNS[pattern], text) if pattern == "word1" or len(word) >= 2]
    return grams([word for word in found if word not in stop_words], " ", shortest, longest)


def grams(words: list[str], between: str, shortest: int, longest: int) -> list[str]:
    return [between.join(words[i : i + n]) for n in range(shortest, longest + 1) for i in range(len(words) - n + 1)]
