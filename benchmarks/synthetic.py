"""Made-up data, the same every time: texts by Zipf's law, and tables of numbers, codes, bits, counts, and words with gaps."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# Texts ----------------------------------------------------------------------------------------------------------------

DOCUMENTS, WORDS, CLASSES = 80_000, 200_000, 20
TOKENS = 150.6  # per document on average: 70 MB in all
CLASS_WORDS = 5_000  # words that a class prefers
SHARE = 0.12  # of a document's words, on average, are drawn from those that its class prefers

LABELS = np.array([f"class{c:02d}" for c in range(CLASSES)])


@functools.cache
def vocabulary(words: int = WORDS) -> tuple[str, ...]:
    """So many different words of two letters and more, the frequent ones short."""
    rng = np.random.default_rng(7)
    spellings: dict[str, None] = {}
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    chance = 1.0 / np.arange(3, 3 + len(letters))
    while len(spellings) < words:
        shortest = 2 + np.log10(1 + len(spellings) / 20)
        lengths = np.maximum(2, (shortest + rng.gamma(2.0, 0.9, 1000)).astype(np.int64))
        text = "".join(rng.choice(letters, lengths.sum(), p=chance / chance.sum()))
        ends = lengths.cumsum()
        spellings |= dict.fromkeys(text[end - n : end] for n, end in zip(lengths, ends, strict=True))
    return tuple(spellings)[:words]


def texts(documents: int, seed: int = 8) -> tuple[list[str], NDArray[np.str_]]:
    """So many documents and their classes. Sentences begin with a capital; commas, full stops and line ends part words."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, CLASSES, documents)
    lengths = np.maximum(1, rng.gamma(2.0, TOKENS / 2, documents)).astype(np.int64)
    total = int(lengths.sum())
    ranks = zipf(rng, WORDS, total)
    share = rng.beta(0.8, 0.8 / SHARE - 0.8, documents)  # some documents say little about their class
    preferred = rng.random(total) < np.repeat(share, lengths)
    special = np.random.default_rng(9).integers(200, WORDS, (CLASSES, CLASS_WORDS))
    preferred_ranks = zipf(rng, CLASS_WORDS, int(preferred.sum()))
    ranks[preferred] = special[np.repeat(classes, lengths)[preferred], preferred_ranks]
    end = rng.random(total)
    form = np.where(end < 0.07, 2, np.where(end < 0.13, 1, 0))  # a full stop, a comma, nothing
    form[1:][form[:-1] == 2] = 3  # a capital after a full stop
    tokens = forms()[form, ranks]
    ends = lengths.cumsum()
    return [" ".join(tokens[a:b]) for a, b in zip(ends - lengths, ends, strict=True)], LABELS[classes]


def zipf(rng: np.random.Generator, n: int, size: int) -> NDArray[np.int64]:
    """Ranks below n; rank r with a chance of about 1 / (r + 1)."""
    return np.minimum(np.exp(rng.random(size) * np.log(n + 1.0)).astype(np.int64) - 1, n - 1)


@functools.cache
def forms() -> NDArray[np.object_]:
    """(4, WORDS): a word alone, before a comma, before a full stop, and at the start of a sentence."""
    plain = vocabulary()
    every = [plain, [w + "," for w in plain], [w + ".\n" for w in plain], [w.capitalize() for w in plain]]
    return np.array(every, dtype=object)


# Tables ---------------------------------------------------------------------------------------------------------------

UP_TO_1000 = tuple(np.geomspace(2, 1000, 15).astype(np.int64).tolist())  # values of each column of codes
Table = tuple[NDArray[np.generic], NDArray[np.int64]]  # rows and classes


def numbers(rows: int, classes: int = 5, scales: int = 4) -> Table:
    """20 normal columns of a few scales, whose means and widths differ a little by class; made without a copy."""
    rng = np.random.default_rng(1)
    y = _classes(rng, rows, classes)
    X = np.empty((rows, 20))
    centres = 0.4 * rng.standard_normal((classes, 20))
    widths = np.exp(rng.standard_normal((classes, 20)) / 4.0)
    for start in range(0, rows, 10_000):
        part = X[start : start + 10_000]
        part_classes = y[start : start + 10_000]
        rng.standard_normal(out=part)
        part *= widths[part_classes]
        part += centres[part_classes]
        part *= 10.0 ** (np.arange(20) % scales)
    return X, y


def codes(rows: int, classes: int = 5, values: Sequence[int] = UP_TO_1000) -> Table:
    """Columns of so many values, leaning by class; the first rows have every value, as CategoricalNB demands."""
    rng = np.random.default_rng(2)
    y = _classes(rng, rows, classes)
    lean = np.exp(0.15 * rng.standard_normal((classes, len(values))))
    X = np.empty((rows, len(values)), dtype=np.int64)
    for start in range(0, rows, 100_000):
        part_classes = y[start : start + 100_000]
        X[start : start + 100_000] = values * rng.random((len(part_classes), len(values))) ** lean[part_classes]
    X[: max(values)] = np.arange(min(max(values), rows))[:, None] % values
    return X, y


def bits(rows: int, classes: int = 5) -> Table:
    """100 columns of 0 and 1, whose chances differ a little by class."""
    rng = np.random.default_rng(3)
    y = _classes(rng, rows, classes)
    chance = np.clip(rng.random(100) + 0.08 * rng.standard_normal((classes, 100)), 0.02, 0.98)
    X = np.empty((rows, 100), dtype=np.uint8)
    for start in range(0, rows, 100_000):
        part_classes = y[start : start + 100_000]
        X[start : start + 100_000] = rng.random((len(part_classes), 100)) < chance[part_classes]
    return X, y


def counts(rows: int, classes: int = 3) -> Table:
    """20 columns of occurrences, three quarters of them 0; doubles, which the peers multiply without converting them."""
    rng = np.random.default_rng(22)
    y = _classes(rng, rows, classes)
    return rng.poisson(0.6 * rng.random((classes, 20))[y]).astype(np.float64), y


def _classes(rng: np.random.Generator, rows: int, classes: int) -> NDArray[np.int64]:
    """Random classes; the first rows have all of them."""
    y = rng.integers(0, classes, rows)
    y[:classes] = np.arange(classes)[:rows]
    return y


NUMERIC = [f"number{j}" for j in range(8)]
WORDY = [f"word{j}" for j in range(8)]
MISSING = 0.02  # of each column


def mixed_table(rows: int) -> pa.Table:
    """Numbers to four decimals and words, leaning by the class, ``side``, with gaps."""
    rng = np.random.default_rng(5)
    labels = np.array(["north", "east", "south", "west"])
    classes = rng.integers(0, len(labels), rows)
    columns: dict[str, pa.Array] = {}
    for name in NUMERIC:
        centre = 0.5 * rng.standard_normal(len(labels))
        values = np.round(50.0 + 10.0 * (centre[classes] + rng.standard_normal(rows)), 4)
        columns[name] = pa.array(values, mask=rng.random(rows) < MISSING)
    for name, n_values in zip(WORDY, np.geomspace(2, 1000, len(WORDY)).astype(np.int64), strict=True):
        lean = np.exp(0.3 * rng.standard_normal(len(labels)))
        chosen = (n_values * rng.random(rows) ** lean[classes]).astype(np.int32)
        words = pa.array([f"{name}-{k:04d}" for k in range(n_values)])
        gaps = pa.array(chosen, mask=rng.random(rows) < MISSING)
        columns[name] = pa.DictionaryArray.from_arrays(gaps, words).cast(pa.string())
    return pa.table(columns | {"side": pa.array(labels[classes])})
