"""The lectures' experiment: `python -m benchmarks.newsgroups` learns to tell 20 Newsgroups apart, and says how well.

Replay: the posts as they were collected, headers and all; two thirds to learn from, one third to test on; words seen fewer than
three times and the hundred most frequent are dropped, as in Mitchell's book. The lectures quote 89 %. It is too good: the header
`Newsgroups:` names the class.

Honest: without the headers Newsgroups, Xref, Followup-To and Path, which name groups, and with all posts of one body on one side
of the split, because some hundreds were sent to several groups, or twice.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import banbury as bb
from benchmarks import datasets
from benchmarks.datasets import Part, split_post, without_headers
from benchmarks.measure import say

SEEDS = range(10)
PRUNED = bb.Text(min_count=3, drop_most_frequent=100)
Split = tuple[NDArray[np.int64], NDArray[np.int64]]  # posts to learn from, and to test on


class Accuracies(NamedTuple):
    """One for each split: ours, and that of always answering the most frequent class."""

    ours: list[float]
    majority: list[float]


def main(arguments: Sequence[str] | None = None) -> int:
    seeds = SEEDS[: parser().parse_args(arguments).seeds]
    if not datasets.has_data("20_newsgroups"):
        say(datasets.UNSET)
        return 1
    posts = datasets.load_older_newsgroups()
    bare = Part([without_headers(post) for post in posts.rows], posts.labels)
    experiments = {
        "Replay, full headers": (posts, np.arange(len(posts))),
        "Honest, no header names a group": (bare, bodies(posts.rows)),
    }
    for name, (part, groups) in experiments.items():
        result = measure(part, [split(groups, seed) for seed in seeds])
        print(f"{name}: accuracy {mean_and_error(result.ours)}, majority {np.mean(result.majority):.3f}", flush=True)
    return 0


def measure(posts: Part, splits: Sequence[Split]) -> Accuracies:
    """Learn and test on every split."""
    result = Accuracies([], [])
    for number, (train, test) in enumerate(splits):
        say(f"newsgroups: split {number + 1} of {len(splits)}")
        learned = posts.take(train)
        tested = posts.take(test)
        model = bb.NaiveBayesClassifier(features=PRUNED).fit(learned.rows, learned.labels)
        result.ours.append(tested.accuracy(model.predict(tested.rows)))
        names, n = np.unique(learned.labels, return_counts=True)
        result.majority.append(tested.accuracy(names[n.argmax()]))
    return result


def split(groups: NDArray[np.int64], seed: int) -> Split:
    """Two thirds of the groups to learn from and one third to test on; the posts of a group stay together."""
    n = int(groups.max()) + 1
    test = np.zeros(n, dtype=np.bool_)
    test[np.random.default_rng(seed).permutation(n)[: n // 3]] = True
    return np.flatnonzero(~test[groups]), np.flatnonzero(test[groups])


def bodies(posts: Sequence[str]) -> NDArray[np.int64]:
    """A number for each post, the same for posts of the same body."""
    hashes = [hashlib.sha256(split_post(post)[1].strip().encode()).hexdigest() for post in posts]
    return np.unique(hashes, return_inverse=True)[1]


def mean_and_error(shares: Sequence[float]) -> str:
    """The mean, and its standard error."""
    error = f" ± {np.std(shares, ddof=1) / np.sqrt(len(shares)):.4f}" if len(shares) > 1 else ""
    return f"{np.mean(shares):.4f}{error}"


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks.newsgroups", description=__doc__)
    command.add_argument("--seeds", type=int, default=len(SEEDS), help=f"splits, from seed 0 on ({len(SEEDS)})")
    return command


if __name__ == "__main__":
    sys.exit(main())
