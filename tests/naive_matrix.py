"""Matrices of occurrences again, slow and obvious: row by row, cell by cell."""

import math

from naive_words import Words, in_parts, weights_of


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


def counted(rows, classes, n_classes, weights=None, threshold=None, skip=True):
    """The store of words that have counted the rows, named by their columns; class -1 is left out."""
    words = Words(n_classes)
    cells = read(rows, threshold, skip)
    for row, c, weight in zip(cells, classes, weights_of(weights, len(rows)), strict=True):
        if c < 0:
            continue
        words.texts[c] += weight
        for j, x in enumerate(row):
            words.add(f"#{j}", c, weight * in_parts(x), weight)  # of what is less than half a part, nothing
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
