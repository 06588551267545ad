"""Matrices of occurrences again, slow and obvious: row by row, cell by cell."""

import math
from fractions import Fraction

from naive_core import weights_of
from naive_words import Sum, Words

EXACT = 2**53


class Refused(Exception):
    """A cell that cannot be counted: its fault, column and row."""


def counts(x, threshold, skip):
    """How often a column occurs in a row, by the number that stands there; NaN: refused."""
    x = float(x)
    if math.isnan(x):
        return 0.0 if skip else x
    if math.isinf(x):
        return math.nan
    if threshold is None:
        return x
    return 1.0 if x > threshold else 0.0


def fault(x):
    return "missing" if math.isnan(x) else "infinite" if math.isinf(x) else "negative"


def read(rows, threshold, skip, negative=False):
    """What all cells count; raises for the first that cannot."""
    found = [[counts(x, threshold, skip) for x in row] for row in rows]
    for i, row in enumerate(found):
        for j, x in enumerate(row):
            if math.isnan(x) or (x < 0 and not negative):
                raise Refused(fault(float(rows[i][j])), j, i)
    return found


def counted(rows, classes, n_classes, weights=None, whole=True, threshold=None, skip=True):
    """The store of words that have counted the rows, named by their columns; class -1 is left out."""
    words = Words(n_classes)
    cells = read(rows, threshold, skip)
    number, weight = weights_of(weights, whole, len(rows))
    largest = max([x for row in cells for x in row], default=0.0)
    words.real = (
        (weights is not None and not whole)
        or any(x != int(x) for row in cells for x in row)
        or largest * float(sum(weight)) >= EXACT
    )
    for i, (row, c) in enumerate(zip(cells, classes, strict=True)):
        if c < 0:
            continue
        words.texts[c] += Sum(number[i], weight[i])
        for j, x in enumerate(row):
            if x != 0:
                times = int(x) if x == int(x) else 1  # how many occurrences; those of parts are one
                share = Fraction(x * float(weight[i])) if words.real else int(x) * weight[i]
                words.add(f"#{j}", c, Sum(number[i] * times, share), Sum(number[i], weight[i]))
    return words


def scored(rows, weights, constant, threshold=None, skip=True):
    """Per row and class the constant, and what each occurrence of each column adds."""
    cells = read(rows, threshold, skip, negative=True)
    return [
        [
            float(constant[c]) + math.fsum(x * float(w[c]) for x, w in zip(row, weights, strict=True) if x != 0)
            for c in range(len(constant))
        ]
        for row in cells
    ]
