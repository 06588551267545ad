"""When not to use it: `python -m benchmarks.when_not [name ...]` sets naive Bayes on texts beside linear learners.

20 Newsgroups by date comes with its own split; of SMS spam and reviews a third of each class is tested (seed 0). Reading the
files is not timed; finding words is. The tables are those of docs/explanation/when-not-to-use-it.md and
docs/reference/text.md; times are of one run, and show the order of magnitude only. A log loss is scikit-learn's, which
replaces probabilities below 2.2e-16 by that.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import banbury as bb
from benchmarks import datasets, machine
from benchmarks.datasets import Part
from benchmarks.measure import say
from benchmarks.quality import measure
from benchmarks.report import heading, markdown

HEADINGS = ["learner", "accuracy", "log loss", "fit", "predict"]
TUNED = {"alpha": "auto", "calibrate": "temperature"}
LOG_ODDS = bb.Text(model="log_odds", damping="log", length=True)
LEARNERS: dict[str, Callable[[], Any]] = {
    "Banbury, as it comes": lambda: bb.NaiveBayesClassifier(),
    "Banbury, calibrated": lambda: bb.NaiveBayesClassifier(calibrate="temperature"),
    "Banbury, α chosen, calibrated": lambda: bb.NaiveBayesClassifier(bb.Text(), **TUNED),
    "Banbury, log-odds of damped counts, the same": lambda: bb.NaiveBayesClassifier(LOG_ODDS, **TUNED),
    "Banbury, model and α chosen, calibrated": lambda: bb.NaiveBayesClassifier(**TUNED),
    "Banbury, weighed": lambda: bb.EvidenceClassifier(),
    "logistic regression": lambda: make_pipeline(tf_idf(), LogisticRegression(C=10.0, max_iter=1000)),
    "linear support vectors": lambda: make_pipeline(tf_idf(), LinearSVC(random_state=0)),
}
DATA: dict[str, tuple[str, Callable[[], tuple[Part, Part]]]] = {  # the folder, and what reads it
    "newsgroups": ("20news-bydate", datasets.newsgroups),
    "sms": ("sms-spam", lambda: datasets.thirds(datasets.sms())),
    "reviews": ("review-polarity", lambda: datasets.thirds(datasets.reviews())),
}


def tf_idf() -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True)


def main(arguments: Sequence[str] | None = None) -> int:
    names = parser().parse_args(arguments).names or list(DATA)
    if not datasets.has_data(*(DATA[name][0] for name in names)):
        say(datasets.UNSET)
        return 1
    print(machine.describe())
    for name in names:
        train, test = DATA[name][1]()
        print(f"\n{name}: {len(train):,} rows learned, {len(test):,} tested\n", heading(HEADINGS), sep="\n")
        for learner, make in LEARNERS.items():
            say(f"when_not: {name}, {learner}")
            print(markdown([learner, *table_row(make, train, test)]), flush=True)
    return 0


def table_row(make: Callable[[], Any], train: Part, test: Part) -> list[str]:
    result = measure(lambda _: make(), [(train, test)])
    loss = "none" if result.log_loss is None else f"{result.log_loss:.3f}"
    return [f"{result.accuracy:.4f}", loss, f"{result.fit:.2g} s", f"{result.predict:.2g} s"]


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks.when_not", description=__doc__)
    command.add_argument("names", nargs="*", type=datasets.one_of(DATA), metavar="name", help=", ".join(DATA))
    return command


if __name__ == "__main__":
    sys.exit(main())
