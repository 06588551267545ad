"""Unlabelled documents: `python -m benchmarks.em [--seeds 5]` says how much they help where few documents have a label.

The posts of 20 Newsgroups by date: 20, 100, 300 and 1,000 older posts with a label, as many of each group, and 10,000 without;
tested on the 7,532 newer ones. Words seen fewer than three times and the hundred most frequent are dropped, as in Mitchell's
book. Beside it the same model of the labelled posts alone, with those settings and with every word kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banbury as bb
from benchmarks import datasets
from benchmarks.datasets import Part
from benchmarks.measure import WrongAnswer, say
from benchmarks.newsgroups import PRUNED, mean_and_error
from benchmarks.report import heading, markdown

LABELLED = (20, 100, 300, 1000)
UNLABELLED = 10_000
ALPHA = 0.01
HEADINGS = ["labelled", "alone, every word", "alone", "with 10,000 more", "errors cut by", "iterations"]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if not datasets.has_data("20news-bydate"):
        say(datasets.UNSET)
        return 1
    train, test = datasets.newsgroups()
    print(heading(HEADINGS))
    for n_labelled in options.labelled:
        print(markdown(row(train, test, n_labelled, range(options.seeds))), flush=True)
    return 0


def row(train: Part, test: Part, n_labelled: int, seeds: Sequence[int]) -> list[str]:
    """A row of the table: means over the seeds."""
    accuracies: dict[str, list[float]] = {"every word": [], "pruned": [], "both": []}
    iterations = []
    for seed in seeds:
        texts, labels = draw(train, n_labelled, seed)
        labelled = texts[:n_labelled], labels[:n_labelled].astype(str)
        for name, features in (("every word", bb.Text()), ("pruned", PRUNED)):
            model = bb.NaiveBayesClassifier(features=features, alpha=ALPHA).fit(*labelled)
            accuracies[name].append(test.accuracy(model.predict(test.rows)))
        learner = bb.SemiSupervisedClassifier(features=PRUNED, alpha=ALPHA, tol=1e-5).fit(texts, labels)
        objectives = learner.objectives_
        if np.diff(objectives).min(initial=0.0) < -1e-9 * abs(objectives[-1]):
            raise WrongAnswer(f"the objective fell: {objectives}")
        accuracies["both"].append(test.accuracy(learner.predict(test.rows)))
        iterations.append(learner.n_iter_)
    saved = 1.0 - (1.0 - np.mean(accuracies["both"])) / (1.0 - np.mean(accuracies["pruned"]))
    return [f"{n_labelled:,}", *map(mean_and_error, accuracies.values()), f"{saved:.1%}", f"{np.mean(iterations):.1f}"]


def draw(posts: Part, n_labelled: int, seed: int) -> tuple[list[str], NDArray[Any]]:
    """As many posts of each group with a label, those first, and others without one."""
    order = np.random.default_rng(seed).permutation(len(posts))
    groups = np.unique(posts.labels)
    chosen = np.concatenate([order[posts.labels[order] == g][: n_labelled // len(groups)] for g in groups])
    unlabelled = order[~np.isin(order, chosen)][:UNLABELLED]
    part = posts.take(np.concatenate([chosen, unlabelled]))
    labels = part.labels.astype(object)
    labels[len(chosen) :] = None
    return part.rows, labels


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks.em", description=__doc__)
    command.add_argument("--seeds", type=int, default=5, help="draws of the labelled posts, from seed 0 on (5)")
    command.add_argument("--labelled", type=int, nargs="+", default=LABELLED, help="how many posts have a label")
    return command


if __name__ == "__main__":
    sys.exit(main())
