"""Wrong labels and the next label: `python -m benchmarks.suspicious [--next] [sms adult newsgroups]`.

Some labels are replaced by others at random. ``bb.suspicious`` and cleanlab's ``find_label_issues``, given scikit-learn's
cross-validated probabilities (five folds, as cleanlab's own guides have them), each name as many rows as were changed: precision
at k is the share of these that are. cleanlab may name fewer, which are all it finds; so all rows are also ranked by its scores.

With ``--next``, learning curves: the accuracy on rows withheld after rows that ``bb.next_to_label`` asks for, and after as many
at random.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import banbury as bb
from benchmarks import datasets
from benchmarks.measure import say

SHARES = (0.05, 0.1, 0.2)
FOLDS = 5
WITHHELD = 2_000
CURVES = {
    "sms": (20, 20, 10),
    "newsgroups": (100, 100, 8),
    "mushroom": (10, 10, 10),
}  # first labels, more each time, how often
SEEDS = 5


@dataclass(frozen=True)
class Rows:
    """Rows and their labels; texts are a list, tables a frame."""

    rows: Any
    labels: NDArray[Any]

    def take(self, at: NDArray[np.int64]) -> Any:
        return [self.rows[i] for i in at] if isinstance(self.rows, list) else self.rows.iloc[at]

    def planted(self, share: float, seed: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Labels of which a share are wrong, each of the others as likely; and which."""
        rng = np.random.default_rng(seed)
        classes, numbers = np.unique(self.labels, return_inverse=True)
        wrong = np.zeros(len(numbers), dtype=np.bool_)
        wrong[rng.choice(len(numbers), round(share * len(numbers)), replace=False)] = True
        other = (numbers + rng.integers(1, len(classes), len(numbers))) % len(classes)
        return classes[np.where(wrong, other, numbers)], wrong


def sms() -> Rows:
    with datasets.unpacked("sms-spam") as folder:
        lines = (folder / "SMSSpamCollection").read_text(encoding="utf-8").splitlines()
    labels, texts = zip(*(line.split("\t", 1) for line in lines if line), strict=True)
    return Rows(list(texts), np.array(labels))


def adult() -> Rows:
    frame = datasets.frame("adult", "adult.data", datasets.ADULT)
    return Rows(frame, frame.pop(datasets.INCOME).to_numpy().astype(str))


def mushroom() -> Rows:
    frame = datasets.frame("mushroom", "agaricus-lepiota.data", datasets.MUSHROOM)
    return Rows(frame, frame.pop("class").to_numpy().astype(str))


def newsgroups() -> Rows:
    with datasets.unpacked("20news-bydate") as folder:
        texts, labels = datasets.texts(folder / "20news-bydate-train")
    return Rows(texts, np.array(labels))


FOUND: dict[str, tuple[str, Callable[[], Rows], str]] = {  # the folder, what reads it, and what it is called
    "sms": ("sms-spam", sms, "SMS"),
    "adult": ("adult", adult, "Adult"),
    "newsgroups": ("20news-bydate", newsgroups, "20 Newsgroups"),
    "mushroom": ("mushroom", mushroom, "mushroom"),
}


# Wrong labels --------------------------------------------------------------------------------------------------------


def learners(rows: Rows) -> dict[str, Any]:
    """scikit-learn's pipelines: logistic regression, as cleanlab's guides have it, and naive Bayes."""
    from sklearn.compose import make_column_transformer
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB, MultinomialNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    logistic = LogisticRegression(max_iter=1000)
    if isinstance(rows.rows, list):
        return {
            "logistic regression": make_pipeline(TfidfVectorizer(), logistic),
            "naive Bayes": make_pipeline(CountVectorizer(), MultinomialNB()),
        }
    numbers = [name for name in rows.rows if rows.rows[name].dtype.kind in "if"]
    words = [name for name in rows.rows if name not in numbers]

    def columns(dense: bool) -> Any:
        values = OneHotEncoder(handle_unknown="ignore", sparse_output=not dense)
        return make_column_transformer((StandardScaler(), numbers), (values, words))

    return {
        "logistic regression": make_pipeline(columns(False), logistic),
        "naive Bayes": make_pipeline(columns(True), GaussianNB()),
    }


def beside_cleanlab(
    name: str, rows: Rows, share: float, seed: int, repeats: int, peers: Sequence[str]
) -> Iterator[str]:
    """A line for ours and one for each learner: precision at k, and the least time."""
    labels, wrong = rows.planted(share, seed)
    k = int(wrong.sum())
    ours, found = least(lambda: bb.suspicious(rows.rows, labels, n=k), repeats[0])
    precision = float(wrong[found.indices].mean())
    place = f"{name:14}  {share:5.0%}  {k:6,}"
    yield f"{place}  {'bb.suspicious':34}  {precision:9.1%}  {'':10}  {ours:9.3f} s"
    if not find_spec("cleanlab"):
        yield f"{place}  cleanlab is not installed (pip install --group peers)"
        return
    for peer in peers:
        seconds, (named, ranked) = least(lambda peer=peer: cleanlab(rows, labels, learners(rows)[peer]), repeats[1])  # type: ignore[misc]
        as_found, all_ranked = wrong[named[:k]].sum() / k, wrong[ranked[:k]].mean()
        told = f"{as_found:9.1%}  {all_ranked:10.1%}  {seconds:9.3f} s  {seconds / ours:6.0f} ×"
        held = precision >= max(as_found, all_ranked)
        yield f"{place}  {f'cleanlab, {peer}':34}  {told}{'' if held else '  more precise than ours'}"


def cleanlab(rows: Rows, labels: NDArray[Any], learner: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows that cleanlab names, most suspicious first; and all rows by its scores."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.model_selection import cross_val_predict

    numbers = np.unique(labels, return_inverse=True)[1]
    shares = cross_val_predict(learner, rows.rows, numbers, cv=FOLDS, method="predict_proba")
    named = find_label_issues(numbers, shares, return_indices_ranked_by="self_confidence", n_jobs=1)
    return named, np.argsort(get_label_quality_scores(numbers, shares), kind="stable")


def least(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least processor seconds of all threads, whatever else the machine does meanwhile; and the last answer."""
    times, answer = [], None
    with threadpool_limits(1):  # of BLAS and OpenMP, whose threads wait for each other with the processor running
        for _ in range(repeats):
            start = time.process_time()
            answer = run()
            times.append(time.process_time() - start)
    return min(times), answer


# The next label ------------------------------------------------------------------------------------------------------


def curve(rows: Rows, ask: bool, first: int, more: int, rounds: int, seed: int) -> list[float]:
    """Accuracies on rows withheld after each round of labels."""
    order = np.random.default_rng(seed).permutation(len(rows.labels))
    test, known, pool = order[:WITHHELD], order[WITHHELD : WITHHELD + first], order[WITHHELD + first :]
    found = []
    for _ in range(rounds + 1):
        model = bb.estimate(bb.count(rows.take(known), rows.labels[known]), alpha=0.1)
        found.append(float(np.mean(model.predict(rows.take(test)) == rows.labels[test])))
        chosen = np.arange(more)  # the pool is in random order
        if ask:
            chosen = bb.next_to_label(model, rows.take(pool), n=more, labelled=rows.take(known), seed=seed).indices
        known, pool = np.concatenate([known, pool[chosen]]), np.delete(pool, chosen)
    return found


def curves(name: str, seeds: int = SEEDS) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """How many labels there are after each round, and the accuracies, seeds × rounds, of rows asked for and at random."""
    first, more, rounds = CURVES[name]
    rows = FOUND[name][1]()
    each = {"asked for": True, "at random": False}
    found = {
        what: np.array([curve(rows, ask, first, more, rounds, seed) for seed in range(seeds)])
        for what, ask in each.items()
    }
    return first + more * np.arange(rounds + 1), found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suspicious", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", type=datasets.one_of(FOUND), help=f"{', '.join(FOUND)}")
    parser.add_argument("--next", action="store_true", help="learning curves of the next labels")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="of labels that are wrong")
    parser.add_argument("--seed", type=int, default=0, help="of what is planted (0)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"of learning curves, from 0 on ({SEEDS})")
    parser.add_argument("--repeats", type=int, default=5, help="of ours, the least time counts (5)")
    parser.add_argument("--peer-repeats", type=int, default=1, help="of the others (1)")
    parser.add_argument(
        "--peers", nargs="*", default=["logistic regression", "naive Bayes"], help="learners of cleanlab's"
    )
    options = parser.parse_args(arguments)
    names = options.names or (list(CURVES) if options.next else ["sms", "adult", "newsgroups"])
    warnings.simplefilter("ignore")
    for name in names:
        if not datasets.there(FOUND[name][0]):
            say(datasets.UNSET)
            return 1
    if not options.next:
        print(
            "data set        share       k                                      precision at k  all ranked  processor time"
        )
    for name in names:
        if options.next:
            sizes, found = curves(name, options.seeds)
            for what, each in found.items():
                told = "  ".join(f"{n}: {mean:.1%}" for n, mean in zip(sizes, each.mean(axis=0), strict=True))
                print(f"{name}, {what}: {told}", flush=True)
            continue
        rows = FOUND[name][1]()
        for share in options.shares:
            for line in beside_cleanlab(
                FOUND[name][2], rows, share, options.seed, (options.repeats, options.peer_repeats), options.peers
            ):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
