"""Where a column of numbers is cut into bins that tell the classes apart: by entropy, until a cut costs more than it saves.

U. Fayyad and K. Irani, *Multi-interval discretization of continuous-valued attributes for classification learning* (1993).
"""

from __future__ import annotations

import numpy as np

from banbury.arrays import Real

EQUAL = 1e-12  # bits per row within which two cuts are equally good


def cuts_of(cells: Real) -> list[int]:
    """The bins before which a cut is made, of rows per bin and class, (bins, classes), in the order of the values."""
    cuts, parts = [], [(0, len(cells))]
    while parts:
        low, high = parts.pop()
        at = _cut(cells[low:high])
        if at is not None:
            cuts.append(low + at)
            parts += [(low, low + at), (low + at, high)]
    return sorted(cuts)


def _cut(cells: Real) -> int | None:
    """Before which bin the cut is that leaves the least entropy, of equals the lowest; None if its description costs more."""
    if len(cells) < 2 or np.count_nonzero(cells.any(axis=0)) < 2:
        return None
    left, right = np.cumsum(cells, axis=0)[:-1], np.cumsum(cells[::-1], axis=0)[::-1][1:]
    rows = float(cells.sum())
    bits = _bits(left) + _bits(right)
    at = int(np.flatnonzero(bits <= bits.min() + EQUAL * rows)[0])
    whole, below, above = cells.sum(axis=0), left[at], right[at]
    saved = float(_bits(whole)) - float(bits[at])
    n_classes = np.count_nonzero(whole)
    subsets = n_classes * np.log2(3.0) + np.log1p(-2.0 * 3.0**-n_classes) / np.log(2.0)  # log2(3^k − 2)
    entropies = _classes_times_entropy(whole) - _classes_times_entropy(below) - _classes_times_entropy(above)
    cost = np.log2(max(rows - 1.0, 1.0)) + subsets - entropies
    return at + 1 if saved > cost else None


def _bits(rows: Real) -> Real:
    """How many bits tell the classes of all these rows: their number times their entropy, over the last axis."""
    return np.asarray(_times_log(rows.sum(axis=-1)) - _times_log(rows).sum(axis=-1))


def _classes_times_entropy(rows: Real) -> float:
    return np.count_nonzero(rows) * float(_bits(rows)) / float(rows.sum())


def _times_log(x: Real) -> Real:
    """x log2 x, 0 for 0."""
    return np.asarray(x * np.log2(np.where(x > 0, x, 1.0)))
