"""Made text: words by Zipf's law, documents of twenty classes that differ in the share of their own words."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

DOCUMENTS, WORDS, CLASSES = 80_000, 200_000, 20
TOKENS = 150.6  # per document on average: 70 MB in all
OWN = 5_000  # words a class has of its own, among all others
SHARE = 0.12  # of a document's words, on average, are drawn from its class's own

LABELS = np.array([f"class{c:02d}" for c in range(CLASSES)])


@functools.cache
def vocabulary(words: int = WORDS) -> tuple[str, ...]:
    """So many different words of two letters and more, the frequent ones short."""
    rng = np.random.default_rng(7)
    known: dict[str, None] = {}
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    chance = 1.0 / np.arange(3, 3 + len(letters))
    while len(known) < words:
        shortest = 2 + np.log10(1 + len(known) / 20)
        lengths = np.maximum(2, (shortest + rng.gamma(2.0, 0.9, 1000)).astype(np.int64))
        spelled = "".join(rng.choice(letters, lengths.sum(), p=chance / chance.sum()))
        ends = lengths.cumsum()
        known |= dict.fromkeys(spelled[end - n : end] for n, end in zip(lengths, ends, strict=True))
    return tuple(known)[:words]


def texts(documents: int, seed: int = 8) -> tuple[list[str], NDArray[np.str_]]:
    """So many documents and their classes. Sentences begin with a capital; commas, full stops and line ends part words."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, CLASSES, documents)
    lengths = np.maximum(1, rng.gamma(2.0, TOKENS / 2, documents)).astype(np.int64)
    total = int(lengths.sum())
    ranks = zipf(rng, WORDS, total)
    share = rng.beta(0.8, 0.8 / SHARE - 0.8, documents)  # some documents say little about their class
    own = rng.random(total) < np.repeat(share, lengths)
    special = np.random.default_rng(9).integers(200, WORDS, (CLASSES, OWN))
    ranks[own] = special[np.repeat(classes, lengths)[own], zipf(rng, OWN, int(own.sum()))]
    end = rng.random(total)
    form = np.where(end < 0.07, 2, np.where(end < 0.13, 1, 0))  # a full stop, a comma, nothing
    form[1:][form[:-1] == 2] = 3  # a capital after a full stop
    written = forms()[form, ranks]
    cuts = lengths.cumsum()
    return [" ".join(written[a:b]) for a, b in zip(cuts - lengths, cuts, strict=True)], LABELS[classes]


def zipf(rng: np.random.Generator, n: int, size: int) -> NDArray[np.int64]:
    """Ranks below n; rank r with a chance of about 1 / (r + 1)."""
    return np.minimum(np.exp(rng.random(size) * np.log(n + 1.0)).astype(np.int64) - 1, n - 1)


@functools.cache
def forms() -> NDArray[np.object_]:
    """(4, WORDS): a word as it is, before a comma, before a full stop, and at the start of a sentence."""
    plain = vocabulary()
    every = [plain, [w + "," for w in plain], [w + ".\n" for w in plain], [w.capitalize() for w in plain]]
    return np.array(every, dtype=object)
