"""Files of format 1: their sums, which were doubles, as the whole numbers that today's have. Forgetting is approximate there."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury._core import Integers
from banbury.files.checking import Arrays, real
from banbury.sums import GRID, integers, possible, whole

NETWORK = ("network", "values", "cells")


def brought_over(about: Mapping[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """The JSON text and the arrays as they are today."""
    if "network" in about:
        sums = {name: _rows(name, arrays) for name in NETWORK if about["model"] is not None}
        if sums and not arrays.keys() <= {f"{name}.{what}" for name in NETWORK for what in ("rows", "weights")}:
            raise ValueError("there are arrays that no network has")
        kept = {} if sums else dict(arrays)
        return {**about, "digits": _digits(sums)}, {**_limbs(sums), **kept}
    blocks = sorted({name.rsplit(".", 1)[0] for name in arrays if name.startswith("products.")})
    sums = {"classes": _rows("classes", arrays), "counts": _rows("counts", arrays)}
    measured = [("moments", 1), *((name, _columns(arrays[f"{name}.sums"].shape[1])) for name in blocks)]
    for name, columns in measured:
        sums[f"{name}.n"], sums[f"{name}.sums"] = _products(name, arrays, columns)
    kept = {name: array for name, array in arrays.items() if name.startswith(("words.", "calibration."))}
    rounded = any(sums[f"{name}.n"].shape[0] for name, _ in measured) or any(
        name.endswith("weights") for name in arrays
    )
    return {**about, "tally": {**about["tally"], "digits": _digits(sums), "rounded": rounded}}, {**_limbs(sums), **kept}


def _digits(sums: Mapping[str, Integers]) -> dict[str, int]:
    return {name: numbers.digits for name, numbers in sums.items()}


def _limbs(sums: Mapping[str, Integers]) -> Arrays:
    return {name: numbers.limbs() for name, numbers in sums.items()}


def _columns(cells: int) -> int:
    return int(np.rint(((9 + 8 * cells) ** 0.5 - 3) / 2))


def _rows(name: str, arrays: Arrays) -> Integers:
    """Numbers of rows, or the weights beside them."""
    rows = arrays[f"{name}.rows"]
    if rows.dtype != np.int64 or (rows < 0).any():
        raise ValueError(f"{name}.rows is not whole numbers from 0 up")
    weights = f"{name}.weights"
    if weights not in arrays:
        return whole(rows)
    sums = real(weights, arrays, (*rows.shape, 3))
    return integers(np.maximum(_rounded(sums, Fraction(10**18)), 0), 18)


def _products(name: str, arrays: Arrays, columns: int) -> tuple[Integers, Integers]:
    """n, and sums of z and of products of z, as nearly as rows can have them."""
    n, shape = _rows(name, arrays), arrays[f"{name}.sums"].shape
    sums = real(f"{name}.sums", arrays, shape)
    steps = [Fraction(2) ** GRID] * columns + [Fraction(4) ** GRID] * (shape[-2] - columns)
    each = [_rounded(sums[..., k, :], step * 10**18) for k, step in enumerate(steps)]
    return possible(n, integers(np.stack(each, axis=-1), 18), columns)


def _rounded(sums: NDArray[np.float64], step: Fraction) -> NDArray[Any]:
    """Sums of three doubles as whole numbers of so many to the unit."""
    found = np.empty(sums.shape[:-1], dtype=object)
    for at in np.ndindex(found.shape):
        found[at] = round(sum(map(Fraction, sums[at].tolist())) * step)
    return found
