"""Densities of one column and of two: fitted and evaluated beside KDEpy's and scikit-learn's, and bandwidths by leave-one-out."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.neighbors import KernelDensity

import banbury as bb
from benchmarks.measure import Figure, Setting, Task, WrongAnswer, in_turns, limited, say

ROWS, FEW, PAIRS = 1_000_000, 100_000, 3_000
POINTS = 1_000  # at which scikit-learn, which compares all pairs, is asked
GRID = 2**12  # points of KDEpy's own, between which it is interpolated
BANDWIDTH, WIDTH = 0.05, 2.0**-7  # the width is that of our bins
TWO, WIDE = 10_000, 0.25  # rows of two columns, and their bandwidth

Real = NDArray[np.float64]


def data(rows: int, seed: int) -> Real:
    """A wide bump, a narrow one, and a few values far out."""
    rng = np.random.default_rng(seed)
    bumps = np.where(rng.random(rows) < 0.6, rng.normal(-2.0, 1.0, rows), rng.normal(3.0, 0.5, rows))
    return np.where(rng.random(rows) < 0.01, rng.normal(0.0, 4.0, rows), bumps)


def tasks(setting: Setting) -> Iterator[Task | Figure]:
    rows, few = setting.rows(ROWS), setting.rows(FEW)
    x, points = data(rows, 1), data(rows, 2)
    if importlib.util.find_spec("KDEpy"):
        yield from beside_kdepy(x, points)
    else:
        say("kernel_density: KDEpy is left out; it is not installed")
    some = points[:POINTS]
    yield Task(
        "kernel_density",
        f"fit, and the densities at {len(some):,} points",
        f"{few:,} values",
        lambda: densities(x[:few], some),
        same_densities,
        lambda: np.exp(KernelDensity(bandwidth=BANDWIDTH).fit(x[:few, None]).score_samples(some[:, None])),
        "KernelDensity",
        at_least=10,
    )
    pairs = x[: setting.rows(PAIRS)]
    yield Task(
        "kernel_density",
        "leave-one-out bandwidth",
        f"{len(pairs):,} values",
        lambda: bandwidth(pairs),
        lambda answers: same_likelihood(pairs, answers),
        lambda: best_of_pairs(pairs),
        "NumPy and SciPy, all pairs",
        at_least=10,
    )
    yield many_left_out(x[:few], setting)
    both = np.column_stack([data(setting.rows(TWO), 3), data(setting.rows(TWO), 4)])
    asked = np.column_stack([data(setting.rows(TWO), 5), data(setting.rows(TWO), 6)])
    yield Task(
        "kernel_density",
        f"fit, and the densities of two columns at {len(asked):,} points",
        f"{len(both):,} rows",
        lambda: two_densities(both, asked),
        same_densities,
        lambda: np.exp(KernelDensity(bandwidth=WIDE, rtol=0.0).fit(both).score_samples(asked)),
        "KernelDensity",
        at_least=1,
    )


def two_densities(x: Real, points: Real) -> Real:
    """Ours, of a block of two columns."""
    family = bb.KernelDensity(bandwidth=WIDE, start=0.0, width=2.0 * WIDTH)
    tally = bb.count(x, np.zeros(len(x), dtype=np.int64), features={("x0", "x1"): family})
    return np.exp(bb.estimate(tally).log_likelihood(points)[:, 0])


def densities(x: Real, points: Real) -> Real:
    """Ours, from the values to the densities at the points: the model of one class."""
    family = bb.KernelDensity(bandwidth=BANDWIDTH, start=0.0, width=WIDTH)
    model = bb.estimate(bb.count({"x": x}, np.zeros(len(x), dtype=np.int64), features={"x": family}))
    return np.exp(model.log_likelihood({"x": points}, "x")[:, 0])


def beside_kdepy(x: Real, points: Real) -> Iterator[Task]:
    from KDEpy import FFTKDE

    def interpolated() -> Real:
        places, heights = FFTKDE(kernel="gaussian", bw=BANDWIDTH).fit(x).evaluate(GRID)
        return np.interp(points, places, heights)

    yield Task(
        "kernel_density",
        f"fit, and the densities at {len(points):,} points",
        f"{len(x):,} values",
        lambda: densities(x, points),
        same_densities,
        interpolated,
        f"FFTKDE on {GRID:,} points, interpolated",
        at_least=1,
    )
    grid = FFTKDE(kernel="gaussian", bw=BANDWIDTH).fit(x).evaluate(GRID)[0]
    yield Task(
        "kernel_density",
        "fit, and the densities on its grid",
        f"{len(x):,} values",
        lambda: densities(x, grid),
        same_densities,
        lambda: FFTKDE(kernel="gaussian", bw=BANDWIDTH).fit(x).evaluate(GRID)[1],
        f"FFTKDE on {GRID:,} points",
    )


def same_densities(answers: Mapping[str, Any]) -> str:
    """Ours and KDEpy's keep bins, so densities differ a little: by 1 % of their sum at most; none is negative."""
    ours, theirs = answers["ours"], answers["peer"]
    gap = float(np.abs(ours - theirs).sum() / theirs.sum())
    if not gap <= 0.01 or ours.min() < 0.0:
        raise WrongAnswer(f"densities are {gap:.2g} of their sum apart")
    return f"densities within {gap:.0e}"


def bandwidth(x: Real) -> float:
    """Ours: values counted, and the bandwidth that leave-one-out takes."""
    family = bb.KernelDensity(bandwidth="leave-one-out")
    model: Any = bb.estimate(bb.count({"x": x}, np.zeros(len(x), dtype=np.int64), features={"x": family}))
    return float(model.parameters[0].bumps[0].bandwidth[0] * model.schema["x"].unit)


def left_out(x: Real, h: float) -> float:
    """The mean log density of each value under the kernels of all others, pair by pair."""
    heights = np.exp(-0.5 * ((x[:, None] - x) / h) ** 2)
    np.fill_diagonal(heights, 0.0)
    total = np.maximum(heights.sum(axis=1), np.finfo(float).tiny)
    return float(np.mean(np.log(total / ((len(x) - 1) * h * np.sqrt(2.0 * np.pi)))))


def best_of_pairs(x: Real) -> float:
    rule = x.std() * len(x) ** -0.2
    found = minimize_scalar(lambda log: -left_out(x, np.exp(log)), bounds=np.log([rule / 16, rule * 4]))
    return float(np.exp(found.x))


def same_likelihood(x: Real, answers: Mapping[str, Any]) -> str:
    """Bandwidths whose likelihoods are the same need not be."""
    gap = left_out(x, answers["peer"]) - left_out(x, answers["ours"])
    if not gap <= 1e-3:
        raise WrongAnswer(f"a value left out is {gap:.2g} nats less likely than by the peer's bandwidth")
    return f"{answers['ours']:.3f} and {answers['peer']:.3f}, likelihoods within {abs(gap):.0e}"


def many_left_out(x: Real, setting: Setting) -> Figure:
    """Ours alone: nobody else has an answer in a minute. Bins eight times finer must not have a better one."""
    what = f"{len(x):,} values"
    say(f"kernel_density: leave-one-out bandwidth, {what}")
    with limited(setting.threads):
        times, answers = in_turns({"ours": lambda: bandwidth(x)}, setting)
    found = answers["ours"]
    tried = {h: by_fine_bins(x, h, found / 64) for h in found * 2.0 ** np.arange(-2.0, 2.25, 0.25)}
    gap = max(tried.values()) - by_fine_bins(x, found, found / 64)
    if not gap <= 1e-3:
        raise WrongAnswer(f"a value left out is {gap:.2g} nats less likely than by another bandwidth")
    aim = None if setting.small else 0.1
    agreement = f"{found:.3f}; none of 17 others is likelier by {max(gap, 1e-6):.0e}"
    return Figure("kernel_density", "leave-one-out bandwidth", what, times["ours"], None, "", agreement, at_most=aim)


def by_fine_bins(x: Real, h: float, width: float) -> float:
    """The same as ``left_out``, values moved to the middle of a narrow bin; the bins are added up by lag."""
    codes = np.floor((x - x.min()) / width).astype(np.int64)
    counts = np.bincount(codes).astype(np.float64)
    lags = np.arange(-len(counts), len(counts) + 1) * width / h
    near = np.abs(lags) <= 38.0
    heights = np.exp(-0.5 * lags[near] ** 2)
    reach = len(heights) // 2
    heights[reach] = 0.0
    others = np.convolve(counts, heights)[reach : reach + len(counts)] + (counts - 1.0)
    used = counts > 0
    total = np.maximum(others[used], np.finfo(float).tiny)
    return float(counts[used] @ np.log(total / ((len(x) - 1) * h * np.sqrt(2.0 * np.pi))) / len(x))
