"""Files of format 3: a network had tables with a cell for every combination of values, where it has a tally today."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import numpy as np

from banbury._core import Integers
from banbury.files.checking import Arrays, check, integers_of


def brought_over(about: Mapping[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """The JSON text and the arrays as they are today."""
    if "network" not in about:
        return dict(about), arrays
    known = {"calibration": None, **about}
    if about["model"] is None:
        return {**known, "tally": None}, arrays
    beside = {name: array for name, array in arrays.items() if name.startswith("calibration.")}
    check(arrays.keys() - beside == {"network", "values", "cells"}, "there are arrays that no network has, or too few")
    nodes, digits = about["network"]["nodes"], about["digits"]
    own = {node["name"]: range(len(node["cuts"]) + 1) if "cuts" in node else node["values"] for node in nodes}
    alone = [[own[node["name"]]] for node in nodes]
    with_parents = [[own[name] for name in (node["name"], *node["parents"])] for node in nodes]
    keys, cells = list[Any](), list[Integers]()
    for name, tables in (("values", alone), ("cells", with_parents)):
        numbers = integers_of(name, arrays, digits, (sum(prod(map(len, axes)) for axes in tables),))
        some = ~numbers.is_zero()
        cells.append(numbers.take(np.flatnonzero(some), 0).arranged([int(some.sum()), 1]))
        is_used = iter(some.tolist())
        keys += [[list(key) for key in product(*axes) if next(is_used)] for axes in tables]
    sums = {"classes": integers_of("network", arrays, digits, (1,)), "0.cells": Integers.join(cells)}
    in_digits = {name: numbers.digits for name, numbers in sums.items()}
    tally = {"keys": [keys], "skipped": 0, "digits": in_digits, "rounded": about["rounded"]}
    return {**known, "tally": tally}, {name: numbers.limbs() for name, numbers in sums.items()} | beside
