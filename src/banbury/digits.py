"""Formats numbers with the fewest digits that keep them distinct."""

from __future__ import annotations

from collections.abc import Sequence

LARGEST_WRITTEN_OUT = 1e15  # larger numbers have an exponent


def format_distinctly(numbers: Sequence[float], least: int = 4) -> list[str]:
    """Returns the numbers as texts with the fewest significant digits that keep them distinct, at least ``least`` and one
    after the point.

    >>> format_distinctly([1.5, 2.25])
    ['1.5', '2.25']
    >>> format_distinctly([1700000000001.5, 1700000000002.5])
    ['1700000000001.5', '1700000000002.5']
    """
    texts = list[str]()
    for digits in range(least, 18):
        texts = [_format(number, digits) for number in numbers]
        if len(set(texts)) == len(texts):
            break
    return texts


def _format(number: float, digits: int) -> str:
    """Returns a number as text with ``digits`` significant digits, or more to have one after the point; very large and
    very small numbers have an exponent.
    """
    digits_before_point = len(str(int(abs(number)))) if abs(number) < LARGEST_WRITTEN_OUT else 0
    return f"{number:.{max(digits, digits_before_point + 1)}g}"
