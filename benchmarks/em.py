"""Unlabelled documents: `python -m benchmarks.em [--seeds 5]` says how much they help where few documents have a label.

The posts of 20 Newsgroups by date: 20, 100, 300 and 1,000 older posts with a label, as many of each group, and 10,000 without;
tested on the 7,532 newer ones. Words seen fewer than three times and the hundred most frequent are dropped, as in Mitchell's
book. Beside it the same model of the labelled posts alone, with those settings and with every word kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banbury as bb
from banbury.readers import from_texts, n_threads
from banbury.schema import infer
from banbury.semi_supervised import Climb, climb, labelled_starts
from banbury.semi_supervised import Task as Rows
from banbury.semi_supervised.observed import Observed
from benchmarks import datasets
from benchmarks.measure import Setting, Task, WrongAnswer, measured, say
from benchmarks.newsgroups import DROPPED, FEWEST, stated

LABELLED = (20, 100, 300, 1000)
UNLABELLED = 10_000
PRUNED = bb.Text(min_count=FEWEST, drop_most_frequent=DROPPED)
THREE = ("rec.autos", "sci.space", "talk.politics.mideast")
ALPHA = 0.01
TOL = 1e-5


@dataclass(frozen=True)
class Posts:
    """Texts and their groups, to learn from and to test on."""

    texts: list[str]
    labels: NDArray[Any]
    held: list[str]
    truth: NDArray[Any]

    def split(self, n_labelled: int, seed: int) -> tuple[list[str], NDArray[Any]]:
        """As many posts with a label, those first, and others without one."""
        order = np.random.default_rng(seed).permutation(len(self.texts))
        groups = np.unique(self.labels)
        chosen = np.concatenate([order[self.labels[order] == g][: n_labelled // len(groups)] for g in groups])
        others = order[~np.isin(order, chosen)][:UNLABELLED]
        labels = self.labels[np.concatenate([chosen, others])].astype(object)
        labels[len(chosen) :] = None
        return [self.texts[i] for i in [*chosen, *others]], labels


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.em", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5, help="draws of the labelled posts, from seed 0 on (5)")
    parser.add_argument("--alpha", type=float, default=ALPHA, help=f"pseudo-count of every word ({ALPHA})")
    parser.add_argument("--labelled", type=int, nargs="+", default=LABELLED, help="how many posts have a label")
    parser.add_argument("--mixtures", action="store_true", help="three groups found without labels, and nothing else")
    options = parser.parse_args(arguments)
    if not datasets.there("20news-bydate"):
        say(datasets.UNSET)
        return 1
    posts = read()
    if options.mixtures:
        print(mixtures(posts, range(options.seeds), options.alpha))
        return 0
    print("labelled  alone, every word  alone             with 10,000 more  error cut by  iterations")
    for n_labelled in options.labelled:
        print(line(posts, n_labelled, range(options.seeds), options.alpha), flush=True)
    for task in iterations(posts, options.alpha, Setting(repeats=5, threads=n_threads(None), small=False)):
        found = measured(task, Setting(repeats=5, threads=n_threads(None), small=False))
        assert found.peer is not None
        print(
            f"{found.task}: {found.ours:.3f} s, {found.ours / found.peer:.1f} times one counting ({found.peer:.3f} s)"
        )
    return 0


def tasks(setting: Setting) -> Iterator[Task]:
    if not datasets.there("20news-bydate"):
        say(f"em: {datasets.UNSET}")
        return
    yield from iterations(read(), ALPHA, setting)


def read() -> Posts:
    with datasets.unpacked("20news-bydate") as folder:
        (texts, names), (held, truth) = (datasets.texts(folder / f"20news-bydate-{part}") for part in ("train", "test"))
    return Posts(texts, np.array(names), held, np.array(truth))


def line(posts: Posts, n_labelled: int, seeds: Sequence[int], alpha: float) -> str:
    """Accuracies, means over the seeds."""
    plain, alone, both, iterations = [], [], [], []
    for seed in seeds:
        texts, labels = posts.split(n_labelled, seed)
        known = texts[:n_labelled], labels[:n_labelled].astype(str)
        for features, found in ((bb.Text(), plain), (PRUNED, alone)):
            model = bb.NaiveBayesClassifier(features=features, alpha=alpha).fit(*known)
            found.append(float(np.mean(model.predict(posts.held) == posts.truth)))
        learned = bb.SemiSupervisedClassifier(features=PRUNED, alpha=alpha, tol=TOL).fit(texts, labels)
        if np.diff(learned.objectives_).min(initial=0.0) < -1e-9 * abs(learned.objectives_[-1]):
            raise AssertionError(f"the objective fell: {learned.objectives_}")
        both.append(float(np.mean(learned.predict(posts.held) == posts.truth)))
        iterations.append(learned.n_iter_)
    cut = 1.0 - (1.0 - np.mean(both)) / (1.0 - np.mean(alone))
    cells = [f"{n_labelled:<10,}", f"{stated(plain):<19}", f"{stated(alone):<18}", f"{stated(both):<18}"]
    return "".join([*cells, f"{cut:<14.1%}", f"{np.mean(iterations):.1f}"])


def mixtures(posts: Posts, seeds: Sequence[int], alpha: float) -> str:
    """Three groups as components of a mixture: log P per post, and the posts that are with most of their group."""
    chosen = np.concatenate([np.flatnonzero(posts.labels == group)[:300] for group in THREE])
    texts, truth = [posts.texts[i] for i in chosen], np.repeat(np.arange(len(THREE)), 300)
    likelihoods, together = [], []
    for seed in seeds:
        mixture = bb.Mixture(len(THREE), features=PRUNED, alpha=alpha, seed=seed).fit(texts)
        found = mixture.predict(texts)
        likelihoods.append(mixture.score(texts))
        together.append(sum(np.bincount(truth[found == c], minlength=3).max() for c in np.unique(found)) / len(texts))
    labelled = bb.SemiSupervisedClassifier(features=PRUNED, alpha=alpha).fit(texts, posts.labels[chosen])
    known = bb.Density.from_model(labelled.model_).score_samples(texts).mean()
    return (
        f"log P per post {np.mean(likelihoods):.1f}, from labels {known:.1f}; with their group {np.mean(together):.1%}"
    )


def iterations(posts: Posts, alpha: float, setting: Setting) -> Iterator[Task]:
    """One iteration beside one counting of the same posts, encoded once for both."""
    texts, labels = posts.split(300, 0)
    n = max(setting.rows(len(texts)), 600)
    texts, labels = texts[:n], labels[:n]
    batch = next(iter(from_texts(texts, None, None)))
    groups = tuple(np.unique(posts.labels).tolist())
    numbers = np.array([-1 if label is None else groups.index(label) for label in labels], dtype=np.int32)
    hard = np.zeros((len(texts), len(groups)))
    hard[np.arange(len(texts)), np.random.default_rng(0).integers(len(groups), size=len(texts))] = 1.0
    for name, family in (("every word", bb.Text()), ("words dropped", PRUNED)):
        weights = np.ones(len(texts))
        observed = Observed.of(batch, infer(batch, [], None, family, "skip"), weights, setting.threads)
        rows = Rows(observed, groups, numbers, weights, {"how": "mean", "alpha": alpha})
        start = next(labelled_starts(rows, 1, 0))()
        yield Task(
            "em",
            f"an iteration, {name}",
            f"{len(texts):,} posts of 20 Newsgroups, {len(labels) - list(labels).count(None):,} with a label",
            partial(climb, rows, start, 1, 0.0),
            lambda answers, rows=rows: climbing(rows, answers["ours"]),  # type: ignore[misc]
            partial(observed.tally, groups, hard),
            "one counting of the encoded posts",
            at_least=1 / 3,
        )


def climbing(rows: Rows, first: Climb) -> str:
    """The objective must not fall, from this iteration on."""
    found = climb(rows, first.posteriors, 8, 0.0).objectives
    falls = [later - earlier for earlier, later in pairwise((first.objectives[-1], *found))]
    if min(falls) < -1e-9 * abs(found[-1]):
        raise WrongAnswer(f"the objective fell by {-min(falls):g}")
    return f"objective {first.objectives[-1]:,.0f}, then {found[-1]:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
