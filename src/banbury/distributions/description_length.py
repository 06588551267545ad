"""Where columns of numbers are cut into bins that tell the classes apart: by entropy, until a cut costs more than it saves.

U. Fayyad and K. Irani, *Multi-interval discretization of continuous-valued attributes for classification learning* (1993).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from banbury.arrays import Int, Real

EQUAL = 1e-12  # bits per row within which two cuts are equally good


def cuts_of(cells: Real) -> list[int]:
    """The bins before which a cut is made, of rows per bin and class, (bins, classes), in the order of the values."""
    cuts: list[int] = cuts_of_each([cells])[0].tolist()
    return cuts


def cuts_of_each(columns: Sequence[Real]) -> list[Int]:
    """The same of several columns at once: all their parts are cut together, level by level."""
    ends = np.cumsum([0, *map(len, columns)])
    cells = np.concatenate(columns)
    none = np.zeros((1, cells.shape[1]))
    below = np.cumsum(np.concatenate([none, cells]), axis=0)
    bins_below = np.cumsum(np.concatenate([none, cells > 0]), axis=0)
    low, high, made = ends[:-1], ends[1:], [np.zeros(0, dtype=np.int64)]
    while True:
        some = (high - low > 1) & (np.count_nonzero(bins_below[high] > bins_below[low], axis=1) > 1)
        low, high = low[some], high[some]
        if not len(low):
            break
        at = _best(below, bins_below, low, high)
        pays = at >= 0
        low, high, at = low[pays], high[pays], at[pays]
        made.append(at)
        low, high = np.concatenate([low, at]), np.concatenate([at, high])
    cuts = np.sort(np.concatenate(made))
    first = np.searchsorted(cuts, ends)
    return [cuts[a:b] - start for a, b, start in zip(first, first[1:], ends, strict=False)]


def _best(below: Real, bins_below: Real, low: Int, high: Int) -> Int:
    """Before which bin the cut of each part is that leaves the least entropy, of equals the lowest; −1 if it costs more.

    ``below`` has the rows of each class before each bin, ``bins_below`` how many bins have them: of fractions a difference of
    sums may be a little more than nothing.
    """
    places = high - low - 1
    first = np.cumsum(places) - places
    part = np.repeat(np.arange(len(low)), places)
    cuts = np.arange(len(part)) - first[part] + low[part] + 1

    def rows(a: Int, b: Int) -> Real:
        return np.where(bins_below[b] > bins_below[a], below[b] - below[a], 0.0)

    left, right, whole = rows(low[part], cuts), rows(cuts, high[part]), rows(low, high)
    bits, total = _bits(left) + _bits(right), whole.sum(axis=1)
    equals = np.flatnonzero(bits <= (np.minimum.reduceat(bits, first) + EQUAL * total)[part])
    at = equals[np.searchsorted(equals, first)]
    saved = _bits(whole) - bits[at]
    n_classes = np.count_nonzero(whole, axis=1)
    subsets = n_classes * np.log2(3.0) + np.log1p(-2.0 * 3.0**-n_classes) / np.log(2.0)  # log2(3^k − 2)
    entropies = _classes_times_entropy(whole) - _classes_times_entropy(left[at]) - _classes_times_entropy(right[at])
    cost = np.log2(np.maximum(total - 1.0, 1.0)) + subsets - entropies
    return np.where(saved > cost, cuts[at], -1)


def _bits(rows: Real) -> Real:
    """How many bits tell the classes of all these rows: their number times their entropy, over the last axis."""
    return np.asarray(_times_log(rows.sum(axis=-1)) - _times_log(rows).sum(axis=-1))


def _classes_times_entropy(rows: Real) -> Real:
    return np.asarray(np.count_nonzero(rows, axis=-1) * _bits(rows) / rows.sum(axis=-1))


def _times_log(x: Real) -> Real:
    """x log2 x, 0 for 0."""
    return np.asarray(x * np.log2(np.where(x > 0, x, 1.0)))
