"""Wrong labels and the next label: `python -m benchmarks.suspicious [--next] [sms adult newsgroups]`.

Some labels are replaced by others at random. ``bb.suspicious`` and cleanlab's ``find_label_issues``, which is given
scikit-learn's cross-validated probabilities (five folds, as in cleanlab's own guides), each name as many rows as were changed:
precision at k is the share of these that were. cleanlab may name fewer; so all rows are also ranked by its scores.

With ``--next``, learning curves: the accuracy on withheld rows after labelling the rows that ``bb.next_to_label`` asks for, and
after as many at random.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import banbury as bb
from benchmarks import datasets
from benchmarks.datasets import Part, take_rows
from benchmarks.measure import Setting, say, take_turns
from benchmarks.quality import encode_columns
from benchmarks.report import heading, markdown

SHARES = (0.05, 0.1, 0.2)
WITHHELD = 2_000
CURVES = {"sms": (20, 20, 10), "newsgroups": (100, 100, 8), "mushroom": (10, 10, 10)}  # first labels, more, rounds
SEEDS = 5
DATA: dict[str, tuple[str, Callable[[], Part], str]] = {  # the folder, what reads it, and a title
    "sms": ("sms-spam", datasets.sms, "SMS"),
    "adult": ("adult", lambda: datasets.table("census"), "Adult"),
    "newsgroups": ("20news-bydate", lambda: datasets.newsgroups()[0], "20 Newsgroups"),
    "mushroom": ("mushroom", lambda: datasets.table("mushroom"), "mushroom"),
}
HEADINGS = ["data", "wrong labels", "k", "", "precision at k", "all ranked", "processor time"]


# Wrong labels ---------------------------------------------------------------------------------------------------------


def replace_labels(part: Part, share: float, seed: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Labels of which a share are wrong, every other class as likely; and which."""
    rng = np.random.default_rng(seed)
    classes, numbers = np.unique(part.labels, return_inverse=True)
    wrong = np.zeros(len(numbers), dtype=np.bool_)
    wrong[rng.choice(len(numbers), round(share * len(numbers)), replace=False)] = True
    other = (numbers + rng.integers(1, len(classes), len(numbers))) % len(classes)
    return classes[np.where(wrong, other, numbers)], wrong


def learners(rows: Any) -> dict[str, Any]:
    """scikit-learn's pipelines: logistic regression, as in cleanlab's guides, and naive Bayes."""
    logistic = LogisticRegression(max_iter=1000)
    if isinstance(rows, list):
        return {
            "logistic regression": make_pipeline(TfidfVectorizer(), logistic),
            "naive Bayes": make_pipeline(CountVectorizer(), MultinomialNB()),
        }
    return {
        "logistic regression": make_pipeline(encode_columns(rows), logistic),
        "naive Bayes": make_pipeline(encode_columns(rows, sparse=False), GaussianNB()),
    }


def precision(title: str, part: Part, share: float, repeats: tuple[int, int]) -> Iterator[list[str]]:
    """A row for ours and one for cleanlab with each learner."""
    labels, wrong = replace_labels(part, share, seed=0)
    k = int(wrong.sum())
    row_start = [title, f"{share:.0%}", f"{k:,}"]
    seconds, suspects = least_time(lambda: bb.suspicious(part.rows, labels, n=k), repeats[0])
    yield [*row_start, "bb.suspicious", f"{wrong[suspects.indices].mean():.1%}", "", f"{seconds:.3f} s"]
    if not find_spec("cleanlab"):
        yield [*row_start, "cleanlab is not installed (pip install --group peers)", "", "", ""]
        return
    for name, learner in learners(part.rows).items():
        run = lambda learner=learner: run_cleanlab(part.rows, labels, learner)  # noqa: E731
        seconds, (issues, ranking) = least_time(run, repeats[1])
        shares = wrong[issues[:k]].sum() / k, wrong[ranking[:k]].mean()
        yield [*row_start, f"cleanlab, {name}", *(f"{share:.1%}" for share in shares), f"{seconds:.3f} s"]


def run_cleanlab(rows: Any, labels: NDArray[Any], learner: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows that cleanlab names, most suspicious first; and all rows by its scores."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.model_selection import cross_val_predict

    numbers = np.unique(labels, return_inverse=True)[1]
    shares = cross_val_predict(learner, rows, numbers, cv=5, method="predict_proba")
    issues = find_label_issues(numbers, shares, return_indices_ranked_by="self_confidence", n_jobs=1)
    return issues, np.argsort(get_label_quality_scores(numbers, shares), kind="stable")


def least_time(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least processor seconds of all threads, and the answer. BLAS threads spin while they wait, so it has one."""
    with threadpool_limits(1):
        times, answers = take_turns({"run": run}, Setting(repeats), clock=time.process_time)
    return times["run"], answers["run"]


# The next label -------------------------------------------------------------------------------------------------------


def curves(name: str, seeds: int = SEEDS) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """How many labels there are after each round, and the accuracies, seeds × rounds, of rows asked for and at random."""
    first, more, rounds = CURVES[name]
    part = DATA[name][1]()
    accuracies = {
        choice: np.array([curve(part, ask, *CURVES[name], seed) for seed in range(seeds)])
        for choice, ask in (("asked for", True), ("at random", False))
    }
    return first + more * np.arange(rounds + 1), accuracies


def curve(part: Part, ask: bool, first: int, more: int, rounds: int, seed: int) -> list[float]:
    """Accuracies on withheld rows after each round of labels."""
    order = np.random.default_rng(seed).permutation(len(part))
    test = part.take(order[:WITHHELD])
    labelled_rows = order[WITHHELD : WITHHELD + first]
    pool = order[WITHHELD + first :]
    accuracies = []
    for _ in range(rounds + 1):
        labelled = part.take(labelled_rows)
        model = bb.estimate(bb.count(labelled.rows, labelled.labels), alpha=0.1)
        accuracies.append(test.accuracy(model.predict(test.rows)))
        chosen = np.arange(more)  # the pool is in random order
        if ask:
            candidates = take_rows(part.rows, pool)
            chosen = bb.next_to_label(model, candidates, n=more, labelled=labelled.rows, seed=seed).indices
        labelled_rows = np.concatenate([labelled_rows, pool[chosen]])
        pool = np.delete(pool, chosen)
    return accuracies


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    names = options.names or (list(CURVES) if options.next else ["sms", "newsgroups", "adult"])
    if not datasets.has_data(*(DATA[name][0] for name in names)):
        say(datasets.UNSET)
        return 1
    warnings.simplefilter("ignore")
    if options.next:
        for name in names:
            sizes, accuracies = curves(name, options.seeds)
            for choice, values in accuracies.items():
                means = zip(sizes, values.mean(axis=0), strict=True)
                print(f"{name}, {choice}: " + "  ".join(f"{n}: {mean:.1%}" for n, mean in means), flush=True)
        return 0
    print(heading(HEADINGS))
    for name in names:
        _, read, title = DATA[name]
        part = read()
        for share in SHARES:
            for row in precision(title, part, share, (options.repeats, options.peer_repeats)):
                print(markdown(row), flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks.suspicious", description=__doc__)
    command.add_argument("names", nargs="*", type=datasets.one_of(DATA), help=f"{', '.join(DATA)}")
    command.add_argument("--next", action="store_true", help="learning curves of the next labels")
    command.add_argument("--seeds", type=int, default=SEEDS, help=f"of learning curves, from 0 on ({SEEDS})")
    command.add_argument("--repeats", type=int, default=5, help="of ours, the least time counts (5)")
    command.add_argument("--peer-repeats", type=int, default=1, help="of cleanlab (1)")
    return command


if __name__ == "__main__":
    sys.exit(main())
