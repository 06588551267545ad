"""Kernels by name: their heights, their areas, and draws from them; each integrates to one."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from banbury.arrays import Real
from banbury.distributions.grid import rounding

Kernel = Literal["normal", "box", "triangle", "epanechnikov", "biweight", "triweight", "cosine"]

# The standard deviation of each kernel at bandwidth 1: box on [−½, ½), the others on [−1, 1].
DEVIATION: dict[str, float] = {
    "normal": 1.0,
    "box": 12.0**-0.5,
    "triangle": 6.0**-0.5,
    "epanechnikov": 5.0**-0.5,
    "biweight": 7.0**-0.5,
    "triweight": 1.0 / 3.0,
    "cosine": (1.0 - 8.0 / np.pi**2) ** 0.5,
}
WIDEST = 2.0**480  # bins that a bandwidth may be
MIXED_IN = 1e-6  # of a normal over all classes, so that a compact kernel makes nothing impossible


def means_and_deviations(centres: Real, rows: Real) -> tuple[Any, Any]:
    """Of centres, or of each column of them; the deviation with n − 1 as SciPy has it, below two rows' weight with n / 2."""
    n = max(float(rows.sum()), np.finfo(float).tiny)
    about = centres[rows.argmax()]  # far from 0 a sum would be rounded
    mean = about + rows @ (centres - about) / n
    return mean, np.sqrt(rows @ (centres - mean) ** 2 / max(n - 1.0, n / 2.0))


def least_bandwidth(kernel: str, centres: Real, rows: Real) -> float:
    """In bins: under it, the density would be a comb of the values that rows are rounded to."""
    return max(1.0, 0.5 * rounding(centres, rows) / DEVIATION[kernel])


def height(kernel: str, u: Real) -> Real:
    """K(u)."""
    inside = np.maximum(1.0 - u * u, 0.0)
    if kernel == "normal":
        return np.asarray(np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi))
    if kernel == "box":
        return ((u >= -0.5) & (u < 0.5)).astype(np.float64)
    if kernel == "triangle":
        return np.maximum(1.0 - np.abs(u), 0.0)
    if kernel == "cosine":
        return np.where(np.abs(u) <= 1.0, np.pi / 4.0 * np.cos(np.pi / 2.0 * u), 0.0)
    power, top = {"epanechnikov": (1, 0.75), "biweight": (2, 15.0 / 16.0), "triweight": (3, 35.0 / 32.0)}[kernel]
    return top * inside**power


def area(kernel: str, u: Real) -> Real:
    """The integral of K up to u."""
    if kernel == "normal":
        from scipy.special import ndtr  # a third of a second to import; few need it

        return np.asarray(ndtr(u))
    if kernel == "box":
        return np.clip(u + 0.5, 0.0, 1.0)
    u = np.clip(u, -1.0, 1.0)
    if kernel == "triangle":
        return 0.5 + u - 0.5 * u * np.abs(u)
    if kernel == "cosine":
        return 0.5 + 0.5 * np.sin(np.pi / 2.0 * u)
    if kernel == "epanechnikov":
        return 0.5 + 0.75 * (u - u**3 / 3.0)
    if kernel == "biweight":
        return 0.5 + 15.0 / 16.0 * (u - 2.0 * u**3 / 3.0 + u**5 / 5.0)
    return 0.5 + 35.0 / 32.0 * (u - u**3 + 3.0 * u**5 / 5.0 - u**7 / 7.0)


def noise(kernel: str, size: Any, rng: np.random.Generator) -> Real:
    """Draws from the kernel itself."""
    if kernel == "normal":
        return np.asarray(rng.standard_normal(size))
    if kernel == "box":
        return np.asarray(rng.random(size) - 0.5)
    if kernel == "triangle":
        return np.asarray(rng.random(size) - rng.random(size))
    if kernel == "cosine":
        return np.asarray(2.0 / np.pi * np.arcsin(2.0 * rng.random(size) - 1.0))
    shape = {"epanechnikov": 2.0, "biweight": 3.0, "triweight": 4.0}[kernel]
    return np.asarray(2.0 * rng.beta(shape, shape, size) - 1.0)
