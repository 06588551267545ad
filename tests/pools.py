"""Pools of values, the simplest first, and rows that are drawn from them. What stands in a pool twice is drawn twice as often.

A draw takes Hypothesis longer than a count of the table it is for: a row is one draw, of two bytes for each of its values.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from itertools import chain, cycle, islice, product
from typing import Any

from hypothesis import strategies as st

Pool = tuple[Any, ...]


def mixed(*shares: tuple[int, Pool]) -> Pool:
    """The values of several pools: so many of this one for so many of that."""
    most = max(math.ceil(len(pool) / share) for share, pool in shares)
    return tuple(chain.from_iterable(islice(cycle(pool), share * most) for share, pool in shares))


def rows_from(pools: Sequence[Pool], min_size: int = 0, max_size: int = 8) -> st.SearchStrategy[list[Pool]]:
    """Rows with a value of each of these pools."""
    form = struct.Struct(f">{len(pools)}H")

    def row(drawn: bytes) -> Pool:
        return tuple([pool[i % len(pool)] for pool, i in zip(pools, form.unpack(drawn), strict=True)])

    bits = st.binary(min_size=form.size, max_size=form.size)
    return st.lists(bits, min_size=min_size, max_size=max_size).map(lambda drawn: [row(each) for each in drawn])


def choices(hows: Pool, alphas: Pool, priors: Pool) -> st.SearchStrategy[dict[str, Any]]:
    """What estimate is told."""
    names = ("how", "alpha", "class_prior")
    return st.sampled_from([dict(zip(names, each, strict=True)) for each in product(hows, alphas, priors)])


def texts_of(words: Sequence[str], most: int = 4, each: int = 1331) -> Pool:
    """Texts of no word to ``most`` of them, as many of each length: every short one, and some of the long ones."""
    lengths = [[*product(words, repeat=n)] for n in range(most + 1)]
    return tuple(" ".join(found[13 * i % len(found)]) for found in lengths for i in range(each))


def by_size(numbers: range, divisor: int = 1) -> Pool:
    """Whole numbers or parts of them, those next to 0 first."""
    return tuple(i / divisor if divisor > 1 else i for i in sorted(numbers, key=abs))


NOTHING = (None,)
BOOLEANS = (False, True)
FAR = (1e12, -1e12, 3.7e11)
QUARTERS = by_size(range(-40, 41), 4)
TENTHS = by_size(range(-100, 101), 10)
WORDS = ("a", "b", "c", "ü")
SMALL = by_size(range(-2, 4))
SMALLER = by_size(range(-5, 6))
ANYWHERE = (0.0, 123.456, 1e300, -1e300, 1e-300)
NEW_WORDS = ("a", "new", "")
TIMES = (0, 0, 1, 2, 5)
PARTS = (0.0, 0.0, 1.0, 0.25, 0.1, 3.7)
VOCABULARY = ("ab", "AB", "cd", "x", "ü", "üß", "ab@cd", "Σίσυφος", "ΣΊΣΥΦΟΣ", "中文", "İ")
TEXTS = texts_of(VOCABULARY)
NEW_TEXTS = ("", "new", "ab new ab", "cd, Σίσυφος!", "x\0cd", "\ud800 üß", "😀 中文中文", "שלום ab " * 50)
POSITIVE = (0.05, 0.1, 0.1, 0.25, 1.0, 2.9, 7.5, 40.0)
AMOUNTS = (0.0, 0.1, 0.1, 0.25, 1.0, 2.9, 7.5, 40.0)  # none below 0

WEIGHTS: dict[str, Pool] = {
    "none": (1.0,),
    "whole": (1.0, 0.0, 2.0, 3.0, 4.0, 5.0),
    "fractional": (1.0, 0.5, 4.0, 2**-6, 0.1, 1 / 3, *map(random.Random(0).uniform, [2**-6] * 94, [4.0] * 94)),
    "mixed": (1.0, 0.0, 0.25, 2.0, 0.1),
}
