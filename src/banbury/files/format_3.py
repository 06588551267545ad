"""Files of format 3: a network had tables with a cell for every combination of values, where it has a tally today."""

from __future__ import annotations

from collections.abc import Mapping
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
    size = {node["name"]: len(node["cuts"]) + 1 if "cuts" in node else len(node["values"]) for node in nodes}
    sizes = sum(size.values()), sum(prod(size[name] for name in (node["name"], *node["parents"])) for node in nodes)
    each = zip(("values", "cells"), sizes, strict=True)
    cells = Integers.join([integers_of(name, arrays, digits, (n,)) for name, n in each]).arranged([sum(sizes), 1])
    places = np.flatnonzero(~cells.is_zero()[:, 0])
    sums = {"classes": integers_of("network", arrays, digits, (1,)), "0.cells": cells.take(places, 0)}
    in_digits = {name: numbers.digits for name, numbers in sums.items()}
    tally = {"skipped": 0, "digits": in_digits, "rounded": about["rounded"]}
    limbs = {name: numbers.limbs() for name, numbers in sums.items()}
    return {**known, "tally": tally}, {"places": places, **limbs, **beside}
