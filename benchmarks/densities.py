"""Densities of Adult: `python -m benchmarks.densities` compares them on rows held out, as a table for docs/reference/density.md.

The 30,162 complete rows of adult.data, of which a third is held out. Left out are `education_num`, which repeats `education`, and
`capital_gain` and `capital_loss`, which are zero in nine rows of ten: a bell over one value would have any height.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

import banbury as bb
from banbury.model.density import n_parameters
from benchmarks import datasets
from benchmarks.measure import say

LEFT_OUT = ["education_num", "capital_gain", "capital_loss"]
NUMBERS = ("age", "fnlwgt", "hours_per_week")
FAMILY = ("marital_status", "relationship", "sex")
MANY = ("education", "marital_status", "occupation", "relationship", "race", "sex", "income")
HISTOGRAMS = dict.fromkeys(NUMBERS, bb.Histogram(bins=20))
EM: dict[str, Any] = {"features": HISTOGRAMS, "starts": 1, "tol": 1e-5}
DENSITIES: dict[str, Any] = {
    "naive, bell curves": "auto",
    "naive, one bell over the three numbers": {NUMBERS: bb.Gaussian(covariance="full")},
    "naive, kernel densities": dict.fromkeys(NUMBERS, "kernel_density"),
    "naive, kernels over the three numbers": {NUMBERS: "kernel_density"},
    "naive, cells over the three numbers": {NUMBERS: "histogram"},
    "naive, histograms": HISTOGRAMS,
    "joint table of 7 columns, histograms": {MANY: bb.Joint(), **HISTOGRAMS},
    "joint table of 3 columns, histograms": {FAMILY: bb.Joint(), **HISTOGRAMS},
    "mixture of 3 naive products, histograms": bb.Mixture(3, **EM),
    "mixture of 10 naive products, histograms": bb.Mixture(10, **EM),
}


def adult() -> Any:
    census = datasets.table("census")
    return census.rows.assign(income=census.labels).dropna().drop(columns=LEFT_OUT)


def compare_densities(frame: Any, seed: int = 0) -> list[tuple[str, int, float, float]]:
    """The name of each density, its parameters, and log P(row) of the rows learned from and of a third that is held out."""
    held_out = np.zeros(len(frame), dtype=bool)
    held_out[np.random.default_rng(seed).permutation(len(frame))[: round(len(frame) / 3)]] = True
    rows = []
    for name, settings in DENSITIES.items():
        density = settings if isinstance(settings, bb.Mixture) else bb.Density(settings)
        density.fit(frame[~held_out])
        learned, held_out_score = (float(density.score_samples(frame[part]).mean()) for part in (~held_out, held_out))
        rows.append((name, n_parameters(density.model_), learned, held_out_score))
    return rows


def lines(rows: list[tuple[str, int, float, float]]) -> list[str]:
    """The table, as docs/reference/density.md has it."""
    return [
        "| density | parameters | rows learned from | rows held out |",
        "|---|---|---|---|",
        *(f"| {name} | {n:,} | {learned:.2f} | {held_out:.2f} |" for name, n, learned, held_out in rows),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if not datasets.has_data("adult"):
        say(datasets.UNSET)
        return 1
    frame = adult()
    print(*lines(compare_densities(frame, options.seed)), sep="\n")
    start = perf_counter()
    mixture = bb.Mixture(10, **EM).fit(frame)
    seconds = perf_counter() - start
    print(f"ten components from {len(frame):,} rows: {seconds:.1f} s, {mixture.n_iter_} iterations")
    return 0


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks.densities", description=__doc__.split("\n")[0])
    command.add_argument("--seed", type=int, default=0, help="which rows are held out (0)")
    return command


if __name__ == "__main__":
    sys.exit(main())
