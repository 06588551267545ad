"""Digits: numbers written in as few of them as tell one from the next."""

from __future__ import annotations

from collections.abc import Sequence

LARGEST_WRITTEN_OUT = 1e15  # larger numbers have an exponent


def told_apart(numbers: Sequence[float], least: int = 4) -> list[str]:
    """The numbers in as few digits as tell them apart; ``least`` at least, and all before the point and one after it.

    >>> told_apart([1.5, 2.25])
    ['1.5', '2.25']
    >>> told_apart([1700000000001.5, 1700000000002.5])
    ['1700000000001.5', '1700000000002.5']
    """
    shown = list[str]()
    for digits in range(least, 18):
        shown = [_in_digits(number, digits) for number in numbers]
        if len(set(shown)) == len(shown):
            break
    return shown


def _in_digits(number: float, digits: int) -> str:
    """A number rounded to so many digits, or to one after the point; very large and very small ones have an exponent."""
    before = len(str(int(abs(number)))) if abs(number) < LARGEST_WRITTEN_OUT else 0
    return f"{number:.{max(digits, before + 1)}g}"
