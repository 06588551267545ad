"""What inference makes of whole numbers: `python -m benchmarks.inference` sets it beside all numbers as Gaussian.

Accuracy and log loss of ten folds (seed 0). Car and mushroom have their values as numbers, votes as 0 and 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import banbury as bb
from benchmarks import datasets, tan
from benchmarks.measure import say


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(prog="python -m benchmarks.inference", description=__doc__).parse_args(arguments)
    if not datasets.there("car"):
        say(datasets.UNSET)
        return 1
    print(f"{'':10}{'rows':>8}  {'all Gaussian':16}inferred")
    for name, made in DATA.items():
        rows, target = made()
        numbers = dict.fromkeys((c for c in rows.columns if c != target and rows[c].dtype.kind in "iuf"), "gaussian")
        found = (bb.cross_validate(rows, target, folds=10, seed=0, features=each) for each in (numbers, "auto"))
        cells = (f"{each.accuracy.value:.3f} ({each.log_loss:.3f})" for each in found)
        print(f"{name:10}{len(rows):8,}  " + "".join(cell.ljust(16) for cell in cells).rstrip(), flush=True)
    return 0


def digits() -> tuple[Any, str]:
    from sklearn.datasets import load_digits

    return load_digits(as_frame=True).frame, "target"


def coded(name: str) -> tuple[Any, str]:
    """A table with the numbers of its values, in the order they come, instead of them; what is missing stays so."""
    rows, target = tan.DATA[name]()
    for column in rows.columns.drop(target):
        codes = rows[column].map({value: code for code, value in enumerate(rows[column].dropna().unique())})
        rows[column] = codes.astype("Int64")
    return rows, target


DATA: dict[str, Callable[[], tuple[Any, str]]] = {
    "digits": digits,
    "car": lambda: coded("car"),
    "mushroom": lambda: coded("mushroom"),
    "votes": lambda: coded("votes"),
    "adult": tan.DATA["adult"],
}


if __name__ == "__main__":
    sys.exit(main())
