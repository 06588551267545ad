"""Files of format 1: their sums, which were doubles, as the whole numbers that today's have. Forgetting is approximate there.

Three doubles stood for each sum, and their exact sum was meant: of the doubles that are nearest to the weights of rows. Today
a weight such as 0.1 is the decimal number itself, and any other is rounded to a part, 10⁻¹⁸. So what would be counted today is
within 2⁻⁵³ of a sum, and half a part for each of its rows. A decimal number of fifteen digits that is as near is taken for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury._core import Integers
from banbury.files.checking import Arrays, check, real, under
from banbury.sums import GRID, MOST_ROWS, integers, n_columns, possible, whole
from banbury.tally import Tally

NETWORK = ("network", "values", "cells")
PART = 10**18  # parts of a row
NEAR = Fraction(1, 2**53)  # that a double is from the number it was written as, as a share of it
LOOSE = 1e-9  # that a feature may have more rows than its class, as a share of them: sums were rounded, each by itself
NOTHING = Fraction(0)


def brought_over(about: Mapping[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """The JSON text and the arrays as they are in format 2."""
    return _network(about, arrays) if "network" in about else _tally(about, arrays)


def checked(tally: Tally) -> Tally:
    """This tally; raises where its sums are those of no rows, by more than was rounded."""
    rows = tally.rows.value * (1.0 + LOOSE) + LOOSE
    for group, sums in zip(tally.schema.groups, tally.sums, strict=True):
        check((sums.present.value <= rows).all(), "a feature has more rows than its class")
        group.counter.check_exact(group.features, sums)
    return tally


def _written(sums: Mapping[str, Integers]) -> tuple[dict[str, int], Arrays]:
    """Digits and limbs by name."""
    return {name: each.digits for name, each in sums.items()}, {name: each.limbs() for name, each in sums.items()}


# Tallies --------------------------------------------------------------------------------------------------------------


def _tally(about: Mapping[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    blocks = sorted({name.rsplit(".", 1)[0] for name in arrays if name.startswith("products.")})
    sums = {"classes": _rows("classes", arrays), "counts": _rows("counts", arrays)}
    measured = [("moments", 1), *((name, n_columns(arrays[f"{name}.sums"].shape[1])) for name in blocks)]
    for name, columns in measured:
        n, shape = _rows(name, arrays), arrays[f"{name}.sums"].shape
        exact = _exact(real(f"{name}.sums", arrays, shape))  # of z and its products, as nearly as rows can have them
        steps = np.array([2**GRID] * columns + [4**GRID] * (shape[-2] - columns), dtype=object)
        products = integers(_each(lambda x: round(x * PART), exact * steps), 18)
        sums[f"{name}.n"], sums[f"{name}.sums"] = possible(n, products, columns)
    kept = {name: array for name, array in arrays.items() if name.startswith(("words.", "calibration."))}
    for column in sorted({name.removesuffix("texts.weights") for name in kept if name.endswith(".texts.weights")}):
        kept = {name: array for name, array in kept.items() if not name.startswith(column)}
        kept |= {column + name: array for name, array in _words(under(column, arrays)).items()}
    weighed = any(name.endswith("weights") for name in arrays if not name.startswith("calibration."))
    rounded = weighed or any(sums[f"{name}.n"].shape[0] for name, _ in measured)
    digits, limbs = _written(sums)
    return {**about, "tally": {**about["tally"], "digits": digits, "rounded": rounded}}, {**limbs, **kept}


def _rows(name: str, arrays: Arrays) -> Integers:
    """Numbers of rows, or the weights beside them."""
    rows, weights = _weighed(name, arrays)
    return whole(rows) if weights is None else integers(_each(_counted, weights, rows), 18)


def _words(arrays: Arrays) -> Arrays:
    """The sums of a column of text: in parts, or whole if all are."""
    n = arrays["classes"].shape
    weights = real("weights", arrays, (*n, 2, 3))
    fits = (weights[..., 0] > 0).all() and (np.abs(weights) < MOST_ROWS).all()
    check(
        fits and (arrays["classes"] < len(arrays["texts"])).all(),
        "a word has a weight below 0, or one that no rows have, or no class",
    )
    _, texts = _weighed("texts", {"texts.rows": arrays["texts"], "texts.weights": arrays["texts.weights"]})
    assert texts is not None
    most = _each(_counted, texts, arrays["texts"])
    cells = _each(_counted, _exact(weights), np.ones((*n, 2), dtype=np.int64))
    cells[:, 1] = np.minimum(cells[:, 1], most[arrays["classes"]])
    kept = {name: array for name, array in arrays.items() if name in ("bytes", "ends", "starts", "classes", "slots")}
    if (most % PART).any() or (cells % PART).any():
        return kept | {"parts": _three(cells * PART), "texts.parts": _three(most * PART)}
    each = (cells // PART).astype(np.int64 if cells[:, 0].sum() >= 2**32 * PART else np.uint32)
    each_class = {"texts": (most // PART).astype(np.int64)}
    return kept | {"occurrences": each[:, 0].copy(), "documents": each[:, 1].copy(), **each_class}


def _three(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers from 0 up as three limbs each."""
    packed = b"".join(number.to_bytes(24, "little") for number in numbers.reshape(-1).tolist())
    return np.frombuffer(packed, dtype="<i8").astype(np.int64).reshape(*numbers.shape, 3)


# Networks -------------------------------------------------------------------------------------------------------------


def _network(about: Mapping[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    if about["model"] is None:
        return {**about, "digits": {}, "rounded": False}, dict(arrays)
    known = {f"{name}.{what}" for name in NETWORK for what in ("rows", "weights")}
    check(arrays.keys() <= known, "there are arrays that no network has")
    found = {name: _weighed(name, arrays) for name in NETWORK}
    weighed = any(weights is not None for _, weights in found.values())
    sums = {name: whole(rows) for name, (rows, _) in found.items()}
    if weighed:
        fractions = {name: (n, _each(Fraction, n) if own is None else own) for name, (n, own) in found.items()}
        sums = {n: integers(each, 18) for n, each in _apart(about["network"]["nodes"], fractions).items()}
    digits, limbs = _written(sums)
    return {**about, "digits": digits, "rounded": weighed}, limbs


def _apart(nodes: Any, found: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The sums of all nodes in parts, each brought over by itself, and upwards, so that rows can be forgotten."""
    sizes = {node["name"]: len(node["cuts"]) + 1 if "cuts" in node else len(node["values"]) for node in nodes}
    shapes = [(sizes[node["name"]], prod(sizes[name] for name in node["parents"])) for node in nodes]
    (n, n_weight), (seen, seen_weight), (cells, weight) = (found[name] for name in NETWORK)
    lengths = 1, sum(k for k, _ in shapes), sum(k * m for k, m in shapes)
    check((len(n), len(seen), len(cells)) == lengths, "sums are those of other nodes")
    parts, values = _each(_at_most, weight, cells), np.zeros(len(seen), dtype=object)
    every = b = d = 0
    for shape in shapes:
        a, b, c, d = b, b + shape[0], d, d + prod(shape)
        with_parents = [each[c:d].reshape(shape).sum(axis=1) for each in (cells, weight, parts)]
        rest = _rest(seen_weight[a:b] - with_parents[1], seen[a:b] - with_parents[0], seen_weight[a:b])
        values[a:b] = with_parents[2] + rest
        without = _rest(n_weight - seen_weight[a:b].sum(), n - seen[a:b].sum(), n_weight)
        every = max(every, values[a:b].sum() + without[0])
    return {"network": np.array([every], dtype=object), "values": values, "cells": parts}


def _rest(weights: NDArray[Any], rows: NDArray[Any], of: NDArray[Any]) -> NDArray[Any]:
    """The rows that are left, in parts; raises where there are fewer than none."""
    fewer = (rows < 0).any() or (weights < -Fraction(LOOSE) * of).any()
    check(not fewer, "a value has more rows than there are")
    return _each(_at_most, np.maximum(weights, 0), rows)


# Numbers --------------------------------------------------------------------------------------------------------------


def _weighed(name: str, arrays: Arrays) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Numbers of rows, and their weights where those were fractional."""
    rows = arrays[f"{name}.rows"]
    check(rows.dtype == np.int64 and (rows >= 0).all(), f"{name}.rows is not whole numbers from 0 up")
    if f"{name}.weights" not in arrays:
        return rows, None
    sums = real(f"{name}.weights", arrays, (*rows.shape, 3))
    wrong = (sums[..., 0] < 0).any() or sums[rows == 0].any() or (np.abs(sums) >= MOST_ROWS).any()
    check(not wrong, f"{name}.weights has a weight below 0, one without rows, or one that no rows have")
    weights = _exact(sums)
    check((weights >= 0).all(), f"{name}.weights has a weight below 0")
    return rows, weights


def _exact(sums: NDArray[np.float64]) -> NDArray[Any]:
    """The exact sums of three doubles."""
    found = np.full(sums.shape[:-1], NOTHING, dtype=object)
    for at in map(tuple, np.argwhere(sums.any(axis=-1)).tolist()):
        found[at] = sum(map(Fraction, sums[at].tolist()), NOTHING)
    return found


def _each(change: Any, *numbers: NDArray[Any]) -> NDArray[Any]:
    found = np.empty(numbers[0].shape, dtype=object)
    found.reshape(-1)[:] = [change(*each) for each in zip(*(n.reshape(-1).tolist() for n in numbers), strict=True)]
    return found


def _at_most(weight: Fraction, rows: int) -> int:
    """The same as ``_counted``, and no less than these rows can weigh."""
    return _counted(weight, rows, -int(-(weight * (1 + NEAR) * PART + Fraction(rows, 2)) // 1))


def _counted(weight: Fraction, rows: int, otherwise: int | None = None) -> int:
    """A sum of weights in parts, as it would be counted today. What has rows weighs something."""
    if not rows:
        return 0
    most = weight * (1 + NEAR)
    decimals = next((d for d in range(19) if most * 10**d >= 10**14), 18)
    short = round(weight * 10**decimals)
    near = abs(Fraction(short, 10**decimals) - weight) <= 2 * NEAR * weight
    nearest = round(weight * PART) if otherwise is None else otherwise
    return max(short * 10 ** (18 - decimals) if near else nearest, 1)
