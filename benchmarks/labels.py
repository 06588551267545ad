"""Several labels per row: `python -m benchmarks.labels` has Reuters-21578 labelled by Banbury and by scikit-learn.

The ModApte split: 9,603 stories to learn from, 3,299 to test on, and the 90 topics that both parts have; a story may have none.
A story is its title and its text. Everything is chosen on the stories to learn from. scikit-learn's learners answer one topic
against the rest, with their defaults. Learners take turns, and their least times are kept; reading the file is not timed, but
finding words and choosing thresholds are. Ten folds are those of ``bb.cross_validate``: each story is scored by a model that
has not counted it, with thresholds chosen on stories of other folds.

`--many` times made-up texts of 43 words, each with three of 100, 1,000 and 10,000 labels, instead.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import banbury as bb
from benchmarks import datasets, machine
from benchmarks.datasets import Stories, reuters
from benchmarks.measure import Figure, Setting, limit_threads, say, take_turns
from benchmarks.report import amount, heading, markdown

DATA = "reuters21578"
HEADINGS = ["learner", "micro F1", "macro F1", "fit", "predict"]
MANY_HEADINGS = ["labels", "count 20,000 texts", "score a text"]
ALPHA = 0.01


class Counted:
    """A model of the counts alone, with thresholds of one half."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def fit(self, texts: list[str], topics: list[list[str]]) -> Counted:
        self.model = bb.LabelModel.of(bb.count(texts, target=topics), alpha=self.alpha)
        return self

    def predict(self, texts: list[str]) -> Any:
        return self.model.predict(texts)


def against_the_rest(vectoriser: Callable[[], Any], learner: Any) -> Callable[[], Any]:
    return lambda: make_pipeline(vectoriser(), OneVsRestClassifier(learner))


WEIGHED = "Banbury, weighed (as it comes)"
SUPPORT_VECTORS = "linear support vectors on TF-IDF, one against the rest"
OURS: dict[str, Callable[[], Any]] = {
    "Banbury, counted, and nothing chosen": lambda: Counted(1.0),
    "Banbury, plain, α and thresholds chosen": lambda: bb.MultiLabelClassifier(weigh=False),
    WEIGHED: bb.MultiLabelClassifier,
}
PEERS: dict[str, Callable[[], Any]] = {
    "multinomial naive Bayes on counts, one against the rest": against_the_rest(CountVectorizer, MultinomialNB()),
    "complement naive Bayes on TF-IDF, one against the rest": against_the_rest(TfidfVectorizer, ComplementNB()),
    SUPPORT_VECTORS: against_the_rest(TfidfVectorizer, LinearSVC(random_state=0)),
}


@dataclass(frozen=True)
class Row:
    """A learner's scores on the stories to test on, and its least times."""

    micro_f1: float
    macro_f1: float
    fit: float
    predict: float


def measure(train: Stories, test: Stories, setting: Setting) -> dict[str, Row]:
    names = sorted({topic for topics in train.topics for topic in topics})
    flags, truth = (label_matrix(stories.topics, names) for stories in (train, test))
    fits = {
        name: (lambda make=make, target=train.topics if name in OURS else flags: make().fit(train.texts, target))
        for name, make in (OURS | PEERS).items()
    }
    say("labels: fit")
    fit_times, learners = take_turns(fits, setting)
    say("labels: predict")
    predictions = {name: (lambda learner=learner: learner.predict(test.texts)) for name, learner in learners.items()}
    times, answers = take_turns(predictions, setting)
    rows = {}
    for name, answer in answers.items():
        predicted = label_matrix(answer, names) if name in OURS else answer
        micro, macro = (f1_score(truth, predicted, average=how, zero_division=0) for how in ("micro", "macro"))
        rows[name] = Row(micro, macro, fit_times[name], times[name])
    return rows


def label_matrix(sets: Any, names: list[str]) -> Any:
    """Rows × labels, 1 where a row has a label; other labels than these are ignored."""
    column_of = {name: k for k, name in enumerate(names)}
    flags = np.zeros((len(sets), len(names)), dtype=np.int64)
    for row, labels in enumerate(sets):
        flags[row, [column_of[name] for name in labels if name in column_of]] = 1
    return flags


def figures(setting: Setting) -> Iterator[Figure]:
    """The weighed learner, which is the default, beside linear support vectors."""
    if not datasets.has_data(DATA):
        say(f"labels: left out; {datasets.UNSET}")
        return
    train, test = (stories.first(setting.rows(len(stories))) for stories in reuters())
    with limit_threads(setting.threads):
        rows = measure(train, test, setting)
    ours = rows[WEIGHED]
    peer = rows[SUPPORT_VECTORS]
    answers = f"micro F1 {ours.micro_f1:.3f}, the peer {peer.micro_f1:.3f}"
    for task, stories in (("fit", train), ("predict", test)):
        data = f"Reuters, {len(stories):,} stories, 90 topics"
        yield Figure("labels", task, data, getattr(ours, task), getattr(peer, task), SUPPORT_VECTORS, answers)


def folds(train: Stories, test: Stories, setting: Setting) -> Iterator[str]:
    """Ten exact folds of a plain classifier beside one fit and one prediction, at one half and at thresholds chosen."""
    learners = {
        "thresholds of one half": (None, Counted(ALPHA)),
        "thresholds chosen within each fold": ("f1", bb.MultiLabelClassifier(weigh=False, alpha=ALPHA)),
    }
    for name, (threshold, learner) in learners.items():
        settings = {"folds": 10, "alpha": ALPHA, "threshold": threshold}
        engines: dict[str, Callable[[], Any]] = {
            "once": lambda learner=learner: learner.fit(train.texts, train.topics).predict(test.texts),
            "folds": lambda settings=settings: bb.cross_validate(train.texts, train.topics, **settings),
        }
        times, answers = take_turns(engines, setting)
        result = answers["folds"]
        yield (
            f"ten exact folds, plain, α = {ALPHA}, {name}: {amount(times['folds'])}; fit and predict: "
            f"{amount(times['once'])}; ratio {times['folds'] / times['once']:.1f}; "
            f"micro F1 {result.micro_f1:.3f}, macro F1 {result.macro_f1:.3f}"
        )


def time_many_labels(n_labels: int, n_texts: int, setting: Setting) -> list[str]:
    """A row of the table of many labels: words of any text after Zipf, and one that only texts of a label have."""
    rng = np.random.default_rng(0)
    labels = [sorted(set(row)) for row in rng.integers(0, n_labels, (n_texts, 3)).tolist()]
    words = np.minimum(rng.zipf(1.3, (n_texts, 40)), 50_000).tolist()
    texts = [
        " ".join([*(f"w{w}" for w in row), *(f"label{k}" for k in row_labels)])
        for row, row_labels in zip(words, labels, strict=True)
    ]
    scored_texts = texts[:2_000]
    model = bb.LabelModel.of(bb.count(texts, target=labels), alpha=ALPHA)
    model.posterior(scored_texts[:1])  # derives the weights of words once
    engines = {"count": lambda: bb.count(texts, target=labels), "score": lambda: model.posterior(scored_texts)}
    times, _ = take_turns(engines, setting)
    return [f"{n_labels:,}", amount(times["count"]), amount(times["score"] / len(scored_texts))]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    setting = Setting(options.repeats)
    if options.many:
        print(f"{machine.describe()}\n\n{heading(MANY_HEADINGS)}")
        for n_labels in (100, 1_000, 10_000):
            print(markdown(time_many_labels(n_labels, 20_000, setting)), flush=True)
        return 0
    if not datasets.has_data(DATA):
        say(datasets.UNSET)
        return 1
    train, test = reuters()
    print(f"{machine.describe()}\n\n{len(train):,} stories learned, {len(test):,} tested\n\n{heading(HEADINGS)}")
    for name, row in measure(train, test, setting).items():
        scores = [f"{row.micro_f1:.3f}", f"{row.macro_f1:.3f}"]
        print(markdown([name, *scores, f"{row.fit:.2g} s", f"{row.predict:.2g} s"]))
    print("", *folds(train, test, setting), sep="\n")
    return 0


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks.labels", description=__doc__)
    command.add_argument("--repeats", type=int, default=2, help="turns of every learner (2)")
    command.add_argument("--many", action="store_true", help="time many labels of texts that are made up")
    return command


if __name__ == "__main__":
    sys.exit(main())
