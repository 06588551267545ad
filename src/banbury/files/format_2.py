"""Files of format 2: sums by what they are, and not by the features that are counted together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from banbury._core import Integers
from banbury.files.checking import Arrays, check, integers_of, under
from banbury.schema import Schema
from banbury.sums import as_index

KEYED = ("bernoulli", "categorical", "joint", "histogram", "kernel_density")
WORDS = ("text", "occurrences")


def brought_over(about: Mapping[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """The JSON text and the arrays as they are in format 3."""
    if "network" in about:
        return dict(about), arrays
    tally = about["tally"]
    old, groups = _OldSums(tally, arrays), Schema.from_dict(tally["schema"]).groups
    keys, numbers = [], {"classes": old.numbers("classes")}
    today = {name: array for name, array in arrays.items() if name.startswith("calibration.")}
    for g, group in enumerate(groups):
        keys.append([old.keys[k] for k in old.places("counts", group.places)])
        numbers |= {f"{g}.{name}": part for name, part in old.numbers_of(group.places).items()}
        for place in old.places("words", group.places)[:1]:
            today |= {f"{g}.{name}": array for name, array in under(f"words.{place}.", arrays).items()}
    today |= {name: part.limbs() for name, part in numbers.items()}
    digits = {name: part.digits for name, part in numbers.items()}
    return {**about, "tally": {**tally, "keys": keys, "digits": digits}}, today


class _OldSums:
    """Sums as format 2 had them: those of all features of one kind stand one below the other."""

    def __init__(self, tally: Mapping[str, Any], arrays: Arrays) -> None:
        self.arrays, self.digits, self.keys = arrays, tally["digits"], tally["keys"]
        self.kinds = [_kind(feature) for feature in tally["schema"]["features"]]
        self.starts = list(accumulate(map(len, self.keys), initial=0))
        counted = {name for name in arrays if not name.startswith(("words.", "calibration."))}
        alike = self.digits.keys() == counted and self.starts[-1] == len(arrays["counts"])
        check(alike, "there are arrays, digits of arrays or keys that no tally has")
        for name in counted:
            self.numbers(name)
        check(len(self.keys) == self.kinds.count("counts"), "keys and features differ in number")

    def numbers(self, name: str) -> Integers:
        return integers_of(name, self.arrays, self.digits, self.arrays[name].shape[:-1], signed=True)

    def places(self, kind: str, places: Sequence[int]) -> list[int]:
        """Where some features stand among those of their kind, if it is this one."""
        return [self.kinds[:place].count(kind) for place in places if self.kinds[place] == kind]

    def numbers_of(self, places: Sequence[int]) -> dict[str, Integers]:
        if at := self.places("counts", places):
            rows = np.concatenate([np.arange(self.starts[k], self.starts[k + 1]) for k in at])
            return {"cells": self.numbers("counts").take(rows, 0)}
        if at := self.places("moments", places):
            return {name: self.numbers(f"moments.{name}").take(as_index(at), 0) for name in ("n", "sums")}
        if at := self.places("products", places):
            return {name: self.numbers(f"products.{at[0]}.{name}") for name in ("n", "sums")}
        return {}


def _kind(feature: Mapping[str, Any]) -> str:
    """Under which name a feature's sums stood."""
    if feature["family"] in KEYED:
        return "counts"
    if feature["family"] in WORDS:
        return "words"
    return "products" if feature.get("columns") else "moments"
