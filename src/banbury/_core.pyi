"""The border: arrays in, arrays out, no state; every call releases the GIL.

Shapes: n rows, F features, C classes. ``columns`` is a list of arrays that together hold the F features in order:
a 1-D array is one feature, a 2-D array is one feature per column; any strides; float64, float32, or integers of
8 to 64 bits. ``classes`` holds a class number per row; a row whose class is -1 is passed over. ``weights`` is a
positive number per row or None for ones; ``whole`` says that all of them are whole numbers.

A count of rows comes back as int64: a row adds its weight when all weights are whole, else one, and then the sum of the
weights comes back beside it. Real sums are *expansions*: three float64 on the last axis, largest first, whose
exact sum is the value. One thread and eight give the same bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Codes = NDArray[np.int32]
Real = NDArray[np.float64]
Column = NDArray[Any]

class BadValue(ValueError):
    """``args`` is (what, feature, row, value); what: 'infinite', 'too far', 'not 0 or 1', 'not a count', 'too fine'."""

def encode_records(records: NDArray[np.uint8], threads: int) -> tuple[Codes, Int, Int]:
    """Numbers the distinct rows of an (n, width) byte matrix in the order they first occur.

    Returns the code of each row, the row at which each code first occurs, and how often each occurs.
    """

def encode_strings(
    offsets: Column,
    data: NDArray[np.uint8],
    valid: NDArray[np.uint8] | None,
    valid_offset: int,
    strip: bool,
    threads: int,
) -> tuple[Codes, Int, Int]:
    """The same for strings data[offsets[i]:offsets[i + 1]]; ``offsets`` is int32 or int64, n + 1 long.

    ``valid`` is Arrow's bitmap (bit valid_offset + i; least significant first); a string that is not valid gets -1.
    ``strip`` takes ASCII white space off both ends first.
    """

def encode_objects(values: list[Any]) -> tuple[Codes, Int, Int] | None:
    """The same for a list of str; None and float NaN get -1. Any other object in the list: the answer is None."""

def count_classes(
    classes: Codes, n_classes: int, weights: Real | None, whole: bool, threads: int
) -> tuple[Int, Real | None]:
    """Rows per class, (C,), and their weights, (C, 3)."""

def count_moments(
    columns: Sequence[Column],
    origin: Real,
    unit: Real,
    classes: Codes,
    n_classes: int,
    weights: Real | None,
    whole: bool,
    threads: int,
) -> tuple[Int, Real | None, Real]:
    """Rows (F, C), weights (F, C, 3), and the sums of z and z squared (F, C, 2, 3), z = (x - origin) / unit.

    ``unit`` is a power of two. NaN is passed over. Infinite x and |z| above 2**400 raise BadValue.
    """

def count_codes(
    columns: Sequence[Column],
    low: Int,
    size: Int,
    classes: Codes,
    n_classes: int,
    weights: Real | None,
    whole: bool,
    threads: int,
) -> tuple[Int, Real | None]:
    """Rows (sum of size, C) and weights (..., 3): feature f's value low[f] + k is row sum(size[:f]) + k.

    Values outside low[f] .. low[f] + size[f] - 1 are passed over.
    """

def count_flags(
    columns: Sequence[Column],
    threshold: Real,
    classes: Codes,
    n_classes: int,
    weights: Real | None,
    whole: bool,
    threads: int,
) -> tuple[Int, Real | None]:
    """Rows (F, 2, C), no then yes, and weights (F, 2, C, 3). Yes is x > threshold[f]; a NaN threshold demands x in {0, 1}."""

def bins(column: Column, start: float, width: float, threads: int) -> Int:
    """floor((x - start) / width); NaN gives the lowest int64; infinite x and codes beyond 2**53 raise BadValue."""

def span(columns: Sequence[Column], threads: int) -> tuple[Int, Int]:
    """Lowest and highest value of each integer feature, the lowest int64 passed over. Without rows: (0, -1)."""

def not_counts(columns: Sequence[Column], threads: int) -> None:
    """Raises BadValue unless every value is NaN or a whole number from 0 to 2**53."""

def score(
    n_rows: int, log_prior: Real, parts: Sequence[tuple[Any, ...]], want: str, threads: int
) -> tuple[NDArray[Any], int]:
    """Adds the log-likelihoods of all parts to the log prior, row by row, in one pass.

    ``want``: 'log_joint' or 'posterior' or 'log_posterior' (n, C) float64; 'class' (n,) int32, the first of the best;
    'parts' (n, features of all parts in order, C): each feature's own log-likelihood, without the prior.
    Also returns how many rows had every class at -inf; those answer with the prior (for 'posterior',
    'log_posterior', 'class'). Infinite x raises BadValue, whose feature counts over all parts.

    A part is one of:

    ('normal', columns, origin, unit, mean, precision, constant): per (F, C) adds constant - precision * (z - mean)**2
    ('student', columns, origin, unit, mean, precision, constant, power): constant - power * log1p(precision * (z - mean)**2)
        both: z is clipped to +-2**400 first; NaN adds 0.
    ('table', columns, low, lookups, outside, table): integer features; k = x - low[f]; row lookups[f][k] (uint32) of
        table (R, C) is added; k outside the lookup: row outside[f] (int64; -1 adds 0).
    ('flags', columns, threshold, no, yes): (F, C) tables; x > threshold[f] adds yes else no; NaN adds 0.
        A NaN threshold demands x in {0, 1} and raises BadValue.
    ('histogram', column, start, width, first, table): one feature; table (B, C) holds log densities of the bins first ..
        first + B - 1, numbered as ``bins`` numbers them; k bins beyond either end the end's value falls by k * log 2.
        NaN adds 0.
    ('kernel', column, origin, unit, kernel, centres, weights, bandwidth, constant, floor): one feature in z units. centres (B,)
        sorted; weights (B, C), columns summing to 1 (or all 0: adds 0); bandwidth (C,). Adds constant[c] +
        log(sum_b weights[b, c] * K((z - centres[b]) / bandwidth[c]) / bandwidth[c]) for kernel 'normal', far out in logs.
        Compact kernels ('box' on [-1/2, 1/2); 'triangle', 'epanechnikov', 'biweight', 'triweight', 'cosine' on [-1, 1]): that
        density mixed as (1 - 1e-6) * density + 1e-6 * normal(floor[0], floor[1]) (mean, standard deviation in z units).
    """
