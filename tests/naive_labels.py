"""The slow, obvious twin of labels: one model of yes and no for each, counted anew; thresholds by trying all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any


def log_odds(texts: Sequence[list[str]], sets: Sequence[set[Any]], label: Any, text: list[str], alpha: float) -> float:
    """log P(label | text) / P(not the label | text) of multinomial naive Bayes, one against the rest."""
    words = sorted({word for words in texts for word in words})
    scores = []
    for wanted in (True, False):
        own = [words for words, labels in zip(texts, sets, strict=True) if (label in labels) == wanted]
        counts = Counter(word for words in own for word in words)
        total = sum(counts.values()) + alpha * len(words)
        score = math.log(len(own) / len(texts))
        scores.append(score + sum(math.log((counts[word] + alpha) / total) for word in text if word in words))
    return scores[0] - scores[1]


def f1(given: Sequence[bool], there: Sequence[bool]) -> float:
    right = sum(a and b for a, b in zip(given, there, strict=True))
    both = sum(given) + sum(there)
    return 2 * right / both if both else 0.0


def best_f1(odds: Sequence[float], there: Sequence[bool]) -> float:
    """The highest F1 that any threshold gives."""
    return max(f1([odd >= cut for odd in odds], there) for cut in odds)
